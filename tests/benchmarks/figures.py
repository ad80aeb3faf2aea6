"""What benchmarks measure: a line as each is done, one table with the budgets at the end, and the help page
Measured."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

BUSY = 0.15
"""Share of the processors' time that others take from which on a time says something about them."""
_LOOKS, _LOOK = 4, 0.5
"""How often it is looked, for so many seconds: what the benchmark before left may still be ending."""
SECTIONS = ("The same suite in three tools", "A run", "The app", "Data", "Ray on this machine")
"""Heads of the page, in their order; others follow."""
MARK = "\\*"


@dataclass(frozen=True)
class Figure:
    """Something measured: its section, what, the figures in words, the budget in words, whether it is held (None: there
    is no budget), and whether it is a time that something else on the machine has made longer."""

    section: str
    what: str
    measured: str
    budget: str = ""
    held: bool | None = None
    disturbed: bool = False


class Figures:
    """The figures of one run of pytest, in the order in which they were measured."""

    def __init__(self, tell: Callable[[str], None] = print) -> None:
        self.tell = tell
        self._test: list[Figure] = []
        self._busy = False
        self.all: list[Figure] = []
        self.skipped: list[str] = []

    def begin(self, busy: bool) -> None:
        """A test begins, on a machine that has other work or has none."""
        self._test, self._busy = [], busy

    def add(
        self,
        section: str,
        what: str,
        measured: str,
        budget: str = "",
        held: bool | None = None,
        *,
        timed: bool = False,
    ) -> None:
        """Keep a figure, and print it. `timed`: it is a time, not a ratio of what was measured in turns, and
        not a size."""
        figure = Figure(section, what, measured, budget, held, timed and self._busy)
        self._test.append(figure)
        self.all.append(figure)
        over = " OVER" if held is False else ""
        self.tell(f"{what}: {measured}{f' (budget {budget}{over})' if budget else ''}")

    def hold(self) -> None:
        """At the end of a test, when all of its figures are known: are they within their budgets?"""
        over = [f"{one.what}: {one.measured}, budget {one.budget}" for one in self._test if one.held is False]
        assert not over, "; ".join(over)

    def skip(self, line: str) -> None:
        """What was not measured, and why."""
        if line not in self.skipped:
            self.skipped.append(line)
            self.tell(line)


def busy() -> bool:
    """Whether the machine has other work while this process waits. Unlike the load, this does not remember what was
    measured before."""
    for _ in range(_LOOKS):
        idle, every = _processors()
        time.sleep(_LOOK)
        now_idle, now_every = _processors()
        if now_idle - idle >= (1 - BUSY) * (now_every - every):
            return False
    return True


def _processors() -> tuple[int, int]:
    """What all processors have done since the machine began: nothing, and altogether."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def table(figures: Sequence[Figure]) -> list[str]:
    """All figures for a terminal, with their budgets."""
    wide = max((len(one.what) for one in figures), default=0)
    lines: list[str] = []
    for section in _sections(figures):
        lines += ["", section]
        for one in (one for one in figures if one.section == section):
            sign = {True: "✓", False: "✗", None: " "}[one.held]
            budget = f"   [{one.budget}]" if one.budget else ""
            lines.append(
                f" {sign} {one.what:<{wide}}   {one.measured}{' *' if one.disturbed else ''}{budget}"
            )
    if any(one.disturbed for one in figures):
        lines += ["", "* a time that was measured while the machine had other work"]
    return lines


def page(text: str, figures: Sequence[Figure], head: str) -> str:
    """A help page whose tables are these: all that stands from its first section on is written anew. Sections of which
    nothing was measured stay as they are."""
    begin = re.search(r"^## ", text, re.MULTILINE)
    intro, old = (text[: begin.start()], text[begin.start() :]) if begin else (f"{text.rstrip()}\n\n", "")
    kept = {
        part.split("\n", 1)[0]: f"## {part.rstrip()}"
        for part in re.split(r"^## ", old, flags=re.MULTILINE)
        if part
    }
    made: dict[str, str] = {}
    for section in _sections(figures):
        rows = [one for one in figures if one.section == section]
        lines = [f"## {section}", "", head, "", "| what | measured | budget |", "|---|---|---|"]
        for one in rows:
            star = f" {MARK}" if one.disturbed else ""
            lines.append(f"| {_cell(one.what)} | {_cell(one.measured)}{star} | {_cell(one.budget)} |")
        if any(one.disturbed for one in rows):
            lines += [
                "",
                f"{MARK} A time, measured while the machine had other work: an idle one needs less.",
            ]
        made[section] = "\n".join(lines)
    order = [*SECTIONS, *(name for name in (*kept, *made) if name not in SECTIONS)]
    parts = [made.get(name) or kept.get(name) for name in dict.fromkeys(order)]
    return intro + "\n\n".join(part for part in parts if part) + "\n"


def circumstances(root: Path) -> str:
    """When, on what and of which state of the project it was measured, in a sentence."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=root, capture_output=True, text=True, check=False
    ).stdout.strip()
    load = os.getloadavg()[2]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}{f', commit {commit}' if commit else ''}: {os.cpu_count()} processors, "
        f"{platform.system()}, Python {sys.version_info.major}.{sys.version_info.minor}, mean load meanwhile {load:.1f}."
    )


def _sections(figures: Sequence[Figure]) -> list[str]:
    found = dict.fromkeys(one.section for one in figures)
    return sorted(found, key=lambda name: SECTIONS.index(name) if name in SECTIONS else len(SECTIONS))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
