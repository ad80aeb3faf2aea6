"""Accepting an answer: the change to the suite file, comments and layout kept, in all four formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tui_eval.config.project import load
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import Recorded, RunRequest
from tui_eval.formats import reading
from tui_eval.formats.accepting import Proposal, diff_of, propose, shown_diff, write
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, DataDetails, Entry, Evidence, Reply, Verdict
from tui_eval.store.reader import RunReader
from tui_eval.yaml.yaml_edit import EditError


def project(root: Path, answer: str, **files: str) -> Path:
    script = f"default:\n  steps:\n    - {{call: search, arguments: {{query: price, top: 5}}, result: 1}}\n    - {{say: {answer!r}}}\n"
    named = {"agent.script.yaml": script, **files}
    named.setdefault("tui_eval.yaml", "agents: {helper: {type: scripted, script: agent.script.yaml}}\n")
    for name, text in named.items():
        (root / name).write_text(text, newline="")
    return root


async def judged(root: Path, recorded: Recorded | None = None) -> tuple[list[Case], list[Attempt], Recorded]:
    active = prepare(RunRequest(paths=[str(root)], agents=["helper"], continue_from=recorded))
    assert active.writer is not None
    folder = active.writer.folder
    await active.execute()
    reader = RunReader(folder)
    try:
        refs = [row.id for row in reader.attempts()]
        attempts = [reader.attempt(ref) for ref in refs]
        cases = [reader.case(row.case_ref) for row in reader.attempts()]
    finally:
        reader.close()
    return cases, [attempt for attempt in attempts if attempt is not None], Recorded(folder.name, refs[0])


async def accepted(root: Path) -> Proposal:
    """Run, accept, judge the recorded answer again: it has passed."""
    cases, attempts, recorded = await judged(root)
    assert attempts[0].outcome == "failed", attempts[0].message
    proposal = propose(cases[0], attempts[0], root)
    assert not proposal.unable
    write(proposal)
    _, again, _ = await judged(root, recorded)
    assert again[0].outcome == "passed", again[0].message
    return proposal


GUIDE = """\
# what we sell
agent: helper   # ours
test_cases:
  - name: "price"      # asked daily
    input: 'how much?'
    expected:
      should_contain:
        - "the price is 79 euros"   # per year
        - "euros"
      should_not_contain: [ "sorry",  "price" ]
      max_tool_calls: 0     # none

      tools_used: [ lookup ]
  # the rest
  - {name: other, input: x}
"""


@pytest.mark.real
async def test_start_to_agent(tmp_path: Path) -> None:
    root = project(tmp_path, "Well, the price is 89 euros.", **{"suite.yaml": GUIDE})
    proposal = await accepted(root)
    assert (root / "suite.yaml").read_text() == GUIDE.replace(
        '"the price is 79 euros"', '"the price is 89 euros"'
    ).replace('[ "sorry",  "price" ]', '[ "sorry" ]').replace("_calls: 0", "_calls: 1").replace(
        "lookup", "search"
    )
    assert [(change.line, change.after) for change in proposal.changes] == [
        (8, "the price is 89 euros"),
        (10, "(left out)"),
        (11, "1"),
        (13, "search"),
    ]
    assert proposal.diff.startswith("--- a/suite.yaml\n+++ b/suite.yaml\n")
    assert '-        - "the price is 79 euros"   # per year' in proposal.diff
    assert '+        - "the price is 89 euros"   # per year' in proposal.diff


PROMPTFOO = """\
prompts: ["{{q}}"]
providers: [echo]
tests:
  # first
  - vars: {q: x}
    assert:
      - type: equals
        value: >-
          something
          else
      - {type: icontains, value: 'prize'}   # sic
      - type: not-contains
        value: price
      - type: contains-all
        value: [the, 'eurs']
"""


async def test_promptfoo_yaml(tmp_path: Path) -> None:
    root = project(tmp_path, "the price is: 89 euros", **{"promptfooconfig.yaml": PROMPTFOO})
    await accepted(root)
    text = (root / "promptfooconfig.yaml").read_text()
    assert "# first" in text and "value: 'price'}   # sic" in text and "not-contains" not in text
    assert "          the price is: 89 euros\n" in text and "value: [the, 'euros']" in text


CSV = (
    "q,__expected1,note,__expected2\r\n"
    '"first, ""row""\r\nin two lines",equals:a,"n, m",contains: a\r\n'
    'second,the old answer,,"contains-any: one, ""two, three"""\r\n'
)


