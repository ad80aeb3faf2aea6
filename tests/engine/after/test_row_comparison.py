"""Columns that are compared when all have run: a judge that never answers holds up neither the run nor its end."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.servers.gated import GatedServer
from tests.support.waiting import until
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.rescoring import rescore
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingToRun
from tui_eval.model import NOT_COMPARED
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import DATABASE, Store
from tui_eval.store.schema import COMPARED_LATER, RunState
from tui_eval.tui.state.runs.run_view import RunView

BEST = """\
prompts: ['a {{q}}', 'b {{q}}']
providers: [echo]
tests:
  - vars: {q: one}
    assert: [{type: select-best, value: the friendliest}]
"""


@pytest.fixture
def judge() -> Iterator[GatedServer]:
    """It answers nothing before it is allowed to."""
    with GatedServer() as server:
        yield server


def project(root: Path, judge: GatedServer, timeout: float) -> Path:
    (root / "promptfooconfig.yaml").write_text(BEST)
    (root / "tui_eval.yaml").write_text(
        f"judge: {{type: openai, base_url: '{judge.base}', model: m}}\nrun: {{timeout: {timeout}}}\n"
    )
    return root


async def test_a_judge_that_never_answers_is_an_error_when_the_time_of_the_test_is_up(
    tmp_path: Path, judge: GatedServer
) -> None:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(project(tmp_path, judge, 0.3))]))
    assert active.writer is not None
    assert await active.execute() == "finished"
    with_errors = [RunReader(active.writer.folder).attempt(ref) for ref in (1, 2)]
    for attempt in with_errors:
        assert attempt is not None and attempt.outcome == "error"
        assert attempt.message == "select-best: the judge gave no answer in 0.3 s"
        assert [(one.code, one.text) for one in attempt.verdicts[0].evidence or ()] == [
            ("judge-failed", "no answer in 0.3 s")
        ]


async def being_compared(folder: Path, judge: GatedServer) -> tuple[ActiveRun, asyncio.Task[RunState]]:
    """A run whose columns have their answers, and whose judge has been asked and says nothing."""
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(project(folder, judge, 600))]))
    running = asyncio.create_task(active.execute())
    await until(lambda: bool(judge.arrivals))
    return active, running


@pytest.mark.parametrize("how", ["interrupt", "cancel"])
async def test_the_run_ends_at_once_while_columns_are_compared(
    tmp_path: Path, judge: GatedServer, how: str
) -> None:
    active, running = await being_compared(tmp_path, judge)
    await getattr(active.runner, how)()
    assert await running == {"interrupt": "interrupted", "cancel": "cancelled"}[how]
    assert active.writer is not None
    rows = RunReader(active.writer.folder).attempts()
    assert [(row.outcome, row.message) for row in rows] == [("error", NOT_COMPARED)] * 2  # never a pass


@pytest.mark.real
async def test_a_hook_at_the_end_is_told_that_columns_were_not_compared(
    tmp_path: Path, judge: GatedServer
) -> None:
    """It was told that both had passed."""
    root = project(tmp_path, judge, 600)
    (root / "promptfooconfig.yaml").write_text(f"{BEST}extensions: ['file://h.py:afterAll']\n")
    (root / "h.py").write_text(
        "import json\n"
        "def afterAll(context, info):\n"
        f"    with open({str(root / 'told.json')!r}, 'w') as told:\n"
        "        json.dump([row['success'] for row in context['results']], told)\n"
    )
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], trust=True))
    running = asyncio.create_task(active.execute())
    await until(lambda: bool(judge.arrivals))
    await active.runner.interrupt()
    assert await running == "interrupted"
    assert json.loads((root / "told.json").read_text()) == [False, False]


async def test_what_was_interrupted_is_judged_from_the_record_and_resume_says_so(
    tmp_path: Path, judge: GatedServer
) -> None:
    active, running = await being_compared(tmp_path, judge)
    await active.runner.interrupt()
    assert await running == "interrupted" and active.writer is not None
    name = active.writer.folder.name
    with pytest.raises(NothingToRun, match=f"still to be judged: tui-eval rescore {name}"):
        await asyncio.to_thread(resume, active.writer.folder)
    judge.allowed = 10
    again = await asyncio.to_thread(rescore, active.writer.folder, overrides=RunRequest())
    assert await again.execute() == "finished" and again.writer is not None
    rows = RunReader(again.writer.folder).attempts()
    assert len(rows) == 2 and all(row.message != NOT_COMPARED for row in rows)


async def test_a_column_that_waits_to_be_compared_counts_as_waiting_and_not_as_an_error(
    tmp_path: Path, judge: GatedServer
) -> None:
    active, running = await being_compared(tmp_path, judge)
    assert active.writer is not None and await asyncio.to_thread(active.writer.flush)
    with closing(RunReader(active.writer.folder)) as reader:
        view = RunView(reader.info(), active.writer.folder)
        view.apply_cases(reader.cases())
        view.apply_attempts(reader.changes())
        assert [(row.state, row.outcome, row.detail) for row in reader.attempts()] == [
            ("waiting", None, COMPARED_LATER)
        ] * 2
    assert (view.counts.total, view.counts.done, view.counts.errors) == (2, 0, 0)
    judge.allowed = 10
    assert await running == "finished"
    with closing(RunReader(active.writer.folder)) as reader:
        assert {row.state for row in reader.attempts()} == {"done"}


async def test_what_waited_to_be_compared_when_the_engine_died_is_an_error_and_is_not_asked_again(
    tmp_path: Path, judge: GatedServer
) -> None:
    active, running = await being_compared(tmp_path, judge)
    assert active.writer is not None and await asyncio.to_thread(active.writer.flush)
    killed = Store(tmp_path).runs_folder / "20200101-000000-aaaaaa"
    killed.mkdir()
    with (  # as the engine leaves it that is killed now: nobody holds its lock
        closing(sqlite3.connect(active.writer.folder / DATABASE)) as source,
        closing(sqlite3.connect(killed / DATABASE)) as target,
    ):
        source.backup(target)
    await active.runner.interrupt()
    await running
    with closing(RunReader(killed)) as reader:
        assert [(row.state, row.outcome, row.message) for row in reader.attempts()] == [
            ("done", "error", NOT_COMPARED)
        ] * 2
        attempt = reader.attempt(1)
        assert attempt is not None and attempt.outcome == "error" and attempt.replies
    with pytest.raises(NothingToRun, match="still to be judged"):
        await asyncio.to_thread(resume, killed)


@pytest.mark.parametrize("rest", ["", "    assert: [{type: select-best, value: the shortest}]\n"])
async def test_columns_whose_comparing_was_cut_off_are_compared_when_the_run_goes_on(
    tmp_path: Path, judge: GatedServer, rest: str
) -> None:
    """They stayed errors in a run that had ended: resume asked for the others alone."""
    root = project(tmp_path, judge, 600)
    (root / "promptfooconfig.yaml").write_text(
        f"{BEST}  - vars: {{q: two}}\n    options: {{repeat: 1}}\n{rest}"
    )
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=2))
    running = asyncio.create_task(active.execute())
    await until(lambda: bool(judge.arrivals))
    await active.runner.interrupt()
    assert await running == "interrupted" and active.writer is not None
    folder = active.writer.folder
    with closing(sqlite3.connect(folder / DATABASE)) as database:  # as if the second test had not begun
        database.execute("DELETE FROM bodies WHERE attempt_ref > 2")
        database.execute("UPDATE attempts SET state = 'waiting', outcome = NULL, message = '' WHERE id > 2")
        database.commit()
    judge.allowed = 10
    again = await asyncio.to_thread(resume, folder)
    assert await again.execute() == "finished"
    with closing(RunReader(folder)) as reader:
        rows = reader.attempts()
        assert all(row.state == "done" and row.message != NOT_COMPARED for row in rows)
        compared = [reader.attempt(row.id) for row in rows[:2]]
    assert all(one is not None and one.before_comparison is not None for one in compared)
    spent = [one.judging for one in compared if one is not None and one.judging is not None]
    assert len(spent) == 1 and spent[0].calls >= 1
