"""What passes because nothing in it can fail is said by `check`, `list`, the run, JUnit and the store."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.commands.conftest import Cli

NOTHING = "nothing is asserted"
FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "no assert": ({}, NOTHING),
    "null": ({"assert": None}, NOTHING),
    "empty": ({"assert": []}, NOTHING),
    "empty set": ({"assert": [{"type": "assert-set", "assert": []}]}, "an empty set"),
    "set of threshold 0": (
        {"assert": [{"type": "assert-set", "threshold": 0, "assert": [{"type": "contains", "value": "z"}]}]},
        "a threshold of 0 is reached whatever fails in the set",
    ),
    "threshold 0": (
        {"threshold": 0, "assert": [{"type": "contains", "value": "zz"}]},
        "a threshold of 0 is reached",
    ),
    "threshold below": (
        {"threshold": -1, "assert": [{"type": "contains", "value": "zz"}]},
        "a threshold of -1 is reached",
    ),
    "weight 0": (
        {"assert": [{"type": "contains", "value": "zz", "weight": 0}]},
        "a weight of 0 never fails",
    ),
    "all of none": ({"assert": [{"type": "contains-all", "value": []}]}, "an empty list asks for nothing"),
    "all of nothing": ({"assert": [{"type": "icontains-all", "value": ","}]}, "a list without texts"),
    "none of none": ({"assert": [{"type": "not-contains-any", "value": []}]}, "an empty list"),
    "any of nothing": ({"assert": [{"type": "contains-any", "value": ["a", ""]}]}, "holds an empty one"),
    "no type": (
        {"assert": [{"type": "not-is-json", "value": {"type": "strng"}}]},
        "the schema's type 'strng' is none of JSON's",
    ),
    "no inner type": (
        {"assert": [{"type": "not-contains-json", "value": {"properties": {"a": {"type": "int"}}}}]},
        "the schema's type 'int' is none of JSON's",
    ),
    "cost": ({"assert": [{"type": "cost", "threshold": 0.01}]}, "the agent reports no costs"),
    "every pattern": ({"assert": [{"type": "regex", "value": ".*"}]}, "the pattern is found in every text"),
    "beginning": ({"assert": [{"type": "regex", "value": "^"}]}, "the pattern is found in every text"),
    "end": ({"assert": [{"type": "regex", "value": "q*$"}]}, "the pattern is found in every text"),
    "any distance": (
        {"assert": [{"type": "levenshtein", "value": "q", "threshold": float("inf")}]},
        "a limit without end is never exceeded",
    ),
    "any length": (
        {"assert": [{"type": "word-count", "value": {"max": float("inf")}}]},
        "a limit without end is never exceeded",
    ),
    "out of reach": (
        {"assert": [{"type": "not-gleu", "value": "q", "threshold": 1.1}]},
        "no answer reaches a threshold of 1.1",
    ),
    "before the start": (
        {"assert": [{"type": "not-latency", "threshold": -1}]},
        "no answer stays below -1",
    ),
    "no words": ({"assert": [{"type": "word-count", "value": {"min": 0}}]}, "is always reached"),
    "score of 0": (
        {"assert": [{"type": "rouge-n", "value": "a", "threshold": 0}]},
        "a threshold of 0 is reached by every answer",
    ),
    "true": ({"assert": [{"type": "javascript", "value": "true"}]}, "is true whatever is answered"),
    "zero from zero on": (
        {"assert": [{"type": "javascript", "value": "0", "threshold": 0}]},
        "gives 0 whatever is answered, with a threshold of 0",
    ),
    "never, turned around": (
        {"assert": [{"type": "not-javascript", "value": "false"}]},
        "is false whatever is answered",
    ),
    "lines that end in true": (
        {
            "assert": [
                {"type": "javascript", "value": "// later\nconst open = output.trim();\nreturn true;\n"}
            ]
        },
        "is true whatever is answered",
    ),
    "not nothing": ({"assert": [{"type": "not-equals"}]}, "without a value only the answer 'undefined'"),
    "any of an empty variable": (
        {"vars": {"x": 1, "y": ""}, "assert": [{"type": "icontains-any", "value": ["q", "{{ y }}"]}]},
        "holds an empty one",
    ),
}


@pytest.mark.usually(12)
@pytest.mark.parametrize("form", FORMS)
def test_each_vacuous_form_is_noted_with_its_line_and_counted(cli: Cli, project: Path, form: str) -> None:
    given, message = FORMS[form]
    lines = ["prompts: ['say {{x}}']", "providers: [echo]", "tests:"]
    lines += [f"- {json.dumps({'vars': {'x': 'zz'}, 'assert': [{'type': 'contains', 'value': 'zz'}]})}"]
    lines += [
        f"- {json.dumps({'description': 'idle', 'vars': {'x': 1}, **given})}".replace("Infinity", ".inf")
    ]
    Path("promptfooconfig.yaml").write_text("\n".join(lines) + "\n", "utf-8")

    told = cli("check", "promptfooconfig.yaml")
    notes = [line for line in told.out.splitlines() if line.endswith("(note)")]
    assert told.code == 0 and len(notes) == 1, told.out
    assert notes[0].startswith("promptfooconfig.yaml:5:") and message in notes[0]

    ran = cli("run", "promptfooconfig.yaml", "-o", "junit.xml", "-o", "results.json", "-o", "page.html")
    assert ran.code == 0, ran.out + ran.err
    assert ran.out.strip().splitlines()[-1] == "All 2 cases passed (1 asserted nothing)"
    listed = cli("list", "promptfooconfig.yaml")
    assert listed.out.rstrip().endswith("2 cases in 1 suite, 1 asserts nothing")
    assert [line for line in listed.out.splitlines() if "(asserts nothing)" in line] == [
        "  idle  [echo]  (asserts nothing)"
    ]
    tree = ElementTree.parse("junit.xml")
    having = {
        case.get("name"): [(one.get("name"), one.get("value")) for one in case.iter("property")]
        for case in tree.iter("testcase")
    }
    assert having == {"zz [echo]": [], "idle [echo]": [("asserted_nothing", "true")]}
    assert [one.get("value") for one in tree.findall("testsuite/properties/property")] == ["1"]
    assert "1 asserted nothing" in Path("page.html").read_text("utf-8")
    document = json.loads(Path("results.json").read_text("utf-8"))
    assert [row["outcome"] for row in document["results"]] == ["passed", "passed"]


def test_what_can_fail_is_not_called_vacuous(cli: Cli, project: Path) -> None:
    suite = {
        "prompts": ["say {{x}}"],
        "providers": ["echo"],
        "tests": [
            {"vars": {"x": 1}, "threshold": 0.5, "assert": [{"type": "contains", "value": "say"}]},
            {"vars": {"x": 2}, "threshold": 0, "assert": [{"type": "javascript", "value": "-output.length"}]},
            {"vars": {"x": 3}, "assert": [{"type": "regex", "value": "^say|^$"}]},
            {"vars": {"x": 3, "y": 1}, "assert": [{"type": "regex", "value": "^(say.*)?$"}]},
            {"vars": {"x": 4}, "assert": [{"type": "contains-all", "value": ["say", ""]}]},
            {"vars": {"x": 5}, "assert": [{"type": "not-contains-any", "value": ["no"]}]},
            {"vars": {"x": 6}, "assert": [{"type": "is-json", "value": {"enum": [{"type": "strng"}]}}]},
            {
                "vars": {"x": 7},
                "assert": [
                    {"type": "contains", "value": "q", "weight": 0},
                    {"type": "contains", "value": "7"},
                ],
            },
        ],
    }
    Path("promptfooconfig.yaml").write_text(json.dumps(suite), "utf-8")
    assert "asserts nothing" not in cli("list", "promptfooconfig.yaml").out
    told = cli("check", "promptfooconfig.yaml")
    assert [line for line in told.out.splitlines() if "(note)" in line and "weight of 0" not in line] == []
    assert "asserted nothing" not in cli("run", "promptfooconfig.yaml").out


def test_a_limit_in_a_csv_cell_that_promptfoo_reads_as_another_one_is_noted(cli: Cli, project: Path) -> None:
    Path("t.csv").write_text(
        "x,__expected\n4,latency: 4000\n5,latency(4000)\n6,levenshtein: say 7\n7,levenshtein(5): say 7\n",
        "utf-8",
    )
    suite = "prompts: ['say {{x}}']\nproviders: [echo]\ntests: file://t.csv\n"
    Path("promptfooconfig.yaml").write_text(suite, "utf-8")
    told = cli("check", "promptfooconfig.yaml")
    assert [line for line in told.out.splitlines() if "(note)" in line] == [
        "t.csv:2: latency: 4000 is not read as the limit: promptfoo takes 0.75 ms; write latency(4000) (note)",
        "t.csv:4: levenshtein: promptfoo takes a distance of at most 0.75, so that only the text itself passes; "
        "write levenshtein(5): TEXT for at most 5 changes, or equals: TEXT (note)",
    ]


@pytest.mark.parametrize("tests", ["", "tests: []\n", "tests: null\n"])
def test_a_suite_without_tests_says_that_it_has_none(cli: Cli, project: Path, tests: str) -> None:
    Path("promptfooconfig.yaml").write_text(f"prompts: ['say']\nproviders: [echo]\n{tests}", "utf-8")
    told = cli("check", "promptfooconfig.yaml")
    assert told.code == 0 and "tests: there are none" in told.out and NOTHING in told.out
    assert cli("run", "promptfooconfig.yaml").out.rstrip().endswith("\n1 case passed (1 asserted nothing)")


def test_the_guides_and_naos_and_neuro_sans_vacuous_forms(cli: Cli, project: Path) -> None:
    Path("suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        "  - {name: bare, input: hello}\n"
        "  - {name: lists, input: hello, expected: {should_contain: [], tools_used: []}}\n"
        "  - {name: blank, input: hello, expected: {should_contain: ['']}}\n"
        "  - {name: says, input: hello, expected: {should_contain: [hi]}}\n",
        "utf-8",
    )
    Path("tests").mkdir()
    Path("tests/only.yml").write_text("name: only\nprompt: how many?\n", "utf-8")
    Path("net.hocon").write_text(
        'agent = helper\ninteractions = [{text: hello, response: {text: {}}}, {text: "hello"}]\n', "utf-8"
    )
    told = cli("check", ".")
    notes = [line for line in told.out.splitlines() if "(note)" in line]
    places = [re.sub(r": .*", "", line) for line in notes if NOTHING in line]
    assert sorted(places) == ["net.hocon:2", "suite.yaml:3", "suite.yaml:4", "tests/only.yml:1"]
    assert sum("is empty: it asks for nothing" in line for line in notes) == 2
    assert any(line.startswith("net.hocon:2:") and "is empty and tests nothing" in line for line in notes)
    assert any(line.startswith("suite.yaml:5:") and "holds an empty one" in line for line in notes)
    ran = cli("run", "suite.yaml")
    assert ran.out.rstrip().endswith("All 4 cases passed (3 asserted nothing)")
    assert cli("show", "last").out.rstrip().endswith("(3 asserted nothing)")


def test_what_neuro_san_passes_over_beside_real_tests_is_not_nothing(cli: Cli, project: Path) -> None:
    """A misspelt test is an error, which `compat: reference` leaves out; the others are asserted as ever."""
    tests = {
        "both": "{keywords = hi}}}, {text = hello, response = {text = {keyword = hi}",
        "none": "{keyword = hi}",
        "hollow": '{keywords = "", keyword = hi}',
    }
    for name, text in tests.items():
        Path(f"{name}.hocon").write_text(
            f"agent = helper\ninteractions = [{{text = hello, response = {{text = {text}}}}}]\n", "utf-8"
        )
    assert cli("run", "both.hocon", "none.hocon", "hollow.hocon").code == 4
    ran = cli("run", "both.hocon", "none.hocon", "hollow.hocon", "--compat", "reference", "-o", "r.json")
    assert "3 cases passed" in ran.out and "(2 asserted nothing)" in ran.out
    rows = json.loads(Path("r.json").read_text())["results"]
    assert {row["name"] for row in rows if row.get("asserted_nothing")} == {"none", "hollow"}


def test_a_limit_on_what_the_agent_does_not_report_asserted_nothing(cli: Cli, project: Path) -> None:
    Path("own.py").write_text(
        "def answer(message):\n    return ('hi', {'input_tokens': 3}) if 'count' in message else 'hi'\n",
        "utf-8",
    )
    Path("suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        "  - {name: silent, input: hello, expected: {max_input_tokens: 5}}\n"
        "  - {name: counted, input: count, expected: {max_input_tokens: 5}}\n",
        "utf-8",
    )
    ran = cli("run", "suite.yaml", "--agent", "own.py:answer", "-o", "junit.xml")
    assert ran.out.rstrip().endswith("All 2 cases passed (1 asserted nothing)")
    tree = ElementTree.parse("junit.xml")
    assert [bool(list(case.iter("property"))) for case in tree.iter("testcase")] == [True, False]


def test_alike_notes_are_printed_up_to_a_number_and_all_counted(cli: Cli, project: Path) -> None:
    tests = [{"vars": {"x": number}} for number in range(30)]
    suite = {"prompts": ["say {{x}}"], "providers": ["echo"], "tests": tests}
    Path("promptfooconfig.yaml").write_text(json.dumps(suite, indent=1), "utf-8")
    told = cli("check", "promptfooconfig.yaml")
    lines = told.out.splitlines()
    assert sum(NOTHING in line for line in lines) == 21
    assert lines[-2].endswith("(note): 10 more places")
    assert lines[-1] == "1 file, 30 cases: 0 errors, 30 notes of 1 kind"  # 20 lines, and 10 more places


def test_what_the_agent_never_reports_is_noted_and_counted(cli: Cli, project: Path) -> None:
    asserted = {
        "guarded": {"type": "guardrails"},
        "ended": {"type": "not-finish-reason", "value": "length"},
        "says": {"type": "contains", "value": "say"},
    }
    tests = [{"description": name, "vars": {"x": name}, "assert": [one]} for name, one in asserted.items()]
    suite = {"prompts": ["say {{x}}"], "providers": ["echo"], "tests": tests}
    Path("promptfooconfig.yaml").write_text(json.dumps(suite), "utf-8")
    told = cli("check", "promptfooconfig.yaml").out
    assert "guardrails: never fails here: the agent echo reports no guardrails" in told
    assert "not-finish-reason: never fails here: the agent echo reports no finish reason" in told
    assert told.rstrip().endswith("1 file, 3 cases: 0 errors, 2 notes")
    ran = cli("run", "promptfooconfig.yaml")
    assert ran.out.rstrip().endswith("All 3 cases passed (2 asserted nothing)")
    suite["providers"] = ["openai:gpt-4.1"]
    Path("promptfooconfig.yaml").write_text(json.dumps(suite), "utf-8")
    assert "never fails here" not in cli("check", "promptfooconfig.yaml").out


def test_a_value_that_turns_out_empty_when_it_is_judged_asserted_nothing(cli: Cli, project: Path) -> None:
    suite = {
        "prompts": ["say {{x}}"],
        "providers": ["echo"],
        "tests": [
            {
                "vars": {"x": "a"},
                "assert": [{"type": "contains-any", "value": ["{{ x | replace('a', '') }}"]}],
            },
            {
                "vars": {"x": "b"},
                "assert": [{"type": "contains-any", "value": ["{{ x | replace('a', '') }}"]}],
            },
        ],
    }
    Path("promptfooconfig.yaml").write_text(json.dumps(suite), "utf-8")
    ran = cli("run", "promptfooconfig.yaml")
    assert ran.out.rstrip().endswith("All 2 cases passed (1 asserted nothing)")
