"""An analyst without a nao server: a bare model becomes one for nao's tests.

It gets what a nao server gives its model: the project's RULES.md as system prompt and a tool that
queries the project's database, whose description holds the schema.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tui_eval.config.project import AgentSpec, Config

RULES = "RULES.md"
_TYPES = ("openai", "anthropic")


def analyst(spec: AgentSpec, database: str | None, config: Config) -> AgentSpec:
    """The spec with rules and a `sql` tool, where the agent is a model that has neither
    a system text nor tools of its own (`tools: []` says that it has what it needs); else the spec as it is.

    `database` is the case's; where that is not configured under this name, the only one there is. With
    several and none named, each is a tool (`run_sql_NAME`).
    """
    if spec.type not in _TYPES:
        return spec
    if "system" in spec.options or "tools" in spec.options:
        return spec
    rules = rules_file(config)
    options: dict[str, Any] = dict(spec.options)
    if rules is not None:
        # By its path: the text is not ours to look for `${NAME}` in.
        options["system"] = f"file://{rules}"
    names = [database] if database in config.databases else list(config.databases)
    if len(names) == 1:
        options["tools"] = [{"type": "sql", "database": names[0]}]
    elif names:
        options["tools"] = [
            {"type": "sql", "database": name, "name": f"run_sql_{_identifier(name or '')}"} for name in names
        ]
    return msgspec.structs.replace(spec, options=options)


def rules_file(config: Config) -> Path | None:
    """RULES.md beside the nao_config.yaml, else in the root; None: there is none."""
    folder = Path(config.nao.path).parent if config.nao is not None else config.root
    path = folder / RULES
    return path if path.is_file() else None


def _identifier(name: str) -> str:
    """What the models' servers take as a tool's name."""
    return "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)[:50]
