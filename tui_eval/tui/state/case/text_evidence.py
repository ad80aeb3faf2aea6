"""The evidence of assertions on text, drawn: where what was looked for stands in the reply, else the nearest thing."""

from __future__ import annotations

from collections.abc import Iterator

from tui_eval.model import Attempt, Entry, Evidence, Verdict
from tui_eval.tui.state.case.agent_tree import short_name
from tui_eval.tui.state.case.expectation_marks import (
    FORBIDDEN,
    SHORTEST_NEAR,
    WANTED,
    judged_text,
    places_of,
    stands,
    synonyms_of,
    text_pieces,
)
from tui_eval.tui.state.text.json_lines import dumped
from tui_eval.tui.state.text.lines import Line, Mark, Span, marked, one_line
from tui_eval.tui.state.text.meaning import same_meaning
from tui_eval.tui.state.text.text_difference import NearMiss, in_other_case, near_miss

AROUND = 24
"""Characters of the reply shown before and after a place."""
MOST = 20
"""Texts of one assertion that are looked for, and places of each that a judge notes."""
MOST_NOTED = 40
"""Pieces of evidence that a verdict keeps."""
LONGEST = 50_000
"""Characters of a reply that are looked through."""
LONGEST_WANTED = 500
"""Characters of what is looked for that are shown, and compared with what the reply has."""
ENTRIES = 400
"""Entries of a conversation that are looked through for a text that the reply lacks."""


def text_explained(verdict: Verdict, reply: str, attempt: Attempt | None = None) -> Iterator[Line]:
    """Per text that was looked for whether it stands in the reply, and where, or the nearest miss; of a
    regular expression what it matched."""
    pieces = text_pieces(verdict)
    if not any(one.code in _DRAWN for one in pieces):
        return
    shown = one_line(reply[:LONGEST])
    if not shown.strip():
        yield (Span("the reply has no text", "note"),)
        return
    groups: dict[str, list[Evidence]] = {}
    for one in pieces:
        if one.code in _DRAWN:
            groups.setdefault(str(one.expected or one.text), []).append(one)
    enough = verdict.passed and any(one.kind == "match" for one in pieces)
    for wanted, seen in list(groups.items())[:MOST]:
        said = (verdict, reply, shown)
        yield from _explained(one_line(wanted, LONGEST_WANTED), seen, said, attempt, enough=bool(enough))
    if len(groups) > MOST:
        yield (Span(f"… and {len(groups) - MOST} more", "muted"),)


_DRAWN = (
    *WANTED,
    *FORBIDDEN,
    "not-contained",
    "absent",
    "not-prefix",
    "prefix-absent",
    "not-matched",
    "unmatched",
)


def _explained(
    wanted: str,
    seen: list[Evidence],
    said: tuple[Verdict, str, str],
    attempt: Attempt | None,
    *,
    enough: bool,
) -> Iterator[Line]:
    verdict, reply, shown = said
    one = seen[0]
    forbidden = one.code in FORBIDDEN
    judged = judged_text(verdict, reply)
    if one.code.endswith("prefix") or one.code == "prefix-absent":
        yield from _beginning(one, wanted, shown if judged is reply else one_line(judged))
    elif one.code in ("not-matched", "unmatched"):
        yield from _unmatched(one, judged[:LONGEST])
    elif one.kind == "match" and not one.text:
        yield (*_held(forbidden, one.rule or '""'), Span(" matches an empty text", "muted"))
    elif one.kind == "match":
        places = [(each.start or 0, each.end or 0) for each in seen if stands(each, reply)]
        places = places or places_of(one.text, reply[:LONGEST])
        if places:
            noted = len(verdict.evidence or ())
            yield from _found(wanted, places, reply, forbidden, _times(seen, noted, len(places), reply))
        else:  # a transform came before the judge
            yield (*_held(forbidden, f'"{wanted}"'), Span(" was matched in what was judged", "muted"))
    elif one.code == "absent":
        head = Span("✓ ", "passed"), Span(f'"{wanted}"', "strong"), Span(" is not there", "muted")
        yield (*head, *_allowed(one, " is"))
    elif enough:
        words = " is not there: one of them is enough"
        yield (Span("· ", "muted"), Span(f'"{wanted}"', "strong"), Span(words, "muted"))
    else:
        ignoring_case = bool(one.rule)
        label = _REPLY if judged is reply else _JUDGED
        sought = str(one.expected or one.text)
        yield from _missing(sought, judged[:LONGEST], ignoring_case, attempt, label=label)
        if attempt is not None:
            yield from elsewhere(wanted, verdict, attempt, ignoring_case, also_there=judged is not reply)


