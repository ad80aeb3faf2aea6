"""What the Data tab says in words: counts, the key, and why the cell under the cursor differs."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import TYPE_CHECKING

from tui_eval.guard.text import clip, same_to_the_eye, unseen
from tui_eval.tui.state.text.formatting import counted
from tui_eval.tui.state.text.lines import Line, Span, dotted, one_line, width_of
from tui_eval.tui.state.text.text_difference import common, difference

if TYPE_CHECKING:
    from tui_eval.frames.cells import Cell
    from tui_eval.tui.state.data.data_view import DataView

AROUND = 30
"""Characters shown before the first one in which two long texts differ."""
LONGEST = 4_000
"""Characters of a value that stand below the rows."""


def summary(view: DataView) -> Line:
    """How many rows differ in which columns, and by what they were aligned; the marks are explained by
    standing before what they mark."""
    total = view.truncated.get("expected", view.expected)
    parts: list[tuple[Span, ...]] = []
    if view.only:
        hidden = len(view.columns) - len(view.visible)
        words = (
            f"only differences, {len(view.visible):,} of {len(view.columns):,} columns"
            if hidden
            else "only differences"
        )
        parts.append((Span(words, "note"),))
    if view.apart:
        verb = "differs" if view.apart == 1 else "differ"
        words = "the only row" if total == 1 else f"{view.apart:,} of {counted(total, 'row')}"
        parts.append((Span(f"≠ {words} {verb}", "differs"), *_columns(view)))
    strange = view.extra - view.repeats
    for number, word, mark in ((view.missing, "missing", "−"), (strange, "extra", "+")):
        if number:
            parts.append((Span(f"{mark} {number:,} {word}", word),))
    if view.repeats:
        parts.append((Span(f"× {view.repeats:,} repeated", "extra"),))
    if view.ordered:
        words = f"↕ {view.moved_count:,} in another place" if view.moved_count else "order counts"
        parts.append((Span(words, "note"),))
    parts += _missing_columns(view)
    if not view.wrong and not view.missing_columns:
        parts.insert(
            0,
            (
                Span(
                    f"✓ all {counted(total, 'row')} are the same" if total != 1 else "✓ the row is the same",
                    "passed",
                ),
            ),
        )
    elif not view.wrong:
        parts.append((Span("✓ all else is the same", "passed"),))
    if view.truncated:
        words = f"only the first {max(view.expected, view.actual):,} are kept: rows beyond may seem missing"
        parts.append((Span(words, "note"),))
    parts.append((Span(_key(view), "muted"),))
    if view.extra_columns:
        parts.append((Span(f"ignored: {_names(view.extra_columns)}", "muted"),))
    spans: list[Span] = []
    for part in parts:
        spans += [Span(" · ", "muted")] if spans else []
        spans += part
    return tuple(spans)


def _columns(view: DataView) -> tuple[Span, ...]:
    """In which columns, those with the most first; nothing where there is only one."""
    apart = sorted((column for column in view.columns if column.apart), key=lambda column: -column.apart)
    if not apart or len(view.columns) == 1:
        return ()
    shown = ", ".join(
        one_line(column.name, 20) + (f" {column.apart:,}" if len(apart) > 1 else "") for column in apart[:3]
    )
    more = f", {len(apart) - 3} more" if len(apart) > 3 else ""
    return (Span(f" in {shown}{more}", "muted"),)


def _missing_columns(view: DataView) -> list[tuple[Span, ...]]:
    parts: list[tuple[Span, ...]] = []
    for name in view.missing_columns[:3]:
        renamed = view.renamed.get(name)
        words = ""
        if renamed:
            looks = same_to_the_eye(name, renamed)
            words = (
                f": the answer has it {looks}" if looks else f": the answer calls it {one_line(renamed, 24)}?"
            )
        parts.append((Span(f"− column {one_line(name, 24)} missing", "missing"), Span(words, "note")))
    if len(view.missing_columns) > 3:
        parts.append((Span(f"− {len(view.missing_columns) - 3} more columns missing", "missing"),))
    return parts


def _key(view: DataView) -> str:
    if not view.key:
        return "no key: aligned by content"
    how = "given" if view.key_given else "found"
    repeats = view.difference.key_repeats
    if repeats and view.difference.key_unique_in_expected:
        times = "once" if repeats == 1 else f"{repeats:,} times"
        return f"key: {_names(view.key)} ({how}), unique in expected, repeats {times}"
    return f"key: {_names(view.key)} ({how}{'' if view.key_unique else ', not unique'})"


def _names(names: tuple[str, ...] | list[str]) -> str:
    more = f", {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(one_line(name, 24) for name in names[:4]) + more


def explain(view: DataView, shown: int, at: int, room: int = LONGEST) -> list[Line]:
    """What the cell under the cursor is on both sides, and why it counts as different; at most `room`
    characters of each side."""
    if not len(view) or not view.columns:
        return [(Span("no rows to show", "muted"),)]
    row = view.row(shown)
    cell = without_midnight(view, row.cells[at])
    number = row.expected_index if row.expected_index is not None else row.actual_index or 0
    named = ", ".join(
        f"{one_line(c.column, 20)}={one_line(c.expected if c.expected is not None else c.actual, 24)}"
        for c in (without_midnight(view, one, naming=True) for one in row.cells if one.column in view.key)
    )
    head: list[Span] = [
        Span(one_line(cell.column, 40), "strong"),
        Span(f" in row {number + 1:,}" + (f" ({named})" if named else ""), "muted"),
    ]
    if row.status == "missing":
        head.append(Span(f" − {_answer(view)} lacks this row", "missing"))
    elif row.status == "extra":
        times = view.difference.repeated(row.number)
        what = "key" if view.difference.key_unique_in_expected else "row"
        words = (
            f"×{times} {_answer(view)} has this {what} {_times(times)}"
            if times
            else f"+ {_answer(view)} has this row too many"
        )
        head.append(Span(f" {words}", "extra"))
    elif not cell.same:
        head.append(Span(f" ≠ {reason(cell)}", "differs"))
    elif view.has_moved(row):
        place = 0 if row.actual_index is None else row.actual_index + 1
        head.append(Span(f" ↕ equal, in another place: row {place:,} of the answer", "note"))
    elif cell.why:
        head.append(Span(f" ≈ equal: {one_line(cell.why, 120)}", "passed"))
    else:
        head.append(Span(" equal", "passed"))
    return [tuple(head), *_sides(view, cell, row.status == "different" or cell.same, room)]


def without_midnight(view: DataView, cell: Cell, *, naming: bool = False) -> Cell:
    """A cell of a column of dates or timestamps, as the table shows it; as it came where that is all that
    tells both sides apart, but where it only names its row."""
    from tui_eval.frames.value_texts import plain_moment  # late: polars

    head = next((column for column in view.columns if column.name == cell.column), None)
    if head is None or not (head.days or head.kind.startswith("timestamp")):
        return cell
    texts = plain_moment(cell.expected, head.days), plain_moment(cell.actual, head.days)
    return (
        cell
        if not naming and texts[0] == texts[1] and cell.expected != cell.actual
        else replace(cell, expected=texts[0], actual=texts[1])
    )


def _answer(view: DataView) -> str:
    """What is said to lack a row, or to have one too many."""
    return "the answer" if view.names[1] == "actual" else f"the one {view.names[1]}"


def _times(times: int) -> str:
    return "twice" if times == 2 else f"{times:,} times"


def shortened(lines: list[Line], width: int) -> list[Line]:
    """An explanation whose first line has one row: without the row's key, where that does not fit."""
    if not lines or width_of(lines[0]) <= width or len(lines[0]) < 3:
        return lines
    name, place, *rest = lines[0]
    return [(name, Span(place.text.partition(" (")[0], place.style), *rest), *lines[1:]]


