"""The systems that a suite names (formats/promptfoo.md 12), each as one mapping with `id`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tui_eval.formats.format import late
from tui_eval.formats.promptfoo.read.promptfoo_types import JAVASCRIPT, PROVIDER_KEYS
from tui_eval.formats.promptfoo.read.suite_file import LineOf, Missing, SuiteReading, brief, dotted_key
from tui_eval.guard.secrets import in_command, secret_values
from tui_eval.guard.trust import NeedsTrust, script


class Provider(msgspec.Struct):
    """One column of answers. `entry` is what the file gives, always with `id`; `keyed` says that the file
    gives it as `{id: {…}}`. `shown` is its name where that holds a secret."""

    id: str
    label: str | None
    entry: dict[str, Any]
    prompts: list[str] | None = None
    keyed: bool = False
    shown: str = ""

    @property
    def name(self) -> str:
        """The label, else the id; without secrets."""
        return self.shown or self.label or self.id


def read(reading: SuiteReading, value: Any, at: tuple[Any, ...], line_of: LineOf) -> list[Provider]:
    """The providers of a list, a single text or mapping, or a file."""
    if value is None:
        return []
    result: list[Provider] = []
    entries = value if isinstance(value, list) else [value]
    for index, entry in enumerate(entries):
        place = (*at, index) if isinstance(value, list) else at
        result.extend(_read_one(reading, entry, place, line_of))
    return result


def _read_one(reading: SuiteReading, entry: Any, at: tuple[Any, ...], line_of: LineOf) -> list[Provider]:
    if isinstance(entry, str) and entry:
        if entry.startswith("file://") and entry.endswith((".yaml", ".yml", ".json")):
            return _file(reading, entry, at, line_of)
        return [Provider(entry, None, {"id": entry})]
    if isinstance(entry, dict) and entry:
        provider = normalised(entry)
        if provider is not None:
            _wrong(reading, entry if "id" in entry else next(iter(entry.values())), at, line_of)
            return [provider]
        found = []
        for key, options in entry.items():
            if isinstance(key, str) and isinstance(options, dict) and len(entry) == 1:
                found.append(_made({"id": key, **options}, keyed=True))
        if found:
            return found
    reading.problem(
        reading.name,
        line_of(*at),
        dotted_key(at),
        f"no provider: {brief(entry)}",
        "give its id, as text or under id",
    )
    return []


def _wrong(reading: SuiteReading, entry: dict[str, Any], at: tuple[Any, ...], line_of: LineOf) -> None:
    """What promptfoo passes over in a provider: keys that are slips, values of a wrong kind."""
    reading.check_slips(entry, PROVIDER_KEYS, reading.name, line_of, at)
    kinds: tuple[tuple[str, Any, str], ...] = (
        ("config", dict, "a mapping"), ("label", (str, int, float), "text"), ("delay", (int, float), "milliseconds"),
        ("transform", str, "text"), ("prompts", (list, str), "a list of prompts"),
    )  # fmt: skip
    for name, kind, words in kinds:
        value = entry.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            place = (*at, name)
            message = f"must be {words}, not {brief(value)}"
            reading.problem(reading.name, line_of(*place), dotted_key(place), message, level="note")


def _file(reading: SuiteReading, entry: str, at: tuple[Any, ...], line_of: LineOf) -> list[Provider]:
    try:
        path = reading.find(entry)
        value, lines = reading.parsed(path)
    except Missing as error:
        if str(error):
            reading.problem(reading.name, line_of(*at), dotted_key(at), str(error))
        return []
    if isinstance(value, dict) and "providers" in value and "id" not in value:
        value = value["providers"]
    if value == []:
        name = reading.relative(path)
        reading.problem(
            reading.name, line_of(*at), dotted_key(at), f"{name} holds no provider", "name one in it"
        )
    if isinstance(value, str) and value.startswith("file://"):
        reading.problem(reading.name, line_of(*at), dotted_key(at), "a file that only names another file")
        return []
    return [p for p in read(reading, value, (), lines) if p.id != entry]


def of_test(entry: Any, reading: SuiteReading) -> Provider | None:
    """The provider that a test or a grader names; None where it names none."""
    provider = normalised(entry) if entry is not None else None
    if provider is not None:
        provider.shown = reading.shown(provider.name)
    return provider


def secrets_in(value: Any, depth: int = 0) -> Iterator[str]:
    """What providers are given under names of secrets, or in the words of a command, wherever one stands in a part of a
    configuration."""
    if isinstance(value, list):
        for item in value if depth < 50 else ():
            yield from secrets_in(item, depth + 1)
    elif isinstance(value, dict) and depth < 50:
        for name, item in value.items():
            if name in ("provider", "providers", "targets"):
                for one in item if isinstance(item, list) else [item]:
                    named = one.get("id") if isinstance(one, dict) else one
                    if isinstance(named, str) and named.startswith("exec:"):
                        yield from in_command(named.removeprefix("exec:"))
                    if isinstance(one, dict):
                        yield from secret_values(one)
                        yield from late("tui_eval.formats.promptfoo.promptfoo_format:PROMPTFOO").secrets(one)
            elif name == "value" and value.get("type") in ("webhook", "not-webhook"):
                yield from secret_values({name: item}, texts=False)
            elif name not in ("vars", "metadata"):
                yield from secrets_in(item, depth + 1)


def normalised(entry: Any) -> Provider | None:
    """A provider from text or a mapping with `id`; None if it is neither."""
    if isinstance(entry, str) and entry:
        return Provider(entry, None, {"id": entry})
    if isinstance(entry, dict) and isinstance(entry.get("id"), str) and entry["id"]:
        return _made(entry)
    if isinstance(entry, dict) and len(entry) == 1:
        key, options = next(iter(entry.items()))
        if isinstance(key, str) and isinstance(options, dict) and (":" in key or "/" in key or key == "echo"):
            return _made({"id": key, **options}, keyed=True)
    return None


def _made(entry: dict[str, Any], *, keyed: bool = False) -> Provider:
    label = entry.get("label")
    prompts = entry.get("prompts")
    names = [prompts] if isinstance(prompts, str) else prompts
    return Provider(
        str(entry["id"]),
        str(label) if label not in (None, "") else None,
        entry,
        [str(n) for n in names] if isinstance(names, list) else None,
        keyed,
    )


ID_LIMIT = 30.0
"""Seconds that a provider's code may take to say what it is called."""


