"""The entries of a results file as cases and attempts; whatever is absent or odd in them is left open."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tui_eval.case_names import short_prompts, short_providers
from tui_eval.causes import NEEDS_TRUST
from tui_eval.guard import figures
from tui_eval.model import (
    OUTCOMES,
    Assertion,
    Attempt,
    Case,
    DataDetails,
    Entry,
    Evidence,
    JudgeUse,
    Outcome,
    Reply,
    Trace,
    Turn,
    Usage,
    Verdict,
)
from tui_eval.store.column_names import in_columns
from tui_eval.store.notes import HumanNote
from tui_eval.store.schema import FROM_FILE, UNNAMED

_OWN = f"{FROM_FILE}own-"
"""Begins it where the file says the suite's own."""
T = TypeVar("T")


def own_content(content_hash: str) -> str:
    """The hash of a case's content in its suite; empty where that is not known, as of an older results file: it has the
    messages that were sent, and a conversation that broke has fewer."""
    own = content_hash.removeprefix(_OWN)
    return "" if own.startswith(FROM_FILE) else own


def case_edited(before: str, after: str) -> bool:
    """Whether a case was edited between two results, by the hashes of its content; not said where one is not known."""
    hashes = own_content(before), own_content(after)
    return all(hashes) and hashes[0] != hashes[1]


class ResultsGroup(msgspec.Struct):
    """One case with one agent and model: its attempts in order, numbered without gaps; `left` more were asked for
    and never ran; `noted` is what a person noted on some of them."""

    case: Case
    agent: str
    model: str | None
    required: int = 0
    attempts: list[Attempt] = []
    left: int = 0
    noted: list[tuple[Attempt, HumanNote]] = []


def grouped(document: dict[str, Any], place: str, started_at: float) -> list[ResultsGroup]:
    """The results of a document, which are taken out of it, by case, agent and model, in the file's order. `started_at`
    (seconds since the epoch) is for results that do not say it themselves."""
    groups: dict[tuple[str, str, str | None], ResultsGroup] = {}
    required = _required(document.get("cases"))
    entries: list[dict[str, Any]] = document.pop("results")
    entries.reverse()
    while entries:  # what has been made into an attempt is not held a second time
        entry = entries.pop()
        case = _case(entry)
        agent = _agent(entry)
        model = _text(entry.get("model")) or None
        key = (case.case_id, agent, model)
        if key not in required and (case.case_id, agent, None) in required:
            key = (case.case_id, agent, None)  # nobody asked for the model that the server named
        group = groups.get(key)
        if group is None:
            group = groups[key] = ResultsGroup(case, agent, key[2])
        group.attempts.append(_attempt(entry, case, agent, model, started_at))
        if (note := _note(entry.get("note"), case.case_id)) is not None:
            group.noted.append((group.attempts[-1], note))
    for entry in _list(document.get("not_run")):
        case, agent, model = (
            _case(entry),
            _agent(entry),
            _text(entry.get("model")) or None,
        )
        group = groups.setdefault((case.case_id, agent, model), ResultsGroup(case, agent, model))
        group.left += 1
    for key, group in groups.items():
        asked = sorted(group.attempts, key=lambda one: one.attempt)
        first = max(1, asked[0].attempt) if asked else 1
        for number, attempt in enumerate(asked, first):
            attempt.attempt = number
        group.attempts = asked
        planned = len(asked) + group.left
        group.required = required.get(key, planned)
        group.case.attempts, group.case.required = planned, group.required
    places = {
        case_id: place for place, case_id in enumerate(dict.fromkeys(case_id for case_id, _, _ in groups), 1)
    }
    for group in groups.values():
        group.case.order = places[group.case.case_id]
    _name_columns([group.case for group in groups.values()])
    return list(groups.values())


def _agent(entry: dict[str, Any]) -> str:
    """Who was asked, also where it was nobody: a case that no part of a merged run has."""
    return UNNAMED if entry.get("agent") is None else _text(entry["agent"])


