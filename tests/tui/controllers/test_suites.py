"""What the loader read is taken, what needs trust is asked about once, the cursor goes where it belongs, and
how the list is looked at comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.alone import Alone, FakeList
from tests.support.live_run import SUITE as TEXT
from tests.support.live_run import project
from tui_eval.engine.request import Recorded, RequestCell, RunRequest
from tui_eval.guard import trust_store
from tui_eval.model import Problem
from tui_eval.tui.controllers.suites import LONGEST, SuiteController
from tui_eval.tui.front import SuitesChanged
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.memory import remember
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.case_tree import TreeLine
from tui_eval.tui.state.run_requests import failures_named

REFUND, GREETS, CALMS = "refund is approved", "greets by name", "calms an angry customer"
SUITE = "suites/support.yaml"


def ids(*names: str) -> list[str]:
    return [f"{SUITE}::{name}" for name in names]


class Suites:
    """The controller on a project, with what its listeners heard."""

    def __init__(self, root: Path, *, suites: dict[str, str] | None = None) -> None:
        self.alone = alone = Alone(project(root, suites))
        alone.state.loading = True
        self.suites = SuiteController(alone.core, alone.places, [root])
        self.read: list[Loaded] = []
        self.answered: list[str] = []
        self.suites.on_read.append(self.read.append)
        self.suites.on_answered.append(lambda: self.answered.append("answered"))

    async def load(self) -> None:
        self.suites.load()
        await self.alone.settle()

    async def edit(self, text: str, then="") -> bool:
        (self.alone.root / SUITE).write_text(text)
        found = self.suites.reload([SUITE], then)
        await self.alone.settle()
        return found


# -- read


async def test_everything_is_read_and_told(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    await one.load()
    state = one.alone.state
    assert list(state.by_id) == ids(REFUND, GREETS, CALMS) and not state.loading and state.config is not None
    assert [loaded.done for loaded in one.read][-1] and one.alone.screens.ready == ["case"]
    assert isinstance(one.alone.list.heard[-1], SuitesChanged)


async def test_what_is_wrong_is_logged_and_errors_kept_as_problems(tmp_path: Path) -> None:
    one = Suites(tmp_path, suites={SUITE: TEXT, "suites/bad.yaml": "test_cases: [\n"})
    await one.load()
    (wrong,) = [suite for suite in one.alone.state.suites if suite.problems]
    assert wrong.path == "suites/bad.yaml"
    assert list(one.alone.state.by_id) == ids(REFUND, GREETS, CALMS)


async def test_problems_are_kept_from_the_first_portion_on_and_logged_with_the_last(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    await one.load()
    config, fresh = one.read[-1].config, Suites(tmp_path)
    odd = [Problem("a.yaml", 3, "name", "is missing"), Problem("b.yaml", 1, "x", "is odd", level="note")]
    fresh.suites.take_suites(Loaded(0, [], config, False, problems=odd))
    assert (
        fresh.alone.state.problems == odd[:1] and fresh.alone.state.loading and not fresh.alone.notices.lines
    )
    fresh.suites.take_suites(Loaded(0, [], config, True, problems=odd))
    logged = [line[1:] for line in fresh.alone.notices.lines]
    assert logged == [("error", "a.yaml:3: name: is missing"), ("note", "b.yaml:1: x: is odd")]
    await fresh.alone.settle()


async def test_a_reading_that_a_newer_one_has_overtaken_is_for_nobody(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    await one.load()
    old = one.read[-1]
    one.suites.load()
    before = one.alone.state.version
    one.suites.take_suites(old)
    assert one.alone.state.version == before
    await one.alone.settle()


async def test_what_is_shown_stays_until_all_has_been_read_again(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    await one.load()
    whole = one.read[-1]
    part = Loaded(whole.generation, [], whole.config, False)
    before = one.alone.state.version
    one.suites.take_suites(part)
    assert one.alone.state.version == before and not one.alone.state.loading


# -- after an edit


async def test_what_the_last_portion_held_already_is_not_made_into_lines_once_more(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    await one.load()
    last, fresh = one.read[-1], Suites(tmp_path)
    heard = fresh.alone.list.heard
    portion = replace(last, done=False, generation=fresh.suites.loader.generation)
    fresh.suites.take_suites(portion)
    version = fresh.alone.state.version
    assert heard[-1].case_ids is None and fresh.alone.state.loading
    fresh.suites.take_suites(replace(portion, done=True))
    assert heard[-1].case_ids == [] and not fresh.alone.state.loading
    assert fresh.alone.state.version == version


async def test_an_edit_is_read_and_said_and_a_file_of_no_suite_is_none(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    await one.load()
    assert await one.edit(TEXT.replace("I want a refund", "refund, please"), "read again")
    assert one.alone.said == "read again"
    (item,) = [item for item in one.alone.state.rows if item.name == REFUND]
    assert item.case is not None and item.case.turns[0].text == "refund, please"
    assert not one.suites.reload(["other.txt"], "never said")
    await one.alone.settle()
    assert one.alone.said == "read again"


async def test_an_edit_that_breaks_the_file_brings_the_cursor_to_it_and_back_once_it_is_mended(
    tmp_path: Path,
) -> None:
    one = Suites(tmp_path)
    await one.load()
    one.alone.go_to(GREETS)
    key = one.alone.list.cursor
    await one.edit(TEXT + "  - {name: [\n", "read again")
    assert one.alone.said != "read again" and "support.yaml" in one.alone.said
    assert one.alone.list.brought == [(f"{SUITE}!0", SUITE)]
    one.alone.list.line = TreeLine("problem", f"{SUITE}!0", 0, "", path=SUITE)
    await one.edit(TEXT, "read again")
    assert one.alone.list.brought[-1] == (key, "")


async def test_the_cursor_stays_with_a_case_under_its_new_name_also_where_it_is_looked_at(
    tmp_path: Path,
) -> None:
    one = Suites(tmp_path)
    await one.load()
    place = one.alone.look_at(one.alone.go_to(GREETS))
    changes: list[dict[str, str]] = []
    await one.edit(TEXT.replace(GREETS, "greets Anna"), lambda change: changes.append(change.renamed))
    (old,), (new,) = ids(GREETS), ids("greets Anna")
    assert changes == [{old: new}] and one.alone.list.brought == [(new, "")]
    assert place.looked_at == CasePointer(new)
    assert (
        one.alone.said == "it is greets Anna now: r runs it" and one.alone.window.toasts[-1] == one.alone.said
    )


async def test_a_case_that_is_looked_at_and_taken_out_is_told_of(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    await one.load()
    place = one.alone.look_at(one.alone.go_to(CALMS))
    await one.edit(TEXT[: TEXT.index("  - name: calms")])
    assert one.alone.said == f"{CALMS} is no longer in its file"
    assert place.looked_at is not None and ids(CALMS)[0] in one.alone.state.gone
    await one.edit(TEXT)
    assert ids(CALMS)[0] in one.alone.state.by_id and not one.alone.state.gone


# -- trust


async def test_what_the_suites_want_is_asked_when_they_have_been_read_and_what_an_edit_adds_after_it(
    tmp_path: Path,
) -> None:
    one = Suites(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  offline: {type: python, function: 'agent.py:answer'}\n"
    )
    await one.load()
    (first,) = one.alone.dialog.arguments[3]
    assert "agent.py" in first
    await one.alone.answer("no")
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  offline: {type: python, function: 'other.py:answer'}\n"
    )
    await one.edit(TEXT + "# more\n")
    (second,) = one.alone.dialog.arguments[3]
    assert "other.py" in second


async def test_where_shards_are_looked_at_it_is_asked_only_before_something_is_run(tmp_path: Path) -> None:
    """Who only looked at them was asked for all that the project's suites want."""
    one, ran = Suites(tmp_path), []
    one.suites.asks_when_read = False
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  offline: {type: python, function: 'agent.py:answer'}\n"
    )
    await one.load()
    assert one.alone.window.screen is one.alone.list
    one.suites.before_running(lambda: ran.append(one.alone.state.agreed))()
    (wanted,) = one.alone.dialog.arguments[3]
    assert "agent.py" in wanted and not ran
    await one.alone.answer("once")
    assert ran == [{wanted}]


