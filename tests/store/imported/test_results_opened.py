"""Results files opened as runs: nao's, older ones, our own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from tests.commands.conftest import Cli, from_elsewhere
from tests.support import TESTS
from tui_eval.formats.reading import is_results, open_results
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError

VECTORS = sorted((TESTS / "vectors" / "nao_results").glob("*.json"))


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_nao_files_come_back_as_they_were(cli: Cli, path: Path, tmp_path: Path) -> None:
    given = json.loads(path.read_text())
    written = tmp_path / "again.json"
    assert cli("export", path, "-o", written).code == 0
    again = json.loads(written.read_text())
    assert {key: again["summary"][key] for key in given["summary"]} == given["summary"]
    assert again["timestamp"][:19] == given["timestamp"][:19]
    by_key = {(r["name"], r["model"], r["attempt"]): r for r in again["results"]}
    for row in given["results"]:
        other = by_key[row["name"], row["model"], row["attempt"]]
        for key in ("passed", "tokens", "cost", "duration_ms", "tool_call_count", "error"):
            assert other[key] == row[key], (row["name"], key)
        details = {key: value for key, value in row["details"].items() if value is not None}
        if details.get("tool_calls") == []:
            del details["tool_calls"]
        assert {key: other["details"][key] for key in details if key != "response_text"} == {
            key: value for key, value in details.items() if key != "response_text"
        }
    assert again["pass_metrics"]["aggregate"] == given["pass_metrics"]["aggregate"]
    shown = cli("show", path)
    assert shown.code == int(given["summary"]["failed"] > 0) and path.stem in shown.out


def test_compare_and_the_web_page(cli: Cli, tmp_path: Path) -> None:
    one, other = VECTORS[0], VECTORS[-1]
    assert cli("compare", one, one).code == 0
    assert cli("compare", one, other).code in (0, 1)
    assert cli("export", one, "-o", tmp_path / "x.html").code == 0
    assert "total_revenue" in (tmp_path / "x.html").read_text()
    # Without a terminal the app is plain lines.
    assert "total_revenue" in cli(one).out


def test_an_older_file_lacks_keys(cli: Cli, tmp_path: Path) -> None:
    old = tmp_path / "results_old.json"
    result = {"name": "t", "model": "openai:gpt-4", "passed": False, "message": "values differ", "tokens": None,
              "details": {"actual_data": [{"n": 1}], "expected_data": [{"n": 2}]}}  # fmt: skip
    broken = {"name": "u", "model": None, "passed": False, "error": "boom"}
    old.write_text(json.dumps({"timestamp": "2025-01-02T03:04:05", "results": [result, broken]}))
    shown = cli("show", old, "t")
    assert shown.code == 0 and "values differ" in shown.out
    reader = RunReader(open_results(old))
    assert [row.outcome for row in reader.attempts()] == ["failed", "error"]
    attempt = reader.attempt(1)
    assert attempt is not None and attempt.data is not None and attempt.data.columns == ["n"]
    reader.close()


def test_our_own_file_brings_everything_back(cli: Cli, project: Path, cache: Path) -> None:
    assert cli("run", ".", "--attempts", "2", "-o", "r.json").code == 1
    given = json.loads(Path("r.json").read_text())
    assert cli("export", "r.json", "-o", "again.json").code == 0
    again = json.loads(Path("again.json").read_text())
    assert again["results"] == given["results"]
    assert again["cases"] == given["cases"] and again["summary"] == given["summary"]
    assert again["run"]["id"] == given["run"]["id"]
    (folder,) = Store(Path.cwd()).run_folders()
    own, back = RunReader(folder), RunReader(open_results(Path("r.json")))
    causes = [(row.cause, row.alike) for row in own.attempts()]
    assert any(cause for cause, _ in causes), "a case fails"
    assert [(row.cause, row.alike) for row in back.attempts()] == causes
    own.close()
    back.close()
    assert list((cache / "tui-eval" / "results").iterdir())  # and only there
    assert cli("show", "r.json", "costs").code == 0


def test_the_metadata_of_replies_comes_back_and_is_shown(cli: Cli, project: Path) -> None:
    """What tool assertions were judged by: it stood in no file, and no command showed it."""
    script = (project / "agent.script.yaml").read_text()
    told = 'say: "hi there"\n    metadata: {tools_used: [look], lang: en}'
    (project / "agent.script.yaml").write_text(script.replace('say: "hi there"', told))
    assert cli("run", ".", "-s", "::greets", "-o", "r.json").code == 0
    (result,) = json.loads(Path("r.json").read_text())["results"]
    said = {"tools_used": ["look"], "lang": "en"}
    assert result["details"]["reported"] == [{"turn": 1, "metadata": said, "finish_reason": "stop"}]
    assert '[1] metadata: {"tools_used":["look"],"lang":"en"}' in cli("show", "r.json", "greets").out
    assert cli("export", "r.json", "-o", "again.json").code == 0
    assert json.loads(Path("again.json").read_text())["results"] == [result]


def test_a_case_that_nobody_was_asked_is_nobody_s_and_needs_as_many_passes_as_it_did(
    cli: Cli, project: Path
) -> None:
    """One that no part of a merged run has: it became `unknown`'s, and all of its attempts had to pass."""
    assert (
        cli("run", ".", "-s", "::greets", "--attempts", "3", "--threshold", "0.6", "-o", "r.json").code == 0
    )
    document = json.loads(Path("r.json").read_text())
    (case,), (result, *_) = document["cases"], document["results"]
    lost = {key: result[key] for key in ("suite", "name", "format", "model")}
    lost |= {"case_id": "s::lost", "agent": "", "outcome": "not run", "passed": None, "message": "not run"}
    document["not_run"] = [{**lost, "attempt": number} for number in (1, 2, 3)]
    nothing = {"outcome": None, "attempts": 0, "passed": 0, "pass_rate": 0.0, "flaky": False}
    own = {key: lost[key] for key in ("suite", "name", "model", "case_id", "agent")}
    document["cases"] = [case, {**case, **own, **nothing, "interval": [0.0, 1.0]}]
    Path("r.json").write_text(json.dumps(document))
    from_elsewhere("r.json")
    assert cli("export", "r.json", "-o", "again.json").code == 0
    (again,) = (
        one for one in json.loads(Path("again.json").read_text())["cases"] if one["case_id"] == "s::lost"
    )
    assert (again["agent"], again["required"]) == ("", 2)