def _note(given: Any, case_id: str) -> HumanNote | None:
    """What a person noted on an attempt, as `reports.results` writes it; the run and the attempt are not known here."""
    said = _mapping(given)
    verdict = said.get("verdict")
    note = HumanNote(
        "",
        0,
        case_id,
        verdict if verdict in ("right", "wrong") else None,
        _text(said.get("text")),
        said.get("star") is True,
        figures.moment(said.get("at"), "note") or 0.0,
    )
    return note if note.verdict or note.text or note.star else None


_CONNECTION = re.compile(r"\[connection=([^\[\]]+)\](?:#\d+)?\Z", re.ASCII)


def _name_columns(cases: Sequence[Case]) -> None:
    """Call the prompts and providers of each suite what its reader would call them."""
    labels: dict[str, dict[str, str]] = {}
    providers: dict[str, dict[str, str]] = {}
    for case in cases:
        if case.prompt:
            labels.setdefault(case.suite, {})[case.prompt] = ""
        if in_columns(case) and (who := case.column or case.agent):
            providers.setdefault(case.suite, {})[who] = ""
    for found, shorten in ((labels, short_prompts), (providers, short_providers)):
        for names in found.values():
            if len(names) > 1:
                names.update(zip(names, shorten(list(names)), strict=True))
    for case in cases:
        case.variant = labels.get(case.suite, {}).get(case.prompt or "", "")
        if (found := _CONNECTION.search(case.case_id)) and "[connection=" not in case.name:
            case.connection = case.variant = found[1]
        case.column_name = providers.get(case.suite, {}).get(case.column or case.agent or "", "")


def _required(cases: Any) -> dict[tuple[str, str, str | None], int]:
    found: dict[tuple[str, str, str | None], int] = {}
    for item in cases if isinstance(cases, list) else []:
        if isinstance(item, dict) and (number := _needed(item.get("required"))) is not None:
            key = (_text(item.get("case_id")), _text(item.get("agent")), _text(item.get("model")) or None)
            found[key] = number
    return found


_HASH = re.compile(r"[0-9a-f]{8,64}", re.ASCII)


def _case(entry: dict[str, Any]) -> Case:
    name = _text(entry.get("name")) or "unnamed"
    details = _mapping(entry.get("details"))
    suite = _text(entry.get("suite")) or "tests"
    case = Case(
        case_id=_text(entry.get("case_id")) or f"{suite}::{name}",
        name=name,
        suite=suite,
        format=_text(entry.get("format")) or UNNAMED,
        agent=_text(entry.get("agent")) or None,
        prompt=_text(entry.get("prompt")) or None,
        vars=_mapping(entry.get("vars")),
        metadata=_mapping(entry.get("metadata")),
        column=_text(entry.get("column")),
        test_number=_place(entry.get("test_number")) or 0,
        column_number=_place(entry.get("column_number")) or 0,
    )
    if provider := {
        key: one for key, one in _mapping(entry.get("provider")).items() if key in ("id", "label")
    }:
        case.beside = {"columnProvider": provider}
    turns: dict[int, Turn] = {}
    for item in _list(entry.get("transcript")):
        turn = _place(item.get("turn"))
        if item.get("kind") == "user" and turn and turn not in turns:
            turns[turn] = Turn(text=_text(item.get("text")))
    rules = details.get("rules")  # which files of before did not say
    if isinstance(rules, dict):
        case.comparison = rules or None
    for item in _list(entry.get("assertions")):
        # What a verdict on rows expected is how many there were
        query = item.get("type") == "sql" and isinstance(rules, dict) and details.get("reference_sql")
        assertion = Assertion(
            _text(item.get("type")), query or item.get("expected"), _text(item.get("target")) or "text",
            turn=_place(item.get("turn")),
        )  # fmt: skip
        place = turns.get(assertion.turn or 0)
        (place.assertions if place is not None else case.assertions).append(assertion)
    if not entry.get("assertions") and _text(details.get("reference_sql")):
        case.assertions.append(Assertion("sql", _text(details["reference_sql"]), "rows"))
    case.turns = [turns[number] for number in sorted(turns)]
    if isinstance(template := entry.get("template"), str):
        case.turns = case.turns or [Turn(template)]  # nothing was sent: the prompt could not be made
        case.turns[0].text = template  # what was sent stands in the transcript
    if _HASH.fullmatch(own := _text(entry.get("content_hash"))):
        case.content_hash = _OWN + own
    else:
        expected = msgspec.json.encode([case.turns, case.assertions, case.vars], enc_hook=str)
        case.content_hash = FROM_FILE + hashlib.sha256(expected).hexdigest()[:16]
    _weigh(case, _list(entry.get("assertions")))
    return case


