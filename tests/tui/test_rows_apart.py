"""No two rows of different cases read alike on any screen: lists, grid, comparison, search, heads of panes, palette."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.tui.state.lists.test_list_state import attempt_row
from tui_eval.case_names import short_prompts, short_providers
from tui_eval.model import Case, Outcome, Suite, Turn
from tui_eval.reports.run_comparison import compare
from tui_eval.store.full_text import Hit
from tui_eval.store.indexed_run import name_of_cases
from tui_eval.store.schema import RunInfo, RunSummary, StoredCase
from tui_eval.store.summary import CaseSummary
from tui_eval.suites.identity import Ids, case_id
from tui_eval.tui.palette import row_title, row_width
from tui_eval.tui.state.app_state import AppState, CasePointer
from tui_eval.tui.state.case.case_content import CaseContent, head, named_among
from tui_eval.tui.state.compare import compare_view, grid_view
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_tree import SORTS, Tree, View
from tui_eval.tui.state.lists.entries import suite_entries
from tui_eval.tui.state.lists.run_line import RunLine, begun_apart, names_apart, row_line, under_their_runs
from tui_eval.tui.state.lists.telling_apart import row_names
from tui_eval.tui.state.lists.tree_lines import build
from tui_eval.tui.state.runs import search_view
from tui_eval.tui.state.runs.run_view import RunView
from tui_eval.tui.state.runs.search_view import FoundEntry
from tui_eval.tui.state.text.fitting import fit
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.state.text.stream_text import StreamText
from tui_eval.tui.widgets.case_lines import CaseLines
from tui_eval.tui.widgets.stream_pane import Pane, head_text

QUESTIONS = ("How long can I return an item that I bought?", "How long can I return an item that I opened?",
             "17 * 23?", "größe", "日本の首都はどこですか", "x" * 90)  # fmt: skip
NAMES = ("", "Arithmetic", "Answers the customer in one polite sentence, in the customer's own language")
PROMPTS = ("file://prompts/terse.txt", "file://prompts/friendly.txt", "file://prompts/chat.json")
PROVIDERS = ("openai:chat:atlas-mini", "openai:chat:atlas-large", "http")
SUITES = ("shop/promptfooconfig.yaml", "desk/promptfooconfig.yaml")


class Project:
    """Suites, and what the app knows of them."""

    def __init__(self, suites: list[Suite]) -> None:
        self.suites = suites
        self.state = AppState(Path("."))
        self.state.set_suites(suites)

    @property
    def cases(self) -> list[Case]:
        return [case for suite in self.suites for case in suite.cases]

    def __repr__(self) -> str:
        return ", ".join(case.case_id for case in self.cases)


@st.composite
def projects(draw: st.DrawFn) -> tuple[Project, int]:
    """Tests by prompts, providers and combinations of variables, some of one name, some without any; and a width, the
    narrowest for what is not everything at once."""
    prompts = PROMPTS[: draw(st.integers(1, 3))]
    providers = PROVIDERS[: draw(st.integers(1, 3))]
    width = draw(st.sampled_from((60, 80, 120, 200)))
    languages = ("de", "en")[: draw(st.integers(0, 2)) * (width > 60)]
    tests = draw(
        st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(QUESTIONS)), min_size=1, max_size=5)
    )
    paths = SUITES[: draw(st.integers(1, 2)) if width > 60 else 1]
    found = [
        Suite(path, "promptfoo", cases=_cases(path, tests, prompts, providers, languages)) for path in paths
    ]
    return Project(found), width


def _cases(path: str, tests: Any, prompts: Any, providers: Any, languages: Any) -> list[Case]:
    """As promptfoo's reader makes them."""
    ids, found = Ids(str), []
    of_prompt = dict(zip(prompts, short_prompts(prompts), strict=True))
    of_provider = dict(zip(providers, short_providers(providers), strict=True))
    number = 0
    for place, (name, question) in enumerate(tests, 1):
        for language in languages or ("",):
            number += 1
            values = {"question": question, **({"language": language} if language else {})}
            combined = f"language={language}" if len(languages) > 1 else ""
            for column, (provider, prompt) in enumerate(
                ((provider, prompt) for provider in providers for prompt in prompts), 1
            ):
                variant = of_prompt[prompt] if len(prompts) > 1 else ""
                wanted = case_id(
                    path, name or None, variables={"question": question}, provider=provider, prompt=prompt,
                    matrix={"language": language} if combined else {},
                )  # fmt: skip
                found.append(
                    Case(
                        ids.take(wanted), name or f"Row #{place}", path, "promptfoo",
                        line=3 * place, agent=provider, prompt=prompt, vars=values,
                        turns=[Turn(f"Say {question}")], test_number=number, column_number=column,
                        variant=f"{variant} {combined}".strip(),
                        column_name=of_provider[provider] if len(providers) > 1 else "",
                    )
                )  # fmt: skip
    return found


