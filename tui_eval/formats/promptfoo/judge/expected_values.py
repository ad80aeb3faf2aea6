"""What an assertion expects, after templates, files and scripts; and transforms of the output."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.judge_input import CannotJudge, JudgeInput
from tui_eval.formats.promptfoo.judge import code
from tui_eval.formats.promptfoo.judge.assertion_call import read
from tui_eval.formats.promptfoo.judge.script_results import ScriptFailed, ScriptLost
from tui_eval.formats.promptfoo.promptfoo_words import beside
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import CODE_ENDINGS
from tui_eval.javascript import values as js
from tui_eval.model import Case, Reply
from tui_eval.nunjucks.templates import TemplateError, including, is_partial, render_value
from tui_eval.yaml import yaml_lines

_FILE = "file://"


def rendered(value: Any, evidence: JudgeInput) -> Any:
    """Texts, and texts within a list, rendered with the case's vars; objects stay as they are.

    Raises:
        CannotJudge: a template that cannot be rendered.
        NeedsTrust: it includes a file outside the project root.
    """
    if not isinstance(value, str | list):
        return value
    services = evidence.services
    try:
        with including(services.base, services.root, services.trust):
            return render_value(value, evidence.vars, env=services.env, whole=True)
    except TemplateError as error:
        raise CannotJudge(f"Template render error: {_told(error, value)}", "template") from error


def _told(error: TemplateError, value: str | list[Any]) -> str:
    texts = [value] if isinstance(value, str) else value
    still_open = next((text for text in texts if isinstance(text, str) and is_partial(text)), None)
    return str(error) if still_open is None else f"a tag is not closed in {_short(still_open)}"


class ScriptFault(Exception):
    """A Python or Ruby file that raised where it was to judge: a failure, as what its code says inline."""


async def from_file(reference: str, evidence: JudgeInput, output: Any, config: Any) -> tuple[Any, bool]:
    """What `file://…` stands for: the value, and whether a script computed it.

    A `.py` or `.js` file (`:function` after it) is called with the output and the context;
    `.json` and `.yaml` are parsed; anything else is the file's text without white space around it.

    Raises:
        CannotJudge: the file cannot be read or its script fails.
        ScriptFault: the script is Python or Ruby, and fails.
        NeedsTrust: it lies outside the project root, or is Python in a folder not trusted.
    """
    path, function = split_reference(reference)
    target = place(path, evidence)
    if target.suffix in CODE_ENDINGS:
        try:
            value = await code.call_file(target, function, evidence, output, config, default="get_assert")
        except ScriptLost:
            raise
        except CannotJudge as error:
            if target.suffix not in (".py", ".rb") or not target.exists():
                raise
            raise ScriptFault(str(error)) from error
        return value, True
    _supported(path, target, evidence)
    return parsed(path, target.suffix, await asyncio.to_thread(read, target)), False


def _supported(path: str, target: Path, evidence: JudgeInput) -> None:
    """With `compat: reference` an assertion names text, JSON or YAML, as the tool has it."""
    if evidence.reference and target.suffix not in (".txt", ".json", ".yaml", ".yml"):
        raise CannotJudge(f"Unsupported file type: {path}", "file")


async def loaded_early(value: Any, evidence: JudgeInput) -> Any:
    """A value in a list of tests (YAML, JSON, JSONL) of a file of its own, as promptfoo reads it before
    anything else: its `file://` replaced by the whole text, in which templates then count. Scripts are left
    standing.

    Raises:
        CannotJudge, NeedsTrust: as `from_file`.
    """
    if isinstance(value, list):
        return [await loaded_early(item, evidence) for item in value]
    if not is_file(value):
        return value
    path, _ = split_reference(value)
    target = place(path, evidence)
    if target.suffix in CODE_ENDINGS:
        return value
    return parsed(path, target.suffix, await asyncio.to_thread(read, target), whole=True)


async def with_files(listed: list[Any], evidence: JudgeInput) -> list[Any]:
    """A list with each `file://…` in it replaced by what the file holds; scripts are not run there.

    Raises:
        CannotJudge, NeedsTrust: as `from_file`.
    """
    return [await _content(item, evidence) if is_file(item) else item for item in listed]


async def _content(reference: str, evidence: JudgeInput) -> Any:
    path, _ = split_reference(reference)
    target = place(path, evidence)
    if target.suffix in CODE_ENDINGS:
        raise CannotJudge(f"{path}: a list's items cannot be made by code", "file")
    _supported(path, target, evidence)
    return parsed(path, target.suffix, await asyncio.to_thread(read, target))


def parsed(path: str, suffix: str, text: str, *, whole: bool = False) -> Any:
    """What a file's text stands for: `.json` and `.yaml` are parsed, any other is trimmed unless `whole`.

    Raises:
        CannotJudge: it is not JSON, or not YAML.
    """
    if suffix == ".json":
        try:
            return js.parse_json(text)
        except ValueError as error:
            raise CannotJudge(f"{path}: not JSON: {error}", "file") from error
    if suffix in (".yaml", ".yml"):
        document = yaml_lines.load(text, path, core=True)
        if document.problems:
            raise CannotJudge(f"{path}: not YAML: {document.problems[0].message}", "file")
        return document.value
    return text if whole else js.trim(text)


def split_reference(reference: str) -> tuple[str, str | None]:
    """The path and the function of `file://path:function`; a drive letter is no function."""
    path = reference.removeprefix(_FILE)
    head, colon, function = path.rpartition(":")
    if colon and len(head) > 1 and Path(head).suffix in CODE_ENDINGS:
        return head, function
    return path, None


def place(path: str, evidence: JudgeInput) -> Path:
    """The confined absolute path of a file that an assertion names, relative to the suite's folder."""
    services = evidence.services
    try:
        return confine(services.root, path, services.trust, services.base)
    except OSError as error:
        raise CannotJudge(f"{path}: {error.strerror or error}", "file") from error


