"""What rows of a promptfoo suite hand on, in which order they run, and what surrounds a run."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import closing
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.servers.base import Planned
from tests.servers.openai import OpenAIServer
from tui_eval.config.project import Config, load
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.failed_before import by_results
from tui_eval.engine.plan import Job
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RequestCell, RunRequest
from tui_eval.engine.row_order import Memory, arrange
from tui_eval.engine.selection import NothingToRun, SelectionError
from tui_eval.formats import reading
from tui_eval.formats.promptfoo import read
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, Reply, Turn
from tui_eval.nunjucks.prompt_templates import StoredAnswer, answers_apart, render_prompt
from tui_eval.reports import promptfoo_json, results
from tui_eval.store.reader import RunReader


def suite(root: Path, text: str, **files: str) -> Path:
    root.mkdir(exist_ok=True)
    (root / "promptfooconfig.yaml").write_text(dedent(text), "utf-8")
    for name, content in files.items():
        (root / name.replace("_", ".")).write_text(dedent(content), "utf-8")
    return root


async def run(root: Path, **values: Any) -> tuple[list[Attempt], dict[str, Any]]:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], trust=True, **values))
    await active.execute()
    assert active.writer is not None and active.writer.error is None
    reader = RunReader(active.writer.folder)
    try:
        attempts = [reader.attempt(row.id) for row in reader.attempts()]
        return [attempt for attempt in attempts if attempt is not None], results.build(reader)
    finally:
        reader.close()


CHAT = """
providers: [echo, {id: echo, label: second}]
prompts: ['{% for turn in _conversation %}{{turn.input}}>{{turn.output}};{% endfor %}{{q}}']
tests:
  - {vars: {q: a}, metadata: {conversationId: one}}
  - {vars: {q: x}, metadata: {conversationId: two}}
  - {vars: {q: b}, metadata: {conversationId: one}}
  - {vars: {q: y}, metadata: {conversationId: two}, assert: [{type: contains, value: 'x>x;y'}]}
"""


async def test_conversations_are_one_transcript(tmp_path: Path) -> None:
    attempts, document = await run(suite(tmp_path, CHAT))
    texts = [attempt.response_text for attempt in attempts]
    assert texts == ["a", "a", "x", "x", "a>a;b", "a>a;b", "x>x;y", "x>x;y"]
    last = attempts[-1]
    assert [(entry.turn, entry.kind, entry.text) for entry in last.transcript] == [
        (1, "note", "from earlier rows of this conversation"),
        (1, "user", "x"),
        (1, "assistant", "x"),
        (2, "user", "x>x;y"),
        (2, "assistant", "x>x;y"),
    ]
    assert last.verdicts[0].turn == 2 and last.outcome == "passed"
    assert all("_conversation" not in row["vars"] for row in document["results"])


async def test_ids_of_conversations_are_told_apart_as_promptfoo_tells_them(tmp_path: Path) -> None:
    ids = ["1", "'1'", "1.0", "''", "null", "''", "NONE"]
    rows = [
        f"  - {{vars: {{q: m{number}}}}}" if given == "NONE"
        else f"  - {{vars: {{q: m{number}}}, metadata: {{conversationId: {given}}}}}"
        for number, given in enumerate(ids)
    ]  # fmt: skip
    head = "providers: [echo]\nprompts: ['{% for turn in _conversation %}{{turn.input}},{% endfor %}{{q}}']\ntests:\n"
    attempts, _ = await run(suite(tmp_path, head + "\n".join(rows)))
    texts = [attempt.response_text for attempt in attempts]
    assert texts == ["m0", "m1", "m0,m2", "m3", "m4", "m3,m5", "m4,m6"]


async def test_a_row_that_does_not_ask_is_still_part_of_its_conversation(tmp_path: Path) -> None:
    text = CHAT.replace(
        "{vars: {q: a}, metadata: {conversationId: one}}",
        "{vars: {q: a}, metadata: {conversationId: one}, options: {disableConversationVar: true}}",
    )
    attempts, _ = await run(suite(tmp_path, text))
    assert [a.response_text for a in attempts if a.vars["q"] == "b"] == ["a>a;b", "a>a;b"]


@pytest.mark.real
async def test_a_conversation_hands_on_answers_as_they_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = CHAT.replace("echo, {id: echo, label: second}", "{id: echo, transform: '\"seen\"'}")
    attempts, _ = await run(suite(tmp_path / "one", text))
    assert [(a.prompt_sent, a.response_text) for a in attempts if a.vars["q"] == "b"] == [("a>a;b", "seen")]
    monkeypatch.setenv("PROMPTFOO_DISABLE_CONVERSATION_VAR", "true")
    attempts, _ = await run(suite(tmp_path / "two", CHAT))
    assert [a.prompt_sent for a in attempts] == ["a", "a", "x", "x", "b", "b", "y", "y"]


ERRING = """
def call_api(prompt, options, context):
    told = {
        "boom": {"error": "it broke"}, "both": {"error": "half", "output": "part"}, "none": {"output": 0},
    }
    if context["vars"]["q"] == "throw":
        raise ValueError("no answer at all")
    return told.get(context["vars"]["q"], {"output": "said"})
"""


@pytest.mark.real
async def test_a_conversation_goes_by_column_and_goes_on_after_an_error(tmp_path: Path) -> None:
    """As promptfoo 0.121.20 runs it: what is no answer at all leaves no row, an answer that is an error does."""
    root = suite(
        tmp_path,
        """
        providers: [{id: 'file://it.py', label: one}, {id: echo, label: two}]
        prompts: ['{% for turn in _conversation %}[{{turn.output}}]{% endfor %}{{q}}']
        tests:
          - {vars: {q: boom}}
          - {vars: {q: own}, provider: echo}
          - {vars: {q: throw}}
          - {vars: {q: both}, options: {storeOutputAs: kept}}
          - {vars: {q: none}}
          - {vars: {q: unjudged}, assert: [{type: contains}]}
          - {vars: {q: last}}
        """,
    )
    (root / "it.py").write_text(ERRING, "utf-8")
    attempts, _ = await run(root)
    sent = {attempt.vars["q"]: attempt.prompt_sent for attempt in attempts if attempt.agent == "one"}
    assert sent["throw"] == "[][[]own]throw"
    assert sent["last"] == "[][[]own][part][][said]last"
    assert all("kept" not in attempt.vars for attempt in attempts if attempt.agent == "one")
    own = [attempt.prompt_sent for attempt in attempts if attempt.agent == "echo"]
    assert own == ["[]own", "[boom]own"]


def test_a_row_with_a_model_of_its_own_is_part_of_its_column() -> None:
    def job(order: int, agent: str, model: str | None, **more: Any) -> Job:
        case = Case(
            f"s::{order}", "c", "s", "promptfoo", agent=agent, turns=[Turn("{{_conversation}}")], order=order, **more
        )  # fmt: skip
        return Job(case, agent, model, None, 1, 1, "documented", Path(), 60, {}, None, None)

    first, own, last = job(1, "a", "m"), job(2, "b", "n", column="a"), job(3, "a", "m")
    memory = Memory()
    for one in (first, own):
        reply = Reply(turn=1, text=f"row {one.case.order}")
        answered = Attempt(one.case.case_id, 1, "passed", one.agent, replies=[reply])
        memory.remember(one.case, one.agent, one.model, answered)
    elsewhere = Memory()
    handed = memory.handed_on(last, 1)
    assert handed is not None
    elsewhere.take(last, 1, handed)
    for known in (memory, elsewhere):
        assert [row["output"] for row in known.conversation(last, 1)] == ["row 1", "row 2"]
    assert [row["output"] for row in memory.conversation(own, 1)] == ["row 1"]
    assert memory.conversation(job(4, "a", "other"), 1) == [memory.conversation(last, 1)[1]]


async def test_attempts_of_a_conversation_are_apart(tmp_path: Path) -> None:
    attempts, _ = await run(suite(tmp_path, CHAT.replace(", {id: echo, label: second}", "")), attempts=2)
    assert [(a.attempt, a.response_text) for a in attempts if a.vars["q"] == "b"] == [
        (1, "a>a;b"),
        (2, "a>a;b"),
    ]


async def test_a_row_run_again_gets_the_rows_before_it(tmp_path: Path) -> None:
    root = suite(tmp_path, CHAT)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
    row = next(job.case.case_id for job in active.jobs if job.case.vars["q"] == "b" and job.agent == "second")
    await active.execute()
    attempts, _ = await run(root, case_ids=[row], linked_to=active.run_id)
    assert [attempt.response_text for attempt in attempts] == ["a>a;b"]
    alone, _ = await run(root, case_ids=[row])
    assert [attempt.response_text for attempt in alone] == ["b"]


async def test_stored_output_replaces_a_variable_and_reaches_all_columns(tmp_path: Path) -> None:
    attempts, document = await run(
        suite(
            tmp_path,
            """
            providers: [echo]
            prompts: ['{{q}} {{saved}}', 'second {{saved}}']
            tests:
              - {vars: {q: one}, options: {storeOutputAs: saved, transform: 'output.trim().toUpperCase()'}}
              - {vars: {q: two, saved: mine}}
            """,
        )
    )
    assert [attempt.response_text for attempt in attempts][2:] == ["two SECOND ONE", "second SECOND ONE"]
    assert document["results"][2]["vars"] == {"q": "two", "saved": "mine"}


@pytest.mark.parametrize("compat", ["documented", "reference"])
@pytest.mark.parametrize(
    "answer",
    [
        "file://notes.txt",
        "file://code.py",
        "{{ env.SHELLS_TOKEN }}",
        "{{ 7 * 7 }}{% raw %}{{q}}{% endraw %}",
        "{{hidden}}",
    ],
)
async def test_a_stored_answer_is_text_and_names_no_file_variable_or_template(
    answer: str, compat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent had the project's files and the person's environment sent to it, and code of the project run."""
    monkeypatch.setenv("SHELLS_TOKEN", "a-token-of-the-person")
    root = suite(
        tmp_path,
        """
        providers: [file://agent.py]
        prompts: ['{{q}}']
        tests:
          - {vars: {q: one}, options: {storeOutputAs: saved}}
          - {vars: {q: 'two {{saved}}.', hidden: own}}
          - {vars: {q: three}, options: {prefix: '{{saved}} '}}
        """,
    )
    (root / "agent.py").write_text(
        f"def call_api(prompt, options, context):\n    return {{'output': {answer!r}}}\n"
    )
    (root / "notes.txt").write_text("a file of the project")
    (root / "code.py").write_text("def get_var(name, prompt, vars):\n    return {'output': 'run'}\n")
    attempts, _ = await run(root, compat=compat)
    assert [attempt.prompt_sent for attempt in attempts] == ["one", f"two {answer}.", f"{answer} three"]