def all_differ(texts: list[str]) -> None:
    twice = [text for text, number in Counter(texts).items() if number > 1]
    assert not twice, twice


def unfolded(rows: list[CaseRow], project: Project, view: View) -> Tree:
    """The list with every line of it open."""
    tree = build(rows, project.suites, view)
    while any(line.folded for line in tree.lines):
        view.unfolded |= {line.key for line in tree.lines if line.folded}
        tree = build(rows, project.suites, view)
    return tree


def seen_apart(tree: Tree, *widths: int) -> None:
    """No two rows read alike. A row stands below the line of its test, which is seen above it."""
    painted = CaseLines("suites", Symbols())
    painted.cases = tree
    for width in widths:
        texts = {line.key: plain(painted.tree_line(line, width)) for line in tree.lines}
        all_differ(
            ["\n".join([*(texts[one.key] for one in line.above), texts[line.key]]) for line in tree.lines]
        )


several = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.real
@several
@given(projects(), st.sampled_from(("failed", "")))
def test_rows_of_a_list(made: tuple[Project, int], status: str) -> None:
    project, width = made
    rows = suite_entries(project.state)
    for row in rows:
        row.status, row.cause, row.alike = status, 'lacks "2 years"' * bool(status), ""
    seen_apart(unfolded(rows, project, View()), width)


@pytest.mark.real
@several
@given(projects(), st.sampled_from(("failed", "")), st.sampled_from(SORTS[1:]))
def test_rows_of_a_sorted_list(made: tuple[Project, int], status: str, sort: str) -> None:
    """They stand without the lines of their tests."""
    project, width = made
    rows = suite_entries(project.state)
    for row in rows:
        row.status, row.cause, row.alike = status, 'lacks "2 years"' * bool(status), ""
    seen_apart(build(rows, project.suites, View(sort=sort)), width)


@pytest.mark.parametrize("name", ["greets", NAMES[-1]])
@pytest.mark.parametrize(
    "paths",
    [
        ("one.yaml", "two.yaml"),
        ("evals/one.yaml", "evals/two.yaml"),
        ("shop/evals.yaml", "desk/evals.yaml"),
        tuple(
            f"tests/all_that_people_ask_the_shop_about_its_returns_{end}.yaml"
            for end in ("of_today", "in_june")
        ),
    ],
)
def test_rows_of_files_that_hold_one_case(paths: tuple[str, str], name: str) -> None:
    """They stand without a line of their file above them."""
    project = Project(
        [
            Suite(path, "nao", cases=[Case(f"{path}::{name}", name, path, "nao", line=1, turns=[Turn("hi")])])
            for path in paths
        ]
    )
    rows = suite_entries(project.state)
    for status, grouping, first in product(("failed", ""), ("file", "test", "agent", "cause"), (False, True)):
        for row in rows:
            row.status, row.cause = status, 'lacks "2 years" and calls no tool' * bool(status)
        seen_apart(unfolded(rows, project, View(grouping=grouping, failures_first=first)), 60, 80)


@pytest.mark.real
@several
@given(projects())
def test_heads_of_cases(made: tuple[Project, int]) -> None:
    project, width = made
    heads: list[str] = []
    for item in project.state.rows:
        content = CaseContent(CasePointer(item.case_id), item.name, item.suite, item.case)
        content.row_name = named_among(item, None, project.state.rows)
        heads.append(plain(head(content, width)[0]))
    all_differ(heads)
    assert not [one for one in heads if "……" in one]


@several
@given(projects())
def test_rows_of_the_grid(made: tuple[Project, int]) -> None:
    project, width = made
    grid = grid_view.grid(suite_entries(project.state))
    all_differ([plain(grid_view.row_line(grid, test, width, 0)) for test in grid.tests])
    titles = grid_view.heads(grid)
    all_differ([" / ".join(row[at] for row in titles) for at in range(len(grid.columns))])


@pytest.mark.real
@several
@given(projects(), st.sampled_from(("passed", "failed")))
def test_rows_of_a_comparison(made: tuple[Project, int], after: str) -> None:
    project, width = made
    sides = [
        [
            CaseSummary(
                case.case_id, case.name, case.suite, case.agent or "", None, cast("Outcome", outcome), 1, 1,
                int(outcome == "passed"), 1, 1.0, False,
                variant=f"{case.column_name} {case.variant}".strip(),
            )
            for case in project.cases
        ]
        for outcome in ("passed", after)
    ]  # fmt: skip
    rows = compare_view.rows(compare(*sides), name_of=project.state.name_of)
    all_differ([plain(compare_view.row_line(row, width)) for row in rows])
    # Two columns of a matrix: each test and prompt by what both share.
    columns = list(dict.fromkeys((one.suite, one.agent) for one in sides[0]))
    for suite, first in columns:
        for other in (agent for of, agent in columns if of == suite and agent != first):
            halves = [[one for one in side if (one.suite, one.agent) == (suite, agent)]
                      for side, agent in zip(sides, (first, other), strict=True)]  # fmt: skip
            rows = compare_view.rows(compare(*halves), agents=True, name_of=project.state.name_of)
            all_differ([plain(compare_view.row_line(row, width)) for row in rows])
            paired = [row.name for row in rows if row.case and row.case.before and row.case.after]
            assert not [name for name in paired if name.variant.startswith(("atlas", "http"))]


