"""What the run of a shard remembers of the whole that it is a part of (`--shard 3/20`), and what a run of
several says of its parts."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.guard import figures, private
from tui_eval.guard.spelling import some_of
from tui_eval.model import decoded
from tui_eval.store import judged_under
from tui_eval.store.schema import NOTED, RunInfo

KEY = "shard"
"""Under which it stands in a run's provenance."""
MERGED = "merged"
"""Under which a run's provenance has the runs that it was merged of."""
GAP = "merged_gap"
"""Under which it has the words of its note that say what it lacks."""
MISSING_OF = "missing_of"
"""Under which one that judges the answers of a merged run again has which run that is, where that lacks cases."""
ASKED = "asked"
"""Under which a results file's provenance has what the run was asked with."""
PATHS = "paths"
"""Under which it has, where it is of a shard or of several, the paths in which the cases of the plan were
looked for."""
GIT = "git"
"""Under which it has the commit that it was of, and whether files were changed since."""
COST_LIMIT = "cost_limit"
"""Under which it has what is known of its cost limit (`CostLimit`)."""
UNFINISHED_COST, UNFINISHED_TOKENS = "unfinished_cost", "unfinished_tokens"
"""Under which it has what went into attempts that an interruption put back (USD, and tokens)."""
DERIVED = "derivedMetrics"
"""Under which it has, by suite, how metrics are derived."""
_NAMED = 4
"""Runs that a run was merged of, that are named."""
_OLD_HOURS = 6.0
"""Without any shard at work, after which those before are thought to be of another batch."""
_NAME = r"(?a)(\d{1,9})/(\d{1,9})"
_MOST = 10_000
"""Shards that are looked through for those that are missing."""
LOOKED_AT = "these are shards that are looked at: run it again where they run, or merge them (tui-eval merge) and run it there"
"""Why nothing is added to a run that is only looked at."""
NOT_NOTED = "these are shards that are looked at, and a note goes with the look: merge them (tui-eval merge), and note it there"
"""Why nothing is noted on one."""


def looked_at_home() -> Path:
    """Where the runs lie as which folders of shards are looked at, and that go with the look."""
    return private.cache_home() / "gathered"


def is_looked_at(folder: Path) -> bool:
    """Whether a run's folder is that of shards which are only looked at: nothing can be added to it."""
    return looked_at_home() in folder.parents


class PlannedShard(msgspec.Struct, omit_defaults=True):
    """Part `number` of `of`, from 1. The whole has `cases` cases, whose ids and content `content` is a hash
    of; `sizes` of them are in each part, and those of this one stand at `places`, from 0, of the whole, in
    the order of their ids. `asked` are the options that say of whom and how often; `columns` says that for
    each suite of the whole, as tui_eval.yaml decides (`AskedBySuite`; what most suites have under no name;
    empty in runs of earlier versions)."""

    number: int
    of: int
    cases: int = 0
    content: str = ""
    sizes: list[int] = []
    places: list[int] = []
    asked: dict[str, Any] = {}
    columns: dict[str, list[list[str]]] = {}

    @property
    def name(self) -> str:
        """As a person writes it."""
        return f"{self.number}/{self.of}"


def shard_of(info: RunInfo) -> PlannedShard | None:
    """The shard that a run is; None where it is none, or what it says of it makes no sense."""
    try:
        shard = msgspec.convert(info.provenance.get(KEY), PlannedShard)
    except msgspec.ValidationError:
        return None
    sound = 1 <= shard.number <= shard.of == len(shard.sizes) and sum(shard.sizes) == shard.cases
    sound = sound and len(shard.places) == len(set(shard.places)) == shard.sizes[shard.number - 1]
    return shard if sound and all(0 <= place < shard.cases for place in shard.places) else None


FAILED = "--failed"
"""What shards of it see as failed is what had failed when each began: those of shards that have ended may
have passed."""
_ASKED = {
    "agents": "--agent", "models": "-m", "attempts": "--attempts", "threshold": "--threshold", "timeout": "--timeout",
    "judge": "--judge", "compat": "--compat", "vars": "--var", "prompt_prefix": "--prompt-prefix",
    "prompt_suffix": "--prompt-suffix", "configs": "-c", "failed_only": FAILED,
}  # fmt: skip


def asked_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a run's options that say of whom its cases are asked, how, and how often, by what a person types."""
    return {
        typed: value
        for name, typed in _ASKED.items()
        if (value := options.get(name)) not in (None, "", [], {}) and value is not False
    }


