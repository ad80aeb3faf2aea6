"""The cases of a plan that no part of it has: a merged run holds them as rows that have not run, so that
whatever counts or lists cases says that they are missing. And the files that could not be read whole: what
they hold is no case."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tui_eval.case_names import without_number
from tui_eval.guard.spelling import some_of
from tui_eval.guard.text import clip, visible
from tui_eval.model import Case, Problem
from tui_eval.store.column_names import suites_in_columns
from tui_eval.store.encoding import pack
from tui_eval.store.pending import storable_rows
from tui_eval.store.run_folders import StoreError
from tui_eval.store.schema import FROM_FILE, UNNAMED, UNREAD, RunInfo, StoredCase
from tui_eval.store.shard_runs import MISSING_OF, without_gap

if TYPE_CHECKING:
    from tui_eval.store.merging import Whole

BESIDE = "never_ran"
"""Under which the provenance of a run of what failed before has which cases never ran there, in words."""
HOOKS_FAILED = "hooks_failed"
"""Under which that of a run has which hooks failed at its end, in words."""


class MissingCase(NamedTuple):
    """A case with one agent and model, as far as it is known."""

    case: Case
    agent: str
    model: str | None
    attempts: int
    required: int


def is_only_named(case: StoredCase) -> bool:
    """Whether a run knows a case from a results file, or by its name, only: nobody can be asked it from here."""
    return case.content_hash.startswith(FROM_FILE)


_NUMBERED = r"(?a)case [\d,]+ of [\d,]+ that no part has"


def is_numbered(name: str) -> bool:
    """Whether the name of a case stands for one of which only the number is known (`may_be_missing`)."""
    return re.fullmatch(_NUMBERED, name) is not None


def may_be_missing(asked: Iterable[str], known: Collection[str], paths: Iterable[str]) -> list[str]:
    """Those of these cases, by their ids, that may be of a plan of which only the number of the missing ones is known:
    none that its parts have (`known`), nor one that is not under its paths. Where no path is known, or what is known is
    not under them, any may be."""
    places = [os.path.normpath(path) for path in paths]
    starts = tuple(f"{place}{mark}" for place in places for mark in ("/", "::"))
    anywhere = not places or "." in places or not all(case_id.startswith(starts) for case_id in known)
    return [case_id for case_id in asked if case_id not in known and (anywhere or case_id.startswith(starts))]


_MISSING = f"{FROM_FILE}missing"
_REASON = 160
"""Characters of a run's note that stand beside each case that has not run."""


def why_not_run(case: StoredCase, info: RunInfo) -> str:
    """Why a case of a run has not run, shortly, since it stands beside each of them; empty where nothing says it."""
    if case.content_hash == _MISSING:
        return "no part has it"
    return clip(without_gap(info), _REASON)


_Counts = dict[tuple[str, str | None], tuple[int, int]]
"""Attempts, and how many of them have to pass, by agent and model."""


def missing_cases(whole: Whole) -> list[MissingCase]:
    """What no part has. Where the parts know its ids, in the columns in which the other cases of its suite
    were asked; of a suite that no part has nobody knows them, nor its format. Else as many as are missing, by
    their number."""
    in_columns: set[str] = set()
    for part in whole.parts:
        with contextlib.suppress(StoreError):
            in_columns |= suites_in_columns(part.reader, part.cases)
    rows = [case for part in whole.parts for case in part.cases]
    known = {row.case_id for row in rows}
    suites: dict[str, _Suite] = {}
    for row in rows:
        suites.setdefault(row.suite, _Suite(row.format, row.suite in in_columns)).add(row)
    found: list[MissingCase] = []
    names = [name for name in whole.missing_names if name not in known]
    for case_id in names:
        found += _named(case_id, suites)
    numbers = ", ".join(map(str, whole.missing_shards))
    place = f"shard{'s' * (len(whole.missing_shards) > 1)} {numbers}" if numbers else "no shard"
    kinds = {row.format for row in rows}
    kind = kinds.pop() if len(kinds) == 1 else UNNAMED
    columns = _of_all(rows, suites) if rows else _NOBODY
    for number in range(1, whole.missing - len(names) + 1):
        name = f"case {number} of {whole.missing:,} that no part has"
        case = Case(f"{place}::{name}", name, place, kind, content_hash=_MISSING)
        found += [MissingCase(case, *column, *counts) for column, counts in columns.items()]
    return found


