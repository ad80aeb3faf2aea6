"""`tui-eval run` and `tui-eval resume`: the engine in the foreground, tables at the end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.commands.one_run import (
    check_writable,
    exit_code_of,
    failures_of,
    find_run,
    warn_of_unread,
    write_files,
)
from tui_eval.commands.output import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_USAGE,
    CommandError,
    counted,
    report_problems,
    say,
    say_lines,
    terminal_width,
    warn,
    warn_line,
)
from tui_eval.commands.progress import Progress
from tui_eval.config.project import ConfigError, kept_by_link, passed_over, state_dir, unused_rules
from tui_eval.engine.active_run import ActiveRun
from tui_eval.engine.plan import HELD_AS_THEY_ARE
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingToRun, SelectionError
from tui_eval.engine.service.process import leave_threads, reachable, run_engine
from tui_eval.engine.wants import wants_of_jobs
from tui_eval.formats import format_of
from tui_eval.guard.trust import fingerprints, in_order
from tui_eval.model import NOT_COMPARED
from tui_eval.reports import console_table
from tui_eval.store.missing_cases import (
    gap_of,
    hooks_failed,
    is_only_named,
    lacks_of,
    lacks_words,
    never_beside,
)
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import RunInfo
from tui_eval.store.shard_runs import LOOKED_AT, is_looked_at, mending, shard_words, unfinished_in
from tui_eval.store.summary import CaseTaker, RunSums, sums_of
from tui_eval.store.write_thread import lost_words


def run(
    request: RunRequest, display: str, outputs: Sequence[Path], keep: bool, report: str | None = None
) -> int:
    """Execute a request; the exit code of design.md (Command line). `report` `classic` prints the
    StartToAgent guide's report instead of progress and tables."""
    progress = Progress(display)
    if report == "classic":
        from tui_eval.commands.classic import ClassicProgress

        progress = ClassicProgress()
    with contextlib.ExitStack() as stack:
        store = None
        if not keep:
            # Everything reads a run's folder; without a store it is one that goes at the end.
            store = Store(Path(stack.enter_context(_temporary_folder())))
        return _execute(
            lambda: prepare(request, store=store, on_done=progress.ended, outputs=outputs),
            progress,
            outputs,
            keep=keep,
        )


def resume_run(reference: str, overrides: RunRequest, display: str, outputs: Sequence[Path]) -> int:
    """Go on with an interrupted run."""
    from tui_eval.engine.after.resuming import lost_place_of, resume  # imported late: a run needs none of it

    progress = Progress(display)
    try:
        folder = find_run(reference)
    except StoreError as error:
        raise CommandError(str(error)) from None
    if is_looked_at(folder):
        raise CommandError(LOOKED_AT)
    if (code := _complete(folder, outputs)) is not None:
        return code
    if not overrides.on:
        try:
            lost = lost_place_of(folder)
        except (ConfigError, StoreError) as error:
            raise CommandError(str(error)) from None
        if lost:  # the app asks where; here the person says so
            from tui_eval.store.printed_commands import other_way_on

            with contextlib.closing(RunReader(folder)) as reader:
                info = reader.info()
            raise CommandError(
                f"run {info.id} ended since {lost} was lost; go on here: {_go_on(folder, info)}; {other_way_on(info)}"
            )
    return _execute(
        lambda: resume(folder, overrides=overrides, on_done=progress.ended), progress, outputs, keep=True
    )


def _complete(folder: Path, outputs: Sequence[Path]) -> int | None:
    """The code of a run in which every attempt has a result, which is brought back where it had to be kept elsewhere;
    None: there is something to do."""
    from tui_eval.store.rescued import bring_back, write_end

    try:
        with contextlib.closing(RunReader(folder)) as reader:
            info, empty, never, uncompared = reader.info(), True, 0, False
            for case, attempts in reader.by_case():
                empty = False
                left = sum(row.state != "done" for row in attempts)
                if left and not is_only_named(case):
                    return None
                never += left
                uncompared = uncompared or any(row.message == NOT_COMPARED for row in attempts)
            if empty and not gap_of(info):
                return None  # it ended before its plan stood
        kept = bring_back(folder)
        whole = not (never or uncompared or gap_of(info)) and info.state == "interrupted"
        ended = False
        with contextlib.suppress(StoreError):  # a folder that can only be read: it is complete all the same
            ended = whole and write_end(folder)
        reader = RunReader(folder)
    except StoreError as error:
        raise CommandError(str(error)) from None
    back = f"; it was kept in {kept} and is back in the project" if kept is not None else ""
    try:
        gap = gap_of(info) or (
            f"{counted(never, 'attempt')} of it never ran, of cases that are known from a results file only"
            if never
            else None
        )
        if gap:
            warn(
                f"run {info.id} is incomplete, and resume cannot mend that: {(gap_of(info) and info.note) or gap}; "
                f"{mending(info)}{back}"
            )
        else:
            now = "; it was cut off before its end was written, and stands as finished now" if ended else ""
            warn(f"run {info.id} is complete: every attempt has a result{back}{now}")
        if hooks := hooks_failed(info):
            warn(f"hook failed: {hooks}")
        if write_files(reader, outputs) or warn_of_unread(info):
            return EXIT_USAGE
        return exit_code_of(sums_of(reader.by_case()), gap or lacks_words(info) or None)
    finally:
        reader.close()


