"""Where in a reply the texts stand that assertions looked for, or must not have found."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tui_eval.model import Verdict
from tui_eval.tui.state.lines import Line, Mark, marked, one_line, plain
from tui_eval.tui.state.text_difference import NearMiss, near_miss

IGNORING_CASE = ("should_contain", "should_not_contain", "icontains", "icontains-any", "icontains-all")
CASE_SENSITIVE = ("contains", "contains-any", "contains-all", "starts-with", "keywords")
SHORTEST_NEAR = 3
"""A wanted text shorter than this (characters) has no nearest place worth showing."""


def content_texts(verdict: Verdict) -> tuple[list[str], bool, bool] | None:
    """What a content assertion looks for in the reply: texts, whether case is ignored, whether they
    are forbidden. None for other assertions."""
    kind, forbidden = verdict.type, "not" in re.split(r"[-_]", verdict.type)
    for prefix in ("not-", "not_"):
        kind = kind.removeprefix(prefix)
    if kind not in IGNORING_CASE and kind not in CASE_SENSITIVE:
        return None
    if verdict.target.split(".")[0] not in ("text", ""):
        return None
    return list(_texts(verdict.expected)), kind in IGNORING_CASE, forbidden


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        if str(value).strip():
            yield one_line(value, 500)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


class Expectations:
    """The marks for one reply's lines, made from the verdicts that look at it."""

    def __init__(self, verdicts: Sequence[Verdict]) -> None:
        self._found: list[tuple[re.Pattern[str], str]] = []
        self._missing: list[str] = []
        for verdict in verdicts:
            looked = content_texts(verdict)
            if looked is None:
                continue
            texts, ignoring_case, forbidden = looked
            for text in texts:
                flags = re.IGNORECASE if ignoring_case else 0
                style = "hit-forbidden" if forbidden else "hit-wanted"
                self._found.append((re.compile(re.escape(text), flags), style))
                if verdict.passed is False and not forbidden and len(text) >= SHORTEST_NEAR:
                    self._missing.append(text)

    def __bool__(self) -> bool:
        return bool(self._found)

    def mark(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines with found texts marked, and the nearest thing to one that is nowhere."""
        if not self._found:
            yield from lines
            return
        lines = list(lines)
        texts = [plain(line) for line in lines]
        near = self._nearest(texts)
        for number, line in enumerate(lines):
            marks = [
                Mark(match.start(), match.end(), style)
                for wanted, style in self._found
                for match in wanted.finditer(texts[number])
            ]
            yield marked(line, [*near.get(number, ()), *marks])

    def _nearest(self, texts: list[str]) -> dict[int, list[Mark]]:
        near: dict[int, list[Mark]] = {}
        for wanted in self._missing:
            if any(wanted.lower() in text.lower() for text in texts):
                continue
            best: tuple[NearMiss, int] | None = None
            for number, text in enumerate(texts[:500]):
                miss = near_miss(wanted, text)
                if miss is not None and (best is None or miss.distance < best[0].distance):
                    best = (miss, number)
            if best is not None:
                miss, number = best
                found = near.setdefault(number, [])
                found.append(Mark(miss.start, miss.end, "hit-near"))
                found.extend(Mark(miss.start + a, miss.start + b, "added") for a, b in miss.found_marks)
        return near
