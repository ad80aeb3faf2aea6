"""`tui-eval run`: exit codes, what is printed and what is written."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.commands.conftest import CONFIG, Cli
from tui_eval.commands import run_suites
from tui_eval.commands.classic import ClassicProgress
from tui_eval.engine.attempt import attempt_state
from tui_eval.engine.plan import Job
from tui_eval.model import Attempt, Case
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.writer import RunWriter
from tui_eval.tui.loaders.compare_loader import Half, load_comparison


def test_everything_passed_is_0(cli: Cli, project: Path) -> None:
    result = cli("run", "suite.yaml", "-s", "greets,costs")
    assert result.code == 0
    header = result.out.splitlines()[0].split("  ")
    assert [word.strip() for word in header if word.strip()] == [
        "Test", "Model", "Status", "Message", "Tokens", "Cost", "Time (s)", "Tools",
    ]  # fmt: skip
    assert "All 2 cases passed" in result.out
    assert "scripted" in result.err


def test_a_failure_is_1_with_its_reason_and_a_command_that_reruns_it(cli: Cli, project: Path) -> None:
    result = cli("run", ".")
    assert result.code == 1
    assert "should_not_contain: 'whatever' was found in response" in result.out
    assert "2 passed, 1 failed, 3 total" in result.out
    again = next(line for line in result.out.splitlines() if "again: tui-eval" in line)
    repeated = cli(*shlex.split(again.partition("tui-eval ")[2]))
    assert repeated.code == 1 and "1 failed, 1 total" in repeated.out


def test_each_reason_is_said_once(cli: Cli, project: Path) -> None:
    (project / "tests").mkdir()
    (project / "data").mkdir()
    (project / "data" / "t.csv").write_text("a\n1\n2\n")
    (project / "tests" / "t.yml").write_text("name: t\nprompt: hello\nsql: SELECT a FROM t\n")
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: {say: x, rows: [{a: 1}, {a: 3}]}\n")
    config = 'databases: {d: {type: files, path: data}}\nsuites: [{path: "tests/**", agent: helper}]\n'
    with (project / "tui_eval.yaml").open("a") as file:
        file.write(config)
    result = cli("run", "tests")
    assert result.code == 1
    assert result.out.count("extra row 2: a=3") == 1
    (written,) = (project / "tests" / "outputs").glob("results_*.json")
    assert json.loads(written.read_text())["results"][0]["message"] == "values differ"


def test_the_table_is_made_while_the_index_reads_the_run(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a run takes as long as the rest of its end: it is read once, and again where that came to nothing."""
    read: list[Path] = []
    attempts_of = RunReader.attempts_of

    def counted(self: RunReader, case_refs: Any) -> Any:
        read.append(self.folder)
        return attempts_of(self, case_refs)

    monkeypatch.setattr(RunReader, "attempts_of", counted)
    first = cli("run", "suite.yaml", "-s", "greets,costs", "--attempts", "2")
    assert len(read) == 1
    recorded = Index.record
    monkeypatch.setattr(Index, "record", lambda self, *given: recorded(self, *given) and False)
    second = cli("run", "suite.yaml", "-s", "greets,costs", "--attempts", "2")
    assert "All 2 cases passed" in first.out and "pass@2 100.0%" in first.out
    assert [line.split()[:3] for line in second.out.splitlines()] == [
        line.split()[:3] for line in first.out.splitlines()
    ]
    assert len(read) == 3
    monkeypatch.setattr(run_suites, "HELD_AS_THEY_ARE", 1)  # of many cases both at once take too much memory
    third = cli("run", "suite.yaml", "-s", "greets,costs", "--attempts", "2")
    assert "All 2 cases passed" in third.out and len(read) == 5


def test_an_error_is_1(cli: Cli, project: Path) -> None:
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: {steps: [{say: a}, {error: it broke}]}\n")
    result = cli("run", ".", "-s", "greets")
    assert result.code == 1
    assert "it broke" in result.out and "0 passed, 0 failed, 1 error, 1 total" in result.out


