"""The transcript of an attempt that is still running, kept up to date piece by piece."""

from __future__ import annotations

from functools import partial

from tui_eval.model import Entry, EntryKind
from tui_eval.tui.state.case.chat_prompt import asked
from tui_eval.tui.state.case.entry_blocks import LABELS, entry_block, prompt_blocks
from tui_eval.tui.state.case.tool_pairing import PairedCall
from tui_eval.tui.state.case.transcript_view import OutlineItem, Transcript
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.runs.run_view import LiveAttempt, LivePiece
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.lines import Line, Span, one_line, text_lines

_KINDS: dict[str, EntryKind] = {
    "user": "user",
    "assistant": "assistant",
    "reasoning": "reasoning",
    "tool_call": "tool_call",
    "tool_result": "tool_result",
    "hand_off": "hand_off",
    "error": "error",
}


class LiveTranscript:
    """Blocks made from live pieces. A piece that did not grow keeps its block, so that only what is
    new is laid out again."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, list[Block], Block | None]] = {}
        self._turns: dict[int, int] = {}
        self._ended: dict[int, Block] = {}

    def update(self, live: LiveAttempt | None, words: str = "") -> Transcript:
        """The transcript so far; `words` say what stands where nothing has been said yet."""
        view = Transcript()
        pieces = live.pieces if live else []
        turn = 0
        for index, piece in enumerate(pieces):
            place = (live.dropped if live else 0) + index
            if piece.kind == "user" or not turn:
                turn = self._turns.setdefault(place, max(self._turns.values(), default=0) + 1)
            before = pieces[index - 1] if index else None
            blocks, rule = self._blocks(place, turn, piece, before)
            if rule is not None:
                view.blocks.append(rule)
                question = one_line(asked(piece.text), 200).strip() if piece.kind == "user" else ""
                view.outline.append(
                    OutlineItem(rule.key, 0, f"{turn} {question}", "", GLYPHS["running"], "running", turn)
                )
            view.blocks += blocks
            if piece.kind in ("tool_call", "hand_off"):
                arrow = "→ " if piece.kind == "hand_off" else ""
                view.outline.append(
                    OutlineItem(blocks[-1].key, 1, arrow + one_line(piece.name, 80), turn=turn)
                )
        self._past_turns(view, turn)
        if not view.blocks:
            view.blocks.append(
                Block("empty", "note", "", partial(text_lines, words, "muted"), 0, "role-note")
            )
        return view

    def _past_turns(self, view: Transcript, last: int) -> None:
        """Only the last turn still runs."""
        for index, block in enumerate(view.blocks):
            if block.kind == "turn" and block.turn != last:
                view.blocks[index] = self._ended.setdefault(block.turn, self._rule(block.turn, ended=True))
        view.outline[:] = [
            OutlineItem(item.key, item.depth, item.text, turn=item.turn)
            if item.style == "running" and item.turn != last
            else item
            for item in view.outline
        ]

    def _blocks(
        self, place: int, turn: int, piece: LivePiece, before: LivePiece | None
    ) -> tuple[list[Block], Block | None]:
        known = self._known.get(place)
        if known is not None and known[0] == len(piece.text):
            return known[1], known[2]
        kind = _KINDS.get(piece.kind)
        if kind is None:
            words = piece.text or piece.name or piece.kind
            source = partial(text_lines, words, "muted")
            blocks = [Block(f"e{place}", "note", LABELS["note"], source, turn, "role-note")]
        else:
            entry = Entry(
                turn, kind, agent=piece.agent, text=piece.text, name=piece.name, call_id=piece.call_id
            )
            calls: dict[int, PairedCall] = {}
            if kind in ("tool_call", "hand_off"):
                entry.arguments, entry.text = piece.text or None, ""
            elif kind == "tool_result":
                entry.result, entry.text = piece.text, ""
                apart = before is None or before.kind != "tool_call" or before.call_id != piece.call_id
                calls[place] = PairedCall(entry, None, entry, place, apart)
            as_json = bool(calls) or kind in ("tool_call", "hand_off")
            blocks = prompt_blocks(place, entry) or [entry_block(place, entry, calls, rendered=as_json)]
        rule = None
        if piece.kind == "user" or before is None:
            rule = known[2] if known and known[2] else self._rule(turn)
        self._known[place] = (len(piece.text), blocks, rule)
        return blocks, rule

    @staticmethod
    def _rule(turn: int, *, ended: bool = False) -> Block:
        words: tuple[Line, ...] = () if ended else ((Span("running", "running"),),)
        return Block(f"t{turn}", "turn", f"turn {turn}", lambda: iter(words), turn, "strong")
