"""A run from suite files to the store: outcomes, limits, cancelling, resuming, edits."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.support.waiting import Clock, until
from tui_eval.commands.output import CommandError
from tui_eval.commands.run_suites import resume_run
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.time_limits import TimeLimits
from tui_eval.engine.plan import Job
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RequestCell, RunRequest
from tui_eval.engine.selection import LimitReached, NothingToRun, SelectionError
from tui_eval.formats.reading import SuiteCache
from tui_eval.model import Attempt, Case, JudgeUse
from tui_eval.reports import results
from tui_eval.reports.console_table import RunTable
from tui_eval.reports.export import export
from tui_eval.store.index import Index
from tui_eval.store.missing_cases import unread_errors_of
from tui_eval.store.printed_commands import from_here
from tui_eval.store.reader import RunReader
from tui_eval.store.shard_runs import unfinished_in

JOB = {
    "held": Case("s::c", "c", "s", "start_to_agent"), "agent": "a", "model": None, "spec": None, "attempts": 1,
    "required": 1, "compat": "documented", "base": Path(), "comparison": {}, "database": None, "judge": None,
}  # fmt: skip
SLOW = """
rate: 2000
rules:
  - match: {contains: "slow"}
    steps: [{say: "begin"}, {wait: 30}, {say: "end"}]