def asked_otherwise(first: PlannedShard, other: PlannedShard) -> str:
    """A suite of one plan whose cases are asked of others, or another number of times, in words; empty: none is, or
    nobody knows."""
    ours, theirs = first.columns, other.columns
    for suite in sorted({*ours, *theirs} if ours and theirs else (), reverse=True):
        found = [columns.get(suite, columns.get(judged_under.OTHERS, [])) for columns in (ours, theirs)]
        if found[0][:2] == found[1][:2] or any(len(one) < 2 for one in found):
            continue
        named = suite or ("some suites" if len(ours) > 1 or len(theirs) > 1 else "all suites")
        (whom, times), (whom_there, times_there) = (one[:2] for one in found)
        if whom != whom_there:
            one, two = (
                some_of([name for name in names if name not in rest], _NAMED) or "fewer"
                for names, rest in ((whom, whom_there), (whom_there, whom))
            )
            return f"{named} {'is' if suite else 'are'} asked of {one} there and of {two} here"
        return f"attempts of {named} are {' or '.join(times)} there and {' or '.join(times_there)} here"
    return ""


def asked_in(info: RunInfo) -> dict[str, Any] | None:
    """What a run was asked with (`asked_of`): also one that is known from a results file, where that says it (None: it
    does not)."""
    if info.options:
        return asked_of(info.options)
    shard, given = shard_of(info), info.provenance.get(ASKED)
    return shard.asked if shard is not None else given if isinstance(given, dict) else None


def paths_in(info: RunInfo) -> list[str]:
    """The paths from the root in which the cases of a run's plan were looked for; also of one that is known
    from a results file, where that says it (empty: it does not)."""
    given = info.provenance.get(PATHS)
    return [
        path
        for path in (given if isinstance(given, list) else info.paths)
        if isinstance(path, str) and not os.path.isabs(path)
    ]


