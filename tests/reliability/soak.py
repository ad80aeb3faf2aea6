"""A soak: every type of agent against every fault at once, hostile figures, kill -9 of the engine and resumes.

`python -m tests.reliability.soak --minutes 10` prints its report and ends with 1 where something was lost,
repeated, hung or judged wrongly. `test_soak.py` runs a short one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import yaml

from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError

HONEST = ("good", "slow", "busy", "figures", "text")
LARGE = "large"
"""An answer of 50 MB: one in each round."""
FAULTS = ("endless", "flood", "bomb", "malformed", "reset", "broken")
OUTCOMES = {**dict.fromkeys(HONEST, "passed"), "wrong": "failed", **dict.fromkeys(FAULTS, "error")}
OUTCOMES |= {"crash": "error", "runaway": "failed"}  # what JavaScript throws fails, as in promptfoo
OUTCOMES |= {"pattern": "error", LARGE: "passed"}
SERVED = ("openai", "anthropic", "http", "nao", "neuro")
PROVIDED = ("responses", "ollama", "relay", "webhook", "websocket")
"""As promptfoo's providers."""
PROGRAMS = ("command", "python", "crashing")
_TIMEOUT = 12.0
_HUNG = 240.0
"""Seconds in which the engine must have come to an end."""

_BOT = """
import os, sys, time, json, re
HOSTILE = [2**63, float("inf"), float("nan"), -1, 10**400, True, "12", {}, [1]]
def answer(message):
    kind, number = re.search(r"soak ([a-z]+) ([0-9]+)", message).groups()
    with open(LOG, "a") as file:
        file.write(f"{time.time()} {number}\\n")
    text = "something else" if kind == "wrong" else f"answer {number}."
    if kind == "crash":
        os._exit(9) if HARD else 1 / 0
    if kind == "slow":
        time.sleep(0.3)
    figure = HOSTILE[int(number) % len(HOSTILE)] if kind == "figures" else 1
    if kind == "text":
        text = "\\x1b[2J\\u202e" + text + "\\r[red]"
    return {"reply": text, "usage": {"input_tokens": figure, "output_tokens": figure}, "cost": figure}
"""
_COMMAND = """
import sys
def main():
    print(json.dumps(answer(json.load(sys.stdin)["message"])))
main()
"""


@dataclass
class Report:
    """What a soak has seen. `wrong` are cases that came to another outcome than they must, in a line each."""

    seconds: float = 0.0
    rounds: int = 0
    cases: int = 0
    faults: int = 0
    kills: int = 0
    lost: int = 0
    repeated: int = 0
    hung: int = 0
    peak_mb: float = 0.0
    wrong: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        head = (
            f"soak of {self.seconds:.0f} s, {self.rounds} rounds: {self.cases} cases, {self.faults} faults, "
            f"{self.kills} kills, {self.lost} lost, {self.repeated} repeated, {self.hung} hung, "
            f"{len(self.wrong)} judged wrongly, peak memory {self.peak_mb:.0f} MB"
        )
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        return "\n".join([head, f"kinds: {kinds}", *self.wrong[:20]])

    @property
    def good(self) -> bool:
        """Whether nothing was lost, repeated, hung or judged wrongly."""
        return not (self.lost or self.repeated or self.hung or self.wrong)


