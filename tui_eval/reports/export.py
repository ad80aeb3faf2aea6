"""Which kind of file an ending means. A kind is one function and one line of registration; entry
points of the group `tui_eval.reports` add others (name: the ending; value: `function(reader, path)`)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tui_eval import extensions
from tui_eval.reports import junit, page, promptfoo_json, results, tabular
from tui_eval.store.reader import RunReader

Writer = Callable[[RunReader, Path], None]

KINDS: dict[str, Writer] = {
    ".json": results.write,
    ".jsonl": results.write_lines,
    ".promptfoo.json": promptfoo_json.write,
    ".junit.xml": junit.write,
    ".html": page.write,
    ".csv": tabular.write_csv,
    ".parquet": tabular.write_parquet,
    ".md": tabular.write_markdown,
}


class ExportError(Exception):
    """A file of unknown kind, or one that cannot be written; one clear line."""


def writer_for(path: Path) -> Writer:
    """The writer for a file by its ending, the longest that fits.

    Raises:
        ExportError: no kind has this ending.
    """
    kinds = dict(KINDS)
    name = path.name.lower()
    if not any(_ends(name, ending) for ending in kinds):
        kinds.update(_installed())
    for ending in sorted(kinds, key=len, reverse=True):
        if _ends(name, ending):
            return kinds[ending]
    known = ", ".join(sorted(kinds))
    raise ExportError(f"{path}: unknown kind of file; endings that are known: {known}")


def _ends(name: str, ending: str) -> bool:
    """An ending of two parts may be the whole name: `promptfoo.json`."""
    return name.endswith(ending) or (ending.count(".") > 1 and f".{name}" == ending)


def check_writable(path: Path) -> None:
    """Say before a run, rather than after it, that a file could not be written.

    Raises:
        ExportError: unknown kind, or its folder cannot be made or written.
    """
    writer_for(path)
    folder = path.absolute().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from None


def export(reader: RunReader, path: Path) -> None:
    """Write a run to a file of the kind that its ending means, whole or not at all.

    Raises:
        ExportError: unknown kind, or the file cannot be written.
    """
    write = writer_for(path)
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)  # a link in its place would be written through
        write(reader, part)
        part.replace(path)
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def _installed() -> dict[str, Writer]:
    try:
        return {
            f".{name.lstrip('.')}": extensions.load("reports", name)
            for name in extensions.installed("reports")
        }
    except extensions.ExtensionError as error:
        raise ExportError(f"reports: {error}") from error
