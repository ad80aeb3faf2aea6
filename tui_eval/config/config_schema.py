"""The shape of `tui_eval.yaml` and of what of `nao_config.yaml` concerns tests. What the keys mean for a person is
in `help/configuration.md`."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from tui_eval.model import Compat, Problem, decoded

# -- The keys of `tui_eval.yaml` and what their values may be.


Check = Callable[[Any], Any]
"""Gives the value as it is kept, or raises `Wrong`."""


_SCIENTIFIC = r"[-+]?[0-9]+(?:\.[0-9]*)?[eE][-+]?[0-9]{1,3}"


class Wrong(Exception):
    """A value is not what its key needs; the text continues "key: "."""


def anything(value: Any) -> Any:
    """Any value."""
    return value


def text(value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value:
        raise Wrong(f"must be text, not {_shown(value)}")
    return value


def without_variables(value: Any) -> str:
    """Text in which no variable is filled in."""
    found = text(value)
    if "${" in found:
        raise Wrong(f"variables are not filled in here: give an agent `model: {found}`")
    return found


def address(value: Any) -> str:
    """Where a server is; what a variable begins with is seen when it is filled in."""
    found = text(value)
    if not found.startswith(("${", "{{")) and not re.match(r"(?i)https?://[^/\s]", found):
        raise Wrong(f"must be an address that begins with http:// or https://, not {_shown(found)}")
    return found


def function(value: Any) -> str:
    """`FILE.py:function` or `package.module:function`."""
    found = text(value)
    file, _, name = found.rpartition(":")
    if "${" not in found and not (file and name.isidentifier()):
        raise Wrong(f"must be FILE.py:function or package.module:function, not {_shown(found)}")
    return found


def secret(value: Any) -> str:
    """Text or a number, of which nothing is repeated in an error."""
    if isinstance(value, (bool, dict, list, type(None))):
        raise Wrong("must be text")
    return str(value)


def flag(value: Any) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise Wrong(f"must be true or false, not {_shown(value)}")
    return value


def mapping(value: Any) -> dict[str, Any]:
    """A mapping; keys become text."""
    if not isinstance(value, dict):
        raise Wrong(f"must be a mapping (key: value), not {_shown(value)}")
    return {str(key): item for key, item in value.items()}


def headers(value: Any) -> dict[str, str]:
    """A mapping of header names to text."""
    items = mapping(value)
    for name, item in items.items():
        if isinstance(item, (dict, list, bool, type(None))):
            raise Wrong(f"{name!r} must be text")
    return {name: str(item) for name, item in items.items()}


def texts(value: Any) -> list[str]:
    """A list of texts; one text alone is a list of it."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list):
        raise Wrong(f"must be a list of texts, not {_shown(value)}")
    for item in items:
        if not isinstance(item, str) or not item:
            raise Wrong(f"must be a list of texts: {_shown(item)} is none")
    return items


TOOL_KEYS: dict[str, tuple[str, ...]] = {
    "python": ("type", "function", "name", "description", "schema", "timeout"),
    "sql": ("type", "database", "name", "description"),
    "canned": ("type", "name", "description", "schema", "result", "error"),
}
"""What an entry of `tools:` may say, by its type."""


