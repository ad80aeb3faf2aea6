"""Names in messages: which one was meant, and some of many.

A slip of the pen is told from a key of someone's own. Public suites carry keys that no tool reads, and those
deserve no more than a note. A key that is one or two keystrokes away from a known one is a misspelt
assertion, which would silently test nothing: that is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from tui_eval.guard.text import visible


def close_to(key: str, known: Iterable[str]) -> str | None:
    """The known key that `key` looks like a slip for, or None.

    Counts edits as inserted, deleted, replaced or swapped neighbouring letters, ignoring case, and
    allows two of them (design.md, "All"), but only one where the shorter word has fewer than five
    letters and none where the longer one has fewer than three: `note` is no slip for `name`. The same words joined
    otherwise (`is_valid_xml`, `isValidXml`) are a slip however many they are.
    A key that is known is not a slip.
    """
    from rapidfuzz.distance import OSA

    lowered = key.lower()
    best: tuple[int, str] | None = None
    for name in known:
        if name == key:
            return None
        shorter, longer = sorted((len(key), len(name)))
        allowed = 2 if shorter >= 5 else 1 if longer >= 3 else 0
        if allowed == 2 and lowered.translate(_JOINTS) == name.lower().translate(_JOINTS):
            return name
        if longer - shorter > allowed:
            continue
        distance = OSA.distance(lowered, name.lower(), score_cutoff=allowed)
        if distance <= allowed and (best is None or (distance, name) < best):
            best = (distance, name)
    return best[1] if best else None


_JOINTS = dict.fromkeys(map(ord, "-_ "))


def some_of(names: Sequence[str], most: int, total: int | None = None) -> str:
    """`a, b and 1 more`: the first `most` of the names, and how many there are besides (of `total`, where that many are
    not given). It is one line, whatever the names hold."""
    count = len(names) if total is None else total
    more = f" and {count - most:,} more" if count > most else ""
    return ", ".join(visible(name, newlines=False) for name in names[:most]) + more


def within(names: Sequence[str], room: int) -> int:
    """How many of the names, with commas between them, have room in so many characters; one at least."""
    ends = accumulate(len(name) + 2 for name in names)
    return max(sum(end <= room + 2 for end in ends), 1)
