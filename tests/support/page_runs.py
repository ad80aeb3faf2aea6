"""Runs with everything that a page shows, at fixed times and of fixed names; for the golden pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.support import attempts
from tests.support.attempts import HOSTILE, START
from tui_eval.model import Attempt, Case, DataDetails, Entry, Outcome, Trace, TraceSpan, Turn, Usage, Verdict
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

MARKUP = "<b onclick='x'>&amp; \"q\" {{ 7*7 }} {% raw %} </pre></style><script>alert(1)</script>"
OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "error", "cancelled", "skipped")


def run(
    root: Path,
    run_id: str,
    planned: Sequence[tuple[Case, str, str | None, Sequence[Attempt | None]]],
    **facts,
) -> Path:
    """A run whose attempts are given by case and agent (None: not run)."""
    folder = Store(root).create_folder(run_id)
    state = facts.pop("state", "finished")
    agents = list(dict.fromkeys(agent for _, agent, _, _ in planned))
    writer = RunWriter(folder, RunInfo(run_id, started_at=START, agents=agents, **facts))
    cases = [
        PlannedCase(case, agent, model, len(some), min(2, len(some))) for case, agent, model, some in planned
    ]
    for refs, (_, agent, model, some) in zip(writer.plan(cases), planned, strict=True):
        for ref, attempt in zip(refs, some, strict=True):
            if attempt is not None:
                attempt.agent, attempt.model = agent, model
                writer.started(ref, START)
                writer.done(ref, attempt)
    if state != "running":
        writer.state(state, START + 4_000)
    writer.close()
    return folder


def rich(root: Path) -> Path:
    """One of each way a case goes wrong, hostile texts everywhere, frames, traces, notes, several columns."""
    planned: list[tuple[Case, str, str | None, Sequence[Attempt | None]]] = []
    for make in attempts.EVERY:
        one = make()
        planned.append((attempts.case_for(one), one.agent, one.model, [one]))
    planned[0][3][0].trace = _trace()  # type: ignore[union-attr]
    planned[2][3][0].trace = Trace("t", problem=f"nothing {MARKUP}", note="nothing could listen")  # type: ignore[union-attr]
    planned[3][3][0].trace = Trace("t", spans=[TraceSpan(str(n), f"n{n}", str(n - 1)) for n in range(12)])  # type: ignore[union-attr]
    for prompt in ("short", "long " * 30):
        case = Case(f"p.yaml::{prompt}", MARKUP, "p.yaml", "promptfoo", prompt=prompt, turns=[Turn(MARKUP)])
        planned.append((case, "echo", "m", [_simple(case, number, "passed") for number in (1, 2, 3)]))
    case = _case("w.yaml", "wide")
    planned.append((case, "echo", None, [_wide(case)]))
    for outcome in OUTCOMES:
        case = _case("z.yaml", outcome)
        planned.append((case, "echo", None, [_simple(case, 1, outcome)]))
    flaky = _case("z.yaml", "flaky")
    ways = ("passed", "failed", "passed", "failed", "passed", "error")
    planned.append((flaky, "echo", None, [_simple(flaky, n, way) for n, way in enumerate(ways, 1)]))
    planned.append((_case("z.yaml", "not run"), "echo", None, [None, None]))
    half = _case("z.yaml", "half")
    planned.append((half, "echo", None, [_simple(half, 1, "failed"), None]))
    cached = _case("z.yaml", "from the cache")
    one = _simple(cached, 1, "passed")
    one.cached, one.saved, one.cost, one.asserted_nothing = 1, 0.25, 0.0, True
    planned.append((cached, "echo", None, [one]))
    folder = run(
        root, "20260101-000003-rich", planned, note=f"a note {MARKUP}{HOSTILE}", scripted=True,
        linked_to="20260101-000001-aaaa", paths=["suites"],
        provenance={
            "command": f"tui-eval run suites {MARKUP}", "git": {"commit": "0123456789abcdef", "dirty": True},
            "shard": {"number": 3, "of": 20},
        },
    )  # fmt: skip
    Notes(root).put(HumanNote(folder.name, 1, "x", "wrong", f"cites {MARKUP}{HOSTILE}", True))
    Notes(root).put(HumanNote(folder.name, 2, "x", None, "only a text"))
    return folder


def pair(root: Path) -> tuple[Path, Path]:
    """Two runs of the same cases, some of which changed; the second says other things."""
    before: dict[str, Outcome] = {
        "worse": "passed", "better": "failed", "same": "passed", "wobbly": "passed", MARKUP: "passed", "gone": "passed",
    }  # fmt: skip
    after: dict[str, Outcome] = {
        "worse": "failed", "better": "passed", "same": "passed", "wobbly": "failed", MARKUP: "failed", "new": "error",
    }  # fmt: skip
    folders: list[Path] = []
    for number, told in enumerate((before, after), 1):
        planned: list[tuple[Case, str, str | None, Sequence[Attempt | None]]] = []
        for name, outcome in told.items():
            case = _case("suites/pair.yaml", name)
            some = [_simple(case, 1, outcome, f"answer {number} of {name}\nthe same end {HOSTILE}")]
            if name == "wobbly":
                some.append(_simple(case, 2, "passed"))
            planned.append((case, "helper", "m", some))
        folders.append(run(root, f"20260101-00000{number}-aaaa", planned, paths=["suites"]))
    return folders[0], folders[1]


def agents(root: Path) -> Path:
    """A run of the same cases with two agents, one of a hostile name."""
    planned = [
        (case, agent, model, [_simple(case, 1, outcome)])
        for agent, model, outcomes in (("one", "m", ("passed", "passed")), (MARKUP, None, ("failed", "passed")))
        for case, outcome in zip((_case("s.yaml", "first"), _case("s.yaml", "second")), outcomes, strict=True)
    ]  # fmt: skip
    return run(root, "20260101-000004-both", planned, paths=["s.yaml"])


def _case(suite: str, name: str) -> Case:
    return Case(f"{suite}::{name}", name, suite, "start_to_agent", turns=[Turn("hello")])


def _simple(case: Case, number: int, outcome: Outcome, said: str = "hi") -> Attempt:
    passed = outcome == "passed"
    return Attempt(
        case.case_id, number, outcome, message="" if passed else f"{case.name} {outcome} {MARKUP}",
        error=MARKUP if outcome == "error" else None, started_at=START, duration_ms=1234.0 * number, cost=0.0125,
        usage=Usage(1000, 234), response_text=said,
        transcript=[Entry(1, "user", text=f"hello {MARKUP}"), Entry(1, "assistant", text=said, duration_ms=12.0)],
        verdicts=[
            Verdict("contains", passed, "text", "hi", said, reason=MARKUP, turn=1, score=float(passed)),
            Verdict("equals", passed, "output", {"a": MARKUP}, "x" * 70),
        ],
    )  # fmt: skip


def _wide(case: Case) -> Attempt:
    """More rows and columns than a page shows, one column a hundred times what it should be."""
    wide = {f"c{number}": number + 0.5 for number in range(20)}
    data = DataDetails(
        [{"id": n, MARKUP: None, **wide} for n in range(30)],
        [{"id": n, MARKUP: MARKUP, **wide, "c1": 150} for n in range(28)],
        ["id", MARKUP, *wide], f"values differ {MARKUP}", f"SELECT {MARKUP}",
    )  # fmt: skip
    return Attempt(case.case_id, 1, "failed", message="rows differ", data=data, started_at=START)


def _trace() -> Trace:
    spans = [
        TraceSpan("b", f"execute_tool {MARKUP}", "a", 1010.0, 1030.0, {"tool.name": MARKUP}, 2, f"broken {MARKUP}"),
        TraceSpan("a", "agent", None, 1000.0, 2500.0),
        TraceSpan("c", "lost", "nobody", 1001.0, None, {HOSTILE: HOSTILE}),
    ]  # fmt: skip
    return Trace("t", spans=spans, note=f"left out {MARKUP}")
