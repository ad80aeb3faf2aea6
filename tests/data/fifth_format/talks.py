"""A whole format in another package: suites of talks, in files that end in `.talk`.

    agent: friend
    = Capital of France
    > What is the capital of {country}?
    country: France
    has: Paris
    not: Berlin

A line with `=` begins a case, one with `>` is a message; `has` and `not` say what the answer to it must and must not
hold, any other key is a variable of the case, `agent` and `attempts` are the suite's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tui_eval.assertions import JudgeInput, Judgement
from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judging import Handler, verdict_of
from tui_eval.config.project import AgentSpec, Config
from tui_eval.formats.format import Editor, FirstSuite, Format, OurResults, RenderedCase, RenderError, Scene
from tui_eval.guard.trust import Trust
from tui_eval.model import Assertion, Attempt, Case, Problem, Suite, Turn, Verdict
from tui_eval.store.reader import RunReader
from tui_eval.suites.accepted_values import EditedValue, answer_to
from tui_eval.suites.saved_talk import SavedReply, Talk, facts
from tui_eval.yaml.yaml_edit import EditError

FIRST = """\
agent: my_agent
= Capital of France
> What is the capital of {country}?
country: France
has: Paris
"""
ASSERTIONS = {"has": True, "not": False}
"""Each with whether its text must be there."""
OF_THE_SUITE = ("agent", "attempts")


class TalksFormat(Format):
    """One message a line, and under it what its answer must hold."""

    name = "talks"
    title = "Talks"
    looks_for = "a .talk with messages (Talks)"
    files = "*.talk with lines that begin with >"
    endings = (".talk",)
    saves = adds_to_files = True
    saved_ending = ".talk"
    saved_endings = (".talk",)
    templates = True

    def recognises(self, path: Path, text: str) -> bool:
        return path.suffix == ".talk" and "\n>" in f"\n{text}"

    def read(self, path: str, text: str, config: Config, trust: Trust) -> Suite:
        suite = Suite(path, self.name, files=[str(config.root / path)])
        for number, key, value in _lines(text):
            case = suite.cases[-1] if suite.cases else None
            if key == "=":
                suite.cases = [*suite.cases, Case("", value, path, self.name, line=number)]
            elif key in OF_THE_SUITE and case is None:
                suite.settings[key] = value
            elif case is None or (key in ASSERTIONS and not case.turns):
                missing = "= NAME" if case is None else "> MESSAGE"
                suite.problems.append(Problem(path, number, key, f"nothing begins with {missing} before it"))
            elif key == ">":
                case.turns = [*case.turns, Turn(value, line=number)]
            elif key in ASSERTIONS:
                expected = Assertion(key, value, line=number)
                case.turns[-1].assertions = [*case.turns[-1].assertions, expected]
            elif key:
                case.vars = {**case.vars, key: value}
            else:
                suite.problems.append(
                    Problem(path, number, "", f"{value!r} is no line of a talk", "write KEY: VALUE")
                )
        attempts = str(suite.settings.get("attempts", 1))
        if not re.fullmatch(r"[1-9]\d{0,3}", attempts):
            suite.problems.append(Problem(path, 1, "attempts", f"must be a number from 1, not {attempts}"))
            attempts = "1"
        for case in suite.cases:
            case.agent = suite.settings.get("agent")
            case.attempts = case.required = int(attempts)
        return suite

    def handler(self, kind: str) -> Handler | None:
        return _judge if kind in ASSERTIONS else None

    def editor(self, suffix: str) -> Editor | None:
        return _accepted if suffix == ".talk" else None

    def new_file(self, talk: Talk) -> str:
        return f"agent: {talk.agent}\n" + _written(talk)

    def add_to(self, text: str, talk: Talk) -> str:
        return text.rstrip("\n") + "\n" + _written(talk)

    def first_suite(self) -> FirstSuite:
        return FirstSuite("talks/first.talk", FIRST, "a suite of talks", "t")

    def default_agent(self, name: str | None, config: Config) -> AgentSpec | None:
        """Who talks to nobody hears themselves."""
        return super().default_agent(name, config) or (AgentSpec("echo", "echo") if name is None else None)

    def says_attempts(self, case: Case, settings: Mapping[str, Any]) -> bool:
        return "attempts" in settings

    async def rendered(self, case: Case, scene: Scene) -> RenderedCase:
        given = {**scene.more_vars, **case.vars}
        try:
            texts = [(turn.text or "").format_map(given) for turn in case.turns]
        except (LookupError, ValueError) as error:
            raise RenderError(f"the message names {error}, which the case does not say") from None
        messages = [{"role": "user", "content": text} for text in texts]
        return RenderedCase("\n".join(texts), dict(case.vars), messages if len(texts) > 1 else None)

    def asked_in_turns(self, case: Case) -> int | None:
        return None

    def as_ours(self, document: Any, path: Path) -> OurResults | None:
        """`{"talks": [{name, asked, answered, good}]}`, which `export` writes."""
        if not isinstance(document, dict) or not isinstance(document.get("talks"), list):
            return None
        results = [
            {
                "name": one["name"], "format": self.name, "suite": one["suite"], "agent": one["agent"],
                "passed": one["good"], "message": "" if one["good"] else "no good", "attempt": 1,
                "details": {"response_text": one["answered"]},
            }
            for one in document["talks"]
        ]  # fmt: skip
        return OurResults(
            {"results": results, "run": {"id": path.stem, "note": f"read from {path.name}, of Talks"}}
        )


TALKS = TalksFormat()


def export(reader: RunReader, path: Path) -> None:
    """A run as Talks' own results file."""
    cases = {row.id: row for row in reader.cases()}
    found = []
    for row in reader.attempts():
        attempt, case = reader.attempt(row.id), cases[row.case_ref]
        if attempt is not None:
            own = {
                "name": case.name,
                "suite": case.suite,
                "agent": case.agent,
                "good": attempt.outcome == "passed",
            }
            found.append({**own, "answered": attempt.response_text})
    path.write_text(json.dumps({"talks": found}), "utf-8")