def is_file(value: Any) -> bool:
    """Whether a value names a file."""
    return isinstance(value, str) and value.startswith(_FILE)


async def transformed(
    transform: str,
    output: Any,
    evidence: JudgeInput,
    *,
    prompt: dict[str, str] | None = None,
    metadata: bool = True,
) -> Any:
    """The output after a transform: a JavaScript expression or body, or `file://…`.

    `prompt` is what `context.prompt` is; by default `label` is the prompt as it was sent. `metadata`: whether
    it is told the reply's.

    Raises:
        CannotJudge: it throws, or gives null or undefined.
        NeedsTrust: as `from_file`.
    """
    shown = _short(transform)
    context: dict[str, Any] = {
        "vars": js.handed(evidence.vars),
        "prompt": prompt or {"label": evidence.prompt_sent or ""},
    }
    if metadata and (told := code.metadata_of(evidence)) is not None:
        context["metadata"] = told
    try:
        if is_file(transform):
            path, function = split_reference(transform)
            target = place(path, evidence)
            value = await code.call_file_with(
                target,
                function or "get_transform",
                evidence,
                [output, context],
                module_default=function is None,
            )
        else:
            # With any line break, even one at its end, the tool takes the code for a function's body.
            body = f"\n{transform}" if "\n" in transform else f"\nreturn {transform}"
            value = await code.run_javascript(
                body, {"output": output, "context": context}, evidence, shown=transform
            )
    except (ScriptFailed, ScriptLost) as error:
        raise CannotJudge(f"Transform failed ([inline transform]: {shown}): {error}", "transform") from error
    if value is None or value is UNSET:
        raise CannotJudge(f"Transform function did not return a value: {shown}", "transform")
    return value


async def case_output(evidence: JudgeInput) -> Any:
    """The reply after the provider's transform and then the test's (`transform`, else `postprocess`).

    Raises:
        CannotJudge: there is no reply, or a transform throws or gives nothing.
        NeedsTrust: a transform is code in a folder that is not trusted.
    """
    reply = evidence.reply()
    if reply is None:
        raise CannotJudge("No output: the agent gave no reply", "no-output")
    return await _through(transforms_of(evidence.case), reply, evidence)


async def provider_output(evidence: JudgeInput) -> Any:
    """The reply after the provider's transform alone, which `contextTransform` is given (promptfoo 0.121.20,
    `resolveContext`); after both where a results file has no other.

    Raises:
        CannotJudge, NeedsTrust: as `case_output`.
    """
    of_provider = [one for one in transforms_of(evidence.case) if not one[1]]
    return await _through(of_provider, evidence.reply() or Reply(turn=1), evidence)


async def _through(transforms: Iterable[tuple[str, bool]], reply: Reply, evidence: JudgeInput) -> Any:
    output: Any = reply.text if reply.output is None else reply.output
    if reply.text_missing or reply.transformed:
        return output
    for transform, of_test in transforms:
        told = of_test or not evidence.reference
        output = await transformed(transform, output, evidence, prompt=_template(evidence), metadata=told)
    return output


def _template(evidence: JudgeInput) -> dict[str, Any]:
    """The prompt as a test's transform sees it: what it is rendered from, with its own config."""
    case = evidence.case
    raw = (case.turns[0].text if case.turns else "") or ""
    before, after = (case.options.get(key) or "" for key in ("prefix", "suffix"))
    told = {"raw": f"{before}{raw}{after}", "label": case.prompt or raw, "template": raw}
    config = beside(case, "promptConfig")
    return {**told, "config": config} if isinstance(config, dict) else told


def transforms_of(case: Case) -> list[tuple[str, bool]]:
    """The provider's transform, then the test's, and whether it is that: of the reply's metadata the tool
    tells a test's alone. Of a test with a provider of its own it is that of the provider in whose column it
    stands."""
    options, column = case.options, beside(case, "columnProvider")
    own = options.get("transform") or options.get("postprocess")
    every = [(_of_provider(case.provider if column is None else column), False), (own, True)]
    return [(code, of_test) for code, of_test in every if isinstance(code, str) and code]


def _of_provider(provider: Any) -> Any:
    if not isinstance(provider, dict):
        return None
    inner = provider.get("transform")
    if inner is None and len(provider) == 1 and isinstance(only := next(iter(provider.values())), dict):
        inner = only.get("transform")
    return inner


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:200]}…"
