"""Cases as a grid: tests down, what they are run with (agent, model, prompt) across. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tui_eval.case_names import short_prompts, short_providers, suites_apart
from tui_eval.model import JUDGED
from tui_eval.store.column_names import column_agent, in_columns
from tui_eval.store.summary import share
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.telling_apart import NOT_AT_ALL, Differs, cut, differences, heads_apart
from tui_eval.tui.state.runs.run_view import NOT_RUN, RunView
from tui_eval.tui.state.text.fitting import cell_len
from tui_eval.tui.state.text.fitting import fit as fit_text
from tui_eval.tui.state.text.formatting import cost, duration
from tui_eval.tui.state.text.lines import Line, Span, fit, one_line, width_of

Column = tuple[str, str, str]
"""Agent, model and prompt, or the connection that a network is asked over; empty where there is none."""

_MATRIX = re.compile(r"\[([^\[\]]*)\]")
"""What a case's id says of its combination of variables."""
CELL = 9
"""Columns of the screen for a cell at least: the outcome's glyph with a figure, and a space."""
WORDY = 17
"""From so many on a cell says its outcome as a word too."""
NAME = 12
"""Columns of the screen for a test's name at least."""
SOUNDED = 2_000
"""Tests whose names say how much room names need."""
FIGURES = ("time", "cost", "score", "tokens")
"""What a cell can say beside its outcome."""


def column_of(entry: CaseRow) -> Column:
    """Where a case stands."""
    case = entry.case
    if case is None:
        return entry.agent, entry.model, ""
    agent = entry.agent if entry.named else column_agent(case, entry.agent)
    return agent, entry.model, case.prompt or case.connection or ""


def columns_of(rows: Iterable[CaseRow]) -> list[Column]:
    """Where these rows stand: agents, and within each of them prompts, as their suites have them, in whatever order the
    rows are listed or were run."""
    places: dict[Column, tuple[int, int]] = {}
    suites: dict[str, int] = {}
    for row in rows:
        suite = suites.setdefault(row.suite, len(suites))
        places.setdefault(column_of(row), (suite, row.case.column_number if row.case else 0))
    agents: dict[tuple[str, str], tuple[int, int]] = {}
    for (agent, model, _), place in places.items():
        agents[agent, model] = min(place, agents.get((agent, model), place))
    order = {one: number for number, one in enumerate(sorted(agents, key=agents.__getitem__))}
    return sorted(places, key=lambda column: (order[column[0], column[1]], places[column]))


@dataclass(slots=True, eq=False)
class GridTest:
    """One test with its cells by column."""

    name: str
    suite: str
    cells: dict[Column, CaseRow] = field(default_factory=dict)
    called: str = ""
    """Its name, with what tells it from one of the same name."""
    differs: Differs = NOT_AT_ALL
    key: str = ""
    """What it is known again by: several of a suite may have one name."""


@dataclass(slots=True)
class Grid:
    """Tests and columns, each in the order they came in; `short` are the short names of the columns' agents,
    models and prompts, as lists have them."""

    columns: list[Column]
    tests: list[GridTest]
    short: tuple[dict[str, str], dict[str, str], dict[str, str]] = field(default_factory=lambda: ({}, {}, {}))
    rooms: dict[tuple[Column, str, bool], tuple[int, int]] = field(default_factory=dict)
    """Of a column the room that the outcomes and the figures in it need, as far as it was asked for."""
    heads_lack: int | None = None
    """The same of the heads: what they lack in the narrowest column."""
    passed: dict[Column, tuple[int, int]] = field(default_factory=dict)
    """Of a column how many tests passed, and how many have ended."""
    figures: Sequence[str] = ("time",)
    """The figures that any cell has; time where none has any."""
    differing: Sequence[GridTest] = ()
    """Tests that came out differently in their columns."""
    longest: int = 0
    """The room that the names of the tests need."""
    worth_it: bool = False
    """Whether any test stands in more than one column."""


def _differs(test: GridTest) -> bool:
    """Whether a test came out differently in its columns, of those in which it has ended."""
    return len({cell.status for cell in test.cells.values() if cell.status in JUDGED}) > 1


