"""Whether two attempts answered the same, without reading what they answered: a fingerprint in their row."""

from __future__ import annotations

import hashlib

from tui_eval.model import Attempt


def answer_mark(attempt: Attempt) -> str:
    """A fingerprint of the last answer, white space at its ends left out; empty where nothing was answered."""
    if attempt.outcome not in ("passed", "failed") or not (attempt.replies or attempt.response_text):
        return ""
    text = attempt.response_text.strip()
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
