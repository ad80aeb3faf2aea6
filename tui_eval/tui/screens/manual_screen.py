"""A page of the manual, read where one works."""

from __future__ import annotations

from functools import partial

from tui_eval import help as manual
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.screens.help import PaperScreen, Paragraphs
from tui_eval.tui.state.manual_view import manual_paragraphs


class ManualScreen(PaperScreen, inherit_bindings=False):
    """One page; the palette has them all."""

    TITLE = "Manual"

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
