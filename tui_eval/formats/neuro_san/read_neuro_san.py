"""neuro-san's data-driven test cases (seed 004): one HOCON file, one case for each connection.

An interaction is a turn. The tests of its `response` are flattened breadth first, part by part
(`text`, `structure`, `sly_data`): a mapping is descended into, anything else is a stock test named
by its last key on the target named by those before. A list becomes one assertion per element; an
empty list becomes one assertion without a value, which only asks for the target to be there.

A target is dotted (`sly_data.equals`, `structure.answer`); a key that holds a dot itself stands in
double quotes (`sly_data."a.b".c`).

`success_ratio` "2/3" asks for 3 attempts of which 2 must pass. What stands before the first slash
and after the last counts (`1/9/2` is 1 of 2); a denominator below one means one attempt; no more
passes are needed than there are attempts, and at least one is. It stays in `options` as given.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tui_eval import extensions
from tui_eval.config.config_schema import MOST_ATTEMPTS
from tui_eval.config.project import Config, masker
from tui_eval.formats.near_miss import PassedOver, broken, is_slip, slip
from tui_eval.formats.neuro_san import hocon
from tui_eval.formats.neuro_san.hocon_text import HoconError, prepare
from tui_eval.guard.paths import read_file
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Assertion, Case, Problem, Suite, Turn
from tui_eval.suites import identity
from tui_eval.suites.read_values import Reading, kind, shown
from tui_eval.suites.saved_talk import Original

At = tuple[Hashable, ...]

ROOT_KEYS = (
    "agent", "connections", "success_ratio", "use_direct", "metadata", "timeout_in_seconds", "interactions",
)  # fmt: skip
INTERACTION_KEYS = (
    "text", "sly_data", "timeout_in_seconds", "chat_filter", "continue_conversation", "response",
)  # fmt: skip
PARTS = ("text", "structure", "sly_data")
STOCK_TESTS = ("value", "less", "greater", "keywords", "gist")
TESTS = tuple(n + t for t in STOCK_TESTS for n in ("", "not_"))
CONNECTIONS = ("direct", "http", "https", "mcp")


def recognises(path: Path, text: str) -> bool:
    """A .hocon whose root has `interactions` in the file itself. One too broken to be known counts
    where it mentions them, so that it is reported."""
    if path.suffix.lower() != ".hocon" or "interactions" not in text:
        return False
    return _has_interactions(path.as_posix(), text, Path.cwd(), follow=False)


def includes_interactions(path: str, text: str, root: Path) -> bool:
    """Whether the root of a .hocon has `interactions` by way of a file that it includes."""
    return "include" in text and _has_interactions(path, text, root, follow=True)


def _has_interactions(path: str, text: str, root: Path, *, follow: bool) -> bool:
    try:
        return ("interactions",) in prepare(text, path, root, Trust(), follow=follow).lines.places
    except HoconError:
        return not follow


def meant(file: PassedOver) -> list[Problem]:
    """Why a .hocon is no test case although it was meant as one: `interactions` by a slip, or from a file that cannot
    be included."""
    slips = {word for word in _KEY.findall(file.text) if is_slip(word, "interactions")}
    try:
        lines = prepare(file.text, file.path, file.root, Trust(), follow=False).lines
    except HoconError as error:
        known = slips and any(re.search(rf"\b{key}\b", file.text) for key in ("response", "text"))
        return [broken("neuro-san", error.problem)] if known else []
    for key in slips:
        if any((key, 0, one) in lines.places for one in INTERACTION_KEYS):
            return [slip("neuro-san", lines.file(key) or file.path, lines.at(key), key, "interactions")]
    return _missing_include(file, {str(place[0]) for place in lines.places})


def _missing_include(file: PassedOver, keys: set[str]) -> list[Problem]:
    """Why the interactions of a test case are not there, where it includes them. A network includes, too."""
    if "include" not in file.text or keys.isdisjoint(_OF_A_TEST) or "tools" in keys:
        return []
    try:
        prepared = prepare(file.text, file.path, file.root, Trust())
    except HoconError as error:
        return [broken("neuro-san", error.problem)]
    for one in prepared.problems:
        if one.key != "include":
            continue
        message = f"{one.message}: no interactions, and nothing of the file is run"
        return [
            Problem(one.path, one.line, one.key, message, "name the file that is meant", passed_over=True)
        ]
    return []


_KEY = re.compile(r"""([A-Za-z_-]{6,20})["']?\s*[=:{\[]""")
_OF_A_TEST = frozenset({"connections", "success_ratio", "use_direct"})
"""Keys of a test case that no agent network has."""


