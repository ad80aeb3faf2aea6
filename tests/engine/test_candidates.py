"""Of a large table only the cases that a request needs are made, and they are the same ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tui_eval.config.project import load
from tui_eval.engine.candidates import CasesOfSuites, candidates
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import SelectionError, choose
from tui_eval.formats import reading
from tui_eval.guard.text import visible
from tui_eval.guard.trust import Trust
from tui_eval.model import Case, Suite

ROWS = 1_200


@pytest.fixture
def table(tmp_path: Path) -> tuple[list[Suite], list[str]]:
    """A suite of a CSV, and the ids of the cases made of it so far."""
    lines = ["q,topic", *(f"question {i},topic" for i in range(ROWS))]
    (tmp_path / "tests.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "tui_eval.yaml").write_text("")
    config = "prompts: ['{{q}}', 'Please: {{q}}']\nproviders: [echo]\ntests: file://tests.csv\n"
    (tmp_path / "promptfooconfig.yaml").write_text(config)
    loaded = reading.load_all([tmp_path], load([tmp_path]), Trust())
    made: list[str] = []
    each: Callable[[Callable[[Case], None]], None] = loaded[0].cases.each  # type: ignore[attr-defined]
    each(lambda case: made.append(case.case_id))
    return loaded, made


def chosen(loaded: list[Suite], request: RunRequest) -> list[str]:
    return [case.case_id for case in choose(candidates(loaded, request), request, dict)]


@pytest.mark.parametrize(
    ("request_", "tests"),
    [
        (RunRequest(filter_first_n=3), (0, 3)),
        (RunRequest(filter_range="2:5"), (2, 5)),
        (RunRequest(filter_range="2:9", filter_first_n=1), (2, 3)),
    ],
)
def test_the_first_tests_are_all_that_is_made(table, request_: RunRequest, tests: tuple[int, int]) -> None:
    loaded, made = table
    every = [case.case_id for case in loaded[0].cases]
    made.clear()
    assert chosen(loaded, request_) == every[tests[0] * 2 : tests[1] * 2]
    assert len(made) < 30


def test_a_whole_id_makes_its_case_alone(table) -> None:
    loaded, made = table
    wanted = loaded[0].cases[841].case_id
    made.clear()
    assert chosen(loaded, RunRequest(select=[wanted])) == [wanted]
    assert made == [wanted]


@pytest.mark.real
def test_other_words_and_filters_look_at_all(table) -> None:
    loaded, made = table
    every = [case.case_id for case in loaded[0].cases]
    for request in (
        RunRequest(select=["promptfooconfig"]),
        RunRequest(select=[f"{every[0]},promptfooconfig"]),
        RunRequest(filter_pattern="Row", filter_first_n=ROWS),
    ):
        made.clear()
        assert chosen(loaded, request) == every
        assert len(made) >= len(every)
    with pytest.raises(SelectionError, match="nope::nothing"):
        chosen(loaded, RunRequest(select=["nope::nothing"]))


def test_a_case_of_several_suites_is_made_alone(table) -> None:
    loaded, made = table
    other = Suite(path="s.yml", format="nao", cases=[Case("s.yml::a", "a", "s.yml", "nao")])
    both = CasesOfSuites([*loaded, other, *loaded])
    every = list(both)
    made.clear()
    assert both[7] == every[7] and both[-7] == every[-7] and both[2 * ROWS] is other.cases[0]
    assert made == [every[7].case_id, every[-7].case_id]
    for place in (len(every), -len(every) - 1):
        with pytest.raises(IndexError, match=f"there are {len(every)} cases"):
            both[place]


def test_a_selection_of_commas_alone_names_nothing() -> None:
    cases = [Case(case_id="s.yml::a", name="a", suite="s.yml", format="nao")]
    with pytest.raises(SelectionError, match="names nothing; there are: a"):
        choose(cases, RunRequest(select=[" , "]), dict)


@pytest.mark.parametrize(
    ("word", "names"),
    [
        ("tests", "ab"), ("evals/ns/tests", "a"), ("evals/ns/", "a"), ("./evals/ns", "a"), ("ns/", "a"), ("ns/tests", "a"),
        ("./evals/ns/tests/f.hocon", "a"), ("tests/f.hocon", "a"), ("./tests/b.yaml", "b"), ("a/c.yaml", "c"),
        ("evals/", "ac"), ("sta/a", "c"), ("a", "a"), ("a/", "c"), ("evals/sta/c.yaml", "d"),
    ],
)  # fmt: skip
def test_a_folder_is_selected_by_its_name_or_its_path(word: str, names: str) -> None:
    files = {"a": "evals/ns/tests/f.hocon", "b": "tests/b.yaml", "c": "evals/sta/a/c.yaml"}
    cases = [Case(f"{suite}::{name}", name, suite, "nao") for name, suite in files.items()]
    if names == "d":
        cases.append(Case("evals/sta/c.yaml::d", "d", "evals/sta/c.yaml", "nao"))
    if word == "a":
        cases = cases[:2]  # a case is called so, and no folder
    assert "".join(case.name for case in choose(cases, RunRequest(select=[word]), dict)) == names


@pytest.mark.parametrize("word", ["ns/other", "/evals", ".", "./", "tests/ns"])
def test_what_is_no_folder_selects_nothing(word: str) -> None:
    cases = [Case("evals/ns/tests/f.hocon::a", "a", "evals/ns/tests/f.hocon", "nao")]
    with pytest.raises(SelectionError, match="no case, file or folder is called"):
        choose(cases, RunRequest(select=[word]), dict)


HOSTILE_NAMES = """
prompts:
  - {label: "first, prompt", raw: "{{q}}"}
  - {label: "-second", raw: "Q: {{q}}"}
providers:
  - {id: echo, label: "one, two"}
  - {id: echo, label: "it's"}
tests:
  - {description: "greets, politely", vars: {q: [x, y]}}
  - {description: "greets", vars: {q: x}}
  - {description: "politely", vars: {q: x}}
  - {description: "tab\\tand \\e[31m", vars: {q: x}}
  - {vars: {q: "no name, here"}}
"""


def test_the_id_that_a_printed_command_names_selects_its_case_whatever_it_holds(tmp_path: Path) -> None:
    """`again:` leaves the suite out and shows what a terminal cannot take; labels and names hold commas."""
    (tmp_path / "tui_eval.yaml").write_text("")
    (tmp_path / "promptfooconfig.yaml").write_text(HOSTILE_NAMES)
    loaded = reading.load_all([tmp_path], load([tmp_path]), Trust())
    every = [case.case_id for case in loaded[0].cases]
    assert len(every) == 24
    for case_id in every:
        for shown in (case_id, case_id.partition("::")[2]):
            printed = visible(shown, newlines=False)
            assert chosen(loaded, RunRequest(select=[printed])) == [case_id]
    both = [case_id for case_id in every if "::greets::" in case_id or "::politely::" in case_id]
    assert chosen(loaded, RunRequest(select=["greets,politely"])) == both
