"""Which case each row of promptfoo's results file is of, and what that is called: the file says neither, its
rows are counted through, and compared with the tests that the configuration in it has, or the suite beside
it."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tui_eval.case_names import FILLED_IN
from tui_eval.config.project import ConfigError, find_root
from tui_eval.formats.promptfoo.promptfoo_words import mapping
from tui_eval.javascript import values as js
from tui_eval.suites import identity
from tui_eval.yaml import yaml_lines

_PLAIN = (".yaml", ".yml", ".json")
_TABLES = (".csv", ".tsv", ".xlsx", ".xls")
_SHEET = "docs.google.com/spreadsheets"


_OF_THE_RUN = ("sessionId", "_conversation")
_encoder = msgspec.json.Encoder(order="deterministic")


def read_suite(path: Path) -> dict[str, Any]:
    try:
        return mapping(yaml_lines.load(path.read_text("utf-8"), path.name, core=True).value)
    except (OSError, UnicodeError):
        return {}


def word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def cases_of(
    rows: list[dict[str, Any]], names: list[str], document: Mapping[str, Any]
) -> list[tuple[int, int]]:
    """Of each row its case, as the place of its first attempt among tests and columns. Rows in one column
    that are called the same are attempts of one test as far as it was to be repeated, unless their tests
    differ in what they assert or else."""
    given = document.get("runtimeOptions")
    evaluate = mapping(mapping(document.get("config")).get("evaluateOptions"))
    usual = mapping(given).get("repeat", evaluate.get("repeat", 1 if isinstance(given, dict) else None))
    found: list[tuple[int, int]] = []
    last: dict[tuple[str, int, bytes], tuple[bytes, int, tuple[int, int]]] = {}
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        test = mapping(row.get("testCase"))
        column = whole(row.get("promptIdx"))
        key = name, column, _json(lasting(row))
        content = _json({part: test.get(part) for part in _OF_A_TEST})
        before, count, first = last.get(key, (content, 0, (place, column)))
        repeat = mapping(test.get("options")).get("repeat", usual)
        if before != content or (isinstance(repeat, int) and count >= max(repeat, 1)):
            count, first = 0, (place, column)
        last[key] = content, count + 1, first
        found.append(first)
    return found


_OF_A_TEST = (
    "assert", "threshold", "options", "provider", "providers", "prompts", "providerOutput", "assertScoringFunction",
)  # fmt: skip
"""What tests with the same variables differ in."""


def ids_of(wanted: list[str], cases: list[tuple[int, int]]) -> list[str]:
    """The ids of the rows' cases: like those of a suite, they are told apart in the order of its tests and columns."""
    ids = identity.Ids(str)
    found: dict[tuple[int, int], str] = {}
    for name, case in zip(wanted, cases, strict=True):
        if case not in found:
            found[case] = ids.take(name)
    return [found[case] for case in cases]


