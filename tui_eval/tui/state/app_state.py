"""What the whole app knows: the suites, the lines of the case list, the run in front."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct, field

from tui_eval.case_names import called, variant_of, which_tests
from tui_eval.config.project import Config
from tui_eval.formats import format_of
from tui_eval.guard.text import clip
from tui_eval.model import Case, Problem, Suite
from tui_eval.store import case_state
from tui_eval.store.imported.results_entries import case_edited
from tui_eval.store.notes import HumanNote
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import FROM_FILE, AttemptRow, CaseHistory
from tui_eval.store.shard_runs import is_looked_at
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView


@dataclass(frozen=True, slots=True)
class CasePointer:
    """A case, in the run and attempt that are looked at.

    `agent` and `model` tell the columns of a case with several agents apart (None: whichever there
    is). `run_id` is None where the case has never run; `attempt_ref` is the id of a row of that
    run's `attempts` (None: the latest attempt, or the one that failed first).
    """

    case_id: str
    agent: str | None = None
    model: str | None = None
    run_id: str | None = None
    attempt_ref: int | None = None


class CaseItem(Struct, eq=False):
    """A case as lists show it. `name` is what it is called: one without a name of its own by what is asked.
    `history` is newest first; empty where it never ran. `case` is None for a case of an opened run whose
    suite file is not at hand; secrets in it are masked. `with_secrets` is the case as its file has it, where
    that differs: not to be shown."""

    case_id: str
    name: str
    suite: str
    format: str
    agent: str | None = None
    model: str | None = None
    case: Case | None = None
    history: list[CaseHistory] = field(default_factory=list)
    order: int = 0
    test: str = ""
    """Of which test of its suite it is, whatever prompt, provider and variables it is of."""
    with_secrets: Case | None = None
    """The case as its file has it, where what is shown is not."""
    content: str = ""
    """The hash of its content as it would be run; empty where that is not known: hooks of its suite make its cases."""

    def edited_since(self, content_hash: str) -> bool:
        """Whether the case is otherwise now than where it had this content."""
        return content_hash != self.content and case_edited(content_hash, self.content)

    @property
    def as_written(self) -> Case | None:
        """The case as its file has it, secrets included: for what writes files or compares, not for the screen."""
        return self.with_secrets or self.case

    def variant(self, agent: str | None) -> str:
        """What tells it from others of its name, in the column of this agent."""
        return variant_of(self.case, agent, named=self.named(agent)) if self.case is not None else ""

    def named(self, agent: str | None) -> bool:
        """Whether this agent was named by who asked it."""
        return any(one.agent == agent and one.asked == "named" for one in self.history)

    @property
    def last(self) -> CaseHistory | None:
        """The newest result of the column that stands for it: the one where it stands worst."""
        return case_state.newest_of(self.history, None, None)

    def last_of(self, agent: str | None, model: str | None) -> CaseHistory | None:
        """The newest result with this agent and model, else as `last`."""
        return case_state.newest_of(self.history, agent, model)


class Items:
    """Suites in order, and one item per case; made of many cases in the thread that reads them."""

    def __init__(
        self,
        suites: Iterable[Suite],
        history: Mapping[str, list[CaseHistory]],
        with_secrets: Mapping[str, Case] = MappingProxyType({}),
    ) -> None:
        """`history`: results across runs, newest first, by case. `with_secrets`: cases of which the suites here have
        but what may be shown."""
        self.suites = sorted(suites, key=lambda suite: suite.path)
        history = case_state.by_content(
            history, (case for suite in self.suites for case in suite.cases), by_id=True
        )
        self.rows = [
            CaseItem(
                case.case_id,
                case.name,
                suite.path,
                suite.format,
                case.agent,
                case.model,
                case,
                history.get(case.case_id, []),
                order,
            )
            for suite in self.suites
            for order, case in enumerate(suite.cases)
        ]
        cases = [item.case for item in self.rows if item.case is not None]
        tests = which_tests(cases)
        for item, test, name in zip(self.rows, tests, called(cases, tests), strict=True):
            item.test, item.name = test, name
            item.with_secrets = with_secrets.get(item.case_id)
        made = {
            suite.path for suite in self.suites if any(format_of(suite.format).hook_files(suite.settings))
        }
        for item in self.rows:
            if item.case is not None and item.suite not in made:
                item.content = item.case.content_hash
        self.by_id = {item.case_id: item for item in self.rows}


class AppState(Struct):
    """The app's values; changed only on the app's loop."""

    root: Path
    config: Config | None = None
    """The project's configuration, once it has been read."""
    config_file: Path | None = None
    """The configuration that was named, `--config`."""
    suites: list[Suite] = field(default_factory=list)
    rows: list[CaseItem] = field(default_factory=list)
    """One item per case of the suites, in the order of suite and file."""
    by_id: dict[str, CaseItem] = field(default_factory=dict)
    run: RunView | None = None
    """The run in front: the one started or opened last."""
    unread: str = ""
    """Why the run opened last cannot be read; empty where it can be."""
    group: RunGroup | None = None
    """That run with those it is linked to."""
    aside: RunGroup = field(default_factory=lambda: RunGroup(()))
    """Runs that go on beside the one in front and do not take its place: steps, and cases of other runs that are
    run again."""
    put_away: deque[RunView] = field(default_factory=lambda: deque(maxlen=50))
    """The last of those that ended there: a comparison that is open says what came of them."""
    begun_elsewhere: str = ""
    """The run that was begun last while another place than the run's list was looked at; empty once the list has put
    its cursor there."""
    problems: list[Problem] = field(default_factory=list)
    of_root: bool = False
    """Whether suites are looked for in the whole project, rather than in a part of it."""
    loading: bool = True
    reading: str = ""
    """The file that is being read, for a person who waits for a large one."""
    version: int = 0
    """Grows with the suites and their past."""
    trusted: bool = False
    agreed: frozenset[str] = frozenset()
    scripted: bool = False
    notes: dict[str, list[HumanNote]] = field(default_factory=dict)
    """People's newest note on each case."""
    called: dict[str, str] = field(default_factory=dict)
    """What lists call cases that runs from elsewhere recorded without a name, by id."""
    gone: dict[str, CaseItem] = field(default_factory=dict)
    """Cases that were taken out of their files while the app is open; they come back with their past."""

    @property
    def token(self) -> object:
        """Equal as long as nothing that lists show has changed."""
        runs = (*(self.group.runs if self.group is not None else ()), *self.aside.runs)
        return (
            self.version,
            tuple((run.info.id, run.info.state, run.version, len(run.cases)) for run in runs),
        )

    def is_whole(self, case_ids: Collection[str]) -> bool:
        """Whether these are all cases of the project, every file of which could be read."""
        read = self.of_root and not self.loading and all(suite.cases for suite in self.suites)
        return read and {item.case_id for item in self.rows if item.case is not None} <= set(case_ids)

    def only_results(self, suite: str) -> bool:
        """Whether there are results of a suite in front, read from a file, and the suite itself is not in the
        project."""
        cases = self.run.cases if self.run is not None else {}
        first = next(iter(cases.values()), None)
        if self.loading or not self.of_root or first is None or not first.content_hash.startswith(FROM_FILE):
            return False
        return all(one.path != suite for one in (*self.suites, *self.problems))

    @property
    def active(self) -> list[RunView]:
        """Runs that an engine is at work on, in front or beside it."""
        return [*(self.group.active if self.group is not None else ()), *self.aside.active]

    @property
    def going_on(self) -> RunView | None:
        """The run at work that every screen tells of: the one in front, else the last of those beside it; a step is
        none."""
        front = self.run
        if front is not None and front.active and not front.info.stepped:
            return front
        return next((run for run in reversed(self.active) if not run.info.stepped), None)

    @property
    def outlasting(self) -> list[RunView]:
        """Runs that go on when the app is left: what is only looked at goes then, and nothing comes back to it."""
        return [run for run in self.active if not is_looked_at(run.folder)]

    @property
    def shown_root(self) -> str:
        """The project's folder, short."""
        try:
            return clip(f"~/{self.root.relative_to(Path.home())}", 40)
        except (ValueError, RuntimeError):  # a user whom the system does not know has none
            return clip(str(self.root), 40)

    @property
    def concurrency(self) -> int:
        """How many attempts run at once unless a run says otherwise."""
        return self.config.run.concurrency if self.config is not None else 8

    def find_run(self, run_id: str | None) -> RunView | None:
        """A run in front or beside it by its id."""
        if self.run is not None and self.run.info.id == run_id:
            return self.run
        found = self.group.find_run(run_id) if self.group is not None else None
        return found or self.aside.find_run(run_id)

    def run_of(self, run_id: str | None) -> RunView | None:
        """The run in front (also where no id is given), or one beside it."""
        if run_id is None and self.run is not None:
            return self.run
        return self.find_run(run_id)

    def run_folder(self, run_id: str) -> Path:
        """Where a run of this project (or the one opened) is stored."""
        run = self.run_of(run_id)
        return run.folder if run is not None else Store(self.root).folder_of(run_id)

    def attempts_of(self, pointer: CasePointer) -> list[AttemptRow]:
        """The attempts of a case in a run of those in front; empty where it is of another."""
        run = self.run_of(pointer.run_id)
        ref = run.find(pointer.case_id, pointer.agent, pointer.model) if run is not None else None
        return run.attempts_of(ref) if run is not None and ref is not None else []

    def name_of(self, case_id: str, name: str) -> str:
        """What lists call a case that a run recorded under this name."""
        item = self.by_id.get(case_id)
        return item.name if item is not None else self.called.get(case_id, name)

    def item_of(self, pointer: CasePointer | None) -> CaseItem | None:
        """The case of the suites that a pointer means; also one that its file has lost for now."""
        if pointer is None:
            return None
        return self.by_id.get(pointer.case_id) or self.gone.get(pointer.case_id)

    def set_suites(
        self, suites: Iterable[Suite], with_secrets: Mapping[str, Case] = MappingProxyType({})
    ) -> None:
        """Take the suites as read (all of them), keeping what is known of each case's past."""
        self.take(Items(suites, self.past(), {**self.secret_cases(), **with_secrets}))

    def secret_cases(self) -> dict[str, Case]:
        """The cases that are not shown as they are written; may be called in a thread."""
        return {name: item.with_secrets for name, item in self.by_id.items() if item.with_secrets is not None}

    def past(self) -> dict[str, list[CaseHistory]]:
        """What is known of every case's past, of those that are gone too; may be called in a thread."""
        known = {case_id: item.history for case_id, item in list(self.gone.items())}
        known.update((case_id, item.history) for case_id, item in self.by_id.items())
        return known

    def missing(self, items: Items) -> dict[str, CaseItem]:
        """The cases that these items no longer hold; may be called in a thread."""
        before = self.by_id
        return {name: before[name] for name in before.keys() - items.by_id.keys()}

    def take(self, items: Items, missing: dict[str, CaseItem] | None = None) -> None:
        """Take suites with their items and past, as a thread made them (and what is `missing` in them)."""
        self.gone.update(self.missing(items) if missing is None else missing)
        for name in [name for name in self.gone if name in items.by_id]:
            del self.gone[name]
        self.suites, self.rows, self.by_id = items.suites, items.rows, items.by_id
        self.version += 1

    def set_notes(self, case_id: str, notes: list[HumanNote]) -> None:
        """Take a case's notes, newest first."""
        self.version += 1
        self.notes[case_id] = notes
        if not notes:
            del self.notes[case_id]

    def set_history(self, latest: dict[str, list[CaseHistory]]) -> None:
        """Take the results across runs (newest first per case)."""
        self.version += 1
        for case_id, history in latest.items():
            item = self.by_id.get(case_id) or self.gone.get(case_id)
            if item is not None:
                item.history = history


