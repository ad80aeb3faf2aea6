"""The embedded agent: its file, its steps, its variation."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.agents import agent, kinds, of, talk
from tui_eval.agents import Agent, AgentError, Request
from tui_eval.agents.offline.scripted import PatternSearcher
from tui_eval.config.project import ConfigError
from tui_eval.events import HandOff, Retrying, TextDelta, ToolCall, ToolResult

SCRIPT = """
speed: 0
seed: 7
rules:
  - match: /plans? for (?P<who>\\w+)/
    steps:
      - {think: "Let me look."}
      - {call: search, arguments: {q: "{{who}}"}, result: {price: 79}}
      - {hand_off: billing, steps: [{call: charge, error: "no card"}, {say: "sub text"}]}
      - {retry: "429", seconds: 0.5}
      - {say: "For {{who}}: €79."}
    metadata: {escalated: false, who: "{{who}}"}
    usage: {input: 100, output: 20, cached: 10}
    cost: 0.25
  - match: {turn: 2}
    say: "Still {{who}}."
    rows: [{n: 1}, {n: 2}]
  - match: flaky
    say: "good"
    vary:
      - {attempts: [2], say: "bad"}
  - match: broken
    steps: [{say: "I was "}, {error: "the model is down", status: 500}]
  - match: lucky
    vary: [{weight: 1, say: heads}, {weight: 1, say: tails}]
