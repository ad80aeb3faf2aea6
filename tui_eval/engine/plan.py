"""From suites and a request to jobs: each case with one agent, how often, and how many must pass."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import msgspec

from tui_eval import agents
from tui_eval.config.project import (
    AgentSpec,
    Config,
    ConfigError,
    DatabaseSpec,
    SuiteRule,
    model_of,
    refused_agent,
    rule_for,
)
from tui_eval.engine.request import RequestCell, RunRequest
from tui_eval.engine.selection import NOTHING_FAILED, NothingLeft, choose, failed_cells
from tui_eval.formats import format_of
from tui_eval.formats.format import UNNAMED_AGENT
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import Trust
from tui_eval.model import Attempt, Case, Compat
from tui_eval.model_ids import column_model, not_a_model
from tui_eval.store import judged_under
from tui_eval.store.case_state import Column, runs_again
from tui_eval.store.column_names import in_columns
from tui_eval.store.planned_cases import case_of, held
from tui_eval.store.schema import CaseHistory
from tui_eval.store.summary import required_for
from tui_eval.suites.identity import canonical, digest

HELD_AS_THEY_ARE = 2_000
"""Jobs whose cases a run holds as they are; those beyond are packed until their turn comes."""


class Job(msgspec.Struct, gc=False):
    """One case with one agent. The case is `held` packed where there are many, and made when it is asked for;
    `suite` and `format` are the case's. `spec` is None where no agent could be found; `problem` says why.

    `base` is the suite's folder, `settings` what its file says about all of it, `timeout` seconds for one
    attempt, `deadline_all` seconds for all its attempts together (neuro-san), `deadline_suite` seconds
    for everything of its suite. Of the jobs of a `group` at most `at_once` run together, in order where
    that is one, with `pause` seconds between them. The turns of `recorded` before `from_turn` are not sent
    again (None: none is, it is judged again).
    """

    held: Case | bytes
    agent: str
    model: str | None
    spec: AgentSpec | None
    attempts: int
    required: int
    compat: Compat
    base: Path
    timeout: float
    comparison: dict[str, Any]
    database: str | None
    judge: str | None
    problem: str = ""
    first_attempt: int = 1
    deadline_all: float | None = None
    settings: dict[str, Any] = {}
    group: str | None = None
    at_once: int = 0
    pause: float = 0.0
    deadline_suite: float | None = None
    recorded: Attempt | None = None
    asked_case: Case | None = None
    """The case as it was when `recorded` was answered, without secrets; None where nobody knows."""
    from_turn: int | None = None
    suite: str = ""
    format: str = ""
    of_attempts: int = 0
    """How many attempts its case has where each of them is a job by itself (judged again, gone on with); 0:
    `attempts`."""

    def __post_init__(self) -> None:
        if isinstance(self.held, Case):
            self.suite, self.format = self.held.suite, self.held.format

    @property
    def case(self) -> Case:
        """The case; of one that is held packed a new object each time."""
        kept = self.held
        return kept if isinstance(kept, Case) else case_of(kept)

    def opened(self) -> Job:
        """The job with its case made, for those who ask it more than once."""
        return msgspec.structs.replace(self, held=self.case) if isinstance(self.held, bytes) else self

    @property
    def judges_only(self) -> bool:
        """Whether a recorded answer is judged again, and nothing is sent."""
        return self.recorded is not None and self.from_turn is None


def databases_of(job: Job) -> set[str | None]:
    """The databases, by name (None: the only one), that are asked to judge a case or that its agent is given."""
    found = set(tool_databases(job.spec)) if job.spec is not None else set()
    return found | {job.database} if asks_a_database(job.case) else found


def asks_a_database(case: Case) -> bool:
    """Whether a query is run to judge it."""
    return "sql" in {one.type for one in case.asserted}


def tool_databases(spec: AgentSpec) -> Iterator[str | None]:
    """The databases that an agent's tools query, by name (None: the only one)."""
    tools = spec.options.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and tool.get("type") == "sql":
            name = tool.get("database")
            yield name if isinstance(name, str) else None