async def test_what_waits_for_a_changed_configuration_runs_after_the_question_what_that_may_do(
    tmp_path: Path, monkeypatch
) -> None:
    """An agent that the app had just written into it was run, and refused, before the question was asked."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = Suites(tmp_path)
    await one.load()
    ran: list[str] = []
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  offline: {type: python, function: 'agent.py:answer'}\n"
    )
    one.suites.load(then=lambda: ran.append("run"))
    assert not ran
    await one.alone.settle()
    (first,) = one.alone.dialog.arguments[3]
    assert "agent.py" in first and not ran
    await one.alone.answer("once")
    await one.alone.settle()
    assert ran == ["run"]


async def test_what_needs_trust_is_asked_about_once_until_it_is_answered(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    one.suites.ask_trust(["run a.py", "run b.py"])
    assert one.alone.question.startswith("Do you trust ") and one.alone.offered == ["always", "once", "no"]
    question = one.alone.dialog
    assert sorted(question.arguments[3]) == ["run a.py", "run b.py"]
    assert question.arguments[4] == ("always", "once")  # only after it has been read
    assert {"needs trust: run a.py", "needs trust: run b.py"} <= {
        text for _, _, text in one.alone.notices.lines
    }
    one.suites.ask_trust(["run a.py"])
    assert one.alone.dialog is question
    one.suites.ask_trust(["run c.py", "run a.py"])
    assert one.alone.dialog.arguments[3] == ["run c.py"]  # a second list shows only what the first does not


@pytest.mark.parametrize(("answer", "how"), [("always", "always"), ("once", "this time")])
async def test_the_log_says_what_was_agreed_to(tmp_path: Path, answer: str, how: str, monkeypatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    one = Suites(tmp_path)
    one.suites.ask_trust(["run a.py", "run b.py"])
    await one.alone.answer(answer)
    said = [text for _, _, text in one.alone.notices.lines if text.startswith("trusted")]
    assert said == [f"trusted {how}: run a.py", f"trusted {how}: run b.py"]


@pytest.mark.parametrize("answer", ["no", None])
async def test_what_was_declined_is_not_asked_again_by_reading_and_nothing_is_agreed_to(
    tmp_path: Path, answer
) -> None:
    one = Suites(tmp_path)
    one.suites.ask_trust(["run a.py"])
    await one.alone.answer(answer)
    assert one.answered == ["answered"] and one.alone.state.agreed == frozenset() and one.read == []
    one.suites.ask_trust(["run a.py"])
    assert one.alone.window.screen is one.alone.list


async def test_a_no_says_what_comes_of_it_and_holds_for_what_is_run(tmp_path: Path) -> None:
    one, ran = Suites(tmp_path), []
    await one.load()
    run = one.suites.before_running(lambda: ran.append("run"))
    one.suites.ask_trust(["run a.py"])
    await one.alone.answer("no")
    assert one.alone.said == "not trusted: cases that need it are errors until tui-eval starts anew"
    run()
    assert ran == ["run"] and one.alone.window.screen is one.alone.list


async def test_esc_answers_nothing_says_so_and_is_asked_again_before_anything_is_run(tmp_path: Path) -> None:
    one, ran = Suites(tmp_path), []
    await one.load()
    run = one.suites.before_running(lambda: ran.append(one.alone.state.agreed))
    one.suites.ask_trust(["run a.py", "run b.py"])
    await one.alone.answer(None)
    assert one.alone.said == "not answered: asked again before the next run (n: no)"
    run()
    assert not ran and sorted(one.alone.dialog.arguments[3]) == ["run a.py", "run b.py"]
    await one.alone.answer(None)
    assert not ran and one.alone.said.startswith("nothing was run: asked again")
    run()
    await one.alone.answer("once")
    assert ran == [{"run a.py", "run b.py"}]  # what was to be run may do what was just agreed to
    run()
    assert len(ran) == 2 and one.alone.window.screen is one.alone.list


async def test_who_steps_no_case_is_asked_for_no_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`b` on the line of a folder asked for it, and did nothing then."""
    one, ran = Suites(tmp_path), []
    await one.load()
    run = one.suites.before_running(lambda: ran.append("says that there is no case"), of_case=True)
    one.suites.ask_trust(["run a.py"])
    await one.alone.answer(None)
    monkeypatch.setattr(one.alone.places, "pointer", lambda: None)
    run()
    assert ran and one.alone.window.screen is one.alone.list


