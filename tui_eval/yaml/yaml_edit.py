"""Changing single values of a YAML text where they stand, so that comments and layout stay as they are.

ruamel.yaml composes the text into nodes that know their places; only the characters of the changed node are
replaced. Nothing is constructed, so nothing in a file is run or resolved. A change is read again before it is
given: where it would touch anything but what was meant (a text that an alias stands for, a comment that
becomes a value), it is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from copy import copy
from datetime import date
from functools import cache
from math import isfinite
from typing import Any, NamedTuple

from tui_eval.yaml.long_lists import shortened

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

    def __init__(self, text: str, lines: Collection[int] | None = None) -> None:
        """`lines`: of long lists at the top only the first item, the last, and those on these lines (from 1) are looked
        into; the others are there as empty ones. Otherwise all are, which takes a second for 2,000 cases."""
        from ruamel.yaml.error import YAMLError

        self.text = text
        self._shift = 1 if text.startswith("\ufeff") else 0
        self.root: Any = None
        source = text[self._shift :]
        problem: Exception | None = None
        # The suites' reader takes tabs between tokens, ruamel's does not; places are the same with blanks.
        short = shortened(source, lines) if lines is not None else None
        if short is not None:
            with suppress(YAMLError, ValueError, RecursionError):  # what it refers to may have been taken out
                self.root = _yaml().compose(short.text)
                short.put_right(self.root)
                return
        for attempt in (source, source.replace("\t", " ")) if "\t" in source else (source,):
            try:
                self.root = _yaml().compose(attempt)
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
            if node is None or _is_alias(node) or id(node) in seen:
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
        if (items := _one_by_one(node, value)) is not None:
            return self._items_replaced(found, items)
        return self._checked(found, self._replaced(found, value), {found.path: _written(value)})

    def _replaced(self, found: FoundNode, value: Any) -> str:
        node = found.node
        if _is_empty(node):
            at = self._key_end(found.parent, found.place, found.line)
            return f"{self.text[:at]} {scalar(value)}{self.text[at:]}"
        start, end = self._start(node), self._end(node)
        below = node.id != "scalar" and not node.flow_style and node.value
        if below and found.parent is not None and found.parent.id == "mapping":
            at, line = self._key_end(found.parent, found.place, found.line), self._line_start(start)
            if at < line:  # on the line of its key: as far out as a list may stand a value may not
                head, rest = f"{self.text[:at]} {flow(value)}", self.text[self._line_end(node) :]
                return head + self.text[at:line] + rest
        blocked = getattr(node, "style", None) in ("|", ">")
        ends_line = not self.text[end:].partition("\n")[0].strip()  # a comment would be a part of the block
        if isinstance(value, str) and (blocked or ("\n" in value and ends_line and self._takes_block(found))):
            new = self._block(found, value)
            if new[0] == "|" and value.endswith("\n") and "\n" not in self.text[end:]:
                new += "\n"  # the file ends without one
        else:
            new = scalar(value, getattr(node, "style", None))
        return self.text[:start] + new + self.text[end:]

    def remove(self, found: FoundNode) -> str:
        """The text without this list item; a list that would be empty goes with its key.

        Raises:
            EditError: it is no list item, its list has no key, or something else refers to it.
        """
        parent = found.parent
        if parent is None or parent.id != "sequence":
            raise EditError(f"line {found.line} is no item of a list")
        if name := next((one for one in _anchors(found.node) if f"*{one}" in self.text), ""):
            raise EditError(f"line {found.line} has an anchor (&{name}) that others use")
        if len(parent.value) == 1:
            return self._without_list(found)
        gone = {found.path: _GONE}
        start, end = self._start(found.node), self._end(found.node)
        if not parent.flow_style:
            start = self._line_start(self._dash(found))
            return self._checked(found, self.text[:start] + self.text[self._line_end(found.node) :], gone)
        if found.place + 1 < len(parent.value):
            after = self.text.find(",", end) + 1
            end = after + len(self.text[after:]) - len(self.text[after:].lstrip())
        else:
            start = self._end(parent.value[found.place - 1])
        return self._checked(found, self.text[:start] + self.text[end:], gone)

    def _items_replaced(self, found: FoundNode, values: Mapping[str | int, Any]) -> str:
        """The text with other values below a node; those that stay are not touched. From the last, so that the places
        before it stay."""
        text, changed = copy(self), dict[Path, Any]()
        for place, item in reversed(list(enumerate(found.node.value))):
            key, node = (item[0].value, item[1]) if found.node.id == "mapping" else (place, item)
            if not _says(node, values[key]):
                path = (*found.path, key)
                text.text = text._replaced(FoundNode(path, node, found.line, found.node, place), values[key])
                changed[path] = _written(values[key])
        return self._checked(found, text.text, changed)

    def with_last(self, found: FoundNode, item: str) -> str:
        """The text with one more item at the end of a block list; `item` is whole lines, from the column of its dash.

        Raises:
            EditError: it would touch something else.
        """
        first, last = found.node.value[0], found.node.value[-1]
        dash = self._dash(FoundNode(found.path, first, found.line, found.node, 0))
        column = dash - self._line_start(dash)
        end = self._line_end(last)
        before = self.text[:end]
        gap = "\n" if "\n\n" in self.text[self._start(first) : self._start(last)] else ""
        lines = "".join(
            " " * column + line if line.strip() else line for line in item.splitlines(keepends=True)
        )
        new = before + ("\n" if before and not before.endswith("\n") else "") + gap + lines + self.text[end:]
        return self.checked_last(found, new)

    def checked_last(self, found: FoundNode, new: str) -> str:
        """A text that was made of this one by adding an item to a list, if that is all that was done.

        Raises:
            EditError: something else would change, too.
        """
        if not _same(self.text, {}, new, {(*found.path, len(found.node.value)): _GONE}):
            raise _touching(found.line)
        return new

    def start(self, node: Any) -> int:
        """Where a node begins, in characters."""
        return self._start(node)

    def text_of(self, node: Any) -> str:
        """A node as the file writes it."""
        return self.text[self._start(node) : self._end(node)]

    def _without_list(self, found: FoundNode) -> str:
        owner = next((f for f in self.nodes() if f.node is found.parent), None)
        holder = owner.parent if owner is not None else None
        if owner is None or holder is None or holder.id != "mapping":
            raise EditError(f"line {found.line} is the only item of its list")
        key = holder.value[owner.place][0]
        emptied = {owner.path: ("sequence", ())}
        start, end = self._start(owner.node), self._end(owner.node)
        if owner.node.flow_style and (holder.flow_style or len(holder.value) == 1):
            return self._checked(found, f"{self.text[:start]}[]{self.text[end:]}", emptied)
        line = self._line_start(self._start(key))
        rest = self.text[self._line_end(owner.node) :]
        # `- key:`: the dash must stay.
        if len(holder.value) > 1 and not self.text[line : self._start(key)].strip():
            return self._checked(found, self.text[:line] + rest, {owner.path: _GONE})
        if owner.node.flow_style:
            return self._checked(found, f"{self.text[:start]}[]{self.text[end:]}", emptied)
        at, dash = self._key_end(holder, owner.place, found.line), self._line_start(self._dash(found))
        return self._checked(found, f"{self.text[:at]} []{self.text[at:dash]}{rest}", emptied)

    def _checked(self, found: FoundNode, new: str, changed: Mapping[Path, Any]) -> str:
        """The new text, if it reads as this one but for the nodes that were to change.

        Raises:
            EditError: it does not.
        """
        if not _same(self.text, changed, new, {}):
            raise _touching(found.line)
        return new

    def _start(self, node: Any) -> int:
        return node.start_mark.index + self._shift

    def _end(self, node: Any) -> int:
        """Behind the last character of a node; block collections, to the parser, end where the next token is."""
        if node.id != "scalar" and not node.flow_style and node.value and not _is_alias(node):
            return self._last(node)
        start, end = self._start(node), node.end_mark.index + self._shift
        if node.id == "scalar" and node.style in ("|", ">"):  # blanks at the end of a line of it are its own
            return start + len(_EMPTY_LINES.sub("", self.text[start:end]))
        return start + len(self.text[start:end].rstrip())

    def _last(self, node: Any) -> int:
        """As `_end`; of a value that is not written, behind its key."""
        if node.id == "scalar" or node.flow_style or not node.value or _is_alias(node):
            return self._end(node)
        last = node.value[-1]
        if node.id == "mapping" and _is_empty(last[1]):
            return self._key_end(node, len(node.value) - 1, last[0].start_mark.line + 1)
        return self._last(last[1] if node.id == "mapping" else last)

    def _key_end(self, parent: Any, place: int, line: int) -> int:
        """Behind the colon of a key.

        Raises:
            EditError: it has none, or is no key.
        """
        key = parent.value[place][0] if parent is not None and parent.id == "mapping" else None
        colon = _COLON.match(self.text, self._end(key)) if key is not None else None
        if colon is None:
            raise _touching(line)
        return colon.end()

    def _dash(self, found: FoundNode) -> int:
        """Where the dash of an item of a block list stands: before it, or on a line of its own above.

        Raises:
            EditError: neither.
        """
        at = self._start(found.node)
        line = self._line_start(at)
        item = _DASH.fullmatch(self.text, line, at)
        while item is None and line > 0:
            end, line = line - 1, self._line_start(line - 1)
            item = _LONE_DASH.fullmatch(self.text, line, end)
            if item is None and self.text[line:end].strip() and self.text[line:end].lstrip()[0] != "#":
                break
        if item is None:
            raise _touching(found.line)
        return item.start("dash")

    def _line_start(self, at: int) -> int:
        return max(self.text.rfind("\n", 0, at) + 1, self._shift)

    def _line_end(self, node: Any) -> int:
        """Where the line after a node begins; empty lines that a block keeps (`|+`) are a part of it."""
        end = self.text.find("\n", self._last(node))
        deepest = node
        while deepest.id != "scalar" and not deepest.flow_style and deepest.value and not _is_alias(deepest):
            deepest = deepest.value[-1][1] if deepest.id == "mapping" else deepest.value[-1]
        kept = deepest.id == "scalar" and deepest.style in ("|", ">")
        if kept and "+" in self.text[self._start(deepest) :].partition("\n")[0].partition("#")[0]:
            return deepest.end_mark.index + self._shift
        return len(self.text) if end < 0 else end + 1

    def _takes_block(self, found: FoundNode) -> bool:
        return found.parent is not None and found.parent.id == "mapping" and not found.parent.flow_style

    def _block(self, found: FoundNode, value: str) -> str:
        node, parent = found.node, found.parent
        below = self.text[self._start(node) : self._end(node)].split("\n")[1:]
        if getattr(node, "style", None) in ("|", ">") and (first := next(filter(str.strip, below), "")):
            return block(value, len(first) - len(first.lstrip(" ")))
        if parent is None or parent.id != "mapping":
            return scalar(value, '"')
        return block(value, parent.value[found.place][0].start_mark.column + 2)


_EMPTY_LINES = re.compile(r"(?:\n[ \t]*)+\Z")
_COLON = re.compile(r"[ \t]*:")
_DASH = re.compile(r"[ \t]*(?P<dash>-)[ \t]+(?:[&!]\S+[ \t]+)*")
_LONE_DASH = re.compile(r"[ \t]*(?P<dash>-)[ \t]*(?:[&!]\S+[ \t]*)*(?:#.*)?")
_ALIAS: Any = "alias"
"""What stands in the place of the comment of a node that is an alias: a copy of its anchor's node where the
alias is."""


@cache
def _composer() -> Any:
    from ruamel.yaml.composer import Composer
    from ruamel.yaml.events import AliasEvent

    class Placed(Composer):
        """Knows where aliases stand; the composer gives only the nodes of their anchors."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if not self.parser.check_event(AliasEvent):
                return super().compose_node(parent, index)
            event = self.parser.peek_event()
            node = copy(super().compose_node(parent, index))
            node.start_mark, node.end_mark, node.comment = event.start_mark, event.end_mark, _ALIAS
            return node

    return Placed