async def test_promptfoo_csv(tmp_path: Path) -> None:
    config = "prompts: ['{{q}}']\nproviders: [echo]\ntests: tests.csv\n"
    root = project(tmp_path, "the new answer, a", **{"promptfooconfig.yaml": config, "tests.csv": CSV})
    cases, attempts, _ = await judged(root)
    assert [case.file for case in cases] == ["tests.csv", "tests.csv"]
    assert [case.line for case in cases] == [2, 4]
    for case, attempt in zip(cases[:1], attempts[:1], strict=True):
        proposal = propose(case, attempt, root)
        assert not proposal.unable and len(proposal.changes) == 1
        write(proposal)
    assert (root / "tests.csv").read_bytes().decode() == CSV.replace(
        "equals:a,", '"equals:the new answer, a",'
    )
    proposal = propose(cases[1], attempts[1], root)
    assert proposal.changes[0].after == "the new answer, a" and proposal.unable


HOCON = """\
{
    # the agent
    "agent": "helper"
    connections: [ http ]
    interactions: [
        {
            text: "how much?"   // asked daily
            response: { text: { keywords: [ "eighty", "euros" ] } }
        }
        { text = two, response { text { value: "what was it" } } }
    ]
}
"""


@pytest.mark.real
async def test_neuro_san(tmp_path: Path) -> None:
    root = project(tmp_path, "it is eightyone euros", **{"case.hocon": HOCON.replace("eighty", "eightone")})
    await accepted(root)
    assert (root / "case.hocon").read_text() == HOCON.replace("eighty", "eightyone").replace(
        "what was it", "it is eightyone euros"
    )


def test_neuro_san_says_where_it_is_ambiguous(tmp_path: Path) -> None:
    text = '{agent: a, interactions: [{text: x, response: {text: {keywords: ["b", "b"]}}}]}\n'
    (tmp_path / "case.hocon").write_text(text)
    case = Case("c", "c", "case.hocon", "neuro_san")
    verdict = Verdict("keywords", False, expected="b", actual="only this", turn=1, line=1)
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path)
    assert not proposal.changes and "edit the case" in proposal.unable[0]


@pytest.mark.parametrize(
    ("interactions", "line"),
    [
        ('{ text: x, response { include "tests.inc" } }, { text: y,\nresponse.text.value: "old" }', 2),
        ('{ text: x, response = ${both} }, { text: y,\nresponse = ${both} } ]\nboth = {\ntext.value = "old" }, more = [', 1),
        ('{ text: "old", response = ${both} } ]\nboth = { text.value = old }, more = [', 1),
        ('{ text: "old", response.text.value = ${word} } ]\nword = old, more = [', 1),
        ('${first}, { text: y,\nresponse.text.value: "old" } ]\nfirst = { text: x, response.text.value: old }, more = [', 2),
        ('{ text: x, response.text.not_value: "old" } { response.text.value: ${?word} } ]\nword = old, more = [', 1),
    ],
)  # fmt: skip
def test_neuro_san_changes_nothing_but_what_the_test_has(
    tmp_path: Path, interactions: str, line: int
) -> None:
    """What an include or a substitution brought has its line elsewhere; what stands on that line is another's."""
    (tmp_path / "case.hocon").write_text(f"{{agent: a, interactions: [ {interactions} ] }}\n")
    (tmp_path / "tests.inc").write_text('\ntext.value: "old"\n')
    case = Case("c", "c", "case.hocon", "neuro_san")
    verdict = Verdict("value", False, target="text", expected="old", actual="new", turn=1, line=line)
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path)
    assert not proposal.changes and "edit the case" in proposal.unable[0]


def test_neuro_san_changes_what_the_test_has_beside_what_an_include_brought(tmp_path: Path) -> None:
    """It was said to come from an include itself."""
    test = 'include "common.inc"\nagent = ${the_agent}\ninteractions = [ ${turn} { text = "say "${word}\nresponse.text.value: "old" } ]\n'
    (tmp_path / "case.hocon").write_text(test)
    (tmp_path / "common.inc").write_text("the_agent = a, word = hi, turn = { timeout_in_seconds = 9 }\n")
    case = Case("c", "c", "case.hocon", "neuro_san")
    verdict = Verdict("value", False, target="text", expected="old", actual="new", turn=1, line=4)
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path)
    assert len(proposal.changes) == 1 and not proposal.unable


