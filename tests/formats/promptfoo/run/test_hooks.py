"""Hooks: which function runs when and with what, and what comes of what it returns."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.promptfoo_files import Make
from tui_eval.config.project import Config
from tui_eval.formats import format_of
from tui_eval.formats.format import HookError, HookScene
from tui_eval.formats.promptfoo.promptfoo_words import test_of as shape_of
from tui_eval.formats.promptfoo.run.hooked_suite import suite_of
from tui_eval.formats.promptfoo.run.suite_hooks import ExtensionHooks
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.javascript.node_host import NodeHost
from tui_eval.model import Attempt, Suite, Usage, Verdict
from tui_eval.scripting.python.python_host import PythonHost

node_needed = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")

CONFIG = """
prompts: ['{{q}}', 'B {{q}}']
providers: [echo]
extensions: [%s]
tests:
  - vars: {q: a}
    assert:
      - type: assert-set
        assert: [{type: contains, value: a}, {type: equals, value: a, weight: 2}]
      - {type: contains, value: b}
    options: {prefix: P}
    metadata: {k: v}
    threshold: 0.5
  - vars: {q: b}
"""

PYTHON = """
calls = []
def beforeAll(context, info):
    calls.append(info["hookName"])
    context["suite"]["tests"].append({"vars": {"q": "added"}, "assert": [{"type": "contains", "value": "x"}]})
    context["suite"]["tests"][1]["vars"]["q"] = "changed"
    return context
def each(hook, context):
    calls.append([hook, sorted(context)])
    if hook == "beforeEach":
        context["test"]["vars"]["more"] = len(calls)
        return context
    if hook == "afterAll":
        raise ValueError("no luck " + str(calls))
def wrong(hook, context):
    return "text"
"""

JAVASCRIPT = """
module.exports.beforeEach = async (context, { hookName }) => {
  context.test.vars.from = hookName;
  return { test: context.test };
};
module.exports.all = (hookName, context) => { if (hookName === 'beforeAll') return { suite: { ...context.suite, tests: context.suite.tests.slice(1) } }; };
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[PythonHost, NodeHost]]:
    python, node = PythonHost(tmp_path), NodeHost(tmp_path)
    yield python, node
    python.close()
    node.close()


def hooks_of(
    suite: Suite, folder: Path, hosts: tuple[PythonHost, NodeHost], *, trusted: bool = True
) -> ExtensionHooks:
    python, node = hosts
    processes = SimpleNamespace(python=python, node=node)
    scene = HookScene(Config(root=folder), Trust(trusted), processes, "documented")  # type: ignore[arg-type]
    return ExtensionHooks(suite.settings["extensions"], folder, scene, suite.settings)


async def test_python_hooks(make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]) -> None:
    suite = make(CONFIG % "'file://h.py:beforeAll', 'file://h.py:each'", trusted=True, h__py=PYTHON)
    hooks = hooks_of(suite, tmp_path, hosts)
    cases, _ = await hooks.before_all(suite.cases, suite.settings)
    assert [(c.vars["q"], c.prompt) for c in cases] == [
        (q, p) for q in ("a", "changed", "added") for p in ("{{q}}", "B {{q}}")
    ]
    assert [c.order for c in cases] == list(range(6))
    assert cases[:2] == list(suite.cases[:2])
    assert cases[2].case_id == suite.cases[2].case_id
    assert cases[2].content_hash != suite.cases[2].content_hash
    assert cases[4].case_id not in {c.case_id for c in suite.cases}
    assert [a.value for a in cases[5].assertions] == ["x"]
    case = await hooks.before_each(cases[0])
    assert (case.vars["q"], case.vars["more"]) == ("a", 3)
    assert [(a.type, a.set) for a in case.assertions] == [(a.type, a.set) for a in cases[0].assertions]
    assert (case.options, case.metadata, case.threshold) == ({"prefix": "P"}, {"k": "v"}, 0.5)
    await hooks.after_each(case, Attempt(case.case_id, 1, "passed"))
    with pytest.raises(HookError) as caught:
        await hooks.after_all(cases, suite.settings, "eval-1")
    assert "afterAll: h.py:each: ValueError: no luck" in str(caught.value)
    assert "['afterEach', ['result', 'test']]" in str(caught.value)
    assert "\n" not in str(caught.value)


