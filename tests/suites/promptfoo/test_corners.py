"""Corners of promptfoo's configurations, each seen in 0.121.20."""

from __future__ import annotations

from pathlib import Path

from tui_eval import suites
from tui_eval.config import Config
from tui_eval.guard import yaml_lines
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite
from tui_eval.suites.promptfoo import read

HEAD = "providers: [echo]\nprompts: ['{{q}}']\n"


def suite_of(folder: Path, text: str) -> Suite:
    return read("promptfooconfig.yaml", text, Config(root=folder), Trust())


def told(suite: Suite) -> list[str]:
    return [str(problem) for problem in suites.problems_of(suite)]


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
    plain = yaml_lines.load('a: "\\ud83d\\ude00"\n', "x.yaml")
    assert plain.problems


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
