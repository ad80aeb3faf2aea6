"""From tests, prompts and providers to cases: test → combination of vars → provider → prompt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tui_eval.model import Case, Problem, Turn
from tui_eval.scripting.templates import flag
from tui_eval.suites import identity
from tui_eval.suites.promptfoo.matrix import TooMany, combinations
from tui_eval.suites.promptfoo.prompts import Prompt
from tui_eval.suites.promptfoo.providers import Provider, matches, normalised
from tui_eval.suites.promptfoo.reading import Missing, Reading, brief
from tui_eval.suites.promptfoo.tests import Test, merged
from tui_eval.suites.promptfoo.types import JAVASCRIPT, MEDIA

MOST_ATTEMPTS = 10_000


class Column(msgspec.Struct):
    """One provider with one prompt. `named` is what a case's id calls the prompt."""

    provider: Provider | None
    prompt: Prompt
    named: str


def columns(providers: list[Provider], prompts: list[Prompt]) -> list[Column]:
    """Provider by provider, the prompts that each takes."""
    named = [(prompt, prompt.given or prompt.id or f"prompt{n}") for n, prompt in enumerate(prompts, 1)]
    result: list[Column] = []
    for provider in providers or [None]:
        wanted = provider.prompts if provider else None
        for prompt, name in named:
            if wanted is None or any(matches(w, prompt.label, prompt.given, prompt.id) for w in wanted):
                result.append(Column(provider, prompt, name))
    return result


class CaseMaker:
    """Makes the cases of one suite; ids and order run through all of them."""

    def __init__(self, reading: Reading, cols: list[Column], settings: dict[str, Any]) -> None:
        self.reading = reading
        self.columns = cols
        evaluate = settings.get("evaluateOptions") or {}
        self.repeat = evaluate.get("repeat")
        timeout = evaluate.get("timeoutMs")
        self.timeout: float | None = None
        if isinstance(timeout, (int, float)) and not isinstance(timeout, bool) and timeout > 0:
            self.timeout = timeout / 1000
        self.ids = identity.Ids()
        self.order = 0
        self.number = 0
        self.everything = not flag("PROMPTFOO_DISABLE_VAR_EXPANSION")

    def cases(self, own: Test, default: Test | None) -> Iterator[Case]:
        """The cases of one test with `defaultTest` under it. Its own vars alone name an unnamed one."""
        test = merged(own, default)
        self.number += 1
        cols = self._columns(test)
        options = test.options or {}
        attempts = self._attempts(test, options)
        base = self._base(test, options, attempts)
        expand = self.everything and not options.get("disableVarExpansion")
        try:
            for values, matrix in combinations(test.vars, self.reading, expand=expand):
                problems = [*base.problems, *self._var_problems(test, values)]
                for column in cols:
                    yield self._case(base, test, own.vars or test.vars, column, values, matrix, problems)
        except (TooMany, Missing) as error:
            self.reading.problem(test.path, test.line, "vars", str(error))

    def _base(self, test: Test, options: dict[str, Any], attempts: int) -> Case:
        if test.scoring is not None:
            options = {**options, "assertScoringFunction": test.scoring}
        name = test.description or test.row or f"Row #{self.number}"
        return Case(
            "",
            name,
            self.reading.name,
            "promptfoo",
            description=test.description or test.row,
            line=test.line,
            metadata=test.metadata or {},
            threshold=test.threshold,
            options=options,
            provider_output=test.provider_output if test.provider_output != "" else None,
            attempts=attempts,
            required=attempts,
            timeout=self.timeout,
            assertions=test.assertions,
            problems=list(test.problems),
        )

    def _case(
        self,
        base: Case,
        test: Test,
        naming: dict[str, Any],
        column: Column,
        values: dict[str, Any],
        matrix: dict[str, Any],
        problems: list[Problem],
    ) -> Case:
        provider = normalised(test.provider) if test.provider is not None else None
        provider = provider or column.provider
        prompt = column.prompt
        options = base.options
        if prompt.config is not None:
            options = {**options, "promptConfig": prompt.config}
        if prompt.function is not None:
            options = {**options, "promptFunction": prompt.function}
        named = identity.case_id(
            self.reading.name,
            test.description or None,
            variables=naming,
            texts=() if naming else (prompt.raw,),
            matrix=matrix,
            provider=column.provider.name if column.provider else "agent",
            prompt=column.named,
        )
        # Faster than `replace`: a suite may have a hundred thousand rows.
        case = Case(
            self.ids.take(named),
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
            order=self.order,
            problems=problems,
        )
        self.order += 1
        case.content_hash = identity.content_hash(case)
        return case

    def _columns(self, test: Test) -> list[Column]:
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

    def _attempts(self, test: Test, options: dict[str, Any]) -> int:
        given = options.get("repeat", self.repeat)
        if given is None:
            return 1
        if isinstance(given, bool) or not isinstance(given, (int, float)) or not 1 <= given <= MOST_ATTEMPTS:
            self._wrong(test, "repeat", f"must be a number from 1 to {MOST_ATTEMPTS}, not {brief(given)}", "")
            return 1
        return int(given)

    def _var_problems(self, test: Test, values: dict[str, Any]) -> list[Problem]:
        found: list[Problem] = []
        for name, value in values.items():
            if not (isinstance(value, str) and value.startswith("file://")):
                continue
            ending = value.rpartition(".")[2].partition(":")[0].lower()
            what = ""
            if ending in MEDIA:
                what = "images, sound, video and PDF as variables are not supported yet"
            elif ending in JAVASCRIPT or ending == "py":
                what = "variables made by code are not supported yet"
            if what:
                cure = "use text, YAML or JSON"
                found.append(Problem(test.path, test.line, f"vars.{name}", f"{brief(value)}: {what}", cure))
        return found