@pytest.mark.parametrize("name", ["r.json", "r.promptfoo.json"])
def test_a_run_that_only_records_passes_from_its_file_as_it_did(cli: Cli, project: Path, name: str) -> None:
    """`--threshold 0` asks for no pass: all attempts had to pass once the file was opened, or merged."""
    assert cli("run", ".", "--attempts", "2", "--threshold", "0", "-o", name).code == 0
    from_elsewhere(name)
    assert cli("show", name).code == 0 and cli("merge", name, "-o", "again.json").code == 0
    assert {case["required"] for case in json.loads(Path("again.json").read_text())["cases"]} == {0}


def test_what_was_noted_before_the_first_turn_stays_before_it(cli: Cli, project: Path) -> None:
    """That an attempt was begun anew on another worker, say."""
    assert cli("run", ".", "-s", "::greets", "-o", "r.json").code == 0
    document = json.loads(Path("r.json").read_text())
    (result,) = document["results"]
    entry = {**dict.fromkeys(result["transcript"][0]), "turn": 0, "kind": "note", "text": "begun anew"}
    result["transcript"].insert(0, {**result["transcript"][0], **entry, "agent": "", "name": ""})
    Path("r.json").write_text(json.dumps(document))
    from_elsewhere("r.json")
    assert cli("export", "r.json", "-o", "again.json").code == 0
    transcript = json.loads(Path("again.json").read_text())["results"][0]["transcript"]
    assert (transcript[0]["turn"], transcript[0]["text"]) == (0, "begun anew")
    assert [one["turn"] for one in transcript[1:]] == [1] * (len(transcript) - 1)


