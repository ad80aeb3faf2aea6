"""The tables of a run's `run.db`, and the plain rows that readers get from them."""

import sqlite3
from collections.abc import Container, Sequence
from sys import float_info
from typing import Annotated, Any, Literal

import msgspec

from tui_eval.guard import figures
from tui_eval.model import Outcome, decoded

# -- Columns that the tables of a run have got since its version was written.


def missing_columns(connection: sqlite3.Connection, table: str) -> list[str]:
    """Those of `ADDED` that a table of the run does not have."""
    there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
    return [name for name in ADDED[table] if name not in there]


def add_columns(connection: sqlite3.Connection) -> None:
    """Give the run's tables what they do not have."""
    for table, columns in ADDED.items():
        for name in missing_columns(connection, table):
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {name} {columns[name]}")


def added_columns(connection: sqlite3.Connection, table: str) -> str:
    """A table's `ADDED` as a statement selects them, with the default of each that is missing."""
    missing = missing_columns(connection, table)
    return ", ".join(
        (kind.partition("DEFAULT ")[2] or "NULL") if name in missing else name
        for name, kind in ADDED[table].items()
    )


SCHEMA_VERSION = 1

RunState = Literal["running", "paused", "finished", "cancelled", "interrupted"]
AttemptState = Literal["waiting", "running", "retrying", "done"]

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE cases (
    id INTEGER PRIMARY KEY, case_id TEXT NOT NULL, suite TEXT NOT NULL, name TEXT NOT NULL,
    format TEXT NOT NULL, agent TEXT NOT NULL, model TEXT, content_hash TEXT NOT NULL,
    attempts INTEGER NOT NULL, required INTEGER NOT NULL, body BLOB NOT NULL,
    variant TEXT NOT NULL DEFAULT '');
CREATE INDEX cases_by_id ON cases (case_id);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY, case_ref INTEGER NOT NULL REFERENCES cases (id), attempt INTEGER NOT NULL,
    state TEXT NOT NULL, outcome TEXT, score REAL, message TEXT NOT NULL DEFAULT '', started_at REAL,
    duration_ms REAL, input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER, cost REAL,
    tool_calls INTEGER, turn INTEGER NOT NULL DEFAULT 0, detail TEXT NOT NULL DEFAULT '',
    changed INTEGER NOT NULL, answer TEXT NOT NULL DEFAULT '', ends_at REAL,
    asserted_nothing INTEGER NOT NULL DEFAULT 0, judges TEXT NOT NULL DEFAULT '',
    cached INTEGER NOT NULL DEFAULT 0, saved REAL, cause TEXT NOT NULL DEFAULT '', alike TEXT NOT NULL DEFAULT '',
    judge_calls INTEGER NOT NULL DEFAULT 0, judge_tokens INTEGER, judge_cost REAL,
    judge_cached INTEGER NOT NULL DEFAULT 0, judge_saved REAL);
CREATE INDEX attempts_by_change ON attempts (changed);
CREATE INDEX attempts_by_case ON attempts (case_ref);
CREATE TABLE bodies (attempt_ref INTEGER PRIMARY KEY REFERENCES attempts (id), body BLOB NOT NULL);
CREATE TABLE live (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, attempt_ref INTEGER NOT NULL, kind TEXT NOT NULL,
    agent TEXT NOT NULL DEFAULT '', text TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',
    call_id TEXT NOT NULL DEFAULT '', at REAL NOT NULL);
"""


ADDED = {
    "attempts": {
        "answer": "TEXT NOT NULL DEFAULT ''",
        "ends_at": "REAL",
        "asserted_nothing": "INTEGER NOT NULL DEFAULT 0",
        "judges": "TEXT NOT NULL DEFAULT ''",
        "cached": "INTEGER NOT NULL DEFAULT 0",
        "saved": "REAL",
        "cause": "TEXT NOT NULL DEFAULT ''",
        "alike": "TEXT NOT NULL DEFAULT ''",
        "judge_calls": "INTEGER NOT NULL DEFAULT 0",
        "judge_tokens": "INTEGER",
        "judge_cost": "REAL",
        "judge_cached": "INTEGER NOT NULL DEFAULT 0",
        "judge_saved": "REAL",
    },
    "cases": {"variant": "TEXT NOT NULL DEFAULT ''"},
}
"""By table the columns that runs of earlier versions have not, with their types; a reader takes the default."""


UNREAD = "unread"
"""The part of a run's provenance that says how many errors its files had: what they hold was not asked."""


