"""Assertions that are code: JavaScript in the isolate, Python in the host process with trust, Ruby; and whether the
code that one names may run and is there, without running it.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import shutil
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput
from tui_eval.formats.promptfoo import promptfoo_words
from tui_eval.formats.promptfoo.judge import evaluated, registry
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant, read
from tui_eval.formats.promptfoo.judge.script_results import (
    ScriptFailed,
    ScriptLost,
    grading,
    is_grading,
    script_failed,
    simple,
    verdict_of_value,
)
from tui_eval.formats.promptfoo.judge.spans import trace_of
from tui_eval.guard import figures
from tui_eval.guard.paths import confine, no_file
from tui_eval.guard.trust import JAVASCRIPT_ENDINGS, inline, inline_in_node, script
from tui_eval.javascript import values as js
from tui_eval.javascript.inline import better_in_node, inline_folder, needs_node
from tui_eval.model import Assertion, Case, Evidence, Reply

if TYPE_CHECKING:
    from tui_eval.javascript.isolate import JavaScriptError, JavaScriptHost
    from tui_eval.scripting.script_host import ScriptError

# -- What every script of a promptfoo suite is given, and how it fails; whatever its language.


_LOST = frozenset({"script-memory-limit", "worker-lost"})


def _failure(error: JavaScriptError | ScriptError) -> ScriptFailed | ScriptLost:
    """What a script's end is to an assertion."""
    return ScriptLost(str(error), error.code) if error.code in _LOST else ScriptFailed(str(error))


def _raised(fault: BaseException) -> tuple[Path | None, int, tuple[int, int] | None] | None:
    """At which file (None: the code that was given), line and characters a script failed; None: it is not known."""
    error: BaseException | None = fault
    while error is not None:
        if (at := getattr(error, "raised_at", None)) is not None:
            return Path(at[0]), at[1], getattr(error, "columns", None)
        if (place := getattr(error, "place", None)) is not None:
            return None, *place
        error = error.__cause__
    return None


def add_raised(evidence: list[Evidence], fault: BaseException, root: Path, file: Path | None = None) -> None:
    """Let the evidence of a script that failed say in which file and line, with the line's text, and between which of
    its characters (`start`, `end`) where that is known. `file`: the script's, where the fault does not name it."""
    found = _raised(fault)
    path = (found[0] or file) if found is not None else None
    if found is None or path is None:
        return
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    _mark(
        evidence, str(path.relative_to(root)) if path.is_relative_to(root) else path.name, lines, *found[1:]
    )


def _add_raised_inline(evidence: list[Evidence], fault: BaseException, code: str, above: int = 0) -> None:
    """The same of a script that stands in the suite; `above` are the lines that were put before it."""
    found = _raised(fault)
    if found is None or (above and (found[0] is None or not found[0].name.startswith("inline_"))):
        return
    lines, columns = code.splitlines(), found[2]
    if above and columns is not None:  # Python's is set in, and one line is returned
        moved = len("    ") if "\n" in code else len("    return ")
        columns = columns[0] - moved, columns[1] - moved
    _mark(evidence, "script", lines, found[1] - above, columns)


def _mark(
    evidence: list[Evidence], name: str, lines: list[str], number: int, columns: tuple[int, int] | None
) -> None:
    if not 0 < number <= len(lines):
        return
    whole = lines[number - 1]
    before = len(whole) - len(whole.lstrip())
    start, end = (place - before for place in columns or (before, before))
    for one in evidence:
        one.path, one.row, one.rule = name, number, seen.cut(whole.strip())
        if 0 <= start < end <= len(one.rule):
            one.start, one.end = start, end


def context_of(evidence: JudgeInput, config: Any = None) -> dict[str, Any]:
    """The `context` that scripts get."""
    reply, case = evidence.reply(), evidence.case
    response: dict[str, Any] = {}
    metadata = metadata_of(evidence)
    if reply is not None:
        raw = reply.text if reply.raw is None and _of_echo(case) else reply.raw
        response = {
            "output": _output_of(reply, evidence),
            "cost": evidence.cost if reply.cost is None else reply.cost,
            "cached": reply.cached,
            "latencyMs": reply.latency_ms,
            "finishReason": reply.finish_reason,
            "metadata": metadata,
            "guardrails": reply.guardrails,
            "sessionId": (reply.metadata or {}).get("sessionId"),
            "raw": raw if isinstance(raw, str | dict | list) else None,
        }
        if reply.usage is not None:
            prompt, completion = reply.usage.input_tokens or 0, reply.usage.output_tokens or 0
            response["tokenUsage"] = {
                "prompt": prompt,
                "completion": completion,
                "total": figures.tokens(prompt, completion) or 0,
            }
    context: dict[str, Any] = {
        "prompt": evidence.prompt_sent,
        "vars": js.handed(evidence.vars),
        "test": {"options": {}, "metadata": {}, **evidence.test}
        if evidence.test is not None
        else promptfoo_words.told_test(case),
        "logProbs": reply.log_probs if reply else None,
        "provider": _provider_of(case),
        "providerResponse": {key: value for key, value in response.items() if value is not None},
        "metadata": metadata,
        "config": config,
    }
    trace = trace_of(evidence)
    if trace is not None:
        context["trace"] = promptfoo_words.trace_of(trace)
    return {key: value for key, value in context.items() if value is not None}