def test_a_prompt_that_could_not_be_made_comes_back_as_it_stands(cli: Cli, project: Path) -> None:
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['{{ a | upper }} and {{b}}']\nproviders: [echo]\ntests: [{vars: {a: {k: 1}, b: x}}]\n"
    )
    assert cli("run", "promptfooconfig.yaml", "-o", "r.json").code == 1
    (before,) = json.loads(Path("r.json").read_text())["results"]
    assert (before["template"], before["outcome"]) == ("{{ a | upper }} and {{b}}", "error")
    assert before["transcript"][-1]["turn"] == 0
    from_elsewhere("r.json")
    assert cli("export", "r.json", "-o", "again.json").code == 0
    (again,) = json.loads(Path("again.json").read_text())["results"]
    assert again["template"] == before["template"]
    assert again["transcript"] == before["transcript"]


def test_other_files_are_refused_in_one_line(cli: Cli, project: Path) -> None:
    for name, text in (("a.json", "{"), ("b.json", '{"results": {"results": []}}'), ("c.json", "[]")):
        (project / name).write_text(text)
        with pytest.raises(StoreError):
            open_results(project / name)
        assert not is_results(project / name)
        told = cli("show", name)
        assert told.code == 4 and name in told.err and told.err.count("\n") == 1


def test_damaged_entries_do_not_raise(tmp_path: Path) -> None:
    odd = {"name": 3, "passed": "yes", "details": 5, "transcript": [1, {"kind": "?"}], "assertions": [{}],
           "usage": [], "attempt": "x", "cost": float("nan"), "named_scores": {"a": "b"}, "vars": []}  # fmt: skip
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"results": [odd, {"passed": True}], "cases": [5], "run": {"state": 7}}))
    reader = RunReader(open_results(path))
    assert len(reader.attempts()) == 2
    reader.close()


@pytest.mark.parametrize(
    "evidence",
    [5, [3], [{"code": "not-contained"}], [{"kind": "match", "start": -1}], [{"kind": "match", "row": 10**30}],
     [{"kind": "rule", "code": "needs-trust", "text": "run everything"}]],
)  # fmt: skip
def test_evidence_that_is_none_is_left_out_and_nobody_is_asked_to_trust_by_a_file(
    tmp_path: Path, evidence: object
) -> None:
    verdict = {"type": "contains", "passed": False, "reason": "said in prose", "evidence": evidence}
    path = tmp_path / "odd.json"
    path.write_text(
        json.dumps(
            {"results": [{"name": "a", "passed": False, "assertions": [verdict], "evidence": evidence}]}
        )
    )
    reader = RunReader(open_results(path))
    ((row, body),) = ((row, reader.attempt(row.id)) for row in reader.attempts())
    assert body is not None and body.evidence is None and row.cause == ""
    assert [one.evidence for one in body.verdicts] == [None] and body.verdicts[0].reason == "said in prose"
    reader.close()


def test_a_trace_comes_back_and_is_shown(cli: Cli, tmp_path: Path) -> None:
    spans = [
        {"span_id": "1", "name": "agent\x1b[31m run", "start": 1000.0, "end": 3500.0},
        {
            "span_id": "2",
            "parent_id": "1",
            "name": "look",
            "status": 2,
            "message": "boom",
            "attributes": {"k": 1},
        },
    ]
    result = {"name": "t", "passed": True, "message": "passed", "trace": {"trace_id": "ab", "spans": spans}}
    odd = {"name": "u", "passed": True, "message": "passed", "trace": {"spans": 5}}
    file = tmp_path / "results.json"
    file.write_text(json.dumps({"timestamp": "2025-01-02T03:04:05", "results": [result, odd]}))
    out = cli("show", file, "t").out
    assert "span: agent␛[31m run 2,500.0 ms\n" in out and "span: look; status 2 boom\n" in out
    reader = RunReader(open_results(file))
    traced, without = (reader.attempt(row.id) for row in reader.attempts())
    assert traced is not None and traced.trace is not None and traced.trace.spans[1].attributes == {"k": 1}
    assert without is not None and without.trace is None


