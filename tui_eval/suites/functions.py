"""Where a function begins in a person's file."""

from __future__ import annotations

import re
from pathlib import Path

_LARGEST = 2_000_000


def function_line(path: Path, name: str) -> int:
    """The line at which a function begins in a Python or JavaScript file; 0 where it is not found."""
    if not name:
        return 0
    try:
        if path.stat().st_size > _LARGEST:
            return 0
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        return 0
    plain = re.escape(name.rpartition(".")[2])
    pattern = rf"^[ \t]*(?:async[ \t]+)?(?:export[ \t]+)?(?:async[ \t]+)?(?:def|class|function)\*?[ \t]+{plain}\b|^[ \t]*(?:const|let|var)[ \t]+{plain}\b"
    found = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 0
