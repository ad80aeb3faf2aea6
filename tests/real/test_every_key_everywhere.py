"""No key ends the app: every key of the table on the tabs of every kind of case (each kind on two of the six,
in turn) and on every screen and dialog, at widths from 20 to 200 columns."""

from __future__ import annotations

import pytest

from tests.support.every_key import (
    KINDS,
    PLACES,
    WIDTHS,
    every_key_of_a_case,
    every_key_of_a_place,
    keys_of,
)
from tests.tui.conftest import _own_state_folder, _patient, _settled  # noqa: F401

pytestmark = pytest.mark.real


@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
async def test_every_key_on_the_tabs(tmp_path, number):
    widths = [WIDTHS[(number * 5 + tab) % len(WIDTHS)] for tab in range(6)]
    keys = keys_of("everywhere", "moving", "case")
    tabs = [number % 6, (number + 3) % 6]
    await every_key_of_a_case(tmp_path, list(KINDS)[number], widths, keys, tabs)


@pytest.mark.parametrize("name", PLACES)
async def test_every_key_on_every_screen(tmp_path, name):
    number = list(PLACES).index(name)
    await every_key_of_a_place(tmp_path, name, [WIDTHS[number % 3], WIDTHS[3 + number % 3]])
