"""Changing single values of a YAML text where they stand, so that comments and layout stay as they are.

ruamel.yaml composes the text into nodes that know their places; only the characters of the changed node
are replaced. Nothing is constructed, so nothing in a file is run or resolved.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

Path = tuple[str | int, ...]


class EditError(Exception):
    """The change cannot be made in this text; one clear line."""


class ValueNotThere(EditError):
    """What is to change is not in this text."""


class FoundNode(NamedTuple):
    """A node with its key path, its place, and, for a value, the line of its key."""

    path: Path
    node: Any
    line: int
    parent: Any
    place: int


class YamlText:
    """One YAML document as text and nodes. Each change gives a new text; make a new one for the next.

    Raises:
        EditError: it is no YAML.
    """

    def __init__(self, text: str) -> None:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError

        self.text = text
        self._shift = 1 if text.startswith("\ufeff") else 0
        self.root: Any = None
        source = text[self._shift :]
        problem: Exception | None = None
        # The suites' reader takes tabs between tokens, ruamel's does not; places are the same with blanks.
        for attempt in (source, source.replace("\t", " ")) if "\t" in source else (source,):
            try:
                self.root = YAML(typ="rt", pure=True).compose(attempt)
                return
            except (YAMLError, ValueError, RecursionError) as error:
                problem = error
        words = " ".join(str(getattr(problem, "problem", None) or problem).split())
        raise EditError(f"not valid YAML: {words}") from None

    def nodes(self) -> Iterator[FoundNode]:
        """Every value of the document; aliases only where their anchor is."""
        seen: set[int] = set()
        waiting: list[FoundNode] = [FoundNode((), self.root, 1, None, 0)]
        while waiting:
            found = waiting.pop()
            node = found.node
            if node is None or id(node) in seen:
                continue
            seen.add(id(node))
            yield found
            if node.id == "mapping":
                below = [
                    FoundNode((*found.path, key.value), value, key.start_mark.line + 1, node, index)
                    for index, (key, value) in enumerate(node.value)
                    if key.id == "scalar"
                ]
            elif node.id == "sequence":
                below = [
                    FoundNode((*found.path, index), value, value.start_mark.line + 1, node, index)
                    for index, value in enumerate(node.value)
                ]
            else:
                continue
            waiting.extend(reversed(below))

    def at(self, *path: str | int) -> FoundNode | None:
        """The node at a key path."""
        return next((found for found in self.nodes() if found.path == path), None)

    def anchor_around(self, found: FoundNode) -> str:
        """The anchor that a value stands within, of those that are referred to; empty where there is none."""
        around = {found.path[:length] for length in range(len(found.path))}
        named = [one.node.anchor for one in self.nodes() if one.path in around and one.node.anchor]
        return next((str(name) for name in reversed(named) if f"*{name}" in self.text), "")

    def replace(self, found: FoundNode, value: Any) -> str:
        """The text with another value in the place of this one, in the same style where that can be.

        Raises:
            EditError: the node carries an anchor, whose other uses would change too.
        """
        node = found.node
        if getattr(node, "anchor", None):
            raise EditError(f"line {found.line} has an anchor (&{node.anchor}) that others use")
        start, end = self._span(node)
        folded = getattr(node, "style", None) in ("|", ">") and isinstance(value, str)
        if (isinstance(value, str) and "\n" in value and (folded or self._takes_block(found))) or folded:
            new = self._block(found, value)
        else:
            new = scalar(value, getattr(node, "style", None))
        return self.text[:start] + new + self.text[end:]

    def remove(self, found: FoundNode) -> str:
        """The text without this list item; a list that would be empty goes with its key.

        Raises:
            EditError: it is no list item, or its list has no key.
        """
        parent = found.parent
        if parent is None or parent.id != "sequence":
            raise EditError(f"line {found.line} is no item of a list")
        if len(parent.value) == 1:
            return self._without_list(found)
        if parent.flow_style:
            items = parent.value
            if found.place + 1 < len(items):
                start, end = self._start(found.node), self._start(items[found.place + 1])
            else:
                start, end = self._span(items[found.place - 1])[1], self._span(found.node)[1]
            return self.text[:start] + self.text[end:]
        start = self.text.rfind("\n", 0, self._start(found.node)) + 1
        return self.text[:start] + self.text[self._line_end(found.node) :]

    def insert_after(self, found: FoundNode, item: str) -> str:
        """The text with lines after a block node; `item` is whole lines."""
        end = self._line_end(found.node)
        before = self.text[:end]
        if before and not before.endswith("\n"):
            before += "\n"
        return before + item + self.text[end:]

    def start(self, node: Any) -> int:
        """Where a node begins, in characters."""
        return self._start(node)

    def text_of(self, node: Any) -> str:
        """A node as the file writes it."""
        start, end = self._span(node)
        return self.text[start:end]

    def _without_list(self, found: FoundNode) -> str:
        owner = next((f for f in self.nodes() if f.node is found.parent), None)
        holder = owner.parent if owner is not None else None
        if owner is None or holder is None or holder.id != "mapping":
            raise EditError(f"line {found.line} is the only item of its list")
        key = holder.value[owner.place][0]
        if holder.flow_style or len(holder.value) == 1:
            start, end = self._span(owner.node)
            gap = "" if self.text[start - 1].isspace() or owner.node.flow_style else " "
            return self.text[:start].rstrip() + (gap or " ") + "[]" + self.text[end:]
        start = self.text.rfind("\n", 0, self._start(key)) + 1
        if self.text[start : self._start(key)].strip():  # `- key:`: the dash must stay
            begin, end = self._span(owner.node)
            return self.text[:begin].rstrip() + " []" + self.text[end:]
        return self.text[:start] + self.text[self._line_end(owner.node) :]

    def _start(self, node: Any) -> int:
        return node.start_mark.index + self._shift

    def _span(self, node: Any) -> tuple[int, int]:
        start, end = self._start(node), node.end_mark.index + self._shift
        return start, start + len(self.text[start:end].rstrip())

    def _line_end(self, node: Any) -> int:
        end = self.text.find("\n", self._last(node))
        return len(self.text) if end < 0 else end + 1

    def _last(self, node: Any) -> int:
        """Where the last character of a node stands; block collections end where the next token is."""
        if node.id == "scalar" or node.flow_style or not node.value:
            return self._span(node)[1]
        last = node.value[-1]
        return self._last(last[1] if node.id == "mapping" else last)

    def _takes_block(self, found: FoundNode) -> bool:
        return found.parent is not None and found.parent.id == "mapping" and not found.parent.flow_style

    def _block(self, found: FoundNode, value: str) -> str:
        parent = found.parent
        indent = (parent.value[found.place][0].start_mark.column if parent.id == "mapping" else 0) + 2
        node = found.node
        if getattr(node, "style", None) in ("|", ">"):
            below = self.text[self._start(node) :].split("\n", 2)
            if len(below) > 1 and below[1].strip():
                indent = len(below[1]) - len(below[1].lstrip(" "))
        return block(value, indent)


_UNPRINTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def block(value: str, indent: int) -> str:
    """A text as a literal block below its key; as one quoted line where a block cannot hold it."""
    lines = value.removesuffix("\n").split("\n")
    if _UNPRINTED.search(value) or not lines[0].strip() or lines[0][0] == " " or not lines[-1].strip():
        return scalar(value, '"')
    if any(line.startswith("\t") for line in lines):
        return scalar(value, '"')
    mark = "|" if value.endswith("\n") else "|-"
    return mark + "\n" + "\n".join(" " * indent + line if line else "" for line in lines)


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./ -]*[A-Za-z0-9]|[A-Za-z]")
_WORDS = re.compile(r"(?i)(?:y|n|yes|no|true|false|on|off|null|nan|inf)")


def scalar(value: Any, style: str | None = None) -> str:
    """A value as one line of YAML, in any context and either dialect; `style` is the wished quote."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if style is None and _PLAIN.fullmatch(value) and not _WORDS.fullmatch(value):
        return value
    if style == "'" and value.isprintable():
        return "'" + value.replace("'", "''") + "'"
    quoted = json.dumps(value, ensure_ascii=False)
    return re.sub(
        r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff\u200e\u200f\u202a-\u202e\u2066-\u2069]",
        lambda match: f"\\u{ord(match[0]):04x}",
        quoted,
    )
