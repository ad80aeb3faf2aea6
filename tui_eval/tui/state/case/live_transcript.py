"""The transcript of an attempt that is still running, kept up to date piece by piece."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tui_eval.model import Entry, EntryKind
from tui_eval.tui.state.case.agent_tree import AgentNode, reading_order, short_name
from tui_eval.tui.state.case.entry_blocks import entry_block, prompt_blocks
from tui_eval.tui.state.case.prompt_view import asked
from tui_eval.tui.state.case.tool_pairing import PairedCall, calls_of
from tui_eval.tui.state.case.transcript_view import OutlineItem, Transcript
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.runs.run_view import LiveAttempt, LivePiece
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.lines import Line, Span, one_line, text_lines
from tui_eval.tui.state.text.stream_text import WOULD_BE_SENT, so_far

_KINDS: dict[str, EntryKind] = {
    "user": "user",
    "assistant": "assistant",
    "reasoning": "reasoning",
    "tool_call": "tool_call",
    "tool_result": "tool_result",
    "hand_off": "hand_off",
    "error": "error",
}
_AS_JSON = ("tool_call", "tool_result", "hand_off")
Placed = tuple[int, Entry]
"""An entry and its place among all that was said."""


class LiveTranscript:
    """Blocks made from live pieces, helpers below the hand-off that called them. What did not grow keeps its blocks,
    so that only what is new is laid out again."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[int, Entry]] = {}
        self._made: dict[int, tuple[object, list[Block]]] = {}
        self._turns: dict[int, int] = {}
        self._rules: dict[tuple[int, bool], Block] = {}
        self._past: dict[int, tuple[int, Transcript]] = {}

    def update(self, live: LiveAttempt | None, words: str = "") -> Transcript:
        """The transcript so far; `words` say what stands where nothing has been said yet."""
        turns: list[tuple[int, list[Placed]]] = []
        waits: list[Placed] = []
        pieces = live.pieces if live else []
        for index, piece in enumerate(pieces):
            place = (live.dropped if live else 0) + index
            if piece.kind == "step":  # what was asked of the person; what was then sent follows
                if index == len(pieces) - 1:
                    waits.append((place, Entry(0, "note", text=f"{WOULD_BE_SENT}{piece.text}")))
                continue
            if piece.kind == "user" or not turns:
                number = self._turns.setdefault(place, max(self._turns.values(), default=0) + 1)
                turns.append((number, []))
            number, entries = turns[-1]
            entries.append((place, self._entry(place, number, piece)))
        several = len({entry.agent for _, entries in turns for _, entry in entries if entry.agent}) > 1
        view = Transcript()
        for number, entries in turns[:-1]:
            first = entries[0][
                0
            ]  # those that fell away at the front apart, what was said then stays as it is
            known = self._past.get(number)
            if known is None or known[0] != first:
                known = self._past[number] = first, self._turn(number, entries, several, runs=False)
            view.blocks += known[1].blocks
            view.outline += known[1].outline
        for number, entries in turns[-1:]:
            last = self._turn(number, entries, several, runs=True)
            view.blocks += last.blocks
            view.outline += last.outline
        for place, entry in waits:
            view.blocks.append(entry_block(place, entry, {}, True))
        if not view.blocks:
            view.blocks.append(
                Block("empty", "note", "", partial(text_lines, words, "muted"), 0, "role-note")
            )
        return view

    def _entry(self, place: int, turn: int, piece: LivePiece) -> Entry:
        known = self._entries.get(place)
        if known is not None and known[0] == len(piece.text):
            return known[1]
        entry = entry_of(piece, turn)
        self._entries[place] = len(piece.text), entry
        return entry

    def _turn(self, turn: int, entries: Sequence[Placed], several: bool, *, runs: bool) -> Transcript:
        """The blocks of one turn; only the last one runs."""
        view = Transcript()
        rule = self._rule(turn, runs)
        view.blocks.append(rule)
        first = entries[0][1]
        question = one_line(asked(first.text), 200).strip() if first.kind == "user" else ""
        glyph, style = (GLYPHS["running"], "running") if runs else ("", "")
        view.outline.append(OutlineItem(rule.key, 0, f"{turn} {question}", "", glyph, style, turn))
        known = dict(entries)
        order = reading_order(entries)
        calls = {order[at][0]: call for at, call in calls_of([entry for _, entry, _ in order]).items()}
        settled = _settled(order)
        for place, entry, node in order:
            handed = node.index == place
            depth = node.depth - handed
            answer = known[node.answer] if handed and node.answer is not None else None
            word = "answered" if place in settled or not runs else "says"
            blocks = self._blocks(place, entry, calls.get(place), depth, answer, word, several and not depth)
            blocks[-1].group = handed and bool(node.children)
            view.blocks += blocks
            if entry.kind in ("tool_call", "hand_off"):
                name = short_name(entry.name) if entry.kind == "hand_off" else entry.name
                arrow, style = ("→ ", "agent") if entry.kind == "hand_off" else ("", "")
                text = arrow + one_line(name, 80)
                view.outline.append(OutlineItem(blocks[-1].key, depth + 1, text, style=style, turn=turn))
        return view

    def _blocks(
        self,
        place: int,
        entry: Entry,
        call: PairedCall | None,
        depth: int,
        answer: Entry | None,
        word: str,
        named: bool,
    ) -> list[Block]:
        paired = (call.duration_ms, call.apart) if call is not None else None
        said = (len(answer.text), word) if answer is not None else None
        state = (entry, paired, depth, said, named)
        before = self._made.get(place)
        if before is not None and before[0] == state:
            return before[1]
        calls = {place: call} if call is not None else {}
        rendered = entry.kind in _AS_JSON
        blocks = prompt_blocks(place, entry) or [
            entry_block(place, entry, calls, rendered, None, named, depth=depth, answer=answer, answered=word)
        ]
        self._made[place] = state, blocks
        return blocks

    def _rule(self, turn: int, runs: bool) -> Block:
        known = self._rules.get((turn, runs))
        if known is None:
            words: tuple[Line, ...] = ((Span("running", "running"),),) if runs else ()
            known = Block(f"t{turn}", "turn", f"turn {turn}", lambda: iter(words), turn, "strong")
            self._rules[turn, runs] = known
        return known


