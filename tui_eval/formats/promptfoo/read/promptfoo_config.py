"""The configuration file itself: its keys in the order in which promptfoo works through them."""

from __future__ import annotations

import gc
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tui_eval.config.project import Config, rule_for
from tui_eval.formats.format import COLUMNS
from tui_eval.formats.promptfoo.read import promptfoo_types, scenarios, suite_prompts, suite_providers
from tui_eval.formats.promptfoo.read.combined import combined
from tui_eval.formats.promptfoo.read.env_files import env_files, fill_all, own_env, read_beside
from tui_eval.formats.promptfoo.read.matrix_cases import CaseMaker, TooMany, columns
from tui_eval.formats.promptfoo.read.promptfoo_types import names
from tui_eval.formats.promptfoo.read.references import References
from tui_eval.formats.promptfoo.read.render import filter_file
from tui_eval.formats.promptfoo.read.suite_cases import all_cases, own_test, place_of
from tui_eval.formats.promptfoo.read.suite_file import (
    LineOf,
    Missing,
    SuiteReading,
    brief,
    dotted_key,
    is_pattern,
)
from tui_eval.formats.promptfoo.read.suite_tests import PromptfooTest, TestReader, written
from tui_eval.formats.promptfoo.read.test_sources import Sources
from tui_eval.guard.paths import read_file
from tui_eval.guard.secrets import secret_values
from tui_eval.guard.trust import Trust, is_variable, script
from tui_eval.model import Case, Problem, Suite
from tui_eval.nunjucks.suite_environment import SuiteEnvironment
from tui_eval.suites.sampling import sample
from tui_eval.suites.saved_talk import Original
from tui_eval.yaml import yaml_lines

CONFIG_TIME = 60.0
"""Seconds that a configuration in JavaScript may take."""

KEPT = ("tags", "derivedMetrics", "outputPath", "tracing")
IGNORED = {
    "sharing": "results are not shared; nothing leaves this machine",
    "redteam": "red team tests are not made here",
    "plugins": "red team tests are not made here",
    "strategies": "red team tests are not made here",
    "writeLatestResults": "every run is kept anyway",
}
"""Keys that are read and have no effect, and why."""

HOOK = re.compile(rf"file://(.+\.(?:{promptfoo_types.CODE}))(?::(\w+))?\Z", re.DOTALL)
"""An entry of `extensions`."""


def read(path: str, text: str, config: Config, trust: Trust) -> Suite:
    """Read a suite; `path` is from the project root. Never raises for content."""
    rule = rule_for(config, path)
    reading = SuiteReading(path, config, trust, (rule.compat if rule else None) or "documented")
    suite = Suite(path=path, format="promptfoo", problems=reading.problems, files=reading.files)
    # A hundred thousand rows are no garbage: looking for some among them would double the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        ConfigReader(reading, suite).read(text)
    except RecursionError:
        reading.problem(path, 0, "", "the file is nested too deeply")
    finally:
        reading.close()
        if collecting:
            gc.enable()
    return suite


def as_written(case: Case, config: Config, trust: Trust) -> Original:
    """The test of a case as its file has it now, with nothing of the environment in it."""
    env: dict[str, str] = {}
    try:
        text = read_file(config.root / case.suite).decode("utf-8-sig")
        rule = rule_for(config, case.suite)
        compat = (rule.compat if rule else None) or "documented"
        place: tuple[int, int] | None = None
        # Read as always, where is the case? Read with nothing filled in, what is there?
        for filled in (True, False):
            reading = SuiteReading(case.suite, config, trust, compat)
            try:
                reader = ConfigReader(reading, Suite(case.suite, "promptfoo"), filled=filled)
                data = reader.document(text)
                asked = reader.asked(data) if data is not None else None
                reader.env_of_files()
                env |= reading.env
                if filled:
                    place = place_of(*asked, case.case_id) if asked is not None else None
                elif place is not None and data is not None and asked is not None:
                    return Original(own_test(*asked, place, data), env)
                if place is None:
                    break
            finally:
                reading.close()
    except (OSError, ValueError, RecursionError, Missing, TooMany):
        pass
    return Original(None, env)


