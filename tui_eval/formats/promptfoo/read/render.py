"""The prompt of one attempt: file variables read, vars filled in, the template rendered.

The engine calls `render_case` for every attempt, so that an edited file counts at once.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.formats.format import RenderedCase, Scene
from tui_eval.formats.promptfoo.promptfoo_words import beside, mapping
from tui_eval.formats.promptfoo.read.variables import (
    FUNCTION_TIME,
    RenderError,
    kind_of,
    loaded,
    undoubled,
    with_code,
)
from tui_eval.guard.paths import TooLong, confine, matching
from tui_eval.guard.text import clip
from tui_eval.guard.trust import Trust, script
from tui_eval.guard.trust import command as command_name
from tui_eval.guard.trust import script as script_name
from tui_eval.javascript import values as js
from tui_eval.model import Case, Compat
from tui_eval.nunjucks.prompt_templates import (
    answers_apart,
    plain,
    render_prompt,
    resolve_vars,
    stored_answer,
    with_answers,
)
from tui_eval.nunjucks.suite_environment import SuiteEnvironment
from tui_eval.nunjucks.templates import Filters, TemplateError, including
from tui_eval.scripting.script_host import ScriptError
from tui_eval.suites.chat_prompts import chat_messages

if TYPE_CHECKING:
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost


# -- The suite's own template filters: `nunjucksFilters`, a name and the JavaScript file of each.


TIME_LIMIT = 20.0
"""Seconds that one application of a filter may take."""
_FIND_TIME = 5.0
"""Seconds that looking for its file may take."""


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter. Equal ones are interchangeable, so that templates stay compiled."""

    host: NodeHost
    file: Path
    base: Path
    root: Path
    trust: Trust

    def __call__(self, *args: Any, **named: Any) -> Any:
        """The file's export, applied; called from a thread. Named arguments are its last one, as nunjucks gives them.

        Raises:
            ScriptError: it fails.
            NeedsTrust: the folder is not trusted.
        """
        self.trust.require(script(self.file, self.root))
        file = confine(self.root, self.file, self.trust)
        given = [*args, *([{**named, "__keywords": True}] if named else ())]
        return self.host.call_sync(file, "", given, timeout=TIME_LIMIT, cwd=self.base).value

    def __hash__(self) -> int:
        return hash((id(self.host), id(self.trust), self.file))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Filter):
            return False
        return self.host is other.host and self.trust is other.trust and self.file == other.file


def suite_filters(
    given: Any, base: Path, root: Path, trust: Trust, host: NodeHost
) -> dict[str, Callable[..., Any]]:
    """The filters by name. A path may be a pattern: the last file that matches counts."""
    if not isinstance(given, Mapping):
        return {}
    return {
        str(name): Filter(host, path, base, root, trust)
        for name, value in given.items()
        if isinstance(value, str) and (path := filter_file(value, base)) is not None
    }


def filter_file(value: str, base: Path) -> Path | None:
    """The file that a filter's path means, None if there is none."""
    plain = value.removeprefix("file://")
    try:
        found = sorted(matching(str(base / plain), base, _FIND_TIME))
    except (OSError, ValueError, TooLong):
        return None
    return Path(found[-1]) if found else None


__all__ = [
    "PromptFunction",
    "RenderError",
    "RenderedCase",
    "chat_messages",
    "finish",
    "render_case",
    "resolve_case",
]


def resolve_case(
    case: Case,
    suite_base: Path,
    root: Path,
    trust: Trust,
    *,
    env: Mapping[str, str] | None = None,
    compat: Compat = "documented",
) -> RenderedCase:
    """The rendered prompt of a promptfoo case, as far as no code of the suite makes it.

    Args:
        suite_base: the folder of the configuration, which `file://` is relative to.
        root: the project root; files outside it need trust.
        env: `Suite.settings["env"]`.
        compat: `reference` keeps the `data:` prefix that a prompt puts before an image's own.

    Raises:
        RenderError: a file is missing, a variable is made by code, or a template cannot be rendered.
        NeedsTrust: a file outside the root, an environment variable or a prompt function.
    """
    return _resolved(
        case, case.vars, (), suite_base, root, trust, SuiteEnvironment(env or {}, trust), None, compat
    )


async def render_case(
    case: Case,
    suite_base: Path,
    root: Path,
    trust: Trust,
    python: PythonHost,
    *,
    node: NodeHost | None = None,
    settings: Mapping[str, Any] | None = None,
    more_vars: Mapping[str, Any] | None = None,
    stored: Mapping[str, Any] | None = None,
    compat: Compat = "documented",
) -> RenderedCase:
    """`resolve_case` with everything that code of the suite makes: variables, filters, the prompt.

    Args:
        python, node: where it runs; without `node`, one is started for this call if it is needed.
        settings: `Suite.settings`: `env` and `nunjucksFilters`.
        more_vars: what earlier attempts hand on (`_conversation`); the case's own win.
        stored: what they stored (`storeOutputAs`), in the place of the case's own.

    Raises:
        RenderError, NeedsTrust: as `resolve_case`; also where the code fails.
    """
    from tui_eval.javascript.node_host import NodeHost

    settings = settings or {}
    environment = SuiteEnvironment(settings.get("env") or {}, trust, settings.get("env_unread") or ())
    host = node or NodeHost(root)
    try:
        own = suite_filters(settings.get("nunjucksFilters"), suite_base, root, trust, host)
        # The case's own win, and stand first, as code sees that goes through them.
        given: dict[str, Any] = {**case.vars, **(more_vars or {}), **case.vars}
        given |= {name: stored_answer(value) for name, value in (stored or {}).items()}
        made = {name for name, value in given.items() if kind_of(value) == "code"}
        if made:
            raw = (case.turns[0].text if case.turns else "") or ""
            before, after = (_text(case.options.get(name) or "") for name in ("prefix", "suffix"))
            entry = _columns_provider(case)
            given = await with_code(given, before + raw + after, entry, suite_base, root, trust, python, host)
        # The suite's filters wait for their process, which must not stop everybody else.
        where = asyncio.to_thread if own else _here
        rendered = await where(
            _resolved, case, given, made, suite_base, root, trust, environment, own, compat
        )
        if rendered.function is None:
            return rendered
        value = await call(rendered.function, python, host)
        with including(suite_base, root, trust):
            return await where(finish, rendered, value, env=environment, filters=own, compat=compat)
    finally:
        if node is None:
            host.close()


