"""The suites' own hooks during a run: before and after everything, and each attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tui_eval.config.project import Config, ConfigError, rule_for
from tui_eval.engine.hosts import Hosts
from tui_eval.formats import format_of
from tui_eval.formats.format import HookError, Hooks, HookScene
from tui_eval.guard.spelling import some_of
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Attempt, Case, Compat, Entry


class SuiteHooks:
    """The hooks of the suites of one run."""

    def __init__(
        self, settings: Mapping[str, dict[str, Any]], config: Config, trust: Trust, hosts: Hosts
    ) -> None:
        self._hooks: dict[str, Hooks] = {}
        self._settings = settings
        self._config, self._trust, self._hosts = config, trust, hosts
        self._cases: dict[str, list[Case]] = {}
        self.failed: dict[str, str] = {}
        self._failed_after: dict[str, int] = {}

    def begin(self, cases: Sequence[Case]) -> tuple[list[Case], dict[str, dict[str, Any]]]:
        """The cases as `beforeAll` of their suites leaves them, and the settings that it changed. A suite
        whose hook fails keeps its cases, and `failed` says why. For threads without an event loop."""
        for suite, case in {case.suite: case for case in cases}.items():
            if (hooks := self._of(suite, case)) is not None:
                self._hooks[suite] = hooks
        if not self._hooks:
            return list(cases), {}
        return asyncio.run(self._begin(cases))

    def _of(self, suite: str, case: Case) -> Hooks | None:
        rule = rule_for(self._config, suite)
        compat: Compat = (rule.compat if rule else None) or "documented"
        scene = HookScene(self._config, self._trust, self._hosts, compat)
        settings, base = self._settings.get(suite, {}), (self._config.root / suite).parent
        return format_of(case.format).hooks(settings, base, scene)

    async def _begin(self, cases: Sequence[Case]) -> tuple[list[Case], dict[str, dict[str, Any]]]:
        result: list[Case] = []
        changed: dict[str, dict[str, Any]] = {}
        own: dict[str, list[Case]] = {}
        for case in cases:
            own.setdefault(case.suite, []).append(case)
        for suite, members in own.items():
            hooks = self._hooks.get(suite)
            if hooks is not None:
                try:
                    members, changed[suite] = await hooks.before_all(members, self._settings[suite])
                except (HookError, NeedsTrust) as error:
                    self.failed[suite] = str(error)
                self._cases[suite] = list(members)
            result.extend(members)
        return result, changed

    async def before_each(self, case: Case) -> Case:
        """The case as `beforeEach` leaves it.

        Raises:
            ConfigError, NeedsTrust: the hook fails or may not run.
        """
        hooks = self._hooks.get(case.suite)
        try:
            return case if hooks is None else await hooks.before_each(case)
        except HookError as error:
            raise ConfigError(str(error)) from None

    async def after_each(self, case: Case, attempt: Attempt) -> None:
        """Tell of an attempt that has ended, and add to it what hooks give; one that fails is a note in its
        transcript."""
        hooks = self._hooks.get(case.suite)
        if hooks is None:
            return
        try:
            await hooks.after_each(case, attempt)
        except (HookError, NeedsTrust) as error:
            attempt.transcript.append(Entry(turn=1, kind="note", text=f"hook failed: {error}"))
            self._failed_after[str(error)] = self._failed_after.get(str(error), 0) + 1

    def words(self) -> str:
        """Which hooks failed after attempts, what they were to add being missing there; empty: none."""
        told = (
            f"{error} (after {count:,} attempt{'s' if count > 1 else ''})"
            for error, count in self._failed_after.items()
        )
        return f"hook failed: {some_of(list(told), 3)}" if self._failed_after else ""

    async def end(self, evaluation: str) -> list[str]:
        """Tell that the run is over; what went wrong, a line each. `evaluation` is its `__evalId`."""
        problems: list[str] = []
        for suite, hooks in self._hooks.items():
            if suite in self.failed:
                continue
            try:
                await hooks.after_all(self._cases.get(suite, []), self._settings[suite], evaluation)
            except (HookError, NeedsTrust) as error:
                problems.append(f"{suite}: {error}")
        return problems
