"""What `tui-eval run` prints at its end: nao's table, the failures with reasons, the totals."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tui_eval.case_names import told_apart
from tui_eval.guard import figures
from tui_eval.guard.text import clip, visible
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.store.printed_commands import configs_of, run_options
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.store.summary import CaseSummary, cached_words

_WIDTHS = {"Test": 36, "Model": 28, "Message": 48}
_LEAST = {"Message": 20, "Model": 12, "Test": 20}
"""Cells that these columns keep on a narrow terminal, cut in this order."""
_WORDS = {"passed": "✓ passed", "failed": "✗ failed", "error": "! error", "cancelled": "⊘ cancelled",
          "skipped": "– skipped", None: "◌ not run"}  # fmt: skip
_ASCII = str.maketrans({"✓": "P", "✗": "F", "⊘": "C", "–": "-", "◌": ".", "─": "-", "…": "."})


def table(
    cases: Sequence[StoredCase],
    attempts: Sequence[AttemptRow],
    summaries: Sequence[CaseSummary],
    width: int | None = None,
) -> str:
    """nao's table (Test, Model, Status, Message, Tokens, Cost, Time (s), Tools), one line a case and
    agent, with a totals line. In `width` columns texts are cut, then messages and models left out."""
    tools: dict[int, int] = {}
    counted: dict[int, list[int | None]] = {}
    seconds: dict[int, float] = {}
    for row in attempts:
        tools[row.case_ref] = tools.get(row.case_ref, 0) + (row.tool_calls or 0)
        if row.input_tokens is not None or row.output_tokens is not None:
            counted.setdefault(row.case_ref, []).append(figures.tokens(row.input_tokens, row.output_tokens))
        if row.duration_ms is not None:
            seconds[row.case_ref] = seconds.get(row.case_ref, 0.0) + row.duration_ms / 1000
    tokens = {case: figures.total(counts, "tokens") for case, counts in counted.items()}
    header = ["Test", "Model", "Status", "Message", "Tokens", "Cost", "Time (s)", "Tools"]
    lines: list[list[str]] = []
    names = _told_apart(cases)
    for case, item in zip(cases, summaries, strict=True):
        status = _WORDS[item.outcome]
        if item.attempts > 1:
            status += f" {item.passed}/{item.attempts}"
        if item.flaky:
            status += " flaky"
        if item.cached:
            status += " cached" if item.cached == item.attempts else f" cached {item.cached}"
        count = tokens.get(case.id)
        lines.append(
            [
                _fitting(*names[case.id]), visible(case.model or case.agent, newlines=False), status,
                visible(item.cause or item.message, newlines=False), "" if count is None else f"{count:,}",
                "" if item.cost is None else f"{item.cost:.4f}", f"{seconds[case.id]:.2f}" if case.id in seconds else "",
                str(tools.get(case.id, 0)),
            ]
        )  # fmt: skip
    all_tokens = figures.total(tokens.values(), "tokens")
    costs = [item.cost for item in summaries if item.cost is not None]
    passed = sum(item.outcome == "passed" for item in summaries)
    total = [
        "Total", "", f"{passed}/{len(summaries)} passed", "", "" if all_tokens is None else f"{all_tokens:,}",
        f"{sum(costs):.4f}" if costs else "", f"{sum(seconds.values()):.2f}", str(sum(tools.values())),
    ]  # fmt: skip
    return _grid(header, lines, total, width)


def _told_apart(cases: Sequence[StoredCase]) -> dict[int, tuple[str, str]]:
    """Names by case, each with what tells it from another prompt's or agent's case of that name."""
    marks = (f" [{mark}]" if mark else "" for mark in told_apart(cases))
    return {
        case.id: (visible(case.name, newlines=False), visible(mark, newlines=False))
        for case, mark in zip(cases, marks, strict=True)
    }


def _cells(text: str) -> int:
    """How many cells a text takes; most have only letters that take one."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _fitting(name: str, mark: str) -> str:
    """The name with its mark, the name cut where both are too long for the column."""
    from rich.cells import set_cell_size

    room = _WIDTHS["Test"] - _cells(mark)
    if not mark or _cells(name) <= room or room < 8:
        return name + mark
    return set_cell_size(name, room - 1) + "…" + mark


def _limits(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None
) -> tuple[list[str], dict[str, int]]:
    """The columns that are shown, and at how many cells the texts are cut."""
    widths = {
        name: min(max(_cells(cell) for cell in column), _WIDTHS.get(name, 1_000))
        for name, column in zip(header, zip(header, *rows, strict=True), strict=True)
    }
    shown = list(header)
    for dropped in ("", "Message", "Model"):
        shown = [name for name in shown if name != dropped]
        limits = {name: widths[name] for name in shown if name in _WIDTHS}
        over = sum(widths[name] + 2 for name in shown) - 2 - (width or 1_000_000)
        for name, least in _LEAST.items():
            if over > 0 and name in limits:
                cut = min(over, max(limits[name] - least, 0))
                limits[name] -= cut
                over -= cut
        if over <= 0:
            break
    return shown, limits


