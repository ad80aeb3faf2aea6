"""Follows a run's database in a daemon thread and brings its news to the app.

The thread reads at most ten times a second while the run goes on and ends with it. It looks more often
whether anything was written, which costs a few microseconds, so that what was is shown at once: news wait
for the writer, not for the reader too. News wait until the app has taken those before: a stalled terminal
stalls nothing but its own picture.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from tui_eval.causes import NEEDS_TRUST
from tui_eval.engine.request import RequestCell
from tui_eval.guard.secrets import MASK
from tui_eval.model import Case, Evidence, Verdict, decoded
from tui_eval.store import case_state
from tui_eval.store.index import Index
from tui_eval.store.listed_names import may_be_unnamed
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import DamagedRun, Store, StoreError, is_alive
from tui_eval.store.schema import PLACE_LOST, AttemptRow, CaseHistory, LiveRow, RunInfo, StoredCase
from tui_eval.tui.state.run_requests import Columns, meet
from tui_eval.tui.state.runs.run_view import RunView

SECONDS = 0.1
LOOK_SECONDS = 0.02
INFO_SECONDS = 0.5
LIVE_ROWS = 2_000
_PIECE = 200
LIVE_WAITING = 20_000
"""Live rows that may wait for the app before the thread reads no more of them."""


class RunNews(msgspec.Struct):
    """What happened since the app last took news. `view` is set once, when the run has been read."""

    run_id: str
    view: RunView | None = None
    info: RunInfo | None = None
    cases: list[StoredCase] = msgspec.field(default_factory=list)
    attempts: dict[int, AttemptRow] = msgspec.field(default_factory=dict)
    live: list[LiveRow] = msgspec.field(default_factory=list)
    error: str = ""
    called: dict[str, str] = msgspec.field(default_factory=dict)
    """What lists call those of its cases that are recorded without a name, by id."""


class RunListener(Protocol):
    """The app, as the follower knows it."""

    def call_later(self, callback, *args, **kwargs) -> bool: ...

    def take_news(self) -> None: ...


TAKEN_AWAY = "its folder was taken away; its engine goes on, and writes all of it again when it ends"


class Follower:
    """Follows one run. `start` it, `take` what it brought when the app's `take_news` is called."""

    def __init__(self, app: RunListener, folder: Path) -> None:
        self._app = app
        self.folder = folder
        self._lock = threading.Lock()
        self._news = RunNews(folder.name)
        self._told = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tui-follower", daemon=True)

    def start(self) -> None:
        """Begin reading."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; returns at once."""
        self._stop.set()

    def wait(self, seconds: float) -> None:
        """Until it has ended, for so many seconds at most."""
        self._thread.join(seconds)

    def take(self) -> RunNews:
        """The news so far; what comes later is announced anew."""
        with self._lock:
            news, self._news = self._news, RunNews(self.folder.name)
            self._told = False
            return news

    # -- in the thread

    def _follow(self) -> None:
        try:
            reader = self._open()
            if reader is None:
                return
            try:
                self._read(reader)
            finally:
                reader.close()
        except (StoreError, OSError) as error:
            with self._lock:
                self._news.error = str(error)
            self._tell()

    def _open(self) -> RunReader | None:
        """Open the run; a run that was just started may take a moment to be there."""
        end = time.monotonic() + 5.0
        while True:
            try:
                reader = RunReader(self.folder)
                reader.info()
                return reader
            except StoreError as error:
                damaged = isinstance(error, DamagedRun) and not is_alive(self.folder)
                if damaged or time.monotonic() > end:
                    raise
            if self._stop.wait(0.05):
                return None

    def _read(self, reader: RunReader) -> None:
        info = reader.info()
        view = RunView(info, self.folder)
        rows = reader.changes(0)
        view.apply_cases(
            reader.cases()
        )  # after the attempts: a run that is being planned has a case for each
        view.apply_attempts(rows)
        changed = max((row.changed for row in rows), default=0)
        live = reader.live(0, limit=100_000) if view.active else []
        view.apply_live(live)
        seq = live[-1].seq if live else 0
        known = len(view.cases)
        with self._lock:
            self._news.view = view
        self._tell()
        began_active = active = info.state in ("running", "paused")
        info_due = time.monotonic() + INFO_SECONDS
        stamp, read_due = -1, 0.0
        while active and not self._stop.wait(max(LOOK_SECONDS, read_due - time.monotonic())):
            if time.monotonic() >= info_due:
                fresh = reader.info()
                active = fresh.state in ("running", "paused")
                if not active:
                    stamp = -1  # the last news, wherever they are kept
                    if fresh.state == "interrupted" and not self.folder.exists():
                        fresh.note, fresh.finished_at = TAKEN_AWAY, time.time()
                if fresh != info and active:
                    with self._lock:
                        self._news.info = fresh
                    self._tell()
                info = fresh
                info_due = time.monotonic() + INFO_SECONDS
            now = reader.stamp()
            if now == stamp:
                continue
            stamp = now
            rows = reader.changes(changed)
            behind = len(self._news.live) >= LIVE_WAITING
            news_live = [] if behind else reader.live(seq, limit=LIVE_ROWS)
            if behind or len(news_live) == LIVE_ROWS:
                stamp = -1  # there is more: look again, whatever is written
            if not rows and not news_live:
                continue
            read_due = time.monotonic() + SECONDS
            unknown = any(row.case_ref > known for row in rows)
            cases = reader.cases() if unknown else []
            with self._lock:
                news = self._news
                if cases:
                    news.cases = cases
                    known = len(cases)
                for row in rows:
                    changed = max(changed, row.changed)
                    news.attempts[row.id] = row
                news.live.extend(news_live)
            if news_live:
                seq = news_live[-1].seq
            if active:
                self._tell()
        if began_active and not active:
            # Together with the last changes: whoever hears that it has ended concludes from what it has.
            with self._lock:
                self._news.info = info
            self._tell()
        # Of a run from elsewhere, whose suites are not here to say it. It takes a while, where there are many.
        if not active and any(map(may_be_unnamed, view.cases.values())) and (called := reader.called()):
            with self._lock:
                self._news.called = called
            self._tell()

    def _tell(self) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        self._app.call_later(self._app.take_news)


