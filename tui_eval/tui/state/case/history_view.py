"""The History tab: a plot of the case's attempts, a line for each, and what the one chosen changed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from math import ceil
from typing import NamedTuple

from tui_eval.model import JUDGED
from tui_eval.tui.state.case.case_history import (
    CasePast,
    PastAttempt,
    changes,
    columns,
    note_spans,
    note_words,
    rules_spans,
    usual,
)
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.lists.case_entry import reason_in_line
from tui_eval.tui.state.runs.trends import mean
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.formatting import cost, duration
from tui_eval.tui.state.text.lines import Line, Mark, Span, fit, marked, one_line, text_lines, width_of
from tui_eval.tui.state.text.text_difference import difference

NARROW = 70
"""Columns of the screen below which a row has no outcome's word and no cost."""
LABEL = 9
"""Columns of a plot's name."""
SCALE = 32
"""Columns for the numbers at a plot's right."""


class HistoryGroup(NamedTuple):
    """Neighbouring attempts that share a column: the outcome of the last, the share that passed, their means."""

    state: str
    passed: float
    duration_ms: float | None
    tokens: float | None
    cost: float | None


def groups(attempts: Sequence[PastAttempt], room: int) -> tuple[list[HistoryGroup], int]:
    """All attempts in at most `room` columns, oldest first, and how many stand in one."""
    per = max(ceil(len(attempts) / room), 1)
    found: list[HistoryGroup] = []
    for start in range(0, len(attempts), per):
        of = attempts[start : start + per]
        states = [one.row.outcome or "error" for one in of]
        means = (
            # How long an attempt took until it was cancelled says nothing of its agent.
            mean([one.row.duration_ms for one in of if one.row.outcome in JUDGED]),
            mean([one.tokens for one in of]),
            mean([one.row.price for one in of]),
        )
        found.append(HistoryGroup(states[-1], states.count("passed") / len(of), *means))
    return found, per


def plots(past: CasePast, width: int, height: int, *, whole: bool = False, most: int = 4) -> list[Line]:
    """Outcomes, latency, tokens and cost of the newest answers that fit, each by its newest judgement
    (`whole`: of all, neighbours as their means), oldest at the left; each plot `height` lines high, its usual
    value and its largest at the right; `most` so many of them."""
    room = max(width - LABEL - SCALE, 8)
    answers = past.answers()
    attempts = answers if whole else answers[-room:]
    shown, per = groups(attempts, room)
    judged = [one for one in attempts if one.row.outcome in JUDGED]
    passed = sum(one.row.outcome == "passed" for one in judged)
    words = f"{passed:,} of {len(judged):,} passed"
    styles = [one.state if per == 1 else "passed" if one.passed >= 0.5 else "failed" for one in shown]
    if per > 1:
        words += f", {per} a column"
        lines = _passed([one.passed for one in shown], height, words)
    else:
        if len(attempts) < len(answers):
            words += f" of {len(answers):,}, z: all"
        glyphs = tuple(Span(GLYPHS.get(one.state, "?"), one.state) for one in shown)
        lines = [(Span(f"{'outcome':<{LABEL}}", "label"), *glyphs, Span(f"  {words}", "muted"))]
    if whole and len(shown) < 3:
        lines = [*lines, (Span("Plots begin with the third answer; z: all attempts.", "muted"),)]
    kinds = (
        ("time", [one.duration_ms for one in shown], duration),
        ("tokens", [one.tokens for one in shown], lambda value: f"{value:,.0f}"),
        ("cost", [one.cost for one in shown], cost),
    )[: most - 1]
    for name, values, show in kinds if len(shown) >= 3 else ():
        known = [float(value) for value in values if value is not None]
        if not known or (name == "cost" and height < 2 and max(known) == 0):
            continue
        found = usual(known)
        words = (f"usually {show(found.middle if found else known[-1])}", f"most {show(max(known))}")
        for number, row in enumerate(columns(values, height, free=1)):  # apart from the plot above
            text = (Span(row),)
            cells = marked(text, [Mark(i, i + 1, style) for i, style in enumerate(styles)])
            scale = (
                ", ".join(words) if height == 1 else words[number - height] if number >= height - 2 else ""
            )
            label = name if number == height - 1 else ""
            lines.append((Span(f"{label:<{LABEL}}", "label"), *cells, Span(f"  {scale}", "muted")))
    return [fit(line, width) for line in lines]


