"""What a nao project's `nao_config.yaml` says that concerns tests.

Read as nao-core 0.3.29 has it (formats/nao.md, section 1): the list `databases`, the block `test`
and the prices of `llm`. Its other keys are nao's own business, so nothing is said about them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tui_eval.config import config_schema as keys
from tui_eval.config.config_schema import NAO_CONFIG_NAME, DatabaseSpec, NaoProject
from tui_eval.guard.secrets import secret_values
from tui_eval.guard.trust import Trust
from tui_eval.model import Problem
from tui_eval.yaml import yaml_lines

DEFAULT_MODEL = "openai:gpt-4.1"
"""The model of `nao test` where none is given (seed 000)."""

_TEMPLATE = r"\$?\{\{\s*(env|aws|k8s)\(\s*['\"]([^'\"]+)['\"]\s*\)\s*\}\}"
"""nao's own (nao-core 0.3.29): filled in before the YAML is read, so that it may stand without quotes."""
_HELD = r"nao_template_(\d+)_"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_READ = ("databases", "llm")
"""The keys that are read beside `test`; what the others hold is not looked at."""
_NAMES = frozenset({"name", "type"})
"""Keys of a database by which it is chosen, so that they are filled in when the file is read."""
_KINDS = {"postgresql": "postgres"}


def read(file: Path, name: str, trust: Trust | None = None) -> tuple[NaoProject | None, list[Problem]]:
    """Read a `nao_config.yaml`, called `name` in problems. What `trust` does not cover stays a placeholder, and is in
    the project's `withheld`."""
    from tui_eval.config.config_file import read_text

    text, problem = read_text(file, name)
    if problem is not None:
        return None, [problem]
    templates = _Templates(text, name, trust or Trust())
    document = yaml_lines.load(templates.text, name)
    problems = [*document.problems, *templates.problems]
    if document.value is None and problems:
        return None, problems
    if not isinstance(document.value, dict):
        problems.append(Problem(name, 1, "", "must be a mapping (key: value)"))
        return None, problems
    reader = _Reader(file, name, document.lines, problems)
    project = reader.project(templates.filled(document.value))
    project.withheld = {section: list(whats) for section, whats in templates.withheld.items()}
    return project, problems


class _Withheld(str):
    """A text that names a variable which may not be read yet."""


