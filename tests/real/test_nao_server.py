"""Our engine against a real nao-core 0.3.29 backend: the verdicts of `nao test`, streams, sign-in."""

from __future__ import annotations

import asyncio
import http.cookiejar
import json
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.real.nao_server import EMAIL, MODEL, OTHER, PASSWORD, Running, serving
from tests.real.processes import NotHere
from tests.support.agents import agent, context, of, talk
from tui_eval.agents import Request
from tui_eval.agents.nao import nao_auth
from tui_eval.events import TextDelta, ToolCall, ToolResult

pytestmark = pytest.mark.real

# What the documented mode says otherwise than `nao test`, and why.
MENDED = {
    "codes": ("failed", "values differ"),  # texts are texts
    "off_by_one": ("failed", "values differ (within nao's tolerance)"),  # whole numbers are exact
    "prompt_only": ("passed", "nothing asserted"),
    "small_numbers": ("failed", "values differ"),  # no rounding before the tolerance
    "days": ("passed", "match (row order differs)"),  # the SQL has an ORDER BY
}


ERRING = frozenset({"bad_reference", "model_down", "writes"})
"""What is an error by what it asks for."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    try:
        with serving(tmp_path_factory.mktemp("nao")) as running:
            yield running
    except NotHere as reason:
        pytest.skip(str(reason))


def ours(server: Running, *arguments: str, **environment: str) -> dict[str, Any]:
    """The results file of a run of the project's tests."""
    out = server.project.parent / "ours.json"
    command = [sys.executable, "-m", "tui_eval", "run", *arguments, "-o", str(out), "--display", "none"]
    done = subprocess.run(
        command, cwd=server.project, capture_output=True, text=True, env=server.environment(**environment)
    )
    assert out.exists(), done.stderr
    document = json.loads(out.read_text())
    out.unlink()
    return document


@pytest.fixture(scope="module")
def theirs(server: Running) -> dict[str, Any]:
    """The results of `nao test`, by name. Its server gives up on its first query where the machine is too busy to start
    what answers it: then it is asked again."""
    results: dict[str, Any] = {}
    for _ in range(3):
        outputs = server.project / "tests" / "outputs"
        shutil.rmtree(outputs, ignore_errors=True)
        done = subprocess.run(
            [server.nao, "test"], cwd=server.project, capture_output=True, text=True, env=server.environment()
        )
        files = sorted(outputs.glob("results_*.json"))
        assert files, done.stdout + done.stderr
        results = {result["name"]: result for result in json.loads(files[0].read_text())["results"]}
        if {name for name, result in results.items() if result["message"] == "error"} <= ERRING:
            break
    return results


def test_reference_verdicts_are_those_of_nao_test(server: Running, theirs: dict[str, Any]) -> None:
    results = ours(server, "tests", "--compat", "reference")["results"]
    mine = {result["name"]: result for result in results}
    assert mine.keys() == theirs.keys() and len(mine) == 25
    for name, expected in theirs.items():
        got = mine[name]
        assert got["passed"] == expected["passed"], name
        if expected["message"] == "error":
            assert got["outcome"] == "error" and got["error"], name
            continue
        assert got["message"] == expected["message"], name
        assert (got["tokens"], got["tool_call_count"]) == (expected["tokens"], expected["tool_call_count"])
        assert got["cost"] == pytest.approx(expected["cost"], abs=1e-9)
        assert got["model"] == expected["model"] == MODEL
        assert got["details"]["actual_data"] == expected["details"]["actual_data"], name
    assert sum(result["passed"] for result in theirs.values()) > 8


def test_documented_verdicts_differ_where_nao_is_mended(server: Running, theirs: dict[str, Any]) -> None:
    results = ours(server, "tests")["results"]
    for result in results:
        name, expected = result["name"], theirs[result["name"]]
        if name in MENDED:
            assert (result["outcome"], result["message"]) == MENDED[name], name
        else:
            assert result["passed"] == expected["passed"], (name, result["message"])


def test_errors_say_what_happened(server: Running) -> None:
    results = ours(server, "tests", "-s", "errors")["results"]
    said = {result["name"]: result["message"] for result in results}
    assert "no_such_table" in said["bad_reference"] and "the model is broken" in said["model_down"]
    assert said["writes"]
    failed = next(result for result in results if result["name"] == "agents_sql")
    kinds = [
        (entry["kind"], entry["error"]) for entry in failed["transcript"] if entry["kind"] == "tool_result"
    ]
    assert kinds and "does not say why" in kinds[0][1]


def test_several_models_are_columns(server: Running) -> None:
    document = ours(server, "tests", "-s", "total", "-m", MODEL, "-m", OTHER, "--attempts", "2")
    costs = {(result["model"], result["attempt"]): result["cost"] for result in document["results"]}
    assert set(costs) == {(MODEL, 1), (MODEL, 2), (OTHER, 1), (OTHER, 2)}
    assert costs[MODEL, 1] == pytest.approx(24 * 2e-6 + 14 * 8e-6) and not costs[OTHER, 1]
    assert {row["model"]: row["pass_at_1"] for row in document["by_model"]} == {MODEL: 1.0, OTHER: 1.0}


