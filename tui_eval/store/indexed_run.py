"""A run as the index holds it: its row, those of its results, and what it is called in a few words."""

from __future__ import annotations

import os
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.case_names import full_name, number_of_test
from tui_eval.causes import is_of_file
from tui_eval.guard import figures
from tui_eval.guard.text import storable_text
from tui_eval.model import JUDGED
from tui_eval.store.case_state import Column
from tui_eval.store.clock_jumps import ahead_of, went_on_after
from tui_eval.store.judged_under import compat_of, other_rules
from tui_eval.store.missing_cases import lacks_of
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import DATABASE, Store, project_of_run
from tui_eval.store.schema import Asked, AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import merged_of, shard_words
from tui_eval.store.summary import CaseSummary, CaseTaker, RunSums, summarise

_NAMED = 3
"""Cases of one test that the name of what was run says one by one."""


def _mark(case_id: str) -> bytes:
    return blake2b(case_id.encode(), digest_size=8).digest()


def _case_set(marks: Iterable[bytes]) -> tuple[bytes, bytes]:
    """Which cases a run has, and a digest of that; most runs of a project have those of another."""
    joined = b"".join(sorted(marks))
    return blake2b(joined, digest_size=16).digest(), joined


def _asked(info: RunInfo) -> Asked:
    """Whose choice the columns of a run were, by what it was asked for."""
    given = info.options
    again = ("cells", "pairs", "continue_from", "rescores", "step")
    if any(given.get(name) for name in again) or given.get("first_attempt", 1) != 1:
        return "again"
    if given.get("agents") or given.get("models"):
        return "named"  # with `--failed`, too: the column is asked because it was named
    return "again" if given.get("failed_only") or given.get("changed_only") else "own"


class Results:
    """The rows of a run's results. Those of a large run are packed meanwhile: as tuples they would take more memory
    than all else at its end."""

    def __init__(self) -> None:
        self.latest = 0.0
        """When the last attempt of them ended, in seconds since the epoch; 0: none did."""
        self.again: Collection[str] = ()
        """The cases whose rows are those of a run that asked some columns again."""
        self._packed: list[bytes] = []
        self._rows: list[Sequence[Any]] = []

    def add(self, row: tuple[Any, ...]) -> None:
        """One more.

        Raises:
            ValueError, OverflowError: a value is none that can be stored.
        """
        self.latest = max(self.latest, row[7])
        self._rows.append(row)
        if len(self._rows) == _PACKED_TOGETHER:
            self._packed.append(zlib.compress(_encode(self._rows), 1))
            self._rows = []

    def pieces(self) -> Iterator[Sequence[Sequence[Any]]]:
        """All of them in their order, some thousands at a time."""
        for packed in self._packed:
            yield self._asked(_decode(zlib.decompress(packed)))
        yield self._asked(self._rows)

    def _asked(self, rows: Sequence[Sequence[Any]]) -> Sequence[Sequence[Any]]:
        if not self.again:
            return rows
        return [(*row[:14], "again", *row[15:]) if row[1] in self.again else row for row in rows]


_PACKED_TOGETHER = 2000
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[tuple[Any, ...]]).decode


def rows_of(
    store: Store,
    info: RunInfo,
    reader: RunReader,
    together: Mapping[Column, Mapping[str, CaseSummary]],
    beside: CaseTaker | None,
) -> tuple[tuple[Any, ...], Results, bytes]:
    """A run's row without when it was written, those of its results, and the marks of its cases; `together` is
    what its cases have come to with the runs that it adds to. `beside` takes each case."""
    rows = _Rows(store, info, together)
    for case, attempts in reader.by_case():
        own = summarise(case, attempts)
        if beside is not None:
            beside(case, attempts, own)
        rows.add(case, attempts, own)
    results = rows.results()
    run, marks = rows.run(reader)
    return run, results, marks


