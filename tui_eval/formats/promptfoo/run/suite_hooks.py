"""`extensions`: people's code before and after a run and each of its tests (formats/promptfoo.md 1.1).

An entry is `file://path:function`. A function called like one of the four hooks runs for that hook
alone, as `function(context, {hookName})`; any other runs for all of them, as
`function(hookName, context)`. What `beforeAll` and `beforeEach` return replaces the parts of their
context that may change; nothing returned leaves them; `afterEach` may add named scores and metadata.
Extensions run one after the other, each with
what the ones before it made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from tui_eval.config.project import Config, masker
from tui_eval.formats.format import HookError, HookScene
from tui_eval.formats.promptfoo.promptfoo_words import components_of, kept_beside, own_options, test_of
from tui_eval.formats.promptfoo.read.promptfoo_config import HOOK
from tui_eval.formats.promptfoo.read.promptfoo_types import names
from tui_eval.formats.promptfoo.read.suite_file import SuiteReading, no_line
from tui_eval.formats.promptfoo.read.suite_providers import of_test
from tui_eval.formats.promptfoo.read.suite_tests import TestReader
from tui_eval.guard import figures
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import Trust, script
from tui_eval.model import Attempt, Case, Compat, Turn
from tui_eval.suites import identity

if TYPE_CHECKING:
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost
    from tui_eval.scripting.script_host import Lease


# -- The cases of a suite as its `beforeAll` hooks see and leave them: tests, prompts and defaults.


def suite_of(cases: Sequence[Case], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `beforeAll` and `afterAll` see of a suite: each test once, prompts, providers, settings."""
    prompts = {case.prompt: case.turns[0].text if case.turns else "" for case in cases}
    providers = {
        case.agent: {
            "id": case.provider.get("id") if isinstance(case.provider, dict) else case.agent,
            "label": case.provider.get("label") if isinstance(case.provider, dict) else None,
        }
        for case in cases
    }
    return {
        "prompts": [{"raw": raw, "label": label} for label, raw in prompts.items()],
        "providers": list(providers.values()),
        "tests": [test_of(group[0]) for group in _by_test(cases)],
        "scenarios": [],
        "defaultTest": {},
        "nunjucksFilters": settings.get("nunjucksFilters") or {},
        "derivedMetrics": settings.get("derivedMetrics") or [],
        "extensions": settings.get("extensions") or [],
        "env": {},
    }


def with_tests(
    cases: Sequence[Case], tests: list[Any], config: Config, trust: Trust, compat: Compat
) -> list[Case]:
    """The cases with the tests that a hook left: one that it changed is changed in every column, one that it
    added gets a case in every column, one that it took out has none."""
    groups = _by_test(cases)
    before = [test_of(group[0]) for group in groups]
    columns = list({(case.agent, case.prompt): case for case in cases}.values())
    unused = set(range(len(before)))
    ids = identity.Ids(masker(config).text)
    result: list[Case] = []
    firsts: dict[int, int] = {}
    for place, test in enumerate(tests):
        same = next((index for index in sorted(unused) if before[index] == test), None)
        if same is None and place in unused and before[place] not in tests:
            same = place
        group = columns if same is None else groups[same]
        if same is not None:
            unused.discard(same)
        for case in group:
            changed = with_test(case, test, config, trust, compat)
            first = place + 1
            if same is not None:
                first = firsts.setdefault(case.first_number or case.test_number, first)
            made = msgspec.structs.replace(
                changed, test_number=place + 1, first_number=first if first <= place else 0
            )
            if same is None:
                made = msgspec.structs.replace(made, case_id=_id_of(made))
            case_id = ids.take(made.case_id)
            result.append(msgspec.structs.replace(made, case_id=case_id, order=len(result)))
    return result


def mapping(value: Any) -> dict[str, Any]:
    """A mapping, empty where there is none."""
    return value if isinstance(value, dict) else {}


def with_default(test: Any, default: Any) -> Any:
    """A test with the `defaultTest` that a hook made under it."""
    if not isinstance(test, dict) or not isinstance(default, dict):
        return test
    merged = {**{key: default[key] for key in ("threshold", "provider") if key in default}, **test}
    for key in ("vars", "options", "metadata"):
        if isinstance(default.get(key), dict):
            merged[key] = {**default[key], **mapping(test.get(key))}
    if isinstance(default.get("assert"), list) and not mapping(test.get("options")).get(
        "disableDefaultAsserts"
    ):
        merged["assert"] = [*default["assert"], *(test.get("assert") or [])]
    return merged