def lasting(row: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a row without those of its run."""
    return {name: value for name, value in mapping(row.get("vars")).items() if name not in _OF_THE_RUN}


def names_of(
    rows: list[dict[str, Any]], prompts: list[dict[str, Any]], config: Any, file: Path | None
) -> list[str]:
    """Of each row what its case is called in an id: as its test says it where the file or the suite beside it has that.
    Else rows of one description whose variables differ are the combinations of a matrix, or tests of one description. A
    table's row is a test, and only `defaultTest` makes combinations of it."""
    config = mapping(config)
    listed = config.get("tests")
    tests = [mapping(one) for one in listed] if isinstance(listed, list) else []
    of_tables = _are_tables(listed)
    default = mapping(mapping(config.get("defaultTest")).get("vars"))
    scenarios = _Scenarios(config.get("scenarios"))
    given = [
        value for one in (default, *(mapping(one.get("vars")) for one in tests)) for value in one.values()
    ]
    known = _Tests(config, tests, read_suite(file) if file and _is_rewritten(given) else {})
    for one in scenarios.tests():
        known.add(one, one)
    if file is not None and _is_rewritten([value for row in rows for value in lasting(row).values()]):
        for one in _tests_of_files(file.parent, listed):
            known.add({**one, "vars": _spelled(mapping(one.get("vars")))}, one)
    groups: dict[tuple[str, int], dict[bytes, dict[str, Any]]] = {}
    found: list[str] = []
    heads: list[tuple[tuple[str, int], bytes] | None] = []
    for row in rows:
        variables, name = lasting(row), described(row)
        column = whole(row.get("promptIdx"))
        if (test := known.of(name, variables, row)) is not None:
            raw = prompts[column].get("raw") if column < len(prompts) else None
            found.append((name or identity.unnamed(test.named_by, [raw])) + identity.suffix(test.chosen))
            heads.append(None)
            continue
        if not name:
            naming = {
                key: value
                for key, value in variables.items()
                if key not in default
                or not (default[key] == value or (isinstance(default[key], list) and value in default[key]))
            }
            name = identity.unnamed(naming or variables)
        key = _json(variables)
        group = name, column  # what is stored as a variable differs from column to column
        found.append(name)
        heads.append((group, key))
        groups.setdefault(group, {})[key] = variables
    suffixes: dict[tuple[tuple[str, int], bytes], str] = {}
    for group, seen in groups.items():
        name = group[0]
        alike = sum(line_of_text(one.get("description")) == name for one in tests)
        keys = list(dict.fromkeys(key for variables in seen.values() for key in variables))
        differing = [key for key in keys if len({_json(one.get(key)) for one in seen.values()}) > 1]
        if alike == len(seen):
            differing = []
        elif not alike and (of_tables or scenarios.have(name)):
            lists = scenarios.lists(name)
            differing = [key for key in differing if isinstance(default.get(key), list) or key in lists]
        for key, variables in seen.items():
            suffixes[group, key] = identity.suffix(
                {one: variables[one] for one in differing if one in variables}
            )
    return [
        name + (suffixes[head] if head is not None else "") for name, head in zip(found, heads, strict=True)
    ]


class _Known(NamedTuple):
    """A test of a row: the variables that name it where nothing else does, and the values that the row has of
    its lists."""

    named_by: dict[str, Any]
    chosen: dict[str, Any]


class _Tests:
    """The tests of a configuration that it holds itself. Their variables are as the suite beside the results
    has them, where it has those tests: promptfoo writes some otherwise (`_spelled`), and cases are called by
    what the suite has."""

    def __init__(self, config: dict[str, Any], tests: list[dict[str, Any]], suite: dict[str, Any]) -> None:
        of_every = mapping(config.get("defaultTest"))
        self._default, asserted = mapping(of_every.get("vars")), of_every.get("assert")
        self._asserted = asserted if isinstance(asserted, list) else []
        of_all = mapping(mapping(suite.get("defaultTest")).get("vars"))
        self._of_all = of_all if _spelled(of_all) == _spelled(self._default) else self._default
        self._by_vars: dict[tuple[str, bytes], tuple[_Known, set[bytes]]] = {}
        self._with_lists: dict[tuple[str, str, bytes], list[_WithLists]] = {}
        beside = suite.get("tests")
        beside = [mapping(one) for one in beside] if isinstance(beside, list) else []
        by_vars = {_as_written(one): one for one in beside}
        for place, test in enumerate(tests):
            if not test or "path" in test:  # from elsewhere
                continue
            written = _as_written(test)
            same = place < len(beside) and _as_written(beside[place]) == written
            self.add(test, beside[place] if same else by_vars.get(written, test))

    def add(self, test: dict[str, Any], source: dict[str, Any]) -> None:
        """`source` is the test as the suite has it, `test` as promptfoo writes it."""
        own, ours = mapping(test.get("vars")), mapping(source.get("vars"))
        name, asserts = line_of_text(test.get("description")), _json(test.get("assert") or [])
        every, all_ours = {**self._default, **own}, {**self._of_all, **ours}
        if (varied := next((one for one, value in every.items() if _is_list(value)), None)) is not None:
            one = _WithLists(every, all_ours, ours or all_ours, asserts)
            for value in dict.fromkeys(map(_json, every[varied])):
                self._with_lists.setdefault((name, varied, value), []).append(one)
        else:
            key = name, _json({one: every[one] for one in every if one not in _OF_THE_RUN})
            self._by_vars.setdefault(key, (_Known(ours or all_ours, {}), set()))[1].add(asserts)

    def of(self, name: str, variables: dict[str, Any], row: Mapping[str, Any]) -> _Known | None:
        """The test of a row with that description and these variables; of several the one that asserts the same."""
        plain, known_asserts = self._by_vars.get((name, _json(variables)), (None, set()))
        keys = ((name, one, _json(value)) for one, value in variables.items()) if self._with_lists else ()
        with_lists = [one for key in keys for one in self._with_lists.get(key, ())]
        if not with_lists:
            return plain
        given = mapping(row.get("testCase")).get("assert")
        given = given if isinstance(given, list) else []
        count = len(self._asserted)
        asserts = _json(given[count:] if given[:count] == self._asserted else given)
        if plain is not None and asserts in known_asserts:
            return plain
        found = [(one.asserts, known) for one in with_lists if (known := one.known(variables)) is not None]
        exactly = [known for own, known in found if own == asserts]
        return next(iter([*exactly, *([plain] if plain else ()), *(known for _, known in found)]), None)


class _WithLists(NamedTuple):
    """A test with lists in its variables: `every` as the file has them all, `ours` as the suite has them."""

    every: dict[str, Any]
    ours: dict[str, Any]
    named_by: dict[str, Any]
    asserts: bytes

    def known(self, variables: dict[str, Any]) -> _Known | None:
        """The test as one of a row with these variables; None: it is not the row's."""
        if self.every.keys() - _OF_THE_RUN != variables.keys():
            return None
        chosen = {key: _chosen(self.every[key], value, self.ours[key]) for key, value in variables.items()}
        if any(one is None for one in chosen.values()):
            return None
        return _Known(self.named_by, {key: one[0] for key, one in chosen.items() if one})


def in_plain_file(folder: Path, named: str) -> list[Any]:
    """What a plain file that a configuration names has today, nothing where it cannot be read. The file of results says
    which it is, and has no business beyond the project."""
    return list(_entries(_text_of(folder, named), Path(named).suffix.lower()))


def _text_of(folder: Path, named: str) -> str:
    try:
        root = find_root([folder])[0].resolve()
    except ConfigError:
        root = folder.resolve()
    path = folder / named
    try:
        if path.resolve().is_relative_to(root) and path.is_file():
            return path.read_text("utf-8-sig")
    except (OSError, ValueError):  # UnicodeError is a ValueError
        pass
    return ""


def _entries(text: str, ending: str) -> Iterator[Any]:
    try:
        if ending in _PLAIN and text:
            found = yaml_lines.load(text, "", core=True).value
            yield from found if isinstance(found, list) else [found]
        elif ending == ".jsonl":
            yield from (js.parse_json(line) for line in text.splitlines() if line.strip())
    except ValueError:
        return


def _tests_of_files(folder: Path, listed: Any) -> Iterator[dict[str, Any]]:
    """The tests that a configuration has in plain files, as these have them today."""
    for entry in listed if isinstance(listed, list) else [listed]:
        named = word(entry.get("path") if isinstance(entry, dict) else entry).removeprefix("file://")
        yield from map(mapping, in_plain_file(folder, named))
        try:
            if named.lower().endswith(".csv"):
                for cells in csv.DictReader(_text_of(folder, named).splitlines(keepends=True)):
                    values = {
                        name: cell for name, cell in cells.items() if name and not name.startswith("__")
                    }
                    yield {"description": cells.get("__description"), "vars": values}
        except csv.Error:
            continue


def _is_list(value: Any) -> bool:
    """Whether promptfoo makes combinations of a variable's values."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def _chosen(given: Any, value: Any, ours: Any) -> tuple[Any, ...] | None:
    """Which value of a list a row has, as the suite has it; empty where it has all there is, and None where
    it is another."""
    if given == value and not _is_list(given):
        return ()
    if _is_list(given) and value in given:
        return (ours[given.index(value)] if isinstance(ours, list) and len(ours) == len(given) else value,)
    return () if given == value else None


def _as_written(test: Mapping[str, Any]) -> bytes:
    return _json([line_of_text(test.get("description")), _spelled(mapping(test.get("vars")))])


def _spelled(value: Any) -> Any:
    """A value as promptfoo writes it into its file, and what it has written as that: texts of JSON anew,
    dates as `{}`."""
    if isinstance(value, str):
        return {} if _DATE.fullmatch(value) else js.json_spelled(value)
    if isinstance(value, dict):
        return {key: _spelled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_spelled(item) for item in value]
    return (
        js.tidy(js.double(value)) if isinstance(value, int | float) and not isinstance(value, bool) else value
    )


def _is_rewritten(value: Any) -> bool:
    """Whether something in a value of its file may be written otherwise than the suite has it."""
    if isinstance(value, str):
        return value[:1] in ("{", "[")
    if isinstance(value, int | float):  # 1 may be 1.0 there
        return not isinstance(value, bool)
    if isinstance(value, dict):
        return not value or any(map(_is_rewritten, value.values()))
    return isinstance(value, list) and any(map(_is_rewritten, value))


_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)[\d:.]+[ \t]*(?:Z|[-+][\d:]+)?)?")


class _Scenarios:
    """The tests of a configuration's scenarios: each runs with each set of data, and only what stands there as a list
    makes combinations of it. What stands in files is not known, and may be any test."""

    def __init__(self, listed: Any) -> None:
        entries = listed if isinstance(listed, list) else [listed] if isinstance(listed, str) else []
        self._in_files = any(isinstance(one, str) for one in entries)
        self._tests: list[tuple[str, dict[str, Any]]] = []
        self._entries = list(filter(None, map(mapping, entries)))
        for entry in self._entries:
            data, tests = entry.get("config"), entry.get("tests")
            self._in_files |= isinstance(data, str) or isinstance(tests, str)
            sets = [mapping(mapping(one).get("vars")) for one in data] if isinstance(data, list) else []
            for test in tests if isinstance(tests, list) else ():
                self._in_files |= isinstance(test, str)
                name = line_of_text(mapping(test).get("description"))
                self._tests += [(name, given) for given in (mapping(mapping(test).get("vars")), *sets)]

    def tests(self) -> Iterator[dict[str, Any]]:
        """Each of their tests with each set of data, where both stand in the configuration itself."""
        for entry in self._entries:
            data, tests = entry.get("config"), entry.get("tests")
            for given in map(mapping, data if isinstance(data, list) else ()):
                for test in map(mapping, tests if isinstance(tests, list) else ()):
                    asserts = [*_listed(given.get("assert")), *_listed(test.get("assert"))]
                    yield {
                        "description": test.get("description") or given.get("description"),
                        "vars": {**mapping(given.get("vars")), **mapping(test.get("vars"))},
                        "assert": asserts,
                    }

    def have(self, name: str) -> bool:
        """Whether a test of this name may be one of theirs."""
        return self._in_files or any(name == one for one, _ in self._tests)

    def lists(self, name: str) -> set[str]:
        """The variables that are given as lists to tests of this name."""
        return {
            key
            for one, given in self._tests
            if one == name
            for key, value in given.items()
            if isinstance(value, list)
        }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _are_tables(listed: Any) -> bool:
    """Whether the tests that a configuration does not hold itself are all from tables."""
    files = (
        [one.get("path") if isinstance(one, dict) else one for one in listed if isinstance(one, dict | str)]
        if isinstance(listed, list)
        else [listed]
    )
    named = [one.partition("#")[0].lower() for one in files if isinstance(one, str)]
    return bool(named) and all(one.endswith(_TABLES) or _SHEET in one for one in named)


def described(row: Mapping[str, Any]) -> str:
    """A row's description; empty where promptfoo filled one in."""
    name = line_of_text(mapping(row.get("testCase")).get("description"))
    return "" if FILLED_IN.fullmatch(name) else name


def line_of_text(text: Any) -> str:
    return " ".join(str(text or "").split())


def _json(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, UnicodeError, RecursionError):
        return repr(value).encode("utf-8", "replace")


def whole(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
