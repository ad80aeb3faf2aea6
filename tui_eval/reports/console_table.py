"""What `tui-eval run` prints at its end: nao's table, the failures with reasons and their modes, the totals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

from tui_eval.case_names import NamesSeen
from tui_eval.guard import figures
from tui_eval.guard.text import clip, visible
from tui_eval.model import Attempt, Outcome
from tui_eval.store import case_state
from tui_eval.store.case_state import Column
from tui_eval.store.judged_under import compat_of
from tui_eval.store.missing_cases import is_only_named
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, StoredCase
from tui_eval.store.summary import (
    CaseSummary,
    CaseTaker,
    RunSums,
    judges_of,
    summarise,
    unfinished_tokens,
    unfinished_words,
    why_not,
)

if TYPE_CHECKING:
    from tui_eval.store.failure_modes import Assessment


_WIDTHS = {"Test": 36, "Model": 28, "Message": 48}
_LEAST = {"Message": 20, "Model": 12, "Test": 20}
"""Cells that these columns keep on a narrow terminal, cut in this order."""
_WORDS = {"passed": "✓ passed", "failed": "✗ failed", "error": "! error", "cancelled": "⊘ cancelled",
          "skipped": "– skipped", None: "◌ not run"}  # fmt: skip
_OUTCOMES = frozenset(_WORDS.values())
_ASCII = str.maketrans(
    {"✓": "P", "✗": "F", "⊘": "C", "–": "-", "◌": ".", "─": "-", "…": ".", "≈": "~", "×": "x"}
)


_HEADER = ("Test", "Model", "Status", "Message", "Tokens", "Cost", "Time (s)", "Tools")
_RIGHT = frozenset(("Tokens", "Cost", "Time (s)", "Tools"))
_SHORT = 24
"""Characters up to which texts of cells are taken to be the same in many lines."""


class RunTable:
    """What is printed at the end of a run. Its cases are added one by one, and of each no more is kept than
    its line."""

    def __init__(self, compat: Callable[[str], str] = lambda suite: "") -> None:
        """`compat` says by a suite the rules that the run was judged by (`store.judged_under`)."""
        self.sums = RunSums()
        self._compat = compat
        self._lines: list[tuple[str, ...]] = []
        self._widths = [len(name) for name in _HEADER]
        self._tokens: int | None = None
        self._unfinished = 0
        self._seconds = 0.0
        self._tools = self._ended = self._passed = 0
        self._most = self._asked = 0
        self._shares = [0.0, 0, 0]  # of cases: share passed, any passed, all passed
        self._names = NamesSeen()
        self._marks: dict[int, str] = {}

    @classmethod
    def begun(cls, reader: RunReader) -> RunTable:
        """An empty one, for the cases of a run."""
        return cls(compat_of(reader.info()))

    @classmethod
    def of(cls, reader: RunReader) -> RunTable:
        """That of a run.

        Raises:
            StoreError: it cannot be read.
        """
        table = cls.begun(reader)
        for case, attempts in reader.by_case(listed=True):
            table.add(case, attempts)
        table.tell_apart(lambda: reader.by_case(listed=True))
        return table

    def taker(self, reader: RunReader) -> CaseTaker:
        """What takes each case of a run that somebody else reads, in its order; `tell_apart` is the caller's
        to call."""

        def take(case: StoredCase, attempts: Sequence[AttemptRow], item: CaseSummary) -> None:
            self.add(reader.listed((case,))[0], attempts, item)

        return take

    def add(self, case: StoredCase, attempts: Sequence[AttemptRow], item: CaseSummary | None = None) -> None:
        """One case more, `item` what it has come to where that is known."""
        item = item or summarise(case, attempts)
        self.sums.add(item)
        self._names.add(case)
        counts: list[int | None] = []
        seconds, timed, tools = 0.0, False, 0
        for row in attempts:
            tools += row.tool_calls or 0
            if row.duration_ms is not None:
                timed, seconds = True, seconds + row.duration_ms / 1000
            if row.state == "done":
                self._ended += 1
                self._passed += row.outcome == "passed"
                counts.append(figures.tokens(row.input_tokens, row.output_tokens))
            else:
                self._unfinished += unfinished_tokens((row,))
        tokens = figures.total(counts, "tokens")
        if tokens is not None:
            self._tokens = (self._tokens or 0) + tokens
        self._seconds += seconds
        self._tools += tools
        if item.attempts:  # cancelled ones too: the figures of the results file, which are nao's
            self._most = max(self._most, item.attempts)
            self._asked += 1
            self._shares[0] += item.passed / item.attempts
            self._shares[1] += item.passed > 0
            self._shares[2] += item.passed == item.attempts
        status = _WORDS[item.outcome]
        if item.judged > 1 and item.outcome is not None:
            status += f" {item.passed}/{item.judged}"
        if item.flaky:
            status += " flaky"
        if item.cached:
            status += " cached" if item.cached == item.attempts else f" cached {item.cached}"
        if item.attempts and self._compat(case.suite) == "reference":
            status += " reference"
        message = visible(item.cause or item.message, newlines=False)
        cells = (
            intern(visible(case.model or case.agent, newlines=False)), intern(status),
            message if len(message) > _SHORT else intern(message), "" if tokens is None else intern(f"{tokens:,}"),
            "" if item.cost is None else intern(figures.usd_in_full(item.cost, "")), intern(f"{seconds:.2f}") if timed else "",
            intern(str(tools)),
        )  # fmt: skip
        self._lines.append((_fitting(*self._named(case)), *cells))
        self._measure(self._lines[-1])

    def tell_apart(self, cases: Callable[[], Iterable[tuple[StoredCase, Any]]]) -> None:
        """Give cases of one name, of another prompt, agent or suite, say, what tells them from each other. `cases` are
        those that were added, in the same order; they are gone through where there are such."""
        for number, case, mark in self._names.marks(lambda: (one for one, _ in cases())):
            self._marks[case.id] = mark
            self._lines[number] = (_fitting(*self._named(case)), *self._lines[number][1:])
            self._measure(self._lines[number])

    def _measure(self, line: Sequence[str]) -> None:
        sizes = map(len if _narrow("".join(line)) else _cells, line)
        self._widths = list(map(max, self._widths, sizes))

    def _named(self, case: StoredCase) -> tuple[str, str]:
        """A case's name, and what tells it from others of that name."""
        mark = self._marks.get(case.id, case.variant)
        mark = f" [{mark}]" if mark else ""
        return visible(case.name, newlines=False), visible(mark, newlines=False)

    def name(self, case: StoredCase) -> str:
        """A case as the table and the list of what failed call it."""
        return "".join(self._named(case))

    def lines(self, width: int | None = None) -> Iterator[str]:
        """nao's table (Test, Model, Status, Message, Tokens, Cost, Time (s), Tools), one line a case and
        agent, with a totals line. In `width` columns texts are cut, then messages and models left out."""
        tokens = figures.total([self._tokens], "tokens")
        cost = self.sums.cost
        total = (
            "Total", "", f"{self.sums.count('passed')}/{self.sums.cases} passed", "", "" if tokens is None else f"{tokens:,}",
            "" if cost is None else figures.usd_in_full(cost, ""), f"{self._seconds:.2f}", str(self._tools),
        )  # fmt: skip
        self._measure(total)
        return _grid(self._lines, total, self._widths, width)

    @property
    def nothing_failed(self) -> bool:
        """Whether each case passed, or has nothing yet."""
        return not self.sums.outcomes.keys() - {"passed", None}

    def failures(
        self,
        cases: Iterable[tuple[StoredCase, Sequence[AttemptRow]]],
        reasons: Callable[[AttemptRow], list[str]],
        root: Path | None,
        options: Mapping[str, Any] | None = None,
    ) -> Iterator[str]:
        """What did not pass, why, and the command that runs it again where it did not pass, case by case.
        `reasons` gives the lines of the attempt that tells (`why_not`); `root` is the project's (None: no
        command), `options` are what this run was asked for (`RunInfo.options`)."""
        if self.nothing_failed:
            return
        for case, attempts in cases:
            item = summarise(case, attempts)
            if item.outcome in ("passed", None):
                continue
            head = f"{_WORDS[item.outcome]}: {self.name(case)}"
            if item.judged > 1:
                head += f" ({item.passed} of {item.judged} passed, {item.required} required)"
            if self._compat(case.suite) == "reference":
                head += " (judged by reference)"
            lines = [head]
            why = why_not(attempts)
            told = (reasons(why.telling) if why.telling is not None else []) or [item.message]
            if why.several and why.telling is not None:
                told = [why.message, f"attempt {why.telling.attempt}: {told[0]}", *told[1:]]
            for reason in told:
                text = visible(clip(reason, 1000))
                lines.extend(f"    {line}" for line in text.splitlines() or [""])
            if root is not None:
                lines.append(f"    again: {rerun_command(case, root, options or {})}")
            yield "\n".join(lines)

    def totals(self, note: str = "", lacks: str = "", put_back: tuple[int, float] = (0, 0.0)) -> str:
        """`All N cases passed` (`1 case passed`), or the counts; attempts beside them where there are more.
        `lacks` says what the run does not have of what was asked for: then it is not all; `put_back` what
        went into attempts that were cut off (`shard_runs.unfinished_in`)."""
        sums = self.sums
        count, passed = sums.cases, sums.count("passed")
        lacks = lacks or sums.left_words
        if count and passed == count:
            cases = f"{count} case{'' if count == 1 else 's'} passed"
            line = (
                f"{cases}, but not all is there: {lacks}" if lacks else f"All {cases}" if count > 1 else cases
            )
        else:
            parts = [f"{passed} passed", f"{sums.count('failed')} failed"]
            for word, outcome in _REST:
                if number := sums.count(outcome):
                    parts.append(f"{number} {word}{'s' if outcome == 'error' and number > 1 else ''}")
            line = ", ".join(parts) + f", {count} total"
        notes = [f"{sums.flaky} flaky"] if sums.flaky else []
        notes += [f"{sums.asserted_nothing} asserted nothing"] if sums.asserted_nothing else []
        notes += [cached] if (cached := sums.cached_words) else []
        if notes:
            line += f" ({', '.join(notes)})"
        if self._ended != count:
            line += f"; {self._passed} of {self._ended} attempts passed"
        if more := unfinished_words(self._unfinished + put_back[0], put_back[1]):
            line += f"; {more}"
        if judges := self.sums.judges_words:
            line += f"; {judges}"
        line += self._pass_figures()
        return f"{line}\n{note}" if note else line

    def _pass_figures(self) -> str:
        """Where cases had several attempts: pass@1, pass@k and pass^k, means over the cases, as nao prints them."""
        k = self._most
        if k < 2:
            return ""
        names = ("pass@1", f"pass@{k}", f"pass^{k}")
        return "\n" + ", ".join(
            f"{name} {round(100 * share / self._asked, 1)}%"
            for name, share in zip(names, self._shares, strict=True)
        )


