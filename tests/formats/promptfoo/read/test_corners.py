"""Corners of promptfoo's configurations, each seen in 0.121.20."""

from __future__ import annotations

from pathlib import Path

from tests.support.promptfoo_files import Make
from tui_eval.config.project import Config
from tui_eval.formats import reading
from tui_eval.formats.promptfoo.read import read
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite
from tui_eval.yaml import yaml_lines

HEAD = "providers: [echo]\nprompts: ['{{q}}']\n"


def suite_of(folder: Path, text: str) -> Suite:
    return read("promptfooconfig.yaml", text, Config(root=folder), Trust())


def told(suite: Suite) -> list[str]:
    return [str(problem) for problem in reading.problems_of(suite)]


def test_characters_written_as_two_escapes(tmp_path: Path) -> None:
    text = (
        HEAD + 'tests: [{vars: {q: "a \\ud83d\\ude00\\uD83D\\uDE01 \\" \\u00e9", r: \'\\ud83d\\ude00\'}}]\n'
    )
    suite = suite_of(tmp_path, text)
    assert suite.cases[0].vars == {"q": 'a 😀😁 " é', "r": "\\ud83d\\ude00"}
    assert not told(suite)
    alone = yaml_lines.load('a: 1\nb: "x \\ud83d y"\n', "x.yaml", core=True)
    assert [p.line for p in alone.problems] == [2] and "Unicode" in alone.problems[0].message
    many = yaml_lines.load("".join('- "\\ud83d\\ude00"\n' for _ in range(60)), "x.yaml", core=True)
    assert [p.line for p in many.problems] == [51]
    plain = yaml_lines.load('a: "\\ud83d\\ude00"\n', "x.yaml")  # of a nao test, say, which nao reads too
    assert plain.value == {"a": "😀"} and not plain.problems


def test_names_of_vars_are_texts_as_in_javascript(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, HEAD + "tests: [{vars: {true: t, null: n, 1.5: f, 5: five, 1e3: k}}]\n")
    assert suite.cases[0].vars == {"true": "t", "null": "n", "1.5": "f", "5": "five", "1000": "k"}


def test_targets_are_taken_where_providers_stand_beside_them(tmp_path: Path) -> None:
    providers = "providers: [{id: echo, label: P}]\ntargets: [{id: echo, label: T}]\n"
    suite = suite_of(tmp_path, providers + "prompts: ['{{q}}']\ntests: [{vars: {q: 1}}]\n")
    assert [case.agent for case in suite.cases] == ["T"]
    assert told(suite) == [
        "promptfooconfig.yaml:1: providers: is ignored: there are targets; keep one of the two"
    ]


def test_a_grader_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "strict.yaml").write_text("id: openai:chat:m\nconfig: {temperature: 0}\n")
    strict = {"id": "openai:chat:m", "config": {"temperature": 0}}
    own = {"id": "openai:chat:n", "config": {"tools": "file://strict.yaml"}}  # the provider's to read
    text = (
        HEAD
        + "defaultTest: {options: {provider: {text: 'file://strict.yaml', embedding: echo}}}\ntests:\n- vars: {q: 1}\n"
        "  assert: [{type: assert-set, assert: [{type: llm-rubric, value: kind, provider: 'file://strict.yaml'}]},\n"
        "    {type: llm-rubric, value: kind, provider: {id: 'openai:chat:n', config: {tools: 'file://strict.yaml'}}}]\n"
    )
    suite = suite_of(tmp_path, text)
    assert not told(suite)
    (case,) = suite.cases
    assert case.options["provider"] == {"text": strict, "embedding": "echo"}
    assert [one.provider for one in case.asserted if one.type == "llm-rubric"] == [strict, own]
    (tmp_path / "strict.yaml").write_text("[{id: 'openai:chat:m'}]")  # "Multiple providers found"
    assert any("file://strict.yaml must hold one provider" in line for line in told(suite_of(tmp_path, text)))


