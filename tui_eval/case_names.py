"""What tells cases of one name apart, in a suite and across suites: the same words in every list, report and page.

A promptfoo test is a case with each prompt and provider; its reader gives every case the short names of
these (`Case.variant`, `Case.column_name`), so a case is called the same whatever stands beside it in a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from tui_eval.guard.secrets import MASK
from tui_eval.model import Case

LONGEST = 40
"""Characters of a prompt's short name."""
_SHARED = 12
"""Characters that texts must have in common at their beginning before these are left out."""
_FILE = (
    r"(?:file://)?([^\n]*?\.(?:txt|json|yaml|yml|jsonl|md|j2|csv|js|cjs|mjs|ts|py|sh|rb|pl|bat|exe)"
    r"(?::\w+)?)(?=:\s|\Z)"
)
_NUMBERED = r"(Prompt \d+) - "


class Named(Protocol):
    """What lists show of a case."""

    @property
    def suite(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def agent(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def case_id(self) -> str: ...


T = TypeVar("T", bound=Named)


class Unnamed(Protocol):
    """What a test without a name is called by."""

    @property
    def name(self) -> str: ...
    @property
    def suite(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def vars(self) -> dict[str, Any]: ...
    @property
    def named_by(self) -> str: ...


def full_name(name: str, variant: str) -> str:
    """A case's name with what tells it from others, as one line of text."""
    return f"{name} · {variant}" if variant else name


def column_label(agent: str | None, model: str | None) -> str:
    """An agent and its model for people; one that is called by its model once (`atlas`, not `atlas, atlas`)."""
    agent = agent or ""
    own = "" if agent == model or agent.endswith((f":{model}", f"/{model}")) else model
    return ", ".join(part for part in (agent, own) if part)


def in_any_column(case_id: str, agent: str) -> str:
    """A case's id without the agent that is asked, where it says one (promptfoo's provider): another column of the same
    test has the same, with its prompt and its number among cases of one name."""
    before, mark, after = case_id.rpartition(f"::{' '.join(agent.split())}")
    return before + after if mark and "::" in before and after[:1] in ("", ":", "#") else case_id


def variant_of(case: Case, agent: str | None = None, *, named: bool = False) -> str:
    """What tells a case from others of its name in its suite; the provider's part only where it was run with
    that provider (`--agent` replaces all of them: then it is `named`, and may be the one that the test has of
    its own)."""
    own = case.column_name if agent in (None, "", case.agent) and not (named and case.column) else ""
    return f"{own} {case.variant}".strip()


def variant_beside(case: Case) -> str:
    """As `variant_of`, where the agent's name stands beside it: the column's too only of a case that has an
    agent of its own there, which its columns share."""
    return variant_of(case) if case.column else case.variant


def shared_variant(one: str, other: str) -> str:
    """What tells a test from others of its name in two columns of a matrix: what follows the names of these."""
    ours, theirs = one.split(" "), other.split(" ")
    alike = 0
    while alike < min(len(ours), len(theirs)) and ours[-alike - 1] == theirs[-alike - 1]:
        alike += 1
    return " ".join(ours[len(ours) - alike :])


def told_apart(rows: Sequence[Named]) -> list[str]:
    """Of each row what tells it from the others of its suite with the same name: its own variant; agent,
    model, and what differs in the ids only where that is not enough."""
    found = [row.variant for row in rows]
    same: dict[tuple[str, str, str], list[int]] = {}
    for number, row in enumerate(rows):
        same.setdefault((row.suite, row.name, row.variant), []).append(number)
    for numbers in same.values():
        if len(numbers) > 1:
            group = [rows[number] for number in numbers]
            for number, more in zip(numbers, _differences(group), strict=True):
                found[number] = f"{found[number]} {more}".strip()
    return found


def _differences(group: Sequence[Named]) -> list[str]:
    told = [""] * len(group)
    for parts_of in (_agents, _models, _endings):
        parts = parts_of(group)
        if len(set(parts)) > 1:
            told = [f"{one} {part}".strip() for one, part in zip(told, parts, strict=True)]
        if len(set(told)) == len(told):
            break
    return told


def _agents(group: Sequence[Named]) -> list[str]:
    return _short([row.agent for row in group], short_providers)


def _models(group: Sequence[Named]) -> list[str]:
    return _short([row.model or "" for row in group], short_providers)


def _endings(group: Sequence[Named]) -> list[str]:
    """The parts of the ids that are not the same for all."""
    told = [row.case_id.partition("::")[2].removeprefix(row.name).split("::") for row in group]
    if len({len(parts) for parts in told}) > 1:
        told = [["::".join(parts)] for parts in told]
    columns = [column for column in zip(*told, strict=True) if len(set(column)) > 1]
    return [" ".join(column[number] for column in columns if column[number]) for number in range(len(group))]


def _short(names: list[str], shorten: Callable[[Sequence[str]], list[str]]) -> list[str]:
    different = list(dict.fromkeys(names))
    short = dict(zip(different, shorten(different), strict=True))
    return [short[name] for name in names]


def suites_apart(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Of each of these rows (name, what tells it from others of its suite, suite) as much of the end of its
    suite's path as tells it from rows of other suites that read the same; empty where there are none."""
    same: dict[tuple[str, str], set[str]] = {}
    for name, variant, suite in rows:
        same.setdefault((name, variant), set()).add(suite)
    ends: dict[tuple[str, str], dict[str, str]] = {
        key: _ends(suites) for key, suites in same.items() if len(suites) > 1
    }
    return [ends.get((name, variant), {}).get(suite, "") for name, variant, suite in rows]


def _ends(paths: set[str]) -> dict[str, str]:
    """Of each path one part that no other has at its place from the end, else the shortest end that differs."""
    parts = {path: path.split("/") for path in paths}
    for depth in range(1, max(map(len, parts.values())) + 1):
        at = {path: of[-depth] if len(of) >= depth else "" for path, of in parts.items()}
        if len(set(at.values())) == len(at) and all(at.values()):
            return at
    deepest = max(map(len, parts.values()))
    for depth in range(1, deepest + 1):
        ends = {path: "/".join(of[-depth:]) for path, of in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return {path: path for path in paths}


def told_apart_anywhere(rows: Sequence[Named]) -> list[str]:
    """What tells rows apart that may be of several suites (`told_apart`), with the suite where that is not enough."""
    told = told_apart(rows)
    named = [(row.name, mark, row.suite) for row, mark in zip(rows, told, strict=True)]
    return [f"{mark} {end}".strip() for mark, end in zip(told, suites_apart(named), strict=True)]


class NamesSeen:
    """The names of many cases, added one by one, and which of them several have. Of a large run the names themselves
    would take more memory than all else that is printed of it."""

    def __init__(self, shown: Callable[[Any], Hashable] = lambda case: (case.name, case.variant)) -> None:
        """`shown` is what a line says of a case (`Named`) without a mark."""
        self._shown = shown
        self._seen: set[int] = set()
        self._twice: set[int] = set()

    def add(self, case: Named) -> None:
        """One case more."""
        mark = hash(self._shown(case))
        (self._twice if mark in self._seen else self._seen).add(mark)

    def marks(self, cases: Callable[[], Iterable[T]]) -> list[tuple[int, T, str]]:
        """Of the cases of which the same is shown what tells them apart anywhere, each with its number. `cases` are
        those that were added; they are gone through where there are such."""
        if not self._twice:
            return []
        alike = [(n, case) for n, case in enumerate(cases()) if hash(self._shown(case)) in self._twice]
        told = told_apart_anywhere([case for _, case in alike])
        return [(number, case, mark) for (number, case), mark in zip(alike, told, strict=True)]


FILLED_IN = re.compile(r"Row #\d+")
"""The description that promptfoo gives a test of a file that has none."""
_HASHED = r"vars-[0-9a-f]{8}"
_REPEATED = re.compile(r"#\d+\Z", re.ASCII)
_SECRET_VALUE = re.compile(rf"\[[^\[\]]*={MASK}[^\[\]]*\]")
_VALUE = 80
"""Characters of a value that stands for a name."""


def is_unnamed(case: Unnamed) -> bool:
    """Whether a promptfoo test has only the name that is filled in for it, and variables to be called by."""
    return is_filled_in(case) and bool(case.vars)


def is_filled_in(case: Unnamed) -> bool:
    """Whether a case has only the name of its place that promptfoo gives it, `Row #3`."""
    if not case.name.startswith("Row #"):
        return False
    return FILLED_IN.fullmatch(case.name) is not None and case.description in ("", case.name)


def which_test(case_id: str, suite: str, name: str) -> str:
    """Of which test of its suite a case is, as far as its id says it: with each prompt, provider and combination of
    variables it is the same one."""
    rest = case_id.removeprefix(f"{suite}::")
    hashed = re.match(_HASHED, rest) if not rest.startswith(name) else None
    return f"{hashed[0] if hashed else name}{number_of_test(case_id, suite, name)}"


def number_of_test(case_id: str, suite: str, name: str) -> str:
    """Which of the tests of its suite with one name a case is of, as far as its id says it: `#2`; empty of
    the first."""
    found = _repeated(case_id.removeprefix(f"{suite}::").removeprefix(name))
    return found[0] if found else ""


def without_number(case_id: str) -> str:
    """An id without what tells it from that of a case before (`suites.identity`)."""
    return _REPEATED.sub("", case_id)


def _repeated(case_id: str) -> re.Match[str] | None:
    """The number at the end of an id, where it is a test's: it is a combination's where that has a secret in it."""
    return None if _SECRET_VALUE.search(case_id) else _REPEATED.search(case_id)


def which_tests(cases: Sequence[Case]) -> list[str]:
    """Of each case of which test of its suite it is. Tests of one name are counted by the place where they stand; where
    one place holds several (a generator's), by which of them has the id that the others wanted too."""
    tests: list[str] = []
    same: dict[tuple[str, str], list[int]] = {}
    for number, case in enumerate(cases):
        base = case.name
        if is_unnamed(case) and (hashed := re.match(_HASHED, case.case_id.removeprefix(f"{case.suite}::"))):
            base = hashed[0]
        tests.append(base)
        same.setdefault((case.suite, base), []).append(number)
    for numbers in same.values():
        if len(numbers) > 1:
            _number(cases, numbers, tests)
    return tests


def _number(cases: Sequence[Case], numbers: Sequence[int], tests: list[str]) -> None:
    """Give the second test of those that are called alike, and the later ones, their number."""
    places: dict[tuple[str | None, int], list[int]] = {}
    for number in numbers:
        places.setdefault((cases[number].file, cases[number].line), []).append(number)
    before = 0
    for here in places.values():
        wanted: dict[str, int] = {}
        for number in here:
            name = cases[number].case_id
            if _repeated(name):
                name = without_number(name)
            wanted[name] = wanted.get(name, 0) + 1
            if (at := before + wanted[name]) > 1:
                tests[number] = f"{tests[number]}#{at}"
        before += max(wanted.values())


def called(cases: Sequence[Case], tests: Sequence[str]) -> list[str]:
    """What lists call each case, `tests` saying of which test it is: its name; without one what is asked; where two
    tests of a suite have one name, with what is asked too, or else where it stands. No two tests have one name."""
    told = [case.name for case in cases]
    unnamed = [number for number, case in enumerate(cases) if is_unnamed(case)]
    values = names_by_values([cases[number] for number in unnamed])
    for number, name in zip(unnamed, values, strict=True):
        told[number] = name
    first: dict[tuple[str, str], str] = {}
    clash = {
        (case.suite, name)
        for case, name, test in zip(cases, told, tests, strict=True)
        if first.setdefault((case.suite, name), test) != test
    }
    taken: dict[tuple[str, str], dict[str, list[int]]] = {key: {} for key in clash}
    for number, case in enumerate(cases) if clash else ():
        if (same := taken.get((case.suite, told[number]))) is not None:
            same.setdefault(tests[number], []).append(number)
    for same in taken.values():
        apart = _asked_apart([cases[numbers[0]] for numbers in same.values()])
        for numbers, more in zip(same.values(), apart, strict=True):
            for number in numbers:
                told[number] = f"{told[number]} · {more}"
    return told


def _asked_apart(tests: Sequence[Case]) -> list[str]:
    """What tells tests of one name apart: one variable, what is asked first, the line, else the number."""
    every = len(tests)
    asked = [list(case.vars.values()) or [turn.text or "" for turn in case.turns] for case in tests]
    for values in zip(*asked, strict=False):
        parts = [" ".join(str(value).split()) for value in values]
        if all(parts) and len({part[: _VALUE - 1] for part in parts}) == every:
            return [part if len(part) <= _VALUE else f"{part[: _VALUE - 1]}…" for part in parts]
    lines = [f"line {case.line}" for case in tests]
    return lines if len(set(lines)) == every else [f"#{number}" for number in range(1, every + 1)]


def names_by_values(cases: Sequence[Unnamed]) -> list[str]:
    """What lists call tests without a name: the text of the first variable that is their own and not every test's, and
    of as many more as it takes to tell the tests of a suite apart; where nothing does, the number of the row too."""
    told = [""] * len(cases)
    by_suite: dict[str, list[int]] = {}
    for number, case in enumerate(cases):
        by_suite.setdefault(case.suite, []).append(number)
    for numbers in by_suite.values():
        same: dict[str, list[int]] = {"": numbers}
        later: dict[int, Iterator[str]] = {}
        depth = 0
        while same:
            after: dict[str, list[int]] = {}
            for number in (number for group in same.values() for number in group):
                if not depth:
                    part = value_text(cases[number])
                else:
                    if number not in later:
                        later[number] = later_texts(cases[number])
                    part = next(later[number], "")
                told[number] = f"{told[number]} · {part}" if told[number] and part else told[number] or part
                after.setdefault(told[number], []).append(number)
            depth += 1
            same = {
                name: group
                for name, group in after.items()
                if len(group) > 1
                and len({cases[number].name for number in group}) > 1
                and any(depth < len(cases[number].vars) for number in group)
            }
        first: dict[str, str] = {}
        clash = {
            told[number]
            for number in numbers
            if first.setdefault(told[number], cases[number].name) != cases[number].name
        }
        for number in numbers:
            if not told[number] or told[number] in clash:
                told[number] = (
                    f"{told[number]} · {cases[number].name}" if told[number] else cases[number].name
                )
    return told


def value_text(case: Unnamed) -> str:
    """The text of the variable that a test without a name is called by first."""
    return _shown(case.vars[first]) if (first := _first_named(case)) is not None else ""


def later_texts(case: Unnamed) -> Iterator[str]:
    """Those of its other variables, in their order."""
    first = _first_named(case)
    return (_shown(value) for name, value in case.vars.items() if name != first)


def _first_named(case: Unnamed) -> str | None:
    return case.named_by if case.named_by in case.vars else next(iter(case.vars), None)


def _shown(value: Any) -> str:
    part = " ".join(str(value).split())
    return part if len(part) <= _VALUE else f"{part[: _VALUE - 1]}…"


def matrix_name(values: Mapping[str, Any], hide: Callable[[str], str] = str) -> str:
    """A combination of variables: `language=de tone=dry`, long values cut; `hide` masks the secrets of each before."""
    parts = ((hide(str(key)), " ".join(hide(str(value)).split())) for key, value in values.items())
    return " ".join(f"{key}={value if len(value) <= 24 else f'{value[:23]}…'}" for key, value in parts)


def short_prompts(labels: Sequence[str], hide: Callable[[str], str] = str) -> list[str]:
    """Short names of a suite's prompts, different where the labels are: of files, all or some of them,
    without the folder that all of these have, and without endings where these tell nothing apart; of texts
    the beginning, without what all begin with. `hide` masks the secrets of each before it is cut."""
    given, labels = labels, [hide(label) for label in labels]
    files = {label: found[1] for label in labels if (found := re.match(_FILE, label))}
    short = dict(zip(files, _bare(list(files.values())), strict=True)) if files else {}
    if not _differ(list(short.values()), list(files)):
        short = {}
    if short and len(files) == len(set(labels)) == len(set(given)):
        return [short[label] for label in labels]
    names = [
        short.get(label) or (found[1] if (found := re.match(_NUMBERED, label)) else " ".join(label.split()))
        for label in labels
    ]
    first, last = min(names, default=""), max(names, default="")
    alike = next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    shared = first[:alike] if len(names) > 1 else ""
    at = shared.rfind(" ") + 1
    if len(shared) >= _SHARED and at and all(name[at:] for name in names):
        names = [f"…{name[at:]}" for name in names]
    names = [name if len(name) <= LONGEST else f"{name[: LONGEST - 1].rstrip()}…" for name in names]
    if _differ(names, given):
        return names
    return [f"prompt{number}" for number in range(1, len(labels) + 1)]


def short_providers(names: Sequence[str]) -> list[str]:
    """Short names of providers and models: what follows the last colon or slash, where that is enough."""
    for cut in (r".*[:/](?=.)", r"[^:]*:(?=.)"):
        short = [re.sub(cut, "", name, count=1) for name in names]
        if _differ(short, names):
            return short
    return list(names)


def _differ(names: Sequence[str], labels: Sequence[str]) -> bool:
    return len(set(names)) == len(set(labels))


def _bare(names: list[str]) -> list[str]:
    """Names of files without the folder that all of them have, and without their endings where they differ then too."""
    if len({name.rpartition("/")[0] for name in names}) == 1:
        names = [name.rpartition("/")[2] for name in names]
    bare = [name.rpartition(".")[0] for name in names]
    same = len({name.rpartition(".")[2] for name in names}) == 1
    functions = any(":" in name.rpartition(".")[2] for name in names)
    told = same or (not functions and _differ(bare, names))
    return bare if told and all(bare) else names