def test_a_case_that_failed_for_several_reasons_says_how_often_for_which(cli: Cli, project: Path) -> None:
    (project / "bot.py").write_text(
        "asked = []\n"
        "def answer(message):\n"
        "    asked.append(1)\n"
        "    raise (KeyError if len(asked) == 1 else ValueError)(f'no {len(asked)}')\n"
    )
    (project / "tui_eval.yaml").write_text("agents:\n  helper: {type: python, function: 'bot.py:answer'}\n")
    result = cli(
        "run", "suite.yaml", "-s", "greets", "--attempts", "4", "-j", "1", "--trust", "-o", "r.junit.xml"
    )
    found = "3 × ValueError: no N (bot.py:N), 1 × KeyError: no key 'no 1' (bot.py:4)"
    row = next(line for line in result.out.splitlines() if line.startswith("greets"))
    assert "3 × ValueError: no N" in row
    block = result.out[result.out.index("! error: greets") :].splitlines()
    assert block[1].strip().startswith("3 × ") and ", 1 × " in block[1]
    assert block[2].strip().startswith("attempt 2: ") and "ValueError" in block[2], (
        "the most frequent is shown"
    )
    (error,) = ElementTree.parse(project / "r.junit.xml").iter("error")
    assert str(error.get("message")).startswith("3 × ") and "ValueError" in str(error.text)
    assert cli("export", "last", "-o", "r.md").code == 0
    assert found in (project / "r.md").read_text()


def test_a_file_that_cannot_be_read_is_4_and_the_others_run(cli: Cli, project: Path) -> None:
    (project / "broken.yaml").write_text("test_cases: [{name: x, input: 1\n")
    result = cli("run", ".", "-s", "greets")
    assert result.code == 4
    assert result.err.splitlines()[0].startswith("broken.yaml:1: ")
    assert (
        "\n1 case passed, but not all is there: its files have 1 error, "
        "what stands there was not run, or not as written" in result.out
    )
    shown = cli("show")
    assert shown.code == 4
    assert (
        "All 1 case" not in shown.out
        and "1 case passed, but not all is there: its files have 1 error" in shown.out
    )


def test_a_broken_configuration_is_4(cli: Cli, project: Path) -> None:
    (project / "tui_eval.yaml").write_text(CONFIG + "agent: {}\n")
    result = cli("run", ".", "-s", "greets")
    assert result.code == 4
    assert "tui_eval.yaml:3: " in result.err and "did you mean agents?" in result.err


def test_attempts_and_threshold(cli: Cli, project: Path) -> None:
    script = 'speed: 0\nrules:\n  - {match: {contains: hello, attempts: [2]}, say: "no"}\ndefault: "hi"\n'
    (project / "agent.script.yaml").write_text(script)
    assert cli("run", ".", "-s", "greets", "--attempts", "3").code == 1
    assert cli("run", ".", "-s", "greets", "--runs", "3", "--fail-threshold", "0.8").code == 1
    result = cli("run", ".", "-s", "greets", "--repeat", "3", "--threshold", "0.6")
    assert result.code == 0
    assert "passed 2/3 flaky" in result.out
    assert "(1 flaky); 2 of 3 attempts passed" in result.out
    assert "pass@1 66.7%, pass@3 100.0%, pass^3 0.0%" in result.out  # as nao prints them
    assert "pass@" not in cli("run", ".", "-s", "greets").out


def test_a_threshold_of_0_says_that_nothing_can_fail(cli: Cli, project: Path) -> None:
    (project / "agent.script.yaml").write_text("speed: 0\ndefault: nothing of the kind\n")
    done = cli("run", ".", "--threshold", "0")
    assert done.code == 0 and "nothing can fail" in done.err
    assert cli("run", ".").code == 1


def test_several_agents_are_columns(cli: Cli, project: Path) -> None:
    result = cli("run", ".", "-s", "greets", "--agent", "helper", "--agent", "echo", "--display", "json")
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert {(line["agent"], line["outcome"]) for line in lines} == {("helper", "passed"), ("echo", "failed")}


def test_displays(cli: Cli, project: Path) -> None:
    quiet = cli("run", ".", "--display", "none")
    assert (quiet.code, quiet.out, quiet.err) == (1, "", "")
    lines = [json.loads(line) for line in cli("run", ".", "--display", "json").out.splitlines()]
    assert len(lines) == 3
    assert {"case_id", "attempt", "agent", "model", "outcome", "message", "score", "cost"} <= lines[0].keys()


def test_failed_only(cli: Cli, project: Path) -> None:
    cli("run", ".")
    result = cli("run", ".", "--failed", "--display", "json")
    assert [json.loads(line)["case_id"] for line in result.out.splitlines()] == ["suite.yaml::says sorry"]


def test_a_limit_that_ends_the_run_is_1(cli: Cli, project: Path) -> None:
    limited = cli("run", ".", "-s", "costs", "--attempts", "2", "--max-cost", "0.001", "-j", "1")
    assert limited.code == 1 and "cost limit" in limited.out
    fast = cli("run", ".", "-s", "says sorry,costs", "--fail-fast", "-j", "1")
    assert fast.code == 1 and "--fail-fast" in fast.out and "1 not run" in fast.out


