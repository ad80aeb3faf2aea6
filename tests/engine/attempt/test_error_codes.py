"""Every way in which an attempt can err: its code and data, written where it happens, and the short form of lists.

A code without a row here or among the assertions' (`tests/assertions/test_evidence_codes.py`) fails, and so does a
place that raises without naming one.
"""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path
from typing import Any

import pytest

import tui_eval
from tests.assertions.test_evidence_codes import CODES
from tests.servers.base import Planned, Seen
from tests.servers.json_endpoint import JsonServer
from tui_eval import causes
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt, Evidence
from tui_eval.store.reader import RunReader

SOURCES = Path(tui_eval.__file__).parent
RAISED = ("AgentError", "AttemptFailed", "ScriptError")
PLANS = {
    "/429": Planned(status=429, body={"error": "slow down"}),
    "/quota": Planned(
        status=429, body={"error": {"message": "no credit left", "code": "insufficient_quota"}}
    ),
    "/wait": Planned(status=429, body={"error": "slow down"}, headers={"Retry-After": "3600"}),
    "/503": Planned(status=503, body={"error": "overloaded"}),
    "/401": Planned(status=401, body={"error": "bad key"}),
    "/404": Planned(status=404, body={"error": "no such path"}),
    "/empty": Planned(text=""),
    "/page": Planned(raw=b"<!doctype html><title>Sign in</title>", headers={"Content-Type": "text/html"}),
    "/broken": Planned(raw=b'{"reply": "half', headers={"Content-Type": "application/json"}),
    "/lacks": Planned(body={"id": 7}),
    "/says": Planned(body={"error": "the model is gone"}),
    "/again": Planned(status=503),
    "/slow": Planned(text="late", delay=20.0),
}
RETRIES = {"/wait": 1, "/again": 9}
SERVED = {
    "/429": ("rate-limited", "429: slow down", "429: slow down"),
    "/quota": ("quota-spent", "429: no credit left", "429: no credit left"),
    "/wait": (
        "asks-to-wait",
        "429: the server asks to wait 3,600 s, and",
        "429: the server asks to wait N s,",
    ),
    "/503": ("server-failed", "503: overloaded", "503: overloaded"),
    "/401": ("unauthorized", "401: bad key", "401: bad key"),
    "/404": ("http-status", "404: no such path", "404: no such path"),
    "/empty": ("empty-answer", "empty answer", "empty answer"),
    "/page": ("page-instead", "a page, no answer: Sign in", "a page, no answer: Sign in"),
    "/broken": ("unreadable", 'unreadable: no JSON: {"reply": "half', "unreadable answer"),
    "/lacks": ("no-field", 'answer lacks a reply: {"id":7}', "answer lacks a reply"),
    "/says": ("reported", "the model is gone", "the model is gone"),
    "/again": ("late-retry", "no answer in 4 s, asked again: 503", "no answer in 4 s, asked again: "),
    "/slow": ("time-limit", "no answer in 4 s", "no answer in 4 s"),
}
OWN = {
    "refused": ("refused", "refused :9", "refused :9"),
    "raises": ("script-raised", "ValueError: no 7 (bot.py:2)", "ValueError: no N (bot.py:N)"),
    "event": ("unreadable", "unreadable: tool_result event: Expected str", "unreadable answer"),
    "dies": ("worker-lost", "process lost: ", "process lost: "),
    "nothing": ("empty-answer", "empty answer: returned nothing", "empty answer: returned nothing"),
    "cut": ("time-limit", 'cut off after 4 s at "half of it"', "cut off after 4 s"),
    "exits": ("exit", "exit code 3: out of luck", "exit code 3"),
    "absent": ("cannot-run", "cannot run no-such-program: No such file", "cannot run no-such-program"),
    "scripted": ("reported", "the tool broke 12 times", "the tool broke N times"),
    "ruleless": ("no-rule", "the script has no rule for this message", "the script has no rule for this"),
    "template": ("bad-setting", "template {{ x", "template {{ x"),
}
"""By agent the code of its attempt's evidence, how the words for a list begin, and those of its group."""
CONFIG = """
agents:
{served}
  refused: {{type: http, url: 'http://127.0.0.1:9/', retries: 0}}
  raises: {{type: python, function: 'bot.py:answer'}}
  event: {{type: python, function: 'bot.py:event'}}
  dies: {{type: python, function: 'bot.py:dies'}}
  nothing: {{type: python, function: 'bot.py:nothing'}}
  cut: {{type: python, function: 'bot.py:cut'}}
  exits: {{type: command, command: [sh, -c, "echo out of luck >&2; exit 3"]}}
  absent: {{type: command, command: [no-such-program]}}
  scripted: {{type: scripted, script: breaks.yaml}}
  ruleless: {{type: scripted, script: ruleless.yaml}}
  template: {{type: http, url: 'http://127.0.0.1:9/', body: "{{{{ x | no_such_filter }}}}", retries: 0}}
"""
BOT = """def answer(message, context=None):
    raise ValueError("no 7")


def event(message):
    from tui_eval.events import ToolResult
    yield ToolResult("1", {"hits": 0})


def dies(message):
    import os
    os._exit(9)


def nothing(message):
    return None


def cut(message):
    import time
    yield "half of "
    yield "it "
    time.sleep(20)
"""
SCRIPTS = {
    "breaks.yaml": "default: {steps: [{error: the tool broke 12 times}]}\n",
    "ruleless.yaml": "rules: [{match: {contains: never}, say: no}]\n",
}
SUITE = "test_cases: [{name: one, input: hello, expected: {should_contain: [x]}}]\n"
SAMPLES = {
    "no-agent": (Evidence("agent", "no-agent", text="agents.x is not there"), "agents.x is not there"),
    "unreachable": (
        Evidence("agent", "unreachable", text="name not known", path="bot.example"),
        "no connection to bot.example: name not known",
    ),
    "late-lookup": (
        Evidence("agent", "late-lookup", text="bot.example", expected=9.0),
        "no answer in 9 s: host name bot.example not resolved",
    ),
    "broke-off": (Evidence("agent", "broke-off", text="its end is missing"), "broke off: its end is missing"),
    "redirected": (Evidence("agent", "redirected", text="http://x/"), "redirects to: http://x/"),
    "not-sent": (Evidence("agent", "not-sent", text="no such scheme"), "cannot be sent: no such scheme"),
    "too-large": (Evidence("agent", "too-large", expected="64 MB"), "answer > 64 MB"),
    "filtered": (Evidence("agent", "filtered", text="SAFETY"), "filtered: SAFETY"),
    "too-many-steps": (
        Evidence("agent", "too-many-steps", expected=8),
        "no answer in 8 steps of tool calls",
    ),
    "not-signed-in": (Evidence("agent", "not-signed-in", text="refused"), "not signed in: refused"),
    "script-time-limit": (Evidence("agent", "script-time-limit", text="bot.py"), "script too slow: bot.py"),
    "script-memory-limit": (Evidence("agent", "script-memory-limit", text="bot.py"), "out of memory: bot.py"),
    "not-in-time": (
        Evidence("rule", "not-in-time", text="python did not end within 10 s"),
        "python did not end within 10 s",
    ),
    "not-recorded": (Evidence("agent", "not-recorded", text="no earlier run"), "no earlier run"),
    "cannot-continue": (Evidence("agent", "cannot-continue", text="other turns"), "other turns"),
    "stopped": (Evidence("agent", "stopped", text="stopped by hand"), "stopped by hand"),
    "agent-crashed": (Evidence("agent", "agent-crashed", text="KeyError: 'a'"), "KeyError: 'a'"),
    "agent-error": (Evidence("agent", "agent-error", text="it failed"), "it failed"),
    "not-kept": (Evidence("agent", "not-kept", text="too large"), "too large"),
    "needs-trust": (Evidence("rule", "needs-trust", text="run x.py"), "needs trust: run x.py"),
    "judge-failed": (Evidence("rule", "judge-failed", text="refused :8941"), "judge: refused :8941"),
    "not-reached": (Evidence("rule", "not-reached"), "not judged: the sample ended before"),
}
"""Ways that need more than a run of a moment, and those of judging: a piece of each code, and its words."""
RARE = (
    "nothing-listed", "bad-pattern", "pattern-time-limit", "absent-field", "extra-field", "has-json", "schema-held", "is-xml", "has-xml",
    "is-html", "has-html", "is-sql", "bad-call", "absent-argument", "no-arguments", "forbidden-order", "no-rows",
    "not-verified", "webhook-failed", "not-flagged", "not-chosen", "score", "no-output", "judge-unreadable",
    "judge-undecided", "no-embeddings", "unknown-type", "bad-assertion", "not-reported", "not-in-file", "not-comparable",
    "no-reply", "no-database", "query-failed", "file", "template", "transform", "no-host", "cannot-judge", "crashed",
    "in-file", "columns",
)  # fmt: skip
"""Codes of assertions that only some of their failures have; their words are made of a piece of that code."""


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Attempt]:
    """One attempt by each agent of `CONFIG`, run by the engine."""
    root = tmp_path_factory.mktemp("errors")

    def answer(seen: Seen) -> Planned:
        return PLANS[seen.path]

    with JsonServer(default=answer) as server:
        served = "".join(
            f"  a{path[1:]}: {{type: http, url: '{server.url}{path}', retries: {RETRIES.get(path, 0)}}}\n"
            for path in PLANS
        )
        files = {"suite.yaml": SUITE, "bot.py": BOT, "tui_eval.yaml": CONFIG.format(served=served), **SCRIPTS}
        for name, text in files.items():
            (root / name).write_text(text, "utf-8")
        agents = [*(f"a{path[1:]}" for path in PLANS), *OWN]
        request = RunRequest(paths=[str(root)], agents=agents, trust=True, timeout=4.0, concurrency=30)

        async def go() -> Path:
            active = await asyncio.to_thread(prepare, request)
            await active.execute()
            assert active.writer is not None
            return active.writer.folder

        reader = RunReader(asyncio.run(go()))
    found: dict[str, Attempt] = {}
    for row in reader.attempts():
        attempt = reader.attempt(row.id)
        assert attempt is not None
        assert (row.cause, row.alike) == (causes.cause_of(attempt), causes.alike(attempt))
        found[attempt.agent] = attempt
    return found


