"""neuro-san's `success_ratio`: how many samples are run, and how many must pass.

Where its two releases differ, 0.7.15 counts: an exception or a time limit is a failed sample like
any other, and no case passes without a sample that does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Ratio(NamedTuple):
    """`needed` of `samples` must pass."""

    needed: int
    samples: int


class RatioError(ValueError):
    """The value is no fraction of two integers; the text says what is wrong."""


def parse(value: Any = "1/1") -> Ratio:
    """Read a ratio such as `"2/3"`.

    What is left of the first slash counts and what is right of the last (`1/9/2` is 1 of 2); a
    denominator below one means one sample; no more passes are needed than there are samples.

    Raises:
        RatioError: no text, no slash, or no integers around it.
    """
    if not isinstance(value, str):
        raise RatioError(f'success_ratio: {value!r} is not a text like "2/3"')
    if "/" not in value:
        raise RatioError(f"success_ratio: '/' not found in {value!r}")
    parts = value.split("/")
    try:
        numerator, denominator = int(parts[0]), int(parts[-1])
    except ValueError as error:
        raise RatioError(f"success_ratio: {value!r} is not a fraction of two integers: {error}") from None
    samples = max(1, denominator)
    return Ratio(min(numerator, samples), samples)


def passes(ratio: Ratio, outcomes: Iterable[str]) -> bool:
    """Whether enough of the samples' outcomes are `passed`; at least one always has to."""
    return sum(outcome == "passed" for outcome in outcomes) >= max(1, ratio.needed)


def report(ratio: Ratio, outcomes: Iterable[str], agent: str, file: str) -> str:
    """The sentence with which the driver fails a case."""
    successes = sum(outcome == "passed" for outcome in outcomes)
    return (
        f"{successes} of {ratio.samples} iterations on agent {agent} were successful. "
        f"Need at least {ratio.needed} to consider {file} test to be successful."
    )
