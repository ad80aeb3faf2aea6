"""`tui-eval rescore`: answers judged anew, agents left alone, masked text undecided."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import CONFIG, Cli, fast_samples, from_elsewhere
from tests.servers import NaoServer, OpenAIServer, Planned
from tui_eval.assertions.judge_input import Judgement
from tui_eval.engine.attempt.attempt_judging import keep_undecided
from tui_eval.guard.masker import Masker
from tui_eval.model import Attempt, Reply, Verdict
from tui_eval.store.index import Index
from tui_eval.store.linked import load_together
from tui_eval.store.run_folders import RunLock, Store


def test_todays_assertions_judge_yesterdays_answers(cli: Cli, project: Path) -> None:
    with OpenAIServer() as server:
        (project / "tui_eval.yaml").write_text(
            f"agents:\n  helper: {{type: openai, base_url: '{server.base}', model: m}}\n", "utf-8"
        )
        assert cli("run", "suite.yaml", "--attempts", "2").code == 1
        asked = len(server.requests)
        text = (project / "suite.yaml").read_text()
        (project / "suite.yaml").write_text(text.replace('["hi"]', '["You said"]'))
        again = cli("rescore", "last", "-o", "r.json", "-o", "r.md")
        assert again.code == 1 and len(server.requests) == asked
        runs = cli("runs", "--json").json
        # Alone it says nothing of the case: an added attempt that passed was a whole run that had.
        adds = f"adds to {runs[1]['id']}"
        assert adds in (project / "r.md").read_text("utf-8").splitlines()[2]
        assert adds in cli("show", "last").out.splitlines()[0]
        assert "adds to" not in cli("show", runs[1]["id"]).out
        assert runs[0]["linked_to"] == runs[1]["id"] and runs[0]["total"] == 6
        assert (runs[0]["passed"], runs[1]["passed"]) == (4, 2)
        assert cli("rescore", runs[1]["id"], "--display", "none").out == ""
        changed = cli("compare", runs[1]["id"], runs[0]["id"])
        assert changed.code == 0 and "fixed: 1" in changed.out


def test_a_results_file_can_be_judged_again(cli: Cli, project: Path, monkeypatch, tmp_path_factory) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    assert cli("run", ".", "--no-store", "-o", "r.json").code == 1
    assert cli("rescore", "r.json").code == 1
    assert cli("runs", "--json").json[0]["passed"] == 2


def test_nothing_recorded_is_said(cli: Cli, project: Path) -> None:
    (project / "agent.script.yaml").write_text("default: {steps: [{error: boom}]}\n", "utf-8")
    assert cli("run", ".").code == 1
    told = cli("rescore")
    assert told.code == 5 and "no recorded answers" in told.err


def test_a_run_that_is_being_executed_is_not_judged_by_halves(cli: Cli, project: Path) -> None:
    assert cli("run", ".").code == 1
    folder = Store(project).find("last")
    lock = RunLock(folder)
    try:
        for name in ("last", folder.name):
            told = cli("rescore", name)
            assert told.code == 4 and told.out == "" and len(told.err.strip().splitlines()) == 1
            assert f"run {folder.name} goes on" in told.err and "when it has ended" in told.err
        assert len(cli("runs", "--json").json) == 1
    finally:
        lock.release()
    assert cli("rescore", "last").code == 1


def test_what_of_a_run_never_ran_is_said_where_it_is_judged_again(cli: Cli, project: Path) -> None:
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        + "".join(
            f"  - {{name: n{n}, input: hi, expected: {{should_contain: [never]}}}}\n" for n in range(3)
        ),
        "utf-8",
    )
    assert cli("run", ".", "--fail-fast", "-j", "1").code == 1
    again = cli("rescore", "last", "-o", "r.json", "-o", "r.html", "-o", "r.md")
    assert "2 attempts of it were never run, and have none" in again.out
    for name in ("r.json", "r.html", "r.md"):
        assert "never run, and have none" in (project / name).read_text(), name


@pytest.mark.parametrize("chosen", ["greets,costs", "costs"])
def test_a_run_that_was_cut_is_no_whole_one_judged_again(cli: Cli, project: Path, chosen: str) -> None:
    """A case of which two attempts of three ran passed with two of two, and cases that never ran were in no report."""
    suite = (project / "suite.yaml").read_text("utf-8")
    more = "".join(f"  - {{name: more {n}, input: how much?}}\n" for n in range(2))
    (project / "suite.yaml").write_text(suite + more, "utf-8")
    what = ("-s", f"{chosen},more 0,more 1", "--attempts", "3", "--max-cost", "0.02", "-j", "1")
    assert cli("run", ".", *what, "-o", "a.json").code == 1
    again = cli("rescore", "last", "-o", "r.json", "-o", "r.junit.xml")
    assert again.code == 1 and "3 not run" in again.out and "7 attempts of it were never run" in again.out
    assert cli("show").code == 1 and cli("runs").code == 0
    cut, judged = (json.loads((project / name).read_text()) for name in ("a.json", "r.json"))
    assert judged["summary"]["not_run"] == cut["summary"]["not_run"] == 7
    # A run and its judgement lack the same: what is known of neither is no success.
    told = cli("compare", cut["run"]["id"], judged["run"]["id"])
    assert told.code == (1 if "greets" in chosen else 5)  # 5: no case has an outcome at all
    assert "regressed" not in told.out and "3 not run on either side" in told.out
    for name in ("case_id", "outcome", "required", "attempts", "planned", "message"):
        values = [[one.get(name) for one in document["cases"]] for document in (cut, judged)]
        assert values[0] == values[1], name
    assert 'skipped="3"' in (project / "r.junit.xml").read_text()
    assert cli("rescore", "last").code == 1
    told = cli("resume", "last")
    assert told.code == 4 and "asks no agent; do that anew: tui-eval rescore" in told.err


def test_a_limit_that_came_when_every_case_had_passed_often_enough_is_no_success_anywhere(
    cli: Cli, project: Path
) -> None:
    """`run` ended with 1, and `show`, `rescore`, JUnit and Markdown called it one."""
    what = ("-s", "costs", "--attempts", "3", "--threshold", "0.3", "--max-cost", "0.015", "-j", "1")
    ran = cli("run", ".", *what, "-o", "a.json", "-o", "a.junit.xml", "-o", "a.md", "-o", "a.html")
    assert ran.code == 1 and "1 case passed, but not all is there: 1 attempt not run" in ran.out
    assert 'errors="1"' in (project / "a.junit.xml").read_text()
    for name in ("a.junit.xml", "a.md", "a.html"):
        assert "1 attempt not run" in (project / name).read_text(), name
    assert cli("show").code == cli("attach", "--display", "plain").code == cli("show", "a.json").code == 1
    assert cli("rescore").code == cli("show").code == 1
    assert cli("rescore", "--display", "none").code == 1


def test_lines_of_attempts_that_are_judged_again_or_gone_on_with_have_their_numbers(
    cli: Cli, project: Path
) -> None:
    """As those of the run have; a case of one attempt has none."""

    def lines(err: str) -> list[str]:
        return sorted(line.rpartition(" s  ")[2] for line in err.splitlines() if line.startswith("["))

    every = [f"costs #{number} [helper]" for number in (1, 2, 3)]
    what = ("-s", "costs", "-k", "3", "-j", "1")
    assert lines(cli("run", ".", *what).err) == every
    assert lines(cli("rescore", "last").err) == every
    assert lines(cli("run", ".", *what, "--max-cost", "0.005").err) == every[:1]
    cut = cli("runs", "--json").json[0]["id"]
    assert lines(cli("rescore", cut).err) == every[:1]
    assert lines(cli("resume", cut, "--max-cost", "0.015").err) == every[1:2]
    assert lines(cli("resume", cut, "--max-cost", "1").err) == every[2:]
    assert (
        lines(cli("run", ".", "-s", "costs").err) == lines(cli("rescore", "last").err) == ["costs [helper]"]
    )


@pytest.mark.parametrize("name", ["r.json", "r.promptfoo.json"])
def test_a_results_file_is_judged_again_as_the_run_was(cli: Cli, project: Path, name: str) -> None:
    """promptfoo's form gave every case the text of the first, and no file its tokens: a budget that failed passed."""
    (project / "agent.script.yaml").write_text(
        "default: {say: 'hi you there', usage: {input: 900, output: 70}}\n"
    )
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        "  - {name: first, input: hi, expected: {max_input_tokens: 1000}}\n"
        "  - {name: second, input: other words, expected: {should_contain: [there]}}\n"
        "  - {name: dear, input: third, expected: {max_output_tokens: 60}}\n",
        "utf-8",
    )
    assert cli("run", ".", "-o", name).code == 1
    from_elsewhere(name)
    told = cli("rescore", name, "-o", "again.json")
    assert told.code == 1, told.out
    again = {
        one["name"]: one["message"] for one in json.loads((project / "again.json").read_text())["results"]
    }
    assert again == {"first": "passed", "second": "passed", "dear": "max_output_tokens: 70 > 60"}


