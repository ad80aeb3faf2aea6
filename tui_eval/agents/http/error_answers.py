"""What error answers say: the reason in one line, and when to come back."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import inf
from typing import Any

from tui_eval.agents.loose_json import decode, one_line
from tui_eval.guard.secrets import in_addresses

LONGEST_WAIT = 600.0
"""Seconds that a server may ask to wait."""


def backoff(attempt: int, wished: float | None = None) -> float:
    """Seconds to wait after the try number `attempt` (from 0): doubling from 0.5, with jitter. What the server wished
    for (`retry_after`) counts alone the first time; one that refuses again would have all tries spent at once by "0".
    """
    own = min(30.0, 0.5 * 2**attempt) * random.uniform(0.5, 1.5)
    if wished is None:
        return own
    return max(wished, own) if attempt else wished


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait (`Retry-After` in seconds or as a date, RFC 9110 10.2.3;
    OpenAI's `retry-after-ms`), as it says it: perhaps a year, or infinity; None where it does not say, or in seconds
    below zero, which are none."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if not text:
            continue
        try:
            seconds = float(text) / unit
            if seconds < 0:
                continue
        except ValueError:
            try:
                at = parsedate_to_datetime(text)
            except (ValueError, TypeError, OverflowError):
                continue
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            seconds = (at - datetime.now(UTC)).total_seconds()
        if seconds == seconds:
            return max(0.0, seconds)
    return None


def beyond(wished: float, left: float | None) -> str:
    """Why there is no point in waiting so many seconds, in words; empty where there is one. `left` is what the
    attempt still has (None: no limit)."""
    shown = f"{wished:,.0f} s" if wished < 1e15 else "without end" if wished == inf else f"{wished:.0e} s"
    asked = f"the server asks to wait {shown}"
    if wished > LONGEST_WAIT:
        return f"{asked}, and at most {LONGEST_WAIT:,.0f} s are waited"
    if left is not None and wished > left:
        return f"{asked}, and the time limit leaves {max(0.0, left):,.0f} s"
    return ""


_SPENT = frozenset(
    (
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "access_terminated",
        "quota_exceeded",
    )
)


def quota_spent(status: int, text: str) -> bool:
    """Whether a server that says "too many" (429) means that there is no money left: asking later does not help."""
    if status != 429:
        return False
    try:
        error = decode(text)
    except ValueError:
        return False
    inner = error.get("error") if isinstance(error, dict) else None
    told = [part for part in (error, inner) if isinstance(part, dict)]
    return any(str(part.get(key)) in _SPENT for part in told for key in ("code", "type"))


_HOST = "http://host"


def without_secrets(place: str) -> str:
    """Where an answer leads to (`Location`), an address or its path, without passwords and tokens."""
    if place.startswith("/"):  # they are looked for in whole addresses
        return in_addresses(_HOST + place).removeprefix(_HOST)
    return in_addresses(place)


_TAGS = r"<[^>]*(?:>|$)"
_FIRST = 2_000
"""Characters of a page without a title in which its words are looked for."""


def explain(text: str, headers: Mapping[str, str] | None = None) -> str:
    """What an error body says, in one line: the usual places of a JSON body, else its text."""
    if headers and (place := headers.get("location")):
        return f"it redirects to {one_line(without_secrets(place))}"
    with suppress(ValueError):
        found = _reason(decode(text)) if text.strip() else None
        if found:
            return one_line(found)
    stripped = text.strip()
    if stripped.startswith("<"):
        _, _, rest = stripped.partition("<title>")
        stripped = (
            rest.partition("</title>")[0] or one_line(re.sub(_TAGS, " ", stripped[:_FIRST])) or "an HTML page"
        )
    return one_line(stripped) or "no explanation"


_BY_A_CLIENT = r"(?s)\bError code: (\d{3})(?: - (\{.*\}|.*))?"


def told_by_client(text: str) -> tuple[int, str] | None:
    """The status and the reason in what a model's client for Python says of an error answer (openai's, anthropic's:
    `Error code: 500 - {'error': {'message': 'overloaded'}}`); None where it is not of that form."""
    if (told := re.search(_BY_A_CLIENT, text[:_LONGEST])) is None:
        return None
    body = told[2] or ""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        if reason := _reason(ast.literal_eval(body)):
            return int(told[1]), one_line(reason)
    return int(told[1]), one_line(body)


_RETRIED = (
    r"\s*(?:Error:\s*)?(?:(?:AI_)?[A-Z]\w*Error(?:\s\[\w+\])?:\s*)?Failed after \d{1,4} attempts?\b"
    r"[^\n:]{0,40}(?:Last error|error):\s*"
)
"""What the AI SDK puts before the last of what went wrong."""


def fact_first(text: str) -> str:
    """What went wrong, in one line, without the words that a model's client or one that asks again puts around it."""
    text = re.sub(_RETRIED, "", text, count=1) or text
    if (refused := told_by_client(text)) is not None:
        return f"{refused[0]}: {refused[1]}".removesuffix(": ")
    return one_line(text)


_LONGEST = 10_000
"""Characters in which a client's words are looked for."""


def _reason(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return _reason(value[0])
    if isinstance(value, dict):
        for key in ("message", "error", "detail", "errors", "msg"):
            if found := value.get(key):
                reason = _reason(found)
                if reason:
                    return reason
    return None