@dataclass
class Project:
    """One round's project; `expected` is the outcome of each case, by its number."""

    root: Path
    log: Path
    expected: dict[int, tuple[str, str]] = field(default_factory=dict)

    def add(self, agent: str, kinds: list[str]) -> None:
        """A suite of one agent, a case for each kind."""
        cases = []
        for kind in kinds:
            number = len(self.expected) + 1
            # An endpoint of one's own may answer with any text.
            self.expected[number] = (kind, OUTCOMES[kind])
            said = f"soak {kind} {number}." if agent == "echo" else f"answer {number}."
            cases.append(
                {
                    "name": f"{kind} {number}",
                    "input": f"soak {kind} {number}.",
                    "expected": {"should_contain": [said]},
                }
            )
        self._write(f"{agent}.yaml", {"agent": agent, "test_cases": cases})

    def add_provided(self, provider: str, port: int, kinds: list[str]) -> None:
        """A promptfoo suite of one provider."""
        url = f"http://127.0.0.1:{port}"
        talks = {"messageTemplate": "{{prompt}}", "transformResponse": "data"}
        given: dict[str, object] = {
            "responses": {"id": "openai:responses:m", "config": {"apiBaseUrl": f"{url}/v1", "apiKey": "k"}},
            "ollama": {"id": "ollama:chat:m"},
            "webhook": {"id": f"webhook:{url}/hook"},
            "websocket": {"id": f"ws://127.0.0.1:{port}/socket", "config": talks},
        }
        suite: dict[str, object] = {
            "prompts": ["{{q}}"],
            "providers": [given.get(provider, given["responses"])],
        }
        if provider == "relay":
            relay = {"id": "sequence", "config": {"inputs": ["{{q}}"]}}
            suite["defaultTest"] = {"provider": relay}
        tests = []
        for kind in kinds:
            number = len(self.expected) + 1
            self.expected[number] = (kind, OUTCOMES[kind])
            checks = [{"type": "contains", "value": f"answer {number}."}]
            tests.append(
                {"description": f"{kind} {number}", "vars": {"q": f"soak {kind} {number}."}, "assert": checks}
            )
        self._write(f"{provider}/promptfooconfig.yaml", {**suite, "tests": tests})

    def add_patterns(self, count: int) -> None:
        """A promptfoo suite of patterns and scripts that never end, beside honest ones."""
        tests = []
        for place in range(count):
            number = len(self.expected) + 1
            kind = ("good", "runaway", "good", "pattern")[place % 4]
            self.expected[number] = (kind, OUTCOMES[kind])
            never = {"type": "javascript", "value": "while (true) {}\nreturn true"}
            fine = {"type": "javascript", "value": f"output === 'soak {kind} {number}.'"}
            pattern = {"type": "regex", "value": f"^soak [a-z]+ {number}\\.$"}
            endless = {"type": "regex", "value": "(a+)+$"}
            checks = {"runaway": [never], "pattern": [endless]}.get(kind, [fine, pattern])
            more = f"{'a' * 60}b" if kind == "pattern" else ""
            said = {"q": f"soak {kind} {number}.{more}"}
            tests.append({"description": f"{kind} {number}", "vars": said, "assert": checks})
        suite = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": tests}
        self._write("patterns/promptfooconfig.yaml", suite)

    def configure(self, port: int, replayed: str) -> None:
        """The agents: the server's, programs, and those that need nobody."""
        url = f"http://127.0.0.1:{port}"
        base = {"timeout": _TIMEOUT}
        python = sys.executable
        agents = {
            "openai": {"type": "openai", "model": "gpt-4.1", "base_url": f"{url}/v1", "api_key": "k"},
            "anthropic": {"type": "anthropic", "model": "claude-sonnet-4", "base_url": url, "api_key": "k"},
            "http": {"type": "http", "url": f"{url}/chat"},
            "large": {"type": "http", "url": f"{url}/chat", "timeout": 120},
            "nao": {"type": "nao", "url": url, "token": "t"},
            "neuro": {"type": "neuro-san", "url": url, "network": "net"},
            "command": {"type": "command", "command": [python, "command.py"]},
            "python": {"type": "python", "function": "bot.py:answer"},
            "crashing": {"type": "python", "function": "crash/bot.py:answer"},
            "echo": {"type": "echo"},
            "scripted": {"type": "scripted", "script": "script.yaml"},
            "replayed": {"type": "replay", "run": replayed or "last"},
        }
        agents["ollama"] = {"type": "ollama", "model": "m", "base_url": url}
        config = {"agents": agents, "run": {**base, "retries": 1}, "providers": {"ollama:chat:m": "ollama"}}
        self._write("tui_eval.yaml", config)
        bot = f"LOG = {str(self.log)!r}\nHARD = False\n{_BOT}"
        for name, text in {
            "bot.py": bot,
            "command.py": bot.replace("HARD = False", "HARD = True") + _COMMAND,
            "crash/bot.py": bot.replace("HARD = False", "HARD = True"),
        }.items():
            path = self.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        rules = [
            {
                "match": {"contains": f"soak {kind} {number}."},
                "say": "no" if kind == "wrong" else f"answer {number}.",
            }
            for number, (kind, _) in self.expected.items()
        ]
        self._write("script.yaml", {"rate": 100_000, "rules": rules, "default": {"say": "what?"}})

    def asked_since(self, moment: float) -> set[int]:
        """The cases whose agents were asked after a moment (seconds since the epoch)."""
        found: set[int] = set()
        with contextlib.suppress(OSError), open(self.log, encoding="utf-8") as lines:
            for line in lines:
                at, _, number = line.partition(" ")
                if number.strip().isdigit() and float(at) > moment:
                    found.add(int(number))
        return found

    def _write(self, name: str, value: object) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")


