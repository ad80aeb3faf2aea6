"""`tui-eval check --vacuous`: the cases that pass against an agent that answers nothing."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tui_eval.commands.output import CommandError
from tui_eval.config.project import AgentSpec, ConfigError, load
from tui_eval.engine.prepare import NothingToRun, prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import SelectionError
from tui_eval.model import Problem
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError

_SILENT = "an agent that answers nothing"


def vacuous(paths: Sequence[str], config_file: str | None, trust: bool) -> list[Problem]:
    """A note for each case that passes without an answer. Nothing is kept, no model is asked, and a case
    with a recorded output is left out, since it has no agent.

    Raises:
        CommandError: the suites cannot be run at all.
    """
    config = load([Path(path).absolute() for path in paths or ["."]], config_file)
    config.agents[_SILENT] = AgentSpec(_SILENT, "silent", typed=True)
    # What a judge would say of no answer is not worth its price.
    config.judge = None
    config.suites = [msgspec.structs.replace(rule, judge=None) for rule in config.suites]
    request = RunRequest(
        paths=list(paths), agents=[_SILENT], models=["none"], attempts=1, trust=trust, config_file=config_file
    )
    with tempfile.TemporaryDirectory(prefix="tui-eval-") as folder:
        try:
            active = prepare(request, config=config, store=Store(Path(folder)))
        except NothingToRun:
            return []
        except (SelectionError, ConfigError, StoreError) as error:
            raise CommandError(str(error)) from None
        active.environment.asks_models = False
        asyncio.run(active.execute())
        assert active.writer is not None
        reader = RunReader(active.writer.folder)
        try:
            return _passing(reader)
        finally:
            reader.close()


def _passing(reader: RunReader) -> list[Problem]:
    notes: list[Problem] = []
    passed = {row.case_ref: row.message for row in reader.attempts() if row.outcome == "passed"}
    for row in reader.cases():
        if row.id not in passed:
            continue
        case = reader.case(row.id)
        if case.provider_output not in (None, ""):
            continue
        why = ": nothing is asserted" if passed[row.id] == "nothing asserted" else ""
        notes.append(
            Problem(
                path=case.file or case.suite,
                line=case.line,
                key=case.name,
                message=f"passes against an agent that answers nothing{why}",
                level="note",
            )
        )
    return notes
