"""Hostile text through every screen, tab and dialog that there is, with the real engine, on a real
pseudo-terminal (terminal.md A9): nothing raw comes out, nothing crashes. A screen that is added and not visited
here fails the test."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import time
from pathlib import Path

import pytest
from textual.screen import Screen

import tui_eval.tui.screens as screens
from tests.support.attempts import HOSTILE, hostile
from tests.support.terminal import Terminal
from tests.tui.screens.test_hostile_places import NAMES, TEXT, no_raw
from tui_eval.model import Case, Reply, Trace, TraceSpan, Turn
from tui_eval.store.failure_modes import Assessment, FailedAttempt, FailureMode
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

NAMED = TEXT.replace("\x00", "")
"""What a file's name, the environment and a command line can hold, but for the slash."""
SUITE = NAMES[0]
TABS = ("Transcript", "Tools", "Assertions", "Data", "Raw", "History")
CODE = """
import os, sys
from pathlib import Path
from tests.support.reporting import report_keys
from tui_eval.tui.app import EvalApp, run_app
from tui_eval.tui.screens import case_screen
seen = os.open(sys.argv[1] + ".seen", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def noted(owner, name, word):
    real = getattr(owner, name)
    def noting(self, *arguments, **options):
        os.write(seen, (word(*arguments) + "\\n").encode())
        return real(self, *arguments, **options)
    setattr(owner, name, noting)
noted(EvalApp, "push_screen", lambda screen, *rest: type(screen).__name__)
noted(case_screen.CaseScreen, "open_tab", lambda number: "tab " + str(number))
report_keys(sys.argv[1])
sys.exit(run_app(["."]))
"""
EXTENSION = f"raise RuntimeError({TEXT!r})\n"


def places() -> set[str]:
    """The names of all screens and dialogs; those that are parts of others left out."""
    for module in pkgutil.iter_modules(screens.__path__):
        importlib.import_module(f"{screens.__name__}.{module.name}")

    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(part) for part in kind.__subclasses__()))

    ours = {kind for kind in below(Screen) if kind.__module__.startswith("tui_eval.")}
    return {kind.__name__ for kind in ours if not any(part in ours for part in kind.__subclasses__())}


def write_project(root: Path) -> None:
    """Suites, configuration, settings, extensions in which everything that can be said is hostile."""
    agents = {TEXT: {"type": "echo"}, "b": {"type": "echo"}, "c": {"type": TEXT}}
    rule = {"path": "suites/**", "agent": TEXT}
    (root / "tui_eval.yaml").write_text(json.dumps({"agents": agents, "suites": [rule], TEXT: 1}))
    (root / "suites").mkdir()
    case = {
        "name": TEXT,
        "input": TEXT,
        "expected": {"should_contain": [f"{TEXT} not"]},
        "metadata": {"tag": TEXT},
    }
    both = {"agent": TEXT, "test_cases": [case, {**case, "name": f"second {TEXT}"}]}
    cases = "".join(f"  - {json.dumps(one)}\n" for one in both["test_cases"])
    (root / "suites" / SUITE).write_text(f"agent: {json.dumps(TEXT)}\ntest_cases:\n{cases}")
    unknown = {"agent": f"unknown {TEXT}", "test_cases": [{**case, "name": f"third {TEXT}"}]}
    (root / "suites" / f"z {SUITE}").write_text(json.dumps(unknown))
    (root / "suites" / NAMES[1]).write_text(f"test_cases: [{{name: x}}, {json.dumps(TEXT)}]\n")
    (root / "suites" / NAMES[2]).write_text(json.dumps({**both, TEXT: 1, "evil_extension": True}))
    fooled = {"prompts": [TEXT], "providers": ["echo"], "tests": [
        {"vars": {TEXT: TEXT}, "description": TEXT, "assert": [{"type": "python", "value": f"file://{SUITE}.py"}, {"type": "evil", "value": TEXT}]}
    ]}  # fmt: skip
    (root / "promptfooconfig.yaml").write_text(json.dumps(fooled))
    settings = root / ".config" / "tui-eval"
    settings.mkdir(parents=True)
    wrong = {
        "theme": "nord",
        "filters": {f"evil{TEXT}": f"text:{TEXT}"},
        TEXT: TEXT,
        "keymap": {TEXT: "x", "quit": [TEXT]},
    }
    (settings / "settings.yaml").write_text(json.dumps(wrong))
    package = root / "extension" / "evil-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    points = "".join(f"[tui_eval.{group}]\n{name} = evil_extension:it\n" for group, name in (
        ("formats", "evil"), ("agents", "evil"), ("assertions", "promptfoo.evil"), ("reports", "evil"),
    ))  # fmt: skip
    (package / "entry_points.txt").write_text(points)
    (root / "extension" / "evil_extension.py").write_text(EXTENSION)


