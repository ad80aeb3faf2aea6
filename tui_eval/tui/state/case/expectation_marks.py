"""Where in a reply the texts stand that assertions looked for, or must not have found."""

from __future__ import annotations

import csv
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

from tui_eval.javascript.values import number_text
from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.case.reply import reply_text
from tui_eval.tui.state.regex_matches import found_by, pattern_of
from tui_eval.tui.state.text.lines import Line, Mark, marked, one_line, plain
from tui_eval.tui.state.text.text_difference import NearMiss, near_miss

IGNORING_CASE = ("should_contain", "should_not_contain", "icontains", "icontains-any", "icontains-all")
CASE_SENSITIVE = ("contains", "contains-any", "contains-all", "starts-with", "keywords")
SHORTEST_NEAR = 3
"""A wanted text shorter than this (characters) has no nearest place worth showing."""
_MARKUP = r"[\s*_`#>|~-]*"
"""What may stand between the words of a text in the reply where the agent's Markdown was made readable."""


class MarkedTexts(NamedTuple):
    """What a content assertion looks for in the reply: texts, whether case is ignored, whether they are
    forbidden, and whether one of them is enough; of a pattern with lookaround which places of a text it
    matched."""

    texts: list[str]
    ignoring_case: bool
    forbidden: bool
    any_will_do: bool = False
    places: Mapping[str, frozenset[int]] | None = None

    def of(self, text: str, found: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Those places of a text that count."""
        numbers = self.places.get(text) if self.places is not None else None
        return [place for number, place in enumerate(found) if numbers is None or number in numbers]


def content_texts(verdict: Verdict, attempt: Attempt | None = None) -> MarkedTexts | None:
    """What a content assertion looks for; None for other assertions. Of a regular expression the texts
    that it matched in the attempt's reply, where they are known."""
    kind, forbidden = verdict.type, "not" in re.split(r"[-_]", verdict.type)
    for prefix in ("not-", "not_"):
        kind = kind.removeprefix(prefix)
    pattern = pattern_of(verdict)
    if pattern is not None and attempt is not None:
        found = found_by(verdict, reply_text(attempt, verdict))
        return (
            None if found is None else MarkedTexts(list(found.texts), False, forbidden, places=found.places)
        )
    if kind == "is-refusal":
        # what makes a refusal of it; a whole reply is what older runs kept there
        phrase = verdict.actual if forbidden and verdict.passed is False else None
        return MarkedTexts([phrase], True, True) if isinstance(phrase, str) and len(phrase) < 80 else None
    if kind not in IGNORING_CASE and kind not in CASE_SENSITIVE:
        return None
    if verdict.target.split(".")[0] not in ("text", ""):
        return None
    expected = verdict.expected
    if isinstance(expected, str) and kind.endswith(("-any", "-all")):
        expected = next(csv.reader([expected.replace("\n", " ")], skipinitialspace=True), [])
    return MarkedTexts(
        list(_texts(expected, "contains" in kind and "should" not in kind)),
        kind in IGNORING_CASE,
        forbidden,
        kind.endswith("-any"),
    )


def _texts(value: Any, scripted: bool) -> Iterator[str]:
    """The texts in a value; `scripted`: numbers as JavaScript prints them, else as Python does."""
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        shown = value if isinstance(value, str) else (number_text if scripted else str)(value)
        if shown.strip():
            yield one_line(shown.replace("\r\n", "\n").replace("\n", "\x00"), 500).replace("␀", "\n")
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, scripted)


def places_of(wanted: str, text: str, ignoring_case: bool) -> list[tuple[int, int]]:
    """Where a text stands, found as the judges find it: letters of either case are those with one lower case
    (`re.IGNORECASE` knows more: it takes a long s for an s)."""
    if not wanted:
        return []
    where: Sequence[int] = range(len(text) + 1)
    if ignoring_case:
        lowered = text.lower()
        if len(lowered) != len(text):  # a letter may become two
            where = [*(at for at, letter in enumerate(text) for _ in letter.lower()), len(text)]
        wanted, text = wanted.lower(), lowered
    found: list[tuple[int, int]] = []
    at = text.find(wanted)
    while at >= 0:
        found.append((where[at], where[at + len(wanted) - 1] + 1))
        at = text.find(wanted, at + len(wanted))
    return found


class _Sought(NamedTuple):
    """A text as it stands in the reply, the same with Markdown in between, and how it is marked."""

    text: str
    looked: MarkedTexts
    loose: re.Pattern[str] | None
    style: str


class Expectations:
    """The marks for one reply's lines, made from the verdicts that look at it."""

    def __init__(self, verdicts: Sequence[Verdict], attempt: Attempt | None = None) -> None:
        self._found: list[_Sought] = []
        self._missing: list[str] = []
        for verdict in verdicts:
            looked = content_texts(verdict, attempt)
            if looked is None:
                continue
            there = verdict.passed is not looked.forbidden  # the judge found them in the reply
            for text in looked.texts:
                flags = re.IGNORECASE if looked.ignoring_case else 0
                style = "hit-forbidden" if looked.forbidden else "hit-wanted"
                words = [re.escape(word) for word in re.split(_MARKUP, text) if word]
                loose = re.compile(_MARKUP.join(words), flags) if there and words else None
                self._found.append(_Sought(text, looked, loose, style))
                if verdict.passed is False and not looked.forbidden and len(text) >= SHORTEST_NEAR:
                    self._missing.append(text)

    def __bool__(self) -> bool:
        return bool(self._found)

    def mark(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines with found texts marked, and the nearest thing to one that is nowhere."""
        if not self._found:
            yield from lines
            return
        lines = list(lines)
        texts = [plain(line) for line in lines]
        marks = self._nearest(texts)
        whole = "\n".join(texts)
        starts = list(accumulate((len(text) + 1 for text in texts), initial=0))
        for sought in self._found:
            found = places_of(sought.text, whole, sought.looked.ignoring_case)
            places = sought.looked.of(sought.text, found)
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
