"""Several models: what is red, what `--failed` runs and what is printed go by column, whatever the order of -m."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Cli
from tests.servers import NeuroSanServer, OpenAIServer, Planned
from tests.servers.base import Seen
from tui_eval.reports.web_server import _page
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store

NAMES = ("alpha", "beta", "gamma", "delta")
WRONG = ("beta", "delta")


class TwoModels(OpenAIServer):
    """`good` repeats what it is told; `sloppy` does not for two of the cases."""

    mended = False

    def default(self, seen: Seen) -> Planned:
        body: Any = seen.body
        said = body["messages"][-1]["content"]
        wrong = body["model"] == "sloppy" and not self.mended and said in WRONG
        return Planned(text="no idea" if wrong else said)


@pytest.fixture
def server() -> Iterator[TwoModels]:
    with TwoModels() as running:
        yield running


@pytest.fixture
def two_models(server: TwoModels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of two folders and an agent with two models."""
    for folder, names in (("one", NAMES[:2]), ("two", NAMES[2:])):
        cases = "".join(
            f"  - {{name: {n}, input: {n}, expected: {{should_contain: [{n}]}}}}\n" for n in names
        )
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{cases}", "utf-8")
    config = f"agents:\n  helper: {{type: openai, base_url: '{server.base}', model: good}}\n"
    (tmp_path / "tui_eval.yaml").write_text(config, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_agent_that_is_named_twice_is_asked_once(cli: Cli, two_models: Path, server: TwoModels) -> None:
    told = cli("run", "one", "--agent", "helper", "--agent", "helper", "--display", "json")
    assert sorted(ran(told.out)) == [("alpha", "good", "passed"), ("beta", "good", "passed")]
    assert len(server.requests) == 2


@pytest.mark.parametrize("option", ["--failed", "--changed"])
def test_a_model_that_is_named_for_what_failed_stays_a_column(
    cli: Cli, two_models: Path, option: str
) -> None:
    """It was none any more once the suite's own model ran again: `--failed` left its red out, and said all passed."""
    suite = two_models / "one/suite.yaml"
    suite.write_text(suite.read_text().replace("[beta]", "[zeta]"))
    cli("run", "one")
    assert ("beta", "sloppy", "failed") in ran(
        cli("run", "one", option, "-m", "sloppy", "--display", "json").out
    )
    cli("run", "one")
    again = cli("run", "one", "--failed", "--display", "json")
    assert sorted(ran(again.out)) == [("beta", "good", "failed"), ("beta", "sloppy", "failed")]


@pytest.mark.parametrize(
    "slip", ["base_ulr: 'http://127.0.0.1:9/v1'", "max_steps: 0", "system: 3", "stream: true, stream: false"]
)
def test_an_entry_with_a_slip_asks_nobody(
    cli: Cli, two_models: Path, server: TwoModels, monkeypatch: pytest.MonkeyPatch, slip: str
) -> None:
    """Without the key that was meant it is another agent: `base_ulr` asked the provider's own server, for money."""
    config = f"agents:\n  helper: {{type: openai, model: good, {slip}}}\n  rest: {{type: echo}}\n"
    monkeypatch.setenv("OPENAI_BASE_URL", server.base)
    (two_models / "tui_eval.yaml").write_text(config.replace("model:", f"base_url: '{server.base}', model:"))
    told = cli("run", "one", "--display", "json")
    key = slip.partition(":")[0]
    assert told.code == 4 and {outcome for _, _, outcome in ran(told.out)} == {"error"}
    assert f"tui_eval.yaml:2: agents.helper.{key}: " in told.out and not server.requests
    assert cli("run", "one", "--agent", "helper").code == 4 and not server.requests


@pytest.mark.parametrize(
    "wrong",
    [
        "suites: [{path: '**', agnet: rest}]",
        "suites: [{path: '**', model: 3}]",
        "providers: {x: 3}\nsuites: [{path: '**', compta: reference}]",
        "suites: [{path: '**', comparison: {rtl: 1}}]",
        "suites: [{path: '**', comparison: {rtol: much}}]",
        "suites: [{path: '**', model: good, model: sloppy}]",
    ],
)
@pytest.mark.parametrize("typed", [[], ["--agent", "helper"]], ids=["", "typed"])
def test_a_rule_with_a_slip_has_its_cases_ask_nobody(
    cli: Cli, two_models: Path, server: TwoModels, wrong: str, typed: list[str]
) -> None:
    """Whoever is asked, it says how the answers are judged: by other rules they could be green."""
    with (two_models / "tui_eval.yaml").open("a") as file:
        file.write(f"  rest: {{type: echo}}\n{wrong}\n")
    told = cli("run", "one", "--display", "json", *typed)
    assert told.code == 4 and {outcome for _, _, outcome in ran(told.out)} == {"error"}, told
    assert not server.requests and "tui_eval.yaml:" in told.out


def test_an_agent_that_stands_twice_is_asked_in_neither_way(
    cli: Cli, two_models: Path, server: TwoModels
) -> None:
    """The last one was asked, which may be the dear one."""
    with (two_models / "tui_eval.yaml").open("a") as file:
        file.write(f"  helper: {{type: openai, base_url: '{server.base}', model: sloppy}}\n")
    told = cli("run", "one", "--display", "json")
    assert told.code == 4 and {outcome for _, _, outcome in ran(told.out)} == {"error"}
    assert "tui_eval.yaml:3: agents.helper: given twice, on lines 2 and 3" in told.out and not server.requests
    assert cli("run", "one", "--agent", "helper").code == 4 and not server.requests


@pytest.mark.parametrize(
    "wrong",
    [
        "runs: {max_cost: 0.01}",
        "sutes: [{path: '**', agent: rest}]",
        "x: [1",
        "\tx: 1",
        "run: {max_cost: 0.01, max_cost: 100}",
        "providers: {x: helper, x: helper}",
        "agents:\n  rest: {type: echo}",
    ],
)
def test_a_run_does_not_begin_without_what_may_limit_it(
    cli: Cli, two_models: Path, server: TwoModels, wrong: str
) -> None:
    """A limit under a misspelt key was none at all, in a file that is no YAML as well."""
    with (two_models / "tui_eval.yaml").open("a") as file:
        file.write(wrong + "\n")
    told = cli("run", "one", "--agent", "openai:gpt-4.1")
    assert (
        told.code == 4
        and told.out == ""
        and told.err.startswith("tui_eval.yaml:")
        and told.err.count("\n") == 1
    )
    assert not server.requests and cli("runs", "--json").json == []


@pytest.mark.parametrize("slip", ["agnet: rest", "agent: [rest]", "modle: big"])
def test_a_suite_with_a_slip_in_who_is_asked_asks_nobody(
    cli: Cli, two_models: Path, server: TwoModels, slip: str
) -> None:
    file = two_models / "one" / "suite.yaml"
    file.write_text(file.read_text("utf-8").replace("agent: helper", slip), "utf-8")
    config = (two_models / "tui_eval.yaml").read_text("utf-8").replace("helper:", "my_agent:")
    (two_models / "tui_eval.yaml").write_text(config, "utf-8")
    told = cli("run", "one", "--display", "json")
    assert told.code == 4 and {outcome for _, _, outcome in ran(told.out)} == {"error"}, told
    assert not server.requests


def ran(text: str) -> list[tuple[str, str, str]]:
    """Case, model and outcome of each attempt."""
    rows = [json.loads(line) for line in text.splitlines()]
    return sorted((row["case_id"].partition("::")[2], row["model"], row["outcome"]) for row in rows)


@pytest.mark.parametrize("order", [("sloppy", "good"), ("good", "sloppy")])
def test_failed_runs_what_did_not_pass_where_it_did_not_pass(
    cli: Cli, two_models: Path, order: tuple[str, str]
) -> None:
    both = [word for model in order for word in ("-m", model)]
    assert len(ran(cli("run", ".", *both, "--display", "json").out)) == 8
    failed = [("beta", "sloppy", "failed"), ("delta", "sloppy", "failed")]
    assert ran(cli("run", ".", "--failed", "--display", "json").out) == failed
    assert ran(cli("run", ".", "--failed", *both, "--display", "json").out) == failed
    assert ran(cli("run", "one", "--failed", "--display", "json").out) == failed[:1]


def test_a_pass_of_another_model_hides_no_failure(cli: Cli, two_models: Path, server: TwoModels) -> None:
    cli("run", ".", "-m", "sloppy")
    assert cli("run", ".").code == 0  # its own model, `good`, in all folders
    assert len(ran(cli("run", ".", "--failed", "--display", "json").out)) == 2
    server.mended = True
    assert cli("run", "one", "--failed").code == 0
    left = ran(cli("run", ".", "--failed", "--display", "json").out)
    assert left == [("delta", "sloppy", "passed")]
    nothing = cli("run", ".", "--failed")
    assert nothing.code == 5 and "nothing failed" in nothing.err


def test_a_model_that_is_named_with_failed_is_asked_what_failed_elsewhere(cli: Cli, two_models: Path) -> None:
    cli("run", ".", "-m", "sloppy")
    tried = ran(cli("run", ".", "--failed", "-m", "good", "--display", "json").out)
    assert tried == [("beta", "good", "passed"), ("delta", "good", "passed")]
    assert cli("run", ".", "--failed", "-m", "good").code == 5
    assert len(ran(cli("run", ".", "--failed", "--display", "json").out)) == 2


def test_the_command_that_runs_it_again_names_the_column_it_failed_in(cli: Cli, two_models: Path) -> None:
    def again(text: str) -> list[str]:
        return [line.partition("again: tui-eval ")[2] for line in text.splitlines() if "again: " in line]

    first = again(cli("run", ".", "-m", "good", "-m", "sloppy").out)
    assert [line.endswith("-m sloppy") for line in first] == [True, True]
    assert all(" good" not in line for line in first)
    assert again(cli("show").out) == first
    assert again(cli("run", ".", "--failed").out) == [
        f"{line[:-10]} --agent helper -m sloppy" for line in first
    ]
    assert ran(cli(*shlex.split(first[0]), "--display", "json").out) == [("beta", "sloppy", "failed")]


def test_every_report_names_the_model_of_each_column(cli: Cli, two_models: Path) -> None:
    cli("run", ".", "-m", "good", "-m", "sloppy")
    texts: dict[str, str] = {}
    for name in ("r.md", "r.junit.xml", "r.html", "r.csv", "r.json", "r.jsonl"):
        assert cli("export", "-o", name).code == 0
        texts[name] = Path(name).read_text("utf-8")
    assert [name for name, text in texts.items() if "sloppy" not in text or "good" not in text] == []
    rows = [line for line in texts["r.md"].splitlines() if line.startswith("| beta")]
    assert (
        len(rows) == 2
        and sum("sloppy" in row for row in rows) == 1
        and sum("good" in row for row in rows) == 1
    )
    assert (
        len({line for line in texts["r.junit.xml"].splitlines() if "<testcase" in line and "beta" in line})
        == 2
    )


def test_last_is_a_run_and_no_step(cli: Cli, two_models: Path) -> None:
    cli("run", ".")
    (folder,) = Store(two_models).run_folders()
    assert Store(two_models).find("last") == folder


PROMPTS = """\
prompts: [{raw: "tell me of {{q}}", label: telling}, {raw: "nothing", label: nothing}]
providers: [echo]
tests:
  - {vars: {q: cats}, assert: [{type: contains, value: cats}]}
"""


@pytest.mark.parametrize("last", ["telling", "nothing"])
def test_a_prompt_that_fails_is_red_whichever_ran_last(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    """A prompt of promptfoo is a column: one that passes later hides no other."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "promptfooconfig.yaml").write_text(PROMPTS, "utf-8")
    assert cli("run", ".").code == 1
    assert cli("run", ".", "--filter-prompts", f"^{last}$").code == (last == "nothing")
    rows = [json.loads(line) for line in cli("run", ".", "--failed", "--display", "json").out.splitlines()]
    assert [("nothing" in row["case_id"], row["outcome"]) for row in rows] == [(True, "failed")]


@pytest.mark.parametrize("connections", [["http", "https"], ["https", "http"]])
def test_a_connection_that_fails_is_red_whichever_ran_last(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with NeuroSanServer() as server:
        config = f"agents:\n  net: {{type: neuro-san, url: '{server.url}', retries: 0}}\n"
        (tmp_path / "tui_eval.yaml").write_text(config, "utf-8")
        suite = (
            f"agent = net\nconnections = {json.dumps(connections)}\n"
            'interactions = [{text = "hello", response { text { keywords = ["hello"] } } }]\n'
        )
        (tmp_path / "net.hocon").write_text(suite, "utf-8")
        assert cli("run", "net.hocon").code == 1
        (passing,) = [c for c in cli("list", "--json", ".").json if "connection=http]" in c["case_id"]]
        assert cli("run", ".", "-s", passing["case_id"]).code == 0
        again = cli("run", ".", "--failed", "--display", "json").out
    rows = [json.loads(line) for line in again.splitlines()]
    assert [(row["case_id"].rpartition("::")[2], row["outcome"]) for row in rows] == [
        ("net[connection=https]", "error")
    ]


def test_a_column_whose_agent_is_gone_is_said_to_be_and_nobody_else_is_asked(
    cli: Cli, two_models: Path, server: TwoModels
) -> None:
    """Its failure would be hidden by the answer of the suite's own agent."""
    config = (two_models / "tui_eval.yaml").read_text("utf-8")
    other = config + f"  other: {{type: openai, base_url: '{server.base}', model: sloppy}}\n"
    (two_models / "tui_eval.yaml").write_text(other, "utf-8")
    cli("run", ".", "--agent", "other")
    (two_models / "tui_eval.yaml").write_text(config, "utf-8")
    asked = len(server.requests)
    told = cli("run", ".", "--failed", "--display", "json")
    assert told.code == 1 and ran(told.out) == [("beta", "sloppy", "error"), ("delta", "sloppy", "error")]
    assert all("no agent 'other' any more" in json.loads(line)["message"] for line in told.out.splitlines())
    assert len(server.requests) == asked
    (two_models / "tui_eval.yaml").write_text(other, "utf-8")
    server.mended = True
    assert cli("run", ".", "--failed").code == 0


@pytest.mark.parametrize("order", [("sloppy", "good"), ("good", "sloppy")])
def test_the_web_page_and_the_html_report_tell_columns_apart(
    cli: Cli, two_models: Path, order: tuple[str, str]
) -> None:
    cli("run", ".", *(word for model in order for word in ("-m", model)))
    assert cli("export", "-o", "r.html").code == 0
    for page in (Path("r.html").read_text("utf-8"), _page(two_models, Store(two_models).find().name)):
        beta = [part for part in page.split('<details class="case"')[1:] if "beta" in part]
        assert sorted(("sloppy" in part, "failed" in part.partition(">")[0]) for part in beta) == [
            (False, False), (True, True),
        ]  # fmt: skip


def test_a_model_with_or_without_its_provider_is_one_column(
    cli: Cli, two_models: Path, server: TwoModels
) -> None:
    """`-m openai:sloppy` and `-m sloppy` ask the same system: once, under one name."""
    assert ran(cli("run", "one", "-m", "openai:sloppy", "-m", "sloppy", "--display", "json").out) == [
        ("alpha", "sloppy", "passed"),
        ("beta", "sloppy", "failed"),
    ]
    assert len(server.requests) == 2
    told = cli("run", "one", "-m", "openai:chat:sloppy", "-m", "openai:good").out
    again = [shlex.split(line.partition("again: ")[2]) for line in told.splitlines() if "again: " in line]
    assert [words[words.index("-m") :].count("-m") for words in again] == [1]
    assert "sloppy" in again[0][-1] and "good" not in " ".join(again[0])
    server.mended = True
    assert cli("run", "one", "-m", "sloppy").code == 0
    assert cli("run", ".", "--failed").code == 5  # nothing is red under the other name
    with closing(RunReader(Store(two_models).find("last"))) as reader:
        assert {row.model for row in reader.cases()} == {"sloppy"}


def test_a_model_that_a_variable_names_is_asked_priced_and_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suite = "agent: bot\ntest_cases: [{name: one, input: hi, expected: {should_contain: [never]}}]\n"
    Path("suite.yaml").write_text(suite)
    with OpenAIServer() as server:
        entry = f"{{type: openai, base_url: '{server.base}', model: '${{MODEL:-small}}'}}"
        prices = "{small: {input: 1000, output: 1000}, big: {input: 5000, output: 5000}}"
        Path("tui_eval.yaml").write_text(f"agents: {{bot: {entry}}}\nprices: {prices}\n")
        for model in ("small", "big"):
            cli("run", ".", "--trust", "-o", f"{model}.json")
            monkeypatch.setenv("MODEL", "big")
        asked = [one.body["model"] for one in server.requests]
        found = [json.loads(Path(f"{one}.json").read_text())["results"][0] for one in ("small", "big")]
        assert asked == [one["model"] for one in found] == ["small", "big"]
        assert found[1]["cost"] == pytest.approx(found[0]["cost"] * 5) and found[0]["cost"] > 0
        # A judge's, too.
        judged = f"judge: {entry}\n" + Path("tui_eval.yaml").read_text()
        Path("graded").mkdir()
        Path("graded/tui_eval.yaml").write_text(judged)
        Path("graded/promptfooconfig.yaml").write_text(
            "prompts: [hi]\nproviders: [echo]\ntests: [{assert: [{type: llm-rubric, value: fine}]}]\n"
        )
        cli("run", "graded", "--trust", "-o", "graded.json")
        assert server.requests.pop().body["model"] == "big"
        summary = json.loads(Path("graded.json").read_text())["summary"]
        assert summary["total_judge_cost"] > 0
        # What stands there is the same column, also in what is run again.
        cli("run", ".", "--failed", "--trust")
        assert server.requests[-1].body["model"] == "big" and len(server.requests) == 3
        # Without trust no variable is read, and nothing is sent.
        refused = cli("run", ".")
        assert "needs trust: read the environment variable MODEL" in refused.out and len(server.requests) == 3
    Path("tui_eval.yaml").write_text("suites: [{path: '**', model: '${MODEL}'}]\n")
    assert "suites.0.model: variables are not filled in here" in cli("check", ".").out


OWN_PROVIDER = """\
prompts: ["Say {{word}}"]
providers: [{id: echo, label: left}, {id: echo, label: right}]
tests:
  - {description: plain, vars: {word: hello}, assert: [{type: contains, value: hello, metric: m}]}
  - {description: own, vars: {word: bye}, provider: echo, assert: [{type: contains, value: hello, metric: m}]}
"""


def columns_in(path: Path) -> tuple[list[str], list[tuple[str, float]]]:
    """The names of a results file's cases in its table, and its columns with their scores."""
    results = json.loads(path.read_text("utf-8"))
    return [row["name"] for row in results["results"]], [
        (row["agent"], row["score"]) for row in results["metrics"]
    ]


def test_an_agent_that_is_named_is_one_column_also_where_a_test_has_it_of_its_own(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That test stood in the column that the agent had replaced."""
    (tmp_path / "promptfooconfig.yaml").write_text(OWN_PROVIDER, "utf-8")
    monkeypatch.chdir(tmp_path)
    told = cli("run", ".", "-o", "own.json")
    assert "own [left]" in told.out and "own [right]" in told.out
    assert columns_in(tmp_path / "own.json")[1] == [("left", 1.0), ("right", 1.0)]
    told = cli("run", ".", "--agent", "echo", "-o", "named.json")
    assert "left" not in told.out.replace("::own::left", "")
    one_column = [("echo", 1.0)]
    assert columns_in(tmp_path / "named.json")[1] == one_column
    # Judged again, and run again, it stays there.
    cli("rescore", "-o", "judged.json")
    assert columns_in(tmp_path / "judged.json")[1] == one_column
    told = cli("run", ".", "--failed", "-o", "failed.json")
    assert columns_in(tmp_path / "failed.json")[1] == [("echo", 0.0), ("right", 0.0)]
    assert "own [left]" not in told.out and "own [right]" in told.out


def test_no_two_lines_are_alike_where_a_test_has_its_own_provider_in_several_columns(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(OWN_PROVIDER, "utf-8")
    monkeypatch.chdir(tmp_path)
    wanted = ["own · left  [echo]", "own · right  [echo]", "plain  [left]", "plain  [right]"]
    assert sorted(line.strip() for line in cli("list", ".").out.splitlines() if "[" in line) == wanted
    told = cli("run", ".").err
    assert "own · left [echo]" in told and "own · right [echo]" in told and "plain [left]" in told
