"""The place of the person's settings, what the palette finds, help that is not cut."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import project
from tests.tui.state.lists.test_list_reasons import PROMPTS
from tui_eval.tui.keys import KEYS, remap
from tui_eval.tui.screens.help import PaperScreen, help_paragraphs
from tui_eval.tui.screens.settings_place import EXAMPLE, InForce, SettingsScreen, settings_paragraphs
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.settings import Settings, read_settings, settings_file
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.terminal import editor

SIZES = pytest.mark.parametrize("size", mostly_real([(80, 24), (60, 16)], (60, 16)))


@pytest.mark.real
@SIZES
async def test_settings_are_shown_edited_and_hold_at_once(tmp_path, monkeypatch, size):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    written: list[str] = []

    def edit(app, path, *_):
        written.append(path.read_text())
        path.write_text(
            "theme: tui-eval-light\nkeymap: {case.rerun: f5}\nfilters: {slow: failed}\ncolour: red\n"
        )
        return ""

    monkeypatch.setattr(editor, "edit", edit)
    async with running_app(project(tmp_path), size) as (app, pilot):
        await pilot.press("comma")
        await until(lambda: isinstance(app.screen, SettingsScreen), pilot)
        await until(lambda: "none yet: e begins one" in " ".join(screen_text(app).split()), pilot)
        assert "t theme" in screen_text(app)
        await pilot.press("e")
        await until(lambda: app.services.settings.keymap == {"case.rerun": "f5"}, pilot)
        assert written == [EXAMPLE] and app.theme == "tui-eval-light"
        await until(lambda: "colour: unknown" in " ".join(screen_text(app).split()), pilot)
        await pilot.press("G")
        await until(lambda: "run the case, or the marked ones" in " ".join(screen_text(app).split()), pilot)
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, SuitesScreen), pilot)
        await until(lambda: "f5 run" in screen_text(app), pilot)
    remap({})


async def test_an_editor_that_is_left_without_saving_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    opened = []
    monkeypatch.setattr(editor, "edit", lambda app, path, *_: opened.append(path.read_text()) or "")
    async with running_app(project(tmp_path)) as (app, pilot):
        await pilot.press("comma")
        await until(lambda: isinstance(app.screen, SettingsScreen), pilot)
        await pilot.press("e")
        await until(lambda: opened, pilot)
        assert opened == [EXAMPLE] and not settings_file().exists()
        settings_file().write_text(EXAMPLE)
        await pilot.press("e")
        await until(lambda: len(opened) == 2, pilot)
        assert settings_file().exists(), "what was there before stays"


def test_the_example_is_a_settings_file_in_its_every_line(tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text(EXAMPLE)
    assert read_settings(file) == Settings()
    keys = EXAMPLE.partition("\n#\n")[2].replace("# ", "", 1).replace("\n# ", "\n")
    file.write_text(keys)
    settings = read_settings(file)
    assert (
        not settings.problems and settings.theme and settings.notify and settings.filters and settings.keymap
    )


def test_settings_say_what_is_in_force_and_where_it_is_from(tmp_path):
    settings = Settings(
        theme="nord", filters={"slow": "failed"}, keymap={"run.all": "f9"}, problems=["x: bad"]
    )
    now = InForce("nord", 30, False, {"mine": "tag:a\x1b[2J"})
    told = settings_paragraphs(settings, tmp_path / "none", now, KEYS)
    text = "\n".join(words for _, words in told)
    assert ("bad", "x: bad") in told and "nord (from the file)" in text and "slow line" in text
    assert "@slow\x00failed (file)" in text and "(this project)" in text and "\x1b" not in text
    assert "f9\x00run.all: run all shown" in text
    plain = settings_paragraphs(settings, tmp_path / "none", replace(now, plain=True), KEYS)
    assert "nord (NO_COLOR is set: the terminal's own colours stay" in "\n".join(words for _, words in plain)


async def test_the_list_of_themes_begins_with_the_one_in_force(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        app.theme = "nord"
        await pilot.press("comma", "t")
        await until(lambda: "nord  in force" in screen_text(app), pilot)
        shown = [line.strip("▁▂▃▄▅▆▇█ ") for line in screen_text(app).splitlines()]
        first = next(number for number, line in enumerate(shown) if line.endswith("nord  in force"))
        assert [line.split()[-1] for line in shown[first + 1 : first + 4]] == [
            "tui-eval",
            "tui-eval-light",
            "ansi-dark",
        ]
        await pilot.press(*"drac")
        await until(lambda: "dracula" in screen_text(app) and "in force" not in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: app.theme == "dracula", pilot)


async def test_a_theme_that_does_not_exist_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tui-eval").mkdir()
    (tmp_path / "tui-eval" / "settings.yaml").write_text("theme: neon")
    async with running_app(project(tmp_path)) as (app, pilot):
        await until(lambda: any("there is no neon" in text for _, _, text in app.notices.lines), pilot)


@pytest.mark.real
@SIZES
async def test_the_palette_tells_keys_and_cases_apart(tmp_path, size):
    root = project(tmp_path, {"promptfooconfig.yaml": PROMPTS})
    async with running_app(root, size) as (app, pilot):
        await pilot.press("colon")
        await until(lambda: "a       Run all shown" in screen_text(app), pilot)
        assert "an action, a place, or a case by its name" in screen_text(app)
        await pilot.press(*"kettle")
        await until(
            lambda: (
                {"terse", "warm"}
                <= {line.rpartition("· ")[2].strip() for line in screen_text(app).splitlines()}
            ),
            pilot,
        )
        await pilot.press("ctrl+u", *"theme")
        await until(lambda: "The theme: other colours" in screen_text(app), pilot)


@pytest.mark.real
@SIZES
async def test_help_begins_with_the_place_and_cuts_no_words(tmp_path, size):
    async with running_app(project(tmp_path), size) as (app, pilot):
        await pilot.press("question_mark")
        await until(lambda: isinstance(app.screen, PaperScreen), pilot)
        await until(lambda: screen_text(app).splitlines()[1].strip() == "The list", pilot)
        seen = ""
        for _ in range(12):
            seen += " " + " ".join(line[14:].strip() for line in screen_text(app).splitlines()[1:-1])
            await pilot.press("pagedown")
            await pilot.pause()
        assert "judge the recorded answer again, sending nothing" in seen
        assert "paint the screen anew, where something wrote over it" in seen


@SIZES
async def test_the_log_has_times_beside_words_and_tells_errors(tmp_path, size):
    async with running_app(project(tmp_path), size) as (app, pilot):
        app.notices.log("note", "all is well " * 9)
        app.notices.log("error", "suites/a.yaml:3: broken\nin its second line\x1b[2J")
        await pilot.press("l")
        await until(lambda: "broken" in screen_text(app), pilot)
        text = screen_text(app)
        lines = text.splitlines()
        error = next(line for line in lines if "broken" in line)
        assert error.strip()[2] == ":" and "! suites/a.yaml:3: broken" in error and "\x1b" not in text
        second = next(line for line in lines if "second line" in line)
        assert second.index("in its") == error.index("!")
        assert " ".join(line[15:].strip() for line in lines if "well" in line).count("all is well") == 9
        assert "q close" in lines[-1]


def test_arrows_have_names_where_there_are_none():
    told = [text for _, text in help_paragraphs("x", SuitesScreen.KEY_SECTIONS, Symbols(unicode=False))]
    assert "right\x00unfold" in told and "j down\x00down" in told
    assert not any("→" in text.partition("\x00")[0] for text in told)


async def test_many_mistakes_of_the_settings_are_one_notice(tmp_path, monkeypatch):
    """Each had one of its own with the whole path, and nothing of the screen was left to see."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tui-eval").mkdir()
    (tmp_path / "tui-eval" / "settings.yaml").write_text("a: 1\nmouse: x\nnotify: [b]\nkeymap: {quti: x}\n")
    async with running_app(project(tmp_path)) as (app, pilot):
        await until(lambda: len(app._notifications) > 0, pilot)
        (notice,) = app._notifications
        assert notice.message.startswith(
            "4 things are wrong in your settings (, lists them); first: settings.yaml:1: a: unknown"
        )
        told = [text for _, _, text in app.notices.lines if text.startswith("settings.yaml:")]
        assert [text.split(":")[1] for text in told] == ["1", "2", "3", "4"], "the log has all of them"


async def test_a_theme_that_there_is_not_is_said_until_it_is_mended(tmp_path, monkeypatch):
    """Saved once more with another change, the file had nothing wrong with it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "tui-eval").mkdir()
    file = tmp_path / "tui-eval" / "settings.yaml"
    file.write_text("theme: nrod\n")
    async with running_app(project(tmp_path)) as (app, _):
        said = ["settings.yaml:1: theme: there is no nrod; did you mean nord?"]
        settings = app.services.settings
        assert settings.problems == said
        file.write_text("theme: nrod\nmouse: false\n")
        app.services.take_settings()
        assert settings.problems == said
        file.write_text("theme: nord\n")
        app.services.take_settings()
        assert settings.problems == [] and app.theme == "nord"
