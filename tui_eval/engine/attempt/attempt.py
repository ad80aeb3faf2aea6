"""One attempt from its start to what is kept of it; always ends in an `Attempt`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tui_eval import vacuity
from tui_eval.agents import template_variables
from tui_eval.agents.base import AgentError, asking_for
from tui_eval.assertions.judge_input import Judgement
from tui_eval.config.project import ConfigError
from tui_eval.engine.attempt import continuing
from tui_eval.engine.attempt.attempt_judging import provider_variables, require_variables
from tui_eval.engine.attempt.attempt_state import Running
from tui_eval.engine.attempt.by_hand import ByHand
from tui_eval.engine.attempt.collector import Collector
from tui_eval.engine.attempt.finished import AttemptFailed, evidence_of, finished, mask, masked, reason_of
from tui_eval.engine.attempt.stepping import Stepper
from tui_eval.engine.attempt.time_limits import TimeLimits
from tui_eval.engine.cached_session import JudgeReplies
from tui_eval.engine.places.attempt_place import AttemptLog
from tui_eval.engine.plan import Job
from tui_eval.engine.run_context import RunContext, judged_attempt, judges_take
from tui_eval.events import Note
from tui_eval.formats import format_of
from tui_eval.guard import figures
from tui_eval.guard.crash_report import leaves
from tui_eval.guard.fair_share import in_turn
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import Attempt, Evidence, Verdict
from tui_eval.scripting import ScriptError, printed, suite_variables, suite_variables_of
from tui_eval.store import frames
from tui_eval.store.encoding import has_long


async def execute(
    job: Job, number: int, attempt_ref: int, environment: RunContext, writer: AttemptLog | None,
    deadline: float | None = None,
    stepper: Stepper | None = None,
    left: dict[int, Attempt] | None = None,
    first: Collector | None = None,
) -> Attempt:  # fmt: skip
    """Run one attempt to its end. Cancelling the task closes the connection and raises; what there was of the
    attempt is then in `left`, by its reference.

    `deadline` (loop time) ends it earlier than its own time limit would. With a `stepper` a person
    decides on each turn, without a time limit but the turns' own; what was changed by hand is no result.
    `first` is a try for which only kept answers were taken: none is now, and what its judges took counts.
    """
    job = job.opened()
    collector = Collector(writer, attempt_ref, environment.masker)
    by_hand = ByHand(attempt_ref, collector, stepper)
    limits = TimeLimits(job, deadline, stepper is not None, collector)
    run = Running(job, number, collector, environment, by_hand, limits, asks_anew=first is not None)
    started = environment.now()
    if writer is not None:
        writer.started(attempt_ref, started)
    clock = time.perf_counter()
    asking = asking_for.set(attempt_ref)
    listening = printed.set(collector.printed)
    adding = suite_variables.set(suite_variables_of(job.settings, environment.trust))
    filling = template_variables.set(provider_variables(job, environment))
    heeding = figures.unknown.set(collector.unknown)
    collector.judging = first.judging if first is not None else None
    counting = judges_take.set(collector.judge_took)
    renews = environment.answers is not None and not environment.answers.reads  # also of what is judged again
    replies = JudgeReplies(number, cached=stepper is None and (job.recorded is None or renews))
    judging = judged_attempt.set(replies)
    error: str | None = None
    why: list[Evidence] | None = None
    judgement: Judgement | None = None
    cancelled = False
    failed: Exception | None = None
    try:
        if job.problem or (job.spec is None and not job.judges_only):
            raise AttemptFailed(job.problem or "no agent", "no-agent")
        asked = None if job.judges_only else job.model
        for what in format_of(job.format).withheld(asked, environment.config):
            environment.trust.require(what)
        require_variables(job)
        judgement = await run.go()
        await _keep_judging(replies, judgement.verdicts, collector, environment)
    except asyncio.CancelledError:
        cancelled = True
        await _keep_judging(replies, collector.verdicts, collector, environment, cut_off=True)
        raise
    except AttemptFailed as failure:
        failed = failure
        error, why = str(failure), evidence_of(failure)
    except (AgentError, ConfigError, NeedsTrust, ScriptError) as failure:
        failed = failure
        error, why = str(failure), evidence_of(failure)
        collector.failed(error, getattr(failure, "answer", ""))
    except (Exception, SystemExit) as failure:
        # Endpoints, files and people's code break in ways no list foresees: the attempt errs, the run
        # goes on.
        if leaves(failure):
            raise
        error, why = reason_of(failure), evidence_of(failure)
        collector.failed(error)
    finally:
        asking_for.reset(asking)
        printed.reset(listening)
        suite_variables.reset(adding)
        template_variables.reset(filling)
        figures.unknown.reset(heeding)
        judges_take.reset(counting)
        judged_attempt.reset(judging)
        collector.close()
        run.close()
        if cancelled and left is not None:
            attempt = finished(job, number, run.conversation, collector, None, None)
            attempt.outcome, attempt.message, attempt.started_at = "cancelled", "cancelled", started
            attempt.duration_ms = round(
                (time.perf_counter() - clock) * 1000 - run.uncounted_ms - limits.waited_ms, 1
            )
            left[attempt_ref] = mask(attempt, environment)
    if run.known_in_part and first is None:
        # Only known answers were taken, and the agent was asked nothing: the turn for the rows is not among them.
        return await execute(
            job, number, attempt_ref, environment, writer, deadline, stepper, left, first=collector
        )
    duration = (time.perf_counter() - clock) * 1000 - run.uncounted_ms - limits.waited_ms
    if judgement is not None and judgement.frames and judgement.data is not None and writer is not None:
        await _keep_frames(judgement, attempt_ref, environment, writer)
    attempt = finished(job, number, run.conversation, collector, judgement, error, why)
    attempt.trace, attempt.changed_vars = run.kept_trace, run.changed_vars
    attempt.asserted_nothing = judgement is not None and vacuity.asserted_nothing(run.case, attempt)
    if by_hand.changes:
        attempt.outcome = "skipped"
        attempt.message = f"{continuing.BY_HAND}{'; '.join(by_hand.changes)}"
    attempt.started_at = started
    attempt.duration_ms = round(duration, 1) if run.was_asked(failed) else None
    if by_hand.stopped:
        attempt.outcome = "cancelled"  # by a person: no fault of the agent's
    if job.judges_only and job.recorded is not None:
        # How long the answer took, or what there was instead of one; not its judging.
        attempt.duration_ms = job.recorded.duration_ms
    if run.conversation is not None:
        environment.memory.remember(run.case, job.agent, job.model, attempt)
    if environment.hooks is not None and not job.problem:
        await environment.hooks.after_each(run.case, attempt)
    if run.tracer:
        attempt = masked(attempt, run.tracer.masker())
    if environment.masker and has_long(attempt):
        return await in_turn(lambda: mask(attempt, environment))
    return mask(attempt, environment)


async def _keep_judging(
    replies: JudgeReplies,
    verdicts: Sequence[Verdict],
    collector: Collector,
    environment: RunContext,
    *,
    cut_off: bool = False,
) -> None:
    """Keep what judges answered. Where judging, or an assertion of it, was cut off, some of it is in no verdict: it is
    paid for as well."""
    if cut_off or any(seen.code == "not-in-time" for one in verdicts for seen in one.evidence or ()):
        for text in replies.unused(verdicts):
            collector.take(Note(f"a judge had answered: {text}"))
    if environment.answers is not None:
        await environment.answers.settle(replies, verdicts, environment.masker)


async def _keep_frames(
    judgement: Judgement, attempt_ref: int, environment: RunContext, writer: AttemptLog
) -> None:
    """Rows beyond the details' limit go beside the run's database; a full disk is a note, no error."""
    assert judgement.data is not None
    try:
        paths = await asyncio.to_thread(
            frames.save, writer.folder, attempt_ref, judgement.frames, environment.masker
        )
        judgement.data.settings["frames"] = paths
    except OSError as error:
        judgement.data.settings["frames_missing"] = str(error)
