"""Two runs against each other, case by case: what regressed, what is fixed, and how sure that is.

Pure: takes summaries (`store.summary`), gives values that the command line and the app show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Literal, get_args

import msgspec

from tui_eval.case_names import in_any_column, shared_variant, told_apart
from tui_eval.store.imported.results_entries import case_edited
from tui_eval.store.missing_cases import is_numbered
from tui_eval.store.schema import UNNAMED
from tui_eval.store.summary import OF_TURNS, CaseSummary, per_known, wilson

Change = Literal[
    "regressed", "now an error", "fixed", "an error no more", "flaky", "not run", "new", "gone", "unchanged"
]
CHANGES: tuple[Change, ...] = get_args(Change)


GLYPHS: dict[Change, str] = {
    "regressed": "✗", "now an error": "!", "fixed": "✓", "an error no more": "→", "flaky": "≈", "not run": "–",
    "new": "+", "gone": "−", "unchanged": "·",
}  # fmt: skip
"""Glyph of each change."""
WORDS: dict[Change, str] = {
    "regressed": "passed before, does not pass now",
    "now an error": "failed before, ends in an error now",
    "fixed": "passes now",
    "an error no more": "an error before, fails now",
    "flaky": "the same outcome, but passes only sometimes",
    "not run": "in the second, too, but without an outcome there: it was not run to its end, or may be what that lacks",
    "new": "only in the second",
    "gone": "only in the first",
    "unchanged": "the same outcome",
}
"""What each change means."""
COLUMN_WORDS: dict[Change, str] = {
    **WORDS,
    "regressed": "passes with the first, not with the second",
    "now an error": "fails with the first, an error with the second",
    "fixed": "passes with the second, not with the first",
    "an error no more": "an error with the first, fails with the second",
}
"""The same of two agents."""
EDITED = "where the case was edited"
"""Beside a count of changes: that the suite changed, too."""
OF_ANOTHER_KIND: tuple[Change, ...] = ("now an error", "an error no more")
"""Changes between outcomes that are no pass: a judge or a server that died, or came back."""
SURE = 0.05
"""A difference that chance alone gives less often than this is called one."""


class CaseChange(msgspec.Struct):
    """One case in both runs; `before` or `after` is None where a run does not have it.

    `flaky`: its outcome is the same or not, but one of the runs passed it only sometimes, so that the
    difference says little. `p_value` is Fisher's exact test on the attempts of both runs (two-sided);
    None with a single attempt each, where it can say nothing. `answer_differs`: one of the runs has an
    answer that the other has not; None where that is not known (a side is missing, or of an older version).
    `edited`: the case itself was changed in between, so that the agent may be as good or bad as before.
    `mark` tells it from other cases of its suite with the same name, in the words of all lists
    (`case_names.told_apart`); empty where none is needed.
    """

    case_id: str
    name: str
    suite: str
    change: Change
    before: CaseSummary | None
    after: CaseSummary | None
    p_value: float | None = None
    answer_differs: bool | None = None
    mark: str = ""
    edited: bool = False

    @property
    def named(self) -> CaseSummary | None:
        """By what it is named: the second side's, where it is the same test of another column by what both share."""
        one, other = self.after or self.before, self.before
        if one is None or other is None or one.case_id == other.case_id:
            return one
        return msgspec.structs.replace(one, variant=shared_variant(one.variant, other.variant))

    @property
    def only_the_answer(self) -> bool:
        """Whether nothing changed but what was answered."""
        return self.change == "unchanged" and bool(self.answer_differs)


Pair = tuple[float, float]
"""A figure before and after."""


class Usual(msgspec.Struct):
    """What an attempt takes, before and after: means over the cases that both runs have and know it of.

    `latency` in ms, `cost` in USD; None where it is not known of any case on both sides. Answers from the
    cache count with what they took when they were given.
    """

    latency: Pair | None = None
    tokens: Pair | None = None
    cost: Pair | None = None


