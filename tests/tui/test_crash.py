"""An error of our own, wherever in the app: a notice, and a line in the log, and the app lives. Where it cannot go
on, the terminal is put back, one line says what and where the report is, the exit code is 3. Nothing shows values
of variables."""

from __future__ import annotations

import re
import stat
import sys

import pytest

from tests.support.live_run import LiveRun, project
from tests.support.terminal import LEFT, Terminal

START = """
import sys
from pathlib import Path
from tui_eval.tui.app import EvalApp, run_app
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.widgets.case_list import CaseList
def broken(*arguments, **options):
    api_key = "sk-planted-secret-value"
    raise RuntimeError("on purpose\\x1b]52;c;x\\x07\\nsecond line")
{extra}
run = Path(sys.argv[1]) if len(sys.argv) > 1 else None
sys.exit(run_app(["."], open_run=run))
"""
PLACES = {
    "an action": "PlaceController.show_log = broken",
    "a message": "SuitesScreen._moved = broken\nPlaceController.show_log = broken",
    "painting": "PlaceController.show_log = lambda self: (setattr(CaseList, 'render_line', broken), self.front.case_list.refresh())",
    "a timer": "PlaceController.show_log = lambda self: self._window.set_timer(0.01, broken)",
    "a worker": "async def work():\n    broken()\nPlaceController.show_log = lambda self: self._window.run_worker(work())",
    "what a thread read": (
        "from tui_eval.tui.background import run_in_thread\n"
        "PlaceController.show_log = lambda self: run_in_thread(self._window, lambda: 1, broken)"
    ),
    "a screen's opening": (
        "from tui_eval.tui.screens.help import PaperScreen\nPaperScreen.compose = broken"
    ),
}  # fmt: skip
ENDLESS = "PlaceController.show_log = lambda self: self._window.set_interval(0.001, broken)"
BEGINNING = "EvalApp._begin = broken"


@pytest.fixture
def terminal(tmp_path):
    """Opens terminals in a project and closes them at the end."""
    opened: list[Terminal] = []

    def start(*arguments: str, extra: str, **environment: str) -> Terminal:
        code = START.replace("{extra}", extra)
        homes = {"XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
        made = Terminal(
            [sys.executable, "-c", code, *arguments], tmp_path, (300, 30), **{**homes, **environment}
        )
        opened.append(made)
        return made

    project(tmp_path)
    yield start
    for made in opened:
        made.close()


def said(app: Terminal) -> list[str]:
    """The lines that are on the terminal after the app left it."""
    shown = app.output[app.output.rfind(LEFT) :].decode("utf-8", "replace")
    lines = [re.sub(r"\x1b\[[0-9;?<>=]*[a-zA-Z]", "", line).strip() for line in shown.splitlines()]
    return [line for line in lines if line]


def report_of(folder) -> str:
    """The report, which only its owner may read."""
    report = folder / "state" / "tui-eval" / "crash.log"
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    return report.read_text("utf-8")


@pytest.mark.real
@pytest.mark.usually(2)
@pytest.mark.parametrize("extra", PLACES.values(), ids=PLACES.keys())
def test_the_app_survives_its_own_errors(terminal, tmp_path, extra):
    app = terminal(extra=extra)
    app.until("refund is approved")
    app.send("?" if "PaperScreen" in extra else "l")
    app.until("this did not work: RuntimeError")
    if "PaperScreen" in extra:
        app.until("refund is approved")  # a place that could not be opened is left
    app.send("q")
    assert app.wait() == 0
    assert b"planted" not in app.output and b"\x1b]52" not in app.output
    written = report_of(tmp_path)
    assert "in broken" in written and "RuntimeError: on purpose" in written and "textual 8" in written


@pytest.mark.real
def test_the_log_has_what_happened(terminal, tmp_path):
    app = terminal(extra="PlaceController.show_help = broken")
    app.until("refund is approved")
    app.send("?")
    app.until("this did not work")
    app.send("l")
    app.until("internal error: RuntimeError: on purpose")
    app.send("q")
    app.send("q")
    assert app.wait() == 0


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("extra", [ENDLESS, BEGINNING], ids=["errors without end", "the beginning"])
def test_a_crash_is_one_line_and_a_report(terminal, tmp_path, extra):
    app = terminal(extra=extra)
    if extra is not BEGINNING:
        app.until("refund is approved")
        app.send("l")
    assert app.wait() == 3
    assert app.output.count(LEFT) == 1 and b"\x1b[?25h" in app.output[app.output.rfind(LEFT) :]
    lines = said(app)
    assert len(lines) == 1, lines
    report = tmp_path / "state" / "tui-eval" / "crash.log"
    assert (
        lines[0].startswith("tui-eval: internal error: RuntimeError: on purpose") and str(report) in lines[0]
    )
    assert b"planted" not in app.output and b"\x1b]52" not in app.output
    written = report_of(tmp_path)
    assert "in broken" in written and "RuntimeError: on purpose" in written and "textual 8" in written


DYING = {
    "reading keys": (
        "import os\nfrom textual.drivers.linux_driver import LinuxDriver\n"
        "def read(self):\n    os.read(self.fileno, 1)\n    raise OSError(9, 'on purpose')\n"
        "LinuxDriver.run_input_thread = read"
    ),
    "painting": (
        "from textual.drivers._writer_thread import WriterThread\n"
        "def start(self):\n    self._file = File(self._file)\n    threading.Thread.start(self)\n"
        "class File:\n"
        "    def __init__(self, file): self.file = file\n"
        "    def fileno(self): return self.file.fileno()\n"
        "    def flush(self): self.file.flush()\n"
        "    def write(self, text): broken() if 'approved' in text else self.file.write(text)\n"
        "import threading\nWriterThread.start = start"
    ),
    "an error that Textual shows itself": (
        "class Drawn(RuntimeError):\n    def __rich__(self): return 'drawn'\n"
        "def begin(self): raise Drawn('on purpose')\nEvalApp._begin = begin"
    ),
}  # fmt: skip


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("extra", DYING.values(), ids=DYING.keys())
def test_a_thread_of_the_terminal_that_ends_is_a_crash(terminal, tmp_path, extra):
    app = terminal(extra=extra)
    if extra is DYING["reading keys"]:
        app.until("refund is approved")
        app.send("x")
    assert app.wait(20) == 3
    assert app.output.count(LEFT) == 1 and b"\x1b[?25h" in app.output[app.output.rfind(LEFT) :]
    lines = said(app)
    assert len(lines) == 1 and lines[0].startswith("tui-eval: internal error: "), lines
    assert "on purpose" in lines[0] and b"planted" not in app.output and b"Traceback" not in app.output
    assert "on purpose" in report_of(tmp_path)


def test_a_thread_of_ours_that_ends_is_told(terminal, tmp_path):
    app = terminal(
        extra="import threading\nPlaceController.show_log = lambda self: threading.Thread(target=broken).start()"
    )
    app.until("refund is approved")
    app.send("l")
    app.until("this did not work: RuntimeError")
    app.send("q")
    assert app.wait() == 0 and b"Traceback" not in app.output
    assert "in broken" in report_of(tmp_path)


@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("sent", "error"),
    [("\x1b[1114112u", "ValueError"), (f"\x1b[{'9' * 20}u", "OverflowError")],
)
def test_keys_are_read_on_after_a_sequence_that_is_none(terminal, sent, error):
    """A code beyond Unicode ended the thread that reads keys."""
    app = terminal(extra="")
    app.until("refund is approved")
    app.send(sent)
    app.until(f"this did not work: {error}")
    app.send("?")
    app.until("Help: Suites", 20)
    app.send("q")
    app.send("q")
    assert app.wait() == 0


