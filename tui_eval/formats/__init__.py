"""The formats of suites, a folder each behind one `Format` (`format.py`), and what asks them: reading, discovery,
judging, accepting, saving.

Here alone the four are listed; another package brings one by an entry point `tui_eval.formats`. Nothing outside these
folders knows what only one format knows; what several share is in `suites`, `assertions` and `yaml`. May not: start
runs, know the store, the reports or the app.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tui_eval import extensions
from tui_eval.formats.format import FirstSuite, Format, ReaderFormat, UnknownFormat, late

if TYPE_CHECKING:
    from tui_eval.assertions.judge_input import JudgeInput, Judgement

__all__ = [
    "UNTOLD",
    "FirstSuite",
    "Format",
    "added_formats",
    "all_formats",
    "format_called",
    "format_of",
    "judge",
    "names",
    "not_loaded",
    "offered",
    "our_formats",
    "title_of",
]

_OURS = {
    "promptfoo": "tui_eval.formats.promptfoo.promptfoo_format:PROMPTFOO",
    "neuro_san": "tui_eval.formats.neuro_san.neuro_san_format:NEURO_SAN",
    "start_to_agent": "tui_eval.formats.start_to_agent.start_to_agent_format:START_TO_AGENT",
    "nao": "tui_eval.formats.nao.nao_format:NAO",
}
"""In the order in which a file is offered to them."""
UNTOLD = "nao"
"""The format of a file that cannot be read, and of a result that names none."""
_SHOWN = ("start_to_agent", "nao", "promptfoo", "neuro_san")
"""The order in which people are offered them."""


@cache
def our_formats() -> tuple[Format, ...]:
    """Those of this package, in the order in which a file is offered to them."""
    return tuple(map(_ours, _OURS))


@cache
def _ours(name: str) -> Format:
    return late(_OURS[name])


@cache
def added_formats() -> tuple[Format, ...]:
    """Those of other packages; one that cannot be loaded is left out (`not_loaded`)."""
    found = (_added(name) for name in extensions.installed("formats"))
    return tuple(one for one in found if one is not None)


@cache
def _added(name: str) -> Format | None:
    try:
        return _as_format(name, extensions.load("formats", name))
    except extensions.ExtensionError:
        return None


def not_loaded() -> list[str]:
    """Of each format whose package cannot be loaded, one line that names it and says why."""
    found: list[str] = []
    for name in extensions.installed("formats"):
        try:
            extensions.load("formats", name)
        except extensions.ExtensionError as error:
            found.append(str(error))
    return found


def _as_format(name: str, found: Any) -> Format:
    """What stands behind an entry point: a `Format`, or a module that has one, or one that only reads."""
    for one in (found, getattr(found, "FORMAT", None)):
        if isinstance(one, Format):
            one.name = one.name or name
            return one
    return ReaderFormat(name, found)


def all_formats() -> tuple[Format, ...]:
    """Every format that there is, ours first."""
    return (*our_formats(), *added_formats())


@cache
def format_of(name: str) -> Format:
    """The format with this name (`Case.format`); one that nothing installed knows has no rules of its own."""
    if name in _OURS:
        return _ours(name)
    if name in extensions.installed("formats") and (one := _added(name)) is not None and one.name == name:
        return one
    return next((one for one in added_formats() if one.name == name), None) or UnknownFormat(name)


async def judge(evidence: JudgeInput) -> Judgement:
    """Judge every assertion of a case by the rules of its format; nothing raises but cancellation."""
    return await format_of(evidence.case.format).judge_case(evidence)


def names() -> list[str]:
    """The names of all formats as people are offered them; nothing is imported."""
    return [*_SHOWN, *(name for name in extensions.installed("formats") if name not in _SHOWN)]


def offered() -> list[Format]:
    """All formats in the order of `names`; one that cannot be loaded is left out."""
    added = {one.name: one for one in added_formats()}
    return [_ours(name) for name in _SHOWN] + [one for one in added.values() if one.name not in _OURS]


def title_of(name: str) -> str:
    """What people are shown for `Case.format`."""
    return format_of(name).title


def format_called(name: str) -> Format:
    """The format that `names` lists under this name.

    Raises:
        extensions.ExtensionError: its package cannot be loaded.
    """
    if name in _OURS:
        return _ours(name)
    return _as_format(name, extensions.load("formats", name))
