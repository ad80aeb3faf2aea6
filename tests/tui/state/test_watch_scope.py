"""What a save means for the cases that are watched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tui_eval.model import Case, Turn
from tui_eval.store.case_state import Column
from tui_eval.store.schema import CaseHistory
from tui_eval.tui.state.app_state import CaseItem
from tui_eval.tui.state.watch_scope import CaseBefore, NamedFiles, SavedFiles, after_save, saved_files


def history(
    run: str, outcome: Any, content: str = "now", agent: str = "helper", asked: Any = "named"
) -> CaseHistory:
    passed = int(outcome == "passed")
    past = (run, "s.yaml::a", agent, None, outcome, passed, 1, 1.0, 1.0, 1, None, content, "")
    return CaseHistory(*past, asked=asked)


def watched_item(case: Case, *past: CaseHistory) -> CaseItem:
    return CaseItem("s.yaml::a", "a", "s.yaml", "promptfoo", case=case, history=list(past))


QUESTION = Case(
    "s.yaml::a", "a", "s.yaml", "promptfoo", turns=[Turn("about {{what}}")], vars={"what": "x", "wanted": "y"}, content_hash="now",
)  # fmt: skip


BEFORE = replace(QUESTION, content_hash="then")
"""As it was before the save."""
ID = "s.yaml::a"
OWN = SavedFiles({"s.yaml"}, set(), set())


@pytest.mark.parametrize(
    ("past", "before", "saved", "judge", "failed", "changed"),
    [
        ([], BEFORE, SavedFiles({"s.yaml"}, set(), {ID}), {}, [], []),
        ([history("1", "failed")], BEFORE, OWN, {}, [], []),
        ([history("1", "passed", "then")], BEFORE, OWN, {"1": [ID]}, [], []),
        (
            [history("2", "passed", "then", "b"), history("1", "failed", "then", "c")],
            BEFORE, OWN, {"2": [ID], "1": [ID]}, [], [],
        ),
        ([history("1", "passed")], QUESTION, SavedFiles(set(), set(), {ID}), {}, [], []),
        ([history("1", "error")], QUESTION, SavedFiles(set(), set(), {ID}), {}, [ID], []),
        (
            [history("1", "passed", "then")], replace(BEFORE, vars={"what": "z", "wanted": "y"}),
            OWN, {}, [], [ID],
        ),
        (
            [history("1", "passed", "then")], replace(BEFORE, vars={"what": "x", "wanted": "z"}),
            OWN, {"1": [ID]}, [], [],
        ),
        # A hook made another case of it, which is what was judged: the save changed nothing.
        ([history("1", "passed", "hooked")], QUESTION, OWN, {}, [], []),
        # Another file of its suite: a prompt or a table of others, code that it names, code that no case names.
        ([history("1", "passed")], QUESTION, SavedFiles(set(), {"s.yaml"}, set()), {}, [], []),
        ([history("1", "passed")], QUESTION, SavedFiles(set(), set(), set(), judging={ID}), {"1": [ID]}, [], []),
        ([history("1", "passed")], QUESTION, SavedFiles(set(), set(), set(), asking={ID}), {}, [], [ID]),
        (
            [history("1", "passed")], QUESTION, SavedFiles(set(), {"s.yaml"}, set(), code={"s.yaml"}),
            {"1": [ID]}, [], [],
        ),
    ],
)  # fmt: skip
def test_what_a_save_means(past, before, saved, judge, failed, changed) -> None:
    todo = after_save([watched_item(QUESTION, *past)], {ID: CaseBefore(before, nobody)}, saved, nobody)
    assert (todo.judge, todo.failed, list(todo.changed)) == (judge, failed, changed)


@pytest.mark.parametrize(
    ("past", "before", "saved", "failed", "changed", "stale"),
    [
        ([history("1", "passed", "then")], BEFORE, OWN, [], [ID], []),
        ([history("1", "failed", "then")], BEFORE, OWN, [], [ID], []),
        ([history("1", "passed", "hooked")], QUESTION, OWN, [], [], []),
        # The hooks' own code, or a script that it names.
        ([history("1", "passed")], QUESTION, SavedFiles(set(), {"s.yaml"}, set(), code={"s.yaml"}), [], [], [ID]),
        ([history("1", "failed")], QUESTION, SavedFiles(set(), {"s.yaml"}, set(), code={"s.yaml"}), [ID], [], []),
        ([history("1", "failed")], QUESTION, SavedFiles(set(), set(), set(), judging={ID}), [ID], [], []),
    ],
)  # fmt: skip
def test_what_hooks_make_is_run_and_not_judged_without_them(
    past, before, saved, failed, changed, stale
) -> None:
    """Judged again it was an error, or passed without the assertions that they add."""
    items = [watched_item(QUESTION, *past)]
    todo = after_save(items, {ID: CaseBefore(before, nobody)}, saved, nobody, hooked={"s.yaml"})
    assert (todo.judge, todo.failed, list(todo.changed), todo.stale) == ({}, failed, changed, stale)


def nobody(case: Case, named: str) -> str:
    """No agent is another than it was."""
    return ""


@pytest.mark.parametrize(
    ("past", "before", "saved", "asked", "judge", "failed"),
    [
        # The entry of the case's own agent, a part of the case: what passed, too.
        ([history("1", "passed", "then", "own", "own")], BEFORE, OWN, ["own"], {}, []),
        # Answered as it is now by the time: by another program, say.
        ([history("1", "passed", "now", "own", "own")], BEFORE, OWN, [], {}, []),
        # Who was named is as before: that answer is judged, by what else of the case is another.
        (
            [history("2", "passed", "then", "b"), history("1", "passed", "then", "own", "own")],
            BEFORE, OWN, ["own"], {"2": [ID]}, [],
        ),
        # tui_eval.yaml: an entry that is another is asked anew, of the others what did not pass.
        (
            [history("2", "error", "now", "b"), history("1", "passed", "now", "own", "own")],
            QUESTION, SavedFiles(set(), set(), {ID}), ["own"], {}, [ID],
        ),
    ],
)  # fmt: skip
def test_whoever_is_another_is_asked_anew(past, before, saved, asked, judge, failed) -> None:
    todo = after_save(
        [watched_item(QUESTION, *past)],
        {ID: CaseBefore(before, nobody)},
        saved,
        lambda case, named: "" if named else "another",
    )
    assert todo.changed == ({ID: {Column(name, "") for name in asked}} if asked else {})
    assert (todo.judge, todo.failed) == (judge, failed)


def test_code_that_makes_cases_touches_those_that_it_made_otherwise() -> None:
    """A generator's file is saved: what it did is seen. That of hooks is not, nor are settings that a file gives."""
    other = CaseItem("s.yaml::b", "b", "s.yaml", "promptfoo")
    other.case, other.history = replace(QUESTION, case_id="s.yaml::b"), [history("1", "passed")]
    items = [watched_item(QUESTION, history("1", "passed", "then")), other]
    saved = SavedFiles(set(), {"s.yaml"}, set(), code={"s.yaml"})
    before = {ID: CaseBefore(BEFORE, nobody), "s.yaml::b": CaseBefore(other.case, nobody)}
    assert after_save(items, before, saved, nobody).judge == {"1": [ID]}
    beside = SavedFiles(set(), {"s.yaml"}, set())
    assert after_save(items, before, beside, nobody, {"s.yaml", "else.yaml"}).judge == {
        "1": [ID, "s.yaml::b"]
    }


def test_what_was_saved(tmp_path: Path) -> None:
    case = replace(QUESTION, file="rows.csv")
    names = ("s.yaml", "rows.csv", "hooks.py", "terse.txt", "judge.py", "ask.py")
    read = {"s.yaml": [str(tmp_path / name) for name in names]}
    named = {ID: NamedFiles(frozenset([str(tmp_path / "ask.py")]), frozenset([str(tmp_path / "judge.py")]))}

    def meaning(*names: str) -> SavedFiles:
        files = [str(tmp_path / name) for name in names]
        return saved_files(files, [watched_item(case)], tmp_path, read, (), named)

    assert meaning("rows.csv", "other.py") == SavedFiles({"rows.csv"}, set(), (), set(), set(), set())
    assert meaning("s.yaml", "terse.txt") == SavedFiles({"s.yaml"}, {"s.yaml"}, (), set(), set(), set())
    assert meaning("hooks.py") == SavedFiles(set(), {"s.yaml"}, (), set(), set(), {"s.yaml"})
    assert meaning("judge.py") == SavedFiles(set(), {"s.yaml"}, (), set(), {ID}, set())
    assert meaning("ask.py") == SavedFiles(set(), {"s.yaml"}, (), {ID}, set(), set())
