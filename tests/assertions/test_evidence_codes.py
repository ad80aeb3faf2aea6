"""What every assertion type of the four formats writes as evidence when it fails, and the few words made of it.

A type that is registered and has no row here, or writes none, fails.
"""

from __future__ import annotations

import pytest

from tests.support.why_cases import CASES, Why, all_judged
from tui_eval import causes
from tui_eval.assertions.evidence import LONGEST, MOST
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput, Judgement
from tui_eval.assertions.judging import judge_one
from tui_eval.formats.promptfoo.judge import registry
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Assertion, Attempt, Case, Evidence, Reply, Verdict
from tui_eval.store.encoding import encode_json

CODES = {
    'nao sql': ('rows', 'revenue 4792.0→5280.85 in 1 of 3 rows'),
    'nao tool_call args': ('wrong-arguments', 'lookup_order(order ≠ "48214": "48213")'),
    'nao tool_call never': ('not-called', 'look_up_order not called'),
    'nao tool_call count': ('under', '2 < 5 calls of lookup_order'),
    'should_contain': ('not-contained', 'lacks "return any device within 14 days"'),
    'should_not_contain': ('forbidden', 'has "refund"'),
    'escalated': ('differs', 'escalated ≠ true: false'),
    'escalation_priority': ('none', 'metadata.escalation_priority is not there'),
    'tools_used': ('not-called', 'look_up_order, create_ticket not called'),
    'max_tool_calls': ('over', '3 > 2 tool calls'),
    'max_input_tokens': ('over', '1,480 > 1,000 input tokens'),
    'max_output_tokens': ('over', '2,847 > 2,000 output tokens'),
    "metadata of one's own": ('none', 'metadata.language is not there'),
    'ns value': ('differs', 'structure.order.total ≠ 39.9: 40.5'),
    'ns value text': ('differs', '≠ … within 14 days; the refund reaches your accou…: … within'),
    'ns not_value': ('same', 'structure.state = "open"'),
    'ns keywords': ('not-contained', 'lacks "refund policy"'),
    'ns not_keywords': ('forbidden', 'has "refund"'),
    'ns keywords list': ('not-contained', 'cities: lacks "Lyon"'),
    'ns less': ('over', 'structure.price: 1,725 ≥ 1,500'),
    'ns greater': ('under', 'structure.stars: 3 ≤ 4'),
    'ns missing path': ('none', 'structure.order.total is not there'),
    'ns gist': ('judged', 'judge: does not match: The yearly price is named.'),
    'ns not_gist': ('judged', 'judge: matches: A refund is promised.'),
    'equals': ('differs', '≠ …r about six working days. Would you like me to…: …r about'),
    'equals object': ('differs', '$.total ≠ 39.9: "39.90"; $.items not expected and 1 more'),
    'not-equals': ('same', '= "Thanks for asking! Our **Pro** plan costs €79 p…"'),
    'contains': ('not-contained', 'lacks "within 14 days"'),
    'not-contains': ('forbidden', 'has "refund"'),
    'icontains': ('not-contained', 'lacks "RETURN POLICY"'),
    'contains-any': ('not-contained', 'lacks "14 days", "two weeks"'),
    'contains-all': ('not-contained', 'lacks "VAT included"'),
    'icontains-any': ('not-contained', 'lacks "fortnight", "two weeks"'),
    'icontains-all': ('not-contained', 'lacks "enterprise"'),
    'starts-with': ('not-prefix', 'does not begin with "Hello! Our Pro plan"'),
    'not-starts-with': ('forbidden-prefix', 'begins with "Thanks"'),
    'regex': ('not-matched', 'no match of within (14|15) days'),
    'regex lookaround': ('not-matched', 'no match of (?<=costs )€\\d{3}(?= per month)'),
    'not-regex lookaround': ('forbidden', 'has "€79"'),
    'not-regex': ('forbidden', 'has "€79", "€149"'),
    'levenshtein': ('over', '5 > 2 distance'),
    'rouge-n': ('under', '0.1062 < 0.75 ROUGE-N'),
    'bleu': ('under', '2.769e-06 < 0.5 BLEU'),
    'gleu': ('under', '0.01497 < 0.5 GLEU'),
    'meteor': ('under', '0.1667 < 0.5 METEOR'),
    'word-count': ('over', '85 > 40 words'),
    'word-count exact': ('unequal', '85 ≠ 12 words'),
    'cost': ('over', '$0.0128 > $0.0100'),
    'latency': ('over', '2.41 s > 2 s'),
    'perplexity': ('over', '1.705 > 1.2 perplexity'),
    'finish-reason': ('differs', 'finish reason ≠ "stop": "length"'),
    'is-refusal': ('no-refusal', 'no refusal'),
    'not-is-refusal': ('refuses', 'refuses: "I\'m sorry"'),
    'guardrails': ('guardrails', 'guardrails: insults'),
    'is-json': ('not-json', 'no JSON: Expecting value'),
    'is-json broken': ('not-json', 'no JSON: Unterminated string'),
    'is-json schema': ('schema', '$.total must be number'),
    'is-json extra': ('schema', "$ has 'mood', which is not allowed"),
    'not-is-json': ('is-json', 'is JSON'),
    'contains-json none': ('not-json', 'no JSON: there is no { in the reply'),
    'contains-json schema': ('schema', '$.total must be number'),
    'is-xml': ('not-xml', 'no XML: mismatched tag'),
    'is-xml elements': ('no-element', 'XML lacks order.state'),
    'contains-xml': ('no-element', 'XML lacks order.state'),
    'is-sql': ('not-sql', 'no SQL: Invalid expression / Unexpected token'),
    'is-sql tables': ('sql-not-allowed', 'table not allowed: select::null::customers'),
    'contains-sql': ('not-sql', 'no SQL'),
    'is-html': ('not-html', 'no HTML: Output must be wrapped in HTML tags'),
    'contains-html': ('not-html', 'no HTML'),
    'is-valid-openai-tools-call': ('no-call', 'no call: the reply is text with JSON in it'),
    'is-valid-openai-function-call': ('no-call', 'no call: the reply is text with JSON in it'),
    'is-valid-function-call': ('no-call', 'no call: the reply is text with JSON in it'),
    'tool-call-f1': ('not-called', 'create_ticket not called; 0.6667 < 1 F1'),
    'skill-used': ('not-called', 'xlsx not called'),
    'trajectory:tool-used': ('not-called', 'create_ticket not called'),
    'not-trajectory:tool-used': ('forbidden-call', 'search_orders called'),
    'tool-used count': ('over', '1 > 0 calls of search_orders'),
    'trajectory:tool-sequence': ('not-in-order', 'search_orders not in order'),
    'trajectory:tool-args-match': ('wrong-arguments', 'search_orders(id ≠ 42: "42")'),
    'trajectory:step-count': ('over', '2 > 1 steps'),
    'trace-span-count': ('under', '1 < 2 spans'),
    'trace-span-duration': ('over', '2.4 s > 500 ms'),
    'trace-error-spans': ('error-spans', 'error in GET /orders (503 upstream)'),
    'llm-rubric': ('judged', 'judge: The reply names a price but never says what the yearl'),
    'agent-rubric': ('judged', 'judge: The reply names a price but never says what the yearl'),
    'search-rubric': ('no-judge', 'no judge configured'),
    'g-eval': ('under', '0.3 < 0.7; judge: The price is there, the yearly one is not.'),
    'factuality': ('judged', 'judge: The reply says 79, the reference 89.'),
    'model-graded-closedqa': ('judged', 'judge: The submission does not meet the criterion'),
    'answer-relevance': ('under', '0.62 < 0.7 relevance'),
    'context-faithfulness': ('under', '0.5 < 0.9 faithfulness'),
    'context-recall': ('under', '0.5 < 0.9 recall'),
    'context-relevance': ('under', '0.5 < 0.9 relevance'),
    'conversation-relevance': ('under', '0.5 < 0.9 relevance'),
    'moderation': ('flagged', 'flagged: hate'),
    'trajectory:goal-success': ('judged', 'judge: No ticket was opened.'),
    'similar': ('under', '0.62 < 0.8 similarity'),
    'classifier': ('no-classifier', 'no classifier named'),
    'pi': ('not-supported', 'not judged here: pi is not judged by this version: it would '),
    'javascript': ('is-false', '418 < 100 is false'),
    'javascript reason': ('script', 'script: 79 words, at most 20 are wanted'),
    'javascript throws': ('script-failed', "script failed: TypeError: cannot read property 'bar' of unde"),
    'python': ('is-false', '418 < 100 is false'),
    'python throws': ('script-failed', 'script failed: ZeroDivisionError: division by zero'),
}  # fmt: skip
"""By failing case the code of its first failing evidence, and how the words for a list row begin."""


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Attempt]:
    return all_judged(tmp_path_factory.mktemp("codes"))