class _Rows:
    """A run's row and those of its results, while its cases are gone through."""

    def __init__(
        self, store: Store, info: RunInfo, together: Mapping[Column, Mapping[str, CaseSummary]]
    ) -> None:
        self._info, self._together = info, together
        self._asked: str = _asked(info)
        self._judged_by = compat_of(info)
        # A part of a run, or a step, in which nothing was judged changes nothing of what there was.
        self._is_part = bool(info.linked_to or info.stepped)
        self._judged_here = bool(info.linked_to) and os.path.isfile(
            store.folder_of(str(info.linked_to)) / DATABASE
        )
        self._outcomes = {"passed": 0, "failed": 0, "error": 0, "cancelled": 0}
        """How many attempts ended so."""
        self._cases = self._attempts = self._cached = self._failed = self._errors = 0
        self._costs = 0
        """How many attempts have a cost."""
        self._cost: float | None = None
        self._saved: float | None = None
        self._tokens: list[int | None] = []
        self._took = array("d")
        """Milliseconds of each answer that was judged."""
        self._judges = RunSums()
        self._open: set[str] = set()
        """The cases of which not enough has ended."""
        self._marks: set[bytes] = set()
        self._named: list[StoredCase] = []
        self._of_one_name = True
        self._results = Results()

    def add(self, case: StoredCase, attempts: Sequence[AttemptRow], own: CaseSummary) -> None:
        """One case more, with what its attempts in this run have come to."""
        self._cases += 1
        self._marks.add(_mark(case.case_id))
        if not self._named or case.name == self._named[0].name:
            self._named = [*self._named, case][: _NAMED + 1]
        else:
            self._of_one_name = False
        finished, answers = self._add_attempts(attempts)
        self._failed += own.outcome == "failed"
        self._errors += own.outcome == "error"
        self._cached += own.cached
        self._judges.add_judges(own)
        if own.saved is not None:
            self._saved = figures.total_amount([self._saved, own.saved], "cost saved")
        now = own
        if self._together:
            now = self._together.get(Column(own.agent, own.model or ""), {}).get(own.case_id, own)
        if own.outcome is None or now.outcome is None:  # nor of what it adds to, or judges, has enough ended
            self._open.add(own.case_id)
        elif self._says_something(own, attempts):
            self._results.add(self._result(case, attempts, own, now, finished, answers))

    def _add_attempts(self, attempts: Sequence[AttemptRow]) -> tuple[float, str]:
        """Count the attempts of a case; when the last of them ended, and what tells its answers from others."""
        self._attempts += len(attempts)
        info, finished = self._info, 0.0
        answers: list[str] = []
        for row in attempts:
            if row.state != "done":
                continue
            if row.started_at is not None:  # no two answers of one column began in the same millisecond
                answers.append(f"{row.started_at:.3f}/{row.attempt}")
            if row.outcome in self._outcomes:
                self._outcomes[row.outcome] += 1
            # An answer judged again has the duration that it took, not that of the judging.
            end = (row.started_at or info.started_at) + (row.duration_ms or 0) / 1000
            finished = max(min(end, info.finished_at or end), finished)
            if row.cost is not None:
                self._cost = figures.total_amount([self._cost, row.cost], "cost")
                self._costs += 1
            if row.judges:  # the answer took its time and tokens where it was given
                continue
            self._tokens.append(figures.tokens(row.input_tokens, row.output_tokens))
            if row.duration_ms is not None and row.outcome in JUDGED:
                self._took.append(row.duration_ms)
        return finished, " ".join(answers)

    def _says_something(self, own: CaseSummary, attempts: Sequence[AttemptRow]) -> bool:
        """Whether what a case came to here is a result of it."""
        if self._is_part and own.outcome in ("cancelled", "skipped"):
            return False
        # The results file lacks what judging needs, and the run is here.
        return not (self._judged_here and all(row.judges and is_of_file(row.alike) for row in attempts))

    def _result(
        self,
        case: StoredCase,
        attempts: Sequence[AttemptRow],
        own: CaseSummary,
        now: CaseSummary,
        finished: float,
        answers: str,
    ) -> tuple[Any, ...]:
        """The row of a case's result; `now` is what it has come to with the runs that this one adds to."""
        # What an answer cost is in its own run; how long it took is said wherever it is judged.
        again = [row.judges for row in attempts if row.judges]
        judged = max(judges.rpartition("/")[0] for judges in again) if again else None
        rules = now.compat or self._judged_by(own.suite)
        return (
            self._info.id, own.case_id, own.agent, own.model, now.outcome, now.passed, now.attempts,
            finished, own.duration_ms, None if judged is not None else own.tokens, own.cost,
            case.content_hash, now.message, own.attempts, self._asked,
            now.cause, now.alike, now.cached, _judging(own, attempts), rules, now.unjudged, judged or "", answers,
        )  # fmt: skip

    def results(self) -> Results:
        """The rows of the results."""
        if self._asked == "own":
            # A run that was ended before it had asked all columns of a case says nothing of which these are.
            self._results.again = self._open
        return self._results

    def run(self, reader: RunReader) -> tuple[tuple[Any, ...], bytes]:
        """The run's own row, and the marks of its cases."""
        info, outcomes, judges, took = self._info, self._outcomes, self._judges, self._took
        named = reader.listed(self._named) if self._of_one_name else []
        suites = {case.suite for case in named}
        digest, marks = _case_set(self._marks)
        run = (
            info.id, info.state, info.started_at, info.finished_at, what(info, self._cases, reader.folder), ", ".join(info.agents),
            self._attempts, outcomes["passed"], outcomes["failed"], outcomes["error"], outcomes["cancelled"], self._cost,
            info.linked_to, self._cached, self._saved, info.stepped, info.paused_for,
            " ".join(name for name, _ in merged_of(info.provenance)),
            self._costs, len(self._tokens) - self._tokens.count(None), name_of_cases(named),
            suites.pop() if len(suites) == 1 else "", other_rules(info),
            figures.total([judges.judge_tokens], "tokens of the judges"),
            figures.amount(judges.judge_cost, "cost of the judges"), judges.judge_cached,
            figures.amount(judges.judge_saved, "cost saved"),
            ahead_of(info), self._failed, self._errors, lacks_of(info), went_on_after(info),
            self._results.latest,
            figures.total(self._tokens, "tokens"), sum(took) / len(took) if took else None, digest,
        )  # fmt: skip
        return run, marks


