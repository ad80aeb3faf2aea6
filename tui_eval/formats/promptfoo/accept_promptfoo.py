"""An answer accepted in a promptfoo suite: a YAML or JSON file, or a table of tests."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_values import (
    BUDGETS,
    EQUALS,
    HOLDS,
    LISTS,
    EditedValue,
    budget,
    drop,
    new_value,
    only,
    plain,
    put,
    shown,
)
from tui_eval.yaml.yaml_edit import EditError, FoundNode, ValueNotThere, YamlText
from tui_eval.yaml.yaml_scalars import core_scalar

# -- Changing one `__expected` cell of a CSV text; every other character stays.


class CsvCell(NamedTuple):
    """Where a cell stands in the text, and what it says."""

    start: int
    end: int
    value: str


def rows(text: str, delimiter: str = ",") -> Iterator[tuple[int, list[CsvCell]]]:
    """The records with their first line (from 1); quotes as in RFC 4180."""
    at, line, size = 1 if text.startswith("\ufeff") else 0, 1, len(text)
    while at < size:
        cells: list[CsvCell] = []
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
            cells.append(CsvCell(start, end, _value_of_accepted_cells(text[start:end], delimiter)))
            if at < size and text[at] == delimiter:
                at += 1
                continue
            break
        at += 1
        line += 1
        yield first, cells


def cell_changed(text: str, line: int, kind: str, expected: Any, value: Any) -> EditedValue:
    """The text with the `__expected` cell of the record at `line` asking for `value` (None: for nothing).

    Raises:
        EditError: no cell, or more than one, says what was expected.
    """
    from tui_eval.formats.promptfoo.promptfoo_words import ListError
    from tui_eval.formats.promptfoo.read.shorthand import parse

    header: list[CsvCell] | None = None
    for first, cells in rows(text):
        if header is None:
            header = cells
            continue
        if first != line:
            continue
        found: list[CsvCell] = []
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
            raise (EditError if found else ValueNotThere)(
                f"row at line {line}: {len(found)} cells say so: edit the row (e)"
            )
        cell = found[0]
        plain = cell.value.strip()
        if value is None:
            return EditedValue(text[: cell.start] + text[cell.end :], plain, "(left out)", line)
        bare = kind == "equals" and plain == expected
        said = ", ".join(map(_listed, value)) if isinstance(value, list) else str(value)
        new = said if bare and parse(said.strip() or " ").type == "equals" else f"{kind}:{said}"
        if new == f"{kind}:{said}" and plain.startswith(f"{kind}: "):
            new = f"{kind}: {said}"
        return EditedValue(text[: cell.start] + _quoted(new) + text[cell.end :], plain, new, line)
    raise ValueNotThere(f"there is no row at line {line} any more: edit the file (e)")


def _value_of_accepted_cells(raw: str, delimiter: str) -> str:
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


def promptfoo(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A promptfoo file with one assertion as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    document = YamlText(text)
    items = [
        one
        for one in document.nodes()
        if one.line == verdict.line and one.node.id == "mapping" and _entry(one.node, "type") == verdict.type
    ]
    if verdict.expected is not None:  # the line may be another file's, or hold several
        said = shown(verdict.expected).rstrip("\n")
        items = [
            one for one in items if (asked := _asks(document, one)) is None or asked.rstrip("\n") == said
        ]
    item = only(items, verdict.type)
    return _graded(document, item, verdict, attempt)


def _graded(document: YamlText, item: FoundNode, verdict: Verdict, attempt: Attempt) -> EditedValue:
    if verdict.type in BUDGETS:
        found = document.at(*item.path, "threshold")
        return put(document, only([found] if found else [], "threshold"), budget(verdict, attempt))
    if verdict.type.removeprefix("not-") in EQUALS | HOLDS | LISTS and verdict.type.startswith("not-"):
        return drop(document, item)
    found = document.at(*item.path, "value")
    value = new_value(verdict, attempt)
    target = only([found] if found else [], "value")
    if target.node.id == "scalar" and "{{" in str(target.node.value):
        raise EditError("the expected text is a template: edit the variable (e)")
    return put(document, target, value)


def _asks(document: YamlText, item: FoundNode) -> str | None:
    """What an assertion asks for, as people are shown it."""
    found = document.at(*item.path, "value")
    if found is None:
        return None
    if found.node.id == "scalar":
        return plain(found.node)
    return shown(_value(found.node))


def _value(node: Any) -> Any:
    """A node's value, as the reader of suites has it."""
    if node.id == "sequence":
        return [_value(item) for item in node.value]
    if node.id == "mapping":
        return {str(key.value): _value(value) for key, value in node.value}
    return core_scalar(node.value) if not node.style else node.value


def _entry(node: Any, key: str) -> str | None:
    return next((str(v.value) for k, v in node.value if k.value == key and v.id == "scalar"), None)


def table(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A promptfoo table with one expected cell as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    kind, known = verdict.type, EQUALS | HOLDS | LISTS
    if kind.startswith("not-") and kind.removeprefix("not-") in known:
        return cell_changed(text, verdict.line, kind, verdict.expected, None)
    if kind not in known:
        raise EditError("only a person can say what the cell should ask for: edit the row (e)")
    return cell_changed(text, verdict.line, kind, verdict.expected, new_value(verdict, attempt))


def json_lines(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A promptfoo file with a test of JSON on each line, one assertion as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    lines = text.split("\n")
    at = verdict.line or case.line
    if not 0 < at <= len(lines) or not lines[at - 1].strip():
        raise ValueNotThere(f"there is no test at line {at} any more: edit the file (e)")
    alone = msgspec.structs.replace(verdict, line=1)
    edited = promptfoo(lines[at - 1], case, alone, attempt)
    lines[at - 1] = edited.text
    return edited._replace(text="\n".join(lines), line=at)
