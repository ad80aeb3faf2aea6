"""promptfoo's own JSON of an evaluation (formats/promptfoo.md 11), so that its viewer and scripts read a run.

Where promptfoo throws a row away (an assertion that could not be judged), the row keeps its response here;
`failureReason` tells the difference as it does there.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
from array import array
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from tui_eval.case_names import FILLED_IN
from tui_eval.formats.promptfoo.import_promptfoo import OURS, labels_of, row_of
from tui_eval.formats.promptfoo.promptfoo_words import components_of, test_of, trace_of, without_none
from tui_eval.guard import figures
from tui_eval.guard.text import storable, visible_json
from tui_eval.model import Attempt, Case, Reply, Usage
from tui_eval.reports.results import json_pieces, more_of, not_run, provider_of, run_facts, whole
from tui_eval.reports.results import result as result_of
from tui_eval.store.column_names import column_agent, in_columns
from tui_eval.store.missing_cases import unread_errors_of, unread_files_of
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase

# -- promptfoo's table of an evaluation: its columns with their sums, and a result for each attempt.


_FAILURE = {"passed": 0, "failed": 1}
NO_OUTPUT = "No output"


class Table:
    """Tests down, columns (provider, prompt) across, of a run's finished attempts. A large run's results are not held:
    they are counted first, and made again when they are written."""

    def __init__(self, reader: RunReader) -> None:
        self.prompts: list[dict[str, Any]] = []
        """The columns, in the order of the suites."""
        self.suites: list[str] = []
        """Of each column the suite."""
        self.vars: set[str] = set()
        self.reasons = [0, 0, 0]
        """How many results have each `failureReason`."""
        self.passed = 0
        self.spent = tokens(None, 0)
        self.traced = array("q")
        """Places of the attempts that have a trace, as `result` takes them."""
        self._reader = reader
        self._notes = Notes.beside(reader.folder).of_run(reader.folder.name)
        self._columns: dict[tuple[str, int, str, str, str], int] = {}
        self._lent: set[tuple[str, int, str, str, str]] = set()
        self._tests: dict[str, int] = {}
        self._refs, self._test_of, self._column_of = array("q"), array("q"), array("q")
        self._case = 0, Case("", "", "", "")
        for case_row, row in reader.in_turn(_in_order(reader)):
            attempt = reader.attempt(row.id)
            if attempt is not None:
                self._add(row, case_row, self._body(row.case_ref), attempt)
        self._settle()

    def _body(self, case_ref: int) -> Case:
        if self._case[0] != case_ref:
            self._case = case_ref, self._reader.case(case_ref)
        return self._case[1]

    def _add(self, row: AttemptRow, case_row: StoredCase, case: Case, attempt: Attempt) -> None:
        label = case.prompt or ""
        raw = (case.turns[0].text if case.turns else "") or ""
        agent = column_agent(case, case_row.agent)
        key = self._key(case, case_row, agent)
        place = self._columns.get(key)
        if place is None:
            place = self._columns[key] = len(self.prompts)
            shown = label or (raw if in_columns(case) else agent)
            self.prompts.append(_column(agent, label, raw, shown))
        test = self._test(case, row.attempt)
        if attempt.trace is not None:
            self.traced.append(len(self._refs))
        self._refs.append(row.id)
        self._test_of.append(test)
        self._column_of.append(place)
        result = _result(row, case_row, case, attempt, test, place)
        _count(self.prompts[place]["metrics"], result, attempt)
        self.vars.update(result["vars"])
        self.passed += result["success"]
        self.reasons[result["failureReason"]] += 1
        _add(self.spent, result["tokenUsage"])

    def _key(self, case: Case, row: StoredCase, agent: str) -> tuple[str, int, str, str, str]:
        """The column of a row. One that a provider of its own has answered, of whatever model, stands among those that
        the column's has."""
        column = case.suite, case.column_number, agent, case.prompt or ""
        key = (*column, row.model or "")
        if key in self._columns:
            return key
        there = next((one for one in self._columns if one[:4] == column), None)
        if agent != row.agent:
            if there is None:
                self._lent.add(key)
            return there or key
        if there is not None and there in self._lent:
            self._lent.discard(there)
            self._columns[key] = self._columns.pop(there)
        return key

    def _settle(self) -> None:
        """Put the columns in the order of the suites."""
        order = self._ordered()
        moved = {self._columns[key]: place for place, key in enumerate(order)}
        self.prompts = [self.prompts[self._columns[key]] for key in order]
        for prompt in self.prompts:
            prompt["metrics"]["tokenUsage"] = _known(prompt["metrics"]["tokenUsage"])
            prompt["metrics"]["cost"] = figures.rounded_sum(prompt["metrics"]["cost"])
        self.suites = [suite for suite, *_ in order]
        self._column_of = array("q", (moved[place] for place in self._column_of))

    def _ordered(self) -> list[tuple[str, int, str, str, str]]:
        suites = list(dict.fromkeys(suite for suite, *_ in self._columns))
        return sorted(self._columns, key=lambda key: (suites.index(key[0]), key[1], self._columns[key]))

    def results(self, tests: array[int]) -> Iterator[dict[str, Any]]:
        """In the order of tests and columns. `tests` gets of each test a case, by its id in the run."""
        labels = labels_of(self.prompts)
        places = sorted(range(len(self._refs)), key=lambda at: (self._test_of[at], self._column_of[at]))
        before = None
        rows = self._reader.in_turn(array("q", (self._refs[at] for at in places)))
        for at, (case_row, row) in zip(places, rows, strict=True):
            attempt = self._reader.attempt(row.id)
            if attempt is None:
                continue
            case = self._body(row.case_ref)
            test = self._test_of[at]
            if test != before:
                tests.append(row.case_ref)
                before = test
            result = _result(row, case_row, case, attempt, test, self._column_of[at])
            if attempt.trace is not None:
                result["traceId"], result["evaluationId"] = (
                    attempt.trace.trace_id,
                    attempt.trace.evaluation_id,
                )
            ours = result_of(attempt, row, case_row, case)
            ours |= {"asked_model": case_row.model, "required": case_row.required}
            numbers = {"test_number": case.test_number, "column_number": case.column_number}
            ours |= {**more_of(case, case_row), **numbers}
            result[OURS] = _untold(result, ours, labels, self.prompts)
            if result["gradingResult"] is not None and row.id in self._notes:
                result["gradingResult"]["comment"] = _comment(self._notes[row.id])
            yield result

    def traces(self) -> Iterator[dict[str, Any]]:
        """What agents exported, in the order of the suites."""
        for at in self.traced:
            attempt = self._reader.attempt(self._refs[at])
            if attempt is not None and attempt.trace is not None:
                metadata = {"testIdx": self._test_of[at], "promptIdx": self._column_of[at]}
                yield {**trace_of(attempt.trace), "metadata": {**metadata, "vars": attempt.vars}}

    def name_models(self) -> None:
        """Tell columns apart that are one agent asked with several models."""
        alike: dict[tuple[str, int, str, str], set[str]] = {}
        for *column, model in self._columns:
            alike.setdefault(tuple(column), set()).add(model)  # type: ignore[arg-type]
        for prompt, (*column, model) in zip(self.prompts, self._ordered(), strict=True):
            if model and len(alike[tuple(column)]) > 1:  # type: ignore[index]
                prompt["provider"] = f"{prompt['provider']} {model}"

    def _test(self, case: Case, attempt: int) -> int:
        """The row of an attempt, the same in every column. Elsewhere than in promptfoo a case is one by its id."""
        if case.test_number:
            named = [case.test_number]
        else:
            named = [case.name, case.line, case.vars] if in_columns(case) else [case.case_id]
        key = json.dumps([case.suite, *named, attempt], sort_keys=True, default=str)
        return self._tests.setdefault(key, len(self._tests))


