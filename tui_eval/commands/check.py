"""`tui-eval check`: everything in the files that will not run, cannot be judged or cannot fail."""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeGuard

import msgspec
from msgspec import UNSET, UnsetType

from tui_eval import vacuity
from tui_eval.commands.expected_sql import ExpectedSql, leaks, problems_of
from tui_eval.commands.listing import load_paths
from tui_eval.commands.output import EXIT_NOTHING, EXIT_OK, EXIT_USAGE, CommandError, counted, put, say
from tui_eval.commands.readiness import not_ready
from tui_eval.config.project import AgentSpec, ConfigError, load, masker, passed_over, unused_rules
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingToRun, SelectionError
from tui_eval.engine.wants import wants
from tui_eval.formats import format_of
from tui_eval.formats.format import COLUMNS
from tui_eval.guard.spelling import close_to
from tui_eval.guard.text import visible
from tui_eval.guard.trust import fingerprints, in_order
from tui_eval.guard.trust_store import trust_for
from tui_eval.javascript.values import number_text
from tui_eval.model import OWN_JUDGES, Assertion, Case, Problem, Suite
from tui_eval.store.printed_commands import shell_line
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError

_SHOWN = 20
"""Notes of one kind that are printed with their places; of more, how many there are."""


def check(
    paths: Sequence[str],
    config_file: str | None,
    trust: bool,
    without_answer: bool = False,
    configs: Sequence[str] = (),
) -> int:
    """Print every problem as `path:line: key: what is wrong, what to do`; with `without_answer` also the
    cases that pass against an agent that answers nothing."""
    config, reads, loaded, problems = load_paths(paths, config_file, trust, configs)
    wanted = wants(loaded, config, reads)
    trusted = trust_for(config.root, trust)
    expected = ExpectedSql(config, trusted)
    cases = [case for suite in loaded if format_of(suite.format).checks_queries for case in suite.cases]
    progress = Counting("expected SQL")
    expected.try_all(cases, progress.at)
    progress.end()
    problems += problems_of(cases, expected, config)
    problems += asyncio.run(_faults(loaded))
    broken = [one for suite in loaded for one in format_of(suite.format).broken_values(suite, config.root)]
    problems += broken
    problems += _odd_values(loaded)
    problems += not_ready(loaded, config, trusted)
    whole = config.root in [Path(path).absolute() for path in paths or ["."]] and not configs
    of_suites = [suite.path for suite in loaded if suite.path]
    problems += unused_rules(config, of_suites, whole)
    problems += passed_over(config, of_suites) if config_file is None else []
    places = {(one.path, one.line, one.key) for one in broken}  # that it cannot fail is not so where it errs
    problems += [one for one in _idle(loaded) if (one.path, one.line, one.key) not in places]
    if any(format_of(suite.format).checks_queries and suite.cases for suite in loaded):
        problems += leaks(loaded, config, trusted, expected)
    if without_answer:
        problems += vacuous(paths, config_file, trust)
    errors, notes, kinds = _print(masker(config).value(problems))
    if told := _trust_line(wanted, paths, configs, config_file):
        say(visible(masker(config).text(told), newlines=False))
    count = sum(len(suite.cases) for suite in loaded)
    files = sum(1 for suite in loaded if suite.path)
    told = counted(notes, "note") + (f" of {counted(kinds, 'kind')}" if kinds < notes else "")
    say(f"{counted(files, 'file')}, {counted(count, 'case')}: {counted(errors, 'error')}, {told}")
    if errors:
        return EXIT_USAGE
    # Hooks may add cases where no test of their file makes one.
    return EXIT_OK if count or any(suite.settings.get(COLUMNS) for suite in loaded) else EXIT_NOTHING


async def _faults(loaded: Sequence[Suite]) -> list[Problem]:
    """What the formats find in their suites that no answer can meet: patterns, schemas and code that do not compile.
    Nothing of a suite's own code is run."""
    suites: dict[str, list[Suite]] = {}
    for suite in loaded:
        suites.setdefault(suite.format, []).append(suite)
    return [problem for name, own in suites.items() for problem in await format_of(name).faults(own)]


def _trust_line(
    wanted: Sequence[str], paths: Sequence[str], configs: Sequence[str], config_file: str | None
) -> str:
    """What needs trust when the suites are run, code first, and the command that agrees to just that."""
    if not wanted:
        return ""
    listed = in_order(wanted)
    more = f"; {len(listed) - _SHOWN:,} more that are not agreed to by this" if len(listed) > _SHOWN else ""
    words = ["tui-eval", "run", *paths, *(word for path in configs for word in ("-c", path))]
    words += ["--config", config_file] if config_file else []
    words += ["--trust-only", fingerprints(listed[:_SHOWN])]
    return (
        f"trust: when run, {counted(len(listed), 'thing')} will need it: {'; '.join(listed[:_SHOWN])}{more}. Look at "
        f"each, then agree to just these: {shell_line(words)}"
    )


