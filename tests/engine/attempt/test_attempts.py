"""What an attempt hands to its agent and keeps of it: metadata, printed text, retries, judges."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.engine.test_runs import go
from tests.servers import JsonServer, NaoServer, NeuroSanServer, OpenAIServer, Planned
from tests.servers.base import Seen
from tests.support import TESTS
from tui_eval.config import project as project_of
from tui_eval.engine.attempt.attempt_state import Running
from tui_eval.engine.wants import wants
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, JudgeUse, Usage
from tui_eval.reports import results
from tui_eval.reports.run_comparison import compare
from tui_eval.store.reader import RunReader
from tui_eval.store.summary import summarise_run

NETWORK = """
{{ agent: "net", success_ratio: "1/1", connections: ["http"], {more}
  interactions: [ {{ text: "hello", response: {{ text: {{ {tests} }} }} }} ] }}
"""


@pytest.fixture
def server() -> Iterator[NeuroSanServer]:
    with NeuroSanServer() as running:
        yield running


def only(reader: RunReader) -> Attempt:
    rows = reader.attempts()
    assert len(rows) == 1
    attempt = reader.attempt(rows[0].id)
    assert attempt is not None
    return attempt


async def test_what_peoples_python_prints_is_kept(project: Callable[..., Path]) -> None:
    root = project(
        suite="""
        agent: mine
        test_cases:
          - {name: whole, messages: [a, b], expected: {should_contain: [B], tools_used: [look]}}
        """,
        config="agents:\n  mine: {type: python, function: 'bot.py:answer'}\n",
        **{
            "bot.py": """
            async def answer(message):
                print("got", message)
                return message[-1].upper(), {"tools_used": ["look"], "tool_call_count": 1}
            """
        },
    )
    _, reader = await go(root, trust=True)
    attempt = only(reader)
    assert attempt.outcome == "passed" and attempt.stdout == "got ['a', 'b']\n"
    assert attempt.tool_call_count == 1
    assert [entry.kind for entry in attempt.transcript] == ["user", "user", "assistant"]


async def test_an_attempt_that_has_ended_is_freed_at_once(project: Callable[..., Path]) -> None:
    """It does not hold itself: of thousands none waits for the collector."""
    root = project(
        suite="""
        agent: bot
        test_cases:
          - {name: right, input: hi, expected: {should_contain: [hello]}}
          - {name: wrong, input: hi, expected: {should_contain: [bye]}}
        """,
        config="agents:\n  bot: {type: scripted, script: agent.script.yaml}\n",
        script="speed: 0\ndefault: {say: hello}\n",
    )
    gc.collect()
    gc.disable()
    try:
        _, reader = await go(root)
        left = sum(isinstance(one, Running) for one in gc.get_objects())
    finally:
        gc.enable()
    assert {row.outcome for row in reader.attempts()} == {"passed", "failed"}
    assert left == 0


@pytest.mark.parametrize(("finish", "noted"), [("length", 1), ("MAX_TOKENS", 1), ("stop", 0)])
async def test_an_answer_that_was_cut_off_says_so(
    project: Callable[..., Path], finish: str, noted: int
) -> None:
    """It is judged, and may pass only because what should not be there had not come yet."""
    root = project(
        suite="agent: helper\ntest_cases:\n  - {name: one, input: hi, expected: {should_not_contain: [secret]}}\n",
        config="agents:\n  helper: {type: scripted, script: agent.script.yaml}\n",
        **{"agent.script.yaml": f"default: {{say: the, finish: {finish}}}\n"},
    )
    _, reader = await go(root)
    attempt = only(reader)
    notes = [entry.text for entry in attempt.transcript if entry.kind == "note"]
    assert attempt.outcome == "passed", attempt.message
    assert notes == [f"the answer was cut off at a limit of its length (finish reason {finish})"] * noted


async def test_an_answer_with_bytes_that_are_no_text_says_so(project: Callable[..., Path]) -> None:
    """It is judged, and what should not be there is not found in them: `Grüße` in an encoding that nobody named."""
    root = project(
        suite="agent: helper\ntest_cases:\n  - {name: one, input: hi, expected: {should_not_contain: [Grüße]}}\n",
        config="agents:\n  helper: {type: command, command: [printf, 'Gr\\374\\337e']}\n",
    )
    _, reader = await go(root, trust=True)
    attempt = only(reader)
    (note,) = [entry.text for entry in attempt.transcript if entry.kind == "note"]
    assert attempt.replies[0].text == "Gr\ufffd\ufffde" and note.startswith(
        "some bytes of the answer are no text"
    )


async def test_an_answer_with_a_terminals_codes_says_so(project: Callable[..., Path]) -> None:
    """It is judged as it is, and a figure that a program highlights is not found in it."""
    root = project(
        suite="agent: helper\ntest_cases:\n  - {name: one, input: hi, expected: {should_not_contain: [€79]}}\n",
        config="agents:\n  helper: {type: command, command: [printf, '€\\033[1m79\\033[0m']}\n",
    )
    _, reader = await go(root, trust=True)
    attempt = only(reader)
    (note,) = [entry.text for entry in attempt.transcript if entry.kind == "note"]
    assert attempt.outcome == "passed" and note.startswith("the answer has a terminal's codes in it")


@pytest.mark.real
async def test_a_function_of_a_package(project: Callable[..., Path]) -> None:
    root = project(
        suite="agent: mine\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [from the package]}}\n",
        config="agents:\n  mine: {type: python, function: 'bots.house:answer'}\n",
        **{
            "bots/__init__.py": "",
            "bots/words.py": "SAID = 'from the package'\n",
            "bots/house.py": "from .words import SAID\n\ndef answer(message):\n    return SAID, {}\n",
        },
    )
    _, reader = await go(root, trust=True)
    assert only(reader).outcome == "passed", only(reader).message


@pytest.mark.parametrize(
    ("metadata", "compat", "sent"),
    [
        ("", "reference", "tester"),
        ("metadata: {}", "reference", None),
        ('metadata: {"user_id": "me"}', "reference", "me"),
        ("", "documented", None),
    ],
)
async def test_metadata_goes_out_as_the_case_says(
    project: Callable[..., Path],
    server: NeuroSanServer,
    monkeypatch: pytest.MonkeyPatch,
    metadata: str,
    compat: str,
    sent: str | None,
) -> None:
    monkeypatch.setenv("USER", "tester")
    root = project(config=f"agents:\n  neuro-san: {{type: neuro-san, url: '{server.url}'}}\n")
    (root / "suite.yaml").unlink()
    (root / "net.hocon").write_text(NETWORK.format(more=metadata, tests='keywords: "hello"'))
    await go(root, compat=compat)
    assert server.requests[-1].headers.get("user_id") == sent


async def test_a_judge_that_is_a_network_is_asked_as_neuro_san_asks_it(
    project: Callable[..., Path], server: NeuroSanServer
) -> None:
    row = next(
        row
        for line in (TESTS / "vectors/neurosan_asserts.jsonl").read_text().splitlines()
        if (row := json.loads(line))["id"] == "gist-1"
    )
    server.plan.extend([Planned(text=row["answer"]["text"]), Planned(text="pass")])
    root = project(
        config=f"agents:\n  neuro-san: {{type: neuro-san, url: '{server.url}'}}\n"
        f"judge: {{type: neuro-san, agent: gist, url: '{server.url}'}}\n"
    )
    (root / "suite.yaml").unlink()
    criterion = row["response_spec"]["text"]["gist"]
    (root / "net.hocon").write_text(NETWORK.format(more="", tests=f'gist: "{criterion}"'))
    _, reader = await go(root)
    assert only(reader).outcome == "passed", only(reader).message
    asked = server.requests[-1]
    assert asked.path == "/api/v1/gist/streaming_chat"
    assert asked.body["user_message"]["text"] == row["judge_questions"][0]


_LIBRARY = """
import os

