"""Two transcripts against each other: entries that belong together, word by word. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from tui_eval.model import Attempt
from tui_eval.reports.together import Together, together
from tui_eval.tui.state.text.lines import Line, Span, fit, plain, text_lines, width_of, wrap
from tui_eval.tui.state.text.text_difference import difference

STACKED = 2
"""For `side`: both below each other, what is the same once."""


class SidePair(NamedTuple):
    """Two entries that belong together, one of them None where the other has no counterpart.

    `left` and `right` are their lines, differing words marked `removed` and `added`."""

    turn: int
    kind: str
    label: str
    left: list[Line] | None
    right: list[Line] | None
    differs: bool


class SideRow(NamedTuple):
    """One row of the screen: both halves, the pair it is of (-1: a rule between turns)."""

    left: Line
    right: Line
    pair: int


def pairs(before: Attempt, after: Attempt) -> list[SidePair]:
    """The entries of both transcripts, turn by turn, in their order; last, why each is judged as it is."""
    return [_pair(one) for one in together(before, after)]


def _pair(one: Together) -> SidePair:
    a, b = one.before, one.after
    if a is None or b is None:
        left = _whole(a, "removed") if a is not None else None
        right = _whole(b, "added") if b is not None else None
    elif one.differs:
        left, right = difference(a, b)
    else:
        left, right = _whole(a, ""), _whole(b, "")
    return SidePair(one.turn, one.kind, one.label, left, right, one.differs)


def _whole(text: str, style: str) -> list[Line]:
    return list(text_lines(text, style))


def layout(
    found: Sequence[SidePair], width: int, *, side: int | None = None, only_differing: bool = False
) -> list[SideRow]:
    """The rows at a width: both sides beside each other, one (`side` 0 or 1) alone, or both below each
    other (`STACKED`)."""
    half = width if side is not None else (width - 3) // 2
    rows: list[SideRow] = []
    turn = -1
    for number, pair in enumerate(found):
        if only_differing and not pair.differs:
            continue
        if pair.turn != turn:
            turn = pair.turn
            word = f"── turn {turn} " if turn else "── outcome "
            rule = (Span(word, "label"), Span("─" * max(width - len(word), 0), "muted"))
            rows.append(SideRow(rule, (), -1))
        if side == STACKED:
            rows += [SideRow(line, (), number) for line in _stacked(pair, width)]
            continue
        left, right = (_wrapped(pair, lines, half) for lines in (pair.left, pair.right))
        if side is not None:
            rows += [SideRow(line, (), number) for line in (left, right)[side]]
            continue
        for index in range(max(len(left), len(right))):
            rows.append(
                SideRow(
                    left[index] if index < len(left) else (),
                    right[index] if index < len(right) else (),
                    number,
                )
            )
    return rows


def _wrapped(pair: SidePair, lines: list[Line] | None, width: int) -> list[Line]:
    """A label above the text; what is not there on this side is said."""
    label: Line = (Span("▎", f"role-{pair.kind}"), Span(pair.label, f"role-{pair.kind}"))
    if lines is None:
        return [(*label, Span("  not on this side", "muted"))]
    if pair.differs:
        label = (*label, Span("  ≠", "differs"))
    rows = [label]
    for line in lines:
        rows += [(Span("  "), *piece) for _, _, piece in wrap(line, max(width - 2, 8))]
    return rows


def _stacked(pair: SidePair, width: int) -> list[Line]:
    """A label above the text of both: lines that are the same once, of the others the first side's with a
    minus and the second side's with a plus."""
    label: Line = (Span("▎", f"role-{pair.kind}"), Span(pair.label, f"role-{pair.kind}"))
    only = " only before" if pair.right is None else " only after" if pair.left is None else ""
    rows: list[Line] = [(*label, Span(f"  ≠{only}", "differs")) if pair.differs else label]
    left, right = pair.left or [], pair.right or []
    texts = ([plain(line) for line in left], [plain(line) for line in right])
    for what, i1, i2, j1, j2 in SequenceMatcher(None, *texts, autojunk=False).get_opcodes():
        parts = (("  ", "", left[i1:i2]),) if what == "equal" else (
            ("− ", "removed-sign", left[i1:i2]), ("+ ", "added-sign", right[j1:j2])
        )  # fmt: skip
        for sign, style, lines in parts:
            for line in lines:
                rows += [(Span(sign, style), *piece) for _, _, piece in wrap(line, max(width - 2, 8))]
    return rows


def joined(row: SideRow, width: int) -> Line:
    """Both halves of a row beside each other."""
    if row.pair < 0:
        return fit(row.left, width)
    half = (width - 3) // 2
    left = fit(row.left, half)
    return (*left, Span(" " * (half - width_of(left))), Span(" │ ", "muted"), *fit(row.right, half))


def as_text(found: Sequence[SidePair], names: tuple[str, str]) -> str:
    """Everything as plain text, for the pager."""
    parts: list[str] = []
    for pair in found:
        for name, lines, sign in ((names[0], pair.left, "-"), (names[1], pair.right, "+")):
            if lines is None or (sign == "+" and not pair.differs):
                continue
            mark = sign if pair.differs else " "
            text = "\n".join(f"{mark} {plain(line)}" for line in lines)
            who = name if pair.differs else "both"
            parts.append(f"[turn {pair.turn}, {pair.label}, {who}]\n{text}")
    return "\n\n".join(parts) + "\n"