class _Templates:
    """A text with a word in the place of each `{{ env('NAME') }}`, which is YAML wherever it stands, and what the words
    are for: a variable's value can so neither break the YAML nor add to it.

    What leads to a database becomes `${NAME:-}`, which is filled in (and asked for, in a folder that is not trusted)
    when it is used. The rest is filled in here as far as `trust` covers it, but for names that say that they are
    secrets: of a variable that is not covered `${NAME}` stands there and `withheld` says, by section, what to ask for.
    """

    def __init__(self, text: str, name: str, trust: Trust) -> None:
        self._found: list[re.Match[str]] = []
        self._trust = trust
        self.problems: list[Problem] = []
        self.withheld: dict[str, dict[str, None]] = {}

        def hold(match: re.Match[str]) -> str:
            self._found.append(match)
            return f"nao_template_{len(self._found) - 1}_" + "\0" * match[0].count("\n")

        held = re.sub(_TEMPLATE, hold, text.replace("\0", ""))
        # Line breaks within a template stand after its line, so that the lines after it stay where they are.
        lines = (line.replace("\0", "") + "\n" * line.count("\0") for line in held.split("\n"))
        self.text = "\n".join(lines) if "\0" in held else held
        for match in self._found:
            if match[1] != "env":
                line = text.count("\n", 0, match.start()) + 1
                said = f"{match[1]}(…): secrets of that kind are not fetched here"
                cure = "what needs it cannot be used; tui_eval.yaml can name the database"
                self.problems.append(Problem(name, line, "", said, cure, "note"))

    def filled(self, document: dict[Any, Any]) -> dict[Any, Any]:
        """The sections that are read, with the templates in their places."""
        filled = {key: self._each(document[key], key, key == "databases") for key in _READ if key in document}
        test = document.get("test")
        if isinstance(test, dict):  # who needs one of its keys need not need the others
            test = {key: self._each(item, f"test.{key}", lazy=False) for key, item in test.items()}
        return {**filled, "test": test}

    def _each(self, value: Any, section: str, lazy: bool) -> Any:
        if not self._found:
            return value
        if isinstance(value, dict):
            return {
                self._text(key, section, lazy=False) if isinstance(key, str) else key: self._each(
                    item, section, lazy and key not in _NAMES
                )
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [self._each(item, section, lazy) for item in value]
        return self._text(value, section, lazy) if isinstance(value, str) else value

    def _text(self, text: str, section: str, lazy: bool) -> Any:
        held = [
            self._found[int(one[1])] for one in re.finditer(_HELD, text) if int(one[1]) < len(self._found)
        ]
        if not held:
            return text
        kept = not all([lazy or self._covered(one, section) for one in held])  # each is to be asked for

        def value(one: re.Match[str]) -> str:
            number = int(one[1])
            return self._value(self._found[number], lazy, kept) if number < len(self._found) else one[0]

        filled = re.sub(_HELD, value, text)
        if kept:
            return _Withheld(filled)
        if re.fullmatch(_HELD, text) and "${" not in filled:
            for number in (int, float):
                with suppress(ValueError):
                    return number(filled)
            return filled or None  # an empty one is nothing, as in YAML
        return filled

    def _covered(self, template: re.Match[str], section: str) -> bool:
        kind, name = template.groups()
        if kind != "env" or not re.fullmatch(_NAME, name) or _is_secret(name):
            return True
        what = f"read the environment variable {name} ({NAO_CONFIG_NAME}: {section})"
        if self._trust.covers(what):
            return True
        self.withheld.setdefault(section, {})[what] = None
        return False

    def _value(self, template: re.Match[str], lazy: bool, kept: bool) -> str:
        kind, name = template.groups()
        if kind != "env" or not re.fullmatch(_NAME, name):
            return template[0]
        if lazy or _is_secret(name):
            return f"${{{name}:-}}"
        return f"${{{name}}}" if kept else os.environ.get(name, "")


def _is_secret(name: str) -> bool:
    """Whether a variable is a secret by its name, or by what it holds."""
    return bool(secret_values({name: "is it by its name"}) or secret_values({name: os.environ.get(name, "")}))


class _Reader:
    def __init__(self, file: Path, name: str, lines: yaml_lines.YamlLines, problems: list[Problem]) -> None:
        self._file = file
        self._name = name
        self._lines = lines
        self._problems = problems

    def _wrong(self, path: tuple[Hashable, ...], message: str, cure: str = "") -> None:
        key = ".".join(map(str, path))
        self._problems.append(Problem(self._name, self._lines.at(*path), key, message, cure))

    def _get(self, given: dict[str, Any], key: str, check: keys.Check, path: tuple[Hashable, ...]) -> Any:
        if given.get(key) is None or isinstance(given[key], _Withheld):
            return None
        try:
            return check(given[key])
        except keys.Wrong as wrong:
            self._wrong((*path, key), str(wrong))
            return None

    def project(self, value: dict[Any, Any]) -> NaoProject:
        test = self._get(value, "test", keys.mapping, ()) or {}
        comparison = self._get(test, "comparison", keys.mapping, ("test",)) or {}
        at = ("test", "comparison")
        settings = {
            "rtol": self._get(comparison, "rtol", keys.number(), at),
            "atol": self._get(comparison, "atol", keys.number(), at),
            "decimals": self._get(comparison, "decimals", keys.integer(0), at),
        }
        return NaoProject(
            path=str(self._file),
            models=self._models(test),
            threads=self._get(test, "threads", keys.integer(1), ("test",)),
            k=self._get(test, "k", keys.integer(1), ("test",)),
            comparison={key: item for key, item in settings.items() if item is not None},
            databases=self._databases(value.get("databases")),
            costs=self._costs(value.get("llm")),
        )

    def _models(self, test: dict[str, Any]) -> list[str]:
        models: list[str] = []
        for index, model in enumerate(self._get(test, "models", keys.texts, ("test",)) or []):
            provider, _, name = model.partition(":")
            if isinstance(model, _Withheld) or (provider.strip() and name.strip()):
                models.append(model)
            else:
                path = ("test", "models", index)
                self._wrong(path, f"{model[:60]!r} is no model", f"write provider:model, as {DEFAULT_MODEL}")
        return models

    def _databases(self, given: Any) -> dict[str, DatabaseSpec]:
        if given is None:
            return {}
        if not isinstance(given, list):
            self._wrong(("databases",), "must be a list (- name: …)")
            return {}
        databases: dict[str, DatabaseSpec] = {}
        twice: set[str] = set()
        for index, item in enumerate(given):
            path = ("databases", index)
            if not isinstance(item, dict) or not isinstance(item.get("type"), str):
                self._wrong(path, "must be a mapping with a name and a type")
                continue
            entry = {str(key): part for key, part in item.items()}
            kind = str(entry["type"])
            name = str(entry.get("name") or kind)
            if str(entry.get("path", "")).startswith(("md:", "motherduck:")):
                kind = "motherduck"
            postgres = _KINDS.get(kind, kind) == "postgres"
            if name in databases:
                first = databases[name].line
                self._wrong(
                    (*path, "name"), f"a second database {name!r} (the first on line {first})", "rename one"
                )
                twice.add(name)
            databases[name] = DatabaseSpec(
                name=name,
                type=_KINDS.get(kind, kind),
                path=self._path(entry),
                url=_url(entry) if postgres else "",
                url_of_parts=postgres,
                schema=str(entry.get("schema_name") or "") if postgres else "",
                line=self._lines.at(*path),
            )
        # nao's server executes nothing then: which one is meant cannot be known.
        return {name: spec for name, spec in databases.items() if name not in twice}

    def _path(self, entry: dict[str, Any]) -> str:
        from tui_eval.config.config_file import absolute

        given = entry.get("path")
        if given is None:
            return ":memory:" if entry["type"] == "duckdb" else ""
        path = str(given)
        remote = path.startswith(("md:", "motherduck:"))
        return path if remote else absolute(path, self._file.parent)

    def _costs(self, llm: Any) -> dict[str, dict[str, float]]:
        """Prices declared for models, USD per million tokens, wherever `llm` has them."""
        found: dict[str, dict[str, float]] = {}
        entries = llm if isinstance(llm, list) else [llm]
        for entry in entries:
            if not isinstance(entry, dict):
                continue
            nested = entry.get("providers")
            for part in [entry, *(nested if isinstance(nested, list) else [])]:
                if isinstance(part, dict):
                    found |= _declared_prices(part)
            meta = entry.get("meta")  # the older form: one price, of whatever has none of its own
            if isinstance(meta, dict) and (prices := _price(meta.get("costs"))):
                found[EVERY_MODEL] = prices
        return found


EVERY_MODEL = ""
"""In the place of a model: all that are not priced by themselves."""


def price_of(costs: dict[str, dict[str, float]], provider: str, model_id: str) -> dict[str, float] | None:
    """What a project's configuration (`costs`) says that a model costs; None where it says nothing of it."""
    named = costs.get(f"{_kind(provider)}:{model_id}") or costs.get(model_id)
    return named or costs.get(EVERY_MODEL)


def _declared_prices(provider: dict[Any, Any]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    prefix = f"{_kind(provider['provider'])}:" if isinstance(provider.get("provider"), str) else ""
    models = provider.get("models")
    for model in models if isinstance(models, list) else []:
        if isinstance(model, dict) and (prices := _price(model.get("costs"))):
            found[f"{prefix}{model.get('id') or model.get('name')}"] = prices
    costs = provider.get("costs")
    for model, given in costs.items() if isinstance(costs, dict) else ():
        if prices := _price(given):
            found[f"{prefix}{model}"] = prices
    return found


_PROVIDERS = {
    "openai-compatible": "openaiCompatible",
    "openai_compatible": "openaiCompatible",
    "openaicompatible": "openaiCompatible",
    "google": "gemini",
}
"""Spellings that a configuration may have, in nao's own, by which models are named."""


def _kind(provider: str) -> str:
    kind, slash, name = provider.partition("/")
    return f"{_PROVIDERS.get(kind, kind)}{slash}{name}"


_PRICES = {
    "inputnocache": "inputNoCache",
    "inputcacheread": "inputCacheRead",
    "inputcachewrite": "inputCacheWrite",
    "output": "output",
}


def _price(given: Any) -> dict[str, float]:
    if not isinstance(given, dict):
        return {}
    prices: dict[str, float] = {}
    for key, value in given.items():
        name = _PRICES.get(str(key).replace("_", "").lower())
        try:
            if name:
                prices[name] = keys.number()(value)
        except keys.Wrong:
            continue
    return prices


def _url(entry: dict[str, Any]) -> str:
    """The address of a PostgreSQL entry of nao (host, port, database, user, password)."""

    def part(key: str, default: str = "") -> str:
        # What a variable holds is written so when it is filled in.
        pieces = re.split(r"(\$\{[^}]*\})", str(entry.get(key, default)))
        return "".join(one if number % 2 else quote(one, safe="") for number, one in enumerate(pieces))

    login = f"{part('user')}:{part('password')}@" if entry.get("user") else ""
    return f"postgresql://{login}{part('host', 'localhost')}:{part('port', '5432')}/{part('database')}"
