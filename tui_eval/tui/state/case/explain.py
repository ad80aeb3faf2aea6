"""Why an assertion did not hold, drawn from the evidence of who judged it: for the Assertions and Transcript tabs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tui_eval.guard.spelling import some_of
from tui_eval.model import Attempt, Evidence, Verdict
from tui_eval.tui.state.case.calls_evidence import calls_explained, calls_of
from tui_eval.tui.state.case.case_history import CasePast, budget_of, usual
from tui_eval.tui.state.case.expectation_marks import judged_text, reply_text, text_pieces
from tui_eval.tui.state.case.text_evidence import nearest_line, text_explained
from tui_eval.tui.state.case.tool_pairing import pair
from tui_eval.tui.state.text.formatting import cost, duration
from tui_eval.tui.state.text.json_lines import short
from tui_eval.tui.state.text.lines import Line, Mark, Span, marked, one_line
from tui_eval.tui.state.text.text_difference import differing_lines

FIELDS = ("differs", "absent-field", "extra-field", "compared")
SHORT = 4
"""Lines that stand beside a turn."""
_WRONG = ("failed", "differs", "missing")


def explained(verdict: Verdict, attempt: Attempt, past: CasePast | None = None) -> Iterator[Line]:
    """What was looked for, in the reply, the calls or the numbers. Nothing where the verdict's own expected and
    actual say it all, or in older runs. May take long for long replies: call it in a thread."""
    if budget_of(verdict.type) or budget_of(verdict.target):
        yield from budget_lines(verdict, past)
        return
    pieces = verdict.evidence or []
    reply = reply_text(attempt, verdict)
    if calls_of(verdict):
        yield from calls_explained(verdict, pair(attempt.transcript))
    elif any(one.code in _STRUCTURE for one in pieces):
        yield from _structure(verdict)
        if any(one.code in ("no-call", "bad-call") for one in pieces):
            yield (Span("reply     ", "label"), Span(one_line(reply, 160), "muted"))
    elif any(one.code == "none" for one in pieces):
        yield from _path(verdict)
    elif any(one.code in FIELDS for one in pieces):
        yield from _fields(verdict, pieces, reply)
    elif any(one.kind == "field" and "." in one.path for one in pieces):
        for one in pieces[:1]:
            value = Span(short(one.actual if verdict.actual is None else verdict.actual, 200))
            yield (Span(one_line(one.path, 200), "json-key"), Span(" is ", "muted"), value)
    elif (words := next((one for one in pieces if one.code == "words"), None)) is not None:
        yield from _overlap(verdict, words, reply)
    else:
        yield from text_explained(verdict, reply, attempt)


def in_short(verdict: Verdict, attempt: Attempt) -> Iterator[Line]:
    """The same in at most four lines, for the Transcript."""
    if verdict.passed is not False:
        return
    reply = reply_text(attempt, verdict)
    judged = judged_text(verdict, reply) if text_pieces(verdict) else reply
    line = nearest_line(verdict, reply, attempt)
    if judged is not reply:  # a transform came in between: what is looked at is no reply that can be seen
        yield (Span("judged  ", "muted"), Span(one_line(judged, 200)))
    if line is not None:
        yield line
    elif calls_of(verdict):
        lines = explained(verdict, attempt)
        yield from [one for one in lines if any(span.style in _WRONG for span in one)][:SHORT]
    elif any(one.code in _STRUCTURE or one.code in FIELDS for one in verdict.evidence or ()):
        yield from list(explained(verdict, attempt))[:SHORT]


def _fields(verdict: Verdict, pieces: list[Evidence], reply: str) -> Iterator[Line]:
    """Where an expected value and what is there differ: texts word by word, anything else by path."""
    expected, actual = verdict.expected, verdict.actual
    if verdict.passed is not False:
        return
    if isinstance(expected, str) and isinstance(actual, str) and (len(actual) > _LONG or "\n" in actual):
        yield from differing_lines(expected, reply if reply.startswith(actual[:1000]) else actual)
    elif isinstance(expected, dict | list) or len(pieces) > 1 or actual is None:
        yield from _field_lines(pieces)
    elif isinstance(expected, str) and isinstance(actual, str) and not pieces[0].path.strip("$"):
        yield from differing_lines(expected, actual)


_LONG = 60


def _overlap(verdict: Verdict, words: Evidence, reply: str) -> Iterator[Line]:
    """Which of the expected words the reply lacks."""
    if verdict.passed is not False:
        return
    said = (
        f"{words.actual} of {words.expected} expected words are in the reply of {len(reply.split()):,} words"
    )
    yield (Span(said, "muted"),)
    if words.text:
        yield (Span("missing   ", "label"), Span(one_line(words.text, 1_000), "removed"))


def explanations(attempt: Attempt) -> dict[int, tuple[Line, ...]]:
    """What `explained` says of every verdict but budgets (whose usual range is read later), by place; what takes
    long is done here, in a thread."""
    found: dict[int, tuple[Line, ...]] = {}
    for index, verdict in enumerate(attempt.verdicts):
        if budget_of(verdict.type) is None and budget_of(verdict.target) is None:
            found[index] = tuple(explained(verdict, attempt))
    return found


# -- The form of a reply: where it stops being JSON, XML or SQL, which value breaks which rule of a schema,
# which element a path does not find. Nothing is parsed here: the judge says it all.

_AROUND = 30
"""Characters of a line that a judge keeps before a place (`assertions.evidence`)."""
_WIDE = 8
_NAMES = 8
_IS = {
    "is-json": "the reply is JSON", "has-json": "there is JSON in the reply", "is-xml": "the reply is XML",
    "has-xml": "there is XML in the reply", "is-html": "the reply is HTML", "has-html": "there is HTML in the reply",
    "is-sql": "the reply is SQL", "schema-held": "the JSON fits the schema",
}  # fmt: skip


_STRUCTURE = (*_IS, "schema", "not-json", "not-xml", "not-sql", "no-element", "no-call", "bad-call")
"""Codes of evidence on the form of a reply."""


def _structure(verdict: Verdict) -> Iterator[Line]:
    """What a verdict on JSON, XML, HTML, SQL or a path says of the reply; nothing for others."""
    if verdict.passed is not False:
        return
    for one in verdict.evidence or ():
        if one.code in _IS:
            yield (Span("✗ ", "failed"), Span(_IS[one.code]))
        elif one.code == "schema":
            yield from _schema(one)
        elif one.code in ("not-json", "not-xml"):
            yield from _broken(one, "no JSON from line" if one.code == "not-json" else "")
        elif one.code == "not-sql":
            yield from _statement(one)
        elif one.code == "no-element" or (one.kind == "match" and one.path and one.code == "holds"):
            yield _element(one)
        elif one.code == "no-call":
            yield from _no_call(one)


def _schema(one: Evidence) -> Iterator[Line]:
    yield (Span(f"{'at':<{_WIDE}}", "label"), Span(one_line(one.path, 200), "json-key"))
    yield (Span(f"{'rule':<{_WIDE}}", "label"), Span(one_line(one.text, 200), "failed"))
    yield (Span(f"{'is':<{_WIDE}}", "label"), Span(short(one.actual, 200), "differs"))
    if one.expected is not None:
        yield (Span(f"{'schema':<{_WIDE}}", "label"), Span(short(one.expected, 200), "muted"))


def _broken(one: Evidence, words: str) -> Iterator[Line]:
    """The place with what stands around it on its line."""
    if one.row is None or one.column is None:
        yield (Span(one_line(one.text, 200), "note"),)
        return
    where = f"{words} {one.row} on" if words else f"line {one.row}, column {one.column}"
    yield (Span(f"{where}: {one_line(one.text, 120)}", "failed"),)
    around = str(one.actual or "")
    at = min(one.column - 1, _AROUND)
    cut_off = "…" if one.column - 1 > _AROUND else ""
    if around.strip():
        before, after = one_line(around[:at]), one_line(around[at:])
        begins = 2 + len(cut_off) + len(before)
        line = (Span(f"  {cut_off}{before}{after}"),)
        yield marked(line, [Mark(begins, begins + 1, "hit-forbidden")])


def _statement(one: Evidence) -> Iterator[Line]:
    """The statement that is none, with the place where a parser finds one."""
    if one.rule == "fenced":
        words = "the whole reply must be SQL: here it stands in a fenced block, which contains-sql takes"
        yield (Span(words, "note"),)
        return
    if one.call is not None:
        words = (
            f"{one.call} fenced block{'s' * (one.call != 1)} tried"
            if one.call
            else "no fenced SQL; the whole reply was tried"
        )
        yield (Span(words, "muted"),)
    if one.row is not None:
        yield from _broken(one, "")
    else:
        yield (Span("tried   ", "label"), Span(one_line(" ".join(str(one.actual or "").split()), 200)))


def _element(one: Evidence) -> Line:
    """A path of XML as far as the reply has it."""
    if one.code == "holds":
        return (Span("✓ ", "passed"), Span(one_line(one.path, 100), "strong"))
    names = one.actual if isinstance(one.actual, list) else []
    listed = ", ".join(one_line(str(name), 40) for name in names[:_NAMES]) or "nothing"
    missing = one.path[len(one.text) :].lstrip(".").split(".")[0]
    if not one.text:
        words = f" is not there; the root is {listed}"
        return (Span("✗ ", "failed"), Span(one_line(missing, 60), "strong"), Span(words, "muted"))
    return (
        Span("✗ ", "failed"),
        Span(one_line(one.text, 100), "strong"),
        Span(f" has no {one_line(missing, 60)}", "failed"),
        Span(f"; it has {listed}", "muted"),
    )


def _no_call(one: Evidence) -> Iterator[Line]:
    """A call that is text is none for these assertions."""
    if one.rule == "json":
        words = "the reply is a text with JSON in it: only calls that the provider reports count"
    else:
        words = "the reply is text: the agent called nothing"
    yield (Span(words, "note"),)


def _path(verdict: Verdict) -> Iterator[Line]:
    """A dotted path that leads nowhere, followed as far as the reply has it."""
    one = next((piece for piece in verdict.evidence or () if piece.code == "none" and piece.text), None)
    if one is None:
        return
    missing = one_line(one.rule, 60)
    if one.actual is None:
        yield (Span(f"the reply has no {one_line(one.text, 60)}", "note"),)
    elif not isinstance(one.actual, list):
        words = f" is {short(one.actual, 80)}, without a {missing}"
        yield (Span(one_line(one.text, 100), "json-key"), Span(words, "note"))
    else:
        names = some_of([one_line(str(name), 40) for name in one.actual[:_NAMES]], _NAMES, len(one.actual))
        yield (
            Span(one_line(one.text, 100), "json-key"),
            Span(f" has no {missing}", "failed"),
            Span(f"; it has {names or 'nothing'}", "muted"),
        )


_MOST_FIELDS = 12


def _field_lines(evidence: Sequence[Evidence]) -> Iterator[Line]:
    """The fields that differ, by path: what was expected, what is there instead."""
    found = [one for one in evidence if one.code in ("differs", "absent-field", "extra-field")]
    for one in found[:_MOST_FIELDS]:
        head = (Span(one_line(one.path, 120), "json-key"), Span(": ", "json-mark"))
        if one.code == "extra-field":
            yield (*head, Span(short(one.actual)), Span("  not expected", "differs"))
        else:
            there = "not there" if one.code == "absent-field" else short(one.actual)
            yield (*head, Span(short(one.expected), "json-text"), Span(f"  ≠ {there}", "differs"))
    if len(found) > _MOST_FIELDS:
        yield (Span(f"and {len(found) - _MOST_FIELDS:,} more fields differ", "muted"),)


# -- A number against its limit, as a bar, and what it usually is.


BAR = 24
"""Columns of a budget's bar."""


