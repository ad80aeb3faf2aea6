"""What a missing text is closest to in meaning, where a person sees it: Assertions, Transcript, beside lists."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support.alone import on_project
from tests.tui.state.case.test_case_why import said, styled
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt, Entry, Evidence, Reply, Verdict
from tui_eval.tui.loaders.case_loader import load
from tui_eval.tui.state.app_state import CasePointer, where_is
from tui_eval.tui.state.case import assertions_view, transcript_view
from tui_eval.tui.state.case.attempt_preview import preview_lines
from tui_eval.tui.state.case.case_content import CaseContent

REPLY = "Thank you for asking.\nThe warranty covers **24 months** from the day of purchase.\nExtend it by one year."


def lacking(wanted: str, *others: Verdict, reply: str = REPLY, **more: object) -> Attempt:
    missing = Evidence("missing", "not-contained", text=wanted, expected=wanted)
    verdict = Verdict("contains", False, expected=wanted, actual=reply, reason="r", evidence=[missing])
    return Attempt(
        "a::b",
        1,
        "failed",
        transcript=[Entry(1, "assistant", text=reply)],
        replies=[Reply(1, reply)],
        verdicts=[verdict, *others],
        **more,  # type: ignore[arg-type]
    )


def everywhere(attempt: Attempt) -> tuple[str, str, str]:
    """Assertions, Transcript, and what stands beside a list."""
    blocks = (assertions_view.build(attempt), transcript_view.build(attempt).blocks)
    views = ["\n".join(said([line for block in one for line in block.lines()])) for one in blocks]
    beside = "\n".join(said(preview_lines(CaseContent(CasePointer("a::b"), attempt=attempt))))
    return views[0], views[1], beside


def test_another_unit_is_named_and_marked_in_place_of_letters_that_are_alike() -> None:
    attempt = lacking("2 years")
    assertions, transcript, beside = everywhere(attempt)
    assert '"2 years" is not there; the nearest is the same in another unit:' in assertions
    assert "…The warranty covers **24 months** from" in assertions or "**24 months**" in assertions
    for view in (transcript, beside):
        assert "nearest 24 months  the same in another unit" in view and "characters away" not in view
    marked = [line for block in transcript_view.build(attempt).blocks for line in block.lines()]
    assert styled(marked, "hit-near") == ["24 months", "24 months"]


def test_what_nobody_sees_is_named_though_a_terminal_is_shown_a_picture_of_it() -> None:
    assertions, _, beside = everywhere(lacking("24 months", reply="It is 24\u00a0mon\ufeffths."))
    apart = "the same but for U+00A0 NO-BREAK SPACE, U+FEFF ZERO WIDTH NO-BREAK SPACE in the answer"
    assert f"the nearest is {apart}:" in assertions and apart in beside


def test_where_nothing_means_the_same_the_letters_decide_as_before() -> None:
    _, transcript, _ = everywhere(lacking("24 monhts"))
    assert "nearest 24 months" in transcript and "characters away" in transcript
    _, transcript, _ = everywhere(lacking("7 parrots"))
    assert "another unit" not in transcript and "another form" not in transcript


def test_a_synonym_of_an_assertion_for_any_of_several_or_of_a_variable_counts() -> None:
    reply = "We will give you your money back."
    listed = Verdict("icontains-any", True, expected=["refund", "money back"])
    assert 'nearest money back  listed with "refund"' in everywhere(lacking("refund", listed, reply=reply))[1]
    as_text = Verdict("contains-any", True, expected="refund,money back")
    assert 'listed with "refund"' in everywhere(lacking("refund", as_text, reply=reply))[2]
    for named in ({"refund": ["money back"]}, {"refund": "money back"}, [["refund", "money back"]]):
        shown = everywhere(lacking("refund", reply=reply, vars={"synonyms": named}))[0]
        assert 'the nearest is listed with "refund":' in shown
    for named in ({"refund": 3}, "refund", [1, ["refund"]], {"other": ["money back"]}):
        assert "listed with" not in everywhere(lacking("refund", reply=reply, vars={"synonyms": named}))[0]


SHOP = """\
prompts: ['{{q}}']
providers: [echo]
tests:
  - {description: wants a refund, vars: {q: you get your money back}, assert: [{type: contains, value: refund}]}
  - {description: any of them, vars: {q: x}, assert: [{type: icontains-any, value: [refund, money back]}]}
  - {description: named, vars: {q: x, synonyms: {reimbursement: [refund]}}, assert: [{type: contains, value: x}]}
"""


async def test_what_any_case_of_the_suite_lists_counts_for_the_others(tmp_path: Path) -> None:
    alone = await on_project(tmp_path, suites={"promptfooconfig.yaml": SHOP})
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(tmp_path)]))
    await active.execute()
    assert active.writer is not None
    case_id = next(one for one in alone.state.by_id if "wants a refund" in one)
    content = load(where_is(alone.state, CasePointer(case_id, run_id=active.writer.folder.name)))
    assert content.attempt is not None and content.attempt.listed == [
        ["refund", "money back"],
        ["reimbursement", "refund"],
    ]
    for view in everywhere(content.attempt)[1:]:
        assert 'nearest money back  listed with "refund"' in view


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        ("14 days", "nearest two weeks  the same in another unit, said in turn 1"),
        ("Ticket 88", "nearest Ticket 88  said in turn 1"),
        ("ticket 88", "nearest Ticket 88  the same but for upper and lower case, said in turn 1"),
    ],
)
def test_what_was_said_in_an_earlier_turn_is_named(wanted: str, line: str) -> None:
    attempt = lacking(wanted, reply="Which order is it about?")
    attempt.transcript[0].turn = attempt.replies[0].turn = 2
    attempt.transcript.insert(
        0, Entry(1, "assistant", text="You get your money back within two weeks. Ticket 88 is open.")
    )
    assert all(line in one for one in everywhere(attempt)[1:]), everywhere(attempt)
    attempt.verdicts[0].turn = 1  # that turn was judged itself
    assert not any("said in turn" in one for one in everywhere(attempt)[1:])