def _yaml() -> Any:
    from ruamel.yaml import YAML

    yaml = YAML(typ="rt", pure=True)
    yaml.Composer = _composer()
    return yaml


def _is_alias(node: Any) -> bool:
    return node.comment is _ALIAS


def _is_empty(node: Any) -> bool:
    """Whether a value is not written at all (`key:`)."""
    return (
        node.id == "scalar"
        and not node.style
        and not node.anchor
        and node.start_mark.index == node.end_mark.index
    )


def _anchors(node: Any) -> Iterator[str]:
    """The names of the anchors of a node and of what is in it."""
    if _is_alias(node):
        return
    if node.anchor:
        yield str(node.anchor)
    for one in () if node.id == "scalar" else node.value:
        for part in one if node.id == "mapping" else (one,):
            yield from _anchors(part)


def _one_by_one(node: Any, value: Any) -> dict[str | int, Any] | None:
    """The values of a list as long as this one, or of a mapping with the same keys, where all are of one word
    or text."""
    if node.id == "sequence" and isinstance(value, list) and len(value) == len(node.value):
        items, found = node.value, dict[str | int, Any](enumerate(value))
    elif node.id == "mapping" and isinstance(value, Mapping):
        items, found = [item for _, item in node.value], dict[str | int, Any](value)
        if list(found) != [key.value for key, _ in node.value]:
            return None
    else:
        return None
    return found if all(item.id == "scalar" and not item.anchor for item in items) else None


