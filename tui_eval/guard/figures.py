"""Figures from outside: counts, costs, times and scores, from whoever reports them.

A count is a whole number from 0 to `MOST`; an amount (USD, milliseconds, seconds) is finite, not negative and
at most that; a score is finite. Anything else is unknown (None), and whoever listens (`unknown`) is notified.
Everything kept afterwards fits SQLite's columns, JSON and msgspec's types, sums included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any, TypeGuard

import msgspec

from tui_eval.model import Attempt, Entry, JudgeUse, Reply, TraceSpan, Usage, Verdict

MOST = 2**63 - 1
unknown: ContextVar[Callable[[str, str], None] | None] = ContextVar("unknown", default=None)
"""Takes the name of each figure that was dropped and a line about it; None: nobody listens."""
_SHOWN = 40
_LEAST = 1e-12
"""Dollars below which nothing is told apart."""
LATEST = 253_402_300_799.0
"""The last second of the year 9999, which calendars can still show."""


@contextmanager
def dropped_figures() -> Iterator[dict[str, None]]:
    """While inside, the lines about figures that were dropped, each once, and nobody else is notified."""
    dropped: dict[str, None] = {}
    listening = unknown.set(lambda _, line: dropped.setdefault(line))
    try:
        yield dropped
    finally:
        unknown.reset(listening)


def count(value: Any, name: str) -> int | None:
    """A count, called `name` for people (`input tokens`); whole floats count, text and booleans do not."""
    if value is None or (type(value) is int and 0 <= value <= MOST):
        return value
    if isinstance(value, float) and 0 <= value < MOST and value.is_integer():
        return int(value)
    tell(name, value, "a whole number from 0 to 2^63 - 1")
    return None


def amount(value: Any, name: str) -> float | None:
    """A cost or a time."""
    if value is None or (type(value) is float and 0 <= value <= MOST):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= MOST:
        return float(value)
    tell(name, value, "a number from 0 to 2^63 - 1")
    return None


def usd(dollars: float, sign: str = "$") -> str:
    """Money for people, in four digits; what there is of it that four digits would call nothing is `<$0.0001`. Without
    a sign it is a figure that programs read, too."""
    if 0 < dollars < 0.00005:
        return f"<{sign}0.0001"
    return f"{sign}{dollars:,.4f}" if sign else f"{dollars:.4f}"


def usd_in_full(dollars: float, sign: str = "$") -> str:
    """Money that is compared with other: as `usd`, but two digits of what four would call nothing, as far as these are
    digits of money (an agent may report 1e-300)."""
    if not 0 < dollars < 0.00005:
        return usd(dollars, sign)
    return f"<{sign}{_LEAST:.12f}" if dollars < _LEAST else f"{sign}{Decimal(f'{dollars:.2g}'):f}"


def score(value: Any, name: str) -> float | None:
    """A score or weight: any finite number."""
    if value is None:
        return None
    if not isinstance(value, bool) and is_finite(value):
        return float(value)
    tell(name, value, "a finite number")
    return None


def is_finite(value: Any) -> TypeGuard[int | float]:
    """Whether this is a number that a float can hold; integers of any length are asked for too."""
    try:
        return isinstance(value, int | float) and math.isfinite(value)
    except OverflowError:
        return False


def all_finite(value: Any) -> bool:
    """Whether all numbers of a value that came as JSON are ones that JSON has: Python writes and reads NaN too. Texts
    are passed over: one of many megabytes would hold up the other cases; and it may be nested however deep."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                return False
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return True


def as_float(value: float) -> float:
    """The number as JavaScript holds it: integers beyond its range are infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def tools(listed: Any) -> list[str]:
    """The names of the tools that an agent reports (`tools_used`), one for each entry; "" for an entry without one.

    An entry is a name, or an object as replies list calls (`{"name": …}`, `{"function": {"name": …}}`). A mapping of
    names to anything is its names.
    """
    if isinstance(listed, Mapping):
        listed = [listed] if tool_name(listed) else list(listed)
    if not isinstance(listed, list | tuple | set | frozenset):
        listed = [] if listed is None else [listed]
    return [tool_name(one) for one in listed]


def reported_tools(metadata: Mapping[str, Any] | None) -> tuple[list[str], int | None]:
    """The tools that a reply's metadata names, and how many calls it counts; none, and None, where it says nothing."""
    given = metadata or {}
    counted = given.get("tool_call_count")
    return tools(given.get("tools_used")), counted if type(counted) is int and counted >= 0 else None


