"""Suites of the StartToAgent guide (seed 001): a YAML mapping with a list under `test_cases`.

Each case has `input` or `messages` and what is `expected` of the final state of the conversation.
All assertions are therefore the case's own (no turn). `should_contain`, `should_not_contain` and
`tools_used` become one assertion per listed text; a scalar where a list is meant is a list of one.
Any key under `expected` that the guide does not know asks for an equal value in the agent's
metadata, unless it looks like a slip for a key the guide knows.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from tui_eval import extensions
from tui_eval.config.project import Config, masker
from tui_eval.formats.near_miss import PassedOver, RootKey, Shape, in_yaml
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import Trust
from tui_eval.model import Assertion, Case, Problem, Suite, Turn
from tui_eval.suites import identity
from tui_eval.suites.read_values import Reading, kind, misread_into_cases, shown
from tui_eval.yaml import yaml_lines

At = tuple[Hashable, ...]

SUITE_KEYS = ("agent", "model", "test_cases")
CASE_KEYS = ("name", "input", "messages", "expected")
LISTS = {"should_contain": "text", "should_not_contain": "text", "tools_used": "tools"}
LIMITS = {
    "max_tool_calls": "tools",
    "max_input_tokens": "usage.input_tokens",
    "max_output_tokens": "usage.output_tokens",
}
KNOWN = (*LISTS, *LIMITS, "escalated", "escalation_priority")

_LIST_AT_ROOT = re.compile(
    r"""^["']?test_cases["']?[ \t]*:[ \t]*(?:\[|[&!]|(?:\#[^\n]*)?\r?\n(?:[ \t]*(?:\#[^\n]*)?\r?\n)*[ \t]*-\s)""",
    re.MULTILINE,
)


def recognises(path: Path, text: str) -> bool:
    """A YAML mapping with a list under `test_cases`. Ordinary files are not parsed for this."""
    if path.suffix.lower() not in (".yaml", ".yml") or "test_cases" not in text:
        return False
    if _LIST_AT_ROOT.search(text):
        return True
    value = yaml_lines.load(text, str(path)).value
    return isinstance(value, dict) and isinstance(value.get("test_cases"), list)


def _cases_like(value: Any) -> bool:
    """Whether a list is one of cases beyond doubt, though its key is not `test_cases`. Exercises for programmers have
    `testcases` with `input` and `expected` too, but no messages that an agent could be sent, or no assertions."""
    return isinstance(value, list) and any(_case_like(entry) for entry in value)


