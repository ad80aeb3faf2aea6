"""What judges take: beside what the agents take, in every total, towards the cost limit, in the run that asked them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.commands.conftest import Cli
from tests.servers import OpenAIServer, Planned
from tests.servers.base import Seen
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.attempt import time_limits
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader

EACH = 19
"""Tokens of one answer; at a cent each."""


class Judge(OpenAIServer):
    """Says that all is well, and that the first is best; of one number on it says nothing."""

    silent_from = 1_000

    def default(self, seen: Seen) -> Planned:
        if len(self.requests) >= self.silent_from:
            return Planned(hang=True, text="well", plain=True, delay=60.0)
        said = {"pass": True, "score": 1, "reason": "well", "steps": ["look"], "best": 0, "index": 0}
        return Planned(text=json.dumps(said))


@pytest.fixture
def judge() -> Iterator[Judge]:
    with Judge() as running:
        yield running


SUITE = """\
prompts: [PROMPTS]
providers: [echo]
defaultTest:
  options: {provider: {id: "openai:chat:judge", config: {apiBaseUrl: "BASE", apiKey: none-at-all, cost: 0.01}}}
  assert: [ASSERT]
tests: [{vars: {q: one}}, {vars: {q: two}}, {vars: {q: three}}]
"""


@pytest.fixture
def suite(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A promptfoo suite of three tests with a rubric each; the agent is free."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, judge)
    return tmp_path


def write(
    folder: Path,
    judge: Judge,
    *,
    prompts: str = '"{{q}}"',
    checks: str = "{type: llm-rubric, value: is well}",
) -> None:
    text = SUITE.replace("PROMPTS", prompts).replace("ASSERT", checks).replace("BASE", judge.base)
    (folder / "promptfooconfig.yaml").write_text(text, "utf-8")


def results(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    document = json.loads(path.read_text())
    return document["summary"], document["results"]


def test_what_judges_take_is_in_every_total(cli: Cli, suite: Path, judge: Judge) -> None:
    names = ["a.json", "a.promptfoo.json", "a.html", "a.md", "a.csv", "a.parquet", "a.jsonl"]
    done = cli("run", ".", "--trust", *(word for name in names for word in ("-o", name)))
    words = "judges: 57 tokens, $0.5700"
    assert done.code == 0 and done.out.endswith(f"All 3 cases passed; {words}\n")
    summary, rows = results(suite / "a.json")
    assert summary["total_judge_tokens"] == 3 * EACH
    assert summary["total_judge_cost"] == pytest.approx(0.57)
    assert (summary["total_tokens"], summary["total_cost"]) == (0, 0), "the agent's own stay what they are"
    assert [one["judging"] for one in rows] == [
        {"calls": 1, "tokens": 19, "input_tokens": 12, "output_tokens": 7, "cached_tokens": None, "cost": 0.19}
    ] * 3  # fmt: skip
    whole = json.loads((suite / "a.promptfoo.json").read_text())["results"]
    took = {"total": 57, "prompt": 36, "completion": 21, "cached": 0, "numRequests": 3}
    assert whole["stats"]["tokenUsage"]["assertions"] == took
    assert whole["prompts"][0]["metrics"]["tokenUsage"]["assertions"] == took
    first = whole["results"][0]
    assert first["tokenUsage"]["assertions"] == first["gradingResult"]["tokensUsed"]
    assert first["tokenUsage"]["total"] == 0 and first["gradingResult"]["tokensUsed"]["total"] == EACH
    page = (suite / "a.html").read_text()
    assert words in page and page.count("judges: 19 tokens, $0.1900") == 3
    assert words in (suite / "a.md").read_text()
    table = pl.read_parquet(suite / "a.parquet")
    assert table["judge_tokens"].to_list() == [19] * 3 and table["judge_cost"].sum() == pytest.approx(0.57)
    assert cli("show", "last", "Row #1").out.splitlines()[0].endswith("judges: 19 tokens, $0.1900")
    for file in ("a.json", "a.promptfoo.json"):
        assert cli("show", file).out.rstrip().endswith(f"All 3 cases passed; {words}"), file
    assert words in cli("runs").out
    (listed,) = json.loads(cli("runs", "--json").out)
    assert (listed["judge_tokens"], listed["judge_cost"]) == (57, pytest.approx(0.57))
    shown = cli("run", ".", "--trust", "--display", "json", "-s", "Row #1").out
    assert json.loads(shown)["judging"]["cost"] == 0.19


def test_a_cost_limit_counts_judges_also_when_the_run_goes_on(cli: Cli, suite: Path, judge: Judge) -> None:
    stopped = cli("run", ".", "--trust", "--max-cost", "0.3", "-j", "1")
    assert stopped.code == 1 and len(judge.requests) == 2
    assert "stopped: the cost limit of 0.3 USD is reached (0.3800)" in stopped.out
    refused = cli("resume", "last", "--trust")
    assert "(0.3800 spent so far)" in refused.err and len(judge.requests) == 2
    on = cli("resume", "last", "--trust", "--max-cost", "1")
    assert on.code == 0 and len(judge.requests) == 3
    assert on.out.rstrip().endswith("judges: 57 tokens, $0.5700")


def test_judging_again_counts_in_its_own_run(cli: Cli, suite: Path, judge: Judge) -> None:
    cli("run", ".", "--trust")
    again = cli("rescore", "last", "--trust", "-o", "again.json")
    assert again.code == 0 and again.out.rstrip().endswith("judges: 57 tokens, $0.5700")
    assert results(suite / "again.json")[0]["total_judge_tokens"] == 57
    write(suite, judge, checks="{type: contains, value: o}")
    free = cli("rescore", "last", "--trust", "-o", "free.json")
    assert "judges" not in free.out and "judg" not in json.dumps(results(suite / "free.json")[0])


def test_a_judge_of_unknown_price_is_said_with_the_limit(cli: Cli, suite: Path, judge: Judge) -> None:
    text = (suite / "promptfooconfig.yaml").read_text()
    (suite / "promptfooconfig.yaml").write_text(text.replace(", cost: 0.01", ""), "utf-8")
    done = cli("run", ".", "--trust", "--max-cost", "1")
    assert (
        "the cost of 3 answers of judges is unknown: the cost limit of 1 USD did not count that" in done.out
    )
    assert "; judges: 57 tokens\n" in done.out


def test_what_a_judge_would_take_is_known_where_part_of_it_was_kept(
    cli: Cli, suite: Path, judge: Judge
) -> None:
    """An estimate divided what the new attempts had cost by all of them."""
    for options, asked in ((("-k", "1"), 3), (("-k", "2"), 6), (("-k", "2"), 6)):
        assert cli("run", ".", "--trust", "--cache", *options).code == 0 and len(judge.requests) == asked
        attempts = int(options[1])
        for newest, *_ in Index(suite).latest().values():
            assert newest.own_attempts == attempts and newest.judge_cost == pytest.approx(0.19 * attempts)


def test_every_question_of_an_assertion_counts(cli: Cli, suite: Path, judge: Judge) -> None:
    """g-eval asks for steps, then for a score; its verdict says the tokens of both."""
    write(suite, judge, checks="{type: g-eval, value: is well}")
    cli("run", ".", "--trust", "-s", "Row #1", "-o", "a.json")
    (row,) = results(suite / "a.json")[1]
    calls = len(judge.requests)
    assert calls > 1 and row["judging"]["calls"] == calls and row["judging"]["tokens"] == calls * EACH
    assert row["assertions"][0]["judge"]["usage"]["input_tokens"] == calls * 12


def test_what_compares_columns_is_asked_once_and_counts_once(cli: Cli, suite: Path, judge: Judge) -> None:
    write(suite, judge, prompts='"{{q}}", "{{q}}!"', checks="{type: select-best, value: the shorter}")
    done = cli("run", ".", "--trust", "-j", "1", "--max-cost", "0.3", "-o", "a.json")
    assert "the cost limit of 0.3 USD is reached" in done.out
    summary, rows = results(suite / "a.json")
    assert summary["total_judge_tokens"] == EACH * len(judge.requests)
    assert sum(one.get("judging", {}).get("calls", 0) for one in rows) == len(judge.requests)


def test_naming_what_failed_says_what_it_took(cli: Cli, suite: Path, judge: Judge) -> None:
    write(suite, judge, checks="{type: equals, value: other}")
    (suite / "tui_eval.yaml").write_text(
        f"judge: {{type: openai, base_url: '{judge.base}', model: j}}\nprices: {{j: {{input: 10000, output: 10000}}}}\n",
        "utf-8",
    )
    cli("run", ".", "--trust")
    named = cli("assess", "last", "--trust")
    assert judge.requests
    tokens = EACH * len(judge.requests)
    assert named.out.rstrip().endswith(f"naming them took {tokens} tokens, ${tokens / 100:.4f}")


@pytest.fixture
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.mark.usefixtures("own_state")
def test_a_cached_run_pays_no_judge_again_and_says_so(cli: Cli, suite: Path, judge: Judge) -> None:
    first = cli("run", ".", "--trust", "--cache", "-k", "2")
    assert "judges: 114 tokens, $1.1400\n" in first.out and len(judge.requests) == 6
    names = ["a.json", "a.html", "a.md"]
    again = cli(
        "run", ".", "--trust", "--cache", "-k", "2", *(word for name in names for word in ("-o", name))
    )
    assert again.code == 0 and len(judge.requests) == 6, "each attempt's judge is asked once"
    assert "; judges: 6 cached, $1.1400 saved\n" in again.out
    summary, rows = results(suite / "a.json")
    assert (summary["total_judge_cost"], summary["total_judge_tokens"]) == (0, 0)
    assert [(one["judging"]["calls"], one["judging"]["cached"]) for one in rows] == [(0, 1)] * 6
    assert rows[0]["judging"]["saved"] == pytest.approx(0.19) and rows[0]["judging"]["cost"] is None
    assert rows[0]["assertions"][0]["reason"] == "well"
    for name in ("a.html", "a.md"):
        assert "judges: 6 cached, $1.1400 saved" in (suite / name).read_text(), name
    assert cli("show", "last", "Row #1").out.splitlines()[0].endswith("judges: 1 cached, $0.1900 saved")
    assert "judges: 6 cached, $1.1400 saved" in cli("show", "a.json").out
    assert "judges: 6 cached, $1.1400 saved" in cli("runs").out
    (run,) = [one for one in (suite / ".tui-eval" / "runs").iterdir() if "6 cached" in cli("show", one).out]
    Path("kept").mkdir()
    run.rename(Path("kept") / run.name)
    for command in ("show", "merge"):
        assert "judges: 6 cached, $1.1400 saved" in cli(command, "kept").out, command


@pytest.mark.usefixtures("own_state")
def test_judges_are_asked_where_anything_is_otherwise(cli: Cli, suite: Path, judge: Judge) -> None:
    one = ("run", ".", "--trust", "-s", "Row #1")
    cli(*one, "--cache")
    asked = len(judge.requests)
    for words in (one, (*one, "--no-cache"), (*one, "--cache", "-k", "2"), ("rescore", "last", "--trust")):
        cli(*words)
        assert len(judge.requests) > asked, words
        asked = len(judge.requests)
    write(suite, judge, checks="{type: llm-rubric, value: is kind}")
    cli(*one, "--cache")
    assert len(judge.requests) == asked + 1, "another question"
    text = (suite / "promptfooconfig.yaml").read_text()
    (suite / "promptfooconfig.yaml").write_text(
        text.replace("openai:chat:judge", "openai:chat:other"), "utf-8"
    )
    cli(*one, "--cache")
    assert len(judge.requests) == asked + 2, "another judge"
    cli(*one, "--cache")
    assert len(judge.requests) == asked + 2


@pytest.mark.usefixtures("own_state")
def test_columns_that_are_compared_are_not_paid_again(cli: Cli, suite: Path, judge: Judge) -> None:
    write(suite, judge, prompts='"{{q}} a", "{{q}} b"', checks="{type: select-best, value: short}")
    for _ in range(2):
        cli("run", ".", "--trust", "--cache")
        assert len(judge.requests) == 3


@pytest.mark.usefixtures("own_state")
def test_a_judge_whose_entry_asks_for_it_is_kept(cli: Cli, suite: Path, judge: Judge) -> None:
    text = (suite / "promptfooconfig.yaml").read_text()
    lines = [line for line in text.splitlines() if "options:" not in line]
    (suite / "promptfooconfig.yaml").write_text("\n".join(lines), "utf-8")
    entry = f"{{type: openai, model: judge, base_url: '{judge.base}', api_key: none-at-all, cache: true}}"
    (suite / "tui_eval.yaml").write_text(f"judge: {entry}\n")
    for _ in range(2):
        assert cli("run", ".", "--trust").code == 0 and len(judge.requests) == 3


CUT_OFF = "{type: llm-rubric, value: is well}, {type: g-eval, value: is well}, {type: contains, value: one}"
"""Three questions: g-eval asks for the steps first."""


async def cut_off(folder: Path, judge: Judge, how: str, cache: bool | None = None) -> ActiveRun:
    """A run whose judge is silent from the third question on, which is when it is cut off."""
    judge.silent_from = 3
    write(folder, judge, checks=CUT_OFF)
    request = RunRequest(paths=[str(folder)], trust=True, select=["Row #1"], cache=cache)
    active = await asyncio.to_thread(prepare, request)
    running = asyncio.create_task(active.execute())
    async with asyncio.timeout(60):
        while len(judge.requests) < 3:  # noqa: ASYNC110  # it is a thread that answers
            await asyncio.sleep(0.01)
        await (active.runner.cancel() if how == "cancel" else active.runner.interrupt())
        await running
    judge.silent_from = 1_000
    return active


def recorded(active: ActiveRun) -> Attempt:
    assert active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        attempt = reader.attempt(reader.attempts()[0].id)
    assert attempt is not None
    return attempt


def notes_of(attempt: Attempt) -> list[str]:
    return [one.text or "" for one in attempt.transcript if one.kind == "note"]


async def test_what_judges_answered_before_they_were_cut_off_is_in_the_record(
    suite: Path, judge: Judge
) -> None:
    active = await cut_off(suite, judge, "cancel")
    attempt = recorded(active)
    assert attempt.outcome == "cancelled" and attempt.judging is not None
    assert (attempt.judging.calls, attempt.judging.cost) == (2, pytest.approx(0.38))
    ((kind, passed, asked),) = ((one.type, one.passed, one.judge) for one in attempt.verdicts)
    assert (kind, passed) == ("llm-rubric", True) and asked and '"well"' in asked["answer"]
    assert [one for one in notes_of(attempt) if one.startswith("a judge had answered: ") and "look" in one]


@pytest.mark.usefixtures("own_state")
@pytest.mark.parametrize("how", ["cancel", "interrupt"])
async def test_what_judges_answered_before_they_were_cut_off_is_not_paid_again(
    suite: Path, judge: Judge, how: str
) -> None:
    await cut_off(suite, judge, how, cache=True)
    again = RunRequest(paths=[str(suite)], trust=True, select=["Row #1"], cache=True)
    active = await asyncio.to_thread(prepare, again)
    await active.execute()
    assert len(judge.requests) == 4, "the last question alone is asked again"


@pytest.mark.real
async def test_what_a_judge_answered_of_an_assertion_whose_time_is_over_is_in_the_record(
    suite: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_limits, "AT_LEAST", 0.5)
    judge.silent_from = 3
    write(suite, judge, checks=CUT_OFF)
    request = RunRequest(paths=[str(suite)], trust=True, select=["Row #1"], timeout=1.0)
    active = await asyncio.to_thread(prepare, request)
    await active.execute()
    attempt = recorded(active)
    passed = [(one.type, one.passed) for one in attempt.verdicts]
    assert passed == [("llm-rubric", True), ("g-eval", None), ("contains", True)]
    assert attempt.judging is not None and attempt.judging.cost == pytest.approx(0.38)
    assert [one for one in notes_of(attempt) if one.startswith("a judge had answered: ") and "look" in one]


async def test_a_comparison_that_was_cut_off_is_counted_once(suite: Path, judge: Judge) -> None:
    judge.silent_from = 2
    write(
        suite, judge, prompts='"{{q}} a", "{{q}} b"',
        checks="{type: select-best, value: short}, {type: select-best, value: kind}",
    )  # fmt: skip
    request = RunRequest(paths=[str(suite)], trust=True, filter_range="0:1")
    active = await asyncio.to_thread(prepare, request)
    running = asyncio.create_task(active.execute())
    async with asyncio.timeout(60):
        while len(judge.requests) < 2:  # noqa: ASYNC110  # it is a thread that answers
            await asyncio.sleep(0.01)
        await active.runner.interrupt()
        await running
    assert active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        known = [attempt.judging for row in reader.attempts() if (attempt := reader.attempt(row.id))]
    spent = sum(one.cost or 0.0 for one in known if one is not None) + active.runner.unfinished_cost
    assert spent == pytest.approx(0.19), "of the two questions one was answered"
