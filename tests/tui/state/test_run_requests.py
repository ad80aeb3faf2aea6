"""Requests to the engine: one table for what the lists, the Case screen, stepping and watching ask for."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from tui_eval.engine.request import Recorded, RequestCell, RunRequest
from tui_eval.model import Case, Suite
from tui_eval.tui.state.app_state import AppState, Items
from tui_eval.tui.state.run_requests import (
    Project,
    Run,
    RunAsked,
    RunChoice,
    as_it_ran,
    chosen,
    from_recorded,
    in_columns,
    one_attempt,
    one_more,
)

ROOT = Path("/project")
PROJECT = Project(ROOT, trusted=True, agreed=("run agent.py",), config_file=ROOT / "other.yaml")
CASE, COLUMN = RunAsked("s.yaml::one", "s.yaml"), ("helper", "m")
OWN = Run("r1", ROOT / ".tui-eval/runs/r1")
NAMED = Run("r2", ROOT / ".tui-eval/runs/r2", {"agents": ["helper", "agent.py:f"], "models": ["m"]})
TYPED = Run("r2", NAMED.folder, NAMED.options, typed=True)
JUDGED = Run(
    "r4", ROOT / ".tui-eval/runs/r4", {"cells": [{"case_id": "s.yaml::one", "agent": "helper", "model": "m"}]}
)
GUEST = Run("r3", Path("/elsewhere/r3"), {"agents": ["helper"]})
BOTH = RunChoice(agents="a, b", models="x", attempts="3", threshold="80%", concurrency="2", max_cost="$1")
NOTHING = RunChoice()
ALL = {"trust": True, "agreed": ["run agent.py"], "config_file": "/project/other.yaml", "root": "/project", "command": "tui-eval",
       "paths": ["/project/s.yaml"], "case_ids": ["s.yaml::one"]}  # fmt: skip
OWN_CELL, NAMED_CELL = (
    RequestCell("s.yaml::one", "helper", "m", True),
    RequestCell("s.yaml::one", "helper", "m"),
)


def test_a_file_whose_name_is_no_text_is_sent_by_its_folder() -> None:
    cases = [
        RunAsked("a::b", "x/caf\udce9.yaml"),
        RunAsked("a::c", "y/stored \ufffd.yaml"),
        RunAsked("a::d", "x/é.yaml"),
    ]
    paths = chosen(PROJECT, cases, NOTHING).paths
    assert paths == ["/project/x", "/project/x/é.yaml", "/project/y"] and "".join(paths).encode()


def test_the_whole_project_is_asked_for_by_its_folder() -> None:
    request = chosen(PROJECT, [CASE], NOTHING, whole=True)
    assert (request.paths, request.case_ids) == ([str(ROOT)], [CASE.case_id])


def test_all_cases_of_the_project_are_it_where_all_of_it_was_read() -> None:
    suites = [
        Suite(name, "promptfoo", cases=[Case(f"{name}::c", "c", name, "promptfoo")])
        for name in ("a.yaml", "b.yaml")
    ]
    state = AppState(ROOT, suites=suites, loading=False, of_root=True)
    state.rows = Items(suites, {}).rows
    ids = ["a.yaml::c", "b.yaml::c"]
    assert state.is_whole(ids) and not state.is_whole(ids[:1])
    for other in (
        {"of_root": False},
        {"loading": True},
        {"suites": [*suites, Suite("broken.yaml", "promptfoo")]},
    ):
        assert not replace(state, **other).is_whole(ids)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # the list: what was chosen, else each case in its column of the run in front
        (chosen(PROJECT, [CASE, CASE], BOTH),
         {"agents": ["a", "b"], "models": ["x"], "attempts": 3, "threshold": 0.8, "concurrency": 2, "max_cost": 1.0}),
        (in_columns(chosen(PROJECT, [CASE], BOTH), [NAMED_CELL], NAMED),
         {"agents": ["a", "b"], "models": ["x"], "attempts": 3, "threshold": 0.8, "concurrency": 2, "max_cost": 1.0}),
        (in_columns(chosen(PROJECT, [CASE], NOTHING), [], None), {}),
        (in_columns(chosen(PROJECT, [CASE], NOTHING), [OWN_CELL], OWN), {"cells": [OWN_CELL]}),
        (in_columns(chosen(PROJECT, [CASE], NOTHING), [NAMED_CELL], NAMED), {"cells": [NAMED_CELL]}),
        (in_columns(chosen(PROJECT, [CASE], NOTHING), [NAMED_CELL], TYPED),
         {"cells": [NAMED_CELL], "agents": ["helper", "agent.py:f"]}),
        # a step, a save: once, of whom it is shown with
        (one_attempt(PROJECT, CASE, OWN_CELL), {"cells": [OWN_CELL], "attempts": 1, "anew": True}),
        (one_attempt(PROJECT, CASE, None), {"attempts": 1, "anew": True}),
        # one more beside those there are
        (one_more(PROJECT, [CASE], NOTHING, OWN, 4, [OWN_CELL]),
         {"attempts": 1, "anew": True, "linked_to": "r1", "first_attempt": 4, "cells": [OWN_CELL]}),
        (one_more(PROJECT, [CASE], BOTH, None, 1, []), {"attempts": 1, "anew": True}),
        # a recorded attempt, from a list or from the Case screen; of a run from elsewhere, too
        (from_recorded(PROJECT, CASE, COLUMN, OWN, 7, 2, None),
         {"attempts": 1, "anew": True, "linked_to": "r1", "first_attempt": 2, "cells": [OWN_CELL],
          "continue_from": Recorded(str(OWN.folder), 7)}),
        # a judgement of a column that was named is judged again in that column, not in the suite's own
        (from_recorded(PROJECT, CASE, COLUMN, JUDGED, 7, 1, None),
         {"attempts": 1, "anew": True, "linked_to": "r4", "cells": [NAMED_CELL],
          "continue_from": Recorded(str(JUDGED.folder), 7)}),
        (from_recorded(PROJECT, CASE, COLUMN, TYPED, 7, 2, 3),
         {"attempts": 1, "anew": True, "linked_to": "r2", "first_attempt": 2, "cells": [NAMED_CELL],
          "agents": ["helper", "agent.py:f"], "continue_from": Recorded(str(NAMED.folder), 7, 3)}),
        (from_recorded(PROJECT, CASE, COLUMN, GUEST, 7, 1, None),
         {"attempts": 1, "anew": True, "linked_to": "r3", "cells": [NAMED_CELL],
          "continue_from": Recorded("/elsewhere/r3", 7)}),
    ],
)  # fmt: skip
def test_what_is_asked_for(made: RunRequest, expected: dict[str, object]) -> None:
    assert made == RunRequest(**{**ALL, **expected})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        ("attempts", "x", "attempts: a whole number"), ("concurrency", "0", "at once: at least 1"),
        ("answers", "kept", "answers: 'kept': cache"), ("max_cost", "-1", "cost limit: more than 0"),
        ("max_cost", "inf", "cost limit: a number, not 'inf'"), ("threshold", "2", "must pass: a share"),
    ],
)  # fmt: skip
def test_a_number_that_is_none_names_its_field(field: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        chosen(PROJECT, [CASE], RunChoice(**{field: text}))


@pytest.mark.parametrize(("typed", "cache"), [("", None), (" Cache ", True), ("ask", False)])
def test_kept_answers_are_taken_where_the_dialog_says_so(typed: str, cache: bool | None) -> None:
    assert chosen(PROJECT, [CASE], RunChoice(answers=typed)).cache is cache


@pytest.mark.parametrize(
    ("typed", "anew", "ran_with", "cache"),
    [
        ("", True, True, True), ("", True, False, False), ("", True, None, None), ("", True, "yes", None),
        ("ask", True, True, False), ("cache", True, False, True),
        ("", False, True, None),  # no repetition: nothing is taken from the cache that nobody asked for
    ],
)  # fmt: skip
def test_what_is_asked_anew_is_kept_as_the_answers_of_its_run_were(
    typed: str, anew: bool, ran_with: object, cache: bool | None
) -> None:
    request = chosen(PROJECT, [CASE], RunChoice(answers=typed))
    request.anew = anew
    run = Run(OWN.run_id, OWN.folder, {} if ran_with is None else {"cache": ran_with})
    assert as_it_ran(request, run, []).cache is cache
    assert as_it_ran(chosen(PROJECT, [CASE], NOTHING), None, []).cache is None
