"""How many examples a property is tried with, and which."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

THOROUGH = os.environ.get("TUI_EVAL_THOROUGH", "") not in ("", "0")
"""`TUI_EVAL_THOROUGH=1 pytest` tries all examples, others each time. The suite that a change waits for tries a
quarter of them, the same ones each time: what it finds is of that change."""

settings.register_profile(
    "tests",
    deadline=None,  # a busy machine says nothing about what is tested
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=not THOROUGH,
    max_examples=100 if THOROUGH else 40,
    database=None,
)
settings.load_profile("tests")


def examples(count: int) -> settings:
    """That many examples in the thorough suite, a quarter in the usual one."""
    return settings(max_examples=count if THOROUGH else max(25, count // 4))
