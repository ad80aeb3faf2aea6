"""Workbooks, and Google Sheets from a server on this machine."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.support import TESTS
from tests.support.promptfoo_files import Make, errors
from tui_eval.formats.promptfoo.read import test_sources

HEAD = "providers: [echo]\nprompts: ['{{q}}']\n"
SHEET = "https://docs.google.com/spreadsheets/d/abc-1_2/edit"
BOOK = TESTS / "vectors" / "promptfoo_csv" / "97_xlsx" / "book.xlsx"


class Answers(BaseHTTPRequestHandler):
    asked: list[str] = []

    def do_GET(self) -> None:
        Answers.asked.append(self.path)
        if self.path.startswith("/rows"):
            return self.rows(dict(parse_qsl(urlsplit(self.path).query)))
        if "private" in self.path:
            self.reply(200, "text/html", b"<html>log in</html>")
        elif "gone" in self.path:
            self.reply(404, "text/plain", b"")
        elif "binary" in self.path:
            self.reply(200, "text/csv", b"q\n\xff\xfe\n")
        else:
            self.reply(200, "text/csv", b'q,__expected\n"a\nb",contains: a\nc,\n')

    def rows(self, asked: dict[str, str]) -> None:
        if asked["dataset"] == "gated/one" and self.headers["Authorization"] != "Bearer hush":
            return self.reply(401, "text/plain", b"")
        start, count = int(asked["offset"]), int(asked["length"])
        total = 0 if asked["dataset"] == "empty/one" else 130
        listed = [{"row": {"q": n, "split": asked["split"], "list": ["a", "b"]}} for n in range(total)]
        page = {"num_rows_total": total, "rows": listed[start : start + count]}
        self.reply(200, "application/json", json.dumps(page).encode())

    def reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(test_sources, "GOOGLE", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(test_sources, "SERVER", f"http://127.0.0.1:{server.server_port}")
    Answers.asked = []
    yield Answers.asked
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    ("url", "gid"), [(SHEET, ""), (f"{SHEET}?gid=42#x", "&gid=42"), (f"{SHEET}#gid=7", "&gid=7")]
)
def test_a_google_sheet(make: Make, google: list[str], url: str, gid: str, listed: bool) -> None:
    suite = make(HEAD + f"tests: {[url] if listed else repr(url)}", trusted=True)
    assert google == [f"/spreadsheets/d/abc-1_2/export?format=csv{gid}"]
    assert [(c.vars, c.line, len(c.assertions)) for c in suite.cases] == [
        ({"q": "a\nb"}, 2, 1), ({"q": "c"}, 4, 0),
    ]  # fmt: skip
    assert not errors(suite)


def test_nothing_is_fetched_without_trust(make: Make, google: list[str]) -> None:
    suite = make(HEAD + f"tests: ['{SHEET}', {{vars: {{q: own}}}}]")
    assert not google
    assert [c.vars["q"] for c in suite.cases] == ["own"]
    assert "needs trust: fetch https://docs.google.com" in str(errors(suite)[0])


@pytest.mark.parametrize(
    ("name", "says"),
    [("private", "asks for a login"), ("gone", "(HTTP 404)"), ("binary", "is not UTF-8 text")],
)
def test_sheets_that_cannot_be_had(make: Make, google: list[str], name: str, says: str) -> None:
    suite = make(HEAD + f"tests: 'https://docs.google.com/spreadsheets/d/{name}/edit'", trusted=True)
    assert says in str(errors(suite)[0])
    assert str(errors(suite)[0]).startswith("promptfooconfig.yaml:3: tests: ")


@pytest.mark.parametrize(
    ("sheet", "found"),
    [
        ("", ["hello", "two"]), ("#Main", ["hello", "two"]), ("#Other", ["from other"]), ("#2", ["from other"]),
        ("#Nope", 'there is no sheet "Nope"; there are: Main, Other, Empty'), ("#9", "there is no sheet"),
        ("#Empty", "is empty or contains no valid data rows"),
    ],
)  # fmt: skip
def test_workbooks(make: Make, tmp_path: Path, sheet: str, found: object) -> None:
    pytest.importorskip("fastexcel")
    (tmp_path / "book.xlsx").write_bytes(BOOK.read_bytes())
    suite = make(HEAD + f"tests: 'file://book.xlsx{sheet}'")
    if isinstance(found, list):
        assert [c.vars["q"] for c in suite.cases] == found
        assert suite.cases[0].name == "Row #1"
        assert suite.cases[0].line == 2
    else:
        assert str(found) in str(errors(suite)[0])


def book(rows: list[list[str]]) -> bytes:
    """A workbook of one sheet with these texts."""
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    space = "http://schemas.openxmlformats.org"
    of = f"{space}/officeDocument/2006/relationships"
    cells = "".join(
        f'<row r="{number}">'
        + "".join(f'<c t="inlineStr"><is><t xml:space="preserve">{text}</t></is></c>' for text in row)
        + "</row>"
        for number, row in enumerate(rows, 1)
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{space}/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{space}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{of}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{space}/spreadsheetml/2006/main" xmlns:r="{of}">'
        '<sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{space}/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{of}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{space}/spreadsheetml/2006/main">'
        f"<sheetData>{cells}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(whole := io.BytesIO(), "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, head + text)
    return whole.getvalue()


def test_cells_of_a_workbook_are_trimmed(make: Make, tmp_path: Path) -> None:
    """As promptfoo 0.121.20 reads them; a row of white space is none, and lines count as in the sheet."""
    pytest.importorskip("fastexcel")
    rows = [["q", " __metric "], [" a\u00a0", " m"], ["  ", ""], ["b\n", ""]]
    (tmp_path / "book.xlsx").write_bytes(book(rows))
    suite = make(HEAD + "tests: file://book.xlsx")
    assert [(case.vars, case.line, case.name) for case in suite.cases] == [
        ({"q": "a"}, 2, "Row #1"),
        ({"q": "b"}, 4, "Row #2"),
    ]


def test_what_is_no_workbook(make: Make) -> None:
    pytest.importorskip("fastexcel")
    suite = make(HEAD + "tests: ['file://book.xlsx', {vars: {q: own}}]", book__xlsx="no workbook")
    assert "book.xlsx cannot be read as a workbook" in str(errors(suite)[0])
    assert [c.vars["q"] for c in suite.cases] == ["own"]


@pytest.mark.parametrize("listed", [True, False])
def test_a_dataset_of_hugging_face(
    make: Make, google: list[str], listed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in test_sources.TOKENS:
        monkeypatch.delenv(name, raising=False)

    def cases(address: str, *, trusted: bool = True) -> list[dict[str, object]]:
        found = f"[{address!r}]" if listed else repr(address)
        suite = make(f"{HEAD}tests: {found}\n", trusted=trusted)
        said.extend(problem.message for problem in errors(suite))
        return [case.vars for case in suite.cases]

    said: list[str] = []
    whole = cases("huggingface://datasets/o/n?split=train")
    assert [row["q"] for row in whole] == list(range(130))
    assert whole[0] == {"q": 0, "split": "train", "list": ["a", "b"]}  # and it stays one row
    assert [dict(parse_qsl(urlsplit(path).query)) for path in google] == [
        {"dataset": "o/n", "split": "train", "config": "default", "offset": start, "length": "100"}
        for start in ("0", "100")
    ]
    assert len(cases("huggingface://datasets/o/n?limit=3")) == 3
    assert "limit=3" in google[-1] and "length=3" in google[-1]
    assert cases("huggingface://datasets/empty/one") == [] and not said
    assert cases("huggingface://datasets/gated/one") == []
    assert (
        said.pop()
        == "huggingface://datasets/gated/one cannot be fetched (HTTP 401); give a token in HF_TOKEN"
    )
    monkeypatch.setenv("HF_TOKEN", "hush")
    assert len(cases("huggingface://datasets/gated/one?limit=1")) == 1
    for wrong, why in (("o", "is no dataset"), ("o/n?limit=x", "limit must be a number")):
        assert cases(f"huggingface://datasets/{wrong}") == [] and why in said.pop()
    asked = len(google)
    assert cases("huggingface://datasets/o/n", trusted=False) == [] and "needs trust" in said.pop()
    assert len(google) == asked


def test_a_workbook_with_a_cell_far_from_the_others_ends_nothing_else(make: Make, tmp_path: Path) -> None:
    """A note in the last cell of a sheet: its reader aborts the process that asks it."""
    pytest.importorskip("fastexcel")
    whole = io.BytesIO()
    with zipfile.ZipFile(BOOK) as given, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as far:
        for name in given.namelist():
            row = b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row></sheetData>'
            far.writestr(name, given.read(name).replace(b"</sheetData>", row))
    (tmp_path / "book.xlsx").write_bytes(whole.getvalue())
    suite = make(HEAD + "tests: ['file://book.xlsx', {vars: {q: own}}]")
    assert "a cell may stand far from the others" in str(errors(suite)[0])
    assert [c.vars["q"] for c in suite.cases] == ["own"]