@pytest.mark.parametrize("display", ["json", "none"])
def test_why_a_run_was_stopped_is_said_on_stderr_where_no_table_is(
    cli: Cli, project: Path, display: str
) -> None:
    given = ("run", ".", "-s", "says sorry,costs", "--fail-fast", "-j", "1", "--display", display)
    fast = cli(*given)
    assert fast.code == 1
    assert "stopped: --fail-fast" in fast.err and "; 1 of 2 cases not run" in fast.err
    uncounted = cli("run", ".", "-s", "greets", "--max-cost", "0.001", "--display", display)
    assert uncounted.code == 0 and "the cost of 1 answer is unknown" in uncounted.err


def test_a_limit_that_ends_nothing_is_no_failure(cli: Cli, project: Path) -> None:
    reached = cli("run", ".", "-s", "costs", "--max-cost", "0.001", "-j", "1")
    assert reached.code == 0 and "\n1 case passed\nthe cost limit of 0.001 USD is reached" in reached.out
    assert ", with nothing left to run" in reached.out and "stopped" not in reached.out


def test_a_cost_limit_says_what_it_could_not_count(cli: Cli, project: Path) -> None:
    """An agent that reports no cost is never stopped by it."""
    result = cli("run", ".", "-s", "greets", "--max-cost", "0.001")
    assert result.code == 0
    assert "the cost of 1 answer is unknown: the cost limit of 0.001 USD did not count that" in result.out
    assert "is unknown" not in cli("run", ".", "-s", "greets").out


def test_a_cost_limit_says_of_answers_that_failed_what_it_could_not_count(cli: Cli, project: Path) -> None:
    """They were paid for like others, as the tokens show."""
    (project / "fails.py").write_text(
        "from tui_eval.events import UsageReport\nfrom tui_eval.model import Usage\n"
        "async def fails(message, session):\n    yield UsageReport(Usage(7, 2))\n    raise ValueError('gone')\n"
    )
    given = ("run", ".", "-s", "greets", "--agent", "fails.py:fails", "--max-cost", "1")
    assert "the cost of 1 answer is unknown: the cost limit of 1 USD did not count that" in cli(*given).out


def test_a_cost_limit_says_of_answers_that_could_not_be_judged_what_it_could_not_count(
    cli: Cli, project: Path
) -> None:
    (project / "plain.py").write_text("def plain(message):\n    return 'hi'\n")
    (project / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [echo]\n"
        "tests: [{description: u, assert: [{type: javascript, value: '\"x\".repeat(1e9).length > 0'}]}]\n"
    )
    given = ("run", "promptfooconfig.yaml", "--agent", "plain.py:plain", "--max-cost", "1")
    result = cli(*given)
    assert "1 error" in result.out
    assert "the cost of 1 answer is unknown: the cost limit of 1 USD did not count that" in result.out


def test_progress_names_the_model_where_an_agent_has_several(cli: Cli, project: Path) -> None:
    one = cli("run", ".", "-s", "greets").err
    several = cli("run", ".", "-s", "greets", "-m", "small", "-m", "large").err
    names = {line.rpartition("[")[2].rpartition("]")[0] for line in several.splitlines() if "greets" in line}
    (alone,) = {line.rpartition("[")[2].rpartition("]")[0] for line in one.splitlines() if "greets" in line}
    assert names == {f"{alone} · small", f"{alone} · large"}


def test_nothing_is_kept_without_a_store(cli: Cli, project: Path) -> None:
    assert cli("run", ".", "-s", "greets", "--no-store", "-o", "a.json", "-o", "deep/b.jsonl").code == 0
    assert not (project / ".tui-eval").exists()
    document = json.loads((project / "a.json").read_text())
    (line,) = (project / "deep" / "b.jsonl").read_text().splitlines()
    assert document["results"] == [json.loads(line)]
    assert "resume" not in cli("run", ".", "-s", "greets", "--no-store").err


def test_the_store_ignores_itself_in_git(cli: Cli, project: Path) -> None:
    cli("run", ".", "-s", "greets")
    assert (project / ".tui-eval" / ".gitignore").read_text().strip() == "*"


def test_no_terminal_runs_in_plain_lines(cli: Cli, project: Path) -> None:
    result = cli(".")
    assert result.code == 1
    assert "no terminal" in result.err and "1 failed, 3 total" in result.out


