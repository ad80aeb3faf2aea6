"""`replay` answers from an earlier run: never from the one that is being written, never from one without answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tui_eval.config.project import load
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.wants import wants
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust, fingerprint
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

CONFIG = """
agents:
  helper: {type: scripted, script: agent.script.yaml}
  again: {type: replay}
"""


async def run(root: Path, **options) -> tuple[str, list[Attempt]]:
    active = prepare(RunRequest(paths=[str(root)], **options))
    assert active.writer is not None
    await active.execute()
    reader = RunReader(active.writer.folder)
    try:
        found = [reader.attempt(row.id) for row in reader.attempts()]
    finally:
        reader.close()
    return active.run_id, [one for one in found if one is not None]


@pytest.mark.real
async def test_the_last_run_is_not_the_one_that_is_being_written(project) -> None:
    root = project(config=CONFIG)
    _, first = await run(root, attempts=2)
    _, again = await run(root, agents=["again"], attempts=2, concurrency=1)
    assert [one.error for one in again] == [None] * 8
    assert [one.response_text for one in again] == [one.response_text for one in first]
    # A run of another kind, in which the case was not answered, is passed over: of another case, of errors.
    await run(root, select=["greets"])
    (root / "agent.script.yaml").write_text("default: {steps: [{error: boom}]}\n")
    _, broken = await run(root)
    assert all(one.outcome == "error" for one in broken)
    _, again = await run(root, agents=["again"])
    assert [one.response_text for one in again] == [one.response_text for one in first[::2]]


async def test_without_an_earlier_run_it_says_so_for_every_case(project) -> None:
    root = project(config=CONFIG)
    run_id, alone = await run(root, agents=["again"], concurrency=1)
    assert {one.message for one in alone} == {
        f"replay: no earlier run has an answer to {one.case_id}" for one in alone
    }
    assert len(alone) == 4 and run_id


@pytest.mark.real
@pytest.mark.parametrize("named", ["absolute", "relative", "link", "link to a run", "file"])
async def test_a_run_outside_that_a_file_names_needs_trust(project, tmp_path_factory, named: str) -> None:
    root = project(config=CONFIG)
    other = tmp_path_factory.mktemp("other")
    run_id, first = await run(root)
    kept = other / ".tui-eval" / "runs" / run_id
    os.makedirs(kept.parent)
    os.rename(root / ".tui-eval" / "runs" / run_id, kept)
    (root / "link").symlink_to(other)
    (root / "run").symlink_to(kept)
    given = {
        "absolute": str(kept),
        "relative": os.path.relpath(kept, root),
        "link": f"link/.tui-eval/runs/{run_id}",
        "link to a run": "run",
        "file": str(kept / "run.db"),
    }[named]
    (root / "tui_eval.yaml").write_text(CONFIG.replace("type: replay", f"type: replay, run: {given}"))
    _, again = await run(root, agents=["again"])
    what = f"read {kept}"
    assert {one.outcome for one in again} == {"error"}
    assert all(f"needs trust: {what}" in str(one.error) for one in again)
    suite = root / "suite.yaml"
    suite.write_text(suite.read_text().replace("agent: helper", "agent: again"))
    config, trust = load([root]), Trust()
    assert what in wants(reading.load_all([root], config, trust), config, trust)
    for options in ({"trust": True}, {"agreed": [fingerprint(what)]}):
        _, again = await run(root, agents=["again"], **options)
        assert [one.response_text for one in again] == [one.response_text for one in first]


@pytest.mark.real
async def test_a_run_of_the_project_needs_none_by_its_id_or_its_path(project) -> None:
    root = project(config=CONFIG)
    run_id, first = await run(root)
    for given in (run_id, run_id[:-1], f".tui-eval/runs/{run_id}", root / ".tui-eval" / "runs" / run_id):
        (root / "tui_eval.yaml").write_text(CONFIG.replace("type: replay", f"type: replay, run: {given}"))
        _, again = await run(root, agents=["again"])
        assert [one.response_text for one in again] == [one.response_text for one in first]
        config, trust = load([root]), Trust()
        assert not [
            one for one in wants(reading.load_all([root], config, trust), config, trust) if "runs" in one
        ]


async def test_an_id_is_never_a_folder_of_that_name_where_one_stands(
    project, tmp_path_factory, monkeypatch
) -> None:
    root = project(config=CONFIG)
    run_id, _ = await run(root)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    os.rename(root / ".tui-eval" / "runs" / run_id, elsewhere / run_id)
    monkeypatch.chdir(elsewhere)
    (root / "tui_eval.yaml").write_text(CONFIG.replace("type: replay", f"type: replay, run: {run_id}"))
    _, again = await run(root, agents=["again"])
    assert {one.outcome for one in again} == {"error"}
    assert all("no run" in str(one.error) for one in again)