def calls_seen(replies: Iterable[Reply], transcript: Iterable[Entry]) -> list[int]:
    """How many tool calls a transcript has before each reply, and at the end how many come after the last."""
    turns = [entry.turn for entry in transcript if entry.kind == "tool_call"]
    found: list[int] = []
    for reply in replies:
        left = [turn for turn in turns if turn > reply.turn]
        found.append(len(turns) - len(left))
        turns = left
    return [*found, len(turns)]


def tool_calls(replies: Sequence[Reply], transcript: Iterable[Entry]) -> int | None:
    """The tool calls of a conversation: reply by reply those that were seen, that its metadata names or that it counts,
    whichever are the most. None where that is no count any more."""
    *seen, after = calls_seen(replies, transcript)
    calls: list[int | None] = [after]
    for reply, known in zip(replies, seen, strict=True):
        said = reply.metadata if isinstance(reply.metadata, dict) else {}
        counted = count(said.get("tool_call_count"), "tool calls")
        calls.append(max(known, counted or 0, len(tools(said.get("tools_used")))))
    return total(calls, "tool calls")


def tool_name(entry: Any) -> str:
    """The name of one tool; "" where none is said."""
    if isinstance(entry, Mapping):
        inner = entry.get("function")
        inner = inner if isinstance(inner, Mapping) else entry
        keys = ("name", "tool", "tool_name", "toolName", "function")
        return next((one for key in keys if isinstance(one := inner.get(key), str) and one), "")
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        return str(entry)
    return entry if isinstance(entry, str) else ""


def thought_beside(usage: Mapping[str, Any], counted: int, *, declared: bool = False) -> int:
    """Tokens of thinking that are paid for as output, and are not among the `counted` of an answer's input and output:
    xAI says them beside these and in the total, Gemini's compatible end in the total alone (not where they must be
    `declared`)."""
    said = usage.get("total_tokens", usage.get("totalTokens"))
    if type(said) is not int or not counted < said <= MOST:
        return 0
    details = usage.get("completion_tokens_details", usage.get("output_tokens_details"))
    thought = details.get("reasoning_tokens") if isinstance(details, dict) else usage.get("reasoningTokens")
    rest = said - counted
    return rest if thought == rest or (thought in (None, 0) and not declared) else 0


def total(counts: Iterable[int | None], name: str) -> int | None:
    """The sum of what is known; None where nothing is, or where it is no count any more."""
    found: int | None = None
    for one in counts:
        if one is not None:
            found = one if found is None else found + one
    return count(found, name) if found is not None else None


def tokens(given: int | None, answered: int | None, name: str = "tokens") -> int | None:
    """Input and output tokens together; None where neither is known, or the sum is no count any more."""
    if given is None or answered is None:
        return count(answered if given is None else given, name)
    return count(given + answered, name)


def tokens_said(
    said: Sequence[Any], replies: Sequence[Reply], whole: Usage | None, kind: str
) -> tuple[Any, list[int]]:
    """Tokens of a conversation whose replies may say them in their metadata (`said`, None where one does not), where
    others have a usage; `whole` is the usage of all. And the turns of which nothing is known, where others are."""
    used = [getattr(reply.usage, kind) if reply.usage is not None else None for reply in replies]
    known = getattr(whole, kind) if whole is not None else None
    counts = [own if given is None else given for given, own in zip(said, used, strict=True)]
    # What no reply has as its own: of a turn that was not answered.
    more = max(0, (known or 0) - sum(filter(None, used)))
    silent = [reply.turn for reply, one in zip(replies, counts, strict=True) if one is None]
    if all(given is None for given in said):
        return known, [] if known is None or more else silent
    return sum(filter(None, counts)) + more, [] if more else silent


def total_amount(amounts: Iterable[float | None], name: str) -> float | None:
    """The same of costs or times."""
    found: float | None = None
    for one in amounts:
        if one is not None:
            found = one if found is None else rounded_sum(found + one)
    return amount(found, name) if found is not None else None


