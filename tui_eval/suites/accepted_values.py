"""What an expected value has to become for an answer to pass, whatever the format writes it like."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tui_eval.guard.text import CUT_OFF
from tui_eval.model import Attempt, Verdict
from tui_eval.yaml.yaml_edit import EditError, FoundNode, ValueNotThere, YamlText

# -- Values of a YAML file changed or left out where an answer is accepted, and how they are shown.


def put(document: YamlText, found: FoundNode, value: Any) -> EditedValue:
    """Another value in the place of one that was found."""
    before = plain(found.node)
    return EditedValue(
        document.replace(found, value), before, shown(value), found.line, shared(document, found)
    )


def drop(document: YamlText, found: FoundNode) -> EditedValue:
    """The document without what was found."""
    note = shared(document, found)
    return EditedValue(document.remove(found), plain(found.node), "(left out)", found.line, note)


def shared(document: YamlText, found: FoundNode) -> str:
    """Who else a change concerns: it stands within an anchor, or in what every test has."""
    if found.path[:1] == ("defaultTest",):
        return f"line {found.line} is in defaultTest: every test of the file asks for it"
    if found.path[:1] == ("assertionTemplates",):
        return f"line {found.line} is in assertionTemplates: every test that refers to it asks for it"
    anchor = document.anchor_around(found)
    return f"line {found.line} is within &{anchor}: whatever refers to it changes too" if anchor else ""


def only(found: Sequence[FoundNode], what: str) -> FoundNode:
    """The only place found.

    Raises:
        EditError: there is none, or more than one; `what` is it called.
    """
    if not found:
        raise ValueNotThere(f"{what} is not in the file as it was run: edit the case (e)")
    if len({id(one.node) for one in found}) > 1:
        raise EditError(f"{what} stands there more than once: edit the case (e)")
    return found[0]


def plain(node: Any) -> str:
    """A node as people are shown it, on one line."""
    if node.id == "scalar":
        text = str(node.value).replace("\a", "")  # where ruamel keeps a fold
        if not _HALVES.search(text):
            return text
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # JSON writes two halves
    if node.id == "sequence":
        return "[" + ", ".join(plain(item) for item in node.value) + "]"
    return "{" + ", ".join(f"{plain(key)}: {plain(value)}" for key, value in node.value) + "}"


_HALVES = re.compile("[\ud800-\udfff]")
_MARGIN = 1.2
"""A budget of time or money is set a fifth above what was used, as it varies from run to run."""

EQUALS = frozenset({"equals", "is-equal"})
HOLDS = frozenset({"contains", "icontains", "starts-with"})
LISTS = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
BUDGETS = frozenset({"latency", "cost"})


class EditedValue(NamedTuple):
    """The file's text, what the value was and is, its line, and what else to know of the change."""

    text: str
    before: str
    after: str
    line: int
    note: str = ""


def shown(value: Any) -> str:
    """A value as people are shown it: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def answer_to(attempt: Attempt, verdict: Verdict) -> str:
    """The text that a verdict was about: of its turn, else the last."""
    reply = next((reply for reply in attempt.replies if reply.turn == verdict.turn), None)
    return (reply.text if reply is not None else attempt.response_text) or ""


def actual_of(verdict: Verdict, attempt: Attempt) -> Any:
    """What a verdict was about, whole.

    Raises:
        EditError: the record has only the beginning of it.
    """
    said = verdict.actual
    texts = (answer_to(attempt, verdict), *(reply.text or "" for reply in attempt.replies))
    if not isinstance(said, str) or not CUT_OFF.search(said) or said in texts:
        return said
    for text in texts:
        if is_recorded(text, said):
            return text
    raise EditError("the record has only the beginning of what was judged: edit the case (e)")


def is_recorded(text: str, recorded: str) -> bool:
    """Whether a text is the one that a verdict's record has, or has the beginning of."""
    cut = CUT_OFF.search(recorded)
    if text == recorded or cut is None:
        return text == recorded
    length = cut.start() + int(cut["rest"].replace(",", "") or 0)
    return len(text) == length and text.startswith(recorded[: cut.start()])


def judged_text(verdict: Verdict, attempt: Attempt) -> str:
    """The text that a verdict was about, whole.

    Raises:
        EditError: the record has only the beginning of it.
    """
    actual = actual_of(verdict, attempt)
    return actual if isinstance(actual, str) else answer_to(attempt, verdict)


