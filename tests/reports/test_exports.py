"""Every kind of file, written from a run with hostile text in every place."""

from __future__ import annotations

import csv
import errno
import fcntl
import json
import os
import re
import threading
from collections.abc import Callable
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

from tests.store.test_store import attempt
from tui_eval.commands.one_run import write_files
from tui_eval.guard.text import storable, visible_json
from tui_eval.model import Case, DataDetails, Entry, Turn, Usage, Verdict
from tui_eval.reports import export as export_module
from tui_eval.reports import promptfoo_json, results
from tui_eval.reports.export import KINDS, ExportError, check_writable, export
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

HOSTILE = "=cmd|'/c calc'! <script>alert(1)</script> \x1b]52;c;x\x07 \x9b2J \x7f\u202e\u2066 ]]> \ud800 \uffff | `a` *b* \n# c"


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
        said = [Entry(1, "user", text="hello")]
        writer.done(ref, attempt("s.yaml::good", 1, usage=Usage(1, 2), cost=0.5, transcript=said))
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
    if ending != ".parquet":
        text = body.decode()
        assert not [char for char in "\x1b\x07\x7f\x9b\u202e\u2066" if char in text]
    assert body
    assert not [other for other in path.parent.iterdir() if other != path]


def test_a_disk_that_is_full_is_said_to_be(reader: RunReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars said that the file was out of its specification."""
    from tui_eval.reports.tabular import write_parquet

    with pytest.raises(OSError, match="No space left"):
        write_parquet(reader, Path("/dev/full"))


def test_promptfoos_json_escapes_and_says_the_same(reader: RunReader, tmp_path: Path) -> None:
    export(reader, tmp_path / "r.promptfoo.json")
    text = (tmp_path / "r.promptfoo.json").read_text("utf-8")
    assert "\\u009b2J" in text and "\\u202e" in text
    bad = [one for one in json.loads(text)["results"]["results"] if not one["success"]]
    assert {one["response"]["output"] for one in bad} == {storable(HOSTILE)}


def test_junit_counts(reader: RunReader, tmp_path: Path) -> None:
    export(reader, tmp_path / "a.junit.xml")
    suite = ElementTree.parse(tmp_path / "a.junit.xml").getroot()[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3", "failures": "1", "errors": "0", "skipped": "1",
    }  # fmt: skip
    failure = suite.find("testcase/failure")
    assert failure is not None and "0 of 2 attempts passed" in str(failure.text)


def test_junit_names_are_told_apart_and_its_sums_are_right(tmp_path: Path) -> None:
    run_id = new_run_id()
    writer = RunWriter(
        Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a"], started_at=0.0)
    )
    planned = [
        PlannedCase(
            Case(f"s.yaml::x::{prompt}", "x", "s.yaml", "promptfoo", turns=[Turn("?")]), agent, model, 1, 1
        )
        for prompt in ("short", "long")
        for agent, model in (("a", "m"), ("a", "n"), ("b", None))
    ] + [PlannedCase(Case("t.yaml::x", "x", "t.yaml", "nao"), "a", None, 2, 2)]
    refs = writer.plan(planned)
    outcomes = ["passed", "failed", "error", "passed", "passed", "cancelled", "passed"]
    for (ref, *rest), one, outcome in zip(refs, planned, outcomes, strict=True):
        for each in (ref, *rest):
            writer.done(each, attempt(one.case.case_id, 1, outcome))
    writer.state("finished", 10.0)
    writer.close()
    reader = RunReader(writer.folder)
    export(reader, tmp_path / "a.junit.xml")
    reader.close()
    root = ElementTree.parse(tmp_path / "a.junit.xml").getroot()
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names) == 7
    assert ("s.yaml", "x [a, m] short") in names and ("t.yaml", "x [a]") in names
    for element, expected in (
        (root, "7 1 1 1 0.040"),
        (root[0], "6 1 1 1 0.030"),
        (root[1], "1 0 0 0 0.010"),
    ):
        attributes = ("tests", "failures", "errors", "skipped", "time")
        assert " ".join(str(element.get(name)) for name in attributes) == expected
    for suite in root:
        assert len(suite.findall("testcase")) == int(suite.get("tests", "0"))
        assert len(suite.findall("testcase/failure")) == int(suite.get("failures", "0"))


def test_junit_names_differ_where_only_a_value_of_a_matrix_does(tmp_path: Path) -> None:
    """Also where CI systems would see that value last, behind a long one, or where a value holds what ids are
    made of."""
    long, run_id = "word " * 60, new_run_id()
    writer = RunWriter(Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a"]))
    ids = [f"s.yaml::x[a={a},b={b}]" for a in (long, "p::q") for b in ("x", "y")]
    ids += ["s.yaml::x[c=1::z]", "s.yaml::x[c=2::z]"]
    ids += ["s.yaml::x[d=\u200ez]", "s.yaml::x[d=\u200fz]"]  # XML shows both as one
    cases = [Case(one, "x", "s.yaml", "promptfoo", turns=[Turn("?")]) for one in ids]
    for (ref,), case in zip(
        writer.plan([PlannedCase(case, "a", None, 1, 1) for case in cases]), cases, strict=True
    ):
        writer.done(ref, attempt(case.case_id, 1, "passed"))
    writer.state("finished", 10.0)
    writer.close()
    with closing(RunReader(writer.folder)) as reader:
        export(reader, tmp_path / "a.junit.xml")
    names = [
        case.get("name") for case in ElementTree.parse(tmp_path / "a.junit.xml").getroot().iter("testcase")
    ]
    assert len(set(names)) == len(names) == 8
    assert any("b=x" in str(name) for name in names)


def test_cases_of_one_name_are_rows_of_their_own_in_promptfoos_table(tmp_path: Path) -> None:
    """Connections of a neuro-san test, and two cases of one name whose line no record says: promptfoo shows one result
    in a place of its table, and the other was hidden."""
    run_id = new_run_id()
    writer = RunWriter(Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a", "b"]))
    cases = [Case(f"n.hocon::n[connection={one}]", "n", "n.hocon", "neuro_san") for one in ("http", "https")]
    cases += [Case(f"s.yaml::x{one}", "x", "s.yaml", "start_to_agent") for one in ("", "#2")]
    planned = [PlannedCase(case, agent, None, 2, 2) for case in cases for agent in ("a", "b")]
    for refs, one in zip(writer.plan(planned), planned, strict=True):
        for number, ref in enumerate(refs, 1):
            writer.done(ref, attempt(one.case.case_id, number, "passed"))
    writer.state("finished", 10.0)
    writer.close()
    with closing(RunReader(writer.folder)) as reader:
        rows = promptfoo_json.build(reader)["results"]["results"]
    places = {(row["testIdx"], row["promptIdx"]) for row in rows}
    assert len(places) == len(rows) == 16
    assert len({test for test, _ in places}) == 8, "agents are columns of the same rows"


@pytest.mark.parametrize(
    ("kind", "build"), [("json", results.build), ("promptfoo.json", promptfoo_json.build)]
)
def test_a_document_written_in_pieces_is_the_document(
    reader: RunReader, tmp_path: Path, kind: str, build: Callable[[RunReader], dict[str, Any]]
) -> None:
    """As the standard module writes it: indented by two, empty lists and objects in one line."""
    export(reader, tmp_path / f"a.{kind}")
    written = (tmp_path / f"a.{kind}").read_text("utf-8")
    found = json.loads(written)
    whole = json.loads(json.dumps(storable(build(reader)), default=str))
    for one in (found, whole):
        one.get("metadata", {}).pop("exportedAt", None)
    assert found == whole
    again = json.dumps(json.loads(written), indent=2, ensure_ascii=kind == "json")
    assert visible_json(again) + "\n" == written


def test_markdown_shows_foreign_text_as_it_is(reader: RunReader, tmp_path: Path) -> None:
    """Read as GitHub does: the cells say what the case says, and nothing in them is markup."""
    from markdown_it import MarkdownIt

    export(reader, tmp_path / "a.md")
    page = MarkdownIt("commonmark").enable("table").render((tmp_path / "a.md").read_text("utf-8"))

    class Cells(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.cells: list[str] = []
            self.tags: set[str] = set()

        def handle_starttag(self, tag: str, attrs: list) -> None:
            self.tags.add(tag)
            if tag == "td":
                self.cells.append("")

        def handle_data(self, data: str) -> None:
            if self.cells:
                self.cells[-1] += data

    found = Cells()
    found.feed(page)
    assert not found.tags & {"script", "em", "strong", "a", "img"}
    shown = "=cmd|'/c calc'! <script>alert(1)</script> \u241b]52;c;x\u2407 \ufffd2J \u2421⇄⇄ ]]>"
    assert found.cells[0].startswith(shown) and "| `a` *b*" in found.cells[0]
    assert (
        found.cells[3].strip() == "failed 0/2"
        and "good" in found.cells[-4]
        and found.cells[-1].startswith("passed")
    )
    assert "1 passed</summary>" in page and "Pass rate" in page


def test_markdown_calls_nobody_and_links_nowhere(tmp_path: Path) -> None:
    """What shows it looks for names and addresses in each text between two tags, when `&#64;` is `@` again."""
    from markdown_it import MarkdownIt

    name = "@team #12 !3 a@b.example https://x.example WWW.x.example $7 ~bug 25% of 5 & 6"
    case = Case(f"s.yaml::{name}", name, "s.yaml", "nao", turns=[Turn("hello")])
    writer = RunWriter(Store(tmp_path).create_folder("r"), RunInfo(id="r", agents=[name]))
    ((ref,),) = writer.plan([PlannedCase(case, name, name, 1, 1)])
    writer.done(ref, attempt(case.case_id, 1, "failed"))
    writer.close()
    with closing(RunReader(writer.folder)) as reader:
        export(reader, tmp_path / "a.md")
    page = MarkdownIt("commonmark").enable("table").render((tmp_path / "a.md").read_text("utf-8"))
    texts: list[str] = []

    class Texts(HTMLParser):
        def handle_data(self, data: str) -> None:
            texts.append(data)

    Texts().feed(page)
    assert "".join(texts).count(name) == 4
    assert not [text for text in texts if re.search(r"[@#!$~]\w|://|www\.", text, re.IGNORECASE)]


def test_every_reader_reads_the_same(reader: RunReader, tmp_path: Path) -> None:
    import json

    import duckdb

    for kind in ("json", "jsonl", "csv", "parquet"):
        export(reader, tmp_path / f"a.{kind}")
    document = json.loads((tmp_path / "a.json").read_text())
    rows = document["results"] + document["not_run"]
    assert [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()] == rows
    wanted = [(row["outcome"], row["attempt"], row.get("tokens"), row.get("cost")) for row in rows]
    for source in (f"read_csv('{tmp_path}/a.csv')", f"'{tmp_path}/a.parquet'"):
        found = duckdb.execute(f"SELECT outcome, attempt, tokens, cost FROM {source}").fetchall()
        assert found == wanted, source
    frame = pl.read_csv(tmp_path / "a.csv")
    assert frame.height == len(rows) and frame["tokens"].to_list() == [row.get("tokens") for row in rows]


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
    assert [row["outcome"] for row in found] == ["passed", "passed", "failed", "failed", "not run"]
    assert found[2]["message"].startswith("'=cmd")
    export(reader, tmp_path / "a.parquet")
    frame = pl.read_parquet(tmp_path / "a.parquet")
    assert frame["passed"].to_list() == [True, True, False, False, None] and frame["tokens"][0] == 3
    export(reader, tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text().startswith("## 1 of 3 cases passed")


def test_a_folder_that_is_read_only_is_said_in_a_line(
    reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(self: Path, *_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "replace", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(ExportError, match=r"run\.md: cannot be written: Read-only file system"):
        export(reader, tmp_path / "run.md")


def test_files_of_a_run_that_goes_on_say_one_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = [
        PlannedCase(Case(f"s.yaml::{name}", name, "s.yaml", "nao"), "a", None, 1, 1) for name in "abcdefgh"
    ]
    writer = RunWriter(Store(tmp_path).create_folder("r"), RunInfo(id="r", state="running"))
    refs = iter([ref for (ref,) in writer.plan(planned)])

    def one_more(*_: object) -> None:
        if (ref := next(refs, None)) is not None:
            writer.done(ref, attempt("s.yaml::a", 1))
            assert writer.flush()

    one_more()
    add = results.Metrics.add
    monkeypatch.setattr(results.Metrics, "add", lambda *given: (one_more(), add(*given))[1])
    paths = [tmp_path / f"r.{ending}" for ending in ("json", "jsonl", "csv", "junit.xml")]
    with closing(RunReader(writer.folder)) as reader:
        assert write_files(reader, paths, one_more) == 0
    writer.close()
    whole = json.loads(paths[0].read_text())
    assert [whole["summary"][name] for name in ("total", "passed", "not_run")] == [1, 1, 7]
    assert len(whole["not_run"]) == 7
    assert sum(one["passed"] for one in whole["cases"]) == 1
    told = [json.loads(line)["outcome"] for line in paths[1].read_text().splitlines()]
    assert sorted(told) == ["not run"] * 7 + ["passed"]
    assert paths[2].read_text().count("not run") == 7 * 2
    assert ElementTree.parse(paths[3]).getroot().get("skipped") == "7"


def test_two_that_write_one_file_leave_a_whole_one(
    reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "same.json"
    whole = results.write

    def with_another_meanwhile(reader: RunReader, part: Path) -> None:
        monkeypatch.setattr(results, "write", whole)
        part.write_text("half of ")
        export(reader, path)
        assert part.read_text() == "half of "
        whole(reader, part)

    monkeypatch.setattr(results, "write", with_another_meanwhile)
    export(reader, path)
    assert json.loads(path.read_text())["results"]
    assert not list(tmp_path.glob(".same*"))


@pytest.mark.parametrize("name", ["report.md", "reports/new.md", "new.md"])
def test_a_link_of_a_project_leads_to_nothing_outside_of_it(
    reader: RunReader, tmp_path: Path, name: str
) -> None:
    """A stranger's folder with `report.md -> ../.bashrc` in it: the person's own file was written over."""
    project, theirs = tmp_path / "project", tmp_path / "theirs"
    for one in (project, project / "kept", theirs):
        one.mkdir()
    (project / "tui_eval.yaml").write_text("")
    (theirs / "bashrc").write_text("precious")
    (project / "report.md").symlink_to("../theirs/bashrc")
    (project / "reports").symlink_to("../theirs")
    (project / "new.md").symlink_to("../theirs/new.md")
    (project / "inside.md").symlink_to("kept/inside.md")
    for write in (check_writable, lambda path: export(reader, path)):
        with pytest.raises(ExportError, match="a link that leaves the project is not written through"):
            write(project / name)
    assert [one.name for one in theirs.iterdir()] == ["bashrc"]
    assert (theirs / "bashrc").read_text() == "precious"
    export(reader, project / "inside.md")
    export(reader, theirs / "new.md")
    assert (project / "kept" / "inside.md").is_file() and (theirs / "new.md").is_file()


def test_what_a_killed_process_left_of_a_file_goes_with_the_next(reader: RunReader, tmp_path: Path) -> None:
    left, held, other, new = (
        tmp_path / name
        for name in (
            ".r[1].md.0a1b2c3d.part", ".r[1].md.4a1b2c3d.part", ".other.md.0a1b2c3d.part", ".r[1].md.8a1b2c3d.part",
        )
    )  # fmt: skip
    for one in (left, held, other, new):
        one.write_text("half")
        os.utime(one, (1000, 1000) if one != new else None)
    with open(held, "rb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        export(reader, tmp_path / "r[1].md")
    assert not left.exists() and held.exists() and other.exists() and new.exists()


def test_a_name_of_letters_of_several_bytes_has_room_for_its_half(reader: RunReader, tmp_path: Path) -> None:
    file = tmp_path / f"{'報' * 83}.md"
    export(reader, file)
    assert file.is_file()


def test_a_link_in_the_persons_own_folder_is_theirs(
    reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`-o ~/Downloads/report.md`, where Downloads is on another disk and the home is under git, was refused."""
    home, disk = tmp_path / "home", tmp_path / "disk"
    (home / ".git").mkdir(parents=True)
    disk.mkdir()
    (home / "Downloads").symlink_to(disk)
    monkeypatch.setenv("HOME", str(home))
    export(reader, home / "Downloads" / "report.md")
    assert (disk / "report.md").exists()
    (home / "tui_eval.yaml").write_text("")
    with pytest.raises(ExportError, match="a link that leaves the project"):
        export(reader, home / "Downloads" / "report.md")


def test_a_link_stays_one_and_what_it_leads_to_is_written(reader: RunReader, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / "old.json").write_text("old")
    (tmp_path / "latest.json").symlink_to("again.json")
    (tmp_path / "again.json").symlink_to(folder / "old.json")
    (tmp_path / "new.csv").symlink_to(tmp_path / "not there" / "yet.csv")
    for name in ("latest.json", "new.csv"):
        check_writable(tmp_path / name)
        export(reader, tmp_path / name)
        assert (tmp_path / name).is_symlink()
    assert (tmp_path / "again.json").is_symlink()
    assert json.loads((folder / "old.json").read_text())["results"] and not (folder / "old.json").is_symlink()
    assert (tmp_path / "not there" / "yet.csv").read_text().startswith("suite,")
    assert [file.name for file in folder.iterdir()] == ["old.json"], "no half beside it"


@pytest.mark.parametrize("ending", sorted(KINDS))
def test_a_file_that_is_there_is_read_by_nobody_else_afterwards(
    reader: RunReader, tmp_path: Path, ending: str
) -> None:
    path = tmp_path / f"r{ending}"
    path.write_text("before")
    for mode in (0o600, 0o664):
        path.chmod(mode)
        export(reader, path)
        assert path.stat().st_mode & 0o777 == mode
        assert path.stat().st_size > len("before")


def test_links_in_a_circle_and_folders_are_refused_before_a_run(reader: RunReader, tmp_path: Path) -> None:
    (tmp_path / "round.json").symlink_to("round.json")
    (tmp_path / "folder.json").mkdir()
    for name, why in (("round.json", "symbolic links"), ("folder.json", "Is a directory")):
        for ask in (check_writable, lambda path: export(reader, path)):
            with pytest.raises(ExportError, match=rf"{name}: cannot be written: .*{why}"):
                ask(tmp_path / name)


def test_a_pipe_is_written_into(reader: RunReader, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    got: list[str] = []
    waiting = threading.Thread(target=lambda: got.append(pipe.read_text()))
    waiting.start()
    check_writable(pipe)
    export(reader, pipe)
    waiting.join(20)
    assert pipe.is_fifo() and [json.loads(line) for line in got[0].splitlines()]


def test_a_pipe_that_nobody_reads_is_waited_for_and_says_so(
    reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    monkeypatch.setattr(export_module, "READER_SECONDS", 0.0)
    with pytest.raises(ExportError, match=r"pipe\.jsonl: cannot be written: no program reads this pipe"):
        export(reader, pipe)
    monkeypatch.setattr(export_module, "READER_SECONDS", 60.0)
    got: list[str] = []
    late = threading.Thread(target=lambda: got.append(pipe.read_text()))
    monkeypatch.setattr(export_module.time, "sleep", lambda seconds: late.start() if not late.ident else None)
    export(reader, pipe)
    late.join(20)
    assert [json.loads(line) for line in got[0].splitlines()]
    assert capsys.readouterr().err.endswith("pipe.jsonl: waiting for what reads this pipe\n")


@pytest.mark.parametrize("place", ["/dev/fd", "/proc/self/fd"])
def test_what_is_open_gets_what_is_written_where_it_stands(
    reader: RunReader, tmp_path: Path, place: str
) -> None:
    if not Path(place).is_dir():
        pytest.skip("not on this system")
    with open(tmp_path / "all.txt", "wb") as file:
        file.write(b"before\n")
        file.flush()
        (tmp_path / "out.csv").symlink_to(f"{place}/{file.fileno()}")
        check_writable(tmp_path / "out.csv")
        export(reader, tmp_path / "out.csv")
        file.write(b"after\n")
    lines = (tmp_path / "all.txt").read_text().splitlines()
    assert lines[0] == "before" and lines[1].startswith("suite,") and lines[-1] == "after"
    assert (tmp_path / "out.csv").is_symlink()


def test_what_is_open_has_no_ending_and_says_how_it_gets_one(reader: RunReader) -> None:
    with pytest.raises(
        ExportError, match=r"/dev/null: unknown kind .*; a link that has one of them and leads there"
    ):
        export(reader, Path("/dev/null"))


def test_an_unknown_ending_says_what_there_is(reader: RunReader, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="junit"):
        export(reader, tmp_path / "a.docx")


def parsed(path: Path) -> ElementTree.Element:
    """The page as a browser reads it."""
    import html5lib

    return html5lib.parse(path.read_text("utf-8"), namespaceHTMLElements=False)


def test_the_page_has_every_case_once_with_its_attempts(reader: RunReader, tmp_path: Path) -> None:
    export(reader, tmp_path / "a.html")
    page = parsed(tmp_path / "a.html")
    cases = [node for node in page.iter("details") if node.get("class") == "case"]
    assert [node.get("data-outcome") for node in cases] == ["passed", "failed", "not"]
    ids = [node.get("id") for node in page.iter() if node.get("id")]
    assert len(set(ids)) == len(ids)
    folded = [[one.get("class") for one in node.iter("details")].count("attempt") for node in cases]
    assert folded == [2, 2, 0]
    text = "".join(cases[1].itertext())
    assert "0/2" in text and "expected" in text and "\u241b]52;c;x" in text and "tool call" in text
    links = [node.get("href") or "" for node in page.iter("a")]
    assert links and all(link.lstrip("#") in ids for link in links)
    assert not [node for node in page.iter() if node.get("src") or node.get("onclick")]
    labels = ["".join(node.itertext()).strip() for node in page.iter("label")]
    assert labels == ["all (3)", "not passed (2)", "passed (1)"]


def test_a_page_of_very_many_attempts_leaves_transcripts_of_passed_ones_out(
    reader: RunReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(reader, tmp_path / "a.html")
    monkeypatch.setattr("tui_eval.reports.page.WHOLE", 3)
    export(reader, tmp_path / "b.html")
    whole, less = ((tmp_path / name).read_text("utf-8") for name in ("a.html", "b.html"))
    assert "turn 1 · user" in whole and "More than 3 attempts" not in whole
    assert "turn 1 · user" not in less and "More than 3 attempts" in less and "tool call" in less


def test_agents_stand_against_each_other_and_rows_that_differ_are_aligned(tmp_path: Path) -> None:
    run_id = new_run_id()
    writer = RunWriter(Store(tmp_path).create_folder(run_id), RunInfo(id=run_id, agents=["a", "b"]))
    case = Case("s.yaml::x", "x", "s.yaml", "nao", turns=[Turn("?")])
    refs = writer.plan([PlannedCase(case, agent, "m", 1, 1) for agent in ("a", "b")])
    rows = [{"n": 1, "<b>": None}, {"n": 2, "<b>": "x" * 500}]
    data = DataDetails(
        expected=rows, actual=rows[:1], comparison="missing row 2: n=2", reference_sql="SELECT 1 < 2"
    )
    for (ref,), outcome in zip(refs, ("passed", "failed"), strict=True):
        one = attempt("s.yaml::x", 1, outcome)
        one.data, one.message = data if outcome == "failed" else None, "row count: 1 vs 2"
        writer.done(ref, one)
    writer.state("finished", 10.0)
    writer.close()
    reader = RunReader(writer.folder)
    export(reader, tmp_path / "a.html")
    reader.close()
    page = parsed(tmp_path / "a.html")
    tables = [
        [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
        for table in page.iter("table")
    ]
    assert tables[0][1][:4] == ["b", "m", "0 of 1", "0%"]
    assert tables[0][2][:5] == ["a", "m", "1 of 1", "100%", "21% to 100%"]
    rows_shown = tables[-1]
    assert rows_shown[0] == ["", "n integer", "<b> text"] and len(rows_shown) == 2
    assert rows_shown[1][:2] == ["−", "2"] and rows_shown[1][2].startswith("xxx")
    assert "SELECT 1 < 2" in "".join(page.itertext())
