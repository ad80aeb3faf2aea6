"""promptfoo's format (seed 002; formats/promptfoo.md): tests in columns of prompts and providers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.formats.format import FirstSuite, Format, late

if TYPE_CHECKING:
    from tui_eval.assertions.judge_input import JudgeInput, Judgement, JudgeServices
    from tui_eval.assertions.judging import Handler
    from tui_eval.config.project import AgentSpec, Config
    from tui_eval.formats.format import CasePace, Editor, Hooks, HookScene, OurResults, RenderedCase, Scene
    from tui_eval.formats.near_miss import PassedOver
    from tui_eval.guard.trust import Trust
    from tui_eval.javascript.isolate import JavaScriptHost
    from tui_eval.model import Assertion, Attempt, Case, Compat, Problem, Suite
    from tui_eval.suites.saved_talk import Original, Talk

_HERE = "tui_eval.formats.promptfoo"
_CONFIG = "promptfooconfig."
_TRUE = frozenset(("1", "true", "yes", "yup", "yeppers"))
_FIRST = """\
# Each test is asked once per prompt and provider.
description: First evaluation
prompts:
  - "Answer in one word: {{question}}"
providers:
  - id: my_agent
tests:
  - description: Capital of France
    vars:
      question: What is the capital of France?
    assert:
      - type: icontains
        value: paris
