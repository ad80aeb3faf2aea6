"""How numbers were changed: a factor, an offset, a sign, a rounding, a whole multiple."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import polars as pl

from tui_eval.frames.diagnosis.changes import ValueChange, decimals_of, number, series, true
from tui_eval.frames.typed_columns import ReadColumn

_CLOSE = 1e-9
_POWERS = tuple(10.0**power for power in (*range(-9, 0), *range(1, 10)))
_TIME_UNITS: dict[int, tuple[tuple[tuple[str, str], ...], bool]] = {
    60: ((("seconds", "minutes"), ("minutes", "hours")), False),
    3600: ((("seconds", "hours"),), False),
    86400: ((("seconds", "days"),), False),
    1440: ((("minutes", "days"),), False),
    24: ((("hours", "days"),), True),
    7: ((("days", "weeks"),), True),
    12: ((("months", "years"),), True),
    1000: ((("", "seconds"),), True),
    1_000_000: ((("", "seconds"),), True),
}
"""By factor which smaller unit may stand for which larger one, and whether it is one of time only where the
name says so."""
_NAMED_UNITS = re.compile(
    r"(?:^|_|\b)(?:(?P<seconds>secs?|seconds?|s)|(?P<parts>ms|msecs?|us|ns|milliseconds?)|(?P<minutes>mins?|minutes?)|"
    r"(?P<hours>hours?|hrs?|h)|(?P<days>days?)|(?P<weeks>weeks?)|(?P<months>months?)|(?P<years>years?))(?:$|_|\b)",
    re.IGNORECASE,
)


def _unit_words(name: str, size: int, larger: bool) -> str:
    """Which unit stands where which is expected; empty where the column's name says that another one is.

    Args:
        larger: The answer has the larger numbers, so the smaller unit.
    """
    named = _NAMED_UNITS.search(name)
    wanted = named.lastgroup if named is not None else None
    pairs = [pair if larger else pair[::-1] for pair in _TIME_UNITS[size][0]]
    if size >= 1000 and size % 1000 == 0:
        if wanted not in (None, "seconds", "parts"):
            return ""
        many = "thousand" if size == 1000 else "million"
        return f"a unit of time a {many} times {'smaller' if larger else 'larger'}"
    fitting = [(given, unit) for given, unit in pairs if wanted in (None, unit)]
    words = [f"{given} where {unit} are" for given, unit in fitting]
    return f"{words[0]} expected{''.join(f', or {more}' for more in words[1:])}" if words else ""


_OF_TIME = re.compile(
    r"(?:^|_|\b)(?:durations?|elapsed|latency|time|times|age|delay|wait\w*|uptime|ms|msec|secs?|seconds?|mins?|minutes?|"
    r"hours?|hrs?|days?|weeks?|months?|years?|(?<=_)s|(?<=_)h|us|ns)(?:$|_|\b)",
    re.IGNORECASE,
)
_NOT_OF_TIME = re.compile(
    r"(?:^|_|\b)(?:amounts?|prices?|costs?|revenues?|sales|profits?|margins?|balances?|payments?|paid|fees?|tax(?:es)?|"
    r"discounts?|orders|customers|counts?|num|number|quantity|qty|units|weights?|shares?|percent|pct|eur|usd)(?:$|_|\b)",
    re.IGNORECASE,
)
"""Names of money and counts: a factor of 60 is no minute there."""
_NICE = {*_POWERS, *(float(unit) for unit in _TIME_UNITS), *(1.0 / unit for unit in _TIME_UNITS), -1.0}
_ENOUGH = 0.9
_TELLS = 1e-7
"""A factor nearer to 1 cannot be told from rows that are off by anything."""
_COUNTABLE = 4e14
"""Steps up to which a float tells a whole number of them from a part."""
_ULPS = 4.5e-16
"""Two units in the last place of a float, of its size."""


def number_changes(name: str, e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """What was done to the numbers of a column (Float64, rows that differ only)."""
    frame = {"e": e, "a": a}
    known = series(frame, true(pl.col("e").is_finite() & pl.col("a").is_finite()))
    count = int(known.sum() or 0)
    if not count:
        return
    both = pl.DataFrame(frame).filter(known)
    chance = _Chance(both.get_column("e"), both.get_column("a"))
    yield from list(_rounding(frame, both, chance.e_digits)) or _significant(frame, both)
    yield from _shares(frame, both, chance)
    yield from _complement(frame, chance)
    yield from _factors(name, frame, both, chance)
    yield from _offset(frame, both, chance)
    yield from _averages(frame, both, chance)
    yield from _multiples(frame, both, chance)
    zeros = series(frame, true((pl.col("a") == 0) & (pl.col("e") != 0)))
    if int(zeros.sum()) >= 3:
        yield ValueChange("value_as_zero", zeros)
    yield from _not_rounded(frame, both, chance)


def large_changes(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """What was done to whole numbers (Int128, rows that differ only) some of which no float holds: by as
    much, exactly."""
    frame = {"e": e, "a": a}
    gaps = series(frame, pl.col("a") - pl.col("e"))
    counts = gaps.drop_nulls().value_counts(sort=True, name="rows")
    if not len(counts) or counts.row(0)[1] < 3 or e.n_unique() < 3:
        return
    gap = int(counts.row(0)[0])
    mask = pl.Series([one is not None and one == gap for one in gaps.to_list()], dtype=pl.Boolean)
    yield ValueChange("offset", mask, {"offset": gap}, sure=False)


def counted_nobody(every: pl.Series, e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """1 where 0 is expected, in a column that has other numbers too: no flag but a count.

    Args:
        every: The column in all expected rows.
    """
    mask = series({"e": e, "a": a}, true((pl.col("e") == 0) & (pl.col("a") == 1)))
    if len(e) >= 2 and bool(mask.all()) and number(every.max()) > 1:
        yield ValueChange("zero_as_one", mask)


class _Chance:
    """How seldom two numbers agree by chance."""

    def __init__(self, e: pl.Series, a: pl.Series) -> None:
        self.a_digits, self.e_digits = decimals_of(a), decimals_of(e)
        self.distinct = e.n_unique()
        values = pl.concat([e, a])
        self.range = number(values.max()) - number(values.min())
        self.a_range = number(a.max()) - number(a.min())

    @property
    def averaged(self) -> bool:
        """Whether one side has so many more decimals that it may be quotients of the other's numbers."""
        return abs(self.a_digits - self.e_digits) >= _QUOTIENT

    def per_row(self, tolerance: float = 0.0, fitted: bool = False) -> float:
        """The decimal logarithm of one row's chance to miss: 2 is one in a hundred.

        Args:
            fitted: What is tried was made of the values: it hits the middle of the answer's, and whatever is near.
        """
        width = max(10.0**-self.a_digits, 2 * tolerance)
        return math.log10(max(self.a_range if fitted else self.range, width) / width)


