"""A transcript as blocks and an outline: who spoke, what was called, what was judged where.

Pure: made from an `Attempt` (or from the live pieces of a running one), drawn by the Transcript tab.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from tui_eval.guard import figures
from tui_eval.model import Attempt, Entry, Verdict
from tui_eval.store.summary import judges_of
from tui_eval.tui.state.case.agent_tree import reading_order, short_name
from tui_eval.tui.state.case.entry_blocks import LABELS, entry_block, prompt_blocks
from tui_eval.tui.state.case.expectation_marks import Expectations
from tui_eval.tui.state.case.explain import in_short
from tui_eval.tui.state.case.prompt_view import asked
from tui_eval.tui.state.case.tool_pairing import PairedCall, calls_of
from tui_eval.tui.state.case.verdict_lines import GLYPHS, brief, failed_first, label_of, word_of
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.formatting import cost, duration, tokens
from tui_eval.tui.state.text.lines import Line, Span, one_line, text_lines

BEFORE = "before the first turn"
LARGE = 500_000
"""Characters of texts and results from which on a transcript is laid out in a thread."""


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
        verdicts = failed_first(verdicts)
        looks = [v for v in attempt.verdicts if v.turn == turn or (v.turn is None and turn == turns[-1])]
        _add_turn(view, attempt, turn, [e for _, e in of_turn], verdicts)
        reply = _replying_agent(of_turn)
        order = reading_order(of_turn)
        calls = {order[place][0]: call for place, call in calls_of([entry for _, entry, _ in order]).items()}
        for index, entry, node in order:
            if messages := prompt_blocks(index, entry, rendered):
                view.blocks += messages
                continue
            marks = (
                Expectations(looks, attempt) if entry.kind == "assistant" and entry.agent == reply else None
            )
            handed = node.index == index
            depth = node.depth - handed
            answer = entries[node.answer] if handed and node.answer is not None else None
            named = several and not depth
            block = entry_block(index, entry, calls, rendered, marks, named, depth=depth, answer=answer)
            block.group = handed and bool(node.children)
            view.blocks.append(block)
            _outline_entry(view, block, entry, calls.get(index))
        view.blocks.extend(_verdict_block(i, v, attempt) for i, v in verdicts)
    _add_end(view, attempt, failed_first((i, v) for i, v in whole if not (only_failing and v.passed)))
    return view


def prepared(attempt: Attempt, *, rendered: bool = True, only_failing: bool = False) -> Transcript:
    """`build` with what is shown of folded blocks made already: that takes long for large results and for
    near misses, so call it in a thread."""
    view = build(attempt, rendered=rendered, only_failing=only_failing)
    for block in view.blocks:
        block.head()
    return view


def where_it_failed(blocks: Sequence[Block], most: int) -> tuple[int, int, int] | None:
    """The turn of the first failing verdict (else of an error), that verdict, and the last of those that
    follow it; as places in `blocks`. None where nothing failed.

    Args:
        most: How many failing verdicts are wanted together.
    """
    failing = [i for i, block in enumerate(blocks) if block.failing and block.kind in ("verdict", "error")]
    first = next(iter(sorted(failing, key=lambda i: blocks[i].kind != "verdict")), None)
    if first is None:
        return None
    turn = blocks[first].turn
    rules = [i for i in range(first) if blocks[i].kind == "turn" and blocks[i].key.startswith("t")]
    above = next((i for i in rules if turn and blocks[i].turn == turn), rules[-1] if rules else first)
    last = first
    while last + 1 < len(blocks) and last - first < most // 3 and last + 1 in failing:
        last += 1
    return above, first, last


def is_large(attempt: Attempt) -> bool:
    """Whether laying it out takes longer than a person waits for a key."""
    return (
        sum(len(e.result) if isinstance(e.result, str) else len(e.text) for e in attempt.transcript) > LARGE
    )


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
    label = f"turn {turn}" if turn else BEFORE
    view.blocks.append(
        Block(key, "turn", label, partial(_one, (Span(facts, "muted"),)), turn, "strong", failing=failing)
    )
    question = next((asked(entry.text) for entry in entries if entry.kind == "user"), "")
    worst = next((v for _, v in verdicts if not v.passed), verdicts[0][1] if verdicts else None)
    word = word_of(worst) if worst else ""
    view.outline.append(
        OutlineItem(
            key,
            0,
            f"{turn} {one_line(question, 200).strip()}" if turn else BEFORE,
            took,
            GLYPHS.get(word, ""),
            word,
            turn,
        )
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


def _verdict_block(index: int, verdict: Verdict, attempt: Attempt) -> Block:
    word = word_of(verdict)
    return Block(
        f"v{index}",
        "verdict",
        label_of(verdict),
        partial(brief, verdict, partial(in_short, verdict, attempt)),
        verdict.turn or 0,
        word,
        fold=12,
        size=len(verdict.reason),
        failing=not verdict.passed,
    )


def _outline_entry(view: Transcript, block: Block, entry: Entry, call: PairedCall | None) -> None:
    took = duration(call.duration_ms) if call else ""
    if entry.kind == "tool_call":
        failed = bool(call and call.error)
        text = one_line(entry.name, 80)
        view.outline.append(
            OutlineItem(
                block.key,
                block.depth + 1,
                text,
                took,
                "!" if failed else "",
                "error" if failed else "",
                entry.turn,
            )
        )
    elif entry.kind == "hand_off":
        name = f"→ {one_line(short_name(entry.name), 80)}"
        view.outline.append(OutlineItem(block.key, block.depth + 1, name, "", "", "agent", entry.turn))
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
        view.blocks.extend(_verdict_block(i, v, attempt) for i, v in verdicts)
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
    view.blocks += _tracebacks(attempt)
    if not view.blocks:
        words = (
            "Nothing was said, and nothing judged."
            if not attempt.transcript
            else "Nothing failed here: i shows all."
        )
        view.blocks.append(
            Block("empty", "note", "note", partial(text_lines, words, "muted"), 0, "role-note")
        )


def _tracebacks(attempt: Attempt) -> Iterator[Block]:
    """That of an agent's own code, where it raised."""
    for one in attempt.evidence or ():
        if one.code == "script-raised" and isinstance(one.actual, str) and one.actual:
            source = partial(text_lines, one.actual.rstrip(), "code")
            size = len(one.actual)
            yield Block("traceback", "part", "traceback", source, 0, "role-error", 30, size, raw=one.actual)


def facts_of(attempt: Attempt) -> str:
    """Duration, tokens, cost of a whole attempt, and what its judging took, for the head of the screen."""
    used = attempt.judging
    judges = (
        judges_of(figures.judge_tokens(used), used.cost, used.cached, used.saved) if used is not None else ""
    )
    parts = (
        duration(attempt.duration_ms),
        tokens(attempt.usage),
        cost(attempt.cost or None),
        attempt.cached_words,
        judges,
    )
    return " · ".join(part for part in parts if part)
