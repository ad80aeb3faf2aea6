"""Tests drawn at random: the same ones for the same seed, in promptfoo's manner, whoever draws them."""

from __future__ import annotations

from array import array


def sample(count: int, size: int, seed: str) -> list[int]:
    """`size` of the numbers below `count`: Fisher-Yates with Mulberry32, seeded by the text's FNV-1a."""
    state = 2166136261
    for unit in array("H", seed.encode("utf-16", "surrogatepass")[2:]):
        state = ((state ^ unit) * 16777619) & 0xFFFFFFFF

    def random() -> float:
        nonlocal state
        state = (state + 0x6D2B79F5) & 0xFFFFFFFF
        value = ((state ^ (state >> 15)) * (1 | state)) & 0xFFFFFFFF
        value = ((value + (((value ^ (value >> 7)) * (61 | value)) & 0xFFFFFFFF)) & 0xFFFFFFFF) ^ value
        return (value ^ (value >> 14)) / 4294967296

    order = list(range(count))
    for last in range(count - 1, 0, -1):
        other = int(random() * (last + 1))
        order[last], order[other] = order[other], order[last]
    return order[:size]
