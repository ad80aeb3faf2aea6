"""`check` and values of a wrong kind, impossible values and misspelt names, key by key: none passes in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.conftest import Cli

STARTTOAGENT = "agent: helper\ntest_cases: [{name: a, input: hi, expected: {%s}}]\n"
NAO = "name: n\nprompt: How many?\nsql: SELECT 1 AS n\n%s\n"
NEURO_SAN = 'agent: music_nerd\nconnections: ["http"]\n%s\ninteractions: [{text: "hi", response: {text: {keywords: "a"}}}]\n'
TURN = 'agent: music_nerd\nconnections: ["http"]\ninteractions: [{text: "hi", %s}]\n'
PROMPTFOO = "prompts: ['{{q}}']\nproviders: [echo]\n%s\ntests: [{vars: {q: x}, assert: [{type: contains, value: x}]}]\n"
TEST = "prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: x}, assert: [{type: contains, value: x}], %s}]\n"
ASSERTION = "prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: x}, assert: [{%s}]}]\n"
PROVIDER = "prompts: ['{{q}}']\nproviders: [{id: echo, %s}]\ntests: [{vars: {q: x}, assert: [{type: contains, value: x}]}]\n"
PROMPT = "prompts: [%s]\nproviders: [echo]\ntests: [{vars: {q: x}, assert: [{type: contains, value: x}]}]\n"
NAMES = {
    STARTTOAGENT: "s.yaml", NAO: "tests/n.yml", NEURO_SAN: "n.hocon", TURN: "n.hocon", PROMPTFOO: "promptfooconfig.yaml",
    TEST: "promptfooconfig.yaml", ASSERTION: "promptfooconfig.yaml", PROVIDER: "promptfooconfig.yaml",
    PROMPT: "promptfooconfig.yaml",
}  # fmt: skip
SILENT_BEFORE = [
    (STARTTOAGENT, "max_latency_ms: fast", "note", "max_latency_ms: is no limit that is known"),
    (STARTTOAGENT, "max_cost: 5", "note", "max_cost: is no limit that is known"),
    (STARTTOAGENT, "escalation_priority: [high]", "note", "equals ['high']"),
    (STARTTOAGENT, "should_not_contain: ''", "note", "never passes"),
    (STARTTOAGENT, "tools_used: ['']", "note", "never passes"),
    (
        NEURO_SAN,
        'success_ratio = "3/2"',
        "note",
        "success_ratio: '3/2' is impossible: it is taken for 2 of 2",
    ),
    (NEURO_SAN, 'success_ratio = "0/3"', "note", "taken for 1 of 3"),
    (NEURO_SAN, 'success_ratio = "2/0"', "note", "taken for 1 of 1"),
    (NEURO_SAN, 'success_ratio = "-1/3"', "note", "taken for 1 of 3"),
    (NEURO_SAN, 'success_ratio = "1/9/2"', "note", "more than one slash"),
    (NEURO_SAN, "timeout_in_seconds = 0", "note", "no time to answer"),
    (TURN, "timeout_in_seconds: 0, response: {text: {value: a}}", "note", "no time to answer"),
    (TURN, 'response: {text: {not_keywords: ""}}', "note", "never passes"),
    (TURN, "response: {text: {keywords: 5}}", "error", "text cannot be searched for 5"),
    (PROMPTFOO, "evaluateOptions: {repat: 2}", "error", "did you mean repeat?"),
    (PROMPTFOO, "evaluateOptions: {repeat: 1.5}", "note", "1.5 is no number of times"),
    (PROMPTFOO, "commandLineOptions: {repat: 2}", "error", "did you mean repeat?"),
    (TEST, "options: {tranform: x}", "error", "did you mean transform?"),
    (TEST, "threshold: 2", "note", "never reached"),
    (ASSERTION, "type: latency, threshold: -1", "note", "below everything: it never passes"),
    (ASSERTION, "type: levenshtein, value: x, threshold: -1", "note", "it never passes"),
    (ASSERTION, "type: not-levenshtein, value: x, threshold: -1", "note", "no answer stays below -1"),
    (ASSERTION, "type: bleu, value: x, threshold: 2", "note", "it never passes"),
    (ASSERTION, "type: not-bleu, value: x, threshold: 2", "note", "no answer reaches a threshold of 2"),
    (ASSERTION, "type: contains, value: x, weight: -1", "note", "counts against"),
    (ASSERTION, "type: equals", "note", "'undefined'"),
    (ASSERTION, "type: equals, value: 3.0", "note", "3.0 is compared as the text '3'"),
    (ASSERTION, "type: javascript, value: 5", "error", "cannot be judged with 5"),
    (ASSERTION, "type: word-count, value: -1", "note", "it never passes"),
    (ASSERTION, "type: contains, value: x, transform: 'output.'", "error", "its transform is no JavaScript"),
    (ASSERTION, "type: llm-rubric", "error", "cannot be judged with nothing"),
    (ASSERTION, "type: is-sql, value: {databaseType: mysqll}", "note", "did you mean 'mysql'?"),
    (ASSERTION, "type: is-sql, value: {allowedTables: 5}", "error", "as lists"),
    (ASSERTION, "type: finish-reason, value: stp", "note", "did you mean 'stop'?"),
    (ASSERTION, "type: finish-reason, value: 5", "error", "cannot be judged with 5"),
    (ASSERTION, "type: tool-call-f1, value: 5", "error", "cannot be judged with 5"),
    (ASSERTION, "type: 'trajectory:step-count', value: {min: x}", "error", "as numbers"),
    (ASSERTION, "type: 'trajectory:step-count', value: {min: 5, max: 1}", "note", "min 5 is above max 1"),
    (ASSERTION, "type: trace-span-count, value: {pattern: a, min: x}", "error", "as numbers"),
    (ASSERTION, "type: trace-span-duration, value: {max: x}", "error", "max as a number"),
    (ASSERTION, "type: trace-error-spans, value: {max_count: x}", "error", "as numbers"),
    (
        ASSERTION,
        "type: assert-set, threshold: 3, assert: [{type: contains, value: x}]",
        "note",
        "every score of a set",
    ),
    (ASSERTION, "type: skill-used, value: {count: x}", "error", "name or pattern"),
    (ASSERTION, "type: max-score, value: {method: averge}", "error", "average or sum"),
    (ASSERTION, "type: gleu, value: [1]", "error", "cannot be judged with [1]"),
    (ASSERTION, "type: rouge-n, value: 5", "error", "cannot be judged with 5"),
    (ASSERTION, "type: moderation, value: 5", "error", "a list of categories"),
    (PROVIDER, "config: 5", "note", "providers[0].config: must be a mapping"),
    (PROVIDER, "delay: x", "note", "must be milliseconds"),
    (PROVIDER, "label: [a]", "note", "must be text"),
    (PROVIDER, "transfrom: x", "error", "did you mean transform?"),
    (PROMPT, "{lable: a, raw: x}", "error", "did you mean label?"),
]
SAID_BEFORE = [
    *((STARTTOAGENT, f"{key}: {value}", "error", key) for key in ("max_tool_calls", "max_input_tokens", "max_output_tokens")
      for value in ("fast", "-1", ".nan", "true", "[1]")),
    (STARTTOAGENT, "escalated: maybe", "error", "escalated"),
    (STARTTOAGENT, "should_contian: a", "error", "should_contian"),
    *((NAO, f"comparison: {{{key}: {value}}}", "error", key) for key, value in
      (("rtol", "x"), ("atol", "-1"), ("decimals", "1.5"), ("ordered", "1"), ("key", "5"), ("rtoll", "1"))),
    (NAO, "assertions: [{type: tool_call, tool: x, min_count: many}]", "error", "min_count"),
    (NAO, "databse: shop", "error", "databse"),
    (NEURO_SAN, 'success_ratio = "a/b"', "error", "success_ratio"),
    (NEURO_SAN, 'timeout_in_seconds = "x"', "error", "timeout_in_seconds"),
    (NEURO_SAN, "use_direct = 5", "error", "use_direct"),
    (TURN, "response: {text: {keyword: a}}", "error", "keyword"),
    (TEST, "threshold: high", "error", "threshold"),
    (ASSERTION, "type: contains, value: x, weight: heavy", "error", "weight"),
    (ASSERTION, "type: contians, value: x", "error", "contains"),
    (ASSERTION, "type: regex, value: '('", "error", "regex"),
]  # fmt: skip


@pytest.mark.parametrize(("form", "given", "level", "words"), [*SILENT_BEFORE, *SAID_BEFORE])
def test_no_odd_value_passes_in_silence(
    cli: Cli, project: Path, form: str, given: str, level: str, words: str
) -> None:
    (project / "suite.yaml").unlink()
    file = project / NAMES[form]
    file.parent.mkdir(exist_ok=True)
    file.write_text(form % given, "utf-8")
    told = cli("check", NAMES[form])
    (line,) = {one for one in told.out.splitlines() if words in one}
    assert line.startswith(NAMES[form]) and line.endswith("(note)") == (level == "note"), told.out
    assert told.code == 4 if level == "error" else told.code == 0, told.out


def test_a_misspelt_agent_is_an_error_with_the_nearest_name(cli: Cli, project: Path) -> None:
    suite = (project / "suite.yaml").read_text()
    (project / "suite.yaml").write_text(suite.replace("agent: helper", "agent: helpr"), "utf-8")
    told = cli("check", ".")
    assert told.code == 4 and "no agent 'helpr': did you mean 'helper'?" in told.out
    assert "did you mean 'helper'?" in cli("run", ".").out
    typed = cli("run", ".", "--agent", "hleper")
    assert typed.code == 4 and "did you mean 'helper'?" in typed.err
    (project / "suite.yaml").write_text(suite.replace("agent: helper", "agent: elsewhere"), "utf-8")
    assert cli("check", ".").code == 0  # another machine may have it


def test_what_is_sound_is_not_noted(cli: Cli, project: Path) -> None:
    (project / "promptfooconfig.yaml").write_text(
        ASSERTION % "type: bleu, value: ['{{q}}', b], threshold: 1}, {type: word-count, value: {min: 1, max: 5}}, {type: "
        "moderation}, {type: is-sql, value: {databaseType: MySQL, allowedTables: [a]}}, {type: rouge-n, value: file://x.txt",
        "utf-8",
    )  # fmt: skip
    told = cli("check", "promptfooconfig.yaml").out
    assert not [line for line in told.splitlines() if "never" in line or "cannot be judged with" in line], (
        told
    )


def test_a_number_is_equal_to_its_text_in_javascript_as_in_promptfoo(cli: Cli, project: Path) -> None:
    """js-yaml reads `3.0` as the number 3, whose text is `3`."""
    for answer, code in (("3", 0), ("3.0", 1)):
        text = PROMPT % "'{{q}}'"
        text = text.replace("q: x", f"q: '{answer}'").replace(
            "type: contains, value: x", "type: equals, value: 3.0"
        )
        (project / "promptfooconfig.yaml").write_text(text, "utf-8")
        assert cli("run", "promptfooconfig.yaml").code == code


def test_a_suite_that_names_no_agent_is_told_which_there_are(cli: Cli, project: Path) -> None:
    suite = (project / "suite.yaml").read_text()
    (project / "suite.yaml").write_text(suite.replace("agent: helper\n", ""), "utf-8")
    told = cli("check", ".")
    assert "the suite names no agent, and tui_eval.yaml has: helper. Name one" in told.out
    assert "the suite names no agent" in cli("run", ".").out
    config = project / "tui_eval.yaml"
    as_it_was = config.read_text("utf-8")
    config.write_text(as_it_was.replace("helper:", "my_agent:"), "utf-8")  # whom such a suite asks
    assert "names no agent" not in cli("check", ".").out and "names no agent" not in cli("run", ".").out
    config.write_text(as_it_was, "utf-8")
    (project / "suite.yaml").write_text(suite.replace("agent: helper", "agent: somebody"), "utf-8")
    assert (
        "no agent 'somebody', and tui_eval.yaml has: helper. Name one in the suite" in cli("check", ".").out
    )
