"""`tui-eval runs`, `show`, `attach`, `cancel`, `export`, `assess`, `server`: what was run, and what is being run."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tui_eval.case_names import full_name, told_apart_anywhere
from tui_eval.commands.one_run import exit_code_of, failures_of, find_run, warn_of_unread, write_files
from tui_eval.commands.output import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_USAGE,
    CommandError,
    counted,
    say,
    say_json,
    say_lines,
    terminal_width,
    warn,
)
from tui_eval.config.project import ConfigError, closed_to_us, find_root
from tui_eval.engine.selection import is_id
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.formats import format_of
from tui_eval.guard import figures
from tui_eval.guard.figures import usd
from tui_eval.guard.text import clip, visible
from tui_eval.model import Attempt, Trace
from tui_eval.reports import console_table
from tui_eval.reports.console_table import reasons_of
from tui_eval.reports.export import is_stream_at
from tui_eval.reports.rows_shown import rows_shown, table_lines
from tui_eval.store.encoding import encode_json
from tui_eval.store.index import Index
from tui_eval.store.judged_under import compat_of
from tui_eval.store.missing_cases import lacks_of, lacks_words
from tui_eval.store.printed_commands import other_way_on, way_on
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError, is_alive, not_known_in
from tui_eval.store.schema import CaseHistory, RunInfo, RunSummary, StoredCase
from tui_eval.store.shard_runs import merged_of, shard_words, unfinished_in, without_gap
from tui_eval.store.summary import cached_of, judges_of

_Kind = Literal["input_tokens", "output_tokens"]
_RUNS = 5
"""How many past runs say what a case usually takes."""
_BUDGETS: dict[str, _Kind] = {"max_input_tokens": "input_tokens", "max_output_tokens": "output_tokens"}
_ENDED = ("finished", "cancelled", "interrupted")


def show(reference: str, case_name: str | None, *, gap: bool = True) -> int:
    """One run as a table, or one case of it with transcript and verdicts. `gap`: with what a merged one lacks."""
    with_reader = _reader(reference)
    try:
        if case_name is None:
            with with_reader.of_one_moment():
                info, table = with_reader.info(), console_table.RunTable.of(with_reader)
                part = shard_words(info.provenance)
                more = f"adds to {info.linked_to}" if info.linked_to else ""
                say(f"run {info.id}: {info.state}, {', '.join(filter(None, [*info.agents, part, more]))}")
                say_lines(table.lines(terminal_width()))
                say_lines(failures_of(with_reader, table, _project_of(with_reader.folder)))
                note = info.note if gap else without_gap(info)
                say(f"\n{table.totals(note, lacks_of(info), unfinished_in(info))}")
                if warn_of_unread(info):
                    return EXIT_USAGE
                return exit_code_of(table.sums, _stopped(info))
        cases = with_reader.cases()
        listed = with_reader.listed(cases)
        meant = [
            (case, full_name(called.name, mark))
            for case, called, mark in zip(cases, listed, told_apart_anywhere(listed), strict=True)
            if is_id(case, case_name)
            or case_name in (case.case_id, case.name, called.name, case.case_id.partition("::")[2])
        ]
        if not meant:  # it may be copied from what is printed of the run
            table = console_table.RunTable.of(with_reader)
            meant = [(case, name) for case in cases if (name := table.name(case)) == case_name]
        if not meant:
            some = ", ".join(dict.fromkeys(case.name for case in listed[:8]))
            more = f" and {len(cases) - 8} more" if len(cases) > 8 else ""
            raise CommandError(f"run {reference} has no case {case_name!r}; it has: {some}{more}")
        compat = compat_of(with_reader.info())
        for case, name in meant:
            usual = _usual_tokens(case)
            rows = with_reader.attempts(case.id)
            if not rows:
                warn(f"run {reference} has no attempt of {name}")
            for row in rows:
                attempt = with_reader.attempt(row.id)
                if attempt is not None:
                    say(attempt_text(attempt, name, usual, with_reader.folder, compat(case.suite)))
                elif row.state == "done":
                    warn(f"attempt {row.attempt} of {name}: its record is missing")
        return EXIT_OK
    finally:
        with_reader.close()


def _project_of(folder: Path) -> Path | None:
    """The root of the project that a run's folder is in; None where that is not the current one, so that its
    suites may be elsewhere."""
    root, _ = find_root([Path.cwd()])
    return root if Store(root).holds(folder) else None


def _usual_tokens(case: StoredCase) -> dict[str, str]:
    """By budget assertion, what the case usually takes with this agent; only where past runs show it."""
    if not format_of(case.format).budgets:
        return {}
    root, _ = find_root([Path.cwd()])
    history = [
        item
        for item in Index(root).history(case.case_id)
        if (item.agent, item.model) == (case.agent, case.model)
    ]
    found: dict[str, str] = {}
    if len(history) > 1:
        for budget, kind in _BUDGETS.items():
            found[budget] = usual_text(usual_tokens(past_tokens(Store(root), history, kind)))
    return found


def _rows(attempt: Attempt, folder: Path | None) -> list[str]:
    """What the rows that differ have in common, which step went wrong, and the rows themselves as one table."""
    shown = rows_shown(attempt.data, folder, attempt=attempt)
    lines = [f"→ {line}" for line in shown.diagnosis]
    lines += [f"SQL {shown.conclusion}"] if shown.conclusion else []
    lines += [*shown.place, *shown.fault]
    lines += [shown.order] if shown.order else []
    lines = [visible(line, newlines=False) for line in lines]
    if (table := shown.table or shown.answer) is not None:
        rows = "row" if table.more_rows == 1 else "rows"
        more = f", {table.more_rows:,} more {rows}" if table.more_rows else ""
        more += f", {table.more_columns:,} more columns" if table.more_columns else ""
        lines.append(visible(table.line, newlines=False) + more)
        lines += table_lines(table, terminal_width())
    return [*lines, shown.cut] if shown.cut else lines


def _judges(attempt: Attempt) -> str:
    used = attempt.judging
    return (
        judges_of(figures.judge_tokens(used), used.cost, used.cached, used.saved) if used is not None else ""
    )


def attempt_text(
    attempt: Attempt,
    name: str,
    usual: Mapping[str, str] | None = None,
    folder: Path | None = None,
    compat: str = "",
) -> str:
    """An attempt for reading: outcome, transcript, verdicts, rows that differ as one table; `usual` is
    said beside the verdicts of a type, `folder` is the run's, `compat` the rules that it was judged by."""
    lines = [
        f"{visible(name, newlines=False)}, attempt {attempt.attempt} with {attempt.agent}: {attempt.outcome} ({attempt.message})"
        f"{f', {cached}' if (cached := attempt.cached_words) else ''}{f', {judges}' if (judges := _judges(attempt)) else ''}"
        f"{', judged by reference' if compat == 'reference' else ''}",
        "",
    ]
    for entry in attempt.transcript:
        who = f" {entry.agent}" if entry.agent else ""
        match entry.kind:
            case "tool_call":
                text = f"{entry.name} {encode_json(entry.arguments).decode()}"
            case "tool_result":
                text = entry.error if entry.error is not None else encode_json(entry.result).decode()
            case "hand_off":
                asked = f" {encode_json(entry.arguments).decode()}" if entry.arguments is not None else ""
                text = f"to {entry.name}{asked}"
            case _:
                text = entry.text
        body = clip(text, 20_000).splitlines() or [""]
        lines.append(f"[{entry.turn}] {entry.kind}{who}: {body[0]}")
        lines.extend(f"    {line}" for line in body[1:])
    for reply in attempt.replies:
        if reply.metadata:
            said = clip(encode_json(reply.metadata).decode(), 2_000)
            lines.append(f"[{reply.turn}] metadata: {visible(said, newlines=False)}")
    lines.extend(_spans(attempt.trace))
    lines.append("")
    for verdict in attempt.verdicts:
        word = {True: "✓", False: "✗", None: "!"}[verdict.passed]
        beside = (usual or {}).get(verdict.type)
        more = f"  {beside}" if beside else ""
        lines.append(f"{word} {verdict.type} {verdict.target}: {verdict.reason}{more}")
        for part in verdict.parts or ():
            said = clip(str(part.get("reason") or ""), 500)
            lines.append(
                f"    {'✓' if part.get('pass') is True else '✗'} {visible(said, newlines=False)}".rstrip()
            )
    if attempt.outcome != "passed":
        told = _rows(attempt, folder)
        in_words = attempt.data.comparison if attempt.data is not None else None
        reasons = [line for line in reasons_of(attempt) if line != in_words or not told]
        lines.extend(["", *told, *reasons])
    return "\n".join(lines) + "\n"


