"""`?`: the keys of the place one came from. `l`: the log. Both are paragraphs that scroll."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult

from tui_eval.tui.keys import Key
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.lines_pane import LinesPane

Paragraphs = list[tuple[str, str]]


class PaperScreen(Place):
    """A title and paragraphs."""

    KEY_SECTIONS = (("Moving", keys_in("moving")),)

    def __init__(self, title: str, paragraphs: Callable[[], Paragraphs]) -> None:
        super().__init__()
        self._heading = title
        self._make = paragraphs

    def compose(self) -> ComposeResult:
        """Title, text, keys."""
        yield FactsBar()
        yield LinesPane()
        yield KeyHints(keys_of("back", "quit"))

    def on_mount(self) -> None:
        """Show it."""
        self.query_one(FactsBar).show([("title", self._heading)])
        self.renew()
        self.query_one(LinesPane).focus()

    def renew(self) -> None:
        """Make the paragraphs anew."""
        self.query_one(LinesPane).show(self._make())


def help_paragraphs(place: str, sections: Sequence[tuple[str, Sequence[Key]]]) -> Paragraphs:
    """The keys of a place, those that work everywhere at the end."""
    shown: Paragraphs = []
    for heading, keys in [*sections, ("Everywhere", keys_in("everywhere"))]:
        if not keys:
            continue
        if shown:
            shown.append(("text", ""))
        shown.append(("title", heading))
        shown.extend(("key", f"{key.all_shown}\x00{key.words}") for key in keys)
    shown += [
        ("text", ""),
        ("title", "Marks"),
        ("text", "✓ passed  ✗ failed  ! error  ⊘ cancelled  – skipped  ● running  ↻ retrying  ◌ waiting"),
        ("text", ""),
        ("dim", f"This is the help for: {place}. Select text with the mouse as in any terminal."),
        ("text", ""),
        ("title", "Names for keymap: in your settings.yaml"),
    ]
    every = [key for _, keys in [*sections, ("", keys_in("everywhere"))] for key in keys]
    shown.extend(("dim", f"{key.id}  {key.all_shown}") for key in every)
    return shown
