"""Attempts as real runs leave them, one for each way a case goes wrong; for tests of the inspector."""

from __future__ import annotations

from tests.support.judged_evidence import evidenced
from tui_eval.model import Attempt, Case, DataDetails, Entry, Evidence, Exchange, Reply, Turn, Usage, Verdict

HOSTILE = (
    "\x1b]52;c;aGFjaw==\x07 \x1b[2J \x1bP1$r\x1b\\ \x9b31m \x9d0;t\x9c \x00\x0e\x7f\r\x08 "
    "\u202eevil\u2066 \u2028 \ufeff [/] [bold]x[/nope] [@click=app.quit]y[/] \ud800 \x1b]0;title\x07 "
    "\x1b]8;;http://x\x1b\\z\x1b]8;;\x1b\\"
)
"""terminal.md A9: everything that a terminal, or markup, would act upon."""
START = 1_780_000_000.0


def text_failure() -> Attempt:
    """StartToAgent: a conversation of three turns whose last reply lacks a text and has a forbidden one."""
    return evidenced(
        Attempt(
            case_id="suites/refunds.yaml::late refund",
            attempt=2,
            outcome="failed",
            agent="support",
            model="openai:gpt-4.1",
            message="should_contain: 'Refund policy' not found in response; should_not_contain: 'escalat' was found in response",
            score=0.5,
            transcript=[
                Entry(1, "user", text="Hi, I bought a kettle 40 days ago and it broke.", started_at=START),
                Entry(
                    1,
                    "reasoning",
                    text="The customer wants a refund.\nCheck the order first.\nThen the policy.\nThe policy says 30 days.\nSo offer a repair.",
                ),
                Entry(
                    1,
                    "tool_call",
                    name="find_order",
                    arguments={"customer": "c-1041", "item": "kettle"},
                    call_id="c1",
                    started_at=START + 0.4,
                ),
                Entry(
                    1,
                    "tool_result",
                    name="find_order",
                    result={
                        "order": 88231,
                        "bought": "2026-04-18",
                        "price": 39.9,
                        "currency": "EUR",
                        "items": [{"sku": "KT-2", "name": "Kettle 1.7 l", "quantity": 1}],
                        "state": "delivered",
                    },
                    call_id="c1",
                    started_at=START + 1.62,
                ),
                Entry(
                    1,
                    "assistant",
                    text="I am sorry to hear that. I found order **88231**:\n\n| item | price | bought |\n|---|---|---|\n| Kettle 1.7 l | 39.90 | 2026-04-18 |\n\nDo you want a *repair* or a refund?",
                    duration_ms=2300,
                    started_at=START + 1.7,
                ),
                Entry(2, "user", text="A refund please.", started_at=START + 10),
                Entry(
                    2,
                    "tool_call",
                    name="search_knowledge_base",
                    arguments='{"query": "refund after 30 days"}',
                    call_id="c2",
                    started_at=START + 10.2,
                ),
                Entry(
                    2,
                    "tool_call",
                    name="get_plan",
                    arguments={"id": "c-1041"},
                    call_id="c3",
                    started_at=START + 10.2,
                ),
                Entry(
                    2,
                    "tool_result",
                    name="search_knowledge_base",
                    result="Our policy on refunds: within 30 days of purchase.",
                    call_id="c2",
                    started_at=START + 10.5,
                ),
                Entry(
                    2,
                    "tool_result",
                    name="get_plan",
                    error="404: no plan for c-1041",
                    call_id="c3",
                    started_at=START + 10.9,
                ),
                Entry(2, "assistant", text="I checked our rules.", duration_ms=900, started_at=START + 11),
                Entry(3, "user", text="So what now?", started_at=START + 20),
                Entry(
                    3,
                    "assistant",
                    text="Unfortunately the refunds policy covers only 30 days.\n\n## What I can do\n\n- I am escalating this to a colleague.\n- You may use `repair KT-2` in the meantime.",
                    duration_ms=1900,
                    started_at=START + 20.2,
                ),
            ],
            replies=[
                Reply(1, "…", usage=Usage(812, 96), latency_ms=3980),
                Reply(2, "…", usage=Usage(1204, 41), latency_ms=1900),
                Reply(3, "…", usage=Usage(1310, 77), latency_ms=2100),
            ],
            verdicts=[
                Verdict("should_contain", True, "text", "order", score=1, turn=1),
                Verdict(
                    "should_contain",
                    False,
                    "text",
                    "Refund policy",
                    "Unfortunately the refunds policy covers only 30 days.",
                    reason="should_contain: 'Refund policy' not found in response",
                    turn=3,
                    line=14,
                ),
                Verdict(
                    "should_not_contain",
                    False,
                    "text",
                    "escalat",
                    "I am escalating this",
                    reason="should_not_contain: 'escalat' was found in response",
                    turn=3,
                    line=15,
                ),
                Verdict(
                    "tools_used",
                    True,
                    "tools",
                    ["find_order"],
                    ["find_order", "search_knowledge_base", "get_plan"],
                    score=1,
                ),
                Verdict("max_tool_calls", True, "tools", 4, 3, score=1),
            ],
            usage=Usage(3326, 214),
            cost=0.0123,
            tool_call_count=3,
            started_at=START,
            duration_ms=22100,
            exchanges=[
                Exchange(
                    1,
                    '{"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi, I bought a kettle 40 days ago and it broke."}], "api_key": "•••"}',
                    '{"error": "rate limited"}',
                    429,
                    START,
                    212,
                    "retried after 1.0 s",
                ),
                Exchange(
                    1,
                    '{"model": "gpt-4.1", "messages": []}',
                    '{"choices": [{"message": {"content": "…"}}], "usage": {"prompt_tokens": 812}}',
                    200,
                    START + 1.2,
                    2510,
                ),
            ],
            stdout="loading tools.py\nconnected to shop.duckdb\n",
            response_text="Unfortunately the refunds policy covers only 30 days.",
            retries=1,
        )
    )


