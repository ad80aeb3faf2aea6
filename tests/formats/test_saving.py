"""A conversation saved as a new case: the file reads back without a problem, and it passes when run."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from pathlib import Path

import msgspec
import pytest
import yaml

from tui_eval.config.project import Config, load
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


def project(root: Path) -> tuple[Config, Trust]:
    return load([root]), Trust(granted=True)


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
    old, text = save(form, path, talk_of(case, attempt, "saved"), *project(tmp_path))
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
    replace_file(path, *save("nao", path, talk_of(case, attempt), *project(tmp_path)))
    assert (await run(tmp_path, path))[0].outcome == "passed"


GUIDE = "# ours\nagent: helper  # the one\ntest_cases:\n\n  - name: a   # first\n    input: x\n\n  - {name: b, input: y}   # last\n# end\n"


async def test_added_to_an_existing_suite_its_comments_stay(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(GUIDE)
    case, attempt = talk("what is the revenue?")
    replace_file(path, *save("start_to_agent", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    text = path.read_text()
    assert text.startswith(GUIDE.removesuffix("# end\n")) and text.endswith("# end\n")
    suite, problems = read(tmp_path, path)
    assert not problems and [one.name for one in suite.cases] == ["a", "b", "c"]
    assert (await run(tmp_path, path))[2].outcome == "passed"


def test_line_ends_of_both_kinds_stay_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    path = tmp_path / "suite.yaml"
    text = "# a\r\nagent: helper\ntest_cases:\r\n- name: a\n  input: x\n# end\r\n"
    path.write_text(text, newline="")
    case, attempt = talk("Bob")
    _, new = save("start_to_agent", path, talk_of(case, attempt, "c"), *project(tmp_path))
    assert new.startswith(text.removesuffix("# end\r\n")) and new.endswith("\n# end\r\n")


async def test_added_to_a_promptfoo_suite_with_its_own_variable(tmp_path: Path) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    own = "prompts:\n- 'Q: {{ question }}'\nproviders: [helper]\ntests:\n- vars: {question: x}\n"
    path.write_text(own)
    case, attempt = talk("what is the revenue?")
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert path.read_text().startswith(own)
    assert [one.outcome for one in await run(tmp_path, path)] == ["passed", "passed"]
    case, attempt = talk("one", "two")
    with pytest.raises(EditError, match="take one message"):
        save("promptfoo", path, talk_of(case, attempt), *project(tmp_path))


@pytest.mark.parametrize(
    ("options", "saved"),
    [
        ("commandLineOptions: {filterRange: '0:1'}", False),
        ("evaluateOptions: {filterRange: '0:1'}", False),
        ("commandLineOptions: {filterSample: 1}", False),
        ("commandLineOptions: {filterRange: '0:2'}", True),
        ("commandLineOptions: {filterRange: '1:'}", True),
        ("commandLineOptions: {filterRange: 'x:y'}", False),
        ("commandLineOptions: {filterSampleSeed: 1}", True),
    ],
)
def test_a_promptfoo_suite_that_would_leave_the_test_out_is_not_added_to(
    tmp_path: Path, options: str, saved: bool
) -> None:
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(f"prompts: ['{{{{q}}}}']\nproviders: [helper]\ntests:\n- vars: {{q: x}}\n{options}\n")
    case, attempt = talk("what is the revenue?")
    if not saved:
        with pytest.raises(EditError, match="may leave one more test out: give the name of a new file"):
            save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path))
        return
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    suite, _ = read(tmp_path, path)
    assert "c" in [one.name for one in suite.cases]


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
    replace_file(path, *save(form, path, talk_of(case, attempt, 'na"me\x1b: #\n{'), *project(tmp_path)))
    suite, problems = read(tmp_path, path)
    assert not problems and len(suite.cases) == 1
    one = suite.cases[0]
    if form == "promptfoo":
        assert one.vars == {"message": "{% raw %}" + HOSTILE + "{% endraw %}"}
    else:
        assert one.turns[0].text == HOSTILE


def test_a_file_that_is_changed_stays_what_it_is_beside_its_text(tmp_path: Path) -> None:
    """Its other names kept the old text, and what root changed in a container was root's from then on."""
    path, other = tmp_path / "suite.yaml", tmp_path / "other.yaml"
    path.write_text("old")
    os.link(path, other)
    replace_file(path, "old", "new")
    assert other.read_text() == "new" and other.samefile(path)
    other.unlink()
    path.chmod(0o640)
    with contextlib.suppress(OSError):  # some disks have none
        os.setxattr(path, "user.note", b"mine")
    with contextlib.suppress(PermissionError):  # another owner, of root's
        os.chown(path, 12345, 12346)
    before = path.stat(), os.listxattr(path)
    replace_file(path, "new", "newer")
    after = path.stat(), os.listxattr(path)
    assert path.read_text() == "newer" and after[1] == before[1]
    assert (after[0].st_uid, after[0].st_gid) == (before[0].st_uid, before[0].st_gid)
    assert after[0].st_mode == before[0].st_mode and list(tmp_path.iterdir()) == [path]


