"""How near a text is to a reference: edit distance, ROUGE, BLEU, GLEU."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.formats.promptfoo.judge.assertion_call import PASSED, AssertionCall, Result, invariant
from tui_eval.javascript import values as js
from tui_eval.model import Evidence

_WORD = re.compile(r"\w+")
_LOOKED_AT = 200_000
_LONGEST = 2_000_000
"""Characters of an output whose words are counted: of fifty million they take gigabytes."""
_MOST_PAIRS = 10**10
"""Pairs of characters whose distance is found in about a second."""
_SMALLEST = 1e-7
_ORDERS = (1, 2, 3, 4)


def levenshtein(call: AssertionCall) -> Result:
    """Edit distance over UTF-16 units, at most `threshold` (default 5)."""
    from rapidfuzz.distance import Levenshtein

    value = call.value
    invariant(isinstance(value, str), '"levenshtein" assertion type must have a string value')
    threshold = 5 if call.threshold is None else call.threshold
    said, wanted, least = _units(call.text), _units(value), ""
    if len(said) * len(wanted) <= _MOST_PAIRS:
        distance = Levenshtein.distance(said, wanted)
    else:  # whether it is within the threshold takes less than how far it is
        most = max(0, math.floor(min(threshold, len(said) + len(wanted))))
        if max(len(said), len(wanted)) * most > _MOST_PAIRS:
            raise CannotJudge(
                "levenshtein: the texts are too long to find out how far they are from each other"
            )
        distance = Levenshtein.distance(said, wanted, score_cutoff=most)
        if distance > most:
            distance, least = max(distance, abs(len(said) - len(wanted))), "of at least "
    limit = js.number_text(threshold)
    return call.result(
        distance <= threshold,
        f"Levenshtein distance {least}{distance} is greater than threshold {limit}",
        f"Levenshtein distance {distance} is less than or equal to threshold {limit}",
        actual=call.text,
        evidence=[
            *seen.budget("distance", distance, "<=", threshold, negated=call.inverse),
            seen.differs("$", value, call.text, code="compared"),
        ],
    )


def _units(text: str) -> Sequence[int] | str:
    if text.isascii() or max(text) <= "\uffff":
        return text
    raw = text.encode("utf-16-le", "surrogatepass")
    return [raw[place] | raw[place + 1] << 8 for place in range(0, len(raw), 2)]


def rouge_n(call: AssertionCall) -> Result:
    """F1 of single words, lower-cased, clipped counts; at least `threshold` (default 0.75)."""
    value = call.value
    invariant(isinstance(value, str), '"rouge" assertion type must be a string value')
    not_too_long(call)
    threshold = 0.75 if call.threshold is None else call.threshold
    score = _rouge(treebank_words(call.text.lower()), treebank_words(value.lower()))
    holds = score >= threshold
    compared = "greater than or equal to" if holds else "less than"
    reason = f"ROUGE-N score {js.fixed(score, 2)} is {compared} threshold {js.number_text(threshold)}"
    return Result(
        holds != call.inverse,
        1 - score if call.inverse else score,
        reason,
        actual=call.text,
        evidence=[
            *seen.budget("ROUGE-N", score, ">=", threshold, negated=call.inverse),
            shared(value, call.text),
        ],
    )


def _rouge(candidate: list[str], reference: list[str]) -> float:
    if not candidate or not reference:
        return 0.0
    common = (Counter(candidate) & Counter(reference)).total()
    if not common:
        return 0.0
    precision, recall = common / len(candidate), common / len(reference)
    return 2 * precision * recall / (precision + recall)


# The Penn Treebank conventions: punctuation apart, the last full stop apart save an acronym's, clitics split off.
_QUOTE = re.compile("``|''|\"")
_SPLITS = (
    (re.compile(r"\.\.\."), " ... "),
    (re.compile(r"[:,](?!\d)"), r" \g<0> "),
    (re.compile(r"[;@#$%&]"), r" \g<0> "),
    (re.compile(r"(?<=[^.])(?<!\b[A-Za-z]\.[A-Za-z])(\.)([\])}>' ]*)\Z", re.ASCII), r" \1\2 "),
    (re.compile(r"[?!]"), r" \g<0> "),
    (re.compile(r"[\]\[(){}<>]"), r" \g<0> "),
    (re.compile(r"--"), " -- "),
)
_CLITICS = (
    (re.compile(r"(?<=[^'])' "), " ' "),
    (re.compile(r"'[sSmMdD] "), r" \g<0>"),
    (re.compile(r"(?:'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) "), r" \g<0>"),
)
_CONTINUES = r"[\w\u0300-\u036f\u200c\u200d]"
_CONTRACTIONS = tuple(
    re.compile(rf"(?<!{_CONTINUES})({first})({second})(?!{_CONTINUES}){after}", re.IGNORECASE)
    for first, second, after in (
        ("can", "not", ""),
        ("d", "'ye", ""),
        ("gim", "me", ""),
        ("gon", "na", ""),
        ("got", "ta", ""),
        ("lem", "me", ""),
        ("more", "'n", ""),
        ("wan", "na", "(?= )"),
        ("'t", "is", ""),
        ("'t", "was", ""),
    )
)


def treebank_words(text: str) -> list[str]:
    """Words of a text as the Penn Treebank splits them, step by step as promptfoo's library does."""
    text = _with_quotes_told_apart(" ".join(js.words(text.replace("\x85", " "))))
    for pattern, replacement in _SPLITS:
        text = pattern.sub(replacement, text)
    text = f" {text} "
    for pattern, replacement in _CLITICS:
        text = pattern.sub(replacement, text)
    for pattern in _CONTRACTIONS:
        text = pattern.sub(r" \1 \2 ", text)
    return text.split()


