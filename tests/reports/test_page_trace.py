"""The spans of an attempt on the HTML page."""

from __future__ import annotations

import msgspec

from tui_eval.model import Trace, TraceSpan
from tui_eval.reports.html_templates import environment
from tui_eval.reports.page import MOST_SPANS, trace_shown


def trace_html(trace: dict | None) -> str:
    module = environment().get_template("trace.html.j2").module
    return str(module.trace(trace_shown(trace))).strip()  # type: ignore[attr-defined]


def shown(*spans: TraceSpan, problem: str = "") -> str:
    return trace_html(msgspec.to_builtins(Trace("t", spans=list(spans), problem=problem)))


def test_spans_stand_below_those_that_they_belong_to() -> None:
    page = shown(
        TraceSpan(
            "b", "execute_tool <b>", "a", 1010.0, 1030.0, {"tool.name": "<script>"}, 2, "broken & gone"
        ),
        TraceSpan("a", "agent", None, 1000.0, 2500.0),
        TraceSpan("c", "lost", "nobody", 1001.0, None),
    )
    assert "trace: 3 spans" in page
    assert page.index("agent") < page.index("execute_tool") < page.index("lost")
    assert "margin-left: 1.2em" in page and "1,500 ms" in page and "20 ms" in page
    assert "broken &amp; gone" in page and "&lt;script&gt;" in page and "<script>" not in page
    assert '<span class="error">! execute_tool &lt;b&gt;</span>' in page


def test_a_trace_without_spans_says_why_and_none_says_nothing() -> None:
    assert trace_html(None) == ""
    assert "nothing arrived" in shown(problem="nothing arrived")
    assert "trace: 1 span<" in shown(TraceSpan("a", "x"))


def test_parents_that_go_in_a_circle_and_many_spans_end() -> None:
    page = shown(TraceSpan("a", "first", "b"), TraceSpan("b", "second", "a"), TraceSpan("s", "self", "s"))
    assert page.count("first") == page.count("second") == page.count("self") == 1
    deep = shown(*(TraceSpan(str(n), f"n{n}", str(n - 1)) for n in range(MOST_SPANS + 50)))
    assert "and 50 more spans" in deep