def test_a_file_that_no_other_can_take_the_place_of_is_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is mounted by itself into a container; a name of 255 bytes has no room for more."""

    def busy(*_: object) -> None:
        raise OSError(errno.EBUSY, "busy")

    path = tmp_path / f"{'x' * 250}.yaml"
    path.write_text("old")
    replace_file(path, "old", "new")
    assert path.read_text() == "new"
    monkeypatch.setattr(os, "replace", busy)
    replace_file(path, "new", "newer")
    assert path.read_text() == "newer" and list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_a_file_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "suite.yaml"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(EditError, match="No space left"):
        replace_file(path, "old", "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_what_is_read_only_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write anything
    with pytest.raises(EditError, match=r"suite\.yaml is read-only"):
        replace_file(path, "old", "new")
    assert path.read_text() == "old"


def test_a_disk_without_attributes_takes_a_file_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was written over in place there, half of it where the process ended meanwhile."""
    path = tmp_path / "suite.yaml"
    path.write_text("old")
    before = path.stat().st_ino

    def none(path: object) -> list[str]:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(os, "listxattr", none, raising=False)
    replace_file(path, "old", "new")
    assert path.read_text() == "new" and path.stat().st_ino != before


def test_an_existing_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "x.hocon"
    path.write_text("{}")
    case, attempt = talk("one")
    with pytest.raises(EditError, match="one case"):
        save("neuro_san", path, talk_of(case, attempt), *project(tmp_path))
    with pytest.raises(EditError, match="exists already"):
        replace_file(path, None, "x")
    with pytest.raises(EditError, match=r"must end in \.hocon"):
        save("neuro_san", tmp_path / "x.yaml", talk_of(case, attempt), *project(tmp_path))


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
    text = save(form, path, talk_of(case, attempt), *project(tmp_path))[1]
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
    replace_file(path, *save(form, path, talk_of(case, attempt, "saved"), *project(tmp_path)))
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
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
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
    own = own_suite(case.format, case, attempt, *project(tmp_path))
    assert own == (name if form in ("start_to_agent", "promptfoo") else "")
    new = tmp_path / (own or proposed_path(form, case, tmp_path))
    replace_file(
        new, *save(form, new, talk_of(case, attempt, proposed_name(case, {case.name})), *project(tmp_path))
    )
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
    assert not own_suite(case.format, case, attempt, *project(tmp_path))  # its prompts take two variables
    new = tmp_path / proposed_path("promptfoo", case, tmp_path)
    replace_file(new, *save("promptfoo", new, talk_of(case, attempt, "c"), *project(tmp_path)))
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
    text = save(form, path, talk_of(case, attempt), *project(tmp_path))[1]
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
    replace_file(new, *save(form, new, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert bool(read(tmp_path, new)[1]) is not bool(said)
    found = unread(form, case)
    assert [line[: len(text)] for line, text in zip(found, said, strict=True)] == said
    assert unread("nao", case) == []


PLANTED = {"PLANTED_KEY": "sk-planted-0123456789", "PLANTED_CITY": "Llanfairpwll"}
SECRETIVE = """\
description: all that a suite may say
env: {OWN: '{{env.PLANTED_CITY}}'}
prompts:
  - {id: ask, raw: '{{env.PLANTED_CITY}}: {{q}}'}
  - 'or {{q}}'
providers:
  - {id: echo, label: mine, config: {apiKey: '{{env.PLANTED_KEY}}'}}
  - echo
defaultTest:
  options: {prefix: 'P ', suffix: ' {{env.PLANTED_KEY}}'}
  assert: [{type: not-contains, value: 'x{{env.PLANTED_KEY}}x'}]
tests:
  - vars: {q: [fig, plum], token: '{{env.PLANTED_KEY}}', own: '{{env.OWN}}'}
    description: one
    provider: {id: echo, config: {apiKey: '{{env.PLANTED_KEY}}'}}
    providers: [mine]
    prompts: [ask]
    providerOutput: no answer {{env.PLANTED_CITY}}
    threshold: 0.5
    options: {transform: 'output + "{{env.PLANTED_KEY}}"', repeat: 2}
    metadata: {team: '{{env.PLANTED_KEY}}'}
    assertScoringFunction: file://score.py
    assert: [{type: contains, value: 'never {{env.PLANTED_KEY}}'}]
  - {vars: {q: kiwi}, description: two, assert: [{type: contains, value: nope}]}
"""


def secretive(root: Path, monkeypatch: pytest.MonkeyPatch, number: int, asked: str, text: str = SECRETIVE):
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    (root / "tui_eval.yaml").write_text("agents: {helper: {type: scripted, script: s.yaml}}")
    path = root / "promptfooconfig.yaml"
    path.write_text(text)
    case = reading.load(path, *project(root)).cases[number]
    _, attempt = talk(asked)
    attempt.outcome, attempt.agent, attempt.prompt_sent = "failed", case.agent or "", asked
    return case, attempt


def of_file(path: Path, name: str = "c") -> dict:
    """The test of this name as a file has it, and the file."""
    found = yaml.safe_load(path.read_text("utf-8"))
    return {**found, "test": next(one for one in found["tests"] if one.get("description") == name)}


@pytest.mark.parametrize("name", ["promptfooconfig.yaml", "promptfooconfig.new.yaml"])
def test_a_promptfoo_test_is_saved_as_its_file_has_it_and_nothing_is_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    case, attempt = secretive(tmp_path, monkeypatch, 1, "P •••")
    assert PLANTED["PLANTED_KEY"] in str(case)
    path = tmp_path / name
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert not any(value in path.read_text() for value in PLANTED.values())
    saved, before = of_file(path), yaml.safe_load(SECRETIVE)
    own = before["tests"][0]
    assert saved["test"] == {
        **own,
        "description": "c",
        "vars": {**own["vars"], "q": "plum"},
    }
    assert {**saved, "tests": 0, "test": 0, "description": 0} == {
        **before,
        "tests": 0,
        "test": 0,
        "description": 0,
        **({} if "new" not in name else {"description": 0}),
    }
    _, problems = read(tmp_path, path)
    assert not [one for one in problems if "score.py" not in one.message]
    again = [one for one in reading.load(path, *project(tmp_path)).cases if one.name == "c"]
    kept = ("threshold", "options", "metadata", "provider", "provider_output", "attempts", "prompt", "vars")
    assert [[getattr(one, key) for key in kept] for one in again] == [[getattr(case, key) for key in kept]]
    assert again[0].assertions == [
        msgspec.structs.replace(one, line=new.line)
        for one, new in zip(case.assertions, again[0].assertions, strict=True)
    ]


def test_a_new_promptfoo_file_with_a_message_by_hand_has_its_suites_providers_and_no_words_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, attempt = secretive(tmp_path, monkeypatch, 0, "")
    attempt.transcript[0].text = "what a person typed"
    path = tmp_path / "promptfooconfig.new.yaml"
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert not any(value in path.read_text() for value in PLANTED.values())
    saved = of_file(path)
    assert saved["providers"] == yaml.safe_load(SECRETIVE)["providers"]
    (one,) = reading.load(path, *project(tmp_path)).cases
    assert not [problem for problem in one.problems if "score.py" not in problem.message]
    assert one.turns[0].text == "{{message}}" and one.vars["message"] == "what a person typed"
    assert not {"prefix", "suffix"} & one.options.keys() and "prompts" not in saved["test"]
    with pytest.raises(EditError, match="cannot make this message of q"):
        save("promptfoo", tmp_path / case.suite, talk_of(case, attempt, "c"), *project(tmp_path))


def test_of_a_promptfoo_case_that_its_suite_has_no_more_nothing_filled_in_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, attempt = secretive(tmp_path, monkeypatch, 0, "P •••")
    (tmp_path / case.suite).write_text(SECRETIVE.replace("description: one", "description: renamed"))
    for name in (case.suite, "promptfooconfig.new.yaml"):
        with pytest.raises(EditError, match=r"does not have this case any more.*value of \$|•••"):
            save("promptfoo", tmp_path / name, talk_of(case, attempt, "c"), *project(tmp_path))
    (tmp_path / case.suite).unlink()
    attempt.transcript[0].text = "by hand"
    with pytest.raises(EditError, match=r"does not have this case any more.*value of \$"):
        save(
            "promptfoo",
            tmp_path / "promptfooconfig.new.yaml",
            talk_of(case, attempt, "c"),
            *project(tmp_path),
        )
    # Where nothing was filled in, what was run is what the file said.
    plain, attempt = secretive(
        tmp_path, monkeypatch, 0, "Q: x", "prompts: ['Q: {{q}}']\nproviders: [echo]\ntests:\n- vars: {q: x}\n"
    )
    (tmp_path / plain.suite).unlink()
    new = tmp_path / "promptfooconfig.new.yaml"
    replace_file(new, *save("promptfoo", new, talk_of(plain, attempt, "c"), *project(tmp_path)))
    assert of_file(new)["test"]["vars"] == {"message": "Q: x", "q": "x"}


def test_a_promptfoo_test_from_a_table_or_a_scenario_keeps_what_is_said_there(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "t.csv").write_text("q,__expected,__threshold\n{{env.HOME}},contains:x,0.4\nplum,equals:y,\n")
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "prompts: ['{{q}} {{more}}']\nproviders: [echo]\ntests: [file://t.csv]\nscenarios:\n"
        "- config: [{vars: {more: '{{env.HOME}}'}}]\n  tests: [{vars: {q: s}, assert: [{type: equals, value: z}]}]\n"
    )
    for number, expected in enumerate(
        [
            {"vars": {"q": "{{env.HOME}}"}, "threshold": 0.4, "assert": [{"type": "contains", "value": "x"}]},
            {"vars": {"q": "plum"}, "assert": [{"type": "equals", "value": "y"}]},
            {"vars": {"more": "{{env.HOME}}", "q": "s"}, "assert": [{"type": "equals", "value": "z"}]},
        ]
    ):
        case = reading.load(path, *project(tmp_path)).cases[number]
        _, attempt = talk("x")
        attempt.outcome, attempt.prompt_sent, attempt.agent = "failed", "x", "echo"
        new = tmp_path / f"promptfooconfig.n{number}.yaml"
        replace_file(new, *save("promptfoo", new, talk_of(case, attempt, "c"), *project(tmp_path)))
        assert of_file(new)["test"] == {"description": "c", **expected}
        assert not read(tmp_path, new)[1]


def test_a_promptfoo_case_that_names_files_stays_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "p.txt").write_text("{{q}}")
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text("prompts: [file://p.txt]\nproviders: [echo]\ntests:\n- vars: {q: x}\n")
    case = reading.load(path, *project(tmp_path)).cases[0]
    _, attempt = talk("x")
    attempt.outcome, attempt.prompt_sent, attempt.agent = "failed", "x", "echo"
    (tmp_path / "other").mkdir()
    with pytest.raises(EditError, match=r"file://p\.txt from the project's own folder"):
        save(
            "promptfoo",
            tmp_path / "other" / "promptfooconfig.new.yaml",
            talk_of(case, attempt),
            *project(tmp_path),
        )
    save("promptfoo", tmp_path / "promptfooconfig.new.yaml", talk_of(case, attempt), *project(tmp_path))


