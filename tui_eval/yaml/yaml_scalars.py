"""YAML scalars: what a plain (unquoted) one means in the two dialects that suites are written in, and where a character
of a text value stands in the file: the block's offset, its indentation, its folds. And documents of any other dialect
(`load_bounded`), of which no more is made than stands there.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.nodes import Node, ScalarNode

_TAG = "tag:yaml.org,2002:"

_safe = SafeConstructor()
_SAFE_RESOLVERS: dict[str | None, list[tuple[str, re.Pattern[str]]]] = yaml.SafeLoader.yaml_implicit_resolvers


def safe_scalar(text: str) -> Any:
    """A plain scalar as PyYAML's safe loader reads it, but a date keeps its text."""
    resolvers = _SAFE_RESOLVERS.get(text[0] if text else "")
    if resolvers is None:
        return text
    for tag, pattern in resolvers:
        if pattern.match(text):
            kind = tag.removeprefix(_TAG)
            if kind == "null":
                return None
            if kind == "bool":
                return SafeConstructor.bool_values[text.lower()]
            if kind in ("int", "float"):
                make = _safe.construct_yaml_int if kind == "int" else _safe.construct_yaml_float
                try:
                    return make(ScalarNode(tag, text))
                except (ValueError, OverflowError):  # `0b_`, or more digits than Python converts
                    return text
            return text
    return text


_CORE_WORDS: dict[str, Any] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_CORE_SPECIAL = {".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}
_CORE_INT = re.compile(r"[-+]?[0-9]+\Z|0x[0-9a-fA-F]+\Z|0o[0-7]+\Z")
_CORE_FLOAT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?\Z")


def core_scalar(text: str) -> Any:
    """A plain scalar as js-yaml 5 reads it, but a date keeps its text."""
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    special = _CORE_SPECIAL.get(text.lower())
    if special is not None and text.lstrip("+-") in (".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"):
        return special
    try:
        if _CORE_INT.match(text):
            return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
        if _CORE_FLOAT.match(text) and math.isfinite(number := float(text)):
            return number
    except ValueError:  # more digits than Python converts
        pass
    return text


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


# -- YAML of any dialect whose aliases and nesting cannot take the machine's memory: what an agent answers, what a suite
# holds as text, files that stand for a setting.


DEEPEST = 200
"""Levels of nesting allowed; the C composer would overflow its stack far beyond that."""

MOST_BESIDE = 1_000_000
"""Values, and characters of texts, that there may be beyond those that stand there: without aliases there are none."""


class UnfoldsTooFar(yaml.YAMLError):
    """What stands there is small, and what it stands for would be huge."""


def load_bounded(text: str, loader: Any) -> Any:
    """The value of the one document of a text, as a loader class of PyYAML makes it.

    Raises:
        UnfoldsTooFar: its aliases unfold to far more than the text, or contain themselves.
        yaml.YAMLError: it is none, or is nested too deeply.
    """
    reader = _reader(loader)(text)
    try:
        node = reader.get_single_node()
        if node is None:
            return None
        _Unfolded(len(text) + MOST_BESIDE).add(node)
        return reader.construct_document(node)
    finally:
        reader.dispose()


class _Unfolded:
    """Counts what nodes stand for, merged keys (`<<`) included, before anything is made of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, int | None] = {}

    def add(self, node: Node) -> int:
        """Values and characters of texts of a node, with what is in it."""
        if isinstance(node, ScalarNode):
            return 1 + len(node.value)
        if id(node) in self._known:
            known = self._known[id(node)]
            if known is None:
                raise UnfoldsTooFar("an alias contains itself")
            return known
        self._known[id(node)] = None
        size = 1
        for item in node.value:
            size += sum(map(self.add, item)) if isinstance(item, tuple) else self.add(item)
            if size > 2 * self._most:
                raise UnfoldsTooFar(f"its aliases unfold to more than {self._most:,} values")
        self._known[id(node)] = size
        return size


@lru_cache(maxsize=8)
def _reader(loader: Any) -> Any:
    """The loader class, which refuses nesting that would overflow the C composer's stack."""

    class Reader(loader):
        depth = 0

        def descend_resolver(self, current_node: Any, current_index: Any) -> None:
            self.depth += 1
            if self.depth > DEEPEST:
                raise yaml.YAMLError(f"nested deeper than {DEEPEST} levels")

        def ascend_resolver(self) -> None:
            self.depth -= 1

    return Reader
