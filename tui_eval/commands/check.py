"""`tui-eval check`: everything in the files that will not run, cannot be judged or cannot fail."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tui_eval import vacuity
from tui_eval.commands.expected_sql import ExpectedSql, leaks, problems_of
from tui_eval.commands.listing import load_paths
from tui_eval.commands.odd_values import odd_values
from tui_eval.commands.output import EXIT_NOTHING, EXIT_OK, EXIT_USAGE, CommandError, counted, put, say
from tui_eval.commands.readiness import not_ready
from tui_eval.config.project import AgentSpec, ConfigError, load, masker, passed_over, unused_rules
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingToRun, SelectionError
from tui_eval.engine.wants import wants
from tui_eval.formats import format_of
from tui_eval.formats.format import COLUMNS
from tui_eval.guard.text import visible
from tui_eval.guard.trust import fingerprints, in_order
from tui_eval.guard.trust_store import trust_for
from tui_eval.model import Problem, Suite
from tui_eval.store.printed_commands import shell_line
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError

_SHOWN = 20
"""Notes of one kind that are printed with their places; of more, how many there are."""


def check(
    paths: Sequence[str],
    config_file: str | None,
    trust: bool,
    without_answer: bool = False,
    configs: Sequence[str] = (),
) -> int:
    """Print every problem as `path:line: key: what is wrong, what to do`; with `without_answer` also the
    cases that pass against an agent that answers nothing."""
    config, reads, loaded, problems = load_paths(paths, config_file, trust, configs)
    wanted = wants(loaded, config, reads)
    trusted = trust_for(config.root, trust)
    expected = ExpectedSql(config, trusted)
    cases = [case for suite in loaded if format_of(suite.format).checks_queries for case in suite.cases]
    progress = Counting("expected SQL")
    expected.try_all(cases, progress.at)
    progress.end()
    problems += problems_of(cases, expected, config)
    problems += asyncio.run(_faults(loaded))
    broken = [one for suite in loaded for one in format_of(suite.format).broken_values(suite, config.root)]
    problems += broken
    problems += odd_values(loaded)
    problems += not_ready(loaded, config, trusted)
    whole = config.root in [Path(path).absolute() for path in paths or ["."]] and not configs
    of_suites = [suite.path for suite in loaded if suite.path]
    problems += unused_rules(config, of_suites, whole)
    problems += passed_over(config, of_suites) if config_file is None else []
    places = {(one.path, one.line, one.key) for one in broken}  # that it cannot fail is not so where it errs
    problems += [one for one in _idle(loaded) if (one.path, one.line, one.key) not in places]
    if any(format_of(suite.format).checks_queries and suite.cases for suite in loaded):
        problems += leaks(loaded, config, trusted, expected)
    if without_answer:
        problems += vacuous(paths, config_file, trust)
    errors, notes, kinds = _print(masker(config).value(problems))
    if told := _trust_line(wanted, paths, configs, config_file):
        say(visible(masker(config).text(told), newlines=False))
    count = sum(len(suite.cases) for suite in loaded)
    files = sum(1 for suite in loaded if suite.path)
    told = counted(notes, "note") + (f" of {counted(kinds, 'kind')}" if kinds < notes else "")
    say(f"{counted(files, 'file')}, {counted(count, 'case')}: {counted(errors, 'error')}, {told}")
    if errors:
        return EXIT_USAGE
    # Hooks may add cases where no test of their file makes one.
    return EXIT_OK if count or any(suite.settings.get(COLUMNS) for suite in loaded) else EXIT_NOTHING


async def _faults(loaded: Sequence[Suite]) -> list[Problem]:
    """What the formats find in their suites that no answer can meet: patterns, schemas and code that do not compile.
    Nothing of a suite's own code is run."""
    suites: dict[str, list[Suite]] = {}
    for suite in loaded:
        suites.setdefault(suite.format, []).append(suite)
    return [problem for name, own in suites.items() for problem in await format_of(name).faults(own)]


def _trust_line(
    wanted: Sequence[str], paths: Sequence[str], configs: Sequence[str], config_file: str | None
) -> str:
    """What needs trust when the suites are run, code first, and the command that agrees to just that."""
    if not wanted:
        return ""
    listed = in_order(wanted)
    more = f"; {len(listed) - _SHOWN:,} more that are not agreed to by this" if len(listed) > _SHOWN else ""
    words = ["tui-eval", "run", *paths, *(word for path in configs for word in ("-c", path))]
    words += ["--config", config_file] if config_file else []
    words += ["--trust-only", fingerprints(listed[:_SHOWN])]
    return (
        f"trust: when run, {counted(len(listed), 'thing')} will need it: {'; '.join(listed[:_SHOWN])}{more}. Look at "
        f"each, then agree to just these: {shell_line(words)}"
    )


class Counting:
    """How far something has come, on stderr: a line that is written over on a terminal, else one a few seconds."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._tty = sys.stderr.isatty()
        self._told = time.monotonic()
        self._shown = False

    def at(self, done: int, total: int) -> None:
        """So many of so many are done; said at most ten times a second (not on a terminal: every five seconds)."""
        now = time.monotonic()
        if now - self._told < (0.1 if self._tty else 5.0):
            return
        self._told, self._shown = now, True
        line = f"{self._what}: {done:,} of {total:,}"
        put(f"\r{line}" if self._tty else f"{line}\n", sys.stderr)

    def end(self) -> None:
        """It is done: a line that was written over goes."""
        if self._shown and self._tty:
            put("\r\x1b[K", sys.stderr)


def _print(problems: Sequence[Problem]) -> tuple[int, int, int]:
    """Print each problem once; how many errors there are, how many notes, and how many of these say different
    things."""
    alike: dict[tuple[str, str], list[Problem]] = {}
    errors = 0
    for problem in dict.fromkeys(problems):
        if problem.level == "error":
            errors += 1
            say(visible(str(problem), newlines=False))
            for line in problem.picture.splitlines():
                say(f"    {visible(line, newlines=False)}")
            continue
        same = alike.setdefault((problem.message, problem.cure), [])
        same.append(problem)
        if len(same) <= _SHOWN:
            say(visible(f"{problem} (note)", newlines=False))
    for same in alike.values():
        if len(same) > _SHOWN:
            more = f"{same[0].message} (note): {len(same) - _SHOWN:,} more places"
            say(visible(more, newlines=False))
    return errors, sum(map(len, alike.values())), len(alike)


def _idle(loaded: Sequence[Suite]) -> Iterator[Problem]:
    """A note for all that cannot fail, and for files that hold no case."""
    for suite in loaded:
        if not suite.cases and not suite.problems:
            yield Problem(suite.path, 0, "", "holds no case: nothing of it runs", level="note")
        for case, part in vacuity.distinct(suite.cases):
            path = case.path
            yield Problem(path, part.line or case.line, part.key, part.message, part.cure, level="note")


# -- `tui-eval check --vacuous`: the cases that pass against an agent that answers nothing.


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
                path=case.path,
                line=case.line,
                key=case.name,
                message=f"passes against an agent that answers nothing{why}",
                level="note",
            )
        )
    return notes
