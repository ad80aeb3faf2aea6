"""The same thing said in another way: with characters that nobody sees, a number in another form or unit, a date in
another form, a listed synonym.

For the person who reads why a text was not found: nothing here judges. `2 years` is `24 months`, `1,5` is `1.5`,
`50%` is `0.5`, `90 days` is `ninety days`, `2025-03-31` is `March 31, 2025`. What may be read in two ways
(`1.000`, `03/04/2025`) is the same where one of its readings is.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

from tui_eval.guard.text import seen, unseen

LONGEST = 50_000
"""Characters of a text that are looked through."""
MOST = 400
"""Numbers, or dates, of a text that are looked at."""
LONGEST_WANTED = 120
"""Characters of a wanted text: a longer one is not about one thing."""


class SameMeaning(NamedTuple):
    """A place in a text that means what was wanted, and in which way it is said otherwise."""

    start: int
    end: int
    how: str


class Quantity(NamedTuple):
    """A number in a text: its place, the values it may be read as (in the base unit), without its unit, and of what
    kind it is (empty: no unit)."""

    start: int
    end: int
    values: frozenset[Decimal]
    bare: frozenset[Decimal]
    kind: str
    unit: str = ""


class DatePlace(NamedTuple):
    """A date in a text and the days it may be."""

    start: int
    end: int
    days: frozenset[datetime.date]


def same_meaning(wanted: str, text: str, synonyms: Iterable[Sequence[str]] = ()) -> SameMeaning | None:
    """The first place in a text that means the same; None where there is none.

    Args:
        wanted: A number with or without its unit, or a date; other words beside it must stand in the same sentence.
        synonyms: Lists of texts that mean the same.
    """
    wanted, text = wanted.strip(), text[:LONGEST]
    if not wanted:
        return None
    if (found := _unseen(wanted, text)) is not None or len(wanted) > LONGEST_WANTED:
        return found
    return _listed(wanted, text, synonyms) or _dated(wanted, text) or _numbered(wanted, text)


def _unseen(wanted: str, text: str) -> SameMeaning | None:
    """The wanted text where only characters that nobody sees are others; before all else, which would say less."""
    if text.isascii() and wanted.isascii():
        return None
    bare = seen(wanted)
    kept = [(at, one) for at, character in enumerate(text) if (one := seen(character))]
    start = "".join(one for _, one in kept).find(bare) if bare else -1
    if start < 0:
        return None
    first, last = kept[start][0], kept[start + len(bare) - 1][0] + 1
    apart = unseen(wanted, text[first:last])
    return SameMeaning(first, last, f"the same but for {apart}") if apart else None


def _listed(wanted: str, text: str, synonyms: Iterable[Sequence[str]]) -> SameMeaning | None:
    for names in synonyms:
        if not any(name.strip().casefold() == wanted.casefold() for name in names):
            continue
        for name in names:
            word = name.strip()
            if not word or word.casefold() == wanted.casefold():
                continue
            found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
            if found is not None:
                return SameMeaning(*found.span(), f'listed with "{wanted}"')
    return None


def _dated(wanted: str, text: str) -> SameMeaning | None:
    looked_for = list(dates_in(wanted))
    if len(looked_for) != 1:
        return None
    one = looked_for[0]
    rest = wanted[: one.start] + wanted[one.end :]
    for found in dates_in(text):
        if found.days & one.days and _beside(rest, text, found.start, found.end):
            return SameMeaning(found.start, found.end, "the same date")
    return None


def _numbered(wanted: str, text: str) -> SameMeaning | None:
    looked_for = list(quantities_in(wanted))
    if len(looked_for) != 1:
        return None
    one = looked_for[0]
    rest, written = wanted[: one.start] + wanted[one.end :], wanted[one.start : one.end].casefold()
    for found in quantities_in(text):
        how, there = _same(one, found), text[found.start : found.end].casefold()
        if how and there != wanted.casefold() and _beside(rest, text, found.start, found.end):
            return SameMeaning(found.start, found.end, "the same number" if there == written else how)
    return None


def _same(wanted: Quantity, found: Quantity) -> str:
    """In which way two quantities are the same; empty where they are not."""
    if wanted.kind == found.kind and wanted.values & found.values:
        return "the same in another unit" if wanted.unit != found.unit else "the same number in another form"
    if {wanted.kind, found.kind} == {"share", ""} and wanted.values & found.values:
        return "the same number in another form"
    if not wanted.kind and wanted.bare & found.bare:
        return "the same number in another form"
    return ""


def _beside(rest: str, text: str, start: int, end: int) -> bool:
    """Whether the other words that were wanted stand in the sentence of a place."""
    words = re.findall(r"[^\W\d_]{4,}", rest.casefold())
    if not words:
        return True
    begin = max((text.rfind(mark, 0, start) for mark in _ENDS), default=-1) + 1
    ends = [at for mark in _ENDS if (at := text.find(mark, end)) >= 0]
    sentence = text[begin : min(ends, default=len(text))].casefold()
    return all(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", sentence) for word in words)


_ENDS = (". ", "! ", "? ", "\n", "␊")


# -- Dates. dateutil reads them; which texts are dates at all is decided here, for it reads almost anything as one.

_MONTH = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
_DATE = re.compile(
    rf"""(?<![\w.,/-])(?:
        \d{{4}}[-/.]\d{{1,2}}[-/.]\d{{1,2}}(?=T?\d\d:|\D|$) |
        \d{{1,2}}[-/.]\ ?\d{{1,2}}[-/.]\ ?\d{{4}} |
        \d{{1,2}}(?:st|nd|rd|th|\.)?[\ -](?:of\ )?{_MONTH}[\ ,-]{{1,2}}\d{{4}} |
        {_MONTH}\ \d{{1,2}}(?:st|nd|rd|th)?,?\ \d{{4}}
    )(?![\d/-])""",
    re.IGNORECASE | re.VERBOSE,
)


def dates_in(text: str) -> Iterator[DatePlace]:
    """The dates of a text that name a day, a month and a year."""
    for number, found in enumerate(_DATE.finditer(text)):
        if number >= MOST:
            return
        days = _days(found[0])
        if days:
            yield DatePlace(*found.span(), days)


@lru_cache(maxsize=1_000)
def _days(text: str) -> frozenset[datetime.date]:
    from dateutil import parser  # read when there is something like a date

    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|\bof\b", "", text, flags=re.IGNORECASE)
    year_first = re.match(r"\d{4}", plain) is not None
    days: set[datetime.date] = set()
    for day_first in (False,) if year_first else (True, False):
        try:
            days.add(parser.parse(plain, dayfirst=day_first, yearfirst=year_first).date())
        except (ValueError, OverflowError):
            continue
    return frozenset(days)


# -- Numbers and their units.

_ONES = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        ]
    )
}
_TENS = {
    word: number * 10
    for number, word in enumerate(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2
    )
}
_SCALES = {
    "hundred": Decimal(100),
    "thousand": Decimal(1_000),
    "tausend": Decimal(1_000),
    "k": Decimal(1_000),
    "million": Decimal(10**6),
    "millionen": Decimal(10**6),
    "billion": Decimal(10**9),
    "bn": Decimal(10**9),
    "milliarde": Decimal(10**9),
    "milliarden": Decimal(10**9),
}


def _units(kind: str, factors: dict[str, str]) -> dict[str, tuple[str, Decimal, str]]:
    """Each name of a unit: what it measures, how much of the base unit it is, and one name for all its names."""
    return {
        name: (kind, Decimal(factor), names.split()[0])
        for names, factor in factors.items()
        for name in names.split()
    }


_UNITS = {
    **_units(
        "time",
        {
            "ms millisecond milliseconds": "0.001",
            "s sec secs second seconds sekunde sekunden": "1",
            "min mins minute minutes minuten": "60",
            "h hr hrs hour hours stunde stunden": "3600",
            "day days tag tage tagen": "86400",
            "week weeks woche wochen": "604800",
        },
    ),
    **_units(
        "months", {"month months monat monate monaten": "1", "year years yr yrs jahr jahre jahren": "12"}
    ),
    **_units(
        "length",
        {
            "mm millimeter millimeters millimetre millimetres": "0.001",
            "cm centimeter centimeters centimetre centimetres": "0.01",
            "m meter meters metre metres": "1",
            "km kilometer kilometers kilometre kilometres": "1000",
            "inch inches": "0.0254",
            "ft foot feet": "0.3048",
            "mile miles mi": "1609.344",
        },
    ),
    **_units(
        "mass",
        {
            "mg milligram milligrams": "0.001",
            "g gram grams gramm": "1",
            "kg kilo kilos kilogram kilograms": "1000",
        },
    ),
    **_units(
        "volume", {"ml milliliter millilitre": "0.001", "cl": "0.01", "l liter liters litre litres": "1"}
    ),
    **_units("data", {"kb": "1000", "mb": "1e6", "gb": "1e9", "tb": "1e12"}),
    **_units("share", {"% percent prozent": "0.01", "‰": "0.001"}),
    **_units("euro", {"€ eur euro euros": "1"}),
    **_units("dollar", {"$ usd dollar dollars": "1"}),
    **_units("sterling", {"£ gbp": "1"}),
    **_units("yen", {"¥ jpy yen": "1"}),
}
_DIGITS = r"(?:\d{1,3}(?:[,.'’\u00a0\u202f ]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?|\.\d+)"
_WORD = "|".join([*_TENS, *_ONES])
_QUANTITY = re.compile(
    rf"""(?P<before>[€$£¥]\ ?)?
    (?<![\w.,])(?P<number>[-+−]?{_DIGITS}(?![\d])|(?:{_WORD})(?:[-\ ](?:{"|".join(_ONES)}))?(?![\w-]))
    (?:[\ \u00a0\u202f-]?(?P<scale>hundred|thousand|tausend|k|millionen|million|billion|bn|milliarden|milliarde)(?!\w))?
    (?:[\ \u00a0\u202f-]?(?P<unit>[%‰€$£¥]|per\ cent(?!\w)|[^\W\d_]{{1,14}}(?!\w)))?""",
    re.IGNORECASE | re.VERBOSE,
)


def quantities_in(text: str) -> Iterator[Quantity]:
    """The numbers of a text, in digits or English words, with their units; those in dates are none."""
    days = list(dates_in(text))
    for number, found in enumerate(_QUANTITY.finditer(text)):
        if number >= MOST:
            return
        ordinal = (found["unit"] or "").lower() in ("st", "nd", "rd", "th")
        if not ordinal and not any(day.start < found.end() and found.start() < day.end for day in days):
            yield _quantity(found)


_NO_UNITS = frozenset(
    ["of", "in", "on", "at", "to", "by", "or", "and", "for", "from", "is", "are", "per", "off"]
)


def _quantity(found: re.Match[str]) -> Quantity:
    values = _readings(found["number"])
    if found["scale"]:
        values = frozenset(value * _SCALES[found["scale"].lower()] for value in values)
    name = (found["before"] or found["unit"] or "").strip().lower()
    name = "percent" if name == "per cent" else name
    end = found.end()
    if name in _UNITS:
        kind, factor, unit = _UNITS[name]
        return Quantity(found.start(), end, frozenset(value * factor for value in values), values, kind, unit)
    if name and name not in _NO_UNITS:  # counted things: they are not converted, and not part of the number
        kind = f"?{name.removesuffix('s')}"
        end = found.end("scale") if found["scale"] else found.end("number")
        return Quantity(found.start(), end, values, values, kind, kind)
    end = found.end("scale") if found["scale"] else found.end("number")
    return Quantity(found.start(), end, values, values, "")


@lru_cache(maxsize=2_000)
def _readings(text: str) -> frozenset[Decimal]:
    """The values that digits, or number words, may mean."""
    words = re.split(r"[-\s]", text.lower())
    if words[0] in _ONES or words[0] in _TENS:
        if len(words) == 1:
            return frozenset([Decimal(_ONES.get(words[0], _TENS.get(words[0], 0)))])
        several = words[0] in _TENS and 0 < _ONES.get(words[1], 0) < 10
        return frozenset([Decimal(_TENS[words[0]] + _ONES[words[1]])]) if several else frozenset()
    plain = re.sub(r"['’\u00a0\u202f ]", "", text).replace("−", "-")
    marks = [c for c in plain if c in ",."]
    if len(set(marks)) == 2:
        last = marks[-1]
        other = "," if last == "." else "."
        forms = [plain.replace(other, "").replace(last, ".")]
    elif len(marks) > 1:
        forms = [plain.replace(marks[0], "")]
    elif marks:
        whole, _, part = plain.partition(marks[0])
        forms = [f"{whole}.{part}"]
        if len(part) == 3 and whole.lstrip("+-") not in ("", "0"):
            forms.append(whole + part)
    else:
        forms = [plain]
    values: set[Decimal] = set()
    for form in forms:
        try:
            values.add(Decimal(form).normalize())
        except InvalidOperation:
            continue
    return frozenset(values)
