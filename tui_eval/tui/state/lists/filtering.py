"""The filter expression of the case lists: `failed agent:support tag:refund -suite:old "two words"`.

Terms are joined by *and*. A word that names an outcome or state asks for it; several such words are
alternatives. `duration:>5s`, `cost:>0.01`, `tokens:<500` compare; `@name` stands for a saved expression.
`key:value` looks into one part of the case; `differs` asks for tests whose columns came out differently;
`star` and `noted` ask for a person's note, `note:` for words in it and `verdict:right` or `verdict:wrong` for
what it says; `-` before a term turns it round; anything else is looked for in all that a row says, in what is
asked and in tags, without regard to case.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from msgspec import Struct

from tui_eval.store.notes import HumanNote
from tui_eval.tui.state.lists.case_entry import CaseRow

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
    "new": ("", "not-run"),
    "bad": ("failed", "error", "cancelled"),
}
FLAGS = ("star", "noted", "differs")
KEYS = ("agent", "model", "suite", "tag", "format", "name", "id", "prompt", "note", "verdict")
NUMBERS = ("duration", "cost", "tokens")
_NUMBER = r"(<=|>=|<|>|=)?%s(\d+(?:\.\d+)?)%s"
_COMPARED = {
    "duration": re.compile(_NUMBER % ("", "(ms|s|m|h)?")),
    "cost": re.compile(_NUMBER % (r"\$?", "()")),
    "tokens": re.compile(_NUMBER % ("", "()")),
}
"""How a number is written; only times have units, and `m` is minutes, no million."""
_QUOTED = r"""("[^"]*"|'[^']*')"""
_SAVED = r"(?<!\S)(-?)@(\S+)"
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Subject(Struct):
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
    duration: float | None = None
    """Seconds."""
    cost: float | None = None
    tokens: int | None = None
    note: HumanNote | None = None
    """A person's."""
    differs: bool = False
    """Whether the rows of its test came out differently."""


class Term(Struct, frozen=True):
    """One condition: `key` is empty for bare text."""

    key: str
    value: str
    negative: bool


class ListFilterError(Exception):
    """The expression cannot be understood; one line that says what could be meant."""


class CaseFilter(Struct, frozen=True):
    """A parsed expression."""

    expression: str
    statuses: frozenset[str]
    excluded: frozenset[str]
    terms: tuple[Term, ...]

    @property
    def compares_rows(self) -> bool:
        """Whether it asks how the other rows of a test came out."""
        return any(term.key == "is" and term.value == "differs" for term in self.terms)

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
        if body.lower() in FLAGS:
            terms.append(Term("is", body.lower(), negative))
            continue
        key, colon, value = body.partition(":")
        if colon and key.lower() in KEYS:
            if value:
                terms.append(Term(key.lower(), value.lower(), negative))
        elif colon and key.lower() in NUMBERS:
            if value:
                if _COMPARED[key.lower()].fullmatch(value.lower()) is None:
                    raise ListFilterError(
                        f"{key}: wants a number, such as {key}:>{'5s' if key == 'duration' else '1'}"
                    )
                terms.append(Term(key.lower(), value.lower(), negative))
        elif (
            colon
            and key.isalpha()
            and len(key) < 10
            and value
            and not value.startswith("//")
            and " " not in word
        ):
            raise ListFilterError(_no_such(key))
        else:
            terms.append(Term("", body.lower(), negative))
    return CaseFilter(expression.strip(), frozenset(statuses), frozenset(excluded), tuple(terms))


def _no_such(key: str) -> str:
    names = (*KEYS, *NUMBERS)
    close = get_close_matches(key.lower(), names, 1) or [
        name for name in names if name.startswith(key.lower())
    ]
    meant = f"{close[0]}: is meant?" if close else f"there are {' '.join(f'{name}:' for name in names)}"
    return f"no {key}: to filter by; {meant}"


