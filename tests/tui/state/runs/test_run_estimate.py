"""What a run will cost and last: from the past of its cases, honest about what is not known, and asked about
once where that is much. What scripted agents pretend to cost asks nobody."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tests.support.work import calls_of
from tui_eval.store.schema import AttemptRow, AttemptState, CaseHistory, RunInfo, StoredCase
from tui_eval.tui.controllers import first_steps, run_plans, runs
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.screens.run_dialog import RunDialog
from tui_eval.tui.state.app_state import AppState, CaseItem
from tui_eval.tui.state.runs import run_estimate
from tui_eval.tui.state.runs.run_estimate import Estimate, Planned, Who, estimate, took_before
from tui_eval.tui.state.runs.run_view import RunView

ANY = Who("a")
KEPT = Who("a", kept=True)


def past(
    cost: float | None, seconds: float = 10.0, attempts: int = 1, agent: str = "a", outcome="passed",
    judging: float | None = None, content: str = "hash", cached: int = 0,
):  # fmt: skip
    return CaseHistory(
        "r", "c", agent, None, outcome, 1, attempts, 0.0, seconds * 1000, 10, cost, content, "", judge_cost=judging, cached=cached  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("planned", "lanes", "words"),
    [
        ([], 8, "0 cases, 0 attempts, cost not known"),
        ([Planned([past(0.5)], 1, [ANY])], 8, "1 case, 1 attempt, about $0.50 and 10s"),
        # A run of ten attempts cost ten times as much as one will.
        ([Planned([past(5.0, attempts=10)], 2, [ANY])], 8, "1 case, 2 attempts, about $1.00 and 10s"),
        # What is not known of a case is what the others take.
        ([Planned([past(0.5)], 1, [ANY]), Planned([], 1, [ANY])], 1, "2 cases, 2 attempts, about $1.00 and 20s"),
        ([Planned([], 3, [ANY])], 8, "1 case, 3 attempts, cost not known"),
        ([Planned([past(None)], 3, [ANY])], 1, "1 case, 3 attempts, cost not known, about 30s"),
        # From the cache it cost nothing, asked again it will; an agent that is free is.
        ([Planned([past(0.0, cached=1)], 1, [ANY])], 8, "1 case, 1 attempt, cost not known, about 10s"),
        ([Planned([past(0.0, cached=1), past(0.2)], 1, [ANY])], 8, "1 case, 1 attempt, about $0.20 and 10s"),
        ([Planned([past(0.0, judging=0.25)], 2, [ANY])], 8, "1 case, 2 attempts, about $0.50 and 10s"),
        # Another agent's price is not this one's.
        ([Planned([past(9.0, agent="b"), past(0.2)], 1, [ANY])], 8, "1 case, 1 attempt, about $0.20 and 10s"),
        ([Planned([past(0.2), past(2.0, agent="b")], 1, [ANY, Who("b")])], 8, "1 case, 2 attempts, about $2.20 and 10s"),
        ([Planned([past(0.2)], 1, [ANY, Who("new")])], 8, "1 case, 2 attempts, at least $0.20 (1 of unknown cost) and 10s"),
        ([Planned([past(0.9)], 4, [Who("a", None, True)])], 1, "1 case, 4 attempts, costs nothing, about 40s"),
        # Judges are paid whoever answers, and are known where the agent's cost is not.
        ([Planned([past(0.5, judging=0.25)], 2, [ANY])], 8, "1 case, 2 attempts, about $1.50 and 10s"),
        ([Planned([past(0.9, attempts=2, judging=0.5)], 1, [Who("a", None, True)])], 8, "1 case, 1 attempt, about $0.25 and 10s"),
        ([Planned([past(None, judging=0.25)], 2, [ANY])], 8, "1 case, 2 attempts, at least $0.50 (2 of unknown cost) and 10s"),
        # What is kept costs nothing; how much of it that is shows when it runs.
        ([Planned([past(0.5)], 2, [KEPT])], 8, "1 case, 2 attempts, up to $1.00 and 10s"),
        ([Planned([past(0.5)], 2, [ANY, Who("new", kept=True)])], 8, "1 case, 4 attempts, up to $1.00 (beside 2 of unknown cost) and 10s"),
        ([Planned([past(None)], 3, [KEPT])], 1, "1 case, 3 attempts, cost not known, up to 30s"),
        # A case that has lost its rubric pays no judge any more.
        ([Planned([past(0.5), past(0.5, judging=9.0, content="before")], 1, [ANY])], 8, "1 case, 1 attempt, about $0.50 and 10s"),
        # Cut off at once by an error: no measure of how long it takes.
        ([Planned([past(0.1, 0.1, outcome="error"), past(0.1)], 1, [ANY])], 8, "1 case, 1 attempt, about $0.10 and 10s"),
        # Its agent takes one at a time, however many the run would.
        ([Planned([past(0.1)], 6, [Who("a", None, False, 1)])], 8, "1 case, 6 attempts, about $0.60 and 1m00s"),
    ],
)  # fmt: skip
def test_words(planned: list[Planned], lanes: int, words: str) -> None:
    assert estimate(planned, lanes).words == words


@pytest.mark.real
def test_ten_thousand_cases_are_gone_through_once() -> None:
    planned = [Planned([past(0.01)], 1, [ANY])] * 10_000
    found, calls = calls_of(lambda: estimate(planned, 8))
    assert found == Estimate(10_000, 10_000, pytest.approx(100.0), 0, False, 12_500.0)  # pyright: ignore[reportArgumentType]
    assert calls < 20 * 10_000


def paid(root: Path, kind: str, cost: float) -> None:
    """A project whose cases cost this much the last time."""
    (root / "tui_eval.yaml").write_text(f"agents:\n  offline: {kind}\n")
    run = LiveRun(root, ["refund is approved", "greets by name", "calms an angry customer"])
    for number in range(3):
        run.start(number)
        run.done(number, cost=cost)
    run.finish()


@pytest.mark.real
@pytest.mark.parametrize("key", ["a", "r"])
async def test_much_is_asked_about_once(tmp_path: Path, key: str) -> None:
    root = project(tmp_path)
    paid(root, "{type: openai, base_url: 'http://127.0.0.1:1/v1', model: m}", 2.0)
    async with running_app(root) as (app, pilot):
        await until(lambda: app.state.rows[0].last is not None, pilot)
        await pilot.press("j", "j", "right", "j", key)  # those that passed are one line, until it is unfolded
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        assert f"about ${6 if key == 'a' else 2}.00" in screen_text(app)
        await pilot.press("n")
        assert not app.services.engines.own.requests
        await pilot.press(key)
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("y")
        await until(lambda: len(app.services.engines.own.requests) == 1, pilot)
        app.services.engines.own.live.finish()
        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        await pilot.press("U", key)
        await until(lambda: len(app.services.engines.own.requests) == 2, pilot)
        app.services.engines.own.live.finish()


@pytest.mark.real
async def test_what_a_scripted_agent_pretends_to_cost_asks_nobody(tmp_path: Path) -> None:
    root = project(tmp_path)
    (root / "agent.script.yaml").write_text("default: {say: hi, cost: 5}\n")
    paid(root, "{type: scripted, script: agent.script.yaml}", 5.0)
    async with running_app(root) as (app, pilot):
        await until(lambda: app.state.rows[0].last is not None, pilot)
        await pilot.press("A")
        await until(lambda: isinstance(app.screen, RunDialog), pilot)
        assert "3 cases, 3 attempts, costs nothing" in screen_text(app)
        await pilot.press("escape", "a")
        await until(lambda: app.services.engines.own.requests, pilot)
        app.services.engines.own.live.finish()


@pytest.mark.real
async def test_the_dialog_counts_agents_models_and_a_filter(tmp_path: Path) -> None:
    root = project(tmp_path)
    paid(root, "{type: openai, base_url: 'http://127.0.0.1:1/v1', model: m}", 0.01)
    async with running_app(root) as (app, pilot):
        await until(lambda: app.state.rows[0].last is not None, pilot)
        await pilot.press("A")
        await until(lambda: "3 cases, 3 attempts, about $0.0300" in screen_text(app), pilot)
        await pilot.press(*"offline,echo")
        await until(
            lambda: "3 cases, 6 attempts, at least $0.0300 (3 of unknown cost)" in screen_text(app), pilot
        )
        await pilot.press("down", *"x:y,x:z")
        await until(lambda: "3 cases, 12 attempts, cost not known" in screen_text(app), pilot)
        await pilot.press(*["down"] * 7, *"refund")
        await until(lambda: "1 case, 4 attempts" in screen_text(app), pilot)
        await pilot.press(*"zzz")
        await until(lambda: "no case matches" in screen_text(app), pilot)
        await pilot.press("enter")
        assert isinstance(app.screen, RunDialog) and not app.services.engines.own.requests


# -- What a run that goes on has left.


def at_work(**took: float) -> RunView:
    """A run of case `fast` of agent `bot`, which ended after a second, and of those named, which run since then.
    What they took before is given (0: nothing is known); those of agent `other` begin so."""
    view = RunView(RunInfo("r", "running", started_at=100.0), Path("r"))
    cases = [("fast", "bot"), *((name, "other" if name.startswith("other") else "bot") for name in took)]
    view.apply_cases(
        StoredCase(ref, f"s::{name}", "s", name, "nao", agent, None, "h", 2, 1)
        for ref, (name, agent) in enumerate(cases, 1)
    )
    rows = [ended(1, 1, 1.0), *(running(ref, ref) for ref in range(2, len(cases) + 1))]
    view.apply_attempts(rows)
    view.took_before = lambda case: took.get(case.name) or None
    return view


def running(ref: int, case: int, state: AttemptState = "running") -> AttemptRow:
    begun = None if state == "waiting" else 101.0
    return AttemptRow(
        ref, case, 1, state, None, None, "", begun, None, None, None, None, None, None, 1, "", 1
    )


def ended(ref: int, case: int, seconds: float) -> AttemptRow:
    return AttemptRow(
        ref, case, 1, "done", "passed", 1.0, "", 100.0, seconds * 1000, None, None, None, None, None, 1, "", 2
    )


@pytest.mark.parametrize(
    ("took", "now", "left"),
    [
        ({"slow": 61.0}, 102.0, 60.0),  # not `~2s left`
        ({"slow": 61.0, "quick": 2.0}, 102.0, 60.0),
        ({"slow": 61.0}, 161.0, 1.0),
        ({"slow": 61.0}, 163.0, None),  # longer than ever before: nobody knows
        ({"new": 0.0}, 101.4, None),  # 0.6, as its agent's others: no figure, and not `~0s left`
        ({"new": 0.0}, 103.0, None),
        ({"other": 0.0}, 101.1, None),  # nothing is known of its agent
        ({"other": 8.0}, 103.0, 6.0),
    ],
)
def test_what_is_left_of_a_run_is_what_those_at_work_need(
    took: dict[str, float], now: float, left: float | None
) -> None:
    found = at_work(**took).seconds_left(now)
    assert found == (left if left is None else pytest.approx(left))


def test_where_attempts_wait_the_pace_counts_in_what_they_took_before() -> None:
    view = at_work(slow=61.0)
    view.apply_attempts([running(10 + number, 2, "waiting") for number in range(8)])
    assert view.seconds_left(102.0) == pytest.approx(60.0 + 8 * 61.0)  # one at a time
    assert view.seconds_left(120.0) == pytest.approx(42.0 + 8 * 61.0)
    view.took_before = lambda _: None  # it runs longer than any did: the others will not have ended before
    assert view.seconds_left(120.0) == pytest.approx(20.0 * 9)
    view.apply_attempts([ended(10 + number, 2, 0.1) for number in range(7)])
    assert view.seconds_left(120.0) is None


@pytest.mark.parametrize(("lanes", "truth"), [(1, 60.0), (3, 20.0), (6, 15.0)])
def test_slow_cases_that_wait_are_not_taken_for_quick_ones(lanes: int, truth: float) -> None:
    """Twelve of a second each are done and five of twelve seconds each wait; what runs meanwhile is done anew."""
    view = RunView(RunInfo("r", "running", started_at=100.0), Path("r"))
    view.apply_cases(
        StoredCase(ref, f"s::{ref}", "s", f"{ref}", "nao", "bot", None, "h", 1, 1) for ref in range(1, 18)
    )
    view.took_before = lambda case: 1.0 if case.id <= 12 else 12.0
    view.apply_attempts([*(ended(ref, ref, 1.0) for ref in range(1, 13))])
    view.apply_attempts([running(ref, ref, "waiting") for ref in range(13, 18)])
    found = view.seconds_left(100.0 + 12 / lanes)
    assert found is not None and found == pytest.approx(truth, rel=0.35)


@pytest.mark.parametrize(("done", "now"), [(4, 104.9), (20, 116.0), (40, 131.5)])
def test_an_agent_that_became_slower_is_waited_for_as_long_as_it_takes_now(done: int, now: float) -> None:
    """Sixty cases, four at once, three seconds each; before they took less than half a second."""
    view = RunView(RunInfo("r", "running", started_at=100.0), Path("r"))
    view.apply_cases(
        StoredCase(ref, f"s::{ref}", "s", f"{ref}", "nao", "bot", None, "h", 1, 1) for ref in range(1, 61)
    )
    view.took_before = lambda _: 0.4
    begun = 100.0 + done / 4 * 3.0
    view.apply_attempts([*(ended(ref, ref, 3.0) for ref in range(1, done + 1))])
    at_once = [msgspec.structs.replace(running(done + n, done + n), started_at=begun) for n in range(1, 5)]
    view.apply_attempts([*at_once, *(running(ref, ref, "waiting") for ref in range(done + 5, 61))])
    truth = 145.0 - now
    assert view.seconds_left(now) == pytest.approx(truth, rel=0.25)


def test_what_the_cache_answers_is_not_waited_for_as_if_it_was_asked() -> None:
    view = at_work(slow=61.0)
    rows = [msgspec.structs.replace(ended(10 + number, 2, 0.01), cached=1) for number in range(10)]
    view.apply_attempts([msgspec.structs.replace(ended(2, 2, 0.01), cached=1, changed=3), *rows])
    view.apply_attempts([running(30 + number, 2, "waiting") for number in range(10)])
    left = view.seconds_left(102.0)
    assert left is not None and left < 5


def test_of_a_large_run_some_are_looked_at_and_all_agents_are_among_them() -> None:
    view = RunView(RunInfo("r", "running", started_at=100.0), Path("r"))
    number = 20_000
    view.apply_cases(
        StoredCase(ref, f"s::{ref}", "s", f"{ref}", "nao", f"a{ref % 8}", None, "h", 1, 1)
        for ref in range(1, number + 1)
    )
    view.took_before = lambda case: 9.0 if case.agent == "a0" else 1.0
    half = number // 2
    view.apply_attempts([*(ended(ref, ref, 1.0) for ref in range(1, half + 1))])
    view.apply_attempts([running(ref, ref, "waiting") for ref in range(half + 1, number + 1)])
    left, calls = calls_of(lambda: view.seconds_left(400.0))
    assert left == pytest.approx(300.0, rel=0.25) and calls < number
    _, calls = calls_of(lambda: view.seconds_left(400.1))
    assert calls < 100


def test_a_limit_ends_what_would_take_longer() -> None:
    view = at_work(slow=61.0)
    row = msgspec.structs.replace(running(2, 2), ends_at=110.0, changed=3)
    view.apply_attempts([row])
    assert view.seconds_left(102.0) == pytest.approx(8.0)


def test_what_a_case_took_is_of_its_agent_and_of_answers_that_were_given() -> None:
    item = CaseItem("c", "c", "s", "nao")
    state = AppState(Path(), by_id={"c": item})
    case = StoredCase(1, "c", "s", "c", "nao", "a", None, "h", 1, 1)
    assert took_before(state, case) is None
    item.history = [past(0.1, 0.1, cached=1), past(0.1, 9.0, agent="b"), past(0.1, 12.0)]
    assert took_before(state, case) == 12.0
    assert took_before(state, msgspec.structs.replace(case, case_id="gone")) is None


@pytest.mark.real
async def test_the_dialog_shows_what_it_comes_to_however_many_agents_there_are(tmp_path: Path) -> None:
    root = project(tmp_path)
    entries = "".join(f"  helper{number:03}: {{type: echo}}\n" for number in range(500))
    (root / "tui_eval.yaml").write_text((root / "tui_eval.yaml").read_text().rstrip("\n") + "\n" + entries)
    async with running_app(root) as (app, pilot):
        await until(lambda: len(app.state.rows) == 3 and app.state.config is not None, pilot)
        await pilot.press("A")
        await until(lambda: "3 cases, 3 attempts" in screen_text(app), pilot)
        assert "enter runs" in screen_text(app) and "more" in screen_text(app)


@pytest.mark.real
async def test_what_many_cases_come_to_is_counted_beside_the_app(tmp_path: Path, monkeypatch) -> None:
    """Of 100,000 rows each key in the dialog, and `a`, took seconds; `a` pressed again meanwhile is no second run."""
    root = project(tmp_path)
    paid(root, "{type: openai, base_url: 'http://127.0.0.1:1/v1', model: m}", 0.01)
    go = threading.Event()
    slow = run_estimate.expected
    for module in (runs, first_steps):
        monkeypatch.setattr(module, "ENOUGH", 2)
    for module in (runs, run_plans, run_estimate):
        monkeypatch.setattr(module, "expected", lambda *given: go.wait(20) and slow(*given))
    async with running_app(root) as (app, pilot):
        await until(lambda: app.state.rows[0].last is not None, pilot)
        await pilot.press("A")
        await until(lambda: isinstance(app.screen, RunDialog) and "counting" in screen_text(app), pilot)
        await pilot.press("tab", "tab", "2")  # keys are heard
        await until(lambda: app.screen.choice.attempts == "2", pilot)
        go.set()
        await until(lambda: "3 cases, 6 attempts, about $0.06" in screen_text(app), pilot)
        go.clear()
        await pilot.press("backspace", "enter")  # it starts when it is known that it can be
        assert isinstance(app.screen, RunDialog)
        go.set()
        requests = app.services.engines.own.requests
        await until(lambda: len(requests) == 1, pilot)
        app.services.engines.own.live.finish()
        await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
        go.clear()
        await pilot.press("U", "a")
        await pilot.press("a")
        go.set()
        await until(lambda: len(requests) == 2, pilot)
        await pilot.pause(0.3)
        assert len(requests) == 2
        app.services.engines.own.live.finish()


@pytest.mark.real
async def test_a_count_that_fails_is_said_and_ends_no_app(tmp_path: Path, monkeypatch) -> None:
    root = project(tmp_path)
    monkeypatch.setattr(first_steps, "ENOUGH", 2)

    def expected(*_: object) -> Estimate:
        raise RuntimeError("no figures")

    async with running_app(root) as (app, pilot):
        await until(lambda: len(app.state.rows) == 3, pilot)
        monkeypatch.setattr(run_estimate, "expected", expected)
        await pilot.press("a")
        await until(lambda: "RuntimeError: no figures" in [said for _, _, said in app.notices.lines], pilot)
        monkeypatch.undo()
        await pilot.press("a")
        await until(lambda: len(app.services.engines.own.requests) == 1, pilot)
        app.services.engines.own.live.finish()
