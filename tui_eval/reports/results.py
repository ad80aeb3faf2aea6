"""The results file: nao's results JSON (formats/nao.md 6), extended (design.md, Results file)."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.formats import format_of
from tui_eval.guard import figures
from tui_eval.guard.text import storable
from tui_eval.model import Attempt, Case, Entry, Verdict
from tui_eval.store import column_names
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.summary import summarise_run

# -- Sums, averages and pass metrics of results, as nao-core 0.3.29 computes them (formats/nao.md 6).


Result = dict[str, Any]


def _sum(results: Iterable[Result], key: str) -> Any:
    """0 where nothing is known, as in nao; None where the sum is no figure that other programs can hold."""
    known = [result.get(key) or 0 for result in results]
    whole = all(isinstance(one, int) for one in known)
    name = f"{key} of all attempts"
    return (figures.total(known, name) if whole else figures.total_amount(known, name)) if known else 0


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Totals over attempts; `failed` counts everything that did not pass."""
    total = len(results)
    passed = sum(bool(result.get("passed")) for result in results)
    milliseconds = _sum(results, "duration_ms")
    calls = _sum(results, "tool_call_count")
    unknown_time, unknown_calls = milliseconds is None, calls is None
    return {
        "total": total,
        "passed": passed,
        "failed": total - passed,
        "total_tokens": _sum(results, "tokens"),
        "total_cost": _sum(results, "cost"),
        "total_duration_ms": milliseconds,
        "total_duration_s": None if unknown_time else round(milliseconds / 1000, 2),
        "total_tool_calls": calls,
        "avg_duration_ms": None if unknown_time else float(round(milliseconds / total)) if total else 0,
        "avg_tool_calls": None if unknown_calls else round(calls / total, 1) if total else 0,
    }


def by_model(results: Sequence[Result], key: Sequence[str] = ("name", "model")) -> list[dict[str, Any]]:
    """One entry a model: best pass rate first, then cheapest, then by name. `key` as in `pass_metrics`."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(str(result.get("model") or "unknown"), []).append(result)
    entries: list[dict[str, Any]] = []
    for model, members in groups.items():
        sums = summary(members)
        metrics = pass_metrics(members, key)
        entries.append(
            {
                "model": model,
                "total": sums["total"],
                "passed": sums["passed"],
                "failed": sums["failed"],
                "pass_rate": round(sums["passed"] / sums["total"] * 100, 1),
                "total_tokens": sums["total_tokens"],
                "total_cost": None if sums["total_cost"] is None else round(sums["total_cost"], 6),
                "total_duration_ms": sums["total_duration_ms"],
                "avg_duration_ms": sums["avg_duration_ms"],
                "total_tool_calls": sums["total_tool_calls"],
                "avg_tool_calls": sums["avg_tool_calls"],
                "k": metrics["k"],
                **metrics["aggregate"],
            }
        )
    entries.sort(
        key=lambda entry: (-entry["pass_rate"], _last_if_unknown(entry["total_cost"]), entry["model"])
    )
    return entries


def _last_if_unknown(cost: float | None) -> float:
    return math.inf if cost is None else cost


def pass_metrics(results: Sequence[Result], key: Sequence[str] = ("name", "model")) -> dict[str, Any]:
    """pass@1 (share passed), pass@k (any), pass^k (all) by group, and their plain means.

    `key` names what makes a group; `name` and `model` are reported of each.
    """
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        group = tuple(str(result.get(part) or ("unknown" if part == "model" else "")) for part in key)
        groups.setdefault(group, []).append(result)
    by_test: list[dict[str, Any]] = []
    for members in groups.values():
        passed = [bool(result.get("passed")) for result in members]
        by_test.append(
            {
                "name": str(members[0]["name"]),
                "model": str(members[0].get("model") or "unknown"),
                "k": len(passed),
                "pass_at_1": sum(passed) / len(passed),
                "pass_at_k": 1.0 if any(passed) else 0.0,
                "pass_hat_k": 1.0 if all(passed) else 0.0,
            }
        )
    by_test.sort(key=lambda entry: (entry["name"], entry["model"]))
    count = len(by_test)
    aggregate = {
        name: sum(entry[name] for entry in by_test) / count if count else 0.0
        for name in ("pass_at_1", "pass_at_k", "pass_hat_k")
    }
    return {
        "k": max((entry["k"] for entry in by_test), default=0),
        "aggregate": aggregate,
        "by_test": by_test,
    }


DATA_ROWS = 1000
_GROUP = ("case_id", "agent", "model")


def build(reader: RunReader) -> dict[str, Any]:
    """The whole document, JSON-able."""
    info, cases, attempts = reader.info(), reader.cases(), reader.attempts()
    ended = {row.id for row in attempts if row.state == "done"}
    results = list(rows(reader))
    totals = summary(results)
    outcomes = [row.outcome for row in attempts if row.id in ended]
    totals.update(
        errors=outcomes.count("error"),
        cancelled=outcomes.count("cancelled"),
        skipped=outcomes.count("skipped"),
        not_run=len(attempts) - len(ended),
    )
    grouped = pass_metrics(results, _GROUP)
    return {
        "timestamp": datetime.datetime.fromtimestamp(info.started_at).isoformat(),
        "results": results,
        "summary": totals,
        "by_model": by_model(results, _GROUP),
        "pass_metrics": grouped,
        "cases": [
            {
                "case_id": item.case_id,
                "name": item.name,
                "suite": item.suite,
                "agent": item.agent,
                "model": item.model,
                "outcome": item.outcome,
                "attempts": item.attempts,
                "passed": item.passed,
                "required": item.required,
                "pass_rate": item.pass_rate,
                "interval": list(item.interval),
                "flaky": item.flaky,
            }
            for item in summarise_run(cases, attempts)
        ],
        "not_run": not_run(reader),
        "metrics": info.metrics or column_names.sums(reader),
        "run": run_facts(info),
    }


def write(reader: RunReader, path: Path) -> None:
    """Write the document: 2-space indent, ASCII, as nao does."""
    path.write_text(json.dumps(storable(build(reader)), indent=2, default=str) + "\n", encoding="ascii")


def write_lines(reader: RunReader, path: Path) -> None:
    """One result a line."""
    with open(path, "w", encoding="ascii") as file:
        for row in rows(reader):
            file.write(json.dumps(storable(row), default=str) + "\n")
        for left in not_run(reader):
            file.write(json.dumps(storable(left), default=str) + "\n")


def not_run(reader: RunReader) -> list[dict[str, Any]]:
    """What was asked for and has no result (`--fail-fast`, a cost limit, an interruption): each attempt with its
    case and column, its outcome `not run`, and why where the run says why."""
    cases = {row.id: row for row in reader.cases()}
    info = reader.info()
    return [
        {
            "suite": cases[row.case_ref].suite,
            "case_id": cases[row.case_ref].case_id,
            "name": cases[row.case_ref].name,
            "format": cases[row.case_ref].format,
            "agent": cases[row.case_ref].agent,
            "model": cases[row.case_ref].model,
            "attempt": row.attempt,
            "outcome": "not run",
            "passed": None,
            "message": f"not run ({info.note})" if info.note else "not run",
        }
        for row in reader.attempts()
        if row.state != "done"
    ]


def rows(reader: RunReader) -> Iterator[dict[str, Any]]:
    """`results[]`: one per ended attempt, in order of suite, case and attempt."""
    for _, row in rows_with_case(reader):
        yield row


def rows_with_case(reader: RunReader) -> Iterator[tuple[int, dict[str, Any]]]:
    """The same, each with the id of its case's row in the run."""
    for case_ref, _, made in rows_with_attempt(reader):
        yield case_ref, made


