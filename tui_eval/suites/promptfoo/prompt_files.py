"""The prompts that a file holds: one, or several (formats/promptfoo.md 6)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from tui_eval.javascript import values as js
from tui_eval.javascript.values import ScriptValueError, json_text
from tui_eval.suites import yaml_lines
from tui_eval.suites.promptfoo import embedded, rows
from tui_eval.suites.promptfoo.reading import Missing, Reading

Part = tuple[str, str | None]
"""A prompt, and the label that the file gives it."""

_BREAK = re.compile(r"\r?\n")


def parts(reading: Reading, path: Path, kind: str, shown: str) -> list[Part]:
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


def labelled(reading: Reading, given: str, shown: str, kind: str, raw: str, *, alone: bool) -> str:
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


def _compact(reading: Reading, text: str, path: Path) -> str:
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
        return json_text(embedded.filled(reading, value))
    except ScriptValueError:
        return text
    except Missing:
        if reading.reference:
            return text
        raise


def _table(reading: Reading, text: str, shown: str) -> list[Part]:
    """A column `prompt` (and `label`), or, where nothing is separated, one prompt a line."""
    delimiter = os.environ.get("PROMPTFOO_CSV_DELIMITER") or ","
    strict = os.environ.get("PROMPTFOO_CSV_STRICT", "").lower() in ("1", "true", "yes")
    lines = [line for line in _BREAK.split(text) if js.trim(line)]
    alone: list[Part] = [(line, None) for line in lines]
    if delimiter not in text:
        return alone[1:] if lines and js.trim(lines[0]).lower() == "prompt" else alone
    try:
        found, _ = rows.records(text, delimiter, strict=strict)
        found = [[js.trim(cell) for cell in row] for row in found if any(row) or len(row) > 1]
        header, records = found[0], found[1:]
        wrong = next((row for row in records if len(row) != len(header)), None)
        if wrong is not None:
            raise rows.CsvError(f"a row has {len(wrong)} cells, the header {len(header)}", 0)
    except rows.CsvError as error:
        if reading.reference:
            return alone
        raise Missing(f"{shown}: {error}") from None
    if "prompt" not in header:
        raise Missing(f"{shown} has no column prompt")
    given = [dict(zip(header, row, strict=True)) for row in records]
    return [(row["prompt"], row.get("label") or None) for row in given if row["prompt"]]
