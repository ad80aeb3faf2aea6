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
    ends = _record_end(text)
    if not strict and len(delimiter) == 1 and not _lone_breaks(text, ends):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        try:
            found = list(reader)
            return found, None if reader.line_num == len(found) else _lines_of(found)
        except csv.Error:
            pass
    lines, found = [], []
    for line, record in _by_hand(text, delimiter, ends, relaxed=not strict):
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


def _record_end(text: str) -> str:
    """What ends a record: the first line break that stands outside quotes, as csv-parse finds it out."""
    for found in _BREAK.finditer(text):
        if text.count('"', 0, found.start()) % 2 == 0:
            return found.group()
    return "\n"


def _lone_breaks(text: str, ends: str) -> bool:
    """Whether other line breaks than those that end records stand outside quotes, where they are text."""
    if ends != "\r\n" and ("\r" if ends == "\n" else "\n") not in text:
        return False
    if ends == "\r\n" and text.count("\n") == text.count("\r") == text.count("\r\n"):
        return False
    outside = "".join(piece.replace(ends, "") for piece in text.split('"')[::2])
    return "\n" in outside or "\r" in outside


def _by_hand(text: str, delimiter: str, ends: str, *, relaxed: bool) -> Iterator[tuple[int, list[str]]]:
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
                closed = not after or text.startswith((delimiter, ends), at + 1)
                if after == '"':
                    field.append('"')
                    at += 2
                    continue
                if closed:
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
        if text.startswith(delimiter, at):
            at += len(delimiter) - 1
            record.append("".join(field))
            field, was_quoted = [], False
        elif text.startswith(ends, at):
            record.append("".join(field))
            yield start, record
            header = header or record
            record, field, was_quoted = [], [], False
            at += len(ends) - 1
            line += 1
            start = line
        else:
            line += c == "\n"
            field.append(c)
        at += 1
    if quoting:
        raise CsvError(
            f"Quote Not Closed: the parsing is finished with an opening quote at line {line}", line
        )
    if record or field or was_quoted:
        record.append("".join(field))
        yield start, record