@pytest.mark.parametrize("first", ["two empty", "two calls"])
@pytest.mark.parametrize("name", ["r.json", "r.promptfoo.json"])
def test_the_tokens_of_a_turn_without_text_are_in_a_results_file_too(
    cli: Cli, project: Path, name: str, first: str
) -> None:
    """No words of the transcript hold them: the budget that had failed passed."""
    (project / "bot.py").write_text(
        "def ask(message, session):\n"
        "    tokens = {'one': 10, 'two': 1000, 'three': 20}[message.split()[0]]\n"
        "    said = {'input_tokens': tokens, 'output_tokens': tokens}\n"
        "    if 'calls' in message:\n"
        "        said |= {'tools_used': ['look'], 'tool_call_count': 1}\n"
        "    return ('ok' if tokens < 1000 else ''), said\n"
    )
    (project / "tui_eval.yaml").write_text("agents:\n  bot: {type: python, function: 'bot.py:ask'}\n")
    cases = {
        "last": f"messages: [{first}, three], expected: {{max_input_tokens: 500}}",
        "within": f"messages: [{first}, three], expected: {{max_input_tokens: 1020, max_output_tokens: 1020}}",
        "first": f"messages: [three, {first}], expected: {{max_output_tokens: 1019}}",
        "alone": f"input: {first}, expected: {{max_input_tokens: 999}}",
        "words": "messages: [one, three], expected: {max_input_tokens: 30}",
    }
    (project / "suite.yaml").write_text(
        "agent: bot\ntest_cases:\n"
        + "".join(f"  - {{name: {key}, {words}}}\n" for key, words in cases.items())
    )

    def told(file: str) -> dict[str, str]:
        assert cli("rescore", file, "-o", "again.json").code == 1
        rows = json.loads(Path("again.json").read_text())["results"]
        return {row["name"]: row["message"] for row in rows}

    wanted = {
        "last": "max_input_tokens: 1020 > 500",
        "within": "passed",
        "first": "max_output_tokens: 1020 > 1019",
        "alone": "max_input_tokens: 1000 > 999",
        "words": "passed",
    }
    assert cli("run", ".", "--trust", "--cache", "-o", name).code == 1
    from_elsewhere(name)
    assert told(name) == told("last") == wanted
    document = json.loads(Path(name).read_text())
    if "summary" in document:  # one of an earlier version, which does not say what each answer carried
        assert (
            cli("run", ".", "--trust", "-o", "older.json").code == 1
        )  # none from the cache: there nobody can know
        from_elsewhere("older.json")
        document = json.loads(Path("older.json").read_text())
        for row in document["results"]:
            del row["details"]["reported"]
        Path("older.json").write_text(json.dumps(document))
        assert told("older.json") == wanted
        for row in document["results"]:
            del row["usage"]
        Path("older.json").write_text(json.dumps(document))
        assert told("older.json")["last"] == "max_input_tokens: 2020 > 500"  # of all kinds
        assert told(name) == wanted
    assert told("again.json") == wanted  # a judgement takes no tokens itself
    assert cli("run", ".", "--trust", "--cache", "-o", "kept.json").code == 1
    from_elsewhere("kept.json")
    assert told("kept.json") == wanted  # nor does an answer from the cache
    assert cli("export", "kept.json", "-o", "third.json").code in (0, 1)
    assert told("third.json") == wanted


