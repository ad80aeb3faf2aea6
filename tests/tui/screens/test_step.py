"""Step, go on from a turn, watch, accept and save as a case: the app on a real engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.servers import OpenAIServer
from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.store.run_folders import Store
from tui_eval.tui.background import stands
from tui_eval.tui.inspector.transcript import TranscriptTab
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.dialogs import AskScreen, ChangeScreen
from tui_eval.tui.screens.save_case import SaveDialog
from tui_eval.tui.screens.step_screen import StepMessage, StepScreen
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.entries import suite_entries
from tui_eval.tui.terminal.terminal_guard import KeyParser

SUITE = """\
agent: helper
test_cases:
  # the one
  - name: three
    messages: ["one", "two", "three"]   # in order
    expected: {should_contain: ["said thee"]}
"""
HOSTILE = "\\x1b]0;x\\x07 [/b] \\u202e"


@asynccontextmanager
async def app_on(
    root: Path,
    suite: str = SUITE,
    size: tuple[int, int] = (80, 24),
    agent: str = "{type: scripted, script: agent.script.yaml}",
) -> AsyncIterator[tuple[Any, Any]]:
    (root / "suite.yaml").write_text(suite)
    (root / "agent.script.yaml").write_text('default: {say: "you said {{message}}"}\nrate: 5000\n')
    (root / "tui_eval.yaml").write_text(f"agents: {{helper: {agent}}}\n")
    client = EngineClient(root)
    try:
        async with running_app(root, size, engine=client) as (app, pilot):
            app.places.suites.go_to(CasePointer("suite.yaml::three"))
            await pilot.pause()
            try:
                yield app, pilot
            finally:
                # A run that waits for the person would keep its engine for ever.
                for run in app.state.active:
                    with suppress(EngineError):  # it has just ended
                        await client.cancel(run.info.id)
    finally:
        await client.shutdown()
        await client.close()


async def waiting(app, pilot, turn: int) -> None:
    await until(lambda: isinstance(app.screen, StepScreen) and app.screen.view.waits == turn, pilot)
    await pilot.pause()


async def test_shift_and_enter_begin_a_line_in_the_message(tmp_path: Path) -> None:
    """Terminals send them as ESC and CR, as LF or by kitty's protocol; none ends the editing, let alone sends."""
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        message = app.screen.query_one(StepMessage)
        await pilot.press("ctrl+j", "shift+enter")
        assert message.text == "one"
        await pilot.press("e", "end")
        for sent in ("\x1b\r", "\n", "\x1b[13;2u"):
            for event in KeyParser().feed(sent):
                app.post_message(event)
        await pilot.press("x")
        await until(lambda: message.text == "one\n\n\nx", pilot)
        app.screen.renew()  # the run went on meanwhile
        await until(lambda: "editing what would be sent" in screen_text(app), pilot)
        assert "esc done" in screen_text(app)


