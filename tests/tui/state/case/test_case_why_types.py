"""Every family of assertions, judged for real: why it failed stands on the first screen at 80x24, in the
Transcript beside the turn and in Assertions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.case_host import host, loaded, screen_text, sees
from tests.support.why_cases import CASES, Why, all_judged
from tests.tui.state.case.test_case_why import replied
from tui_eval import causes
from tui_eval.formats.promptfoo.judge import registry
from tui_eval.model import Attempt, Entry, Reply, Verdict
from tui_eval.tui.state.case import assertions_view
from tui_eval.tui.state.case.explain import explained, explanations
from tui_eval.tui.state.case.transcript_view import build
from tui_eval.tui.state.case.verdict_lines import about_rows, reason_of
from tui_eval.tui.state.text.block_layout import Layouter
from tui_eval.tui.state.text.lines import plain

ROWS, COLUMNS = 20, 66
"""What a tab has for text at 80x24."""
WORDS: dict[str, tuple[str, ...]] = {
    "nao tool_call args": ("closest is call 2 in turn 1", 'order: "48214"  ≠ "48213"'),
    "nao tool_call never": ("the nearest name is lookup_order",),
    "nao tool_call count": ("2 calls of lookup_order, at least 5 wanted",),
    "should_contain": ("the nearest is 2 characters away", "wanted  return any device within 14 days"),
    "should_not_contain": ('"refund" stands there once', "the refund reaches"),
    "escalated": ("escalated ≠ true: false",),
    "escalation_priority": ("metadata has no escalation_priority; it has escalated",),
    "tools_used": ("look_up_order was not called; the nearest name is lookup_order", "create_ticket was not called"),
    "max_tool_calls": ("3 of 2: 1 over",),
    "max_input_tokens": ("1,480 of 1,000: 480 over, 1.5 times",),
    "max_output_tokens": ("2,847 of 2,000: 847 over",),
    "metadata of one's own": ("metadata.language is not there", "it has lang"),
    "ns value": ("structure.order.total ≠ 39.9: 40.5",),
    "ns value text": ("line 8", "within 14 days", "within 30 days"),
    "ns not_value": ('structure.state = "open"',),
    "ns keywords": ('lacks "refund policy"',),
    "ns not_keywords": ('"refund" stands there once',),
    "ns keywords list": ('cities: lacks "Lyon"',),
    "ns less": ("structure.price: 1,725 ≥ 1,500",),
    "ns greater": ("structure.stars: 3 ≤ 4",),
    "ns missing path": ("structure.order has no total; it has sum",),
    "ns gist": ("judge: does not match: The yearly price is named.", "fail: the yearly price is missing"),
    "ns not_gist": ("judge: matches: A refund is promised.",),
    "equals": ("≠ …r about six working days.", "line 8", "about six working days", "about five working days"),
    "equals object": ('$.total: 39.9  ≠ "39.90"', '$.note: "gift"  not expected'),
    "not-equals": ('= "Thanks for asking! Our **Pro** plan',),
    "contains": ("the nearest is 2 characters away", "within 30 days"),
    "not-contains": ('"refund" stands there once',),
    "icontains": ("nor anything like it",),
    "contains-any": ('"14 days" is not there; the nearest is', '"two weeks" is not there'),
    "contains-all": ('✓ "€79" stands there 2 times', '✗ "VAT included" is not there'),
    "icontains-any": ('"fortnight" is not there',),
    "icontains-all": ('✗ "enterprise" is not there',),
    "starts-with": ("the reply begins otherwise", "reply   Thanks for asking!"),
    "not-starts-with": ('the reply begins with "Thanks"',),
    "regex": ("matches nothing", "its text stands here"),
    "regex lookaround": ("matches nothing",),
    "not-regex lookaround": ('"€79" stands there once', "plan costs €79 per month"),
    "not-regex": ('"€79" stands there 2 times',),
    "levenshtein": ("5 > 2 distance", "€89 each month"),
    "rouge-n": ("6 of 12 expected words are in the reply",),
    "bleu": ("6 of 12 expected words are in the reply",),
    "gleu": ("6 of 12 expected words are in the reply",),
    "meteor": ("6 of 12 expected words are in the reply",),
    "word-count": ("85 > 40 words",),
    "word-count exact": ("85 ≠ 12 words",),
    "cost": ("$0.0128 of $0.0100: $0.0028 over, 1.3 times",),
    "latency": ("2.4s of 2.0s: 412ms over, 1.2 times",),
    "perplexity": ("1.705 > 1.2 perplexity",),
    "finish-reason": ('finish reason ≠ "stop": "length"',),
    "is-refusal": ("no refusal", "Our Pro plan costs"),
    "not-is-refusal": ('"I\'m sorry" stands there once',),
    "guardrails": ("guardrails: insults",),
    "is-json": ("no JSON from line 1 on: Expecting value",),
    "is-json broken": ("Unterminated string", '"items": [{"sku": "KT-2"'),
    "is-json extra": ("rule    has 'mood', which is not allowed",),
    "is-json schema": ("at      $.total", "rule    must be number", 'is      "39.90"', '{"type": "number"}'),
    "not-is-json": ("the reply is JSON",),
    "contains-json none": ("there is no { in the reply",),
    "contains-json schema": ("at      $.total", "rule    must be number"),
    "is-xml": ("line 1, column 22: mismatched tag",),
    "is-xml elements": ("✓ order.total", "order has no state; it has total"),
    "contains-xml": ("order has no state; it has total",),
    "is-sql": ("line 1, column 15", "SELEC name FROM customers"),
    "is-sql tables": ("select::null::customers", "select::null::orders"),
    "contains-sql": ("1 fenced block tried", "SELECT name, FROM customers"),
    "is-html": ("Output must be wrapped in HTML tags", "just words"),
    "contains-html": ("Expected output to contain HTML content", "no markup here"),
    "is-valid-openai-tools-call": ("only calls that the provider reports count",),
    "is-valid-openai-function-call": ("only calls that the provider reports count",),
    "is-valid-function-call": ("only calls that the provider reports count",),
    "tool-call-f1": ("✓ lookup_order was called", "✗ create_ticket was not called"),
    "skill-used": ("✗ xlsx was not called", "+ web-search called"),
    "trajectory:tool-used": ("✓ search_orders was called as step 1", "✗ create_ticket was not called"),
    "not-trajectory:tool-used": ("✗ search_orders was called as step 1",),
    "tool-used count": ("1 calls of search_orders, at most 0 wanted",),
    "trajectory:tool-sequence": ("✓ get_policy was step 2", "✗ search_orders not after step 2; it was step 1"),
    "trajectory:tool-args-match": ("search_orders closest is call 1", 'id: 42  ≠ "42"'),
    "trajectory:step-count": ("2 > 1 steps", "search_orders", "get_policy"),
    "trace-span-count": ("1 < 2 spans",),
    "trace-span-duration": ("agent run", "2.4 s > 500 ms"),
    "trace-error-spans": ("GET /orders (503",),
    "llm-rubric": ("never says what the yearly plan costs", "answered pass false · score 0.3"),
    "agent-rubric": ("never says what the yearly plan costs", "answered pass false · score 0.3"),
    "search-rubric": ("a grader that searches the web is needed",),
    "g-eval": ("The price is there, the yearly one is not.",),
    "factuality": ("The reply says 79, the reference 89.", 'answered category "D"'),
    "model-graded-closedqa": ("It only names the monthly price.",),
    "answer-relevance": ("0.62 < 0.7 relevance", "What does Pro cost?"),
    "context-faithfulness": ("0.5 < 0.9 faithfulness", "Refunds take five days"),
    "context-recall": ("0.5 < 0.9 recall", "[Not Attributed]"),
    "context-relevance": ("0.5 < 0.9 relevance", "It lies on the Spree."),
    "conversation-relevance": ("The second reply answers another",),
    "moderation": ("flagged: hate",),
    "trajectory:goal-success": ("No ticket was opened.",),
    "similar": ("0.62 < 0.8 similarity", "devices come back in two"),
    "classifier": ("no classifier is named; write provider",),
    "pi": ("is not judged by this version",),
    "javascript": ("418 < 100 is false", "output.length < 100", "Our Pro plan costs"),
    "javascript reason": ("79 words, at most 20 are wanted",),
    "javascript throws": ("cannot read property 'bar'", "output.foo.bar"),
    "python": ("418 < 100 is false", "len(output) < 100"),
    "python throws": ("division by zero", "1 / 0"),
}  # fmt: skip


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Attempt]:
    return all_judged(tmp_path_factory.mktemp("why"))


def rows_of(attempt: Attempt) -> list[str]:
    """The first screen of Assertions."""
    layouter = Layouter()
    layouter.width = COLUMNS
    blocks = assertions_view.build(attempt, known=explanations(attempt))
    return [plain(row.spans) for row in layouter.layout(blocks).rows[:ROWS]]


def joined(rows: list[str]) -> str:
    """Rows as one text, so that it does not matter where they are broken."""
    return " ".join(" ".join(rows).split())


@pytest.mark.parametrize("why", [why for why in CASES if why.name != "nao sql"], ids=lambda why: why.name)
def test_why_is_on_the_first_screen(why: Why, judged: dict[str, Attempt]) -> None:
    attempt = judged[why.name]
    assert attempt.outcome in ("failed", "error")
    said = joined(rows_of(attempt))
    for words in WORDS[why.name]:
        assert " ".join(words.split()) in said, rows_of(attempt)


def test_every_type_that_is_judged_has_a_failing_case(judged: dict[str, Attempt]) -> None:
    types = {verdict.type.removeprefix("not-") for attempt in judged.values() for verdict in attempt.verdicts}
    same = {"similar:cosine": "similar", "similar:dot": "similar", "similar:euclidean": "similar"}
    same |= {"model-graded-factuality": "factuality", "perplexity-score": "perplexity"}
    elsewhere = {"ruby", "webhook"}  # need a Ruby, or a server; their reasons are as javascript's
    wanted = {same.get(kind, kind) for kind in registry.CHECKS} - elsewhere
    assert wanted <= types, wanted - types


@pytest.mark.parametrize("why", CASES, ids=lambda why: why.name)
def test_beside_the_turn_it_is_short(why: Why, judged: dict[str, Attempt]) -> None:
    blocks = build(judged[why.name]).blocks
    layouter = Layouter()
    layouter.width = COLUMNS
    layout = layouter.layout(blocks)
    at = next(i for i, block in enumerate(blocks) if block.failing and block.kind == "verdict")
    rows = [row for row in layout.rows if row.block == at]
    assert 1 <= len(rows) <= 10, [plain(row.spans) for row in rows]


def test_the_line_that_says_why_needs_no_other_beside_it(judged: dict[str, Attempt]) -> None:
    def line(name: str) -> str:
        return causes.cause_of(judged[name])

    assert line("equals").startswith("≠ …r about six working days.")
    assert line("equals object") == '$.total ≠ 39.9: "39.90"; $.items not expected and 1 more'
    assert line("ns less") == "structure.price: 1,725 ≥ 1,500"
    assert line("ns keywords") == 'lacks "refund policy"'
    assert line("ns missing path") == "structure.order.total is not there"
    assert line("moderation") == "flagged: hate"
    for name, attempt in judged.items():
        if not any(about_rows(verdict) for verdict in attempt.verdicts):
            assert "Thanks for asking! Our **Pro** plan costs €79 per month and is" not in line(name), name


@pytest.mark.parametrize("name", ["should_contain", "ns gist", "equals", "trajectory:tool-args-match"])
async def test_a_long_reply_and_its_verdict_are_seen_when_the_case_opens(
    tmp_path: Path, judged: dict[str, Attempt], name: str
) -> None:
    app = host(tmp_path, judged[name])
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await sees(pilot, "✗ failed   ", "Would you like me to set up a trial for you?")
        assert screen_text(app).count("✗ failed") >= 2  # the head, and the verdict beside the turn


def test_where_a_text_stands_that_the_reply_lacks() -> None:
    verdict = Verdict("should_contain", False, "text", "48213", reason="not found")
    attempt = Attempt("s::n", 1, "failed", verdicts=[verdict])
    assert replied("Which order is it about?", verdict)[-1].endswith("nor anything like it")
    attempt.transcript = [
        Entry(1, "user", text="it's about order 48213"),
        Entry(2, "tool_call", name="lookup_order", arguments={"order": "48213"}),
        Entry(3, "assistant", text="Which order is it about?"),
    ]
    attempt.replies = [Reply(3, "Which order is it about?")]
    said = [plain(line) for line in explained(verdict, attempt)]
    assert said[-1] == "  it stands elsewhere: turn 1 (user), turn 2 (call of lookup_order)"


def test_another_reply_that_holds_the_text_is_named_before_what_was_asked_of_helpers() -> None:
    verdict = Verdict("should_contain", False, "text", "Alfama", reason="not found")
    assert replied("Stay in Saldanha.", verdict)
    verdict.turn = 2
    attempt = Attempt("n::n", 1, "failed", verdicts=[verdict])
    attempt.transcript = [
        Entry(1, "user", text="Where?"),
        Entry(1, "hand_off", name="planner.hotels", arguments={"area": "Alfama"}),
        Entry(1, "tool_call", agent="planner.hotels", name="find", arguments={"area": "Alfama"}),
        Entry(1, "assistant", agent="planner.hotels", text="Alfama Lofts."),
        Entry(1, "assistant", text="Stay in Alfama."),
        Entry(2, "assistant", text="Stay in Saldanha."),
        Entry(3, "assistant", text="As I said, Alfama."),
    ]
    attempt.replies = [Reply(2, "Stay in Saldanha.")]
    said = [plain(line) for line in explained(verdict, attempt)]
    assert said[-1] == (
        "  it stands elsewhere: turn 1 (reply), turn 3 (reply), turn 1 (hand-off to hotels) and more"
    )


def test_fields_that_javascript_takes_for_equal_are_not_said_to_differ() -> None:
    """promptfoo's `equals` judges numbers as doubles: beyond 2**53 neighbours are the same."""
    reply = '{"id": 9007199254740993, "total": 2}'
    verdict = Verdict(
        type="equals", target="text", expected={"id": 9007199254740992, "total": 1}, actual=reply, passed=False,
        score=0.0, reason="Expected output",
    )  # fmt: skip
    assert replied(reply, verdict) == ["$.total: 1  ≠ 2"]
    assert reason_of(verdict) == "$.total ≠ 1: 2"