def write_run(root: Path, number: int) -> str:
    """A finished run in which everything that a program can report is hostile."""
    attempt = hostile()
    attempt.case_id = f"suites/{SUITE}::{TEXT}"
    attempt.agent = TEXT
    spans = [
        TraceSpan("1", HOSTILE, None, 0.0, 10.0, {HOSTILE: HOSTILE}, 2, HOSTILE, own=True),
        TraceSpan("2", HOSTILE, "1", 2.0, 8.0),
    ]
    attempt.trace = Trace(
        HOSTILE, HOSTILE, HOSTILE, spans, problem=HOSTILE, note=HOSTILE, command_tools=[HOSTILE]
    )
    attempt.response_text = f"{attempt.response_text} {number}"
    attempt.replies = [Reply(1, text=f"{HOSTILE} {number}")]
    case = Case(attempt.case_id, TEXT, f"suites/{SUITE}", "start_to_agent", agent=TEXT, turns=[Turn(TEXT)])
    run_id = new_run_id()
    git = {"commit": HOSTILE, "branch": HOSTILE, "dirty": True}
    writer = RunWriter(
        Store(root).create_folder(run_id),
        RunInfo(
            run_id, started_at=time.time() - 60 + number, agents=[TEXT, HOSTILE], note=HOSTILE,
            provenance={"git": git, "command": HOSTILE, "models": [HOSTILE]},
        ),
    )  # fmt: skip
    first, second = writer.plan(
        [PlannedCase(case, TEXT, HOSTILE, 1, 1), PlannedCase(case, f"other {HOSTILE}", HOSTILE, 1, 1)]
    )
    for refs in (first, second):
        writer.started(refs[0], time.time())
        writer.done(refs[0], attempt)
    example = FailedAttempt(first[0], case.case_id, 1, HOSTILE)
    modes = [FailureMode(HOSTILE, 2, 1.0, 1, [example], HOSTILE), FailureMode(HOSTILE, 1, 0.5, 1, [])]
    writer.assessment(Assessment(2, 0, modes, HOSTILE))
    writer.state("finished", time.time())
    writer.close()
    Notes(root).put(HumanNote(run_id, 1, attempt.case_id, "wrong", HOSTILE, True))
    return run_id


ESC = "\x1b"
VISITS: tuple[tuple[str, list[str], str], ...] = (
    ("trust", ["n"], "evil"),
    ("the list", ["g", "j", "j", "j", "\t", "G", "\t", "s", "s", "S", "S", "i", "i"], "evil"),
    ("log", ["l", "G", ESC], "evil"),
    ("help", ["?", "G", ESC], "evil"),
    ("filter by name", ["f", "@evil", "\t", "\r", "F"], "evil"),
    ("find", ["/", "evil", "\r", "n", "N", ESC], "evil"),
    ("settings", [",", "G", "e", "t", ESC, ESC], "evil"),
    ("the editor", ["e", "E", ESC], "evil"),
    ("watching", ["W", "W", "W"], "evil"),
    ("palette", ["\x10", "evil", ESC, ESC], "evil"),
    ("the tour", ["\x07", "j"], "evil"),
    ("runs", ["H"], "passed failed"),
    ("figures and plots", ["\t", "j", "j", "G", "\t", "v", ">", ">", ESC], "passed failed"),
    ("deleting", ["D", ESC, "O", ESC, "f", "evil", ESC], "passed failed"),
    ("search", ["/", "evil", "\r"], "place"),
    ("a place found", ["j", "\r", ESC, ESC], "passed failed"),
    ("which comparison", ["g", "c"], "the run before it"),
    ("compare", ["b"], "2 unchanged"),
    ("sides", ["j", "j", "\r", "}", "\t", "i", "p"], ""),
    ("back to runs", [ESC, ESC], "passed failed"),
    ("the run", ["\r", "g", "\r", "j"], "finished"),
    ("grid", ["M", "i", "\t", "M"], "finished"),
    ("case", ["\r"], "1 Transcript"),
    ("transcript", ["1", "o", "w", "/", "evil", "\r", "n", "}", ")", "p"], ""),
    ("tools", ["2", "\r", "j", "s", "G", "\r", "s", "p"], ""),
    ("assertions", ["3", "\r", "i", "o", "G", "p"], ""),
    ("data", ["4", "s", "i", "}", "w", "v", "p"], ""),
    ("trying a query", ["S", "select evil", "\r", ESC], ""),
    ("raw", ["5", "\r", "G", "p"], ""),
    ("history", ["6", "j", "z", "z"], ""),
    ("note", ["m", ESC, "m", "n", "evil", ESC], ""),
    ("copy", ["y", ESC], ""),
    ("save", ["C"], "Save the conversation"),
    ("what is saved", ["\r"], "enter writes it"),
    ("not saved", [ESC, ESC], ""),
    ("accept", ["1", "!", ESC], ""),
    ("suites", ["U", "g", "/", "second", "\r", ESC], "second"),
    ("run dialog", ["A", "evil", "\t", "evil", ESC], "second"),
    ("step", ["b"], "step"),
    ("a turn by hand", ["e", "evil", ESC], ""),
    ("the turn is sent", ["\r"], ""),
    ("leaving", ["q"], ""),
)