def test_a_scenario_without_tests_is_an_error_and_runs_nothing(tmp_path: Path) -> None:
    text = (
        HEAD
        + "scenarios:\n- config: [{vars: {q: 1}}]\n- config: [{vars: {q: 2}}]\n  tests: [{vars: {r: 3}}]\n"
    )
    suite = suite_of(tmp_path, text)
    assert [case.vars for case in suite.cases] == [{"q": 2, "r": 3}]
    assert told(suite) == [
        "promptfooconfig.yaml:4: scenarios[0]: a scenario without tests; "
        "give it tests; each is run with each entry of its config"
    ]


def test_options_of_a_wrong_kind_are_errors(tmp_path: Path) -> None:
    text = (
        "providers: [echo]\nprompts: ['{{q}}']\n"
        "evaluateOptions: {maxConcurrency: x, delay: -1, timeoutMs: true}\n"
        "derivedMetrics: [5, {name: a, value: 1}]\n"
        "tests:\n"
        "- {vars: {q: 1}, options: {transform: 5, prefix: [1], disableVarExpansion: maybe, suffix: 5}}\n"
        "- {vars: {q: 2}, assertScoringFunction: 5}\n"
    )
    assert told(suite_of(tmp_path, text)) == [
        f"promptfooconfig.yaml:{line}"
        for line in (
            '3: evaluateOptions.maxConcurrency: must be a number from 0, not "x"',
            "3: evaluateOptions.delay: must be a number from 0, not -1",
            "3: evaluateOptions.timeoutMs: must be a number from 0, not true",
            "4: derivedMetrics[0]: must be a name and a value, not 5",
            "4: derivedMetrics[1].value: must be text, not 1",
            "6: tests[0].options.transform: must be text, not 5",
            "6: tests[0].options.prefix: must be text, not [1]",
            '6: tests[0].options.disableVarExpansion: must be true or false, not "maybe"',
            "7: tests[1].assertScoringFunction: must be text, not 5",
        )
    ]
    metrics = suite_of(tmp_path, HEAD + "derivedMetrics: 5\ntests: [{vars: {q: 1}}]\n")
    assert told(metrics) == ["promptfooconfig.yaml:3: derivedMetrics: must be a list of metrics, not 5"]


def test_columns_and_cells_that_mean_nothing_are_told(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        'q,__expcted,__metdata:x,__other,__threshold\n1,a,b,c,high\n2,,,," "\n3,,,,0.5\n4,,,,1/2\n'
    )
    suite = suite_of(tmp_path, HEAD + "tests: file://t.csv\n")
    assert told(suite) == [
        "t.csv:1: __expcted: kept as a variable; did you mean __expected?",
        "t.csv:1: __metdata:x: kept as a variable; did you mean __metadata?",
        't.csv:2: __threshold: is no number and is ignored: "high" (and 1 more)',
    ]
    assert [case.threshold for case in suite.cases] == [None, None, 0.5, None]


def test_keys_that_are_no_texts_are_named_as_the_file_has_them(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, "null: 1\ntrue: 2\n" + HEAD + "tests: [{vars: {q: 1}}]\n")
    assert [problem.key for problem in reading.problems_of(suite)] == ["null", "true"]


def test_a_key_that_holds_anchors_is_known(make: Make) -> None:
    """promptfoo takes any key at the top; one that nothing refers to is passed over."""
    suite = make(
        "x: &a [{type: contains, value: a}]\n"
        "x-common: {deep: [&b {q: a}]}\n"
        "scenario: &c 0.5\n"
        "unused: &d {a: 1}\n"
        "providers: [echo]\nprompts: ['{{q}}']\n"
        "tests: [{vars: *b, assert: *a}, {vars: {<<: *b}, threshold: *c}]\n"
    )
    said = [(p.level, p.key) for p in suite.problems if "unknown key" in p.message]
    assert said == [("note", "unused")]
