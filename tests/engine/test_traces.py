"""Suites with `tracing`: agents export spans, attempts are judged on their own ones, and keep them."""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.servers import JsonServer, OpenAIServer, Planned
from tests.support.ports import free_port
from tests.support.waiting import until
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.after.rescoring import rescore
from tui_eval.engine.otlp import listener, tracing
from tui_eval.engine.otlp.listener import SpanListener
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.reports import promptfoo_json, results
from tui_eval.store.reader import RunReader

SDK = """
import os

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter("http://127.0.0.1:PORT/v1/traces")))
tracer = provider.get_tracer("bot")


def call_api(prompt, options, context):
    parent = TraceContextTextMapPropagator().extract({"traceparent": context["traceparent"]})
    with tracer.start_as_current_span("agent run", context=parent):
        with tracer.start_as_current_span("tool call") as span:
            span.set_attribute("gen_ai.tool.name", f"look_{prompt}")
            span.set_attribute("gen_ai.tool.call.arguments", '{"of": "%s"}' % prompt)
            span.set_attribute("api_key", "sk-live-abcdefgh")
            if prompt == "broken":
                span.set_status(trace.StatusCode.ERROR, "no such thing")
    return {"output": f"looked at {prompt}"}
"""

PLAIN = """
import json, threading, time, urllib.request

def post(spans):
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    wanted = urllib.request.Request("http://127.0.0.1:PORT/v1/traces", body, {"Content-Type": "application/json"})
    return urllib.request.urlopen(wanted, timeout=20).read()

def span(traceparent, name, number=1):
    _, trace_id, parent_id, _ = traceparent.split("-")
    return {"traceId": trace_id, "spanId": f"{number:016x}", "parentSpanId": parent_id, "name": name,
            "startTimeUnixNano": str(time.time_ns()), "endTimeUnixNano": str(time.time_ns() + 2_000_000),
            "attributes": [{"key": "tool.name", "value": {"stringValue": name}}]}
"""

SUITE = """
prompts: ['{{q}}']
providers: ['file://bot.py']
tracing: {enabled: true, otlp: {http: {enabled: true, port: PORT}}}
tests:
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a suite and its agent; PORT is a free one (or `port`)."""

    def writing(tests: str, bot: str, *, suite: str = SUITE, port: int = 0) -> Path:
        number = str(port or free_port())
        text = dedent(suite) + dedent(tests)
        (tmp_path / "promptfooconfig.yaml").write_text(text.replace("PORT", number), "utf-8")
        (tmp_path / "bot.py").write_text(bot.replace("PORT", number), "utf-8")
        return tmp_path

    return writing


async def run(root: Path, **values: Any) -> tuple[list[Attempt], ActiveRun]:
    values.setdefault("trust", True)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], **values))
    await active.execute()
    return read(active), active


def read(active: ActiveRun) -> list[Attempt]:
    assert active.writer is not None and active.writer.error is None
    reader = RunReader(active.writer.folder)
    try:
        attempts = [reader.attempt(row.id) for row in reader.attempts()]
        return [attempt for attempt in attempts if attempt is not None]
    finally:
        reader.close()


def names(attempt: Attempt) -> list[str]:
    assert attempt.trace is not None
    return [span.name for span in attempt.trace.spans]


@pytest.mark.real
async def test_real_spans_of_the_sdk_are_judged_and_kept(write: Write) -> None:
    root = write(
        """
          - vars: {q: price}
            assert:
              - {type: 'trajectory:tool-used', value: 'look_{{q}}'}
              - {type: 'not-trajectory:tool-used', value: refund}
              - {type: 'trajectory:tool-args-match', value: {name: look_price, args: {of: price}}}
              - {type: trace-span-count, value: {pattern: tool*, min: 1, max: 1}}
              - {type: trace-span-duration, value: {max: 60000}}
              - {type: trace-error-spans, value: 0}
              - {type: javascript, value: "context.trace.spans.length === 2 && context.trace.traceId.length === 32"}
              - {type: python, value: "context['trace']['spans'][0]['attributes']['gen_ai.tool.name'] == 'look_price'"}
          - vars: {q: broken}
            assert: [{type: trace-error-spans, value: 0}]
        """,
        SDK,
    )
    attempts, active = await run(root)
    good, broken = attempts
    assert good.outcome == "passed", good.message
    assert (broken.outcome, broken.message) == (
        "failed",
        "Found 1 error spans, expected at most 0. Errors: tool call (no such thing)",
    )
    assert good.trace is not None and names(good) == ["tool call", "agent run"]
    tool, agent = good.trace.spans
    assert tool.parent_id == agent.span_id and agent.attributes["service.name"]
    assert tool.start is not None and tool.end is not None and tool.start <= tool.end
    assert abs(tool.start / 1000 - good.started_at) < 600
    assert tool.attributes["api_key"] == "•••"
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    try:
        kept = results.build(reader)["results"][0]["trace"]
        assert kept["spans"][0]["name"] == "tool call" and kept["trace_id"] == good.trace.trace_id
        theirs = promptfoo_json.build(reader)
        assert theirs["traces"][0]["spans"][0]["attributes"]["gen_ai.tool.name"] == "look_price"
        assert theirs["results"]["results"][0]["traceId"] == good.trace.trace_id
    finally:
        reader.close()


