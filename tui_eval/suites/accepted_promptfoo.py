"""An answer accepted in a promptfoo suite: a YAML or JSON file, or a table of tests."""

from __future__ import annotations

from typing import Any

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_cells import cell_changed
from tui_eval.suites.accepted_nodes import drop, only, put
from tui_eval.suites.accepted_values import BUDGETS, EQUALS, HOLDS, LISTS, Edited, budget, new_value
from tui_eval.suites.yaml_edit import EditError, Found, YamlText


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


def _entry(node: Any, key: str) -> str | None:
    return next((str(v.value) for k, v in node.value if k.value == key and v.id == "scalar"), None)


def table(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    """A promptfoo table with one expected cell as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    if verdict.type in BUDGETS or verdict.type not in EQUALS | HOLDS | LISTS:
        raise EditError("only a person can say what the cell should ask for: edit the row (e)")
    value = new_value(verdict, attempt)
    expected = verdict.expected
    return cell_changed(text, verdict.line, verdict.type, expected, value)
