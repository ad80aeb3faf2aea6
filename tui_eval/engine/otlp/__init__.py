"""OpenTelemetry traces of the agents of promptfoo suites: asked for, received, kept with the attempt.

May not: judge spans (`formats/promptfoo/judge`); listen anywhere but on loopback.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tui_eval.formats import format_of
from tui_eval.model import Case

_TRUE = frozenset(("1", "true", "yes", "yup", "yeppers"))


def asks_for_traces(case: Case, suite: Mapping[str, Any]) -> bool:
    """Whether a case is traced: by its suite's `tracing.enabled`, by `metadata.tracingEnabled` of its test, or
    by the environment variable PROMPTFOO_TRACING_ENABLED. `suite` are the suite's settings."""
    if not format_of(case.format).rows:
        return False
    tracing = suite.get("tracing")
    if isinstance(tracing, dict) and tracing.get("enabled") is True:
        return True
    if case.metadata.get("tracingEnabled") is True:
        return True
    return os.environ.get("PROMPTFOO_TRACING_ENABLED", "").lower() in _TRUE
