"""promptfoo's results files beside suites of ours: their cases meet, wherever the file lies and whatever it
is called."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tui_eval.config.project import load
from tui_eval.engine.case_filters import FilterError, by_columns
from tui_eval.engine.request import RunRequest
from tui_eval.formats import reading
from tui_eval.formats.promptfoo.import_promptfoo import converted, labels_of, row_of
from tui_eval.formats.reading import open_results
from tui_eval.guard.trust import Trust
from tui_eval.reports import promptfoo_json
from tui_eval.store.reader import RunReader

CONFIG = {
    "prompts": [
        {"id": "file://p.txt", "label": "A"},
        {"id": "file://m.txt", "label": "M"},
        {"id": "file://j.json", "label": "J"},
        {"id": "file://g.py:f", "label": "G"},
        {"raw": "raw {{q}}", "label": "R"},
        "file://p.txt",
        "file://g.py:f",
        {"id": "named", "raw": "n {{q}}"},
        {"label": "only label", "raw": "o {{q}}"},
    ],
    "providers": ["echo"],
    "tests": [{"vars": {"q": "one"}}],
}
PYTHON = 'def f(context):\n    return "py " + context["vars"]["q"]\n'
FILES = {
    "p.txt": "Say {{q}}\n",
    "m.txt": "one {{q}}\n---\ntwo {{q}}\n",
    "j.json": '[{"role":"user","content":"J {{q}}"}]',
    "g.py": PYTHON,
}
PROMPTS = [  # label and raw, as promptfoo 0.121.20 wrote them for this configuration
    ("A: p.txt: Say {{q}}", "Say {{q}}"),
    ("M: m.txt: one {{q}}", "one {{q}}"),
    ("M: m.txt: two {{q}}", "two {{q}}"),
    ("J", '[{"role":"user","content":"J {{q}}"}]'),
    ("G", PYTHON),
    ("R", "raw {{q}}"),
    ("p.txt: Say {{q}}", "Say {{q}}"),
    ("g.py:f", PYTHON),
    ("n {{q}}", "n {{q}}"),
    ("only label", "o {{q}}"),
]


def document(**more: Any) -> dict[str, Any]:
    """A results file of the configuration."""
    rows = [
        {
            "success": True, "score": 1, "latencyMs": 250, "failureReason": 0, "testIdx": 0, "promptIdx": place,
            "provider": {"id": "echo", "label": ""}, "vars": {"q": "one"}, "testCase": {"vars": {"q": "one"}},
            "response": {"output": "x"}, "prompt": {"raw": raw, "label": label},
        }
        for place, (label, raw) in enumerate(PROMPTS)
    ]  # fmt: skip
    prompts = [{"label": label, "raw": raw, "provider": "echo"} for label, raw in PROMPTS]
    results = {
        "timestamp": "2026-11-26T18:24:44.545Z",
        "prompts": prompts,
        "results": rows,
        "stats": {"successes": len(rows), "durationMs": 635},
    }
    return {"evalId": "eval-abc", "results": results, "config": CONFIG, **more}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(CONFIG))
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document()))
    return path


def test_labels_and_ids_of_prompts_are_those_of_promptfoos_file(project: Path) -> None:
    suite = reading.load(project / "promptfooconfig.yaml", load([project]), Trust(True))
    assert [case.prompt for case in suite.cases] == [label for label, _ in PROMPTS]
    theirs = converted(document(), project / "out.json")["results"]
    assert [row["case_id"] for row in theirs] == [case.case_id for case in suite.cases]
    assert suite.cases[0].case_id.endswith("::A") and suite.cases[2].case_id.endswith("::M: two {{q}}")


@pytest.mark.parametrize("place", ["out.json", "results/new.json", "results/2026/base.json"])
def test_results_are_of_the_configuration_above_them(project: Path, place: str) -> None:
    with closing(RunReader(open_results(written(project / place)))) as reader:
        assert {case.suite for case in reader.cases()} == {"promptfooconfig.yaml"}


def test_results_without_a_configuration_meet_whatever_their_files_are_called(tmp_path: Path) -> None:
    ids: list[list[str]] = []
    for name in ("base.json", "new.json"):
        with closing(RunReader(open_results(written(tmp_path / "alone" / name)))) as reader:
            ids.append([case.case_id for case in reader.cases()])
    assert ids[0] == ids[1]


def test_of_several_configurations_it_is_the_one_of_that_description(project: Path) -> None:
    (project / "promptfooconfig.yaml").write_text("description: one\n")
    (project / "promptfooconfig.b.yaml").write_text("description: two\n")
    given = document(config={**CONFIG, "description": "two"})
    assert converted(given, project / "out.json")["results"][0]["suite"] == "promptfooconfig.b.yaml"


def test_times_are_those_of_the_file(project: Path) -> None:
    with closing(RunReader(open_results(written(project / "out.json")))) as reader:
        info = reader.info()
        assert info.finished_at is not None
        assert info.finished_at - info.started_at == pytest.approx(0.635, abs=1e-3)
        assert {row.duration_ms for row in reader.attempts()} == {250}


def test_what_a_scripts_result_consists_of_is_no_assertion_of_its_own(project: Path) -> None:
    def part(reason: str, *inner: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "pass": True,
            "score": 1,
            "reason": reason,
            **({"componentResults": list(inner)} if inner else {}),
            **more,
        }

    script = {"assertion": {"type": "javascript", "value": "x"}}
    deep, again = part("deep", part("deeper")), part("deep", part("deeper"), **script)
    whole = part("whole", deep, **script)
    members = [whole, again, part("has", assertion={"type": "contains", "value": "x"})]
    given = document()
    given["results"]["results"][0]["gradingResult"] = {
        "componentResults": [part("set", *members), *members, whole, again]
    }
    found = converted(given, project / "out.json")["results"][0]["assertions"]
    assert [(one["reason"], one.get("set"), one.get("parts")) for one in found] == [
        ("set", None, None), ("whole", 0, [deep]), ("has", 0, None), ("whole", None, [deep]),
    ]  # fmt: skip


FILTERED = [("^A", [0]), ("p\\.txt", [0, 6]), ("^named$", [8]), ("M", [1, 2])]
"""What `--filter-prompts` of promptfoo 0.121.20 leaves of the prompts."""


@pytest.mark.parametrize(("pattern", "left"), FILTERED)
def test_prompts_are_filtered_by_label_and_by_id(project: Path, pattern: str, left: list[int]) -> None:
    suite = reading.load(project / "promptfooconfig.yaml", load([project]), Trust(True))
    found = by_columns(list(suite.cases), RunRequest(filter_prompts=pattern))
    assert [case.prompt for case in found] == [PROMPTS[place][0] for place in left]


def test_a_number_that_was_made_here_is_no_name_of_a_prompt(project: Path) -> None:
    suite = reading.load(project / "promptfooconfig.yaml", load([project]), Trust(True))
    with pytest.raises(FilterError, match="nothing matches"):
        by_columns(list(suite.cases), RunRequest(filter_prompts="prompt7"))


SCENARIO = {
    "config": [{"vars": {"lang": "it"}}, {"vars": {"lang": "en"}}],
    "tests": [{"description": "s", "vars": {"q": ["hi", "bye"]}}],
}


@pytest.mark.parametrize("named", [True, False])
def test_lists_in_a_scenario_are_called_as_its_suite_calls_them(tmp_path: Path, named: bool) -> None:
    """Of a test without a description each row was `new`, and the suite's own was `gone`."""
    description = {"description": "s"} if named else {}
    scenario = {
        "config": [{"vars": {"lang": ["it", "en"]}}, {"vars": {"lang": ["de"]}}],
        "tests": [{**description, "vars": {"q": ["hi", "bye"]}}, {**description, "vars": {"q": "one"}}],
    }
    config = {"prompts": ["{{q}} {{lang}}"], "providers": ["echo"], "scenarios": [scenario]}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config))
    (tmp_path / "tui_eval.yaml").write_text("{}")
    suite = reading.load(tmp_path / "promptfooconfig.yaml", load([tmp_path]), Trust())
    rows = [
        {
            "testIdx": number, "promptIdx": 0, "vars": case.vars, "success": True, "score": 1,
            "testCase": {**description, "vars": case.vars}, "provider": {"id": "echo", "label": ""},
        }
        for number, case in enumerate(suite.cases)
    ]  # fmt: skip
    prompts = [{"label": "{{q}} {{lang}}", "raw": "{{q}} {{lang}}", "provider": "echo"}]
    made = {
        "evalId": "e",
        "results": {"prompts": prompts, "results": rows},
        "config": {**config, "tests": []},
    }
    found = converted(made, tmp_path / "out.json")["results"]
    assert [row["case_id"] for row in found] == [case.case_id for case in suite.cases]