def tools(value: Any) -> list[dict[str, Any]]:
    """A list of mappings, each with a `type`; what else they hold is looked at by `TOOL_KEYS`."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Wrong(f"must be a list of mappings, not {_shown(value)}")
    for item in value:
        if item.get("type") not in (*TOOL_KEYS,):  # a tuple: what cannot be hashed is none of them
            raise Wrong(f"a tool's type must be {_one_of(tuple(TOOL_KEYS))}, not {_shown(item.get('type'))}")
    return [{str(key): part for key, part in item.items()} for item in value]


def command(value: Any) -> list[str] | str:
    """A command line: a list of words, or one text."""
    if isinstance(value, str) and value:
        return value
    if value in ("", []):
        raise Wrong('must have a word at least, for example ["./agent", "--json"]')
    return texts(value)


def choice(*allowed: str) -> Check:
    """One of some words."""

    def check(value: Any) -> str:
        if value not in allowed:
            raise Wrong(f"must be {_one_of(allowed)}, not {_shown(value)}")
        return value

    return check


_ADDRESS = r"(?a)(?:ray://)?(?:[\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}"


def where(value: Any) -> str:
    """Where attempts run: `here`, `ray`, or a cluster's address."""
    wanted = "must be here, ray (one on this machine), ray://HOST:PORT or HOST:PORT (a cluster)"
    if isinstance(value, str) and value.startswith(("ray:", "here:")) and not value.startswith("ray://"):
        raise Wrong(f"{wanted}, not {_shown(value)}; how much goes on at once is said by -j")
    if not isinstance(value, str) or not (value in ("here", "ray") or re.fullmatch(_ADDRESS, value)):
        raise Wrong(f"{wanted}, not {_shown(value)}")
    if value not in ("here", "ray") and not 0 < int(value.rpartition(":")[2]) < 2**16:
        raise Wrong(f"{wanted}, not {_shown(value)}: a port is a number from 1 to 65535")
    return value


def number(least: float = 0, *, above: bool = False) -> Check:
    """A finite number of at least `least` (`above`: more than it)."""

    def check(value: Any) -> float:
        bound = f"above {least:g}" if above else f"of at least {least:g}"
        if isinstance(value, str) and re.fullmatch(_SCIENTIFIC, value):
            value = float(value)  # YAML 1.1 takes 1e-5 for text
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Wrong(f"must be a number {bound}, not {_shown(value)}")
        given = value
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if math.isinf(value):
            raise Wrong(f"must be a finite number {bound}, not {_shown(given)}")
        if math.isnan(value) or value < least or (above and value == least):
            raise Wrong(f"must be a number {bound}, not {_shown(given)}")
        return value

    return check


def integer(least: int, most: int = 2**31 - 1) -> Check:
    """A whole number of at least `least`."""
    bound = f"of at least {least}" if most == 2**31 - 1 else f"from {least} to {most:,}"

    def check(value: Any) -> int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if whole and value > most:
            raise Wrong(f"must be a whole number from {least} to {most:,}, not {_shown(value)}")
        if not whole or value < least:
            raise Wrong(f"must be a whole number {bound}, not {_shown(value)}")
        return value

    return check