def test_another_agent_that_answered_a_promptfoo_case_is_named_in_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, attempt = secretive(tmp_path, monkeypatch, 4, "P kiwi")
    attempt.agent = "helper"
    path = tmp_path / "promptfooconfig.new.yaml"
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert of_file(path)["providers"] == ["helper"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_secret_that_was_masked_or_that_the_project_knows_is_never_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-abcdefgh-1")
    path = tmp_path / "tests" / Path(proposed_path(form, talk("x")[0], tmp_path)).name
    for asked, said in (("is ••• right?", "no record"), ("is sk-abcdefgh-1 right?", r"\$SOME_API_KEY")):
        case, attempt = talk(asked)
        with pytest.raises(EditError, match=said):
            save(form, path, talk_of(case, attempt), *project(tmp_path))


VARIABLES = """{
  agent: net, connections: ["http", "https"], success_ratio: "1/2", timeout_in_seconds: 9, use_direct: false
  metadata: {user: ${PLANTED_KEY}}
  interactions: [
    {text: "go to "${PLANTED_CITY}" now", sly_data: {auth: "Bearer "${PLANTED_KEY}}, chat_filter: "MINIMAL"
     response: {text: {keywords: ["one", ${PLANTED_CITY}]}, sly_data: {a: {value: ${?PLANTED_KEY}}}}}
    {text: "and?", continue_conversation: false}
  ]
}
"""


def test_variables_of_a_neuro_san_case_stay_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tui_eval.yaml").write_text("suites: [{path: a.hocon, attempts: 7, timeout: 3}]")
    path, new = tmp_path / "a.hocon", tmp_path / "b.hocon"
    path.write_text(VARIABLES)
    case = reading.load(path, *project(tmp_path)).cases[1]
    _, attempt = talk("go to Llanfairpwll now", "and?")
    attempt.outcome = "failed"
    replace_file(new, *save("neuro_san", new, talk_of(case, attempt, "c"), *project(tmp_path)))
    text = new.read_text()
    assert not any(value in text for value in PLANTED.values()) and "${PLANTED_KEY}" in text
    (saved,) = reading.load(new, *project(tmp_path)).cases
    assert stated(saved) == stated(case) and [one.text for one in saved.turns] == [
        one.text for one in case.turns
    ]
    assert (saved.agent, saved.options) == (case.agent, case.options)
    # What a person typed is what they typed; what nobody can name any more is not filled in.
    attempt.transcript[0].text = "go to Rome"
    assert (
        '"go to Rome"'
        in save("neuro_san", tmp_path / "c.hocon", talk_of(case, attempt), *project(tmp_path))[1]
    )
    path.unlink()
    with pytest.raises(EditError, match=r"does not have this case any more.*value of \$"):
        save("neuro_san", tmp_path / "c.hocon", talk_of(case, attempt), *project(tmp_path))


@pytest.mark.parametrize("form", ["start_to_agent", "neuro_san"])
def test_a_message_that_was_recorded_masked_is_the_cases_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-abcdefgh-1")
    name, text = KEEPING[form]
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / name).write_text(text.replace("the revenue", "sk-abcdefgh-1"))
    case = reading.load(tmp_path / name, *project(tmp_path)).cases[0]
    _, attempt = talk(*(["what is •••?", "and?"] if form == "neuro_san" else ["what is •••?"]))
    new = tmp_path / ("n.hocon" if form == "neuro_san" else name)
    assert "what is sk-abcdefgh-1?" in save(form, new, talk_of(case, attempt), *project(tmp_path))[1]


