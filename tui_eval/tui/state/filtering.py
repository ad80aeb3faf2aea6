"""The filter expression of the case lists: `failed agent:support tag:refund -suite:old "two words"`.

Terms are joined by *and*. A word that names an outcome or state asks for it; several such words are
alternatives. `key:value` looks into one part of the case; `-` before a term turns it round; anything
else is looked for in name, path, messages and tags, without regard to case.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

STATUSES = {
    "passed": ("passed",),
    "pass": ("passed",),
    "failed": ("failed",),
    "fail": ("failed",),
    "error": ("error",),
    "errors": ("error",),
    "cancelled": ("cancelled",),
    "skipped": ("skipped",),
    "running": ("running", "retrying"),
    "retrying": ("retrying",),
    "waiting": ("waiting",),
    "flaky": ("flaky",),
    "new": ("",),
    "bad": ("failed", "error", "cancelled"),
}
KEYS = ("agent", "model", "suite", "tag", "format", "name", "id", "prompt")


@dataclass(slots=True)
class Subject:
    """What a filter looks at. `tags` are metadata as `key=value` and bare values; `text` is everything
    that a bare word may match, made only when it is asked for."""

    status: str
    flaky: bool
    name: str
    case_id: str
    suite: str
    format: str
    agent: str
    model: str
    prompt: str
    tags: Callable[[], list[str]]
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: `key` is empty for bare text."""

    key: str
    value: str
    negative: bool


class FilterError(Exception):
    """The expression cannot be understood; one line that says what could be meant."""


@dataclass(frozen=True, slots=True)
class CaseFilter:
    """A parsed expression."""

    expression: str
    statuses: frozenset[str]
    excluded: frozenset[str]
    terms: tuple[Term, ...]

    def matches(self, subject: Subject) -> bool:
        """Whether the case is shown."""
        if self.statuses and not _has_status(subject, self.statuses):
            return False
        if self.excluded and _has_status(subject, self.excluded):
            return False
        return all(_matches(term, subject) != term.negative for term in self.terms)


def parse(expression: str) -> CaseFilter:
    """Read an expression.

    Raises:
        FilterError: a quote is not closed, or a key is not one of `KEYS`.
    """
    try:
        words = shlex.split(expression, posix=True)
    except ValueError:
        words = expression.replace('"', "").replace("'", "").split()
    statuses: set[str] = set()
    excluded: set[str] = set()
    terms: list[Term] = []
    for word in words:
        negative = word.startswith("-") and len(word) > 1
        body = word[1:] if negative else word
        if body.lower() in STATUSES:
            (excluded if negative else statuses).update(STATUSES[body.lower()])
            continue
        key, colon, value = body.partition(":")
        if colon and key.lower() in KEYS:
            if value:
                terms.append(Term(key.lower(), value.lower(), negative))
        elif (
            colon
            and key.isalpha()
            and len(key) < 10
            and value
            and not value.startswith("//")
            and " " not in word
        ):
            raise FilterError(f"no {key}: to filter by; there are {', '.join(f'{name}:' for name in KEYS)}")
        else:
            terms.append(Term("", body.lower(), negative))
    return CaseFilter(expression.strip(), frozenset(statuses), frozenset(excluded), tuple(terms))


def tags_of(metadata: dict[str, Any]) -> list[str]:
    """Metadata as things to filter by, in lower case."""
    tags: list[str] = []
    for key, value in metadata.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (str, int, float, bool)):
                text = str(item).lower()
                tags += [text, f"{key}={text}".lower()]
    return tags


def _has_status(subject: Subject, statuses: frozenset[str]) -> bool:
    return subject.status in statuses or (subject.flaky and "flaky" in statuses)


def _matches(term: Term, subject: Subject) -> bool:
    value = term.value
    match term.key:
        case "agent":
            return value in subject.agent.lower()
        case "model":
            return value in subject.model.lower()
        case "suite":
            return value in subject.suite.lower()
        case "format":
            return subject.format.lower().replace("_", "-").startswith(value.replace("_", "-"))
        case "name":
            return value in subject.name.lower()
        case "id":
            return value in subject.case_id.lower()
        case "prompt":
            return value in subject.prompt.lower()
        case "tag":
            return any(value == tag or ("=" not in value and value in tag) for tag in subject.tags())
    return (
        value in subject.name.lower() or value in subject.case_id.lower() or value in subject.text().lower()
    )
