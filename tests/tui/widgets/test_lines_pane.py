"""A pane of paragraphs in the frames that come before it has heard of its width."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.events import Resize

from tests.support.app_host import until
from tui_eval.tui.state.text.lines import Span
from tui_eval.tui.widgets.lines_pane import LinesPane


class Deaf(LinesPane):
    """One that word of its size has not reached yet."""

    def on_resize(self, event: Resize) -> None:
        """Not yet."""


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield Deaf([("key", "file\x00/home/somebody/.config/tui-eval/settings.yaml (none yet)")])


async def test_the_first_frame_is_wrapped_to_the_width_there_is() -> None:
    async with Host().run_test(size=(80, 10)) as pilot:
        await pilot.pause()
        pane = pilot.app.query_one(Deaf)
        assert pane.render_line(0).text.split() == [
            "file",
            "/home/somebody/.config/tui-eval/settings.yaml",
            "(none",
            "yet)",
        ]


HEAD = [("title", "the warranty"), ("dim", "suite.yaml:3")]


class Attempts(App[None]):
    def compose(self) -> ComposeResult:
        yield LinesPane()


async def test_a_pane_of_few_lines_shows_what_it_was_given_in_brief() -> None:
    async with Attempts().run_test(size=(40, 8)) as pilot:
        pane = pilot.app.query_one(LinesPane)

        def shows(*lines: str) -> bool:
            return [pane.render_line(y).text.strip() for y in range(len(lines))] == list(lines)

        pane.show(HEAD, [(Span("all of it"),)], [(Span("the fact"),)])
        await until(lambda: shows("the warranty", "the fact", ""), pilot)
        await pilot.resize_terminal(40, 20)
        await until(lambda: shows("the warranty", "suite.yaml:3", "all of it"), pilot)
        pane.show(HEAD, [(Span("a definition"),)])
        await pilot.resize_terminal(40, 8)
        await until(lambda: pane.size.height == 8, pilot)
        assert shows("the warranty", "suite.yaml:3", "a definition")  # nothing was given in brief
