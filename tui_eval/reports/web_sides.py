"""Two attempts of a case side by side in a browser, with the words that differ. Only reads, without a script."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tui_eval.model import Attempt
from tui_eval.reports import page
from tui_eval.reports.page_case import dollars, mark, seconds
from tui_eval.reports.page_text import safe
from tui_eval.reports.together import Together, together
from tui_eval.reports.web_compare import NotThere, Side, read
from tui_eval.reports.word_difference import Piece, pieces
from tui_eval.store.reader import RunReader
from tui_eval.store.summary import CaseSummary


def case_page(root: Path, query: dict[str, str]) -> str:
    """Two attempts of a case side by side.

    Raises:
        NotThere: no such case, or only one side has it.
        StoreError: a run cannot be read.
    """
    both = read(root, query)
    wanted = (query.get("case"), query.get("agent", ""), query.get("model") or None)
    case = next(
        (
            one
            for one in both.comparison.cases
            if one.after is not None and (one.case_id, one.after.agent, one.after.model) == wanted
        ),
        None,
    )
    if case is None or case.before is None or case.after is None:
        raise NotThere("no such case in both runs")
    attempts = [_telling(side, one) for side, one in zip(both[:2], (case.before, case.after), strict=True)]
    first, second = attempts
    if first is None or second is None:
        raise NotThere("no finished attempt of this case in both runs")
    entries = together(first, second)
    differing = sum(entry.differs for entry in entries)
    head = "".join(
        f'<div>{mark(attempt.outcome)} <span class="muted">{_who(attempt)}</span></div>'
        for attempt in (first, second)
    )
    body = (
        f'<nav><a href="/">All runs</a> · <a href="{safe(both.address())}">both runs</a></nav>'
        f'<h1>{safe(case.name, 300)} <span class="muted">{safe(case.mark, 200)}</span></h1>'
        f'<p class="muted">{safe(case.suite, 300)} · {differing:,} of {len(entries):,} entries differ</p>'
        f'<div class="sides heads">{head}</div>{_entries(entries)}'
    )
    return page.document(f"Compare: {case.name}", body)


def _telling(side: Side, one: CaseSummary) -> Attempt | None:
    """The first attempt of the case's outcome in the newest of the runs that has one."""
    other = None
    for folder in reversed(side.folders):
        with closing(RunReader(folder)) as reader:
            for case in reader.cases_of(one.case_id):
                if (case.agent, case.model) != (one.agent, one.model):
                    continue
                for row in reader.attempts(case.id):
                    if row.state == "done" and row.outcome == one.outcome:
                        return reader.attempt(row.id)
                    if row.state == "done" and other is None:
                        other = reader.attempt(row.id)
    return other


def _who(attempt: Attempt) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(attempt.started_at)) if attempt.started_at else ""
    parts = [when, f"attempt {attempt.attempt}", seconds(attempt.duration_ms), dollars(attempt.cost)]
    parts += [attempt.agent, attempt.model or ""]
    return safe(" · ".join(part for part in parts if part), 400)


def _entries(entries: Sequence[Together]) -> str:
    parts: list[str] = []
    turn = -1
    for entry in entries:
        if entry.turn != turn:
            turn = entry.turn
            parts.append(f"<h2>{f'Turn {turn}' if turn else 'Outcome'}</h2>")
        label = f'<div class="who">{safe(entry.label)}{" <strong>≠</strong>" if entry.differs else ""}</div>'
        if not entry.differs:
            parts.append(f'<div class="entry">{label}<pre>{safe(entry.before)}</pre></div>')
            continue
        left, right = ([(text, True)] if text is not None else None for text in (entry.before, entry.after))
        if entry.before is not None and entry.after is not None:
            left, right = pieces(entry.before, entry.after)
        halves = "".join(_half(half, tag) for half, tag in ((left, "del"), (right, "ins")))
        parts.append(f'<div class="entry differs">{label}<div class="sides">{halves}</div></div>')
    return "".join(parts)


def _half(half: Sequence[Piece] | None, tag: str) -> str:
    if half is None:
        return '<p class="muted">not on this side</p>'
    text = "".join(f"<{tag}>{safe(piece)}</{tag}>" if differs else safe(piece) for piece, differs in half)
    return f"<pre>{text}</pre>"
