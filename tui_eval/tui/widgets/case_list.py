"""The list of cases: a folding tree with marks, outcome, trend and figures, good for 100,000 lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import Literal

from rich.cells import cell_len
from rich.style import Style
from textual.message import Message
from textual.strip import Strip

from tui_eval.formats import title_of
from tui_eval.guard.text import clip, visible
from tui_eval.store.notes import HumanNote
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import bindings
from tui_eval.tui.state.case.noting import note_sign
from tui_eval.tui.state.lists.case_entry import CaseRow, Extent
from tui_eval.tui.state.lists.case_tree import Tree, TreeLine
from tui_eval.tui.state.lists.entries import ATTEMPT_STATUSES
from tui_eval.tui.state.lists.reasons import line_reason, short_detail
from tui_eval.tui.state.lists.telling_apart import NOT_AT_ALL, cut, shares
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.fitting import end_of, fit, wrap
from tui_eval.tui.widgets.line_view import LineView
from tui_eval.tui.widgets.painting import ink, line

# -- How a line of the list of cases is drawn: outcome, name, note, trend and figures in columns.


# -- The columns of a list of cases: which there are at a width, and how wide each is.


WORD = 9
"""Cells of an outcome's word with how often a flaky case passed, `flaky 2/3`."""

WORDS_FROM = 44
"""Columns from which a line of a run says its outcome as a word too (ux.md: glyph, word, colour); with fewer
there is no room for anything beside a name."""

TIMES_FROM = 56
"""Columns from which it says how long it took: with fewer the reason has the room, unless
a time limit is near, which must be seen before it strikes."""

NAME = 18
"""Cells that a case's name has before a message beside it gets any."""

ASIDE = 12
"""Cells below which nothing is said beside a name."""

REASON = 8
"""The same of why it failed: `lacks "2…` says more than the end of a name."""


@dataclass(frozen=True, slots=True)
class CaseColumns:
    """The widths of the columns right of the name; 0: not shown. Each is preceded by a space. `name` is
    where what is said beside a name begins at the latest."""

    word: int = 0
    trend: int = 0
    attempts: int = 0
    tokens: int = 0
    cost: int = 0
    duration: int = 0
    age: int = 0
    name: int = 0

    @property
    def total(self) -> int:
        """Cells they take with their spaces."""
        widths = (self.word, self.trend, self.attempts, self.tokens, self.cost, self.duration, self.age)
        return sum(width + 1 for width in widths if width)


def columns_for(
    kind: Literal["suites", "run"], width: int, extent: Extent, *, words: bool = True
) -> CaseColumns:
    """Which columns a list of this width has: those that fit, and that any of its cases fills. Outcomes are
    said as `words` where glyphs are letters."""
    many = extent.attempts if extent.attempts > 1 else 0
    word = max(extent.word, len("flaky") if extent.flaky else 0) if words else 0
    if kind == "run":
        time = (9 if width >= 60 else 8) if extent.limit else 6
        return CaseColumns(
            word=word if width >= WORDS_FROM else 0,
            attempts=min(10 if width >= 60 else 5, many),
            duration=time if width >= (WORDS_FROM if extent.limit else TIMES_FROM) else 0,
            tokens=8 if width >= 100 and extent.tokens else 0,
            cost=8 if width >= 110 and extent.cost else 0,
            name=extent.name,
        )
    return CaseColumns(
        word=WORD if extent.flaky and words else word,
        attempts=min(5, many) if width >= 84 else 0,
        trend=min(extent.trend, 12 if width >= 100 else 6 if width >= 44 else 0),
        age=4 if width >= 38 and extent.age else 0,
        duration=6 if width >= 52 and extent.duration else 0,
        cost=8 if width >= 100 and extent.cost else 0,
        name=extent.name,
    )


