"""A conversation saved as a new case: the file reads back without a problem, and it passes when run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.config.project import load
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.formats import format_of, reading
from tui_eval.formats.accepting import replace_file
from tui_eval.formats.saving import left_out, own_suite, proposed_name, proposed_path, save, talk_of, unread
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, Entry, Outcome, Reply, Turn
from tui_eval.store.reader import RunReader
from tui_eval.suites.saved_talk import facts
from tui_eval.yaml.yaml_edit import EditError

FORMATS: tuple[str, ...] = ("start_to_agent", "nao", "promptfoo", "neuro_san")
SCRIPT = """
rules:
  - match: {contains: revenue}
    steps:
      - {call: run_sql, arguments: {query: "select 79.5 as revenue", limit: 5}, result: 1}
      - {say: 'The revenue is **79.50** euros.'}
    reply: {}
default: {say: "Hello {{message}}, I am \\"Ada\\"."}
"""


def talk(*asked: str, sql: str = "select 79.5 as revenue") -> tuple[Case, Attempt]:
    case = Case("s::c", "what we earn", "suite.yaml", "start_to_agent", turns=[Turn(text) for text in asked])
    attempt = Attempt("s::c", 1, "passed", agent="helper")
    for number, text in enumerate(asked, 1):
        said = "The revenue is **79.50** euros." if "revenue" in text else f'Hello {text}, I am "Ada".'
        attempt.transcript.append(Entry(number, "user", text=text))
        if "revenue" in text:
            arguments = {"query": sql, "limit": 5}
            attempt.transcript.append(Entry(number, "tool_call", name="run_sql", arguments=arguments))
        attempt.transcript.append(Entry(number, "assistant", text=said))
        attempt.replies.append(Reply(number, said))
    return case, attempt


async def run(root: Path, path: Path) -> list[Attempt]:
    (root / "agent.script.yaml").write_text(SCRIPT.replace("    reply: {}\n", ""))
    config = "agents: {helper: {type: scripted, script: agent.script.yaml}}\n"
    (root / "tui_eval.yaml").write_text(config)
    active = prepare(RunRequest(paths=[str(path)], agents=["helper"]))
    assert active.writer is not None
    folder = active.writer.folder
    await active.execute()
    reader = RunReader(folder)
    try:
        return [attempt for row in reader.attempts() if (attempt := reader.attempt(row.id)) is not None]
    finally:
        reader.close()


def read(root: Path, path: Path):
    suite = reading.load(path, load([root]), Trust())
    return suite, [problem for problem in suite.problems if problem.level == "error"]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("asked", [("what is the revenue?",), ("Bob", "and the revenue?")])
async def test_a_new_file_of_each_format_is_clean_and_passes(
    tmp_path: Path, form: str, asked: tuple[str, ...]
) -> None:
    case, attempt = talk(*asked)
    path = tmp_path / proposed_path(form, case, tmp_path)
    old, text = save(form, path, talk_of(case, attempt, "saved"))
    assert old is None
    replace_file(path, old, text)
    suite, problems = read(tmp_path, path)
    assert not problems and suite.format == form and len(suite.cases) == 1
    if form == "nao":  # its rows would be asked of a database
        assert [one.type for one in suite.cases[0].assertions] == ["tool_call", "sql"]
        return
    attempts = await run(tmp_path, path)
    assert [attempt.outcome for attempt in attempts] == ["passed"], attempts[0].message
    assert attempts[0].verdicts


async def test_a_nao_test_without_sql_runs(tmp_path: Path) -> None:
    case, attempt = talk("what is the revenue?", sql="")
    attempt.transcript[1].arguments = {"limit": 5}
    path = tmp_path / "tests" / "x.yml"
    replace_file(path, *save("nao", path, talk_of(case, attempt)))
    assert (await run(tmp_path, path))[0].outcome == "passed"


GUIDE = "# ours\nagent: helper  # the one\ntest_cases:\n\n  - name: a   # first\n    input: x\n\n  - {name: b, input: y}   # last\n# end\n"


async def test_added_to_an_existing_suite_its_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(GUIDE)
    case, attempt = talk("what is the revenue?")
    replace_file(path, *save("start_to_agent", path, talk_of(case, attempt, "c")))
    text = path.read_text()
    assert text.startswith(GUIDE.removesuffix("# end\n")) and text.endswith("# end\n")
    suite, problems = read(tmp_path, path)
    assert not problems and [one.name for one in suite.cases] == ["a", "b", "c"]
    assert (await run(tmp_path, path))[2].outcome == "passed"


async def test_added_to_a_promptfoo_suite_with_its_own_variable(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    own = "prompts:\n- 'Q: {{ question }}'\nproviders: [helper]\ntests:\n- vars: {question: x}\n"
    path.write_text(own)
    case, attempt = talk("what is the revenue?")
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c")))
    assert path.read_text().startswith(own)
    assert [one.outcome for one in await run(tmp_path, path)] == ["passed", "passed"]
    case, attempt = talk("one", "two")
    with pytest.raises(EditError, match="take one message"):
        save("promptfoo", path, talk_of(case, attempt))


HOSTILE = 'a "b" \\ \u202e\x1b[31m\x07 {{ secret }} {% x %} # : \' & ${HOME} é 中\n\n  two\n'


@pytest.mark.parametrize("form", FORMATS)
def test_hostile_texts_read_back_as_they_were(tmp_path: Path, form: str) -> None:
    case, attempt = talk("x")
    attempt.transcript[0].text = HOSTILE
    attempt.agent = "helper"
    path = (
        tmp_path
        / "tests"
        / f"{'promptfooconfig' if form == 'promptfoo' else 'x'}{format_of(form).saved_ending}"
    )
    replace_file(path, *save(form, path, talk_of(case, attempt, 'na"me\x1b: #\n{')))
    suite, problems = read(tmp_path, path)
    assert not problems and len(suite.cases) == 1
    one = suite.cases[0]
    if form == "promptfoo":
        assert one.vars == {"message": "{% raw %}" + HOSTILE + "{% endraw %}"}
    else:
        assert one.turns[0].text == HOSTILE


def test_an_existing_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "x.hocon"
    path.write_text("{}")
    case, attempt = talk("one")
    with pytest.raises(EditError, match="one case"):
        save("neuro_san", path, talk_of(case, attempt))
    with pytest.raises(EditError, match="exists already"):
        replace_file(path, None, "x")
    with pytest.raises(EditError, match=r"must end in \.hocon"):
        save("neuro_san", tmp_path / "x.yaml", talk_of(case, attempt))


def test_what_is_proposed() -> None:
    assert facts("It costs **79.50 euros** or 12% of 1,000") == ["79.50", "12%", "1,000"]
    assert facts('The winner is "Ada Lovelace".') == ["Ada Lovelace"]
    assert facts("It is magnificent indeed") == ["magnificent"]
    assert facts("…") == []


@pytest.mark.parametrize("form", ["start_to_agent", "promptfoo"])
def test_the_turn_at_which_the_agent_broke_is_saved(tmp_path: Path, form: str) -> None:
    case, attempt = talk("hello", "more", "boom now")
    attempt.outcome = "error"
    del attempt.transcript[-1], attempt.replies[-1]
    path = tmp_path / ("suite.yaml" if form == "start_to_agent" else "promptfooconfig.yaml")
    text = save(form, path, talk_of(case, attempt))[1]
    assert text.index("hello") < text.index("more") < text.index("boom now")


@pytest.mark.parametrize("form", FORMATS)
def test_a_conversation_that_one_reply_answers_is_saved_with_all_its_messages(
    tmp_path: Path, form: str
) -> None:
    asked = ["My name is Ada.", "I live in Rome.", "What is my name?"]
    case, attempt = talk(*asked)
    attempt.transcript = [entry for entry in attempt.transcript if entry.kind == "user" or entry.turn == 3]
    del attempt.replies[:2]
    path = tmp_path / proposed_path(form, case, tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, *save(form, path, talk_of(case, attempt, "saved")))
    suite, problems = read(tmp_path, path)
    assert not problems
    sent = (
        str(suite.cases[0].vars)
        if form == "promptfoo"
        else " ".join(str(t.text) for t in suite.cases[0].turns)
    )
    assert sent.index(asked[0]) < sent.index(asked[1]) < sent.index(asked[2])
    if form in ("start_to_agent", "neuro_san"):
        assert [turn.text for turn in suite.cases[0].turns] == asked


def test_nothing_to_save() -> None:
    case, attempt = talk("x")
    attempt.replies = []
    with pytest.raises(EditError):
        talk_of(case, attempt)


@pytest.mark.parametrize(
    ("prompt", "asked", "value"),
    [
        ("Say {{word}}", "Say quince", "quince"),
        ("Say {{ word }} twice.", "Say fig\nand date twice.", "fig\nand date"),
        ("Say {{word}}", "something else", "something else"),
        ("{{word}} and {{word}}", "a and a", "a and a"),
        ("{% if word %}{{word}}{% endif %}", "x", "x"),
    ],
)
def test_what_a_prompt_says_itself_is_not_said_twice(
    tmp_path: Path, prompt: str, asked: str, value: str
) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(f"prompts: ['{prompt}']\nproviders: [helper]\ntests:\n- vars: {{word: x}}\n")
    case, attempt = talk(asked)
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c")))
    suite, problems = read(tmp_path, path)
    assert not problems and suite.cases[1].vars == {"word": value}


KEEPING = {
    "start_to_agent": (
        "suite.yaml",
        """agent: helper
