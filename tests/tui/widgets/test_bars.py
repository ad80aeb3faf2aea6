"""The footer: what is said there beside a status."""

from __future__ import annotations

from types import SimpleNamespace

from textual.app import App, ComposeResult

from tui_eval.tui.widgets.bars import KeyHints


class Footer(App[None]):
    """A footer alone, with a status that tests set."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ""
        self.services = SimpleNamespace(status=lambda: self.words)

    def compose(self) -> ComposeResult:
        yield KeyHints()


def said(footer: KeyHints) -> str:
    return "".join(span[0] for span in footer.row_line(0))


async def test_what_is_said_gives_way_to_a_status_that_grows() -> None:
    app = Footer()
    async with app.run_test(size=(60, 3)) as pilot:
        footer = app.query_one(KeyHints)
        app.words = "● 9/20,000"
        assert footer.say("a run goes on: L shows it", 60)
        await pilot.pause()
        assert said(footer).startswith("a run goes on: L shows it")
        app.words = "● 10,309/20,000 ✓8,836 ✗1,473 ~23s L"
        line = said(footer)
        assert line.endswith(f"…  {app.words}") and line.startswith("a run goes on") and len(line) == 58
