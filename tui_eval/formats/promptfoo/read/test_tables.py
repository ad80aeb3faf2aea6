"""Tables that are no CSV files: sheets of workbooks, and Google Sheets by their CSV export
(formats/promptfoo.md 4.5). Their cells are texts, so their tests are read as those of a CSV."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tui_eval.extras import adding
from tui_eval.formats.promptfoo.read import csv_rows
from tui_eval.formats.promptfoo.read.suite_file import Missing, SuiteReading, brief
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest
from tui_eval.formats.promptfoo.read.test_rows import CsvError, records
from tui_eval.guard.trust import NeedsTrust

GOOGLE = "https://docs.google.com"
"""Where Google Sheets are fetched from."""

LARGEST_FETCH = 64 * 2**20
TIME_LIMIT = 30.0
"""Seconds that fetching a sheet may take."""

_SHEET_URL = re.compile(r"https://docs\.google\.com/spreadsheets/d/([\w-]{1,200})(?:[/?#]|\Z)")


def workbook(reading: SuiteReading, path: Path, sheet: str | None) -> Sequence[PromptfooTest]:
    """The tests of one sheet: the first, one by name, or one by number from 1.

    Raises:
        Missing: no such sheet, no rows below the header, no workbook, or the extra is not installed.
    """
    name = reading.relative(path)
    try:
        import fastexcel
    except ImportError:
        raise Missing(f"{name}: spreadsheets need the extra xlsx: {adding('xlsx')}") from None
    reading.saw(path)
    try:
        book = fastexcel.read_excel(str(path))
        chosen = _sheet(book.sheet_names, sheet, name)
        frame = book.load_sheet(chosen, header_row=None, dtypes="string").to_polars()
    except Missing:
        raise
    except BaseException as error:  # its reader can panic, which is no Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        raise Missing(f"{name} cannot be read as a workbook: {' '.join(str(error).split())[:300]}") from None
    found = [["" if cell is None else str(cell) for cell in row] for row in frame.iter_rows()]
    found = [row for row in found if any(row)]
    if len(found) < 2:
        raise Missing(f'{name}: sheet "{chosen}" is empty or contains no valid data rows')
    try:
        return csv_rows.table(reading, f"{name}#{chosen}", found)
    except CsvError as error:
        raise Missing(f"{name}#{chosen}: {error}") from None


def _sheet(names: list[str], wanted: str | None, path: str) -> str:
    if not names:
        raise Missing(f"{path} has no sheets")
    if not wanted:
        return names[0]
    if wanted in names:
        return wanted
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted[:6]) <= len(names):
        return names[int(wanted) - 1]
    raise Missing(f"{path}: there is no sheet {brief(wanted)}; there are: {', '.join(names)}")


def is_google_sheet(url: str) -> bool:
    """Whether a URL is that of a Google Sheet."""
    return _SHEET_URL.match(url) is not None


def google_sheet(reading: SuiteReading, url: str) -> Sequence[PromptfooTest]:
    """The tests of a Google Sheet that is shared with everyone who has the link.

    Raises:
        Missing: it needs trust (fetching while a suite is loaded), or cannot be fetched.
    """
    found = _SHEET_URL.match(url)
    if found is None:
        raise Missing(f"{brief(url)} is no Google Sheet")
    try:
        reading.trust.require(f"fetch {url}")
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    parts = urlsplit(url)
    gid = (parse_qs(parts.query).get("gid") or parse_qs(parts.fragment).get("gid") or [""])[0]
    export = f"{GOOGLE}/spreadsheets/d/{found[1]}/export?format=csv" + (
        f"&gid={gid}" if gid.isdigit() else ""
    )
    text = _fetch(export, url)
    try:
        cells, lines = records(text)
        return csv_rows.table(reading, url, cells, lines)
    except CsvError as error:
        raise Missing(f"{url}: {error}") from None


def _fetch(export: str, url: str) -> str:
    cure = "share it with everyone who has the link, or save it as a CSV file"
    try:
        with urllib.request.urlopen(export, timeout=TIME_LIMIT) as answer:
            body = answer.read(LARGEST_FETCH + 1)
            kind = answer.headers.get_content_type()
    except urllib.error.HTTPError as error:
        raise Missing(f"{url} cannot be fetched (HTTP {error.code}); {cure}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Missing(f"{url} cannot be fetched: {' '.join(str(reason).split())}") from None
    if kind == "text/html":
        raise Missing(f"{url} asks for a login; {cure}")
    if len(body) > LARGEST_FETCH:
        raise Missing(f"{url} is larger than {LARGEST_FETCH // 2**20} MB")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Missing(f"{url} is not UTF-8 text") from None
