"""What was asked for and never ran stands in every file, as not run: the rest is no whole run."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.store.test_store import attempt
from tui_eval.formats.reading import open_results
from tui_eval.model import Case, Turn, Usage
from tui_eval.reports import results
from tui_eval.reports.console_table import RunTable
from tui_eval.reports.export import export
from tui_eval.reports.tabular import COLUMNS
from tui_eval.store.missing_cases import BESIDE
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo, RunState
from tui_eval.store.summary import summarise
from tui_eval.store.writer import PlannedCase, RunWriter

WHY = "--fail-fast: s.yaml::n0 failed"


def run_of(
    root: Path,
    planned: list[PlannedCase],
    outcomes: list[str],
    note: str = "",
    provenance: dict[str, Any] | None = None,
    state: RunState = "finished",
) -> RunReader:
    run_id = new_run_id()
    info = RunInfo(id=run_id, agents=["a"], started_at=1000.0, note=note, provenance=provenance or {})
    writer = RunWriter(Store(root).create_folder(run_id), info)
    refs = writer.plan(planned)
    for (ref, *_), one, outcome in zip(refs, planned, outcomes, strict=False):
        writer.done(ref, attempt(one.case.case_id, 1, outcome))
    writer.state(state, 1010.0)
    writer.close()
    return RunReader(writer.folder)


def case(name: str, prompt: str = "", kind: Any = "start_to_agent") -> Case:
    case_id = f"s.yaml::{name}::{prompt}" if prompt else f"s.yaml::{name}"
    return Case(case_id, name, "s.yaml", kind, turns=[Turn("hello")], prompt=prompt or None)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A run of three cases that ended with the first, in every kind of file."""
    planned = [PlannedCase(case(f"n{number}"), "a", "m", 1, 1) for number in range(3)]
    reader = run_of(tmp_path, planned, ["failed"], WHY)
    endings = ("json", "jsonl", "csv", "parquet", "html", "md", "junit.xml", "promptfoo.json")
    made = {ending: tmp_path / f"r.{ending}" for ending in endings}
    for path in made.values():
        export(reader, path)
    reader.close()
    return made


def test_data_files_have_a_row_for_each(files: dict[str, Path]) -> None:
    wanted = [("n0", "failed"), ("n1", "not run"), ("n2", "not run")]
    lines = [json.loads(line) for line in files["jsonl"].read_text().splitlines()]
    tables = [
        lines,
        list(csv.DictReader(files["csv"].read_text().splitlines())),
        pl.read_parquet(files["parquet"]).to_dicts(),
    ]
    for rows in tables:
        assert [(row["name"], row["outcome"]) for row in rows] == wanted
        assert WHY in rows[1]["message"] and not rows[1]["passed"]


def test_a_case_whose_attempts_passed_as_far_as_they_ran_has_not_failed(tmp_path: Path) -> None:
    planned = [PlannedCase(case(f"n{number}"), "a", "m", 3, 3) for number in range(3)]
    reader = run_of(tmp_path, planned, ["passed", "failed"], "interrupted")
    rows = list(reader.by_case())
    assert [summarise(*one).outcome for one in rows] == [None, "failed", None]
    for ending in ("json", "md", "junit.xml"):
        export(reader, tmp_path / f"r.{ending}")
    reader.close()
    found = json.loads((tmp_path / "r.json").read_text())["cases"]
    assert [(one["outcome"], one["attempts"], one["passed"]) for one in found] == [
        (None, 1, 1), ("failed", 1, 0), (None, 0, 0)
    ]  # fmt: skip
    assert "1 of 3 attempts ran, none failed" in (tmp_path / "r.md").read_text()
    counts = ElementTree.parse(tmp_path / "r.junit.xml").getroot()
    assert (counts.get("failures"), counts.get("errors"), counts.get("skipped")) == ("1", "0", "2")


def test_a_run_that_a_person_cancelled_is_no_success_though_enough_of_each_case_passed(
    tmp_path: Path,
) -> None:
    reader = run_of(tmp_path, [PlannedCase(case("n0"), "a", "m", 1, 1)], ["passed"], state="cancelled")
    export(reader, tmp_path / "r.junit.xml")
    reader.close()
    counts = ElementTree.parse(tmp_path / "r.junit.xml").getroot()
    assert (counts.get("failures"), counts.get("errors"), counts.get("skipped")) == ("0", "1", "0")