class CasesOf(Sequence[Case]):
    """The cases of jobs, each made when its turn comes where it is held packed."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    def __len__(self) -> int:
        return len(self._jobs)

    @overload
    def __getitem__(self, index: int) -> Case: ...

    @overload
    def __getitem__(self, index: slice) -> CasesOf: ...

    def __getitem__(self, index: int | slice) -> Case | CasesOf:
        found = self._jobs[index]
        return found.case if isinstance(found, Job) else CasesOf(found)

    def __iter__(self) -> Iterator[Case]:
        return (job.case for job in self._jobs)


def plan(
    cases: Sequence[Case],
    config: Config,
    request: RunRequest,
    latest: Callable[[], dict[str, list[CaseHistory]]],
    settings: Mapping[str, dict[str, Any]] | None = None,
    *,
    chosen: bool = False,
    trust: Trust | None = None,
) -> list[Job]:
    """The jobs of a request, in the order of suite and case, columns of one case together.

    `settings` are those of the suites by path. What `--failed` comes to is kept in the request's `cells`.
    With `chosen` the request's filters have been applied. `trust` is what the models that agents name may be
    filled in by.

    Raises:
        SelectionError: a selection matches nothing.
        NothingLeft: `--failed`, and nothing failed.
        ConfigError: `--agent` or `--model` cannot be read.
    """
    selected = cases if chosen else choose(cases, request, latest)
    typed = [
        agents.from_argument(text, config) for text in dict.fromkeys(request.agents)
    ]  # a column each, asked once
    for model in request.models:
        if why := not_a_model(model):
            raise ConfigError(f"-m {model}: {why}")
    history = latest() if request.failed_only else None
    asked = request.cells
    if history is not None and asked is None and not request.agents and not request.models:
        # where it is not named of whom: of those with whom they did not pass
        asked = request.cells = failed_cells(selected, history)
    cells: dict[str, list[RequestCell]] | None = None if asked is None else {}
    for cell in asked or ():
        assert cells is not None
        cells.setdefault(cell.case_id, []).append(cell)
    found_cases = without_provider_twins(selected) if typed and cells is None else selected
    jobs: list[Job] = []
    resolved: dict[Any, tuple[AgentSpec | None, str]] = {}
    for case in found_cases:
        own_settings = (settings or {}).get(case.suite, {})

        def jobs_of(
            specs: list[tuple[AgentSpec | None, str]],
            models: Sequence[str | None] = (),
            case: Case = case,
            own_settings: dict[str, Any] = own_settings,
        ) -> list[Job]:
            return [
                _job(case, spec, model, problem, config, request, own_settings)
                for spec, problem in specs
                for model in _column_models(models or _models(case, spec, config, trust or Trust()), spec)
            ]

        own = [agent_of(case, config, resolved, own_settings.get("env"))]
        if cells is not None:
            found = _of_cells(cells.get(case.case_id, []), jobs_of(own), typed, config, resolved, jobs_of)
        else:
            found = jobs_of([(spec, "") for spec in typed] or own, request.models)
            found = [*map(_in_named_column, found)] if typed else found
            if history is not None and not format_of(case.format).compares_outputs(case):
                past = history.get(case.case_id, ())
                found = [
                    job for job in found if not past or runs_again(past, Column(job.agent, job.model or ""))
                ]
        if len(jobs) >= HELD_AS_THEY_ARE:
            packed = held(case)
            for job in found:
                job.held = packed
        jobs += found
    if history is not None and selected and not jobs:
        raise NothingLeft(NOTHING_FAILED)
    return jobs


def _of_cells(
    cells: Sequence[RequestCell],
    own: list[Job],
    typed: Sequence[AgentSpec],
    config: Config,
    resolved: dict[Any, tuple[AgentSpec | None, str]],
    jobs_of: Callable[[list[tuple[AgentSpec | None, str]], Sequence[str | None]], list[Job]],
) -> list[Job]:
    """A case's jobs in these columns: `own` are those it has by itself, which stand for a column that nobody can
    ask any more."""
    found: dict[tuple[str, str], Job] = {}
    for cell in cells:
        jobs = [job for job in own if same_column(job, cell.agent or "", cell.model)]
        if not jobs and not cell.own:
            spec = next((spec for spec in typed if spec.name == cell.agent), None) or next(
                (job.spec for job in own if job.spec is not None and job.agent == cell.agent), None
            )
            spec = spec or named_agent(cell.agent, config, resolved)
            if spec is not None:
                jobs = jobs_of([(spec, "")], [cell.model] if cell.model else ())
            elif cell.agent:
                # Who else was asked in its place would hide that this column is still red.
                gone = jobs_of([(None, _gone(cell.agent))], [cell.model])
                jobs = [msgspec.structs.replace(job, agent=cell.agent) for job in gone]
        jobs = jobs if cell.own else [*map(_in_named_column, jobs)]
        found.update(((job.agent, job.model or ""), job) for job in jobs or own)
    return list(found.values()) or own


def _in_named_column(job: Job) -> Job:
    """The job in the column of who was named to be asked, which may be the very provider that its test has of its own
    (promptfoo): then, too, it stands in that column as the others do, and not in the one that this replaces."""
    case = job.case
    if not case.column:
        return job
    return msgspec.structs.replace(job, held=msgspec.structs.replace(case, agent=case.column, column=""))


def _column_models(models: Sequence[str | None], spec: AgentSpec | None) -> list[str | None]:
    """The models as their columns name them, each once: `-m openai:M -m M` is one of an OpenAI agent's."""
    return list(dict.fromkeys(column_model(model, spec.type if spec else "") for model in models))