def _allowed(piece: Evidence, does: str) -> Line:
    """What the reply has of a text that it must not have, but for upper and lower case: no reader would pass that."""
    if not isinstance(piece.actual, str):
        return ()
    return Span("; case counts: ", "note"), Span(f'"{piece.actual}"', "strong"), Span(does, "note")


def _beginning(piece: Evidence, one: str, text: str) -> Iterator[Line]:
    """How the reply begins, against what it should (or must not) begin with."""
    if piece.kind == "match":
        glyph = Span("✗ ", "failed") if piece.code in FORBIDDEN else Span("✓ ", "passed")
        yield (glyph, Span("the reply begins with ", "muted"), Span(f'"{one}"', "strong"))
        return
    if piece.code == "prefix-absent":
        words = Span("the reply does not begin with ", "muted")
        yield (Span("✓ ", "passed"), words, Span(f'"{one}"', "strong"), *_allowed(piece, " it does"))
        return
    same = next(
        (i for i, (a, b) in enumerate(zip(one, text, strict=False)) if a != b), min(len(one), len(text))
    )
    where = f"from character {same + 1} on" if same else "from the first character on"
    yield (Span("✗ ", "failed"), Span(f"the reply begins otherwise, {where}", "muted"))
    yield (Span("  wanted  ", "label"), *marked((Span(one),), [Mark(same, len(one), "removed")]))
    end = len(one) + AROUND
    begins = text[:end] + ("…" if len(text) > end else "")
    yield (Span(_REPLY, "label"), *marked((Span(begins),), [Mark(same, len(one), "added")]))


_REPLY, _JUDGED = "  reply   ", "  judged  "
"""Before a place of the reply, and of what transforms made of it."""


def elsewhere(
    wanted: str, verdict: Verdict, attempt: Attempt, ignoring_case: bool, *, also_there: bool = False
) -> Iterator[Line]:
    """Where else in the conversation a text stands that the judged reply lacks: in other replies (`also_there`: in that
    one, too, which a transform changed), then in what was asked, called and said by helpers."""
    said_last = [e for e in attempt.transcript if e.kind == "assistant" and verdict.turn in (None, e.turn)]
    judged = said_last[-1] if said_last and not also_there else None
    replies: list[str] = []
    others: list[str] = []
    for entry in attempt.transcript[:ENTRIES]:
        said = entry.text or (entry.result if isinstance(entry.result, str) else "")
        if (not said and entry.result is not None) or entry.arguments:
            said = f"{said} {dumped(entry.result if entry.result is not None else entry.arguments, LONGEST)}"
        if entry is not judged and _in(wanted, one_line(said[:LONGEST]), ignoring_case):
            place = f"turn {entry.turn} ({_who(entry)})"
            among = replies if entry.kind == "assistant" and "." not in entry.agent else others
            if place not in among:
                among.append(place)
    if places := [*replies, *others]:
        more = " and more" if len(places) > 3 else ""
        yield (Span("  it stands elsewhere: ", "muted"), Span(", ".join(places[:3]) + more, "note"))


def _who(entry: Entry) -> str:
    """Who said it, or what it was part of: `user`, `reply`, `call of look_up`, `hand-off to map_reader`."""
    name = one_line(short_name(entry.name), 40)
    match entry.kind:
        case "assistant":
            return one_line(short_name(entry.agent), 40) or "reply"
        case "hand_off":
            return f"hand-off to {name}" if name else "hand-off"
        case "tool_call" | "tool_result":
            word = entry.kind.removeprefix("tool_")
            return f"{word} of {name}" if name else word
        case _:
            return entry.kind.replace("_", " ")


