"""`tui-eval prune`: delete old runs, by age or by what they take, after asking."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path

import click

from tui_eval.commands.output import EXIT_NOTHING, EXIT_OK, EXIT_USAGE, CommandError, counted, say, warn
from tui_eval.config.project import find_root
from tui_eval.store.answer_cache import AnswerCache
from tui_eval.store.index import Index
from tui_eval.store.rescued import delete_run
from tui_eval.store.run_folders import DATABASE, Store, is_alive
from tui_eval.store.schema import RunSummary

_ALL = 1_000_000


def prune(older_than_days: float | None, larger_than_mb: float | None, yes: bool, cache: bool = False) -> int:
    """Delete runs older than so many days, and the oldest ones until the rest take at most so many
    megabytes. Runs that are being executed stay. `cache`: delete the answers that are kept (`--cache`).

    Raises:
        CommandError: nothing of this is given.
    """
    root, _ = find_root([Path.cwd()])
    if cache:
        code = _clear_answers(root, yes)
        if older_than_days is None and larger_than_mb is None:
            return code
    if older_than_days is None and larger_than_mb is None:
        raise CommandError(
            "say what to delete: --older-than DAYS, --keep-size MB, --cache, or several of them"
        )
    store, index = Store(root), Index(root)
    runs = {run.id: run for run in index.runs(_ALL)}
    doomed = _doomed(store, runs, older_than_days, larger_than_mb)
    if not doomed:
        say("no run to delete")
        return EXIT_NOTHING
    sizes = {folder: _size(folder) for folder in doomed}
    many = f"{counted(len(doomed), 'run')}, {sum(sizes.values()) / 1e6:.1f} MB"
    say("\n".join(_line(runs.get(folder.name), folder, size) for folder, size in sizes.items()))
    if not yes and not _confirmed(f"delete these ({many})?"):
        say("nothing deleted")
        return EXIT_OK
    gone: list[Path] = []
    for folder in doomed:
        if is_alive(folder):  # gone on with while the question stood
            warn(f"{folder.name}: is being executed, so it stays")
            continue
        try:
            delete_run(folder)
        except OSError as error:
            warn(f"{folder}: {error.strerror or error}")
            continue
        index.forget(folder.name)
        gone.append(folder)
    say(f"deleted {counted(len(gone), 'run')}, {sum(sizes[folder] for folder in gone) / 1e6:.1f} MB")
    return EXIT_OK if len(gone) == len(doomed) else EXIT_USAGE


def _clear_answers(root: Path, yes: bool) -> int:
    answers = AnswerCache(root)
    count, size = answers.size()
    answers.close()
    if answers.left_alone is not None:
        warn(f"{answers.left_alone}: cannot be written, and stays")
    elif answers.problem:
        warn(answers.problem)
    if not size:
        say("no answers are kept")
        return EXIT_NOTHING
    many = f"{counted(count, 'kept answer')}, {size / 1e6:.1f} MB"
    if not yes and not _confirmed(f"delete these ({many})?"):
        say("nothing deleted")
        return EXIT_OK
    try:
        answers.clear()
    except OSError as error:
        raise CommandError(f"{answers.path}: {error.strerror or error}") from None
    say(f"deleted {many}")
    return EXIT_OK


def _confirmed(question: str) -> bool:
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        warn("")
        raise CommandError("nobody answered, so nothing is deleted; --yes deletes without asking") from None


def _line(run: RunSummary | None, folder: Path, size: int) -> str:
    """A run that would go: when it ran, what it was, how much room it takes."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(_at(run, folder)))
    return f"{folder.name}  {when}  {size / 1e6:>7.1f} MB  {run.what if run is not None else ''}".rstrip()


def _at(run: RunSummary | None, folder: Path) -> float:
    """When a run ended (or began, or was written): a copy of its folder is no younger than it."""
    told = (run.finished_at or run.started_at) if run is not None else 0.0
    return told or (folder / DATABASE).stat().st_mtime


def _doomed(
    store: Store, runs: Mapping[str, RunSummary], days: float | None, megabytes: float | None
) -> list[Path]:
    folders = [folder for folder in store.run_folders() if not is_alive(folder)]
    doomed: list[Path] = []
    if days is not None:
        limit = time.time() - days * 86400
        doomed = [folder for folder in folders if _at(runs.get(folder.name), folder) < limit]
    if megabytes is not None:
        room = megabytes * 1e6
        for folder in folders:
            room -= _size(folder)
            if room < 0 and folder not in doomed:
                doomed.append(folder)
    return doomed


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if os.path.isfile(path))
