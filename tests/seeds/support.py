"""A project written into a folder, run by the real engine; what comes back is the results document."""

from __future__ import annotations

import asyncio
from pathlib import Path
from textwrap import dedent
from typing import Any

from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.reports.results import build
from tui_eval.store.reader import RunReader

Document = dict[str, Any]


def write(root: Path, files: dict[str, str]) -> None:
    """Write files, each text without its common indent."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")


async def evaluate(root: Path, **request: Any) -> Document:
    """Run what the folder holds; the results document."""
    given = {"paths": [str(root)], **request}
    active: ActiveRun = await asyncio.to_thread(prepare, RunRequest(**given))
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    try:
        return await asyncio.to_thread(build, reader)
    finally:
        reader.close()


def by_name(document: Document) -> dict[str, dict[str, Any]]:
    """The results by the case's name; one attempt each."""
    return {result["name"]: result for result in document["results"]}


def messages(document: Document) -> dict[str, str]:
    """The messages by the case's name."""
    return {result["name"]: result["message"] for result in document["results"]}
