"""From tests, prompts and providers to cases: test → combination of vars → provider → prompt."""

from __future__ import annotations

import asyncio
import itertools
import re
import uuid
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from tui_eval.case_names import matrix_name, short_prompts, short_providers
from tui_eval.formats.promptfoo.read.promptfoo_types import JAVASCRIPT
from tui_eval.formats.promptfoo.read.suite_file import Missing, SuiteReading, brief, is_pattern
from tui_eval.formats.promptfoo.read.suite_prompts import PromptTemplate
from tui_eval.formats.promptfoo.read.suite_providers import Provider, matches, of_test, said_id
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest, merged
from tui_eval.formats.promptfoo.read.variables import kind_of
from tui_eval.guard.trust import NeedsTrust, inline_in_node, script
from tui_eval.model import Case, Problem, Turn
from tui_eval.nunjucks.templates import flag
from tui_eval.suites import identity

# -- `options.transformVars`: code that changes a test's vars before they are combined
# (formats/promptfoo.md 7.4).


DEFAULT_FUNCTION = "get_transform"
TIME_LIMIT = 30.0
"""Seconds that one transform may take."""

_FILE = re.compile(r"file://(.+?\.(\w+))(?::(\w+))?\Z", re.DOTALL)
_TOLD = """const $vars = vars, $before = Object.entries(vars).map(([name, one]) => [name, JSON.stringify(one)]);
const $found = (() => {{{}
}})();
const $told = (value) => {{
  const all = {{ ...Object.fromEntries($before.map(([name]) => [name, $vars[name]])), ...Object(value) }};
  const undefined_ = Object.keys(all).filter((name) => all[name] === undefined);
  const changed = $before.filter(([name, one]) => JSON.stringify($vars[name]) !== one).map(([name]) => name);
  return {{ value, undefined: undefined_, changed: Object.fromEntries(changed.map((name) => [name, $vars[name]])) }};
}};
return typeof $found?.then === 'function' ? $found.then($told) : $told($found);
"""
"""What is told beside the value: names that are `undefined`, which JSON does not have, and what the code did to the
variables that it was given."""


def transformed(reading: SuiteReading, code: Any, vars: dict[str, Any]) -> dict[str, Any]:  # noqa: A002
    """The vars, as JavaScript leaves them, with what the transform returns laid over them; what is `undefined` then is
    none of them.

    Inline JavaScript runs in the isolate, or in node where it needs that; `file://x.js[:name]` through node and
    `file://x.py[:name]` in Python, both where the folder is trusted.

    Raises:
        Missing: it fails, needs trust, or returns no object; the text says which.
    """
    from tui_eval.javascript.isolate import JavaScriptError, function_body
    from tui_eval.scripting.script_host import ScriptError

    if not isinstance(code, str):
        raise Missing(f"transformVars must be code or a file, not {brief(code)}")
    context = {"prompt": {}, "uuid": str(uuid.uuid4())}
    try:
        if code.startswith("file://"):
            found = _from_file(reading, code, vars, context)
        else:
            given = {"vars": vars, "context": context}
            # With any line break, even one at its end, the tool takes the code for a function's body.
            body = f"\n{code}" if "\n" in code else code
            found = _wait(_inline(reading, _TOLD.format(function_body(body)), given, code))
    except JavaScriptError as error:
        raise Missing(f"transformVars: {error}") from None
    except ScriptError as error:
        raise Missing(f"transformVars: {error}", error.raised_at) from None
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    value, undefined = found.get("value"), found.get("undefined", ())
    if not isinstance(value, dict):
        raise Missing(f"transformVars must return an object of vars, not {brief(value)}")
    left = {**vars, **found.get("changed", {}), **value}
    return {name: one for name, one in left.items() if name not in undefined}


async def _inline(reading: SuiteReading, body: str, given: dict[str, Any], code: str) -> Any:
    from tui_eval.javascript.inline import evaluate

    def require(_: str) -> None:
        reading.trust.require(inline_in_node(code, reading.base, reading.root))

    hosts = reading.javascript(), reading.node()
    return await evaluate(body, given, *hosts, require, reading.base, timeout=TIME_LIMIT)


def _from_file(
    reading: SuiteReading,
    code: str,
    vars: dict[str, Any],  # noqa: A002
    context: dict[str, Any],
) -> dict[str, Any]:
    found = _FILE.match(code)
    kind = found[2].lower() if found else ""
    if found is None or kind not in JAVASCRIPT | {"py"}:
        raise Missing(f"transformVars: {brief(code)} is neither JavaScript nor Python")
    path = reading.find(found[1])
    reading.trust.require(script(path, reading.root))
    reading.saw(path)
    if kind == "py":
        name = found[3] or DEFAULT_FUNCTION
        from tui_eval.scripting.script_host import held

        value = held(reading.python().call_sync(path, name, [vars, context], timeout=TIME_LIMIT).value)
        return {"value": value}
    arguments = [vars, context]
    host, name = reading.node(), found[3] or ""
    return host.call_sync(
        path, name, arguments, timeout=TIME_LIMIT, cwd=reading.base, lenient=True, told=True
    ).value


