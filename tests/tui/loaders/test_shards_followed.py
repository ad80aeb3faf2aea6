"""A folder of shards in the app: one run that grows while other machines write it."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import project
from tests.tui.screens.test_runs_screen import sees
from tui_eval.model import Attempt, Case, Verdict
from tui_eval.store import gathering, merged_run, merging
from tui_eval.store.gathering import Gathering
from tui_eval.store.index import Index
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.run_folders import GUESTS, Store, runs_under
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.controllers import first_steps
from tui_eval.tui.loaders.case_loader import load_past
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.run_screen import RunScreen


@pytest.fixture(autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(gathering, "SECONDS", 0.05)
    GUESTS.clear()
    yield
    GUESTS.clear()


def shard(folder: Path, number: int) -> tuple[RunWriter, int]:
    """A shard of two that has begun, with one case."""
    place = folder / f"shard-{number}"
    place.mkdir(parents=True)
    said = {"number": number, "of": 2, "cases": 2, "content": "x", "sizes": [1, 1], "places": [number - 1]}
    info = RunInfo(f"2026010{number}-000000-aaaa", started_at=1.0, agents=["bot"], provenance={"shard": said})
    writer = RunWriter(place, info)
    case = Case(f"s.yaml::case {number}", f"case {number}", "s.yaml", "start_to_agent")
    ((ref,),) = writer.plan([PlannedCase(case, "bot", None, 1, 1)])
    writer.started(ref, 1.0)
    writer.flush()
    return writer, ref


def finish(writer: RunWriter, ref: int, number: int) -> None:
    attempt = Attempt(f"s.yaml::case {number}", 1, "passed", "bot", started_at=1.0 + number)
    writer.done(ref, attempt)
    writer.state("finished", 2.0)
    writer.close()


@pytest.mark.real
async def test_shards_are_one_run_that_grows(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    first, first_ref = shard(shards, 1)
    followed = Gathering(shards, waits=True)
    followed.start()
    try:
        async with running_app(project(tmp_path), (120, 40), open_run=followed.place) as (app, pilot):
            await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
            await sees(app, pilot, "case 1", "running")
            finish(first, first_ref, 1)
            await sees(app, pilot, " waiting ", "passed", "shard 2 missing")
            assert "go on" not in screen_text(app)  # nobody has paused it
            second, second_ref = shard(shards, 2)
            await sees(app, pilot, "case 1", "case 2")
            finish(second, second_ref, 2)
            await until(lambda: app.state.run is not None and app.state.run.info.state == "finished", pilot)
            await sees(app, pilot, "2 passed")
    finally:
        followed.close()


@pytest.mark.real
async def test_who_looks_at_shards_is_not_asked_what_the_project_may_do(tmp_path: Path) -> None:
    shards, root = tmp_path / "shards", project(tmp_path)
    (root / "tui_eval.yaml").write_text("agents:\n  offline: {type: python, function: 'agent.py:answer'}\n")
    writer, ref = shard(shards, 1)
    finish(writer, ref, 1)
    followed = Gathering(shards, waits=True)
    followed.start()
    try:
        async with running_app(root, (120, 40), open_run=followed.place) as (app, pilot):
            await until(lambda: app.state.run is not None and not app.state.loading, pilot)
            await sees(app, pilot, "case 1", "shard 2 missing")
            assert isinstance(app.screen, RunScreen), "and no question before it"
    finally:
        followed.close()


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Job's folder on a volume, opened before its first pod has written; it is looked at often."""
    monkeypatch.setattr(first_steps, "SECONDS", 0.05)
    folder = tmp_path / "job"
    folder.mkdir()
    return folder


@pytest.mark.real
async def test_an_empty_folder_becomes_the_view_of_shards_that_come_into_it(job: Path) -> None:
    async with running_app(job, (120, 40)) as (app, pilot):
        await sees(app, pilot, "No suites here", "runs that come to lie in it")
        (job / "pod-1" / ".tui-eval" / "runs").mkdir(parents=True)
        first, first_ref = shard(job / "pod-1" / ".tui-eval" / "runs", 1)
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        await sees(app, pilot, "case 1", "running")
        second, second_ref = shard(job / "pod-2" / ".tui-eval" / "runs", 2)
        finish(first, first_ref, 1)
        finish(second, second_ref, 2)
        await until(lambda: app.state.run is not None and app.state.run.info.state == "finished", pilot)
        await sees(app, pilot, "2 passed")


@pytest.mark.real
async def test_shards_come_behind_what_the_person_looks_at(job: Path) -> None:
    async with running_app(job, (120, 40)) as (app, pilot):
        await pilot.press("enter")
        await sees(app, pilot, "Begin with what?")
        first, _ = shard(job / "pod-1", 1)
        await until(lambda: app.state.run is not None, pilot)
        assert "Begin with what?" in screen_text(app)
        await pilot.press("escape", "L")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await sees(app, pilot, "case 1", "running")
        first.close()


