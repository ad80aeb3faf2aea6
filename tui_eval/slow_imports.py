"""Libraries that jsonschema imports where they are installed, for formats that nothing here asks of it: `iri` and
`iri-reference` (a grammar is built while their library is imported: a second), which Ajv does not know, and `duration`,
which `json_schema` reads itself. They come with jsonschema's other formats."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOT_ASKED = ("rfc3987_syntax", "isoduration")
FORMATS = ("iri", "iri-reference")
"""What jsonschema knows only where they are."""


@contextmanager
def as_if_not_installed() -> Iterator[None]:
    """Inside, they cannot be imported, unless they have been."""
    hidden = [name for name in NOT_ASKED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: there is none (Python's import)
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def hide_in(folder: Path) -> None:
    """For other programs' processes that import jsonschema: with this folder on PYTHONPATH they cannot be imported."""
    folder.mkdir()
    for name in NOT_ASKED:
        (folder / f"{name}.py").write_text('raise ImportError("hidden: it takes a second")\n', "utf-8")
