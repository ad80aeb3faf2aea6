"""`{{ env.NAME }}`: from the suite's own `env`, and from the person's environment where trusted."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.scripting import templates
from tui_eval.suites.promptfoo.reading import Reading

_ENV = re.compile(
    r"""\{\{-?\s{0,20}env(?:\.([A-Za-z_]\w{0,200})|\[\s{0,20}["']([^"'\]]{1,200})["']\s{0,20}\])([^{}]{0,400}?)-?\}\}"""
)


class Environment(Mapping[str, str]):
    """What `{{ env.NAME }}` finds while a suite is run.

    Its own names (from the suite's `env:`) are there for everybody; asking for any other that the
    person's environment has needs trust. Only its own names are listed.
    """

    def __init__(self, own: Mapping[str, str], trust: Trust) -> None:
        self._own, self._trust = own, trust

    def __getitem__(self, name: str) -> str:
        if name in self._own:
            return self._own[name]
        if name in os.environ and not templates.flag("PROMPTFOO_DISABLE_TEMPLATE_ENV_VARS"):
            self._trust.require(f"read the environment variable {name}")
            return os.environ[name]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self._own or (isinstance(name, str) and name in os.environ)

    def __iter__(self) -> Iterator[str]:
        return iter(self._own)

    def __len__(self) -> int:
        return len(self._own)


def own_env(value: Any, reading: Reading) -> dict[str, str]:
    """The suite's `env:` as texts; values may name variables of the person's environment."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        reading.problem(reading.name, 0, "env", "must be a mapping of names and values")
        return {}
    result: dict[str, str] = {}
    for name, given in value.items():
        if given is None:
            continue
        plain = "true" if given is True else "false" if given is False else str(given)
        result[str(name)] = fill(plain, Environment({}, reading.trust))
    return result


def fill(text: str, env: Mapping[str, str]) -> str:
    """A text with its `{{ env.NAME }}` filled in; what is unknown or needs trust stays as it is."""
    if "{{" not in text or "env" not in text:
        return text

    def found(match: re.Match[str]) -> str:
        name, after = match.group(1) or match.group(2), match.group(3).strip()
        try:
            if not after:
                return env[name]
            if after.startswith("|"):
                value = env.get(name)
                known = {} if value is None else {name: value}
                return templates.render(match.group(), {}, env=known)
        except (KeyError, NeedsTrust, templates.TemplateError):
            pass
        return match.group()

    return _ENV.sub(found, text)


def fill_all(value: Any, env: Mapping[str, str], *, depth: int = 0) -> Any:
    """`fill` for every text in lists and mappings. What holds nothing to fill in is not copied."""
    if isinstance(value, str):
        return fill(value, env)
    if depth > 200:
        return value
    if isinstance(value, list):
        filled = [fill_all(v, env, depth=depth + 1) for v in value]
        return filled if any(a is not b for a, b in zip(filled, value, strict=True)) else value
    if isinstance(value, dict):
        mapped = {k: fill_all(v, env, depth=depth + 1) for k, v in value.items()}
        return mapped if any(mapped[k] is not v for k, v in value.items()) else value
    return value