@pytest.mark.parametrize("compat", ["documented", "reference"])
@pytest.mark.parametrize("answer", ['{{ env.SHELLS_TOKEN }} "a"\n{{q}}', "{% raw %}{{q}}"])
async def test_code_that_makes_a_prompt_or_a_variable_of_a_stored_answer_makes_no_template_of_it(
    answer: str, compat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that said `{{ env.TOKEN }}` was sent the person's variable where a function repeated it."""
    monkeypatch.setenv("SHELLS_TOKEN", "a-token-of-the-person")
    root = suite(
        tmp_path,
        """
        providers: [file://agent.py]
        prompts: [file://text.py:text, file://text.js, file://text.py:chat, '{{q}} {{told}}']
        tests:
          - {vars: {q: one, told: ''}, options: {storeOutputAs: saved}}
          - {vars: {q: 'two {{more}}', more: M, told: file://told.py}}
        """,
    )
    (root / "agent.py").write_text(
        f"def call_api(prompt, options, context):\n    return {{'output': {answer!r}}}\n"
    )
    (root / "text.py").write_text(
        "def text(context):\n    return '{{q}}: ' + str(context['vars'].get('saved'))\n"
        "def chat(context):\n"
        "    return [{'role': 'user', 'content': '{{q}}: ' + str(context['vars'].get('saved'))}]\n"
    )
    (root / "text.js").write_text("module.exports = ({vars}) => `{{q}}: ${vars.saved}`;\n")
    (root / "told.py").write_text(
        "def get_var(name, prompt, vars):\n    return {'output': 'told ' + vars['saved']}\n"
    )
    attempts, _ = await run(root, compat=compat)
    sent = [attempt.prompt_sent for attempt in attempts][4:]
    chat = json.loads(str(sent.pop(2)))
    assert chat == [{"role": "user", "content": f"two M: {answer}"}]
    assert sent == [f"two M: {answer}", f"two M: {answer}", f"two M told {answer}"]


@pytest.mark.parametrize("compat", ["documented", "reference"])
async def test_code_that_trims_or_lists_a_stored_answer_makes_no_template_of_it(
    compat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's output is always trimmed: an answer that ended with a line break was a template again."""
    monkeypatch.setenv("SHELLS_TOKEN", "a-token-of-the-person")
    root = suite(
        tmp_path,
        """
        providers: [file://agent.py]
        prompts: [file://text.js, '{{q}} {{told}} {{again}}']
        tests:
          - {vars: {q: one}, options: {storeOutputAs: saved}}
          - {vars: {q: two, told: file://told.py, listed: file://listed.js, again: '{{listed}}'}}
        """,
    )
    (root / "agent.py").write_text(
        "def call_api(prompt, options, context):\n    return {'output': ' {{ env.SHELLS_TOKEN }}\\n\\n'}\n"
    )
    (root / "text.js").write_text("module.exports = ({vars}) => `{{q}}: ${(vars.saved ?? '').trim()}`;\n")
    (root / "told.py").write_text("def get_var(name, prompt, vars):\n    return {'output': vars['saved']}\n")
    (root / "listed.js").write_text(
        "module.exports = (name, prompt, vars) => ({output: [vars.saved.trim()]});\n"
    )
    attempts, _ = await run(root, compat=compat)
    said = "{{ env.SHELLS_TOKEN }}"
    assert [attempt.prompt_sent for attempt in attempts][2:] == [f"two: {said}", f"two {said} {said}"]


def test_an_answer_within_the_name_of_another_is_none_of_the_prompt() -> None:
    saved = {"a": StoredAnswer("Use {{ name }}"), "b": StoredAnswer("{{")}
    assert render_prompt(*answers_apart("x Use {{ name }} y", saved)) == "x Use {{ name }} y"


@pytest.mark.parametrize("compat", ["documented", "reference"])
@pytest.mark.parametrize("code", ["told.py", "told.js"])
async def test_a_variable_that_code_makes_names_no_file(code: str, compat: str, tmp_path: Path) -> None:
    """As in promptfoo 0.121: the file was sent in the place of its name."""
    root = suite(
        tmp_path,
        f"""
        providers: [echo]
        prompts: ['{{{{q}}}}']
        tests: [{{vars: {{q: 'file://{code}'}}}}]
        """,
    )
    (root / "notes.txt").write_text("a file of the project")
    (root / "told.py").write_text(
        "def get_var(name, prompt, vars):\n    return {'output': 'file://notes.txt'}\n"
    )
    (root / "told.js").write_text("module.exports = () => ({output: 'file://notes.txt'});\n")
    attempts, _ = await run(root, compat=compat)
    assert [attempt.response_text for attempt in attempts] == ["file://notes.txt"]


@pytest.mark.parametrize("compat", ["documented", "reference"])
async def test_texts_of_a_stored_list_are_no_templates(
    compat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The person's variable was sent to the agent."""
    monkeypatch.setenv("SHELLS_TOKEN", "a-token-of-the-person")
    root = suite(
        tmp_path,
        """
        providers: [file://agent.py]
        prompts: ['{{q}}', '[{"role": "user", "content": "{{q}}"}]']
        tests:
          - {vars: {q: one}, options: {storeOutputAs: saved}}
          - vars: {q: 'two {{told}}', told: 'said {{saved}}'}
            assert: [{type: contains, value: 'two {{told}}'}]
          - {vars: {q: '{% for one in saved %}{{ one }}{% endfor %} {{ saved[1] }} {{ saved | length }}'}}
        """,
    )
    (root / "agent.py").write_text(
        "import json\n"
        "def call_api(prompt, options, context):\n"
        "    said = json.loads(prompt)[0]['content'] if prompt.startswith('[') else prompt\n"
        "    return {'output': ['{{ env.SHELLS_TOKEN }}', 'b'] if said == 'one' else said}\n"
    )
    attempts, _ = await run(root, compat=compat)
    two = [attempt for attempt in attempts if str(attempt.vars["q"]).startswith("two")]
    assert [attempt.response_text for attempt in two] == ["two said {{ env.SHELLS_TOKEN }},b"] * 2
    assert [attempt.outcome for attempt in two] == ["passed"] * 2
    assert attempts[-2].response_text == "{{ env.SHELLS_TOKEN }}b b 2"


@pytest.mark.parametrize("compat", ["documented", "reference"])
@pytest.mark.parametrize("answer", ['{"a": 1}', "{{ env.SHELLS_TOKEN }} {{more}}"])
async def test_a_stored_answer_that_a_variable_names_stands_in_it_for_assertions_and_in_prompts_of_json(
    answer: str, compat: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent was sent `{{saved}}`, and `contains` looked for it, where an answer had a brace."""
    monkeypatch.setenv("SHELLS_TOKEN", "a-token-of-the-person")
    root = suite(
        tmp_path,
        """
        providers: [file://agent.py]
        prompts: ['{{q}}', '[{"role": "user", "content": "{{q}}"}]']
        tests:
          - {vars: {q: one, more: x}, options: {storeOutputAs: saved}}
          - vars: {q: 'two {{told}} {{more}}', told: 'said {{saved}}, {{more}}', more: M}
            assert: [{type: contains, value: 'two {{told}} M'}, {type: not-contains, value: '{{told}}!'}]
          - {vars: {q: 'three {{saved}} {{nowhere}} {{saved}}'}}
        """,
    )
    (root / "agent.py").write_text(
        "import json\n"
        "def call_api(prompt, options, context):\n"
        "    said = json.loads(prompt)[0]['content'] if prompt.startswith('[') else prompt\n"
        f"    return {{'output': {answer!r} if said == 'one' else said}}\n"
    )
    attempts, _ = await run(root, compat=compat)
    two = [attempt for attempt in attempts if attempt.vars["q"].startswith("two")]
    assert [attempt.response_text for attempt in two] == [f"two said {answer}, M M"] * 2
    assert [attempt.outcome for attempt in two] == ["passed"] * 2
    three = [attempt.response_text for attempt in attempts if attempt.vars["q"].startswith("three")]
    assert three == [f"three {answer} {{{{nowhere}}}} {{{{saved}}}}"] * 2


@pytest.mark.parametrize(
    ("settings", "case", "expected"),
    [
        ({}, {}, (None, 0, 0.0)),
        ({"delay": 250}, {}, ("s", 1, 0.25)),
        ({"maxConcurrency": 3}, {}, ("s", 3, 0.0)),
        ({}, {"options": {"runSerially": True}}, ("s\nserially", 1, 0.0)),
        ({}, {"options": {"storeOutputAs": "x"}}, ("s", 1, 0.0)),
        ({}, {"provider": {"id": "echo", "delay": 100}}, ("s\nNone", 1, 0.1)),
        ({}, {"turns": [Turn("{{_conversation}}")]}, ("s\n\n\n", 1, 0.0)),
        (
            {}, {"turns": [Turn("{{_conversation}}")], "options": {"disableConversationVar": True}},
            ("s\n\n\n", 1, 0.0),  # rows after it see it
        ),
    ],
)  # fmt: skip
def test_what_must_follow_one_another(settings: dict[str, Any], case: dict[str, Any], expected: Any) -> None:
    job = Job(
        Case("s::c", "c", "s", "promptfoo", **case), "echo", None, None, 1, 1, "documented", Path(), 60, {},
        None, None, settings={"evaluateOptions": settings},
    )  # fmt: skip
    arrange([job])
    assert (job.group, job.at_once, job.pause) == expected


async def test_the_suites_time_is_over(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        providers: ['exec:sh -c "sleep 30"']
        prompts: ['{{q}}']
        evaluateOptions: {maxEvalTimeMs: 300, maxConcurrency: 1}
        tests: [{vars: {q: a}}, {vars: {q: b}}]
        """,
    )
    attempts, _ = await run(root)
    assert [attempt.outcome for attempt in attempts] == ["error", "error"]
    assert all("maxEvalTimeMs" in attempt.message for attempt in attempts)


async def test_derived_metrics_and_weighted_sums(tmp_path: Path) -> None:
    _, document = await run(
        suite(
            tmp_path,
            """
            providers: [echo]
            prompts: ['{{q}}']
            derivedMetrics:
              - {name: F1, value: '2 * P * R / (P + R)'}
              - {name: each, value: 'F1 / __count'}
              - {name: root, value: 'sqrt(P^2)'}
              - {name: gone, value: 'nothing + 1'}
            tests:
              - vars: {q: ab}
                assert: [{type: contains, value: a, metric: P, weight: 3}, {type: contains, value: z, metric: R}]
              - {vars: {q: bb}, assert: [{type: contains, value: b, metric: R}]}
            """,
        )
    )
    (column,) = document["metrics"]
    assert column["named_scores"] == {"P": 3.0, "R": 1.0}
    assert column["derived"] == pytest.approx({"F1": 1.5, "each": 0.75, "root": 3.0, "gone": 0.0})
    assert "nothing" in column["derived_errors"]["gone"]


async def test_errors_are_rows_of_nothing_in_sums(tmp_path: Path) -> None:
    """promptfoo 0.121.20 has no verdicts of them: its sums are these."""
    config = """
    providers: [echo]
    prompts: ['{{q}}']
    derivedMetrics: [{name: mean, value: 'm / __count'}]
    tests:
      - {vars: {q: a}, assert: [{type: contains, value: a, metric: m}]}
      - {vars: {q: b}, assert: [{type: contains, value: b, metric: m}, {type: perplexity, threshold: 1, metric: n}]}
    """
    attempts, document = await run(suite(tmp_path, config))
    assert [(one.outcome, one.score) for one in attempts] == [("passed", 1.0), ("error", 0.5)]
    (column,) = document["metrics"]
    assert (column["count"], column["score"], column["named_scores"]) == (2, 1.0, {"m": 1.0})
    assert column["derived"] == {"mean": 0.5}


OWN_PROVIDER = """
    providers: [echo, {id: echo, label: second}]
    prompts: ['good {{q}}', 'bad {{q}}']
    defaultTest: {assert: [{type: contains, value: good, metric: kind}]}
    tests:
      - {description: usual, vars: {q: a}}
      - {description: own, vars: {q: b}, provider: {id: echo, label: special}%s}
    """


async def test_a_row_with_a_provider_of_its_own_stays_in_its_column(tmp_path: Path) -> None:
    _, document = await run(suite(tmp_path, OWN_PROVIDER % ""))
    columns = [(one["agent"], one["prompt"], one["count"], one["score"]) for one in document["metrics"]]
    assert columns == [
        ("echo", "good {{q}}", 2, 2.0), ("echo", "bad {{q}}", 2, 0.0),
        ("second", "good {{q}}", 2, 2.0), ("second", "bad {{q}}", 2, 0.0),
    ]  # fmt: skip
    assert {row["agent"] for row in document["results"] if row["name"] == "own"} == {"special"}


@pytest.mark.parametrize("compat", ["documented", "reference"])
async def test_a_row_with_a_provider_of_its_own_goes_through_the_transform_of_its_column(
    tmp_path: Path, compat: str
) -> None:
    """As in promptfoo 0.121.20, which passes over the one at the test's own provider."""
    own = """
        providers: [{id: echo, label: loud, transform: output.toUpperCase()}, echo]
        prompts: ['{{q}}']
        tests: [{vars: {q: a}, provider: {id: echo, transform: "'own ' + output"}}]
        """
    attempts, _ = await run(suite(tmp_path, own), compat=compat)
    assert [one.response_text for one in attempts] == ["A", "a"]
    (noted,) = (
        read.read(
            "promptfooconfig.yaml",
            (tmp_path / "promptfooconfig.yaml").read_text("utf-8"),
            Config(root=tmp_path),
            Trust(),
        )
        .cases[0]
        .problems
    )
    assert (noted.level, noted.key) == ("note", "tests[0].provider.transform")


async def test_rows_with_a_provider_of_their_own_are_compared_as_one_test(tmp_path: Path) -> None:
    best = ", assert: [{type: max-score}]"
    attempts, _ = await run(suite(tmp_path, OWN_PROVIDER % best))
    chosen = [one.outcome for one in attempts if "::own::" in one.case_id]
    assert chosen.count("passed") == 1, "one of the four columns is the best"


async def test_columns_are_compared_when_all_have_run(tmp_path: Path) -> None:
    attempts, _ = await run(
        suite(
            tmp_path,
            """
            providers: [echo]
            prompts: ['good {{q}}', 'bad {{q}}']
            tests:
              - {vars: {q: a}, assert: [{type: contains, value: good, weight: 0}, {type: max-score}]}
            """,
        ),
        attempts=2,
    )
    assert sorted((a.prompt_sent, a.outcome) for a in attempts) == [
        ("bad a", "failed"), ("bad a", "failed"), ("good a", "passed"), ("good a", "passed"),
    ]  # fmt: skip


COMPARED = """
providers: [echo]
prompts: ['good {{q}}', 'bad {{q}}', 'worst {{q}}']
tests:
  - {vars: {q: a}, assert: [{type: contains, value: good, weight: 0}, {type: max-score}]}
"""


async def test_a_resumed_comparison_has_all_columns(tmp_path: Path) -> None:
    root = suite(tmp_path, COMPARED)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    active.tickets = active.tickets[1:]  # the first column is still to be run
    await active.execute()
    assert active.writer is not None
    again = await asyncio.to_thread(resume, active.writer.folder)
    await again.execute()
    reader = RunReader(active.writer.folder)
    assert [row.outcome for row in reader.attempts()] == ["passed", "failed", "failed"]
    reader.close()


@pytest.mark.real
async def test_one_column_run_again_is_compared_with_the_others(tmp_path: Path) -> None:
    root = suite(tmp_path, COMPARED)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
    ids = [job.case.case_id for job in active.jobs]
    await active.execute()
    assert not active.jobs and not active.tickets, "what has ended is not held"
    for case_id in ids:  # with the others: where it wins anew, the one that had won has to lose
        attempts, _ = await run(root, case_ids=[case_id], linked_to=active.run_id)
        assert [attempt.outcome for attempt in attempts] == ["passed", "failed", "failed"]
    (alone,), _ = await run(root, filter_prompts="good")
    assert alone.outcome == "error" and "two columns" in alone.message


HOOKS = """
import json

calls = []

def hook(name, context):
    calls.append(name)
    if name == "beforeAll":
        context["suite"]["tests"].append({"vars": {"q": "added"}, "assert": [{"type": "equals", "value": "added!"}]})
        return context
    if name == "beforeEach":
        context["test"]["vars"]["q"] += "!"
        return context
    if name == "afterEach":
        calls.append(context["result"]["response"]["output"])
    if name == "afterAll":
        calls.append(len(context["results"]))
        open("calls.json", "w").write(json.dumps(calls))
"""


async def test_hooks_before_and_after(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        providers: [echo]
        prompts: ['{{q}}']
        extensions: ['file://hooks.py:hook']
        evaluateOptions: {maxConcurrency: 1}
        tests: [{vars: {q: a}}]
        """,
        hooks_py=HOOKS,
    )
    attempts, written = await run(root)
    assert [(a.response_text, a.outcome) for a in attempts] == [("a!", "passed"), ("added!", "passed")]
    assert [one["vars"] for one in written["results"]] == [{"q": "a!"}, {"q": "added!"}], (
        "as the hook left them"
    )
    calls = json.loads((root / "calls.json").read_text("utf-8"))
    assert calls == [
        "beforeAll", "beforeEach", "afterEach", "a!", "beforeEach", "afterEach", "added!", "afterAll", 2,
    ]  # fmt: skip


ADDING = """
prompts: ['{{q}}']
providers: [echo]
extensions: ['file://h.py:hook']
tests: [{description: one, vars: {q: a}}, {description: two, vars: {q: b}}]
"""
ADDS = """
def hook(name, context):
    open("calls.txt", "a").write(name + " ")
    if name == "beforeAll":
        open("seen.txt", "a").write(f'{len(context["suite"]["tests"])} ')
        for number in range(4):
            context["suite"]["tests"].append({"description": f"added {number}", "vars": {"q": f"c{number}"},
                                              "assert": [{"type": "not-equals", "value": "c2"}]})
        return context
"""


@pytest.mark.real
async def test_what_hooks_add_can_be_chosen(tmp_path: Path) -> None:
    """By its name and its id, alone and with others, and as what failed: nothing else is asked with it. Filters are the
    tool's and come before its hooks."""
    root = suite(tmp_path, ADDING, h_py=ADDS)
    (root / "tui_eval.yaml").write_text("{}")

    async def names(**asked: Any) -> list[str]:
        request = RunRequest(paths=[str(root)], trust=True, **asked)
        active = await asyncio.to_thread(prepare, request)
        found = [job.case.name for job in active.jobs]
        await active.execute()
        return found

    every = ["one", "two", *(f"added {number}" for number in range(4))]
    assert await names() == every
    assert await names(failed_only=True) == ["added 2"]
    assert await names(select=["added 1"]) == ["added 1"]
    assert await names(select=["two,added 3"]) == ["two", "added 3"]
    assert await names(select=["two"]) == ["two"]
    own = "promptfooconfig.yaml::two::echo::prompt1"
    added = own.replace("::two::", "::added 2::")
    assert await names(case_ids=[added]) == ["added 2"]
    assert await names(cells=[RequestCell(own, "echo"), RequestCell(added, "echo")]) == ["two", "added 2"]
    other = "promptfooconfig.yaml::one::echo::prompt1"
    assert await names(case_ids=[other, own]) == every, "as the app asks for all of a suite"
    assert await names(cells=[RequestCell(own, "echo"), RequestCell(other, "echo")]) == ["one", "two"]
    assert await names(filter_first_n=1) == ["one", *every[2:]]
    assert await names(filter_first_n=1, select=["added 1", "added 2"]) == ["added 1"]
    assert set((root / "seen.txt").read_text().split()) == {"1", "2"}, (
        "all tests, but for what filters leave out"
    )
    with pytest.raises(SelectionError, match="there are: one, two, added 0, added 1"):
        await names(select=["nobody"])


@pytest.mark.real
async def test_what_a_hook_that_threw_would_have_added_runs_with_what_failed(tmp_path: Path) -> None:
    """It never ran: all that `--failed` then ran could pass, and the run was green without it."""
    root = suite(tmp_path, ADDING, h_py="def hook(name, context):\n    raise ValueError('not yet')\n")
    (root / "tui_eval.yaml").write_text("{}")
    request = RunRequest(paths=[str(root)], trust=True)
    await (await asyncio.to_thread(prepare, request)).execute()
    (root / "h.py").write_text(ADDS)
    every = ["one", "two", *(f"added {number}" for number in range(4))]
    for expected in (every, ["added 2"]):
        request = RunRequest(paths=[str(root)], trust=True, failed_only=True)
        active = await asyncio.to_thread(prepare, request)
        assert [job.case.name for job in active.jobs] == expected
        await active.execute()


@pytest.mark.real
async def test_a_rerun_of_what_a_hook_failed_says_what_it_would_have_added(tmp_path: Path) -> None:
    root = suite(tmp_path, ADDING, h_py="def hook(name, context):\n    raise ValueError('not yet')\n")
    (root / "tui_eval.yaml").write_text("{}")
    first = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], trust=True))
    cells = [RequestCell(job.case.case_id, job.agent, own=True) for job in first.jobs]
    await first.execute()
    (root / "h.py").write_text(ADDS)
    ids = [cell.case_id for cell in cells]
    request = RunRequest(paths=[str(root)], trust=True, case_ids=ids, cells=cells, linked_to=first.run_id)
    again = await asyncio.to_thread(prepare, request)
    assert [job.case.name for job in again.jobs] == ["one", "two"]
    await again.execute()
    added = "(added 0, added 1, added 2 and 1 more)"
    assert again.note == f"4 cases that hooks add never ran {added}: run the suite"


@pytest.mark.real
async def test_shards_share_what_hooks_add(tmp_path: Path) -> None:
    root = suite(tmp_path, ADDING, h_py=ADDS)
    (root / "tui_eval.yaml").write_text(
        "{}"
    )  # else the ids are of another folder each time, and a shard may be empty
    ran: list[str] = []
    for number in (1, 2, 3):
        request = RunRequest(paths=[str(root)], trust=True, shard=f"{number}/3")
        try:
            active = await asyncio.to_thread(prepare, request)
        except NothingToRun:  # by chance all six are of the others
            continue
        ran += [job.case.name for job in active.jobs]
        await active.execute()
    assert sorted(ran) == ["added 0", "added 1", "added 2", "added 3", "one", "two"]


async def test_hooks_of_suites_that_are_not_meant_do_not_run(tmp_path: Path) -> None:
    root = suite(tmp_path, ADDING, h_py=ADDS)
    (root / "promptfooconfig.other.yaml").write_text(
        "prompts: [x]\nproviders: [echo]\ntests: [{description: other, vars: {q: a}}]\n"
    )
    (root / "tui_eval.yaml").write_text("{}")
    request = RunRequest(paths=[str(root)], trust=True, select=["other"])
    active = await asyncio.to_thread(prepare, request)
    assert [job.case.name for job in active.jobs] == ["other"] and not (root / "calls.txt").exists()
    await active.execute()


async def test_where_a_hook_fails_what_it_adds_is_not_known(tmp_path: Path) -> None:
    root = suite(tmp_path, ADDING, h_py="def hook(name, context):\n    raise RuntimeError('no server')\n")
    request = RunRequest(paths=[str(root)], trust=True, select=["added 1"])
    with pytest.raises(SelectionError, match=r"those that hooks add are not among them: .*no server"):
        await asyncio.to_thread(prepare, request)


async def test_a_hook_that_fails_is_no_pass(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        providers: [echo]
        prompts: ['{{q}}']
        extensions: ['file://hooks.py:beforeAll']
        tests: [{vars: {q: a}}]
        """,
        hooks_py="def beforeAll(context, more):\n    raise RuntimeError('no server')\n",
    )
    (attempt,), _ = await run(root)
    assert attempt.outcome == "error" and "no server" in attempt.message


MANY = """
providers: [echo, {id: echo, label: E2}]
prompts: [{raw: 'p {{q}}', label: Long}, {raw: 's {{q}}', label: Short}]
tests:
  - {vars: {q: a}, assert: [{type: contains, value: a}]}
  - {vars: {q: b}, assert: [{type: contains, value: zzz}]}
  - {vars: {q: c}, assert: [{type: perplexity, threshold: 1}]}
"""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"filter_first_n": 1}, ["a"] * 4),
        ({"filter_range": "1:3"}, ["b"] * 4 + ["c"] * 4),
        ({"filter_range": "2:"}, ["c"] * 4),
        ({"filter_prompts": "^Long$", "filter_providers": "E2"}, ["a", "b", "c"]),
        ({"prompt_prefix": "<", "filter_prompts": "Short", "filter_first_n": 1}, ["a", "a"]),
    ],
)
async def test_promptfoos_filters_count_tests(
    tmp_path: Path, options: dict[str, Any], expected: list[str]
) -> None:
    attempts, _ = await run(suite(tmp_path, MANY), **options)
    assert [attempt.vars["q"] for attempt in attempts] == expected
    if "prompt_prefix" in options:
        assert attempts[0].prompt_sent == "<s a"


async def test_filters_of_providers_mean_columns_whoever_answers_a_row(tmp_path: Path) -> None:
    config = """
providers: [echo, {id: echo, label: E2}]
prompts: ['p {{q}}']
tests:
  - {vars: {q: a}, provider: {id: echo, label: own}}
  - {vars: {q: b}}
  - {vars: {q: c}, provider: {id: echo, label: E2}}
"""
    root = suite(tmp_path, config)
    for wanted in ("^E2$", "^echo$"):
        attempts, _ = await run(root, filter_providers=wanted)
        expected = ["a", "b", "c"] * (2 if wanted == "^echo$" else 1)  # echo is the id of both
        assert sorted(attempt.vars["q"] for attempt in attempts) == sorted(expected)
    with pytest.raises(SelectionError, match="there are: echo, E2"):
        await run(root, filter_providers="own")


RUN_NOWHERE = """
providers: [echo, {id: echo, label: E2, prompts: [P]}]
prompts: [{label: P, raw: 'P {{q}}'}, {label: Q, raw: 'Q {{q}}'}]
extensions: ['file://h.py:beforeAll']
tests: [{vars: {q: a}, providers: [E2], prompts: [Q]}]
"""
ADDS_TO_ALL = """
def beforeAll(context, _):
    suite = context["suite"]
    asserted = [{"type": "contains", "value": suite["prompts"][0]["label"]}]
    suite["tests"].append({"vars": {"q": "b"}, "assert": asserted})
    return context
"""


@pytest.mark.parametrize("beside", [False, True])
async def test_what_a_hook_adds_to_a_suite_whose_own_tests_run_nowhere_is_run(
    tmp_path: Path, beside: bool
) -> None:
    """Its hooks were not run: their tests, and what fails of them, were missing without a word beside other suites."""
    root = suite(tmp_path, RUN_NOWHERE, h_py=ADDS_TO_ALL)
    if beside:
        suite(root / "other", "providers: [echo]\nprompts: [x]\ntests: [{vars: {q: a}}]\n")
    attempts, found = await run(root)
    ran = [(one["agent"], one["prompt"], one["outcome"]) for one in found["results"] if one["prompt"] != "x"]
    assert ran == [("echo", "P", "passed"), ("echo", "Q", "failed"), ("E2", "P", "passed")]
    assert len(attempts) == len(ran) + beside
    wanted = next(one.case_id for one in attempts if one.outcome == "failed")
    again, _ = await run(root, case_ids=[wanted])
    assert [one.case_id for one in again] == [wanted]


async def test_a_hook_that_fails_where_no_test_of_its_suite_runs_is_an_error(tmp_path: Path) -> None:
    root = suite(tmp_path, RUN_NOWHERE, h_py="def beforeAll(context, _):\n    raise ValueError('no')\n")
    suite(root / "other", "providers: [echo]\nprompts: [x]\ntests: [{vars: {q: a}}]\n")
    attempts, _ = await run(root)
    assert [one.outcome for one in attempts].count("error") == 3
    suite(root, RUN_NOWHERE, h_py="def beforeAll(context, _):\n    return context\n")
    with pytest.raises(NothingToRun, match="no test of its suites is run"):
        await run(root / "promptfooconfig.yaml")


@pytest.mark.real
async def test_filters_of_columns_hold_for_tests_that_hooks_add(tmp_path: Path) -> None:
    config = """
    providers: [echo, {id: echo, label: E2}, {id: echo, label: E3}]
    prompts: ['p {{q}}']
    extensions: ['file://h.py:beforeAll']
    tests: [{vars: {q: a}, providers: [E2]}]
    """
    hook = "def beforeAll(context, _):\n    context['suite']['tests'].append({'vars': {'q': 'b'}})\n    return context\n"
    root = suite(tmp_path, config, h_py=hook)
    for wanted, expected in (
        (None, ["E2", "echo", "E2", "E3"]),
        ("E[23]", ["E2", "E2", "E3"]),
        ("E2", ["E2", "E2"]),
        ("E3", ["E3"]),
    ):
        attempts, _ = await run(root, filter_providers=wanted)
        assert sorted(one.agent for one in attempts) == sorted(expected)


async def test_a_sample_is_the_same_for_a_seed(tmp_path: Path) -> None:
    root = suite(tmp_path, MANY)
    drawn = [
        [attempt.vars["q"] for attempt in (await run(root, filter_sample=2, filter_sample_seed="7"))[0]]
        for _ in range(2)
    ]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 8


@pytest.mark.real
async def test_what_failed_in_a_file_ours_or_promptfoos(tmp_path: Path) -> None:
    root = suite(tmp_path, MANY)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    for name, build in (("ours.json", results.build), ("theirs.json", promptfoo_json.build)):
        (tmp_path / name).write_text(json.dumps(build(reader)), "utf-8")
        file = str(tmp_path / name)
        for option, expected in (
            ("filter_failing", {"b", "c"}), ("filter_failing_only", {"b"}), ("filter_errors_only", {"c"}),
        ):  # fmt: skip
            attempts, _ = await run(root, **{option: file})
            assert {attempt.vars["q"] for attempt in attempts} == expected, (name, option)
    reader.close()
    with pytest.raises(SelectionError, match="cannot be read"):
        await run(root, filter_failing="nowhere.json")


async def test_what_failed_in_a_file_is_found_by_promptfoos_numbers(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        providers: [echo]
        prompts: ['{{n}} {{o}}']
        tests:
          - {vars: {n: 1152921504606846976, o: {b: 1.0, a: 2}}, assert: [{type: contains, value: zzz}]}
          - {vars: {n: 5, o: {b: 1.0, a: 2}}, assert: [{type: contains, value: zzz}]}
        """,
    )
    row = {"success": False, "failureReason": 1, "vars": {"n": 1152921504606847000, "o": {"a": 2, "b": 1}}}
    (tmp_path / "theirs.json").write_text(json.dumps({"results": {"results": [row]}}), "utf-8")
    (attempt,), _ = await run(root, filter_failing=str(tmp_path / "theirs.json"))
    assert attempt.vars["n"] == 1152921504606846976


REWRITTEN = """
    providers: [echo]
    prompts: ['{{v}}']
    tests:
      - {description: json, vars: {v: '{"city": "Rome", "2": 1.0}', n: 1}}
      - {description: other json, vars: {v: '{"city": "Bari"}', n: 1}}
      - {vars: {v: {deep: ['[1, 2.50]']}, n: 2}}
      - {description: day, vars: {v: 2024-01-05, n: 3}}
      - {vars: {v: {days: [2024-01-06, x]}, n: 4}}
      - {description: secret, vars: {v: {password: hunter2, u: x}, n: 5}}
      - {vars: {password: hunter2, v: mine}}
      - {vars: {v: '{"password": "hunter2"}', n: 6}}
      - {vars: {v: {url: 'https://Example.com'}, n: 7}}
      - {description: edited, vars: {v: new, n: 8}}
      - {description: a secret, vars: {password: x, v: same}}
      - {description: another, vars: {password: y, v: same}}
      - {vars: {v: '{"not": json', n: 9}}
"""


@pytest.mark.parametrize(
    ("row", "found"),
    [  # as promptfoo 0.121.20 wrote them
        ({"vars": {"v": '{"2":1,"city":"Rome"}', "n": 1}}, [0]),
        ({"vars": {"v": {"deep": ["[1,2.5]"]}, "n": 2, "sessionId": "[REDACTED]", "_conversation": []}}, [2]),
        ({"vars": {"v": {}, "n": 3}, "testCase": {"description": "day"}}, [3]),
        ({"vars": {"v": {"days": [{}, "x"]}, "n": 4}}, [4]),
        ({"vars": {"v": {"password": "[REDACTED]", "u": "x"}, "n": 5}}, [5]),
        ({"vars": {"password": "[REDACTED]", "v": "mine"}}, [6]),
        ({"vars": {"v": '{"password":"[REDACTED]"}', "n": 6}}, [7]),
        ({"vars": {"v": {"url": "https://example.com/"}, "n": 7}}, [8]),
        ({"vars": {"v": "old", "n": 8}, "testCase": {"description": " edited"}}, [9]),
        ({"vars": {"password": "[REDACTED]", "v": "same"}}, [10, 11]),
        ({"vars": {"password": "[REDACTED]", "v": "same"}, "testCase": {"description": "another"}}, [11]),
        (
            {
                "vars": {"v": '{"not": json', "n": 9, "stored": 1},
                "testCase": {"vars": {"v": '{"not": json', "n": 9}},
            },
            [12],
        ),
    ],
)
async def test_what_failed_in_a_file_is_found_however_promptfoo_wrote_its_variables(
    tmp_path: Path, row: dict[str, Any], found: list[int]
) -> None:
    root = suite(tmp_path, REWRITTEN)
    theirs = {"success": False, "failureReason": 1, **row}
    (tmp_path / "theirs.json").write_text(json.dumps({"results": {"results": [theirs]}}), "utf-8")
    cases = reading.load(root / "promptfooconfig.yaml", load([root]), Trust()).cases
    request = RunRequest(filter_failing=str(tmp_path / "theirs.json"))
    left = by_results(list(cases), request)
    assert [one.order for one in left] == [cases[place].order for place in found]


_PASSED = {"success": True, "testIdx": 0, "vars": {"v": "en"}, "testCase": {"description": "greets"}}


@pytest.mark.parametrize(
    ("tests", "row", "found", "config"),
    [
        # renamed variables, and a test taken out: another has a part of its variables
        ([{"vars": {"v": "en"}}, {"vars": {"v": "de", "w": "x"}}], {"vars": {"v": "en", "q": "bad"}}, [], {}),
        ([{"vars": {"v": "it"}}], {"vars": {"v": "it", "q": "bad"}}, [], {}),
        ([{"description": "greets"}], {"vars": {"v": "x"}, "testCase": {"description": "fails"}}, [], {}),
        # what a run adds
        ([{"vars": {"v": "it"}}], {"vars": {"v": "it", "q": "bad"}}, [0], {"extensions": ["file://hook.py:hook"]}),
        ([{"vars": {"v": "it"}}], {"vars": {"v": "it", "q": "a"}, "testCase": {"vars": {"v": "it"}}}, [0], {}),
        ([{"vars": {"v": "it"}}],
         {"vars": {"v": "it", "q": "a"}, "testCase": {"options": {"transformVars": "x"}}}, [0], {}),
        ([{"vars": {"v": "it"}}], {"vars": {"v": "it", "kept": "a"}}, [0], {}),
        # namesakes: by variables, then by description
        ([{"description": "greets", "vars": {"v": "en"}}],
         {"vars": {"v": "en"}, "testCase": {"description": "fails"}}, [], {}),
        ([{"description": "greets", "vars": {"v": "en"}}, {"description": "fails", "vars": {"v": "en"}}],
         {"vars": {"v": "en"}, "testCase": {"description": "fails"}}, [1], {}),
        ([{"description": "greets", "vars": {"v": "en"}}, {"description": "fails", "vars": {"v": "new"}}],
         {"vars": {"v": "en"}, "testCase": {"description": "fails"}}, [1], {}),
        ([{"description": "greets", "vars": {"v": ["en", "fr"]}}],
         {"vars": {"v": "de"}, "testCase": {"description": "greets"}}, [1], {}),
        ([{"description": "greets", "vars": {"v": "en"}}],
         {"vars": {"v": "de"}, "testCase": {"description": "greets"}}, [], {}),
        ([{"description": "renamed", "vars": {"v": "it"}}],
         {"vars": {"v": "it"}, "testCase": {"description": "fails"}}, [0], {}),
    ],
)  # fmt: skip
async def test_no_other_test_stands_for_one_that_failed_and_is_gone(
    tmp_path: Path, tests: list[Any], row: dict[str, Any], found: list[int], config: dict[str, Any]
) -> None:
    """It was run in its place, and the run was green."""
    root = suite(tmp_path, json.dumps({"providers": ["echo"], "prompts": ["hi"], "tests": tests}))
    stores = {"success": True, "vars": {"v": "1"}, "testCase": {"options": {"storeOutputAs": "kept"}}}
    rows = [
        _PASSED if "description" in tests[0] else {**_PASSED, "testCase": {}},
        {"success": False, "testIdx": 1, **row},
        stores,
    ]
    (tmp_path / "theirs.json").write_text(
        json.dumps({"results": {"results": rows}, "config": config}), "utf-8"
    )
    cases = reading.load(root / "promptfooconfig.yaml", load([root]), Trust()).cases
    left = by_results(list(cases), RunRequest(filter_failing=str(tmp_path / "theirs.json")))
    assert [one.order for one in left] == [cases[place].order for place in found]


async def test_what_failed_in_our_file_for_promptfoo_is_found_by_its_cases(tmp_path: Path) -> None:
    """It ran every column and namesake of what failed."""
    root = suite(
        tmp_path,
        """
        providers: [echo]
        prompts: ['a {{v}}', 'b {{v}}']
        tests:
          - {vars: {v: x}, assert: [{type: contains, value: a}]}
          - {vars: {v: x}, assert: [{type: contains, value: x}]}
        """,
    )
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)]))
    await active.execute()
    assert active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        (tmp_path / "ours.json").write_text(json.dumps(promptfoo_json.build(reader)), "utf-8")
    attempts, _ = await run(root, filter_failing=str(tmp_path / "ours.json"))
    assert [attempt.prompt_sent for attempt in attempts] == ["b x"]


