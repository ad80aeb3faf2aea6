"""Where in a reply the texts stand that assertions looked for, or must not have found, by the judges' own evidence.

Nothing is judged here: what was matched, and where, the verdict says. Runs recorded before verdicts did have no marks.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple

from tui_eval.model import Attempt, Case, Evidence, Verdict
from tui_eval.tui.state.text.blocks import CLIP, SEARCHED
from tui_eval.tui.state.text.lines import Line, Mark, marked, one_line, plain
from tui_eval.tui.state.text.meaning import same_meaning
from tui_eval.tui.state.text.text_difference import NearMiss, near_miss


def reply_text(attempt: Attempt, verdict: Verdict) -> str:
    """The text that an assertion looked at: its turn's reply, the last one where it has no turn."""
    replies = [reply for reply in attempt.replies if verdict.turn in (None, reply.turn)]
    text = replies[-1].text if replies else ""
    if text.strip(" …"):
        return text
    if isinstance(verdict.actual, str) and verdict.actual:
        return verdict.actual
    said = [
        entry.text
        for entry in attempt.transcript
        if entry.kind == "assistant" and verdict.turn in (None, entry.turn)
    ]
    return said[-1] if said else attempt.response_text


def judged_text(verdict: Verdict, reply: str) -> str:
    """What an assertion on text was judged by: the reply, or what transforms (promptfoo's) had made of it, of which a
    verdict has the beginning."""
    judged = verdict.actual
    if isinstance(judged, str) and judged.strip() and judged[:_COMPARED].strip() not in reply:
        return judged
    return reply


_COMPARED = 1_000
WANTED = ("contained", "prefix")
FORBIDDEN = ("forbidden", "forbidden-prefix", "refuses")
"""Codes of texts that stand in the reply: as they should, and where they must not."""
SHORTEST_NEAR = 3
"""A wanted text shorter than this (characters) has no nearest place worth showing."""
_MARKUP = r"[\s*_`#>|~-]*"
"""What may stand between the words of a text in the reply where the agent's Markdown was made readable."""


def text_pieces(verdict: Verdict) -> list[Evidence]:
    """The evidence of a verdict that is about the text of the reply: what was found in it, and what was not."""
    return [one for one in verdict.evidence or () if one.kind in ("match", "missing") and not one.path]


def stands(one: Evidence, reply: str) -> bool:
    """Whether a match stands in the reply where it stood in what was judged (a transform may come between)."""
    return one.start is not None and reply.startswith(one.text, one.start)


def _numbered(seen: Sequence[Evidence], reply: str) -> frozenset[int] | None:
    """Which of the places of their text in the reply these matches are, as a search goes from one to the next; None
    where every place counts: the reply is not what was judged, only the beginning was kept, or places overlap."""
    if not all(stands(one, reply) for one in seen):
        return None
    text, wanted = seen[0].text, {one.start or 0 for one in seen}
    numbers, number, at, last = set[int](), 0, reply.find(text), max(wanted)
    while 0 <= at <= last:
        if at in wanted:
            numbers.add(number)
        number, at = number + 1, reply.find(text, at + len(text))
    return frozenset(numbers) if len(numbers) == len(wanted) else None


def synonyms_of(attempt: Attempt | None) -> list[list[str]]:
    """Texts that the suite lists as meaning the same: those of which an assertion asks for any, and a variable
    `synonyms` (lists, or a word with its list); its own case's first."""
    if attempt is None:
        return []
    asked = ((verdict.type, verdict.expected) for verdict in attempt.verdicts)
    return [*_alike(asked, attempt.vars), *(attempt.listed or ())]


MOST_CASES = 2_000
"""Cases of a suite that are looked through for what it lists; those of a large table are made only for that."""


def listed_by(cases: Iterable[Case]) -> list[list[str]]:
    """What the cases of a suite list as meaning the same, each list once. May take long: call it in a thread."""
    found: dict[tuple[str, ...], None] = {}
    for case in islice(cases, MOST_CASES):
        for one in _alike(((each.type, each.value) for each in case.asserted), case.vars):
            found[tuple(one)] = None
    return [list(one) for one in found]


def _alike(asserted: Iterable[tuple[str, Any]], variables: Mapping[str, Any]) -> list[list[str]]:
    found: list[list[str]] = []
    for kind, expected in asserted:
        if "-any" in kind:
            listed = expected.split(",") if isinstance(expected, str) else expected
            found.append([one for one in listed if isinstance(one, str)] if isinstance(listed, list) else [])
    named = variables.get("synonyms")
    lists = [[word, *_texts(more)] for word, more in named.items()] if isinstance(named, dict) else named
    found += [_texts(one) for one in lists] if isinstance(lists, list) else []
    return [one for one in found if len(one) > 1]


