"""Telling a slip of the pen from a key of someone's own.

Public suites carry keys that no tool reads, and those deserve no more than a note. A key that is
one or two keystrokes away from a known one is a misspelt assertion, which would silently test
nothing: that is an error.
"""

from __future__ import annotations

from collections.abc import Iterable


def close_to(key: str, known: Iterable[str]) -> str | None:
    """The known key that `key` looks like a slip for, or None.

    Counts edits as inserted, deleted, replaced or swapped neighbouring letters, ignoring case, and
    allows two of them (design.md, "All"), but only one where the shorter word has fewer than five
    letters and none where the longer one has fewer than three: `note` is no slip for `name`.
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
        if longer - shorter > allowed:
            continue
        distance = OSA.distance(lowered, name.lower(), score_cutoff=allowed)
        if distance <= allowed and (best is None or (distance, name) < best):
            best = (distance, name)
    return best[1] if best else None
