"""What `check` says of what a run needs beside its suites: agents and their files, keys, a judge, databases."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tui_eval.agents import Agent, AgentError, Services, agent_class, create
from tui_eval.config import project as configuration
from tui_eval.config.config_schema import AGENT_OPTIONS
from tui_eval.config.project import AgentSpec, Config, ConfigError, DatabaseSpec, VariableNotSet
from tui_eval.engine import grader_choice
from tui_eval.engine.plan import Job, plan
from tui_eval.engine.replayed import run_of
from tui_eval.engine.request import RunRequest
from tui_eval.formats import format_of
from tui_eval.guard.paths import no_file, read_file
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Assertion, Case, Problem, Suite
from tui_eval.store.run_folders import Store, StoreError

_FILES = {"scripted": "script", "python": "function", "javascript": "file", "ruby": "file"}
"""The option of an agent that names its file."""
_LOADING_SECONDS = 10.0
_PYTHON_BYTES = 1 << 20
"""Of a larger Python file it is not looked whether it has a function."""
_MADE_HERE = frozenset({"openai", "anthropic", "ollama", "http", "python", "command", "echo", "scripted"})
"""Types of agents that are made of what stands in their entry and in files beside it: what they are refused
for now, each of their cases would be refused for."""


def not_ready(loaded: Sequence[Suite], config: Config, trust: Trust) -> list[Problem]:
    """What is missing for the cases to run as they are. A file that a suite or `tui_eval.yaml` names and that
    is not there is an error; what the command line or another machine may bring (an agent, a judge, a key) a
    note, once for all cases that need it."""
    cases = [case for suite in loaded for case in suite.cases]
    settings = {suite.path: suite.settings for suite in loaded}
    try:
        jobs = plan(cases, config, RunRequest(paths=[]), dict, settings) if cases else []
    except ConfigError as error:
        return [Problem(config.file.name if config.file else "", 0, "", str(error))]
    found = [
        *_agents(jobs, config, trust),
        *_judges(jobs, config, trust),
        *_unreported(jobs),
        *_names(loaded),
    ]
    if not any(one.type == "sql" for case in cases for one in case.assertions):
        found += _databases(config)  # else it is said of the queries
    return [*found, *(_scripts(loaded, config) if trust.granted else ())]


def _agents(jobs: Sequence[Job], config: Config, trust: Trust) -> Iterator[Problem]:
    why: dict[_Fault, list[Case]] = {}
    known: dict[int, _Fault | None] = {}
    made: dict[int, Agent | None] = {}
    for job in jobs:
        if job.case.provider_output not in (None, ""):
            continue  # its answer is recorded: nobody is asked
        if job.spec is None:
            refused = any(problem.tool == "refuses" for problem in job.case.problems)
            slip = close_to(job.case.agent or "", config.agents)  # else another machine may have it
            fault = None if refused else _Fault("there is no agent to ask", job.problem, slip is not None)
        else:
            if id(job.spec) not in known:
                known[id(job.spec)] = _fault(job.spec, config, trust)
            fault = known[id(job.spec)] or _misnamed(job, made, config, trust)
        if fault is not None:
            why.setdefault(fault, []).append(job.case)
    for fault, waiting in why.items():
        case = waiting[0]
        if fault.key:
            yield fault.in_configuration(config, needed_by(waiting))
            continue
        more = f" (and for {len(waiting) - 1} more)" if len(waiting) > 1 else ""
        place = (case.path, case.line, format_of(case.format).agent_key)
        yield Problem(*place, f"{fault.message}{more}", fault.cure, level=fault.level)


class _Fault(NamedTuple):
    """What an agent lacks, and what to do; `key` and `line` where that stands in tui_eval.yaml (empty: it does not, the
    suite names the agent itself)."""

    message: str
    cure: str
    is_error: bool = False
    key: str = ""
    line: int = 0

    @property
    def level(self) -> Literal["error", "note"]:
        return "error" if self.is_error else "note"

    def in_configuration(self, config: Config, needed_by: str) -> Problem:
        """Said where it is to be mended."""
        file = config.file.name if config.file else ""
        cure = "; ".join(filter(None, (self.cure, needed_by)))
        return Problem(file, self.line, self.key, self.message, cure, level=self.level)


def needed_by(waiting: Sequence[Case]) -> str:
    """The cases that wait for something of the configuration: `s/shop.yaml:2 needs it (and 3 more cases)`."""
    case, more = waiting[0], len({one.case_id for one in waiting}) - 1
    others = f" (and {more} more case{'s' * (more > 1)})" if more else ""
    return f"{case.path}:{case.line} needs it{others}"


def _fault(spec: AgentSpec, config: Config, trust: Trust) -> _Fault | None:
    """What an agent lacks."""
    entry = _entry_of(spec, config)

    def fault(message: str, cure: str, key: str, is_error: bool = False) -> _Fault:
        if entry:
            return _Fault(message, cure, is_error, f"{entry}.{key}" if key else entry, spec.line)
        return _Fault(f"agent {spec.name}: {message}", cure, is_error)

    option = _FILES.get(spec.type)
    named = spec.options.get(option) if option else None
    if isinstance(named, str) and "${" not in named:
        file = named.rpartition(":")[0] if spec.type == "python" and ":" in named else named
        file = file.removeprefix("file://")
        path = Path(spec.base or config.root) / file
        if file and (os.sep in file or "." in file) and not os.path.isfile(path):
            return fault(no_file(path, file), "mend its path", option or "", True)
        if spec.type == "python" and (lacks := _no_function(path, named, config, trust)):
            return fault(lacks, "mend its name", option or "", True)
    has_tools = "tools" in AGENT_OPTIONS.get(
        spec.type, {}
    )  # of another package's agent they are its own business
    for index, tool in enumerate(spec.options.get("tools") or [] if has_tools else []):
        if said := _tool_fault(tool, spec, config, trust):
            key, message, cure = said
            return fault(message, cure, f"tools.{index}.{key}", True)
    folder = spec.options.get("cwd") if spec.type == "command" else None
    if isinstance(folder, str) and "${" not in folder:
        place = Path(spec.base or config.root) / folder
        if not os.path.isdir(place):
            return fault(f"there is no folder {folder}", "mend its path", "cwd", True)
    if entry and spec.type == "command" and (program := _program(spec)):
        path = Path(spec.base or config.root) / (folder or "") / program
        if not os.path.exists(path):
            return fault(no_file(path, program), "mend its path", "command", True)
    if entry and spec.type == "replay" and "${" not in str(spec.options.get("run")):
        try:
            run_of(Store(config.root), str(spec.options.get("run") or ""), spec, trust)
        except NeedsTrust:
            return None
        except StoreError as error:
            return fault(str(error), "name one that is here", "run")
    try:
        filled = configuration.fill(spec, trust)
    except NeedsTrust:
        return None
    except VariableNotSet as error:
        key = error.key.partition(f"{spec.name}.")[2]
        return fault(error.what if entry else f"{key}: {error.what}", "", key)
    except (ConfigError, AgentError) as error:
        return fault(str(error), "", "")
    if entry and spec.type in _MADE_HERE:
        try:
            create(filled, Services(root=config.root, trust=trust))
        except NeedsTrust:
            pass
        except (ConfigError, AgentError) as error:
            said = str(error)
            key, _, message = said.removeprefix(f"agents.{spec.name}.").partition(": ")
            own = said.startswith(f"agents.{spec.name}.")
            return fault(message if own else said, "", key if own else option or "", True)
    from tui_eval.config.config_values import USUAL_KEYS, is_own_host

    usual = USUAL_KEYS.get(spec.type)
    address = filled.options.get("base_url") or filled.options.get("url")
    headers = {str(name).lower() for name in filled.options.get("headers") or {}}
    keyed = filled.options.get("api_key") or headers & {"authorization", "x-api-key"}
    if usual and not keyed and (not address or is_own_host(spec.type, str(address))):
        return fault("there is no key of its provider", f"set {usual}", "")
    base = Path(spec.base or config.root)
    gone = (
        [name for name in spec.files if "${" not in name and not os.path.exists(base / name)] if entry else []
    )
    if gone:
        cure = "name a file or folder: what is in it is looked at by --changed, --cache and `E`"
        return fault(f"there is no {gone[0]}", cure, "files")
    return None


def _misnamed(job: Job, made: dict[int, Agent | None], config: Config, trust: Trust) -> _Fault | None:
    """A name in what an `http` agent sends that is a slip, with the variables that the case has."""
    spec = job.spec
    if spec is None or spec.type != "http" or not (entry := _entry_of(spec, config)):
        return None
    from tui_eval.agents.http.json_endpoint import HttpAgent

    if id(spec) not in made:
        try:
            made[id(spec)] = create(configuration.fill(spec, trust), Services(root=config.root, trust=trust))
        except (NeedsTrust, ConfigError, AgentError):
            made[id(spec)] = None  # said of the entry
    agent = made[id(spec)]
    for name, meant in agent.slips(job.case.vars).items() if isinstance(agent, HttpAgent) else ():
        return _Fault(
            f"{{{{{name}}}}}: there is no {name}", f"is {{{{{meant}}}}} meant?", True, entry, spec.line
        )
    return None


def _program(spec: AgentSpec) -> str:
    """The program of a command that is named by its path; empty where it is found on the `PATH`, or made of a
    variable."""
    words = spec.options.get("command")
    try:
        first = str((shlex.split(words) if isinstance(words, str) else words or [""])[0])
    except (ValueError, IndexError):
        return ""  # said of the entry
    return first if os.sep in first and "${" not in first else ""


def _no_function(path: Path, named: str, config: Config, trust: Trust) -> str:
    """That a Python file has no such function, where its text alone shows it: nothing is imported. A file elsewhere is
    only read where that is trusted."""
    from tui_eval.agents.programs.python_agent import functions_instead

    _, colon, function = named.rpartition(":")
    is_name = bool(colon) and function.isidentifier()
    if (
        not is_name
        or path.suffix != ".py"
        or not (trust.granted or path.resolve().is_relative_to(config.root.resolve()))
    ):
        return ""
    try:
        there = functions_instead(read_file(path, _PYTHON_BYTES), function)
    except OSError:
        return ""  # said when it is run
    if there is None:
        return ""
    known = f" (there is: {', '.join(there[:10])})" if there else ""
    return f"{path.name} has no function {function!r}{known}"


def _tool_fault(tool: Any, spec: AgentSpec, config: Config, trust: Trust) -> tuple[str, str, str] | None:
    """What a tool of a model lacks: the key, what is wrong with it, what to do."""
    kind = tool.get("type") if isinstance(tool, dict) else None
    needed = _TOOLS_NEED.get(kind or "")
    if needed is None or "${" in str(tool.get(needed)):
        return None
    named = str(tool.get(needed) or "")
    if not named:
        return needed, f"missing: a {kind} tool needs it", ""
    if kind == "sql" and named not in config.databases and not (config.nao and config.nao.withheld):
        slip = close_to(named, config.databases)
        there = ", ".join(config.databases) or "none"
        return (
            needed,
            f"there is no database {named!r}",
            f"did you mean {slip}?" if slip else f"there is: {there}",
        )
    if kind == "python":
        file = named.rpartition(":")[0]
        path = Path(spec.base or config.root) / file
        if file.endswith(".py") and not os.path.isfile(path):
            return needed, no_file(path, file), "mend its path"
        if lacks := _no_function(path, named, config, trust):
            return needed, lacks, "mend its name"
    return None


_TOOLS_NEED = {"sql": "database", "canned": "name", "python": "function"}


def _entry_of(spec: AgentSpec, config: Config) -> str:
    """The key of tui_eval.yaml that an agent stands under; empty for one that a suite describes."""
    if spec.line and (named := config.agents.get(spec.name)) is not None and named.line == spec.line:
        return f"agents.{spec.name}"
    return "judge" if spec.line and config.judge is not None and config.judge.line == spec.line else ""


def _judges(jobs: Sequence[Job], config: Config, trust: Trust) -> Iterator[Problem]:
    """A note where assertions need a judge and there is none, nothing speaks to the one that the suite names, or
    it lacks something; once for all cases that need it."""
    waiting: dict[_Fault, list[tuple[Case, Assertion]]] = {}
    for job in jobs:
        said: set[_Fault] = set()
        for one in job.case.asserted:
            if not format_of(job.format).asks_a_judge(one.type):
                continue
            fault = _grader_fault(job, one, config, trust)
            if fault is not None and fault not in said:
                said.add(fault)
                waiting.setdefault(fault, []).append((job.case, one))
    for fault, found in waiting.items():
        case, one = found[0]
        if fault.key:
            yield fault.in_configuration(config, f"as a judge {needed_by([case for case, _ in found])}")
            continue
        more = f" (and {len(found) - 1} more cases)" if len(found) > 1 else ""
        place = (case.path, one.line or case.line, one.type)
        yield Problem(*place, f"needs a judge{more}, {fault.message}", fault.cure, level="note")


def _grader_fault(job: Job, one: Assertion, config: Config, trust: Trust) -> _Fault | None:
    """Why the model that would grade an assertion cannot, and what to do; None where it can."""
    own = format_of(job.format).named_grader(one, job.case)
    try:
        if own is not None:
            spec = grader_choice.suites_own(own, config, job.base, job.settings.get("env"))
        else:
            spec = grader_choice.judge_of(job.judge, config) or grader_choice.default_of(job, config)
    except (grader_choice.NoGrader, ConfigError) as error:
        return _Fault(f"and {error}", "")
    if spec is None and config.judge_wrong:
        return None  # what is wrong with it is said there
    if spec is None:
        return _Fault("and none is named", "write `judge: NAME` into tui_eval.yaml, or give --judge")
    fault = _fault(spec, config, trust)
    if fault is None or fault.key:
        return None if fault is None else fault._replace(is_error=False)
    return _Fault(f"but {fault.message}", fault.cure)


def _databases(config: Config) -> Iterator[Problem]:
    """A note for each configured database whose file is not there."""
    for spec in config.databases.values():
        local = spec.type in ("duckdb", "sqlite", "files") and spec.path and "${" not in spec.path
        if local and spec.path != ":memory:" and not os.path.exists(config.root / spec.path):
            place = declared_in(spec, config)
            message = f"there is no {spec.path}: expected SQL cannot be tried here"
            yield Problem(place, spec.line, f"databases.{spec.name}", message, "mend its path", level="note")


_OF_REPORTS = {
    "guardrails": ("guardrails", "guardrails"),
    "not-finish-reason": ("finish_reason", "finish reason"),
}
"""What passes where the agent says nothing of it: the capability, and its name in words."""


def declared_in(spec: DatabaseSpec, config: Config) -> str:
    """The file that a database is configured in."""
    if config.nao is not None and spec.name in config.nao.databases:
        return "nao_config.yaml"
    return config.file.name if config.file else "nao_config.yaml"


def _unreported(jobs: Sequence[Job]) -> Iterator[Problem]:
    """A note for each assertion that passes because its agent never reports what it looks at."""
    for job in jobs:
        if job.spec is None or job.case.provider_output not in (None, ""):
            continue
        for one in job.case.asserted:
            if one.type not in _OF_REPORTS or one.weight == 0:
                continue
            capability, words = _OF_REPORTS[one.type]
            try:
                told = getattr(agent_class(job.spec.type).reported(job.spec), capability)
            except (AgentError, ConfigError):
                continue  # said of the agent
            if not told:
                place = (job.case.path, one.line or job.case.line, one.type)
                message = f"never fails here: the agent {job.spec.name} reports no {words}"
                yield Problem(*place, message, "ask an agent that reports it, or leave it out", level="note")


def _names(loaded: Sequence[Suite]) -> Iterator[Problem]:
    """A note for each case called like one before it: `-s` takes both, reports number them."""
    seen: dict[tuple[str, str], tuple[str, int]] = {}
    for suite in loaded:
        for case in suite.cases:
            scope, named = format_of(case.format).unique_name(case)
            if not named or case.connection:
                continue
            place = (case.path, case.line)
            first = seen.setdefault((scope, named), place)
            if first != place and not named.startswith("Row #"):
                where = f"{first[0]}:{first[1]}"
                yield Problem(*place, "name", f"{named!r} is also the name of {where}", level="note")


def _scripts(loaded: Sequence[Suite], config: Config) -> Iterator[Problem]:
    """An error for each JavaScript prompt or provider that cannot be imported, or exports no function. Importing runs
    the file: only with trust."""
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.script_host import ScriptError

    files: dict[tuple[Path, str], Case] = {}
    for suite in loaded:
        form = format_of(suite.format)
        for case in suite.cases:
            for found in form.scripts(case, config):
                if os.path.isfile(found[0]):
                    files.setdefault(found, case)
    if not files:
        return
    host = NodeHost(config.root, config.run.script_memory)
    try:
        for (path, function), case in files.items():
            try:
                host.import_sync(path, function, timeout=_LOADING_SECONDS, cwd=path.parent)
            except ScriptError as error:
                shown = os.path.relpath(path, config.root)
                yield Problem(case.path, case.line, shown, f"cannot be loaded: {error}")
    finally:
        host.close()
