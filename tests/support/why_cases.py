"""One failing case for each family of assertions, judged by the real rules, with replies as agents write them."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from tests.support.judging import GivenHosts
from tests.support.promptfoo_cases import assertion_from
from tui_eval.assertions import JudgeAnswer, JudgeInput, JudgeServices, Reports, RowsAnswer
from tui_eval.formats import judge
from tui_eval.frames.sql import SqlResult
from tui_eval.guard.trust import Trust
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.model import (
    Assertion,
    Attempt,
    Case,
    Entry,
    Reply,
    Trace,
    TraceSpan,
    Turn,
    Usage,
)
from tui_eval.scripting.python.python_host import PythonHost

START = 1_780_000_000.0
REPLY = """Thanks for asking! Our **Pro** plan costs €79 per month and is billed every month; paid by the year it is two months cheaper.

| plan | price | for |
|---|---:|---|
| Pro | €79 | one person, unlimited projects |
| Team | €149 | up to ten people, a shared work space |

You can return any device within 30 days; the refund reaches your account after about five working days.
Would you like me to set up a trial for you?"""
ORDER = '{"order": "48213", "total": "39.90", "items": [{"sku": "KT-2", "quantity": 0}], "note": "gift"}'
SCHEMA = {
    "type": "object",
    "required": ["order", "total", "items"],
    "properties": {
        "order": {"type": "string"},
        "total": {"type": "number"},
        "items": {"type": "array", "items": {"type": "object", "properties": {"quantity": {"minimum": 1}}}},
    },
}
CALLS = [
    ("search_knowledge_base", {"query": "refund", "limit": 3}, [{"id": "kb-12", "title": "Plans"}], None),
    ("lookup_order", {"order": "48213", "fields": {"weight": True, "carrier": "DHL"}}, {"found": True}, None),
    ("lookup_order", {"order": "48214", "fields": {"weight": False}}, None, "no such order"),
]
QUESTION = "What does the Pro plan cost, and how do I send a device back?"


@dataclass(frozen=True)
class Why:
    """A failing case, and the words that must stand on the Case screen at 80x24: when it opens, and after `d`."""

    name: str
    format: str
    asserted: Any
    opens: tuple[str, ...] = ()
    d: tuple[str, ...] = ()
    reply: str = REPLY
    answers: tuple[Any, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)


def entries(reply: str) -> list[Entry]:
    """A turn with three calls, one of which failed."""
    found = [Entry(1, "user", text=QUESTION, started_at=START)]
    for index, (name, arguments, result, error) in enumerate(CALLS):
        call_id = f"c{index}"
        at = START + 0.3 * (index + 1)
        found.append(Entry(1, "tool_call", name=name, arguments=arguments, call_id=call_id, started_at=at))
        found.append(
            Entry(
                1, "tool_result", name=name, result=result, error=error, call_id=call_id, started_at=at + 0.2
            )
        )
    found.append(Entry(1, "assistant", text=reply, started_at=START + 1.5, duration_ms=900))
    return found


def trace() -> Trace:
    """What the agent exported: a model, tools, a search, an error."""

    def span(number: int, name: str, start: float, end: float, **more: Any) -> TraceSpan:
        return TraceSpan(f"{number:016x}", name, start=start, end=end, **more)

    base = START * 1000
    return Trace(
        "0" * 32,
        spans=[
            span(1, "agent run", base, base + 2400),
            span(2, "chat gpt-4.1", base + 10, base + 1200),
            span(3, "execute_tool search_orders", base + 1210, base + 1400,
                 attributes={"tool.name": "search_orders", "tool.arguments": '{"id": "42", "limit": 10}'}),
            span(4, "execute_tool get_policy", base + 1400, base + 1450, attributes={"tool.name": "get_policy", "tool.arguments": '{"topic": "returns"}'}),
            span(5, "GET /orders", base + 1210, base + 1390, status=2, message="503 upstream"),
        ],
    )  # fmt: skip


def services(answers: tuple[Any, ...], **more: Any) -> JudgeServices:
    """A judge that gives these answers, vectors that are nearly at right angles, rows for nao."""
    left = [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]

    async def ask(system: str | None, prompt: str, schema: dict[str, Any] | None) -> JudgeAnswer:
        return JudgeAnswer(left.pop(0), "gpt-4.1-mini", Usage(412, 38))

    async def embed(provider: Any, texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0], [0.62, math.sqrt(1 - 0.62**2)]][: len(texts)]

    return JudgeServices(
        ask_judge=ask if answers else None, judge_name="j", embed=embed, trust=Trust(True), **more
    )


async def attempt_of(why: Why, hosts: JudgeServices | None = None) -> Attempt:
    """The case judged, as the engine would keep it."""
    values = dict(why.more)
    reply = Reply(
        1, why.reply, metadata=values.pop("metadata", None), usage=Usage(1480, 2847), latency_ms=2412.0, cost=0.0128,
        **values.pop("answered", {}),
    )  # fmt: skip
    case = Case(f"suite.yaml::{why.name}", why.name, "suite.yaml", why.format, turns=[Turn(QUESTION)])
    given = why.asserted
    if why.format == "promptfoo":
        case.turns = [Turn("{{prompt}}", [assertion_from(given)])]
        case.provider = values.pop("provider", None)
    elif why.format == "neuro_san":
        case.turns = [Turn(QUESTION, [Assertion(given[1], given[2], given[0], 1)])]
    elif why.format == "start_to_agent":
        case.assertions = [Assertion(*given)]
    else:
        case.assertions = [Assertion(given[0], given[1], "rows" if given[0] == "sql" else "tools")]
    transcript = values.pop("transcript", None) or entries(why.reply)
    more: dict[str, Any] = {}
    if why.format == "nao":
        more = {"run_sql": _expected_rows, "rows": _answered_rows}
    evidence = JudgeInput(
        case,
        [reply],
        transcript,
        Reports(True, True, True, True, True),
        usage=Usage(1480, 2847),
        tool_call_count=3,
        duration_ms=2412.0,
        cost=0.0128,
        vars=values.pop("vars", {}),
        prompt_sent=QUESTION,
        services=services(why.answers, **more),
        trace=values.pop("trace", None),
    )
    if hosts is not None:
        evidence.services.hosts = hosts.hosts
        evidence.services.root, evidence.services.base = hosts.root, hosts.base
    assert not values, values
    found = await judge(evidence)
    return Attempt(
        case.case_id,
        1,
        found.outcome,
        agent="support",
        model="openai:gpt-4.1",
        message=found.message,
        score=found.score,
        verdicts=found.verdicts,
        transcript=transcript,
        replies=[reply],
        data=found.data,
        usage=Usage(1480, 2847),
        cost=0.0128,
        started_at=START,
        duration_ms=2412.0,
    )


def all_judged(folder: Path) -> dict[str, Attempt]:
    """All cases by their names, judged with the hosts of people's code."""

    async def all_of_them() -> dict[str, Attempt]:
        javascript, python = JavaScriptHost(), PythonHost(folder)
        hosts = JudgeServices(
            hosts=GivenHosts(python, javascript), trust=Trust(True), root=folder, base=folder
        )
        try:
            return {why.name: await attempt_of(why, hosts) for why in CASES}
        finally:
            javascript.close()
            python.close()

    return asyncio.run(all_of_them())


