"""Why a case does not pass, in few words, for lists: they know the reason but not the reply."""

from __future__ import annotations

import re

_LONG = 60
"""Characters from which on a quoted reply is left out, as in a case's head (`verdict_lines.QUOTED`)."""
_LOOKED_AT = 4_000
_REPR = rf"(?:'(?:[^'\\]|\\.){{{_LONG},}}(?:'|$)|\"(?:[^\"\\]|\\.){{{_LONG},}}(?:\"|$))"
_CLIPPED = rf"['\"](?:(?!…; ).){{{_LONG},}}?…(?=$|; )"
_QUOTING = (
    # `'peanut' unexpectedly found in 'the reply'`, `'two' != 'the reply'`; long ones end in an ellipsis
    re.compile(rf"(?<= found in )(?:{_CLIPPED}|{_REPR})"),
    re.compile(rf"(?<= [!=]= )(?:{_CLIPPED}|{_REPR})"),
    # `Expected output "the reply" to equal "…"`
    re.compile(rf'(?<=Expected output )".{{{_LONG},}}?"(?= to (?:not )?equal )', re.DOTALL),
)


_STATUS = re.compile(r"(?<!\d)(\d{3}) [^,;]*(?=, again in )")


def short_detail(words: str) -> str:
    """What an attempt waits for, without what an HTTP status says already: `429, again in 12 s`."""
    return _STATUS.sub(r"\1", words[:_LOOKED_AT])


def short_reason(words: str) -> str:
    """A reason as lists show it: without the reply that it quotes, so that what was looked for is seen."""
    words = words[:_LOOKED_AT]
    if len(words) > _LONG:
        for pattern in _QUOTING:
            words = pattern.sub("the reply", words)
    return words


_SHORTER = (
    (re.compile(r"should_contain: (.+?) not found in response(?=$|; )"), r"must contain \1"),
    (re.compile(r"should_not_contain: (.+?) was found in response(?=$|; )"), r"must not contain \1"),
    (re.compile(r"Expected output to "), "must "),
    (re.compile(r" is greater than (?:threshold|maximum) "), " > "),
    (re.compile(r" is less than (?:threshold|minimum) "), " < "),
    (re.compile(r"^Aggregate score ([\d.]+) < ([\d.]+) threshold(?=$|; )"), r"score \1 < \2"),
    (re.compile(r"JSON does not conform to the provided schema\. Errors: "), "schema: "),
)
"""What the tools' own words say at length; a line has room for what was looked for only."""
_IN_A_LINE = 600


def line_reason(words: str) -> str:
    """A reason for one line of a list: shorter still, what was expected in front."""
    words = " ".join(short_reason(words)[:_IN_A_LINE].split())
    for pattern, shorter in _SHORTER:
        words = pattern.sub(shorter, words)
    return words
