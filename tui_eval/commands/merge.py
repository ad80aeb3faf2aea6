"""`tui-eval merge`: the runs of shards, or results files of them, as one run of this project."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tui_eval import __version__
from tui_eval.commands.one_run import find_run, write_files
from tui_eval.commands.output import EXIT_FAILED, EXIT_OK, EXIT_USAGE, CommandError, counted, warn
from tui_eval.commands.recorded_runs import show
from tui_eval.config.project import find_root
from tui_eval.engine.after import derived_columns
from tui_eval.guard.paths import can_be_path
from tui_eval.guard.secrets import in_addresses
from tui_eval.guard.spelling import some_of
from tui_eval.reports.export import ExportError, check_writable
from tui_eval.store import linked, merged_run, merging
from tui_eval.store.index import Index
from tui_eval.store.printed_commands import shell_line
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import NO_RUN, NeverBegun, Store, StoreError, runs_under
from tui_eval.store.schema import RunInfo


def merge(references: Sequence[str], outputs: Sequence[Path]) -> int:
    """Put runs together; 1 where something did not pass or is missing, 4 where they are no parts of one plan."""
    try:
        for path in outputs:
            check_writable(path)
    except ExportError as error:
        raise CommandError(str(error)) from None
    store = Store(find_root([Path.cwd()])[0])
    try:
        folder, said, complete = _merged(store, references)
    except (StoreError, merging.MergeError) as error:
        raise CommandError(str(error)) from None
    Index(store.root).record(folder)
    for line in said:
        warn(line)
    code = show(folder.name, None, gap=False)  # it is said
    with closing(RunReader(folder)) as reader:
        unwritten = write_files(reader, outputs)
    if unwritten:
        return EXIT_USAGE
    return EXIT_FAILED if code == EXIT_OK and not complete else code


def _merged(store: Store, references: Sequence[str]) -> tuple[Path, list[str], bool]:
    """The folder of the run that the others are together, what there is to say of it, and whether it has all of the
    plan. Of the others nothing is held afterwards.

    Raises:
        StoreError, MergeError: they cannot be read, or are no parts of one plan.
    """
    parts: list[merging.MergePart] = []
    try:
        named, inside = _folders(references)
        unbegun: list[str] = []
        for label, folder in named + inside:
            try:
                parts.append(merging.MergePart.of(label, folder))
            except NeverBegun:
                if (label, folder) in named or len(named + inside) == 1:
                    raise
                unbegun.append(label)
        if not parts:
            raise StoreError(f"{some_of(unbegun, _NAMED)}: {NO_RUN}")
        found = {label for label, _ in inside} - {label for label, _ in named}  # those that nobody has named
        again = [part for part in merging.merged_before(parts) if part.label in found]
        adding = [part for part in parts if part.label in found and merging.adds_to_another(part)]
        if len(adding) == len(parts):
            adding = []  # then that is what is wrong
        left = [part for part in parts if part not in again and part not in adding]
        alone = [part for part in merging.beside_shards(left) if part.label in found]
        whole = merging.whole_of([part for part in left if part not in alone])
        newer = _newer(store, whole, adding)
        info = merging.facts(whole, store.next_run()[0], __version__, newer)
        info.provenance["command"] = in_addresses(shell_line(("tui-eval", "merge", *references)))
        folder = store.create_folder(info.id)
        merged_run.write(folder, info, whole)
        _derive(folder, info)
        said = [f"left out: {part.label}, which was merged before" for part in again]
        if unbegun:
            said.append(f"left out: {some_of(unbegun, _NAMED)}: cut off at the start, nothing of it ran")
        if adding:
            said.append(merging.that_add([part.label for part in adding]))
        if alone:
            said.append(merging.that_are_no_shards([part.label for part in alone]))
        return folder, [*said, *_said(whole, info.id)], whole.complete
    finally:
        for part in parts:
            part.reader.close()


_NAMED = 3


def _newer(store: Store, whole: merging.Whole, adding: Sequence[merging.MergePart]) -> str:
    """Which cases have newer results in runs that add to parts, in words: the parts count as they ended, as a finished
    run does."""
    told = linked.changed_since(store, Index(store.root).links(), whole, adding)
    if not told:
        return ""
    cases = merging.counted_names(len(told), told, "run or judged again since")
    return f"{cases}: those results are not in it, its parts count as they ended"


def _derive(folder: Path, info: RunInfo) -> None:
    """What is derived from the sums of columns, over the rows of all parts.

    Raises:
        StoreError: the run cannot be read, or the disk refuses.
    """
    settings = info.provenance.get(derived_columns.KEY)
    if not isinstance(settings, dict):
        return
    info.metrics = asyncio.run(derived_columns.derived_anew(folder, settings))
    merged_run.write_info(folder, info)


def _folders(references: Sequence[str]) -> tuple[list[tuple[str, Path]], list[tuple[str, Path]]]:
    """The runs that are named, each with its name, and of folders that are none the runs in them.

    Raises:
        StoreError: something named is no run.
    """
    named: list[tuple[str, Path]] = []
    found: list[tuple[str, Path]] = []
    for reference in references:
        place = Path(reference)
        if can_be_path(reference) and place.is_dir() and not (place / "run.db").is_file():
            inside = runs_under(place)
            if not inside:
                raise StoreError(f"{reference}: {NO_RUN}")
            found += [(str(one), one) for one in inside]
        else:
            named.append((reference, find_run(reference)))
    return named, found


def _said(whole: merging.Whole, run_id: str) -> list[str]:
    cases = len({one.case.case_id for one in whole.columns})
    lines = [f"{counted(len(whole.parts), 'run')} with {counted(cases, 'case')} merged: run {run_id}"]
    if whole.twice:
        twice = merging.counted_names(len(whole.twice), whole.twice, "in several of them")
        lines.append(f"{twice}: counted once, that of which more has ended, else the newest")
    if any(part.info.metrics and derived_columns.KEY not in part.info.provenance for part in whole.parts):
        lines.append("what derivedMetrics computed over the rows of a part is left out")
    if missing := merging.missing_line(whole):
        lines.append(f"incomplete: {missing}")
    return lines