def with_prompts(cases: Sequence[Case], prompts: list[Any], masked: Callable[[str], str] = str) -> list[Case]:
    """The cases with the prompts that a hook left: changed texts, new columns, and none for those it took; `masked`
    takes secrets out of their ids."""
    wanted = {str(p.get("label") or p.get("raw")): p.get("raw") for p in prompts if isinstance(p, dict)}
    ids = identity.Ids(masked)
    result: list[Case] = []
    for group in _by_test(cases):
        for before, agent in enumerate(dict.fromkeys(case.agent for case in group)):
            own = {case.prompt: case for case in group if case.agent == agent}
            for number, (label, raw) in enumerate(wanted.items(), before * len(wanted) + 1):
                case = own.get(label) or next(iter(own.values()))
                turn = case.turns[0] if case.turns else Turn(None)
                if label not in own or (isinstance(raw, str) and turn.text != raw):
                    kept = kept_beside(case)
                    for name in ("promptFunction", "promptConfig"):
                        kept.pop(name, None)
                    turns = [msgspec.structs.replace(turn, text=str(raw))]
                    case = msgspec.structs.replace(
                        case, prompt=label, turns=turns, options=own_options(case), beside=kept
                    )
                    case = msgspec.structs.replace(
                        case, case_id=_id_of(case), content_hash=identity.content_hash(case)
                    )
                case_id = ids.take(case.case_id)
                placed = msgspec.structs.replace(
                    case, case_id=case_id, order=len(result), column_number=number
                )
                result.append(placed)
    return result


def _by_test(cases: Sequence[Case]) -> list[list[Case]]:
    """The cases of each test (and combination of vars) together: one per column."""
    groups: list[list[Case]] = []
    last: Any = None
    seen: set[Any] = set()
    for case in cases:
        key = (case.line, case.name, identity.digest(case.vars))
        column = (case.agent, case.prompt)
        if key != last or column in seen:
            groups.append([])
            seen = set()
        groups[-1].append(case)
        seen.add(column)
        last = key
    return groups


def _id_of(case: Case) -> str:
    """The id of a case that a hook made from another of its column."""
    provider = (
        case.provider.get("label") or case.provider.get("id") if isinstance(case.provider, dict) else None
    )
    return identity.case_id(
        case.suite,
        case.description or None,
        variables=case.vars,
        provider=str(provider or case.agent or "agent"),
        prompt=case.prompt,
    )


HookName = Literal["beforeAll", "beforeEach", "afterEach", "afterAll"]
HOOKS: tuple[HookName, ...] = ("beforeAll", "beforeEach", "afterEach", "afterAll")

CHANGEABLE = names(
    "prompts providerPromptMap tests scenarios defaultTest nunjucksFilters derivedMetrics redteam"
)
"""The parts of a suite that `beforeAll` may replace."""

TIME_LIMIT = 300.0
"""Seconds that one hook may take: preparing a run can mean starting a server."""


