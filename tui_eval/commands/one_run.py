"""One run that is there, just ended or recorded long ago, as commands need it: found by what was typed, what did not
pass in it and why, its exit code, its files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tui_eval.commands.output import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    CommandError,
    counted,
    warn,
    warn_line,
    warn_of_large,
)
from tui_eval.config.project import find_root
from tui_eval.guard.paths import can_be_path
from tui_eval.reports import console_table
from tui_eval.reports.console_table import about_queries, reasons_of
from tui_eval.store.missing_cases import unread_errors_of
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import DATABASE, Store, StoreError, holds_runs
from tui_eval.store.schema import AttemptRow, RunInfo
from tui_eval.store.summary import RunSums


def find_run(reference: str) -> Path:
    """The folder of a run of the current project, or of a path, which may be a results file, or a folder of shards.

    Raises:
        StoreError: there is none.
    """
    if not can_be_path(reference):
        return Store(find_root([Path.cwd()])[0]).find(reference)
    if reference.lower().endswith(".json") and Path(reference).is_file():
        from tui_eval.formats.reading import open_results

        warn_of_large(Path(reference))
        return open_results(Path(reference))
    place = Path(reference)
    if reference not in ("", "last") and place.is_dir() and not (place / DATABASE).is_file():
        from tui_eval.store.gathering import gathered
        from tui_eval.store.run_folders import NO_RUN, runs_beneath, runs_under

        # The project's own runs are no reason to take its folder for one of shards.
        own = place.resolve() == find_root([Path.cwd()])[0].resolve()
        if holds_runs(place) or (runs_beneath(place) if own else runs_under(place)):
            return gathered(place)
        if os.sep in reference and not own:
            raise StoreError(f"{reference}: {NO_RUN}")
    root, _ = find_root([Path.cwd()])
    return Store(root).find(reference)


def runs_without_suites(folder: Path) -> bool:
    """Whether a folder has no suites, and runs that are not in a store of its own: it is opened as these runs."""
    from tui_eval.formats.discovery import discover
    from tui_eval.store.run_folders import runs_beneath

    return bool(runs_beneath(folder)) and not discover([folder], find_root([folder])[0])[0]


def exit_code_of(sums: RunSums, stopped: str | None) -> int:
    """1 where something did not pass, a limit ended the run, or attempts never ran; 5 where nothing ran; else 0."""
    if stopped or sums.left or any(outcome != "passed" for outcome in sums.outcomes):
        return EXIT_FAILED
    return EXIT_OK if sums.outcomes else EXIT_NOTHING


def warn_of_unread(info: RunInfo) -> bool:
    """Say that the run's files had errors, so that it lacks what they hold; whether they had."""
    count = unread_errors_of(info)
    if count:
        warn(
            f"not all of its files could be read when the run was begun ({counted(count, 'error')}): see tui-eval check"
        )
    return bool(count)


def failures_of(reader: RunReader, table: console_table.RunTable, root: Path | None) -> Iterator[str]:
    """What did not pass in a run and why, each after an empty line; with `root`, the project's, the commands that run
    it again."""

    def reasons(row: AttemptRow) -> list[str]:
        try:
            attempt = reader.attempt(row.id)
        except StoreError as error:  # its body is damaged: the message is what is left
            warn(str(error))
            return []
        return [*reasons_of(attempt, diagnosed=True), *about_queries(attempt)] if attempt is not None else []

    if table.nothing_failed:
        return
    from tui_eval.store.printed_commands import asked_again  # imported late: as the commands that it is for

    for text in table.failures(reader.by_case(listed=True), reasons, root, asked_again(reader.info())):
        yield f"\n{text}"


def check_writable(outputs: Sequence[Path]) -> None:
    """Before anything is run.

    Raises:
        CommandError: a file cannot be written.
    """
    if not outputs:
        return
    from tui_eval.reports import export  # imported late: many runs write none

    for path in outputs:
        try:
            export.check_writable(path)
        except export.ExportError as error:
            raise CommandError(str(error)) from None


def write_files(
    reader: RunReader, outputs: Sequence[Path], written: Callable[[Path], None] = lambda path: None
) -> int:
    """Write a run to every file that can be written, each of the kind that its ending means, and say what is wrong
    with the others; how many could not be. One that cannot be written keeps no other back. Of a run that goes on all of
    them say the same."""
    if not outputs:
        return 0
    from tui_eval.reports.export import ExportError, export

    unwritten = 0
    with reader.of_one_moment():
        for path in outputs:
            try:
                notes = export(reader, path)
            except ExportError as error:
                warn_line(str(error))
                unwritten += 1
                continue
            written(path)
            for line in notes:
                warn_line(line)
    return unwritten
