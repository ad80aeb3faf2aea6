"""The foundation of rows: the window over them, what is painted again, style words."""

from __future__ import annotations

import pytest
from rich.style import Style
from textual.app import App, ComposeResult

from tests.support.app_host import until
from tui_eval.tui.state.text.lines import Line, Span
from tui_eval.tui.widgets.bars import FactsBar
from tui_eval.tui.widgets.case_lines import CaseLines
from tui_eval.tui.widgets.line_pane import LinePane
from tui_eval.tui.widgets.looks import LOOKS
from tui_eval.tui.widgets.row_view import RowView
from tui_eval.tui.widgets.stream_grid import StreamLines


class Numbers(LinePane):
    """A hundred rows."""

    step = 0

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.messages: list[int] = []

    def relayout(self) -> None:
        self.set_row_count(100)

    def row_line(self, row: int) -> Line:
        self.asked.append(row)
        return (Span("row ", "muted"), Span(f"{row + self.step}", "strong"))

    def on_line_pane_moved(self, event: LinePane.Moved) -> None:
        self.messages.append(event.row)


class Host(App[None]):
    def __init__(self, widget: RowView) -> None:
        super().__init__()
        self.widget = widget

    def compose(self) -> ComposeResult:
        yield self.widget


def shown(pane: RowView) -> list[str]:
    return [pane.render_line(y).text.rstrip() for y in range(pane.size.height)]


async def test_paging_shows_every_row() -> None:
    pane = Numbers()
    async with Host(pane).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        seen: list[str] = []
        while pane.cursor < pane.row_count - 1:
            seen += shown(pane)
            pane.whole_page(1)
        seen += shown(pane)
        assert set(seen) == {f"row {number}" for number in range(100)}
        pane.half_page(-1)
        assert pane.top == 85 and pane.cursor == 94


async def test_only_rows_in_sight_are_made_and_only_cells_that_differ_are_painted() -> None:
    pane = Numbers()
    async with Host(pane).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        assert max(pane.asked) < 10
        painted: list[int] = []
        refresh = pane.refresh

        def counted(*regions, **more):
            painted.extend(region.area for region in regions)
            return refresh(*regions, **more)

        pane.refresh = counted
        pane.repaint()
        assert painted == []
        pane.step = 10
        pane.repaint()
        assert painted == [2, 1, *[2] * 8], "the cells in which numbers differ"


async def test_the_ground_of_a_frame_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pane = Numbers()
    async with Host(pane).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        worked_out: list[RowView] = []
        ground = RowView.rich_style.fget
        assert ground is not None

        def counted(self: RowView) -> Style:
            worked_out.append(self)
            return ground(self)

        monkeypatch.setattr(RowView, "rich_style", property(counted))
        pane.refresh()
        await pilot.pause()
        assert worked_out == [pane]
        pane.styles.background = "#102030"
        await pilot.pause()
        ends = {style.bgcolor.name for *_, (_, style, _) in map(list, map(pane.render_line, range(1, 10)))}
        assert ends == {"#102030"}  # below the cursor's row


async def test_a_move_is_posted_once_and_a_shifted_window_is_none() -> None:
    pane = Numbers()
    async with Host(pane).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        pane.move_to(0)
        pane.move_to(50)
        await pilot.pause()
        assert pane.messages == [50] and pane.top <= 50 < pane.top + pane.window
        pane.scroll_by(1)
        await pilot.pause()
        assert pane.messages == [50]
        pane.move_to(1000)
        assert pane.cursor == 99 and pane.top == 90


async def test_the_cursor_stays_in_sight_when_rows_and_room_become_fewer() -> None:
    pane = Numbers()
    async with Host(pane).run_test(size=(40, 20)) as pilot:
        await pilot.pause()
        pane.move_to(19)
        await pilot.resize_terminal(40, 6)
        await pilot.pause()
        assert pane.top <= pane.cursor < pane.top + pane.window
        pane.set_row_count(3)
        pane.show_cursor()
        assert pane.cursor == 2 and pane.top == 0


async def test_rows_hold_letters_where_the_terminal_has_no_more() -> None:
    class Letters(Host):
        class services:
            class symbols:
                unicode = False

    bar = FactsBar()
    async with Letters(bar).run_test(size=(20, 2)) as pilot:
        await pilot.pause()
        bar.show([("text", "✓ 日 …")])
        assert shown(bar) == ["P ?? ~"]


async def test_facts_that_are_fitted_are_fitted_anew_when_the_width_is_another() -> None:
    bar = FactsBar()
    async with Host(bar).run_test(size=(20, 2)) as pilot:
        bar.show_fitted(lambda width: [[("text", f"{width} cells")]])
        await until(lambda: shown(bar) == ["18 cells"], pilot)
        await pilot.resize_terminal(40, 2)
        await until(lambda: shown(bar) == ["38 cells"], pilot)
        bar.show([("text", "the same")])
        await pilot.resize_terminal(20, 2)
        await until(lambda: bar.size.width == 18, pilot)
        assert shown(bar) == ["the same"]
        bar.show([("title", "Compare"), ("dim", "  24 cases  5 regressed")])
        assert shown(bar) == ["Compare  24 cases…"]


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "ansi-dark"])
async def test_every_style_word_has_a_look_in_every_theme(theme: str) -> None:
    """Style words that a widget makes of data (an outcome, a state) have one too; what is muted is dim where the
    terminal's own colours have no shades."""
    pane = Numbers()
    app = Host(pane)
    async with app.run_test(size=(20, 4)) as pilot:
        app.theme = theme
        await pilot.pause()
        for own in (RowView.LOOKS, CaseLines.LOOKS, StreamLines.LOOKS, FactsBar.LOOKS):
            assert own.keys() <= LOOKS.keys()
        for word in LOOKS:
            assert pane.style(f"{word} strong").bold
        assert bool(pane.style("muted").dim) is (theme == "ansi-dark")
        with pytest.raises(KeyError):
            pane.style("no such word")


async def test_another_theme_paints_other_colours() -> None:
    pane = Numbers()
    app = Host(pane)
    async with app.run_test(size=(20, 4)) as pilot:
        app.theme = "textual-dark"
        await pilot.pause()
        dark = pane.style("failed")
        app.theme = "textual-light"
        await pilot.pause()
        assert pane.style("failed").color != dark.color
