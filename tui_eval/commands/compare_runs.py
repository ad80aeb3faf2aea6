"""`tui-eval compare RUN RUN`: regressions, fixes, flaky, new and gone cases; exit code 1 on a regression, and where a
case that did not fail before was not run to its end in the second run, or others never ran beside what
it ran again (`--failed`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

from tui_eval.case_names import column_label
from tui_eval.commands.one_run import find_run
from tui_eval.commands.output import (
    EXIT_FAILED,
    EXIT_NOTHING,
    EXIT_OK,
    CommandError,
    counted,
    say,
    say_json,
)
from tui_eval.config.project import find_root
from tui_eval.guard.figures import usd_in_full
from tui_eval.guard.text import clip, visible
from tui_eval.reports.run_comparison import (
    CHANGES,
    EDITED,
    OF_ANOTHER_KIND,
    CaseChange,
    Pair,
    RunComparison,
    compare,
    document,
)
from tui_eval.store.index import Index
from tui_eval.store.linked import lacking_beside, load_together
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import StoreError
from tui_eval.store.summary import CaseSummary, share

LISTED = 10
"""Cases that only one run has, as many as are listed."""
_GLYPHS = {"regressed": "✗ ", "now an error": "! ", "fixed": "✓ ", "an error no more": "→ ", "flaky": "≈ "}


def compare_runs(before: str, after: str | None, agents: Sequence[str], as_json: bool) -> int:
    """Compare two runs (each with the runs that add to it), or two agents of one run, and print what
    changed, worst first.

    Raises:
        CommandError: a run cannot be read, both are one that was named `last`, or the agents are not two of the run's.
    """
    if agents:
        folders = _folders(before, None)
        halves = _columns(_load(folders), agents)
        sides = (folders, folders)
    else:
        sides = (_folders(before, after or "last"), _folders(after or "last", before))
        if "last" in (before, after or "last") and _ids(sides[0]) == _ids(sides[1]):
            why = (
                f"the second run is last where none is named, and {before} is that itself"
                if after is None
                else f"{before} and {after} are the same run"
            )
            raise CommandError(
                f"{why} ({sides[0][0].name}): name another (tui-eval runs), or two agents of it (--agent A --agent B)"
            )
        halves = (_load(sides[0]), _load(sides[1]))
    if not as_json:
        names = _called(dict.fromkeys(folder for side in sides for folder in side))
        for item in (item for half in halves for item in half):
            item.name = names.get(item.case_id, item.name)
    result = compare(*halves)
    result.incomplete = _incomplete(sides[1])
    if as_json:
        say_json(document(result, [[folder.name for folder in side] for side in sides]))
    else:
        if not agents:
            for word, side in zip(("before", "after"), sides, strict=True):
                if len(side) > 1:
                    say(f"{word}: {side[0].name} with {counted(len(side) - 1, 'run')} linked to it")
        say(_text(result))
    if not result.cases or result.nothing_common:
        return EXIT_NOTHING
    return EXIT_FAILED if result.count("regressed") or result.unknown or result.incomplete else EXIT_OK


def _folders(reference: str, other: str | None) -> list[Path]:
    try:
        root, _ = find_root([Path.cwd()])
        return Index(root).counting_folders(
            find_run(reference), find_run(other) if other is not None else None
        )
    except StoreError as error:
        raise CommandError(str(error)) from None


def _ids(folders: Sequence[Path]) -> list[str]:
    """Which runs these are: a copy of a run, and its results file, are that run."""
    found: list[str] = []
    for folder in folders:
        try:
            with closing(RunReader(folder)) as reader:
                found.append(reader.info().id)
        except StoreError as error:
            raise CommandError(str(error)) from None
    return found


def _load(folders: Sequence[Path]) -> list[CaseSummary]:
    try:
        return load_together(folders)
    except StoreError as error:
        raise CommandError(str(error)) from None


def _incomplete(folders: Sequence[Path]) -> str:
    try:
        return lacking_beside(folders)
    except StoreError as error:
        raise CommandError(str(error)) from None


def _called(folders: Iterable[Path]) -> dict[str, str]:
    """What lists call the cases of these runs whose recorded names say too little."""
    found: dict[str, str] = {}
    for folder in folders:
        with closing(RunReader(folder)) as reader:
            found |= reader.called()
    return found


def _columns(cases: Sequence[CaseSummary], agents: Sequence[str]) -> tuple[list[CaseSummary], ...]:
    """The cases of both agents. An agent may be named with its model (`support, gpt-4.1`), or by the model
    alone."""
    known = list(dict.fromkeys((case.agent, case.model) for case in cases))
    halves: list[list[CaseSummary]] = []
    for wanted in agents:
        meant = [
            one for one in known if wanted in (one[0], one[1], f"{one[0]}, {one[1]}", column_label(*one))
        ]
        if len(meant) != 1:
            named = "; ".join(column_label(*one) for one in known)
            problem = (
                "is not one of the run's agents" if not meant else "means more than one of the run's agents"
            )
            raise CommandError(visible(f"--agent {wanted} {problem}; they are: {named}", newlines=False))
        halves.append([case for case in cases if (case.agent, case.model) == meant[0]])
    return tuple(halves)


def _text(result: RunComparison) -> str:
    lines: list[str] = [f"{why}: nothing can be said of a change"] if (why := result.nothing_common) else []
    lines += [rules] if (rules := result.rules_differ) else []
    suites = len({case.suite for case in result.cases}) > 1
    for change in CHANGES:
        members = [case for case in result.cases if case.change == change]
        if not members:
            continue
        edited = f", {count:,} of them {EDITED}" if (count := result.edited(change)) else ""
        if change == "unchanged":
            other = f", {result.other_answers:,} of them with another answer" if result.other_answers else ""
            lines.append(f"unchanged: {len(members):,}{other}{edited}")
            continue
        lines.append(f"{_GLYPHS.get(change, '')}{change}: {len(members):,}{edited}")
        shown = members if change in _GLYPHS else members[:LISTED]
        lines.extend(f"  {_line(case, suites)}" for case in shown)
        if len(members) > len(shown):
            lines.append(f"  and {len(members) - len(shown):,} more; --json lists them all")
    lines += [f"– {words}"] if (words := result.never_ran_words) else []
    lines += [f"– incomplete: {visible(words, newlines=False)}"] if (words := result.incomplete) else []
    (was, low, high), (now, now_low, now_high) = result.pass_rates
    lines.append(
        f"passed before {share(was)} ({share(low)}–{share(high)}), after {share(now)} "
        f"({share(now_low)}–{share(now_high)}), "
        "Wilson 95 %"
    )
    usual = _usual(result)
    if usual:
        lines.append(f"an attempt, where both know it: {usual}")
    lines += [cached] if (cached := result.cached_words) else []
    if result.p_value is not None and (result.count("regressed") or result.count("fixed")):
        lines.append(f"exact McNemar test on cases that changed: p = {result.p_value:.3g}")
    return "\n".join(lines)


def _usual(result: RunComparison) -> str:
    latency = result.usual.latency
    short = latency is not None and min(latency) < 1000
    parts: list[tuple[Pair | None, Callable[[float], str], str]] = [
        (latency, lambda figure: f"{figure / 1000:{'.3f' if short else '.2f'}}", " s"),
        (result.usual.tokens, lambda figure: f"{figure:,.0f}", " tokens"),
        (result.usual.cost, lambda figure: usd_in_full(figure, ""), " USD"),
    ]
    return ", ".join(
        f"{text(pair[0])} → {text(pair[1])}{name}" for pair, text, name in parts if pair is not None
    )


def _line(case: CaseChange, suites: bool) -> str:
    """A case: what became of it, its name, its suite where there are several; below it why it fails now."""
    name = f"{case.name} ({case.mark})" if case.mark else case.name
    shown = [visible(name, newlines=False)]
    if case.before is not None and case.after is not None:
        shown.insert(0, f"{_ratio(case.before)} → {_ratio(case.after)}")
        if case.p_value is not None:
            shown.append(f"p = {case.p_value:.2g}")
    if case.edited:
        shown.append("the case was edited")
    if suites:
        shown.append(f"[{visible(case.suite, newlines=False)}]")
    after = case.after if case.change in ("regressed", *OF_ANOTHER_KIND) else None
    message = (after.cause or after.message) if after is not None else ""
    return "  ".join(shown) + (f"\n      {clip(visible(message, newlines=False), 120)}" if message else "")


def _ratio(item: CaseSummary) -> str:
    return f"{item.passed}/{item.judged}" if item.judged > 1 else str(item.outcome)
