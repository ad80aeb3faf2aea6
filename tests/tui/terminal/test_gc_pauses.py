"""Python's garbage collector looks through everything only when nobody types."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from tests.support.app_host import running_app
from tests.support.live_run import project
from tui_eval.tui.terminal import gc_pauses
from tui_eval.tui.terminal.gc_pauses import NEVER, TOO_MUCH, WORTH, Collecting


def test_it_is_done_when_no_key_was_pressed_or_when_there_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    keys, young = [0], [WORTH]
    monkeypatch.setattr(gc_pauses.gc, "collect", lambda: done.append("all"))
    monkeypatch.setattr(gc_pauses.gc, "get_count", lambda: (0, 0, young[0]))
    one = Collecting(lambda: keys[0])
    assert not one.look(), "it is not known whether somebody types"
    assert one.look() and done == ["all"]
    keys[0] += 1
    assert not one.look() and one.look()
    young[0] = WORTH - 1
    assert not one.look()
    young[0], keys[0] = TOO_MUCH, keys[0] + 1
    assert one.look()
    with gc_pauses.undisturbed():
        assert not one.look()
    assert done == ["all"] * 3


async def test_the_app_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    before = gc.get_threshold()
    async with running_app(project(tmp_path)):
        assert gc.get_threshold()[2] == NEVER
    assert gc.get_threshold() == before