def _passed(shares: Sequence[float], height: int, words: str) -> list[Line]:
    """The share that passed of each column, up to all of them."""
    rows = [row[:-1] for row in columns([*shares, 1.0], height)]
    return [
        (
            Span(f"{'passed' if number == height - 1 else '':<{LABEL}}", "label"),
            Span(row, "passed"),
            Span(f"  {words if number == height - 1 else ''}", "muted"),
        )
        for number, row in enumerate(rows)
    ]


def title(width: int) -> Line:
    """The line above the rows."""
    return _columns(width, "", "when", "time", "tokens", "cost", (Span("what changed · notes", "muted"),))


def rows(past: CasePast) -> list[PastAttempt]:
    """The attempts as listed: newest first."""
    return list(reversed(past.attempts))


def reasons(listed: Sequence[PastAttempt]) -> list[str]:
    """Why each attempt as listed did not pass; `″` where the reason is that of the attempt above it."""
    found: list[str] = []
    above = ""
    for one in listed:
        reason = (
            ""
            if one.row.outcome == "passed"
            else one_line(reason_in_line(one.row.cause, one.row.message), 200)
        )
        found.append("″" if reason and reason == above else reason)
        above = reason
    return found


def row_line(one: PastAttempt, changed: str, reason: str, width: int, *, here: bool = False) -> Line:
    """One attempt; `here` marks the one that the other tabs show, `reason` is why it did not pass."""
    state = one.row.outcome or "error"
    words: list[Span] = []
    if here:
        words.append(Span("here ", "strong"))
    if changed:
        words.append(Span(f"{changed} changed ", "note"))
    words += note_spans(one.note, one_line(note_words(one.note)))
    words += rules_spans(one.compat, " · " if words and not words[-1].text.endswith(" ") else "")
    if one.row.cached:
        words.append(Span(" · cached" if words else "cached", "note"))
    if reason:
        gap = "" if not words else "· " if words[-1].text.endswith(" ") else " · "
        words.append(Span(gap + reason, "muted"))
    tokens = "" if one.tokens is None else f"{one.tokens:,}"
    taken = (duration(one.row.duration_ms), tokens, cost(one.row.price))
    when = time.strftime("%d %b %H:%M:%S", time.localtime(one.row.started_at or 0))
    return _columns(width, state, when, *taken, tuple(words))


def _columns(width: int, state: str, when: str, took: str, tokens: str, money: str, last: Line) -> Line:
    money = f" {money:>8}" if width >= NARROW else ""
    line: Line = (
        Span(f"{GLYPHS.get(state, ' ')} {state:<7}"[: 9 if width >= NARROW else 1], state),
        Span(f" {when:<15} {took:>7} {tokens:>8}{money}  ", "muted"),
    )
    return (*line, *fit(last, max(width - width_of(line), 4)))


def changed_words(past: CasePast) -> list[str]:
    """What changed with each attempt as listed."""
    return list(reversed(changes(past.attempts)))


def detail(past: CasePast, listed: Sequence[PastAttempt], index: int, changed: str) -> list[Block]:
    """The chosen attempt: its run, its message, a person's note, and its answer against the answer of
    the attempt before."""
    if not 0 <= index < len(listed):
        return []
    one = listed[index]
    before = listed[index + 1] if index + 1 < len(listed) else None
    facts = " · ".join(part for part in (f"run {one.run_id}", one.agent, one.model or "") if part)
    blocks = [Block("run", "turn", "attempt", partial(text_lines, facts, "muted"), 0, "strong")]
    if one.row.message:
        style = "" if one.row.outcome == "passed" else one.row.outcome or ""
        blocks.append(Block("why", "note", "message", partial(text_lines, one.row.message, style), fold=6))
    if one.note is not None:
        blocks.append(Block("note", "note", "note", partial(text_lines, note_words(one.note)), 0, "note"))
    if changed:
        words = f"changed since the attempt before: {changed}"
        blocks.append(Block("changed", "note", "changed", partial(text_lines, words, "note"), 0, "note"))
    if one.answer:
        if before is not None and before.answer and before.answer != one.answer:
            old, new = difference(before.answer, one.answer)
            blocks.append(Block("old", "part", "before", partial(iter, old), 0, "muted", fold=12))
            blocks.append(Block("new", "assistant", "answer", partial(iter, new), 0, "strong", fold=12))
        else:
            blocks.append(
                Block("new", "assistant", "answer", partial(text_lines, one.answer), 0, "strong", fold=12)
            )
    return blocks
