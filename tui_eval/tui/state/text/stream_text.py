"""The lines of a streaming pane, wrapped as the text arrives.

Pure. Only the last line is ever wrapped again: what stands above it is settled, so that news costs
what is new and a terminal is sent only the lines that changed.
"""

from __future__ import annotations

import json

from tui_eval.guard.text import clip, visible
from tui_eval.model import Entry
from tui_eval.tui.state.case.agent_tree import HandOffs, said_again, short_name
from tui_eval.tui.state.case.prompt_view import asked
from tui_eval.tui.state.runs.run_view import LiveAttempt, LivePiece
from tui_eval.tui.state.text.fitting import wrap
from tui_eval.tui.state.text.formatting import duration

LINES_KEPT = 2_000
VALUE_LIMIT = 300
SMALL = 60
"""Cells below which a pane is small: prompts take two lines, arguments and results three."""
DEEPEST = 4
"""Hand-offs by which a line is indented at most."""
WOULD_BE_SENT = "would be sent: "
"""Before the message of a step's turn that waits for the person."""
_OF_HELPERS = ("tool_call", "tool_result", "hand_off", "error")
"""Besides texts, what is said to be whose where a helper does it."""
Styled = tuple[str, str]
"""A style's name and one line of text."""


class StreamText:
    """The wrapped lines of one attempt's live text at one width."""

    def __init__(self, width: int, unicode: bool = True) -> None:
        self.width = max(8, width)
        # What the person knows, or can open, leaves room in a small pane for what is new.
        self._limit = min(VALUE_LIMIT, (3 if self.width < SMALL else 6) * self.width)
        self._call, self._result, self._to = ("▸", "◂", "→") if unicode else (">", "<", "->")
        self._signs = {} if unicode else {"✓": "P", "✗": "F", "◌": "."}
        self.lines: list[Styled] = []
        self.cut = 0
        """Lines that fell away at the front."""
        self._next = 0
        self._open: tuple[int, int] | None = None
        self._started: dict[str, tuple[str, float]] = {}
        self._speaker = ""
        self._handed = HandOffs()
        self._indent = ""
        """Before each line of the open piece: how far below the agent in front its speaker stands."""

    def feed(self, live: LiveAttempt) -> bool:
        """Take what is new; says whether any line changed."""
        changed = False
        end = live.dropped + len(live.pieces)
        start = max(self._next - 1 if self._open else self._next, live.dropped)
        for number in range(start, end):
            piece = live.pieces[number - live.dropped]
            if self._open is not None and self._open[0] == number:
                fresh = piece.text[self._open[1] :]
                if fresh:
                    self._append(_style(piece), fresh)
                    self._open = (number, len(piece.text))
                    changed = True
                continue
            if number < self._next:
                continue
            self._begin(piece, number)
            self._next = number + 1
            changed = True
        if len(self.lines) > LINES_KEPT * 2:
            drop = len(self.lines) - LINES_KEPT
            del self.lines[:drop]
            self.cut += drop
        return changed

    def add(self, style: str, text: str, indent: str = "") -> None:
        """A line of the pane's own (its verdict), wrapped."""
        self._open = None
        for paragraph in text.split("\n"):
            lines = wrap(paragraph, self.width - len(indent))
            self.lines.extend((style, f"{indent}{line}") for line in lines)

    def _begin(self, piece: LivePiece, number: int) -> None:
        self._open = None
        if piece.kind == "user":
            self._handed, self._speaker = HandOffs(), ""
        owner = self._handed.owner(piece.agent)
        indent = self._indent = "  " * min(owner.depth if owner is not None else 0, DEEPEST)
        speaks = piece.kind in ("assistant", "reasoning")
        if speaks or (owner is not None and piece.kind in _OF_HELPERS):
            if piece.agent and piece.agent != self._speaker:
                # A helper's callers stand above it.
                name = short_name(piece.agent) if owner is not None else piece.agent
                self.add("agent", f"{visible(name, newlines=False)}:", indent)
            self._speaker = piece.agent
        elif piece.kind in _OF_HELPERS and piece.agent != self._speaker:
            self._speaker = ""
        if speaks:
            self.lines.append((_style(piece), indent))
            self._append(_style(piece), piece.text)
            self._open = (number, len(piece.text))
            return
        limit = 2 * self.width - 3 if piece.kind == "user" and self.width < SMALL else self._limit
        said = asked(piece.text) if piece.kind == "user" else piece.text
        text = clip(visible(" ".join(said[:4000].split()), newlines=False), limit)
        name = visible(piece.name, newlines=False)
        match piece.kind:
            case "user":
                self.add("user", f"> {text}")
            case "tool_call":
                self._started[piece.call_id] = (name, piece.at)
                # A name and arguments without a space do not leave their sign alone in a line.
                first, *rest = wrap(f"{name}({text})", self.width - 2 - len(indent))
                self.lines.append(("tool", f"{indent}{self._call} {first}"))
                self.lines.extend(("tool", f"{indent}  {line}") for line in rest)
            case "tool_result":
                _, since = self._started.pop(piece.call_id, (name, piece.at))
                took = duration(max(0.0, piece.at - since) * 1000)
                self.add("result", f"{self._result} {took} {text}", indent)
            case "hand_off":
                asked_for = "" if text in ("", "null", "{}") else f" {text}"
                to = f"{short_name(name)}{asked_for}" if name else text
                self.add("handoff", f"{self._to} {to}", indent)
                if piece.name:
                    self._handed.add(piece.agent, piece.name, number)
            case "step":
                self.add("dim", f"{WOULD_BE_SENT}{text}", indent)
            case "verdict":
                for line in piece.text.split("\n"):
                    mark, style, words = so_far(line)
                    shown = visible(words, newlines=False)
                    self.add(style, f"{self._signs.get(mark, mark)} {shown}", indent)
            case "retry":
                self.add("warn", text, indent)
            case "error":
                self.add("bad", text, indent)
            case _:
                self.add("dim", text, indent)

    def _append(self, style: str, fresh: str) -> None:
        fresh = visible(fresh).replace("\t", "    ")
        first, *rest = fresh.split("\n")
        _, tail = self.lines.pop()
        indent = self._indent
        for paragraph in (tail[len(indent) :] + first, *rest):
            lines = wrap(paragraph, self.width - len(indent))
            self.lines.extend((style, f"{indent}{line}") for line in lines)


