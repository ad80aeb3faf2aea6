"""Why an assertion did not hold, shown in what the agent did: for the Assertions and Transcript tabs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.case.budget_lines import budget_lines
from tui_eval.tui.state.case.case_history import CasePast, budget_of
from tui_eval.tui.state.case.reply import reply_text
from tui_eval.tui.state.case.steps_explained import steps_explained
from tui_eval.tui.state.case.structure_evidence import field_lines, path_explained, structure_explained
from tui_eval.tui.state.case.text_evidence import nearest_line, text_explained
from tui_eval.tui.state.case.tool_comparison import tools_explained
from tui_eval.tui.state.case.tool_pairing import pair
from tui_eval.tui.state.lists.reason_words import COMPARED
from tui_eval.tui.state.text.json_lines import short
from tui_eval.tui.state.text.lines import Line, Span, one_line
from tui_eval.tui.state.text.value_difference import differing_lines

SAME = ("equals", "value", "levenshtein")
"""Assertions that want a value as it is."""
STRUCTURE = (
    "is-json", "contains-json", "is-xml", "contains-xml", "is-html", "contains-html", "is-sql", "contains-sql",
    "is-valid-openai-tools-call", "is-valid-openai-function-call", "is-valid-function-call",
)  # fmt: skip
"""Assertions on the form of a reply."""
OVERLAPPING = ("rouge-n", "bleu", "gleu", "meteor")
"""Assertions that count the words (and sequences of words) that two texts share."""
SHORT = 4
"""Lines that stand beside a turn."""


def explained(verdict: Verdict, attempt: Attempt, past: CasePast | None = None) -> Iterator[Line]:
    """What was looked for, in the reply, the calls or the numbers. Nothing where the verdict's own
    expected and actual say it all. May take long for long replies: call it in a thread."""
    kind = verdict.type.removeprefix("not-")
    reply = reply_text(attempt, verdict)
    if kind in STRUCTURE:
        yield from structure_explained(verdict)
        if kind.startswith("is-valid-") and verdict.passed is False:
            yield (Span("reply     ", "label"), Span(one_line(reply, 160), "muted"))
    elif budget_of(verdict.type) or budget_of(verdict.target):
        yield from budget_lines(verdict, past)
    elif kind.startswith("trajectory:") and isinstance(verdict.actual, list):
        yield from steps_explained(verdict)
    elif kind in ("tool-call-f1", "skill-used") and isinstance(verdict.actual, list):
        yield from _named(verdict)
    elif "tool" in verdict.type or verdict.target.split(".")[0] == "tools":
        yield from tools_explained(verdict, pair(attempt.transcript))
    elif verdict.target.split(".")[0] in ("sly_data", "structure", "metadata") and "." in verdict.target:
        yield from _path(verdict)
    elif kind in SAME:
        yield from _same(verdict, reply)
    elif kind in OVERLAPPING:
        yield from _overlap(verdict, reply)
    else:
        yield from text_explained(verdict, reply, attempt)


def in_short(verdict: Verdict, attempt: Attempt) -> Iterator[Line]:
    """The same in at most four lines, for the Transcript."""
    if verdict.passed is not False:
        return
    kind = verdict.type.removeprefix("not-")
    tools = "tool" in verdict.type or verdict.target.split(".")[0] == "tools"
    line = nearest_line(verdict, reply_text(attempt, verdict))
    if line is not None:
        yield line
    elif kind.startswith("trajectory:") or (tools and budget_of(verdict.type) is None):
        lines = explained(verdict, attempt)
        wrong = [one for one in lines if any(s.style in ("failed", "differs", "missing") for s in one)]
        yield from wrong[:SHORT]
    elif kind in ("is-json", "contains-json"):
        yield from list(explained(verdict, attempt))[:2]
    elif kind in SAME or kind in ("is-xml", "contains-xml", "is-sql", "contains-sql"):
        yield from list(explained(verdict, attempt))[:SHORT]


def _same(verdict: Verdict, reply: str) -> Iterator[Line]:
    """Where an expected value and the reply differ."""
    expected, actual = verdict.expected, verdict.actual
    if verdict.passed is not False or verdict.type.startswith(("not-", "not_")):
        return
    if isinstance(expected, dict | list):
        yield from field_lines(verdict.evidence or ())
        yield from structure_explained(verdict)
    elif isinstance(expected, str) and isinstance(actual, str):
        yield from differing_lines(expected, reply if reply.startswith(actual[:1000]) else actual)


def _overlap(verdict: Verdict, reply: str) -> Iterator[Line]:
    """Which of the expected words the reply has."""
    wanted = (
        verdict.expected[0] if isinstance(verdict.expected, list) and verdict.expected else verdict.expected
    )
    if not isinstance(wanted, str) or verdict.passed is not False:
        return
    said = set(re.findall(r"\w+", reply[:200_000].lower()))
    pieces = re.findall(r"\w+|\W+", one_line(wanted, 1_000))
    words = [piece for piece in pieces if re.match(r"\w", piece)]
    there = sum(word.lower() in said for word in words)
    yield (
        Span(
            f"{there} of {len(words)} expected words are in the reply of {len(reply.split()):,} words",
            "muted",
        ),
    )
    shown = (Span(p, "removed" if re.match(r"\w", p) and p.lower() not in said else "") for p in pieces)
    yield (Span("expected  ", "label"), *shown)


def _named(verdict: Verdict) -> Iterator[Line]:
    """Names that were wanted and names that were used."""
    expected = verdict.expected
    names = expected.split(",") if isinstance(expected, str) else expected
    if not isinstance(names, list):
        return
    wanted = [str(name).strip() for name in names]
    used = [str(name) for name in verdict.actual]
    verb = "called" if verdict.type.endswith("tool-call-f1") else "used"
    negated = verdict.type.startswith("not-")
    for name in wanted[:12]:
        there = name in used
        glyph = Span("✓ ", "passed") if there != negated else Span("✗ ", "failed")
        yield (
            glyph,
            Span(one_line(name, 60), "strong"),
            Span(f" was {'' if there else 'not '}{verb}", "muted"),
        )
    extra = [name for name in used if name not in wanted]
    if extra:
        names_shown = ", ".join(one_line(name, 40) for name in extra[:8])
        style = "differs" if verb == "called" else "muted"
        yield (Span("+ ", style), Span(names_shown, style), Span(f" {verb}, not asked for", "muted"))


def _path(verdict: Verdict) -> Iterator[Line]:
    """The value at the dotted path that an assertion names, or how far the path leads."""
    pieces = verdict.evidence or ()
    if not pieces or any(one.code == "none" for one in pieces):
        yield from path_explained(verdict)
        return
    expected = verdict.expected
    here = pieces[0].actual if verdict.actual is None else verdict.actual
    if verdict.passed is False and isinstance(expected, dict | list) and isinstance(here, dict | list):
        yield from field_lines(pieces)
    elif verdict.passed is False and isinstance(expected, str) and isinstance(here, str) and _long(here):
        yield from differing_lines(expected, here)
    elif verdict.passed or verdict.type not in COMPARED or verdict.actual is None:
        yield (Span(one_line(verdict.target, 200), "json-key"), Span(" is ", "muted"), Span(short(here, 200)))


def _long(value: Any) -> bool:
    return len(value) > 60 or "\n" in value


def explanations(attempt: Attempt) -> dict[int, tuple[Line, ...]]:
    """What `explained` says of every verdict but budgets (whose usual range is read later), by place; what takes
    long is done here, in a thread."""
    found: dict[int, tuple[Line, ...]] = {}
    for index, verdict in enumerate(attempt.verdicts):
        if budget_of(verdict.type) is None and budget_of(verdict.target) is None:
            found[index] = tuple(explained(verdict, attempt))
    return found
