"""Results as tables: CSV and Parquet with a row per attempt, Markdown with a row per case."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tui_eval.case_names import NamesSeen, full_name
from tui_eval.guard import figures
from tui_eval.guard.text import clip, no_formula, storable, visible
from tui_eval.reports import results
from tui_eval.reports.rows_shown import RowsShown, rows_shown
from tui_eval.store.missing_cases import unread_report
from tui_eval.store.notes import Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.store.shard_runs import shard_words, unfinished_in
from tui_eval.store.summary import (
    CaseSummary,
    RunSums,
    share,
    summarise,
    unfinished_tokens,
    unfinished_words,
    wilson,
)

COLUMNS = (
    "suite", "case_id", "name", "format", "agent", "model", "attempt", "outcome", "passed", "score", "message",
    "tokens", "cost", "duration_ms", "tool_call_count", "started_at", "prompt", "vars", "metadata",
    "response_text", "error", "cached", "saved",
    "judge_tokens", "judge_cost", "person_verdict", "person_note", "starred",
)  # fmt: skip
"""The last three are what a person noted on the attempt (`m`)."""


def _rows(reader: RunReader) -> Iterator[dict[str, Any]]:
    for result in results.rows(reader):
        row = {name: result.get(name) for name in COLUMNS}
        row["response_text"] = result["details"]["response_text"]
        row["cached"] = bool(result.get("cached"))
        judging = result.get("judging") or {}
        row |= {"judge_tokens": judging.get("tokens"), "judge_cost": judging.get("cost")}
        for name in ("vars", "metadata"):
            row[name] = json.dumps(storable(result[name]), default=str, ensure_ascii=False)
        note = result.get("note") or {}
        row |= {"person_verdict": note.get("verdict"), "person_note": note.get("text") or None}
        row["starred"] = bool(note.get("star"))
        yield storable(row)
    for left in results.without_result(reader):
        yield storable(
            {
                **dict.fromkeys(COLUMNS),
                **left,
                "vars": "{}",
                "metadata": "{}",
                "cached": False,
                "starred": False,
            }
        )


def write_csv(reader: RunReader, path: Path) -> None:
    """CSV. A cell that a spreadsheet would take for a formula gets an apostrophe before it."""
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for row in _rows(reader):
            writer.writerow([_cell(row[name]) for name in COLUMNS])


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return no_formula(visible(value))
    return value


def write_parquet(reader: RunReader, path: Path) -> None:
    """Parquet, with the types of the columns."""
    import polars as pl

    kinds = {"attempt": pl.Int64, "passed": pl.Boolean, "score": pl.Float64, "tokens": pl.Int64,
             "cost": pl.Float64, "duration_ms": pl.Float64, "tool_call_count": pl.Int64,
             "started_at": pl.Float64, "cached": pl.Boolean, "saved": pl.Float64, "judge_tokens": pl.Int64,
             "judge_cost": pl.Float64, "starred": pl.Boolean}  # fmt: skip
    schema = {name: kinds.get(name, pl.String) for name in COLUMNS}
    rows = _rows(reader)
    frames = [pl.DataFrame([], schema=schema)]
    while some := list(islice(rows, _ROWS_AT_ONCE)):  # as a frame they take a fifth of the memory
        frames.append(pl.DataFrame(some, schema=schema, orient="row", strict=False))
    # Polars takes no name that is not UTF-8, and calls the file a bad one where the disk is full.
    written = io.BytesIO()
    pl.concat(frames, rechunk=True).write_parquet(written)
    path.write_bytes(written.getbuffer())


_ROWS_AT_ONCE = 1000

ColumnKey = tuple[str, str, str | None]
"""Case, agent and model."""


def write_markdown(reader: RunReader, path: Path) -> None:
    """Markdown for a pull request: the counts, a table of what did not pass, the rest folded; of each part as much as
    lets all of it be a comment there."""
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in _markdown(reader))


def _summaries(reader: RunReader, marks: Mapping[ColumnKey, str]) -> Iterator[CaseSummary]:
    """What is said of each case; its `variant` tells it from all others of its name, of other suites too."""
    for case, attempts in reader.by_case(listed=True):
        item = summarise(case, attempts)
        item.variant = marks.get(_key(item), item.variant)
        yield item


def _row_shown(case: StoredCase) -> tuple[str | None, ...]:
    return case.name, case.variant, case.agent, case.model


def _key(of: CaseSummary | StoredCase) -> ColumnKey:
    return of.case_id, of.agent, of.model


def _markdown(reader: RunReader) -> Iterator[str]:
    """Line by line: the cases are gone through for each of the parts."""
    info, sums, names = reader.info(), RunSums(), NamesSeen(_row_shown)
    unfinished, lost = unfinished_in(info)
    for case, attempts in reader.by_case(listed=True):
        sums.add(summarise(case, attempts))
        unfinished += unfinished_tokens(attempts)
        names.add(case)
    alike = names.marks(lambda: (case for case, _ in reader.by_case(listed=True)))
    marks = {_key(case): mark for _, case, mark in alike}
    passed = sums.count("passed")
    yield from (f"## {passed:,} of {sums.cases:,} cases passed", "")
    part = shard_words(info.provenance)
    part = f", {part}" if part else ""
    part += f", which adds to {_text(info.linked_to)}," if info.linked_to else ""
    yield f"Run `{info.id}`{part} with {_text(', '.join(info.agents))}, {info.state}. {_totals(sums, unfinished_words(unfinished, lost))}"
    yield ""
    if unread := unread_report(info):
        yield from (f"**{_text(unread)}.**", "")
    if info.note and info.note != info.state:
        yield from (f"{_text(info.note)}.", "")
    if passed < sums.cases:
        bad = (item for item in _summaries(reader, marks) if item.outcome != "passed")
        yield from _did_not_pass(reader, info.id, bad, sums.cases - passed)
    if passed:
        yield f"<details><summary>{passed:,} passed</summary>"
        yield from ("", "| case | agent | model | outcome |", "|---|---|---|---|")
        good = (item for item in _summaries(reader, marks) if item.outcome == "passed")
        rows = (f"| {_name(item)} | {_column(item)} | {_outcome(item)} |" for item in good)
        kept = yield from _fitting(rows, _PASSED_ROOM)
        yield from _others(passed - kept, "passed", f"tui-eval show {info.id}")
        yield from ("", "</details>")
    yield from _noted(reader, info.id, marks)


def _fitting(rows: Iterable[str], room: int) -> Generator[str, None, int]:
    """The first of the rows, as many as take so many characters; how many these were."""
    kept = 0
    for row in rows:
        room -= len(row) + 1
        if room < 0:
            break
        yield row
        kept += 1
    return kept


def _others(count: int, what: str, command: str) -> Iterator[str]:
    """The line below a table that not all rows fitted into."""
    if count:
        yield from ("", f"{count:,} more {what}, not listed here: `{command}`.")


_FAILED_ROOM, _ROWS_ROOM, _PASSED_ROOM, _NOTES_ROOM = 28_000, 14_000, 10_000, 8_000
"""Characters of the parts of a Markdown report. GitHub takes 65,536 in a comment, and refuses a longer one as
a whole."""


def _did_not_pass(reader: RunReader, run_id: str, bad: Iterable[CaseSummary], count: int) -> Iterator[str]:
    """The table of the cases that did not pass (so many), and the rows of the first of them."""
    found, unread = _rows_of_cases(reader)
    yield from ("| case | agent | model | outcome | why |", "|---|---|---|---|---|")
    told: list[CaseSummary] = []

    def rows() -> Iterator[str]:
        for item in bad:
            told.append(item)
            yield f"| {_name(item)} | {_column(item)} | {_outcome(item)} | {_why(item, found)} |"

    kept = yield from _fitting(rows(), _FAILED_ROOM)
    yield from _others(count - kept, "did not pass", f"tui-eval show {run_id}")
    yield ""
    folded = {key: shown for key, shown in found.items() if shown.table or shown.fault}
    with_rows = [item for item in told[:kept] if _key(item) in folded][:_MOST_TABLES]
    room = _ROWS_ROOM // max(min(len(with_rows), 4), 1)
    details = (_details(item, folded[_key(item)], room) for item in with_rows)
    shown = yield from _fitting((one for one in details if len(one) < _ROWS_ROOM), _ROWS_ROOM)
    if rest := len(folded) - shown + unread:
        others = "1 more case is" if rest == 1 else f"{rest:,} more cases are"
        words = f"; no cause was looked for in {unread:,} of these" if unread else ""
        yield f"The rows of {others} not shown here{words}. `tui-eval show {run_id} CASE` shows them."
        yield ""


_MOST_DIAGNOSES = 50
"""Cases whose rows are looked at: a table of more of them nobody reads to its end."""
_MOST_TABLES, _TABLE_ROWS = 20, 10
"""Cases whose rows stand below the table, folded, and of each how many rows."""


def _attempts(reader: RunReader) -> Iterator[tuple[StoredCase, AttemptRow]]:
    return ((case, row) for case, attempts in reader.by_case(listed=True) for row in attempts)


def _rows_of_cases(reader: RunReader) -> tuple[dict[ColumnKey, RowsShown], int]:
    """What is shown of the rows of the first attempt that failed or could not be judged, by its column; and of how
    many further columns of such suites nothing was read."""
    found: dict[ColumnKey, RowsShown] = {}
    looked: set[int] = set()
    formats: set[str] = set()
    unread: dict[int, str] = {}
    for case, row in _attempts(reader):
        if row.state != "done" or row.outcome == "passed" or row.case_ref in looked:
            continue
        if len(looked) == _MOST_DIAGNOSES:
            unread[row.case_ref] = case.format
            continue
        looked.add(row.case_ref)
        attempt = reader.attempt(row.id)
        if attempt is None or attempt.data is None:
            continue
        shown = rows_shown(attempt.data, reader.folder, rows=_TABLE_ROWS, attempt=attempt)
        if any(shown):
            found[_key(case)] = shown
            formats.add(case.format)
    return found, sum(format_name in formats for format_name in unread.values())


def _details(item: CaseSummary, shown: RowsShown, room: int) -> str:
    """The rows of a case, folded; of long ones as few as leave room for those of other cases."""
    count = _TABLE_ROWS
    while len(text := "\n".join(_rows_folded(item, shown, count))) >= room and count > 1:
        count //= 2
    return text


def _rows_folded(item: CaseSummary, shown: RowsShown, count: int) -> list[str]:
    """What the rows have in common, which step went wrong, the first rows of the one table."""
    lines = [f"<details><summary>{_name(item)}: rows</summary>", ""]
    told = [*shown.diagnosis, *([f"SQL: {shown.conclusion}"] if shown.conclusion else ())]
    lines += [f"- {_text(clip(line, 300))}" for line in told]
    for said in (shown.place, shown.fault):
        lines += _code(said) if said else []
    table = shown.table or shown.answer
    if table is not None:
        left = table.more_rows + max(len(table.rows) - count, 0)
        more = f", {left:,} more rows" if left else ""
        more += f", {table.more_columns:,} more columns" if table.more_columns else ""
        heads = " | ".join(f"{_text(clip(c.name, 60))} *{c.kind}*" for c in table.columns)
        ends = "|".join("---:" if c.numeric else "---" for c in table.columns)
        lines += ["", f"{_text(table.line)}{more}", "", f"| | {heads} |", f"|---|{ends}|"]
        for row in table.rows[:count]:
            cells = " | ".join(_text(clip(row.cells[at].text, 80)) for at in table.at)
            lines.append(f"| {row.mark.strip()} | {cells} |")
    lines += ["", shown.cut] if shown.cut else []
    return [*lines, "", "</details>", ""]


def _code(said: Iterable[str]) -> list[str]:
    """Foreign text as it is, line by line; fenced, since what is indented below a list belongs to that."""
    lines = [visible(line, newlines=False).encode("utf-8", "replace").decode() for line in said]
    fence = "`" * max([3, *(len(ticks) + 1 for line in lines for ticks in re.findall("`+", line))])
    return ["", fence, *lines, fence]


def _why(item: CaseSummary, found: Mapping[ColumnKey, RowsShown]) -> str:
    shown = found.get(_key(item), RowsShown())
    line = next((one for one in (*shown.diagnosis, shown.order, shown.conclusion) if one), "")
    if line.startswith(item.message):  # it says the same, and how many rows
        return _text(clip(line, 300))
    return _text(clip(item.cause or item.message, 200)) + (f"<br>{_text(clip(line, 300))}" if line else "")


def _noted(reader: RunReader, run_id: str, marks: Mapping[ColumnKey, str]) -> Iterator[str]:
    """What people noted on attempts of the run; nothing where they noted nothing."""
    notes = Notes.beside(reader.folder).of_run(reader.folder.name)
    if not notes:
        return
    rows = [
        f"| {_text(clip(full_name(case.name, marks.get(_key(case), case.variant)), _NAME))} | {_column(case)} | {row.attempt} | {row.outcome} "
        f"| {'★ ' if note.star else ''}{note.verdict or ''} | {_text(clip(note.text, _NOTE))} |"
        for case, row in _attempts(reader)
        if (note := notes.get(row.id)) is not None
    ]
    if not rows:
        return
    yield from ("", "| case | agent | model | attempt | outcome | a person says | note |")
    yield "|---|---|---|---|---|---|---|"
    kept = yield from _fitting(rows, _NOTES_ROOM)
    yield from _others(len(rows) - kept, "noted", f"tui-eval export {run_id} -o notes.csv")


def _name(item: CaseSummary) -> str:
    return _text(clip(full_name(item.name, item.variant), _NAME))


_NAME, _NOTE = 200, 1_000
"""Characters of a case's name and of a note: a long one leaves room for others."""