_GONE = object()
_ELSEWHERE: Path = ("", -1)
"""A path of nothing that is given."""


def _same(old: str, left_old: Mapping[Path, Any], new: str, left_new: Mapping[Path, Any]) -> bool:
    """Whether two texts say the same, to the suites' reader and in either dialect, but for what is given by
    its path."""
    import yaml

    from tui_eval.yaml import yaml_lines

    known: dict[Any, int] = {}
    try:
        before = _Tree(left_old, known).of(yaml_lines.composed(old))
        return before == _Tree(left_new, known).of(yaml_lines.composed(new))
    except (yaml.YAMLError, UnicodeError, RecursionError):
        return False


class _Tree:
    """What the reader's nodes say, without their places, as a number that all that say the same have: aliases
    of aliases unfold to billions of values. Those at the paths that are given are as is said there, a node or
    what one says.
    """

    def __init__(self, given: Mapping[Path, Any], known: dict[Any, int]) -> None:
        self._given = given
        self._known = known
        self._done: dict[int, Any] = {}

    def of(self, node: Any, path: Path = ()) -> Any:
        if path in self._given:
            node, path = self._given[path], _ELSEWHERE
        if node is None or node is _GONE:
            return node
        if isinstance(node, tuple):
            return self._number(node)
        if node.id == "scalar":
            said = "text" if _is_text(node.tag, node.value) else str(node.tag)
            return self._number((said, node.value))
        if id(node) in self._done:
            return self._done[id(node)]
        self._done[id(node)] = "itself"
        if node.id == "sequence":
            items = [self.of(item, (*path, index)) for index, item in enumerate(node.value)]
            tree = "sequence", tuple(item for item in items if item is not _GONE)
        else:
            pairs = [
                (self.of(key, (*path, "")), self.of(value, (*path, key.value if key.id == "scalar" else "")))
                for key, value in node.value
            ]
            tree = "mapping", tuple(pair for pair in pairs if pair[1] is not _GONE)
        self._done[id(node)] = self._number(tree)
        return self._done[id(node)]

    def _number(self, said: tuple[str, Any]) -> int:
        return self._known.setdefault(said, len(self._known))


