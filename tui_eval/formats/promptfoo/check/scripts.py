"""The code that a test is made of beside its assertions' files: JavaScript prompts and providers, inline code and hosts
that its assertions need trust for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.config.project import Config
from tui_eval.formats.promptfoo.judge.outside import sends_to
from tui_eval.guard.trust import inline, inline_in_node
from tui_eval.javascript.node_host import JAVASCRIPT_ENDINGS
from tui_eval.model import Case

_OF_NODE = re.compile(r"\b(?:process|require|fetch|XMLHttpRequest|WebSocket|crypto|Intl|module|import)\b")


def scripts(case: Case, config: Config) -> Iterator[tuple[Path, str]]:
    """The JavaScript files of a case's provider and prompt, each with the function it must export."""
    for found in (_provider_script(case, config), _prompt_script(case)):
        if found is not None:
            yield found


def wanted_by(kind: str, value: str, case: Case, base: Path, root: Path) -> str | None:
    """What the code that an assertion holds, or the host that it asks, needs trust for."""
    if kind == "python":
        return f"run inline Python of {case.suite}: {inline(value)}"
    if kind == "ruby":
        return f"run inline Ruby of {case.suite}: {inline(value)}"
    if kind == "javascript":
        return inline_in_node(value, base, root) if _OF_NODE.search(value) else None
    if kind == "webhook":
        try:
            return sends_to(value) or None
        except CannotJudge:
            return None
    return None


def _prompt_script(case: Case) -> tuple[Path, str] | None:
    """The JavaScript file whose function makes a case's prompt, and the function's name."""
    made = case.options.get("promptFunction")
    if not isinstance(made, dict) or made.get("script") or made.get("command"):
        return None
    path = Path(str(made.get("path")))
    return (path, str(made.get("function") or "")) if path.suffix in JAVASCRIPT_ENDINGS else None


def _provider_script(case: Case, config: Config) -> tuple[Path, str] | None:
    """The JavaScript file that a case's provider is, and the name of what it exports."""
    given = case.provider
    named = (given.get("id") or next(iter(given), None)) if isinstance(given, dict) else given
    if not isinstance(named, str):
        return None
    file, function = named.removeprefix("javascript:").removeprefix("file://"), ""
    if Path(file).suffix not in JAVASCRIPT_ENDINGS:
        file, _, function = file.rpartition(":")
    if Path(file).suffix not in JAVASCRIPT_ENDINGS:
        return None
    return (config.root / case.suite).parent / file, function