def test_a_live_answer_becomes_rows_by_a_turn_of_its_own(server: Running) -> None:
    folder = server.project.parent / "live"
    (folder / "tests").mkdir(parents=True)
    rows = '{"data": [{"total": 145.0}]}'
    (folder / "tests" / "live.yml").write_text(
        f"prompt: |\n  Please. !!sql SELECT 145 AS total !!say {rows}\nsql: SELECT 145.0::DOUBLE AS total\n"
    )
    (folder / "tui_eval.yaml").write_text(
        f"agents:\n  nao: {{type: nao, url: '{server.url}', live: true}}\n"
        "databases:\n  shop: {type: duckdb, path: ../project/shop.duckdb}\n"
        "suites: [{path: '*', agent: nao}]\n"
    )
    config = ("--config", str(folder / "tui_eval.yaml"), "--trust")
    result = ours(server, str(folder / "tests"), "-m", MODEL, *config)["results"][0]
    assert (result["outcome"], result["message"]) == ("passed", "match"), result["message"]
    users = [entry["text"] for entry in result["transcript"] if entry["kind"] == "user"]
    assert len(users) == 2 and "Format the data with these columns: total" in users[1]
    assert "execute_sql" in [entry["name"] for entry in result["transcript"]]


async def test_live_stream_and_follow_ups(server: Running) -> None:
    it = agent("nao", url=server.url, email=EMAIL, password=PASSWORD, live=True)
    query = "SELECT SUM(amount) AS total FROM orders"
    events, replies = await talk(it, f"!!sql {query}", "!!say And so on.", model=MODEL)
    assert of(events, ToolCall)[0].arguments["sql_query"] == query
    assert of(events, ToolResult)[0].result["columns"] == ["total"]
    assert replies[0].text == "As the table shows." and replies[0].finish_reason == "stop"
    assert "".join(event.text for event in of(events, TextDelta)).startswith("As the table shows.")
    asked = server.model.requests[-1].body["messages"]
    assert any(query in json.dumps(message) for message in asked)  # the chat goes on
    await it.close()


async def test_a_cancelled_live_answer_is_stopped(server: Running) -> None:
    it = agent("nao", url=server.url, email=EMAIL, password=PASSWORD, live=True)
    session = await it.open(context(model=MODEL))
    stream = session.send(Request(1, "!!sql SELECT 1 AS n !!sleep 60"))
    async for event in stream:
        if isinstance(event, ToolResult):
            break
    server.model.disconnected.clear()

    async def rest() -> None:
        async for _ in stream:
            pass

    waiting = asyncio.ensure_future(rest())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    # The backend does not notice that we left; because it was told, it leaves its model too.
    assert await asyncio.to_thread(server.model.disconnected.wait, 10)
    await it.close()


async def test_sign_in_by_browser_and_stored(
    server: Running, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(nao_auth, "_approved", {})
    for name in ("NAO_USERNAME", "NAO_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_CONNECTION", "1 2 3 4")

    def approve(line: str) -> None:
        address = next(word for word in line.split() if word.startswith("http"))
        assert urllib.request.urlopen(address, timeout=10).status == 200
        asked = parse_qs(urlsplit(address).query)
        threading.Thread(target=visit, args=(asked["port"][0], asked["state"][0]), daemon=True).start()

    def visit(port: str, state: str) -> None:
        """What the page does when a signed-in person approves."""
        jar = http.cookiejar.CookieJar()
        person = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

        def post(path: str, **body: str) -> dict[str, Any]:
            headers = {"Content-Type": "application/json", "Origin": server.url}
            request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
            return json.loads(person.open(request, timeout=10).read())

        post("/api/auth/sign-in/email", email=EMAIL, password=PASSWORD)
        code = post("/api/cli-auth/authorize")["code"]
        person.open(f"http://127.0.0.1:{port}/callback?code={code}&state={state}", timeout=10).close()

    it = agent("nao", url=server.url)
    await it.prepare(approve)
    _, replies = await talk(it, "!!say Hello.", model=MODEL)
    assert replies[0].text == "Hello."
    # What nao's own command line stored is read, and left as it is.
    stored = tmp_path / ".nao" / "auth.json"
    shutil.copytree(server.home / ".nao", stored.parent, ignore=shutil.ignore_patterns("native"))
    before = stored.read_bytes()
    monkeypatch.setattr(nao_auth, "_approved", {})
    other = agent("nao", url=server.url)
    _, replies = await talk(other, "!!say Hello again.", model=MODEL)
    assert replies[0].text == "Hello again." and stored.read_bytes() == before
    await it.close()
    await other.close()


def test_a_wrong_password_is_an_error_of_the_attempt(server: Running) -> None:
    result = ours(server, "tests", "-s", "total", NAO_PASSWORD="wrong-password")["results"][0]
    assert result["outcome"] == "error" and "Invalid email or password" in result["error"]