_NOBODY: _Counts = {("", None): (1, 1)}


class _Suite:
    """In which columns the known cases of a suite were asked: all of them, or, where each column is a case of
    its own (`in_columns`), those whose ids end alike (`_ending`). Who was asked there may be called otherwise
    than the ending."""

    def __init__(self, kind: str, in_columns: bool) -> None:
        self.kind, self.in_columns = kind, in_columns
        self.columns: _Counts = {}
        self._by_ending: dict[str, _Counts] = {}

    def add(self, row: StoredCase) -> None:
        """A known case."""
        column, counts = (row.agent, row.model), (row.attempts, row.required)
        self.columns[column] = counts
        if self.in_columns and (ending := _ending(row.case_id)):
            self._by_ending.setdefault(ending, {})[column] = counts

    def of(self, case_id: str) -> _Counts:
        """The columns of a case of it."""
        own = self._by_ending.get(_ending(case_id)) if self.in_columns else None
        return own or self.columns


def _ending(case_id: str) -> str:
    """What an id ends with behind its suite and its test: provider and prompt (`suites.identity`)."""
    parts = without_number(case_id).split("::")
    return "::".join(parts[max(2, len(parts) - 2) :])


def _of_all(rows: Sequence[StoredCase], suites: Mapping[str, _Suite]) -> _Counts:
    """The columns that a case of which only the number is known has, too: those that all suites were asked in. Nobody
    where these differ; those of one case where each column is a case of its own."""
    first, *others = suites.values()
    one = rows[0]
    if any(other.columns.keys() != first.columns.keys() for other in others):
        return {("", None): (one.attempts, one.required)}
    if any(suite.in_columns for suite in suites.values()):
        return {
            (row.agent, row.model): (row.attempts, row.required) for row in rows if row.case_id == one.case_id
        }
    return first.columns


def _named(case_id: str, suites: Mapping[str, _Suite]) -> list[MissingCase]:
    suite, _, rest = case_id.partition("::")
    kind, name, columns = UNNAMED, rest or case_id, _NOBODY
    if (own := suites.get(suite)) is not None:
        kind, columns = own.kind, own.of(case_id)
        name = (rest.rsplit("::", 2)[0] if own.in_columns else rest) or case_id
    elif suites:  # of no suite that is known: nothing but how often others are asked
        columns = {("", None): next(iter(next(iter(suites.values())).columns.values()))}
    case = Case(case_id, name, suite, kind, content_hash=_MISSING)
    return [MissingCase(case, *column, *counts) for column, counts in columns.items()]


def write_missing(
    connection: sqlite3.Connection, missing: Iterable[MissingCase], case_ref: int, attempt_ref: int
) -> None:
    """Write them behind the rows with these ids, the last ones that there are.

    Raises:
        sqlite3.Error: the disk refuses.
    """
    for one in missing:
        case_ref += 1
        row = (
            case_ref, one.case.case_id, one.case.suite, one.case.name, one.case.format, one.agent, one.model,
            one.case.content_hash, one.attempts, one.required, pack(one.case), "",
        )  # fmt: skip
        connection.execute(f"INSERT INTO cases VALUES ({','.join('?' * 12)})", storable_rows([row])[0])
        for number in range(1, one.attempts + 1):
            attempt_ref += 1
            connection.execute(
                "INSERT INTO attempts (id, case_ref, attempt, state, changed) VALUES (?, ?, ?, 'waiting', ?)",
                (attempt_ref, case_ref, number, attempt_ref),
            )


# -- Files that could not be read whole: a run of which all cases passed is no whole one then. Every report says it, as
# the console does (design.md, exit code 4).


PROBLEMS = "unread_files"
"""The part of a run's provenance that says which errors, as `path` and `text`; of many the first ones."""
_MOST_ERRORS, _LENGTH = 50, 500


class FileError(msgspec.Struct, frozen=True):
    """An error in a file; `text` is as `check` prints it, the path before it."""

    path: str
    text: str


def unread_remembered(problems: Iterable[Problem]) -> dict[str, Any]:
    """What goes into a run's provenance; empty where all files could be read. A doubled key is an error too: its case
    runs, but not as somebody wrote it."""
    errors = {str(one): one.path for one in problems if one.level == "error"}
    if not errors:
        return {}
    listed = [
        {"path": visible(path, newlines=False), "text": clip(visible(text, newlines=False), _LENGTH)}
        for text, path in list(errors.items())[:_MOST_ERRORS]
    ]
    return {UNREAD: len(errors), PROBLEMS: listed}


