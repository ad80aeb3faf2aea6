"""On a save, recorded answers are judged again, or cases are run again: one case, or all below a line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.timer import Timer

from tui_eval.config.project import Config, ConfigError, load
from tui_eval.engine.agent_files import Imports
from tui_eval.formats import format_of
from tui_eval.guard.secrets import MASK
from tui_eval.guard.trust import Trust
from tui_eval.model import Case
from tui_eval.store import case_state
from tui_eval.store.encoding import encode_json
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import StoreError, is_alive
from tui_eval.store.schema import FROM_FILE, CaseHistory
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.controllers.runs import RunController
from tui_eval.tui.controllers.suites import SuiteController
from tui_eval.tui.handlers import Handler
from tui_eval.tui.services import Core
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.app_state import CaseItem, CasePointer
from tui_eval.tui.state.case_agent import all_files_of_agent, files_of_agent
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import entries_of, not_passed
from tui_eval.tui.state.lists.suite_changes import EditedSuite
from tui_eval.tui.state.watch_scope import (
    AfterSave,
    CaseBefore,
    NamedFiles,
    SavedFiles,
    WatchScope,
    after_save,
    newest_of,
    saved_files,
    scope_of,
    short,
)
from tui_eval.tui.watching import INTERVAL, Watcher, stamps

if TYPE_CHECKING:
    from tui_eval.engine.fingerprints import AgentsAsked

AT_ONCE = 500
"""Files that are looked at twice a second; more of them are looked at less often."""
NEWEST = 4
"""Results of a case among which its agents are looked for."""


class WatchController:
    """Follows the files of one case, or of all cases below a line."""

    def __init__(
        self,
        core: Core,
        places: PlaceController,
        suites: SuiteController,
        runs: RunController,
        recorded: RecordedController,
        front_run: FrontRun,
    ) -> None:
        self._core, self._places, self._suites = core, places, suites
        self._runs, self._recorded, self._front_run = runs, recorded, front_run
        self.state, self._notices = core.state, core.notices
        self.mode = ""
        """`judge` or `rerun` of one case, `all` of what is below a line, or empty."""
        self.watcher: Watcher | None = None
        self.watched: CasePointer | None = None
        self.scope: WatchScope | None = None
        """What is watched where it is more than one case."""
        self._one_column = False
        """Whether it is watched for the column that was shown alone, as on the Case screen; a line stands for
        all."""
        self._agents = AgentFiles(core)
        self._named = CaseFiles(core.state.root)
        self._before: dict[str, CaseBefore] = {}
        """The cases as they were when watching began, or when a save of them was last acted on."""
        self._ran: set[str] = set()
        """Those that were run, under whatever name."""
        self._whom: AgentsNow | None = None
        self._asking: dict[str, tuple[CaseBefore, list[str]]] = {}
        """Those that are to be asked anew, as they were when they were answered, with the runs of that."""
        self._followed: list[str] = []
        self._unread: set[str] = set()
        """Files that were saved and have not been read since."""
        self._waits: Timer | None = None
        """Until what is watched has been run."""
        self._held: tuple[Any, list[CaseItem]] = (None, [])

        self._stale: dict[str, list[str]] = {}
        """The cases that passed with an agent that has been saved since, with the runs of that."""
        self._counted: tuple[int, int] = (-1, 0)

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"watch": self.watch}

    def watch(self) -> None:
        """Of one case: off, judge again on save, rerun on save. Of what is below a line: off, or both."""
        place = self._places.place
        line = place.line_under_cursor() if place is not None and place.lists_cases else None
        scope = scope_of(line) if not self.mode else None
        pointer = self.watched if self.mode else self._places.pointer()
        if scope is None and not self.mode and (pointer is None or pointer.case_id not in self.state.by_id):
            self._notices.say("put the cursor on a case of the suites, a file or a folder first")
            return
        modes = {"": "all" if scope is not None else "judge", "judge": "rerun"}
        if not self.mode:
            self._one_column = place is not None and place.one_column
        self.mode = modes.get(self.mode, "")
        if self.watcher is not None:
            self.watcher.stop()
            self.watcher = None
        self._stale, self._counted = {}, (-1, 0)
        self.scope = scope
        self.watched = pointer if self.mode and scope is None else None
        self._whom = self._agents_now(self.state.config)
        self._asking, self._ran = {}, set()
        self._unread = self._unread if self.mode else set()
        self._before = self._as_now(self._meant(), self._whom)
        if not self.mode:
            self._notices.say("watching no more")
        else:
            # What an agent imports is looked for in its files: not while a key waits.
            seen = stamps(self._plain_files()) if scope is None else None
            began = partial(self._began_watching, (self.watched, self.scope, self.mode))
            self._core.tasks.thread(partial(self._watcher, seen), began, name="watch")
        self._places.show_status()

    def _watcher(self, seen: Any) -> Watcher:
        """In a thread."""
        interval = INTERVAL * max(1.0, len(self.files()) / AT_ONCE)
        return Watcher(self.files, self.saved, interval, seen=seen, by_content=True)

    def _began_watching(
        self, what: tuple[CasePointer | None, WatchScope | None, str], watcher: Watcher
    ) -> None:
        if what != (self.watched, self.scope, self.mode) or self.watcher is not None:
            return
        self.watcher = watcher
        watcher.start()
        count = f"watching {watcher.count} file{'s' if watcher.count != 1 else ''}"
        if self.scope is not None:
            words = "a saved suite is judged again, a saved agent runs what did not pass"
            self._notices.say(f"{count} of {self.scope.words}: {words}")
            return
        does = "judges again" if self.mode == "judge" else "reruns"
        self._notices.say(f"{count}: a save {does} {self._called or 'the case'}")

    @property
    def _called(self) -> str:
        item = self.state.item_of(self.watched)
        return short(item.name) if item is not None else ""

    @property
    def words(self) -> str:
        """What the status line says of it."""
        if self.scope is not None:
            stale = self._still_stale()
            return f"watch: {self.scope.words}" + (f" ({stale:,} stale)" if stale else "")
        return f"watch: {self.mode} {self._called}".rstrip() if self.mode else ""

    def _still_stale(self) -> int:
        """How many have not been run since; counted once until any change."""
        if self._counted[0] != self.state.version:
            for case_id, runs in list(self._stale.items()):
                item = self.state.by_id.get(case_id)
                if item is None or runs != [one.run_id for one in newest_of(item)]:
                    del self._stale[case_id]
            self._counted = (self.state.version, len(self._stale))
        return self._counted[1]

    # -- files

    def files(self) -> list[str]:
        """The suites' files; where cases are run also those of their agents, and tui_eval.yaml. None while nothing is
        watched. Of many cases it takes a while: for a thread."""
        files = self._plain_files()
        for named in self._named.of(self._meant()).values():
            files |= named.asking | named.judging
        if self.scope is not None:
            files |= self._agents.of_all(self._items(self.scope))
        elif self.mode == "rerun" and self.watched is not None:
            files |= self._agents.of(self.watched)
        self._followed = sorted(files)
        return self._followed

    def followed(self) -> list[str]:
        """What `files` came to when it was last looked at."""
        return self._followed if self.watcher is not None else sorted(self._plain_files())

    def _plain_files(self) -> set[str]:
        """Those of the suites, the agent's own of one case, and tui_eval.yaml: without what agents import."""
        if self.scope is None and self.watched is None:
            return set()
        suites = self._suites_read()
        files = {str(self.state.root / path) for path in suites}
        files.update(file for read in suites.values() for file in read)
        if self.mode == "rerun":
            files.update(map(str, files_of_agent(self.state, self.watched)[0]))
        if self.mode != "judge" and self.state.config is not None and self.state.config.file is not None:
            files.add(str(self.state.config.file))
        return files

    def _items(self, scope: WatchScope) -> list[CaseItem]:
        """The cases that are watched, those too that their files have lost for now; made once until any change."""
        token = (scope, self.state.version)
        if self._held[0] != token:
            held = [item for item in (*self.state.rows, *self.state.gone.values()) if scope.holds(item)]
            self._held = (token, held)
        return self._held[1]

    def _meant(self) -> list[CaseItem]:
        """All cases that are watched."""
        if self.scope is not None:
            return self._items(self.scope)
        item = self.state.item_of(self.watched)
        return [item] if item is not None else []

    def _suites_read(self) -> dict[str, list[str]]:
        """The suites that are watched, each with the files that it was read from."""
        found: dict[str, list[str]] = {one.suite: [] for one in self._meant()}
        found.update((suite.path, suite.files) for suite in self.state.suites if suite.path in found)
        return found

    # -- a save

    def saved(self, files: list[str]) -> None:
        """These files were saved, and hold something else; called in the watcher's thread."""
        self._core.tasks.later(self._on_save, files)

    def _on_save(self, files: list[str]) -> None:
        if not files:
            self._notices.say("saved: nothing that is watched is otherwise than it was")
            return
        self._unread |= {*files}
        if self._waits is None:
            self._when_free()
        if self._waits is not None:
            self._notices.say("saved: judged or run when what is watched has been run")

    def _when_free(self) -> None:
        """Read what was saved once nothing of what is watched is being run: all that was saved until then, at once."""
        busy = self._busy()
        self._waits = self._core.tasks.after(0.5, self._when_free) if busy else None
        if not busy:  # that a run has ended is seen before its answers are part of the past
            ids = [item.case_id for item in self._meant()]
            self._front_run.refresh_history(ids, then=self._read_saved)

    def _read_saved(self) -> None:
        """The past is what it is now, but a run may have begun while it was read."""
        if self._busy():
            self._when_free()
            return
        files, self._unread = sorted(self._unread), set()
        items = self._meant()
        if files and items:
            what = (self.scope, self.watched)
            work = partial(self._meaning, items, files, self._suites_read(), self.state.config)
            self._core.tasks.thread(work, partial(self._read_then, files, what), name="saved")

    def _as_now(self, items: Iterable[CaseItem], agents: AgentsNow) -> dict[str, CaseBefore]:
        return {
            item.case_id: CaseBefore(case, agents.of)
            for item in items
            if (case := item.as_written) is not None
        }

    def _agents_now(self, config: Config | None, earlier: AgentsNow | None = None) -> AgentsNow:
        state = self.state
        settings = {suite.path: suite.settings for suite in state.suites}
        trust = Trust(granted=state.trusted, agreed=state.agreed)
        return AgentsNow(config or Config(root=state.root), settings, trust, earlier)

    def _read_again(self, files: list[str], then: Callable[[EditedSuite], Any]) -> None:
        """Read what was saved, then judge or run."""
        if self.state.config is not None and str(self.state.config.file) in files:
            self._suites.load()
            then(EditedSuite())
        elif not self._suites.reload(files, then):
            then(EditedSuite())  # the agent's alone

    def _busy(self) -> bool:
        """Whether what is watched is being run, or is about to be. Answers of many cases are judged together: not while
        their run has others to ask, or its engine to let go of it."""
        if self._runs.starting:
            return True
        if self.watched is not None:
            return any(row.state != "done" for row in self._rows_of(self.watched))
        ids = {item.case_id for item in self._items(self.scope)} if self.scope is not None else set()
        group = self.state.group
        return any(
            (run.active or is_alive(run.folder)) and any(case.case_id in ids for case in run.cases.values())
            for run in (*(group.runs if group is not None else ()), *self.state.aside.runs)
        )

    def _meaning(
        self, items: list[CaseItem], files: list[str], read: dict[str, list[str]], config: Config | None
    ) -> tuple[SavedFiles, Config | None]:
        """What these files are to the cases that are watched, and the configuration where it is one of them; in a
        thread."""
        read_now = None
        if config is not None and str(config.file) in files:
            asked = {item.case_id for item in items}
            with suppress(ConfigError):
                read_now = load([self.state.root], self.state.config_file, root=self.state.root)
        else:
            asked = self._agents.asked_by(items, files)
        return saved_files(files, items, self.state.root, read, asked, self._named.of(items)), read_now

    def _read_then(
        self,
        files: list[str],
        what: tuple[WatchScope | None, CasePointer | None],
        meaning: tuple[SavedFiles, Config | None],
    ) -> None:
        saved, config = meaning
        settings = {suite.path: suite.settings for suite in self.state.suites}
        self._ran |= {item.case_id for item in self._meant() if item.history}

        def then(change: EditedSuite) -> None:
            if what != (self.scope, self.watched):
                return
            self._rename(change.renamed)
            if (
                self.scope is None
                and self.watched is not None
                and self.watched.case_id not in self.state.by_id
            ):
                if not change.words:
                    name = self.watched.case_id.partition("::")[2]
                    self._notices.say(f"{name} is not in its file: nothing to watch it for")
            elif not change.words:
                others = {one.path for one in self.state.suites if one.settings != settings.get(one.path)}
                now = [item for item in self._meant() if item.case_id in self.state.by_id]
                before = self._before | self._unanswered()
                agents = self._whom = self._agents_now(config or self.state.config, self._whom)
                self._before |= self._as_now(now, agents)
                hooked = {
                    one.path
                    for one in self.state.suites
                    if self.scope is not None and format_of(one.format).hooks_make_cases(one.settings)
                }  # a case that is watched alone is judged with its hooks
                meant = (now, before, saved.renamed(change.renamed), agents.of, others, {*self._ran}, hooked)

                def work() -> AfterSave:
                    with AnsweredCases(self.state.run_folder) as answered:
                        return after_save(*meant, answered.of)

                act = partial(self._act, (self.scope, self.watched), before)
                self._core.tasks.thread(work, act, name="saved")

        if what == (self.scope, self.watched):
            self._read_again(files, then)

    def _rename(self, renamed: dict[str, str]) -> None:
        """What is watched goes by its new name (new ids by old ones)."""
        if self.scope is not None:
            self.scope = self.scope.renamed(renamed)
        if self.watched is not None and self.watched.case_id in renamed:
            self.watched = CasePointer(renamed[self.watched.case_id])
        self._before = {renamed.get(case_id, case_id): case for case_id, case in self._before.items()}
        self._ran = {renamed.get(case_id, case_id) for case_id in self._ran}
        self._asking = {renamed.get(case_id, case_id): one for case_id, one in self._asking.items()}

    def _unanswered(self) -> dict[str, CaseBefore]:
        """Of the cases that were to be asked anew, those that nobody has answered since."""
        by_id = self.state.by_id
        self._asking = {
            case_id: (one, runs)
            for case_id, (one, runs) in self._asking.items()
            if case_id in by_id and runs == [result.run_id for result in newest_of(by_id[case_id])]
        }
        return {case_id: one for case_id, (one, _) in self._asking.items()}

    def _act(
        self,
        what: tuple[WatchScope | None, CasePointer | None],
        before: Mapping[str, CaseBefore],
        todo: AfterSave,
    ) -> None:
        if what != (self.scope, self.watched):
            return
        by_id = self.state.by_id
        for case_id in todo.changed.keys() & before.keys() & by_id.keys():
            self._asking[case_id] = (before[case_id], [one.run_id for one in newest_of(by_id[case_id])])
        if self.scope is not None:
            self._all_again(todo)
        elif self.watched is not None and self.watched.case_id in by_id:
            self.again(self.watched, todo)

    def _all_again(self, todo: AfterSave) -> None:
        """Judge and run what a save below a line asks for; say what is not run."""
        by_id = self.state.by_id
        self._stale |= {one: [result.run_id for result in newest_of(by_id[one])] for one in todo.stale}
        self._counted = (-1, 0)
        self._places.show_status()
        for run_id, case_ids in todo.judge.items():
            self._runs.judge_again(self.state.run_folder(run_id), case_ids)
        failed = [row for one in todo.failed for row in entries_of(by_id[one], self.state)]
        changed = self._rows_to_ask(todo)
        entries = {(row.case_id, row.agent, row.model): row for row in [*not_passed(failed), *changed]}
        if entries:
            self._ask(list(entries.values()))
        elif not todo.judge and todo.stale:
            count = f"{len(todo.stale):,} passed with the agent as it was"
            self._notices.say(f"saved: {count}, r on their line runs them again")
        elif not todo.judge:
            self._notices.say("saved: nothing that is watched has to be judged or run again")

    def _rows_to_ask(self, todo: AfterSave) -> list[CaseRow]:
        """Those of the columns that ask something else now, or somebody else."""
        by_id = self.state.by_id
        return [
            row
            for case_id, columns in todo.changed.items()
            for row in entries_of(by_id[case_id], self.state)
            if not columns or row.whom in columns
        ]

    def _ask(self, rows: Sequence[CaseRow]) -> None:
        """Run these in their columns, after the questions that the keys that run ask."""
        self._suites.before_running(partial(self._runs.start, rows, show=False, in_their_columns=True))()

    def again(self, pointer: CasePointer, todo: AfterSave) -> None:
        """What was saved has been read: judge or run the one case that is watched, where it is another now."""
        item = self.state.by_id[pointer.case_id]
        if item.history and not (todo.judge or todo.changed or todo.failed or todo.stale):
            self._notices.say(f"saved: {self._called} is as it was")
            return
        rows, last = self._rows_to_ask(todo), item.last_of(pointer.agent, pointer.model)
        if self._one_column and last is not None:
            rows = [row for row in rows if row.whom == case_state.column_of(last)]
        if self.mode == "judge" and rows:
            self._ask(rows)
        elif self.mode == "judge" and not item.history and not self._rows_of(pointer):
            self._notices.say(f"saved: {self._called} has not been run: r runs it")
        elif self.mode == "judge":
            # Where the cursor was when watching began, the answers of then were looked at.
            newest = replace(pointer, run_id=last.run_id if last is not None else None, attempt_ref=None)
            self._recorded.judge_again(newest, "", one_column=self._one_column)
        else:
            self._suites.before_running(partial(self._run_again, pointer))()

    def _run_again(self, pointer: CasePointer) -> None:
        made = self._runs.one_attempt(pointer)
        if made is not None:
            if made[0].cells and not self._one_column:
                others = (run_requests.cell(self.state, one) for one in self._recorded.other_columns(pointer))
                made[0].cells = [*made[0].cells, *(cell for cell in others if cell is not None)]
            self._runs.send(made[0], show=False, said="", sure=True)

    def _rows_of(self, pointer: CasePointer) -> list[Any]:
        return self.state.attempts_of(CasePointer(pointer.case_id, pointer.agent, pointer.model))


