"""The first minutes: what an empty project is offered, an agent that is nowhere asked for and written, the
tour once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.alone import Alone, on_project
from tests.support.live_run import project
from tui_eval.tui.controllers import first_steps
from tui_eval.tui.controllers.first_steps import SAMPLES, AskAgent, FirstSuiteQuestion, TourController
from tui_eval.tui.loaders.suites_loader import Loaded

HELPER = "agent: helper\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [x]}}\n"
FORMATS = {"nao", "start_to_agent", "promptfoo", "neuro_san"}


# -- a first suite


class Beginning:
    def __init__(self, root: Path) -> None:
        self.alone = Alone(root)
        self.loads = 0
        self.question = FirstSuiteQuestion(self.alone.core, self.alone.places, self._load)
        self.question.ask()

    def _load(self) -> None:
        self.loads += 1


def test_each_format_is_offered_under_a_key_of_its_own_and_the_samples_under_m(tmp_path: Path) -> None:
    beginning = Beginning(tmp_path)
    keys = [key for key, _, _ in beginning.alone.dialog.arguments[1]]
    assert set(beginning.alone.offered) > FORMATS and len(keys) == len(set(keys))
    assert dict(zip(keys, beginning.alone.offered, strict=True)).get("m", SAMPLES) == SAMPLES


def test_the_samples_are_those_that_came_with_the_program_if_they_did(tmp_path: Path, monkeypatch) -> None:
    here = first_steps.samples_folder()
    assert here is not None and here.name == SAMPLES and here.is_dir()
    monkeypatch.setattr("tui_eval.__file__", str(tmp_path / "tui_eval" / "__init__.py"))
    assert first_steps.samples_folder() is None
    assert SAMPLES not in Beginning(tmp_path).alone.offered


async def test_the_samples_are_copied_once(tmp_path: Path, monkeypatch) -> None:
    source = tmp_path / "came with it"
    source.mkdir()
    (source / "a.yaml").write_text("x")
    (source / ".tui-eval").mkdir()
    monkeypatch.setattr(first_steps, "samples_folder", lambda: source)
    root = tmp_path / "project"
    root.mkdir()
    beginning = Beginning(root)
    await beginning.alone.answer(SAMPLES)
    assert sorted(file.name for file in (root / SAMPLES).iterdir()) == ["a.yaml"]
    assert beginning.loads == 1 and beginning.alone.state.loading
    beginning.question.ask()
    await beginning.alone.answer(SAMPLES)
    assert beginning.alone.notices.lines[-1][1:] == ("error", f"{SAMPLES} is already there")


async def test_samples_that_cannot_be_copied_say_why(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(first_steps, "samples_folder", lambda: tmp_path / "not there")
    beginning = Beginning(tmp_path)
    await beginning.alone.answer(SAMPLES)
    assert "cannot be written" in beginning.alone.said


async def test_a_first_suite_is_written_for_the_agent_that_is_typed(tmp_path: Path) -> None:
    beginning = Beginning(tmp_path)
    await beginning.alone.answer("start_to_agent")
    assert beginning.alone.dialog.name == "first agent" and list(tmp_path.iterdir()) == []
    await beginning.alone.answer("http://localhost:9999/v1 some-model")
    assert "localhost:9999" in (tmp_path / "tui_eval.yaml").read_text()
    assert "some-model" in (tmp_path / "tui_eval.yaml").read_text()
    assert beginning.loads == 1 and beginning.alone.said.startswith("written; a runs it")


@pytest.mark.parametrize("answers", [[None], [""], ["start_to_agent", None]])
async def test_who_leaves_is_written_nothing(tmp_path: Path, answers: list[Any]) -> None:
    beginning = Beginning(tmp_path)
    for answer in answers:
        await beginning.alone.answer(answer)
    assert list(tmp_path.iterdir()) == [] and beginning.loads == 0


async def test_where_agents_are_configured_none_is_asked_for(tmp_path: Path) -> None:
    beginning = Beginning(project(tmp_path))
    beginning.alone.window.stack = [beginning.alone.list]
    await beginning.alone.read()
    beginning.question.ask()
    await beginning.alone.answer("promptfoo")
    assert beginning.loads == 1 and beginning.alone.window.screen is beginning.alone.list


# -- an agent that is nowhere


class Asking:
    def __init__(self, alone: Alone) -> None:
        self.alone = alone
        self.gone_on = 0
        self.ask = AskAgent(alone.core, alone.places, alone.suites)

    def then(self) -> None:
        def go_on() -> None:
            self.gone_on += 1

        self.ask.then(self.alone.list.shown_entries(), go_on)


@pytest.fixture
async def asking(tmp_path: Path) -> Asking:
    return Asking(await on_project(tmp_path, suites={"s.yaml": HELPER}))


async def test_an_agent_that_is_there_is_not_asked_for(tmp_path: Path) -> None:
    one = Asking(await on_project(tmp_path))
    one.then()
    assert one.gone_on == 1 and one.alone.window.screen is one.alone.list


async def test_of_a_suite_that_names_none_one_is_asked_for_only_where_there_is_no_agent(
    tmp_path: Path,
) -> None:
    """Whom such a suite asks beside several agents its file says, which the run tells; one called so is asked."""
    unnamed = HELPER.replace("agent: helper\n", "")
    assert unnamed != HELPER
    one = Asking(await on_project(tmp_path, suites={"s.yaml": unnamed}))
    one.then()
    assert one.gone_on == 1 and one.alone.window.screen is one.alone.list
    config = one.alone.core.state.config
    assert config is not None
    config.agents.clear()
    one.then()
    assert one.alone.dialog.arguments == ("my_agent", "tui_eval.yaml", 1, False)
    await one.alone.answer({"type": "echo"})
    assert one.gone_on == 2


async def test_the_entry_is_written_read_and_the_run_goes_on(asking: Asking) -> None:
    asking.then()
    assert asking.alone.dialog.arguments == ("helper", "tui_eval.yaml", 1, True) and not asking.gone_on
    await asking.alone.answer({"type": "echo"})
    written = yaml.safe_load((asking.alone.root / "tui_eval.yaml").read_text())
    assert written["agents"] == {"offline": {"type": "echo"}, "helper": {"type": "echo"}}
    assert asking.alone.suites.loads == 1 and asking.gone_on == 1
    assert asking.alone.said == "wrote helper into tui_eval.yaml"


async def test_the_file_that_takes_an_entry_is_as_closed_as_before_and_a_link_stays_one(
    asking: Asking,
) -> None:
    """A configuration with keys in it, of mode 600, was everybody's to read."""
    file = asking.alone.root / "tui_eval.yaml"
    kept = file.rename(file.with_name("kept.yaml"))
    kept.chmod(0o600)
    file.symlink_to(kept.name)
    asking.then()
    await asking.alone.answer({"type": "echo"})
    assert file.is_symlink() and "helper" in kept.read_text()
    assert kept.stat().st_mode & 0o777 == 0o600


