"""Judging a record again where a secret was masked in it: the verdict of then stays.

An attempt is judged on the raw text and kept with secrets masked (design.md, Safety rules), so its
record cannot decide what rests on the text that is gone.
"""

from __future__ import annotations

import re

import msgspec

from tui_eval.assertions.evidence import Judgement
from tui_eval.assertions.outcome import message_of, outcome_of, share_passed
from tui_eval.guard.secrets import MASK, Masker
from tui_eval.model import Attempt, Verdict
from tui_eval.store.encoding import encode_json

KEPT = " (kept: the record is masked here)"
_UNDECIDED = "cannot be judged again: the recorded answer is masked here; run the case"
_NUMBERS = frozenset({"usage", "cost", "latency", "duration"})
_MASK = MASK.encode()
_TRACED = re.compile(r"(not-)?trajectory:tool-args-match")
"""Types that may rest on a masked attribute of a span."""


def keep_masked(judgement: Judgement, recorded: Attempt, masker: Masker) -> None:
    """Put the recorded verdicts back where masked text made another one; an assertion that the record has
    no verdict for becomes an error. Does nothing where nothing is masked."""
    turns = {part.turn for part in (*recorded.replies, *recorded.transcript) if _MASK in encode_json(part)}
    trace = recorded.trace is not None and _MASK in encode_json(recorded.trace)
    if not turns and not trace:
        return
    known = {_key(verdict, None): verdict for verdict in recorded.verdicts}
    changed = False
    for index, verdict in enumerate(judgement.verdicts):
        if not (trace and _TRACED.match(verdict.type)) and (
            not turns or (verdict.turn is not None and verdict.turn not in turns)
        ):
            continue
        before = known.get(_key(verdict, masker))
        if before is None:
            if verdict.passed is not None and verdict.target.partition(".")[0] not in _NUMBERS:
                verdict.passed, verdict.score, verdict.reason = None, 0.0, f"{verdict.type}: {_UNDECIDED}"
                changed = True
        elif before.passed != verdict.passed:
            reason = before.reason.removesuffix(KEPT) + KEPT
            judgement.verdicts[index] = msgspec.structs.replace(before, reason=reason)
            changed = True
    if not changed:
        return
    now = [(_key(verdict, masker), verdict.passed) for verdict in judgement.verdicts]
    if now == [(_key(verdict, None), verdict.passed) for verdict in recorded.verdicts]:
        # Thresholds and weights count as they did.
        judgement.outcome, judgement.score = recorded.outcome, recorded.score
        judgement.named_scores, judgement.message = recorded.named_scores, recorded.message
        return
    judgement.outcome = outcome_of(judgement.verdicts)
    judgement.score = share_passed(judgement.verdicts)
    judgement.message = message_of(judgement.verdicts)


def _key(verdict: Verdict, masker: Masker | None) -> tuple[str, str, int | None, int | None, bytes]:
    """What tells assertions apart; `masker` for a verdict whose expected value is not masked yet."""
    expected = verdict.expected if masker is None else masker.value(verdict.expected)
    return verdict.type, verdict.target, verdict.turn, verdict.set, encode_json(expected)
