"""One case, as the HTML page of a run shows it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tui_eval.case_names import full_name
from tui_eval.guard.text import clip
from tui_eval.model import Attempt
from tui_eval.reports.html_templates import as_text
from tui_eval.reports.page_data import DataShown, data_shown
from tui_eval.reports.page_trace import TraceShown, trace_shown
from tui_eval.store.summary import CaseSummary

_PROMPT, _NAME, _SHORT = 40, 80, 60

Result = dict[str, Any]
"""One entry of `results[]`; what is read from a run can be stored already."""


class VerdictShown(NamedTuple):
    """A verdict, its outcome in a word, and what was expected and what came: short values stand in a line."""

    verdict: Result
    outcome: str
    values: list[tuple[str, str]]
    in_a_line: bool


class AttemptShown(NamedTuple):
    """An attempt; `entries` and `trace` are empty where the page leaves them out."""

    row: Result
    verdicts: list[VerdictShown]
    data: DataShown
    entries: Sequence[Result]
    trace: TraceShown | None


class CaseShown(NamedTuple):
    """A case with its attempts; `number` is the one of its row in the run."""

    number: int
    summary: CaseSummary
    name: str
    who: str
    attempts: list[AttemptShown]


def case_shown(
    number: int,
    item: CaseSummary,
    results: Sequence[tuple[Result, Attempt | None]],
    *,
    passed_whole: bool = True,
    folder: Path | None = None,
) -> CaseShown:
    """A case with its results, each with its rows as they were compared; without `passed_whole` those that
    passed have no transcript. `folder` is the run's."""
    prompt = next((row["prompt"] for row, _ in results if row.get("prompt")), "")
    parts = (item.agent, item.model, clip(str(prompt or ""), _PROMPT))
    who = " · ".join(clip(str(part), _NAME) for part in parts if part)
    attempts = [
        _attempt(row, made, folder, passed_whole or row["outcome"] != "passed") for row, made in results
    ]
    return CaseShown(number, item, full_name(item.name, item.variant), who, attempts)


def _attempt(row: Result, attempt: Attempt | None, folder: Path | None, whole: bool) -> AttemptShown:
    return AttemptShown(
        row,
        [_verdict(verdict) for verdict in row["assertions"]],
        data_shown(row["details"], attempt, folder),
        row["transcript"] if whole else (),
        trace_shown(row.get("trace")) if whole else None,
    )


def _verdict(verdict: Result) -> VerdictShown:
    outcome = {True: "passed", False: "failed", None: "error"}[verdict["passed"]]
    told = () if outcome == "passed" else ("expected", "actual")
    values = [(name, as_text(verdict[name])) for name in told if verdict[name] not in (None, "")]
    in_a_line = all(len(text) <= _SHORT and "\n" not in text for _, text in values)
    return VerdictShown(verdict, outcome, values, in_a_line)
