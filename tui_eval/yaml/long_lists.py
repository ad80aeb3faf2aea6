"""A text of thousands of cases, of which an edit needs the nodes of few: the items of long lists at the top that it has
nothing to do with are taken out before ruamel.yaml, which is Python, composes it (20,000 cases take it ten seconds),
and in the nodes the places of those that stay are put right. Each of the others is one empty node: items keep their
numbers."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any, NamedTuple

LONG = 200
"""Items of a list from which on it is worth it."""
_ITEM = re.compile(r"[ ]*- +")


class _Cut(NamedTuple):
    """Lines that were taken out: where they stood in what is left, and how many characters and lines went
    until here."""

    at: int
    characters: int
    lines: int


class ShortenedText(NamedTuple):
    """A text without the items that nobody asks for. `lists` has, of each list that was shortened, its key (None: the
    document is the list) and of each of its items what it is, empty where it stays."""

    text: str
    cuts: list[_Cut]
    lists: list[tuple[str | None, list[str]]]

    def put_right(self, root: Any) -> None:
        """Give the nodes of the shorter text the places of the whole one."""
        for key, kinds in self.lists:
            found = root if key is None else next(value for name, value in root.value if name.value == key)
            stays = iter(found.value)
            found.value = [_empty(kind) if kind else next(stays) for kind in kinds]
        places = [cut.at for cut in self.cuts]
        seen: set[int] = set()
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if id(node) in seen or isinstance(node, SimpleNamespace):
                continue
            seen.add(id(node))
            for mark in (node.start_mark, node.end_mark):
                before = bisect_left(places, mark.index)
                if id(mark) not in seen and before:
                    mark.index += self.cuts[before - 1].characters
                    mark.line += self.cuts[before - 1].lines
                seen.add(id(mark))
            if node.id != "scalar":
                waiting += [one for part in node.value for one in (part if node.id == "mapping" else (part,))]


def _empty(kind: str) -> SimpleNamespace:
    mark = SimpleNamespace(index=0, line=0, column=0)
    value: Any = "" if kind == "scalar" else []
    return SimpleNamespace(
        id=kind, value=value, tag="", anchor=None, comment=None, style="'", flow_style=True, start_mark=mark, end_mark=mark
    )  # fmt: skip


def shortened(text: str, lines: Collection[int]) -> ShortenedText | None:
    """The text with only the first and the last item of each long list at the top and those that stand on
    these lines (from 1); None where that is the whole text, or it is not written plainly enough to tell."""
    if text.count("\n") < LONG:
        return None
    import yaml

    from tui_eval.yaml import yaml_lines

    try:
        root = yaml_lines.composed(text)
    except (yaml.YAMLError, UnicodeError, RecursionError):
        return None
    lists: list[tuple[str | None, list[str]]] = []
    spans: list[tuple[int, int]] = []
    for key, node in _lists_at_the_top(root):
        starts = _starts(text, node)
        if starts is None:
            return None
        first = [item.start_mark.line + 1 for item in node.value]
        wanted = {0, len(first) - 1}
        for line in lines:
            at = bisect_left(first, line + 1) - 1
            if at >= 0:
                wanted.add(at)
        kinds = ["" if at in wanted else item.id for at, item in enumerate(node.value)]
        lists.append((key, kinds))
        spans += [(starts[at], starts[at + 1]) for at, kind in enumerate(kinds) if kind]
    if not spans:
        return None
    kept: list[str] = []
    cuts: list[_Cut] = []
    end = left = gone = rows = 0
    for start, stop in spans:
        kept.append(text[end:start])
        left += start - end
        gone += stop - start
        rows += text.count("\n", start, stop)
        if cuts and cuts[-1].at == left:
            cuts.pop()
        cuts.append(_Cut(left, gone, rows))
        end = stop
    return ShortenedText("".join([*kept, text[end:]]), cuts, lists)


def _lists_at_the_top(root: Any) -> list[tuple[str | None, Any]]:
    found: list[tuple[str | None, Any]] = []
    if root is not None and root.id == "sequence":
        found = [(None, root)]
    elif root is not None and root.id == "mapping" and not root.flow_style:
        found = [(key.value, value) for key, value in root.value if isinstance(key.value, str)]
    names = [key for key, _ in found]
    return [
        (key, one)
        for key, one in found
        if one.id == "sequence" and not one.flow_style and len(one.value) >= LONG and names.count(key) == 1
    ]


def _starts(text: str, node: Any) -> list[int] | None:
    """Where the line of each item begins; None where one does not stand behind the dash of a line of its own (an alias
    has the place of its anchor)."""
    starts: list[int] = []
    for item in node.value:
        at = item.start_mark.index
        line = text.rfind("\n", 0, at) + 1
        if (starts and line <= starts[-1]) or not _ITEM.fullmatch(text, line, at):
            return None
        starts.append(line)
    return starts