@node_needed
async def test_javascript_hooks(make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]) -> None:
    suite = make(CONFIG % "'file://h.js:beforeEach', 'file://h.js:all'", trusted=True, h__js=JAVASCRIPT)
    hooks = hooks_of(suite, tmp_path, hosts)
    cases, _ = await hooks.before_all(suite.cases, suite.settings)
    assert [c.vars["q"] for c in cases] == ["b", "b"]
    assert [c.case_id for c in cases] == [c.case_id for c in suite.cases[2:]]
    assert (await hooks.before_each(cases[0])).vars == {"q": "b", "from": "beforeEach"}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("h.py", "def get_transform(hook, context):\n    context['test']['vars']['from'] = hook\n    return context\n"),
        pytest.param(
            "h.js", "module.exports = (hook, context) => { context.test.vars.from = hook; };\n", marks=node_needed
        ),
    ],
)  # fmt: skip
async def test_a_hook_without_a_function_s_name_is_what_its_file_exports(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost], name: str, code: str
) -> None:
    """As in promptfoo 0.121.20; every case was an error."""
    suite = make(CONFIG % f"'file://{name}'", trusted=True, **{name.replace(".", "__"): code})
    assert not suite.problems
    case = await hooks_of(suite, tmp_path, hosts).before_each(suite.cases[0])
    assert case.vars == {"q": "a", "from": "beforeEach"}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("h.py", "def beforeEach(context, info):\n    context['test']['metadata']['m'] = len(context['test']['options'])\n    return context\n"),
        pytest.param(
            "h.js",
            "module.exports = {beforeEach: ({test}) => { test.metadata.m = Object.keys(test.options).length; }};\n",
            marks=node_needed,
        ),
    ],
)  # fmt: skip
async def test_a_hook_finds_options_and_metadata_of_a_test_that_has_none(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost], name: str, code: str
) -> None:
    """As in promptfoo 0.121.20; every such case was an error."""
    suite = make(CONFIG % f"'file://{name}:beforeEach'", trusted=True, **{name.replace(".", "__"): code})
    hooks = hooks_of(suite, tmp_path, hosts)
    found = [(await hooks.before_each(case)).metadata for case in suite.cases[1:3]]
    assert found == [{"k": "v", "m": 1}, {"m": 0}]


@pytest.mark.parametrize("hook", ["beforeAll", "beforeEach"])
async def test_what_a_hook_may_not_return(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost], hook: str
) -> None:
    suite = make(CONFIG % "'file://h.py:wrong'", trusted=True, h__py=PYTHON)
    hooks = hooks_of(suite, tmp_path, hosts)
    with pytest.raises(HookError, match=f"h.py:wrong must return .* from {hook}, or nothing"):
        if hook == "beforeAll":
            await hooks.before_all(suite.cases, suite.settings)
        else:
            await hooks.before_each(suite.cases[0])


async def test_hooks_need_trust(make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]) -> None:
    suite = make(CONFIG % "'file://h.py:each'", h__py=PYTHON)
    assert [p.level for p in suite.problems] == ["note"]
    assert "needs trust: run h.py (run with" in suite.problems[0].message
    with pytest.raises(NeedsTrust):
        await hooks_of(suite, tmp_path, hosts, trusted=False).before_each(suite.cases[0])


def test_no_hooks(make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]) -> None:
    suite = make(CONFIG % "")
    scene = HookScene(Config(root=tmp_path), Trust(), SimpleNamespace(), "documented")  # type: ignore[arg-type]
    assert format_of(suite.format).hooks(suite.settings, tmp_path, scene) is None


def test_the_shape_of_a_test(make: Make) -> None:
    suite = make(CONFIG % "")
    assert shape_of(suite.cases[0]) == {
        "vars": {"q": "a"},
        "assert": [
            {
                "type": "assert-set",
                "assert": [
                    {"type": "contains", "value": "a"},
                    {"type": "equals", "value": "a", "weight": 2},
                ],
            },
            {"type": "contains", "value": "b"},
        ],
        "options": {"prefix": "P"},
        "metadata": {"k": "v"},
        "threshold": 0.5,
    }
    whole = suite_of(suite.cases, suite.settings)
    assert [t["vars"]["q"] for t in whole["tests"]] == ["a", "b"]
    assert [p["raw"] for p in whole["prompts"]] == ["{{q}}", "B {{q}}"]
    json.dumps(whole)


DEFAULTS = """
description: hooked
tags: {team: qa}
prompts: [{label: L, raw: 'P {{q}} {{lang}}'}, {label: M, raw: 'M {{q}} {{lang}}'}]
providers: [{id: echo, label: e1}, {id: echo, label: e2}]
extensions: ['file://h.py:beforeAll']
defaultTest: {vars: {lang: en}, metadata: {d: 1}, assert: [{type: contains, value: x}]}
tests:
  - {description: one, vars: {q: a}, threshold: 0.5}
  - {description: own, vars: {q: b, lang: fr}, provider: {id: echo, label: mine}, assert: [{type: contains, value: b}]}
  - {description: refuses, vars: {q: c}, options: {disableDefaultAsserts: true}, assert: [{type: contains, value: x}]}
scenarios:
  - {config: [{vars: {q: s}}], tests: [{description: in scenario, assert: [{type: contains, value: s}]}]}
"""