@pytest.mark.real
def test_a_crash_says_that_the_run_goes_on(terminal, tmp_path):
    run = LiveRun(tmp_path, ["one"])
    run.start(0)
    app = terminal(str(run.folder), extra=ENDLESS)
    app.until("running")
    app.send("l")
    assert app.wait() == 3
    lines = said(app)
    assert len(lines) == 2 and "tui-eval attach" in lines[1]
    run.finish()


@pytest.mark.real
def test_a_crash_is_said_where_no_report_can_be_written(terminal, tmp_path):
    (tmp_path / "file").write_text("")
    app = terminal(extra=BEGINNING, XDG_STATE_HOME=str(tmp_path / "file"))
    assert app.wait() == 3
    lines = said(app)
    assert len(lines) == 1 and "RuntimeError: on purpose" in lines[0] and "; in <string>:10; " in lines[0]


GONE = """
import os, signal, time
import tui_eval.tui.app
tui_eval.tui.app.LOOK_AT_TERMINAL = 1000.0  # the other ways out are meant
EvalApp.terminal_lost = lambda self: None
def left_alone(self):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    Path("ready").touch()
    while True:
        try:
            os.write(1, b" ")
        except OSError:
            break
        time.sleep(0.01)
    {then}
PlaceController.show_log = left_alone
"""


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    "then",
    [
        "self._window.set_interval(0.001, broken)",
        "self._window.exit(0, message='a last word')",
        "self._window._driver.disable_input = lambda: None; self._window.exit(0, message='a last word')",
    ],
    ids=["a crash", "a message", "keys are still read"],
)
def test_without_a_terminal_it_ends(terminal, tmp_path, then):
    app = terminal(extra=GONE.replace("{then}", then))
    app.until("refund is approved")
    app.send("l")
    while not (tmp_path / "ready").exists():
        app.read(0.05)
    app.hang_up()
    assert app.wait(30) == (3 if "broken" in then else 129)
