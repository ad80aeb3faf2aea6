"""How an optional part (an extra) is added: known here alone.

The name is not published on any package index, where anybody may take it: nothing of ours says to install it by name.
"""

from __future__ import annotations


def adding(extra: str) -> str:
    """The command that adds an extra, and where it is given."""
    return f"pip install -e '.[{extra}]' in the clone of tui-eval"