"""


class PromptfooFormat(Format):
    """Each test is a row in the columns of a suite's prompts and providers."""

    name = "promptfoo"
    title = "promptfoo"
    files = "promptfooconfig.yaml (.json .js .py)"
    looks_for = "a promptfooconfig.* (promptfoo)"
    own_ids = by_name_only = takes_configs = True
    saves = adds_to_files = True
    saved_endings = (".yaml", ".yml", ".json")
    agent_key = "providers"
    templates = needs_suite = True
    sums_up = True

    def recognises(self, path: Path, text: str) -> bool:
        if "prompts" not in text and not path.name.lower().startswith("promptfooconfig"):
            return False  # nearly every other file: the reader is not loaded for it
        return late(f"{_HERE}.read:recognises")(path, text)

    def claims(self, name: str) -> bool:
        return name.lower().startswith(_CONFIG)

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        return late(f"{_HERE}.read:read")(path, text, config, trust)

    def meant(self, file: PassedOver) -> list[Problem]:
        return late(f"{_HERE}.read:meant")(file)

    def handler(self, kind: str) -> Handler | None:
        return late(f"{_HERE}.judge.judge_assertion:judge")

    async def judge_case(self, evidence: JudgeInput) -> Judgement:
        """Scores, weights, sets and thresholds add up by rules of promptfoo's own."""
        return await late(f"{_HERE}.judge.aggregate:judge_case")(evidence)

    def asks_a_judge(self, kind: str) -> bool:
        from tui_eval.formats.promptfoo.judge import registry

        return registry.split(kind)[0] in registry.GRADED

    def case_grader(self, case: Case) -> Any:
        return case.options.get("provider")

    def own_score(self, case: Case) -> str:
        return "assertScoringFunction" if _beside(case, "assertScoringFunction") else ""

    def named_grader(self, assertion: Assertion, case: Case) -> Any:
        return late(f"{_HERE}.judge.judges:named_grader")(assertion, case)

    def check_beforehand(self, assertion: Assertion, evidence: JudgeInput) -> None:
        """Also whether the code that it names is there and may run."""
        super().check_beforehand(assertion, evidence)
        late(f"{_HERE}.judge.code:check_code")(assertion, evidence)

    def libraries_for(self, assertion: Assertion) -> Iterable[str]:
        from msgspec import UNSET

        return late(f"{_HERE}.judge.registry:libraries")(assertion.type, assertion.value is not UNSET)

    def editor(self, suffix: str) -> Editor | None:
        editors = {
            ".csv": "table",
            ".jsonl": "json_lines",
            **dict.fromkeys((".yaml", ".yml", ".json"), "accepted"),
        }
        return late(f"{_HERE}.write_promptfoo:{editors[suffix]}") if suffix in editors else None

    def files_to_change(self, case: Case) -> list[str]:
        """What every test of a config is asked (defaultTest) stands there, not in the test's own file."""
        return list(dict.fromkeys((case.path, case.suite)))

    def as_written(self, case: Case, config: Config, trust: Trust) -> Original | None:
        return late(f"{_HERE}.read.promptfoo_config:as_written")(case, config, trust)

    def new_file(self, talk: Talk) -> str:
        return late(f"{_HERE}.write_promptfoo:saved_case")(talk)

    def add_to(self, text: str, talk: Talk) -> str:
        return late(f"{_HERE}.write_promptfoo:added")(text, talk)

    def saved_place_problem(self, path: Path, talk: Talk) -> str:
        """In a folder only those are found that are called so."""
        if path.exists():
            return ""
        if path.suffix == ".json":
            return f"a new file's name must end in {self.saved_ending}"
        if self.claims(path.name):
            return ""
        return f"a promptfoo suite is found by its name: call it {_CONFIG}{path.stem}{path.suffix}"

    def saved_name(self, stem: str) -> str:
        return f"{_CONFIG}{stem}"

    def asked_in_turns(self, case: Case) -> int | None:
        """A prompt may be a whole conversation."""
        return None

    def first_suite(self) -> FirstSuite:
        return FirstSuite("promptfooconfig.yaml", _FIRST, "a promptfoo suite", "p")

    def default_agent(self, name: str | None, config: Config) -> AgentSpec | None:
        """`providers:` of tui_eval.yaml may stand another agent in for a provider."""
        return super().default_agent(None if name is None else config.providers.get(name, name), config)

    brings_agents = True

    def own_agent(self, case: Case, config: Config, env: Any) -> AgentSpec | None:
        """The provider of the case's column, unless an agent stands in for it."""
        from tui_eval import agents

        if case.provider is None:
            return None
        if (named := self.default_agent(case.agent, config)) is not None:
            return named
        target = agents.with_env(self.column_provider(case), env)
        entry, base = agents.with_env(case.provider, env), (config.root / case.suite).parent
        return agents.for_provider(entry, config, base, target)

    def configs(self, given: Sequence[str]) -> list[Path]:
        return late(f"{_HERE}.read.combined:chosen")(given) if given else []

    def says_attempts(self, case: Case, settings: Mapping[str, Any]) -> bool:
        evaluate = settings.get("evaluateOptions")
        said = isinstance(evaluate, dict) and evaluate.get("repeat") is not None
        return said or "repeat" in case.options

    async def rendered(self, case: Case, scene: Scene) -> RenderedCase:
        return await late(f"{_HERE}.read.render:render_in")(case, scene)

    def known_vars(self, case: Case, base: Path, root: Path, trust: Trust) -> Mapping[str, Any]:
        import msgspec

        resolve = late(f"{_HERE}.read.render:resolve_case")
        return resolve(msgspec.structs.replace(case, turns=[]), base, root, trust).vars

    def column_provider(self, case: Case) -> Any:
        return _beside(case, "columnProvider")

    def agent_options(self, case: Case) -> dict[str, Any]:
        return late(f"{_HERE}.run.rows:provider_options")(case)

    def sent_around(self, case: Case) -> dict[str, Any]:
        return late(f"{_HERE}.run.rows:sent_around")(case)

    def test_for_scripts(self, case: Case) -> dict[str, Any] | None:
        return late(f"{_HERE}.promptfoo_words:test_of")(case)

    def prompt_for_scripts(self, case: Case, config: dict[str, Any]) -> dict[str, Any] | None:
        return late(f"{_HERE}.run.rows:prompt_for_scripts")(case, config)

    def paces(
        self, cases: Sequence[Case], settings: Mapping[str, Any], delay: float | None, limited: bool
    ) -> list[CasePace]:
        return late(f"{_HERE}.run.rows:paces")(cases, settings, delay, limited)

    def at_once(self, settings: Mapping[str, Any]) -> int | None:
        return late(f"{_HERE}.run.rows:at_once")(settings)

    def stored_as(self, case: Case) -> str | None:
        return late(f"{_HERE}.run.rows:stored_as")(case)

    def conversation(self, case: Case) -> tuple[str, ...] | None:
        return late(f"{_HERE}.run.rows:conversation")(case)

    def conversation_name(self, case: Case) -> str:
        return late(f"{_HERE}.run.rows:conversation_name")(case)

    def hears_conversation(self, case: Case) -> bool:
        return late(f"{_HERE}.run.rows:hears")(case)

    def left_out(self, case: Case, settings: Mapping[str, Any]) -> Iterable[str]:
        return late(f"{_HERE}.read.env_files:left_out")(case) if settings.get("env_left") else ()

    def hooks(self, settings: Mapping[str, Any], base: Path, scene: HookScene) -> Hooks | None:
        """`extensions`."""
        given = settings.get("extensions")
        return (
            late(f"{_HERE}.run.suite_hooks:ExtensionHooks")(given, base, scene, settings) if given else None
        )

    def decisive(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """All of it where there are hooks, which see the suite."""
        if settings.get("extensions"):
            return settings
        from tui_eval.formats.promptfoo.read.promptfoo_types import HOW_IT_IS_RUN

        found = {
            key: value
            for key, value in settings.items()
            if key not in ("outputPath", "tags", "env_left", "env_code")
        }
        for key in ("evaluateOptions", "commandLineOptions"):
            if isinstance(given := found.get(key), dict):
                kept = {name: value for name, value in given.items() if name not in HOW_IT_IS_RUN}
                found = (
                    {**found, key: kept}
                    if kept
                    else {name: one for name, one in found.items() if name != key}
                )
        return found

    def hook_files(self, settings: Mapping[str, Any]) -> Iterable[str]:
        given = settings.get("extensions")
        return [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]

    def hooks_make_cases(self, settings: Mapping[str, Any]) -> bool:
        """One that is called as a hook is for that one alone."""
        after = ("afterEach", "afterAll")
        return any(one.rpartition(":")[2] not in after for one in self.hook_files(settings))

    def asks_for_traces(self, case: Case, settings: Mapping[str, Any]) -> bool:
        """By the suite's `tracing.enabled`, by `metadata.tracingEnabled` of its test, or by the environment variable
        PROMPTFOO_TRACING_ENABLED."""
        import os

        tracing = settings.get("tracing")
        if isinstance(tracing, dict) and tracing.get("enabled") is True:
            return True
        if case.metadata.get("tracingEnabled") is True:
            return True
        return os.environ.get("PROMPTFOO_TRACING_ENABLED", "").lower() in _TRUE

    def default_grader(self, env: Any, config: Config) -> AgentSpec | None:
        from tui_eval import agents

        return agents.default_grader(env, config)

    def compares_outputs(self, case: Case) -> bool:
        return late(f"{_HERE}.judge.compared_outputs:compares")(case)

    async def compare_outputs(
        self, case: Case, attempts: Sequence[Attempt], services: JudgeServices, compat: Compat
    ) -> None:
        await late(f"{_HERE}.judge.compared_outputs:compare")(case, attempts, services, compat)

    def derives(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return {key: settings[key] for key in ("derivedMetrics",) if key in settings}

    async def derive(
        self,
        columns: Sequence[dict[str, Any]],
        settings: Mapping[str, dict[str, Any]],
        javascript: JavaScriptHost,
        rows: Sequence[Sequence[dict[str, float]]],
    ) -> None:
        await late(f"{_HERE}.run.derived_metrics:derive")(columns, settings, javascript, rows)

    async def faults(self, suites: Sequence[Suite]) -> list[Problem]:
        return await late(f"{_HERE}.check.code_faults:faults")(suites)

    def broken_values(self, suite: Suite, root: Path) -> Iterable[Problem]:
        return late(f"{_HERE}.check.named_values:broken_values")(suite, root)

    def scripts(self, case: Case, config: Config) -> Iterable[tuple[Path, str]]:
        return late(f"{_HERE}.check.code_faults:scripts")(case, config)

    def wanted_by(self, kind: str, value: str, case: Case, base: Path, root: Path) -> str | None:
        return late(f"{_HERE}.check.code_faults:wanted_by")(kind, value, case, base, root)

    def providers(self, case: Case) -> Iterable[Any]:
        """Its graders may stand in the test's options, too, and the provider that its own replaces."""
        yield from super().providers(case)
        yield from (case.options.get("provider"), _beside(case, "columnProvider"))

    def secrets(self, provider: dict[str, Any]) -> Iterable[str]:
        """Of an HTTP provider; graders may stand under their id, or under what they are for."""
        yield from late("tui_eval.agents.promptfoo.promptfoo_providers:unnamed_secrets")(
            provider.get("config")
        )
        for key, inner in provider.items():
            if key != "config" and isinstance(inner, dict):
                yield from self.secrets(inner)

    def as_ours(self, document: Any, path: Path) -> OurResults | None:
        return late(f"{_HERE}.import_promptfoo:as_ours")(document, path)

    def costs_nothing(self, case: Case) -> bool:
        """Its echo provider says a cost of 0 for everything."""
        named = case.provider if isinstance(case.provider, str) else case.agent
        if isinstance(case.provider, dict):
            named = case.provider.get("id")
        return named == "echo"

    def transforms(self, case: Case) -> bool:
        return bool(late(f"{_HERE}.judge.expected_values:transforms_of")(case))

    def described(self, case: Case) -> str:
        """A test without a description has nothing but its place, which no pattern of promptfoo's finds, not even an
        empty one."""
        return case.description

    def unique_name(self, case: Case) -> tuple[str, str]:
        return case.suite, case.description


def _beside(case: Case, name: str) -> Any:
    return late(f"{_HERE}.promptfoo_words:beside")(case, name)


PROMPTFOO = PromptfooFormat()
