"""Prompts made by people's code: a function of a Python or JavaScript file, or a command
(formats/promptfoo.md 6)."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.formats.promptfoo.read.variables import FUNCTION_TIME, RenderError
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import Trust
from tui_eval.guard.trust import command as command_name
from tui_eval.guard.trust import script as script_name
from tui_eval.model import Case

if TYPE_CHECKING:
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost

INTERPRETERS = {"sh": "sh", "bash": "bash", "rb": "ruby", "pl": "perl", "ps1": "pwsh"}
"""What runs a script that is not executable itself."""

MOST_OUTPUT = 16 * 2**20
_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]{0,32}[ -/]?[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_])")


@dataclass(frozen=True, slots=True)
class PromptFunction:
    """Code of the suite that makes the prompt from `context`. Trust for it has been asked for.

    `function` of `file` is called with the context as its one argument (`""`: what the file exports);
    or `command`, if there is one, is run with it as JSON for its last argument.
    """

    file: Path
    function: str
    context: dict[str, Any]
    command: tuple[str, ...] = ()
    base: Path = Path()


def function_of(
    case: Case,
    made: dict[str, Any],
    vars: dict[str, Any],  # noqa: A002
    trust: Trust,
    root: Path,
    base: Path,
) -> PromptFunction:
    """What a case's `promptFunction` option asks for.

    Raises:
        NeedsTrust: the folder is not trusted.
    """
    entry = case.provider if isinstance(case.provider, dict) else {}
    provider = {"id": entry.get("id", case.agent), "label": entry.get("label")}
    context = {"vars": vars, "provider": provider, "config": case.options.get("promptConfig") or {}}
    command = made.get("command")
    if isinstance(command, str):
        trust.require(command_name(command, "to make a prompt", base, root))
        return PromptFunction(base, "", context, tuple(_words(command)), base)
    file, name = Path(str(made.get("path"))), str(made.get("function") or "")
    trust.require(script_name(file, root))
    path = confine(root, file, trust)
    if made.get("script"):
        return PromptFunction(path, "", context, _script(path), base)
    return PromptFunction(path, name, context, (), base)


async def call(made: PromptFunction, python: PythonHost, node: NodeHost) -> Any:
    """What the code returns.

    Raises:
        RenderError: it fails, or takes more than a minute.
    """
    from tui_eval.scripting.script_host import ScriptError

    if made.command:
        return await _run(made)
    name = f"{made.file.name}:{made.function}" if made.function else made.file.name
    try:
        if made.file.suffix == ".py":
            answer = await python.call(made.file, made.function, [made.context], timeout=FUNCTION_TIME)
        else:
            answer = await node.call(
                made.file, made.function, [made.context], timeout=FUNCTION_TIME, cwd=made.base
            )
    except ScriptError as error:
        raise RenderError(f"{name}: {error}") from None
    return answer.value


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise RenderError(f"exec:{command}: {error}") from None


def _script(path: Path) -> tuple[str, ...]:
    if path.suffix == ".py":
        return (os.environ.get("PROMPTFOO_PYTHON") or sys.executable, str(path))
    if os.access(path, os.X_OK):
        return (str(path),)
    interpreter = INTERPRETERS.get(path.suffix[1:].lower())
    if interpreter is None or shutil.which(interpreter) is None:
        raise RenderError(
            f"{path.name} is not executable" + (f" and there is no {interpreter}" if interpreter else "")
        )
    return (interpreter, str(path))


async def _run(made: PromptFunction) -> str:
    """Standard output, trimmed and without terminal sequences."""
    shown = " ".join(made.command)
    if not made.command:
        raise RenderError("exec: names no command")
    context = json.dumps(made.context, ensure_ascii=False, default=str)
    from tui_eval.agents.base import AgentError
    from tui_eval.agents.programs.command import run_program

    try:
        async with asyncio.timeout(FUNCTION_TIME):
            code, output, complaint = await run_program([*made.command, context], b"", made.base, {})
    except TimeoutError:
        raise RenderError(f"{shown} took longer than {FUNCTION_TIME:.0f} s") from None
    except AgentError as error:
        cannot = error.evidence.code == "cannot-run"
        said = f" cannot be run: {error.evidence.text}" if cannot else f": {error}"
        raise RenderError(f"{shown}{said}") from None
    text = _ESCAPES.sub("", output[:MOST_OUTPUT].decode("utf-8", "replace")).strip()
    said = " ".join(_ESCAPES.sub("", complaint[:10_000].decode("utf-8", "replace")).split())
    if code:
        raise RenderError(f"{shown} ended with exit code {code}" + (f": {said[:500]}" if said else ""))
    if said and not text:
        raise RenderError(f"{shown}: {said[:500]}")
    return text
