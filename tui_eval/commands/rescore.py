"""`tui-eval rescore`: recorded answers judged anew, with tables as after a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tui_eval.commands.output import CommandError
from tui_eval.commands.progress import Progress
from tui_eval.commands.run_suites import execute_run, find_run
from tui_eval.engine.after.rescoring import rescore as prepare_rescore
from tui_eval.engine.request import RunRequest
from tui_eval.store.run_folders import StoreError


def rescore(reference: str, overrides: RunRequest, display: str, outputs: Sequence[Path]) -> int:
    """Judge a run's answers again as a new run; the exit code is the new run's."""
    progress = Progress(display)
    try:
        folder = find_run(reference)
    except StoreError as error:
        raise CommandError(str(error)) from None
    return execute_run(
        lambda: prepare_rescore(folder, overrides=overrides, on_done=progress.ended), progress, outputs
    )
