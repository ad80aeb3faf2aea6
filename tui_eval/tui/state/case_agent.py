"""The agent of a case: its entry in the configuration, and the files it is made of. Pure but for looking whether
a file is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tui_eval.config.project import AgentSpec, rule_for
from tui_eval.formats import format_of
from tui_eval.suites.functions import function_line
from tui_eval.tui.state.app_state import AppState, CasePointer


def agent_spec(state: AppState, pointer: CasePointer | None) -> AgentSpec | None:
    """The entry of the agent that a case was run by, would be run by, or that is meant."""
    config = state.config
    if config is None or pointer is None:
        return None
    item = state.by_id.get(pointer.case_id)
    rule = rule_for(config, item.suite) if item is not None else None
    for name in (pointer.agent, item.agent if item is not None else None, rule.agent if rule else None):
        if name and name in config.agents:
            return config.agents[name]
    if item is not None and item.case is not None:
        return format_of(item.case.format).default_agent(item.agent, config)
    return None


def files_of_agent(state: AppState, pointer: CasePointer | None) -> tuple[list[Path], int]:
    """The files that the agent of a case is made of, and the line of its function in the first."""
    # Imported when it is used: it needs the suites' readers, for which the first paint does not wait.

    item = state.by_id.get(pointer.case_id) if pointer is not None else None
    case = item.case if item is not None else None
    spec = agent_spec(state, pointer)
    if spec is not None:
        files = agent_files(spec, state.root)
        return files, function_line(files[0], function_of(spec)) if files else 0
    if case is not None and case.provider is not None:
        return provider_files(case.provider, (state.root / case.suite).parent), 0
    return [], 0


# -- Which files an agent is made of, from its entry: what `E` opens and `W` watches. Pure but for looking
# whether a file is there.


__all__ = ["agent_files", "function_line", "function_of", "provider_files"]

_NAMES = (
    "function",
    "script",
    "system",
    "tools",
    "transform",
    "config",
    "body",
    "manifest",
    "module",
    "code",
)
_PREFIXES = ("file://", "python:", "javascript:", "exec:", "script:", "golang:", "ruby:")


def agent_files(spec: AgentSpec, root: Path) -> list[Path]:
    """The files, those that the entry lists under `files:` first; only ones that exist."""
    base = Path(spec.base) if spec.base else root
    listed = [base / name for name in spec.files]
    for value in (*(spec.options.get(name) for name in _NAMES), *_words(spec.options.get("command"))):
        listed += _named(value, base)
    return _existing(listed)


def provider_files(provider: Any, base: Path) -> list[Path]:
    """The files of a promptfoo provider's entry; relative ones are beside the suite."""
    entry = provider if isinstance(provider, dict) else {"id": provider}
    listed = _named(entry.get("id"), base)
    config = entry.get("config")
    for value in config.values() if isinstance(config, dict) else ():
        listed += _named(value, base) if isinstance(value, str) and value.startswith("file://") else []
    return _existing(listed)


def function_of(spec: AgentSpec) -> str:
    """The name of the function that an agent's entry asks for; empty where it asks for none."""
    given = spec.options.get("function")
    return _split(given)[1] if isinstance(given, str) else ""


def _named(value: Any, base: Path) -> list[Path]:
    if isinstance(value, list):
        return [path for item in value for path in _named(item, base)]
    if isinstance(value, dict):
        return [path for key in ("function", "file", "path") for path in _named(value.get(key), base)]
    if not isinstance(value, str) or "\n" in value or len(value) > 1000:
        return []
    for prefix in _PREFIXES:
        value = value.removeprefix(prefix)
    candidates = [base / word for word in _words(value)] if " " in value else [base / value]
    found: list[Path] = []
    for path in (base / value, *candidates, base / _split(value)[0]):
        if path.suffix and path not in found:
            found.append(path)
    module, colon, _ = value.partition(":")
    if (
        colon
        and re.fullmatch(r"[A-Za-z_][\w.]*", module)
        and "/" not in module
        and not module.endswith(".py")
    ):
        found.append(base / f"{module.replace('.', '/')}.py")
    return found


def _split(text: str) -> tuple[str, str]:
    """`agent.py:answer` in two; a Windows drive or a URL is none of this."""
    head, colon, tail = text.rpartition(":")
    return (head, tail) if colon and re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", tail) else (text, "")


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))
    elif isinstance(value, str):
        yield from value.split()


def _existing(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        try:
            if path.is_file() and path not in found:
                found.append(path)
        except (OSError, ValueError):
            continue
    return found