def test_a_new_promptfoo_file_is_called_so_that_it_is_found(tmp_path: Path) -> None:
    case, attempt = talk("x")
    with pytest.raises(EditError, match=r"call it promptfooconfig\.new\.yaml"):
        save("promptfoo", tmp_path / "new.yaml", talk_of(case, attempt), *project(tmp_path))


def test_a_new_file_of_the_guide_asks_the_model_that_its_suite_asks(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "s.yaml").write_text("agent: helper\nmodel: large-1\ntest_cases: [{name: a, input: hi}]\n")
    case = reading.load(tmp_path / "s.yaml", *project(tmp_path)).cases[0]
    _, attempt = talk("hi")
    new = tmp_path / "n.yaml"
    replace_file(new, *save("start_to_agent", new, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert read(tmp_path, new)[0].cases[0].model == "large-1"


@pytest.mark.parametrize("form", FORMATS)
def test_in_no_format_a_message_with_a_variable_filled_in_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "a.hocon").write_text(VARIABLES)
    case = reading.load(tmp_path / "a.hocon", *project(tmp_path)).cases[0]
    _, attempt = talk("go to Llanfairpwll now", "and?")
    attempt.outcome = "failed"
    path = tmp_path / proposed_path(form, case, tmp_path)
    if form == "neuro_san":
        assert "${PLANTED_CITY}" in save(form, path, talk_of(case, attempt), *project(tmp_path))[1]
        return
    with pytest.raises(EditError, match=r"value of \$PLANTED_CITY in clear"):
        save(form, path, talk_of(case, attempt), *project(tmp_path))


@pytest.mark.parametrize(
    ("tests", "after"),
    [
        ("tests: file://t.csv  # ours\n", "tests:\n  - file://t.csv  # ours\n"),
        ("tests: [file://t.csv, 'u.csv']\n# end\n", "tests:\n  - file://t.csv\n  - 'u.csv'\n"),
        ("tests: # ours\n  - file://t.csv\n", "tests: # ours\n  - file://t.csv\n"),
        ("{", '"tests": ["file://t.csv", {'),
        ("scenarios:\n- config: [{vars: {q: a}}]\n  tests: [{vars: {r: s}}]\n", "tests:\n"),
    ],
)
def test_a_promptfoo_case_goes_into_its_suite_wherever_its_test_stands(
    tmp_path: Path, tests: str, after: str
) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    for name in ("t.csv", "u.csv"):
        (tmp_path / name).write_text(f"q,__expected\n{name},contains:x\n")
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(f"prompts: ['{{{{q}}}}']\nproviders: [echo]\n{tests}")
    if tests == "{":
        path.write_text('{"prompts": ["{{q}}"], "providers": ["echo"], "tests": "file://t.csv"}')
    before = list(reading.load(path, *project(tmp_path)).cases)
    _, attempt = talk("a")
    attempt.outcome, attempt.prompt_sent, attempt.agent = "failed", "a", "echo"
    assert own_suite("promptfoo", before[0], attempt, *project(tmp_path)) == "promptfooconfig.yaml"
    replace_file(path, *save("promptfoo", path, talk_of(before[0], attempt, "c"), *project(tmp_path)))
    suite, problems = read(tmp_path, path)
    assert not problems and after in path.read_text()
    again = {one.case_id: one for one in suite.cases}
    new = next(one for one in suite.cases if one.name == "c")
    assert again.keys() - {new.case_id} == {one.case_id for one in before}
    assert new.assertions == [
        msgspec.structs.replace(one, line=new.assertions[0].line) for one in before[0].assertions
    ]


def test_the_test_of_a_large_table_is_found_by_its_row(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    rows = "".join(f"q{number // 2},contains:x{number}\n" for number in range(1_200))  # each twice
    (tmp_path / "t.csv").write_text(f"q,__expected\n{rows}")
    path = tmp_path / "promptfooconfig.yaml"
    first = "- {vars: {q: [a, b]}}"
    path.write_text(
        f"prompts: ['{{{{q}}}}', 'or {{{{q}}}}']\nproviders: [echo]\ntests:\n{first}\n- file://t.csv\n{first}\n"
    )
    cases = reading.load(path, *project(tmp_path)).cases
    for place in (3, 4, 4 + 2 * 777 + 1, 4 + 2 * 1_200 + 2):
        _, attempt = talk("x")
        attempt.outcome, attempt.prompt_sent = "failed", "x"
        text = save("promptfoo", path, talk_of(cases[place], attempt, "c"), *project(tmp_path))[1]
        test = yaml.safe_load(text)["tests"][-1]
        assert test["vars"] == cases[place].vars
        assert [one["value"] for one in test.get("assert", [])] == [
            one.value for one in cases[place].assertions
        ]


@pytest.mark.parametrize(
    ("asked", "saved"),
    [("in Llanfairpwll, by •••: plum?", "plum?"), ("in Llanfairpwll, by me: plum?", ""), ("plum?", "")],
)
def test_a_message_by_hand_goes_into_its_promptfoo_suite_where_its_prompt_can_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, saved: str
) -> None:
    text = (
        "prompts: ['{{env.PLANTED_CITY}}, by {{env.PLANTED_KEY}}: {{q}}', '{{other}}']\nproviders: [echo]\n"
        "defaultTest: {options: {prefix: 'in '}}\n"
        "tests:\n- {vars: {q: fig, other: x}, assert: [{type: contains, value: never}]}\n"
    )
    case, attempt = secretive(tmp_path, monkeypatch, 0, "", text)
    attempt.transcript[0].text = asked
    path = tmp_path / case.suite
    if not saved:
        with pytest.raises(EditError, match="cannot make this message of q: give the name of a new file"):
            save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path))
        return
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert of_file(path)["test"] == {
        "description": "c",
        "vars": {"q": saved, "other": "x"},
        "assert": [{"type": "contains", "value": "never"}],
    }


