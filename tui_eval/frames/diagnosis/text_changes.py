"""How texts were changed: case, blanks, accents, zeros, a cut; and what stands in place of nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import polars as pl

from tui_eval.frames.alignment import loose_texts
from tui_eval.frames.diagnosis.changes import ValueChange, series, true
from tui_eval.frames.typed_columns import Kind
from tui_eval.guard.text import LOOK_ALIKES, seen, unseen

_NOTHING = ("null", "none", "nan", "n/a", "na", "nil", "-", "--", "missing", "unknown", "undefined", "(null)")


def null_changes(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """What stands where nothing is expected, and the other way round (any kind of values)."""
    e_null, a_null = e.is_null(), a.is_null()
    if e_null.any():
        zero, empty, word = _zero(a), _empty(a), _word(a)
        yield ValueChange("null_as_zero", e_null & zero)
        yield ValueChange("null_as_empty", e_null & empty)
        if (e_null & word).any():
            text = a.filter(e_null & word).value_counts(sort=True).row(0)[0]
            same = series({"a": a}, true(pl.col("a") == text))
            yield ValueChange("null_as_text", e_null & same, {"text": str(text)})
        yield ValueChange("null_filled", e_null & ~a_null & ~zero & ~empty & ~word)
    if a_null.any():
        zero, empty = _zero(e), _empty(e)
        yield ValueChange("zero_as_null", a_null & zero)
        yield ValueChange("empty_as_null", a_null & empty)
        yield ValueChange("value_as_null", a_null & ~e_null & ~zero & ~empty)


def not_finite_changes(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """What stands where a number is expected that JSON does not have."""
    value = pl.col("e")
    for wanted, held in (
        ("NaN", value.is_nan()),
        ("infinity", value == float("inf")),
        ("-infinity", value == float("-inf")),
    ):
        there = series({"e": e}, true(held))
        if not there.any():
            continue
        zero, text = _zero(a), pl.repeat(False, len(a), eager=True)
        if a.dtype == pl.String:
            finite = pl.col("a").cast(pl.Float64, strict=False).is_finite().fill_null(False)
            text = series({"a": a}, true(pl.col("a").is_not_null() & ~finite))
        yield ValueChange("kind", there & zero, {"wanted": wanted, "given": "0"})
        yield ValueChange("kind", there & text, {"wanted": wanted, "given": "a text"})
        number = there & a.is_not_null() & ~zero & ~text
        yield ValueChange("kind", number, {"wanted": wanted, "given": "a finite number"})
        yield ValueChange("kind", there & a.is_null(), {"wanted": wanted, "given": "null"})


def _zero(values: pl.Series) -> pl.Series:
    if values.dtype.is_numeric():
        return series({"v": values}, true(pl.col("v") == 0))
    if values.dtype == pl.String:
        return series({"v": values}, true(pl.col("v").str.contains(r"^-?0+(?:\.0*)?$")))
    return pl.repeat(False, len(values), eager=True)


def _empty(values: pl.Series) -> pl.Series:
    if values.dtype != pl.String:
        return pl.repeat(False, len(values), eager=True)
    return series({"v": values}, true(pl.col("v").str.strip_chars() == ""))


def _word(values: pl.Series) -> pl.Series:
    if values.dtype != pl.String:
        return pl.repeat(False, len(values), eager=True)
    return series({"v": values}, true(pl.col("v").str.strip_chars().str.to_lowercase().is_in(list(_NOTHING))))


_MARKS = r"[^\p{L}\p{N}.]+"
"""What tells one kind from another in texts that are compared, and blanks."""
_YES, _NO = ("true", "t", "yes", "y"), ("false", "f", "no", "n")


def boolean_changes(expected: Kind, actual: Kind, e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """A boolean as a text or a number, or the other way round: the same truth in another kind (rows that differ
    only, both as texts)."""
    names = {
        "text": "a text",
        "bool": "a boolean",
        "exact": "a number",
        "float": "a number",
    }
    kinds = (expected, actual)
    if (
        kinds.count("bool") != 1
        or not set(kinds) <= set(names)
        or e.dtype != pl.String
        or a.dtype != pl.String
    ):
        return
    plain = {
        name: values.str.replace_all(_MARKS, "").str.to_lowercase() for name, values in (("e", e), ("a", a))
    }
    yes, no = [*_YES, "1", "1.0"], [*_NO, "0", "0.0"]
    (e_yes, e_no), (a_yes, a_no) = (
        (true(pl.col(side).is_in(yes)), true(pl.col(side).is_in(no))) for side in ("e", "a")
    )
    same = series(plain, (e_yes & a_yes) | (e_no & a_no))
    yield ValueChange("kind", same, {"wanted": names[expected], "given": names[actual]})


_WITH_UNIT = r"^\s*([^\d\s+.,-]*)\s*([+-]?\d[\d,]*(?:\.\d+)?)\s*([^\d\s.,][^\d]*)?\s*$"


_TIMES = {
    "k": 1e3, "thousand": 1e3, "tsd": 1e3, "m": 1e6, "mm": 1e6, "mn": 1e6, "mio": 1e6, "million": 1e6,
    "b": 1e9, "bn": 1e9, "mrd": 1e9, "billion": 1e9, "%": 1e-2,
}  # fmt: skip
"""What a number is multiplied by that has such a word behind it."""


_EXPONENT = r"^\s*[+-]?\d+(?:\.(\d+))?[eE]([+-]?\d{1,3})\s*$"


def units(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """Numbers that are right, written with a unit (`25%`, `25 EUR`, `18.5K` for 18512) or an exponent: a text
    that is no number."""
    a = a.str.replace(r"^\x00", "")
    for given, begins in (("a list", r"^\x00?\["), ("an object", r"^\x00?\{")):
        held = series({"a": a}, true(pl.col("a").str.contains(begins)))
        yield ValueChange("kind", held, {"wanted": "a number", "given": given})
    a = _plain_ones(a)
    power = a.str.extract(_EXPONENT, 2).cast(pl.Float64, strict=False)
    if power.is_not_null().any():
        decimals = a.str.extract(_EXPONENT, 1).fill_null("").str.len_chars().cast(pl.Float64)
        parts = {
            "e": e,
            "a": a.str.strip_chars().cast(pl.Float64, strict=False),
            "half": 10.0 ** (power - decimals) / 2,
        }
        near = (pl.col("a") - pl.col("e")).abs() <= pl.col("half") * (1 + 1e-9)
        yield ValueChange(
            "kind", series(parts, true(near)), {"wanted": "a number", "given": "a text with an exponent"}
        )
    unit = pl.concat_str(
        pl.col("a").str.extract(_WITH_UNIT, 1), pl.col("a").str.extract(_WITH_UNIT, 3), ignore_nulls=True
    )
    read = series({"a": a}, pl.when(unit.str.len_chars() > 0).then(unit.str.strip_chars()))
    counts = read.drop_nulls().value_counts(sort=True, name="rows")
    if not len(counts):
        return
    most = str(counts.row(0)[0])
    digits = pl.col("a").str.extract(_WITH_UNIT, 2).str.replace_all(",", "")
    step = 10.0 ** -digits.str.extract(r"\.(\d+)$", 1).str.len_chars().fill_null(0).cast(pl.Float64)
    word = pl.col("a").str.extract(_WITH_UNIT, 3).str.strip_chars().str.to_lowercase()
    size = word.replace_strict(_TIMES, default=1.0, return_dtype=pl.Float64).fill_null(1.0)
    value = digits.cast(pl.Float64, strict=False)
    near = ((value * size - pl.col("e")).abs() <= step * size / 2 * (1 + 1e-9)) | (
        (value - pl.col("e")).abs() <= step / 2 * (1 + 1e-9)
    )
    yield ValueChange(
        "unit", series({"e": e, "a": a, "u": read}, true(near & (pl.col("u") == most))), {"unit": most}
    )


_BETWEEN = r"\s*[,;|]\s*"
"""What stands between the elements of a list that is written as a text (`string_agg`)."""


def elements(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """Lists (as they are compared, in one spelling) that have the same elements in another order, or as one text."""
    plain = {name: values.str.strip_prefix("\0") for name, values in (("e", e), ("a", a))}
    one, other = pl.col("e"), pl.col("a")
    lists = one.str.contains(r"^\[.*\]$") & other.str.contains(r"^\[.*\]$")
    parts = [side.str.slice(1, side.str.len_chars() - 2).str.split(", ").list.sort() for side in (one, other)]
    yield ValueChange("elements", series(plain, true(lists & (parts[0] == parts[1]))))
    joined = other.str.replace_all(_BETWEEN, ", ").str.strip_chars().str.split(", ").list.sort()
    plainly = parts[0].list.eval(pl.element().str.strip_chars("'\""))
    told = true(one.str.contains(r"^\[.*\]$") & lists.not_() & (plainly == joined))
    yield ValueChange("kind", series(plain, told), {"wanted": "a list", "given": "a text"})


def text_changes(e: pl.Series, a: pl.Series) -> Iterator[ValueChange]:
    """What was done to the texts of a column (rows that differ only)."""
    frame = {"e": e, "a": a}
    shared = series(frame, true(pl.col("e").is_not_null() & pl.col("a").is_not_null()))
    if not shared.any():
        return
    some = (
        {name: values.gather_every(len(e) // _SAMPLE) for name, values in frame.items()}
        if len(e) > _MANY
        else {}
    )
    yield from _unseen(frame)  # before other blanks, which would say less of the same rows
    for code, form in (*_FORMS.items(), ("spelling", None)):
        if not some or _explained(some, form).sum() * 10 >= _SAMPLE:
            yield ValueChange(code, _explained(frame, form))
    yield from _cut(frame)


def _unseen(frame: dict[str, pl.Series]) -> Iterator[ValueChange]:
    mask = _explained(frame, _as_seen)
    if mask.any():
        wanted, given = (texts.filter(mask).head(_LOOKED_AT) for texts in frame.values())
        yield ValueChange("unseen", mask, {"characters": unseen("\n".join(wanted), "\n".join(given))})
        return
    mask = _explained(frame, lambda text: _as_seen(text).str.to_lowercase())
    if mask.any():
        wanted, given = ("\n".join(texts.filter(mask).head(_LOOKED_AT)) for texts in frame.values())
        if found := unseen(seen(given), given) or unseen(wanted, seen(wanted)):
            yield ValueChange("unseen", mask, {"characters": f"case and {found}"})


_LOOKED_AT = 100
"""Texts of which the characters that nobody sees are named."""


def _as_seen(text: pl.Expr) -> pl.Expr:
    plain = text.str.replace_all(r"\p{Cf}+", "").str.replace_all(r"\p{Zs}", " ")
    return plain.str.replace_many(list(LOOK_ALIKES), list(LOOK_ALIKES.values()))


_MANY, _SAMPLE = 10_000, 2_000
"""Of more rows than these some are looked at first: what explains less than a tenth of them is not it."""


def _explained(frame: dict[str, pl.Series], form: Callable[[pl.Expr], pl.Expr] | None) -> pl.Series:
    """Which texts are the same in a form (None: without anything that people overlook)."""
    if form is not None:
        return series(frame, true(form(pl.col("e")) == form(pl.col("a"))))
    loose = {name: _plain_ones(texts) for name, texts in frame.items()}
    loose = {name: loose_texts(texts).str.replace_all(r"[^\p{L}\p{N}]+", "") for name, texts in loose.items()}
    return series(loose, true((pl.col("e") == pl.col("a")) & (pl.col("e") != "")))


def _plain_ones(texts: pl.Series) -> pl.Series:
    return pl.select(pl.when(~texts.str.contains(_NESTED)).then(texts)).to_series()


def _number(text: pl.Expr) -> pl.Expr:
    """A number without zeros that do not count; null where the text is none."""
    plain = text.str.contains(r"^[+-]?\d+(?:\.\d*)?$")
    shown = text.str.strip_prefix("+").str.replace(r"^(-?)0+(\d)", "${1}${2}")
    return pl.when(plain).then(shown.str.replace(r"(\.\d*?)0+$", "${1}").str.strip_suffix("."))


_NESTED = r"^[\[{\x00]"
"""How a list or an object begins: its brackets and commas are no punctuation but what it is."""
_FORMS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "case": lambda text: text.str.to_lowercase(),
    "blanks": lambda text: text.str.replace_all(r"[\s\u{200b}\u{feff}]+", ""),
    "composed": lambda text: text.str.normalize("NFC"),
    "other_form": lambda text: text.str.normalize("NFKC"),
    "accents": lambda text: text.str.normalize("NFD").str.replace_all(r"\p{M}", ""),
    "zeros": _number,
    "punctuation": lambda text: pl.when(
        text.str.contains(r"[\p{L}\p{N}]") & ~text.str.contains(_NESTED)
    ).then(text.str.replace_all(r"[^\p{L}\p{N}\s]+", "").str.replace_all(r"\s+", " ").str.strip_chars()),
}


def _cut(frame: dict[str, pl.Series]) -> Iterator[ValueChange]:
    kept = pl.col("a").str.replace(r"(?:…|\.\.\.)$", "")
    length = kept.str.len_chars()
    mask = series(
        frame,
        true((length >= 3) & pl.col("e").str.starts_with(kept) & (length < pl.col("e").str.len_chars())),
    )
    if not mask.any():
        return
    lengths = pl.DataFrame(frame).filter(mask).select(pl.col("a").str.len_chars().alias("n")).get_column("n")
    same = lengths.n_unique() == 1 and len(lengths) > 1
    yield ValueChange("cut", mask, {"length": int(lengths[0])} if same else {}, sure=False)
