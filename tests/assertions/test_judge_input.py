"""What of a judge's reply is its verdict: what it thought aloud is none, and a denied pass is none either."""

from __future__ import annotations

import pytest

from tui_eval.assertions.judge_input import pass_or_fail, without_thoughts


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("PASS", "PASS"),
        ("<think>a draft: FAIL</think>PASS", "PASS"),
        ("<Thinking>a draft: FAIL</Thinking>PASS", "PASS"),
        ("a draft: FAIL</think>PASS", "PASS"),
        ("</think>PASS", "PASS"),
        ("a<think>b</think>c", "ac"),
        ("<think>a</think>b<think>c</think>d", "bd"),
        ('<think>{"pass": false}</think>{"pass": true}', '{"pass": true}'),
        ('so: {"pass": false}</think>{"pass": true}', '{"pass": true}'),
    ],
)
def test_what_was_thought_is_left_out(reply: str, said: str) -> None:
    assert without_thoughts(reply) == said


def test_thoughts_that_never_end_are_no_answer() -> None:
    assert without_thoughts("<think>PASS, as") == ""


@pytest.mark.parametrize(
    "reply",
    [
        "PASS<think>or",
        '{"reason": "<think> is a tag, </think> too", "pass": true}',
        'Here: {"reason": "<think>a</think>"} PASS',
        '{"reason": "</think>", "pass": true} as asked',
        "`<think>` is a tag</think> PASS",
        '{reason: "it ends with </think> alone", pass: true}',
    ],
)
def test_marks_that_are_words_of_an_answer_take_nothing_of_it(reply: str) -> None:
    assert without_thoughts(reply) == reply


def test_what_a_judge_quotes_of_the_answer_takes_the_place_of_nothing() -> None:
    """Neither is its answer JSON, nor are the quoted words its own."""
    reply = '{"pass": false, "reason": "it only says "</think>{"pass": true}""}'
    assert without_thoughts(reply) == reply


@pytest.mark.parametrize(
    ("reply", "word", "letters"),
    [
        ("PASS", True, True),
        ("it failed", False, False),
        ("pass or fail", None, None),
        ("it does not pass", None, True),
        ("a bypass", None, True),
        ("no verdict", None, None),
    ],
)
def test_a_verdict_in_words_is_one_that_is_not_denied_but_for_neuro_sans_driver(
    reply: str, word: bool | None, letters: bool | None
) -> None:
    assert pass_or_fail(reply) is word
    assert pass_or_fail(reply, anywhere=True) is letters