def _in_order(reader: RunReader) -> array[int]:
    """The ids of the finished attempts by suite, the place of the case in its file, and attempt."""
    found = array("q")
    for _, cases in groupby(reader.by_case("suites by name"), key=lambda one: one[0].suite):
        rows = [
            (reader.case(case.id).order, row.attempt, row.id)
            for case, attempts in cases
            for row in attempts
            if row.state == "done"
        ]
        found.extend(ref for *_, ref in sorted(rows))
    return found


def _untold(
    result: dict[str, Any], ours: dict[str, Any], labels: list[str], prompts: list[dict[str, Any]]
) -> dict[str, Any]:
    """What a result of ours has that could not be read from promptfoo's members of it."""
    told = row_of(result, "", labels, prompts)
    ours["transcript"] = [without_none(entry) for entry in ours["transcript"]]
    details = told.pop("details")
    ours["details"] = {key: item for key, item in ours["details"].items() if details.get(key) != item}
    return {key: value for key, value in ours.items() if key not in told or told[key] != value}


def _column(agent: str, label: str, raw: str, shown: str) -> dict[str, Any]:
    return {
        "id": _prompt_id(label),
        "raw": raw,
        "label": shown,
        "provider": agent,
        "metrics": {
            "score": 0.0,
            "testPassCount": 0,
            "testFailCount": 0,
            "testErrorCount": 0,
            "assertPassCount": 0,
            "assertFailCount": 0,
            "totalLatencyMs": 0,
            "tokenUsage": tokens(None, 0),
            "namedScores": {},
            "namedScoresCount": {},
            "namedScoreWeights": {},
            "cost": 0.0,
        },
    }


