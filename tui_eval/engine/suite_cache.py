"""Suites kept between the runs of an app, so that a rerun does not read them again."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tui_eval.config.project import Config, rule_for
from tui_eval.formats import UNTOLD, reading
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite

_TICK_NS = 20_000_000
"""Two changes of a file that are nearer to each other may have the same time."""


class SuiteCache:
    """Suites read before, read again only when one of their files changed (path, time or size)."""

    def __init__(self) -> None:
        self._suites: dict[tuple[Path, bool, frozenset[str], str | None, str], tuple[tuple, Suite]] = {}

    def load(self, paths: Sequence[Path], config: Config, trust: Trust) -> list[Suite]:
        """Every suite of the paths, in order; unreadable ones carry their problems."""
        found, problems = reading.discover(paths, config.root, config.typed.get("configs", ()), trust)
        loaded: list[Suite] = []
        for path in found:
            rule = rule_for(config, reading.from_root(path, config.root))
            key = (path, trust.granted, trust.agreed, rule.compat if rule else None, repr(config.typed))
            known = self._suites.get(key)
            if known is not None and known[0] == _stamp(known[1].files or [str(path)], config):
                reading.keep_secret(known[1], config)
                loaded.append(known[1])
                continue
            began = time.time_ns()
            suite = reading.load(path, config, trust)
            stamp = _stamp(suite.files or [str(path)], config)
            if max(modified for _, modified, _ in stamp) < began - _TICK_NS:
                self._suites[key] = (stamp, suite)
            else:  # written while it was read, perhaps, or just before, when another change may look the same
                self._suites.pop(key, None)
            loaded.append(suite)
        left = reading.remaining(problems, loaded, config)
        if left:
            loaded.append(Suite(path="", format=UNTOLD, problems=list(left)))
        return loaded


def _stamp(files: Sequence[str], config: Config) -> tuple:
    stamps: list[tuple[str, int, int]] = []
    for name in (*files, str(config.file or ""), config.nao.path if config.nao else ""):
        try:
            status = Path(name).stat()
            stamps.append((name, status.st_mtime_ns, status.st_size))
        except OSError:
            stamps.append((name, 0, 0))
    return tuple(stamps)