def unread_with(info: RunInfo, problems: Iterable[Problem]) -> dict[str, Any]:
    """What a run that goes on, or is judged again, has to remember: the errors of then, and those met now."""
    return unread_of_parts([info, msgspec.structs.replace(info, provenance=unread_remembered(problems))])


def unread_of_parts(infos: Sequence[RunInfo]) -> dict[str, Any]:
    """The same of a run that is put together: shards have met the same errors, runs of other files others. What is only
    counted counts as often as in the part that has most of it."""
    listed = list(dict.fromkeys(one for info in infos for one in unread_listed_of(info)))
    uncounted = max((unread_errors_of(info) - len(unread_listed_of(info)) for info in infos), default=0)
    count = len(listed) + max(0, uncounted)
    return {UNREAD: count, PROBLEMS: msgspec.to_builtins(listed[:_MOST_ERRORS])} if count else {}


def never_beside(info: RunInfo) -> str:
    """Which cases of a run whose failed cases these are never ran there, in words; empty: none."""
    words = info.provenance.get(BESIDE)
    return words if isinstance(words, str) else ""


def hooks_failed(info: RunInfo) -> str:
    """What the suites' own code that looks at the whole run (`afterAll`) threw, in words; empty: nothing."""
    words = info.provenance.get(HOOKS_FAILED)
    return words if isinstance(words, str) else ""


def gap_of(info: RunInfo) -> str | None:
    """What a run that was merged lacks of its plan, though all that it holds has ended; None: nothing."""
    missing = info.provenance.get("missing")
    return f"{missing} of its cases no part has" if missing else None


def lacks_words(info: RunInfo) -> str:
    """Why a run is no success though all its rows are, in words: cases that no part has, or that never ran
    where its own failed, or a hook that failed at its end; empty: it is one."""
    return gap_of(info) or never_beside(info) or hooks_failed(info)


def beside_kept(infos: Iterable[RunInfo]) -> dict[str, Any]:
    """The same, as a run remembers it that stands for these."""
    words = next(filter(None, map(never_beside, infos)), "")
    return {BESIDE: words} if words else {}


def gap_kept(info: RunInfo) -> dict[str, Any]:
    """What a run that judges all of one again has to remember of cases that it does not have: those of a
    merged one that no part has, and those that never ran where its own failed."""
    missing = info.provenance.get("missing")
    gap = {"missing": missing, MISSING_OF: info.provenance.get(MISSING_OF) or info.id} if missing else {}
    return gap | beside_kept([info])


def unread_errors_of(info: RunInfo) -> int:
    """How many errors the run's files had."""
    count = info.provenance.get(UNREAD)
    return count if isinstance(count, int) else 0


def unread_listed_of(info: RunInfo) -> list[FileError]:
    """Which ones; none where a run of an earlier version does not say."""
    try:
        return msgspec.convert(info.provenance.get(PROBLEMS) or [], list[FileError])
    except msgspec.ValidationError:
        return []


def unread_files_of(info: RunInfo) -> list[str]:
    """The files that had errors, each once."""
    return list(dict.fromkeys(one.path for one in unread_listed_of(info)))


def unread_words_of(errors: int) -> str:
    """What a run does not have, so many errors in its files; empty where there is none."""
    return (
        f"its files have {_counted(errors)}, what stands there was not run, or not as written"
        if errors
        else ""
    )


def unread_report(info: RunInfo) -> str:
    """The same for a report, with the files by name; empty where all could be read."""
    errors = unread_errors_of(info)
    if not errors:
        return ""
    where = some_of(unread_files_of(info), 5) or "its files"
    return f"The run is not whole: {_counted(errors)} in {where}; what stands there was not run, or not as written"


def _counted(errors: int) -> str:
    return "1 error" if errors == 1 else f"{errors:,} errors"


def lacks_of(info: RunInfo, unreadable: int = 0) -> str:
    """What a run does not have of its plan, of its files (`unreadable`: errors that were met just now), and of the run
    whose failed cases these are, in a few words; empty: nothing."""
    unread = unread_words_of(unreadable) or unread_words_of(unread_errors_of(info))
    never = "others never ran" if never_beside(info) else ""
    return gap_of(info) or unread or never or ("a hook failed at its end" if hooks_failed(info) else "")
