"""The prompts of a suite: literal, from files of all kinds, or made by a function (section 6)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.formats.promptfoo.read import prompt_files
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
    `function` is `{path, function}` where a function of the suite makes the prompt."""

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
                missing = str(error).startswith("there is no file")
                cure = "paths are relative to the configuration's folder" if missing else ""
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
        _spoken(reading, str(raw))
        raw = js.string(raw)
        if raw.startswith("file://"):
            return _from_text(reading, raw, label, own, config)
        return [PromptTemplate(raw, label or raw, label or own, own, config)]
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
            p for path in paths for p in _file(reading, path, _shown(reading, path), None, label, own, config)
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


def _shown(reading: SuiteReading, path: Path) -> str:
    return Path(os.path.relpath(path, reading.base)).as_posix()


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
    found = prompt_files.parts(reading, path, kind, shown)
    alone = len(found) == 1
    result: list[PromptTemplate] = []
    for index, (raw, named) in enumerate(found):
        _spoken(reading, raw)
        if named:
            result.append(PromptTemplate(raw, named, named, own, config))
        elif label:
            mine = prompt_files.labelled(reading, label, shown, kind, raw, alone=alone)
            result.append(PromptTemplate(raw, mine, mine, own, config))
        else:
            mine = prompt_files.label(shown, kind, raw, index, alone=alone)
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
    made: dict[str, Any] = {"path": str(path)}
    if kind in JAVASCRIPT or function is not None:
        reading.saw(path)
        made["function"] = function or ""
        return PromptTemplate(shown, label or shown, label or own, own, config, made)
    made["script"] = True
    raw = reading.text(path) if kind not in ("exe", "bat", "cmd") else shown
    reading.saw(path)
    named = f"{shown}: {raw}" if kind == "py" else shown
    return PromptTemplate(raw, label or named, label or own, own, config, made)
