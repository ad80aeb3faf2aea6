"""A pane of wrapped paragraphs, or of styled lines, that can be scrolled: an attempt, details, help, the log."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice

from rich.cells import cell_len
from textual.events import Resize

from tui_eval.tui.state.text.block_layout import MOST_HITS
from tui_eval.tui.state.text.fitting import fit, wrap
from tui_eval.tui.state.text.lines import Line, Mark, Span, line_of, marked, pattern, plain
from tui_eval.tui.state.text.lines import wrap as wrap_line
from tui_eval.tui.widgets.row_view import RowView

WORDS = {"text": "", "label": "term", "code": "literal"}
"""Styles of paragraphs whose words mean something else in styled lines."""
KEYS = ("key", "key-bad")
"""Styles of paragraphs that stand beside a key (or a time): it, a NUL, the words."""
KEY_COLUMN = 14
"""Cells of the column of keys, where each is shorter."""


Piece = tuple[int, Mark]
"""A row, and what of it is marked."""


def places_in(rows: Sequence[Line], sought: re.Pattern[str]) -> list[list[Piece]]:
    """Where a text stands in wrapped rows, so many places at most: pieces of rows, several where it goes on
    in the next."""
    begins, texts, length = [], [], 0
    for row in rows:
        text = plain(row).rstrip()
        begins.append(length - (len(text) - len(text.lstrip())))
        texts.append(text.lstrip())
        length += len(texts[-1]) + 1
    places: list[list[Piece]] = []
    for match in islice(sought.finditer(" ".join(texts)), MOST_HITS):
        first = bisect_right(begins, match.start()) - 1
        pieces: list[Piece] = []
        for row in range(first, len(begins)):
            if begins[row] >= match.end():
                break
            start, end = max(match.start() - begins[row], 0), match.end() - begins[row]
            pieces.append((row, Mark(start, min(end, len(plain(rows[row]))), "hit")))
        places.append(pieces)
    return places


class LinesPane(RowView):
    """Shows paragraphs `(style, text)`; text is wrapped to the width, at most 5,000 lines."""

    has_cursor = False
    DEFAULT_CSS = """
    LinesPane { padding: 0 1; }
    """
    LIMIT = 5_000
    FEW = 12
    """Lines below which a pane shows what was given to it in brief."""

    def __init__(self, paragraphs: Sequence[tuple[str, str]] = (), *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._paragraphs = list(paragraphs)
        self._lines: list[Line] = []
        self._brief: list[Line] | None = None
        self._rows: list[Line] = []
        self._width = 0
        self._is_brief = False
        self._sought: re.Pattern[str] | None = None
        self._places: list[list[Piece]] = []
        """Where what is looked for stands."""
        self._place = -1
        self._marks: dict[int, list[Mark]] = {}

    def show(
        self,
        paragraphs: Sequence[tuple[str, str]],
        lines: Sequence[Line] = (),
        brief: Sequence[Line] | None = None,
    ) -> None:
        """Show other paragraphs, and below them other styled lines, from the top; nothing is repainted where
        they are the same. A pane of few lines shows `brief` in their place, below the title alone."""
        fresh, below, short = list(paragraphs), list(lines), None if brief is None else list(brief)
        if (fresh, below, short) == (self._paragraphs, self._lines, self._brief) and self._rows:
            return
        self._paragraphs, self._lines, self._brief = fresh, below, short
        self._wrap()
        if not self.show_from(0):
            self.repaint()

    @property
    def row_count(self) -> int:
        """Wrapped rows."""
        return len(self._rows)

    def on_resize(self, event: Resize) -> None:
        """Wrap anew to another width, and to few lines or many."""
        if self.size.width != self._width or self._is_brief != self._in_brief:
            self._wrap()
            self.refresh()
        super().on_resize(event)

    def line_at(self, y: int) -> Line:
        """One line of the screen; a frame that comes before word of the width is wrapped to it too."""
        if self.size.width != self._width:
            self._wrap()
        return super().line_at(y)

    def row_line(self, row: int) -> Line:
        """One wrapped row."""
        marks = self._marks.get(row)
        return marked(self._rows[row], marks) if marks else self._rows[row]

    # -- finding

    @property
    def place(self) -> tuple[int, int]:
        """The place gone to last, from 1 (0: none), and how many there are."""
        return self._place + 1, len(self._places)

    def find(self, words: str, start: int) -> None:
        """Mark a text wherever it stands, and go to the first place from the row `start` on; to that row
        where it stands nowhere."""
        self._sought = pattern(words) if words else None
        self._look()
        at = next((n for n, place in enumerate(self._places) if place[0][0] >= start), 0)
        self._go(at if self._places else -1, start)

    def find_next(self, step: int) -> tuple[int, int]:
        """To the next (or previous) place, from the last to the first; its number and how many there are."""
        if self._places:
            self._go((self._place + step) % len(self._places), self.top)
        return self.place

    def _look(self) -> None:
        """Find all places, in words too that go on in the next row."""
        self._places, self._place, self._marks = [], -1, {}
        if self._sought is not None:
            self._places = places_in(self._rows, self._sought)

    def _go(self, place: int, otherwise: int) -> None:
        self._place, self._marks = place, {}
        for number, pieces in enumerate(self._places):
            for row, mark in pieces:
                style = "hit-here" if number == place else "hit"
                self._marks.setdefault(row, []).append(mark._replace(style=style))
        row = self._places[place][0][0] if place >= 0 else otherwise
        if place < 0 or not self.top <= row < self.top + self.window:
            self.show_from(row if place < 0 else row - self.window // 3)
        self.repaint()

    @property
    def _in_brief(self) -> bool:
        return self._brief is not None and 0 < self.size.height < self.FEW

    def _wrap(self) -> None:
        self._width = self.size.width
        self._is_brief = self._in_brief
        paragraphs = self._paragraphs
        if self._is_brief:
            paragraphs = [one for one in paragraphs if one[0] != "dim"]
        rows: list[Line] = []
        for style, text in paragraphs:
            word = WORDS.get(style, style)
            for paragraph in text.split("\n"):
                paragraph = paragraph.expandtabs(4)
                if style == "item":
                    first, *rest = wrap(paragraph, self._width - 2)
                    rows.append((Span(f"- {first}"),))
                    rows.extend((Span(f"  {text}"),) for text in rest)
                elif style in KEYS:
                    key, _, words = paragraph.partition("\x00")
                    rows.extend(_keys(key, words, "bad" if style == "key-bad" else "", self._width))
                else:
                    rows.extend((Span(text, word),) for text in wrap(paragraph, self._width))
            if len(rows) > self.LIMIT:
                rows = [*rows[: self.LIMIT], (Span("cut here", "dim"),)]
                break
        for one in (self._brief or ()) if self._is_brief else self._lines:
            rows.extend(row for _, _, row in wrap_line(one, max(self._width - 1, 10)))
            if len(rows) > self.LIMIT:
                break
        self._rows = [line_of(row) for row in rows]
        if self._sought is not None:
            self._look()
            self._go(-1, self.top)


class AttemptPane(LinesPane):
    """The attempt under the cursor below a table: more of it (`-large`), nothing (`-hidden`), nothing by itself on a
    screen of few lines (`-low`, `-short`): they are the table's."""

    SCOPED_CSS = False
    DEFAULT_CSS = """
    AttemptPane { height: 8; border-top: solid $surface-lighten-2; background: $surface; }
    .-roomy AttemptPane { height: 40%; }
    .-low AttemptPane, .-short AttemptPane { display: none; }
    .-large AttemptPane { display: block; height: 70%; }
    .-hidden AttemptPane { display: none; }
    """


def _keys(key: str, words: str, style: str, width: int) -> list[Line]:
    """A key in a column of its own, its words beside it, also where they take several rows."""
    column = max(KEY_COLUMN, cell_len(key) + 1)
    first, *rest = wrap(words, max(10, width - column))
    return [
        (Span(fit(key, column), "key"), Span(first, style)),
        *((Span(" " * column), Span(more, style)) for more in rest),
    ]