@pytest.mark.parametrize("said", ["True", "FALSE", "Null", "no", "Hello"])
def test_neuro_san_keeps_an_accepted_text_a_text(tmp_path: Path, said: str) -> None:
    """HOCON takes constants however they are written, and a test of null tests nothing."""
    text = "{agent: a, interactions: [{text: x, response: {sly_data: {k: {value: other}}}}]}\n"
    (tmp_path / "case.hocon").write_text(text)
    verdict = Verdict("value", False, target="sly_data.k", expected="other", actual=said, turn=1, line=1)
    case = Case("c", "c", "case.hocon", "neuro_san")
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path)
    written = said if said == "Hello" else f'"{said}"'
    assert list(proposal.texts.values()) == [(text, text.replace("other", written))]


@pytest.mark.parametrize(
    ("expected", "actual", "why"),
    [("must not leave", None, "the answer has nothing there"), ("x", {"a": 1}, "no single text or number")],
)
def test_neuro_san_says_why_a_value_cannot_be_accepted(
    tmp_path: Path, expected: str, actual: Any, why: str
) -> None:
    text = f'{{agent: a, interactions: [{{text: x, response: {{sly_data: {{secret: {{value: "{expected}"}}}}}}}}]}}\n'
    (tmp_path / "case.hocon").write_text(text)
    case = Case("c", "c", "case.hocon", "neuro_san")
    verdict = Verdict(
        "value", False, target="sly_data.secret", expected=expected, actual=actual, turn=1, line=1
    )
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path)
    assert not proposal.changes and why in proposal.unable[0]


NAO = """\
name: revenue
prompt: What was it?
# by hand
sql: |
  select 1 as a   -- old
  from t

assertions:
  - type: tool_call   # looks
    tool: run_sql
    args: {database: db, limit: 10}
  - {type: tool_call, tool: run_sql, min_count: 3}
"""


def test_nao(tmp_path: Path) -> None:
    (tmp_path / "t.yml").write_text(NAO)
    case = Case("c", "c", "t.yml", "nao")
    first = {"tool": "run_sql", "args": {"database": "db", "limit": 10}}
    verdicts = [
        Verdict("sql", False, target="rows", expected="select 1 as a", line=4),
        Verdict("tool_call", False, expected=first, line=9),
        Verdict("tool_call", False, expected={"tool": "run_sql", "min_count": 3}, line=12),
    ]
    call = Entry(1, "tool_call", name="run_sql", arguments={"database": "db", "limit": 20, "more": "x"})
    attempt = Attempt("c", 1, "failed", verdicts=verdicts, transcript=[call])
    attempt.data = DataDetails(verification_sql="select 2 as a\nfrom u: v")
    proposal = propose(case, attempt, tmp_path)
    assert not proposal.unable
    write(proposal)
    assert (tmp_path / "t.yml").read_text() == NAO.replace(
        "  select 1 as a   -- old\n  from t\n", "  select 2 as a\n  from u: v\n"
    ).replace("sql: |", "sql: |-").replace("limit: 10", "limit: 20").replace("count: 3", "count: 1")


@pytest.mark.parametrize(
    ("blame", "note", "unable"),
    [
        ("query", "the answer has the rows of this query", ""),
        ("both", "", "with it the case would still fail"),
        ("unknown", "cannot be run here: gone", ""),
        ("retold", "", "gives the expected rows, its answer retold them wrongly"),
    ],
)
def test_the_agents_query_is_taken_with_what_was_concluded_of_it(
    tmp_path: Path, blame: str, note: str, unable: str
) -> None:
    (tmp_path / "t.yml").write_text(NAO)
    case = Case("c", "c", "t.yml", "nao")
    attempt = Attempt("c", 1, "failed", verdicts=[Verdict("sql", False, "rows", line=4)])
    kept = {"blame": blame, "line": "the agent's query cannot be run here: gone"}
    attempt.data = DataDetails(verification_sql="select 2 as a from t", settings={"conclusion": kept})
    proposal = propose(case, attempt, tmp_path)
    assert note in " ".join(proposal.notes) and bool(proposal.changes) is not bool(unable)
    assert unable in " ".join(proposal.unable) and ("+  select 2 as a from t" in proposal.diff) is not bool(
        unable
    )


