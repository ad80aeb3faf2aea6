"""A suite as its hooks see and leave it, in promptfoo's words: tests, prompts, defaults, and a case as code
changed it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tui_eval.case_names import matrix_name
from tui_eval.config.project import Config, masker
from tui_eval.formats.format import COLUMNS, HookError, HookScene
from tui_eval.formats.promptfoo.promptfoo_words import (
    kept_beside,
    mapping,
    own_options,
    test_of,
    told_test,
)
from tui_eval.formats.promptfoo.read.matrix_cases import TooMany, combinations, transformed
from tui_eval.formats.promptfoo.read.scenarios import read as read_scenarios
from tui_eval.formats.promptfoo.read.suite_file import Missing, SuiteReading, no_line
from tui_eval.formats.promptfoo.read.suite_providers import matches, of_test
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest, TestReader, merged, written
from tui_eval.formats.promptfoo.read.test_sources import Sources
from tui_eval.guard import figures
from tui_eval.guard.trust import Trust
from tui_eval.model import Case, Compat, Turn
from tui_eval.nunjucks.templates import flag
from tui_eval.suites import identity

_UNNAMED = re.compile(r"::(prompt\d+)(?:#\d+)?\Z")


def suite_of(cases: Sequence[Case], settings: Mapping[str, Any]) -> dict[str, Any]:
    """What `beforeAll` and `afterAll` see of a suite: each test once, prompts, providers, settings."""
    shown = cases or settings.get(COLUMNS) or ()
    prompts = {case.prompt: case.turns[0].text if case.turns else "" for case in shown}
    providers = {
        case.agent: {
            "id": case.provider.get("id") if isinstance(case.provider, dict) else case.agent,
            "label": case.provider.get("label") if isinstance(case.provider, dict) else None,
        }
        for case in _columns(shown)
    }
    default, groups = mapping(settings.get("defaultTest")), _by_test(cases)
    return {
        **{key: settings[key] for key in ("description", "tags") if settings.get(key)},
        "prompts": [{"raw": raw, "label": label} for label, raw in prompts.items()],
        "providers": list(providers.values()),
        "tests": [_own_test(group[0], default) for group in groups if not _in_scenario(group[0])],
        "scenarios": settings.get("scenarios") or [],
        "defaultTest": {"assert": [], "vars": {}, "options": {}, **default},
        "nunjucksFilters": settings.get("nunjucksFilters") or {},
        "derivedMetrics": settings.get("derivedMetrics") or [],
        "extensions": settings.get("extensions") or [],
        "env": {},
    }


def with_tests(
    cases: Sequence[Case],
    suite: Mapping[str, Any],
    after: Mapping[str, Any],
    repeat: Any,
    scene: HookScene,
    others: Sequence[Case] = (),
) -> list[Case]:
    """The cases with the tests and the `defaultTest` that a hook left (`after`, before it `suite`): a test that it
    changed is changed in every column, one that it took out has no case, and one that it added has those that it would
    have in the file, in every column: those of the others, and `others`. `repeat` is how often the suite runs its
    tests.

    Raises:
        HookError: the variables of a test cannot be combined.
    """
    groups = sorted(_by_test(cases), key=lambda group: _in_scenario(group[0]))
    same_default = after.get("defaultTest") == suite["defaultTest"]
    scenarios = [_own_test(group[0], suite["defaultTest"]) for group in groups if _in_scenario(group[0])]
    before = [*suite["tests"], *scenarios]
    templates = sorted(_columns([*cases, *others]), key=lambda case: case.column_number)
    if after.get("scenarios") != suite["scenarios"]:
        scenarios = _of_scenarios(after.get("scenarios"), cases, after.get("defaultTest"), scene)
    tests = [*after["tests"], *scenarios]
    known = _known_again(before, tests, len(suite["tests"]), len(after["tests"]))
    ids = identity.Ids(masker(scene.config).text)
    result: list[Case] = []
    number = 0
    firsts: dict[int, int] = {}
    for place, test in enumerate(tests):
        same = known.get(place)
        if same is not None and same_default and before[same] == test:
            made = [groups[same]]
        elif same is not None:
            made = [[_of_hook(case, test, after.get("defaultTest"), scene) for case in groups[same]]]
        else:
            made = _added(test, place, templates, after.get("defaultTest"), repeat, scene)
        start = number + 1
        for group in made:
            number += 1
            first = start
            if same is not None and group:
                first = firsts.setdefault(group[0].first_number or group[0].test_number, number)
            for case in group:
                case = msgspec.structs.replace(
                    case, test_number=number, first_number=first if first < number else 0
                )
                case.case_id, case.order = ids.take(case.case_id), len(result)
                result.append(case)
    return result


def _of_scenarios(given: Any, cases: Sequence[Case], default: Any, scene: HookScene) -> list[dict[str, Any]]:
    """The tests of the scenarios that a hook left, each entry of a `config` with each of its tests.

    Raises:
        HookError: they cannot be read.
    """
    if not cases:
        return []
    reading = SuiteReading(cases[0].suite, scene.config, scene.trust, scene.compat)
    try:
        under = (
            TestReader(reading, reading.name, no_line).test(default, (), needs_some=False)
            if default
            else None
        )
        found = read_scenarios(reading, given or None, Sources(reading, no_line), no_line, under)
        problems = [*reading.problems, *(problem for test in found for problem in test.problems)]
    finally:
        reading.close()
    if wrong := next((one for one in problems if one.level == "error"), None):
        raise HookError(f"beforeAll: {wrong.key or 'scenarios'}: {wrong.message}")
    return [written(test) for test in found]


def _known_again(before: Sequence[Any], tests: Sequence[Any], own: int, left: int) -> dict[int, int]:
    """Which test of `before` each of `tests`, by their places, is: the same, else one that was changed, known
    by its description or variables; else by its place, as long as none was added or taken out before it.
    `own` and `left` are how many are no scenario's: those are the same, or others."""
    found = {
        place: place for place, (one, test) in enumerate(zip(before, tests, strict=False)) if one == test
    }
    unused = set(range(len(before))) - found.keys()
    keys: tuple[Callable[[Any], Any], ...] = (
        lambda test: test,
        lambda test: [test.get("description"), test.get("vars")] if isinstance(test, dict) else None,
        lambda test: test.get("description") if isinstance(test, dict) else None,
        lambda test: test.get("vars") if isinstance(test, dict) else None,
    )
    for number, key in enumerate(keys):
        places: dict[str, list[int]] = {}
        for index in sorted(unused, reverse=True):
            if (number == 0 or index < own) and (value := key(before[index])):
                places.setdefault(_mark(value), []).append(index)
        for place, test in enumerate(tests if places else ()):
            if place in found or (number > 0 and place >= left) or not (value := key(test)):
                continue
            if alike := places.get(_mark(value)):
                found[place] = alike.pop()
        unused -= set(found.values())
    for place in range(min(own, left)):
        if found.get(place, place) != place and own != left:
            break  # from here on others came or went
        nameless = not any(
            isinstance(one, dict) and one.get("description") for one in (before[place], tests[place])
        )
        if place not in found and place in unused and (own == left or nameless):
            found[place] = place
    return found


