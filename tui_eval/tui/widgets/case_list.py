"""The list of cases: a folding tree with marks, outcome, trend and figures, good for 100,000 lines."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.style import Style
from textual.message import Message
from textual.strip import Strip

from tui_eval.guard.text import clip, visible
from tui_eval.tui.keys import bindings
from tui_eval.tui.state import figures
from tui_eval.tui.state.case_tree import Entry, Line, Tree
from tui_eval.tui.state.describing import FORMAT_NAMES
from tui_eval.tui.state.entries import ATTEMPT_STATUSES
from tui_eval.tui.state.stream_text import wrap
from tui_eval.tui.widgets.line_view import LineView
from tui_eval.tui.widgets.painting import fit, ink, line

STATUSES = tuple(status for status in figures.GLYPHS if status)
WORD = 9
"""Cells of the outcome's word; the one column that is never dropped."""

NAME = 34
"""Cells that a case's name has before a message beside it gets any."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The widths of the columns right of the name; 0: not shown. Each is preceded by a space."""

    word: int = WORD
    trend: int = 0
    attempts: int = 0
    tokens: int = 0
    cost: int = 0
    duration: int = 0
    age: int = 0

    @property
    def total(self) -> int:
        """Cells they take with their spaces."""
        widths = (self.word, self.trend, self.attempts, self.tokens, self.cost, self.duration, self.age)
        return sum(width + 1 for width in widths if width)


def columns_for(kind: Literal["suites", "run"], width: int, most_attempts: int = 1) -> Columns:
    """Which columns a list of this width has."""
    if kind == "run":
        attempts = min(10, most_attempts) if most_attempts > 1 else 0
        if attempts and width < 60:
            attempts = min(attempts, 5)
        return Columns(
            attempts=attempts,
            duration=6 if width >= 34 else 0,
            tokens=8 if width >= 100 else 0,
            cost=8 if width >= 110 else 0,
        )
    return Columns(
        attempts=min(5, most_attempts) if most_attempts > 1 and width >= 84 else 0,
        trend=12 if width >= 100 else 6 if width >= 44 else 0,
        age=4 if width >= 38 else 0,
        duration=6 if width >= 52 else 0,
        cost=8 if width >= 100 else 0,
    )