class Engine:
    """One `tui-eval` process, watched."""

    def __init__(self, root: Path, arguments: list[str], report: Report) -> None:
        self._report = report
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tui_eval", *arguments],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=self._said,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        )
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while self.process.poll() is None:
            with contextlib.suppress(OSError, ValueError, IndexError):
                status = Path(f"/proc/{self.process.pid}/status").read_text()
                peak = int(status.split("VmHWM:")[1].split()[0]) / 1000
                self._report.peak_mb = max(self._report.peak_mb, peak)
            time.sleep(0.1)

    def ended(self, seconds: float) -> bool:
        """Wait for its end; one that does not come to it is killed and counted."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            self._report.hung += 1
            return False
        return True

    def kill(self) -> None:
        """kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def said(self) -> str:
        """What it printed."""
        self._said.seek(0)
        return self._said.read().decode("utf-8", "replace")


def soak(seconds: float, seed: int = 1) -> Report:
    """Rounds until the time is over; each ends, whatever it takes."""
    report, began = Report(), time.monotonic()
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        while not report.rounds or (time.monotonic() - began < seconds and not report.hung):
            report.rounds += 1
            _round(folder / str(report.rounds), report, chance)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report.seconds = time.monotonic() - began
    return report


def _round(root: Path, report: Report, chance: random.Random) -> None:
    root.mkdir()
    log = root / "asked.log"
    project = Project(root, log)
    with _server(log) as port:
        project.add("replayed", ["good"] * 4 + ["wrong"])
        project.configure(port, "")
        first = Engine(root, ["run", "replayed.yaml", "--agent", "scripted", "--display", "none"], report)
        if not first.ended(_HUNG):
            return
        recorded = Store(root).find().name
        for agent in SERVED:
            kinds = [*HONEST, *HONEST, "wrong", *chance.sample(FAULTS, 4)]
            project.add(agent, chance.sample(kinds, len(kinds)))
        project.add("large", [LARGE])
        for provider in PROVIDED:
            kinds = [*HONEST, "wrong", *chance.sample(FAULTS, 2)]
            project.add_provided(provider, port, chance.sample(kinds, len(kinds)))
        for agent in PROGRAMS:
            if agent == "crashing":
                project.add(agent, ["crash", "crash"])
            else:
                project.add(
                    agent, ["good", "figures", "crash", "text", "slow", "figures", "wrong", "figures", "good"]
                )
        project.add("echo", ["good"] * 5)
        project.add("scripted", ["good", "wrong", "good", "text"])
        project.add_patterns(8)
        project.configure(port, recorded)
        _killed_and_resumed(project, report, chance)


