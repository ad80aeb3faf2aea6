"""What the Case screen shows of one attempt: its head, and which verdict answers `d`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from tui_eval import causes
from tui_eval.case_names import full_name, suites_apart, variant_of
from tui_eval.model import Attempt, Case, Verdict
from tui_eval.store.imported.results_entries import case_edited
from tui_eval.store.linked import Placed
from tui_eval.store.notes import HumanNote
from tui_eval.store.schema import AttemptRow, CaseHistory
from tui_eval.tui.state.app_state import CaseItem, CasePointer
from tui_eval.tui.state.case.case_history import CasePast, edited_spans, note_sign, note_spans, rules_spans
from tui_eval.tui.state.case.transcript_view import Transcript, facts_of
from tui_eval.tui.state.case.verdict_lines import GLYPHS, about_rows
from tui_eval.tui.state.lists.telling_apart import KEPT_OF_NAME, RowName, apart_from
from tui_eval.tui.state.runs.run_group import stability, together
from tui_eval.tui.state.text.fitting import end_of
from tui_eval.tui.state.text.formatting import cost, duration
from tui_eval.tui.state.text.lines import Line, Span, fit, one_line, text_lines, width_of, wrap

SHORTEST = 12
"""Characters of a suite's name below which its end says nothing."""


@dataclass(slots=True, eq=False)
class CaseContent:
    """A case and one of its attempts, as loaded.

    `rows` are all attempts of the case in its run, in order; `row` is the one looked at, `attempt` its body
    (None while it waits or runs). `family` holds these and those of the runs linked to it. `agent` and
    `model` are the column of the run, `options` what the run was started with, `replaces` the run and attempt
    whose place its attempt takes. `notes` are people's notes by run and attempt, `past` what became of the
    case in all runs (None: not read yet). `fresh` says that the attempt was started while the case was looked
    at. `transcript` is the attempt's, made where it was read; `explained` says why of its verdicts, by place.
    `known` is what the list says of the case, for the moment in which nothing has been read. `problem` says
    what could not be read.
    """

    pointer: CasePointer
    name: str = ""
    suite: str = ""
    case: Case | None = None
    rows: list[AttemptRow] = field(default_factory=list)
    row: AttemptRow | None = None
    attempt: Attempt | None = None
    problem: str = ""
    folder: Path | None = None
    run_id: str = ""
    agent: str | None = None
    model: str | None = None
    ended: bool = False
    """Whether its run is at an end: of an attempt that has none there is nothing to wait for."""
    options: dict[str, Any] = field(default_factory=dict)
    family: list[Placed] = field(default_factory=list)
    notes: dict[tuple[str, int], HumanNote] = field(default_factory=dict)
    past: CasePast | None = None
    fresh: bool = False
    known: CaseHistory | None = None
    replaces: tuple[str, int] | None = None
    transcript: Transcript | None = None
    explained: dict[int, tuple[Line, ...]] = field(default_factory=dict)
    called: str = ""
    """What lists call it, where that is not its name: a row of a table without one."""
    compat: str = ""
    """The rules that its run was judged by (`store.judged_under`); empty where that is not known."""
    recorded: str = ""
    """The hash of the content that the case had in the run, and (`today`) has in its file; empty where not known."""
    today: str = ""
    row_name: RowName | None = None
    """What lists call it, with where that differs from what they call other cases; None where it is in none."""

    @property
    def edited(self) -> bool:
        """Whether the case is otherwise by now than where this attempt was judged."""
        return case_edited(self.recorded, self.today)

    @property
    def title(self) -> str:
        """Its name with what tells it from others of its name."""
        return full_name(*self.named[:2])

    @property
    def in_short(self) -> str:
        """What lists call its test."""
        return one_line(self.called or self.name)

    @property
    def named(self) -> RowName:
        """The same, as it is cut where there is no room for it."""
        if self.row_name is not None:
            return self.row_name
        variant = variant_of(self.case, self.agent) if self.case is not None else ""
        name = self.in_short or one_line(self.pointer.case_id)
        return RowName(name, one_line(variant), least=KEPT_OF_NAME)

    @property
    def placed(self) -> list[Placed]:
        """All attempts that count together, oldest first."""
        return together(self.family, self.run_id) or [Placed(self.run_id, row) for row in self.rows]

    @property
    def note(self) -> HumanNote | None:
        """What a person noted on the attempt looked at."""
        return self.notes.get((self.run_id, self.row.id)) if self.row is not None else None

    @property
    def state(self) -> str:
        """The outcome, or `running`, `retrying`, `waiting`; empty where it never ran, or not to its end."""
        if self.attempt is not None:
            return self.attempt.outcome
        if self.row is None:
            return "error" if self.problem else self.known.outcome if self.known is not None else ""
        if self.ended and self.row.state != "done":
            return ""
        return self.row.outcome or self.row.state

    @property
    def running(self) -> bool:
        """Whether more is to come."""
        return (
            self.attempt is None
            and not self.ended
            and self.row is not None
            and self.row.state in ("waiting", "running", "retrying")
        )

    @property
    def why(self) -> str:
        """The one line that a person reads first."""
        if self.problem:
            return self.problem
        if self.attempt is not None:
            return causes.cause_of(self.attempt) or self.attempt.message or self.attempt.error or ""
        if self.row is None:
            return (
                self.known.cause or self.known.message if self.known is not None else "not run yet: r runs it"
            )
        turn = f"turn {self.row.turn}" if self.running and self.row.turn else ""
        return self.row.detail or self.row.cause or self.row.message or turn

    def step(self, by: int) -> Placed | None:
        """The next or previous attempt, also of a linked run; None at the ends."""
        at = self._place() + by
        return self.placed[at] if 0 <= at < len(self.placed) else None

    def _place(self) -> int:
        """Where the attempt looked at stands among those that belong together; -1: nowhere."""
        if self.row is None:
            return -1
        here = (self.run_id, self.row.id)
        return next((i for i, one in enumerate(self.placed) if (one.run_id, one.row.id) == here), -1)

    @property
    def number(self) -> int:
        """The attempt looked at, counted from 1 over all that belong together."""
        return self._place() + 1 or (self.row.attempt if self.row is not None else 0)


