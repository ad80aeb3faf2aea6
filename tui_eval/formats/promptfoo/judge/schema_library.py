"""jsonschema, imported without what takes a second of a run's start (`slow_imports`)."""

from __future__ import annotations

from tui_eval.slow_imports import as_if_not_installed

with as_if_not_installed():
    import jsonschema
    import jsonschema.validators

__all__ = ["jsonschema"]
