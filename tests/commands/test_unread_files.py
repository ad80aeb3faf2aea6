"""Files that could not be read whole: no report of the run is green, and each names them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.commands.conftest import Cli
from tui_eval.model import Problem
from tui_eval.store.missing_cases import unread_files_of, unread_listed_of, unread_remembered, unread_report
from tui_eval.store.schema import RunInfo

ENDINGS = ("json", "jsonl", "csv", "html", "md", "junit.xml", "promptfoo.json")
LOST = """\
agent: helper
test_cases:
  - {name: beside, input: hello, expected: {should_contain: ["hi"]}}
  - {name: lost, expected: {should_contain: ["hi"]}}
"""


def reports(cli: Cli, project: Path) -> dict[str, Path]:
    """A run of what can be read, in every kind of file; all that ran passed."""
    files = {ending: project / f"r.{ending}" for ending in ENDINGS}
    outputs = [word for path in files.values() for word in ("-o", path)]
    result = cli(
        "run", ".", "-s", "greets,beside" if (project / "lost.yaml").exists() else "greets", *outputs
    )
    assert result.code == 4 and "failed: " not in result.out
    return files


@pytest.fixture(params=["broken.yaml", "lost.yaml"])
def files(request: pytest.FixtureRequest, cli: Cli, project: Path) -> tuple[str, dict[str, Path]]:
    name: str = request.param
    (project / name).write_text("test_cases: [{name: x, input: 1\n" if name == "broken.yaml" else LOST)
    return name, reports(cli, project)


def test_every_report_names_the_file(files: tuple[str, dict[str, Path]]) -> None:
    name, made = files
    for ending, path in made.items():
        assert name in path.read_text(), ending


def test_junit_has_an_error_for_the_whole_run(files: tuple[str, dict[str, Path]]) -> None:
    name, made = files
    root = ElementTree.parse(made["junit.xml"]).getroot()
    assert (root.get("failures"), root.get("errors")) == ("0", "1")
    (error,) = root.iter("error")
    assert "not whole" in error.get("message", "") and f"{name}:" in (error.text or "")
    (suite,) = (one for one in root if one.get("name") == "tui-eval")
    assert [one.get("name") for one in suite] == ["the whole run"]


def test_pages_for_people_say_it_above_the_cases(files: tuple[str, dict[str, Path]]) -> None:
    name, made = files
    for ending, cases in (("md", "<details>"), ("html", "<h2>Cases")):
        above = made[ending].read_text().partition(cases)[0]
        assert "The run is not whole: 1 error in" in above and name in above


def test_data_files_have_an_entry_for_the_file(files: tuple[str, dict[str, Path]]) -> None:
    name, made = files
    lines = [json.loads(line) for line in made["jsonl"].read_text().splitlines()]
    for rows in (lines, list(csv.DictReader(made["csv"].read_text().splitlines()))):
        (row,) = (row for row in rows if row["outcome"] == "not read")
        assert row["suite"] == name and name in row["message"]
    (entry,) = json.loads(made["json"].read_text())["not_read"]
    assert entry["suite"] == name
    assert json.loads(made["promptfoo.json"].read_text())["results"]["stats"]["notRead"] == [name]


def test_a_run_of_files_that_could_be_read_says_nothing_of_it(cli: Cli, project: Path) -> None:
    cli("run", ".", "-s", "greets", "-o", "a.json", "-o", "a.junit.xml", "-o", "a.md")
    assert "not_read" not in json.loads((project / "a.json").read_text())
    assert ElementTree.parse(project / "a.junit.xml").getroot().get("errors") == "0"
    assert "not whole" not in (project / "a.md").read_text()


def test_judged_again_the_run_is_no_more_whole(cli: Cli, project: Path) -> None:
    (project / "broken.yaml").write_text("test_cases: [{name: x, input: 1\n")
    assert cli("run", ".", "-s", "greets").code == 4
    (project / "broken.yaml").unlink()
    assert cli("rescore", "-o", "again.md").code == 4
    assert "broken.yaml" in (project / "again.md").read_text()


def test_what_a_file_is_called_and_says_cannot_draw_on_a_report() -> None:
    problem = Problem("a\x1b[31m.yaml", 1, "", "bad \x07 text")
    info = RunInfo(
        id="r", provenance=unread_remembered([problem, Problem("b.yaml", 1, "", "x", level="note")])
    )
    assert "\x1b" not in unread_report(info) and "\x07" not in unread_listed_of(info)[0].text
    assert len(unread_files_of(info)) == 1


def test_an_older_run_that_only_counted_them_is_not_whole_either() -> None:
    assert "2 errors in its files" in unread_report(RunInfo(id="r", provenance={"unread": 2}))
    assert not unread_report(RunInfo(id="r"))


STA = "agent: helper\ntest_cases:\n  - name: a\n    input: hello\n    expected: {should_contain: [nope]}\n    expected: {should_contain: [hi]}\n  - {name: b, input: hello, expected: {should_contain: [hi]}}\n"
PROMPTFOO = "prompts: ['{{x}}']\nproviders: [echo]\ntests: [%s]\n"
TEST = '{"vars": {"x": "hi"},\n"assert": [{"type": "contains", "value": "nope",\n"value": "hi"}]}'
NOT_AS_WRITTEN: dict[str, tuple[dict[str, str], str, int]] = {
    "StartToAgent": ({"s.yaml": STA}, "s.yaml:6: test_cases[0].expected: given twice, on lines 5 and 6", 1),
    "StartToAgent, of all cases": (
        {"s.yaml": "agent: nobody\n" + STA}, "s.yaml:2: agent: given twice, on lines 1 and 2", 0,
    ),
    "nao": (
        {"tests/q.yml": "prompt: hello\nname: q\nassertions: []\nname: r\n"}, "q.yml:4: name: given twice, on lines 2 and 4", 0,
    ),
    "promptfoo": (
        {"promptfooconfig.yaml": PROMPTFOO % TEST}, "promptfooconfig.yaml:5: value: given twice, on lines 4 and 5", 0,
    ),
    "promptfoo, JSON": (
        {"promptfooconfig.json": f'{{"prompts": ["{{{{x}}}}"], "providers": ["echo"], "tests": [{TEST}]}}'},
        "promptfooconfig.json:3: value: given twice, on lines 2 and 3", 0,
    ),
    "promptfoo, tests as JSON": (
        {"promptfooconfig.yaml": PROMPTFOO % "'file://t.json'", "t.json": f"[{TEST}]"},
        "t.json:3: value: given twice, on lines 2 and 3", 0,
    ),
    "promptfoo, tests as lines": (
        {"promptfooconfig.yaml": PROMPTFOO % "'file://t.jsonl'", "t.jsonl": TEST.replace("\n", "")},
        "t.jsonl:1: not valid JSON: an object has the key 'value' twice", 0,
    ),
    "promptfoo, a variable": (
        {"promptfooconfig.yaml": PROMPTFOO % "{vars: {x: 'file://v.yaml'}, assert: [{type: contains, value: hi}]}",
         "v.yaml": "a: nope\na: hi\n"},
        "v.yaml:2: a: given twice, on lines 1 and 2", 0,
    ),
    "StartToAgent, an unknown tag": (
        {"s.yaml": "agent: helper\ntest_cases:\n  - {name: a, input: hello, expected: {should_contain: [!!x hi]}}\n"
         "  - {name: b, input: hello, expected: {should_contain: [hi]}}\n"},
        "s.yaml:3: test_cases[0].expected.should_contain[0]: unknown tag", 1,
    ),
    "nao, what cannot be merged": (
        {"tests/q.yml": "prompt: hello\nname: q\nassertions: []\n<<: gone\n"}, "q.yml:4: <<: only a mapping", 0,
    ),
    "promptfoo, a schema that is not there": (
        {"promptfooconfig.yaml": PROMPTFOO % "{vars: {x: '{}'}, assert: [{type: is-json, value: {$ref: 'gone.json'}}]}"},
        "promptfooconfig.yaml:3: tests[0].assert[0].value: $ref gone.json: there is no file", 0,
    ),
    "promptfoo, a default that is not there": (
        {"promptfooconfig.yaml": PROMPTFOO % "{vars: {x: hi}, assert: [{type: contains, value: hi}]}"
         + "defaultTest: file://gone.yaml\n"},
        "promptfooconfig.yaml:4: defaultTest: there is no file gone.yaml", 0,
    ),
}  # fmt: skip


@pytest.mark.usually(4)
@pytest.mark.parametrize("form", NOT_AS_WRITTEN)
def test_no_case_passes_by_what_is_left_of_what_somebody_wrote(cli: Cli, project: Path, form: str) -> None:
    files, said, passed = NOT_AS_WRITTEN[form]
    (project / "suite.yaml").unlink()
    for name, text in files.items():
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text)
    with (project / "tui_eval.yaml").open("a") as config:
        config.write('suites: [{path: "tests/**", agent: helper}]\n')
    done = cli("run", ".")
    assert done.code != 0 and said in done.out + done.err, done.out + done.err
    assert done.out.count("✓ passed") == passed, done.out
    if passed == 0:
        assert cli("run", ".", "--failed", "--no-cache").out.count("✓ passed") == 0
        assert "nothing failed" not in cli("run", ".", "--failed").err


def test_to_the_letter_the_last_of_two_keys_counts_where_the_tool_says_nothing_of_it(
    cli: Cli, project: Path
) -> None:
    (project / "suite.yaml").write_text(STA)
    done = cli("run", ".", "--compat", "reference")
    assert done.out.count("✓ passed") == 2 and "given twice" in done.out + done.err


def test_a_run_says_what_it_passed_over_in_one_line(cli: Cli, project: Path) -> None:
    (project / "of_its_own_name.yaml").write_text(
        "prompts: [a]\nproviders: [echo]\ntests: [{vars: {a: b}}]\n"
    )
    (project / "away").symlink_to("/usr")
    result = cli("run", ".", "-s", "greets")
    (line,) = [one for one in result.err.splitlines() if "passed over" in one]
    assert result.code == 0
    assert (
        line
        == "2 places that may hold suites passed over: away, of_its_own_name.yaml; tui-eval check says why"
    )
    assert (
        "passed over"
        not in cli("run", "suite.yaml" if (project / "suite.yaml").exists() else ".", "-s", "greets").err
    )