@pytest.mark.parametrize("name", ["r.json", "r.promptfoo.json"])
def test_a_results_file_has_what_scripts_and_perplexity_judged_by(cli: Cli, project: Path, name: str) -> None:
    """A script that found an error in the raw answer found none there, and what had failed passed."""
    (project / "suite.yaml").unlink()
    (project / "promptfooconfig.yaml").write_text(
        "providers: ['file://p.py']\nprompts: ['{{q}}']\ntests:\n"
        "- {vars: {q: a}, assert: [{type: javascript, value: '!(context.providerResponse.raw || {}).error'}]}\n"
        "- {vars: {q: b}, assert: [{type: perplexity, threshold: 1.5}]}\n"
        "- {vars: {q: c}, assert: [{type: equals, value: 'file://v.py'}]}\n"
    )
    (project / "v.py").write_text(
        "def get_assert(output, context):\n"
        "    return 'nothing' if (context['providerResponse'].get('raw') or {}).get('error') else output\n"
    )
    (project / "p.py").write_text(
        "def call_api(prompt, options, context):\n"
        "    return {'output': prompt, 'raw': {'error': 'x'}, 'logProbs': [-0.5, -0.5], 'sessionId': 's1'}\n"
    )
    assert cli("run", ".", "--trust", "-o", name).code == 1
    if "promptfoo" in name:  # in its words, too: promptfoo reads no others
        told = json.loads(Path(name).read_text())["results"]["results"][0]["response"]
        assert (told["raw"], told["logProbs"], told["sessionId"]) == ({"error": "x"}, [-0.5, -0.5], "s1")
    from_elsewhere(name)
    assert cli("rescore", name, "--trust", "-o", "again.json").code == 1
    rows = json.loads(Path("again.json").read_text())["results"]
    assert [row["outcome"] for row in rows] == ["failed"] * 3, [row["message"] for row in rows]


@pytest.mark.parametrize("name", ["r.json", "r.promptfoo.json"])
def test_figures_that_only_some_replies_have_in_their_metadata_are_summed_in_a_results_file_too(
    cli: Cli, project: Path, name: str
) -> None:
    """The metadata of one reply took the usage and the calls of all others away: the budget passed."""
    (project / "bot.py").write_text(
        "SAID = {\n"
        "    'meta': {'reply': 'a', 'input_tokens': 100, 'tool_call_count': 3},\n"
        "    'usage': {'reply': 'b', 'usage': {'input_tokens': 900, 'output_tokens': 10}, 'tools_used': ['c', 'd']},\n"
        "    'both': {'reply': 'c', 'usage': {'output_tokens': 7}, 'input_tokens': 5, 'tool_calls': ['e']},\n"
        "}\n"
        "def ask(message, session): return SAID[message]\n"
    )
    (project / "tui_eval.yaml").write_text("agents:\n  bot: {type: python, function: 'bot.py:ask'}\n")
    (project / "suite.yaml").write_text(
        "agent: bot\ntest_cases:\n"
        "  - {name: sent, messages: [meta, usage, both], expected: {max_input_tokens: 1004}}\n"
        "  - {name: got, messages: [both, usage, meta], expected: {max_output_tokens: 16}}\n"
        "  - {name: calls, messages: [meta, usage, both], expected: {max_tool_calls: 5}}\n"
    )
    wanted = {
        "sent": "max_input_tokens: 1005 > 1004",
        "got": "max_output_tokens: 17 > 16",
        "calls": "max_tool_calls: 6 > 5 (2 named in tools_used; tool_call_count says 3)",
    }
    assert cli("run", ".", "--trust", "-o", "own.json", "-o", name).code == 1
    assert cli("rescore", name, "-o", "again.json").code == 1
    for file in ("own.json", "again.json"):
        rows = json.loads(Path(file).read_text())["results"]
        assert {row["name"]: row["message"] for row in rows} == wanted
        assert [row["tool_call_count"] for row in rows] == [6, 6, 6]
    rows = json.loads(Path("own.json").read_text())["results"]
    assert [(row["usage"]["input_tokens"], row["usage"]["output_tokens"]) for row in rows] == [(1005, 17)] * 3
    assert "Tokens:  3,015 input / 51 output" in cli("run", ".", "--trust", "--report", "classic").out


