"""Tests from CSV files: every column whose name begins with `__` (formats/promptfoo.md 4.2).

What a header means is settled once, into a plan; a row then costs little more than its mapping.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from msgspec import UNSET

from tui_eval.formats.promptfoo.promptfoo_words import ListError, split_list
from tui_eval.formats.promptfoo.read.promptfoo_types import BASE_TYPES, JAVASCRIPT, WITH_THRESHOLD
from tui_eval.formats.promptfoo.read.suite_file import SuiteReading, brief
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest
from tui_eval.formats.promptfoo.read.test_rows import CsvError, records
from tui_eval.guard.spelling import close_to
from tui_eval.javascript import values as js
from tui_eval.model import Assertion, Problem
from tui_eval.suites.accepted_values import LISTS

SPECIAL = (
    "expected",
    "prefix",
    "suffix",
    "description",
    "providerOutput",
    "metric",
    "threshold",
    "metadata",
    "config",
)
SLIPS = frozenset(f"__{name}" for name in SPECIAL)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z", re.ASCII)
_TARGET = re.compile(r"__expected(\d{0,9})\Z", re.ASCII)
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")


_GLUED = re.compile(r"([;\t|])\s*[\"']?__[a-zA-Z]")
"""Columns that something else than the delimiter separates."""


def _asks(name: str) -> bool:
    """Whether a column holds assertions."""
    return name.startswith("__expected")


class CsvPlan:
    """What each column of one header is for, as indices into the row."""

    def __init__(self, reading: SuiteReading, path: str, header: list[str]) -> None:
        self.reading, self.path = reading, path
        self.width = len(header)
        self.header = [js.trim(name) for name in header]
        self.vars: list[tuple[str, int]] = []
        self.expected: list[int] = []
        self.options: list[tuple[str, int]] = []
        self.metadata: list[tuple[str, int, bool]] = []
        self.config: list[tuple[int, int]] = []
        self.bare_metadata: int | None = None
        self.description = self.output = self.metric = self.threshold = -1
        # A header given twice: the last column counts, in the place of the first.
        last = {name: index for index, name in enumerate(self.header)}
        if len(last) < self.width:
            twice = sorted({name for name in self.header if self.header.count(name) > 1})
            self._say(twice[0], "column given twice; the last one counts", "", lost=_asks(twice[0]))
        for name in self.header:
            if glued := _GLUED.search(name):
                cure = f"separate them by commas, or set PROMPTFOO_CSV_DELIMITER to {glued[1]!r}"
                self._say(name, f"one column, since {glued[1]!r} separates none", cure, lost=True)
        for name, index in last.items():
            self._column(name, index)
        self.plain = not (self.expected or self.options or self.metadata or self.config) and (
            self.bare_metadata is None and max(self.output, self.metric, self.threshold) < 0
        )

    def _column(self, name: str, index: int) -> None:
        if not name.startswith("__"):
            if name.startswith("_") and name[1:].partition(":")[0].rstrip("0123456789") in SPECIAL:
                self._say(name, "kept as a variable", f"did you mean _{name}?", lost=_asks(f"_{name}"))
            self.vars.append((name, index))
        elif name.startswith("__expected"):
            self.expected.append(index)
        elif name in ("__prefix", "__suffix"):
            self.options.append((name[2:], index))
        elif name == "__description":
            self.description = index
        elif name == "__providerOutput":
            self.output = index
        elif name == "__metric":
            self.metric = index
        elif name == "__threshold":
            self.threshold = index
        elif name.startswith("__metadata:"):
            key = name[len("__metadata:") :]
            self.metadata.append((key.removesuffix("[]"), index, key.endswith("[]")))
        elif name == "__metadata":
            self._say(name, "names no key and is ignored", "write __metadata:key")
            self.bare_metadata = index
        elif name.startswith("__config:"):
            self._config(name, index)
        else:
            meant = close_to(name.partition(":")[0], SLIPS)
            if meant:
                self._say(name, "kept as a variable", f"did you mean {meant}?", lost=_asks(meant))
            self.vars.append((name, index))

    def _config(self, name: str, index: int) -> None:
        parts = name[len("__config:") :].split(":")
        if len(parts) != 2:
            self._say(name, "is ignored", "write __config:__expected1:threshold")
            return
        target, key = parts
        if key != "threshold":
            raise CsvError(f'Invalid config key "{key}" in __config column', 1)
        found = _TARGET.match(target)
        if not found or (found.group(1) and int(found.group(1)) == 0):
            raise CsvError(f'Invalid column "{name}": write __config:__expected1:threshold', 1)
        self.config.append((int(found.group(1) or 1) - 1, index))

    def _say(self, name: str, message: str, cure: str, *, lost: bool = False) -> None:
        """A note on a column; an error where assertions are lost with it (the tool goes on without a word)."""
        level = "error" if lost and not self.reading.reference else "note"
        self.reading.problem(self.path, 1, name, message, cure, level=level)

    def test(self, row: list[str], number: int, line: int) -> PromptfooTest:
        """The test of one row; `number` counts from 1."""
        test = PromptfooTest(self.path, line, {name: row[index] for name, index in self.vars}, [])
        described = row[self.description] if self.description >= 0 else ""
        if described:
            test.description = described
        else:
            test.row = f"Row #{number}"
        if self.plain:
            return test
        if self.expected:
            test.assertions = self._assertions(row, line, test)
        if self.options:
            test.options = {name: row[index] for name, index in self.options}
        if self.output >= 0 and row[self.output]:
            test.provider_output = row[self.output]
        if self.threshold >= 0:
            test.threshold = _number(row[self.threshold])
        if self.metric >= 0:
            for assertion in test.assertions:
                assertion.metric = row[self.metric]
        if self.metadata:
            test.metadata = self._metadata(row) or None
        if self.config:
            self._configure(row, line, test)
        if self.bare_metadata is not None and number > 1 and self.reading.reference:
            test.vars["__metadata"] = row[self.bare_metadata]  # the tool forgets to skip it from row 2 on
        return test

    def _assertions(self, row: list[str], line: int, test: PromptfooTest) -> list[Assertion]:
        result: list[Assertion] = []
        for index in self.expected:
            cell = js.trim(row[index])
            if not cell:
                continue
            try:
                result.append(assertion_of_cell(cell, reference=self.reading.reference, line=line))
            except ListError as error:
                self._row_problem(
                    test, line, self.header[index], str(error), "double the quotes within a quoted text"
                )
        return result

    def _row_problem(self, test: PromptfooTest, line: int, key: str, message: str, cure: str) -> None:
        test.problems = [*test.problems, Problem(self.path, line, key, message, cure)]

    def _metadata(self, row: list[str]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, index, listed in self.metadata:
            cell = row[index]
            if not js.trim(cell):
                continue
            if listed:
                parts = _UNESCAPED_COMMA.split(cell) if "," in cell else [cell]
                result[key] = [js.trim(part).replace("\\,", ",") for part in parts]
            else:
                result[key] = cell
        return result

    def _configure(self, row: list[str], line: int, test: PromptfooTest) -> None:
        for place, index in self.config:
            value = _number(row[index])
            if value is None:
                self._row_problem(
                    test, line, self.header[index], "Invalid numeric value for threshold", "give a number"
                )
            elif place >= len(test.assertions):
                # The tool counts the assertions that are not empty, and leaves the rest alone.
                continue
            else:
                test.assertions[place].threshold = value
                test.metadata = {**(test.metadata or {}), "threshold": value}


def _number(cell: str) -> float | None:
    plain = js.trim(cell)
    return _as_number(plain) if plain and _NUMBER.match(plain) else None


class Rows(Sequence[PromptfooTest]):
    """The tests of a table, each made from its row when it is asked for."""

    def __init__(
        self, plan: CsvPlan, cells: list[list[str]], lines: list[int] | None, first_line: int
    ) -> None:
        self.plan = plan
        self.cells = cells
        self._lines = lines
        self._first = first_line

    def __len__(self) -> int:
        return len(self.cells)

    @overload
    def __getitem__(self, index: int) -> PromptfooTest: ...

    @overload
    def __getitem__(self, index: slice) -> list[PromptfooTest]: ...

    def __getitem__(self, index: int | slice) -> PromptfooTest | list[PromptfooTest]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = index if index >= 0 else len(self.cells) + index
        return self.plan.test(self.cells[number], number + 1, self.line(number))

    def __iter__(self) -> Iterator[PromptfooTest]:
        for number, row in enumerate(self.cells):
            yield self.plan.test(row, number + 1, self.line(number))

    def line(self, index: int) -> int:
        """The line of the file on which a row begins."""
        return self._lines[index] if self._lines is not None else self._first + index

    def problems(self) -> list[Problem]:
        """What is wrong with single rows. Only cells that can be wrong are looked at."""
        suspects: set[int] = set()
        for index in self.plan.expected:
            suspects.update(i for i, row in enumerate(self.cells) if '"' in row[index])
        for _, index in self.plan.config:
            suspects.update(i for i, row in enumerate(self.cells) if _number(row[index]) is None)
        return [problem for i in sorted(suspects) for problem in self[i].problems]

    def tell_thresholds(self) -> None:
        """Cells of `__threshold` that are no numbers, which the tool drops without a word: one note."""
        at = self.plan.threshold
        wrong = [i for i, row in enumerate(self.cells) if js.trim(row[at]) and _number(row[at]) is None]
        if wrong:
            many = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            message = f"is no number and is ignored: {brief(self.cells[wrong[0]][at])}{many}"
            line = self.line(wrong[0])
            self.plan.reading.problem(self.plan.path, line, "__threshold", message, level="note")

    def mentions_files(self) -> bool:
        """Whether a variable may be a file, which can stand for several."""
        return any("file://" in row[index] for _, index in self.plan.vars for row in self.cells)


def table(
    reading: SuiteReading, path: str, found: list[list[str]], lines: list[int] | None = None
) -> Sequence[PromptfooTest]:
    """The tests of a table whose first row is the header.

    Raises:
        CsvError: a row is shorter or longer than the header, or a column makes no sense.
    """
    if not found:
        return ()
    plan = CsvPlan(reading, path, found[0] or [""])
    cells = found[1:]
    if set(map(len, cells)) - {plan.width}:
        for index, row in enumerate(cells):
            row = cells[index] = row or [""]
            if len(row) != plan.width:
                line = lines[index + 1] if lines else index + 2
                raise CsvError(
                    f"Invalid Record Length: columns length is {plan.width}, got {len(row)} on line {line}",
                    line,
                )
    rows = Rows(plan, cells, lines[1:] if lines else None, 2)
    if plan.threshold >= 0:
        rows.tell_thresholds()
    for index in plan.expected if reading.own_names else ():
        for number, row in enumerate(cells):
            if "env" in row[index]:
                reading.note_own_env(path, rows.line(number), plan.header[index], row[index])
    return rows


def read(reading: SuiteReading, path: str, text: str) -> Sequence[PromptfooTest]:
    """The tests of a CSV text. A text that the tool refuses gives none, and a problem with the line."""
    delimiter = os.environ.get("PROMPTFOO_CSV_DELIMITER") or ","
    strict = os.environ.get("PROMPTFOO_CSV_STRICT", "").lower() in ("1", "true", "yes")
    try:
        found, lines = records(text.removeprefix("\ufeff"), delimiter, strict=strict)
        return table(reading, path, found, lines)
    except CsvError as error:
        reading.problem(path, error.line, "", str(error), "the file is not read; mend this line")
        return ()


# -- The one-line assertions of `__expected` cells (formats/promptfoo.md 4.3). Case-sensitive.

_RAW = frozenset({"is-json", "contains-json"})
_CODE_AND_JUDGED = frozenset({"javascript", "python", "llm-rubric"})
_SIMPLE = frozenset(
    f"{negation}{name}"
    for name in BASE_TYPES - WITH_THRESHOLD - LISTS - _RAW - _CODE_AND_JUDGED
    if ":" not in name and not any(other.startswith(f"{name}:") for other in BASE_TYPES)
    for negation in ("", "not-")
)
"""Types whose cell is the type, a colon and a trimmed value: most cells, and no pattern is needed."""


def _grammar(names: Iterable[str]) -> re.Pattern[str]:
    types = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    return re.compile(rf"(not-)?({types})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?\Z", re.DOTALL | re.ASCII)


_GRAMMAR = _grammar(BASE_TYPES)
_REFERENCE = _grammar(name for name in BASE_TYPES if not name.startswith("similar:"))
_SCRIPT = re.compile(rf"file://.*\.(?:{'|'.join(JAVASCRIPT)})\Z")
_PYTHON = re.compile(r"file://.*\.py(?::\w+)?\Z")
_CODE = ("javascript:", "fn:", "eval:")


def assertion_of_cell(cell: str, *, reference: bool = False, line: int = 0) -> Assertion:
    """The assertion that a cell means; what fits no rule is `equals` with the whole cell.

    Args:
        cell: trimmed and not empty.
        reference: as the tool does it: the value of a `file://….py` cell loses its `file://` (and so
            becomes inline code that never works), and `similar:cosine: x` is `similar` with `cosine: x`.
            By default the file is kept, and so is the type.

    Raises:
        ListError: the value of `contains-any` and its like cannot be split.
    """
    head, colon, rest = cell.partition(":")
    if colon:
        if head in _SIMPLE:
            return Assertion(sys.intern(head), js.trim(rest), line=line)  # one text for all rows
        for prefix in _CODE:
            if cell.startswith(prefix):
                return Assertion("javascript", js.trim(cell[len(prefix) :]), line=line)
        if head in ("grade", "llm-rubric"):
            return Assertion("llm-rubric", rest, line=line)
        if head == "python":
            return Assertion("python", js.trim(rest), line=line)
        if head == "file":
            if _SCRIPT.match(cell):
                return Assertion("javascript", cell, line=line)
            if _PYTHON.match(cell):
                return Assertion("python", cell[len("file://") :] if reference else cell, line=line)
    found = (_REFERENCE if reference else _GRAMMAR).match(cell)
    if found is None:
        return Assertion("equals", cell, line=line)
    negation, base, number, value = found.groups()
    expected: Any = UNSET
    if value is not None:
        if base in LISTS:
            expected = split_list(js.trim(value)) if js.trim(value) else ""
        else:
            expected = value if base in _RAW else js.trim(value)
    threshold = None
    if base in WITH_THRESHOLD:
        threshold = _as_number(number) if number else 0.8 if base == "similar" else 0.75
    return Assertion(f"{negation or ''}{base}", expected, threshold=threshold, line=line)


def _as_number(text: str) -> int | float:
    """A decimal literal as a number, whole ones as integers."""
    return js.tidy(float(text))
