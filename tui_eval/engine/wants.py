"""What a project's suites and configuration would do that needs trust, found out before anything runs.

Nothing is run, read or sent to find it out. What is missed here is refused when it is wanted (`Trust.require`), and
asked then: a list that is too short grants nothing.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tui_eval.config import AgentSpec, Config, ConfigError, DatabaseSpec, SuiteRule, database, fill, rule_for
from tui_eval.engine.plan import Job, plan
from tui_eval.engine.request import RunRequest
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import NeedsTrust, Trust, agent_code, from_root, inline
from tui_eval.model import Assertion, Case, Suite

_MOST = 100
"""Things one entry may want in turn; a file that wants more of them is refused the rest."""
_FILE = re.compile(r"file://(?P<path>.*?\.(?P<kind>py|rb|[cm]?[jt]s))(?::(?P<function>\w+))?", re.DOTALL)


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
    return [what for what in found.all if what not in trust.agreed]


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
    settings = {job.case.suite: job.settings for job in jobs}
    for spec in (*specs.values(), *([config.judge] if config.judge else [])):
        found.agent(spec)
    for path, own in cases.items():
        found.suite(Suite(path, "", cases=own, settings=settings[path]), providers=False)
    return [what for what in found.all if what not in trust.agreed]


class _Wants:
    def __init__(self, config: Config, trust: Trust) -> None:
        self.config = config
        self.all: dict[str, None] = dict.fromkeys(trust.wanted)
        self._rules: set[str] = set()

    def add(self, what: str) -> None:
        self.all[what] = None

    def _in_turn(self, ask: Any) -> None:
        """What asks for one thing after the other: as if each were agreed to."""
        trust = Trust()
        for _ in range(_MOST):
            try:
                ask(trust)
                return
            except NeedsTrust as needs:
                self.add(needs.what)
                trust.agreed |= {needs.what}
            except (ConfigError, OSError, ValueError, TypeError):
                return

    def agent(self, spec: AgentSpec) -> None:
        """An agent's own code, its tools', the variables it reads and where they go."""
        if spec.typed:
            return
        self._in_turn(lambda trust: fill(spec, trust))
        root, options = self.config.root, spec.options
        given = options.get("function") if spec.type == "python" else options.get("command")
        if spec.type == "python" and isinstance(given, str):
            self.add(agent_code(given, spec.name, spec.base, root))
            self._file(given.rpartition(":")[0], Path(spec.base or root))
        elif spec.type == "command":
            words = shlex.split(given) if isinstance(given, str) else given
            if isinstance(words, list) and all(isinstance(word, str) for word in words):
                self.add(agent_code(shlex.join(words), spec.name, spec.base, root))
        elif spec.type in ("javascript", "ruby") and isinstance(options.get("file"), str):
            with_what = "node" if spec.type == "javascript" else "ruby"
            self.add(f"run {options['file']} with {with_what} (the provider {spec.name})")
        for tool in options.get("tools") or () if isinstance(options.get("tools"), list) else ():
            named = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "python" else None
            if isinstance(named, str):
                file, _, function = named.rpartition(":")
                path = Path(spec.base or root) / file.removeprefix("file://")
                self.add(f"run {from_root(path, root)}:{function} (a tool)")
        for key in ("system", "script"):
            value = options.get(key)
            if isinstance(value, str) and (key == "script" or value.startswith("file://")):
                self._file(value.removeprefix("file://"), Path(spec.base or root))

    def database(self, spec: DatabaseSpec) -> None:
        """The variables, files and hosts of a database."""
        self._in_turn(lambda trust: database(self.config, spec.name, trust))

    def suite(self, suite: Suite, providers: bool = True) -> None:
        """The code of a suite's hooks, assertions and transforms, and its agents."""
        base = (self.config.root / suite.path).parent
        hooks = suite.settings.get("extensions")
        for hook in hooks if isinstance(hooks, list) else [hooks]:
            if isinstance(hook, str) and hook.startswith("file://"):
                self.add(f"run {hook.removeprefix('file://')} as a hook")
        seen: set[int] = set()
        kinds: dict[str, Case] = {}
        for case in suite.cases:
            for one in (*case.assertions, *(one for turn in case.turns for one in turn.assertions)):
                if id(one) not in seen:
                    seen.add(id(one))
                    self._assertion(one, suite.path, base)
            kinds.setdefault(f"{case.agent} {_json(case.provider)} {case.format}", case)
        if providers:
            self._providers(suite, list(kinds.values()))

    def _assertion(self, one: Assertion, suite: str, base: Path) -> None:
        kind = one.type.removeprefix("not-")
        for value, code in ((one.value, kind), (one.transform, "")):
            if not isinstance(value, str):
                continue
            if value.startswith("file://"):
                self._script(value, base)
            elif code == "python":
                self.add(f"run inline Python of {suite}: {inline(value)}")
            elif code == "ruby":
                self.add(f"run inline Ruby of {suite}: {inline(value)}")

    def _script(self, value: str, base: Path) -> None:
        match = _FILE.fullmatch(value)
        if match is None:
            self._file(value.removeprefix("file://"), base)
            return
        self._file(match["path"], base)
        if match["kind"] in ("py", "rb"):
            self.add(f"run {from_root(base / match['path'], self.config.root)}")

    def _file(self, path: str, base: Path) -> None:
        if path and "{{" not in path and not path.replace(".", "a").isidentifier():
            self._in_turn(lambda trust: confine(self.config.root, path, trust, base))

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


def _json(value: Any) -> str:
    return json.dumps(value, default=str, sort_keys=True) if value is not None else ""