@pytest.mark.real
async def test_attempts_side_by_side_do_not_mix(write: Write) -> None:
    bot = PLAIN + dedent("""
        async def call_api(prompt, options, context):
            import asyncio
            own = context["traceparent"]
            for number in range(3):
                await asyncio.to_thread(post, [span(own, f"{prompt}_{number}", number + 1)])
            return {"output": context["testCaseId"]}
    """)
    tests = "".join(
        f"  - {{vars: {{q: t{number}}}, assert: [{{type: trajectory:tool-sequence, value: {{mode: exact, steps: "
        f"[t{number}_0, t{number}_1, t{number}_2]}}}}]}}\n"
        for number in range(12)
    )
    attempts, _ = await run(write(tests, bot), concurrency=12, attempts=2)
    assert [attempt.message for attempt in attempts] == ["passed"] * 24
    assert len({attempt.trace.trace_id for attempt in attempts if attempt.trace}) == 24
    assert all(attempt.response_text == attempt.case_id for attempt in attempts)


@pytest.mark.real
async def test_spans_that_come_late_are_waited_for(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTFOO_TRACE_FETCH_MAX_ATTEMPTS", "30")  # however busy the machine is
    bot = PLAIN + dedent("""
        def call_api(prompt, options, context):
            own = context["traceparent"]
            threading.Timer(0.3, post, [[span(own, "late"), span(own, "later", 2)]]).start()
            return {"output": "already"}
    """)
    asked = "  - {vars: {q: a}, assert: [{type: 'trajectory:tool-used', value: [late, later]}]}\n"
    (attempt,), _ = await run(write(asked, bot))
    assert attempt.outcome == "passed", attempt.message


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans that never come are not waited for."""
    monkeypatch.setenv("PROMPTFOO_TRACE_FETCH_RETRY_DELAY_MS", "1")


ASKED = """
  - vars: {q: a}
    assert:
      - {type: contains, value: said}
      - {type: 'not-trajectory:tool-used', value: refund}
      - {type: trace-span-count, value: {pattern: 'db*', max: 2}}
      - {type: trace-error-spans, value: 0}
"""
SILENT = "def call_api(prompt, options, context):\n    return {'output': 'said'}\n"


@pytest.mark.real
@pytest.mark.usefixtures("hasty")
async def test_no_span_is_an_error_that_says_so_and_never_a_pass(write: Write) -> None:
    (attempt,), _ = await run(write(ASKED, SILENT))
    assert attempt.outcome == "error"
    assert [verdict.passed for verdict in attempt.verdicts] == [True, None, None, None]
    assert "no span of this attempt's trace arrived at http://127.0.0.1:" in attempt.message
    (attempt,), _ = await run(write(ASKED, SILENT), compat="reference")
    assert attempt.outcome == "passed"  # as promptfoo has it


@pytest.mark.usefixtures("hasty")
async def test_an_agent_that_makes_traces_of_its_own_is_told(write: Write) -> None:
    bot = PLAIN + dedent("""
        def call_api(prompt, options, context):
            post([span("00-" + "ab" * 16 + "-" + "cd" * 8 + "-01", "mine")])
            return {"output": "said"}
    """)
    (attempt,), _ = await run(write(ASKED, bot))
    assert attempt.outcome == "error" and "1 of other traces did" in attempt.message


@pytest.mark.usefixtures("hasty")
async def test_an_agent_that_exports_too_late_is_told_that(write: Write) -> None:
    """Spans of the attempt before, come while this one waits, were "of other traces: the agent must go on with the
    traceparent it is given", which it did."""
    bot = PLAIN + dedent("""
        kept = []

        def call_api(prompt, options, context):
            if kept:
                post([span(kept.pop(), "work")])
            kept.append(context["traceparent"])
            return {"output": "said"}
    """)
    asked = "  - {vars: {q: NAME}, assert: [{type: trace-span-count, value: {pattern: work, min: 1}}]}\n"
    tests = "".join(asked.replace("NAME", name) for name in ("first", "second"))
    attempts, _ = await run(write(tests, bot), concurrency=1)
    first, second = (attempt.message for attempt in attempts)
    assert "does the agent export before it answers" in first
    assert "1 of attempts that had ended did: the agent must export before it answers" in second
    assert "traceparent" not in second


@pytest.mark.real
@pytest.mark.usefixtures("hasty")
async def test_a_port_in_use_is_told_once_and_the_run_goes_on(write: Write) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        root = write(ASKED + ASKED.replace("q: a", "q: b"), SILENT, port=port)
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], trust=True))
        told: list[str] = []
        active.environment.tell = told.append
        await active.execute()
        attempts = read(active)
        must = SUITE.replace("{enabled: true, otlp", "{enabled: true, failOnReceiverStartFailure: true, otlp")
        (refused,), _ = await run(write(ASKED, SILENT, suite=must, port=port))
    assert len(told) == 1 and told[0].startswith(f"nothing can listen for spans at 127.0.0.1:{port}")
    for attempt in attempts:
        assert [verdict.passed for verdict in attempt.verdicts] == [True, None, None, None]
        assert "the port is in use" in attempt.verdicts[1].reason
    assert refused.outcome == "error" and not refused.replies
    assert "failOnReceiverStartFailure" in refused.message