def rounded_sum(found: float) -> float:
    """A sum as exact as prices are: 3.6, where adding makes 3.5999999999999996 of it."""
    return round(found, 10)


def reaches(spent: float, limit: float) -> bool:
    """Whether a sum has come to a limit: ten times 0.01 are 0.1, though adding makes a little less of it."""
    return spent >= limit or rounded_sum(spent) >= limit


def usage_sum(parts: Iterable[Usage | None]) -> Usage | None:
    """Tokens of all parts together; what none of them says stays unsaid, None where there are none."""
    known = [part for part in parts if part is not None]
    if not known:
        return None
    if len(known) == 1:
        return usage(msgspec.structs.replace(known[0]))
    return Usage(
        total([part.input_tokens for part in known], "input tokens of all requests"),
        total([part.output_tokens for part in known], "output tokens of all requests"),
        total([part.cached_tokens for part in known], "cached tokens of all requests"),
    )


def judge_use(before: JudgeUse | None, more: JudgeUse | None) -> JudgeUse | None:
    """What judges took together; None where none was asked."""
    if before is None or more is None:
        return before or more
    return JudgeUse(
        before.calls + more.calls,
        usage_sum((before.usage, more.usage)),
        total_amount((before.cost, more.cost), "cost of the judges"),
        before.cached + more.cached,
        total_amount((before.saved, more.saved), "cost saved"),
    )


def judge_tokens(used: JudgeUse | None) -> int | None:
    """Input and output tokens of judges together; None where neither is known."""
    usage = used.usage if used is not None else None
    return (
        tokens(usage.input_tokens, usage.output_tokens, "tokens of the judges") if usage is not None else None
    )


def usage(given: Usage | None) -> Usage | None:
    """Tokens as somebody else made them, checked in place."""
    if isinstance(given, Usage):
        # A usage is looked at at each border; most are nothing but counts.
        sent, answered, cached = given.input_tokens, given.output_tokens, given.cached_tokens
        if type(sent) is not int or not 0 <= sent <= MOST:
            given.input_tokens = count(sent, "input tokens")
        if type(answered) is not int or not 0 <= answered <= MOST:
            given.output_tokens = count(answered, "output tokens")
        if cached is not None and (type(cached) is not int or not 0 <= cached <= MOST):
            given.cached_tokens = count(cached, "cached tokens")
    return given


_OBJECTS = ("metadata", "structure", "sly_data", "guardrails")
_TEXTS = ("model", "finish_reason")
"""Parts of a reply that have a shape of their own; agents of other packages fill them too."""


def reply(given: Reply) -> Reply:
    """A reply, checked in place."""
    took = given.latency_ms
    usage(given.usage)
    if given.cost is not None:
        given.cost = amount(given.cost, "cost")
    if took is not None and (type(took) is not float or not 0 <= took <= MOST):
        given.latency_ms = amount(took, "latency")
    for key in _OBJECTS:
        value = getattr(given, key)
        if value is not None and not isinstance(value, dict):
            # Kept as it is, the whole run could not be read again.
            setattr(given, key, None)
            tell(key.replace("_", " "), value, "an object")
    for key in _TEXTS:
        value = getattr(given, key)
        if value is not None and not isinstance(value, str):
            setattr(given, key, None)
            tell(key.replace("_", " "), value, "a text")
    if given.log_probs is not None and not all(
        type(one) is not bool and is_finite(one) for one in given.log_probs
    ):
        # Left out one by one, the others would stand for tokens that they are not of.
        given.log_probs = None
        tell("log probabilities", "a list", "a list of finite numbers")
    return given


def scores(given: Mapping[str, Any], name: str) -> dict[str, float]:
    """Those of named scores that are finite numbers."""
    found = {key: score(value, f"{name} {key}") for key, value in given.items()}
    return {key: value for key, value in found.items() if value is not None}


def attempt(given: Attempt) -> Attempt:
    """Everything in an attempt that is a figure, in place: the last border before it is kept. A score that is
    none is 0, and so never a pass by itself; what was dropped is noted at the end of the transcript."""
    dropped: dict[str, None] = {}
    listening = unknown.set(lambda _, line: dropped.setdefault(line))
    try:
        _check(given)
    finally:
        unknown.reset(listening)
    if dropped:
        turn = given.transcript[-1].turn if given.transcript else 1
        given.transcript.extend(Entry(turn=turn, kind="note", text=line) for line in dropped)
    return given