def execute_run(prepare_run: Callable[[], ActiveRun], progress: Progress, outputs: Sequence[Path]) -> int:
    """Execute what another command has prepared, and keep it; the exit code is the run's."""
    return _execute(prepare_run, progress, outputs, keep=True)


def _options_unheard(active: ActiveRun) -> str:
    """Which options do nothing for some of the cases, being promptfoo's; empty: none."""
    request = active.request
    options = {
        "--var": request.vars, "--prompt-prefix": request.prompt_prefix,
        "--prompt-suffix": request.prompt_suffix, "--delay": request.delay,
    }  # fmt: skip
    given = [option for option, value in options.items() if value]
    if not given:
        return ""
    others = {job.case.case_id for job in active.jobs if not format_of(job.format).takes_configs}
    if not others:
        return ""
    cases = (
        "1 case of another format is" if len(others) == 1 else f"{len(others):,} cases of other formats are"
    )
    return f"{', '.join(given)}: for promptfoo's suites alone: {cases} asked without"


def _execute(
    prepare_run: Callable[[], ActiveRun], progress: Progress, outputs: Sequence[Path], keep: bool
) -> int:
    check_writable(outputs)
    try:
        active = prepare_run()
    except NothingToRun as error:
        unreadable = report_problems(error.problems)
        warn(str(error))
        return EXIT_USAGE if unreadable else EXIT_FAILED if error.incomplete else EXIT_NOTHING
    except (SelectionError, ConfigError, StoreError, AgentError) as error:
        raise CommandError(str(error)) from None
    if active.request.threshold == 0:
        progress.note("--threshold 0 asks for no attempt to pass: nothing can fail")
    if unheard := _options_unheard(active):
        warn(unheard)
    unreadable = report_problems(active.problems)
    for text in dict.fromkeys(str(one) for one in active.problems if one.unwritten and not outputs):
        warn(text)
    suites = {job.suite for job in active.jobs}
    passed = passed_over(active.config, suites) if active.request.config_file is None else []
    for note in (*unused_rules(active.config, suites), *passed[:1]):
        warn(str(note))
    if len(passed) > 1:
        warn(f"{len(passed) - 1} more tui_eval.yaml below the root are not read: tui-eval check lists them")
    assert active.writer is not None
    folder = active.writer.folder
    root = active.config.root
    if keep and state_dir(root) != root / ".tui-eval":
        linked = kept_by_link(root)
        why = (
            f"{root / '.tui-eval'} is a link, which is not followed"
            if linked
            else f"{root / '.tui-eval' if (root / '.tui-eval').exists() else root} cannot be written"
        )
        warn(f"{why}: the run is kept in {folder}")
    _list_wants(active)
    if sys.stderr.isatty():
        active.environment.tell = progress.note
    active.on_word = progress.note
    active.writer.tell(progress.tell)
    for line in active.said_first:
        progress.note(line)
    info = active.writer.info
    progress.masker = active.environment.masker
    scripted = {job.agent for job in active.jobs if job.spec is not None and job.spec.type == "scripted"}
    part = shard_words(info.provenance)
    progress.start(len(active.tickets), info.agents, scripted, info.id if keep else "", part)
    progress.expect(active.jobs)
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    beside = _folders_beside(active)
    with _Signals() as signals:
        code = _ran(active, progress, outputs, keep, unreadable, beside, signals)
        return code if signals.received is None else 128 + signals.received


