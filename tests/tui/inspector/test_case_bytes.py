"""What the Case screen's keys send over the line: only what looks different."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.attempts import text_failure
from tests.support.live_run import LiveRun, project
from tests.support.terminal import Terminal


def sent(terminal: Terminal, keys: str, shows: str = "") -> int:
    """Bytes until the screen is quiet again."""
    before = len(terminal.output)
    terminal.send(keys)
    if shows:
        terminal.until(shows)
    terminal.quiet(0.5)
    return len(terminal.output) - before


@pytest.mark.real
def test_bytes_of_opening_tabs_and_cursor(tmp_path: Path, capfd) -> None:
    project(tmp_path)
    run = LiveRun(tmp_path, ["refund is approved"])
    attempt = text_failure()
    attempt.case_id, attempt.agent = run.cases[0].case_id, "offline"
    run.writer.done(run.start(0), attempt)
    run.finish()
    state = {"XDG_STATE_HOME": str(tmp_path / ".state"), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
    terminal = Terminal([sys.executable, "-m", "tui_eval", "."], tmp_path, (80, 24), **state)
    try:
        terminal.until("refund is approved")
        terminal.quiet(1.5)
        sent(terminal, "]")
        figures = {
            "open": sent(terminal, "\r", "1 Transcript"),
            "cursor": sent(terminal, "j"),
            "tools": sent(terminal, "2", "arguments"),
            "call": sent(terminal, "k"),
            "call back": sent(terminal, "j"),
            "assertions": sent(terminal, "3", "score"),
            "transcript": sent(terminal, "1", "assistant"),
            "back": sent(terminal, "\x1b", "1 suite"),
        }
    finally:
        terminal.close()
    with capfd.disabled():
        print(
            "\n  80x24, bytes: " + ", ".join(f"{name} {count:,}" for name, count in figures.items()), end=""
        )
    assert figures["open"] <= 5_000 and figures["back"] <= 3_000
    assert max(figures["cursor"], figures["call"], figures["call back"]) <= 1_000
    assert max(figures["tools"], figures["assertions"], figures["transcript"]) <= 4_500
