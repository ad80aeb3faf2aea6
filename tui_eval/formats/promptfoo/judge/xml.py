"""is-xml and contains-xml: well-formed text, required elements by dotted path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.javascript import values as js
from tui_eval.model import Evidence

# -- Elements of XML within any text, read far more laxly than a document.


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
_IN_DECLARATION = re.compile(r"\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|[\[\]>]")
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
    """Tags in order, without those in comments, CDATA and declarations, which without an end go on to the text's."""
    place = text.find("<")
    while place >= 0:
        following = place + 1
        if text.startswith(("<!", "<?"), place):
            following = _declaration_end(text, place)
        elif tag := _TAG.match(text, place):
            yield tag
            following = tag.end()
        place = text.find("<", following)


def _declaration_end(text: str, place: int) -> int:
    for opening, closing in _PASSED_OVER:
        if text.startswith(opening, place):
            end = text.find(closing, place + len(opening))
            return len(text) if end < 0 else end + len(closing)
    depth = 0
    for mark in _IN_DECLARATION.finditer(text, place + 2):
        if mark[0] == ">" and not depth:
            return mark.end()
        depth = max(0, depth + {"[": 1, "]": -1}.get(mark[0], 0))
    return len(text)


_VALID = "XML is valid and contains all required elements"
_DEEPEST = 1000


class _Refused(Exception):
    """It is no document; `line` (from 1) and `column` (from 0, in bytes) say where, 0 where nothing does."""

    def __init__(self, message: str, words: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.words, self.line, self.column = words or message, line, column


def is_xml(call: AssertionCall) -> Result:
    """The whole text is one well-formed document, without entities of its own, and has the elements."""
    wanted = _required(call)
    try:
        document = parse(call.text)
    except _Refused as error:
        told = [seen.rule("holds") if call.inverse else _broken_at(call.text, error)]
        return call.result(False, f"XML parsing failed: {error}", "", evidence=told)
    missing = [path for path in wanted if not _has(document, path)]
    return call.result(
        not missing,
        f"XML is missing required elements: {', '.join(missing)}",
        _VALID,
        evidence=_elements(call, document, wanted, missing, "is-xml"),
    )


def _broken_at(text: str, error: _Refused) -> Evidence:
    if not error.line:
        return seen.rule("not-xml", error.words)
    lines = text.split("\n")[: error.line]
    within = len(lines[-1].encode("utf-8", "replace")[: error.column].decode("utf-8", "ignore"))
    place = sum(len(line) + 1 for line in lines[:-1]) + within
    return seen.broken("missing", "not-xml", text, place, error.words)


def _elements(
    call: AssertionCall, document: Node, wanted: list[str], missing: list[str], known: str
) -> list[Evidence]:
    """Per required element whether it is there, and how far its path leads."""
    if call.inverse:
        return [seen.rule("holds" if missing else known)]
    found: list[Evidence] = []
    for path in wanted[: seen.MOST]:
        if path not in missing:
            found.append(Evidence("match", "holds", path=seen.cut(path)))
            continue
        node, done = document, list[str]()
        for key in path.split("."):
            if key not in node.children:
                break
            node = node.children[key][0]
            done.append(key)
        names = [name for name in node.children if name][: seen.MOST]
        found.append(
            Evidence("missing", "no-element", text=".".join(done), path=seen.cut(path), actual=names)
        )
    return found or [seen.rule("holds")]


def contains_xml(call: AssertionCall) -> Result:
    """Some element in the text opens and closes, and has the required elements.

    Elements that stand side by side are looked at together, as one document with several roots;
    only elements of different surroundings are looked at one after the other.
    """
    wanted = _required(call)
    found = elements_in(call.text)
    if not found:
        words = "there is no < in the reply" if "<" not in call.text else "no element is complete"
        told = [seen.rule("holds") if call.inverse else seen.rule("not-xml", words)]
        return call.result(False, "No XML content found in the output", "", evidence=told)
    documents = _documents(found)
    fitting = [document for document in documents if all(_has(document, path) for path in wanted)]
    document = (fitting or documents)[0]
    missing = [path for path in wanted if not _has(document, path)]
    return call.result(
        bool(fitting),
        "No valid XML content found matching the requirements",
        _VALID,
        evidence=_elements(call, document, wanted, missing, "has-xml"),
    )


def _documents(found: list[Element]) -> list[Node]:
    """What is looked at: the outermost elements, those with the same surroundings together."""
    starts = {element.start for element in found}
    outermost = [element for element in found if element.parent not in starts]
    outermost.sort(key=lambda element: (-1 if element.parent is None else element.parent, element.start))
    documents: list[Node] = []
    for _, siblings in groupby(outermost, key=lambda element: element.parent):
        document = Node("")
        for element in siblings:
            document.add(element.node)
        documents.append(document)
    return documents


def _required(call: AssertionCall) -> list[str]:
    value = call.value
    if isinstance(value, str):
        return [js.trim(path) for path in value.split(",")]
    if isinstance(value, dict) and value:
        value = value.get("requiredElements")
        if not isinstance(value, list):
            raise CannotJudge(
                "xml assertion must contain a string, array value, or no value", "bad-assertion"
            )
    if value is UNSET or not isinstance(value, list):
        return []
    return [js.string(path) for path in value]


def parse(text: str) -> Node:
    """The document: a node without a name around its root and its instructions.

    Raises:
        _Refused: it is not well-formed, or brings a document type of its own.
    """
    from xml.parsers import expat

    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise _Refused("1:0: a lone surrogate") from None
    document = Node("")
    stack = [document]

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(stack) > _DEEPEST:
            raise _Refused("nested too deeply")
        node = Node(name, list(attributes))
        stack[-1].add(node)
        stack.append(node)

    def doctype(name: str, system: Any, public: Any, internal: bool) -> None:
        if internal:
            raise _Refused("a document type with declarations of its own")

    def declaration(version: str, encoding: str | None, standalone: int) -> None:
        given = {"version": True, "encoding": encoding is not None, "standalone": standalone >= 0}
        document.add(Node("?xml", [name for name, is_there in given.items() if is_there]))

    try:
        # Once to see that all prefixes are bound, once to keep names as they are written.
        checked = expat.ParserCreate("utf-8", namespace_separator=" ")
        checked.StartDoctypeDeclHandler = doctype
        checked.Parse(data, True)
        parser = expat.ParserCreate("utf-8")
        parser.XmlDeclHandler = declaration
        parser.ProcessingInstructionHandler = lambda target, _: stack[-1].add(Node(f"?{target}"))
        parser.StartElementHandler = start
        parser.EndElementHandler = lambda name: stack.pop()
        parser.CharacterDataHandler = lambda text: stack[-1].add_text(text)
        parser.Parse(data, True)
    except expat.ExpatError as error:
        words = expat.ErrorString(error.code)
        raise _Refused(
            f"{error.lineno}:{error.offset}: {words}.", words, error.lineno, error.offset
        ) from None
    return document


def _has(document: Node, path: str) -> bool:
    """Whether a path leads anywhere: names, `@_attribute`, `#text` beside elements, or the place among
    several elements of one name."""
    current: Node | list[Node] | None = document
    for key in path.split("."):
        if isinstance(current, list):
            place = int(key) if key.isdecimal() and str(int(key)) == key else len(current)
            if place >= len(current):
                return False
            current = current[place]
        elif current is None:
            return False
        elif key in current.children:
            found = current.children[key]
            current = found[0] if len(found) == 1 else found
        elif key in current.leaves():
            current = None
        else:
            return False
    return True