async def test_no_entry_is_written_through_a_link_that_leaves_the_project(
    asking: Asking, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file, theirs = asking.alone.root / "tui_eval.yaml", tmp_path_factory.mktemp("theirs") / "config"
    theirs.write_text("precious: true\n")
    file.unlink()
    file.symlink_to(theirs)
    asking.then()
    await asking.alone.answer({"type": "echo"})
    assert theirs.read_text() == "precious: true\n" and file.is_symlink()
    assert "a link that leaves the project" in asking.alone.said and not asking.gone_on


async def test_where_there_is_no_configuration_yet_one_is_begun(asking: Asking) -> None:
    (asking.alone.root / "tui_eval.yaml").unlink()
    await asking.alone.read()
    asking.then()
    await asking.alone.answer({"type": "echo"})
    written = yaml.safe_load((asking.alone.root / "tui_eval.yaml").read_text())
    assert written["agents"] == {"helper": {"type": "echo"}} and asking.gone_on == 1


async def test_who_leaves_runs_nothing_now_and_is_not_asked_again(asking: Asking) -> None:
    before = (asking.alone.root / "tui_eval.yaml").read_text()
    asking.then()
    await asking.alone.answer(None)
    assert not asking.gone_on and asking.alone.said.startswith("nothing was run: no agent helper")
    assert (asking.alone.root / "tui_eval.yaml").read_text() == before
    asking.then()
    assert asking.gone_on == 1


async def test_a_configuration_that_cannot_take_it_stays_as_it_is_and_says_why(asking: Asking) -> None:
    file = asking.alone.root / "tui_eval.yaml"
    file.write_text("agents: {offline: {type: echo}}\n")
    before = file.read_text()
    asking.then()
    await asking.alone.answer({"type": "echo"})
    written = yaml.safe_load(file.read_text())
    if "helper" not in written["agents"]:
        assert file.read_text() == before and asking.alone.said.startswith("tui_eval.yaml: ")
        assert not asking.gone_on
    file.write_bytes(b"agents:\n  offline: {type: echo} # \xff\n")
    again = Asking(asking.alone)
    again.then()
    await again.alone.answer({"type": "echo"})
    assert file.read_bytes().endswith(b"\xff\n") and not again.gone_on


async def test_a_rule_for_the_suite_needs_no_agent_of_that_name(asking: Asking) -> None:
    file = asking.alone.root / "tui_eval.yaml"
    file.write_text("agents: {offline: {type: echo}}\nsuites: [{path: s.yaml, agent: offline}]\n")
    await asking.alone.read()
    asking.then()
    assert asking.gone_on == 1


# -- the tour


class Touring:
    def __init__(self, alone: Alone) -> None:
        self.alone, self.untouched = alone, True
        self.tour = TourController(alone.core, alone.places, lambda: self.untouched)

    async def read(self, done: bool = True) -> None:
        assert self.alone.state.config is not None
        self.tour.read(Loaded(1, [], self.alone.state.config, done))
        await self.alone.settle()

    @property
    def shown(self) -> bool:
        return getattr(self.alone.window.screen, "name", "") == "tour"


@pytest.fixture
async def touring(tmp_path: Path, monkeypatch) -> Touring:
    monkeypatch.delenv("TUI_EVAL_TOUR", raising=False)
    return Touring(await on_project(tmp_path))


async def test_the_tour_comes_with_the_first_suites_once_for_good(touring: Touring) -> None:
    await touring.read(done=False)
    assert not touring.shown
    await touring.read()
    assert touring.shown and touring.alone.dialog.arguments == (3,)
    await touring.alone.answer(None)
    assert not first_steps.tour_is_wanted()
    await touring.read()
    again = Touring(touring.alone)
    await again.read()
    assert not again.shown


async def test_who_works_already_needs_no_tour(touring: Touring) -> None:
    touring.untouched = False
    await touring.read()
    assert not touring.shown and first_steps.tour_is_wanted()


async def test_the_tour_waits_for_the_question_of_trust_and_is_not_laid_over_it(touring: Touring) -> None:
    answers: list[Any] = []
    touring.alone.places.ask("Do you trust this?", [], answers.append)
    await touring.read()
    assert not touring.shown
    touring.tour.answered()
    assert not touring.shown  # another question stands there
    await touring.alone.answer("no")
    touring.tour.answered()
    assert touring.shown
    await touring.alone.answer(None)
    touring.tour.answered()
    assert not touring.shown


async def test_without_cases_there_is_nothing_to_show_it_over(touring: Touring) -> None:
    touring.alone.state.rows = []
    await touring.read()
    assert not touring.shown


async def test_its_key_shows_it_always(touring: Touring, monkeypatch) -> None:
    monkeypatch.setenv("TUI_EVAL_TOUR", "0")
    await touring.read()
    assert not touring.shown
    await touring.alone.press(touring.tour.handlers(), "tour")
    assert touring.shown
