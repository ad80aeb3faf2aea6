"""Search results as lines: two for each, where it is and the words with what stands around them. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs
from rich.cells import cell_len

from tui_eval.case_names import full_name, told_apart
from tui_eval.store.full_text import Hit
from tui_eval.store.schema import StoredCase
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case.verdict_lines import GLYPHS
from tui_eval.tui.state.lists.telling_apart import RowName, row_names
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.fitting import end_of
from tui_eval.tui.state.text.lines import Line, Span, fit, one_line, plain, width_of


class FoundEntry(msgspec.Struct):
    """A place in a transcript, the case it is in, and the run where several are searched."""

    hit: Hit
    case: StoredCase
    attempt: int
    outcome: str
    run_id: str = ""


class SoughtPlace(NamedTuple):
    """Where in an attempt's transcript a result stands, and what was looked for."""

    turn: int
    kind: str
    words: list[str]


HINT = "what was said and called; names and reasons: / in the run"
"""What a search asks for, and where that is found which is in no transcript."""
_BEGUN = re.compile(r"\d{4}(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)\b")
_SUITE = 12
"""Cells below which the end of a suite's path says nothing."""
_BLANKS = re.compile(r"[\n\r\t ]+")
_MARKED = re.compile("\x02([^\x02\x03]*)\x03")
KINDS = {"tool_call": "call", "tool_result": "result", "hand_off": "hand-off"}
"""Kinds of entries in a word."""


def place_of(found: FoundEntry, run_id: str) -> CasePointer:
    """Where a result is."""
    case: StoredCase = found.case
    return CasePointer(case.case_id, case.agent, case.model, found.run_id or run_id, found.hit.attempt_ref)


def find_in(blocks: Sequence[Block], sought: SoughtPlace) -> tuple[int | None, str]:
    """The block of a place, one of its turn and kind where there is one, and what to mark there: the words where they
    stand together, else the first of them."""
    of_turn = [i for i, block in enumerate(blocks) if block.turn == sought.turn]
    of_kind = [i for i in of_turn if blocks[i].kind == sought.kind]
    text = " ".join(sought.words)
    if not any(_holds(blocks[i], text) for i in of_kind):
        text = sought.words[0] if sought.words else ""
    holding = [i for i in of_kind if _holds(blocks[i], text)]
    return next(iter([*holding, *of_kind, *of_turn]), None), text


def _holds(block: Block, sought: str) -> bool:
    """Whether a text stands in a block; of a long one no lines are made for that."""
    said = block.raw or "\n".join(block.text())
    return sought.lower() in said.lower()


def names_of(found: Sequence[FoundEntry], name_of: Callable[[str, str], str]) -> list[RowName]:
    """What the cases of these results are called beside each other; `name_of` says what lists call a case of this id
    and name."""
    cases = [structs.replace(one.case, name=name_of(one.case.case_id, one.case.name)) for one in found]
    known = {(one.case_id, one.agent, one.model): one for one in cases}
    marks = dict(zip(known, told_apart(list(known.values())), strict=True))
    return row_names((one.name, marks[one.case_id, one.agent, one.model], one.suite) for one in cases)


def row_line(
    found: FoundEntry,
    line: int,
    width: int,
    name: RowName | None = None,
    begun: str = "",
    *,
    one_suite: bool = False,
) -> Line:
    """The first (0) or second (1) line of a result; `name`: what its case is called beside the others, `begun`: when
    its run began, `one_suite`: all results are of one suite, which tells nothing."""
    if line:
        return fit((Span("    "), *from_first(excerpt(found.hit), max(width - 4, 8))), width)
    hit = found.hit
    glyph = GLYPHS.get(found.outcome, " ")
    attempt = f"attempt {found.attempt}, " if found.attempt > 1 else ""
    place = f"  {attempt}turn {hit.turn}, {KINDS.get(hit.kind, hit.kind)}"
    run: Line = (Span(f"  {begun or when(found.run_id)}", "label"),) if found.run_id else ()
    tail: Line = (*run, Span(place, "muted"))
    own = name or RowName(one_line(found.case.name), one_line(found.case.variant))
    called, variant = own.fitted(max(width - 2 - width_of(tail) - 3 * bool(own.variant), width // 2))
    head: Line = (
        Span(f"{glyph} ", found.outcome or "muted"),
        Span(full_name(called, variant), "strong"),
        *tail,
    )
    room = width - width_of(head) - 2
    suite = end_of(one_line(found.case.suite), room) if room >= _SUITE and not one_suite else ""
    return fit((*head, Span(f"  {suite}", "muted")), width)


def when(run_id: str, *, seconds: bool = False) -> str:
    """A run's day and time, as its id begins; the id where it does not."""
    found = _BEGUN.match(run_id)
    if found is None:
        return one_line(run_id, 20)
    return f"{found[1]}-{found[2]} {found[3]}:{found[4]}{f':{found[5]}' if seconds else ''}"


def began_at(run_ids: Iterable[str]) -> dict[str, str]:
    """When these runs began, by id: with seconds where two of them began in one minute, and the end of the id where in
    one second."""
    told = {run_id: when(run_id) for run_id in run_ids}
    for whole in (False, True):
        same = Counter(told.values())
        told |= {
            run_id: f"{words} {run_id[-4:]}" if whole else when(run_id, seconds=True)
            for run_id, words in told.items()
            if same[words] > 1
        }
    return told


def excerpt(hit: Hit) -> Line:
    """The text around the words, the words marked."""
    spans: list[Span] = []
    at = 0
    text = _BLANKS.sub(" ", hit.excerpt)
    for found in _MARKED.finditer(text):
        spans.append(Span(one_line(text[at : found.start()])))
        spans.append(Span(one_line(found.group(1)), "hit"))
        at = found.end()
    spans.append(Span(one_line(text[at:])))
    return tuple(span for span in spans if span.text)


def from_first(line: Line, width: int) -> Line:
    """The line from so late that its first marked word stands in the first half of the width."""
    first = next((i for i, span in enumerate(line) if span.style == "hit"), 0)
    before = line[:first]
    most = width // 3
    if not before or width_of(before) + width_of(line[first : first + 1]) <= width // 2:
        return line
    text = plain(before)
    while cell_len(text) > most:
        text = text[max(len(text) - most, 1) :] if len(text) > most else text[1:]
    return (Span("…", "muted"), Span(text), *line[first:])
