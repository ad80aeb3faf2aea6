"""What a plain (unquoted) YAML scalar means in the two dialects that suites are written in."""

from __future__ import annotations

import math
import re
from typing import Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.nodes import ScalarNode

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
_CORE_INT = re.compile(r"([-+]?)(?:0b([01_]+)|0x([0-9a-fA-F_]+)|0o([0-7_]+)|([0-9][0-9_]*))\Z")
_CORE_FLOAT = re.compile(r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?\Z")


def core_scalar(text: str) -> Any:
    """A plain scalar as js-yaml 4 reads it, but a date keeps its text."""
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    special = _CORE_SPECIAL.get(text.lower())
    if special is not None and text.lstrip("+-") in (".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"):
        return special
    if text.endswith("_"):
        return text
    try:
        if match := _CORE_INT.match(text):
            sign, binary, hexadecimal, octal, decimal = match.groups()
            digits = binary or hexadecimal or octal or decimal
            base = 2 if binary else 16 if hexadecimal else 8 if octal else 10
            number = int(digits.replace("_", ""), base)
            return -number if sign == "-" else number
        if _CORE_FLOAT.match(text):
            return float(text.replace("_", ""))
    except ValueError:  # `0x_`, `._`, or more digits than Python converts
        pass
    return text