def metadata_of(evidence: JudgeInput) -> dict[str, Any] | None:
    """The metadata of the reply as scripts are told it; None: it has none."""
    reply = evidence.reply()
    if reply is None:
        return None
    return (reply.metadata or {}) if _of_echo(evidence.case) else reply.metadata


def _of_echo(case: Case) -> bool:
    """Whether promptfoo's `echo` answers, which hands on empty metadata, and its answer as raw, too."""
    return (
        case.provider_output is None and isinstance(case.provider, dict) and case.provider.get("id") == "echo"
    )


def _provider_of(case: Case) -> dict[str, Any] | None:
    """`context.provider`: the column's, also where the test has one of its own. JavaScript gets its `id` as
    the function that promptfoo's providers have."""
    entry = promptfoo_words.mapping(promptfoo_words.beside(case, "columnProvider") or case.provider)
    name = entry.get("id") or case.agent
    if not name:
        return None
    return {
        "id": name,
        "label": entry.get("label") or "",
        "config": promptfoo_words.mapping(entry.get("config")),
    }


def _output_of(reply: Reply, evidence: JudgeInput) -> Any:
    """As `output`, but for the assertion's own transform: there it is one object with that (promptfoo 0.121)."""
    if evidence.output is not UNSET:
        return evidence.output
    return reply.text if reply.output is None else reply.output


_JS_SHAPE = "Custom function must return a boolean, number, or GradingResult object. Got type"
_MADE_WITH = re.compile(r"(?s)^(file://.*:__fn_(?:[\w$]+_)?)%5B.*%5D(_\d+)$")
"""A function that a generator made (`NodeHost.value_sync`): the config that it was made with stands in its name."""
_PYTHON_SECONDS = 300.0


async def javascript(call: AssertionCall) -> Result:
    """A JavaScript expression or body over `output` and `context`; what it throws is a failure."""
    value = call.value
    if not call.from_script:
        if not isinstance(value, str):
            reason = (
                "Custom function threw error: Invariant failed: javascript assertion must have a string value"
            )
            return script_failed(call, reason, "it is no text")
        variables = {"output": call.output, "context": context_of(call.evidence, call.assertion.config)}
        try:
            value = await run_javascript(call.value, variables, call.evidence)
        except ScriptFailed as error:
            place = _raised(error)
            line = f" (line {place[1]})" if place is not None and "\n" in call.value.strip() else ""
            why = f"Custom function threw error: {error}\n{call.value}"
            failed = script_failed(call, why, f"{error}{line}")
            _add_raised_inline(failed.evidence or [], error, call.value)
            return failed
    shown = call.value if isinstance(call.value, str) and not call.from_script else call.assertion.value
    if isinstance(shown, str):
        shown = _MADE_WITH.sub(r"\1…\2", shown)
    if isinstance(value, bool | int | float):
        result = simple(call, value, "Custom function", shown)
        if value is False and not result.passed and not call.from_script:
            variables = {"output": call.output, "context": context_of(call.evidence, call.assertion.config)}
            host = _isolate(call.evidence)
            parts = evaluated.in_javascript(call.value)
            await _add_values(
                result,
                parts,
                lambda code: host.evaluate(code, variables, timeout=_LOOK),
                evaluated.JAVASCRIPT,
            )
        return result
    if is_grading(value):
        return grading(call, value, "Custom function")
    kind, text = _js_kind(value)
    why = f"{_JS_SHAPE} {kind}: {text}"
    return script_failed(call, f"Custom function threw error: {why}\n{shown}", why)


def _js_kind(value: Any) -> tuple[str, str]:
    if value is UNSET:
        return "undefined", "undefined"
    return ("string" if isinstance(value, str) else "object"), js.json_text(value)