def _column(of: CaseSummary | StoredCase) -> str:
    """Who was asked, as two cells: the same case has a line for each."""
    return f"{_text(of.agent)} | {_text(of.model or '')}"


def _totals(sums: RunSums, more: str) -> str:
    """What the run took, and how sure its pass rate is; `more` what went into attempts that did not end."""
    low, high = wilson(sums.count("passed"), sums.judged)
    parts = [f"Pass rate {share(low)} to {share(high)} at 95 %"] if sums.judged else []
    parts += [f"{left:,} not run"] if (left := sums.count(None)) else []
    parts += [sums.left_words] if sums.left else []
    parts += [f"{sums.flaky:,} flaky"] if sums.flaky else []
    parts += [f"{sums.asserted_nothing:,} asserted nothing"] if sums.asserted_nothing else []
    parts += [cached] if (cached := sums.cached_words) else []
    tokens = figures.total([sums.tokens], "tokens of all cases")
    parts += [f"{tokens:,} tokens"] if tokens else []
    parts += [figures.usd(sums.cost)] if sums.cost is not None else []
    parts += [judges] if (judges := sums.judges_words) else []
    parts += [more] if more else []
    return f"{', '.join(parts)}." if parts else ""


def _outcome(item: CaseSummary) -> str:
    ratio = f" {item.passed}/{item.judged}" if item.judged > 1 and item.outcome is not None else ""
    cached = f", cached{'' if item.cached == item.attempts else f' {item.cached}'}" if item.cached else ""
    return f"{item.outcome or 'not run'}{ratio}{', flaky' if item.flaky else ''}{cached}"


_MARKS = {ord(mark): f"&#{ord(mark)};" for mark in "\\`*_{}[]<>|#!&~@$"}


_REFERENCES = re.compile(r"(?<=[@#!~$%&])(?=[\w\"])|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""Places in names of people and issues, addresses of pages and of mail. What shows Markdown makes links of
them, and calls the people, after it has read `&#64;` as `@`: a comment between is not seen, and leaves no
name."""


def _text(text: str) -> str:
    """Foreign text in a table cell: nothing in it is Markdown, HTML, a link or a person's name that is called."""
    shown = visible(text, newlines=False).encode("utf-8", "replace").decode()
    return "<!-- -->".join(part.translate(_MARKS) for part in _REFERENCES.split(shown))
