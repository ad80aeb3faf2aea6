"""The table of keys: no clashes, every action there, every key in the help."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest
from textual.binding import Binding

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import FakeEngine, LiveRun, project
from tui_eval.tui.app import EvalApp
from tui_eval.tui.keys import CASE_KEYS, KEYS, bindings, remap, written
from tui_eval.tui.screens.help import PaperScreen, help_paragraphs
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.settings import Settings, read_settings
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.widgets.bars import KeyHints


def test_ids_are_unique():
    assert not [name for name, count in Counter(key.id for key in (*KEYS, *CASE_KEYS)).items() if count > 1]


@pytest.mark.parametrize("places", [("everywhere", "moving", "list", "screen", "run")])
def test_no_key_means_two_things_in_one_place(places):
    keys = Counter(part for key in KEYS if key.place in places for part in key.keys.split(","))
    assert not [key for key, count in keys.items() if count > 1]


async def test_a_key_of_another_place_says_where_it_works(tmp_path):
    """`B`, `u`, `p` and `>` did nothing in lists, without a word."""
    root = project(tmp_path)
    LiveRun(root, ["suites/support.yaml::one"]).all_done(["failed"])
    async with running_app(root, engine=FakeEngine(root)) as (app, pilot):
        for key, words in (
            ("B", "B works in a case that is open (enter): run again from this turn on"),
            ("u", "u works in Runs (H): go on with an interrupted run"),
            ("p", "p works in a case that is open (enter): the pane's whole text in $PAGER"),
            ("greater_than_sign", "> works in a case that is open (enter): next attempt"),
            ("right_curly_bracket", "} works in a case that is open (enter): next turn"),
        ):
            await pilot.press(key)
            await until(lambda words=words: app.notices.lines[-1][2] == words, pilot)
        said = len(app.notices.lines)
        await pilot.press(
            "j", "ctrl+k", "f", *"Bup"
        )  # what is typed is none, nor is what means nothing anywhere
        await until(lambda: "Bup" in screen_text(app), pilot)
        assert len(app.notices.lines) == said


def test_every_key_has_exactly_one_handler(tmp_path):
    app = EvalApp([tmp_path], root=tmp_path, engine=cast(Any, FakeEngine(tmp_path)))
    assert not app.handlers.missing
    for key_id in ("case.rerun", "list.sort"):
        with pytest.raises(ValueError, match=f"{key_id}: has a handler"):
            app.handlers.add({key_id: app.places.back})
    with pytest.raises(ValueError, match="no key of that id"):
        app.handlers.add({"case.juggle": app.places.back})


async def test_lists_hand_over_a_handler_for_every_key_of_theirs(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        suites = app.screen
        await pilot.press("L")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        own = {key.id for key in KEYS if key.place == "screen"}
        assert set(suites.handlers()) == own
        assert set(app.screen.handlers()) == own | {key.id for key in KEYS if key.place == "run"}


def test_no_key_needs_what_ssh_and_tmux_swallow():
    for key in KEYS:
        for part in key.keys.split(","):
            assert not part.startswith(("alt+", "ctrl+b", "f1", "f2")) and "ctrl+enter" not in part


def footer(app, width: int) -> str:
    """The keys at the bottom, after a look at whether they are as promised."""
    hints = app.screen.query_one(KeyHints)
    assert all(key.label for key in hints.keys) and len(hints.keys) <= 7
    shown = screen_text(app).splitlines()[-1]
    if width >= 80:
        for key in hints.keys:
            assert f"{key.shown} {key.label}" in shown
    assert "? help" in shown or isinstance(app.screen, PaperScreen)
    return shown


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (60, 16)], (60, 16)))
async def test_the_footer_has_at_most_seven_keys_of_the_place(tmp_path, size):
    root = project(tmp_path)
    async with running_app(root, size) as (app, pilot):
        assert "r run" in footer(app, size[0])
        await pilot.press("j", "j", "tab")
        await until(lambda: "tab list" in footer(app, size[0]) and "e edit" in footer(app, size[0]), pilot)
        await pilot.press("tab", "L")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        assert "a run all" in footer(app, size[0]) and "H runs" in footer(app, size[0])
        run = LiveRun(root, ["refund is approved", "greets by name"])
        app.front_run.follow(run.folder)
        run.writer.live(run.start(0), "assistant", "words")
        await until(lambda: "tab panes" in footer(app, size[0]), pilot)
        await pilot.press("tab")
        await until(lambda: "tab next pane" in footer(app, size[0]), pilot)
        await until(lambda: "t follow" in footer(app, size[0]) and "v pin" in footer(app, size[0]), pilot)
        await pilot.press("escape")
        await until(lambda: "tab panes" in footer(app, size[0]), pilot)
        run.done(0, "failed")
        run.done(1)
        run.finish()
        await until(lambda: "R rerun failed" in footer(app, size[0]), pilot)
        await pilot.press("tab")
        if size[0] < 100:
            await until(lambda: "tab list" in footer(app, size[0]), pilot)
        await pilot.press("escape")
        await until(lambda: "enter open" in footer(app, size[0])[:12], pilot)
        for key in ("comma", "question_mark", "l"):
            await pilot.press(key)
            await until(lambda: isinstance(app.screen, PaperScreen), pilot)
            assert "esc back" in footer(app, size[0])
            await pilot.press("escape")
            await until(lambda: isinstance(app.screen, RunScreen), pilot)


@pytest.mark.parametrize("size", mostly_real([(80, 24), (60, 16)], (60, 16)))
async def test_the_footer_names_what_enter_does_on_each_line(tmp_path, size):
    async with running_app(project(tmp_path), size) as (app, pilot):
        await until(lambda: len(app.screen.case_list.cases.lines) > 2, pilot)
        for line, does in (("folder", "fold"), ("suite", "fold"), ("case", "open")):
            await until(lambda does=does: f"enter {does} " in footer(app, size[0])[:13], pilot)
            assert app.screen.case_list.current_line.kind == line
            await pilot.press("j")
        await pilot.press("g", "enter")
        await until(lambda: "enter unfold " in footer(app, size[0])[:15], pilot)


async def test_no_footer_names_a_filter_that_there_is_not_while_its_screen_comes_up(tmp_path, monkeypatch):
    painted: list[str] = []
    paint = KeyHints.row_line

    def seen(self, row):
        line = paint(self, row)
        painted.append(plain(line))
        return line

    monkeypatch.setattr(KeyHints, "row_line", seen)
    root = project(tmp_path)
    async with running_app(root) as (app, pilot):
        await until(lambda: "a run all" in painted[-1], pilot)
        await pilot.press("a")
        await until(lambda: isinstance(app.screen, RunScreen) and "tab panes" in painted[-1], pilot)
    assert not [line for line in painted if "F clear" in line], painted


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (60, 16)], (60, 16)))
async def test_the_footer_of_runs_without_one_and_in_the_figures(tmp_path, size):
    root = project(tmp_path)
    async with running_app(root, size) as (app, pilot):
        await pilot.press("H")
        await until(lambda: "No run yet" in screen_text(app), pilot)
        await until(
            lambda: (
                footer(app, size[0]).split() == ["a", "run", "all", "U", "suites", "?", "help", "q", "quit"]
            ),
            pilot,
        )
        assert "passed" not in screen_text(app)  # no headings over nothing
        for _ in range(2):
            LiveRun(root, ["refund is approved"]).all_done(["failed"])
        app.screen.load()
        await until(lambda: "enter open" in footer(app, size[0]), pilot)
        await pilot.press("tab")
        await until(lambda: "tab list" in footer(app, size[0]), pilot)
        await pilot.press("tab")
        await until(lambda: "space mark" in footer(app, size[0]), pilot)


def test_help_lists_every_key_of_the_place():
    for screen in (SuitesScreen, RunScreen):
        text = "\n".join(text for _, text in help_paragraphs("x", screen.KEY_SECTIONS))
        for place in ("everywhere", "moving", "list", "screen"):
            for binding in bindings(place):
                for key in Binding.make_bindings([binding]):
                    assert written(key.key) in text


def test_settings_remap_keys_and_say_what_is_wrong(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(
        "theme: nord\ncolour: red\nkeymap:\n  case.rerun: [f5, ';']\n  case.rerunn: x\n"
        "  run.all: q\n  list.sort: nokey\n  case.raw: '?'\n"
    )
    settings = read_settings(file)
    assert settings.theme == "nord" and settings.keymap == {"case.rerun": "f5,semicolon"}
    text = "\n".join(settings.problems)
    for part in (
        "colour: unknown",
        "settings.yaml:2: colour: unknown",
        "settings.yaml:5: keymap.case.rerunn: no action of that name; did you mean case.rerun?",
        "q is already the key of quit",
        "nokey is no key",
    ):
        assert part in text
    assert "? is already the key of help" in text and len(settings.problems) == 5


def test_damaged_settings_are_a_problem_and_absent_ones_are_not(tmp_path):
    assert read_settings(tmp_path / "none.yaml") == Settings()
    for text in ("[a", "- a", "keymap: 3"):
        (tmp_path / "s.yaml").write_text(text)
        (problem,) = read_settings(tmp_path / "s.yaml").problems
        assert problem.startswith(("s.yaml:1: ", "s.yaml:2: not valid YAML"))


def test_a_setting_that_is_given_twice_is_said(tmp_path):
    (tmp_path / "s.yaml").write_text("theme: nord\nmouse: true\ntheme: dracula\n")
    settings = read_settings(tmp_path / "s.yaml")
    (problem,) = settings.problems
    assert problem.startswith("s.yaml:3: theme: given twice, on lines 1 and 3") and settings.mouse


def test_filters_that_cannot_be_used_are_said_and_left_out(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(
        "filters:\n  slow: failed duration:>5s\n  both: '@slow star'\n"
        "  my slow: failed\n  typo: durtion:>5s\n  none:\n"
    )
    settings = read_settings(file)
    assert settings.filters == {"slow": "failed duration:>5s", "both": "@slow star"}
    assert [problem.partition("filters.")[2] for problem in settings.problems] == [
        "my slow: a name is one word: @my_slow",
        "typo: no durtion: to filter by; duration: is meant?",
        "none: must be text, such as failed duration:>5s",
    ]


async def test_a_remapped_key_works_and_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tui-eval").mkdir()
    (tmp_path / "tui-eval" / "settings.yaml").write_text("keymap: {case.rerun: f5}")
    async with running_app(project(tmp_path)) as (app, pilot):
        assert "f5 run" in screen_text(app)
        app.screen.go_to(CasePointer("suites/support.yaml::greets by name"))
        await pilot.press("r")
        await pilot.pause()
        assert not app.services.engines.own.requests
        await pilot.press("f5")
        await until(lambda: app.services.engines.own.requests, pilot)
    remap({})
