"""The first minutes: a first suite for a folder without one, or the samples, or the runs that lie in it or
come into it; an agent where cases name one that is nowhere, a place where a run's was lost, what will cost
much, and whether a run goes on past its limit; and the tour."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tui_eval
from tui_eval.config.entry_line import EntryError, with_agent
from tui_eval.config.project import CONFIG_NAME, rule_for
from tui_eval.engine.request import RunRequest
from tui_eval.formats import FirstSuite, format_of, offered
from tui_eval.formats.format import UNNAMED_AGENT
from tui_eval.guard.paths import leads_out
from tui_eval.guard.trust_store import state_home
from tui_eval.store.printed_commands import shell_line
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import PLACE_LOST
from tui_eval.tui.controllers.front_run import FrontRun
from tui_eval.tui.controllers.places import PlaceController
from tui_eval.tui.handlers import Handler
from tui_eval.tui.loaders.follower import Left, left_of
from tui_eval.tui.loaders.suites_loader import Loaded
from tui_eval.tui.services import Core, PlaceStack, Suites
from tui_eval.tui.state import run_requests
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_sources import ENOUGH
from tui_eval.tui.state.runs import run_estimate
from tui_eval.tui.state.runs.run_estimate import Estimate
from tui_eval.tui.state.runs.run_view import RunView

if TYPE_CHECKING:
    from tui_eval.store.gathering import Gathering

ASK_ABOVE_USD = 1.0
"""A run without a dialog that history says will cost more is asked about, once."""
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


SECONDS = 1.0
"""Between two looks for runs in a folder without suites."""
_SHARE = 20
"""Of the time at most one part in so many is spent looking: a look through a large tree is done less often."""
_PATIENCE = 5
"""Looks after which is said why runs cannot be opened: one that is just being made cannot be read yet."""


class ShardsToCome:
    """The runs in a folder without suites, five levels deep, as one run. They are looked for in a thread, for
    as long as there are none and no suites; nothing is drawn meanwhile. Of a folder with suites it is said
    where shards are."""

    def __init__(self, core: Core, places: PlaceController, front: FrontRun, paths: Sequence[Path]) -> None:
        self._core, self._places, self._front = core, places, front
        self._folder = paths[0] if len(paths) == 1 and paths[0].is_dir() else None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._gathering: Gathering | None = None
        self._told = False

    def read(self, loaded: Loaded) -> None:
        """Suites were read."""
        if not loaded.done or self._folder is None:
            return
        if self._core.state.suites:
            self._tell_once(self._folder)
        elif self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(
                target=self._look, args=(self._folder,), name="tui-shards", daemon=True
            )
            self._thread.start()

    def leave(self) -> None:
        """A run is opened: nothing else is looked for."""
        self._folder = None

    def stop(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._gathering is not None:
            self._gathering.close()

    def _look(self, folder: Path) -> None:
        from tui_eval.store.gathering import Gathering
        from tui_eval.store.run_folders import runs_beneath

        wait, failed = 0.0, 0
        while not self._ended.wait(wait) and not self._core.state.suites and self._gathering is None:
            began = time.monotonic()
            try:
                found = Gathering(folder, waits=True) if runs_beneath(folder) else None
            except StoreError as error:
                found = None
                failed += 1
                if failed == _PATIENCE:
                    self._core.tasks.later(self._core.notices.problem, str(error))
            if found is not None:
                self._gathering = found
                found.start()
                self._core.tasks.later(self._open, found.place)
            wait = max(SECONDS, _SHARE * (time.monotonic() - began))
        if self._ended.is_set() and self._gathering is not None:
            self._gathering.close()

    def _open(self, place: Path) -> None:
        """Show them, unless the person is at something else."""
        Store(self._core.state.root).welcome(place)
        shown = self._places.front is self._places.suites and self._core.state.run is None
        self._front.begin_with(place)
        if shown:
            self._places.show_run()
        else:
            self._core.notices.say("runs have come into this folder: L shows them")

    def _tell_once(self, folder: Path) -> None:
        from tui_eval.store.merging import projects_with_shards

        def take(count: int) -> None:
            if count:
                shown = shell_line(("tui-eval", "show", os.path.relpath(folder)))
                which = "folder in here ran a shard" if count == 1 else "folders in here ran shards"
                words = f"{count} {which}: {shown} shows them as one run"
                self._core.notices.log("note", words)
                self._core.notices.over(words, 8)

        if not self._told:
            self._told = True
            self._core.tasks.thread(partial(projects_with_shards, folder), take, name="shards")


def tour_is_wanted() -> bool:
    """Whether this is the very first start. Who has used the app before has been remembered by it; `TUI_EVAL_TOUR=0`
    says no, where nothing is remembered from one start to the next."""
    if os.environ.get("TUI_EVAL_TOUR") == "0":
        return False
    home = state_home()
    try:
        return not (home / "tour").exists() and not (home / "places").exists()
    except OSError:
        return False


def keep_tour_seen() -> None:
    """It has been seen; nothing is said where that cannot be written."""
    home = state_home()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (home / "tour").touch(mode=0o600)
    except OSError:
        return


class TourController:
    """`untouched` says whether the person has pressed no key yet: who works already needs no tour."""

    def __init__(self, core: Core, places: PlaceStack, untouched: Callable[[], bool]) -> None:
        self._core, self._places, self._untouched = core, places, untouched
        self._looked = self._waits = False

    def handlers(self) -> dict[str, Handler]:
        """What its key does."""
        return {"tour": self.show}

    def read(self, loaded: Loaded) -> None:
        """Suites were read."""
        if not loaded.done or self._looked or not self._core.state.rows:
            return
        self._looked = True

        def take(wanted: bool) -> None:
            front = self._places.list_in_front
            if not wanted or not self._untouched() or front is None or front.kind != "suites":
                return
            self._waits = self._places.front is not front
            if not self._waits:
                self.show()

        self._core.tasks.thread(tour_is_wanted, take, name="tour")

    def answered(self) -> None:
        """What the project may do was answered: two dialogs over each other would hide the question."""
        front = self._places.list_in_front
        if self._waits and self._places.front is front:
            self._waits = False
            self.show()

    def show(self) -> None:
        """The tour, dismissed for good by whatever key."""
        self._places.show("tour", len(self._core.state.rows), answer=lambda _: self._seen())

    def _seen(self) -> None:
        self._core.tasks.thread(keep_tour_seen, name="tour")


class AskAgent:
    """Asks once per agent's name."""

    def __init__(self, core: Core, places: PlaceStack, suites: Suites) -> None:
        self._core, self._places, self._suites = core, places, suites
        self._asked: set[str] = set()

    def missing(self, entries: Sequence[CaseRow]) -> dict[str, int]:
        """Names of agents that cases ask for and that are nowhere, with how many cases."""
        config = self._core.state.config
        found: dict[str, int] = {}
        if config is None:
            return found
        for entry in entries:
            case = entry.case
            if case is None or not (form := format_of(case.format)).agent_may_be_chosen:
                continue
            if case.agent is None and config.agents:
                continue  # which of them is meant the suite or `suites:` can say: the run tells it
            name = case.agent or UNNAMED_AGENT
            if name in found or case.agent not in config.agents:
                rule = rule_for(config, case.suite)
                if (rule is None or not rule.agent) and not form.default_agent(case.agent, config):
                    found[name] = found.get(name, 0) + 1
        return found

    def then(self, entries: Sequence[CaseRow], go_on: Callable[[], None]) -> None:
        """Ask for each agent that is missing, then go on; nothing is run where the person leaves."""
        missing = {name: count for name, count in self.missing(entries).items() if name not in self._asked}
        if not missing:
            go_on()
            return
        name, count = next(iter(missing.items()))
        config = self._core.state.config
        file = (
            config.file
            if config is not None and config.file is not None
            else self._core.state.root / CONFIG_NAME
        )

        def answer(entry: dict[str, str] | None) -> None:
            from tui_eval.formats.accepting import replace_file
            from tui_eval.yaml.yaml_edit import EditError

            self._asked.add(name)
            if entry is None:
                self._core.notices.say(
                    f"nothing was run: no agent {name} (the next r runs without it, E edits {file.name})"
                )
                return
            if leads_out(self._core.state.root, file):  # as it was not read through it
                self._core.notices.problem(
                    f"{file.name} is a link that leaves the project: add the agent there with E"
                )
                return
            try:
                text = file.read_bytes().decode("utf-8") if file.exists() else None
                replace_file(file, text, with_agent(text or "", name, entry))
            except EditError as error:
                self._core.notices.problem(str(error))
                return
            except (OSError, ValueError) as error:
                by_hand = "; add the agent there with E" if isinstance(error, EntryError) else ""
                self._core.notices.problem(f"{file.name}: {error}{by_hand}")
                return
            self._core.notices.say(f"wrote {name} into {file.name}")
            self._suites.load(lambda: self.then(entries, go_on))

        named = any(entry.case is not None and entry.case.agent == name for entry in entries)
        self._places.show("agent", name, file.name, count, named, answer=answer)