def _weigh(case: Case, entries: list[dict[str, Any]]) -> None:
    """Let the assertions say how they count, as far as the file does: it has no part in what tells an edited case."""
    if len(entries) != len(case.assertions):
        return
    for item, assertion in zip(entries, case.assertions, strict=True):
        assertion.metric = _text(item.get("metric")) or None
        if assertion.type == "assert-set":
            assertion.value = msgspec.UNSET
        weight, threshold = figures.score(item.get("weight"), "weight"), item.get("threshold")
        assertion.weight = weight if weight != 1 else None
        if isinstance(threshold, int | float) and not isinstance(threshold, bool):
            assertion.threshold = threshold
        if isinstance(place := item.get("set"), int) and 0 <= place < len(entries):
            assertion.set = place


def _attempt(entry: dict[str, Any], case: Case, agent: str, model: str | None, started_at: float) -> Attempt:
    with figures.dropped_figures() as dropped:
        attempt = _read(entry, case, agent, model, started_at)
    turn = attempt.transcript[-1].turn if attempt.transcript else 1
    attempt.transcript.extend(Entry(turn, "note", text=line) for line in dropped)
    return attempt


def _weights(entry: dict[str, Any], verdicts: list[Verdict], named: Mapping[str, float]) -> dict[str, float]:
    """The weights behind named scores: as given, else those of the verdicts that count under a name."""
    found = figures.scores(_mapping(entry.get("named_weights")), "weight")
    for verdict in verdicts if not found else ():
        if verdict.metric is not None and verdict.metric in named:
            outer = (
                verdicts[verdict.set].weight
                if verdict.set is not None and verdict.set < len(verdicts)
                else 1.0
            )
            found[verdict.metric] = found.get(verdict.metric, 0.0) + verdict.weight * outer
    return found


def _read(entry: dict[str, Any], case: Case, agent: str, model: str | None, started_at: float) -> Attempt:
    details = _mapping(entry.get("details"))
    passed, error = entry.get("passed") is True, _text(entry.get("error")) or None
    outcome: Outcome = "passed" if passed else "error" if error else "failed"
    if entry.get("outcome") in OUTCOMES:
        outcome = entry["outcome"]
    message = _text(entry.get("message")) or error or ("" if passed else "failed")
    text = _text(details.get("response_text"))
    transcript = _converted(entry.get("transcript"), Entry, turn=1)
    if not transcript:
        transcript = _transcript(details, text, error)
    verdicts = _converted(entry.get("assertions"), Verdict)
    if not verdicts and case.assertions and not isinstance(entry.get("assertions"), list):
        verdict = None if outcome == "error" else passed
        verdicts = [Verdict("sql", verdict, "rows", score=float(passed), reason=message)]
    score = figures.score(entry.get("score"), "score")
    named = figures.scores(_mapping(entry.get("named_scores")), "score")
    return Attempt(
        case_id=case.case_id,
        attempt=_place(entry.get("attempt")) or 1,
        outcome=outcome,
        agent=agent,
        model=model,
        message=message,
        score=float(passed) if score is None else score,
        named_scores=named,
        named_weights=_weights(entry, verdicts, named),
        verdicts=verdicts,
        transcript=transcript,
        replies=_with_figures(_replies(transcript, text, details), transcript, entry),
        usage=_usage(entry),
        cost=figures.amount(entry.get("cost"), "cost"),
        tool_call_count=figures.count(entry.get("tool_call_count"), "tool calls"),
        started_at=figures.moment(entry.get("started_at"), "start") or started_at,
        duration_ms=figures.amount(entry.get("duration_ms"), "duration"),
        error=error,
        data=_data(details),
        response_text=text,
        output=details.get("output"),
        vars=case.vars,
        trace=_trace(entry.get("trace")),
        cached=int(entry.get("cached") is True),
        saved=figures.amount(entry.get("saved"), "cost saved"),
        asserted_nothing=entry.get("asserted_nothing") is True,
        evidence=_evidence(entry.get("evidence"), ""),
        judging=_judging(entry.get("judging")),
    )


