"""A row of a promptfoo suite has one name: in the lists, the grid, comparisons, reports, with or without others."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from tui_eval.case_names import (
    called,
    column_label,
    full_name,
    names_by_values,
    short_prompts,
    short_providers,
    which_test,
    which_tests,
)
from tui_eval.config.project import load as load_config
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case
from tui_eval.reports.console_table import RunTable
from tui_eval.reports.run_comparison import compare
from tui_eval.store.linked import load_together
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.suites import identity
from tui_eval.suites.identity import Ids
from tui_eval.tui.loaders.compare_loader import choices_of
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.compare.grid_view import columns_of, grid, heads
from tui_eval.tui.state.lists.entries import run_entries, suite_entries
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import RunView

SUITE = """\
prompts: [file://prompts/terse.txt, file://prompts/warm.txt]
providers: [{id: echo, label: 'openai:gpt-small'}, {id: echo, label: 'openai:gpt-large'}]
tests:
  - {description: kettle, vars: {thing: kettle, tone: [dry, wet]}}
"""


def project(folder: Path) -> list[Case]:
    (folder / "prompts").mkdir()
    (folder / "prompts" / "terse.txt").write_text("Be terse: {{thing}}")
    (folder / "prompts" / "warm.txt").write_text("Be warm: {{thing}}")
    (folder / "promptfooconfig.yaml").write_text(SUITE)
    (folder / "tui_eval.yaml").write_text("{}\n")
    config = load_config([folder])
    return list(reading.load(folder / "promptfooconfig.yaml", config, Trust()).cases)


def written(root: Path, run_id: str, cases: list[Case], agent: str | None = None) -> Path:
    folder = Store(root).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(run_id, started_at=1.0))
    planned = writer.plan([PlannedCase(case, agent or case.agent or "", None, 1, 1) for case in cases])
    for case, (ref,) in zip(cases, planned, strict=True):
        writer.done(ref, Attempt(case.case_id, 1, "passed", agent or case.agent or "", None, "passed"))
    writer.state("finished", 2.0)
    writer.close()
    return folder


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["p/terse.txt: Be terse", "p/warm.txt: Be warm: always"], ["terse", "warm"]),
        (["a/x.txt: A", "b/x.txt: B"], ["a/x", "b/x"]),
        (["Terse", 'p/a_chat.json: [{"role":"system","content":"You are"}]'], ["Terse", "a_chat"]),
        (["x.txt: A", "x.md: B"], ["x.txt", "x.md"]),
        (["m.txt: Say a", "m.txt: Say b"], ["m.txt: Say a", "m.txt: Say b"]),
        (["make.py:one", "make.py:two"], ["make.py:one", "make.py:two"]),
        (["Say it\n\nbriefly", "Say it at length"], ["Say it briefly", "Say it at length"]),
        (["You write for a shop. Short!", "You write for a shop. Long!"], ["…Short!", "…Long!"]),
        (["x" * 60 + "a", "x" * 60 + "b"], ["prompt1", "prompt2"]),
        (["terse", "warm: and friendly"], ["terse", "warm: and friendly"]),
        (["Prompt 1 - Say it", "Prompt 2 - Sing it"], ["Prompt 1", "Prompt 2"]),
        (["same", "same"], ["same", "same"]),
        ([], []),
    ],
)
def test_short_names_of_prompts(labels, names):
    assert short_prompts(labels) == names


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["openai:gpt-4.1", "anthropic:messages:opus"], ["gpt-4.1", "opus"]),
        (["a:x", "b:x"], ["a:x", "b:x"]),
        (["openai:chat:x", "openai:responses:x"], ["chat:x", "responses:x"]),
        (["http://h/a", "http://h/b"], ["a", "b"]),
        (["echo:", "mine"], ["echo:", "mine"]),
    ],
)
def test_short_names_of_providers(given, names):
    assert short_providers(given) == names


def test_a_row_has_the_same_name_everywhere(tmp_path):
    cases = project(tmp_path)
    state = AppState(tmp_path)
    state.set_suites([reading.load(tmp_path / "promptfooconfig.yaml", load_config([tmp_path]), Trust())])
    listed = {entry.case_id: entry.variant for entry in suite_entries(state)}
    assert len(set(listed.values())) == len(cases) == 8
    assert "gpt-small warm tone=wet" in listed.values()
    everything, one = written(tmp_path, "r1", cases), written(tmp_path, "r2", cases[3:4])
    compared = compare(load_together([everything]), load_together([one]))
    assert {case.case_id: case.mark for case in compared.cases} == listed
    for folder in (everything, one):
        with closing(RunReader(folder)) as reader:
            rows = reader.cases()
            assert all(row.variant == listed[row.case_id] for row in rows)
            printed = "\n".join(RunTable.of(reader).lines(200))
            assert all(f"[{row.variant}]" in printed for row in rows)
    titles = {full_name(one.name, one.variant) for one in choices_of(tmp_path, cases[3].case_id, "r1", "r2")}
    assert titles == {"kettle · gpt-large warm tone=dry"}
    found = grid(suite_entries(state))
    assert [row[:2] for row in heads(found)] == [["gpt-small", "gpt-small"], ["terse", "warm"]]


def test_run_with_another_agent_a_row_is_not_called_after_its_provider(tmp_path):
    cases = project(tmp_path)[:2]
    with closing(RunReader(written(tmp_path, "r1", cases, "mine"))) as reader:
        assert [row.variant for row in reader.cases()] == [case.variant for case in cases]


def test_a_run_of_an_earlier_version_is_read(tmp_path):
    folder = written(tmp_path, "r1", project(tmp_path)[:2])
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("ALTER TABLE cases DROP COLUMN variant")
        connection.commit()
    with closing(RunReader(folder)) as reader:
        assert [row.variant for row in reader.cases()] == ["", ""]
    marks = {case.mark for case in compare(load_together([folder]), load_together([folder])).cases}
    assert marks == {"prompt1", "prompt2"}


def test_the_lines_of_a_run_do_so_without_its_suites_at_hand_too(tmp_path):
    cases = project(tmp_path)
    folder = written(tmp_path, "r1", cases[3:4])
    view = RunView(RunInfo("r1"), folder)
    with closing(RunReader(folder)) as reader:
        view.apply_cases(reader.cases())
    told = [entry.variant for entry in run_entries(RunGroup([view]), AppState(tmp_path))]
    assert told == ["gpt-large warm tone=dry"]


def of_tests(*tests: Case) -> tuple[list[str], list[str]]:
    """What is said of these tests, each run with two prompts."""
    ids = Ids(str)
    cases = [
        replace(test, case_id=ids.take(f"{test.case_id}::mini::{prompt}"), variant=prompt)
        for test in tests
        for prompt in ("terse", "chat")
    ]
    found = which_tests(cases)
    return found, called(cases, found)


def asked(name: str, question: str, line: int, file: str | None = None) -> Case:
    head = name if not name.startswith("Row #") else identity.unnamed({"q": question})
    return Case(f"s.yaml::{head}", name, "s.yaml", "promptfoo", vars={"q": question}, line=line, file=file)


def test_two_tests_of_one_name_are_two_tests_and_called_by_what_they_ask():
    tests, names = of_tests(asked("Sums", "17 * 23?", 13), asked("Sums", "2 + 2?", 18))
    assert tests == ["Sums", "Sums", "Sums#2", "Sums#2"]
    assert names == [*["Sums · 17 * 23?"] * 2, *["Sums · 2 + 2?"] * 2]


def test_rows_of_a_table_are_not_taken_for_the_tests_of_the_file_that_names_it():
    tests, names = of_tests(asked("Row #1", "One?", 9), asked("Row #1", "Two?", 2, file="tests.csv"))
    assert tests[0] == tests[1] != tests[2] == tests[3]
    assert names == ["One?", "One?", "Two?", "Two?"]


def test_tests_that_a_program_makes_all_in_one_place_are_told_by_their_ids():
    tests, names = of_tests(asked("Sums", "same?", 0), asked("Sums", "same?", 0))
    assert tests == ["Sums", "Sums", "Sums#2", "Sums#2"]
    assert names == [*["Sums · #1"] * 2, *["Sums · #2"] * 2]


def test_what_no_variable_tells_apart_is_told_by_its_line():
    assert of_tests(asked("Sums", "same?", 3), asked("Sums", "same?", 7))[1][1:3] == [
        "Sums · line 3",
        "Sums · line 7",
    ]


def test_combinations_of_variables_are_rows_of_one_test():
    cases = [
        Case(f"s.yaml::Sums[lang={lang}]::mini", "Sums", "s.yaml", "promptfoo", vars={"lang": lang}, line=3)
        for lang in ("de", "en")
    ]
    assert which_tests(cases) == ["Sums", "Sums"]
    assert called(cases, which_tests(cases)) == ["Sums", "Sums"]


def test_of_a_run_whose_suite_is_not_at_hand_the_id_says_the_test():
    assert which_test("a/s.yaml::Sums[lang=de]::mini::chat", "a/s.yaml", "Sums") == "Sums"
    assert which_test("s.yaml::Sums::mini::chat#2", "s.yaml", "Sums") == "Sums#2"
    assert which_test("s.yaml::vars-0123abcd::mini", "s.yaml", "Row #3") == "vars-0123abcd"
    assert which_test("s.yaml::Case #3", "s.yaml", "Case #3") == "Case #3"


def test_a_test_without_a_name_is_called_by_what_is_its_own_before_what_every_test_has(tmp_path):
    (tmp_path / "tests.csv").write_text("question,tone\nOpen on Sunday?,dry\nOpen on Monday?,\n")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{tone}}: {{question}}']\nproviders: [echo]\n"
        "defaultTest: {vars: {tone: neutral}}\ntests: [file://tests.csv, {vars: {question: Open at all?}}]\n"
    )
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    config = load_config([tmp_path])
    cases = list(reading.load(tmp_path / "promptfooconfig.yaml", config, Trust()).cases)
    assert called(cases, which_tests(cases)) == ["Open on Sunday?", "Open on Monday?", "Open at all?"]
    assert [list(case.vars) for case in cases] == [["tone", "question"]] * 3  # as promptfoo has them


def test_rows_of_a_wide_table_are_called_by_the_variable_that_tells_them_apart_in_time() -> None:
    columns = {f"c{n}": "" for n in range(5000)}
    rows = [
        Case(
            f"s.yaml::{n}", f"vars-{n}", "s.yaml", format="promptfoo", vars={"q": "x", **columns, "z": str(n)}
        )
        for n in range(60)
    ]
    before = time.thread_time()
    assert names_by_values(rows) == [f"x · {n}" for n in range(60)]
    assert time.thread_time() - before < 2


def test_the_grid_has_the_columns_of_the_suite_in_whatever_order_they_were_run(tmp_path):
    project(tmp_path)
    state = AppState(tmp_path)
    state.set_suites([reading.load(tmp_path / "promptfooconfig.yaml", load_config([tmp_path]), Trust())])
    rows = suite_entries(state)
    for one in rows:
        one.model = one.agent  # as a run that asked a model says it
    for listed in (rows, rows[::-1], rows[3:] + rows[:3]):
        assert heads(grid(listed, columns_of(listed))) == [
            ["gpt-small", "gpt-small", "gpt-large", "gpt-large"], ["terse", "warm", "terse", "warm"],
        ]  # fmt: skip


def test_an_agent_that_is_called_by_its_model_is_named_once() -> None:
    assert column_label("atlas", "atlas") == "atlas"
    assert column_label("openai:chat:atlas", "atlas") == "openai:chat:atlas"
    assert column_label("shop", "atlas") == "shop, atlas"
    assert column_label("shop-atlas", "atlas") == "shop-atlas, atlas"
    assert column_label("shop", None) == "shop" and column_label(None, "atlas") == "atlas"
