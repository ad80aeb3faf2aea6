"""Where a conversation is to be saved as a case."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SaveChoice:
    """What the dialog asks for; `file` is from the project root."""

    form: str
    file: str
    name: str
