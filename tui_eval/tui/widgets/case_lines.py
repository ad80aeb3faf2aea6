"""The lines of a tree of cases, drawn: marks, outcome, trend, name and why it failed, figures; groups with what they
hold."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec.structs import astuple
from rich.cells import cell_len

from tui_eval.formats import title_of
from tui_eval.guard.text import clip, visible
from tui_eval.store.notes import HumanNote
from tui_eval.tui.state.case.case_history import note_sign, rules_spans
from tui_eval.tui.state.lists.case_entry import (
    NAME_CELLS,
    WORD_CELLS,
    CaseColumns,
    CaseRow,
    columns_for,
    line_reason,
)
from tui_eval.tui.state.lists.case_tree import Tree, TreeLine
from tui_eval.tui.state.lists.entries import ATTEMPT_STATUSES
from tui_eval.tui.state.lists.telling_apart import KEPT_OF_NAME, cut, listed, shares
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.fitting import end_of, fit, wait_words, wrap
from tui_eval.tui.state.text.lines import Line, Span, line_of, width_of
from tui_eval.tui.widgets.looks import Look
from tui_eval.tui.widgets.row_view import RowView

AT_WORK = ("running", "retrying")
ASIDE = 12
"""Cells below which nothing is said beside a name."""
NAMELESS = "promptfooconfig"
"""What files are called that have no name of their own: their folder's says which."""
REASON = 8
"""The same of why it failed: `lacks "2…` says more than the end of a name."""


