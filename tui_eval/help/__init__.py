"""The user's documentation, a page a file: printed by `tui-eval help`, shown in the app, linked from the README.

May not: hold code but for finding pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def pages() -> dict[str, str]:
    """Page name (file stem) to its title line."""
    found: dict[str, str] = {}
    for entry in sorted(_here().iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".md"):
            first = entry.read_text(encoding="utf-8").partition("\n")[0]
            found[entry.name.removesuffix(".md")] = first.lstrip("# ")
    return found


def page(name: str) -> str:
    """The text of a page without its pictures, which a terminal cannot show.

    Raises:
        FileNotFoundError: there is no such page.
    """
    text = (_here() / f"{name}.md").read_text(encoding="utf-8")
    kept: list[str] = []
    for line in text.splitlines():
        if line.startswith("!["):
            if kept and not kept[-1]:
                kept.pop()
            continue
        kept.append(line)
    return "\n".join(kept) + "\n"


class HelpSection(NamedTuple):
    """A part of a page, from its heading to the next one; `is_about` the word that was looked for where
    its heading has that."""

    page: str
    heading: str
    text: str
    is_about: bool


def sections(word: str) -> list[HelpSection]:
    """Where a word that is no page's name is explained: the sections whose headings have it, else all that mention it,
    those first that do most often."""
    stem = re.escape(word.removesuffix("s") if len(word) > 3 else word)
    looked_for = re.compile(rf"(?<!\w){stem}(?:s|es)?(?!\w)", re.IGNORECASE)
    every = [
        (len(looked_for.findall(text)), HelpSection(name, heading, text, bool(looked_for.search(heading))))
        for name in pages()
        for heading, text in _split(page(name))
    ]
    every = sorted((one for one in every if one[0]), key=lambda one: -one[0])
    headed = [one for _, one in every if one.is_about]
    return headed or [one for _, one in every]


def option_rows(option: str) -> list[tuple[str, str]]:
    """What the page of the command line says of an option in its tables: the option with its other names, and
    its meaning."""
    named = re.compile(rf"`{re.escape(option)}[` ]")
    rows = [
        line.strip("| ").split(" | ", 1)
        for line in page("command-line").splitlines()
        if line.startswith("| `-")
    ]
    return [(names.replace("`", ""), meaning) for names, meaning in rows if named.search(names)]


def _split(text: str) -> list[tuple[str, str]]:
    """The sections of a page, each with its heading; what looks like one in a block of code is none."""
    found: list[tuple[str, list[str]]] = []
    in_code = False
    for line in text.splitlines():
        in_code ^= line.startswith("```")
        if not in_code and (line.startswith(("## ", "### ")) or not found):
            found.append((line.lstrip("# "), []))
        found[-1][1].append(line)
    return [(heading, "\n".join(lines).strip() + "\n") for heading, lines in found]


def _here() -> Traversable:
    from importlib import resources  # imported late: no page is read at the app's start

    return resources.files(__name__)
