"""The app on a real terminal: first paint, quiet when idle, the terminal put back whatever happens."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.support.live_run import LiveRun, project
from tests.support.terminal import ENTERED, LEFT, Terminal
from tui_eval.model import Reply

START = """
import sys
from pathlib import Path
from tui_eval.tui.app import EvalApp, run_app
from tui_eval.tui.controllers.places import PlaceController
{extra}
run = Path(sys.argv[1]) if len(sys.argv) > 1 else None
sys.exit(run_app(["."], open_run=run))
"""
CRASH = """
def broken(self):
    api_key = "sk-planted-secret-value"
    raise RuntimeError("on purpose\\x1b]52;c;x\\x07")
PlaceController.show_log = lambda self: self._window.set_interval(0.001, lambda: broken(self._window))
"""
REPORTING = "from tests.support.reporting import report_keys\nreport_keys('keys.reported')"
PAYLOAD = "\x1b]52;c;aGFjaw==\x07\x9b2J\x1b[2J\x1b]0;title\x07\u202eevil [/red] [bold]x"


@pytest.fixture
def terminal(tmp_path):
    """Opens terminals in a project and closes them at the end."""
    opened: list[Terminal] = []

    def start(*arguments: str, extra: str = "", size=(80, 24), **environment: str) -> Terminal:
        code = START.replace("{extra}", extra)
        made = Terminal([sys.executable, "-c", code, *arguments], tmp_path, size, **environment)
        opened.append(made)
        return made

    project(tmp_path)
    yield start
    for made in opened:
        made.close()


def restored(terminal: Terminal) -> bool:
    """The alternate screen left, the cursor shown, the keyboard as it was."""
    end = terminal.output[terminal.output.rfind(LEFT) :]
    return terminal.output.count(LEFT) == terminal.output.count(ENTERED) and b"\x1b[?25h" in end


@pytest.mark.real
def test_first_paint_then_silence_then_quit(terminal):
    app = terminal()
    app.until("refund is approved")
    app.quiet()
    assert app.read(3.0) == b""
    app.send("q")
    assert app.wait() == 0 and restored(app)


@pytest.mark.real
def test_what_is_painted_first_is_whole(terminal):
    """Not a bar without its words, nor a list as wide as the screen, to be painted over by what belongs there."""
    app = terminal(size=(120, 40))
    app.until("refund is approved")
    frame, words = app.output.index(b"\x1b[2;"), app.output.index(b"reading suites")
    assert words < frame, app.output[:words]
    top = app.output[:words]
    assert b"\x1b[1;" in top and top.count(b"tui-eval") == 1
    # The ground of the list and, as wide as it is in the end, that of the pane beside it.
    second = app.output[frame : app.output.index(b"\x1b[3;", frame)]
    assert len(re.findall(rb"\x1b\[48;2;[\d;]+m", second)) == 2, second


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_signals_put_the_terminal_back(terminal, number, code):
    app = terminal()
    app.until("refund is approved")
    app.kill(number)
    assert app.wait() == code and restored(app)


@pytest.mark.real
def test_a_crash_shows_no_values_and_has_a_code(terminal):
    app = terminal(extra=CRASH)
    app.until("refund is approved")
    app.send("l")
    assert app.wait() == 3 and restored(app)
    shown = app.output[app.output.rfind(LEFT) :]
    assert b"RuntimeError: on purpose" in shown and b"planted" not in app.output
    assert b"\x1b]52" not in app.output


@pytest.mark.real
@pytest.mark.parametrize("sent", [b"\xff", b"\xe9A", b"\xc3(", b"\xed\xa0\x80"])
def test_bytes_that_are_no_utf_8_are_no_keys(terminal, sent):
    """A terminal that speaks Latin-1 sends é so, and whoever pastes a binary file."""
    app = terminal()
    app.until("refund is approved")
    app.send(sent + b"\x1b[27u")  # an escape behind them: what `A` opens is left
    app.send("?")
    app.until("Help: Suites", 20)
    app.send("q")
    app.send("q")
    assert app.wait() == 0 and restored(app)


@pytest.mark.real
def test_bytes_that_are_no_utf_8_are_shown_as_such_where_one_types(terminal):
    app = terminal()
    app.until("refund is approved")
    app.send("/")
    app.send(b"caf\xe9x")
    app.until("caf\ufffdx")
    app.send(b"\x1b[200~ past\xff\xfeed\x1b[201~")
    app.until("caf\ufffdx past\ufffd\ufffded")
    app.kill(signal.SIGTERM)
    assert app.wait() == 143 and restored(app)


@pytest.mark.real
def test_without_a_terminal_it_says_what_to_use(tmp_path):
    project(tmp_path)
    code = START.replace("{extra}", "")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 4 and "tui-eval run" in done.stderr and "\x1b" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("redirected", "said"),
    [
        ("2>said", "tui-eval needs a terminal, and stderr, on which it paints, is none; "),
        ("</dev/null 2>&1", "tui-eval needs a terminal, and stdin, from which it reads keys, is none; "),
        ("</dev/null 2>said", "tui-eval needs a terminal; "),
        ("2>&-", ""),
    ],
)
def test_it_says_what_is_no_terminal(tmp_path, redirected, said):
    project(tmp_path)
    (tmp_path / "start.py").write_text(START.replace("{extra}", ""))
    app = Terminal(["sh", "-c", f"{sys.executable} start.py {redirected}; exit $?"], tmp_path)
    try:
        assert app.wait() == 4
        file = tmp_path / "said"
        assert said in (file.read_text() if file.exists() else app.output.decode())
    finally:
        app.close()


@pytest.mark.real
def test_a_dumb_terminal_is_told(terminal):
    app = terminal(TERM="dumb")
    assert app.wait() == 4 and b"TERM is dumb" in app.output and b"\x1b" not in app.output


@pytest.mark.real
def test_no_color_sends_no_colour(terminal):
    app = terminal(NO_COLOR="1")
    app.until("refund is approved")
    app.quiet()
    assert b"38;2;" not in app.output and b"48;2;" not in app.output and b"38;5;" not in app.output


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("environment", "settings", "background"),
    [
        ({"TEXTUAL_THEME": "tui-eval-light"}, "", b"48;2;251;251;250"),
        ({"TEXTUAL_THEME": "tui-eval"}, "", b"48;2;21;23;28"),
        ({}, "theme: tui-eval-light", b"48;2;251;251;250"),
        ({"TEXTUAL_THEME": "nord,dracula"}, "theme: tui-eval-light", b"48;2;46;52;64"),
        ({"TEXTUAL_THEME": "no-such-theme"}, "", b"48;2;21;23;28"),
        ({}, "theme: no-such-theme", b"48;2;21;23;28"),
    ],
)
def test_the_theme_that_is_asked_for_is_the_one_that_is_painted(
    terminal, tmp_path, environment, settings, background
):
    file = tmp_path / "config" / "tui-eval" / "settings.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(settings)
    app = terminal(
        XDG_CONFIG_HOME=str(tmp_path / "config"), XDG_STATE_HOME=str(tmp_path / "state"), **environment
    )
    app.until("refund is approved")
    app.quiet(0.5)
    first = app.output[: app.output.find(b"refund is approved")]
    grounds = {part for part in first.split(b"m") for part in [part.rpartition(b"[")[2]] if b"48;2;" in part}
    assert any(background in ground for ground in grounds), grounds
    assert ("no-such-theme" in app.text) == ("no-such-theme" in f"{environment}{settings}")


@pytest.mark.real
def test_without_utf_8_everything_is_letters_of_the_same_width(terminal, tmp_path):
    run = LiveRun(tmp_path, ["緑茶 é ✗", "other"])
    app = terminal(
        str(run.folder),
        extra=REPORTING,
        LC_ALL="C",
        LANG="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
        PYTHONIOENCODING="",
    )
    app.until("waiting")
    run.done(0, "failed", "weil “nein”")
    run.done(1, "passed")
    run.finish()
    app.until("finished")
    app.until("F ???? ? F")
    for keys in (
        "\r",
        "3",
        "4",
        "6",
        "\x1b",
        "?",
        "\x1b",
        "U",
        "\x10",
        "\x1b",
        "A",
        "\x1b",
        ",",
        "\x1b",
        "H",
        "v",
        "q",
    ):
        app.press(keys, tmp_path / "keys.reported")
        assert app.output.isascii() and b"\\u2" not in app.output, (keys, app.text)
    app.send("Q")
    assert app.wait() == 0


@pytest.mark.real
def test_the_mouse_is_left_to_the_terminal(terminal):
    app = terminal()
    app.until("refund is approved")
    assert b"\x1b[?1000h" not in app.output and b"\x1b[?1003h" not in app.output


@pytest.mark.real
def test_hostile_text_never_steers_the_terminal(terminal, tmp_path):
    run = LiveRun(tmp_path, [PAYLOAD, "other"])
    app = terminal(str(run.folder), size=(120, 40))
    app.until("waiting")
    ref = run.start(0)
    for piece in (PAYLOAD, "\x1b", "]52;c;cut=\x07"):
        run.writer.live(ref, "assistant", piece)
    run.writer.live(ref, "tool_call", PAYLOAD, name=PAYLOAD, call_id="c")
    run.writer.live(ref, "hand_off", "", name=PAYLOAD)
    run.writer.retrying(run.start(1), PAYLOAD)
    app.until("evil [/red]")
    app.read(1.0)
    run.done(0, "failed", PAYLOAD)
    run.done(1, "error", PAYLOAD)
    run.finish()
    app.until("finished")
    app.send("\r")
    app.read(1.5)
    app.send("\x1b")
    app.read(0.5)
    app.send("Q")
    assert app.wait() == 0
    painted = app.output.replace(b"\x1b]22;default\x07", b"")  # Textual's own: the pointer's shape
    for sequence in (b"\x1b]", b"\x1b[2J", b"\xc2\x9b", b"\x07", "\u202e".encode()):
        assert sequence not in painted


@pytest.mark.real
@pytest.mark.parametrize(
    ("size", "keys", "most"),
    [((80, 24), "G", 2_000), ((80, 24), "", 5_000), ((120, 40), "", 40_000)],
    ids=["no stream shown", "the stream under the cursor", "six panes"],
)
def test_bytes_a_second_while_a_run_goes_on(terminal, tmp_path, size, keys, most):
    """16 cases at 50 tokens a second; `G` goes to a case that waits (design.md, Budgets; terminal.md)."""
    run = LiveRun(tmp_path, [f"case {number}" for number in range(64)])
    stop = threading.Event()

    def write() -> None:
        working = list(range(16))
        for number in working:
            run.start(number)
        step = 0
        while not stop.wait(0.1):
            step += 1
            for number in working:
                run.writer.live(run.refs[number][0], "assistant", "some words to say ")
            if step % 5 == 0 and working[-1] < 63:
                run.done(working.pop(0), "failed" if step % 3 == 0 else "passed")
                run.start(working[-1] + 1)
                working.append(working[-1] + 1)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        app = terminal(str(run.folder), size=size)
        app.until("running")
        app.send(keys)
        app.read(2.0)
        start = time.monotonic()
        sent = len(app.read(6.0))
        rate = sent / (time.monotonic() - start)
    finally:
        stop.set()
        writer.join()
        run.finish()
    assert rate <= most, f"{rate:.0f} bytes a second"


def ends_when_its_terminal_goes(app: Terminal) -> int | None:
    """The exit code after the terminal has gone away; None where it lives on."""
    os.close(app.handle)
    app.handle = os.open(os.devnull, os.O_RDWR)
    end = time.monotonic() + 60
    while time.monotonic() < end and app.status is None:
        pid, status = os.waitpid(app.pid, os.WNOHANG)
        if pid:
            app.status = os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    return app.status


@pytest.mark.real
def test_losing_the_terminal_ends_the_app(terminal):
    app = terminal()
    app.until("refund is approved")
    assert ends_when_its_terminal_goes(app) == 129


DEAF = """
import signal, subprocess, sys
signal.signal(signal.SIGHUP, signal.SIG_IGN)
sys.exit(subprocess.call([sys.executable, "-c", sys.argv[1]]))
"""


@pytest.mark.real
def test_losing_the_terminal_ends_the_app_that_nobody_tells(tmp_path):
    project(tmp_path)
    app = Terminal([sys.executable, "-c", DEAF, START.replace("{extra}", "")], tmp_path)
    try:
        app.until("refund is approved")
        assert ends_when_its_terminal_goes(app) == 129
    finally:
        app.close()


@pytest.mark.real
def test_losing_the_terminal_ends_the_editor_that_has_it_and_the_app(terminal, tmp_path):
    editor = tmp_path / "editor.py"
    editor.write_text("import os, time\nprint('EDITING', os.getpid(), flush=True)\ntime.sleep(300)\n")
    app = terminal(VISUAL=f"{sys.executable} {editor}")
    app.until("refund is approved")
    app.send("jj")
    app.send("e")
    app.until("EDITING")
    app.quiet(0.2)
    number = int(re.findall(rb"EDITING (\d+)", app.output)[-1])
    assert ends_when_its_terminal_goes(app) == 129
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.real
def test_the_editor_gets_the_terminal_and_gives_it_back(terminal, tmp_path):
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import pathlib, sys\nprint('EDITING', *sys.argv[1:])\nfile = pathlib.Path(sys.argv[-1])\n"
        "file.write_text(file.read_text().replace('greets by name', 'greets twice'))\n"
    )
    app = terminal(VISUAL=f"{sys.executable} {editor}")
    app.until("refund is approved")
    app.send("jj")
    app.send("e")
    app.until("greets twice")
    assert b"EDITING" in app.output and "refund is approved" in app.text
    app.send("q")
    assert app.wait() == 0 and restored(app)


@pytest.mark.real
def test_a_resize_is_painted_whole(terminal):
    import fcntl
    import struct
    import termios

    app = terminal()
    app.until("refund is approved")
    app.screen.resize(40, 120)
    fcntl.ioctl(app.handle, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    app.send("jj")
    app.until("I want a refund")
    app.quiet()
    assert app.text.splitlines()[39].startswith(" enter open")


@pytest.mark.real
def test_ctrl_l_paints_everything_anew(terminal):
    """What another program wrote over the screen goes away; otherwise only changes are sent."""
    app = terminal()
    app.until("refund is approved")
    app.quiet()
    app.stream.feed(b"\x1b[2J\x1b[1;1HBroadcast message from root")
    app.send("\x0c")
    app.until("refund is approved")
    app.quiet()
    assert "Broadcast" not in app.text and app.text.splitlines()[23].startswith(" enter fold")


@pytest.mark.real
def test_ctrl_z_goes_to_the_shell_and_fg_comes_back(tmp_path):
    project(tmp_path)
    (tmp_path / "app.py").write_text(START.replace("{extra}", ""))
    shell = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path, (100, 30), PS1="ready> ")
    try:
        shell.until("ready>")
        shell.send(f"{sys.executable} app.py\r")
        shell.until("refund is approved")
        shell.quiet(0.3)
        shell.send("jj\x1a")
        shell.until("Stopped")
        assert shell.output.count(LEFT) == shell.output.count(ENTERED) == 1
        shell.send("echo shell-$((40+2))-speaks\r")
        shell.until("shell-42-speaks")
        shell.send("fg\r")
        shell.until("refund is approved")
        shell.until("? help")
        shell.quiet(0.3)
        assert "shell-42-speaks" not in shell.text
        shell.send("q")
        shell.until("ready>")
        assert shell.output.count(LEFT) == shell.output.count(ENTERED) == 2
    finally:
        shell.close()


@pytest.mark.real
def test_ctrl_z_without_a_shell_is_no_trap(terminal):
    app = terminal(size=(120, 30))
    app.until("refund is approved")
    app.quiet(0.3)
    app.send("\x1a")
    app.until("there is no shell behind the app")
    app.send("q")
    assert app.wait() == 0 and restored(app)


@pytest.mark.real
def test_a_storm_of_resizes_down_to_nearly_nothing_and_back(terminal, tmp_path):
    import fcntl
    import struct
    import termios

    app = terminal(extra=REPORTING)
    app.until("refund is approved")
    app.send("?")
    for columns, lines in [
        (20, 5),
        (1, 1),
        (200, 60),
        (3, 100),
        (60, 16),
        (20, 5),
        (120, 40),
        (10, 2),
        (100, 30),
    ] * 3:
        app.screen.resize(lines, columns)
        fcntl.ioctl(app.handle, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        app.read(0.05)
    app.send("\x1b")
    app.until("refund is approved")
    app.quiet()
    assert app.text.splitlines()[29].startswith(" enter fold")
    for columns, lines in [(20, 5), (30, 8)]:
        app.screen.resize(lines, columns)
        fcntl.ioctl(app.handle, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        app.send("\x0c")
        app.until("? help")
        app.quiet(0.3)
        for keys in (
            "A",
            "\x1b",
            "X",
            "\x1b",
            "l",
            "\x1b",
            ",",
            "\x1b",
            "H",
            "v",
            "q",
            "U",
            "\x10",
            "\x1b",
            "f",
            "\x1b",
        ):
            app.press(keys, tmp_path / "keys.reported")
            assert app.status is None
    app.send("Q")
    assert app.wait() == 0 and restored(app)


@pytest.mark.real
def test_nothing_is_sent_while_nothing_happens_wherever_one_is(terminal, tmp_path):
    run = LiveRun(tmp_path, ["refund is approved", "greets by name"])
    for number, outcome in enumerate(("failed", "passed")):
        run.start(number)
        run.done(number, outcome, f"case {number} {outcome}", replies=[Reply(turn=1, text="hi")])
    run.finish()
    app = terminal(
        str(run.folder),
        extra=REPORTING,
        XDG_STATE_HOME=str(tmp_path / "s"),
        XDG_CONFIG_HOME=str(tmp_path / "c"),
        size=(120, 40),
    )
    app.until("finished")
    app.quiet()
    for place, keys, seen in (
        ("find", "/", "find"), ("filter", "\x1bf", "filter"), ("run dialog", "\x1bA", "enter runs"),
        ("palette", "\x1b\x10", "an action"), ("palette, searching", "run", "Run"), ("settings", "\x1b,", "Settings"),
        ("themes", "t", "nord"), ("help", "\x1b\x1b?", "Everywhere"), ("log", "\x1bl", "Log"), ("question", "\x1bU\x03", "Quit?"),
        ("note", "nLg", "finished"), ("case", "\r", "1 Transcript"), ("note on it", "mn", "a word on"),
        ("saving", "\x1bC", "esc leaves"), ("history", "\x1b6", "outcome"), ("runs", "H", "passed failed"),
        ("plots", "v", "second run"), ("search", "v/", "search transcripts"), ("deleting", "\x1bD", "elete"),
    ):  # fmt: skip
        for key in keys:
            app.press(key, tmp_path / "keys.reported")
        app.until(seen)
        app.quiet(0.4)
        assert app.read(0.7) == b"", place  # a cursor blinks twice a second
    app.press("\x1b", tmp_path / "keys.reported")
    app.send("Q")
    assert app.wait() == 0


@pytest.mark.real
def test_a_dialog_costs_its_own_size_and_not_the_screens(terminal, tmp_path):
    names = "".join(
        f"  - {{name: case {n} of many, input: x, expected: {{should_contain: [x]}}}}\n" for n in range(60)
    )
    (tmp_path / "suites" / "support.yaml").write_text(f"agent: offline\ntest_cases:\n{names}")
    app = terminal(
        extra=REPORTING,
        size=(120, 40),
        XDG_STATE_HOME=str(tmp_path / "s"),
        XDG_CONFIG_HOME=str(tmp_path / "c"),
    )
    app.until("case 30 of many")
    app.quiet(0.6)
    for key, seen, most in (
        ("A", "enter runs", 4_500),
        ("\x03", "Quit?", 2_500),
        ("\x10", "an action", 7_000),
    ):
        for keys, shown in ((key, seen), ("\x1b", "? help")):
            before = len(app.output)
            app.press(keys, tmp_path / "keys.reported")
            app.until(shown)
            app.quiet(0.6)
            assert len(app.output) - before <= most, (keys, len(app.output) - before)
        assert seen not in app.text
    app.send("Q")
    assert app.wait() == 0


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("looked_at", "rings"), [("\x1b[O", True), ("\x1b[I", False)], ids=["away", "looking"]
)
def test_the_bell_rings_at_the_end_of_a_run_that_nobody_looks_at(terminal, tmp_path, looked_at, rings):
    run = LiveRun(tmp_path, ["one"])
    app = terminal(str(run.folder))
    app.until("◌ one")
    run.start(0)
    app.until("running")
    app.send(looked_at)
    app.quiet(0.3)
    before = len(app.output)
    run.done(0, "failed", "no")
    run.finish()
    app.until("finished")
    app.quiet(0.5)
    assert (b"\x07" in app.output[before:]) == rings
    app.send("Q")
    assert app.wait() == 0
