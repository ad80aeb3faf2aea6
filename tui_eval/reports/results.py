"""The results file: nao's results JSON (formats/nao.md 6), extended (design.md, Results file)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.formats import format_of
from tui_eval.guard import figures
from tui_eval.guard.text import storable
from tui_eval.model import OWN_JUDGES, Attempt, Case, DataDetails, Entry, JudgeUse, Reply, Usage, Verdict
from tui_eval.reports.nao_metrics import Metrics, Result
from tui_eval.store import column_names
from tui_eval.store.imported.results_entries import own_content, said_tokens
from tui_eval.store.missing_cases import (
    gap_of,
    lacks_words,
    unread_errors_of,
    unread_listed_of,
    unread_report,
    why_not_run,
)
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import ASKED, PATHS, asked_in, paths_in, shard_words, unfinished_in
from tui_eval.store.summary import CaseSummary, summarise, unfinished_tokens, wilson

# -- A document, written piece by piece: one of a large run is larger than what the run held.

Members = Iterable[tuple[str, Any]]


def json_pieces(members: Members, text: Callable[[Any], str], level: int = 1) -> Iterator[str]:
    """An object as the standard module writes it with an indent of two spaces. A member that is an iterator is a list:
    its items are made, and forgotten, while it is written, and the members after it are asked for when it is. `text`
    writes everything else."""
    line, end, mark = "\n" + "  " * level, "\n" + "  " * (level - 1), "{"
    for key, value in members:
        yield f"{mark}{line}{text(key)}: "
        mark = ","
        if isinstance(value, Iterator):
            yield from _list_pieces(value, text, level + 1)
        elif _holds_iterators(value):
            yield from json_pieces(value.items(), text, level + 1)
        else:
            yield text(value).replace("\n", line)
    yield "{}" if mark == "{" else f"{end}}}"


def _list_pieces(items: Iterator[Any], text: Callable[[Any], str], level: int) -> Iterator[str]:
    line, end, mark = "\n" + "  " * level, "\n" + "  " * (level - 1), "["
    for item in items:
        yield f"{mark}{line}{text(item).replace(chr(10), line)}"
        mark = ","
    yield "[]" if mark == "[" else f"{end}]"


def _holds_iterators(value: Any) -> bool:
    return isinstance(value, dict) and any(
        isinstance(item, Iterator) or _holds_iterators(item) for item in value.values()
    )


def whole(members: Members) -> dict[str, Any]:
    """The same as one object, its lists whole."""
    return {key: _whole(value) for key, value in members}


def _whole(value: Any) -> Any:
    if isinstance(value, Iterator):
        return list(value)
    return whole(value.items()) if _holds_iterators(value) else value


# -- The file.


DATA_ROWS = 1000


def build(reader: RunReader) -> dict[str, Any]:
    """The whole document, JSON-able."""
    return whole(document(reader))


def document(reader: RunReader) -> Iterator[tuple[str, Any]]:
    """Its members in order, long lists as iterators: each is to be gone through before the next member is asked for."""
    info, metrics = reader.info(), Metrics()
    yield "timestamp", datetime.datetime.fromtimestamp(info.started_at).isoformat()
    yield "results", _counted(reader, metrics)
    outcomes: dict[str, int] = {}
    unfinished = 0
    for _, attempts in reader.by_case():
        unfinished += unfinished_tokens(attempts)
        for row in attempts:
            outcome = str(row.outcome) if row.state == "done" else "not run"
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    put_back, lost = unfinished_in(info)
    unfinished += put_back
    yield (
        "summary",
        {
            **metrics.summary(),
            "errors": outcomes.get("error", 0),
            "cancelled": outcomes.get("cancelled", 0),
            "skipped": outcomes.get("skipped", 0),
            "not_run": outcomes.get("not run", 0),
            **({"unfinished_tokens": unfinished} if unfinished else {}),
            **({"unfinished_cost": figures.rounded_sum(lost)} if lost else {}),
        },
    )
    yield "by_model", metrics.by_model()
    yield "pass_metrics", metrics.pass_metrics()
    yield "cases", (_case(summarise(case, attempts)) for case, attempts in reader.by_case())
    yield "not_run", not_run(reader)
    if unread_errors_of(info):
        yield "not_read", not_read(reader)
    if lacking := list(not_whole(reader)):
        yield "not_whole", lacking
    yield "metrics", info.metrics or column_names.sums(reader)
    yield "run", run_facts(info)


def _counted(reader: RunReader, metrics: Metrics) -> Iterator[Result]:
    for case, _, results in rows_by_case(reader):
        for _, one in results:
            metrics.add(one, case.id)
            yield one


def _case(item: CaseSummary) -> dict[str, Any]:
    """By all attempts that ended, cancelled ones too, as sums and pass metrics of this file are (design.md,
    Results file); elsewhere these are in no rate."""
    return {
        "case_id": item.case_id,
        "name": item.name,
        "suite": item.suite,
        "agent": item.agent,
        "model": item.model,
        "outcome": item.outcome,
        "attempts": item.attempts,
        "passed": item.passed,
        "required": item.required,
        "pass_rate": item.passed / item.attempts if item.attempts else 0.0,
        "interval": list(wilson(item.passed, item.attempts)),
        "flaky": 0 < item.passed < item.attempts,
        **({"cached": item.cached, "saved": item.saved} if item.cached else {}),
    }


def write(reader: RunReader, path: Path) -> None:
    """Write the document: 2-space indent, ASCII, as nao does."""

    def text(value: Any) -> str:
        return json.dumps(storable(value), indent=2, default=str)

    with open(path, "w", encoding="ascii") as file:
        file.writelines(json_pieces(document(reader), text))
        file.write("\n")


def write_lines(reader: RunReader, path: Path) -> None:
    """One result a line."""
    with open(path, "w", encoding="ascii") as file:
        for row in chain(rows(reader), without_result(reader)):
            file.write(json.dumps(storable(row), default=str) + "\n")


def not_run(reader: RunReader) -> Iterator[dict[str, Any]]:
    """What was asked for and has no result (`--fail-fast`, a cost limit, an interruption): each attempt with its
    case and column, its outcome `not run`, and why where the run says why."""
    info = reader.info()
    for case, attempts in reader.by_case():
        why = why_not_run(case, info)
        for row in attempts:
            if row.state != "done":
                yield {
                    "suite": case.suite,
                    "case_id": case.case_id,
                    "name": case.name,
                    "format": case.format,
                    "agent": case.agent,
                    "model": case.model,
                    "attempt": row.attempt,
                    "outcome": "not run",
                    "passed": None,
                    "message": f"not run ({why})" if why else "not run",
                }


def not_read(reader: RunReader) -> Iterator[dict[str, Any]]:
    """The files that could not be read whole, an error each: what they hold is in no result."""
    info = reader.info()
    found: dict[str, list[str]] = {}
    for one in unread_listed_of(info):
        found.setdefault(one.path, []).append(one.text)
    if unread_errors_of(info) and not found:
        found = {"": [unread_report(info)]}
    for path, texts in found.items():
        yield _of_no_case(path, "not read", "; ".join(texts))


def not_whole(reader: RunReader) -> Iterator[dict[str, Any]]:
    """Why the run is no success though all its rows are: cases that it has no rows of (`--failed` beside
    those that never ran), or a hook that failed at its end."""
    info = reader.info()
    words = lacks_words(info)
    if words and not (words == gap_of(info) and next(not_run(reader), None)):  # these have rows
        yield _of_no_case(None, "not whole", words)


def without_result(reader: RunReader) -> Iterator[dict[str, Any]]:
    """What stands below the results where a file has a row for each thing."""
    return chain(not_run(reader), not_read(reader), not_whole(reader))


def _of_no_case(suite: str | None, outcome: str, message: str) -> dict[str, Any]:
    nobody = dict.fromkeys(("case_id", "name", "format", "agent", "model", "attempt"))
    return {"suite": suite, **nobody, "outcome": outcome, "passed": None, "message": message}


def rows(reader: RunReader) -> Iterator[dict[str, Any]]:
    """`results[]`: one per ended attempt, in order of suite, case and attempt."""
    for _, _, results in rows_by_case(reader):
        for _, row in results:
            yield row


CaseRows = tuple[StoredCase, list[AttemptRow], Iterator[tuple[Attempt, dict[str, Any]]]]


def rows_by_case(reader: RunReader) -> Iterator[CaseRows]:
    """The same by case, those without a result too: the case, its attempts, and those that ended with their results."""
    notes = Notes.beside(reader.folder).of_run(reader.folder.name)
    for case, attempts in reader.by_case("suites by name"):
        yield case, attempts, _rows_of(reader, case, attempts, notes)


def _rows_of(
    reader: RunReader, case_row: StoredCase, attempts: Sequence[AttemptRow], notes: Mapping[int, HumanNote]
) -> Iterator[tuple[Attempt, dict[str, Any]]]:
    case = None
    for row in attempts:
        attempt = reader.attempt(row.id) if row.state == "done" else None
        if attempt is None:
            continue
        case = case or reader.case(row.case_ref)
        made = result(attempt, row, case_row, case)
        if attempt.trace is not None:
            made["trace"] = msgspec.to_builtins(attempt.trace)
        made |= more_of(case, case_row)
        if row.id in notes:
            made["note"] = note_entry(notes[row.id])
        yield attempt, made


def more_of(case: Case, case_row: StoredCase) -> dict[str, Any]:
    """What only a case in a column has: its prompt as the file has it, the provider of the column in which it
    stands where it has one of its own, and that column's by id and label where it is not called by its id."""
    if not column_names.in_columns(case):
        return {}
    provider = provider_of(case, case_row.agent)
    plain = provider == {"id": case_row.agent, "label": ""}
    raw = case.turns[0].text if case.turns else None
    more = {"template": raw, "column": case.column or None, "provider": None if plain else provider}
    return {key: value for key, value in more.items() if value is not None}


