"""What the Step screen is to show, without a screen."""

from __future__ import annotations

import msgspec

from tests.tui.state.case.test_case_state import row
from tui_eval.model import Assertion, Attempt, Case, Entry, Turn
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.tui.state.case.live_transcript import LiveTranscript
from tui_eval.tui.state.runs.run_view import LiveAttempt, LivePiece
from tui_eval.tui.state.runs.step_view import column_of, expected, step_view, would_be_sent
from tui_eval.tui.state.text.stream_text import StreamText


def running(detail: str) -> AttemptRow:
    return msgspec.structs.replace(row(1, "running", None), detail=detail)


def piece(kind: str, text: str, name: str = "") -> LivePiece:
    return LivePiece(1, kind, "", text, name, "", 0.0)


def words(paragraphs: list[tuple[str, str]]) -> str:
    return "\n".join(text for _, text in paragraphs)


def test_a_turn_that_waits_is_named_with_what_would_be_sent() -> None:
    row = running("step: turn 2")
    live = LiveAttempt([piece("user", "hello"), piece("text", "hi"), piece("step", "and for two?", "2")])
    view = step_view(row, live)
    assert (view.waits, view.text, view.done) == (2, "and for two?", False)
    assert "> hello" in words(view.paragraphs) and "and for two?" not in words(view.paragraphs)


def test_nothing_waits_while_the_agent_answers_or_the_piece_is_of_another_turn() -> None:
    live = LiveAttempt([piece("user", "hello"), piece("step", "again", "1")])
    assert step_view(running("turn 1"), live).waits == 0
    assert step_view(running("step: turn 2"), live).waits == 0
    assert step_view(None, None).waits == 0


def test_what_agents_say_is_shown_without_control_characters() -> None:
    live = LiveAttempt([piece("text", "a\x1b[31mb"), piece("tool_call", "{}\x07", "look\x1bup")])
    assert not any(mark in words(step_view(None, live).paragraphs) for mark in "\x1b\x07")


def test_verdicts_of_a_turn_have_marks() -> None:
    live = LiveAttempt([piece("verdict", "passed: contains 79\nfailed: lacks euro")])
    assert step_view(None, live).paragraphs == [("good", "  ✓ contains 79"), ("bad", "  ✗ lacks euro")]


def test_what_a_step_says_after_a_turn_reads_alike_in_pane_and_transcript() -> None:
    said = "later: so far yes: contains 79\nlater: so far no: lacks euro"
    live = LiveAttempt([piece("user", "hello"), piece("verdict", said), piece("step", "and for two?", "2")])
    pane = StreamText(60)
    pane.feed(live)
    assert [line for _, line in pane.lines][1:] == [
        "◌ so far yes: contains 79", "◌ so far no: lacks euro", "would be sent: and for two?",
    ]  # fmt: skip
    blocks = LiveTranscript().update(live).blocks
    shown = ["".join(span.text for span in line) for block in blocks for line in block.lines()]
    assert shown[-3:] == [line for _, line in pane.lines][1:]


def test_what_is_expected_of_a_turn_and_of_the_whole_with_the_last() -> None:
    turns = [Turn(text="a", assertions=[Assertion("should_contain", "x")]), Turn(text="b")]
    case = Case("s::a", "a", "s", "start_to_agent", turns=turns, assertions=[Assertion("max_tool_calls", 2)])
    assert "x" in words(expected(case, 1)) and "2" not in words(expected(case, 1))
    assert "2" in words(expected(case, 2))
    assert expected(case, 3) == expected(case, 0) == expected(None, 1) == []
    many = msgspec.structs.replace(case, assertions=[Assertion("should_contain", f"w{n}") for n in range(9)])
    assert words(expected(many, 2)).endswith("and 3 more")


def test_an_error_that_was_just_said_is_not_said_again() -> None:
    attempt = Attempt("s::a", 1, outcome="error", message="it fell over")
    attempt.transcript = [Entry(1, "user", text="hi"), Entry(1, "error", text="it fell over")]
    said = words(step_view(None, None, attempt).paragraphs)
    assert said.count("it fell over") == 1 and said.endswith("\nerror")
    attempt.transcript.pop()
    assert words(step_view(None, None, attempt).paragraphs).endswith("error: it fell over")


def test_what_helpers_say_at_the_same_time_stands_below_each_ones_hand_off() -> None:
    def said(kind: str, agent: str, text: str, name: str = "") -> LivePiece:
        return LivePiece(1, kind, agent, text, name, "", 0.0)

    live = LiveAttempt(
        [
            piece("user", "hello"),
            said("hand_off", "front", "{}", "prices"),
            said("hand_off", "front", "{}", "stock"),
            said("tool_call", "stock", "{}", "count"),
            said("assistant", "prices", "79 euros"),
            said("assistant", "stock", "three left"),
            said("assistant", "front", "79 euros, three left"),
            piece("verdict", "passed: contains 79"),
        ]
    )
    lines = [text for _, text in step_view(None, live).paragraphs if text]
    assert lines == [
        "> hello",
        "→ prices",
        "  prices: 79 euros",
        "→ stock",
        "  ▸ count({})",
        "  stock: three left",
        "front: 79 euros, three left",
        "  ✓ contains 79",
    ]


CHAT = '[{"role": "system", "content": "You add."}, {"role": "user", "content": "1 + 1"}]'


def test_a_prompt_of_messages_is_shown_by_who_says_what() -> None:
    assert words(would_be_sent(CHAT)) == "\nwould be sent:\nsystem:\nYou add.\nuser:\n1 + 1"
    assert would_be_sent("a text") == []
    sent = step_view(None, LiveAttempt([piece("user", CHAT)])).paragraphs
    assert "You add." in words(sent) and "{" not in words(sent)


def test_the_head_names_the_column_once() -> None:
    case = StoredCase(1, "s::a", "s", "a", "promptfoo", "openai:gpt", None, "h", 1, 1, "terse")
    assert column_of(case, "a") == "terse · gpt" and column_of(case, "a · terse · gpt") == ""
    assert column_of(msgspec.structs.replace(case, variant="gpt terse"), "a") == "gpt terse"