def test_an_expected_query_that_fails_may_become_the_agents(tmp_path: Path) -> None:
    (tmp_path / "t.yml").write_text(NAO)
    case = Case("c", "c", "t.yml", "nao")
    failed = Verdict("sql", None, "rows", line=4, evidence=[Evidence("sql", "query-failed", text="no table")])
    attempt = Attempt("c", 1, "error", verdicts=[failed])
    attempt.data = DataDetails(verification_sql="select 2 as a from t")
    assert len(propose(case, attempt, tmp_path).changes) == 1
    failed.evidence = [Evidence("sql", "no-database")]
    assert not propose(case, attempt, tmp_path).changes


HOSTILE = 'say "\u202ehi\x1b[31m\x00 \u2028 # : {x} \'" & *b ! % @ `\ud800'


@pytest.mark.parametrize("style", ['"x"', "'x'", "x", "|\n          x\n", ">-\n          x\n"])
def test_any_answer_gives_a_file_that_reads_back(tmp_path: Path, style: str) -> None:
    text = f"prompts: [p]\nproviders: [echo]\ntests:\n  - assert:\n      - type: equals\n        value: {style}\n"
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(text)
    answer = HOSTILE.replace("\ud800", "") + "\n  two\n\n"
    verdict = Verdict("equals", False, expected="x", actual=answer, line=5)
    case = Case("c", "c", path.name, "promptfoo")
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path)
    assert not proposal.unable
    write(proposal)
    suite = reading.load(path, load([tmp_path]), Trust())
    assert not suite.problems
    assert suite.cases[0].assertions[0].value == answer


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(GUIDE)
    verdict = Verdict("max_tool_calls", False, expected=0, actual=4, line=11)
    case = Case("c", "c", "suite.yaml", "start_to_agent")
    proposal = propose(case, Attempt("c", 1, "failed", verdicts=[verdict]), tmp_path)
    path.write_text(GUIDE + "# more\n")
    with pytest.raises(EditError, match="changed meanwhile"):
        write(proposal)
    assert path.read_text() == GUIDE + "# more\n"


EDITED = {
    "suite.yaml": (
        "agent: helper\ntest_cases:\n",
        "- name: {0}\n  input: x\n  expected:\n    max_tool_calls: {1}\n    should_contain: [eurs]\n",
    ),
    "promptfooconfig.yaml": (
        "prompts: ['{{q}}']\nproviders: [helper]\ntests:\n",
        "- description: {0}\n  vars: {{q: x}}\n  assert:\n  - {{type: equals, value: {1}}}\n  - {{type: contains, value: eurs}}\n",
    ),
}


@pytest.mark.usually(1)
@pytest.mark.parametrize("name", EDITED)
async def test_of_an_edited_file_no_other_case_is_changed(tmp_path: Path, name: str) -> None:
    """Where the case's assertion stood, another one's stands now."""
    head, case = EDITED[name]
    root = project(tmp_path, "euros", **{name: head + case.format("a", 0)})
    _, attempts, _ = await judged(root)
    (root / name).write_text(head + case.format("b", 0) + case.format("a", 9))
    now = reading.load(root / name, load([root]), Trust()).cases[-1]
    proposal = propose(now, attempts[0], root)
    (said,) = proposal.unable
    assert "the case does not ask for this any more: run it again (r)" in said
    write(proposal)
    left = case.format("a", 9).replace("eurs", "euros")
    assert (root / name).read_text() == head + case.format("b", 0) + left


async def test_of_cases_on_one_line_the_own_one_is_changed(tmp_path: Path) -> None:
    case = '{{"name": "{}", "input": "x", "expected": {{"escalated": true, "max_tool_calls": 0}}}}'
    text = f'{{"agent": "helper", "test_cases": [{case.format("a")}, {case.format("b")}]}}'
    root = project(tmp_path, "euros", **{"suite.yaml": text})
    cases, attempts, _ = await judged(root)
    proposal = propose(cases[1], attempts[1], root)
    assert not proposal.unable
    write(proposal)
    after = case.format("b").replace("true", "false").replace("0", "1")
    assert (root / "suite.yaml").read_text() == text.replace(case.format("b"), after)


LIMITED = (
    "prompts: ['{{q}}']\nproviders: [helper]\ntests:\n- vars: {q: x, w: y}\n  assert:\n"
    "  - {type: latency, threshold: 0}\n  - {type: equals, value: '{{w}}'}\n"
)


