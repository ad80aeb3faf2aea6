"""Which JavaScript files the isolate can run, and which need node."""

from __future__ import annotations

import re
from pathlib import Path

_NODE = re.compile(
    r"\brequire\s*\(|^\s*import\s|\bimport\s*\(|^\s*export\s.*\bfrom\b|\bprocess\.|\bfetch\s*\(|\bBuffer\b"
    r"|\bsetTimeout\b",
    re.MULTILINE,
)


def needs_node(path: Path, source: str) -> bool:
    """Whether a file uses what only node has: modules, TypeScript, the process, the network, timers.

    So does a promptfoo configuration, whose functions only node can find again (`NodeHost.value_sync`).
    """
    if path.suffix in (".ts", ".mts", ".cts") or path.name.startswith("promptfooconfig"):
        return True
    return _NODE.search(source) is not None
