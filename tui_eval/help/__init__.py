"""The user's documentation, a page a file: printed by `tui-eval help`, shown in the app, linked from the README.

May not: hold code but for finding pages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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


def _here() -> Traversable:
    from importlib import resources  # imported late: no page is read at the app's start

    return resources.files(__name__)