async def python(call: AssertionCall) -> Result:
    """A Python expression or body over `output` and `context`, rendered by templates before.

    Raises:
        NeedsTrust: the folder is not trusted.
    """
    value = call.value
    shown = call.assertion.value if call.from_script else call.value
    if not call.from_script:
        invariant(isinstance(value, str), "python assertion must have a string value")
        arguments = [call.output, context_of(call.evidence, call.assertion.config)]
        try:
            value = _held(
                await run_python(_inline(call.value), "main", arguments, call.evidence, shown=call.value)
            )
        except ScriptFailed as error:
            several = "\n" in call.value
            why = _INLINE_PLACE.sub(
                lambda found: f" (line {int(found[1]) - _ABOVE})" if several else "", str(error)
            )
            failed = script_failed(call, f"Python code execution failed: {why}", why)
            _add_raised_inline(failed.evidence or [], error, call.value, _ABOVE)
            return failed
    result = verdict_of_value(call, value, "Python", shown)
    if value is False and not result.passed and not call.from_script:
        arguments = [call.output, context_of(call.evidence, call.assertion.config)]

        async def evaluate(code: str) -> Any:
            return await run_python(_inline(code), "main", arguments, call.evidence, shown=call.value)

        await _add_values(result, evaluated.in_python(call.value), evaluate, evaluated.PYTHON)
    return result


_LOOK = 2.0
"""Seconds for the values of an expression that was false."""


async def _add_values(
    result: Result,
    parts: list[evaluated.Comparison],
    evaluate: Callable[[str], Awaitable[Any]],
    language: evaluated.Language,
) -> None:
    """Let the evidence of a script that was false say which values it saw, where that is found."""
    from tui_eval.javascript.isolate import JavaScriptError

    with contextlib.suppress(ScriptFailed, JavaScriptError, CannotJudge, ValueError, TypeError):
        told = await evaluated.what_was_false(parts, evaluate, language)
        if told is not None:
            result.evidence = [told]


async def add_values_of_file(result: Result, path: Path, function: str | None, call: AssertionCall) -> None:
    """The same of a script's file: what it does is done once more up to where it returned false."""
    try:
        source = await asyncio.to_thread(read, path)
    except CannotJudge:
        return
    variables = {"output": call.output, "context": context_of(call.evidence, call.assertion.config)}
    if path.suffix == ".py":
        found = evaluated.in_python_file(source, function or "get_assert")

        async def evaluate(code: str) -> Any:
            inline = _inline(f"{found.before}\nreturn {code}")
            return await _call_python(_inline_file(inline), "main", [*variables.values()], call.evidence)

        await _add_values(result, found.parts, evaluate, evaluated.PYTHON)
    elif (
        path.suffix in JAVASCRIPT_ENDINGS
        and function is None
        and call.evidence.services.hosts.javascript is not None
    ):
        told, host = evaluated.in_javascript_file(source), _isolate(call.evidence)
        await _add_values(
            result,
            told.parts,
            lambda code: host.evaluate(f"{told.before}\nreturn {code};", variables, timeout=_LOOK),
            evaluated.JAVASCRIPT,
        )


_ABOVE = 4
"""Lines that `_inline` puts before the code."""
_INLINE_PLACE = re.compile(r" \(inline_[0-9a-f]+\.py:(\d+)\)\Z")


def _inline(code: str) -> str:
    body = code if "\n" in code else f"return {code}"
    return f"import json\n\n\ndef main(output, context):\n{textwrap.indent(body, '    ')}\n"


async def run_javascript(
    code: str,
    variables: dict[str, Any],
    evidence: JudgeInput,
    *,
    seconds: float | None = None,
    shown: str = "",
) -> Any:
    """Run a JavaScript expression or body: in the isolate, or, where it asks for what only node has, there;
    UNSET is `undefined`. `seconds` is what it may take (None: the usual), `shown` the code as the suite has it.

    Raises:
        ScriptFailed: it threw, or took too long.
        ScriptLost: it came to no end.
        CannotJudge: there is no isolate.
        NeedsTrust: it needs node, and the folder is not trusted.
    """
    host, services = _isolate(evidence), evidence.services
    from tui_eval.javascript.inline import evaluate
    from tui_eval.javascript.isolate import JavaScriptError

    def require(_: str) -> None:
        services.trust.require(inline_in_node(shown or code, services.base, services.root))

    try:
        node = services.hosts.node
        value = await evaluate(code, variables, host, node, require, services.base, timeout=seconds)
    except JavaScriptError as error:
        raise _failure(error) from error
    return UNSET if value is js.UNDEFINED else value