def grid(cells: Iterable[CaseRow], columns: Iterable[Column] = ()) -> Grid:
    """Put cases of the same test (promptfoo: the same name, line and vars; else the same case) into one row.
    `columns` are the columns in their order, however the cases are sorted; those without a cell are left out."""
    tests: dict[str, GridTest] = {}
    found: dict[Column, None] = {}
    told: dict[str, set[str]] = {}
    for cell in cells:
        found.setdefault(column_of(cell))
        key = _test_key(cell)
        test = tests.get(key) or tests.setdefault(key, GridTest(cell.name, cell.suite, key=key))
        test.cells.setdefault(column_of(cell), cell)
        if cell.case is not None and cell.case.prompt and cell.case.variant:
            told.setdefault(cell.case.prompt, set()).add(cell.case.variant)
    order = {column: number for number, column in enumerate(dict.fromkeys(columns))}
    parts = [list(dict.fromkeys(column[part] for column in (*order, *found))) for part in range(3)]
    agents, models = (dict(zip(names, short_providers(names), strict=True)) for names in parts[:2])
    prompts = _prompt_names(parts[2], told)
    _tell_apart(list(tests.values()))
    columns = sorted(found, key=lambda column: order.get(column, len(order)))
    return _counted(Grid(columns, list(tests.values()), (agents, models, prompts)))


def _counted(found: Grid) -> Grid:
    """With what is said of all tests: no key looks through them again."""
    figures = {"time"}
    counts = {column: [0, 0] for column in found.columns}
    for test in found.tests:
        for column, cell in test.cells.items():
            counts[column][0] += cell.status == "passed"
            counts[column][1] += cell.status in JUDGED
            if len(figures) < len(FIGURES):
                figures.update(one for one in FIGURES if one not in figures and figure_of(cell, one))
    found.passed = {column: (passed, ended) for column, (passed, ended) in counts.items()}
    found.figures = [one for one in FIGURES if one in figures]
    found.differing = [test for test in found.tests if _differs(test)]
    found.worth_it = any(len(test.cells) > 1 for test in found.tests)
    found.longest = max((cell_len(one_line(test.called)) + 1 for test in found.tests[:SOUNDED]), default=0)
    return found


def _prompt_names(labels: Sequence[str], told: Mapping[str, set[str]]) -> dict[str, str]:
    """The short names of prompts that lists have, as the cases (`told`: what tells them apart, by prompt) say
    them; those made of the prompts' labels alone where that is not known, or does not tell the prompts
    apart."""
    short = dict(zip(labels, short_prompts(labels), strict=True))
    named = {label: _words_of_all(told[label]) if label in told else name for label, name in short.items()}
    return named if all(named[label] for label in told) and len(set(named.values())) == len(named) else short


def _words_of_all(texts: Iterable[str]) -> str:
    """The words with which all of these begin: the values of a test's variables stand at the end."""
    shared: list[str] = []
    for words in zip(*(text.split(" ") for text in texts), strict=False):
        if len(set(words)) > 1:
            break
        shared.append(words[0])
    return " ".join(shared)


def _tell_apart(tests: Sequence[GridTest]) -> None:
    """Let no two rows be called the same."""
    ends = suites_apart([(test.name, "", test.suite) for test in tests])
    for test, end in zip(tests, ends, strict=True):
        test.called = f"{end} · {test.name}" if end else test.name
    same: dict[str, list[GridTest]] = {}
    for test in tests:
        same.setdefault(test.called, []).append(test)
    for name, group in same.items():
        cells = [next(iter(test.cells.values())) for test in group] if len(group) > 1 else []
        for test, cell, values in zip(group, cells, _differing(cells), strict=False):
            more = _combination(cell) or values or cell.variant or cell.case_id.partition("::")[2]
            test.called = f"{name} · {more}"
    found = differences([test.called for test in tests])
    for test in tests:
        test.differs = found.get(test.called, NOT_AT_ALL)


def _differing(cells: Sequence[CaseRow]) -> list[str]:
    """The values of the variables in which tests of one name differ (a scenario's with its data); empty where that does
    not tell all of them apart."""
    given = [cell.case.vars if cell.case is not None else {} for cell in cells]
    keys = [
        key
        for key in dict.fromkeys(key for one in given for key in one)
        if len({json.dumps(one.get(key), sort_keys=True, default=str) for one in given}) > 1
    ]
    told = [" ".join(one_line(one[key], 24) for key in keys if key in one) for one in given]
    return told if len(set(told)) == len(told) else [""] * len(told)


def _combination(cell: CaseRow) -> str:
    """The values of the variables that make several rows of one test; empty where there is one."""
    case = cell.case
    rest = cell.case_id.removeprefix(f"{cell.suite}::").removeprefix(case.name if case else cell.name)
    said = ",".join(_MATRIX.findall(rest))
    values = (
        [one_line(value, 24) for key, value in case.vars.items() if f",{key}=" in f",{said}"] if case else []
    )
    return " ".join(values) or said


