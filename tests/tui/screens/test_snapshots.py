"""How the two lists look, at the sizes that people have."""

from __future__ import annotations

import pytest

from tests.support import mostly_real
from tests.support.app_host import until
from tests.support.live_run import FakeEngine, LiveRun, project
from tests.support.settling import rested
from tui_eval.tui.app import EvalApp
from tui_eval.tui.state.app_state import AppState, CasePointer

NAMES = ["refund is approved", "greets by name", "calms an angry customer"]
BAD = "suites/bad.yaml"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A project with one run behind it."""
    from tests.support.live_run import SUITE

    monkeypatch.setattr(AppState, "shown_root", "~/shop")
    project(tmp_path, {"suites/support.yaml": SUITE, BAD: "agent: offline\ntest_cases:\n  - name: x\n"})
    return tmp_path


@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
def test_suites(snap_compare, root, size):
    LiveRun(root, NAMES).all_done(["failed", "passed", "error"])
    app = EvalApp([root], root=root, engine=FakeEngine(root), unicode=True)

    async def before(pilot):
        await until(lambda: not app.state.loading, pilot)
        app.screen.go_to(CasePointer(f"suites/support.yaml::{NAMES[0]}"))
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(80, 24), (120, 40)], (80, 24)))
def test_finished_run(snap_compare, root, size):
    run = LiveRun(root, NAMES, attempts=3)
    for number, outcomes in enumerate((["passed", "failed", "passed"], ["passed"] * 3, ["error"] * 3)):
        for attempt, outcome in enumerate(outcomes):
            run.done(number, outcome, "" if outcome == "passed" else "refund not found in response", attempt)
    run.writer.state("finished", run.info.started_at + 5.5)
    run.writer.close()
    app = EvalApp([root], root=root, engine=FakeEngine(root), unicode=True, open_run=run.folder)

    async def before(pilot):
        await until(lambda: not app.state.loading and app.state.run is not None, pilot)
        await rested(pilot)

    assert snap_compare(app, terminal_size=size, run_before=before)