def _spans(trace: Trace | None) -> list[str]:
    """What the agent exported over OpenTelemetry, a line for each span."""
    lines: list[str] = []
    for span in trace.spans if trace is not None else ():
        took = f" {span.end - span.start:,.1f} ms" if span.start is not None and span.end is not None else ""
        failed = f"; status {span.status:g} {span.message or ''}".rstrip() if span.status else ""
        lines.append(f"span: {visible(clip(span.name, 200), newlines=False)}{took}{failed}")
    if trace is not None and (trace.problem or trace.note):
        lines.append(f"trace: {'; '.join(filter(None, (trace.problem, trace.note)))}")
    return lines


def _stopped(info: RunInfo) -> str | None:
    """Why a run is no success though all its cases passed, as it was when it ended."""
    return lacks_words(info) or ("cancelled" if info.state == "cancelled" else None)


def follow(reference: str) -> int:
    """Follow a run in plain lines until it ends; the run's exit code."""
    reader = _reader(reference)
    try:
        cases = reader.listed(reader.cases())
        marks = told_apart_anywhere(cases)
        names = {case.id: full_name(case.name, mark) for case, mark in zip(cases, marks, strict=True)}
        info = reader.info()
        say(f"run {info.id}: {info.state}")
        seen = 0
        while True:
            state = reader.info().state
            changes = reader.changes(seen)
            for row in changes:
                seen = max(seen, row.changed)
                if row.state == "done":
                    name = names.get(row.case_ref, "?")
                    line = f"{row.outcome:<9} {name} #{row.attempt}: {clip(row.cause or row.message, 160)}"
                    say(visible(line, newlines=False))
            if state in _ENDED and not changes:
                break
            if not changes:
                time.sleep(0.2)
        table = console_table.RunTable.of(reader)
        info = reader.info()
        say(table.totals(lacks=lacks_of(info), put_back=unfinished_in(info)))
        unread = warn_of_unread(info)
        if state == "interrupted" and merged_of(info.provenance):
            warn(f"incomplete: {reader.info().note}")
            return EXIT_USAGE if unread else EXIT_FAILED
        if state == "interrupted":
            if reader.cases():
                info = reader.info()
                warn(f"the run was interrupted; go on with: {way_on(info.id, info)}")
                if other := other_way_on(info):
                    warn(other)
            else:
                warn("the run was interrupted before what it was to run was written down; start it anew")
        if unread:
            return EXIT_USAGE
        if state == "interrupted":
            return EXIT_FAILED
        return exit_code_of(table.sums, _stopped(info))
    finally:
        reader.close()