def _as_written_here(path: str) -> str:
    """A file of results by the ending that its kind has here: what promptfoo writes as JSON or YAML is its own JSON."""
    if path.lower().endswith((".csv", ".html", ".junit.xml", ".jsonl", ".promptfoo.json")):
        return path
    plain = re.sub(r"(?i)\.(?:json|ya?ml|txt|xml)$", "", path)
    return "results.promptfoo.json" if "://" in path else f"{plain}.promptfoo.json"


class ConfigReader:
    """Fills a `Suite` from the text of its configuration; not `filled`, with `{{ env.NAME }}` left as it stands."""

    def __init__(self, reading: SuiteReading, suite: Suite, *, filled: bool = True) -> None:
        self.reading = reading
        self.suite = suite
        self._filled = filled
        self.line_of: LineOf = lambda *_: 0
        self.others: list[tuple[SuiteReading, dict[str, Any], LineOf]] = []
        self.of_all: list[Problem] = []

    @contextmanager
    def _of_all_cases(self) -> Iterator[None]:
        """What is wrong in a part that every case rests on is an error of each: without that part it may pass."""
        problems = self.reading.problems
        before = len(problems)
        yield
        self.of_all += (one for one in problems[before:] if one.level == "error")

    def read(self, text: str) -> None:
        """Parse, dereference, fill in the environment, then read key by key."""
        suite = self.suite
        data = self.document(text)
        if data is None:
            return
        self._untold()
        description = data.get("description")
        suite.description = description if isinstance(description, str) else ""
        suite.cases = all_cases(*self.asked(data))
        self.env_of_files()
        if self.reading.env_unread or any(map(is_variable, self.reading.trust.wanted)):
            suite.settings["env_left"] = True
        suite.hidden = self.reading.secrets

    def document(self, text: str) -> dict[str, Any] | None:
        """The configuration, of several the one that they make; None, with a problem, where it is none."""
        reading = self.reading
        whole = self._document(text)
        data = self._dereferenced(reading, whole, self.line_of) if whole is not None else None
        if data is None:
            return None
        first, data = data, self._combined(data)
        with self._of_all_cases():
            typed = data.get("commandLineOptions")
            named = typed.get("envPath", typed.get("envFile")) if isinstance(typed, dict) else None
            of_files = env_files(named, text, reading)
            reading.env = own_env(data.get("env"), reading, of_files)
            reading.own_names = reading.env.keys() - of_files.keys() - os.environ.keys()
        if self.others and self._filled:
            self.others = [(other, self._with_own_env(of_files, more), at) for other, more, at in self.others]
            data = combined([self._with_own_env(of_files, first), *(more for _, more, _ in self.others)])
        return self._with_env(data)

    def _with_own_env(self, files: Mapping[str, str], data: dict[str, Any]) -> dict[str, Any]:
        """One of several configurations: what its own `env` says stands before what a later one says."""
        env = data.get("env")
        if not isinstance(env, dict):
            return data
        reading = self.reading
        known = {**reading.env, **own_env(env, reading, files)}
        # `reading.env` has what a later one says.
        reading.keep_secret(secret_values(known))
        own = SuiteEnvironment(known, reading.trust)
        others = {name: value for name, value in data.items() if name != "env"}
        return {**fill_all(others, own, reading.keep_secret), "env": env}

    def _with_env(self, data: dict[str, Any]) -> dict[str, Any]:
        if not self._filled:
            return data
        reading = self.reading
        return fill_all(data, SuiteEnvironment(reading.env, reading.trust), reading.keep_secret)

    def _combined(self, data: dict[str, Any]) -> dict[str, Any]:
        """The configuration with the others that were given with `-c` after it."""
        reading = self.reading
        given = [Path(path) for path in reading.config.typed.get("configs", ())]
        if not given or given[0] != reading.path:
            return data
        for path in given[1:]:
            other = reading.beside(path)
            part = ConfigReader(other, self.suite)
            whole = None
            with self._of_all_cases():
                try:
                    whole = part._document(other.text(path))
                except Missing as error:
                    reading.problem(other.name, 0, "", str(error))
            if whole is None:
                continue
            found = self._dereferenced(other, whole, part.line_of)
            if found is not None:
                self.others.append((other, found, part.line_of))
        return combined([data, *(found for _, found, _ in self.others)])

    def _dereferenced(
        self, reading: SuiteReading, whole: dict[str, Any], line_of: LineOf
    ) -> dict[str, Any] | None:
        references = References(reading, whole, line_of)
        data = references.resolve(whole)
        if not isinstance(data, dict):
            return None
        for name in references.used - promptfoo_types.TOP_KEYS:
            reading.unread_below(reading.name, (name,))  # missing in those only that refer to it
        known = promptfoo_types.TOP_KEYS | references.used
        code = reading.path.suffix[1:].lower() in promptfoo_types.JAVASCRIPT
        if not code and data.keys() - known:  # a key may hold what others refer to by an anchor
            with suppress(Missing):
                known |= yaml_lines.load(reading.text(reading.path), reading.name, core=True).lines.holders()
        with self._of_all_cases():
            reading.check_keys(data, known, reading.name, line_of, elsewhere=promptfoo_types.OF_EVERY_TEST)
        return data

    def _document(self, text: str) -> dict[str, Any] | None:
        """The configuration as a mapping; None, with a problem, where it is none."""
        reading = self.reading
        if reading.path.suffix[1:].lower() in promptfoo_types.JAVASCRIPT:
            value: Any = self._exported()
        else:
            try:
                value, self.line_of = reading.parsed_text(text, reading.name)
            except Missing:
                return None
            if value is None:
                reading.problem(reading.name, 0, "", "the file is empty", "give prompts, providers and tests")
        if isinstance(value, dict):
            return value
        if value is not None:
            reading.problem(reading.name, 1, "", f"must be a mapping, not {brief(value)}")
        return None

    def _exported(self) -> Any:
        """What a configuration in JavaScript exports, or what the function that it exports returns."""
        from tui_eval.scripting.script_host import ScriptError

        reading = self.reading
        if not reading.want(script(reading.root / reading.name, reading.root)):
            reading.problems.pop()
            reading.problem(
                reading.name,
                0,
                "",
                f"needs trust: {script(reading.root / reading.name, reading.root)}",
                "run with --trust, or trust the folder",
            )
            return None
        try:
            return (
                reading.node()
                .value_sync(
                    reading.path,
                    timeout=CONFIG_TIME,
                    cwd=reading.base,
                    reference=reading.path.name,
                )
                .value
            )
        except ScriptError as error:
            reading.problem(reading.name, 0, "", str(error))
            return None

    def env_of_files(self) -> None:
        """The `.env` beside the suite, where only the files of its tests and prompts name variables."""
        reading = self.reading
        if not reading.naming_env or reading.env_beside:
            return
        read_beside(reading)
        self._env_withheld()
        if reading.env_file:
            self.suite.settings["env_file"] = reading.env_file
            self.suite.settings["env"] = reading.env = {**reading.env_file, **reading.env}
            reading.keep_secret(secret_values(reading.env))

    def _env_withheld(self) -> None:
        reading, settings = self.reading, self.suite.settings
        if reading.env_unread:
            settings["env_unread"] = reading.env_unread
        if reading.env_code:
            settings["env_code"] = reading.env_code

    def _untold(self) -> None:
        """Environment variables that the suite asks for and does not get without trust."""
        for what in self.reading.trust.wanted:
            if is_variable(what):
                self.reading.problem(self.reading.name, 0, "env", f"needs trust: {what}", level="note")

    def _settings(self, data: dict[str, Any]) -> None:
        reading, settings = self.reading, self.suite.settings
        evaluate = self._mapping(data, "evaluateOptions")
        typed = self._mapping(data, "commandLineOptions")
        asked = {key: value for key, value in reading.config.typed.items() if key != "configs"}
        if asked:
            given = typed.get("vars")
            values = {**(given if isinstance(given, dict) else {}), **asked.get("vars", {})}
            typed = {**typed, **asked, **({"vars": values} if values else {})}
        for name, given in (
            ("evaluateOptions", evaluate),
            ("commandLineOptions", self._mapping(data, "commandLineOptions")),
        ):
            reading.check_slips(given, promptfoo_types.EVALUATE_KEYS, reading.name, self.line_of, (name,))
        self._wrong("evaluateOptions", promptfoo_types.of_evaluation(evaluate))
        self._wrong("commandLineOptions", promptfoo_types.of_evaluation(typed))
        if data.get("derivedMetrics") is not None:
            self._wrong("derivedMetrics", promptfoo_types.of_derived(data["derivedMetrics"]))
        for key in ("repeat", "maxConcurrency", "delay", "cache"):
            if typed.get(key) is not None:
                evaluate = {**evaluate, key: typed[key]}
        if evaluate:
            settings["evaluateOptions"] = evaluate
        if typed:
            settings["commandLineOptions"] = typed
        if reading.env:
            settings["env"] = reading.env
        if reading.env_file:
            settings["env_file"] = reading.env_file
        self._env_withheld()
        for key in KEPT:
            if data.get(key) is not None:
                settings[key] = data[key]
        if data.get("tracing") is not None:
            promptfoo_types.check_tracing(data["tracing"], reading, self.line_of)
        untold(typed, reading, self.line_of)
        with self._of_all_cases():
            self._filters(data.get("nunjucksFilters"))
            self._extensions(data.get("extensions"))
        for key, message in IGNORED.items():
            if data.get(key):
                reading.problem(reading.name, self.line_of(key), key, f"is ignored: {message}", level="note")
        if data.get("outputPath"):
            self._output_path(data["outputPath"])

    def _output_path(self, given: Any) -> None:
        """`outputPath`: a suite writes no files here, the command line does."""
        files = [one for one in (given if isinstance(given, list) else [given]) if isinstance(one, str)]
        options = " ".join(f"-o {shlex.quote(_as_written_here(one))}" for one in files) or "-o FILE"
        self.reading.problems.append(
            Problem(
                self.reading.name, self.line_of("outputPath"), "outputPath",
                "is ignored: a run writes the files that its command names",
                f"add {self.reading.masked(options)}", "note", unwritten=True,
            )
        )  # fmt: skip

    def _wrong(self, key: str, found: promptfoo_types.Wrong) -> None:
        for at, message in found:
            line = self.line_of(key, *at)
            self.reading.problem(self.reading.name, line, dotted_key((key, *at)), message)

    def _filters(self, value: Any) -> None:
        """`nunjucksFilters`: names and JavaScript files."""
        reading, kept = self.reading, {}
        if value is None:
            return
        for name, given in self._mapping({"nunjucksFilters": value}, "nunjucksFilters").items():
            at = ("nunjucksFilters", name)
            try:
                if not isinstance(given, str):
                    raise Missing(f"must be the path of a JavaScript file, not {brief(given)}")
                paths = reading.glob(given) if is_pattern(given) else [reading.find(given)]
                if not paths:
                    raise Missing(f"no file matches {given}")
                for path in paths:
                    reading.saw(path)
                if (meant := filter_file(given, reading.base)) is not None:
                    reading.want(script(meant, reading.root))
                kept[str(name)] = given
            except Missing as error:
                reading.problem(reading.name, self.line_of(*at), dotted_key(at), str(error))
        if kept:
            self.suite.settings["nunjucksFilters"] = kept

    def _extensions(self, value: Any) -> None:
        """`extensions`: hooks, kept as texts for `hooks.Hooks`."""
        reading, kept = self.reading, []
        entries = value if isinstance(value, list) else [] if value is None else [value]
        for index, given in enumerate(entries):
            at = ("extensions", index) if isinstance(value, list) else ("extensions",)
            found = HOOK.match(given) if isinstance(given, str) else None
            try:
                if found is None:
                    raise Missing(f"must be file://PATH:FUNCTION of Python or JavaScript, not {brief(given)}")
                path = reading.find(found[1])
                reading.saw(path)
                reading.want(script(path, reading.root))
                kept.append(given)
            except Missing as error:
                reading.problem(reading.name, self.line_of(*at), dotted_key(at), str(error))
        if kept:
            self.suite.settings["extensions"] = kept

    def _mapping(self, data: dict[str, Any], key: str) -> dict[str, Any]:
        value = data.get(key)
        if value is None or isinstance(value, dict):
            return value or {}
        self.reading.problem(
            self.reading.name, self.line_of(key), key, f"must be a mapping, not {brief(value)}"
        )
        return {}

    def asked(
        self, data: dict[str, Any]
    ) -> tuple[CaseMaker, Sequence[Sequence[PromptfooTest]], PromptfooTest | None]:
        """What the cases of a configuration are made of: its columns, its tests, its `defaultTest`."""
        reading = self.reading
        self._settings(data)
        # Where both are given, the tool takes the targets.
        named = "targets" if data.get("targets") is not None else "providers"
        if named == "targets" and data.get("providers") is not None:
            cure = "keep one of the two"
            at = self.line_of("providers")
            reading.problem(
                reading.name, at, "providers", "is ignored: there are targets", cure, level="note"
            )
        before = len(self.of_all)
        with self._of_all_cases():
            found = suite_providers.read(reading, data.get(named), (named,), self.line_of)
        entries = [one.entry for one in found]
        reading.keep_secret(
            [*secret_values(reading.env), *suite_providers.secrets_in([{named: entries}, data])]
        )
        for provider in found:
            provider.shown = reading.shown(provider.name)
        if found:
            del self.of_all[before:]  # the others have their cases, and the project's agent answers for none
        parts = [(reading, data, self.line_of)]
        parts += [(other, self._with_env(more), line_of) for other, more, line_of in self.others]
        asked: list[suite_prompts.PromptTemplate] = []
        for part, given, line_of in parts:
            if given.get("prompts") not in (None, []):
                before = list(asked)
                asked += (p for p in suite_prompts.read(part, given["prompts"], line_of) if p not in before)
        if all(given.get("prompts") is None for _, given, _ in parts):
            asked = [suite_prompts.PromptTemplate("{{prompt}}", "{{prompt}}")]
        elif all(given.get("prompts") in (None, []) for _, given, _ in parts):
            cure = "list at least one, or leave the key out to send each test's var prompt"
            reading.problem(reading.name, self.line_of("prompts"), "prompts", "there are none", cure)
        with self._of_all_cases():
            default = self._default(data)
        if self.suite.settings.get("extensions"):  # hooks see it, and lay it under the tests that they add
            self.suite.settings["defaultTest"] = written(default) if default is not None else {}
            self.suite.settings["description"] = self.suite.description
            if data.get("scenarios"):
                self.suite.settings["scenarios"] = data["scenarios"]
        sources = Sources(reading, self.line_of)
        chunks: Sequence[Sequence[PromptfooTest]] = [
            chunk
            for part, given, line_of in parts
            for chunk in Sources(part, line_of).chunks(given.get("tests"), ("tests",))
        ]
        if all(given.get("tests") in (None, []) for _, given, _ in parts) and not data.get("scenarios"):
            chunks = [[PromptfooTest(reading.name, self.line_of())]]
            message = "there are none: one case without variables is run, as in promptfoo"
            reading.problem(reading.name, self.line_of("tests"), "tests", message, level="note")
        chunks = [*chunks, scenarios.read(reading, data.get("scenarios"), sources, self.line_of, default)]
        chunks = narrowed(chunks, self.suite.settings, reading, self.line_of)
        self.of_all += reading.unread_elsewhere()
        if self.of_all:
            default = default or PromptfooTest(reading.name, 0)
            default.problems = list(dict.fromkeys(self.of_all))
        self._without_prompts(found, asked)
        try:
            cols = columns(found, asked, reading.masked, reference=reading.reference)
        except TooMany as error:
            cols = []
            reading.problem(reading.name, self.line_of(named), named, str(error))
        maker = CaseMaker(reading, cols, self.suite.settings, asked)
        if self.suite.settings.get("extensions"):
            # Tests that they add run also where no test of the file does.
            self.suite.settings[COLUMNS] = maker.templates()
        return maker, chunks, default

    def _without_prompts(
        self, found: Sequence[suite_providers.Provider], asked: Sequence[suite_prompts.PromptTemplate]
    ) -> None:
        """A provider that takes prompts which are not there has no column for them, which nobody would miss."""
        for provider in found:
            for name in provider.prompts or ():
                if not any(suite_providers.matches(name, one.label, one.given, one.id) for one in asked):
                    known = ", ".join(dict.fromkeys(brief(one.label) for one in asked)) or "none"
                    what = f"{provider.name}: there is no prompt {brief(name)}"
                    line = self.line_of("providers")
                    self.reading.problem(self.reading.name, line, "providers", what, f"there are: {known}")

    def _default(self, data: dict[str, Any]) -> PromptfooTest | None:
        """`defaultTest`, with the suite's `metadata` and the variables of `commandLineOptions`."""
        reading, value, at = self.reading, data.get("defaultTest"), ("defaultTest",)
        name, line_of = reading.name, self.line_of
        if isinstance(value, str):
            try:
                path = reading.find(value)
                value, line_of = reading.parsed(path)
                name, at = reading.relative(path), ()
            except Missing as error:
                if str(error):
                    reading.problem(name, self.line_of(*at), "defaultTest", str(error))
                value = None
        default = (
            TestReader(reading, name, line_of).test(value, at, needs_some=False)
            if value is not None
            else None
        )
        if default is not None:
            # What is wrong with the default is said once; its errors are those of all cases.
            reading.problems.extend(default.problems)
            default.problems = []
        given = self.suite.settings.get("commandLineOptions", {}).get("vars")
        metadata = data.get("metadata")
        around = self._around(default)
        if around or isinstance(given, dict) or isinstance(metadata, dict):
            default = default or PromptfooTest(reading.name, 0)
            if around:
                default.options = {**around, **(default.options or {})}
            if isinstance(given, dict):
                default.vars = {**default.vars, **given}
            if isinstance(metadata, dict) and default.metadata is None:
                default.metadata = metadata
        return default

    def _around(self, default: PromptfooTest | None) -> dict[str, Any]:
        """`promptPrefix` and `promptSuffix` of `commandLineOptions` as options of a test."""
        typed = self.suite.settings.get("commandLineOptions", {})
        found = {"prefix": typed.get("promptPrefix"), "suffix": typed.get("promptSuffix")}
        if self.reading.reference and default is not None and default.options is not None:
            return {}  # the tool drops them there
        return {name: value for name, value in found.items() if isinstance(value, str)}


