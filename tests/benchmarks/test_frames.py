"""How fast and how large frame comparisons are (design.md, Budgets)."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import polars as pl
import pytest

from tests.benchmarks.figures import Figures
from tests.benchmarks.support import ROOT
from tui_eval.frames import nao_reference
from tui_eval.frames.compare import FrameComparison, compare

pytestmark = pytest.mark.benchmark
SECTION = "Data"
REFERENCE = 100_000
"""Rows of the budget, which the reference's way compares in about ten seconds."""


def table(rows: int) -> pl.DataFrame:
    base = pl.int_range(rows, eager=True)
    columns: dict[str, pl.Series] = {"id": base}
    for i in range(3):
        columns[f"i{i}"] = (base * (7919 + i)) % 1_000_003
        columns[f"f{i}"] = ((base * (104_729 + i)) % 999_983).cast(pl.Float64) / 97.0
        columns[f"s{i}"] = ((base * (13 + i)) % 5003).cast(pl.String) + "_name"
    return pl.DataFrame(columns)


def variants(expected: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Permuted; with noise within the tolerance; the same with one wrong cell."""
    permuted = expected.sample(fraction=1, shuffle=True, seed=3).select(expected.columns[::-1])
    noisy = permuted.with_columns(pl.col("f0") * (1 + 1e-9), pl.col("f1") * (1 + 1e-10))
    wrong = noisy.with_columns(
        pl.when(pl.col("id") == 77).then(pl.col("f2") + 1).otherwise(pl.col("f2")).alias("f2")
    )
    return {"permuted": permuted, "noisy": noisy, "wrong": wrong}


def timed(actual: object, expected: object) -> tuple[float, FrameComparison]:
    start = time.perf_counter()
    result = compare(actual, expected)  # type: ignore[arg-type]
    return time.perf_counter() - start, result


def comparisons(rows: int) -> list[float]:
    """Seconds of a comparison in another order, with one wrong cell, and of floats without a key; then GB at
    the peak."""
    expected = table(rows)
    took = {}
    for name, actual in variants(expected).items():
        took[name], result = timed(actual, expected)
        assert result.passed is (name != "wrong")
    floats = ["f0", "f1", "f2"]
    took["floats"], result = timed(variants(expected)["noisy"].select(floats), expected.select(floats))
    assert result.passed
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return [took["permuted"], took["wrong"], took["floats"], peak]


@pytest.mark.parametrize("rows", [100_000, 1_000_000])
def test_frames(rows: int, figures: Figures) -> None:
    """In a process of its own, whose memory is that of the comparison."""
    code = f"import json; from {__name__} import comparisons; print(json.dumps(comparisons({rows})))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    permuted, wrong, floats, peak = json.loads(done.stdout)
    figures.add(
        SECTION,
        f"comparing {rows:,} × 10 cells: in another order, with a wrong cell, 3 columns of floats without a key",
        f"{permuted:.2f} s, {wrong:.2f} s, {floats:.2f} s; {peak:.1f} GB",
        "3 s, 2 GB",
        max(permuted, wrong, floats) <= 3 and peak <= 2,
        timed=True,
    )
    figures.hold()


def test_rows_of_json_and_the_reference(figures: Figures) -> None:
    expected = table(100_000)
    seconds, result = timed(variants(expected)["permuted"].to_dicts(), expected)
    assert result.passed
    figures.add(SECTION, "comparing 100,000 × 10 cells of JSON with a frame", f"{seconds:.2f} s", timed=True)
    some = table(REFERENCE)
    other = variants(some)["permuted"]
    ours = min(timed(other, some)[0] for _ in range(3))
    start = time.perf_counter()
    assert nao_reference.compare(other.to_dicts(), some.to_dicts()).passed
    theirs = time.perf_counter() - start
    figures.add(
        SECTION,
        f"comparing {REFERENCE:,} × 10 cells in another order, beside the reference's way",
        f"{theirs / ours:,.0f} × faster ({ours:.3f} s, {theirs:.1f} s)",
        "100 ×",
        theirs / ours >= 100,
    )
    figures.hold()


def test_the_diagnosis_of_a_hundred_thousand_rows(figures: Figures) -> None:
    from tui_eval.frames.diagnosis import diagnosis_of
    from tui_eval.frames.difference import align

    expected = pl.concat(
        [table(100_000), table(100_000).select(pl.exclude("id").name.suffix("_b"))], how="horizontal"
    )
    expected = pl.concat(
        [expected, table(100_000).select(pl.exclude("id").name.suffix("_c"))], how="horizontal"
    )
    f0, some = pl.col("f0"), pl.col("id") % 7 == 3
    mistakes = {
        "a factor": expected.with_columns(f0 * 100),
        "a factor where": expected.with_columns(
            pl.when(pl.col("s0").str.starts_with("7")).then(f0 * 100).otherwise(f0)
        ),
        "noise": expected.with_columns(pl.when(some).then(f0 + pl.col("i0")).otherwise(f0)),
        "case": expected.with_columns(pl.col("s0").str.to_uppercase()),
        "missing": expected.filter(~some),
        "fan-out": pl.concat([expected, expected.head(20_000)]),
        "too wide a filter": expected,
        "everything": expected.with_columns(pl.exclude("id").shuffle(seed=5)),
    }
    took: dict[str, float] = {}
    for name, actual in mistakes.items():
        wanted = expected.filter(pl.col("i0") > 90_000) if name == "too wide a filter" else expected
        difference = align(wanted, actual)
        difference.aligned(), difference.same_cells()
        aligned = time.perf_counter()
        lines = diagnosis_of(difference).lines
        took[name] = time.perf_counter() - aligned
        assert lines or name in ("noise", "missing", "everything")
    least, most = min(took, key=took.__getitem__), max(took, key=took.__getitem__)
    figures.add(
        SECTION,
        f"what 100,000 × {expected.width} rows that differ have in common, by the mistake",
        f"{took[least]:.2f} s ({least}) to {took[most]:.2f} s ({most})",
        "1 s",
        took[most] <= 1.0,
        timed=True,
    )
    figures.hold()
