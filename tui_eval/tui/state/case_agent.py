"""The agent of a case: its entry in the configuration, and the files it is made of. Pure but for looking whether
a file is there."""

from __future__ import annotations

from pathlib import Path

from tui_eval.config.project import AgentSpec, rule_for
from tui_eval.engine.agent_files import folder_files, function_of, named_files, provider_files
from tui_eval.formats import format_of
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
    """The files that the agent of a case names, and the line of its function in the first."""
    item = state.by_id.get(pointer.case_id) if pointer is not None else None
    case = item.as_written if item is not None else None
    spec = agent_spec(state, pointer)
    if spec is not None:
        from tui_eval.suites.read_values import function_line  # imported late: the start reads no YAML

        files = named_files(spec, state.root)
        return files, function_line(files[0], function_of(spec)) if files else 0
    if case is not None and case.provider is not None:
        return provider_files(case.provider, (state.root / case.suite).parent), 0
    return [], 0


def all_files_of_agent(state: AppState, pointer: CasePointer | None) -> list[Path]:
    """With what lies in the folders that it names. Looks through these: not while a key waits."""
    spec = agent_spec(state, pointer)
    named = files_of_agent(state, pointer)[0]
    return list(dict.fromkeys([*named, *(folder_files(spec, state.root) if spec is not None else ())]))
