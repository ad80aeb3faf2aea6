"""Two attempts of a case side by side: their rows as one table, their transcripts with the words that differ."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.events import ScreenResume

from tui_eval.case_names import column_label, full_name, shared_variant
from tui_eval.tui.background import run_in_thread
from tui_eval.tui.front import RunChanged, Said
from tui_eval.tui.handlers import Handler
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.keys import SIDES_KEYS, Key, bindings
from tui_eval.tui.loaders.compare_loader import CompareChoice, Sides, load_sides, newest_right, with_new
from tui_eval.tui.screens.place import Place, keys_in, keys_of
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.compare.compare_view import CompareNews, news_of, runs_now
from tui_eval.tui.state.compare.sides_view import STACKED, SidePair, SideRow, as_text, joined, layout
from tui_eval.tui.state.data.data_view import PairedRows
from tui_eval.tui.state.text.formatting import duration
from tui_eval.tui.state.text.lines import Line, Mark, Span, fit, marked, one_line, pattern, width_of
from tui_eval.tui.terminal import pager
from tui_eval.tui.widgets.bars import KeyHints
from tui_eval.tui.widgets.line_pane import LineLabel, LinePane
from tui_eval.tui.widgets.lines_pane import Piece, places_in
from tui_eval.tui.widgets.text_pane import SEARCHING

WIDE = 100
"""Columns from which both sides fit."""
WAYS: dict[bool, tuple[int | None, ...]] = {True: (None, 0, 1, STACKED), False: (STACKED, 0, 1)}
"""What `tab` goes through where both sides fit beside each other, and where they do not."""


class SidesScreen(Place, inherit_bindings=False):
    """The left side is the one to compare with (`> <` choose it), the right one the attempt looked at."""

    TITLE = "Side by side"
    compares = True
    BINDINGS: ClassVar = bindings("sides", SIDES_KEYS)
    KEY_SECTIONS = (("Side by side", SIDES_KEYS), ("Moving", keys_in("moving")))
    DEFAULT_CSS = """
    SidesScreen LineLabel { height: 2; background: $panel; }
    SidesScreen SideBySide, SidesScreen DataTab { height: 1fr; }
    SidesScreen DataTab, SidesScreen.-rows SideBySide { display: none; }
    SidesScreen.-rows DataTab { display: block; }
    """

    def __init__(self, sides: Sides) -> None:
        super().__init__()
        self.sides = sides
        self.pane = SideBySide()
        self.rows = DataTab()
        self._rows_of: PairedRows | None = None
        """The rows that the table shows."""
        self._way = 0
        self._wide: bool | None = None
        self._generation = 0
        self._aim = sides
        """The sides that are shown or being read."""
        self._old = {one.run_id for one in sides.choices}
        """Runs that had the case when this was opened: their attempts change no side by themselves."""
        self._news = CompareNews()
        self._looked_for: tuple[tuple[str, int], ...] = ()
        """Attempts that were looked for since they had ended."""
        self._sought = ""
        self._start = 0
        """The row under the cursor when it was asked what to find."""

    def compose(self) -> ComposeResult:
        """Names, both texts, keys."""
        yield LineLabel()
        yield self.pane
        yield self.rows
        yield KeyHints(self.hints())

    def on_mount(self) -> None:
        """Show what was read."""
        self.set_class(self.sides.rows is not None, "-rows")
        self.pane.focus()
        self._arrange()
        self._show()

    def hints(self) -> Sequence[Key]:
        """Seven keys."""
        own = {key.id: key for key in SIDES_KEYS}
        rows = self.has_class("-rows")
        names = [] if rows else ["sides.other"]
        names.append("sides.rows" if self.sides.rows is not None else "sides.only")
        if self.rows.has_turn(1) if rows else self.pane.differing(1) is not None:
            names.insert(0, "sides.next")
        elif self.rows.has_turn(-1) if rows else self.pane.differing(-1) is not None:
            names.insert(0, "sides.previous")
        for step, name in ((1, "sides.later"), (-1, "sides.earlier")):
            if self._other_attempt(step) is not None:
                names.insert(len(names) - 1, name)
                break
        return [*(own[name] for name in names), *keys_of("back", "help", "quit")]

    def show_hints(self) -> None:
        """Let the footer name what does something now."""
        if self.has(KeyHints):
            self.query_one(KeyHints).show(self.hints())

    @on(LinePane.Moved)
    @on(InspectorTab.Shown)
    def _moved(self) -> None:
        self.show_hints()

    def current(self) -> CasePointer | None:
        """The attempt looked at."""
        one = self.sides.choices[self.sides.right]
        return CasePointer(self.sides.case_id, one.agent, one.model, one.run_id, one.row.id)

    def on_resize(self) -> None:
        """Both sides where they fit."""
        self._arrange()
        self.call_after_refresh(self._front)

    def _arrange(self) -> None:
        wide = self.size.width >= WIDE
        if wide != self._wide:
            self._way, self._wide = 0, wide
        ways = WAYS[wide]
        self.pane.show_side(ways[self._way % len(ways)])
        self._head()

    def _show(self) -> None:
        if self.sides.before is not None and self.sides.after is not None:
            self.pane.set_pairs(self.sides.pairs)
        if self.sides.rows is None:
            self.remove_class("-rows")
        self.show_hints()
        self.call_after_refresh(self._front)
        self._head()

    def _front(self) -> None:
        """Read the rows as soon as they are in front; the keys go to what is."""
        if not self.has_class("-rows"):
            self.pane.focus()
        elif self.rows.size.width:
            if self._rows_of is not self.sides.rows and self.sides.rows is not None:
                self._rows_of = self.sides.rows
                self.rows.compare(self.sides.rows)
            self.rows.grid.focus()

    def _head(self) -> None:
        width = self.size.width or 80
        other, one = (self.sides.choices[i] for i in (self.sides.left, self.sides.right))
        apart = (other.agent, other.model) != (one.agent, one.model)
        left, right = _facts(other, apart), _facts(one, apart)
        called = self.services.state.name_of(self.sides.case_id, one.name or self.sides.case_id)
        name = one_line(
            full_name(called, shared_variant(one.variant, other.variant) if apart else one.variant)
        )
        side = self.pane.side
        told: list[Line]
        anew = "  ● a new attempt runs" if self._news.working else ""
        if side is None:
            half = (width - 4) // 2
            first = fit(left, half)
            told = [(*first, Span(" " * (half - width_of(first) + 3)), *fit(right, half))]
        elif side == STACKED:
            told = [(Span("− ", "removed-sign"), *left), (Span("+ ", "added-sign"), *right)]
        else:
            word = ("compared with ", "looked at ")[side]
            told = [(Span(word, "label"), *(left, right)[side])]
        differing = sum(pair.differs for pair in self.pane.pairs)
        words = f"  {differing:,} of {len(self.pane.pairs):,} entries differ"
        if self.has_class("-rows"):
            words += "  d shows what was said"
        short = fit((Span(name, "strong"),), max(width - width_of((Span(words + anew),)), 8))
        label = self.query_one(LineLabel)
        label.styles.height = 1 + len(told)
        label.set_lines(
            [fit(line, width) for line in ((*short, Span(words, "muted"), Span(anew, "running")), *told)]
        )

    # -- keys

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "sides.other": self._other_way,
            "sides.next": partial(self._to_difference, 1),
            "sides.previous": partial(self._to_difference, -1),
            "sides.find": self._ask,
            "sides.find_next": partial(self._find_next, 1),
            "sides.find_previous": partial(self._find_next, -1),
            "sides.later": partial(self._to_attempt, 1),
            "sides.earlier": partial(self._to_attempt, -1),
            "sides.only": self._toggle_only,
            "sides.rows": self._toggle_rows,
            "sides.beside": self._toggle_beside,
            "sides.freeze": self._freeze,
            "sides.pager": self._page,
        }

    def _other_way(self) -> None:
        """One side alone, the other alone, both below each other (and beside each other, where they fit)."""
        if self.has_class("-rows"):
            self.services.notices.say(
                "rows are one table: d shows the transcripts, o puts both sides beside each other"
            )
            return
        self._way = (self._way + 1) % len(WAYS[bool(self._wide)])
        self._arrange()

    def _to_difference(self, step: int) -> None:
        """To the next entry that differs; among rows, to the next cell."""
        if self.has_class("-rows"):
            self._say(self.rows.turn(step))
        elif not self.pane.step(step):
            self.services.notices.say("no further difference")

    # -- `/ n N`

    async def _ask(self) -> None:
        """Ask what to find in both transcripts, or in the rows that are in front."""
        if not self.prompts.open:
            self._start = self.pane.cursor
            where = "the rows" if self.has_class("-rows") else "both"
            prompt = Prompt("/", self._sought, f"find in {where}; enter keeps, n and N go on")
            await self.prompts.ask(prompt, self._left, self._typed)

    def _typed(self, words: str) -> None:
        if not self.has_class("-rows"):
            self.pane.find(words, self._start)

    def _left(self, words: str, kept: bool) -> None:
        self._sought = words if kept else ""
        if self.has_class("-rows"):
            searching = self.rows.find(self._sought) == SEARCHING
            self._say_place((0, 0) if searching else self.rows.find_next(0))
        else:
            self.pane.find(self._sought, self._start)
            self._say_place(self.pane.place)

    def _find_next(self, step: int) -> None:
        """The next match, coming round; where nothing is looked for, the next difference."""
        if not self._sought:
            self._to_difference(step)
        elif self.has_class("-rows"):
            self._say_place(self.rows.find_next(step))
        else:
            self._say_place(self.pane.find_next(step))

    def _say_place(self, place: tuple[int, int]) -> None:
        number, count = place
        if count:
            self._say(f"{number:,} of {count:,}")
        elif self._sought:
            going_on = self.has_class("-rows") and self.rows.searching
            self._say("searching…" if going_on else f"not here: {one_line(self._sought)}")

    def _toggle_only(self) -> None:
        """Only what differs."""
        if self.has_class("-rows"):
            self.rows.show_only(not self.rows.only)
            self._say("only rows that differ" if self.rows.only else "all rows")
            return
        self.services.notices.say("only what differs" if self.pane.toggle_only() else "everything")

    def _toggle_rows(self) -> None:
        """The rows of both as one table, or the transcripts."""
        if self.sides.rows is None:
            self._say("not both of them answered with rows")
            return
        self.toggle_class("-rows")
        self.show_hints()
        self.call_after_refresh(self._front)
        self._head()

    def _toggle_beside(self) -> None:
        """Rows as one table, or both sides beside each other."""
        self._say(self.rows.toggle_sides() if self.has_class("-rows") else "o is for rows: d shows them")

    def _freeze(self) -> None:
        """Columns of the table that stay while one goes sideways."""
        self._say(self.rows.toggle_freeze() if self.has_class("-rows") else "v is for rows: d shows them")

    def _say(self, words: str) -> None:
        if words:
            self.services.notices.say(words)

    def _to_attempt(self, step: int) -> None:
        """Another attempt at the left: of this run or another, of this agent or another."""
        sides, at = self._aim, self._other_attempt(step)
        if at is None:
            self.services.notices.say("no later attempt" if step > 0 else "no earlier attempt")
            return
        self._go(Sides(sides.case_id, sides.choices, at, sides.right))

    def _other_attempt(self, step: int) -> int | None:
        """The next (or previous) attempt that can stand at the left; None where there is none."""
        sides = self._aim
        at = sides.left + step
        if at == sides.right:
            at += step
        return at if 0 <= at < len(sides.choices) else None

    def _go(self, aim: Sides) -> None:
        self._generation += 1
        self._aim = aim
        work = partial(load_sides, self.services.state.root, aim)
        run_in_thread(self.app, work, partial(self._take, self._generation), name="sides", opens=True)

    def _take(self, generation: int, sides: Sides) -> None:
        if generation == self._generation and self.has(LineLabel):
            self.sides = sides
            self._show()

    @on(Said)
    def _said(self, event: Said) -> None:
        event.stop()
        self._say(event.words)

    # -- an attempt that was started meanwhile (`r`, `+`, `.`)

    @on(RunChanged)
    @on(ScreenResume)
    def _look(self) -> None:
        """Say that one runs; when it has ended, look for it."""
        if not self.has(LineLabel):
            return
        known = {one.pointer for one in self._aim.choices}
        runs = runs_now(self.services.state)
        self._news, before = news_of(runs, self.sides.case_id, known), self._news
        if bool(self._news.working) != bool(before.working):
            self._head()
        if self._news.ended and self._news.ended != self._looked_for:
            self._looked_for = self._news.ended
            aim = self._aim
            seen = Sides(aim.case_id, aim.choices, aim.left, aim.right)
            work = partial(with_new, self.services.state.root, seen, *{run for run, _ in self._looked_for})
            run_in_thread(self.app, work, self._found, name="new sides", queue="new sides")

    def _found(self, sides: Sides) -> None:
        """All attempts, the new ones too; of the sides those that are looked at now stay."""
        if not self.has(LineLabel):
            return
        places = {one.pointer: at for at, one in enumerate(sides.choices)}
        shown = [places.get(self._aim.choices[at].pointer) for at in (self._aim.left, self._aim.right)]
        if None in shown or not len(sides.choices) > len(self._aim.choices):
            return
        left, right = (at for at in shown if at is not None)
        aim = Sides(sides.case_id, sides.choices, left, right)
        self._go(newest_right(aim, self._old) or aim)

    def _page(self) -> None:
        """Everything in the pager."""
        pairs, aim = self.pane.pairs, self._aim
        make = (
            self.rows.text_maker() if self.has_class("-rows") else lambda: as_text(pairs, ("before", "after"))
        )

        def show(text: str) -> None:
            if self.is_current and self._aim is aim and (words := pager.show(self.app, text, "sides")):
                self.services.notices.say(words)

        run_in_thread(self.app, make, show, name="pager", opens=True)


def _facts(one: CompareChoice, who_first: bool) -> Line:
    """An attempt in a line; whose it is first where that tells it from the other."""
    outcome = one.row.outcome or "error"
    who = one_line(column_label(one.agent, one.model))
    told = [time.strftime("%d %b %H:%M:%S", time.localtime(one.row.started_at or 0))]
    told += [f"attempt {one.row.attempt}", duration(one.row.duration_ms)]
    told = list(filter(None, [who, *told] if who_first else [*told, who]))
    return (
        Span(f"{GLYPHS.get(outcome, ' ')} {outcome}", outcome),
        Span(f" {one.how}" if one.how else "", "note"),
        Span(f"  {' · '.join(told)}", "muted"),
    )


# -- Two transcripts beside each other, or below each other where the screen is narrow.


class SideBySide(LinePane):
    """Shows pairs. `side` is None for both beside each other, 0 or 1 for one alone, `STACKED` for both below
    each other."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: Sequence[SidePair] = ()
        self.side: int | None = None
        self.only_differing = False
        self._rows: list[SideRow] = []
        self._made_for: tuple[Any, ...] = ()
        self._words = ""
        self._places: list[tuple[int, list[Piece]]] = []
        """Where what is looked for stands: at the left (0) or right, from the top."""
        self._place = -1
        self._marks: dict[tuple[int, int], list[Mark]] = {}
        """By row and side."""

    def set_pairs(self, pairs: Sequence[SidePair]) -> None:
        """Show other pairs, from the first that differs."""
        self.pairs = pairs
        self.cursor = 0
        self._rows, self._made_for = [], ()
        self.relayout()

    def show_side(self, side: int | None) -> None:
        """Both, or one; the cursor stays on its entry."""
        if side != self.side:
            self._keeping(side=side)

    def toggle_only(self) -> bool:
        """Only what differs, or everything; says which."""
        self._keeping(only=not self.only_differing)
        return self.only_differing

    def _keeping(self, *, side: int | None = -1, only: bool | None = None) -> None:
        if side != -1:
            self.side = side
        if only is not None:
            self.only_differing = only
        self.relayout()

    def relayout(self) -> None:
        """The width, the side or the pairs changed; before there is a width nothing is laid out."""
        if not self.size.width:
            return
        made_for = (self.text_width, self.side, self.only_differing, len(self.pairs))
        if made_for == self._made_for:
            return
        fresh = not self._made_for and bool(self.pairs)
        here = self._rows[self.cursor].pair if self._made_for and self.cursor < len(self._rows) else -1
        self._made_for = made_for
        self._rows = layout(self.pairs, self.text_width, side=self.side, only_differing=self.only_differing)
        self._look()
        self.set_row_count(max(len(self._rows), 1))
        at = next((i for i, row in enumerate(self._rows) if row.pair == here), None)
        if fresh:
            self.scroll_to(y=0, animate=False, immediate=True, force=True)
            at = next(
                (i for i, row in enumerate(self._rows) if row.pair >= 0 and self.pairs[row.pair].differs), 0
            )
            self.move_to(at, top=True)
        elif here >= 0 and at is not None:
            self.move_to(at, top=True)

    def row_line(self, row: int) -> Line:
        """One row."""
        if not self._rows:
            words = "Nothing differs." if self.pairs else "Reading both."
            return (Span(words, "muted"),)
        shown = self._rows[row]
        if self._marks:
            left, right = (self._marks.get((row, side), ()) for side in (0, 1))
            shown = shown._replace(left=marked(shown.left, left), right=marked(shown.right, right))
        if self.side is not None:
            return fit(shown.left, self.text_width)
        return joined(shown, self.text_width)

    @property
    def place(self) -> tuple[int, int]:
        """The place gone to last, from 1 (0: none), and how many there are."""
        return self._place + 1, len(self._places)

    def find(self, words: str, start: int) -> None:
        """Mark a text wherever it stands, and go to the first place from the row `start` on; to that row
        where it stands nowhere."""
        self._words = words
        self._look()
        at = next((n for n, (_, pieces) in enumerate(self._places) if pieces[0][0] >= start), 0)
        self._to_place(at if self._places else -1)
        if not self._places:
            self.move_to(start)

    def find_next(self, step: int) -> tuple[int, int]:
        """To the next (or previous) place from the cursor on, coming round; its number and how many there are."""
        rows = [pieces[0][0] for _, pieces in self._places]
        if rows:
            here = self._place
            if here < 0 or rows[here] != self.cursor:  # the cursor was moved since
                here = bisect_right(rows, self.cursor) - 1 if step > 0 else bisect_left(rows, self.cursor)
            self._to_place((here + step) % len(rows))
        return self.place

    def _look(self) -> None:
        self._places, self._place, self._marks = [], -1, {}
        if self._words:
            sought = pattern(self._words)
            sides = [[row.left for row in self._rows], [row.right for row in self._rows]]
            found = [(side, pieces) for side in (0, 1) for pieces in places_in(sides[side], sought)]
            self._places = sorted(found, key=lambda one: (one[1][0][0], one[0]))
            self._mark()

    def _to_place(self, place: int) -> None:
        self._place = place
        self._mark()
        if place >= 0:
            self.move_to(self._places[place][1][0][0])
        self.repaint()

    def _mark(self) -> None:
        self._marks = {}
        for number, (side, pieces) in enumerate(self._places):
            for row, mark in pieces:
                style = "hit-here" if number == self._place else "hit"
                self._marks.setdefault((row, side), []).append(mark._replace(style=style))

    def step(self, step: int) -> bool:
        """To the next (or previous) entry that differs; False where there is none."""
        found = self.differing(step)
        if found is not None:
            self.move_to(found, top=True)
        return found is not None

    def differing(self, step: int) -> int | None:
        """The row of the next (or previous) entry that differs; None where there is none."""
        rows = self._rows
        here = rows[self.cursor].pair if self.cursor < len(rows) else -1
        starts = [
            i
            for i, row in enumerate(rows)
            if row.pair >= 0 and self.pairs[row.pair].differs and (i == 0 or rows[i - 1].pair != row.pair)
        ]
        if step > 0:
            return next((i for i in starts if i > self.cursor and rows[i].pair != here), None)
        return next((i for i in reversed(starts) if i < self.cursor), None)
