"""The cases of a suite as its `beforeAll` hooks see and leave them: tests, prompts and defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tui_eval.config import Config
from tui_eval.guard.trust import Trust
from tui_eval.model import Case, Compat, Turn
from tui_eval.promptfoo_words import test_of
from tui_eval.suites import identity
from tui_eval.suites.promptfoo.shape import with_test


def suite_of(cases: Sequence[Case], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `beforeAll` and `afterAll` see of a suite: each test once, prompts, providers, settings."""
    prompts = {case.prompt: case.turns[0].text if case.turns else "" for case in cases}
    providers = {
        case.agent: {
            "id": case.provider.get("id") if isinstance(case.provider, dict) else case.agent,
            "label": case.provider.get("label") if isinstance(case.provider, dict) else None,
        }
        for case in cases
    }
    return {
        "prompts": [{"raw": raw, "label": label} for label, raw in prompts.items()],
        "providers": list(providers.values()),
        "tests": [test_of(group[0]) for group in _by_test(cases)],
        "scenarios": [],
        "defaultTest": {},
        "nunjucksFilters": settings.get("nunjucksFilters") or {},
        "derivedMetrics": settings.get("derivedMetrics") or [],
        "extensions": settings.get("extensions") or [],
        "env": {},
    }


def with_tests(
    cases: Sequence[Case], tests: list[Any], config: Config, trust: Trust, compat: Compat
) -> list[Case]:
    """The cases with the tests that a hook left: one that it changed is changed in every column, one that it
    added gets a case in every column, one that it took out has none."""
    groups = _by_test(cases)
    before = [test_of(group[0]) for group in groups]
    columns = list({(case.agent, case.prompt): case for case in cases}.values())
    unused = set(range(len(before)))
    ids = identity.Ids()
    result: list[Case] = []
    for place, test in enumerate(tests):
        same = next((index for index in sorted(unused) if before[index] == test), None)
        if same is None and place in unused and before[place] not in tests:
            same = place
        group = columns if same is None else groups[same]
        if same is not None:
            unused.discard(same)
        for case in group:
            changed = with_test(case, test, config, trust, compat)
            made = msgspec.structs.replace(changed, test_number=place + 1)
            if same is None:
                made = msgspec.structs.replace(made, case_id=_id_of(made))
            case_id = ids.take(made.case_id)
            result.append(msgspec.structs.replace(made, case_id=case_id, order=len(result)))
    return result


def mapping(value: Any) -> dict[str, Any]:
    """A mapping, empty where there is none."""
    return value if isinstance(value, dict) else {}


def with_default(test: Any, default: Any) -> Any:
    """A test with the `defaultTest` that a hook made under it."""
    if not isinstance(test, dict) or not isinstance(default, dict):
        return test
    merged = {**{key: default[key] for key in ("threshold", "provider") if key in default}, **test}
    for key in ("vars", "options", "metadata"):
        if isinstance(default.get(key), dict):
            merged[key] = {**default[key], **mapping(test.get(key))}
    if isinstance(default.get("assert"), list) and not mapping(test.get("options")).get(
        "disableDefaultAsserts"
    ):
        merged["assert"] = [*default["assert"], *(test.get("assert") or [])]
    return merged


def with_prompts(cases: Sequence[Case], prompts: list[Any]) -> list[Case]:
    """The cases with the prompts that a hook left: changed texts, new columns, and none for those it took."""
    wanted = {str(p.get("label") or p.get("raw")): p.get("raw") for p in prompts if isinstance(p, dict)}
    ids = identity.Ids()
    result: list[Case] = []
    for group in _by_test(cases):
        for before, agent in enumerate(dict.fromkeys(case.agent for case in group)):
            own = {case.prompt: case for case in group if case.agent == agent}
            for number, (label, raw) in enumerate(wanted.items(), before * len(wanted) + 1):
                case = own.get(label) or next(iter(own.values()))
                turn = case.turns[0] if case.turns else Turn(None)
                if label not in own or (isinstance(raw, str) and turn.text != raw):
                    options = {
                        k: v for k, v in case.options.items() if k not in ("promptFunction", "promptConfig")
                    }
                    turns = [msgspec.structs.replace(turn, text=str(raw))]
                    case = msgspec.structs.replace(case, prompt=label, turns=turns, options=options)
                    case = msgspec.structs.replace(
                        case, case_id=_id_of(case), content_hash=identity.content_hash(case)
                    )
                case_id = ids.take(case.case_id)
                placed = msgspec.structs.replace(
                    case, case_id=case_id, order=len(result), column_number=number
                )
                result.append(placed)
    return result


def _by_test(cases: Sequence[Case]) -> list[list[Case]]:
    """The cases of each test (and combination of vars) together: one per column."""
    groups: list[list[Case]] = []
    last: Any = None
    seen: set[Any] = set()
    for case in cases:
        key = (case.line, case.name, identity.digest(case.vars))
        column = (case.agent, case.prompt)
        if key != last or column in seen:
            groups.append([])
            seen = set()
        groups[-1].append(case)
        seen.add(column)
        last = key
    return groups


def _id_of(case: Case) -> str:
    """The id of a case that a hook made from another of its column."""
    provider = (
        case.provider.get("label") or case.provider.get("id") if isinstance(case.provider, dict) else None
    )
    return identity.case_id(
        case.suite,
        case.description or None,
        variables=case.vars,
        provider=str(provider or case.agent or "agent"),
        prompt=case.prompt,
    )
