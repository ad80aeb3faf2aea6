"""`tui-eval prune`: delete old runs, by age or by what they take, after asking."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import click

from tui_eval.commands.output import EXIT_NOTHING, EXIT_OK, CommandError, say, warn
from tui_eval.config import find_root
from tui_eval.store.index import Index
from tui_eval.store.runs import Store, is_alive


def prune(older_than_days: float | None, larger_than_mb: float | None, yes: bool) -> int:
    """Delete runs older than so many days, and the oldest ones until the rest take at most so many
    megabytes. Runs that are being executed stay.

    Raises:
        CommandError: neither limit is given.
    """
    if older_than_days is None and larger_than_mb is None:
        raise CommandError("say what to delete: --older-than DAYS, --keep-size MB, or both")
    root, _ = find_root([Path.cwd()])
    store = Store(root)
    doomed = _doomed(store, older_than_days, larger_than_mb)
    if not doomed:
        say("no run to delete")
        return EXIT_NOTHING
    size = sum(_size(folder) for folder in doomed)
    say("\n".join(folder.name for folder in doomed))
    question = f"delete these {len(doomed)} runs ({size / 1e6:.1f} MB)?"
    if not yes and not click.confirm(question, err=True):
        return EXIT_OK
    index = Index(root)
    for folder in doomed:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            warn(f"{folder}: {error.strerror or error}")
            continue
        index.forget(folder.name)
    say(f"deleted {len(doomed)} runs, {size / 1e6:.1f} MB")
    return EXIT_OK


def _doomed(store: Store, days: float | None, megabytes: float | None) -> list[Path]:
    folders = [folder for folder in store.run_folders() if not is_alive(folder)]
    doomed: list[Path] = []
    if days is not None:
        limit = time.time() - days * 86400
        doomed = [folder for folder in folders if (folder / "run.db").stat().st_mtime < limit]
    if megabytes is not None:
        room = megabytes * 1e6
        for folder in folders:
            room -= _size(folder)
            if room < 0 and folder not in doomed:
                doomed.append(folder)
    return doomed


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
