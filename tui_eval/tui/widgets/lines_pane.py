"""A pane of wrapped paragraphs, or of styled lines, that can be scrolled: an attempt, details, help, the log."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

from tui_eval.tui.state.text.fitting import fit, wrap
from tui_eval.tui.state.text.lines import Line, Span, letters
from tui_eval.tui.state.text.lines import wrap as wrap_line
from tui_eval.tui.widgets.line_pane import style_of
from tui_eval.tui.widgets.line_view import LineView
from tui_eval.tui.widgets.painting import ink, line

STYLES = ("title", "text", "dim", "label", "code", "good", "bad", "warn", "item", "key")


KEYS = ("key", "key-bad")
"""Styles of paragraphs that stand beside a key (or a time): it, a NUL, the words."""
KEY_COLUMN = 14
"""Cells of the column of keys, where each is shorter."""


class LinesPane(LineView):
    """Shows paragraphs `(style, text)`; text is wrapped to the width, at most 5,000 lines."""

    has_cursor = False
    COMPONENT_CLASSES = {f"lines--{name}" for name in STYLES}
    DEFAULT_CSS = """
    LinesPane { padding: 0 1; }
    LinesPane .lines--title { color: $foreground; text-style: bold; }
    LinesPane .lines--dim { color: $text-muted; }
    LinesPane:ansi .lines--dim { text-style: dim; }
    LinesPane:ansi .lines--label, LinesPane:ansi .lines--key { text-style: bold; }
    LinesPane .lines--label { color: $text-accent; }
    LinesPane .lines--key { color: $text-accent; }
    LinesPane .lines--code { color: $secondary; }
    LinesPane .lines--good { color: $text-success; }
    LinesPane .lines--bad { color: $text-error; }
    LinesPane .lines--warn { color: $text-warning; }
    """
    LIMIT = 5_000
    FEW = 12
    """Lines below which a pane shows what was given to it in brief."""

    def __init__(self, paragraphs: Sequence[tuple[str, str]] = (), *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._paragraphs = list(paragraphs)
        self._lines: list[Line] = []
        self._brief: list[Line] | None = None
        self._wrapped: list[tuple[str, str] | Line] = []
        self._width = 0
        self._is_brief = False
        self._spans: dict[str, Style] = {}

    def show(
        self,
        paragraphs: Sequence[tuple[str, str]],
        lines: Sequence[Line] = (),
        brief: Sequence[Line] | None = None,
    ) -> None:
        """Show other paragraphs, and below them other styled lines, from the top; nothing is repainted where
        they are the same. A pane of few lines shows `brief` in their place, below the title alone."""
        fresh, below, short = list(paragraphs), list(lines), None if brief is None else list(brief)
        if (fresh, below, short) == (self._paragraphs, self._lines, self._brief) and self._wrapped:
            return
        self._paragraphs, self._lines, self._brief = fresh, below, short
        self._wrap()
        self.top = 0
        self.repaint()

    @property
    def line_count(self) -> int:
        """Wrapped lines."""
        return len(self._wrapped)

    def on_resize(self) -> None:
        """Wrap anew to another width, and to few lines or many."""
        if self.size.width != self._width or self._is_brief != self._in_brief:
            self._wrap()
        super().on_resize()

    def strip_at(self, y: int) -> Strip:
        """What belongs on one line of the screen; a frame that comes before word of the width is wrapped to it too."""
        if self.size.width != self._width:
            self._wrap()
        return super().strip_at(y)

    @property
    def _in_brief(self) -> bool:
        return self._brief is not None and 0 < self.size.height < self.FEW

    def _wrap(self) -> None:
        self._width = self.size.width
        self._is_brief = self._in_brief
        lines: list[tuple[str, str] | Line] = []
        paragraphs = self._paragraphs
        if self._is_brief:
            paragraphs = [one for one in paragraphs if one[0] != "dim"]
        for style, text in paragraphs:
            for paragraph in text.split("\n"):
                paragraph = paragraph.expandtabs(4)
                if style == "item":
                    first, *rest = wrap(paragraph, self._width - 2)
                    lines.append((style, f"- {first}"))
                    lines.extend((style, f"  {text}") for text in rest)
                elif style in KEYS:
                    key, _, words = paragraph.partition("\x00")
                    lines.extend(_keys(style, key, words, self._width))
                else:
                    lines.extend((style, text) for text in wrap(paragraph, self._width))
            if len(lines) > self.LIMIT:
                lines = [*lines[: self.LIMIT], ("dim", "cut here")]
                break
        for one in (self._brief or ()) if self._is_brief else self._lines:
            lines.extend(row for _, _, row in wrap_line(one, max(self._width - 1, 10)))
            if len(lines) > self.LIMIT:
                break
        self._wrapped = lines

    def draw(self, index: int, width: int) -> Strip:
        """One wrapped line."""
        row = self._wrapped[index]
        base = self.rich_style
        if not row or isinstance(row[0], Span):
            return line([(self._text(span), self._span_style(span.style)) for span in row], width, base)  # type: ignore[union-attr]
        style, text = str(row[0]), str(row[1])
        if style in KEYS:
            key, _, words = text.partition("\x00")
            ours = ink(self.get_component_rich_style("lines--bad")) if style == "key-bad" else Style()
            return line([(key, ink(self.get_component_rich_style("lines--key"))), (words, ours)], width, base)
        own = Style() if style in ("text", "item") else ink(self.get_component_rich_style(f"lines--{style}"))
        return line([(text, own)], width, base)

    def _text(self, span: Span) -> str:
        """Its text, in letters where the terminal has no other."""
        symbols = getattr(getattr(self.app, "services", None), "symbols", None)
        return span.text if symbols is None or symbols.unicode else letters(span.text)

    def _span_style(self, words: str) -> Style:
        made = self._spans.get(words)
        if made is None:
            made, under = Style.null(), self.background_colors[1]
            for word in words.split():
                made += style_of(self.app, word, under)
            self._spans[words] = made
        return made

    def notify_style_update(self) -> None:
        """The theme changed."""
        self._spans.clear()
        super().notify_style_update()


class AttemptPane(LinesPane):
    """The attempt under the cursor below a table: more of it (`-large`), nothing (`-hidden`), nothing by itself on a
    screen of few lines (`-short`)."""

    SCOPED_CSS = False
    DEFAULT_CSS = """
    AttemptPane { height: 8; border-top: solid $surface-lighten-2; background: $surface; }
    .-roomy AttemptPane { height: 40%; }
    .-short AttemptPane { display: none; }
    .-large AttemptPane { display: block; height: 70%; }
    .-hidden AttemptPane { display: none; }
    """


def _keys(style: str, key: str, words: str, width: int) -> list[tuple[str, str]]:
    """A key in a column of its own, its words beside it, also where they take several lines."""
    column = max(KEY_COLUMN, cell_len(key) + 1)
    first, *rest = wrap(words, max(10, width - column))
    return [
        (style, f"{fit(key, column)}\x00{first}"),
        *((style, f"{' ' * column}\x00{more}") for more in rest),
    ]
