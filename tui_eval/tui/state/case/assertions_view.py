"""The Assertions tab: one block per verdict, in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.case.case_history import CasePast
from tui_eval.tui.state.case.explain import explained
from tui_eval.tui.state.case.reply import reply_text
from tui_eval.tui.state.case.verdict_lines import in_full, label_of, word_of
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.lines import Line, text_lines


def build(
    attempt: Attempt,
    *,
    rendered: bool = True,
    only_failing: bool = False,
    past: CasePast | None = None,
    known: Mapping[int, Sequence[Line]] | None = None,
) -> list[Block]:
    """All verdicts in their order under a rule per turn; `only_failing` leaves out what passed. `past`
    gives budgets their usual range and judges how often people agree with them; `known` are explanations that
    were made in a thread, by the verdict's place."""
    blocks: list[Block] = []
    group: int | str | None = ""
    for index, verdict in enumerate(attempt.verdicts):
        if only_failing and verdict.passed:
            continue
        if verdict.turn != group:
            group = verdict.turn
            label = f"turn {verdict.turn}" if verdict.turn else "whole conversation"
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
                ),
                verdict.turn or 0,
                word,
                fold=40,
                failing=not verdict.passed,
                version=int(past is not None),
            )
        )
    if not blocks:
        if attempt.verdicts:
            words = "Everything passed: i shows all."
        elif attempt.outcome in ("error", "cancelled"):
            words = "No verdicts: the attempt ended before there was an answer to judge."
        else:
            words = "Nothing was asserted of this case."
        blocks.append(Block("empty", "note", "", partial(text_lines, words, "muted")))
    return blocks


def _why(
    index: int, verdict: Verdict, attempt: Attempt, past: CasePast | None, known: Mapping[int, Sequence[Line]]
) -> Iterator[Line]:
    return iter(known[index]) if index in known else explained(verdict, attempt, past)
