"""`extensions`: people's code before and after a run and each of its tests (formats/promptfoo.md 1.1).

An entry is `file://path:function`. A function called like one of the four hooks runs for that hook alone, as
`function(context, {hookName})`; any other runs for all of them, as `function(hookName, context)`, and so
does, where none is named, what the file exports (in Python `get_transform`). What `beforeAll` and
`beforeEach` return replaces the parts of their context that may change; nothing returned leaves them, but for
what a JavaScript hook has changed in place, as promptfoo calls it in its own process; `afterEach` may add
named scores and metadata. Extensions run one after the other, each with what the ones before it made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tui_eval.config.project import masker
from tui_eval.formats.format import COLUMNS, HookError, HookScene
from tui_eval.formats.promptfoo.promptfoo_words import (
    components_of,
    kept_beside,
    mapping,
    told_test,
    without_none,
)
from tui_eval.formats.promptfoo.read.promptfoo_config import HOOK
from tui_eval.formats.promptfoo.read.promptfoo_types import names
from tui_eval.formats.promptfoo.run.hooked_suite import suite_of, with_prompts, with_test, with_tests
from tui_eval.guard import figures
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import script
from tui_eval.model import Attempt, Case, Compat, Usage
from tui_eval.scripting import suite_variables, suite_variables_of

if TYPE_CHECKING:
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost
    from tui_eval.scripting.script_host import Lease


HookName = Literal["beforeAll", "beforeEach", "afterEach", "afterAll"]
HOOKS: tuple[HookName, ...] = ("beforeAll", "beforeEach", "afterEach", "afterAll")

CHANGEABLE = names(
    "prompts providerPromptMap tests scenarios defaultTest nunjucksFilters derivedMetrics redteam"
)
"""The parts of a suite that `beforeAll` may replace."""

_OF_THE_ENVIRONMENT = ("env", "env_file", "env_unread", "env_left", "env_code")
CONTEXT_OF: dict[HookName, str] = {
    "beforeAll": "suite",
    "beforeEach": "test",
    "afterEach": "result",
    "afterAll": "suite",
}
"""What a hook may change, in its context."""

TIME_LIMIT = 300.0
"""Seconds that one hook may take: preparing a run can mean starting a server."""


class ExtensionHooks:
    """The hooks of one suite during a run, and the rows that `afterAll` is given.

    Python hooks keep their module's state from one call to the next, as do those of node.
    """

    def __init__(
        self, extensions: Sequence[str], base: Path, scene: HookScene, settings: Mapping[str, Any]
    ) -> None:
        """
        Args:
            extensions: `Suite.settings["extensions"]`.
            base: the folder of the configuration.
            settings: `Suite.settings`.
        """
        self._extensions = list(extensions)
        self._variables = suite_variables_of(settings, scene.trust)
        self._base, self._config, self._trust = base, scene.config, scene.trust
        self._compat: Compat = scene.compat
        self._scene = scene
        self._python, self._node = scene.processes.python, scene.processes.node
        self._rows: dict[tuple[str, str, str | None, int], dict[str, Any]] = {}
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
        others = kept.pop(COLUMNS, ())
        for key in ("derivedMetrics", "nunjucksFilters"):
            if after.get(key) is not None:
                kept[key] = after[key]
        result = list(cases)
        same = all(after.get(key) == suite[key] for key in ("tests", "defaultTest", "scenarios"))
        if isinstance(after.get("tests"), list) and not same:
            repeat = mapping(settings.get("evaluateOptions")).get("repeat")
            result = with_tests(cases, suite, after, repeat, self._scene, others)
        prompts = after.get("prompts")
        if isinstance(prompts, list) and prompts != suite["prompts"]:
            result = with_prompts(result, prompts, masker(self._config).text)
        return result, kept

    async def before_each(self, case: Case) -> Case:
        """The case as `beforeEach` leaves it, for one attempt.

        Raises:
            HookError, NeedsTrust: as `before_all`.
        """
        changed = await self._run("beforeEach", {"test": told_test(case)})
        return with_test(case, changed["test"], self._config, self._trust, self._compat)

    async def after_each(self, case: Case, attempt: Attempt) -> None:
        """Tell the hooks of a finished attempt, and add the named scores (finite numbers) and metadata that they give.

        Raises:
            HookError, NeedsTrust: as `before_all`.
        """
        row = self._rows[_place(attempt)] = row_of(case, attempt)
        changed = (await self._run("afterEach", {"test": told_test(case), "result": dict(row)}))["result"]
        scores, metadata = mapping(changed.get("namedScores")), mapping(changed.get("metadata"))
        added = {str(name): float(score) for name, score in scores.items() if figures.is_finite(score)}
        attempt.named_scores = {**attempt.named_scores, **added}
        row["namedScores"], row["metadata"] = attempt.named_scores, metadata
        if attempt.replies and metadata != case.metadata:
            reply = attempt.replies[-1]
            reply.metadata = {**(reply.metadata or {}), **metadata}

    def counted(self, case: Case, attempt: Attempt) -> None:
        """Take in what an attempt came to: one of before the run was gone on with, or whose columns were compared."""
        row = row_of(case, attempt)
        known = self._rows.get(_place(attempt), row)
        judged = {name: row[name] for name in _JUDGED if name in row}
        self._rows[_place(attempt)] = {name: known[name] for name in known if name not in _JUDGED} | judged

    async def after_all(self, cases: Sequence[Case], settings: Mapping[str, Any], evaluation: str) -> None:
        """Tell the hooks that the run, an `evaluation` in the tool's words, is over.

        Raises:
            HookError, NeedsTrust: as `before_all`.
        """
        suite = suite_of(cases, settings)
        given = {
            key: value for key, value in settings.items() if key not in _OF_THE_ENVIRONMENT and key != COLUMNS
        }
        context = {
            "suite": suite,
            "results": [dict(row) for row in self._rows.values()],
            "prompts": summed([*self._rows.values()], suite["prompts"]),
            "evalId": evaluation,
            "config": {**given, **{key: suite[key] for key in ("prompts", "providers", "tests")}},
        }
        await self._run("afterAll", context)

    async def _run(self, hook: HookName, context: dict[str, Any]) -> dict[str, Any]:
        for extension in self._extensions:
            returned, context = await self._call(extension, hook, context)
            if not isinstance(context.get(CONTEXT_OF[hook]), dict):
                raise HookError(f"{_shown(extension)} leaves no {CONTEXT_OF[hook]} in its context")
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

    async def _call(
        self, extension: str, hook: HookName, context: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """What a hook returns, and its context as it has left it."""
        from tui_eval.scripting.script_host import ScriptError, held

        found = HOOK.match(extension)
        if found is None:
            raise HookError(f"{extension} is not file://PATH:FUNCTION")
        path, name = found.groups()
        if name in HOOKS and name != hook:
            return None, context
        self._trust.require(script(self._base / path, self._config.root))
        file = confine(self._config.root, path, self._trust, self._base)
        arguments: list[Any] = [context, {"hookName": hook}] if name in HOOKS else [hook, context]
        adding = suite_variables.set(self._variables)
        try:
            if file.suffix == ".py":
                lease = self._lease(self._python, file)
                function = name or "get_transform"  # promptfoo's name where none is given
                told = await self._python.call(file, function, arguments, timeout=TIME_LIMIT, lease=lease)
                return held(told.value), context
            lease = self._lease(self._node, file)
            kept = "" if hook == "afterAll" else CONTEXT_OF[hook]  # nothing comes after it
            told = await self._node.call(
                file,
                name or "",
                arguments,
                timeout=TIME_LIMIT,
                cwd=self._base,
                lenient=True,
                lease=lease,
                changed=kept,
            )
            if not kept:
                return told.value, context
            return told.value.get("returned"), {**context, kept: told.value.get("changed")}
        except ScriptError as error:
            raise HookError(f"{hook}: {_shown(extension)}: {error}") from None
        finally:
            suite_variables.reset(adding)

    def _lease(self, host: PythonHost | NodeHost, file: Path) -> Lease:
        place = (host.language, file.parent)
        if place not in self._leases:
            self._leases[place] = host.lease("hooks", "hooks", renewed=True)
        return self._leases[place]


def _shown(extension: str) -> str:
    return extension.removeprefix("file://")


_JUDGED = "success", "score", "namedScores", "failureReason", "gradingResult", "error"
"""What of a row is known only once its columns are compared."""


def _place(attempt: Attempt) -> tuple[str, str, str | None, int]:
    """Which row of a run an attempt is."""
    return attempt.case_id, attempt.agent, attempt.model, attempt.attempt


def row_of(case: Case, attempt: Attempt) -> dict[str, Any]:
    """An attempt as a row in promptfoo's words (formats/promptfoo.md 11)."""
    passed = attempt.outcome == "passed"
    output = attempt.output if attempt.output is not None else attempt.response_text
    reply = attempt.replies[-1] if attempt.replies else None
    entry = mapping(kept_beside(case).get("columnProvider") or case.provider)
    usage, latency = _tokens(case, attempt), (reply.latency_ms if reply else None) or attempt.duration_ms or 0
    response = {
        "output": output,
        "metadata": (reply.metadata if reply else None) or {},
        "tokenUsage": usage,
        "cost": attempt.cost or 0,
        "cached": attempt.cached > 0,
        "latencyMs": latency,
        "finishReason": reply.finish_reason if reply else None,
    }
    row: dict[str, Any] = {
        "description": case.description or None,
        "prompt": {"raw": attempt.prompt_sent or "", "label": case.prompt or ""},
        "promptId": "",
        "promptIdx": max(case.column_number - 1, 0),
        "testIdx": max(case.test_number - 1, 0),
        "testCase": told_test(case),
        "provider": {
            "id": entry.get("id") or attempt.agent,
            "label": entry.get("label") or case.column or attempt.agent,
        },
        "vars": attempt.vars or case.vars,
        "response": without_none(response),
        "success": passed,
        "score": attempt.score,
        "namedScores": attempt.named_scores,
        "failureReason": 0 if passed else 1 if attempt.outcome == "failed" else 2,
        "latencyMs": latency,
        "cost": attempt.cost or 0,
        "tokenUsage": usage,
        "metadata": case.metadata,
        "gradingResult": {
            "pass": passed,
            "score": attempt.score,
            "reason": attempt.message,
            "namedScores": attempt.named_scores,
            "namedScoreWeights": attempt.named_weights,
            "componentResults": components_of(case.asserted, attempt.verdicts),
        },
    }
    if not passed:
        row["error"] = attempt.error or attempt.message
    return row


