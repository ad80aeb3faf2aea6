"""The prompt of one attempt: file variables read, vars filled in, the template rendered.

The engine calls `render_case` for every attempt, so that an edited file counts at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.guard.paths import confine
from tui_eval.guard.trust import Trust
from tui_eval.model import Case
from tui_eval.scripting import templates
from tui_eval.scripting.nunjucks_values import FileList, FileValue
from tui_eval.suites import yaml_lines
from tui_eval.suites.promptfoo.environment import Environment
from tui_eval.suites.promptfoo.types import JAVASCRIPT, MEDIA

if TYPE_CHECKING:
    from tui_eval.scripting.python_host import PythonHost

LARGEST = 64 * 1024 * 1024
"""Bytes of the largest file that can be a variable."""


FUNCTION_TIME = 60.0
"""Seconds that a function may take to make a prompt."""


class RenderError(Exception):
    """The prompt of an attempt could not be made; the text is one line."""


@dataclass(frozen=True, slots=True)
class PromptFunction:
    """A Python function of the suite that makes the prompt: call it with `context` as its one
    argument, then `finish`. It needs trust, which has been asked for."""

    file: Path
    function: str
    context: dict[str, Any]


@dataclass(slots=True)
class RenderedCase:
    """What is sent. `prompt` is the text (empty while `function` is still to be called), `vars` those
    it was rendered with, `messages` the chat messages that the prompt is, if it is a list of them.
    `config` is what a prompt function or the prompt's entry adds to the provider's configuration."""

    prompt: str
    vars: dict[str, Any]
    messages: list[dict[str, Any]] | None = None
    function: PromptFunction | None = None
    config: dict[str, Any] = field(default_factory=dict)


def resolve_case(
    case: Case,
    suite_base: Path,
    root: Path,
    trust: Trust,
    *,
    env: Mapping[str, str] | None = None,
    more_vars: Mapping[str, Any] | None = None,
    filters: Mapping[str, Callable[..., Any]] | None = None,
) -> RenderedCase:
    """The rendered prompt of a promptfoo case.

    Args:
        suite_base: the folder of the configuration, which `file://` is relative to.
        root: the project root; files outside it need trust.
        env: `Suite.settings["env"]`.
        more_vars: what earlier attempts stored (`storeOutputAs`, `_conversation`); the case's own win.
        filters: the suite's own filters.

    Raises:
        RenderError: a file is missing, or a template cannot be rendered.
        NeedsTrust: a file outside the root, an environment variable or a prompt function.
    """
    environment = Environment(env or {}, trust)
    given = {**(more_vars or {}), **case.vars}
    loaded = {name: _loaded(name, value, suite_base, root, trust) for name, value in given.items()}
    try:
        resolved = templates.resolve_vars(loaded, env=environment, filters=filters)
        options = case.options
        config = options.get("promptConfig")
        settings = dict(config) if isinstance(config, dict) else {}
        made = options.get("promptFunction")
        if isinstance(made, dict):
            return RenderedCase("", resolved, None, _function(case, made, resolved, trust, root), settings)
        text = case.turns[0].text if case.turns else ""
        prompt = templates.render_prompt(
            text or "",
            resolved,
            _text(options.get("prefix")),
            _text(options.get("suffix")),
            filters,
            env=environment,
        )
    except templates.TemplateError as error:
        raise RenderError(f"the prompt cannot be rendered: {error}") from None
    return RenderedCase(prompt, resolved, chat_messages(prompt), None, settings)


async def render_case(
    case: Case,
    suite_base: Path,
    root: Path,
    trust: Trust,
    python: PythonHost,
    *,
    env: Mapping[str, str] | None = None,
    more_vars: Mapping[str, Any] | None = None,
    filters: Mapping[str, Callable[..., Any]] | None = None,
) -> RenderedCase:
    """`resolve_case`, and where a function makes the prompt, its call in `python` and `finish`.

    Raises:
        RenderError, NeedsTrust: as `resolve_case`; also where the function fails.
    """
    from tui_eval.scripting.python_host import ScriptError

    rendered = resolve_case(case, suite_base, root, trust, env=env, more_vars=more_vars, filters=filters)
    made = rendered.function
    if made is None:
        return rendered
    try:
        result = await python.call(made.file, made.function, [made.context], timeout=FUNCTION_TIME)
    except ScriptError as error:
        raise RenderError(f"{made.file.name}:{made.function}: {error}") from None
    return finish(rendered, result.value, case, env=Environment(env or {}, trust), filters=filters)


def finish(
    rendered: RenderedCase,
    value: Any,
    case: Case,
    *,
    env: Mapping[str, str] | None = None,
    filters: Mapping[str, Callable[..., Any]] | None = None,
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
        value = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, str):
        raise RenderError("the prompt function must return text, messages, or {prompt, config}")
    options = case.options
    prompt = f"{_text(options.get('prefix'))}{value}{_text(options.get('suffix'))}"
    try:
        prompt = templates.render_prompt(prompt, rendered.vars, filters=filters, env=env)
    except templates.TemplateError as error:
        raise RenderError(f"the prompt cannot be rendered: {error}") from None
    return RenderedCase(prompt, rendered.vars, chat_messages(prompt), None, config)


def _function(
    case: Case, made: dict[str, Any], resolved: dict[str, Any], trust: Trust, root: Path
) -> PromptFunction:
    file, name = Path(str(made.get("path"))), str(made.get("function"))
    trust.require(f"run {file.name}:{name} to make a prompt")
    entry = case.provider if isinstance(case.provider, dict) else {}
    provider = {"id": entry.get("id", case.agent), "label": entry.get("label")}
    context = {"vars": resolved, "provider": provider, "config": case.options.get("promptConfig") or {}}
    return PromptFunction(confine(root, file, trust), name, context)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _loaded(name: str, value: Any, base: Path, root: Path, trust: Trust) -> Any:
    """A `file://` variable as what it holds; any other value as it is."""
    if not (isinstance(value, str) and value.startswith("file://")):
        return value
    plain = value[len("file://") :].strip()
    ending = plain.rpartition(".")[2].partition(":")[0].lower()
    if ending in MEDIA:
        raise RenderError(f"{name}: images, sound, video and PDF as variables are not supported yet")
    if ending in JAVASCRIPT or ending == "py":
        raise RenderError(f"{name}: variables made by code are not supported yet")
    return file_value(name, plain, base, root, trust)


def file_value(name: str, plain: str, base: Path, root: Path, trust: Trust) -> Any:
    """The text of a file, trimmed; YAML and JSON also answer `{{name.key}}` and `{{name[0]}}`.

    Raises:
        RenderError: it is missing, too large or not text.
        NeedsTrust: it is outside the root.
    """
    try:
        path = confine(root, plain, trust, base)
        if not path.is_file():
            raise RenderError(f"{name}: there is no file {plain}")
        if path.stat().st_size > LARGEST:
            raise RenderError(f"{name}: {plain} is larger than {LARGEST // 2**20} MB")
        text = path.read_bytes().decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise RenderError(f"{name}: {plain} is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise RenderError(f"{name}: {plain}: {reason}") from None
    if path.suffix.lower() not in (".yaml", ".yml", ".json"):
        return text
    document = yaml_lines.load(text, plain, core=True)
    if isinstance(document.value, dict):
        return FileValue(text, document.value)
    return FileList(text, document.value) if isinstance(document.value, list) else text


def chat_messages(prompt: str) -> list[dict[str, Any]] | None:
    """The chat messages that a prompt is, in JSON or in YAML (`- role: …`); None if it is text."""
    plain = prompt.strip()
    if plain.startswith("["):
        try:
            value = json.loads(plain)
        except (ValueError, RecursionError):
            return None
    elif plain.startswith("- role:"):
        value = yaml_lines.load(plain, "prompt", core=True).value
    else:
        return None
    if not isinstance(value, list) or not value:
        return None
    usable = all(isinstance(m, dict) and isinstance(m.get("role"), str) and "content" in m for m in value)
    return value if usable else None
