"""Why an attempt did not pass, in few words made from evidence: for lists, groups and reports.

Nothing here reads a sentence: words are made from a piece's code and values, fact first (`lacks "2 years"`,
`latency 2.4s > 2.0s`). Verdicts without evidence (older runs, assertions of other packages) have their prose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from tui_eval.guard.figures import usd_in_full
from tui_eval.guard.spelling import some_of
from tui_eval.guard.text import unseen
from tui_eval.model import Attempt, Evidence, Verdict

LONGEST = 300
"""Characters of the words for one attempt."""
NEEDS_TRUST = "needs-trust"
"""The code of what was not done without the person's trust; it is agreed to word for word, so its text is whole."""
_VALUE = 48
_ALL = 100_000
_TEXT = 90
_NAMES = 3
_SIGNS = {"outside": "in", "<=": ">", ">=": "<", "==": "≠", "!=": "=", "<": "≥", ">": "≤"}
"""What is the case where a comparison does not hold."""
_MILLISECONDS = ("latency", "duration")
_DOLLARS = ("cost",)
_PLAIN = ("score",)
"""Figures of which a list names no more than their value and its limit."""


def cause_of(attempt: Attempt) -> str:
    """Why an attempt failed or erred, in one line; empty where it passed, or nothing says so but prose."""
    if attempt.outcome not in ("failed", "error"):
        return ""
    own = words_of_pieces(attempt.evidence or ())
    if attempt.error or (own and not attempt.verdicts):
        return own
    verdicts = telling(attempt.verdicts)
    if not own and not any(verdict.evidence for verdict in verdicts):
        return ""
    return _joined([own, *(words_of(verdict) for verdict in verdicts)])


def alike(attempt: Attempt) -> str:
    """What those that failed the same way have in common, in one line: the cause that tells first, without what
    changes from answer to answer. Empty where there is no cause."""
    if attempt.outcome not in ("failed", "error"):
        return ""
    if attempt.evidence and (attempt.error or not attempt.verdicts):
        return _alike(attempt.evidence)
    for verdict in telling(attempt.verdicts):
        if found := _alike(verdict.evidence or ()):
            part, _, below = verdict.target.partition(".")
            about = "" if part not in ("sly_data", "structure") else below.rpartition(".")[2] or part
            return f"{about}: {found}" if about and about not in found else found
    return _alike(attempt.evidence or ())


def _alike(evidence: Iterable[Evidence]) -> str:
    """Of the first code that fails."""
    pieces = [one for one in evidence if one.code in WORDS]
    if not pieces:
        return ""
    code = pieces[0].code
    return _ALIKE.get(code, WORDS[code])([one for one in pieces if one.code == code])


NOT_IN_FILE = "not in the results file"


def is_of_file(alike: str) -> bool:
    """Whether all that an attempt did not pass for, as `alike` has it, is that a results file lacks what
    judging needs."""
    return alike.endswith(NOT_IN_FILE)


def telling(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The verdicts that say why: those that failed, else those that could not be judged. A set counts by its
    members, unless its own score decided."""
    shown = [one for one in counting(verdicts) if not _repeats(one)]
    failed = [one for one in shown if one.passed is False]
    return failed + [one for one in shown if one.passed is None]


def counting(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Those that decide: a member of a set that passed, by its threshold, made nothing fail."""
    passed = {place for place, one in enumerate(verdicts) if one.type == "assert-set" and one.passed}
    return [one for one in verdicts if one.set not in passed]


def _repeats(verdict: Verdict) -> bool:
    return bool(verdict.evidence) and verdict.evidence[0].code in ("members", "later")


def words_of(verdict: Verdict) -> str:
    """Why a verdict is not a pass, in few words; its prose where it has no evidence that says so."""
    words = words_of_pieces(verdict.evidence or ())
    if not words:
        return line(verdict.reason[:_LOOKED_AT], LONGEST)
    part, _, below = verdict.target.partition(".")
    about = "" if part not in ("sly_data", "structure") else below.rpartition(".")[2] or part
    return f"{about}: {words}" if about and about not in words else words


_LOOKED_AT = 2_000


def words_of_pieces(evidence: Iterable[Evidence]) -> str:
    """The failing pieces in few words, those of one code together; empty where none fails."""
    by_code: dict[str, list[Evidence]] = {}
    for one in evidence:
        if one.code in WORDS:
            by_code.setdefault(one.code, []).append(one)
    return _joined(WORDS[code](pieces) for code, pieces in by_code.items())


def code_of(verdict: Verdict) -> str:
    """The code of a verdict: of the first piece that fails, else of the first; empty without evidence."""
    evidence = verdict.evidence or []
    first = next((one for one in evidence if one.code in WORDS), evidence[0] if evidence else None)
    return first.code if first is not None else ""


def _joined(parts: Iterable[str]) -> str:
    words = "; ".join(dict.fromkeys(part for part in parts if part))
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def shown(value: Any, most: int = _VALUE) -> str:
    """A value in a line: texts quoted, numbers in their shortest form, anything else as JSON."""
    if isinstance(value, str):
        return quoted(value, most)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value)
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def quoted(text: str, most: int = _VALUE) -> str:
    """A text in quotation marks, on one line."""
    line = " ".join(text.split()) or text
    return f'"{line}"' if len(line) <= most else f'"{line[: most - 1]}…"'