def foreseen(
    pointer: CasePointer,
    rows: Sequence[AttemptRow],
    known: CaseHistory | None,
    name: str = "",
    *,
    ended: bool = False,
) -> CaseContent:
    """What lists know of a case already: it stands at the head while the attempt is read.

    Args:
        rows: The case's attempts in the run in front; empty where that is another one.
        known: Its newest result, where the pointer names no other run.
        name: What they call it.
        ended: Whether that run is at an end.
    """
    content = CaseContent(pointer, ended=ended, rows=list(rows), row=choose(rows, pointer.attempt_ref))
    content.suite, _, content.name = pointer.case_id.partition("::")
    content.name = name or content.name
    content.run_id = pointer.run_id or ""
    if content.row is None and known is not None and pointer.run_id in (None, known.run_id):
        content.known = known
    return content


def named_among(item: CaseItem | None, agent: str | None, items: Iterable[CaseItem]) -> RowName | None:
    """What lists call a case that was run with this agent, with where that differs from what they call these
    others; the suite with it where one of another suite is called the same."""
    if item is None or item.case is None:
        return None
    name, variant = one_line(item.name), one_line(item.variant(agent))
    names: set[str] = set()
    alike = [(name, variant, item.suite)]
    for other in items:
        names.add(one_line(other.name))
        if other is not item and other.name == item.name and other.case is not None:
            named = (other.variant(agent), variant_of(other.case))
            alike += [(name, one_line(one), other.suite) for one in dict.fromkeys(named)]
    told = [f"{one} {end}".strip() for (_, one, _), end in zip(alike, suites_apart(alike), strict=True)]
    return RowName(name, told[0], apart_from(name, names), apart_from(told[0], told), KEPT_OF_NAME)


def choose(rows: Sequence[AttemptRow], wanted: int | None) -> AttemptRow | None:
    """The attempt to show: the one asked for, else the first that did not pass, else one that
    runs, else the last."""
    for fits in (
        lambda row: row.id == wanted,
        lambda row: row.state == "done" and row.outcome not in ("passed", "skipped"),
        lambda row: row.state in ("running", "retrying"),
    ):
        found = next((row for row in rows if fits(row)), None)
        if found is not None:
            return found
    return rows[-1] if rows else None


def outcome_style(state: str) -> str:
    """The style word of a state."""
    return {"retrying": "running", "": "waiting"}.get(state, state)


