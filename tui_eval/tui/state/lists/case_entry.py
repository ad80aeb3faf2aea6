"""A case as a list shows it, what of the cases' figures there is to be shown, and in which columns. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from msgspec import Struct
from rich.cells import cell_len

from tui_eval.model import Case
from tui_eval.store.case_state import Column
from tui_eval.store.notes import HumanNote


class EntryColumn(NamedTuple):
    """How a case stands in the column that its row is of, where it has several or the one was named (`--agent`,
    `-m`); `own`: it is the suite's own."""

    agent: str
    model: str
    own: bool
    of: int
    """How many columns the case has."""


class CaseRow(Struct, eq=False):
    """A case as a list shows it now. `key` is unique in the list; `trend` oldest first; `finished_at`
    in seconds since the epoch; `attempts` the attempts' statuses in order; `case_ref` its row in the
    run `run_id`."""

    key: str
    case_id: str
    name: str
    suite: str
    format: str
    status: str = ""
    agent: str = ""
    model: str = ""
    flaky: bool = False
    case: Case | None = None
    case_ref: int | None = None
    run_id: str = ""
    attempts: str = ""
    ratio: tuple[int, int] | None = None
    """Attempts that passed, of how many, where they are not known one by one."""
    trend: tuple[float, ...] = ()
    finished_at: float | None = None
    started_at: float | None = None
    ends_at: float | None = None
    """When the time limit ends what runs of it, seconds since the epoch."""
    duration_ms: float | None = None
    tokens: int | None = None
    cost: float | None = None
    score: float | None = None
    """Mean of its attempts' scores, of a run in front."""
    cached: int = 0
    """Attempts with answers from the cache, which cost nothing now."""
    message: str = ""
    cause: str = ""
    """Why it did not pass, in few words, fact first; empty where only the message says so."""
    alike: str = ""
    """What those that fail the same way have in common (`lacks "2 years"`): the line of their group. Empty where
    only the message says why."""
    detail: str = ""
    compat: str = ""
    """The rules that what counts of it was judged by (`store.judged_under`); empty where that is not known."""
    edited: int = 0
    """Cases (of a row its one) that are otherwise now than where they came to this."""
    note: HumanNote | None = None
    """What a person said of the case's newest answer that was noted on."""
    answered_in: str = ""
    """The run in which the newest answer was given, also where another judged it again."""
    variant: str = ""
    """What tells it from others of its suite with the same name: prompt, provider, agent."""
    test: str = ""
    """Of which test of its suite it is a row; empty: of the one called as the row. Rows of one test stand together."""
    column: EntryColumn | None = None
    """The column that it is asked in, of a row of the suites; None where there is only the suite's own."""
    answered: str = ""
    """The model of what it came to; of an agent's entry where the case itself names none, so that `model` is empty."""
    named: bool = False
    """Whether its agent was named by who asked: then it stands in that one's column, also where its test has
    that agent of its own in another (promptfoo)."""

    @property
    def passed_of(self) -> tuple[int, int]:
        """Attempts that passed, and of how many that came to a verdict."""
        if self.attempts:
            return self.attempts.count("p"), sum(letter in "pfe" for letter in self.attempts)
        return self.ratio or (0, 0)

    @property
    def of_test(self) -> tuple[str, str]:
        """Its suite, and which of its tests it is a row of."""
        return self.suite, self.test or self.name

    @property
    def whom(self) -> Column:
        """The agent and the model that answered, else those that are asked: its column in the runs."""
        return Column(self.agent, self.answered or self.model)

    @property
    def columns(self) -> int:
        """In how many columns its case is asked."""
        return self.column.of if self.column is not None else 1


class Extent(Struct):
    """What of the entries' figures is there to be shown; a column without any takes no room."""

    name: int = 0
    """Cells of the longest name with what tells it apart."""
    variant: int = 0
    """Cells of the longest that tells a row from others of its test."""
    attempts: int = 0
    """Of the case with the most."""
    trend: int = 0
    """Runs of the case with the most."""
    tokens: bool = False
    cost: bool = False
    duration: bool = False
    age: bool = False
    limit: bool = False
    """Whether anything runs that a time limit may end."""
    word: int = 0
    """Cells of the longest outcome."""
    flaky: bool = False
    by_reference: bool = False
    by_others: bool = False
    """Whether any has ended that was judged by `compat: reference`, and any that was not."""
    suites: bool = False
    """Whether they are of several suites."""

    @property
    def all_by_reference(self) -> bool:
        """Whether whatever has ended was judged by `compat: reference`."""
        return self.by_reference and not self.by_others

    def widen(self, entry: CaseRow) -> bool:
        """Take an entry in; says whether that changed anything."""
        changed = False
        if len(entry.status) > self.word:
            self.word, changed = len(entry.status), True
        if len(entry.trend) > self.trend:
            self.trend, changed = len(entry.trend), True
        if len(entry.attempts) > self.attempts:
            self.attempts, changed = len(entry.attempts), True
        for name, has in (
            ("tokens", entry.tokens),
            ("cost", entry.cost),
            ("duration", entry.cached or entry.duration_ms is not None or entry.started_at),
            ("age", entry.finished_at),
            ("limit", entry.ends_at),
            ("flaky", entry.flaky),
            ("by_reference", entry.compat == "reference"),
            ("by_others", entry.finished_at and entry.compat != "reference"),
        ):
            if has and not getattr(self, name):
                setattr(self, name, True)
                changed = True
        return changed


