"""One HTML page of a run that needs nothing else: no script, no font and no link from outside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from tui_eval.guard.text import clip, storable
from tui_eval.reports import results
from tui_eval.reports.html_templates import dollars, seconds
from tui_eval.reports.page_case import ROWS, Result, case_html
from tui_eval.reports.page_style import STYLE
from tui_eval.reports.page_text import safe
from tui_eval.store.failure_modes import Assessment, classified
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import AttemptRow, RunInfo, StoredCase
from tui_eval.store.shard_runs import shard_words
from tui_eval.store.summary import CaseSummary, cached_words, summarise_run, wilson

WHOLE = 5_000
"""Attempts up to which those that passed have their transcript in the page."""
_MODES = 8
_END = "</main></body></html>\n"


def write(reader: RunReader, path: Path) -> None:
    """Write the page: counts, agents, ways to fail, and each case with its attempts, transcripts, verdicts."""
    with open(path, "w", encoding="utf-8", errors="replace") as file:
        file.writelines(pieces(reader))


def pieces(reader: RunReader, above: str = "") -> Iterator[str]:
    """The page piece by piece; `above` is HTML that stands before the heading."""
    info, cases, attempts = reader.info(), reader.cases(), reader.attempts()
    summaries = summarise_run(cases, attempts)
    passed = sum(item.outcome == "passed" for item in summaries)
    title = f"{passed:,} of {len(summaries):,} cases passed"
    yield f"{_begin(title)}{above}<h1>{title}</h1>{_bar(summaries)}{_facts(info, summaries, attempts)}"
    yield _columns(reader, cases, summaries)
    yield _modes(reader.assessment())
    whole = sum(row.state == "done" for row in attempts) <= WHOLE
    yield _filter(summaries, passed)
    if not whole:
        yield (
            f'<p class="muted">More than {WHOLE:,} attempts: those that passed stand here without their'
            " transcript; <code>tui-eval export -o run.jsonl</code> has them.</p>"
        )
    yield from _cases(reader, cases, summaries, whole)
    yield _END


def document(title: str, body: str, again: int = 0) -> str:
    """A page of its own in the same look; `body` is HTML. It is loaded again after `again` seconds (0: not)."""
    return f"{_begin(title, again)}{body}{_END}"


def _begin(title: str, again: int = 0) -> str:
    refresh = f'<meta http-equiv="refresh" content="{again}">' if again else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'\">"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"{refresh}<title>{safe(title)}</title><style>{STYLE}</style></head><body><main>"
    )


def _bar(summaries: Sequence[CaseSummary]) -> str:
    spans = [
        f'<span class="{outcome}" style="flex: {count}"></span>'
        for outcome in ("passed", "failed", "error")
        if (count := sum(item.outcome == outcome for item in summaries))
    ]
    return f'<div class="bar" aria-hidden="true">{"".join(spans)}</div>'


def _facts(info: RunInfo, summaries: Sequence[CaseSummary], attempts: Sequence[AttemptRow]) -> str:
    passed = sum(item.outcome == "passed" for item in summaries)
    ended = sum(item.outcome is not None for item in summaries)
    low, high = wilson(passed, ended)
    done = [row for row in attempts if row.state == "done"]
    words = {outcome: sum(item.outcome == outcome for item in summaries) for outcome in ("failed", "error")}
    flaky = sum(item.flaky for item in summaries)
    counts = [f"{passed:,} passed", f"{words['failed']:,} failed", f"{words['error']:,} errors"]
    for outcome, word in (("cancelled", "cancelled"), ("skipped", "skipped"), (None, "not run")):
        number = sum(item.outcome == outcome for item in summaries)
        counts += [f"{number:,} {word}"] if number else []
    counts += [f"{flaky:,} flaky"] if flaky else []
    idle = sum(item.asserted_nothing for item in summaries)
    counts += [f"{idle:,} asserted nothing"] if idle else []
    counts += [cached] if (cached := cached_words(summaries)) else []
    tokens = sum((row.input_tokens or 0) + (row.output_tokens or 0) for row in done)
    costs = [row.cost for row in done if row.cost is not None]
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(info.started_at))
    took = f", took {info.finished_at - info.started_at:,.0f} s" if info.finished_at else ""
    git = info.provenance.get("git")
    commit = ""
    if isinstance(git, dict) and git.get("commit"):
        commit = f"{str(git['commit'])[:12]}{' with changes' if git.get('dirty') else ''}"
    facts = [
        ("Cases", ", ".join(counts)),
        ("Pass rate", f"{passed / ended:.0%} ({low:.0%} to {high:.0%} at 95 %)" if ended else ""),
        ("Attempts", f"{sum(row.outcome == 'passed' for row in done):,} of {len(done):,} passed"),
        ("Usage", " · ".join(part for part in (f"{tokens:,} tokens" if tokens else "",
                                              dollars(sum(costs)) if costs else "") if part)),
        ("Run", f"{info.id}, {info.state}, {when}{took}"),
        ("Part", shard_words(info.provenance)),
        ("Agents", ", ".join(info.agents) + (" (scripted)" if info.scripted else "")),
        ("Command", str(info.provenance.get("command") or "")),
        ("Commit", commit),
        ("Adds to", info.linked_to or ""),
        ("Note", info.note),
    ]  # fmt: skip
    rows = "".join(f"<dt>{name}</dt><dd>{safe(text, 2000)}</dd>" for name, text in facts if text)
    return f'<dl class="facts">{rows}</dl>'


def _columns(reader: RunReader, cases: Sequence[StoredCase], summaries: Sequence[CaseSummary]) -> str:
    """The columns (agent, model and, where they differ, promptfoo's prompts) against each other, the worst first."""
    groups: dict[tuple[str, str, str], list[CaseSummary]] = {}
    for row, item in zip(cases, summaries, strict=True):
        prompt = (reader.case(row.id).prompt or "") if row.format == "promptfoo" else ""
        groups.setdefault((item.agent, item.model or "", prompt), []).append(item)
    if len(groups) < 2:
        return ""
    several = len({prompt for *_, prompt in groups}) > 1
    rows: list[str] = []
    ended_of = {
        column: [item for item in items if item.outcome is not None] for column, items in groups.items()
    }

    def rate(column: tuple[str, str, str]) -> float:
        ended = ended_of[column]
        return sum(item.outcome == "passed" for item in ended) / len(ended) if ended else 2.0

    for agent, model, prompt in sorted(groups, key=rate):
        items = ended_of[agent, model, prompt]
        left = len(groups[agent, model, prompt]) - len(items)
        passed = sum(item.outcome == "passed" for item in items)
        low, high = wilson(passed, len(items))
        times = [item.duration_ms for item in items if item.duration_ms is not None]
        costs = [item.cost for item in items if item.cost is not None]
        cells = (
            f"{passed:,} of {len(items):,}{f', {left:,} not run' if left else ''}",
            f"{passed / len(items):.0%}" if items else "",
            f"{low:.0%} to {high:.0%}" if items else "",
            seconds(sum(times) / len(times)) if times else "",
            dollars(sum(costs)) if costs else "",
        )
        numbers = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        name = f"<td>{safe(clip(' '.join(prompt.split()), 100), 200)}" if several else ""
        rows.append(f"<tr><td>{safe(agent, 200)}<td>{safe(model, 200)}{name}{numbers}</tr>")
    names = ("Passed", "Rate", "95 %", "Time a case", "Cost")
    head = f"<th>Agent<th>Model{'<th>Prompt' if several else ''}" + "".join(
        f'<th class="number">{name}' for name in names
    )
    return f'<h2>Agents</h2><div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _modes(assessment: Assessment) -> str:
    assessment = classified(assessment)
    if not assessment.modes:
        return ""
    rows = "".join(
        f'<tr><td class="number">{mode.count:,}<td class="number">{mode.share:.0%}'
        f"<td>{safe(mode.name or mode.what, 500)}</tr>"
        for mode in assessment.modes[:_MODES]
    )
    rest = len(assessment.modes) - _MODES
    more = f'<p class="muted">and {rest:,} other ways</p>' if rest > 0 else ""
    head = '<th class="number">Attempts<th class="number">Share<th>What failed'
    return f'<h2>How attempts failed</h2><div class="scroll"><table><tr>{head}</tr>{rows}</table></div>{more}'


def _filter(summaries: Sequence[CaseSummary], passed: int) -> str:
    """Which cases are shown, by style alone: no script."""
    counts = [
        ("all", "all", len(summaries)),
        ("bad", "not passed", len(summaries) - passed),
        ("passed", "passed", passed),
        ("flaky", "flaky", sum(item.flaky for item in summaries)),
    ]
    inputs = "".join(
        f'<label><input type="radio" name="show" id="show-{key}"{" checked" if key == "all" else ""}> '
        f"{word} ({count:,})</label>"
        for key, word, count in counts
        if count or key == "all"
    )
    return f'<h2>Cases</h2><fieldset class="filter"><legend>Show</legend>{inputs}</fieldset>'


def _cases(
    reader: RunReader, cases: Sequence[StoredCase], summaries: Sequence[CaseSummary], whole: bool
) -> Iterator[str]:
    """Every case under its suite's heading, in the order of the results."""
    groups = groupby(results.rows_with_attempt(reader), key=lambda found: found[0])
    ref, rows = next(groups, (0, iter(())))
    suite = None
    order = sorted(range(len(cases)), key=lambda index: (cases[index].suite, cases[index].id))
    for index in order:
        item = summaries[index]
        if item.suite != suite:
            suite = item.suite
            yield f"<h3>{safe(suite, 500)}</h3>"
        own: list[Result] = []
        if cases[index].id == ref:
            own = [storable(row) | {ROWS: attempt.data} for _, attempt, row in rows]
            ref, rows = next(groups, (0, iter(())))
        yield case_html(cases[index].id, item, own, passed_whole=whole)