def same_column(job: Job, agent: str, model: str | None) -> bool:
    """Whether a job is of this column; a run of an earlier version may have recorded the model with its provider."""
    recorded = column_model(model, job.spec.type if job.spec else "")
    if (
        job.spec is not None and recorded == job.spec.model
    ):  # a variable that an earlier version did not fill in
        recorded = job.model
    return (job.agent, job.model or "") == (agent, recorded or "")


def _gone(agent: str) -> str:
    return (
        f"no agent {agent!r} any more, of whom this case was asked: write it into tui_eval.yaml again, name whom to "
        f"ask (--agent), or delete the runs that asked it"
    )


def named_agent(
    agent: str, config: Config, resolved: dict[Any, tuple[AgentSpec | None, str]]
) -> AgentSpec | None:
    """An agent of a run of before by its name, which nobody has typed now; None: there is none any more."""
    key = ("named", agent)
    if key not in resolved:
        try:
            resolved[key] = (agents.from_file(agent, config), "")
        except ConfigError as error:
            resolved[key] = (None, str(error))
    return resolved[key][0]


def refused(case: Case) -> str:
    """Why nothing of the case is sent, as the format's own tool sends nothing."""
    return next((str(problem) for problem in case.problems if problem.tool == "refuses"), "")


def _job(
    case: Case,
    spec: AgentSpec | None,
    model: str | None,
    problem: str,
    config: Config,
    request: RunRequest,
    settings: dict[str, Any],
) -> Job:
    rule = rule_for(config, case.suite)
    attempts, required = attempts_of(case, settings, rule.attempts if rule else None, config, request)
    limit = request.timeout or (spec.timeout if spec else None)
    compat: Compat = request.compat or (rule.compat if rule and rule.compat else "documented")
    form = format_of(case.format)
    deadline_all = form.time_for_all(case, compat == "reference") if form.timeout_covers_all else None
    if not form.timeout_covers_all:
        limit = limit or case.timeout
    limit = limit or (rule.timeout if rule else None)
    database = case.database or (rule.database if rule else None) or _only(config.databases)
    if spec is not None:
        spec = form.prepared(spec, case, database, config)
    return Job(
        held=case,
        agent=spec.name if spec else (case.agent or "?"),
        model=model,
        spec=spec,
        attempts=attempts,
        required=required,
        compat=compat,
        base=_folder_of(config.root, case.suite),
        timeout=limit or config.run.timeout,
        comparison=_comparison(case, rule, config, compat),
        database=database,
        judge=request.judge or _grader(settings, config) or (rule.judge if rule else None),
        settings=settings,
        problem=problem or (rule.wrong if rule else "") or refused(case),
        first_attempt=request.first_attempt,
        deadline_all=deadline_all,
    )


@lru_cache(64)
def _folder_of(root: Path, suite: str) -> Path:
    """One for all cases of a suite."""
    return (root / suite).parent


def _grader(settings: Mapping[str, Any], config: Config) -> str | None:
    """A suite's `commandLineOptions.grader` (promptfoo's), where it is an agent that we know or can speak to."""
    typed = settings.get("commandLineOptions")
    name = typed.get("grader") if isinstance(typed, dict) else None
    if not isinstance(name, str):
        return None
    try:
        agents.from_file(name, config)
    except ConfigError:
        return None
    return name


