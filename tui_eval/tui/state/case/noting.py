"""A person's note on an attempt, in words and in a few characters."""

from __future__ import annotations

from tui_eval.store.notes import HumanNote


def note_words(note: HumanNote | None) -> str:
    """A note in short: `★ right: cites the wrong policy`."""
    if note is None:
        return ""
    said = " ".join(part for part in ("★" if note.star else "", note.verdict or "") if part)
    return f"{said}: {note.text}" if said and note.text else said or note.text


def note_sign(note: HumanNote | None, star: str = "★") -> str:
    """A note in a few characters: `★ wrong …`, the ellipsis where it has a text."""
    if note is None:
        return ""
    rest = "…" if star == "★" else "..."
    return " ".join(
        part for part in (star if note.star else "", note.verdict or "", rest if note.text else "") if part
    )
