"""Looking through the calls of an attempt for a text. Pure; with much text it takes long, so call it in a thread."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tui_eval.model import Attempt
from tui_eval.tui.state.case.tools_view import CallRow, detail
from tui_eval.tui.state.text.block_layout import find_all


def next_with(
    attempt: Attempt,
    rows: Sequence[CallRow],
    here: int,
    step: int,
    wanted: re.Pattern[str],
    *,
    rendered: bool = True,
    progress: Callable[[int, int], bool] | None = None,
) -> int | None:
    """The nearest other call, round the end, whose name, arguments or result hold a text.

    Args:
        here: The call to begin after, by its place among `rows`; -1: there is none.
        step: 1 for later calls first, -1 for earlier ones.
        progress: Told how many calls of how many were looked at; the answer False ends the search.
    """
    count = len(rows)
    for offset in range(1, count if here >= 0 else count + 1):
        if progress is not None and not progress(offset - 1, count):
            return None
        index = (here + step * offset) % count
        if find_all(detail(attempt, rows[index], rendered=rendered, alone=True), wanted, 1):
            return index
    return None