@pytest.mark.parametrize("in_files", [False, True])
def test_rows_of_a_scenario_are_called_as_its_suite_calls_them(tmp_path: Path, in_files: bool) -> None:
    scenario: dict[str, Any] = (
        {**SCENARIO, "tests": [{"description": "s", "vars": {"q": "hi"}}]} if in_files else SCENARIO
    )
    config = {"prompts": ["{{q}} {{lang}}"], "providers": ["echo"], "scenarios": [scenario]}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config))
    (tmp_path / "tui_eval.yaml").write_text("{}")
    asked = scenario["tests"][0]["vars"]["q"]
    rows = [
        {
            "testIdx": number,
            "promptIdx": 0,
            "vars": {"lang": lang, "q": q},
            "testCase": {"description": "s", "vars": {"lang": lang, "q": q}},
            "provider": {"id": "echo", "label": ""},
            "success": True,
            "score": 1,
            "response": {"output": "x"},
        }
        for number, (lang, q) in enumerate(
            (lang, q) for lang in ("it", "en") for q in ([asked] if isinstance(asked, str) else asked)
        )
    ]
    prompts = [{"label": "{{q}} {{lang}}", "raw": "{{q}} {{lang}}", "provider": "echo"}]
    written = {**config, "tests": [], "scenarios": ["file://s.yaml"] if in_files else [scenario]}
    made = {
        "evalId": "eval-1",
        "results": {"version": 3, "prompts": prompts, "results": rows},
        "config": written,
    }
    (tmp_path / "out.json").write_text(json.dumps(made))
    with closing(RunReader(open_results(tmp_path / "out.json"))) as reader:
        theirs = [row.case_id for row in reader.cases()]
    suite = reading.load(tmp_path / "promptfooconfig.yaml", load([tmp_path]), Trust())
    assert sorted(theirs) == sorted(case.case_id for case in suite.cases) and len(set(theirs)) == len(rows)