def as_written(case: Case, config: Config, trust: Trust) -> Original:
    """The case as its file has it now, with variables of the environment named (`hocon.NAMED`)."""
    try:
        text = read_file(config.root / case.suite).decode("utf-8-sig")
        found = read(case.suite, text, config, trust, named=True).cases
    except (OSError, UnicodeDecodeError, NeedsTrust):
        found = []
    return Original(next((one for one in found if one.connection == case.connection), None), {})


def read(path: str, text: str, config: Config, trust: Trust, *, named: bool = False) -> Suite:
    """Read a test case; `path` is from the project root. Never raises for content.

    Without an agent, a connection or a usable list of interactions there is no case. `named` as in `hocon.load`.
    """
    document = hocon.load(text, path, config.root, trust, named=named)
    suite = Suite(
        path=path, format="neuro_san", name=Path(path).stem, problems=document.problems, files=document.files
    )
    reading = Reading(path, document.lines, suite.problems)
    root = document.value
    if not isinstance(root, dict):
        if not any(problem.level == "error" for problem in suite.problems):
            reading.error((), f"the root must be a dictionary with interactions, not {kind(root)}")
        return _maybe_a_part(suite, document)
    case = Case(case_id="", name=Path(path).stem, suite=path, format="neuro_san")
    case.line = reading.places.at("interactions")
    place = reading.places.file("interactions")
    case.file = place if place != path else None
    reading.problems = case.problems
    # What stands there to be filled in elsewhere, with ${…}, is read, whatever it is called.
    read_elsewhere = document.lines.filled_in
    misplaced = [key for key in ("text", "response") if key not in read_elsewhere]
    reading.misplaced(root, misplaced, (), "an entry of interactions")
    reading.unknown_keys(root, ROOT_KEYS, (), said=(*misplaced, *read_elsewhere))
    connections = _connections(reading, root.get("connections"))
    turns = _turns(reading, root.get("interactions"))
    agent = root.get("agent")
    if agent is None or agent == "":
        reading.error((), "'agent' is missing", "name the agent network to be tested")
    else:
        case.agent = reading.text(agent, ("agent",), "agent")
    if not case.agent or not connections or turns is None:
        suite.problems += case.problems
        return _maybe_a_part(suite, document)
    case.turns = turns
    _settings(reading, root, case)
    ids = identity.Ids(masker(config).text)
    cases: list[Case] = []
    for order, connection in enumerate(connections):
        several = len(connections) > 1
        case_id = identity.case_id(path, case.name, connection=connection if several else None)
        one = msgspec.structs.replace(
            case, case_id=ids.take(case_id), connection=connection, order=order, problems=list(case.problems)
        )
        if several:  # rows of one test; counted with the name that older versions gave each
            one.name = f"{case.name} [connection={connection}]"
        one.content_hash = identity.content_hash(one)
        one.name, one.variant = case.name, connection if several else ""
        cases.append(one)
    suite.cases = cases
    return suite


