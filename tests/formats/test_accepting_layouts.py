"""Accepting an answer in files as people write them: every way to lay YAML, HOCON, CSV and JSONL out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.test_accepting import accepted, judged, project
from tui_eval.assertions import JudgeInput
from tui_eval.config.project import load
from tui_eval.formats import judge, reading
from tui_eval.formats.accepting import Proposal, propose, with_line_ends, write
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, DataDetails, Entry, Reply, Turn, Verdict
from tui_eval.suites.accepted_values import nearest
from tui_eval.yaml.yaml_edit import EditError

ANSWER = "Well, the price is 89 euros."
OLD, NEW = "the price is 79 euros", "the price is 89 euros"

GUIDE = {
    "comments": "agent: helper # a\ntest_cases:\n  # b\n  - name: n # c\n    input: x\n    expected:\n      # d\n"
    "      should_contain: # e\n        # f\n        - the price is 79 euros # g\n        # h\n# i\n",
    "flow": "agent: helper\ntest_cases: [{name: n, input: x, expected: {should_contain: ['the price is 79 euros', euros]}}]\n",
    "json": '{"agent": "helper", "test_cases": [{"name": "n", "input": "x",\n "expected": {"should_contain":\n'
    '   ["the price is 79 euros"]}}]}\n',
    "folded": "agent: helper\ntest_cases:\n- name: n\n  input: x\n  expected:\n    should_contain:\n    - >-\n"
    "      the price\n      is 79 euros\n    - euros   # kept\n",
    "literal": "agent: helper\ntest_cases:\n- name: n\n  input: x\n  expected:\n    should_contain:\n    - |-\n"
    "        the price is 79 euros\n    tools_used: [search]\n",
    "several lines": "agent: helper\ntest_cases:\n- name: n\n  input: x\n  expected:\n    should_contain:\n"
    '      - "the price\n         is 79 euros"\n      - euros\n',
    "document marks": "%YAML 1.2\n---\nagent: helper\ntest_cases:\n- name: n\n  input: x\n  expected:\n"
    "    should_contain: [the price is 79 euros]\n...\n",
    "tabs": "agent: helper\t# x\ntest_cases:\n- name: n\n  input: 'x\ty'\n  expected:\n    should_contain:\n"
    "    - the price is 79 euros\t# here\n",
    "quoted keys": '"agent": helper\n\'test_cases\':\n- "name": n\n  "input": x\n  "expected":\n'
    "    \"should_contain\":\n    - 'the price is 79 euros'\n",
    "beyond ASCII": "agent: helper\n# 山田 👩‍👩‍👧‍👦 \ntest_cases:\n- name: naïve 🇫🇷\n  input: 日本語\n  expected:\n"
    "    should_contain: [ euros, 'the price is 79 euros' ]  # ← 価格\n",
}


@pytest.mark.usually(12)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("layout", GUIDE)
async def test_yaml_keeps_every_other_character(tmp_path: Path, layout: str, mark: str, ends: str) -> None:
    text = mark + GUIDE[layout].replace("\n", ends)
    root = project(tmp_path, ANSWER, **{"suite.yaml": text})
    await accepted(root)
    new = (root / "suite.yaml").read_bytes().decode()
    if OLD in text:
        bare = [
            one.replace(f'"{NEW}"', NEW).replace(f"'{NEW}'", NEW) for one in (new, text.replace(OLD, NEW))
        ]
        assert bare[0] == bare[1]
    else:  # the value stood on several lines
        before, after = text.split("79")[0].split("the price")[0], text.split("79")[1].partition("\n")[2]
        assert new.startswith(before.rstrip(' ">-\r\n')) and new.endswith(after)
    assert ("\r\n" in new) == (ends == "\r\n") and new.count("\n") - new.count("\r\n") in (0, new.count("\n"))


async def test_line_ends_of_both_kinds_stay_where_they_are(tmp_path: Path) -> None:
    lines = GUIDE["comments"].split("\n")
    text = "".join(line + ("\r\n" if number % 2 else "\n") for number, line in enumerate(lines))
    root = project(tmp_path, ANSWER, **{"suite.yaml": text})
    await accepted(root)
    assert (root / "suite.yaml").read_bytes().decode() == text.replace(OLD, NEW)


@pytest.mark.parametrize("lines", [(2, 3, 3_999), (10, 11), (3_000,), (4_001, 4_002)])
def test_line_ends_of_a_long_file_are_kept_soon(lines: tuple[int, ...]) -> None:
    """Its lines are alike: each compared with each took minutes."""
    old = [f"name {n}" if n % 4 == 0 else "same" for n in range(4_000)]
    whole = "\n".join(line + "\r" * (n % 7 != 0) for n, line in enumerate(old))
    new, expected = list(old), whole.split("\n")
    for at in lines:
        new[at : at + 1], expected[at : at + 1] = ["other"], ["other" + "\r" * (min(at, 3_999) % 7 != 0)]
    expected[-1] = expected[-1].removesuffix("\r")
    assert with_line_ends(whole, "\n".join(old), "\n".join(new)) == "\n".join(expected)


async def test_a_value_with_an_anchor_is_left_to_a_person(tmp_path: Path) -> None:
    text = (
        "agent: helper\ntest_cases:\n- name: n\n  input: x\n  expected:\n    should_contain: [&price the price is 79 euros]\n"
        "- {name: m, input: y, expected: {should_contain: [*price]}}\n"
    )
    root = project(tmp_path, ANSWER, **{"suite.yaml": text})
    cases, attempts, _ = await judged(root)
    proposal = propose(cases[0], attempts[0], root)
    assert not proposal.changes and "has an anchor (&price) that others use" in proposal.unable[0]


async def test_what_others_refer_to_is_said(tmp_path: Path) -> None:
    text = (
        "agent: helper\ntest_cases:\n- name: n\n  input: x\n  expected: &all\n    should_contain: [the price is 79 euros]\n"
        "- {name: m, input: y, expected: *all}\n- name: o\n  input: z\n  expected: {<<: *all, max_tool_calls: 3}\n"
    )
    root = project(tmp_path, ANSWER, **{"suite.yaml": text})
    cases, attempts, _ = await judged(root)
    for case, attempt in zip(cases, attempts, strict=True):
        proposal = propose(case, attempt, root)
        assert [change.line for change in proposal.changes] == [6], proposal.unable
        assert proposal.notes == ["line 6 is within &all: whatever refers to it changes too"]


@pytest.mark.real
async def test_promptfoo_s_default_test_in_another_file(tmp_path: Path) -> None:
    config = (
        "prompts: ['{{q}}']\nproviders: [echo]\n# for all\ndefaultTest:\n  assert:\n"
        "    - {type: contains, value: nothing}\n    - type: contains   # this\n      value: prize\ntests: TESTS\n"
    )
    tables = {"t.csv": "q,__expected\nx,contains: euross\n", "t.jsonl": '{"vars": {"q": "x"}, "assert": [{"type": "contains", "value": "euross"}, {"type": "contains", "value": "price"}]}\n',
              "t.yaml": "- vars: {q: x}\n  assert:\n    # own\n    - {type: contains, value: euross}\n"}  # fmt: skip
    for name, table in tables.items():
        root = tmp_path / name.replace(".", "-")
        root.mkdir()
        project(
            root,
            "the price is 89 euros",
            **{"promptfooconfig.yaml": config.replace("TESTS", name), name: table},
        )
        cases, attempts, recorded = await judged(root)
        proposal = propose(cases[0], attempts[0], root)
        assert [(change.path, change.after) for change in proposal.changes] == [
            (name, "contains: euros" if name == "t.csv" else "euros"),
            ("promptfooconfig.yaml", "price"),
        ]
        assert proposal.unable == ["contains: no part of the answer is near 'nothing': edit the case (e)"]
        assert proposal.notes == ["line 8 is in defaultTest: every test of the file asks for it"]
        assert f"--- a/{name}\n" in proposal.diff and "--- a/promptfooconfig.yaml\n" in proposal.diff
        write(proposal)
        assert (root / name).read_text() == table.replace("euross", "euros")
        assert (root / "promptfooconfig.yaml").read_text() == config.replace("prize", "price").replace(
            "TESTS", name
        )
        _, again, _ = await judged(root, recorded)
        assert sum(verdict.passed is False for verdict in again[0].verdicts) == 1


async def test_promptfoo_budgets_and_what_must_not_be_there(tmp_path: Path) -> None:
    config = "prompts: ['{{q}}']\nproviders: [echo]\ntests: t.csv\n"
    table = "q,__expected1,__expected2\nx,not-contains: price,contains: price\n"
    root = project(tmp_path, "the price is 89 euros", **{"promptfooconfig.yaml": config, "t.csv": table})
    await accepted(root)
    assert (root / "t.csv").read_text() == "q,__expected1,__expected2\nx,,contains: price\n"
    (root / "t.csv").unlink()
    text = "prompts: [p]\nproviders: [echo]\ntests:\n  - assert:\n      - {type: latency, threshold: 10}  # ms\n      - type: cost\n        threshold: 0.001\n"
    (root / "promptfooconfig.yaml").write_text(text)
    case = Case("c", "c", "promptfooconfig.yaml", "promptfoo")
    verdicts = [Verdict("latency", False, line=5), Verdict("cost", False, line=6)]
    attempt = Attempt("c", 1, "failed", verdicts=verdicts, duration_ms=1000.0, cost=0.05)
    write(propose(case, attempt, root))
    assert (root / "promptfooconfig.yaml").read_text() == text.replace(
        "threshold: 10}", "threshold: 1200}"
    ).replace("0.001", "0.06")


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("answer", "cell"),
    [
        ("a\nb", '"a\nb"'),
        ("a\r\nb", '"a\r\nb"'),
        ('a, "b"', '"a, ""b"""'),
        ("contains: a", "equals:contains: a"),
        ("{{a}}", "{% raw %}{{a}}{% endraw %}"),
        ("file://a", "{% raw %}file://a{% endraw %}"),
        (" a", None),
        ("a\n", None),
        ("", None),
    ],
)
def test_a_cell_of_a_table_says_what_the_answer_was(
    tmp_path: Path, answer: str, cell: str | None, ends: str
) -> None:
    text = f"q,__expected{ends}x,London{ends}y,contains: b{ends}"
    (tmp_path / "t.csv").write_text(text, newline="")
    (tmp_path / "promptfooconfig.yaml").write_text("tests: t.csv\n")
    case = Case("c", "c", "promptfooconfig.yaml", "promptfoo", file="t.csv")
    verdicts = [Verdict("equals", False, expected="London", actual=answer, line=2)]
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=verdicts), tmp_path)
    assert bool(proposal.unable) == (cell is None)
    write(proposal)
    new = (tmp_path / "t.csv").read_bytes().decode()
    assert new == text.replace("London", cell or "London")


