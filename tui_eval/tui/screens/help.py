"""`?`: the keys of the place one came from. `l`: the log. Pages of the manual. All are paragraphs that scroll."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from markdown_it import MarkdownIt
from markdown_it.token import Token
from textual.app import ComposeResult

from tui_eval import help as manual
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import FIND_KEYS, Key, bindings
from tui_eval.tui.screens.place import Place, keys_in, keys_of, labelled
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.state.text.lines import one_line
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.lines_pane import LinesPane

Paragraphs = list[tuple[str, str]]

FILTERS: Paragraphs = [
    ("key", "failed error\x00an outcome or state; several are alternatives; bad flaky new running …"),
    ("key", "agent:x\x00a part that contains it; also suite: model: name: id: prompt: format:"),
    ("key", "tag:level=2\x00metadata"),
    ("key", "duration:>5s\x00a number: also cost:>0.01 tokens:<500"),
    ("key", "differs\x00tests whose columns came out differently"),
    ("key", "star noted\x00what people noted; also note:policy verdict:wrong"),
    ("key", '"two words"\x00anything that the row shows, or the prompt, message or metadata contain'),
    ("key", "-term\x00not that"),
    ("key", "slow=failed\x00keeps it as @slow; slow= keeps what is shown"),
]
"""Expressions of the filter; `help lists` has all."""


ARROWS = str.maketrans({"→": "right", "←": "left", "↑": "up", "↓": "down"})


class PaperScreen(Place):
    """A title and paragraphs."""

    kind = "paper"
    BINDINGS = bindings("screen", FIND_KEYS)
    KEY_SECTIONS = (("Moving", keys_in("moving")),)
    FOOTER = labelled([FIND_KEYS[0], *keys_of("back", "quit")], "quit", "close")

    def __init__(self, title: str, paragraphs: Callable[[], Paragraphs]) -> None:
        super().__init__()
        self._heading = title
        self._make = paragraphs
        self._sought = ""
        self._start = 0
        """The row that was first in sight when it was asked what to find."""

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        yield FactsBar()
        yield LinesPane()
        yield KeyHints(self.FOOTER)

    def on_mount(self) -> None:
        """Show it."""
        self.query_one(FactsBar).show([("title", self._heading)])
        self.renew()
        self.focus_home()

    def focus_home(self) -> None:
        """The keys go to the text."""
        self.query_one(LinesPane).focus()

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "list.find": self._ask,
            "list.find_next": partial(self._find_next, 1),
            "list.find_previous": partial(self._find_next, -1),
        }

    def renew(self) -> None:
        """Make the paragraphs anew."""
        self.query_one(LinesPane).show(self._make())

    # -- `/ n N`

    async def _ask(self) -> None:
        if not self.prompts.open:
            self._start = self.query_one(LinesPane).top
            prompt = Prompt("/", self._sought, "find in this text; enter keeps, n and N go on")
            await self.prompts.ask(prompt, self._left, self._find)

    def _find(self, words: str) -> None:
        self._sought = words
        self.query_one(LinesPane).find(words, self._start)

    def _left(self, words: str, kept: bool) -> None:
        self._find(words if kept else "")
        if self._sought:
            self._say(self.query_one(LinesPane).place)

    async def _find_next(self, step: int) -> None:
        if self._sought:
            self._say(self.query_one(LinesPane).find_next(step))
        else:
            await self._ask()

    def _say(self, place: tuple[int, int]) -> None:
        number, count = place
        self.notice(f"{number:,} of {count:,}" if count else f"not here: {one_line(self._sought)}")


class HelpScreen(PaperScreen):
    """The keys of a place."""

    def __init__(self, place: str, sections: Sequence[tuple[str, Sequence[Key]]], symbols: Symbols) -> None:
        super().__init__(f"Help: {place}", lambda: help_paragraphs(place, sections, symbols))


def help_paragraphs(
    place: str, sections: Sequence[tuple[str, Sequence[Key]]], symbols: Symbols | None = None
) -> Paragraphs:
    """The keys of a place, then those that work everywhere and mean nothing else here, how to move at last."""
    symbols = symbols or Symbols()
    palette = _keys(keys_of("palette")[0], symbols)
    shown: Paragraphs = []
    moving = [section for section in sections if section[0] == "Moving"]
    own = [section for section in sections if section[0] != "Moving"]
    taken = {pressed for _, keys in own for key in keys for pressed in key.pressed.split(",")}
    others = [key for key in keys_in("everywhere") if taken.isdisjoint(key.pressed.split(","))]
    for heading, keys in [*own, ("Everywhere", others), *moving]:
        if not keys:
            continue
        if shown:
            shown.append(("text", ""))
        shown.append(("title", heading))
        shown.extend(("key", f"{_keys(key, symbols)}\x00{key.words}") for key in keys)
    if any(key.id == "list.filter" for _, keys in sections for key in keys):
        shown += [("text", ""), ("title", "What f understands"), *FILTERS]
    shown += [
        ("text", ""),
        ("title", "Marks"),
        ("text", "  ".join(f"{glyph} {status}" for status, glyph in symbols.glyphs.items() if status)),
        (
            "text",
            f"{symbols.marked} marked  {symbols.star} starred  right, wrong: your verdict on the answer",
        ),
        ("text", f"{symbols.trend((0, 0.5, 1), 3)} the share that passed in its last runs, oldest first"),
        ("text", "12s/30s  how long it runs, of its time limit; with ! that is nearly over"),
        ("text", ""),
        ("text", f"The manual: {palette}, then the word help (getting started, assertions, safety …)."),
        (
            "dim",
            f"This is the help for: {place}. The mouse is the terminal's and selects text, unless you asked for it",
        ),
        (
            "dim",
            f"({_keys(keys_of('mouse')[0], symbols)}, or mouse: true in your settings): then hold shift to select.",
        ),
        ("text", ""),
        ("title", "Names for keymap: in your settings.yaml"),
    ]
    every = {key.id: key for _, keys in [("", keys_in("everywhere")), *sections] for key in keys}
    shown.extend(("key", f"{_keys(key, symbols)}\x00{key.id}") for key in every.values())
    return shown


def _keys(key: Key, symbols: Symbols) -> str:
    """A row's keys; arrows by name where the terminal has none: `>` is a key of its own."""
    return key.all_shown if symbols.unicode else key.all_shown.translate(ARROWS)


