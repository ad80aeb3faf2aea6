"""Every payload of terminal.md A9 through every place of the lists, dialogs, help, palette, log and toasts,
on a real pseudo-terminal: nothing raw comes out, nothing crashes."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support.attempts import HOSTILE
from tests.support.live_run import LiveRun
from tests.support.terminal import Terminal

RAW = (
    b"\x1b]52", b"\x1b]0;", b"\x1b]8;", b"\x1bP", b"\x1b[2J", b"\x07", b"\x00", b"\x0e", b"\x7f", b"\x08",
    b"\xc2\x9b", b"\xc2\x9d", b"\xc2\x90", "\u202e".encode(), "\u2066".encode(), "\u2028".encode(), "\ufeff".encode(),
)  # fmt: skip
TEXT = HOSTILE.replace("\ud800", "")
"""What a file can hold."""
NAMES = ["evil\x1b]52;c;aGFjaw==\x07.yaml", "two\x1b[2J\x9b\u202elines\x7f.yaml", "[bold]x[nope].yaml"]
CODE = """
import sys
from pathlib import Path
from tests.support.reporting import report_keys
from tui_eval.tui.app import run_app
from tui_eval.tui.controllers.runs import RunController
TEXT = sys.argv[2].encode().decode("unicode_escape") if len(sys.argv) > 2 else ""
def toasts(self):
    self._notices.say(TEXT)
    self._notices.problem(TEXT)
    self._notices.failed(ValueError(TEXT))
    self._places.ask(TEXT, [("y", "yes", TEXT)], lambda value: None, [TEXT])
RunController.pause = toasts
report_keys("keys.reported")
sys.exit(run_app(["."], open_run=Path(sys.argv[1]) if sys.argv[1] else None))
"""


def suite(agent: str) -> str:
    """A suite in which everything that can be said is hostile."""
    case = {"name": TEXT, "input": TEXT, "expected": {"should_contain": [TEXT]}, "metadata": {"tag": TEXT}}
    return json.dumps({"agent": agent, "test_cases": [case, {**case, "name": f"second {TEXT}"}]})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tui_eval.yaml").write_text(
        json.dumps({"agents": {TEXT: {"type": "echo"}, "b": {"type": TEXT}}})
    )
    (tmp_path / "suites").mkdir()
    for name, agent in zip(NAMES, (TEXT, f"unknown {TEXT}", TEXT), strict=True):
        (tmp_path / "suites" / name).write_text(suite(agent))
    (tmp_path / "suites" / f"bad {NAMES[0]}").write_text(f"test_cases: [{{name: x}}, {json.dumps(TEXT)}]\n")
    return tmp_path


def painted(app: Terminal) -> bytes:
    """All that was sent, without what Textual itself sends with BEL."""
    return app.output.replace(b"\x1b]22;default\x07", b"")


def no_raw(app: Terminal, place: str) -> None:
    out = painted(app)
    for sequence in RAW:
        at = out.find(sequence)
        assert at < 0, f"{place}: {sequence!r} in {out[max(0, at - 60) : at + 40]!r}"


@pytest.mark.real
@pytest.mark.parametrize(
    "size", [pytest.param((80, 24), id="80x24"), pytest.param((120, 40), id="120x40", marks=pytest.mark.real)]
)
def test_no_place_lets_a_control_character_through(folder, size):
    run = LiveRun(folder, [TEXT, "other"], suite=f"suites/{NAMES[0]}")
    escaped = HOSTILE.encode("unicode_escape").decode()
    app = Terminal(
        [sys.executable, "-c", CODE, str(run.folder), escaped],
        folder,
        size,
        XDG_STATE_HOME=str(folder / ".state"),
        XDG_CONFIG_HOME=str(folder / ".config"),
    )
    try:
        app.until("waiting")
        ref = run.start(0)
        for byte in TEXT[:120]:
            run.writer.live(ref, "assistant", byte)
        run.writer.live(ref, "tool_call", TEXT, name=TEXT, call_id="c")
        run.writer.live(ref, "tool_result", TEXT, name=TEXT, call_id="c")
        run.writer.retrying(run.start(1), TEXT)
        app.until("evil")
        app.quiet(0.3)
        no_raw(app, "the live run")
        for place, keys in (
            ("panes", ["\t", "z", "z", "\x1b"]),
            ("question to cancel", ["X", "n"]),
            ("toasts and a question", ["P", "y"]),
            ("log", ["l", "\x1b"]),
            ("suites", ["U", "j", "j", "\t", "\t", "G", "\t", "\t"]),
            ("help", ["?", "\x1b"]),
            ("settings", [",", "\x1b"]),
            ("filter", ["f", "evil", "\x15", "@no", "\r", "\x1b"]),
            ("find", ["/", "evil", "\r", "n", "\x1b"]),
            ("run dialog", ["A", "\x1b"]),
            ("palette", ["\x10", "evil", "\x1b", "\x1b"]),
            ("missing agent", ["s", "*", "r", "\x1b", "\x1b"]),
            ("case", ["L", "\r", "2", "3", "5", "\x1b"]),
        ):
            for key in keys:
                app.press(key, folder / "keys.reported")
                no_raw(app, place)
                assert app.status is None
        run.done(0, "failed", TEXT)
        run.done(1, "error", TEXT)
        run.finish()
        app.until("finished")
        app.press("\t", folder / "keys.reported")
        app.send("Q")
        assert app.wait() == 0
        no_raw(app, "the end")
        assert "evil" in app.output.decode("utf-8", "replace")
    finally:
        app.close()
