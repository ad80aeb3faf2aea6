"""Lines of lists: a name takes the columns that stand free, a reason does not quote the reply."""

from __future__ import annotations

from collections import Counter

import pytest
from rich.cells import cell_len
from rich.style import Style

from tests.tui.app_host import LiveRun, project, running_app, screen_text, until
from tui_eval.model import Assertion
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.case.case_details import assertion_text, describe, describe_entry
from tui_eval.tui.state.lists.case_entry import CaseRow, extent_of
from tui_eval.tui.state.lists.case_tree import Tree, TreeLine
from tui_eval.tui.state.lists.reasons import line_reason, short_reason
from tui_eval.tui.state.text.formatting import Symbols
from tui_eval.tui.widgets.case_list import TIMES_FROM, CaseLines, columns_for

REPLY = "You must try it's these:\n\n1. Pad thai, at Thip Samai." + " more" * 60
QUOTED = repr(REPLY)[:200] + "…"
PROMPTS = """\
prompts:
  - {raw: 'Be terse about {{thing}}.', label: terse}
  - {raw: 'Be warm about {{thing}}, and say all there is to it.', label: warm}
providers: [echo]
tests:
  - description: Kettle text names the capacity in litres
    vars: {thing: kettle}
"""


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        (f"'peanut' unexpectedly found in {QUOTED}", "'peanut' unexpectedly found in the reply"),
        (
            f"'a' not found in {QUOTED}; 'b' not found in {QUOTED}",
            "'a' not found in the reply; 'b' not found in the reply",
        ),
        (f"'a' not found in {REPLY[:90]!r}; too slow", "'a' not found in the reply; too slow"),
        (f"'two' != {REPLY[:90]!r}", "'two' != the reply"),
        (f'Expected output "{REPLY}" to equal "x"', 'Expected output the reply to equal "x"'),
        ("'a' not found in 'a short reply'", "'a' not found in 'a short reply'"),
        ("row 3 differs " * 9, "row 3 differs " * 9),
    ],
)
def test_a_reason_in_a_list_does_not_quote_the_reply(reason, shown):
    assert short_reason(reason) == shown


