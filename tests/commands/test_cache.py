"""`run --cache`: answers that were given before are not asked for again, and everything says so."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Cli
from tests.servers import OpenAIServer, Planned
from tests.servers.base import Seen
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.attempt.stepping import Decision
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import Recorded, RunRequest
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.tui.loaders.case_loader import load
from tui_eval.tui.state.app_state import CasePointer, Where
from tui_eval.tui.state.case.copying import text_of


class Priced(OpenAIServer):
    """Repeats what it is told."""

    broken = False
    text = ""
    """What it says instead."""

    def default(self, seen: Seen) -> Planned:
        body: Any = seen.body
        if self.broken:
            return Planned(status=400)
        return Planned(text=self.text or body["messages"][-1]["content"])

    @property
    def count(self) -> int:
        """How many requests there were."""
        return len(self.requests)


@pytest.fixture
def server() -> Iterator[Priced]:
    with Priced() as running:
        yield running


SUITE = """\
agent: bot
test_cases:
  - {name: one, input: alpha, expected: {should_contain: [alpha]}}
  - {name: two, messages: [beta, gamma], expected: {should_contain: [delta]}}
"""


@pytest.fixture
def asked(server: Priced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of two cases (three turns) of an agent that costs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE, "utf-8")
    configure(tmp_path, server)
    return tmp_path


def configure(folder: Path, server: Priced, more: str = "", name: str = "bot") -> None:
    (folder / "tui_eval.yaml").write_text(
        f"agents:\n  {name}: {{type: openai, base_url: '{server.base}', model: m{more}}}\n"
        "prices: {m: {input: 1000, output: 1000}}\n",
        "utf-8",
    )


def test_the_cache_is_off_unless_asked_for(cli: Cli, asked: Path, server: Priced) -> None:
    cli("run", ".")
    cli("run", ".")
    assert server.count == 6 and not (asked / ".tui-eval" / "answers.db").exists()


def test_what_was_answered_is_not_asked_again_and_everything_says_so(
    cli: Cli, asked: Path, server: Priced
) -> None:
    first = cli("run", ".", "--cache", "-o", "first.json")
    assert server.count == 3 and "cached" not in first.out
    spent = json.loads((asked / "first.json").read_text())
    outputs = [
        f"again.{kind}" for kind in ("json", "html", "md", "csv", "junit.xml", "promptfoo.json", "jsonl")
    ]
    again = cli("run", ".", "--cache", *(word for name in outputs for word in ("-o", name)))
    assert server.count == 3 and again.code == first.code == 1
    assert (
        "passed cached" in again.out and "failed cached" in again.out and "2 cached" in again.err + again.out
    )
    assert re.search(r"2 cached, \$\d\.\d{4} saved", again.out)
    known = json.loads((asked / "again.json").read_text())
    for old, new in zip(spent["results"], known["results"], strict=True):
        assert new["cached"] is True and new["saved"] == old["cost"] > 0 and new["cost"] == 0
        assert new["tokens"] is None and "cached" not in old
        assert [one["passed"] for one in new["assertions"]] == [one["passed"] for one in old["assertions"]]
        assert new["details"]["response_text"] == old["details"]["response_text"]
        assert abs(new["duration_ms"] - old["duration_ms"]) < 1000
        assert any(entry["text"].startswith("cached: ") for entry in new["transcript"])
    assert all("cached" in (asked / name).read_text() for name in outputs)
    assert cli("show", "last", "one").out.splitlines()[0].endswith(", cached")
    assert "passed cached" in cli("show", "again.json").out
    listed = json.loads(cli("runs", "--json").out)
    assert [(one["cached"], one["saved"]) for one in listed] == [
        (2, pytest.approx(listed[1]["cost"])), (0, None),
    ]  # fmt: skip
    assert re.search(r"2 cached, \$\d\.\d{4} saved", cli("runs").out.splitlines()[1])
    assert "cached" not in cli("runs").out.splitlines()[2]
    shown = cli("run", ".", "--cache", "--display", "json").out
    assert [json.loads(line)["cached"] for line in shown.splitlines()] == [True, True]


def test_of_a_conversation_that_was_asked_in_part_that_is_said(cli: Cli, asked: Path, server: Priced) -> None:
    cli("run", ".", "--cache")
    suite = asked / "suite.yaml"
    suite.write_text(suite.read_text().replace("gamma", "delta"))
    again = cli("run", ".", "--cache")
    assert server.count == 4
    assert " two cached 1/2 turns [bot]" in again.err and " one cached [bot]" in again.err
    assert cli("show", "last", "two").out.splitlines()[0].endswith(", cached 1/2 turns")
    assert " two cached [bot]" in cli("run", ".", "--cache").err and server.count == 4


def test_a_cached_run_is_no_cheaper_than_the_one_that_was_paid(cli: Cli, asked: Path) -> None:
    """It read as an improvement: `0.0060 → 0.0000 USD`."""
    for name in ("one.json", "two.json"):
        cli("run", ".", "--cache", "-o", name)
    said = cli("compare", "one.json", "two.json").out
    cost = re.search(r"([\d.]+) → ([\d.]+) USD", said)
    assert cost is not None and cost[1] == cost[2] != "0.0000"
    assert "cached: 0 before, 2 after, compared by what they took when they were given" in said
    found = json.loads(cli("compare", "one.json", "two.json", "--json").out)
    assert found["cached"] == [0, 2] and found["usual"]["cost"][0] == pytest.approx(found["usual"]["cost"][1])


def test_sums_of_what_was_cached_stand_in_results_and_come_back_from_every_kind(
    cli: Cli, asked: Path
) -> None:
    cli("run", ".", "--cache", "-o", "first.json")
    cli("run", ".", "--cache", "-o", "again.json", "-o", "again.promptfoo.json")
    paid, known = (json.loads(Path(f"{name}.json").read_text()) for name in ("first", "again"))
    saved = {"total_cached": 2, "total_saved": pytest.approx(paid["summary"]["total_cost"])}
    for sums in (known["summary"], known["by_model"][0]):
        assert {name: sums[name] for name in saved} == saved
    assert [one["cached"] for one in known["cases"]] == [1, 1]
    assert not any("total_cached" in sums for sums in (paid["summary"], paid["by_model"][0]))
    shown = cli("show", "again.promptfoo.json").out
    assert re.search(r"2 cached, \$\d\.\d{4} saved", shown) and "passed cached" in shown
    cli("export", "again.promptfoo.json", "-o", "back.json")
    assert json.loads(Path("back.json").read_text())["summary"] == known["summary"]
    classic = cli("run", ".", "--cache", "--report", "classic").out
    assert re.search(r"^Cached:  2, \$\d\.\d{4} saved$", classic, re.MULTILINE)


def test_assertions_are_judged_anew(cli: Cli, asked: Path, server: Priced) -> None:
    cli("run", ".", "--cache")
    (asked / "suite.yaml").write_text(SUITE.replace("delta", "gamma"), "utf-8")
    assert cli("run", ".", "--cache").code == 0
    assert server.count == 3


def test_what_is_another_question_is_asked(cli: Cli, asked: Path, server: Priced) -> None:
    cli("run", ".", "--cache")
    cli("run", ".", "--cache", "--attempts", "2")
    assert server.count == 6  # the second attempts
    cli("run", ".", "--cache", "-m", "other")
    assert server.count == 9
    (asked / "suite.yaml").write_text(SUITE.replace("gamma", "epsilon"), "utf-8")
    cli("run", ".", "--cache")
    assert server.count == 10  # the turn before it is known, and the model is told of it
    assert [one["content"] for one in server.requests[-1].body["messages"]] == ["beta", "beta", "epsilon"]
    configure(asked, server, ", parameters: {temperature: 1}")
    cli("run", ".", "--cache")
    assert server.count == 13


def test_an_agent_may_ask_for_it_and_a_person_overrules_it(cli: Cli, asked: Path, server: Priced) -> None:
    configure(asked, server, ", cache: true, api_key: sk-one-of-a-kind")
    cli("run", ".")
    configure(asked, server, ", cache: true, api_key: sk-another-of-its-kind")
    cli("run", ".")
    assert server.count == 3
    cli("run", ".", "--no-cache")
    assert server.count == 6


@pytest.mark.real
def test_an_answer_that_took_longer_than_it_may_now_is_none(cli: Cli, asked: Path, server: Priced) -> None:
    (asked / "suite.yaml").write_text(SUITE.rpartition("  - {name: two")[0])
    server.plan.append(Planned(text="alpha", delay=0.3))
    assert cli("run", ".", "--cache").code == 0 and server.count == 1
    assert cli("run", ".", "--cache").code == 0 and server.count == 1
    assert cli("run", ".", "--cache", "--changed").code == 5
    server.plan.append(Planned(hang=True))
    late = cli("run", ".", "--cache", "--changed", "--timeout", "0.2")
    assert late.code == 1 and server.count == 2 and "no answer in 0.2 s" in late.out
    assert cli("run", ".", "--cache").code == 0 and server.count == 3  # nothing is left of it


@pytest.mark.real
@pytest.mark.parametrize("entry", ["{type: replay}", "{type: replay, cache: true}"])
def test_what_replay_answers_is_never_kept(cli: Cli, asked: Path, server: Priced, entry: str) -> None:
    configure(asked, server)
    config = asked / "tui_eval.yaml"
    config.write_text(config.read_text().replace("prices:", f"  again: {entry}\nprices:"))
    cache = [] if "cache" in entry else ["--cache"]
    for text, code in (("alpha", 0), ("omega", 1)):
        server.text = text
        assert cli("run", ".", "-s", "one").code == code
        replayed = cli("run", ".", "-s", "one", "--agent", "again", *cache)
        assert replayed.code == code and "cached" not in replayed.out
    assert not (asked / ".tui-eval" / "answers.db").exists()


def test_replay_spends_nothing_and_no_cost_limit_ends_it(cli: Cli, asked: Path, server: Priced) -> None:
    (asked / "promptfooconfig.yaml").write_text(
        "prompts: ['{{text}}']\nproviders: [bot]\n"
        "tests: [{vars: {text: ho}, assert: [{type: cost, threshold: 0.001}]}]\n"
    )
    configure(asked, server)
    config = asked / "tui_eval.yaml"
    config.write_text(config.read_text().replace("prices:", "  again: {type: replay}\nprices:"))
    first = cli("run", ".", "-o", "first.json")
    again = cli("run", ".", "--agent", "again", "-o", "again.json", "--max-cost", "0.0001")
    assert again.code == first.code == 1 and server.count == 4 and "not run" not in again.out + again.err
    spent, known = (json.loads((asked / f"{name}.json").read_text()) for name in ("first", "again"))
    told, said = ([one["assertions"] for one in results["results"]] for results in (spent, known))
    assert told == said and '"cost"' in json.dumps(told)  # by what it cost when it was given
    assert {one["cost"] for one in known["results"]} == {0} and known["summary"]["total_cost"] == 0
    assert {one["tokens"] for one in known["results"]} == {None}


def test_what_a_kept_answer_costs_is_judged_by_the_prices_of_today(
    cli: Cli, asked: Path, server: Priced
) -> None:
    (asked / "suite.yaml").unlink()
    (asked / "promptfooconfig.yaml").write_text(
        "prompts: ['{{text}}']\nproviders: [bot]\n"
        "tests: [{vars: {text: ho}, assert: [{type: cost, threshold: 0.02}]}]\n"
    )
    config = asked / "tui_eval.yaml"
    for price, code, cost in ((1000, 0, 0.019), (1000, 0, 0.019), (3000, 1, 0.057), (500, 0, 0.0095)):
        config.write_text(
            config.read_text().partition("prices")[0]
            + f"prices: {{m: {{input: {price}, output: {price}}}}}\n"
        )
        assert cli("run", ".", "--cache", "-o", "r.json").code == code and server.count == 1
        (one,) = json.loads((asked / "r.json").read_text())["results"]
        assert one.get("saved", one["cost"]) == cost
    config.write_text(config.read_text().partition("prices")[0])
    unknown = cli("run", ".", "--cache", "-o", "r.json")
    assert unknown.code == cli("run", ".", "--no-cache").code == 1 and server.count == 2


def test_what_a_server_says_that_it_costs_stays(cli: Cli, asked: Path) -> None:
    (asked / "bot.py").write_text(
        "def answer(text): return {'text': text, 'cost': 0.5, 'usage': {'input_tokens': 9, 'output_tokens': 9}, 'model': 'm'}\n"
    )
    for price in (1, 2):
        (asked / "tui_eval.yaml").write_text(
            f"agents: {{bot: {{type: python, function: 'bot.py:answer'}}}}\nprices: {{m: {{input: {price}, output: {price}}}}}\n"
        )
        cli("run", ".", "--trust", "--cache", "-s", "one", "-o", "r.json")
        (one,) = json.loads((asked / "r.json").read_text())["results"]
        assert one.get("saved", one["cost"]) == 0.5
    assert one["cached"]


def test_a_run_that_keeps_nothing_keeps_no_answers_and_takes_those_that_are_there(
    cli: Cli, asked: Path, server: Priced, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = asked / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    cli("run", ".", "--cache", "--no-store")
    assert server.count == 3 and not (asked / ".tui-eval").exists() and not [*state.rglob("answers.key")]
    cli("run", ".", "--cache", "-s", "one")
    for _ in range(2):
        server.requests.clear()
        assert "1 cached" in cli("run", ".", "--cache", "--no-store").out and server.count == 2
    server.text = "omega"
    assert cli("run", ".", "-s", "one", "--cache", "--anew", "--no-store").code == 1
    server.requests.clear()
    assert cli("run", ".", "-s", "one", "--cache").code == 1 and server.count == 1


def test_errors_are_never_kept(cli: Cli, asked: Path, server: Priced) -> None:
    server.broken = True
    cli("run", ".", "--cache")
    before = server.count
    server.broken = False
    assert "cached" not in cli("run", ".", "--cache").out
    assert server.count == before + 3


def again(folder: Path, **options: Any) -> list[str]:
    """The outcomes of a run as the app asks for one."""
    active = prepare(RunRequest(paths=[str(folder)], **options))
    asyncio.run(active.execute())
    assert active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        return [f"{row.outcome}{' cached' if row.cached else ''}" for row in reader.attempts()]


@pytest.mark.parametrize("kept", [None, False])
def test_what_is_asked_anew_replaces_what_was_kept_whatever_it_was_asked_with(
    asked: Path, server: Priced, kept: bool | None
) -> None:
    one = {"select": ["one"]}
    assert again(asked, cache=True, **one) == ["passed"]
    server.text = "omega"
    assert again(asked, anew=True, cache=kept, **one) == ["failed"]
    assert again(asked, cache=True, **one) == ["failed cached"] and server.count == 2
    server.broken = True
    assert again(asked, anew=True, cache=kept, **one) == ["error"]
    server.broken = False
    assert again(asked, cache=True, **one) == ["failed"]  # nobody knows it by now


@pytest.mark.parametrize("how", ["from turn 1", "from turn 2", "stepped"])
async def test_what_a_person_asks_turn_by_turn_leaves_nothing_of_what_was_kept(
    asked: Path, server: Priced, how: str
) -> None:
    (asked / "suite.yaml").write_text(SUITE.replace("delta", "gamma"))

    async def ran(**options: Any) -> list[str]:
        active = prepare(RunRequest(paths=[str(asked)], select=["two"], **options))
        task = asyncio.create_task(active.execute())
        while options.get("step") and not task.done():
            assert active.runner.stepper is not None
            active.runner.stepper.decide(1, Decision())
            await asyncio.sleep(0)
        await task
        assert active.writer is not None
        with closing(RunReader(active.writer.folder)) as reader:
            return [f"{row.outcome}{' cached' if row.cached else ''}" for row in reader.attempts()]

    assert await ran(cache=True) == ["passed"] and server.count == 2
    assert await ran(cache=True) == ["passed cached"] and server.count == 2
    recorded = Recorded(
        str(next(iter(Store(asked).run_folders()))), 1, int(how[-1]) if how != "stepped" else None
    )
    server.text = "omega"
    given: dict[str, Any] = {"step": True} if how == "stepped" else {"continue_from": recorded}
    assert await ran(anew=True, **given) == ["failed"]  # and nothing of it is cached
    before = server.count
    assert (await ran(cache=True))[0].startswith("failed")
    assert server.count == before + (1 if how == "from turn 2" else 2)


def test_where_nothing_is_kept_what_is_asked_anew_keeps_nothing(asked: Path) -> None:
    again(asked, anew=True)
    again(asked, anew=True, cache=False)
    assert not (asked / ".tui-eval" / "answers.db").exists()


@pytest.mark.real
def test_a_function_that_takes_all_messages_gets_them_at_once_with_kept_answers_too(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How it wants to be called is only known of its file, which a kept answer does not need."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.py").write_text(
        "def answer(message):\n"
        "    open('calls.txt', 'a').write(f'{message!r}\\n')\n"
        "    return 'all' if isinstance(message, list) else 'one'\n"
    )
    (tmp_path / "tui_eval.yaml").write_text("agents: {bot: {type: python, function: 'bot.py:answer'}}\n")
    (tmp_path / "suite.yaml").write_text(
        "agent: bot\ntest_cases:\n"
        "  - {name: first, messages: [a, b], expected: {should_contain: [all]}}\n"
        "  - {name: second, messages: [c, d], expected: {should_contain: [all]}}\n"
    )

    def calls() -> list[str]:
        log = tmp_path / "calls.txt"
        made = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return sorted(made)

    both = ["['a', 'b']", "['c', 'd']"]
    for options, wanted in (((), both), (("--cache",), both), (("--cache",), [])):
        assert cli("run", ".", "--trust", "-j", "1", *options).code == 0
        assert calls() == wanted
    (tmp_path / "suite.yaml").write_text(
        (tmp_path / "suite.yaml")
        .read_text()
        .replace("[c, d], expected: {should_contain", "[c, d], expected: {should_not_contain")
    )
    assert cli("run", ".", "--trust", "--cache").code == 1 and calls() == []
    assert cli("run", ".", "--trust", "--failed").code == 1 and calls() == both[1:]


def test_a_linked_run_is_no_repetition_by_itself(asked: Path, server: Priced) -> None:
    """What is asked anew says so; a part of a run that is run for another reason takes what is kept."""
    again(asked, cache=True)
    run_id = Index(asked).runs()[0].id
    assert again(asked, cache=True, linked_to=run_id) == ["passed cached", "failed cached"]
    assert again(asked, anew=True, linked_to=run_id) == ["passed", "failed"] and server.count == 6


def test_what_is_gone_on_with_is_asked_anew_where_that_was_asked_for(asked: Path, server: Priced) -> None:
    again(asked, cache=True)
    for anew in (True, False):
        active = prepare(RunRequest(paths=[str(asked)], cache=True, anew=anew))
        assert active.writer is not None
        folder = active.writer.folder
        active.writer.close()
        asyncio.run(active.environment.close())
        asyncio.run(resume(folder).execute())
        assert server.count == 6


@pytest.mark.parametrize("kept_by", ["the agent's entry", "--cache", "--no-cache"])
def test_the_printed_command_asks_again_and_what_it_answers_takes_the_place_of_what_is_kept(
    cli: Cli, asked: Path, server: Priced, kept_by: str
) -> None:
    """It gave the same answer again, also where that had just been given; or left it to whoever took it next."""
    own = kept_by != "--cache"
    configure(asked, server, ", cache: true" if own else "")
    typed = () if kept_by == "the agent's entry" else (kept_by,)
    again = ""
    for _ in range(2):
        told = cli("run", "suite.yaml", "-s", "two", *typed).out
        (again,) = [line.partition("again: tui-eval ")[2] for line in told.splitlines() if "again: " in line]
        assert again in cli("show").out
    (folder, *_) = Store(asked).run_folders()
    in_the_app = load(Where(CasePointer("suite.yaml::two", run_id=folder.name), folder, 1))
    assert text_of(in_the_app, "c").partition("::two ")[2] == again.partition("::two ")[2]
    before = server.count
    server.text = "delta"
    words = shlex.split(again)
    assert cli(*words).code == 0 and server.count == before + 2
    assert words[4:] == {
        "the agent's entry": ["--anew"], "--cache": ["--cache", "--anew"], "--no-cache": ["--no-cache"],
    }[kept_by]  # fmt: skip
    if kept_by != "--no-cache":
        assert "passed cached" in cli("run", "suite.yaml", "-s", "two", *typed).out


def test_of_a_results_file_with_kept_answers_the_printed_command_asks_anew(
    cli: Cli, asked: Path, server: Priced
) -> None:
    """Whoever wrote it (an earlier version, another tool) does not say that answers are kept."""
    for _ in range(2):
        cli("run", "suite.yaml", "-s", "two", "--cache", "-o", "kept.json")
    cli("run", "suite.yaml", "-s", "two", "--no-cache", "-o", "asked.json")
    for name in ("kept", "asked"):
        document = json.loads((asked / f"{name}.json").read_text())
        document["run"]["id"] = name
        document["run"]["provenance"].pop("keeps_answers", None)
        (asked / f"{name}.json").write_text(json.dumps(document))
    for names, anew in ((("kept",), True), (("asked",), False), (("asked", "kept"), True)):
        told = cli("merge", *(f"{name}.json" for name in names))
        again = {line.partition("::two")[2] for line in told.out.splitlines() if "again: " in line}
        assert again == {f" --agent bot{' --anew' if anew else ''}"}, (names, told)


def test_where_nothing_is_kept_the_printed_command_says_nothing_of_it(
    cli: Cli, asked: Path, server: Priced
) -> None:
    cli("run", ".")
    told = cli("run", ".", "--failed").out
    (again,) = [line.partition("again: tui-eval ")[2] for line in told.splitlines() if "again: " in line]
    assert again == "run suite.yaml -s ::two"
    assert cli(*shlex.split(again), "--anew").code == 1 and not (asked / ".tui-eval" / "answers.db").exists()


@pytest.mark.parametrize("cache", [(), ("--cache",)])
def test_what_did_not_pass_is_asked_anew(
    cli: Cli, asked: Path, server: Priced, cache: tuple[str, ...]
) -> None:
    """`--failed`, and the filters by a results file: an answer from before the failure is no answer to it."""
    configure(asked, server, ", cache: true")
    cli("run", ".", "-s", "one")
    server.text = "omega"
    assert "1 failed" in cli("run", ".", "-s", "one", "--no-cache", "-o", "bad.json").out
    failed = cli("run", ".", "-s", "one", "--failed", *cache)
    assert "1 failed" in failed.out and "cached" not in failed.out and server.count == 3
    assert "1 failed" in (out := cli("run", ".", "-s", "one").out) and "cached" in out
    server.text = ""
    filtered = cli("run", ".", "-s", "one", "--filter-failing", "bad.json", *cache)
    assert "1 passed" in filtered.out and server.count == 4
    assert "passed cached" in cli("run", ".", "-s", "one").out


def test_kept_answers_are_forgotten_when_asked_to(cli: Cli, asked: Path, server: Priced) -> None:
    assert cli("prune", "--cache", "-y").code == 5
    cli("run", ".", "--cache")
    assert (asked / ".tui-eval" / "answers.db").stat().st_mode & 0o077 == 0
    deleted = cli("prune", "--cache", "-y")
    assert deleted.code == 0 and "deleted 3 kept answers" in deleted.out
    cli("run", ".", "--cache")
    assert server.count == 6


def test_a_cost_limit_counts_what_is_spent(cli: Cli, asked: Path, server: Priced) -> None:
    cli("run", ".", "--cache")
    limited = cli("run", ".", "--cache", "--max-cost", "0.000001")
    assert "stopped" not in limited.out and "2 cached" in limited.out


PROMPTFOO = """\
prompts: ["Say {{word}}", '[{"role": "user", "content": "Now {{word}}MORE"}]']
providers:
  - {id: "openai:chat:m", config: {apiBaseUrl: "BASE", apiKey: "none-at-all"}}