@pytest.mark.real
@pytest.mark.parametrize("answer", ["Use {{q}} and {% if x %}", "file://a.txt", "one\r\ntwo"])
async def test_an_answer_is_expected_to_the_letter_whatever_it_has_in_it(tmp_path: Path, answer: str) -> None:
    text = "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n- vars: {q: x}\n  assert:\n  - type: equals\n    value: old # c\n"
    await accepted(project(tmp_path, answer, **{"promptfooconfig.yaml": text}))
    assert (tmp_path / "promptfooconfig.yaml").read_text().endswith(" # c\n")


LONG = {
    "promptfooconfig.yaml": "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n- vars: {q: x}\n  assert: [{type: equals, value: old}]\n",
    "case.hocon": '{ agent: helper, connections: [http], interactions: [ { text: x,\n response { text { value: "old" } } } ] }\n',
}


@pytest.mark.usually(1)
@pytest.mark.parametrize("name", LONG)
async def test_a_long_answer_is_accepted_whole(tmp_path: Path, name: str) -> None:
    """A verdict has its first two thousand characters."""
    await accepted(project(tmp_path, "x " * 1_500 + "y", **{name: LONG[name]}))
    assert "x x y" in (tmp_path / name).read_text() and "more characters" not in (tmp_path / name).read_text()


