"""One streaming pane: an attempt's text as it is wrapped and scrolled, its head line. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.cells import cell_len

from tui_eval.case_names import short_providers
from tui_eval.guard.text import clip, visible
from tui_eval.model import Entry
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.state.lists.case_entry import reason_in_line
from tui_eval.tui.state.lists.telling_apart import RowName, row_names
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.fitting import fit, shorten, wait_words
from tui_eval.tui.state.text.stream_text import StreamText, Styled, pieces_of

Area = tuple[int, int, int, int]
"""x, y, width, height in cells."""
NAMED = 6
"""Cells of a case's name in a head, beside what tells it from others."""
FACT = 6
"""Cells that the first of a head's facts has."""
HEAD_STATUSES = ("passed", "failed", "error", "running", "retrying", "cancelled", "late")


@dataclass(slots=True)
class Fed:
    """What became of a pane when news was fed to it: nothing, everything is to be repainted, or only these
    cells (x, y, width within the pane's text)."""

    changed: bool = False
    whole: bool = False
    cells: list[tuple[int, int, int]] = field(default_factory=list)
    ended: bool = False


@dataclass(slots=True)
class Pane:
    """One attempt's pane: where it is, its text, and how far it is scrolled."""

    ref: int
    area: Area
    text: StreamText
    top: int = 0
    follow: bool = True
    fed: int = -1
    ended: bool = False
    head: str = ""

    @property
    def rows(self) -> int:
        """Lines of text that are seen."""
        return max(1, self.area[3] - 1)

    @property
    def tail(self) -> int:
        """The first line seen where the last one is."""
        return max(0, len(self.text.lines) - self.rows)

    def feed(self, run: RunView, symbols: formatting.Symbols) -> Fed:
        """Take what is new. A full pane jumps by half of its height."""
        live = run.live.get(self.ref)
        before, cut = len(self.text.lines), self.text.cut
        old_last = self.text.lines[-1] if before else ("", "")
        fed = Fed()
        if live is not None and live.version != self.fed:
            self.fed = live.version
            fed.changed = self.text.feed(live)
        row = run.attempts.get(self.ref)
        if row is not None and row.state == "done" and not self.ended:
            self.ended = fed.ended = fed.changed = True
            self.add_verdict(row, symbols)
        if not fed.changed:
            return fed
        shift = self.text.cut - cut
        self.top = max(0, self.top - shift)
        count = len(self.text.lines)
        if self.follow and count > self.top + self.rows:
            jump = max(1, self.rows // 2)
            self.top = max(0, count - self.rows + (jump if count - before < jump else 0))
            self.top = min(self.top, max(0, count - 1))
            fed.whole = True
        elif shift:
            fed.whole = True
        else:
            fed.cells = list(self._new_cells(before, old_last))
        return fed

    def complete(self, transcript: list[Entry], row: AttemptRow, symbols: formatting.Symbols) -> None:
        """The whole transcript of an attempt that is done, in place of what was seen of it."""
        self.text = StreamText(text_width(self.area), symbols.unicode)
        self.text.feed(pieces_of(transcript))
        self.add_verdict(row, symbols)
        self.top = self.tail if self.follow else min(self.top, self.tail)

    def add_verdict(self, row: AttemptRow, symbols: formatting.Symbols) -> None:
        """How it ended, and why where it did not pass."""
        outcome = row.outcome or "cancelled"
        style = {"passed": "good", "failed": "bad"}.get(outcome, "warn")
        facts = [f"{symbols.glyphs[outcome]} {outcome}", formatting.duration(row.duration_ms)]
        said = self.text.lines[-1][1] if self.text.lines else ""
        self.text.add(style, symbols.dot.join(fact for fact in facts if fact))
        if outcome != "passed" and (row.cause or row.message):
            # One line: all of it is a key away, what was said before it is looked for here.
            words = visible(reason_in_line(row.cause, row.message), newlines=False)
            if words != said:
                self.text.add("text", shorten(words, self.text.width))

    def _new_cells(self, before: int, old_last: Styled) -> Iterator[tuple[int, int, int]]:
        """Only the cells of the last lines that are new: (x, y, width)."""
        width, edge = self.area[2], pad(self.area[2])
        for index in range(max(self.top, before - 1), min(len(self.text.lines), self.top + self.rows)):
            style, text = self.text.lines[index]
            old_style, old = old_last if index == before - 1 else (style, "")
            start = 0
            if old_style == style:
                same = next((n for n, (a, b) in enumerate(zip(old, text, strict=False)) if a != b), None)
                start = cell_len(text[: min(len(old), len(text)) if same is None else same])
            end = max(cell_len(old), cell_len(text))
            if end > start:
                left = min(edge + start, width - 1)
                yield left, index - self.top, min(end - start, width - left)

    def line(self, y: int) -> Styled | None:
        """The y-th line seen; None below the last."""
        index = self.top + y
        return self.text.lines[index] if index < len(self.text.lines) else None

    def status(self, run: RunView | None, now: float) -> str:
        """The colour of its head's glyph: an outcome, a state, `late` near its time limit; `dim` where there
        is none."""
        row = run.attempts.get(self.ref) if run else None
        if (
            row is not None
            and row.state == "running"
            and formatting.is_late(row.started_at, row.ends_at, now)
        ):
            return "late"
        status = "running" if row is None else (row.outcome or "error") if row.state == "done" else row.state
        return status if status in HEAD_STATUSES else "dim"


def head_text(
    pane: Pane,
    run: RunView | None,
    symbols: formatting.Symbols,
    now: float,
    pinned: bool,
    called: RowName | None = None,
) -> str:
    """`● case name · agent · turn 2 · 1,234 tok · 12s of 30s`, the name cut first, what tells the case from
    others of the same name last; the agent where there are several and nothing else names it. `called`: what
    the list beside it calls it, beside the cases of the other panes. While a tool is at work, its name and
    for how long (`search 3s`); when the time limit is near, how much is left (`5s left`)."""
    row = run.attempts.get(pane.ref) if run else None
    if run is None or row is None:
        return ""
    case = run.cases.get(row.case_ref)
    width = pane.area[2] - pad(pane.area[2])
    status = (row.outcome or "cancelled") if row.state == "done" else row.state
    facts: list[tuple[int, str]] = []
    """How much each matters, and its words."""
    own = called or next(iter(row_names([(case.name, case.variant, "")] if case else [])), RowName(""))
    name, variant = own[:2]
    # The line above all panes names an agent that they share, the variant one that tells rows apart.
    shared = len(run.info.agents) < 2
    if case is not None and case.agent and width >= 50 and not shared and not _names(variant, case.agent):
        facts.append((1, clip(visible(case.agent, newlines=False), 18)))
    if row.turn and (row.turn > 1 or width >= 50):
        facts.append((2, f"turn {row.turn}" if width >= 50 else f"t{row.turn}"))
    live = run.live.get(pane.ref)
    call = live.pieces[-1] if live and live.pieces and row.state == "running" else None
    calling = call is not None and call.kind == "tool_call"
    if call is not None and calling:
        tool = visible(call.name, newlines=False)
        facts.append((7, f"{fit(tool, min(cell_len(tool), 16))} {formatting.clock(now - call.at)}"))
    output = row.output_tokens or (round(live.characters / 4) if live and live.characters else None)
    if output and (not calling or width >= 50):
        facts.append((3, f"{output:,} tok" if row.output_tokens else f"~{output:,} tok"))
    if row.state == "done":
        facts.append((5, formatting.duration(row.duration_ms)))
    elif row.started_at:
        times = _times(row, now, width)
        facts += [(4 if len(times) > 1 else 5, times[0]), *((8, left) for left in times[1:])]
    if pinned:
        facts.append((6, "pinned"))
    if not pane.follow:
        facts.append((9, "t follows"))
    telling = f"{symbols.dot}{variant}" if variant else ""
    number = f" #{row.attempt}" if row.attempt > 1 or (case and case.attempts > 1) else ""
    # What tells its case from others has the room first, then the facts, then the name.
    whole = width - 4 - cell_len(telling) - len(number)
    room = min(max(whole - cell_len(name), min(whole - NAMED, width // 3), FACT), width - 12)
    tail = _that_fit([fact for fact in facts if fact[1]], symbols.dot, room)
    if status in ("running", "retrying") and row.detail:
        detail = visible(clip(row.detail, 60), newlines=False)
        tail = (
            symbols.dot.join(filter(None, (detail, tail)))
            if width >= 60
            else wait_words(detail, max(whole - NAMED, FACT))
        )
    room = width - 4 - cell_len(tail)
    if room < 8:
        tail = _ended(shorten(tail, max(0, width - 12), sign=""), symbols.dot)
        room = width - 4 - cell_len(tail)
    return f"{symbols.glyphs.get(status, ' ')} {_named(own, symbols.dot if variant else '', number, room)}  {tail}"


def _names(variant: str, agent: str) -> bool:
    """Whether what tells rows apart names the agent, in short perhaps."""
    return agent in variant or short_providers([agent])[0] in variant


def _named(own: RowName, dot: str, number: str, room: int) -> str:
    """Name, what tells it from others, number of the attempt in so many cells."""
    name, variant = own.fitted(max(room - cell_len(dot) - len(number), 1))
    called = dot.join(filter(None, (name, variant))) if dot else name
    return fit(_ended(shorten(f"{called}{number}", room), dot), room)


def _ended(text: str, dot: str) -> str:
    """A text without a separator that nothing follows any more."""
    text = text.rstrip()
    return text.removesuffix(dot.strip()).rstrip() if dot.strip() else text


def _that_fit(facts: list[tuple[int, str]], dot: str, width: int) -> str:
    """The facts in a row; what matters least is left out until they fit, and the last one is cut."""
    left = list(facts)
    while len(left) > 1 and cell_len(dot.join(words for _, words in left)) > width:
        left.remove(min(left))
    return dot.join(words for _, words in left)


def _times(row: AttemptRow, now: float, width: int) -> list[str]:
    """How long it runs, and how much of its time limit that is; near its end, what is left."""
    began = row.started_at or now
    spent = formatting.clock(now - began)
    if not row.ends_at:
        return [spent]
    if formatting.is_late(began, row.ends_at, now):
        return [spent, f"{formatting.clock(max(0.0, row.ends_at - now))} left"]
    return [f"{spent}{' of ' if width >= 50 else '/'}{formatting.span(row.ends_at - began)}"]


def text_width(area: Area) -> int:
    """Cells of the text in a pane there: its edge, and a cell that stays free at the right, apart."""
    return area[2] - 1 - pad(area[2])


def pad(width: int) -> int:
    """Cells left of head and text: one in panes that have room for it."""
    return 1 if width > 60 else 0