def _judging(own: CaseSummary, attempts: Sequence[AttemptRow]) -> float | None:
    """What judging a case takes where no answer of a judge is kept (`CaseHistory.judge_cost`)."""
    if any(row.judge_cached and row.judge_saved is None for row in attempts):
        return None
    known = [amount for amount in (own.judge_cost, own.judge_saved) if amount is not None]
    return figures.total_amount(known, "cost of the judges") if known else None


def name_of_cases(cases: Sequence[StoredCase]) -> str:
    """What cases of one name are called: as lists call that, with what tells each from the others of its suite, where
    these are not too many."""
    told = [f"{case.variant} {number_of_test(case.case_id, case.suite, case.name)}".strip() for case in cases]
    parts = list(dict.fromkeys(told))
    common = [len(set(letters)) == 1 for letters in zip(*parts, strict=False)]
    shared = parts[0][: common.index(False) if False in common else len(common)] if len(parts) > 1 else ""
    shared = shared[: shared.rfind(" ") + 1]
    parts[1:] = [part.removeprefix(shared) for part in parts[1:]]
    more = ", ".join(filter(None, parts)) if len(parts) <= _NAMED else ""
    return full_name(cases[0].name, more) if cases else ""


def places(info: RunInfo, folder: Path) -> list[str]:
    """The paths of a run as people are shown them: a whole project goes by the name of its folder."""
    project = project_of_run(folder)
    name = storable_text(project.name) if project is not None else ""  # it need not be UTF-8
    return [name if path == "." and name else path for path in info.paths or ["."]]


def what(info: RunInfo, cases: int, folder: Path) -> str:
    """A run in a few words: its paths, how many cases, and which shard it is."""
    told = places(info, folder)
    named = ", ".join(told[:3]) + (" …" if len(told) > 3 else "")
    part = shard_words(info.provenance)
    return f"{named} ({cases} case{'' if cases == 1 else 's'}{', ' if part else ''}{part})"