def _judging(given: Any) -> JudgeUse | None:
    """What judges took, where the file says so."""
    if not isinstance(given, dict):
        return None
    calls = figures.count(given.get("calls"), "answers of judges") or 0
    return JudgeUse(
        calls,
        _usage({"usage": given}),
        figures.amount(given.get("cost"), "cost of the judges"),
        figures.count(given.get("cached"), "cached answers of judges") or 0,
        figures.amount(given.get("saved"), "cost saved"),
    )


def _trace(given: Any) -> Trace | None:
    try:
        return msgspec.convert(given, Trace) if given is not None else None
    except msgspec.ValidationError:
        return None


def _transcript(details: dict[str, Any], text: str, error: str | None) -> list[Entry]:
    """What a file without a transcript says of the conversation: calls with results, and the answer."""
    entries: list[Entry] = []
    for call in _list(details.get("tool_calls")):
        name, number = _text(call.get("toolName")), _text(call.get("toolCallId")) or None
        entries.append(Entry(1, "tool_call", name=name, arguments=call.get("args"), call_id=number))
        if "result" in call:
            entries.append(Entry(1, "tool_result", name=name, result=call["result"], call_id=number))
    if text:
        entries.append(Entry(1, "assistant", text=text))
    if error:
        entries.append(Entry(1, "error", text=error))
    return entries


def _replies(transcript: list[Entry], text: str, details: dict[str, Any]) -> list[Reply]:
    output, empty = details.get("output"), details.get("empty_reply")
    said = {entry.turn: entry.text for entry in transcript if entry.kind == "assistant" and not entry.agent}
    spoken = said.copy()
    for entry in transcript:
        if entry.kind == "error":  # what was said before it is no answer, unless the file has it as one
            said.pop(entry.turn, None)
    last = max((entry.turn for entry in transcript if entry.kind == "user"), default=max(said, default=1))
    # The turns after it asked for its rows.
    last = max((turn for turn, words in said.items() if text and words == text), default=last)
    if details.get("unanswered") is not True and (
        text or output is not None or empty in ("empty", "missing")
    ):
        said[last] = text
    reported = _reported(details)
    for turn in reported:
        if turn < last:  # without text it is in no transcript
            said.setdefault(turn, spoken.get(turn, ""))
    replies = [Reply(turn=turn, text=words) for turn, words in sorted(said.items())]
    for reply in replies:
        more, reply.of_file = reported.get(reply.turn, {}), True
        for part in ("metadata", "structure", "guardrails"):
            setattr(reply, part, _mapping(more.get(part)) or None)
        reply.finish_reason = _text(more.get("finish_reason")) or None
        reply.raw = more.get("raw")
        reply.log_probs = _numbers(more.get("log_probs"))
        if reply.turn == last:
            reply.output = output
            reply.text_missing = empty == "missing" and not text and output is None
            _as_it_came(reply, details, transcript)
    return replies


def _numbers(given: Any) -> list[float] | None:
    """A list of numbers; None for anything else, of which none is left out: the others would stand for other tokens."""
    if not isinstance(given, list) or not given:
        return None
    numbers = [float(one) for one in given if isinstance(one, int | float) and not isinstance(one, bool)]
    return numbers if len(numbers) == len(given) else None


