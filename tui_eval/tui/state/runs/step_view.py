"""What the Step screen shows: the turns so far, what would be sent next, the verdicts so far. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from tui_eval.case_names import short_providers
from tui_eval.guard.text import clip, visible
from tui_eval.model import Assertion, Attempt, Case, Entry, Verdict
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.tui.state.case.agent_tree import reading_order, short_name
from tui_eval.tui.state.case.case_details import assertion_text, message_paragraphs
from tui_eval.tui.state.case.live_transcript import entry_of
from tui_eval.tui.state.case.verdict_lines import reason_of, title
from tui_eval.tui.state.runs.run_view import WAITS, LiveAttempt, LivePiece
from tui_eval.tui.state.text.stream_text import DEEPEST, pieces_of, so_far

LONGEST = 20_000
MOST = 60_000
"""Characters of the conversation that are shown, the last ones."""
EXPECTED = 6
"""Assertions that are named before a turn."""
_STYLES = {"user": "label", "error": "bad", "reasoning": "dim", "note": "warn", "retry": "warn"}

Paragraph = tuple[str, str]


@dataclass(slots=True)
class StepView:
    """`waits` is the turn that waits for the person (0: none), `text` what would be sent then as the
    engine has it, `paragraphs` what has been said, `done` whether the attempt has ended."""

    waits: int = 0
    text: str = ""
    paragraphs: list[Paragraph] = field(default_factory=list)
    done: bool = False
    outcome: str = ""
    begun: bool = False
    """Whether a turn was sent."""


def step_view(row: AttemptRow | None, live: LiveAttempt | None, attempt: Attempt | None = None) -> StepView:
    """The view of an attempt that runs, or has ended."""
    view = StepView()
    pieces = live.pieces if live is not None else []
    if attempt is not None:
        pieces = pieces_of(attempt.transcript).pieces
        view.done, view.outcome = True, attempt.outcome
    elif row is not None and row.state == "done":
        view.done, view.outcome = True, row.outcome or ""
    view.paragraphs = _last(pieces)
    view.begun = any(piece.kind == "user" for piece in pieces)
    if attempt is not None:
        if view.paragraphs and view.paragraphs[-1][1].rstrip(" ").endswith("\n"):
            style, said = view.paragraphs[-1]
            view.paragraphs[-1] = (style, said.rstrip())
        view.paragraphs.append(("text", ""))
        view.paragraphs += [_final(verdict) for verdict in attempt.verdicts]
        said = _one(attempt.message)
        known = said == attempt.outcome or (
            bool(pieces) and pieces[-1].kind == "error" and _one(pieces[-1].text) == said
        )
        view.paragraphs.append(("title", attempt.outcome if known else f"{attempt.outcome}: {said}"))
        return view
    if row is not None and row.state != "done" and row.detail.startswith(WAITS):
        last = next((piece for piece in reversed(pieces) if piece.kind == "step"), None)
        turn = row.detail.rpartition(" ")[2]
        if last is not None and last.name == turn and turn.isdecimal():
            view.waits, view.text = int(turn), last.text
    return view


def would_be_sent(text: str) -> list[Paragraph]:
    """A list of chat messages that waits, by who says what; nothing where it is a text, which stands in its box."""
    said = message_paragraphs(text, LONGEST)
    return [("text", ""), ("label", "would be sent:"), *said] if said else []


def column_of(case: StoredCase, name: str) -> str:
    """Who is asked with which prompt: what tells it from others of its test, and the agent where that does not."""
    told = case.variant.strip()
    agent = short_providers([case.agent])[0] if case.agent else ""
    parts = (told, "" if not agent or f" {agent} " in f" {told.replace(',', ' ')} " else agent)
    column = " · ".join(_one(part) for part in parts if part)
    return "" if name.endswith(column) else column


def expected(case: Case | None, turn: int) -> list[Paragraph]:
    """What the case expects of the reply to a turn, and of the whole once that is the last one."""
    if case is None or not 1 <= turn <= len(case.turns):
        return []
    asserted = [*case.turns[turn - 1].assertions, *(case.assertions if turn == len(case.turns) else ())]
    if not asserted:
        return []
    shown = [("dim", f"  ◌ {_asserted(assertion)}") for assertion in asserted[:EXPECTED]]
    if len(asserted) > EXPECTED:
        shown.append(("dim", f"  ◌ and {len(asserted) - EXPECTED} more"))
    return [("text", ""), ("dim", "what is expected of the reply:"), *shown]


def _asserted(assertion: Assertion) -> str:
    """In words; a value of the metadata is not named twice."""
    target = assertion.target.rpartition(".")[2]
    return assertion_text(
        msgspec.structs.replace(assertion, target="") if target == assertion.type else assertion
    )


def _last(pieces: list[LivePiece]) -> list[Paragraph]:
    """The end of a conversation: a long one is read on the Case screen."""
    shown: list[list[Paragraph]] = []
    room = MOST
    for piece, depth in reversed(_as_read(pieces)):
        if room <= 0:
            shown.append([("dim", "what was said before is in the transcript")])
            break
        shown.append(_paragraphs(piece, "  " * depth))
        room -= sum(len(text) + 80 for _, text in shown[-1])
    return [paragraph for paragraphs in reversed(shown) for paragraph in paragraphs]


def _final(verdict: Verdict) -> Paragraph:
    mark, style = {True: ("✓", "good"), False: ("✗", "bad"), None: ("!", "bad")}[verdict.passed]
    words = "".join(span.text for span in title(verdict))
    if not verdict.passed and (reason := reason_of(verdict)):
        words = _one(reason)
    turn = f"turn {verdict.turn}: " if verdict.turn is not None else ""
    return style, f"{mark} {turn}{words}"


def _as_read(pieces: Sequence[LivePiece]) -> list[tuple[LivePiece, int]]:
    """Each of these with how many hand-offs it stands below: turn by turn, what a helper did below the hand-off to it,
    whatever was said by others meanwhile."""
    turns: list[list[tuple[int, Entry]]] = []
    for place, piece in enumerate(pieces):
        if piece.kind == "user" or not turns:
            turns.append([])
        turns[-1].append((place, entry_of(piece, len(turns))))
    return [
        (pieces[place], min(node.depth - (node.index == place), DEEPEST))
        for turn in turns
        for place, _, node in reading_order(turn, answers=True)
    ]


def _paragraphs(piece: LivePiece, indent: str) -> list[Paragraph]:
    """What was said or done; what a helper did is indented under the hand-off to it, and named by its own name."""
    text = clip(visible(piece.text), LONGEST)
    name = _one(piece.name)
    match piece.kind:
        case "step":
            return []
        case "verdict":
            return [_verdict(line) for line in text.split("\n")]
        case "user":
            said = message_paragraphs(piece.text, LONGEST)
            return [("text", ""), *([("label", "> "), *said] if said else [("label", f"> {text}")])]
        case "tool_call":
            return [("code", f"{indent}▸ {name}({clip(text, 400)})")]
        case "tool_result":
            return [("dim", f"{indent}◂ {clip(text, 400)}")]
        case "hand_off":
            asked_for = f" {clip(text, 400)}" if name and text not in ("", "null", "{}") else ""
            return [("code", f"{indent}→ {short_name(name) or text}{asked_for}")]
    agent = short_name(piece.agent) if indent else piece.agent
    speaker = f"{_one(agent)}: " if agent else ""
    said = f"{speaker}{text}".replace("\n", f"\n{indent}")
    return [(_STYLES.get(piece.kind, "text"), f"{indent}{said}")]


def _verdict(line: str) -> Paragraph:
    mark, style, words = so_far(line)
    return style, f"  {mark} {words}"


def _one(text: str) -> str:
    return clip(visible(" ".join(text.split()), newlines=False), 400)