@pytest.mark.parametrize(("name", "line"), [("t.csv", 2), ("promptfooconfig.yaml", 3)])
def test_a_long_text_that_was_expected_is_found_by_its_beginning(
    tmp_path: Path, name: str, line: int
) -> None:
    long = "a" * 2_500
    (tmp_path / "t.csv").write_text(f"q,__expected\nx,{long}\n")
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"tests:\n- assert:\n  - {{type: equals, value: {long}}}\n"
    )
    case = Case("c", "c", name, "promptfoo", file=name)
    cut = f"{long[:2_000]}… (500 more characters)"
    verdicts = [Verdict("equals", False, expected=cut, actual="b", line=line)]
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=verdicts), tmp_path)
    assert not proposal.unable and [change.after for change in proposal.changes] == ["b"]


@pytest.mark.parametrize("kind", ["equals", "contains"])
def test_of_a_long_text_no_beginning_is_written(tmp_path: Path, kind: str) -> None:
    """What was judged is in no reply (a transform made it), or the text that was expected is as long."""
    cut = f"{'a' * 2_000}… (500 more characters)"
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"tests:\n- assert:\n  - {{type: {kind}, value: {'b' * 2_500}}}\n"
    )
    case = Case("c", "c", "promptfooconfig.yaml", "promptfoo")
    verdicts = [Verdict(kind, False, expected=cut.replace("a" * 2_000, "b" * 2_000), actual=cut, line=3)]
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=verdicts, response_text="other"), tmp_path)
    assert len(proposal.unable) == 1 and not proposal.changes


