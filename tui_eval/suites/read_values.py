"""What the readers share: saying what is wrong where, and taking a value as the type that is meant."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Collection, Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec

from tui_eval.guard.spelling import close_to
from tui_eval.model import Assertion, Case, Problem, Suite
from tui_eval.yaml.yaml_lines import Misread


class Places(Protocol):
    """Where a key path stands: `yaml_lines.YamlLines`, or HOCON's."""

    def at(self, *path: Hashable) -> int: ...

    def source(self, *path: Hashable) -> str | None: ...

    def file(self, *path: Hashable) -> str | None: ...


def misread_into_cases(
    misread: Iterable[Misread], suite: Suite, under: Mapping[tuple[Hashable, ...], Case]
) -> None:
    """What YAML does not give as it is written (a key given twice, an unknown tag) is an error of the case
    whose path it stands below, else of all of the suite: judged by what is left, it may pass. Of a key that
    is given twice the tools of these formats take the last one without a word."""
    held: set[int] = set()
    for path, problem, doubled in misread:
        key = dotted((*path, problem.key) if doubled else path) or problem.key
        told = msgspec.structs.replace(problem, key=key, tool="ignores" if doubled else "")
        around = (under.get(path[:length]) for length in range(len(path) + 1))
        holders = [case for case in around if case is not None] or suite.cases
        for case in holders:
            case.problems.append(told)
        if holders:
            held.add(id(problem))
    suite.problems[:] = [one for one in suite.problems if id(one) not in held]


def problem_of(
    case: Case,
    assertion: Assertion | None,
    message: str,
    cure: str = "",
    level: Literal["error", "note"] = "error",
    *,
    key: str = "",
) -> Problem:
    """What is wrong with an assertion of a case, where it stands; without one with the case, under `key` or
    its name."""
    return Problem(
        path=case.path,
        line=(assertion.line if assertion is not None else 0) or case.line,
        key=assertion.type if assertion is not None else key or case.name,
        message=message,
        cure=cure,
        level=level,
    )


class Reading:
    """One file being read: collects its problems, each with the line of the key concerned.

    `problems` may be pointed at another list while a case is read, so that what is wrong with one
    case stays with that case.
    """

    def __init__(self, path: str, places: Places, problems: list[Problem] | None = None) -> None:
        self.path = path
        self.places = places
        self.problems: list[Problem] = [] if problems is None else problems

    def error(
        self,
        at: tuple[Hashable, ...],
        message: str,
        cure: str = "",
        tool: Literal["", "ignores", "refuses"] = "",
    ) -> None:
        """Something that must be mended before the case can count; `tool` as in `Problem`."""
        self._add(at, message, cure, note=False, tool=tool)

    def note(self, at: tuple[Hashable, ...], message: str, cure: str = "") -> None:
        """Something odd that changes no verdict."""
        self._add(at, message, cure, note=True)

    def _add(
        self,
        at: tuple[Hashable, ...],
        message: str,
        cure: str,
        note: bool,
        tool: Literal["", "ignores", "refuses"] = "",
    ) -> None:
        path = self.places.file(*at) or self.path
        level = "note" if note else "error"
        self.problems.append(Problem(path, self.places.at(*at), dotted(at), message, cure, level, tool))

    def unknown_keys(
        self,
        mapping: Mapping[Any, Any],
        known: Iterable[str],
        at: tuple[Hashable, ...],
        own: Collection[str] = (),
        said: Collection[str] = (),
    ) -> None:
        """A key that looks like a slip for a known one is an error, any other unknown one a note; the
        tools ignore both. `own` are words that mean something of their own, and are no slips; of those `said` something
        has been said."""
        names = tuple(known)
        for key in mapping:
            if key in names or key in said:
                continue
            slip = None if key in own else close_to(str(key), names)
            if slip is not None:
                self.error((*at, key), f"unknown key {str(key)!r}", f"did you mean {slip!r}?", "ignores")
            else:
                self.note((*at, key), f"unknown key {str(key)!r} is not read", "")

    def misplaced(
        self, mapping: Mapping[Any, Any], keys: Iterable[str], at: tuple[Hashable, ...], where: str
    ) -> None:
        """Keys that ask for something elsewhere in the file, and nothing here; the tools ignore them."""
        for key in keys:
            if key in mapping:
                self.error((*at, key), f"{key!r} is not read here", f"put it under {where}", "ignores")

    def text(self, value: Any, at: tuple[Hashable, ...], what: str) -> str | None:
        """`value` as text: a number is taken as the text the file has; else an error, and None."""
        if isinstance(value, str):
            return value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self.places.source(*at) or str(value)
        self.error(
            at, f"{what} must be text, not {kind(value)}", "quote it" if isinstance(value, bool) else ""
        )
        return None

    def name(self, value: Any, at: tuple[Hashable, ...]) -> str:
        """A name: any scalar as the file writes it, stripped; "" where there is none."""
        if value is None:
            return ""
        if isinstance(value, (dict, list)):
            self.error(at, f"must be text, not {kind(value)}")
            return ""
        return (value if isinstance(value, str) else self.places.source(*at) or str(value)).strip()

    def number(self, value: Any, at: tuple[Hashable, ...], *, least: float | None = None) -> float | None:
        """`value` as a number; text that reads as one counts (YAML 1.1 takes `1e-5` for text)."""
        if isinstance(value, str):
            with contextlib.suppress(ValueError):
                value = float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.error(at, f"must be a number, not {kind(value)}")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.error(at, "must be a finite number")
            return None
        if least is not None and value < least:
            self.error(at, f"must be at least {least:g}, not {shown(value)}")
            return None
        return value


def dotted(path: tuple[Hashable, ...]) -> str:
    """A key path as a person reads it: `test_cases[0].expected.escalated`."""
    text = ""
    for step in path:
        if isinstance(step, int) and not isinstance(step, bool):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else str(step)
    return " ".join(text.split())


def kind(value: Any) -> str:
    """What a value of a file is, in a person's words."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, (int, float)):
        return f"the number {shown(value)}"
    return f"the text {shown(value)}" if isinstance(value, str) else type(value).__name__


def shown(value: Any, limit: int = 60) -> str:
    """A short one-line form of a value for a message."""
    try:
        text = repr(value)
    except ValueError:  # an integer with more digits than Python prints
        text = "a very large number"
    return text if len(text) <= limit else text[: limit - 1] + "…"


_LARGEST_CODE = 2_000_000
"""Bytes of a file of code up to which a function is looked for in it."""


def function_line(path: Path, name: str) -> int:
    """The line at which a function begins in a Python or JavaScript file; 0 where it is not found."""
    if not name:
        return 0
    try:
        if path.stat().st_size > _LARGEST_CODE:
            return 0
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return 0
    plain = re.escape(name.rpartition(".")[2])
    pattern = rf"^[ \t]*(?:async[ \t]+)?(?:export[ \t]+)?(?:async[ \t]+)?(?:def|class|function)\*?[ \t]+{plain}\b|^[ \t]*(?:const|let|var)[ \t]+{plain}\b"
    found = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 0
