"""How a line of the list of cases is drawn: outcome, name, note, trend and figures in columns."""

from __future__ import annotations

import time
from dataclasses import astuple
from typing import Literal

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from tui_eval.guard.text import clip, visible
from tui_eval.store.notes import HumanNote
from tui_eval.tui.state import figures
from tui_eval.tui.state.case_entry import Entry
from tui_eval.tui.state.case_tree import Line, Tree
from tui_eval.tui.state.describing import FORMAT_NAMES
from tui_eval.tui.state.entries import ATTEMPT_STATUSES
from tui_eval.tui.state.noting import note_sign
from tui_eval.tui.state.reasons import line_reason, short_detail
from tui_eval.tui.state.stream_text import wrap
from tui_eval.tui.widgets.case_columns import ASIDE, NAME, WORD, Columns, columns_for
from tui_eval.tui.widgets.line_view import LineView
from tui_eval.tui.widgets.painting import fit, ink, line, tail

STATUSES = tuple(status for status in figures.GLYPHS if status)


class CaseLines(LineView):
    """Draws the lines of a `Tree`; what is done with them is in `CaseList`."""

    COMPONENT_CLASSES = {
        *(f"cases--{status}" for status in STATUSES),
        "cases--cursor",
        "cases--cursor-blurred",
        "cases--dim",
        "cases--folder",
        "cases--problem",
        "cases--note",
        "cases--mark",
        "cases--found",
        "cases--new",
    }
    DEFAULT_CSS = """
    CaseLines { width: 1fr; }
    CaseLines .cases--passed { color: $text-success; }
    CaseLines .cases--failed { color: $text-error; }
    CaseLines .cases--error { color: $text-warning; }
    CaseLines .cases--flaky { color: $text-warning; }
    CaseLines .cases--running { color: $text-primary; }
    CaseLines .cases--retrying { color: $text-warning; }
    CaseLines .cases--waiting { color: $text-muted; }
    CaseLines .cases--cancelled { color: $text-muted; }
    CaseLines .cases--skipped { color: $text-muted; }
    CaseLines .cases--new { color: $text-muted; }
    CaseLines .cases--dim { color: $text-muted; }
    CaseLines:ansi .cases--dim { text-style: dim; }
    CaseLines .cases--folder { text-style: bold; }
    CaseLines .cases--problem { color: $text-error; }
    CaseLines .cases--note { color: $text-warning; }
    CaseLines .cases--mark { color: $text-accent; text-style: bold; }
    CaseLines .cases--found { text-style: underline; }
    CaseLines .cases--cursor { background: $surface-lighten-2; text-style: bold; }
    CaseLines .cases--cursor-blurred { background: $surface; }
    CaseLines:ansi .cases--cursor { text-style: reverse; }
    CaseLines:ansi .cases--cursor-blurred { text-style: underline; }
    """

    def __init__(
        self, kind: Literal["suites", "run"], symbols: figures.Symbols, *, classes: str | None = None
    ) -> None:
        super().__init__(classes=classes)
        self.kind: Literal["suites", "run"] = kind
        self.symbols = symbols
        self.cases = Tree([], [], 0, {}, {})
        self.marks: set[str] = set()
        self.needle = ""
        self.empty: list[str] = []
        """What an empty list says, one line each."""
        self.now = time.time
        self._columns = Columns()
        self._columns_at: tuple[object, ...] = ()

    @property
    def line_count(self) -> int:
        """Lines of the tree as folded."""
        return len(self.cases.lines)

    def _style(self, name: str) -> Style:
        if name.startswith("cursor"):
            return self.get_component_rich_style(f"cases--{name}", partial=True)
        return ink(self.get_component_rich_style(f"cases--{name}"))

    def layout_for(self, width: int) -> Columns:
        """The columns at this width."""
        extent = self.cases.extent
        at = (width, *astuple(extent))
        if at != self._columns_at:
            self._columns_at = at
            self._columns = columns_for(self.kind, width, extent)
        return self._columns

    def draw_empty(self, y: int, width: int) -> Strip:
        """What to press, where there is nothing."""
        base = self.rich_style
        if self.cases.lines or not self.empty:
            return Strip.blank(width, base)
        lines = [part for text in self.empty for part in wrap(text, max(10, width - 4))]
        if not 1 <= y <= len(lines):
            return Strip.blank(width, base)
        return line([(f"  {lines[y - 1]}", self._style("dim"))], width, base)

    def draw(self, index: int, width: int) -> Strip:
        """One line."""
        shown = self.cases.lines[index]
        base = self.rich_style
        if index == self.cursor:
            base = base + self._style("cursor" if self.has_focus else "cursor-blurred")
        marked = shown.entry is not None and shown.entry.key in self.marks
        parts: list[tuple[str, Style]] = [(self.symbols.marked if marked else " ", self._style("mark"))]
        indent = " " * min(2 * shown.depth, 8)
        if shown.kind == "case" and shown.entry is not None:
            parts += self._case(shown, shown.entry, indent, width - 1, base)
        elif shown.kind == "problem" and shown.problem is not None:
            style = self._style("problem" if shown.problem.level == "error" else "note")
            place = f"line {shown.problem.line}: " if shown.problem.line else ""
            if shown.problem.path not in ("", shown.path):  # a file that the suite names
                name = shown.problem.path.rpartition("/")[2]
                place = f"{name}:{shown.problem.line}: " if place else f"{name}: "
            key, words = shown.problem.key.rpartition(".")[2], shown.problem.message
            if key and "[" not in key and key not in words:  # which one is misspelt
                place += f"{key}: "
            text = visible(clip(place + words, 400), newlines=False)
            parts.append((fit(f"{indent}! {text}", width - 1), style))
        else:
            parts += self._group(shown, indent, width - 1)
        return line(parts, width, base)

    def _case(
        self, shown: Line, entry: Entry, indent: str, width: int, base: Style
    ) -> list[tuple[str, Style]]:
        columns = self.layout_for(width + 1)
        status = entry.status
        flaky = entry.flaky and status != "running"
        style = self._style(status or "new")
        word = f"{status}" if not (flaky and status in ("passed", "failed")) else "flaky"
        if flaky and word == "flaky":
            style = self._style("flaky")
            passed, of = (
                (entry.attempts.count("p"), len(entry.attempts)) if entry.attempts else entry.ratio or (0, 0)
            )
            if 0 < of < 10 and columns.word >= WORD:
                word = f"flaky {passed}/{of}"
        glyph = self.symbols.glyphs.get(status, " ")
        room = width - columns.total - len(indent) - 2
        name = visible(clip(entry.name, 400), newlines=False)
        parts: list[tuple[str, Style]] = [(f"{indent}{glyph} ", style)]
        said: list[tuple[str, Style]] = []
        if entry.note is not None:
            said = [self._note(entry.note, room - min(cell_len(name), 24))]
            room -= cell_len(said[0][0])
        aside, message = self._aside(shown, entry)
        variant = visible(clip(entry.variant, 100), newlines=False) if entry.variant else ""
        variant = f"{self.symbols.dot}{variant}" if variant else ""
        wide = cell_len(name) + cell_len(variant)
        # A reason begins in one column, later only where that shows a whole name and all of it; where a case
        # comes from is said in what its name leaves.
        least = max(NAME, room * 3 // 5)
        spare = columns.attempts + 1 if columns.attempts and len(entry.attempts) < 2 else 0
        room += spare
        beside = wide if not message or wide <= room - 2 - cell_len(aside) else least
        if aside and room - min(wide, beside) - 2 >= ASIDE:
            wide = min(wide, beside)
            if entry.status == "retrying":  # its end, when it goes on, is what one looks for
                wide = max(NAME // 2, min(wide, room - 2 - cell_len(aside)))
            elif message:
                wide = max(wide, min(columns.name, least, room - spare - 2 - ASIDE))
            left = room - wide - 2
            # Where a case comes from is told by the end of its path, in a column of its own.
            shown_aside = fit(aside, left) if message else fit(tail(aside, left), left, right=True)
            parts += [*self._named(name, variant, wide), (f"  {shown_aside}", self._style("dim"))]
        else:
            parts += self._named(name, variant, room)
        parts += said
        if columns.attempts and not spare:
            parts.append((" ", base))
            parts += self._attempts(entry.attempts, columns.attempts)
        if columns.word:
            parts.append((" " + fit(word, columns.word), style))
        dim = self._style("dim")
        if columns.trend:
            parts.append(
                (" " + fit(self.symbols.trend(entry.trend, columns.trend), columns.trend, right=True), dim)
            )
        if columns.tokens:
            parts.append((" " + fit(figures.count(entry.tokens), columns.tokens, right=True), dim))
        if columns.cost:
            money = "cached" if entry.cached and not entry.cost else figures.cost(entry.cost)
            parts.append((" " + fit(money, columns.cost, right=True), dim))
        if columns.duration:
            time_text, late = self._time(entry, columns.duration)
            time_style = self._style("retrying") if late else dim
            parts.append((" " + fit(time_text, columns.duration, right=True), time_style))
        if columns.age:
            old = figures.age(self.now() - entry.finished_at) if entry.finished_at and status else ""
            parts.append((" " + fit(old, columns.age, right=True), dim))
        return parts

    def _aside(self, shown: Line, entry: Entry) -> tuple[str, bool]:
        """What is said beside a name, and whether that is a message: why it failed or waits, else where the
        case comes from, unless the tree says it."""
        words = ""
        if self.kind == "run" and entry.status in ("failed", "error"):
            words = line_reason(entry.message)
        elif self.kind == "run" and entry.status == "retrying":
            words = short_detail(entry.detail)
        message = bool(words)
        if not message and not shown.above:
            words = entry.suite
        return visible(clip(" ".join(words[:400].split()), 200), newlines=False), message

    def _named(self, name: str, variant: str, width: int) -> list[tuple[str, Style]]:
        """A name and what tells it from others, in so many cells; what is looked for is marked in it."""
        if cell_len(name) + cell_len(variant) > width:
            variant = fit(variant, min(cell_len(variant), max(width * 3 // 5, width - cell_len(name))))
        name = fit(name, min(cell_len(name), max(0, width - cell_len(variant))))
        left = width - cell_len(name)
        rest = [(fit(variant, left), self._style("dim"))]
        at = name.lower().find(self.needle) if self.needle else -1
        if at < 0:
            return [(name, Style()), *rest]
        end = at + len(self.needle)
        return [(name[:at], Style()), (name[at:end], self._style("found")), (name[end:], Style()), *rest]

    def _time(self, entry: Entry, width: int) -> tuple[str, bool]:
        """How long it took, or runs, with its time limit (`12s/30s`); whether that is nearly over, which `!`
        says too."""
        if not entry.started_at or entry.status not in ("running", "retrying"):
            return figures.duration(entry.duration_ms), False
        now = self.now()
        words, late = (
            figures.clock(now - entry.started_at),
            figures.is_late(entry.started_at, entry.ends_at, now),
        )
        if entry.ends_at:
            whole = f"{words}/{figures.span(entry.ends_at - entry.started_at)}{'!' if late else ''}"
            if len(whole) <= width:
                return whole, late
        return f"{words}!" if late else words, late

    def _note(self, note: HumanNote, room: int) -> tuple[str, Style]:
        """A person's note: ` ★ wrong …`; a letter for each word where there is less room."""
        star = self.symbols.star
        sign = note_sign(note, star)
        if cell_len(sign) + 1 > room:
            sign = "".join(word if word in (star, "…", "...") else word[0] for word in sign.split())
        style = {"right": "passed", "wrong": "failed"}.get(note.verdict or "", "mark")
        return f" {sign}", self._style(style)

    def _attempts(self, attempts: str, width: int) -> list[tuple[str, Style]]:
        """`✓✓✗`, or `7/10 ✓` where they do not fit."""
        if len(attempts) < 2:  # the glyph in front says it
            return [(" " * width, Style())]
        if len(attempts) > width:
            passed = attempts.count("p")
            return [(fit(f"{passed}/{len(attempts)}", width), self._style("dim"))]
        parts = [
            (self.symbols.glyphs[ATTEMPT_STATUSES[letter]], self._style(ATTEMPT_STATUSES[letter]))
            for letter in attempts
        ]
        return [*parts, (" " * (width - len(attempts)), Style())]

    def _group(self, shown: Line, indent: str, width: int) -> list[tuple[str, Style]]:
        """A folder or suite: its name, and at the right its format and what became of its cases."""
        dim = self._style("dim")
        fold = self.symbols.folded if shown.folded else self.symbols.unfolded
        if shown.kind == "suite" and not shown.counts.total() and not (shown.suite and shown.suite.problems):
            fold = " "
        right: list[tuple[str, Style]] = []
        for status in ("failed", "error", "running", "retrying", "passed", "cancelled"):
            if shown.counts[status]:
                right.append((f" {self.symbols.glyphs[status]}{shown.counts[status]:,}", self._style(status)))
        errors = sum(problem.level == "error" for problem in shown.suite.problems) if shown.suite else 0
        if errors:
            right.insert(0, (f" {errors} problem{'s' if errors > 1 else ''}", self._style("problem")))
        total = shown.counts.total()
        badge = FORMAT_NAMES.get(shown.suite.format, "") if shown.suite and width >= 44 else ""
        tail = f" {badge}" + (f"{self.symbols.dot if badge else ' '}{total:,}" if total else "")
        used = sum(len(text) for text, _ in right)
        if len(indent) + 2 + used + len(tail) + 12 > width:
            tail = ""
        room = max(4, width - len(indent) - 2 - used - len(tail))
        name = fit(visible(clip(shown.name, 400), newlines=False), room)
        parts = [(f"{indent}{fold} ", dim), (name, self._style("folder")), (tail, dim), *right]
        return parts
