"""The prompts that a file holds: one, or several (formats/promptfoo.md 6)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from tui_eval.formats.promptfoo.read import test_rows
from tui_eval.formats.promptfoo.read.promptfoo_types import JAVASCRIPT
from tui_eval.formats.promptfoo.read.suite_file import Missing, SuiteReading, brief, is_pattern
from tui_eval.javascript import values as js
from tui_eval.javascript.values import ScriptValueError, json_text
from tui_eval.yaml import yaml_lines

# -- `file://` within a value, replaced by what the file holds (formats/promptfoo.md 2.2).


def filled(reading: SuiteReading, value: Any, *, kept: str = "", depth: int = 0) -> Any:
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


def _content(reading: SuiteReading, reference: str, kept: str) -> Any:
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


def _one(reading: SuiteReading, path: Path) -> Any:
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
        found, _lines = test_rows.records(text)
    except test_rows.CsvError as error:
        raise Missing(f"{reading.relative(path)}: {error}") from None
    header, *records = found or [[]]
    if any(len(record) != len(header) for record in records):
        raise Missing(f"{reading.relative(path)}: a row has not as many cells as the header")
    if len(header) == 1:
        return [record[0] for record in records]
    return [dict(zip(header, record, strict=True)) for record in records]


Part = tuple[str, str | None]
"""A prompt, and the label that the file gives it."""

_BREAK = re.compile(r"\r?\n")


def parts(reading: SuiteReading, path: Path, kind: str, shown: str) -> list[Part]:
    """The prompts of a file of text.

    Raises:
        Missing: it cannot be read, holds none, or names a file that is not there.
    """
    text = reading.text(path)
    if kind == "txt":
        found: list[Part] = [(part, None) for part in _split(text)]
    elif kind == "jsonl":
        found = [
            (line, None) for line in _BREAK.split(text) if (line if reading.reference else js.trim(line))
        ]
    elif kind in ("json", "yaml", "yml"):
        found = [(_compact(reading, text, path), None)]
    elif kind == "csv":
        found = _table(reading, text, shown)
    else:
        found = [(text, None)]
    if not found:
        raise Missing(f"{shown} holds no prompt")
    return found


def label(shown: str, kind: str, raw: str, index: int, *, alone: bool = False) -> str:
    """What stands for a prompt of a file that nobody gave a label; `alone` is the only one of its file."""
    if kind in ("md", "j2"):
        return f"{shown}: {raw[:50]}..."
    if kind in ("yaml", "yml"):
        return f"{shown}: {raw[:80]}"
    if kind == "csv":
        return f"Prompt {index + 1} - {raw}"
    return shown if kind == "jsonl" and alone else f"{shown}: {raw}"


def labelled(reading: SuiteReading, given: str, shown: str, kind: str, raw: str, *, alone: bool) -> str:
    """What stands for a prompt of a file that a person gave the label `given`."""
    if reading.reference and kind == "txt":
        return f"{given}: {shown}: {raw}"
    if alone or (reading.reference and kind == "csv"):
        return given
    return f"{given}: {raw}"


def _split(text: str) -> list[str]:
    separator = os.environ.get("PROMPTFOO_PROMPT_SEPARATOR") or "---"
    found: list[list[str]] = [[]]
    for line in _BREAK.split(text):
        if js.trim(line) == separator:
            found.append([])
        else:
            found[-1].append(line)
    return [whole for part in found if (whole := js.trim("\n".join(part)))]


def _compact(reading: SuiteReading, text: str, path: Path) -> str:
    """A JSON or YAML prompt written again as one line, with the files that it names; one that is no JSON
    yet (a template) stays."""
    if path.suffix == ".json":
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return text
    else:
        document = yaml_lines.load(text, reading.relative(path), core=True)
        if document.problems:
            return text
        value = document.value
    try:
        return json_text(filled(reading, value))
    except ScriptValueError:
        return text
    except Missing:
        if reading.reference:
            return text
        raise


def _table(reading: SuiteReading, text: str, shown: str) -> list[Part]:
    """A column `prompt` (and `label`), or, where nothing is separated, one prompt a line."""
    delimiter = os.environ.get("PROMPTFOO_CSV_DELIMITER") or ","
    strict = os.environ.get("PROMPTFOO_CSV_STRICT", "").lower() in ("1", "true", "yes")
    lines = [line for line in _BREAK.split(text) if js.trim(line)]
    alone: list[Part] = [(line, None) for line in lines]
    if delimiter not in text:
        return alone[1:] if lines and js.trim(lines[0]).lower() == "prompt" else alone
    try:
        found, _ = test_rows.records(text, delimiter, strict=strict)
        found = [[js.trim(cell) for cell in row] for row in found if any(row) or len(row) > 1]
        header, records = found[0], found[1:]
        wrong = next((row for row in records if len(row) != len(header)), None)
        if wrong is not None:
            raise test_rows.CsvError(f"a row has {len(wrong)} cells, the header {len(header)}", 0)
    except test_rows.CsvError as error:
        if reading.reference:
            return alone
        raise Missing(f"{shown}: {error}") from None
    if "prompt" not in header:
        raise Missing(f"{shown} has no column prompt")
    given = [dict(zip(header, row, strict=True)) for row in records]
    return [(row["prompt"], row.get("label") or None) for row in given if row["prompt"]]
