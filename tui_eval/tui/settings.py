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
from typing import TYPE_CHECKING, Any

from textual.keys import Keys

from tui_eval.guard.private import of_person
from tui_eval.guard.spelling import close_to
from tui_eval.model import Problem
from tui_eval.tui.keys import ALL_KEYS, Key, written
from tui_eval.tui.state.lists import filtering

if TYPE_CHECKING:
    from tui_eval.yaml.yaml_lines import YamlLines

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
    """What was read; `problems` are one line each, with the line of the file."""

    theme: str = ""
    theme_line: int = 0
    """Where that is said: whether there is such a theme is seen later."""
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
        self.theme, self.theme_line = fresh.theme, fresh.theme_line
        self.notify, self.filters = fresh.notify, fresh.filters
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
    from tui_eval.yaml import yaml_lines  # imported late: most people have no such file

    document = yaml_lines.load(text, file.name)
    found = document.problems
    values: Any = {} if document.value is None else document.value
    if isinstance(values, dict):
        found += _take(settings, values, document.lines, file.name)
    else:
        found.append(Problem(file.name, 1, "", f"must be a mapping with {', '.join(KNOWN)}"))
    settings.problems += map(str, sorted(found, key=lambda problem: problem.line))
    return settings


def _take(settings: Settings, values: dict[Any, Any], lines: YamlLines, name: str) -> list[Problem]:
    """Take what can be used; what is wrong with the rest."""
    found: list[Problem] = []

    def wrong(message: str, *path: str) -> None:
        found.append(Problem(name, lines.at(*path), ".".join(path), message))

    for key in values:
        if key not in KNOWN:
            slip = close_to(str(key), KNOWN)
            cure = f"did you mean {slip}?" if slip else f"there are {', '.join(KNOWN)}"
            wrong(f"unknown; {cure}", str(key))
    for key in ("theme", "notify"):
        if isinstance(values.get(key), str):
            setattr(settings, key, values[key])
        elif values.get(key) is not None:
            wrong("must be text", key)
    settings.theme_line = lines.at("theme") if settings.theme else 0
    mouse = values.get("mouse")
    if isinstance(mouse, bool):
        settings.mouse = mouse
    elif mouse is not None:
        wrong("must be true or false", "mouse")
    filters = values.get("filters") or {}
    if isinstance(filters, dict):
        settings.filters, problems = check_filters(filters)
        for key, problem in problems:
            wrong(problem, "filters", key)
    else:
        wrong("must be a mapping of names to filter expressions", "filters")
    keymap = values.get("keymap") or {}
    if isinstance(keymap, dict):
        settings.keymap, problems = check_keys(keymap, ALL_KEYS)
        for key, problem in problems:
            wrong(problem, "keymap", key)
    else:
        wrong("must be a mapping of ids to keys", "keymap")
    return found


def check_filters(wanted: dict[Any, Any]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The filters by name that can be used, and what is wrong with the others, by their names."""
    filters: dict[str, str] = {}
    problems: list[tuple[str, str]] = []
    for key, text in wanted.items():
        name = str(key)
        if re.fullmatch(r"[^\s=]+", name) is None:
            problems.append((name, f"a name is one word: @{'_'.join(name.split())}"))
        elif not isinstance(text, str):
            problems.append((name, "must be text, such as failed duration:>5s"))
        else:
            try:
                filtering.parse(text)
            except filtering.ListFilterError as error:
                problems.append((name, str(error)))
            else:
                filters[name] = text
    return filters, problems


def check_keys(wanted: dict[Any, Any], table: Iterable[Key]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The keymap (id: keys, comma-separated) that can be used, and what is wrong with the rest, by ids."""
    rows = {key.id: key for key in table}
    keymap: dict[str, str] = {}
    problems: list[tuple[str, str]] = []
    for name, value in wanted.items():
        if name not in rows:
            slip = close_to(str(name), rows)
            cure = f"did you mean {slip}?" if slip else "`?` and the palette list what there is"
            problems.append((str(name), f"no action of that name; {cure}"))
            continue
        keys = [str(key) for key in (value if isinstance(value, list) else [value])]
        wrong = [key for key in keys if not is_key(key)]
        if wrong or not keys:
            problems.append((name, f"{', '.join(wrong) or 'nothing'} is no key"))
            continue
        keymap[name] = ",".join(normal(key) for key in keys)
    for name in list(keymap):
        clash = _clash(name, keymap, rows)
        if clash:
            problems.append((name, clash))
            del keymap[name]
    return keymap, problems


def _clash(name: str, keymap: dict[str, str], rows: dict[str, Key]) -> str:
    mine = set(keymap[name].split(","))
    for other in rows.values():
        if other.id == name or not any({rows[name].place, other.place} <= places for places in _TOGETHER):
            continue
        same = mine & {normal(key) for key in keymap.get(other.id, other.keys).split(",")}
        if same:
            return f"{written(same.pop())} is already the key of {other.id}"
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