def test_masked_text_keeps_the_verdict_of_then() -> None:
    masker = Masker(["s3cr3t-value"])
    old = Verdict("should_contain", True, expected="•••", reason="there", score=1.0, turn=1)
    recorded = Attempt("c", 1, "passed", message="passed", score=1.0, verdicts=[old],
                       replies=[Reply(turn=1, text="it is •••")])  # fmt: skip
    missing = Verdict("should_contain", False, expected="s3cr3t-value", reason="not there", turn=1)
    judgement = Judgement([missing], "failed", 0.0, message="not there")
    keep_undecided(judgement, recorded, masker, edited=False)
    assert (judgement.outcome, judgement.score, judgement.message) == ("passed", 1.0, "passed")
    assert judgement.verdicts[0].reason == "there (kept: the record is masked here)"
    new = Verdict("should_not_contain", True, expected="s3cr3t", turn=1, score=1.0)
    judgement = Judgement([new], "passed", 1.0)
    keep_undecided(judgement, recorded, masker, edited=False)
    assert judgement.outcome == "error" and "masked here; run the case" in judgement.message
    # Of a case that was edited nobody knows whether it expected this secret then.
    judgement = Judgement(
        [Verdict("should_contain", False, expected="s3cr3t-value", turn=1)],
        "failed",
        0.0,
        message="not there",
    )
    keep_undecided(judgement, recorded, masker, edited=True)
    assert judgement.outcome == "error" and "masked here; run the case" in judgement.message
    elsewhere = Verdict("should_contain", False, expected="x", turn=2, reason="r")
    judgement = Judgement([elsewhere], "failed", 0.0, message="r")
    keep_undecided(judgement, recorded, masker, edited=False)
    assert judgement.outcome == "failed"


def test_the_guides_report_counts_what_never_ran(cli: Cli, project: Path) -> None:
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        + "".join(
            f"  - {{name: n{n}, input: hi, expected: {{should_contain: [never]}}}}\n" for n in range(3)
        ),
        "utf-8",
    )
    told = cli("run", ".", "--report", "classic", "--fail-fast", "-j", "1")
    assert told.code == 1 and "Results: 0/1 passed" in told.out and told.out.rstrip().endswith("Not run: 2")


@pytest.mark.real
def test_judging_again_lists_only_what_judging_needs(cli: Cli, project: Path) -> None:
    """No agent is called, and no hook: neither needs trust. A prompt that is made by code is made again."""
    (project / "bot.py").write_text("def answer(message):\n    return 'hi ' + message\n", "utf-8")
    assert cli("run", "suite.yaml", "--agent", "bot.py:answer", "-s", "greets").code == 0
    again = cli("rescore")
    assert again.code == 0 and "trust" not in again.out + again.err, again.err
    folder = project / "pf"
    folder.mkdir()
    (folder / "promptfooconfig.yaml").write_text(
        "prompts: ['file://made.py:made']\nproviders: ['file://bot.py']\nextensions: ['file://hook.py:hook']\n"
        "tests: [{vars: {q: a}, assert: [{type: contains, value: hi}]}]\n",
        "utf-8",
    )
    (folder / "made.py").write_text("def made(context):\n    return 'say it'\n", "utf-8")
    (folder / "hook.py").write_text("def hook(name, context):\n    return context\n", "utf-8")
    answers = "def call_api(prompt, options, context):\n    return {'output': 'hi'}\n"
    (folder / "bot.py").write_text(answers, "utf-8")
    assert cli("run", "pf", "--trust").code == 0
    told = cli("rescore").err
    assert "1 thing needs trust" in told and "  run pf/made.py\n" in told, told


