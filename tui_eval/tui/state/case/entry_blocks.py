"""The entries of a transcript as blocks: what was said, called, answered and handed over."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from rich.cells import cell_len

from tui_eval.model import ENTRY_LABELS, Entry
from tui_eval.tui.state.case.agent_tree import short_name
from tui_eval.tui.state.case.expectation_marks import Expectations
from tui_eval.tui.state.case.prompt_view import messages_in
from tui_eval.tui.state.case.tool_pairing import PairedCall
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.formatting import duration
from tui_eval.tui.state.text.json_lines import dumped, json_inline, parsed, value_lines
from tui_eval.tui.state.text.lines import Line, Span, one_line, plain, text_lines
from tui_eval.tui.state.text.table_lines import result_lines

LABELS = {**ENTRY_LABELS, "error": "! error"}
LONG = 20_000
"""Characters from which on a search looks at a result's own text first."""
FOLDS = {
    "user": 40,
    "assistant": 300,
    "reasoning": 3,
    "tool_call": 12,
    "tool_result": 8,
    "hand_off": 12,
    "note": 6,
}
"""Lines that are shown of each kind while it is folded; kinds that are not named never fold."""


def prompt_blocks(index: int, entry: Entry, rendered: bool = True) -> list[Block]:
    """A prompt that is a list of chat messages as a block for each of them; none where it is a text, or wanted as
    it came. The last one has the entry's own key."""
    messages = messages_in(entry.text) if rendered and entry.kind == "user" else ()
    last = len(messages) - 1
    return [
        Block(
            f"e{index}" if number == last else f"e{index}.{number}",
            "user",
            one_line(message.role, 20),
            partial(text_lines, message.text.rstrip("\n")),
            entry.turn,
            message.style,
            message.fold,
            len(message.text),
        )
        for number, message in enumerate(messages)
    ]


def entry_block(
    index: int,
    entry: Entry,
    calls: dict[int, PairedCall],
    rendered: bool = True,
    marks: Expectations | None = None,
    several: bool = False,
    *,
    depth: int = 0,
    answer: Entry | None = None,
    answered: str = "answered",
) -> Block:
    """The block of one entry.

    Args:
        several: Name the agent that speaks.
        depth: How many hand-offs it stands below.
        answer: What the helper of a hand-off answered, or says as yet.
        answered: The word for that.
    """
    head = [Span(one_line(entry.agent, 80), "agent")] if several and entry.agent else []
    failing = entry.kind == "error" or bool(entry.error)
    source: Callable[[], Iterator[Line]]
    length = len(entry.text)
    call = calls.get(index)
    if entry.kind == "tool_call":
        source = partial(_call_lines, entry, call, rendered, head)
        length = _length(entry.arguments)
    elif entry.kind == "tool_result":
        source = partial(_result_lines, entry, call, rendered)
        length = _length(entry.result) + len(entry.text)
    elif entry.kind == "hand_off":
        source = partial(_hand_off_lines, entry, rendered, answer, depth > 0, answered)
        length = _length(entry.arguments) + (len(answer.text) if answer is not None else 0)
    else:
        source = partial(_text_lines, entry, rendered, marks, head)
    source = partial(_indented, source, depth) if depth else source
    label = LABELS.get(entry.kind, entry.kind)
    style = f"role-{entry.kind}"
    if entry.kind == "tool_result" and entry.error:
        label, style = LABELS["error"], "role-error"
    return Block(
        f"e{index}",
        "error" if label == LABELS["error"] else entry.kind,
        label,
        source,
        entry.turn,
        style,
        FOLDS.get(entry.kind, 0),
        length,
        failing,
        entry.call_id,
        raw=_raw(entry),
        depth=depth,
    )


def _indented(source: Callable[[], Iterator[Line]], depth: int) -> Iterator[Line]:
    for line in source():
        yield (Span("  " * depth), *line)


def _raw(entry: Entry) -> str:
    """A long result as it came."""
    return entry.result if isinstance(entry.result, str) and len(entry.result) > LONG else ""


def _text_lines(entry: Entry, rendered: bool, marks: Expectations | None, head: list[Span]) -> Iterator[Line]:
    if head:
        yield tuple(head)
    text = entry.error if entry.kind == "error" and not entry.text and entry.error else entry.text
    text = text.rstrip("\n") if rendered else text
    style = {"reasoning": "thinking", "note": "muted", "error": "error"}.get(entry.kind, "")
    lines: Iterator[Line]
    if not rendered or style:
        lines = text_lines(text, style)
    elif entry.kind == "assistant":
        yield from reply_lines(text, marks)
        return
    else:
        lines = text_lines(text)
    yield from marks.mark(lines) if marks else lines


def reply_lines(text: str, marks: Expectations | None = None) -> Iterator[Line]:
    """What an agent said, made readable: its Markdown or JSON, with what assertions looked for marked."""
    value = parsed(text)
    lines = markdown_lines(text.rstrip("\n")) if isinstance(value, str) else value_lines(value)
    yield from marks.mark(lines) if marks else lines


def _call_lines(entry: Entry, call: PairedCall | None, rendered: bool, head: list[Span]) -> Iterator[Line]:
    facts = duration(call.duration_ms) if call else ""
    name: list[Span] = [Span(one_line(entry.name, 80), "strong")]
    if head:
        name = [*head, Span(" calls ", "muted"), *name]
    arguments = parsed(entry.arguments) if rendered else entry.arguments
    line = json_inline(arguments, 56) if arguments not in (None, {}, "") else ()
    end = [Span(f"  {facts}", "muted")] if facts else []
    if line is not None:
        yield (*name, *([Span("  ")] if line else []), *line, *end)
        return
    yield (*name, *end)
    yield from value_lines(arguments, rendered=rendered)


