"""Reading suites: which format a file is, what it says, and what `tui_eval.yaml` adds; and results files that the
formats' own tools wrote, opened as runs.

Nothing raises for what a suite's file says: problems are values, with their place.
"""

from __future__ import annotations

import fnmatch
import gc
import os
import re
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui_eval.config.project import Config, masker, rule_for
from tui_eval.formats import UNTOLD, all_formats, format_of
from tui_eval.formats.discovery import discover, looks_for, reader_for, suite_path, why_none
from tui_eval.formats.format import Format, OurResults
from tui_eval.guard.paths import read_file
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Case, Problem, Suite

__all__ = [
    "SuiteCache",
    "all_cases",
    "discover",
    "load",
    "load_all",
    "looks_for",
    "problems_of",
    "remaining",
    "unreadable",
    "with_ids",
    "without_parts",
]


_TICK_NS = 20_000_000
"""Two changes of a file that are nearer to each other may have the same time."""


def _of_configs() -> Format:
    """The format of files that are suites because the person says so (`-c`)."""
    return next(one for one in all_formats() if one.takes_configs)


def configs(given: Sequence[str]) -> list[Path]:
    """The files that `-c` means, to be read as one suite; none: they are suites side by side."""
    return _of_configs().configs(given)


def load(path: Path, config: Config, trust: Trust) -> Suite:
    """Read one suite file and fill in what `tui_eval.yaml` says for suites that leave it open.

    Never raises: a file that cannot be read or is no suite is a suite without cases whose
    problems say why. The suite's problems include those of its cases, which keep theirs too.
    """
    absolute = Path(os.path.abspath(config.root / path))
    shown = suite_path(absolute, config.root)
    text = _read_text(absolute, shown)
    if isinstance(text, Problem):
        return Suite(path=shown, format=UNTOLD, name=absolute.stem, problems=[text], files=[str(absolute)])
    given = str(absolute) in config.typed.get("configs", ())
    reader = _of_configs() if given else reader_for(shown, text, config.root)
    if reader is None:
        problems = why_none(shown, text, config.root)
        return Suite(path=shown, format="", name=absolute.stem, problems=problems, files=[str(absolute)])
    try:
        suite = reader.read(shown, text, config, trust)
    except NeedsTrust as error:
        suite = Suite(path=shown, format=UNTOLD, problems=[Problem(shown, 0, "", str(error))])
    except (Exception, RecursionError) as error:
        line = " ".join(f"{type(error).__name__}: {error}".split())
        problem = Problem(shown, 0, "", f"could not be read ({line})")
        suite = Suite(path=shown, format=UNTOLD, problems=[problem])
    if not reader.own_ids:
        from tui_eval.suites import identity

        identity.name_cases(suite, masker(config).text)
    suite.name = suite.name or absolute.stem
    if str(absolute) not in suite.files:
        suite.files.insert(0, str(absolute))
    keep_secret(suite, config)
    _fill_in(suite, config)
    suite.problems = problems_of(suite)
    return suite


def keep_secret(suite: Suite, config: Config) -> None:
    """Have the secrets of a suite masked wherever those of its configuration are."""
    config.suite_secrets += [value for value in suite.hidden if value not in config.suite_secrets]


def load_all(paths: Iterable[str | Path], config: Config, trust: Trust) -> list[Suite]:
    """Read the suites that `paths` (files and folders) hold, sorted by path.

    What cannot be read or found is in the list as a suite without cases, with its problem.
    """
    found, problems = discover(
        [Path(path) for path in paths], config.root, config.typed.get("configs", ()), trust
    )
    suites = without_parts([load(path, config, trust) for path in found], config)
    problems = remaining(problems, suites, config)
    notes = [problem for problem in problems if problem.level == "note"]
    suites += unreadable(problems)
    suites.sort(key=lambda suite: Path(suite.path).parts)
    return [Suite(path="", format=UNTOLD, problems=notes), *suites] if notes else suites


class SuiteCache:
    """Suites kept between the runs of an app: read again only when one of their files changed (path, time or size)."""

    def __init__(self) -> None:
        self._suites: dict[tuple[Path, bool, frozenset[str], str | None, str], tuple[tuple, Suite]] = {}

    def load(self, paths: Sequence[Path], config: Config, trust: Trust) -> list[Suite]:
        """Every suite of the paths, in order; unreadable ones carry their problems."""
        found, problems = discover(paths, config.root, config.typed.get("configs", ()), trust)
        loaded: list[Suite] = []
        for path in found:
            rule = rule_for(config, suite_path(path, config.root))
            key = (path, trust.granted, trust.agreed, rule.compat if rule else None, repr(config.typed))
            known = self._suites.get(key)
            if known is not None and known[0] == _stamp(known[1].files or [str(path)], config):
                keep_secret(known[1], config)
                loaded.append(known[1])
                continue
            began = time.time_ns()
            suite = load(path, config, trust)
            stamp = _stamp(suite.files or [str(path)], config)
            if max(modified for _, modified, _ in stamp) < began - _TICK_NS:
                self._suites[key] = (stamp, suite)
            else:  # written while it was read, perhaps, or just before, when another change may look the same
                self._suites.pop(key, None)
            loaded.append(suite)
        loaded = without_parts(loaded, config)
        left = remaining(problems, loaded, config)
        if left:
            loaded.append(Suite(path="", format=UNTOLD, problems=list(left)))
        return loaded


def _stamp(files: Sequence[str], config: Config) -> tuple[tuple[str, int, int], ...]:
    """What tells a state of these files and of the configuration from another: path, time in ns, size in bytes."""
    stamps: list[tuple[str, int, int]] = []
    for name in (*files, str(config.file or ""), config.nao.path if config.nao else ""):
        try:
            status = Path(name).stat()
            stamps.append((name, status.st_mtime_ns, status.st_size))
        except OSError:
            stamps.append((name, 0, 0))
    return tuple(stamps)


