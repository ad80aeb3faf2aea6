"""A project on disk, an engine that remembers what it is asked, and a run that a test writes step by step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tui_eval.engine.request import RunRequest
from tui_eval.engine.service.client import RunStarted
from tui_eval.model import Attempt, Case, Entry, Evidence, Outcome, Reply, Turn, Usage, Verdict
from tui_eval.store.run_folders import Store, new_run_id
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

SUITE = """\
agent: offline
test_cases:
  - name: refund is approved
    input: I want a refund
    expected: {should_contain: [refund]}
  - name: greets by name
    input: hello, I am Anna
    expected: {should_contain: [Anna]}
  - name: calms an angry customer
    input: I am angry
    expected: {should_contain: [sorry]}
"""


def project(folder: Path, suites: dict[str, str] | None = None) -> Path:
    """A project with these suite files (path: text)."""
    (folder / "tui_eval.yaml").write_text("agents:\n  offline: {type: echo}\n")
    for path, text in (suites or {"suites/support.yaml": SUITE}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


class FakeEngine:
    """Remembers what it was asked; `started` makes the run that it answers with. `troubles` is what the disk
    refuses, by run."""

    connected = True

    def __init__(self, root: Path) -> None:
        self.root = root
        self.requests: list[RunRequest] = []
        self.cancelled: list[tuple[str, list[int] | None]] = []
        self.paused: list[bool] = []
        self.live: LiveRun | None = None
        self.troubles: dict[str, str] = {}
        self.problems: list[str] = []
        """What it says of the files that it leaves out."""
        self.rescored: list[tuple[Path, RunRequest]] = []
        self.resumed: list[tuple[Path, RunRequest]] = []

    async def state(self) -> dict[str, Any]:
        """What goes on."""
        return {"runs": [], "pid": 0, "troubles": self.troubles}

    async def start(self) -> None:
        """Nothing to start."""

    async def close(self) -> None:
        """Nothing to close."""

    async def run(self, request: RunRequest) -> RunStarted:
        """A run of the cases asked for, each waiting."""
        self.requests.append(request)
        names = request.case_ids or []
        self.live = LiveRun(self.root, [name.partition("::")[2] for name in names], request.attempts or 1)
        return RunStarted(self.live.info.id, self.live.folder, len(names), self.problems)

    async def rescore(self, folder: Path, request: RunRequest) -> RunStarted:
        """A run that judges the recorded answers of these cases again."""
        self.rescored.append((folder, request))
        names = request.case_ids or []
        self.live = LiveRun(self.root, [name.partition("::")[2] for name in names])
        return RunStarted(self.live.info.id, self.live.folder, len(names), self.problems)

    async def resume_run(self, folder: Path, request: RunRequest) -> RunStarted:
        """The same run, gone on with."""
        self.resumed.append((folder, request))
        return RunStarted(folder.name, folder, 2, self.problems)

    async def cancel(self, run_id: str, attempt_refs: Any = None) -> int:
        """Remember it."""
        self.cancelled.append((run_id, attempt_refs))
        return 1

    async def pause(self, run_id: str, paused: bool = True) -> None:
        """Remember it."""
        self.paused.append(paused)


class LiveRun:
    """A run that a test writes step by step."""

    def __init__(
        self,
        root: Path,
        names: list[str],
        attempts: int = 1,
        suite: str = "suites/support.yaml",
        linked_to: str | None = None,
        first_attempt: int = 1,
        options: dict[str, Any] | None = None,
        agent: str = "offline",
        hashes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`hashes`: of the cases' content, by their names."""
        run_id = new_run_id()
        self.folder = Store(root).create_folder(run_id)
        self.info = RunInfo(
            id=run_id, started_at=time.time(), agents=[agent], scripted=True, linked_to=linked_to,
            options=options or {},
        )  # fmt: skip
        self.writer = RunWriter(self.folder, self.info)
        self.cases = [
            Case(
                f"{suite}::{name}",
                name,
                suite,
                "start_to_agent",
                agent=agent,
                turns=[Turn("hello")],
                content_hash=hashes.get(name, ""),
            )
            for name in names
        ]
        self.refs = self.writer.plan(
            [PlannedCase(case, agent, None, attempts, attempts, first_attempt) for case in self.cases]
        )

    def start(self, case: int, attempt: int = 0) -> int:
        """An attempt begins."""
        ref = self.refs[case][attempt]
        self.writer.started(ref, time.time())
        self.writer.turn(ref, 1)
        return ref

    def done(
        self,
        case: int,
        outcome: Outcome = "passed",
        message: str = "",
        attempt: int = 0,
        said: str = "hi",
        cost: float = 0.01,
        evidence: list[Evidence] | None = None,
        ran_on: str = "",
        verdicts: Sequence[Verdict] = (),
        replies: Sequence[Reply] = (),
    ) -> None:
        """An attempt ends; `evidence` is what a verdict of its rests on, if not `verdicts` are given; `ran_on` the
        worker."""
        self.writer.done(
            self.refs[case][attempt],
            Attempt(
                self.cases[case].case_id,
                attempt + 1,
                outcome,
                agent=self.cases[case].agent or "",
                message=message or outcome,
                usage=Usage(10, 20),
                cost=cost,
                started_at=time.time() - 1,
                duration_ms=1000.0,
                ran_on=ran_on,
                transcript=[Entry(1, "user", text="hello"), Entry(1, "assistant", text=said)],
                replies=[*replies],
                response_text=said if said != "hi" else "",
                verdicts=[Verdict("contains", False, reason=message, evidence=evidence)]
                if evidence
                else [*verdicts],
            ),
        )

    def finish(self) -> None:
        """The run ends."""
        self.writer.state("finished", time.time())
        self.writer.close()

    def all_done(self, outcomes: list[Outcome]) -> None:
        """Everything at once."""
        for number, outcome in enumerate(outcomes):
            self.start(number)
            self.done(number, outcome, "" if outcome == "passed" else f"case {number} went wrong")
        self.finish()
