"""A recorded run's cases are called as the suites' lists call them, however many there are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.store.test_store import attempt
from tui_eval.case_names import called, which_tests
from tui_eval.model import Case
from tui_eval.store import reader as reader_module
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

WORDS = ["Oslo", "Rome", "twice", "", "Row #2", "What is 2+2?"]


def cases_of(numbers: random.Random) -> list[Case]:
    """Tests with and without names, some of the same name, some of the same values, each with two prompts."""
    found: list[Case] = []
    for number in range(1, numbers.randrange(2, 40)):
        variables = {name: numbers.choice(WORDS) for name in ("q", "lang")[: numbers.randrange(3)]}
        given = numbers.choice(["", "", "", "twice", "Oslo"])
        named_by = numbers.choice(["", "lang"])
        for prompt in ("terse", "friendly"):
            name = given or f"Row #{number}"
            test = given or f"vars-{number:08x}"
            found.append(
                Case(
                    f"s.yaml::{test}::echo::{prompt}{f'#{number}' if given else ''}",
                    name,
                    "s.yaml",
                    "promptfoo",
                    description=name,
                    line=number,
                    vars=dict(variables),
                    named_by=named_by,
                    test_number=number,
                )
            )
    return found


@pytest.mark.parametrize("seed", range(40))
def test_names_of_a_run_are_those_of_its_suites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(reader_module, "_CASES_AT_ONCE", 7)
    cases = cases_of(random.Random(seed))
    writer = RunWriter(Store(tmp_path).create_folder("r"), RunInfo(id="r"))
    writer.plan([PlannedCase(case, "echo", None, 1, 1) for case in cases])
    assert writer.flush()
    wanted = {
        case.case_id: name
        for case, name in zip(cases, called(cases, which_tests(cases)), strict=True)
        if name != case.name
    }
    reader = RunReader(writer.folder)
    assert reader.called() == wanted
    assert [case.name for case, _ in reader.by_case(listed=True)] == [
        wanted.get(case.case_id, case.name) for case in cases
    ]
    reader.close()
    writer.close()


def test_the_last_of_many_thousand_cases_is_called_by_its_variable(tmp_path: Path) -> None:
    cases = [
        Case(f"s.yaml::vars-{number:08x}::echo::p", f"Row #{number}", "s.yaml", "promptfoo", vars={"q": f"is {number}?"})
        for number in range(1, 10_002)
    ]  # fmt: skip
    writer = RunWriter(Store(tmp_path).create_folder("r"), RunInfo(id="r"))
    writer.plan([PlannedCase(case, "echo", None, 1, 1) for case in cases])
    assert writer.flush()
    reader = RunReader(writer.folder)
    assert reader.listed([reader.cases()[-1]])[0].name == "is 10001?"
    reader.close()
    writer.close()


def test_what_is_read_of_one_moment_belongs_together_while_the_run_goes_on(tmp_path: Path) -> None:
    planned = [PlannedCase(Case(f"s.yaml::{name}", name, "s.yaml", "nao"), "a", None, 1, 1) for name in "abc"]
    writer = RunWriter(Store(tmp_path).create_folder("r"), RunInfo(id="r", state="running"))
    refs = [ref for (ref,) in writer.plan(planned)]
    writer.done(refs[0], attempt("s.yaml::a", 1))
    assert writer.flush()
    reader = RunReader(writer.folder)
    with reader.of_one_moment():
        assert [row.state == "done" for row in reader.attempts()] == [True, False, False]
        writer.done(refs[1], attempt("s.yaml::b", 1))
        assert writer.flush()  # the writer does not wait for who reads
        with reader.of_one_moment():
            assert [row.state == "done" for row in reader.attempts()] == [True, False, False]
        writer.done(refs[2], attempt("s.yaml::c", 1))
        writer.state("finished", 1.0)
        writer.close()
        assert [row.state == "done" for row in reader.attempts()] == [True, False, False]
        assert reader.info().state == "running"
    assert all(row.state == "done" for row in reader.attempts())
    assert reader.info().state == "finished"
    reader.close()