def _near(factor: pl.Expr | float, tolerance: float = 0.0) -> pl.Expr:
    wanted = pl.col("e") * factor
    return true((pl.col("a") - wanted).abs() <= _CLOSE * pl.col("a").abs() + 1e-12 + tolerance)


def _factors(
    name: str, frame: dict[str, pl.Series], both: pl.DataFrame, chance: _Chance
) -> Iterator[ValueChange]:
    ratios = both.filter((pl.col("e") != 0) & (pl.col("a") != 0)).select(
        (pl.col("a") / pl.col("e")).alias("r")
    )
    ratio = ratios.get_column("r")
    if not len(ratio) or (not chance.a_range and chance.distinct > 1):
        return  # one value is several by no factor, however near to each other these are beside their size
    most = ratio.round_sig_figs(9).value_counts(sort=True).row(0)
    tried = [(_snapped(float(most[0])), 0.0)]
    if most[1] < _ENOUGH * len(both):  # values that were rounded afterwards have no exact ratio
        tolerance = 0.5 * 10.0**-chance.a_digits * (1 + 1e-6)
        apart = number(both.select((pl.col("a") - pl.col("e")).abs().median()).item())
        if chance.a_digits <= 4 and apart > 8 * tolerance:
            middle = number(both.get_column("a").abs().sum()) / number(both.get_column("e").abs().sum())
            sign = math.copysign(1.0, number(ratio.median()))
            tried += [(_snapped(sign * middle, 0.01), tolerance), (sign * middle, tolerance)]
        tried += _rounded_powers(both, chance)
    for factor, tolerance in tried:
        if factor == 0.0 or not math.isfinite(factor) or abs(factor - 1) < _TELLS:
            continue
        mask = series(frame, _near(factor, tolerance) & (pl.col("e") != 0))
        rows = int(mask.sum())
        exactly = int(series(frame, _near(factor) & (pl.col("e") != 0)).sum())
        if tolerance > 10.0**-chance.a_digits and 4 * exactly >= rows:
            continue  # expected values that had been rounded would not be met so often: the others are no such
        if tolerance and factor not in _NICE and not _fits(frame, len(both), factor, tolerance, rows):
            continue
        nice = factor in _NICE and (round(factor if factor > 1 else 1 / factor) != 7 or _timed(name, 7))
        row = chance.per_row(tolerance, fitted=tolerance > 0 and not nice)
        if nice:
            if factor != -1.0 and rows * row < 2.0:
                continue
        elif rows < 3 or chance.distinct < 2 or (rows - 1) * row < 2.5:
            continue
        yield from _factor(name, factor, mask, frame, nice, repeated=not chance.averaged)


