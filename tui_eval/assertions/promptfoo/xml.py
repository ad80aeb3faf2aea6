"""is-xml and contains-xml: well-formed text, required elements by dotted path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import js
from tui_eval.assertions.promptfoo.call import Call, Result

_VALID = "XML is valid and contains all required elements"
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z_][\w:.\-]{0,200})(?P<rest>[^<>]{0,10000}?)(?P<empty>/?)>")
_PASSED_OVER = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"))
_ATTRIBUTE = re.compile(r"([^\s=\"'/]{1,200})\s{0,20}=\s{0,20}(\"[^\"]*\"|'[^']*'|[^\s\"'>]+)")
_DEEPEST = 1000


class _Refused(Exception):
    pass


class Node:
    """An element as far as paths need it: children and attributes by name, in order."""

    __slots__ = ("children", "name")

    def __init__(self, name: str, attributes: dict[str, str]) -> None:
        self.name = name
        self.children: dict[str, list[Node | str]] = {
            f"@_{key}": [value] for key, value in attributes.items()
        }

    def add(self, child: Node) -> None:
        """Append a child element."""
        self.children.setdefault(child.name, []).append(child)


def is_xml(call: Call) -> Result:
    """The whole text is one well-formed document, without entities of its own, and has the elements."""
    wanted = _required(call)
    try:
        root = parse(call.text)
    except _Refused as error:
        return call.result(False, f"XML parsing failed: {error}", "")
    missing = [path for path in wanted if not _has([root], path)]
    return call.result(not missing, f"XML is missing required elements: {', '.join(missing)}", _VALID)


def contains_xml(call: Call) -> Result:
    """Some element in the text opens and closes, and has the required elements."""
    wanted = _required(call)
    groups = elements_in(call.text)
    if not groups:
        return call.result(False, "No XML content found in the output", "")
    candidates = [[root] for group in groups for root in group] + [
        group for group in groups if len(group) > 1
    ]
    found = any(all(_has(roots, path) for path in wanted) for roots in candidates)
    return call.result(found, "No valid XML content found matching the requirements", _VALID)


def _required(call: Call) -> list[str]:
    value = call.value
    if value is UNSET or value is None or value == "":
        return []
    if isinstance(value, str):
        return [path.strip() for path in value.split(",")]
    if isinstance(value, dict) and isinstance(value.get("requiredElements"), list):
        value = value["requiredElements"]
    if isinstance(value, list):
        return [js.string(path).strip() for path in value]
    raise CannotJudge("xml assertion must contain a string, array value, or no value")


def parse(text: str) -> Node:
    """The root element of a document.

    Raises:
        _Refused: it is not well-formed, or brings a document type of its own.
    """
    from xml.parsers import expat

    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise _Refused("1:0: a lone surrogate") from None
    stack: list[Node] = []
    roots: list[Node] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > _DEEPEST:
            raise _Refused("nested too deeply")
        node = Node(name, attributes)
        (stack[-1].add(node) if stack else roots.append(node))
        stack.append(node)

    def doctype(name: str, system: Any, public: Any, internal: bool) -> None:
        if internal:
            raise _Refused("a document type with declarations of its own")

    try:
        # Once to see that all prefixes are bound, once to keep names as they are written.
        checked = expat.ParserCreate("utf-8", namespace_separator=" ")
        checked.StartDoctypeDeclHandler = doctype
        checked.Parse(data, True)
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = start
        parser.EndElementHandler = lambda name: stack.pop()
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise _Refused(f"{error.lineno}:{error.offset}: {expat.ErrorString(error.code)}.") from None
    return roots[0]


def elements_in(text: str) -> list[list[Node]]:
    """The outermost complete elements, in groups that stand side by side.

    Laxer than `parse`: attributes without quotes, prefixes and entities that nobody declared. One
    pass: an end tag that does not fit spoils every element still open around it.
    """
    groups: list[list[Node]] = []
    stack: list[tuple[Node, list[Node]]] = []
    side_by_side = -1
    for token in _tags(text):
        name = token["name"]
        if token["close"]:
            if not stack or stack[-1][0].name != name:
                _spoil(stack, groups)
                continue
            node, _ = stack.pop()
        else:
            node = Node(name, {key: value.strip("\"'") for key, value in _ATTRIBUTE.findall(token["rest"])})
            if not token["empty"]:
                stack.append((node, []))
                continue
        if stack:
            stack[-1][0].add(node)
            stack[-1][1].append(node)
        else:
            if side_by_side >= 0 and not text[side_by_side : token.start()].strip():
                groups[-1].append(node)
            else:
                groups.append([node])
            side_by_side = token.end()
    _spoil(stack, groups)
    return groups


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


def _spoil(stack: list[tuple[Node, list[Node]]], groups: list[list[Node]]) -> None:
    """Elements complete within those that never end stand for themselves."""
    groups += [[child] for _, children in stack for child in children]
    stack.clear()


def _has(roots: list[Node], path: str) -> bool:
    level: dict[str, list[Node | str]] = {}
    for root in roots:
        level.setdefault(root.name, []).append(root)
    current: Any = level
    for key in path.split("."):
        if isinstance(current, list):
            if len(current) > 1 and key.isdigit():
                if int(key) >= len(current):
                    return False
                current = [current[int(key)]]
                continue
            if len(current) != 1 or not isinstance(current[0], Node):
                return False
            current = current[0].children
        current = current.get(key)
        if current is None:
            return False
    return True
