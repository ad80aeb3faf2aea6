"""What a regular expression of an assertion matched in a reply, as the judge wrote it down, to be marked there.

No pattern is compiled here: how a pattern reads depends on who judges by it. Runs recorded before verdicts
said what they matched have no marks of patterns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tui_eval.model import Evidence, Verdict


class Matches(NamedTuple):
    """The different texts that a pattern matched, in their order; and which of a text's places in the reply
    it matched, counted from 0 (a text may stand elsewhere too). None: the reply is not what was judged."""

    texts: tuple[str, ...]
    places: dict[str, frozenset[int]] | None = None


def pattern_of(verdict: Verdict) -> str | None:
    """The pattern of a verdict on a text's regular expression; None for other assertions."""
    regex = verdict.type.removeprefix("not-") == "regex" and verdict.target.split(".")[0] in ("text", "")
    return verdict.expected if regex and isinstance(verdict.expected, str) and verdict.expected else None


def found_by(verdict: Verdict, reply: str) -> Matches | None:
    """What a verdict's pattern matched in a reply; None where the verdict does not say."""
    if verdict.evidence is None or pattern_of(verdict) is None:
        return None
    seen = [one for one in verdict.evidence if one.kind == "match" and one.text]
    texts = tuple(dict.fromkeys(one.text for one in seen))
    if not all(_stands(one, reply) for one in seen):
        return Matches(texts)
    return Matches(texts, _numbered(seen, reply))


def _stands(one: Evidence, reply: str) -> bool:
    """Whether a match stands in the reply where it stood in what was judged (a transform may come between)."""
    return one.start is not None and reply.startswith(one.text, one.start)


def _numbered(seen: Sequence[Evidence], reply: str) -> dict[str, frozenset[int]]:
    """Of each text the numbers of its matched places among all of its places, as a search goes from one to the
    next; of a text of which only the beginning was kept, and of places that overlap, every place counts."""
    starts: dict[str, set[int]] = {}
    for one in seen:
        starts.setdefault(one.text, set()).add(one.start or 0)
    places: dict[str, frozenset[int]] = {}
    for text, wanted in starts.items():
        numbers, number, at, last = set[int](), 0, reply.find(text), max(wanted)
        while 0 <= at <= last:
            if at in wanted:
                numbers.add(number)
            number, at = number + 1, reply.find(text, at + len(text))
        if len(numbers) == len(wanted):
            places[text] = frozenset(numbers)
    return places