def new_value(verdict: Verdict, attempt: Attempt) -> Any:
    """What an assertion on text has to expect for the answer to pass.

    Raises:
        EditError: that takes a person.
    """
    answer = judged_text(verdict, attempt)
    if verdict.type in EQUALS:
        return (
            attempt.output if attempt.output is not None and not isinstance(verdict.expected, str) else answer
        )
    if verdict.type in HOLDS and not CUT_OFF.search(str(verdict.expected)):
        if verdict.type == "starts-with":
            return answer[: max(len(str(verdict.expected)), 1)]
        return nearest(str(verdict.expected), answer)
    if verdict.type in LISTS and isinstance(verdict.expected, list):
        lowered = answer.lower() if verdict.type.startswith("i") else answer
        return [
            item
            if (str(item).lower() if verdict.type.startswith("i") else str(item)) in lowered
            else nearest(str(item), answer)
            for item in verdict.expected
        ]
    raise EditError("only a person can say what it should ask for: edit the case (e)")


def still_unwanted(verdict: Verdict, attempt: Attempt) -> list[Any]:
    """Of a list of texts none of which may be there (`not-contains-any`) those that are not there, and go on being
    asked for; empty where nothing of it can stay.

    Raises:
        EditError: they are written as one text.
    """
    if verdict.type.endswith("-any") and isinstance(verdict.expected, str) and "," in verdict.expected:
        raise EditError("several texts stand in one: leave out those that may be there (e)")
    if not verdict.type.endswith("-any") or not isinstance(verdict.expected, list):
        return []
    folds = verdict.type.startswith("not-i")
    answer = judged_text(verdict, attempt)
    answer = answer.lower() if folds else answer
    left = [item for item in verdict.expected if (str(item).lower() if folds else str(item)) not in answer]
    return left if len(left) < len(verdict.expected) else []


def budget(verdict: Verdict, attempt: Attempt) -> float | int:
    """The limit of time (ms) or money that the attempt would have kept.

    Raises:
        EditError: the record does not say what was used.
    """
    used = attempt.cost if verdict.type == "cost" else attempt.duration_ms
    if isinstance(verdict.actual, int | float) and not isinstance(verdict.actual, bool):
        used = verdict.actual
    if used is None:
        raise EditError(f"the {verdict.type} is not in the record")
    if verdict.type == "latency":
        return math.ceil(used * _MARGIN)
    return float(f"{used * _MARGIN:.3g}")


# -- The part of an answer that comes nearest to a text that was expected in it.


LONGEST = 200_000
"""Characters of an answer that are looked through."""
_NEAR = 70.0
"""Similarity (0-100) from which a part counts as what was meant."""


def nearest(wanted: str, answer: str) -> str:
    """The whole words of the answer most like `wanted`; of numbers, the number in the place of it.

    Raises:
        EditError: no part of it is near.
    """
    from rapidfuzz import fuzz

    answer = answer[:LONGEST]
    if wanted and (there := re.search(re.escape(wanted), answer, re.IGNORECASE)):
        return there[0]
    number = _number(wanted, answer)
    if number is not None:
        return number
    found = fuzz.partial_ratio_alignment(wanted.lower(), answer.lower()) if wanted and answer else None
    if found is None or found.score < _NEAR or len(answer.lower()) != len(answer):
        raise EditError(f"no part of the answer is near {wanted[:60]!r}: edit the case (e)")
    start, end = found.dest_start, found.dest_end
    while start > 0 and _joined(answer, start):
        start -= 1
    while end < len(answer) and _joined(answer, end):
        end += 1
    near = " ".join(answer[start:end].split())
    if near not in answer:  # words that the answer has on two lines
        near = answer[start:end].strip()
    near = _without_marks(near, wanted)
    if not near or (_DIGIT.search(wanted) and not _DIGIT.search(near)):
        raise EditError(f"no part of the answer is near {wanted[:60]!r}: edit the case (e)")
    return near


_DIGIT = re.compile(r"\d")
_MARKS = "*_`~\"'.,;:!?()[]{}<>|#"


def _without_marks(near: str, wanted: str) -> str:
    """The text without marks at its ends (of Markdown, of a sentence) that were not asked for."""
    while near and near[-1] in _MARKS and not wanted.endswith(near[-1]):
        near = near[:-1].rstrip()
    while near and near[0] in _MARKS and not wanted.startswith(near[0]):
        near = near[1:].lstrip()
    return near


_NUMBER = re.compile(r"[-+]?\d[\d,. ]*\d%?|\d%?")


def _number(wanted: str, answer: str) -> str | None:
    """The answer's only number, where a number was expected."""
    if not _NUMBER.fullmatch(wanted.strip()):
        return None
    numbers = list(dict.fromkeys(match[0].strip() for match in _NUMBER.finditer(answer)))
    return numbers[0] if len(numbers) == 1 else None


def _joined(text: str, at: int) -> bool:
    """Whether a word goes on across this place."""
    return (text[at - 1].isalnum() or text[at - 1] == "_") and (text[at].isalnum() or text[at] == "_")
