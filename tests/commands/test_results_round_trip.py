"""What we write and read back: cases, columns, verdicts, names and inputs stay what they were."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Cli, fast_samples, from_elsewhere
from tui_eval.formats.reading import open_results
from tui_eval.model import Attempt, Case
from tui_eval.reports import results
from tui_eval.store.reader import RunReader

FORMATS = ("results.json", "results.promptfoo.json")
SETS = """\
prompts: ['hi {{n}}', {raw: 'ho {{n}}', label: second}]
providers: [echo, {id: echo, label: louder}]
tests:
  - vars: {n: 1}
    description: sets
    assert:
      - {type: contains, value: hi}
      - type: assert-set
        threshold: 0.4
        metric: grouped
        weight: 2
        assert:
          - {type: contains, value: 'hi {{n}}', metric: inner}
          - {type: equals, value: 'no', weight: 2}
          - {type: javascript, value: 'output.length'}
      - {type: javascript, value: '({pass: true, score: 0.5, reason: "some"})'}
      - {type: equals, value: file://wanted.js}
  - vars: {n: 1152921504606846976, deep: {a: [1, {b: null}]}}
    assert: [{type: regex, value: '^hi'}]
  - vars: {n: ['5', '6']}
"""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def newest() -> Path:
    return max(Path(".tui-eval/runs").iterdir(), key=lambda folder: folder.name)


def verdicts(attempt: Attempt) -> list[Any]:
    return [
        (v.type, v.target, v.passed, v.score, v.reason, v.expected, v.weight, v.metric, v.turn, v.set)
        for v in attempt.verdicts
    ]


def inputs(case: Case, attempt: Attempt) -> Any:
    said = [(entry.turn, entry.text) for entry in attempt.transcript if entry.kind == "user"]
    return said, case.vars or attempt.vars


def told(folder: Path) -> dict[tuple[Any, ...], Any]:
    """Everything of a run that a file of results has to keep, by column and attempt."""
    found: dict[tuple[Any, ...], Any] = {}
    reader = RunReader(folder)
    try:
        rows = {row.id: row for row in reader.cases()}
        for row in reader.attempts():
            attempt, column, case = reader.attempt(row.id), rows[row.case_ref], reader.case(row.case_ref)
            assert attempt is not None
            key = (column.case_id, column.agent, column.model, row.attempt)
            assert key not in found
            found[key] = {
                "name": column.name, "suite": column.suite, "format": column.format, "required": column.required,
                "outcome": row.outcome, "message": row.message, "score": row.score, "prompt": case.prompt,
                "verdicts": verdicts(attempt), "inputs": inputs(case, attempt), "answer": attempt.response_text,
                "output": attempt.output, "usage": attempt.usage, "named": attempt.named_scores, "weights": attempt.named_weights,
                "calls": [(e.name, e.arguments) for e in attempt.transcript if e.kind == "tool_call"],
                "data": (attempt.data.expected, attempt.data.actual) if attempt.data else None,
                "silent": [one.text_missing for one in attempt.replies][-1:] if not attempt.response_text and not attempt.error else None,
                "column": case.column,
                "started": row.started_at,
            }  # fmt: skip
    finally:
        reader.close()
    return found


def whole(folder: Path) -> tuple[Any, ...]:
    """What a file keeps of a run as a whole."""
    reader = RunReader(folder)
    try:
        document, info = results.build(reader), reader.info()
        return document["metrics"], document["summary"], document["not_run"], info.state, info.note, info.id
    finally:
        reader.close()


def check(cli: Cli, folder: Path) -> dict[tuple[Any, ...], Any]:
    """Written, read, written by the other kind, and read once more."""
    given, all_of_it, folder_file = told(folder), whole(folder), "first.promptfoo.json"
    assert cli("export", folder, "-o", folder_file).code == 0
    for first, second in itertools.product(FORMATS, FORMATS):
        assert cli("export", folder, "-o", first).code == 0
        assert cli("export", first, "-o", f"again-{second}").code == 0
        for name in (first, f"again-{second}"):
            opened = open_results(Path(name))
            back = told(opened)
            assert list(back) == list(given) or sorted(map(str, back)) == sorted(map(str, given)), name
            for key, one in given.items():
                assert back[key] == one, (name, key)
            assert whole(opened) == all_of_it, name
        if second == FORMATS[1]:
            written, again = (_columns(Path(name)) for name in (folder_file, f"again-{second}"))
            assert len(written) == len(again)
            for one, other in zip(written, again, strict=True):
                differing = {key: (one[key], other[key]) for key in one if one[key] != other[key]}
                assert not differing, first
    return given


def _columns(path: Path) -> list[Any]:
    """What promptfoo's own members say of the columns, and where each result stands."""
    # Sums of floats hang on their order.
    found = json.loads(path.read_text(), parse_float=lambda text: round(float(text), 9))["results"]
    rows = [
        {name: row[name] for name in ("testIdx", "promptIdx", "success", "score", "namedScores", "failureReason", "provider")}
        | {"output": (row["response"] or {"output": "none"})["output"]}
        for row in found["results"]
    ]  # fmt: skip
    for prompt in found["prompts"]:
        del prompt["metrics"]["totalLatencyMs"]  # what the network took is not kept apart from the rest
        prompt |= prompt.pop("metrics")
    return [*found["prompts"], *rows, found["stats"]["tokenUsage"]]


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("suite", ["prompts", "support", "shop_analyst", "travel"])
def test_each_format_s_sample_comes_back_whole(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suite: str
) -> None:
    monkeypatch.chdir(fast_samples(tmp_path))
    assert cli("run", suite, "--attempts", "2").code in (0, 1)
    assert len(check(cli, newest())) >= 8


@pytest.mark.real
def test_sets_scripts_prompts_and_several_models_come_back(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("promptfooconfig.yaml").write_text(SETS, "utf-8")
    Path("wanted.js").write_text("module.exports = () => 'hi 1'\n", "utf-8")
    assert cli("run", ".", "--trust").code == 1
    given = check(cli, newest())
    assert len(given) == 16
    rows = json.loads(Path("results.promptfoo.json").read_text())["results"]["results"]
    parts = next(row for row in rows if row["testCase"].get("description") == "sets")["gradingResult"][
        "componentResults"
    ]
    assert parts[1]["metadata"]["assertionSet"] == {
        "type": "assert-set", "assertionCount": 3, "metric": "grouped", "threshold": 0.4, "weight": 2.0
    }  # fmt: skip
    assert parts[1]["componentResults"] == parts[2:5]
    assert parts[6]["assertion"] == {"type": "equals", "value": "file://wanted.js"}
    assert parts[6]["metadata"] == {"renderedAssertionValue": "hi 1"}


def test_one_agent_with_two_models_is_two_columns(cli: Cli, project: Path) -> None:
    assert cli("run", ".", "-m", "scripted:one", "-m", "scripted:two").code in (0, 1)
    given = check(cli, newest())
    document = json.loads(Path("results.promptfoo.json").read_text())["results"]
    assert len({prompt["provider"] for prompt in document["prompts"]}) == 2 == len(document["prompts"])
    assert len(given) == 6 == len(document["results"])
    names = {row["testCase"]["description"] for row in document["results"]}
    assert names == {"greets", "says sorry", "costs"}
    assert {row["prompt"]["raw"] for row in document["results"]} == {"hello", "complain", "how much?"}


VECTOR = Path(__file__).parents[1] / "vectors" / "promptfoo_results"


def test_promptfoo_s_own_parts_of_parts_are_kept(tmp_path: Path) -> None:
    """As promptfoo 0.121.20 wrote them: within what they belong to, and one level of them once more behind it."""
    leaf = {"pass": False, "score": 0, "reason": "deeper"}
    deep = {"pass": False, "score": 0, "reason": "deep", "componentResults": [leaf]}
    inner = {"pass": True, "score": 1, "reason": "inner", "assertion": {"type": "javascript", "value": "x"}}
    script = {"type": "javascript", "value": "f()"}
    members = [
        {"pass": True, "score": 1, "reason": "ok", "assertion": {"type": "contains", "value": "hi {{n}}"},
         "metadata": {"renderedAssertionValue": "hi 1"}},
        {"pass": False, "score": 0, "reason": "no", "assertion": {"type": "equals", "value": "no", "weight": 2}},
    ]  # fmt: skip
    group = {"pass": False, "score": 0.33, "reason": "low", "componentResults": members,
             "metadata": {"assertionSet": {"type": "assert-set", "assertionCount": 2, "metric": "m"}}}  # fmt: skip
    parts = [group, *members, {"pass": True, "score": 1, "reason": "r", "componentResults": [inner, deep],
             "assertion": script}, inner, {**deep, "assertion": script}]  # fmt: skip
    shutil.copytree(VECTOR, tmp_path / "pf")
    path = tmp_path / "pf" / "out.json"
    document = json.loads(path.read_text())
    row = min(document["results"]["results"], key=lambda row: (row["testIdx"], row["promptIdx"]))
    row["gradingResult"]["componentResults"] = parts
    path.write_text(json.dumps(document))
    reader = RunReader(open_results(path))
    attempt = reader.attempt(1)
    reader.close()
    assert attempt is not None
    assert [(v.type, v.reason, v.set, v.expected) for v in attempt.verdicts] == [
        ("assert-set", "low", None, None), ("contains", "ok", 0, "hi 1"), ("equals", "no", 0, "no"),
        ("javascript", "r", None, "f()"),
    ]  # fmt: skip
    assert attempt.verdicts[-1].parts == [inner, deep]


def test_a_results_file_written_once_more_keeps_tests_and_prompts_for_promptfoo_itself(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """promptfoo's viewer reads its own members, not ours: descriptions, the prompts that were sent. Several
    files are written at once."""
    (tmp_path / "suite").mkdir()
    monkeypatch.chdir(tmp_path / "suite")
    Path("tui_eval.yaml").write_text("")
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['Say {{q}}', 'Ask {{q}}']\nproviders: [echo]\n"
        "tests:\n  - {description: greets, vars: {q: hello}, assert: [{type: contains, value: hello}]}\n"
        "  - {vars: {q: bye}, assert: [{type: contains, value: bye}]}\n"
    )
    assert cli("run", ".", "-o", "a.json", "-o", "a.promptfoo.json").code == 0
    written = _said(Path("a.promptfoo.json"))
    assert [said[0] for said in written] == ["greets", "greets", None, None]
    for source in ("a.json", "a.promptfoo.json"):
        assert cli("export", source, "-o", "b.promptfoo.json", "-o", "b.json").code == 0
        assert _said(Path("b.promptfoo.json")) == written, source
        assert len(json.loads(Path("b.json").read_text())["results"]) == 4
        Path("b.promptfoo.json").unlink()


def _said(path: Path) -> list[tuple[str | None, str]]:
    rows = json.loads(path.read_text())["results"]["results"]
    return [(row["testCase"].get("description"), row["prompt"]["raw"]) for row in rows]


DERIVED = """\
prompts: ['{{q}}', 'again {{q}}']
providers: [echo, file://silent.py]
derivedMetrics:
  - {name: f1, value: 'hit / (hit + miss)'}
  - {name: all, value: 'hit + __count'}
tests:
  - vars: {q: ['', one, two]}
    assert:
      - {type: contains, value: one, metric: hit}
      - {type: not-contains, value: one, metric: miss, weight: 3}
  - {vars: {q: own}, provider: echo, assert: [{type: equals, value: own, metric: hit}]}
  - {vars: {q: none}}
"""
SILENT = """\
def call_api(prompt, options, context):
    if 'two' in prompt:
        return {'error': 'no two'}
    if 'none' in prompt:
        return {'output': None}
    return {'output': ''}
"""


@pytest.mark.real
def test_derived_metrics_and_answers_of_nothing_come_back(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("promptfooconfig.yaml").write_text(DERIVED, "utf-8")
    Path("silent.py").write_text(SILENT, "utf-8")
    assert cli("run", ".", "--trust").code == 1
    given = check(cli, newest())
    assert len(given) == 20
    document = json.loads(Path("again-results.json").read_text())
    assert [sorted(column["derived"]) for column in document["metrics"]] == [["all", "f1"]] * len(
        document["metrics"]
    )
    outputs = [row["response"]["output"] for row in _rows("again-results.promptfoo.json") if row["response"]]
    assert "" in outputs and None in outputs
    judged = cli("rescore", "again-results.promptfoo.json", "--trust")
    assert judged.code == 1 and "nothing recorded" not in judged.out + judged.err


def test_a_file_of_promptfoo_itself_keeps_its_derived_metrics(cli: Cli, tmp_path: Path) -> None:
    """promptfoo writes them among the named scores of its columns."""
    shutil.copytree(VECTOR, tmp_path / "pf")
    path = tmp_path / "pf" / "out.json"
    document = json.loads(path.read_text())
    prompts = document["results"]["prompts"]
    for place, prompt in enumerate(prompts):
        prompt["metrics"]["namedScores"] = {**prompt["metrics"].get("namedScores", {}), "f1": place / 2}
    row = document["results"]["results"][0]
    row["response"]["output"] = ""
    path.write_text(json.dumps(document))
    again = tmp_path / "again.promptfoo.json"
    assert cli("export", path, "-o", again).code == 0
    written = json.loads(again.read_text())["results"]
    assert [one["metrics"]["namedScores"]["f1"] for one in written["prompts"]] == [
        n / 2 for n in range(len(prompts))
    ]
    same = next(
        one for one in written["results"]
        if (one["testIdx"], one["promptIdx"]) == (row["testIdx"], row["promptIdx"])
    )  # fmt: skip
    assert same["response"]["output"] == ""


def _rows(name: str) -> list[dict[str, Any]]:
    return json.loads(Path(name).read_text())["results"]["results"]


TRANSFORMS = """\
prompts: ['P {{a}}']
providers: [{id: echo, transform: "output + '?'"}]
tests:
  - {description: text, vars: {a: x}, options: {transform: "output + '!'"}, assert: [{type: equals, value: 'P x?!'}]}
  - description: object
    vars: {a: '{"k":1}'}
    options: {transform: 'JSON.parse(output.slice(2, -1))'}
    assert: [{type: javascript, value: output.k === 1}]
  - {description: from an object, options: {transform: "output.slice(0, 1)"},
     assert: [{type: equals, value: P}], vars: {a: y}}
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _again(cli: Cli, *arguments: str) -> tuple[int, dict[str, str], str]:
    """Judge again: the exit code, the messages by case, and what a person is told."""
    told = cli("rescore", *arguments, "-o", "again.json")
    rows = json.loads(Path("again.json").read_text())["results"]
    return told.code, {row["name"]: row["message"] for row in rows}, told.out + told.err


@pytest.mark.parametrize("mode", ["documented", "reference"])
def test_what_transforms_left_is_not_transformed_once_more(cli: Cli, elsewhere: Path, mode: str) -> None:
    suite = elsewhere / "promptfooconfig.yaml"
    suite.write_text(TRANSFORMS)
    files = ("r.json", "r.promptfoo.json")
    assert cli("run", ".", "--compat", mode, "-o", files[0], "-o", files[1]).code == 0
    from_elsewhere(*files)
    for file in files:
        assert _again(cli, file)[0] == 0, file
        assert _again(cli, "last")[0] == 0, file
        assert _again(cli, "again.json")[0] == 0, file
    suite.write_text(suite.read_text().replace("+ '!'", "+ '#'"))
    for file in files:  # the answer is known: today's transform is what counts
        code, said, _ = _again(cli, file)
        assert code == 1 and said["text"] == 'Expected output "P x?#" to equal "P x?!"', file
    suite.write_text("prompts: [other]\nproviders: [echo]\ntests: [{vars: {b: z}}]\n")
    for file in files:  # judged as the file has them, which says nothing of transforms
        code, _, told = _again(cli, file)
        assert code == 0 and "no longer configured" not in told, file


def test_files_of_before_have_the_answer_in_their_transcripts(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "promptfooconfig.yaml").write_text(TRANSFORMS)
    assert cli("run", ".", "-o", "r.json").code == 0
    from_elsewhere("r.json")
    document = json.loads(Path("r.json").read_text())
    for row in document["results"]:
        row["details"].pop("answer")
    Path("r.json").write_text(json.dumps(document))
    assert _again(cli, "r.json")[0] == 0


def test_a_file_of_promptfoo_itself_has_only_what_transforms_left(cli: Cli, elsewhere: Path) -> None:
    (elsewhere / "promptfooconfig.yaml").write_text(TRANSFORMS)
    assert cli("run", ".", "-o", "r.promptfoo.json").code == 0
    document = json.loads(Path("r.promptfoo.json").read_text())
    document["config"]["providers"] = [{"id": "echo", "transform": "output + '?'"}]
    for row in document["results"]["results"]:
        del row["tuiEval"]
    Path("pf.json").write_text(json.dumps(document))
    code, _, told = _again(cli, "pf.json")
    assert code == 0 and "3 answers are in the file only as transforms left them" in told
    assert _again(cli, "again.json")[0] == 0
    document["config"]["providers"] = ["echo"]
    for row in document["results"]["results"]:
        row["testCase"].pop("options")
        row["response"]["output"] = "P x?!"
    Path("plain.json").write_text(json.dumps(document))  # nothing transformed these
    code, said, told = _again(cli, "plain.json")
    assert code == 1 and '"P x?!?!"' in said["text"] and "transforms" not in told


def test_a_large_results_file_is_said_to_be_read(cli: Cli, elsewhere: Path) -> None:
    """One of 20,000 results was read for many seconds in which nothing was seen."""
    (elsewhere / "r.json").write_text(small := json.dumps({"results": [{"name": "a", "passed": True}]}))
    assert "reading" not in cli("show", "r.json").err
    (elsewhere / "large.json").write_text(small + " " * 10_000_000)
    shown = cli("show", "large.json")
    assert "reading large.json, 10 MB\n" in shown.err and shown.code == 0
