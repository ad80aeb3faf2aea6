"""Where a run's attempts run, as the request or the configuration says; and `here`, the engine's own loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tui_eval.config.config_schema import Wrong, where
from tui_eval.config.project import AgentSpec, Config, ConfigError
from tui_eval.engine.grader_choice import graders_of
from tui_eval.engine.places.attempt_place import AttemptLog, Made
from tui_eval.formats import format_of
from tui_eval.guard.trust import NeedsTrust, Trust

if TYPE_CHECKING:
    from tui_eval.engine.attempt.stepping import Stepper
    from tui_eval.engine.places.attempt_place import AttemptPlace
    from tui_eval.engine.plan import Job
    from tui_eval.engine.request import RunRequest
    from tui_eval.engine.run_context import RunContext
    from tui_eval.engine.schedule import Ticket
    from tui_eval.model import Attempt
    from tui_eval.store.writer import RunWriter


def place_wanted(on: str) -> str | None:
    """The name of running attempts on a cluster that a file names, for who asks for trust; None: it is this machine.
    The cluster gets the environment with its secrets, and what it answers can be code."""
    return (
        None if on in ("here", "ray") else f"run attempts on the Ray cluster {on}, which gets the environment"
    )


def check_place(request: RunRequest, config: Config, trust: Trust, *, typed: bool = True) -> None:
    """Say before anything is made that attempts cannot run there. `typed`: the person has named the request's place,
    not the record of a run.

    Raises:
        ConfigError: one line that says why.
    """
    on = place_name(request, config)
    try:
        where(on)
    except Wrong as wrong:
        raise ConfigError(f"--on: {wrong}") from None
    wanted = place_wanted(on)
    if wanted is not None and not (typed and request.on and not request.on_recorded):
        try:
            trust.require(wanted)
        except NeedsTrust as needs:
            raise ConfigError(f"{needs}; to agree to just that: --on {on}; to run here: --on here") from None
    if on != "here":
        from tui_eval.engine.places.ray_place import check_ray
        from tui_eval.engine.places.sent_project import check_size

        check_ray("" if on == "ray" else on)
        if on != "ray" and config.run.files != "shared":
            check_size(config)


def check_sent(request: RunRequest, jobs: Sequence[Job], context: RunContext, trust: Trust) -> None:
    """Say before anything is made that an agent of these jobs would lack a file on the cluster that they go to.

    Raises:
        ConfigError: one line that says what to do.
    """
    on, config = place_name(request, context.config), context.config
    if on in ("here", "ray") or config.run.files == "shared":
        return
    from tui_eval.engine.places.sent_project import check_agents

    asked = [job.spec for job in jobs if job.recorded is None and not job.problem]
    agents = {spec.name: spec for spec in asked if spec is not None and spec.type != "replay"}
    check_agents(config, trust, context.masker, agents.values())


def place_of(
    request: RunRequest,
    jobs: Sequence[Job],
    environment: RunContext,
    writer: RunWriter,
    concurrency: int,
    say: Callable[[str], None],
) -> AttemptPlace:
    """The place of a run of which something goes elsewhere."""
    on = place_name(request, environment.config)
    from tui_eval.engine.places.ray_place import RayPlace

    shared = environment.config.run.files == "shared"
    address = "" if on == "ray" else on

    def named() -> set[str]:
        from tui_eval.engine.case_files import named_variables

        return named_variables(jobs, environment.config.root)

    return RayPlace(address, concurrency, environment, writer, shared=shared, named=named, say=say)


def place_name(request: RunRequest, config: Config) -> str:
    """Where a run goes: `here`, `ray` or an address. A person steps here, and what rests on recorded answers
    is here."""
    here = request.step or request.rescores or request.continue_from is not None
    return "here" if here else request.on or config.run.on


def all_runs_here(request: RunRequest, jobs: Iterable[Job], environment: RunContext) -> str | None:
    """That a run which was to go elsewhere runs here, all of it, in words (empty: it was not to go anywhere): nobody
    waits for a worker then. None: something of it goes."""
    if place_name(request, environment.config) == "here":
        return ""
    found: dict[str, None] = {}
    for job in jobs:
        what = what_runs_here(job, environment)
        if what is None:
            return None
        found[what] = None
    kinds = " and ".join(filter(None, found))
    return f"ray is not used: {f'{kinds} run on this machine' if kinds else 'no worker is needed for this'}"


def what_runs_here(job: Job, context: RunContext) -> str | None:
    """What is executed on the engine's machine though the run goes elsewhere, of which a job is a part: what
    rests on files of the engine's own (recorded answers, the cache of answers), on one process for the whole
    run (hooks), or on a port that agents are given (traces). Empty: it is nothing worth a word; None: the job
    goes elsewhere."""
    spec, form = job.spec, format_of(job.format)
    if spec is None or job.problem or job.recorded is not None or spec.type == "replay":
        return ""
    if (answers := context.answers) is not None and any(map(answers.concern, _asked_for(job, spec, context))):
        return "attempts with answers that are kept"
    if context.hooks is not None and any(True for _ in form.hook_files(job.settings)):
        return "suites with hooks"
    return "cases that ask for traces" if form.asks_for_traces(job.case, job.settings) else None


def _asked_for(job: Job, spec: AgentSpec, context: RunContext) -> Iterator[AgentSpec]:
    """Its agent, and who may judge it: one of them may have kept answers where the other has none."""
    yield spec
    yield from graders_of(job, context.config, context.typed_judge)


class Here:
    """`here`: attempts on the engine's own loop. With a `stepper` a person decides on each turn."""

    words = note = ""
    begun_at_loss = 0

    def __init__(
        self, environment: RunContext, log: AttemptLog | None, stepper: Stepper | None = None
    ) -> None:
        from tui_eval.engine.attempt.attempt import (
            execute,
        )  # late: the app asks where a run goes, and executes none

        self._execute = execute
        self._environment = environment
        self._log = log
        self._stepper = stepper

    async def open(self, changed: Callable[[], None]) -> None:
        """It is ready."""

    async def attempt(self, ticket: Ticket, ends: float | None, left: dict[int, Attempt]) -> Made:
        """See `AttemptPlace`."""
        return Made(
            await self._execute(
                ticket.job,
                ticket.number,
                ticket.attempt_ref,
                self._environment,
                self._log,
                ends,
                self._stepper,
                left,
            )
        )

    async def close(self) -> None:
        """The run's context is its own, and closed by who made it."""
