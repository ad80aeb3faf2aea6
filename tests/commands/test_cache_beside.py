"""`--cache`: what an answer rests on beside its question, what is no answer, and a cache that cannot be used."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tests.servers import OpenAIServer, Planned
from tests.servers.base import Seen
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import Recorded, RunRequest
from tui_eval.store.run_folders import Store


class Queries(OpenAIServer):
    """Asks its tool for the sum, and repeats what that gave."""

    def default(self, seen: Seen) -> Planned:
        last = seen.body["messages"][-1]
        if last["role"] != "tool":
            return Planned(tool_calls=[("run_sql", {"query": "select sum(amount) as total from t"})])
        return Planned(text=f"the total: {last['content']}")


class Judge(OpenAIServer):
    """Says what it is told to say of what it judges."""

    said = "?"

    def default(self, seen: Seen) -> Planned:
        return Planned(text=self.said if "rubric" in json.dumps(seen.body).lower() else '{"pass": true}')


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def judge() -> Iterator[Judge]:
    with Judge() as running:
        yield running


def edit(name: str, old: str, new: str) -> Callable[[], None]:
    def change() -> None:
        text = Path(name).read_text("utf-8")
        assert old in text
        Path(name).write_text(text.replace(old, new), "utf-8")

    return change


def more() -> None:
    Path("data/u.csv").write_text("amount\n1\n", "utf-8")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (edit("data/t.csv", "1", "7"), "7"),
        (edit("tui_eval.yaml", "path: data", "path: other"), "9"),
        (more, "1"),  # the tool's description names the tables
    ],
)
def test_the_databases_that_its_tools_ask_are_a_part_of_an_agent(
    cli: Cli, change: Callable[[], None], said: str
) -> None:
    for name, amount in {"data/t.csv": "1", "other/t.csv": "9"}.items():
        Path(name).parent.mkdir()
        Path(name).write_text(f"amount\n{amount}\n", "utf-8")
    Path("suite.yaml").write_text(
        "agent: bot\ntest_cases: [{name: one, input: sum, expected: {should_contain: ['total']}}]\n", "utf-8"
    )
    with Queries() as server:
        Path("tui_eval.yaml").write_text(
            f"agents: {{bot: {{type: openai, base_url: '{server.base}', model: m, cache: true,\n"
            "  tools: [{type: sql, database: shop}]}}\ndatabases: {shop: {type: files, path: data}}\n",
            "utf-8",
        )
        assert cli("run", ".", "--trust").code == 0
        assert "1 cached" in cli("run", ".", "--trust").out and len(server.requests) == 2
        change()
        again = cli("run", ".", "--changed", "--trust", "-o", "again.json")
        assert again.code == 0 and "cached" not in again.out and len(server.requests) == 4
        (result,) = json.loads(Path("again.json").read_text())["results"]
        assert said in result["details"]["response_text"].partition("rows")[2]


RUBRIC = """\
prompts: ['{{q}}']
providers: [echo]
defaultTest:
  options: {provider: {id: "openai:chat:judge", config: {apiBaseUrl: "BASE", apiKey: none-at-all}}}
tests:
  - {vars: {q: one}, assert: [{type: llm-rubric, value: the rubric}, {type: g-eval, value: other}]}