def test_a_file_that_cannot_be_read_judges_nothing(cli: Cli, project: Path) -> None:
    """Its cases would be judged by what it said then, and the judgement would be the last run."""
    assert cli("run", ".").code == 1
    text = (project / "suite.yaml").read_text("utf-8")
    (project / "suite.yaml").write_text(text + "  - {name: [\n", "utf-8")
    told = cli("rescore")
    assert told.code == 4 and told.out == "" and "not valid YAML" in told.err, told
    assert (
        "suite.yaml has errors, and 3 cases of the run would be judged by what stood there then" in told.err
    )
    assert len(cli("runs", "--json").json) == 1
    (project / "suite.yaml").write_text(text.replace("name: costs", "name: costs more"), "utf-8")
    assert cli("rescore").code == 1, "a case that is gone from a file without errors is judged as it was"
    assert len(cli("runs", "--json").json) == 2


@pytest.mark.parametrize("command", ["rescore", "resume"])
@pytest.mark.parametrize(
    "wrong",
    ["suites: [{path: '**', compat: refernce}]", "suites: [{path: '**', comparison: {rtl: 1}}]", "foo: 1"],
)
def test_a_setting_that_cannot_be_read_is_said_and_the_run_is_not_whole(
    cli: Cli, project: Path, command: str, wrong: str
) -> None:
    """What is judged by less than somebody wrote is no success."""
    words = ["rescore"] if command == "rescore" else ["resume", "--no-fail-fast"]
    stop = [] if command == "rescore" else ["--fail-fast", "-j", "1"]
    suite = (project / "suite.yaml").read_text("utf-8")
    (project / "suite.yaml").write_text(suite.replace('"hi"', '"no such"') if stop else suite, "utf-8")
    cli("run", ".", "-s", "greets,costs", *stop)
    (project / "tui_eval.yaml").write_text(CONFIG + wrong + "\n", "utf-8")
    told = cli(*words, "-o", "r.json")
    assert told.code == 4 and "tui_eval.yaml:3: " in told.err, told
    if stop and "suites" in wrong:  # an entry that cannot be read says of nobody that he is to be asked
        assert "helper cannot be asked: tui_eval.yaml:3: " in told.err and not (project / "r.json").exists()
        return
    assert json.loads((project / "r.json").read_text())["not_read"][0]["suite"] == "tui_eval.yaml"
    assert cli("show").code == 4


@pytest.mark.parametrize("words", [["rescore"], ["resume", "--no-fail-fast"]])
def test_a_limit_that_cannot_be_read_lets_nothing_be_asked(cli: Cli, project: Path, words: list[str]) -> None:
    cli("run", ".", "-s", "says sorry,costs", "--fail-fast", "-j", "1")
    (project / "tui_eval.yaml").write_text(CONFIG + "run: {max_cost: five}\n", "utf-8")
    told = cli(*words)
    assert told.code == 4 and told.out == "" and "tui_eval.yaml:3: run.max_cost" in told.err, told
    assert len(cli("runs", "--json").json) == 1


def test_a_file_that_a_suite_takes_its_tests_from_cannot_be_read(cli: Cli, project: Path) -> None:
    folder = project / "pf"
    folder.mkdir()
    config = "prompts: ['{{q}}']\nproviders: [echo]\ntests: tests.yaml\n"
    (folder / "promptfooconfig.yaml").write_text(config, "utf-8")
    (folder / "tests.yaml").write_text("- {vars: {q: a}, assert: [{type: contains, value: a}]}\n", "utf-8")
    assert cli("run", "pf").code == 0
    (folder / "tests.yaml").write_text("- {vars: [\n", "utf-8")
    told = cli("rescore")
    assert told.code == 4 and "pf/promptfooconfig.yaml has errors, and 1 case of" in told.err, told
    assert len(cli("runs", "--json").json) == 1


@pytest.mark.real
def test_an_answer_to_another_question_is_not_judged(cli: Cli, project: Path) -> None:
    """It proves nothing of what is asked now, however often it has been judged before."""
    suite = project / "suite.yaml"
    assert cli("run", "suite.yaml").code == 1
    suite.write_text(suite.read_text().replace("input: hello", "input: goodbye"))
    for reference in ("last", "last"):  # the second judges what the first has judged
        told = cli("rescore", reference)
        assert told.code == 1 and "1 passed, 1 failed, 1 error" in told.out
        assert "turn 1 reads otherwise than when it was answered: run the case" in told.out
    suite.write_text(suite.read_text().replace("input: goodbye", "input: hello"))
    assert "2 passed, 1 failed, 3 total" in cli("rescore", "last").out


