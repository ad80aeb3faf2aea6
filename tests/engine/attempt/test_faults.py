"""What goes wrong outside: each time one clear line, and nothing that was paid for is lost."""

from __future__ import annotations

import asyncio
import csv
import json
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers import JsonServer, OpenAIServer, Planned
from tests.servers.base import Seen
from tests.support.waiting import until
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import EngineClient
from tui_eval.events import Finished, TextDelta, ToolCall, ToolResult
from tui_eval.guard.masker import Masker
from tui_eval.model import Attempt, Reply
from tui_eval.reports.export import export
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader

ONE = "agent: bot\ntest_cases: [{name: one, input: hi, expected: {should_contain: [fine]}}]\n"


def openai(url: str, options: str = "") -> str:
    return f"agents:\n  bot: {{type: openai, base_url: '{url}', model: m{options}}}\n"


async def attempt_of(project, plan: Planned, options: str = "") -> Attempt:
    with OpenAIServer(plan) as server:
        root: Path = project(suite=ONE, config=openai(server.base, options))
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
        assert await active.execute() == "finished"
    assert active.writer is not None and active.writer.error is None
    reader = RunReader(active.writer.folder)
    try:
        found = reader.attempt(1)
        assert found is not None
        return found
    finally:
        reader.close()


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Planned(raw=b"\x00\xff garbage\n\n\x1b[2J{{{\n\n"), "is no chat completion: "),
        (Planned(raw=b'data: {"choices": 3}\n\n'), 'sent something that is not JSON: {"choices": 3}'),
        (Planned(raw=b"<html>please sign in</html>"), "is no chat completion: <html>please sign in</html>"),
        (Planned(raw=b""), "is empty"),
        (Planned(text="half of it", cut=True), "broke off: the answer is incomplete"),
        (Planned(text="half of it", hang=True), "timed out after 1 s"),
        (Planned(text="late", delay=30), "timed out after 1 s"),
        (Planned(status=500, body={"error": "x" * 1_000_000}), "HTTP 500 from "),
    ],
    ids=["garbage", "odd", "page", "empty", "cut", "hanging", "silent", "long error"],
)
async def test_an_answer_that_is_none_is_an_error_in_one_line(project, plan: Planned, said: str) -> None:
    seconds = 1 if "timed out" in said else 60
    found = await attempt_of(project, plan, f", timeout: {seconds}, retries: 0")
    assert found.outcome == "error" and found.error is not None
    assert said in found.error and "\n" not in found.error and len(found.error) < 1000
    if plan.cut:
        assert [entry.text for entry in found.transcript if entry.kind == "assistant"] == ["half of i"]
    assert found.response_text == ("half of i" if plan.cut else "")


async def test_what_an_endpoint_takes_for_an_error_is_spent(project) -> None:
    failed = Planned(body={"error": "the model is gone", "cost": 0.5, "usage": {"input_tokens": 900}})
    with JsonServer(failed, Planned(body={"input_tokens": 7, "cost": 0.25})) as server:
        root: Path = project(suite=ONE, config=f"agents:\n  bot: {{type: http, url: '{server.url}'}}\n")
        for said, tokens, cost in (("the model is gone", 900, 0.5), ("the answer has none of", 7, 0.25)):
            active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], max_cost=0.1))
            assert await active.execute() == "finished" and active.writer is not None
            assert "cost limit of 0.1 USD is reached" in active.runner.note
            with closing(RunReader(active.writer.folder)) as reader:
                found = reader.attempt(1)
            assert found is not None and found.usage is not None and said in found.message
            assert (found.outcome, found.usage.input_tokens, found.cost) == ("error", tokens, cost)


@pytest.mark.real
@pytest.mark.parametrize("plain", [True, False], ids=["whole", "streamed"])
async def test_ten_megabytes_are_an_answer(project, plain: bool) -> None:
    found = await attempt_of(project, Planned(text="fine" * 2_500_000, chunks=500, plain=plain))
    assert found.outcome == "passed" and len(found.response_text) == 10_000_000


