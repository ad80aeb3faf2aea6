"""Compare: two runs, or two agents of one, joined by case; what regressed first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.events import ScreenResume

from tui_eval.case_names import full_name
from tui_eval.reports.run_comparison import Change, RunComparison
from tui_eval.tui.background import run_in_thread, stands
from tui_eval.tui.front import RunChanged
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import COMPARE_KEYS, COMPARE_OPEN_KEYS, PANE_KEYS, Key, bindings
from tui_eval.tui.loaders.compare_loader import (
    Compared,
    Half,
    Sides,
    changed_sides,
    load_comparison,
    newest_sides,
    other_half,
)
from tui_eval.tui.screens.attempt_beside import BREAKPOINTS, AttemptBelow, LookedAt
from tui_eval.tui.screens.list_finder import RowFinder
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.state.app_state import CasePointer, Where
from tui_eval.tui.state.compare.compare_view import (
    CompareNews,
    CompareRow,
    folded,
    news_since,
    row_line,
    rows,
    runs_now,
    summary_lines,
)
from tui_eval.tui.state.text.fitting import cell_len
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.state.text.lines import one_line, plain
from tui_eval.tui.widgets.bars import FactsBar, KeyHints
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane, RowTable
from tui_eval.tui.widgets.lines_pane import AttemptPane

STYLES: dict[Change, str] = {
    "regressed": "bad", "now an error": "bad", "fixed": "good", "an error no more": "warn", "flaky": "warn",
    "not run": "warn",
}  # fmt: skip
"""Styles of the changes in the line at the top."""


WHOLE = 1_000
"""Columns in which a row has everything."""
SLOW = "comparing"
"""What is said again and again while others are shown still."""
Only = Literal["", "changed", "answers"]
ONLY = {"changed": "only what changed", "answers": "only other answers"}
"""What is said of what is shown, where that is not everything."""


class CompareScreen(Place, inherit_bindings=False):
    """Facts of both, then the cases by change; enter shows the two transcripts."""

    TITLE = "Compare"
    compares = True
    BINDINGS: ClassVar = [*bindings("compare", COMPARE_KEYS), *bindings("screen", PANE_KEYS)]
    KEY_SECTIONS = (
        ("Compare", (*COMPARE_OPEN_KEYS, *COMPARE_KEYS, *PANE_KEYS)),
        ("Moving", keys_in("moving")),
    )
    VERTICAL_BREAKPOINTS = BREAKPOINTS
    DEFAULT_CSS = """
    CompareScreen LineLabel { height: 3; background: $panel; padding: 0 1; }
    CompareScreen RowTable { height: 1fr; }
    """

    def __init__(self, before: Half, after: Half) -> None:
        super().__init__()
        self.before, self.after = before, after
        self.comparison: RunComparison | None = None
        self.only: Only = ""
        """What is shown."""
        self.folded: set[Change] = set()
        """Changes whose cases are not shown."""
        self._rows: list[CompareRow] = []
        self._others: list[str] = []
        """Ids of the keys that bring another run, or agent, to its place."""
        self._news: dict[str, CompareNews] = {}
        self._counted: set[str] = set()
        """Runs that have ended since, and may count with those compared."""
        self._before_it = {run.info.id for run in runs_now(self.services.state)}
        """Runs that were in front or beside it when this was opened, and are no news since."""
        self._generation = 0
        self.table = RowTable(row_line, lambda row: row.key, to_column=self._fold, empty="Reading both runs.")
        self.below = AttemptBelow(self, self.services, self._looked_at)
        self.finder = RowFinder(
            self.table, words_of, self.prompts, self.services.notices, "names and reasons"
        )

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys for finding do, and that of the pane."""
        return {
            **self.below.handlers(),
            "compare.changed": self._toggle_changed,
            "compare.swap": self._swap,
            "compare.later": partial(self._against_other, 1),
            "compare.earlier": partial(self._against_other, -1),
            "compare.find": self.finder.ask,
            "compare.find_next": partial(self.finder.find_next, 1),
            "compare.find_previous": partial(self.finder.find_next, -1),
        }

    def focus_home(self) -> None:
        """The cases."""
        self.table.focus()

    def compose(self) -> ComposeResult:
        """Title, facts, cases, keys."""
        yield FactsBar()
        yield LineLabel()
        yield self.table
        yield AttemptPane()
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Read both."""
        self.table.focus()
        self._load()

    def hints(self) -> Sequence[Key]:
        """Seven keys."""
        own = {key.id: key for key in COMPARE_KEYS}
        names = ["compare.swap"]
        if self._rows:
            names = ["compare.changed", *self._others[:1], "compare.swap", "compare.find"]
        opened = keys_of("list.open") if self._rows else []
        return [*opened, *(own[name] for name in names), *keys_of("help", "quit")]

    @property
    def agents(self) -> bool:
        """Whether two agents of a run are compared, not two runs."""
        return self.before.folder == self.after.folder

    # -- what is shown

    def _load(self, *, keep: bool = False) -> None:
        self._generation += 1
        generation = self._generation

        def tell(words: str) -> None:
            """Called in the thread."""
            self.app.call_later(self._at_work, generation, words)

        def read() -> tuple[Compared, list[CompareRow]]:
            state = self.services.state
            compared = load_comparison(state.root, self.before, self.after, tell)

            def name_of(case_id: str, name: str) -> str:
                return state.name_of(case_id, compared.called.get(case_id, name))

            return compared, rows(compared.comparison, agents=self.agents, name_of=name_of)

        take, failed = partial(self._take, generation, keep), partial(self._failed, generation)
        slow = "" if keep or not self._rows else SLOW
        self.services.tasks.thread(read, take, failed, name="compare", opens=not keep, slow=slow)

    def _at_work(self, generation: int, words: str) -> None:
        """Say how far it is, while nothing is shown."""
        if generation == self._generation and stands(self) and self.comparison is None:
            self.table.empty = words
            self.table.relayout()

    def _failed(self, generation: int, error: Exception) -> None:
        if generation == self._generation and stands(self):
            self.table.empty = f"Cannot be compared: {one_line(error)}"
            self.table.set_rows([], keep=False)
            self.table.relayout()
        self.services.notices.problem(str(error))

    def _take(self, generation: int, keep: bool, found: tuple[Compared, list[CompareRow]]) -> None:
        if generation == self._generation and stands(self):
            here = self.current() if keep else None
            (self.before, self.after, self.comparison, *others, _), self._rows = found
            names = ("compare.later", "compare.earlier")
            self._others = [name for name, there in zip(names, others, strict=True) if there]
            self.query_one(KeyHints).show(self.hints())
            self._news = self._news_now()
            self.redraw(keep=keep)
            if here is not None:
                self.go_to(here)

    def _news_now(self) -> dict[str, CompareNews]:
        compared = {*self.before.runs, *self.after.runs}
        return news_since(runs_now(self.services.state), compared, self._before_it)

    @on(RunChanged)
    @on(ScreenResume)
    def _look(self) -> None:
        """Say which cases run anew, and what came of those that have; a run that counts with those compared
        is counted when it has ended."""
        if self.comparison is None:
            return
        runs = runs_now(self.services.state)
        compared = {*self.before.runs, *self.after.runs}
        ended = {run.info.id for run in runs if not run.active and run.info.linked_to in compared}
        if ended - compared - self._counted:
            self._counted |= ended
            self._load(keep=True)
        news = self._news_now()
        if news != self._news:
            self._news = news
            self.redraw()

    def redraw(self, *, keep: bool = True) -> None:
        """Show what was read, as it is wanted now; `keep`: the cursor stays on its case."""
        comparison = self.comparison
        if comparison is None or not self.has(FactsBar, LineLabel):
            return
        shown = self._rows
        if self.only == "changed":
            shown = [row for row in shown if row.change != "unchanged"]
        elif self.only == "answers":
            unchanged = [row for row in shown if row.change == "unchanged"]
            shown = [row for row in unchanged if row.case is None or row.case.only_the_answer]
        shown = [
            folded(row) if row.case is None and row.change in self.folded else row
            for row in shown
            if row.case is None or row.change not in self.folded
        ]
        if self._news:
            shown = [
                row._replace(news=self._news[row.case.case_id])
                if row.case is not None and row.case.case_id in self._news
                else row
                for row in shown
            ]
        self.table.empty = "Nothing changed." if comparison.cases else "Neither run has a finished case."
        self.table.set_rows(shown, keep=keep)
        if not shown:
            self.table.relayout()
        elif not keep and len(shown) > 1:
            self.table.move_to(1)
        parts = [("dim", f"  {counted(len(comparison.cases), 'case')}")]
        parts += [
            (style, f"  {number:,} {change}")
            for change, style in STYLES.items()
            if (number := comparison.count(change))
        ]
        if comparison.other_answers:
            parts.append(("dim", f"  {comparison.other_answers:,} answered differently"))
        if self.only:
            parts.append(("warn", f"  {ONLY[self.only]}"))
        of_run = f" two agents of {one_line(self.after.folder.name)}"
        titles = [
            [("title", "Compare"), ("dim", more)]
            for more in ((of_run, " two agents", "") if self.agents else ("",))
        ]

        def fitted(width: int) -> list[list[tuple[str, str]]]:
            """The counts have the room first, then whose they are."""
            ways = ([*title, *parts] for title in titles)
            shown = next((way for way in ways if sum(cell_len(text) for _, text in way) <= width), None)
            return [shown if shown is not None else [*titles[-1], *parts]]

        self.query_one(FactsBar).show_fitted(fitted)
        width = max(self.size.width - 2, 20)
        before, after = _name(self.before, self.agents), _name(self.after, self.agents)
        lines = summary_lines(comparison, before, after, width, agents=self.agents)
        label = self.query_one(LineLabel)
        label.styles.height = len(lines)
        label.set_lines(lines)
        self.below.show()

    def on_resize(self) -> None:
        """The facts depend on the width."""
        self.redraw()

    def current(self) -> CasePointer | None:
        """The case under the cursor, as the second run has it."""
        row: CompareRow | None = self.table.current
        if row is None or row.case is None:
            return None
        half, one = (self.after, row.case.after) if row.case.after else (self.before, row.case.before)
        assert one is not None
        return half.pointer(one)

    def go_to(self, pointer: CasePointer) -> None:
        """Put the cursor on a case."""
        for number, row in enumerate(self.table.rows):
            if row.case is not None and row.case.case_id == pointer.case_id:
                self.table.move_to(number)
                return

    # -- the answers of the case under the cursor

    @on(LinePane.Moved)
    def _moved(self, event: LinePane.Moved) -> None:
        event.stop()
        self.below.moved()

    def _looked_at(self) -> LookedAt | None:
        """The answers of both sides, that of the second first."""
        row: CompareRow | None = self.table.current
        if row is None or row.case is None:
            return None
        item = self.services.state.by_id.get(row.case.case_id)
        case = item.case if item is not None else None
        words = ("second", "first") if self.agents else ("after", "before")
        places: list[tuple[str, Where]] = []
        for word, half, one in zip(
            words, (self.after, self.before), (row.case.after, row.case.before), strict=True
        ):
            if one is None:
                continue
            pointer = half.pointer(one)
            label = f"{word}: {half.column}" if self.agents else f"{word}: {pointer.run_id}"
            places.append((label, Where(pointer, half.folder_of(pointer.run_id), None, case)))
        name = full_name(*row.name[:2])
        told = [place.pointer.run_id for _, place in places]
        if len(set(told)) < len(told) and not self.agents:  # one of the runs only adds to the other
            del places[1]
            name = f"{name} · one attempt for both: {told[0]}"
        key = (row.key, tuple(place.pointer for _, place in places))
        return LookedAt(key, places, [("title", name)])

    # -- keys

    @on(LinePane.Opened)
    def _opened(self, event: LinePane.Opened) -> None:
        event.stop()
        row: CompareRow | None = self.table.current
        if row is None:
            return
        if row.case is None:
            self._fold(1 if row.change in self.folded else -1)
            return
        pointer = self.current()
        if row.case.before is None or row.case.after is None:
            if pointer is not None:
                self.services.places.open_case(pointer)
            return

        def take(sides: Sides | None) -> None:
            if not self.is_current:
                return
            if sides is not None:
                self.services.places.show("sides", sides)
            elif pointer is not None:
                self.services.places.open_case(pointer)

        root = self.services.state.root
        work = partial(changed_sides, root, self.before, self.after, row.case)
        if row.news is not None and row.news.ended:
            work = partial(newest_sides, root, self.after, row.case, row.news.ended[-1])
        run_in_thread(self.app, work, take, name="sides", opens=True)

    def _fold(self, step: int) -> None:
        """Right and left: unfold or fold the cases of the change that the cursor is in."""
        row: CompareRow | None = self.table.current
        if row is None:
            return
        if step > 0:
            self.folded.discard(row.change)
        else:
            self.folded.add(row.change)
        self.redraw()
        heading = next((i for i, one in enumerate(self.table.rows) if one.key == (row.change,)), None)
        if heading is not None and (step < 0 or row.case is None):
            self.table.move_to(heading)

    def _toggle_changed(self) -> None:
        """Only what changed; then only cases whose answer differs and nothing else; then everything."""
        some = self.comparison is not None and self.comparison.other_answers
        after: dict[Only, Only] = {"": "changed", "changed": "answers" if some else "", "answers": ""}
        self.only = after[self.only]
        self.redraw()

    def _swap(self) -> None:
        """The other way round."""
        self.before, self.after = self.after, self.before
        self._load()

    def _against_other(self, step: int) -> None:
        """Against a later (or earlier) run, or another agent of it."""
        self._generation += 1
        generation = self._generation

        def take(half: Half | None) -> None:
            if generation != self._generation or not stands(self):
                return
            if half is None:
                what = "agent" if self.agents else "later run" if step > 0 else "earlier run"
                self.services.notices.say(f"no {what} to compare with")
            else:
                self.before = half
                self._load()

        work = partial(other_half, self.services.state.root, self.before, self.after, step)
        run_in_thread(self.app, work, take, name="other", opens=True)


def words_of(row: CompareRow) -> str:
    """All that a case's row says, its suite, and why it does not pass; nothing for a heading."""
    if row.case is None:
        return ""
    both = [one for one in (row.case.before, row.case.after) if one is not None]
    told = [words for one in both for words in (one.cause, one.message)]
    return "\n".join([plain(row_line(row, WHOLE)), row.name.name, row.name.variant, row.case.suite, *told])


def _name(half: Half, agents: bool) -> str:
    """A side for people: its agent, or its run with how many count with it."""
    if agents:
        return half.column or "no agent"
    more = f" +{len(half.linked) - 1} linked" if len(half.linked) > 1 else ""
    what = f" · {half.what}" if half.what else ""
    return f"{half.folder.name}{f' {half.column}' if half.column else ''}{more}{what}"