"""


@pytest.mark.parametrize("compat", ["documented", "reference"])
def test_what_a_judge_said_is_not_kept_where_it_is_no_verdict(cli: Cli, judge: Judge, compat: str) -> None:
    suite = RUBRIC.replace("BASE", judge.base).replace(", {type: g-eval, value: other}", "")
    Path("promptfooconfig.yaml").write_text(suite, "utf-8")
    asked = ("run", ".", "--trust", "--cache", "--compat", compat)
    assert cli(*asked).code != 0 and len(judge.requests) == 1
    judge.said = '{"pass": true, "score": 1, "reason": "good"}'
    mended = cli(*asked, "--failed")
    assert mended.code == 0 and len(judge.requests) == 2, mended.out
    assert cli(*asked).code == 0 and len(judge.requests) == 2  # and this one is


def test_what_a_judge_said_is_replaced_by_what_is_asked_anew(cli: Cli, judge: Judge) -> None:
    """Twice the same rubric: asked twice anew, and found again for both."""
    suite = RUBRIC.replace("BASE", judge.base).replace(
        "{type: g-eval, value: other}", "{type: llm-rubric, value: the rubric}"
    )
    Path("promptfooconfig.yaml").write_text(suite, "utf-8")
    judge.said = '{"pass": true, "score": 1, "reason": "good"}'
    kept = ("run", ".", "--trust", "--cache")
    assert cli(*kept).code == 0
    judge.said = '{"pass": false, "score": 0, "reason": "bad"}'
    before = len(judge.requests)
    asyncio.run(prepare(RunRequest(paths=["."], trust=True, anew=True)).execute())
    asked = len(judge.requests)
    assert asked > before
    assert cli(*kept).code == 1 and len(judge.requests) == asked


@pytest.mark.parametrize("how", ["command", "app"])
def test_what_a_judge_said_is_replaced_where_answers_are_judged_again(
    cli: Cli, judge: Judge, how: str
) -> None:
    suite = RUBRIC.replace("BASE", judge.base).replace(", {type: g-eval, value: other}", "")
    Path("promptfooconfig.yaml").write_text(suite, "utf-8")
    judge.said = '{"pass": true, "score": 1, "reason": "good"}'
    kept = ("run", ".", "--trust", "--cache")
    assert cli(*kept).code == 0 and len(judge.requests) == 1
    judge.said = '{"pass": false, "score": 0, "reason": "bad"}'
    if how == "command":
        assert cli("rescore", "--trust").code == 1
    else:
        (run,) = Store(Path.cwd()).run_folders()
        again = Recorded(str(run), 1)
        request = RunRequest(paths=["."], trust=True, anew=True, linked_to=run.name, continue_from=again)
        asyncio.run(prepare(request).execute())
    assert len(judge.requests) == 2
    assert cli(*kept).code == 1 and len(judge.requests) == 2


def test_what_a_judge_of_neuro_san_left_undecided_is_not_kept(cli: Cli, judge: Judge) -> None:
    judge.said = "rubric"
    Path("tui_eval.yaml").write_text(
        f"agents: {{net: {{type: echo}}}}\njudge: {{type: openai, base_url: '{judge.base}', model: m}}\n",
        "utf-8",
    )
    Path("tests/case.hocon").parent.mkdir()
    Path("tests/case.hocon").write_text(
        '{"agent": "net", "interactions": [{"text": "hi", "response": {"text": {"gist": "meets the rubric"}}}]}',
        "utf-8",
    )
    asked = ("run", ".", "--trust", "--cache", "--agent", "net")
    first = cli(*asked)
    assert first.code != 0 and len(judge.requests) == 1, first.out + first.err
    judge.said = "pass"
    mended = cli(*asked)
    assert mended.code == 0 and len(judge.requests) == 2, mended.out
    cli(*asked)
    assert len(judge.requests) == 2


@pytest.mark.real
def test_an_answer_that_is_too_large_is_said_once(cli: Cli) -> None:
    long = "x" * (4 << 20)
    Path("suite.yaml").write_text(
        f"agent: bot\ntest_cases: [{{name: one, input: {long}}}, {{name: two, input: {long}y}}, {{name: z, input: hi}}]\n",
        "utf-8",
    )
    Path("tui_eval.yaml").write_text("agents: {bot: {type: echo, cache: true}}\n", "utf-8")
    assert cli("run", ".").out.count("an answer of more than 4 MiB is not kept") == 1
    again = cli("run", ".")
    assert again.out.count("is not kept, and is asked for again") == 1 and "1 cached" in again.out


def test_a_cache_that_cannot_be_used_is_said(cli: Cli, tmp_path: Path) -> None:
    Path("suite.yaml").write_text(
        "agent: bot\ntest_cases: [{name: one, input: hi, expected: {should_contain: [hi]}}]\n", "utf-8"
    )
    Path("tui_eval.yaml").write_text("agents: {bot: {type: echo, cache: true}}\n", "utf-8")
    assert cli("run", ".").code == 0
    answers = tmp_path / ".tui-eval" / "answers.db"
    answers.unlink()
    answers.mkdir()
    said = cli("run", ".")
    assert said.code == 0
    assert "answers are not kept: .tui-eval/answers.db: is a folder; remove it" in said.out
    assert "is a folder; remove it" in cli("runs").out + cli("show", "last").out