@pytest.mark.parametrize("why", CASES, ids=lambda why: why.name)
def test_a_failing_assertion_writes_its_code(why: Why, judged: dict[str, Attempt]) -> None:
    attempt = judged[why.name]
    first = next(verdict for verdict in attempt.verdicts if not verdict.passed)
    code, words = CODES[why.name]
    assert causes.code_of(first) == code, first.evidence
    assert causes.cause_of(attempt).startswith(words)


def test_every_verdict_says_what_it_rests_on_in_codes_of_ours_and_little_room(
    judged: dict[str, Attempt],
) -> None:
    for name, attempt in judged.items():
        for verdict in attempt.verdicts:
            assert verdict.evidence, (name, verdict)
            assert all(causes.known(one.code) for one in verdict.evidence), (name, verdict.evidence)
            assert len(verdict.evidence) <= 2 * MOST
            assert len(encode_json(verdict.evidence)) < 20_000


def test_every_registered_type_is_in_the_table(judged: dict[str, Attempt]) -> None:
    types = {verdict.type.removeprefix("not-") for attempt in judged.values() for verdict in attempt.verdicts}
    same = {"similar:cosine": "similar", "similar:dot": "similar", "similar:euclidean": "similar"}
    same |= {"model-graded-factuality": "factuality", "perplexity-score": "perplexity"}
    elsewhere = {"ruby", "webhook"}  # need a Ruby, or a server: tests/assertions/test_promptfoo_rules.py
    assert {same.get(kind, kind) for kind in registry.CHECKS} - elsewhere <= types
    formats = {case.format for case in CASES}
    assert formats == {"nao", "start_to_agent", "neuro_san", "promptfoo"}


