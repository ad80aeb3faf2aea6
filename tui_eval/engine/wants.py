"""What a project's suites and configuration would do that needs trust, found out before anything runs.

Nothing is run, read outside the root or sent to find it out. Whatever asks for trust names it with the functions of
`guard.trust`, and so does this: a file that may be run has one name, whatever runs it. So every text that a suite, a
case or an agent holds is looked at, wherever it stands, rather than the keys that are known to hold code. What is
missed all the same (a name that a template makes) is refused when it is wanted, and asked then: a list that is too
short grants nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import agents
from tui_eval.agents.base import Services
from tui_eval.config.config_values import chosen_host, said_to, texts_in
from tui_eval.config.project import (
    AgentSpec,
    Config,
    ConfigError,
    DatabaseSpec,
    SuiteRule,
    database,
    database_spec,
    fill,
    masker,
    rule_for,
)
from tui_eval.engine import grader_choice, replayed
from tui_eval.engine.places.chosen_place import place_wanted
from tui_eval.engine.plan import CasesOf, Job, asks_a_database, plan, tool_databases
from tui_eval.engine.request import RunRequest
from tui_eval.engine.wanted_by_texts import CODE, MOST_SEEN, WantedByTexts, names_something
from tui_eval.formats import format_of, reading
from tui_eval.formats.format import COLUMNS, Format
from tui_eval.guard.masker import Masker
from tui_eval.guard.trust import (
    NeedsTrust,
    ReadsVariables,
    Trust,
    agent_code,
    from_root,
    is_variable,
    script,
)
from tui_eval.model import OWN_JUDGES, Assertion, Case, Suite
from tui_eval.store.run_folders import Store
from tui_eval.suites.identity import canonical

_HELD_AGAINST_TOOLS = ("openai-tools-call", "openai-function-call")
"""Assertions on the calls of an agent: their types end so."""


def wants(suites: Iterable[Suite], config: Config, trust: Trust) -> list[str]:
    """What would be required when these suites are run as they are, and is neither granted nor agreed to yet, in the
    order of the files: of agents, judges and databases those that they use. Blocking: call it in a thread; never
    raises."""
    if trust.granted:
        return []
    suites = _with_variables(list(suites), config, trust)
    found = _Wants(config, trust)
    found.place()
    for section in config.nao.withheld.values() if config.nao is not None else ():
        found.withheld(section)
    for suite in suites:
        found.suite(suite)
    return [what for what in found.all if not trust.covers(what)]


def wants_of_request(request: RunRequest, config: Config, trust: Trust) -> list[str]:
    """As `wants`, for what a request names beside suites: agents that may be none of theirs, chosen for it or
    asked before, a cluster that only the record of a run names, and the judge that names failures."""
    if trust.granted:
        return []
    found = _Wants(config, trust)
    if request.on_recorded and (cluster := place_wanted(request.on or "here")) is not None:
        found.add(cluster)
    if request.assess and config.judge is not None:
        found.agent(config.judge)
    asked = [cell.agent for cell in request.cells or () if cell.agent and cell.agent not in request.agents]
    for find, names in ((agents.from_argument, request.agents), (agents.from_file, asked)):
        for name in dict.fromkeys(names):
            with suppress(ConfigError):  # that there is none is said when it is run
                found.agent(find(name, config))
    return [what for what in found.all if not trust.covers(what)]


def wants_of_jobs(
    jobs: Sequence[Job],
    config: Config,
    trust: Trust,
    *,
    assess: bool = False,
    typed_judge: str | None = None,
) -> list[str]:
    """As `wants`, for what is about to be run; of recorded answers that are judged again, without what only asking
    for them needs. `assess`: the judge names the failures at its end; `typed_judge` is trusted by being typed."""
    if trust.granted:
        return []
    jobs = _jobs_with_variables(jobs, config, trust)
    found = _Wants(config, trust)
    for job in {job.suite: job for job in jobs if job.judges_only}.values():
        base = (config.root / job.suite).parent
        for what in _hooks(format_of(job.format), job.settings, base, config.root):
            found.all.pop(what, None)  # reading the suite met it
    suites: dict[str, list[Job]] = {}
    seen, kinds = _Seen(), set[tuple[Any, ...]]()
    for job in jobs:
        judges_only = job.judges_only
        if judges_only:
            job = msgspec.structs.replace(job, held=_judged(job.case))
        suites.setdefault(job.suite, []).append(job)
        kind = seen.kind(job.case), id(job.spec), job.model, job.database, job.judge, judges_only
        if kind not in kinds:
            kinds.add(kind)
            found.job(job, typed_judge)
        if not judges_only:
            found.said(job, (job.case,))
    if assess and config.judge is not None:
        found.agent(config.judge)
    for path, own in suites.items():
        last = own[-1]
        settings = _without_hooks(last.settings, last.format) if last.judges_only else last.settings
        found.suite(Suite(path, "", cases=CasesOf(own), settings=settings), providers=False)
    return [what for what in found.all if not trust.covers(what)]


def wants_of_all(config: Config) -> list[str]:
    """What the place, and every agent, judge and database, of the configuration would require, whoever uses them."""
    found = _Wants(config, Trust())
    found.place()
    for spec in (*config.agents.values(), *([config.judge] if config.judge else [])):
        found.agent(spec)
        found.networks(spec, direct="python" in spec.options)
    for spec in config.databases.values():
        found.database(spec)
    return list(found.all)


def wants_of_judging(jobs: Sequence[Job], config: Config, trust: Trust) -> list[str]:
    """As `wants`, for recorded answers that are judged again: their assertions' code, and the databases of these. No
    agent is asked."""
    if trust.granted:
        return []
    found = _Wants(config, Trust())
    for job in jobs:
        found.judging(job.case)
    return [what for what in found.all if not trust.covers(what)]


def _judged(case: Case) -> Case:
    """A case as its judging reads it: who was asked is not asked again, but calls are held against the tools that its
    provider names."""
    entry = case.provider if isinstance(case.provider, dict) else {}
    config = entry.get("config")
    kept = {}
    if isinstance(config, dict) and any(one.type.endswith(_HELD_AGAINST_TOOLS) for one in case.asserted):
        kept = {key: config[key] for key in ("tools", "functions") if key in config}
    return msgspec.structs.replace(case, provider={"config": kept} if kept else None)


def _hooks(form: Format, settings: Mapping[str, Any], base: Path, root: Path) -> list[str]:
    """What the hooks of a suite in the folder `base` want."""
    found = (re.fullmatch(CODE, hook.removeprefix("file://")) for hook in form.hook_files(settings))
    return [script(base / match["path"], root) for match in found if match is not None]


def _without_hooks(settings: dict[str, Any], name: str) -> dict[str, Any]:
    """A suite's settings without its hooks, which judging again does not call, and the columns that are kept for
    tests which they add; `name` is its format's."""
    calls = format_of(name).hook_files
    own = ((key, value) for key, value in settings.items() if key != COLUMNS)
    return {key: value for key, value in own if not any(True for _ in calls({key: value}))}


