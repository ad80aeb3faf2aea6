"""Having the judge name the failure modes of a run that has ended; what it will cost is said before."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

import msgspec

from tui_eval.agents.models.prices import cost
from tui_eval.config.config_schema import FREE
from tui_eval.config.project import AgentSpec, load, model_of, read_withheld
from tui_eval.engine.after.assessing import NAMED, SYSTEM, assess_run, question
from tui_eval.engine.after.resuming import root_of
from tui_eval.engine.request import RunRequest
from tui_eval.engine.run_checks import check_judge
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.selection import NothingToRun
from tui_eval.guard.trust_store import trust_for
from tui_eval.model import Usage
from tui_eval.store.failure_modes import Assessment
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import StoreError, is_alive
from tui_eval.store.writer import keep_assessment

_ANSWER_TOKENS = 40
_LETTERS = 4  # of a token, about


class NoJudge(NothingToRun):
    """Nobody is configured who could name anything; the groups are there all the same."""


class NothingFailed(NothingToRun):
    """All passed: there is nothing to group."""


class NamingPlan(msgspec.Struct):
    """What naming comes to: the judge, how many questions, about how many USD (None: unknown)."""

    judge: str
    questions: int
    cost: float | None
    free: bool


async def plan_naming(
    folder: Path, judge: str | None = None, trust: bool = False, agreed: Sequence[str] = ()
) -> NamingPlan:
    """What would be asked, asking nothing. `agreed`: what the person agreed to for this time.

    Raises:
        NothingToRun: no judge is configured (`NoJudge`), nothing failed (`NothingFailed`), or the run still goes on.
        ConfigError, StoreError: one clear line each.
    """
    async with _opened(folder, judge, trust, agreed) as (reader, environment, spec, _):

        def letters() -> list[int]:
            modes = reader.assessment().modes[:NAMED]
            return [len(SYSTEM) + len(question(mode, reader)) for mode in modes]

        sizes = await asyncio.to_thread(letters)
        if not sizes:
            raise NothingFailed(f"run {folder.name}: nothing failed, so there is nothing to name")
        usage = Usage(sum(sizes) // _LETTERS, len(sizes) * _ANSWER_TOKENS)
        free = spec.type in FREE
        model = model_of(spec, environment.trust)
        price = 0.0 if free else cost(model, usage, environment.config.prices)
        return NamingPlan(", ".join(filter(None, [spec.name, model])), len(sizes), price, free)


async def name_failures(
    folder: Path,
    judge: str | None = None,
    trust: bool = False,
    on_answer: Callable[[], None] | None = None,
    agreed: Sequence[str] = (),
) -> Assessment:
    """Ask the judge for a sentence for each group of failures and keep them with the run. Cancelled, it
    keeps nothing.

    Raises:
        NothingToRun, ConfigError, StoreError: as `plan_naming`.
    """
    async with _opened(folder, judge, trust, agreed) as (reader, environment, _, name):
        ask, _ = environment.judge(name)
        found = await assess_run(reader, ask, on_answer)
    await asyncio.to_thread(keep_assessment, folder, found)
    return found


@asynccontextmanager
async def _opened(
    folder: Path, judge: str | None, trust: bool, agreed: Sequence[str]
) -> AsyncIterator[tuple[RunReader, RunContext, AgentSpec, str | None]]:
    if is_alive(folder):
        raise NothingToRun(f"run {folder.name} goes on; its failures are named when it has ended")
    with closing(await asyncio.to_thread(RunReader, folder)) as reader:
        given = RunRequest()
        with contextlib.suppress(msgspec.ValidationError):  # a results file of another tool
            given = msgspec.convert(reader.info().options, RunRequest)
        root = root_of(folder)
        config = await asyncio.to_thread(load, [root], given.config_file)
        trusted = trust_for(config.root, trust, agreed)
        read_withheld(config, trusted)
        environment = RunContext(config, trusted)
        try:
            name = judge or given.judge
            check_judge(msgspec.structs.replace(given, judge=name), environment, typed=judge)
            spec = environment.judge_spec(name)
            if spec is None:
                raise NoJudge(
                    "no judge is configured: write `judge: NAME` into tui_eval.yaml (tui-eval help judge)"
                )
            yield reader, environment, spec, name
        finally:
            await environment.close()


class FailureNaming:
    """One naming that goes on in the engine: how far it is, and what came of it."""

    def __init__(self, folder: Path, trust: bool, total: int, agreed: Sequence[str] = ()) -> None:
        self.total, self.done, self.error = total, 0, ""
        self.task = asyncio.create_task(self._work(folder, trust, agreed))

    async def _work(self, folder: Path, trust: bool, agreed: Sequence[str]) -> None:
        try:
            await name_failures(folder, trust=trust, on_answer=self._answered, agreed=agreed)
        except asyncio.CancelledError:
            self.error = "cancelled"
        except (NothingToRun, StoreError, OSError, ValueError) as error:
            self.error = str(error)

    def _answered(self) -> None:
        self.done += 1

    def facts(self) -> dict[str, object]:
        """For the app."""
        return {
            "done": self.done,
            "total": self.total,
            "ended": self.task.done(),
            "error": self.error,
        }
