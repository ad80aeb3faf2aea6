"""A case as a suite's code changed it: hooks see and give tests in promptfoo's words."""

from __future__ import annotations

from typing import Any

import msgspec

from tui_eval.config.project import Config
from tui_eval.formats.promptfoo.promptfoo_words import OURS, test_of
from tui_eval.formats.promptfoo.read.suite_file import SuiteReading, no_line
from tui_eval.formats.promptfoo.read.suite_providers import normalised
from tui_eval.formats.promptfoo.read.suite_tests import TestReader
from tui_eval.guard.trust import Trust
from tui_eval.model import Case, Compat
from tui_eval.suites import identity


def with_test(case: Case, test: Any, config: Config, trust: Trust, compat: Compat = "documented") -> Case:
    """A case whose test was changed by code: vars, assertions, options, metadata, threshold, provider.

    Its id stays. What cannot be made sense of is among its problems.
    """
    if test == test_of(case):
        return case
    reading = SuiteReading(case.suite, config, trust, compat)
    read = TestReader(reading, case.suite, no_line).test(test, (), needs_some=False)
    if read is None:
        return msgspec.structs.replace(case, problems=[*case.problems, *reading.problems])
    kept = {key: case.options[key] for key in OURS if key in case.options}
    if read.scoring is not None:
        kept["assertScoringFunction"] = read.scoring
    provider = normalised(read.provider) if read.provider is not None else None
    changed = msgspec.structs.replace(
        case,
        description=read.description or case.description,
        vars=read.vars,
        assertions=read.assertions,
        options={**(read.options or {}), **kept},
        metadata=read.metadata or {},
        threshold=read.threshold,
        provider_output=read.provider_output if read.provider_output != "" else None,
        provider=provider.entry if provider else case.provider,
        agent=provider.name if provider else case.agent,
        problems=[*case.problems, *(p for p in read.problems if p.level == "error")],
    )
    changed.content_hash = identity.content_hash(changed)
    return changed
