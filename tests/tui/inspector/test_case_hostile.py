"""Whatever an agent says, no tab of the inspector lets a control character through (terminal.md A9)."""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import textwrap
import time
from pathlib import Path

import pytest
from textual.app import App

from tests.support.attempts import HOSTILE, agent_error, hostile
from tests.support.case_host import host, loaded, until
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.inspector.history import HistoryTab
from tui_eval.tui.terminal import clipboard

BAD = {chr(code) for code in CONTROL_TABLE}
RAW = (
    b"\x1b]52",
    b"\x1b]0;",
    b"\x1bP1$r",
    b"\xc2\x9b",
    b"\xc2\x9d",
    b"\xe2\x80\xae",
    b"\xe2\x81\xa6",
    b"\x00",
    b"\x0e",
    b"\x7f",
    b"\x1b]8;",
)


def strips_text(app: App) -> str:
    """Everything that is painted, before any line filter."""
    return "".join(segment.text for strip in app.screen._compositor.render_strips() for segment in strip)


@pytest.mark.parametrize("size", [(80, 24), pytest.param((120, 40), marks=pytest.mark.real)])
async def test_every_tab_shows_hostile_text_as_pictures(tmp_path: Path, size: tuple[int, int]) -> None:
    app = host(tmp_path, hostile())
    run_id = app.pointers[0].run_id
    assert run_id is not None
    Notes(tmp_path).put(HumanNote(run_id, 1, app.pointers[0].case_id, "wrong", HOSTILE, True))
    async with app.run_test(size=size) as pilot:
        screen = await loaded(pilot)
        for keys in (
            ["1"],
            ["tab"],
            ["z"],
            ["z", "2"],
            ["tab"],
            ["3"],
            ["o"],
            ["i"],
            ["i", "o", "4"],
            ["s"],
            ["i"],
            ["5"],
            ["y"],
            ["escape"],
            ["6"],
            ["z"],
            ["z", "2", "s"],
            ["m"],
            ["escape"],
        ):
            await pilot.press(*keys)
            tab = screen.tab
            if isinstance(tab, DataTab):
                await until(pilot, lambda data=tab: data.view is not None)
            if isinstance(tab, HistoryTab):
                await until(pilot, lambda history=tab: history.main.row_count > 0)
            for more in (["g", "enter"], ["ctrl+d", "w", "right"], ["G", "w"]):
                await pilot.press(*more)
                text = strips_text(app)
                found = {character for character in text if character in BAD}
                assert not found, (keys, more, found)
            await pilot.press("g")
        assert not app.errors


async def test_markup_in_foreign_text_is_text(tmp_path: Path) -> None:
    app = host(tmp_path, hostile())
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        assert "[bold]x[/nope]" in strips_text(app)


async def test_copied_text_cannot_act_when_pasted(tmp_path: Path) -> None:
    app = host(tmp_path, hostile())
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("y", "t")
        await until(pilot, lambda: bool(app.clipboard_texts))
        assert not any(character in BAD and character not in "\n\t" for character in app.clipboard_texts[0])
    assert clipboard.sequence_length(clipboard.fitting(HOSTILE * 5000)) <= clipboard.LIMIT


PROGRAM = """
    import sys
    from pathlib import Path
    import tui_eval.tui
    from tests.support.attempts import agent_error, hostile
    from tests.support.case_host import host
    host(Path(sys.argv[1]), hostile()).run(mouse=False)
"""


@pytest.mark.real
def test_no_raw_sequence_reaches_a_terminal(tmp_path: Path) -> None:
    """The bytes that a real terminal gets, through every tab."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", COLUMNS="100", LINES="30")
        os.execv(sys.executable, [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path)])
    seen = bytearray()

    def read(until_quiet: float, limit: float = 20.0) -> None:
        end = time.monotonic() + limit
        while time.monotonic() < end and select.select([terminal], [], [], until_quiet)[0]:
            try:
                seen.extend(os.read(terminal, 65536))
            except OSError:
                return

    try:
        read(8.0, 1.0)
        while b"failed" not in seen:
            read(1.0, 2.0)
        for key in (
            b"2",
            b"\t",
            b"3",
            b"o",
            b"4",
            b"s",
            b"i",
            b"5",
            b"G",
            b"6",
            b"2",
            b"s",
            b"1",
            b"G",
            b"m",
            b"s",
            b"y",
        ):
            os.write(terminal, key)
            read(0.5, 5.0)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    # What Textual itself says at the start is known; everything else must be pictures.
    assert "␛]52".encode() in seen
    for raw in RAW:
        assert raw not in seen, raw


async def test_an_error_is_shown_even_without_verdicts(tmp_path: Path) -> None:
    app = host(tmp_path, agent_error())
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        assert "HTTP 503" in strips_text(app)
