"""promptfoo's own JSON of an evaluation (formats/promptfoo.md 11), so that its viewer and scripts read a run.

Where promptfoo throws a row away (an assertion that could not be judged), the row keeps its response here;
`failureReason` tells the difference as it does there.
"""

from __future__ import annotations

import datetime
import json
import platform
from pathlib import Path
from typing import Any

from tui_eval.guard.text import storable
from tui_eval.promptfoo_words import without_none
from tui_eval.reports.promptfoo_table import Table, tokens
from tui_eval.reports.results import not_run
from tui_eval.store.imported_promptfoo import OURS
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import RunInfo

FORMAT = "0.121.20"
"""The release of promptfoo whose format this is."""


def write(reader: RunReader, path: Path) -> None:
    """Write the document, 2-space indent as promptfoo does."""
    text = json.dumps(storable(build(reader)), indent=2, ensure_ascii=False, default=str)
    path.write_text(text + "\n", encoding="utf-8")


def build(reader: RunReader) -> dict[str, Any]:
    """The whole document, JSON-able."""
    info = reader.info()
    table = Table()
    cases = {row.id: row for row in reader.cases()}
    bodies = {row.id: reader.case(row.id) for row in cases.values()}
    rows = sorted(
        (row for row in reader.attempts() if row.state == "done"),
        key=lambda row: (cases[row.case_ref].suite, bodies[row.case_ref].order, row.attempt, row.id),
    )
    notes = Notes.beside(reader.folder).of_run(reader.folder.name)
    for row in rows:
        attempt = reader.attempt(row.id)
        if attempt is not None:
            table.add(row, cases[row.case_ref], bodies[row.case_ref], attempt)
            grading = table.results[-1]["gradingResult"]
            if grading is not None and row.id in notes:
                grading["comment"] = _comment(notes[row.id])
    table.settle()
    derived = {(column["agent"], column["prompt"]): column.get("derived") or {} for column in info.metrics}
    for column in table.prompts:
        more = derived.get((column["provider"], column["label"]))
        if more:
            column["metrics"]["namedScores"].update(more)
    table.name_models()
    left = not_run(reader)
    return {
        "evalId": f"eval-{info.id}",
        "results": {
            "version": 3,
            "timestamp": _time(info.started_at),
            "prompts": table.prompts,
            "results": table.results,
            "stats": {**_stats(table, info), **({"notRun": len(left)} if left else {})},
        },
        "config": _config(table, info),
        "shareableUrl": None,
        "metadata": {
            "promptfooVersion": FORMAT,
            "generator": f"tui-eval {info.version}",
            "nodeVersion": "",
            "platform": platform.system().lower(),
            "arch": platform.machine(),
            "exportedAt": _time(datetime.datetime.now(datetime.UTC).timestamp()),
            "evaluationCreatedAt": _time(info.started_at),
            **({OURS: {"not_run": left}} if left else {}),
        },
        "vars": sorted({name for result in table.results for name in result["vars"]}),
        "runtimeOptions": {},
        **({"traces": table.traces} if table.traces else {}),
    }


def _comment(note: HumanNote) -> str:
    """A person's note as the comment of a result; promptfoo's viewer highlights what begins so."""
    words = ": ".join(part for part in (note.verdict or "", note.text) if part)
    return f"!highlight {words}".strip() if note.star else words


def _stats(table: Table, info: RunInfo) -> dict[str, Any]:
    reasons = [result["failureReason"] for result in table.results]
    passed = sum(result["success"] for result in table.results)
    spent = tokens(None, 0)
    for result in table.results:
        for key, number in result["tokenUsage"].items():
            spent[key] += number
    took = round(((info.finished_at or info.started_at) - info.started_at) * 1000)
    return {
        "successes": passed,
        "failures": len(reasons) - passed - reasons.count(2),
        "errors": reasons.count(2),
        "tokenUsage": spent,
        "durationMs": took,
        "evaluationDurationMs": took,
    }


def _config(table: Table, info: RunInfo) -> dict[str, Any]:
    tests: dict[int, dict[str, Any]] = {}
    for result in table.results:
        tests.setdefault(result["testIdx"], result["testCase"])
    return without_none(
        {
            "description": info.provenance.get("description") or ", ".join(info.paths) or None,
            "prompts": list(dict.fromkeys(column["raw"] for column in table.prompts)),
            "providers": list(dict.fromkeys(column["provider"] for column in table.prompts)),
            "tests": list(tests.values()),
        }
    )


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