_ENGINE_ANSWERS_WITHIN = 20.0
"""Seconds: a process that is stopped (Ctrl-Z) holds its connection and says nothing."""


def cancel(reference: str) -> int:
    """Cancel a run that another process executes."""
    folder = _find(reference)
    if not is_alive(folder):  # a copy, or somebody else's folder, may name the engine of another run
        raise CommandError(f"run {folder.name} is executed by no engine that can be reached")

    async def ask() -> int:
        client = EngineClient(_project_of(folder) or folder.parents[2])
        await client.attach(folder)
        try:
            return await client.cancel(folder.name)
        finally:
            await client.close()

    try:
        count = asyncio.run(asyncio.wait_for(ask(), _ENGINE_ANSWERS_WITHIN))
    except EngineError as error:
        raise CommandError(str(error)) from None
    except TimeoutError:
        raise CommandError(
            f"the process that executes run {folder.name} does not answer, stopped or stuck as it is; "
            "what was asked reaches it when it goes on, or end it: `tui-eval resume` then goes on with the run"
        ) from None
    say(f"run {folder.name} cancelled: {counted(count, 'attempt')} had not ended")
    return EXIT_OK


def export_run(reference: str, paths: Sequence[Path]) -> int:
    """Write a run to files (`write_files`)."""
    reader = _reader(reference)
    try:
        unwritten = write_files(
            reader, paths, lambda path: None if is_stream_at(path) else say(f"written: {path}")
        )
    finally:
        reader.close()
    return EXIT_USAGE if unwritten else EXIT_OK