@dataclass(frozen=True, slots=True)
class Where:
    """Where a pointer leads: the run's folder (None: it never ran) and what the app knows already.

    `case_ref` is the case's row in that run, `case` the case as the suite's file has it now with those
    `beside` it, `today` the hash of its content (`CaseItem.content`), `root` the project whose other runs and
    notes are looked at (None: none).
    """

    pointer: CasePointer
    folder: Path | None = None
    case_ref: int | None = None
    case: Case | None = None
    root: Path | None = None
    beside: Sequence[Case] = ()
    today: str = ""


def where_is(state: AppState, pointer: CasePointer, *, family: bool = True) -> Where:
    """Where a pointer leads: into the run in front, into another run, or only to the suite's file. `family`: whether
    the runs that belong to it and people's notes are looked at too."""
    item = state.by_id.get(pointer.case_id)
    case = item.case if item is not None else None
    today = item.content if item is not None else ""
    root = state.root if family else None
    run = state.run
    beside = next(
        (suite.cases for suite in state.suites if case is not None and suite.path == case.suite), ()
    )
    if run is not None and pointer.run_id in (None, run.info.id):
        ref = run.find(pointer.case_id, pointer.agent, pointer.model)
        if ref is not None:
            return Where(pointer, run.folder, ref, case, root, beside, today)
    if pointer.run_id is None:
        return Where(pointer, None, None, case, root)
    return Where(pointer, Store(state.root).folder_of(pointer.run_id), None, case, root, beside, today)
