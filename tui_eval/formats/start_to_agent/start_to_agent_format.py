"""The StartToAgent guide's format (seed 001)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.formats.format import UNNAMED_AGENT, FirstSuite, Format, late

if TYPE_CHECKING:
    from tui_eval.assertions.judge_input import JudgeInput, Judgement
    from tui_eval.assertions.judging import Handler
    from tui_eval.config.project import AgentSpec, Config
    from tui_eval.formats.format import Editor
    from tui_eval.formats.near_miss import PassedOver
    from tui_eval.guard.trust import Trust
    from tui_eval.model import Case, Problem, Suite
    from tui_eval.suites.saved_talk import Talk

_HERE = "tui_eval.formats.start_to_agent"
_FIRST = """\
# What the agent is asked, and what its answer must and must not hold.
agent: my_agent

test_cases:
  - name: "Greeting is answered"
    input: "hello"
    expected:
      should_not_contain: ["error"]

  - name: "Remembers the name it was told"
    messages:
      - "My name is Ada."
      - "What is my name?"
    expected:
      should_contain: ["Ada"]
      max_output_tokens: 500
"""


class StartToAgentFormat(Format):
    """YAML with a list `test_cases`: conversations, each judged at its end."""

    name = "start_to_agent"
    title = "StartToAgent"
    files = "*.yaml with test_cases:"
    looks_for = "a YAML mapping with a test_cases list (StartToAgent)"
    endings = (".yaml", ".yml")
    hints = (b"test_cases",)
    own_ids = True
    saves = adds_to_files = True
    agent_may_be_chosen = True

    def default_agent(self, name: str | None, config: Config) -> AgentSpec | None:
        """An agent with this name; where the suite names none, the one called `my_agent`."""
        return super().default_agent(name or UNNAMED_AGENT, config)

    asks_as_written = True
    budgets = True

    def recognises(self, path: Path, text: str) -> bool:
        return late(f"{_HERE}.read_start_to_agent:recognises")(path, text)

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        return late(f"{_HERE}.read_start_to_agent:read")(path, text, config, trust)

    def meant(self, file: PassedOver) -> list[Problem]:
        return late(f"{_HERE}.read_start_to_agent:meant")(file)

    def handler(self, kind: str) -> Handler | None:
        return late(f"{_HERE}.judge_start_to_agent:judge")

    def settle(self, judgement: Judgement, evidence: JudgeInput) -> None:
        """The guide's harness checks in an order of its own."""
        late(f"{_HERE}.judge_start_to_agent:in_the_guides_order")(judgement.verdicts)

    def editor(self, suffix: str) -> Editor | None:
        return (
            late(f"{_HERE}.write_start_to_agent:accepted") if suffix in (".yaml", ".yml", ".json") else None
        )

    def new_file(self, talk: Talk) -> str:
        return late(f"{_HERE}.write_start_to_agent:saved_case")(talk)

    def add_to(self, text: str, talk: Talk) -> str:
        return late(f"{_HERE}.write_start_to_agent:added")(text, talk)

    def first_suite(self) -> FirstSuite:
        return FirstSuite("evals/first.yaml", _FIRST, "a StartToAgent suite (YAML, test_cases)", "s")

    def sent_whole(self, case: Case) -> bool:
        """A conversation is one list of messages, as the guide's function takes it, also where it has but one."""
        return len(case.turns) > 1 or "messages" in case.options


START_TO_AGENT = StartToAgentFormat()
