"""Why a reply is not the JSON or XML that was asked for: where it breaks, which value breaks which rule."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tui_eval.model import Verdict
from tui_eval.tui.state.text.json_lines import parsed, short
from tui_eval.tui.state.text.lines import Line, Mark, Span, marked, one_line

BROKEN_SCHEMA = re.compile(r"\bdata((?:/[^\n]*?)?) (must [^\n]+)")
"""What a schema's validator says: the path of a value and the rule that it breaks."""
AROUND = 30
LONGEST = 200_000
"""Characters of a reply that are parsed again to say where it breaks."""
_XML_PLACE = re.compile(r": (\d+):(\d+): ([^\n]+)$")
_WIDE = 8


def json_explained(verdict: Verdict, text: str) -> Iterator[Line]:
    """Where the text stops being JSON, or the value that breaks the schema, by its path, and the rule."""
    found = BROKEN_SCHEMA.search(verdict.reason)
    if found is not None:
        yield from _broken_schema(verdict, found.group(1), found.group(2), text)
    elif verdict.passed is not False:
        return
    elif verdict.type.startswith("not-"):
        yield (
            Span("✗ ", "failed"),
            Span("the reply is JSON" if _is_json(text) else "there is JSON in the reply"),
        )
    elif verdict.type == "is-json":
        yield from not_json(text)
    else:
        start = text.find("{")
        if start < 0:
            yield (Span("there is no { in the reply", "note"),)
        else:
            yield from not_json(text, start)


def _is_json(text: str) -> bool:
    try:
        json.loads(text[:LONGEST])
    except (ValueError, RecursionError):
        return False
    return True


def _broken_schema(verdict: Verdict, path: str, rule: str, text: str) -> Iterator[Line]:
    keys = [key for key in path.split("/") if key]
    value, reached = follow(_object_in(text), keys)
    yield (Span(f"{'at':<{_WIDE}}", "label"), Span(json_path(keys), "json-key"))
    yield (Span(f"{'rule':<{_WIDE}}", "label"), Span(one_line(rule, 200), "failed"))
    if reached == len(keys):
        yield (Span(f"{'is':<{_WIDE}}", "label"), Span(short(value, 200), "differs"))
    schema = _rule(verdict.expected, keys)
    if schema is not None:
        yield (Span(f"{'schema':<{_WIDE}}", "label"), Span(short(schema, 200), "muted"))


def not_json(text: str, start: int = 0) -> Iterator[Line]:
    """Where a text stops being JSON, read from `start` on."""
    try:
        json.JSONDecoder().raw_decode(text[:LONGEST], start) if start else json.loads(text[:LONGEST])
    except (ValueError, RecursionError) as error:
        place = getattr(error, "pos", 0)
        words = str(getattr(error, "msg", error)).removesuffix(" starting at")
        line = text.count("\n", 0, place) + 1
        yield (Span(f"no JSON from line {line} on: {one_line(words, 100)}", "failed"),)
        yield from _place(text, place)


def _place(text: str, place: int) -> Iterator[Line]:
    """The character at a place, marked, with what stands around it on its line."""
    start = max(place - AROUND, text.rfind("\n", 0, place) + 1, 0)
    before = "…" if start > text.rfind("\n", 0, place) + 1 else ""
    shown = one_line(text[start : place + AROUND].split("\n")[0])
    at = 2 + len(before) + place - start
    if shown.strip():
        yield marked((Span(f"  {before}{shown}"),), [Mark(at, at + 1, "hit-forbidden")])


def _object_in(text: str) -> Any:
    """The first JSON value of a text that may have words around it."""
    value = parsed(text)
    if not isinstance(value, str):
        return value
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=-1)
    if start < 0 or len(text) > 2_000_000:
        return None
    try:
        return json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return None


def follow(value: Any, keys: list[str]) -> tuple[Any, int]:
    """The value at a path and how many of its keys there are."""
    for index, key in enumerate(keys):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return value, index
    return value, len(keys)


def json_path(keys: list[str]) -> str:
    """A path as it is written for JSON: `$.items[0].name`."""
    parts = [f"[{key}]" if key.isdecimal() else f".{one_line(key, 60)}" for key in keys]
    return "$" + "".join(parts)


def _rule(schema: Any, keys: list[str]) -> Any:
    """The part of a schema about a path, as far as it goes without references."""
    schema = parsed(schema)
    for key in keys:
        if not isinstance(schema, dict):
            return None
        within, items = schema.get("properties"), schema.get("items")
        if isinstance(within, dict) and key in within:
            schema = within[key]
        elif key.isdecimal() and isinstance(items, dict):
            schema = items
        else:
            return None
    return schema if isinstance(schema, dict) else None


def xml_explained(verdict: Verdict, text: str) -> Iterator[Line]:
    """The place where XML breaks; the required elements, each followed as far as the reply has it."""
    if verdict.passed is not False or verdict.type.startswith("not-"):
        return
    found = _XML_PLACE.search(verdict.reason.rstrip("."))
    if found is not None and verdict.type == "is-xml":
        lines = text.split("\n")
        number, column = int(found.group(1)), int(found.group(2))
        if 0 < number <= len(lines):
            offset = sum(len(line) + 1 for line in lines[: number - 1])
            yield (Span(f"line {number}, column {column + 1}: {one_line(found.group(3), 100)}", "failed"),)
            yield from _place(text, min(offset + column, offset + len(lines[number - 1])))
        return
    root = _xml_in(text)
    if root is None:
        if "<" not in text:
            yield (Span("there is no < in the reply", "note"),)
        return
    for path in _required(verdict.expected):
        yield _element(root, path)


def _required(expected: Any) -> list[list[str]]:
    if isinstance(expected, dict):
        expected = expected.get("requiredElements")
    paths = (
        expected.split(",") if isinstance(expected, str) else expected if isinstance(expected, list) else []
    )
    return [str(path).strip().split(".") for path in paths if str(path).strip()][:20]


def _xml_in(text: str) -> Any:
    """The first element of a text, None where none can be read."""
    from defusedxml import ElementTree  # imported late: only failed XML assertions need it

    text = text[:LONGEST]
    start, end = text.find("<"), text.rfind(">")
    try:
        return ElementTree.fromstring(text[start : end + 1]) if 0 <= start < end else None
    except Exception:  # whatever a broken document makes of the parser: it is only said less
        return None


def _element(root: Any, path: list[str]) -> Line:
    here, done = root, path[0]
    if root.tag != path[0]:
        return (
            Span("✗ ", "failed"),
            Span(one_line(path[0], 60), "strong"),
            Span(f" is not there; the root is {one_line(root.tag, 60)}", "muted"),
        )
    for name in path[1:]:
        children = [child.tag for child in here]
        if name.startswith("@_") and name[2:] in here.attrib:
            return (Span("✓ ", "passed"), Span(one_line(".".join(path), 100), "strong"))
        below = here.find(name) if name in children else None
        if below is None:
            names = ", ".join(one_line(tag, 40) for tag in list(dict.fromkeys(children))[:8]) or "nothing"
            return (
                Span("✗ ", "failed"),
                Span(one_line(done, 100), "strong"),
                Span(f" has no {one_line(name, 60)}", "failed"),
                Span(f"; it has {names}", "muted"),
            )
        here, done = below, f"{done}.{name}"
    return (Span("✓ ", "passed"), Span(one_line(done, 100), "strong"))
