"""The names of a suite's own environment: its `env`, and `.env` files (formats/promptfoo.md 7.3)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tui_eval.formats.promptfoo.read.suite_file import Missing, SuiteReading
from tui_eval.guard.secrets import secret_values
from tui_eval.guard.trust import NeedsTrust, code_by_variable, from_root, runs_code
from tui_eval.model import Case
from tui_eval.nunjucks import templates
from tui_eval.nunjucks.suite_environment import FILLED_IN, SuiteEnvironment, left_in, parse, passed_over

_CODE = re.compile(
    r"\b(?:exec|python|ruby|golang):|\.(?:py|[cm]?[jt]s|rb|go)\b|\bprocess\s{0,20}\??\.\s{0,20}env\b"
)
"""What names code: it finds the `.env` in its environment."""


def own_env(value: Any, reading: SuiteReading, files: Mapping[str, str] | None = None) -> dict[str, str]:
    """The suite's `env:` as texts; values may name variables of the person's environment and of
    `files` (what `.env` files say), which are among the result."""
    result = dict(files or {})
    if value is None:
        return result
    if not isinstance(value, dict):
        reading.problem(reading.name, 0, "env", "must be a mapping of names and values")
        return result
    around = SuiteEnvironment(result, reading.trust)
    own: dict[str, str] = {}
    for name, given in value.items():
        if given is None:
            continue
        plain = "true" if given is True else "false" if given is False else str(given)
        own[str(name)] = fill(plain, around, reading.keep_secret)
    return {**result, **own}


def env_files(named: Any, text: str, reading: SuiteReading) -> dict[str, str]:
    """What the `.env` beside the suite says, and the files of `commandLineOptions.envPath`.

    Their names are secrets' names as often as not: they are read only where the folder is trusted.
    As in the tool, the environment wins over `.env`, and a file that is named wins over both.
    """
    if reading.trust.granted or FILLED_IN.search(text) is not None or _CODE.search(text) is not None:
        read_beside(reading)
    paths = named if isinstance(named, list) else [named]
    for path in (part.strip() for given in paths if isinstance(given, str) for part in given.split(",")):
        if path and _may_read(reading.base / path, reading):
            reading.env_file.update(_allowed(_env_file(path, reading), reading.base / path, reading))
    return dict(reading.env_file)


def read_beside(reading: SuiteReading) -> None:
    """Read the `.env` beside the suite, where there is one and it may be read."""
    beside = reading.base / ".env"
    if beside.is_file() and _may_read(beside, reading):
        reading.env_beside = True
        found = {name: one for name, one in _env_file(".env", reading).items() if name not in os.environ}
        reading.env_file = {**_allowed(found, beside, reading), **reading.env_file}


def _may_read(file: Path, reading: SuiteReading) -> bool:
    what = f"read {from_root(file, reading.root)}"
    if reading.want(what):
        return True
    if what not in reading.env_unread:
        reading.env_unread.append(what)
    return False


def _allowed(found: dict[str, str], file: Path, reading: SuiteReading) -> dict[str, str]:
    """Without the variables by which code is run that nobody agreed to: who lets a file be read, and a script be run,
    has said nothing of `NODE_OPTIONS=--require=./other.js`."""
    kept: dict[str, str] = {}
    for name, value in found.items():
        if runs_code(name):
            what = code_by_variable(name, from_root(file, reading.root), value)
            if not reading.want(what):
                reading.env_code.append(what)
                continue
        kept[name] = value
    return kept


_LINES_SAID = 5


def _env_file(name: str, reading: SuiteReading) -> dict[str, str]:
    try:
        file = reading.find(name)
        text = reading.text(file)
        for line in passed_over(text)[:_LINES_SAID]:
            said = "no NAME=value: the line is passed over"
            reading.problem(from_root(file, reading.root), line, "", said, level="note")
        return parse(text)
    except Missing as error:
        reading.problem(reading.name, 0, "commandLineOptions.envPath", str(error))
        return {}


def fill(text: str, env: Mapping[str, str], keep: Callable[[Iterable[str]], None]) -> str:
    """A text with its `{{ env.NAME }}` filled in; what is unknown or needs trust stays as it is. `keep` takes what
    a filter made of a secret (`| upper`), which is one in other letters."""
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
                made = templates.render(match.group(), {}, env=known)
                keep([] if value is None else secret_values({name: made}))
                return made
        except (KeyError, NeedsTrust, templates.TemplateError):
            pass
        return match.group()

    return FILLED_IN.sub(found, text)


def fill_all(
    value: Any,
    env: Mapping[str, str],
    keep: Callable[[Iterable[str]], None],
    *,
    depth: int = 0,
) -> Any:
    """`fill` for every text in lists and mappings. What holds nothing to fill in is not copied."""
    if isinstance(value, str):
        return fill(value, env, keep)
    if depth > 200:
        return value
    if isinstance(value, list):
        filled = [fill_all(v, env, keep, depth=depth + 1) for v in value]
        return filled if any(a is not b for a, b in zip(filled, value, strict=True)) else value
    if isinstance(value, dict):
        mapped = {k: fill_all(v, env, keep, depth=depth + 1) for k, v in value.items()}
        return mapped if any(mapped[k] is not v for k, v in value.items()) else value
    return value


def left_out(case: Case) -> Iterator[str]:
    """The variables that stand in a case unfilled where it is no template when it is judged: `not-is-json` with
    `{const: "{{env.WORD}}"}` passes as it stands. Who judges is asked for where it is asked, and its prompt is a
    template."""
    options = {key: one for key, one in case.options.items() if key not in ("provider", "rubricPrompt")}
    own = dict(case.beside or {})
    column = own.pop("columnProvider", None) or case.provider
    transform = column.get("transform") if isinstance(column, dict) else None
    parts = (case.vars, case.metadata, options, own, transform, case.provider_output)
    of_assertions = [
        (None if _is_template(one.value) else one.value, one.transform, one.config, one.extra)
        for one in case.asserted
    ]
    return left_in([parts, of_assertions])


def _is_template(value: Any) -> bool:
    """Whether an assertion's value is filled in when it is judged: what it lacks is then an error of it alone."""
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))
