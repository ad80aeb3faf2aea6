"""`tui-eval list`: what would run, and what `check` reads first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.case_names import called, full_name, variant_beside, which_tests
from tui_eval.commands.output import (
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    counted,
    report_problems,
    say,
    say_json,
)
from tui_eval.config.project import Config, load, masker, read_withheld, rule_for
from tui_eval.formats import reading
from tui_eval.guard.text import visible
from tui_eval.guard.trust import Trust
from tui_eval.guard.trust_store import trust_for
from tui_eval.model import Assertion, Case, Problem, Suite
from tui_eval.vacuity import asserts_nothing


def load_paths(
    paths: Sequence[str], config_file: str | None, trust: bool = False, configs: Sequence[str] = ()
) -> tuple[Config, Trust, list[Suite], list[Problem]]:
    """The configuration, what may be done, every suite of the paths, and all problems of both; `configs` are
    read as one."""
    typed: dict[str, Any] = {}
    named = [Path(path).absolute() for path in paths or ["."]]
    if configs:
        from tui_eval.engine.prepare import paths_of, typed_options
        from tui_eval.engine.request import RunRequest

        request = RunRequest(paths=list(paths), configs=[str(Path(path).absolute()) for path in configs])
        named, typed = paths_of(request), typed_options(request)
    config = load(named, config_file)
    config.typed = typed
    trusted = trust_for(config.root, trust)
    read_withheld(config, trusted)
    loaded = reading.load_all(named, config, trusted)
    problems = [*config.problems, *(problem for suite in loaded for problem in suite.problems)]
    return config, trusted, loaded, problems


def list_cases(
    paths: Sequence[str], config_file: str | None, as_json: bool, trust: bool, configs: Sequence[str] = ()
) -> int:
    """Print the cases; problems go to stderr, and readable cases print whatever the others are."""
    config, _, loaded, problems = load_paths(paths, config_file, trust, configs)
    cases = reading.all_cases(loaded)
    from tui_eval.engine.kept_cases import KeptCases
    from tui_eval.engine.plan import attempts_of
    from tui_eval.engine.request import RunRequest

    plainly = RunRequest()
    rules = {suite: rule_for(config, suite) for suite in {case.suite for case in cases}}
    own = {suite.path: suite.settings for suite in loaded}
    for case in cases:
        rule = rules[case.suite]
        case.attempts, case.required = attempts_of(
            case, own.get(case.suite, {}), rule.attempts if rule else None, config, plainly
        )
    hide = masker(config)
    hidden = KeptCases(hide)
    for case in cases:
        hidden.learn(case)
    cases = [hidden.kept(case) for case in cases]
    errors = report_problems(hide.value(problems))
    if as_json:
        say_json(list(map(describe, cases)))
    else:
        suite, nothing = None, 0
        for case, name in zip(cases, called(cases, which_tests(cases)), strict=True):
            if case.suite != suite:
                suite = case.suite
                say(visible(hide.text(f"{suite}  ({case.format})"), newlines=False))
            extra = f"  ×{case.attempts}, {case.required} must pass" if case.attempts > 1 else ""
            agent = f"  [{case.agent}]" if case.agent else ""
            idle = asserts_nothing(case)
            extra += "  (asserts nothing)" if idle else ""
            nothing += idle
            line = hide.text(f"  {full_name(name, variant_beside(case))}{agent}{extra}")
            say(visible(line, newlines=False))
        total = f"{counted(len(cases), 'case')} in {counted(len({case.suite for case in cases}), 'suite')}"
        say(f"{total}, {nothing} {'assert' if nothing > 1 else 'asserts'} nothing" if nothing else total)
    if errors:
        return EXIT_USAGE
    return EXIT_OK if cases else EXIT_NOTHING


def describe(case: Case) -> dict[str, Any]:
    """One row of `list --json` (design.md, Command line)."""
    return {
        "case_id": case.case_id,
        "name": case.name,
        "description": case.description,
        "suite": case.suite,
        "format": case.format,
        "line": case.line,
        "agent": case.agent,
        "prompt": case.prompt,
        "turns": [
            {"text": turn.text, "assertions": [_assertion(item) for item in turn.assertions]}
            for turn in case.turns
        ],
        "vars": case.vars,
        "metadata": case.metadata,
        "threshold": case.threshold,
        "options": case.options,
        "provider_output": case.provider_output,
        "attempts": case.attempts,
        "required": case.required,
        "assertions": [_assertion(item) for turn in case.turns for item in turn.assertions]
        + [_assertion(item) for item in case.assertions],
    }


def _assertion(item: Assertion) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": item.type, "target": item.target}
    if item.value is not msgspec.UNSET:
        entry["value"] = item.value
    for key in ("turn", "threshold", "weight", "metric", "transform", "provider", "config", "set"):
        given = getattr(item, key)
        if given is not None:
            entry[key] = given
    entry.update(item.extra or {})
    return entry