async def test_a_message_that_has_no_room_says_how_much_of_it_is_below(tmp_path: Path) -> None:
    """Six lines of it were shown, and nothing said that there are more of what would be sent."""
    lines = "\\n".join(f"line {number}" for number in range(1, 21))
    async with app_on(tmp_path, SUITE.replace('["one",', f'["{lines}",')) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await until(lambda: "11 more lines: e goes there" in screen_text(app), pilot)
        assert "line 9" in screen_text(app) and "line 10" not in screen_text(app)
        await pilot.press("e")
        await until(lambda: "line 20" in screen_text(app) and "more lines" not in screen_text(app), pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert "more lines" not in screen_text(app)
        await pilot.resize_terminal(80, 14)  # it stays where the cursor was
        await until(lambda: "line 20" not in screen_text(app), pilot, 5)
        await until(lambda: "more line" in screen_text(app), pilot, 5)


@pytest.mark.real
async def test_send_edit_skip_and_save(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        assert app.screen.query_one(StepMessage).text == "one" and "turn 1 of 3 would be sent" in screen_text(
            app
        )
        await pilot.press("enter")
        await waiting(app, pilot, 2)
        assert "you said one" in screen_text(app)
        await pilot.press("e", "end", "!", "escape", "enter")
        await waiting(app, pilot, 3)
        assert "you said two!" in screen_text(app) and "edited" in screen_text(app)
        await pilot.press("s")
        await until(lambda: app.screen.view.done and app.screen.attempt, pilot)
        assert app.screen.attempt.outcome == "skipped"
        await pilot.pause()
        assert "by hand, no result" in " ".join(screen_text(app).split())
        await pilot.press("C")
        await until(lambda: isinstance(app.screen, SaveDialog), pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
        assert "two!" in screen_text(app)
        await pilot.press("enter")
        saved = tmp_path / "suite.yaml"
        await until(lambda: "(saved)" in saved.read_text(), pilot)
        assert 'messages:\n      - "one"\n      - "two!"' in saved.read_text()


@pytest.mark.real
async def test_a_step_that_waits_is_no_retry_and_the_key_goes_back_to_it(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("enter")
        await waiting(app, pilot, 2)
        run = app.screen.run_id
        await pilot.press("U")
        await until(lambda: "step: before turn 2" in screen_text(app), pilot)
        await until(lambda: "step waits: three b" in screen_text(app).splitlines()[-1], pilot)
        assert "↻" not in screen_text(app) and "retrying" not in screen_text(app)
        await pilot.press("enter")
        await until(lambda: "would be sent: two" in screen_text(app), pilot)
        assert "● running" in screen_text(app) and "── turn 1 " in screen_text(app)
        assert "── turn 2 " not in screen_text(app), "it has not begun"
        await pilot.press("escape", "b")
        await waiting(app, pilot, 2)
        assert app.screen.run_id == run and len(app.state.active) == 1


@pytest.mark.real
async def test_before_a_turn_waits_it_says_what_the_agent_loads(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(
        "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.02)\n\n"
        "def answer(message, session):\n    return message\n"
    )
    async with app_on(tmp_path, agent="{type: python, function: 'bot.py:answer'}") as (app, pilot):
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("o", "b")
        await until(lambda: "loading bot.py" in screen_text(app), pilot)
        assert "turn 1" not in screen_text(app) and "waits" not in screen_text(app)
        (tmp_path / "go").touch()
        await waiting(app, pilot, 1)
        assert "step waits" not in screen_text(app), "it is this screen that says so"
        assert "o run on" in screen_text(app).splitlines()[-1]


@pytest.mark.real
async def test_running_on_and_stopping(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("o")
        await until(lambda: app.screen.view.done, pilot)
        await pilot.press("escape", "b")
        await waiting(app, pilot, 1)
        await pilot.press("escape")
        assert not isinstance(app.screen, AskScreen)
        await until(lambda: not app.state.active and not isinstance(app.screen, StepScreen), pilot)
        await until(
            lambda: len(list(Store(tmp_path).run_folders())) == 1, pilot
        )  # nothing was sent in the second
        assert app.state.run.info.id == next(Store(tmp_path).run_folders()).name


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("keys", [("enter",), ("e", "end", "!", "escape")], ids=["sent", "edited"])
async def test_leaving_asks_where_something_would_be_lost(tmp_path: Path, keys: tuple[str, ...]) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press(*keys)
        await waiting(app, pilot, 2 if keys == ("enter",) else 1)
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("y")
        await until(lambda: not app.state.active and not isinstance(app.screen, StepScreen), pilot)


@pytest.mark.real
async def test_a_step_leaves_the_run_in_front_and_when_abandoned_no_trace(tmp_path: Path) -> None:
    suite = SUITE + "  - {name: other, input: hello, expected: {should_contain: [hello]}}\n"
    async with app_on(tmp_path, suite) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.state.run is not None and not app.state.active, pilot)
        front = app.state.run
        await until(lambda: app.state.by_id["suite.yaml::three"].history, pilot)
        await pilot.press("U")
        app.places.suites.go_to(CasePointer("suite.yaml::three"))
        await pilot.press("b")
        await waiting(app, pilot, 1)
        assert app.state.run is front and len(app.state.active) == 1
        await pilot.press("escape")
        await until(lambda: not app.state.active and not isinstance(app.screen, StepScreen), pilot)
        await until(lambda: len(list(Store(tmp_path).run_folders())) == 1, pilot)
        await until(lambda: list(app.state.group.runs) == [front] and not app.state.aside.runs, pilot)
        entries = {entry.name: entry.status for entry in suite_entries(app.state)}
        assert entries == {"three": "failed", "other": "passed"}
        await pilot.press("L")
        await until(lambda: "other" in screen_text(app) and "three" in screen_text(app), pilot)


@pytest.mark.real
async def test_a_case_that_is_opened_while_its_step_is_put_away_shows_what_it_came_to_before(
    tmp_path: Path,
) -> None:
    """It stayed at an error: the step's run was not there any more."""
    async with app_on(tmp_path, SUITE) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.state.run is not None and not app.state.active, pilot)
        await until(lambda: app.state.by_id["suite.yaml::three"].history, pilot)
        front = app.state.run
        await pilot.press("U")
        app.places.suites.go_to(CasePointer("suite.yaml::three"))
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("escape")
        await until(lambda: not isinstance(app.screen, StepScreen), pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        await until(lambda: len(list(Store(tmp_path).run_folders())) == 1, pilot)
        await until(lambda: app.screen.reader.content.attempt is not None, pilot)
        assert app.screen.reader.content.run_id == front.info.id
        assert "not a run" not in screen_text(app)


@pytest.mark.real
async def test_it_says_what_is_expected_and_which_keys_do_something(tmp_path: Path) -> None:
    async with app_on(tmp_path, SUITE.replace('"three"]', '"three [slow]"]')) as (app, pilot):
        script = 'default: {say: "you said {{message}}"}\nrate: 5000\nrules:\n  - match: slow\n'
        (tmp_path / "agent.script.yaml").write_text(script + "    steps: [{say: begin}, {wait: 60}]\n")
        await pilot.press("b")
        await waiting(app, pilot, 1)
        assert "expected" not in screen_text(app)  # of the conversation as a whole
        await pilot.press("e")
        foot = screen_text(app).splitlines()[-1]
        assert "esc done" in foot and "ctrl+s send" in foot and "skip" not in foot
        await pilot.press("x", "ctrl+s")
        await waiting(app, pilot, 2)
        assert "you said onex" in screen_text(app) and 'not yet: should_contain "said thee"' in screen_text(
            app
        )
        await pilot.press("enter")
        await waiting(app, pilot, 3)
        assert "what is expected of the reply:" in screen_text(app)
        assert screen_text(app).count('contains "said thee"') == 1
        await pilot.press("enter")
        await until(lambda: "begin" in screen_text(app), pilot)
        foot = screen_text(app).splitlines()[-1]
        assert "x cancel it" in foot and "send" not in foot
        # In the middle of a turn: what was said until then is kept.
        await pilot.press("x")
        await until(lambda: app.screen.attempt is not None, pilot)
        await pilot.pause()
        text = screen_text(app)
        assert "ended: cancelled" in text and "you said two" in text and "begin" in text


@pytest.mark.real
async def test_an_assertion_that_hangs_can_be_cancelled(tmp_path: Path) -> None:
    hangs = "{type: python, value: 'file://hangs.py'}"
    (tmp_path / "hangs.py").write_text(
        "from pathlib import Path\n\ndef get_assert(output, context):\n"
        "    Path(__file__).with_name('begun').touch()\n    while True:\n        pass\n"
    )
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: ['{{{{q}}}}']\nproviders: [echo]\n"
        f"tests: [{{description: hung, vars: {{q: hi}}, assert: [{{type: equals, value: hi}}, {hangs}]}}]\n"
    )
    async with app_on(tmp_path) as (app, pilot):
        await until(lambda: isinstance(app.screen, AskScreen), pilot)  # to trust the suite's code
        await pilot.press("y")
        (case,) = (one for one in app.state.by_id if one.startswith("promptfooconfig.yaml"))
        app.places.suites.go_to(CasePointer(case))
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("enter")
        await until((tmp_path / "begun").exists, pilot)
        assert "x cancel it" in screen_text(app).splitlines()[-1]
        await pilot.press("x")
        await until(lambda: app.screen.attempt is not None, pilot)
        await pilot.pause()
        assert "ended: cancelled" in screen_text(app)


@pytest.mark.real
async def test_a_long_conversation_stays_at_its_end(tmp_path: Path) -> None:
    lines = "".join(f"    line {number}\n" for number in range(60))
    async with app_on(tmp_path, size=(60, 16)) as (app, pilot):
        (tmp_path / "agent.script.yaml").write_text(f"rate: 50000\ndefault:\n  say: |\n{lines}    end\n")
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("enter")
        await waiting(app, pilot, 2)
        assert 'not yet: should_contain "said thee"' in screen_text(app)  # the last line, above the message
        await pilot.press("g")
        assert "line 0" in screen_text(app)
        await pilot.press("enter")
        await waiting(app, pilot, 3)
        assert "line 0" in screen_text(app), "who has gone up stays there"
        await pilot.press("G", "enter")
        await until(lambda: app.screen.attempt is not None, pilot)
        await pilot.pause()
        text = screen_text(app)
        assert "failed: should_contain" in text and '✗ lacks "said thee"' in text
        assert not logged(app, "run finished"), "it says itself how it ended"


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("step", "words"), [("{error: fell over}", "fell over"), ("{error: gone, status: 503}", "gone")]
)
async def test_an_agent_that_fails_in_the_second_turn(tmp_path: Path, step: str, words: str) -> None:
    async with app_on(tmp_path) as (app, pilot):
        (tmp_path / "agent.script.yaml").write_text(
            f"rate: 5000\nrules: [{{match: two, steps: [{{say: begin}}, {step}]}}]\ndefault: fine\n"
        )
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("enter")
        await waiting(app, pilot, 2)
        await pilot.press("enter")
        await until(lambda: app.screen.attempt is not None, pilot)
        await pilot.pause()
        text = screen_text(app)
        assert "ended: error" in text and words in text and "fine" in text and "begin" in text


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("key", ["question_mark", "l"])
async def test_a_turn_that_ends_behind_help_or_the_log_is_seen_afterwards(tmp_path: Path, key: str) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        step = app.screen
        await pilot.press(key)
        await until(lambda: app.screen is not step, pilot)
        await app.services.engines.own.step(step.run_id, next(iter(app.state.run.attempts)), "send")
        await until(lambda: _waits_before(app, 2), pilot)
        await pilot.press("escape")
        await waiting(app, pilot, 2)
        assert "you said one" in screen_text(app) and "turn 2 of 3 would be sent" in screen_text(app)


def _waits_before(app: Any, turn: int) -> bool:
    run = app.state.run
    row = next(iter(run.attempts.values()))
    pieces = run.live[row.id].pieces if row.id in run.live else []
    return row.detail.endswith(f"turn {turn}") and any(
        p.kind == "step" and p.name == str(turn) for p in pieces
    )


@pytest.mark.real
async def test_a_decision_that_does_not_reach_the_engine_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)

        async def gone(*_: Any, **__: Any) -> None:
            raise EngineError("no answer from the engine")

        with monkeypatch.context() as patched:
            patched.setattr(app.services.engines.own, "step", gone)
            await pilot.press("enter")
            await until(lambda: logged(app, "no answer from the engine"), pilot)
        assert "turn 1 of 3 would be sent" in screen_text(app)
        await pilot.press("enter")
        await waiting(app, pilot, 2)


@pytest.mark.real
async def test_what_was_read_for_a_screen_that_is_taken_away_is_for_nobody(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        step = app.screen
        assert stands(step)
        going = app.pop_screen()
        assert not stands(step)
        step.renew()  # as the thread that read its attempt would, before and after it is gone
        await going
        step.renew()
        await pilot.press("X", "y")
        await until(lambda: not app.state.active, pilot)


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (60, 16)], (60, 16)))
async def test_hostile_texts(tmp_path: Path, size: tuple[int, int]) -> None:
    suite = SUITE.replace('"one"', f'"{HOSTILE}"')
    async with app_on(tmp_path, suite, size) as (app, pilot):
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("enter")
        await waiting(app, pilot, 2)
        for strip in app.screen._compositor.render_strips():
            assert not {"\x1b", "\x07", "\u202e"} & set(strip.text)
        run = app.state.run
        live = run.live[next(iter(run.attempts))]
        assert next(p.text for p in live.pieces if p.kind == "user") == "\x1b]0;x\x07 [/b] \u202e"