default: {say: "ok"}
"""


def suite_of(*inputs: str) -> str:
    cases = "".join(
        f"  - {{name: '{text}', input: '{text}', expected: {{should_contain: [o]}}}}\n" for text in inputs
    )
    return f"agent: helper\ntest_cases:\n{cases}"


async def go(root: Path, **values) -> tuple[ActiveRun, RunReader]:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], **values))
    await active.execute()
    assert active.writer is not None and active.writer.error is None
    return active, RunReader(active.writer.folder)


def outcomes(reader: RunReader) -> dict[str, list[str | None]]:
    names = {case.id: case.name for case in reader.cases()}
    found: dict[str, list[str | None]] = {}
    for row in reader.attempts():
        found.setdefault(names[row.case_ref], []).append(row.outcome)
    return found


async def test_outcomes_transcripts_and_verdicts_are_kept(project) -> None:
    _, reader = await go(project())
    assert outcomes(reader) == {
        "greets": ["passed"], "knows the price": ["passed"], "says sorry": ["failed"], "remembers": ["passed"],
    }  # fmt: skip
    price = next(reader.attempt(row.id) for row in reader.attempts() if row.tool_calls)
    assert isinstance(price, Attempt)
    assert [(entry.kind, entry.name) for entry in price.transcript] == [
        ("user", ""), ("tool_call", "search"), ("tool_result", "search"), ("assistant", ""),
    ]  # fmt: skip
    assert price.transcript[1].arguments == {"query": "price"}
    assert price.cost == 0.01 and price.usage is not None and price.usage.input_tokens == 100
    failed = next(reader.attempt(row.id) for row in reader.attempts() if row.outcome == "failed")
    assert isinstance(failed, Attempt)
    assert failed.message == "should_not_contain: 'whatever' was found in response"
    turns = next(reader.attempt(row.id) for row in reader.attempts() if row.turn == 2)
    assert isinstance(turns, Attempt) and [entry.turn for entry in turns.transcript] == [1, 1, 2, 2]
    assert reader.info().state == "finished" and reader.info().scripted
    assert reader.info().provenance["agents"]["helper"]["type"] == "scripted"
    assert reader.live(0) == []


async def test_attempts_and_threshold(project) -> None:
    script = """
    rules:
      - {match: {contains: hello, attempts: [2]}, say: "no"}
      - {match: {contains: hello}, say: "hi"}
    default: {say: ok}
    """
    root = project(script=script)
    _, reader = await go(root, select=["greets"], attempts=3, threshold=0.6)
    assert outcomes(reader) == {"greets": ["passed", "failed", "passed"]}
    assert reader.cases()[0].required == 2
    history = Index(root).latest()["suite.yaml::greets"][0]
    assert (history.outcome, history.passed, history.attempts) == ("passed", 2, 3)


async def test_several_agents_are_columns(project) -> None:
    _, reader = await go(project(), agents=["helper", "echo"], select=["greets"])
    assert {(case.agent, case.name) for case in reader.cases()} == {("helper", "greets"), ("echo", "greets")}
    assert sorted(str(row.outcome) for row in reader.attempts()) == ["failed", "passed"]


async def test_time_limit_is_an_error_that_keeps_what_was_said(project, monkeypatch) -> None:
    root = project(suite=suite_of("slow"), script=SLOW.replace("wait: 30", "wait: 3000"))
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], timeout=100))
    assert active.writer is not None
    clock = Clock(monkeypatch)
    running = asyncio.create_task(active.execute())
    reader = RunReader(active.writer.folder)
    await until(lambda: any("begin" in row.text for row in reader.live(0)))
    clock.forward(101)
    await running
    attempt = reader.attempt(reader.attempts()[0].id)
    assert attempt is not None
    assert (attempt.outcome, attempt.error) == ("error", "cut off after 100 s")
    assert [entry.text for entry in attempt.transcript] == ["slow", "begin", "cut off after 100 s"]


async def test_a_running_attempt_says_when_its_limit_strikes(project) -> None:
    root = project(suite=suite_of("slow"), script=SLOW)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], timeout=40))
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    await until(lambda: reader.attempts()[0].ends_at is not None)
    row = reader.attempts()[0]
    assert row.ends_at is not None and row.started_at is not None
    assert 39.5 < row.ends_at - row.started_at < 40 + 60
    await active.runner.cancel()
    await running


async def test_the_nearest_limit_is_told_and_waiting_for_the_rate_puts_it_off() -> None:
    told: list[float | None] = []

    class Told:
        def limited(self, seconds: float | None) -> None:
            told.append(None if seconds is None else round(seconds))

    limits = TimeLimits(Job(timeout=40.0, **JOB), None, False, Told())  # type: ignore[arg-type]

    async def whole() -> None:
        async with limits.turn(1, None):
            limits.hold(5.0)
        async with limits.turn(2, 10.0):
            pass

    await limits.attempt(whole)
    assert told == [40, 45, 10, 45]


async def test_what_was_said_before_it_was_cancelled_is_kept(project) -> None:
    suite = "agent: helper\ntest_cases: [{name: talks, messages: [first, slow, third]}]\n"
    active = prepare(RunRequest(paths=[str(project(suite=suite, script=SLOW))]))
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    ref = active.tickets[0].attempt_ref
    running = asyncio.create_task(active.execute())
    await until(lambda: any("begin" in row.text for row in reader.live(0)))
    await active.runner.cancel({ref})
    await running
    attempt = reader.attempt(ref)
    assert attempt is not None and (attempt.outcome, attempt.message) == ("cancelled", "cancelled")
    said = [(entry.turn, entry.kind, entry.text) for entry in attempt.transcript]
    assert said == [
        (1, "user", "first"),
        (1, "assistant", "ok"),
        (2, "user", "slow"),
        (2, "assistant", "begin"),
    ]
    assert attempt.usage is not None and attempt.usage.input_tokens, "what was paid for counts"


async def test_cancelling_one_attempt_and_the_rest(project) -> None:
    root = project(suite=suite_of("slow 1", "slow 2", "slow 3"), script=SLOW)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=2))
    first = active.tickets[0].attempt_ref
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    await until(lambda: sum(row.state == "running" for row in reader.attempts()) == 2)
    assert await active.runner.cancel({first}) == 1
    await until(lambda: reader.attempts()[0].outcome == "cancelled")
    assert await active.runner.cancel() == 2
    assert await running == "cancelled"
    assert [row.outcome for row in reader.attempts()] == ["cancelled", "cancelled", "cancelled"]


async def test_what_had_not_begun_when_the_run_was_cancelled_keeps_its_result_and_can_be_gone_on_with(
    project,
) -> None:
    root = project(suite=suite_of("slow 1", "two", "three"), script=SLOW.replace("wait: 30", "wait: 0"))
    first, _ = await go(root)
    (root / "agent.script.yaml").write_text(SLOW)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    assert active.writer is not None
    running = asyncio.create_task(active.execute())
    reader = RunReader(active.writer.folder)
    await until(lambda: any("begin" in row.text for row in reader.live(0)))
    assert await active.runner.cancel() == 3
    assert await running == "cancelled"
    assert [(row.state, row.outcome) for row in reader.attempts()] == [
        ("done", "cancelled"),
        ("waiting", None),
        ("waiting", None),
    ]
    newest = {case.rpartition(":")[2]: past[0] for case, past in Index(root).latest().items()}
    assert {case: (one.outcome, one.run_id) for case, one in newest.items()} == {
        "slow 1": ("cancelled", active.run_id),
        "two": ("passed", first.run_id),
        "three": ("passed", first.run_id),
    }
    again = await asyncio.to_thread(resume, active.writer.folder)
    assert len(again.tickets) == 2
    assert await again.execute() == "finished"
    assert [row.outcome for row in reader.attempts()] == ["cancelled", "passed", "passed"]


@pytest.mark.real
async def test_the_clock_of_a_run_that_goes_on_stood_in_between(project) -> None:
    """Also that of one that was killed, and so has no end."""
    for killed in (False, True):
        root = project(suite=suite_of("one", "slow two"), script=SLOW)
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
        running = asyncio.create_task(active.execute())
        assert active.writer is not None
        folder = active.writer.folder
        await until(lambda folder=folder: RunReader(folder).attempts()[1].state == "running")
        await active.runner.interrupt()
        assert await running == "interrupted"
        info = RunReader(folder).info()
        info.started_at -= 3600
        info.finished_at = None if killed or info.finished_at is None else info.finished_at - 3600
        with closing(sqlite3.connect(folder / "run.db")) as connection, connection:
            text = msgspec.json.encode(info).decode()
            connection.execute("UPDATE meta SET value = ? WHERE key = 'info'", (text,))
            connection.execute("UPDATE attempts SET started_at = started_at - 3600")
        (root / "agent.script.yaml").write_text("default: {say: ok}\n")
        assert await (await asyncio.to_thread(resume, folder)).execute() == "finished"
        info = RunReader(folder).info()
        assert info.finished_at is not None and info.elapsed(info.finished_at) < 60
        took = next(run.took for run in Index(root).runs() if run.id == info.id)
        assert took is not None and took < 60


async def test_interrupted_runs_go_on_where_they_were(project) -> None:
    root = project(suite=suite_of("one", "two", "slow three", "four"), script=SLOW)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    folder = active.writer.folder
    reader = RunReader(folder)
    await until(lambda: reader.attempts()[2].state == "running")
    await active.runner.interrupt()
    assert await running == "interrupted"
    assert [row.state for row in reader.attempts()] == ["done", "done", "waiting", "waiting"]
    done: list[str] = []
    again = await asyncio.to_thread(resume, folder, on_done=lambda job, n, a: done.append(a.case_id))
    assert not again.said_first, "nothing changed, and what was under way was put back"
    (root / "agent.script.yaml").write_text("default: {say: ok}\n")
    assert await again.execute() == "finished"
    assert done == ["suite.yaml::slow three", "suite.yaml::four"]
    assert [row.outcome for row in RunReader(folder).attempts()] == ["passed"] * 4
    assert RunReader(folder).info().note == ""  # it was interrupted, and is not
    with pytest.raises(NothingToRun, match="complete"):
        resume(folder)


async def test_metrics_derived_of_suites_that_had_ended_are_there_when_a_run_goes_on(project) -> None:
    root = project()
    (root / "suite.yaml").unlink()
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "promptfooconfig.yaml").write_text(
            "prompts: [hello]\nproviders: [echo]\nderivedMetrics: [{name: twice, value: said * 2}]\n"
            "tests: [{assert: [{type: contains, value: hello, metric: said}]}]\n"
        )
    interrupting: list[asyncio.Future[None]] = []

    def on_done(*_: object) -> None:
        interrupting.append(asyncio.ensure_future(active.runner.interrupt()))

    request = RunRequest(paths=[str(root)], concurrency=1)
    active = await asyncio.to_thread(prepare, request, on_done=on_done)
    assert active.writer is not None
    folder = active.writer.folder
    assert set(RunReader(folder).info().provenance["derivedMetrics"]) == {
        "a/promptfooconfig.yaml",
        "b/promptfooconfig.yaml",
    }, "also who is killed leaves it to whoever goes on"
    assert await active.execute() == "interrupted"
    assert len(interrupting) == 1
    assert await (await asyncio.to_thread(resume, folder)).execute() == "finished"
    metrics = RunReader(folder).info().metrics
    assert [column["derived"] for column in metrics] == [{"twice": 2.0}] * 2


@pytest.mark.parametrize("moment", ["the last ends", "all have ended", "that is written"])
async def test_a_signal_after_all_has_run_leaves_a_finished_run(
    project, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was `interrupted; go on with`, and nothing could go on; judges of a rescore would have been paid again."""
    root = project(suite=suite_of("one", "two"))
    ended: list[int] = []

    def signalled(*_: object) -> None:
        active.runner.interrupted()
        signals.append(asyncio.ensure_future(active.runner.interrupt()))

    def on_done(*_: object) -> None:
        ended.append(1)
        if moment == "the last ends" and len(ended) == 2:
            signalled()

    signals: list[asyncio.Future[None]] = []
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]), on_done=on_done)
    assert active.writer is not None
    if moment == "all have ended":
        close = active.runner.place.close

        async def closing_down() -> None:
            signalled()
            await close()

        monkeypatch.setattr(active.runner.place, "close", closing_down)
    if moment == "that is written":
        write = active.writer.state

        def written(state: str, *at: float) -> None:
            write(state, *at)  # pyright: ignore[reportArgumentType]
            signalled()

        monkeypatch.setattr(active.writer, "state", written)
    assert await active.execute() == "finished"
    assert len(signals) == 1
    info = RunReader(active.writer.folder).info()
    assert (info.state, info.note, active.runner.stopped_because) == ("finished", "", None)