def test_results_count_and_name_them(files: dict[str, Path]) -> None:
    found = json.loads(files["json"].read_text())
    assert (found["summary"]["total"], found["summary"]["not_run"]) == (1, 2)
    assert [one["name"] for one in found["not_run"]] == ["n1", "n2"]
    assert [(one["name"], one["outcome"]) for one in found["cases"]] == [
        ("n0", "failed"), ("n1", None), ("n2", None),
    ]  # fmt: skip
    theirs = json.loads(files["promptfoo.json"].read_text())
    assert theirs["results"]["stats"]["notRun"] == 2 and len(theirs["results"]["results"]) == 1
    assert [one["name"] for one in theirs["metadata"]["tuiEval"]["not_run"]] == ["n1", "n2"]


@pytest.mark.parametrize("kind", ["json", "promptfoo.json"])
def test_such_a_file_still_opens(
    files: dict[str, Path], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    reader = RunReader(open_results(files[kind]))
    assert [row.name for row in reader.cases()] == ["n0", "n1", "n2"]
    assert [row.state for row in reader.attempts()] == ["done", "waiting", "waiting"]
    assert [one["name"] for one in results.build(reader)["not_run"]] == ["n1", "n2"]
    reader.close()


def test_reports_say_so(files: dict[str, Path]) -> None:
    page = files["html"].read_text()
    assert "0 passed, 1 failed, 0 errors, 2 not run" in page and WHY in page
    markdown = files["md"].read_text()
    assert "2 not run" in markdown and markdown.count("| not run |") == 2 and "fail-fast" in markdown
    suite = ElementTree.parse(files["junit.xml"]).getroot()[0]
    assert (suite.get("tests"), suite.get("skipped")) == ("3", "2")
    assert [one.get("message") for one in suite.iter("skipped")] == [f"not run ({WHY})"] * 2


def test_columns_are_those_of_the_prompts_too_and_the_worst_stands_first(tmp_path: Path) -> None:
    planned = [
        PlannedCase(case(name, prompt, "promptfoo"), agent, None, 1, 1)
        for prompt in ("terse", "long")
        for agent in ("a", "b")
        for name in ("x", "y")
    ]
    outcomes = ["passed", "passed", "passed", "failed", "failed", "failed", "passed"]
    reader = run_of(tmp_path, planned, outcomes)
    export(reader, tmp_path / "r.html")
    reader.close()
    page = (tmp_path / "r.html").read_text()
    table = page[page.index("<h2>Agents</h2>") :]
    table = table[: table.index("</table>")]
    rows = [
        line.replace('<td class="number">', "<td>").replace("</td>", "") for line in table.split("<tr>")[2:]
    ]
    cells = [[cell.split("<")[0] for cell in row.split("<td>")[1:]] for row in rows]
    assert [(one[0], one[2], one[3]) for one in cells] == [
        ("a", "long", "0 of 2"), ("b", "terse", "1 of 2"), ("a", "terse", "2 of 2"),
        ("b", "long", "1 of 1, 1 not run"),
    ]  # fmt: skip


def test_a_run_that_passed_as_far_as_it_came_is_no_success_in_junit(tmp_path: Path) -> None:
    planned = [PlannedCase(case(f"n{number}"), "a", "m", 1, 1) for number in range(3)]
    why = "cost limit reached: 1 USD"
    reader = run_of(tmp_path, planned, ["passed"], why)
    export(reader, tmp_path / "r.junit.xml")
    reader.close()
    root = ElementTree.parse(tmp_path / "r.junit.xml").getroot()
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("0", "1", "2")
    (error,) = root.iter("error")
    assert error.get("message") == f"2 cases not run ({why})"


@pytest.mark.parametrize(
    ("provenance", "words"),
    [
        ({BESIDE: "1 case never ran in run x: n7"}, "The run is not whole: 1 case never ran in run x: n7"),
        ({"missing": 2}, "The run is not whole: 2 of its cases no part has"),
    ],
)
@pytest.mark.parametrize("outcome", ["passed", "failed"])
def test_a_run_that_lacks_cases_which_it_holds_as_no_row_is_no_success_in_junit(
    tmp_path: Path, provenance: dict[str, Any], words: str, outcome: str
) -> None:
    """A run of what failed before has those that never ran there, or are gone, in words alone; one that is judged again
    those that no part has as a number."""
    planned = [PlannedCase(case("n0"), "a", "m", 1, 1)]
    reader = run_of(tmp_path, planned, [outcome], str(provenance.get(BESIDE, "")), provenance)
    export(reader, tmp_path / "r.junit.xml")
    reader.close()
    root = ElementTree.parse(tmp_path / "r.junit.xml").getroot()
    failures = str(int(outcome == "failed"))
    assert [root.get(name) for name in ("tests", "failures", "errors", "skipped")] == [
        "2",
        failures,
        "1",
        "0",
    ]
    assert [one.get("message") for one in root.iter("error")] == [words]


def test_junit_says_once_what_stands_in_the_note_too(tmp_path: Path) -> None:
    never = "1 case never ran in run x: n7"
    planned = [PlannedCase(case(f"n{number}"), "a", "m", 1, 1) for number in range(2)]
    reader = run_of(tmp_path, planned, ["passed"], f"cut; {never}", {BESIDE: never})
    export(reader, tmp_path / "r.junit.xml")
    reader.close()
    (error,) = ElementTree.parse(tmp_path / "r.junit.xml").getroot().iter("error")
    assert error.get("message") == f"1 case not run (cut; {never})"


def test_every_file_says_that_a_run_is_not_whole(tmp_path: Path) -> None:
    """All its rows have passed, and the run ended with 1."""
    never = "2 cases never ran in run x: n7, n8"
    planned = [PlannedCase(case("n0"), "a", "m", 1, 1)]
    reader = run_of(tmp_path, planned, ["passed"], never, {BESIDE: never})
    for ending in ("json", "jsonl", "csv", "parquet"):
        export(reader, tmp_path / f"r.{ending}")
    reader.close()
    document = json.loads((tmp_path / "r.json").read_text())
    (lacking,) = document["not_whole"]
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    with open(tmp_path / "r.csv", newline="", encoding="utf-8") as file:
        cells = list(csv.DictReader(file))
    frame = pl.read_parquet(tmp_path / "r.parquet").to_dicts()
    for rows in ([*document["results"], lacking], lines, cells, frame):
        assert [row["outcome"] for row in rows] == ["passed", "not whole"]
        assert rows[1]["message"] == never and not rows[1]["name"]
    assert set(cells[1]) == set(frame[1]) == set(COLUMNS)


def test_a_run_of_nothing_is_no_success_in_junit(tmp_path: Path) -> None:
    """It was killed before what it was to run was written."""
    reader = run_of(tmp_path, [], [])
    export(reader, tmp_path / "r.junit.xml")
    reader.close()
    root = ElementTree.parse(tmp_path / "r.junit.xml").getroot()
    (error,) = root.iter("error")
    assert error.get("message") == "nothing has run"
    assert (root.get("tests"), root.get("errors")) == ("1", "1")


def test_table_and_file_name_the_same_tokens_and_those_of_attempts_that_were_cut_off(tmp_path: Path) -> None:
    run_id = new_run_id()
    writer = RunWriter(Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a"]))
    refs = [ref for ref, *_ in writer.plan([PlannedCase(case(f"n{n}"), "a", "m", 1, 1) for n in range(2)])]
    writer.done(refs[0], attempt("s.yaml::n0", 1, "passed", usage=Usage(1000, 36)))
    writer.started(refs[1], 1001.0)
    writer.progress(refs[1], (100, 35), 1)
    writer.state("interrupted", 1010.0)
    writer.close()
    reader = RunReader(writer.folder)
    summary = results.build(reader)["summary"]
    table = RunTable.of(reader)
    (total,) = (line for line in table.lines(120) if line.startswith("Total"))
    reader.close()
    assert summary["total_tokens"] == 1036 and summary["unfinished_tokens"] == 135
    assert f" {summary['total_tokens']:,} " in total
    assert "135 more tokens in attempts that did not end" in table.totals()


def test_where_all_ended_no_tokens_are_of_others(tmp_path: Path) -> None:
    reader = run_of(tmp_path, [PlannedCase(case("n0"), "a", "m", 1, 1)], ["passed"])
    assert "unfinished_tokens" not in results.build(reader)["summary"]
    assert "did not end" not in RunTable.of(reader).totals()
    reader.close()