WAYS = {**{f"a{path[1:]}": row for path, row in SERVED.items()}, **OWN}


@pytest.mark.parametrize("agent", WAYS)
def test_an_attempt_that_errs_says_in_a_code_why(agent: str, ended: dict[str, Attempt]) -> None:
    attempt = ended[agent]
    code, words, group = WAYS[agent]
    assert attempt.outcome == "error" and attempt.evidence, attempt
    assert [one.code for one in attempt.evidence] == [code], attempt.evidence
    assert causes.cause_of(attempt).startswith(words)
    assert causes.alike(attempt).startswith(group)


@pytest.mark.parametrize("code", SAMPLES)
def test_the_short_form_of_what_is_rarely_seen(code: str) -> None:
    piece, words = SAMPLES[code]
    assert piece.code == code
    assert causes.words_of_pieces([piece]) == words


@pytest.mark.parametrize(
    ("code", "expected", "actual", "words"),
    [
        ("differs", 0.3, 0.1 + 0.2, "a ≠ 0.3: 0.30000000000000004"),
        ("differs", 2**127, 2**127 - 1, f"a ≠ {2**127}: {2**127 - 1}"),
        ("differs", "x" * 60 + "yes", "x" * 60 + "no", 'a ≠ "…xxxxxxxxyes": "…xxxxxxxxno"'),
        ("differs", ["x" * 60, 1], ["x" * 60, 2], 'a ≠ …xxxxxx",1]: …xxxxxx",2]'),
        ("over", 0.3, 0.1 + 0.2, "0.30000000000000004 > 0.3 a"),
        ("time-limit", 6, f"begins {'x' * 60} ends", f'cut off after 6 s (a) at "…{"x" * 42} ends"'),
    ],
)
def test_two_values_that_differ_never_read_alike(code: str, expected: Any, actual: Any, words: str) -> None:
    piece = Evidence("field", code, path="a", rule="<=", expected=expected, actual=actual)
    assert causes.words_of_pieces([piece]) == words


