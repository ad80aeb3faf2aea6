"""`tui-eval compare RUN RUN`: regressions, fixes, flaky, new and gone cases; exit code 1 on a regression."""

from __future__ import annotations

from typing import Any

import msgspec

from tui_eval.commands.output import EXIT_FAILED, EXIT_NOTHING, EXIT_OK, CommandError, say, say_json
from tui_eval.commands.run import find_run
from tui_eval.guard.text import clip, visible
from tui_eval.reports.comparison import CHANGES, CaseChange, Comparison, compare
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import StoreError
from tui_eval.store.summary import CaseSummary, summarise_run


def compare_runs(before: str, after: str, as_json: bool) -> int:
    """Compare two runs and print what changed, worst first."""
    result = compare(_summaries(before), _summaries(after))
    if as_json:
        say_json({**msgspec.to_builtins(result), "counts": {name: result.count(name) for name in CHANGES}})
    else:
        say(_text(result))
    if not result.cases:
        return EXIT_NOTHING
    return EXIT_FAILED if result.count("regressed") else EXIT_OK


def _summaries(reference: str) -> list[CaseSummary]:
    try:
        reader = RunReader(find_run(reference))
        try:
            return summarise_run(reader.cases(), reader.attempts())
        finally:
            reader.close()
    except StoreError as error:
        raise CommandError(str(error)) from None


def _text(result: Comparison) -> str:
    lines: list[str] = []
    for change in CHANGES:
        members = [case for case in result.cases if case.change == change]
        if not members:
            continue
        if change == "unchanged":
            lines.append(f"unchanged: {len(members)}")
            continue
        lines.append(f"{change}: {len(members)}")
        lines.extend(f"  {_line(case)}" for case in members)
    (was, low, high), (now, now_low, now_high) = result.pass_rates
    lines.append(
        f"passed before {was:.0%} ({low:.0%}–{high:.0%}), after {now:.0%} ({now_low:.0%}–{now_high:.0%}), "
        "Wilson 95 %"
    )
    if result.p_value is not None and (result.count("regressed") or result.count("fixed")):
        lines.append(f"exact McNemar test on cases that changed: p = {result.p_value:.3g}")
    return "\n".join(lines)


def _line(case: CaseChange) -> str:
    shown: list[Any] = [visible(case.name, newlines=False), f"[{visible(case.suite, newlines=False)}]"]
    if case.before is not None and case.after is not None:
        shown.append(f"{_ratio(case.before)} → {_ratio(case.after)}")
        if case.p_value is not None:
            shown.append(f"p = {case.p_value:.2g}")
    message = case.after.message if case.after is not None and case.change == "regressed" else ""
    return "  ".join(shown) + (f"  {clip(visible(message, newlines=False), 120)}" if message else "")


def _ratio(item: CaseSummary) -> str:
    return f"{item.passed}/{item.attempts}" if item.attempts > 1 else str(item.outcome)