_MOST_BESIDE = 50
"""Runs that count with another and are read for it."""


def counted_with(root: Path, folder: Path, since: str = "") -> list[RunView]:
    """The other runs that count with a run (`store.linked.counting`), the newest of them where there are many; a step
    that came to nothing does not. `since`: only those begun after the run of this id, which nobody is at any more.
    Blocks."""
    found: list[RunView] = []
    others = [
        other for other in Index(root).counting_folders(folder) if other != folder and other.name > since
    ]
    for other in others[-_MOST_BESIDE:]:
        if since and is_alive(other):
            continue
        with suppress(StoreError, OSError), closing(RunReader(other)) as reader:
            view = RunView(reader.info(), other)
            view.apply_cases(reader.cases())
            view.apply_attempts(reader.changes(0))
            if not view.came_to_nothing:
                found.append(view)
    return found


class Past(NamedTuple):
    """Results across runs, newest first, by case, and the ids of the runs in front that were deleted."""

    latest: dict[str, list[CaseHistory]]
    deleted: frozenset[str]


def read_past(
    root: Path,
    wanted: Collection[str] | None,
    cases: Iterable[Case],
    known: Mapping[str, Sequence[CaseHistory]],
    runs: Iterable[RunView],
) -> Past:
    """What became of these cases (None: of every case). Where every case is read, those that the index knows nothing of
    any more lose the results of runs that were deleted, by whomever. Blocks.

    Args:
        cases: The suites' cases.
        known: What was known of every case before.
        runs: The runs in front, and beside it.
    """
    # Which case a result is of, where a secret is in its name, is known beside all of that name.
    named = wanted is not None and any(MASK in case_id for case_id in wanted)
    latest = dict(case_state.by_content(Index(root).latest(None if named else wanted), cases, by_id=True))
    store = Store(root)

    @cache
    def is_there(
        run_id: str,
    ) -> bool:  # one without its database may be kept elsewhere, and its folder says where
        return os.path.isdir(store.folder_of(run_id))

    if wanted is None:
        for case_id, results in known.items():
            if results and case_id not in latest:
                left = [one for one in results if is_there(one.run_id)]
                if len(left) < len(results):
                    latest[case_id] = left
    ended = (run for run in runs if not run.active and not os.path.isdir(run.folder))
    return Past(latest, frozenset(run.info.id for run in ended if not is_there(run.info.id)))


def trust_wanted(folder: Path, refs: Sequence[int]) -> list[str]:
    """What these attempts of a run were kept from doing until the person trusts it, word for word, by their
    evidence. Blocks."""
    found: dict[str, None] = {}
    with suppress(StoreError, OSError), closing(RunReader(folder)) as reader:
        for start in range(0, len(refs), _PIECE):
            for _, body in reader.bodies_of(refs[start : start + _PIECE], _Rests):
                verdicts = (piece for verdict in body.verdicts for piece in verdict.evidence or ())
                for piece in (*(body.evidence or ()), *verdicts):
                    if piece.code == NEEDS_TRUST:
                        found[piece.text] = None
    return list(found)


NEWEST = 20
"""Newest runs among which one that is at work is looked for."""
_PLANNED = 5.0
"""Seconds in which a run that has a folder has written what it will execute."""


def begun_elsewhere(root: Path, columns: Columns, known: Collection[str]) -> set[str]:
    """Which cases are at work, in one of these columns, in runs that are not `known`: another app or command has begun
    them. A step is a person's own doing, and what a run that was cancelled left is at work no more. Blocks."""
    found: set[str] = set()
    for folder in filter(is_alive, islice(Store(root).run_folders(), NEWEST)):
        if folder.name in known:
            continue
        with suppress(StoreError, OSError), closing(RunReader(folder)) as reader:
            ends = time.monotonic() + _PLANNED
            while not (rows := reader.attempts()) and is_alive(folder) and time.monotonic() < ends:
                time.sleep(0.02)
            info = reader.info()
            if info.stepped or info.state in ("cancelled", "finished"):  # its engine is about to leave it
                continue
            open_cases = {row.case_ref for row in rows if row.state != "done" and not row.judges}
            found.update(
                case.case_id
                for case in reader.cases()
                if case.id in open_cases
                and meet([(case.agent, case.model or "")], columns.get(case.case_id, ()))
            )
    return found


class Left(NamedTuple):
    """What a run was started with, the columns in which its cases have not all been answered, and whether it
    ended since its cluster was lost."""

    options: dict[str, Any]
    cells: list[RequestCell]
    lost: bool = False


def left_of(folder: Path) -> Left:
    """What there is to go on with of a run, by its record. Blocks."""
    with suppress(StoreError, OSError), closing(RunReader(folder)) as reader:
        left = {row.case_ref for row in reader.attempts() if row.state != "done"}
        cells = [RequestCell(one.case_id, one.agent, one.model) for one in reader.cases() if one.id in left]
        info = reader.info()
        return Left(info.options, cells, PLACE_LOST in info.provenance)
    return Left({}, [])  # that it cannot be read is said by whoever goes on with it


class _Rests(msgspec.Struct):
    """Of an attempt what it rests on."""

    verdicts: list[Verdict] = []
    evidence: list[Evidence] | None = None


decoded(_Rests)