def _sides(view: DataView, cell: Cell, both: bool, room: int) -> list[Line]:
    words = [f"{name:<9}" for name in view.names]
    kinds = [f"  {kind}" if cell.kinds[0] != cell.kinds[1] else "" for kind in cell.kinds]
    if cell.expected is not None and cell.actual is not None and not cell.same:
        left, right, cut = _window(cell.expected, cell.actual, room)
        left, right = left or '""', right or '""'  # an empty text is seen
        if cell.kinds == ("text", "text") and (len(left) > 12 or len(right) > 12):
            first, second = difference(dotted(left), dotted(right))
            marked = (first[0] if first else (), second[0] if second else ())
        else:
            marked = ((Span(dotted(left)),), (Span(dotted(right), "differs"),))
        before = (Span(f"…({cut:,} the same) ", "muted"),) if cut else ()
        return [
            (Span(words[0], "muted"), *before, *marked[0], Span(kinds[0], "muted")),
            (Span(words[1], "muted"), *before, *marked[1], Span(kinds[1], "muted")),
        ]
    sides: list[Line] = []
    for word, text, kind in ((words[0], cell.expected, kinds[0]), (words[1], cell.actual, kinds[1])):
        if text is not None:
            sides.append((Span(word, "muted"), Span(dotted(clip(text, room)) or '""'), Span(kind, "muted")))
        elif both:
            nothing = "no such column" if cell.why == "column missing" else "no such row"
            sides.append((Span(word, "muted"), Span(nothing, "missing")))
    return sides


