"""A verdict's reason as a person reads it: without the texts that it quotes whole, with the names it leaves out."""

from __future__ import annotations

from collections.abc import Iterable

from tui_eval.model import UNSET, Verdict
from tui_eval.tui.state.case.structure_evidence import field_lines
from tui_eval.tui.state.text.json_lines import quoted, short
from tui_eval.tui.state.text.lines import one_line, plain

QUOTED = 60
"""Characters from which on a reply quoted in a reason is left out."""
LONG = 20_000
"""Characters of a reply from which on it is not written out in all ways that a reason may quote it."""
BARE = 24
"""A reason of one word shorter than this does not tell what it is about."""
_GISTS = {
    "text_sample unexpectedly did not match acceptance criteria: ": "the judge does not find in the reply: ",
    "text_sample does not match acceptance criteria: ": "the judge does not find in the reply: ",
    "text_sample unexpectedly did match acceptance criteria: ": "the judge finds in the reply what must not be: ",
}
"""neuro-san's words for what a judge found."""
COMPARED = {
    "value": "expected {}",
    "not_value": "which it must not be",
    "less": "expected less than {}",
    "not_less": "expected no less than {}",
    "greater": "expected greater than {}",
    "not_greater": "expected no greater than {}",
}
"""neuro-san's tests of one value, in words."""


def _may_quote(words: str, text: str) -> bool:
    """Whether a reason may quote a text; of megabytes only the beginning is looked at."""
    if len(text) < LONG:
        return True
    head = text[:QUOTED]
    return any(shape[: QUOTED // 2] in words for shape in (head, repr(head), repr(head)[1:-1], quoted(head)))


def without_reply(words: str, said: Iterable[object]) -> str:
    """A reason without the replies that it quotes whole: they stand elsewhere on the screen, marked."""
    for text in said:
        if not isinstance(text, str) or len(text) < QUOTED or not _may_quote(words, text):
            continue
        for shape in (text, repr(text), repr(text)[1:-1], quoted(text)):
            at = words.find(shape[:QUOTED])
            while at >= 0:
                whole = words.startswith(shape, at)
                end = at + len(shape) if whole else words.find("…", at) + 1
                if not end:
                    break
                if at and words[at - 1] in "\"'" and (not whole or words[end : end + 1] == words[at - 1]):
                    # a quotation that was cut short has lost its last mark
                    end += words[end : end + 1] == words[at - 1]
                    at -= 1
                words = f"{words[:at]}the reply{words[end:]}"
                at = words.find(shape[:QUOTED])
    return words


def reason_of(verdict: Verdict) -> str:
    """A verdict's reason in words that need no other line beside them."""
    kind, expected, actual = verdict.type, verdict.expected, verdict.actual
    if verdict.passed is not False:
        return without_reply(verdict.reason, (actual,))
    if isinstance(expected, str) and isinstance(actual, str) and max(len(expected), len(actual)) > QUOTED:
        if kind in ("equals", "value"):
            return "the reply is not the expected text"
        if kind in ("not-equals", "not_value"):
            return "the reply is the very text that it must not be"
    for theirs, ours in _GISTS.items():
        if verdict.reason.startswith(theirs):
            return ours + verdict.reason[len(theirs) :]
    if verdict.reason.startswith("unexpectedly None : "):
        return f"{one_line(verdict.target, 80)} is not in the reply"
    if kind == "equals" and isinstance(expected, dict | list):
        return _first_field(verdict) or "the reply is not the expected JSON"
    if "." in verdict.target and kind in COMPARED and actual is not None and expected is not UNSET:
        words = COMPARED[kind].format(short(expected))
        return f"{one_line(verdict.target, 80)} is {short(actual)}, {words}"
    reason = without_reply(verdict.reason, (actual,))
    if 0 < len(reason) < BARE and not reason.startswith(kind) and " " not in reason.strip():
        return f"{kind}: {reason}"
    named = one_line(verdict.target.rpartition(".")[2], 60)
    if "." in verdict.target and not kind.startswith(named) and named not in reason:
        reason = f"{one_line(verdict.target, 80)}: {reason}"
    if isinstance(expected, str) and "\n" in reason and reason.endswith(expected.strip()):
        reason = reason[: -len(expected.strip())].rstrip()  # the code, which is shown as what was expected
    return reason


def _first_field(verdict: Verdict) -> str:
    """The first field that differs, and how many more do."""
    fields = list(field_lines(verdict.evidence or (), 99))
    if not fields:
        return ""
    more = f", and {len(fields) - 1} more differ{'s' * (len(fields) == 2)}" if len(fields) > 1 else ""
    return f"not the expected JSON: {plain(fields[0])}{more}"


def message_of(message: str, verdicts: Iterable[Verdict]) -> str:
    """An attempt's first line, its verdicts' reasons in those words."""
    verdicts = list(verdicts)
    for verdict in verdicts:
        if verdict.passed is False and verdict.reason and verdict.reason in message:
            message = message.replace(verdict.reason, reason_of(verdict), 1)
    return without_reply(message, (verdict.actual for verdict in verdicts))
