"""What the options of tests and of the evaluation may be: promptfoo says nothing of a wrong one and leaves it out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tui_eval.suites.promptfoo.reading import brief

_TEXTS = ("transform", "postprocess", "storeOutputAs")
_PRINTED = ("prefix", "suffix")
_SWITCHES = (
    "disableVarExpansion",
    "disableConversationVar",
    "disableDefaultAsserts",
    "runSerially",
)
_NUMBERS = ("maxConcurrency", "delay", "timeoutMs", "maxEvalTimeMs")

Wrong = Iterator[tuple[tuple[Any, ...], str]]
"""Where, and what is wrong there."""


def of_test(options: dict[str, Any]) -> Wrong:
    """What is wrong in the `options` of a test."""
    for name in _TEXTS:
        if options.get(name) is not None and not isinstance(options[name], str):
            yield (name,), f"must be text, not {brief(options[name])}"
    for name in _PRINTED:
        if isinstance(options.get(name), (list, dict)):
            yield (name,), f"must be text, not {brief(options[name])}"


def switches(options: dict[str, Any]) -> Wrong:
    """Switches of a test that are neither true nor false: the tool takes some of them for true."""
    for name in _SWITCHES:
        if options.get(name) is not None and not isinstance(options[name], bool):
            yield (name,), f"must be true or false, not {brief(options[name])}"


def of_evaluation(options: dict[str, Any]) -> Wrong:
    """What is wrong in `evaluateOptions`."""
    for name in _NUMBERS:
        value = options.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            yield (name,), f"must be a number from 0, not {brief(value)}"


def of_derived(value: Any) -> Wrong:
    """What is wrong in `derivedMetrics`."""
    if not isinstance(value, list):
        yield (), f"must be a list of metrics, not {brief(value)}"
        return
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            yield (index,), f"must be a name and a value, not {brief(entry)}"
            continue
        for name in ("name", "value"):
            if not isinstance(entry.get(name), str):
                yield (index, name), f"must be text, not {brief(entry.get(name))}"