class AgentsNow:
    """Whom cases ask by a configuration and suites' settings, found when that is asked for."""

    def __init__(
        self,
        config: Config,
        settings: Mapping[str, Mapping[str, Any]],
        trust: Trust,
        earlier: AgentsNow | None,
    ) -> None:
        # In a row of saves that cannot be read, the last one that could is what counts.
        wrong = any(problem.level == "error" for problem in config.problems)
        self._given = (config, settings, trust)
        self._earlier = earlier if wrong else None
        self._found: AgentsAsked | None = None

    def of(self, case: Case, named: str) -> str:
        """As `AgentsAsked.of`; for a thread."""
        return self._asked().of(case, named)

    def _asked(self) -> AgentsAsked:
        if self._found is None:
            from tui_eval.engine.fingerprints import AgentsAsked  # not for the first paint

            earlier = self._earlier._asked() if self._earlier is not None else None
            self._found = AgentsAsked(*self._given, earlier)
        return self._found


class AnsweredCases:
    """Cases as they were when recorded answers were given, as far as that is known. For one thread."""

    def __init__(self, folder_of: Callable[[str], Path]) -> None:
        self._folder_of = folder_of
        self._readers: dict[str, RunReader | None] = {}

    def __enter__(self) -> AnsweredCases:
        return self

    def __exit__(self, *_: object) -> None:
        for reader in self._readers.values():
            if reader is not None:
                reader.close()

    def of(self, result: CaseHistory) -> Case | None:
        """What was asked for a result; None where its run is gone, has only what was said, or has a secret in it."""
        run_id = result.judges or result.run_id
        if run_id not in self._readers:
            self._readers[run_id] = None
            with suppress(StoreError, OSError):
                self._readers[run_id] = RunReader(self._folder_of(run_id))
        reader = self._readers[run_id]
        with suppress(StoreError, OSError):
            for row in reader.cases_of(result.case_id) if reader is not None else ():
                if (row.agent, row.model) == (result.agent, result.model):
                    case = reader.case(row.id) if reader is not None else None
                    if case is None or case.content_hash.startswith(FROM_FILE):
                        return None
                    return None if MASK in encode_json(case).decode() else case
        return None