@pytest.mark.parametrize(
    "name",
    [
        "evil \\e[2J\\a\\u202e [red]n[/red]",
        "nul \\0 in it",
        "two\\nlines",
        "-rf",
        "$(reboot)",
        "ends'; rm",
        "🦊 山田 太郎",
    ],
)
def test_hostile_names_are_printed_safely_and_run_again(cli: Cli, project: Path, name: str) -> None:
    case = f'{{name: "{name}", input: "x\\e[31m", expected: {{should_contain: ["\\e[5mnever\\0"]}}}}'
    (project / "evil.yaml").write_text(f"agent: helper\ntest_cases:\n  - {case}\n", "utf-8")
    for arguments in (("run", "evil.yaml", "-o", "r.json"), ("list", "evil.yaml"), ("check", "evil.yaml"),
                      ("show",), ("runs",), ("attach",)):  # fmt: skip
        result = cli(*arguments)
        said = result.out + result.err
        assert not any(sign in said for sign in "\x1b\x07\x00\u202e\x9b"), arguments
    listed = cli("list", "evil.yaml").out.splitlines()
    assert len(listed) == 3, "a name keeps to its line"
    (row,) = cli("list", "evil.yaml", "--json").json
    assert cli("run", "evil.yaml", f"--select={row['case_id']}", "--no-store").code == 1
    assert json.loads((project / "r.json").read_text())["results"][0]["name"] == row["name"]


def test_unwritable_project_keeps_the_run_elsewhere(
    cli: Cli, project: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = os.access
    monkeypatch.setattr(
        os, "access", lambda path, mode: False if str(path) == str(project) else really(path, mode)
    )
    result = cli("run", ".", "-s", "greets")
    assert result.code == 0
    assert "cannot be written" in result.err and str(own_state) in result.err
    assert not (project / ".tui-eval").exists()
    assert cli("show", "last").code == 0


CLASSIC = """\
  Running: greets... PASS
  Running: says sorry... FAIL (1 issues)
  Running: costs... PASS

============================================================
Results: 2/3 passed
Tokens:  1,302 input / 2,027 output
============================================================

FAILED: says sorry
  - should_not_contain: 'whatever' was found in response
"""


def test_the_guides_report_to_the_byte(cli: Cli, project: Path) -> None:
    script = (project / "agent.script.yaml").read_text()
    usage = script.replace("usage: {input: 100, output: 20}", "usage: {input: 1299, output: 2024}")
    (project / "agent.script.yaml").write_text(usage.replace("say: \"hi there\"", "say: \"hi\"\n    usage: {input: 1, output: 2}")
        .replace("say: \"whatever\"", "say: \"whatever\"\n    usage: {input: 2, output: 1}"))  # fmt: skip
    result = cli("run", ".", "--report", "classic")
    assert (result.code, result.out, result.err) == (1, CLASSIC, "")


@pytest.mark.parametrize("terminal", [False, True])
def test_what_is_told_during_the_guides_report_stands_between_its_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, terminal: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.setattr(sys, "stderr", sys.stdout)  # as on a terminal, and with `2>&1`
    monkeypatch.setenv("NO_COLOR", "1")
    case = Case("s::a", "a", "s", "start_to_agent")
    job = Job(case, "x", None, None, 1, 1, "documented", tmp_path, 1.0, {}, None, None)
    progress = ClassicProgress()
    progress.tell("first")
    progress.expect([job])
    progress.tell("loading")
    progress.ended(job, 1, Attempt("s::a", 1, "passed"))
    progress.tell("last")
    begun = "  Running: a... "
    shown = f"{begun}\nloading\n{begun}PASS\n" if terminal else f"{begun}PASS\nloading\n"
    assert capsys.readouterr().out == f"first\n{shown}last\n"


def test_the_guides_report_of_several_runs_and_columns(cli: Cli, project: Path) -> None:
    result = cli(
        "run",
        ".",
        "-s",
        "greets",
        "--report",
        "classic",
        "--runs",
        "3",
        "--agent",
        "helper",
        "--agent",
        "echo",
    )
    assert "  Running: greets [helper]... PASS (3/3 runs passed)\n" in result.out
    assert "  Running: greets [echo]... FAIL (0/3 runs passed, 1 issues)\n" in result.out
    assert "  - should_contain: 'hi' not found in response (3 of 3 runs)\n" in result.out


def test_a_text_that_several_assertions_failed_with_is_said_once(cli: Cli, project: Path) -> None:
    (project / "tools.yaml").write_text(
        "agent: helper\ntest_cases:\n  - {name: tools, input: hi, expected: {tools_used: [book, pay]}}\n"
    )
    told = cli("run", "tools.yaml", "-o", "r.junit.xml").out
    missing = "tools_used: missing {'book', 'pay'}"
    assert told.count(missing) == 1
    failure = ElementTree.parse(project / "r.junit.xml").find(".//failure")
    assert failure is not None and (failure.text or "").count(missing) == 1


def test_kinds_of_files_by_their_ending(cli: Cli, project: Path) -> None:
    cli("run", ".", "-s", "greets")
    for name in ("a.json", "a.jsonl", "a.promptfoo.json", "promptfoo.json", "B.JSON"):
        assert cli("export", "last", "-o", name).code == 0
    for name in ("a.promptfoo.json", "promptfoo.json"):
        assert "evalId" in json.loads((project / name).read_text())
    assert (project / "a.json").read_text() == (project / "B.JSON").read_text()
    assert not list(project.glob("*.part")) and not list(project.glob(".*.part"))


def test_all_that_needs_trust_is_listed_before_the_run(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n  - vars: {q: one}\n    assert:\n"
        "      - {type: python, value: 'len(output) > 0'}\n      - {type: python, value: file://check.py}\n",
        "utf-8",
    )
    (tmp_path / "check.py").write_text("def get_assert(output, context):\n    return True\n", "utf-8")
    done = cli("run", str(tmp_path))
    assert done.code == 1
    assert "2 things need trust" in done.err and "run check.py" in done.err
    assert "run inline Python of promptfooconfig.yaml: len(output) > 0 [15 characters" in done.err
    trusted = cli("run", str(tmp_path), "--trust")
    assert trusted.code == 0 and "trust" not in trusted.err


@pytest.mark.parametrize("run", ["max_cost: -1", "max_cost: .nan", "max_costs: 0.05"])
def test_nothing_is_asked_where_a_limit_of_the_project_cannot_be_read(
    cli: Cli, project: Path, run: str
) -> None:
    with (project / "tui_eval.yaml").open("a") as file:
        file.write(f"run: {{{run}}}\n")
    done = cli("run", ".")
    assert done.code == 4 and "run.max_cost" in done.err and "passed" not in done.out
    assert not list((project / ".tui-eval").glob("runs/*"))


def test_what_a_run_reads_is_not_written_over(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests: file://tests.csv\n"
        "defaultTest: {vars: {wanted: file://wanted.json}}\n",
        "utf-8",
    )
    inputs = {"tests.csv": "q,__expected\none,contains:one\n", "wanted.json": '["one"]'}
    for name, text in inputs.items():
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "link.csv").symlink_to(tmp_path / "tests.csv")
    for name in (*inputs, "link.csv"):
        done = cli("run", str(tmp_path), "-o", str(tmp_path / name))
        assert done.code == 4 and f"{name}: the run reads this file" in done.err
    assert {name: (tmp_path / name).read_text() for name in inputs} == inputs
    assert not list((tmp_path / ".tui-eval").glob("runs/*"))
    for _ in range(2):  # what a run wrote is written anew by the next one
        outputs = [str(tmp_path / name) for name in ("out.json", "out.promptfoo.json", "out.csv")]
        done = cli("run", str(tmp_path), *(word for name in outputs for word in ("-o", name)))
        assert done.code == 0, done.err