def _fits(frame: dict[str, pl.Series], every: int, factor: float, tolerance: float, rows: int) -> bool:
    """Whether a factor that was fitted to values that were rounded is theirs: it then meets nearly all of them, and
    hardly misses the others (the sums of rounded values give it a little beside what it is)."""
    hardly = series(frame, _near(factor, 1.25 * tolerance) & (pl.col("e") != 0))
    return rows >= 0.95 * every and int(hardly.sum()) == every


def _rounded_powers(both: pl.DataFrame, chance: _Chance) -> list[tuple[float, float]]:
    """A thousandth or a thousand of what is expected, of which one side is rounded to few digits (18.5 beside
    18,512), with how far that may be off."""
    middle = number(both.get_column("a").abs().sum()) / number(both.get_column("e").abs().sum())
    if not middle > 0 or not math.isfinite(middle):
        return []
    power = round(math.log10(middle))
    factor = 10.0**power
    halves = 0.5 * 10.0**-chance.a_digits, 0.5 * 10.0**-chance.e_digits * factor
    tolerance = max(halves) * (1 + 1e-6)
    given = both.get_column("a")
    rows, span = len(both), number(given.max()) - number(given.min())
    if (
        abs(power) < 2
        or factor not in _NICE
        or rows < 3
        or rows * math.log10(max(span / (2 * tolerance), 1.0)) < 3.0
    ):
        return []
    return [(math.copysign(factor, number(both.get_column("e").sum()) * number(given.sum())), tolerance)]


def _snapped(factor: float, near: float = 1e-8) -> float:
    """The figure that people would use where one is this near; else the factor itself."""
    for one in _NICE:
        if abs(factor - one) <= min(near, 1e-3) * abs(one):
            return one
    for digits in (2, 3, 4, 6):
        rounded = float(f"{factor:.{digits}g}")
        if abs(factor - rounded) <= (1e-8 if near < 1e-3 else 1e-4) * abs(factor):
            return rounded
    return factor


def _factor(
    name: str, factor: float, mask: pl.Series, frame: dict[str, pl.Series], nice: bool, *, repeated: bool
) -> Iterator[ValueChange]:
    """`repeated`: rows that are counted several times may give such numbers."""
    if factor == -1.0:
        yield ValueChange("sign", mask)
        return
    if factor in (100.0, 0.01):
        share = frame["e" if factor > 1 else "a"].filter(mask)
        if (share.abs() <= 1.0).all() and decimals_of(share) > 0:
            yield ValueChange("percent", mask, {"factor": factor})
            return
    size = factor if factor > 1 else 1 / factor
    whole = abs(size - round(size)) < 1e-6 * abs(size) and round(size) in _TIME_UNITS
    words = _unit_words(name, round(size), factor > 1) if whole and nice and _timed(name, round(size)) else ""
    if words:
        yield ValueChange("time_unit", mask, {"factor": factor, "unit": words})
    elif repeated and factor in (2.0, 3.0, 4.0, 5.0, 6.0):
        yield ValueChange("multiplied", mask, {"least": int(factor), "most": int(factor)}, sure=False)
    else:
        yield ValueChange("factor", mask, {"factor": factor}, sure=nice)


def _timed(name: str, unit: int) -> bool:
    """Whether such a factor is one unit of time for another, by the column's name."""
    return bool(_OF_TIME.search(name)) or not (_TIME_UNITS[unit][1] or _NOT_OF_TIME.search(name))


