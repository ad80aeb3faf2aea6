"""JUnit XML, as CI systems read it: a suite per file, a test case per case and agent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from tui_eval.guard.text import clip, visible
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.store.shard_runs import shard_words
from tui_eval.store.summary import CaseSummary, summarise_run

COUNTS = ("tests", "failures", "errors", "skipped")
_RUN = "tui-eval"
"""The suite that says what concerns no suite."""


def write(reader: RunReader, path: Path) -> None:
    """Write the run. A case that did not pass is a failure or an error with the reasons of its first
    attempt that did not pass; one that did not run is skipped, and where nothing else is wrong an error of its own
    says that the run is not whole: what was not run is no success. One that
    passed and asserted nothing has the property `asserted_nothing`, its suite how many do. Times are seconds
    over all attempts."""
    cases, attempts = reader.cases(), reader.attempts()
    bad: dict[int, AttemptRow] = {}
    for row in attempts:
        if row.outcome not in (None, "passed"):
            bad.setdefault(row.case_ref, row)
    info = reader.info()
    root = ElementTree.Element("testsuites", name=f"tui-eval {shard_words(info.provenance)}".strip())
    started = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(info.started_at))
    suites: dict[str, ElementTree.Element] = {}
    counts: dict[str, dict[str, int]] = {}
    seconds: dict[str, float] = {}
    idle: dict[str, int] = {}
    names, left = _names(cases), 0
    for case, item in zip(cases, summarise_run(cases, attempts), strict=True):
        if case.suite not in suites:
            suites[case.suite] = ElementTree.SubElement(
                root, "testsuite", name=_plain(case.suite), timestamp=started
            )
            counts[case.suite] = dict.fromkeys(COUNTS, 0)
        took = (item.duration_ms or 0) / 1000 * item.timed
        seconds[case.suite] = seconds.get(case.suite, 0.0) + took
        element = ElementTree.SubElement(
            suites[case.suite],
            "testcase",
            name=_plain(names[case.id]),
            classname=_plain(case.suite),
            time=f"{took:.3f}",
        )
        counts[case.suite]["tests"] += 1
        if item.asserted_nothing:
            _property(element, "asserted_nothing", "true")
            idle[case.suite] = idle.get(case.suite, 0) + 1
        if item.cached:
            _property(element, "cached", str(item.cached))
        if item.outcome == "passed":
            continue
        if item.outcome is None or item.outcome in ("skipped", "cancelled"):
            left += item.outcome != "skipped"
            counts[case.suite]["skipped"] += 1
            ElementTree.SubElement(
                element,
                "skipped",
                message=_plain(item.outcome or (f"not run ({info.note})" if info.note else "not run")),
            )
            continue
        kind = "error" if item.outcome == "error" else "failure"
        counts[case.suite][f"{kind}s"] += 1
        attempt = reader.attempt(bad[case.id].id) if case.id in bad else None
        detail = ElementTree.SubElement(element, kind, message=_plain(item.message), type=kind)
        detail.text = _plain("\n".join(_reasons(attempt, item)))
    if left and not any(count["failures"] + count["errors"] for count in counts.values()):
        suites[_RUN] = ElementTree.SubElement(root, "testsuite", name=_RUN, timestamp=started)
        element = ElementTree.SubElement(
            suites[_RUN], "testcase", name="the whole run", classname=_RUN, time="0.000"
        )
        why = f"{left} case{'' if left == 1 else 's'} not run" + (f" ({info.note})" if info.note else "")
        ElementTree.SubElement(element, "error", message=_plain(why), type="error")
        counts[_RUN], seconds[_RUN] = {**dict.fromkeys(COUNTS, 0), "tests": 1, "errors": 1}, 0.0
    for suite, element in suites.items():
        _count(element, counts[suite], seconds[suite])
        if suite in idle:
            _property(element, "asserted_nothing", str(idle[suite]))
    whole = {name: sum(count[name] for count in counts.values()) for name in COUNTS}
    _count(root, whole, sum(seconds.values()))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _property(element: ElementTree.Element, name: str, value: str) -> None:
    """JUnit has properties before everything else that an element holds."""
    properties = element.find("properties")
    if properties is None:
        properties = ElementTree.Element("properties")
        element.insert(0, properties)
    ElementTree.SubElement(properties, "property", name=name, value=value)


def _count(element: ElementTree.Element, counts: dict[str, int], seconds: float) -> None:
    for name in COUNTS:
        element.set(name, str(counts[name]))
    element.set("time", f"{seconds:.3f}")


def _names(cases: Sequence[StoredCase]) -> dict[int, str]:
    """Each case's name with its agent, by its row; CI systems take two of the same name for one, so those
    get their model and what tells their ids apart (a prompt, say), too."""
    found = {case.id: f"{case.name} [{case.agent}]" for case in cases}
    for more in (_with_model, _with_id):
        taken: dict[tuple[str, str], list[StoredCase]] = {}
        for case in cases:
            taken.setdefault((case.suite, found[case.id]), []).append(case)
        for same in taken.values():
            if len(same) > 1:
                found.update({case.id: more(case) for case in same})
    return found


def _with_model(case: StoredCase) -> str:
    return f"{case.name} [{', '.join(part for part in (case.agent, case.model) if part)}]"


def _with_id(case: StoredCase) -> str:
    rest = case.case_id.rpartition("::")[2]
    own = f" {clip(rest, 200)}" if rest != case.name else ""
    return f"{_with_model(case)}{own}"


def _reasons(attempt: Attempt | None, item: CaseSummary) -> list[str]:
    lines = [f"{item.passed} of {item.attempts} attempts passed, {item.required} required"]
    if attempt is not None:
        lines += [attempt.error] if attempt.error else []
        lines += [verdict.reason for verdict in attempt.verdicts if verdict.passed is not True]
        lines += [f"answer: {attempt.response_text[:2000]}"] if attempt.response_text else []
    return lines


def _plain(text: str) -> str:
    """XML cannot hold control characters; they become visible ones."""
    return visible(text).encode("utf-8", "replace").decode().replace("\ufffe", "�").replace("\uffff", "�")