class DirectAgentSessionFactory:
    def create_session(self, agent_name, use_direct=False, metadata=None):
        if not os.path.isabs(agent_name):
            raise ValueError(f'Agent named "{agent_name}" not found in manifest file')
        return self

    def streaming_chat(self, body):
        yield {"response": {"type": 101, "text": "pass", "chat_context": {"n": 1}}}

    def close(self):
        pass
"""


@pytest.mark.parametrize("judge", ["agent: gist, ", ""])
async def test_a_gist_is_asked_of_the_packages_network_where_the_manifest_is_ones_own(
    project: Callable[..., Path], server: NeuroSanServer, monkeypatch: pytest.MonkeyPatch, judge: str
) -> None:
    server.plan.append(Planned(text="a dog"))
    root = project(
        config=f"agents:\n  neuro-san: {{type: neuro-san, url: '{server.url}'}}\n"
        f"judge: {{type: neuro-san, {judge}python: '{sys.executable}'}}\n",
        **{
            "lib/neuro_san/__init__.py": "",
            "lib/neuro_san/client/__init__.py": "",
            "lib/neuro_san/client/direct_agent_session_factory.py": _LIBRARY,
            "lib/neuro_san/registries/gist.hocon": "{}",
            "manifest.hocon": "{}",
        },
    )
    (root / "suite.yaml").unlink()
    (root / "net.hocon").write_text(NETWORK.format(more="", tests='gist: "names an animal"'))
    monkeypatch.setenv("PYTHONPATH", str(root / "lib"))
    monkeypatch.setenv("AGENT_MANIFEST_FILE", str(root / "manifest.hocon"))
    _, reader = await go(root, trust=True)
    assert only(reader).outcome == "passed", only(reader).message


@pytest.mark.parametrize("key", ["agent", "judge"])
async def test_code_that_a_file_names_as_agent_or_judge_needs_trust(
    project: Callable[..., Path], server: NeuroSanServer, key: str
) -> None:
    root = project(
        config=f"agents:\n  neuro-san: {{type: neuro-san, url: '{server.url}'}}\n"
        f"suites:\n  - {{path: '**', {key}: 'mine.py:answer'}}\n",
        **{"mine.py": "def answer(message):\n    open('ran', 'w').close()\n    return 'pass'\n"},
    )
    (root / "suite.yaml").unlink()
    (root / "net.hocon").write_text(NETWORK.format(more="", tests='gist: "kind"'))
    _, reader = await go(root, trust=False)
    assert only(reader).outcome == "error" and "needs trust: run mine.py:answer" in only(reader).message
    assert not list(root.rglob("ran"))


@pytest.mark.parametrize(
    ("compat", "tests", "more", "outcome", "asked"),
    [
        ("documented", 'keywords: "hello", keyword: "zz"', "", "error", 0),
        ("reference", 'keywords: "hello", keyword: "zz"', "", "passed", 1),
        ("documented", 'keywords: "hello"', "timeout_in_second: 5,", "error", 0),
        ("reference", 'keywords: "hello"', "timeout_in_second: 5,", "passed", 1),
        ("documented", 'keywords: "hello"', 'success_ratio: "3",', "error", 0),
        ("reference", 'keywords: "hello"', 'success_ratio: "3",', "error", 0),
    ],
)
async def test_what_neuro_san_ignores_decides_nothing_under_reference_and_what_it_refuses_is_not_sent(
    project: Callable[..., Path],
    server: NeuroSanServer,
    compat: str,
    tests: str,
    more: str,
    outcome: str,
    asked: int,
) -> None:
    root = project(config=f"agents:\n  neuro-san: {{type: neuro-san, url: '{server.url}'}}\n")
    (root / "suite.yaml").unlink()
    text = NETWORK.format(more=more, tests=tests)
    (root / "net.hocon").write_text(
        text if 'success_ratio: "3"' not in text else text.replace('"1/1"', '"3"')
    )
    _, reader = await go(root, compat=compat)
    assert only(reader).outcome == outcome, only(reader).message
    assert len(server.requests) == asked


@pytest.mark.parametrize(
    ("private", "outcome", "asked"),
    [("{login: ada}", "error", 0), ("{}", "passed", 1), ("null", "passed", 1)],
)
async def test_a_case_with_private_data_is_not_asked_of_who_gets_none(
    project: Callable[..., Path], private: str, outcome: str, asked: int
) -> None:
    """It would be asked something else, and could be green."""
    with OpenAIServer() as model:
        root = project(config=f"agents: {{bot: {{type: openai, base_url: '{model.base}', model: m}}}}\n")
        (root / "suite.yaml").unlink()
        text = NETWORK.format(more="", tests='keywords: "hello"')
        (root / "net.hocon").write_text(
            text.replace('text: "hello",', f'text: "hello", sly_data: {private},')
        )
        _, reader = await go(root, agents=("bot",))
        attempt = only(reader)
        assert (attempt.outcome, len(model.requests)) == (outcome, asked)
    if outcome == "error":
        assert attempt.message == "turn 1 sends sly_data, which agents of the type openai do not get"


async def test_a_judge_that_does_not_answer_is_an_error_in_plain_words(
    project: Callable[..., Path], server: NeuroSanServer
) -> None:
    root = project(
        config=f"agents:\n  neuro-san: {{type: neuro-san, url: '{server.url}'}}\nrun: {{retries: 0}}\n"
        "judge: {type: openai, base_url: 'http://127.0.0.1:9/v1', model: m}\n"
    )
    (root / "suite.yaml").unlink()
    (root / "net.hocon").write_text(NETWORK.format(more="", tests='gist: "kind", keywords: "hello"'))
    _, reader = await go(root)
    attempt = only(reader)
    assert attempt.outcome == "error" and attempt.message.startswith(
        "the judge did not answer: no answer from"
    )
    assert [verdict.passed for verdict in attempt.verdicts] == [None, True]


async def test_what_a_judge_took_for_no_answer_counts(
    project: Callable[..., Path], server: NeuroSanServer
) -> None:
    parts = [
        {
            "choices": [{"index": 0, "delta": {"content": "{"}}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 1},
        },
        {"error": {"message": "overloaded"}},
    ]
    raw = "".join(f"data: {json.dumps(part)}\n\n" for part in parts).encode()
    planned = Planned(raw=raw, headers={"Content-Type": "text/event-stream"})
    with OpenAIServer(planned) as model:
        root = project(
            config=f"agents:\n  neuro-san: {{type: neuro-san, url: '{server.url}'}}\nrun: {{retries: 0}}\n"
            f"judge: {{type: openai, base_url: '{model.base}', model: m}}\nprices: {{m: {{input: 1, output: 1}}}}\n"
        )
        (root / "suite.yaml").unlink()
        (root / "net.hocon").write_text(NETWORK.format(more="", tests='gist: "kind"'))
        _, reader = await go(root)
        attempt = only(reader)
    assert attempt.outcome == "error" and attempt.message.startswith("the judge did not answer")
    assert attempt.judging == JudgeUse(1, Usage(9, 1), pytest.approx(10 / 1e6))


async def test_retries_of_the_run_and_prices_of_nao_reach_the_agent(project: Callable[..., Path]) -> None:
    with OpenAIServer(*[Planned(status=503) for _ in range(3)]) as model:
        root = project(
            suite="agent: m\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [hi]}}\n",
            config=f"agents:\n  m: {{type: openai, base_url: '{model.base}', model: m}}\nrun: {{retries: 0}}\n",
        )
        _, reader = await go(root)
        assert only(reader).outcome == "error" and len(model.requests) == 1
    (root / "suite.yaml").unlink()
    with NaoServer() as backend:
        (root / "tui_eval.yaml").write_text(
            f"agents:\n  nao: {{type: nao, url: '{backend.url}', email: a@b.co, password: secret-password}}\n"
            "suites: [{path: 'tests/**', agent: nao}]\n"
        )
        (root / "nao_config.yaml").write_text(
            "project_name: p\ntest: {models: ['openai:a', 'x:b', 'openaiCompatible/house:c']}\n"
            "llm:\n  providers:\n    - {provider: openai, models: [{id: a, costs: {output: 3}}]}\n"
            "    - {provider: openai-compatible/house, models: [{id: c, costs: {output: 4}}]}\n"
        )
        (root / "tests").mkdir()
        (root / "tests" / "one.yml").write_text("name: one\nprompt: hi\n")
        _, reader = await go(root)
        asked = [seen.body for seen in backend.requests if seen.path == "/api/test/run"]
        assert {":".join(body["model"].values()): body.get("meta") for body in asked} == {
            "openai:a": {"costs": {"output": 3.0}},
            "x:b": None,
            "openaiCompatible/house:c": {"costs": {"output": 4.0}},
        }
        assert [row.model for row in reader.cases()] == ["openai:a", "x:b", "openaiCompatible/house:c"]


@pytest.mark.parametrize(
    ("call", "live", "compat", "asked", "outcome", "message"),
    [
        (False, False, "reference", 1, "passed", "no verification"),
        (True, False, "reference", 1, "failed", "missing tool_call: sql; no verification data"),
        (False, False, "documented", 3, "failed", "no data returned: "),
        (False, True, "reference", 3, "failed", "no data returned: "),  # whom nobody asks to verify
    ],
)
async def test_a_nao_server_that_verifies_nothing_is_not_asked_again_under_reference(
    project: Callable[..., Path], call: bool, live: bool, compat: str, asked: int, outcome: str, message: str
) -> None:
    """As nao, which has its verdict then, whether there is a database here or not: the answer is paid for once."""
    told = {"type": "text-delta", "id": "1", "delta": "Seven."}
    stream = "".join(
        f"data: {json.dumps(one)}\n\n" for one in (told, {"type": "finish", "finishReason": "stop"})
    )
    plan = [Planned(raw=stream.encode(), headers={"Content-Type": "text/event-stream"}) for _ in range(3)]
    with NaoServer(*plan if live else ()) as backend:
        root = project(
            config=f"agents: {{nao: {{type: nao, url: '{backend.url}', live: {str(live).lower()}, email: a@b.co, "
            "password: secret-password}}\ndatabases: {shop: {type: files, path: data}}\n"
            f"suites: [{{path: 'tests/**', agent: nao, compat: {compat}}}]\n"
        )
        (root / "suite.yaml").unlink()
        (root / "tests").mkdir()
        (root / "data").mkdir()
        (root / "data" / "orders.csv").write_text("n\n7\n")
        more = "assertions: [{type: tool_call, tool: sql}]\n" if call else ""
        (root / "tests" / "one.yml").write_text(f"prompt: hi\nsql: SELECT 7 AS n\n{more}")
        _, reader = await go(root)
        attempt = only(reader)
        assert (attempt.outcome, attempt.message[: len(message)]) == (outcome, message)
        assert (
            len([seen for seen in backend.requests if seen.path in ("/api/test/run", "/api/agent")]) == asked
        )


@pytest.mark.real
@pytest.mark.parametrize(
    ("agent", "how"),
    [
        ("{type: python, function: 'bot.py:answer'}", "needs trust"),
        ("{type: http, url: 'http://127.0.0.1:9/', headers: {X: '${NOT_SET_HERE}'}}", "is not set"),
        ("{type: nonsense}", "unknown type"),
    ],
)
async def test_an_attempt_that_asked_nobody_took_no_time(
    project: Callable[..., Path], agent: str, how: str
) -> None:
    root = project(
        suite="agent: mine\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [hi]}}\n",
        config=f"agents:\n  mine: {agent}\n",
        **{"bot.py": "def answer(message):\n    return message\n"},
    )
    _, reader = await go(root)
    attempt = only(reader)
    assert attempt.outcome == "error" and how in attempt.message and attempt.duration_ms is None
    refused = summarise_run(reader.cases(), reader.attempts())
    assert (refused[0].duration_ms, refused[0].timed) == (None, 0)
    assert results.build(reader)["summary"]["avg_duration_ms"] == 0
    if "python" in agent:
        _, reader = await go(root, trust=True)
        answered = summarise_run(reader.cases(), reader.attempts())
        assert answered[0].duration_ms and answered[0].timed == 1
        assert compare(answered, refused).usual.latency is None  # no speed-up to nothing


async def test_no_variable_of_the_environment_goes_to_a_nao_server_without_trust(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HELD", "openai:of-the-person")
    with NaoServer() as backend:
        root = project(
            config=f"agents:\n  nao: {{type: nao, url: '{backend.url}', email: a@b.co, password: secret-password}}\n"
            "suites: [{path: 'tests/**', agent: nao}]\n",
            **{
                "nao_config.yaml": "test: {models: [{{ env('HELD') }}]}\n",
                "tests/one.yml": "name: one\nprompt: hi\n",
            },
        )
        (root / "suite.yaml").unlink()
        _, reader = await go(root)
        attempt, what = only(reader), "read the environment variable HELD (nao_config.yaml: test.models)"
        assert attempt.outcome == "error" and attempt.message.startswith(f"needs trust: {what}")
        assert [row.model for row in reader.cases()] == ["${HELD}"]
        assert not backend.requests and "of-the-person" not in repr(attempt)

        config, trust = project_of.load([root]), Trust()
        assert wants(reading.load_all([root], config, trust), config, trust) == [what]

        _, reader = await go(root, agreed=[what])
        assert only(reader).outcome == "passed"
        asked = [seen.body for seen in backend.requests if seen.path == "/api/test/run"]
        assert [body["model"] for body in asked] == [{"provider": "openai", "modelId": "of-the-person"}]


GUIDE = """
agent: bot
model: claude-sonnet-4-20250514
test_cases:
  - name: "Escalates"
    messages: ["it does not work", "I am furious"]
    expected:
      escalated: true
      escalation_priority: high
      tools_used: [escalate]
      max_tool_calls: 2
      max_output_tokens: 30
  - name: "Too long"
    input: "tell me everything"
    expected: {max_output_tokens: 10, escalated: false}