class RunComparison(msgspec.Struct):
    """The cases by change, worst first, and the runs as wholes.

    `pass_rates` are shares of cases passed with their Wilson 95 % intervals, before and after.
    `p_value` is the exact McNemar test on cases that both runs have (two-sided): how probable at least
    so uneven a split of changed cases is by chance alone. `usual` compares what an attempt takes.
    `rules_differ` says that cases were judged by other rules (`compat`) before than after, in one line; empty
    where none was, or that is not known.
    """

    cases: list[CaseChange]
    pass_rates: tuple[tuple[float, float, float], tuple[float, float, float]]
    p_value: float | None
    usual: Usual = msgspec.field(default_factory=Usual)
    rules_differ: str = ""
    cached: tuple[int, int] = (0, 0)
    """Attempts with answers from the cache, before and after, of the cases that both have."""
    never_ran: int = 0
    """How many cases of the second have no outcome on either side, since they were not run to their end."""
    incomplete: str = ""
    """Which cases the second, a run of what had failed, knows to have never run where these failed; empty: none."""

    def count(self, change: Change) -> int:
        """How many cases changed so."""
        return sum(case.change == change for case in self.cases)

    @property
    def unknown(self) -> int:
        """How many cases did not fail before, and have no outcome after: whether they regressed is not known."""
        passed = sum(case.change == "not run" and _passed(case.before) for case in self.cases)
        return passed + self.never_ran

    @property
    def never_ran_words(self) -> str:
        """How many cases have no outcome on either side; empty where none is so."""
        return f"{self.never_ran:,} not run on either side" if self.never_ran else ""

    @property
    def told(self) -> str:
        """What changed, in a few words, after how many regressed: how many are fixed, and how many that did not pass
        before either did so for another kind of reason; how many of all these were edited."""
        others = [f"{count:,} {name}" for name in OF_ANOTHER_KIND if (count := self.count(name))]
        beside = "others never ran" if self.incomplete else ""
        edited = sum(self.edited(name) for name in ("regressed", "fixed", *OF_ANOTHER_KIND))
        told = ", ".join(
            [f"{self.count('fixed'):,} fixed", *others, *filter(None, [self.never_ran_words, beside])]
        )
        return f"{told} ({edited:,} {EDITED})" if edited else told

    def edited(self, change: Change) -> int:
        """How many of the cases that changed so were edited in between."""
        return sum(case.edited for case in self.cases if case.change == change)

    @property
    def common(self) -> int:
        """How many cases both have."""
        return sum(case.before is not None and case.after is not None for case in self.cases)

    @property
    def nothing_common(self) -> str:
        """Why nothing can be said of a change, in a few words; empty where both have cases."""
        if self.common or not self.cases:
            return ""
        before, after = ({case.case_id for case in self.cases if getattr(case, side) is not None}
                         for side in ("before", "after"))  # fmt: skip
        return "no case in common with the same agent and model" if before & after else "no case in common"

    @property
    def cached_words(self) -> str:
        """How many answers are from the cache, and what is compared of these; empty where none is."""
        if not any(self.cached):
            return ""
        before, after = self.cached
        return f"cached: {before:,} before, {after:,} after, compared by what they took when they were given"

    @property
    def other_answers(self) -> int:
        """How many unchanged cases were answered differently."""
        return sum(case.only_the_answer for case in self.cases)


def chance(p_value: float | None) -> str:
    """What a test says, in words; empty without one."""
    if p_value is None:
        return ""
    if p_value >= SURE:
        return f"may well be chance (p={p_value:.2f})"
    if p_value < 0.0001:
        return "hardly chance (p<0.0001)"
    return f"hardly chance (p={p_value:.{4 if p_value < 0.01 else 2}f})"


def steadiness(one: CaseSummary | None) -> str:
    """Flaky told from broken: only several attempts can tell."""
    if one is None or one.judged < 2:
        return ""
    return "flaky" if one.flaky else "broken" if not one.passed else "steady"


def document(comparison: RunComparison, runs: Sequence[Sequence[str]]) -> dict[str, Any]:
    """A comparison as JSON has it; `runs` are the ids of the runs that count for each side."""
    found = msgspec.to_builtins(comparison)
    found["counts"] = {name: comparison.count(name) for name in CHANGES}
    found["answer_differs"] = comparison.other_answers
    found["runs"] = [list(side) for side in runs]
    return found


def compare(before: Sequence[CaseSummary], after: Sequence[CaseSummary]) -> RunComparison:
    """Join two runs by case id, agent and model; by case id and agent where one of them does not know the
    model; where only one agent each is left, by case id alone (an agent against another), without the agent
    that an id says."""
    key_of = _joined_by(before, after)
    old, new = ({key_of(item): item for item in side if _ran(item)} for side in (before, after))
    waits = _waiting([item for item in after if not _ran(item)], key_of)
    cases = [
        _change(old.get(key), new.get(key), waits=key in old and waits(old[key]))
        for key in dict.fromkeys([*new, *old])
    ]
    _tell_apart(cases)
    cases.sort(key=lambda case: (CHANGES.index(case.change), not case.only_the_answer, -_distance(case)))
    both = [case for case in cases if case.before is not None and case.after is not None]
    lost = sum(_passed(case.before) and not _passed(case.after) for case in both)
    won = sum(_passed(case.after) and not _passed(case.before) for case in both)
    return RunComparison(
        cases=cases,
        pass_rates=(_rate(before), _rate(after)),
        p_value=mcnemar_exact(lost, won) if both else None,
        usual=Usual(_means(both, "duration_ms"), _means(both, "tokens"), _means(both, "price")),
        rules_differ=_rules_differ(both),
        cached=(_cached(case.before for case in both), _cached(case.after for case in both)),
        never_ran=_never_ran(after, old, key_of, any(case.change == "not run" for case in cases)),
    )


