"""No key ends the app: those that stay on a tab of a case, for every kind of case, at widths from 20 to 200; the
rest in `tests/real/test_every_key_everywhere.py`."""

from __future__ import annotations

import pytest

from tests.support import mostly_real
from tests.support.every_key import KINDS, STAYING, WIDTHS, every_key_of_a_case


@pytest.mark.real
@pytest.mark.parametrize("number", mostly_real(range(len(KINDS)), 0, 5, ids=KINDS))
async def test_keys_of_a_case(tmp_path, number):
    widths = [WIDTHS[(number + tab) % len(WIDTHS)] for tab in range(6)]
    # Tools and Data have most of their own, and take turns; so do the others.
    tabs = [(1, 3)[number % 2], (0, 2, 4, 5)[number // 2 % 4]]
    await every_key_of_a_case(tmp_path, list(KINDS)[number], widths, STAYING, tabs)