test_cases:
  - name: a
    input: what is the revenue?
    expected:
      should_contain: [one, "two: # 'x'"]
      should_not_contain: three
      tools_used: [run_sql]
      max_tool_calls: 1
      escalated: true
      plan: {name: gold, seats: [1, 1.0e+30, null, "a\\nb"]}
""",
    ),
    "promptfoo": (
        "promptfooconfig.yaml",
        """prompts: ['what is the {{what}}? {{how}}', 'or the {{what}}']
providers: [helper]
defaultTest:
  assert:
    - {type: assert-set, threshold: 0.5, assert: [{type: contains, value: d1}, {type: contains, value: d2}]}
    - {type: not-contains, value: d3}
tests:
  - vars: {what: revenue, how: [quickly, slowly], list: x}
    threshold: 0.5
    metadata: {team: a}
    assert:
      - {type: contains, value: '{{what}} file://x', weight: 2, metric: m}
      - type: assert-set
        threshold: 0.5
        assert:
          - {type: regex, value: 'a.*b'}
          - type: javascript
            value: |
              const x = 1
              return output.length > x
""",
    ),
    "nao": (
        "tests/a.yml",
        """name: a
prompt: what is the revenue?
database: shop
comparison: {rtol: 0.5, key: [id]}
sql: |
  select 1 as one
  from t