def wrong_cell() -> Attempt:
    """nao: the right rows in another order, one cell of them differing."""
    expected = [
        {"region": r, "orders": 40 + i, "revenue": 1000.5 + i * 3}
        for i, r in enumerate(("north", "south", "east", "west"))
    ]
    actual = [dict(row) for row in reversed(expected)]
    actual[1]["revenue"] = 1007.25
    return Attempt(
        case_id="tests/revenue.yaml::revenue by region",
        attempt=1,
        outcome="failed",
        agent="analyst",
        model="openai:gpt-4.1",
        message="values differ: 1 of 12 cells (revenue)",
        verdicts=[
            Verdict("sql", False, "rows", reason="values differ: 1 of 12 cells (revenue)", turn=1),
            Verdict(
                "tool_call",
                True,
                "tools",
                {"tool": "run_sql", "min_count": 1},
                [{"name": "run_sql"}],
                1,
                "tool_call: run_sql",
                turn=1,
            ),
        ],
        transcript=[
            Entry(1, "user", text="What is the revenue by region?", started_at=START),
            Entry(
                1,
                "tool_call",
                name="run_sql",
                arguments={
                    "query": "SELECT region, count(*) AS orders, sum(price) AS revenue\nFROM orders\nGROUP BY region"
                },
                call_id="a",
                started_at=START + 1,
            ),
            Entry(
                1,
                "tool_result",
                name="run_sql",
                result={"columns": ["region", "orders", "revenue"], "rows": actual},
                call_id="a",
                started_at=START + 1.8,
            ),
            Entry(
                1, "assistant", text="Here is the revenue by region.", started_at=START + 3, duration_ms=800
            ),
        ],
        data=DataDetails(
            expected,
            actual,
            ["region", "orders", "revenue"],
            "revenue: 1006.5 != 1007.25",
            "SELECT region, count(*) AS orders, sum(price) AS revenue FROM orders GROUP BY 1",
            "SELECT region, count(*) AS orders, sum(price) AS revenue FROM verified GROUP BY 1",
            {"key": ["region"]},
        ),
        usage=Usage(2100, 90),
        started_at=START,
        duration_ms=4100,
        tool_call_count=1,
    )


def missing_row() -> Attempt:
    """nao: a row is missing and there is one too many."""
    attempt = wrong_cell()
    assert attempt.data is not None and attempt.data.actual is not None
    attempt.data.actual = [row for row in attempt.data.actual if row["region"] != "west"]
    attempt.data.actual.append({"region": "centre", "orders": 3, "revenue": None})
    attempt.message = "row count differs: expected 4, got 4; 1 missing, 1 extra"
    return attempt


