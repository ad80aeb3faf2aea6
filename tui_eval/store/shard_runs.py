"""What the run of a shard remembers of the whole that it is a part of (`--shard 3/20`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.guard import private
from tui_eval.guard.spelling import some_of
from tui_eval.model import decoded
from tui_eval.store.schema import RunInfo

KEY = "shard"
"""Under which it stands in a run's provenance."""
MERGED = "merged"
"""Under which a run's provenance has the runs that it was merged of."""
GAP = "merged_gap"
"""Under which it has the words of its note that say what it lacks."""
ASKED = "asked"
"""Under which a results file's provenance has what the run was asked with."""
_NAMED = 4
"""Runs that a run was merged of, that are named."""
_NAME = re.compile(r"(\d{1,9})/(\d{1,9})", re.ASCII)
_MOST = 10_000
"""Shards that are looked through for those that are missing."""
LOOKED_AT = "these are shards that are looked at: run it again where they run, or merge them (tui-eval merge) and run it there"
"""Why nothing is added to a run that is only looked at."""


def looked_at_home() -> Path:
    """Where the runs lie as which folders of shards are looked at, and that go with the look."""
    return private.cache_home() / "gathered"


def is_looked_at(folder: Path) -> bool:
    """Whether a run's folder is that of shards which are only looked at: nothing can be added to it."""
    return looked_at_home() in folder.parents


class PlannedShard(msgspec.Struct, omit_defaults=True):
    """Part `number` of `of`, from 1. The whole has `cases` cases, whose ids and content `content` is a hash of;
    `sizes` of them are in each part, and those of this one stand at `places`, from 0, of the whole, in the order of their ids. `asked` are the
    options that say of whom and how often."""

    number: int
    of: int
    cases: int = 0
    content: str = ""
    sizes: list[int] = []
    places: list[int] = []
    asked: dict[str, Any] = {}

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
"""What shards of it see as failed is what had failed when each began: those of shards that have ended may have passed."""
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


def asked_in(info: RunInfo) -> dict[str, Any] | None:
    """What a run was asked with (`asked_of`): also one that is known from a results file, where that says it (None: it
    does not)."""
    if info.options:
        return asked_of(info.options)
    shard, given = shard_of(info), info.provenance.get(ASKED)
    return shard.asked if shard is not None else given if isinstance(given, dict) else None


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
    parts = merged_of(info.provenance)
    names = [found.groups() for _, part in parts if (found := _NAME.fullmatch(part))]
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
        kind = "shard" if all(part for _, part in parts) else "run"
        return f"of {len(parts):,} {kind}{'s' * (len(parts) > 1)}"
    given = provenance.get(KEY)
    if not isinstance(given, dict):
        return ""
    number, of = given.get("number"), given.get("of")
    return f"shard {number}/{of}" if isinstance(number, int) and isinstance(of, int) else ""


decoded(PlannedShard)
