"""How dates and timestamps were changed: days, months, a time zone, a cut, day and month exchanged."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from tui_eval.frames.diagnosis.changes import ValueChange, series, true
from tui_eval.frames.value_texts import instant

_MOST_HOURS = 14
_LOOKED_AT = 500
"""Of ten times as many texts and more, those that are looked at first."""
_UNITS = (
    ("second", "1s"),
    ("minute", "1m"),
    ("hour", "1h"),
    ("day", "1d"),
    ("week", "1w"),
    ("month", "1mo"),
    ("quarter", "1q"),
    ("year", "1y"),
)


def moments(texts: pl.Series) -> pl.Series | None:
    """Texts as `value_texts.instant` spells them as moments (no zone); None where most are none."""
    if texts.dtype != pl.String:
        return None
    if len(texts) > 10 * _LOOKED_AT:
        given = texts.drop_nulls()
        if len(given) > _LOOKED_AT and moments(given.gather_every(len(given) // _LOOKED_AT)) is None:
            return None
    text = pl.col("t").str.strip_suffix("+00:00")
    found = (
        pl.DataFrame({"t": texts})
        .select(text.str.to_datetime("%Y-%m-%dT%H:%M:%S%.f", strict=False, time_unit="us"))
        .to_series()
    )
    known = len(texts) - texts.null_count()
    return found if known and (len(found) - found.null_count()) * 2 >= known else None


def time_changes(e_texts: pl.Series, a_texts: pl.Series) -> Iterator[ValueChange]:
    """What was done to the moments of a column, both as texts in one spelling (rows that differ only)."""
    e, a = moments(e_texts), moments(a_texts)
    if e is None or a is None:
        yield from _clock_changes(e_texts, a_texts)
        return
    frame = {"e": e, "a": a}
    gaps = series(frame, (pl.col("a") - pl.col("e")).dt.total_microseconds())
    texts = {"e": e_texts, "a": a_texts, "g": gaps}
    zoned = pl.col("e").str.ends_with(_ZONE) != pl.col("a").str.ends_with(_ZONE)
    finer = _nanoseconds(pl.col("a")) - _nanoseconds(pl.col("e"))
    yield ValueChange("zone_named", series(texts, true(zoned & (pl.col("g") == 0) & (finer == 0))))
    nanoseconds = series(texts, finer)
    if (nanoseconds != 0).any():
        yield from _finer(frame, texts, nanoseconds)
        gaps = series({"g": gaps, "n": nanoseconds}, pl.when(pl.col("n") == 0).then("g"))
        apart = series({"n": nanoseconds}, true(pl.col("n") == 0))
        frame = {
            name: series({"v": values, "f": apart}, pl.when("f").then("v")) for name, values in frame.items()
        }
    if gaps.n_unique() > 1 and (days := weekdays(frame["e"], frame["a"])) is not None:
        yield ValueChange("weekday", pl.repeat(True, len(e), eager=True), days)
    yield from _shifts(frame, gaps)
    yield from _exchanged(frame)
    yield from _cuts(frame)


_WEEKS = 5
"""Different days that are on one day of the week by chance seldom enough; the first ones of three quarters may be."""


def weekdays(e: pl.Series, a: pl.Series) -> dict[str, int] | None:
    """The day of the week (0 is Monday) of all expected days and of all given ones, where these are two: weeks that
    begin on another day."""
    found: list[int] = []
    for side in (e, a):
        days = side.unique()
        if days.null_count() or len(days) < _WEEKS or not bool((days == days.dt.truncate("1d")).all()):
            return None
        of_week = days.dt.weekday().unique()
        if len(of_week) != 1:
            return None
        found.append(int(of_week[0]) - 1)
    return {"wanted": found[0], "given": found[1]} if found[0] != found[1] else None


_ANY_DAY = "2000-01-01T"
_NOON = 12 * 3_600_000_000


def _clocks(texts: pl.Series) -> pl.Series | None:
    """Times of day (`10:30:00`) as moments of one day; None where most are none."""
    return moments(_ANY_DAY + texts) if texts.dtype == pl.String else None


def _clock_changes(e_texts: pl.Series, a_texts: pl.Series) -> Iterator[ValueChange]:
    """What was done to the times of day of a column; half an hour after 23:45 is 0:15."""
    e, a = _clocks(e_texts), _clocks(a_texts)
    if e is None or a is None:
        return
    frame = {"e": e, "a": a}
    gaps = series(frame, ((pl.col("a") - pl.col("e")).dt.total_microseconds() + _NOON) % (2 * _NOON) - _NOON)
    half = series(
        {**frame, "g": gaps}, true((pl.col("g") == -_NOON) & pl.col("a").dt.hour().is_between(1, 12))
    )
    if half.any():
        yield ValueChange("date_format", half, {"format": "hours up to 12, without AM or PM"})
    else:
        yield from _shifts(frame, gaps)
    yield from _cuts(frame, _UNITS[:3])


_ZONED_MIDNIGHT = re.compile(
    r"(\d{4,}-\d\d-\d\d)[T ]00:00(?::00(?:\.0+)?)? ?(?:Z|[+-]\d\d(?::?\d\d)?)", re.ASCII
)


def zoned_midnights(e_texts: pl.Series, cells: list[Any]) -> Iterator[ValueChange]:
    """Days that an answer has as their midnights in some time zone, by its cells as they are written."""
    given = [_ZONED_MIDNIGHT.fullmatch(cell) if isinstance(cell, str) else None for cell in cells]
    days = pl.Series([one[1] if one is not None else None for one in given], dtype=pl.String)
    same = pl.col("a") == pl.col("e").str.replace(r"T.*$", "")
    yield ValueChange("zone_named", series({"e": e_texts, "a": days}, true(same)), {"midnight": True})


_DAY_OF = "%Y-%m-%dT"
_FORMATS = {
    "HH:MM AM or PM": f"{_DAY_OF}%I:%M %p",
    "HH:MM:SS AM or PM": f"{_DAY_OF}%I:%M:%S %p",
    "MM/DD/YYYY": "%m/%d/%Y",
    "DD/MM/YYYY": "%d/%m/%Y",
    "DD.MM.YYYY": "%d.%m.%Y",
    "DD-MM-YYYY": "%d-%m-%Y",
    "YYYY/MM/DD": "%Y/%m/%d",
    "YYYYMMDD": "%Y%m%d",
    "Month D, YYYY": "%B %d, %Y",
    "D Month YYYY": "%d %B %Y",
}


def other_formats(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """Days, or times of day, that are written in no way that is read as such, though they are the expected ones."""
    clocks = _clocks(e)
    wanted = moments(e) if clocks is None else clocks
    if wanted is None:
        return
    best: ValueChange | None = None
    text = pl.col("a").str.strip_chars()
    for shown, written in _FORMATS.items():
        if written.startswith(_DAY_OF) is (clocks is None):
            continue
        found = (
            text.str.to_date(written, strict=False).cast(pl.Datetime("us"))
            if clocks is None
            else (pl.lit(_ANY_DAY) + text).str.to_datetime(written, strict=False, time_unit="us")
        )
        read = series({"a": a}, found)
        if read.null_count() == len(read):
            continue
        same = series({"e": wanted, "a": read}, true(pl.col("e") == pl.col("a")))
        change = ValueChange("date_format", same, {"format": shown})
        if best is None or change.count > best.count:
            best = change
        elif change.count and change.count == best.count:  # 01/01 is the first of January either way
            best = replace(best, parameters={"format": f"{best.parameters['format']} or {shown}"})
    if best is not None:
        yield best


def epochs(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """Moments as the seconds, or their thousandths, since 1970."""
    wanted = moments(e)
    if wanted is None:
        return
    frame = {"e": wanted, "a": a.cast(pl.Float64, strict=False)}
    days = bool((wanted.drop_nulls() == wanted.drop_nulls().dt.truncate("1d")).all())
    seconds = pl.col("e").dt.epoch("us") / 1e6
    for given, parts in (("seconds", 1), ("milliseconds", 1000)):
        same = series(frame, true((pl.col("a") - seconds * parts).abs() < 1))
        yield ValueChange(
            "kind", same, {"wanted": "a date" if days else "a timestamp", "given": f"{given} since 1970"}
        )


_PARTS = {
    "seconds": 1.0,
    "milliseconds": 1e-3,
    "microseconds": 1e-6,
    "minutes": 60.0,
    "hours": 3600.0,
    "days": 86400.0,
}


def spans(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """Intervals (as `27902520 s`) as a number of seconds, or of another unit."""
    seconds = e.str.extract(r"^(-?\d+(?:\.\d+)?) s$").cast(pl.Float64, strict=False)
    frame = {"e": seconds, "a": a.cast(pl.Float64, strict=False)}
    for given, size in _PARTS.items():
        span = pl.col("a") * size
        same = series(frame, true((span - pl.col("e")).abs() <= 1e-9 * pl.col("e").abs() + 1e-6))
        yield ValueChange("kind", same, {"wanted": "an interval", "given": given})


_MOVES = 3
"""Days of which part is found on the neighbouring one, all in one direction, by chance seldom enough."""


def moved_days(days: pl.Series, e: pl.Series, a: pl.Series) -> int:
    """Where part of what is summed by day is found on the next day throughout 1, on the day before -1, else 0: days as
    another time zone has them.

    Args:
        days: Each day once, in the spelling of `instant`.
        e, a: What is expected and given of it (Float64; 0 where a side has no such day).
    """
    moments_of = moments(days)
    if moments_of is None or moments_of.null_count() or e.null_count() or a.null_count():
        return 0
    table = pl.DataFrame({"d": moments_of, "e": e, "a": a}).sort("d")
    left = (pl.col("a") - pl.col("e")).cum_sum().round(6)
    table = table.with_columns(left.alias("c"), (pl.col("d").shift(-1) - pl.col("d")).alias("gap"))
    table = table.with_columns(pl.col("e").shift(-1).alias("e_next"))
    moved = table.filter(pl.col("c") != 0)
    direction = -1 if len(moved) and moved.get_column("c")[0] > 0 else 1
    near = (pl.col("gap") == datetime.timedelta(days=1)).fill_null(False)
    source = pl.col("e") if direction == 1 else pl.col("e_next")
    held = (pl.col("c") * -direction > 0) & (pl.col("c").abs() <= source + 1e-6)
    if bool(table.select(((pl.col("c").abs() - source).abs().fill_null(0.0) <= 1e-6).all()).item()):
        return 0  # whole days, all of them
    alike = len(moved) >= _MOVES and bool(moved.select((near & held).fill_null(False).all()).item())
    return direction if alike else 0


_ISO = r"^\d{4,}-\d\d-\d\d"


def written_otherwise(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """Texts of a column of texts that are the same moment in another spelling, or would be, had not only one of them
    a zone."""
    frame = {"e": e, "a": a}
    both = series(frame, true(pl.col("e").str.contains(_ISO) & pl.col("a").str.contains(_ISO)))
    if not both.any():
        return
    read = [
        pl.Series([instants.get(text) for text in side.to_list()], dtype=pl.String)
        for side in (e, a)
        for instants in [{text: instant(text) for text in side.filter(both).unique().to_list()}]
    ]
    sides = {"e": read[0], "a": read[1]}
    same = pl.col("e") == pl.col("a")
    yield ValueChange("time_text", series(sides, true(same)))
    bare = pl.col("e").str.strip_suffix(_ZONE) == pl.col("a").str.strip_suffix(_ZONE)
    yield ValueChange("zone_named", series(sides, true(bare & ~same)))


_ZONE = "+00:00"


def _nanoseconds(text: pl.Expr) -> pl.Expr:
    """What a moment has beyond its microseconds, which `moments` leaves out."""
    return (
        text.str.extract(r"\.\d{6}(\d{1,3})").fill_null("0").str.pad_end(3, "0").cast(pl.Int64, strict=False)
    )


def _finer(
    frame: dict[str, pl.Series], texts: dict[str, pl.Series], nanoseconds: pl.Series
) -> Iterator[ValueChange]:
    """Rows whose moments differ in nanoseconds: cut to microseconds, or moved by some."""
    columns = {**frame, "left": texts["a"], "n": nanoseconds}
    same = (pl.col("e") == pl.col("a")) & (pl.col("n") != 0)
    yield ValueChange(
        "time_cut", series(columns, true(same & (_nanoseconds(pl.col("left")) == 0))), {"unit": "microsecond"}
    )
    far = pl.col("g").abs() < _FAR
    moved = series(
        {"g": texts["g"], "n": nanoseconds},
        pl.when(far & (pl.col("n") != 0)).then(pl.col("g") * 1000 + pl.col("n")),
    )
    counts = moved.drop_nulls().value_counts(sort=True, name="rows")
    if len(counts) and counts.row(0)[1] >= 3:
        gap = int(counts.row(0)[0])
        mask = series({"g": moved}, true(pl.col("g") == gap))
        yield ValueChange("time_shift", mask, {"seconds": gap / 1e9}, sure=False)


_FAR = 9 * 10**15
"""Microseconds that are still some nanoseconds in 64 bits."""


def _shifts(frame: dict[str, pl.Series], gaps: pl.Series) -> Iterator[ValueChange]:
    counts = gaps.drop_nulls().value_counts(sort=True, name="n")
    counts = counts.filter(pl.col(gaps.name) != 0)
    if not len(counts):
        return
    ordered = counts.sort("n", gaps.name, descending=[True, False])
    gap, seconds = int(ordered.row(0)[0]), ordered.row(0)[0] / 1e6
    mask = series({"g": gaps}, true(pl.col("g") == gap))
    rows = int(mask.sum())
    months = list(_months(frame))
    years = [one for one in months if one.parameters["months"] % 12 == 0 and one.count >= rows]
    if years:  # as many days in years that are alike
        yield from years
    elif seconds % 86400 == 0:
        days = int(seconds // 86400)
        if abs(days) == 1 or rows >= 3:
            yield ValueChange("days", mask, {"days": days}, sure=abs(days) == 1)
    elif seconds % 900 == 0 and abs(seconds) <= _MOST_HOURS * 3600:
        hours = [seconds / 3600]
        for other, _ in ordered.iter_rows():
            if abs(other - gap) == 3_600_000_000 and abs(other) <= _MOST_HOURS * 3_600_000_000:
                hours.append(other / 3.6e9)  # summer time
                mask = series({"g": gaps}, true(pl.col("g").is_in([gap, other])))
                break
        yield ValueChange("time_zone", mask, {"hours": sorted(hours, key=abs)})
    elif rows >= 3:
        yield ValueChange("time_shift", mask, {"seconds": seconds}, sure=False)
    yield from (one for one in months if one not in years)


def _months(frame: dict[str, pl.Series]) -> Iterator[ValueChange]:
    e, a = pl.col("e"), pl.col("a")
    apart = (a.dt.year().cast(pl.Int64) - e.dt.year()) * 12 + a.dt.month().cast(pl.Int64) - e.dt.month()
    alike = (a.dt.day() == e.dt.day()) & (a.dt.time() == e.dt.time())
    gaps = series(frame, pl.when(alike).then(apart))
    counts = gaps.drop_nulls().value_counts(sort=True, name="n").filter(pl.col(gaps.name) != 0)
    if not len(counts) or counts.row(0)[1] < 3:
        return
    months = int(counts.row(0)[0])
    yield ValueChange(
        "months", series({"g": gaps}, true(pl.col("g") == months)), {"months": months}, sure=False
    )


def _exchanged(frame: dict[str, pl.Series]) -> Iterator[ValueChange]:
    e, a = pl.col("e"), pl.col("a")
    mask = series(
        frame,
        true(
            (e.dt.year() == a.dt.year())
            & (e.dt.month() == a.dt.day())
            & (e.dt.day() == a.dt.month())
            & (e.dt.time() == a.dt.time())
        ),
    )
    yield ValueChange("day_and_month", mask)


_PERIODS = ("week", "month", "quarter", "year")
"""Units of time that are called by a day: the first, or the last."""


_FEW = 3


def _cuts(frame: dict[str, pl.Series], units: Sequence[tuple[str, str]] = _UNITS) -> Iterator[ValueChange]:
    """What is cut is cut throughout: some that begin a month or a quarter among others do so by chance."""
    for unit, every in units:
        mask, sure = _cut_from("e", "a", unit, every, frame)
        if mask.any():
            yield ValueChange("time_cut", mask, {"unit": unit}, sure=sure)
        mask, sure = _cut_from("a", "e", unit, every, frame)
        if not mask.any():
            continue
        last = pl.col("a") == pl.col("e").dt.offset_by(every).dt.offset_by("-1d")
        if unit in _PERIODS and bool((series(frame, true(last)) | ~mask).all()):
            yield ValueChange("not_cut", mask, {"unit": unit, "ends": True}, sure=sure)
        else:
            yield ValueChange("not_cut", mask, {"unit": unit}, sure=sure)


def _cut_from(
    whole: str, cut: str, unit: str, every: str, frame: dict[str, pl.Series]
) -> tuple[pl.Series, bool]:
    """Where one side has the other's times cut to a unit, and whether all of its own are cut to that."""
    long, short = pl.col(whole), pl.col(cut)
    mask = series(frame, true((long.dt.truncate(every) == short) & (long != short)))
    if unit in ("quarter", "year") and int(mask.sum()) < _FEW:
        months = series(frame, true(long.dt.truncate("1mo") == long))
        mask = mask & ~months  # months are one in three the first of a quarter
    return mask, bool(series(frame, true(short.dt.truncate(every) == short) | short.is_null()).all())