@pytest.mark.real
@pytest.mark.usefixtures("hasty")
async def test_protobuf_without_the_extra_names_it(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    asked = "  - {vars: {q: a}, assert: [{type: 'trajectory:tool-used', value: look_a}]}\n"
    (attempt,), _ = await run(write(asked, SDK))
    assert attempt.outcome == "error" and "pip install -e '.[otlp]'" in attempt.message


@pytest.mark.real
@pytest.mark.parametrize("tracing", ["{enabled: false, otlp: {http: {port: PORT}}}", "{enabled: true}"])
async def test_nothing_listens_unasked(write: Write, tracing: str) -> None:
    bot = """
import socket

def call_api(prompt, options, context):
    with socket.socket() as probe:
        listens = probe.connect_ex(("127.0.0.1", PORT)) == 0
    return {"output": f"{listens} {'traceparent' in context}"}
"""
    suite = SUITE.replace("{enabled: true, otlp: {http: {enabled: true, port: PORT}}}", tracing)
    (attempt,), _ = await run(write("  - {vars: {q: a}}\n", bot, suite=suite))
    assert attempt.response_text == f"False {'true' in tracing}"


async def test_a_suite_is_reached_from_other_machines_with_trust_only(write: Write) -> None:
    suite = SUITE.replace("port: PORT", "port: PORT, host: 0.0.0.0").replace("file://bot.py", "echo")
    (attempt,), _ = await run(write("  - {vars: {q: a}}\n", "", suite=suite), trust=False)
    assert attempt.outcome == "error" and "receive spans at 0.0.0.0" in attempt.message
    (attempt,), _ = await run(write("  - {vars: {q: a}}\n", "", suite=suite), trust=True)
    assert attempt.outcome == "passed"


@pytest.mark.real
async def test_what_the_suite_redacts_is_seen_by_nobody(write: Write) -> None:
    suite = SUITE.replace("port: PORT", "port: PORT, redactAttributes: [Arguments]")
    asked = "  - {vars: {q: a}, assert: [{type: 'trajectory:tool-args-match', value: {name: look_a, args: '[REDACTED]'}}]}\n"
    (attempt,), _ = await run(write(asked, SDK, suite=suite))
    assert attempt.outcome == "passed", attempt.message
    assert attempt.trace is not None
    assert attempt.trace.spans[0].attributes["gen_ai.tool.call.arguments"] == "[REDACTED]"


@pytest.mark.real
async def test_endpoints_and_models_get_the_header_and_a_span_around_the_request(write: Write) -> None:
    with JsonServer(Planned(body={"output": "hi"})) as endpoint, OpenAIServer() as model:
        suite = SUITE.replace(
            "['file://bot.py']",
            f"""
  - {{id: '{endpoint.url}/chat', config: {{method: POST, body: {{q: '{{{{prompt}}}}', e: '{{{{evaluationId}}}}'}}, transformResponse: json.output}}}}
  - {{id: 'openai:chat:gpt-4.1', config: {{apiBaseUrl: '{model.base}', apiKey: k}}}}""",
        )
        asked = "  - {vars: {q: a}, assert: [{type: trace-span-duration, value: {pattern: 'chat *', max: 60000}}]}\n"
        attempts, active = await run(write(asked, "", suite=suite))
        seen = [endpoint.requests[0], model.requests[-1]]
    assert [attempt.outcome for attempt in attempts] == ["passed", "passed"], attempts[0].message
    assert names(attempts[0]) == [f"chat {endpoint.url}/chat"] and names(attempts[1]) == ["chat gpt-4.1"]
    for attempt, request in zip(attempts, seen, strict=True):
        assert attempt.trace is not None
        given = {name.lower(): value for name, value in request.headers.items()}["traceparent"]
        assert given.split("-")[:2] == ["00", attempt.trace.trace_id]
    assert seen[0].body["e"] == f"eval-{active.run_id}"


async def test_a_program_is_told_by_its_environment(write: Write) -> None:
    suite = SUITE.replace("file://bot.py", "exec:sh say.sh")
    root = write("  - {vars: {q: a}}\n", "", suite=suite)
    (root / "say.sh").write_text('printf "%s" "$TRACEPARENT"\n', "utf-8")
    (attempt,), _ = await run(root)
    assert attempt.trace is not None and attempt.response_text.split("-")[1] == attempt.trace.trace_id


@pytest.mark.real
async def test_judging_again_looks_at_the_spans_of_then(write: Write) -> None:
    asked = "  - {vars: {q: a}, assert: [{type: 'trajectory:tool-used', value: look_a}]}\n"
    root = write(asked, SDK)
    _, active = await run(root)
    assert active.writer is not None
    text = (root / "promptfooconfig.yaml").read_text("utf-8")
    (root / "promptfooconfig.yaml").write_text(text.replace("value: look_a", "value: look_b"), "utf-8")
    again = await asyncio.to_thread(
        rescore, active.writer.folder, overrides=RunRequest(paths=[str(root)], trust=True)
    )
    await again.execute()
    (attempt,) = read(again)
    assert attempt.outcome == "failed" and "Missing required tool(s): look_b" in attempt.message, (
        attempt.message
    )
    assert names(attempt) == ["tool call", "agent run"]


@pytest.mark.real
@pytest.mark.parametrize("extra", [True, False])
async def test_the_example_of_the_help_runs(
    tmp_path: Path, extra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not extra:
        monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    page = (resources.files("tui_eval.help") / "traces.md").read_text("utf-8")
    suite, bot = re.findall(r"```(?:yaml|python)\n(.*?)```", page, re.DOTALL)
    port = str(free_port())
    (tmp_path / "promptfooconfig.yaml").write_text(suite.replace("4318", port), "utf-8")
    (tmp_path / "bot.py").write_text(bot.replace("4318", port), "utf-8")
    (attempt,), active = await run(tmp_path)
    assert attempt.outcome == "passed" and len(attempt.verdicts) == 5, attempt.message
    assert names(attempt) == ["search prices"] and not active.problems


@pytest.mark.real
async def test_secrets_that_the_agent_tells_are_masked_wherever_they_stand(write: Write) -> None:
    bot = SDK.replace('\'{"of": "%s"}\' % prompt', '\'{"of": "a", "password": "hunter2hunter2"}\'')
    asked = """
      - vars: {q: a}
        assert:
          - {type: 'trajectory:tool-args-match', value: {name: look_a, args: {password: hunter2hunter2}}}
          - {type: 'trajectory:tool-args-match', value: {name: look_a, args: {of: b}}}
    """
    (attempt,), _ = await run(write(asked, bot))
    assert [verdict.passed for verdict in attempt.verdicts] == [True, False]
    assert attempt.trace is not None
    assert attempt.trace.spans[0].attributes["gen_ai.tool.call.arguments"] == {"of": "a", "password": "•••"}
    assert 'Observed args: {"of":"a","password":"•••"}' in attempt.verdicts[1].reason
    assert "hunter2" not in repr(attempt)


async def test_a_cancelled_attempt_waits_for_no_more_spans(write: Write) -> None:
    bot = "import time\n\ndef call_api(prompt, options, context):\n    time.sleep(600)\n"
    root = write("  - {vars: {q: a}}\n", bot)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], trust=True))
    going = asyncio.create_task(active.execute())
    tracing = active.environment.tracing
    await until(lambda: any(isinstance(one, SpanListener) and one.expected for one in tracing._used.values()))
    (listener,) = tracing._used.values()
    assert isinstance(listener, SpanListener)
    await active.runner.cancel()
    await going
    assert listener.expected == 0