def provider_of(case: Case, agent: str) -> dict[str, str]:
    """The provider of the column by its id and its label: also of a row that was answered by one of its own."""
    shown = format_of(case.format).column_provider(case) if agent == case.agent else None
    given = shown if isinstance(shown, dict) else case.provider
    entry = given if isinstance(given, dict) else {}
    return {"id": str(entry.get("id") or agent), "label": str(entry.get("label") or "")}


def _unanswered(attempt: Attempt) -> bool:
    """Whether its last turn has no reply: what was said last is what there was of one, or an earlier turn's."""
    last = max((entry.turn for entry in attempt.transcript if entry.kind == "user"), default=0)
    return all(reply.turn != last for reply in attempt.replies)


def result(attempt: Attempt, row: AttemptRow, case_row: StoredCase, case: Case) -> dict[str, Any]:
    """One entry of `results[]`."""
    # A judgement of a recorded answer took none: those of the answer stand in the run that asked for it.
    usage, cost = (None, None) if row.judges else (attempt.usage, attempt.cost)
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
        "details": _details(attempt, case),
        "attempt": attempt.attempt,
        "suite": case.suite,
        "format": case.format,
        "case_id": case.case_id,
        "agent": case_row.agent,
        "outcome": attempt.outcome,
        "score": attempt.score,
        "named_scores": attempt.named_scores,
        "prompt": case.prompt,
        "vars": {**(case.vars or attempt.vars), **attempt.changed_vars},
        "metadata": case.metadata,
        "usage": {
            "input_tokens": usage.input_tokens if usage else None,
            "output_tokens": usage.output_tokens if usage else None,
            "cached_tokens": usage.cached_tokens if usage else None,
        },
        "assertions": [_assertion(verdict) for verdict in attempt.verdicts],
        "transcript": [_entry(entry) for entry in attempt.transcript],
        "started_at": attempt.started_at,
        **({"judging": judging_entry(attempt.judging)} if attempt.judging is not None else {}),
        **({"cached": True, "saved": row.saved} if row.cached else {}),
        **({"asserted_nothing": True} if row.asserted_nothing else {}),
        **(
            {"evidence": msgspec.to_builtins(why, enc_hook=str, str_keys=True)}
            if (why := attempt.evidence)
            else {}
        ),
        **({"content_hash": content} if (content := own_content(case_row.content_hash)) else {}),
    }