def entry_of(piece: LivePiece, turn: int) -> Entry:
    """A live piece as an entry of a transcript."""
    kind = _KINDS.get(piece.kind)
    entry = Entry(
        turn, kind or "note", agent=piece.agent, text=piece.text, name=piece.name, call_id=piece.call_id,
        started_at=piece.at or None,
    )  # fmt: skip
    if piece.kind == "verdict":
        entry.text = "\n".join(f"{mark} {words}" for mark, _, words in map(so_far, piece.text.split("\n")))
    elif kind is None:
        entry.text = piece.text or piece.name or piece.kind
    elif kind in ("tool_call", "hand_off"):
        entry.arguments, entry.text = piece.text or None, ""
    elif kind == "tool_result":
        entry.result, entry.text = piece.text, ""
    return entry


def _settled(order: Sequence[tuple[int, Entry, AgentNode]]) -> set[int]:
    """The hand-offs, by their places, after whose helper's last words its caller has gone on: these were its answer."""
    heard: dict[int, int] = {}
    nodes: list[AgentNode] = []
    for place, _, node in order:
        owner = node.caller if node.index == place else node
        at = owner.index if owner is not None else -1
        heard[at] = max(heard.get(at, -1), place)
        if node.index == place:
            nodes.append(node)
            if node.answer is not None:
                heard[place] = max(heard.get(place, -1), node.answer)
    settled: set[int] = set()
    for node in nodes:  # callers stand before those they call
        caller = node.caller.index if node.caller is not None else -1
        if caller in settled or (node.answer is not None and heard.get(caller, -1) > node.answer):
            settled.add(node.index)
    return settled
