"""What `d` costs on large answers (design.md, Budgets), through a pty at 120×40 (run alone: `-m benchmark`)."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest

from tests.benchmarks.figures import Figures
from tests.benchmarks.test_app import Screen, started
from tests.support.attempts import wrong_cell
from tests.support.case_host import write_run
from tui_eval.guard.masker import Masker
from tui_eval.model import Attempt, DataDetails
from tui_eval.store import frames

pytestmark = pytest.mark.benchmark
LIBRARIES = 95_000_000
"""Bytes that polars, its parquet reader and our imports take, whatever the rows (seen with 1,100)."""


def table(rows: int, columns: int) -> pl.DataFrame:
    """Whole numbers, floats and texts in turn, a key first."""
    base = pl.int_range(rows, eager=True)
    made: dict[str, pl.Series] = {"id": base}
    for number in range(columns - 1):
        if number % 3 == 0:
            made[f"i{number}"] = (base * (7919 + number)) % 1_000_003
        elif number % 3 == 1:
            made[f"f{number}"] = ((base * (104_729 + number)) % 999_983).cast(pl.Float64) / 97.0
        else:
            made[f"s{number}"] = ((base * (13 + number)) % 5003).cast(pl.String) + "_name"
    return pl.DataFrame(made)


def large(root: Path, rows: int, columns: int, shuffled: bool) -> int:
    """A run whose one case has so many rows, every 13th wrong in one column; the bytes of both frames."""
    expected = table(rows, columns)
    wrong = pl.when(pl.col("id") % 13 == 5).then(pl.col("f1") * 100).otherwise(pl.col("f1"))
    actual = expected.with_columns(wrong.alias("f1"))
    actual = actual.sample(fraction=1, shuffle=True, seed=3) if shuffled else actual
    attempt: Attempt = wrong_cell()
    places = {side: f"{frames.FOLDER}/1-{side}.parquet" for side in ("expected", "actual")}
    settings = {
        "compat": "documented",
        "truncated": {"expected": rows, "actual": rows},
        "frames": places,
    }
    kept = expected.head(1000).to_dicts(), actual.head(1000).to_dicts()
    attempt.data = DataDetails(*kept, expected.columns, None, "SELECT 1", "SELECT 2", settings)
    folder = write_run(root, [[attempt]])
    assert frames.save(folder, 1, {"expected": expected, "actual": actual}, Masker()) == places
    return expected.estimated_size() + actual.estimated_size()  # type: ignore[return-value]


def memory(screen: Screen, line: str) -> int:
    """Bytes that the app has (`VmRSS`) or has had at most (`VmHWM`)."""
    status = Path(f"/proc/{screen.pid}/status").read_text()
    return int(next(one for one in status.splitlines() if one.startswith(line)).split()[1]) * 1024


@pytest.mark.parametrize(("rows", "columns"), [(1_100, 30), (100_000, 30), (1_000_000, 10)])
@pytest.mark.parametrize("shuffled", [False, True], ids=["in order", "in another order"])
def test_d_on_many_rows(tmp_path: Path, figures: Figures, rows: int, columns: int, shuffled: bool) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    both = large(tmp_path, rows, columns, shuffled)
    (folder,) = (tmp_path / ".tui-eval" / "runs").glob("2026*")
    with started([str(folder)], tmp_path) as screen:
        screen.shown(b"revenue by region")
        screen.settle(1.0)
        screen.send("\r")
        screen.shown(b"Transcript")
        screen.settle(1.0)
        before = memory(screen, "VmRSS")
        screen.seen = b""
        pressed = time.perf_counter()
        screen.send("d")
        first = screen.shown(b"5_name") - (pressed - screen.began)
        whole = screen.shown(f"of {rows:,} rows differ".encode()) - (pressed - screen.began)
        said = screen.shown("×100".encode()) - (pressed - screen.began)
        screen.settle(2.0)
        most = memory(screen, "VmHWM") - before
    what = f"`d` on {columns} × {rows:,} rows{' in another order' if shuffled else ''}"
    figures.add(
        "Data",
        f"{what}: first cells, all rows, what they have in common",
        f"{first:.2f} s, {whole:.2f} s, {said:.2f} s",
        "first 1 s",
        first <= 1.0,
        timed=True,
    )
    limit = 3 * both + LIBRARIES
    figures.add(
        "Data",
        f"{what}: memory, the libraries' {LIBRARIES / 1e6:.0f} MB included",
        f"{most / 1e6:.0f} MB{f', {most / both:.1f} × both frames' if both > 1e7 else ''}",
        f"{limit / 1e6:.0f} MB",
        most <= limit,
    )
    figures.hold()
