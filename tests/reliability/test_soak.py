"""A short soak; the long one is run by hand (`soak`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reliability.soak import soak


@pytest.mark.real
def test_nothing_is_lost_repeated_or_hung_among_faults_and_kills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    report = soak(30)
    print(report)
    assert report.good, str(report)
    assert report.kills and report.cases > 100
