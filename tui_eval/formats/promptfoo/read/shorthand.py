"""The one-line assertions of `__expected` cells (formats/promptfoo.md 4.3). Case-sensitive."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from tui_eval.formats.promptfoo.promptfoo_words import split_list
from tui_eval.formats.promptfoo.read.promptfoo_types import BASE_TYPES, WITH_THRESHOLD
from tui_eval.javascript import values as js
from tui_eval.model import Assertion
from tui_eval.suites.accepted_values import LISTS

RAW = frozenset({"is-json", "contains-json"})
CODE_AND_JUDGED = frozenset({"javascript", "python", "llm-rubric"})
_SIMPLE = frozenset(
    f"{negation}{name}"
    for name in BASE_TYPES - WITH_THRESHOLD - LISTS - RAW - CODE_AND_JUDGED
    if ":" not in name and not any(other.startswith(f"{name}:") for other in BASE_TYPES)
    for negation in ("", "not-")
)
"""Types whose cell is the type, a colon and a trimmed value: most cells, and no pattern is needed."""


def _grammar(names: Iterable[str]) -> re.Pattern[str]:
    types = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(not-)?({types})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?\Z", re.DOTALL | re.ASCII)


_GRAMMAR = _grammar(BASE_TYPES)
_REFERENCE = _grammar(name for name in BASE_TYPES if not name.startswith("similar:"))
_SCRIPT = re.compile(r"file://.*\.(?:js|cjs|mjs|ts|cts|mts)\Z")
_PYTHON = re.compile(r"file://.*\.py(?::\w+)?\Z")
_CODE = ("javascript:", "fn:", "eval:")


def parse(cell: str, *, reference: bool = False, line: int = 0) -> Assertion:
    """The assertion that a cell means; what fits no rule is `equals` with the whole cell.

    Args:
        cell: trimmed and not empty.
        reference: as the tool does it: the value of a `file://….py` cell loses its `file://` (and so
            becomes inline code that never works), and `similar:cosine: x` is `similar` with `cosine: x`.
            By default the file is kept, and so is the type.

    Raises:
        ListError: the value of `contains-any` and its like cannot be split.
    """
    head, colon, rest = cell.partition(":")
    if colon:
        if head in _SIMPLE:
            return Assertion(sys.intern(head), js.trim(rest), line=line)  # one text for all rows
        for prefix in _CODE:
            if cell.startswith(prefix):
                return Assertion("javascript", js.trim(cell[len(prefix) :]), line=line)
        if head in ("grade", "llm-rubric"):
            return Assertion("llm-rubric", rest, line=line)
        if head == "python":
            return Assertion("python", js.trim(rest), line=line)
        if head == "file":
            if _SCRIPT.match(cell):
                return Assertion("javascript", cell, line=line)
            if _PYTHON.match(cell):
                return Assertion("python", cell[len("file://") :] if reference else cell, line=line)
    found = (_REFERENCE if reference else _GRAMMAR).match(cell)
    if found is None:
        return Assertion("equals", cell, line=line)
    negation, base, number, value = found.groups()
    expected: Any = UNSET
    if value is not None:
        if base in LISTS:
            expected = split_list(js.trim(value)) if js.trim(value) else ""
        else:
            expected = value if base in RAW else js.trim(value)
    threshold = None
    if base in WITH_THRESHOLD:
        threshold = as_number(number) if number else 0.8 if base == "similar" else 0.75
    return Assertion(f"{negation or ''}{base}", expected, threshold=threshold, line=line)


def as_number(text: str) -> int | float:
    """A decimal literal as a number, whole ones as integers."""
    return js.tidy(float(text))