async def test_variables_of_the_command_line(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        providers: [echo]
        prompts: ['{{a}} {{b}}']
        defaultTest: {vars: {b: default}}
        tests: [{vars: {a: own}}]
        """,
    )
    (attempt,), _ = await run(root, vars={"a": "typed", "b": "typed"})
    assert attempt.prompt_sent == "own typed"


async def test_a_resumed_run_goes_on(tmp_path: Path) -> None:
    root = suite(tmp_path, CHAT)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], concurrency=1))
    active.tickets = active.tickets[:3]  # as if it had been cut there
    await active.execute()
    assert active.writer is not None
    again = await asyncio.to_thread(resume, active.writer.folder)
    assert await again.execute() == "finished"
    reader = RunReader(active.writer.folder)
    assert all(row.state == "done" for row in reader.attempts())
    texts = [attempt.response_text for row in reader.attempts() if (attempt := reader.attempt(row.id))]
    assert texts == ["a", "a", "x", "x", "a>a;b", "a>a;b", "x>x;y", "x>x;y"]
    reader.close()


@pytest.mark.parametrize(
    ("first", "second", "error"),
    [
        ("a {{env.SHOP_TOKEN}}", "with {{known}}", True),
        ("a {{env.SHOP_TOKEN}}", "with nothing", False),
        ("an order", "with {{known}}", False),
    ],
)
async def test_what_a_record_has_no_secret_of_is_not_asked_with_a_mask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str, error: bool
) -> None:
    """A run that went on asked with ••• what had been asked with the row before's answer."""
    monkeypatch.setenv("SHOP_TOKEN", "shop-0123456789abcde")
    root = suite(
        tmp_path,
        f"""
        providers: [echo]
        prompts: ['{{{{q}}}}']
        tests:
          - {{vars: {{q: '{first}'}}, options: {{storeOutputAs: known}}}}
          - {{vars: {{q: '{second}'}}}}
        """,
    )
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], trust=True))
    active.tickets = active.tickets[:1]  # as if it had been cut there
    await active.execute()
    assert active.writer is not None
    again = await asyncio.to_thread(resume, active.writer.folder, overrides=RunRequest(trust=True))
    await again.execute()
    with closing(RunReader(active.writer.folder)) as reader:
        made = [one for row in reader.attempts() if (one := reader.attempt(row.id)) is not None]
    assert [one.outcome for one in made] == ["passed", "error" if error else "passed"]
    assert ("which is in no record" in (made[1].error or "")) == error


