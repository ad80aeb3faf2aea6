"""promptfoo's `extensions` during a run: before and after everything, and each attempt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from tui_eval.config.project import Config, ConfigError, rule_for
from tui_eval.engine.hosts import Hosts
from tui_eval.formats.promptfoo.read.suite_hooks import HookError, Hooks
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Attempt, Case, Entry, Verdict

_EXTENSIONS = "extensions"


class SuiteHooks:
    """The hooks of the suites of one run, and the rows that `afterAll` is told of."""

    def __init__(
        self, settings: Mapping[str, dict[str, Any]], config: Config, trust: Trust, hosts: Hosts
    ) -> None:
        self._hooks: dict[str, Hooks] = {}
        self._settings = {suite: own for suite, own in settings.items() if own.get(_EXTENSIONS)}
        self._cases: dict[str, list[Case]] = {}
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self.failed: dict[str, str] = {}
        for suite, own in self._settings.items():
            self._hooks[suite] = _hooks(suite, own, config, trust, hosts)

    def begin(self, cases: Sequence[Case]) -> tuple[list[Case], dict[str, dict[str, Any]]]:
        """The cases as `beforeAll` of their suites leaves them, and the settings that it changed. A suite
        whose hook fails keeps its cases, and `failed` says why. For threads without an event loop."""
        if not self._hooks:
            return list(cases), {}
        return asyncio.run(self._begin(cases))

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
        row = row_of(case, attempt)
        self._rows.setdefault(case.suite, []).append(row)
        try:
            added = await hooks.after_each(case, row)
            attempt.named_scores = {**attempt.named_scores, **added["namedScores"]}
            if attempt.replies and added["metadata"] != row["metadata"]:
                reply = attempt.replies[-1]
                reply.metadata = {**(reply.metadata or {}), **added["metadata"]}
        except (HookError, NeedsTrust) as error:
            attempt.transcript.append(Entry(turn=1, kind="note", text=f"hook failed: {error}"))

    async def end(self) -> list[str]:
        """Tell that the run is over; what went wrong, a line each."""
        problems: list[str] = []
        for suite, hooks in self._hooks.items():
            if suite in self.failed:
                continue
            rows = self._rows.get(suite, [])
            try:
                await hooks.after_all(self._cases.get(suite, []), self._settings[suite], rows)
            except (HookError, NeedsTrust) as error:
                problems.append(f"{suite}: {error}")
        return problems


def _hooks(suite: str, settings: Mapping[str, Any], config: Config, trust: Trust, hosts: Hosts) -> Hooks:
    rule = rule_for(config, suite)
    return Hooks(
        settings[_EXTENSIONS],
        (config.root / suite).parent,
        config,
        trust,
        hosts.python,
        hosts.node,
        (rule.compat if rule else None) or "documented",
    )


def row_of(case: Case, attempt: Attempt) -> dict[str, Any]:
    """An attempt as a row in promptfoo's words (formats/promptfoo.md 11)."""
    passed = attempt.outcome == "passed"
    output = attempt.output if attempt.output is not None else attempt.response_text
    reply = attempt.replies[-1] if attempt.replies else None
    row: dict[str, Any] = {
        "description": case.description or None,
        "prompt": {"raw": attempt.prompt_sent or "", "label": case.prompt or ""},
        "provider": {"id": attempt.agent, "label": attempt.agent},
        "vars": attempt.vars or case.vars,
        "response": {"output": output, "metadata": (reply.metadata if reply else None) or {}},
        "success": passed,
        "score": attempt.score,
        "namedScores": attempt.named_scores,
        "failureReason": 0 if passed else 1 if attempt.outcome == "failed" else 2,
        "latencyMs": (reply.latency_ms if reply else None) or attempt.duration_ms or 0,
        "cost": attempt.cost or 0,
        "metadata": case.metadata,
        "gradingResult": {
            "pass": passed,
            "score": attempt.score,
            "reason": attempt.message,
            "namedScores": attempt.named_scores,
            "componentResults": [_component(verdict) for verdict in attempt.verdicts],
        },
    }
    if not passed:
        row["error"] = attempt.error or attempt.message
    return row


def _component(verdict: Verdict) -> dict[str, Any]:
    return {
        "pass": verdict.passed is True,
        "score": verdict.score,
        "reason": verdict.reason,
        "assertion": {"type": verdict.type, "value": verdict.expected, "metric": verdict.metric},
    }