def _says(node: Any, value: Any) -> bool:
    """Whether a scalar is written as this value."""
    from tui_eval.yaml.yaml_lines import PLAIN

    text = node.value.replace("\a", "")  # ruamel marks where it folds
    return text == str(value) and isinstance(value, str) == (bool(node.style) or _is_text(PLAIN, text))


def _is_text(tag: str, value: str) -> bool:
    """Whether a scalar is a text in either dialect."""
    from tui_eval.yaml.yaml_lines import PLAIN
    from tui_eval.yaml.yaml_scalars import core_scalar, safe_scalar

    if tag != PLAIN:
        return tag in ("tag:yaml.org,2002:str", "!")
    return isinstance(safe_scalar(value), str) and isinstance(core_scalar(value), str)


def _written(value: Any) -> Any:
    """What the reader's node of a value says, or that node."""
    from tui_eval.yaml import yaml_lines

    return ("text", value) if isinstance(value, str) else yaml_lines.composed(flow(value))


def _touching(line: int) -> EditError:
    return EditError(f"line {line} cannot be changed without touching something else: edit the case (e)")


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
        return flow(value)
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


def flow(value: Any) -> str:
    """A value as one line of YAML, and of JSON where that has it, read back as the same in either dialect.

    Raises:
        EditError: YAML has no such value.
    """
    if isinstance(value, str):
        return scalar(value, '"')
    if isinstance(value, float):
        text = repr(value) if isfinite(value) else f".{value!r}".replace(".-", "-.")
        return text if "." in text else text.replace("e", ".0e")  # YAML 1.1 takes 1e+20 for a text
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    raise EditError(f"a value of the case is {type(value).__name__}, which cannot be written: edit the file")