@pytest.mark.real
async def test_two_runs_at_once_share_the_port(write: Write) -> None:
    root = write("  - {vars: {q: a}, assert: [{type: 'trajectory:tool-used', value: look_a}]}\n", SDK)
    both = await asyncio.gather(run(root), run(root))
    assert [attempts[0].outcome for attempts, _ in both] == ["passed", "passed"]


async def test_what_the_record_has_not_of_a_trace_decides_nothing_anew(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracing, "KEPT_SPANS", 3)
    monkeypatch.setattr(tracing, "KEPT_TEXT", 40)
    bot = PLAIN + (
        "def call_api(prompt, options, context):\n"
        "    spans = [span(context['traceparent'], 's', number) for number in range(1, 6)]\n"
        "    spans[4]['status'] = {'code': 2}\n"
        "    spans[4]['attributes'][0]['value']['stringValue'] = 'refund'\n"
        '    long = \'{"pad": "\' + \'x\' * 50 + \'", "q": "end"}\'\n'
        "    spans[0]['attributes'].append({'key': 'gen_ai.tool.call.arguments', 'value': {'stringValue': long}})\n"
        "    post(spans if prompt == 'many' else spans[:1])\n"
        "    return {'output': 'done'}\n"
    )
    tests = """
      - vars: {q: many}
        assert:
          - {type: trace-span-count, value: {pattern: s, max: 4}}
          - {type: trace-error-spans, value: 0}
          - {type: not-trajectory:tool-used, value: refund}
          - {type: javascript, value: "context.trace.spans.every(s => s.statusCode !== 2)"}
          - {type: contains, value: gone}
          - {type: assert-set, assert: [{type: trace-error-spans, value: 0}, {type: contains, value: do}]}
      - vars: {q: long}
        assert:
          - {type: trajectory:tool-args-match, value: {name: s, args: {q: end}}}
          - {type: trace-span-count, value: {pattern: s, max: 4}}
      - vars: {q: many}
        assert:
          - type: assert-set
            threshold: 0.5
            assert: [{type: trace-span-count, value: {pattern: s, max: 4}}, {type: contains, value: do}]
    """
    root = write(tests, bot)
    (many, long, half), active = await run(root)
    assert [verdict.passed for verdict in half.verdicts] == [True, False, True]
    assert [verdict.passed for verdict in many.verdicts] == [False] * 7 + [True]
    assert [verdict.passed for verdict in long.verdicts] == [True, True]
    assert active.writer is not None
    text = (root / "promptfooconfig.yaml").read_text("utf-8")
    (root / "promptfooconfig.yaml").write_text(
        text.replace("value: gone", "value: done").replace("max: 4", "max: 3"), "utf-8"
    )
    again = await asyncio.to_thread(
        rescore, active.writer.folder, overrides=RunRequest(paths=[str(root)], trust=True)
    )
    await again.execute()
    many, long, half = read(again)
    assert [verdict.passed for verdict in half.verdicts][1:] == [None, True] and half.outcome == "error"
    assert [verdict.passed for verdict in many.verdicts] == [
        None,
        False,
        False,
        False,
        True,
        False,
        False,
        True,
    ]
    assert "only a part of the trace is known: 2 of 5 spans are not kept" in many.verdicts[0].reason
    assert many.verdicts[1].reason.endswith("(kept: the record has a part of the trace)")
    assert [verdict.passed for verdict in long.verdicts] == [True, True], "its spans are all there"


async def test_a_trace_of_more_spans_than_are_looked_at_is_no_pass(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MOST_SPANS", 3)
    bot = PLAIN + (
        "def call_api(prompt, options, context):\n"
        "    spans = [span(context['traceparent'], 's', number) for number in range(1, 6)]\n"
        "    spans[4]['status'] = {'code': 2}\n"
        "    post(spans)\n"
        "    return {'output': 'done'}\n"
    )
    tests = (
        "  - assert: [{type: trace-error-spans, value: 0}, {type: not-trajectory:tool-used, value: refund}]\n"
    )
    (attempt,), _ = await run(write(tests, bot))
    assert [verdict.passed for verdict in attempt.verdicts] == [None, None]
    assert "2 more spans arrived than are looked at" in attempt.verdicts[0].reason
