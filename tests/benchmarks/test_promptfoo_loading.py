"""Loading a CSV of 100,000 rows against the csv module reading it, and what a case costs in memory."""

from __future__ import annotations

import csv
import time
import tracemalloc
from pathlib import Path

import pytest

from tui_eval.config.project import Config
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite

pytestmark = pytest.mark.benchmark
ROWS = 100_000
TRIES = 5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("large")
    with (made / "t.csv").open("w", newline="") as file:
        write = csv.writer(file).writerow
        write(["question", "context", "__expected", "__metadata:category"])
        for number in range(ROWS):
            write([f"What is {number} + 1?", f'some "context", {number}', f"contains: {number + 1}", "sums"])
    (made / "promptfooconfig.yaml").write_text(
        "prompts: ['{{question}}']\nproviders: [echo]\ntests: file://t.csv\n"
    )
    return made


def load(folder: Path) -> Suite:
    return reading.load(folder / "promptfooconfig.yaml", Config(root=folder), Trust())


def test_loading_takes_at_most_twice_what_the_csv_module_takes(folder: Path) -> None:
    load(folder)
    bare, ours = [], []
    for _ in range(TRIES):
        began = time.perf_counter()
        with (folder / "t.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        bare.append(time.perf_counter() - began)
        assert len(rows) == ROWS + 1
        del rows
        began = time.perf_counter()
        suite = load(folder)
        ours.append(time.perf_counter() - began)
        assert len(suite.cases) == ROWS
        del suite
    print(f"csv module {min(bare):.3f} s, suite {min(ours):.3f} s, ratio {min(ours) / min(bare):.2f}")
    assert min(ours) <= 2 * min(bare)


def test_a_case_takes_at_most_a_kilobyte_above_its_text(folder: Path) -> None:
    load(folder)
    text = (folder / "t.csv").stat().st_size
    tracemalloc.start()
    try:
        suite = load(folder)
        loaded = tracemalloc.get_traced_memory()[0]
        assert suite.cases[ROWS - 1].vars["question"] == f"What is {ROWS - 1} + 1?"
        with_ids = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    above = [(size - text) / ROWS for size in (loaded, with_ids)]
    print(f"bytes a case above its text: {above[0]:.0f} loaded, {above[1]:.0f} with every id")
    assert above[1] <= 1000
