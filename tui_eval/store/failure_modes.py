"""How attempts fail: those that did not pass, grouped by what failed, most frequent first.

No model is needed: a group is a cause (`tui_eval.causes.alike`), made from the evidence of those who judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from tui_eval import causes
from tui_eval.model import Attempt, JudgeUse, Verdict, decoded

_EXAMPLES = 3
_NUMBER = r"\d[\d,.]*"
_STATUS = r"(?i)(?:^|\bHTTP(?:/[\d.]+)? |\bstatus(?: code)?:? )([45]\d\d)(?![\d.,]\d|\d)"


class FailedAttempt(msgspec.Struct):
    """One attempt that did not pass, by its id in the run."""

    attempt_ref: int
    case_id: str
    attempt: int
    message: str
    agent: str = ""


class FailureMode(msgspec.Struct):
    """Attempts that failed the same way.

    `what` says it in one line, `share` is of all attempts that did not pass (0–1), `examples` are the
    first few. `name` is a judge's sentence for the group, where one was asked; `also` says in one line each
    the other groups for which it had the same one (`cases` is then 0, since cases may be in several).
    """

    what: str
    count: int
    share: float
    cases: int
    examples: list[FailedAttempt]
    name: str | None = None
    also: list[str] = []


class Assessment(msgspec.Struct):
    """Failure modes of a run or a part of it. `attempts` counts those that ended, `passed` those that
    passed; `note` says why groups have no names though a judge was asked, `judging` what it took."""

    attempts: int
    passed: int
    modes: list[FailureMode]
    note: str = ""
    judging: JudgeUse | None = None


def assess(attempts: Iterable[tuple[int, Attempt]], *, passed: int = 0) -> Assessment:
    """Group the attempts (id and body) that failed or erred; an attempt counts in the group of its first
    telling verdict, so that the groups add up. `passed`: how many passed whose bodies are not among them."""
    total = passed
    modes: dict[str, FailureMode] = {}
    cases: dict[str, set[str]] = {}
    said: dict[str, set[str]] = {}
    for ref, attempt in attempts:
        if attempt.outcome in ("cancelled", "skipped"):
            continue
        total += 1
        if attempt.outcome == "passed":
            passed += 1
            continue
        what = mode_of(attempt)
        mode = modes.setdefault(what, FailureMode(what, 0, 0.0, 0, []))
        mode.count += 1
        cases.setdefault(what, set()).add(attempt.case_id)
        if len(own := said.setdefault(what, set())) <= causes.COMPARED:
            own.add(causes.cause_of(attempt))
        if len(mode.examples) < _EXAMPLES:
            mode.examples.append(
                FailedAttempt(ref, attempt.case_id, attempt.attempt, attempt.message, attempt.agent or "")
            )
    for mode in modes.values():
        mode.share, mode.cases = mode.count / (total - passed), len(cases[mode.what])
        # As folds and groups say it: the judge's own words where they are the same, a figure from the least
        # to the most.
        mode.what = causes.shared(sorted(said[mode.what])) or mode.what
    return Assessment(total, passed, sorted(modes.values(), key=lambda mode: (-mode.count, mode.what)))


def classified(assessment: Assessment) -> Assessment:
    """The groups to which the judge gave the same name taken together, most frequent first; those without a
    name as they are."""
    found: dict[str, FailureMode] = {}
    for mode in assessment.modes:
        key = " ".join((mode.name or "").casefold().split()).rstrip(".") or f"\n{mode.what}"
        first = found.get(key)
        if first is None:
            found[key] = mode
            continue
        found[key] = msgspec.structs.replace(
            first,
            count=first.count + mode.count,
            share=first.share + mode.share,
            cases=0,
            examples=[*first.examples, *mode.examples][:_EXAMPLES],
            also=[*first.also, mode.what],
        )
    modes = sorted(found.values(), key=lambda mode: -mode.count)
    return msgspec.structs.replace(assessment, modes=modes)


def mode_of(attempt: Attempt) -> str:
    """What failed in an attempt, in words that are the same for attempts that fail alike: its cause. Of attempts
    without evidence (older runs, imported results) their prose is made alike."""
    return causes.alike(attempt) or _of_prose(attempt)


def _of_prose(attempt: Attempt) -> str:
    if attempt.error:
        return f"error: {_general(attempt.error)}"
    verdict = next((item for item in attempt.verdicts if item.passed is False), None)
    if verdict is None:
        verdict = next((item for item in attempt.verdicts if item.passed is None), None)
        if verdict is None:
            return _general(attempt.message) or attempt.outcome
        return f"could not be judged: {verdict.type}: {_general(verdict.reason)}"
    where = f"turn {verdict.turn}, " if verdict.turn else ""
    return f"{where}{_named(verdict)}: {_difference(verdict, attempt)}"


def _named(verdict: Verdict) -> str:
    plain = verdict.target in ("", "text")
    return verdict.type if plain else f"{verdict.type} of {verdict.target}"


def _difference(verdict: Verdict, attempt: Attempt) -> str:
    if verdict.type == "sql" and attempt.data is not None:
        columns = _columns(attempt.data.comparison or "")
        message = attempt.message.partition(":")[0] if ":" in attempt.message else attempt.message
        return f"{_general(message)}{f' in {columns}' if columns else ''}"
    expected = verdict.expected
    if isinstance(expected, str) and expected and len(expected) <= 80:
        return expected
    if isinstance(expected, int | float | bool):
        return f"expected {expected}"
    return _general(verdict.reason)


def _columns(comparison: str) -> str:
    """Columns named in the text of a frame difference (`row …, column NAME: …`)."""
    names = re.findall(r"column ['\"]?([^'\",:]+)['\"]?", comparison)
    return ", ".join(dict.fromkeys(name.strip() for name in names[:5]))


def _general(text: str) -> str:
    """Without what changes from attempt to attempt: long quotations and figures; an HTTP status tells."""
    line = causes.QUOTED.sub("'…'", " ".join(text.split()))
    statuses = {found.start(1) for found in re.finditer(_STATUS, line)}
    return re.sub(_NUMBER, lambda found: found[0] if found.start() in statuses else "N", line)[:160]


decoded(Assessment)