def assess(reference: str, judge: str | None, trust: bool, as_json: bool) -> int:
    """Have the judge name the groups of failures of a run that has ended: say what it asks and costs, ask,
    keep the names with the run and print the groups. Without a judge they are printed as they are.

    Raises:
        CommandError: no such run, or nothing that failed (which is nothing to do, and no wrong usage).
    """
    from tui_eval.engine.after.failure_naming import (  # late: no other command names
        NoJudge,
        NothingFailed,
        name_failures,
        plan_naming,
    )
    from tui_eval.engine.selection import NothingToRun

    try:
        folder = find_run(reference)
        planned = asyncio.run(plan_naming(folder, judge, trust))
        price = "" if planned.cost is None or planned.free else f", about {usd(planned.cost)}"
        warn(f"asking {visible(planned.judge)} {counted(planned.questions, 'question')}{price}")
        found = asyncio.run(name_failures(folder, judge, trust))
    except NoJudge as error:
        with contextlib.closing(_reader(reference)) as reader:
            found = reader.assessment()
        if not found.modes:
            raise CommandError(
                f"run {reader.folder.name}: nothing failed, so there is nothing to group", EXIT_NOTHING
            ) from None
        warn(f"not named by anybody: {error}")
    except NothingFailed as error:
        raise CommandError(str(error), EXIT_NOTHING) from None
    except (StoreError, NothingToRun, ConfigError) as error:
        raise CommandError(str(error)) from None
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        say(visible(console_table.failure_modes(found)))
    return EXIT_OK


def serve(port: int) -> int:
    """Serve the runs of the current project until Ctrl-C.

    Raises:
        CommandError: the extra is not installed, or the port is taken.
    """
    from tui_eval.extensions import adding  # late: no other command needs what serving does
    from tui_eval.reports.web_server import HOST, application

    try:
        import uvicorn

        root, _ = find_root([Path.cwd()])
        token = secrets.token_urlsafe(24)
        app = application(root, port, token=token)
    except ImportError:
        raise CommandError(f"the results page needs the extra `web`: {adding('web')}") from None
    try:
        listening = socket.create_server((HOST, port))
    except (OSError, OverflowError):
        raise CommandError(f"port {port} of {HOST} cannot be used; give another with --port") from None
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
    code = EXIT_OK

    def hang_up(number: int, _: object) -> None:  # uvicorn looks after the other signals
        nonlocal code
        server.should_exit, code = True, 128 + number

    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hang_up)
    with listening:
        say(f"results of {root} at http://{HOST}:{port}/?token={token} (Ctrl-C ends it)")
        server.run(sockets=[listening])
    return code


def _find(reference: str) -> Path:
    try:
        return find_run(reference)
    except StoreError as error:
        raise CommandError(str(error)) from None


def _reader(reference: str) -> RunReader:
    try:
        return RunReader(_find(reference))
    except StoreError as error:
        raise CommandError(str(error)) from None


WIDE = 130
"""Columns of a terminal from which date and state have columns of their own; a pipe has them always."""
_LAST = 20
"""Columns that the last column has at least."""


