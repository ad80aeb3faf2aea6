"""From tests, prompts and providers to cases: test → combination of vars → provider → prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tui_eval.case_names import matrix_name, short_prompts, short_providers
from tui_eval.guard.trust import script
from tui_eval.model import Case, Problem, Turn
from tui_eval.scripting.templates import flag
from tui_eval.suites import identity
from tui_eval.suites.promptfoo import vars_transform
from tui_eval.suites.promptfoo.matrix import TooMany, combinations
from tui_eval.suites.promptfoo.prompts import Prompt
from tui_eval.suites.promptfoo.providers import Provider, matches, normalised
from tui_eval.suites.promptfoo.reading import Missing, Reading, brief
from tui_eval.suites.promptfoo.tests import Test, merged
from tui_eval.suites.promptfoo.variables import kind_of

MOST_ATTEMPTS = 10_000


class Column(msgspec.Struct):
    """One provider with one prompt. `named` is what a case's id calls the prompt, `number` counts from 1;
    `short_prompt` and `short_provider` are what lists call them, empty where there is only one."""

    provider: Provider | None
    prompt: Prompt
    named: str
    number: int = 0
    short_prompt: str = ""
    short_provider: str = ""

    @property
    def provider_name(self) -> str:
        """What a case's id calls the provider."""
        return self.provider.name if self.provider else "agent"


def columns(providers: list[Provider], prompts: list[Prompt], *, reference: bool = False) -> list[Column]:
    """Provider by provider, the prompts that each takes. With `reference`, a later provider of the same id
    or label says which prompts an earlier one takes, as in the tool."""
    taken: dict[str, list[str] | None] = {}
    for provider in providers:
        taken[provider.id] = provider.prompts
        if provider.label and not provider.keyed:
            taken[provider.label] = provider.prompts
    named = [(prompt, prompt.given or prompt.id or f"prompt{n}") for n, prompt in enumerate(prompts, 1)]
    short = short_prompts([prompt.given or prompt.label for prompt in prompts]) if len(prompts) > 1 else [""]
    who = short_providers([provider.name for provider in providers]) if len(providers) > 1 else [""]
    result: list[Column] = []
    for provider, brief_provider in zip(providers or [None], who, strict=True):
        wanted = provider.prompts if provider else None
        if provider and reference:
            wanted = taken.get(provider.name)
        for (prompt, name), brief_prompt in zip(named, short, strict=False):
            if wanted is None or any(matches(w, prompt.label, prompt.given, prompt.id) for w in wanted):
                number = len(result) + 1
                result.append(Column(provider, prompt, name, number, brief_prompt, brief_provider))
    return result