def so_far(line: str) -> tuple[str, str, str]:
    """What a step says of one assertion after a turn (`passed: …`, `later: so far yes: …`): its sign, its style and the
    words."""
    word, _, words = line.partition(": ")
    mark, style = {"passed": ("✓", "good"), "failed": ("✗", "bad")}.get(word, ("◌", "dim"))
    return mark, style, words


def pieces_of(transcript: list[Entry]) -> LiveAttempt:
    """A finished transcript as if it had just been said: the live rows of an attempt are dropped when
    it is done, its last words often before a viewer has read them."""
    turns: dict[int, list[tuple[int, Entry]]] = {}
    for number, entry in enumerate(transcript):
        turns.setdefault(entry.turn, []).append((number, entry))
    again = {said_again(of_turn) for of_turn in turns.values()}
    pieces = [
        LivePiece(
            number,
            entry.kind,
            entry.agent,
            _words(entry),
            entry.name,
            entry.call_id or "",
            (entry.started_at or 0.0) + (entry.duration_ms or 0.0) / 1000 * (entry.kind == "tool_result"),
        )
        for number, entry in enumerate(transcript)
        if number not in again
    ]
    return LiveAttempt(pieces)


def _words(entry: Entry) -> str:
    value = {
        "tool_call": entry.arguments,
        "hand_off": entry.arguments,
        "tool_result": entry.error or entry.result,
    }.get(entry.kind)
    if value is None:
        return entry.text or entry.error or ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _style(piece: LivePiece) -> str:
    return "reasoning" if piece.kind == "reasoning" else "text"
