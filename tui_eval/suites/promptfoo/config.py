"""The configuration file itself: its keys in the order in which promptfoo works through them."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import msgspec

from tui_eval.config import Config, rule_for
from tui_eval.guard.trust import Trust
from tui_eval.model import Case, Suite
from tui_eval.suites import yaml_lines
from tui_eval.suites.promptfoo import prompts, providers, types
from tui_eval.suites.promptfoo.cases import CaseMaker, columns
from tui_eval.suites.promptfoo.environment import Environment, fill_all, own_env
from tui_eval.suites.promptfoo.reading import LineOf, Missing, Reading, brief
from tui_eval.suites.promptfoo.references import References
from tui_eval.suites.promptfoo.sources import Sources
from tui_eval.suites.promptfoo.tests import Test, TestReader, joined

KEPT = ("tags", "derivedMetrics", "nunjucksFilters", "extensions", "outputPath", "tracing", "sharing")
LATER = {
    "nunjucksFilters": "filters from JavaScript files are not supported yet",
    "extensions": "hooks are not supported yet and are not run",
    "redteam": "red team tests are not made here",
    "plugins": "red team tests are not made here",
}


def read(path: str, text: str, config: Config, trust: Trust) -> Suite:
    """Read a suite; `path` is from the project root. Never raises for content."""
    rule = rule_for(config, path)
    reading = Reading(path, config, trust, (rule.compat if rule else None) or "documented")
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


class ConfigReader:
    """Fills a `Suite` from the text of its configuration."""

    def __init__(self, reading: Reading, suite: Suite) -> None:
        self.reading = reading
        self.suite = suite
        self.line_of: LineOf = lambda *_: 0

    def read(self, text: str) -> None:
        """Parse, dereference, fill in the environment, then read key by key."""
        reading, suite = self.reading, self.suite
        if reading.path.suffix.lower() not in (".yaml", ".yml", ".json"):
            cure = "write the suite as YAML or JSON"
            reading.problem(reading.name, 0, "", "a configuration in JavaScript is not supported yet", cure)
            return
        document = yaml_lines.load(text, reading.name, core=True)
        reading.problems.extend(document.problems)
        self.line_of = document.lines.at
        if document.value is None:
            if not document.problems:
                reading.problem(reading.name, 0, "", "the file is empty", "give prompts, providers and tests")
            return
        if not isinstance(document.value, dict):
            reading.problem(reading.name, 1, "", f"must be a mapping, not {brief(document.value)}")
            return
        references = References(reading, document.value)
        data: dict[str, Any] = references.resolve(document.value)
        if not isinstance(data, dict):
            return
        known = types.TOP_KEYS | references.used
        reading.check_keys(data, known, reading.name, self.line_of)
        reading.env = own_env(data.get("env"), reading)
        data = fill_all(data, Environment(reading.env, reading.trust))
        self._untold()
        description = data.get("description")
        suite.description = description if isinstance(description, str) else ""
        self._settings(data)
        cases = self._cases(data)
        suite.cases = cases

    def _untold(self) -> None:
        """Environment variables that the suite asks for and does not get without trust."""
        for what in self.reading.trust.wanted:
            if what.startswith("read the environment variable "):
                self.reading.problem(self.reading.name, 0, "env", f"needs trust: {what}", level="note")

    def _settings(self, data: dict[str, Any]) -> None:
        reading, settings = self.reading, self.suite.settings
        evaluate = self._mapping(data, "evaluateOptions")
        typed = self._mapping(data, "commandLineOptions")
        for key in ("repeat", "maxConcurrency", "delay", "cache"):
            if typed.get(key) is not None:
                evaluate = {**evaluate, key: typed[key]}
        if evaluate:
            settings["evaluateOptions"] = evaluate
        if typed:
            settings["commandLineOptions"] = typed
        if reading.env:
            settings["env"] = reading.env
        for key in KEPT:
            if data.get(key) is not None:
                settings[key] = data[key]
        for key, message in LATER.items():
            if data.get(key):
                level = "note" if "red team" in message else "error"
                reading.problem(reading.name, self.line_of(key), key, message, level=level)

    def _mapping(self, data: dict[str, Any], key: str) -> dict[str, Any]:
        value = data.get(key)
        if value is None or isinstance(value, dict):
            return value or {}
        self.reading.problem(
            self.reading.name, self.line_of(key), key, f"must be a mapping, not {brief(value)}"
        )
        return {}

    def _cases(self, data: dict[str, Any]) -> Sequence[Case]:
        reading = self.reading
        named = "providers" if data.get("providers") is not None else "targets"
        found = providers.read(reading, data.get(named), (named,), self.line_of)
        if data.get("prompts") in (None, []):
            asked = [prompts.Prompt("{{prompt}}", "{{prompt}}")]
        else:
            asked = prompts.read(reading, data["prompts"], self.line_of)
        default = self._default(data)
        sources = Sources(reading, self.line_of)
        chunks = sources.chunks(data.get("tests"), ("tests",))
        if data.get("tests") in (None, []) and not data.get("scenarios"):
            chunks = [[Test(reading.name, self.line_of())]]
        chunks.append(self._scenarios(data.get("scenarios"), sources))
        maker = CaseMaker(reading, columns(found, asked), self.suite.settings)
        return maker.all(chunks, default)

    def _default(self, data: dict[str, Any]) -> Test | None:
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
            # What is wrong with the default is said once, and hung on no test.
            reading.problems.extend(default.problems)
            default.problems = []
        given = self.suite.settings.get("commandLineOptions", {}).get("vars")
        metadata = data.get("metadata")
        if isinstance(given, dict) or isinstance(metadata, dict):
            default = default or Test(reading.name, 0)
            if isinstance(given, dict):
                default.vars = {**default.vars, **given}
            if isinstance(metadata, dict) and default.metadata is None:
                default.metadata = metadata
        return default

    def _scenarios(self, value: Any, sources: Sources) -> list[Test]:
        if value is None:
            return []
        reading, result, number = self.reading, [], 0
        if not isinstance(value, list):
            reading.problem(
                reading.name, self.line_of("scenarios"), "scenarios", f"must be a list, not {brief(value)}"
            )
            return []
        for index, given in enumerate(value):
            at = ("scenarios", index)
            for scenario in self._scenario_mappings(given, at):
                own = scenario.get("config")
                reader = TestReader(reading, reading.name, self.line_of)
                configs = own if isinstance(own, list) else [own if own is not None else {}]
                tests = sources.read(scenario.get("tests"), (*at, "tests")) or [
                    Test(reading.name, self.line_of(*at))
                ]
                for place, entry in enumerate(configs):
                    config = reader.test(entry, (*at, "config", place), needs_some=False)
                    if config is None:
                        continue
                    result.extend(_in_scenario(config, test, number) for test in tests)
                    number += 1
        return result

    def _scenario_mappings(self, given: Any, at: tuple[Any, ...]) -> list[dict[str, Any]]:
        if isinstance(given, str):
            try:
                given = self.reading.parsed(self.reading.find(given))[0]
            except Missing as error:
                if str(error):
                    self.reading.problem(self.reading.name, self.line_of(*at), "scenarios", str(error))
                return []
        entries = given if isinstance(given, list) else [given]
        wrong = next((e for e in entries if not isinstance(e, dict)), None)
        if wrong is not None:
            self.reading.problem(
                self.reading.name, self.line_of(*at), "scenarios", f"must be a mapping, not {brief(wrong)}"
            )
        return [e for e in entries if isinstance(e, dict)]


def _in_scenario(config: Test, test: Test, number: int) -> Test:
    """A scenario's test with one entry of its `config` under it: assertions of both, config's first."""
    metadata = {**(config.metadata or {}), **(test.metadata or {})}
    metadata.setdefault("conversationId", f"__scenario_{number}__")
    return msgspec.structs.replace(
        test,
        vars={**config.vars, **test.vars},
        assertions=joined(config.assertions, test.assertions),
        description=test.description or config.description,
        threshold=config.threshold if test.threshold is None else test.threshold,
        options={**(config.options or {}), **(test.options or {})} or None,
        metadata=metadata,
        provider=config.provider if test.provider is None else test.provider,
        providers=config.providers if test.providers is None else test.providers,
        prompts=config.prompts if test.prompts is None else test.prompts,
        provider_output=config.provider_output if test.provider_output is None else test.provider_output,
        scoring=config.scoring if test.scoring is None else test.scoring,
        problems=[*config.problems, *test.problems],
    )
