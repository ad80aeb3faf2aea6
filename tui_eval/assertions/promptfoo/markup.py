"""Elements of XML within any text, read far more laxly than a document."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_START = (
    ":A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = f"[{_START}][{_START}\\-.0-9\u00b7\u0300-\u036f\u203f-\u2040]{{0,1000}}"
# What stands within quotes belongs to the tag whatever it is; an opening angle bracket does not.
_TAG = re.compile(
    rf"<(?P<close>/?)(?P<name>{_NAME})(?P<rest>(?:[^<>\"']|\"[^\"]{{0,10000}}\"|'[^']{{0,10000}}'){{0,10000}}+)>"
)
_ATTRIBUTE = re.compile(r"([^\s=/]+)\s{0,20}(?:=\s{0,20}(?:\"[^\"]*\"|'[^']*'))?")
_PASSED_OVER = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"))


class Node:
    """An element as far as paths need it: what elements, attributes and text it holds."""

    __slots__ = ("attributes", "children", "has_text", "name")

    def __init__(self, name: str, attributes: Sequence[str] = ()) -> None:
        self.name = name
        self.attributes = attributes
        self.children: dict[str, list[Node]] = {}
        self.has_text = False

    def add(self, child: Node) -> None:
        """Append a child element."""
        self.children.setdefault(child.name, []).append(child)

    def add_text(self, text: str) -> None:
        """Note text; white space alone is none."""
        self.has_text = self.has_text or bool(text.strip())

    def leaves(self) -> set[str]:
        """Names of attributes, and of text that is not all there is."""
        names = {f"@_{name}" for name in self.attributes}
        return names | {"#text"} if self.has_text and (names or self.children) else names


@dataclass(slots=True)
class Element:
    """A complete element in a text; `parent` is where the element around it starts, if one was open."""

    node: Node
    start: int
    parent: int | None


def elements_in(text: str) -> list[Element]:
    """Every complete element, those inside before those around them.

    Attributes need no quotes, prefixes and entities no declaration. One pass: an end tag that does
    not fit leaves every element open around it incomplete.
    """
    found: list[Element] = []
    stack: list[tuple[Node, int]] = []
    last = 0
    for tag in _tags(text):
        if stack:
            stack[-1][0].add_text(text[last : tag.start()])
        last = tag.end()
        name, rest = tag["name"], tag["rest"]
        if tag["close"]:
            if not stack or stack[-1][0].name != name:
                stack.clear()
                continue
            node, start = stack.pop()
        else:
            node, start = Node(name, _ATTRIBUTE.findall(rest)), tag.start()
            if not rest.rstrip().endswith("/"):
                stack.append((node, start))
                continue
        if stack:
            stack[-1][0].add(node)
        found.append(Element(node, start, stack[-1][1] if stack else None))
    return found


def _tags(text: str) -> Iterator[re.Match[str]]:
    """Tags in order, without those in comments, CDATA and instructions."""
    endless: set[str] = set()
    place = text.find("<")
    while place >= 0:
        following = place + 1
        for opening, closing in _PASSED_OVER:
            if opening not in endless and text.startswith(opening, place):
                end = text.find(closing, place + len(opening))
                if end < 0:
                    endless.add(opening)
                else:
                    following = end + len(closing)
                break
        else:
            if tag := _TAG.match(text, place):
                yield tag
                following = tag.end()
        place = text.find("<", following)
