"""JUnit XML, as CI systems read it: a suite per file, a test case per case and agent."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from tui_eval.guard.text import visible
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader
from tui_eval.store.summary import CaseSummary, summarise_run


def write(reader: RunReader, path: Path) -> None:
    """Write the run. A case that did not pass is a failure or an error with the reasons of its first
    attempt that did not pass; one that did not run is skipped."""
    cases, attempts = reader.cases(), reader.attempts()
    summaries = summarise_run(cases, attempts)
    root = ElementTree.Element("testsuites", name="tui-eval")
    by_suite: dict[str, ElementTree.Element] = {}
    counts: dict[str, list[int]] = {}
    for case, item in zip(cases, summaries, strict=True):
        if case.suite not in by_suite:
            by_suite[case.suite] = ElementTree.SubElement(root, "testsuite", name=_plain(case.suite))
            counts[case.suite] = [0, 0, 0, 0]
        element = ElementTree.SubElement(
            by_suite[case.suite],
            "testcase",
            name=_plain(f"{case.name} [{case.agent}]"),
            classname=_plain(case.suite),
            time=f"{(item.duration_ms or 0) / 1000 * max(1, item.attempts):.3f}",
        )
        count = counts[case.suite]
        count[0] += 1
        if item.outcome == "passed":
            continue
        if item.outcome is None or item.outcome in ("skipped", "cancelled"):
            count[3] += 1
            ElementTree.SubElement(element, "skipped", message=_plain(item.outcome or "not run"))
            continue
        kind = "error" if item.outcome == "error" else "failure"
        count[1 if kind == "failure" else 2] += 1
        bad = next(row for row in attempts if row.case_ref == case.id and row.outcome not in (None, "passed"))
        attempt = reader.attempt(bad.id)
        detail = ElementTree.SubElement(element, kind, message=_plain(item.message), type=kind)
        detail.text = _plain("\n".join(_reasons(attempt, item)))
    for suite, element in by_suite.items():
        tests, failures, errors, skipped = counts[suite]
        element.set("tests", str(tests))
        element.set("failures", str(failures))
        element.set("errors", str(errors))
        element.set("skipped", str(skipped))
    ElementTree.indent(root)
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


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
