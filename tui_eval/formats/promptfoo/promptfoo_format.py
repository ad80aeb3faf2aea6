"""promptfoo's format (seed 002; formats/promptfoo.md): tests in columns of prompts and providers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tui_eval.formats.format import FirstSuite, Format, late

if TYPE_CHECKING:
    from tui_eval.assertions.judge_input import JudgeInput, Judgement
    from tui_eval.assertions.judging import Handler
    from tui_eval.config.project import AgentSpec, Config
    from tui_eval.formats.format import Editor
    from tui_eval.guard.trust import Trust
    from tui_eval.model import Assertion, Case, Suite
    from tui_eval.suites.saved_talk import Talk

_HERE = "tui_eval.formats.promptfoo"
_CONFIG = "promptfooconfig."
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
    looks_for = "a promptfooconfig.* (promptfoo)"
    own_ids = by_name_only = takes_configs = True
    saves = adds_to_files = True
    agent_key = "providers"
    rows = True
    sums_up = True
    checks_scripts = True

    def recognises(self, path: Path, text: str) -> bool:
        return late(f"{_HERE}.read:recognises")(path, text)

    def claims(self, name: str) -> bool:
        return name.startswith(_CONFIG)

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        return late(f"{_HERE}.read:read")(path, text, config, trust)

    def cure_if_passed_over(self, path: Path, text: str) -> str:
        named = "name the file outright, or call it promptfooconfig.yaml, to run it as a promptfoo suite"
        return named if self.recognises(path, text) else ""

    def handler(self, kind: str) -> Handler | None:
        return late(f"{_HERE}.judge.judge_assertion:judge")

    async def judge_case(self, evidence: JudgeInput) -> Judgement:
        """Scores, weights, sets and thresholds add up by rules of promptfoo's own."""
        return await late(f"{_HERE}.judge.aggregate:judge_case")(evidence)

    def asks_a_judge(self, kind: str) -> bool:
        from tui_eval.formats.promptfoo.judge import registry

        return registry.split(kind)[0] in registry.GRADED

    def named_grader(self, assertion: Assertion, case: Case) -> Any:
        return late(f"{_HERE}.judge.judges:named_grader")(assertion, case)

    def editor(self, suffix: str) -> Editor | None:
        editors = {
            ".csv": "table",
            ".jsonl": "json_lines",
            **dict.fromkeys((".yaml", ".yml", ".json"), "promptfoo"),
        }
        return late(f"{_HERE}.accept_promptfoo:{editors[suffix]}") if suffix in editors else None

    def files_to_change(self, case: Case) -> list[str]:
        """What every test of a config is asked (defaultTest) stands there, not in the test's own file."""
        return list(dict.fromkeys((case.file or case.suite, case.suite)))

    def new_file(self, talk: Talk) -> str:
        return late(f"{_HERE}.save_promptfoo:promptfoo")(talk)

    def add_to(self, text: str, talk: Talk) -> str:
        return late(f"{_HERE}.save_promptfoo:added")(text, talk)

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

    def own_agent(self, case: Case, config: Config, env: Any) -> AgentSpec | None:
        """The provider of the case's column, unless an agent stands in for it."""
        from tui_eval import agents

        if case.provider is None:
            return None
        if (named := self.default_agent(case.agent, config)) is not None:
            return named
        target = agents.with_env(case.options.get("columnProvider"), env)
        entry, base = agents.with_env(case.provider, env), (config.root / case.suite).parent
        return agents.for_provider(entry, config, base, target)

    def compares_outputs(self, case: Case) -> bool:
        from tui_eval.formats.promptfoo.judge import compared_outputs

        return compared_outputs.compares(case)

    def test_for_scripts(self, case: Case) -> dict[str, Any] | None:
        return late(f"{_HERE}.promptfoo_words:test_of")(case)

    def costs_nothing(self, case: Case) -> bool:
        """Its echo provider says a cost of 0 for everything."""
        named = case.provider if isinstance(case.provider, str) else case.agent
        if isinstance(case.provider, dict):
            named = case.provider.get("id")
        return named == "echo"

    def described(self, case: Case) -> str:
        """A test without a description has nothing but its place, which no pattern of promptfoo's finds, not even an
        empty one."""
        return case.description

    def unique_name(self, case: Case) -> tuple[str, str]:
        return case.suite, case.description


PROMPTFOO = PromptfooFormat()
