"""`$ref`: parts of a configuration that stand elsewhere, in the same file or another one."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from tui_eval.formats.promptfoo.read.suite_file import LineOf, Missing, SuiteReading

DEEPEST = 60
MOST = 1_000_000
"""Lists and mappings that references may stand for, all together."""
_DEEPEST_TOLD = 8
"""Keys of the path by which a reference that cannot be followed is told from others: one to itself unfolds for long."""


class References:
    """Replaces every `{"$ref": "file#/path"}` of a document. One that cannot be followed leaves nothing in its place,
    and is noted with it (`SuiteReading.cannot_read`)."""

    def __init__(self, reading: SuiteReading, document: Any, line_of: LineOf, name: str = "") -> None:
        self.reading = reading
        self.name = name or reading.name
        self.line_of = line_of
        self.documents: dict[str, Any] = {"": document}
        self.used: set[str] = set()
        self._count = 0
        self._open: set[tuple[str, ...]] = set()
        """The files and places that references which are being followed stand for."""
        self._first: tuple[tuple[Any, ...], str] = (), ""
        """Where the document has the one with which that began, and what it says: faults are said of that one."""
        self._said: set[tuple[Any, ...]] = set()

    def resolve(self, value: Any, at: tuple[Any, ...] = (), source: str = "", depth: int = 0) -> Any:
        """The value, which stands `at` a place of the document, without references. What holds none is given back as
        it is, not copied."""
        if depth:
            self._count += 1
        if isinstance(value, list):
            items = [self.resolve(v, (*at, number), source, depth) for number, v in enumerate(value)]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str):
            target = self._target(reference, at, source, depth)
            if len(value) > 1 and isinstance(target, dict):
                # Keys beside a reference go over those of what it refers to.
                others = {key: item for key, item in value.items() if key != "$ref"}
                return {**target, **self.resolve(others, at, source, depth)}
            return target
        mapped = {
            # Schemas of tools have references of their own, for the model that gets them.
            k: v if k == "parameters" else self.resolve(v, (*at, k), source, depth)
            for k, v in value.items()
        }
        return mapped if any(mapped[k] is not v for k, v in value.items()) else value

    def _target(self, reference: str, at: tuple[Any, ...], source: str, depth: int) -> Any:
        if not depth:
            self._first = at, reference
        if depth > DEEPEST or self._count > MOST:
            return self._wrong(*self._first, "refers too far, or to too much")
        file, _, pointer = reference.partition("#")
        if re.match(r"[a-zA-Z][a-zA-Z+.-]+://", file) and not file.startswith("file://"):
            return self._wrong(
                at, reference, "nothing is fetched while a suite is loaded", "copy it into a file"
            )
        name = file.removeprefix("file://") or source
        if name not in self.documents:
            try:
                self.documents[name] = self.reading.parsed(self.reading.find(name))[0]
            except Missing as error:
                self.documents[name] = None
                return self._wrong(at, reference, str(error) or f"{name} cannot be read")
        value = self.documents[name]
        steps = [unquote(p).replace("~1", "/").replace("~0", "~") for p in pointer.strip("/").split("/") if p]
        if steps and not name:
            self.used.add(steps[0])
        for step in steps:
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdigit() and int(step[:9]) < len(value):
                value = value[int(step[:9])]
            else:
                return self._wrong(at, reference, f"there is no {step!r} at that place")
        place = (name, *steps)
        if place in self._open:
            return self._wrong(*self._first, "refers to itself")
        self._open.add(place)
        try:
            return self.resolve(value, at, name, depth + 1)
        finally:
            self._open.discard(place)

    def _wrong(self, at: tuple[Any, ...], reference: str, message: str, cure: str = "") -> None:
        place = at[:_DEEPEST_TOLD]
        if (*place, reference) not in self._said:
            self._said.add((*place, reference))
            line = self.line_of(*place)
            self.reading.cannot_read(self.name, place, line, f"$ref {reference}: {message}", cure)