def hallucinated_argument() -> Attempt:
    """nao: the right tool with an argument that nobody asked for."""
    return evidenced(
        Attempt(
            case_id="tests/orders.yaml::orders in March",
            attempt=1,
            outcome="failed",
            agent="analyst",
            message="tool_call: run_sql: no call with args {'month': '2026-03'}",
            verdicts=[
                Verdict(
                    "tool_call",
                    False,
                    "tools",
                    {"tool": "run_report", "args": {"month": "2026-03", "status": "paid"}},
                    [{"name": "run_report", "arguments": {"month": "2026-05", "status": "paid"}}],
                    reason="missing tool_call: run_report with args {'month': '2026-03'}",
                    turn=1,
                ),
                Verdict(
                    "tools_used",
                    False,
                    "tools",
                    ["run_report", "get_currency"],
                    ["run_report"],
                    reason="tools_used: missing {'get_currency'}",
                ),
            ],
            transcript=[
                Entry(1, "user", text="How many orders were paid in March?"),
                Entry(
                    1,
                    "tool_call",
                    name="run_report",
                    arguments={"month": "2026-05", "status": "paid"},
                    call_id="x",
                    duration_ms=420,
                ),
                Entry(1, "tool_result", name="run_report", result={"orders": 51}, call_id="x"),
                Entry(1, "assistant", text="51 orders were paid in March."),
            ],
            duration_ms=1900,
        )
    )


def agent_error() -> Attempt:
    """The agent could not be reached in the second turn."""
    return Attempt(
        case_id="suites/music.hocon::interactions",
        attempt=3,
        outcome="error",
        agent="music_nerd_pro",
        message="HTTP 503 from http://localhost:8080 after 3 retries",
        error="HTTP 503 from http://localhost:8080 after 3 retries",
        transcript=[
            Entry(1, "user", text="Who wrote Yellow Submarine?"),
            Entry(1, "assistant", agent="music_nerd_pro", text="The Beatles."),
            Entry(2, "user", text="And when?"),
            Entry(2, "error", text="HTTP 503 from http://localhost:8080 after 3 retries"),
        ],
        retries=3,
    )


def multi_agent() -> Attempt:
    """neuro-san: hand-offs between agents, keywords and a judge's gist."""
    return evidenced(
        Attempt(
            case_id="suites/airline.hocon::interactions[connection=http]",
            attempt=1,
            outcome="failed",
            agent="airline_policy",
            message="response.text: gist: does not mention the fee",
            transcript=[
                Entry(1, "user", text="May I take my bike?", started_at=START),
                Entry(
                    1,
                    "hand_off",
                    agent="airline_policy",
                    name="baggage.special_items",
                    arguments={"inquiry": "bicycle", "mode": "determine"},
                ),
                Entry(
                    1,
                    "assistant",
                    agent="airline_policy.baggage.special_items",
                    text="Bicycles travel as special baggage.",
                ),
                Entry(
                    1,
                    "tool_call",
                    agent="airline_policy.baggage.special_items",
                    name="URLProvider",
                    arguments={"app_name": "Bag fees"},
                    call_id="u",
                ),
                Entry(
                    1,
                    "tool_result",
                    agent="airline_policy.baggage.special_items",
                    name="URLProvider",
                    result="https://example.org/fees",
                    call_id="u",
                    duration_ms=14,
                ),
                Entry(1, "assistant", agent="airline_policy", text="Yes, as special baggage."),
            ],
            verdicts=[
                Verdict("keywords", True, "text", "special", score=1, turn=1),
                Verdict(
                    "gist",
                    False,
                    "text",
                    "Says that a bicycle may travel and what the fee is.",
                    "Yes, as special baggage.",
                    0,
                    "the judge says: fail",
                    turn=1,
                    judge={
                        "question": "Acceptance criteria: says that …",
                        "answer": "The reply does not mention the fee. FAIL",
                        "model": "gpt-4.1-mini",
                        "usage": {"input_tokens": 210, "output_tokens": 14},
                    },
                ),
            ],
            duration_ms=5300,
        )
    )


