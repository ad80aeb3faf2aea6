"""Which model decides the graded assertions of a job: one rule, for runs and for what `check` says before one.

A grader that the suite names itself goes first, then the judge of the command line, of `suites:` or of `judge:`;
where there is none, the default of the suite's format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_eval import agents
from tui_eval.agents.base import AgentError
from tui_eval.config.project import AgentSpec, Config, ConfigError
from tui_eval.engine.plan import Job
from tui_eval.formats import format_of
from tui_eval.model import Case
from tui_eval.model_ids import provider_name

_COMPARES = re.compile(r"similar|select-best|relevance")


class NoGrader(Exception):
    """A suite names a grader that cannot be asked; says which, why, and what to do."""


def judge_of(name: str | None, config: Config, typed: str | None = None) -> AgentSpec | None:
    """The judge called `name` (None: the configured one); None where there is none. Only what somebody typed is
    trusted by that (`typed`); a suite or tui_eval.yaml never is.

    Raises:
        ConfigError: there is no such judge.
    """
    if not name:
        return config.judge
    find = agents.from_argument if name == typed else agents.from_file
    return find(name, config)


def default_of(job: Job, config: Config) -> AgentSpec | None:
    """What grades where nobody names a judge: the default of the suite's format; None: nothing does."""
    if job.judge or config.judge is not None or config.judge_wrong:
        return None  # no other grades in the place of one whose entry is wrong
    return format_of(job.format).default_grader(job.settings.get("env"), config)


def suites_own(provider: Any, config: Config, base: Path | None = None, env: Any = None) -> AgentSpec:
    """The grader that a suite names: a configured agent's name, or a promptfoo provider, its files relative to
    `base`. `env` is the suite's.

    Raises:
        NoGrader: nothing here speaks to it. As in promptfoo, no other model grades in its place.
    """
    try:
        if isinstance(provider, str) and provider in config.agents:
            return config.agents[provider]
        entry = provider if isinstance(provider, dict) else {"id": provider}
        return agents.for_provider(agents.with_env(entry, env), config, base or config.root)
    except (ConfigError, AgentError) as error:
        name = provider_name(provider)
        raise NoGrader(
            f"the grader that the suite names, {name}, cannot be asked: {error}. "
            f'Map it in tui_eval.yaml (providers: {{"{name}": AGENT}}) or give --judge NAME'
        ) from None


def asks_a_judge(case: Case) -> bool:
    """Whether a model may be asked to judge it: to grade, to compare, or for embeddings."""
    form = format_of(case.format)
    return any(form.asks_a_judge(one.type) or _COMPARES.search(one.type) for one in case.asserted)


def speaks_for_the_user(spec: AgentSpec | None) -> bool:
    """Whether this agent's user is simulated, by the judge."""
    return spec is not None and spec.type == "simulated-user"


def graders_named(case: Case) -> Iterator[Any]:
    """The graders that a case and its assertions name."""
    form = format_of(case.format)
    found = (form.case_grader(case), *(form.named_grader(one, case) for one in case.asserted))
    return (one for one in found if one is not None)


def graders_of(job: Job, config: Config, typed: str | None = None) -> Iterator[AgentSpec]:
    """The models that may be asked to judge a job, as far as they are known; `typed` as in `judge_of`."""
    if not asks_a_judge(job.case):
        return
    for named in graders_named(job.case):
        with suppress(NoGrader):
            yield suites_own(named, config, job.base, job.settings.get("env"))
    with suppress(ConfigError):
        if (judge := judge_of(job.judge, config, typed) or default_of(job, config)) is not None:
            yield judge