async def test_options_of_a_test_reach_the_provider(tmp_path: Path) -> None:
    with OpenAIServer() as server:
        root = suite(
            tmp_path,
            f"""
            providers: [{{id: 'openai:chat:m', config: {{apiBaseUrl: '{server.base}', temperature: 1}}}}]
            prompts: [{{raw: '{{{{q}}}}', label: p, config: {{max_tokens: 9}}}}]
            tests: [{{vars: {{q: a}}, options: {{temperature: 0}}}}]
            """,
        )
        (attempt,), _ = await run(root)
        assert attempt.outcome == "passed", attempt.message
        body = server.requests[-1].body
    assert (body["temperature"], body["max_tokens"]) == (0, 9)


async def test_the_configs_own_grader_judges(tmp_path: Path) -> None:
    grade = Planned(text='{"pass": false, "score": 0.1, "reason": "rude"}')
    with OpenAIServer(grade) as server:
        root = suite(
            tmp_path,
            f"""
            providers: [echo]
            prompts: ['{{{{q}}}}']
            defaultTest:
              options: {{provider: {{id: 'openai:chat:judge', config: {{apiBaseUrl: '{server.base}'}}}}}}
            tests: [{{vars: {{q: a}}, assert: [{{type: llm-rubric, value: polite}}]}}]
            """,
        )
        (attempt,), _ = await run(root)
    assert attempt.outcome == "failed" and attempt.message == "rude"
    assert attempt.verdicts[0].judge is not None and attempt.verdicts[0].judge["model"] == "judge"


