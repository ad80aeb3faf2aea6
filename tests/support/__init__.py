"""What tests of several rooms share: hosts of the app, projects, servers' answers, waiting; and where things lie."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
