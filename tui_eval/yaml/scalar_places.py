"""Where a character of a text value stands in the YAML file: the block's offset, its indentation, its folds."""

from __future__ import annotations

from typing import Any


def place_in_file(text: str, key: str, value: str, line: int, column: int) -> tuple[int, int] | None:
    """The line and column (both from 1) in a YAML text of a place in the value of a key of its mapping; where the
    value is written otherwise than it reads (escapes), the line in which it begins and column 0. None: the
    file has no such key, or another value by now.

    Args:
        line, column: the place in the value, both from 1.
    """
    node = _value_of(text, key)
    if node is None or node.value != value:
        return None
    start, end = node.start_mark.index, node.end_mark.index
    begins = node.start_mark.line + 1
    if node.style in ("|", ">"):
        start = text.find("\n", start, end) + 1 or end
    elif node.style in ("'", '"'):
        start, end = start + 1, end - 1
    lines = value.split("\n")
    if not 0 < line <= len(lines):
        return begins, 0
    offset = sum(len(one) + 1 for one in lines[: line - 1]) + column - 1
    if "".join(text[start:end].split()) != "".join(value.split()):
        return begins, 0
    passed = len("".join(value[:offset].split()))  # blanks are folded and put in, other characters stay
    at = start
    while at < end and (passed or text[at].isspace()):
        passed -= not text[at].isspace()
        at += 1
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def _value_of(text: str, key: str) -> Any:
    """The scalar node of a key of the document's mapping; None: there is none."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        root = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    if not isinstance(root, yaml.MappingNode):
        return None
    return next(
        (found for name, found in root.value if name.value == key and isinstance(found, yaml.ScalarNode)),
        None,
    )
