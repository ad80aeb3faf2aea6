"""What ctrl+p finds: every action by its words, every case by its name, every place, every page of the manual."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import cast

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui_eval import help as manual
from tui_eval.guard.text import clip, visible
from tui_eval.tui.keys import KEYS, Key
from tui_eval.tui.screens.manual_screen import ManualScreen
from tui_eval.tui.services import HasServices

MOST_CASES = 50
UNLISTED = ("palette", "back", "copy_or_quit", "settings.edit")
KEY_WIDTH = 8
"""Cells of the key before an action's words."""


class Actions(Provider):
    """Actions and places."""

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for key in _listed():
            yield DiscoveryHit(_shown(key, Content(_title(key))), partial(self._do, key), text=_title(key))

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for key in _listed():
            score = matcher.match(_title(key))
            if score > 0:
                shown = _shown(key, matcher.highlight(_title(key)))
                yield Hit(score, shown, partial(self._do, key), text=_title(key))

    async def _do(self, key: Key) -> None:
        await cast("HasServices", self.app).services.do(key.id)


class Cases(Provider):
    """Cases by name and id."""

    async def search(self, query: str) -> Hits:
        """At most fifty; names that begin with the text come first."""
        services = cast("HasServices", self.app).services
        needle = query.lower()
        found = 0
        for entry in services.places.all_cases():
            name = entry.name.lower()
            if needle in name or needle in entry.case_id.lower():
                score = 0.9 if name.startswith(needle) else 0.6 if needle in name else 0.4
                title = Text(clip(visible(entry.name, newlines=False), 120))
                for beside in filter(None, (entry.variant, entry.suite)):
                    title.append(f"{services.symbols.dot}{clip(visible(beside, newlines=False), 120)}", "dim")
                yield Hit(score, title, partial(services.places.open_case_id, entry.case_id), text=entry.name)
                found += 1
                if found >= MOST_CASES:
                    return


class Manual(Provider):
    """Pages of the manual, by `help` and the words of their titles."""

    _reading: asyncio.Future[dict[str, str]]

    async def startup(self) -> None:
        """Begin to read the titles, in a thread; a wait for it here would be cancelled by the next letter."""
        self._reading = asyncio.ensure_future(asyncio.to_thread(manual.pages))

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for page, title in (await asyncio.shield(self._reading)).items():
            words = f"Help: {title}"
            score = matcher.match(words)
            if score > 0:
                shown = Content.assemble(" " * KEY_WIDTH, matcher.highlight(words))
                # After actions that match as well: what is done here is nearer than what is read.
                yield Hit(score * 0.9, shown, partial(self._open, page, title), text=words)

    def _open(self, page: str, title: str) -> None:
        self.app.push_screen(ManualScreen(page, title))


def _listed() -> Iterator[Key]:
    return (key for key in KEYS if key.id not in UNLISTED and key.place not in ("moving", "step"))


def _shown(key: Key, words: Content) -> Content:
    """An action on one line: its key in a column, then its words."""
    return Content.assemble((f"{key.shown:<{KEY_WIDTH}}", "$text-accent"), words)


def _title(key: Key) -> str:
    words = key.words
    return words[0].upper() + words[1:]
