"""What style words look like: one table, resolved once for each theme and background.

Lines carry words (`"failed hit"`), never colours: state modules know no theme. A table in place of component
classes: those are matched anew for every widget, which costs at each screen that opens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.color import Color as RichColor
from rich.style import Style
from textual.app import App
from textual.color import Color
from textual.dom import DOMNode


class Look(NamedTuple):
    """What a word looks like: colours by their names in the theme (`$text-error`, `$warning 40%`), and
    attributes in Rich's words."""

    color: str = ""
    attributes: str = ""
    background: str = ""


_PLAIN = Look()
_MUTED = Look("$text-muted")
_STRONG = Look(attributes="bold")
LOOKS: dict[str, Look] = {
    "muted": _MUTED,
    "label": _MUTED,
    "strong": _STRONG,
    "heading": Look("$text-primary", "bold"),
    "emphasis": Look(attributes="italic"),
    "code": Look("$text-accent"),
    "thinking": Look("$text-muted", "italic"),
    "note": Look("$text-warning"),
    "error": Look("$text-warning", "bold"),
    "agent": Look("$text-secondary", "bold"),
    "json-key": Look("$text-primary"),
    "json-text": Look("$text-success"),
    "json-number": Look("$text-accent"),
    "json-word": Look("$text-accent"),
    "json-mark": _MUTED,
    "passed": Look("$text-success"),
    "failed": Look("$text-error", "bold"),
    "cancelled": _MUTED,
    "skipped": _MUTED,
    "running": Look("$text-primary"),
    "waiting": _MUTED,
    "not-run": _MUTED,
    "role-user": Look("$text-primary", "bold"),
    "role-assistant": Look("$text-success", "bold"),
    "role-reasoning": _MUTED,
    "role-tool_call": Look("$text-accent", "bold"),
    "role-tool_result": Look("$text-accent"),
    "role-hand_off": Look("$text-secondary", "bold"),
    "role-note": _MUTED,
    "role-error": Look("$text-error", "bold"),
    "removed": Look("$text-error", "reverse"),
    "added": Look("$text-warning", "reverse"),
    "removed-sign": Look("$text-error", "bold"),
    "added-sign": Look("$text-warning", "bold"),
    "differs": Look("$text-error", "bold"),
    "was": Look("$text-success"),
    "missing": Look("$text-error"),
    "extra": Look("$text-warning"),
    "tab": Look(),
    "tab-empty": _MUTED,
    "tab-active": Look(attributes="bold reverse"),
    "hit": Look(attributes="underline", background="$warning 40%"),
    "hit-here": Look(attributes="reverse bold"),
    "cell-here": Look(attributes="reverse bold"),
    "hit-wanted": Look(attributes="underline", background="$success 30%"),
    "hit-forbidden": Look(attributes="bold underline", background="$error 45%"),
    "hit-near": Look(attributes="italic underline", background="$warning 25%"),
    "text": _PLAIN,
    "item": _PLAIN,
    "dim": _MUTED,
    "new": _MUTED,
    "user": _MUTED,
    "result": _MUTED,
    "title": Look("$foreground", "bold"),
    "term": Look("$text-accent"),
    "key": Look("$text-accent"),
    "literal": Look("$secondary"),
    "tool": Look("$text-secondary"),
    "handoff": Look("$text-accent"),
    "reasoning": Look("$text-muted", "italic"),
    "good": Look("$text-success"),
    "bad": Look("$text-error"),
    "warn": Look("$text-warning"),
    "late": Look("$text-warning"),
    "flaky": Look("$text-warning"),
    "retrying": Look("$text-warning"),
    "mark": Look("$text-accent", "bold"),
    "found": Look(attributes="underline"),
    "rule": Look("$surface-lighten-2"),
    "bar": Look("$primary"),
    "head": Look(background="$surface"),
    "head-selected": Look(attributes="bold", background="$surface-lighten-2"),
    "cursor": Look(background="$primary 30%"),
    "cursor-away": Look(background="$foreground 8%"),
}
"""Every style word. A widget may give words looks of its own (`RowView.LOOKS`)."""
_ANSI_LOOKS: dict[str, Look] = {
    "cursor": Look(attributes="reverse"),
    "cursor-away": Look(attributes="underline"),
    "head": Look(attributes="underline"),
    "head-selected": Look(attributes="reverse"),
    "term": Look("$text-accent", "bold"),
    "key": Look("$text-accent", "bold"),
    "hit": Look(attributes="underline bold"),
    "cell-here": Look(attributes="underline bold"),
    "hit-wanted": Look(attributes="underline bold"),
    "hit-forbidden": Look(attributes="reverse"),
    "hit-near": Look(attributes="italic underline"),
}
"""Those that look otherwise in the terminal's own colours, which have no shades; what is muted is dim there."""


class Styles:
    """The styles of words over one background, in one theme."""

    def __init__(self, app: App[object], under: Color, own: Mapping[str, Look]) -> None:
        self._variables = app.get_css_variables()
        self._ansi = app.native_ansi_color
        self._under = under
        self._own = own
        self._made: dict[str, Style] = {"": Style.null()}

    def __getitem__(self, words: str) -> Style:
        """The style of one or several words, later ones on top.

        Raises:
            KeyError: there is no such word.
        """
        made = self._made.get(words)
        if made is None:
            made = Style.null()
            for word in words.split():
                made += self._one(word)
            self._made[words] = made
        return made

    def _one(self, word: str) -> Style:
        look = self._own.get(word) or LOOKS[word]
        if self._ansi:
            look = _ANSI_LOOKS.get(word, look)
            if look.color == "$text-muted":
                look = Look("ansi_default", f"dim {look.attributes}")
        under, front, back = self._under, None, None
        if look.background:
            under = under + self._color(look.background, under)
            back = under.rich_color
        if look.color:
            front = self._over(look.color, under)
        return Style.from_color(front, back) + Style.parse(look.attributes or "none")

    def _over(self, name: str, under: Color) -> RichColor:
        return (under + self._color(name, under)).rich_color

    def _color(self, name: str, under: Color) -> Color:
        """A colour of the theme; `auto 60%` is what can be read on the background."""
        name, _, share = name.partition(" ")
        value, _, own_share = self._variables.get(name.removeprefix("$"), name).partition(" ")
        alpha = 1.0
        for part in (share, own_share):
            if part:
                alpha *= float(part.removesuffix("%")) / 100
        if value == "auto":
            return under.get_contrast_text(alpha)
        color = Color.parse(value)
        return color if alpha == 1.0 else color.multiply_alpha(alpha)


_MADE: dict[tuple[object, ...], Styles] = {}
_MOST = 64


def styles_of(node: DOMNode, own: Mapping[str, Look]) -> Styles:
    """The styles for a widget as it stands: the same for all of its like, as long as the theme is."""
    app = node.app
    theme, under = app.current_theme, node.background_colors[1]
    key = (theme.name, theme.background, theme.primary, app.native_ansi_color, under, id(own))
    if key not in _MADE:
        if len(_MADE) >= _MOST:
            _MADE.clear()
        _MADE[key] = Styles(app, under, own)
    return _MADE[key]
