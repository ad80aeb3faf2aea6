"""What ctrl+p finds: every action by its words, every case by its name, every place, every page of the manual."""

from __future__ import annotations

import asyncio
import heapq
import re
from collections.abc import Iterator
from functools import partial
from typing import cast

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from tui_eval import help as manual
from tui_eval.guard.text import clip, visible
from tui_eval.tui.keys import KEYS, Key
from tui_eval.tui.services import HasServices
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.telling_apart import RowName, row_names
from tui_eval.tui.state.text.fitting import cell_len

MOST_CASES = 50
UNLISTED = ("palette", "back", "copy_or_quit", "settings.edit")
KEY_WIDTH = 8
"""Cells of the key before an action's words."""
WIDEST = 90
"""Cells that the palette has at most."""
BESIDE = 6
"""Cells of the palette that a row has not, with a bar to scroll."""
WRITES = (
    "case.accept",
    "case.take_back",
    "case.save",
    "case.edit",
    "agent.edit",
    "case.cancel",
    "run.cancel",
    "run.all",
    "run.failed",
    "case.rerun",
    "case.once_more",
    "case.judge_again",
)
"""Actions that change a file, end something or ask an agent or a judge, which costs: cases that match as well stand
before them."""
ACTION, CASE, WRITING, PAGE = 0.8, 0.6, 0.4, 0.2
"""What stands first of what matches equally well."""
AT_A_TIME = 5_000
"""Cases that are looked at before keys have their turn again."""


def rank(needle: str, text: str, scattered: float = 0.0) -> int:
    """How well a text matches: 4 where it begins with what was typed, 3 where a word of it does, 2 where it holds it,
    1 where its letters are there scattered (`scattered` above 0), 0 not at all."""
    needle, text = needle.strip().lower(), text.lower()
    if not needle:
        return 0
    if text.startswith(needle):
        return 4
    if needle in text:
        return 3 if re.search(rf"(?<!\w){re.escape(needle)}", text) else 2
    return 1 if scattered > 0 else 0


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
            matched = rank(query, _title(key), matcher.match(_title(key)))
            if matched:
                shown = _shown(key, matcher.highlight(_title(key)))
                score = matched + (WRITING if key.id in WRITES else ACTION)
                yield Hit(score, shown, partial(self._do, key), text=_title(key))

    async def _do(self, key: Key) -> None:
        await cast("HasServices", self.app).services.do(key.id)


class Cases(Provider):
    """Cases by name and id."""

    async def search(self, query: str) -> Hits:
        """The fifty that match best; names that begin with the text come first."""
        services = cast("HasServices", self.app).services
        best: list[tuple[float, int, CaseRow]] = []
        for number, entry in enumerate(services.places.all_cases()):
            if number % AT_A_TIME == AT_A_TIME - 1:
                await asyncio.sleep(0)
            matched = rank(query, f"{entry.name} {entry.variant}") or min(rank(query, entry.case_id), 1)
            if matched:
                found = (matched + CASE, -number, entry)
                (heapq.heappush if len(best) < MOST_CASES else heapq.heappushpop)(best, found)
        found = sorted(best, reverse=True, key=lambda one: one[:2])
        names = row_names((entry.name, entry.variant, entry.suite) for _, _, entry in found)
        several = len({entry.suite for _, _, entry in found}) > 1
        width = row_width(self.screen.size.width)
        for (score, _, entry), name in zip(found, names, strict=True):
            title = row_title(name, entry.suite if several else "", services.symbols.dot, width)
            yield Hit(score, title, partial(services.places.open_row, entry), text=entry.name)


def row_width(screen: int) -> int:
    """Cells that a row has, of a screen so wide."""
    return min(screen, WIDEST) - BESIDE


def row_title(name: RowName, suite: str, dot: str, width: int) -> Text:
    """A case in so many cells: its name and what tells it from the others found, cut where that tells nothing, then
    its suite, or the suite's file, where there is room."""
    called, variant = name.fitted(width - cell_len(dot) * bool(name.variant))
    title = Text(called)
    if variant:
        title.append(f"{dot}{variant}", "dim")
    path = visible(clip(suite, 120), newlines=False)
    room = width - title.cell_len - cell_len(dot)
    beside = next((one for one in (path, path.rpartition("/")[2]) if one and cell_len(one) <= room), "")
    if beside:
        title.append(f"{dot}{beside}", "dim")
    return title


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
            matched = max(rank(query, words, matcher.match(words)), rank(query, title))
            if matched:
                shown = Content.assemble(" " * KEY_WIDTH, matcher.highlight(words))
                # After actions that match as well: what is done here is nearer than what is read.
                yield Hit(matched + PAGE, shown, partial(self._open, page, title), text=words)

    def _open(self, page: str, title: str) -> None:
        cast("HasServices", self.app).services.places.show("manual", page, title)


class Themes(Provider):
    """Themes by name: the one in force first, then ours, then Textual's."""

    async def discover(self) -> Hits:
        """All of them."""
        for name in sorted(self.app.available_themes, key=self._place):
            yield DiscoveryHit(self._shown(name), partial(self._take, name), text=name)

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for number, name in enumerate(sorted(self.app.available_themes, key=self._place)):
            if matched := rank(query, name, matcher.match(name)):
                yield Hit(matched - number / 1_000, self._shown(name), partial(self._take, name), text=name)

    def _place(self, name: str) -> tuple[bool, bool, str]:
        return name != self.app.theme, not name.startswith("tui-eval"), name

    def _shown(self, name: str) -> Content:
        return Content.assemble(name, ("  in force" if name == self.app.theme else "", "$text-muted"))

    def _take(self, name: str) -> None:
        self.app.theme = name


def _listed() -> Iterator[Key]:
    return (key for key in KEYS if key.id not in UNLISTED and key.place not in ("moving", "step"))


def _shown(key: Key, words: Content) -> Content:
    """An action on one line: its key in a column, then its words."""
    return Content.assemble((f"{key.shown:<{KEY_WIDTH - 1}} ", "$text-accent"), words)


def _title(key: Key) -> str:
    words = key.words
    return words[0].upper() + words[1:]
