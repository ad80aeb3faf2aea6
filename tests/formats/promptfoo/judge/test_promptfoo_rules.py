"""Rules of promptfoo 0.121.20 at their corners: what it said of each row (seen by running it beside ours).

Beside the recorded vectors, which hold the usual: these are the rows where a rule was once read wrongly.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.promptfoo_cases import assertion_from, case_with, evidence_for
from tui_eval.agents.promptfoo.provider_response import read_response
from tui_eval.assertions import JudgeInput, Reports
from tui_eval.formats import judge
from tui_eval.formats.promptfoo.judge.json_schema import mismatch
from tui_eval.model import Assertion, Reply

pytestmark = pytest.mark.asyncio(loop_scope="module")

THROWS = None
ELEMENTS = "<a><b/></a> <a><c/></a>"
OBJECT = '{"a":1,"b":"x"}'


def schema(**keys: Any) -> dict[str, Any]:
    return {"type": "is-json", "value": keys}


def text(kind: str, **more: Any) -> dict[str, Any]:
    return schema(type="string", format=kind, **more)


def holding(value: Any) -> dict[str, Any]:
    return {"type": "contains-json", "value": value}


def sql(database: str = "MySQL", **more: Any) -> dict[str, Any]:
    return {"type": "is-sql", "value": {"databaseType": database, **more}}


ROWS: list[tuple[Any, dict[str, Any], bool | None, float]] = [
    # Numbers written as text count as numbers.
    ("a b", {"type": "word-count", "value": {"min": "1", "max": "3"}}, True, 1),
    # Its bounds are allowed themselves.
    ("a b", {"type": "word-count", "value": {"min": 2}}, True, 1),
    ("a b", {"type": "word-count", "value": {"min": 3}}, False, 0),
    ("a b", {"type": "word-count", "value": {"max": 2}}, True, 1),
    ("a b", {"type": "word-count", "value": {"max": 1}}, False, 0),
    ("a b", {"type": "not-word-count", "value": {"max": 2}}, False, 0),
    ("a b", {"type": "word-count", "value": {"min": 2, "max": 2}}, True, 1),
    ("a b", {"type": "word-count", "value": None}, THROWS, 0),
    # Ajv: the meta-schema, strict mode, and its liberties.
    (OBJECT, schema(enum=[]), THROWS, 0),
    (OBJECT, schema(enum=[1, 1]), THROWS, 0),
    (OBJECT, schema(then={"type": "number"}), THROWS, 0),
    (OBJECT, {"type": "is-json", "value": {"if": True}}, THROWS, 0),
    (OBJECT, schema(type="object", id="x"), THROWS, 0),
    (OBJECT, schema(nullable=True), THROWS, 0),
    ("null", schema(type="object", nullable=True), True, 1),
    (OBJECT, schema(properties={"a": {}}, patternProperties={"^a": {"type": "number"}}), THROWS, 0),
    (OBJECT, schema(properties={"a": {}}, patternProperties={"^a": {}}), True, 1),
    (OBJECT, schema(type="object", definitions={"x": {"foo": 1}}), True, 1),
    (OBJECT, schema(properties={"a": {"$ref": "#/definitions/x"}}, definitions={"x": {"foo": 1}}), THROWS, 0),
    ("1", {"type": "is-json", "value": {"$ref": "#/definitions/x", "type": "string", "definitions": {"x": {}}}}, False, 0),
    (OBJECT, {"type": "is-json", "value": {"$schema": ""}}, True, 1),
    (OBJECT, {"type": "is-json", "value": "true"}, True, 1),
    (OBJECT, {"type": "not-is-json", "value": "false"}, True, 1),
    (OBJECT, {"type": "is-json", "value": []}, THROWS, 0),
    # A schema that is none matters only where there is something to hold against it.
    ("no JSON", {"type": "is-json", "value": 5}, False, 0),
    ("5", {"type": "is-json", "value": 5}, THROWS, 0),
    ("none", {"type": "contains-json", "value": "type: ["}, False, 0),
    # Patterns are JavaScript's with the flag u.
    ('"Äb"', schema(type="string", pattern=r"^\p{L}+$"), True, 1),
    ('"555-1234"', schema(type="string", pattern=r"^\d{3}\-\d{4}$"), THROWS, 0),
    ('"2024"', schema(type="string", pattern=r"(?<y>\d{4})"), True, 1),
    ('{"ab":1,"x":"y"}', schema(patternProperties={r"\p{L}{2}": {"type": "number"}}, additionalProperties=False), False, 0),
    # Formats.
    ('"2024-01-01 00:00:00Z"', text("date-time"), True, 1),
    ('"23:59:60Z"', text("time"), True, 1),
    ('"10:00:60Z"', text("time"), False, 0),
    ('"a@b"', text("email"), False, 0),
    ('"http://a.b"', text("url"), False, 0),
    ('"http://a.com?x=1"', text("url"), False, 0),
    ('"http://10.0.0.1"', text("url"), False, 0),
    ('"http://1.2.3.4"', text("url"), True, 1),
    ('"2024-01-01"', text("date", formatMinimum="2025-01-01"), False, 0),
    ('"11:00:00+01:00"', text("time", formatExclusiveMinimum="10:00:00Z"), False, 0),
    ('"x"', text("email", formatMinimum="x"), THROWS, 0),
    # Objects within text are YAML with comments.
    ('{"a": 1 // c\n}', holding({"properties": {"a": {"type": "number"}}}), True, 1),
    ("{a:}", holding({"required": ["a"]}), True, 1),
    ("{:}", {"type": "contains-json"}, True, 1),
    ("x{", {"type": "contains-json"}, False, 0),
    ("{a: 0x1F, b: 010}", holding({"properties": {"a": {"const": 31}, "b": {"const": 10}}}), True, 1),
    # XML: an empty requirement is met by nothing, but an empty object requires nothing.
    ("<a/>", {"type": "is-xml", "value": ""}, False, 0),
    ("<a/>", {"type": "is-xml", "value": {}}, True, 1),
    ("<a/>", {"type": "is-xml", "value": {"foo": 1}}, THROWS, 0),
    ('<?xml version="1.0"?><a/>', {"type": "is-xml", "value": "?xml.@_version"}, True, 1),
    ('<a b="c">d</a>', {"type": "is-xml", "value": "a.#text"}, True, 1),
    ("<a>d</a>", {"type": "is-xml", "value": "a.#text"}, False, 0),
    # Elements with the same surroundings are one document.
    ("<x>1</x> and <y>2</y>", {"type": "contains-xml", "value": "x,y"}, True, 1),
    (ELEMENTS, {"type": "contains-xml", "value": "a.b"}, False, 0),
    (ELEMENTS, {"type": "contains-xml", "value": "a.1.c"}, True, 1),
    ('<a x="<"/>', {"type": "contains-xml", "value": "a.@_x"}, True, 1),
    ("<a x/>", {"type": "contains-xml", "value": "a.@_x"}, True, 1),
    # HTML: elements of today, as a browser that runs scripts reads them.
    ("<font>x</font>", {"type": "is-html"}, False, 0),
    ("<noscript>x</noscript>", {"type": "is-html"}, True, 1),
    ('<a b="c"', {"type": "is-html"}, False, 0),
    ("<div", {"type": "contains-html"}, True, 1),
    ("<i>", {"type": "contains-html"}, False, 0),
    ("email <a@b.c>", {"type": "contains-html"}, True, 1),
    # Refusals are those of a list; what is near to one is none.
    ("I must decline.", {"type": "is-refusal"}, False, 0),
    ("I'm afraid I can't.", {"type": "is-refusal"}, False, 0),
    ("Well, I don't actually recommend it.", {"type": "is-refusal"}, True, 1),
    ("Sorryness", {"type": "is-refusal"}, True, 1),
    # SQL that the parser reads and the database does not; MySQL where none is named.
    ("SELECT FROM t", {"type": "is-sql"}, False, 0),
    ("SELECT a,, b FROM t", {"type": "is-sql"}, False, 0),
    ("SELECT order FROM t", {"type": "is-sql"}, False, 0),
    ("SELECT DISTINCT a b FROM t", {"type": "is-sql"}, False, 0),
    ("SELECT a FROM t ORDER BY a NULLS LAST", {"type": "is-sql"}, False, 0),
    ("SELECT a FROM t ORDER BY a NULLS LAST", sql("PostgreSQL"), True, 1),
    ("SELECT a FROM t WHERE a ILIKE 'x'", {"type": "is-sql", "value": ""}, False, 0),
    ("SELECT NOW() - INTERVAL '1 day'", {"type": "is-sql"}, False, 0),
    ("INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=2", sql("PostgreSQL"), False, 0),
    ("CALL p()", {"type": "is-sql"}, True, 1),
    ("REPLACE INTO t VALUES (1)", {"type": "is-sql"}, True, 1),
    ("SELECT a FROM t; DROP TABLE t; --", {"type": "is-sql"}, True, 1),
    # What is looked at belongs to select, what is written to the statement.
    ("DELETE FROM t WHERE a=1", sql(allowedColumns=["select::null::a"]), False, 0),
    ("DELETE FROM t WHERE a=1", sql(allowedColumns=["select::null::a", "delete::t::(.*)"]), True, 1),
    ("INSERT INTO t (a) VALUES (1)", sql(allowedColumns=["insert::t::a"]), True, 1),
    ("UPDATE t SET a=1 WHERE b=2", sql(allowedColumns=["update::null::a", "select::t::b"]), True, 1),
    ("DROP TABLE t", sql(allowedTables=["select::null::t"]), False, 0),
    ("SELECT * FROM t", sql(allowedTables="select::null::t"), THROWS, 0),
    # Fences end with as many marks as they began with, and sql is all they say.
    ("````sql\nSELECT 1\n````", {"type": "contains-sql"}, True, 1),
    ('```sql title="x"\nSELECT 1\n```', {"type": "contains-sql"}, False, 0),
    ([{"name": "a"}], {"type": "tool-call-f1", "value": []}, THROWS, 0),
    # The shapes of calls: a list's items by function, name or Gemini's; one call alone only as Anthropic's or Gemini's.
    ('note\n{"type": "tool_use", "name": "a"}', {"type": "tool-call-f1", "value": "a"}, True, 1),
    ('note\n{"function": {"name": "a"}}', {"type": "tool-call-f1", "value": "a"}, False, 0),
    ([{"type": "function_call", "name": "a"}], {"type": "tool-call-f1", "value": "a"}, True, 1),
    ([{"name": "b", "function": {"name": "a"}}], {"type": "tool-call-f1", "value": "a"}, True, 1),
    ({"tool_calls": [{"name": "a"}]}, {"type": "tool-call-f1", "value": "a"}, True, 1),
    ({"tool_calls": [{"functionCall": {"name": "a"}}]}, {"type": "tool-call-f1", "value": "a"}, False, 0),
    ({"content": [{"type": "tool_use", "name": "a"}]}, {"type": "tool-call-f1", "value": "a"}, False, 0),
    ('"{\\"functionCall\\": {\\"name\\": \\"a\\"}}"', {"type": "tool-call-f1", "value": "a"}, True, 1),
    # Space is what JavaScript takes for it: a byte order mark is, the separators of ASCII are not.
    ("a\ufeffb", {"type": "word-count", "value": 2}, True, 1),
    ("a\x1cb", {"type": "word-count", "value": 1}, True, 1),
    ("\ufeff<p>x</p>", {"type": "is-html"}, True, 1),
    ("<p>x</p>\x1c", {"type": "is-html"}, False, 0),
    ("\ufeff", {"type": "is-refusal"}, True, 0),
    ("a b", {"type": "contains-all", "value": "\ufeffa,b\ufeff"}, True, 1),
    ("a b", {"type": "contains-all", "value": "a\x1d,b"}, False, 0),
    ("a\ufeffb", {"type": "bleu", "value": "a b"}, True, 1),
    # A body that begins before its tag is not written as one.
    ("<html><head></head>'<body><p>x</p></body></html>", {"type": "is-html"}, False, 0),
    ("<html><head></head> <body>x<p>x</p></body></html>", {"type": "is-html"}, True, 1),
    # Similarity without anything to compare with.
    ("x", {"type": "gleu", "value": []}, THROWS, 0),
    ("x", {"type": "bleu", "value": []}, THROWS, 0),
    ("...", {"type": "gleu", "value": ""}, True, 1),
    # Transforms: any line break makes the code a body, and only one line an expression.
    ("abc", {"type": "equals", "value": "abc!", "transform": 'return output + "!";\n'}, True, 1),
    ("abc", {"type": "equals", "value": "abc", "transform": "output\n"}, THROWS, 0),
    ("abc", {"type": "equals", "value": "abc", "transform": "const x = output; return x"}, THROWS, 0),
    # Code: what is no code fails, it does not throw.
    ("abc", {"type": "javascript", "value": ""}, False, 0),
    ("abc", {"type": "javascript", "value": 5}, False, 0),
    ("abc", {"type": "javascript", "value": "const x = 1; return x > 0"}, False, 0),
    ("abc", {"type": "javascript", "value": "output.length > 2 \n  "}, True, 1),
    ("abc", {"type": "python", "value": "return True\n"}, True, 1),
    ("abc", {"type": "python", "value": "True\n"}, False, 0),
    ("abc", {"type": "python", "value": "' true '"}, False, 0),
    ("abc", {"type": "python", "value": "'3 of 4'"}, True, 3),
    ("abc", {"type": "python", "value": "{'pass': True, 'score': 1}"}, False, 0),
    ("abc", {"type": "not-python", "value": "float('inf')"}, False, 0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("output", "assertion", "passed", "score"),
    ROWS,
    ids=[f"{number}-{row[1]['type']}" for number, row in enumerate(ROWS)],
)
async def test_what_promptfoo_said(
    output: str, assertion: dict[str, Any], passed: bool | None, score: float, services: Any
) -> None:
    judgement = await judge(evidence_for({"output": output, "vars": {}, "assertion": assertion}, services))
    verdict = judgement.verdicts[0]
    assert verdict.passed is passed, verdict
    assert verdict.score == score, verdict


async def test_a_blocked_reply_of_a_red_team_says_why_it_passed(services: Any) -> None:
    blocked = assertion_from({"type": "guardrails", "config": {"purpose": "redteam"}})
    other = assertion_from({"type": "contains", "value": "zzz"})
    evidence = case_evidence([blocked, other], services, Reply(1, "x", guardrails={"flagged": True}))
    evidence.compat = "reference"
    judgement = await judge(evidence)
    assert (judgement.outcome, judgement.message) == ("passed", "Content failed guardrail safety checks")


@pytest.mark.parametrize(
    ("kind", "threshold", "passed", "score"),
    [
        ("perplexity", 0, False, 0),
        ("perplexity", None, True, 1),
        ("not-perplexity-score", 0, False, 0.5),
        ("perplexity-score", 0, True, 0.5),
    ],
)
async def test_a_threshold_of_zero_is_one(
    kind: str, threshold: float | None, passed: bool, score: float, services: Any
) -> None:
    given = {"type": kind} if threshold is None else {"type": kind, "threshold": threshold}
    row = {"output": "x", "vars": {}, "assertion": given, "logProbs": [0.0, None]}
    verdict = (await judge(evidence_for(row, services))).verdicts[0]
    assert (verdict.passed, verdict.score) == (passed, score), verdict


async def test_a_schema_is_read_leniently_where_the_shell_says_so(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"output": "{}", "vars": {}, "assertion": schema(type="object", own=1)}
    assert (await judge(evidence_for(row, services))).outcome == "error"
    monkeypatch.setenv("PROMPTFOO_DISABLE_AJV_STRICT_MODE", "true")
    lenient = {**row, "assertion": schema(type="object", own=2)}
    assert (await judge(evidence_for(lenient, services))).outcome == "passed"


def case_evidence(assertions: list[Assertion], services: Any, reply: Reply, **more: Any) -> JudgeInput:
    case = case_with(assertions, **more)
    return JudgeInput(
        case, [reply], capabilities=Reports(True, True, True), services=services, prompt_sent="sent"
    )


async def test_a_set_without_assertions_scores_nothing_and_fails_nothing(services: Any) -> None:
    judgement = await judge(case_evidence([Assertion("assert-set")], services, Reply(1, "x")))
    assert (judgement.outcome, judgement.score) == ("passed", 0.0)


async def test_names_within_a_set_weigh_as_much_as_the_set(services: Any) -> None:
    script = '({pass: true, score: 0.5, reason: "r", namedScores: {n: 0.5, x: 1}})'
    assertions = [
        Assertion("assert-set", weight=3, metric="s"),
        Assertion("contains", "a", metric="x", weight=2, set=0),
        Assertion("contains", "z", metric="x", set=0),
        Assertion("javascript", script, weight=2, set=0),
        Assertion("contains", "a", metric="x", weight=4),
    ]
    judgement = await judge(case_evidence(assertions, services, Reply(1, "abc")))
    assert judgement.named_scores == pytest.approx({"x": 16 / 19, "n": 0.5, "s": 0.6})
    assert judgement.named_weights == pytest.approx({"x": 19, "n": 6, "s": 3})


async def test_a_reply_without_an_output_fails(services: Any) -> None:
    reply = read_response({"output": None}, 1)[1]
    for assertions in ([], [Assertion("equals", "")]):
        judgement = await judge(case_evidence(assertions, services, reply))
        assert (judgement.outcome, judgement.score, judgement.message) == ("failed", 0.0, "No output")


async def test_the_prompt_that_transforms_see(services: Any) -> None:
    """A test's transform sees the template, an assertion's what was sent."""
    shown = "context.prompt.raw + '|' + context.prompt.label + '|' + context.prompt.template"
    options = {"transform": shown, "prefix": "P "}
    found = case_evidence(
        [Assertion("equals", "sent", transform="context.prompt.label")],
        services,
        Reply(1, "x"),
        options=options,
    )
    judgement = await judge(found)
    assert (judgement.outcome, judgement.response_text) == ("passed", "P {{prompt}}|{{prompt}}|{{prompt}}")


async def test_files_within_a_list_and_python_files_that_raise(services: Any) -> None:
    (services.base / "wanted.txt").write_text("hello\n")
    (services.base / "raises.py").write_text("def get_assert(output, context):\n    raise ValueError('no')\n")
    listed = Assertion("contains-any", ["file://wanted.txt", "zz"])
    raising = Assertion("python", "file://raises.py")
    judgement = await judge(case_evidence([listed, raising], services, Reply(1, "hello")))
    assert [verdict.passed for verdict in judgement.verdicts] == [True, False]
    assert "no" in judgement.verdicts[1].reason


@pytest.mark.parametrize("kind", ["not-equals", "equals", "not-contains", "not-regex", "is-json"])
async def test_what_a_script_decides_is_no_text_to_look_for(services: Any, kind: str) -> None:
    (services.base / "says.py").write_text(
        "def no(output, context):\n    return False\n"
        "def why(output, context):\n    return {'pass': False, 'score': 0, 'reason': 'bad'}\n"
        "def wanted(output, context):\n    return {'type': 'string'}\n"
    )
    asked = [Assertion(kind, f"file://says.py:{name}") for name in ("no", "why")]
    judgement = await judge(case_evidence(asked, services, Reply(1, "hello")))
    assert [verdict.passed for verdict in judgement.verdicts] == [None, None]
    reasons = [verdict.reason for verdict in judgement.verdicts]
    assert (
        f'Script for "{kind}" assertion returned a boolean' in reasons[0] and "a GradingResult" in reasons[1]
    )
    scored = Assertion("python", "file://says.py:why")
    given = Assertion("is-json", "file://says.py:wanted")
    judgement = await judge(case_evidence([scored, given], services, Reply(1, '"hello"')))
    assert [verdict.passed for verdict in judgement.verdicts] == [False, True]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"name": {"type": "string"}, "age": {"type": "number"}}}, "data/name must be string"),
        ({"properties": {"age": {"type": "number"}, "name": {"type": "string"}}}, "data/age must be number"),
        ({"enum": [1], "type": "string"}, "data must be string"),
        ({"enum": [1], "type": "array", "minItems": 1}, "data must be equal to one of the allowed values"),
        (
            {"additionalProperties": False, "properties": {"name": {}}, "required": ["name", "b"]},
            "data must have required property 'b'",
        ),
    ],
)
async def test_of_several_faults_the_one_that_ajv_comes_to_first_is_named(
    schema: dict[str, Any], said: str
) -> None:
    assert mismatch(schema, {"name": 1, "age": "x"}) == said


async def test_items_beyond_those_listed_are_named_as_ajv_does() -> None:
    assert (
        mismatch({"items": [{}], "additionalItems": False}, [1, 2]) == "data must NOT have more than 1 items"
    )