class CaseFiles:
    """The files that cases name, each looked for once until the case is another; with what their Python imports."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._imports = Imports()
        self._lock = threading.Lock()  # a watcher and what follows a save look at the same time
        self._known: dict[str, tuple[str, tuple[set[Path], set[Path]]]] = {}

    def of(self, items: Iterable[CaseItem]) -> dict[str, NamedFiles]:
        """Those of each case that names any. For a thread."""
        with self._lock:
            return {
                item.case_id: NamedFiles(*(self._with_imports(files, item.suite) for files in named))
                for item in items
                if (case := item.as_written) is not None and any(named := self._named(case))
            }

    def _named(self, case: Case) -> tuple[set[Path], set[Path]]:
        from tui_eval.engine.case_files import question_files, verdict_files  # not for the first paint

        known = self._known.get(case.case_id)
        if known is None or known[0] != case.content_hash:
            base = (self._root / case.suite).parent
            files = (question_files(case, base, self._root), verdict_files(case, base, self._root))
            known = self._known[case.case_id] = (case.content_hash, files)
        return known[1]

    def _with_imports(self, files: set[Path], suite: str) -> frozenset[str]:
        base = (self._root / suite).parent
        return frozenset(map(str, (*files, *self._imports.of(sorted(files), base))))


class AgentFiles:
    """The files of the agents of cases, with the modules that they import. Those of many cases are looked for once
    for each agent, and again when suites or configuration have changed."""

    def __init__(self, core: Core) -> None:
        self._state = core.state
        self._imports = Imports()
        self._lock = threading.Lock()  # a watcher and what follows a save look at the same time
        self._known: dict[Any, list[Path]] = {}
        self._token: Any = None
        self._last: tuple[Any, list[list[Path]]] = (None, [])

    def of(self, pointer: CasePointer) -> set[str]:
        """The files of the agent of one case."""
        return self._with_imports(all_files_of_agent(self._state, pointer))

    def of_all(self, items: list[CaseItem]) -> set[str]:
        """The files of the agents of all these cases."""
        token = (id(items), self._state.version, id(self._state.config))
        if self._last[0] != token:
            lists = {id(one): one for item in items for one in self._of(item)}
            self._last = (token, list(lists.values()))
        return {file for found in self._last[1] for file in self._with_imports(found)}

    def asked_by(self, items: Iterable[CaseItem], saved: Iterable[str]) -> set[str]:
        """The cases whose agent is made of one of these files."""
        wanted = set(saved)
        hit: dict[int, bool] = {}
        cases: set[str] = set()
        for item in items:
            for found in self._of(item):
                if id(found) not in hit:
                    hit[id(found)] = bool(self._with_imports(found) & wanted)
                if hit[id(found)]:
                    cases.add(item.case_id)
        return cases

    def _with_imports(self, files: list[Path]) -> set[str]:
        with self._lock:
            return {*map(str, files), *map(str, self._imports.of(files, self._state.root))}

    def _of(self, item: CaseItem) -> list[list[Path]]:
        """The files of the agents that a case would be asked of, and was asked of last."""
        state = self._state
        token = (state.version, id(state.config))
        if self._token != token:
            self._token, self._known = token, {}
        provider = repr(case.provider) if (case := item.as_written) is not None else ""
        lists: list[list[Path]] = []
        for name in dict.fromkeys([None, *(result.agent for result in item.history[:NEWEST])]):
            key = (item.suite, item.agent, name, provider)
            if key not in self._known:
                self._known[key] = all_files_of_agent(state, CasePointer(item.case_id, name))
            lists.append(self._known[key])
        return lists