@pytest.mark.parametrize(
    ("given", "counted"),
    [
        ({"total": 3}, (3, None, None)),
        ({"total": 3, "prompt": 0, "completion": 0, "cached": 0}, (3, 0, 0)),
        ({"total": 10, "prompt": 6, "completion": 4}, (6, 4, None)),
        ({"total": 7, "prompt": 0, "completion": 0, "cached": 7}, (0, 0, 7)),
    ],
)
def test_a_sum_of_tokens_alone_counts(given: dict[str, int], counted: tuple[int | None, ...]) -> None:
    asked = {**given, "assertions": {**given, "numRequests": 2}}
    row = row_of({**document()["results"]["results"][0], "tokenUsage": asked}, "s", ["a"], [])
    for part in (row["usage"], row["judging"]):
        assert tuple(part[f"{kind}_tokens"] for kind in ("input", "output", "cached")) == counted


def test_an_answer_that_could_not_be_judged_is_there(project: Path) -> None:
    """promptfoo says of it what it says of one that never came: an error; it was `no recorded answer to judge`."""
    given = document()
    row = given["results"]["results"][0]
    row |= {"success": False, "failureReason": 2, "error": "API key is not set", "gradingResult": None}
    row["response"] = {"output": {"b": 1, "a": 2.0}}
    made = converted(given, project / "pf.json")["results"][0]
    assert (made["outcome"], made["message"], made["error"]) == ("error", "API key is not set", None)
    assert made["details"]["response_text"] == '{"b":1,"a":2}'
    row["response"] = {"output": "cut", "error": "API key is not set"}
    assert converted(given, project / "pf.json")["results"][0]["error"] == "API key is not set"


