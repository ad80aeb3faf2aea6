"""What one module of tests has parsed is dropped after it: it is large."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import source


@pytest.fixture(autouse=True, scope="module")
def _parsed_once_a_module() -> Iterator[None]:
    yield
    source.tree_of.cache_clear()
    source.nodes_of.cache_clear()
