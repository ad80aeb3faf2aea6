"""Where a conversation is to be saved as a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class SaveChoice:
    """What the dialog asks for; `file` is from the project root."""

    form: str
    file: str
    name: str


@dataclass(frozen=True, slots=True)
class SaveOffer:
    """What there is to choose from: what the dialog begins with, a file for each format, and the formats whose files
    hold several cases."""

    choice: SaveChoice
    files: Mapping[str, str]
    several: Sequence[str]
