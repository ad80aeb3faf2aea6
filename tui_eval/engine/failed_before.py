"""What failed before: in a results file, ours or promptfoo's, and in the last run; with what never ran there, of which
nothing failed, and which is no success."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tui_eval.case_names import FILLED_IN
from tui_eval.engine.case_filters import FilterError
from tui_eval.engine.request import RunRequest
from tui_eval.guard.spelling import some_of
from tui_eval.model import Case
from tui_eval.model_ids import names_model
from tui_eval.store.case_state import Column, column_of
from tui_eval.store.missing_cases import is_numbered, may_be_missing
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, is_alive
from tui_eval.store.schema import CaseHistory
from tui_eval.store.shard_runs import PATHS
from tui_eval.store.summary import summarise

History = Mapping[str, Sequence[CaseHistory]]
"""The results of cases, by id."""


def by_results(cases: list[Case], request: RunRequest) -> list[Case]:
    """The cases that did not pass in a results file: ours, or promptfoo's.

    Raises:
        FilterError: there is no such file, or it is none of these.
    """
    for option, file in _files(request):
        if file is not None:
            cases = _of_rows(cases, option, _rows(option, file))[0]
    return cases


def _failed(option: str, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if _outcome(row) in _MEANT[option]]


def _of_rows(cases: list[Case], option: str, found: _Rows) -> tuple[list[Case], list[dict[str, Any]]]:
    """The cases that those rows of a results file are of which an option means, and the rows that are of none of them.
    Ours say which case that is; promptfoo's are told by their variables, or else, since those are not always what the
    suite has, by the description."""
    known = {case.case_id for case in cases}
    ids: set[str] = set()
    theirs: dict[tuple[str, str, Any], list[dict[str, Any]]] = {}
    left: list[dict[str, Any]] = []
    for row in _failed(option, found.rows):
        own = _ours(row).get("case_id")
        if own in known:
            ids.add(own)
        elif isinstance(own, str):
            left.append(row)
        else:
            theirs.setdefault((_described(row), _told(_given(row)), _number(row)), []).append(row)
    kept = {place for place, case in enumerate(cases) if case.case_id in ids}
    if theirs:
        alike = _Alike(cases, found)
        for (name, key, number), group in theirs.items():
            places = alike.places(name, key, number, group[0])
            kept.update(places)
            left += [] if places else group
    return [case for place, case in enumerate(cases) if place in kept], left


class _Rows(NamedTuple):
    """The rows of a results file, whether it was written by a run with hooks, which may add any variables, and in which
    paths the cases of its plan were looked for, as far as it says that."""

    rows: list[dict[str, Any]]
    hooked: bool
    paths: list[str]


def _rows(option: str, file: str) -> _Rows:
    from tui_eval.store.imported.results_files import most_bytes  # imported late: few runs name a file

    try:
        if (size := os.stat(file).st_size) > most_bytes():
            raise FilterError(f"{option} {file}: {size / 1e9:,.1f} GB, too much for this machine's memory")
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise FilterError(f"{option} {file}: cannot be read: {reason}") from None
    hooked = False
    paths: list[str] = []
    try:
        if file.endswith(".jsonl"):
            found: Any = [json.loads(line) for line in text.splitlines() if line.strip()]
        else:
            found = json.loads(text)
            never = _not_run(found) if isinstance(found, dict) else None
            paths = _paths(found) if isinstance(found, dict) else []
            config = found.get("config") if isinstance(found, dict) else None
            hooked = isinstance(config, dict) and bool(config.get("extensions"))
            found = found.get("results") if isinstance(found, dict) else found
            found = found.get("results") if isinstance(found, dict) else found
            if isinstance(found, list) and isinstance(never, list):
                found = [*found, *never]
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise FilterError(f"{option} {file}: no results file (tui-eval's JSON or promptfoo's)")
    return _Rows([row for row in found if isinstance(row, dict)], hooked, paths)


def _not_run(document: dict[str, Any]) -> Any:
    """What never ran, as the file has it; promptfoo's has a place for what others know beside."""
    beside = document.get("metadata")
    ours = beside.get("tuiEval") if isinstance(beside, dict) else None
    return ours.get("not_run") if isinstance(ours, dict) else document.get("not_run")


