"""A transcript as blocks and an outline: who spoke, what was called, what was judged where.

Pure: made from an `Attempt` (or from the live pieces of a running one), drawn by the Transcript tab.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tui_eval.model import Attempt, Entry, Verdict
from tui_eval.tui.state.amounts import duration, size, tokens
from tui_eval.tui.state.blocks import Block
from tui_eval.tui.state.expectation_marks import Expectations
from tui_eval.tui.state.json_lines import dumped, json_inline, parsed, value_lines
from tui_eval.tui.state.lines import Line, Span, one_line, text_lines
from tui_eval.tui.state.markdown_lines import markdown_lines
from tui_eval.tui.state.tool_pairing import Call, calls_of, in_reading_order
from tui_eval.tui.state.verdict_lines import GLYPHS, brief, label_of, word_of

LABELS = {
    "user": "user",
    "assistant": "assistant",
    "reasoning": "thinking",
    "tool_call": "call",
    "tool_result": "result",
    "hand_off": "hand-off",
    "note": "note",
    "error": "! error",
}
FOLDS = {
    "user": 40,
    "assistant": 300,
    "reasoning": 3,
    "tool_call": 12,
    "tool_result": 8,
    "hand_off": 6,
    "note": 6,
}
"""Lines that are shown of each kind while it is folded; kinds that are not named never fold."""


@dataclass(frozen=True, slots=True)
class OutlineItem:
    """A line of the outline. `key` is the block it leads to; `style` colours its text."""

    key: str
    depth: int
    text: str
    right: str = ""
    glyph: str = ""
    style: str = ""
    turn: int = 0


@dataclass(slots=True, eq=False)
class Transcript:
    """What the Transcript tab shows."""

    blocks: list[Block] = field(default_factory=list)
    outline: list[OutlineItem] = field(default_factory=list)

    def index_of(self, key: str) -> int | None:
        """The place of a block, None where it is not shown."""
        return next((i for i, block in enumerate(self.blocks) if block.key == key), None)


def build(attempt: Attempt, *, rendered: bool = True, only_failing: bool = False) -> Transcript:
    """The whole transcript of a finished attempt.

    Args:
        rendered: Markdown and JSON made readable; otherwise every text as it came.
        only_failing: Only turns in which something failed, without the verdicts that passed.
    """
    view = Transcript()
    entries = attempt.transcript
    turns = sorted({entry.turn for entry in entries} | {v.turn for v in attempt.verdicts if v.turn})
    several = len({entry.agent for entry in entries if entry.agent}) > 1
    calls = calls_of(entries)
    whole = [(i, v) for i, v in enumerate(attempt.verdicts) if v.turn is None]
    for turn in turns:
        verdicts = [(i, v) for i, v in enumerate(attempt.verdicts) if v.turn == turn]
        if turn == turns[-1] and len(turns) == 1:
            verdicts, whole = [*verdicts, *whole], []
        of_turn = [(i, entry) for i, entry in enumerate(entries) if entry.turn == turn]
        if only_failing:
            verdicts = [(i, v) for i, v in verdicts if not v.passed]
            if not verdicts and not any(entry.kind == "error" for _, entry in of_turn):
                continue
        looks = [v for v in attempt.verdicts if v.turn == turn or (v.turn is None and turn == turns[-1])]
        _add_turn(view, attempt, turn, [e for _, e in of_turn], verdicts)
        reply = _replying_agent(of_turn)
        for index, entry in in_reading_order(of_turn):
            marks = Expectations(looks) if entry.kind == "assistant" and entry.agent == reply else None
            view.blocks.append(entry_block(index, entry, calls, rendered, marks, several))
            _outline_entry(view, view.blocks[-1], entry, calls.get(index))
        view.blocks.extend(_verdict_block(i, v) for i, v in verdicts)
    _add_end(view, attempt, [(i, v) for i, v in whole if not (only_failing and v.passed)])
    return view


def _replying_agent(entries: Sequence[tuple[int, Entry]]) -> str:
    return next((entry.agent for _, entry in reversed(entries) if entry.kind == "assistant"), "")


def _add_turn(
    view: Transcript,
    attempt: Attempt,
    turn: int,
    entries: Sequence[Entry],
    verdicts: Sequence[tuple[int, Verdict]],
) -> None:
    reply = next((reply for reply in attempt.replies if reply.turn == turn), None)
    took = duration(reply.latency_ms if reply and reply.latency_ms is not None else _span(entries))
    used = tokens(reply.usage if reply else None)
    failing = any(not v.passed for _, v in verdicts)
    facts = " · ".join(part for part in (took, used) if part)
    key = f"t{turn}"
    label = f"turn {turn}"
    view.blocks.append(
        Block(key, "turn", label, partial(_one, (Span(facts, "muted"),)), turn, "strong", failing=failing)
    )
    asked = next((entry.text for entry in entries if entry.kind == "user"), "")
    worst = next((v for _, v in verdicts if not v.passed), verdicts[0][1] if verdicts else None)
    word = word_of(worst) if worst else ""
    view.outline.append(
        OutlineItem(key, 0, f"{turn} {one_line(asked, 200).strip()}", took, GLYPHS.get(word, ""), word, turn)
    )


def _span(entries: Sequence[Entry]) -> float | None:
    """Milliseconds from the first entry's start to the last one's end."""
    starts = [entry.started_at for entry in entries if entry.started_at]
    if not starts:
        return None
    ends = [entry.started_at + (entry.duration_ms or 0) / 1000 for entry in entries if entry.started_at]
    return (max(ends) - min(starts)) * 1000 or None


def _one(line: Line) -> Iterator[Line]:
    yield line


def entry_block(
    index: int,
    entry: Entry,
    calls: dict[int, Call],
    rendered: bool = True,
    marks: Expectations | None = None,
    several: bool = False,
) -> Block:
    """The block of one entry; `several` names the agent that speaks."""
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
        source = partial(_hand_off_lines, entry, rendered)
    else:
        source = partial(_text_lines, entry, rendered, marks, head)
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
    )


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
        value = parsed(text)
        lines = markdown_lines(text) if isinstance(value, str) else value_lines(value)
    else:
        lines = text_lines(text)
    yield from marks.mark(lines) if marks else lines


def _call_lines(entry: Entry, call: Call | None, rendered: bool, head: list[Span]) -> Iterator[Line]:
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


def _result_lines(entry: Entry, call: Call | None, rendered: bool) -> Iterator[Line]:
    if call is None or call.apart:
        yield (Span(f"of {one_line(entry.name, 80)}" if entry.name else "", "muted"),)
    if entry.error:
        yield from text_lines(entry.error, "error")
    result = entry.result if entry.result is not None else entry.text
    if result not in (None, ""):
        yield from value_lines(result, rendered=rendered)
    elif not entry.error:
        yield (Span("nothing", "muted"),)


def _hand_off_lines(entry: Entry, rendered: bool) -> Iterator[Line]:
    agent = f"{one_line(entry.agent, 80)} " if entry.agent else ""
    yield (Span(agent, "agent"), Span("→ ", "muted"), Span(one_line(entry.name or entry.text, 80), "strong"))
    if entry.arguments not in (None, {}, ""):
        yield from value_lines(entry.arguments, rendered=rendered)
    if entry.text and entry.name:
        yield from text_lines(entry.text)


def _length(value: Any) -> int:
    """Characters of a value as JSON; of a text its own."""
    if value is None:
        return 0
    return len(value) if isinstance(value, str) else len(dumped(value))


def _verdict_block(index: int, verdict: Verdict) -> Block:
    word = word_of(verdict)
    return Block(
        f"v{index}",
        "verdict",
        label_of(verdict),
        partial(brief, verdict),
        verdict.turn or 0,
        word,
        fold=12,
        size=len(verdict.reason),
        failing=not verdict.passed,
    )


def _outline_entry(view: Transcript, block: Block, entry: Entry, call: Call | None) -> None:
    took = duration(call.duration_ms) if call else ""
    if entry.kind == "tool_call":
        failed = bool(call and call.error)
        text = one_line(entry.name, 80)
        view.outline.append(
            OutlineItem(
                block.key, 1, text, took, "!" if failed else "", "error" if failed else "", entry.turn
            )
        )
    elif entry.kind == "hand_off":
        view.outline.append(
            OutlineItem(block.key, 1, f"→ {one_line(entry.name, 80)}", "", "", "agent", entry.turn)
        )
    elif entry.kind == "error":
        view.outline.append(
            OutlineItem(
                block.key, 1, one_line(entry.text or entry.error or "error", 80), "", "!", "error", entry.turn
            )
        )


def _add_end(view: Transcript, attempt: Attempt, verdicts: Sequence[tuple[int, Verdict]]) -> None:
    """What stands after the last turn: verdicts on the whole conversation, an error outside it."""
    if verdicts:
        worst = next((v for _, v in verdicts if not v.passed), verdicts[0][1])
        word = word_of(worst)
        view.blocks.append(
            Block(
                "whole",
                "turn",
                "whole conversation",
                partial(_one, ()),
                label_style="strong",
                failing=not worst.passed,
            )
        )
        view.outline.append(OutlineItem("whole", 0, "whole conversation", "", GLYPHS[word], word))
        view.blocks.extend(_verdict_block(i, v) for i, v in verdicts)
    said = any(entry.kind == "error" or entry.error for entry in attempt.transcript)
    if attempt.error and not said:
        view.blocks.append(
            Block(
                "error",
                "error",
                LABELS["error"],
                partial(text_lines, attempt.error, "error"),
                0,
                "role-error",
                failing=True,
            )
        )
        view.outline.append(OutlineItem("error", 0, one_line(attempt.error, 80), "", "!", "error"))
    if not view.blocks:
        words = (
            "Nothing was said, and nothing judged."
            if not attempt.transcript
            else "Nothing failed here: i shows all."
        )
        view.blocks.append(
            Block("empty", "note", "note", partial(text_lines, words, "muted"), 0, "role-note")
        )


def facts_of(attempt: Attempt) -> str:
    """Duration, tokens, cost of a whole attempt, for the head of the screen."""
    from tui_eval.tui.state.amounts import cost

    parts = (duration(attempt.duration_ms), tokens(attempt.usage), cost(attempt.cost))
    return " · ".join(part for part in parts if part)


__all__ = ["OutlineItem", "Transcript", "build", "entry_block", "facts_of", "size"]