def expand(expression: str, saved: Mapping[str, str]) -> str:
    """The expression with every `@name` outside quotes replaced by what was saved under that name; `-@name` by its term
    turned round.

    Raises:
        FilterError: nothing was, names stand for each other, or what is to be turned round is not one term.
    """

    def meant(found: re.Match[str]) -> str:
        quoted, turned, name = found.groups()
        if quoted:
            return quoted
        if name not in saved:
            there = ", ".join(f"@{one}" for one in saved) or "none"
            raise ListFilterError(f"no filter @{name}; there are: {there}")
        return _turned_round(saved[name], name) if turned else saved[name]

    for _ in range(8):
        if (expanded := re.sub(f"{_QUOTED}|{_SAVED}", meant, expression)) == expression:
            return expression
        expression = expanded
    raise ListFilterError("saved filters name each other in a circle")


def _turned_round(expression: str, name: str) -> str:
    words = re.findall(r"""(?:"[^"]*"|'[^']*'|\S)+""", expression)
    if len(words) != 1:  # not all of several at once: no terms that are joined by *and* say that
        raise ListFilterError(f"-@{name}: @{name} is several terms, turn round each of them: {expression}")
    return words[0][1:] if words[0].startswith("-") else f"-{words[0]}"


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
        case "is" if value == "differs":
            return subject.differs
        case "is":
            return subject.note is not None and (value == "noted" or subject.note.star)
        case "note":
            return subject.note is not None and value in subject.note.text.lower()
        case "verdict":
            return subject.note is not None and (subject.note.verdict or "").startswith(value)
    if term.key in NUMBERS:
        return _compares(getattr(subject, term.key), _COMPARED[term.key].fullmatch(value))
    return (
        value in subject.name.lower() or value in subject.case_id.lower() or value in subject.text().lower()
    )


def _compares(number: float | None, found: re.Match[str] | None) -> bool:
    """`>5s`, `<=100`; a number alone asks for at least it. What is not known never matches."""
    if number is None or found is None:
        return False
    sign, digits, unit = found.groups()
    wanted = float(digits) * _SECONDS.get(unit or "s", 1.0)
    match sign:
        case "<":
            return number < wanted
        case "<=":
            return number <= wanted
        case ">":
            return number > wanted
        case "=":
            return number == wanted
    return number >= wanted


MOST_ENTRIES = 5_000
"""Cases whose names of agents, suites and tags are offered."""
Values = Mapping[str, list[str]]


def values_of(entries: Iterable[CaseRow], saved: Iterable[str] = ()) -> dict[str, list[str]]:
    """What may follow each key, by key; under the empty key what may stand alone."""
    found: dict[str, dict[str, None]] = {key: {} for key in ("agent", "model", "suite", "tag", "format")}
    for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
        said = (entry.agent, entry.whom.model, entry.suite, entry.format)
        for key, value in zip(("agent", "model", "suite", "format"), said, strict=True):
            if value:
                found[key].setdefault(value)
        if entry.case is not None and entry.case.metadata:
            found["tag"].update(dict.fromkeys(tags_of(entry.case.metadata)))
    found["verdict"] = dict.fromkeys(("right", "wrong"))
    alone = [*STATUSES, *FLAGS, *(f"{key}:" for key in (*KEYS, *NUMBERS)), *(f"@{name}" for name in saved)]
    return {"": alone, **{key: list(values) for key, values in found.items()}}


def offers(expression: str, values: Values) -> list[str]:
    """What the last word may become. What has spaces or quotes in it is not offered: it would have to be
    quoted from its beginning on."""
    key, begun = _begun(expression)
    if not key and not begun:
        return []
    return [
        value
        for value in values.get(key, ())
        if value.lower().startswith(begun) and len(value) > len(begun) and not set(value) & set(" \t\n'\"")
    ]


def completed(expression: str, values: Values) -> str | None:
    """The expression with its last word completed; None where there is nothing to add."""
    found = offers(expression, values)
    return expression + found[0][len(_begun(expression)[1]) :] if found else None


def _begun(expression: str) -> tuple[str, str]:
    """The key of the last word, and what has been typed after it."""
    word = expression[expression.rfind(" ") + 1 :].lower().removeprefix("-")
    key, colon, begun = word.partition(":")
    return (key, begun) if colon else ("", word)
