"""An agent's steps: what kind each span of a trace is, and what it was called with.

Rules as seen in promptfoo 0.121.20 (formats/promptfoo.md 14).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from msgspec import UNSET

from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall
from tui_eval.formats.promptfoo.judge.spans import (
    arguments_of,
    command_of,
    matches,
    query_of,
    source_for_steps,
    tool_name,
)
from tui_eval.javascript import values as js
from tui_eval.model import TraceSpan

Kind = Literal["tool", "command", "search", "reasoning", "message", "span"]
KINDS: tuple[Kind, ...] = ("tool", "command", "search", "reasoning", "message", "span")

_COMMAND_TOOLS = frozenset(("exec_command", "local_shell", "shell"))

_REASONING = re.compile(r"reasoning([_\s]|$)", re.IGNORECASE)


@dataclass(slots=True)
class TrajectoryStep:
    """One step. `names` are all that a pattern may fit; `arguments` is UNSET where none were reported."""

    kind: Kind
    name: str
    names: tuple[str, ...]
    arguments: Any = UNSET

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    def fits(self, pattern: str) -> bool:
        """Whether one of its names fits a pattern."""
        return any(matches(pattern, name) for name in self.names)


@dataclass(slots=True)
class Steps:
    """All steps in the order of time; `note` ends the reason where they do not come from a trace."""

    all: list[TrajectoryStep]
    note: str = ""

    def of(self, kinds: Iterable[str]) -> list[TrajectoryStep]:
        """The steps of some kinds."""
        wanted = frozenset(kinds)
        return [step for step in self.all if step.kind in wanted]


def steps_of(call: AssertionCall) -> Steps:
    """The steps that the agent took.

    Raises:
        CannotJudge: nothing is known of them.
    """
    source = source_for_steps(call)
    tools = _COMMAND_TOOLS | {js.trim(name).lower() for name in source.command_tools if js.trim(name)}
    ordered = sorted(source.spans, key=_when) if all(_timed(span) for span in source.spans) else source.spans
    return Steps([_step(span, tools) for span in ordered], source.note)


def _timed(span: TraceSpan) -> bool:
    return span.start is not None


def _when(span: TraceSpan) -> tuple[float, float]:
    start = cast(float, span.start)
    return start, start if span.end is None else span.end


def _step(span: TraceSpan, command_tools: frozenset[str]) -> TrajectoryStep:
    tool = tool_name(span)
    runs_commands = tool is not None and tool.lower() in command_tools
    command = command_of(span, runs_commands)
    if command and (runs_commands or tool is None):
        names = [span.name, command, *([tool] if tool else []), command.split()[0]]
        return TrajectoryStep(
            "command", command, tuple(names), arguments_of(span) if runs_commands else UNSET
        )
    if tool is not None:
        return TrajectoryStep("tool", tool, (span.name, tool), arguments_of(span))
    if query := query_of(span):
        return TrajectoryStep("search", query, (span.name, query))
    kind = span.attributes.get("codex.item.type")
    if kind == "reasoning" or _REASONING.match(span.name):
        return TrajectoryStep("reasoning", span.name, (span.name, "reasoning"))
    if kind == "agent_message" or span.name in ("agent response", "send input"):
        return TrajectoryStep("message", span.name, (span.name, "message"))
    return TrajectoryStep("span", span.name, (span.name,))