async def _call_javascript(
    source: str, function: str | None, arguments: Sequence[Any], evidence: JudgeInput
) -> Any:
    host = _isolate(evidence)
    from tui_eval.javascript.isolate import JavaScriptError

    try:
        value = await host.call(source, function, arguments)
    except JavaScriptError as error:
        raise _failure(error) from error
    return UNSET if value is js.UNDEFINED else value


def _isolate(evidence: JudgeInput) -> JavaScriptHost:
    host = evidence.services.hosts.javascript
    if host is None:
        raise CannotJudge("JavaScript is needed here, and the isolate for it is not available", "no-host")
    return host


async def run_python(
    source: str, function: str, arguments: Sequence[Any], evidence: JudgeInput, *, shown: str
) -> Any:
    """Run Python that a suite holds inline, from a file of its own.

    Raises:
        ScriptFailed: it raised, or took too long.
        ScriptLost: it came to no end.
        NeedsTrust: the folder is not trusted.
    """
    evidence.services.trust.require(f"run inline Python of {evidence.case.suite}: {inline(shown)}")
    return await _call_python(_inline_file(source), function, arguments, evidence)


def _inline_file(source: str) -> Path:
    path = inline_folder() / f"inline_{hashlib.sha256(source.encode()).hexdigest()[:16]}.py"
    if not path.exists():
        path.write_text(source, "utf-8")
    return path


async def call_file(
    path: Path, function: str | None, evidence: JudgeInput, output: Any, config: Any, *, default: str
) -> Any:
    """Call a suite's script with the output and the context; a script's failure is its result.

    Raises:
        CannotJudge: the script failed; ScriptLost: it came to no end.
        NeedsTrust: Python of a folder that is not trusted.
    """
    arguments = [output, context_of(evidence, config)]
    try:
        return await call_file_with(
            path, function or default, evidence, arguments, module_default=function is None
        )
    except ScriptFailed as error:
        place = _raised(error)
        line = ""  # Python's errors say it themselves
        if place is not None and path.suffix in JAVASCRIPT_ENDINGS:
            line = f" ({(place[0] or path).name}:{place[1]})"
        failed = CannotJudge(f"{path.name}: {error}{line}", "script-failed")
        told = failed.evidence = seen.error(failed)
        await asyncio.to_thread(add_raised, [told], error, evidence.services.root, path)
        raise failed from error
    except ScriptLost as error:
        raise ScriptLost(f"{path.name}: {error}", error.code) from error


async def call_file_with(
    path: Path, function: str, evidence: JudgeInput, arguments: Sequence[Any], *, module_default: bool
) -> Any:
    """Call a function of a `.py` or `.js` file; a JavaScript module may export just the function.

    Raises:
        ScriptFailed: it threw.
        ScriptLost: it came to no end.
        CannotJudge: a language that is not run here.
        NeedsTrust: Python of a folder that is not trusted.
    """
    if path.suffix == ".py":
        evidence.services.trust.require(script(path, evidence.services.root))
        return _held(await _call_python(path, function, arguments, evidence))
    if path.suffix in JAVASCRIPT_ENDINGS:
        source, name = read(path), None if module_default else function
        services = evidence.services
        if needs_node(path, source, name) or (
            services.trust.granted and services.hosts.node is not None and better_in_node(source)
        ):
            return await _call_node(path, name, arguments, evidence)
        return await _call_javascript(source, name, arguments, evidence)
    if path.suffix == ".rb":
        evidence.services.trust.require(script(path, evidence.services.root))
        output, context = [*arguments, None, None][:2]
        given = {"file": str(path), "function": function, "output": output, "context": context}
        return await _run_ruby(given, path.parent)
    raise CannotJudge(f"{path.name}: files of this kind are not run here (.py, .js and .rb are)", "file")


async def _call_node(path: Path, function: str | None, arguments: Sequence[Any], evidence: JudgeInput) -> Any:
    evidence.services.trust.require(script(path, evidence.services.root))
    host = evidence.services.hosts.node
    if host is None:
        raise CannotJudge(f"{path.name} needs node, and the process for it is not available", "no-host")
    from tui_eval.javascript.node_host import NodeMissing, ScriptError

    try:
        answer = await host.call(
            path, function or "", json.loads(js.json_text(list(arguments))), timeout=_PYTHON_SECONDS,
            cwd=evidence.services.base,
        )  # fmt: skip
    except NodeMissing as error:
        raise CannotJudge(f"{path.name}: {error}", "script-failed") from error
    except ScriptError as error:
        raise _failure(error) from error
    return UNSET if answer.value is None else answer.value