class CaseLines(RowView):
    """Draws the lines of a `Tree`; what is done with them is in `CaseList`."""

    LOOKS: ClassVar[Mapping[str, Look]] = {
        "failed": Look("$text-error"),
        "error": Look("$text-warning"),
        "cursor": Look(attributes="bold", background="$surface-lighten-2"),
        "cursor-away": Look(background="$surface"),
    }

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
        self._aged_at = 0.0
        self._columns = CaseColumns()
        self._columns_at: tuple[object, ...] = ()

    @property
    def row_count(self) -> int:
        """Lines of the tree as folded."""
        return len(self.cases.lines)

    def layout_for(self, width: int) -> CaseColumns:
        """The columns at this width."""
        extent = self.cases.extent
        at = (width, *astuple(extent))
        if at != self._columns_at:
            self._columns_at = at
            self._columns = columns_for(self.kind, width, extent, words=not self.symbols.unicode)
        return self._columns

    def line_below(self, y: int) -> Line:
        """What to press, where there is nothing."""
        if self.cases.lines or not self.empty:
            return ()
        rows = [row for text in self.empty for row in wrap(text, max(10, self.size.width - 4))]
        return (Span(f"  {rows[y - 1]}", "dim"),) if 1 <= y <= len(rows) else ()

    def row_line(self, row: int) -> Line:
        """One line."""
        return self.tree_line(self.cases.lines[row], self.size.width)

    def tree_line(self, shown: TreeLine, width: int) -> Line:
        """A line of the tree in so many cells."""
        marked = shown.entry is not None and shown.entry.key in self.marks
        if shown.members and self.marks:
            marked = all(entry.key in self.marks for entry in shown.members)
        parts = [Span(self.symbols.marked if marked else " ", "mark")]
        indent = " " * min(2 * shown.depth, 8)
        if shown.kind == "case" and shown.entry is not None:
            parts += self.case_parts(shown, shown.entry, indent, width - 1)
        elif shown.kind in ("test", "fold") and shown.members:
            parts += self.case_parts(shown, shown.summary, indent, width - 1)
        elif shown.kind == "problem" and shown.problem is not None:
            style = "bad" if shown.problem.level == "error" else "note"
            place = f"line {shown.problem.line}: " if shown.problem.line else ""
            if shown.problem.path not in ("", shown.path):  # a file that the suite names
                name = shown.problem.path.rpartition("/")[2]
                place = f"{name}:{shown.problem.line}: " if place else f"{name}: "
            key, words = shown.problem.key.rpartition(".")[2], shown.problem.message
            if key and "[" not in key and key not in words:  # which one is misspelt
                place += f"{key}: "
            text = visible(clip(place + words, 400), newlines=False)
            parts.append(Span(fit(f"{indent}! {text}", width - 1), style))
        else:
            parts += self._group(shown, indent, width - 1)
        return line_of(parts)

    def case_parts(self, shown: TreeLine, entry: CaseRow, indent: str, width: int) -> list[Span]:
        """A case, or a test by what became of its rows, in so many cells."""
        columns = self.layout_for(width + 1)
        word, style = self._outcome(entry, columns)
        glyph = self.symbols.glyphs.get(entry.status, " ")
        room = width - columns.total - len(indent) - 2
        # A row below its test's line says only what tells it from its siblings.
        called = shown.name if shown.kind == "case" else entry.name
        name = visible(clip(called, 400), newlines=False)
        parts: list[Span] = [Span(f"{indent}{glyph} ", style)]
        if shown.holds_lines:
            parts.append(Span(f"{self.symbols.folded if shown.folded else self.symbols.unfolded} ", "dim"))
            room -= 2
        said = tuple(self._said(shown, entry, name, word, style, columns, room))
        room -= width_of(said)
        aside, message = self._aside(shown, entry)
        told = (entry.variant if called == entry.name else "", shown.beside)
        parted = [visible(clip(one, 100), newlines=False) for one in told]
        wide = cell_len(name) + sum(cell_len(one) + cell_len(self.symbols.dot) for one in parted if one)
        # A reason begins in one column: later only where that shows a whole name and all of it, or all of what tells
        # it from others of that name, earlier where blanks would cut it. Where a case comes from is said in what its
        # name leaves.
        apart = 0
        if parted[0] and shown.kind == "case":
            apart = wide - cell_len(name) - cell_len(parted[0]) + self.cases.extent.variant
            apart += min(cell_len(name), KEPT_OF_NAME)
        least = max(NAME_CELLS, room * 3 // 5, min(apart, room - 2 - min(cell_len(aside), ASIDE)))
        attempts = columns.attempts > 0 and len(entry.attempts) >= 2
        trend = columns.trend > 0 and (bool(entry.trend) or attempts or columns.word > 0)
        spare = (columns.attempts + 1 if columns.attempts and not attempts else 0) + (
            columns.trend + 1 if columns.trend and not trend else 0
        )
        room += spare
        beside = wide if not message or wide <= room - 2 - cell_len(aside) else least
        if message and shown.names:  # which columns they are is cut last
            beside = max(beside, room - 2 - min(cell_len(aside), ASIDE))
        if aside and room - min(wide, beside) - 2 >= min(REASON if message else ASIDE, cell_len(aside)):
            wide = min(wide, beside)
            if shown.names and cell_len(name) > wide:  # names that are left out leave their room
                wide = cell_len(_with_names(shown, name, wide))
            if message:  # below its test's line what tells it from its siblings is short
                whole_name = called == entry.name and shown.kind != "fold"
                column = min(columns.name, least) if whole_name else columns.variant
                wide = max(wide, min(column, room - spare - 2 - ASIDE, room - 2 - cell_len(aside)))
            left = room - wide - 2
            # Where a case comes from is shown by the end of its path, in a column of its own.
            if entry.status in AT_WORK:  # its end, when it goes on, is what one looks for
                aside = wait_words(aside, left)
            shown_aside = fit(aside, left) if message else fit(end_of(aside, left), left, right=True)
            parts += [*self._named(shown, name, parted, wide), Span(f"  {shown_aside}", "dim")]
        else:
            parts += self._named(shown, name, parted, room)
        parts += said
        if attempts:
            parts.append(Span(" "))
            parts += self._attempts(entry.attempts, columns.attempts)
        return parts + self._figures(entry, columns, word, style, trend)

    def _outcome(self, entry: CaseRow, columns: CaseColumns) -> tuple[str, str]:
        """What became of a case, in a word, and its style."""
        status = entry.status
        flaky = entry.flaky and status != "running"
        word = status.replace("-", " ") if not (flaky and status in ("passed", "failed")) else "flaky"
        if not (flaky and word == "flaky"):
            return word, status or "new"
        passed, of = entry.passed_of
        short = 0 < of < 10 and columns.word in (0, WORD_CELLS)
        return f"flaky {passed}/{of}" if short else word, "flaky"

    def _said(
        self,
        shown: TreeLine,
        entry: CaseRow,
        name: str,
        word: str,
        style: str,
        columns: CaseColumns,
        room: int,
    ) -> list[Span]:
        """What stands before the columns of figures, in at most `room` cells with the name: a note, that it is flaky,
        edited or cached, whose rules count."""
        said: list[Span] = []
        if entry.note is not None:
            said = [self._note(entry.note, room - min(cell_len(name), 24))]
        flaky = entry.flaky and entry.status != "running"
        if flaky and word.startswith("flaky") and self.symbols.unicode and self.kind == "suites":
            said.append(Span(f" {word}", style))
        if entry.compat == "reference" and not self._is_said_above(shown):
            said += rules_spans(entry.compat, " ")
        if entry.edited and entry.status not in AT_WORK:
            count = f"{entry.edited:,} " if shown.members and entry.edited < len(shown.standing) else ""
            said.append(Span(f" {count}edited", "note"))
        # Else it stands for the time.
        if entry.cached and not columns.duration and room - width_of(tuple(said)) > 2 * NAME_CELLS:
            said.append(Span(" cached", "dim"))
        return said

    def _figures(
        self, entry: CaseRow, columns: CaseColumns, word: str, style: str, trend: bool
    ) -> list[Span]:
        """The columns at the right: the outcome's word, trend, tokens, cost, time, age."""
        parts: list[Span] = []
        dim = "dim"
        if columns.word:
            parts.append(Span(" " + fit(word, columns.word), style))
        if trend:
            line = self.symbols.trend(entry.trend, columns.trend)
            parts.append(Span(" " + fit(line, columns.trend, right=True), dim))
        if columns.tokens:
            parts.append(Span(" " + fit(formatting.count(entry.tokens), columns.tokens, right=True), dim))
        if columns.cost:
            money = formatting.cost(entry.cost) if entry.cost or not entry.cached else ""
            parts.append(Span(" " + fit(money, columns.cost, right=True), dim))
        if columns.duration:
            time_text, late = self.time_words(entry, columns.duration)
            time_style = "retrying" if late else dim
            parts.append(Span(" " + fit(time_text, columns.duration, right=True), time_style))
        if columns.age:
            old = formatting.age(self.now() - entry.finished_at) if entry.finished_at and entry.status else ""
            parts.append(Span(" " + fit(old, columns.age, right=True), dim))
        return parts

    def _is_said_above(self, shown: TreeLine) -> bool:
        """Whether the line of its test, its suite or the run says that all verdicts are by `compat: reference`."""
        if any(line.kind == "test" and line.summary.compat == "reference" for line in shown.above):
            return True
        suites = self.kind == "run" or any(line.kind == "suite" for line in shown.above)
        return suites and self.cases.extent.all_by_reference

    def _aside(self, shown: TreeLine, entry: CaseRow) -> tuple[str, bool]:
        """What is said beside a name, and whether that is a message: why it failed or waits, else where the
        case comes from, unless the tree says it."""
        words = ""
        if entry.status in ("failed", "error"):
            words = entry.cause or line_reason(entry.message)
            if any(_is_said(words, line) for line in shown.above):
                words = ""  # the line above says it of all
        elif entry.status in AT_WORK:
            words = entry.detail
        message = bool(words)
        several = self.cases.extent.suites  # of one all are
        if not message and several and not any(line.path for line in shown.above) and shown.kind != "fold":
            folder, _, file = entry.suite.rpartition("/")
            stem = file.rpartition(".")[0]
            words = entry.suite
            if stem == entry.name:  # a file that is one case is called as that is
                words = folder
            elif stem == NAMELESS and folder:
                words = f"{folder}/"
        return visible(clip(" ".join(words[:400].split()), 200), newlines=False), message

    def _named(self, shown: TreeLine, name: str, parted: list[str], width: int) -> list[Span]:
        """A name and what tells it from others (of its test, of other suites), in so many cells, cut where that tells
        nothing; what is looked for is marked in it."""
        dot = self.symbols.dot
        told = [(name, shown.differs), (parted[0], shown.variant_differs), (parted[1], shown.beside_differs)]
        room = width - cell_len(dot) * sum(bool(text) for text in parted)
        wanted, *asides = (cell_len(text) for text, _ in told)
        # Others of its name stand beside it: that gives way first.
        asides = shares(asides, room - min(wanted, KEPT_OF_NAME, max(room // 4, 1)))
        cells = (room - sum(asides), *asides)
        called, *parted = (
            cut(text, differs, each) for (text, differs), each in zip(told, cells, strict=True)
        )
        if shown.names and (called != name or name.endswith("…")):
            called = _with_names(shown, name, cells[0])
        name = called
        variant = "".join(f"{dot}{text}" for text in parted if text)
        left = width - cell_len(name)
        rest = [Span(fit(variant, left), "dim")]
        at = name.lower().find(self.needle) if self.needle else -1
        if at < 0:
            return [Span(name), *rest]
        end = at + len(self.needle)
        return [Span(name[:at]), Span(name[at:end], "found"), Span(name[end:]), *rest]

    def time_words(self, entry: CaseRow, width: int) -> tuple[str, bool]:
        """How long it took, or `cached`; or how long it runs, with its time limit (`12s/30s`); whether that
        is nearly over, which `!` says too."""
        if not entry.started_at or entry.status not in AT_WORK:
            if not entry.duration_ms and entry.status in ("cancelled", "skipped"):
                return "", False  # it never began
            # An answer that was taken from the cache took no time.
            return "cached" if entry.cached else formatting.duration(entry.duration_ms), False
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

    def _note(self, note: HumanNote, room: int) -> Span:
        """A person's note: ` ★ wrong …`; a letter for each word where there is less room."""
        star = self.symbols.star
        sign = note_sign(note, star)
        if cell_len(sign) + 1 > room:
            sign = "".join(word if word in (star, "…", "...") else word[0] for word in sign.split())
        style = {"right": "passed", "wrong": "failed"}.get(note.verdict or "", "mark")
        return Span(f" {sign}", style)

    def _attempts(self, attempts: str, width: int) -> list[Span]:
        """`✓✓✗`, or `7/10 ✓` where they do not fit."""
        if len(attempts) < 2:  # the glyph in front says it
            return [Span(" " * width)]
        if len(attempts) > width:
            passed = attempts.count("p")
            return [Span(fit(f"{passed}/{len(attempts)}", width), "dim")]
        parts = [
            Span(self.symbols.glyphs[ATTEMPT_STATUSES[letter]], ATTEMPT_STATUSES[letter])
            for letter in attempts
        ]
        return [*parts, Span(" " * (width - len(attempts)))]

    def _group(self, shown: TreeLine, indent: str, width: int) -> list[Span]:
        """A folder or suite: its name, and at the right its format and what became of its cases."""
        dim = "dim"
        fold = self.symbols.folded if shown.folded else self.symbols.unfolded
        if shown.kind == "suite" and not shown.counts.total() and not (shown.suite and shown.suite.problems):
            fold = " "
        right: list[Span] = []
        for status in ("failed", "error", "running", "retrying", "passed", "cancelled"):
            if shown.counts[status]:
                right.append(Span(f" {self.symbols.glyphs[status]}{shown.counts[status]:,}", status))
        errors = sum(problem.level == "error" for problem in shown.suite.problems) if shown.suite else 0
        if errors:
            right.insert(0, Span(f" {errors} problem{'s' if errors > 1 else ''}", "bad"))
        if shown.kind == "suite" and shown.counts.total() and self.cases.extent.all_by_reference:
            right = [*rules_spans("reference", " "), *right]
        counted = shown.key.startswith("cause\n")  # its name begins with how many there are
        if counted and len(right) == 1:
            right = [Span(right[0].text.rstrip("0123456789,"), right[0].style)]
        total = 0 if counted else shown.counts.total()
        badge = title_of(shown.suite.format) if shown.suite and width >= 44 else ""
        # What became of a case is counted by column.
        many = f"{shown.cases:,} in {total:,} rows" if 0 < shown.cases < total else f"{total:,}"
        tail = f" {badge}" + (f"{self.symbols.dot if badge else ' '}{many}" if total else "")
        used = sum(len(text) for text, _ in right)
        if len(indent) + 2 + used + len(tail) + 12 > width:
            tail = ""
        room = max(4, width - len(indent) - 2 - used - len(tail))
        name = fit(cut(visible(clip(shown.name, 400), newlines=False), shown.differs, room), room)
        parts = [Span(f"{indent}{fold} ", dim), Span(name, "strong"), Span(tail, dim), *right]
        return parts


def _with_names(shown: TreeLine, name: str, width: int) -> str:
    """How many rows a fold stands for, and as many of their names as there is room for."""
    count, _, _ = name.partition(" × ")
    names = [visible(clip(one, 100), newlines=False) for one in shown.names]
    return f"{count} × {listed(names, width - len(count) - 3)}"


def _is_said(words: str, above: TreeLine) -> bool:
    """Whether the line of a cause says just this of all its cases."""
    return above.key.startswith("cause\n") and above.name.partition(" × ")[2] == words