def as_promptfoo_writes(value: Any) -> Any:
    """What its writer makes of values of these tests."""
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(json.loads(value), separators=(",", ":"))
    if isinstance(value, dict):
        return {key: as_promptfoo_writes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_promptfoo_writes(item) for item in value]
    return {} if value == "2024-01-05" else 1 if value == 1.0 else value


def evaluation(config: dict[str, Any], repeat: int = 1) -> dict[str, Any]:
    """The results file that promptfoo 0.121.20 writes of tests and columns."""
    columns = [
        {
            "provider": one if isinstance(one, str) else one["label"],
            "id": "echo",
            "raw": prompt,
            "label": prompt,
        }
        for one in config["providers"]
        for prompt in config["prompts"]
    ]
    rows: list[dict[str, Any]] = []
    number = 0
    for test in config["tests"]:
        given = {**config.get("defaultTest", {}).get("vars", {}), **test.get("vars", {})}
        lists = [value if isinstance(value, list) else [value] for value in given.values()]
        for values in [one for _ in range(repeat) for one in itertools.product(*lists)]:
            variables = as_promptfoo_writes(dict(zip(given, values, strict=True)))
            own = test.get("provider")
            asserts = [*config.get("defaultTest", {}).get("assert", []), *test.get("assert", [])]
            whole = {**test, "vars": variables, "options": {}, "metadata": {}, "assert": asserts}
            if own is not None:
                loaded = {"id": own, "label": ""} if isinstance(own, str) else own
                whole["provider"] = {**loaded, "config": {"basePath": ""}}
            rows += [
                {
                    "success": True, "score": 1, "failureReason": 0, "testIdx": number, "promptIdx": place,
                    "provider": {"id": "echo", "label": "" if column["provider"] == "echo" else column["provider"]},
                    "vars": {**variables, "sessionId": "[REDACTED]"}, "testCase": whole, "response": {"output": "x"},
                }
                for place, column in enumerate(columns)
            ]  # fmt: skip
            number += 1
    written = {**config, "tests": as_promptfoo_writes(config["tests"])}
    return {
        "evalId": "eval-1",
        "results": {"prompts": columns, "results": rows[::-1]},
        "config": written,
        "runtimeOptions": {"repeat": repeat},
    }


NAMESAKES = {
    "prompts": ["P {{a}}", "Q {{a}}"],
    "providers": ["echo", "echo", {"id": "echo", "label": "e2"}],
    "defaultTest": {"vars": {"c": "always"}, "assert": [{"type": "contains", "value": "Q"}]},
    "tests": [
        {"vars": {"a": "y"}, "assert": [{"type": "contains", "value": "y"}]},
        {"vars": {"a": "z"}},
        {"vars": {"a": "y"}, "assert": [{"type": "contains", "value": "P"}]},
        {"vars": {"a": "y"}, "assert": [{"type": "contains", "value": "P"}]},
        {"description": "same", "vars": {"a": ["m", "y"]}, "assert": [{"type": "contains", "value": "y"}]},
        {"description": "same", "vars": {"a": ["m", "y"]}, "assert": [{"type": "contains", "value": "m"}]},
        {"description": "same", "vars": {"a": "m"}},
        {"vars": {"a": ["u", "v"], "c": "own"}},
        {"description": "score", "vars": {"a": "t"}, "threshold": 0.5},
        {"description": "score", "vars": {"a": "t"}, "threshold": 0.7},
        {"assert": [{"type": "contains", "value": "P"}]},
        {"description": "provider", "vars": {"a": "y"}, "provider": {"id": "echo", "label": "mine"}},
        {"description": "plain provider", "vars": {"a": "y"}, "provider": "echo"},
        {"vars": {"a": '{"city": "Rome"}'}},
        {"vars": {"a": ["text", '{"city": "Rome"}']}, "assert": [{"type": "contains", "value": "e"}]},
        {"description": "day", "vars": {"a": "2024-01-05"}},
        {"vars": {"a": {"on": "2024-01-05"}}},
        {"vars": {"a": 1.0}},
    ],
}


