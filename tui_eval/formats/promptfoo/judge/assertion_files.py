"""Files that an assertion names, read."""

from __future__ import annotations

from pathlib import Path

from tui_eval.assertions.judge_input import CannotJudge

_MAX_FILE = 20_000_000


def read(path: Path) -> str:
    """The text of a file.

    Raises:
        CannotJudge: it cannot be read, is not UTF-8 or larger than 20 MB.
    """
    try:
        if path.stat().st_size > _MAX_FILE:
            raise CannotJudge(f"{path.name}: larger than 20 MB", "file")
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotJudge(f"{path.name}: {getattr(error, 'strerror', None) or error}", "file") from error
