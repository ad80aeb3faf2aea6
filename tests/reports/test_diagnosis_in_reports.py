"""What rows that differ have in common, in `show` and in Markdown."""

from __future__ import annotations

from pathlib import Path

from tests.store.test_store import attempt
from tui_eval.commands.recorded_runs import attempt_text
from tui_eval.model import Attempt, Case, DataDetails, Turn
from tui_eval.reports.export import export
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

LINE = "amo|unt ×100 in 5 of 5 rows that differ"


def wrong(case_id: str = "t.yml::revenue") -> Attempt:
    expected = [{"id": n, "amo|unt": n + 0.25} for n in range(1, 6)]
    made = attempt(case_id, 1, "failed")
    made.message = "values differ"
    made.data = DataDetails(
        expected=expected,
        actual=[dict(row, **{"amo|unt": row["amo|unt"] * 100}) for row in expected],
        columns=["id", "amo|unt"],
        comparison="row 1 (id=1): amo|unt: expected 1.25, actual 125.0",
    )
    return made


def test_show_says_it_above_the_rows() -> None:
    text = attempt_text(wrong(), "revenue")
    assert LINE in text and text.index(LINE) < text.index("row 1 (id=1)")
    right = wrong()
    right.outcome = "passed"
    assert "×100" not in attempt_text(right, "revenue")


def test_markdown_says_it_beside_the_reason(tmp_path: Path) -> None:
    run_id = new_run_id()
    writer = RunWriter(
        Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a"], started_at=1.0)
    )
    case = Case("t.yml::revenue", "revenue", "t.yml", "nao", turns=[Turn("how much?")])
    ((ref,),) = writer.plan([PlannedCase(case, "a", None, 1, 1)])
    writer.done(ref, wrong())
    writer.close()
    reader = RunReader(Store(tmp_path).runs_folder / run_id)
    try:
        export(reader, tmp_path / "run.md")
    finally:
        reader.close()
    (row,) = [line for line in (tmp_path / "run.md").read_text().splitlines() if line.startswith("| revenue")]
    assert row.endswith("| failed | values differ<br>amo&#124;unt ×100 in 5 of 5 rows that differ |")