async def test_a_no_to_what_was_put_off_lets_the_run_go_on_without(tmp_path: Path) -> None:
    one, ran = Suites(tmp_path), []
    await one.load()
    run = one.suites.before_running(lambda: ran.append(one.alone.state.agreed))
    one.suites.ask_trust(["run a.py"])
    await one.alone.answer(None)
    run()
    await one.alone.answer("no")
    assert ran == [frozenset()]
    run()
    assert len(ran) == 2 and one.alone.window.screen is one.alone.list


async def test_what_is_to_be_run_while_the_suites_are_read_is_run_when_they_have_been(tmp_path: Path) -> None:
    """It was lost, or ran what had been read so far before anything had been asked about."""
    one, ran = Suites(tmp_path), []
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  offline: {type: python, function: 'agent.py:answer'}\n"
    )
    run = one.suites.before_running(lambda: ran.append((len(one.alone.state.rows), one.alone.state.agreed)))
    run()  # also before the reading has begun
    assert not ran and one.alone.said.startswith("reading the suites: it is run when")
    one.suites.load()
    run()
    await one.alone.settle()
    (asked,) = one.alone.dialog.arguments[3]
    assert not ran and "agent.py" in asked
    await one.alone.answer("once")
    assert ran == [(3, frozenset({asked}))]
    run()
    assert len(ran) == 2


