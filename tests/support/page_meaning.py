"""What a browser makes of a page: elements, attributes and text, whatever the source looks like."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import html5lib

_FLOWING = {"a", "span", "strong", "small", "code", "del", "ins", "label", "input", "button"}
"""Elements in a line of text, where a space between two is seen."""
_VERBATIM = {"pre", "style", "title", "option"}


def meaning(page: str) -> str:
    """The page's tree, a line an element or text. White space is one blank where a line of text has it, kept as
    it is in `pre` and the like, and dropped at the borders of blocks."""
    root = html5lib.parse(page, treebuilder="dom")
    root.normalize()
    return "\n".join(_lines(root.documentElement, 0)) + "\n"


def _lines(node: Any, depth: int) -> Iterator[str]:
    name = node.tagName
    told = "".join(f" {key}={value!r}" for key, value in sorted(node.attributes.items()))
    yield f"{' ' * depth}<{name}{told}>"
    children = [child for child in node.childNodes if child.nodeType in (1, 3)]
    for index, child in enumerate(children):
        if child.nodeType == 1:
            yield from _lines(child, depth + 1)
            continue
        text = child.data
        if name not in _VERBATIM:
            text = re.sub(r"[ \t\n\r\f]+", " ", text)
            if not _beside_text(children, index - 1, name):
                text = text.lstrip(" ")
            if not _beside_text(children, index + 1, name):
                text = text.rstrip(" ")
        elif name == "style":
            text = " ".join(text.split())
        if text:
            yield f"{' ' * (depth + 1)}{text!r}"


def _beside_text(children: list[Any], index: int, parent: str) -> bool:
    """Whether white space towards that neighbour is seen."""
    if not 0 <= index < len(children):
        return parent in ("span", "strong", "small", "a", "del", "ins", "code")
    return children[index].nodeType == 3 or children[index].tagName in _FLOWING
