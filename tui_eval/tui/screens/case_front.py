"""What the parts of the Case screen ask of it."""

from __future__ import annotations

from typing import Protocol

from tui_eval.tui.inspector.tab import InspectorTab
from tui_eval.tui.screens.prompt import Prompts
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.widgets.copy_bar import CopyBar


class CaseFront(Protocol):
    """An attempt looked at, in one of several tabs."""

    prompts: Prompts

    @property
    def content(self) -> CaseContent:
        """What is shown of it."""
        ...

    @property
    def tab(self) -> InspectorTab:
        """The tab in front."""
        ...

    @property
    def foot(self) -> CopyBar:
        """The keys, or a question that one key answers."""
        ...

    def has(self, *selectors: str) -> bool:
        """Whether these widgets are there, and the screen with them."""
        ...

    def live_text(self) -> str:
        """What a running attempt has said so far."""
        ...

    def copy_text(self, text: str, what: str) -> str:
        """Copy to the terminal's clipboard; what to say of it."""
        ...

    def say(self, words: str) -> None:
        """A few words for the person, for some seconds."""
        ...

    def announce(self, words: str) -> None:
        """Words to be read again in the log."""
        ...

    def noted(self) -> None:
        """The notes on the attempts have changed."""
        ...
