"""What a comparison of rows answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_eval.frames.difference import Difference


@dataclass(slots=True)
class Comparison:
    """What came of comparing rows.

    `passed` None: it could not be judged, `message` says why. `text` tells what differs (None where
    nothing does); `difference` is the same cell by cell; `raises` the exception that the reference
    tool ends with.
    """

    passed: bool | None
    message: str
    text: str | None = None
    difference: Difference | None = field(default=None, repr=False)
    raises: str | None = None