async def test_going_on_says_what_changed_since_the_kept_results_and_what_is_asked_again(project) -> None:
    """Of a run that was killed: nobody wrote down how it ended."""
    names = ("one", "two", "slow three", "slow four")
    root = project(suite=suite_of(*names), script=SLOW)
    (root / "expected.txt").write_text("o")
    text = (root / "suite.yaml").read_text().replace("[o]", "['file://expected.txt']", 1)
    (root / "suite.yaml").write_text(text)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root / "suite.yaml")], concurrency=2))
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    folder, copy = active.writer.folder, root / ".tui-eval" / "runs" / "20200101-000000-00000"
    reader = RunReader(folder)
    await until(lambda: [row.state for row in reader.attempts()] == ["done"] * 2 + ["running"] * 2)
    await until(lambda: "agents" in reader.info().provenance)
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        copy.mkdir()
        with closing(sqlite3.connect(copy / "run.db")) as killed:
            connection.backup(killed)
    await active.runner.interrupt()
    await running
    (root / "agent.script.yaml").write_text("default: {say: okay}\n")
    (root / "expected.txt").write_text("k")
    (root / "suite.yaml").write_text(text.replace("input: 'two'", "input: 'and two'"))
    again = await asyncio.to_thread(resume, copy)
    under_way, changes = again.said_first
    assert under_way == (
        "asked again: at least 2 attempts that were under way when the run was cut off; what they cost before is not known"
    )
    assert changes == (
        "changed since the 2 kept results of this run: agent helper (its files), expected.txt, suite.yaml::two (the run "
        f"keeps it as it was); to run all of it anew: tui-eval run {from_here(root / 'suite.yaml')}"
    )
    assert RunReader(copy).info().note == f"{under_way}; {changes}", "while it goes on, too"
    assert await again.execute() == "finished"
    assert RunReader(copy).info().note == f"{under_way}; {changes}"


