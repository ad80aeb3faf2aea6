"""How fast and how large frame comparisons are (run alone: `-m benchmark`)."""

from __future__ import annotations

import resource
import time

import polars as pl
import pytest

from tui_eval.frames import nao_reference
from tui_eval.frames.compare import FrameComparison, compare

pytestmark = pytest.mark.benchmark


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


@pytest.mark.parametrize("rows", [100_000, 1_000_000])
def test_frames(rows: int) -> None:
    expected = table(rows)
    for name, actual in variants(expected).items():
        seconds, result = timed(actual, expected)
        assert result.passed is (name != "wrong")
        print(f"{rows:,} × 10 {name}: {seconds:.3f} s")
    keyless = expected.select("f0", "f1", "f2"), variants(expected)["noisy"].select("f0", "f1", "f2")
    seconds, result = timed(keyless[1], keyless[0])
    assert result.passed
    print(f"{rows:,} × 3 floats, no key: {seconds:.3f} s")
    print(f"largest so far: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def test_rows_of_json_and_the_reference() -> None:
    expected = table(100_000)
    actual = variants(expected)["permuted"].to_dicts()
    seconds, result = timed(actual, expected)
    assert result.passed
    print(f"100,000 × 10 rows against a frame: {seconds:.3f} s")
    start = time.perf_counter()
    assert nao_reference.compare(actual[:10_000], actual[:10_000][::-1]).passed
    print(f"10,000 × 10 in the reference's way: {time.perf_counter() - start:.3f} s")


def test_the_diagnosis_of_a_hundred_thousand_rows() -> None:
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
    for name, actual in mistakes.items():
        wanted = expected.filter(pl.col("i0") > 90_000) if name == "too wide a filter" else expected
        difference = align(wanted, actual)
        start = time.perf_counter()
        difference.aligned(), difference.same_cells()
        aligned = time.perf_counter()
        lines = diagnosis_of(difference).lines
        seconds = time.perf_counter() - aligned
        print(
            f"100,000 × {expected.width} {name}: aligned {aligned - start:.3f} s, diagnosed {seconds:.3f} s: {lines}"
        )
        assert lines or name in ("noise", "missing", "everything")
        assert seconds <= 1.0
