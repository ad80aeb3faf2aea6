"""The first five minutes: a folder without suites gets a first one, or the samples."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import tui_eval
from tui_eval.formats import FirstSuite, offered
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.services import Core

SAMPLES = "sample_suites"
_KEYS = "abcdefghijklnopqrstuvwxyz1234567890"
"""For formats that ask for no key of their own; `m` is for the samples."""


def samples_folder() -> Path | None:
    """The samples that came with the program, if they did."""
    folder = Path(tui_eval.__file__).parent.parent / SAMPLES
    return folder if folder.is_dir() else None


def _answers(firsts: Mapping[str, FirstSuite]) -> list[tuple[str, str, str]]:
    """The key, name and words of each format; where two ask for one key, the second has another."""
    taken: dict[str, str] = {}
    for name, first in firsts.items():
        key = next(
            key for key in (first.key, *name.lower(), *_KEYS) if key and key != "m" and key not in taken
        )
        taken[key] = name
    return [(key, name, firsts[name].words) for key, name in taken.items()]


class FirstSuiteQuestion:
    """What enter does in an empty folder. `load` reads what was written."""

    def __init__(self, core: Core, places: PlaceController, load: Callable[[], Any]) -> None:
        self._core, self._places, self._load = core, places, load

    def ask(self) -> None:
        """Ask what to begin with, and write it."""
        samples = samples_folder()
        firsts = {one.name: first for one in offered() if (first := one.first_suite()) is not None}
        answers = _answers(firsts)
        if samples is not None:
            answers.append(("m", SAMPLES, f"the samples, copied into {SAMPLES}/"))
        answers.append(("esc", "", "nothing"))

        def answer(value: str | None) -> None:
            if not value:
                return
            config = self._core.state.config
            if value == SAMPLES and samples is not None:
                source = samples
                self._core.tasks.thread(lambda: self._copy(source), self._begun, name="samples")
            elif config is not None and config.agents:
                self._first_agent(value, "")
            else:
                self._places.show(
                    "first agent",
                    servers=firsts[value].server_hint,
                    answer=partial(self._first_agent, value),
                )

        self._places.ask(
            "Begin with what?",
            answers,
            answer,
            ["", "A suite is written into this folder, and a tui_eval.yaml that says which agent it tests."],
        )

    def _first_agent(self, case_format: str, typed: str | None) -> None:
        if typed is not None:
            agent, _, model = typed.partition(" ")
            options = ["--agent", agent] if agent else []
            options += ["--model", model.strip()] if model.strip() else []
            self._core.tasks.thread(lambda: self._init(case_format, options), self._begun, name="init")

    def _begun(self, trouble: str) -> None:
        if trouble:
            self._core.notices.problem(trouble)
        else:
            self._core.notices.say("written; a runs it, e edits it, E its agent")
        self._core.state.loading = True
        self._load()

    def _copy(self, samples: Path) -> str:
        target = self._core.state.root / SAMPLES
        if target.exists():
            return f"{SAMPLES} is already there"
        try:
            shutil.copytree(samples, target, ignore=shutil.ignore_patterns(".tui-eval", "__pycache__"))
        except (OSError, shutil.Error) as error:
            return f"{target}: cannot be written: {getattr(error, 'strerror', None) or error}"
        return ""

    def _init(self, case_format: str, options: list[str]) -> str:
        command = [
            sys.executable,
            "-P",
            "-m",
            "tui_eval",
            "init",
            str(self._core.state.root),
            "--format",
            case_format,
        ]
        done = subprocess.run(
            [*command, *options],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )
        return (done.stderr.strip() or f"init ended with {done.returncode}") if done.returncode else ""
