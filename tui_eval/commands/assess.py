"""`tui-eval assess`: the failures of a run that has ended, grouped and named by the judge."""

from __future__ import annotations

import asyncio

import msgspec

from tui_eval.commands.output import EXIT_OK, CommandError, counted, say, say_json, warn
from tui_eval.commands.run_suites import find_run
from tui_eval.config.project import ConfigError
from tui_eval.engine.after.failure_naming import name_failures, plan_naming
from tui_eval.engine.prepare import NothingToRun
from tui_eval.guard.text import visible
from tui_eval.reports.console_table import failure_modes
from tui_eval.store.run_folders import StoreError


def assess(reference: str, judge: str | None, trust: bool, as_json: bool) -> int:
    """Say what it asks and costs, ask, keep the names with the run and print the groups.

    Raises:
        CommandError: no such run, no judge, nothing that failed.
    """
    try:
        folder = find_run(reference)
        planned = asyncio.run(plan_naming(folder, judge, trust))
        price = "" if planned.cost is None or planned.free else f", about ${planned.cost:.4f}"
        warn(f"asking {visible(planned.judge)} {counted(planned.questions, 'question')}{price}")
        found = asyncio.run(name_failures(folder, judge, trust))
    except (StoreError, NothingToRun, ConfigError) as error:
        raise CommandError(str(error)) from None
    if as_json:
        say_json(msgspec.to_builtins(found))
    else:
        say(visible(failure_modes(found)))
    return EXIT_OK
