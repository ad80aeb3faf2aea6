"""Reading `tui_eval.yaml`: every key checked, every mistake a problem with its line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import extensions
from tui_eval.config import config_schema as keys
from tui_eval.config.config_schema import (
    CONFIG_NAME,
    AgentSpec,
    Config,
    ConfigError,
    DatabaseSpec,
    RunSettings,
    SuiteRule,
    refused_agent,
)
from tui_eval.config.config_values import no_variable
from tui_eval.guard.spelling import close_to
from tui_eval.model import Problem
from tui_eval.model_ids import agent_of
from tui_eval.yaml import yaml_lines

LARGEST = 5_000_000
"""Bytes of configuration that are read."""


def read_into(config: Config, file: Path) -> None:
    """Read the file into the configuration; what is wrong is added to its problems."""
    name = os.path.relpath(file, config.root)
    text, problem = read_text(file, name)
    if problem is not None:
        config.problems.append(problem)
        return
    document = yaml_lines.load(text, name, core=True)
    places: dict[int, list[tuple[Hashable, ...]]] = {}
    for one in document.misread:
        if one.doubled:
            places.setdefault(id(one.problem), []).append((*one.path, one.problem.key))
    twice: dict[tuple[Hashable, ...], Problem] = {}
    for problem in document.problems:
        for path in places.get(id(problem), ()):
            told = msgspec.structs.replace(problem, key=".".join(map(str, path)))
            config.problems.append(told)
            if len(path) == 1 or path[0] not in _OF_ENTRIES:
                config.doubled.append(told.key)
            for length in range(1, len(path) + 1):
                twice.setdefault(path[:length], told)
        if id(problem) not in places:
            config.problems.append(problem)
    if document.value is not None:
        _Reader(config, name, document.lines, twice).top(document.value)


_OF_ENTRIES = ("agents", "judge", "suites")
"""Sections in which what is wrong concerns one entry, and who asks by it."""


def read_text(file: Path, name: str) -> tuple[str, Problem | None]:
    """The text of a configuration file, or the problem that stands in the way."""
    try:
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return "", Problem(name, 0, "", f"cannot be read: {reason}")
    if len(data) > LARGEST:
        return "", Problem(name, 0, "", f"larger than {LARGEST // 1_000_000} MB", "is this the right file?")
    try:
        return data.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return "", Problem(name, line, "", "not UTF-8 text", "save it as UTF-8")


def no_file(name: str) -> Problem:
    """A configuration that is a folder, a pipe, or a link to nothing."""
    return Problem(
        name, 0, "", "is no file: its settings do not count", "put a text file there, or remove it"
    )


def misnamed(root: Path) -> list[Problem]:
    """What is wrong with the configuration of a root that has none: one that is no file is an error, a name that is
    not read a note."""
    if os.path.lexists(root / CONFIG_NAME) and not (root / CONFIG_NAME).is_file():
        return [no_file(CONFIG_NAME)]
    for name in ("tui_eval.yml", "tui-eval.yaml", "tui-eval.yml"):
        if (root / name).is_file():
            return [Problem(name, 0, "", "not read", f"rename it to {CONFIG_NAME}", "note")]
    return []


class _Reader:
    def __init__(
        self,
        config: Config,
        name: str,
        lines: yaml_lines.YamlLines,
        twice: dict[tuple[Hashable, ...], Problem],
    ) -> None:
        self._config = config
        self._name = name
        self._lines = lines
        self._twice = twice

    def _twice_in(self, path: tuple[Hashable, ...]) -> Problem | None:
        """A key of this entry, or the entry itself, that is given twice: the one that was read may not be meant."""
        return self._twice.get(path)

    def _wrong(self, path: tuple[Hashable, ...], message: str, cure: str = "") -> None:
        key = ".".join(map(str, path))
        self._config.problems.append(Problem(self._name, self._lines.at(*path), key, message, cure))

    def _unknown(self, path: tuple[Hashable, ...], known: Iterable[str], what: str) -> None:
        known = list(known)
        slip = close_to(str(path[-1]), known)
        cure = f"did you mean {slip}?" if slip else f"known: {', '.join(known)}"
        self._wrong(path, f"not a key of {what}", cure)

    def _take(
        self, table: dict[str, keys.Check], given: Any, path: tuple[Hashable, ...], what: str
    ) -> dict[str, Any]:
        """The values of a mapping that are as `table` wants them; the others are problems."""
        try:
            items = keys.mapping(given)
        except keys.Wrong as wrong:
            self._wrong(path, str(wrong))
            return {}
        taken: dict[str, Any] = {}
        for key, value in items.items():
            if key not in table:
                self._unknown((*path, key), table, what)
                continue
            try:
                taken[key] = table[key](value)
            except keys.Wrong as wrong:
                self._wrong((*path, key), str(wrong))
        return taken

    def _named(self, given: Any, path: tuple[Hashable, ...]) -> dict[str, Any]:
        if given is None:
            return {}
        try:
            return keys.mapping(given)
        except keys.Wrong as wrong:
            self._wrong(path, str(wrong))
            return {}

    def top(self, value: Any) -> None:
        """Read the whole document."""
        try:
            items = keys.mapping(value)
        except keys.Wrong as wrong:
            self._wrong((), str(wrong), "start with agents:, suites: or run:")
            return
        for key in items:
            if key not in keys.TOP:
                self._unknown((key,), keys.TOP, CONFIG_NAME)
        config = self._config
        config.agents = self._agents(items.get("agents"))
        config.databases = self._databases(items.get("databases"))
        config.judge = self._judge(items.get("judge"))
        config.judge_wrong = config.judge is None and items.get("judge") is not None
        config.suites = self._suites(items.get("suites"))
        config.run = self._run(items.get("run"))
        config.prices = self._prices(items.get("prices"))
        config.providers = self._providers(items.get("providers"))
        for key in ("agents", "databases", "judge"):
            self._note_no_variables(items.get(key), (key,))

    def _note_no_variables(self, value: Any, path: tuple[Hashable, ...]) -> None:
        if isinstance(value, str):
            if "$" in value and (shown := no_variable(value)):
                cure = "write ${NAME} or ${NAME:-default} for a variable, $${ for a plain ${"
                text = f"{shown} is no variable, and stays as it is"
                line, key = self._lines.at(*path), ".".join(map(str, path))
                self._config.problems.append(Problem(self._name, line, key, text, cure, "note"))
        elif isinstance(value, dict | list):
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                self._note_no_variables(item, (*path, key))

    def _agents(self, given: Any) -> dict[str, AgentSpec]:
        agents: dict[str, AgentSpec] = {}
        for name, value in self._named(given, ("agents",)).items():
            spec = self._agent(name, value, ("agents", name))
            if spec is not None:
                agents[name] = spec
        return agents

    def _agent(self, name: str, value: Any, path: tuple[Hashable, ...]) -> AgentSpec | None:
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(value, dict) and kind is None:
            self._wrong((*path, "type"), "missing", f"one of {', '.join(keys.AGENT_TYPES)}")
            return None
        if isinstance(value, dict) and str(kind) in extensions.installed("agents"):
            return self._added_agent(name, str(kind), value, path)
        if isinstance(value, dict) and kind not in keys.AGENT_TYPES:
            from difflib import (
                get_close_matches,
            )  # imported late: of a file that is right nothing is looked for

            there = [*keys.AGENT_TYPES, *extensions.installed("agents")]
            slip = close_to(str(kind), there) or next(
                iter(get_close_matches(str(kind)[:60], there, 1, 0.5)), None
            )
            listed = ", ".join(there)
            cure = f"did you mean {slip}? There is: {listed}" if slip else f"there is: {listed}"
            self._wrong((*path, "type"), f"unknown type {str(kind)[:60]!r}", cure)
            return None
        options = keys.AGENT_OPTIONS.get(str(kind), {})
        before = len(self._config.problems)
        article = "an" if str(kind)[0] in "aeioh" else "a"
        taken = self._take({**keys.AGENT, **options}, value, path, f"{article} {kind} agent")
        if "type" not in taken:
            return None
        for index, tool in enumerate(taken.get("tools", ())):
            known = dict.fromkeys(keys.TOOL_KEYS[tool["type"]], keys.anything)
            self._take(known, tool, (*path, "tools", index), f"a {tool['type']} tool")
        refused = {problem.key for problem in self._config.problems[before:]}
        for key in keys.REQUIRED.get(taken["type"], ()):
            if key not in taken and ".".join(map(str, (*path, key))) not in refused:
                self._wrong((*path, key), f"missing: {article} {kind} agent needs it")
        spec = self._spec(name, taken, {key: taken[key] for key in options if key in taken}, path)
        if len(self._config.problems) > before or self._twice_in(path) is not None:
            return None  # without `base_ulr`, or with the other of two, it is another agent
        return spec

    def _added_agent(
        self, name: str, kind: str, value: dict[Any, Any], path: tuple[Hashable, ...]
    ) -> AgentSpec | None:
        """An agent of another package's type: the keys that are not every agent's are its own business."""
        own = {str(key): item for key, item in value.items() if key not in keys.AGENT}
        shared = {key: item for key, item in value.items() if key in keys.AGENT and key != "type"}
        before = len(self._config.problems)
        taken = self._take(keys.AGENT, shared, path, f"a {kind} agent")
        spec = self._spec(name, {**taken, "type": kind}, own, path)
        return spec if len(self._config.problems) == before and self._twice_in(path) is None else None

    def _spec(
        self, name: str, taken: dict[str, Any], options: dict[str, Any], path: tuple[Hashable, ...]
    ) -> AgentSpec:
        rate = self._take(keys.RATE, taken.get("rate", {}), (*path, "rate"), "rate")
        return AgentSpec(
            name=name,
            type=taken["type"],
            options=options,
            model=taken.get("model"),
            timeout=taken.get("timeout"),
            retries=taken.get("retries"),
            concurrency=taken.get("concurrency"),
            rate_requests=rate.get("requests"),
            rate_tokens=rate.get("tokens"),
            extraction=taken.get("extraction"),
            live=taken.get("live", False),
            files=taken.get("files", []),
            variables=taken.get("variables", []),
            cache=taken.get("cache", False),
            base=str(self._config.root),
            line=self._lines.at(*path),
        )

    def _judge(self, given: Any) -> AgentSpec | None:
        if given is None:
            return None
        if not isinstance(given, str):
            return self._agent("judge", given, ("judge",))
        if given in self._config.agents:
            return self._config.agents[given]
        try:
            spec = agent_of(given, str(self._config.root))
        except ConfigError as wrong:
            self._wrong(("judge",), str(wrong))
            return None
        if spec is None:
            self._no_such(("judge",), given, self._config.agents, "agent")
            return None
        spec.line = self._lines.at("judge")
        return spec

    def _databases(self, given: Any) -> dict[str, DatabaseSpec]:
        databases: dict[str, DatabaseSpec] = {}
        for name, value in self._named(given, ("databases",)).items():
            path = ("databases", name)
            taken = self._take(keys.DATABASE, value, path, "a database")
            kind = taken.get("type")
            if kind is None:
                if isinstance(value, dict) and "type" not in value:
                    self._wrong((*path, "type"), "missing", f"one of {', '.join(keys.DATABASE_TYPES)}")
                continue
            needed = "url" if kind == "postgres" else "path"
            if needed not in taken:
                if needed not in value:
                    self._wrong((*path, needed), f"missing: a {kind} database needs it")
                continue
            databases[name] = DatabaseSpec(
                name=name,
                type=kind,
                path=absolute(taken.get("path", ""), self._config.root),
                url=taken.get("url", ""),
                line=self._lines.at(*path),
            )
        return databases

    def _suites(self, given: Any) -> list[SuiteRule]:
        if given is None:
            return []
        if not isinstance(given, list):
            self._wrong(("suites",), "must be a list (- path: …)")
            return []
        return [rule for index, item in enumerate(given) if (rule := self._suite(item, ("suites", index)))]

    def _suite(self, item: Any, path: tuple[Hashable, ...]) -> SuiteRule | None:
        before = len(self._config.problems)
        taken = self._take(keys.SUITE, item, path, "an entry of suites")
        comparison = self._take(
            keys.COMPARISON, taken.get("comparison", {}), (*path, "comparison"), "comparison"
        )
        misread = next(iter(self._config.problems[before:]), None) or self._twice_in(path)
        if "path" not in taken:
            if isinstance(item, dict) and "path" not in item:
                self._wrong((*path, "path"), "missing", 'a pattern such as "tests/**"')
            return None
        reason = pattern_problem(taken["path"])
        if reason:
            self._wrong((*path, "path"), reason)
            return None
        for key in ("agent", "judge"):
            if key in taken and not self._names_agent(taken[key]):
                self._no_such((*path, key), taken[key], self._config.agents, "agent")
        nao = self._config.nao.databases if self._config.nao else {}
        databases = {**nao, **self._config.databases}
        unnamed = (
            self._config.nao is not None and "databases" in self._config.nao.withheld
        )  # not to be read yet
        if "database" in taken and taken["database"] not in databases and not unnamed:
            self._no_such((*path, "database"), taken["database"], databases, "database")
        wrong = "" if misread is None else str(misread)
        return SuiteRule(**{**taken, "comparison": comparison}, line=self._lines.at(*path), wrong=wrong)

    def _names_agent(self, text: str) -> bool:
        """Whether `--agent` would take it: an agent, `provider:model`, a URL, a function of a file."""
        if text in self._config.agents or text == "echo":
            return True
        with contextlib.suppress(ConfigError):
            if agent_of(text, "") is not None:
                return True
        before, _, after = text.rpartition(":")
        file = before if before.endswith(".py") else f"{before.replace('.', '/')}.py"
        return after.isidentifier() and (self._config.root / file).is_file()

    def _no_such(self, path: tuple[Hashable, ...], name: str, known: Iterable[str], what: str) -> None:
        known = list(known)
        if what == "agent" and refused_agent(self._config, name) is not None:
            return  # what is wrong with its entry is said there
        slip = close_to(name, known)
        cure = f"did you mean {slip}?" if slip else f"there is: {', '.join(known) or 'none'}"
        self._wrong(path, f"no {what} is called {name[:60]!r}", cure)

    def _run(self, given: Any) -> RunSettings:
        return RunSettings(**self._take(keys.RUN, given if given is not None else {}, ("run",), "run"))

    def _prices(self, given: Any) -> dict[str, dict[str, float]]:
        return {
            model: self._take(keys.PRICE, value, ("prices", model), "a price (USD per million tokens)")
            for model, value in self._named(given, ("prices",)).items()
        }

    def _providers(self, given: Any) -> dict[str, str]:
        providers: dict[str, str] = {}
        for name, value in self._named(given, ("providers",)).items():
            try:
                providers[name] = keys.text(value)
            except keys.Wrong as wrong:
                self._wrong(("providers", name), str(wrong))
                continue
            if value not in self._config.agents:
                self._no_such(("providers", name), value, self._config.agents, "agent")
        return providers


def absolute(path: str, root: Path) -> str:
    """A path of the file made absolute; one with a variable in it stays until it is filled in."""
    return path if not path or "${" in path or path == ":memory:" else os.path.abspath(root / path)


def pattern_problem(pattern: str) -> str:
    """Why a gitignore pattern cannot be used; empty if it can."""
    from pathspec import GitIgnoreSpec

    if pattern.lstrip().startswith("!"):
        return "a pattern that begins with ! matches nothing by itself"
    try:
        compiled = GitIgnoreSpec.from_lines([pattern])
        usable = any(part.include for part in compiled.patterns)
    except Exception as error:  # pathspec has several errors of its own, by version
        return (
            f"not a gitignore pattern: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        )
    return "" if usable else "a pattern that matches nothing"
