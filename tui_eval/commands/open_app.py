"""Opening the app, or saying why it cannot be opened here.

What `tui-eval run` is made of is imported only where the app cannot be shown: a third of the time to the
first paint.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tui_eval.commands.output import CommandError, warn_of_large
from tui_eval.guard.paths import can_be_path
from tui_eval.store.printed_commands import shell_line
from tui_eval.store.run_folders import DATABASE, StoreError, holds_runs


def open_app(paths: Sequence[str], *, config_file: str | None, trust: bool, local: bool) -> int:
    """The app on suites, or on a run whose folder or results file is given.

    Without a terminal that can show it, `tui-eval run` does the same job in plain lines.
    """
    if local:
        # Read when tui_eval.tui is first imported.
        os.environ["TUI_EVAL_LOCAL"] = "1"
    for path in paths:
        if not (can_be_path(path) and Path(path).exists()):
            raise CommandError(
                f"{path}: no such file, folder or command (`tui-eval --help` lists the commands)"
            )
    recorded = [path for path in paths if _run_at(Path(path)) is not None]
    if recorded and len(paths) > 1:
        both = shell_line((*recorded, "AFTER")[:2])
        raise CommandError(
            f"{recorded[0]}: a recorded run is opened alone; two are compared with `tui-eval compare {both}` (or c in "
            "Runs), shards are merged with `tui-eval merge`, or opened by the folder that holds them"
        )
    run = _run_at(Path(paths[0])) if len(paths) == 1 else None
    if run is not None:
        return _show(run, config_file=config_file, trust=trust, local=local)
    if len(paths) == 1 and paths[0].lower().endswith(".json"):
        from tui_eval.formats.reading import is_results, open_results

        warn_of_large(Path(paths[0]))
        if is_results(Path(paths[0])):
            return _show(open_results(Path(paths[0])), config_file=config_file, trust=trust, local=local)
    if len(paths) == 1 and Path(paths[0]).is_dir() and holds_runs(Path(paths[0])):
        return _show_shards(Path(paths[0]), config_file, trust=trust, local=local)
    if not _terminal():
        from tui_eval.commands.one_run import runs_without_suites
        from tui_eval.commands.output import warn
        from tui_eval.commands.run_suites import run
        from tui_eval.engine.request import RunRequest

        if len(paths) == 1 and Path(paths[0]).is_dir() and runs_without_suites(Path(paths[0])):
            return _show_shards(Path(paths[0]), config_file, trust=trust, local=local)
        term = os.environ.get("TERM") or "not set"
        why = f"TERM is {term}: no app can be shown" if _on_a_terminal() else "no terminal to show the app in"
        warn(f"{why}; running in plain lines instead, as `tui-eval run` does")
        return run(
            RunRequest(paths=list(paths), config_file=config_file, trust=trust), "plain", (), keep=True
        )
    return _run_app([Path(path) for path in paths], config_file, trust=trust, local=local)


def _run_at(path: Path) -> Path | None:
    """The run's folder that a path is, or in which the database that it is lies; else None."""
    folder = path.parent if path.name == DATABASE and path.is_file() else path
    return folder.resolve() if (folder / DATABASE).is_file() else None


def attach(reference: str) -> int:
    """The app on a run."""
    from tui_eval.commands.one_run import find_run

    try:
        folder = find_run(reference)
    except StoreError as error:
        raise CommandError(str(error)) from None
    return _show(folder)


def _show_shards(folder: Path, config_file: str | None, **options: Any) -> int:
    """A folder of shards as one run, which follows them while they are written."""
    if not _terminal():
        from tui_eval.commands.recorded_runs import follow

        return follow(str(folder))
    from tui_eval.store.gathering import Gathering

    gathering = Gathering(folder, waits=True)
    gathering.start()
    try:
        return _run_app([], config_file, open_run=gathering.place, **options)
    finally:
        gathering.close()


def _show(folder: Path, config_file: str | None = None, trust: bool = False, local: bool = False) -> int:
    if not _terminal():
        from tui_eval.commands.recorded_runs import follow

        return follow(str(folder))
    from tui_eval.store.imported.results_files import open_folder

    folder = open_folder(folder)
    return _run_app([], config_file, trust=trust, local=local, open_run=folder)


def _run_app(paths: list[Path], config_file: str | None, **options: Any) -> int:
    # Until the suites are read (tui.loading): nothing made before that is garbage, and looking through it
    # all costs a sixth of the time to the first paint.
    gc.disable()
    from tui_eval.tui.app import run_app

    return run_app(paths, config_file=Path(config_file) if config_file else None, **options)


def _terminal() -> bool:
    return _on_a_terminal() and os.environ.get("TERM") not in ("dumb", None, "")


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