class _Seen:
    """What of a suite has been looked at already: its cases share most of what they hold."""

    def __init__(self) -> None:
        self._held: dict[int, Any] = {}
        """By identity, and held, so that no other one is taken for it."""
        self._providers: dict[int, tuple[Any, str]] = {}
        self._asked: dict[tuple[str, ...], tuple[bool, bool]] = {}

    def first(self, value: Any) -> bool:
        """Whether this very object was not here before."""
        if id(value) in self._held:
            return False
        if len(self._held) > MOST_SEEN:
            self._held.clear()
        self._held[id(value)] = value
        return True

    def kind(self, case: Case) -> tuple[Any, ...]:
        """Equal for cases that want the same of agents, judges and databases."""
        known = self._providers.get(id(case.provider))
        if known is None:
            if len(self._providers) > MOST_SEEN:
                self._providers.clear()
            known = self._providers[id(case.provider)] = case.provider, _json(case.provider)
        types = (case.format, *[one.type for one in case.asserted])
        asks = self._asked.get(types)
        if asks is None:
            asks = self._asked[types] = asks_a_database(case), grader_choice.asks_a_judge(case)
        return case.agent, known[1], case.format, _directly(case), case.database, asks


class _Wants:
    def __init__(self, config: Config, trust: Trust) -> None:
        self.config = config
        self.root = config.root
        self.all: dict[str, None] = dict.fromkeys(trust.wanted)
        self._rules: set[str] = set()
        self._texts = WantedByTexts(self.root, self.all)
        self._env_file: frozenset[str] = frozenset()
        self._agents: set[bytes] = set()
        self._before: AgentSpec | None = None
        self._hosts: dict[int, str] = {}
        self._masker: Masker | None = None
        self._databases: set[str | None] = set()

    def add(self, what: str) -> None:
        self.all[what] = None

    def place(self) -> None:
        """Where attempts run, by the configuration."""
        if (wanted := place_wanted(self.config.run.on)) is not None:
            self.add(wanted)

    def job(self, job: Job, typed_judge: str | None = None) -> None:
        """Who is asked and who judges, and the databases behind both; what the case itself holds is the suite's."""
        case, spec = job.case, None if job.judges_only else job.spec
        self.withheld(format_of(case.format).withheld(job.model if spec else None, self.config))
        if spec is not None:
            if spec is not self._before:  # mostly one after the other has the same
                self._before = spec
                self.agent(spec)
            if _directly(case):
                self.networks(spec, direct=True)
            for name in tool_databases(spec):
                self.used_database(name)
        if asks_a_database(case):
            self.used_database(case.database or job.database)
        simulated = grader_choice.speaks_for_the_user(spec)
        if simulated or grader_choice.asks_a_judge(case):
            with suppress(ConfigError):  # that there is no such judge is said when it is run
                judge = grader_choice.judge_of(job.judge, self.config, typed_judge)
                for one in (judge, self.config.judge if simulated else None):
                    if one is not None:
                        self.agent(one)

    def said(self, job: Job, cases: Iterable[Case]) -> None:
        """A secret in what these cases ask, where that goes to a host that a file chose."""
        spec = job.spec
        if spec is None or spec.typed:
            return
        host = self._hosts.get(id(spec))
        if host is None:
            host = ""
            with suppress(ConfigError, NeedsTrust):
                host = chosen_host(fill(spec, ReadsVariables()))
            self._hosts[id(spec)] = host
        what = said_to(job.suite, host)
        if not host or what in self.all:
            return
        from tui_eval.agents.promptfoo.promptfoo_env import read_secret

        hidden = self._masker = self._masker or masker(self.config)
        base = str((self.root / job.suite).parent)
        for case in cases:
            asked = ([(turn.text, turn.sly_data) for turn in case.turns], case.vars)
            if read_secret(asked, base) or any(hidden.text(one) != one for one in texts_in(asked)):
                self.add(what)
                return

    def used_database(self, name: str | None) -> None:
        """A database by the name that a case or a tool gives; None: the only one."""
        if name in self._databases:
            return
        self._databases.add(name)
        found = database_spec(self.config, name)
        if found is not None:
            self.database(found)
        elif self.config.nao is not None:  # it may be the name that is not known
            self.withheld(self.config.nao.withheld.get("databases", ()))

    def withheld(self, whats: Iterable[str]) -> None:
        """What has to be trusted before nao_config.yaml can be read."""
        for what in whats:
            self.add(what)

    def agent(self, spec: AgentSpec) -> None:
        """An agent's own code, its tools', the variables it reads, the files it reads and where they go; of one that
        asks another, the other's too."""
        key = canonical(msgspec.to_builtins(spec, enc_hook=str))
        if spec.typed or key in self._agents:
            return
        self._agents.add(key)
        if isinstance(target := spec.options.get("target"), Mapping):
            with suppress(msgspec.ValidationError):
                self.agent(msgspec.convert(target, AgentSpec))
        self._texts.in_turn(lambda trust: fill(spec, trust))
        self._texts.in_turn(lambda trust: self._made(spec, trust))
        if spec.type == "replay":
            self._texts.in_turn(lambda trust: self._replayed(spec, trust))
        self.networks(spec)
        options, base = spec.options, Path(spec.base or self.root)
        given = options.get("function") if spec.type == "python" else options.get("command")
        if spec.type == "python" and isinstance(given, str):
            self.add(agent_code(given, spec.name, spec.base, self.root))
        elif spec.type == "command" and "${" not in (
            folder := str(options.get("cwd") or "")
        ):  # else `_made` says it
            words = given
            if isinstance(given, str):
                with suppress(ValueError):
                    words = shlex.split(given)
            if isinstance(words, list) and all(isinstance(word, str) for word in words):
                with suppress(ValueError):  # no path
                    self.add(agent_code(shlex.join(words), spec.name, str(base / folder), self.root))
        tools = options.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            named = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "python" else None
            if isinstance(named, str):
                file, _, function = named.rpartition(":")
                file = file.removeprefix("file://")
                self.add(f"run {from_root(base / file, self.root)}:{function} (a tool)")
                self._texts.outside(file, base)
        self._texts.value(options, base)

    def _made(self, spec: AgentSpec, trust: Trust) -> None:
        """An agent as it would be made for a run: what its making asks for. Nothing is sent before it is opened."""
        services = Services(root=self.root, trust=trust)
        agents.create(fill(spec, trust), services)

    def _replayed(self, spec: AgentSpec, trust: Trust) -> None:
        run = fill(spec, trust).options.get("run")
        replayed.run_of(Store(self.root), str(run or ""), spec, trust)

    def networks(self, spec: AgentSpec, direct: bool = False) -> None:
        """The Python that runs agent networks as a library, and the files that it is given: all at once, whatever
        else the agent lacks. `direct`: a case asks for it, which needs no Python named, and which alone an agent with a
        `url` is for."""
        if spec.type != "neuro-san" or spec.typed:
            return
        from tui_eval.agents.neuro_san.neuro_san_agent import networks_code
        from tui_eval.agents.neuro_san.neuro_san_library import interpreter
        from tui_eval.agents.neuro_san.neuro_san_worker import several

        with suppress(ConfigError):  # a variable that is not set: what can be known stands there all the same
            spec = fill(spec, Trust(granted=True))
        options, base = spec.options, Path(spec.base or self.root)
        given = options.get("python")
        if not direct and (not given or options.get("url")):
            return
        if (python := interpreter(given if isinstance(given, str) else None, base)) is None:
            return
        self.add(networks_code(python, spec.name))
        for key in ("manifest", "tool_path"):
            if isinstance(named := options.get(key), str):
                for one in several(named):
                    self._texts.outside(one, base)

    def database(self, spec: DatabaseSpec) -> None:
        """The variables, files and hosts of a database."""
        self._texts.in_turn(lambda trust: database(self.config, spec.name, trust))

    def suite(self, suite: Suite, providers: bool = True) -> None:
        """The code, files, variables and hosts of a suite's cases and hooks, and its agents."""
        base = (self.root / suite.path).parent
        env = suite.settings.get("env")
        self._texts.own_env = frozenset(env) if isinstance(env, dict) else frozenset()
        self._env_file = frozenset(suite.settings.get("env_file") or ())
        self._texts.value(suite.settings, base)
        first = next(iter(suite.cases), None)
        form = format_of(first.format if first is not None else suite.format)
        for what in _hooks(form, suite.settings, base, self.root):
            self.add(what)
        seen = _Seen()
        kinds: dict[tuple[Any, ...], Case] = {}
        graders: dict[str, Any] = {}
        for case in suite.cases:
            self._case(case, suite, base, seen, graders)
            if providers:
                kinds.setdefault(seen.kind(case), case)
        for grader in graders.values():
            self._grader(grader, base, env)
        if providers:
            self._providers(suite, list(kinds.values()))

    def _case(self, case: Case, suite: Suite, base: Path, seen: _Seen, graders: dict[str, Any]) -> None:
        if case.vars:
            self._texts.value(case.vars, base)
        for value in (case.options, case.beside, case.metadata, case.provider):
            if value and seen.first(value):
                self._texts.value(value, base)
        for turn in case.turns:
            if turn.text and names_something(turn.text):
                self._texts.text(turn.text, base, code=False)
        if grader := format_of(case.format).case_grader(case):
            graders[_json(grader)] = grader
        for one in case.asserted:
            first = seen.first(one)
            if first and one.provider:
                graders[_json(one.provider)] = one.provider
            self._assertion(one, case, base, first)
        for text in (*case.vars.values(), *[turn.text for turn in case.turns]):
            if text and (type(text) is not str or "{" in text):
                self._texts.built(text, case, base)
        self._traces(case, suite)

    def judging(self, case: Case) -> None:
        """What judging an answer of this case wants."""
        base = (self.root / case.suite).parent
        self.withheld(format_of(case.format).withheld(None, self.config))
        for one in case.asserted:
            self._assertion(one, case, base, first=True)
        self._texts.value(case.options, base)
        self._texts.value(_judged(case).provider, base)
        if asks_a_database(case):
            self._texts.in_turn(lambda trust: database(self.config, case.database, trust))

    def _traces(self, case: Case, suite: Suite) -> None:
        if not isinstance(suite.settings.get("tracing"), dict):
            return
        from tui_eval.engine.otlp.tracing import settings_of

        settings = settings_of(case, suite.settings)
        if settings is not None and settings.reached_from_outside:
            self.add(settings.reached_from_outside)

    def _assertion(self, one: Assertion, case: Case, base: Path, first: bool) -> None:
        own, self._texts.own_env = (
            self._texts.own_env,
            self._env_file,
        )  # it is not judged by the suite's own `env`
        try:
            self._asserted(one, case, base, first)
        finally:
            self._texts.own_env = own

    def _asserted(self, one: Assertion, case: Case, base: Path, first: bool) -> None:
        kind = one.type.removeprefix("not-")
        value = one.value
        if isinstance(value, str) and kind in OWN_JUDGES:
            if "{{" in value or "{%" in value:
                value = self._texts.rendered(value, case, base)
            elif not first:
                return
            if not value.startswith("file://"):
                needed = format_of(case.format).wanted_by(kind, value, case, base, self.root)
                if needed is not None:
                    self.add(needed)
        for text in (one.value, one.transform):
            if text and (type(text) is not str or "{" in text):
                self._texts.built(text, case, base)
        if not first:
            return
        self._texts.value(one.value if one.value is not msgspec.UNSET else None, base)
        if one.transform or one.config or one.extra:
            self._texts.value({"transform": one.transform, "config": one.config, "extra": one.extra}, base)
        if one.metric and "{" in one.metric:
            self._texts.value(one.metric, base)

    def _grader(self, given: Any, base: Path, env: Any) -> None:
        """The agent, embedding model or classifier that a suite judges with."""
        if isinstance(given, dict) and not given.get("id"):
            for part in given.values():  # `{text: …, embedding: …}`
                if isinstance(part, str) or (isinstance(part, dict) and part.get("id")):
                    self._grader(part, base, env)
            return
        if isinstance(given, str) and given in self.config.agents:
            self.agent(self.config.agents[given])
            return
        for find in (agents.for_provider, agents.for_embeddings, agents.for_scores):
            with suppress(Exception):  # what is wrong with it is said when it is asked
                entry = given if isinstance(given, dict) else {"id": given}
                self.agent(find(agents.with_env(entry, env), self.config, base))

    def _providers(self, suite: Suite, cases: list[Case]) -> None:
        rule: SuiteRule | None = rule_for(self.config, suite.path)
        name = f"{suite.path} {rule}"
        if name in self._rules or not cases:
            return
        self._rules.add(name)
        try:
            jobs = plan(
                cases, self.config, RunRequest(), lambda *_: {}, {suite.path: suite.settings}, chosen=True
            )
        except Exception:  # what is wrong with it is said when it is run
            return
        for job in jobs:
            self.job(job)
            self.said(job, suite.cases)


