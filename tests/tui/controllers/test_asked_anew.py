"""What a person runs again in the app is asked anew, and takes the place of the answer that was kept; what is run for
the first time takes that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.servers import OpenAIServer, Planned
from tests.servers.base import Seen
from tests.support.app_host import running_app, until
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, is_alive

SUITE = """\
agent: bot
test_cases:
  - {name: one, input: alpha, expected: {should_contain: [good]}}
  - {name: two, input: beta, expected: {should_contain: [good]}}
"""


class Model(OpenAIServer):
    """Says what it is to say."""

    says = "good"

    def default(self, seen: Seen) -> Planned:
        return Planned(text=self.says)

    @property
    def count(self) -> int:
        return len(self.requests)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    (tmp_path / "suite.yaml").write_text(SUITE)
    with Model() as running:
        yield running


def configure(root: Path, model: Model, more: str = "") -> None:
    (root / "tui_eval.yaml").write_text(
        f"agents: {{bot: {{type: openai, base_url: '{model.base}', model: m{more}}}}}\n"
    )


async def run(root: Path, **options: Any) -> list[str]:
    """As from the command line; the outcomes."""
    active = prepare(RunRequest(paths=[str(root)], root=str(root), **options))
    await active.execute()
    assert active.writer is not None
    return outcomes(active.writer.folder)


def outcomes(folder: Path) -> list[str]:
    with closing(RunReader(folder)) as reader:
        return [f"{row.outcome}{' cached' if row.cached else ''}" for row in reader.attempts()]


@asynccontextmanager
async def app_on(root: Path) -> AsyncIterator[tuple[Any, Pilot[Any]]]:
    client = EngineClient(root)
    try:
        async with running_app(root, (100, 30), engine=client, trust=True) as (app, pilot):
            yield app, pilot
    finally:
        with suppress(EngineError):
            await client.shutdown()
        await client.close()


async def pressed(root: Path, app: Any, pilot: Pilot[Any], *keys: str) -> list[str]:
    """The outcomes of the run that these keys begin, in Suites or where the app is."""
    known = set(Store(root).run_folders())
    await pilot.press(*keys)

    def made() -> list[Path]:
        return [folder for folder in Store(root).run_folders() if folder not in known]

    await until(made, pilot)
    (folder,) = made()
    await until(lambda: not is_alive(folder), pilot)
    await until(lambda: not app.runs.running, pilot)
    return outcomes(folder)


@pytest.mark.real
async def test_r_with_no_run_in_front_asks_anew_and_replaces_what_was_kept(
    tmp_path: Path, model: Model
) -> None:
    configure(tmp_path, model, ", cache: true")
    assert await run(tmp_path) == ["passed", "passed"]
    model.says = "bad"
    async with app_on(tmp_path) as (app, pilot):
        assert app.state.run is None
        assert await pressed(tmp_path, app, pilot, "r") == ["failed", "failed"]  # the line of both
        assert model.count == 4
    assert await run(tmp_path) == ["failed cached", "failed cached"]
    assert model.count == 4


@pytest.mark.real
async def test_marked_cases_that_are_all_of_the_run_in_front_are_asked_anew(
    tmp_path: Path, model: Model
) -> None:
    configure(tmp_path, model, ", cache: true")
    async with app_on(tmp_path) as (app, pilot):
        assert await pressed(tmp_path, app, pilot, "a") == ["passed", "passed"]
        model.says = "bad"
        for case in app.places.list_in_front.shown_entries():
            app.places.list_in_front.go_to(app.places.list_in_front.pointer_of(case))
            await pilot.press("space")
        assert await pressed(tmp_path, app, pilot, "r") == ["failed", "failed"]
        assert model.count == 4
        # What is run as a whole is no repetition, and takes what was kept.
        assert await pressed(tmp_path, app, pilot, "a") == ["failed cached", "failed cached"]
        assert model.count == 4


@pytest.mark.real
@pytest.mark.parametrize("place", ["suites", "run"])
async def test_what_did_not_pass_is_not_green_from_the_cache(
    tmp_path: Path, model: Model, place: str
) -> None:
    """The agent was good, which is kept; then it was bad, which `--no-cache` saw."""
    configure(tmp_path, model, ", cache: true")
    assert await run(tmp_path) == ["passed", "passed"]
    model.says = "bad"
    assert await run(tmp_path, cache=False) == ["failed", "failed"]
    async with app_on(tmp_path) as (app, pilot):
        if place == "run":
            await pilot.press("L")
            await until(lambda: app.state.run is not None and app.places.list_in_front.kind == "run", pilot)
        assert await pressed(tmp_path, app, pilot, "R") == ["failed", "failed"]
        assert model.count == 6
    assert await run(tmp_path) == ["failed cached", "failed cached"]


@pytest.mark.real
@pytest.mark.parametrize("place", ["suites", "run"])
@pytest.mark.parametrize("key", ["r", "plus"])
async def test_what_run_cache_kept_is_replaced_by_what_is_run_again(
    tmp_path: Path, model: Model, place: str, key: str
) -> None:
    """`--cache` was typed for that run, and stands in no agent's entry."""
    configure(tmp_path, model)
    assert await run(tmp_path, cache=True, attempts=2) == ["passed"] * 4
    model.says = "bad"
    async with app_on(tmp_path) as (app, pilot):
        if place == "run":
            await pilot.press("L")
            await until(lambda: app.state.run is not None and app.places.list_in_front.kind == "run", pilot)
        rows = app.places.list_in_front
        rows.go_to(rows.pointer_of(rows.shown_entries()[0]))
        assert set(await pressed(tmp_path, app, pilot, key)) == {"failed"}
    again = await run(tmp_path, cache=True, attempts=3)
    number = 2 if key == "plus" else 0  # an attempt more is kept by its number
    assert [again[number], again[3 + number]] == ["failed cached"] * 2
    assert again.count("passed cached") == (4 if key == "plus" else 2)