STATUSES = tuple(status for status in formatting.GLYPHS if status)


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
        self, kind: Literal["suites", "run"], symbols: formatting.Symbols, *, classes: str | None = None
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
        self._columns = CaseColumns()
        self._columns_at: tuple[object, ...] = ()

    @property
    def line_count(self) -> int:
        """Lines of the tree as folded."""
        return len(self.cases.lines)

    def style(self, name: str) -> Style:
        if name.startswith("cursor"):
            return self.get_component_rich_style(f"cases--{name}", partial=True)
        return ink(self.get_component_rich_style(f"cases--{name}"))

    def layout_for(self, width: int) -> CaseColumns:
        """The columns at this width."""
        extent = self.cases.extent
        at = (width, *astuple(extent))
        if at != self._columns_at:
            self._columns_at = at
            self._columns = columns_for(self.kind, width, extent, words=not self.symbols.unicode)
        return self._columns

    def draw_empty(self, y: int, width: int) -> Strip:
        """What to press, where there is nothing."""
        base = self.rich_style
        if self.cases.lines or not self.empty:
            return Strip.blank(width, base)
        lines = [part for text in self.empty for part in wrap(text, max(10, width - 4))]
        if not 1 <= y <= len(lines):
            return Strip.blank(width, base)
        return line([(f"  {lines[y - 1]}", self.style("dim"))], width, base)

    def draw(self, index: int, width: int) -> Strip:
        """One line."""
        shown = self.cases.lines[index]
        base = self.rich_style
        if index == self.cursor:
            base = base + self.style("cursor" if self.has_focus else "cursor-blurred")
        marked = shown.entry is not None and shown.entry.key in self.marks
        if shown.members and self.marks:
            marked = all(entry.key in self.marks for entry in shown.members)
        parts: list[tuple[str, Style]] = [(self.symbols.marked if marked else " ", self.style("mark"))]
        indent = " " * min(2 * shown.depth, 8)
        if shown.kind == "case" and shown.entry is not None:
            parts += self.case_parts(shown, shown.entry, indent, width - 1, base)
        elif shown.kind in ("test", "fold") and shown.members:
            parts += self.case_parts(shown, shown.summary, indent, width - 1, base)
        elif shown.kind == "problem" and shown.problem is not None:
            style = self.style("problem" if shown.problem.level == "error" else "note")
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

    def case_parts(
        self, shown: TreeLine, entry: CaseRow, indent: str, width: int, base: Style
    ) -> list[tuple[str, Style]]:
        columns = self.layout_for(width + 1)
        status = entry.status
        flaky = entry.flaky and status != "running"
        style = self.style(status or "new")
        word = f"{status}" if not (flaky and status in ("passed", "failed")) else "flaky"
        if flaky and word == "flaky":
            style = self.style("flaky")
            passed, of = (
                (entry.attempts.count("p"), len(entry.attempts)) if entry.attempts else entry.ratio or (0, 0)
            )
            if 0 < of < 10 and columns.word in (0, WORD):
                word = f"flaky {passed}/{of}"
        glyph = self.symbols.glyphs.get(status, " ")
        room = width - columns.total - len(indent) - 2
        # A row below its test's line says only what tells it from its siblings.
        called = shown.name if shown.kind == "case" else entry.name
        name = visible(clip(called, 400), newlines=False)
        parts: list[tuple[str, Style]] = [(f"{indent}{glyph} ", style)]
        if shown.holds_lines:
            parts.append(
                (f"{self.symbols.folded if shown.folded else self.symbols.unfolded} ", self.style("dim"))
            )
            room -= 2
        said: list[tuple[str, Style]] = []
        if entry.note is not None:
            said = [self._note(entry.note, room - min(cell_len(name), 24))]
            room -= cell_len(said[0][0])
        if flaky and word.startswith("flaky") and self.symbols.unicode and self.kind == "suites":
            said.append((f" {word}", style))
            room -= cell_len(word) + 1
        aside, message = self._aside(shown, entry)
        told = (entry.variant if called == entry.name else "", shown.beside)
        parted = [visible(clip(one, 100), newlines=False) for one in told]
        wide = cell_len(name) + sum(cell_len(one) + cell_len(self.symbols.dot) for one in parted if one)
        # A reason begins in one column, later only where that shows a whole name and all of it; where a case
        # comes from is said in what its name leaves.
        least = max(NAME, room - 2 - ASIDE if shown.beside and parted[0] else room * 3 // 5)
        spare = columns.attempts + 1 if columns.attempts and len(entry.attempts) < 2 else 0
        room += spare
        beside = wide if not message or wide <= room - 2 - cell_len(aside) else least
        if aside and room - min(wide, beside) - 2 >= (min(REASON, cell_len(aside)) if message else ASIDE):
            wide = min(wide, beside)
            if entry.status == "retrying":  # its end, when it goes on, is what one looks for
                wide = max(NAME // 2, min(wide, room - 2 - cell_len(aside)))
            elif message and called == entry.name and shown.kind != "fold":
                wide = max(wide, min(columns.name, least, room - spare - 2 - ASIDE))
            elif message:  # below its test's line: what tells it from its siblings is short
                wide = max(wide, min(NAME, room - spare - 2 - ASIDE))
            left = room - wide - 2
            # Where a case comes from is told by the end of its path, in a column of its own.
            shown_aside = fit(aside, left) if message else fit(end_of(aside, left), left, right=True)
            parts += [*self._named(shown, name, parted, wide), (f"  {shown_aside}", self.style("dim"))]
        else:
            parts += self._named(shown, name, parted, room)
        parts += said
        if columns.attempts and not spare:
            parts.append((" ", base))
            parts += self._attempts(entry.attempts, columns.attempts)
        if columns.word:
            parts.append((" " + fit(word, columns.word), style))
        dim = self.style("dim")
        if columns.trend:
            parts.append(
                (" " + fit(self.symbols.trend(entry.trend, columns.trend), columns.trend, right=True), dim)
            )
        if columns.tokens:
            parts.append((" " + fit(formatting.count(entry.tokens), columns.tokens, right=True), dim))
        if columns.cost:
            money = "cached" if entry.cached and not entry.cost else formatting.cost(entry.cost)
            parts.append((" " + fit(money, columns.cost, right=True), dim))
        if columns.duration:
            time_text, late = self.time_words(entry, columns.duration)
            time_style = self.style("retrying") if late else dim
            parts.append((" " + fit(time_text, columns.duration, right=True), time_style))
        if columns.age:
            old = formatting.age(self.now() - entry.finished_at) if entry.finished_at and status else ""
            parts.append((" " + fit(old, columns.age, right=True), dim))
        return parts

    def _aside(self, shown: TreeLine, entry: CaseRow) -> tuple[str, bool]:
        """What is said beside a name, and whether that is a message: why it failed or waits, else where the
        case comes from, unless the tree says it."""
        words = ""
        if entry.status in ("failed", "error"):
            words = entry.cause or line_reason(entry.message)
            if any(line.key == f"cause\n{words}" for line in shown.above):
                words = ""  # the line above says it of all
        elif entry.status == "retrying":
            words = short_detail(entry.detail)
        message = bool(words)
        several = self.cases.extent.suites  # of one all are
        if not message and several and not any(line.path for line in shown.above) and shown.kind != "fold":
            words = entry.suite
        return visible(clip(" ".join(words[:400].split()), 200), newlines=False), message

    def _named(self, shown: TreeLine, name: str, parted: list[str], width: int) -> list[tuple[str, Style]]:
        """A name and what tells it from others (of its test, of other suites), in so many cells, cut where that tells
        nothing; what is looked for is marked in it."""
        dot = self.symbols.dot
        told = [(name, shown.differs), (parted[0], shown.variant_differs), (parted[1], NOT_AT_ALL)]
        room = width - cell_len(dot) * sum(bool(text) for text in parted)
        cells = shares([cell_len(text) for text, _ in told], room)
        name, *parted = (cut(text, differs, each) for (text, differs), each in zip(told, cells, strict=True))
        variant = "".join(f"{dot}{text}" for text in parted if text)
        left = width - cell_len(name)
        rest = [(fit(variant, left), self.style("dim"))]
        at = name.lower().find(self.needle) if self.needle else -1
        if at < 0:
            return [(name, Style()), *rest]
        end = at + len(self.needle)
        return [(name[:at], Style()), (name[at:end], self.style("found")), (name[end:], Style()), *rest]

    def time_words(self, entry: CaseRow, width: int) -> tuple[str, bool]:
        """How long it took, or runs, with its time limit (`12s/30s`); whether that is nearly over, which `!`
        says too."""
        if not entry.started_at or entry.status not in ("running", "retrying"):
            if not entry.duration_ms and entry.status in ("cancelled", "skipped"):
                return "", False  # it never began
            return formatting.duration(entry.duration_ms), False
        now = self.now()
        words, late = (
            formatting.clock(now - entry.started_at),
            formatting.is_late(entry.started_at, entry.ends_at, now),
        )
        if entry.ends_at:
            whole = f"{words}/{formatting.span(entry.ends_at - entry.started_at)}{'!' if late else ''}"
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
        return f" {sign}", self.style(style)

    def _attempts(self, attempts: str, width: int) -> list[tuple[str, Style]]:
        """`✓✓✗`, or `7/10 ✓` where they do not fit."""
        if len(attempts) < 2:  # the glyph in front says it
            return [(" " * width, Style())]
        if len(attempts) > width:
            passed = attempts.count("p")
            return [(fit(f"{passed}/{len(attempts)}", width), self.style("dim"))]
        parts = [
            (self.symbols.glyphs[ATTEMPT_STATUSES[letter]], self.style(ATTEMPT_STATUSES[letter]))
            for letter in attempts
        ]
        return [*parts, (" " * (width - len(attempts)), Style())]

    def _group(self, shown: TreeLine, indent: str, width: int) -> list[tuple[str, Style]]:
        """A folder or suite: its name, and at the right its format and what became of its cases."""
        dim = self.style("dim")
        fold = self.symbols.folded if shown.folded else self.symbols.unfolded
        if shown.kind == "suite" and not shown.counts.total() and not (shown.suite and shown.suite.problems):
            fold = " "
        right: list[tuple[str, Style]] = []
        for status in ("failed", "error", "running", "retrying", "passed", "cancelled"):
            if shown.counts[status]:
                right.append((f" {self.symbols.glyphs[status]}{shown.counts[status]:,}", self.style(status)))
        errors = sum(problem.level == "error" for problem in shown.suite.problems) if shown.suite else 0
        if errors:
            right.insert(0, (f" {errors} problem{'s' if errors > 1 else ''}", self.style("problem")))
        total = shown.counts.total()
        badge = title_of(shown.suite.format) if shown.suite and width >= 44 else ""
        tail = f" {badge}" + (f"{self.symbols.dot if badge else ' '}{total:,}" if total else "")
        used = sum(len(text) for text, _ in right)
        if len(indent) + 2 + used + len(tail) + 12 > width:
            tail = ""
        room = max(4, width - len(indent) - 2 - used - len(tail))
        name = fit(cut(visible(clip(shown.name, 400), newlines=False), shown.differs, room), room)
        parts = [(f"{indent}{fold} ", dim), (name, self.style("folder")), (tail, dim), *right]
        return parts


class CaseList(CaseLines):
    """Draws a `Tree`; posts `Opened` and `Rested`."""

    BINDINGS = bindings("list")

    class Opened(Message):
        """Enter was pressed on a case, a problem or a suite without lines below it."""

        def __init__(self, line: TreeLine) -> None:
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

    class Marked(Message):
        """Other cases are marked."""

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, CaseList.Marked)

    class Moved(Message):
        """The cursor is elsewhere."""

        def can_replace(self, message: Message) -> bool:
            """Only the newest counts."""
            return isinstance(message, CaseList.Moved)

    at_once: Callable[[], None] | None = None
    """Called with every move, before it is painted."""

    # -- what it shows

    @property
    def current_line(self) -> TreeLine | None:
        """The line under the cursor."""
        return self.cases.lines[self.cursor] if self.cursor < len(self.cases.lines) else None

    @property
    def current_entry(self) -> CaseRow | None:
        """The case under the cursor."""
        found = self.current_line
        return found.entry if found else None

    def show(self, tree: Tree, *, keep: bool = True) -> None:
        """Show another tree; the cursor stays on its line where `keep` and the line is still there, else on
        one near it. Lines that look the same are not repainted."""
        old_lines, old_cursor = self.cases.lines, self.cursor
        offset = self.cursor - self.top
        self.cases = tree
        if keep and old_cursor < len(old_lines):
            self.cursor = _nearest(old_lines, old_cursor, tree)
        height = max(1, self.size.height)
        self.cursor = min(self.cursor, max(0, len(tree.lines) - 1))
        self.top = min(max(0, self.cursor - offset), max(0, len(tree.lines) - height))
        self.repaint()
        self.moved()

    def status_changed(self, key: str, before: str, after: str) -> list[int]:
        """An entry's status changed in place; returns the lines to repaint."""
        return self.cases.update(key, before, after)

    def widen(self, entry: CaseRow) -> None:
        """An entry has figures that it had not: there may be more columns."""
        if self.cases.extent.widen(entry):
            self.repaint()

    def tick(self) -> None:
        """Repaint the running times in sight, nothing else."""
        columns = self.layout_for(self.size.width)
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
        """Tell the screen: at once what can be painted in the same frame, and by message the rest."""
        if self.at_once is not None:
            self.at_once()
        self.post_message(self.Moved())

    def find(self, needle: str, step: int, *, start: int | None = None) -> bool:
        """Go to the next line (or, with `step` -1, the one before) that contains the text; `start` is the
        first line that is looked at (None: the one after the cursor)."""
        before, self.needle = self.needle, needle.lower()
        if before != self.needle:
            self.repaint()
        lines = self.cases.lines
        if not self.needle or not lines:
            return False
        start = self.cursor + step if start is None else start
        for distance in range(len(lines)):
            index = (start + step * distance) % len(lines)
            found = lines[index]
            if self.needle in found.name.lower() or (
                found.entry is not None
                and (self.needle in found.entry.case_id.lower() or self.needle in found.entry.variant.lower())
            ):
                self.touched = True
                self.show_cursor(index)
                return True
        return False

    def opened(self) -> None:
        """Clicked twice."""
        self.open()

    # -- keys

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **super().handlers(),
            "list.open": self.open,
            "list.unfold": self.unfold,
            "list.fold": self.fold,
            "list.mark": self.mark,
            "list.mark_all": self.mark_all,
        }

    def open(self) -> None:
        """Open the case; fold or unfold what holds cases."""
        found = self.current_line
        if found is None:
            self.post_message(self.Nothing())
            return
        if found.holds_lines and (found.kind != "suite" or found.folded or self._has_children(found)):
            self.post_message(self.Folded(found.key, not found.folded))
        else:
            self.post_message(self.Opened(found))

    def unfold(self) -> None:
        """Unfold; on what is unfolded, go to its first line; on a case, open it."""
        found = self.current_line
        if found is None:
            return
        if found.folded:
            self.post_message(self.Folded(found.key, False))
        elif found.holds_lines:
            if self._has_children(found):
                self.show_cursor(self.cursor + 1)
        else:
            self.post_message(self.Opened(found))

    def fold(self) -> None:
        """Fold; on what cannot be folded, go to what holds it."""
        found = self.current_line
        if found is None:
            return
        if found.holds_lines and not found.folded and self._has_children(found):
            self.post_message(self.Folded(found.key, True))
        elif found.above:
            self.go_to(found.above[-1].key)

    def mark(self) -> None:
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
        self.post_message(self.Marked())

    def mark_all(self) -> None:
        """Mark every case shown, or none."""
        keys = {entry.key for entry in self.cases.shown}
        self.marks = set() if self.marks and keys <= self.marks else set(keys)
        self.repaint()
        self.post_message(self.Marked())

    def below(self, found: TreeLine) -> list[CaseRow]:
        """The cases shown that a line holds: a folder, a suite, a group, a test or a fold."""
        if found.members:
            return list(found.standing)
        if found.kind == "folder":
            return [entry for entry in self.cases.shown if entry.suite.startswith(f"{found.path}/")]
        return [entry for entry in self.cases.shown if entry.suite == found.path]

    def _has_children(self, found: TreeLine) -> bool:
        following = self.cursor + 1
        return following < len(self.cases.lines) and self.cases.lines[following].depth > found.depth

    def watch_has_focus(self, _: bool) -> None:
        """The cursor looks different when keys go elsewhere."""
        self.refresh_lines((self.cursor,))


def _nearest(old: list[TreeLine], cursor: int, tree: Tree) -> int:
    """Where the line under the cursor is now; where it is gone what holds it (folded), else the next of the
    old cases that is still there, else the last one before it; where none is, the same height."""
    line = old[cursor]
    for kept in (line, *reversed(line.above)):
        index = tree.index.get(kept.key)
        if index is not None and (kept is line or tree.lines[index].folded):
            return index
    stands = line.telling
    found = tree.stands_for(stands.key) if stands is not None and line.kind != "group" else None
    if found is not None:
        return tree.index[found.key]
    for index in (*range(cursor + 1, len(old)), *range(cursor - 1, -1, -1)):
        if old[index].entry is not None and old[index].key in tree.index:
            return tree.index[old[index].key]
    return cursor if cursor < len(tree.lines) else 0
