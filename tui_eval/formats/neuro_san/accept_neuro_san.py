"""An answer accepted in a neuro-san file: HOCON is not read back, so one literal on one line is changed."""

from __future__ import annotations

import json
import re
from typing import Any

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_values import EditedValue, answer_to, nearest, shown
from tui_eval.yaml.yaml_edit import EditError


def neuro_san(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A neuro-san file with the literal on the assertion's line, where there is exactly one, as the answer
    has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    kind = verdict.type
    if kind == "keywords":
        said = verdict.actual if isinstance(verdict.actual, str) else answer_to(attempt, verdict)
        value: Any = nearest(str(verdict.expected), said)
    elif kind == "value" or kind.removeprefix("not_") in ("less", "greater"):
        value = _bound(verdict) if kind != "value" else verdict.actual
    elif kind == "not_keywords":
        return _left_out(text, verdict)
    else:
        raise EditError("only a person can say what it should ask for: edit the case (e)")
    if isinstance(value, dict | list) or value is None or isinstance(verdict.expected, dict | list):
        raise EditError("the value is no single text or number: edit the case (e)")
    lines = text.split("\n")
    line, start, end = _spot(lines, verdict)
    new = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and not line[start:end].startswith('"') and re.fullmatch(r"\w+", value):
        new = value
    lines[verdict.line - 1] = line[:start] + new + line[end:]
    return EditedValue("\n".join(lines), shown(verdict.expected), shown(value), verdict.line)


def _bound(verdict: Verdict) -> int | float:
    """The number that the answer's own would have kept to; as documented, `less` and `greater` are strict."""
    actual, expected = verdict.actual, verdict.expected
    if isinstance(actual, bool) or not isinstance(actual, int | float):
        raise EditError("the answer has no number there: edit the case (e)")
    if verdict.type.startswith("not_"):
        return actual
    step = 1 if isinstance(actual, int) and isinstance(expected, int) else max(abs(actual), 1) * 0.01
    return actual + (step if verdict.type == "less" else -step)


def _left_out(text: str, verdict: Verdict) -> EditedValue:
    """The file without one text of a list on the assertion's line."""
    lines = text.split("\n")
    line, start, end = _spot(lines, verdict)
    before, after = line[:start].rstrip(), line[end:].lstrip()
    if not before.endswith(("[", ",")) or not after.startswith(("]", ",")):
        raise EditError(f"{shown(verdict.expected)} is no item of a list on one line: edit the case (e)")
    if after.startswith(","):
        rest = line[:start] + after[1:].lstrip()
    else:
        rest = before.removesuffix(",") + line[end:]
    lines[verdict.line - 1] = rest
    return EditedValue("\n".join(lines), shown(verdict.expected), "(left out)", verdict.line)


def _spot(lines: list[str], verdict: Verdict) -> tuple[str, int, int]:
    """The assertion's line, and where in it the expected value stands.

    Raises:
        EditError: nowhere, or more than once.
    """
    if not 0 < verdict.line <= len(lines):
        raise EditError("its line is not known: edit the case (e)")
    line = lines[verdict.line - 1]
    spots = {m.span("it") for pattern in _spellings(verdict.expected) for m in re.finditer(pattern, line)}
    if len(spots) != 1:
        where = "more than once" if spots else "not"
        raise EditError(f"{shown(verdict.expected)} stands {where} on line {verdict.line}: edit the case (e)")
    return line, *spots.pop()


def _spellings(expected: Any) -> list[str]:
    quoted = {json.dumps(expected, ensure_ascii=False), json.dumps(expected)}
    if not isinstance(expected, str):
        return [rf"(?<![\w.\"-])(?P<it>{re.escape(text)})(?![\w.\"])" for text in quoted]
    patterns = [rf"(?<![\\\"])(?P<it>{re.escape(text)})(?!\")(?!\s*[:=])" for text in quoted]
    if re.fullmatch(r"\w[\w -]*", expected):
        patterns.append(rf"[\[,:=]\s*(?P<it>{re.escape(expected)})\s*(?=[\],}}\n]|#|//|$)")
    return patterns
