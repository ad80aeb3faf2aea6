"""Reading large suites (design.md, Budgets): against the csv module on the same file, in one run."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.figures import Figures
from tests.benchmarks.support import ROOT

pytestmark = pytest.mark.benchmark
ROWS = 100_000

# Each measures itself in a fresh process: seconds of CPU, and MB held at the end above the start.
BASE = """
import csv, gc, json, resource, sys, time
def held():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
from pathlib import Path
from tui_eval.formats import reading
from tui_eval.config.project import load
from tui_eval.guard.trust import Trust
root = Path(sys.argv[1])
small = load([root / "small.yaml"])
reading.load(root / "small" / "promptfooconfig.yaml", small, Trust(True))
before = held()
began = time.process_time()
"""
CSV = """
with open(root / "tests.csv", newline="", encoding="utf-8") as file:
    kept = list(csv.DictReader(file))
"""
OURS = """
kept = reading.load(root / "promptfooconfig.yaml", small, Trust(True)).cases
"""
EACH = (
    OURS
    + """
for case in kept:
    case.case_id
"""
)
END = """
seconds = time.process_time() - began
print(json.dumps([seconds, held() - before, len(kept)]))
"""


def write(folder: Path) -> int:
    """A promptfoo suite whose tests are a CSV; the size of its text in bytes."""
    with (folder / "tests.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["question", "city", "__expected"])
        for i in range(ROWS):
            rows.writerow(
                [f"What is the capital of country {i}?", f"City {i % 997}", f"contains: capital {i}"]
            )
    config = "prompts: ['{{question}} {{city}}']\nproviders: [echo]\ntests: tests.csv\n"
    (folder / "promptfooconfig.yaml").write_text(config)
    (folder / "small").mkdir()
    (folder / "small" / "promptfooconfig.yaml").write_text(config)
    (folder / "small" / "tests.csv").write_text("question,city,__expected\na,b,c\n")
    (folder / "tui_eval.yaml").write_text("{}\n")
    return (folder / "tests.csv").stat().st_size


def measured(folder: Path, what: str) -> tuple[float, float, int]:
    """CPU seconds, MB held, and how many there are: the median of three processes by time."""
    found = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", BASE + what + END, str(folder)], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found.append(tuple(json.loads(done.stdout)))
    return sorted(found)[1]


def test_a_suite_of_100_000_rows(tmp_path: Path, figures: Figures) -> None:
    size = write(tmp_path)
    plain, _, rows = measured(tmp_path, CSV)
    ours, held, cases = measured(tmp_path, OURS)
    each, with_ids, _ = measured(tmp_path, EACH)
    assert rows == cases == ROWS
    above, looked_at = ((size_held * 1e6 - size) / ROWS for size_held in (held, with_ids))
    figures.add(
        "Data",
        f"a CSV suite of {ROWS:,} rows, beside Python's csv.DictReader",
        f"{ours / plain:.1f} × ({ours:.2f} s; every case looked at {each:.2f} s)",
        "2 ×",
        ours <= 2 * plain,
    )
    figures.add(
        "Data",
        "the same: memory of a case above its text, and once it was looked at",
        f"{above:,.0f} bytes, {looked_at:,.0f} bytes",
        "1,000 bytes",
        above <= 1000,
    )
    figures.hold()