def _killed_and_resumed(project: Project, report: Report, chance: random.Random) -> None:
    root, planned = project.root, len(project.expected)
    outputs = [part for name in ("results.json", "junit.xml") for part in ("-o", str(root / name))]
    before = set(Store(root).run_folders())
    arguments = ["run", ".", "--trust", "-j", "12", "--display", "none", *outputs]
    engine, folder = Engine(root, arguments, report), None
    done: set[int] = set()
    for share in sorted(chance.uniform(0.1, 0.9) for _ in range(2)):
        while engine.process.poll() is None:
            folder = folder or next(iter(set(Store(root).run_folders()) - before), None)
            if folder is not None and len(_finished(folder)) >= share * planned:
                break
            time.sleep(0.05)
        if engine.process.poll() is not None or folder is None:
            break
        engine.kill()
        report.kills += 1
        resumed, done = time.time(), set(_finished(folder))
        engine = Engine(
            root, ["resume", folder.name, "--trust", "-j", "12", "--display", "none", *outputs], report
        )
        _wait_for_news(engine, folder, done)
        report.repeated += len(done & project.asked_since(resumed))
    if engine.ended(_HUNG) and folder is None:
        folder = next(iter(set(Store(root).run_folders()) - before), None)
    _judge(project, folder, engine, report)


def _wait_for_news(engine: Engine, folder: Path, done: set[int]) -> None:
    """Until a resumed run has finished something more."""
    end = time.monotonic() + _HUNG
    while engine.process.poll() is None and time.monotonic() < end and len(_finished(folder)) <= len(done):
        time.sleep(0.05)


def _finished(folder: Path) -> dict[int, str]:
    """The outcome of each case that has one, by its number."""
    try:
        with contextlib.closing(RunReader(folder)) as reader:
            numbers = {case.id: int(case.name.split()[-1]) for case in reader.cases()}
            rows = reader.attempts()
    except (StoreError, ValueError, IndexError):
        return {}  # it is just being made
    return {numbers[row.case_ref]: row.outcome or "" for row in rows if row.state == "done"}


def _judge(project: Project, folder: Path | None, engine: Engine, report: Report) -> None:
    found = _finished(folder) if folder is not None else {}
    report.cases += len(project.expected)
    for number, (kind, outcome) in project.expected.items():
        report.kinds[kind] += 1
        report.faults += kind not in ("good", "wrong")
        if number not in found:
            report.lost += 1
        elif found[number] != outcome and not (
            # On a machine that is busy a loop without end meets its case's limit before its own.
            kind == "runaway" and found[number] == "error" and "timed out" in _message(folder, number)
        ):
            report.wrong.append(
                f"{kind} {number}: {found[number]}, not {outcome}: {_message(folder, number)}"
            )
    counts = Counter(found.values())
    if engine.process.returncode != 1:
        report.wrong.append(f"exit code {engine.process.returncode}, not 1: {engine.said()[-500:]}")
    try:
        written = json.loads((project.root / "results.json").read_text("utf-8"))["results"]
        suites = ElementTree.parse(project.root / "junit.xml").getroot()
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        report.wrong.append(f"its files: {type(error).__name__}: {error}")
        return
    report.lost += max(0, len(project.expected) - len(written))
    told = (suites.get("failures"), suites.get("errors"))
    if told != (str(counts["failed"]), str(counts["error"])):
        report.wrong.append(f"JUnit counts {told}, not {dict(counts)}")


def _message(folder: Path | None, number: int) -> str:
    assert folder is not None
    with contextlib.closing(RunReader(folder)) as reader:
        numbers = {case.id: (int(case.name.split()[-1]), case.suite) for case in reader.cases()}
        for row in reader.attempts():
            if numbers[row.case_ref][0] == number:
                return f"{numbers[row.case_ref][1]}: {row.message[:200]}"
    return ""


@contextlib.contextmanager
def _server(log: Path) -> Iterator[int]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.reliability.soak_server", str(log)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.stdout.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="every agent, every fault, kills and resumes")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    report = soak(given.minutes * 60, given.seed)
    print(report)
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main())