def options_in(info: RunInfo) -> dict[str, Any]:
    """The options of a run; of one that is known from a results file the numbers among those that it was asked with:
    what else a file from anywhere says was typed is typed by nobody."""
    asked = asked_in(info) or {}
    numbers = {name: asked.get(_ASKED[name]) for name in ("attempts", "threshold", "timeout")}
    return info.options or {
        name: value
        for name, value in numbers.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def merged_of(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The ids of the runs that a run was merged of, each with its part (`3/20`; empty: it is none)."""
    given = provenance.get(MERGED)
    parts = [part for part in (given if isinstance(given, list) else []) if isinstance(part, dict)]
    return [(str(part["id"]), str(part.get("shard") or "")) for part in parts if part.get("id")]


def merged_words(provenance: Mapping[str, Any]) -> str:
    """The first of them by their ids: `ID (1/8), ID (2/8) and 6 more`; empty for a run that is not merged."""
    return some_of([f"{name} ({part})" if part else name for name, part in merged_of(provenance)], _NAMED)


def mending(info: RunInfo) -> str:
    """What a person does about the cases that a merged run lacks: it is no part of anything itself."""
    if (merged := info.provenance.get(MISSING_OF)) and isinstance(merged, str):
        return f"merge all parts of run {merged} anew (tui-eval show {merged}), and judge that run again"
    parts = merged_of(info.provenance)
    names = [found.groups() for _, part in parts if (found := re.fullmatch(_NAME, part))]
    there = {int(number) for number, _ in names}
    of = max((int(total) for _, total in names), default=0)
    missing = [str(n) for n in range(1, min(of, _MOST) + 1) if n not in there]
    if not missing:
        return "go on with its parts where they ran (`tui-eval resume`), and merge them anew; this run is none of them"
    which = f"shard{'s' * (len(missing) > 1)} {some_of(missing, 20)}"
    return (
        f"run {which} with the options of the others (`tui-eval run ... --shard {missing[0]}/{of}`), and merge all shards "
        "anew; this run is none of them"
    )


def shard_words(provenance: Mapping[str, Any]) -> str:
    """`shard 3/20` of a run that is one, `of 8 shards` of one that these were put together to; empty for any other."""
    if parts := merged_of(provenance):
        shards = [part for _, part in parts if part]
        count = len(set(shards)) if len(shards) == len(parts) else len(parts)
        return f"of {count:,} {'shard' if len(shards) == len(parts) else 'run'}{'s' * (count > 1)}"
    given = provenance.get(KEY)
    if not isinstance(given, dict):
        return ""
    number, of = given.get("number"), given.get("of")
    return f"shard {number}/{of}" if isinstance(number, int) and isinstance(of, int) else ""


def without_gap(info: RunInfo) -> str:
    """What a run's note says beside what a merged run lacks."""
    gap = str(info.provenance.get(GAP, ""))[:1000]
    return info.note.removeprefix(gap).removeprefix("; ") if gap else info.note


# -- What the runs of shards say of themselves, of all of them.


class CostLimit(msgspec.Struct, omit_defaults=True):
    """A run's cost limit of `usd`: `spent` where it was reached (USD), of how many answers, and of how many
    of judges, no cost is known; `said` is what the run's note says of that."""

    usd: float
    spent: float | None = None
    answers: int = 0
    judges: int = 0
    said: list[str] = []

    @property
    def reached(self) -> str:
        """That it was reached, in words; empty where it was not."""
        return (
            ""
            if self.spent is None
            else f"the cost limit of {self.usd:g} USD is reached ({figures.usd(self.spent, '')})"
        )

    @property
    def uncounted(self) -> str:
        """What it did not count, in words."""
        counts = (self.answers, ""), (self.judges, " of judges")
        told = [f"{count:,} answer{'s' * (count > 1)}{whose}" for count, whose in counts if count]
        if not told:
            return ""
        return f"the cost of {' and '.join(told)} is unknown: the cost limit of {self.usd:g} USD did not count that"


def _cost_limit(info: RunInfo) -> CostLimit | None:
    try:
        return msgspec.convert(info.provenance.get(COST_LIMIT), CostLimit)
    except msgspec.ValidationError:
        return None


def notes_of_parts(infos: Sequence[RunInfo]) -> list[str]:
    """What the notes of runs say, beside what a merged one of them lacks: what several say stands once, with how many
    do; of their cost limits the sums."""
    told: list[str] = []
    limits: dict[float, list[CostLimit]] = {}
    for info in infos:
        note = without_gap(info)
        if (limit := _cost_limit(info)) is not None:
            limits.setdefault(limit.usd, []).append(limit)
            for said in limit.said:
                note = "; ".join(filter(None, (one.strip("; ") for one in note.split(said) if said)))
        told.append(note)
    notes = _once(told)
    for usd, own in sorted(limits.items()):
        ended = [one for one in own if one.spent is not None]
        if len(own) > 1 and ended:
            spent = figures.total_amount([one.spent for one in ended], "cost of the parts") or 0.0
            which = (
                "each part"
                if len(ended) == len(own) == len(infos)
                else f"{len(ended):,} of {len(infos):,} parts"
            )
            notes.append(f"the cost limit of {usd:g} USD is reached in {which} ({figures.usd(spent, '')})")
        notes += filter(None, [*(one.reached for one in ended if len(own) == 1), _sum_of(usd, own).uncounted])
    return notes


def noted_of_parts(infos: Iterable[RunInfo]) -> list[str]:
    """What the notes of runs say for good (`NOTED`), in the same way: not why they were stopped, nor their limits."""
    return _once(line for info in infos for line in noted_in(info))


def noted_in(info: RunInfo) -> list[str]:
    """What the note of a run says for good."""
    kept = info.provenance.get(NOTED)
    return [line for line in kept if isinstance(line, str)] if isinstance(kept, list) else []


def counts_in(info: RunInfo, name: str) -> list[int]:
    """The numbers that a run's provenance lists under a name."""
    kept = info.provenance.get(name)
    return [count for count in kept if isinstance(count, int)] if isinstance(kept, list) else []


def _once(notes: Iterable[str]) -> list[str]:
    counts = Counter(filter(None, notes))
    return [f"{note} ({count:,} parts)" if count > 1 else note for note, count in sorted(counts.items())]


def _sum_of(usd: float, limits: Iterable[CostLimit]) -> CostLimit:
    both = CostLimit(usd)
    for one in limits:
        both.answers, both.judges = both.answers + one.answers, both.judges + one.judges
    return both


def provenance_of_parts(infos: Sequence[RunInfo]) -> dict[str, Any]:
    """Where the results of several runs come from, as far as one run can say it: with what they differ in. A file or an
    agent that was another one in another part is none that is known."""
    found: dict[str, Any] = {}
    for name in ("tui_eval", "python", "platform"):
        if words := list(dict.fromkeys(str(one.provenance[name]) for one in infos if name in one.provenance)):
            found[name] = ", ".join(words)
    for name, other in (("agents", None), ("files", ""), (judged_under.FILE_SETS, "")):
        joined: dict[str, Any] = {}
        for key, mark in (item for info in infos for item in _mapping(info, name).items()):
            joined[key] = mark if joined.get(key, mark) == mark else other
        found[name] = {key: joined[key] for key in sorted(joined) if joined[key] is not None}
    lists = (info.provenance.get(judged_under.REWRITTEN) for info in infos)
    if written := sorted({name for one in lists if isinstance(one, list) for name in map(str, one)}):
        found[judged_under.REWRITTEN] = written
    if paths := list(dict.fromkeys(path for info in infos for path in paths_in(info))):
        found[PATHS] = paths
    if derived := {suite: own for info in infos for suite, own in _mapping(info, DERIVED).items()}:
        found[DERIVED] = derived
    if any(info.provenance.get("too_many_files") for info in infos):
        found["too_many_files"] = True
    for info in infos:
        add_unfinished(found, *unfinished_in(info))
    states = [_mapping(info, GIT) for info in infos]
    commits = {str(one.get("commit") or "") for one in states}
    if commits == {""}:
        return {**found, GIT: None}
    changes = {one.get("dirty") for one in states}
    dirty = True if True in changes else None if None in changes else False
    if len(commits) == 1:
        return {**found, GIT: {"commit": commits.pop(), "dirty": dirty}}
    return {**found, GIT: {"commit": None, "dirty": dirty, "commits": sorted(filter(None, commits))}}


def _mapping(info: RunInfo, name: str) -> Mapping[str, Any]:
    given = info.provenance.get(name)
    return given if isinstance(given, dict) else {}


def commit_words(provenance: Mapping[str, Any]) -> str:
    """The commit that a run was of, and whether files were changed since; those of its parts. Empty: nothing
    is known."""
    git = provenance.get(GIT)
    if not isinstance(git, dict):
        return ""
    commits = git.get("commits")
    names = [git.get("commit"), *(commits if isinstance(commits, list) else [])]
    shown = some_of([str(one)[:12] for one in names if one], _NAMED)
    return f"{shown}{' with changes' if git.get('dirty') else ''}" if shown else ""


def commits_differ(infos: Iterable[tuple[str, RunInfo]]) -> str:
    """That parts, by their names, are of other commits, or of files that were changed since, in words; empty:
    they are not."""
    states: dict[str, list[str]] = {}
    for name, info in infos:
        words = commit_words(info.provenance) or "none that is known"
        states.setdefault(words, []).append(name)
    if len(states) < 2:
        return ""
    told = "; ".join(f"{words}: {some_of(names, _NAMED)}" for words, names in list(states.items())[:_NAMED])
    return f"the parts are of different commits ({told})"


def of_an_older_batch(infos: Iterable[RunInfo]) -> str:
    """That some shards were run long before others, or before others that had ended were run again, in words; empty
    where they seem to be of one batch. A shard that was started again since it had not ended is none of that."""
    newest: dict[int, RunInfo] = {}
    again: list[tuple[int, RunInfo]] = []
    of: dict[int, list[RunInfo]] = {}
    for info in sorted(infos, key=lambda one: one.started_at):
        if (shard := shard_of(info)) is not None:
            newest[shard.number] = info
            of.setdefault(shard.number, []).append(info)
    for number, runs in of.items():
        if any(
            _ended(one) and one.state == "finished" and _ended(one) <= runs[-1].started_at
            for one in runs[:-1]
        ):
            again.append((number, runs[-1]))
    if again:
        began = min(info.started_at for _, info in again)
        old = [number for number, info in newest.items() if _ended(info) and _ended(info) <= began]
        if old:
            others = _shards([number for number, _ in again])
            return (
                f"{_shards(old)} ended before {others} had ended and was run again: an older batch? Merge each batch's "
                "shards alone"
            )
    by_time = sorted(newest.items(), key=lambda one: one[1].started_at)
    last = 0.0
    for place, (_, info) in enumerate(by_time):
        hours = (info.started_at - last) / 3600
        if place and last and hours > _OLD_HOURS:
            old = [number for number, _ in by_time[:place]]
            return f"{_shards(old)} ended {hours:,.0f} hours before the others began: an older batch?"
        last = max(last, _ended(info) or info.started_at)
    return ""


def _ended(info: RunInfo) -> float:
    return info.finished_at or 0.0


def _shards(numbers: Iterable[int]) -> str:
    told = [str(number) for number in sorted(numbers)]
    return f"shard{'s' * (len(told) > 1)} {some_of(told, 10)}"


decoded(PlannedShard)


def unfinished_in(info: RunInfo) -> tuple[int, float]:
    """Tokens and USD that went into attempts which were put back, as far as they are known: they are in no result."""
    tokens, cost = (info.provenance.get(name) for name in (UNFINISHED_TOKENS, UNFINISHED_COST))
    return figures.count(tokens, "tokens") or 0, figures.amount(cost, "cost") or 0.0


def add_unfinished(provenance: dict[str, Any], tokens: int, cost: float) -> None:
    """Add what went into more of them."""
    for name, more in ((UNFINISHED_TOKENS, tokens), (UNFINISHED_COST, cost)):
        kept = provenance.get(name)
        if more:
            provenance[name] = more + (kept if isinstance(kept, int | float) else 0)
