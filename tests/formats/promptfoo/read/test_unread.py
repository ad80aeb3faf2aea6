"""What cannot be read is an error of every case that it is missing in: without it, a case may pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.promptfoo_files import Make, errors
from tui_eval.formats.promptfoo.read.suite_file import SuiteReading
from tui_eval.model import Problem, Suite

TESTS = "tests: [{vars: {q: a}}, {vars: {q: b}}]\n"
HEAD = "providers: [echo]\nprompts: ['{{q}}']\n"


def hung(suite: Suite) -> list[list[Problem]]:
    """The errors of each case."""
    return [[one for one in case.problems if one.level == "error"] for case in suite.cases]


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("assert: [{type: is-json, value: {$ref: 'gone.json'}}]", "tests[0].assert[0].value"),
        ("assert: [{type: contains-json, value: {$ref: '/etc/gone.json'}}]", "tests[0].assert[0].value"),
        ("assert: {$ref: 'gone.yaml#/asserts'}", "tests[0].assert"),
        ("assert: [{$ref: 'http://example.com/a.yaml'}]", "tests[0].assert[0]"),
        ("options: {transform: {$ref: '#/nowhere'}}", "tests[0].options.transform"),
        ("options: {$ref: '#/nowhere'}", "tests[0].options"),
        ("threshold: {$ref: '#/nowhere'}", "tests[0].threshold"),
        ("assert: [{type: assert-set, assert: {$ref: '#/nowhere'}}]", "tests[0].assert[0].assert"),
        ("assert: {$ref: '#/shared'}", "tests[0].assert[0].value"),
    ],
)
def test_a_reference_that_cannot_be_followed_is_an_error_of_its_case(make: Make, part: str, key: str) -> None:
    shared = "" if "shared" not in part else "shared: [{type: is-json, value: {$ref: 'gone.json'}}]\n"
    suite = make(f"{HEAD}tests:\n- {{vars: {{q: a}}, {part}}}\n- vars: {{q: b}}\n{shared}")
    first, second = hung(suite)
    (told,) = first
    assert (told.path, told.line, told.key) == ("promptfooconfig.yaml", 4, key)
    assert told.message.startswith("$ref ")
    assert not second and told in errors(suite)


def test_a_reference_to_outside_of_the_root_is_an_error_that_asks_for_trust(
    make: Make, tmp_path: Path
) -> None:
    schema = tmp_path.parent / f"{tmp_path.name}_schema.json"
    schema.write_text('{"type": "array"}')
    text = f"{HEAD}tests: [{{vars: {{q: a}}, assert: [{{type: is-json, value: {{$ref: '{schema}'}}}}]}}]\n"
    ((told,),) = hung(make(text))
    assert "needs trust" in told.message
    suite = make(text, trusted=True)
    assert not errors(suite) and suite.cases[0].assertions[0].value == {"type": "array"}


def test_a_reference_in_a_file_of_tests_is_an_error_of_its_case(make: Make, tmp_path: Path) -> None:
    (tmp_path / "t.yaml").write_text("- vars: {q: a}\n- vars: {q: b}\n  assert:\n  - $ref: gone.yaml\n")
    first, (told,) = hung(make(HEAD + "tests: t.yaml\n"))
    assert not first and (told.path, told.line, told.key) == ("t.yaml", 4, "[1].assert[0]")


def test_a_test_that_cannot_be_read_is_no_case_and_the_others_are_as_they_were(make: Make) -> None:
    suite = make(HEAD + "tests: [{$ref: '#/nowhere'}, {vars: {q: b}}]\n")
    assert hung(suite) == [[]]
    assert [(one.key, one.line) for one in errors(suite)] == [("tests[0]", 3)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + TESTS + "defaultTest: file://gone.yaml\n", "there is no file gone.yaml"),
        (HEAD + TESTS + "defaultTest: file://twice.yaml\n", "given twice"),
        (HEAD + TESTS + "defaultTest: {$ref: 'gone.yaml'}\n", "there is no file gone.yaml"),
        (HEAD + TESTS + "defaultTest: {assert: {$ref: 'gone.yaml'}}\n", "there is no file gone.yaml"),
        (HEAD + TESTS + "defaultTest: {assert: file://gone.yaml}\n", "there is no file gone.yaml"),
        (HEAD + TESTS + "defaultTest: {asert: [{type: contains, value: x}]}\n", "did you mean assert"),
        (HEAD + TESTS + "defaultTset: {assert: [{type: contains, value: x}]}\n", "did you mean defaultTest"),
        (HEAD + TESTS + "assert: [{type: contains, value: x}]\n", "is not read here"),
        (HEAD + TESTS + "extensions: ['file://gone.py:hook']\n", "there is no file gone.py"),
        (HEAD + TESTS + "extensions: {$ref: 'gone.yaml'}\n", "there is no file gone.yaml"),
        (HEAD + TESTS + "nunjucksFilters: {f: gone.js}\n", "there is no file gone.js"),
        (HEAD + TESTS + "env: {$ref: 'gone.yaml'}\n", "there is no file gone.yaml"),
        (HEAD + "tests: {$ref: 'gone.yaml'}\n", "there is no file gone.yaml"),
        (HEAD + "scenarios: [{config: {$ref: 'gone.yaml'}, tests: [{vars: {q: a}}]}]\n", "there is no file"),
        ("prompts: ['{{q}}']\nproviders: [file://gone.yaml]\n" + TESTS, "there is no file gone.yaml"),
        ("prompts: ['{{q}}']\nproviders: {$ref: 'gone.yaml'}\n" + TESTS, "there is no file gone.yaml"),
        ("providers: [echo]\nprompts: {$ref: 'gone.yaml'}\n" + TESTS, "there is no file gone.yaml"),
    ],
)
def test_what_every_case_rests_on_and_cannot_be_read_is_an_error_of_each(
    make: Make, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "twice.yaml").write_text("threshold: 1\nthreshold: 0\n")
    suite = make(text)
    assert suite.cases and all(any(said in one.message + one.cure for one in own) for own in hung(suite))
    assert sum(said in one.message + one.cure for one in errors(suite)) == 1, "it is said once"


def test_a_large_table_has_the_errors_of_the_default_too(make: Make, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("q\n" + "".join(f"{n}\n" for n in range(2_000)))
    suite = make(HEAD + "tests: t.csv\ndefaultTest: file://gone.yaml\n")
    assert suite.cases[1_999].problems and len(errors(suite)) == 1


def test_vars_of_files_that_are_not_there_are_an_error(make: Make) -> None:
    ((told,),) = hung(make(HEAD + "tests: [{vars: file://gone*.yaml, assert: []}]\n"))
    assert told.message == "no file matches gone*.yaml" and told.key == "tests[0].vars"
    assert hung(make(HEAD + "tests: [{vars: 'file://gone*.yaml'}]\n", compat="reference")) == [[]]


def test_a_provider_of_several_that_cannot_be_read_leaves_the_others_their_cases(make: Make) -> None:
    suite = make("prompts: ['{{q}}']\nproviders: [echo, file://gone.yaml]\n" + TESTS)
    assert hung(suite) == [[], []] and len(errors(suite)) == 1


def test_an_unknown_tag_is_refused_as_in_promptfoo(make: Make) -> None:
    suite = make(HEAD + "tests: [{vars: {q: a}, assert: [{type: contains, value: !x a}]}]\n")
    assert not suite.cases and "unknown tag" in errors(suite)[0].message


@pytest.mark.real
def test_references_to_themselves_are_said_few_times(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    kept = SuiteReading.cannot_read

    def counted(self: SuiteReading, *given: object) -> None:
        told.append(str(given))
        kept(self, *given)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(SuiteReading, "cannot_read", counted)
    make(HEAD + "tests: [{vars: {$ref: '#'}}]\na: [{$ref: '#/a'}, {$ref: '#/a'}]\n")
    assert 0 < len(told) < 1_000
