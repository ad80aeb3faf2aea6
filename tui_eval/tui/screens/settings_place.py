"""The person's settings: what is in force, and the file they are in."""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.constants import MAX_FPS

from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import KEYS, bindings
from tui_eval.tui.keys_case import CASE_KEYS, QUERY_KEYS
from tui_eval.tui.keys_runs import RUN_PLACES
from tui_eval.tui.screens.help import PaperScreen, Paragraphs
from tui_eval.tui.screens.place import keys_in, keys_of, labelled
from tui_eval.tui.settings import settings_file
from tui_eval.tui.state.settings_view import EXAMPLE, InForce, settings_paragraphs


class SettingsScreen(PaperScreen, inherit_bindings=False):
    """Paragraphs as of help and log; `e` opens the file, `t` shows the themes."""

    TITLE = "Settings"
    kind = "settings"
    BINDINGS = bindings("settings")
    KEY_SECTIONS = (("Settings", keys_in("settings")), ("Moving", keys_in("moving")))
    FOOTER = labelled(keys_of("settings.edit", "settings.theme", "back", "help", "quit"), "quit", "close")

    def __init__(self) -> None:
        super().__init__("Settings", self._paragraphs)

    def on_mount(self) -> None:
        """Tell when the theme changes under it."""
        super().on_mount()
        self.app.theme_changed_signal.subscribe(self, lambda _: self.renew())

    def _paragraphs(self) -> Paragraphs:
        services = self.services
        fast = bool(os.environ.get("TUI_EVAL_LOCAL"))
        now = InForce(self.app.theme, MAX_FPS, fast, services.memory.filters)
        return settings_paragraphs(
            services.settings, settings_file(), now, (*KEYS, *CASE_KEYS, *QUERY_KEYS, *RUN_PLACES)
        )

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            "settings.edit": self._edit,
            "settings.theme": self._other_theme,
        }

    def _edit(self) -> None:
        """The file in the editor, made where there is none; what is changed in it holds at once."""
        notices, file = self.services.notices, settings_file()
        try:
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(EXAMPLE, "utf-8")
        except OSError as error:
            notices.problem(f"{file}: cannot be written: {error}")
            return
        trouble = self.services.editor.edit(file)
        if trouble:
            notices.problem(trouble)
        self.services.take_settings()
        self.renew()

    def _other_theme(self) -> None:
        """The themes by name."""
        self.app.search_themes()
