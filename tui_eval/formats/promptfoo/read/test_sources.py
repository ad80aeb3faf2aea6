"""Where tests come from: the configuration itself, and files of all kinds (formats/promptfoo.md 4).

`tests: file://x` and `tests: [file://x]` are read by different rules in the tool (4.1); where that
changes what a test is, so here (`listed`).
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from tui_eval.extensions import adding
from tui_eval.formats.promptfoo.read import csv_rows
from tui_eval.formats.promptfoo.read.promptfoo_types import CODE, JAVASCRIPT
from tui_eval.formats.promptfoo.read.references import References
from tui_eval.formats.promptfoo.read.suite_file import (
    LineOf,
    Missing,
    SuiteReading,
    brief,
    dotted_key,
    is_pattern,
)
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest, TestReader
from tui_eval.formats.promptfoo.read.test_rows import CsvError, records
from tui_eval.guard import figures
from tui_eval.guard.text import clip
from tui_eval.guard.trust import NeedsTrust, script
from tui_eval.javascript import values as js
from tui_eval.scripting import child_limits
from tui_eval.suites.read_values import function_line
from tui_eval.yaml import yaml_lines

# -- Tests from datasets of Hugging Face: each row's columns are variables (formats/promptfoo.md 4.5).


SERVER = "https://datasets-server.huggingface.co"
"""Where rows of datasets are fetched from."""

BEGINNING = "huggingface://datasets/"
PAGE = 100
"""Rows that the server gives at once."""
MOST_ROWS = 100_000
LARGEST_PAGE = 64 * 2**20
TIME_LIMIT = 30.0
"""Seconds that fetching a page may take."""
TOKENS = ("HF_TOKEN", "HF_API_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def rows(reading: SuiteReading, address: str, line: int) -> list[PromptfooTest]:
    """The tests of `huggingface://datasets/OWNER/NAME?split=test&config=default&limit=N`. Lists among
    the values are not expanded.

    Raises:
        Missing: it needs trust (fetching while a suite is loaded), or cannot be fetched.
    """
    try:
        reading.trust.require(f"fetch {address}")
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    name, _, query = address.removeprefix(BEGINNING).partition("?")
    if name.count("/") != 1 or not all(name.split("/")):
        raise Missing(f"{brief(address)} is no dataset; write {BEGINNING}OWNER/NAME")
    asked = {"split": "test", "config": "default", **dict(parse_qsl(query))}
    limit = _limit(asked.get("limit"), address)
    found: list[PromptfooTest] = []
    while len(found) < limit:
        wanted = {**asked, "offset": str(len(found)), "length": str(min(PAGE, limit - len(found)))}
        page = _page(f"{SERVER}/rows?{urlencode({'dataset': name, **wanted})}", address)
        new = [entry["row"] for entry in page.get("rows") or () if isinstance(entry, dict) and "row" in entry]
        found += (
            PromptfooTest(reading.name, line, row, options={"disableVarExpansion": True})
            for row in new
            if isinstance(row, dict)
        )
        total = page.get("num_rows_total")
        if not new or (isinstance(total, int) and len(found) >= total):
            break
    return found


def _limit(given: str | None, address: str) -> int:
    if given is None:
        return MOST_ROWS
    if not (given.isascii() and given.isdigit()):
        raise Missing(f"{brief(address)}: limit must be a number")
    return min(int(given[:9]), MOST_ROWS)


def _page(url: str, address: str) -> dict[str, Any]:
    request = urllib.request.Request(url)
    token = next((os.environ[name] for name in TOKENS if os.environ.get(name)), None)
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=TIME_LIMIT) as answer:
            page = json.loads(answer.read(LARGEST_PAGE))
    except urllib.error.HTTPError as error:
        hint = "; give a token in HF_TOKEN" if error.code in (401, 403) else ""
        raise Missing(f"{address} cannot be fetched (HTTP {error.code}){hint}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise Missing(f"{address} cannot be fetched: {' '.join(str(reason).split())}") from None
    if not isinstance(page, dict):
        raise Missing(f"{address}: the server's answer holds no rows")
    return page


_FUNCTION = re.compile(rf"(.+\.(?:{CODE})):([\w.]+)\Z")
_SHEET = re.compile(r"(.+\.xlsx?)#(.+)\Z", re.IGNORECASE)
_REMOTE = ("http://", "https://", "huggingface://", "az://", "s3://", "gs://", "sharepoint://")
DEEPEST = 8


class Sources:
    """Collects the tests of one suite in the order in which the file names them."""

    def __init__(self, reading: SuiteReading, line_of: LineOf) -> None:
        self.reading = reading
        self.line_of = line_of

    def read(self, value: Any, at: tuple[Any, ...]) -> list[PromptfooTest]:
        """The tests under a key of the configuration: a path, a list, or a generator."""
        return [test for tests in self.chunks(value, at) for test in tests]

    def chunks(self, value: Any, at: tuple[Any, ...]) -> list[Sequence[PromptfooTest]]:
        """As `read`, source by source, so that large tables stay rows (`csv.Rows`)."""
        if value is None:
            return []
        if isinstance(value, str):
            return self._reference(value, None, at, listed=False)
        if isinstance(value, dict):
            if isinstance(value.get("path"), str):
                return self._reference(value["path"], value.get("config"), at, listed=False)
            return self._wrong(at, f"must be a list of tests or a file, not {brief(value)}")
        if not isinstance(value, list):
            return self._wrong(at, f"must be a list of tests or a file, not {brief(value)}")
        reader = TestReader(self.reading, self.reading.name, self.line_of)
        result: list[Sequence[PromptfooTest]] = []
        for index, entry in enumerate(value):
            place = (*at, index)
            if isinstance(entry, str):
                result.extend(self._reference(entry, None, place, listed=True))
            elif isinstance(entry, dict) and isinstance(entry.get("path"), str):
                result.extend(self._reference(entry["path"], entry.get("config"), place, listed=True))
            elif (test := reader.test(entry, place)) is not None:
                result.append([test])
        return result

    def _wrong(
        self,
        at: tuple[Any, ...],
        message: str,
        cure: str = "",
        raised_at: tuple[str, int] | None = None,
    ) -> list[Sequence[PromptfooTest]]:
        name, line = self.reading.name, self.line_of(*at)
        self.reading.problem(name, line, dotted_key(at), message, cure, raised_at=raised_at)
        return []

    def _reference(
        self, text: str, config: Any, at: tuple[Any, ...], *, listed: bool
    ) -> list[Sequence[PromptfooTest]]:
        if text.startswith(_REMOTE):
            return self._remote(text, at)
        plain = text.removeprefix("file://")
        function = None
        if found := _FUNCTION.match(plain) or _SHEET.match(plain):
            plain, function = found.groups()
        try:
            if is_pattern(plain):
                if not listed and not plain.endswith((".yaml", ".yml")):
                    self._differs(at, "as the whole of tests, promptfoo reads patterns of YAML files only")
                paths = self.reading.glob(plain)
                if not paths:
                    raise Missing(f"no file matches {plain}")
            else:
                paths = [self.reading.find(plain)]
            return [self._some(path, function, config, at, listed=listed) for path in paths]
        except Missing as error:
            return self._wrong(at, str(error), raised_at=error.raised_at) if str(error) else []

    def _some(
        self, path: Path, function: str | None, config: Any, at: tuple[Any, ...], *, listed: bool
    ) -> Sequence[PromptfooTest]:
        """The tests of a file; that there are none is an error, since nothing of it would be missed."""
        before = len(self.reading.problems)
        found = self._file(path, function, config, listed=listed, depth=0)
        if not found and len(self.reading.problems) == before:
            name = self.reading.relative(path)
            self._wrong(
                at, f"{name} holds no test", "give it one (a table: rows below its header), or leave it out"
            )
        return found

    def _remote(self, text: str, at: tuple[Any, ...]) -> list[Sequence[PromptfooTest]]:
        """Tests that are not on this machine: Google Sheets, and datasets of Hugging Face."""
        if text.startswith(BEGINNING):
            try:
                return [rows(self.reading, text, self.line_of(*at))]
            except Missing as error:
                return self._wrong(at, str(error))
        if not is_google_sheet(text):
            return self._wrong(
                at, f"tests are not fetched from {brief(text)}", "save them as a CSV or JSON file"
            )
        try:
            return [google_sheet(self.reading, text)]
        except Missing as error:
            return self._wrong(at, str(error))

    def _differs(self, at: tuple[Any, ...], message: str) -> None:
        """A place where the tool's two ways of loading tests (4.1) differ, and ours do not."""
        cure = "write it as an entry of a list"
        name = self.reading.name
        self.reading.problem(name, self.line_of(*at), dotted_key(at), message, cure, level="note")

    def _file(
        self, path: Path, function: str | None, config: Any, *, listed: bool, depth: int
    ) -> Sequence[PromptfooTest]:
        kind = path.suffix[1:].lower()
        name = self.reading.relative(path)
        if depth > DEEPEST:
            raise Missing(f"{name}: files that name files too deeply")
        if kind == "csv":
            return csv_rows.read(self.reading, name, self.reading.text(path))
        if kind == "py" or kind in JAVASCRIPT:
            values = run_generator(self.reading, path, function, self._config(config))
            line = function_line(path, function or (DEFAULT_FUNCTION if kind == "py" else ""))
            return self._values(values, name, lambda *_: line, listed=listed, depth=depth)
        if kind in ("xlsx", "xls"):
            return workbook(self.reading, path, function)
        if kind == "jsonl":
            return self._lines(path, name, listed=listed)
        if kind == "json":
            return self._json(path, name, listed=listed, depth=depth)
        if kind in ("yaml", "yml"):
            value, lines = self.reading.parsed(path)
            if value is None:
                raise Missing(f"{name} is empty")
            value = References(self.reading, value, lines, name).resolve(value)
            return self._values(value, name, lines, listed=True, depth=depth)
        raise Missing(
            f"{name}: unsupported kind of test file; use CSV, XLSX, JSON, JSONL, YAML, Python or JavaScript"
        )

    def _config(self, config: Any) -> Any:
        """A generator's `config`, whose values may be YAML or JSON files."""
        if not isinstance(config, dict):
            return config
        result = {}
        for key, value in config.items():
            if isinstance(value, str) and value.startswith("file://"):
                path = self.reading.find(value)
                if path.suffix in (".yaml", ".yml", ".json"):
                    value = self.reading.parsed(path)[0]
                else:
                    value = self.reading.text(path)
            result[key] = value
        return result

    def _values(
        self, value: Any, name: str, line_of: LineOf, *, listed: bool, depth: int
    ) -> list[PromptfooTest]:
        reader = TestReader(self.reading, name, line_of)
        whole = isinstance(value, list)
        result: list[PromptfooTest] = []
        for index, entry in enumerate(value if whole else [value]):
            at = (index,) if whole else ()
            if isinstance(entry, str) and entry.startswith("file://"):
                found = self.reading.find(entry)
                result.extend(self._file(found, None, None, listed=listed, depth=depth + 1))
            elif (test := reader.test(entry, at, needs_some=listed)) is not None:
                result.append(test)
        return result

    def _json(self, path: Path, name: str, *, listed: bool, depth: int) -> list[PromptfooTest]:
        """As a list entry strict JSON; as the whole of `tests` the YAML parser, and rows get numbers."""
        text = self.reading.text(path)
        if listed:
            try:
                yaml_lines.load_json(text)
            except yaml_lines.KeyTwice:
                pass  # below it is said with its lines
            except ValueError as error:
                line = getattr(error, "lineno", 0)
                self.reading.problem(name, line, "", f"not valid JSON: {str(error).splitlines()[0]}")
                return []
            except RecursionError:
                raise Missing(f"{name} is nested too deeply") from None
        value, lines = self.reading.parsed(path)
        if not listed and '"$ref"' in text:
            self.reading.problem(
                name, 0, "$ref", "as the whole of tests, promptfoo leaves $ref as it is", level="note"
            )
        if listed or not self.reading.reference:
            value = References(self.reading, value, lines, name).resolve(value)
        tests = self._values(value if value is not None else [], name, lines, listed=listed, depth=depth)
        return self._files_first(tests) if listed else _numbered(tests)

    def _lines(self, path: Path, name: str, *, listed: bool) -> list[PromptfooTest]:
        result: list[PromptfooTest] = []
        for number, line in enumerate(self.reading.text(path).split("\n"), 1):
            if not line.strip():
                continue
            try:
                value = yaml_lines.load_json(line)
            except (ValueError, RecursionError) as error:
                self.reading.problem(name, number, "", f"not valid JSON: {str(error).splitlines()[0]}")
                continue
            reader = TestReader(self.reading, name, _always(number))
            if (test := reader.test(value, (), needs_some=listed)) is not None:
                result.append(test)
        return self._files_first(result) if listed else _numbered(result)

    def _files_first(self, tests: list[PromptfooTest]) -> list[PromptfooTest]:
        """Tests of JSON that are an entry of `tests`; as the whole of it they keep their references."""
        for test in tests if self.reading.reference else ():
            test.files_first = any("file://" in str(one.value) for one in test.assertions)
        return tests


