"""What comes back the next time, however the app was left."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import pytest

from tests.support.live_run import LiveRun, project
from tests.support.terminal import Terminal

CODE = """
import sys
from tests.support.reporting import report_keys
from tui_eval.tui.app import run_app
report_keys("keys.reported")
sys.exit(run_app(["."]))
"""


def hang_up(app: Terminal) -> None:
    """The line is cut: the terminal is gone."""
    os.close(app.handle)
    app.handle = os.open(os.devnull, os.O_RDWR)
    end = time.monotonic() + 60
    while app.status is None:
        assert time.monotonic() < end, "it did not end"
        pid, status = os.waitpid(app.pid, os.WNOHANG)
        if pid:
            app.status = os.waitstatus_to_exitcode(status)
        time.sleep(0.02)


WAYS: dict[str, Callable[[Terminal], None]] = {
    "q": lambda app: app.send("q"),
    "Q": lambda app: app.send("Q"),
    "ctrl+c": lambda app: app.send("\x03y"),
    "SIGTERM": lambda app: app.kill(signal.SIGTERM),
    "SIGHUP": lambda app: app.kill(signal.SIGHUP),
    "the terminal closed": hang_up,
}


@pytest.mark.parametrize(
    "leave",
    [
        pytest.param(way, id=name, marks=[] if name == "the terminal closed" else pytest.mark.real)
        for name, way in WAYS.items()
    ],
)
def test_cursor_filter_marks_order_and_folds_come_back(tmp_path, leave):
    project(tmp_path)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "one.yaml").write_text(
        "agent: offline\ntest_cases:\n  - {name: folded away, input: x, expected: {should_contain: [x]}}\n"
    )
    homes = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}

    def opened() -> Terminal:
        return Terminal([sys.executable, "-c", CODE], tmp_path, (100, 30), **homes)

    app = opened()
    try:
        app.until("refund is approved")
        reports = tmp_path / "keys.reported"
        app.until("folded away")
        app.press("g", reports)
        app.send("\x1b[D")
        end = time.monotonic() + 60
        while "folded away" in app.text:
            assert time.monotonic() < end
            app.read(0.05)
        app.read(0.2)
        for key in ("/", "greets", "\r", " ", "S", "f", "name:re", "\r"):
            app.press(key, reports)
        app.until("filter: name:re")
        app.until("1 marked")
        leave(app)
        if app.status is None:
            app.wait()
    finally:
        app.close()
    app = opened()
    try:
        app.until("filter: name:re")
        app.until("1 marked")
        app.until("reversed")
        assert "angry" not in app.text
        app.send("F")
        app.until("calms an angry customer")
        app.send("S")
        app.until("▸ more/")
        assert "folded away" not in app.text
        app.send("Q")
        assert app.wait() == 0
    finally:
        app.close()


@pytest.mark.real
def test_tab_and_zoom_of_the_case_come_back(tmp_path):
    project(tmp_path)
    LiveRun(tmp_path, ["refund is approved"]).all_done(["failed"])
    homes = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}

    def looked() -> Terminal:
        app = Terminal([sys.executable, "-c", CODE], tmp_path, (120, 30), **homes)
        app.until("refund is approved")
        for key in ("]", "\r"):
            app.press(key, tmp_path / "keys.reported")
        app.until("1 Transcript")
        app.quiet(0.3)
        return app

    app = looked()
    try:
        outlined = app.text
        app.press("z", tmp_path / "keys.reported")
        app.quiet(0.3)
        zoomed = app.text
        assert zoomed != outlined
        app.send("Q")
        assert app.wait() == 0
    finally:
        app.close()
    app = looked()
    try:
        assert app.text == zoomed
        app.press("6", tmp_path / "keys.reported")
        app.quiet(0.3)
        history = app.text
        app.kill(signal.SIGHUP)
        app.wait()
    finally:
        app.close()
    app = looked()
    try:
        assert app.text == history
        app.send("Q")
        assert app.wait() == 0
    finally:
        app.close()
