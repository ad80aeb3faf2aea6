"""Why an assertion did not hold, shown in what the agent did: for the Assertions and Transcript tabs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.case.budget_lines import budget_lines
from tui_eval.tui.state.case.case_history import CasePast, budget_of
from tui_eval.tui.state.case.json_explained import (
    BROKEN_SCHEMA,
    follow,
    json_explained,
    not_json,
    xml_explained,
)
from tui_eval.tui.state.case.reply import reply_text
from tui_eval.tui.state.case.sql_explained import sql_explained
from tui_eval.tui.state.case.steps_explained import steps_explained
from tui_eval.tui.state.case.text_evidence import nearest_line, text_explained
from tui_eval.tui.state.case.tool_comparison import tools_explained
from tui_eval.tui.state.case.tool_pairing import pair
from tui_eval.tui.state.lists.reason_words import COMPARED
from tui_eval.tui.state.text.json_lines import parsed, short
from tui_eval.tui.state.text.lines import Line, Span, one_line
from tui_eval.tui.state.text.value_difference import differing_fields, differing_lines, judged_same

SAME = ("equals", "value", "levenshtein")
"""Assertions that want a value as it is."""
OVERLAPPING = ("rouge-n", "bleu", "gleu", "meteor")
"""Assertions that count the words (and sequences of words) that two texts share."""
SHORT = 4
"""Lines that stand beside a turn."""


def explained(verdict: Verdict, attempt: Attempt, past: CasePast | None = None) -> Iterator[Line]:
    """What was looked for, in the reply, the calls or the numbers. Nothing where the verdict's own
    expected and actual say it all. May take long for long replies: call it in a thread."""
    kind = verdict.type.removeprefix("not-")
    reply = reply_text(attempt, verdict)
    if kind in ("is-json", "contains-json"):
        yield from json_explained(verdict, reply)
    elif kind in ("is-xml", "contains-xml"):
        yield from xml_explained(verdict, reply)
    elif kind in ("is-sql", "contains-sql"):
        yield from sql_explained(verdict, reply)
    elif budget_of(verdict.type) or budget_of(verdict.target):
        yield from budget_lines(verdict, past)
    elif kind.startswith("trajectory:") and isinstance(verdict.actual, list):
        yield from steps_explained(verdict)
    elif kind in ("tool-call-f1", "skill-used") and isinstance(verdict.actual, list):
        yield from _named(verdict)
    elif kind.startswith("is-valid-"):
        yield from _calls_in_text(verdict, reply)
    elif "tool" in verdict.type or verdict.target.split(".")[0] == "tools":
        yield from tools_explained(verdict, pair(attempt.transcript))
    elif verdict.target.split(".")[0] in ("sly_data", "structure", "metadata") and "." in verdict.target:
        yield from _path(verdict, attempt)
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
    elif BROKEN_SCHEMA.search(verdict.reason) or kind == "is-json":
        yield from list(explained(verdict, attempt))[:2]
    elif kind in SAME or kind in ("is-xml", "contains-xml", "is-sql", "contains-sql"):
        yield from list(explained(verdict, attempt))[:SHORT]


def _same(verdict: Verdict, reply: str) -> Iterator[Line]:
    """Where an expected value and the reply differ."""
    expected, actual = verdict.expected, verdict.actual
    if verdict.passed is not False or verdict.type.startswith(("not-", "not_")):
        return
    if isinstance(expected, dict | list):
        # a verdict keeps only the beginning of a long text
        value = parsed(reply if isinstance(actual, str) and reply.startswith(actual[:1000]) else actual)
        if isinstance(value, dict | list):
            yield from differing_fields(expected, value, same=judged_same(verdict.type))
        elif isinstance(value, str) and value == reply:
            yield from not_json(reply)
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


def _calls_in_text(verdict: Verdict, reply: str) -> Iterator[Line]:
    """A call that is text is none for these assertions."""
    if verdict.passed is False and "valid-looking" in verdict.reason:
        if isinstance(parsed(reply), dict | list):
            yield (
                Span(
                    "the reply is a text with JSON in it: only calls that the provider reports count", "note"
                ),
            )
        else:
            yield (Span("the reply is text: the agent called nothing", "note"),)
        yield (Span("reply     ", "label"), Span(one_line(reply, 160), "muted"))


def _path(verdict: Verdict, attempt: Attempt) -> Iterator[Line]:
    """The dotted path that an assertion names, followed as far as the reply has it."""
    part, _, rest = verdict.target.partition(".")
    reply = next((r for r in reversed(attempt.replies) if verdict.turn in (None, r.turn)), None)
    value = getattr(reply, part, None) if reply is not None else None
    if not isinstance(value, dict):
        yield (Span(f"the reply has no {part}", "note"),)
        return
    keys = rest.split(".")
    here, reached = follow(value, keys)
    shown = Span(part + "".join(f".{one_line(key, 60)}" for key in keys[:reached]), "json-key")
    if reached == len(keys):
        expected = verdict.expected
        if verdict.passed is False and isinstance(expected, dict | list) and isinstance(here, dict | list):
            yield from differing_fields(expected, here)
        elif verdict.passed is False and isinstance(expected, str) and isinstance(here, str) and _long(here):
            yield from differing_lines(expected, here)
        elif verdict.passed or verdict.type not in COMPARED or verdict.actual is None:
            yield (shown, Span(" is ", "muted"), Span(short(here, 200)))
        return
    missing = one_line(keys[reached], 60)
    if not isinstance(here, dict):
        yield (shown, Span(f" is {short(here, 80)}, without a {missing}", "note"))
        return
    names = [one_line(name, 40) for name in list(here)[:8]]
    more = f" and {len(here) - 8} more" if len(here) > 8 else ""
    yield (
        shown,
        Span(f" has no {missing}", "failed"),
        Span(f"; it has {', '.join(names) or 'nothing'}{more}", "muted"),
    )


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
