"""Patterns, schemas and code of assertions that do not compile, and the code that a test is made of beside its
assertions' files: JavaScript prompts and providers, inline code and hosts that need trust. Nothing of it is run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import UNSET

from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.config.project import Config
from tui_eval.formats.promptfoo.judge.outside import sends_to
from tui_eval.formats.promptfoo.promptfoo_words import beside
from tui_eval.guard.once import parsed
from tui_eval.guard.text import clip
from tui_eval.guard.trust import JAVASCRIPT_ENDINGS, inline, inline_in_node
from tui_eval.javascript.inline import OF_NODE
from tui_eval.javascript.isolate import JavaScriptError, JavaScriptHost, function_body
from tui_eval.model import Assertion, Case, Problem, Suite
from tui_eval.suites.read_values import problem_of

_COMPILE = """
try {
  if (context.kind === "regex") new RegExp(context.text);
  else new Function("output", "context", context.text);
  return null;
} catch (error) {
  return error.message;
}
"""
_NOT_INLINE = ("file://", "package:")
_TEMPLATE = ("{{", "{%")
_WITH_SCHEMA = ("is-json", "contains-json")


async def faults(suites: Iterable[Suite]) -> list[Problem]:
    """An error for each pattern, schema or piece of code that will fail or err whatever the agent answers."""
    problems: list[Problem] = []
    told: dict[tuple[str, str], tuple[str, str] | None] = {}
    schemas: dict[tuple[str, str], str | None] = {}
    host = JavaScriptHost()
    try:
        for suite in suites:
            for case in suite.cases:
                for assertion in case.assertions:
                    kind = assertion.type.removeprefix("not-")
                    text = assertion.value
                    problems += await _transform(case, assertion, assertion.transform, told, host)
                    if kind in _WITH_SCHEMA:
                        problems += _schema(case, assertion, schemas)
                        continue
                    if not isinstance(text, str) or not _is_inline(text):
                        continue
                    key = (kind, text)
                    if key not in told:
                        told[key] = await _fault(kind, text, host)
                    if (fault := told[key]) is not None:
                        problems.append(problem_of(case, assertion, *fault))
                problems += await _transform(case, None, case.options.get("transform"), told, host)
    finally:
        host.close()
    return problems


async def _transform(
    case: Case,
    assertion: Assertion | None,
    text: object,
    told: dict[tuple[str, str], tuple[str, str] | None],
    host: JavaScriptHost,
) -> Iterable[Problem]:
    """An error where a transform is no code: whatever is answered, there is nothing to judge."""
    if not isinstance(text, str) or not _is_inline(text):
        return []
    if ("transform", text) not in told:
        told["transform", text] = await _fault("javascript", text, host)
    fault = told["transform", text]
    if fault is None:
        return []
    why, cure = fault
    return [problem_of(case, assertion, f"its transform {why}", cure, key="options.transform")]


def _schema(case: Case, assertion: Assertion, known: dict[tuple[str, str], str | None]) -> Iterable[Problem]:
    """A JSON schema that nothing can be compared with; under `not-` a note, since what is no JSON still passes."""
    from tui_eval.formats.promptfoo.judge.json_schema import fault
    from tui_eval.vacuity import idle_parts

    kind, value = assertion.type.removeprefix("not-"), assertion.value
    text = value if isinstance(value, str) else json.dumps(value, default=str) if value is not UNSET else ""
    if not _is_inline(text):
        return
    if (kind, text) not in known:
        known[kind, text] = fault(kind, value)
    if (why := known[kind, text]) is not None:
        level = "note" if assertion.type.startswith("not-") else "error"
        if level == "note" and any(
            (part.line, part.key) == (assertion.line, assertion.type) for part in idle_parts(case)
        ):
            return  # that it cannot fail says it already
        yield problem_of(case, assertion, f"its schema is broken: {why}", "mend the schema", level=level)


def _is_inline(text: str) -> bool:
    return bool(text) and not text.startswith(_NOT_INLINE) and not any(mark in text for mark in _TEMPLATE)


async def _fault(kind: str, text: str, host: JavaScriptHost) -> tuple[str, str] | None:
    """What is wrong with a value, and the cure; None where it can be judged with."""
    if kind == "regex":
        message = await _compiled({"kind": "regex", "text": text}, host)
        return (f"is no regular expression of JavaScript: {message}", _mend(text)) if message else None
    if kind == "javascript":
        message = await _compiled({"kind": "function", "text": function_body(text)}, host)
        return (f"is no JavaScript: {message}", _mend(text)) if message else None
    if kind == "python":
        return _python(text)
    return None


async def _compiled(context: dict[str, str], host: JavaScriptHost) -> str | None:
    try:
        return await host.evaluate(_COMPILE, {"context": context})
    except JavaScriptError:
        return None  # the isolate is not there; that is said where it is needed


def _python(text: str) -> tuple[str, str] | None:
    lines = text.rstrip("\n")
    body = lines.split("\n") if "\n" in lines else [f"return {lines.strip()}"]
    try:
        parsed("def main(output, context):\n" + "\n".join(f" {line}" for line in body))
    except (SyntaxError, ValueError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        return f"is no Python: {reason}", _mend(text)
    return None


def _mend(text: str) -> str:
    return f"mend {clip(text, 60)}"


def scripts(case: Case, config: Config) -> Iterator[tuple[Path, str]]:
    """The JavaScript files of a case's provider and prompt, each with the function it must export."""
    for found in (_provider_script(case, config), _prompt_script(case, config)):
        if found is not None:
            yield found


def wanted_by(kind: str, value: str, case: Case, base: Path, root: Path) -> str | None:
    """What the code that an assertion holds, or the host that it asks, needs trust for."""
    if kind == "python":
        return f"run inline Python of {case.suite}: {inline(value)}"
    if kind == "ruby":
        return f"run inline Ruby of {case.suite}: {inline(value)}"
    if kind == "javascript":
        return inline_in_node(value, base, root) if OF_NODE.search(value) else None
    if kind == "webhook":
        try:
            return sends_to(value) or None
        except CannotJudge:
            return None
    return None


def _prompt_script(case: Case, config: Config) -> tuple[Path, str] | None:
    """The JavaScript file whose function makes a case's prompt, and the function's name."""
    made = beside(case, "promptFunction")
    if not isinstance(made, dict) or made.get("script") or made.get("command"):
        return None
    path = config.root / str(made.get("path"))
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