@pytest.mark.real
@several
@given(projects())
def test_rows_of_a_search(made: tuple[Project, int]) -> None:
    project, width = made
    entries = [
        FoundEntry(Hit(number, 1, "assistant", "the \x02words\x03"), _stored(number, case), 1, "failed")
        for number, case in enumerate(project.cases, 1)
    ]
    names = search_view.names_of(entries, project.state.name_of)
    one_suite = len({one.case.suite for one in entries}) == 1
    all_differ(
        [
            plain(search_view.row_line(one, 0, width, name, one_suite=one_suite))
            for one, name in zip(entries, names, strict=True)
        ]
    )


def _stored(number: int, case: Case) -> StoredCase:
    return StoredCase(
        number, case.case_id, case.suite, case.name, case.format, case.agent or "", None, "", 1, 1,
        variant=f"{case.column_name} {case.variant}".strip(),
    )  # fmt: skip


@several
@given(projects(), st.data())
def test_heads_of_panes(made: tuple[Project, int], data: st.DataObject) -> None:
    project, width = made
    rows = suite_entries(project.state)
    some = data.draw(st.lists(st.sampled_from(rows), max_size=6, unique=True))
    pane = Pane(1, (0, 0, max(width // 2, 40), 10), StreamText(width))
    view = RunView(RunInfo("r", started_at=1.0), Path("r"))
    view.apply_cases([_stored(1, project.cases[0])])
    view.apply_attempts([attempt_row(1, started_at=100.0, ends_at=130.0)])
    names = row_names((row.name, row.variant, row.suite) for row in some)
    all_differ([head_text(pane, view, Symbols(), 112.0, False, name) for name in names])


@several
@given(projects())
def test_cases_in_the_palette(made: tuple[Project, int]) -> None:
    project, width = made
    rows = suite_entries(project.state)
    names = row_names((row.name, row.variant, row.suite) for row in rows)
    titles = [
        row_title(name, row.suite, " · ", row_width(width)) for row, name in zip(rows, names, strict=True)
    ]
    all_differ([fit(title.plain, row_width(width)) for title in titles])


def test_rows_of_a_scenario_in_the_grid_are_told_apart_by_its_data() -> None:
    cases = [
        Case(f"s.yaml::s::echo::prompt{prompt}{end}", "s", "s.yaml", "promptfoo", agent="echo", line=3, column_number=prompt,
             prompt=f"p{prompt}", variant=f"p{prompt}", vars={"q": "hi", "lang": lang})
        for end, lang in (("", "it"), ("#2", "en"))
        for prompt in (1, 2)
    ]  # fmt: skip
    rows = suite_entries(Project([Suite("s.yaml", "promptfoo", cases=cases)]).state)
    found = grid_view.grid(rows)
    assert [test.called for test in found.tests] == ["s · it", "s · en"]
    assert [len(test.cells) for test in found.tests] == [2, 2]


@pytest.mark.real
@several
@given(projects(), st.booleans(), st.sampled_from((54, 60, 80)))
def test_rows_of_runs_of_one_case(made: tuple[Project, int], linked: bool, width: int) -> None:
    """Reruns of each case, and steps, below the run that they belong to."""
    project, _ = made
    whole = RunSummary(
        "20260601-000000-aaaa", "finished", 1.8e9, None, ". (48 cases)", "a", 48, 1, 0, 0, 0, None, None
    )
    rows = [RunLine(whole)]
    for number, case in enumerate(project.cases):
        stored = StoredCase(
            1, case.case_id, case.suite, case.name, case.format, case.agent or "", None, "", 1, 1,
            f"{case.column_name} {case.variant}".strip(),
        )  # fmt: skip
        rows.append(RunLine(RunSummary(
            f"20260601-000001-{number:04}b", "finished", 1.8e9 + number // 4 * 40, None, f"{case.suite} (1 case)", case.agent or "", 1, 1, 0, 0,
            0, None, whole.id if linked else None, stepped=number % 2 == 0, only=name_of_cases([stored]),
            part_of="" if linked else whole.id,
        )))  # fmt: skip
    names = names_apart(rows)
    begun = begun_apart(rows, width, names)
    all_differ([
        plain(row_line(one, width, 1.8e9, (), begun.get(one.run.id, ""), names.get(one.run.id)))
        for one in under_their_runs(rows)
    ])  # fmt: skip
