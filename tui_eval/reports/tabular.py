"""Results as tables: CSV and Parquet with a row per attempt, Markdown with a row per case."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tui_eval.guard.text import clip, storable, visible
from tui_eval.reports import results
from tui_eval.store.reader import RunReader
from tui_eval.store.summary import summarise_run

COLUMNS = (
    "suite", "case_id", "name", "format", "agent", "model", "attempt", "outcome", "passed", "score", "message",
    "tokens", "cost", "duration_ms", "tool_call_count", "started_at", "prompt", "vars", "metadata",
    "response_text", "error",
)  # fmt: skip


def _rows(reader: RunReader) -> Iterator[dict[str, Any]]:
    for result in results.rows(reader):
        row = {name: result.get(name) for name in COLUMNS}
        row["response_text"] = result["details"]["response_text"]
        for name in ("vars", "metadata"):
            row[name] = json.dumps(storable(result[name]), default=str, ensure_ascii=False)
        yield storable(row)


def write_csv(reader: RunReader, path: Path) -> None:
    """CSV. A cell that a spreadsheet would take for a formula gets an apostrophe before it."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in _rows(reader):
            writer.writerow([_cell(row[name]) for name in COLUMNS])


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        text = visible(value)
        return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
    return value


def write_parquet(reader: RunReader, path: Path) -> None:
    """Parquet, with the types of the columns."""
    import polars as pl

    kinds = {"attempt": pl.Int64, "passed": pl.Boolean, "score": pl.Float64, "tokens": pl.Int64,
             "cost": pl.Float64, "duration_ms": pl.Float64, "tool_call_count": pl.Int64,
             "started_at": pl.Float64}  # fmt: skip
    schema = {name: kinds.get(name, pl.String) for name in COLUMNS}
    pl.DataFrame(list(_rows(reader)), schema=schema, orient="row", strict=False).write_parquet(path)


def write_markdown(reader: RunReader, path: Path) -> None:
    """Markdown for a pull request: the counts, a table of what did not pass, the rest folded."""
    info = reader.info()
    summaries = summarise_run(reader.cases(), reader.attempts())
    passed = sum(item.outcome == "passed" for item in summaries)
    lines = [f"## {passed} of {len(summaries)} cases passed", ""]
    lines += [f"Run `{info.id}` with {_text(', '.join(info.agents))}, {info.state}.", ""]
    bad = [item for item in summaries if item.outcome != "passed"]
    if bad:
        lines += ["| case | agent | outcome | why |", "|---|---|---|---|"]
    for item in bad:
        ratio = f" {item.passed}/{item.attempts}" if item.attempts > 1 else ""
        outcome = f"{item.outcome or 'not run'}{ratio}"
        lines.append(
            f"| {_text(item.name)} | {_text(item.agent)} | {outcome} | {_text(clip(item.message, 200))} |"
        )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _text(text: str) -> str:
    """Foreign text in a table cell: nothing in it is Markdown or HTML."""
    shown = visible(text, newlines=False).encode("utf-8", "replace").decode()
    for mark in "\\`*_{}[]<>|#!&~":
        shown = shown.replace(mark, f"&#{ord(mark)};")
    return shown
