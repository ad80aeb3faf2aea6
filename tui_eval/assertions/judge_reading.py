"""Reading what a judge model replied."""

from __future__ import annotations

import json
import re
from typing import Any

_PASS = re.compile(r"\bpass")
_FAIL = re.compile(r"\bfail")
_STARTS = 1000
"""Braces at which an object may begin: each costs the reading of what follows."""


def pass_or_fail(text: str, *, anywhere: bool = False) -> bool | None:
    """True for a reply that says pass and not fail, False for fail and not pass, else None.

    Case does not matter. `anywhere` takes the letters inside other words too (`bypass`), as
    neuro-san's driver does.
    """
    lowered = text.lower()
    says_pass = "pass" in lowered if anywhere else _PASS.search(lowered) is not None
    says_fail = "fail" in lowered if anywhere else _FAIL.search(lowered) is not None
    return says_pass if says_pass != says_fail else None


def first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object within a reply, in a fence or between other words; None if there is none."""
    # Python writes and reads no integers of more than 4,300 digits.
    decoder = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) < 4000 else float(digits))
    start = text.find("{")
    for _ in range(_STARTS):
        if start < 0:
            break
        try:
            value, _ = decoder.raw_decode(text, start)
        except ValueError:
            value = None
        except RecursionError:
            return None  # nested as deeply from each of the braces within
        if isinstance(value, dict):
            return value
        start = text.find("{", start + 1)
    return None
