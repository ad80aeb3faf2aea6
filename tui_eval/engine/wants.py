"""What a project's suites and configuration would do that needs trust, found out before anything runs.

Nothing is run, read outside the root or sent to find it out. Whatever asks for trust names it with the functions of
`guard.trust`, and so does this: a file that may be run has one name, whatever runs it. So every text that a suite, a
case or an agent holds is looked at, wherever it stands, rather than the keys that are known to hold code. What is
missed all the same (a name that a template makes) is refused when it is wanted, and asked then: a list that is too
short grants nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import agents
from tui_eval.agents.base import Services
from tui_eval.config.project import (
    AgentSpec,
    Config,
    ConfigError,
    DatabaseSpec,
    SuiteRule,
    database,
    fill,
    rule_for,
)
from tui_eval.engine.plan import Job, plan
from tui_eval.engine.request import RunRequest
from tui_eval.formats.promptfoo.read.suite_environment import SuiteEnvironment
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import NeedsTrust, Trust, agent_code, from_root, inline, inline_in_node, script
from tui_eval.javascript.inline import needs_node
from tui_eval.model import Assertion, Case, Suite

_MOST = 100
"""Things one entry may want in turn; a file that wants more of them is refused the rest."""
_DEEPEST = 50
_LARGEST = 1_000_000
"""Bytes of a text file whose templates and code are looked at."""
_CODE = re.compile(r"(?P<path>.*?\.(?P<kind>py|rb|[cm]?[jt]s))(?::(?P<function>[\w.$]+))?", re.DOTALL)
_ENV = re.compile(r"""\benv\s{0,20}(?:\.\s{0,20}([A-Za-z_]\w*)|\[\s{0,20}["']([^"'\]]{1,200})["'])""")
_BUILT = re.compile(
    r"\benv\s{0,20}\[\s{0,20}[^\s\"']|\{%-?\s{0,20}(?:include|import|from|extends)\s{1,20}[^\s\"']"
)
"""A template that makes the name of a variable or a file."""
_OF_NODE = re.compile(r"\b(?:process|require|fetch|XMLHttpRequest|WebSocket|crypto|Intl|module|import)\b")
_HOLDS_CODE = re.compile(
    r"transform|parser|validate|postprocess|callback|scoring|streamresponse", re.IGNORECASE
)
"""Keys whose texts are inline JavaScript."""


def wants(suites: Iterable[Suite], config: Config, trust: Trust) -> list[str]:
    """What would be required and is neither granted nor agreed to yet, in the order of the files. Blocking: call
    it in a thread; never raises."""
    if trust.granted:
        return []
    found = _Wants(config, trust)
    for spec in (*config.agents.values(), *([config.judge] if config.judge else [])):
        found.agent(spec)
    for spec in config.databases.values():
        found.database(spec)
    for suite in suites:
        found.suite(suite)
    return [what for what in found.all if not trust.covers(what)]


def wants_of_jobs(jobs: Sequence[Job], config: Config, trust: Trust) -> list[str]:
    """As `wants`, for what is about to be run: its suites, and the agents and the judge that it asks."""
    if trust.granted:
        return []
    found = _Wants(config, trust)
    cases: dict[str, list[Case]] = {}
    specs: dict[int, AgentSpec] = {}
    for job in jobs:
        cases.setdefault(job.case.suite, []).append(job.case)
        if job.spec is not None:
            specs[id(job.spec)] = job.spec
            if _directly(job.case):
                found.networks(job.spec, direct=True)
    settings = {job.case.suite: job.settings for job in jobs}
    for spec in (*specs.values(), *([config.judge] if config.judge else [])):
        found.agent(spec)
    if any(_asks_a_database(case) for own in cases.values() for case in own) or any(
        _has_tools(spec) for spec in specs.values()
    ):
        for spec in config.databases.values():
            found.database(spec)
    for path, own in cases.items():
        found.suite(Suite(path, "", cases=own, settings=settings[path]), providers=False)
    return [what for what in found.all if not trust.covers(what)]


def wants_of_judging(jobs: Sequence[Job], config: Config, trust: Trust) -> list[str]:
    """As `wants`, for recorded answers that are judged again: their assertions' code, and the databases of these. No
    agent is asked."""
    if trust.granted:
        return []
    found = _Wants(config, Trust())
    for job in jobs:
        found.judging(job.case)
    return [what for what in found.all if not trust.covers(what)]


def _asks_a_database(case: Case) -> bool:
    asserted = (*case.assertions, *(one for turn in case.turns for one in turn.assertions))
    return bool(case.database) or any(one.type == "sql" for one in asserted)


def _has_tools(spec: AgentSpec) -> bool:
    return bool(spec.options.get("tools"))


class _Wants:
    def __init__(self, config: Config, trust: Trust) -> None:
        self.config = config
        self.root = config.root
        self.all: dict[str, None] = dict.fromkeys(trust.wanted)
        self._rules: set[str] = set()
        self._looked_at: set[tuple[str, Path]] = set()
        self._own_env: frozenset[str] = frozenset()

    def add(self, what: str) -> None:
        self.all[what] = None

    def _in_turn(self, ask: Callable[[Trust], Any]) -> None:
        """What asks for one thing after the other: as if each were agreed to. Files outside are never read, and
        LiteLLM is never begun with: what would be asked for after them is asked anew."""
        trust = Trust()
        for _ in range(_MOST):
            try:
                ask(trust)
                return
            except NeedsTrust as needs:
                self.add(needs.what)
                if needs.what.startswith(("read /", "let LiteLLM")):
                    return
                trust.agreed |= {needs.what}
            except Exception:  # what is wrong with it is said by `check`, or when it is run
                return

    def agent(self, spec: AgentSpec) -> None:
        """An agent's own code, its tools', the variables it reads, the files it reads and where they go."""
        if spec.typed:
            return
        self._in_turn(lambda trust: fill(spec, trust))
        self._in_turn(lambda trust: self._made(spec, trust))
        self.networks(spec)
        options, base = spec.options, Path(spec.base or self.root)
        given = options.get("function") if spec.type == "python" else options.get("command")
        if spec.type == "python" and isinstance(given, str):
            self.add(agent_code(given, spec.name, spec.base, self.root))
        elif spec.type == "command":
            words = given
            if isinstance(given, str):
                with suppress(ValueError):
                    words = shlex.split(given)
            if isinstance(words, list) and all(isinstance(word, str) for word in words):
                self.add(agent_code(shlex.join(words), spec.name, spec.base, self.root))
        tools = options.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            named = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "python" else None
            if isinstance(named, str):
                file, _, function = named.rpartition(":")
                file = file.removeprefix("file://")
                self.add(f"run {from_root(base / file, self.root)}:{function} (a tool)")
                self._outside(file, base)
        self._texts(options, base)

    def _made(self, spec: AgentSpec, trust: Trust) -> None:
        """An agent as it would be made for a run: what its making asks for. Nothing is sent before it is opened."""
        services = Services(root=self.root, trust=trust)
        agents.create(fill(spec, trust), services)

    def networks(self, spec: AgentSpec, direct: bool = False) -> None:
        """The Python that runs agent networks as a library, and the files that it is given: all at once, whatever
        else the agent lacks. `direct`: a case asks for it, which needs no Python named."""
        from tui_eval.agents.neuro_san.neuro_san_agent import networks_code
        from tui_eval.agents.neuro_san.neuro_san_library import interpreter

        if spec.type != "neuro-san" or spec.typed:
            return
        with suppress(ConfigError):  # a variable that is not set: what can be known stands there all the same
            spec = fill(spec, Trust(granted=True))
        options, base = spec.options, Path(spec.base or self.root)
        given = options.get("python")
        if not direct and not given:
            return
        if (python := interpreter(given if isinstance(given, str) else None, base)) is None:
            return
        self.add(networks_code(python, spec.name))
        for key in ("manifest", "tool_path"):
            if isinstance(named := options.get(key), str):
                self._outside(named, base)

    def database(self, spec: DatabaseSpec) -> None:
        """The variables, files and hosts of a database."""
        self._in_turn(lambda trust: database(self.config, spec.name, trust))

    def suite(self, suite: Suite, providers: bool = True) -> None:
        """The code, files, variables and hosts of a suite's cases and hooks, and its agents."""
        base = (self.root / suite.path).parent
        env = suite.settings.get("env")
        self._own_env = frozenset(env) if isinstance(env, dict) else frozenset()
        self._texts(suite.settings, base)
        hooks = suite.settings.get("extensions")
        for hook in hooks if isinstance(hooks, list) else [hooks]:
            match = _CODE.fullmatch(hook.removeprefix("file://")) if isinstance(hook, str) else None
            if match is not None:
                self.add(script(base / match["path"], self.root))
        seen: set[int] = set()
        kinds: dict[str, Case] = {}
        graders: dict[str, Any] = {}
        for case in suite.cases:
            self._case(case, suite, base, seen, graders)
            kinds.setdefault(f"{case.agent} {_json(case.provider)} {case.format} {_directly(case)}", case)
        for grader in graders.values():
            self._grader(grader, base, env)
        if providers:
            self._providers(suite, list(kinds.values()))

    def _case(self, case: Case, suite: Suite, base: Path, seen: set[int], graders: dict[str, Any]) -> None:
        for value in (
            case.vars,
            case.options,
            case.metadata,
            case.provider,
            [turn.text for turn in case.turns],
        ):
            self._texts(value, base)
        for grader in (case.options.get("provider"),):
            if grader:
                graders[_json(grader)] = grader
        for one in (*case.assertions, *(one for turn in case.turns for one in turn.assertions)):
            first = id(one) not in seen
            seen.add(id(one))
            if first and one.provider:
                graders[_json(one.provider)] = one.provider
            self._assertion(one, case, base, first)
        for text in (*case.vars.values(), *(turn.text for turn in case.turns)):
            self._built(text, case, base)
        self._traces(case, suite)

    def _built(self, value: Any, case: Case, base: Path) -> None:
        """What a case's variables make of the texts that are templates of a name."""
        if isinstance(value, list | tuple):
            for item in value[:_MOST]:
                self._built(item, case, base)
        elif isinstance(value, str) and "{" in value:
            named = value.startswith("file://")
            if named and "{{" in value:
                made = self._rendered(value, case, base)
                if made != value and "{{" not in made:
                    self._file(made.removeprefix("file://").strip(), base)
            elif not named and _BUILT.search(value):
                self._in_turn(lambda trust: self._render(value, case, base, trust))

    def judging(self, case: Case) -> None:
        """What judging an answer of this case wants."""
        base = (self.root / case.suite).parent
        for one in (*case.assertions, *(one for turn in case.turns for one in turn.assertions)):
            self._assertion(one, case, base, first=True)
        if _asks_a_database(case):
            self._in_turn(lambda trust: database(self.config, case.database, trust))

    def _traces(self, case: Case, suite: Suite) -> None:
        if not isinstance(suite.settings.get("tracing"), dict):
            return
        from tui_eval.engine.otlp.tracing import settings_of

        settings = settings_of(case, suite.settings)
        if settings is not None and settings.reached_from_outside:
            self.add(settings.reached_from_outside)

    def _assertion(self, one: Assertion, case: Case, base: Path, first: bool) -> None:
        kind = one.type.removeprefix("not-")
        value = one.value
        if isinstance(value, str) and kind in ("python", "ruby", "javascript", "webhook"):
            if "{{" in value or "{%" in value:
                value = self._rendered(value, case, base)
            elif not first:
                return
            if not value.startswith("file://"):
                self._judging(kind, value, case, base)
        for text in (one.value, one.transform):
            self._built(text, case, base)
        if not first:
            return
        self._texts(one.value if one.value is not msgspec.UNSET else None, base)
        self._texts({"transform": one.transform, "config": one.config, "extra": one.extra}, base)

    def _judging(self, kind: str, value: str, case: Case, base: Path) -> None:
        """The code that an assertion holds, or the host that it asks."""
        from tui_eval.assertions.judge_input import CannotJudge
        from tui_eval.formats.promptfoo.judge.outside import sends_to

        if kind == "python":
            self.add(f"run inline Python of {case.suite}: {inline(value)}")
        elif kind == "ruby":
            self.add(f"run inline Ruby of {case.suite}: {inline(value)}")
        elif kind == "javascript" and _OF_NODE.search(value):
            self.add(inline_in_node(value, base, self.root))
        elif kind == "webhook":
            with suppress(CannotJudge):
                if needed := sends_to(value):
                    self.add(needed)

    def _rendered(self, value: str, case: Case, base: Path) -> str:
        """The text as the case's variables make it, as it is where that cannot be known yet."""
        from tui_eval.formats.promptfoo.read.render import RenderError
        from tui_eval.nunjucks.templates import TemplateError

        try:
            return self._render(value, case, base, Trust())
        except (TemplateError, RenderError, NeedsTrust, OSError, ValueError):
            return value

    def _render(self, value: str, case: Case, base: Path, trust: Trust) -> str:
        from tui_eval.formats.promptfoo.read.render import resolve_case
        from tui_eval.nunjucks.templates import including, render_value

        given = resolve_case(msgspec.structs.replace(case, turns=[]), base, self.root, trust).vars
        with including(base, self.root, trust):
            return str(render_value(value, given, env=SuiteEnvironment({}, trust)))

    def _grader(self, given: Any, base: Path, env: Any) -> None:
        """The agent, embedding model or classifier that a suite judges with."""
        if isinstance(given, dict) and not given.get("id"):
            for part in given.values():  # `{text: …, embedding: …}`
                if isinstance(part, str) or (isinstance(part, dict) and part.get("id")):
                    self._grader(part, base, env)
            return
        if isinstance(given, str) and given in self.config.agents:
            return
        for find in (agents.for_provider, agents.for_embeddings, agents.for_scores):
            with suppress(Exception):  # what is wrong with it is said when it is asked
                entry = given if isinstance(given, dict) else {"id": given}
                self.agent(find(agents.with_env(entry, env), self.config, base))

    def _texts(self, value: Any, base: Path, code: bool = False, deep: int = 0) -> None:
        """What any of the texts in a value wants: code and files that it names, variables, inline JavaScript."""
        if isinstance(value, str):
            self._text(value, base, code)
        elif deep > _DEEPEST:
            return
        elif isinstance(value, Mapping):
            for key, item in value.items():
                if key in ("path", "file") and isinstance(item, str) and _CODE.fullmatch(item):
                    self._file(item.removeprefix("file://"), base)  # such a key needs no `file://`
                self._texts(item, base, code or _HOLDS_CODE.search(str(key)) is not None, deep + 1)
        elif isinstance(value, list | tuple):
            for item in value:
                self._texts(item, base, code, deep + 1)
        elif isinstance(value, msgspec.Struct):
            self._texts(msgspec.structs.asdict(value), base, code, deep + 1)

    def _text(self, text: str, base: Path, code: bool) -> None:
        if "{{" in text or "{%" in text:
            self._template(text, base)
        if text.startswith("file://"):
            self._file(text.removeprefix("file://").strip(), base)
        elif code and _OF_NODE.search(text):
            self.add(inline_in_node(text, base, self.root))

    def _template(self, text: str, base: Path) -> None:
        from tui_eval.nunjucks.templates import INCLUDED

        for match in _ENV.finditer(text):
            name = match[1] or match[2]
            if name not in self._own_env:
                self._in_turn(lambda trust, name=name: SuiteEnvironment({}, trust).get(name))
        for match in INCLUDED.finditer(text):
            self._read(match[1], base)

    def _file(self, named: str, base: Path) -> None:
        match = _CODE.fullmatch(named)
        if match is None:
            self._read(named, base)
            return
        self._outside(match["path"], base)
        path = base / match["path"]
        if match["kind"] in ("py", "rb"):
            self.add(script(path, self.root))
        elif (source := self._source(match["path"], base)) is not None:
            if needs_node(path, source, match["function"]):
                self.add(script(path, self.root))
        else:
            self.add(script(path, self.root))

    def _read(self, named: str, base: Path) -> None:
        """A file that is read: whether it lies outside, and what its templates want."""
        self._outside(named, base)
        key = (named, base)
        if key in self._looked_at:
            return
        self._looked_at.add(key)
        source = self._source(named, base)
        if source is not None and ("{{" in source or "{%" in source):
            self._template(source, base)

    def _source(self, named: str, base: Path) -> str | None:
        """The text of a file of the project; None where there is none that is small enough."""
        try:
            path = confine(self.root, named, Trust(), base)
            if path.is_file() and path.stat().st_size <= _LARGEST:
                return path.read_text("utf-8", "replace")
        except (NeedsTrust, OSError, ValueError):
            pass
        return None

    def _outside(self, named: str, base: Path) -> None:
        if named and "{{" not in named:
            self._in_turn(lambda trust: confine(self.root, named, trust, base))

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
            if job.spec is not None and self.config.agents.get(job.spec.name) is not job.spec:
                self.agent(job.spec)
            if job.spec is not None and _directly(job.case):
                self.networks(job.spec, direct=True)


def _directly(case: Case) -> bool:
    return (case.connection or case.options.get("connection")) == "direct"


def _json(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True) if value is not None else ""