def _in(wanted: str, text: str, ignoring_case: bool) -> bool:
    return wanted.lower() in text.lower() if ignoring_case else wanted in text


def _unmatched(piece: Evidence, reply: str) -> Iterator[Line]:
    """A pattern that matches nothing; the nearest place to the longest plain text in it."""
    glyph = Span("✓ ", "passed") if piece.code == "unmatched" else Span("✗ ", "failed")
    yield (glyph, Span(one_line(piece.rule, 200), "strong"), Span(" matches nothing", "muted"))
    wanted, text = one_line(piece.text), one_line(reply)
    if piece.code == "unmatched" or not _worth(wanted):
        return
    place = text.find(wanted)
    if place >= 0:
        yield (
            Span("  its text stands here: ", "muted"),
            *_excerpt(text, place, place + len(wanted), [Mark(0, 10**6, "hit-near")]),
        )
    else:
        yield from _missing(piece.text, reply, False)


def nearest_line(verdict: Verdict, reply: str, attempt: Attempt | None = None) -> Line | None:
    """What means the same as the first text that is missing, else its nearest miss, else where it was said in an
    earlier turn, on one line; None where there is none of them."""
    if verdict.passed is not False:
        return None
    one = next((piece for piece in text_pieces(verdict) if piece.code == "not-contained"), None)
    if one is None:
        return None
    reply = judged_text(verdict, reply)
    shown, wanted = one_line(reply[:LONGEST]), one_line(one.text)
    miss = None if one.rule else in_other_case(wanted, shown, part_of_word=_worth(wanted))
    same = same_meaning(one.text, reply[:LONGEST], synonyms_of(attempt)) if miss is None else None
    if same is not None:
        found = Span(shown[same.start : same.end], "hit-near")
        return (Span("nearest ", "muted"), found, Span(f"  {same.how}", "muted"))
    if miss is None and _worth(wanted):
        miss = near_miss(wanted, shown, ignoring_case=bool(one.rule))
    if miss is None:
        return _said_before(one.text, verdict, attempt, bool(one.rule))
    place = marked((Span(shown[miss.start : miss.end]),), _added(miss.found_marks))
    return (Span("nearest ", "muted"), *place, Span(f"  {_apart(miss)}", "muted"))


def _said_before(sought: str, verdict: Verdict, attempt: Attempt | None, ignoring_case: bool) -> Line | None:
    """The text, or what means the same, in a turn before the one that was judged: only the last one was."""
    said = [entry for entry in attempt.transcript if entry.kind == "assistant"] if attempt is not None else []
    wanted = one_line(sought)
    judged = verdict.turn or max((entry.turn for entry in said), default=0)
    for entry in reversed([entry for entry in said if entry.turn < judged]):
        reply = entry.text[:LONGEST]
        text = one_line(reply)
        start = text.lower().find(wanted.lower()) if len(text) == len(text.lower()) else text.find(wanted)
        end = start + len(wanted)
        how = "" if ignoring_case or start < 0 or text[start:end] == wanted else f"{_ONLY_CASE}, "
        if start < 0 and (same := same_meaning(sought, reply, synonyms_of(attempt))) is not None:
            start, end, how = same.start, same.end, f"{same.how}, "
        if start >= 0:
            found = Span(text[start:end], "hit-near")
            return (Span("nearest ", "muted"), found, Span(f"  {how}said in turn {entry.turn}", "muted"))
    return None


def _worth(wanted: str) -> bool:
    return len(wanted) >= SHORTEST_NEAR


def _held(forbidden: bool, shown: str) -> Line:
    """The beginning of a line on something that is there."""
    return (Span("✗ ", "failed") if forbidden else Span("✓ ", "passed"), Span(one_line(shown, 200), "strong"))


