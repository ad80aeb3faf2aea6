"""The footer of the Case screen names only keys that do something, for each kind of case on two of the six tabs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.every_key import KINDS, write
from tests.support.footer_scenes import Options, Scene, idle_keys
from tests.tui.conftest import _own_state_folder, _patient, _settled  # noqa: F401
from tui_eval.tui.screens.case_screen import CaseScreen

pytestmark = pytest.mark.real


def of_kind(kind: str) -> Callable[[Path], Options]:
    """A run with one case of a kind, in front."""

    def make(root: Path) -> Options:
        return {"open_run": write(root, kind).folder}

    return make


def of_case(kind: str, tab: int) -> Scene:
    way = ("j", "j", "enter", str(tab))
    return Scene(
        way,
        of_kind(kind),
        ready=lambda app: isinstance(app.screen, CaseScreen),
        clock=kind in ("running", "waiting"),
    )


@pytest.mark.parametrize("number", range(len(KINDS)), ids=list(KINDS))
async def test_case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    kind = list(KINDS)[number]
    for tab in (1 + number % 6, 1 + (number + 2) % 6):
        wrong = await idle_keys(of_case(kind, tab), tmp_path / str(tab), monkeypatch)
        assert not wrong, f"tab {tab}\n" + "\n".join(wrong)
