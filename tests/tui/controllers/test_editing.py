"""Which file and line an editor is opened at, what is read again afterwards, and what saves elsewhere do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.alone import Alone, on_project
from tests.support.live_run import SUITE as TEXT
from tui_eval.model import Problem
from tui_eval.tui.controllers.editing import EditController, SavedElsewhere
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_tree import TreeLine

REFUND, GREETS = "refund is approved", "greets by name"
SUITE = "suites/support.yaml"


class Editing:
    def __init__(self, alone: Alone) -> None:
        self.alone, self.editor = alone, alone.editor
        self.saved = SavedElsewhere(alone.core, alone.suites)
        self.controller = EditController(alone.services(), self.saved)

    async def press(self, key_id: str) -> None:
        await self.alone.press(self.controller.handlers(), key_id)


@pytest.fixture
async def editing(tmp_path: Path) -> Editing:
    return Editing(await on_project(tmp_path))


# -- e


async def test_the_case_is_opened_at_its_line_and_read_again_where_it_was_changed(editing: Editing) -> None:
    alone = editing.alone
    alone.go_to(GREETS)
    await editing.press("case.edit")
    assert editing.editor.opened == [("support.yaml", 6, [])] and alone.suites.reloads == []  # left as it was
    editing.editor.writes = {alone.root / SUITE: TEXT + "# more\n"}
    await editing.press("case.edit")
    assert alone.suites.reloads == [["support.yaml"]]
    assert alone.suites.then == "read again: r runs it, . judges the recorded answer"
    editing.saved.read([str(alone.root / SUITE)])
    assert len(alone.suites.reloads) == 1  # known already: not read a second time


async def test_what_a_screen_points_at_goes_before_the_case(editing: Editing) -> None:
    editing.alone.look_at(editing.alone.go_to(GREETS)).to_edit = ("suites/support.yaml", 8)
    await editing.press("case.edit")
    assert editing.editor.opened == [("support.yaml", 8, [])]


async def test_a_suite_is_opened_at_its_first_line_or_at_what_is_wrong_with_it(editing: Editing) -> None:
    alone = editing.alone
    suite = alone.state.suites[0]
    alone.list.line = TreeLine("suite", SUITE, 0, "support.yaml", suite=suite, path=SUITE)
    await editing.press("case.edit")
    suite.problems = [Problem(SUITE, 7, "input", "is missing")]
    await editing.press("case.edit")
    alone.list.line = TreeLine("problem", f"{SUITE}!0", 0, "", problem=Problem(SUITE, 9, "x", "bad"))
    await editing.press("case.edit")
    assert editing.editor.opened == [
        ("support.yaml", 0, []),
        ("support.yaml", 7, []),
        ("support.yaml", 9, []),
    ]


async def test_a_case_that_its_file_has_lost_opens_that_file(editing: Editing) -> None:
    alone = editing.alone
    pointer = alone.go_to(GREETS)
    alone.look_at(pointer)
    alone.state.gone[pointer.case_id] = alone.state.by_id.pop(pointer.case_id)
    await editing.press("case.edit")
    assert editing.editor.opened == [("support.yaml", 0, [])]


async def test_a_file_that_is_not_there_any_more_is_said_and_not_begun_anew(editing: Editing) -> None:
    alone = editing.alone
    alone.go_to(GREETS)
    (alone.root / SUITE).unlink()
    await editing.press("case.edit")
    assert alone.said == f"{SUITE} is not there any more" and editing.editor.opened == []


async def test_where_nothing_is_pointed_at_nothing_is_opened(editing: Editing) -> None:
    editing.alone.look_at(CasePointer("elsewhere.yaml::x"))
    await editing.press("case.edit")
    assert editing.alone.said == "put the cursor on a case, a suite or a problem first"
    assert editing.editor.opened == []


async def test_an_editor_that_cannot_be_started_is_said_and_what_changed_is_read_all_the_same(
    editing: Editing,
) -> None:
    editing.alone.go_to(GREETS)
    editing.editor.trouble = "vi: not found"
    editing.editor.writes = {editing.alone.root / SUITE: TEXT + "# more\n"}
    await editing.press("case.edit")
    assert editing.alone.said == "vi: not found" and editing.alone.suites.reloads == [["support.yaml"]]


# -- E


async def with_agent(editing: Editing, entry: str) -> None:
    (editing.alone.root / "tui_eval.yaml").write_text(f"agents:\n  offline: {entry}\n")
    editing.alone.state.trusted = True
    await editing.alone.read()


async def test_the_agents_files_are_opened_and_answer_from_then_on(editing: Editing) -> None:
    alone = editing.alone
    (alone.root / "agent.py").write_text("def answer(message):\n    return message\n")
    await with_agent(editing, "{type: python, function: 'agent.py:answer'}")
    alone.go_to(GREETS)
    await editing.press("agent.edit")
    assert [name for name, _, _ in editing.editor.opened] == ["agent.py"] and alone.suites.reloads == []
    editing.editor.writes = {alone.root / "agent.py": "def answer(message):\n    return 'other'\n"}
    await editing.press("agent.edit")
    assert alone.suites.reloads == [["agent.py"]] and alone.suites.loads == 0
    assert alone.said == "the agent as it is now answers the next r"


async def test_an_agent_without_files_is_edited_in_the_configuration_at_its_line(editing: Editing) -> None:
    alone = editing.alone
    alone.go_to(GREETS)
    editing.editor.writes = {alone.root / "tui_eval.yaml": "agents:\n  offline: {type: echo}\n# more\n"}
    await editing.press("agent.edit")
    assert editing.editor.opened == [("tui_eval.yaml", 2, [])] and alone.suites.loads == 1
    assert alone.suites.reloads == []


async def test_on_a_suites_line_its_first_case_says_which_agent(editing: Editing) -> None:
    alone = editing.alone
    alone.list.line = TreeLine("suite", SUITE, 0, "support.yaml", path=SUITE)
    await editing.press("agent.edit")
    assert editing.editor.opened == [("tui_eval.yaml", 2, [])]


async def test_where_there_is_no_file_of_an_agent_nothing_is_opened(editing: Editing) -> None:
    (editing.alone.root / "tui_eval.yaml").unlink()
    await editing.alone.read()
    editing.alone.go_to(GREETS)
    await editing.press("agent.edit")
    assert editing.alone.said == "the agent names no files, and there is no tui_eval.yaml"
    editing.alone.state.config, editing.alone.state.loading = None, True
    await editing.press("agent.edit")
    assert editing.alone.said == "still reading tui_eval.yaml"
    assert editing.editor.opened == []


# -- saved elsewhere


async def test_a_suite_that_was_saved_is_read_again_once(editing: Editing) -> None:
    file = editing.alone.root / SUITE
    editing.saved.known([str(file)])
    editing.saved.read([str(file)])
    assert editing.alone.suites.reloads == []
    file.write_text(TEXT + "# by another\n")
    editing.saved.read([str(file)])
    assert editing.alone.suites.reloads == [["support.yaml"]]
    assert editing.alone.suites.then == "support.yaml was saved: read again"


async def test_a_save_of_another_program_is_seen(editing: Editing, monkeypatch) -> None:
    monkeypatch.setattr("tui_eval.tui.controllers.editing.SECONDS", 0.01)
    alone = editing.alone
    assert alone.state.config is not None
    editing.saved.begin(Loaded(1, [], alone.state.config, True))
    (alone.root / SUITE).write_text(TEXT + "# by another\n")
    await alone.until(lambda: alone.suites.reloads == [["support.yaml"]])
    editing.saved.stop()


async def test_a_configuration_that_was_saved_is_read_with_everything(editing: Editing) -> None:
    file = editing.alone.root / "tui_eval.yaml"
    editing.saved.read([str(file), str(editing.alone.root / SUITE)])
    assert editing.alone.suites.loads == 1 and editing.alone.suites.reloads == []
    assert editing.alone.said == "support.yaml, tui_eval.yaml were saved: read again"


async def test_what_is_watched_is_left_to_who_watches_it(editing: Editing) -> None:
    file = str(editing.alone.root / SUITE)
    editing.saved.others = lambda: [file]
    editing.saved.read([file])
    assert editing.alone.suites.reloads == []


async def test_hostile_names_of_files_are_said_without_steering_the_terminal(editing: Editing) -> None:
    editing.saved.read([str(editing.alone.root / "a\x1b[2J.yaml")])
    assert "\x1b" not in str(editing.alone.suites.then)


async def test_files_are_followed_once_all_has_been_read_and_those_are_the_suites_and_the_configuration(
    editing: Editing,
) -> None:
    alone = editing.alone
    assert alone.state.config is not None
    editing.saved.begin(Loaded(1, [], alone.state.config, False))
    assert not editing.saved.follows
    editing.saved.begin(Loaded(1, [], alone.state.config, True))
    assert editing.saved.follows
    editing.saved.stop()
    assert [Path(file).name for file in editing.saved.suite_files()] == ["support.yaml", "tui_eval.yaml"]
