"""What the app tells the screen in front when the run it follows has news.

The app has already put the news into its state when a screen hears of it; a screen behind others
hears nothing and redraws itself from the state when it is shown again (`ScreenResume`).
"""

from __future__ import annotations

from collections.abc import Collection

from textual.message import Message

from tui_eval.store.schema import AttemptRow


class RunChanged(Message, bubble=False):
    """Attempts of `app.state.run` changed; `opened` says that it is another run altogether (or its
    facts, such as paused, changed), so that everything shown of it is out of date. `run_id`: another run
    of `app.state` that the attempts are of; empty: the run in front."""

    def __init__(self, changed: list[AttemptRow], opened: bool = False, run_id: str = "") -> None:
        super().__init__()
        self.changed = changed
        self.opened = opened
        self.run_id = run_id


class LiveText(Message, bubble=False):
    """More text arrived for these attempts (ids of rows of `attempts`) of the run in front, or of the one
    called `run_id`."""

    def __init__(self, attempts: set[int], run_id: str = "") -> None:
        super().__init__()
        self.attempts = attempts
        self.run_id = run_id


class SuitesChanged(Message, bubble=False):
    """Suites were read, or the last outcomes (of these cases only, where `case_ids` are given)."""

    def __init__(self, case_ids: Collection[str] | None = None) -> None:
        super().__init__()
        self.case_ids = case_ids


class Said(Message):
    """A few words for the person (`no next turn`), shown for a moment where the screen shows such."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words = words