@pytest.mark.real
@pytest.mark.parametrize("size", [(60, 16), (120, 40)], ids=["60x16", "120x40"])
def test_every_screen_tab_and_dialog(tmp_path: Path, size: tuple[int, int]) -> None:
    root = tmp_path / "evil\x1b]52;c;eA==\x07\u202e"
    root.mkdir()
    write_project(root)
    for number in range(3):
        write_run(root, number)
    reports = tmp_path / "keys"
    repository = str(Path(__file__).parents[2])
    app = Terminal(
        [sys.executable, "-c", CODE, str(reports)],
        root,
        size,
        XDG_STATE_HOME=str(root / ".state"),
        XDG_CONFIG_HOME=str(root / ".config"),
        PYTHONPATH=f"{repository}{os.pathsep}{root / 'extension'}",
        VISUAL=NAMED,
        EDITOR="true",
        PAGER="cat",
    )
    try:
        # It comes once everything has been read, over whatever is in front by then.
        app.until("Do you trust")
        app.quiet(1.2)  # what comes sooner is no answer
        for place, keys, wanted in VISITS:
            for key in keys:
                app.press(key, reports)
                no_raw(app, place)
                assert app.status is None, place
            if wanted:
                app.until(wanted, 20)
            no_raw(app, place)
        app.send("Q")
        assert app.wait() == 0, app.text
        no_raw(app, "the end")
    finally:
        app.close()
    visited = set((tmp_path / "keys.seen").read_text().split("\n"))
    missing = places() - visited - ELSEWHERE
    assert not missing, f"not visited: {missing}"
    assert {f"tab {number}" for number in range(len(TABS))} <= visited


ELSEWHERE = {"SuitesScreen", "AgentQuestion", "FirstAgent", "ManualScreen"}
"""The first screen, those that other tests here visit, and the manual, whose text is ours."""


@pytest.mark.real
def test_the_questions_of_the_beginning(tmp_path: Path) -> None:
    root = tmp_path / "evil\x1b]52;c;eA==\x07\u202e"
    root.mkdir()
    reports = tmp_path / "keys"
    homes = {"XDG_STATE_HOME": str(root / ".state"), "XDG_CONFIG_HOME": str(root / ".config")}
    app = Terminal([sys.executable, "-c", CODE, str(reports)], root, (80, 24), **homes)
    try:
        app.until("No suites here")
        for key in ("\r", "s", "evil", "\r", ESC):
            app.press(key, reports)
            no_raw(app, "the beginning")
        case = {"name": TEXT, "input": TEXT, "expected": {"should_contain": [TEXT]}}
        (root / "suite.yaml").write_text(json.dumps({"agent": f"unknown {TEXT}", "test_cases": [case]}))
        app.send("Q")
        assert app.wait() == 0
        app.close()
        app = Terminal([sys.executable, "-c", CODE, str(reports)], root, (80, 24), **homes)
        app.until("evil")
        for key in ("a", "evil", "\r", ESC):
            app.press(key, reports)
            no_raw(app, "which agent")
        app.send("Q")
        assert app.wait() == 0
        no_raw(app, "the end")
    finally:
        app.close()
    assert {"AskScreen", "FirstAgent", "AgentQuestion"} <= set(
        (tmp_path / "keys.seen").read_text().split("\n")
    )
