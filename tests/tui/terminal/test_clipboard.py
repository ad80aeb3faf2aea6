"""Copies that arrive: by tmux where there is one, else by OSC 52; what is said about it is true."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.live_run import project
from tui_eval.tui.terminal import clipboard

FAKE = """\
#!/bin/sh
echo "$@" >> "$TOLD/asked"
case "$1" in
    show-options) echo "$CLIPBOARD" ;;
    load-buffer) [ -n "$REFUSES" ] && exit 1; [ -n "$HANGS" ] && exec sleep 60; cat > "$TOLD/buffer" ;;
esac
"""


class Terminal:
    """Takes what is copied by OSC 52."""

    def __init__(self) -> None:
        self.copied = ""

    def copy_to_clipboard(self, text: str) -> None:
        """As Textual's app."""
        self.copied = text


@pytest.fixture
def tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tmux that tells in a folder what it was asked."""
    program = tmp_path / "bin" / "tmux"
    program.parent.mkdir()
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "/tmp/tmux,1,0")
    monkeypatch.setenv("TOLD", str(tmp_path))
    monkeypatch.setenv("CLIPBOARD", "external")
    return tmp_path


@pytest.mark.parametrize("option", ["external", "on"])
def test_tmux_gets_the_text_itself(tmux: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.setenv("CLIPBOARD", option)
    terminal = Terminal()
    words = clipboard.copied(terminal, "naïve\x1b[2J", "reply")  # type: ignore[arg-type]
    assert (tmux / "buffer").read_text("utf-8") == "naïve␛[2J" and not terminal.copied
    assert words == "reply: 9 characters copied into tmux (prefix ] pastes) and the terminal's clipboard"
    assert "load-buffer -w -" in (tmux / "asked").read_text()


def test_a_tmux_that_sets_no_clipboard_is_said(tmux: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLIPBOARD", "off")
    words = clipboard.copied(Terminal(), "x", "reply")  # type: ignore[arg-type]
    assert (tmux / "buffer").read_text() == "x" and "set-clipboard on" in words


@pytest.mark.parametrize("wrong", ["REFUSES", "HANGS"])
def test_a_tmux_that_takes_nothing_leaves_it_to_the_terminal(tmux: Path, monkeypatch, wrong: str) -> None:
    monkeypatch.setenv(wrong, "1")
    monkeypatch.setattr(clipboard, "TMUX_WAIT", 0.3)
    terminal = Terminal()
    began = time.monotonic()
    words = clipboard.copied(terminal, "x", "reply")  # type: ignore[arg-type]
    assert terminal.copied == "x" and time.monotonic() - began < 30
    assert "OSC 52" in words and "set-clipboard on" in words and "Y writes a file" in words


def test_without_tmux_it_is_osc_52(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)
    terminal = Terminal()
    words = clipboard.copied(terminal, "y" * 80_000, "reply")  # type: ignore[arg-type]
    assert clipboard.sequence_length(terminal.copied) <= clipboard.LIMIT
    assert "cut: Y writes all to a file" in words and "tmux" not in words


@pytest.mark.real
@pytest.mark.parametrize("option", ["external", "on", "off"])
def test_a_real_tmux_has_it(tmp_path: Path, option: str) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("there is no tmux here")
    project(tmp_path)
    server = ["tmux", "-L", f"tui-eval-{os.getpid()}-{option}", "-f", os.devnull]

    def ask(*arguments: str) -> str:
        return subprocess.run([*server, *arguments], capture_output=True, text=True, check=False).stdout

    try:
        program = f"TERM=tmux-256color {sys.executable} -m tui_eval"
        where = [
            "-x",
            "100",
            "-y",
            "30",
            "-c",
            str(tmp_path),
            "-e",
            f"PYTHONPATH={ROOT}",
        ]
        homes = ["-e", f"XDG_STATE_HOME={tmp_path / 's'}", "-e", f"XDG_CONFIG_HOME={tmp_path / 'c'}"]
        ask("new-session", "-d", "-s", "w", *where, *homes, program)
        ask("set-option", "-s", "set-clipboard", option)
        until_shown(ask, "refund is approved")
        ask("send-keys", "-t", "w", "r")
        until_shown(ask, "finished")
        ask("send-keys", "-t", "w", "Enter")
        until_shown(ask, "1 Transcript")
        ask("send-keys", "-t", "w", "y", "p")
        until_shown(ask, "into tmux")
        assert ask("show-buffer").strip() in ("I want a refund", "I am angry")
    finally:
        ask("kill-server")


def until_shown(ask, text: str) -> None:
    """Wait until this is on the pane."""
    until_sync(
        lambda: text in ask("capture-pane", "-p", "-t", "w"),
        shown=lambda: ":\n" + ask("capture-pane", "-p", "-t", "w"),
    )


def until_sync(condition, seconds: float = 60.0, shown=str) -> None:
    """`tests.support.waiting.until`, where nothing else goes on."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited too long{shown()}"
        time.sleep(0.05)