def _ran(
    active: ActiveRun,
    progress: Progress,
    outputs: Sequence[Path],
    keep: bool,
    unreadable: int,
    beside: Sequence[Path],
    signals: _Signals,
) -> int:
    """Execute it, say what came of it, and write the files; its code, where no signal came."""
    assert active.writer is not None
    info, root = active.writer.info, active.config.root
    tables: list[console_table.RunTable] = []

    def table_of(reader: RunReader) -> CaseTaker:
        tables[:] = [console_table.RunTable.begun(reader)]
        return tables[0].taker(reader)

    # Of a large run the table and what goes into the index would take more memory together than one after the other.
    if progress.display == "plain" and len(active.jobs) <= HELD_AS_THEY_ARE:
        active.beside = table_of
    try:
        run_engine(_until_done(active, signals))
        number = signals.received
    except SystemExit as left:
        again = f"; go on with: {_go_on(active.writer.folder, info)}" if keep else ""
        warn(f"left at once{', without ' + ', '.join(map(str, outputs)) if outputs else ''}{again}")
        if not left.code:  # whoever said 0: not all of it ran
            raise SystemExit(1) from left
        raise
    progress.finish()
    if active.writer.error:
        warn(active.writer.error)
    reader = RunReader(active.writer.folder)
    reader.lost = active.writer.lost
    try:
        interrupted = reader.info().state == "interrupted"
        read = tables[0] if tables and active.indexed and not reader.lost else None
        sums = _report(reader, progress.display, active, unreadable, read, told=not (keep and interrupted))
        unwritten = write_files(reader, outputs)
        if unwritten and progress.display == "plain":
            say(f"{counted(unwritten, 'file')} of {len(outputs)} not written")
        if keep and number is None and beside:
            from tui_eval.reports.export import (
                write_beside,  # imported late: few suites have a tool of their own that looks there
            )

            for line in write_beside(reader, root, beside):
                warn(line)
    finally:
        reader.close()
    if number is not None:
        if keep:
            on = f"go on with: {_go_on(active.writer.folder, info)}" if interrupted else "all of it had run"
            warn(f"interrupted; {on}")
        return 128 + number
    lost = lost_words(len(active.writer.lost)) if active.writer.lost else ""
    if keep and interrupted:
        _warn_of_interruption(active, info, lost, nothing_known=not sums.outcomes)
    if unreadable or unwritten or warn_of_unread(info):
        return EXIT_USAGE
    lacks = _warn_of_lacks(info)
    return exit_code_of(sums, active.runner.stopped_because or lacks or lost)


def _warn_of_interruption(active: ActiveRun, info: RunInfo, lost: str, *, nothing_known: bool) -> None:
    """Say why a run did not come to its end, and how it goes on."""
    assert active.writer is not None
    why = active.runner.stopped_because or lost or "its end could not be written"
    if nothing_known:
        warn(f"{why}; start it anew: its plan is lost, too")
        return
    warn(f"{why}; go on with: {_go_on(active.writer.folder, info)}")
    from tui_eval.store.printed_commands import other_way_on  # imported late: few runs are interrupted

    if other := other_way_on(info):
        warn(other)


def _warn_of_lacks(info: RunInfo) -> str:
    """Say what a run lacks though it came to its end; the first of it, empty: nothing."""
    gap, never, hooks = gap_of(info), never_beside(info), hooks_failed(info)
    if gap:
        warn(f"incomplete: {gap}; {mending(info)}")
    if never:
        warn(f"incomplete: {never}")
    if hooks:
        warn(f"hook failed: {hooks}")
    return gap or never or hooks


def _go_on(folder: Path, info: RunInfo) -> str:
    """The command that goes on with a run, from the current folder."""
    from tui_eval.config.project import find_root
    from tui_eval.store.printed_commands import rescore_command, way_on

    again = info.options.get("rescores")
    if again:
        return rescore_command(str(again), info.options)
    here = Store(find_root([Path.cwd()])[0])
    return way_on(info.id if here.holds(folder) else folder, info)


_SAME_PRESS = 0.5
"""Seconds within which a second signal is the first one again: npm, make and docker forward a Ctrl-C beside
the terminal."""