async def test_what_is_asked_after_the_reading_is_not_answered_by_what_is_typed_on(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    run = one.suites.before_running(lambda: one.alone.places.ask("It costs. Sure?", [], print))
    run()
    one.suites.load()
    await one.alone.settle()
    assert one.alone.dialog.arguments[5] is True, "it comes by itself by now"
    one.alone.window.close(one.alone.window.screen, None)
    run()
    assert one.alone.dialog.arguments[5] is False, "asked by the key"


async def test_what_waited_for_the_suites_is_not_run_where_another_place_is_looked_at(tmp_path: Path) -> None:
    one, ran = Suites(tmp_path), []
    run = one.suites.before_running(lambda: ran.append("run"))
    one.suites.load()
    run()
    one.alone.window.stack.append(FakeList(one.alone.state, "run"))
    await one.alone.settle()
    assert not ran and one.alone.said.startswith("nothing was run")
    run()
    assert ran == ["run"]


async def test_before_a_run_all_is_asked_about_that_has_no_answer_yet(tmp_path: Path) -> None:
    one, ran = Suites(tmp_path), []
    await one.load()
    run = one.suites.before_running(lambda: ran.append("run"))
    one.suites.ask_trust(["run a.py", "run b.py"])
    await one.alone.answer(None)
    one.suites.ask_trust(["run c.py"])
    assert sorted(one.alone.dialog.arguments[3]) == ["run a.py", "run b.py", "run c.py"]
    await one.alone.answer(None)
    run()
    assert not ran and sorted(one.alone.dialog.arguments[3]) == ["run a.py", "run b.py", "run c.py"]


async def test_what_the_judge_wants_is_asked_before_it_names_failures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No suite has it: it was refused after the price had been agreed to."""
    monkeypatch.setenv("LAB_KEY", "k")
    one, ran = Suites(tmp_path), []
    file = one.alone.root / "tui_eval.yaml"
    judge = "judge: {type: openai, base_url: 'http://127.0.0.1:9/v1', model: m, api_key: '${LAB_KEY}'}\n"
    file.write_text(file.read_text() + judge)
    await one.load()
    assert one.alone.window.screen is one.alone.list
    one.suites.trusted_first(failures_named(), lambda: ran.append(1))
    await one.alone.settle()
    assert not ran and "LAB_KEY" in one.alone.dialog.arguments[3][0]


async def test_a_cluster_that_only_a_record_names_is_asked_about_before_anything_is_sent_to_it(
    tmp_path: Path,
) -> None:
    """It was refused, with options of the command line."""
    one, ran = Suites(tmp_path), []
    await one.load()
    typed = RunRequest(on="10.0.0.4:6379")
    one.suites.trusted_first(typed, lambda: ran.append("typed"))
    assert ran == ["typed"]
    recorded = RunRequest(on="10.0.0.4:6379", on_recorded=True)
    one.suites.trusted_first(recorded, lambda: ran.append("recorded"))
    await one.alone.settle()
    (asked,) = one.alone.dialog.arguments[3]
    assert "cluster 10.0.0.4:6379" in asked and ran == ["typed"]
    await one.alone.answer("once")
    await one.alone.settle()
    assert ran == ["typed", "recorded"] and asked in one.alone.state.agreed


@pytest.mark.parametrize("named", ["chosen", "asked before"])
async def test_what_an_agent_wants_that_no_suite_names_is_asked_before_it_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """The run ended as errors before the question came."""
    monkeypatch.setenv("LAB_KEY", "k")
    one, ran = Suites(tmp_path), []
    keyed = "  keyed: {type: openai, base_url: 'http://127.0.0.1:9/v1', model: m, api_key: '${LAB_KEY}'}\n"
    file = one.alone.root / "tui_eval.yaml"
    file.write_text(file.read_text() + keyed)
    await one.load()
    assert one.alone.window.screen is one.alone.list, "no suite names it"
    chosen = (
        RunRequest(agents=["keyed"])
        if named == "chosen"
        else RunRequest(cells=[RequestCell("s::a", "keyed")])
    )
    run = one.suites.before_running(
        lambda: one.suites.trusted_first(chosen, lambda: ran.append(one.alone.state.agreed))
    )
    run()
    run()
    assert one.alone.said == "a run is being started"
    await one.alone.settle()
    (asked,) = one.alone.dialog.arguments[3]
    assert "LAB_KEY" in asked and not ran
    await one.alone.answer("once")
    await one.alone.settle()
    assert ran == [{asked}] and one.alone.window.screen is one.alone.list
    run()
    await one.alone.settle()
    assert len(ran) == 2


@pytest.mark.parametrize(("answer", "runs"), [("once", ["a", "b"]), ("no", ["a", "b"]), (None, [])])
async def test_several_runs_of_one_key_wait_for_the_one_question(
    tmp_path: Path, answer: str | None, runs: list[str]
) -> None:
    one, ran = Suites(tmp_path), []
    file = one.alone.root / "tui_eval.yaml"
    file.write_text(file.read_text() + "  code: {type: python, function: 'own.py:f'}\n")
    await one.load()
    for name in ("a", "b"):
        request = RunRequest(cells=[RequestCell(f"s::{name}", "code")])
        one.suites.trusted_first(request, lambda name=name: ran.append(name))
    await one.alone.settle()
    assert not ran
    await one.alone.answer(answer)
    await one.alone.settle()
    assert ran == runs and one.alone.window.screen is one.alone.list


async def test_what_only_judges_recorded_answers_asks_nothing_about_who_gave_them(tmp_path: Path) -> None:
    one, ran = Suites(tmp_path), []
    file = one.alone.root / "tui_eval.yaml"
    file.write_text(file.read_text() + "  code: {type: python, function: 'own.py:f'}\n")
    await one.load()
    cells = [RequestCell("s::a", "code")]
    one.suites.trusted_first(
        RunRequest(cells=cells, continue_from=Recorded("r", 1, None)), lambda: ran.append(1)
    )
    assert ran
    one.suites.trusted_first(
        RunRequest(cells=cells, continue_from=Recorded("r", 1, 2)), lambda: ran.append(2)
    )
    await one.alone.settle()
    assert ran == [1] and "own.py" in one.alone.dialog.arguments[3][0]


@pytest.mark.parametrize(("answer", "kept"), [("always", {"run a.py"}), ("once", set())])
async def test_what_was_agreed_to_holds_and_only_always_is_remembered(
    tmp_path: Path, answer: str, kept
) -> None:
    one = Suites(tmp_path)
    one.suites.ask_trust(["run a.py"])
    await one.alone.answer(answer)
    assert one.alone.state.agreed == {"run a.py"} and trust_store.agreed(tmp_path) == kept
    assert one.read and one.read[-1].done  # read again, with what it may do now
    one.suites.ask_trust(["run a.py"])
    assert one.alone.window.screen is one.alone.list


async def test_that_it_cannot_be_remembered_is_said_and_it_holds_this_time(
    tmp_path: Path, monkeypatch
) -> None:
    def full(root: Path, what: list[str]) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(trust_store, "grant", full)
    one = Suites(tmp_path)
    one.suites.ask_trust(["run a.py"])
    await one.alone.answer("always")
    assert one.alone.state.agreed == {"run a.py"}
    assert any("could not remember it: disk full" in text for _, _, text in one.alone.notices.lines)


async def test_what_is_too_long_to_be_read_cannot_be_agreed_to(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    long = "run " + "x" * LONGEST
    one.suites.ask_trust([long])
    assert (
        one.alone.window.screen is one.alone.list
        and "need trust and cannot be agreed to here" in one.alone.said
    )
    one.suites.ask_trust([long + "y", "run a.py"])
    assert one.alone.dialog.arguments[3] == ["run a.py"]
    await one.alone.answer("once")
    assert one.alone.state.agreed == {"run a.py"}


async def test_a_project_that_is_trusted_is_asked_about_nothing(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    one.alone.state.trusted = True
    one.suites.ask_trust(["run a.py"])
    one.suites.ask_trust([])
    assert one.alone.window.screen is one.alone.list


# -- what comes back


async def test_how_the_list_was_looked_at_comes_back(tmp_path: Path) -> None:
    remember(
        tmp_path,
        {
            "cursor": ids(CALMS)[0], "filter": "failed", "marks": [*ids(GREETS), "gone"], "folded": ["suites/", 7],
            "unfolded": ["x"], "grouping": "cause", "failures_first": True, "reverse": True, "sort": "cost",
        },
    )  # fmt: skip
    one = Suites(tmp_path)
    screen = one.suites.screen()
    assert isinstance(screen, FakeList)
    assert screen.view.folded == {"suites/"} and screen.view.unfolded == {"x"}
    assert (screen.view.grouping, screen.view.sort) == ("cause", "cost")
    assert screen.view.failures_first and screen.view.reverse
    one.alone.window.stack = [screen]
    await one.load()
    assert (
        screen.expression == "failed" and screen.marks == set(ids(GREETS)) and screen.cursor == ids(CALMS)[0]
    )
    screen.set_filter("")
    await one.load()
    assert screen.expression == ""  # what was remembered is for the first time only


async def test_a_filter_of_other_paths_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    remember(tmp_path, {"filter": "failed", "filter_of": [str(tmp_path / "elsewhere")]})
    one = Suites(tmp_path)
    await one.load()
    assert one.alone.list.expression == "" and one.alone.said.endswith("is left out: failed")


async def test_what_nobody_wrote_so_is_no_memory(tmp_path: Path) -> None:
    remember(tmp_path, {"grouping": "by magic", "sort": 3, "folded": [1], "marks": "all", "cursor": 5})
    one = Suites(tmp_path)
    screen = one.suites.screen()
    assert isinstance(screen, FakeList)
    assert (screen.view.grouping, screen.view.sort, screen.view.folded) == ("file", "file", set())
    one.alone.window.stack = [screen]
    await one.load()
    assert screen.marks == set() and screen.cursor == ""


async def test_how_it_is_looked_at_is_given_to_be_kept(tmp_path: Path, monkeypatch) -> None:
    one = Suites(tmp_path)
    await one.load()
    monkeypatch.setattr("tui_eval.tui.controllers.suites.stands", lambda place: True)
    one.alone.go_to(GREETS)
    one.alone.list.expression, one.alone.list.marks = "failed", set(ids(CALMS))
    one.alone.list.view.folded = {"suites/"}
    kept = one.suites.remembered()
    assert kept["filter_of"] == [str(tmp_path)]
    assert (kept["cursor"], kept["filter"], kept["marks"]) == (ids(GREETS)[0], "failed", ids(CALMS))
    assert (kept["folded"], kept["grouping"], kept["sort"]) == (["suites/"], "file", "file")
    monkeypatch.setattr("tui_eval.tui.controllers.suites.stands", lambda place: False)
    assert one.suites.remembered() == {}  # an app that never came up forgets nothing


async def test_an_empty_project_is_asked_what_to_begin_with(tmp_path: Path) -> None:
    one = Suites(tmp_path)
    one.suites.first()
    assert one.alone.question == "Begin with what?"