def _shares(frame: dict[str, pl.Series], both: pl.DataFrame, chance: _Chance) -> Iterator[ValueChange]:
    """Amounts where their shares of all are expected, or shares where amounts are: told by all of them."""
    e, a = both.get_column("e"), both.get_column("a")
    if len(both) < len(frame["e"]) or min(e.n_unique(), a.n_unique()) < 2:
        return
    for shares, amounts, digits, wanted in ((e, a, chance.e_digits, True), (a, e, chance.a_digits, False)):
        every, of = number(shares.sum()), number(amounts.sum())
        half = 0.5 * 10.0**-digits
        if min(number(shares.min()), number(amounts.min())) < 0 or of <= 0 or (digits < 1 and len(both) < 3):
            continue
        for whole in (1.0, 100.0):
            noise = _SHARE_NOISE * whole
            if half > _COARSE * whole:
                continue
            likely = abs(every - whole) <= min(half * len(both), 0.02 * whole) + noise
            # cents, percent and the like are told by their factor
            if not likely or any(abs(of - whole * one) <= 0.01 * whole * one for one in _NICE | {1.0}):
                continue
            if number((amounts / of * whole - shares).abs().max()) <= half + noise:
                other = _of_another_whole(amounts, of, whole, digits)
                said = {"wanted": wanted, "other": other}
                yield ValueChange("shares", pl.repeat(True, len(both), eager=True), said)
                return


_SHARE_NOISE = 1e-9
_COARSE = 0.05
"""Of a whole: shares that are rounded to more may be those of any amounts."""


def _of_another_whole(amounts: pl.Series, of: float, whole: float, digits: int) -> bool:
    """Whether numbers may be shares themselves, of fewer or more rows (percent of the paid orders, not of all)."""
    if not whole / 5 <= of <= whole * 5 or number(amounts.max()) > 2 * whole:
        return False
    return decimals_of(amounts) > 0 or (digits < 1 and whole > 1)


def _complement(frame: dict[str, pl.Series], chance: _Chance) -> Iterator[ValueChange]:
    """The share of all others, in percent or as a part of 1."""
    room = 10.0 ** -min(chance.a_digits, chance.e_digits)  # of both, each rounded
    tolerance = 1.01 * room if room < 1 else 0.0
    for whole in (100.0, 1.0):
        inside = pl.col("e").is_between(0, whole) & pl.col("a").is_between(0, whole)
        mask = series(frame, true(inside & ((pl.col("e") + pl.col("a") - whole).abs() <= tolerance + 1e-9)))
        if int(mask.sum()) * chance.per_row(tolerance) >= 2.5:
            yield ValueChange("complement", mask, {"whole": int(whole)}, sure=False)
            return


def _offset(frame: dict[str, pl.Series], both: pl.DataFrame, chance: _Chance) -> Iterator[ValueChange]:
    if not chance.a_range and chance.distinct > 1:
        return  # one value is above several by no amount, however large they are beside it
    digits = min(max(chance.a_digits, chance.e_digits), 9)
    gaps = both.select((pl.col("a") - pl.col("e")).round(digits).alias("g")).get_column("g")
    offset = float(gaps.value_counts(sort=True).row(0)[0])
    if offset == 0:
        return
    gap = pl.col("a") - pl.col("e") - offset
    size = pl.max_horizontal(pl.col("a").abs(), pl.col("e").abs())
    room = pl.min_horizontal(_CLOSE * size, 0.01 * abs(offset))  # of large numbers a billionth is much
    mask = series(frame, true(gap.abs() <= room + 1e-12))
    rows = int(mask.sum())
    distinct = frame["e"].filter(mask).n_unique()
    if rows >= 3 and distinct >= 2 and (rows - 1) * chance.per_row() >= 2.5:
        yield ValueChange("offset", mask, {"offset": offset}, sure=False)


_WIDEST = 1e12
"""Wider than any step to which numbers are rounded."""


_ROUNDINGS = ("rounded", "truncated", "rounded_down", "rounded_up")