@pytest.mark.parametrize("repeat", [1, 2])
def test_different_tests_are_different_cases_called_as_the_suite_calls_them(
    tmp_path: Path, repeat: int
) -> None:
    """Tests with the same variables were attempts of one, and what only one of them did was hidden behind another."""
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(NAMESAKES))
    (tmp_path / "tui_eval.yaml").write_text("{}")
    suite = reading.load(tmp_path / "promptfooconfig.yaml", load([tmp_path]), Trust())
    rows = converted(evaluation(NAMESAKES, repeat), tmp_path / "out.json")["results"]
    theirs = Counter((row["case_id"], row["agent"]) for row in rows)
    assert theirs == {(case.case_id, case.agent): repeat for case in suite.cases}
    assert {row["attempt"] for row in rows} == set(range(1, repeat + 1))


def test_repeats_of_which_the_file_says_nothing_are_attempts(tmp_path: Path) -> None:
    config = {**NAMESAKES, "tests": [NAMESAKES["tests"][0], NAMESAKES["tests"][2]]}
    made = evaluation(config, 3)
    del made["runtimeOptions"]
    rows = converted(made, tmp_path / "out.json")["results"]
    assert set(Counter(row["case_id"] for row in rows).values()) == {3}
    assert len({row["case_id"] for row in rows}) == 12


@pytest.mark.parametrize(("counts", "calls"), [({}, None), ({"total": 7}, 1), ({"cached": 7, "total": 7}, 1)])
def test_that_a_row_was_judged_does_not_say_that_a_grader_was_asked(
    counts: dict[str, int], calls: int | None
) -> None:
    """promptfoo 0.121.20 counts one request for each row, `equals` too."""
    zeros = {"total": 0, "prompt": 0, "completion": 0, "cached": 0, "numRequests": 1}
    row = {
        **document()["results"]["results"][0],
        "tokenUsage": {"total": 0, "assertions": {**zeros, **counts}},
    }
    judging = row_of(row, "s", ["a"], [])["judging"]
    assert (judging and judging["calls"]) == calls


@pytest.mark.parametrize("name", ["tests.yaml", "tests.json", "tests.jsonl", "tests.csv"])
def test_tests_in_files_beside_the_results_are_called_by_what_stands_there(tmp_path: Path, name: str) -> None:
    values = ['{"city": "Rome"}', "plain", '{"city": "Bari"}']
    tests = [{"vars": {"a": value}} for value in values]
    text = json.dumps(tests)
    if name.endswith(".jsonl"):
        text = "\n".join(map(json.dumps, tests)) + "\n\n"
    if name.endswith(".csv"):
        text = "a\n" + "".join('"' + value.replace('"', '""') + '"\n' for value in values)
    (tmp_path / name).write_text(text)
    config = {**NAMESAKES, "tests": f"file://{name}"}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config))
    (tmp_path / "tui_eval.yaml").write_text("{}")
    suite = reading.load(tmp_path / "promptfooconfig.yaml", load([tmp_path]), Trust())
    made = evaluation({**config, "tests": tests})
    made["config"]["tests"] = config["tests"]
    rows = converted(made, tmp_path / "out.json")["results"]
    assert {row["case_id"] for row in rows} == {case.case_id for case in suite.cases}


def test_what_an_answer_carried_is_judged_again(project: Path) -> None:
    given = document()
    carried = {"metadata": {"k": 1}, "finishReason": "stop", "guardrails": {"flagged": True}}
    given["results"]["results"][0]["response"] |= carried
    rows = converted(given, project / "pf.json")["results"]
    said = {"metadata": {"k": 1}, "finish_reason": "stop", "guardrails": {"flagged": True}}
    assert rows[0]["details"]["reported"] == [{"turn": 1, **said}]
    assert "reported" not in rows[1]["details"]


