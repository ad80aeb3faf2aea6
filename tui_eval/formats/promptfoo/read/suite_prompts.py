"""The prompts of a suite: literal, from files of all kinds, or made by a function (section 6)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.formats.promptfoo.read import test_rows
from tui_eval.formats.promptfoo.read.promptfoo_types import JAVASCRIPT, PROMPT_KEYS
from tui_eval.formats.promptfoo.read.suite_file import (
    LineOf,
    Missing,
    SuiteReading,
    brief,
    dotted_key,
    is_pattern,
)
from tui_eval.guard.trust import command as command_name
from tui_eval.guard.trust import script
from tui_eval.javascript import values as js
from tui_eval.javascript.values import ScriptValueError, json_text
from tui_eval.yaml import yaml_lines

TEXT_FILES = frozenset({"txt", "json", "yaml", "yml", "jsonl", "md", "j2", "csv"})
FILES = TEXT_FILES | JAVASCRIPT | {"py", "sh", "bash", "exe", "bat", "cmd", "ps1", "rb", "pl"}
_REFERENCE = re.compile(r"(?:file://)?(.*?\.([A-Za-z0-9]+))(?::([\w.]+))?\Z", re.DOTALL)


_KEPT_ELSEWHERE = ("langfuse://", "portkey://", "helicone://")
"""Prompts that promptfoo 0.121.20 fetches from a service."""
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://\S+\s*\Z")


def _spoken(reading: SuiteReading, text: str) -> None:
    """Refuse a prompt that is kept somewhere else: its address is no text for the agent.

    Raises:
        Missing: it is one.
    """
    scheme = _SCHEME.match(text)
    unknown = scheme and not reading.reference and scheme[1].lower() not in ("file", "http", "https")
    if text.startswith(_KEPT_ELSEWHERE) or unknown:
        name = text.strip().partition("://")[0]
        raise Missing(
            f"{name}:// prompts are not fetched here: write the prompt, or name a file with file://"
        )


class PromptTemplate(msgspec.Struct):
    """One column of prompts. `given` is the label or id that the person wrote, None if made up here.
    `function` is `{path, function}` where a function of the suite makes the prompt; the path is from the
    project's root, so that a case is the same in every checkout."""

    raw: str
    label: str
    given: str | None = None
    id: str | None = None
    config: Any = None
    function: dict[str, Any] | None = None


def read(reading: SuiteReading, value: Any, line_of: LineOf) -> list[PromptTemplate]:
    """All prompts under `prompts`: a text, a list, or a mapping of path and label."""
    if value is None:
        return []
    if isinstance(value, dict) and not ({"raw", "id", "label"} & value.keys()):
        entries: list[Any] = [{"id": k, "label": v} for k, v in value.items()]
        places: list[Any] = [("prompts", k) for k in value]
    else:
        entries = value if isinstance(value, list) else [value]
        places = [("prompts", i) for i in range(len(entries))]
    result: list[PromptTemplate] = []
    for entry, at in zip(entries, places, strict=True):
        if isinstance(entry, dict):
            reading.check_slips(entry, PROMPT_KEYS, reading.name, line_of, at)
        try:
            result.extend(_read_one(reading, entry))
        except Missing as error:
            if str(error):
                cure = "paths are relative to the configuration's folder" if error.code == "no-file" else ""
                reading.problem(reading.name, line_of(*at), dotted_key(at), str(error), cure)
    return result


def _read_one(reading: SuiteReading, entry: Any) -> list[PromptTemplate]:
    if isinstance(entry, str):
        return _from_text(reading, entry, None, None, None)
    if not isinstance(entry, dict):
        raise Missing(f"a prompt must be text or a mapping, not {brief(entry)}")
    label = _text_or_none(entry.get("label"))
    own = _text_or_none(entry.get("id"))
    raw, config = entry.get("raw"), entry.get("config")
    if isinstance(raw, (list, dict)):
        raw = js.json_text(raw)
    if raw is not None:
        return _from_text(reading, js.string(raw), label, own, config)
    if own is None:
        raise Missing("a prompt without raw or id")
    return _from_text(reading, own, label, None, config)


def _text_or_none(value: Any) -> str | None:
    return js.string(value) if isinstance(value, (str, int, float)) and value != "" else None