PROVIDER = """
import json

def call_api(prompt, options, context):
    return {"output": json.dumps({"keys": sorted(context), "test": context["test"], "prompt": context["prompt"]})}
"""


async def test_what_a_providers_context_holds(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        providers: ['file://provider.py']
        prompts: [{raw: '{{q}}', label: P}]
        tests: [{description: d, vars: {q: a}, metadata: {m: 1}, assert: [{type: is-json}]}]
        """,
        provider_py=PROVIDER,
    )
    (attempt,), _ = await run(root)
    seen = json.loads(attempt.response_text)
    assert set(seen["keys"]) >= {"evaluationId", "prompt", "repeatIndex", "test", "vars"}
    assert seen["prompt"] == {"raw": "{{q}}", "label": "P", "config": {}, "template": "{{q}}"}
    assert seen["test"] == {
        "vars": {"q": "a"},
        "assert": [{"type": "is-json"}],
        "description": "d",
        "metadata": {"m": 1},
        "options": {},
    }


SCRIPTS_SEE = """
prompts: [{raw: 'Hi {{x}}', label: lab, config: {a: prompt, b: prompt}}]
providers: [{id: 'file://prov.py', label: P, config: {own: 1, a: own}}]
tests:
  - vars: {x: y}
    threshold: 0.5
    metadata: {m: 1}
    options: {b: test, prefix: 'pre '}
    assert:
      - {type: javascript, value: '({pass: true, score: 1, reason: JSON.stringify(context.test)})', metric: mm}
      - {type: python, value: '{"pass": True, "score": 1, "reason": json.dumps(context["test"])}'}
"""


@pytest.mark.real
async def test_what_scripts_see_of_the_prompt_and_the_test(tmp_path: Path) -> None:
    """As promptfoo 0.121.20 shows them to a provider and to assertions that print what they get."""
    provider = "def call_api(prompt, options, context):\n    return {'output': [options, context]}\n"
    attempts, _ = await run(suite(tmp_path, SCRIPTS_SEE, prov_py=provider))
    options, context = attempts[0].replies[0].output
    assert options["config"].items() >= {"own": 1, "a": "own"}.items()
    assert context["prompt"] == {
        "raw": "pre Hi {{x}}",
        "label": "lab",
        "config": {"a": "prompt", "b": "test", "prefix": "pre "},
        "template": "Hi {{x}}",
    }
    seen = [json.loads(v.reason) for v in attempts[0].verdicts if v.type in ("javascript", "python")]
    assert len(seen) == 2
    assert seen[0] == seen[1] == context["test"]
    assert [entry["type"] for entry in seen[0]["assert"]] == ["javascript", "python"]
    assert (seen[0]["threshold"], seen[0]["metadata"]) == (0.5, {"m": 1})


@pytest.mark.real
async def test_code_is_handed_files_as_texts_and_templates_address_them(tmp_path: Path) -> None:
    """promptfoo 0.121.20 hands all code JSON as it stands in its file, and YAML as compact JSON."""
    root = suite(
        tmp_path,
        """
        providers: ['file://it.py']
        prompts: ['{{j.key}} {{y[0]}}', 'file://make.py:made']
        tests:
          - vars: {j: 'file://o.json', y: 'file://o.yaml'}
            assert:
              - {type: javascript, value: "JSON.parse(context.vars.j).key === 'one' && context.vars.y === '[\\"two\\"]'"}
              - {type: python, value: "context['vars']['j'] == '{\\"key\\":  \\"one\\"}'"}
              - {type: equals, value: '{{j.key}}', transform: 'JSON.parse(context.vars.j).key'}
        """,
    )
    (root / "o.json").write_text('{"key":  "one"}\n', "utf-8")
    (root / "o.yaml").write_text("- two\n", "utf-8")
    kinds = "[type(context['vars'][name]).__name__ for name in ('j', 'y')]"
    (root / "it.py").write_text(
        f"def call_api(prompt, options, context):\n    return {{'output': prompt + ' ' + str({kinds})}}\n",
        "utf-8",
    )
    (root / "make.py").write_text(f"def made(context):\n    return 'made ' + str({kinds})\n", "utf-8")
    attempts, _ = await run(root)
    assert [attempt.outcome for attempt in attempts] == ["passed", "passed"], attempts[0].message
    told = [attempt.response_text for attempt in attempts]
    assert told == ["one two ['str', 'str']", "made ['str', 'str'] ['str', 'str']"]


async def test_files_of_assertions_are_read_as_by_promptfoo(tmp_path: Path) -> None:
    """As promptfoo 0.121.20 runs it: of listed files whole and first, elsewhere trimmed."""
    asserted = {"type": "contains", "value": "file://w.txt"}
    rows = [{"description": "alone", "vars": {"q": "a word"}, "assert": [asserted]}]
    root = suite(
        tmp_path,
        """
        providers: [echo]
        prompts: ['{{q}}']
        tests:
          - {vars: {q: a word}, assert: [{type: contains, value: 'file://w.txt'}]}
          - {vars: {q: a word}, assert: [{type: contains, value: 'file://w.md'}]}
          - file://them.json
          - file://them.jsonl
          - file://them.yaml
        """,
    )
    for name in ("w.txt", "w.md"):
        (root / name).write_text("word\n", "utf-8")
    (root / "them.json").write_text(json.dumps(rows), "utf-8")
    (root / "them.yaml").write_text(json.dumps(rows), "utf-8")
    (root / "them.jsonl").write_text(json.dumps(rows[0]) + "\n", "utf-8")
    attempts, _ = await run(root)
    assert [attempt.outcome for attempt in attempts] == ["passed"] * 5
    attempts, _ = await run(root, compat="reference")
    assert [attempt.outcome for attempt in attempts] == ["passed", "error", "failed", "failed", "failed"]
    assert "Unsupported file type: w.md" in attempts[1].message
    for name in ("json", "jsonl"):
        (root / "promptfooconfig.yaml").write_text(
            f"providers: [echo]\nprompts: ['{{{{q}}}}']\ntests: file://them.{name}\n", "utf-8"
        )
        attempts, _ = await run(root, compat="reference")
        assert [attempt.outcome for attempt in attempts] == ["passed"]


@pytest.mark.real
async def test_a_providers_transform_is_told_no_metadata_by_promptfoo(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        providers: [{id: 'file://it.py', transform: "output + (context.metadata ? context.metadata.k : 'none')"}]
        prompts: ['{{q}}']
        tests: [{vars: {q: a}, options: {transform: 'output + context.metadata.k'}}]
        """,
    )
    told = "{'output': 'o', 'metadata': {'k': 'v'}}"
    (root / "it.py").write_text(f"def call_api(prompt, options, context):\n    return {told}\n", "utf-8")
    assert [(await run(root, compat=mode))[0][0].response_text for mode in ("documented", "reference")] == [
        "ovv", "ononev",
    ]  # fmt: skip


