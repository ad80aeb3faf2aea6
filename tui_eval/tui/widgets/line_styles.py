"""The style words of the inspector's state modules, and what they look like.

Colours come from the theme; where it uses the terminal's own colours, what a background would say is
said by reverse, underline or dim. A table, and not component classes of the panes: Textual makes a node
of the DOM for each word of each pane whenever styles are looked at, which was most of the time that
opening a screen took.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.color import Color as RichColor
from rich.style import Style
from textual.app import App
from textual.color import Color


class Look(NamedTuple):
    """What a word looks like: colours by their names in the theme (`$text-error`, `$warning 40%`), and
    attributes in Rich's words."""

    color: str = ""
    attributes: str = ""
    background: str = ""


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
    "missing": Look("$text-error"),
    "extra": Look("$text-warning"),
    "tab": _MUTED,
    "tab-active": Look(attributes="bold reverse"),
    "hit": Look(attributes="underline", background="$warning 40%"),
    "hit-here": Look(attributes="reverse bold"),
    "cell-here": Look(attributes="reverse bold"),
    "hit-wanted": Look(attributes="underline", background="$success 30%"),
    "hit-forbidden": Look(attributes="bold underline", background="$error 45%"),
    "hit-near": Look(attributes="italic underline", background="$warning 25%"),
    "cursor": Look(background="$primary 30%"),
    "cursor-away": Look(background="$foreground 8%"),
}
"""Every style word of the state modules."""
_DIM = Look("ansi_default", "dim")
_OWN_COLOURS: dict[str, Look] = {
    **{word: _DIM for word, look in LOOKS.items() if look.color == "$text-muted"},
    "cursor": Look(attributes="reverse"),
    "cursor-away": Look(attributes="underline"),
    "hit": Look(attributes="underline bold"),
    "cell-here": Look(attributes="underline bold"),
    "hit-wanted": Look(attributes="underline bold"),
    "hit-forbidden": Look(attributes="reverse"),
    "hit-near": Look(attributes="italic underline"),
}
"""Those that look otherwise in the terminal's own colours."""


def style_of(app: App[object], word: str, under: Color) -> Style:
    """A word's style over a background.

    Raises:
        KeyError: there is no such word.
    """
    look = LOOKS[word]
    if app.native_ansi_color:
        look = _OWN_COLOURS.get(word, look)
    variables = _variables(app)
    back = front = None
    if look.background:
        under = under + _color(look.background, variables, under)
        back = under.rich_color
    if look.color:
        front = _over(look.color, variables, under)
    return Style.from_color(front, back) + Style.parse(look.attributes or "none")


_MADE: dict[tuple[str, str | None, str], dict[str, str]] = {}


def _variables(app: App[object]) -> dict[str, str]:
    """The theme's colours by name; making them takes a millisecond, and there are many words."""
    theme = app.current_theme
    key = (theme.name, theme.background, theme.primary)
    if key not in _MADE:
        _MADE[key] = app.get_css_variables()
    return _MADE[key]


def _over(name: str, variables: dict[str, str], under: Color) -> RichColor:
    return (under + _color(name, variables, under)).rich_color


def _color(name: str, variables: dict[str, str], under: Color) -> Color:
    """A colour of the theme; `auto 60%` is what can be read on the background."""
    name, _, share = name.partition(" ")
    value, _, own_share = variables.get(name.removeprefix("$"), name).partition(" ")
    alpha = 1.0
    for part in (share, own_share):
        if part:
            alpha *= float(part.removesuffix("%")) / 100
    if value == "auto":
        return under.get_contrast_text(alpha)
    color = Color.parse(value)
    return color if alpha == 1.0 else color.multiply_alpha(alpha)