def test_of_a_promptfoo_case_that_asks_something_else_by_now_the_conversation_is_saved(
    tmp_path: Path,
) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(
        "prompts: ['Say {{q}}']\nproviders: [echo]\ntests:\n- {description: a, vars: {q: plum, n: '{{q}}'}}\n"
    )
    case = reading.load(path, *project(tmp_path)).cases[0]
    _, attempt = talk("Say fig")
    attempt.outcome, attempt.prompt_sent, attempt.vars = "failed", "Say fig", {"q": "fig", "n": "fig"}
    replace_file(path, *save("promptfoo", path, talk_of(case, attempt, "c"), *project(tmp_path)))
    assert of_file(path)["test"]["vars"] == {"q": "fig", "n": "{{q}}"}


FLOWING = {
    "promptfooconfig.yaml": (
        "prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: a}}, {vars: {q: b}, assert: [{type: equals, value: 'x: \"#'}]}]  # c\n",
        "}, {",
    ),
    "promptfooconfig.json": (
        '{\n  "prompts": ["{{q}}"],\n  "providers": ["echo"],\n  "tests": [\n    {"vars": {"q": "a"}},\n'
        '    {"vars": {"q": "b"}, "assert": [{"type": "equals", "value": "x: \\"# é"}]}\n  ]\n}\n',
        "},\n    {",
    ),
    "guide.yaml": (
        "agent: helper\ntest_cases: [\n  {name: a, input: a},\n  {name: b, input: b, expected: {should_contain: ['x: #', y]}},\n]\n",
        "},\n  {",
    ),
}


@pytest.mark.parametrize("name", FLOWING)
def test_a_list_between_brackets_gets_the_case_as_its_last(tmp_path: Path, name: str) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    text, join = FLOWING[name]
    path = tmp_path / name
    path.write_text(text)
    case = reading.load(path, *project(tmp_path)).cases[1]
    _, attempt = talk("b")
    attempt.outcome, attempt.prompt_sent = "failed", "b"
    attempt.agent = case.agent or ""
    assert own_suite(case.format, case, attempt, *project(tmp_path)) == name
    replace_file(path, *save(case.format, path, talk_of(case, attempt, "c"), *project(tmp_path)))
    suite, problems = read(tmp_path, path)
    assert not problems and len(suite.cases) == 3 and suite.cases[2].name == "c"
    assert path.read_text().count(join) > text.count(join)
    if name.endswith("json"):
        json.loads(path.read_text())
    assert [(one.type, one.value) for one in suite.cases[2].asserted] == [
        (one.type, one.value) for one in case.asserted
    ]
