"""`{{ env.NAME }}`: from the suite's own names, and from the person's environment where trusted; and `.env` files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tui_eval.guard.trust import Trust, variable
from tui_eval.nunjucks import templates

# -- `.env` files: names and values for templates and providers (formats/promptfoo.md 7.3).


_LINE = re.compile(
    r"""
    ^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*(?:=[ \t]*|:[ \t]+)
    (?:'((?:\\'|[^'])*)'|"((?:\\"|[^"])*)"|`((?:\\`|[^`])*)`|([^\#\r\n]*))?
    [ \t]*(?:\#[^\r\n]*)?$
    """,
    re.VERBOSE | re.MULTILINE,
)


def parse(text: str) -> dict[str, str]:
    """The names and values of a `.env` file.

    As dotenv reads it: `#` begins a comment outside quotes, `export` is allowed, values may be in
    `'`, `"` or backquotes and span lines; only within `"` do `\\n` and `\\r` mean line breaks.
    """
    result: dict[str, str] = {}
    for found in _LINE.finditer(_lines(text)):
        name, single, double, back, plain = found.groups()
        if double is not None:
            value = double.replace("\\n", "\n").replace("\\r", "\r")
        elif single is not None or back is not None:
            value = single if single is not None else back
        else:
            value = (plain or "").strip()
        result[name] = value
    return result


def passed_over(text: str) -> list[int]:
    """The lines (from 1) of a `.env` file that say something and give no variable."""
    rest = _LINE.sub(lambda found: "\n" * found[0].count("\n"), _lines(text))
    lines = enumerate(rest.split("\n"), 1)
    return [number for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def _lines(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


_NAMED = re.compile(
    r"""\benv\s{0,20}(?:\.\s{0,20}([A-Za-z_]\w*)|\[\s{0,20}["']([^"'\]]{1,200})["']\s{0,20}\])"""
)


FILLED_IN = re.compile(
    r"""\{\{-?\s{0,20}env(?:\.([A-Za-z_]\w{0,200})|\[\s{0,20}["']([^"'\]]{1,200})["']\s{0,20}\])([^{}]{0,400}?)-?\}\}"""
)
"""`{{ env.NAME }}` as it is filled in when a suite is read, wherever it stands."""


def left_in(value: Any) -> Iterator[str]:
    """The variables for which something would have been filled in in the texts of a value, had it been known."""
    waiting = [value]
    while waiting:  # it may be nested however deep
        one = waiting.pop()
        if isinstance(one, str):
            if "{{" in one and "env" in one:
                yield from (found[1] or found[2] for found in FILLED_IN.finditer(one))
        elif isinstance(one, (dict, list, tuple)):
            waiting += one.values() if isinstance(one, dict) else one


def variables_named(text: str) -> list[str]:
    """The variables that a template names: `env.NAME`, `env["NAME"]`."""
    return [found[1] or found[2] for found in _NAMED.finditer(text)]


_TAGS = re.compile(r"""\{[{%](?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'"]){0,2000}?[}%]\}""", re.DOTALL)
_LONG = 20_000
_STRINGS = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
_WHOLE = re.compile(r"(?<![\w.$])env\b(?!\s*=(?!=))")
_WHOLE_OF_NODE = re.compile(r"\bprocess\s*\??\.\s*env\b")


def reads_unnamed(text: str, own: bool = False) -> bool:
    """Whether a template reads `env` otherwise than by a name that stands there, as `env[name]` or `{% set e
    = env %}`, or JavaScript `process.env`: nobody knows which variables it reads. `own`: its `env` is a
    variable of the case."""
    if _WHOLE_OF_NODE.search(_NAMED.sub("", text.replace("env?.", "env."))):
        return True
    if own:
        return False
    # Of a long text, in which tags may begin that do not end, each `env` counts.
    if len(text) > _LONG:
        return bool(_WHOLE.search(_NAMED.sub("", text)))
    return any(_WHOLE.search(_STRINGS.sub("", _NAMED.sub("", tag))) for tag in _TAGS.findall(text))


class SuiteEnvironment(Mapping[str, str]):
    """What `{{ env.NAME }}` finds while a suite is run.

    Its own names (from the suite's `env:`) are there for everybody; asking for any other that the
    person's environment has needs trust. Only its own names are listed.
    """

    def __init__(self, own: Mapping[str, str], trust: Trust, unread: Sequence[str] = ()) -> None:
        """`unread`: what reading those of its `.env` files would need that may not be read; whether they have a name
        that is not known here nobody knows."""
        self._own, self._trust, self._unread = own, trust, unread

    def __getitem__(self, name: str) -> str:
        if name in self._own:
            return self._own[name]
        if name not in self:
            raise KeyError(name)
        if name not in os.environ:
            for what in self._unread:
                self._trust.require(what)
        self._trust.require(variable(name))
        return os.environ[name]

    def __contains__(self, name: object) -> bool:
        if name in self._own:
            return True
        there = isinstance(name, str) and (
            name in os.environ or any(not self._trust.covers(what) for what in self._unread)
        )
        return there and not templates.flag("PROMPTFOO_DISABLE_TEMPLATE_ENV_VARS")

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)
