"""The two lines at the top of the Run screen, as styled parts. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from tui_eval.case_names import short_providers
from tui_eval.guard.text import clip, visible
from tui_eval.store.judged_under import other_rules
from tui_eval.store.missing_cases import unread_errors_of
from tui_eval.store.shard_runs import shard_words
from tui_eval.store.summary import judges_of
from tui_eval.store.write_thread import FULL, LEFT_OUT
from tui_eval.tui.state.runs.run_view import NOT_RUN, RunView
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.fitting import cell_len, shorten
from tui_eval.tui.state.text.formatting import Symbols

Parts = list[tuple[str, str]]


def progress_line(
    run: RunView, symbols: Symbols, width: int, whole: Mapping[str, int] | None = None
) -> Parts:
    """State, progress and what became of the attempts; retries, and what waits for a person, with their reason, for
    which everything else makes room. `whole`: the list's cases by status, where it holds more than this run. A run's
    own figures are of attempts, the list's of cases, which is said."""
    detail = next((row.detail for row in run.running() if row.detail), "")
    detail = visible(clip(detail, 60), newlines=False)
    parts: Parts = []
    ways = ((True, 20, detail), (False, 10, detail), (False, 10, detail))
    ways += ((False, 5, detail), (False, 0, detail))
    for words, bar, why in ways if width >= 96 else ways[1:]:
        parts = _progress(run, symbols, whole, words=words, bar=bar)
        if why:
            parts.append(("warn", f" {why}"))
        if sum(cell_len(text) for _, text in parts) <= width:
            break
    return parts


def _progress(
    run: RunView, symbols: Symbols, whole: Mapping[str, int] | None, *, words: bool, bar: int
) -> Parts:
    counts = run.counts
    done, total = counts.done, run.expected
    if whole is not None and run.info.linked_to:
        done, total = run.cases_ended, len(run.cases)
    elif whole is not None:  # of a list that a part runs in again, what has ended of all
        total = sum(whole.values()) + total - counts.total
        done = total - sum(whole.get(status, 0) for status in ("running", "retrying", "waiting", NOT_RUN))
    state = "waiting" if run.waits_for_shards else run.info.state
    style = {"running": "running", "finished": "title", "paused": "warn"}.get(state, "warn")
    parts: Parts = [(style, f"{state:<9} " if bar else f"{state} ")]
    if bar:
        full, empty = symbols.bar(done, total, bar)
        parts += [("bar", full), ("dim", f"{empty} ")]
    parts.append(("text", f"{done:,}/{total:,}" if whole is None else f"{done:,}/{total:,} cases"))
    if whole is not None and (every := sum(whole.values())) > total:
        parts.append(("dim", f"  of {every:,}"))
    for status, number, name in (
        ("passed", counts.passed, "good"),
        ("failed", counts.failed, "bad"),
        ("error", counts.errors, "warn"),
        ("cancelled", counts.cancelled, "dim"),
        ("skipped", counts.skipped, "dim"),
        ("running", counts.running, "running"),
        ("retrying", counts.retrying, "warn"),
    ):
        if whole is not None:
            number = whole.get(status, 0)
        if number or (status in ("passed", "failed") and bar > 5):
            shown = (
                f"{symbols.glyphs[status]} {formatting.outcomes(number, status)}"
                if words
                else f"{symbols.glyphs[status]}{number:,}"
            )
            parts.append((name if number else "dim", f"  {shown}" if bar else f" {shown}"))
    return parts


def figures_line(run: RunView, symbols: Symbols, now: float, width: int, *, alone: bool = True) -> Parts:
    """Rate, tokens, cost, elapsed, left; who is asked, as far as there is room for it.

    Args:
        alone: Whether the list is of this run alone: each agent's passed ones are its attempts' here.
    """
    counts = run.counts
    info = run.info
    parts: Parts = [("text", symbols.dot.join(_taken(run, now)))]
    room = width - cell_len(parts[0][1])

    def add(style: str, text: str, least: int | None = None) -> None:
        """Add what fits whole; what may be cut needs room for `least` cells."""
        nonlocal room
        dot = symbols.dot if any(said for _, said in parts) else ""
        wide = cell_len(text) + len(dot)
        if wide > room:
            if least is None or room < least + len(dot):
                return
            text = shorten(text, room - len(dot))
            wide = room
        parts.append((style, f"{dot}{text}"))
        room -= wide

    judge_cost = round(max(0.0, counts.judge_cost or 0.0), 4) or None
    judges = judges_of(counts.judge_tokens, judge_cost, counts.judge_cached, counts.judge_saved)
    rules, part = other_rules(info), shard_words(info.provenance)
    errors = unread_errors_of(info)
    unread = f"not whole: {errors:,} error{'s' if errors != 1 else ''} in its files" if errors else ""
    note = clip(visible(info.note, newlines=False), 160)
    # What is missing, or wrong, is said before what judges took, and that before who is asked.
    rest = room - sum(cell_len(text) + len(symbols.dot) for text in (rules, part, unread, note) if text)
    forms = (judges, judges_of(None, judge_cost))
    fitting = next((form for form in forms if form and cell_len(form) + len(symbols.dot) <= rest), "")
    if fitting:
        add("text", fitting)
    if rules:
        add("note", rules)
    if part:
        add("text", part)
    if unread:
        add("error", unread, 9)
    if info.place and not info.note.startswith(f"{info.place}: "):  # why a place was lost names it
        add("text", visible(clip(info.place, 60), newlines=False), 8)
    if run.trouble and run.active:
        add("warn", _waiting(run.trouble), 9)
    if note:
        add("warn", note, 12)
    told = short_providers(info.agents) if len(info.agents) > 1 else info.agents
    agents = visible(clip(", ".join(told), 60), newlines=False)
    if info.scripted:
        add("warn", "scripted agent" if len(info.agents) < 2 else "scripted agents")
    by_agent = _by_agent(run, symbols) if alone else ""
    if by_agent and cell_len(by_agent) + len(symbols.dot) <= room:
        add("dim", by_agent)
    elif agents:
        add("dim", agents, 10)
    if info.linked_to:
        add("dim", f"adds to {info.linked_to}")
    return parts


