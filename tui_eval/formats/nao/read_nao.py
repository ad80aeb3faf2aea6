"""nao tests (seed 000; nao-core 0.3.29 where it is silent): one YAML mapping, one test, one case.

`prompt` is the user's message, `sql` the query whose rows the answer must equal (an assertion of
type `sql` on the target `rows`), `assertions` a list of `tool_call`s, whose value is the mapping
`{tool, args, min_count}` as given. `comparison` is ours: `rtol`, `atol`, `decimals`, `ordered`
and `key` for this case alone.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tui_eval import extensions
from tui_eval.config.project import Config, masker
from tui_eval.formats.near_miss import PassedOver, RootKey, Shape, in_yaml
from tui_eval.guard.paths import read_file
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import Trust
from tui_eval.model import Assertion, Case, Problem, Suite, Turn
from tui_eval.suites import identity
from tui_eval.suites.read_values import Reading, kind, misread_into_cases
from tui_eval.yaml import yaml_lines

KEYS = ("name", "prompt", "sql", "database", "assertions", "comparison")
TOOL_CALL_KEYS = ("type", "tool", "args", "min_count")
COMPARISON_KEYS = ("rtol", "atol", "decimals", "ordered", "key")

_ROOT_KEY = r"""(?m)^["']?([A-Za-z_][\w-]*)["']?[ \t]*:(?=\s|$)"""
_FOREIGN = frozenset({"prompts", "providers", "test_cases", "tests"})
_DATA = frozenset({"sql", "assertions"})


def recognises(path: Path, text: str) -> bool:
    """A YAML mapping with `prompt` beside `sql` or `assertions`, whatever else it holds; below a `tests/`
    folder `prompt` alone is enough, and so is `Prompt`, or `sql` or `assertions` beside a `name` or a
    misspelt `prompt`, which is then reported rather than passed over. `path` is from the project root,
    where it lies in it."""
    keys = _root_keys(path, text)
    data = bool(keys & _DATA)
    if data and "prompt" in keys:
        return True
    if keys & _FOREIGN:
        return False
    if "prompt" in keys:
        return "tests" in path.parts[:-1]
    misspelt = "name" in keys or any(close_to(key, ("prompt",)) for key in keys)
    other_case = any(key.lower() == "prompt" for key in keys)
    return ((data and misspelt) or other_case) and "tests" in path.parts[:-1]


def is_test(path: Path, text: str) -> bool:
    """A YAML mapping below a `tests/` folder with `prompt` beside `sql` or `assertions`: a nao test for
    certain, though another format's words (`tests`, `providers`, `test_cases`) stand there too."""
    if "tests" not in path.parts[:-1]:
        return False
    keys = _root_keys(path, text)
    return "prompt" in keys and bool(keys & _DATA)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_query(value: Any) -> bool:
    return isinstance(value, str) and re.match(_QUERY, value) is not None


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _tool_calls(value: Any) -> bool:
    return _is_list(value) and any(isinstance(one, dict) and "tool" in one for one in value)


_QUERY = r"(?is)(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:SELECT|WITH|FROM|VALUES)\b"
SHAPE = Shape(
    "nao",
    (
        (RootKey("prompt", _is_text, _is_text),),
        (RootKey("sql", _is_text, _is_query), RootKey("assertions", _is_list, _tool_calls)),
    ),
    r"(?i)\b(?:SELECT|WITH|tool_call)\b",
)


def meant(file: PassedOver) -> list[Problem]:
    """Why a file is no test although it was meant as one."""
    return in_yaml(SHAPE, file)


def _root_keys(path: Path, text: str) -> set[str]:
    if path.suffix.lower() not in (".yaml", ".yml") or not re.search("[Pp]rompt|PROMPT|sql|assertions", text):
        return set()
    keys = set(re.findall(_ROOT_KEY, text))
    if keys:
        return keys
    value = yaml_lines.load(text, str(path)).value
    return {str(key) for key in value} if isinstance(value, dict) else set()


def read(path: str, text: str, config: Config, trust: Trust) -> Suite:
    """Read a test; `path` is from the project root. Never raises for content.

    What nao refuses a file for (no prompt, a broken assertion) leaves a suite without a case.
    """
    document = yaml_lines.load(text, path)
    suite = Suite(path=path, format="nao", name=Path(path).stem, problems=document.problems)
    reading = Reading(path, document.lines, suite.problems)
    root = document.value
    if not isinstance(root, dict):
        if not suite.problems:
            reading.error((), f"a nao test must be a mapping with a prompt, not {kind(root)}")
        return suite
    case = Case(case_id="", name=Path(path).stem, suite=path, format="nao", line=document.lines.at())
    reading.problems = case.problems
    reading.unknown_keys(root, KEYS, (), own=_FOREIGN if "prompt" in root else ())
    case.name = reading.name(root.get("name"), ("name",)) or case.name
    prompt = None
    if root.get("prompt") is None:
        reading.error((), "'prompt' is missing", "a nao test needs a prompt")
    else:
        prompt = reading.text(root["prompt"], ("prompt",), "'prompt'")
    case.database = reading.name(root.get("database"), ("database",)) or None
    case.comparison = _comparison(reading, root.get("comparison"))
    before = len(case.problems)
    assertions = _assertions(reading, root.get("assertions"))
    if prompt is None or assertions is None or len(case.problems) > before:
        suite.problems += case.problems
        return suite
    case.turns = [Turn(text=prompt, line=document.lines.at("prompt"))]
    case.assertions = assertions + _sql(reading, root.get("sql"))
    case.case_id = identity.Ids(masker(config).text).take(identity.case_id(path, case.name))
    case.content_hash = identity.content_hash(case)
    suite.name = case.name
    suite.cases = [case]
    misread_into_cases(document.misread, suite, {})
    return suite


def _sql(reading: Reading, value: Any) -> list[Assertion]:
    if value is None or value == "":
        return []
    if not isinstance(value, str):
        reading.error(("sql",), f"must be text, not {kind(value)}")
        return []
    return [Assertion(type="sql", value=value, target="rows", line=reading.places.at("sql"))]


def _assertions(reading: Reading, items: Any) -> list[Assertion] | None:
    """The `tool_call`s; None after the first problem, in nao's own words and order of checks."""
    if items is None:
        return []
    at = ("assertions",)
    if not isinstance(items, list):
        reading.error(at, "'assertions' must be a list")
        return None
    found: list[Assertion] = []
    for number, item in enumerate(items):
        if isinstance(item, dict) and str(item.get("type")) in extensions.assertion_types("nao"):
            value = {key: part for key, part in item.items() if key != "type"}
            found.append(Assertion(item["type"], value, line=reading.places.at(*at, number)))
            continue
        wrong, cure = _tool_call_problem(item, number)
        if wrong:
            reading.error((*at, number), wrong, cure)
            return None
        value = {key: item[key] for key in ("tool", "args", "min_count") if item.get(key) is not None}
        value["tool"] = value["tool"].strip()
        line = reading.places.at(*at, number)
        found.append(Assertion(type="tool_call", value=value, target="tools", line=line))
    return found


def _tool_call_problem(item: Any, number: int) -> tuple[str, str]:
    if not isinstance(item, dict):
        return f"assertions[{number}] must be a mapping", ""
    unknown = sorted((key for key in item if key not in TOOL_CALL_KEYS), key=str)
    slips = {close_to(str(key), TOOL_CALL_KEYS): key for key in reversed(unknown)}
    if item.get("type") is None:
        cure = f"did you mean 'type' by {slips['type']!r}?" if "type" in slips else "add type: tool_call"
        return f"assertions[{number}] is missing 'type'", cure
    if item["type"] != "tool_call":
        return f"assertions[{number}] has unknown type {item['type']!r}; supported: tool_call", ""
    tool, args = item.get("tool"), item.get("args")
    if not isinstance(tool, str) or not tool.strip():
        cure = f"did you mean 'tool' by {slips['tool']!r}?" if "tool" in slips else "name the tool"
        return "tool_call assertion requires a non-empty 'tool' string", cure
    if args is not None and not isinstance(args, dict):
        return "tool_call assertion 'args' must be a mapping when provided", ""
    if args == {}:
        return "tool_call assertion 'args' must not be empty; omit 'args' to match any call to the tool", ""
    count = item.get("min_count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        return "tool_call assertion 'min_count' must be an integer >= 1", ""
    if unknown:
        slip = close_to(str(unknown[0]), TOOL_CALL_KEYS)
        return f"unknown tool_call assertion fields: {unknown}", f"did you mean {slip!r}?" if slip else ""
    return "", ""


def _comparison(reading: Reading, value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    at = ("comparison",)
    if not isinstance(value, dict):
        reading.error(
            at, f"must be a mapping, not {kind(value)}", f"known keys: {', '.join(COMPARISON_KEYS)}"
        )
        return None
    result: dict[str, Any] = {}
    for key, item in value.items():
        here = (*at, key)
        if key in ("rtol", "atol"):
            number = None if item is None else reading.number(item, here, least=0)
            if number is not None:
                result[key] = number
        elif key == "decimals":
            if item is None or (isinstance(item, int) and not isinstance(item, bool) and item >= 0):
                result[key] = item
            else:
                reading.error(here, f"must be a whole number of 0 or more, not {kind(item)}")
        elif key == "ordered":
            if isinstance(item, bool):
                result[key] = item
            else:
                reading.error(here, f"must be true or false, not {kind(item)}")
        elif key == "key":
            names = [item] if isinstance(item, str) else item
            if isinstance(names, list) and names and all(isinstance(name, str) for name in names):
                result[key] = names
            elif item is not None:
                reading.error(here, "must be a column name or a list of them")
        else:
            slip = close_to(str(key), COMPARISON_KEYS)
            cure = f"did you mean {slip!r}?" if slip else f"known keys: {', '.join(COMPARISON_KEYS)}"
            reading.error(here, f"unknown key {str(key)!r}", cure)
    return result


def refused(file: Path, shown: str) -> list[Problem]:
    """Why nao runs nothing while this file, which is no test, is there (formats/nao.md 1). A mapping without a prompt
    may be anything else, like the script of an agent."""
    if file.suffix.lower() not in (".yaml", ".yml") or not _below_tests_of_a_project(file):
        return []
    document = yaml_lines.load(read_file(file).decode("utf-8-sig", "replace"), shown)
    if document.problems:
        return document.problems[:1]
    if isinstance(document.value, dict):
        return []
    what = "the file is empty" if document.value is None else "the file is no mapping"
    return [Problem(shown, 1, "", what, "a nao test needs a prompt; write one, or remove the file")]


def _below_tests_of_a_project(file: Path) -> bool:
    """Whether nao itself would take the file for a test: below `tests/` beside a nao_config.yaml."""
    if "tests" not in file.parts:
        return False
    projects = (above.parent for above in file.parents if above.name == "tests")
    names = ("nao_config.yaml", "nao_config.yml")
    return any((project / name).is_file() for project in projects for name in names)