@pytest.mark.real
async def test_each_time_that_a_run_was_killed_is_in_its_note(project) -> None:
    """Also where its record knows nothing of what was under way: it is written behind the run."""
    root = project(suite=suite_of("one", "slow two"), script=SLOW)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root / "suite.yaml")], concurrency=2))
    assert active.writer is not None
    folder = active.writer.folder
    active.writer.close()  # before anything began
    await active.environment.close()
    again = await asyncio.to_thread(resume, folder)
    assert again.said_first == [
        "asked again: what had been asked, if anything, in the moment before the run was cut off; what that cost is not known"
    ]
    going = asyncio.create_task(again.execute())
    await until(lambda: RunReader(folder).attempts()[1].state == "running")
    killed = root / ".tui-eval" / "runs" / "20200101-000000-00000"
    killed.mkdir()
    with (
        closing(sqlite3.connect(folder / "run.db")) as connection,
        closing(sqlite3.connect(killed / "run.db")) as copy,
    ):
        connection.backup(copy)
    await again.runner.interrupt()
    await going
    third = await asyncio.to_thread(resume, killed)
    rows = RunReader(killed).attempts()
    assert [
        (row.state, row.started_at, row.ends_at, row.input_tokens, row.tool_calls) for row in rows[1:]
    ] == [
        ("waiting", None, None, None, None)  # until it begins again
    ]
    assert RunReader(killed).info().state == "running"
    (words,) = third.said_first
    assert words.startswith(
        "asked again: at least 1 attempt that was under way when the run was cut off; what it cost"
    )
    assert await third.execute() == "finished"
    assert RunReader(killed).info().note == words.replace("cut off;", "cut off, 2 times;")


@pytest.mark.parametrize("cache", [True, None])
async def test_what_the_cache_has_is_not_said_to_be_asked_again(project, cache: bool | None) -> None:
    root = project(suite=suite_of("one"))
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root / "suite.yaml")], cache=cache))
    assert active.writer is not None
    folder = active.writer.folder
    active.writer.close()
    await active.environment.close()
    again = await asyncio.to_thread(resume, folder)
    (said,) = again.said_first
    assert ("the run was cut off, but for what the cache has of it;" in said) is bool(cache)
    assert await again.execute() == "finished"
    assert RunReader(folder).info().note == said


async def test_going_on_says_of_a_suite_that_has_ended_what_was_edited_in_it(project) -> None:
    """Of promptfoo's suites too, which are read for that; where that needs trust which nobody gave, it says so."""
    root = project(suite=suite_of("slow one"), script=SLOW)
    tests = "- {description: %s, vars: {v: x}, assert: [{type: contains, value: x}]}\n"
    text = f"prompts: ['{{{{v}}}}']\nproviders: [echo]\ntests:\n  {tests % 'a'}  {tests % 'b'}"
    (root / "promptfooconfig.yaml").write_text(text)
    paths = [str(root / name) for name in ("promptfooconfig.yaml", "suite.yaml")]
    active = await asyncio.to_thread(prepare, RunRequest(paths=paths, concurrency=1))
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    folder = active.writer.folder
    await until(lambda: [row.state for row in RunReader(folder).attempts()] == ["done", "done", "running"])
    await active.runner.interrupt()
    await running
    suite = root / "promptfooconfig.yaml"
    suite.write_text(text.replace("value: x", "value: y", 1))
    again = await asyncio.to_thread(resume, folder)
    (changes,) = again.said_first
    assert changes.startswith(
        "changed since the 2 kept results of this run: promptfooconfig.yaml::a::echo::prompt1 (the run keeps it as it was)"
    )
    again.writer.close()
    suite.write_text(text.replace("value: x", "value: '{{env.HOME}}'", 1))
    again = await asyncio.to_thread(resume, folder)
    assert again.said_first[-1] == "not looked at for changes: promptfooconfig.yaml (needs trust)"
    again.writer.close()