class Counting:
    """How far something has come, on stderr: a line that is written over on a terminal, else one a few seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._tty = sys.stderr.isatty()
        self._told = time.monotonic()
        self._shown = False

    def at(self, done: int, total: int) -> None:
        """So many of so many are done; said at most ten times a second (not on a terminal: every five seconds)."""
        now = time.monotonic()
        if now - self._told < (0.1 if self._tty else 5.0):
            return
        self._told, self._shown = now, True
        line = f"{self._what}: {done:,} of {total:,}"
        put(f"\r{line}" if self._tty else f"{line}\n", sys.stderr)

    def end(self) -> None:
        """It is done: a line that was written over goes."""
        if self._shown and self._tty:
            put("\r\x1b[K", sys.stderr)


def _print(problems: Sequence[Problem]) -> tuple[int, int, int]:
    """Print each problem once; how many errors there are, how many notes, and how many of these say different
    things."""
    alike: dict[tuple[str, str], list[Problem]] = {}
    errors = 0
    for problem in dict.fromkeys(problems):
        if problem.level == "error":
            errors += 1
            say(visible(str(problem), newlines=False))
            for line in problem.picture.splitlines():
                say(f"    {visible(line, newlines=False)}")
            continue
        same = alike.setdefault((problem.message, problem.cure), [])
        same.append(problem)
        if len(same) <= _SHOWN:
            say(visible(f"{problem} (note)", newlines=False))
    for same in alike.values():
        if len(same) > _SHOWN:
            more = f"{same[0].message} (note): {len(same) - _SHOWN:,} more places"
            say(visible(more, newlines=False))
    return errors, sum(map(len, alike.values())), len(alike)


def _idle(loaded: Sequence[Suite]) -> Iterator[Problem]:
    """A note for all that cannot fail, and for files that hold no case."""
    for suite in loaded:
        if not suite.cases and not suite.problems:
            yield Problem(suite.path, 0, "", "holds no case: nothing of it runs", level="note")
        for case, part in vacuity.distinct(suite.cases):
            path = case.path
            yield Problem(path, part.line or case.line, part.key, part.message, part.cure, level="note")


# -- `tui-eval check --vacuous`: the cases that pass against an agent that answers nothing.


_SILENT = "an agent that answers nothing"


def vacuous(paths: Sequence[str], config_file: str | None, trust: bool) -> list[Problem]:
    """A note for each case that passes without an answer. Nothing is kept, no model is asked, and a case
    with a recorded output is left out, since it has no agent.

    Raises:
        CommandError: the suites cannot be run at all.
    """
    config = load([Path(path).absolute() for path in paths or ["."]], config_file)
    config.agents[_SILENT] = AgentSpec(_SILENT, "silent", typed=True)
    # What a judge would say of no answer is not worth its price.
    config.judge = None
    config.suites = [msgspec.structs.replace(rule, judge=None) for rule in config.suites]
    request = RunRequest(
        paths=list(paths), agents=[_SILENT], models=["none"], attempts=1, trust=trust, config_file=config_file
    )
    with tempfile.TemporaryDirectory(prefix="tui-eval-") as folder:
        try:
            active = prepare(request, config=config, store=Store(Path(folder)))
        except NothingToRun:
            return []
        except (SelectionError, ConfigError, StoreError) as error:
            raise CommandError(str(error)) from None
        active.environment.asks_models = False
        asyncio.run(active.execute())
        assert active.writer is not None
        reader = RunReader(active.writer.folder)
        try:
            return _passing(reader)
        finally:
            reader.close()


def _passing(reader: RunReader) -> list[Problem]:
    notes: list[Problem] = []
    passed = {row.case_ref: row.message for row in reader.attempts() if row.outcome == "passed"}
    for row in reader.cases():
        if row.id not in passed:
            continue
        case = reader.case(row.id)
        if case.provider_output not in (None, ""):
            continue
        why = ": nothing is asserted" if passed[row.id] == "nothing asserted" else ""
        notes.append(
            Problem(
                path=case.path,
                line=case.line,
                key=case.name,
                message=f"passes against an agent that answers nothing{why}",
                level="note",
            )
        )
    return notes


# -- Values that are read and cannot be meant so: a limit that no score reaches, bounds that cross, a value of the wrong
# kind, a ratio that nobody can pass. Verdicts stay those of the format's own tool.


Odd = tuple[str, str]
"""What is odd, and what to do."""

_SHARES = frozenset(
    ("rouge-n", "bleu", "gleu", "meteor", "similar", "similar:cosine", "answer-relevance", "classifier",
     "context-faithfulness", "context-recall", "context-relevance", "conversation-relevance", "tool-call-f1",
     "perplexity-score")
)  # fmt: skip
"""Types whose score goes from 0 to 1 and that pass from their threshold on."""
_AT_MOST = frozenset(("levenshtein", "latency", "cost", "perplexity"))
"""Types that pass where something that is never negative is not above the threshold."""
_ANY_SCORE = OWN_JUDGES | {"max-score", "pi"}
"""Types that may score more than 1."""
_REASONS = ("stop", "length", "content_filter", "tool_calls", "function_call", "error")
_SQL = ("mysql", "mariadb", "postgresql", "postgres", "transactsql", "sqlite", "bigquery", "snowflake", "athena",
        "redshift", "hive", "trino", "db2", "flinksql", "noql")  # fmt: skip
_LIMITS = "max_tool_calls, max_input_tokens, max_output_tokens"
_PIECES = frozenset(("should_not_contain", "not_keywords"))


def _odd_values(loaded: Iterable[Suite]) -> Iterator[Problem]:
    """A problem for each odd value: an error where the assertion cannot be judged with it, else a note."""
    for suite in loaded:
        for name, given in suite.settings.items():
            repeat = given.get("repeat") if name == "evaluateOptions" and isinstance(given, dict) else None
            if isinstance(repeat, float) and not repeat.is_integer():
                told = (
                    f"{repeat:g} is no number of times: it is taken for {int(repeat)}",
                    "give a whole number",
                )
                yield Problem(suite.path, 0, f"{name}.repeat", *told, level="note")
        for case in suite.cases:
            path = case.path
            for key, told in _of_case(case):
                yield Problem(path, case.line, key, *told, level="note")
            for one in case.asserted:
                place = (path, one.line or case.line, one.type)
                if (wrong := _wrong_kind(one)) is not None:
                    yield Problem(*place, *wrong)
                elif (odd := _odd(one)) is not None:
                    yield Problem(*place, *odd, level="note")


def _of_case(case: Case) -> Iterator[tuple[str, Odd]]:
    form = format_of(case.format)
    free = any(one.type.removeprefix("not-") in _ANY_SCORE for one in case.assertions)
    weighed = any((one.weight or 0) < 0 for one in case.assertions)
    scored = form.sums_up and not form.own_score(case) and not free and not weighed
    if scored and case.threshold is not None and case.threshold > 1:
        yield "threshold", (f"{case.threshold:g} is never reached: scores go up to 1", "give one from 0 to 1")
    for key, message, cure in form.odd_values(case):
        yield key, (message, cure)
    for timeout in {case.timeout, *(turn.timeout for turn in case.turns)}:
        if timeout == 0:
            yield "timeout_in_seconds", ("is 0: there is no time to answer in", "leave it out for no limit")


def _odd(one: Assertion) -> Odd | None:
    """What can be judged, and never comes out another way, or is not what it looks like."""
    kind, negated = one.type.removeprefix("not-"), one.type.startswith("not-")
    always = "it always passes" if negated else "it never passes"
    # A limit under `not-` that always holds asserts nothing, and is said as such (`vacuity`).
    limit = one.threshold if not negated else None
    if limit is not None and kind in _SHARES and limit > 1:
        return f"a threshold of {limit:g} is above every score: {always}", "give one from 0 to 1"
    if limit is not None and kind in _AT_MOST and limit < 0:
        return f"a threshold of {limit:g} is below everything: {always}", "give one of 0 or more"
    if kind == "assert-set" and limit is not None and limit > 1:
        return f"a threshold of {limit:g} is above every score of a set: {always}", "give one from 0 to 1"
    if one.weight is not None and one.weight < 0:
        return f"a weight of {one.weight:g} counts against the score", "give one of 0 or more"
    if kind == "equals" and not negated and one.value in (UNSET, None) and one.target == "text":
        return (
            "has no value: the answer is compared with the text 'undefined'",
            "say what is expected under value",
        )
    if kind == "equals" and isinstance(one.value, float) and one.target == "text":
        text = number_text(one.value)
        if text != repr(one.value):
            message = f"the number {one.value!r} is compared as the text {text!r}, as in promptfoo"
            return message, "quote it where the answer is to be that text"
    if kind == "word-count" and _is_number(one.value) and one.value < 0:
        return f"no answer has {one.value} words: {always}", "give 0 or more"
    if (
        kind == "finish-reason"
        and isinstance(one.value, str)
        and "{{" not in one.value
        and one.value not in _REASONS
    ):
        slip = close_to(one.value, _REASONS)
        cure = f"did you mean {slip!r}?" if slip else f"the usual ones: {', '.join(_REASONS)}"
        return f"{one.value!r} is no reason that promptfoo's providers end with", cure
    if kind in ("is-sql", "contains-sql") and isinstance(one.value, dict):
        named = one.value.get("databaseType")
        if isinstance(named, str) and named.lower() not in _SQL:
            slip = close_to(named, _SQL)
            return (
                f"unknown databaseType {named!r}: {always}",
                f"did you mean {slip!r}?" if slip else ", ".join(_SQL),
            )
    if kind in ("trajectory:step-count", "trace-span-count") and isinstance(one.value, dict):
        low, high = one.value.get("min"), one.value.get("max")
        if _is_number(low) and _is_number(high) and low > high:
            return f"min {low} is above max {high}: {always}", "turn them round"
    if one.target.startswith("metadata."):
        return _of_metadata(one)
    if one.value == "" and one.type in _PIECES:
        return "'' stands in every answer: it never passes", "leave it out"
    if one.value == "" and one.type == "tools_used":
        return "no tool has an empty name: it never passes", "leave it out"
    return None


def _of_metadata(one: Assertion) -> Odd | None:
    """A key of `expected` that is compared with the agent's metadata and looks as if it meant something else."""
    shown = repr(one.value)[:60]
    if one.type.startswith(("max_", "min_")):
        message = (
            f"is no limit that is known: it passes where the agent's metadata of that name equals {shown}"
        )
        return message, f"the limits are {_LIMITS}"
    if one.type == "escalation_priority" and not isinstance(one.value, str | int):
        return f"passes where the agent's metadata of that name equals {shown}", "give it as text, as high"
    return None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _open(value: Any) -> bool:
    """A text that may become anything: a template, a file, code."""
    return isinstance(value, str) and (
        value.startswith(("file://", "package:")) or "{{" in value or "{%" in value
    )


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _bounds(*names: str) -> Callable[[Any], bool]:
    def sound(value: Any) -> bool:
        return not isinstance(value, dict) or all(
            value.get(name) is None or _is_number(value[name]) or _open(value[name]) for name in names
        )

    return sound


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_KINDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "javascript": (_is_text, "code as text"),
    "python": (_is_text, "code as text"),
    "llm-rubric": (lambda value: isinstance(value, str | dict | list), "what is asked of the answer"),
    "finish-reason": (_is_text, "the reason as text"),
    "rouge-n": (_is_text, "the reference as text"),
    "gleu": (lambda value: _is_text(value) or _texts(value), "the reference as text, or a list of them"),
    "bleu": (lambda value: _is_text(value) or _texts(value), "the reference as text, or a list of them"),
    "tool-call-f1": (lambda value: _is_text(value) or _texts(value), "a list of tools"),
    "moderation": (lambda value: value in (UNSET, None) or _texts(value), "a list of categories, or nothing"),
    "skill-used": (
        lambda value: not isinstance(value, dict) or bool(value.get("name") or value.get("pattern")),
        "a name, or a mapping with name or pattern",
    ),
    "trajectory:step-count": (_bounds("min", "max"), "min and max as numbers"),
    "trace-span-count": (
        lambda value: isinstance(value, dict) and "pattern" in value and _bounds("min", "max")(value),
        "a mapping with pattern, and min and max as numbers",
    ),
    "trace-span-duration": (
        lambda value: isinstance(value, dict) and "max" in value and _bounds("max", "percentile")(value),
        "a mapping with max as a number",
    ),
    "trace-error-spans": (_bounds("max_count", "max_percentage"), "max_count, max_percentage as numbers"),
    "max-score": (
        lambda value: not isinstance(value, dict)
        or (value.get("method", "average") in ("average", "sum") and _bounds("threshold")(value)),
        "method: average or sum, threshold as a number",
    ),
    "is-sql": (
        lambda value: not isinstance(value, dict)
        or all(isinstance(value.get(name) or [], list) for name in ("allowedTables", "allowedColumns")),
        "allowedTables and allowedColumns as lists",
    ),
}  # fmt: skip
"""By type what can be judged with its value, and how the value is to be given."""


def _wrong_kind(one: Assertion) -> Odd | None:
    kind = one.type.removeprefix("not-")
    if (
        one.type in ("keywords", "not_keywords")
        and one.target == "text"
        and not isinstance(one.value, str | UnsetType)
    ):
        return f"text cannot be searched for {one.value!r}", "quote it"
    if kind not in _KINDS or _open(one.value):
        return None
    sound, wanted = _KINDS[kind]
    if sound(one.value):
        return None
    given = "nothing" if one.value in (UNSET, None) else repr(one.value)[:60]
    return f"cannot be judged with {given}", f"give {wanted} under value"
