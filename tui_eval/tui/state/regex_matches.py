"""What a regular expression of an assertion matched in a reply, so that it can be marked there.

Patterns come from suites and may backtrack without end, so they are looked for in a thread and by polars'
engine, whose time grows with the text only. What that engine does not know (lookaround, backreferences) is
not marked; the verdict itself is the assertion's.
"""

from __future__ import annotations

from tui_eval.model import Attempt, Verdict
from tui_eval.tui.state.reply import reply_text

LONGEST = 200_000
"""Characters of a reply that are looked through."""
MOST = 200
"""Different texts of one pattern that are kept."""
_KEPT = 500
_found: dict[tuple[str, str], tuple[str, ...] | None] = {}


def pattern_of(verdict: Verdict) -> str | None:
    """The pattern of a verdict on a text's regular expression; None for other assertions."""
    regex = verdict.type.removeprefix("not-") == "regex" and verdict.target.split(".")[0] in ("text", "")
    return verdict.expected if regex and isinstance(verdict.expected, str) and verdict.expected else None


def look(attempt: Attempt) -> None:
    """Look for the attempt's patterns in its replies. Imports polars and may take long: call it in a thread."""
    for verdict in attempt.verdicts:
        pattern = pattern_of(verdict)
        if pattern is not None:
            text = reply_text(attempt, verdict)
            if (pattern, text) not in _found:
                while len(_found) >= _KEPT:
                    _found.pop(next(iter(_found)))
                _found[pattern, text] = _search(pattern, text[:LONGEST])


def found_by(pattern: str, text: str) -> tuple[str, ...] | None:
    """The different texts that a pattern matched, in their order; None where that is not known."""
    return _found.get((pattern, text))


def _search(pattern: str, text: str) -> tuple[str, ...] | None:
    import polars as pl
    from polars.exceptions import PolarsError

    try:
        places = pl.Series([text]).str.extract_all(pattern)[0].to_list()
    except PolarsError:
        return None
    return tuple(list(dict.fromkeys(place for place in places if place))[:MOST])
