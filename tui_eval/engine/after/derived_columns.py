"""The sums of a run's columns, and the metrics that the suites' formats derive from them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.engine.plan import Job
from tui_eval.formats import format_of
from tui_eval.store import column_names
from tui_eval.store.reader import RunReader

if TYPE_CHECKING:
    from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.store.shard_runs import DERIVED

KEY = DERIVED
"""Under which a run remembers, by suite, how metrics are derived: whoever puts parts of a whole together computes them
over all rows."""


def remembered(jobs: Iterable[Job]) -> dict[str, dict[str, Any]]:
    """What is remembered of the suites of these jobs that derive metrics."""
    settings = {job.suite: (job.format, job.settings) for job in jobs}
    found = {suite: format_of(name).derives(own) for suite, (name, own) in settings.items()}
    return {suite: own for suite, own in found.items() if own}


async def derived(
    folder: Path, settings: Mapping[str, Any], javascript: JavaScriptHost
) -> list[dict[str, Any]]:
    """The sums of a run's columns with what is derived from them; `settings` as a run remembers them.

    Raises:
        StoreError: it cannot be read.
    """
    found, rows, names = await asyncio.to_thread(_read, folder)
    for name in dict.fromkeys(names.values()):
        own = {suite: given for suite, given in settings.items()
               if names.get(suite) == name and isinstance(given, dict)}  # fmt: skip
        if own:
            await format_of(name).derive(found, own, javascript, rows)
    return found


def _read(folder: Path) -> tuple[list[dict[str, Any]], list[list[dict[str, float]]], dict[str, str]]:
    """The columns' sums, what each row adds to them, and the format of each suite."""
    rows: list[list[dict[str, float]]] = []
    with closing(RunReader(folder)) as reader:
        found = column_names.sums(reader, rows)
        return found, rows, {row.suite: row.format for row in reader.cases()}


async def derived_anew(folder: Path, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The same where nothing runs.

    Raises:
        StoreError: it cannot be read.
    """
    from tui_eval.javascript.isolate import JavaScriptHost

    host = JavaScriptHost(1)
    try:
        return await derived(folder, settings, host)
    finally:
        host.close()
