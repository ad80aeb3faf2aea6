"""An answer accepted in a neuro-san file: HOCON is not read back, so one literal on one line is changed."""

from __future__ import annotations

import json
import re
from typing import Any

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_texts import nearest
from tui_eval.suites.accepted_values import Edited, answer_to, shown
from tui_eval.suites.yaml_edit import EditError


def neuro_san(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    """A neuro-san file with the literal on the assertion's line, where there is exactly one, as the answer
    has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    kind = verdict.type
    if kind == "keywords":
        said = verdict.actual if isinstance(verdict.actual, str) else answer_to(attempt, verdict)
        value: Any = nearest(str(verdict.expected), said)
    elif kind == "value":
        value = verdict.actual
    else:
        raise EditError("only a person can say what it should ask for: edit the case (e)")
    if isinstance(value, dict | list) or value is None or isinstance(verdict.expected, dict | list):
        raise EditError("the value is no single text or number: edit the case (e)")
    lines = text.split("\n")
    if not 0 < verdict.line <= len(lines):
        raise EditError("its line is not known: edit the case (e)")
    line = lines[verdict.line - 1]
    spellings = _spellings(verdict.expected)
    spots = [match.span("it") for pattern in spellings for match in re.finditer(pattern, line)]
    if len(set(spots)) != 1:
        where = "more than once" if spots else "not"
        raise EditError(f"{shown(verdict.expected)} stands {where} on line {verdict.line}: edit the case (e)")
    start, end = spots[0]
    new = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and not line[start:end].startswith('"') and re.fullmatch(r"\w+", value):
        new = value
    lines[verdict.line - 1] = line[:start] + new + line[end:]
    return "\n".join(lines), shown(verdict.expected), shown(value), verdict.line


def _spellings(expected: Any) -> list[str]:
    quoted = {json.dumps(expected, ensure_ascii=False), json.dumps(expected)}
    if not isinstance(expected, str):
        return [rf"(?<![\w.\"-])(?P<it>{re.escape(text)})(?![\w.\"])" for text in quoted]
    patterns = [rf"(?<![\\\"])(?P<it>{re.escape(text)})(?!\")(?!\s*[:=])" for text in quoted]
    if re.fullmatch(r"\w[\w -]*", expected):
        patterns.append(rf"[\[,:=]\s*(?P<it>{re.escape(expected)})\s*(?=[\],}}\n]|#|//|$)")
    return patterns