def _paths(document: dict[str, Any]) -> list[str]:
    """In which paths the cases of its plan were looked for, where a file of ours has it."""
    found: Any = document.get("run")
    for name in ("provenance", PATHS):
        found = found.get(name) if isinstance(found, dict) else None
    return [path for path in found if isinstance(path, str)] if isinstance(found, list) else []


def _outcome(row: dict[str, Any]) -> str:
    if isinstance(row.get("outcome"), str):
        return row["outcome"]
    if row.get("success"):
        return "passed"
    return "error" if row.get("failureReason") == 2 else "failed"


def _ours(row: dict[str, Any]) -> dict[str, Any]:
    """What a file of ours says of a row; one in promptfoo's format has a place for that."""
    beside = row.get("tuiEval")
    return beside if isinstance(beside, dict) and "case_id" not in row else row


def _described(row: dict[str, Any]) -> str:
    """A row's description; empty where promptfoo filled one in."""
    name = _line(_test(row).get("description"))
    return "" if FILLED_IN.fullmatch(name) else name


def _test(row: dict[str, Any]) -> dict[str, Any]:
    test = row.get("testCase")
    return test if isinstance(test, dict) else {}


def _option(row: dict[str, Any], name: str) -> Any:
    options = _test(row).get("options")
    return options.get(name) if isinstance(options, dict) else None


def _number(row: dict[str, Any]) -> int | None:
    number = row.get("testIdx")
    return number if isinstance(number, int) else None


def _line(text: Any) -> str:
    return " ".join(str(text or "").split())


def _vars(row: dict[str, Any]) -> dict[str, Any]:
    values = row.get("vars")
    return values if isinstance(values, dict) else {}


def _given(row: dict[str, Any]) -> dict[str, Any]:
    """A row's variables without those that its run added to its test's, as far as the row has the test's."""
    values, own = _vars(row), _test(row).get("vars")
    if not own or not isinstance(own, dict):
        return values
    return {name: value for name, value in values.items() if name in own}


# -- promptfoo's files do not have the variables as the suite has them: what its run added is there, texts of JSON are
# written anew, dates are `{}`, and what looks like a secret is taken out.

_TAKEN_OUT = re.compile(r'\[REDACTED\]|%5BREDACTED%5D|(?:^|")\[\.\.\.\](?:$|")|://\*\*\*')
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?!\d)")


def _told(values: Mapping[str, Any]) -> str:
    """Variables in JavaScript's numbers and its spelling of JSON, whatever the order of keys, without those
    of a run."""
    return json.dumps({name: _value(value) for name, value in _lasting(values)}, sort_keys=True)


