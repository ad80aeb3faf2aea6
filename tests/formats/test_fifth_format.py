"""A fifth format, brought by another package, does all that ours do: on the command line and in the app."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.app_host import running_app, until
from tests.support.extended import installed, tui_eval
from tests.tui.controllers.test_saved_conversations import ran, save_as
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.dialogs import ChangeScreen
from tui_eval.tui.state.app_state import CasePointer

SUITE = """\
agent: friend
attempts: 2
= France
> What is the capital of {country}?
country: France
has: Paris
not: Berlin

= Spain
> What is the capital of {country}?
country: Spain
has: Lisbon
"""
SCRIPT = """\
rules:
  - {match: France, say: "It is Paris."}
  - {match: Spain, say: "The city of **Madrid** is."}
"""
CONFIG = "agents:\n  friend: {type: scripted, script: agent.script.yaml}\n"


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    files = {"capitals.talk": SUITE, "agent.script.yaml": SCRIPT, "tui_eval.yaml": CONFIG}
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.mark.real
def test_on_the_command_line(talks: Path) -> None:
    rows = json.loads(tui_eval(talks, "list", "--json").stdout)
    assert [(row["case_id"], row["format"], row["line"], row["attempts"]) for row in rows] == [
        ("capitals.talk::France", "talks", 3, 2),
        ("capitals.talk::Spain", "talks", 9, 2),
    ]
    assert "2 cases: 0 errors" in tui_eval(talks, "check").stdout

    done = tui_eval(talks, "run", ".", "-o", "ours.json", "-o", "all.talks.json", "-o", "page.html")
    assert done.returncode == 1 and "lacks 'Lisbon'" in done.stdout, done.stdout + done.stderr
    ours = json.loads((talks / "ours.json").read_text())
    assert [(one["case_id"], one["format"], one["outcome"]) for one in ours["results"]] == [
        *[("capitals.talk::France", "talks", "passed")] * 2,
        *[("capitals.talk::Spain", "talks", "failed")] * 2,
    ]
    assert [(one["type"], one["passed"]) for one in ours["results"][0]["assertions"]] == [
        ("has", True),
        ("not", True),
    ]
    assert "lacks" in (talks / "page.html").read_text()
    shown = tui_eval(talks, "show", "last", "Spain")
    assert "What is the capital of Spain?" in shown.stdout and "lacks 'Lisbon'" in shown.stdout

    # Judged again by the file as it is, without the agent.
    (talks / "capitals.talk").write_text(SUITE.replace("Lisbon", "Madrid"))
    again = tui_eval(talks, "rescore", "last")
    assert again.returncode == 0 and "All 2 cases passed" in again.stdout, again.stdout + again.stderr

    # Its own results file, and ours, open as runs.
    for name in ("all.talks.json", "ours.json"):
        opened = tui_eval(talks, "show", name)
        assert opened.returncode == 1 and "Spain" in opened.stdout, opened.stdout + opened.stderr
        assert ("of Talks" in opened.stdout) == (name == "all.talks.json")
    exported = tui_eval(talks, "export", "all.talks.json", "-o", "from_theirs.json")
    assert exported.returncode == 0, exported.stderr
    theirs = json.loads((talks / "from_theirs.json").read_text())["results"]
    assert [(one["format"], one["case_id"], one["outcome"]) for one in theirs] == [
        (one["format"], one["case_id"], one["outcome"]) for one in ours["results"]
    ]


def test_what_is_wrong_has_its_place(talks: Path) -> None:
    (talks / "capitals.talk").write_text("attempts: many\n= A\nhas: early\n> hi {who}\n!!\n")
    done = tui_eval(talks, "check")
    assert done.returncode == 4
    for line in (
        "capitals.talk:1: attempts: must be a number from 1, not many",
        "capitals.talk:3: has: nothing begins with > MESSAGE before it",
        "capitals.talk:5: '!!' is no line of a talk; write KEY: VALUE",
    ):
        assert line in done.stdout, done.stdout
    (talks / "capitals.talk").write_text("= A\n> hi {who}\nhas: hi\n")
    done = tui_eval(talks, "run", ".")
    assert done.returncode == 1 and "the message names 'who', which the case does not say" in done.stdout


@pytest.mark.real
def test_a_first_suite_runs(tmp_path: Path) -> None:
    done = tui_eval(tmp_path, "init", "--format", "Talks")
    assert done.returncode == 0 and "wrote talks/first.talk" in done.stdout, done.stdout + done.stderr
    assert tui_eval(tmp_path, "run", ".").returncode == 0
    assert "start_to_agent|nao|promptfoo|neuro_san|talks" in tui_eval(
        tmp_path, "init", "--help"
    ).stdout.replace("\n", "").replace(" ", "")


@pytest.mark.real
async def test_in_the_app(talks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, int]] = []

    def edit(_app: object, path: Path, line: int = 0, others: object = ()) -> str:
        opened.append((Path(talks, path).name, line))
        return ""

    with installed(monkeypatch):
        monkeypatch.setattr("tui_eval.tui.terminal.editor.edit", edit)
        client = EngineClient(talks)
        try:
            async with running_app(talks, engine=client) as (app, pilot):
                await until(lambda: "capitals.talk::Spain" in app.state.by_id, pilot)
                app.places.suites.go_to(CasePointer("capitals.talk::Spain"))
                await pilot.pause()
                await pilot.press("e")
                assert opened == [("capitals.talk", 9)]
                await pilot.press("r")
                first = await ran(app, pilot)
                assert {row.outcome for row in first.attempts.values()} == {"failed"}

                await pilot.press("enter")
                await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
                await pilot.press("exclamation_mark")
                await until(lambda: isinstance(app.screen, ChangeScreen), pilot)
                await pilot.press("enter")
                await until(lambda: "has: Madrid" in (talks / "capitals.talk").read_text(), pilot)
                await until(lambda: isinstance(app.screen, CaseScreen), pilot)
                await pilot.press("escape")

                path = await save_as(app, pilot, "talks", "ctrl+u", *"again.talk")
                assert path.suffix == ".talk" and "> What is the capital of Spain?" in path.read_text()
                suite = path.relative_to(talks).as_posix()
                await until(lambda: any(item.suite == suite for item in app.state.rows), pilot)
                await pilot.press("r")
                saved = await ran(app, pilot, first.info.id)
                assert [row.outcome for row in saved.attempts.values()] == ["passed"]
        finally:
            with suppress(EngineError):
                await client.shutdown()
            await client.close()