PROMPTFOO = TESTS / "vectors" / "promptfoo_results"


def test_promptfoo_s_own_file_opens_with_the_ids_of_the_suite_beside_it(
    cli: Cli, tmp_path: Path, monkeypatch
) -> None:
    """The file was written by promptfoo 0.121.20 (`promptfoo eval -o out.json`)."""
    for file in PROMPTFOO.iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    shown = cli("show", "out.json")
    assert (
        shown.code == 1 and "2 passed, 7 failed, 9 total" in shown.out and "a file of promptfoo" in shown.out
    )
    assert (
        "✗ failed: first [Say {{word}} at length]" in shown.out
        and 'Expected output to contain "briefly"' in shown.out
    )
    assert cli("run", ".", "--display", "none", "-o", "ours.json").code == 1
    compared = cli("compare", "out.json", "ours.json", "--json")
    assert (
        compared.code == 0 and compared.json["counts"]["unchanged"] == 9
    )  # every case has the id it has here
    reader = RunReader(open_results(tmp_path / "out.json"))
    rows = {row.case_id: reader.attempt(reader.attempts(row.id)[0].id) for row in reader.cases()}
    reader.close()
    first = rows["promptfooconfig.yaml::first::echo::prompt1"]
    assert first is not None and first.outcome == "passed" and first.named_scores == {"short": 1.0}
    assert [(one.type, one.expected, one.passed) for one in first.verdicts] == [
        ("contains", "kettle", True), ("contains", "briefly", True),
    ]  # fmt: skip
    assert [(one.kind, one.text) for one in first.transcript] == [
        ("user", "Say kettle briefly"), ("assistant", "Say kettle briefly"),
    ]  # fmt: skip
    case = cli("show", "out.json", "first")
    assert "Say kettle at length" in case.out and "✗ contains text" in case.out


MATRIX = """
prompts: ["Say {{word}}{{end}}"]
providers: [echo]
defaultTest: {vars: {end: "!"}}
tests:
  - {description: both, vars: {word: [tea, kettle], end: ["", "?"]}, assert: [{type: contains, value: tea}]}
  - {description: twin, vars: {word: tea}, assert: [{type: contains, value: tea}]}
  - {description: twin, vars: {word: pot}, assert: [{type: contains, value: tea}]}
  - {vars: {word: cup}, assert: [{type: contains, value: cup}]}
  - {description: again, vars: {word: cup}, options: {repeat: 2}, assert: [{type: contains, value: cup}]}
"""


