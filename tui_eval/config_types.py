"""The shape of `tui_eval.yaml` and of what of `nao_config.yaml` concerns tests. What the keys mean for a person is
in `help/configuration.md`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from tui_eval.model import Compat, Problem, decoded

CONFIG_NAME = "tui_eval.yaml"

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

    `options` holds the keys that only its type reads (`base_url`, `system`, `tools`, `body`, …),
    environment variables not yet filled in: `fill` does that when the agent is used. Relative paths
    in it are relative to `base`. `typed` is True where the person typed it on the command line,
    which is trust enough.
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
    cache: bool = False
    base: str = ""
    typed: bool = False
    line: int = 0


class DatabaseSpec(msgspec.Struct, omit_defaults=True):
    """One entry of `databases:`; `path` is absolute (for `postgres`, `url`). `outside` are the files that links in
    a folder of type `files` lead to and that may be read though they lie outside of it."""

    name: str
    type: str
    path: str = ""
    url: str = ""
    line: int = 0
    outside: list[str] = []


class SuiteRule(msgspec.Struct, omit_defaults=True):
    """One entry of `suites:`: settings for suites whose path matches the gitignore pattern."""

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


class RunSettings(msgspec.Struct, omit_defaults=True):
    """`run:`; seconds, USD."""

    concurrency: int = 8
    timeout: float = 120.0
    attempts: int | None = None
    retries: int = 3
    max_cost: float | None = None


class NaoProject(msgspec.Struct, omit_defaults=True):
    """What a `nao_config.yaml` says that concerns tests (nao-core 0.3.29)."""

    path: str
    models: list[str] = []
    threads: int | None = None
    k: int | None = None
    comparison: dict[str, Any] = {}
    databases: dict[str, DatabaseSpec] = {}
    costs: dict[str, dict[str, float]] = {}


class Config(msgspec.Struct, omit_defaults=True):
    """Everything that configures a project. `root` is absolute; `file` is None without a file. `typed` are
    options of the command line that promptfoo suites read as their `commandLineOptions`."""

    root: Path
    file: Path | None = None
    agents: dict[str, AgentSpec] = {}
    judge: AgentSpec | None = None
    databases: dict[str, DatabaseSpec] = {}
    suites: list[SuiteRule] = []
    run: RunSettings = msgspec.field(default_factory=RunSettings)
    prices: dict[str, dict[str, float]] = {}
    providers: dict[str, str] = {}
    nao: NaoProject | None = None
    problems: list[Problem] = []
    typed: dict[str, Any] = {}


class ConfigError(Exception):
    """Something about the configuration that stops what was asked for; one clear line."""


def refused_agent(config: Config, name: str) -> str | None:
    """What is wrong with an entry of `agents:` that could not be read, and so is none; None where there is no such
    entry."""
    if name in config.agents:
        return None
    key = f"agents.{name}"
    wrong = (one for one in config.problems if one.key == key or one.key.startswith(f"{key}."))
    return next((str(one) for one in wrong if one.level == "error"), None)


decoded(AgentSpec)