def optional(check: Check) -> Check:
    """`null`, or what `check` takes."""
    return lambda value: None if value is None else check(value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        shown = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a huge number"
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _one_of(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


_SECONDS = number(0, above=True)
MOST_ATTEMPTS = 100_000
"""Of one case: what anybody means to ask."""

TOP = ("agents", "judge", "databases", "suites", "run", "prices", "providers")

AGENT_TYPES = (
    "openai", "anthropic", "ollama", "nao", "neuro-san", "http", "python", "command", "echo", "scripted", "replay",
)  # fmt: skip

FREE = ("scripted", "echo", "replay")
"""Those that ask nobody: they cost nothing, and whatever they say of costs is pretended."""

AGENT: dict[str, Check] = {
    "type": choice(*AGENT_TYPES),
    "model": text,
    "timeout": _SECONDS,
    "retries": integer(0),
    "concurrency": integer(1),
    "rate": mapping,
    "extraction": choice("guide"),
    "live": flag,
    "files": texts,
    "variables": texts,
    "cache": flag,
}
"""Keys that every agent has."""

RATE: dict[str, Check] = {"requests": number(0, above=True), "tokens": number(0, above=True)}

_MODEL: dict[str, Check] = {
    "base_url": address,
    "api_key": secret,
    "headers": headers,
    "system": text,
    "tools": tools,
    "parameters": mapping,
    "metadata": text,
    "max_steps": integer(1),
    "embedding_model": text,
    "stream": flag,
}

AGENT_OPTIONS: dict[str, dict[str, Check]] = {
    "openai": _MODEL,
    "anthropic": _MODEL,
    "ollama": {
        "base_url": address,
        "api_key": secret,
        "headers": headers,
        "system": text,
        "parameters": mapping,
        "completion": flag,
    },
    "nao": {
        "url": address,
        "email": text,
        "username": text,
        "password": secret,
        "token": secret,
        "headers": headers,
    },
    "neuro-san": {
        "url": address,
        "headers": headers,
        "network": text,
        "agent": text,
        "python": text,
        "manifest": text,
        "tool_path": text,
    },
    "http": {
        "url": address,
        "method": text,
        "headers": headers,
        "body": anything,
        "reply": text,
        "metadata": text,
        "tool_calls": text,
        "usage": text,
    },
    "python": {"function": function, "fresh": flag, "python": text},
    "command": {"command": command, "env": headers, "cwd": text},
    "echo": {"prefix": text},
    "scripted": {"script": text, "seed": integer(0)},
    "replay": {"run": text},
}
"""Keys that only one type of agent has; they become `AgentSpec.options`."""

REQUIRED: dict[str, tuple[str, ...]] = {
    "http": ("url",),
    "python": ("function",),
    "command": ("command",),
    "scripted": ("script",),
}

DATABASE_TYPES = ("duckdb", "sqlite", "files", "postgres")
DATABASE: dict[str, Check] = {"type": choice(*DATABASE_TYPES), "path": text, "url": secret}

COMPARISON: dict[str, Check] = {
    "rtol": optional(number()),
    "atol": optional(number()),
    "decimals": optional(integer(0)),
    "ordered": flag,
    "key": optional(texts),
}

SUITE: dict[str, Check] = {
    "path": text,
    "agent": text,
    "model": without_variables,
    "database": text,
    "compat": choice("documented", "reference"),
    "comparison": mapping,
    "judge": text,
    "attempts": integer(1, MOST_ATTEMPTS),
    "timeout": _SECONDS,
}

RUN: dict[str, Check] = {
    "concurrency": integer(1),
    "timeout": _SECONDS,
    "attempts": optional(integer(1, MOST_ATTEMPTS)),
    "retries": integer(0),
    "max_cost": optional(number(0, above=True)),
    "script_memory": optional(number(0.25)),
    "on": where,
    "files": choice("sent", "shared"),
}

PRICE: dict[str, Check] = {"input": number(), "output": number(), "cached": number()}


CONFIG_NAME = "tui_eval.yaml"
NAO_CONFIG_NAME = "nao_config.yaml"

AgentType = Literal[
    "openai", "anthropic", "ollama", "nao", "neuro-san", "http", "python", "command", "echo", "scripted", "replay",
    "silent",  # `check --vacuous`
    # Made from promptfoo's providers, not written by hand:
    "promptfoo-http", "webhook", "websocket", "javascript", "ruby", "sequence", "simulated-user",
    "openai-responses", "litellm", "huggingface-classifier", "openai-moderation",
]  # fmt: skip
DatabaseType = Literal["duckdb", "sqlite", "files", "postgres"]


class AgentSpec(msgspec.Struct, omit_defaults=True):
    """One entry of `agents:` (or one made from `--agent`, a promptfoo provider).

    `options` holds the keys that only its type reads (`base_url`, `system`, `tools`, `body`, …), environment
    variables not yet filled in: `fill` does that when the agent is used. Relative paths in it are relative to
    `base`. `variables` names those of the environment that its own code reads. `typed` is True where the
    person typed it on the command line, which is trust enough. `prepared` says for which cases a format has
    added to it what the entry does not say. `secret_in` is the option in which a secret of its suite's own environment
    (`env`, a `.env`) was filled in, under whatever name. `plain`: a suite of another tool says what it is, in which
    `${NAME}` is no variable but stands as it is; only that of its `api_key` is one.
    """

    name: str
    type: AgentType
    options: dict[str, Any] = {}
    model: str | None = None
    timeout: float | None = None
    retries: int | None = None
    concurrency: int | None = None
    rate_requests: float | None = None
    rate_tokens: float | None = None
    extraction: str | None = None
    live: bool = False
    files: list[str] = []
    variables: list[str] = []
    cache: bool = False
    base: str = ""
    typed: bool = False
    line: int = 0
    prepared: str = ""
    secret_in: str = ""
    plain: bool = False

    @property
    def marked_as(self) -> str:
        """Under which name a run keeps what it was: cases of several formats may ask one entry, and each gets
        its own."""
        return f"{self.name} ({self.prepared})" if self.prepared else self.name


class DatabaseSpec(msgspec.Struct, omit_defaults=True):
    """One entry of `databases:`; `path` is absolute (for `postgres`, `url`). `outside` are the files that links in
    a folder of type `files` lead to and that may be read though they lie outside of it. `schema` is where names without
    one are looked for, as PostgreSQL's `search_path` (empty: the server's). `url_of_parts`: variables in `url` hold a
    part of it as it is (a password with an `@`), and are written as addresses have it when they are filled in."""

    name: str
    type: str
    path: str = ""
    url: str = ""
    url_of_parts: bool = False
    schema: str = ""
    line: int = 0
    outside: list[str] = []


class SuiteRule(msgspec.Struct, omit_defaults=True):
    """One entry of `suites:`: settings for suites whose path matches the gitignore pattern. `wrong`: what in
    it could not be read, so that nobody knows whom to ask."""

    path: str
    agent: str | None = None
    model: str | None = None
    database: str | None = None
    compat: Compat | None = None
    comparison: dict[str, Any] = {}
    judge: str | None = None
    attempts: int | None = None
    timeout: float | None = None
    line: int = 0
    wrong: str = ""


class RunSettings(msgspec.Struct, omit_defaults=True):
    """`run:`; seconds, USD, gigabytes. `on` is where attempts run (`where`), `files` how a cluster has the
    project's."""

    concurrency: int = 8
    timeout: float = 120.0
    attempts: int | None = None
    retries: int = 3
    max_cost: float | None = None
    script_memory: float | None = None
    on: str = "here"
    files: str = "sent"


class NaoProject(msgspec.Struct, omit_defaults=True):
    """What a `nao_config.yaml` says that concerns tests (nao-core 0.3.29). `withheld` is what has to be trusted before
    the rest of it can be read, by section (`test.models`, `databases`, `llm`)."""

    path: str
    models: list[str] = []
    threads: int | None = None
    k: int | None = None
    comparison: dict[str, Any] = {}
    databases: dict[str, DatabaseSpec] = {}
    costs: dict[str, dict[str, float]] = {}
    withheld: dict[str, list[str]] = {}


class Config(msgspec.Struct, omit_defaults=True):
    """Everything that configures a project. `root` is absolute; `file` is None without a file. `typed` are
    options of the command line that promptfoo suites read as their `commandLineOptions`, `suite_secrets`
    those that stand in suites which were read with it (`Suite.hidden`). `judge_wrong`: one is named that
    cannot be asked, and no other is in its place. `doubled`: the sections, and keys of those without entries
    of their own, that are given twice."""

    root: Path
    file: Path | None = None
    agents: dict[str, AgentSpec] = {}
    judge: AgentSpec | None = None
    judge_wrong: bool = False
    databases: dict[str, DatabaseSpec] = {}
    suites: list[SuiteRule] = []
    run: RunSettings = msgspec.field(default_factory=RunSettings)
    prices: dict[str, dict[str, float]] = {}
    providers: dict[str, str] = {}
    nao: NaoProject | None = None
    problems: list[Problem] = []
    doubled: list[str] = []
    typed: dict[str, Any] = {}
    suite_secrets: list[str] = []


class ConfigError(Exception):
    """Something about the configuration that stops what was asked for; one clear line."""


class VariableNotSet(ConfigError):
    """An environment variable that is wanted is not set. `key` is the one that wants it."""

    def __init__(self, key: str, name: str) -> None:
        self.key = key
        self.what = f"the environment variable {name} is not set (set it, or write ${{{name}:-default}})"
        super().__init__(f"{key}: {self.what}")


def refused_agent(config: Config, name: str) -> str | None:
    """What is wrong with an entry of `agents:` that could not be read, and so is none; None where there is no such
    entry."""
    if name in config.agents:
        return None
    key = f"agents.{name}"
    wrong = (one for one in config.problems if one.key == key or one.key.startswith(f"{key}."))
    return next((str(one) for one in wrong if one.level == "error"), None)


decoded(AgentSpec)