def _check(given: Attempt) -> None:
    # Looked at here, one by one, before it is asked: nearly all figures are what they should be.
    used, took, began = given.usage, given.duration_ms, given.started_at
    if isinstance(used, Usage):
        usage(used)
        # Each may be a count, and both together none.
        tokens(used.input_tokens, used.output_tokens, "input and output tokens together")
    if given.cost is not None:
        given.cost = amount(given.cost, "cost")
    if given.judging is not None:
        usage(given.judging.usage)
        judge_tokens(given.judging)
        given.judging.cost = amount(given.judging.cost, "cost of the judges")
    if type(took) is not float or not 0 <= took <= MOST:
        given.duration_ms = amount(took, "duration")
    if type(began) is not float or not 0 <= began <= LATEST:
        given.started_at = moment(began, "start") or 0.0
    given.tool_call_count = count(given.tool_call_count, "tool calls")
    given.retries = count(given.retries, "retries") or 0
    given.score = score(given.score, "score") or 0.0
    if given.named_scores:
        given.named_scores = scores(given.named_scores, "score")
    if given.named_weights:
        given.named_weights = scores(given.named_weights, "weight")
    for verdict in given.verdicts:
        _verdict(verdict)
    for entry in given.transcript:
        _entry(entry)
    for one in given.replies:
        reply(one)
    for exchange in given.exchanges:
        status, took, began = exchange.status, exchange.duration_ms, exchange.started_at
        if type(status) is not int or not 0 <= status <= MOST:
            exchange.status = count(status, "HTTP status")
        if type(began) is not float or not 0 <= began <= LATEST:
            exchange.started_at = moment(began, "start of a request")
        if type(took) is not float or not 0 <= took <= MOST:
            exchange.duration_ms = amount(took, "duration of a request")
    for span in given.trace.spans if given.trace is not None else ():
        _span(span)


def moment(value: Any, name: str) -> float | None:
    """Seconds since the epoch, of a year that a calendar has."""
    if value is None or (type(value) is float and 0 <= value <= LATEST):
        return value
    found = amount(value, name)
    if found is not None and found > LATEST:
        tell(name, value, "a time before the year 10000")
        return None
    return found


def _verdict(verdict: Verdict) -> None:
    if type(verdict.score) is not float or not math.isfinite(verdict.score):
        verdict.score = score(verdict.score, f"score of {verdict.type}") or 0.0
    if type(verdict.weight) is not float or not math.isfinite(verdict.weight):
        verdict.weight = score(verdict.weight, f"weight of {verdict.type}") or 0.0


def _entry(entry: Entry) -> None:
    used, began, first, took = entry.usage, entry.started_at, entry.first_token_ms, entry.duration_ms
    if used is not None:
        usage(used)
    if began is not None and (type(began) is not float or not 0 <= began <= LATEST):
        entry.started_at = moment(began, "start of a step")
    if first is not None and (type(first) is not float or not 0 <= first <= MOST):
        entry.first_token_ms = amount(first, "time to the first token")
    if took is not None and (type(took) is not float or not 0 <= took <= MOST):
        entry.duration_ms = amount(took, "duration of a step")


def _span(span: TraceSpan) -> None:
    span.start = amount(span.start, "start of a span")
    span.end = amount(span.end, "end of a span")
    span.status = score(span.status, "status of a span")


def tell(name: str, value: Any, wanted: str) -> None:
    """Notify whoever listens that what was reported under this name could not be taken."""
    listener = unknown.get()
    if listener is not None:
        listener(name, f"{name} unknown: {_shown(value)} was reported, which is not {wanted}")


_LINE = re.compile(r"(.{1,80}?) unknown: .* was reported, which is not ", re.DOTALL)


def retell(line: str) -> bool:
    """Notify of such a line once more where it was kept with an answer; whether it is one, and somebody listens."""
    listener, found = unknown.get(), _LINE.match(line)
    if listener is None or found is None:
        return False
    listener(found[1], line)
    return True


def _shown(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else repr(value)
    except Exception:  # Python does not write integers of more than 4,300 digits, and objects may refuse
        text = f"a value of type {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
