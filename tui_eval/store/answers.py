"""Whether two attempts answered the same, without reading what they answered: a fingerprint in their row."""

from __future__ import annotations

import hashlib

from tui_eval.model import Attempt

_SLICE = 1 << 20


def answer_mark(attempt: Attempt) -> str:
    """A fingerprint of the last answer, white space at its ends left out; empty where nothing was answered."""
    if attempt.outcome not in ("passed", "failed") or not (attempt.replies or attempt.response_text):
        return ""
    text = attempt.response_text.strip()
    mark = hashlib.blake2b(digest_size=8)
    for start in range(0, len(text), _SLICE):
        mark.update(text[start : start + _SLICE].encode("utf-8", "surrogatepass"))
    return mark.hexdigest()