def test_rows_of_other_inputs_are_no_attempts_of_one_case(cli: Cli, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    (tmp_path / "promptfooconfig.yaml").write_text(MATRIX)
    cli("run", ".", "--display", "none", "-o", "ours.json", "-o", "its.promptfoo.json")
    document = json.loads((tmp_path / "its.promptfoo.json").read_text())
    document["config"] = yaml.safe_load(MATRIX)
    for number, row in enumerate(document["results"]["results"]):  # as promptfoo itself writes it
        del row["tuiEval"]
        if "description" not in row["testCase"]:
            row["testCase"]["description"] = f"Row #{number + 1}"
    (tmp_path / "out.json").write_text(json.dumps(document))
    cli("export", "out.json", "-o", "read.json")
    read = json.loads(Path("read.json").read_text())["cases"]
    ours = json.loads(Path("ours.json").read_text())["cases"]
    assert [(one["case_id"], one["attempts"], one["outcome"]) for one in read] == [
        (one["case_id"], one["attempts"], one["outcome"]) for one in ours
    ]
    assert len(read) == 8 and not any(one["flaky"] for one in read)


TABLE = """
prompts: [{raw: "Say {{word}}", label: terse}, {raw: "Please say {{word}} in {{lang}}", label: polite}]
providers: [{id: echo, label: "acme:mini"}, {id: echo, label: "acme:large"}]
defaultTest: {vars: {lang: [de, en]}}
tests: file://tests.csv
"""
ROWS = """\
word,__description,__expected
tea,twin,contains:tea
pot,twin,contains:tea
cup,,contains:cup
mug,alone,contains:mug
"""


def test_rows_of_a_table_with_one_description_are_tests_and_read_as_those_of_a_run_here(
    cli: Cli, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    (tmp_path / "promptfooconfig.yaml").write_text(TABLE)
    (tmp_path / "tests.csv").write_text(ROWS)
    cli("run", ".", "--display", "none", "-o", "its.promptfoo.json")
    document = json.loads((tmp_path / "its.promptfoo.json").read_text())
    document["config"] = yaml.safe_load(TABLE)
    for number, row in enumerate(document["results"]["results"]):  # as promptfoo itself writes it
        del row["tuiEval"]
        if "description" not in row["testCase"]:
            row["testCase"]["description"] = f"Row #{number + 1}"
    (tmp_path / "out.json").write_text(json.dumps(document))
    (run,) = Store(tmp_path).run_folders()
    read, ours = RunReader(open_results(tmp_path / "out.json")), RunReader(run)
    assert {case.case_id for case in read.cases()} == {case.case_id for case in ours.cases()}
    assert len(read.cases()) == 32 and all(row.attempt == 1 for row in read.attempts())
    assert {case.variant.removesuffix(" lang=de").removesuffix(" lang=en") for case in ours.cases()} == {
        case.variant for case in read.cases()
    }
    read.close()
    ours.close()
    assert "unchanged: 32\n" in cli("compare", run.name, "out.json").out


def test_a_promptfoo_file_elsewhere_or_with_odd_rows_opens_too(tmp_path: Path) -> None:
    document = json.loads((PROMPTFOO / "out.json").read_text("utf-8"))
    rows = document["results"]["results"]
    rows[0] = {
        "success": False,
        "failureReason": 2,
        "error": "503",
        "vars": 5,
        "testCase": None,
        "promptIdx": "x",
        "response": [],
    }
    rows[1] |= {
        "response": {"output": {"a": 1}},
        "gradingResult": {"componentResults": [{"pass": True}, 3]},
        "testIdx": -1,
    }
    (tmp_path / "one.json").write_text(json.dumps(document))
    reader = RunReader(open_results(tmp_path / "one.json"))
    attempts = reader.attempts()
    cases = reader.cases()
    reader.close()
    assert len(attempts) == 9 and [row.outcome for row in attempts].count("error") == 1
    assert {case.suite for case in cases} == {"promptfooconfig.yaml"}
    for rows in ([], [{}], [{"success": True}, 4]):
        (tmp_path / "odd.json").write_text(json.dumps({"results": {"results": rows}}))
        assert not is_results(tmp_path / "odd.json")
    (tmp_path / "odd.json").write_text(json.dumps({"evalId": "e", "results": {"results": []}}))
    assert is_results(tmp_path / "odd.json")


def test_a_file_that_no_memory_holds_is_not_read(tmp_path: Path) -> None:
    """A sparse one takes a few bytes of a disk; it was read until the kernel ended the app."""
    path = tmp_path / "results.json"
    with open(path, "wb") as file:
        file.write(b'{"results": [{"name": "a", "passed": true}]')
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match=r"results\.json: 1,099\.5 GB, too much for this machine's memory"):
        open_results(path)


def test_nor_to_choose_the_cases_that_failed_in_it(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [echo]\ntests: [{vars: {a: b}}]\n", "utf-8"
    )
    with open(tmp_path / "results.json", "wb") as file:
        file.truncate(1 << 40)
    done = cli("run", tmp_path, "--filter-failing", tmp_path / "results.json")
    assert done.code == 4 and "1,099.5 GB, too much for this machine's memory" in done.err


def test_a_number_of_five_thousand_digits_is_called_that(tmp_path: Path) -> None:
    """`use sys.set_int_max_str_digits() to increase the limit` helps nobody here."""
    path = tmp_path / "results.json"
    path.write_text('{"results": [{"name": "a", "passed": true, "x": ' + "9" * 5000 + "}]}", "utf-8")
    with pytest.raises(StoreError, match="not JSON: a number in it is too long"):
        open_results(path)
