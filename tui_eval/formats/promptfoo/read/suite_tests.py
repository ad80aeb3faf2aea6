"""A test as promptfoo's files give it: read from a mapping, checked, and merged with defaults."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from tui_eval import extensions
from tui_eval.formats.promptfoo.promptfoo_words import GRADING_KINDS, assertions_of
from tui_eval.formats.promptfoo.read import promptfoo_types
from tui_eval.formats.promptfoo.read.suite_file import LineOf, Missing, SuiteReading, brief, dotted_key
from tui_eval.guard.spelling import close_to
from tui_eval.javascript.values import text
from tui_eval.model import Assertion, Problem

MOST_ASSERTIONS = 10_000
Path_ = tuple[Any, ...]


class PromptfooTest(msgspec.Struct, omit_defaults=True):
    """One test, wherever it came from.

    `description` is the file's own, `row` what stands for it where it has none (`Row #3`).
    `vars` keeps lists unexpanded. `assertions` is flat: members of a set follow its entry. `files_first` says that the
    tool puts files in place of what its assertions expect before anything else.
    """

    __test__ = False

    path: str
    line: int
    vars: dict[str, Any] = {}
    assertions: list[Assertion] = []
    description: str = ""
    row: str = ""
    threshold: float | None = None
    metadata: dict[str, Any] | None = None
    options: dict[str, Any] | None = None
    provider: Any = None
    providers: list[str] | None = None
    prompts: list[str] | None = None
    provider_output: Any = None
    scoring: Any = None
    files_first: bool = False
    problems: list[Problem] = []


class TestReader:
    """Reads the mappings of one file into `Test`s; problems of a test stay with it."""

    __test__ = False

    def __init__(self, reading: SuiteReading, path: str, line_of: LineOf) -> None:
        self.reading = reading
        self.path = path
        self.line_of = line_of

    def test(self, data: Any, at: Path_, *, row: str = "", needs_some: bool = True) -> PromptfooTest | None:
        """One test from its mapping; None, with a problem of the suite, where it is none at all.

        Args:
            at: the key path of the mapping within its file, for lines.
            needs_some: an empty test is an error (lists; not in the string form of JSON files).
        """
        line = self.line_of(*at)
        key = dotted_key(at)
        unread = self.reading.unread_below(self.path, at)
        if data is None and unread:
            return None
        if not isinstance(data, dict):
            self.reading.problem(self.path, line, key, f"a test must be a mapping, not {brief(data)}")
            return None
        if (
            needs_some
            and not unread
            and not any(data.get(k) is not None for k in promptfoo_types.REQUIRED_SOME)
        ):
            slips = ((k, close_to(str(k), promptfoo_types.REQUIRED_SOME)) for k in data)
            given, slip = next((one for one in slips if one[1]), ("", None))
            wanted = ", ".join(promptfoo_types.REQUIRED_SOME)
            cure = f"did you mean {slip} by {brief(given)}?" if slip else f"give one of {wanted}"
            self.reading.problem(self.path, line, key, "a test without anything to test", cure)
            return None
        test = PromptfooTest(self.path, line, row=row, problems=unread)
        before = len(self.reading.problems)
        self._fill(test, data, at)
        found = self.reading.problems[before:]
        del self.reading.problems[before:]
        test.problems.extend(found)
        return test

    def _fill(self, test: PromptfooTest, data: dict[str, Any], at: Path_) -> None:
        self.reading.check_keys(
            data, promptfoo_types.TEST_KEYS, self.path, self.line_of, at, promptfoo_types.OF_AN_ASSERTION
        )
        description = data.get("description")
        if description is not None:
            test.description = description if isinstance(description, str) else str(description)
        test.vars = self._vars(data.get("vars"), (*at, "vars"))
        test.metadata = self._mapping(data.get("metadata"), (*at, "metadata"))
        test.options = self._mapping(data.get("options"), (*at, "options"))
        if test.options:
            self.reading.check_slips(
                test.options, promptfoo_types.OPTION_KEYS, self.path, self.line_of, (*at, "options")
            )
        for name in promptfoo_types.NOT_AMONG_OPTIONS:
            if name in (test.options or {}):
                place = (*at, "options", name)
                self.reading.problem(
                    self.path, self.line_of(*place), dotted_key(place), "is only a provider's setting here",
                    f"{name} counts as a key of the test, beside its options", level="note",
                )  # fmt: skip
        if test.options and "provider" in test.options:
            grader = self._grader(test.options["provider"], (*at, "options", "provider"))
            test.options = {**test.options, "provider": grader}
        for key, wrong in promptfoo_types.of_test(test.options or {}):
            self._error((*at, "options", *key), wrong)
        for key, wrong in promptfoo_types.switches(test.options or {}):
            place = (*at, "options", *key)
            self.reading.problem(self.path, self.line_of(*place), dotted_key(place), wrong, level="note")
        test.threshold = self._number(data.get("threshold"), (*at, "threshold"))
        test.assertions = self.assertions(data.get("assert"), (*at, "assert"))
        test.provider = self._loaded(data.get("provider"), (*at, "provider"))
        if isinstance(test.provider, dict) and "transform" in test.provider:
            place = (*at, "provider", "transform")
            self.reading.problem(
                self.path, self.line_of(*place), dotted_key(place),
                "is not made: outputs go through the transform of the provider in whose column they stand",
                "write it under options of the test", level="note",
            )  # fmt: skip
        test.provider_output = data.get("providerOutput")
        test.providers = self._names(data.get("providers"), (*at, "providers"))
        test.prompts = self._names(data.get("prompts"), (*at, "prompts"))
        test.scoring = self._text(data.get("assertScoringFunction"), (*at, "assertScoringFunction"))

    def _error(self, at: Path_, message: str, cure: str = "") -> None:
        self.reading.problem(self.path, self.line_of(*at), dotted_key(at), message, cure)

    def _loaded(self, value: Any, at: Path_) -> Any:
        """A `file://` YAML or JSON where a structure is expected, replaced by its content."""
        if not (
            isinstance(value, str)
            and value.startswith("file://")
            and value.endswith((".yaml", ".yml", ".json"))
        ):
            return value
        try:
            return self.reading.parsed(self.reading.find(value))[0]
        except Missing as error:
            if str(error):
                self._error(at, str(error), "paths are relative to the configuration's folder")
            return None

    def _grader(self, value: Any, at: Path_) -> Any:
        """The model that grades, or one for each kind of grading; where a file has it, that one."""
        if isinstance(value, dict):
            kinds = GRADING_KINDS.intersection(value) if "id" not in value else ()
            return {**value, **{kind: self._grader(value[kind], (*at, kind)) for kind in sorted(kinds)}}
        given = self._loaded(value, at)
        if given is value or isinstance(given, dict):
            return given
        if given is not None:
            self._error(at, f"{value} must hold one provider", "write its id and config there, not a list")
        return value  # which nobody asks: no other model grades in its place

    def _mapping(self, value: Any, at: Path_) -> dict[str, Any] | None:
        value = self._loaded(value, at)
        if value is None or isinstance(value, dict):
            return value
        self._error(at, f"must be a mapping, not {brief(value)}")
        return None

    def _number(self, value: Any, at: Path_) -> float | None:
        if value is None or (
            isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
        ):
            return value
        self._error(at, f"must be a number, not {brief(value)}")
        return None

    def _names(self, value: Any, at: Path_) -> list[str] | None:
        if value is None:
            return None
        if isinstance(value, str):
            return [value]
        if isinstance(value, list) and all(isinstance(v, str) for v in value):
            return value
        self._error(at, f"must be a list of names, not {brief(value)}")
        return None

    def _vars(self, value: Any, at: Path_) -> dict[str, Any]:
        """A mapping, or patterns of YAML/JSON files whose mappings are merged."""
        if value is None:
            return {}
        if isinstance(value, dict):
            return {_name(k): v for k, v in value.items()}
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            self._error(at, f"must be a mapping, not {brief(value)}")
            return {}
        merged: dict[str, Any] = {}
        folder = (self.reading.root / self.path).parent
        for pattern in value:
            try:
                paths = self.reading.glob(pattern, folder)
                if not paths and not self.reading.reference:
                    raise Missing(f"no file matches {pattern.removeprefix('file://')}")
                for path in paths:
                    found = self.reading.parsed(path)[0]
                    if isinstance(found, dict):
                        merged.update((_name(k), v) for k, v in found.items())
                    else:
                        self._error(at, f"{path.name} must hold a mapping of vars")
            except Missing as error:
                if str(error):
                    self._error(at, str(error))
        return merged

    def assertions(self, value: Any, at: Path_) -> list[Assertion]:
        """The flat list of assertions under `assert`; what is none of them is a problem."""
        value = self._loaded(value, at)
        if value is None:
            return []
        if not isinstance(value, list):
            self._error(at, f"must be a list of assertions, not {brief(value)}", "begin each with a dash")
            return []
        if len(value) > MOST_ASSERTIONS:
            self._error(at, f"more than {MOST_ASSERTIONS} assertions in one test")
            return []
        result: list[Assertion] = []
        for index, given in enumerate(value):
            place = (*at, index)
            entry = self._loaded(given, place)
            if isinstance(entry, dict) and entry.get("type") == "assert-set":
                self._set(result, entry, place)
            elif (assertion := self._assertion(entry, place)) is not None:
                result.append(assertion)
        return result

    def _set(self, result: list[Assertion], entry: dict[str, Any], at: Path_) -> None:
        self.reading.check_keys(entry, promptfoo_types.SET_KEYS, self.path, self.line_of, at)
        members = self._loaded(entry.get("assert"), (*at, "assert"))
        if members is None and self.reading.unread_below(self.path, (*at, "assert")):
            return
        if not isinstance(members, list):
            self._error(at, "an assert-set without a list under assert", "list its assertions under assert")
            return
        place = len(result)
        result.append(
            Assertion(
                "assert-set",
                threshold=self._number(entry.get("threshold"), (*at, "threshold")),
                weight=self._number(entry.get("weight"), (*at, "weight")),
                metric=self._metric(entry.get("metric"), (*at, "metric")),
                config=entry.get("config"),
                line=self.line_of(*at),
            )
        )
        for index, member in enumerate(members[:MOST_ASSERTIONS]):
            where = (*at, "assert", index)
            if isinstance(member, dict) and member.get("type") == "assert-set":
                self._error(
                    where, "an assert-set within an assert-set", "take its assertions out of the inner set"
                )
            elif (assertion := self._assertion(self._loaded(member, where), where)) is not None:
                assertion.set = place
                result.append(assertion)

    def _assertion(self, entry: Any, at: Path_) -> Assertion | None:
        if entry is None and self.reading.unread_below(self.path, at):
            return None
        if not isinstance(entry, dict):
            self._error(
                at, f"an assertion must be a mapping, not {brief(entry)}", "write type: … and value: …"
            )
            return None
        kind = entry.get("type")
        if not isinstance(kind, str) or not kind:
            slip = next((key for key in entry if close_to(str(key), ("type",))), None)
            cure = (
                f"did you mean type by {brief(slip)}?" if slip else "keep type and value under the same dash"
            )
            self._error(at, "an assertion without a type", cure)
            return None
        self.reading.check_keys(entry, promptfoo_types.ASSERTION_KEYS, self.path, self.line_of, at)
        self._check_type(kind, (*at, "type"))
        place = (*at, "value")
        self._check_rule(kind.removeprefix("not-"), entry.get("value"), place)
        self.reading.note_own_env(self.path, self.line_of(*place), dotted_key(place), entry.get("value"))
        extra = {
            k: v
            for k, v in entry.items()
            if k not in ("type", "value", "threshold", "weight", "metric", "transform", "provider", "config")
        }
        return Assertion(
            kind,
            entry.get("value", UNSET),
            threshold=self._number(entry.get("threshold"), (*at, "threshold")),
            weight=self._number(entry.get("weight"), (*at, "weight")),
            metric=self._metric(entry.get("metric"), (*at, "metric")),
            transform=self._text(entry.get("transform"), (*at, "transform")),
            provider=self._grader(entry.get("provider"), (*at, "provider")),
            config=entry.get("config"),
            extra=extra or None,
            line=self.line_of(*at),
        )

    def _check_rule(self, kind: str, value: Any, at: Path_) -> None:
        """A slip in what an assertion asks for (`allowedTable`) would ask for nothing."""
        known = promptfoo_types.VALUE_KEYS.get(kind)
        if known is None:
            return
        if isinstance(value, dict):
            self.reading.check_keys(value, known, self.path, self.line_of, at)
            value, at = value.get("steps"), (*at, "steps")
        if "steps" in known and isinstance(value, list):
            for number, step in enumerate(value):
                if isinstance(step, dict):
                    place = (*at, number)
                    self.reading.check_keys(step, promptfoo_types.STEP_KEYS, self.path, self.line_of, place)

    def _metric(self, value: Any, at: Path_) -> str | None:
        return text(value) if isinstance(value, (int, float)) else self._text(value, at)

    def _text(self, value: Any, at: Path_) -> str | None:
        if value is None or isinstance(value, str):
            return value
        self._error(at, f"must be text, not {brief(value)}")
        return None

    def _check_type(self, kind: str, at: Path_) -> None:
        if kind in promptfoo_types.NOT_IGNORED:
            self.reading.problem(
                self.path, self.line_of(*at), dotted_key(at), f"not- makes no difference before {kind[4:]}, "
                "as in promptfoo", "say it by the limits in value instead", level="note",
            )  # fmt: skip
        if kind in promptfoo_types.ALL_TYPES or kind.startswith("promptfoo:redteam:"):
            return
        if kind.removeprefix("not-") in extensions.assertion_types("promptfoo"):
            return
        meant = close_to(kind, promptfoo_types.ALL_TYPES)
        self._error(at, f"unknown assertion type {brief(kind)}", f"did you mean {meant}?" if meant else "")


def _name(key: Any) -> str:
    """The name of a var as JavaScript has it: `true`, `null`, `1.5`."""
    return key if isinstance(key, str) else "null" if key is None else text(key)


def written(test: PromptfooTest) -> dict[str, Any]:
    """A test with the keys by which a file gives it; what it does not say is not there."""
    found = {
        "description": test.description or None,
        "vars": dict(test.vars) or None,
        "provider": test.provider,
        "providers": test.providers,
        "prompts": test.prompts,
        "providerOutput": test.provider_output,
        "threshold": test.threshold,
        "options": test.options,
        "metadata": test.metadata,
        "assert": assertions_of(test.assertions) or None,
        "assertScoringFunction": test.scoring,
    }
    return {key: value for key, value in found.items() if value is not None}


def merged(test: PromptfooTest, default: PromptfooTest | None) -> PromptfooTest:
    """A test with `defaultTest` laid under it (formats/promptfoo.md 3.2); `test` itself without one."""
    if default is None:
        return test
    options = _options(default.options, test.options)
    # As in the tool, only a test itself can refuse the default's assertions, and only with `true`.
    own_only = (test.options or {}).get("disableDefaultAsserts") is True
    return msgspec.structs.replace(
        test,
        vars={**default.vars, **test.vars} if default.vars else test.vars,
        assertions=test.assertions if own_only else joined(default.assertions, test.assertions),
        threshold=default.threshold if test.threshold is None else test.threshold,
        options=options,
        metadata=_under(default.metadata, test.metadata),
        prompts=default.prompts if test.prompts is None else test.prompts,
        providers=default.providers if test.providers is None else test.providers,
        provider=default.provider if test.provider is None else test.provider,
        scoring=test.scoring or default.scoring,
        problems=[*default.problems, *test.problems] if default.problems else test.problems,
    )


def _under(default: dict[str, Any] | None, own: dict[str, Any] | None) -> dict[str, Any] | None:
    if not default:
        return own
    return {**default, **own} if own else default


def _options(default: dict[str, Any] | None, own: dict[str, Any] | None) -> dict[str, Any] | None:
    """Options one over the other; an empty `prefix` or `suffix` does not take the default's away."""
    found = _under(default, own)
    if not default or not own or found is None:
        return found
    kept = {name: default[name] for name in ("prefix", "suffix") if default.get(name) and not own.get(name)}
    return {**found, **kept}


def joined(first: list[Assertion], second: list[Assertion]) -> list[Assertion]:
    """Two flat lists after one another, the places of the second's sets moved along."""
    if not first:
        return second
    shift = len(first)
    moved = [a if a.set is None else msgspec.structs.replace(a, set=a.set + shift) for a in second]
    return [*first, *moved]