def _always(number: int) -> LineOf:
    return lambda *_: number


def _numbered(tests: list[PromptfooTest]) -> list[PromptfooTest]:
    for number, test in enumerate(tests, 1):
        if not test.description:
            test.row = f"Row #{number}"
    return tests


# -- Tests made by a person's Python or JavaScript (formats/promptfoo.md 4.4).


DEFAULT_FUNCTION = "generate_tests"
GENERATOR_LIMIT = 60.0
"""Seconds that a generator may take."""


def run_generator(reading: SuiteReading, path: Path, function: str | None, config: Any) -> list[Any]:
    """What the function returns, a list of tests; it is called with `config` only if one is given.

    A JavaScript file may also export the list itself.

    Raises:
        Missing: it needs trust, fails, or returns no list; the text says which.
    """
    from tui_eval.scripting.script_host import ScriptError

    javascript = path.suffix[1:].lower() in JAVASCRIPT
    name = function or ("" if javascript else DEFAULT_FUNCTION)
    shown = reading.relative(path) + (f":{name}" if name else "")
    try:
        reading.trust.require(script(path, reading.root))
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    reading.saw(path)
    arguments = [] if config is None else [config]
    try:
        if javascript:
            result = reading.node().value_sync(
                path,
                name,
                arguments,
                timeout=GENERATOR_LIMIT,
                cwd=reading.base,
                reference=reading.from_base(path),
            )
        else:
            result = reading.python().call_sync(path, name, arguments, timeout=GENERATOR_LIMIT)
    except NeedsTrust as error:
        raise Missing(str(error)) from None
    except ScriptError as error:
        raise Missing(f"{shown}: {error}", error.raised_at) from None
    if not isinstance(result.value, list):
        raise Missing(f"{shown} must return a list of tests, not {brief(result.value)}")
    if javascript:
        return result.value
    if not figures.all_finite(result.value):
        raise Missing(f"{shown} gives NaN or an infinite number, which JSON cannot hold")
    return json.loads(js.json_text(result.value))  # as the tool hears it: Python's 1.0 is 1