def _lines(text: str) -> Iterator[tuple[int, str, str]]:
    """The number, key and value of each line; what is no line of a talk has no key."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        found = re.fullmatch(r"([=>])\s*(.*)|(\w+):\s*(.*)", line)
        if found is None:
            yield number, "", line
        else:
            yield number, found[1] or found[3], found[2] if found[1] else found[4]


def _judge(assertion: Assertion, evidence: JudgeInput, judgement: Judgement) -> Verdict:
    text = evidence.replies[-1].text if evidence.replies else ""
    wanted, must = str(assertion.value), ASSERTIONS[assertion.type]
    holds = (wanted in text) == must
    rests_on = seen.texts(text, [wanted], forbidden=not must)
    reason = "" if holds else f"{'lacks' if must else 'has'} {wanted!r}"
    return verdict_of(assertion, holds, reason, rests_on, actual=text)


def _accepted(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """The suite with the line of one assertion as the answer has it."""
    lines = text.split("\n")
    if not 0 < verdict.line <= len(lines) or not lines[verdict.line - 1].startswith(f"{verdict.type}:"):
        raise EditError("the line has changed meanwhile: edit the case (e)")
    if verdict.type == "not":
        raise EditError("only a person can say what the answer must not hold: edit the case (e)")
    said = next(iter(facts(answer_to(attempt, verdict))), "")
    if not said:
        raise EditError("the answer holds nothing to look for")
    lines[verdict.line - 1] = f"{verdict.type}: {said}"
    return EditedValue("\n".join(lines), str(verdict.expected), said, verdict.line)


def _written(talk: Talk) -> str:
    lines = [f"= {talk.name}"]
    for turn in talk.turns:
        lines.append(f"> {turn.asked.replace('{', '{{').replace('}', '}}')}")
        lines += _expected(talk, turn)
    return "\n".join(lines) + "\n"


def _expected(talk: Talk, turn: SavedReply) -> list[str]:
    """What the case expected after this turn; where it expected nothing at all, what the last answer says."""
    turns = talk.case.turns if talk.case is not None else []
    own = turns[turn.turn - 1].assertions if 0 < turn.turn <= len(turns) else []
    said = talk.proposed(turn)[:1] if turn is talk.turns[-1] else []
    return [f"{one.type}: {one.value}" for one in own] or [f"has: {text}" for text in said]
