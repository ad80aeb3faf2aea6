"""Who runs the tests: several processes for the whole suite, this one for what is asked for by name."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

import tests.support.examples  # noqa: F401 - its profile is the one of all tests

WORKERS = 4
"""Many tests wait for a process, a terminal or a time limit: more workers than cores on a small machine."""


MOST_WORKERS = 8

LONG_FOLDERS = ("tui", "reliability", "commands", "engine", "scripting", "agents")
"""Folders of tests with terminals and processes, begun first: what is left for the end are short files, and no
worker stands idle while another one is in the middle of a long file."""

APART = ("real", "benchmarks")
"""Folders in which every test has one of these marks."""

HERE = Path(__file__).parent

if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    # Images for containers set it. Here every worker and each of some thousand processes would then compile the
    # whole package anew: a third of what the suite takes.
    sys.dont_write_bytecode = False

gc.disable()  # until all tests are collected: hardly anything of what they are is garbage

# Whoever runs the tests inside tmux would have their copies go to that one's buffers.
os.environ.pop("TMUX", None)

os.environ.setdefault("TUI_EVAL_TOUR", "0")
"""Every home of a test is that of a person who starts for the first time: none of them needs the tour, which would
take their first key."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """`-n auto`, which pyproject.toml sets; `-n` on the command line decides otherwise.

    Files and single tests, `-k`, `--lf`, and `-m` with marks of one's own (timings need the machine for
    themselves) run in this process.
    """
    option = config.option
    by_name = any(not Path(argument.partition("::")[0]).is_dir() for argument in config.args)
    chosen = option.keyword or getattr(option, "lf", False) or option.collectonly
    if by_name or chosen or option.markexpr not in config.getini("addopts"):
        return 0
    return min(max(WORKERS, os.cpu_count() or 1), MOST_WORKERS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where nothing of them is asked for, `real` and `benchmarks` are not imported at all."""
    usual = config.option.markexpr in config.getini("addopts")
    whole = all(Path(argument) in (HERE, HERE.parent) for argument in map(os.path.abspath, config.args))
    return (
        True if usual and whole and collection_path.name in APART and collection_path.parent == HERE else None
    )


def pytest_collection(session: pytest.Session) -> None:
    """Each worker begins with modules of its own.

    The first import of a test module rewrites its assertions and keeps them on the disk. Workers that all begin
    at the first module do this all at once, each for itself, on a machine that has run no tests yet.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    folders = [Path(argument) for argument in session.config.args if Path(argument).is_dir()]
    modules = sorted(
        {
            module.resolve()
            for folder in folders
            for module in folder.rglob("test_*.py")
            if not {*APART} & {*module.parts}
        }
    )
    first = len(modules) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for module in modules[first:] + modules[:first]:
        if module.is_relative_to(HERE):
            name = ".".join(module.relative_to(HERE.parent).with_suffix("").parts)
            # What does not import says so when it is collected.
            with contextlib.suppress(Exception, pytest.skip.Exception):
                importlib.import_module(name)


@pytest.hookimpl(tryfirst=True)  # before tests are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first (see `LONG_FOLDERS`); within a file nothing changes its place. Of heavy tests of many
    parameters (`usually`) all but the first are `real`."""
    seen: Counter[str] = Counter()
    for item in items:
        usually = item.get_closest_marker("usually")
        if usually is not None:
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > usually.args[0]:
                item.add_marker(pytest.mark.real)

    def place(item: pytest.Item) -> int:
        folder = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
        return LONG_FOLDERS.index(folder) if folder in LONG_FOLDERS else len(LONG_FOLDERS)

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """What all tests share lives until the end: nobody need look through it for garbage again and again."""
    gc.enable()
    # An app makes and drops tens of thousands of small things in each test: looked through every 700, a tenth of
    # what the suite takes. What is never awaited is still found, a little later.
    gc.set_threshold(20_000, 10, 10)
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A new folder of a name like this, as `TempPathFactory.mktemp` makes one: that looks through all there are at
    each call, which some thousand tests feel."""
    base = tmp_path_factory.getbasetemp()
    numbers: defaultdict[str, count[int]] = defaultdict(count)

    def made(name: str) -> Path:
        for number in numbers[name.lower()]:  # some file systems do not tell large letters from small ones
            with contextlib.suppress(FileExistsError):
                folder = base / f"{name}{number}"
                folder.mkdir(mode=0o700)
                return folder
        raise AssertionError("numbers do not end")

    return made


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, new_folder: Callable[[str], Path]) -> Path:
    """As pytest's own, of the same name."""
    return new_folder(re.sub(r"\W", "_", request.node.name)[:30])


@pytest.fixture(autouse=True)
def _no_keys_of_one_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite without a judge takes the grader whose key is there: the tests' never asks a foreign host."""
    for name in (
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AZURE_OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_BASE_URL",
    ):
        monkeypatch.delenv(name, raising=False)
