"""What `check` says of what promptfoo tests name and no answer mends: files that are not there, templates that cannot
be rendered, values that an assertion cannot be judged with. Nothing of a suite's own code is run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import UNSET

from tui_eval.formats.promptfoo.promptfoo_words import beside
from tui_eval.guard.paths import confine
from tui_eval.guard.text import clip
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.javascript import values as js
from tui_eval.model import OWN_JUDGES, Assertion, Case, Problem, Reply, Suite

_FILE = "file://"
_OF_OPTIONS = ("transform", "postprocess", "rubricPrompt")
_JUDGED_BY_VALUE = frozenset(
    {
        "contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all", "starts-with",
        "word-count", "latency", "cost",
    }
)  # fmt: skip
"""Types of which a reply without a text decides whether they can be judged at all."""
_NO_VALUE = "needs a text to look for, and there is none"
_SIMPLE = re.compile(r"\{\{\s{0,20}[\w.]{1,200}\s{0,20}\}\}")


def broken_values(suite: Suite, root: Path) -> Iterator[Problem]:
    """An error for each value of a test that will err whatever is answered, each said once, and a note for each prompt
    into which nothing is filled."""
    checks = _Checks(root, (root / suite.path).parent, "nunjucksFilters" in suite.settings)
    yield from dict.fromkeys(problem for case in suite.cases for problem in checks.of(case))


class _Checks:
    """Those of one suite; each text is looked at once."""

    def __init__(self, root: Path, base: Path, own_filters: bool) -> None:
        self._root = root
        self._base = base
        self._own_filters = own_filters
        self._there: dict[str, bool] = {}
        self._faults: dict[str, str | None] = {}
        self._as_they_are: set[str] = set()

    def of(self, case: Case) -> Iterator[Problem]:
        path, line = case.path, case.line
        for key, value in [
            *((f"vars.{name}", value) for name, value in case.vars.items()),
            *((f"options.{name}", case.options.get(name)) for name in _OF_OPTIONS),
            ("assertScoringFunction", beside(case, "assertScoringFunction")),
        ]:
            for text in _parts(value) if key == "options.rubricPrompt" else (value,):
                if (missing := self._missing(text)) is not None:
                    yield _no_file(path, line, key, missing)
        yield from self._rubric(case.options.get("rubricPrompt"), path, line, "options")
        if not self._own_filters:
            for turn in case.turns:
                if turn.text and (fault := self._template(turn.text)):
                    yield Problem(path, line, "prompts", f"cannot be rendered: {fault}", "mend the template")
                elif turn.text and turn.text not in self._as_they_are and _is_open(turn.text):
                    self._as_they_are.add(turn.text)
                    message = f"{clip(turn.text, 60)} is sent as it stands, as by promptfoo: a tag is not closed on its line"
                    yield Problem(
                        path, line, "prompts", message, "close it, or write no {{ there", level="note"
                    )
        for one in case.assertions:
            yield from self._assertion(one, path, one.line or line)
            if _unseen(one, case):
                message = "its rubricPrompt has no place for the answer: the judge does not see it"
                yield Problem(
                    path, one.line or line, one.type, message, "write {{output}} into it", level="note"
                )

    def _rubric(self, prompt: Any, path: str, line: int, key: str) -> Iterator[Problem]:
        """Faults of a `rubricPrompt`'s own templates."""
        if prompt and not isinstance(prompt, str | list | dict):
            message = f"its rubricPrompt must be a text, not {clip(js.json_text(prompt), 60)}"
            yield Problem(path, line, key, message, "write the question to the judge there")
        for text in _parts(prompt):
            if (
                isinstance(text, str)
                and not text.startswith(_FILE)
                and (fault := self._template(text, whole=True))
            ):
                message = f"its rubricPrompt cannot be rendered: {fault}"
                yield Problem(path, line, key, message, f"mend {clip(text, 60)}")

    def _assertion(self, one: Assertion, path: str, line: int) -> Iterator[Problem]:
        from tui_eval.formats.promptfoo.judge.judge_assertion import why_not_here
        from tui_eval.formats.promptfoo.judge.registry import COLUMNS

        value = one.value
        named = [
            *(value if isinstance(value, list) else [value]),
            one.transform,
            *_parts((one.extra or {}).get("rubricPrompt")),
        ]
        missing = [gone for text in named if (gone := self._missing(text)) is not None]
        yield from (_no_file(path, line, one.type, gone) for gone in dict.fromkeys(missing))
        yield from self._rubric((one.extra or {}).get("rubricPrompt"), path, line, one.type)
        kind = one.type.removeprefix("not-")
        if kind not in COLUMNS and (never := why_not_here(one.type, kind)):
            yield Problem(path, line, one.type, never, "leave it out: its case is an error")
            return
        texts = [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
        if any(text.startswith(_FILE) for text in texts):
            return
        if any("{{" in text or "{%" in text for text in texts):
            for text in texts if kind not in OWN_JUDGES else ():
                if fault := self._template(text, whole=True):
                    yield Problem(
                        path, line, one.type, f"cannot be rendered: {fault}", f"mend {clip(text, 60)}"
                    )
            return
        if why := unjudgeable_value(one):
            yield Problem(path, line, one.type, why, _cure(kind))

    def _missing(self, value: Any) -> str | None:
        """The path that a text names with `file://` and that is not there; None for all else."""
        from tui_eval.formats.promptfoo.judge.expected_values import split_reference

        if not isinstance(value, str) or not value.startswith(_FILE) or "{{" in value or "*" in value:
            return None
        named = split_reference(value)[0].strip()
        if named not in self._there:
            try:
                self._there[named] = confine(self._root, named, Trust(), self._base).exists()
            except (NeedsTrust, OSError, ValueError):
                self._there[named] = True  # what lies outside is not looked at
        return None if self._there[named] else named

    def _template(self, text: str, whole: bool = False) -> str | None:
        """Why a template cannot be rendered, whatever its variables are. `whole`: an open tag is a fault."""
        from tui_eval.nunjucks import templates

        if text not in self._faults:
            self._faults[text] = None
            left = _SIMPLE.sub("", text)
            if ("{{" in left or "{%" in left) and not templates.templating_disabled():
                still_open = templates.is_partial(text)
                if whole or not still_open:
                    fault = templates.fault(text)
                    self._faults[text] = "a tag is not closed" if fault and still_open else fault
        return self._faults[text]


def _parts(prompt: Any) -> list[Any]:
    """A `rubricPrompt`, or those of its questions (`{steps, evaluate}`, a list)."""
    if isinstance(prompt, dict):
        return list(prompt.values())
    return prompt if isinstance(prompt, list) else [prompt]


_ANSWER = re.compile(r"\{[{%][^{}%]*\b(?:output|completion|answer)\b")
_SEE_THE_ANSWER = frozenset(
    ("llm-rubric", "agent-rubric", "search-rubric", "factuality", "model-graded-factuality", "model-graded-closedqa")
)  # fmt: skip


def _unseen(one: Assertion, case: Case) -> bool:
    """Whether the judge is asked without what it is to judge."""
    prompt = (one.extra or {}).get("rubricPrompt") or case.options.get("rubricPrompt")
    if one.type.removeprefix("not-") not in _SEE_THE_ANSWER or not isinstance(prompt, str | list | dict):
        return False
    text = prompt if isinstance(prompt, str) else js.json_text(prompt)
    return bool(prompt) and "file://" not in text and _ANSWER.search(text) is None


def _is_open(prompt: str) -> bool:
    from tui_eval.nunjucks import templates

    return "{" in prompt and not templates.templating_disabled() and templates.is_partial(prompt)


def unjudgeable_value(one: Assertion) -> str | None:
    """Why an assertion cannot be judged with its value or threshold, whatever is answered."""
    from tui_eval.assertions.judge_input import CannotJudge, JudgeInput
    from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall
    from tui_eval.formats.promptfoo.judge.registry import check_for

    kind = one.type.removeprefix("not-")
    if kind == "regex":
        return None if isinstance(one.value, str) and one.value else _NO_VALUE
    if kind not in _JUDGED_BY_VALUE:
        return None
    call = AssertionCall(
        assertion=one,
        evidence=JudgeInput(Case(case_id="", name="", suite="", format="promptfoo")),
        kind=kind,
        inverse=one.type != kind,
        output="",
        text="",
        value=one.value,
        reply=Reply(turn=1, text="", cost=0.0, latency_ms=0.0),
    )
    try:
        judge = check_for(kind)
        assert judge is not None
        judge(call)
    except CannotJudge as error:
        none = one.value is UNSET or one.value is None or one.value == ""
        return (
            _NO_VALUE
            if none and kind not in ("latency", "cost")
            else str(error).removeprefix("Invariant failed: ")
        )
    except Exception:
        return None  # what a real answer brings about is said when it is there
    return None


def _cure(kind: str) -> str:
    return "write `threshold:`" if kind in ("latency", "cost") else "write it as `value:`"


def _no_file(path: str, line: int, key: str, named: str) -> Problem:
    return Problem(
        path, line, key, f"there is no file {named}", "paths are relative to the configuration's folder"
    )