class AskPlace:
    """Asks where it goes on what builds on a run whose cluster was lost."""

    def __init__(self, core: Core, places: PlaceController) -> None:
        self._core, self._places = core, places
        self._waiting: dict[str, list[Callable[[bool], Any]]] = {}

    def asks(
        self, run_id: str, left: Left, on: str, go: Callable[[bool], Any], *, unasked: bool = False
    ) -> bool:
        """Whether it asks, since nobody chose another place than that of the run, `on` (empty: none). `go` is
        given whether it is here, and called for an answer that is none against it. What one key begins waits
        for one answer."""
        was = run_requests.ran_on(left.options, self._core.state.config)
        if not left.lost or on.strip() not in ("", was) or was == "here":
            return False
        waiting = self._waiting.setdefault(run_id, [])
        waiting.append(go)
        if len(waiting) > 1:
            return True

        def answer(value: str | None) -> None:
            for one in self._waiting.pop(run_id):
                if value in ("here", "again"):
                    one(value == "here")

        question, answers = run_requests.goes_on_where(was)
        self._places.ask(question, answers, answer, unasked=unasked)
        return True

    async def asks_of(self, request: RunRequest, send: Callable[[RunRequest], Any]) -> bool:
        """As `asks`, of a request that adds to a run, or runs cases of the one whose list is looked at;
        `send` is given it with its place."""
        if request.step or request.continue_from is not None:  # these are here
            return False
        run_id, on = request.linked_to, request.on or ""
        if run_id is None and (front := self._front_of_list) is not None:
            run_id, on = front.info.id, on or run_requests.ran_on({}, self._core.state.config)
        if run_id is None:
            return False
        run = self._core.state.find_run(run_id)
        if run is not None:
            left = Left(run.info.options, [], PLACE_LOST in run.info.provenance)
        else:
            left = await asyncio.to_thread(left_of, self._core.state.run_folder(run_id))

        def go(here: bool) -> None:
            if here:
                request.on, request.on_recorded = "here", False
            send(request)

        return self.asks(run_id, left, on, go, unasked=True)

    @property
    def _front_of_list(self) -> RunView | None:
        """The run in front, where its list is looked at."""
        place = self._places.list_in_front
        return self._core.state.run if place is not None and place.kind == "run" else None


