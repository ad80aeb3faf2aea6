"""Which tests `commandLineOptions` and `evaluateOptions` leave: a range, a sample
(formats/promptfoo.md 1.1 and 10)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tui_eval.formats.promptfoo.read.promptfoo_types import names
from tui_eval.formats.promptfoo.read.suite_file import LineOf, SuiteReading, brief
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest
from tui_eval.suites.sampling import sample

HONOURED = names(
    """
    repeat maxConcurrency delay cache vars envPath envFile filterRange filterSample filterSampleSeed
    promptPrefix promptSuffix
    """
)
"""Keys of `commandLineOptions` that change what is run here."""

PRESENTATION = names(
    """
    table tableCellMaxLength write share verbose grader tags progressBar generateSuggestions
    suggestionsCount output interactiveProviders remote watch description retryErrors
    """
)
"""Those that concern how promptfoo shows and keeps results."""

_RANGE = re.compile(r"(\d{1,9})?:(\d{1,9})?\Z")


def narrowed(
    chunks: Sequence[Sequence[PromptfooTest]],
    settings: Mapping[str, Any],
    reading: SuiteReading,
    line_of: LineOf,
) -> Sequence[Sequence[PromptfooTest]]:
    """The tests within `filterRange`, then `filterSample` of them, in their order."""
    typed, evaluate = settings.get("commandLineOptions") or {}, settings.get("evaluateOptions") or {}
    where = "commandLineOptions" if typed.get("filterRange") is not None else "evaluateOptions"
    given = typed.get("filterRange", evaluate.get("filterRange"))
    if given is not None:
        found = _RANGE.match(str(given).strip())
        if found is None:
            reading.problem(
                reading.name, line_of(where, "filterRange"), f"{where}.filterRange",
                f"must be START:END, not {brief(given)}", "0:10 are the first ten tests",
            )  # fmt: skip
        else:
            every = [test for tests in chunks for test in tests]
            start, stop = int(found[1] or 0), int(found[2]) if found[2] else len(every)
            chunks = [every[start:stop]]
    size = typed.get("filterSample")
    if size is None:
        return chunks
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        reading.problem(
            reading.name, line_of("commandLineOptions", "filterSample"), "commandLineOptions.filterSample",
            f"must be a number of tests, not {brief(size)}",
        )  # fmt: skip
        return chunks
    every = [test for tests in chunks for test in tests]
    seed = typed.get("filterSampleSeed")
    if seed is None:
        reading.problem(
            reading.name, line_of("commandLineOptions", "filterSample"), "commandLineOptions.filterSample",
            "promptfoo draws another sample each time, here it is always the same one",
            "give filterSampleSeed to choose which", level="note",
        )  # fmt: skip
    chosen = sample(len(every), size, str(0 if seed is None else seed))
    return [[every[index] for index in sorted(chosen)]]


def untold(typed: Mapping[str, Any], reading: SuiteReading, line_of: LineOf) -> None:
    """Notes of the keys of `commandLineOptions` that have no effect from there."""
    for key in typed:
        if key in HONOURED or key in PRESENTATION:
            continue
        reading.problem(
            reading.name, line_of("commandLineOptions", key), f"commandLineOptions.{key}",
            "has no effect here, as in promptfoo", "give it on the command line", level="note",
        )  # fmt: skip