def _with_quotes_told_apart(text: str) -> str:
    opened = False

    def told(found: re.Match[str]) -> str:
        nonlocal opened
        opened = found[0] == "``" or (not opened and _may_open(text, found))
        return " `` " if opened else " '' "

    return _QUOTE.sub(told, text)


def _may_open(text: str, found: re.Match[str]) -> bool:
    """Whether a quote after which none is open opens one."""
    start, end = found.span()
    before = text[start - 1 : start]
    kind = unicodedata.category(before) if before else ""
    if (before and not (before in " <" or kind[0] == "P")) or before in (".", "!", "?"):
        return False
    if before and end == len(text) and not (before in " <" or kind == "Ps"):
        return False
    if found[0] == '"':
        return True
    follows = unicodedata.category(text[end]) if end < len(text) else ""
    closing = _QUOTE.search(text, end)
    opens = follows[:1] in ("L", "N") or follows in ("Sc", "Ps")
    return bool(before and opens and closing and closing[0] == "''")


def bleu(call: AssertionCall) -> Result:
    """BLEU over 1- to 4-grams of lower-cased words, of each order by the best reference; `threshold` 0.5."""
    references = _references(call, '"bleu" assertion type must have a string or array of strings value')
    if not references:
        raise CannotJudge("Invalid inputs")
    return _graded(call, "BLEU", _bleu(call.text, references), references[0] if references else "")


def _bleu(candidate_text: str, references: list[str]) -> float:
    candidate = js.words(candidate_text.lower())
    if not candidate:
        return 0.0
    # A blank reference is one empty word.
    words = [js.words(reference.lower()) or [""] for reference in references]
    logs = []
    for order in _ORDERS:
        grams = _grams(candidate, order)
        if not grams:
            continue
        shared_grams = max((grams & _grams(reference, order)).total() for reference in words)
        precision = shared_grams / grams.total()
        logs.append(math.log(precision or _SMALLEST))
    length = len(candidate)
    nearest = min((len(reference) for reference in words), key=lambda other: (abs(other - length), other))
    penalty = 1.0 if length >= nearest else math.exp(1 - nearest / length)
    return penalty * math.exp(sum(log / len(logs) for log in logs))


def gleu(call: AssertionCall) -> Result:
    """The lesser of precision and recall over all 1- to 4-grams, best reference; `threshold` 0.5."""
    references = _references(call, '"gleu" assertion must have a string or array of strings value')
    if not call.text or not references:
        raise CannotJudge("Invalid inputs")
    return _graded(call, "GLEU", max(_gleu(call.text, reference) for reference in references), references[0])


def _gleu(candidate_text: str, reference_text: str) -> float:
    candidate, reference = _gleu_words(candidate_text), _gleu_words(reference_text)
    if candidate == reference:
        return 1.0
    ours: Counter[tuple[str, ...]] = Counter()
    theirs: Counter[tuple[str, ...]] = Counter()
    for order in _ORDERS:
        ours += _grams(candidate, order)
        theirs += _grams(reference, order)
    if not ours or not theirs:
        return 0.0
    return (ours & theirs).total() / max(ours.total(), theirs.total())


def _gleu_words(text: str) -> list[str]:
    return [word.rstrip(".") for word in js.words(text.lower())] or [""]


def _grams(words: list[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[place : place + order]) for place in range(len(words) - order + 1))


def _references(call: AssertionCall, message: str) -> list[str]:
    value = call.value
    texts = [value] if isinstance(value, str) else value
    invariant(isinstance(texts, list) and all(isinstance(item, str) for item in texts), message)
    not_too_long(call)
    return texts


def not_too_long(call: AssertionCall) -> None:
    """
    Raises:
        CannotJudge: its output is.
    """
    if len(call.text) > _LONGEST:
        raise CannotJudge(f"{call.kind}: the output is longer than {_LONGEST:,} characters")


def shared(reference: str, said: str) -> Evidence:
    """How many of the expected words the output has, and those that it lacks."""
    words, there = _WORD.findall(reference[:_LOOKED_AT]), {*_WORD.findall(said[:_LOOKED_AT].lower())}
    missing = [word for word in words if word.lower() not in there]
    return Evidence(
        "missing",
        "words",
        text=seen.cut(" ".join(missing)),
        expected=len(words),
        actual=len(words) - len(missing),
    )


def _graded(call: AssertionCall, name: str, score: float, reference: str) -> Result:
    threshold = 0.5 if call.threshold is None else call.threshold
    passed = (score >= threshold) != call.inverse
    shown = 1 - score if call.inverse else score
    told = [*seen.budget(name, score, ">=", threshold, negated=call.inverse), shared(reference, call.text)]
    if passed:
        return Result(True, shown, PASSED, actual=call.text, evidence=told)
    compared = "greater" if call.inverse else "less"
    reason = f"{name} score {js.fixed(score, 4)} is {compared} than threshold {js.number_text(threshold)}"
    return Result(False, shown, reason, actual=call.text, evidence=told)