async def render_in(case: Case, scene: Scene) -> RenderedCase:
    """As `Format.rendered`."""
    return await render_case(
        case, scene.base, scene.root, scene.trust, scene.python, node=scene.node, settings=scene.settings,
        more_vars=scene.more_vars, stored=scene.stored, compat=scene.compat,
    )  # fmt: skip


async def _here(function: Callable[..., RenderedCase], *args: Any, **kwargs: Any) -> RenderedCase:
    return function(*args, **kwargs)


def _resolved(
    case: Case,
    given: Mapping[str, Any],
    made_by_code: Collection[str],
    base: Path,
    root: Path,
    trust: Trust,
    environment: SuiteEnvironment,
    filters: Filters | None,
    compat: Compat,
) -> RenderedCase:
    # What code made names no file, whatever it begins with: a variable is looked at once.
    values = {
        name: value if name in made_by_code else loaded(name, value, base, root, trust, compat)
        for name, value in given.items()
    }
    options = case.options
    config = beside(case, "promptConfig")
    settings = dict(config) if isinstance(config, dict) else {}
    try:
        reference = compat == "reference"
        resolved = resolve_vars(values, reference=reference)
        made = beside(case, "promptFunction")
        if isinstance(made, dict):
            # A function gets the variables as the suite gives them.
            given = {name: plain(value) for name, value in values.items()}
            function = function_of(case, made, given, trust, root, base)
            return RenderedCase("", resolved, None, function, settings)
        text = case.turns[0].text if case.turns else ""
        prefix, suffix = _text(options.get("prefix")), _text(options.get("suffix"))
        with including(base, root, trust):
            prompt = render_prompt(
                text or "", resolved, prefix, suffix, filters, env=environment, reference=reference
            )
    except (TemplateError, ScriptError) as error:
        raise RenderError(f"the prompt cannot be rendered: {error}") from None
    return _rendered(prompt, resolved, settings, compat)


def _rendered(
    prompt: str,
    vars: dict[str, Any],  # noqa: A002
    config: dict[str, Any],
    compat: Compat,
) -> RenderedCase:
    text = prompt if compat == "reference" else undoubled(prompt)
    answered = with_answers(vars, reference=compat == "reference")
    return RenderedCase(text, answered, chat_messages(text), None, config)


def finish(
    rendered: RenderedCase,
    value: Any,
    *,
    env: Mapping[str, str] | None = None,
    filters: Filters | None = None,
    compat: Compat = "documented",
) -> RenderedCase:
    """The prompt from what its function returned: text, messages, or `{prompt, config}`.

    Raises:
        RenderError: it returned none of these.
    """
    config = rendered.config
    if isinstance(value, dict) and "prompt" in value:
        more = value.get("config")
        config = {**config, **more} if isinstance(more, dict) else config
        value = value["prompt"]
    if isinstance(value, (list, dict)):
        value = js.json_text(value)
    if not isinstance(value, str):
        raise RenderError("the prompt function must return text, messages, or {prompt, config}")
    text, known = answers_apart(value, rendered.vars)
    try:
        prompt = render_prompt(text, known, filters=filters, env=env, reference=compat == "reference")
    except (TemplateError, ScriptError) as error:
        raise RenderError(f"the prompt cannot be rendered: {error}") from None
    return _rendered(prompt, rendered.vars, config, compat)


def _text(value: Any) -> str:
    return js.text(value)


# -- Prompts made by people's code: a function of a Python or JavaScript file, or a command
# (formats/promptfoo.md 6).


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


def _columns_provider(case: Case) -> dict[str, Any]:
    """The provider that code is told which makes a prompt or a variable: the column's, also where the test
    has one of its own. A label is always a text."""
    entry = mapping(beside(case, "columnProvider") or case.provider)
    return {"id": case.agent, **entry, "label": entry.get("label") or ""}


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
    entry = _columns_provider(case)
    provider = {"id": entry["id"], "label": entry["label"]}
    context = {"vars": js.handed(vars), "provider": provider, "config": beside(case, "promptConfig") or {}}
    command = made.get("command")
    if isinstance(command, str):
        trust.require(command_name(command, "to make a prompt", base, root))
        return PromptFunction(base, "", context, tuple(_words(command)), base)
    file, name = root / str(made.get("path")), str(made.get("function") or "")
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
    from tui_eval.scripting.script_host import ScriptError, held

    if made.command:
        return await _run(made)
    name = f"{made.file.name}:{made.function}" if made.function else made.file.name
    try:
        if made.file.suffix == ".py":
            answer = await python.call(made.file, made.function, [made.context], timeout=FUNCTION_TIME)
            return held(answer.value)
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
    context = js.json_text(made.context)
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
        raise RenderError(f"{shown} ended with exit code {code}" + (f": {clip(said, 500)}" if said else ""))
    if said and not text:
        raise RenderError(f"{shown}: {clip(said, 500)}")
    return text