def logged(app: Any, words: str) -> bool:
    return any(words in text for _, _, text in app.notices.lines)


@pytest.mark.real
async def test_accept(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("r")
        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        await pilot.press("!")
        await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
        assert '["said three"]' in screen_text(app) and "enter writes it (Z undoes it)" in screen_text(app)
        await pilot.press("enter")
        await until(lambda: "said three" in (tmp_path / "suite.yaml").read_text(), pilot)
        assert (tmp_path / "suite.yaml").read_text() == SUITE.replace("said thee", "said three")
        await until(lambda: logged(app, "suite.yaml written: r runs it"), pilot)
        await pilot.press("Z")
        await until(lambda: (tmp_path / "suite.yaml").read_text() == SUITE, pilot)
        await until(lambda: logged(app, "as it was: suite.yaml"), pilot)
        await pilot.press("Z")
        await until(lambda: logged(app, "no accepted answer to take back"), pilot)


@pytest.mark.real
async def test_what_was_written_over_is_not_taken_back(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("r")
        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        await pilot.press("!")
        await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
        await pilot.press("enter")
        await until(lambda: logged(app, "written: r runs it"), pilot)
        mine = SUITE + "# mine\n"
        (tmp_path / "suite.yaml").write_text(mine)
        await pilot.press("Z")
        await until(lambda: logged(app, "has changed meanwhile"), pilot)
        assert (tmp_path / "suite.yaml").read_text() == mine


async def run_and_open(app: Any, pilot: Any) -> None:
    """Run the case below the cursor, to its end, and open it."""
    await pilot.press("r")
    await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
    await pilot.press("enter")
    await until(lambda: getattr(app.screen, "content", None) and app.screen.content.attempt, pilot)


@pytest.mark.real
async def test_a_case_that_its_file_has_no_more_is_not_accepted_into_another(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await run_and_open(app, pilot)
        other = SUITE.replace("name: three", "name: other").replace('"three"]', '"four"]')
        other += "  - {name: more, input: x}\n"  # of one alone it is taken for renamed
        (tmp_path / "suite.yaml").write_text(other)
        await until(lambda: "suite.yaml::three" not in app.state.by_id, pilot)
        await pilot.press("!")
        await until(lambda: logged(app, "three is in no suite that is open here"), pilot)
        assert (tmp_path / "suite.yaml").read_text() == other


@pytest.mark.real
async def test_going_on_from_a_turn_says_where_it_is_not_possible(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await run_and_open(app, pilot)
        await pilot.press("}", "B")
        await until(lambda: logged(app, "cannot go on from turn 2: an agent of type scripted"), pilot)
        assert len(app.state.by_id["suite.yaml::three"].history) == 1, "it is no attempt of the case"


@pytest.mark.real
async def test_watch_judges_again_then_reruns_on_save(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await pilot.press("r")
        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        first = app.state.run.info.id
        await pilot.press("W")
        await pilot.pause()
        assert "watch: judge" in screen_text(app)
        (tmp_path / "suite.yaml").write_text(SUITE.replace("said thee", "said three"))
        await until(lambda: app.state.run.info.id != first and not app.state.run.active, pilot)
        row = next(iter(app.state.run.attempts.values()))
        assert (row.outcome, row.cost) == ("passed", None)
        second = app.state.run.info.id
        await pilot.press("W")
        await pilot.pause()
        assert "watch: rerun" in screen_text(app)
        (tmp_path / "agent.script.yaml").write_text('default: {say: "no"}\n')
        await until(lambda: app.state.run.info.id != second and not app.state.run.active, pilot)
        assert next(iter(app.state.run.attempts.values())).outcome == "failed"
        await pilot.press("W")
        await pilot.pause()
        assert "watch:" not in screen_text(app) and app.watching.watcher is None


@pytest.mark.real
async def test_what_was_changed_by_hand_takes_no_results_place(tmp_path: Path) -> None:
    async with app_on(tmp_path, SUITE.replace("thee", "three")) as (app, pilot):
        await pilot.press("r")
        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        await until(lambda: app.state.by_id["suite.yaml::three"].last is not None, pilot)
        await pilot.press("b")
        await waiting(app, pilot, 1)
        await pilot.press("s")
        await waiting(app, pilot, 2)
        await pilot.press("o")
        await until(lambda: app.screen.attempt is not None and app.screen.attempt.outcome == "skipped", pilot)
        await until(lambda: not app.state.run.active, pilot)
        await pilot.press("U")
        await until(lambda: "✓ three" in screen_text(app) and "skipped" not in screen_text(app), pilot)
        (item,) = app.state.rows
        assert [past.outcome for past in item.history] == ["passed"]
    async with running_app(tmp_path) as (app, pilot):  # the next time
        await until(lambda: "✓ three" in screen_text(app), pilot)
        assert [past.outcome for past in app.state.rows[0].history] == ["passed"]


@pytest.mark.real
async def test_going_on_from_a_turn_leaves_the_cursor_there(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        agent = f"{{type: openai, base_url: '{server.base}', model: m}}"
        async with app_on(tmp_path, agent=agent) as (app, pilot):
            await pilot.press("r")
            await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
            await pilot.press("enter")
            await until(lambda: getattr(app.screen, "content", None) and app.screen.content.attempt, pilot)
            text = app.screen.query_one(TranscriptTab).text
            text.jump_to(next(i for i, one in enumerate(text.blocks) if one.kind == "turn" and one.turn == 3))
            for asked in (4, 5):  # the last turn alone is sent, and sent again
                await pilot.press("B")
                await until(lambda n=asked: len(server.requests) == n and not app.state.active, pilot)
                run = app.state.run.info.id
                await until(
                    lambda r=run: app.screen.content.run_id == r and app.screen.content.attempt, pilot
                )
                await until(lambda: text.block is not None and text.block.turn == 3, pilot)