def test_an_answer_to_another_prompt_is_not_judged(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(
        "prompts: ['tell {{q}}']\nproviders: [echo]\ntests:\n"
        "  - {description: one, vars: {q: cats, wanted: cats}, assert: [{type: contains, value: '{{wanted}}'}]}\n"
        "  - {description: two, vars: {q: dogs}, assert: [{type: contains, value: dogs}]}\n"
    )
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    assert cli("run", str(config)).code == 0
    text = config.read_text()
    config.write_text(text.replace("wanted: cats", "wanted: tell"))
    assert cli("rescore", "last").code == 0, "what only an assertion reads is no question"
    config.write_text(text.replace("q: cats", "q: cows"))
    told = cli("rescore", "last")
    assert told.code == 1 and "1 passed, 0 failed, 1 error" in told.out
    assert "its prompt reads otherwise than when it was answered: run the case" in told.out


def test_a_suite_whose_hooks_change_the_prompt_says_that_they_do_not_run(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody has edited anything: the hook runs with cases, not with the judging of their answers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['tell {{q}}{{extra}}']\nproviders: [echo]\nextensions: ['file://h.py:beforeEach']\n"
        "tests: [{vars: {q: cats}, assert: [{type: contains, value: cats}]}]\n"
    )
    code = "def beforeEach(context, info):\n    context['test']['vars']['extra'] = '!'\n    return context\n"
    (tmp_path / "h.py").write_text(code)
    assert cli("run", ".", "--trust").code == 0
    told = cli("rescore", "last", "--trust")
    assert told.code == 1 and "run the case (its suite's hooks, which change what is asked" in told.out, told


_ADDS = """
def hook(name, context):
    if name == "beforeAll":
        for test in context["suite"]["tests"]:
            test.setdefault("assert", []).append({"type": "contains", "value": "dogs"})
        return context
"""
_LOOKS = "def %s(name, context):\n    pass\n"


@pytest.mark.parametrize(
    ("code", "name", "edited", "out"),
    [
        (_ADDS, "hook", False, "its suite's hooks, which run with cases alone, had made another case"),
        (_LOOKS % "hook", "hook", False, "1 case passed"),
        (_LOOKS % "hook", "hook", True, "it was edited since it was answered, or its suite's hooks"),
        (_LOOKS % "afterAll", "afterAll", True, "1 case passed"),
    ],
)
def test_a_case_that_hooks_made_is_not_judged_without_what_they_add(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, name: str, edited: bool, out: str
) -> None:
    """Their assertions among that: what had failed by one of these passed, and the exit code was 0."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    suite = tmp_path / "promptfooconfig.yaml"
    suite.write_text(
        f"prompts: ['tell {{{{q}}}}']\nproviders: [echo]\nextensions: ['file://h.py:{name}']\n"
        "tests: [{vars: {q: cats}, assert: [{type: contains, value: cats}]}]\n"
    )
    (tmp_path / "h.py").write_text(code)
    assert cli("run", ".", "--trust").code == (1 if code == _ADDS else 0)
    if edited:
        suite.write_text(suite.read_text().replace("value: cats", "value: tell"))
    told = cli("rescore", "last", "--trust")
    assert (told.code, out in told.out) == (int("passed" not in out), True), told


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("adds", [True, False])
def test_a_results_file_of_a_suite_with_hooks_is_judged_again_where_they_added_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adds: bool, own: bool
) -> None:
    """Each case of it was an error. A file of promptfoo's own says nothing of the suite's content."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['tell {{q}}']\nproviders: [echo]\nextensions: ['file://h.py:hook']\n"
        "tests: [{vars: {q: cats}, assert: [{type: contains, value: cats}]}]\n"
    )
    (tmp_path / "h.py").write_text(_ADDS if adds else _LOOKS % "hook")
    file = tmp_path / "results.promptfoo.json"
    assert cli("run", ".", "--trust", "-o", str(file)).code == int(adds)
    if not own:
        file.write_text(re.sub('"content_hash": *"[^"]*"', '"content_hash": ""', file.read_text()))
    shutil.rmtree(tmp_path / ".tui-eval")
    told = cli("rescore", str(file), "--trust")
    out = "had made another case" if adds else "1 case passed"
    assert (told.code, out in told.out) == (int(adds), True), told


