"""Benchmarks hand their figures to `figures`, which ends with one table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.figures import Figures, busy, circumstances, page, table
from tests.support import ROOT

_KEPT = pytest.StashKey[Figures]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--renew PAGE`."""
    parser.addoption(
        "--renew", metavar="PAGE", type=Path, help="write what benchmarks measure into this help page"
    )


@pytest.fixture
def figures(request: pytest.FixtureRequest, capfd: pytest.CaptureFixture[str]) -> Figures:
    """What this test measures."""

    def tell(text: str) -> None:
        with capfd.disabled():
            print(f"\n  {text}", end="", flush=True)

    kept = request.config.stash.setdefault(_KEPT, Figures(tell))
    kept.tell = tell
    kept.begin(busy())
    return kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """One table; and the page, where one is named."""
    kept = config.stash.get(_KEPT, None)
    if kept is None or not (kept.all or kept.skipped):
        return
    terminalreporter.section("measured")
    for line in (*table(kept.all), *kept.skipped):
        terminalreporter.write_line(line)
    if (target := config.getoption("--renew", default=None)) is not None:
        target.write_text(page(target.read_text("utf-8"), kept.all, circumstances(ROOT)), "utf-8")
        terminalreporter.write_line(f"written into {target}")