def _table(revenue: list[float]) -> pl.DataFrame:
    return pl.DataFrame({"month": ["2024-03", "2024-04", "2024-05"], "revenue": revenue})


async def _expected_rows(database: str | None, sql: str) -> SqlResult:
    frame = _table([5210.5, 4792.0, 6100.25])
    return SqlResult(frame.columns, frame)


async def _answered_rows(columns: list[str]) -> RowsAnswer:
    return RowsAnswer(_table([5210.5, 5280.85, 6100.25]).to_dicts(), sql="select 1")


def _p(kind: str, value: Any = None, **more: Any) -> dict[str, Any]:
    given = {"type": kind, "value": value, **more.pop("extra", {})}
    return {key: item for key, item in given.items() if item is not None or key == "type"}


def pf(kind: str, value: Any = None, name: str = "", **more: Any) -> Why:
    """A case of promptfoo's."""
    keys = {key: more.pop(key) for key in ("threshold", "config") if key in more}
    words = {key: more.pop(key) for key in ("opens", "d", "reply", "answers") if key in more}

    return Why(name or kind, "promptfoo", _p(kind, value, extra=keys), more=more, **words)


MARKDOWN_SQL = "Here it is:\n```sql\nSELECT name, FROM customers\n```"
TOOLS_CONFIG = {
    "id": "openai:gpt-4.1",
    "config": {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "lookup_order",
                    "parameters": {
                        "type": "object",
                        "required": ["order"],
                        "properties": {"order": {"type": "string"}},
                    },
                },
            }
        ],
        "functions": [
            {
                "name": "lookup_order",
                "parameters": {"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}},
            }
        ],
    },
}  # fmt: skip
TOOLS_CALL = json.dumps(
    [{"type": "function", "function": {"name": "lookup_order", "arguments": '{"order": 48213}'}}]
)
CONTEXT = {"context": "Berlin is large. It lies on the Spree.", "query": "Where is Berlin?"}
GRADE = {"pass": False, "score": 0.3, "reason": "The reply names a price but never says what the yearly plan costs, which was asked for outright."}  # fmt: skip

