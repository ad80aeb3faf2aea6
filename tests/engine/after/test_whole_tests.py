"""A test whose columns are compared with each other is run whole, whichever of its columns was asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.engine.after.rescoring import rescore
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RequestCell, RunRequest
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

SUITE = """\
prompts: ['good {{q}}', 'bad {{q}}', 'worse {{q}}']
providers: [echo]
tests:
  - vars: {q: one}
    assert: [{type: contains, value: good, weight: 0}, {type: max-score}]
  - vars: {q: two}
    assert: [{type: contains, value: good}]
"""


async def ran(root: Path, request: RunRequest) -> tuple[str, list[tuple[str, str | None]]]:
    """The run's id, and what was asked in its order with the outcomes."""
    request.paths = [str(root / "promptfooconfig.yaml")]
    active = prepare(request)
    assert await active.execute() == "finished" and active.writer is not None
    reader = RunReader(active.writer.folder)
    rows = {row.case_ref: row.outcome for row in reader.attempts()}
    return active.run_id, [(row.case_id, rows[row.id]) for row in reader.cases()]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    (tmp_path / "tui_eval.yaml").write_text("{}")
    return tmp_path


async def test_a_loser_that_is_run_again_twice_loses_again(root: Path) -> None:
    first, whole = await ran(root, RunRequest())
    assert [outcome for _, outcome in whole] == [
        "passed", "failed", "failed", "passed", "failed", "failed",
    ]  # fmt: skip
    test = [case_id for case_id, _ in whole[:3]]
    loser = [RequestCell(test[1], "echo", None, True)]
    second, again = await ran(root, RunRequest(cells=list(loser), linked_to=first))
    assert sorted(again) == sorted(whole[:3])
    _, third = await ran(root, RunRequest(cells=list(loser), linked_to=second))
    assert sorted(third) == sorted(whole[:3])


def asking(by: str, case_id: str) -> RunRequest:
    return RunRequest(select=[case_id]) if by == "select" else RunRequest(case_ids=[case_id])


@pytest.mark.parametrize("by", ["select", "case_ids"])
async def test_one_column_that_is_named_runs_with_the_others_of_its_test(root: Path, by: str) -> None:
    _, whole = await ran(root, RunRequest())
    _, named = await ran(root, asking(by, whole[1][0]))
    assert named == whole[:3]
    _, plain = await ran(root, asking(by, whole[4][0]))
    assert plain == whole[4:5]  # nothing compares it


async def test_what_failed_is_run_again_with_what_it_lost_against(root: Path) -> None:
    _, whole = await ran(root, RunRequest())
    _, again = await ran(root, RunRequest(failed_only=True))
    assert again == [*whole[:3], *whole[4:]]


@pytest.mark.real
async def test_columns_of_agents_that_were_named_are_those_of_the_run(root: Path) -> None:
    for name in ("one", "two"):
        (root / f"{name}.py").write_text(f"def answer(messages):\n    return '{name}'\n")
    (root / "tui_eval.yaml").write_text(
        "agents: {one: {type: python, function: 'one.py:answer'}, two: {type: python, function: 'two.py:answer'}}\n"
    )
    (root / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n  - vars: {q: one}\n"
        "    assert: [{type: contains, value: two, weight: 0}, {type: max-score}]\n"
    )
    first, whole = await ran(root, RunRequest(agents=["one", "two"], trust=True))
    assert [outcome for _, outcome in whole] == ["failed", "passed"]
    cells = [RequestCell(whole[0][0], "one")]
    _, again = await ran(root, RunRequest(cells=cells, agents=["one"], linked_to=first, trust=True))
    assert again == whole
    _, failed = await ran(root, RunRequest(failed_only=True, trust=True))
    assert failed == whole


async def test_judging_a_loser_again_compares_it_with_the_others(root: Path) -> None:
    first, whole = await ran(root, RunRequest())
    folder = Store(root).folder_of(first)
    active = rescore(folder, overrides=RunRequest(case_ids=[whole[1][0]]))
    assert await active.execute() == "finished" and active.writer is not None
    reader = RunReader(active.writer.folder)
    rows = {row.case_ref: row.outcome for row in reader.attempts()}
    assert [(row.case_id, rows[row.id]) for row in reader.cases()] == whole[:3]


async def test_a_row_of_a_conversation_in_a_rerun_of_a_rerun_has_the_rows_before_it(root: Path) -> None:
    (root / "promptfooconfig.yaml").write_text(
        "prompts: ['{% for turn in _conversation %}{{turn.input}};{% endfor %}{{q}}']\nproviders: [echo]\n"
        "tests: [{vars: {q: one}}, {vars: {q: two}, assert: [{type: equals, value: 'one;two'}]}]\n"
    )
    run_id, whole = await ran(root, RunRequest())
    for _ in range(2):
        cells = [RequestCell(whole[1][0], "echo", None, True)]
        run_id, again = await ran(root, RunRequest(cells=cells, linked_to=run_id))
        assert again == [(whole[1][0], "passed")]
