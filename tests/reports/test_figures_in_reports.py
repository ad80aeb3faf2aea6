"""Sums of valid figures that are none any more, in every kind of file; and files that keep no other back."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.store.test_store import attempt
from tui_eval.cli import main
from tui_eval.guard.figures import MOST
from tui_eval.model import Case, Usage
from tui_eval.reports import tabular
from tui_eval.reports.export import KINDS, ExportError, export
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.summary import summarise_run
from tui_eval.store.writer import PlannedCase, RunWriter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two attempts whose tokens pass 64 bits together, and two that do so with each other alone."""
    run_id = new_run_id()
    folder = Store(tmp_path).create_folder(run_id)
    writer = RunWriter(folder, RunInfo(id=run_id, agents=["a"], started_at=1000.0))
    planned = [PlannedCase(Case("s::c", "c", "s.yaml", "nao"), "a", None, 4, 4)]
    (refs,) = writer.plan(planned)
    usages = [Usage(MOST, MOST), Usage(MOST, 1), Usage(MOST, 0), Usage(0, MOST)]
    for number, (ref, usage) in enumerate(zip(refs, usages, strict=True), 1):
        done = attempt("s::c", number, usage=usage)
        done.duration_ms = 9e18
        writer.done(ref, done)
    writer.state("finished", 1010.0)
    writer.close()
    return folder


@pytest.mark.parametrize("ending", sorted(KINDS))
def test_a_sum_that_is_no_figure_is_unknown_in_every_file(folder: Path, tmp_path: Path, ending: str) -> None:
    reader = RunReader(folder)
    path = tmp_path / f"out{ending}"
    notes = export(reader, path)
    reader.close()
    text = path.read_bytes()
    for number in (2 * MOST, MOST + 1):  # notes alone say what the sum would be
        shown = [f"{form} was" for form in (number, f"{number:,}")]
        assert text.count(str(number).encode()) == text.count(shown[0].encode())
        assert text.count(f"{number:,}".encode()) == text.count(shown[1].encode())
    if ending == ".parquet":
        assert pl.read_parquet(path)["tokens"].to_list() == [None, None, MOST, MOST]
    if ending == ".json":
        found = json.loads(text)
        assert found["summary"]["total_tokens"] is None and found["by_model"][0]["total_tokens"] is None
        assert found["summary"]["total_duration_s"] is None and found["summary"]["avg_duration_ms"] is None
        assert [one["tokens"] for one in found["results"]] == [None, None, MOST, MOST]
    if ending in (".json", ".csv", ".parquet", ".promptfoo.json"):
        assert any("tokens" in line and "unknown" in line and str(path) in line for line in notes)


def test_an_attempt_and_its_case_say_that_their_tokens_are_unknown(folder: Path) -> None:
    reader = RunReader(folder)
    cases, rows = reader.cases(), reader.attempts()
    first = reader.attempt(rows[0].id)
    reader.close()
    assert first is not None and first.usage == Usage(MOST, MOST)
    assert "input and output tokens together unknown" in first.transcript[-1].text
    assert [item.tokens for item in summarise_run(cases, rows)] == [None]


def test_a_file_that_cannot_be_written_keeps_no_other_back(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(reader: RunReader, path: Path) -> None:
        path.write_text("half")
        raise ValueError("a fault\nof two lines")

    monkeypatch.setattr(tabular, "write_csv", broken)
    bad, good = tmp_path / "bad.csv", tmp_path / "good.jsonl"
    reader = RunReader(folder)
    with pytest.raises(ExportError) as raised:
        export(reader, bad)
    reader.close()
    assert str(raised.value) == f"{bad}: cannot be written: ValueError: a fault of two lines"
    with pytest.raises(SystemExit) as ended:
        main(["export", str(folder), "-o", str(bad), "-o", str(good)])
    assert ended.value.code == 4
    assert good.is_file() and not bad.exists()
    said = capsys.readouterr()
    assert str(raised.value) in said.err and "Traceback" not in said.err