async def test_json_that_escapes_what_is_beyond_ascii(tmp_path: Path) -> None:
    """As Python's json module writes it: an emoji is two escapes."""
    tests: list[Any] = [
        {"vars": {"q": f"x {n} 😀"}, "assert": [{"type": "equals", "value": f"{n} 😀"}]} for n in range(60)
    ]
    config = "prompts: ['{{q}}']\nproviders: [echo]\ntests: t.json\n"
    text = json.dumps(tests, indent=1)
    root = project(tmp_path, "new 👩", **{"promptfooconfig.yaml": config, "t.json": text})
    cases, attempts, _ = await judged(root)
    at = next(n for n, case in enumerate(cases) if case.vars["q"] == "x 0 😀")
    proposal = propose(cases[at], attempts[at], root)
    assert not proposal.unable
    write(proposal)
    tests[0]["assert"][0]["value"] = "new 👩"
    assert json.loads((root / "t.json").read_text()) == tests


HOCON = {
    "plain": '{\n  agent: helper, connections: [http]\n  interactions: [\n    {\n      text: x\n      response { text { keywords: ["79 euros"] } }\n    }\n  ]\n}\n',
    "a line each": '{\n  agent: helper\n  connections: [http]\n  interactions: [{\n    text: x // 79 euros\n    response.text.keywords = [\n      "price", # kept\n      "79 euros" // here\n    ]\n  }]\n}\n',
    "unquoted": "agent: helper\nconnections: [http]\ninteractions: [ { text: x, response: { text: { keywords: [ 79 euros ] } } } ]\n",
}  # fmt: skip


@pytest.mark.usually(4)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("layout", HOCON)
async def test_hocon_keeps_every_other_character(tmp_path: Path, layout: str, mark: str, ends: str) -> None:
    text = mark + HOCON[layout].replace("\n", ends)
    root = project(tmp_path, "the price is 89 euros", **{"case.hocon": text})
    await accepted(root)
    new = (root / "case.hocon").read_bytes().decode()
    old = '"79 euros"' if '"79 euros"' in text else "79 euros"
    assert (
        new == text.replace(old, '"89 euros"', 1)
        if old != '"79 euros"'
        else new == text.replace(old, '"89 euros"')
    )


@pytest.mark.parametrize(
    ("kind", "line", "expected", "actual", "after"),
    [
        (
            "not_greater",
            "total { not_greater: 1500 } # most",
            1500,
            1725,
            "total { not_greater: 1725 } # most",
        ),
        ("value", "total { value: Paris }", "Paris", "London", "total { value: London }"),
        ("value", "total { value: Paris }", "Paris", "null", 'total { value: "null" }'),
        ("value", "total { value: Paris }", "Paris", "1e5", 'total { value: "1e5" }'),
        ("less", "total { less: 10, value: 3 }", 10, 12, "total { less: 13, value: 3 }"),
        ("greater", "total.greater = 10", 10, 7, "total.greater = 6"),
        ("not_keywords", 'not_keywords: ["a b", "c"]', "a b", "a b c", 'not_keywords: ["c"]'),
        ("not_keywords", 'not_keywords: ["a b", "c"] # d', "c", "a b c", 'not_keywords: ["a b"] # d'),
        ("not_keywords", "not_keywords: [ c ]", "c", "c", "not_keywords: [ ]"),
    ],
)
def test_neuro_san_bounds_and_what_must_not_be_there(
    tmp_path: Path, kind: str, line: str, expected: object, actual: object, after: str
) -> None:
    text = f"{{ interactions: [{{ text: x, response: {{ structure: {{\n   {line}\n}} }} }}] }}\n"
    (tmp_path / "c.hocon").write_text(text)
    target = "structure.total" if line.startswith("total") else "structure"
    verdict = Verdict(kind, False, target=target, expected=expected, actual=actual, turn=1, line=2)
    proposal = propose(
        Case("c", "c", "c.hocon", "neuro_san"), Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path
    )
    assert not proposal.unable
    write(proposal)
    assert (tmp_path / "c.hocon").read_text().split("\n")[1].strip().replace("[  ]", "[ ]") == after