def _from_text(
    reading: SuiteReading, text: str, label: str | None, own: str | None, config: Any
) -> list[PromptTemplate]:
    _spoken(reading, text)
    if text.startswith("exec:"):
        command = js.trim(text[len("exec:") :])
        if not command:
            raise Missing("exec: names no command")
        reading.want(command_name(command, "to make a prompt", reading.base, reading.root))
        return [PromptTemplate(text, label or command, label or own, own, config, {"command": command})]
    found = _REFERENCE.match(js.trim(text))
    outright = text.startswith("file://")
    if not outright and not _looks_like_file(reading, text, found):
        return [PromptTemplate(text, label or text, label or own, own, config)]
    plain = js.trim(text).removeprefix("file://")
    folder = reading.base / plain
    try:
        if not is_pattern(plain) and folder.is_dir():
            plain = plain.rstrip("/") + "/*"
    except (OSError, ValueError):
        raise Missing(f"{brief(plain)} cannot be a path") from None
    if is_pattern(plain):
        paths = [p for p in reading.glob(plain) if p.suffix[1:].lower() in FILES]
        if not paths:
            raise Missing(f"no file matches {plain}")
        return [
            p
            for path in paths
            for p in _file(reading, path, reading.from_base(path), None, label, own, config)
        ]
    if found is None or found.group(2).lower() not in FILES:
        path = reading.find(plain)
        return _file(reading, path, plain, None, label, own, config)
    path = reading.find(found.group(1))
    return _file(reading, path, plain, found.group(3), label, own, config)


def _looks_like_file(reading: SuiteReading, text: str, found: re.Match[str] | None) -> bool:
    """A bare path: one line, and a folder, or ends in a known way and is there or has no blanks."""
    if "/" in text and not any(c in text for c in " \n{") and len(text) < 1000:
        try:
            if (reading.base / text).is_dir():
                return True
        except (OSError, ValueError):
            return False
    if (
        found is None
        or "\n" in text
        or "{{" in text
        or len(text) > 1000
        or found.group(2).lower() not in FILES
    ):
        return False
    if " " not in js.trim(text):
        return True
    try:
        return (reading.base / found.group(1)).is_file()
    except (OSError, ValueError):
        return False


def _file(
    reading: SuiteReading,
    path: Path,
    shown: str,
    function: str | None,
    label: str | None,
    own: str | None,
    config: Any,
) -> list[PromptTemplate]:
    kind = path.suffix[1:].lower()
    if kind in FILES - TEXT_FILES or (kind not in FILES and os.access(path, os.X_OK)):
        return [_made(reading, path, shown, function, label, own, config)]
    found = parts(reading, path, kind, shown)
    alone = len(found) == 1
    result: list[PromptTemplate] = []
    for index, (raw, named) in enumerate(found):
        _spoken(reading, raw)
        if named:
            result.append(PromptTemplate(raw, named, named, own, config))
        elif label:
            mine = labelled(reading, label, kind, raw, alone=alone)
            whole = f"{label}: {shown}: {raw}" if kind == "txt" else mine
            result.append(PromptTemplate(raw, whole, mine, own, config))
        else:
            mine = label_of(shown, kind, reading.masked(raw), index, alone=alone)
            result.append(PromptTemplate(raw, mine, own, own, config))
    return result


def _made(
    reading: SuiteReading,
    path: Path,
    shown: str,
    function: str | None,
    label: str | None,
    own: str | None,
    config: Any,
) -> PromptTemplate:
    """A prompt that code makes for each attempt: a function, what a module exports, or a script."""
    kind = path.suffix[1:].lower()
    reading.want(script(path, reading.root))
    named = shown if function is None else shown.removesuffix(f":{function}")
    made: dict[str, Any] = {"path": Path(os.path.relpath(reading.base, reading.root), named).as_posix()}
    if kind in JAVASCRIPT or function is not None:
        reading.saw(path)
        made["function"] = function or ""
        return PromptTemplate(shown, label or shown, label or own, own, config, made)
    made["script"] = True
    raw = reading.text(path) if kind not in ("exe", "bat", "cmd") else shown
    reading.saw(path)
    named = f"{shown}: {raw}" if kind == "py" else shown
    return PromptTemplate(raw, label or named, label or own, own, config, made)


# -- `file://` within a value, replaced by what the file holds (formats/promptfoo.md 2.2).


# -- The prompts that a file holds: one, or several (formats/promptfoo.md 6).


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
            return yaml_lines.load_json(text)
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


def label_of(shown: str, kind: str, raw: str, index: int, *, alone: bool = False) -> str:
    """What stands for a prompt of a file that nobody gave a label; `alone` is the only one of its file."""
    if kind in ("md", "j2"):
        return f"{shown}: {raw[:50]}..."
    if kind in ("yaml", "yml"):
        return f"{shown}: {raw[:80]}"
    if kind == "csv":
        return f"Prompt {index + 1} - {raw}"
    return shown if kind == "jsonl" and alone else f"{shown}: {raw}"


def labelled(reading: SuiteReading, given: str, kind: str, raw: str, *, alone: bool) -> str:
    """What a prompt of a file is called that a person gave the label `given`. promptfoo's label of one of a text file
    has the file's name in it, too; an id has not, so that it stays when the file is moved."""
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