def extent_of(entries: Iterable[CaseRow]) -> Extent:
    """What these entries have to show."""
    extent = Extent()
    suite: str | None = None
    for entry in entries:
        if entry.suite != suite:
            extent.suites = suite is not None or extent.suites
            suite = entry.suite
        wide = len(entry.name) if entry.name.isascii() else cell_len(entry.name)
        if entry.variant:
            told = cell_len(entry.variant)
            wide += told + 3
            if told > extent.variant:
                extent.variant = told
        if wide > extent.name:
            extent.name = wide
        # Most cases of a large list have nothing yet, or nothing new.
        if (
            len(entry.status) > extent.word
            or entry.attempts
            or entry.finished_at
            or entry.started_at
            or entry.trend
        ):
            extent.widen(entry)
    return extent


_IN_A_LINE = 600
"""Characters of prose that a line of a list looks at."""
_IN_A_PANE = 4_000


def line_reason(words: str) -> str:
    """Prose on one line."""
    return " ".join(words[:_IN_A_LINE].split())


def reason_in_line(cause: str, message: str) -> str:
    """Why, on one line: the cause, else the beginning of the prose."""
    return cause or line_reason(message)


def reason_in_pane(cause: str, message: str) -> str:
    """Why, where there is room for several lines."""
    return cause or message[:_IN_A_PANE]


WORD_CELLS = 9
"""Cells of an outcome's word with how often a flaky case passed, `flaky 2/3`."""

WORDS_FROM = 44
"""Columns from which a line of a run says its outcome as a word too (ux.md: glyph, word, colour); with fewer
there is no room for anything beside a name."""

TIMES_FROM = 56
"""Columns from which it says how long it took: with fewer the reason has the room, unless
a time limit is near, which must be seen before it strikes."""

FIGURES_FROM = 64
"""Columns from which a line of the suites says that, and how more than the last three runs came out."""

NAME_CELLS = 18
"""Cells that a case's name has before a message beside it gets any."""

VARIANT_CELLS = 22
"""The same of a row below its test at most, so that what is said beside siblings begins in one column."""

VARIANT_FROM = 60
"""Columns from which it may be more than `NAME_CELLS`."""


class CaseColumns(Struct, frozen=True):
    """The widths of the columns right of the name; 0: not shown. Each is preceded by a space. `name` is
    where what is said beside a name begins at the latest."""

    word: int = 0
    trend: int = 0
    attempts: int = 0
    tokens: int = 0
    cost: int = 0
    duration: int = 0
    age: int = 0
    name: int = 0
    variant: int = NAME_CELLS

    @property
    def total(self) -> int:
        """Cells they take with their spaces."""
        widths = (self.word, self.trend, self.attempts, self.tokens, self.cost, self.duration, self.age)
        return sum(width + 1 for width in widths if width)


def columns_for(
    kind: Literal["suites", "run"], width: int, extent: Extent, *, words: bool = True
) -> CaseColumns:
    """Which columns a list of this width has: those that fit, and that any of its cases fills. Outcomes are
    said as `words` where glyphs are letters."""
    many = extent.attempts if extent.attempts > 1 else 0
    word = max(extent.word, len("flaky") if extent.flaky else 0) if words else 0
    variant = max(NAME_CELLS, min(extent.variant, VARIANT_CELLS)) if width >= VARIANT_FROM else NAME_CELLS
    if kind == "run":
        time = (9 if width >= 60 else 8) if extent.limit else 6
        return CaseColumns(
            word=word if width >= WORDS_FROM else 0,
            attempts=min(10 if width >= 60 else 5, many),
            duration=time if width >= (WORDS_FROM if extent.limit else TIMES_FROM) else 0,
            tokens=8 if width >= 100 and extent.tokens else 0,
            cost=8 if width >= 110 and extent.cost else 0,
            name=extent.name,
            variant=variant,
        )
    return CaseColumns(
        word=WORD_CELLS if extent.flaky and words else word,
        attempts=min(5, many) if width >= 84 else 0,
        trend=min(
            extent.trend, 12 if width >= 100 else 6 if width >= FIGURES_FROM else 3 if width >= 44 else 0
        ),
        age=4 if width >= 38 and extent.age else 0,
        duration=6 if width >= FIGURES_FROM and extent.duration else 0,
        cost=8 if width >= 100 and extent.cost else 0,
        name=extent.name,
        variant=variant,
    )