REPEATED = """
providers: [echo, {id: echo, label: loud, transform: output.toUpperCase()}]
prompts: ['{{q}} {{kept}}{% for turn in _conversation %} [{{turn.input}}]{% endfor %}']
tests:
  - {vars: {q: [m, n]}, options: {repeat: 2, storeOutputAs: kept}}
  - {vars: {q: x}, options: {repeat: 3}}
  - {vars: {q: y}}
"""


async def test_a_repeated_row_has_the_rows_before_it_that_are_not_repeated(tmp_path: Path) -> None:
    text = REPEATED.replace("repeat: 2, ", "").replace(
        ", {id: echo, label: loud, transform: output.toUpperCase()}", ""
    )
    attempts, _ = await run(suite(tmp_path, text))
    heard = "x n m  [m ] [m ] [n m  [m ]]"
    assert [a.prompt_sent for a in attempts if a.vars["q"] == "x"] == [heard] * 3
    assert [a.prompt_sent for a in attempts if a.vars["q"] == "y"] == [f"y{heard[1:]} [{heard}]"]


async def test_with_compat_reference_a_repeated_row_has_all_rows_before_it_in_promptfoos_order(
    tmp_path: Path,
) -> None:
    """As promptfoo 0.121.20 sends them: also what its own earlier attempts said."""
    text = REPEATED.replace("{{kept}}", "{{kept | length}}").replace("[{{turn.input}}]", "{{turn.output[0]}}")
    attempts, _ = await run(suite(tmp_path, text), compat="reference")
    sent = {(a.vars["q"], a.attempt, a.agent): a.prompt_sent for a in attempts}
    assert sent == {
        ("m", 1, "echo"): "m 0", ("m", 1, "loud"): "m 3", ("n", 1, "echo"): "n 3 m", ("n", 1, "loud"): "n 5 m",
        ("m", 2, "echo"): "m 5 m n", ("m", 2, "loud"): "m 7 m n",
        ("n", 2, "echo"): "n 7 m n m", ("n", 2, "loud"): "n 9 m n m",
        **{("x", at, agent): "x 9 m n m n" + " x" * (at - 1) for at in (1, 2, 3) for agent in ("echo", "loud")},
        ("y", 1, "echo"): "y 9 m n m n x x x", ("y", 1, "loud"): "y 9 m n m n x x x",
    }  # fmt: skip