def _maybe_a_part(suite: Suite, document: hocon.HoconDocument) -> Suite:
    """What asks no agent may be interactions that others include: those say what is wrong in it, and alone it may not
    even be read, without what they fill in. Where its agent is misspelled it is a test."""
    names = {str(place[0]) for place in document.lines.places if place} - document.lines.filled_in
    if "agent" not in names and not any(close_to(name, ("agent",)) for name in names):
        suite.problems = [msgspec.structs.replace(one, passed_over=True) for one in suite.problems]
    return suite


def ratio(value: Any) -> tuple[int, int]:
    """The attempts and the passes required by a `success_ratio`.

    Raises:
        ValueError: it is no text with two whole numbers around a slash; the text says so.
    """
    if not isinstance(value, str):
        raise ValueError(f'must be a text like "2/3", not {kind(value)}')
    if "/" not in value:
        raise ValueError(f'must be a text like "2/3": {shown(value)} has no slash')
    parts = value.split("/")
    try:
        passes, attempts = int(parts[0]), max(1, int(parts[-1]))
    except ValueError:
        raise ValueError(f"must be two whole numbers around a slash, not {shown(value)}") from None
    if attempts > MOST_ATTEMPTS:
        raise ValueError(f"asks for more than {MOST_ATTEMPTS:,} attempts: {shown(value)}")
    return attempts, max(1, min(passes, attempts))


def odd_ratio(case: Case) -> Iterator[tuple[str, str, str]]:
    """A `success_ratio` that neuro-san takes for another one, for `check`."""
    value = case.options.get("success_ratio")
    if not isinstance(value, str):
        return
    parts = value.split("/")
    try:
        passes, attempts = int(parts[0]), int(parts[-1])
    except ValueError:
        return  # said where it is read
    asked = max(1, attempts)
    taken = f"{max(1, min(passes, asked))} of {asked}"
    if len(parts) > 2:
        yield (
            "success_ratio",
            f"{value!r} has more than one slash: it is taken for {taken}",
            'write it as "2/3"',
        )
    elif passes > attempts or passes < 1:
        message = f"{value!r} is impossible: it is taken for {taken}, as in neuro-san"
        yield "success_ratio", message, 'write it as "2/3"'


def target(part: str, keys: tuple[str, ...]) -> str:
    """`sly_data.equals`; a key that holds a dot stands in double quotes."""
    return ".".join([part, *(f'"{key}"' if "." in key or not key else key for key in keys)])


def _refused(value: str) -> str:
    """Why no header has this value; empty where one may."""
    if value[0].isspace():
        return "begins with a blank"
    if "\n" in value or "\r" in value:
        return "has several lines"
    return "has letters that no header has" if max(value) > "\xff" else ""


def _settings(reading: Reading, root: dict[str, Any], case: Case) -> None:
    if "success_ratio" in root:
        case.options["success_ratio"] = root["success_ratio"]
        try:
            case.attempts, case.required = ratio(root["success_ratio"])
        except ValueError as error:
            reading.error(("success_ratio",), str(error), tool="refuses")
    direct = root.get("use_direct")
    if direct is not None:
        if isinstance(direct, bool):
            case.options["use_direct"] = direct
        else:
            reading.error(("use_direct",), f"must be true or false, not {kind(direct)}")
    metadata = root.get("metadata")
    if isinstance(metadata, dict):
        case.request_metadata = metadata
        for name, value in metadata.items():
            if value is not None and not isinstance(value, str):
                message = f"is {kind(value)}: its text is sent; neuro-san's own client refuses it over http"
                reading.note(("metadata", name), message, "put it in quotes")
            elif value and (what := _refused(value)):
                reading.note(("metadata", name), f"{what}: neuro-san's own client refuses it over http")
    elif metadata is not None:
        reading.error(("metadata",), f"must be a dictionary, not {kind(metadata)}")
    limit = root.get("timeout_in_seconds")
    case.timeout = _timeout(reading, limit, ("timeout_in_seconds",), "compat: reference ends it at once")
    if case.timeout is None and isinstance(limit, int | float) and limit < 0:
        case.options["timeout_in_seconds"] = limit