def test_a_prompt_that_is_json_is_the_one_that_promptfoo_s_file_has_without_its_spaces(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    (tmp_path / "chat.json").write_text(
        '[\n  {"role": "user", "content": "tell {{q}}", "10": 1.0, "2": true}\n]\n'
    )
    (tmp_path / "chat.js").write_text("module.exports = ({vars}) => [{role: 'user', content: vars.q}];\n")
    config = tmp_path / "promptfooconfig.yaml"
    config.write_text(
        "prompts: [file://chat.json, file://chat.js]\nproviders: [echo]\ntests:\n"
        "  - {vars: {q: cats}, assert: [{type: contains, value: cats}]}\n"
    )
    assert cli("run", str(config), "--trust", "-o", "r.promptfoo.json").code == 0
    document = json.loads(Path("r.promptfoo.json").read_text("utf-8"))
    del document["metadata"]["tuiEval"]
    for row in document["results"]["results"]:
        del row["tuiEval"]
        row["prompt"]["raw"] = json.dumps(json.loads(row["prompt"]["raw"]), separators=(",", ":"))
    Path("pf.json").write_text(json.dumps(document), "utf-8")
    told = cli("rescore", "pf.json", "--trust")
    assert told.code == 0 and "2 passed" in told.out, told
    for then, now in (("tell", "say"), ("true", "1")):
        text = (tmp_path / "chat.json").read_text("utf-8")
        (tmp_path / "chat.json").write_text(text.replace(then, now), "utf-8")
        told = cli("rescore", "pf.json", "--trust")
        assert told.code == 1 and "1 passed, 0 failed, 1 error" in told.out
        assert "its prompt reads otherwise than when it was answered: run the case" in told.out
        (tmp_path / "chat.json").write_text(text, "utf-8")


def test_an_answer_to_other_sly_data_is_not_judged(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("agents: {helper: {type: echo}}\n")
    suite = tmp_path / "net.hocon"
    suite.write_text(
        'agent = net\ninteractions = [{text = "one", sly_data = {paid = 2}, response {text {keywords = ["one"]}}}]\n'
    )
    assert cli("run", str(suite), "--agent", "helper").code == 0
    assert cli("rescore", "last").code == 0
    suite.write_text(suite.read_text().replace("paid = 2", "paid = 50"))
    told = cli("rescore", "last")
    assert told.code == 1 and "turn 1 sends other data beside it than when it was answered" in told.out


def test_the_turn_that_asked_for_rows_is_no_answer_of_a_results_file(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(fast_samples(project))
    tests = "shop_analyst/tests/customers"
    first = cli("run", tests, "--trust", "-o", "r.json", "-o", "r.promptfoo.json")
    from_elsewhere("r.json", "r.promptfoo.json")
    for name in ("r.json", "r.promptfoo.json"):
        again = cli("rescore", name, "--trust")
        assert again.code == first.code and "could not be read" not in again.out, name
        assert _summed(again.out) == _summed(first.out), name


def _summed(out: str) -> str:
    return next(line for line in reversed(out.splitlines()) if " passed" in line and "total" in line)


def test_what_is_not_in_a_results_file_is_not_judged_as_if_it_had_not_been_there(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`structure` is in it; sly_data is private, and stays with the run: where that is, it is what is judged."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(fast_samples(project))
    names = ("itinerary_structure", "split_the_bill")
    files = [f"travel/tests/fixtures/{name}.hocon" for name in names]
    for mode in ("documented", "reference"):
        results = ("r.json", "r.promptfoo.json")
        first = cli("run", *files, "--trust", "--compat", mode, "-o", results[0], "-o", results[1])
        for file in results:
            told = cli("rescore", file, "--trust")
            assert told.code == first.code and "not in the results file" not in told.out
        shutil.rmtree(".tui-eval")  # elsewhere
        for file in results:
            cli("rescore", file, "--trust", "-o", "again.json")
            rows = json.loads(Path("again.json").read_text())["results"]
            assert [row["outcome"] for row in rows] == ["passed", "error"], (mode, file)
            assert "sly_data: it is not in the results file: run the case" in rows[1]["message"]
        assert cli("run", *files, "--failed", "--trust").code == 0, "it is asked anew"


def test_what_a_results_file_lacks_takes_nothing_s_place(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Judged again from the file of its own run, all that sly_data had decided was an error, in the run's
    place: `--failed` asked, and paid, once more."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.chdir(fast_samples(project))
    suite = "travel/tests/fixtures/split_the_bill.hocon"
    assert cli("run", suite, "--trust", "-o", "r.json").code == 0
    run = cli("runs", "--json").json[0]["id"]
    assert cli("rescore", "r.json", "--trust").code == 0
    assert cli("compare", run, "last").code == 0
    # Of the same run, with other answers than that has: the file itself is judged.
    document = json.loads(Path("r.json").read_text())
    document["results"][0]["details"]["response_text"] += " Bye."
    for entry in document["results"][0]["transcript"]:
        if entry["kind"] == "assistant":
            entry["text"] = f"{entry['text']} Bye."
    Path("r.json").write_text(json.dumps(document))
    told = cli("rescore", "r.json", "--trust")
    assert told.code == 1 and "sly_data: it is not in the results file: run the case" in told.out
    for _ in range(2):
        assert cli("run", suite, "--trust", "--failed").code == 5
        assert [
            item.outcome
            for item in load_together(Index(Path.cwd()).counting_folders(Store(Path.cwd()).find(run)))
        ] == ["passed"]
        Index(Path.cwd()).rebuild()
    # Edited since, it has no verdict of today's assertions: that is no reason not to ask.
    Path(suite).write_text(Path(suite).read_text().replace('"value": 320.0', '"value": 321.0'))
    assert cli("rescore", "r.json", "--trust").code == 1
    assert cli("run", suite, "--trust", "--changed").code == 1
    assert cli("run", suite, "--trust", "--failed").code == 1


class _Verified(NaoServer):
    """Answers with rows that the server verified."""

    def answers(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """What it answers from now on."""
        self.rows = list(rows)

    def default(self, seen: Any) -> Planned:
        """The rows, and nao's own expected ones."""
        planned = super().default(seen)
        verified = {"data": self.rows, "sql": "select n", "error": None}
        planned.body["verification"] = {**verified, "expectedData": [], "expectedColumns": ["n"]}
        return planned


def _nao_answers(project: Path, backend: _Verified, sql: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """A nao test, and a server that answers it with rows; its file."""
    with closing(sqlite3.connect(project / "n.db")) as made, made:
        made.execute("create table numbers(n)")
        made.executemany("insert into numbers values (?)", [(n,) for n in range(1, 2001)])
    (project / "tui_eval.yaml").write_text(
        f"agents: {{nao: {{type: nao, url: '{backend.url}', email: a@b.co, password: secret-password}}}}\n"
        "suites: [{path: 'tests/**', agent: nao}]\n"
        "databases: {main: {type: sqlite, path: n.db}}\n"
    )
    (project / "tests").mkdir()
    (project / "tests" / "numbers.yml").write_text(f"name: numbers\nprompt: which?\nsql: {sql}\n")
    backend.answers(rows)
    return "tests/numbers.yml"


@pytest.mark.parametrize(
    ("expected", "given", "first"),
    [(1000, 1500, "failed"), (1500, 1000, "failed"), (1500, 1500, "passed"), (1000, 1000, "passed")],
)
def test_rows_that_a_results_file_lacks_are_not_judged_as_if_they_had_not_been_there(
    cli: Cli,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    expected: int,
    given: int,
    first: str,
) -> None:
    """1,500 rows for 1,000 passed, since 1,000 of them are in the file; it says how many there were, and keeps its
    verdict."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with _Verified() as backend:
        rows = [{"n": n} for n in range(1, given + 1)]
        suite = _nao_answers(project, backend, f"select n from numbers where n <= {expected}", rows)
        cli("run", suite, "-o", "r.json", "-o", "r.promptfoo.json")
    from_elsewhere("r.json", "r.promptfoo.json")
    (row,) = json.loads((project / "r.json").read_text())["results"]
    cut = max(expected, given) > 1000
    assert row["outcome"] == first and len(row["details"]["actual_data"]) == 1000
    assert row["details"]["truncated"] == ({"expected": expected, "actual": given} if cut else False)
    for file in ("r.json", "r.promptfoo.json"):
        shown = cli("show", file, "numbers")
        assert ("row count: 1500 vs 1000" in shown.out) == (first == "failed" and given == 1500), file
        again = cli("rescore", file, "-o", "again.json")
        (judged,) = json.loads((project / "again.json").read_text())["results"]
        if given > 1000:
            assert again.code == 1 and judged["outcome"] == "error", file
            assert "only the first 1,000 rows of the answer were kept: run the case" in judged["message"]
        else:
            assert judged["outcome"] == first, file
        if given > 1000:
            (row,) = next(iter(Index(project).latest().values()))[:1]
            assert row.outcome == "error" and row.alike == "all rows not in the results file"
    if cut:  # of files of before, which did not say it, nobody knows
        document = json.loads((project / "r.json").read_text())
        del document["results"][0]["details"]["truncated"]
        (project / "old.json").write_text(json.dumps(document))
        assert cli("rescore", "old.json").code == 1
        assert "whether these 1,000 rows are all of the answer" in cli("show").out


def test_numbers_that_json_lacks_come_back_from_a_results_file(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """An infinite number is a word in the file, and came back as a text."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with _Verified() as backend:
        suite = _nao_answers(project, backend, "select 9e999 as n", [{"n": float("inf")}])
        assert cli("run", suite, "-o", "r.json", "-o", "r.promptfoo.json").code == 0
    from_elsewhere("r.json", "r.promptfoo.json")
    for file in ("r.json", "r.promptfoo.json"):
        again = cli("rescore", file)
        assert again.code == 0, (file, again.out)


@pytest.mark.real
def test_a_case_of_a_results_file_that_was_never_asked_has_no_answer(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Away from its suites the file says of it not even what would have been asked: that ended the run as an internal
    error, and the others were lost with it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with _Verified() as backend:
        _nao_answers(project, backend, "select n from numbers where n = 1", [{"n": 1}])
        (project / "tests" / "broken.yml").write_text("name: broken\nprompt: which?\nsql: selec 1\n")
        assert cli("run", "tests", "-o", "r.json", "-o", "r.promptfoo.json").code == 1
    from_elsewhere("r.json", "r.promptfoo.json")
    (project / "tests" / "broken.yml").unlink()
    for file in ("r.json", "r.promptfoo.json"):
        again = cli("rescore", file)
        assert again.code == 1 and "there is no recorded answer to judge" in again.out, again.err
        assert "1 passed, 0 failed, 1 error" in again.out


@pytest.mark.real
@pytest.mark.parametrize(
    ("rules", "given", "outcome"),
    [
        ("{}", [1, 2], "passed"),
        ("{}", [1, 3], "failed"),
        ("{ordered: true}", [2, 1], "failed"),
        ("{ordered: true}", [1, 2], "passed"),
        ("{atol: 1}", [1, 3], "passed"),
    ],
)
def test_rows_are_judged_by_the_expected_query_of_a_results_file_alone(
    cli: Cli,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    rules: str,
    given: list[int],
    outcome: str,
) -> None:
    """Away from its suites what it said was expected (`2 rows`) was the case's query, and wrong."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    with _Verified() as backend:
        rows = [{"n": n} for n in given]
        suite = _nao_answers(project, backend, "select n from numbers where n <= 2 order by n", rows)
        with (project / suite).open("a") as file:
            file.write(f"comparison: {rules}\n")
        assert cli("run", suite, "-o", "r.json", "-o", "r.promptfoo.json").code == (outcome == "failed")
    from_elsewhere("r.json", "r.promptfoo.json")
    (project / suite).unlink()
    for file in ("r.json", "r.promptfoo.json"):
        again = cli("rescore", file, "-o", "again.json")
        (judged,) = json.loads((project / "again.json").read_text())["results"]
        assert judged["outcome"] == outcome, (file, judged["message"], again.out)