def _grid(
    header: Sequence[str], lines: Sequence[Sequence[str]], total: Sequence[str], width: int | None
) -> str:
    from rich.cells import set_cell_size

    names, cuts = _limits(header, [*lines, total], width)
    kept = [i for i, name in enumerate(header) if name in names]
    header, total = names, [total[i] for i in kept]
    lines = [[line[i] for i in kept] for line in lines]
    limits = [cuts.get(name) for name in header]
    shown = [
        [
            cell if limit is None or _cells(cell) <= limit else set_cell_size(cell, limit - 1) + "…"
            for cell, limit in zip(line, limits, strict=True)
        ]
        for line in lines
    ]
    widths = [max(_cells(cell) for cell in column) for column in zip(header, *shown, total, strict=True)]
    right = {"Tokens", "Cost", "Time (s)", "Tools"}

    def row(cells: Sequence[str]) -> str:
        parts = []
        for name, cell, width in zip(header, cells, widths, strict=True):
            gap = " " * (width - _cells(cell))
            parts.append(gap + cell if name in right else cell + gap)
        return "  ".join(parts).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([row(header), rule, *(row(line) for line in shown), rule, row(total)])


def failures(
    cases: Sequence[StoredCase],
    summaries: Sequence[CaseSummary],
    reasons: Callable[[StoredCase], list[str]],
    root: Path | None,
    options: Mapping[str, Any] | None = None,
) -> str:
    """What did not pass, why, and the command that runs it again where it did not pass. `reasons` gives the
    lines of a case's first attempt that did not pass; `root` is the project's (None: no command), `options`
    are what this run was asked for (`RunInfo.options`)."""
    parts: list[str] = []
    names = _told_apart(cases)
    for case, item in zip(cases, summaries, strict=True):
        if item.outcome in ("passed", None):
            continue
        head = f"{_WORDS[item.outcome]}: {''.join(names[case.id])}"
        if item.attempts > 1:
            head += f" ({item.passed} of {item.attempts} passed, {item.required} required)"
        lines = [head]
        for reason in reasons(case) or [item.message]:
            text = visible(clip(reason, 1000))
            lines.extend(f"    {line}" for line in text.splitlines() or [""])
        if root is not None:
            lines.append(f"    again: {rerun_command(case, root, options or {})}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def rerun_command(case: StoredCase, root: Path, options: Mapping[str, Any]) -> str:
    """The command line that runs this case again in the same column, from the current folder."""
    where = configs_of(options) or [os.path.relpath(root / case.suite)]
    words = ["tui-eval", "run", *where, "-s", case.case_id.partition("::")[2] or case.case_id]
    words += case_state.arguments(case.case_id, Column(case.agent, case.model or ""), options)
    return shlex.join([*words, *run_options(options)])


def totals(summaries: Sequence[CaseSummary], attempts: Sequence[AttemptRow], note: str = "") -> str:
    """`All N cases passed`, or the counts; attempts beside them where there are more."""
    count = len(summaries)
    outcomes = [item.outcome for item in summaries]
    passed = outcomes.count("passed")
    if count and passed == count:
        line = f"All {count} case{'' if count == 1 else 's'} passed"
    else:
        parts = [f"{passed} passed", f"{outcomes.count('failed')} failed"]
        for word, outcome in (("error", "error"), ("cancelled", "cancelled"), ("not run", None)):
            if number := outcomes.count(outcome):
                parts.append(f"{number} {word}{'s' if outcome == 'error' and number > 1 else ''}")
        line = ", ".join(parts) + f", {count} total"
    flaky, idle = sum(item.flaky for item in summaries), sum(item.asserted_nothing for item in summaries)
    notes = [f"{flaky} flaky"] if flaky else []
    notes += [f"{idle} asserted nothing"] if idle else []
    notes += [cached] if (cached := cached_words(summaries)) else []
    if notes:
        line += f" ({', '.join(notes)})"
    ended = [row for row in attempts if row.state == "done"]
    if len(ended) != count:
        good = sum(row.outcome == "passed" for row in ended)
        line += f"; {good} of {len(ended)} attempts passed"
    line += _pass_figures(summaries)
    return f"{line}\n{note}" if note else line


def _pass_figures(summaries: Sequence[CaseSummary]) -> str:
    """Where cases had several attempts: pass@1, pass@k and pass^k, means over the cases, as nao prints them."""
    asked = [item for item in summaries if item.attempts]
    k = max((item.attempts for item in asked), default=0)
    if k < 2:
        return ""
    figures = {
        "pass@1": sum(item.passed / item.attempts for item in asked),
        f"pass@{k}": sum(item.passed > 0 for item in asked),
        f"pass^{k}": sum(item.passed == item.attempts for item in asked),
    }
    return "\n" + ", ".join(
        f"{name} {round(100 * figure / len(asked), 1)}%" for name, figure in figures.items()
    )


def plain_letters(text: str) -> str:
    """For terminals without UTF-8: letters where glyphs were."""
    return text.translate(_ASCII)