PLACE_LOST = "place_lost"
"""Under which the provenance of a run whose place was lost, with its cluster, has how many attempts had begun there."""


KEEPS_ANSWERS = "keeps_answers"
"""Under which the provenance of a run says that answers were kept, or were to be taken from those that are."""


CUT_OFF = "cut_off"
"""Under which it has, for each time that it was killed, how many attempts were then under way; of a merged
run also its parts."""
CUT_OFF_PARTS = "cut_off_parts"
"""Under which a merged run has the same of parts that were killed, until it goes on with what they left."""


NOTED = "noted"
"""Under which the provenance of a run has what its note says also when it goes on: texts. The rest is said
anew then."""


COMPARED_LATER = "is compared when the other columns of its test have run"
"""The detail of an attempt that has its answer and waits for others; where its engine is gone, an error."""


class RunInfo(msgspec.Struct, omit_defaults=True):
    """A run's own facts, kept in `meta`.

    `state` as written; a reader turns `running` into `interrupted` when no living engine holds the
    folder's lock. `options` are those the run was started with, `paths` the suites, `linked_to` the
    run it adds attempts to or reruns a part of. `provenance` holds versions, command, git commit,
    dirty flag, agents' configuration hashes and the model names that servers returned. `metrics` are
    the sums of promptfoo's columns with what is derived from them. `place` is where its attempts are executed, for
    a person; empty: by the engine itself. `paused_at` is since when it is paused (None: it is not), `paused_for` the
    seconds for which it was before.
    """

    id: str
    state: RunState = "running"
    version: str = ""
    started_at: float = 0.0
    finished_at: float | None = None
    paths: list[str] = []
    options: dict[str, Any] = {}
    agents: list[str] = []
    linked_to: str | None = None
    note: str = ""
    scripted: bool = False
    provenance: dict[str, Any] = {}
    metrics: list[dict[str, Any]] = []
    place: str = ""
    paused_at: float | None = None
    paused_for: float = 0.0

    @property
    def stepped(self) -> bool:
        """Whether a person decides on each turn of it."""
        return bool(self.options.get("step"))

    def elapsed(self, now: float) -> float:
        """Seconds that it took, or has taken: a clock that stands while the run is paused."""
        end = self.finished_at or self.paused_at or now
        return max(0.0, end - self.started_at - self.paused_for)


def scripted_words(agents: Sequence[str], scripted: Container[str]) -> str:
    """Which of a run's agents are scripted, to stand behind their names: of one that asks a model too, those alone."""
    named = [agent for agent in agents if agent in scripted]
    if not named:
        return ""
    return " (scripted)" if len(named) == len(agents) else f" (scripted: {', '.join(named)})"


def scripted_agents(info: RunInfo) -> Container[str]:
    """Those of a run's agents that its record calls scripted; all where it only says that there is one."""
    known = info.provenance.get("agents")
    types = known if isinstance(known, dict) else {}
    found = [name for name, one in types.items() if isinstance(one, dict) and one.get("type") == "scripted"]
    return found or (info.agents if info.scripted else ())


# -- Figures of a row as `guard.figures` has them; a row that holds another is looked at value by value.


Count = Annotated[int, msgspec.Meta(ge=0, le=figures.MOST)]
Amount = Annotated[float, msgspec.Meta(ge=0, le=figures.MOST)]
Moment = Annotated[float, msgspec.Meta(ge=0, le=figures.LATEST)]
Finite = Annotated[float, msgspec.Meta(ge=-float_info.max, le=float_info.max)]
Attempts = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
"""Attempts that a case can have: what is written by hand may say any number."""


UNNAMED = "unknown"
"""The format and agent of a result that names none."""
FROM_FILE = "file-"
"""Begins the content's hash of a case known from a results file only, which is none of the suite's own."""