_NO_COMPARISON: dict[str, Any] = {}
"""One for all cases that say nothing of it, never changed."""


class AskedBySuite:
    """Of whom, and how often, the cases of each suite are asked, as they are added: what tui_eval.yaml
    decides on beside what the cases say. What is typed is not in it (`shard_runs.asked_of`)."""

    def __init__(
        self, config: Config, request: RunRequest, settings: Mapping[str, dict[str, Any]], trust: Trust
    ) -> None:
        self._config, self._request, self._settings, self._trust = config, request, settings, trust
        self._resolved: dict[Any, tuple[AgentSpec | None, str]] = {}
        self._seen: set[tuple[Any, ...]] = set()
        self._found: dict[str, tuple[set[str], set[str]]] = {}
        self._rules: dict[str, str] = {}

    def add(self, case: Case) -> None:
        """Count a case in; of the many that are asked alike only the first is looked at."""
        own = self._settings.get(case.suite, {})
        says = format_of(case.format).says_attempts(case, own)
        key = case.suite, case.agent, case.model, case.attempts, case.required, says
        if key in self._seen:
            return
        self._seen.add(key)
        whom, times = self._found.setdefault(case.suite, (set(), set()))
        rule, given = rule_for(self._config, case.suite), self._request
        if case.suite not in self._rules:
            judged_by = (
                format_of(case.format).comparison_defaults(self._config),
                *((rule.comparison, rule.compat, rule.database, rule.judge) if rule else ()),
            )
            self._rules[case.suite] = digest(judged_by)
        attempts, required = attempts_of(case, own, rule.attempts if rule else None, self._config, given)
        times.add(f"{attempts}" if attempts == required else f"{attempts} ({required} must pass)")
        if given.agents:
            return
        env = own.get("env")
        spec, _ = agent_of(case, self._config, self._resolved, env)
        name = spec.name if spec else case.agent or "?"
        models = [None] if given.models else _models(case, spec, self._config, self._trust)
        whom.update(" ".join(filter(None, (name, model))) for model in _column_models(models or [None], spec))

    def kept(self) -> dict[str, list[list[str]]]:
        """By suite the agents with their models, the numbers of attempts, and a hash of how answers are
        judged; what most suites have once."""
        return judged_under.most_once(
            {
                suite: [sorted(whom), sorted(times), [self._rules[suite]]]
                for suite, (whom, times) in self._found.items()
            }
        )


def _comparison(case: Case, rule: SuiteRule | None, config: Config, compat: Compat) -> dict[str, Any]:
    """Settings in force: the case's, else the rule's, else those of nao_config.yaml.

    `nao init` writes tolerances that nobody chose, so they loosen no integers, and its `decimals`
    count under `compat: reference` only.
    """
    own = {**(rule.comparison if rule else {}), **(case.comparison or {})}
    inherited = format_of(case.format).comparison_defaults(config)
    if compat == "documented":
        inherited.pop("decimals", None)
        if inherited.keys() & {"rtol", "atol"}:
            inherited["exact_integers"] = not own.keys() & {"rtol", "atol"}
    return {**inherited, **own} or _NO_COMPARISON


def attempts_of(
    case: Case,
    settings: Mapping[str, Any],
    rule_attempts: int | None,
    config: Config,
    request: RunRequest,
) -> tuple[int, int]:
    """How often a case is executed, and how often it must pass: by the command line, else the case's own rule, or that
    of its suite (`settings`), else `suites:`, what nao asks for and `run:`."""
    if request.attempts is not None:
        attempts = max(1, request.attempts)
        threshold = 1.0 if request.threshold is None else request.threshold
        return attempts, required_for(attempts, threshold)
    attempts, required = case.attempts, case.required
    own_rule = attempts != 1 or format_of(case.format).says_attempts(case, settings)
    if not own_rule:
        asked = rule_attempts or format_of(case.format).default_attempts(config)
        attempts = required = asked or config.run.attempts or 1
    if request.threshold is not None:
        required = required_for(attempts, request.threshold)
    return attempts, required


def agent_of(
    case: Case, config: Config, resolved: dict[Any, tuple[AgentSpec | None, str]], env: Any
) -> tuple[AgentSpec | None, str]:
    """The agent that the suite asks for, else that of `suites:`, else the format's default; or why
    there is none. `env` is a promptfoo suite's."""
    key = (
        case.suite,
        case.format,
        case.agent,
        repr(case.provider),
        repr(format_of(case.format).column_provider(case)),
    )
    if key not in resolved:
        try:
            resolved[key] = (_find_agent(case, config, env), "")
        except ConfigError as error:
            resolved[key] = (None, str(error))
    return resolved[key]