def budget_lines(verdict: Verdict, past: CasePast | None) -> Iterator[Line]:
    """A number against its limit as a bar, and the usual range."""
    limit, actual = verdict.expected, verdict.actual
    if not _number(limit) or not _number(actual):
        return
    column = budget_of(verdict.type) or budget_of(verdict.target) or ""
    show = {"duration_ms": duration, "price": cost}.get(column, lambda value: f"{value:,.0f}")
    top = max(limit, actual) or 1
    filled, mark = round(actual / top * BAR), min(round(limit / top * BAR), BAR)
    bar = "".join("█" if i < filled else "·" for i in range(BAR))
    over = actual > limit
    times = f", {actual / limit:.1f} times" if over and limit > 0 and actual / limit >= 1.2 else ""
    yield (
        Span(bar[:mark], "passed"),
        Span("▏", "strong"),
        Span(bar[mark:], "failed" if over else "muted"),
        Span(f" {show(actual)}", "failed" if over else ""),
        Span(f" of {show(limit)}" + (f": {show(actual - limit)} over{times}" if over else ""), "muted"),
    )
    values = past.values(column_name(verdict)) if past is not None else []
    found = usual(values)
    if found is not None:
        words = f"usually {show(found.middle)} ({show(found.low)} to {show(found.high)} in {found.count} attempts)"
        unlike = " this one is unlike them" if over and actual > found.high else ""
        yield (Span(words, "muted"), Span(f";{unlike}" if unlike else "", "note"))
    elif past is not None and values:
        yield (Span(f"before: {', '.join(show(value) for value in values[-3:])}", "muted"),)


def column_name(verdict: Verdict) -> str:
    """What of a budget verdict names the number it is about: its type, else its target."""
    return verdict.type if budget_of(verdict.type) else verdict.target


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