def _test_key(cell: CaseRow) -> str:
    case = cell.case
    # The connections that a network's test is asked over are columns of it, as in lists.
    if case is None or not (in_columns(case) or (case.connection and case.variant)):
        return cell.case_id
    return json.dumps([case.suite, case.name, case.line, case.vars], sort_keys=True, default=str)


def shared(columns: Sequence[Column]) -> Column:
    """The parts that all columns have in common; they need not stand in every heading."""
    parts = [{column[i] for column in columns} for i in range(3)]
    agent, model, prompt = (next(iter(part)) if len(part) == 1 else "" for part in parts)
    return agent, model, prompt


def heads(found: Grid) -> list[list[str]]:
    """What tells the columns apart, a row of all columns for the agent (and model) and one below it for the prompt;
    without the row in which they are all alike."""
    common = shared(found.columns)
    rows: list[list[str]] = []
    for members in ((0, 1), (2,)):
        parts = [
            [
                one_line(found.short[part].get(column[part], column[part]))
                for part in members
                if column[part] and column[part] != common[part]
            ]
            for column in found.columns
        ]
        row = [" · ".join(dict.fromkeys(one)) for one in parts]  # an agent called by its model: once
        if len(set(row)) < len(set(map(tuple, parts))):
            row = [" · ".join(one) for one in parts]
        if any(row):
            rows.append(row)
    if not rows:
        rows = [[one_line(column[0]) or "case" for column in found.columns]]
    return rows