@pytest.mark.parametrize(
    ("code", "said", "words"),
    [
        ("not-chosen", "Not selected (score: 0.500, max: 0.700)", "not chosen: score: 0.500, max: 0.700"),
        ("not-chosen", "Not selected - score 0.3 below threshold 0.5", "not chosen: score 0.3 below threshold 0.5"),
        ("not-chosen", "Output not selected: clearest (of two)", "not chosen: clearest (of two)"),
        ("not-chosen", "", "not chosen"),
        ("bad-call", 'Call to "f" does not match schema: city is not there', "call of f: city is not there"),
        ("bad-call", 'Called "f", but there is no function with that name', "call of f: there is no function with that name"),
        ("bad-call", "Arguments of f are not JSON: x", "call: Arguments of f are not JSON: x"),
    ],
)  # fmt: skip
def test_a_short_reason_says_a_thing_once_and_then_the_fact(code: str, said: str, words: str) -> None:
    """`not chosen: Not selec…`, `call: Call to "get_we…`: the fact was what was cut."""
    assert causes.WORDS[code]([Evidence("rule", code, text=said)]) == words


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\nhello\r\n", "unreadable: no HTTP: SSH-2.0-OpenSSH_9.2"),
        (b"HTTP/1.1 abc\r\n\r\n", "unreadable: no HTTP: HTTP/1.1 abc"),
        (b"it's \x00\r\n\r\n", "unreadable: no HTTP: it's \x00"),
    ],
)
def test_a_server_that_does_not_speak_http_is_no_missing_connection(
    tmp_path: Path, answer: bytes, words: str
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async def go() -> Path:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        (tmp_path / "suite.yaml").write_text(SUITE)
        (tmp_path / "tui_eval.yaml").write_text(f"agents: {{it: {{type: http, url: '{url}', retries: 0}}}}\n")
        request = RunRequest(paths=[str(tmp_path)], agents=["it"], trust=True, timeout=20.0)
        active = await asyncio.to_thread(prepare, request)
        await active.execute()
        server.close()
        assert active.writer is not None
        return active.writer.folder

    (row,) = RunReader(asyncio.run(go())).attempts()
    assert (row.outcome, row.cause, row.alike) == ("error", words, "unreadable answer")


def test_every_failing_code_is_in_a_table() -> None:
    named = {row[0] for row in (*WAYS.values(), *CODES.values())} | SAMPLES.keys()
    assert set(causes.WORDS) - named == set(RARE) - named
    for code in causes.WORDS:
        piece = Evidence("rule", code, text="what was said", path="a.place", rule=">", expected=1, actual=2)
        words = causes.words_of_pieces([piece])
        assert words and len(words) <= causes.LONGEST and "\n" not in words, code


def test_every_place_that_raises_names_a_code_that_is_known() -> None:
    for path in sorted(SOURCES.rglob("*.py")):
        source = path.read_text("utf-8")
        if not any(f"{name}(" in source for name in RAISED):
            continue
        for call in ast.walk(ast.parse(source)):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
                continue
            if call.func.id not in RAISED:
                continue
            where = f"{path.relative_to(SOURCES)}:{call.lineno}"
            given = {word.arg: word.value for word in call.keywords}
            if call.func.id == "AttemptFailed":
                given["code"] = call.args[1]
            assert given.keys() & {"code", "status", "like"}, f"{where}: no code"
            code = given.get("code")
            if isinstance(code, ast.Constant):
                assert code.value == "" or code.value in causes.WORDS, f"{where}: {code.value}"


def test_what_an_agents_own_code_raised_is_kept_with_its_traceback(ended: dict[str, Attempt]) -> None:
    found = (ended["raises"].evidence or [])[0].actual
    assert isinstance(found, str) and found.startswith("Traceback") and 'raise ValueError("no 7")' in found
    assert (ended["exits"].evidence or [])[0].actual is None


def test_an_agent_of_another_package_needs_no_code() -> None:
    from tui_eval.agents.base import AgentError

    assert AgentError("it is broken").evidence == Evidence("agent", "agent-error", text="it is broken")
    assert AgentError("no", status=403).evidence.code == "unauthorized"


def test_a_retry_is_told_by_its_status_where_room_is_short(tmp_path: Path) -> None:
    from tui_eval.engine.attempt.collector import Collector
    from tui_eval.events import Retrying
    from tui_eval.guard.masker import Masker

    class Writer:
        told: list[str] = []

        def retrying(self, ref: int, words: str) -> None:
            self.told.append(words)

        def live(self, *told: object) -> None:
            pass

    collector = Collector(Writer(), 1, Masker([]))  # type: ignore[arg-type]
    for reason in ("429 Too Many Requests", "connection refused", "503"):
        collector.take(Retrying(reason, 12.0))
    assert Writer.told == ["429, again in 12 s", "connection refused, again in 12 s", "503, again in 12 s"]
    assert "retrying: 429 Too Many Requests, again in 12 s" in [one.text for one in collector.entries]
    for seconds in (1.0, 0.4, 0.02, 0.0):  # a wait that is short is none of 0 s
        collector.take(Retrying("429", seconds))
    assert Writer.told[3:] == [
        "429, again in 1 s",
        "429, again in 400 ms",
        "429, again in 20 ms",
        "429, again",
    ]