def _timeout(reading: Reading, value: Any, at: At, below: str = "") -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        reading.error(at, f"must be a number of seconds, not {kind(value)}")
        return None
    if value < 0:
        reading.note(at, "is negative: there is no limit", below)
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _connections(reading: Reading, value: Any) -> list[str]:
    at: At = ("connections",)
    if value is None:
        return ["direct"]
    listed = value if isinstance(value, list) else [value]
    if not listed:
        reading.error(at, "names no connection", f"one or more of {', '.join(CONNECTIONS)}")
    found: list[str] = []
    for item in listed:
        if item in CONNECTIONS:
            found.append(item)
            continue
        slip = close_to(item, CONNECTIONS) if isinstance(item, str) else None
        cure = f"did you mean {slip!r}?" if slip else f"known: {', '.join(CONNECTIONS)}"
        reading.error(at, f"unknown connection {shown(item)}", cure)
        return []
    for item in dict.fromkeys(found):
        if (times := found.count(item)) > 1:
            reading.note(
                at, f"names {item} {times} times: it is asked once", "success_ratio asks more than once"
            )
    return list(dict.fromkeys(found))


def _turns(reading: Reading, value: Any) -> list[Turn] | None:
    at: At = ("interactions",)
    if not isinstance(value, list):
        message = "'interactions' is missing" if value is None else f"must be a list, not {kind(value)}"
        reading.error(at, message)
        return None
    if not value:
        reading.error(at, "is empty", "give at least one interaction")
        return None
    turns: list[Turn] = []
    noted: set[str] = set()
    for index, entry in enumerate(value):
        here = (*at, index)
        if not isinstance(entry, dict):
            reading.error(here, f"an interaction must be a dictionary, not {kind(entry)}")
            return None
        turns.append(_turn(reading, entry, here, index + 1, noted))
    return turns


def _turn(reading: Reading, entry: dict[str, Any], at: At, number: int, noted: set[str]) -> Turn:
    reading.misplaced(entry, ("structure",), at, "response")
    reading.misplaced(entry, TESTS, at, "a part of response (text, structure, sly_data)")
    reading.unknown_keys(entry, INTERACTION_KEYS, at, said=("structure", *TESTS))
    turn = Turn(text=None, line=reading.places.at(*at))
    if entry.get("text") is not None:
        turn.text = reading.text(entry["text"], (*at, "text"), "text")
    sly_data = entry.get("sly_data")
    if isinstance(sly_data, dict):
        turn.sly_data = sly_data
    elif sly_data is not None:
        reading.error((*at, "sly_data"), f"must be a dictionary, not {kind(sly_data)}")
    turn.timeout = _timeout(reading, entry.get("timeout_in_seconds"), (*at, "timeout_in_seconds"))
    chat_filter = entry.get("chat_filter")
    if chat_filter is not None:
        turn.chat_filter = chat_filter  # sent as it is
        if not isinstance(chat_filter, str) or chat_filter.upper() not in ("MINIMAL", "MAXIMAL"):
            said = f"{kind(chat_filter)} is sent as it is"
            if isinstance(chat_filter, str):
                said += ", and servers take it for MINIMAL"
            elif isinstance(chat_filter, dict | list):  # 0.6.98: "Internal server error"
                said += ", and servers answer with an error"
            reading.note((*at, "chat_filter"), said, 'write "MINIMAL" or "MAXIMAL"')
    going_on = entry.get("continue_conversation")
    if isinstance(going_on, bool):
        turn.continue_conversation = going_on
    elif going_on is None and "continue_conversation" in entry:
        turn.continue_conversation = False  # only an absent key means true
        reading.note((*at, "continue_conversation"), "is null, which neuro-san takes for false")
    elif going_on is not None:
        reading.error((*at, "continue_conversation"), f"must be true or false, not {kind(going_on)}")
    response = entry.get("response")
    if isinstance(response, dict):
        turn.assertions = _response(reading, response, (*at, "response"), number, noted)
    elif response is not None:
        message = f"must be a dictionary of tests, not {kind(response)}"
        reading.error((*at, "response"), message, tool="ignores")
    return turn


