"""Spans of an attempt's trace in the Tools tab: as bars beside the calls, one of them in full."""

from __future__ import annotations

from pathlib import Path

from tests.support.attempts import START, text_failure
from tests.support.case_host import host, loaded, sees
from tests.tui.state.case.test_case_why import said
from tui_eval.model import Attempt, Entry, Trace, TraceSpan
from tui_eval.tui.inspector.tools_tab import ToolsTab
from tui_eval.tui.state.case.span_view import depths, span_blocks, trace_blocks
from tui_eval.tui.state.case.waterfall import bar_line, bars, label_width, span_of


def span(number: int, parent: int | None, name: str, start: float, took: float, **more: object) -> TraceSpan:
    begin = START * 1000 + start
    return TraceSpan(str(number), name, None if parent is None else str(parent), begin, begin + took, **more)  # type: ignore[arg-type]


def traced(*spans: TraceSpan, transcript: list[Entry] | None = None, problem: str = "") -> Attempt:
    return Attempt(
        "s::traced",
        1,
        "passed",
        started_at=START,
        transcript=transcript or [Entry(1, "user", text="q"), Entry(1, "assistant", text="done")],
        trace=Trace("0" * 32, spans=list(spans), problem=problem),
    )


def test_spans_stand_beside_calls_in_the_order_of_time() -> None:
    transcript = [
        Entry(1, "tool_call", name="look", call_id="1", started_at=START + 1),
        Entry(1, "tool_result", name="look", call_id="1", started_at=START + 3),
    ]
    attempt = traced(
        span(1, None, "agent run", 0, 4000),
        span(2, 1, "GET /prices", 1500, 1000, status=2, message="503"),
        TraceSpan("3", "without times", "2"),
        transcript=transcript,
    )
    shown = bars(attempt)
    assert [(bar.label, bar.start, bar.end, bar.depth, bar.failed) for bar in shown] == [
        ("· agent run", 0, 4000, 0, False),
        ("look", 1000, 3000, 0, False),
        ("· GET /prices", 1500, 2500, 1, True),
        ("· without times", None, None, 2, False),
    ]
    assert [bar.span is not None for bar in shown] == [True, False, True, True]
    total, label = span_of(shown), label_width(shown, 60)
    assert total == 4000
    lines = said(bar_line(bar, total, 60, label) for bar in shown)
    assert all(len(line) <= 60 for line in lines) and lines[2].startswith("!")


def test_another_clock_is_brought_to_the_attempts_beginning() -> None:
    attempt = traced(TraceSpan("1", "a", None, 0.0, 10.0), TraceSpan("2", "b", None, 5.0, 1.0))
    assert [(bar.start, bar.end) for bar in bars(attempt)] == [(0, 10), (5, 5)]


def test_parents_that_make_a_circle_end() -> None:
    circle = [
        TraceSpan("a", "x", "b"),
        TraceSpan("b", "x", "a"),
        TraceSpan("c", "x", "c"),
        TraceSpan("d", "x"),
    ]
    found = depths(circle)
    assert found["d"] == 0 and set(found) == {"a", "b", "c", "d"}
    chain = [TraceSpan(str(n), "x", str(n + 1)) for n in range(5000)]
    assert depths(chain)["0"] == 4999


def test_hostile_texts_are_made_visible() -> None:
    hostile = TraceSpan(
        "1", "a\x1b[31m\nb", None, 1e30, 2e30, {"k\x1b": "v\x1b]0;x\x07"}, 2, "m\x9b2J", own=True
    )
    shown = " ".join(said(line for block in span_blocks(hostile) for line in block.lines()))
    shown += " ".join(block.label for block in span_blocks(hostile)) + bars(traced(hostile))[-1].label
    assert not any(ord(character) < 32 or 127 <= ord(character) < 160 for character in shown)
    assert "made by tui-eval" in shown and "m" in shown


def test_why_a_trace_is_empty_is_said() -> None:
    (block,) = trace_blocks(Trace("0", problem="no span arrived"))
    assert said(block.lines()) == ["no span arrived"]
    assert trace_blocks(Trace("0")) == [] and trace_blocks(None) == []


async def test_without_calls_the_spans_are_shown(tmp_path: Path) -> None:
    attempt = traced(
        span(1, None, "agent run", 0, 4000),
        span(2, 1, "price lookup", 500, 1000, attributes={"db.statement": "SELECT price"}),
    )
    app = host(tmp_path, attempt)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2")
        await sees(pilot, "· agent run", "· price lookup", "a span of the agent's trace")
        tab = screen.tab
        assert isinstance(tab, ToolsTab) and len(tab.table.bars) == 2
        await pilot.press("j")
        await sees(pilot, "db.statement", "SELECT price", "1.0s")


async def test_spans_join_the_calls_when_times_are_shown(tmp_path: Path) -> None:
    attempt = text_failure()
    attempt.trace = Trace("0" * 32, spans=[span(1, None, "agent run", 0, 9000)])
    app = host(tmp_path, attempt)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("2")
        tab = screen.tab
        assert isinstance(tab, ToolsTab) and not tab.table.bars
        await pilot.press("s")
        await sees(pilot, "· agent run")
        await pilot.press("s")
        assert not tab.table.bars


async def test_an_empty_trace_says_why(tmp_path: Path) -> None:
    app = host(tmp_path, traced(problem="no span of this attempt's trace arrived"))
    async with app.run_test(size=(80, 24)) as pilot:
        await loaded(pilot)
        await pilot.press("2")
        await sees(pilot, "no span of this attempt's trace arrived")