def _details(attempt: Attempt, case: Case) -> dict[str, Any]:
    """An entry's `details`: nao's, then what judging the answer again needs."""
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
    if data and (cut := _rows_cut(data)) is not None:
        details["truncated"] = cut
    if details["reference_sql"] is not None:
        details["rules"] = case.comparison or {}  # without its case it is judged by these
    if data and (not_finite := data.settings.get("not_finite")):
        details["not_finite"] = not_finite
    if attempt.error is not None and attempt.response_text and _unanswered(attempt):
        details["unanswered"] = True
    if attempt.output is not None:
        details["output"] = attempt.output
    elif attempt.replies and not attempt.response_text:
        # An agent that answered nothing has answered; one that failed before has not.
        details["empty_reply"] = "missing" if attempt.replies[-1].text_missing else "empty"
    if attempt.replies and attempt.replies[-1].transformed:
        details["transformed"] = True
    elif "unanswered" not in details and (before := attempt.before_transforms) is not None:
        details["answer"] = {"text": before.text, "output": before.output}
    told = said_tokens(attempt.transcript)
    scripts = any(one.type.removeprefix("not-") in OWN_JUDGES for one in attempt.verdicts) or any(
        isinstance(one.value, str) and one.value.startswith("file://")  # may be a script, for a value
        for one in case.assertions
    )
    reported = [
        {"turn": one.turn, **more}
        for one in attempt.replies
        if (more := _reported(one, told.get(one.turn), scripts))
    ]
    if reported:
        details["reported"] = reported
    return details