@pytest.mark.parametrize("where", ["1/runs", "tui-eval/projects/x/runs"])
async def test_runs_far_down_in_a_folder_without_suites_are_opened_as_one(tmp_path: Path, where: str) -> None:
    """What an upload of `.tui-eval` looks like, and a folder of runs of projects that could not be written."""
    job = tmp_path / "job"
    given: list[tuple[RunWriter, int]] = []
    for number in (1, 2):
        given.append(shard(job / where.replace("1", str(number)), number))
    (job / "node_modules" / "deep").mkdir(parents=True)
    async with running_app(job, (120, 40)) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.state.run is not None, pilot)
        await sees(app, pilot, "case 1", "case 2")
    for number, (writer, ref) in enumerate(given, 1):
        finish(writer, ref, number)


@pytest.mark.real
async def test_suites_that_come_into_an_empty_folder_are_read_and_its_own_runs_are_no_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_steps, "SECONDS", 0.05)
    job = tmp_path / "job"
    own, _ = shard(job / ".tui-eval" / "runs", 1)
    own.close()
    async with running_app(job, (120, 40)) as (app, pilot):
        await sees(app, pilot, "No suites here")
        project(job)
        await sees(app, pilot, "refund is approved")
        assert app.state.run is None and not isinstance(app.screen, RunScreen)


async def test_checkouts_with_shards_of_their_own_are_suites_and_it_is_said_how_to_see_the_shards(
    tmp_path: Path,
) -> None:
    for number in (1, 2):
        (tmp_path / "all" / f"machine-{number}").mkdir(parents=True)
        project(tmp_path / "all" / f"machine-{number}")
        writer, ref = shard(tmp_path / "all" / f"machine-{number}" / ".tui-eval" / "runs", number)
        finish(writer, ref, number)
    async with running_app(tmp_path / "all", (140, 40)) as (app, pilot):
        await sees(app, pilot, "machine-1")
        await until(
            lambda: any("2 folders in here ran shards" in text for *_, text in app.notices.lines), pilot
        )
        (told,) = [text for *_, text in app.notices.lines if "ran shards" in text]
        assert told.endswith(f"tui-eval show {os.path.relpath(tmp_path / 'all')} shows them as one run")


@pytest.mark.real
async def test_to_shards_that_are_looked_at_nothing_is_added(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    first, ref = shard(shards, 1)
    first.done(ref, Attempt("s.yaml::case 1", 1, "failed", "bot", response_text="no"))
    first.state("finished", 2.0)
    first.close()
    followed = Gathering(shards, waits=True)
    followed.start()
    try:
        async with running_app(project(tmp_path), (120, 40), open_run=followed.place) as (app, pilot):
            await sees(app, pilot, "case 1", " waiting ", "1/2")  # the case that is to come counts
            for key, said in (("R", "looked at: run it again"), ("P", "paused where they run")):
                await pilot.press(key)
                await sees(app, pilot, said)
            await pilot.press("m")
            await sees(app, pilot, "a note goes with the look")
            await pilot.press("escape", "enter")
            await until(lambda: isinstance(app.screen, CaseScreen), pilot)
            await pilot.press("m")
            await sees(app, pilot, "a note goes with the look")
            assert not (tmp_path / ".tui-eval" / "notes.db").exists()
            await pilot.press("escape", "escape", "H")
            await sees(app, pilot, "● waiting", "waits for shards to come")
            assert not (tmp_path / ".tui-eval" / "runs").exists()
    finally:
        followed.close()


def test_an_attempt_of_shards_that_are_looked_at_and_were_merged_is_one_in_the_history(
    tmp_path: Path,
) -> None:
    root, shards = project(tmp_path), tmp_path / "shards"
    for number in (1, 2):
        writer, ref = shard(shards, number)
        finish(writer, ref, number)
    parts = [merging.MergePart.of(folder.name, folder) for folder in runs_under(shards)]
    whole, store = merging.whole_of(parts), Store(root)
    info = merging.facts(whole, store.next_run()[0], "1")
    merged_run.write(folder := store.create_folder(info.id), info, whole)
    Index(root).record(folder)
    for part in parts:
        part.reader.close()
    for _ in range(2):  # two looks
        store.welcome(gathering.gathered(shards))
    past = load_past(root, "s.yaml::case 1")
    assert [one.run_id for one in past.attempts] == [info.id]
    (tmp_path / "elsewhere").mkdir()
    assert len(load_past(tmp_path / "elsewhere", "s.yaml::case 1").attempts) == 1


def test_what_a_person_says_of_an_answer_that_stands_in_two_runs_counts_once(tmp_path: Path) -> None:
    root = project(tmp_path)
    store = Store(root)
    store.make()
    writer, ref = shard(store.runs_folder, 1)
    judged = Verdict("llm-rubric", True, judge={"model": "judge"})
    writer.done(
        ref,
        Attempt("s.yaml::case 1", 1, "passed", "bot", verdicts=[judged], started_at=5.0, response_text="hi"),
    )
    writer.state("finished", 2.0)
    writer.close()
    first = (store.runs_folder / "shard-1").rename(store.runs_folder / writer.info.id)
    Notes(root).put(HumanNote(first.name, ref, "s.yaml::case 1", "right"))
    part = merging.MergePart.of("one", first)
    with closing(part.reader):
        whole = merging.whole_of([part])
        info = merging.facts(whole, store.next_run()[0], "1")
        merged_run.write(store.create_folder(info.id), info, whole)
    assert len(Notes(root).of_case("s.yaml::case 1")) == 2
    assert load_past(root, "s.yaml::case 1").agreement == {"judge": (1, 1)}
