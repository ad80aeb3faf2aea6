"""YAML of any dialect whose aliases and nesting cannot take the machine's memory: what an agent answers, what a suite
holds as text, files that stand for a setting.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml
from yaml.nodes import Node, ScalarNode

from tui_eval.yaml.yaml_lines import DEEPEST

MOST_BESIDE = 1_000_000
"""Values, and characters of texts, that there may be beyond those that stand there: without aliases there are none."""


class UnfoldsTooFar(yaml.YAMLError):
    """What stands there is small, and what it stands for would be huge."""


def load_bounded(text: str, loader: Any) -> Any:
    """The value of the one document of a text, as a loader class of PyYAML makes it.

    Raises:
        UnfoldsTooFar: its aliases unfold to far more than the text, or contain themselves.
        yaml.YAMLError: it is none, or is nested too deeply.
    """
    reader = _reader(loader)(text)
    try:
        node = reader.get_single_node()
        if node is None:
            return None
        _Unfolded(len(text) + MOST_BESIDE).add(node)
        return reader.construct_document(node)
    finally:
        reader.dispose()


class _Unfolded:
    """Counts what nodes stand for, merged keys (`<<`) included, before anything is made of them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, int | None] = {}

    def add(self, node: Node) -> int:
        """Values and characters of texts of a node, with what is in it."""
        if isinstance(node, ScalarNode):
            return 1 + len(node.value)
        if id(node) in self._known:
            known = self._known[id(node)]
            if known is None:
                raise UnfoldsTooFar("an alias contains itself")
            return known
        self._known[id(node)] = None
        size = 1
        for item in node.value:
            size += sum(map(self.add, item)) if isinstance(item, tuple) else self.add(item)
            if size > 2 * self._most:
                raise UnfoldsTooFar(f"its aliases unfold to more than {self._most:,} values")
        self._known[id(node)] = size
        return size


@lru_cache(maxsize=8)
def _reader(loader: Any) -> Any:
    """The loader class, which refuses nesting that would overflow the C composer's stack."""

    class Reader(loader):
        depth = 0

        def descend_resolver(self, current_node: Any, current_index: Any) -> None:
            self.depth += 1
            if self.depth > DEEPEST:
                raise yaml.YAMLError(f"nested deeper than {DEEPEST} levels")

        def ascend_resolver(self) -> None:
            self.depth -= 1

    return Reader
