"""One finding about rows that differ, as data, and its line in plain English."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tui_eval.frames.numbers import shortest_text
from tui_eval.guard.spelling import some_of
from tui_eval.guard.text import same_to_the_eye

if TYPE_CHECKING:
    from tui_eval.frames.query_words import OwnQuery

_NAME = 40
_BLANK = re.compile(r"\s")
_WORDS = {
    "a", "all", "an", "and", "any", "each", "in", "is", "it", "no", "none", "not", "of", "one", "only", "or", "row", "rows",
    "some", "that", "the", "this", "to", "where", "which", "with",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """What differences have in common.

    `code` is its kind, a word that stays (`factor`, `fan_out`, `limit`); `columns` those that it is about, as
    the expected side calls them; `explained` of `total` rows that differ in that way are explained by it,
    counted; `parameters` what was measured (`{"factor": 100}`), `conclusive` whether nothing else needs to be
    said of these rows (a place alone, "only in amount", is not). `own` is what is known of the agent's query: no guess
    is made that it refutes.
    """

    code: str
    columns: tuple[str, ...]
    explained: int
    total: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    conclusive: bool = True
    own: OwnQuery = ""

    def __str__(self) -> str:
        return sentence(self)


def sentence(finding: Finding) -> str:
    """A finding in one line of plain English, names cut to 40 characters.

    Raises:
        KeyError: its code is none of those that this version knows.
    """
    return _SENTENCES[finding.code](finding)


def what(finding: Finding) -> str:
    """A finding without the rows that it was counted in: `amount ×100`; the whole line where it is about rows."""
    return sentence(finding).partition(f" {rows_of(finding)}")[0]


def codes() -> tuple[str, ...]:
    """All kinds of findings."""
    return tuple(_SENTENCES)


def name_of(column: str) -> str:
    """A column's name on one line; in quotes, where there are blanks at its ends, or where it reads as a word of the
    sentence (`a`, `no`, `row`)."""
    shown = " ".join(column.split())
    if column != column.strip() or not column or shown.casefold() in _WORDS:
        shown = f'"{_BLANK.sub(" ", column)}"'
    return shown if len(shown) <= _NAME else shown[: _NAME - 1] + "…"


def names_of(columns: tuple[str, ...] | list[str], most: int = 3) -> str:
    """Columns in a row, as a person lists them."""
    shown = [name_of(column) for column in columns[:most]]
    if len(columns) > most:
        return f"{', '.join(shown)} and {len(columns) - most} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def figure(number: float) -> str:
    """A factor or an offset as short as it can be written."""
    if number == int(number) and abs(number) < 1e15:
        return f"{int(number):,}"
    short = float(f"{number:.6g}")
    return shortest_text(short if abs(short) != 1 else float(f"{number:.9g}"))


def _amount(number: float) -> str:
    """An offset with the digits of the data, unless these are a float's."""
    whole = shortest_text(number)
    return whole if "." in whole and len(whole) <= _DIGITS else figure(number)


_DIGITS = 12


def times(factor: float) -> str:
    """A factor as people write it: `×100`, `÷1,000`."""
    if 0 < abs(factor) < 1:
        inverse = 1 / factor
        if abs(inverse - round(inverse)) < 1e-6 * abs(inverse) and abs(inverse) > 1.5:
            return f"÷{figure(round(inverse))}"
        short = round(inverse, 2)  # a tax that is left out
        if abs(inverse - short) < 1e-5 * abs(inverse) and len(shortest_text(float(f"{factor:.6g}"))) > 6:
            return f"÷{figure(short)}"
    return f"×{figure(factor)}"


def rows_of(finding: Finding, what: str = "that differ") -> str:
    """`in 12 of 13 rows that differ`."""
    noun = "row" if finding.total == 1 else "rows"
    verb = {"that differ": "that differs"}.get(what, what) if finding.total == 1 else what
    return f"in {finding.explained:,} of {finding.total:,} {noun} {verb}"


