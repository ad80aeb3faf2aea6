"""A row of a promptfoo suite has one name: in the lists, the grid, comparisons, reports, with or without others."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tui_eval.case_names import short_prompts, short_providers
from tui_eval.config.project import load as load_config
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case
from tui_eval.reports.console_table import table
from tui_eval.reports.run_comparison import compare
from tui_eval.store.linked import load_together
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.summary import summarise_run
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.loaders.compare_loader import choices_of
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.compare.grid_view import grid, heads
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
            printed = table(rows, reader.attempts(), summarise_run(rows, reader.attempts()), 200)
            assert all(f"[{row.variant}]" in printed for row in rows)
    titles = {one.title for one in choices_of(tmp_path, cases[3].case_id, "r1", "r2")}
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
