"""JUnit XML, as CI systems read it: a suite per file, a test case per case and agent."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import msgspec

from tui_eval.guard.text import clip, visible
from tui_eval.model import Attempt, Outcome
from tui_eval.store.missing_cases import (
    lacks_words,
    unread_errors_of,
    unread_listed_of,
    unread_report,
    why_not_run,
)
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import shard_words
from tui_eval.store.summary import CaseSummary, left_of, summarise, why_not

COUNTS = ("tests", "failures", "errors", "skipped")
_KINDS: dict[Outcome | None, str] = {
    "failed": "failure", "error": "error", "skipped": "skipped", "cancelled": "skipped", None: "skipped",
}  # fmt: skip
"""The element in which it is said what came of a case, where it did not pass."""
_COUNTED = {"failure": "failures", "error": "errors", "skipped": "skipped"}
_RUN = "tui-eval"
"""The suite that says what concerns no suite."""


class _Counted(msgspec.Struct):
    """What a suite's element says of its cases. `seconds` are over all attempts; `left` of them never ran, of cases
    that came to an outcome without them."""

    counts: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    seconds: float = 0.0
    asserted_nothing: int = 0
    left: int = 0

    def add(self, item: CaseSummary) -> None:
        self.counts["tests"] += 1
        self.seconds += _seconds(item)
        self.asserted_nothing += item.asserted_nothing
        self.left += item.left
        if (kind := _KINDS.get(item.outcome)) is not None:
            self.counts[_COUNTED[kind]] += 1

    def put(self, element: ElementTree.Element) -> None:
        for name, count in self.counts.items():
            element.set(name, str(count))
        element.set("time", f"{self.seconds:.3f}")


def write(reader: RunReader, path: Path) -> None:
    """Write the run. A case that did not pass is a failure or an error with the reasons of the attempt that
    tells (`why_not`); one that did not run is skipped, and where nothing else is wrong an error of its own
    says that the run is not whole: what was not run is no success, nor is a run of nothing; so it is,
    whatever else is wrong, where files could not be read, or cases are missing that the run has no rows of.
    One that passed and asserted nothing has the property `asserted_nothing`, its suite how many do. Times are
    seconds over all attempts."""
    with open(path, "w", encoding="utf-8", errors="xmlcharrefreplace") as file:
        file.writelines(_pieces(reader))


def _pieces(reader: RunReader) -> Iterator[str]:
    """The document case by case: the elements around them say how many there are, so all are counted first."""
    info = reader.info()
    suites: dict[str, _Counted] = {}
    left = 0
    for case, attempts in reader.by_case("suites"):
        item = summarise(case, attempts)
        suites.setdefault(case.suite, _Counted()).add(item)
        left += item.outcome in (None, "cancelled")
    every = list(suites.values())
    failed = any(one.counts["failures"] + one.counts["errors"] for one in every)
    not_run = "" if failed else _not_run(left, sum(one.left for one in every), info)
    if not_whole := bool(not_run) or not every or bool(unread_errors_of(info) or lacks_words(info)):
        every.append(_Counted({**dict.fromkeys(COUNTS, 0), "tests": 1, "errors": 1}))
    root = ElementTree.Element("testsuites", name=f"tui-eval {shard_words(info.provenance)}".strip())
    counts = {name: sum(one.counts[name] for one in every) for name in COUNTS}
    _Counted(counts, sum(one.seconds for one in every)).put(root)
    yield "<?xml version='1.0' encoding='utf-8'?>\n"
    yield _opening(root)
    started = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(info.started_at))
    name = _names(reader)
    for suite, cases in groupby(reader.by_case("suites", listed=True), key=lambda one: one[0].suite):
        yield from _suite(suite, started, suites.get(suite, _Counted()))
        for case, attempts in cases:
            yield _indented(_case(reader, info, name(case), case, attempts))
        yield "\n  </testsuite>"
    if not_whole:
        yield from _suite(_RUN, started, every[-1])
        yield _indented(_not_whole(not_run, info, empty=not suites))
        yield "\n  </testsuite>"
    yield "\n</testsuites>"


def _suite(name: str, started: str, counted: _Counted) -> Iterator[str]:
    element = ElementTree.Element("testsuite", name=_plain(name), timestamp=started)
    counted.put(element)
    yield f"\n  {_opening(element)}"
    if counted.asserted_nothing:
        _property(element, "asserted_nothing", str(counted.asserted_nothing))
        yield _indented(element[0])


def _opening(element: ElementTree.Element) -> str:
    """The tag that begins an element, which has nothing in it yet."""
    return f"{ElementTree.tostring(element, encoding='unicode').removesuffix(' />')}>"


def _indented(element: ElementTree.Element) -> str:
    """An element of a suite on lines of its own."""
    ElementTree.indent(element, level=2)
    return f"\n    {ElementTree.tostring(element, encoding='unicode')}"


def _seconds(item: CaseSummary) -> float:
    return (item.duration_ms or 0) / 1000 * item.timed


def _case(
    reader: RunReader, info: RunInfo, name: str, case: StoredCase, attempts: Sequence[AttemptRow]
) -> ElementTree.Element:
    item = summarise(case, attempts)
    element = ElementTree.Element(
        "testcase", name=name, classname=_plain(case.suite), time=f"{_seconds(item):.3f}"
    )
    if item.asserted_nothing:
        _property(element, "asserted_nothing", "true")
    if item.cached:
        _property(element, "cached", str(item.cached))
    kind = _KINDS.get(item.outcome)
    if kind == "skipped":
        why = why_not_run(case, info)
        told = item.outcome or (f"not run ({why})" if why else "not run")
        ElementTree.SubElement(element, kind, message=_plain(told))
    elif kind is not None:
        bad = why_not(attempts).telling
        attempt = reader.attempt(bad.id) if bad is not None else None
        detail = ElementTree.SubElement(element, kind, message=_plain(item.message), type=kind)
        detail.text = _plain("\n".join(_reasons(attempt, item)))
    return element


def _not_run(cases: int, attempts: int, info: RunInfo) -> str:
    """What of a run did not run, and why: cases, else attempts of cases that had passed often enough without them, or
    what a person cancelled; empty where all of it ran."""
    what = f"{cases} case{'' if cases == 1 else 's'} not run" if cases else left_of(attempts)
    if not what:
        return "cancelled" if info.state == "cancelled" else ""
    return what + (f" ({info.note})" if info.note else "")


def _not_whole(not_run: str, info: RunInfo, *, empty: bool) -> ElementTree.Element:
    element = ElementTree.Element("testcase", name="the whole run", classname=_RUN, time="0.000")
    # One that was cut off before its plan was written, say; files that could not be read are said.
    nothing = "nothing has run" if empty and not unread_errors_of(info) else ""
    lacks = lacks_words(info)
    beside = f"The run is not whole: {lacks}" if lacks and lacks not in not_run else ""
    why = ". ".join(filter(None, (unread_report(info), not_run or nothing, beside)))
    error = ElementTree.SubElement(element, "error", message=_plain(why), type="error")
    if listed := unread_listed_of(info):
        error.text = _plain("\n".join(one.text for one in listed))
    return element


def _property(element: ElementTree.Element, name: str, value: str) -> None:
    """JUnit has properties before everything else that an element holds."""
    properties = element.find("properties")
    if properties is None:
        properties = ElementTree.Element("properties")
        element.insert(0, properties)
    ElementTree.SubElement(properties, "property", name=name, value=value)


def _names(reader: RunReader) -> Callable[[StoredCase], str]:
    """What says a case's name, as lists have it, with its agent; CI systems take two of the same name for
    one, so those get their model, what stands last in their ids (a prompt, say), the whole of these, a mark
    of these where they differ in what XML cannot hold alone."""
    rounds: list[tuple[Callable[[StoredCase], str], set[int]]] = []

    def name(case: StoredCase) -> str:
        found = _plain(f"{case.name} [{case.agent}]" if case.agent else case.name)
        for more, twice in rounds:
            if hash((case.suite, found)) in twice:
                found = _plain(more(case))
        return found

    for more in (_with_model, _with_ending, _with_id, _with_mark):
        # Of a large run the names would take more memory than the run did.
        seen: set[int] = set()
        twice: set[int] = set()
        for case, _ in reader.by_case(listed=True):
            mark = hash((case.suite, name(case)))
            (twice if mark in seen else seen).add(mark)
        rounds.append((more, twice))
        if not twice:
            break
    return name


def _with_model(case: StoredCase) -> str:
    whom = ", ".join(part for part in (case.agent, case.model) if part)
    return f"{case.name} [{whom}]" if whom else case.name


def _with_ending(case: StoredCase) -> str:
    rest = case.case_id.rpartition("::")[2]
    own = f" {clip(rest, 200)}" if rest != case.name else ""
    return f"{_with_model(case)}{own}"


def _with_id(case: StoredCase) -> str:
    return f"{_with_model(case)} {case.case_id.removeprefix(case.suite).removeprefix('::')}"


def _with_mark(case: StoredCase) -> str:
    mark = hashlib.sha256(case.case_id.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{_with_id(case)} {mark[:8]}"


def _reasons(attempt: Attempt | None, item: CaseSummary) -> list[str]:
    lines = [f"{item.passed} of {item.judged or item.attempts} attempts passed, {item.required} required"]
    if attempt is not None:
        lines += [attempt.error] if attempt.error else []
        lines += dict.fromkeys(verdict.reason for verdict in attempt.verdicts if verdict.passed is not True)
        lines += [f"answer: {attempt.response_text[:2000]}"] if attempt.response_text else []
    return lines


def _plain(text: str) -> str:
    """XML cannot hold control characters; they become visible ones."""
    return visible(text).encode("utf-8", "replace").decode().replace("\ufffe", "�").replace("\uffff", "�")