# -- Which tests `commandLineOptions` and `evaluateOptions` leave: a range, a sample (formats/promptfoo.md
# 1.1 and 10).


HONOURED = names(
    """
    repeat maxConcurrency delay cache vars envPath envFile filterRange filterSample filterSampleSeed
    promptPrefix promptSuffix
    """
)
"""Keys of `commandLineOptions` that change what is run here."""

PRESENTATION = names(
    """
    table tableCellMaxLength write share verbose grader tags progressBar generateSuggestions
    suggestionsCount output interactiveProviders remote watch description retryErrors
    """
)
"""Those that concern how promptfoo shows and keeps results."""

_RANGE = re.compile(r"(\d{1,9})?:(\d{1,9})?\Z")


def narrowed(
    chunks: Sequence[Sequence[PromptfooTest]],
    settings: Mapping[str, Any],
    reading: SuiteReading,
    line_of: LineOf,
) -> Sequence[Sequence[PromptfooTest]]:
    """The tests within `filterRange`, then `filterSample` of them, in their order."""
    typed, evaluate = settings.get("commandLineOptions") or {}, settings.get("evaluateOptions") or {}
    where = "commandLineOptions" if typed.get("filterRange") is not None else "evaluateOptions"
    given = typed.get("filterRange", evaluate.get("filterRange"))
    if given is not None:
        found = _RANGE.match(str(given).strip())
        if found is None:
            reading.problem(
                reading.name, line_of(where, "filterRange"), f"{where}.filterRange",
                f"must be START:END, not {brief(given)}", "0:10 are the first ten tests",
            )  # fmt: skip
        else:
            every = [test for tests in chunks for test in tests]
            start, stop = int(found[1] or 0), int(found[2]) if found[2] else len(every)
            chunks = [every[start:stop]]
    size = typed.get("filterSample")
    if size is None:
        return chunks
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        reading.problem(
            reading.name, line_of("commandLineOptions", "filterSample"), "commandLineOptions.filterSample",
            f"must be a number of tests, not {brief(size)}",
        )  # fmt: skip
        return chunks
    every = [test for tests in chunks for test in tests]
    seed = typed.get("filterSampleSeed")
    if seed is None:
        reading.problem(
            reading.name, line_of("commandLineOptions", "filterSample"), "commandLineOptions.filterSample",
            "promptfoo draws another sample each time, here it is always the same one",
            "give filterSampleSeed to choose which", level="note",
        )  # fmt: skip
    chosen = sample(len(every), size, str(0 if seed is None else seed))
    return [[every[index] for index in sorted(chosen)]]


def untold(typed: Mapping[str, Any], reading: SuiteReading, line_of: LineOf) -> None:
    """Notes of the keys of `commandLineOptions` that have no effect from there."""
    for key in typed:
        if key in HONOURED or key in PRESENTATION:
            continue
        reading.problem(
            reading.name, line_of("commandLineOptions", key), f"commandLineOptions.{key}",
            "has no effect here, as in promptfoo", "give it on the command line", level="note",
        )  # fmt: skip
