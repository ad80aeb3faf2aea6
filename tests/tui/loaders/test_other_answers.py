"""Cases whose outcome is the same and whose answer is another one: in the store, in Compare, on the command line."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.tui.screens.test_compare_screen import compared
from tests.tui.screens.test_runs_screen import NAMES, SIZES, sees
from tui_eval.model import Attempt, Outcome, Reply
from tui_eval.reports.run_comparison import compare
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import RunInfo
from tui_eval.store.summary import OF_TURNS, CaseSummary
from tui_eval.store.writer import RunWriter, answer_mark
from tui_eval.tui.loaders.compare_loader import Half
from tui_eval.tui.screens.compare_screen import CompareScreen


def answered(root: Path, *said: str, outcomes: tuple[Outcome, ...] = ("passed",) * 3) -> LiveRun:
    run = LiveRun(root, NAMES[: len(said)])
    for number, (text, outcome) in enumerate(zip(said, outcomes, strict=False)):
        run.start(number)
        run.done(number, outcome, said=text)
    run.finish()
    return run


def marks(folder: Path) -> list[str]:
    with closing(RunReader(folder)) as reader:
        return [row.answer for row in reader.attempts()]


def without_the_column(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.execute("ALTER TABLE attempts DROP COLUMN answer")
        connection.commit()


def test_a_fingerprint_tells_answers_apart_and_is_empty_where_nothing_was_answered(tmp_path):
    run = answered(project(tmp_path), "Yes, Anna", " Yes, Anna\n", "No")
    same, again, other = marks(run.folder)
    assert same and same == again != other
    assert marks(answered(tmp_path, "x", outcomes=("error",)).folder) == [""]


def test_a_conversation_is_told_apart_by_every_turn_of_it():
    def mark(*said: str) -> str:
        replies = [Reply(turn=turn, text=text) for turn, text in enumerate(said, 1)]
        return answer_mark(Attempt("a", 1, "passed", replies=replies, response_text=said[-1]))

    assert mark("79", "yes") == mark("79 ", "yes\n") != mark("89", "yes")
    assert mark("79yes", "") != mark("79", "yes") and mark("79", "yes").startswith(OF_TURNS)
    assert not mark("yes").startswith(OF_TURNS)  # as every version made it


def test_what_an_earlier_version_knew_the_last_turn_of_is_not_called_another_answer():
    def one(*answers: str) -> CaseSummary:
        return CaseSummary(
            "a",
            "a",
            "s.yaml",
            "agent",
            None,
            "passed",
            1,
            1,
            1,
            1,
            1.0,
            (0.2, 1.0),
            False,
            answers=list(answers),
        )

    assert [
        compare([one(old)], [one(new)]).cases[0].answer_differs
        for old, new in (("1", "2"), ("t1", "t2"), ("1", "t2"))
    ] == [True, True, None]


def test_runs_of_before_are_read_and_gone_on_with(tmp_path):
    run = answered(project(tmp_path), "a", "b")
    without_the_column(run.folder)
    assert marks(run.folder) == ["", ""]
    with closing(RunReader(run.folder)) as reader:
        attempt = reader.attempt(1)
    assert attempt is not None
    writer = RunWriter(run.folder, RunInfo(run.info.id, state="finished"))
    writer.done(1, attempt)
    writer.close()
    assert marks(run.folder) == [answer_mark(attempt), ""]


@pytest.mark.real
def test_the_command_line_counts_them(cli: Cli, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(project(tmp_path))
    old, new = answered(tmp_path, "a", "b", "c"), answered(tmp_path, "a", "other", "other")
    done = cli("compare", old.info.id, new.info.id)
    assert done.code == 0 and "unchanged: 3, 2 of them with another answer" in done.out
    document = json.loads(cli("compare", old.info.id, new.info.id, "--json").out)
    assert document["answer_differs"] == 2
    assert [case["answer_differs"] for case in document["cases"]] == [True, True, False]
    without_the_column(old.folder)
    document = json.loads(cli("compare", old.info.id, new.info.id, "--json").out)
    assert document["answer_differs"] == 0 and {case["answer_differs"] for case in document["cases"]} == {
        None
    }


@pytest.mark.real
@SIZES
async def test_compare_marks_them_and_shows_only_them(tmp_path, size):
    root = project(tmp_path)
    old = answered(root, "a", "b", "c")
    new = answered(root, "a", "other", "c", outcomes=("passed", "passed", "failed"))
    async with running_app(root, size) as (app, pilot):
        await app.push_screen(CompareScreen(Half(old.folder), Half(new.folder)))
        screen = await compared(app, pilot)
        await sees(
            app, pilot, "1 answered differently", "≠ greets by name", "· refund is approved", "differs"
        )
        assert [row.case.name for row in screen.table.rows if row.case] == [NAMES[2], NAMES[1], NAMES[0]]
        await pilot.press("i")
        await until(lambda: "only what changed" in screen_text(app), pilot)
        assert [row.case.name for row in screen.table.rows if row.case] == [NAMES[2]]
        await pilot.press("i")
        await until(lambda: "only other answers" in screen_text(app), pilot)
        assert [row.case.name for row in screen.table.rows if row.case] == [NAMES[1]]
        await pilot.press("i")
        await until(lambda: len([row for row in screen.table.rows if row.case]) == 3, pilot)