IN_ONE_LINE = """
providers: [echo]
prompts: ['{{q}}{% for turn in _conversation %} {{turn.output[0]}}{% endfor %}']
tests: [{description: turn, vars: {q: [a, b]}}, {description: turn, vars: {q: c}}, {description: turn, vars: {q: d}}]
"""


@pytest.mark.parametrize("hook", [False, True])
async def test_tests_of_one_line_and_one_description_are_tests_of_their_own(
    tmp_path: Path, hook: bool
) -> None:
    """Only the combinations of one test's variables take turns, as promptfoo has it; so it is after a hook, too."""
    text = f"{IN_ONE_LINE}extensions: [file://hook.py:same]\n" if hook else IN_ONE_LINE
    code = "def same(hook, context):\n    return context\n"
    attempts, _ = await run(suite(tmp_path, text, hook_py=code), compat="reference", attempts=2)
    heard = {(a.vars["q"], a.attempt): a.prompt_sent for a in attempts}
    assert heard == {
        ("a", 1): "a", ("b", 1): "b a", ("a", 2): "a a b", ("b", 2): "b a b a",
        ("c", 1): "c a b a b", ("c", 2): "c a b a b c", ("d", 1): "d a b a b c c", ("d", 2): "d a b a b c c d",
    }  # fmt: skip


async def test_generated_tests_of_one_description_are_tests_of_their_own(tmp_path: Path) -> None:
    text = IN_ONE_LINE[: IN_ONE_LINE.index("tests:")] + "tests: file://gen.py:generate\n"
    code = "def generate():\n    return [{'description': 'turn', 'vars': {'q': q}} for q in 'abc']\n"
    attempts, _ = await run(suite(tmp_path, text, gen_py=code), compat="reference", attempts=2)
    assert {(a.vars["q"], a.attempt): a.prompt_sent for a in attempts} == {
        ("a", 1): "a", ("a", 2): "a a", ("b", 1): "b a a", ("b", 2): "b a a b", ("c", 1): "c a a b b",
        ("c", 2): "c a a b b c",
    }  # fmt: skip


async def test_scripts_are_told_the_session_of_a_provider_that_is_code(tmp_path: Path) -> None:
    """As promptfoo 0.121.20 tells them; it was missing, and what had passed there failed."""
    root = suite(
        tmp_path,
        """
        providers: ['file://provider.py']
        prompts: ['{{q}}']
        tests:
          - vars: {q: a}
            assert:
              - {type: javascript, value: 'context.providerResponse.sessionId === "s1"'}
              - {type: python, value: 'context["providerResponse"]["sessionId"] == "s1"'}
        """,
        provider_py="def call_api(prompt, options, context):\n    return {'output': prompt, 'sessionId': 's1'}\n",
    )
    (attempt,), _ = await run(root)
    assert attempt.message == "passed"
    assert attempt.replies[-1].metadata == {"sessionId": "s1"}  # of the row, as promptfoo writes it