CASES = [
    # nao
    Why("nao sql", "nao", ("sql", "select month, revenue from t")),
    Why("nao tool_call args", "nao", ("tool_call", {"tool": "lookup_order", "args": {"order": "48214", "fields": {"weight": True}}})),
    Why("nao tool_call never", "nao", ("tool_call", {"tool": "look_up_order"})),
    Why("nao tool_call count", "nao", ("tool_call", {"tool": "lookup_order", "min_count": 5})),
    # StartToAgent
    Why("should_contain", "start_to_agent", ("should_contain", "return any device within 14 days")),
    Why("should_not_contain", "start_to_agent", ("should_not_contain", "refund")),
    Why("escalated", "start_to_agent", ("escalated", True, "metadata.escalated"), more={"metadata": {"escalated": False, "language": "en"}}),
    Why("escalation_priority", "start_to_agent", ("escalation_priority", "high", "metadata.escalation_priority"), more={"metadata": {"escalated": True}}),
    Why("tools_used", "start_to_agent", ("tools_used", ["look_up_order", "create_ticket"], "tools")),
    Why("max_tool_calls", "start_to_agent", ("max_tool_calls", 2, "tools")),
    Why("max_input_tokens", "start_to_agent", ("max_input_tokens", 1000, "usage.input_tokens")),
    Why("max_output_tokens", "start_to_agent", ("max_output_tokens", 2000, "usage.output_tokens")),
    Why("metadata of one's own", "start_to_agent", ("language", "de", "metadata.language"), more={"metadata": {"lang": "de"}}),
    # neuro-san
    Why("ns value", "neuro_san", ("structure.order.total", "value", 39.9), more={"answered": {"structure": {"order": {"total": 40.5}}}}),
    Why("ns value text", "neuro_san", ("text", "value", REPLY.replace("30 days", "14 days"))),
    Why("ns not_value", "neuro_san", ("structure.state", "not_value", "open"), more={"answered": {"structure": {"state": "open"}}}),
    Why("ns keywords", "neuro_san", ("text", "keywords", "refund policy")),
    Why("ns not_keywords", "neuro_san", ("text", "not_keywords", "refund")),
    Why("ns keywords list", "neuro_san", ("sly_data.cities", "keywords", "Lyon"), more={"answered": {"sly_data": {"cities": ["Paris", "Lille"]}}}),
    Why("ns less", "neuro_san", ("structure.price", "less", 1500), more={"answered": {"structure": {"price": 1725}}}),
    Why("ns greater", "neuro_san", ("structure.stars", "greater", 4), more={"answered": {"structure": {"stars": 3}}}),
    Why("ns missing path", "neuro_san", ("structure.order.total", "value", 39.9), more={"answered": {"structure": {"order": {"sum": 39.9}}}}),
    Why("ns gist", "neuro_san", ("text", "gist", "The yearly price is named."), answers=("fail: the yearly price is missing",)),
    Why("ns not_gist", "neuro_san", ("text", "not_gist", "A refund is promised."), answers=("pass",)),
    # promptfoo: text
    pf("equals", REPLY.replace("five working", "six working")),
    pf("equals", {"order": "48213", "total": 39.9}, name="equals object", reply=ORDER),
    pf("not-equals", REPLY),
    pf("contains", "within 14 days"),
    pf("not-contains", "refund"),
    pf("icontains", "RETURN POLICY"),
    pf("contains-any", ["14 days", "two weeks"]),
    pf("contains-all", ["€79", "€149", "VAT included"]),
    pf("icontains-any", "fortnight, two weeks"),
    pf("icontains-all", ["pro", "enterprise"]),
    pf("starts-with", "Hello! Our Pro plan"),
    pf("not-starts-with", "Thanks"),
    pf("regex", r"within (14|15) days"),
    pf("regex", r"(?<=costs )€\d{3}(?= per month)", name="regex lookaround"),
    pf("not-regex", r"(?<=costs )€\d+(?= per month)", name="not-regex lookaround"),
    pf("not-regex", r"€\d+"),
    pf("levenshtein", "Our Pro plan costs €79 per month.", reply="Our Pro plan costs €89 each month.", threshold=2),
    pf("rouge-n", "The plan is 79 euros, and devices come back in two weeks."),
    pf("bleu", "The plan is 79 euros, and devices come back in two weeks."),
    pf("gleu", "The plan is 79 euros, and devices come back in two weeks."),
    pf("meteor", "The plan is 79 euros, and devices come back in two weeks."),
    pf("word-count", {"min": 10, "max": 40}),
    pf("word-count", 12, name="word-count exact"),
    pf("cost", threshold=0.01),
    pf("latency", threshold=2000),
    pf("perplexity", threshold=1.2, answered={"log_probs": [-0.4, -0.3, -0.9]}),
    pf("finish-reason", "stop", answered={"finish_reason": "length"}),
    pf("is-refusal"),
    pf("not-is-refusal", reply="I'm sorry, but I can't help with that request; I can only answer questions on orders."),
    pf("guardrails", answered={"guardrails": {"flagged": True, "flaggedOutput": True, "reason": "insults"}}),
    # structural
    pf("is-json"),
    pf("is-json", name="is-json broken", reply=ORDER[:70]),
    pf("is-json", SCHEMA, name="is-json schema", reply=ORDER),
    pf("is-json", {"properties": {"total": {}}, "additionalProperties": False}, name="is-json extra", reply='{"total": 1, "mood": "cosy"}'),
    pf("not-is-json", reply=ORDER),
    pf("contains-json", name="contains-json none"),
    pf("contains-json", SCHEMA, name="contains-json schema", reply=f"Here is your order:\n{ORDER}\nAnything else?"),
    pf("is-xml", reply="<order><total>39.90</totl></order>"),
    pf("is-xml", "order.total,order.state", name="is-xml elements", reply="<order><total>39.90</total></order>"),
    pf("contains-xml", "order.state", reply="Look: <order><total>39.90</total></order> - fine?"),
    pf("is-sql", reply="SELEC name FROM customers"),
    pf("is-sql", {"databaseType": "MySQL", "allowedTables": ["select::null::orders"]}, name="is-sql tables", reply="SELECT name FROM customers"),
    pf("contains-sql", reply=MARKDOWN_SQL),
    pf("is-html", reply="just words <p>and a paragraph</p>"),
    pf("contains-html", reply="no markup here"),
    pf("is-valid-openai-tools-call", reply=TOOLS_CALL, provider=TOOLS_CONFIG),
    pf("is-valid-openai-function-call", reply='{"name": "lookup_order", "arguments": "{\\"order\\": 1}"}', provider=TOOLS_CONFIG),
    pf("is-valid-function-call", reply='{"name": "look_up", "arguments": "{}"}', provider=TOOLS_CONFIG),
    pf("tool-call-f1", ["lookup_order", "create_ticket"], reply=TOOLS_CALL),
    pf("skill-used", ["pdf", "xlsx"], metadata={"skillCalls": [{"name": "pdf"}, {"name": "web-search"}]}),
    # traces
    pf("trajectory:tool-used", ["search_orders", "create_ticket"], trace=trace()),
    pf("not-trajectory:tool-used", ["search_orders"], trace=trace()),
    pf("trajectory:tool-used", {"name": "search_orders", "max": 0}, name="tool-used count", trace=trace()),
    pf("trajectory:tool-sequence", ["get_policy", "search_orders"], trace=trace()),
    pf("trajectory:tool-args-match", {"name": "search_orders", "args": {"id": 42}}, trace=trace()),
    pf("trajectory:step-count", {"type": "tool", "max": 1}, trace=trace()),
    pf("trace-span-count", {"pattern": "chat*", "min": 2}, trace=trace()),
    pf("trace-span-duration", {"max": 500}, trace=trace()),
    pf("trace-error-spans", 0, trace=trace()),
    # graded
    pf("llm-rubric", "names the yearly price", answers=(GRADE,)),
    pf("agent-rubric", "names the yearly price", answers=(GRADE,)),
    pf("search-rubric", "is true today", answers=(GRADE,)),
    pf("g-eval", "is coherent and complete", answers=({"steps": ["read the reply", "look for the price"]}, {"score": 3, "reason": "The price is there, the yearly one is not."})),
    pf("factuality", "The Pro plan costs €89 a month.", answers=({"category": "D", "reason": "The reply says 79, the reference 89."},)),
    pf("model-graded-closedqa", "names the yearly price", answers=("It only names the monthly price.\nN",)),
    pf("answer-relevance", answers=({"questions": ["What does Pro cost?"]}, {"reason": "half of the question is left open", "score": 0.4}), threshold=0.7),
    pf("context-faithfulness", threshold=0.9, vars=CONTEXT, answers=({"statements": [{"statement": "Pro costs 79", "supported": True}, {"statement": "Refunds take five days", "supported": "no"}]},)),
    pf("context-recall", "Berlin is large. It has 3.8 million people.", threshold=0.9, vars=CONTEXT, answers=("Berlin is large. [Attributed]\nIt has 3.8 million people. [Not Attributed]",)),
    pf("context-relevance", threshold=0.9, vars=CONTEXT, answers=({"relevant": ["It lies on the Spree."]},)),
    pf("conversation-relevance", threshold=0.9, vars={"_conversation": [{"input": "hi", "output": "hello"}]}, answers=({"verdict": "yes"}, {"verdict": "no", "reason": "The second reply answers another question."})),
    pf("moderation", ["hate"], answers=({"flagged": True, "reason": "hate"},)),
    pf("trajectory:goal-success", "the order is found and a ticket opened", answers=({"pass": False, "reason": "No ticket was opened."},)),
    pf("similar", "The plan is 79 euros, and devices come back in two weeks.", threshold=0.8),
    pf("classifier", "polite"),
    pf("pi", "polite"),
    # code
    pf("javascript", "output.length < 100"),
    pf("javascript", "const words = output.split(' ').length;\nreturn {pass: words < 20, score: 0.2, reason: `${words} words, at most 20 are wanted`};", name="javascript reason"),
    pf("javascript", "output.foo.bar", name="javascript throws"),
    pf("python", "len(output) < 100"),
    pf("python", "1 / 0", name="python throws"),
]  # fmt: skip