def _verb(finding: Finding, one: str, many: str) -> str:
    return one if len(finding.columns) == 1 else many


def _guess(finding: Finding, words: str = "", join: str = "") -> str:
    """What the agent's query may have done, after a colon: nothing where it gives the right rows, `join` only where it
    may have one."""
    if finding.own == "right":
        return ""
    words += "" if finding.own == "joinless" else join
    return f": {words}" if words else ""


def _about(words: Callable[[Finding], str]) -> Callable[[Finding], str]:
    """`amount ×100 in 13 of 13 rows that differ`."""
    return lambda finding: f"{names_of(finding.columns)} {words(finding)} {rows_of(finding)}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _digits(finding: Finding) -> str:
    digits = finding.parameters["digits"]
    if digits > 0:
        return f"to {_counted(digits, 'decimal')}"
    return "to whole numbers" if digits == 0 else f"to the nearest {10**-digits:,}"


def _multiplied(finding: Finding) -> str:
    least, most = finding.parameters["least"], finding.parameters["most"]
    many = f"×{least}" if least == most else f"whole multiples (×{least} to ×{most})"
    guess = _guess(finding, join="the same rows counted several times, as a join does?")
    return f"{many} {rows_of(finding)}{guess}"


def _averages(finding: Finding) -> str:
    p = finding.parameters
    given, wanted = ("averages", "sums") if p["given"] else ("sums", "averages")
    return f"{given} where {wanted} are expected (of {p['least']:,} to {p['most']:,} values each)"


def _later(amount: int, unit: str) -> str:
    return f"{_counted(abs(amount), unit)} {'later' if amount > 0 else 'earlier'}"


