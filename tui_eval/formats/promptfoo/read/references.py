"""`$ref`: parts of a configuration that stand elsewhere, in the same file or another one."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from tui_eval.formats.promptfoo.read.suite_file import Missing, SuiteReading

DEEPEST = 60
MOST = 200_000


class References:
    """Replaces every `{"$ref": "file#/path"}` of a document; problems are noted at the suite."""

    def __init__(self, reading: SuiteReading, document: Any, name: str = "") -> None:
        self.reading = reading
        self.name = name or reading.name
        self.documents: dict[str, Any] = {"": document}
        self.used: set[str] = set()
        self._count = 0
        self._said: set[str] = set()

    def resolve(self, value: Any, source: str = "", depth: int = 0) -> Any:
        """The value without references. What holds none is given back as it is, not copied."""
        if isinstance(value, list):
            items = [self.resolve(v, source, depth) for v in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if not isinstance(value, dict):
            return value
        reference = value.get("$ref")
        if isinstance(reference, str):
            target = self._target(reference, source, depth)
            if len(value) > 1 and isinstance(target, dict):
                # Keys beside a reference go over those of what it refers to.
                others = {key: item for key, item in value.items() if key != "$ref"}
                return {**target, **self.resolve(others, source, depth)}
            return target
        mapped = {
            # Schemas of tools have references of their own, for the model that gets them.
            k: v if k == "parameters" else self.resolve(v, source, depth)
            for k, v in value.items()
        }
        return mapped if any(mapped[k] is not v for k, v in value.items()) else value

    def _target(self, reference: str, source: str, depth: int) -> Any:
        self._count += 1
        if depth > DEEPEST or self._count > MOST:
            return self._wrong(reference, "refers to itself, or too far")
        file, _, pointer = reference.partition("#")
        if re.match(r"[a-zA-Z][a-zA-Z+.-]+://", file) and not file.startswith("file://"):
            return self._wrong(reference, "nothing is fetched while a suite is loaded", "copy it into a file")
        name = file.removeprefix("file://") or source
        if name not in self.documents:
            try:
                self.documents[name] = self.reading.parsed(self.reading.find(name))[0]
            except Missing as error:
                self.documents[name] = None
                return self._wrong(reference, str(error) or f"{name} cannot be read")
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
                return self._wrong(reference, f"there is no {step!r} at that place")
        return self.resolve(value, name, depth + 1)

    def _wrong(self, reference: str, message: str, cure: str = "") -> None:
        if reference not in self._said:
            self._said.add(reference)
            self.reading.problem(self.name, 0, f"$ref {reference}", message, cure)