# -- Tables that are no CSV files: sheets of workbooks, and Google Sheets by their CSV export
# (formats/promptfoo.md 4.5). Their cells are texts, so their tests are read as those of a CSV.


GOOGLE = "https://docs.google.com"
"""Where Google Sheets are fetched from."""

LARGEST_FETCH = 64 * 2**20

_WORKBOOK_LIMIT = 60.0
"""Seconds that reading a workbook may take."""

_SHEET_URL = re.compile(r"https://docs\.google\.com/spreadsheets/d/([\w-]{1,200})(?:[/?#]|\Z)")


def workbook(reading: SuiteReading, path: Path, sheet: str | None) -> Sequence[PromptfooTest]:
    """The tests of one sheet: the first, one by name, or one by number from 1.

    Raises:
        Missing: no such sheet, no rows below the header, no workbook, or the extra is not installed.
    """
    name = reading.relative(path)
    if importlib.util.find_spec("fastexcel") is None:
        raise Missing(f"{name}: spreadsheets need the extra xlsx: {adding('xlsx')}")
    reading.saw(path)
    names = _asked_of_workbook(path, name)
    chosen = _sheet(names, sheet, name)
    found = _asked_of_workbook(path, name, chosen)
    # Texts are trimmed, as the tool's reader does. A row without any would ask the agent nothing.
    every = [["" if cell is None else js.trim(str(cell)) for cell in row] for row in found]
    lines = [number for number, row in enumerate(every, 1) if any(row)]
    if len(lines) < 2:
        raise Missing(f'{name}: sheet "{chosen}" is empty or contains no valid data rows')
    try:
        return csv_rows.table(reading, f"{name}#{chosen}", [every[line - 1] for line in lines], lines)
    except CsvError as error:
        raise Missing(f"{name}#{chosen}: {error}") from None


