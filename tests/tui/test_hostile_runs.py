"""Every payload of terminal.md A9 through Runs, its plots and search, Compare and the transcripts side by
side, on a real pseudo-terminal: nothing raw comes out, nothing crashes."""

from __future__ import annotations

import sys

import pytest

from tests.support.attempts import HOSTILE
from tests.support.live_run import LiveRun, project
from tests.support.terminal import Terminal
from tests.tui.screens.test_hostile_places import TEXT, no_raw
from tui_eval.model import Attempt, Entry, Verdict

CODE = """
import sys
from tui_eval.tui.app import run_app
sys.exit(run_app(["."]))
"""


def write(root, outcome: str, said: str) -> None:
    """A run in which everything that an agent says is hostile."""
    run = LiveRun(root, [f"evil {TEXT}"])
    run.writer.done(
        run.refs[0][0],
        Attempt(
            run.cases[0].case_id, 1, outcome, agent="offline", message=f"why {TEXT}",  # type: ignore[arg-type]
            verdicts=[Verdict("should_contain", outcome == "passed", expected=HOSTILE, reason=HOSTILE)],
            transcript=[
                Entry(1, "user", text=f"hello {HOSTILE}"),
                Entry(1, "tool_call", name=HOSTILE, arguments={HOSTILE: HOSTILE}),
                Entry(1, "assistant", text=f"{said} {HOSTILE}"),
            ],
        ),
    )  # fmt: skip
    run.finish()


@pytest.mark.parametrize(
    "size", [pytest.param((60, 16), id="60x16"), pytest.param((120, 40), id="120x40", marks=pytest.mark.real)]
)
def test_runs_search_and_compare_let_no_control_character_through(tmp_path, size):
    root = project(tmp_path)
    for number in range(3):
        write(root, "failed" if number == 2 else "passed", f"answer {number}")
    homes = {"XDG_STATE_HOME": str(root / ".state"), "XDG_CONFIG_HOME": str(root / ".config")}
    app = Terminal([sys.executable, "-c", CODE], root, size, **homes)
    try:
        app.until("refund")
        app.quiet(0.3)
        app.send("H")
        app.until("passed failed")
        for place, keys, seen in (
            ("figures", "\t", "over the runs"),
            ("plots", "v", "oldest at"),
            ("one plot", ">", "pass rate"),
            ("runs", "\x1b", "passed failed"),
            ("search", "/hello\r", "1 place in 1 case"),
            ("runs again", "\x1b", "passed failed"),
            ("compare", "c", "1 regressed"),
            ("find", "/evil\r", "evil"),
            ("sides", "\r", "entries differ"),
            ("the other side", "\t", "compared with"),
        ):
            app.send(keys)
            app.until(seen)
            app.quiet(0.2)
            no_raw(app, place)
            assert app.status is None, place
        app.send("Q")
        assert app.wait() == 0
        no_raw(app, "the end")
    finally:
        app.close()
