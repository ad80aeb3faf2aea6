"""Where attempts run: what every place does (`place_contract`), and what a run makes of a place that is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support import place_contract
from tests.support.place_contract import contract
from tui_eval.config.project import Config, ConfigError, load
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.places.attempt_place import Made, PlaceLost
from tui_eval.engine.places.chosen_place import Here, check_place, place_name
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import Recorded, RunRequest
from tui_eval.engine.schedule import Ticket
from tui_eval.engine.wants import wants
from tui_eval.formats.reading import load_all as read_suites
from tui_eval.guard.trust import Trust, fingerprint
from tui_eval.model import Attempt
from tui_eval.store.printed_commands import resume_command, run_options
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store


@pytest.mark.parametrize("promise", place_contract.ATTEMPTS, ids=lambda promise: promise.__name__)
async def test_the_engines_own_loop_is_a_place(promise, tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        await given.place.open(lambda: None)
        try:
            await promise(given)
        finally:
            await given.place.close()
            await given.run.environment.close()


@pytest.mark.parametrize("promise", place_contract.RUNS, ids=lambda promise: promise.__name__)
async def test_runs_on_the_engines_own_loop(promise, tmp_path: Path) -> None:
    await promise(place_contract.There(tmp_path))


class Losing(Here):
    """Executes the first attempt, and is lost with the second."""

    words = "far away"
    given = 0

    async def attempt(self, ticket: Ticket, ends: float | None, left: dict[int, Attempt]) -> Made:
        self.given += 1
        if self.given > 1:
            raise PlaceLost("far away does not answer")
        return await super().attempt(ticket, ends, left)


class Nowhere(Here):
    """Cannot be opened."""

    async def open(self, changed: Callable[[], None]) -> None:
        raise PlaceLost("nobody is there")


async def test_a_run_whose_place_is_lost_keeps_what_has_ended_and_can_be_gone_on_with(tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        run = given.run
        run.runner.limits.concurrency = 1
        run.runner.place = Losing(run.environment, run.writer)
        assert await run.execute() == "interrupted"
        assert run.writer is not None
        reader = RunReader(run.writer.folder)
        assert [(row.state, row.outcome) for row in reader.attempts()] == [
            ("done", "passed"), ("waiting", None), ("waiting", None),
        ]  # fmt: skip
        info = reader.info()
        reader.close()
        assert (info.place, info.note) == ("far away", "far away does not answer")


async def test_a_place_that_cannot_be_opened_executes_nothing(tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        run = given.run
        run.runner.place = Nowhere(run.environment, run.writer)
        assert await run.execute() == "interrupted"
        assert run.runner.stopped_because == "nobody is there"


class Slow(Here):
    """Takes for ever to open."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.begun = asyncio.Event()

    async def open(self, changed: Callable[[], None]) -> None:
        self.begun.set()
        await asyncio.Event().wait()


async def test_a_run_is_cancelled_while_its_place_is_opened(tmp_path: Path) -> None:
    with contract(tmp_path) as given:
        run = given.run
        run.runner.place = place = Slow(run.environment, run.writer)
        task = asyncio.ensure_future(run.execute())
        await asyncio.wait_for(place.begun.wait(), 60)
        assert await run.runner.cancel() == 3
        assert await asyncio.wait_for(task, 10) == "cancelled"


CLUSTER = "ray://127.0.0.1:1"


async def test_a_cluster_that_a_file_names_needs_trust(tmp_path: Path) -> None:
    """Who holds it gets the environment, and answers with what is unpickled."""
    for name, text in place_contract.FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "tui_eval.yaml").write_text(f"{place_contract.CONFIG}run: {{on: '{CLUSTER}'}}\n")
    with pytest.raises(
        ConfigError, match=rf"^needs trust: .*{CLUSTER}.*--on {CLUSTER}; to run here: --on here"
    ):
        prepare(RunRequest(paths=[str(tmp_path)]))
    assert list(Store(tmp_path).run_folders()) == []
    config = load([tmp_path])
    found = wants(read_suites([tmp_path], config, Trust()), config, Trust())
    (wanted,) = [what for what in found if CLUSTER in what]
    for request, trust in (
        (RunRequest(on=CLUSTER), Trust()),
        (RunRequest(), Trust(agreed=frozenset({wanted}))),
        (RunRequest(), Trust(agreed=frozenset({fingerprint(wanted)}))),
        (RunRequest(on="here"), Trust()),
    ):
        try:
            check_place(request, config, trust)
        except ConfigError as error:
            assert "needs the extra ray" in str(error)


async def test_a_cluster_in_the_record_of_a_run_is_not_typed(tmp_path: Path) -> None:
    """A run's folder can come from anywhere."""
    with contract(tmp_path) as given:
        run = given.run
        assert run.writer is not None
        run.writer.info.options |= {"on": CLUSTER, "trust": False}
        run.writer.update_info()
        folder = run.writer.folder
        run.writer.state("interrupted", 1.0)
        run.writer.flush()
    with pytest.raises(ConfigError, match=f"needs trust: .*--on {CLUSTER}"):
        resume(folder)
    with closing(RunReader(folder)) as reader:
        told = resume_command(folder.name, reader.info().options)
    assert told == f"tui-eval resume {folder.name} --on {CLUSTER}"


async def test_a_run_that_goes_on_elsewhere_is_asked_for_again_there(project) -> None:
    """Its `again:` lines said where it began: a cluster that is gone, perhaps."""
    root = project()
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root / "suite.yaml")]))
    assert active.writer is not None
    folder = active.writer.folder
    active.writer.info.options |= {"on": CLUSTER}
    active.writer.update_info()
    active.writer.close()
    await active.environment.close()
    again = await asyncio.to_thread(resume, folder, overrides=RunRequest(on="here"))
    assert await again.execute() == "finished"
    with closing(RunReader(folder)) as reader:
        assert run_options(reader.info().options) == ["--on", "here"]


async def test_a_part_of_a_run_goes_where_that_went_and_its_cluster_is_not_typed(tmp_path: Path) -> None:
    """The app asks for one more attempt of a case of a run that it has not read."""
    with contract(tmp_path) as given:
        run = given.run
        assert run.writer is not None
        run.writer.info.options |= {"on": CLUSTER}
        run.writer.update_info()
        run.writer.state("finished", 1.0)
        run.writer.flush()
    (case, *_) = [job.case.case_id for job in run.jobs]
    request = RunRequest(paths=[str(tmp_path)], case_ids=[case], linked_to=run.run_id)
    with pytest.raises(ConfigError, match=f"needs trust: .*--on {CLUSTER}"):
        prepare(request)
    with pytest.raises(ConfigError, match=f"needs trust: .*--on {CLUSTER}"):
        prepare(RunRequest(paths=[str(tmp_path)], case_ids=[case], on=CLUSTER, on_recorded=True))
    here = prepare(
        RunRequest(paths=[str(tmp_path)], case_ids=[case], linked_to=run.run_id, on="here", trust=True)
    )
    assert here.runner.place.words == ""
    assert here.writer is not None
    here.writer.close()


def test_what_rests_on_recorded_answers_is_judged_here() -> None:
    """Also where the run goes to a cluster: nothing is asked."""
    request = RunRequest(on=CLUSTER, continue_from=Recorded("2026", 1))
    assert place_name(request, Config(root=Path())) == "here"
