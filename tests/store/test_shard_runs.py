"""What a run of several parts says of them: what they differ in, and the sums of what they say themselves."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tui_eval.store import judged_under, shard_runs
from tui_eval.store.schema import RunInfo
from tui_eval.store.shard_runs import COST_LIMIT, KEY, MERGED, CostLimit, PlannedShard

HOUR = 3600.0


def part(number: int, began: float = 0.0, of: int = 4, state: str = "finished", **provenance: Any) -> RunInfo:
    shard = PlannedShard(number, of, of, "", [1] * of, [number - 1])
    info = RunInfo(f"run-{number}-{began:g}", started_at=1e9 + began, finished_at=1e9 + began + 60)
    info.state = state  # type: ignore[assignment]
    info.provenance = {KEY: msgspec.to_builtins(shard), **provenance}
    return info


def test_the_commit_of_parts_is_claimed_only_where_it_is_that_of_all() -> None:
    def told(*git: tuple[str, bool | None] | None) -> tuple[str, str]:
        infos = [
            part(number, git=one and {"commit": one[0] * 40, "dirty": one[1]})
            for number, one in enumerate(git, 1)
        ]
        joined = shard_runs.provenance_of_parts(infos)
        names = [(f"{number}/4", info) for number, info in enumerate(infos, 1)]
        return shard_runs.commit_words(joined), shard_runs.commits_differ(names)

    a, b = "a" * 12, "b" * 12
    assert told(("a", False), ("a", False)) == (a, "")
    assert told(None, None) == ("", "")
    assert told(("a", False), ("b", True)) == (
        f"{a}, {b} with changes", f"the parts are of different commits ({a}: 1/4; {b} with changes: 2/4)",
    )  # fmt: skip
    assert told(("a", False), ("a", True))[0] == f"{a} with changes"
    assert "none that is known: 2/4" in told(("a", False), None)[1]
    states = [part(n, git={"commit": one * 40, "dirty": False}) for n, one in ((1, "a"), (2, "b"))]
    assert shard_runs.provenance_of_parts(states)["git"]["commit"] is None


def test_a_file_or_an_agent_that_was_another_in_another_part_is_not_known() -> None:
    """`--changed` took the last part's for all: a case that passed with the file of before was not run again."""
    one = part(
        1, files={"d.csv": "old", "e.csv": "same"}, agents={"a": {"config": "1"}, "b": {}}, python="3.11.7"
    )
    two = part(2, files={"d.csv": "new", "e.csv": "same"}, agents={"a": {"config": "2"}}, python="3.12.1")
    three = part(3, files={"d.csv": "new"}, too_many_files=True)
    found = shard_runs.provenance_of_parts([one, two, three])
    assert found["files"] == {"d.csv": "", "e.csv": "same"} and found["too_many_files"]
    assert found["agents"] == {"b": {}} and found["python"] == "3.11.7, 3.12.1"


def test_the_settings_of_suites_are_known_though_each_part_has_other_suites() -> None:
    """Each lists the exceptions among its own suites: none was known as soon as these differed."""

    def kept(**suites: list[str]) -> RunInfo:
        return RunInfo("r", provenance={judged_under.SETTINGS: {"suites": judged_under.most_once(suites)}})

    plain, nao = ["rules", "judge"], ["nao", "judge"]
    one, two = kept(a=plain, b=plain, q=nao), kept(c=plain, p=nao, q=nao)
    joined = judged_under.settings_of_parts([(one, "abq"), (two, "cpq")])
    assert {name: joined["suites"].get(name, joined["suites"][""]) for name in "abcpq"} == {
        "a": plain, "b": plain, "c": plain, "p": nao, "q": nao,
    }  # fmt: skip
    assert not judged_under.settings_of_parts([(one, "abq"), (kept(b=nao), "b")])
    assert not judged_under.settings_of_parts([(one, "abq"), (RunInfo("r"), "c")])


def test_notes_are_added_up() -> None:
    def limited(number: int, spent: float | None, answers: int, more: str = "") -> RunInfo:
        limit = CostLimit(5.0, spent, answers, 1)
        limit.said = [one for one in (limit.reached, limit.uncounted) if one]
        info = part(number, **{COST_LIMIT: msgspec.to_builtins(limit)})
        info.note = "; ".join([*limit.said[:-1], *filter(None, [more]), limit.said[-1]])
        return info

    notes = shard_runs.notes_of_parts([limited(1, None, 1), limited(2, 5.5, 1), limited(3, 6, 5, "a hook")])
    assert notes == [
        "a hook",
        "the cost limit of 5 USD is reached in 2 of 3 parts (11.5000)",
        "the cost of 7 answers and 3 answers of judges is unknown: the cost limit of 5 USD did not count that",
    ]
    alone = limited(1, 5.5, 2)
    assert "; ".join(shard_runs.notes_of_parts([alone])) == alone.note
    said = [part(number) for number in (1, 2, 3)]
    said[0].note = said[2].note = "stopped"
    assert shard_runs.notes_of_parts(said) == ["stopped (2 parts)"]


def test_how_many_shards_there_are_is_no_count_of_runs() -> None:
    def words(*names: str | None) -> str:
        return shard_runs.shard_words({MERGED: [{"id": str(n), "shard": one} for n, one in enumerate(names)]})

    assert words("1/2", "2/2", "1/2") == "of 2 shards"
    assert words("1/1", "1/1") == "of 1 shard"
    assert words(None, "1/2", "1/2") == "of 3 runs"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([part(1), part(2, 30), part(3, 60), part(4, 5 * HOUR)], ""),
        ([part(n) for n in (1, 2, 3, 4)] + [part(n, 900) for n in (1, 2, 3)], "shard 4 ended before shards 1, 2, 3"),
        ([part(1), part(2, state="interrupted"), part(2, 900)], ""),
        ([part(1, 20 * HOUR), part(2), part(3, 20 * HOUR)], "shard 2 ended 20 hours before the others began"),
        ([part(n) for n in (1, 2)] + [part(n, 900) for n in (1, 2)], ""),
        ([RunInfo("a", started_at=1.0), RunInfo("b", started_at=1e9)], ""),
    ],
)  # fmt: skip
def test_a_shard_of_an_older_batch_is_named(parts: list[RunInfo], said: str) -> None:
    found = shard_runs.of_an_older_batch(parts)
    assert found.startswith(said) and bool(found) == bool(said)
