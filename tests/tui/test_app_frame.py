"""The app's frame: suites appear, runs are asked for and followed, places are left and come back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from textual.css.stylesheet import Stylesheet
from textual.events import Key
from textual.widgets import Input

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, LiveRun, project
from tests.support.settling import rested
from tui_eval.guard import trust_store
from tui_eval.tui.screens import dialogs
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.screens.help import PaperScreen
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.screens.run_dialog import FIELDS, RunDialog
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.widgets.case_list import CaseList

FIRST = "suites/support.yaml::refund is approved"


async def test_suites_are_read_and_shown(tmp_path):
    async with running_app(project(tmp_path)) as (app, _):
        text = screen_text(app)
        assert "refund is approved" in text and "StartToAgent" in text and "3 cases" in text


async def test_styles_are_read_once_at_the_start_and_anew_for_another_theme(tmp_path, monkeypatch):
    read: list[tuple[str, str]] = []

    def counted(self, css, read_from, *arguments, **options):
        if (css, read_from, *options.values()) not in self._parse_cache:
            read.append(read_from)
        return parse(self, css, read_from, *arguments, **options)

    parse = Stylesheet._parse_rules
    monkeypatch.setattr(Stylesheet, "_parse_rules", counted)
    async with running_app(project(tmp_path)) as (app, pilot):
        own = [(path, name) for path, name in read if name == "EvalApp.CSS"]
        assert len(own) == 1
        before = app.screen.rich_style.bgcolor
        app.theme = "tui-eval-light"
        await until(lambda: app.screen.rich_style.bgcolor != before, pilot)
        app.theme = "tui-eval"
        await until(lambda: app.screen.rich_style.bgcolor == before, pilot)


async def test_one_bad_file_does_not_hide_the_others(tmp_path):
    from tests.support.live_run import SUITE

    suites = {"suites/bad.yaml": "test_cases:\n  - name: x\n    : [", "suites/good.yaml": SUITE}
    async with running_app(project(tmp_path, suites)) as (app, _):
        text = screen_text(app)
        assert "problem" in text and "refund is approved" in text


async def test_an_empty_folder_says_what_to_do(tmp_path):
    async with running_app(tmp_path) as (app, _):
        assert "No suites here" in screen_text(app) and "init" in screen_text(app)


@pytest.mark.real
async def test_a_runs_all_shown_and_shows_the_run(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        (request,) = app.services.engines.own.requests
        assert len(request.case_ids) == 3 and request.paths == [str(tmp_path)]
        run = app.services.engines.own.live
        run.start(0)
        run.writer.live(run.refs[0][0], "assistant", "Your refund is on its way")
        await until(lambda: "● running" in screen_text(app) or "running" in screen_text(app), pilot)
        run.done(0, "failed", "no refund in it")
        run.done(1)
        run.done(2)
        run.finish()
        await until(lambda: not app.state.run.active, pilot)
        await until(lambda: app.state.by_id[FIRST].history, pilot)
        assert "✗1" in screen_text(app) and "✓2" in screen_text(app)


@pytest.mark.real
async def test_r_runs_one_case_in_place_and_plus_adds_an_attempt(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        app.screen.go_to(CasePointer(FIRST))
        await pilot.press("r")
        await until(lambda: app.state.run is not None, pilot)
        assert isinstance(app.screen, SuitesScreen)
        assert app.services.engines.own.requests[0].case_ids == [FIRST]
        app.services.engines.own.live.start(0)
        await pilot.press("plus")
        await pilot.pause()
        assert len(app.services.engines.own.requests) == 1  # it has only begun
        await until(lambda: "● refund is" in screen_text(app), pilot)
        await pilot.press("plus")
        await pilot.pause()
        assert len(app.services.engines.own.requests) == 1  # still running
        app.services.engines.own.live.done(0, "failed", "no")
        app.services.engines.own.live.finish()
        run_id = app.state.run.info.id
        await until(lambda: not app.state.run.active, pilot)
        await pilot.press("plus")
        await until(lambda: len(app.services.engines.own.requests) == 2, pilot)
        more = app.services.engines.own.requests[1]
        assert (more.attempts, more.first_attempt, more.linked_to) == (1, 2, run_id)


async def test_marked_cases_run_together(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        app.screen.go_to(CasePointer(FIRST))
        await pilot.press("space", "space", "r")
        await until(lambda: app.services.engines.own.requests, pilot)
        assert [name.partition("::")[2] for name in app.services.engines.own.requests[0].case_ids] == [
            "refund is approved",
            "greets by name",
        ]


async def test_capital_r_runs_what_did_not_pass(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["passed", "error"])
    async with running_app(root) as (app, pilot):
        await pilot.press("R")
        await until(lambda: app.services.engines.own.requests, pilot)
        assert app.services.engines.own.requests[0].case_ids == ["suites/support.yaml::greets by name"]


async def test_brackets_go_from_failure_to_failure(tmp_path):
    root = project(tmp_path)
    names = ["refund is approved", "greets by name", "calms an angry customer"]
    LiveRun(root, names).all_done(["failed", "passed", "error"])
    async with running_app(root) as (app, pilot):
        seen = []
        for key in ("]", "]", "]", "["):
            await pilot.press(key)
            seen.append(app.screen.current().case_id.partition("::")[2])
        assert seen == [names[0], names[2], names[0], names[2]]


@pytest.mark.real
async def test_filter_find_and_clear(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["failed", "passed"])
    async with running_app(root) as (app, pilot):
        await pilot.press("f", *"failed", "enter")
        await until(lambda: "greets by name" not in screen_text(app), pilot)
        assert "refund is approved" in screen_text(app)
        await pilot.press("F")
        await until(lambda: "greets by name" in screen_text(app), pilot)
        await pilot.press("slash", *"angry", "enter")
        assert app.screen.current().case_id.endswith("angry customer")
        await pilot.press("f", *"agnt:x", "enter")
        await until(lambda: "no agnt: to filter by" in screen_text(app), pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert not app.screen.query("Prompt")


async def test_folding_and_sorting(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("enter")
        await pilot.pause()
        assert "refund is approved" not in screen_text(app)
        await pilot.press("right", "i")
        await pilot.pause()
        assert "refund is approved" in screen_text(app)
        assert app.screen.view.failures_first


@pytest.mark.real
async def test_the_run_dialog_counts_and_asks(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("A")
        await until(lambda: isinstance(app.screen, RunDialog), pilot)
        await pilot.press("tab", "tab", "5")
        await until(lambda: "3 cases, 15 attempts" in screen_text(app), pilot)
        await pilot.press("tab", "x", "enter")
        await until(lambda: "must pass: a number" in screen_text(app), pilot)
        await pilot.press("backspace", "0", ".", "8", "enter")
        await until(lambda: app.services.engines.own.requests, pilot)
        assert (
            app.services.engines.own.requests[0].attempts,
            app.services.engines.own.requests[0].threshold,
        ) == (5, 0.8)


@pytest.mark.real
async def test_the_run_dialog_takes_where_it_runs(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("A")
        await until(lambda: isinstance(app.screen, RunDialog), pilot)
        await pilot.press(*["tab"] * [name for name, *_ in FIELDS].index("on"), *"ray:/h", "enter")
        await until(lambda: "on: must be here, ray (one on this machine)" in screen_text(app), pilot)
        await pilot.press("backspace", *"/head:10001", "enter")
        await until(lambda: app.services.engines.own.requests, pilot)
        assert app.services.engines.own.requests[0].on == "ray://head:10001"


async def test_x_on_a_line_of_several_tests_asks_first(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.state.run is not None and isinstance(app.screen, RunScreen), pilot)
        await until(lambda: "3 waiting" in screen_text(app), pilot)
        await pilot.press("g", "x")
        await until(lambda: isinstance(app.screen, AskScreen) and "of 3 tests?" in screen_text(app), pilot)
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        assert not app.services.engines.own.cancelled
        await pilot.press("x")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("y")
        await until(lambda: app.services.engines.own.cancelled, pilot)
        assert len(app.services.engines.own.cancelled[0][1]) == 3
        app.services.engines.own.live.finish()


@pytest.mark.real
async def test_x_cancels_the_case_and_capital_x_asks(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.state.run is not None and isinstance(app.screen, RunScreen), pilot)
        ref = app.services.engines.own.live.start(0)
        await until(lambda: app.state.run.counts.running == 1, pilot)
        # it leaves the line of those that wait
        await until(lambda: app.screen.case_list.cases.lines[0].entry is not None, pilot)
        app.screen.go_to(CasePointer(FIRST))
        await pilot.press("x")
        await until(lambda: app.services.engines.own.cancelled, pilot)
        assert app.services.engines.own.cancelled[0][1] == [ref]
        await pilot.press("X")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("n")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await pilot.press("X", "y")
        await until(lambda: len(app.services.engines.own.cancelled) == 2, pilot)
        assert app.services.engines.own.cancelled[1][1] is None
        await pilot.press("P")
        await until(lambda: app.services.engines.own.paused == [True], pilot)
        app.services.engines.own.live.finish()


@pytest.mark.parametrize(("key", "left"), [("d", True), ("escape", False), ("s", True)])
async def test_q_during_a_run_asks(tmp_path, key, left):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.state.run is not None and isinstance(app.screen, RunScreen), pilot)
        await pilot.press("q")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        assert "the run goes on" in screen_text(app)
        await pilot.press(key)
        await until(lambda: app._exit is left, pilot)
        assert bool(app.services.engines.own.cancelled) == (key == "s")
        app.services.engines.own.live.finish()


async def test_q_and_escape_without_a_run(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("question_mark")
        assert isinstance(app.screen, PaperScreen) and "find here" in screen_text(app)
        await pilot.press("escape", "escape", "escape")
        assert isinstance(app.screen, SuitesScreen) and not app._exit
        await pilot.press("q")
        assert app._exit and app.return_code == 0


async def test_what_was_left_comes_back(tmp_path):
    root = project(tmp_path)
    async with running_app(root) as (app, pilot):
        app.screen.go_to(CasePointer("suites/support.yaml::calms an angry customer"))
        app.screen.set_filter("calms")
        app.theme = "nord"
        await pilot.press("Q")
    async with running_app(root) as (app, _):
        assert app.screen.current().case_id.endswith("angry customer")
        assert app.screen.expression == "calms" and app.theme == "nord"


async def test_an_open_run_is_shown_at_once(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved", "greets by name"])
    run.all_done(["failed", "passed"])
    async with running_app(root, size=(120, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        await until(lambda: "case 0 went wrong" in screen_text(app), pilot)
        assert "finished" in screen_text(app)
        await pilot.press("enter")
        await until(lambda: type(app.screen).__name__ == "CaseScreen", pilot)
        assert app.places.navigate(1, True).case_id == FIRST
        await pilot.press("escape", "U")
        assert isinstance(app.screen, SuitesScreen)


async def test_the_palette_finds_actions_and_cases(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("colon")
        await pilot.pause()
        await pilot.press(*"angry")
        await until(lambda: "calms an angry" in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: type(app.screen).__name__ == "CaseScreen", pilot)


async def test_trust_is_asked_once_and_remembered(tmp_path):
    suite = "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n  - vars: {q: one}\n"
    root = project(tmp_path, {"promptfooconfig.yaml": suite})
    async with running_app(root) as (app, pilot):
        app.suites.ask_trust(["read /etc/hostname", "run check.py", "run check.py"])
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await until(lambda: "run check.py" in screen_text(app), pilot)
        await pilot.press("y")
        await until(lambda: "run check.py" in app.state.agreed, pilot)
        assert not app.state.trusted and {"run check.py", "read /etc/hostname"} <= trust_store.agreed(root)
        await until(lambda: not isinstance(app.screen, AskScreen), pilot)
        app.suites.ask_trust(["run check.py"])
        await pilot.pause()
        assert not isinstance(app.screen, AskScreen)
        app.suites.ask_trust(["run check.py", "run another.py"])
        await until(lambda: "run another.py" in screen_text(app), pilot)
        assert "run check.py" not in screen_text(app)
        await pilot.press("n")
        await until(lambda: not isinstance(app.screen, AskScreen), pilot)
        app.suites.ask_trust(["run another.py"])
        await pilot.pause()
        assert not isinstance(app.screen, AskScreen) and "run another.py" not in app.state.agreed


@pytest.mark.parametrize("before", [("slash", "m"), ("j",)], ids=["field", "list"])
async def test_what_is_typed_on_is_no_answer_to_the_question_of_trust(tmp_path, monkeypatch, before):
    suite = "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n  - vars: {q: one}\n"
    root = project(tmp_path, {"promptfooconfig.yaml": suite})
    async with running_app(root) as (app, pilot):
        monkeypatch.setattr(dialogs, "PAUSE", 60.0)
        await pilot.press(*before)
        app.suites.ask_trust(["run check.py"])
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await until(lambda: "run check.py" in screen_text(app), pilot)
        assert dialogs.TOO_SOON not in screen_text(app)
        await pilot.press("y", "o", "n", "escape")
        assert isinstance(app.screen, AskScreen) and not app.state.agreed
        await until(lambda: dialogs.TOO_SOON in screen_text(app), pilot)
        monkeypatch.setattr(dialogs, "PAUSE", 0.0)
        await pilot.press("y")
        await until(lambda: "run check.py" in app.state.agreed, pilot)


async def test_code_is_asked_about_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("FAR_KEY", "a-key-of-the-person")
    suite = """\
