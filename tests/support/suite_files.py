"""Arbitrary JSON-like structures and a quick way to read a text as a suite of one format."""

from pathlib import Path

from hypothesis import strategies as st

from tui_eval.config.project import Config
from tui_eval.guard.trust import Trust

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["tool_call", "text", "1/2", "http", "x"])
)


def structures(keys: list[str]) -> st.SearchStrategy:
    """Structures whose mappings mostly use the keys that a reader knows."""
    key = st.sampled_from(keys) | st.text(max_size=6)
    return st.recursive(
        SCALARS, lambda c: st.lists(c, max_size=4) | st.dictionaries(key, c, max_size=6), max_leaves=25
    )


def read(module, text, path="suite.yaml", root="/nowhere", trusted=False):
    return module.read(path, text, Config(root=Path(root)), Trust(granted=trusted))


def messages(suite) -> list[str]:
    return [str(p) for p in suite.problems] + [str(p) for case in suite.cases for p in case.problems]