def rows_with_attempt(reader: RunReader) -> Iterator[tuple[int, Attempt, dict[str, Any]]]:
    """The same, each with the id of its case's row in the run and the attempt that it is made of."""
    cases = {row.id: row for row in reader.cases()}
    done = [row for row in reader.attempts() if row.state == "done"]
    done.sort(key=lambda row: (cases[row.case_ref].suite, row.case_ref, row.attempt, row.id))
    bodies: dict[int, Case] = {}
    notes = Notes.beside(reader.folder).of_run(reader.folder.name)
    for row in done:
        attempt = reader.attempt(row.id)
        if attempt is None:
            continue
        if row.case_ref not in bodies:
            bodies = {row.case_ref: reader.case(row.case_ref)}
        made = result(attempt, row, cases[row.case_ref], bodies[row.case_ref])
        if attempt.trace is not None:
            made["trace"] = msgspec.to_builtins(attempt.trace)
        made |= more_of(bodies[row.case_ref], cases[row.case_ref])
        if row.cached:
            made |= {"cached": True, "saved": row.saved}
        if row.id in notes:
            made["note"] = note_entry(notes[row.id])
        yield row.case_ref, attempt, made


def more_of(case: Case, case_row: StoredCase) -> dict[str, Any]:
    """What only a case in a column has: its prompt as the file has it, the provider of the column in which it
    stands where it has one of its own, and that column's by id and label where it is not called by its id."""
    if not column_names.in_columns(case):
        return {}
    provider = column_names.provider_of(case, case_row.agent)
    plain = provider == {"id": case_row.agent, "label": ""}
    raw = case.turns[0].text if case.turns else None
    more = {"template": raw, "column": case.column or None, "provider": None if plain else provider}
    return {key: value for key, value in more.items() if value is not None}


def _unanswered(attempt: Attempt) -> bool:
    """Whether its last turn has no reply: what was said last is what there was of one, or an earlier turn's."""
    last = max((entry.turn for entry in attempt.transcript if entry.kind == "user"), default=0)
    return all(reply.turn != last for reply in attempt.replies)