async def test_the_list_of_a_run_gives_the_short_reason(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, ["refund is approved", "greets by name"])
    run.start(0)
    run.done(0, "failed", f"'peanut' unexpectedly found in {QUOTED}")
    run.start(1)
    run.done(1)
    run.finish()
    async with running_app(root, (140, 40), open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await until(lambda: "'peanut' unexpectedly found in the reply" in screen_text(app), pilot)


def test_the_detail_of_suites_gives_the_short_reason():
    why = f"'peanut' unexpectedly found in {QUOTED}"
    entry = CaseRow("s::a@x", "s::a", "a", "s", "nao", status="failed", message=why)
    told = [text for _, text in describe_entry(entry, Symbols(), 0.0)]
    assert "'peanut' unexpectedly found in the reply" in told


async def test_a_name_with_its_prompt_takes_the_columns_that_stand_free(tmp_path):
    root = project(tmp_path, {"promptfooconfig.yaml": PROMPTS})
    async with running_app(root, (80, 24)) as (app, pilot):
        await until(lambda: "capacity in litres · terse" in screen_text(app), pilot)
        assert "capacity in litres · warm" in screen_text(app)


async def test_a_suite_and_a_folder_name_what_does_not_pass(tmp_path):
    root = project(tmp_path)
    LiveRun(root, ["refund is approved", "greets by name"]).all_done(["failed", "passed"])
    async with running_app(root, (120, 40)) as (app, pilot):
        for key, kind in (("g", "folder"), ("j", "suite")):
            await pilot.press(key)
            await until(lambda wanted=kind: app.screen.case_list.current_line.kind == wanted, pilot)
            await until(lambda: "What does not pass" in screen_text(app), pilot)
            assert "case 0 went wrong" in screen_text(app) and "3 cases · 1 failed, 1 passed" in screen_text(
                app
            )


def test_many_failures_are_named_in_part():
    entries = [CaseRow(f"k{n}", f"k{n}", f"case {n}", "s", "nao", "failed", message="no") for n in range(50)]
    folder = TreeLine("folder", "s/", 0, "s/", path="s", counts=Counter(failed=50))
    told = [text for _, text in describe(folder, Symbols(), 0.0, lambda: entries)]
    assert "and 20 more" in told and "✗ case 29" in told and "✗ case 30" not in told


@pytest.mark.parametrize("size", [(80, 24), (100, 24), (120, 40)], ids=["80x24", "100x24", "120x40"])
async def test_reasons_stand_in_one_column(tmp_path, size):
    root = project(tmp_path)
    names = ["short", "a name that is of middling length", "x"]
    run = LiveRun(root, names)
    run.all_done(["failed", "failed", "error"])
    async with running_app(root, size, open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        width = app.screen.case_list.size.width

        def reasons() -> list[int]:
            lines = [line[:width] for line in screen_text(app).splitlines()[2:]]
            return [line.index("case ") for line in lines if "case " in line]

        await until(lambda: all(name[:20] in screen_text(app) for name in names), pilot)
        await until(lambda: len(reasons()) == 3, pilot)
        assert len(set(reasons())) == 1


def test_assertions_of_starttoagent_in_words():
    said = [
        assertion_text(Assertion(type=kind, value=value, target=target))
        for kind, value, target in (
            ("tools_used", "search", "tools"),
            ("max_tool_calls", 2, "tools"),
            ("max_output_tokens", 500, "usage.output_tokens"),
            ("should_contain", "x", "text"),
        )
    ]
    assert said == [
        'uses the tool "search"', "calls of tools at most 2", "output tokens at most 500", 'contains "x"',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "shown"),
    [
        ("should_contain: '3 years' not found in response; max_tool_calls: 6 > 2", "must contain '3 years'; max_tool_calls: 6 > 2"),
        ("should_not_contain: 'it is' was found in response", "must not contain 'it is'"),
        ('Expected output to not contain "!"', 'must not contain "!"'),
        ("Cost 0.02 is greater than threshold 0.01; Expected output to contain \"x\"", 'Cost 0.02 > 0.01; must contain "x"'),
        ("Aggregate score 0.50 < 1 threshold; other", "score 0.50 < 1; other"),
        ("a reason\n of  its own", "a reason of its own"),
        (f"'two' != {REPLY[:90]!r}", "'two' != the reply"),
        ("x" * 9_000, "x" * 600),
    ],
)  # fmt: skip
def test_a_reason_in_one_line_says_what_was_expected_first(reason, shown):
    assert line_reason(reason) == shown


KETTLE = CaseRow(
    "k1", "s::k1", "Kettle text names the capacity of it in litres", "s", "promptfoo", "failed", attempts="f", duration_ms=4_800.0,
    message='Expected output to not contain "!"', variant="friendly",
)  # fmt: skip
LAMP = CaseRow(
    "k2", "s::k2", "lamp", "s", "promptfoo", "passed", attempts="p", duration_ms=430.0, variant="terse"
)
SHAKY = CaseRow(
    "k3", "s::k3", "warranty", "s", "promptfoo", "failed", flaky=True, attempts="pfp", duration_ms=1_000.0,
    message="should_contain: '3 years' not found in response",
)  # fmt: skip


def drawn(width: int, *entries: CaseRow) -> list[str]:
    """The lines of these cases in the list of a run, without an app."""
    lines = CaseLines("run", Symbols())
    lines._style = lambda name: Style()
    shown = [TreeLine("case", one.key, 0, one.name, one, path=one.suite) for one in entries]
    lines.cases = Tree(shown, list(entries), len(entries), {}, {}, extent_of(entries))
    return [
        "".join(text for text, _ in lines._case(line, line.entry, "", width, Style()))
        for line in shown
        if line.entry is not None
    ]


@pytest.mark.parametrize("width", [46, 54, 64, 79, 119])
def test_a_line_of_a_run_gives_its_room_to_name_and_reason(width):
    kettle, lamp, shaky = drawn(width, KETTLE, LAMP, SHAKY)
    assert all(cell_len(line) == width for line in (kettle, lamp, shaky))
    assert "friendly" in kettle and "must not" in kettle
    assert lamp.startswith("✓ lamp · terse ")
    assert "must con" in shaky and "✓✗✓" in shaky
    # ux.md: an outcome is glyph, word and colour, the times of a narrow list stand beside it
    assert " failed" in kettle and " passed" in lamp and " flaky" in shaky
    assert (kettle.endswith(" 4.8s"), lamp.endswith(" 430ms")) == (width + 1 >= TIMES_FROM,) * 2
    # one attempt: the glyph in front says it all
    assert kettle.count("✗") == 1 and lamp.count("✓") == 1


def test_outcomes_take_the_cells_of_the_longest():
    assert columns_for("run", 80, extent_of([KETTLE, LAMP])).word == len("failed")
    assert columns_for("run", 80, extent_of([CaseRow("a", "a", "a", "s", "nao", "cancelled")])).word == 9
    assert columns_for("suites", 80, extent_of([KETTLE])).word == len("failed")
    assert columns_for("suites", 80, extent_of([SHAKY])).word == len("flaky 2/3")
    assert columns_for("suites", 80, extent_of([CaseRow("a", "a", "a", "s", "nao")])).word == 0
    extent = extent_of([LAMP])
    assert extent.widen(CaseRow("a", "a", "a", "s", "nao", "retrying")) and extent.word == len("retrying")
