"""Our engine against a real neuro-san 0.6.98 server: verdicts, transcripts, limits, judges."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.real.neuro_san_server import RECIPE, NotHere, Running, serving

pytestmark = pytest.mark.real
SUITES = Path(__file__).parent / "suites"

EXPECTED = {
    "failing": ("failed", "'NOPE' not found in 'You said: x'"),
    "gist_undecided": ("error", "the judge said neither pass nor fail alone: pass or fail, who knows"),
    "gist_wrong": ("failed", "did not match acceptance criteria: It uses the word 'Saturn'."),
    "hello": ("passed", ""),
    "hidden": ("passed", ""),
    "math_both_connections[connection=direct]": ("passed", ""),
    "math_both_connections[connection=http]": ("passed", ""),
    "math_maximal": ("passed", ""),
    "math_minimal": ("passed", ""),
    "math_secret": ("failed", "sly_data.secret is None"),
    "math_tool_raises": ("passed", ""),
    "memory": ("passed", ""),
    "model_down": ("error", "Error from echoer: Agent stopped due to exception Error code: 400"),
    "nested": ("passed", ""),
    "nobody": ("error", "the server has no network called no_such_agent"),
    "slow_case": ("error", "timed out: the case's 1 s for all its attempts are over"),
    "slow_server": ("error", "Request timeout"),
    "slow_turn": ("error", "turn 2 timed out after 1 s"),
    "struct": ("passed", ""),
    "switched_off": ("error", "the server has no network called te_off"),
    "team": ("passed", ""),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    log = tmp_path_factory.mktemp("server") / "log"
    try:
        with serving(log) as running:
            yield running
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def project(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for suite in SUITES.glob("*.hocon"):
        shutil.copy(suite, root)
    system = "You are evaluating text samples."  # by which the mock knows a judge
    (root / "tui_eval.yaml").write_text(
        "agents:\n"
        f"  neuro-san: {{type: neuro-san, url: '{server.url}'}}\n"
        f"  judging_network: {{type: neuro-san, url: '{server.url}', network: te_judge}}\n"
        f"judge: {{type: openai, base_url: '{server.model_url}', model: judge, system: {system}}}\n"
    )
    return root


def run(project: Path, *arguments: str) -> tuple[int, list[dict[str, Any]], dict[str, Any]]:
    """The exit code, the attempts and the whole results file of a run."""
    out = project / "results.json"
    command = [sys.executable, "-m", "tui_eval", "run", *arguments, "-o", str(out), "--display", "none"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert out.exists(), done.stderr
    document = json.loads(out.read_text())
    out.unlink()
    return done.returncode, document["results"], document


@pytest.fixture(scope="module")
def everything(project: Path) -> dict[str, Any]:
    code, _, document = run(project, ".", "-j", "4")
    assert code == 1
    return document


def attempt(everything: dict[str, Any], name: str) -> dict[str, Any]:
    return next(result for result in everything["results"] if called(result) == name)


def called(case: dict[str, Any]) -> str:
    """What tells it from others, also where a test has several connections."""
    return case["case_id"].rpartition("::")[2]


def kinds(result: dict[str, Any], *wanted: str) -> list[dict[str, Any]]:
    return [entry for entry in result["transcript"] if entry["kind"] in wanted]


def test_every_case_has_its_verdict(everything: dict[str, Any]) -> None:
    outcomes = {called(case): case["outcome"] for case in everything["cases"]}
    assert outcomes == {name: outcome for name, (outcome, _) in EXPECTED.items()}
    for name, (_, message) in EXPECTED.items():
        assert message in attempt(everything, name)["message"], name


def test_attempts_follow_the_ratio(everything: dict[str, Any]) -> None:
    cases = {case["name"]: case for case in everything["cases"]}
    assert (cases["hello"]["attempts"], cases["hello"]["required"], cases["hello"]["passed"]) == (3, 2, 3)
    assert (cases["slow_case"]["attempts"], cases["slow_case"]["required"]) == (2, 1)


def test_tool_calls_are_paired(everything: dict[str, Any]) -> None:
    result = attempt(everything, "math_maximal")
    call, answer = kinds(result, "tool_call", "tool_result")
    assert (call["name"], call["arguments"], answer["result"]) == (
        "calculator", {"operator": "times"}, "See sly_data['equals']",
    )  # fmt: skip
    assert call["call_id"] == answer["call_id"]
    assert [entry["text"] for entry in kinds(result, "note")] == ["half way"]
    assert result["usage"]["input_tokens"] > 0 and result["model"] == "mock-model"


def test_a_raising_tool_is_told_as_one(everything: dict[str, Any]) -> None:
    _, answer = kinds(attempt(everything, "math_tool_raises"), "tool_call", "tool_result")
    assert answer["error"] == "Error: calc exploded"


def test_minimal_as_the_file_says_shows_only_the_answer(everything: dict[str, Any]) -> None:
    result = attempt(everything, "math_minimal")
    assert [entry["kind"] for entry in result["transcript"]] == ["user", "assistant"]


def test_hand_offs_of_a_team(everything: dict[str, Any]) -> None:
    result = attempt(everything, "team")
    assert [(e["name"], e["arguments"]) for e in kinds(result, "hand_off")] == [
        ("boss.geographer", {"city": "Liverpool"}),
        ("boss.poet", {"topic": "rain"}),
        ("boss.poet-02", {"topic": "sun"}),
    ]
    call, answer = kinds(result, "tool_call", "tool_result")
    assert (call["agent"], call["name"]) == (answer["agent"], answer["name"]) == ("boss.geographer", "lookup")
    assert answer["result"] == {"city": "Liverpool", "population": 498042, "tags": ["port", "north-west"]}
    said = {entry["agent"]: entry["text"] for entry in kinds(result, "assistant")}
    assert said["boss.poet-02"] == "Poem about sun"
    assert said[""].startswith("Team says: Geographer:")
    assert result["transcript"][-1]["text"] == result["details"]["response_text"]


def test_a_structure_leaves_its_remainder_as_text(everything: dict[str, Any]) -> None:
    result = attempt(everything, "struct")
    assert result["details"]["response_text"] == "Here it is:"
    assert [entry["text"] for entry in kinds(result, "assistant")][-1] == "Here it is:"


def test_direct_without_the_library_says_so(everything: dict[str, Any]) -> None:
    notes = kinds(attempt(everything, "math_both_connections[connection=direct]"), "note")
    assert "used over HTTP" in notes[0]["text"]


def test_direct_with_the_library(project: Path, server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project / "library"
    folder.mkdir()
    shutil.copy(SUITES / "math_both_connections.hocon", folder)
    for name in ("team", "nobody"):
        text = (SUITES / f"{name}.hocon").read_text().replace('"http"', '"direct"')
        (folder / f"{name}.hocon").write_text(text)
    (folder / "tui_eval.yaml").write_text(
        "agents:\n"
        f"  neuro-san: {{type: neuro-san, url: '{server.url}', python: '{server.python}', "
        f"manifest: '{RECIPE}/networks/manifest.hocon', tool_path: '{RECIPE}/coded'}}\n"
    )
    monkeypatch.setenv("OPENAI_API_BASE", server.model_url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mock")
    code, results, _ = run(folder, ".", "--trust")
    assert code == 1
    found = {called(result): result for result in results}
    assert {name: result["outcome"] for name, result in found.items()} == {
        "math_both_connections[connection=direct]": "passed",
        "math_both_connections[connection=http]": "passed",
        "nobody": "error",
        "team": "passed",
    }
    assert [entry["name"] for entry in kinds(found["team"], "hand_off")] == [
        "boss.geographer", "boss.poet", "boss.poet-02",
    ]  # fmt: skip
    direct = kinds(found["math_both_connections[connection=direct]"], "note")
    assert not [note for note in direct if "over HTTP" in note["text"]]
    assert "no_such_agent" in found["nobody"]["message"]


def test_judged_by_a_network(project: Path) -> None:
    code, results, _ = run(project, "hello.hocon", "gist_wrong.hocon", "--judge", "judging_network")
    assert code == 1
    assert {result["name"]: result["outcome"] for result in results} == {
        "hello": "passed", "gist_wrong": "failed",
    }  # fmt: skip


def test_reference_sends_minimal(project: Path) -> None:
    code, results, _ = run(project, "team.hocon", "memory.hocon", "--compat", "reference")
    assert code == 0
    assert not [entry for result in results for entry in kinds(result, "hand_off", "tool_call")]


def test_no_server_is_an_error_that_says_where(project: Path) -> None:
    folder = project / "nowhere"
    folder.mkdir()
    shutil.copy(SUITES / "nested.hocon", folder)
    (folder / "tui_eval.yaml").write_text(
        "agents:\n  neuro-san: {type: neuro-san, url: 'http://127.0.0.1:9', retries: 0}\n"
    )
    code, results, _ = run(folder, ".")
    assert code == 1
    assert results[0]["outcome"] == "error" and "127.0.0.1:9" in results[0]["message"]