def _times(seen: list[Evidence], noted: int, places: int, reply: str) -> str:
    """How often it stands there: a judge notes the first places only, `noted` in all, so from there on it is counted
    in the reply; where that does not say (a pattern, a text that was cut, either case or not) it may be more."""
    one, more = seen[0], ""
    if places <= len(seen) and (noted >= MOST_NOTED or (len(seen) >= MOST and not one.rule)):
        wanted = "" if one.rule else str(one.expected or one.text)
        as_written, in_any_case = reply.count(wanted), reply.lower().count(wanted.lower())
        same = as_written == in_any_case or any(piece.text != wanted for piece in seen)
        if wanted and same and all(len(piece.text) == len(wanted) for piece in seen):
            places = max(as_written, in_any_case, places)
        else:
            more = " and more"
    return "once" if places == 1 and not more else f"{places} times{more}"


def _found(
    wanted: str, places: list[tuple[int, int]], text: str, forbidden: bool, times: str
) -> Iterator[Line]:
    glyph, style = ("✗ ", "failed") if forbidden else ("✓ ", "passed")
    yield (Span(glyph, style), Span(f'"{wanted}"', "strong"), Span(f" stands there {times}", "muted"))
    for start, end in places[:3]:
        yield (
            Span("  "),
            *_excerpt(text, start, end, [Mark(0, 10**6, "hit-forbidden" if forbidden else "hit-wanted")]),
        )


def _missing(
    sought: str, reply: str, ignoring_case: bool, attempt: Attempt | None = None, *, label: str = _REPLY
) -> Iterator[Line]:
    wanted, text = one_line(sought, LONGEST_WANTED), one_line(reply)
    miss = None if ignoring_case else in_other_case(wanted, text, part_of_word=_worth(wanted))
    same = same_meaning(sought, reply, synonyms_of(attempt)) if miss is None else None
    if same is not None:
        yield (
            Span("✗ ", "failed"),
            Span(f'"{wanted}"', "strong"),
            Span(f" is not there; the nearest is {same.how}:", "muted"),
        )
        place = _excerpt(text, same.start, same.end, [Mark(0, 10**6, "hit-near")])
        yield (Span(label, "label"), *place)
        return
    if miss is None and _worth(wanted):
        miss = near_miss(wanted, text, ignoring_case=ignoring_case)
    head = (Span("✗ ", "failed"), Span(f'"{wanted}"', "strong"))
    if miss is None:
        yield (*head, Span(" is not there, nor anything like it", "muted"))
        return
    yield (*head, Span(f" is not there; the nearest is {_apart(miss)}:", "muted"))
    yield (
        Span("  wanted  ", "label"),
        *marked((Span(wanted),), [Mark(a, b, "removed") for a, b in miss.wanted_marks]),
    )
    yield (
        Span(label, "label"),
        *_excerpt(text, miss.start, miss.end, [Mark(0, 10**6, "hit-near"), *_added(miss.found_marks)]),
    )


def _added(ranges: tuple[tuple[int, int], ...]) -> list[Mark]:
    return [Mark(start, end, "added") for start, end in ranges]


_ONLY_CASE = "the same but for upper and lower case"


def _apart(miss: NearMiss) -> str:
    if miss.only_case:
        return _ONLY_CASE
    return f"{miss.distance} character{'' if miss.distance == 1 else 's'} away"


def _excerpt(text: str, start: int, end: int, marks: list[Mark]) -> Line:
    """A place with some of what stands around it; marks count from the place's first character."""
    before, after = (
        one_line(part).replace("␊", " ")
        for part in (text[max(start - AROUND, 0) : start], text[end : end + AROUND])
    )
    middle = (Span(one_line(text[start:end])),)
    return (
        Span(("…" if start > AROUND else "") + before, "muted"),
        *marked(middle, [Mark(m.start, min(m.end, end - start), m.style) for m in marks]),
        Span(after + ("…" if end + AROUND < len(text) else ""), "muted"),
    )
