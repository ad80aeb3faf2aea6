"""What a text assertion looked for, shown in the reply: where it stands, else the nearest thing to it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.case.expectation_marks import SHORTEST_NEAR, content_texts, places_of
from tui_eval.tui.state.regex_matches import pattern_of
from tui_eval.tui.state.text.json_lines import dumped
from tui_eval.tui.state.text.lines import Line, Mark, Span, marked, one_line
from tui_eval.tui.state.text.text_difference import near_miss

AROUND = 24
"""Characters of the reply shown before and after a place."""
MOST = 20
"""Texts of one assertion that are looked for."""
LONGEST = 50_000
"""Characters of a reply that are looked through."""
ENTRIES = 400
"""Entries of a conversation that are looked through for a text that the reply lacks."""


def text_explained(verdict: Verdict, reply: str, attempt: Attempt | None = None) -> Iterator[Line]:
    """Per text that was looked for whether it stands in the reply, and where, or the nearest miss; of a
    regular expression what it matched."""
    looked = content_texts(verdict, attempt)
    if looked is None:
        return
    shown = one_line(reply[:LONGEST])
    if not shown.strip():
        yield (Span("the reply has no text", "note"),)
        return
    if verdict.type.endswith("starts-with"):
        yield from _beginning(verdict, looked.texts, shown, looked.forbidden)
        return
    pattern = pattern_of(verdict)
    if pattern is not None and not looked.texts:
        if verdict.evidence:
            yield (*_held(looked.forbidden, pattern), Span(" matches an empty text", "muted"))
        else:
            yield from _unmatched(pattern, shown, looked.forbidden)
        return
    for text in looked.texts[:MOST]:
        wanted = one_line(text)
        places = looked.of(text, places_of(wanted, shown, looked.ignoring_case))
        if places:
            yield from _found(wanted, places, shown, looked.forbidden)
        elif pattern is not None:  # a transform came before the judge, or it stands beyond what is looked at
            yield (*_held(looked.forbidden, f'"{wanted}"'), Span(" was matched in what was judged", "muted"))
        elif looked.forbidden:
            yield (Span("✓ ", "passed"), Span(f'"{wanted}"', "strong"), Span(" is not there", "muted"))
        elif verdict.passed:
            words = (
                " is not there: one of them is enough" if looked.any_will_do else " is not there as it reads"
            )
            yield (Span("· ", "muted"), Span(f'"{wanted}"', "strong"), Span(words, "muted"))
        else:
            yield from _missing(wanted, shown, looked.ignoring_case)
            if attempt is not None:
                yield from elsewhere(wanted, attempt, looked.ignoring_case)
    if len(looked.texts) > MOST:
        yield (Span(f"… and {len(looked.texts) - MOST} more", "muted"),)


def _beginning(verdict: Verdict, wanted: list[str], text: str, forbidden: bool) -> Iterator[Line]:
    """How the reply begins, against what it should (or must not) begin with."""
    for one in (one_line(each) for each in wanted[:1]):
        if text.startswith(one):
            glyph = Span("✗ ", "failed") if forbidden else Span("✓ ", "passed")
            yield (glyph, Span("the reply begins with ", "muted"), Span(f'"{one}"', "strong"))
            continue
        if forbidden:
            yield (
                Span("✓ ", "passed"),
                Span("the reply does not begin with ", "muted"),
                Span(f'"{one}"', "strong"),
            )
            continue
        same = next(
            (i for i, (a, b) in enumerate(zip(one, text, strict=False)) if a != b), min(len(one), len(text))
        )
        where = f"from character {same + 1} on" if same else "from the first character on"
        yield (Span("✗ ", "failed"), Span(f"the reply begins otherwise, {where}", "muted"))
        yield (Span("  wanted  ", "label"), *marked((Span(one),), [Mark(same, len(one), "removed")]))
        end = len(one) + AROUND
        begins = text[:end] + ("…" if len(text) > end else "")
        yield (Span("  reply   ", "label"), *marked((Span(begins),), [Mark(same, len(one), "added")]))


def elsewhere(wanted: str, attempt: Attempt, ignoring_case: bool) -> Iterator[Line]:
    """Where else in the conversation a text stands that the judged reply lacks."""
    judged = next((e for e in reversed(attempt.transcript) if e.kind == "assistant"), None)
    places: list[str] = []
    for entry in attempt.transcript[:ENTRIES]:
        said = entry.text or (entry.result if isinstance(entry.result, str) else "")
        if (not said and entry.result is not None) or entry.arguments:
            said = f"{said} {dumped(entry.result if entry.result is not None else entry.arguments, LONGEST)}"
        if entry is not judged and places_of(wanted, one_line(said[:LONGEST]), ignoring_case):
            word = {"tool_call": "call", "tool_result": "result"}.get(
                entry.kind, entry.kind.replace("_", " ")
            )
            place = f"turn {entry.turn} ({word}{' of ' + one_line(entry.name, 40) if entry.name else ''})"
            if place not in places:
                places.append(place)
        if len(places) > 3:
            break
    if places:
        more = " and more" if len(places) > 3 else ""
        yield (Span("  it stands elsewhere: ", "muted"), Span(", ".join(places[:3]) + more, "note"))


def _unmatched(pattern: str, text: str, forbidden: bool) -> Iterator[Line]:
    """A pattern that matches nothing; the nearest place to the longest plain text in it."""
    glyph = Span("✓ ", "passed") if forbidden else Span("✗ ", "failed")
    yield (glyph, Span(one_line(pattern, 200), "strong"), Span(" matches nothing", "muted"))
    if forbidden:
        return
    plain_text = re.sub(r"\[[^\]]*\]|\{[^}]*\}|\(\?[^:)]*[:)]|\\[A-Za-z]", "\n", pattern)
    plain_text = re.sub(r"\\(.)", r"\1", re.sub(r"(?<!\\)[.^$*+?()|]", "\n", plain_text))
    wanted = max((part.strip() for part in plain_text.split("\n")), key=len, default="")
    if not _worth(wanted):
        return
    place = text.find(wanted)
    if place >= 0:
        yield (
            Span("  its text stands here: ", "muted"),
            *_excerpt(text, place, place + len(wanted), [Mark(0, 10**6, "hit-near")]),
        )
    else:
        yield from _missing(wanted, text, False)


def nearest_line(verdict: Verdict, reply: str) -> Line | None:
    """The nearest miss of the first text that is missing, on one line; None where there is none."""
    looked = content_texts(verdict)
    if (
        looked is None
        or verdict.passed is not False
        or looked.forbidden
        or verdict.type.endswith("starts-with")
    ):
        return None
    shown = one_line(reply[:LONGEST])
    for wanted in (one_line(text) for text in looked.texts[:MOST]):
        if not places_of(wanted, shown, looked.ignoring_case):
            miss = near_miss(wanted, shown, ignoring_case=looked.ignoring_case) if _worth(wanted) else None
            if miss is None:
                return None
            place = marked((Span(shown[miss.start : miss.end]),), _added(miss.found_marks))
            return (Span("nearest ", "muted"), *place, Span(f"  {_apart(miss.distance)}", "muted"))
    return None


def _worth(wanted: str) -> bool:
    return len(wanted) >= SHORTEST_NEAR


def _held(forbidden: bool, shown: str) -> Line:
    """The beginning of a line on something that is there."""
    return (Span("✗ ", "failed") if forbidden else Span("✓ ", "passed"), Span(one_line(shown, 200), "strong"))


def _found(wanted: str, places: list[tuple[int, int]], text: str, forbidden: bool) -> Iterator[Line]:
    glyph, style = ("✗ ", "failed") if forbidden else ("✓ ", "passed")
    times = "once" if len(places) == 1 else f"{len(places)} times"
    yield (Span(glyph, style), Span(f'"{wanted}"', "strong"), Span(f" stands there {times}", "muted"))
    for start, end in places[:3]:
        yield (
            Span("  "),
            *_excerpt(text, start, end, [Mark(0, 10**6, "hit-forbidden" if forbidden else "hit-wanted")]),
        )


def _missing(wanted: str, text: str, ignoring_case: bool) -> Iterator[Line]:
    miss = near_miss(wanted, text, ignoring_case=ignoring_case) if _worth(wanted) else None
    head = (Span("✗ ", "failed"), Span(f'"{wanted}"', "strong"))
    if miss is None:
        yield (*head, Span(" is not there, nor anything like it", "muted"))
        return
    yield (*head, Span(f" is not there; the nearest is {_apart(miss.distance)}:", "muted"))
    yield (
        Span("  wanted  ", "label"),
        *marked((Span(wanted),), [Mark(a, b, "removed") for a, b in miss.wanted_marks]),
    )
    yield (
        Span("  reply   ", "label"),
        *_excerpt(text, miss.start, miss.end, [Mark(0, 10**6, "hit-near"), *_added(miss.found_marks)]),
    )


def _added(ranges: tuple[tuple[int, int], ...]) -> list[Mark]:
    return [Mark(start, end, "added") for start, end in ranges]


def _apart(distance: int) -> str:
    return f"{distance} character{'' if distance == 1 else 's'} away"


def _excerpt(text: str, start: int, end: int, marks: list[Mark]) -> Line:
    """A place with some of what stands around it; marks count from the place's first character."""
    before, after = (
        part.replace("␊", " ") for part in (text[max(start - AROUND, 0) : start], text[end : end + AROUND])
    )
    middle = (Span(text[start:end]),)
    return (
        Span(("…" if start > AROUND else "") + before, "muted"),
        *marked(middle, [Mark(m.start, min(m.end, end - start), m.style) for m in marks]),
        Span(after + ("…" if end + AROUND < len(text) else ""), "muted"),
    )
