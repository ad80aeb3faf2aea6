"""Lists in vars: one combination of values after another (formats/promptfoo.md 3.3)."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

from tui_eval.suites.promptfoo.reading import Missing, Reading, is_pattern

MOST = 100_000
"""The most combinations of one test."""


class TooMany(Exception):
    """More combinations than can be meant."""


def combinations(
    vars: dict[str, Any],  # noqa: A002
    reading: Reading,
    *,
    expand: bool,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """`(vars, the expanded ones among them)` of each combination; the last key changes fastest.

    A list is expanded only if its first element is a text; a `file://` pattern stands for each file.

    Raises:
        TooMany: more than 100,000 combinations.
        Missing: a pattern that matches no file.
    """
    if not expand:
        yield vars, {}
        return
    choices: dict[str, list[Any]] = {}
    for name, value in vars.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            choices[name] = [v for given in value for v in _files(given, reading)]
        elif isinstance(value, str) and value.startswith("file://") and is_pattern(value):
            choices[name] = _files(value, reading)
    if not choices:
        yield vars, {}
        return
    count = 1
    for values in choices.values():
        count *= len(values)
    if count > MOST:
        raise TooMany(f"{count:,} combinations of vars, at most {MOST:,}")
    for picked in itertools.product(*choices.values()):
        chosen = dict(zip(choices, picked, strict=True))
        yield {**vars, **chosen}, chosen


def _files(value: Any, reading: Reading) -> list[Any]:
    if not (isinstance(value, str) and value.startswith("file://") and is_pattern(value)):
        return [value]
    paths = reading.glob(value)
    if not paths:
        raise Missing(f"no file matches {value}")
    return [f"file://{os.path.relpath(path, reading.base)}" for path in paths]