def multi_agent_in_time() -> Attempt:
    """The same network with times: two agents at work beside each other."""
    attempt = multi_agent()
    attempt.started_at = START
    front, bags, fees = "airline_policy", "airline_policy.baggage", "airline_policy.fees"
    attempt.transcript = [
        Entry(1, "user", text="May I take my bike, and what does it cost?", started_at=START),
        Entry(1, "hand_off", agent=front, name="baggage", started_at=START + 0.4),
        Entry(1, "hand_off", agent=front, name="fees", started_at=START + 0.5),
        Entry(1, "tool_call", agent=bags, name="find_rule", arguments={"item": "bike"}, call_id="a", started_at=START + 0.9),
        Entry(1, "tool_call", agent=fees, name="fee_table", arguments={"year": 2026}, call_id="b", started_at=START + 1.0),
        Entry(1, "tool_result", agent=fees, name="fee_table", error="no table of 2026", call_id="b", started_at=START + 1.3),
        Entry(1, "tool_result", agent=bags, name="find_rule", result="special", call_id="a", started_at=START + 3.1),
        Entry(1, "assistant", agent=bags, text="As special baggage.", started_at=START + 3.2, duration_ms=600),
        Entry(1, "assistant", agent=front, text="Yes, as special baggage.", started_at=START + 3.9, duration_ms=1400),
    ]  # fmt: skip
    return attempt


def chat_prompt() -> Attempt:
    """promptfoo: a chat prompt, and a reply that says what was wanted in another unit."""
    prompt = """[
  {"role": "system", "content": "You are the support desk of a shop.\\nStay polite."},
  {"role": "user", "content": "Hello"},
  {"role": "assistant", "content": "Good day, how can I help?"},
  {"role": "user", "content": "How long is the warranty of Model X?"}
]"""
    reply = "Thank you for asking.\n\nThe warranty covers **24 months** from the day of purchase.\nYou can extend it by one year."
    return evidenced(
        Attempt(
            case_id="suites/promptfooconfig.yaml::warranty[prompt=chat.json]",
            attempt=1,
            outcome="failed",
            agent="small",
            transcript=[Entry(1, "user", text=prompt), Entry(1, "assistant", text=reply, duration_ms=370)],
            replies=[Reply(1, reply, latency_ms=370)],
            response_text=reply,
            verdicts=[
                Verdict("icontains", True, "text", "warranty", reply, 1, line=7),
                Verdict("contains", False, "text", "2 years", reply, 0, "lacks it", line=8),
                Verdict(
                    "javascript",
                    False,
                    "text",
                    "output.length < 80",
                    reply,
                    0,
                    "Custom function returned false\noutput.length < 80",
                    line=9,
                    evidence=[
                        Evidence(
                            "rule", "is-false", "111 < 80", rule="output.length < 80", expected=80, actual=111
                        )
                    ],
                ),
            ],
            prompt_sent=prompt,
            duration_ms=376,
        )
    )


def judged() -> Attempt:
    """promptfoo: a rubric, a threshold and an assertion that threw."""
    return evidenced(
        Attempt(
            case_id="suites/promptfooconfig.yaml::Row #3[provider=openai:gpt-4.1]",
            attempt=1,
            outcome="error",
            agent="openai:gpt-4.1",
            message='Expected output to contain "Bonjour"; could not be judged: no judge is configured',
            score=0.33,
            transcript=[
                Entry(1, "user", text='Translate "Hello world, dear friends" to French.'),
                Entry(
                    1,
                    "assistant",
                    text='{"text": "Bonsoir le monde", "language": "fr", "alternatives": ["Salut tout le monde", "Bonjour tout le monde, chers amis et autres gens"]}',
                ),
            ],
            verdicts=[
                Verdict(
                    "equals",
                    False,
                    "text",
                    "Bonjour le monde, chers amis",
                    "Bonsoir le monde, cher ami",
                    0,
                    "Expected output to equal",
                    weight=2,
                ),
                Verdict("is-json", True, "text", score=1),
                Verdict(
                    "llm-rubric",
                    None,
                    "text",
                    "is polite",
                    reason="no judge is configured; set `judge:` in tui_eval.yaml",
                    metric="tone",
                ),
                Verdict("contains-any", True, "text", ["Bonsoir", "Salut"], score=1),
            ],
            prompt_sent='Translate "Hello world, dear friends" to French.',
            vars={"language": "French"},
            cost=0.0004,
            duration_ms=812,
        )
    )