class CaseMaker:
    """Makes the cases of one suite."""

    def __init__(self, reading: Reading, cols: list[Column], settings: dict[str, Any]) -> None:
        self.reading = reading
        self.columns = cols
        evaluate = settings.get("evaluateOptions") or {}
        self.repeat = evaluate.get("repeat")
        timeout = evaluate.get("timeoutMs")
        self.timeout: float | None = None
        if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
            self.timeout = timeout / 1000
        # How many tests, and how many of them with their combinations of variables, there were so far.
        self.number = self.combination = 0
        self.everything = not flag("PROMPTFOO_DISABLE_VAR_EXPANSION")

    def cases(self, own: Test, default: Test | None) -> Iterator[Case]:
        """The cases of one test with `defaultTest` under it. Its own vars alone name an unnamed one."""
        test = self._transformed(merged(own, default))
        self.number += 1
        cols = self.columns_of(test)
        options = test.options or {}
        base = self.base(test, self.attempts(test, options), self.number)
        expand = self.everything and not options.get("disableVarExpansion")
        try:
            for values, matrix in combinations(test.vars, self.reading, expand=expand):
                self._wanted_code(values)
                self.combination += 1
                for column in cols:
                    wanted = self.wanted(test, own.vars or test.vars, column, matrix)
                    case = self.case(base, test, column, values, wanted, self.combination)
                    if matrix:
                        case.variant = f"{case.variant} {matrix_name(matrix)}".strip()
                    yield case
        except (TooMany, Missing) as error:
            self.reading.problem(test.path, test.line, "vars", str(error))

    def _transformed(self, test: Test) -> Test:
        """The test with `transformVars` applied; where that fails, as it was, with a problem."""
        code = (test.options or {}).get("transformVars")
        if code in (None, ""):
            return test
        try:
            changed = vars_transform.transformed(self.reading, code, test.vars)
        except Missing as error:
            problem = Problem(test.path, test.line, "options.transformVars", str(error))
            return msgspec.structs.replace(test, problems=[*test.problems, problem])
        return msgspec.structs.replace(test, vars=changed)

    def _wanted_code(self, values: dict[str, Any]) -> None:
        for value in values.values():
            if kind_of(value) == "code":
                self.reading.want(
                    script(self.reading.base / value[len("file://") :].strip(), self.reading.root)
                )

    def wanted(
        self, test: Test, naming: dict[str, Any], column: Column, matrix: dict[str, Any] | None = None
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

    def base(self, test: Test, attempts: int, number: int) -> Case:
        """What all cases of a test share; `number` is its place among the suite's tests, from 1."""
        options = test.options or {}
        if test.scoring is not None:
            options = {**options, "assertScoringFunction": test.scoring}
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
            # Nothing that JavaScript takes for false stands for an answer.
            provider_output=test.provider_output if test.provider_output not in ("", False, 0) else None,
            attempts=attempts,
            required=attempts,
            timeout=self.timeout,
            assertions=test.assertions,
            problems=list(test.problems),
            file=test.path if test.path != self.reading.name else None,
        )

    def case(
        self, base: Case, test: Test, column: Column, values: dict[str, Any], case_id: str, number: int
    ) -> Case:
        """One case, complete but for its `order`; `number` counts tests and their combinations, from 1."""
        own = normalised(test.provider) if test.provider is not None else None
        prompt = column.prompt
        options = base.options
        if own is not None and column.provider is not None:
            # Some providers speak to the one that they stand for, and its transform is made anyway.
            options = {**options, "columnProvider": column.provider.entry}
        provider = own or column.provider
        if prompt.config is not None:
            options = {**options, "promptConfig": prompt.config}
        if prompt.function is not None:
            options = {**options, "promptFunction": prompt.function}
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
            options=options,
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
        )
        case.content_hash = identity.content_hash(case)
        return case

    def columns_of(self, test: Test) -> list[Column]:
        """The columns that a test is run in."""
        cols = self.columns
        if test.prompts is not None:
            for name in test.prompts:
                if not any(matches(name, c.prompt.label, c.prompt.given, c.prompt.id) for c in self.columns):
                    known = ", ".join(dict.fromkeys(brief(c.prompt.label) for c in self.columns)) or "none"
                    self._wrong(test, "prompts", f"there is no prompt {brief(name)}", f"there are: {known}")
            wanted = test.prompts
            cols = [
                c
                for c in cols
                if any(matches(w, c.prompt.label, c.prompt.given, c.prompt.id) for w in wanted)
            ]
        if test.providers is not None:
            names = [(c, (c.provider.label, c.provider.id) if c.provider else ()) for c in cols]
            every = [(c.provider.label, c.provider.id) for c in self.columns if c.provider]
            for name in test.providers:
                if not any(matches(name, *known) for known in every):
                    there = (
                        ", ".join(dict.fromkeys(c.provider.name for c in self.columns if c.provider))
                        or "none"
                    )
                    self._wrong(
                        test, "providers", f"there is no provider {brief(name)}", f"there are: {there}"
                    )
            cols = [c for c, known in names if any(matches(w, *known) for w in test.providers)]
        return cols

    def _wrong(self, test: Test, key: str, message: str, cure: str) -> None:
        self.reading.problem(test.path, test.line, key, message, cure)

    def attempts(self, test: Test, options: dict[str, Any]) -> int:
        """How often a test is run."""
        given = options.get("repeat", self.repeat)
        if given is None:
            return 1
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 1 <= given <= MOST_ATTEMPTS:
            self._wrong(test, "repeat", f"must be a number from 1 to {MOST_ATTEMPTS}, not {brief(given)}", "")
            return 1
        return int(given)