def _never_ran(
    after: Iterable[CaseSummary],
    old: Mapping[tuple[str, ...], CaseSummary],
    key_of: Callable[[CaseSummary], tuple[str, ...]],
    not_run: bool,
) -> int:
    """As `RunComparison.never_ran`. `not_run`: there are cases that the other side has; what a merged run lacks without
    knowing which cases these are may be those."""
    left = [item for item in after if not _ran(item) and item.outcome != "skipped"]
    named = {item.case_id for item in old.values()}
    return sum(
        key_of(item) not in old
        and not (item.agent in ("", UNNAMED) and item.case_id in named)
        and not (not_run and is_numbered(item.name))
        for item in left
    )


def _waiting(
    items: Sequence[CaseSummary], key_of: Callable[[CaseSummary], tuple[str, ...]]
) -> Callable[[CaseSummary], bool]:
    """Whether a result of the other side has none on this one, where it was to have one: by what has not run
    here. Of what a merged run lacks it may not know the agents, nor even which cases these are: then it may
    be each that it has not."""
    keys = {key_of(item) for item in items}
    of_anybody = {item.case_id for item in items if item.agent in ("", UNNAMED)}
    any_of_them = any(is_numbered(item.name) for item in items)
    return lambda item: any_of_them or key_of(item) in keys or item.case_id in of_anybody


def _rules_differ(cases: Sequence[CaseChange]) -> str:
    """As `RunComparison.rules_differ`, of the cases that both have."""
    known = [(case.before.compat, case.after.compat) for case in cases if case.before and case.after]
    pairs = Counter(pair for pair in known if all(pair) and pair[0] != pair[1])
    words = [
        f"{was} before, {now} after" + (f" ({count:,} of {len(known):,} cases)" if count < len(known) else "")
        for (was, now), count in pairs.items()
    ]
    return f"compat differs: {'; '.join(words)}: verdicts may differ by that alone" if words else ""


def _tell_apart(cases: Sequence[CaseChange]) -> None:
    """Give cases of one suite with the same name what tells them apart."""
    shown = [one for case in cases if (one := case.named) is not None]
    for case, mark in zip(cases, told_apart(shown), strict=True):
        case.mark = mark


def _cached(items: Iterable[CaseSummary | None]) -> int:
    return sum(item.cached for item in items if item is not None)


def _means(cases: Sequence[CaseChange], name: str) -> Pair | None:
    """Means per attempt of a figure; `duration_ms` is one already, tokens and prices are sums."""
    known: list[Pair] = []
    for case in cases:
        before, after = _figure(case.before, name), _figure(case.after, name)
        if before is not None and after is not None:
            known.append((before, after))
    if not known:
        return None
    return sum(one[0] for one in known) / len(known), sum(one[1] for one in known) / len(known)


def _figure(item: CaseSummary | None, name: str) -> float | None:
    value = getattr(item, name, None)
    if value is None or item is None:
        return None
    if name == "duration_ms":
        return float(value)
    return per_known(value, item.cost_of if name == "price" else item.tokens_of, item.attempts)


_CaseOfAgent = tuple[str, str]


def _known_once(before: Iterable[CaseSummary], after: Iterable[CaseSummary]) -> Set[_CaseOfAgent]:
    """What stands with one model on each side, of which only one side knows it: a results file of promptfoo
    names no model beside a label. That is one column, whatever its model is."""
    models: list[dict[_CaseOfAgent, set[str | None]]] = [{}, {}]
    for side, items in zip(models, (before, after), strict=True):
        for item in items:
            side.setdefault((item.case_id, item.agent), set()).add(item.model)
    first, second = models
    return {
        one
        for one in first.keys() & second.keys()
        if len(first[one]) == len(second[one]) == 1
        and first[one] != second[one]
        and None in first[one] | second[one]
    }