def result(attempt: Attempt, row: AttemptRow, case_row: StoredCase, case: Case) -> dict[str, Any]:
    """One entry of `results[]`."""
    # A judgement of a recorded answer took none: those of the answer stand in the run that asked for it.
    usage, cost = (None, None) if row.judges else (attempt.usage, attempt.cost)
    data = attempt.data
    details: dict[str, Any] = {
        "response_text": attempt.response_text,
        "actual_data": _cut(data.actual if data else None),
        "expected_data": _cut(data.expected if data else None),
        "comparison": data.comparison if data else None,
        "tool_calls": _tool_calls(attempt.transcript),
        "reference_sql": data.reference_sql if data else _expected_sql(case),
        "verification_sql": data.verification_sql if data else None,
    }
    if data and any(len(side or []) > DATA_ROWS for side in (data.actual, data.expected)):
        details["truncated"] = True
    if attempt.error is not None and attempt.response_text and _unanswered(attempt):
        details["unanswered"] = True
    if attempt.output is not None:
        details["output"] = attempt.output
    elif attempt.replies and not attempt.response_text:
        # An agent that answered nothing has answered; one that failed before has not.
        details["empty_reply"] = "missing" if attempt.replies[-1].text_missing else "empty"
    tokens = None if usage is None else figures.tokens(usage.input_tokens, usage.output_tokens)
    return {
        "name": case.name,
        "model": attempt.model,
        "passed": attempt.outcome == "passed",
        "message": attempt.message,
        "tokens": tokens,
        "cost": cost,
        "duration_ms": None if attempt.duration_ms is None else round(attempt.duration_ms),
        "tool_call_count": attempt.tool_call_count,
        "error": attempt.error,
        "details": details,
        "attempt": attempt.attempt,
        "suite": case.suite,
        "format": case.format,
        "case_id": case.case_id,
        "agent": case_row.agent,
        "outcome": attempt.outcome,
        "score": attempt.score,
        "named_scores": attempt.named_scores,
        "prompt": case.prompt,
        "vars": case.vars or attempt.vars,
        "metadata": case.metadata,
        "usage": {
            "input_tokens": usage.input_tokens if usage else None,
            "output_tokens": usage.output_tokens if usage else None,
            "cached_tokens": usage.cached_tokens if usage else None,
        },
        "assertions": [_assertion(verdict) for verdict in attempt.verdicts],
        "transcript": [_entry(entry) for entry in attempt.transcript],
        "started_at": attempt.started_at,
    }


def note_entry(note: HumanNote) -> dict[str, Any]:
    """What a person said of the attempt; only where someone did."""
    return {"verdict": note.verdict, "text": note.text, "star": note.star, "at": note.at}


def _assertion(verdict: Verdict) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "type": verdict.type,
        "target": verdict.target,
        "expected": verdict.expected,
        "actual": verdict.actual,
        "passed": verdict.passed,
        "score": verdict.score,
        "reason": verdict.reason,
        "weight": verdict.weight,
        "metric": verdict.metric,
        "turn": verdict.turn,
    }
    if verdict.set is not None:
        entry["set"] = verdict.set
    if verdict.judge is not None:
        entry["judge"] = verdict.judge
    return entry


def _entry(entry: Entry) -> dict[str, Any]:
    usage = entry.usage
    return {
        "turn": entry.turn,
        "kind": entry.kind,
        "agent": entry.agent,
        "text": entry.text,
        "name": entry.name,
        "arguments": entry.arguments,
        "result": entry.result,
        "error": entry.error,
        "call_id": entry.call_id,
        "usage": None if usage is None else msgspec.to_builtins(usage),
        "started_at": entry.started_at,
        "first_token_ms": entry.first_token_ms,
        "duration_ms": entry.duration_ms,
    }


def _tool_calls(transcript: list[Entry]) -> list[dict[str, Any]]:
    """nao's list: a call without a result lacks that key."""
    results = {entry.call_id: entry for entry in transcript if entry.kind == "tool_result"}
    calls: list[dict[str, Any]] = []
    for entry in transcript:
        if entry.kind != "tool_call":
            continue
        call = {"toolName": entry.name, "toolCallId": entry.call_id, "args": entry.arguments}
        answer = results.get(entry.call_id)
        if answer is not None and answer.error is None:
            call["result"] = answer.result
        calls.append(call)
    return calls


def _expected_sql(case: Case) -> str | None:
    """The expected query, which stands in its result also where no answer came."""
    return format_of(case.format).expected_query(case)


def _cut(rows_: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    return rows_ if rows_ is None else rows_[:DATA_ROWS]


def run_facts(info: RunInfo) -> dict[str, Any]:
    """A run's own facts as files have them."""
    return {
        "id": info.id,
        "state": info.state,
        "version": info.version,
        "started_at": info.started_at,
        "finished_at": info.finished_at,
        "linked_to": info.linked_to,
        "note": info.note,
        "scripted": info.scripted,
        "provenance": info.provenance,
    }