ADDING = """
def beforeAll(context, info):
    suite = context["suite"]
    assert (suite["description"], suite["tags"]) == ("hooked", {"team": "qa"})
    assert [one["label"] for one in suite["providers"]] == ["e1", "e2"]
    test = {"description": "one", "vars": {"q": "a"}, "threshold": 0.5, "assert": [], "metadata": {}}
    assert suite["tests"][0] == test, suite
    suite["tests"].append({"description": "matrix", "vars": {"q": ["m1", "m2"]}})
    suite["tests"].append({"vars": {"q": "f"}, "prompts": ["L"], "providers": ["e1"], "options": {"repeat": 3}})
    suite["tests"].append({"vars": {"q": "r"}, "options": {"disableDefaultAsserts": True}})
    return context
"""

CHANGING = """
def beforeAll(context, info):
    default = context["suite"]["defaultTest"]
    default["vars"]["lang"] = "de"
    default["assert"].append({"type": "contains", "value": "y"})
    default["threshold"] = 0.9
    return context
"""


async def test_tests_that_a_hook_adds_are_made_as_those_of_the_file(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(DEFAULTS, trusted=True, h__py=ADDING)
    cases, _ = await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    assert cases[:12] == list(suite.cases)[:12]
    assert [c.name for c in cases[-4:]] == ["in scenario"] * 4
    added = cases[12:-4]
    assert [(c.name, c.vars["q"], c.agent, c.prompt) for c in added] == [
        *(("matrix", q, agent, p) for q in ("m1", "m2") for agent in ("e1", "e2") for p in "LM"),
        ("Row #5", "f", "e1", "L"),
        *(("Row #6", "r", agent, p) for agent in ("e1", "e2") for p in "LM"),
    ]
    assert {c.vars["lang"] for c in added} == {"en"}
    assert [[a.value for a in c.assertions] for c in added] == [["x"]] * 9 + [[]] * 4
    assert [c.attempts for c in added] == [1] * 8 + [3] + [1] * 4
    assert [c.test_number for c in added] == [4] * 4 + [5] * 4 + [6] + [7] * 4
    assert len({c.case_id for c in cases}) == len(cases)


async def test_a_test_that_a_hook_adds_is_not_repeated_as_another_one_is(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(DEFAULTS.replace("threshold: 0.5}", "options: {repeat: 3}}"), trusted=True, h__py=ADDS_ONE)
    cases, _ = await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    assert {c.name: c.attempts for c in cases} == {
        "one": 3,
        "own": 1,
        "refuses": 1,
        "in scenario": 1,
        "more": 1,
    }


SOME_COLUMNS = """
providers: [echo, {id: echo, label: e2}]
prompts: [{label: L, raw: 'L {{q}}'}, {label: M, raw: 'M {{q}}'}]
extensions: ['file://h.py:beforeAll']
tests:
  - {description: one, vars: {q: a}, providers: [e2]}
  - {description: two, vars: {q: b}, prompts: [L], providers: [e2]}
"""


async def test_a_test_that_a_hook_adds_runs_in_all_columns_also_where_none_of_the_file_does(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(SOME_COLUMNS, trusted=True, h__py=ADDS_ONE)
    cases, settings = await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    ran = [(c.name, c.agent, c.prompt) for c in cases]
    assert ran[:3] == [("one", "e2", "L"), ("one", "e2", "M"), ("two", "e2", "L")]
    assert ran[3:] == [("more", agent, prompt) for agent in ("echo", "e2") for prompt in "LM"]
    assert [c.column_number for c in cases] == [3, 4, 3, 1, 2, 3, 4]
    assert "columns" not in settings and [c.case_id.partition("::")[2] for c in cases[3:5]] == [
        "more::echo::L", "more::echo::M",
    ]  # fmt: skip


ADDS_ONE = """
def beforeAll(context, info):
    context["suite"]["tests"].append({"description": "more", "vars": {"q": "m"}})
    return context
"""

TAKING = """
def beforeAll(context, info):
    suite = context["suite"]
    suite["tests"] = [test for test in suite["tests"] if test.get("description") != "one"]
    suite["tests"].insert(0, {"description": "new", "vars": {"q": "n"}})
    suite["tests"] += [{"description": "newer", "vars": {"q": "o"}}]
    for number, test in enumerate(suite["tests"]):
        test["metadata"] = {"z": number}
    suite["tests"][-2]["description"] = "renamed"
    return context
"""


async def test_a_changed_test_is_known_again_where_others_come_and_go(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(
        """
        prompts: ['{{q}}']
        providers: [echo]
        extensions: ['file://h.py:beforeAll']
        tests:
          - {description: one, vars: {q: a}}
          - {description: list, vars: {q: [1, 2]}}
          - {description: many, vars: {q: [b, c]}, assert: [{type: equals, value: c}]}
          - {vars: {q: d}}
          - {description: other, vars: {q: e}}
        """,
        trusted=True,
        h__py=TAKING,
    )
    cases, _ = await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    ids = [case.case_id.partition("::")[2] for case in cases]
    of_file = [case.case_id.partition("::")[2] for case in suite.cases]
    assert [(case.vars["q"], case.metadata["z"]) for case in cases] == [
        *[("n", 0), ([1, 2], 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5), ("o", 6)]
    ]
    assert ids == ["new::echo::prompt1", *of_file[1:], "newer::echo::prompt1"]


IN_SCENARIOS = """
def beforeAll(context, info):
    suite = context["suite"]
    assert (len(suite["scenarios"]), len(suite["tests"])) == (1, 3)
    suite["scenarios"][0]["config"].append({"vars": {"q": "t"}, "assert": [{"type": "equals", "value": "z"}]})
    suite["scenarios"].append({"config": [{"vars": {"q": ["u", "v"]}}], "tests": [{"vars": {"w": 1}, "prompts": ["M"]}]})
    return context
"""


async def test_scenarios_that_a_hook_leaves_are_those_of_the_run(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    text = DEFAULTS.replace("description: in scenario", "description: in it")
    suite = make(text, trusted=True, h__py=IN_SCENARIOS)
    hooks = hooks_of(suite, tmp_path, hosts)
    cases, _ = await hooks.before_all(suite.cases, suite.settings)
    assert cases[:12] == list(suite.cases)[:12], "tests outside of scenarios stay as they are"
    found = [
        (c.name, c.vars["q"], c.vars["lang"], c.prompt, c.metadata["conversationId"]) for c in cases[12:]
    ]
    assert found == [
        *[("in it", "s", "en", prompt, "__scenario_0__") for _ in "12" for prompt in "LM"],
        *[("in it", "t", "en", prompt, "__scenario_1__") for _ in "12" for prompt in "LM"],
        *[("Row #6", q, "en", "M", "__scenario_2__") for q in "uv" for _ in "12"],
    ]
    assert [a.value for a in cases[16].assertions] == ["x", "z", "s"]
    assert [c.case_id for c in cases[12:16]] == [c.case_id for c in list(suite.cases)[12:16]]
    (tmp_path / "h.py").write_text(IN_SCENARIOS.replace('"tests": [{', '"tests": [{"assert": 5, '))
    with pytest.raises(HookError, match="must be a list of assertions"):
        await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    (tmp_path / "h.py").write_text(
        "def beforeAll(context, info):\n    context['suite']['scenarios'] = []\n    return context\n"
    )
    cases, _ = await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    assert cases == list(suite.cases)[:12]


async def test_the_default_test_that_a_hook_leaves_is_under_all_tests(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(DEFAULTS, trusted=True, h__py=CHANGING)
    cases, _ = await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    assert [c.case_id for c in cases] == [c.case_id for c in suite.cases]
    assert [c.agent for c in cases] == [c.agent for c in suite.cases]
    found = [(c.vars["lang"], [a.value for a in c.assertions], c.threshold) for c in cases[::4]]
    assert found == [
        ("de", ["x", "y"], 0.5),
        ("fr", ["x", "y", "b"], 0.9),
        ("de", ["x"], 0.9),
        ("de", ["x", "y", "s"], 0.9),
    ]


IN_PLACE = """
module.exports.beforeAll = (context) => {
  context.suite.defaultTest.assert.push({ type: 'contains', value: 'y' });
  context.suite.tests.push({ vars: { q: 'added' } });
};
module.exports.each = async (hook, context) => {
  if (hook === 'beforeEach') context.test.vars.token = 'T';
  if (hook === 'afterEach') context.result.namedScores.mine = 0.5;
  context.own = context; // what JSON cannot hold, as timers and clients are
};
module.exports.wrong = (hook, context) => { delete context.test; };
"""


@node_needed
async def test_what_a_javascript_hook_changes_in_place_counts(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    text = DEFAULTS.replace("'file://h.py:beforeAll'", "'file://h.js:beforeAll', 'file://h.js:each'")
    suite = make(text, trusted=True, h__js=IN_PLACE)
    hooks = hooks_of(suite, tmp_path, hosts)
    cases, _ = await hooks.before_all(suite.cases, suite.settings)
    assert [a.value for a in cases[0].assertions] == ["x", "y"]
    assert [c.vars["q"] for c in cases[12:]] == ["added"] * 4 + ["s"] * 4
    assert (await hooks.before_each(cases[0])).vars == {"lang": "en", "q": "a", "token": "T"}
    attempt = Attempt(cases[0].case_id, 1, "passed")
    await hooks.after_each(cases[0], attempt)
    assert attempt.named_scores == {"mine": 0.5}
    await hooks.after_all(cases, suite.settings, "eval-1")


@node_needed
async def test_a_hook_that_takes_its_context_away_fails(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    suite = make(CONFIG % "'file://h.js:wrong'", trusted=True, h__js=IN_PLACE)
    with pytest.raises(HookError, match=r"h\.js:wrong leaves no test in its context"):
        await hooks_of(suite, tmp_path, hosts).before_each(suite.cases[0])


AFTERWARDS = """
import json
def afterEach(context, info):
    result = context["result"]
    assert result["testCase"]["description"] == "one", result
    assert (result["testIdx"], result["promptIdx"]) == (0, 0), result
    assert result["tokenUsage"]["total"] == result["response"]["tokenUsage"]["total"] == 7, result
    result["namedScores"]["mine"] = 0.5
    return context
def afterAll(context, info):
    raise ValueError(json.dumps([context["evalId"], [context["config"]["description"], *sorted(context["config"])], context["prompts"]]))
"""


async def test_a_hook_afterwards_gets_the_columns_with_their_sums(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    text = DEFAULTS.replace("'file://h.py:beforeAll'", "'file://h.py:afterEach', 'file://h.py:afterAll'")
    suite = make(text, trusted=True, h__py=AFTERWARDS)
    hooks, case = hooks_of(suite, tmp_path, hosts), suite.cases[0]
    for number, outcome in enumerate(("passed", "failed", "error"), 1):
        usage, verdict = (
            Usage(5, 2),
            Verdict("contains", outcome == "passed", score=float(outcome == "passed")),
        )
        attempt = Attempt(
            case.case_id, number, outcome, "e1", usage=usage, verdicts=[verdict], score=verdict.score
        )
        attempt.named_scores, attempt.named_weights = {"own": 0.5}, {"own": 3.0}
        await hooks.after_each(case, attempt)
    with pytest.raises(HookError) as caught:
        await hooks.after_all(suite.cases, suite.settings, "eval-1")
    said = str(caught.value)
    evaluation, (description, *keys), (column,) = json.loads(said[said.index("[") : said.rindex("]") + 1])
    assert (evaluation, description) == ("eval-1", "hooked") and "columns" not in keys
    assert (column["label"], column["provider"], column["raw"]) == ("L", "e1", "P {{q}} {{lang}}")
    metrics = column["metrics"]
    assert [metrics[key] for key in ("testPassCount", "testFailCount", "testErrorCount")] == [1, 1, 1]
    assert [metrics[key] for key in ("assertPassCount", "assertFailCount", "score")] == [1, 1, 1.0]
    assert metrics["namedScores"] == {"mine": 1.0, "own": 3.0} and metrics["tokenUsage"]["total"] == 21
    assert metrics["namedScoreWeights"] == {"mine": 2, "own": 6.0}


TURNED = """
def beforeAll(context, info):
    tests = context["suite"]["tests"]
    context["suite"]["tests"] = [tests[2], {"vars": {"q": "new"}}, tests[1], tests[1], tests[0]]
    return context
"""


async def test_tests_that_a_hook_moves_keep_their_cases(
    make: Make, tmp_path: Path, hosts: tuple[PythonHost, NodeHost]
) -> None:
    text = (CONFIG % "'file://h.py:beforeAll'") + "  - vars: {q: c}\n"
    suite = make(text, trusted=True, h__py=TURNED)
    cases, _ = await hooks_of(suite, tmp_path, hosts).before_all(suite.cases, suite.settings)
    assert [c.vars["q"] for c in cases[::2]] == ["c", "new", "b", "b", "a"]
    known = {c.vars["q"]: c for c in suite.cases[::2]}
    assert [c.case_id for c in cases[::8]] == [known["c"].case_id, known["a"].case_id]
    assert cases[4].case_id == known["b"].case_id != cases[6].case_id
    assert cases[8].line == known["a"].line and [c.test_number for c in cases[::2]] == [1, 2, 3, 4, 5]
