"""Parts of a plan as one run: what is held of them meanwhile."""

from __future__ import annotations

import time
import tracemalloc
from contextlib import closing, nullcontext
from pathlib import Path

import pytest

from tui_eval.model import Attempt, Case
from tui_eval.store import merged_run, merging
from tui_eval.store.merging import MergePart
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import RunLock
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

CASES, LONG = 40, 250_000


def part_of(folder: Path, run_id: str, first: int, began: float = 0.0) -> Path:
    """A run of so many cases from the `first` on, which did not pass for a long reason; the last never ran."""
    place = folder / run_id
    place.mkdir()
    writer = RunWriter(place, RunInfo(id=run_id, agents=["a"], started_at=began))
    cases = [
        Case(f"s.yaml::{n:03}", f"{n:03}", "s.yaml", "start_to_agent") for n in range(first, first + CASES)
    ]
    references = writer.plan([PlannedCase(case, "a", None, 2, 2) for case in cases])
    for case, refs in list(zip(cases, references, strict=True))[:-1]:
        for number, ref in enumerate(refs, 1):
            why = f"{case.name}/{number} " + "x" * LONG
            writer.done(ref, Attempt(case.case_id, number, "failed", "a", None, message=why))
    writer.state("finished", 1.0)
    writer.close()
    return place


@pytest.mark.real
def test_of_the_parts_no_reasons_are_held_and_all_are_copied(tmp_path: Path) -> None:
    folders = [part_of(tmp_path, f"part-{n}", n * CASES) for n in range(2)]
    tracemalloc.start()
    try:
        parts = [MergePart.of(folder.name, folder) for folder in folders]
        whole = merging.whole_of(parts)
        held, _ = tracemalloc.get_traced_memory()
        made = tmp_path / "made"
        made.mkdir()
        merged_run.write(made, merging.facts(whole, "made", "1"), whole)
    finally:
        tracemalloc.stop()
    assert held < 20 * LONG, "of 156 reasons"
    assert whole.open_names == ["s.yaml::039", "s.yaml::079"] and not whole.complete
    with closing(RunReader(made)) as reader:
        rows = [(case.case_id, [row.message for row in rows]) for case, rows in reader.by_case()]
        for ref, name in ((1, "000/1"), (2, "000/2"), (3, "001/1")):
            assert (attempt := reader.attempt(ref)) is not None and attempt.message.startswith(name)
    assert [case_id for case_id, _ in rows] == [f"s.yaml::{n:03}" for n in range(2 * CASES)]
    assert [[text[:5] for text in texts] for _, texts in rows] == [
        ["", ""] if n % CASES == CASES - 1 else [f"{n:03}/1", f"{n:03}/2"] for n in range(2 * CASES)
    ]
    for part in parts:
        part.reader.close()


@pytest.mark.parametrize("ends", [KeyboardInterrupt, SystemExit])
def test_of_a_merge_that_a_signal_ends_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: type[BaseException]
) -> None:
    part = MergePart.of("part", part_of(tmp_path, "part", 0))
    whole = merging.whole_of([part])
    (made := tmp_path / "made").mkdir()

    def signalled(*_: object) -> None:
        raise ends

    monkeypatch.setattr(merged_run, "write_missing", signalled)
    with pytest.raises(ends):
        merged_run.write(made, merging.facts(whole, "made", "1"), whole)
    assert not made.exists()
    part.reader.close()


def test_of_what_stands_twice_that_counts_which_began_last_by_a_clock_that_was_right(tmp_path: Path) -> None:
    now = time.time()
    began = {"ahead": now + 4e8, "before": now - 900, "last": now - 600}
    parts = [MergePart.of(name, part_of(tmp_path, name, 0, at)) for name, at in began.items()]
    assert {one.part.label for one in merging.whole_of(parts).columns} == {"last"}
    for part in parts:
        part.reader.close()


@pytest.mark.parametrize("executed", [False, True])
def test_what_is_gone_on_with_is_not_merged_meanwhile(tmp_path: Path, executed: bool) -> None:
    """Its own record says that it has finished until the first case of it has begun again."""
    folders = [part_of(tmp_path, f"part-{n}", n * CASES) for n in range(2)]
    parts = [MergePart.of(folder.name, folder) for folder in folders]
    lock = RunLock(folders[1]) if executed else None
    try:
        with (
            pytest.raises(merging.MergeError, match="part-1 is being executed") if executed else nullcontext()
        ):
            merging.whole_of(parts)
    finally:
        if lock is not None:
            lock.release()
        for part in parts:
            part.reader.close()