def unreadable(problems: Iterable[Problem]) -> list[Suite]:
    """What `discover` could not read, as suites without cases, each with its problem."""
    errors = [problem for problem in problems if problem.level == "error"]
    return [Suite(path=p.path, format="", name=Path(p.path).stem, problems=[p]) for p in errors]


def remaining(problems: Sequence[Problem], loaded: Sequence[Suite], config: Config) -> Sequence[Problem]:
    """What `discover` said, without files that it passed over and that a suite or the configuration names: they are
    read there."""
    if not any(problem.passed_over for problem in problems):
        return problems
    used = {os.path.realpath(file) for suite in loaded for file in suite.files}
    named = [text for spec in config.agents.values() for text in _texts(spec.options)]
    used |= {os.path.realpath(config.root / text.removeprefix("file://")) for text in named}
    later = re.compile("|".join(map(fnmatch.translate, _references(loaded, config.root))) or "(?!)")

    def is_used(problem: Problem) -> bool:
        path = os.path.realpath(config.root / problem.path)
        return path in used or later.match(path) is not None

    return [one for one in problems if not (one.passed_over and is_used(one))]


def without_parts(loaded: list[Suite], config: Config) -> list[Suite]:
    """The suites without files that have no case of their own and are read by another that has: what is wrong in
    them is said there."""
    parts = {suite.path for suite in loaded if any(one.passed_over for one in suite.problems)}
    parts -= {suite.path for suite in loaded if suite.path in parts and suite.cases}
    if not parts:
        return loaded
    used = {os.path.realpath(file) for suite in loaded if suite.path not in parts for file in suite.files}
    return [
        suite
        for suite in loaded
        if suite.path not in parts or os.path.realpath(config.root / suite.path) not in used
    ]


def _references(loaded: Iterable[Suite], root: Path) -> set[str]:
    """What the files of suites name with `file://`, absolute, also what is only read when a case runs."""
    found: set[str] = set()
    for suite in loaded:
        for file in suite.files:
            with suppress(OSError, ValueError):
                for name in re.findall(_REFERENCE, read_file(Path(file), _LARGEST_NAMING)):
                    named = name.decode("utf-8", "replace")
                    for base in (os.path.dirname(file), os.path.dirname(root / suite.path)):
                        found.add(os.path.realpath(os.path.join(base, named)))
    return found


_REFERENCE = rb"""file://([^\s"'`,;{}()]+)"""
_LARGEST_NAMING = 16 << 20
"""Bytes of a suite's file in which references are looked for."""


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return [value] if value and len(value) < 1000 and "\0" not in value else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in _texts(part)]


def problems_of(suite: Suite) -> list[Problem]:
    """Everything odd or wrong in a suite, its cases included, by place."""
    told = getattr(suite.cases, "problems", None)  # lazy cases know theirs without being made
    own = told() if told else (problem for case in suite.cases for problem in case.problems)
    every = [*suite.problems, *own]
    return sorted(dict.fromkeys(every), key=lambda problem: (problem.path, problem.line))


def _read_text(path: Path, shown: str) -> str | Problem:
    try:
        return read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return Problem(shown, line, "", "not UTF-8 text", "save the file as UTF-8")
    except OSError as error:
        return Problem(shown, 0, "", f"cannot be read: {error.strerror or error}")
    except ValueError as error:  # a NUL in the path
        return Problem(shown, 0, "", f"cannot be read: {error}")


def _fill_in(suite: Suite, config: Config) -> None:
    """What the matching `suites:` entry says, where the suite's own file leaves it open."""
    rule = rule_for(config, suite.path)
    if rule is None:
        return

    def change(case: Case) -> None:
        if rule.attempts and not format_of(case.format).says_attempts(case, suite.settings):
            case.attempts = case.required = rule.attempts
        case.agent = case.agent or rule.agent
        case.model = case.model or rule.model
        case.database = case.database or rule.database
        if rule.comparison:
            case.comparison = {**rule.comparison, **(case.comparison or {})}

    later = getattr(suite.cases, "each", None)
    if later:
        later(change)
    else:
        for case in suite.cases:
            change(case)


def all_cases(loaded: Iterable[Suite]) -> list[Case]:
    """Every case of the suites, made."""
    # So many new values are no garbage: looking for some among them would double the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return [case for suite in loaded for case in suite.cases]
    finally:
        if collecting:
            gc.enable()


def with_ids(loaded: Iterable[Suite], wanted: Iterable[str]) -> list[Case]:
    """The cases that have one of these ids, in order; of large tables only they are made."""
    names = frozenset(wanted)
    result: list[Case] = []
    for suite in loaded:
        pick = getattr(suite.cases, "with_ids", None)
        result.extend(pick(names) if pick else (case for case in suite.cases if case.case_id in names))
    return result


def as_ours(document: Any, path: Path) -> OurResults | None:
    """What the first format that knows the document makes of it."""
    for one in all_formats():
        with suppress(Exception):  # another package's format must not hide the rest
            if (made := one.as_ours(document, path)) is not None:
                return made
    return None


def is_results(path: Path) -> bool:
    """Whether this is a results file (rather than a suite that is written in JSON)."""
    from tui_eval.store.imported import results_files  # imported late: most paths are suites

    return results_files.is_results(path, as_ours)


def open_results(path: Path) -> Path:
    """The folder of the run that a results file names.

    Raises:
        StoreError: it cannot be read, is no results file, or the cache folder cannot be written.
    """
    from tui_eval.store.imported import results_files

    return results_files.open_results(path, as_ours)