prompts: ['{{q}} {{ env.HARMLESS }}']
providers: [echo]
tests:
  - vars: {q: one}
    assert:
      - {type: python, value: 'len(output) > 0'}
      - {type: python, value: file://checks/check.py}
"""
    root = project(
        tmp_path,
        {
            "promptfooconfig.yaml": suite,
            **{
                f"suites/{name}.yaml": f"agent: {name}\ntest_cases:\n  - {{name: a, input: b}}\n"
                for name in ("mine", "far")
            },
            "tui_eval.yaml": "agents:\n  mine: {type: command, command: [./run-me, 'a b']}\n"
            "  far: {type: openai, base_url: 'https://far.example/v1', model: m, api_key: '${FAR_KEY}'}\n",
        },
    )
    async with running_app(root) as (app, pilot):
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await until(lambda: "run checks/check.py" in screen_text(app), pilot)
        asked = sorted(app.suites.declined)  # the screen cuts what is long
        for what in ("run inline Python of promptfooconfig.yaml: len(output) > 0 [", "run ./run-me 'a b' ("):
            assert any(one.startswith(what) for one in asked), (what, asked)
        assert "read the environment variable FAR_KEY for far.example (agents.far)" in asked, asked
        text = screen_text(app)
        assert max(text.index("run inline"), text.index("run checks/check.py")) < text.index("run ./run-me")
        await pilot.press("o")
        await until(lambda: "run checks/check.py" in app.state.agreed, pilot)
        assert not app.state.trusted and not trust_store.agreed(root)


async def test_after_an_edit_only_the_changed_file_is_read(tmp_path, monkeypatch):
    from tests.support.live_run import SUITE

    root = project(tmp_path, {"suites/a.yaml": SUITE, "suites/b.yaml": SUITE})
    async with running_app(root) as (app, pilot):
        read: list[list[str]] = []
        reload = app.suites.loader.reload
        monkeypatch.setattr(
            app.suites.loader,
            "reload",
            lambda suites, *said: (read.append([s.path for s in suites]), reload(suites, *said)),
        )

        def edit(_app, path, line=0, others=()):
            assert (Path(path), line) == (root / "suites/b.yaml", 3)
            Path(path).write_text(SUITE.replace("refund is approved", "refund is refused"))
            return ""

        monkeypatch.setattr("tui_eval.tui.terminal.editor.edit", edit)
        app.screen.go_to(CasePointer("suites/b.yaml::refund is approved"))
        await pilot.press("e")
        await until(lambda: "refund is refused" in screen_text(app), pilot)
        assert read == [["suites/b.yaml"]]


async def test_hostile_names_reach_the_screen_as_text(tmp_path):
    name = "[red]x[/] \\u001b]52;c;aGk=\\u0007 [/nope"
    suite = f'agent: offline\ntest_cases:\n  - name: "{name}"\n    input: hi\n    expected: {{should_contain: [hi]}}\n'
    async with running_app(project(tmp_path, {"suites/s.yaml": suite}), size=(120, 40)) as (app, pilot):
        await pilot.press("j", "j")
        await rested(pilot)
        text = screen_text(app)
        assert "[red]x[/]" in text and "\x1b" not in text and "\x07" not in text


async def test_letters_where_there_is_no_utf8(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["failed", "passed"])
    async with running_app(root, unicode=False) as (app, _):
        cases = app.screen.query_one(CaseList)
        text = "\n".join(cases.render_line(y).text for y in range(cases.size.height))
        assert "F refund" in text and text.replace("…", "").isascii()


async def test_narrow_and_wide(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        app.screen.go_to(CasePointer(FIRST))
        await pilot.press("tab")
        await until(lambda: "I want a refund" in screen_text(app), pilot)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen.query_one(CaseList).display
        await pilot.resize_terminal(120, 40)
        await until(lambda: "I want a refund" in screen_text(app), pilot)
        assert app.screen.query_one(CaseList).display


@pytest.mark.real
def test_importing_the_app_imports_nothing_heavy():
    heavy = [
        "duckdb",
        "polars",
        "pyhocon",
        "jinja2",
        "sqlglot",
        "quickjs",
        "httpx",
        "aiohttp",
        "jsonschema",
        "html5lib",
    ]
    code = f"import sys, tui_eval.tui.app; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


async def test_a_refusal_of_the_engine_is_said_and_logged(tmp_path):
    from tui_eval.engine.service.client import EngineError

    class Refusing(FakeEngine):
        async def run(self, request):
            raise EngineError("nothing to run: [no] agent")

    root = project(tmp_path)
    async with running_app(root, engine=Refusing(root)) as (app, pilot):
        await pilot.press("a")
        await until(lambda: app.notices.lines, pilot)
        await pilot.press("l")
        await until(lambda: "nothing to run: [no] agent" in screen_text(app), pilot)


async def test_keys_typed_ahead_of_a_prompt_are_its_text(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        for key in "farRX":  # posted at once, as a slow line brings them
            app.post_message(Key(key, key))
        await until(lambda: app.screen.query(Prompt), pilot)
        await until(lambda: app.screen.query_one(Input).value == "arRX", pilot)
        assert not app.services.engines.own.requests and isinstance(app.screen, SuitesScreen)


HIDDEN = "touch PWNED-by-the-middle"
LONG_COMMAND = f"echo hello ; true {'x' * 60} ; {HIDDEN} ; true {'y' * 90}"


@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40), (44, 20)], (44, 20)))
async def test_what_is_agreed_to_is_read_whole_and_agreed_to_after_its_last_line(tmp_path, size):
    """A command's dangerous part in its middle, and things beyond the first page."""
    agents = f'agents:\n  cmd: {{type: command, command: [sh, -c, "{LONG_COMMAND}"]}}\n' + "".join(
        f"  more{n}: {{type: command, command: [sh, -c, 'echo {n} {chr(97 + n) * 120} last-{n}']}}\n"
        for n in range(8)
    )
    suites = {
        f"suites/{name}.yaml": f"agent: {name}\ntest_cases:\n  - {{name: a, input: b}}\n"
        for name in ("cmd", *(f"more{n}" for n in range(8)))
    }
    root = project(tmp_path, {**suites, "tui_eval.yaml": agents})
    async with running_app(root, size) as (app, pilot):
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await until(lambda: "more lines (" in screen_text(app), pilot)
        await pilot.press("y")
        await until(lambda: "first read on" in screen_text(app), pilot)
        await pilot.press("o")
        assert isinstance(app.screen, AskScreen) and not app.state.agreed and not trust_store.agreed(root)
        shown, seen = "", ""
        for _ in range(80):
            text = screen_text(app)
            assert "always for this folder" in text and "this time" in text, text
            if text == seen:
                break
            seen = text
            lines = [line.partition("│")[2].rpartition("│")[0].strip() for line in text.splitlines()]
            shown += "".join(line for line in lines if " more line" not in line).replace(" ", "")
            await pilot.press("pagedown")
        for what in (LONG_COMMAND, *(f"last-{n}" for n in range(8))):
            assert what.replace(" ", "") in shown, (what, shown)
        await pilot.press("o")
        await until(lambda: len(app.state.agreed) == 9, pilot)


async def test_what_nobody_can_read_is_not_agreed_to(tmp_path):
    root = project(tmp_path, {"promptfooconfig.yaml": "prompts: [p]\nproviders: [echo]\n"})
    async with running_app(root) as (app, pilot):
        app.suites.ask_trust([f"run sh -c '{'x' * 6_000}' (the agent cmd)"])
        await pilot.pause()
        assert not isinstance(app.screen, AskScreen)
        assert any("cannot be agreed to here" in text for _, _, text in app.notices.lines)
        app.suites.ask_trust([f"run sh -c '{'x' * 6_000}' (the agent cmd)", "run check.py"])
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("o")
        await until(lambda: app.state.agreed == {"run check.py"}, pilot)


@pytest.mark.real
async def test_what_is_said_stands_in_the_footer_and_covers_nothing(tmp_path):
    root = project(tmp_path)
    async with running_app(root) as (app, pilot):
        before = screen_text(app).splitlines()
        await pilot.press("R")
        await until(lambda: "nothing shown has failed" in screen_text(app).splitlines()[-1], pilot)
        assert "enter fold" not in screen_text(app).splitlines()[-1] and not app._notifications
        assert screen_text(app).splitlines()[:-1] == before[:-1]
        await until(lambda: "enter fold" in screen_text(app).splitlines()[-1], pilot)


async def test_words_of_a_case_leave_the_names_of_its_tabs(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["failed"])
    async with running_app(root) as (app, pilot):
        app.services.places.open_case(CasePointer(FIRST))
        await until(lambda: "6 History" in screen_text(app), pilot)
        tabs = next(line for line in screen_text(app).splitlines() if "6 History" in line)
        await pilot.press("less_than_sign")
        await until(lambda: "no earlier attempt" in screen_text(app).splitlines()[-1], pilot)
        assert tabs in screen_text(app).splitlines()


async def test_what_is_said_while_a_case_opens_is_no_fault(tmp_path):
    root = project(tmp_path)
    async with running_app(root) as (app, pilot):
        app.services.places.open_case(CasePointer(FIRST))
        app.services.notices.say("run finished: 3 passed")  # its screen has nothing in it yet
        await until(lambda: "6 History" in screen_text(app), pilot)
        assert app.notices.lines[-1][2] == "run finished: 3 passed"


@pytest.mark.real
async def test_below_a_question_no_keys_are_named_and_what_runs_still_is(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved"])
    run.start(0)
    async with running_app(root) as (app, pilot):
        await until(lambda: "● 0/1" in screen_text(app) and "? help" in screen_text(app), pilot)
        await pilot.press("q")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await until(lambda: "? help" not in screen_text(app), pilot)
        assert "● 0/1" in screen_text(app).splitlines()[-1]
        await pilot.press("escape")
        await until(lambda: "? help" in screen_text(app), pilot)
        run.finish()