def _wait(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine, also where this thread runs a loop of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


# -- Lists in vars: one combination of values after another (formats/promptfoo.md 3.3).


MOST = 100_000
"""The most combinations of one test, and the most columns."""
MOST_MADE = 1_000_000
"""The most cases of one suite; rows of a table, which stay rows, are not among them."""


class TooMany(Exception):
    """More combinations than can be meant."""


def combinations(
    vars: dict[str, Any],  # noqa: A002
    reading: SuiteReading,
    *,
    expand: bool,
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """`(vars, the expanded ones among them)` of each combination; the last key changes fastest.

    A list is expanded only if its first element is a text; a `file://` pattern stands for each file.

    Raises:
        TooMany: more than 100,000 combinations.
        Missing: a pattern that matches no file.
    """
    if not expand:
        yield vars, {}
        return
    choices: dict[str, list[Any]] = {}
    for name, value in vars.items():
        if isinstance(value, list) and value and isinstance(value[0], str):
            choices[name] = [v for given in value for v in _files(given, reading)]
        elif isinstance(value, str) and value.startswith("file://") and is_pattern(value):
            choices[name] = _files(value, reading)
    if not choices:
        yield vars, {}
        return
    count = 1
    for values in choices.values():
        count *= len(values)
    if count > MOST:
        raise TooMany(f"{count:,} combinations of vars, at most {MOST:,}")
    for picked in itertools.product(*choices.values()):
        chosen = dict(zip(choices, picked, strict=True))
        yield {**vars, **chosen}, chosen


def _files(value: Any, reading: SuiteReading) -> list[Any]:
    if not (isinstance(value, str) and value.startswith("file://") and is_pattern(value)):
        return [value]
    paths = reading.glob(value)
    if not paths:
        raise Missing(f"no file matches {value}")
    return [f"file://{reading.from_base(path)}" for path in paths]


MOST_ATTEMPTS = 10_000


class PromptColumn(msgspec.Struct):
    """One provider with one prompt. `named` is what a case's id calls the prompt, `number` counts from 1;
    `short_prompt` and `short_provider` are what lists call them, empty where there is only one."""

    provider: Provider | None
    prompt: PromptTemplate
    named: str
    number: int = 0
    short_prompt: str = ""
    short_provider: str = ""

    @property
    def provider_name(self) -> str:
        """What a case's id calls the provider."""
        return self.provider.name if self.provider else "agent"


def columns(
    providers: list[Provider],
    prompts: list[PromptTemplate],
    hide: Callable[[str], str] = str,
    *,
    reference: bool = False,
) -> list[PromptColumn]:
    """Provider by provider, the prompts that each takes; `hide` masks secrets in what lists call them. With
    `reference`, a later provider of the same id or label says which prompts an earlier one takes, as in the
    tool.

    Raises:
        TooMany: more than 100,000 columns.
    """
    taken: dict[str, list[str] | None] = {}
    for provider in providers:
        taken[provider.id] = provider.prompts
        if provider.label and not provider.keyed:
            taken[provider.label] = provider.prompts
    named = [(prompt, prompt.given or prompt.id or f"prompt{n}") for n, prompt in enumerate(prompts, 1)]
    labels = [prompt.given or prompt.label for prompt in prompts]
    short = short_prompts(labels, hide) if len(prompts) > 1 else [""]
    who = short_providers([provider.name for provider in providers]) if len(providers) > 1 else [""]
    result: list[PromptColumn] = []
    for provider, brief_provider in zip(providers or [None], who, strict=True):
        wanted = provider.prompts if provider else None
        if provider and reference:
            wanted = taken.get(provider.name)
        for (prompt, name), brief_prompt in zip(named, short, strict=False):
            if wanted is None or any(matches(w, prompt.label, prompt.given, prompt.id) for w in wanted):
                number = len(result) + 1
                result.append(PromptColumn(provider, prompt, name, number, brief_prompt, brief_provider))
                if number > MOST:
                    said = (
                        f"{len(providers):,} providers × {len(prompts):,} prompts, at most {MOST:,} together"
                    )
                    raise TooMany(said)
    return result


class CaseMaker:
    """Makes the cases of one suite."""

    def __init__(
        self,
        reading: SuiteReading,
        cols: list[PromptColumn],
        settings: dict[str, Any],
        prompts: Sequence[PromptTemplate] = (),
    ) -> None:
        self.reading = reading
        self.columns = cols
        self.prompts = prompts
        evaluate = settings.get("evaluateOptions") or {}
        self.repeat = evaluate.get("repeat")
        timeout = evaluate.get("timeoutMs")
        self.timeout: float | None = None
        if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
            self.timeout = timeout / 1000
        # How many tests, and how many of them with their combinations of variables, there were so far.
        self.number = self.combination = 0
        self.made = 0  # cases
        # What providers that are code call themselves, asked where a test's names may mean that; and why one cannot.
        self._said: dict[str, str | None] | None = None
        self._unsaid: list[str] = []
        self.everything = not flag("PROMPTFOO_DISABLE_VAR_EXPANSION")

    def cases(self, own: PromptfooTest, default: PromptfooTest | None) -> Iterator[Case]:
        """The cases of one test with `defaultTest` under it. Its own vars alone name an unnamed one."""
        if self.made > MOST_MADE:  # which was said
            return
        test = self._transformed(merged(own, default))
        self.number += 1
        cols = self.columns_of(test)
        options = test.options or {}
        base = self.base(test, own, self.attempts(test, options), self.number)
        expand = self.everything and not options.get("disableVarExpansion")
        first = self.combination + 1
        try:
            for values, matrix in combinations(test.vars, self.reading, expand=expand):
                self._wanted_code(values)
                self.combination += 1
                for column in cols:
                    self.made += 1
                    if self.made > MOST_MADE:
                        raise TooMany(f"the suite comes to more than {MOST_MADE:,} cases")
                    wanted = self.wanted(test, own.vars or test.vars, column, matrix)
                    case = self.case(base, test, column, values, wanted, self.combination)
                    if self.combination > first:
                        case.first_number = first
                    if matrix:
                        case.variant = f"{case.variant} {matrix_name(matrix, self.reading.masked)}".strip()
                    yield case
        except (TooMany, Missing) as error:
            self.reading.problem(test.path, test.line, "vars", str(error))

    def templates(self) -> list[Case]:
        """A case of each column, of a test that says nothing."""
        test = PromptfooTest(self.reading.name, 0)
        base = self.base(test, test, 1, 0)
        cols = self.columns
        return [self.case(base, test, col, {}, self.wanted(test, {}, col), 1) for col in cols]

    def _transformed(self, test: PromptfooTest) -> PromptfooTest:
        """The test with `transformVars` applied; where that fails, as it was, with a problem."""
        code = (test.options or {}).get("transformVars")
        if code in (None, ""):
            return test
        try:
            changed = transformed(self.reading, code, test.vars)
        except Missing as error:
            problem = Problem(
                test.path,
                test.line,
                "options.transformVars",
                str(error),
                raised_at=self.reading.own_place(error.raised_at),
            )
            return msgspec.structs.replace(test, problems=[*test.problems, problem])
        return msgspec.structs.replace(test, vars=changed)

    def _wanted_code(self, values: dict[str, Any]) -> None:
        for value in values.values():
            if kind_of(value) == "code":
                self.reading.want(
                    script(self.reading.base / value[len("file://") :].strip(), self.reading.root)
                )

    def wanted(
        self,
        test: PromptfooTest,
        naming: dict[str, Any],
        column: PromptColumn,
        matrix: dict[str, Any] | None = None,
    ) -> str:
        """The id that a case would have if it were the only one of its kind."""
        return identity.case_id(
            self.reading.name,
            test.description or None,
            variables=naming,
            texts=() if naming else (column.prompt.raw,),
            matrix=matrix,
            provider=column.provider_name,
            prompt=column.named,
        )

    def base(self, test: PromptfooTest, own: PromptfooTest, attempts: int, number: int) -> Case:
        """What all cases of a test share; `number` is its place among the suite's tests, from 1. `own` is the test
        without `defaultTest` under it, whose variables come first and are those of all tests."""
        options = test.options or {}
        first = next(iter(own.vars), "")
        beside: dict[str, Any] = {} if test.scoring is None else {"assertScoringFunction": test.scoring}
        if test.files_first:
            beside["filesFirst"] = True
        return Case(
            "",
            test.description or test.row or f"Row #{number}",
            self.reading.name,
            "promptfoo",
            description=test.description or test.row,
            line=test.line,
            metadata=test.metadata or {},
            threshold=test.threshold,
            options=options,
            beside=beside,
            # Nothing that JavaScript takes for false stands for an answer.
            provider_output=test.provider_output if test.provider_output not in ("", False, 0) else None,
            attempts=attempts,
            required=attempts,
            timeout=self.timeout,
            assertions=test.assertions,
            problems=list(test.problems),
            file=test.path if test.path != self.reading.name else None,
            named_by=first if not test.description and first != next(iter(test.vars), "") else "",
        )

    def case(
        self,
        base: Case,
        test: PromptfooTest,
        column: PromptColumn,
        values: dict[str, Any],
        case_id: str,
        number: int,
    ) -> Case:
        """One case, complete but for its `order`; `number` counts tests and their combinations, from 1."""
        own = of_test(test.provider, self.reading)
        prompt = column.prompt
        beside = {} if base.beside is None else base.beside
        if own is not None and column.provider is not None:
            # Some providers speak to the one that they stand for, and its transform is made anyway.
            beside = {**beside, "columnProvider": column.provider.entry}
        provider = own or column.provider
        if prompt.config is not None:
            beside = {**beside, "promptConfig": prompt.config}
        if prompt.function is not None:
            beside = {**beside, "promptFunction": prompt.function}
        # Faster than `replace`: a suite may have a hundred thousand rows.
        case = Case(
            case_id,
            base.name,
            base.suite,
            "promptfoo",
            description=base.description,
            line=base.line,
            agent=provider.name if provider else None,
            prompt=prompt.label,
            turns=[Turn(prompt.label if prompt.function else prompt.raw, line=base.line)],
            vars=values,
            metadata=base.metadata,
            threshold=base.threshold,
            options=base.options,
            provider=provider.entry if provider else None,
            provider_output=base.provider_output,
            attempts=base.attempts,
            required=base.required,
            timeout=base.timeout,
            assertions=base.assertions,
            problems=[*base.problems],
            file=base.file,
            column=column.provider_name if own is not None and column.provider else "",
            test_number=number,
            column_number=column.number,
            variant=column.short_prompt,
            column_name=column.short_provider,
            named_by=base.named_by,
            beside=beside,
        )
        case.content_hash = identity.content_hash(case)
        return case

    def columns_of(self, test: PromptfooTest) -> list[PromptColumn]:
        """The columns that a test is run in."""
        cols = self.columns
        if test.prompts is not None:
            for name in test.prompts:
                if not any(matches(name, c.prompt.label, c.prompt.given, c.prompt.id) for c in self.columns):
                    known = ", ".join(dict.fromkeys(brief(c.prompt.label) for c in self.columns)) or "none"
                    there = any(matches(name, p.label, p.given, p.id) for p in self.prompts)
                    said = "no provider takes the prompt" if there else "there is no prompt"
                    cure = f"those that they take: {known}" if there else f"there are: {known}"
                    self._wrong(test, "prompts", f"{said} {brief(name)}", cure)
            wanted = test.prompts
            cols = [
                c
                for c in cols
                if any(matches(w, c.prompt.label, c.prompt.given, c.prompt.id) for w in wanted)
            ]
        if test.providers is not None:
            for name in test.providers:
                if "*" in name or not self._knows(name):
                    self._ask_names()
                if not self._knows(name):
                    there = (
                        ", ".join(dict.fromkeys(c.provider.name for c in self.columns if c.provider))
                        or "none"
                    )
                    unsaid = "".join(f"; {why}" for why in self._unsaid)
                    message = (
                        f"{'no provider is known as' if unsaid else 'there is no provider'} {brief(name)}"
                    )
                    self._wrong(test, "providers", message, f"there are: {there}{unsaid}")
            took = [c for c in cols if any(matches(w, *self._names(c)) for w in test.providers)]
            if cols and not took and all(map(self._knows, test.providers)):
                message = "it is run nowhere: these providers take none of its prompts"
                self.reading.problem(test.path, test.line, "providers", message, level="note")
            cols = took
        return cols

    def _knows(self, name: str) -> bool:
        return any(matches(name, *self._names(column)) for column in self.columns)

    def _names(self, column: PromptColumn) -> tuple[str | None, ...]:
        """What a test may call the provider of a column."""
        provider = column.provider
        if provider is None:
            return ()
        return provider.label, provider.id, (self._said or {}).get(identity.digest(provider.entry))

    def _ask_names(self) -> None:
        if self._said is not None:
            return
        self._said = {}
        for provider in (column.provider for column in self.columns):
            key = identity.digest(provider.entry) if provider else ""
            if provider is None or key in self._said:
                continue
            self._said[key] = None
            try:
                self._said[key] = said_id(self.reading, provider)
            except Missing as error:
                if str(error) not in self._unsaid:
                    self._unsaid.append(str(error))

    def _wrong(self, test: PromptfooTest, key: str, message: str, cure: str) -> None:
        self.reading.problem(test.path, test.line, key, message, cure)

    def attempts(self, test: PromptfooTest, options: dict[str, Any]) -> int:
        """How often a test is run."""
        given = options.get("repeat", self.repeat)
        if given is None:
            return 1
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 1 <= given <= MOST_ATTEMPTS:
            self._wrong(test, "repeat", f"must be a number from 1 to {MOST_ATTEMPTS}, not {brief(given)}", "")
            return 1
        return int(given)
