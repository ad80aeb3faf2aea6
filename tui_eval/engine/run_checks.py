"""What is checked of a run before anything of it is asked, paid for or written; each raises one clear line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.config.config_schema import TOP
from tui_eval.config.project import Config, ConfigError
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.plan import Job
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import SelectionError
from tui_eval.engine.wants import wants, wants_of_all, wants_of_jobs, wants_of_judging
from tui_eval.formats import reading
from tui_eval.guard.secrets import MASK
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import Trust, fingerprint
from tui_eval.model import Suite

if TYPE_CHECKING:
    from tui_eval.engine.run_context import RunContext


def check_limits(config: Config) -> None:
    """Limits of cost and time that cannot be read are none at all: nothing is asked for without them, nor
    where what says who is asked may stand under a key that is misspelt (`runs:`, `sutes:`), under another of
    that name, or in a file that is none.

    Raises:
        ConfigError: one of them, with its place.
    """
    for problem in config.problems:
        if problem.level != "error" or config.file is None or Path(problem.path).name != config.file.name:
            continue
        top = problem.key.partition(".")[0]
        slip = top == problem.key and top not in TOP and close_to(top, TOP) is not None
        if top in ("", "run") or slip or problem.key in config.doubled:
            raise ConfigError(str(problem))


def check_vars(request: RunRequest) -> None:
    """See that no variable is a mask: what was typed for a run and is in no record.

    Raises:
        SelectionError: one is.
    """
    for name, value in request.vars.items():
        if MASK in value:
            raise SelectionError(f"--var {name}: its value is a secret, which is in no record; give it again")


def check_judge(request: RunRequest, environment: RunContext, *, typed: str | None) -> None:
    """Say before anything is asked, and paid for, that there is no such judge. `typed` is the one that a
    person has named for this run, which is trusted by that.

    Raises:
        ConfigError: `--judge` names nothing.
    """
    environment.typed_judge = typed
    try:
        environment.judge(request.judge)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--agent", "--judge", 1)) from None


def check_outputs(
    outputs: Sequence[Path], loaded: Sequence[Suite], jobs: Sequence[Job], config: Config, trust: Trust
) -> None:
    """What the run reads is not written over.

    Raises:
        SelectionError: it would be.
    """
    there = {path.resolve(): path for path in outputs if path.exists()}
    if not there:
        return
    configured = filter(None, (config.file, config.nao.path if config.nao else None))
    read = [*map(Path, configured), *(Path(file) for suite in loaded for file in suite.files)]
    for file in chain(read, Fingerprints(config, trust).read_by(jobs)):
        if (output := there.get(file.resolve())) is not None:
            raise SelectionError(
                f"-o {output}: the run reads this file, and would write its results over it; name another"
            )


def check_given(agreed: Sequence[str], jobs: Sequence[Job], config: Config, trust: Trust) -> None:
    """See that no fingerprint of `--trust-only` is of nothing here: mistyped, or of code that has changed
    since it was listed. What was given is compared with all that this project wants: what is run first, and,
    where that leaves something over, the whole of it, since a printed command names what was agreed to for
    more than it runs.

    Raises:
        SelectionError: some are of nothing, and which.
    """
    left = {one for one in agreed if one.startswith("#")} - trust.met

    def everything() -> list[str]:
        suites = reading.load_all([config.root], config, trust)
        return wants(suites, config, Trust(wanted=list(trust.wanted)))

    stages: tuple[Callable[[], Iterable[str]], ...] = (
        lambda: trust.wanted,
        lambda: wants_of_jobs(jobs, config, Trust()),
        lambda: wants_of_judging(jobs, config, Trust()),
        lambda: wants_of_all(config),
        everything,
    )
    for found in stages:
        if not left:
            return
        left -= set(map(fingerprint, found()))
        left -= trust.met
    if left:
        named = ", ".join(one.removeprefix("#") for one in agreed if one in left)
        what = "is the fingerprint of nothing" if len(left) == 1 else "are fingerprints of nothing"
        raise SelectionError(
            f"--trust-only: {named} {what} that is wanted here (mistyped, or what it stood for has changed); "
            "`tui-eval check PATH` lists what needs trust"
        )