def _rounding(
    frame: dict[str, pl.Series], both: pl.DataFrame, decimals: int, codes: Sequence[str] = _ROUNDINGS
) -> Iterator[ValueChange]:
    """Numbers that are expected with so many decimals, and answered with fewer."""
    gap = both.select((pl.col("a") - pl.col("e")).abs().alias("g")).get_column("g")
    largest = number(gap.quantile(_ENOUGH, "higher") if len(gap) >= 10 else gap.max())
    if not 0 < largest < _WIDEST:
        return
    biggest = number(both.get_column("e").abs().max())
    for code in codes:
        room = 2 * largest * (1 - 1e-6) if code == "rounded" else largest
        digits = math.floor(-math.log10(room) + (1e-9 if code == "rounded" else 0.0))
        if not -9 <= digits <= 8:
            continue
        finer = decimals - digits
        if finer <= 0 or (digits < 0 and biggest < 10.0**-digits):
            continue  # no digits were lost, or nothing comes near a single step
        mask = series(frame, _rounded(code, digits))
        rows = int(mask.sum())
        if code == "rounded" and _halved(frame, mask, digits):
            continue
        if code == "rounded_up" and _all_the_same(frame, mask):
            continue
        if digits < 0 and 2 * int((mask & (frame["a"] != 0).fill_null(False)).sum()) < rows:
            continue  # zeros: any step is wide enough for these
        # one number in several rows is near a round one as easily as in one
        proof = rows if digits >= 0 else pl.DataFrame(frame).filter(mask).n_unique()
        if rows >= _ENOUGH * len(both) and proof * finer >= (1 if digits >= 0 else 4):
            yield ValueChange(code, mask, {"digits": digits})
            return


def _all_the_same(frame: dict[str, pl.Series], mask: pl.Series) -> bool:
    """Whether different numbers came to one: 1 lies above every share, as where a condition counts only what it is
    true of."""
    e, a = (frame[side].filter(mask).n_unique() for side in "ea")
    return a == 1 < e


def _halved(frame: dict[str, pl.Series], mask: pl.Series, digits: int) -> bool:
    """Whether all that differs lies half a step nearer to 0: rounding takes a half away from it, a division of whole
    numbers cuts it off."""
    step = 10.0**-digits
    less = pl.DataFrame(frame).filter(mask).select((pl.col("e").abs() - pl.col("a").abs()).alias("g"))
    return len(less) > 0 and bool((less.get_column("g") - step / 2).abs().le(1e-6 * step).all())


def _not_rounded(frame: dict[str, pl.Series], both: pl.DataFrame, chance: _Chance) -> Iterator[ValueChange]:
    """Numbers with all their digits where rounded ones are expected."""
    turned = {"e": frame["a"], "a": frame["e"]}
    for change in _rounding(turned, both.select(e="a", a="e"), chance.a_digits, ("rounded",)):
        if change.parameters["digits"] >= 0:
            yield ValueChange("not_rounded", change.mask, change.parameters)


_EXPONENT = 1e15
"""Numbers from which on floats are written with an exponent, or soon will be."""


def _significant(frame: dict[str, pl.Series], both: pl.DataFrame) -> Iterator[ValueChange]:
    """Numbers of several sizes that have so many digits each (1.235e11 for 123,456,789,012)."""
    given = both.get_column("a")
    for digits in range(2, 8):
        short = (given.round_sig_figs(digits) - given).abs() <= 1e-12 * given.abs()
        if int(short.sum()) < _ENOUGH * len(given):
            continue
        nearest = pl.col("e").round_sig_figs(digits)
        mask = series(frame, true((pl.col("a") - nearest).abs() <= 1e-12 * nearest.abs()))
        rows, large = int(mask.sum()), number(given.abs().min()) >= _EXPONENT
        if rows >= _ENOUGH * len(both) and min(rows, both.n_unique()) * digits >= (2 if large else 6):
            yield ValueChange("significant", mask, {"digits": digits})
        return


def _rounded(code: str, digits: int) -> pl.Expr:
    step = 10.0**-digits
    e, a = pl.col("e"), pl.col("a")
    steps = a / step
    # What a float itself leaves open, no more: any large number would be whole, and within a step of any other.
    room = pl.min_horizontal(1e-6 + _ULPS * steps.abs(), 0.05)
    whole = (steps.abs() <= _COUNTABLE) & ((steps - steps.round(0)).abs() <= room)
    whole = whole & ((steps.round(0) != 0) | (a == 0))  # 0.4 is no whole million
    gap = (a - e).abs()
    slack = 1e-9 * step + pl.min_horizontal(_CLOSE * 1e-3 * e.abs(), 0.01 * step)
    if code == "rounded":
        return true(whole & (gap <= step / 2 + slack))
    inside = whole & (gap < step + slack)
    if code == "truncated":
        return true(inside & (a.abs() <= e.abs() + slack))
    return true(inside & ((a <= e + slack) if code == "rounded_down" else (a >= e - slack)))