def test_what_is_found_is_cut_and_counted() -> None:
    from tui_eval.assertions import evidence

    many = evidence.texts("ab" * 1_000, ["ab", "x" * 9_000])
    assert len(many) == MOST + 1 and [(one.start, one.end) for one in many[:2]] == [(0, 2), (2, 4)]
    assert many[-1].code == "not-contained" and len(many[-1].text) == LONGEST
    big = evidence.fields({str(n): n for n in range(99)}, {})
    assert len(big) == MOST
    kept = evidence.bounded([Evidence("rule", "schema", text="t" * 9_000, actual=["v" * 9_000])] * 99)
    assert kept is not None and len(kept) == 2 * MOST and len(encode_json(kept[0])) < 2_000


def test_letters_of_either_case_are_found_where_they_stand() -> None:
    from tui_eval.assertions.evidence import places_of

    assert places_of("stop", "İSTOP", True) == [(1, 5)]
    assert places_of("stop", "ſtop", True) == []


@pytest.mark.parametrize(
    ("problem", "code", "words"),
    [
        (NeedsTrust("run x.py"), "needs-trust", "needs trust: run x.py"),
        (CannotJudge("no judge is configured", "no-judge"), "no-judge", "no judge configured"),
        (CannotJudge("odd"), "cannot-judge", "odd"),
        (ZeroDivisionError("division"), "crashed", "judging failed: ZeroDivisionError: division"),
    ],
)
async def test_what_keeps_an_assertion_from_being_judged_has_a_code(problem, code: str, words: str) -> None:
    def handler(assertion: Assertion, given: JudgeInput, judgement: Judgement) -> Verdict:
        raise problem

    case = Case("s::n", "n", "s", "nao")
    verdict = await judge_one(handler, Assertion("t"), JudgeInput(case, [Reply(1, "x")]), Judgement())
    assert verdict is not None and verdict.passed is None
    assert (causes.code_of(verdict), causes.words_of(verdict)) == (code, words)


def test_an_older_verdict_has_its_prose() -> None:
    verdict = Verdict("contains", False, reason="Expected output to\n contain x")
    attempt = Attempt("s::n", 1, "failed", verdicts=[verdict])
    assert causes.words_of(verdict) == "Expected output to contain x" and causes.code_of(verdict) == ""
    assert causes.cause_of(attempt) == ""  # its message says it


@pytest.mark.parametrize(
    ("expected", "actual", "words"),
    [
        ("Bonjour", "Bonjour ", '≠ "Bonjour": "Bonjour·" (blanks)'),
        ("a b", "a\u00a0b", '≠ "a b": the same but for U+00A0 NO-BREAK SPACE in the answer'),
        ("ab", "a\u200bb", '≠ "ab": the same but for U+200B ZERO WIDTH SPACE in the answer'),
        ("a b", "a  b", '≠ "a·b": "a··b" (blanks)'),
        ("one\ntwo", "one two", '≠ "one↵two": "one·two" (blanks)'),
        ("a long beginning, then", "a long beginning, then\r\n", '≠ "…ng,·then": "…ng,·then␍↵" (blanks)'),
        ("Bonjour", "Bonsoir", "≠ Bonjour: Bonsoir"),
    ],
)
def test_texts_that_differ_in_blanks_alone_do_not_read_the_same(
    expected: str, actual: str, words: str
) -> None:
    piece = Evidence("field", "differs", path="$", expected=expected, actual=actual)
    assert causes.words_of_pieces([piece]) == words
