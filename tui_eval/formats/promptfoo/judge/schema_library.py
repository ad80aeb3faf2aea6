"""jsonschema, imported without two libraries that take a second of a run's start.

They are for formats that are not asked of it here: `iri` and `iri-reference` (a grammar is built while their library
is imported), which Ajv does not know, and `duration`, which `json_schema` reads itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

_NOT_ASKED = ("rfc3987_syntax", "isoduration")


@contextmanager
def _as_if_not_installed(names: tuple[str, ...]) -> Iterator[None]:
    """Inside, these cannot be imported, unless they have been."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: there is none (Python's import)
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


with _as_if_not_installed(_NOT_ASKED):
    import jsonschema
    import jsonschema.validators

__all__ = ["jsonschema"]