tests:
  - {vars: {word: alpha}, assert: [{type: contains, value: alpha}]}
  - {vars: {word: beta}, assert: [{type: contains, value: delta}]}
"""


def test_answers_of_unknown_price_cost_nobody_knows_what_when_some_are_kept(
    cli: Cli, asked: Path, server: Priced
) -> None:
    (asked / "tui_eval.yaml").write_text(
        f"agents:\n  bot: {{type: openai, base_url: '{server.base}', model: m}}\n", "utf-8"
    )
    cli("run", ".", "--cache", "-s", "one")
    for again in (cli("run", ".", "--cache", "-o", "r.json"), cli("run", ".", "--cache", "-o", "r.json")):
        assert "cached" in again.out and "0.0000" not in again.out
        assert [one["cost"] for one in json.loads((asked / "r.json").read_text())["results"]] == [None, None]
    assert "$" not in cli("runs").out and server.count == 3


def test_a_promptfoo_suites_own_providers_are_not_asked_again(
    cli: Cli, tmp_path: Path, server: Priced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(PROMPTFOO.replace("BASE", server.base).replace("MORE", ""), "utf-8")
    assert cli("run", ".", "--cache", "-o", "first.json").code == 1
    assert server.count == 4
    assert cli("run", ".", "--cache", "-o", "again.json").code == 1
    assert server.count == 4
    first, again = (
        json.loads(Path(name).read_text("utf-8"))["results"] for name in ("first.json", "again.json")
    )
    assert [(one["case_id"], one["outcome"], one["score"]) for one in first] == [
        (one["case_id"], one["outcome"], one["score"]) for one in again
    ]
    # A test that is put before the others moves their places, not their questions.
    text = config.read_text("utf-8")
    config.write_text(
        text.replace("tests:\n", "tests:\n  - {vars: {word: new}, assert: [{type: contains, value: new}]}\n")
    )
    cli("run", ".", "--cache")
    assert server.count == 6


def test_a_request_that_names_the_run_is_another_one_in_each(
    cli: Cli, tmp_path: Path, server: Priced, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = PROMPTFOO.replace("BASE", server.base).replace("MORE", " {{__evalId}}")
    (tmp_path / "promptfooconfig.yaml").write_text(told, "utf-8")
    cli("run", ".", "--cache")
    cli("run", ".", "--cache")
    assert server.count == 6


def test_what_is_cached_is_counted_in_attempts_and_says_so_beside_counts_of_cases(
    cli: Cli, asked: Path
) -> None:
    cli("run", ".", "--cache", "--attempts", "2")
    again = cli("run", ".", "--cache", "--attempts", "3", "-o", "again.md")
    assert re.search(r"1 passed, 1 failed, 2 total \(4 attempts cached, \$", again.out)
    told = (asked / "again.md").read_text()
    assert "## 1 of 2 cases passed" in told and ", 4 attempts cached, $" in told
    assert "| two | bot | m | failed 0/3, cached 2 |" in told
    assert "| one | bot | m | passed 3/3, cached 2 |" in told
    one = cli("run", ".", "--cache", "-o", "one.md").out
    assert "2 total (2 cached, $" in one  # of an attempt each it is as many cases
    assert "| one | bot | m | passed, cached |" in (asked / "one.md").read_text()


def test_a_file_that_was_cut_off_keeps_what_is_left_and_the_run_says_so(
    cli: Cli, asked: Path, server: Priced
) -> None:
    cli("run", ".", "--cache")
    answers = asked / ".tui-eval" / "answers.db"
    os.truncate(answers, answers.stat().st_size // 2)
    again = cli("run", ".", "--cache")
    assert server.count == 3 and "2 cached" in again.out
    said = ".tui-eval/answers.db was damaged: it was made anew of the 3 answers that could be read"
    assert said in again.out + again.err
    answers.write_text("no database at all\n" * 100)
    third = cli("run", ".", "--cache")
    assert server.count == 6 and "it was moved to .tui-eval/answers.db-aside" in third.out + third.err
    forgotten = cli("prune", "--cache", "-y")
    assert forgotten.code == 0 and not [*answers.parent.glob("answers*")]


@pytest.mark.real
def test_a_folder_on_a_disk_that_can_only_be_read_is_read_for_answers(
    cli: Cli, asked: Path, server: Priced
) -> None:
    cli("run", ".", "--cache")
    folder = asked / ".tui-eval"
    before = (folder / "answers.db").read_bytes()
    script = (
        f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} || exit 77;"
        f" exec {sys.executable} -m tui_eval run . --cache"
    )
    package = str(Path(__file__).parents[2])
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=120,
    )
    if ran.returncode == 77 or "unshare failed" in ran.stderr:
        pytest.skip("nothing may be mounted here")
    said = ran.stdout + ran.stderr
    assert server.count == 3 and "2 cached" in said, said
    assert ".tui-eval/answers.db can only be read: what is answered anew is kept in " in said
    assert f"{folder} cannot be written: the run is kept in " in said
    assert (folder / "answers.db").read_bytes() == before


def test_sums_of_money_are_as_exact_as_prices_in_every_file(cli: Cli, asked: Path, server: Priced) -> None:
    turns = ", ".join(f"t{number}" for number in range(7))
    (asked / "suite.yaml").write_text(
        f"agent: bot\ntest_cases:\n  - {{name: one, messages: [{turns}], expected: {{should_contain: [t]}}}}\n"
        "  - {name: two, input: t, expected: {should_contain: [t]}}\n"
    )
    (asked / "tui_eval.yaml").write_text(
        (asked / "tui_eval.yaml")
        .read_text()
        .replace("{input: 1000, output: 1000}", "{input: 110, output: 170}")
    )
    for _ in range(2):  # the second time all is saved
        out = cli(
            *("run", ".", "--cache", "--display", "json"),
            *("-o", "results.json", "-o", "x.promptfoo.json", "-o", "results.jsonl"),
        ).out
        files = [(asked / name).read_text() for name in ("results.json", "x.promptfoo.json", "results.jsonl")]
        for text in (out, *files):
            money = re.findall(r'"(?:total_saved|cost|saved)": (\d+\.\d+)', text)
            assert money and all(len(one.partition(".")[2]) <= 10 for one in money), money
