"""Which of people's own files a Python file imports, by its text alone: nothing is run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

MOST = 200
"""Files beyond which no more are looked for."""
_LARGEST = 1_000_000


class Imports:
    """Remembers what each file imports until it changes. One thread at a time."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], list[Path]]] = {}

    def of(self, files: Iterable[Path], root: Path) -> list[Path]:
        """The files under `root`, or beside one of `files`, that these Python files import, also by way of
        each other; without `files` themselves. Those that cannot be read or parsed import nothing."""
        first = [path for path in files if path.suffix == ".py"]
        folders = list(dict.fromkeys([*(path.parent for path in first), root]))
        found = dict.fromkeys(first)
        waiting = list(first)
        while waiting and len(found) < MOST:
            for path in self._imported(waiting.pop(), folders):
                if path not in found:
                    found[path] = None
                    waiting.append(path)
        return [path for path in found if path not in first]

    def _imported(self, file: Path, folders: list[Path]) -> list[Path]:
        try:
            status = os.stat(file)
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._known.get(file)
            if known is not None and known[0] == stamp:
                return known[1]
            text = file.read_bytes() if status.st_size <= _LARGEST else b""
            names = list(_names(ast.parse(text)))
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return self._known[file][1] if file in self._known else []
        imported = [
            path
            for level, name in names
            for path in _files(name, [_above(file, level)] if level else folders)
        ]
        self._known[file] = (stamp, list(dict.fromkeys(imported)))
        return self._known[file][1]


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """How many folders up (0: from the path of modules) and the dotted name of everything imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.level, node.module
            prefix = f"{node.module}." if node.module else ""
            yield from ((node.level, prefix + alias.name) for alias in node.names)


def _above(file: Path, level: int) -> Path:
    return file.parents[min(level, len(file.parents)) - 1]


def _files(name: str, folders: list[Path]) -> Iterator[Path]:
    """The module's file and those of the packages around it."""
    parts = name.split(".")
    for folder in folders:
        for length in range(1, len(parts) + 1):
            path = folder.joinpath(*parts[:length])
            for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
                try:
                    if candidate.is_file():
                        yield candidate
                except (OSError, ValueError):
                    continue