async def _call_python(path: Path, function: str, arguments: Sequence[Any], evidence: JudgeInput) -> Any:
    host = evidence.services.hosts.python
    if host is None:
        raise CannotJudge("Python is needed here, and the process for it is not available", "no-host")
    from tui_eval.scripting.python.python_host import ScriptError

    try:
        answer = await host.call(
            path, function, json.loads(js.json_text(list(arguments))), timeout=_PYTHON_SECONDS
        )
        return answer.value
    except ScriptError as error:
        raise _failure(error) from error


def _held(value: Any) -> Any:
    """What Python returned, in which no number may be one that JSON has not: as null it would be below any limit.

    Raises:
        ScriptFailed: one is.
    """
    if not figures.all_finite(value):
        raise ScriptFailed("gives NaN or an infinite number, which JSON cannot hold")
    return value


_FILE = re.compile(r"file://(.+?\.(?:py|rb|[cm]?[jt]s))(?::[\w.$]+)?", re.DOTALL)


def check_code(assertion: Assertion, evidence: JudgeInput) -> None:
    """Raises `CannotJudge` where there is no such file, `NeedsTrust` where it may not run. What a template names is
    known only when it is judged."""
    value, services = assertion.value, evidence.services
    if not isinstance(value, str) or "{{" in value or "{%" in value:
        return
    kind = registry.split(assertion.type)[0]
    if (match := _FILE.fullmatch(value.strip())) is not None:
        try:
            path = confine(services.root, match[1], services.trust, services.base)
        except (OSError, ValueError) as error:
            raise CannotJudge(f"{assertion.type}: {error}") from None
        if not os.path.isfile(path):
            raise CannotJudge(f"{assertion.type}: {no_file(path, match[1])}")
        if path.suffix in (".py", ".rb"):
            services.trust.require(script(path, services.root))
    elif kind in ("python", "ruby") and not value.startswith("file://"):
        language = "Python" if kind == "python" else "Ruby"
        services.trust.require(f"run inline {language} of {evidence.case.suite}: {inline(value)}")


# -- Ruby, run by the `ruby` on the PATH.


_RUBY_SECONDS = 60.0
_RUBY = """
require 'json'
given = JSON.parse($stdin.read)
result = if given['file']
  load given['file']
  send(given['function'].to_sym, given['output'], given['context'])
else
  eval("lambda { |output, context|\\n#{given['code']}\\n}").call(given['output'], given['context'])
end
$stdout.write("\\n\\u0001" + JSON.generate([result]))
"""


async def ruby(call: AssertionCall) -> Result:
    """A Ruby expression or body over `output` and `context`, as `python`; run by the `ruby` on the PATH.

    Raises:
        NeedsTrust: the folder is not trusted.
        CannotJudge: there is no Ruby here.
    """
    value, shown = call.value, call.value
    if not call.from_script:
        invariant(isinstance(value, str), '"ruby" assertion type must have a string value')
        call.services.trust.require(f"run inline Ruby of {call.evidence.case.suite}: {inline(value)}")
        context = context_of(call.evidence, call.assertion.config)
        given = {"code": value, "output": call.output, "context": context}
        try:
            value = await _run_ruby(given, call.services.base)
        except ScriptFailed as error:
            return script_failed(call, f"Ruby code execution failed: {error}", str(error))
    return verdict_of_value(call, value, "Ruby", shown)


async def _run_ruby(given: dict[str, Any], folder: Path) -> Any:
    """What a piece of Ruby, or a function of a file, returned.

    Raises:
        CannotJudge: there is no Ruby here.
        ScriptFailed: it raised, or took too long.
        ScriptLost: it came to no end.
    """
    program = shutil.which("ruby")
    if program is None:
        raise CannotJudge("Ruby is needed here, and there is no `ruby` on the PATH", "no-host")
    from tui_eval.agents.base import AgentError
    from tui_eval.agents.programs.command import run_program

    asked = js.json_text(given).encode("utf-8", "replace")
    try:
        async with asyncio.timeout(_RUBY_SECONDS):
            code, out, err = await run_program([program, "-e", _RUBY], asked, folder, {})
    except TimeoutError:
        raise ScriptFailed(f"no answer within {_RUBY_SECONDS:g} s") from None
    except AgentError as error:
        raise ScriptFailed(str(error)) from None
    _, mark, answer = out.decode("utf-8", "replace").rpartition("\x01")
    if code or not mark:
        lines = err.decode("utf-8", "replace").strip().splitlines()
        why = lines[0] if lines else f"exit code {code}"
        if b"NoMemoryError" in err:
            raise ScriptLost(why, "script-memory-limit")
        if code < 0:
            raise ScriptLost(f"the ruby process ended ({why})", "worker-lost")
        raise ScriptFailed(why)
    return json.loads(answer)[0]