def _result_lines(entry: Entry, call: PairedCall | None, rendered: bool) -> Iterator[Line]:
    if call is None or call.apart:
        yield (Span(f"of {one_line(entry.name, 80)}" if entry.name else "", "muted"),)
    if entry.error:
        yield from text_lines(entry.error, "error")
    result = entry.result if entry.result is not None else entry.text
    if result not in (None, ""):
        yield from result_lines(result, rendered=rendered)
    elif not entry.error:
        yield (Span("nothing", "muted"),)


def _hand_off_lines(
    entry: Entry, rendered: bool, answer: Entry | None, nested: bool, answered: str
) -> Iterator[Line]:
    """To whom, what was asked and what came back; the caller is named where it does not stand above."""
    agent = f"{one_line(short_name(entry.agent), 80)} " if entry.agent and not nested else ""
    name = one_line(short_name(entry.name) or entry.text, 80)
    yield (Span(agent, "agent"), Span("→ ", "muted"), Span(name, "strong"))
    if entry.arguments not in (None, {}, ""):
        arguments = parsed(entry.arguments) if rendered else entry.arguments
        line = json_inline(arguments, 80) if rendered else None
        lines = iter([line]) if line is not None else value_lines(arguments, rendered=rendered)
        yield from (lines if answer is None else _headed("asked", lines))
    if entry.text and entry.name:
        yield from text_lines(entry.text)
    if answer is not None:
        text = answer.text.rstrip("\n")
        yield from _headed(answered, reply_lines(text) if rendered else text_lines(text))


def _headed(word: str, lines: Iterator[Line]) -> Iterator[Line]:
    for number, line in enumerate(lines):
        yield (Span(f"{word if not number else '':<9}", "label"), *line)


def _length(value: Any) -> int:
    """Characters of a value as JSON; of a text its own."""
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else len(dumped(value))


# -- Replies in Markdown, lightly: headings, emphasis, code and tables, a line for a line. Only what helps reading in a
# terminal: the text of each line stays what it was apart from the marks themselves, so that a search and an assertion's
# highlight find it. Nothing is interpreted beyond that: no links are made, no markup of ours is read.

_INLINE = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*|(?<![\w*])\*([^*\s][^*\n]*?)\*(?![\w*])")
_HEADING = re.compile(r"(#{1,6})\s+(.*)")
_BULLET = re.compile(r"(\s*)[-*+]\s+")
_TABLE_ROW = re.compile(r"\s*\|.*\|\s*$")
_TABLE_RULE = re.compile(r"\s*\|?[\s:|-]*-[\s:|-]*$")


def markdown_lines(text: str) -> Iterator[Line]:
    """The lines of a Markdown text with styles `heading`, `strong`, `emphasis`, `code`."""
    in_code = False
    table: list[str] = []
    for (span,) in text_lines(text):
        line = span.text
        if not in_code and _TABLE_ROW.match(line):
            table.append(line)
            continue
        if table:
            yield from _table(table)
            table = []
        if line.lstrip().startswith(("```", "~~~")):
            in_code = not in_code
            yield (Span(line, "muted"),)
        elif in_code:
            yield (Span(line, "code"),)
        else:
            yield _prose(line)
    yield from _table(table)


def _prose(line: str) -> Line:
    heading = _HEADING.fullmatch(line)
    if heading:
        return _inline(heading[2], "heading")
    if line.startswith(">"):
        return (Span("│ ", "muted"), *_inline(line[1:].lstrip(), "emphasis"))
    bullet = _BULLET.match(line)
    if bullet:
        return (Span(bullet[1] + "• ", "muted"), *_inline(line[bullet.end() :]))
    return _inline(line)


def _inline(text: str, style: str = "") -> Line:
    spans: list[Span] = []
    at = 0
    for match in _INLINE.finditer(text):
        if match.start() > at:
            spans.append(Span(text[at : match.start()], style))
        code, strong, emphasis = match.groups()
        word = "code" if code else "strong" if strong else "emphasis"
        spans.append(Span(code or strong or emphasis, f"{style} {word}".strip()))
        at = match.end()
    if at < len(text) or not spans:
        spans.append(Span(text[at:], style))
    return tuple(spans)


def _table(rows: list[str]) -> Iterator[Line]:
    """A pipe table with its columns aligned."""
    if len(rows) < 2 or not _TABLE_RULE.match(rows[1]):
        for row in rows:
            yield _prose(row)
        return
    cells = [[_inline(cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    columns = max(len(row) for row in cells)
    widths = [
        max((cell_len(plain(row[i])) for k, row in enumerate(cells) if k != 1 and i < len(row)), default=0)
        for i in range(columns)
    ]
    for number, row in enumerate(cells):
        if number == 1:
            yield (Span("─┼─".join("─" * width for width in widths), "muted"),)
            continue
        spans: list[Span] = []
        for index, cell in enumerate(row):
            room = widths[index] - cell_len(plain(cell))
            text = plain(cell)
            right = number > 0 and text.replace(",", "").replace(".", "").lstrip("-$€£").rstrip("%").isdigit()
            if index:
                spans.append(Span(" │ ", "muted"))
            pad = Span(" " * room)
            styled = tuple(Span(s.text, f"{s.style} strong".strip()) for s in cell) if number == 0 else cell
            spans += [pad, *styled] if right else [*styled, pad]
        yield tuple(spans)
