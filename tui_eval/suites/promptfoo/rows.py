"""The rows of a CSV text, as csv-parse gives them to promptfoo (formats/promptfoo.md 4.2).

The standard library's parser does the work; only where it refuses a text, or the person asked for
`PROMPTFOO_CSV_STRICT`, our own slower one follows csv-parse rule by rule.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

csv.field_size_limit(2**31 - 1)

_BREAK = re.compile(r"\r\n|\r|\n")


class CsvError(Exception):
    """The text is not CSV as promptfoo reads it; `line` is where, counted from 1."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def records(
    text: str, delimiter: str = ",", *, strict: bool = False
) -> tuple[list[list[str]], list[int] | None]:
    """Every record, the header first, and the line of each (None: the n-th stands on line n).

    A blank line is a record without cells, to be taken as one empty cell.

    Raises:
        CsvError: a quote where none may stand (strict), or one that is never closed.
    """
    if not strict:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            found = list(reader)
            return found, None if reader.line_num == len(found) else _lines_of(found)
        except csv.Error:
            pass
    lines, found = [], []
    for line, record in _by_hand(text, delimiter, relaxed=not strict):
        lines.append(line)
        found.append(record)
    return found, lines


def rows(text: str, delimiter: str = ",", *, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
    """`(line, cells)` of every record, as `records`; a blank line is one empty cell."""
    found, lines = records(text, delimiter, strict=strict)
    for index, record in enumerate(found):
        yield lines[index] if lines else index + 1, record or [""]


def _lines_of(found: list[list[str]]) -> list[int]:
    """The line on which each record begins: line breaks can only stand within cells."""
    lines, line = [], 1
    for record in found:
        lines.append(line)
        line += 1
        for cell in record:
            if "\n" in cell or "\r" in cell:
                line += len(_BREAK.findall(cell))
    return lines


def _by_hand(text: str, delimiter: str, *, relaxed: bool) -> Iterator[tuple[int, list[str]]]:
    """csv-parse's states: in a quoted field or not. Relaxed, a stray quote is an ordinary character."""
    record: list[str] = []
    field: list[str] = []
    quoting = was_quoted = False
    line = start = 1
    header: list[str] | None = None
    at, size = 0, len(text)
    while at < size:
        c = text[at]
        if quoting:
            if c == '"':
                after = text[at + 1 : at + 2]
                if after == '"':
                    field.append('"')
                    at += 2
                    continue
                if after in ("", delimiter, "\n", "\r"):
                    quoting, was_quoted = False, True
                    at += 1
                    continue
                if not relaxed:
                    raise CsvError(
                        f'Invalid Closing Quote: got "{after}" at line {line} instead of delimiter, '
                        "record delimiter, trimable character (if activated) or comment",
                        line,
                    )
                quoting = False
                field.insert(0, '"')
            line += c == "\n"
            field.append(c)
            at += 1
            continue
        if c == '"' and not was_quoted:
            if not field:
                quoting = True
                at += 1
                continue
            if not relaxed:
                name = header[len(record)] if header and len(record) < len(header) else len(record)
                raise CsvError(
                    f'Invalid Opening Quote: a quote is found on field "{name}" at line {line}, '
                    f'value is "{"".join(field)}"',
                    line,
                )
        if c == delimiter:
            record.append("".join(field))
            field, was_quoted = [], False
        elif c in "\r\n":
            record.append("".join(field))
            yield start, record
            header = header or record
            record, field, was_quoted = [], [], False
            if text.startswith("\r\n", at):
                at += 1
            line += 1
            start = line
        else:
            field.append(c)
        at += 1
    if quoting:
        raise CsvError(
            f"Quote Not Closed: the parsing is finished with an opening quote at line {line}", line
        )
    if record or field or was_quoted:
        record.append("".join(field))
        yield start, record
