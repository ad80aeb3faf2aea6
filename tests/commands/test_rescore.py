"""`tui-eval rescore`: answers judged anew, agents left alone, masked text undecided."""

from __future__ import annotations

from pathlib import Path

from tests.commands.conftest import Cli
from tests.servers import OpenAIServer
from tui_eval.assertions.judge_input import Judgement
from tui_eval.engine.attempt.attempt_state import keep_masked
from tui_eval.guard.secrets import Masker
from tui_eval.model import Attempt, Reply, Verdict
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
        again = cli("rescore", "last", "-o", "r.json")
        assert again.code == 1 and len(server.requests) == asked
        runs = cli("runs", "--json").json
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
            assert told.code == 5 and told.out == "" and len(told.err.strip().splitlines()) == 1
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


def test_masked_text_keeps_the_verdict_of_then() -> None:
    masker = Masker(["s3cr3t-value"])
    old = Verdict("should_contain", True, expected="•••", reason="there", score=1.0, turn=1)
    recorded = Attempt("c", 1, "passed", message="passed", score=1.0, verdicts=[old],
                       replies=[Reply(turn=1, text="it is •••")])  # fmt: skip
    missing = Verdict("should_contain", False, expected="s3cr3t-value", reason="not there", turn=1)
    judgement = Judgement([missing], "failed", 0.0, message="not there")
    keep_masked(judgement, recorded, masker)
    assert (judgement.outcome, judgement.score, judgement.message) == ("passed", 1.0, "passed")
    assert judgement.verdicts[0].reason == "there (kept: the record is masked here)"
    new = Verdict("should_not_contain", True, expected="s3cr3t", turn=1, score=1.0)
    judgement = Judgement([new], "passed", 1.0)
    keep_masked(judgement, recorded, masker)
    assert judgement.outcome == "error" and "masked here; run the case" in judgement.message
    elsewhere = Verdict("should_contain", False, expected="x", turn=2, reason="r")
    judgement = Judgement([elsewhere], "failed", 0.0, message="r")
    keep_masked(judgement, recorded, masker)
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