async def test_a_rerun_of_columns_that_was_interrupted_goes_on_in_those_columns(project) -> None:
    """`R` and `.` name columns by cells; the agent of one need not be the suite's own."""
    config = "agents:\n  helper: {type: echo}\n  other: {type: scripted, script: agent.script.yaml}\n"
    root = project(suite=suite_of("one", "slow two"), script=SLOW, config=config)
    cells = [RequestCell(f"suite.yaml::{name}", "other") for name in ("one", "slow two")]
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], cells=cells, concurrency=1))
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    folder = active.writer.folder
    await until(lambda: RunReader(folder).attempts()[1].state == "running")
    await active.runner.interrupt()
    assert await running == "interrupted"
    (root / "agent.script.yaml").write_text("default: {say: ok}\n")
    asked: list[tuple[str, str]] = []
    again = await asyncio.to_thread(
        resume, folder, on_done=lambda job, n, a: asked.append((a.case_id, a.agent))
    )
    assert await again.execute() == "finished"
    assert asked == [("suite.yaml::slow two", "other")]


@pytest.mark.real
async def test_a_model_whose_name_waited_for_trust_is_found_again_under_its_name(
    project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anybody agreed the column was called `openai:${THE_MODEL}`; after it the same column is `openai:big`."""
    monkeypatch.setenv("THE_MODEL", "big")
    config = (
        "agents:\n  helper: {type: scripted, script: agent.script.yaml}\n"
        "  analyst: {type: nao, url: 'http://127.0.0.1:1', token: of-a-person}\n"
        "suites: [{path: 'tests/**', agent: analyst}]\n"
    )
    root = project(
        suite=suite_of("one", "slow two"), script=SLOW, config=config,
        **{"nao_config.yaml": "project_name: x\ntest: {models: [\"openai:{{ env('THE_MODEL') }}\"]}\n"},
        **{"tests/rows.yaml": "name: rows\nprompt: which?\nassertions: [{type: tool_call, tool: x}]\n"},
    )  # fmt: skip
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    folder = active.writer.folder
    await until(lambda: RunReader(folder).attempts()[1].state == "running")
    await active.runner.interrupt()
    assert await running == "interrupted"
    assert [case.model for case in RunReader(folder).cases()] == [None, None, "openai:${THE_MODEL}"]
    (root / "agent.script.yaml").write_text("default: {say: ok}\n")
    asked: list[tuple[str, str | None]] = []
    again = await asyncio.to_thread(
        resume,
        folder,
        overrides=RunRequest(trust=True),
        on_done=lambda job, n, a: asked.append((job.case.name, job.model)),
    )
    assert await again.execute() == "finished"
    assert asked == [("slow two", None), ("rows", "openai:big")]
    reader = RunReader(folder)
    assert [case.model for case in reader.cases()] == [None, None, "openai:big"]
    assert "trust" not in reader.attempts()[2].message


@pytest.mark.real
async def test_a_run_that_went_on_with_trust_needs_it_to_go_on_once_more(project) -> None:
    """Else the command that a second interruption prints would keep errors `needs trust` as results."""
    own = "import time\n\n\ndef answer(message):\n    time.sleep(%s)\n    return 'ok'\n"
    config = "agents:\n  helper: {type: python, function: 'own.py:answer'}\n"
    root = project(suite=suite_of("slow one", "slow two"), config=config, **{"own.py": own % 60})
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1, trust=True))
    assert active.writer is not None
    folder = active.writer.folder
    for overrides in (None, RunRequest(trust=True)):
        if overrides is not None:
            active = await asyncio.to_thread(resume, folder, overrides=overrides)
        running = asyncio.create_task(active.execute())
        await until(lambda: RunReader(folder).attempts()[0].state == "running")
        await active.runner.interrupt()
        assert await running == "interrupted"
    (root / "own.py").write_text(own % 0)
    with pytest.raises(SelectionError, match=f"tui-eval resume {folder.name} --trust"):
        await asyncio.to_thread(resume, folder)
    assert [row.state for row in RunReader(folder).attempts()] == ["waiting"] * 2
    again = await asyncio.to_thread(resume, folder, overrides=RunRequest(trust=True))
    assert await again.execute() == "finished"
    assert [row.outcome for row in RunReader(folder).attempts()] == ["passed"] * 2


async def test_a_run_that_was_killed_before_its_plan_stood_is_not_called_complete(project) -> None:
    root = project(suite=suite_of("one"))
    _, reader = await go(root)
    with closing(sqlite3.connect(reader.folder / "run.db")) as database:
        for table in ("attempts", "bodies", "cases"):
            database.execute(f"DELETE FROM {table}")
        database.commit()
    with pytest.raises(SelectionError, match="nothing of it has run; start it anew"):
        resume(reader.folder)
    report = root / "out.junit.xml"
    with pytest.raises(CommandError, match="start it anew"):
        await asyncio.to_thread(resume_run, str(reader.folder), RunRequest(), "none", [report])
    assert not report.exists()


async def test_fail_fast_and_cost_limit_leave_the_rest_unrun(project) -> None:
    root = project()
    active, reader = await go(root, fail_fast=True, concurrency=1, select=["says sorry", "remembers"])
    assert [row.state for row in reader.attempts()] == ["done", "waiting"]
    assert active.runner.stopped_because is not None and "fail-fast" in active.runner.stopped_because
    active, reader = await go(root, max_cost=0.005, concurrency=1, select=["knows the price", "remembers"])
    assert [row.state for row in reader.attempts()] == ["done", "waiting"]
    assert "cost limit" in str(active.runner.stopped_because)


PRICED = "speed: 0\ndefault: {say: ok, cost: 0.01, usage: {input: 500, output: 100}}\n"


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_a_limit_that_the_last_attempts_reach_has_stopped_nothing(project, concurrency: int) -> None:
    root = project(suite=suite_of("one", "two", "three"), script=PRICED)
    active, reader = await go(root, max_cost=0.03, concurrency=concurrency)
    said = "the cost limit of 0.03 USD is reached (0.0300), with nothing left to run"
    assert (active.runner.stopped_because, reader.info().note, reader.info().state) == (
        None,
        said,
        "finished",
    )
    active, reader = await go(root, max_cost=0.02, concurrency=1)
    assert active.runner.stopped_because == "the cost limit of 0.02 USD is reached (0.0200)"


async def test_a_failure_of_the_last_attempt_has_stopped_nothing(project) -> None:
    active, reader = await go(project(), fail_fast=True, concurrency=1, select=["says sorry"])
    assert active.runner.stopped_because is None
    assert reader.info().note.startswith("--fail-fast: ")
    assert reader.info().note.endswith("failed, with nothing left to run")


@pytest.mark.real
async def test_a_cost_limit_is_the_whole_runs_and_a_resume_may_raise_it(project) -> None:
    root = project(suite=suite_of("one", "two", "three", "four", "five"), script=PRICED)
    _, reader = await go(root, max_cost=0.02, concurrency=1)
    assert [row.state for row in reader.attempts()] == ["done", "done", *["waiting"] * 3]
    folder = reader.folder
    with pytest.raises(LimitReached, match=r"cost limit of 0.02 USD is reached \(0.0200 spent") as caught:
        resume(folder)
    assert f"tui-eval resume {folder.name} --max-cost 0.04" in str(caught.value)
    limit = caught.value.limit  # what the app asks with
    assert (limit.max_cost, round(limit.spent, 6), limit.past(RunRequest()).max_cost) == (0.02, 0.02, 0.04)
    assert "cost limit" in RunReader(folder).info().note, "nothing has been touched"
    again = await asyncio.to_thread(resume, folder, overrides=RunRequest(max_cost=0.03, concurrency=1))
    await again.execute()
    assert [row.state for row in RunReader(folder).attempts()] == [*["done"] * 3, *["waiting"] * 2]
    with pytest.raises(SelectionError, match=r"cost limit of 0.03 USD is reached"):
        resume(folder)  # what it was raised to holds from then on
    again = await asyncio.to_thread(resume, folder, overrides=RunRequest(max_cost=9))
    assert await again.execute() == "finished"
    assert all(row.state == "done" for row in RunReader(folder).attempts())


async def test_a_run_that_ended_at_a_failure_goes_on_only_when_told_so(project) -> None:
    root = project()
    _, reader = await go(root, fail_fast=True, concurrency=1, select=["says sorry", "remembers", "greets"])
    folder = reader.folder
    with pytest.raises(LimitReached, match="--no-fail-fast") as caught:
        resume(folder)
    assert caught.value.limit.bad == 1
    past = caught.value.limit.past(RunRequest())
    assert past == RunRequest(no_fail_fast=True)
    again = await asyncio.to_thread(resume, folder, overrides=past)
    assert await again.execute() == "finished"
    assert [row.state for row in RunReader(folder).attempts()] == ["done"] * 3


async def test_tokens_that_a_run_overdrew_are_made_up_for_after_a_resume(project) -> None:
    config = (
        "agents:\n  helper: {type: scripted, script: agent.script.yaml, rate: {tokens: 6}, concurrency: 1}\n"
    )
    root = project(suite=suite_of("one", "two"), script=PRICED, config=config)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
    assert active.writer is not None
    folder = active.writer.folder
    running = asyncio.create_task(active.execute())
    await until(lambda: RunReader(folder).attempts()[0].state == "done")
    await active.runner.interrupt()
    await running
    again = await asyncio.to_thread(resume, folder)
    running = asyncio.create_task(again.execute())
    await until(lambda: again.runner._schedule is not None)
    assert again.runner._schedule is not None
    ticket, pause = again.runner._schedule._ready()
    assert ticket is None and pause is not None and 5000 < pause < 6000, "594 tokens at 6 a minute"
    await again.runner.interrupt()
    await running


async def test_what_went_into_an_interrupted_attempt_counts(project) -> None:
    script = (
        "rate: 2000\nrules:\n  - {match: {contains: first}, say: ok, cost: 0.05}\n"
        "  - {match: {contains: second}, steps: [{say: a}, {wait: 60}]}\n"
    )
    suite = "agent: helper\ntest_cases: [{name: both, messages: [first, second], expected: {should_contain: [o]}}]\n"
    root = project(suite=suite, script=script)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], max_cost=0.04))
    assert active.writer is not None
    folder = active.writer.folder
    running = asyncio.create_task(active.execute())
    await until(lambda: RunReader(folder).attempts()[0].turn == 2)
    await active.runner.interrupt()
    assert await running == "interrupted"
    with pytest.raises(SelectionError, match=r"0\.0500 spent"):
        resume(folder)


JUDGED = """
prompts: ["{{q}}"]
providers: [echo]
tests: [{vars: {q: hi}, assert: [{type: llm-rubric, value: kingfisher}, {type: llm-rubric, value: walrus}]}]
"""
JUDGE = """
rate: 2000
rules:
  - {match: {contains: kingfisher}, say: '{"pass": true, "score": 1}', cost: 0.05}
  - {match: {contains: walrus}, steps: [{say: a}, {wait: 60}]}
"""


@pytest.mark.parametrize("cancel", [False, True])
async def test_what_a_judge_took_before_its_attempt_was_cut_off_counts(
    project, monkeypatch: pytest.MonkeyPatch, cancel: bool
) -> None:
    answered = asyncio.Event()
    count = Collector.judge_took

    def counted(collector: Collector, more: JudgeUse) -> None:
        count(collector, more)
        answered.set()

    monkeypatch.setattr(Collector, "judge_took", counted)
    files = {"promptfooconfig.yaml": JUDGED, "judge.script.yaml": JUDGE}
    root = project(config="judge: {type: scripted, script: judge.script.yaml}\n", **files)
    request = RunRequest(paths=[str(root / "promptfooconfig.yaml")], max_cost=0.04, trust=True)
    active = await asyncio.to_thread(prepare, request)
    assert active.writer is not None
    folder = active.writer.folder
    running = asyncio.create_task(active.execute())
    await answered.wait()
    await (active.runner.cancel() if cancel else active.runner.interrupt())
    assert await running == ("cancelled" if cancel else "interrupted")
    if cancel:
        (row,) = RunReader(folder).attempts()
        assert (row.outcome, row.judge_calls, row.judge_cost, row.cost) == ("cancelled", 1, 0.05, 0.0)
    else:
        with pytest.raises(SelectionError, match=r"0\.0500 spent"):
            resume(folder, overrides=RunRequest(trust=True))


async def test_an_agent_that_is_not_configured_is_an_error_that_says_what_to_write(project) -> None:
    _, reader = await go(project(config=""), select=["greets"])
    attempt = reader.attempt(reader.attempts()[0].id)
    assert attempt is not None and attempt.outcome == "error"
    assert "helper" in attempt.message and "tui_eval.yaml" in attempt.message


def test_selection_says_what_there_is(project) -> None:
    root = project()
    with pytest.raises(SelectionError, match="greets"):
        prepare(RunRequest(paths=[str(root)], select=["nothing"]))
    with pytest.raises(SelectionError, match="KEY=VALUE"):
        prepare(RunRequest(paths=[str(root)], filter_metadata=["x"]))
    with pytest.raises(SelectionError, match="zzz: nothing matches; descriptions are: greets"):
        prepare(RunRequest(paths=[str(root)], filter_pattern="zzz"))
    with pytest.raises(SelectionError, match="k=v: nothing matches; there are keys: none"):
        prepare(RunRequest(paths=[str(root)], filter_metadata=["k=v"]))
    with pytest.raises(SelectionError, match="regular expression"):
        prepare(RunRequest(paths=[str(root)], filter_pattern="("))


async def test_only_what_failed_last_time(project) -> None:
    root = project()
    with pytest.raises(NothingToRun, match="--failed"):
        prepare(RunRequest(paths=[str(root)], failed_only=True))
    await go(root)
    _, reader = await go(root, failed_only=True)
    assert list(outcomes(reader)) == ["says sorry"]


async def test_a_broken_file_does_not_stop_the_others(project) -> None:
    root = project(**{"broken.yaml": "test_cases: [{name: x, input: 1\n"})
    active, reader = await go(root)
    assert len(reader.cases()) == 4
    assert any(problem.path == "broken.yaml" and problem.level == "error" for problem in active.problems)


@pytest.mark.real
async def test_a_run_of_named_cases_says_which_are_not_there_any_more(project) -> None:
    root = project()
    _, reader = await go(root)
    ids = [case.case_id for case in reader.cases()]
    asked = [ids[0], "gone.yaml::one"]
    for values in ({"case_ids": asked}, {"cells": [RequestCell(one, "helper", None) for one in asked]}):
        active, reader = await go(root, **values)
        assert [case.case_id for case in reader.cases()] == [ids[0]]
        assert unread_errors_of(reader.info()) == 1
        assert [
            "gone.yaml: one: is not there any more, and is not run" in str(one) for one in active.problems
        ] == [True]
    active, _ = await go(root, case_ids=ids)
    assert not active.problems


async def test_edits_are_seen_by_the_next_run(project) -> None:
    root = project()
    cache = SuiteCache()
    request = RunRequest(paths=[str(root)], select=["says sorry"])
    first = await asyncio.to_thread(prepare, request, cache=cache)
    await first.execute()
    (root / "agent.script.yaml").write_text("default: {say: 'sorry, what is it?'}\n")
    second = await asyncio.to_thread(prepare, request, cache=cache)
    await second.execute()
    assert second.writer is not None
    assert [row.outcome for row in RunReader(second.writer.folder).attempts()] == ["passed"]


@pytest.mark.real
async def test_secrets_do_not_reach_the_disk(project, monkeypatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "sekret-value-12345")
    config = """
    agents:
      helper: {type: http, url: "http://127.0.0.1:9/x", headers: {Authorization: "Bearer ${MY_API_TOKEN}"}}
    """
    active, reader = await go(project(config=config), select=["greets"], trust=True)
    assert reader.attempts()[0].outcome == "error"
    assert active.writer is not None
    for path in active.writer.folder.iterdir():
        assert b"sekret-value-12345" not in path.read_bytes()


async def test_pausing_starts_nothing_new(project) -> None:
    root = project(suite=suite_of("a", "b", "c"))
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    first_done = asyncio.Event()
    active.runner.on_done = lambda job, number, attempt: first_done.set()
    running = asyncio.create_task(active.execute())
    await first_done.wait()
    await active.runner.pause(True)
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    await until(lambda: reader.info().state == "paused")
    assert not running.done()
    info = reader.info()
    assert info.paused_at and info.elapsed(info.paused_at + 900) == info.elapsed(
        info.paused_at
    )  # its clock stands
    await active.runner.pause(False)
    await until(lambda: reader.info().state != "paused")
    assert reader.info().paused_at is None and reader.info().paused_for > 0
    assert await running == "finished"


async def test_a_misspelt_assertion_is_an_error_never_a_pass(project) -> None:
    suite = """
    agent: helper
    test_cases:
      - name: slip
        input: hello
        expected: {should_contian: ["nothing of the kind"], should_contain: ["hi"]}
    """
    active, reader = await go(project(suite=suite))
    attempt = reader.attempt(reader.attempts()[0].id)
    assert attempt is not None and attempt.outcome == "error"
    assert "should_contian" in attempt.message and "suite.yaml:6" in attempt.message
    assert [verdict.passed for verdict in attempt.verdicts] == [None]
    assert any(problem.level == "error" for problem in active.problems)


@pytest.mark.real
async def test_rows_too_many_for_the_database_are_kept_beside_it(project) -> None:
    from tui_eval.store.frames import load

    rows = "\n".join(f"{number},{number * 2}" for number in range(1500))
    agent = """
    import json
    def answer(message, session):
        if "Format the data" not in message:
            return "here they are"
        rows = [{"id": i, "double": i * 2 + (i == 1400)} for i in range(1500)]
        return json.dumps({"data": rows})
    """
    config = """
    agents: {helper: {type: python, function: "agent.py:answer"}}
    databases: {main: {type: files, path: data}}
    suites: [{path: "tests/**", agent: helper, database: main}]
    """
    test = "name: doubles\nprompt: every number and its double\nsql: SELECT id, double FROM numbers\n"
    files = {"agent.py": agent, "tests/doubles.yml": test, "data/numbers.csv": f"id,double\n{rows}\n"}
    root = project(config=config, **files)
    _, reader = await go(root, trust=True, select=["doubles"])
    attempt = reader.attempt(reader.attempts()[0].id)
    assert attempt is not None and attempt.data is not None
    assert (attempt.outcome, attempt.message) == ("failed", "values differ")
    assert attempt.data.expected is not None and len(attempt.data.expected) == 1000
    whole = load(reader.folder, attempt.data, "actual")
    assert whole is not None and whole.height == 1500 and whole["double"][1400] == 2801
    expected = load(reader.folder, attempt.data, "expected")
    assert expected is not None and expected.height == 1500
    for path in (reader.folder / "frames").iterdir():
        path.unlink()
    assert load(reader.folder, attempt.data, "actual") is None


async def test_what_was_spent_on_attempts_that_were_put_back_is_said_beside_the_sums(project) -> None:
    script = (
        "rules:\n- match: {contains: slow}\n  steps: [{wait: 30}]\n"
        "default: {say: ok, usage: {input: 30, output: 5}, cost: 0.25}\n"
    )
    suite = "agent: helper\ntest_cases:\n- {name: talk, messages: [first, slow], expected: {should_contain: [ok]}}\n"
    root = project(suite=suite, script=script)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    folder = active.writer.folder
    await until(lambda: RunReader(folder).attempts()[0].turn == 2)
    await active.runner.interrupt()
    assert await running == "interrupted"
    (root / "agent.script.yaml").write_text(script.replace("steps: [{wait: 30}]", "say: ok"), "utf-8")
    for tokens, cost in ((0, 0), (36, 0.25)):  # as it stands, and gone on with
        reader = RunReader(folder)
        info, summary = reader.info(), results.build(reader)["summary"]
        assert (summary["total_tokens"], summary["total_cost"]) == (tokens, cost)
        assert (summary["unfinished_tokens"], summary["unfinished_cost"]) == (35, 0.25)
        told = RunTable.of(reader).totals(put_back=unfinished_in(info))
        assert "; 35 more tokens, $0.2500 more in attempts that did not end" in told
        for ending in ("md", "html"):
            export(reader, root / f"r.{ending}")
            text = (root / f"r.{ending}").read_text("utf-8")
            assert "35 more tokens, $0.2500 more in attempts that did not end" in text
        if not tokens:
            assert await (await asyncio.to_thread(resume, folder)).execute() == "finished"
