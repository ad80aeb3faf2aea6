"""Another package: a format, an agent, an assertion and a report that tui-eval finds by its entry points."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from tui_eval.agents.base import Agent, Capabilities, Request, Services, Session, SessionContext
from tui_eval.assertions import JudgeInput, Judgement
from tui_eval.assertions.judging import verdict_of
from tui_eval.config.project import AgentSpec, Config
from tui_eval.events import Event, Finished, TextDelta
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.guard.trust import Trust
from tui_eval.model import Assertion, Case, Problem, Reply, Suite, Turn, Verdict
from tui_eval.store.reader import RunReader


def recognises(path: Path, text: str) -> bool:
    return path.suffix == ".greet"


def read(path: str, text: str, config: Config, trust: Trust) -> Suite:
    cases = [
        Case("", name, path, "greetings", line=line, turns=[Turn(name, [Assertion("greets", "hello")])])
        for line, name in enumerate(text.splitlines(), 1)
        if name and not name.startswith("?")
    ]
    problems = [
        Problem(path, line, "", "a question is no greeting", "remove it")
        for line, name in enumerate(text.splitlines(), 1)
        if name.startswith("?")
    ]
    return Suite(path, "greetings", cases=cases, problems=problems)


class Greeter(Agent):
    """Says `word` before what it was told."""

    capabilities = Capabilities(tools=True)

    def __init__(self, spec: AgentSpec, services: Services) -> None:
        super().__init__(spec, services)
        self.word = spec.options["word"]

    async def open(self, context: SessionContext) -> Session:
        return _Talk(self.word)


class _Talk(Session):
    def __init__(self, word: str) -> None:
        self.word = word

    async def send(self, request: Request) -> AsyncIterator[Event]:
        text = f"{self.word}, {request.text}"
        yield TextDelta(text)
        yield Finished(Reply(turn=request.turn, text=text))


def judge(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict:
    text = (evidence.replies[-1].text or "") if evidence.replies else ""
    wanted = str(assertion.value["word"] if isinstance(assertion.value, dict) else assertion.value)
    return verdict_of(assertion, text.startswith(wanted), f"does it begin with {wanted}?", actual=text)


def check(call: AssertionCall) -> Result:
    return call.result(
        call.text.startswith(call.value), f"does not begin with {call.value}", f"begins with {call.value}"
    )


def plain(call: AssertionCall) -> Result:
    """As `check`, without a look at `call.inverse`."""
    return Result(call.text.startswith(call.value), float(call.text.startswith(call.value)), "said so")


def leave(call: AssertionCall) -> Result:
    raise SystemExit(0)


def write(reader: RunReader, path: Path) -> None:
    lines = [f"{row.case_ref}: {row.outcome}" for row in reader.attempts()]
    path.write_text("\n".join(lines) + "\n", "utf-8")


def fail(reader: RunReader, path: Path) -> None:
    raise RuntimeError("out of ink")


def leave_the_report(reader: RunReader, path: Path) -> None:
    raise SystemExit(0)
