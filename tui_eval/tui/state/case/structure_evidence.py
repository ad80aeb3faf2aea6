"""The evidence of assertions on structure, drawn: where a reply stops being JSON, XML or SQL, which value breaks which
rule of a schema, which element a path does not find. Nothing is parsed here: the judge says it all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tui_eval.guard.spelling import some_of
from tui_eval.model import Evidence, Verdict
from tui_eval.tui.state.text.json_lines import short
from tui_eval.tui.state.text.lines import Line, Mark, Span, marked, one_line

AROUND = 30
"""Characters of a line that a judge keeps before a place (`assertions.evidence`)."""
_WIDE = 8
_NAMES = 8
_IS = {
    "is-json": "the reply is JSON", "has-json": "there is JSON in the reply", "is-xml": "the reply is XML",
    "has-xml": "there is XML in the reply", "is-html": "the reply is HTML", "has-html": "there is HTML in the reply",
    "is-sql": "the reply is SQL", "schema-held": "the JSON fits the schema",
}  # fmt: skip


STRUCTURE = (*_IS, "schema", "not-json", "not-xml", "not-sql", "no-element", "no-call", "bad-call")
"""Codes of evidence on the form of a reply."""


def structure_explained(verdict: Verdict) -> Iterator[Line]:
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
    at = min(one.column - 1, AROUND)
    cut_off = "…" if one.column - 1 > AROUND else ""
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


def path_explained(verdict: Verdict) -> Iterator[Line]:
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


def field_lines(evidence: Sequence[Evidence], most: int = 12) -> Iterator[Line]:
    """The fields that differ, by path: what was expected, what is there instead."""
    found = [one for one in evidence if one.code in ("differs", "absent-field", "extra-field")]
    for one in found[:most]:
        head = (Span(one_line(one.path, 120), "json-key"), Span(": ", "json-mark"))
        if one.code == "extra-field":
            yield (*head, Span(short(one.actual)), Span("  not expected", "differs"))
        else:
            there = "not there" if one.code == "absent-field" else short(one.actual)
            yield (*head, Span(short(one.expected), "json-text"), Span(f"  ≠ {there}", "differs"))
    if len(found) > most:
        yield (Span(f"and {len(found) - most:,} more fields differ", "muted"),)