def _duration(seconds: float) -> str:
    size = abs(seconds)
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if size % length == 0 and size >= length:
            return _later(int(seconds // length), unit)
    unit, length = ("ns", 1e-9) if size < 1e-6 else ("µs", 1e-6) if size < 1e-3 else ("s", 1.0)
    return f"{figure(round(size / length, 9))} {unit} {'later' if seconds > 0 else 'earlier'}"


def _time_zone(finding: Finding) -> str:
    hours = finding.parameters["hours"]
    words = " or ".join(figure(abs(hour)) for hour in hours)
    direction = "later" if hours[0] > 0 else "earlier"
    plural = "" if [abs(hour) for hour in hours] == [1] else "s"
    return f"{words} hour{plural} {direction} {rows_of(finding)}: another time zone"


def _join_word(finding: Finding) -> str:
    grouped = finding.parameters.get("grouped") or ()
    guess = (
        _guess(finding, f"grouped by {names_of(grouped)} too", ", or a join fans out")
        if grouped
        else _guess(finding, join="a join fans out")
    )
    guess = "" if finding.parameters.get("strange") else guess
    alike = ": the same rows again" if finding.parameters["alike"] else guess
    often = "once" if finding.explained == 1 else f"{finding.explained:,} times"
    verb = _verb(finding, "repeats", "repeat")
    return f"{names_of(finding.columns)}, unique in expected, {verb} {often}{alike}"


def _condition(finding: Finding) -> str:
    wrong = finding.parameters.get("wrong", 0)
    exact = finding.explained == finding.total and not wrong
    where = f"where {finding.parameters['where']}"
    if exact:
        all_of = (
            "the only row that differs is the one"
            if finding.total == 1
            else f"all {finding.total:,} rows that differ are those"
        )
        return f"{all_of} {where}"
    words = f"{finding.explained:,} of {finding.total:,} rows that differ are {where}"
    return words + (
        f", and {_counted(wrong, 'row')} there {'is' if wrong == 1 else 'are'} right" if wrong else ""
    )


_OF_NULLS = re.compile(r" is null(?:\)|$| and )")


def _filter(word: str, guess: str, join: str) -> Callable[[Finding], str]:
    """`join` is what may be the cause as well where the rows have nothing in a column."""

    def words(finding: Finding) -> str:
        wrong = finding.parameters.get("wrong", 0)
        of = f"{finding.explained:,} of {finding.total:,}"
        rows = f"all {finding.total:,}" if finding.explained == finding.total else of
        tail = (
            f" (so {'is' if wrong == 1 else 'are'} {wrong:,} other{'' if wrong == 1 else 's'})"
            if wrong
            else ""
        )
        where = finding.parameters["where"]
        told = _guess(finding, guess, join if _OF_NULLS.search(where) else "")
        return f"{rows} {word} rows are where {where}{tail}{told}"

    return words


def _grouped_by(columns: tuple[str, ...], unit: str) -> str:
    """What rows are grouped by; with a `unit`, the first column is a time, of which that is taken."""
    if not unit:
        return names_of(columns)
    time, *others = columns
    period = unit if time.casefold() == unit else f"{unit} of {name_of(time)}"
    return names_of([*others, period])


def _granularity(finding: Finding) -> str:
    p = finding.parameters
    by = f" by {_grouped_by(p['by'], p.get('unit') or '')}" if p.get("by") else ""
    measure = names_of(finding.columns)
    if p["finer"]:
        grouped = f"; it is grouped by {names_of(p['grouped'])} too" if p.get("grouped") else ""
        return (
            f"too fine: summed{by}, the answer's {p['rows']:,} rows give {measure} of "
            f"{finding.explained:,} of {finding.total:,} expected rows{grouped}"
        )
    return (
        f"too coarse: summed{by}, the {p['rows']:,} expected rows give {measure} of "
        f"{finding.explained:,} of {finding.total:,} rows of the answer"
    )


def _renamed(finding: Finding) -> str:
    given = finding.parameters["names"]
    pairs = [
        f"{name_of(e)} {same_to_the_eye(e, a) or f'as {name_of(a)}'}"
        for e, a in zip(finding.columns, given, strict=True)
    ]
    return (
        f"the answer has {some_of(pairs, 3)} ({finding.explained:,} of {finding.total:,} values are the same)"
    )


def _neighbour(finding: Finding) -> str:
    step = finding.parameters["step"]
    where = "before" if step < 0 else "after"
    distance = "the row" if abs(step) == 1 else "the second row"
    return f"has the value of {distance} {where} it {rows_of(finding)}"


def _limit(finding: Finding) -> str:
    p = finding.parameters
    guess = _guess(finding, "a LIMIT?" if p.get("limit", True) else "")
    of = f"{names_of(finding.columns)} of " if p.get("named") else ""
    if p["first"]:
        return (
            f"the answer has {of}the first {p['rows']:,} of {p['of']:,} expected rows and ends there{guess}"
        )
    return f"the answer has {of}exactly {p['rows']:,} of {p['of']:,} expected rows{guess}"


def _no_limit(finding: Finding) -> str:
    p = finding.parameters
    of = f"{names_of(finding.columns)} of " if p.get("named") else ""
    guess = _guess(finding, "its LIMIT is missing or larger")
    return f"the answer begins with {of}the {p['rows']:,} expected rows and has {finding.explained:,} more{guess}"


def _outermost_day(finding: Finding) -> str:
    last = finding.parameters["last"]
    guess = _guess(finding, f"{'< for <=' if last else '> for >='} in the filter?")
    day = f"{name_of(finding.columns[0])}, {finding.parameters['day']}"
    return f"the {'last' if last else 'first'} {day}, is missing{guess}"


def sorted_words(column: str, descending: bool) -> str:
    """How rows are sorted that are expected the other way (`descending`)."""
    ways = ("descending", "ascending")
    wanted, given = ways if descending else ways[::-1]
    return f"sorted by {name_of(column)} {given}, not {wanted}"


def _totals(finding: Finding) -> str:
    extra = finding.parameters["extra"]
    rows = (
        f"all {finding.total:,} {'extra' if extra else 'missing'} rows are"
        if finding.total > 1
        else (f"the {'extra' if extra else 'missing'} row is")
    )
    sums = f"{'the sum' if finding.total == 1 else 'sums'} of others, in {names_of(finding.columns)}"
    guess = "a ROLLUP, or a row for the total?" if extra else "a ROLLUP is missing, or the row for the total?"
    guess = "a ROLLUP by other columns?" if finding.parameters.get("both") else guess
    return f"{rows} {sums}{_guess(finding, guess)}"


def _other_end(finding: Finding) -> str:
    words = sorted_words(finding.columns[0], finding.parameters["descending"])
    return f"none of the {finding.total:,} rows is right: {words}, the answer has the other end"


def _order(finding: Finding) -> str:
    words = "the same rows in another order"
    if not finding.columns:
        return words
    if "descending" not in finding.parameters:
        return f"{words}: those that share {name_of(finding.columns[0])}"
    return f"{words}: {sorted_words(finding.columns[0], finding.parameters['descending'])}"


def _rounded(finding: Finding) -> str:
    return f"rounded {_digits(finding)} {rows_of(finding)}"


def _running(finding: Finding) -> str:
    p = finding.parameters
    if "over_all" in p:
        ways = ("over all rows", f"by {name_of(p['by'])}")
        given, wanted = ways if p["over_all"] else ways[::-1]
        return f"a running total {given}, not {wanted}"
    by = f" by {name_of(p['by'])}" if p["by"] else ""
    figure, rows = p.get("figure", "total"), p.get("window", 0)
    words = f"a moving {figure} of {rows:,} rows" if rows else f"a running {figure}{by}"
    if p["added"]:
        return words
    return f"not added up to {words}" if figure == "total" and not rows else f"as it is, not {words}"


def _of_group(finding: Finding) -> str:
    p = finding.parameters
    words = f"the {p['figure']} of all with the same {name_of(p['by'])}"
    return words if p["given"] else f"as it is, not {words}"


def _shares(finding: Finding) -> str:
    wanted, other = finding.parameters["wanted"], finding.parameters.get("other", False)
    if not other:
        return (
            f"{'amounts where their shares of all' if wanted else 'shares of all where amounts'} are expected"
        )
    if wanted:
        return "amounts, or shares of another whole, where shares of all are expected"
    return "shares of all where amounts, or shares of another whole, are expected"


def _group_shares(finding: Finding) -> str:
    part = f"shares of all with the same {name_of(finding.parameters['by'])}"
    return f"shares of all, not {part}" if finding.parameters["wanted"] else f"{part}, not shares of all"


_RANKS = {
    "dense": "ranked without gaps after ties (DENSE_RANK), not with them (RANK)",
    "gaps": "ranked with gaps after ties (RANK), not without (DENSE_RANK)",
    "numbered": "numbered row by row (ROW_NUMBER): rows that tie should share a rank",
    "ties": "ranked, so that ties share a rank: each row should have its own (ROW_NUMBER)",
}


def _ranked(finding: Finding) -> str:
    how, by = finding.parameters["how"], name_of(finding.parameters["by"])
    if how == "over all":
        return f"ranked over all rows, not by {by}"
    return f"ranked by {by}, not over all rows" if how == "by part" else _RANKS[how]


_DAYS = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")


def _unit(finding: Finding) -> str:
    return f"{times(finding.parameters['factor'])} {rows_of(finding)}: {finding.parameters['unit']}"


def _plain(words: str) -> Callable[[Finding], str]:
    return _about(lambda finding: words)


_SENTENCES: dict[str, Callable[[Finding], str]] = {
    # numbers
    "factor": _about(lambda f: times(f.parameters["factor"])),
    "percent": lambda f: (
        f"{names_of(f.columns)} {times(f.parameters['factor'])} {rows_of(f)}: "
        + (
            "percent where a share is expected"
            if f.parameters["factor"] > 1
            else "a share where percent are expected"
        )
    ),
    "time_unit": lambda f: f"{names_of(f.columns)} {_unit(f)}",
    "multiplied": lambda f: f"{names_of(f.columns)} {_multiplied(f)}",
    "averages": _about(_averages),
    "offset": _about(
        lambda f: (
            f"{_amount(abs(f.parameters['offset']))} too {'high' if f.parameters['offset'] > 0 else 'low'}"
        )
    ),
    "complement": lambda f: (
        f"{names_of(f.columns)} {f.parameters['whole']} minus the expected value {rows_of(f)}: the share of the rest"
    ),
    "shares": _about(_shares),
    "sign": _plain("with the other sign"),
    "opposite": _plain("the opposite"),
    "one_value": _about(
        lambda f: (
            f"one value for all rows ({f.parameters['value']}{', the sum of all' if f.parameters['sum'] else ''})"
        )
    ),
    "running": _about(_running),
    "of_group": _about(_of_group),
    "group_shares": _about(_group_shares),
    "ranked": _about(_ranked),
    "rounded": lambda f: f"{names_of(f.columns)} {_rounded(f)}",
    "not_rounded": _about(lambda f: f"not rounded {_digits(f)}"),
    "truncated": _about(lambda f: f"cut off, not rounded, {_digits(f)}"),
    "rounded_down": _about(lambda f: f"rounded down {_digits(f)}"),
    "rounded_up": _about(lambda f: f"rounded up {_digits(f)}"),
    "significant": _about(lambda f: f"rounded to {f.parameters['digits']} significant digits"),
    "lost_digits": _plain("read as a float, digits beyond 2^53 are lost"),
    "zero_as_one": lambda f: (
        f"{names_of(f.columns)} 1 instead of 0 {rows_of(f)}"
        f"{_guess(f, join='does count(*) count rows that an outer join adds?')}"
    ),
    "unit": _about(lambda f: f"with {name_of(f.parameters['unit'])}, a text instead of a number"),
    # nulls
    "null_as_zero": _plain("0 instead of null"),
    "null_as_empty": _plain("an empty text instead of null"),
    "null_as_text": _about(lambda f: f"the text {f.parameters['text']} instead of null"),
    "null_filled": _plain("a value instead of null"),
    "zero_as_null": _plain("null instead of 0"),
    "empty_as_null": _plain("null instead of an empty text"),
    "value_as_null": _plain("null instead of a value"),
    "value_as_zero": _plain("0 instead of a value"),
    "kind": _about(lambda f: f"{f.parameters['given']} instead of {f.parameters['wanted']}"),
    # texts
    "case": _plain("in other case"),
    "unseen": _about(lambda f: f"the same but for {f.parameters['characters']}"),
    "blanks": _plain("with other blanks"),
    "composed": _plain("with the same letters composed otherwise (Unicode normalisation)"),
    "other_form": _plain("with other forms of the same characters (as ﬁ for fi)"),
    "accents": _plain("with other accents"),
    "zeros": _plain("with other leading or trailing zeros"),
    "punctuation": _plain("with other punctuation"),
    "spelling": _plain("with other case, blanks, accents, punctuation or letters that look alike"),
    "elements": _plain("with the same elements in another order"),
    "cut": _about(
        lambda f: (
            f"cut to {_counted(f.parameters['length'], 'character')}"
            if f.parameters.get("length")
            else "cut short"
        )
    ),
    # times
    "days": _about(lambda f: _later(f.parameters["days"], "day")),
    "months": _about(
        lambda f: (
            _later(f.parameters["months"] // 12, "year")
            if f.parameters["months"] % 12 == 0
            else _later(f.parameters["months"], "month")
        )
    ),
    "date_format": _about(lambda f: f"written as {f.parameters['format']}"),
    "time_zone": lambda f: f"{names_of(f.columns)} {_time_zone(f)}",
    "day_border": lambda f: (
        f"{names_of(f.columns)} partly on the {'next day' if f.parameters['later'] else 'day before'} {rows_of(f)}: "
        "days of another time zone?"
    ),
    "weekday": lambda f: (
        f"{names_of(f.columns)} on {_DAYS[f.parameters['given']]} where {_DAYS[f.parameters['wanted']]} are expected "
        f"{rows_of(f)}{_guess(f, 'weeks that begin on another day?')}"
    ),
    "time_shift": _about(lambda f: _duration(f.parameters["seconds"])),
    "time_cut": _about(lambda f: f"cut to the {f.parameters['unit']}"),
    "not_cut": _about(
        lambda f: (
            f"the last day of the {f.parameters['unit']}, not the first"
            if f.parameters.get("ends")
            else f"not cut to the {f.parameters['unit']}"
        )
    ),
    "day_and_month": _plain("with day and month exchanged"),
    "time_text": lambda f: (
        f"{names_of(f.columns)}, text, {_verb(f, 'has', 'have')} the same times written otherwise {rows_of(f)}: "
        "text is compared as it is"
    ),
    "zone_named": _about(
        lambda f: (
            "a midnight of a time zone where a date is expected"
            if f.parameters.get("midnight")
            else "the same time, but only one side names its zone"
        )
    ),
    # other columns and rows
    "swapped": lambda f: f"{names_of(f.columns)} are exchanged {rows_of(f)}",
    "other_column": lambda f: (
        f"{name_of(f.columns[0])} has what {name_of(f.parameters['holds'])} should have {rows_of(f)}"
    ),
    "elsewhere": lambda f: (
        f"{name_of(f.columns[0])} differs, the expected values are in the answer's {name_of(f.parameters['name'])} "
        f"{rows_of(f)}"
    ),
    "renamed": _renamed,
    "pivoted": lambda f: (
        f"the answer has {names_of(f.columns)} as {'columns' if f.parameters['wide'] else 'rows'}, "
        f"expected as {'rows' if f.parameters['wide'] else 'columns'} (the values of {name_of(f.parameters['name'])})"
    ),
    "neighbour": lambda f: f"{names_of(f.columns)} {_neighbour(f)}",
    "reversed": lambda f: (
        f"{names_of(f.columns)} {_verb(f, 'stands', 'stand')} in reverse order {rows_of(f)}"
    ),
    "permuted": lambda f: (
        f"{names_of(f.columns)} {_verb(f, 'has', 'have')} the right values in the wrong rows {rows_of(f)}"
    ),
    "condition": _condition,
    "one_column": lambda f: f"only {name_of(f.columns[0])} differs, {rows_of(f)}",
    # rows
    "order": _order,
    "fan_out": _join_word,
    "duplicates": lambda f: (
        f"{f.explained:,} of {f.total:,} extra rows repeat expected ones"
        f"{_guess(f, 'DISTINCT is missing', ', or a join fans out')}"
    ),
    "distinct": lambda f: (
        f"{f.explained:,} of {f.total:,} missing rows repeat others{_guess(f, 'DISTINCT or UNION took them away')}"
    ),
    "too_narrow": _filter("missing", "the filter is too narrow", ", or an inner join leaves them out"),
    "too_wide": _filter("extra", "the filter is too wide", ", or an outer join adds them"),
    "missing_groups": lambda f: (
        f"all {f.total:,} missing rows have {f.parameters['where']}"
        f"{_guess(f, 'groups without rows are left out', ' (an inner join?)')}"
    ),
    "totals": _totals,
    "outermost_day": _outermost_day,
    "limit": _limit,
    "no_limit": _no_limit,
    "other_end": _other_end,
    "granularity": _granularity,
}
