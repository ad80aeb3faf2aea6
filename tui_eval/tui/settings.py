"""The person's own settings: `$XDG_CONFIG_HOME/tui-eval/settings.yaml`.

    theme: nord
    notify: notify-send "$TUI_EVAL_SUMMARY"
    mouse: true
    keymap:
      case.rerun: [r, f5]
      quit: ctrl+q

Textual takes unknown ids and keys without a word, and lets one binding remove another; so everything is
checked here, and what is wrong is said and left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.keys import Keys

from tui_eval.guard.private import of_person
from tui_eval.tui.keys import ALL_KEYS, Key, written
from tui_eval.tui.state.lists import filtering

KNOWN = ("theme", "keymap", "notify", "filters", "mouse")
_NAMES = frozenset(key.value for key in Keys)
_MODIFIED = re.compile(r"(?:(?:ctrl|shift|alt|super)\+)*(.+)")
_TOGETHER = (
    frozenset({"everywhere", "moving", "list", "screen", "run"}),
    frozenset({"everywhere", "moving", "case"}),
    frozenset({"everywhere", "moving", "runs"}),
    frozenset({"everywhere", "moving", "compare"}),
    frozenset({"everywhere", "moving", "sides"}),
    frozenset({"everywhere", "moving", "grid"}),
    frozenset({"moving", "settings"}),
)
"""Places whose keys work at the same time."""


@dataclass(slots=True)
class Settings:
    """What was read; `problems` are one line each."""

    theme: str = ""
    notify: str = ""
    """A shell command for the end of a run while the app is not looked at."""
    mouse: bool = False
    """Whether the app takes the mouse from the terminal."""
    filters: dict[str, str] = field(default_factory=dict)
    """Filter expressions by name."""
    keymap: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def renew(self) -> None:
        """Read the file again; what it says now holds for all who have these settings."""
        fresh = read_settings()
        self.theme, self.notify, self.filters = fresh.theme, fresh.notify, fresh.filters
        self.keymap, self.mouse, self.problems = fresh.keymap, fresh.mouse, fresh.problems


def settings_file() -> Path:
    """Where the settings are."""
    return of_person("XDG_CONFIG_HOME", ".config") / "tui-eval" / "settings.yaml"


def read_settings(file: Path | None = None) -> Settings:
    """The settings; a file that is not there is no problem, one that is damaged is one."""
    file = file or settings_file()
    settings = Settings()
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return settings
    except (OSError, ValueError) as error:
        settings.problems.append(f"{file}: cannot be read: {error}")
        return settings
    import yaml

    try:
        values = yaml.safe_load(text) or {}
    except (yaml.YAMLError, RecursionError) as error:
        settings.problems.append(f"{file}: {' '.join(str(error).split())}")
        return settings
    if not isinstance(values, dict):
        settings.problems.append(f"{file}: must be a mapping with {', '.join(KNOWN)}")
        return settings
    for name in values:
        if name not in KNOWN:
            settings.problems.append(f"{file}: {name}: unknown; there are {', '.join(KNOWN)}")
    for name in ("theme", "notify"):
        if isinstance(values.get(name), str):
            setattr(settings, name, values[name])
        elif values.get(name) is not None:
            settings.problems.append(f"{file}: {name}: must be text")
    mouse = values.get("mouse")
    if isinstance(mouse, bool):
        settings.mouse = mouse
    elif mouse is not None:
        settings.problems.append(f"{file}: mouse: must be true or false")
    filters = values.get("filters") or {}
    if isinstance(filters, dict):
        settings.filters, problems = check_filters(filters)
        settings.problems += [f"{file}: filters: {problem}" for problem in problems]
    else:
        settings.problems.append(f"{file}: filters: must be a mapping of names to filter expressions")
    settings.keymap, problems = check_keys(values.get("keymap") or {}, ALL_KEYS)
    settings.problems += [f"{file}: keymap: {problem}" for problem in problems]
    return settings


def check_filters(wanted: dict[Any, Any]) -> tuple[dict[str, str], list[str]]:
    """The filters by name that can be used, and what is wrong with the others."""
    filters: dict[str, str] = {}
    problems: list[str] = []
    for name, text in wanted.items():
        if re.fullmatch(r"[^\s=]+", str(name)) is None:
            problems.append(f"{name}: a name is one word: @{'_'.join(str(name).split())}")
        elif not isinstance(text, str):
            problems.append(f"{name}: must be text, such as failed duration:>5s")
        else:
            try:
                filtering.parse(text)
            except filtering.ListFilterError as error:
                problems.append(f"{name}: {error}")
            else:
                filters[str(name)] = text
    return filters, problems


def check_keys(wanted: Any, table: Iterable[Key]) -> tuple[dict[str, str], list[str]]:
    """The keymap (id: keys, comma-separated) that can be used, and what is wrong with the rest."""
    if not isinstance(wanted, dict):
        return {}, ["must be a mapping of ids to keys"]
    rows = {key.id: key for key in table}
    keymap: dict[str, str] = {}
    problems: list[str] = []
    for name, value in wanted.items():
        if name not in rows:
            problems.append(f"{name}: no action of that name; `?` and the palette list what there is")
            continue
        keys = [str(key) for key in (value if isinstance(value, list) else [value])]
        wrong = [key for key in keys if not is_key(key)]
        if wrong or not keys:
            problems.append(f"{name}: {', '.join(wrong) or 'nothing'} is no key")
            continue
        keymap[name] = ",".join(normal(key) for key in keys)
    for name in list(keymap):
        clash = _clash(name, keymap, rows)
        if clash:
            problems.append(clash)
            del keymap[name]
    return keymap, problems


def _clash(name: str, keymap: dict[str, str], rows: dict[str, Key]) -> str:
    mine = set(keymap[name].split(","))
    for other in rows.values():
        if other.id == name or not any({rows[name].place, other.place} <= places for places in _TOGETHER):
            continue
        same = mine & {normal(key) for key in keymap.get(other.id, other.keys).split(",")}
        if same:
            return f"{name}: {written(same.pop())} is already the key of {other.id}"
    return ""


def is_key(key: str) -> bool:
    """Whether a terminal can send this key, as far as its name says."""
    found = _MODIFIED.fullmatch(key)
    name = found.group(1) if found else ""
    return (len(name) == 1 and name.isprintable()) or name in _NAMES or normal(name) in _NAMES


def normal(key: str) -> str:
    """A key in Textual's names: `?` is `question_mark`."""
    from textual.keys import _character_to_key

    return _character_to_key(key) if len(key) == 1 else key