def test_what_scripts_and_perplexity_look_at_comes_with_promptfoo_s_file(project: Path) -> None:
    """Without it `perplexity` was an error, and a script found no `raw` in which there was an error."""
    given = document()
    given["results"]["results"][0]["response"] |= {"raw": {"x": 1}, "logProbs": [-0.5], "sessionId": "s"}
    rows = converted(given, project / "pf.json")["results"]
    said = {"raw": {"x": 1}, "log_probs": [-0.5], "metadata": {"sessionId": "s"}}
    assert rows[0]["details"]["reported"] == [{"turn": 1, **said}]


def test_prompts_of_a_pattern_are_counted_by_their_paths_not_as_the_disk_had_them() -> None:
    """Answers to one prompt were compared with those to another."""
    found = [
        {"label": label, "raw": label.partition(": ")[2] or label}
        for label in ("first.txt", "glob/c.txt: C", "glob/a.txt: A1", "glob/a.txt: A2", "last")
    ]
    listed = ["first.txt", "file://glob/*.txt", "last"]
    assert labels_of([*found, *found], listed) == [
        f"prompt{number}" for number in (1, 4, 2, 3, 5, 1, 4, 2, 3, 5)
    ]
    assert labels_of(found) == ["prompt1", "prompt2", "prompt3", "prompt4", "prompt5"]


def test_a_label_that_is_a_file_and_the_beginning_of_its_text_is_no_name() -> None:
    """So are those of .md and .j2 files: their columns were `new` and `gone`."""
    text = "# Title\n" + "word " * 30
    found = [{"label": f"p.md: {text[:50]}...", "raw": text}, {"label": "p: ab...", "raw": "abc"}]
    assert labels_of(found, ["file://p.md", {"raw": "abc", "label": "p: ab..."}]) == ["prompt1", "p: ab..."]


def test_a_provider_that_is_code_is_called_as_its_suite_calls_it(project: Path) -> None:
    """promptfoo's rows name it as its `id()` does: compared with a run here each case was new and gone."""
    given = document()
    columns = list(dict.fromkeys(str(one["provider"]) for one in given["results"]["prompts"]))
    config = {**given.get("config", {}), "providers": [*columns[:-1], "file://p.js"]}
    called = {"my-id": "file://p.js", **{one: one for one in columns[:-1]}}
    for one in given["results"]["prompts"]:
        one["provider"] = "my-id" if one["provider"] == columns[-1] else one["provider"]
    for row in given["results"]["results"]:
        own = row["provider"].get("label") or row["provider"]["id"]
        row["provider"] = {"id": "my-id" if own == columns[-1] else own}
    rows = converted({**given, "config": config}, project / "pf.json")["results"]
    assert {row["agent"] for row in rows} == set(called.values())
    other = {**config, "providers": ["a", "b", "c", "file://p.js"]}  # of these only some were asked
    rows = converted({**given, "config": other}, project / "pf.json")["results"]
    assert "my-id" in {row["agent"] for row in rows}


@pytest.mark.parametrize(
    ("called", "theirs", "met"),
    [
        ("openai:chat:gpt-4o-mini", "openai:gpt-4o-mini", True),
        ("openai:responses:gpt-4.1", "openai:gpt-4.1", True),
        ("anthropic:messages:claude-haiku-4-5", "anthropic:claude-haiku-4-5", True),
        ("ollama:llama3", "ollama:completion:llama3", True),
        ({"id": "http", "config": {"url": "http://localhost:1/x"}}, "http://localhost:1/x", True),
        ("openai:chat:gpt-4o", "openai:gpt-4o-mini", False),
        ("openai:chat:m", "azure:m", False),
    ],
)
def test_a_model_is_called_as_its_suite_calls_it(tmp_path: Path, called: Any, theirs: str, met: bool) -> None:
    config = {"providers": ["echo", called], "tests": [{"vars": {"q": "a"}}]}
    rows = [
        {"success": True, "score": 1, "testIdx": 0, "promptIdx": place, "vars": {"q": "a"},
         "prompt": {"raw": "a", "label": "{{q}}"}, "provider": {"id": name, "label": ""}, "testCase": {"vars": {"q": "a"}}}
        for place, name in enumerate(("echo", theirs))
    ]  # fmt: skip
    prompts = [{"raw": "{{q}}", "label": "{{q}}", "provider": name} for name in ("echo", theirs)]
    document = {"evalId": "e", "config": config, "results": {"results": rows, "prompts": prompts}}
    ours = called if isinstance(called, str) else called["id"]
    found = converted(document, tmp_path / "out.json")["results"]
    assert [row["agent"] for row in found] == ["echo", ours if met else theirs]