@pytest.fixture
def nao_tests(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a nao test; all of its runs end in one second."""
    (project / "tests").mkdir()
    (project / "tests" / "t.yml").write_text("name: t\nprompt: hello\n")
    with (project / "tui_eval.yaml").open("a") as file:
        file.write('suites: [{path: "tests/**", agent: helper}]\n')
    monkeypatch.setattr("tui_eval.reports.export.time.strftime", lambda *_: "20261127_000000")
    return project


def test_runs_that_end_in_one_second_each_keep_their_results(cli: Cli, nao_tests: Path) -> None:
    outputs = nao_tests / "tests" / "outputs"
    for _ in range(3):
        done = cli("run", "tests")
        assert done.code == 0 and "not written" not in done.err
    names = [f"results_20261127_000000{more}.json" for more in ("", "_2", "_3")]
    assert sorted(file.name for file in outputs.iterdir()) == sorted(names)
    runs = {json.loads((outputs / name).read_text())["run"]["id"] for name in names}
    assert len(runs) == 3


def test_results_do_not_follow_links_out_of_the_project(
    cli: Cli, nao_tests: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (nao_tests / "tests" / "outputs").symlink_to(outside)
    done = cli("run", "tests")
    assert "a link out of the project;" in done.err and not list(outside.iterdir())
    (nao_tests / "tests" / "outputs").unlink()
    (nao_tests / "tests" / "outputs").mkdir()
    (nao_tests / "tests" / "outputs" / "results_20261127_000000.json").symlink_to(outside / "theirs.json")
    cli("run", "tests")
    assert not list(outside.iterdir())
    assert (nao_tests / "tests" / "outputs" / "results_20261127_000000_2.json").is_file()


@pytest.mark.real
def test_a_python_agent_that_is_slow_to_load_says_so_and_its_loading_is_not_its_time(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("own.py").write_text(
        "import time\ntime.sleep(0.4)\n\n\ndef answer(message: str) -> str:\n    return 'hi there'\n"
    )
    monkeypatch.setattr(attempt_state, "SLOW", 0.0)
    shown: list[str] = []
    waits = RunWriter.waits
    monkeypatch.setattr(
        RunWriter, "waits", lambda self, ref, detail: (shown.append(detail), waits(self, ref, detail))
    )
    ends: list[bool] = []
    limit = RunWriter.limit
    monkeypatch.setattr(
        RunWriter, "limit", lambda self, ref, at: (ends.append(at is not None), limit(self, ref, at))
    )
    ran = cli("run", "suite.yaml", "--agent", "own.py:answer", "--trust")
    assert ran.err.count("loading own.py: not counted as the agent's time") == 1
    assert shown and set(shown) == {"loading own.py"}
    assert False in ends and ends[-1]  # viewers are told of no limit that does not go on
    (folder,) = Store(project).run_folders()
    with closing(RunReader(folder)) as reader:
        rows = list(reader.attempts())
    assert [row.detail for row in rows] == [""] * 3
    assert min(row.duration_ms or 0.0 for row in rows) < 400
    quiet = "--display", "none", "--threshold", "0"
    silent = cli("run", "suite.yaml", "--agent", "own.py:answer", "--trust", *quiet)
    assert (silent.code, silent.out, silent.err) == (0, "", "")


@pytest.mark.real
def test_no_process_of_a_python_agent_has_its_loading_counted(cli: Cli, project: Path) -> None:
    """Each of the attempts at the same time starts a process, and loading takes longer than an attempt may."""
    Path("own.py").write_text(
        "import time\ntime.sleep(2.2)\n\n\ndef answer(message, session):\n    return 'hi there'\n"
    )
    Path("slow.yaml").write_text(
        "test_cases:\n"
        + "".join(f"  - {{name: t{n}, messages: [q], expected: {{should_contain: hi}}}}\n" for n in range(4))
    )
    (project / "tui_eval.yaml").write_text(
        "agents:\n  own: {type: python, function: 'own.py:answer', timeout: 2}\n"
    )
    ran = cli("run", "slow.yaml", "--agent", "own", "--trust", "-j", "4")
    assert ran.code == 0, ran.out + ran.err
    assert ran.err.count("loading own.py: not counted as the agent's time") == 1


CUT = ("--max-cost", "0.005", "-j", "1")
CUT_FILES = ("r.json", "r.jsonl", "r.promptfoo.json")


def cut_run(cli: Cli, project: Path, *options: str) -> str:
    """A run that its cost limit ends when one of four cases has run; its id."""
    suite = "".join(f"  - {{name: c{n}, input: how much?}}\n" for n in range(4))
    (project / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{suite}", "utf-8")
    assert cli("run", ".", *CUT, *options).code == 1
    return Store(project).find("last").name


def test_what_never_ran_is_no_success_of_what_failed(cli: Cli, project: Path) -> None:
    """`--failed || test $? = 5` was green after a run of which a cost limit had left most."""
    run = cut_run(cli, project, *(word for name in CUT_FILES for word in ("-o", name)))
    told = cli("run", ".", "--failed")
    assert told.code == 1 and told.out == ""
    assert (
        f"but 3 cases never ran to the end (c1, c2, c3) in run {run}: go on with: tui-eval resume {run}"
        in told.err
    )
    for option in ("--filter-failing", "--filter-failing-only", "--filter-errors-only"):
        for name in CUT_FILES:
            told = cli("run", ".", option, name)
            assert told.code == 1 and f"but 3 cases never ran to the end (c1, c2, c3) in {name}" in told.err
    # of those that are asked for
    told = cli("run", ".", "--failed", "-s", "c0,c2")
    assert told.code == 1 and "but 1 case never ran to the end (c2)" in told.err
    assert cli("run", ".", "--failed", "-s", "c0").code == 5
    assert cli("run", ".", "--failed", "--agent", "other.py:answer").code == 5
    # run since, or gone on with
    assert cli("run", ".", "-s", "c1").code == 0
    assert "but 2 cases never ran to the end (c2, c3)" in cli("run", ".", "--failed").err
    assert cli("resume", run, "--max-cost", "1").code == 0
    told = cli("run", ".", "--failed")
    assert told.code == 5 and told.err.rstrip().endswith("last time (or nothing was run yet)")


def test_what_failed_in_a_file_and_is_not_here_any_more_is_no_success(cli: Cli, project: Path) -> None:
    """It was left out without a word, and the run was green."""
    suite = "agent: helper\ntest_cases:\n" + "".join(
        f"  - {{name: {name}, input: hello, expected: {{should_contain: [never]}}}}\n"
        for name in ("c0", "c1")
    )
    (project / "suite.yaml").write_text(suite, "utf-8")
    files = ("r.json", "r.jsonl", "r.promptfoo.json")
    assert cli("run", ".", *(word for name in files for word in ("-o", name))).code == 1
    mended = suite.replace("never", "hi").replace("c1", "renamed")
    (project / "suite.yaml").write_text(mended, "utf-8")
    for name in files:
        told = cli("run", ".", "--filter-failing", name)
        assert told.code == 1 and "1 case passed, but not all is there" in told.out
        assert f"1 test that failed in {name} is not here any more (c1): changed, renamed or gone" in told.err
        assert cli("run", ".", "--filter-errors-only", name).code == 5
        assert cli("run", ".", "--filter-failing", name, "-s", "c0").code == 0
    (project / "suite.yaml").write_text(mended.replace("c0", "too"), "utf-8")
    told = cli("run", ".", "--filter-failing", "r.json")
    assert told.code == 1 and "2 tests that failed in r.json are not here any more (c0, c1)" in told.err
    # those of a suite that is elsewhere are not asked for
    (project / "other.yaml").write_text(suite, "utf-8")
    assert cli("run", "other.yaml", "-o", "r.json").code == 1
    assert cli("run", "suite.yaml", "--filter-failing", "r.json").code == 5


def test_what_failed_may_pass_now_and_is_not_all_where_others_never_ran(cli: Cli, project: Path) -> None:
    suite = "".join(f"  - {{name: c{n}, input: how much?}}\n" for n in range(4))
    (project / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{suite}", "utf-8")
    assert cli("run", ".").code == 0
    whole = Store(project).find("last").name
    run = cut_run(cli, project)
    text = (project / "suite.yaml").read_text("utf-8")
    failing = text.replace(
        "c0, input: how much?", "c0, input: how much?, expected: {should_contain: [never]}"
    )
    (project / "suite.yaml").write_text(failing, "utf-8")
    assert cli("run", ".", "-s", "c0").code == 1
    (project / "suite.yaml").write_text(text, "utf-8")
    again = cli("run", ".", "--failed", "-o", "r.json")
    assert again.code == 1 and "1 case passed, but not all is there: others never ran" in again.out
    assert f"incomplete: 3 cases never ran to the end (c1, c2, c3) in run {run}: go on with" in again.err
    assert f"in run {run}" in json.loads((project / "r.json").read_text())["run"]["note"]
    # Whoever asks for it later is told the same.
    own = Store(project).find("last").name
    for command in (("show", own), ("resume", own), ("attach", own), ("rescore", own), ("show", "last")):
        told = cli(*command)
        assert told.code == 1, (command, told.out, told.err)
        assert command[0] == "resume" or "not all is there: others never ran" in told.out
    judged = Store(project).find("last").name
    assert judged != own
    assert {one.id for one in Index(project).runs() if one.lacks} == {own, judged}
    for before, after in ((run, own), (own, judged), (whole, own)):
        told = cli("compare", before, after)
        assert (
            told.code == 1
            and f"– incomplete: 3 cases never ran to the end (c1, c2, c3) in run {run}" in told.out
        )
    told = cli("compare", run, own, "--json")
    assert told.code == 1 and told.json["incomplete"].startswith("3 cases never ran")
    assert cli("compare", own, whole).code == 0  # where the second has them nothing is unknown
    seen = load_comparison(project, *(Half(Store(project).find(name)) for name in (run, own)))
    assert "others never ran" in seen.comparison.told
    assert cli("run", ".", "-s", "c0").code == cli("show", "last").code == 0


def test_what_never_ran_and_is_asked_now_is_not_said_never_to_have_run(cli: Cli, project: Path) -> None:
    """They had failed before the run that was cut, so that `--failed` asked them: all passed, and it ended with 1."""
    suite = "".join(f"  - {{name: c{n}, input: how much?}}\n" for n in range(4))
    failing = suite.replace("much?}", "much?, expected: {should_contain: [never]}}", 3)
    (project / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{failing}", "utf-8")
    assert cli("run", ".").code == 1
    run = cut_run(cli, project, "-o", "r.json")
    # Some of them: the others are still said.
    told = cli("run", ".", "--failed")
    assert told.code == 1 and "2 cases passed, but not all is there: others never ran" in told.out
    assert f"1 case never ran to the end (c3) in run {run}" in told.err
    assert cli("run", ".", "-s", "c3").code == 0 and cli("run", ".", "--failed").code == 5
    (project / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{failing}", "utf-8")
    assert cli("run", ".").code == 1
    cut_run(cli, project)
    told = cli("run", ".", "--failed", "-s", "c1,c2")  # all that was asked for
    assert told.code == 0 and "never ran" not in told.out + told.err and cli("show", "last").code == 0

    # Of a results file, too, and in the column that is asked alone.
    rows = json.loads((project / "r.json").read_text())
    rows["results"][0]["outcome"] = "failed"
    rows["not_run"] = [row | {"case_id": rows["results"][0]["case_id"]} for row in rows["not_run"][:1]]
    (project / "r.json").write_text(json.dumps(rows))
    told = cli("run", ".", "--filter-failing", "r.json")
    assert told.code == 0 and "never ran" not in told.out + told.err
    rows["not_run"][0]["agent"] = "other"
    (project / "r.json").write_text(json.dumps(rows))
    told = cli("run", ".", "--filter-failing", "r.json")
    assert told.code == 1 and "others never ran" in told.out


def test_what_another_shard_asks_now_never_ran_for_none_of_them(cli: Cli, project: Path) -> None:
    suite = "".join(
        f"  - {{name: c{n}, input: how much?, expected: {{should_contain: [never]}}}}\n" for n in range(4)
    )
    (project / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{suite}", "utf-8")
    assert cli("run", ".").code == 1
    cut_run(cli, project)
    before = set(Store(project).run_folders())
    parts: list[Path] = []
    for number in (1, 2):
        # Each where nobody knows of the other.
        told = cli("run", ".", "--failed", "--shard", f"{number}/2")
        assert "never ran" not in told.out + told.err and told.code in (0, 5), told
        new = [run for run in Store(project).run_folders() if run not in before]
        parts += [run.rename(project / f"part{number}-{run.name}") for run in new]
    assert len(parts) == 2 and cli("merge", *parts).code == 0


@pytest.mark.real
@pytest.mark.parametrize("compared", ["", ", {type: max-score}"], ids=["alone", "compared"])
def test_a_hook_at_the_end_is_told_of_all_of_a_run_that_is_gone_on_with(
    cli: Cli, project: Path, compared: str
) -> None:
    """It was told of what ran last: one that looks at the pass rate passed what had failed before. Of columns that
    are compared it was told what they were before."""
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['{{a}}', '{{a}} too']\nproviders: [echo]\ntests:\n"
        + "".join(
            f"  - {{vars: {{a: {a}}}, assert: [{{type: contains, value: x}}{compared}]}}\n" for a in "yzx"
        )
        + "extensions: ['file://h.py:afterAll']\n"
    )
    (project / "h.py").write_text(
        "import json\n"
        "def afterAll(context, info):\n"
        "    rows = sorted((row['testIdx'], row['promptIdx'], row['success']) for row in context['results'])\n"
        "    with open('told.jsonl', 'a') as told:\n"
        "        told.write(json.dumps([rows, len(context['suite']['tests'])]) + '\\n')\n"
    )
    cli("run", "promptfooconfig.yaml", "--trust")
    with closing(sqlite3.connect(Store(project).find("last") / "run.db")) as connection, connection:
        connection.execute(
            "UPDATE attempts SET state = 'running', outcome = NULL WHERE id = (SELECT max(id) FROM attempts)"
        )
        connection.execute("UPDATE meta SET value = replace(value, '\"finished\"', '\"running\"')")
    cli("resume", "--trust")
    first, again = map(json.loads, (project / "told.jsonl").read_text().splitlines())
    assert first == again and first[1] == 3
    passed = [place[:2] for place in first[0] if place[2]]
    assert passed == [[2, 0]] if compared else passed == [[2, 0], [2, 1]]


@pytest.mark.real
def test_a_hook_that_fails_at_the_end_of_a_run_makes_it_no_success(cli: Cli, project: Path) -> None:
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['{{a}}']\nproviders: [echo]\ntests: [{vars: {a: x}, assert: [{type: equals, value: x}]}]\n"
        "extensions: ['file://h.py:HOOK']\n"
    )
    hooked = project / "promptfooconfig.yaml"
    text = hooked.read_text()
    (project / "h.py").write_text(
        "def afterAll(context, info):\n    raise ValueError('the average is too low')\n"
        "def afterEach(context, info):\n    raise ValueError('not sent')\n"
    )
    hooked.write_text(text.replace("HOOK", "afterAll"))
    done = cli("run", "promptfooconfig.yaml", "--trust", "-o", "j.junit.xml")
    assert done.code == 1 and "afterAll: h.py:afterAll: ValueError: the average is too low" in done.err
    assert "1 case passed, but not all is there: a hook failed at its end" in done.out
    assert ElementTree.parse(project / "j.junit.xml").getroot().get("errors") == "1"
    for words in (["show"], ["resume", "--trust"], ["attach"]):
        assert cli(*words).code == 1, words
    hooked.write_text(text.replace("HOOK", "afterEach"))
    done = cli("run", "promptfooconfig.yaml", "--trust")
    assert done.code == 0 and "hook failed: afterEach: h.py:afterEach: ValueError: not sent" in done.out
    assert "(after 1 attempt)" in done.out