def said_tokens(transcript: Sequence[Entry]) -> dict[int, Usage]:
    """The tokens of each turn's answer, as the transcript has them beside its text."""
    return {one.turn: one.usage for one in transcript if one.kind == "assistant" and one.usage is not None}


def _reported(details: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """What the answers carried, by their turns."""
    return {turn: one for one in _list(details.get("reported")) if (turn := _place(one.get("turn")))}


def _with_figures(replies: list[Reply], transcript: list[Entry], entry: dict[str, Any]) -> list[Reply]:
    """The replies with what each took, by which budgets judge them again: as the transcript or the file says;
    what these lack of all that the attempt took is the last's of those that have none, else the last's, since
    sums are judged."""
    said = said_tokens(transcript)
    for turn, more in _reported(_mapping(entry.get("details"))).items():
        if (usage := _usage({"usage": more.get("usage")})) is not None:
            said[turn] = usage
    for reply in replies:
        reply.usage = said.get(reply.turn)
    if replies:
        silent = next((one for one in reversed(replies) if one.usage is None), replies[-1])
        by_kind = _usage({"usage": entry.get("usage")}) is not None
        lacking = _lacking(_usage(entry), figures.usage_sum(said.values()), by_kind)
        silent.usage = figures.usage_sum((silent.usage, lacking))
        replies[-1].cost = figures.amount(entry.get("cost"), "cost")
    return replies


def _lacking(whole: Usage | None, told: Usage | None, by_kind: bool) -> Usage | None:
    """What of all tokens nothing told of. An only number (not `by_kind`) is that of all kinds; answers from
    the cache took none, so that more may have been told of."""
    if whole is None or told is None:
        return whole
    if not by_kind:
        told = Usage(figures.tokens(told.input_tokens, told.output_tokens))
    pairs = [(getattr(whole, kind), getattr(told, kind) or 0) for kind in Usage.__struct_fields__]
    counts = [count - known if count is not None and count > known else None for count, known in pairs]
    return None if all(count is None for count in counts) else Usage(*counts)


def _as_it_came(reply: Reply, details: dict[str, Any], transcript: list[Entry]) -> None:
    """Put the answer in place of what transforms left of it, or note that only this is known. Older files of
    ours have it in the transcript alone, where a text cannot be told from an object."""
    answer, said = (
        details.get("answer"),
        [one for one in transcript if one.kind == "assistant" and not one.agent],
    )
    if isinstance(answer, dict):
        reply.text, reply.output, reply.text_missing = _text(answer.get("text")), answer.get("output"), False
    elif details.get("transformed") is True:
        reply.transformed = True
    elif not reply.text or not said or said[-1].turn != reply.turn or "unanswered" in details:
        return
    elif all(one.text != reply.text for one in said):
        came = said[-1].text
        reply.transformed = came.lstrip().startswith(("{", "["))
        if not reply.transformed:
            reply.text, reply.output = came, None


def _usage(entry: dict[str, Any]) -> Usage | None:
    """Ours by kind; an only number stands for both."""
    given = _mapping(entry.get("usage"))
    counts = [
        figures.count(given.get(f"{kind}_tokens"), f"{kind} tokens") for kind in ("input", "output", "cached")
    ]
    if any(count is not None for count in counts):
        return Usage(*counts)
    total = figures.count(entry.get("tokens"), "tokens")
    return None if total is None else Usage(input_tokens=total)


def _data(details: dict[str, Any]) -> DataDetails | None:
    keys = ("expected_data", "actual_data", "comparison", "reference_sql", "verification_sql")
    if all(details.get(key) is None for key in keys):
        return None
    expected, actual = (
        None if not isinstance(details.get(key), list) else _list(details[key])
        for key in ("expected_data", "actual_data")
    )
    return DataDetails(
        expected=expected,
        actual=actual,
        columns=list(dict.fromkeys(str(name) for row in expected or actual or [] for name in row)),
        comparison=_text(details.get("comparison")) or None,
        reference_sql=_text(details.get("reference_sql")) or None,
        verification_sql=_text(details.get("verification_sql")) or None,
        settings={**_truncated(details, actual), **_not_finite(details)},
    )


_ROWS_OF_BEFORE = 1000
"""At which earlier versions cut rows, without a word."""


def _truncated(details: dict[str, Any], actual: Sequence[Any] | None) -> dict[str, Any]:
    """How many rows there were where the file has not all of them; True where it does not say it."""
    said = details.get("truncated")
    if said is None and actual is not None and len(actual) == _ROWS_OF_BEFORE:
        return {"truncated": True}
    counts = {
        side: figures.count(_mapping(said).get(side), f"{side} rows") for side in ("expected", "actual")
    }
    if all(count is not None for count in counts.values()):
        return {"truncated": counts}
    return {"truncated": True} if said else {}


def _not_finite(details: dict[str, Any]) -> dict[str, Any]:
    """Where numbers stood that JSON does not have."""
    return {"not_finite": said} if isinstance(said := details.get("not_finite"), dict) else {}


def _converted(values: Any, kind: type[T], **always: Any) -> list[T]:
    """Those entries of a list that have the shape; nulls are what is not said, `always` what then holds."""
    found: list[T] = []
    for item in _list(values):
        needed = {"passed", "expected", "actual", "result", "arguments"}
        checked = {**item, **{key: check(item[key], key) for key, check in _FIGURES.items() if key in item}}
        given = {key: value for key, value in checked.items() if value is not None or key in needed}
        given = {**always, **given}
        if item.get("kind") in ("note", "error") and item.get("turn") == 0:  # before the first turn
            given["turn"] = 0
        try:
            found.append(msgspec.convert(given, kind, strict=False))
        except msgspec.ValidationError:
            continue
    return found


def _list(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _place(value: Any) -> int | None:
    """The number of a turn or an attempt: from 1 to what people write."""
    known = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _LAST_PLACE
    return value if known else None


def _needed(value: Any) -> int | None:
    """How many attempts of a case must pass: none where `--threshold 0` asked for none."""
    return 0 if value == 0 and type(value) is int else _place(value)


def _evidence(value: Any, name: str) -> list[Evidence] | None:
    """What a verdict rests on, as `reports.results` writes it; None where the file does not say, or says something
    else."""
    if not isinstance(value, list):
        return None
    found: list[Evidence] = []
    for item in value[:_MOST_EVIDENCE]:
        try:
            one = msgspec.convert(item, Evidence)
        except msgspec.ValidationError:
            return None
        places = (one.start, one.end, one.row, one.column, one.call)
        if any(place is not None and not 0 <= place <= _LAST_CHARACTER for place in places):
            return None
        if one.code == NEEDS_TRUST:  # a person agrees to its words: none are taken from a file
            return None
        found.append(one)
    return found or None


_MOST_EVIDENCE = 1000
_LAST_CHARACTER = 2**31


def _usage_of(value: Any, name: str) -> dict[str, Any] | None:
    counts = {key: figures.count(one, key.replace("_", " ")) for key, one in _mapping(value).items()}
    return {key: one for key, one in counts.items() if one is not None} or None


_LAST_PLACE = 1_000_000
_FIGURES: dict[str, Callable[[Any, str], Any]] = {
    "score": figures.score,
    "weight": figures.score,
    "started_at": figures.moment,
    "first_token_ms": figures.amount,
    "duration_ms": figures.amount,
    "usage": _usage_of,
    "evidence": _evidence,
    # A verdict about the whole conversation has none.
    "turn": lambda value, _: None if value is None else _place(value) or 1,
    "set": lambda value, _: value if value == 0 else _place(value),
    "line": lambda value, _: _place(value),
}
"""What is a figure in an entry or a verdict, and how it is checked."""
