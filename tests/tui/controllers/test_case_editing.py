"""The person's editor and pager on a real terminal: with arguments, missing, unreadable."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.live_run import LiveRun, project
from tests.support.terminal import Terminal
from tui_eval.tui.terminal import editor as editing
from tui_eval.tui.terminal import pager

SCRIPT = """#!/bin/sh
for word in "$@"; do echo "[$word]" >> {log}; done
"""


@pytest.fixture
def opened(tmp_path: Path):
    """Opens the app on a failed case, with these variables set."""
    made: list[Terminal] = []
    root = project(tmp_path)
    LiveRun(root, ["refund is approved"]).all_done(["failed"])
    tool = tmp_path / "tool"
    tool.write_text(SCRIPT.format(log=tmp_path / "words"))
    tool.chmod(0o755)

    def start(**environment: str) -> Terminal:
        state = {"XDG_STATE_HOME": str(tmp_path / ".state"), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
        terminal = Terminal(
            [sys.executable, "-m", "tui_eval", str(root)], tmp_path, VISUAL="", **state, **environment
        )
        made.append(terminal)
        terminal.until("refund is approved")
        terminal.quiet()
        terminal.send("]")
        terminal.quiet(0.3)
        terminal.send("\r")
        terminal.until("case 0 went wrong")
        terminal.quiet()
        return terminal

    yield start
    for terminal in made:
        terminal.close()


def words(folder: Path, terminal: Terminal) -> str:
    """What the program was called with, when it has been."""
    file = folder / "words"
    for _ in range(400):
        terminal.read(0.05)
        if file.exists():
            terminal.quiet()
            return file.read_text()
    raise AssertionError(terminal.text)


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("key", "name"), [("e", "EDITOR"), ("E", "EDITOR"), ("p", "PAGER")], ids=["case", "agent", "pager"]
)
def test_a_program_with_arguments_of_two_words(opened, tmp_path: Path, key: str, name: str) -> None:
    terminal = opened(**{name: f"{tmp_path / 'tool'} -x 'two words'"})
    terminal.send(key)
    given = words(tmp_path, terminal)
    assert given.startswith("[-x]\n[two words]\n[/")
    terminal.until("case 0 went wrong")
    assert "1 Transcript" in terminal.text and terminal.text.splitlines()[23].startswith(" y copy")


@pytest.mark.real
def test_an_editor_that_is_missing_is_named_and_another_one_used(opened, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "vi").symlink_to(tmp_path / "tool")
    terminal = opened(EDITOR="no-such-editor -x", PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")
    terminal.send("e")
    assert "[+3]" in words(tmp_path, terminal)  # vi, at the case's line
    terminal.until("$EDITOR (no-such-editor -x)")


def test_no_editor_at_all_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("EDITOR", "nano 'unclosed")
    monkeypatch.delenv("VISUAL", raising=False)
    assert editing.editor_command("f.yaml") is None
    assert pager.not_found({"EDITOR": "nano 'unclosed"}, "vi").startswith("$EDITOR (nano 'unclosed) is not")


def test_the_first_variable_that_can_be_used_is_and_the_other_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    good = tmp_path / "good"
    good.write_text("#!/bin/sh\n")
    good.chmod(0o755)
    monkeypatch.setenv("VISUAL", "missing-one")
    monkeypatch.setenv("EDITOR", f"{good} -w")
    assert editing.editor_command("f.yaml", 3) == [str(good), "-w", "f.yaml"]
    said = pager.not_found({"VISUAL": "missing-one", "EDITOR": str(good)}, str(good))
    assert said.startswith("$VISUAL (missing-one) is not to be found")
    assert not pager.not_found({"EDITOR": str(good)}, str(good))


@pytest.mark.parametrize(
    ("editor", "line", "arguments"),
    [
        ("code", 0, ["--wait", "f.yaml"]),
        ("code", 7, ["--wait", "--goto", "f.yaml:7"]),
        ("code -w -n", 7, ["-w", "-n", "--goto", "f.yaml:7"]),
        ("subl", 7, ["--wait", "f.yaml:7"]),
        ("zed --wait", 7, ["--wait", "f.yaml:7"]),
        ("gvim", 7, ["--nofork", "+7", "f.yaml"]),
        ("gvim -f", 0, ["-f", "f.yaml"]),
        ("emacsclient", 7, ["+7", "f.yaml"]),
    ],
)
def test_an_editor_with_a_window_of_its_own_is_waited_for(
    editor: str, line: int, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / editor.split()[0]
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("VISUAL", editor)
    command = editing.editor_command("f.yaml", line)
    assert command is not None and command[1:] == arguments


LATER = """#!/bin/sh
(sleep 1; sed -i s/approved/granted/ "$1") >/dev/null 2>&1 &
"""


@pytest.mark.real
def test_an_editor_that_does_not_wait_is_followed(opened, tmp_path: Path) -> None:
    (tmp_path / "later").write_text(LATER)
    (tmp_path / "later").chmod(0o755)
    terminal = opened(EDITOR=str(tmp_path / "later"))
    terminal.send("e")
    terminal.until("it is refund is granted now")
    terminal.send("U")
    terminal.until("refund is granted")


@pytest.mark.real
def test_an_editor_that_fails_is_said(opened, tmp_path: Path) -> None:
    terminal = opened(EDITOR="sh -c 'exit 3'")
    terminal.send("e")
    terminal.until("sh ended with 3")