class ExtensionHooks:
    """The hooks of one suite during a run, and the rows that `afterAll` is given.

    Python hooks keep their module's state from one call to the next, as do those of node.
    """

    def __init__(self, extensions: Sequence[str], base: Path, scene: HookScene) -> None:
        """
        Args:
            extensions: `Suite.settings["extensions"]`.
            base: the folder of the configuration.
        """
        self._extensions = list(extensions)
        self._base, self._config, self._trust = base, scene.config, scene.trust
        self._compat: Compat = scene.compat
        self._python, self._node = scene.processes.python, scene.processes.node
        self._rows: list[dict[str, Any]] = []
        # What a hook keeps in its module is there for the next, so all calls go to one process of each file's place.
        self._leases: dict[tuple[str, Path], Lease] = {}

    async def before_all(
        self, cases: Sequence[Case], settings: Mapping[str, Any]
    ) -> tuple[list[Case], dict[str, Any]]:
        """The cases and settings as `beforeAll` leaves them; call it before the cases are planned.

        A test that it changes is changed in every column, a test that it adds gets a case in every
        column, one that it takes out is not run.

        Raises:
            HookError: a hook fails.
            NeedsTrust: the folder is not trusted.
        """
        suite = suite_of(cases, settings)
        changed = await self._run("beforeAll", {"suite": suite})
        after = changed["suite"]
        kept = {**settings}
        for key in ("derivedMetrics", "nunjucksFilters"):
            if after.get(key) is not None:
                kept[key] = after[key]
        tests = after.get("tests")
        result = list(cases)
        if isinstance(tests, list):
            default = after.get("defaultTest")
            tests = [with_default(test, default) for test in tests] if default else tests
            if tests != suite["tests"]:
                result = with_tests(cases, tests, self._config, self._trust, self._compat)
        prompts = after.get("prompts")
        if isinstance(prompts, list) and prompts != suite["prompts"]:
            result = with_prompts(result, prompts, masker(self._config).text)
        return result, kept

    async def before_each(self, case: Case) -> Case:
        """The case as `beforeEach` leaves it, for one attempt.

        Raises:
            HookError, NeedsTrust: as `before_all`.
        """
        changed = await self._run("beforeEach", {"test": test_of(case)})
        return with_test(case, changed["test"], self._config, self._trust, self._compat)

    async def after_each(self, case: Case, attempt: Attempt) -> None:
        """Tell the hooks of a finished attempt, and add the named scores (finite numbers) and metadata that they give.

        Raises:
            HookError, NeedsTrust: as `before_all`.
        """
        row = row_of(case, attempt)
        self._rows.append(row)
        changed = (await self._run("afterEach", {"test": test_of(case), "result": dict(row)}))["result"]
        scores, metadata = mapping(changed.get("namedScores")), mapping(changed.get("metadata"))
        added = {str(name): float(score) for name, score in scores.items() if figures.is_finite(score)}
        attempt.named_scores = {**attempt.named_scores, **added}
        if attempt.replies and metadata != row["metadata"]:
            reply = attempt.replies[-1]
            reply.metadata = {**(reply.metadata or {}), **metadata}

    async def after_all(self, cases: Sequence[Case], settings: Mapping[str, Any]) -> None:
        """Tell the hooks that the run is over.

        Raises:
            HookError, NeedsTrust: as `before_all`.
        """
        context = {
            "suite": suite_of(cases, settings),
            "results": [dict(row) for row in self._rows],
            "prompts": [],
        }
        await self._run("afterAll", context)

    async def _run(self, hook: HookName, context: dict[str, Any]) -> dict[str, Any]:
        for extension in self._extensions:
            returned = await self._call(extension, hook, context)
            if not returned:
                continue
            if hook == "beforeAll":
                given = returned.get("suite") if isinstance(returned, dict) else None
                if not isinstance(given, dict):
                    raise HookError(f"{_shown(extension)} must return {{suite}} from beforeAll, or nothing")
                replaced = {key: given[key] for key in CHANGEABLE if key in given}
                context = {"suite": {**context["suite"], **replaced}}
            elif hook == "beforeEach":
                given = returned.get("test") if isinstance(returned, dict) else None
                if not isinstance(given, dict):
                    raise HookError(f"{_shown(extension)} must return {{test}} from beforeEach, or nothing")
                context = {"test": given}
            elif hook == "afterEach" and isinstance(returned, dict):
                given = returned.get("result")
                if isinstance(given, dict):
                    result = dict(context["result"])
                    for key in ("namedScores", "metadata"):
                        result[key] = {**(result.get(key) or {}), **mapping(given.get(key))}
                    context = {**context, "result": result}
        return context

    async def _call(self, extension: str, hook: HookName, context: dict[str, Any]) -> Any:
        from tui_eval.scripting.script_host import ScriptError

        found = HOOK.match(extension)
        if found is None:
            raise HookError(f"{extension} is not file://PATH:FUNCTION")
        path, name = found.groups()
        if name in HOOKS and name != hook:
            return None
        self._trust.require(script(self._base / path, self._config.root))
        file = confine(self._config.root, path, self._trust, self._base)
        arguments: list[Any] = [context, {"hookName": hook}] if name in HOOKS else [hook, context]
        try:
            if file.suffix == ".py":
                lease = self._lease(self._python, file)
                return (await self._python.call(file, name, arguments, timeout=TIME_LIMIT, lease=lease)).value
            lease = self._lease(self._node, file)
            answer = await self._node.call(
                file, name, arguments, timeout=TIME_LIMIT, cwd=self._base, lenient=True, lease=lease
            )
            return answer.value
        except ScriptError as error:
            raise HookError(f"{hook}: {_shown(extension)}: {error}") from None

    def _lease(self, host: PythonHost | NodeHost, file: Path) -> Lease:
        place = (host.language, file.parent)
        if place not in self._leases:
            self._leases[place] = host.lease("hooks", "hooks", renewed=True)
        return self._leases[place]


def _shown(extension: str) -> str:
    return extension.removeprefix("file://")


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
            "componentResults": components_of(case.asserted, attempt.verdicts),
        },
    }
    if not passed:
        row["error"] = attempt.error or attempt.message
    return row


# -- A case as a suite's code changed it: hooks see and give tests in promptfoo's words.


def with_test(case: Case, test: Any, config: Config, trust: Trust, compat: Compat = "documented") -> Case:
    """A case whose test was changed by code: vars, assertions, options, metadata, threshold, provider.

    Its id stays. What cannot be made sense of is among its problems.
    """
    if test == test_of(case):
        return case
    reading = SuiteReading(case.suite, config, trust, compat)
    read = TestReader(reading, case.suite, no_line).test(test, (), needs_some=False)
    if read is None:
        return msgspec.structs.replace(case, problems=[*case.problems, *reading.problems])
    kept = kept_beside(case)
    if read.scoring is not None:
        kept["assertScoringFunction"] = read.scoring
    provider = of_test(read.provider, reading)
    changed = msgspec.structs.replace(
        case,
        description=read.description or case.description,
        vars=read.vars,
        assertions=read.assertions,
        options=read.options or {},
        beside=kept,
        metadata=read.metadata or {},
        threshold=read.threshold,
        provider_output=read.provider_output if read.provider_output != "" else None,
        provider=provider.entry if provider else case.provider,
        agent=provider.name if provider else case.agent,
        problems=[*case.problems, *(p for p in read.problems if p.level == "error")],
    )
    changed.content_hash = identity.content_hash(changed)
    return changed
