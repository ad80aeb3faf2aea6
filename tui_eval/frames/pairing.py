"""An expected and an actual column made comparable: the rules of what equals what."""

from __future__ import annotations

from decimal import Decimal

from tui_eval.frames.columns import Column, text_series
from tui_eval.frames.number_pairs import as_floats, canonical_texts, numeric, series_of
from tui_eval.frames.pairs import Pair
from tui_eval.frames.settings import ComparisonSettings
from tui_eval.frames.value_texts import canonical, duck_text, even_duck_text, instant


def pair(name: str, expected: Column, actual: Column, settings: ComparisonSettings) -> Pair:
    """Make two columns comparable by the documented rules."""
    if expected.kind == "mixed" and actual.kind == "float":
        numbers = all(cell is None or type(cell) in (int, float, Decimal) for cell in expected.cells)
        expected = as_floats(expected) if numbers else expected
    if expected.kind in ("exact", "float"):
        return numeric(name, expected, actual, settings)
    if expected.kind == actual.kind and expected.kind in ("bool", "time"):
        return Pair(name, expected, actual, series_of(expected), series_of(actual))
    if expected.kind == "time":
        readings = [
            None if cell is None else (instant(cell) or cell) if isinstance(cell, str) else canonical(cell)
            for cell in actual.cells
        ]
        return Pair(name, expected, actual, series_of(expected), text_series(readings))
    if expected.kind == "text" and actual.kind == "text":
        return _texts(name, expected, actual)
    if expected.kind == "nested" and expected.typed:
        wanted = [
            None if t is None else even_duck_text(t, expected.type_name)
            for t in series_of(expected).to_list()
        ]
        given = series_of(actual).to_list() if actual.kind == "nested" and actual.typed else actual.cells
        kind, as_map = expected.type_name, expected.type_name.upper().startswith("MAP")
        found = [
            None if cell is None else even_duck_text(duck_text(cell, as_map=as_map), kind) for cell in given
        ]
        return Pair(name, expected, actual, text_series(wanted), text_series(found))
    result = Pair(name, expected, actual, canonical_texts(expected), canonical_texts(actual))
    if expected.kind == "text" and not expected.typed and not actual.typed:
        result.kinds_differ = actual.kind == "exact" and None not in actual.cells
    return result


def _texts(name: str, expected: Column, actual: Column) -> Pair:
    wanted, given = series_of(expected), series_of(actual)
    if not expected.typed and wanted.head(1000).str.contains(r"^\d{4,}-\d\d-\d\d").all():
        # rows of a backend carry dates as text: `2024-01-05` and its midnight are one day
        instants = {text: instant(text) for text in wanted.drop_nulls().unique().to_list()}
        if instants and all(instants.values()):
            readings = [None if t is None else instant(t) or t for t in given.to_list()]
            wanted = text_series([None if t is None else instants[t] for t in wanted.to_list()])
            return Pair(name, expected, actual, wanted, text_series(readings))
    return Pair(name, expected, actual, wanted, given)