def _reported(reply: Reply, told: Usage | None, scripts: bool) -> dict[str, Any]:
    """What an answer carried, by which it is judged again; sly_data stays where it was received. `told`: its tokens in
    the transcript, which has none of an answer without text. `scripts`: whether scripts judge it."""
    parts = ("metadata", "structure", "guardrails", "finish_reason", "log_probs", *(("raw",) * scripts))
    found = {part: value for part in parts if (value := getattr(reply, part))}
    if reply.usage is not None and reply.usage != told:
        found["usage"] = msgspec.to_builtins(reply.usage)
    return found


def judging_entry(used: JudgeUse) -> dict[str, Any]:
    """What judges took for an attempt, beside its own tokens and cost; only where one was asked."""
    usage = used.usage or Usage()
    return {
        "calls": used.calls,
        "tokens": figures.judge_tokens(used),
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": used.cost,
        **({"cached": used.cached, "saved": used.saved} if used.cached else {}),
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
    if verdict.parts is not None:
        entry["parts"] = verdict.parts
    if verdict.evidence and verdict.passed is not True:
        entry["evidence"] = msgspec.to_builtins(verdict.evidence, enc_hook=str, str_keys=True)
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


def _rows_cut(data: DataDetails) -> Any:
    """How many rows each side had where the file has not all of them; False where one could think so. The record
    itself may have the first ones alone, and say how many there were."""
    said = data.settings.get("truncated")
    if said and not isinstance(said, dict):
        return True
    sides = {"expected": len(data.expected or ()), "actual": len(data.actual or ())}
    whole_ = {side: max(count, int((said or {}).get(side) or 0)) for side, count in sides.items()}
    if any(whole_[side] > min(count, DATA_ROWS) for side, count in sides.items()):
        return whole_
    return False if DATA_ROWS in sides.values() else None


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
        "provenance": {
            **info.provenance,
            **({} if (asked := asked_in(info)) is None else {ASKED: asked}),
            **({PATHS: paths} if shard_words(info.provenance) and (paths := paths_in(info)) else {}),
        },
    }