async def test_a_limit_and_a_template_are_found_where_the_file_has_them_now(tmp_path: Path) -> None:
    """A verdict has the limit, and what the template had become: neither is the value that the file says."""
    root = project(tmp_path, "euros", **{"promptfooconfig.yaml": LIMITED})
    _, attempts, _ = await judged(root)
    (root / "promptfooconfig.yaml").write_text("# ours\n" + LIMITED)
    (now,) = reading.load(root / "promptfooconfig.yaml", load([root]), Trust()).cases
    proposal = propose(now, attempts[0], root)
    assert [(change.line, change.before) for change in proposal.changes] == [(7, "0")]
    assert proposal.unable == ["equals: the expected text is a template: edit the variable (e)"]


async def test_that_an_answer_is_one_to_another_question_is_said(tmp_path: Path) -> None:
    root = project(tmp_path, "euros", **{"suite.yaml": GUIDE})
    cases, attempts, _ = await judged(root)
    assert not propose(cases[0], attempts[0], root).notes
    cases[0].turns[0].text = "how many?"
    (note,) = propose(cases[0], attempts[0], root).notes
    assert note == "turn 1 of the case reads otherwise than what was answered: r asks it"
    attempts[0].outcome, attempts[0].message = "skipped", "by hand, no result: turn 2 was left out"
    assert propose(cases[0], attempts[0], root).notes == [attempts[0].message]


def test_what_needs_a_person_is_said(tmp_path: Path) -> None:
    (tmp_path / "suite.yaml").write_text(GUIDE)
    case = Case("c", "c", "suite.yaml", "start_to_agent")
    verdict = Verdict("should_contain", False, expected="the price is 79 euros", line=8)
    attempt = Attempt("c", 1, "failed", verdicts=[verdict], replies=[Reply(1, "zzz")], response_text="qqq")
    proposal = propose(case, attempt, tmp_path)
    assert not proposal.changes
    assert proposal.unable == [
        "should_contain: no part of the answer is near 'the price is 79 euros': edit the case (e)"
    ]
    gone = msgspec.structs.replace(case, suite="gone.yaml")
    assert propose(gone, attempt, tmp_path).unable == ["gone.yaml: No such file or directory"]


@pytest.mark.parametrize("value", ["'{{price}}'", "['{{price}}']", "'{% if true %}79{% endif %}'"])
async def test_an_expected_text_that_is_a_template_is_said_to_be_one(tmp_path: Path, value: str) -> None:
    kind = "contains-any" if value.startswith("[") else "contains"
    suite = (
        "prompts: ['{{q}}']\nproviders: [helper]\ntests:\n  - vars: {q: price?, price: '79'}\n"
        f"    assert: [{{type: {kind}, value: {value}}}]\n"
    )
    root = project(tmp_path, "the price is 89 euros", **{"promptfooconfig.yaml": suite})
    cases, attempts, _ = await judged(root)
    proposal = propose(cases[0], attempts[0], root)
    assert not proposal.changes
    assert proposal.unable == [f"{kind}: the expected text is a template: edit the variable (e)"]


PLANTED = "sk-planted-0123456789"


async def test_what_was_masked_in_the_record_is_not_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", PLANTED)
    suite = "prompts: ['{{q}}']\nproviders: [helper]\ntests:\n- vars: {q: x}\n  assert: [{type: equals, value: my key is sk-another}]\n"
    root = project(tmp_path, f"my key is {PLANTED}", **{"promptfooconfig.yaml": suite})
    cases, attempts, _ = await judged(root)
    proposal = propose(cases[0], attempts[0], root)
    assert "•••" in attempts[0].response_text and not proposal.texts
    assert proposal.unable == ["equals: the record has ••• for a secret in it: edit the case (e)"]


@pytest.mark.parametrize("value", ["['one', '{{env.SOME_CITY}}']", "'{{env.SOME_CITY}}, one'"])
async def test_a_list_that_names_a_variable_of_the_environment_is_not_written_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("SOME_CITY", "Llanfairpwll")
    suite = f"prompts: ['{{{{q}}}}']\nproviders: [helper]\ntests:\n- vars: {{q: x}}\n  assert: [{{type: contains-all, value: {value}}}]\n"
    root = project(tmp_path, "ones in Llanfairpwll, own", **{"promptfooconfig.yaml": suite})
    suites = reading.load(root / "promptfooconfig.yaml", load([root]), Trust(granted=True))
    cases, attempts, _ = await judged(root)
    attempts[0].verdicts[0] = msgspec.structs.replace(
        attempts[0].verdicts[0], passed=False, expected=["uno", "Llanfairpwll"]
    )
    for case in (suites.cases[0], cases[0]):
        proposal = propose(case, attempts[0], root)
        assert proposal.unable and not proposal.texts


