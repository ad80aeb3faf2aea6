"""Results files that the formats' own tools wrote, opened as runs."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_eval.formats import all_formats
from tui_eval.formats.format import OurResults
from tui_eval.store.imported import results_files


def as_ours(document: Any, path: Path) -> OurResults | None:
    """What the first format that knows the document makes of it."""
    for one in all_formats():
        with suppress(Exception):  # another package's format must not hide the rest
            if (made := one.as_ours(document, path)) is not None:
                return made
    return None


def is_results(path: Path) -> bool:
    """Whether this is a results file (rather than a suite that is written in JSON)."""
    return results_files.is_results(path, as_ours)


def open_results(path: Path) -> Path:
    """The folder of the run that a results file tells of.

    Raises:
        StoreError: it cannot be read, is no results file, or the cache folder cannot be written.
    """
    return results_files.open_results(path, as_ours)