def _window(expected: str, actual: str, room: int) -> tuple[str, str, int]:
    """Two texts from shortly before the first character in which they differ; how many were left out."""
    at = common(expected, actual)
    cut = at - AROUND if at > 2 * AROUND and max(len(expected), len(actual)) > room else 0
    return clip(expected[cut:], room), clip(actual[cut:], room), cut


_WORDS = {
    "value": "another value",
    "null": "null instead of a value",
    "not null": "a value instead of null",
    "column missing": "the answer lacks this column",
}
_ARTICLES = {"integer": "an", "object": "an"}


def reason(cell: Cell) -> str:
    """Why a cell differs, in words for the line below the rows."""
    if cell.why == "type":
        wanted, given = (f"{_ARTICLES.get(kind, 'a')} {kind}" for kind in cell.kinds)
        return f"another type: {given} instead of {wanted}" if wanted != given else "another type"
    if cell.why == "value" and cell.expected is not None and cell.actual is not None:
        return alike(cell.expected, cell.actual) or _WORDS["value"]
    if cell.why == "not null" and cell.actual == "":
        return "an empty text instead of null"
    if cell.why == "null" and cell.expected == "":
        return "null instead of an empty text"
    return _WORDS.get(cell.why, one_line(cell.why, 160))


def _bare(text: str) -> str:
    """A text without blanks and capitals."""
    return "".join(text.split()).casefold()


def alike(expected: str, actual: str) -> str:
    """What sets two texts apart that look the same; empty where they do not."""
    if len(expected) + len(actual) > 200_000:
        return ""
    if expected.isascii() and actual.isascii() and _bare(expected) != _bare(actual):
        return ""  # what the last of them does not make the same none does: most cells of a long difference
    if apart := unseen(expected, actual):
        return f"differs only in {apart}"
    for words, change in (
        ("blanks at the ends", str.strip),
        ("the ends of lines", lambda text: text.replace("\r\n", "\n")),
        ("upper and lower case", str.casefold),
        ("how the same letters are written in Unicode", lambda text: unicodedata.normalize("NFKC", text)),
        ("blanks", lambda text: "".join(text.split())),
        ("blanks and case", _bare),
    ):
        if change(expected) == change(actual):
            return f"differs only in {words}"
    return ""


_LONGEST = 300


def diagnosis_lines(view: DataView) -> list[Line]:
    """At most three lines; none where rows are not at hand that could say otherwise, or where nothing was found.
    Frames are read whole: call it in a thread."""
    if view.truncated or not (view.wrong or view.missing_columns):
        return []
    from tui_eval.frames.diagnosis import diagnosis_of

    try:
        found = diagnosis_of(view.difference).lines
    except BaseException as problem:
        # Polars panics with a BaseException; rows that were read from elsewhere may be of any kind
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return []
    return [(Span("→ ", "note"), Span(one_line(line, _LONGEST), "strong")) for line in found]