@pytest.mark.real
def test_kill_9_of_a_run_asks_nothing_again_that_was_answered(project) -> None:
    asked: list[str] = []

    def answer(seen: Seen) -> Planned:
        asked.append(seen.body["messages"][-1]["content"])
        return Planned(text="fine", delay=60 if asked.count("q5") == 1 and asked[-1] == "q5" else 0)

    cases = ", ".join(f"{{name: c{i}, input: q{i}, expected: {{should_contain: [fine]}}}}" for i in range(9))
    with OpenAIServer(default=answer) as server:
        root: Path = project(suite=f"agent: bot\ntest_cases: [{cases}]\n", config=openai(server.base))
        command = [sys.executable, "-m", "tui_eval", "run", ".", "-j", "1"]
        process = subprocess.Popen(
            command, cwd=root, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
        )
        assert process.stderr is not None
        for line in process.stderr:
            if "[5/9]" in line:
                break
        folder = next((root / ".tui-eval" / "runs").iterdir())
        reader = RunReader(folder)
        done = lambda: sum(row.state == "done" for row in reader.attempts())  # noqa: E731
        asyncio.run(until(lambda: done() == 5 and "q5" in asked))
        process.send_signal(signal.SIGKILL)
        process.wait(60)
        process.stderr.close()
        assert reader.info().state == "interrupted"
        again = subprocess.run(
            [sys.executable, "-m", "tui_eval", "resume"],
            cwd=root,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert again.returncode == 0 and "All 9 cases passed" in again.stdout, again.stderr
    assert sorted(asked) == sorted([f"q{i}" for i in range(9)] + ["q5"]), "only what hung was asked again"
    assert [row.outcome for row in reader.attempts()] == ["passed"] * 9
    reader.close()


@pytest.mark.real
async def test_two_apps_on_one_project(project) -> None:
    """Each has an engine of its own; both runs are whole, and the index knows both."""
    cases = ", ".join(f"{{name: c{i}, input: q{i}}}" for i in range(40))
    root: Path = project(suite=f"agent: helper\ntest_cases: [{cases}]\n", script="default: fine\nspeed: 0\n")
    clients = [EngineClient(root), EngineClient(root)]
    started = await asyncio.gather(*(client.run(RunRequest(paths=[str(root)])) for client in clients))
    assert (await clients[0].state())["pid"] != (await clients[1].state())["pid"]
    for run in started:
        reader = RunReader(run.folder)
        await until(lambda reader=reader: reader.info().state == "finished")
        assert len([row for row in reader.attempts() if row.outcome == "passed"]) == 40
        reader.close()
    for client in clients:
        await client.close()
    index = Index(root)
    await until(lambda: {run.run_id for run in started} <= {row.id for row in index.runs()})


def test_what_a_turn_waited_for_others_is_not_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    collector = Collector(None, 1, Masker([]))

    def turn(number: int, measured: float | None) -> float | None:
        collector.begin(number, "hi")
        now[0] += 0.139
        collector.waited(0.070)
        collector.take(Finished(Reply(turn=number, text="two", latency_ms=measured)))
        return collector.replies[-1].latency_ms

    assert turn(1, None) == turn(2, 139.0) == turn(3, 138.2) == 69.0
    # What the agent says itself has no such wait in it; and what was answered long ago took what it took.
    assert turn(4, 50.0) == 50.0 and turn(5, 4000.0) == 4000.0


def test_a_character_that_comes_in_two_pieces_is_judged_as_one() -> None:
    """JavaScript cuts texts in the middle of an emoji: it was shown, and `should_not_contain` let it pass."""
    collector = Collector(None, 1, Masker([]))
    collector.begin(1, "hi")
    halves = "\ud83c", "\udf89 ok"
    for text in halves:
        collector.take(TextDelta(text))
    reply = Reply(turn=1, text="".join(halves))
    collector.take(Finished(reply))
    assert reply.text == "🎉 ok"
    assert [entry.text for entry in collector.entries if entry.kind == "assistant"] == ["🎉 ok"]


def test_a_clock_that_is_set_makes_no_odd_times(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector(None, 1, Masker([]))
    collector.begin(1, "hi")
    collector.take(TextDelta("one"))
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 7200)
    collector.take(ToolCall("1", "look", {}))
    collector.take(ToolResult("1", "look", 1))
    monkeypatch.setattr(time, "time", lambda: real() + 7200)
    collector.take(Finished(Reply(turn=1, text="two")))
    times = [entry.started_at or 0 for entry in collector.entries]
    assert times == sorted(times) and times[-1] - times[0] < 60
    assert all(
        0 <= entry.duration_ms < 60_000 for entry in collector.entries if entry.duration_ms is not None
    )
    assert collector.replies[0].latency_ms is not None and 0 <= collector.replies[0].latency_ms < 60_000


async def test_what_an_agent_said_before_it_failed_is_its_answer_in_every_file(
    project, tmp_path: Path
) -> None:
    suite = (
        "agent: bot\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [fine]}}\n"
        "  - {name: two, messages: [hello, hi], expected: {should_contain: [fine]}}\n"
        "  - {name: silent, messages: [hello, nothing], expected: {should_contain: [fine]}}\n"
    )
    script = (
        "rules:\n  - {match: hello, say: good day}\n  - {match: nothing, steps: [{error: boom}]}\n"
        "default: {steps: [{say: so far}, {error: boom}]}\nspeed: 0\n"
    )
    config = "agents:\n  bot: {type: scripted, script: agent.script.yaml}\n"
    root = project(suite=suite, config=config, script=script)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
    await active.execute()
    assert active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        for name in ("r.json", "r.promptfoo.json", "r.csv"):
            export(reader, tmp_path / name)
    told = {one["name"]: one for one in json.loads((tmp_path / "r.json").read_text())["results"]}
    said = {name: one["details"]["response_text"] for name, one in told.items()}
    assert said == {"one": "so far", "two": "so far", "silent": "good day"}
    assert {one["outcome"] for one in told.values()} == {"error"}
    rows = json.loads((tmp_path / "r.promptfoo.json").read_text())["results"]["results"]
    assert [one["response"]["output"] for one in rows] == ["so far", "so far", "good day"]
    with (tmp_path / "r.csv").open() as file:
        assert [row["response_text"] for row in csv.DictReader(file)] == ["so far", "so far", "good day"]


class LiveWriter:
    """Keeps what viewers see."""

    def __init__(self) -> None:
        self.live_pieces: list[tuple[str, str]] = []

    def live(self, ref: int, kind: str, text: str, *_: object) -> None:
        self.live_pieces.append((kind, text))

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


@pytest.mark.parametrize(("reply", "shown"), [("Let me see. It is 7.", 0), ("It is 7, as I said.", 1)])
def test_a_reply_streamed_with_calls_between_its_parts_is_not_shown_again(reply: str, shown: int) -> None:
    writer = LiveWriter()
    collector = Collector(writer, 1, Masker([]))  # type: ignore[arg-type]
    collector.begin(1, "x")
    for event in (
        TextDelta("Let me see. "),
        ToolCall("1", "look"),
        TextDelta("It is 7."),
        Finished(Reply(1, reply)),
    ):
        collector.take(event)
    assert writer.live_pieces.count(("assistant", reply)) == shown
    assert collector.entries[-1].text == reply, "the record has the whole reply"


@pytest.mark.parametrize(
    ("streamed", "reply", "said"),
    [
        ("It is 7.\n```json\n{}\n```", "It is 7.", ["It is 7."]),
        (" It is 7.\n", "It is 7.", ["It is 7."]),
        ("It is 8.", "It is 7.", ["It is 8.", "It is 7."]),
        ("No, wait. It is 7.", "No", ["No, wait. It is 7.", "No"]),
    ],
)
def test_a_reply_whose_agent_took_its_end_off_was_said_once(
    streamed: str, reply: str, said: list[str]
) -> None:
    writer = LiveWriter()
    collector = Collector(writer, 1, Masker([]))  # type: ignore[arg-type]
    collector.begin(1, "x")
    for event in (TextDelta(streamed), Finished(Reply(1, reply))):
        collector.take(event)
    assert [entry.text for entry in collector.entries if entry.kind == "assistant"] == said
    seen = "".join(text for kind, text in writer.live_pieces if kind == "assistant")
    assert seen == streamed + "".join(said[1:])


def test_what_was_said_before_a_call_stays_beside_the_reply() -> None:
    collector = Collector(None, 1, Masker([]))
    collector.begin(1, "x")
    for event in (TextDelta("It is 7, I think."), ToolCall("1", "look"), Finished(Reply(1, "It is 7"))):
        collector.take(event)
    assert [entry.text for entry in collector.entries if entry.kind == "assistant"] == [
        "It is 7, I think.",
        "It is 7",
    ]
