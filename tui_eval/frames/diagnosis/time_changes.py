"""How dates and timestamps were changed: days, months, a time zone, a cut, day and month exchanged."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from tui_eval.frames.diagnosis.changes import ValueChange, series, true

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
        return
    frame = {"e": e, "a": a}
    gaps = series(frame, (pl.col("a") - pl.col("e")).dt.total_microseconds())
    yield ValueChange("zone_named", series({"g": gaps}, true(pl.col("g") == 0)))
    yield from _shifts(frame, gaps)
    yield from _exchanged(frame)
    yield from _cuts(frame)


def _shifts(frame: dict[str, pl.Series], gaps: pl.Series) -> Iterator[ValueChange]:
    counts = gaps.drop_nulls().value_counts(sort=True, name="n")
    counts = counts.filter(pl.col(gaps.name) != 0)
    if not len(counts):
        return
    ordered = counts.sort("n", gaps.name, descending=[True, False])
    gap, seconds = int(ordered.row(0)[0]), ordered.row(0)[0] / 1e6
    mask = series({"g": gaps}, true(pl.col("g") == gap))
    rows = int(mask.sum())
    if seconds % 86400 == 0:
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
    yield from _months(frame)


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


def _cuts(frame: dict[str, pl.Series]) -> Iterator[ValueChange]:
    for unit, every in _UNITS:
        mask = series(
            frame, true((pl.col("e").dt.truncate(every) == pl.col("a")) & (pl.col("e") != pl.col("a")))
        )
        if mask.any():
            yield ValueChange("time_cut", mask, {"unit": unit})