_REST: tuple[tuple[str, Outcome | None], ...] = (
    ("error", "error"), ("cancelled", "cancelled"), ("not run", None),
)  # fmt: skip


def _narrow(text: str) -> bool:
    """Whether every character is known to take one cell: ASCII, and the signs of the words that most lines have."""
    return text.isascii() or text.replace("✓", "").replace("✗", "").isascii()


def _cells(text: str) -> int:
    """How many cells a text takes; most have only letters that take one, as the words of an outcome have."""
    return len(text) if text.isascii() or text in _OUTCOMES else _wide(text)


@lru_cache(1024)
def _wide(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _fitting(name: str, mark: str) -> str:
    """The name with its mark, the name cut where both are too long for the column, then the mark in its middle."""
    if not mark:
        return name
    room = _WIDTHS["Test"] - _cells(mark)
    if _cells(name) <= room:
        return name + mark
    if room < _NAME:
        return _with_end(f"{_cut(name, _NAME) if _cells(name) > _NAME else name}{mark}", _WIDTHS["Test"])
    return f"{_cut(name, room)}{mark}"


_NAME = 8
"""Cells that a name keeps beside what tells it from others."""


def _cut(text: str, limit: int) -> str:
    from rich.cells import set_cell_size  # imported late: its tables are large

    return set_cell_size(text, limit - 1) + "…"


def _with_end(text: str, limit: int) -> str:
    """A text that ends with a mark, cut before the mark's end."""
    from rich.cells import chop_cells

    end = chop_cells(text[::-1], (limit - 1) // 2)[0][::-1]
    return _cut(text, limit - _cells(end)) + end


def _limits(widths: Sequence[int], width: int | None) -> dict[str, int]:
    """The columns that are shown, and at how many cells the texts of each are cut; `widths` are what they need."""
    needed = {name: min(size, _WIDTHS.get(name, 1_000)) for name, size in zip(_HEADER, widths, strict=True)}
    found = needed
    for dropped in ("", "Message", "Model"):
        needed.pop(dropped, None)
        found = dict(needed)
        over = sum(size + 2 for size in found.values()) - 2 - (width or 1_000_000)
        for name, least in _LEAST.items():
            if over > 0 and name in found:
                cut = min(over, max(found[name] - least, 0))
                found[name] -= cut
                over -= cut
        if over <= 0:
            break
    return found


def _grid(
    lines: Iterable[Sequence[str]], total: Sequence[str], widths: Sequence[int], width: int | None
) -> Iterator[str]:
    limits = _limits(widths, width)
    columns = [
        (place, limits[name], widths[place] > limits[name], name in _RIGHT)
        for place, name in enumerate(_HEADER)
        if name in limits
    ]

    pattern = "  ".join([f"{{{place}:{'>' if right else '<'}{room}}}" for place, room, _, right in columns])
    whole = sum(room + 2 for _, room, _, _ in columns) - 2

    def row(line: Sequence[str]) -> str:
        text = pattern.format(*line)
        if len(text) == whole and _narrow(text):  # nearly all: every cell fits
            return text.rstrip()
        parts: list[str] = []
        for place, room, may_be_cut, right in columns:
            cell = line[place]
            if not may_be_cut and cell.isascii():
                parts.append(cell.rjust(room) if right else cell.ljust(room))
                continue
            size = _cells(cell)
            if size > room and may_be_cut:
                cell, size = (_with_end if place == 0 and cell.endswith("]") else _cut)(cell, room), room
            gap = " " * (room - size)
            parts.append(gap + cell if right else cell + gap)
        return "  ".join(parts).rstrip()

    rule = "  ".join("─" * room for _, room, _, _ in columns)
    yield from (row(_HEADER), rule)
    yield from map(row, lines)
    yield from (rule, row(total))


def rerun_command(case: StoredCase, root: Path, options: Mapping[str, Any]) -> str:
    """The command line that runs this case again in the same column, from the current folder."""
    from tui_eval.store.printed_commands import (  # imported late: of most runs every case passed
        AsShown,
        are_known,
        by_root_alone,
        by_typing,
        configs_of,
        from_here,
        project_option,
        run_options,
        shell_line,
    )

    configs = configs_of(options)
    from_root = not configs and by_root_alone(case.suite, root, options)
    where = configs or [from_here(root if from_root else root / case.suite)]
    # An id, and not a name: others may be called so, or a file or folder. Of several files it is whole.
    path, mark, own = case.case_id.partition("::")
    words = [
        "tui-eval",
        "run",
        *where,
        "-s",
        AsShown(mark + own if mark and not configs and not from_root else path + mark + own),
    ]
    asked = case_state.arguments(case.case_id, Column(case.agent, case.model or ""), options)
    if not asked and not are_known(options) and is_only_named(case) and case.agent not in case.case_id:
        # A results file does not say what was typed; code and servers elsewhere are not to be trusted on its word.
        asked = [] if by_typing(case.agent) else ["--agent", case.agent]
    words += [*asked, *project_option([root / case.suite], root, options)]
    return shell_line([*words, *run_options(options)])


def plain_letters(text: str) -> str:
    """For terminals without UTF-8: letters where glyphs were."""
    return text.translate(_ASCII)


def failure_modes(assessment: Assessment) -> str:
    """For the terminal: passed, failed, then each mode with its count, share and examples."""
    from tui_eval.store.failure_modes import classified

    failed = assessment.attempts - assessment.passed
    lines = [f"{assessment.passed}/{assessment.attempts} attempts passed."]
    if not failed:
        return lines[0]
    lines += [f"{failed}/{assessment.attempts} attempts failed.", "Modes of failure:"]
    for mode in classified(assessment).modes:
        lines.append(f"{mode.count}/{failed} failures ({mode.share * 100:.2f}%): {mode.name or mode.what}")
        if mode.name:
            lines.extend(f"    {what}" for what in (mode.what, *mode.also))
        lines.extend(
            f"    {number}. {example.case_id} #{example.attempt}: {_on_one_line(example.message)}"
            for number, example in enumerate(mode.examples, 1)
        )
    if assessment.note:
        lines.append(assessment.note)
    used = assessment.judging
    if used is not None and (
        words := judges_of(figures.judge_tokens(used), used.cost, used.cached, used.saved)
    ):
        lines.append(f"naming them took {words.partition(': ')[2]}")
    return "\n".join(lines)


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def about_queries(attempt: Attempt) -> list[str]:
    """Which step went wrong, and where an expected query failed, with what DuckDB's first line does not say."""
    if attempt.data is None or not attempt.data.settings.keys() & {"conclusion", "sql_error"}:
        return []
    from tui_eval.reports.rows_shown import conclusion_lines, fault_lines

    line, *place = conclusion_lines(attempt.data) or [""]
    return [*fault_lines(attempt.data)[1:], *([f"SQL {line}"] if line else []), *place]


def _rows_in_common(attempt: Attempt) -> list[str]:
    """What was concluded of the rows when they were judged, where that says more than the verdict's message and is not
    said of its queries (`about_queries`)."""
    known = {attempt.message, "", *about_queries(attempt)}
    found = (one for verdict in attempt.verdicts for one in verdict.evidence or () if one.code == "rows")
    return [one.text for one in found if one.text not in known and f"SQL {one.text}" not in known]


def reasons_of(attempt: Attempt, *, diagnosed: bool = False) -> list[str]:
    """Why an attempt did not pass: its error, the verdicts that failed or erred (each text once: all tools that are
    missing have the same), rows that differ; `diagnosed`: before these, in one line, what they have in common."""
    lines = [attempt.error] if attempt.error else []
    for verdict in attempt.verdicts:
        if verdict.passed is True:
            continue
        turn = f"turn {verdict.turn}: " if verdict.turn else ""
        word = "" if verdict.passed is False else "error: "
        lines.append(f"{turn}{word}{verdict.reason or verdict.type}")
    if attempt.data is not None and attempt.data.comparison:
        first = attempt.data.comparison.partition("\n")[0]
        # The verdict's reason ends with the first difference; the text that follows begins with it.
        lines = [line.removesuffix(f": {first}") for line in lines]
        if diagnosed:
            lines.extend(_rows_in_common(attempt))
        lines.append(attempt.data.comparison)
    return list(dict.fromkeys(lines)) or [attempt.message]
