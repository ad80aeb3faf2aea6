"""What ctrl+p finds: every action by its words, every case by its name, every place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui_eval.guard.text import clip, visible
from tui_eval.tui.keys import KEYS, Key

if TYPE_CHECKING:
    from tui_eval.tui.app import EvalApp

MOST_CASES = 50
UNLISTED = ("list.down", "list.up", "palette", "back", "copy_or_quit")


class Actions(Provider):
    """Actions and places."""

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for key in _listed():
            yield DiscoveryHit(_title(key), partial(self._do, key), help=f"key {key.shown}")

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for key in _listed():
            score = matcher.match(_title(key))
            if score > 0:
                yield Hit(
                    score, matcher.highlight(_title(key)), partial(self._do, key), help=f"key {key.shown}"
                )

    async def _do(self, key: Key) -> None:
        app = cast("EvalApp", self.app)
        await app.do(key.action)


class Cases(Provider):
    """Cases by name and id."""

    async def search(self, query: str) -> Hits:
        """At most fifty; names that begin with the text come first."""
        app = cast("EvalApp", self.app)
        needle = query.lower()
        found = 0
        for item in app.state.rows:
            name = item.name.lower()
            if needle in name or needle in item.case_id.lower():
                score = 0.9 if name.startswith(needle) else 0.6 if needle in name else 0.4
                title = Text(clip(visible(item.name, newlines=False), 120))
                place = Text(clip(visible(item.suite, newlines=False), 120))
                yield Hit(
                    score, title, partial(app.open_case_id, item.case_id), text=item.name, help=str(place)
                )
                found += 1
                if found >= MOST_CASES:
                    return


def _listed() -> Iterator[Key]:
    return (key for key in KEYS if key.id not in UNLISTED and key.place not in ("moving", "step"))


def _title(key: Key) -> str:
    words = key.words
    return words[0].upper() + words[1:]
