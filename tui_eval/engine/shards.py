"""`--shard 3/20`: which part of the cases a run takes, so that twenty machines share them without asking one
another. Where a case goes depends on its id alone: neither on its place nor on the other cases."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from tui_eval.case_names import without_number
from tui_eval.engine.plan import AskedBySuite, without_provider_twins
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingLeft, SelectionError
from tui_eval.formats import format_of
from tui_eval.model import Case
from tui_eval.store.column_names import in_columns
from tui_eval.store.shard_runs import PlannedShard
from tui_eval.suites import identity

MOST = 10_000
"""Shards of one run."""
_SHARD = r"(?a)\s*(\d{1,9})\s*/\s*(\d{1,9})\s*"


class Shard(NamedTuple):
    """Part `number` of `of`, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def read_shard(text: str) -> Shard:
    """A shard as a person writes it.

    Raises:
        SelectionError: it is none.
    """
    found = re.fullmatch(_SHARD, text)
    shard = Shard(int(found[1]), int(found[2])) if found else Shard(0, 0)
    if not 1 <= shard.number <= shard.of <= MOST:
        raise SelectionError(
            f"--shard {text}: expected K/N, the Kth of N parts, K from 1 to N (at most {MOST:,}), for example 3/20"
        )
    return shard


def shard_key(case: Case) -> str:
    """What of a case decides on its shard: its id without its column (its provider and prompt, its
    connection), so that columns that are compared stay together. Repeated cases stay with the first of them."""
    name = without_number(case.case_id)
    if in_columns(case):
        return _without_column(name, case.column or case.agent or "agent", case.prompt)
    if case.connection is not None:
        return name.removesuffix(identity.suffix({"connection": case.connection}))
    return name


def _without_column(case_id: str, provider: str, prompt: str | None) -> str:
    """A case's id without the provider and what follows it: the prompt's label, or what stands for it."""
    bare = identity.ending(provider, None)
    # A person's label of a text file's prompt is all that an id has of `LABEL: FILE: TEXT`.
    parts = (prompt or "").split(": ")
    labels = (": ".join(parts[:count]) for count in range(len(parts), 0, -1))
    for ending in (*(identity.ending(provider, label) for label in labels), bare):
        if case_id.endswith(ending):
            return case_id.removesuffix(ending)
    return case_id.rpartition(f"{bare}::")[0] or case_id


def shard_of(key: str, count: int) -> int:
    """The number, from 1, of the shard of `count` to which a key belongs."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8]) % count + 1


class GroupKey(NamedTuple):
    """What cases that belong together have in common; `joined` where these hand on to one another."""

    text: str
    joined: bool


def group_keys(cases: Iterable[Case]) -> list[GroupKey]:
    """That of each case; they are gone through once, and none is held. Cases that hand on to later ones belong
    together: those of one conversation, and all of a suite that stores outputs; elsewhere the columns of a case."""
    stored: set[str] = set()
    talking: set[str] = set()
    read: list[tuple[str, str, str]] = []
    for case in cases:
        form = format_of(case.format)
        if form.stored_as(case) is not None:
            stored.add(case.suite)
        if form.conversation(case) is not None:
            talking.add(case.suite)
        read.append((case.suite, form.conversation_name(case), shard_key(case)))
    return [
        GroupKey(suite, True)
        if suite in stored
        else GroupKey(f"{suite}\n{conversation}", True)
        if suite in talking
        else GroupKey(own, False)
        for suite, conversation, own in read
    ]


def assigned(cases: Iterable[Case], count: int) -> list[int]:
    """The shard of each case."""
    return [shard_of(key.text, count) for key in group_keys(cases)]


def taken(
    cases: Sequence[Case], shard: Shard, look: Callable[[Case], object]
) -> tuple[list[Case], PlannedShard, list[list[Any]]]:
    """The shard's cases, in their order; what its run remembers of the whole; and the id and shard of every
    case, by which those that are missing later are named. `look` gets each case of the whole. Of `cases` that
    are made when they are asked for, only the shard's own are held."""
    ids: list[str] = []
    contents: list[str] = []

    def noted() -> Iterator[Case]:
        for case in cases:
            ids.append(case.case_id)
            contents.append(case.content_hash)
            look(case)
            yield case

    numbers = assigned(noted(), shard.of)
    places = [place for place, number in enumerate(numbers) if number == shard.number]
    counted = Counter(numbers)
    planned = PlannedShard(
        number=shard.number,
        of=shard.of,
        cases=len(ids),
        content=identity.digest(list(zip(ids, contents, strict=True)), 16),
        sizes=[counted[number] for number in range(1, shard.of + 1)],
        places=sorted(places, key=lambda place: (ids[place], place)),
    )
    return [cases[place] for place in places], planned, [ids, numbers]


def shard_asked(request: RunRequest, text: str) -> Shard:
    """The part of the cases that a request is for, as a person wrote it.

    Raises:
        SelectionError: it cannot be read, or every part would be of another whole.
    """
    if request.changed_only:
        raise SelectionError(
            "--shard with --changed: what changed is known where the runs before are, not to every shard"
        )
    if request.filter_sample is not None and request.filter_sample_seed is None:
        raise SelectionError(
            "--shard with --filter-sample: each shard would draw other cases; give --filter-sample-seed, the same to all"
        )
    return read_shard(text)


def part_of(
    cases: Sequence[Case], request: RunRequest, shard: Shard, asked: AskedBySuite
) -> tuple[list[Case], PlannedShard, list[list[Any]]]:
    """The shard's part of the chosen cases, with what its run remembers of the whole.

    Raises:
        NothingLeft: there is none.
    """
    if request.agents and request.cells is None:
        cases = list(without_provider_twins(cases))
    own, planned, whole = taken(cases, shard, asked.add)
    if cases and not own:
        raise NothingLeft(
            f"shard {shard} holds none of the {len(cases):,} cases: there is nothing to run in it"
        )
    return own, planned, whole