class StoredCase(msgspec.Struct, gc=False, array_like=True):
    """One case of a run with one agent (a column of the results), made of its row. `variant` tells it from others of
    its name in its suite (`case_names.variant_of`); empty where none is needed, and in older runs."""

    id: int
    case_id: str
    suite: str
    name: str
    format: str
    agent: str
    model: str | None
    content_hash: str
    attempts: Attempts
    required: Attempts
    variant: str = ""


def price_of(cost: float | None, saved: float | None) -> float | None:
    """What answers cost when they were given (USD): comparisons, means and plots go by that, since what the cache saved
    is nothing that an agent got cheaper by. None: not known."""
    return cost if cost is None or not saved else figures.rounded_sum(cost + saved)


class AttemptRow(msgspec.Struct, gc=False, array_like=True):
    """One attempt without its body, made of its row. `detail` says what it is doing while it runs (`retrying:
    429, again in 12 s`), `changed` grows with every change in the run, so viewers read only news. `answer` is
    a fingerprint of what was answered at last; empty where that is not known (older runs). `ends_at` is when
    its time limit ends it while it runs (seconds since the epoch); None where none does, or that is not known
    (older runs). `asserted_nothing` is 1 where no verdict could have been another one. `cause` is why it did
    not pass in few words made from evidence (`tui_eval.causes`), `alike` what those that fail the same way
    have in common; empty where it did, and in older runs. `judges` is the recorded answer that it judges
    again, as `RUN/ATTEMPT` where that was first recorded; empty where the agent was asked. `cached` turns
    were answered from the cache, which `saved` so much (USD; None: not known); tokens and cost are of the
    others. Models that judged gave `judge_calls` answers beside them, for `judge_tokens` and `judge_cost`
    (USD; None: not known): by this attempt, also where it judges again. `judge_cached` more of their answers
    were in the cache, which saved `judge_saved`."""

    id: int
    case_ref: int
    attempt: int
    state: AttemptState
    outcome: Outcome | None
    score: Finite | None
    message: str
    started_at: Moment | None
    duration_ms: Amount | None
    input_tokens: Count | None
    output_tokens: Count | None
    cached_tokens: Count | None
    cost: Amount | None
    tool_calls: Count | None
    turn: int
    detail: str
    changed: int
    answer: str = ""
    ends_at: float | None = None
    asserted_nothing: int = 0
    judges: str = ""
    cached: int = 0
    saved: Amount | None = None
    cause: str = ""
    alike: str = ""
    judge_calls: int = 0
    judge_tokens: Count | None = None
    judge_cost: Amount | None = None
    judge_cached: int = 0
    judge_saved: Amount | None = None

    @property
    def price(self) -> float | None:
        """See `price_of`."""
        return price_of(self.cost, self.saved)


FOR_PERSON = "for a person"
"""The name of a live note that waits for somebody: to sign in, say."""


class LiveRow(msgspec.Struct):
    """A piece of what a running attempt says. `kind` is an entry kind (`assistant`, `reasoning`,
    `user`, `tool_call`, `tool_result`, `hand_off`, `note`, `error`, `retry`); consecutive rows of
    kind `assistant` or `reasoning` and one agent are one text. Dropped when the attempt is done."""

    seq: int
    attempt_ref: int
    kind: str
    agent: str
    text: str
    name: str
    call_id: str
    at: float


Asked = Literal["own", "named", "again"]


class CaseHistory(msgspec.Struct):
    """The result of a case with one agent and model in one run, from the index across runs, newest first in
    lists. A run that adds attempts to another, or judges some again, has what both come to (`passed` of
    `attempts`); `tokens` and `cost` are of the run's own attempts, of which there are `own_attempts`;
    `duration_ms` is how long the answers took, in whichever run that was. `asked`
    says whose choice its column was: the suite's `own`, one that was `named` (`--agent`, `-m`), or one of
    before, asked `again`. `judges` is the run whose recorded answers it judges again (of several the newest);
    empty where the agent was asked. `cause` and `alike` as in `AttemptRow`, of the attempt whose `message` this is.
    `cached` attempts have answers from the cache; `judge_cost` (USD) is what the judging of the own attempts took, with
    what cached answers of judges saved (None: not known). `compat` are the rules that it was judged by
    (`store.judged_under`); empty where that is not known. `unjudged` of the attempts were cancelled."""

    run_id: str
    case_id: str
    agent: str
    model: str | None
    outcome: Outcome
    passed: int
    attempts: int
    finished_at: float
    duration_ms: float | None
    tokens: int | None
    cost: float | None
    content_hash: str
    message: str
    own_attempts: int = 0
    asked: Asked = "own"
    cause: str = ""
    alike: str = ""
    cached: int = 0
    judge_cost: float | None = None
    compat: str = ""
    unjudged: int = 0
    judges: str = ""

    @property
    def judged(self) -> int:
        """Attempts that came to a verdict."""
        return self.attempts - self.unjudged