def widths(found: Grid, width: int, first: int) -> tuple[int, int, int]:
    """Columns of the screen for the test's name and for each cell, and how many cells fit, from the
    column `first`. What is left over goes to the names as far as they need it, of long ones to the cells first."""
    many = max(len(found.columns) - first, 1)
    room = width - 2  # the arrow to columns out of sight
    fits = max(min((room - NAME) // CELL, many), 1)
    spare = max(room - NAME - fits * CELL, 0)
    wanted = max(min(found.longest, 60) - NAME, 0)
    wordy = fits * (WORDY - CELL)
    if spare >= wordy + wanted // 2:
        left = NAME + min(wanted, spare - wordy)
    else:  # heads that are cut have room before the second half of the longest name
        left = NAME + min(wanted, spare, max(spare - fits * _heads_lack(found), wanted // 2))
    each = max(min((room - left) // fits, 30), 2)
    left += max(min(found.longest - left, room - left - each * fits), 0)  # what no cell takes
    return left, each, fits


def _heads_lack(found: Grid) -> int:
    """Cells that the longest of the heads just above the cells lacks in the narrowest column."""
    if found.heads_lack is None:
        longest = max((cell_len(name) for name in heads(found)[-1]), default=0)
        found.heads_lack = max(min(longest, WORDY) + 1 - CELL, 0)
    return found.heads_lack


def title_lines(found: Grid, width: int, first: int, chosen: int) -> list[Line]:
    """The headings of the columns in sight, agents over prompts; those of the one the cursor is in stand out."""
    left, each, fits = widths(found, width, first)
    before = f"← {first} more" if first else "test"
    lines: list[Line] = []
    for row in heads(found):
        line: Line = (Span(f"{'' if lines else before:<{left}}", "muted"),)
        for begin, end in _spans(row, first, min(first + fits, len(found.columns))):
            # A name over several columns has the room of all of them.
            name = heads_apart(row, each * (end - begin) - 1)[begin]
            pad = " " * (each * (end - begin) - cell_len(name))
            line = (*line, Span(name, "tab-active" if begin <= chosen < end else "strong"), Span(pad))
        if first + fits < len(found.columns) and not lines:
            line = (*line, Span("→", "note"))
        lines.append(fit(line, width))
    return lines


def _spans(row: Sequence[str], first: int, end: int) -> list[tuple[int, int]]:
    """From where to where the columns in sight have the same heading."""
    found: list[tuple[int, int]] = []
    for index in range(first, end):
        if found and row[index] == row[index - 1]:
            found[-1] = (found[-1][0], index + 1)
        else:
            found.append((index, index + 1))
    return found


def total_line(found: Grid, width: int, first: int) -> Line:
    """Tests passed per column."""
    left, each, fits = widths(found, width, first)
    count = f"{len(found.tests):,} test{'s' * (len(found.tests) != 1)}"
    line: Line = (Span(f"{count:<{left}}", "muted"),)
    figures = [found.passed.get(column, (0, 0)) for column in found.columns[first : first + fits]]
    # All in the longest form for which each column has room, and a space after it: two after one with a space in it.
    # Without room for both the share tells, where it is of as many tests in each column.
    ways: list[tuple[Callable[[int, int], str], int]] = [(_passed_of_all, 2), (_share_passed, 1)]
    if len({many for _, many in figures if many}) > 1:
        ways.insert(1, (lambda passed, many: f"{passed}/{many}", 1))
    forms = [
        ([form(passed, many) if many else "–" for passed, many in figures], after) for form, after in ways
    ]
    told = next(
        (form for form, after in forms if max(map(cell_len, form), default=0) + after <= each), forms[-1][0]
    )
    return fit((*line, *(Span(f"{fit_text(words, each - 1):<{each}}", "muted") for words in told)), width)


def _passed_of_all(passed: int, many: int) -> str:
    return f"{passed}/{many} {share(passed / many)}"


def _share_passed(passed: int, many: int) -> str:
    return share(passed / many)


def row_line(
    found: Grid, test: GridTest, width: int, first: int, chosen: int = -1, figure: str = "time"
) -> Line:
    """One test: its name, then glyph, word, attempts and a figure of each cell; `chosen` is the cursor's column."""
    left, each, fits = widths(found, width, first)
    name = fit((Span(cut(one_line(test.called or test.name), test.differs, left - 1)),), left - 1)
    line: Line = (*name, Span(" " * (left - width_of(name))))
    for index in range(first, min(first + fits, len(found.columns))):
        column, words = found.columns[index], each >= WORDY
        text = cell_line(test.cells.get(column), figure, _room(found, column, figure, words), words=words)
        if width_of(text) > each - 1:
            text = cell_line(test.cells.get(column), figure, words=words)
        if width_of(text) > each - 1:  # of a time that is cut nobody knows the unit
            text = fit(text[:1], each - 1)
        if index == chosen:
            text = tuple(Span(span.text, f"{span.style} cell-here".strip()) for span in text)
        line = (*line, *text, Span(" " * (each - width_of(text))))
    return fit(line, width)


def _room(found: Grid, column: Column, figure: str, words: bool) -> tuple[int, int]:
    """What the outcomes and the figures of a column need, so that figures end below one another."""
    key = column, figure, words
    if key not in found.rooms:
        cells = [test.cells[column] for test in found.tests[:SOUNDED] if column in test.cells]
        told = [(_outcome(cell, words), figure_of(cell, figure)) for cell in cells if _has_begun(cell)]
        outcomes = max((cell_len(one) for one, _ in told), default=0)
        found.rooms[key] = outcomes, max((cell_len(one) for _, one in told), default=0)
    return found.rooms[key]


def _has_begun(cell: CaseRow) -> bool:
    return cell.status not in ("", NOT_RUN)


def _outcome(cell: CaseRow, words: bool) -> str:
    glyph = GLYPHS.get(cell.status, "●")
    ended = sum(letter in "pfe" for letter in cell.attempts)
    many = f" {cell.attempts.count('p')}/{ended}" if ended > 1 else ""
    return f"{glyph} {cell.status}{many}" if words else f"{glyph}{many}"


def cell_line(
    cell: CaseRow | None, figure: str = "time", room: tuple[int, int] = (0, 0), *, words: bool = True
) -> Line:
    """A cell: glyph (and word), attempts where there are several, the figure, the agent where it is not the
    column's (a test with a provider of its own). `room` is what outcome and figure have."""
    if cell is None:
        return (Span("–", "muted"),)
    if not _has_begun(cell):
        return (Span("not run", "muted"),)
    said = figure_of(cell, figure) if words else figure_of(cell, figure).lstrip("$")
    style = cell.status if cell.status in GLYPHS else "running"
    agent = f" {one_line(cell.agent)}" if cell.agent != column_of(cell)[0] else ""
    outcome = _outcome(cell, words)
    if said:
        said = " " * (max(room[0] - cell_len(outcome), 0) + max(room[1] - cell_len(said), 0) + 1) + said
    return (Span(outcome, style), Span(f"{said}{agent if words else ''}", "muted"))


def figure_of(cell: CaseRow, figure: str) -> str:
    """The figure of a cell that was chosen; empty where it is not known."""
    match figure:
        case "cost":
            return "cached" if cell.cached else cost(cell.cost)
        case "score":
            return f"{cell.score:.2f}" if cell.score is not None else ""
        case "tokens":
            return f"{cell.tokens:,}" if cell.tokens is not None else ""
    if not cell.duration_ms and cell.status in ("cancelled", "skipped"):
        return ""  # it never began
    if cell.cached:
        return "cached"
    return duration(cell.duration_ms) if cell.duration_ms is not None else ""


Metrics = Sequence[Mapping[str, Any]]
"""As in `RunInfo.metrics`."""


def metrics_of(runs: Sequence[RunView]) -> tuple[Metrics, str]:
    """The scores of the run that others were added to, and a word that they are its alone: a rerun has those of its few
    cases, and what a suite derives is computed where a run ends."""
    having = [run for run in runs if run.info.metrics and not run.info.stepped]
    if not having:
        return [], ""
    whole = max(reversed(having), key=lambda run: len(run.cases))
    return whole.info.metrics, "without reruns" if len(having) > 1 else ""


class ColumnScores(NamedTuple):
    """The scores of a column of promptfoo, under its name."""

    agent: str
    prompt: str
    label: str
    scores: list[str]

    def is_of(self, column: Column | None) -> bool:
        """Whether a column of the grid is this one."""
        return column is not None and self.agent in column[:2] and self.prompt == column[2]


def column_scores(metrics: Metrics, said_of: str = "") -> list[ColumnScores]:
    """Named scores of promptfoo's columns (mean by weight) and what is derived from their sums, of those that have any;
    `said_of` is what is said of them."""
    found: list[ColumnScores] = []
    labels = list(dict.fromkeys(str(column.get("prompt") or "") for column in metrics))
    prompts = dict(zip(labels, short_prompts(labels), strict=True))
    for column in metrics:
        named, weights = column.get("named_scores") or {}, column.get("named_weights") or {}
        scores = [
            f"{one_line(name, 40)} {_number(_mean(value, weights.get(name)))}"
            for name, value in named.items()
        ]
        derived = [
            f"{one_line(name, 40)} = {_number(value)}"
            for name, value in (column.get("derived") or {}).items()
        ]
        if derived and any(weights.get(name) not in (None, 0, 1) for name in named):
            derived[0] = (
                f"of sums: {derived[0]}"  # as in promptfoo: the means beside them do not add up to it
            )
        scores += derived
        if scores:
            agent, prompt = str(column.get("agent") or ""), str(column.get("prompt") or "")
            who = " · ".join(one_line(part, 40) for part in (agent, prompts[prompt]) if part)
            label = f"{who or 'scores'}{f' ({said_of})' if said_of else ''}"
            found.append(ColumnScores(agent, prompt, label, scores))
    return found


def metric_lines(
    metrics: Metrics, width: int, said_of: str = "", *, most: int = 0, here: Column | None = None
) -> list[Line]:
    """A line for each column with the scores that fit and how many do not; at most `most` lines (0: all), that of the
    column `here` first, the last of them with how many columns are left out."""
    columns = column_scores(metrics, said_of)
    columns.sort(key=lambda one: not one.is_of(here))
    shown = columns[: most or None]
    left_out = len(columns) - len(shown)
    lines: list[Line] = []
    for number, one in enumerate(shown):
        last = left_out and number == len(shown) - 1
        end = f"; {left_out:,} more column{'s' * (left_out != 1)}" if last else ""
        lines.append(_fitted(one, width, end))
    return lines


def _fitted(one: ColumnScores, width: int, end: str) -> Line:
    label = Span(f"{one.label}  ", "label")
    if cell_len(label.text) > width // 2:
        label = Span(
            "".join(part.text for part in fit((Span(one.label),), max(width // 2 - 2, 4))) + "  ", "label"
        )
    for told in (end, ""):
        for count in range(len(one.scores), 0, -1):
            left = len(one.scores) - count
            words, more = ", ".join(one.scores[:count]), f" and {left:,} more" if left else ""
            if cell_len(label.text + words + more + told) <= width:
                return (label, Span(words), Span(more + told, "muted"))
    return fit((label, Span(f"{len(one.scores):,} scores{end}", "muted")), width)


def scores_in_full(metrics: Metrics, here: Column | None, said_of: str = "") -> str:
    """All scores of the column `here`; empty where it has none."""
    one = next((one for one in column_scores(metrics, said_of) if one.is_of(here)), None)
    return f"Scores of {one.label}: {', '.join(one.scores)}" if one is not None else ""


def _mean(value: Any, weight: Any) -> Any:
    return value / weight if isinstance(value, int | float) and weight else value


def _number(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, int | float) else one_line(value, 20)
