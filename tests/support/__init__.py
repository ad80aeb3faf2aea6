"""What tests of several rooms share: hosts of the app, projects, servers' answers, waiting; and where things lie."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent


def mostly_real(values: Iterable[Any], *usual: Any, ids: Iterable[str] = ()) -> list[Any]:
    """The parameters of a heavy test: these with the rest of the suite, all others only where `real` tests run. A
    size (80, 24) goes by `80x24`."""
    values = list(values)
    names = list(ids) or [f"{one[0]}x{one[1]}" if isinstance(one, tuple) else str(one) for one in values]
    return [
        pytest.param(one, id=name, marks=() if one in usual else pytest.mark.real)
        for one, name in zip(values, names, strict=True)
    ]