def _tokens(case: Case, attempt: Attempt) -> dict[str, int]:
    used = attempt.usage or Usage()
    prompt, completion = used.input_tokens or 0, used.output_tokens or 0
    return {
        "total": figures.tokens(prompt, completion) or 0,
        "prompt": prompt,
        "completion": completion,
        "cached": used.cached_tokens or 0,
        "numRequests": 0 if case.provider_output else len(attempt.replies),
    }


def summed(rows: Sequence[dict[str, Any]], prompts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The columns of the rows with their sums, as promptfoo has them."""
    raws = {one["label"]: one["raw"] for one in prompts}
    found: dict[int, dict[str, Any]] = {}
    for row in sorted(rows, key=lambda row: row["promptIdx"]):
        label, provider = row["prompt"]["label"], row["provider"]
        column = {"raw": raws.get(label, label), "label": label, "provider": provider["label"]}
        metrics = found.setdefault(row["promptIdx"], {**column, "metrics": _no_sums()})["metrics"]
        kind = ("testPassCount", "testFailCount", "testErrorCount")[row["failureReason"]]
        parts = row["gradingResult"]["componentResults"] if row["failureReason"] != 2 else []
        passed = sum(part.get("pass") is True for part in parts)
        # Of an error only what it took counts.
        score, named = (0, {}) if row["failureReason"] == 2 else (row["score"], row["namedScores"])
        more = {"score": score, kind: 1, "totalLatencyMs": row["latencyMs"], "cost": row["cost"]}
        more |= {"assertPassCount": passed, "assertFailCount": len(parts) - passed}
        for name, number in more.items():
            metrics[name] += number
        given = mapping(row["gradingResult"].get("namedScoreWeights"))
        weights = {name: given.get(name, 1) for name in named}
        weighted = {name: value * weights[name] for name, value in named.items()}
        for name, sums in (
            ("namedScores", weighted),
            ("namedScoreWeights", weights),
            ("tokenUsage", row["tokenUsage"]),
        ):
            for key, number in sums.items():
                metrics[name][key] = metrics[name].get(key, 0) + number
    return list(found.values())


def _no_sums() -> dict[str, Any]:
    counts = (
        "score testPassCount testFailCount testErrorCount assertPassCount assertFailCount totalLatencyMs cost"
    )
    return {**dict.fromkeys(counts.split(), 0), "namedScores": {}, "namedScoreWeights": {}, "tokenUsage": {}}
