"""Which JavaScript files the isolate can run, and which need node."""

from __future__ import annotations

import re
from pathlib import Path

_NODE = re.compile(
    r"\brequire\s*\(|^\s*import\s|\bimport\s*\(|^\s*export\s.*\bfrom\b|\bprocess\.|\bfetch\s*\(",
    re.MULTILINE,
)
_EITHER = re.compile(
    r"\bBuffer\b|\b(?:set|clear)(?:Timeout|Interval|Immediate)\b|\bURL\b|\bText(?:En|De)coder\b"
)


def needs_node(path: Path, source: str, function: str | None = None) -> bool:
    """Whether a file uses what only node has: modules, TypeScript, the process, the network.

    So do the functions that only node can find again (`NodeHost.value_sync`): those of a promptfoo
    configuration, and of what a `function` of that name makes.
    """
    if function is not None and function.startswith("__fn_"):
        return True
    if path.suffix in (".ts", ".mts", ".cts") or path.name.startswith("promptfooconfig"):
        return True
    return _NODE.search(source) is not None


def better_in_node(source: str) -> bool:
    """Whether a file uses what the isolate has only the usual part of, or has of its own making."""
    return _EITHER.search(source) is not None