class RunSummary(msgspec.Struct):
    """One line of the list of runs, from the index, and of shards that are looked at (`waiting`: for one that
    is to come). Counts are of attempts, `cached` of those whose answers came from the cache, which `saved` so
    much (USD). Judges took `judge_tokens` and `judge_cost` beside `cost`. A run that cannot be read is
    `damaged`, or `newer` where a newer tui-eval has written it; its `what` says why."""

    id: str
    state: RunState | Literal["damaged", "newer", "waiting"]
    started_at: float
    finished_at: float | None
    what: str
    agents: str
    total: int
    passed: int
    failed: int
    errors: int
    cancelled: int
    cost: float | None
    linked_to: str | None
    cached: int = 0
    saved: float | None = None
    stepped: bool = False
    """Whether it is one case that a person stepped through."""
    paused_for: float = 0.0
    cost_of: int = 0
    """Of how many attempts the cost is known; `tokens_of` the tokens."""
    tokens_of: int = 0
    only: str = ""
    """The name of its case where it has one, with what tells that from others of its name; of a few cases of one test
    these, too."""
    suite: str = ""
    """Of which suite that is, where it is of one."""
    rules: str = ""
    """By which rules it was judged, where these are not the documented ones (`store.judged_under`)."""
    part_of: str = ""
    """The run of which it runs a part of the cases again, where it is linked to none (`store.linked.parts`)."""
    judge_tokens: int | None = None
    judge_cost: float | None = None
    judge_cached: int = 0
    judge_saved: float | None = None
    cases_failed: int | None = None
    """How many cases, not attempts, came out so; `cases_errors` as errors. None: not known."""
    cases_errors: int | None = None
    lacks: str = ""
    """What it does not have though all that it holds has ended (`missing_cases.lacks_of`): it is no success."""
    never_begun: bool = False
    """Of one that cannot be read: it was cut off before anything of it ran."""

    @property
    def price(self) -> float | None:
        """See `price_of`."""
        return price_of(self.cost, self.saved)

    @property
    def unread(self) -> bool:
        """Whether it cannot be read."""
        return self.state in ("damaged", "newer")

    @property
    def never_ran(self) -> int:
        """Attempts that never ran to their end, where nothing is at work on them; what a person changed by hand on its
        way, in a step, is none of them."""
        if self.stepped or self.state in ("running", "paused", "waiting"):
            return 0
        return max(0, self.total - self.passed - self.failed - self.errors - self.cancelled)

    @property
    def short_of(self) -> str:
        """What one that has ended is short of, in two or three words: what passed is not all there. Empty: nothing."""
        if self.state != "finished":
            return ""
        return f"{self.never_ran:,} not run" if self.never_ran else "not whole" if self.lacks else ""

    @property
    def told(self) -> str:
        """What was run, with the name of its case where it has one, and by which rules, if by others than the
        documented."""
        places, mark, cases = self.what.rpartition(" (")
        what = f"{self.suite or places}{mark}{cases}" + (f" › {self.only}" if self.only else "")
        return what + (f" · compat: {self.rules}" if self.rules else "")

    @property
    def other_agents(self) -> str:
        """Its agents; empty where the name of its case says them already, as that of a matrix does."""
        words = f" {self.only.rpartition(' · ')[2].replace(',', ' ')} " if " · " in self.only else ""
        said = all(
            f" {agent.rpartition(':')[2].rpartition('/')[2]} " in words for agent in self.agents.split(", ")
        )
        return "" if said else self.agents

    @property
    def took(self) -> float | None:
        """Seconds from its start to its end, without those for which it stood still; None where it has no end."""
        if self.finished_at is None:
            return None
        return max(0.0, self.finished_at - self.started_at - self.paused_for)


decoded(RunInfo)