assertions:
  - {type: tool_call, tool: run_sql, args: {limit: 5}, min_count: 2}
""",
    ),
    "neuro_san": (
        "a.hocon",
        """{
  agent: "net", connections: "http", success_ratio: "2/3", timeout_in_seconds: 9, metadata: {user: me}
  interactions: [
    {text: "what is the revenue?", sly_data: {a: 1}, continue_conversation: false
     response: {text: {keywords: ["one", "two"], not_keywords: "three"}, structure: {"a.b": {c: {value: [{x: 1}]}}}}}
    {text: "and?", chat_filter: "MINIMAL", response: {sly_data: {equals: {value: 5.5}}}}
  ]
}
""",
    ),
}


def stated(case: Case) -> list[tuple]:
    """What a case expects, and what goes out with its messages."""
    own = [
        (a.type, a.value, a.target, a.turn, a.threshold, a.weight, a.metric, a.set)
        for a in [*case.assertions, *(a for turn in case.turns for a in turn.assertions)]
    ]
    sent = [(t.sly_data, t.timeout, t.chat_filter, t.continue_conversation) for t in case.turns]
    rest = (case.threshold, case.metadata, case.attempts, case.required, case.timeout, case.request_metadata)
    return [*own, *sent, rest, (case.comparison, case.database, case.connection)]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("outcome", ["failed", "passed"])
def test_a_case_keeps_what_it_expects(tmp_path: Path, form: str, outcome: Outcome) -> None:
    name, text = KEEPING[form]
    (tmp_path / "tui_eval.yaml").write_text("{}")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    suite, problems = read(tmp_path, path)
    assert not problems
    case = suite.cases[0]
    asked = [turn.text or "" for turn in case.turns]
    if form == "promptfoo":
        asked = ["what is the revenue? quickly"]
    _, attempt = talk(*asked)
    attempt.outcome, attempt.prompt_sent = outcome, asked[0]
    own = own_suite(case.format, case, attempt, tmp_path)
    assert own == (name if form in ("start_to_agent", "promptfoo") else "")
    new = tmp_path / (own or proposed_path(form, case, tmp_path))
    replace_file(new, *save(form, new, talk_of(case, attempt, proposed_name(case, {case.name}))))
    again, problems = read(tmp_path, new)
    assert not problems
    saved = next(one for one in again.cases if form == "neuro_san" or one.name.endswith("(saved)"))
    assert stated(saved) == stated(case)
    if form == "promptfoo":
        assert (saved.vars, saved.prompt) == (case.vars, case.prompt)
        assert [one.prompt for one in again.cases if one.name.endswith("(saved)")] == [
            "what is the {{what}}? {{how}}",
            "or the {{what}}",
        ]


def test_a_promptfoo_test_in_a_new_file_asserts_the_same(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(KEEPING["promptfoo"][1])
    case = read(tmp_path, path)[0].cases[0]
    _, attempt = talk("something that a person typed instead")
    attempt.outcome, attempt.prompt_sent = "failed", "what is the revenue? quickly"
    assert not own_suite(case.format, case, attempt, tmp_path)  # its prompts take two variables
    new = tmp_path / proposed_path("promptfoo", case, tmp_path)
    replace_file(new, *save("promptfoo", new, talk_of(case, attempt, "c")))
    suite, problems = read(tmp_path, new)
    assert not problems
    assert [one.value for one in suite.cases[0].assertions] == [one.value for one in case.assertions]
    assert suite.cases[0].vars == {"message": "something that a person typed instead", **case.vars}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("outcome", ["failed", "error", "cancelled"])
def test_nothing_is_proposed_from_an_answer_that_did_not_pass(
    tmp_path: Path, form: str, outcome: Outcome
) -> None:
    case, attempt = talk("what is the revenue?")
    attempt.outcome = outcome
    path = tmp_path / "tests" / Path(proposed_path(form, case, tmp_path)).name
    text = save(form, path, talk_of(case, attempt))[1]
    assert "79" not in text and "run_sql" not in text
    assert "did not pass" in left_out(form, case, attempt)
    attempt.outcome = "passed"
    assert not left_out(form, case, attempt)


def test_a_row_without_a_name_is_saved_under_its_first_variable(tmp_path: Path):
    case = Case(
        "s.yaml::Row #1", "Row #1", "s.yaml", "promptfoo", vars={"question": "How long is the warranty?"}
    )
    assert proposed_name(case, set()) == "How long is the warranty? (saved)"
    assert proposed_path("promptfoo", case, tmp_path).endswith("how_long_is_the_warranty.yaml")


UNREAD = {
    "start_to_agent": (
        "s.yaml",
        "agent: a\ntest_cases:\n  - {name: one, input: hi, expected: {should_contian: [a], should_contain: [b]}}\n",
        ["left out: s.yaml:3: test_cases[0].expected.should_contian: unknown assertion 'should_contian'"],
    ),
    "promptfoo": (  # it is kept as it stands, and is an error there, too
        "promptfooconfig.yaml",
        "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n  - {vars: {q: hi}, assert: [{type: containz, value: hi}]}\n",
        [],
    ),
}


@pytest.mark.parametrize("form", UNREAD)
def test_what_could_not_be_read_of_the_case_is_said(tmp_path: Path, form: str) -> None:
    """The case was an error for it; saved without it, it would pass."""
    name, text, said = UNREAD[form]
    (tmp_path / "tui_eval.yaml").write_text("{}")
    path = tmp_path / name
    path.write_text(text)
    suite, problems = read(tmp_path, path)
    assert problems
    case = suite.cases[0]
    _, attempt = talk("hi")
    attempt.outcome = "error"
    new = tmp_path / proposed_path(form, case, tmp_path)
    replace_file(new, *save(form, new, talk_of(case, attempt, "c")))
    assert bool(read(tmp_path, new)[1]) is not bool(said)
    found = unread(form, case)
    assert [line[: len(text)] for line, text in zip(found, said, strict=True)] == said
    assert unread("nao", case) == []
