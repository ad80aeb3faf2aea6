"""promptfoo's results file (`promptfoo eval -o out.json`) as one of ours, so that it opens as a run.

What it does not say is left open. Cases get the ids that the suite's own would have where the file says enough:
the config that lies beside it, descriptions or vars, the provider, the number or the label of the prompt.
"""

from __future__ import annotations

import csv
import datetime
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tui_eval.case_names import FILLED_IN
from tui_eval.config.project import ConfigError, find_root
from tui_eval.formats.format import OurResults
from tui_eval.javascript import values as js
from tui_eval.suites import identity
from tui_eval.yaml import yaml_lines

_CONFIGS = "promptfooconfig*"
_READ = (".yaml", ".yml", ".json", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts")
_USUAL = "promptfooconfig.yaml"
_ERROR = 2
"""`failureReason` of a row that could not be run or judged."""
OURS = "tuiEval"
"""The member of a result that holds what only a results file of ours could say."""
_TABLES = (".csv", ".tsv", ".xlsx", ".xls")
_SHEET = "docs.google.com/spreadsheets"
_FILE = re.compile(r"^[^\n]*\.\w+(?::[\w.]+)?\Z")
_CARRIED = {"metadata": "metadata", "guardrails": "guardrails", "finish_reason": "finishReason"}
"""What an answer carries beside its text, by our words."""
_OF_THE_RUN = ("sessionId", "_conversation")
_encoder = msgspec.json.Encoder(order="deterministic")


def as_ours(document: Any, path: Path) -> OurResults | None:
    """As `Format.as_ours`. The ids depend on what lies beside the file."""
    if not is_promptfoo(document):
        return None
    made = converted(document, path)
    return OurResults(made, str(made["results"][0]["suite"]) if made["results"] else "")


def is_promptfoo(document: Any) -> bool:
    """Whether this is a results file of promptfoo."""
    results = document.get("results") if isinstance(document, dict) else None
    rows = results.get("results") if isinstance(results, dict) else None
    if not isinstance(rows, list) or not (rows or "evalId" in document):
        return False
    return all(isinstance(row, dict) and "success" in row for row in rows)


def converted(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The same as a document of ours."""
    results = document["results"]
    prompts = [_mapping(prompt) for prompt in results.get("prompts") or [] if isinstance(prompt, dict)]
    labels = labels_of(prompts, _mapping(document.get("config")).get("prompts"))
    suite, file = _suite(path, _mapping(document.get("config")))
    given = sorted(
        results["results"], key=lambda row: (_whole(row.get("testIdx")), _whole(row.get("promptIdx")))
    )
    names = _names(given, prompts, document.get("config"), file)
    rows = [_whole_row(row, suite, labels, prompts, own) for row, own in zip(given, names, strict=True)]
    providers_transform = _may_transform(_mapping(document.get("config")))
    for row, ours in zip(given, rows, strict=True):
        if OURS not in row and (providers_transform or _transforms(row)):
            ours["details"]["transformed"] = True
    ids = _ids([row["case_id"] for row in rows], _cases_of(given, names, document))
    for row, source, case_id in zip(rows, given, ids, strict=True):
        row["case_id"] = _mapping(source.get(OURS)).get("case_id", case_id)
    seen: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["case_id"], row["agent"])
        seen[key] = seen.get(key, 0) + 1
        row.setdefault("attempt", seen[key])
    name = str(document.get("evalId") or path.stem)
    ours = _mapping(_mapping(document.get("metadata")).get(OURS))
    run = {"id": name, "state": "finished", "note": f"read from {path.name}, a file of promptfoo"}
    run |= _times(results)
    return {
        "timestamp": results.get("timestamp"),
        "results": rows,
        "cases": _cases(rows),
        "not_run": ours.get("not_run"),
        "metrics": ours["metrics"]
        if isinstance(ours.get("metrics"), list)
        else _metrics(given, prompts, suite),
        "run": _mapping(ours.get("run")) or run,
    }


def _metrics(rows: list[dict[str, Any]], prompts: list[dict[str, Any]], suite: str) -> list[dict[str, Any]]:
    """The sums of the columns with the metrics derived from them: promptfoo writes both under one key, and what no
    row has a score of is derived."""
    scored: dict[int, set[str]] = {}
    for row in rows:
        scored.setdefault(_whole(row.get("promptIdx")), set()).update(_mapping(row.get("namedScores")))
    found: list[dict[str, Any]] = []
    for place, prompt in enumerate(prompts):
        metrics, own = _mapping(prompt.get("metrics")), scored.get(place, set())
        sums = _mapping(metrics.get("namedScores"))
        if not sums.keys() - own:
            continue
        found.append(
            {
                "suite": suite,
                "agent": str(prompt.get("provider") or ""),
                "prompt": prompt.get("label"),
                "score": metrics.get("score"),
                "count": sum(_whole(row.get("promptIdx")) == place for row in rows),
                "named_scores": {key: value for key, value in sums.items() if key in own},
                "named_weights": _mapping(metrics.get("namedScoreWeights")),
                "derived": {key: value for key, value in sums.items() if key not in own},
            }
        )
    return found


def _times(results: Mapping[str, Any]) -> dict[str, float]:
    """When the run began and ended, as far as the file says."""
    took = _mapping(results.get("stats")).get("durationMs")
    try:
        began = datetime.datetime.fromisoformat(str(results.get("timestamp"))).timestamp()
    except (ValueError, OverflowError, OSError):
        return {}
    if isinstance(took, bool) or not isinstance(took, int | float):
        return {"started_at": began}
    return {"started_at": began, "finished_at": began + took / 1000}


def _suite(path: Path, config: Mapping[str, Any]) -> tuple[str, Path | None]:
    """The configuration that the results are of, from the project's root, and where that is: the one beside the file, or in the nearest
    folder above it within the project; of several the one with their description. Else promptfoo's own name for one,
    whatever the file is called: results of one suite meet in a comparison."""
    place = path.absolute().parent
    try:
        root, _ = find_root([place])
    except ConfigError:
        root = place
    above = [place, *(one for one in place.parents if one.is_relative_to(root))]
    for folder in above:
        found = sorted(one for one in folder.glob(_CONFIGS) if one.suffix.lower() in _READ)
        if len(found) > 1:
            found = [one for one in found if _description(one) == config.get("description")]
        if len(found) == 1:
            try:
                return found[0].relative_to(find_root([found[0]])[0]).as_posix(), found[0]
            except (ConfigError, ValueError):
                return found[0].name, found[0]
    return _USUAL, None


def _description(path: Path) -> Any:
    return _read(path).get("description")


def _read(path: Path) -> dict[str, Any]:
    try:
        return _mapping(yaml_lines.load(path.read_text("utf-8"), path.name, core=True).value)
    except (OSError, UnicodeError):
        return {}


def labels_of(prompts: list[dict[str, Any]], listed: Any = None) -> list[str]:
    """Of each column what its prompt is called in an id: what a person called it, else its number among the prompts.
    `listed` are the prompts as the configuration has them, where the file says it."""
    numbers: dict[str, int] = {}
    found: list[str] = []
    own = _called(prompts, listed)
    for prompt in prompts:
        raw, label = str(prompt.get("raw") or ""), str(prompt.get("label") or "")
        number = numbers.setdefault(f"{label}\n{raw}", len(numbers) + 1)
        if (label, raw) in own:
            found.append(own[label, raw] or f"prompt{number}")
            continue
        given = label and label != raw and not (raw and label.endswith(raw[-200:]))
        found.append(label if given and len(label) < 80 else f"prompt{number}")
    return found


def _called(prompts: list[dict[str, Any]], listed: Any) -> dict[tuple[str, str], str]:
    """By label and text of a prompt what the configuration calls it (`suite_prompts`); empty where nobody called it
    anything. Prompts of which the configuration says nothing that is known here are left out."""
    if isinstance(listed, dict):
        listed = [{"id": path, "label": label} for path, label in listed.items()]
    columns = {(str(one.get("label") or ""), str(one.get("raw") or "")) for one in prompts}
    found: dict[tuple[str, str], str] = {}
    for entry in listed if isinstance(listed, list) else ():
        given = _mapping(entry) or {"id": entry}
        raw, named, label = (_word(given.get(key)) for key in ("raw", "id", "label"))
        source = raw or named
        plain = source.removeprefix("file://")
        if raw and not raw.startswith("file://"):
            if named and not label:
                found.setdefault((raw, raw), named)
            continue
        if not label and not _FILE.search(plain):
            continue
        if not label:
            found.update({one: "" for one in columns if one[0] == plain or one[0] == f"{plain}: {one[1]}"})
            continue
        own = [one for one in columns if one[0] == f"{label}: {plain}: {one[1]}"]
        for one in own:  # a text file with several
            found[one] = label if len(own) == 1 else f"{label}: {one[1]}"
    return found


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


# -- Which case a row is of. promptfoo says neither that nor which attempt it is: its rows are counted through.


def _cases_of(
    rows: list[dict[str, Any]], names: list[str], document: Mapping[str, Any]
) -> list[tuple[int, int]]:
    """Of each row its case, as the place of its first attempt among tests and columns. Rows in one column that are called
    the same are attempts of one test as far as it was to be repeated, unless their tests differ in what they assert or
    else."""
    given = document.get("runtimeOptions")
    evaluate = _mapping(_mapping(document.get("config")).get("evaluateOptions"))
    usual = _mapping(given).get("repeat", evaluate.get("repeat", 1 if isinstance(given, dict) else None))
    found: list[tuple[int, int]] = []
    last: dict[tuple[str, int, bytes], tuple[bytes, int, tuple[int, int]]] = {}
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        test = _mapping(row.get("testCase"))
        column = _whole(row.get("promptIdx"))
        key = name, column, _json(_lasting(row))
        content = _json({part: test.get(part) for part in _OF_A_TEST})
        before, count, first = last.get(key, (content, 0, (place, column)))
        repeat = _mapping(test.get("options")).get("repeat", usual)
        if before != content or (isinstance(repeat, int) and count >= max(repeat, 1)):
            count, first = 0, (place, column)
        last[key] = content, count + 1, first
        found.append(first)
    return found


_OF_A_TEST = (
    "assert", "threshold", "options", "provider", "providers", "prompts", "providerOutput", "assertScoringFunction",
)  # fmt: skip
"""What tests with the same variables differ in."""


def _ids(wanted: list[str], cases: list[tuple[int, int]]) -> list[str]:
    """The ids of the rows' cases: like those of a suite, they are told apart in the order of its tests and columns."""
    ids = identity.Ids(str)
    found: dict[tuple[int, int], str] = {}
    for name, case in zip(wanted, cases, strict=True):
        if case not in found:
            found[case] = ids.take(name)
    return [found[case] for case in cases]


def _lasting(row: Mapping[str, Any]) -> dict[str, Any]:
    """The variables of a row without those of its run."""
    return {name: value for name, value in _mapping(row.get("vars")).items() if name not in _OF_THE_RUN}


def _names(
    rows: list[dict[str, Any]], prompts: list[dict[str, Any]], config: Any, file: Path | None
) -> list[str]:
    """Of each row what its case is called in an id: as its test says it where the file or the suite beside it has that.
    Else rows of one description whose variables differ are the combinations of a matrix, or tests of one description. A
    table's row is a test, and only `defaultTest` makes combinations of it."""
    config = _mapping(config)
    listed = config.get("tests")
    tests = [_mapping(one) for one in listed] if isinstance(listed, list) else []
    of_tables = _are_tables(listed)
    default = _mapping(_mapping(config.get("defaultTest")).get("vars"))
    scenarios = _Scenarios(config.get("scenarios"))
    given = [
        value for one in (default, *(_mapping(one.get("vars")) for one in tests)) for value in one.values()
    ]
    known = _Tests(config, tests, _read(file) if file and _is_rewritten(given) else {})
    if file is not None and _is_rewritten([value for row in rows for value in _lasting(row).values()]):
        for one in _tests_of_files(file.parent, listed):
            known.add({**one, "vars": _spelled(_mapping(one.get("vars")))}, one)
    groups: dict[tuple[str, int], dict[bytes, dict[str, Any]]] = {}
    found: list[str] = []
    heads: list[tuple[tuple[str, int], bytes] | None] = []
    for row in rows:
        variables, name = _lasting(row), _described(row)
        column = _whole(row.get("promptIdx"))
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
        alike = sum(_line(one.get("description")) == name for one in tests)
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
    """A test of a row: the variables that name it where nothing else does, and the values that the row has of its lists."""

    named_by: dict[str, Any]
    chosen: dict[str, Any]


class _Tests:
    """The tests of a configuration that it holds itself. Their variables are as the suite beside the results has them,
    where it has those tests: promptfoo writes some otherwise (`_spelled`), and cases are called by what the suite has."""

    def __init__(self, config: dict[str, Any], tests: list[dict[str, Any]], suite: dict[str, Any]) -> None:
        of_every = _mapping(config.get("defaultTest"))
        self._default, asserted = _mapping(of_every.get("vars")), of_every.get("assert")
        self._asserted = asserted if isinstance(asserted, list) else []
        of_all = _mapping(_mapping(suite.get("defaultTest")).get("vars"))
        self._of_all = of_all if _spelled(of_all) == _spelled(self._default) else self._default
        self._by_vars: dict[tuple[str, bytes], tuple[_Known, set[bytes]]] = {}
        self._with_lists: dict[tuple[str, str, bytes], list[_WithLists]] = {}
        beside = suite.get("tests")
        beside = [_mapping(one) for one in beside] if isinstance(beside, list) else []
        by_vars = {_as_written(one): one for one in beside}
        for place, test in enumerate(tests):
            if not test or "path" in test:  # from elsewhere
                continue
            written = _as_written(test)
            same = place < len(beside) and _as_written(beside[place]) == written
            self.add(test, beside[place] if same else by_vars.get(written, test))

    def add(self, test: dict[str, Any], source: dict[str, Any]) -> None:
        """`source` is the test as the suite has it, `test` as promptfoo writes it."""
        own, ours = _mapping(test.get("vars")), _mapping(source.get("vars"))
        name, asserts = _line(test.get("description")), _json(test.get("assert") or [])
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
        given = _mapping(row.get("testCase")).get("assert")
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


def _tests_of_files(folder: Path, listed: Any) -> Iterator[dict[str, Any]]:
    """The tests that a configuration has in plain files, as these have them today. The file of results says which they
    are, and has no business beyond the project."""
    try:
        root = find_root([folder])[0].resolve()
    except ConfigError:
        root = folder.resolve()
    entries = listed if isinstance(listed, list) else [listed]
    for entry in entries:
        named = _word(entry.get("path") if isinstance(entry, dict) else entry).removeprefix("file://")
        path, ending = folder / named, Path(named).suffix.lower()
        try:
            if not path.resolve().is_relative_to(root) or not path.is_file():
                continue
            if ending in (".yaml", ".yml", ".json"):
                found = yaml_lines.load(path.read_text("utf-8"), path.name, core=True).value
                yield from map(_mapping, found if isinstance(found, list) else [found])
            elif ending == ".csv":
                for cells in csv.DictReader(path.read_text("utf-8-sig").splitlines(keepends=True)):
                    values = {
                        name: cell for name, cell in cells.items() if name and not name.startswith("__")
                    }
                    yield {"description": cells.get("__description"), "vars": values}
        except (OSError, ValueError, csv.Error):  # UnicodeError is a ValueError
            continue


def _is_list(value: Any) -> bool:
    """Whether promptfoo makes combinations of a variable's values."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def _chosen(given: Any, value: Any, ours: Any) -> tuple[Any, ...] | None:
    """Which value of a list a row has, as the suite has it; empty where it has all there is, and None where it is another."""
    if given == value and not _is_list(given):
        return ()
    if _is_list(given) and value in given:
        return (ours[given.index(value)] if isinstance(ours, list) and len(ours) == len(given) else value,)
    return () if given == value else None


def _as_written(test: Mapping[str, Any]) -> bytes:
    return _json([_line(test.get("description")), _spelled(_mapping(test.get("vars")))])


def _spelled(value: Any) -> Any:
    """A value as promptfoo writes it into its file, and what it has written as that: texts of JSON anew, dates as `{}`."""
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
        for entry in filter(None, map(_mapping, entries)):
            data, tests = entry.get("config"), entry.get("tests")
            self._in_files |= isinstance(data, str) or isinstance(tests, str)
            sets = [_mapping(_mapping(one).get("vars")) for one in data] if isinstance(data, list) else []
            for test in tests if isinstance(tests, list) else ():
                self._in_files |= isinstance(test, str)
                name = _line(_mapping(test).get("description"))
                self._tests += [(name, given) for given in (_mapping(_mapping(test).get("vars")), *sets)]

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


def _are_tables(listed: Any) -> bool:
    """Whether the tests that a configuration does not hold itself are all from tables."""
    files = (
        [one.get("path") if isinstance(one, dict) else one for one in listed if isinstance(one, dict | str)]
        if isinstance(listed, list)
        else [listed]
    )
    named = [one.partition("#")[0].lower() for one in files if isinstance(one, str)]
    return bool(named) and all(one.endswith(_TABLES) or _SHEET in one for one in named)


def _described(row: Mapping[str, Any]) -> str:
    """A row's description; empty where promptfoo filled one in."""
    name = _line(_mapping(row.get("testCase")).get("description"))
    return "" if FILLED_IN.fullmatch(name) else name


def _line(text: Any) -> str:
    return " ".join(str(text or "").split())


def _whole_row(
    row: dict[str, Any], suite: str, labels: list[str], prompts: list[dict[str, Any]], own: str
) -> dict[str, Any]:
    """A result with what our own export says of it beside promptfoo's members."""
    found, more = row_of(row, suite, labels, prompts, own), _mapping(row.get(OURS))
    if more.get("format", found["format"]) != found["format"]:
        del found["template"], found["provider"]  # such a case has its own text and no column
    details = {**found["details"], **_mapping(more.get("details"))}
    return {**found, **more, "details": details}


def _transforms(row: Mapping[str, Any]) -> bool:
    """Whether a test has a transform: promptfoo writes what it left, and the answer itself nowhere (`raw` is whatever its
    provider says it is)."""
    options = _mapping(_mapping(row.get("testCase")).get("options"))
    return bool(options.get("transform") or options.get("postprocess"))


def _may_transform(config: Mapping[str, Any]) -> bool:
    """Whether a provider of the configuration has a transform, or may: one that stands in a file, or is not there."""
    listed = config.get("providers") or config.get("targets")
    return any(
        one.startswith("file://") and one.endswith(_PROVIDER_FILES)
        if isinstance(one, str)
        else not isinstance(one, dict) or bool(_provider_options(one).get("transform"))
        for one in (listed if isinstance(listed, list) else [listed])
    )


_PROVIDER_FILES = (".yaml", ".yml", ".json")


def _provider_options(entry: dict[str, Any]) -> dict[str, Any]:
    only = next(iter(entry.values()), None) if len(entry) == 1 else None
    return only if isinstance(only, dict) else entry


def _cases(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many attempts of a case had to pass, as far as the file says."""
    return [
        {
            "case_id": row["case_id"],
            "agent": row["agent"],
            "model": row.get("asked_model"),
            "required": row["required"],
        }
        for row in rows
        if "required" in row
    ]


def row_of(
    row: dict[str, Any],
    suite: str,
    labels: list[str],
    prompts: list[dict[str, Any]],
    own: str = "",
) -> dict[str, Any]:
    """A result of promptfoo as one of ours. `labels` are those of the columns (`labels_of`), `own` what its case is
    called among all rows (`_names`)."""
    test, provider = _mapping(row.get("testCase")), _mapping(row.get("provider"))
    variables, response = _mapping(row.get("vars")), _mapping(row.get("response"))
    agent = str(provider.get("label") or provider.get("id") or "promptfoo")
    column = _whole(row.get("promptIdx"))
    asked = test.get("provider")  # a test's own is asked in the place of its column's
    answering = asked if isinstance(asked, str) else _mapping(asked).get("label") or _mapping(asked).get("id")
    label = labels[column] if 0 <= column < len(labels) else f"prompt{column + 1}"
    name = _line(test.get("description"))
    called = own or _described(row) or identity.unnamed(variables)
    usage = _mapping(row.get("tokenUsage")) or _mapping(response.get("tokenUsage"))
    passed = row["success"] is True
    outcome = "passed" if passed else "error" if row.get("failureReason") == _ERROR else "failed"
    output, error = response.get("output"), row.get("error")
    text = "" if output is None else js.text_of(output)
    answered = bool(text) and not response.get("error")  # what failed then is the judging of it
    failure = str(error) if outcome == "error" and error and not answered else None
    told = _mapping(row.get("gradingResult")).get("reason") or error
    sent = _mapping(row.get("prompt")).get("raw")
    details = {"response_text": text, "output": None if isinstance(output, str) else output}
    if not text and isinstance(row.get("response"), dict) and (outcome != "error" or output == ""):
        details["empty_reply"] = "empty" if output == "" else "missing"
    if carried := {ours: one for ours, theirs in _CARRIED.items() if (one := response.get(theirs))}:
        details["reported"] = [{"turn": 1, **carried}]
    return {
        "name": name or f"Row #{_whole(row.get('testIdx')) + 1}",
        "suite": suite,
        "format": "promptfoo",
        "case_id": f"{suite}::{called}::{agent}::{label}",
        "agent": str(answering) if answering else agent,
        "prompt": prompts[column].get("label") if 0 <= column < len(prompts) else label,
        "template": prompts[column].get("raw") if 0 <= column < len(prompts) else None,
        "provider": provider,
        "vars": variables,
        "metadata": _mapping(test.get("metadata")),
        "passed": passed,
        "outcome": outcome,
        "message": "passed" if passed else str(told or "failed"),
        "error": failure,
        "score": row.get("score"),
        "named_scores": _mapping(row.get("namedScores")),
        "named_weights": _mapping(_mapping(row.get("gradingResult")).get("namedScoreWeights")),
        "cost": row.get("cost"),
        "duration_ms": row.get("latencyMs", response.get("latencyMs")),
        "usage": _tokens(usage),
        "judging": _judging(usage.get("assertions"), OURS in row),
        "cached": response.get("cached") is True,
        "assertions": [_assertion(one, within) for one, within in _parts(row)],
        "details": details,
        "transcript": _transcript(sent, text, failure),
        **({"column": agent} if answering else {}),
    }  # fmt: skip


def _judging(given: Any, ours: bool) -> dict[str, Any] | None:
    """What graders took; None where none is known to have been asked: promptfoo writes zeros then, and that of every row
    that was judged at all one request."""
    counts = _mapping(given)
    if not any(
        counts.get(key) for key in ("total", "prompt", "completion", "cached", *(["numRequests"] * ours))
    ):
        return None
    return {"calls": counts.get("numRequests") or 1, **_tokens(counts)}


def _tokens(given: Mapping[str, Any]) -> dict[str, Any]:
    """Counts by kind. Of one that has a sum alone all are input, as where nobody says more (`store.imported`); a sum of
    cached ones is none that was spent."""
    sent, answered, cached, total = (given.get(key) for key in ("prompt", "completion", "cached", "total"))
    if not sent and not answered and total and total != cached:
        sent = total
    return {"input_tokens": sent, "output_tokens": answered, "cached_tokens": cached}


def _parts(row: Mapping[str, Any]) -> list[tuple[dict[str, Any], int | None]]:
    """Every assertion's result in order, with the place of the set that it belongs to.

    promptfoo writes what a set or a script's answer consists of within it and once more behind it; what those of a
    script consist of, only within them.
    """
    found: list[tuple[dict[str, Any], int | None]] = []

    def add(listed: list[dict[str, Any]], within: int | None, depth: int = 0) -> None:
        at = 0
        while at < len(listed):
            part, inner = listed[at], _components(listed[at])
            again = listed[at + 1 : at + 1 + len(inner)]
            repeated = bool(inner) and [_seen(one) for one in again] == [_seen(one) for one in inner]
            place = len(found)
            found.append((part, within))
            if "assertion" not in part and depth < _DEEPEST:
                add(again if repeated else inner, place if within is None else within, depth + 1)
            at += 1 + (len(again) if repeated else 0)

    add(_components(row.get("gradingResult")), None)
    return found


_DEEPEST = 20


def _components(holder: Any) -> list[dict[str, Any]]:
    parts = _mapping(holder).get("componentResults")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _seen(part: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(repr(part.get(key)) for key in ("pass", "score", "reason"))


def _assertion(part: Mapping[str, Any], within: int | None) -> dict[str, Any]:
    given, more = _mapping(part.get("assertion")), _mapping(part.get("metadata"))
    whole = _mapping(more.get("assertionSet"))
    found = {
        "type": str(given.get("type") or "assert-set"),
        "target": "text",
        "expected": more.get("renderedAssertionValue", given.get("value")),
        "actual": None,
        "passed": part.get("pass") is True,
        "score": part.get("score"),
        "reason": str(part.get("reason") or ""),
        "weight": given.get("weight", whole.get("weight")),
        "metric": given.get("metric", whole.get("metric")),
    }
    if given and (parts := _components(part)):
        found["parts"] = parts
    return found if within is None else {**found, "set": within}


def _transcript(asked: Any, text: str, error: Any) -> list[dict[str, Any]]:
    entries = [("user", "" if asked is None else str(asked)), ("assistant", text)]
    found = [{"turn": 1, "kind": kind, "text": said} for kind, said in entries if said]
    return [*found, *([{"turn": 1, "kind": "error", "text": str(error)}] if error else [])]


def _json(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, UnicodeError, RecursionError):
        return repr(value).encode("utf-8", "replace")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
