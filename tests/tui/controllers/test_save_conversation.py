"""A conversation saved as a case: what is offered, what is shown before it is written, what is refused, where
the cursor goes. In the app, and for each format: `test_saved_conversations`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.alone import Alone, on_project
from tests.support.live_run import SUITE as TEXT
from tests.support.live_run import LiveRun
from tui_eval.model import Reply
from tui_eval.tui.controllers.editing import SavedElsewhere
from tui_eval.tui.controllers.recorded import RecordedController
from tui_eval.tui.controllers.save_conversation import SaveController
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.state.case.copying import SaveChoice

REFUND, CALMS = "refund is approved", "calms an angry customer"
SUITE = "suites/support.yaml"


class Saving:
    def __init__(self, alone: Alone) -> None:
        self.alone = alone
        self.brought: list[tuple[str, str]] = []
        recorded = RecordedController(alone.core, alone.places, alone.runs)
        self.saved = SavedElsewhere(alone.core, alone.suites)
        self.controller = SaveController(
            alone.services(), recorded, self.saved, lambda *line: self.brought.append(line)
        )

    async def press(self) -> None:
        await self.alone.press(self.controller.handlers(), "case.save")

    @property
    def offer(self) -> Any:
        assert self.alone.dialog.name == "save dialog"
        return self.alone.dialog.arguments[0]

    @property
    def file(self) -> Path:
        return self.alone.root / SUITE

    async def choose(self, form: str = "start_to_agent", file: str = SUITE, name: str = "saved") -> None:
        await self.alone.answer(SaveChoice(form, file, name))


@pytest.fixture
async def saving(tmp_path: Path) -> Saving:
    one = Saving(await on_project(tmp_path))
    run = LiveRun(one.alone.root, [REFUND])
    run.start(0)
    run.done(0, "passed", said="You have it.", replies=[Reply(1, "You have it.")])
    run.finish()
    one.alone.show_run(run.folder)
    one.alone.go_to(REFUND)
    return one


async def test_the_suite_of_the_case_is_offered_and_the_change_shown_before_it_is_written(
    saving: Saving,
) -> None:
    await saving.press()
    assert (saving.offer.choice.form, saving.offer.choice.file) == ("start_to_agent", SUITE)
    assert set(saving.offer.files) >= {"nao", "start_to_agent", "promptfoo", "neuro_san"}
    await saving.choose()
    title, diff = saving.alone.dialog.arguments
    assert title == f"One more case in {SUITE}" and '+  - name: "saved"' in diff
    assert saving.file.read_text() == TEXT  # only shown so far
    await saving.alone.answer("write")
    names = [case["name"] for case in yaml.safe_load(saving.file.read_text())["test_cases"]]
    assert names[-1] == "saved" and len(names) == 4
    assert saving.alone.suites.reloads == [["support.yaml"]] and saving.alone.suites.loads == 0
    assert saving.alone.said == "written: support.yaml; r runs it"


async def test_a_secret_of_the_case_is_masked_in_what_is_shown_and_said_to_be_written(
    saving: Saving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", REFUND)
    await saving.press()
    await saving.choose(file="suites/new.yaml", name=REFUND)
    _, diff = saving.alone.dialog.arguments
    assert REFUND not in diff and '+  - name: "•••"' in diff
    assert [line for line in saving.alone.dialog.options["told"] if SUITE in line and "clear" in line]
    await saving.alone.answer("write")
    assert REFUND in (saving.alone.root / "suites/new.yaml").read_text()


async def test_who_leaves_either_dialog_writes_nothing(saving: Saving) -> None:
    await saving.press()
    await saving.alone.answer(None)
    await saving.press()
    await saving.choose()
    await saving.alone.answer(None)
    assert saving.file.read_text() == TEXT and saving.alone.suites.reloads == []
    assert saving.alone.window.stack == [saving.alone.list]


async def test_a_new_file_is_read_with_everything_and_its_case_comes_under_the_cursor(saving: Saving) -> None:
    alone = saving.alone
    await saving.press()
    await saving.choose(file="suites/new.yaml")
    assert alone.dialog.arguments[0].startswith("A new file suites/new.yaml")
    await alone.answer("write")
    assert (alone.root / "suites/new.yaml").exists() and alone.suites.loads == 1
    await alone.read()
    assert alone.state.config is not None
    saving.controller.read(Loaded(1, [], alone.state.config, False))
    assert saving.brought == []
    saving.controller.read(Loaded(1, [], alone.state.config, True))
    assert saving.brought == [("suites/new.yaml::saved", "suites/new.yaml")]
    saving.controller.read(Loaded(1, [], alone.state.config, True))
    assert len(saving.brought) == 1  # once: the person may have moved on


async def test_a_new_file_that_is_not_among_what_is_open_is_said_to_be_elsewhere(saving: Saving) -> None:
    alone = saving.alone
    await saving.press()
    await saving.choose(file="suites/new one.yaml")
    await alone.answer("write")
    assert alone.state.config is not None
    saving.controller.read(Loaded(1, [], alone.state.config, True))
    assert saving.brought == []
    assert alone.said == (
        "written, but suites/new one.yaml is not below what is open here: tui-eval 'suites/new one.yaml' opens it"
    )


async def test_a_name_is_asked_for_where_a_file_can_hold_it(saving: Saving) -> None:
    await saving.press()
    assert saving.offer.by_file == ["neuro_san"]


@pytest.mark.parametrize("file", ["../outside.yaml", "suites/../../outside.yaml"])
async def test_a_file_outside_the_project_is_refused_with_what_was_typed_kept(
    saving: Saving, file: str
) -> None:
    await saving.press()
    await saving.choose(file=file, name="mine")
    offer, problem = saving.alone.dialog.arguments
    assert "is outside the project" in problem
    assert (offer.choice.file, offer.choice.name) == (file, "mine")
    assert not (saving.alone.root.parent / "outside.yaml").exists()


async def test_a_file_of_another_kind_is_not_added_to_and_says_why(saving: Saving) -> None:
    (saving.alone.root / "notes.yaml").write_text("just: words\n")
    await saving.press()
    await saving.choose(file="notes.yaml")
    assert saving.alone.dialog.name == "save dialog" and saving.alone.dialog.arguments[1]
    assert (saving.alone.root / "notes.yaml").read_text() == "just: words\n"
    await saving.choose()  # mended: it goes on
    assert saving.alone.dialog.name == "change"


async def test_a_file_that_was_changed_while_the_change_was_looked_at_is_not_written_over(
    saving: Saving,
) -> None:
    await saving.press()
    await saving.choose()
    saving.file.write_text(TEXT + "# mine\n")
    await saving.alone.answer("write")
    assert saving.file.read_text() == TEXT + "# mine\n" and saving.alone.suites.reloads == []
    assert not saving.alone.said.startswith("written") and saving.alone.window.toasts


async def test_who_answers_a_new_case_is_written_into_the_configuration_where_its_file_does_not_say(
    saving: Saving,
) -> None:
    alone = saving.alone
    await saving.press()
    await saving.choose("promptfoo", "checks/promptfooconfig.yaml")
    title, diff = alone.dialog.arguments
    if "tui_eval.yaml" in title:
        assert title.endswith(", and who answers it in tui_eval.yaml") and "agent: offline" in diff
    await alone.answer("write")
    assert (alone.root / "checks/promptfooconfig.yaml").exists() and alone.suites.loads == 1
    assert ("checks/promptfooconfig.yaml" in (alone.root / "tui_eval.yaml").read_text()) == (
        "tui_eval.yaml" in title
    )


async def test_there_must_be_a_conversation_that_has_ended(saving: Saving) -> None:
    saving.alone.go_to(CALMS)
    await saving.press()
    assert saving.alone.said == "there is no finished conversation to save"
    saving.alone.list.hidden = {row.key for row in saving.alone.list.all_entries()}
    await saving.press()
    assert saving.alone.said == "put the cursor on a case first"
    assert saving.alone.window.stack == [saving.alone.list]


async def test_in_a_runs_list_r_would_run_another_case_and_the_words_say_where_it_is_run(
    saving: Saving,
) -> None:
    saving.alone.list.kind = "run"
    await saving.press()
    await saving.choose()
    await saving.alone.answer("write")
    assert saving.alone.said == "written: support.yaml; U goes to it, r there runs it"


async def test_where_the_case_is_looked_at_the_words_say_where_it_is_run(saving: Saving) -> None:
    saving.alone.look_at(saving.alone.go_to(REFUND))
    await saving.press()
    await saving.choose()
    await saving.alone.answer("write")
    assert saving.alone.said == "written: support.yaml; U goes to it, r there runs it"
