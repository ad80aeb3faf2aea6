"""CSS that is parsed once in a process, in place of once for each app: its sources are the same in each test."""

from __future__ import annotations

from typing import Any

from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet

Parsed = dict[tuple[Any, ...], list[RuleSet]]

_parsed: dict[frozenset[tuple[str, str]], Parsed] = {}
"""By a theme's variables: what Textual keeps for each of its stylesheets."""
_parse_rules = Stylesheet._parse_rules


def parse_rules(
    self: Stylesheet,
    css: str,
    read_from: tuple[str, str],
    is_default_rules: bool = False,
    tie_breaker: int = 0,
    scope: str = "",
) -> list[RuleSet]:
    """A replacement for `Stylesheet._parse_rules`. What is no CSS is not kept."""
    variables, parsed = self.__dict__.get("_parsed_by_all", (None, {}))
    if variables is not self._variables:
        parsed = _parsed.setdefault(frozenset(self._variables.items()), {})
        self.__dict__["_parsed_by_all"] = self._variables, parsed
    source = css, read_from, is_default_rules, tie_breaker, scope
    if source not in parsed:
        parsed[source] = _parse_rules(self, *source)
    return parsed[source]
