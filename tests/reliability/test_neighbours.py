"""A neighbour's weight spends nobody else's time: endless streams, floods, bombs, patterns that run away."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.test_runs import go, outcomes
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

QUICK = 12
LIMIT = 6
"""Seconds of an honest case that takes a hundredth of one: what a shared machine may need."""
FLOODS = ("stream", "text", "chunks", "headers", "header", "interim", "bomb")


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    """The address of the server of everything that a reply should not be."""
    command = [sys.executable, "-m", "tests.reliability.hostile_server"]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        server.stdin.close()


def _suite(agent: str, count: int, word: str, limit: float) -> str:
    cases = "".join(
        f"  - {{name: '{agent} {number}', input: 'hello {number}', timeout_seconds: {limit},"
        f" expected: {{should_contain: [{word}]}}}}\n"
        for number in range(count)
    )
    return f"agent: {agent}\ntest_cases:\n{cases}"


def _attempts(reader: RunReader) -> dict[str, Attempt]:
    names = {case.id: case.name for case in reader.cases()}
    found = {names[row.case_ref]: reader.attempt(row.id) for row in reader.attempts()}
    return {name: attempt for name, attempt in found.items() if attempt is not None}


async def _run(project: Callable[..., Path], agents: dict[str, str], limits: dict[str, float], **more):
    """A run of a suite for each agent, all at once."""
    config = "".join(f"  {name}: {{{entry}, timeout: {limits[name]}}}\n" for name, entry in agents.items())
    files = {
        f"{name}.yaml": _suite(name, QUICK if name == "quick" else 1, "fine", limits[name]) for name in agents
    }
    root = project(suite="agent: quick\ntest_cases: []\n", config=f"agents:\n{config}", **files)
    (root / "suite.yaml").unlink()
    _, reader = await go(root, concurrency=32, **more)
    return _attempts(reader)


def _judged(attempts: dict[str, Attempt], name: str) -> list[tuple[str, str]]:
    return [(one.outcome, one.message) for key, one in attempts.items() if key.startswith(f"{name} ")]


@pytest.mark.real
async def test_floods_bombs_and_endless_streams_take_no_time_of_others(
    project: Callable[..., Path], hostile: str
) -> None:
    agents = {"quick": f"type: http, url: '{hostile}/quick'"}
    agents |= {f"n{n}-{kind}": f"type: http, url: '{hostile}/{kind}'" for kind in FLOODS for n in range(2)}
    agents |= {
        f"n{n}-{kind}": f"type: openai, model: m, base_url: '{hostile}/{kind}'"
        for kind in ("floods", "line", "lines")
        for n in range(2)
    }
    limits = {name: LIMIT if name == "quick" else 4.0 for name in agents}
    attempts = await _run(project, agents, limits)
    assert _judged(attempts, "quick") == [("passed", "passed")] * QUICK
    for name, attempt in attempts.items():
        if not name.startswith("quick"):
            assert attempt.outcome == "error", name
            assert attempt.message and "\n" not in attempt.message, name


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("headers", "no answer from"),
        ("interim", "no answer from"),
        ("bomb", "larger than 64 MB"),
    ],
)
async def test_what_has_no_end_is_said_in_a_line(
    project: Callable[..., Path], hostile: str, path: str, reason: str
) -> None:
    agents = {"it": f"type: http, url: '{hostile}/{path}', retries: 0"}
    attempts = await _run(project, agents, {"it": 120})
    (only,) = attempts.values()
    assert only.outcome == "error"
    assert reason in only.message


async def test_a_packed_answer_that_nobody_asked_for_is_unpacked(
    project: Callable[..., Path], hostile: str
) -> None:
    attempts = await _run(project, {"it": f"type: http, url: '{hostile}/packed'"}, {"it": 60})
    (only,) = attempts.values()
    assert only.response_text == "unpacked"


@pytest.mark.parametrize(
    ("path", "wish"),
    [("year", "31,536,000 s"), ("never", "without end"), ("soon", "200 s, and the time limit leaves")],
)
async def test_who_is_told_to_come_back_too_late_ends_at_once_with_that(
    project: Callable[..., Path], hostile: str, path: str, wish: str
) -> None:
    began = time.monotonic()
    attempts = await _run(project, {"it": f"type: http, url: '{hostile}/{path}'"}, {"it": 120})
    (only,) = attempts.values()
    assert (only.outcome, only.retries) == ("error", 0)
    assert "HTTP 429" in only.message and f"the server asks to wait {wish}" in only.message
    assert time.monotonic() - began < 100


RUNAWAY = "(a+)+$"
PATTERNS = """
providers: [echo]
prompts: ["{{{{text}}}}"]
tests:
{cases}
"""


def _case(name: str, kind: str, value: str) -> str:
    return (
        f"  - description: {name}\n    vars: {{text: '{'a' * 40}b'}}\n"
        f"    assert: [{{type: {kind}, value: {value!r}}}]\n"
    )


@pytest.mark.real
async def test_patterns_that_run_away_keep_no_pattern_waiting(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = "(() => { while (true); })()"
    cases = [_case(f"runaway {n}", "regex", RUNAWAY) for n in range(6)]
    cases += [_case(f"loop {n}", "javascript", loop) for n in range(4)]
    cases += [_case(f"regex {n}", "regex", r"^(?<first>a)a+b$") for n in range(QUICK)]
    cases += [_case(f"script {n}", "javascript", f"output.length == {41 + n - n}") for n in range(QUICK)]
    # (processes, seconds, aside): two seconds are as long as ten.
    monkeypatch.setattr(JavaScriptHost.__init__, "__defaults__", (0, 2.0, 8))
    root = project(
        **{"promptfooconfig.yaml": PATTERNS.format(cases="".join(cases))}, config="run: {timeout: 5}\n"
    )
    (root / "suite.yaml").unlink()
    _, reader = await go(root, concurrency=40)
    found = outcomes(reader)
    for name, outcome in found.items():
        # A script that throws or does not end fails its case, as in promptfoo; a pattern cannot be judged.
        expected = {"runaway": "error", "loop": "failed"}.get(name.split()[0], "passed")
        assert outcome == [expected], name
    # What runs away ends by its own limit, and the time that it waited for a worker is not in it.
    for name, attempt in _attempts(reader).items():
        if not name.startswith(("regex", "script")):
            assert "did not end within 2 s" in attempt.message, name