def _case_like(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    message, expected = entry.get("input", entry.get("messages")), entry.get("expected", {})
    if not (isinstance(message, str) or ("messages" in entry and isinstance(message, list))):
        return False
    return isinstance(expected, dict) and ("expected" in entry or entry.keys() <= set(CASE_KEYS))


def _no_list(value: Any, root: dict[Any, Any]) -> bool:
    """Whether cases may be meant by what is no list of them. A number, or a mapping of numbers, counts some; a text
    among keys of another tool names its files."""
    if isinstance(value, dict):
        return _case_like(value) or any(_case_like(one) for one in value.values())  # one without its dash
    alone = root.keys() <= {*SUITE_KEYS, "name", "description"}
    return alone and (value is None or isinstance(value, str))


SHAPE = Shape(
    "StartToAgent",
    (
        (
            RootKey(
                "test_cases", lambda value: isinstance(value, list), _cases_like, _no_list, "a list of cases"
            ),
        ),
    ),
    r"""(?m)^[ \t]*(?:-[ \t]+)?["']?(?:input|messages|expected)["']?[ \t]*:""",
)


def meant(file: PassedOver) -> list[Problem]:
    """Why a file is no suite although it was meant as one."""
    return in_yaml(SHAPE, file)


def read(path: str, text: str, config: Config, trust: Trust) -> Suite:
    """Read a suite; `path` is from the project root. Never raises for content.

    What is wrong with one case stands in that case's `problems`; a case without a usable message
    is left out and reported by the suite.
    """
    document = yaml_lines.load(text, path)
    suite = Suite(path=path, format="start_to_agent", name=Path(path).stem, problems=document.problems)
    reading = Reading(path, document.lines, suite.problems)
    of_yaml = len(suite.problems)
    root = document.value
    if not isinstance(root, dict):
        if not suite.problems:
            reading.error((), f"the file must be a mapping with test_cases, not {kind(root)}")
        return suite
    reading.misplaced(root, ("input", "messages", "expected"), (), "an entry of test_cases")
    reading.misplaced(root, KNOWN, (), "expected, in an entry of test_cases")
    reading.unknown_keys(root, SUITE_KEYS, (), said=(*CASE_KEYS[1:], *KNOWN))
    agent = reading.name(root.get("agent"), ("agent",)) or None
    model = reading.name(root.get("model"), ("model",)) or None
    if model is not None:
        suite.settings["model"] = model
    # What is wrong beside the cases is wrong with each: `agnet:` asks somebody else.
    everywhere = [problem for problem in suite.problems[of_yaml:] if problem.level == "error"]
    entries = root.get("test_cases")
    if not isinstance(entries, list):
        reading.error(("test_cases",), f"must be a list of cases, not {kind(entries)}")
        return suite
    if not entries:
        reading.error(("test_cases",), "is empty", "give at least one case")
    ids = identity.Ids(masker(config).text)
    cases: list[Case] = []
    under: dict[At, Case] = {}
    for number, entry in enumerate(entries):
        case = _case(reading, entry, number)
        reading.problems = suite.problems
        if case is None:
            continue
        case.agent, case.model = agent, model
        case.problems = [*everywhere, *case.problems]
        case.case_id = ids.take(
            identity.case_id(path, case.name, texts=[turn.text for turn in case.turns]),
        )
        case.content_hash = identity.content_hash(case)
        case.name = case.name or f"case {number + 1}"
        cases.append(case)
        under["test_cases", number] = case
    suite.cases = cases
    misread_into_cases(document.misread, suite, under)
    return suite


def _case(reading: Reading, entry: Any, number: int) -> Case | None:
    at: At = ("test_cases", number)
    if not isinstance(entry, dict):
        reading.error(at, f"a case must be a mapping, not {kind(entry)}")
        return None
    case = Case(case_id="", name="", suite=reading.path, format="start_to_agent", order=number)
    case.line = reading.places.at(*at)
    suite_problems, reading.problems = reading.problems, case.problems
    turns = _turns(reading, entry, at)
    if turns is None:
        suite_problems += case.problems
        return None
    case.turns = turns
    if len(turns) == 1 and isinstance(entry.get("messages"), list):
        case.options["messages"] = True  # a list of one: the guide's function is given that, and no text
    reading.misplaced(entry, KNOWN, at, "expected")
    reading.unknown_keys(entry, CASE_KEYS, at, said=KNOWN)
    case.name = reading.name(entry.get("name"), (*at, "name"))
    expected = entry.get("expected")
    if isinstance(expected, dict):
        for key, value in expected.items():
            case.assertions += _assertions(reading, str(key), value, (*at, "expected", key))
    elif expected is not None:
        reading.error((*at, "expected"), f"must be a mapping of assertions, not {kind(expected)}")
    return case


def _turns(reading: Reading, entry: dict[Any, Any], at: At) -> list[Turn] | None:
    has_input, has_messages = entry.get("input") is not None, entry.get("messages") is not None
    if has_input and has_messages:
        reading.error((*at, "messages"), "the case has both input and messages", "keep one of them")
        return None
    if not has_input and not has_messages:
        slips = [key for key in entry if close_to(str(key), ("input", "messages"))]
        if slips:
            reading.unknown_keys({slips[0]: None}, CASE_KEYS, at)
        else:
            reading.error(at, "the case has neither input nor messages", "give it one of them")
        return None
    if has_input:
        text = reading.text(entry["input"], (*at, "input"), "a message")
        return None if text is None else [Turn(text=text, line=reading.places.at(*at, "input"))]
    messages = entry["messages"]
    place: At = (*at, "messages")
    if isinstance(messages, list) and not messages:
        reading.error(place, "messages is empty", "give at least one message")
        return None
    listed = messages if isinstance(messages, list) else [messages]
    turns: list[Turn] = []
    for index, message in enumerate(listed):
        here = (*place, index) if isinstance(messages, list) else place
        text = reading.text(message, here, "a message")
        if text is None:
            return None
        turns.append(Turn(text=text, line=reading.places.at(*here)))
    return turns


def _assertions(reading: Reading, key: str, value: Any, at: At) -> list[Assertion]:
    if key in LISTS:
        return _listed(reading, key, value, at)
    line = reading.places.at(*at)
    if key in LIMITS:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            reading.error(at, f"must be a number, not {kind(value)}")
            return []
        if not value >= 0:
            reading.error(at, f"must be 0 or more, not {shown(value)}")
            return []
        return [Assertion(type=key, value=value, target=LIMITS[key], line=line)]
    if key == "escalated" and not isinstance(value, bool):
        reading.error(at, f"must be true or false, not {kind(value)}")
        return []
    if key not in KNOWN and key not in extensions.assertion_types("start_to_agent"):
        slip = close_to(key, KNOWN)
        if slip is not None:
            reading.error(at, f"unknown assertion {key!r}", f"did you mean {slip!r}?")
            return []
    return [Assertion(type=key, value=value, target=f"metadata.{key}", line=line)]


def _listed(reading: Reading, key: str, value: Any, at: At) -> list[Assertion]:
    found: list[Assertion] = []
    if value == []:
        reading.note(at, "is empty: it asks for nothing")
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        here = (*at, index) if isinstance(value, list) else at
        text = reading.text(item, here, key)
        if text is not None:
            line = reading.places.at(*here)
            found.append(Assertion(type=key, value=text, target=LISTS[key], line=line))
    return found
