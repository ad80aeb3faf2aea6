"""The Assertions tab: one block per verdict, in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.tui.state.case.case_history import CasePast, budget_of
from tui_eval.tui.state.case.entry_blocks import reply_lines
from tui_eval.tui.state.case.expectation_marks import Expectations, judged_text, reply_text
from tui_eval.tui.state.case.explain import explained
from tui_eval.tui.state.case.verdict_lines import (
    about_rows,
    about_tools,
    failed_first,
    in_full,
    label_of,
    word_of,
)
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.lines import Line, one_line, text_lines


def build(
    attempt: Attempt,
    *,
    rendered: bool = True,
    only_failing: bool = False,
    past: CasePast | None = None,
    known: Mapping[int, Sequence[Line]] | None = None,
    case: Case | None = None,
    room: int = 12,
) -> list[Block]:
    """All verdicts, those that failed first, under a rule per turn; below the first that did not hold
    for a reply's text the reply itself, what all of them looked for marked in it.

    Args:
        only_failing: Without what passed.
        past: Gives budgets their usual range and judges how often people agree with them.
        known: Explanations that were made in a thread, by the verdict's place.
        case: Names the file in which the assertions stand.
        room: Lines of a reply that are shown while it is folded.
    """
    blocks: list[Block] = []
    group: tuple[int | None, bool] | None = None
    ordered = failed_first(enumerate(attempt.verdicts))
    several = bool(ordered) and not ordered[0][1].passed
    replies = _replies(attempt) if rendered else {}
    shown: set[int | None] = set()
    good = False
    for index, verdict in ordered:
        good = bool(verdict.passed) if verdict.set is None else good
        if only_failing and verdict.passed:
            continue
        if (verdict.turn, good) != group:
            group = (verdict.turn, good)
            label = f"turn {verdict.turn}" if verdict.turn else "whole conversation"
            label += " · passed" if good and several else ""
            blocks.append(Block(f"g{index}", "turn", label, lambda: iter(()), verdict.turn or 0, "strong"))
        word = word_of(verdict)
        blocks.append(
            Block(
                f"v{index}",
                "verdict",
                label_of(verdict),
                partial(
                    in_full,
                    verdict,
                    rendered=rendered,
                    why=partial(_why, index, verdict, attempt, past, known or {}),
                    agreement=past.agreement if past else None,
                    reply=reply_text(attempt, verdict),
                    place=_place(verdict, case),
                    reply_below=verdict.turn in replies,
                ),
                verdict.turn or 0,
                word,
                fold=40,
                failing=not verdict.passed,
                version=int(past is not None),
            )
        )
        if verdict.turn in replies and verdict.turn not in shown and _is_wrong_text(verdict):
            shown.add(verdict.turn)
            blocks.append(replies[verdict.turn](room))
    if not blocks:
        if attempt.verdicts and attempt.outcome == "cancelled":
            words = "It was cancelled while it was judged: what had been judged passed; i shows it."
        elif attempt.verdicts:
            words = "Everything passed: i shows all."
        elif attempt.outcome in ("error", "cancelled"):
            words = "No verdicts: the attempt ended before there was an answer to judge."
        else:
            words = "Nothing was asserted of this case."
        blocks.append(Block("empty", "note", "", partial(text_lines, words, "muted")))
    return blocks


def _replies(attempt: Attempt) -> dict[int | None, Callable[[int], Block]]:
    """By turn, the reply that verdicts on its text did not hold for, as a block for so many lines."""
    wrong: dict[int | None, Verdict] = {}
    for verdict in attempt.verdicts:
        if _is_wrong_text(verdict):
            wrong.setdefault(verdict.turn, verdict)
    made: dict[int | None, Callable[[int], Block]] = {}
    for turn, verdict in wrong.items():
        reply = reply_text(attempt, verdict)
        text = judged_text(verdict, reply)
        if text.strip():
            looks = [one for one in attempt.verdicts if one.turn == turn]
            label = "reply" if text is reply else "judged"  # a transform came in between
            made[turn] = partial(_reply, turn, text, Expectations(looks, attempt), label)
    return made


def _is_wrong_text(verdict: Verdict) -> bool:
    """Whether it did not hold, and is about what was said."""
    figure = budget_of(verdict.type) or budget_of(verdict.target)
    return verdict.passed is False and not (figure or about_rows(verdict) or about_tools(verdict))


def _reply(turn: int | None, text: str, marks: Expectations, label: str, room: int) -> Block:
    source = partial(reply_lines, text, marks)
    key = f"reply{turn or ''}"
    return Block(key, "assistant", label, source, turn or 0, "role-assistant", max(room, 4), len(text))


def _place(verdict: Verdict, case: Case | None) -> str:
    """File and line of an assertion, as far as it is certain which file the line counts in."""
    if case is None or not verdict.line or (case.file is not None and verdict.line != case.line):
        return ""
    return one_line(case.place(verdict.line), 80)


def _why(
    index: int, verdict: Verdict, attempt: Attempt, past: CasePast | None, known: Mapping[int, Sequence[Line]]
) -> Iterator[Line]:
    return iter(known[index]) if index in known else explained(verdict, attempt, past)
