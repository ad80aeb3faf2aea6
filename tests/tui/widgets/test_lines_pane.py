"""A pane of paragraphs in the frames that come before it has heard of its width."""

from __future__ import annotations

from textual.app import App, ComposeResult

from tui_eval.tui.widgets.lines_pane import LinesPane


class Deaf(LinesPane):
    """One that word of its size has not reached yet."""

    def on_resize(self) -> None:
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