def _response(
    reading: Reading, response: dict[str, Any], at: At, number: int, noted: set[str]
) -> list[Assertion]:
    for part in response:
        if part not in PARTS:
            slip = close_to(part, PARTS)
            cure = f"did you mean {slip!r}?" if slip else f"the parts are {', '.join(PARTS)}"
            reading.error((*at, part), f"unknown part of the response {part!r}", cure, "ignores")
    found: list[Assertion] = []
    for part in PARTS:
        tests = response.get(part)
        if tests is None:
            continue
        if not isinstance(tests, dict):
            cure = f"say how to test it, for example keywords: {shown(tests, 30)}"
            reading.error((*at, part), f"must be a dictionary of tests, not {kind(tests)}", cure, "ignores")
            continue
        if not tests:
            reading.note((*at, part), "is empty and tests nothing")
        found += _tests(reading, part, tests, (*at, part), number, noted)
    return found


def _tests(
    reading: Reading, part: str, tests: dict[str, Any], at: At, number: int, noted: set[str]
) -> list[Assertion]:
    found: list[Assertion] = []
    waiting: deque[tuple[tuple[str, ...], Any]] = deque(((key,), value) for key, value in tests.items())
    while waiting:
        keys, value = waiting.popleft()
        here = (*at, *keys)
        if isinstance(value, dict):
            if not value:
                reading.note(here, "is empty and tests nothing")
            waiting.extend(((*keys, key), item) for key, item in value.items())
            continue
        name = keys[-1].lower()
        if name not in TESTS and name not in extensions.assertion_types("neuro_san"):
            reading.error(here, f"unknown test {keys[-1]!r}", _cure(keys), "ignores")
            continue
        if part == "text" and len(keys) > 1:
            # neuro-san does not ignore it: it finds nothing there, and its test fails.
            cure = "put the tests directly under text"
            reading.error(here, "text has no keys of its own", cure, "ignores")
        if value is None:
            reading.note(here, "is null and tests nothing")
            continue
        if "less" in name or "greater" in name:
            _note_order(reading, here, name, noted)
        found += _elements(reading, name, target(part, keys[:-1]), value, here, number)
    return found


def _elements(reading: Reading, name: str, where: str, value: Any, at: At, number: int) -> list[Assertion]:
    if not isinstance(value, list):
        return [Assertion(name, value, where, turn=number, line=reading.places.at(*at))]
    if not value:
        reading.note(at, "is empty and asks only that there is something to test")
        return [Assertion(name, target=where, turn=number, line=reading.places.at(*at))]
    return [
        Assertion(name, item, where, turn=number, line=reading.places.at(*at, index))
        for index, item in enumerate(value)
    ]


def _note_order(reading: Reading, at: At, name: str, noted: set[str]) -> None:
    if name in noted:
        return
    noted.add(name)
    meaning = {
        "less": "the answer is less than the value",
        "not_less": "the answer is not less than the value",
        "greater": "the answer is greater than the value",
        "not_greater": "the answer is not greater than the value",
    }[name]
    reading.note(
        at,
        f"passes when {meaning}, as documented; neuro-san itself compares the other way round",
        "compat: reference does as neuro-san",
    )


def _cure(keys: tuple[str, ...]) -> str:
    slip = close_to(keys[-1], TESTS)
    if slip:
        return f"did you mean {slip!r}?"
    if len(keys) > 1 and keys[-2].lower() in TESTS:
        return f"to expect a whole dictionary wrap it in a list ({keys[-2]}: [{{…}}])"
    return f"the tests are {', '.join(TESTS)}"
