"""An answer accepted in a promptfoo suite: a YAML or JSON file, or a table of tests."""

from __future__ import annotations

from typing import Any

import msgspec

from tui_eval.guard.yaml_scalars import core_scalar
from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_cells import cell_changed
from tui_eval.suites.accepted_nodes import drop, only, plain, put
from tui_eval.suites.accepted_values import BUDGETS, EQUALS, HOLDS, LISTS, Edited, budget, new_value, shown
from tui_eval.suites.yaml_edit import EditError, Found, NotThere, YamlText


def promptfoo(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
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


def _graded(document: YamlText, item: Found, verdict: Verdict, attempt: Attempt) -> Edited:
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


def _asks(document: YamlText, item: Found) -> str | None:
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


def table(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
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


def json_lines(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    """A promptfoo file with a test of JSON on each line, one assertion as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    lines = text.split("\n")
    at = verdict.line or case.line
    if not 0 < at <= len(lines) or not lines[at - 1].strip():
        raise NotThere(f"there is no test at line {at} any more: edit the file (e)")
    alone = msgspec.structs.replace(verdict, line=1)
    edited = promptfoo(lines[at - 1], case, alone, attempt)
    lines[at - 1] = edited.text
    return edited._replace(text="\n".join(lines), line=at)
