"""`file://` within a value, replaced by what the file holds (formats/promptfoo.md 2.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tui_eval.suites.promptfoo import rows
from tui_eval.suites.promptfoo.reading import Missing, Reading, brief, is_pattern
from tui_eval.suites.promptfoo.types import JAVASCRIPT


def filled(reading: Reading, value: Any, *, kept: str = "", depth: int = 0) -> Any:
    """The value with the content of each file that a text in it names; of code only the name stays.

    Args:
        kept: `vars` or `code`: what stands in vars is read when it is used, code of an assertion run.

    Raises:
        Missing: a file that cannot be had or read.
    """
    if depth > 200:
        raise Missing("the value is nested too deeply")
    if isinstance(value, list):
        return [filled(reading, item, kept=kept, depth=depth + 1) for item in value]
    if isinstance(value, dict):
        runs = value.get("type") in ("python", "javascript")
        return {
            key: filled(
                reading,
                item,
                kept="code" if key == "value" and runs else "vars" if key == "vars" else kept,
                depth=depth + 1,
            )
            for key, item in value.items()
        }
    if isinstance(value, str) and value.startswith("file://") and kept != "vars":
        return _content(reading, value, kept)
    return value


def _content(reading: Reading, reference: str, kept: str) -> Any:
    plain = reference.removeprefix("file://")
    path, _, function = plain.rpartition(":")
    ending = Path(path if function.isidentifier() and path else plain).suffix[1:].lower()
    if ending in JAVASCRIPT | {"py"} and (kept == "code" or (path and function.isidentifier())):
        return reference
    if not is_pattern(plain):
        return _one(reading, reading.find(plain))
    paths = reading.glob(plain)
    if not paths:
        raise Missing(f"no file matches {plain}")
    found: list[Any] = []
    for each in paths:
        value = _one(reading, each)
        found.extend(value if isinstance(value, list) else [] if value is None else [value])
    return found


def _one(reading: Reading, path: Path) -> Any:
    kind = path.suffix[1:].lower()
    text = reading.text(path)
    if kind in ("yaml", "yml"):
        return reading.parsed_text(text, reading.relative(path))[0]
    if kind == "json":
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Missing(f"{reading.relative(path)}: not valid JSON: {brief(str(error))}") from None
    if kind != "csv":
        return text
    try:
        found, _lines = rows.records(text)
    except rows.CsvError as error:
        raise Missing(f"{reading.relative(path)}: {error}") from None
    header, *records = found or [[]]
    if any(len(record) != len(header) for record in records):
        raise Missing(f"{reading.relative(path)}: a row has not as many cells as the header")
    if len(header) == 1:
        return [record[0] for record in records]
    return [dict(zip(header, record, strict=True)) for record in records]
