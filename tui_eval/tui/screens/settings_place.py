"""The person's settings: what is in force, and the file they are in."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from textual.constants import MAX_FPS

from tui_eval.guard.text import clip, visible
from tui_eval.tui.handlers import Handler
from tui_eval.tui.keys import ALL_KEYS, FIND_KEYS, Key, bindings, written
from tui_eval.tui.screens.help import PaperScreen, Paragraphs
from tui_eval.tui.screens.place import keys_in, keys_of, labelled
from tui_eval.tui.settings import Settings, settings_file
from tui_eval.tui.terminal.frame_app import FrameApp

EXAMPLE = """\
# Your own settings of tui-eval; all of it is optional. `tui-eval help settings` explains each key.
#
# theme: tui-eval-light
# notify: notify-send "tui-eval" "$TUI_EVAL_SUMMARY"
# mouse: true
# filters:
#   slow: failed duration:>5s
# keymap:
#   case.rerun: [r, f5]
"""
"""What a settings file that is not there yet begins with."""


@dataclass(frozen=True, slots=True)
class InForce:
    """What holds now: the theme, frames a second, filters saved in this project; `plain`: NO_COLOR is set."""

    theme: str
    frames: int
    fast: bool
    filters: Mapping[str, str]
    plain: bool = False


def settings_paragraphs(
    settings: Settings, file: Path, now: InForce, table: Iterable[Key]
) -> list[tuple[str, str]]:
    """Every setting as it is in force, where it comes from, and what is wrong."""
    shown: list[tuple[str, str]] = [
        ("key", f"file\x00{_one_line(str(file))}{'' if file.exists() else ' (none yet: e begins one)'}"),
    ]
    shown += [("bad", visible(problem)) for problem in settings.problems]
    by_file = "from the file" if settings.theme == now.theme else "t shows others, and remembers yours"
    if now.plain:
        by_file = "NO_COLOR is set: the terminal's own colours stay, whatever the theme"
    profile = (
        "a fast terminal: Textual's own frame rate and animations"
        if now.fast
        else "a slow line (SSH): no animation; tui-eval --local leaves it"
    )
    mouse = (
        "the app's: click, double click opens, wheel; hold shift to select text (T: the terminal's)"
        if settings.mouse
        else "the terminal's: it selects text; T takes it for now, mouse: true in the file for good"
    )
    shown += [
        ("text", ""),
        ("key", f"theme\x00{_one_line(now.theme)} ({by_file})"),
        ("key", f"profile\x00{now.frames} frames a second for keys, ten for what streams; {profile}"),
        (
            "key",
            f"notify\x00{_one_line(settings.notify) or 'the bell only; a command here runs when a run ends'}",
        ),
        ("key", f"mouse\x00{mouse}"),
        ("text", ""),
        ("title", "Filters with names"),
    ]
    filters = {**{name: (text, "file") for name, text in settings.filters.items()}}
    filters |= {name: (text, "this project") for name, text in now.filters.items()}
    shown += [
        ("key", f"@{_one_line(name)}\x00{_one_line(text)} ({origin})")
        for name, (text, origin) in filters.items()
    ] or [("dim", "none; f then slow=failed duration:>5s keeps one")]
    shown += [("text", ""), ("title", "Keys that are yours")]
    rows = {key.id: key for key in table}
    shown += [
        ("key", f"{' '.join(map(written, keys.split(',')))}\x00{name}: {rows[name].words}")
        for name, keys in settings.keymap.items()
        if name in rows
    ] or [("dim", "none; ? lists every key with the name that keymap: knows it by")]
    return shown


def _one_line(text: str) -> str:
    return visible(clip(text, 400), newlines=False)


class SettingsScreen(PaperScreen, inherit_bindings=False):
    """Paragraphs as of help and log; `e` opens the file, `t` shows the themes."""

    TITLE = "Settings"
    kind = "settings"
    BINDINGS = [*bindings("settings"), *bindings("screen", FIND_KEYS)]
    KEY_SECTIONS = (("Settings", (*keys_in("settings"), *FIND_KEYS)), ("Moving", keys_in("moving")))
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
        plain = isinstance(self.app, FrameApp) and self.app.without_colours
        now = InForce(self.app.theme, MAX_FPS, fast, services.memory.filters, plain)
        return settings_paragraphs(services.settings, settings_file(), now, ALL_KEYS)

    def handlers(self) -> Mapping[str, Handler]:
        """What its keys do."""
        return {
            **super().handlers(),
            "settings.edit": self._edit,
            "settings.theme": self._other_theme,
        }

    def _edit(self) -> None:
        """The file in the editor, made where there is none; what is changed in it holds at once. One that was made and
        not saved is taken away again."""
        notices, file = self.services.notices, settings_file()
        made = None
        try:
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(EXAMPLE, "utf-8")
                made = file.stat().st_mtime_ns
        except OSError as error:
            notices.problem(f"{file}: cannot be written: {error}")
            return
        trouble = self.services.editor.edit(file)
        with suppress(OSError):
            if file.stat().st_mtime_ns == made:
                file.unlink()
        if trouble:
            notices.problem(trouble)
        self.services.take_settings()
        self.renew()

    def _other_theme(self) -> None:
        """The themes by name."""
        self.services.places.show_themes()