async def test_scripts_are_told_how_the_server_answered(tmp_path: Path) -> None:
    """As promptfoo 0.121.20 tells them: of OpenAI's models the HTTP answer, of echo that there is nothing."""
    with OpenAIServer() as server:
        root = suite(
            tmp_path,
            f"""
            providers:
              - {{id: 'openai:chat:gpt-4o-mini', config: {{apiBaseUrl: '{server.base}', apiKey: k}}}}
              - echo
            prompts: ['{{{{q}}}}']
            tests:
              - vars: {{q: a}}
                providers: ['openai:*']
                assert:
                  - {{type: javascript, value: 'context.metadata.http.status === 200'}}
                  - {{type: javascript, value: 'context.providerResponse.metadata.http.headers["content-type"].length > 3'}}
                  - {{type: javascript, value: 'context.providerResponse.cached === false'}}
                  - {{type: python, value: 'context["metadata"]["http"]["statusText"] == "OK"'}}
              - vars: {{q: b}}
                providers: [echo]
                assert:
                  - {{type: python, value: 'context["metadata"].get("x") is None'}}
                  - {{type: javascript, value: 'context.providerResponse.raw === "b" && !context.providerResponse.cached'}}
              - {{vars: {{q: c}}, providers: [echo], providerOutput: d, assert: [{{type: javascript, value: '!context.metadata'}}]}}
              - vars: {{q: e}}
                providers: [echo]
                options: {{transform: 'output + Object.keys(context.metadata).length'}}
                assert: [{{type: equals, value: e0}}]
              - {{vars: {{q: f}}, providers: [echo], options: {{transform: 'file://t.py'}}, assert: [{{type: equals, value: 'f{{}}'}}]}}
            """,
            t_py="def get_transform(output, context):\n    return output + str(context['metadata'])\n",
        )
        attempts, _ = await run(root)
    assert [one.message for one in attempts] == ["passed"] * 5


async def test_a_chat_that_what_was_filled_in_breaks_is_no_question(tmp_path: Path) -> None:
    chat = '[{"role": "user", "content": "Hi."}{% if q %}, {"role": "user", "content": "{{q}}"}{% endif %}]'
    with OpenAIServer() as server:
        root = suite(
            tmp_path,
            f"""
            providers: [{{id: 'openai:chat:m', config: {{apiBaseUrl: '{server.base}', apiKey: none}}}}, echo]
            prompts: ['{chat}']
            tests:
              - vars: {{q: 'so "no"'}}
              - vars: {{q: yes}}
              - {{vars: {{q: 'so "no"'}}, providerOutput: given}}
            """,
        )
        attempts, _ = await run(root)
    by_place = [[one.outcome, one.message.partition(":")[0]] for one in attempts]
    broken = ["error", "the prompt is not valid JSON"]
    assert sorted(by_place) == sorted([broken, *[["passed", "nothing asserted"]] * 5])
    assert [seen.body["messages"] for seen in server.requests] == [
        [{"role": "user", "content": "Hi."}, {"role": "user", "content": "yes"}]
    ]


async def test_a_grader_that_is_code_is_told_what_its_question_was_made_of(tmp_path: Path) -> None:
    root = suite(
        tmp_path,
        """
        prompts: ['{{q}}']
        providers: [echo]
        defaultTest: {options: {provider: 'python:grader.py'}}
        tests:
          - {vars: {q: '{"a": 1}'}, assert: [{type: llm-rubric, value: 'good {{q}}'}]}
          - {vars: {q: x}, assert: [{type: factuality, value: good}]}
          - {vars: {q: y}, assert: [{type: model-graded-closedqa, value: good}]}
          - {vars: {q: z}, assert: [{type: llm-rubric, value: {k: [1]}, rubricPrompt: 'R {{rubric}}'}, {type: llm-rubric, value: [b, '{{q}}'], rubricPrompt: 'L {{rubric}}'}]}
        """,
        grader_py="""
            import json
            def call_api(prompt, options, context):
                told = json.dumps([context["vars"], prompt if prompt[1] == " " else ""], sort_keys=True)
                return {"output": json.dumps({"pass": True, "category": "C", "reason": told})}
        """,
    )
    attempts, _ = await run(root)
    said = [json.loads(one.reason) for attempt in attempts for one in attempt.verdicts]
    assert said == [
        [{"q": '{"a": 1}', "output": {"a": 1}, "rubric": 'good {"a": 1}'}, ""],
        [{"q": "x", "input": "x", "ideal": "good", "completion": "x"}, ""],
        [{"q": "y", "input": "y", "criteria": "good", "completion": "y"}, ""],
        [{"q": "z", "output": "z", "rubric": '{"k":[1]}'}, 'R {"k":[1]}'],
        [{"q": "z", "output": "z", "rubric": "b,z"}, "L b,z"],
    ]


PROVIDERS = """
prompts: ['{{q}}']
providers: [echo, {id: echo, label: mine}]
tests:
  - {vars: {q: a}, assert: [{type: javascript, value: 'context.provider.id() === "echo"'}]}
  - {vars: {q: b}, providers: [mine], assert: [{type: javascript, value: 'context.provider.label === "mine" && context.provider.id() === "echo"'}]}
  - {vars: {q: c}, assert: [{type: python, value: 'context["provider"]["id"] == "echo"'}]}
"""
NODE_PROVIDER = "  - {vars: {q: d}, assert: [{type: javascript, value: 'file://p.js'}]}\n"


@pytest.mark.parametrize(
    "more",
    [
        "",
        pytest.param(
            NODE_PROVIDER, marks=pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
        ),
    ],
)
async def test_a_script_can_ask_the_provider_for_its_id(tmp_path: Path, more: str) -> None:
    code = "require('fs'); module.exports = (output, context) => context.provider.id() === 'echo';"
    attempts, _ = await run(suite(tmp_path, PROVIDERS + more, p_js=code))
    assert {one.message for one in attempts} == {"passed"}


async def test_a_script_finds_what_every_test_and_provider_has_in_promptfoo(tmp_path: Path) -> None:
    """A test without metadata, options or a provider's label was a KeyError, and a test's own provider was told."""
    attempts, _ = await run(
        suite(
            tmp_path,
            """
            prompts: ['{{q}}']
            providers: [echo]
            defaultTest:
              assert:
                - {type: javascript, value: 'context.test.metadata.x === undefined && context.test.options.x === undefined'}
                - {type: javascript, value: 'context.provider.label === "" && context.provider.id() === "echo"'}
                - {type: python, value: 'context["test"]["metadata"].get("x") is context["test"]["options"].get("x")'}
                - {type: python, value: 'context["provider"]["label"] == ""'}
            tests:
              - vars: {q: a}
              - {vars: {q: b}, provider: {id: 'exec:echo', label: T}}
            """,
        )
    )
    assert [one.message for one in attempts] == ["passed"] * 2


@pytest.mark.parametrize("first", [False, True])
async def test_a_row_with_a_provider_of_its_own_opens_no_column_beside_that_of_a_model(
    tmp_path: Path, first: bool
) -> None:
    tests = ["{vars: {q: a}}", "{vars: {q: b}, provider: echo}"]
    with OpenAIServer() as server:
        root = suite(
            tmp_path,
            f"""
            prompts: ['{{{{q}}}}']
            providers: [{{id: 'openai:chat:gpt-4o-mini', label: oa, config: {{apiBaseUrl: '{server.base}', apiKey: k}}}}]
            tests: [{", ".join(reversed(tests) if first else tests)}]
            """,
        )
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], trust=True))
        await active.execute()
    assert active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        promptfoo_json.write(reader, tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())["results"]
    assert [(p["provider"], p["metrics"]["testPassCount"]) for p in found["prompts"]] == [("oa", 2)]
    assert {r["promptIdx"] for r in found["results"]} == {0}


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (
            "prompts: ['hi']\nvars: {n: 'file://made.py'}\n",
            "def get_var(*_): return {'output': float('nan')}",
        ),
        (
            "prompts: ['hi']\noptions: {transformVars: 'file://made.py'}\n",
            "def get_transform(given, _): return {**given, 'n': float('inf')}",
        ),
        (
            "prompts: ['file://made.py:prompt']\n",
            "def prompt(_): return {'prompt': 'hi', 'config': {'n': float('nan')}}",
        ),
        (
            "prompts: ['hi']\nextensions: ['file://made.py:beforeEach']\n",
            "def beforeEach(given, _): given['test']['vars']['n'] = float('nan'); return given",
        ),
    ],
    ids=["variable", "transformVars", "prompt", "hook"],
)
async def test_numbers_of_python_that_json_has_not_are_errors(tmp_path: Path, config: str, code: str) -> None:
    """They were null, which is below every limit; to promptfoo Python says nothing that is no JSON."""
    settings = dict(line.split(": ", 1) for line in config.splitlines())
    test = {name: settings.pop(name) for name in ("vars", "options") if name in settings}
    written = "".join(f"{name}: {value}\n" for name, value in settings.items())
    of_test = "".join(f"{name}: {value}, " for name, value in test.items())
    suite(
        tmp_path,
        f"{written}providers: [echo]\ntests: [{{{of_test}assert: [{{type: contains, value: hi}}]}}]\n",
    )
    (tmp_path / "made.py").write_text(f"{code}\n", "utf-8")
    (attempt,), _ = await run(tmp_path)
    assert attempt.outcome == "error" and "gives NaN or an infinite number" in attempt.message


@pytest.mark.real
async def test_functions_that_make_prompts_hear_a_conversation_where_a_test_names_it(tmp_path: Path) -> None:
    """promptfoo 0.121.20 gives them none; the rows of a scenario have a conversation that nobody named."""
    config = """
    providers: [echo]
    prompts: ['file://make.py:made']
    defaultTest: {options: {transform: 'output + "|" + Object.keys(context.vars).sort()'}}
    tests: [{vars: {q: a}, metadata: {conversationId: c}}]
    scenarios: [{config: [{vars: {z: 1}}], tests: [{vars: {q: b}}, {vars: {q: c}}]}]
    """
    made = "def made(context):\n    return str(len(context['vars'].get('_conversation', 'none')))\n"
    attempts, _ = await run(suite(tmp_path, config, make_py=made))
    assert [one.response_text for one in attempts] == ["0|_conversation,q", "4|q,z", "4|q,z"]