class _Signals:
    """Those that end a run: the first one in order, with its files, another one at once. What the process
    does with them else comes back at the end. Who was started to ignore one (`nohup`; Ctrl-C, as a script's
    job in the background) goes on to."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self.received: int | None = None
        self._asked = 0.0
        self._before: dict[int, Any] = {}

    @property
    def heeded(self) -> list[int]:
        """Those that are not ignored."""
        return [number for number, before in self._before.items() if before != signal.SIG_IGN]

    def __enter__(self) -> _Signals:
        self._before = {number: signal.getsignal(number) for number in self.NUMBERS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            if before is not None:  # else it is none of Python's
                signal.signal(number, before)

    def take(self, number: int) -> bool:
        """Whether it is the first.

        Raises:
            SystemExit: the person wants to leave at once.
        """
        if self.received is None:
            self.received, self._asked = number, time.monotonic()
            return True
        if time.monotonic() - self._asked >= _SAME_PRESS:
            raise SystemExit(128 + number)
        return False

    def after_run(self) -> None:
        """All that was to run has: what is left is written. A handler may come in the midst of a line that is
        printed."""

        def late(number: int, _: object) -> None:
            if self.take(number):
                with contextlib.suppress(OSError):
                    os.write(2, b"stopping once the results are written (once more to leave at once)\n")

        for number in self.heeded:
            signal.signal(number, late)


async def _until_done(active: ActiveRun, signals: _Signals) -> None:
    """Run to the end, or until a signal comes."""
    # The loop keeps a list of the generators that run, to close them at its end: none outlives its attempt.
    sys.set_asyncgen_hooks(firstiter=None)
    loop = asyncio.get_running_loop()
    interrupting: list[asyncio.Future[None]] = []

    def stop(number: int) -> None:
        try:
            if not signals.take(number):
                return
        except SystemExit:
            leave_threads(loop)
            raise
        active.runner.interrupted()
        warn("stopping: what has finished is kept (once more to leave at once)")
        interrupting.append(asyncio.ensure_future(active.runner.interrupt()))

    for number in signals.heeded:
        loop.add_signal_handler(number, stop, number)
    async with reachable(active):
        await active.execute()
    for number in signals.heeded:
        loop.remove_signal_handler(
            number
        )  # else the loop does when it closes, and the next one kills the process
    signals.after_run()
    if signals.received is not None:
        leave_threads(loop)


def _report(
    reader: RunReader,
    display: str,
    active: ActiveRun,
    unreadable: int,
    read: console_table.RunTable | None,
    *,
    told: bool,
) -> RunSums:
    """Print what came of the run, and (`told`) why it was stopped, on stderr where nothing else is printed;
    what its cases come to. `read` is its table where that has been made while the index was written."""
    stopped = active.runner.stopped_because if told else None
    why = [f"stopped: {stopped}" if stopped else "", active.note]
    if (
        display != "plain"
    ):  # what is wrong is said nevertheless: lines of attempts that passed explain no code of 1
        sums = sums_of(reader.by_case())
        if stopped and (left := sums.count(None)):
            why[0] += f"; {left:,} of {counted(sums.cases, 'case')} not run"
        for line in filter(None, why):
            warn(line)
        return sums
    table = read or console_table.RunTable.of(reader)
    if read is not None:
        read.tell_apart(lambda: reader.by_case(listed=True))
    say_lines(table.lines(terminal_width()))
    say_lines(failures_of(reader, table, active.config.root))
    if active.request.assess:
        say(f"\n{console_table.failure_modes(reader.assessment())}")
    cached = f"cached: {active.unseen}" if active.unseen and table.sums.cached else ""
    notes = "\n".join(filter(None, [*why, cached]))
    info = reader.info()
    say(f"\n{table.totals(notes, lacks_of(info, unreadable), unfinished_in(info))}")
    return table.sums


def _folders_beside(active: ActiveRun) -> list[Path]:
    """Where viewers and scripts of a format's own tool look for results."""
    folders: dict[Path, None] = {}
    for job in active.jobs:
        if (folder := format_of(job.format).results_folder(job.case)) is not None:
            folders[active.config.root / folder] = None
    return list(folders)


def _list_wants(active: ActiveRun) -> None:
    """Say all that needs trust before anything runs, rather than one thing with each case."""
    context, request = active.environment, active.request
    wanted = in_order(
        wants_of_jobs(
            active.jobs,
            active.config,
            context.trust,
            assess=request.assess,
            typed_judge=context.typed_judge,
        )
    )
    if wanted:
        warn(
            f"{len(wanted)} {'thing needs' if len(wanted) == 1 else 'things need'} trust: cases that want "
            f"them are errors; look at each, then agree to just these: --trust-only {fingerprints([*request.agreed, *wanted])} "
            "(or to anything: --trust):"
        )
        for what in wanted:
            warn_line(f"  {context.masker.text(what)}")


@contextlib.contextmanager
def _temporary_folder():
    folder = tempfile.mkdtemp(prefix="tui-eval-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# -- `tui-eval rescore`: recorded answers judged anew, with tables as after a run.


def rescore(reference: str, overrides: RunRequest, display: str, outputs: Sequence[Path]) -> int:
    """Judge a run's answers again as a new run; the exit code is the new run's."""
    from tui_eval.engine.after.rescoring import rescore as prepare_rescore  # as above

    progress = Progress(display)
    try:
        folder = find_run(reference)
    except StoreError as error:
        raise CommandError(str(error)) from None
    return execute_run(
        lambda: prepare_rescore(folder, overrides=overrides, on_done=progress.ended, so_far=progress.so_far),
        progress,
        outputs,
    )