def head(content: CaseContent, width: int, height: int = 2) -> list[Line]:
    """The head of the screen: outcome, breadcrumb and facts on one line, then why."""
    state = content.state
    glyph = GLYPHS.get({"retrying": "running", "": "waiting"}.get(state, state), "")
    outcome = Span(f"{glyph} {state or 'not run'}", outcome_style(state))
    marks = (*rules_spans(content.compat, " · "), *edited_spans(content.edited), *_note(content))
    tail = (*_attempts(content, width), *marks)
    facts = facts_of(content.attempt) if content.attempt else _row_facts(content.row)
    wanted = cell_len(content.title) + cell_len(one_line(content.suite).rsplit("/", 1)[-1]) + 3
    if len(content.placed) == 1 and not content.fresh and width - width_of((outcome, *tail)) - 4 < wanted:
        tail = marks  # the only attempt: the name says more
    room = width - width_of((outcome, *tail)) - 4
    beside = len(facts) + 2 if facts and width >= 100 and room - len(facts) - 2 >= wanted else 0
    crumbs = _crumbs(content, room - beside)
    left: Line = (outcome, Span("  "), *crumbs, *tail)
    style = "" if state in ("passed", "") else outcome_style(state)
    why = one_line(" ".join(part.strip() for ((part, _),) in text_lines(content.why)))
    pieces = wrap((Span(why, style),), width)
    lines: list[Line] = [left, *(piece for _, _, piece in pieces[: height - 1])]
    if len(pieces) > height - 1:
        lines[-1] = fit((Span(why[pieces[height - 2][0] :], style),), width)
    for index in (0, len(lines) - 1):
        # The facts stand where there is room: beside the breadcrumb, else beside the reason.
        space = width - width_of(lines[index])
        if facts and space > len(facts) + 1:
            lines[index] = (*lines[index], Span(" " * (space - len(facts))), Span(facts, "muted"))
            break
    return [fit(line, width) for line in lines]


def _crumbs(content: CaseContent, room: int) -> Line:
    suite, name = one_line(content.suite), content.named
    taken = cell_len(content.title) + 3
    if cell_len(suite) + taken > room:
        suite = suite.rsplit("/", 1)[-1]
    if cell_len(suite) + taken > room and len(suite) > 8:
        suite = end_of(suite, max(room - taken, 7))
    left: Line = (Span(suite, "muted"), Span(" › ", "muted"))
    if width_of(left) + 8 > room or (suite.startswith("…") and len(suite) < SHORTEST):
        left = ()
    own = max(room - width_of(left), 8)
    told = full_name(*name.fitted(own - 3 if name.variant else own))
    return (*left, *fit((Span(told, "strong"),), own))


def _attempts(content: CaseContent, room: int) -> Line:
    """Which attempt this is of how many, what became of each, and what that comes to."""
    if content.row is None:
        return ()
    placed = content.placed
    count = max(len(placed), 1)
    new = "new run › " if content.fresh else ""
    spans = [Span(" › ", "muted"), Span(new, "note"), Span(f"attempt {content.number} of {count}", "muted")]
    if 1 < count <= 10:
        spans.append(Span(" "))
        for one in placed:
            here = (one.run_id, one.row.id) == (content.run_id, content.row.id)
            style = outcome_style(one.state) + (" strong" if here else "")
            spans.append(Span(GLYPHS.get(one.state, "?"), style))
    words = stability([one.state for one in placed])
    if words and room >= 100:
        spans.append(Span(f" {words}", "note" if "flaky" in words else "muted"))
    return tuple(span for span in spans if span.text)


def _note(content: CaseContent) -> Line:
    """A person's verdict, short."""
    note = content.note
    return note_spans(note, f" · {note_sign(note)}") if note else ()


def _row_facts(row: AttemptRow | None) -> str:
    if row is None:
        return ""
    return " · ".join(
        part for part in (duration(row.duration_ms), cost(row.cost), "cached" if row.cached else "") if part
    )


def deciding(verdicts: Sequence[Verdict]) -> int | None:
    """The place of the verdict that made the case fail: the first about rows that failed, else the
    first that failed, else the first error."""
    order = (
        lambda v: v.passed is False and about_rows(v),
        lambda v: v.passed is False,
        lambda v: v.passed is None,
    )
    decide = {id(verdict) for verdict in causes.counting(verdicts)}
    for fits in order:
        found = next((i for i, v in enumerate(verdicts) if id(v) in decide and fits(v)), None)
        if found is not None:
            return found
    return None