_QUOTIENT = 2
"""Decimals that an average has beyond its sum's, at least: a join that repeats rows adds or takes hardly one."""
_MOST_ROWS = 100_000


def _averages(frame: dict[str, pl.Series], both: pl.DataFrame, chance: _Chance) -> Iterator[ValueChange]:
    """Sums where averages are expected, or the other way round: a sum is its average times how many there are."""
    if not chance.averaged:
        return
    given = chance.a_digits > chance.e_digits
    one, of = (pl.col("a"), pl.col("e")) if given else (pl.col("e"), pl.col("a"))
    times = (of / one).round(0)
    counted = (one != 0) & times.is_between(1, _MOST_ROWS) & ((of - times * one).abs() <= _CLOSE * of.abs())
    mask = series(frame, true(counted))
    found = pl.DataFrame(frame).filter(mask).select(k=times.cast(pl.Int64), v=one.abs())
    counts = found.get_column("k")
    if len(found) < _ENOUGH * len(both) or counts.n_unique() < 2:
        return
    # by chance a number is a multiple of another once in as many cases as that has units, those apart that any has
    unit = 10 ** max(chance.a_digits, chance.e_digits)
    units = [round(value * unit) for value in found.get_column("v").head(_SOME).to_list()]
    seldom = sum(math.log10(max(one // math.gcd(one, unit), 1)) for one in units)
    if seldom >= 2.0 + 0.5 * len(units):
        figures = {"least": int(number(counts.min())), "most": int(number(counts.max())), "given": given}
        yield ValueChange("averages", mask, figures, sure=False)


_SOME = 200


def _multiples(frame: dict[str, pl.Series], both: pl.DataFrame, chance: _Chance) -> Iterator[ValueChange]:
    times = (pl.col("a") / pl.col("e")).round(0)
    several = true((pl.col("e") != 0) & (times >= 2) & (times <= 1000) & _near(times))
    mask = series(frame, several)
    rows = int(mask.sum())
    if rows < 2:
        return
    found = pl.DataFrame(frame).filter(mask)
    factors = found.select(times.cast(pl.Int64).alias("k")).get_column("k")
    least, most = int(number(factors.min())), int(number(factors.max()))
    if least == most:
        return
    unit = 10.0**-chance.a_digits
    # a number is a multiple of another by chance once in as many cases as the other has units
    seldom = found.select((pl.col("e").abs() / unit).clip(lower_bound=1.0).log10().sum()).item()
    if number(seldom) >= 2.0 + 0.5 * rows and most <= 100:
        yield ValueChange("multiplied", mask, {"least": least, "most": most}, sure=False)


# -- Whole numbers beyond what floats tell apart.


HELD, _LARGEST = 2**53, 2**1023
"""Whole numbers below the first are told apart by floats, those beyond the second are none."""
_DIGITS = 400
FIRST = 10
"""Rows that are looked at before all of them: of most columns none holds such numbers."""


def large(cell: int | None) -> bool:
    """Whether it is a whole number that floats may not tell from its neighbours."""
    return cell is not None and abs(cell) >= HELD


def whole_cells(column: ReadColumn, rows: pl.Series) -> list[int | None]:
    """Whole numbers, also such that are written as texts; None for what is none."""
    if not len(rows) or column.kind not in ("exact", "float", "text", "mixed"):
        return [None] * len(rows)
    return [_whole(cell) for cell in column.cells_at(rows)]


def _whole(cell: Any) -> int | None:
    if isinstance(cell, str) and len(cell) < _DIGITS and cell.lstrip("-").isdecimal():
        return int(cell)
    if not isinstance(cell, int | float | Decimal) or isinstance(cell, bool):
        return None
    return int(cell) if abs(cell) < _LARGEST and cell == int(cell) else None


def as_floats(number: int) -> tuple[int, ...]:
    """What becomes of a whole number that is read as a float, also where it is written out with its shortest digits and
    zeros; nothing where it is still the same."""
    if abs(number) >= _LARGEST:
        return ()
    held = float(number)
    return tuple(one for one in (int(held), int(Decimal(repr(held)))) if one != number)
