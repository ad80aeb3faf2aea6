"""The arguments of a tool call against those expected: in part or whole, some ignored, some by default."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo.call import Call
from tui_eval.assertions.promptfoo.spans import matches
from tui_eval.javascript import values as js


@dataclass(slots=True)
class Expected:
    """What `trajectory:tool-args-match` expects; `reference` as promptfoo does to the letter."""

    arguments: Any
    mode: str
    defaults: dict[str, Any]
    ignore: list[str]
    reference: bool

    @classmethod
    def read(cls, value: dict[str, Any], call: Call) -> Expected:
        """From the assertion's value.

        Raises:
            CannotJudge: a part of it is not as it must be.
        """
        kind = call.kind
        arguments = value["args"] if "args" in value else value.get("arguments", UNSET)
        if arguments is UNSET:
            raise CannotJudge(f"{kind} assertion must include an args or arguments property")
        mode = value.get("mode", "partial")
        if mode not in ("partial", "exact"):
            raise CannotJudge(f'{kind} assertion mode must be "partial" or "exact"')
        defaults = value.get("defaults", {})
        if not isinstance(defaults, dict):
            raise CannotJudge(
                f"{kind} assertion defaults must be an object mapping argument names to default values"
            )
        given = value.get("ignore", [])
        ignore = given if isinstance(given, list) else [given]
        if not all(isinstance(entry, str) and js.trim(entry) for entry in ignore):
            raise CannotJudge(
                f"{kind} assertion ignore must be a non-empty string or an array of non-empty strings"
            )
        return cls(arguments, mode, defaults, ignore, call.evidence.reference)

    def ignores(self, key: str) -> bool:
        """Whether an argument is left out on both sides: its name, or a pattern that fits it."""
        return any(
            entry == key or (("*" in entry or "?" in entry) and matches(entry, key)) for entry in self.ignore
        )


def compared(given: Any, expected: Expected) -> tuple[bool, str]:
    """Whether a call's arguments are as expected, and what was left out, for the reason.

    An argument that has its default value is left out, also where it is expected (promptfoo; by our own
    rules an argument that is expected is looked at).
    """
    wanted = expected.arguments
    dropped: list[str] = []
    by_default: list[str] = []
    if isinstance(wanted, dict):
        wanted = {key: item for key, item in wanted.items() if not expected.ignores(key)}
    if isinstance(given, dict):
        dropped = [key for key in given if expected.ignores(key)]
        left = {key: item for key, item in given.items() if key not in dropped}
        named = wanted if isinstance(wanted, dict) and not expected.reference else {}
        by_default = [
            key
            for key, item in left.items()
            if key not in named and key in expected.defaults and _equal(item, expected.defaults[key])
        ]
        given = {key: item for key, item in left.items() if key not in by_default}
    note = f". Ignored argument(s): {', '.join(dropped)}" if dropped else ""
    note += f". Ignored default argument(s): {', '.join(by_default)}" if by_default else ""
    holds = _equal(given, wanted) if expected.mode == "exact" else _contains(given, wanted)
    return holds, note


def _contains(given: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(given, dict) and all(
            key in given and _contains(given[key], item) for key, item in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(given, list) and len(given) == len(wanted) and all(map(_contains, given, wanted))
    return _equal(given, wanted)


def _equal(given: Any, wanted: Any) -> bool:
    """Deeply and strictly, as JavaScript: 1 is 1.0, but neither `"1"` nor true."""
    if isinstance(given, bool) or isinstance(wanted, bool):
        return given is wanted
    if isinstance(given, dict) and isinstance(wanted, dict):
        return given.keys() == wanted.keys() and all(_equal(given[key], wanted[key]) for key in given)
    if isinstance(given, list) and isinstance(wanted, list):
        return len(given) == len(wanted) and all(map(_equal, given, wanted))
    if isinstance(given, float) and isinstance(wanted, float) and math.isnan(given):
        return math.isnan(wanted)
    return type(given) is type(wanted) and given == wanted if isinstance(given, str) else given == wanted