def test_a_change_is_shown_with_secrets_masked_whatever_they_are_written_in() -> None:
    case = Case("c", "c", "s.yaml", "start_to_agent")
    new = """\
providers:
  - id: openai:gpt
    config: {apiKey: "sk-first-998877", max_tokens: 400}
  - config:
      apiKey: short1
      headers: {Authorization: 'Bearer abc-token-123'}
      url: https://me:pa55@host/?token=tiny1
      privateKey: |
        line-one-of-the-key
        line-two-of-the-key
      api_key: '{{env.OPENAI_API_KEY}}'
tests: [{vars: {text: "sk-first-998877 and known-elsewhere"}}]
"""
    shown = shown_diff({"new.yaml": ("", new)}, case, ["known-elsewhere"])
    for secret in ("sk-first", "short1", "abc-token", "pa55", "tiny1", "line-one", "line-two", "known-else"):
        assert secret not in shown
    assert (
        "+      apiKey: •••\n" in shown and "max_tokens: 400" in shown and "{{env.OPENAI_API_KEY}}" in shown
    )
    hocon = shown_diff(
        {"a.hocon": ("", 'x { api_key = "short1", text = "hi" }\napi_key = "short2"\n')}, case, []
    )
    assert "+api_key = •••\n" in hocon and 'text = "hi"' in hocon


def test_a_change_is_shown_in_lines_as_editors_count_them() -> None:
    shown = diff_of("t.jsonl", '{"a": "x\u2028y", "b": 1}\n', '{"a": "x\u2028y", "b": 2}\n')
    assert [line[:1] for line in shown.split("\n")] == ["-", "+", "@", "-", "+", ""]


def test_what_holds_no_secret_is_shown_as_it_is_written() -> None:
    case, old, new = (
        Case("c", "c", "s.yaml", "start_to_agent"),
        "a: 1\nkeywords: [x]\n",
        "a: 2\nkeywords: [y]\n",
    )
    shown = shown_diff({"s.yaml": (old, new)}, case, [])
    assert (
        shown == "--- a/s.yaml\n+++ b/s.yaml\n@@ -1,2 +1,2 @@\n-a: 1\n-keywords: [x]\n+a: 2\n+keywords: [y]\n"
    )


UNWANTED = """\
prompts: ['{{q}}']
providers: [echo]
tests:
  - vars: {q: x}
    assert:
      - type: not-contains-any
        value: [PRICE, price, 'sorry', euros]  # flow
      - type: not-icontains-any
        value:
          - sorry     # never
          - Price     # said
      - {type: not-contains-all, value: [the, price]}
      - {type: not-contains-any, value: [price]}
"""


async def test_of_texts_none_of_which_may_be_there_only_those_that_are_there_are_left_out(
    tmp_path: Path,
) -> None:
    """The others went too: an answer with `sorry` passed then."""
    root = project(tmp_path, "the price is 89 euros", **{"promptfooconfig.yaml": UNWANTED})
    proposal = await accepted(root)
    text = (root / "promptfooconfig.yaml").read_text()
    assert "value: [PRICE, 'sorry']  # flow\n" in text and "value:\n          - sorry     # never\n" in text
    assert "Price" not in text and "-all" not in text and text.count("not-contains-any") == 1
    assert proposal.changes[0].after == '["PRICE", "sorry"]'


async def test_of_texts_in_one_text_none_is_left_out_by_guess(tmp_path: Path) -> None:
    text = UNWANTED[: UNWANTED.index("value:")] + "value: price, sorry\n"
    root = project(tmp_path, "the price is 89 euros", **{"promptfooconfig.yaml": text})
    cases, attempts, _ = await judged(root)
    proposal = propose(cases[0], attempts[0], root)
    assert not proposal.changes and "several texts stand in one" in proposal.unable[0]


async def test_of_a_tables_cell_too(tmp_path: Path) -> None:
    config = "prompts: ['{{q}}']\nproviders: [echo]\ntests: t.csv\n"
    table = 'q,__expected1,__expected2\nx,"not-contains-any: sorry, price",not-contains-any: price\n'
    root = project(tmp_path, "the price is 89 euros", **{"promptfooconfig.yaml": config, "t.csv": table})
    await accepted(root)
    assert (root / "t.csv").read_text() == "q,__expected1,__expected2\nx,not-contains-any: sorry,\n"
