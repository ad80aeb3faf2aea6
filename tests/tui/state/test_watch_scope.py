"""What a save means for the cases that are watched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tui_eval.model import Case, Turn
from tui_eval.store.schema import CaseHistory
from tui_eval.tui.state.app_state import CaseItem
from tui_eval.tui.state.watch_scope import SavedFiles, after_save, saved_files


def history(run: str, outcome: Any, content: str = "now", agent: str = "helper") -> CaseHistory:
    passed = int(outcome == "passed")
    past = (run, "s.yaml::a", agent, None, outcome, passed, 1, 1.0, 1.0, 1, None, content, "")
    return CaseHistory(*past, asked="named")


def watched_item(case: Case, *past: CaseHistory) -> CaseItem:
    return CaseItem("s.yaml::a", "a", "s.yaml", "promptfoo", case=case, history=list(past))


QUESTION = Case(
    "s.yaml::a", "a", "s.yaml", "promptfoo", turns=[Turn("about {{what}}")], vars={"what": "x", "wanted": "y"}, content_hash="now",
)  # fmt: skip


@pytest.mark.parametrize(
    ("past", "before", "saved", "judge", "failed", "changed"),
    [
        ([], QUESTION, SavedFiles({"s.yaml"}, set(), {"s.yaml::a"}), {}, [], []),
        ([history("1", "failed")], QUESTION, SavedFiles({"s.yaml"}, set(), set()), {}, [], []),
        ([history("1", "passed", "then")], QUESTION, SavedFiles({"s.yaml"}, set(), set()), {"1": ["s.yaml::a"]}, [], []),
        ([history("1", "passed")], QUESTION, SavedFiles(set(), {"s.yaml"}, set()), {"1": ["s.yaml::a"]}, [], []),
        (
            [history("2", "passed", "then", "b"), history("1", "failed", "then", "c")],
            QUESTION, SavedFiles({"s.yaml"}, set(), set()), {"2": ["s.yaml::a"], "1": ["s.yaml::a"]}, [], [],
        ),
        ([history("1", "passed")], QUESTION, SavedFiles(set(), set(), {"s.yaml::a"}), {}, [], []),
        ([history("1", "error")], QUESTION, SavedFiles(set(), set(), {"s.yaml::a"}), {}, ["s.yaml::a"], []),
        (
            [history("1", "passed", "then")], replace(QUESTION, vars={"what": "z", "wanted": "y"}),
            SavedFiles({"s.yaml"}, set(), set()), {}, [], ["s.yaml::a"],
        ),
        (
            [history("1", "passed", "then")], replace(QUESTION, vars={"what": "x", "wanted": "z"}),
            SavedFiles({"s.yaml"}, set(), set()), {"1": ["s.yaml::a"]}, [], [],
        ),
    ],
)  # fmt: skip
def test_what_a_save_means(past, before, saved, judge, failed, changed) -> None:
    todo = after_save([watched_item(QUESTION, *past)], {"s.yaml::a": before}, saved)
    assert (todo.judge, todo.failed, todo.changed) == (judge, failed, changed)


def test_what_was_saved(tmp_path: Path) -> None:
    case = replace(QUESTION, file="rows.csv")
    read = {"s.yaml": [str(tmp_path / name) for name in ("s.yaml", "rows.csv", "judge.py")]}

    def meaning(*names: str) -> tuple:
        files = [str(tmp_path / name) for name in names]
        found = saved_files(files, [watched_item(case)], tmp_path, read, ())
        return found.own, found.beside

    assert meaning("rows.csv", "other.py") == ({"rows.csv"}, set())
    assert meaning("s.yaml", "judge.py") == ({"s.yaml"}, {"s.yaml"})