class AskCost:
    """Whether what will cost much is run."""

    def __init__(self, core: Core, places: PlaceController) -> None:
        self._core, self._places = core, places
        self._asked = False
        self.counting = False
        """Whether a thread counts what a run of many will cost."""

    def then(self, entries: Sequence[CaseRow], request: RunRequest, go_on: Callable[[], Any]) -> None:
        """Go on; once, ask before, where history says that it will cost much."""
        count = partial(run_estimate.expected, self._core.state, entries, request)
        if len(entries) <= ENOUGH:
            self._ask(count(), go_on)
            return

        def counted(would: Estimate) -> None:
            self.counting = False
            self._ask(would, go_on)

        def not_counted(error: Exception) -> None:
            self.counting = False
            self._core.notices.failed(error)

        self.counting = True
        self._core.tasks.thread(count, counted, not_counted, name="estimate", opens=True)

    def _ask(self, would: Estimate, go_on: Callable[[], Any]) -> None:
        if would.cost is None or would.cost <= ASK_ABOVE_USD or self._asked:
            go_on()
            return

        def answer(value: str | None) -> None:
            if value == "run":
                self._asked = True
                go_on()

        self._places.ask(
            f"This will cost {would.price}. Run it?",
            [("y", "run", "run it; do not ask again until the app is closed"), ("n", "no", "no")],
            answer,
        )


class GoingOn:
    """Goes on with a run of which not all has run; where a limit of it is reached, whether past that is asked."""

    def __init__(self, core: Core, places: PlaceController, front: FrontRun) -> None:
        self._core, self._places, self._front = core, places, front

    async def begin(self, folder: Path, request: RunRequest, moved: str) -> None:
        """Go on, show it and say so; `moved` is what is said of where.

        Raises:
            EngineError: the engine refuses, for something else than a limit.
        """
        from tui_eval.engine.service.client import EngineError

        try:
            started: Any = await self._core.engines.own.resume_run(folder, request)
        except EngineError as refused:
            if (limit := refused.limit) is None:
                raise

            def answer(value: str | None) -> None:
                if value == "yes":
                    again = self.begin(folder, limit.past(request), moved)
                    self._core.tasks.soon(again, opens=True)

            question, answers = run_requests.goes_past(limit)
            self._places.ask(question, answers, answer, unasked=True)
            return
        for problem in started.problems:
            self._core.notices.log("error", problem)
        self._front.follow(started.folder)
        self._front.open(started.folder)
        words = f"going on, {started.attempts} attempt{'s' if started.attempts != 1 else ''}"
        self._core.notices.say("; ".join(filter(None, [words, moved, started.note])))