def _taken(run: RunView, now: float) -> list[str]:
    """What a run has taken so far: tokens, cost, time, and how long it will go on."""
    counts, info = run.counts, run.info
    facts: list[str] = []
    # What attempts took that were cut off is in no sum of results.
    unfinished = 0 if run.active else counts.unfinished_tokens
    coming = run.tokens_coming() if run.active else 0
    if counts.tokens or coming or not counts.done:  # many agents report none, which is not zero
        facts.append(f"{'~' * bool(coming)}{counts.tokens - unfinished + coming:,} tokens")
    if unfinished:
        facts.append(f"{unfinished:,} unfinished")
    if counts.cost:
        facts.append(formatting.cost(max(0.0, counts.cost)))
    if counts.cached:
        saved = f" ({formatting.cost(counts.saved)} saved)" if counts.saved > 0 else ""
        facts.append(f"{counts.cached:,} cached{saved}")
    if info.started_at and (info.finished_at or run.active):
        facts.append(formatting.clock(info.elapsed(now)))
    if run.active:
        rate = run.tokens_per_second(now)
        if rate >= 1:
            facts.append(f"~{rate:,.0f} tok/s")
    if info.state == "running":
        left = run.seconds_left(now)
        if left is not None:
            facts.append(f"~{formatting.clock(left)} left")
    return facts


def _by_agent(run: RunView, symbols: Symbols) -> str:
    """Where several are asked, how many of each one's attempts have passed so far: `small ✓7/8, large ✓5/8`."""
    asked = [name for name in run.info.agents if name in run.agents]
    if len(asked) < 2 or len(asked) < len(run.info.agents):
        return ""
    glyph = symbols.glyphs["passed"]
    figures = ((short, *run.agents[name]) for short, name in zip(short_providers(asked), asked, strict=True))
    return ", ".join(
        f"{visible(clip(name, 24), newlines=False)} {glyph}{passed:,}/{done:,}"
        for name, done, passed in figures
    )


def status_words(run: RunView, symbols: Symbols, now: float) -> str:
    """How far a run is, for every screen's last line: `● 36/109 ✓31 ✗5 ~29s L`, the key last that shows it; empty
    where it has ended."""
    if not run.active:
        return ""
    return f"{progress_words(run, symbols, now)} {'P goes on' if run.paused else 'L'}"


def progress_words(run: RunView, symbols: Symbols, now: float) -> str:
    """How far a run at work is, in few words: `● 36/109 ✓31 ✗5 ~29s`; `● starting` while its attempts are made."""
    counts = run.counts
    paused = run.info.state == "paused"
    word = "waiting" if run.waits_for_shards else "paused"
    so_far = f"{counts.done:,}/{run.expected:,}" if run.expected or paused else "starting"
    parts = [f"{word if paused else symbols.glyphs['running']} {so_far}"]
    for status, number in (("passed", counts.passed), ("failed", counts.failed), ("error", counts.errors)):
        if number:
            parts.append(f"{symbols.glyphs[status]}{number:,}")
    left = None if paused else run.seconds_left(now)
    if left is not None:
        parts.append(f"~{formatting.clock(left)}")
    return " ".join(parts)


def summary(run: RunView) -> str:
    """One line about a run that ended: `finished: 8 passed, 2 failed, 3 not run`."""
    counts = run.counts
    never_ran = 0 if run.info.stepped else counts.total - counts.done
    parts = [
        f"{number:,} {name}"
        for name, number in (
            ("passed", counts.passed),
            ("failed", counts.failed),
            ("error" if counts.errors == 1 else "errors", counts.errors),
            ("cancelled", counts.cancelled),
            ("skipped", counts.skipped),
            ("not run", never_ran if counts.done else 0),
        )
        if number
    ]
    return f"{run.info.state}: {', '.join(parts) or 'nothing ran'}"


def _waiting(trouble: str) -> str:
    """What the store cannot write, in the words of its own report."""
    if LEFT_OUT in trouble:
        return "a part of the run could not be kept"
    return f"{'disk full' if FULL in trouble else 'not written'}: results wait in memory"
