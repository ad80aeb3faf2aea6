"""METEOR: words aligned exactly, then by stem; F-mean less a penalty for scattered matches.

promptfoo's release throws for each of these (it loses its stemmer on the way); `compat: reference`
does as well. The third stage, synonyms, is left out: it looks up stems, which practically never match.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable
from functools import cache
from typing import Any

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result, invariant
from tui_eval.formats.promptfoo.judge.similarity import not_too_long, shared
from tui_eval.javascript import values as js

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_Word = tuple[int, str]


def meteor(call: AssertionCall) -> Result:
    """The best METEOR score over the references; at least `threshold` (default 0.5).

    Raises:
        CannotJudge: the output is empty, or (`compat: reference`) always.
    """
    value = call.value
    references = [value] if isinstance(value, str) else value
    invariant(
        isinstance(references, list) and references and all(isinstance(item, str) for item in references),
        '"meteor" assertion must have a string or array of strings value',
    )
    if not call.text or not all(references):
        raise CannotJudge("Invalid inputs")
    invariant(not call.evidence.reference, "PorterStemmer should be loaded")
    not_too_long(call)
    alpha, beta, gamma = (_option(call, name, default) for name, default in _DEFAULTS)
    score = max(_score(call.text, reference, alpha, beta, gamma) for reference in references)
    threshold = 0.5 if call.threshold is None else call.threshold
    passed = (score >= threshold) != call.inverse
    shown = 1 - score if call.inverse else score
    told = [
        *seen.budget("METEOR", score, ">=", threshold, negated=call.inverse),
        shared(references[0], call.text),
    ]
    if passed:
        return Result(True, shown, "METEOR assertion passed", actual=call.text, evidence=told)
    reason = f"METEOR score {js.fixed(score, 4)} did not meet threshold {js.number_text(threshold)}"
    return Result(False, shown, reason, actual=call.text, evidence=told)


_DEFAULTS = (("alpha", 0.9), ("beta", 3.0), ("gamma", 0.5))


def _option(call: AssertionCall, name: str, default: float) -> float:
    value: Any = call.option(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return default
    return float(value)


def _score(candidate: str, reference: str, alpha: float, beta: float, gamma: float) -> float:
    ours, theirs = _words(candidate), _words(reference)
    pairs = _aligned(ours, theirs, lambda word: word)
    stem = _stemmer()
    pairs += _aligned(ours, theirs, stem)
    if not pairs:
        return 0.0
    ours_count, theirs_count = len(pairs) + len(ours), len(pairs) + len(theirs)
    precision, recall = len(pairs) / ours_count, len(pairs) / theirs_count
    mean = precision * recall / (alpha * precision + (1 - alpha) * recall)
    pairs.sort()
    follows = (after == (before[0] + 1, before[1] + 1) for before, after in itertools.pairwise(pairs))
    chunks = len(pairs) - sum(follows)
    return (1 - gamma * (chunks / len(pairs)) ** beta) * mean


def _words(text: str) -> list[_Word]:
    return list(enumerate(text.lower().translate(_NO_PUNCTUATION).split()))


def _aligned(ours: list[_Word], theirs: list[_Word], key: Callable[[str], str]) -> list[tuple[int, int]]:
    """Pairs of places of equal words, matched from the end; what is matched leaves both lists."""
    places: dict[str, list[int]] = {}
    for place, (_, word) in enumerate(theirs):
        places.setdefault(key(word), []).append(place)
    pairs: list[tuple[int, int]] = []
    left: list[_Word] = []
    taken: set[int] = set()
    for number, word in reversed(ours):
        found = places.get(key(word))
        if found:
            place = found.pop()
            taken.add(place)
            pairs.append((number, theirs[place][0]))
        else:
            left.append((number, word))
    ours[:] = left[::-1]
    theirs[:] = [item for place, item in enumerate(theirs) if place not in taken]
    return pairs


def _stemmer() -> Callable[[str], str]:
    import snowballstemmer

    return cache(snowballstemmer.stemmer("porter").stemWord)