def list_runs(as_json: bool) -> int:
    """The runs of this project, newest first."""
    root, _ = find_root([Path.cwd()])
    found = Index(root).runs()
    if as_json:
        say_json([msgspec.to_builtins(item) for item in found])
    elif found:
        say(runs_text(found, terminal_width()))
    else:
        say(Store(root).none_yet(root))
    if found and (closed := closed_to_us(root)) is not None:
        warn(not_known_in(closed).removeprefix("; "))
    return EXIT_OK if found else EXIT_NOTHING


def runs_text(runs: Sequence[RunSummary], width: int | None) -> str:
    """A table of runs, at most `width` columns wide (None: as wide as it is)."""
    wide = width is None or width >= WIDE
    head = ["Run", *(["When", "State"] if wide else []), "Passed", "Failed", "Errors", "Cost", "What"]
    rows = [head, *(_cells(run, wide) for run in runs)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head) - 1)]
    lefts = 3 if wide else 1
    lines: list[str] = []
    for row in rows:
        cells = [
            cell.ljust(size) if i < lefts else cell.rjust(size)
            for i, (cell, size) in enumerate(zip(row, widths, strict=False))
        ]
        line = "  ".join([*cells, row[-1]])
        if width is not None:
            line = _cut(line, max(width, sum(widths) + 2 * len(widths) + _LAST))
        lines.append(line.rstrip())
    return "\n".join(lines)


def _cells(run: RunSummary, wide: bool) -> list[str]:
    named = (
        run.told if wide or not run.only else f"{run.only} · {run.suite or run.what}"
    )  # what tells it is cut last
    words = (
        named,
        run.other_agents,
        cached_of(run.cached, run.saved),
        judges_of(run.judge_tokens, run.judge_cost, run.judge_cached, run.judge_saved),
    )
    what = visible(" · ".join(filter(None, words)), newlines=False)
    if run.stepped:
        what = f"step {what}"
    if run.linked_to:
        what = f"↳ {run.linked_to}: {what}" if wide else f"↳ {what}"
    more = [time.strftime("%Y-%m-%d %H:%M", time.localtime(run.started_at)), run.state] if wide else []
    if not wide and run.state != "finished":
        what = f"{run.state}: {what}"
    if run.short_of:
        what = f"{run.short_of}: {what}"
    counts = (
        ["", "", ""]
        if run.unread
        else [f"{run.passed:,}/{run.total:,}", f"{run.failed:,}", f"{run.errors:,}"]
    )
    return [run.id, *more, *counts, "" if run.cost is None else usd(run.cost), what]


def _cut(line: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return line if cell_len(line) <= width else set_cell_size(line, width - 1) + "…"


def usual_tokens(runs: Sequence[Sequence[int]]) -> tuple[int, int, int] | None:
    """The lowest and the highest count and the number of runs they are from; `runs` are the attempts'
    counts by run, newest first. None below two runs that know them."""
    known = [counts for counts in runs if counts][:_RUNS]
    if len(known) < 2:
        return None
    every = [count for counts in known for count in counts]
    return min(every), max(every), len(known)


def past_tokens(store: Store, history: Sequence[CaseHistory], kind: _Kind) -> list[list[int]]:
    """The counts of a case's attempts in its last runs, by run; `history` is newest first and of one agent
    and model. Runs that are gone are left out."""
    found: list[list[int]] = []
    for item in history:
        with contextlib.suppress(StoreError):
            reader = RunReader(store.folder_of(item.run_id))
            with contextlib.closing(reader):
                same = [
                    row.id
                    for row in reader.cases_of(item.case_id)
                    if (row.agent, row.model) == (item.agent, item.model)
                ]
                rows = [row for ref in same for row in reader.attempts(ref) if not row.judges]
            counts = [count for row in rows if (count := getattr(row, kind)) is not None]
            if counts:
                found.append(counts)
        if len(found) == _RUNS:
            break
    return found


def usual_text(found: tuple[int, int, int] | None) -> str:
    """`usually 1,204–1,560 (last 5 runs)`; empty where it is not known."""
    if found is None:
        return ""
    low, high, runs = found
    return f"usually {low:,}{f'–{high:,}' if high != low else ''} (last {runs} runs)"
