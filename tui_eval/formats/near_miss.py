"""Files that no format recognises and that were yet meant as a suite: passed over, they would not be missed, and the
run without them would be green.

A format says what its root looks like (`Shape`). A file was meant so where each part of it stands at the root, one of
them by a slip of its key (`close_to`; also in other capitals, or with `-` or a blank for `_`) or with a value of
another kind, and the other values are of the kind that they ought to be; or where the keys stand there and the text
cannot be parsed. Ordinary files have no such keys, and are not parsed for this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from tui_eval.guard.spelling import close_to
from tui_eval.model import Problem
from tui_eval.suites.read_values import kind
from tui_eval.yaml import yaml_lines

_KEY = r"""["']?(\w[\w.-]*(?: [\w.-]+)?)["']?[ \t]*:"""
_AT_MARGIN = rf"(?m)^{_KEY}(?=\s|$)"
_INDENTED = rf"(?m)^[ \t]+{_KEY}(?=\s|$)"
_IN_FLOW = rf"[{{,]\s*{_KEY}"
_FLOW = r"(?:\s|#[^\n]*\n|---)*\{"


def _never(_: Any, __: dict[Any, Any]) -> bool:
    return False


class RootKey(NamedTuple):
    """A key of a suite's root. `fits` says whether a value is one that this key holds, `surely` whether it is
    one where the key is not written so (it may be somebody else's word), `nearly` (asked with the root, too)
    whether it may be meant as its value though it is of another kind, which `holds` names."""

    name: str
    fits: Callable[[Any], bool]
    surely: Callable[[Any], bool]
    nearly: Callable[[Any, dict[Any, Any]], bool] = _never
    holds: str = ""


class Shape(NamedTuple):
    """What the root of a suite of a format (`title`) looks like: a key of each of the `parts`. `inside` is a
    pattern of text that stands in it beside them: what a file that cannot be parsed is known by where a key
    is not written right."""

    title: str
    parts: tuple[tuple[RootKey, ...], ...]
    inside: str


class PassedOver:
    """A file that no format recognised: its `path` from the project's `root`, and its text."""

    def __init__(self, path: str, text: str, root: Path) -> None:
        self.path = path
        self.text = text
        self.root = root

    @cached_property
    def keys(self) -> frozenset[str]:
        """What may be keys of the root of YAML or JSON, without parsing it."""
        if re.match(_FLOW, self.text):
            return frozenset(re.findall(_IN_FLOW, self.text))
        return frozenset(re.findall(_AT_MARGIN, self.text) or re.findall(_INDENTED, self.text))

    @cached_property
    def document(self) -> yaml_lines.YamlDocument:
        """It as YAML."""
        return yaml_lines.load(self.text, self.path)


@lru_cache(maxsize=10_000)
def is_slip(key: str, name: str) -> bool:
    """Whether a key looks like a slip for this one: another one, but not by much."""
    plain = key.lower().replace("-", "_").replace(" ", "_")
    return key != name and (plain == name or close_to(plain, (name,)) is not None)


@lru_cache(maxsize=1000)
def _may_be(shape: Shape, keys: frozenset[str]) -> bool:
    """Whether each part stands among these keys, well written or not."""
    return all(
        any(key == one.name or is_slip(key, one.name) for one in part for key in keys) for part in shape.parts
    )


def may_be(shape: Shape, file: PassedOver) -> bool:
    """Whether the file can be meant as a suite of this shape, by its ending and its keys: it is worth a look."""
    return file.path.lower().endswith((".yaml", ".yml")) and _may_be(shape, file.keys)


def in_yaml(shape: Shape, file: PassedOver) -> list[Problem]:
    """Why a file is no suite of this shape although it was meant as one; empty: it was not."""
    if not may_be(shape, file):
        return []
    keys = file.keys
    document = file.document
    root = document.value
    if isinstance(root, dict):
        found = [_in_part(part, root) for part in shape.parts]
        if any(one is None for one in found):
            return []
        wrong = [one for one in found if one is not None and one.wrong]
        return [_problem(shape, file.path, document.lines, one) for one in wrong[:1]]
    exact = all(any(one.name in keys for one in part) for part in shape.parts)
    if root is None and document.problems and (exact or re.search(shape.inside, file.text)):
        return [broken(shape.title, document.problems[0])]
    return []


class _Found(NamedTuple):
    key: Any
    value: Any
    part: RootKey

    @property
    def wrong(self) -> bool:
        return self.key != self.part.name or not self.part.fits(self.value)


def _in_part(part: tuple[RootKey, ...], root: dict[Any, Any]) -> _Found | None:
    """The key of a root that is, or is meant as, one of these; None: none is."""
    return next(_candidates(part, root), None)


def _candidates(part: tuple[RootKey, ...], root: dict[Any, Any]) -> Iterator[_Found]:
    for one in part:
        if one.name in root and one.fits(root[one.name]):
            yield _Found(one.name, root[one.name], one)
    for one in part:
        for key, value in root.items():
            if is_slip(str(key), one.name) and one.surely(value):
                yield _Found(key, value, one)
    for one in part:
        if one.name in root and one.nearly(root[one.name], root):
            yield _Found(one.name, root[one.name], one)


def _problem(shape: Shape, path: str, lines: yaml_lines.YamlLines, found: _Found) -> Problem:
    name = found.part.name
    line = lines.at(str(found.key))
    if found.key != name:
        return slip(shape.title, path, line, str(found.key), name)
    message = f"must be {found.part.holds}, not {kind(found.value)}: the file is no {shape.title} suite"
    return Problem(path, line, name, message, "mend it; nothing of the file is run", passed_over=True)


def slip(title: str, path: str, line: int, key: str, name: str) -> Problem:
    """A key of the root that is meant as another one."""
    message = f"{key!r} is no key of a {title} suite, and nothing of the file is run"
    return Problem(path, line, " ".join(key.split()), message, f"did you mean {name!r}?", passed_over=True)


def broken(title: str, problem: Problem) -> Problem:
    """A file with the keys of a suite whose text cannot be parsed."""
    message = f"{problem.message} (the file has the keys of a {title} suite)"
    return Problem(problem.path, problem.line, problem.key, message, problem.cure, passed_over=True)