_OF_WORKBOOK = """
import json, sys
try:
    import fastexcel
    book = fastexcel.read_excel(sys.argv[1])
    found = book.sheet_names
    if sys.argv[2:]:
        found = list(book.load_sheet(sys.argv[2], header_row=None, dtypes="string").to_polars().iter_rows())
except BaseException as error:
    found = {"error": "needs memory" if isinstance(error, MemoryError) else str(error)}
json.dump(found, sys.stdout)
"""
"""Its names of sheets, or the rows of one. In a process of its own: where two cells stand far from each
other, its reader asks for all that could be between them, and the process ends if that is not to be had."""


def _asked_of_workbook(path: Path, name: str, *sheet: str) -> list[Any]:
    with subprocess.Popen(
        [sys.executable, "-P", "-c", _OF_WORKBOOK, str(path), *sheet],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:
        child_limits.limit(child.pid, child_limits.LEAST)
        child_limits.groups.add(child.pid)
        try:
            said, _ = child.communicate(timeout=_WORKBOOK_LIMIT)
        except subprocess.TimeoutExpired:
            raise Missing(f"{name} cannot be read as a workbook within {_WORKBOOK_LIMIT:g} s") from None
        finally:
            child_limits.groups.remove(child.pid)
            child.kill()
    try:
        found = json.loads(said)
    except ValueError:  # it has ended
        found = {"error": "needs memory"}
    if isinstance(found, list):
        return found
    why = found["error"]
    if why == "needs memory":
        raise Missing(
            f"{name} cannot be read as a workbook: it needs more than {child_limits.LEAST >> 30} GB of memory; a cell may "
            "stand far from the others: delete the rows and columns behind them, or save it as CSV"
        )
    raise Missing(f"{name} cannot be read as a workbook: {clip(' '.join(why.split()), 300)}")


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