"""


async def test_the_guides_suite_over_http(project: Callable[..., Path]) -> None:
    """Tools and tokens are summed over the turns; metadata is the last reply's over earlier ones'."""

    def answer(seen: Seen) -> Planned:
        furious = "furious" in seen.body["message"]
        metadata = {"escalated": furious, "tools_used": ["escalate"] if furious else ["search"]}
        if furious:
            metadata["escalation_priority"] = "high"
        body = {"reply": "ok", "metadata": metadata, "usage": {"input_tokens": 5, "output_tokens": 12}}
        return Planned(body=body)

    with JsonServer(default=answer) as endpoint:
        root = project(suite=GUIDE, config=f"agents:\n  bot: {{type: http, url: '{endpoint.url}/chat'}}\n")
        _, reader = await go(root)
        asked = next(seen.body for seen in endpoint.requests if seen.body["message"] == "I am furious")
    attempts = {
        case.name: reader.attempt(row.id) for case in reader.cases() for row in reader.attempts(case.id)
    }
    first, second = attempts["Escalates"], attempts["Too long"]
    assert first is not None and second is not None
    assert first.outcome == "passed", first.message
    assert asked["messages"][0]["content"] == "it does not work" and asked["session_id"]
    assert second.message == "max_output_tokens: 12 > 10"