def _column(item: CaseSummary, known_once: Set[_CaseOfAgent]) -> tuple[str, str, str]:
    """The case with its agent and model, by which it is looked for on the other side."""
    model = None if (item.case_id, item.agent) in known_once else item.model
    return item.case_id, item.agent, model or ""


def _joined_by(
    before: Sequence[CaseSummary], after: Sequence[CaseSummary]
) -> Callable[[CaseSummary], tuple[str, ...]]:
    """What two results have in common that are compared."""
    known_once = _known_once(before, after)
    first = [item for item in before if _ran(item)]
    second = [item for item in after if _ran(item)]
    columns = [{(item.agent, item.model) for item in items} for items in (first, second)]
    alone = all(len(column) <= 1 for column in columns) or not (columns[0] & columns[1])

    alone = alone and all(len({_test(item) for item in items}) == len(items) for items in (first, second))

    return lambda item: (_test(item),) if alone else _column(item, known_once)


def _test(item: CaseSummary) -> str:
    return in_any_column(item.case_id, item.agent)


def _change(before: CaseSummary | None, after: CaseSummary | None, *, waits: bool) -> CaseChange:
    """`waits`: it was to be run on the second side, too, and was not."""
    present = after or before
    assert present is not None
    change: Change
    p_value = differs = None
    edited = False
    if before is None or after is None:
        change = "new" if before is None else "not run" if waits else "gone"
    else:
        was, now = _passed(before), _passed(after)
        if before.case_id == after.case_id:  # two columns of a matrix are two cases that nobody edited
            edited = case_edited(before.content_hash, after.content_hash)
        if before.judged > 1 or after.judged > 1:
            p_value = fisher_exact(
                before.passed, before.judged - before.passed, after.passed, after.judged - after.passed
            )
        if was and not now:
            change = "regressed"
        elif now and not was:
            change = "fixed"
        elif before.outcome != after.outcome:
            change = "now an error" if after.outcome == "error" else "an error no more"
        else:
            change = "flaky" if before.flaky or after.flaky else "unchanged"
        of_turns = {one.startswith(OF_TURNS) for one in (*before.answers, *after.answers)}
        if before.answers and after.answers and len(of_turns) == 1:
            differs = before.answers != after.answers
    return CaseChange(
        present.case_id, present.name, present.suite, change, before, after, p_value, differs, edited=edited
    )


def _distance(case: CaseChange) -> float:
    """How far the shares of attempts passed lie apart: what broke wholly stands before what became shaky."""
    if case.before is None or case.after is None:
        return 0.0
    return abs(case.after.pass_rate - case.before.pass_rate)


def _ran(item: CaseSummary) -> bool:
    """Whether it was run to an outcome: what was cancelled says nothing about its agent."""
    return item.outcome is not None and item.outcome not in ("cancelled", "skipped")


def _passed(item: CaseSummary | None) -> bool:
    return item is not None and item.outcome == "passed"


def _rate(items: Sequence[CaseSummary]) -> tuple[float, float, float]:
    ended = [item for item in items if _ran(item)]
    passed = sum(item.outcome == "passed" for item in ended)
    low, high = wilson(passed, len(ended))
    return (passed / len(ended) if ended else 0.0, low, high)


def mcnemar_exact(lost: int, won: int) -> float:
    """Two-sided exact McNemar test on paired outcomes: the binomial probability of a split at least as
    uneven as `lost` to `won` when both are equally likely; 1 where nothing changed."""
    total = lost + won
    if lost == won:
        return 1.0
    fewer = min(lost, won)
    # The terms from the largest down, each from the one before; whole numbers would have thousands of digits.
    term = math.exp(_log_choose(total, fewer) - total * math.log(2))
    tail = 0.0
    for k in range(fewer, -1, -1):
        tail += term
        term *= k / (total - k + 1)
        if term < tail * 1e-17:
            break
    return min(1.0, 2 * tail)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def fisher_exact(passed_a: int, failed_a: int, passed_b: int, failed_b: int) -> float:
    """Two-sided Fisher's exact test on two counts of attempts: the probability, at the same totals, of a
    table at most as likely as this one."""
    total_a, total_b, passed = passed_a + failed_a, passed_b + failed_b, passed_a + passed_b
    whole = math.comb(total_a + total_b, passed)

    def weight(k: int) -> int:
        return math.comb(total_a, k) * math.comb(total_b, passed - k)

    seen = weight(passed_a)
    possible = range(max(0, passed - total_b), min(total_a, passed) + 1)
    return min(1.0, sum(w for w in map(weight, possible) if w <= seen) / whole)