def hostile() -> Attempt:
    """An agent that tries everything, in every place that is shown."""
    bad = {HOSTILE: [HOSTILE, {"k": HOSTILE}], "n": "a\nb" + HOSTILE}
    rows = [{"id": 1, "x" + HOSTILE: HOSTILE}, {"id": 2, "x" + HOSTILE: "fine"}]
    other = [{"id": 1, "x" + HOSTILE: HOSTILE + "!"}, {"id": 3, "x" + HOSTILE: HOSTILE}]
    return evidenced(
        Attempt(
            case_id="suites/bad.yaml::" + HOSTILE,
            attempt=1,
            outcome="failed",
            agent=HOSTILE,
            model=HOSTILE,
            message=HOSTILE,
            error=HOSTILE,
            transcript=[
                Entry(1, "user", agent=HOSTILE, text=HOSTILE),
                Entry(1, "reasoning", text=HOSTILE),
                Entry(1, "tool_call", agent=HOSTILE, name=HOSTILE, arguments=bad, call_id=HOSTILE),
                Entry(1, "tool_result", name=HOSTILE, result=bad, error=HOSTILE, call_id=HOSTILE),
                Entry(1, "hand_off", agent=HOSTILE, name=HOSTILE, arguments=bad, text=HOSTILE),
                Entry(1, "note", text=HOSTILE),
                Entry(1, "error", text=HOSTILE),
                Entry(
                    1,
                    "assistant",
                    text=f"# {HOSTILE}\n| {HOSTILE} | b |\n|---|---|\n| **{HOSTILE}** | `{HOSTILE}` |\n",
                ),
            ],
            verdicts=[
                Verdict(
                    HOSTILE,
                    False,
                    HOSTILE,
                    HOSTILE,
                    HOSTILE + "x",
                    reason=HOSTILE,
                    turn=1,
                    metric=HOSTILE,
                    judge={"question": HOSTILE, "answer": HOSTILE, "model": HOSTILE},
                ),
                Verdict("should_contain", False, "text", HOSTILE, bad, reason=HOSTILE, turn=1),
                Verdict("tool_call", None, "tools", bad, bad, reason=HOSTILE, turn=1),
                Verdict("sql", False, "rows", reason=HOSTILE, turn=1),
            ],
            exchanges=[Exchange(1, HOSTILE, HOSTILE, 500, START, 12, HOSTILE)],
            data=DataDetails(rows, other, ["id", "x" + HOSTILE], HOSTILE, HOSTILE, HOSTILE, {"key": ["id"]}),
            stdout=HOSTILE,
            prompt_sent=HOSTILE,
            response_text=HOSTILE,
        )
    )


def huge(turns: int = 200, characters: int = 1_000_000) -> Attempt:
    """Many turns, each with a tool result, two of them very long."""
    transcript: list[Entry] = []
    for turn in range(1, turns + 1):
        result = {"rows": [{"n": n, "text": f"row {n} of turn {turn}"} for n in range(6)]}
        transcript += [
            Entry(turn, "user", text=f"Question {turn}: what is the state of order {turn * 17}?"),
            Entry(turn, "tool_call", name="find_order", arguments={"order": turn * 17}, call_id=f"c{turn}"),
            Entry(
                turn,
                "tool_result",
                name="find_order",
                result=result if turn % 50 else "x y " * (characters // 4),
                call_id=f"c{turn}",
                duration_ms=turn,
            ),
            Entry(turn, "assistant", text=f"Order {turn * 17} is **delivered**. " * 8),
        ]
    return Attempt(
        case_id="suites/huge.yaml::huge", attempt=1, outcome="passed", agent="support", transcript=transcript
    )


def case_for(attempt: Attempt, name: str | None = None) -> Case:
    """A case that the attempt may have come from."""
    suite, _, rest = attempt.case_id.partition("::")
    prompts = [entry for entry in attempt.transcript if entry.kind == "user"]
    return Case(
        case_id=attempt.case_id,
        name=name or rest,
        suite=suite,
        format="start_to_agent",
        turns=[Turn(entry.text) for entry in prompts],
        line=12,
    )


EVERY = (
    text_failure,
    wrong_cell,
    missing_row,
    hallucinated_argument,
    agent_error,
    multi_agent,
    judged,
    hostile,
)
"""One of each (all but the huge one)."""
