"""Answers of megabytes: held once, kept once, and as they were."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import msgspec
import pytest

from tests.engine.test_runs import go
from tui_eval.model import Attempt, Entry, Reply, Verdict
from tui_eval.store.encoding import MARK, encode_json, pack, unpack
from tui_eval.store.writer import Packed

LINE = "row {:09} of an answer that goes on for long, with é and 漢 and a 😀\n"
LONG = "".join(LINE.format(number) for number in range(60_000))


def _attempt(text: str) -> Attempt:
    output = {"reply": text, "more": [text, {"again": text}]}
    return Attempt(
        case_id="s::c",
        attempt=1,
        outcome="passed",
        transcript=[Entry(turn=1, kind="user", text="go"), Entry(turn=1, kind="assistant", text=text)],
        replies=[Reply(turn=1, text=text, raw=output, output=output)],
        verdicts=[Verdict(type="contains", passed=True, actual=text, expected="row") for _ in range(3)],
        response_text=text,
        output=output,
    )


def test_a_long_text_is_kept_once_and_comes_back_as_it_was() -> None:
    attempt = _attempt(LONG)
    body = pack(attempt)
    once = len(pack(Attempt(case_id="s::c", attempt=1, outcome="passed", response_text=LONG)))
    assert len(body) < once * 1.1
    assert unpack(body, Attempt) == attempt
    assert attempt == _attempt(LONG)


def test_a_part_of_a_body_can_be_read() -> None:
    class Answer(msgspec.Struct):
        response_text: str

    assert unpack(pack(_attempt(LONG)), Answer).response_text == LONG


def test_what_an_agent_says_is_never_taken_for_a_reference() -> None:
    attempt = _attempt(LONG)
    attempt.transcript.append(Entry(turn=1, kind="note", text="text:0"))
    attempt.transcript.append(Entry(turn=1, kind="note", text=f"text:{'0' * 24}:0"))
    assert unpack(pack(attempt), Attempt) == attempt


def test_short_attempts_are_kept_as_ever() -> None:
    attempt = _attempt("short")
    assert pack(attempt) == encode_json(attempt)
    long = _attempt("x" * 9000)
    assert pack(long)[:1] == b"\x78" and unpack(pack(long), Attempt) == long


def test_damaged_bodies_say_so() -> None:
    body = pack(_attempt(LONG))
    packed = MARK + b"".join([b"\x00", body[2:]])
    with pytest.raises(Exception, match="incorrect header"):
        unpack(packed, Attempt)


@pytest.mark.real
def test_lone_surrogates_in_long_texts_do_not_end_the_writer() -> None:
    text = LONG + "\ud800 and \udfff" + LONG
    kept = unpack(pack(_attempt(text)), Attempt)
    assert len(kept.response_text) == len(text)
    assert kept.response_text.replace("\ufffd", "") == text.replace("\ud800", "").replace("\udfff", "")


@pytest.mark.real
def test_packing_a_long_answer_needs_little_more_than_the_packed_bytes() -> None:
    attempt = _attempt(
        "".join(f"row {number:09} of an answer that goes on\n" for number in range(300_000)) + "end"
    )
    size = len(attempt.response_text)
    tracemalloc.start()
    packed = Packed.of(attempt)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size and len(packed.body) < size / 2
    assert packed.mark


@pytest.mark.real
async def test_a_long_answer_is_judged_whole_and_its_secrets_are_masked(project, monkeypatch) -> None:
    secret = "hunter2-hunter2"
    monkeypatch.setenv("SHOP_TOKEN", secret)
    root: Path = project(
        suite="""
        agent: mine
        test_cases:
          - {name: whole, input: go, expected: {should_contain: ["the end"], should_not_contain: ["nothing"]}}
        """,
        config="agents:\n  mine: {type: python, function: 'bot.py:answer'}\n",
        **{
            "bot.py": f"def answer(message):\n    return {secret!r} + 'x' * 5_000_000 + ' {secret} the end'\n"
        },
    )
    (root / "tui_eval.yaml").write_text(
        "agents:\n  mine: {type: python, function: 'bot.py:answer'}\n"
        "  other: {type: http, url: 'http://127.0.0.1:1', headers: {token: '${SHOP_TOKEN}'}}\n",
        encoding="utf-8",
    )
    _, reader = await go(root, trust=True)
    (row,) = reader.attempts()
    attempt = reader.attempt(row.id)
    assert attempt is not None and attempt.outcome == "passed", attempt
    assert len(attempt.response_text) > 5_000_000 and attempt.response_text.endswith("the end")
    assert secret not in encode_json(attempt).decode()
