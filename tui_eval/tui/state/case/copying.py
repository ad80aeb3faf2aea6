"""What is taken from an attempt to somewhere else: what `y` and `Y` copy (actual, expected, prompt, transcript, id,
command line, difference), and where `C` is to save its conversation as a case."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tui_eval.config.project import CONFIG_NAME
from tui_eval.model import UNSET, Verdict
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.store.printed_commands import (
    AsShown,
    by_root_alone,
    configs_of,
    project_option,
    run_options,
    shell_line,
)
from tui_eval.store.run_folders import project_of_run
from tui_eval.tui.state.case.case_content import CaseContent, deciding
from tui_eval.tui.state.case.verdict_lines import about_rows

COPY_CHOICES: dict[str, str] = {
    "a": "actual",
    "e": "expected",
    "p": "prompt",
    "t": "transcript",
    "i": "id",
    "c": "command",
    "d": "diff",
}


def text_of(content: CaseContent, choice: str, verdict: Verdict | None = None, transcript: str = "") -> str:
    """The text behind a choice, empty where there is none.

    Args:
        choice: A key of `COPY_CHOICES`.
        verdict: The verdict looked at; the deciding one where it is None.
        transcript: The transcript's text as the pane has it.
    """
    if choice == "i":
        return content.pointer.case_id
    if choice == "c":
        return command_line(content)
    if choice == "p":
        return prompt_of(content)
    if choice == "t":
        return transcript
    attempt = content.attempt
    if attempt is None:
        return ""
    if verdict is None:
        index = deciding(attempt.verdicts)
        verdict = attempt.verdicts[index] if index is not None else None
    if verdict is not None and about_rows(verdict) and attempt.data is not None:
        if choice == "d":
            return attempt.data.comparison or ""
        return as_text(attempt.data.actual if choice == "a" else attempt.data.expected)
    if choice == "d":
        return "" if verdict is None else difference_of(verdict.expected, verdict.actual)
    value = None if verdict is None else verdict.actual if choice == "a" else verdict.expected
    if value is None or value is UNSET:
        value = (
            (attempt.output if attempt.output is not None else attempt.response_text)
            if choice == "a"
            else None
        )
    return as_text(value)


def difference_of(expected: Any, actual: Any) -> str:
    """Expected against actual as a unified diff; empty where a side is not known or they are the same."""
    if expected in (None, UNSET) or actual is None:
        return ""
    lines = difflib.unified_diff(
        as_text(expected).splitlines(), as_text(actual).splitlines(), "expected", "actual", lineterm=""
    )
    return "\n".join(lines)


def as_text(value: Any) -> str:
    """A text as it is, anything else as indented JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2, default=str)


def prompt_of(content: CaseContent) -> str:
    """What was sent (promptfoo's rendered prompt), else the user's messages."""
    if content.attempt is not None:
        if content.attempt.prompt_sent:
            return content.attempt.prompt_sent
        said = [entry.text for entry in content.attempt.transcript if entry.kind == "user"]
        if said:
            return "\n\n".join(said)
    return "\n\n".join(turn.text or "" for turn in content.case.turns) if content.case else ""


def command_line(content: CaseContent) -> str:
    """The command that runs this case alone, headless."""
    root = project_of_run(content.folder) if content.folder is not None else None
    from_root = root is not None and by_root_alone(content.suite, root, content.options)
    where = configs_of(content.options) or ["." if from_root else content.suite]
    words = ["tui-eval", "run", *where, "--select", AsShown(content.pointer.case_id)]
    agent = content.agent or content.pointer.agent
    column = Column(agent or "", content.model or content.pointer.model or "")
    asked = case_state.arguments(content.pointer.case_id, column, content.options)
    if not asked and agent and (content.case is None or agent != content.case.agent):
        asked = ["--agent", agent]
    if root is not None and project_option([root / content.suite], root, content.options):
        asked = [*asked, "--config", CONFIG_NAME]  # from the root, as the suite
    return shell_line([*words, *asked, *run_options(content.options)])


@dataclass(slots=True)
class SaveChoice:
    """What the dialog asks for; `file` is from the project root."""

    form: str
    file: str
    name: str


@dataclass(frozen=True, slots=True)
class SaveOffer:
    """What there is to choose from: what the dialog begins with, a file for each format, what people call these, and
    (so called) those whose files hold several cases; `by_file` are those whose cases are called as their files are."""

    choice: SaveChoice
    files: Mapping[str, str]
    titles: Mapping[str, str]
    several: Sequence[str]
    by_file: Sequence[str] = ()