def _prompt_id(label: str) -> str:
    return hashlib.sha256(label.encode("utf-8", "replace")).hexdigest()


def _count(metrics: dict[str, Any], result: dict[str, Any], attempt: Attempt) -> None:
    if result["failureReason"] == 2:
        metrics["testErrorCount"] += 1
    else:
        metrics["testPassCount" if result["success"] else "testFailCount"] += 1
    if result["failureReason"] != 2:  # whose verdicts promptfoo does not have
        metrics["score"] += result["score"]
        _count_scores(metrics, attempt)
        for component in (result["gradingResult"] or {}).get("componentResults", ()):
            metrics["assertPassCount" if component.get("pass") else "assertFailCount"] += 1
    metrics["totalLatencyMs"] += result["latencyMs"]
    metrics["cost"] += result["cost"]
    _add(metrics["tokenUsage"], result["tokenUsage"])


def _count_scores(metrics: dict[str, Any], attempt: Attempt) -> None:
    named = [
        verdict.metric
        for verdict in attempt.verdicts
        if verdict.type != "assert-set"
        for _ in range(1 + len(verdict.parts or ()))  # the parts of a script's are counted as assertions, too
    ]
    for name, value in attempt.named_scores.items():
        weight = attempt.named_weights.get(name, 1.0)
        for key, number in (
            ("namedScores", value * weight),
            ("namedScoreWeights", weight),
            ("namedScoresCount", max(named.count(name), 1)),
        ):
            metrics[key][name] = metrics[key].get(name, 0) + number