@pytest.mark.parametrize("compat", ["documented", "reference"])
@pytest.mark.parametrize("kind", ["less", "greater", "not_less", "not_greater"])
@pytest.mark.parametrize(("expected", "actual"), [(10, 3), (10, 30), (10, 10), (2.5, 7), (2.5, 0.1)])
async def test_a_neuro_san_bound_that_was_accepted_passes(
    tmp_path: Path, compat: str, kind: str, expected: float, actual: float
) -> None:
    """Under `reference`, which compares the other way round, it was moved away from the answer."""
    (tmp_path / "c.hocon").write_text(
        f"{{ agent: a, interactions: [{{ text: x, response: {{ sly_data.total.{kind}: {expected} }} }}] }}\n"
    )

    async def judged_now() -> Verdict:
        (case,) = reading.load(tmp_path / "c.hocon", load([tmp_path]), Trust()).cases
        replies = [Reply(1, "", sly_data={"total": actual})]
        (verdict,) = (await judge(JudgeInput(case, replies, compat=compat))).verdicts
        return verdict

    before = await judged_now()
    if before.passed:
        return
    attempt = Attempt("c", 1, "failed", verdicts=[before])
    write(propose(Case("c", "c", "c.hocon", "neuro_san", turns=[Turn("x")]), attempt, tmp_path))
    after = await judged_now()
    assert after.passed, after.reason


def nao_proposal(root: Path, sql: str, query: str) -> Proposal:
    (root / "t.yml").write_text(f"name: n\nprompt: p\nsql: {sql}\n")
    verdict = Verdict("sql", False, target="rows", line=3)
    call = Entry(1, "tool_call", name="execute_sql", arguments={"sql_query": query})
    attempt = Attempt("c", 1, "failed", verdicts=[verdict], transcript=[call], data=DataDetails())
    return propose(Case("c", "c", "t.yml", "nao"), attempt, root)


def test_the_same_query_with_other_rows_is_no_change(tmp_path: Path) -> None:
    proposal = nao_proposal(tmp_path, "|\n  select 1\n  from t", "SELECT 2")
    assert proposal.changes[0].after == "SELECT 2"
    proposal = nao_proposal(tmp_path, "|\n  select 1\n  from t", "select 1\nfrom t\n")
    assert not proposal.changes and "the agent's own query is this one already" in proposal.unable[0]


@pytest.mark.parametrize(
    "sql", ["select 1", "'select 1'", '"select 1"', "|\n  select 1", ">-\n  select\n  1"]
)
def test_any_query_in_any_style_reads_back(tmp_path: Path, sql: str) -> None:
    query = "SELECT 'it''s', \"a: b\" # c\n  -- comment: {x}\nFROM \tt\n\nWHERE 1 = 1 -- ende ü"
    proposal = nao_proposal(tmp_path, sql, query)
    write(proposal)
    suite = reading.load(tmp_path / "t.yml", load([tmp_path]), Trust())
    assert not suite.problems and suite.cases[0].assertions[0].value == query


@pytest.mark.parametrize(
    ("wanted", "answer", "found"),
    [
        ("Saturday", "It comes on **Sunday**.", None),
        ("refund policy", "our **Refunds policy**.", "Refunds policy"),
        ("90 days", "You may stay for some days.", None),
        ("erste Pressung", "Olivenöl aus eigener Ernte, kaltgepresst.", None),
        ("the fee (5 €)", "So the fee (6 €) applies", "the fee (6 €)"),
        ("48213", "order 48214 of 2026", "48214"),
        ("48213", "order 48214.", "48214"),
        ("the price is 79 euros", "Well, the price\nis 89 euros.", "the price\nis 89 euros"),
        ("the price is 79 euros", "Well, the  price is 89 euros.", "the  price is 89 euros"),
        ("paris", "İİİ says Paris is it", "Paris"),
    ],
)
def test_the_nearest_text_is_no_wild_guess(wanted: str, answer: str, found: str | None) -> None:
    if found is None:
        with pytest.raises(EditError, match="no part of the answer is near"):
            nearest(wanted, answer)
    else:
        assert nearest(wanted, answer) == found