def _directly(case: Case) -> bool:
    return format_of(case.format).connection(case) == "direct"


def _json(value: Any) -> str:
    return canonical(value).decode("utf-8", "surrogatepass") if value is not None else ""


# -- An agent's address may be a template of a variable. What is asked of the person is what the run asks for
# then, so that the host is named, and so that agreeing to all of it is agreeing to what is wanted. Only
# variables are read for it.


def _with_variables(suites: Sequence[Suite], config: Config, trust: Trust) -> Sequence[Suite]:
    """The suites as they read once the variables of the environment are agreed to that their templates ask for; those
    that only they ask for are `trust.wanted` then, too."""
    if not any(map(is_variable, trust.wanted)):
        return suites
    reads = ReadsVariables()
    again = [reading.load(config.root / one.path, config, reads) if one.path else one for one in suites]
    trust.wanted += [what for what in filter(is_variable, reads.wanted) if what not in trust.wanted]
    # Tests that agreed code makes are not made here.
    return [now if len(now.cases) >= len(one.cases) else one for now, one in zip(again, suites, strict=True)]


def _jobs_with_variables(jobs: Sequence[Job], config: Config, trust: Trust) -> Sequence[Job]:
    """As `_with_variables`; those whose agent the suite itself names are asked of the one whom it names then."""
    if not any(map(is_variable, trust.wanted)):
        return jobs
    suites = [Suite(path, "") for path in dict.fromkeys(job.suite for job in jobs)]
    read = _with_variables(suites, config, trust)
    settings = {suite.path: suite.settings for suite in read}
    cases = {_place(case): case for suite in read for case in suite.cases}
    made: list[Job] = []
    for job in jobs:
        case = cases.get(_place(job.case))
        if case is None:
            made.append(job)
            continue
        now = msgspec.structs.replace(job, held=case, settings=settings[job.suite])
        if job.spec is None or not (job.spec.typed or job.spec.name in config.agents):
            with suppress(Exception):  # what is wrong with it is said when it is run
                own = plan([case], config, RunRequest(), dict, settings, chosen=True)[0]
                now.spec, now.model = own.spec, own.model
        made.append(now)
    return made


def _place(case: Case) -> tuple[Any, ...]:
    """Where a case stands in its suite: its id may be made of what variables say."""
    return case.suite, case.line, case.order