default: "I do not know {{message}}."
"""


def scripted(tmp_path: Path, text: str = SCRIPT) -> Agent:
    (tmp_path / "agent.yaml").write_text(text)
    return agent("scripted", tmp_path, script="agent.yaml")


async def test_plays_every_kind_of_step(tmp_path: Path) -> None:
    events, replies = await talk(scripted(tmp_path), "Plans for ada?", "and now?")
    assert kinds(events)[:8] == [
        "ReasoningDelta",
        "ToolCall",
        "ToolResult",
        "HandOff",
        "ToolCall",
        "ToolResult",
        "TextDelta",
        "Retrying",
    ]
    reply = replies[0]
    assert reply.text == "For ada: €79." and reply.metadata == {"escalated": False, "who": "ada"}
    assert reply.cost == 0.25 and reply.usage is not None and reply.usage.cached_tokens == 10
    assert [(call.name, call.agent) for call in of(events, ToolCall)] == [
        ("search", ""),
        ("charge", "billing"),
    ]
    assert of(events, ToolCall)[0].arguments == {"q": "ada"} and of(events, ToolResult)[1].error == "no card"
    assert of(events, HandOff)[0].to == "billing" and of(events, Retrying)[0].reason == "429"
    assert [event.agent for event in of(events, TextDelta)] == ["billing", "", ""]
    assert replies[1].text == "Still ada."


async def test_rows_answer_the_extraction_turn(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"data": {}}}
    _, replies = await talk(
        scripted(tmp_path), "x", Request(2, "y"), Request(3, "rows please", schema=schema)
    )
    assert replies[2].text == '{"data":[{"n":1},{"n":2}]}'
    assert replies[0].text == "I do not know x."


async def test_varies_by_attempt_with_a_fixed_seed(tmp_path: Path) -> None:
    it = scripted(tmp_path)
    texts = [(await talk(it, "flaky", attempt=number))[1][0].text for number in (1, 2, 3)]
    assert texts == ["good", "bad", "good"]
    lucky = [[(await talk(it, "lucky", attempt=n))[1][0].text for n in range(1, 21)] for _ in range(2)]
    assert lucky[0] == lucky[1] and {"heads", "tails"} == set(lucky[0])


async def test_errors_keep_what_was_said(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="the model is down") as caught:
        await talk(scripted(tmp_path), "broken")
    assert caught.value.answer == "I was " and caught.value.status == 500


async def test_streams_in_pieces(tmp_path: Path) -> None:
    it = scripted(
        tmp_path,
        "rate: 400\ndefault: {say: 'one two three four five six seven eight nine ten " + "w " * 90 + "'}",
    )
    events, replies = await talk(it, "x")
    pieces = of(events, TextDelta)
    assert 3 < len(pieces) < 60 and "".join(piece.text for piece in pieces) == replies[0].text


async def test_scripts_without_spaces_stream_too(tmp_path: Path) -> None:
    text = "お待たせして申し訳ございません。ご注文は JP-2207 です。🚚 " * 3
    events, replies = await talk(scripted(tmp_path, f"rate: 400\ndefault: {{say: '{text}'}}"), "x")
    pieces = of(events, TextDelta)
    assert len(pieces) > 3 and "".join(piece.text for piece in pieces) == replies[0].text == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: 3", "agent.yaml:1: rules: must be a list"),
        (
            "rules:\n  - match: x\n    sya: y",
            "agent.yaml:3: rules.0.sya: is not known here; did you mean say?",
        ),
        (
            "rules:\n  - {match: x, say: y, colour: z}",
            "rules.0.colour: is not known here; known: attempts, cost",
        ),
        (
            "default:\n  steps:\n    - {sya: x}",
            "agent.yaml:3: default.steps.0.sya: is not known here; did you mean say?",
        ),
        ("rules:\n  - match: '/(/'\n    say: y", "agent.yaml:2: rules.0.match: is not a regular expression"),
        ("default:\n  steps:\n    - {shout: x}", "agent.yaml:3: default.steps.0: must have one of say"),
        (
            "default:\n  steps:\n    - {call: x, after: soon}",
            "agent.yaml:3: default.steps.0.after: must be a number",
        ),
        ("rules:\n  - match: x\ndefault: y", "agent.yaml:2: rules.0: answers nothing: give say or steps"),
        ("default: {steps: [], cost: 1}", "agent.yaml:1: default: answers nothing"),
        (
            "default:\n  vary:\n    - {attempts: 2, say: x}",
            "agent.yaml:1: default: answers nothing",
        ),
        ("default:\n  vary:\n    - {say: x}\n    - {weight: 2}", "default.vary.1: answers nothing"),
        ("rules: [", "agent.yaml:"),
        ("{}", "neither rules nor a default"),
        ("- a", "a script is a mapping"),
    ],
)
def test_bad_scripts_say_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        scripted(tmp_path, text)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_an_answer_without_a_word_is_one_that_somebody_wrote(tmp_path: Path) -> None:
    """A rule with `match:` alone answered with nothing, in which `should_not_contain` found nothing."""
    for text in ('say: ""', "rows: []", "metadata: {escalated: true}", "finish: length", "vary: [{say: x}]"):
        scripted(tmp_path, f"rules:\n  - match: x\n    {text}")


async def test_a_rule_may_say_what_each_attempt_answers_and_no_other_attempt_passes(tmp_path: Path) -> None:
    """The whole file was an error, which had a say for each attempt that is asked for."""
    text = (
        "rules:\n  - match: x\n    vary:\n      - {attempts: [1, 3], say: a}\n      - {attempts: 2, say: b}\n"
    )
    made = scripted(tmp_path, text)
    said = [(await talk(made, "x", attempt=number))[1][0].text for number in (1, 2, 3)]
    assert said == ["a", "b", "a"]
    with pytest.raises(AgentError, match=r"agent\.yaml:2: rules\.0: answers nothing in attempt 4"):
        await talk(made, "x", attempt=4)
    covered = "match: {text: x, attempts: [2, 3]}\n    vary: [{attempts: 2, say: a}, {attempts: 3, say: b}]"
    scripted(tmp_path, f"rules:\n  - {covered}")


def test_missing_script(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        agent("scripted", tmp_path, script="none.yaml")
    with pytest.raises(ConfigError, match=r"agents\.it\.script: is missing"):
        agent("scripted", tmp_path)


async def test_the_script_in_the_help_works(tmp_path: Path) -> None:
    page = ROOT / "tui_eval" / "help" / "scripted-agents.md"
    script = page.read_text().split("```yaml\n")[2].split("```")[0]
    it = scripted(tmp_path, script.replace("speed: 1 ", "speed: 0 "))
    _, replies = await talk(it, "What are your plans?", "where is order 77?", "x")
    assert "€79" in replies[0].text and replies[0].metadata == {"escalated": False}
    assert "order 77" in replies[1].text and replies[2].text.endswith("answer to: x")
    schema = {"type": "object", "properties": {"data": {}}}
    for attempt, rows in (
        (2, '{"data":[{"total_revenue":144.0}]}'),
        (1, '{"data":[{"total_revenue":145.0}]}'),
    ):
        _, replies = await talk(it, "total revenue?", Request(2, "r", schema=schema), attempt=attempt)
        assert replies[1].text == rows


async def test_a_pattern_that_runs_away_is_an_error_and_one_that_is_tried_elsewhere_gives_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`re` cannot be stopped: all cases of a run stood still, and so did Ctrl-C."""
    text = "rules:\n- match: {regex: '^((?P<who>a|aa)+)+$'}\n  say: 'it is {{who}}, {{1}}'\n"
    _, replies = await talk(scripted(tmp_path, text), "AAA")
    assert replies[0].text == "it is A, AAA"
    monkeypatch.setattr("tui_eval.agents.offline.scripted._PATTERN_LIMIT", 0.5)
    with pytest.raises(AgentError, match=r"takes more than 0\.5 s on this message"):
        await talk(scripted(tmp_path, text), "a" * 60 + "b")


async def test_common_patterns_are_tried_here_and_the_others_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`(?i)refund` began a process for each attempt: eleven times the processor."""
    begun: list[subprocess.Popen[bytes]] = []

    def begin(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        begun.append(popen(*words, **options))
        return begun[-1]

    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", begin)
    common = "rules:\n- match: {regex: '(?i)\\A.*(?<=a )Refund (?P<what>\\w+)\\Z'}\n  say: '{{what}}'\n"
    _, replies = await talk(scripted(tmp_path, common), "I want a refund now")
    assert replies[0].text == "now" and not begun
    nested, searcher = re.compile(r"^(?:(\w+) ?)+$"), PatternSearcher()
    assert [searcher.ask(nested, f"a {word}") for word in ("one", "two")] == [{"1": "one"}, {"1": "two"}]
    assert len(begun) == 1