class CaseList(LineView):
    """Draws a `Tree`; posts `Opened` and `Rested`."""

    BINDINGS = bindings("list")
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
    CaseList { width: 1fr; }
    CaseList .cases--passed { color: $text-success; }
    CaseList .cases--failed { color: $text-error; }
    CaseList .cases--error { color: $text-warning; }
    CaseList .cases--flaky { color: $text-warning; }
    CaseList .cases--running { color: $text-primary; }
    CaseList .cases--retrying { color: $text-warning; }
    CaseList .cases--waiting { color: $text-muted; }
    CaseList .cases--cancelled { color: $text-muted; }
    CaseList .cases--skipped { color: $text-muted; }
    CaseList .cases--new { color: $text-muted; }
    CaseList .cases--dim { color: $text-muted; }
    CaseList:ansi .cases--dim { text-style: dim; }
    CaseList .cases--folder { text-style: bold; }
    CaseList .cases--problem { color: $text-error; }
    CaseList .cases--note { color: $text-warning; }
    CaseList .cases--mark { color: $accent; text-style: bold; }
    CaseList .cases--found { text-style: underline; }
    CaseList .cases--cursor { background: $surface-lighten-2; text-style: bold; }
    CaseList .cases--cursor-blurred { background: $surface; }
    CaseList:ansi .cases--cursor { text-style: reverse; }
    CaseList:ansi .cases--cursor-blurred { text-style: underline; }
    """

    class Opened(Message):
        """Enter was pressed on a case, a problem or a suite without lines below it."""

        def __init__(self, line: Line) -> None:
            super().__init__()
            self.line = line

    class Nothing(Message):
        """Enter was pressed in an empty list."""

    class Folded(Message):
        """Something is to be folded or unfolded."""

        def __init__(self, key: str, folded: bool) -> None:
            super().__init__()
            self.key = key
            self.folded = folded

    class Moved(Message):
        """The cursor is elsewhere."""

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, CaseList.Moved)

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
        self.most_attempts = 1
        self.now = time.time
        self._columns = Columns()
        self._columns_at = (-1, 0)

    # -- what it shows

    @property
    def line_count(self) -> int:
        """Lines of the tree as folded."""
        return len(self.cases.lines)

    @property
    def current_line(self) -> Line | None:
        """The line under the cursor."""
        return self.cases.lines[self.cursor] if self.cursor < len(self.cases.lines) else None

    @property
    def current_entry(self) -> Entry | None:
        """The case under the cursor."""
        found = self.current_line
        return found.entry if found else None

    def show(self, tree: Tree, *, keep: bool = True) -> None:
        """Show another tree; the cursor stays on its line where `keep` and the line is still there.
        Lines that look the same are not repainted."""
        old_line = self.current_line
        offset = self.cursor - self.top
        self.cases = tree
        if keep and old_line is not None:
            index = tree.index.get(old_line.key)
            if index is None:
                for parent in reversed(old_line.above):
                    index = tree.index.get(parent.key)
                    if index is not None:
                        break
            if index is not None:
                self.cursor = index
        height = max(1, self.size.height)
        self.cursor = min(self.cursor, max(0, len(tree.lines) - 1))
        self.top = min(max(0, self.cursor - offset), max(0, len(tree.lines) - height))
        self.repaint()
        self.moved()

    def status_changed(self, key: str, before: str, after: str) -> list[int]:
        """An entry's status changed in place; returns the lines to repaint."""
        return self.cases.update(key, before, after)

    def tick(self) -> None:
        """Repaint the running times in sight, nothing else."""
        columns = self._layout(self.size.width)
        if not columns.duration:
            return
        self.repaint(
            y
            for y, shown in enumerate(self.cases.lines[self.top : self.top + self.size.height])
            if shown.entry is not None and shown.entry.started_at
        )

    def go_to(self, key: str) -> bool:
        """Put the cursor on a line; False where it is not shown."""
        index = self.cases.index.get(key)
        if index is None:
            return False
        self.touched = True
        self.show_cursor(index)
        return True

    def moved(self) -> None:
        """Tell the screen."""
        self.post_message(self.Moved())

    def find(self, needle: str, step: int, *, from_here: bool = False) -> bool:
        """Go to the next line (or, with `step` -1, the one before) that contains the text."""
        before, self.needle = self.needle, needle.lower()
        if before != self.needle:
            self.repaint()
        lines = self.cases.lines
        if not self.needle or not lines:
            return False
        start = self.cursor if from_here else self.cursor + step
        for distance in range(len(lines)):
            index = (start + step * distance) % len(lines)
            found = lines[index]
            if self.needle in found.name.lower() or (
                found.entry is not None and self.needle in found.entry.case_id.lower()
            ):
                self.touched = True
                self.show_cursor(index)
                return True
        return False

    # -- keys

    def action_open(self) -> None:
        """Open the case; fold or unfold what holds cases."""
        found = self.current_line
        if found is None:
            self.post_message(self.Nothing())
            return
        if found.kind == "folder" or (found.kind == "suite" and (found.folded or self._has_children(found))):
            self.post_message(self.Folded(found.key, not found.folded))
        else:
            self.post_message(self.Opened(found))

    def action_unfold(self) -> None:
        """Unfold; on what is unfolded, go to its first line; on a case, open it."""
        found = self.current_line
        if found is None:
            return
        if found.folded:
            self.post_message(self.Folded(found.key, False))
        elif found.kind in ("folder", "suite"):
            if self._has_children(found):
                self.show_cursor(self.cursor + 1)
        else:
            self.post_message(self.Opened(found))

    def action_fold(self) -> None:
        """Fold; on what cannot be folded, go to what holds it."""
        found = self.current_line
        if found is None:
            return
        if found.kind in ("folder", "suite") and not found.folded and self._has_children(found):
            self.post_message(self.Folded(found.key, True))
        elif found.above:
            self.go_to(found.above[-1].key)

    def action_mark(self) -> None:
        """Mark the case, or every case of the folder or suite, and go on to the next line."""
        found = self.current_line
        if found is None:
            return
        self.touched = True
        if found.entry is not None:
            self.marks ^= {found.entry.key}
            self.refresh_lines((self.cursor,))
        else:
            keys = {entry.key for entry in self.below(found)}
            self.marks = self.marks - keys if keys <= self.marks else self.marks | keys
            self.repaint()
        self.show_cursor(self.cursor + 1)
        self.moved()

    def action_mark_all(self) -> None:
        """Mark every case shown, or none."""
        keys = {entry.key for entry in self.cases.shown}
        self.marks = set() if self.marks and keys <= self.marks else set(keys)
        self.repaint()
        self.moved()

    def below(self, found: Line) -> list[Entry]:
        """The cases shown that a folder or suite holds."""
        if found.kind == "folder":
            return [entry for entry in self.cases.shown if entry.suite.startswith(f"{found.path}/")]
        return [entry for entry in self.cases.shown if entry.suite == found.path]

    def _has_children(self, found: Line) -> bool:
        following = self.cursor + 1
        return following < len(self.cases.lines) and self.cases.lines[following].depth > found.depth

    def watch_has_focus(self, _: bool) -> None:
        """The cursor looks different when keys go elsewhere."""
        self.refresh_lines((self.cursor,))

    # -- drawing

    def _style(self, name: str) -> Style:
        if name.startswith("cursor"):
            return self.get_component_rich_style(f"cases--{name}", partial=True)
        return ink(self.get_component_rich_style(f"cases--{name}"))

    def _layout(self, width: int) -> Columns:
        at = (width, self.most_attempts)
        if at != self._columns_at:
            self._columns_at = at
            self._columns = columns_for(self.kind, width, self.most_attempts)
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
            text = visible(clip(place + shown.problem.message, 400), newlines=False)
            parts.append((fit(f"{indent}! {text}", width - 1), style))
        else:
            parts += self._group(shown, indent, width - 1)
        return line(parts, width, base)

    def _case(
        self, shown: Line, entry: Entry, indent: str, width: int, base: Style
    ) -> list[tuple[str, Style]]:
        columns = self._layout(width + 1)
        status = entry.status
        flaky = entry.flaky and status != "running"
        style = self._style(status or "new")
        word = f"{status}" if not (flaky and status in ("passed", "failed")) else "flaky"
        if flaky and word == "flaky":
            style = self._style("flaky")
            if len(entry.attempts) < 10:
                word = f"flaky {entry.attempts.count('p')}/{len(entry.attempts)}" if entry.attempts else word
        glyph = self.symbols.glyphs.get(status, " ")
        name_style = self._style("found") if self.needle and self.needle in entry.name.lower() else Style()
        room = width - columns.total - len(indent) - 2
        name = visible(clip(entry.name, 400), newlines=False)
        parts: list[tuple[str, Style]] = [(f"{indent}{glyph} ", style)]
        aside = ""
        if self.kind == "run" and entry.message and status in ("failed", "error"):
            aside = entry.message
        elif not shown.above:
            aside = entry.suite
        aside = visible(clip(" ".join(aside[:400].split()), 200), newlines=False)
        wide = min(cell_len(name), max(NAME, room * 3 // 5))
        if entry.variant:
            variant = visible(clip(entry.variant.partition(":")[0], 14), newlines=False)
            wide = min(max(wide, cell_len(name) + 1 + cell_len(variant)), max(NAME, room * 3 // 5), room)
            name = f"{fit(name, min(cell_len(name), wide - 1 - cell_len(variant)))} {variant}"
        wide += 2
        left = room - wide
        if aside and left >= 12:
            parts += [(fit(name, wide - 2) + "  ", name_style), (fit(aside, left), self._style("dim"))]
        else:
            parts.append((fit(name, room), name_style))
        parts.append((" " + fit(word, columns.word), style))
        dim = self._style("dim")
        if columns.trend:
            parts.append(
                (" " + fit(self.symbols.trend(entry.trend, columns.trend), columns.trend, right=True), dim)
            )
        if columns.attempts:
            parts.append((" ", base))
            parts += self._attempts(entry.attempts, columns.attempts)
        if columns.tokens:
            parts.append((" " + fit(figures.count(entry.tokens), columns.tokens, right=True), dim))
        if columns.cost:
            parts.append((" " + fit(figures.cost(entry.cost), columns.cost, right=True), dim))
        if columns.duration:
            if entry.started_at and status in ("running", "retrying"):
                time_text = figures.clock(self.now() - entry.started_at)
            else:
                time_text = figures.duration(entry.duration_ms)
            parts.append((" " + fit(time_text, columns.duration, right=True), dim))
        if columns.age:
            old = figures.age(self.now() - entry.finished_at) if entry.finished_at and status else ""
            parts.append((" " + fit(old, columns.age, right=True), dim))
        return parts

    def _attempts(self, attempts: str, width: int) -> list[tuple[str, Style]]:
        """`✓✓✗`, or `7/10 ✓` where they do not fit."""
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
        for status in ("failed", "error", "running", "retrying", "passed"):
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