def _find_agent(case: Case, config: Config, env: Any) -> AgentSpec:
    rule = rule_for(config, case.suite)
    if rule and rule.wrong:
        raise ConfigError(rule.wrong)
    form = format_of(case.format)
    own = form.own_agent(case, config, env)
    if own is not None:
        return own
    if case.agent and case.agent in config.agents:
        return config.agents[case.agent]
    if case.agent and (wrong := refused_agent(config, case.agent)) is not None:  # and no other in its place
        raise ConfigError(f"agent {case.agent}: {wrong}")
    if rule and rule.agent:
        if rule.agent in config.agents:
            return config.agents[rule.agent]
        return agents.from_file(rule.agent, config)
    spec = form.default_agent(case.agent, config)
    if spec is not None:
        return spec
    name = case.agent or UNNAMED_AGENT
    if (wrong := refused_agent(config, name)) is not None:
        raise ConfigError(f"agent {name}: {wrong}")
    if (slip := close_to(name, config.agents)) is not None:
        raise ConfigError(
            f"no agent {name!r}: did you mean {slip!r}? tui_eval.yaml has: {', '.join(config.agents)}"
        )
    if config.agents:
        asked = f"no agent {name!r}" if case.agent else "the suite names no agent"
        raise ConfigError(
            f"{asked}, and tui_eval.yaml has: {', '.join(config.agents)}. Name one in the suite or under `suites:`, or "
            f"give --agent"
        )
    raise ConfigError(
        f"no agent {name!r}: write `agents: {{{name}: {{type: openai, base_url: ..., model: ...}}}}` into "
        f"tui_eval.yaml, or give --agent (openai:gpt-4.1, http://..., FILE.py:function)"
    )


_ALONE = frozenset(("python", "javascript", "ruby", "command", "promptfoo-http", "webhook", "websocket"))
"""Types of agents that promptfoo gives their own `config` alone: a person's code and endpoints."""


def spec_for(job: Job, config: Mapping[str, Any], known: Config) -> AgentSpec:
    """The spec of a job's agent; what a promptfoo prompt or test says for the provider is laid over the
    provider's own `config` (not over that of an agent of tui_eval.yaml). Scripts and endpoints
    get their own alone, as in promptfoo; scripts find the rest in `context.prompt.config`.

    Raises:
        ConfigError: with that, it is no provider any more.
    """
    assert job.spec is not None
    provider = job.case.provider
    if job.spec.type in _ALONE:
        return job.spec
    if not config or job.spec.typed or not isinstance(provider, dict) or job.spec.name in known.agents:
        return job.spec
    own = provider.get("config")
    entry = {**provider, "config": {**(own if isinstance(own, dict) else {}), **config}}
    env = job.settings.get("env")
    target = agents.with_env(format_of(job.format).column_provider(job.case), env)
    spec = agents.for_provider(agents.with_env(entry, env), known, job.base, target)
    return spec if spec.name == job.spec.name else job.spec


def _models(case: Case, spec: AgentSpec | None, config: Config, trust: Trust) -> list[str | None]:
    if spec is not None and spec.model:
        return [model_of(spec, trust)]
    return format_of(case.format).models(case, spec, config)


def without_provider_twins(cases: Iterable[Case]) -> Iterator[Case]:
    """With `--agent`, cases that differ in their provider only are one case."""
    seen: set[bytes] = set()
    for case in cases:
        if in_columns(case):
            content = [
                case.suite, case.name, case.prompt, case.vars, case.turns, case.assertions, case.metadata,
            ]  # fmt: skip
            try:
                same = msgspec.json.encode(content, enc_hook=str)
            except UnicodeEncodeError:  # half a character, as JSON can have it
                same = canonical(msgspec.to_builtins(content, enc_hook=str))
            mark = hashlib.blake2b(same, digest_size=16).digest()
            if mark in seen:
                continue
            seen.add(mark)
        yield case


def _only(databases: dict[str, DatabaseSpec]) -> str | None:
    return next(iter(databases)) if len(databases) == 1 else None