def _mark(test: Any) -> str:
    """By which a test is known again."""
    return identity.digest(test, 32)


def _own_test(case: Case, default: Mapping[str, Any]) -> dict[str, Any]:
    """As `test_of`, with the provider that the test has of its own, and without the default."""
    own = "columnProvider" in kept_beside(case) and isinstance(case.provider, dict)
    return without_default({**test_of(case), **({"provider": case.provider} if own else {})}, default)


def _in_scenario(case: Case) -> bool:
    """Whether the test is one of a scenario, which are not among a suite's tests."""
    return str(case.metadata.get("conversationId", "")).startswith("__scenario_")


def without_default(test: dict[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """A test without what `defaultTest` has laid under it."""
    parts = ("vars", "options", "metadata")
    found = {k: v for k, v in test.items() if k in (*parts, "assert") or k not in default or default[k] != v}
    for key in parts:
        under = mapping(default.get(key))
        if key in found and under:
            found[key] = {n: v for n, v in mapping(found[key]).items() if n not in under or under[n] != v}
    given, refused = default.get("assert") or [], mapping(found.get("options")).get("disableDefaultAsserts")
    if refused is not True and given == (test.get("assert") or [])[: len(given)]:
        found["assert"] = test.get("assert", [])[len(given) :]
    return found


def _read(test: Any, default: Any, suite: str, scene: HookScene) -> tuple[PromptfooTest | None, SuiteReading]:
    """A test with the default under it, and the reading with what is wrong with it."""
    reading = SuiteReading(suite, scene.config, scene.trust, scene.compat)
    reader = TestReader(reading, suite, no_line)
    own = reader.test(test, (), needs_some=False)
    under = reader.test(default, ("defaultTest",), needs_some=False) if default else None
    return own and merged(own, under), reading


def _of_hook(case: Case, test: Any, default: Any, scene: HookScene) -> Case:
    """A case whose test, or the default under it, was changed."""
    read, reading = _read(test, default, case.suite, scene)
    if read is None:
        return msgspec.structs.replace(case, problems=[*case.problems, *reading.problems])
    return _as_read(case, read, reading)


def _columns(cases: Sequence[Case]) -> list[Case]:
    """A case of each column, without a provider of its test's own."""
    found: dict[tuple[str | None, str | None], Case] = {}
    for case in cases:
        key = (_provider_of(case), case.prompt)
        if key in found:
            continue
        kept = kept_beside(case)
        if (entry := kept.pop("columnProvider", None)) is not None:
            case = msgspec.structs.replace(case, agent=case.column, provider=entry, column="")
        for name in ("assertScoringFunction", "filesFirst"):
            kept.pop(name, None)
        options = own_options(case)
        found[key] = msgspec.structs.replace(case, options=options, beside=kept, problems=[], named_by="")
    return list(found.values())


def _added(
    test: Any, place: int, templates: Sequence[Case], default: Any, repeat: Any, scene: HookScene
) -> list[list[Case]]:
    """The cases of a test that a hook added, those of each combination of its variables together."""
    if not templates:
        return []
    whole, reading = _read(test, default, templates[0].suite, scene)
    if whole is None:
        raise HookError(f"beforeAll: tests[{place}]: {reading.problems[0].message}")
    options = whole.options or {}
    naming = mapping(mapping(test).get("vars")) or whole.vars  # as in a file, its own alone name it
    result: list[list[Case]] = []
    try:
        if options.get("transformVars") not in (None, ""):
            changed = transformed(reading, options["transformVars"], whole.vars)
            whole = msgspec.structs.replace(whole, vars=changed)
        expand = not options.get("disableVarExpansion") and not flag("PROMPTFOO_DISABLE_VAR_EXPANSION")
        for values, matrix in combinations(whole.vars, reading, expand=expand):
            read = msgspec.structs.replace(whole, vars=values)
            result.append([])
            for case in templates:
                if not _runs_in(case, whole):
                    continue
                made = _as_read(case, read, reading)
                name = whole.description or f"Row #{place + 1}"
                made = msgspec.structs.replace(
                    made, name=name, description=whole.description, line=0, file=None
                )
                made.variant = matrix_name(matrix, reading.masked) if matrix else ""
                # The template's own repeats are those of another test.
                given = options.get("repeat", (repeat or 1) if "repeat" in case.options else None)
                if given is not None:
                    made.attempts = made.required = max(1, int(given)) if figures.is_finite(given) else 1
                made.case_id = _id_of(made, matrix, _unnamed_prompt(case), naming)
                result[-1].append(made)
    except (Missing, TooMany) as error:
        raise HookError(f"beforeAll: tests[{place}]: {error}") from None
    finally:
        reading.close()
    return result


def _runs_in(case: Case, test: PromptfooTest) -> bool:
    """Whether a test is one for a case's column."""
    entry = mapping(case.provider)
    who = (case.agent, entry.get("label"), entry.get("id"))
    text = case.turns[0].text if case.turns else None
    return (test.prompts is None or any(matches(w, case.prompt, text) for w in test.prompts)) and (
        test.providers is None or any(matches(w, *who) for w in test.providers)
    )


def with_prompts(cases: Sequence[Case], prompts: list[Any], masked: Callable[[str], str] = str) -> list[Case]:
    """The cases with the prompts that a hook left: changed texts, new columns, and none for those it took; `masked`
    takes secrets out of their ids."""
    wanted = {str(p.get("label") or p.get("raw")): p.get("raw") for p in prompts if isinstance(p, dict)}
    ids = identity.Ids(masked)
    result: list[Case] = []
    for group in _by_test(cases):
        for before, agent in enumerate(dict.fromkeys(map(_provider_of, group))):
            own = {case.prompt: case for case in group if _provider_of(case) == agent}
            for number, (label, raw) in enumerate(wanted.items(), before * len(wanted) + 1):
                case = own.get(label) or next(iter(own.values()))
                turn = case.turns[0] if case.turns else Turn(None)
                if label not in own or (isinstance(raw, str) and turn.text != raw):
                    kept = kept_beside(case)
                    for name in ("promptFunction", "promptConfig"):
                        kept.pop(name, None)
                    turns = [msgspec.structs.replace(turn, text=str(raw))]
                    case = msgspec.structs.replace(
                        case, prompt=label, turns=turns, options=own_options(case), beside=kept
                    )
                    case = msgspec.structs.replace(
                        case, case_id=_id_of(case), content_hash=identity.content_hash(case)
                    )
                case_id = ids.take(case.case_id)
                placed = msgspec.structs.replace(
                    case, case_id=case_id, order=len(result), column_number=number
                )
                result.append(placed)
    return result


def _provider_of(case: Case) -> str | None:
    """The provider in whose column a case stands."""
    return case.column or case.agent


def _by_test(cases: Sequence[Case]) -> list[list[Case]]:
    """The cases of each test (and combination of vars) together: one per column."""
    groups: list[list[Case]] = []
    last: Any = None
    seen: set[Any] = set()
    for case in cases:
        key = (case.line, case.name, identity.digest(case.vars))
        column = (_provider_of(case), case.prompt)
        if key != last or column in seen:
            groups.append([])
            seen = set()
        groups[-1].append(case)
        seen.add(column)
        last = key
    return groups


def _unnamed_prompt(case: Case) -> str | None:
    """What the ids of a column call its prompt, to which nobody gave a name; None: it has one."""
    found = _UNNAMED.search(case.case_id)
    return found[1] if found and case.prompt != found[1] else None


def _id_of(
    case: Case,
    matrix: dict[str, Any] | None = None,
    prompt: str | None = None,
    naming: dict[str, Any] | None = None,
) -> str:
    """The id of a case that a hook made from another of its column, which calls its `prompt` so; without a name it goes
    by the variables `naming`."""
    provider = (
        case.provider.get("label") or case.provider.get("id") if isinstance(case.provider, dict) else None
    )
    variables = case.vars if naming is None else naming
    return identity.case_id(
        case.suite,
        case.description or None,
        variables=variables,
        texts=() if variables else [turn.text for turn in case.turns[:1]],
        matrix=matrix,
        provider=str(provider or case.agent or "agent"),
        prompt=prompt or case.prompt,
    )


def with_test(case: Case, test: Any, config: Config, trust: Trust, compat: Compat = "documented") -> Case:
    """A case whose test was changed by code: vars, assertions, options, metadata, threshold, provider.

    Its id stays. What cannot be made sense of is among its problems.
    """
    if test in (told_test(case), test_of(case)):
        return case
    reading = SuiteReading(case.suite, config, trust, compat)
    read = TestReader(reading, case.suite, no_line).test(test, (), needs_some=False)
    if read is None:
        return msgspec.structs.replace(case, problems=[*case.problems, *reading.problems])
    return _as_read(case, read, reading)


def _as_read(case: Case, read: PromptfooTest, reading: SuiteReading) -> Case:
    """A case as the test that was read of what code made of its own."""
    kept = {name: value for name, value in kept_beside(case).items() if name != "assertScoringFunction"}
    if read.scoring is not None:
        kept["assertScoringFunction"] = read.scoring
    provider = of_test(read.provider, reading) if read.provider != case.provider else None
    if provider is not None and "columnProvider" not in kept and isinstance(case.provider, dict):
        kept["columnProvider"] = case.provider
    changed = msgspec.structs.replace(
        case,
        description=read.description or case.description,
        vars=read.vars,
        assertions=read.assertions,
        options=read.options or {},
        beside=kept,
        metadata=read.metadata or {},
        threshold=read.threshold,
        provider_output=read.provider_output if read.provider_output not in ("", False, 0) else None,
        provider=provider.entry if provider else case.provider,
        agent=provider.name if provider else case.agent,
        column=case.column or (case.agent or "") if provider else case.column,
        problems=[*case.problems, *(p for p in read.problems if p.level == "error")],
    )
    changed.content_hash = identity.content_hash(changed)
    return changed