def said_id(reading: SuiteReading, provider: Provider) -> str | None:
    """What a provider that is a JavaScript file calls itself (its `id()`), the name that the tool knows it by; None
    for any other provider.

    Raises:
        Missing: there is no such file, it needs trust, or it fails; the text says which.
    """
    from tui_eval.scripting.script_host import ScriptError

    file, function = provider.id.removeprefix("javascript:").removeprefix("file://"), ""
    if not _is_javascript(file):
        file, _, function = file.rpartition(":")
    if not _is_javascript(file):
        return None
    path, entry = reading.find(file), provider.entry
    try:
        reading.trust.require(script(path, reading.root))
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    reading.saw(path)
    config = entry.get("config")
    options = {
        "id": provider.id,
        **({"label": provider.label} if provider.label else {}),
        "config": {**(config if isinstance(config, dict) else {}), "basePath": str(reading.base)},
        "env": entry.get("env") or {},
    }
    try:
        return reading.node().identity_sync(path, function, options, timeout=ID_LIMIT, cwd=reading.base)
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    except ScriptError as error:
        raise Missing(f"{reading.relative(path)}: {error}", error.raised_at) from None


def _is_javascript(file: str) -> bool:
    return file.rpartition(".")[2].lower() in JAVASCRIPT


def matches(pattern: str, *names: str | None) -> bool:
    """Whether a test's reference names one of these: exactly, as `group` for `group:x`, or by `*`."""
    for name in names:
        if name is None:
            continue
        if name == pattern or name.startswith(f"{pattern}:"):
            return True
        if "*" in pattern and re.fullmatch(
            ".*".join(map(re.escape, re.split(r"\*+", pattern))), name, re.DOTALL
        ):
            return True
    return False
