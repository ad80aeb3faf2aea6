"""What Runs asks for in its prompt: words to search a run's transcripts for, words that the runs shown hold."""

from __future__ import annotations

from pathlib import Path

from textual import on
from textual.widgets import Input

from tui_eval.tui.screens.place import Place
from tui_eval.tui.screens.prompt import Prompt
from tui_eval.tui.screens.search_screen import SearchScreen
from tui_eval.tui.state.lists.run_line import RunLine


class RunsAsking(Place, inherit_bindings=False):
    """The one derived shows the runs that hold the words of `filter`."""

    def __init__(self) -> None:
        super().__init__()
        self.filter = ""
        """Words that the runs shown hold."""

    @property
    def chosen(self) -> RunLine | None:
        """The run under the cursor."""
        raise NotImplementedError

    def folder_of(self, run_id: str) -> Path:
        """Where a run is kept."""
        raise NotImplementedError

    def filtered(self) -> None:
        """Show what the filter lets through."""
        raise NotImplementedError

    def prompt_left(self) -> None:
        """Nothing is typed any more: the focus goes back."""
        raise NotImplementedError

    async def action_search(self) -> None:
        """Ask for words to find in the run's transcripts."""
        if self.chosen is not None:
            await self._ask("search transcripts", "", "words that an entry holds; enter searches")

    async def action_filter(self) -> None:
        """Ask for words that the runs shown must hold."""
        await self._ask("filter", self.filter, "words of what, agent, state or id")

    def action_clear_filter(self) -> None:
        """Every run again."""
        self.filter_by("")

    async def _ask(self, purpose: str, text: str, hint: str) -> None:
        """Ends when the prompt has the focus: keys typed ahead belong to it (see `typing_ahead`)."""
        if not self.query(Prompt):
            prompt = Prompt(purpose, text, hint)
            await self.mount(prompt)
            self.set_focus(prompt.query_one(Input), scroll_visible=False)

    def filter_by(self, text: str) -> None:
        """Show only runs that hold these words."""
        self.filter = text.strip()
        self.filtered()

    @on(Prompt.Typed)
    def _typed(self, event: Prompt.Typed) -> None:
        event.stop()
        if event.purpose == "filter":
            self.filter_by(event.text)

    @on(Prompt.Left)
    def _asked(self, event: Prompt.Left) -> None:
        event.stop()
        for prompt in self.query(Prompt):
            prompt.remove()
        self.prompt_left()
        if event.purpose == "filter":
            self.filter_by(event.text if event.kept else "")
            return
        one = self.chosen
        if event.kept and event.text.strip() and one is not None:
            self.app.push_screen(SearchScreen(self.folder_of(one.run.id), event.text.strip()))