def _add(sums: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add a `tokenUsage`; what its assertions took has sums of its own."""
    for key, value in more.items():
        if isinstance(value, dict):
            _add(sums.setdefault(key, {}), value)
        else:
            sums[key] = sums.get(key, 0) + value


def _result(
    row: AttemptRow, case_row: StoredCase, case: Case, attempt: Attempt, test: int, place: int
) -> dict[str, Any]:
    passed = attempt.outcome == "passed"
    reply = attempt.replies[-1] if attempt.replies else None
    # An answer without an output fails and is nobody's fault.
    nothing = reply is not None and reply.text_missing and attempt.outcome == "failed"
    # A judgement of a recorded answer took nothing: that is with the run that asked for it.
    asked = 0 if case.provider_output else len(attempt.replies)
    usage, cost = tokens(attempt.usage, asked), attempt.cost or 0
    if row.judges:
        usage, cost = tokens(None, 0), 0
    used = attempt.judging  # of judging again, too: that was paid now
    judging = tokens(used.usage, used.calls) if used is not None else None
    latency = round((reply.latency_ms if reply else None) or attempt.duration_ms or 0)
    result: dict[str, Any] = {
        "id": f"{row.id}",
        "testIdx": test,
        "promptIdx": place,
        "promptId": _prompt_id(case.prompt or ""),
        "provider": provider_of(case, case_row.agent),
        "prompt": {"raw": _asked(case, attempt), "label": case.prompt or ""},
        # Of its own come first; the others are those that a hook or a prompt function added.
        "vars": {**attempt.vars, **case.vars, **attempt.changed_vars},
        "testCase": _test_case(case),
        "response": _response(attempt, reply, usage, cost, latency, nothing),
        "gradingResult": None,
        "success": passed,
        "score": attempt.score or 0.0,
        "namedScores": attempt.named_scores,
        "failureReason": 0 if nothing else _FAILURE.get(attempt.outcome, 2),
        "latencyMs": latency,
        "cost": cost,
        "tokenUsage": {**usage, **without_none({"assertions": judging})},
        "metadata": {**case.metadata, **((reply.metadata if reply else None) or {})},
    }
    if not nothing and (attempt.verdicts or attempt.error is None):
        result["gradingResult"] = _grading(attempt, case, judging or tokens(None, 0))
    if not passed:
        result["error"] = NO_OUTPUT if nothing else attempt.error or attempt.message
    return result


def _asked(case: Case, attempt: Attempt) -> str:
    """The prompt as it was sent; of a conversation every message."""
    if attempt.prompt_sent is not None:
        return attempt.prompt_sent
    if in_columns(case):  # of a run that was read from a file the transcript alone says it
        return "\n\n".join(entry.text for entry in attempt.transcript if entry.kind == "user" and entry.text)
    return "\n\n".join(turn.text for turn in case.turns if turn.text)


def _test_case(case: Case) -> dict[str, Any]:
    """The test under the case's name; a row of promptfoo's that is only numbered has none."""
    if in_columns(case) and FILLED_IN.fullmatch(case.name):
        return test_of(case)
    return {"description": case.name, **test_of(case)}


def _response(
    attempt: Attempt, reply: Reply | None, usage: dict[str, int], cost: float, latency: int, nothing: bool
) -> dict[str, Any] | None:
    if reply is None and not attempt.response_text:
        return None
    output = attempt.output if attempt.output is not None else attempt.response_text
    response: dict[str, Any] = {
        "output": None if nothing else output,
        "cached": attempt.cached > 0,
        "cost": cost,
        "tokenUsage": usage,
        "latencyMs": latency,
        "metadata": (reply.metadata if reply else None) or {},
    }
    if reply is not None:
        extra = {
            "finishReason": reply.finish_reason,
            "guardrails": reply.guardrails,
            "raw": reply.raw,
            "logProbs": reply.log_probs,
            "sessionId": (reply.metadata or {}).get("sessionId"),
        }
        response.update(without_none(extra))
    return response


def _grading(attempt: Attempt, case: Case, judging: dict[str, int]) -> dict[str, Any]:
    return {
        "pass": attempt.outcome == "passed",
        "score": attempt.score or 0.0,
        "reason": "All assertions passed" if attempt.message == "passed" else attempt.message,
        "namedScores": attempt.named_scores,
        "namedScoreWeights": attempt.named_weights,
        "tokensUsed": judging,
        "componentResults": components_of(case.asserted, attempt.verdicts),
    }


def tokens(usage: Usage | None, requests: int) -> dict[str, int]:
    """`tokenUsage`, also where nothing was counted."""
    prompt, completion = (usage.input_tokens or 0, usage.output_tokens or 0) if usage else (0, 0)
    return {
        "total": figures.tokens(prompt, completion) or 0,
        "prompt": prompt,
        "completion": completion,
        "cached": (usage.cached_tokens or 0) if usage else 0,
        "numRequests": requests,
    }


FORMAT = "0.121.20"
"""The release of promptfoo whose format this is."""


def write(reader: RunReader, path: Path) -> None:
    """Write the document, 2-space indent as promptfoo does."""

    def text(value: Any) -> str:
        return visible_json(json.dumps(storable(value), indent=2, ensure_ascii=False, default=str))

    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json_pieces(document(reader), text))
        file.write("\n")


def build(reader: RunReader) -> dict[str, Any]:
    """The whole document, JSON-able."""
    return whole(document(reader))


def document(reader: RunReader) -> Iterator[tuple[str, Any]]:
    """Its members in order, long lists as iterators: each is to be gone through before the next member is asked for."""
    info, table = reader.info(), Table(reader)
    derived = {
        (column.get("suite"), column.get("agent"), column.get("prompt")): column.get("derived") or {}
        for column in info.metrics
    }
    for suite, column in zip(table.suites, table.prompts, strict=True):
        more = derived.get((suite, column["provider"], column["label"]))
        if more:
            column["metrics"]["namedScores"].update(more)
    table.name_models()
    left = sum(1 for _ in not_run(reader))
    unread = {"notRead": unread_files_of(info)} if unread_errors_of(info) else {}
    tests = array("q")
    yield "evalId", f"eval-{info.id}"
    yield (
        "results",
        {
            "version": 3,
            "timestamp": _time(info.started_at),
            "prompts": table.prompts,
            "results": table.results(tests),
            "stats": {**_stats(table, info), **({"notRun": left} if left else {}), **unread},
        },
    )
    yield (
        "config",
        without_none(
            {
                "description": info.provenance.get("description") or ", ".join(info.paths) or None,
                "prompts": list(dict.fromkeys(column["raw"] for column in table.prompts)),
                "providers": list(dict.fromkeys(column["provider"] for column in table.prompts)),
                "tests": (_test_case(reader.case(ref)) for ref in tests),
            }
        ),
    )
    yield "shareableUrl", None
    yield (
        "metadata",
        {
            "promptfooVersion": FORMAT,
            "generator": f"tui-eval {info.version}",
            "nodeVersion": "",
            "platform": platform.system().lower(),
            "arch": platform.machine(),
            "exportedAt": _time(datetime.datetime.now(datetime.UTC).timestamp()),
            "evaluationCreatedAt": _time(info.started_at),
            OURS: {"not_run": not_run(reader), "metrics": info.metrics, "run": run_facts(info)},
        },
    )
    yield "vars", sorted(table.vars)
    yield "runtimeOptions", {}
    if table.traced:
        yield "traces", table.traces()


def _comment(note: HumanNote) -> str:
    """A person's note as the comment of a result; promptfoo's viewer highlights what begins so."""
    words = ": ".join(part for part in (note.verdict or "", note.text) if part)
    return f"!highlight {words}".strip() if note.star else words


def _stats(table: Table, info: RunInfo) -> dict[str, Any]:
    took = round(info.elapsed(info.finished_at) * 1000) if info.finished_at else 0
    errors = table.reasons[2]
    return {
        "successes": table.passed,
        "failures": sum(table.reasons) - table.passed - errors,
        "errors": errors,
        "tokenUsage": _known(table.spent),
        "durationMs": took,
        "evaluationDurationMs": took,
    }


def _known(sums: Mapping[str, Any]) -> dict[str, Any]:
    """Sums of `tokenUsage`; one that is no figure any more counts as none is known, as promptfoo has it."""
    return {
        key: _known(value)
        if isinstance(value, dict)
        else figures.count(value, f"{key} tokens of all attempts") or 0
        for key, value in sums.items()
    }


def _time(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