def _texts(listed: object) -> list[str]:
    if isinstance(listed, str):
        return [listed]
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def places_of(wanted: str, text: str) -> list[tuple[int, int]]:
    """Where a text stands."""
    found: list[tuple[int, int]] = []
    at = text.find(wanted) if wanted else -1
    while at >= 0:
        found.append((at, at + len(wanted)))
        at = text.find(wanted, at + len(wanted))
    return found


class _Sought(NamedTuple):
    """A text as it stands in the reply, the same with Markdown in between, which of its places count (None: all),
    and how it is marked."""

    text: str
    loose: re.Pattern[str] | None
    numbers: frozenset[int] | None
    style: str


class Expectations:
    """The marks for one reply's lines, made from the evidence of the verdicts that look at it."""

    def __init__(self, verdicts: Sequence[Verdict], attempt: Attempt | None = None) -> None:
        self._found: list[_Sought] = []
        self._missing: list[str] = []
        self._synonyms = synonyms_of(attempt)
        for verdict in verdicts:
            reply = reply_text(attempt, verdict) if attempt is not None else ""
            groups: dict[tuple[str, str], list[Evidence]] = {}
            for one in text_pieces(verdict):
                if one.kind == "match" and one.text and one.code in (*WANTED, *FORBIDDEN):
                    style = "hit-forbidden" if one.code in FORBIDDEN else "hit-wanted"
                    groups.setdefault((one.text, style), []).append(one)
                elif one.code == "not-contained" and verdict.passed is False:
                    text = one_line(one.text.replace("\r\n", "\n").replace("\n", "\x00"), 500).replace(
                        "␀", "\n"
                    )
                    if len(text) >= SHORTEST_NEAR:
                        self._missing.append(text)
            for (text, style), seen in groups.items():
                shown = one_line(text.replace("\r\n", "\n").replace("\n", "\x00"), 500).replace("␀", "\n")
                words = [re.escape(word) for word in re.split(_MARKUP, shown) if word]
                loose = re.compile(_MARKUP.join(words)) if words else None
                self._found.append(_Sought(shown, loose, _numbered(seen, reply), style))

    def __bool__(self) -> bool:
        return bool(self._found or self._missing)

    def mark(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines with found texts marked, and the nearest thing to one that is nowhere. Of a long reply
        those that are shown at first are made by themselves: of megabytes mostly no others are asked for, and
        the app waits for them."""
        if not self:
            yield from lines
            return
        left = iter(lines)
        first = list(_up_to(left, 2 * CLIP))
        yield from self._marked(first)
        more = list(_up_to(left, SEARCHED))
        if more:
            yield from islice(self._marked([*first, *more]), len(first), None)
        yield from left  # neither shown nor searched

    def _marked(self, lines: list[Line]) -> Iterator[Line]:
        texts = [plain(line) for line in lines]
        marks = self._nearest(texts)
        whole = "\n".join(texts)
        starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        for sought in self._found:
            found = places_of(sought.text, whole)
            places = [
                place
                for number, place in enumerate(found)
                if sought.numbers is None or number in sought.numbers
            ]
            if not found and sought.loose is not None:
                places = [match.span() for match in sought.loose.finditer(whole)]
            for start, end in places:
                number = bisect_right(starts, start) - 1
                while number < len(texts) and starts[number] < end:
                    place = Mark(
                        max(start - starts[number], 0),
                        min(end - starts[number], len(texts[number])),
                        sought.style,
                    )
                    marks.setdefault(number, []).append(place)
                    number += 1
        for number, line in enumerate(lines):
            yield marked(line, marks.get(number, ()))

    def _nearest(self, texts: list[str]) -> dict[int, list[Mark]]:
        near: dict[int, list[Mark]] = {}
        for wanted in self._missing:
            if any(wanted.lower() in text.lower() for text in texts):
                continue
            same = next(
                (
                    (number, place)
                    for number, text in enumerate(texts[:500])
                    if (place := same_meaning(wanted, text, self._synonyms)) is not None
                ),
                None,
            )
            if same is not None:
                number, place = same
                near.setdefault(number, []).append(Mark(place.start, place.end, "hit-near"))
                continue
            best: tuple[NearMiss, int] | None = None
            for number, text in enumerate(texts[:500]):
                miss = near_miss(wanted, text)
                if miss is not None and (best is None or miss.distance < best[0].distance):
                    best = (miss, number)
            if best is not None:
                miss, number = best
                found = near.setdefault(number, [])
                found.append(Mark(miss.start, miss.end, "hit-near"))
                found.extend(Mark(miss.start + a, miss.start + b, "added") for a, b in miss.found_marks)
        return near


def _up_to(lines: Iterator[Line], room: int) -> Iterator[Line]:
    """Lines until they have so many characters."""
    for line in lines:
        yield line
        room -= len(plain(line)) + 1
        if room < 0:
            return