# -- A page of the manual, read where one works.


class ManualScreen(PaperScreen, inherit_bindings=False):
    """One page; the palette has them all."""

    TITLE = "Manual"
    BINDINGS = bindings("screen", FIND_KEYS)

    def __init__(self, page: str, title: str) -> None:
        super().__init__(title, lambda: self._shown)
        self._page = page
        self._shown: Paragraphs = []

    def on_mount(self) -> None:
        """Read the page, then show it."""
        super().on_mount()
        run_in_thread(self.app, partial(_read, self._page), self._take, name="manual")

    def _take(self, paragraphs: Paragraphs) -> None:
        self._shown = paragraphs
        if self.is_mounted:
            self.renew()


def _read(page: str) -> Paragraphs:
    return manual_paragraphs(manual.page(page))


def manual_paragraphs(text: str) -> list[tuple[str, str]]:
    """`(style, text)` of each heading, paragraph, list item, table row and piece of code; the first heading is
    left out, it is the title already."""
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    shown: list[tuple[str, str]] = []
    cells: list[str] = []
    style, in_table = "text", False
    for number, token in enumerate(tokens):
        match token.type:
            case "heading_open":
                style = "title"
            case "heading_close":
                style = "text"
            case "list_item_open":
                style = "item"
            case "bullet_list_open" | "ordered_list_open":
                _space(shown)
            case "table_open":
                in_table = True
                _space(shown)
            case "table_close":
                in_table = False
            case "tr_open":
                cells = []
            case "tr_close":
                beside = " · ".join(cell for cell in cells[1:] if cell)
                shown.append(("key", f"{cells[0]}\x00{beside}") if beside else ("text", cells[0]))
            case "inline" if in_table:
                cells.append(_plain(token.children or ()))
            case "inline" if number > 2:
                words = _plain(token.children or ())
                if not words:
                    continue
                if style != "item":
                    _space(shown)
                shown.append((style, words))
                style = "text"
            case "code_block" | "fence":
                _space(shown)
                shown.append(("code", token.content.rstrip("\n")))
            case _:
                pass
    return shown


def _space(shown: list[tuple[str, str]]) -> None:
    """An empty line before what follows, unless it is the first."""
    if shown and shown[-1][1]:
        shown.append(("text", ""))


def _plain(children: Sequence[Token]) -> str:
    """The words of a line of Markdown, a line break a space; pictures are left out."""
    words: list[str] = []
    for child in children:
        if child.type in ("text", "code_inline"):
            words.append(child.content)
        elif child.type in ("softbreak", "hardbreak"):
            words.append(" ")
    return "".join(words).strip()