def _lasting(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The variables that are no state of a run, as promptfoo tells them."""
    return (
        (name, value) for name, value in values.items() if not (name.startswith("_") or name == "sessionId")
    )


def _value(value: Any) -> str:
    if isinstance(value, str) and value.lstrip()[:1] not in ("{", "["):
        return json.dumps(value)  # most are plain texts, and there may be a hundred thousand
    from tui_eval.javascript import values as js

    with contextlib.suppress(TypeError, ValueError, OverflowError, RecursionError, js.ScriptValueError):
        return json.dumps(js.parse_json(js.json_text(js.json_spelled(value))), sort_keys=True)
    return repr(value)


def _fits(ours: Any, theirs: Any) -> bool:
    """Whether a value may have become that in promptfoo's file."""
    if isinstance(theirs, str):
        if not isinstance(ours, str):
            return _TAKEN_OUT.search(theirs) is not None
        first, second = _json(ours), _json(theirs)
        if first is not None and second is not None:
            return _fits(first, second)
        if ours == theirs or _TAKEN_OUT.search(theirs):
            return True
        return "://" in ours and _address(ours) == _address(theirs)
    if isinstance(theirs, dict):
        if isinstance(ours, str):
            return not theirs and _DATE.match(ours) is not None
        same = isinstance(ours, dict) and ours.keys() == theirs.keys()
        return same and all(_fits(ours[key], item) for key, item in theirs.items())
    if isinstance(theirs, list):
        same = isinstance(ours, list) and len(ours) == len(theirs)
        return same and all(map(_fits, ours, theirs))
    return _value(ours) == _value(theirs)


def _json(text: str) -> Any:
    """What a text of JSON holds, where that is an object or an array."""
    from tui_eval.javascript import values as js

    with contextlib.suppress(ValueError, RecursionError):
        found = js.parse_json(text)
        return found if isinstance(found, dict | list) else None
    return None


def _address(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text).strip().rstrip("/").casefold()


class _Alike:
    """The cases that a row of promptfoo's may be of."""

    def __init__(self, cases: Sequence[Case], found: _Rows) -> None:
        self._cases = cases
        self._found = found
        self._keys = [_told(case.vars) for case in cases]
        self._by_key: dict[str, list[int]] = {}
        for place, key in enumerate(self._keys):
            self._by_key.setdefault(key, []).append(place)

    def places(self, name: str, key: str, number: int | None, row: dict[str, Any]) -> list[int]:
        """Of a row of that description, variables and number: those that have both. Else those of the
        description whose variables fit, or else all of it, and those that have its variables; or else any
        whose variables fit. A case that a row of another test is exactly of is not this one's: it stands for
        none that is gone."""
        same = self._by_key.get(key, [])
        if called := [place for place in same if name in self._names(place)]:
            return called
        named = (
            [place for place in self._by_name.get(name, []) if self._is_free(place, number)] if name else []
        )
        fitting = [place for place in named if self._fit(place, row)] or named
        if found := [*fitting, *(place for place in same if self._is_free(place, number))]:
            return found
        return [
            place
            for place in self._near(_given(row))
            if self._fit(place, row) and self._is_free(place, number)
        ]

    def _names(self, place: int) -> set[str]:
        """What a row of a case may have for its description: our writer puts the name there."""
        case = self._cases[place]
        return {_line(case.description), _line(case.name)}

    def _is_free(self, place: int, number: int | None) -> bool:
        """Whether no row of another test than that has the case's description and its variables."""
        for name in self._names(place):
            owners = self._owners.get((name, self._keys[place]))
            if owners is not None and (number is None or number not in owners):
                return False
        return True

    def _fit(self, place: int, row: dict[str, Any]) -> bool:
        """Whether a case's variables may have become those of a row; it lacks none but what a run adds."""
        own, values = dict(_lasting(self._cases[place].vars)), dict(_lasting(_vars(row)))
        if not own.keys() <= values.keys():
            return False
        if not self._found.hooked and not _option(row, "transformVars"):
            more = {name for name, _ in _lasting(_given(row))} - own.keys()
            if not more <= self._stored:
                return False
        return all(_fits(value, values[name]) for name, value in own.items())

    @functools.cached_property
    def _owners(self) -> dict[tuple[str, str], set[int | None]]:
        """The numbers of the tests that have rows of a description and variables."""
        found: dict[tuple[str, str], set[int | None]] = {}
        for row in self._found.rows:
            if not isinstance(_ours(row).get("case_id"), str):
                found.setdefault((_described(row), _told(_given(row))), set()).add(_number(row))
        return found

    @functools.cached_property
    def _stored(self) -> set[str]:
        """The variables into which tests put their outputs: those after them have these, too."""
        names = (_option(row, "storeOutputAs") for row in self._found.rows)
        return {name for name in names if isinstance(name, str)}

    @functools.cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for place in range(len(self._cases)):
            for name in self._names(place):
                found.setdefault(name, []).append(place)
        return found

    @functools.cached_property
    def _by_value(self) -> dict[str, dict[str, list[int]]]:
        found: dict[str, dict[str, list[int]]] = {}
        for place, case in enumerate(self._cases):
            for name, value in _lasting(case.vars):
                found.setdefault(name, {}).setdefault(_value(value), []).append(place)
        return found

    def _near(self, values: Mapping[str, Any]) -> Sequence[int]:
        """The cases that have a value of these which nothing in promptfoo's file changes; all where there is none."""
        near: Sequence[int] = range(len(self._cases))
        for name, value in _lasting(values):
            known = self._by_value.get(name)
            plain = isinstance(value, int | float) or (
                isinstance(value, str) and "://" not in value and not _TAKEN_OUT.search(value)
            )
            if known is not None and plain:
                near = min(near, known.get(_value(value), []), key=len)
        return near


# -- What never ran.


_NAMED = 4
"""Cases that are named."""
_LOOKED_AT = 20
"""Runs with attempts that never ran, that are looked at."""


def looks_back(request: RunRequest) -> bool:
    """Whether a request is for what failed before."""
    return request.failed_only or any(file is not None for _, file in _files(request))


def never_ran(
    root: Path,
    request: RunRequest,
    asked: Collection[str],
    history: History,
    runs_now: Callable[[str, Column], bool],
    cases: Callable[[], list[Case]],
) -> str:
    """Which of the cases `asked` for (ids) never ran to their end in what a request looks back at, with what
    runs them, in words; empty: none. Cases of which only the number is known count, where any of `asked` may
    be one; those that run now do not: if they do not end either, their own run says it. What failed in a file
    and is none of the `cases` that there are counts, too. `history` has the results by case id.

    Raises:
        FilterError: a results file cannot be read.
    """
    told: list[str] = []
    for option, file in _files(request):
        if file is None:
            continue
        every = _rows(option, file)
        rows = [
            (str(row.get("case_id")), str(row.get("name")))
            for row in every.rows
            if _outcome(row) == "not run" and not runs_now(str(row.get("case_id")), _column_in(row))
        ]
        known = {
            str(_ours(row).get("case_id")) for row in every.rows if not is_numbered(str(row.get("name")))
        }
        if names := _of_these(rows, asked, len(may_be_missing(asked, known, every.paths))):
            told.append(
                f"{_were(names)} in {file}: go on with its run where that is (tui-eval resume), or name them (-s)"
            )
        if not _names_some(request):
            told += _gone(root, option, file, _of_rows(cases(), option, every)[1], cases())
    if request.failed_only and (words := _last_cut(Store(root), request, asked, history, runs_now)):
        told.append(words)
    return "; ".join(told)


def _names_some(request: RunRequest) -> bool:
    """Whether a request is for named cases beside what failed: what is not there is none of those."""
    return bool(
        request.select
        or request.case_ids
        or request.cells
        or request.filter_metadata
        or request.filter_pattern is not None
    )


def _gone(
    root: Path, option: str, file: str, rows: Iterable[dict[str, Any]], cases: Iterable[Case]
) -> list[str]:
    """That tests which failed in a file are not here, in words. Those of suites that are elsewhere are not
    asked for."""
    here = {case.suite for case in cases}
    names: dict[Any, str] = {}
    for row in rows:
        ours = _ours(row)
        suite = ours.get("suite")
        if isinstance(suite, str) and suite not in here and os.path.exists(root / suite):
            continue
        number = row.get("testIdx")
        name = _line(ours.get("name")) or _described(row) or (
            f"Row #{number + 1}" if isinstance(number, int) else "one without a name"
        )  # fmt: skip
        names[ours.get("case_id") or (number, name)] = name
    if not names:
        return []
    count = "1 test" if len(names) == 1 else f"{len(names):,} tests"
    shown = list(dict.fromkeys(names.values()))
    is_not = "is" if len(names) == 1 else "are"
    told = f"{count} that failed in {file} {is_not} not here any more ({some_of(shown, _NAMED)})"
    return [f"{told}: changed, renamed or gone since; run without {option}, or name what they are now (-s)"]


def _files(request: RunRequest) -> tuple[tuple[str, str | None], ...]:
    return (
        ("--filter-failing", request.filter_failing),
        ("--filter-failing-only", request.filter_failing_only),
        ("--filter-errors-only", request.filter_errors_only),
    )


_MEANT: dict[str, tuple[str, ...]] = {
    "--filter-failing": ("failed", "error"),
    "--filter-failing-only": ("failed",),
    "--filter-errors-only": ("error",),
}
"""The outcomes that each means."""


def _column_in(row: Mapping[str, Any]) -> Column:
    """Who was to be asked, as a row of a results file says it."""
    return Column(str(row.get("agent") or ""), str(row.get("model") or ""))


def _last_cut(
    store: Store,
    request: RunRequest,
    asked: Collection[str],
    history: History,
    runs_now: Callable[[str, Column], bool],
) -> str:
    """As `never_ran`, of the last run that was cut, or lacks parts, and of which some cases have not been run since."""
    from tui_eval.store.index import Index  # late: most runs look back at none
    from tui_eval.store.printed_commands import way_on
    from tui_eval.store.shard_runs import mending, merged_of, paths_in

    def ran_since(case_id: str, column: Column | None, moment: float) -> bool:
        """Whether a case has a result in a column (None: in any) since then, or runs now."""
        results = [one for one in history.get(case_id, ()) if column is None or column_of(one) == column]
        return any(one.finished_at >= moment for one in results) or (
            column is not None and runs_now(case_id, column)
        )

    index = Index(store.root)
    cut = [run.id for run in index.runs() if run.never_ran and not run.linked_to]
    merged = index.merged() if cut else {}
    for run_id in cut[:_LOOKED_AT]:
        folder = store.folder_of(run_id)
        own = merged.get(run_id)
        if is_alive(folder) or (own and any(own < parts for parts in merged.values())):
            continue  # what was merged of more parts says by itself what it lacks
        rows: list[tuple[str, str]] = []
        known: dict[str, set[Column]] = {}
        numbered: set[Column] = set()
        with contextlib.suppress(StoreError), contextlib.closing(RunReader(folder)) as reader:
            info = reader.info()
            for case, attempts in reader.by_case():
                column = Column(case.agent, case.model or "")
                if not is_numbered(case.name):
                    known.setdefault(case.case_id, set()).add(column)
                if not _is_named(column, request) or summarise(case, attempts).outcome is not None:
                    continue
                if is_numbered(case.name):
                    numbered.add(column)
                    rows.append((case.case_id, case.name))
                elif not ran_since(case.case_id, column, info.started_at):
                    rows.append((case.case_id, case.name))
            unnamed = may_be_missing(asked, known, paths_in(info)) if numbered else []
            # Where cases have each a column of their own, nobody knows that of one of which only the number is known.
            exact = set().union(*known.values()) == numbered
            unnamed = [
                case_id
                for case_id in unnamed
                if any(not ran_since(case_id, one if exact else None, info.started_at) for one in numbered)
            ]
            if names := _of_these(rows, asked, len(unnamed)):
                how = mending(info) if merged_of(info.provenance) else f"go on with: {way_on(run_id, info)}"
                return f"{_were(names)} in run {run_id}: {how}"
    return ""


def _is_named(column: Column, request: RunRequest) -> bool:
    """Whether a request is for that column, as far as it names any."""
    models = [model for model in request.models if names_model(model, column.model)]
    return (not request.agents or column.agent in request.agents) and (not request.models or bool(models))


def _of_these(rows: Iterable[tuple[str, str]], asked: Collection[str], unnamed: int) -> list[str]:
    """The names of those, by id and name, that are among the ids asked for, and of those of which only the
    number is known as many as may be among them."""
    found = {case_id: name for case_id, name in rows if case_id in asked or is_numbered(name)}
    beyond = set([case_id for case_id, name in found.items() if is_numbered(name)][unnamed:])
    return [name for case_id, name in found.items() if case_id not in beyond]


def _were(names: Sequence[str]) -> str:
    count = "1 case" if len(names) == 1 else f"{len(names):,} cases"
    shown = list(dict.fromkeys(names))[:_NAMED]  # several columns of a test have one name
    more = sum(name not in shown for name in names)
    return f"{count} never ran to the end ({some_of(shown, len(shown), len(shown) + more)})"
