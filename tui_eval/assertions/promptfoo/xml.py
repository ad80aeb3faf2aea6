"""is-xml and contains-xml: well-formed text, required elements by dotted path."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo.call import Call, Result
from tui_eval.assertions.promptfoo.markup import Element, Node, elements_in
from tui_eval.javascript import values as js

_VALID = "XML is valid and contains all required elements"
_DEEPEST = 1000


class _Refused(Exception):
    pass


def is_xml(call: Call) -> Result:
    """The whole text is one well-formed document, without entities of its own, and has the elements."""
    wanted = _required(call)
    try:
        document = parse(call.text)
    except _Refused as error:
        return call.result(False, f"XML parsing failed: {error}", "")
    missing = [path for path in wanted if not _has(document, path)]
    return call.result(not missing, f"XML is missing required elements: {', '.join(missing)}", _VALID)


def contains_xml(call: Call) -> Result:
    """Some element in the text opens and closes, and has the required elements.

    Elements that stand side by side are looked at together, as one document with several roots;
    only elements of different surroundings are looked at one after the other.
    """
    wanted = _required(call)
    found = elements_in(call.text)
    if not found:
        return call.result(False, "No XML content found in the output", "")
    holds = any(all(_has(document, path) for path in wanted) for document in _documents(found))
    return call.result(holds, "No valid XML content found matching the requirements", _VALID)


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


def _required(call: Call) -> list[str]:
    value = call.value
    if isinstance(value, str):
        return [js.trim(path) for path in value.split(",")]
    if isinstance(value, dict) and value:
        value = value.get("requiredElements")
        if not isinstance(value, list):
            raise CannotJudge("xml assertion must contain a string, array value, or no value")
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
        raise _Refused(f"{error.lineno}:{error.offset}: {expat.ErrorString(error.code)}.") from None
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
