"""Every kind of file, written from a run with hostile text in every place."""

from __future__ import annotations

import csv
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.store.test_store import attempt
from tui_eval.model import Case, Entry, Turn, Usage, Verdict
from tui_eval.reports.export import KINDS, ExportError, export
from tui_eval.store.reader import RunReader
from tui_eval.store.runs import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

HOSTILE = "=cmd|'/c calc'! <script>alert(1)</script> \x1b]52;c;x\x07 ]]> \ud800 \uffff | `a` *b* \n# c"


@pytest.fixture
def reader(tmp_path: Path):
    run_id = new_run_id()
    writer = RunWriter(
        Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=[HOSTILE], started_at=1000.0)
    )
    planned = [
        PlannedCase(
            Case(f"s.yaml::{name}", name, "s.yaml", "start_to_agent", turns=[Turn(HOSTILE)]), "a", None, 2, 2
        )
        for name in ("good", HOSTILE)
    ] + [PlannedCase(Case("s.yaml::never", "never", "s.yaml", "start_to_agent"), "a", None, 1, 1)]
    refs = writer.plan(planned)
    for ref in refs[0]:
        writer.done(ref, attempt("s.yaml::good", 1, usage=Usage(1, 2), cost=0.5))
    verdicts = [Verdict("should_contain", False, expected=HOSTILE, reason=HOSTILE)]
    entries = [
        Entry(1, "tool_call", name=HOSTILE, arguments={"a": HOSTILE}),
        Entry(1, "assistant", text=HOSTILE),
    ]
    for number, ref in enumerate(refs[1], 1):
        bad = attempt(
            "s.yaml::bad", number, "failed", verdicts=verdicts, transcript=entries, response_text=HOSTILE
        )
        bad.message = HOSTILE
        writer.done(ref, bad)
    writer.state("finished", 1010.0)
    writer.close()
    reader = RunReader(writer.folder)
    yield reader
    reader.close()


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.add(tag)


@pytest.mark.parametrize("ending", sorted(KINDS))
def test_nothing_raw_gets_into_a_file(reader: RunReader, tmp_path: Path, ending: str) -> None:
    path = tmp_path / "out" / f"results{ending}"
    export(reader, path)
    body = path.read_bytes()
    assert body and (b"\x1b" not in body or ending == ".parquet")
    assert not [other for other in path.parent.iterdir() if other != path]


def test_junit_counts(reader: RunReader, tmp_path: Path) -> None:
    export(reader, tmp_path / "a.junit.xml")
    suite = ElementTree.parse(tmp_path / "a.junit.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    failure = suite.find("testcase/failure")
    assert failure is not None and "0 of 2 attempts passed" in str(failure.text)


def test_the_page_holds_no_foreign_markup(reader: RunReader, tmp_path: Path) -> None:
    export(reader, tmp_path / "a.html")
    parser = _Tags()
    page = (tmp_path / "a.html").read_text()
    parser.feed(page)
    assert "script" not in parser.tags and "<script>" not in page
    assert "src=" not in page and "http" not in page.replace("http-equiv", "")
    assert "1 of 3 cases passed" in page


def test_tables(reader: RunReader, tmp_path: Path) -> None:
    export(reader, tmp_path / "a.csv")
    with open(tmp_path / "a.csv", newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["outcome"] for row in found] == ["passed", "passed", "failed", "failed"]
    assert found[2]["message"].startswith("'=cmd")
    export(reader, tmp_path / "a.parquet")
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame["passed"].to_list() == [True, True, False, False] and frame["tokens"][0] == 3
    export(reader, tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text().startswith("## 1 of 3 cases passed")


def test_an_unknown_ending_says_what_there_is(reader: RunReader, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="junit"):
        export(reader, tmp_path / "a.docx")
