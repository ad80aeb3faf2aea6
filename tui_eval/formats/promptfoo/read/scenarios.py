"""Scenarios: lists of tests, run with each of several configurations (formats/promptfoo.md 3.4)."""

from __future__ import annotations

from typing import Any

import msgspec

from tui_eval.formats.promptfoo.read.matrix_cases import MOST
from tui_eval.formats.promptfoo.read.suite_file import (
    LineOf,
    Missing,
    SuiteReading,
    brief,
    dotted_key,
    is_pattern,
)
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest, TestReader, joined
from tui_eval.formats.promptfoo.read.test_sources import Sources


def read(
    reading: SuiteReading, value: Any, sources: Sources, line_of: LineOf, default: PromptfooTest | None = None
) -> list[PromptfooTest]:
    """The tests of all scenarios: each entry of a scenario's `config` with each of its tests. Of `default`
    they take what other tests do not: its description, its output and whether it refuses its own assertions."""
    if value is None:
        return []
    result: list[PromptfooTest] = []
    number = 0
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        reading.problem(
            reading.name, line_of("scenarios"), "scenarios", f"must be a list, not {brief(value)}"
        )
        return []
    for index, given in enumerate(value):
        at = ("scenarios", index)
        for scenario in _mappings(reading, given, at, line_of):
            reading.check_slips(scenario, ("config", "tests", "description"), reading.name, line_of, at)
            own = scenario.get("config")
            reader = TestReader(reading, reading.name, line_of)
            configs = own if isinstance(own, list) else [own if own is not None else {}]
            if own == []:
                cure = "leave it out, or give it entries; the tests are run with each"
                reading.problem(
                    reading.name, line_of(*at, "config"), dotted_key((*at, "config")), "is empty", cure
                )
            tests = sources.read(scenario.get("tests"), (*at, "tests"))
            if scenario.get("tests") in (None, []):
                cure = "give it tests; each is run with each entry of its config"
                reading.problem(reading.name, line_of(*at), dotted_key(at), "a scenario without tests", cure)
            if len(configs) * len(tests) > MOST:
                said = f"{len(configs):,} entries of config × {len(tests):,} tests, at most {MOST:,} together"
                reading.problem(reading.name, line_of(*at), dotted_key(at), said, "split the scenario")
                continue
            for place, entry in enumerate(configs):
                config = reader.test(entry, (*at, "config", place), needs_some=False)
                if config is None:
                    continue
                if config.provider is not None and any(test.provider is None for test in tests):
                    config = _own_provider(reading, config, line_of, (*at, "config", place, "provider"))
                result.extend(_in_scenario(config, test, number, default) for test in tests)
                number += 1
    return result


def _own_provider(
    reading: SuiteReading, config: PromptfooTest, line_of: LineOf, at: tuple[Any, ...]
) -> PromptfooTest:
    """An entry of a `config` that names a provider, which promptfoo reads and then never asks: it loads those of
    tests alone, and the rows go to the column's."""
    said = "promptfoo asks the column's provider instead of this"
    cure = "name it at the scenario's tests, or under providers"
    if not reading.reference:
        said = f"{said}; here it is asked"
    reading.problem(reading.name, line_of(*at), dotted_key(at), said, cure, level="note")
    return msgspec.structs.replace(config, provider=None) if reading.reference else config


def _mappings(
    reading: SuiteReading, given: Any, at: tuple[Any, ...], line_of: LineOf
) -> list[dict[str, Any]]:
    entries = given if isinstance(given, list) else [given]
    if isinstance(given, str):
        entries = []
        try:
            paths = reading.glob(given) if is_pattern(given) else [reading.find(given)]
            if not paths:
                raise Missing(f"no file matches {given}")
            for path in paths:
                found = reading.parsed(path)[0]
                entries.extend(found if isinstance(found, list) else [found])
        except Missing as error:
            if str(error):
                reading.problem(reading.name, line_of(*at), "scenarios", str(error))
    wrong = next((e for e in entries if not isinstance(e, dict)), None)
    if wrong is not None:
        reading.problem(reading.name, line_of(*at), "scenarios", f"must be a mapping, not {brief(wrong)}")
    return [e for e in entries if isinstance(e, dict)]


def _in_scenario(
    config: PromptfooTest, test: PromptfooTest, number: int, default: PromptfooTest | None
) -> PromptfooTest:
    """A scenario's test with one entry of its `config` under it: assertions of both, config's first."""
    under = default or PromptfooTest("", 0)
    metadata = {**(under.metadata or {}), **(config.metadata or {}), **(test.metadata or {})}
    options = {**(under.options or {}), **(config.options or {}), **(test.options or {})}
    metadata.setdefault("conversationId", f"__scenario_{number}__")
    return msgspec.structs.replace(
        test,
        vars={**config.vars, **test.vars},
        assertions=joined(config.assertions, test.assertions),
        description=test.description or config.description or under.description,
        threshold=config.threshold if test.threshold is None else test.threshold,
        options=options or None,
        metadata=metadata,
        provider=config.provider if test.provider is None else test.provider,
        providers=config.providers if test.providers is None else test.providers,
        prompts=config.prompts if test.prompts is None else test.prompts,
        provider_output=next(
            (t.provider_output for t in (test, config, under) if t.provider_output is not None), None
        ),
        scoring=config.scoring if test.scoring is None else test.scoring,
        problems=[*config.problems, *test.problems],
    )
