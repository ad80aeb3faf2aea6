"""Changing one `__expected` cell of a CSV text; every other character stays."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tui_eval.suites.accepted_values import Edited
from tui_eval.suites.yaml_edit import EditError, NotThere


class Cell(NamedTuple):
    """Where a cell stands in the text, and what it says."""

    start: int
    end: int
    value: str


def rows(text: str, delimiter: str = ",") -> Iterator[tuple[int, list[Cell]]]:
    """The records with their first line (from 1); quotes as in RFC 4180."""
    at, line, size = 1 if text.startswith("\ufeff") else 0, 1, len(text)
    while at < size:
        cells: list[Cell] = []
        first = line
        while True:
            start = at
            if at < size and text[at] == '"':
                at += 1
                while at < size:
                    if text[at] == '"':
                        if text[at + 1 : at + 2] == '"':
                            at += 2
                            continue
                        at += 1
                        break
                    line += text[at] == "\n"
                    at += 1
            while at < size and text[at] not in (delimiter, "\n"):
                at += 1
            end = at - 1 if at > start and text[at - 1] == "\r" else at
            cells.append(Cell(start, end, _value(text[start:end], delimiter)))
            if at < size and text[at] == delimiter:
                at += 1
                continue
            break
        at += 1
        line += 1
        yield first, cells


def cell_changed(text: str, line: int, kind: str, expected: Any, value: Any) -> Edited:
    """The text with the `__expected` cell of the record at `line` asking for `value` (None: for nothing).

    Raises:
        EditError: no cell, or more than one, says what was expected.
    """
    from tui_eval.promptfoo_words import ListError
    from tui_eval.suites.promptfoo.shorthand import parse

    header: list[Cell] | None = None
    for first, cells in rows(text):
        if header is None:
            header = cells
            continue
        if first != line:
            continue
        found: list[Cell] = []
        for name, cell in zip(header, cells, strict=False):
            if not name.value.strip().startswith("__expected") or not cell.value.strip():
                continue
            try:
                meant = parse(cell.value.strip())
            except ListError:
                continue
            if meant.type == kind and meant.value == expected:
                found.append(cell)
        if len(found) != 1:
            raise (EditError if found else NotThere)(
                f"row at line {line}: {len(found)} cells say so: edit the row (e)"
            )
        cell = found[0]
        plain = cell.value.strip()
        if value is None:
            return Edited(text[: cell.start] + text[cell.end :], plain, "(left out)", line)
        bare = kind == "equals" and plain == expected
        said = ", ".join(map(_listed, value)) if isinstance(value, list) else str(value)
        new = said if bare and parse(said.strip() or " ").type == "equals" else f"{kind}:{said}"
        if new == f"{kind}:{said}" and plain.startswith(f"{kind}: "):
            new = f"{kind}: {said}"
        return Edited(text[: cell.start] + _quoted(new) + text[cell.end :], plain, new, line)
    raise NotThere(f"there is no row at line {line} any more: edit the file (e)")


def _value(raw: str, delimiter: str) -> str:
    cells = next(csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter), [])
    return cells[0] if cells else ""


def _listed(item: Any) -> str:
    text = str(item)
    return (
        json.dumps(text, ensure_ascii=False) if "," in text or '"' in text or text != text.strip() else text
    )


def _quoted(value: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="").writerow([value])
    return out.getvalue()
