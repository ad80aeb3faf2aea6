"""All controllers put together without an app: every key has its handler, and they know of each other what
they must."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.support.alone import Alone, FakeList
from tests.support.live_run import LiveRun, project
from tui_eval.tui.controllers.appearance import Appearance
from tui_eval.tui.controllers.put_together import RUNNING, Controllers
from tui_eval.tui.memory import recall
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.services import Window
from tui_eval.tui.state.lists.case_tree import TreeLine


def made(alone: Alone) -> Controllers:
    window = cast(Window, alone.window)
    return Controllers(
        window, alone.core, [alone.root], Appearance(window, alone.core, no_color=False), lambda: False
    )


def test_every_key_has_a_handler_but_the_one_of_the_renderer(tmp_path: Path) -> None:
    assert made(Alone(project(tmp_path))).handlers.missing == {"redraw"}


async def test_what_runs_and_what_is_watched_stands_at_the_end_of_every_footer(tmp_path: Path) -> None:
    alone = Alone(project(tmp_path))
    controllers = made(alone)
    await alone.read()
    assert controllers.services.status() == ""
    run = LiveRun(alone.root, ["refund is approved", "greets by name"])
    run.start(0)
    run.done(0)
    run.writer.flush()
    alone.show_run(run.folder)
    assert controllers.services.status().startswith("● 1/2 ✓1")
    alone.list.line = TreeLine("folder", "suites/", 0, "suites/")
    await controllers.handlers.do("watch")
    await alone.settle()
    words = controllers.services.status()
    assert words.startswith("watch: suites/  ● 1/2")
    assert controllers.watching.followed() == list(controllers.saved.others())  # not read twice on a save
    await controllers.handlers.do("watch")
    alone.window.stack.append(FakeList(alone.state, "run"))
    assert controllers.services.status() == ""  # the screen is about the run


async def test_what_is_read_again_is_told_to_those_who_wait_for_it(tmp_path: Path) -> None:
    alone = Alone(project(tmp_path))
    controllers = made(alone)
    alone.window.stack = [alone.list]
    controllers.suites.load()
    await alone.settle()
    assert controllers.saved.follows and len(alone.state.rows) == 3
    controllers.saved.stop()


async def test_settings_that_changed_are_the_appearances_and_the_mouses(tmp_path: Path) -> None:
    from tui_eval.tui.settings import settings_file

    alone = Alone(project(tmp_path))
    controllers = made(alone)
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text("theme: tui-eval-light\nmouse: true\n")
    controllers.services.take_settings()
    assert alone.window.theme == "tui-eval-light" and ("mouse", True) in alone.window.done


async def test_leaving_keeps_the_theme_for_the_next_time(tmp_path: Path) -> None:
    alone = Alone(project(tmp_path))
    controllers = made(alone)
    alone.window.theme = "nord"
    await controllers.handlers.do("detach")
    assert recall(tmp_path)["theme"] == "nord" and alone.window.done[-1] == ("left", 0, "")


async def test_a_key_of_a_place_is_done_by_what_has_the_focus_else_by_the_screen_else_said(
    tmp_path: Path,
) -> None:
    alone = Alone(project(tmp_path))
    controllers = made(alone)
    await controllers.handlers.do("list.filter")
    assert alone.said == "not here"
    done: list[str] = []
    alone.list.handlers = lambda: {"list.filter": lambda: done.append("screen")}  # type: ignore[method-assign]
    await controllers.handlers.do("list.filter")
    assert done == ["screen"]


@pytest.mark.parametrize("key", RUNNING)
async def test_a_key_that_runs_asks_again_first_for_the_trust_that_esc_put_off(
    tmp_path: Path, key: str
) -> None:
    alone = Alone(project(tmp_path))
    controllers = made(alone)
    controllers.suites.load()
    await alone.settle()
    controllers.suites.ask_trust(["run a.py"])
    alone.window.close(alone.window.screen, None)
    await controllers.handlers.do(key)
    await alone.settle()
    assert isinstance(alone.window.screen, AskScreen) and not alone.engine.requests
    assert alone.said.startswith("needs trust: run a.py")