@pytest.mark.parametrize("listed", ["file://providers.yaml", ["file://providers.yaml"]])
def test_a_provider_that_is_code_beside_those_of_a_file_is_called_as_its_suite_calls_it(
    project: Path, listed: str | list[str]
) -> None:
    (project / "providers.yaml").write_text(
        "- {id: echo, label: E}\n- echo: {label: F}\n- {id: 'file://p.js'}\n"
    )
    given = document()
    columns = [
        {**one, "provider": called} for one in given["results"]["prompts"] for called in ("E", "F", "my-id")
    ]
    rows = [
        {
            **row,
            "promptIdx": place,
            "provider": {"id": called} if called == "my-id" else {"id": "echo", "label": called},
        }
        for place, (row, called) in enumerate(
            (row, called) for row in given["results"]["results"] for called in ("E", "F", "my-id")
        )
    ]
    given["results"] |= {"prompts": columns, "results": rows}
    found = converted({**given, "config": {**CONFIG, "providers": listed}}, project / "pf.json")["results"]
    assert {row["agent"] for row in found} == {"E", "F", "file://p.js"}


def test_what_assertions_count_for_is_written_again(project: Path) -> None:
    """Metrics, weights and sets were lost where a results file of promptfoo's was exported as one."""
    first = {"type": "contains", "value": "x", "metric": "m", "weight": 2}
    second = {"type": "equals", "value": "y", "metric": "n"}
    whole = {"type": "assert-set", "assert": [second], "metric": "s", "threshold": 0.5}
    parts = [
        {"pass": True, "score": 1, "reason": "Assertion passed", "assertion": first},
        {
            "pass": False, "score": 0, "reason": "no",
            "metadata": {"assertionSet": {"type": "assert-set", "metric": "s", "threshold": 0.5}},
            "componentResults": [{"pass": False, "score": 0, "reason": "no", "assertion": second}],
        },
        {"pass": False, "score": 0, "reason": "no", "assertion": second},
    ]  # fmt: skip
    given = document()
    rows = given["results"]["results"]
    rows[0]["gradingResult"] = {"pass": False, "score": 0.6, "reason": "no", "componentResults": parts}
    (project / "pf.json").write_text(json.dumps(given))
    with closing(RunReader(open_results(project / "pf.json"))) as reader:
        again = promptfoo_json.build(reader)["results"]["results"][0]
    assert again["testCase"]["assert"] == [first, whole]
    written = again["gradingResult"]["componentResults"]
    assert [one.get("assertion") for one in written] == [first, None, second]
    named = {"metric": "s", "threshold": 0.5, "type": "assert-set", "assertionCount": 1}
    assert written[1]["metadata"]["assertionSet"] == named


def test_results_that_were_opened_before_the_suite_lay_beside_them_meet_its_cases(tmp_path: Path) -> None:
    """What was read then was kept, whatever came beside the file afterwards."""
    tests = [{"vars": {"a": '{"city": "Rome"}'}}]
    config = {**NAMESAKES, "tests": "file://tests.jsonl"}
    made = evaluation({**config, "tests": tests})
    made["config"]["tests"] = config["tests"]
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "out.json").write_text(json.dumps(made))
    opened = open_results(tmp_path / "out.json")
    (tmp_path / "tests.jsonl").write_text(json.dumps(tests[0]))
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps(config))
    suite = reading.load(tmp_path / "promptfooconfig.yaml", load([tmp_path]), Trust())
    again = open_results(tmp_path / "out.json")
    assert again != opened and again == open_results(tmp_path / "out.json")
    with closing(RunReader(again)) as reader:
        assert {row.case_id for row in reader.cases()} == {case.case_id for case in suite.cases}
