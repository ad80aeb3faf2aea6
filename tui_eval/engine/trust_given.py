"""Fingerprints of `--trust-only` that are of nothing here: mistyped, or of code that has changed since it was listed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tui_eval.config.project import Config
from tui_eval.engine.plan import Job
from tui_eval.engine.selection import SelectionError
from tui_eval.engine.wants import wants, wants_of_all, wants_of_jobs, wants_of_judging
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust, fingerprint


def check_given(agreed: Sequence[str], jobs: Sequence[Job], config: Config, trust: Trust) -> None:
    """Compare what was given with all that this project wants: what is run first, and, where that leaves something
    over, the whole of it, since a printed command names what was agreed to for more than it runs.

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