def line(text: str, most: int = _TEXT) -> str:
    """A text on one line, cut where it is long."""
    words = " ".join(text.split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def _listed(
    pieces: Sequence[Evidence], word: Callable[[Evidence], str] = lambda one: quoted(one.text)
) -> str:
    return some_of(list(dict.fromkeys(word(one) for one in pieces)), _NAMES)


_PART = r'; (?=(?:[^"]*"[^"]*")*[^"]*$)'
_MEASURED = r"(-?\$?(\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?))( ms| s|) ([<>≤≥≠=] .+)"
"""A figure that is not as it should be: as it is written, its number, its unit, and the rest."""
COMPARED = 200
"""Different causes that are looked through for what they share."""


def shared(causes: Iterable[str]) -> str:
    """What these causes of attempts that failed alike all say, a figure as what it reaches from and to
    (`24.5–49 s > 6 s`); empty where what tells first is not said by all."""
    told = list(dict.fromkeys(causes))
    if len(told) > COMPARED:
        return ""
    parts = [re.split(_PART, cause) for cause in told]
    said = [part for part in (parts[0] if parts else ()) if all(part in others for others in parts)]
    if parts and parts[0][0] not in said:
        first = _measured(parts[0][0], parts)
        said = [first, *said] if first else []
    return _joined(said)


def _measured(part: str, every: Sequence[Sequence[str]]) -> str:
    """A figure with its limit, from the least to the most that is said of it; empty where one does not say it."""
    own = re.fullmatch(_MEASURED, part)
    if own is None:
        return ""
    figures: list[re.Match[str]] = []
    for parts in every:
        found = (re.fullmatch(_MEASURED, one) for one in parts)
        one = next((one for one in found if one is not None and one[4] == own[4]), None)
        if one is None:
            return ""
        figures.append(one)
    least, most = min(figures, key=_amount), max(figures, key=_amount)
    unit = "" if least[3] == most[3] else least[3]
    return f"{least[1]}{unit}–{most[1]}{most[3]} {own[4]}"


def _amount(found: re.Match[str]) -> float:
    number = float(found[2].replace(",", "")) / (1000 if found[3] == " ms" else 1)
    return -number if found[1].startswith("-") else number


def _lacks(pieces: Sequence[Evidence]) -> str:
    return f"lacks {_listed(pieces)}"


def _has(pieces: Sequence[Evidence]) -> str:
    return f"has {_listed(pieces)}"


def _field(one: Evidence) -> str:
    where = "" if one.path in ("", "$") else f"{line(one.path, 60)} "
    if one.code == "absent-field":
        return f"{where}not there"
    if one.code == "extra-field":
        return f"{where}not expected"
    if one.code == "same":
        return f"{where}= {shown(one.actual)}"
    texts = isinstance(one.expected, str) and isinstance(one.actual, str)
    if texts and (apart := unseen(one.expected, one.actual)):
        return f"{where}≠ {quoted(one.expected)}: the same but for {apart}"
    if texts and _only_blanks(one.expected, one.actual):
        wanted, given = _with_blanks(one.expected, one.actual)
        return f"{where}≠ {quoted(wanted)}: {quoted(given)} (blanks)"
    if not where and isinstance(one.expected, str) and isinstance(one.actual, str):
        wanted, given = _from_difference(one.expected, one.actual)
        if wanted and given and wanted != given:  # else the marks around them differ
            return f"≠ {wanted}: {given}"
    wanted, given = _told_apart(one.expected, one.actual)
    return f"{where}≠ {wanted}: {given}"


def _told_apart(expected: Any, actual: Any) -> tuple[str, str]:
    """Two values that differ, in a line each, so that they can be told apart: numbers with all their digits, texts
    from shortly before where they part, where they would read alike otherwise."""
    wanted, given = shown(expected), shown(actual)
    if wanted != given or expected == actual:
        return wanted, given
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return repr(expected), repr(actual)
    if isinstance(expected, str) and isinstance(actual, str):
        first, second = _from_difference(expected, actual)
        return quoted(first), quoted(second)
    return _from_difference(shown(expected, _ALL), shown(actual, _ALL))


_SHARED = 16
_BEFORE = 8
_BLANKS = str.maketrans({" ": "·", "\t": "⇥", "\n": "↵", "\r": "␍"})


def _only_blanks(expected: str, actual: str) -> bool:
    """Whether two texts differ in nothing that would be seen on a line."""
    return expected != actual and expected.split() == actual.split()


def _with_blanks(expected: str, actual: str) -> tuple[str, str]:
    """Two texts from shortly before where they part, their blanks to be seen."""
    same = next((at for at, (a, b) in enumerate(zip(expected, actual, strict=False)) if a != b), None)
    same = min(len(expected), len(actual)) if same is None else same
    first = max(0, same - _BEFORE)
    begin = "…" if first else ""
    wanted, given = (text[first : same + _SHARED].translate(_BLANKS) for text in (expected, actual))
    return begin + wanted, begin + given


def _from_difference(expected: str, actual: str) -> tuple[str, str]:
    """Two texts on a line each, from shortly before where they part."""
    wanted, given = " ".join(expected.split()), " ".join(actual.split())
    same = next((at for at, (a, b) in enumerate(zip(wanted, given, strict=False)) if a != b), None)
    same = min(len(wanted), len(given)) if same is None else same
    if same > _SHARED and wanted != given:
        at = same - _BEFORE
        wanted, given = f"…{wanted[at:]}", f"…{given[at:]}"
    return line(wanted, _VALUE), line(given)


def _fields(pieces: Sequence[Evidence]) -> str:
    more = f" and {len(pieces) - 1} more" if len(pieces) > 1 else ""
    return _field(pieces[0]) + more


def figure(what: str, value: Any) -> str:
    """A figure as it is read: milliseconds as time, USD with four digits."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return shown(value)
    if what in _MILLISECONDS:
        return f"{value / 1000:.3g} s" if value >= 999.5 else f"{value:.0f} ms"
    if what in _DOLLARS:
        return usd_in_full(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _budget(pieces: Sequence[Evidence]) -> str:
    one = pieces[0]
    sign = _SIGNS.get(one.rule, one.rule)
    given, wanted = figure(one.path, one.actual), figure(one.path, one.expected)
    if given == wanted and one.actual != one.expected:
        given, wanted = str(one.actual), str(one.expected)
    words = f"{given} {sign} {wanted}"
    if "." in one.path or isinstance(one.actual, str):  # no unit: where it stands
        return f"{line(one.path, 60)}: {words}"
    unit = one.path in (*_MILLISECONDS, *_DOLLARS, *_PLAIN)
    return words if unit or not one.path else f"{words} {line(one.path, 60)}"


def _says(word: str) -> Callable[[Sequence[Evidence]], str]:
    """A word, and what the piece says."""

    def words(pieces: Sequence[Evidence]) -> str:
        said = line(pieces[0].text)
        return f"{word}: {said}" if word and said else word or said

    return words


def _says_more(word: str, told: str, instead: str) -> Callable[[Sequence[Evidence]], str]:
    """A word, and what the piece says beyond it: its beginning (`told`) says the word once more, and a short line would
    end before the fact."""

    def words(pieces: Sequence[Evidence]) -> str:
        said = line(pieces[0].text)
        found = re.fullmatch(told, said, re.DOTALL)
        return line(found.expand(instead)) if found else f"{word}: {said}".removesuffix(": ")

    return words


_OF_QUERIES = (
    (r'[A-Z]\w+ Error: Referenced column ("[^"]*") not found.*', r"no column \1"),
    (r"[A-Z]\w+ Error: Table with name (\S+) does not exist.*", r"no table \1"),
    (r"(?:[A-Z]\w+ )+Error: (.*)", r"\1"),
)
"""What DuckDB says of a query, and the fact in it."""


def _query_failed(pieces: Sequence[Evidence]) -> str:
    said = line(pieces[0].text)
    for told, fact in _OF_QUERIES:
        if (found := re.fullmatch(told, said, re.DOTALL)) is not None:
            return f"expected SQL: {found.expand(fact)}"
    return f"expected SQL: {said}".removesuffix(": ")


_EXCEPTION = r"[A-Za-z_.]*(Error|Exception|Exit|Interrupt|Warning)\b"


_REFUSED = r"[1-5]\d\d: "


def _raised(pieces: Sequence[Evidence]) -> str:
    return _of_script(line(pieces[0].text))


def _of_script(said: str) -> str:
    """What a script raised; an exception's name says that it is one, a status that a model's service refused."""
    return (
        said
        if re.match(_EXCEPTION, said) or re.match(_REFUSED, said)
        else ": ".join(filter(None, ("script", said)))
    )


def _schema(pieces: Sequence[Evidence]) -> str:
    return f"{line(pieces[0].path, 60)} {line(pieces[0].text)}"


def _calls(word: str) -> Callable[[Sequence[Evidence]], str]:
    return lambda pieces: f"{_listed(pieces, lambda one: line(one.text, 40))} {word}"


def _arguments(pieces: Sequence[Evidence]) -> str:
    return f"{line(pieces[0].text, 40)}({_field(pieces[0])})"


def _http(pieces: Sequence[Evidence]) -> str:
    said = line(pieces[0].text)
    status = str(pieces[0].actual or "HTTP")
    if said.startswith(status):
        return said
    return f"{status}: {said}" if said else status


def _at(word: str) -> Callable[[Sequence[Evidence]], str]:
    """A word, where that was, and what was said of it."""

    def words(pieces: Sequence[Evidence]) -> str:
        one = pieces[0]
        said = line(one.text)
        return f"{word} {one.path}: {said}" if one.path and said else f"{word} {one.path or said}".rstrip()

    return words


def _late(pieces: Sequence[Evidence]) -> str:
    """Whether an answer had begun, and how far it had come."""
    one, words = pieces[0], _over_time(pieces)
    if not isinstance(one.actual, str) or not (said := " ".join(one.actual.split())):
        return words
    return f"{words} at {quoted(said if len(said) <= _VALUE else f'…{said[1 - _VALUE :]}')}"


def _over_time(pieces: Sequence[Evidence]) -> str:
    one = pieces[0]
    limit = f"{one.expected:g} s" if isinstance(one.expected, int | float) else "its time"
    where = f" ({line(one.path, 40)})" if one.path else ""
    return f"cut off after {limit}{where}" if one.actual else f"no answer in {limit}{where}"


WORDS: dict[str, Callable[[Sequence[Evidence]], str]] = {
    # texts
    "not-contained": _lacks,
    "forbidden": _has,
    "nothing-listed": lambda found: "nothing is listed",
    "not-prefix": lambda found: f"does not begin with {quoted(found[0].text)}",
    "forbidden-prefix": lambda found: f"begins with {quoted(found[0].text)}",
    "not-matched": lambda found: f"no match of {line(found[0].rule, _VALUE)}",
    "bad-pattern": _says("no pattern"),
    "pattern-time-limit": _says("pattern ran away"),
    "differs": _fields,
    "absent-field": _fields,
    "extra-field": _fields,
    "same": _fields,
    "refuses": lambda found: f"refuses: {quoted(found[0].text)}",
    "no-refusal": lambda found: "no refusal",
    # structure
    "not-json": _says("no JSON"),
    "is-json": lambda found: "is JSON",
    "has-json": lambda found: "has JSON",
    "schema": _schema,
    "schema-held": lambda found: "JSON fits the schema",
    "not-xml": _says("no XML"),
    "is-xml": lambda found: "is XML",
    "has-xml": lambda found: "has XML",
    "no-element": lambda found: f"XML lacks {_listed(found, lambda one: line(one.path, 60))}",
    "not-html": _says("no HTML"),
    "is-html": lambda found: "is HTML",
    "has-html": lambda found: "has HTML",
    "not-sql": _says("no SQL"),
    "is-sql": lambda found: "is SQL",
    "sql-not-allowed": lambda found: (
        f"{found[0].rule} not allowed: {_listed(found, lambda one: line(one.text, 60))}"
    ),
    # figures
    "over": _budget,
    "under": _budget,
    "unequal": _budget,
    # calls and steps
    "not-called": _calls("not called"),
    "forbidden-call": _calls("called"),
    "no-call": _says("no call"),
    "bad-call": _says_more(
        "call", r'Call(?:ed| to) "([^"]*)"(?: does not match schema:|, but) (.*)', r"call of \1: \2"
    ),
    "wrong-arguments": _arguments,
    "absent-argument": lambda found: f"{line(found[0].text, 40)}({line(found[0].path, 60)} not given)",
    "no-arguments": _calls("called, arguments not told"),
    "not-in-order": _calls("not in order"),
    "forbidden-order": lambda found: "forbidden order of steps",
    "error-spans": lambda found: f"error in {_listed(found, lambda one: line(one.text, 40))}",
    # rows
    "rows": _says(""),
    "no-rows": _says("no rows"),
    "not-verified": _says(""),
    # values of a reply
    "none": lambda found: f"{line(found[0].path, 60)} is not there",
    # what others decide
    "judged": _says("judge"),
    "script": _says("script"),
    "is-false": lambda found: f"{line(found[0].text)} is false",
    "script-failed": _says("script failed"),
    "webhook-failed": _says("webhook failed"),
    "flagged": lambda found: f"flagged: {_listed(found, lambda one: line(one.text, 40))}",
    "not-flagged": lambda found: "not flagged",
    "guardrails": _says("guardrails"),
    "not-chosen": _says_more(
        "not chosen", r"(?:Output not|Not) selected(?: \((.*)\)|(?::| -) (.*))", r"not chosen: \1\2"
    ),
    "score": _budget,
    "no-output": lambda found: "no output",
    # what could not be judged
    "needs-trust": _says("needs trust"),
    "no-judge": lambda found: "no judge configured",
    "judge-unreadable": _says("judge's answer unreadable"),
    "judge-undecided": _says("judge undecided"),
    "judge-failed": _says("judge"),
    "not-reached": lambda found: "not judged: the sample ended before",
    "no-embeddings": lambda found: "no embedding model configured",
    "no-classifier": lambda found: "no classifier named",
    "unknown-type": _says("unknown assertion"),
    "not-supported": _says("not judged here"),
    "bad-assertion": _says("assertion"),
    "not-reported": _says("not reported"),
    "not-in-file": lambda found: f"{line(found[0].text)} {NOT_IN_FILE}".strip(),
    "not-comparable": _says("cannot compare"),
    "no-reply": lambda found: "no reply",
    "no-database": lambda found: "no database for the expected SQL",
    "query-failed": _query_failed,
    "file": _says("file"),
    "template": _says("template"),
    "transform": _says("transform"),
    "no-host": _says(""),
    "cannot-judge": _says(""),
    "not-in-time": _says(""),
    "crashed": _says("judging failed"),
    "in-file": _says("file"),
    "columns": _says(""),
    # what an agent did instead of answering
    "no-agent": _says(""),
    "time-limit": _late,
    "late-retry": lambda found: f"{_over_time(found)}, asked again: {line(found[0].text)}",
    "late-lookup": lambda found: f"{_over_time(found)}: host name {line(found[0].text)} not resolved",
    "refused": lambda found: f"refused {found[0].path}".rstrip(),
    "unreachable": _at("no connection to"),
    "broke-off": _says("broke off"),
    "unauthorized": _http,
    "rate-limited": _http,
    "quota-spent": _http,
    "server-failed": _http,
    "http-status": _http,
    "asks-to-wait": _http,
    "redirected": _says("redirects to"),
    "not-sent": _says("cannot be sent"),
    "too-large": lambda found: f"answer > {found[0].expected}",
    "empty-answer": _says("empty answer"),
    "page-instead": _says("a page, no answer"),
    "unreadable": _says("unreadable"),
    "no-field": lambda found: f"answer lacks {line(found[0].path, 40) or 'text'}: {line(found[0].text)}",
    "reported": _says(""),
    "filtered": _says("filtered"),
    "too-many-steps": lambda found: f"no answer in {found[0].expected} steps of tool calls",
    "bad-setting": _says(""),
    "not-signed-in": _says("not signed in"),
    "cannot-run": _at("cannot run"),
    "exit": lambda found: f"{found[0].path}: {line(found[0].text)}",
    "script-raised": _raised,
    "script-time-limit": _says("script too slow"),
    "script-memory-limit": _says("out of memory"),
    "worker-lost": _says("process lost"),
    "no-rule": _says(""),
    "not-recorded": _says(""),
    "cannot-continue": _says(""),
    "stopped": _says(""),
    "agent-crashed": _says(""),
    "agent-error": _says(""),
    "not-kept": _says(""),
}
"""How the pieces of each failing code are worded; codes that are not here say that something holds."""


def _limit(pieces: Sequence[Evidence]) -> str:
    one = pieces[0]
    return f"{one.path} {_SIGNS.get(one.rule, one.rule)} {figure(one.path, one.expected)}"


def _wanted(pieces: Sequence[Evidence]) -> str:
    one = pieces[0]
    where = "" if one.path in ("", "$") else f"{line(one.path, 60)} "
    wanted = (
        line(one.expected, _VALUE) if isinstance(one.expected, str) and not where else shown(one.expected)
    )
    return f"{where}≠ {wanted}"


_NUMBER = r"(?<![\w.])\d[\d,.]*"
QUOTED = re.compile(r"'[^']{25,}'|\"[^\"]{25,}\"")
"""Long quotations, which are others in every attempt."""


def general(text: str) -> str:
    """A text of somebody's without what changes from attempt to attempt: long quotations, figures."""
    return line(re.sub(_NUMBER, "N", QUOTED.sub("'…'", " ".join(text[:_LOOKED_AT].split()))), _TEXT)


def _free(word: str) -> Callable[[Sequence[Evidence]], str]:
    return lambda pieces: ": ".join(filter(None, (word, general(pieces[0].text))))


def _status(pieces: Sequence[Evidence]) -> str:
    status = str(pieces[0].actual or "HTTP")
    said = general(pieces[0].text.removeprefix(status))
    return ": ".join(filter(None, (status, said)))


_ALIKE: dict[str, Callable[[Sequence[Evidence]], str]] = {
    "over": _limit,
    "under": _limit,
    "unequal": _limit,
    "score": _limit,
    "differs": _wanted,
    "wrong-arguments": lambda found: f"{line(found[0].text, 40)}({_wanted(found)})",
    "judged": lambda found: "judge: not met",
    "script": _free("script"),
    "is-false": lambda found: f"{line(found[0].rule)} is false",
    "script-failed": _free("script failed"),
    "script-raised": lambda pieces: _of_script(general(pieces[0].text)),
    "reported": _free(""),
    "agent-error": _free(""),
    "agent-crashed": _free(""),
    "unreadable": lambda found: "unreadable answer",
    "no-field": lambda found: f"answer lacks {line(found[0].path, 40) or 'text'}",
    "time-limit": _over_time,
    "exit": lambda found: found[0].path,
    "rows": lambda found: found[0].rule or general(found[0].text),
    "unauthorized": _status,
    "rate-limited": _status,
    "quota-spent": _status,
    "server-failed": _status,
    "http-status": _status,
    "asks-to-wait": _status,
}
"""What attempts have in common whose pieces of a code say more than that."""

IN_FULL = (
    "judged", "script", "script-failed", "webhook-failed", "not-chosen", "bad-call", "not-verified",
    "error-spans", "sql-not-allowed", "not-html",
)  # fmt: skip
"""Codes of what others say at length: where there is room, their own words say more than the short form."""

HOLDING = (
    "contained", "absent", "prefix", "prefix-absent", "matched", "unmatched", "within", "called", "call-absent",
    "other-call", "other-argument", "column", "holds", "members", "later", "taken", "span",
    "words", "compared",
)  # fmt: skip
"""Codes of what is as it should be, or says no more than what was seen."""


def known(code: str) -> bool:
    """Whether a code is one of ours."""
    return code in WORDS or code in HOLDING


def wrong_query(said: str, place: str) -> str:
    """The reason of a case whose expected query cannot be run: not the agent's is to blame."""
    return f"the case's expected query is wrong{f' ({place})' if place else ''}: {said}"
