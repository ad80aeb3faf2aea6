"""Which shard a case is in: by its id alone, its columns together."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tui_eval.config.project import Config
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import SelectionError
from tui_eval.engine.shards import Shard, assigned, read_shard, shard_key, shard_of, taken
from tui_eval.formats import reading
from tui_eval.formats.reading import SuiteCache
from tui_eval.guard.trust import Trust
from tui_eval.model import Case, Suite
from tui_eval.store.reader import RunReader
from tui_eval.store.schema import RunInfo
from tui_eval.store.shard_runs import shard_of as shard_of_run
from tui_eval.store.shard_runs import shard_words


def case(name: str, **more: Any) -> Case:
    return Case(f"s.yaml::{name}", name, "s.yaml", more.pop("format", "start_to_agent"), **more)


@pytest.mark.parametrize(
    ("text", "shard"), [("3/20", (3, 20)), ("1/1", (1, 1)), ("20/20", (20, 20)), (" 3 / 20 ", (3, 20)), ("03/20", (3, 20))]
)  # fmt: skip
def test_a_shard_is_read(text: str, shard: tuple[int, int]) -> None:
    assert read_shard(text) == shard


@pytest.mark.parametrize(
    "text",
    [
        "0/20",
        "21/20",
        "3",
        "3/",
        "/20",
        "a/b",
        "",
        "-1/20",
        "3/0",
        "0/0",
        "1/10001",
        "1/20/3",
        "1.5/20",
        "٣/٢٠",
    ],
)
def test_a_shard_that_is_none_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(SelectionError) as refused:
        read_shard(text)
    assert f"--shard {text}: expected K/N" in str(refused.value) and "\n" not in str(refused.value)


def test_the_shard_of_a_case_is_the_same_on_every_machine_and_in_every_version() -> None:
    """Recorded: shards of different machines are put together, and those of yesterday with today's."""
    found = [shard_of(f"evals/suite.yaml::case {n}", 20) for n in range(8)]
    assert found == RECORDED


RECORDED = [16, 19, 8, 12, 1, 20, 4, 20]


def test_every_case_is_in_one_shard_whatever_stands_beside_it() -> None:
    cases = [case(f"case {n}") for n in range(400)]
    whole = dict(zip((one.case_id for one in cases), assigned(cases, 7), strict=True))
    some = cases[::-3]
    assert assigned(some, 7) == [whole[one.case_id] for one in some]
    counts = Counter(whole.values())
    assert sorted(counts) == list(range(1, 8)) and min(counts.values()) > 30


def test_repeated_cases_stay_with_the_first_of_them() -> None:
    assert shard_key(case("a#2")) == shard_key(case("a#13")) == shard_key(case("a"))


PROMPTFOO = """\
prompts: ['tell {{a}}', 'say {{a}}', {id: 'file://long::name.txt', label: 'x::echo::y'}]
providers: [echo, {id: echo, label: 'second::one'}]
tests:
  - {vars: {a: one}}
  - {vars: {a: one}}
  - {description: 'named::so', vars: {a: [two, three]}}
  - {description: own, provider: {id: echo, label: mine}, vars: {a: four}}
"""


def loaded(folder: Path, name: str, text: str) -> list[Case]:
    (folder / name).write_text(text, "utf-8")
    (folder / "long::name.txt").write_text("{{a}}", "utf-8")
    return list(reading.load(folder / name, Config(root=folder), Trust(granted=True)).cases)


def test_all_columns_of_a_promptfoo_test_are_in_one_shard(tmp_path: Path) -> None:
    cases = loaded(tmp_path, "promptfooconfig.yaml", PROMPTFOO)
    keys: dict[int, set[str]] = {}
    for one in cases:
        keys.setdefault(one.test_number, set()).add(shard_key(one))
    assert len(cases) == 30 and all(len(own) == 1 for own in keys.values())
    # the two that are the same stay together, the others are cases of their own
    assert len(set.union(*keys.values())) == 4


def test_all_connections_of_a_neuro_san_case_are_in_one_shard(tmp_path: Path) -> None:
    text = "{agent: a, connections: [http, direct], interactions: [{text: hi, response: {text: {keywords: [x]}}}]}"
    cases = loaded(tmp_path, "one.hocon", text)
    assert len(cases) == 2 and len({shard_key(one) for one in cases}) == 1


def test_rows_that_hand_on_to_later_rows_are_in_one_shard() -> None:
    def row(number: int, **more: Any) -> Case:
        turns = more.pop("turns", [])
        return case(f"r{number}", format="promptfoo", turns=turns, **more)

    stored = [row(n, options={"storeOutputAs": "x"} if n == 3 else {}) for n in range(40)]
    assert len(set(assigned(stored, 9))) == 1
    from tui_eval.model import Turn

    talk = [
        row(n, metadata={"conversationId": n % 4}, turns=[Turn("{{_conversation}}")], order=n)
        for n in range(40)
    ]
    found = assigned(talk, 9)
    assert [found[n] == found[n % 4] for n in range(40)] == [True] * 40 and len(set(found)) > 1


def test_a_shard_remembers_the_whole() -> None:
    cases = [case(f"case {n}", content_hash=str(n)) for n in range(50)]
    parts = [taken(cases, Shard(number, 3), str) for number in (1, 2, 3)]
    assert sorted(one.case_id for own, *_ in parts for one in own) == sorted(one.case_id for one in cases)
    planned = [one for _, one, _ in parts]
    assert {(one.content, one.cases, tuple(one.sizes)) for one in planned} == {
        (planned[0].content, 50, tuple(len(own) for own, *_ in parts))
    }
    assert [cases[place] for place in sorted(planned[1].places)] == parts[1][0]
    assert [cases[place].case_id for place in planned[1].places] == sorted(one.case_id for one in parts[1][0])
    changed = [*cases[:-1], case("case 49", content_hash="edited")]
    assert taken(changed, Shard(1, 3), str)[1].content != planned[0].content


class MadeWhenAsked(Sequence[Case]):
    """So many cases, each made anew each time, as those of a table are; `most` of them were there at once."""

    Tracked: Any = msgspec.defstruct("Tracked", [], bases=(Case,), gc=True, weakref=True)

    def __init__(self, count: int) -> None:
        self._count = count
        self._there = 0
        self.most = 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, place: Any) -> Case:
        if not 0 <= place < self._count:
            raise IndexError(place)
        made = self.Tracked(
            f"s.yaml::case {place}", f"case {place}", "s.yaml", "start_to_agent", agent="echo"
        )
        weakref.finalize(made, self._gone)
        self._there += 1
        self.most = max(self.most, self._there)
        return made

    def _gone(self) -> None:
        self._there -= 1


def test_of_a_large_table_only_the_cases_of_the_shard_are_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = MadeWhenAsked(1_000)
    monkeypatch.setattr(
        SuiteCache, "load", lambda *_: [Suite(path="s.yaml", format="start_to_agent", cases=cases)]
    )
    active = prepare(RunRequest(paths=[str(tmp_path)], shard="3/20"), config=Config(root=tmp_path))
    assert active.writer is not None
    active.writer.close()
    with closing(RunReader(active.writer.folder)) as reader:
        ids, numbers = reader.whole_plan()
    own = [case_id for case_id, number in zip(ids, numbers, strict=True) if number == 3]
    assert len(ids) == 1_000 and [job.case.case_id for job in active.jobs] == own
    assert cases.most <= len(own) + 3


@pytest.mark.parametrize(
    "said",
    [
        None, 3, {}, {"number": 4, "of": 3, "cases": 0, "sizes": [0, 0, 0]},
        {"number": 1, "of": 2, "cases": 2, "sizes": [1, 1], "places": [7]},
        {"number": 1, "of": 2, "cases": 2, "sizes": [1, 2], "places": [0]},
        {"number": 1, "of": 2, "cases": 2, "sizes": [2, 0], "places": [0, 0]},
    ],
)  # fmt: skip
def test_what_a_folder_says_of_its_shard_counts_only_where_it_makes_sense(said: Any) -> None:
    assert shard_of_run(RunInfo(id="x", provenance={"shard": said})) is None


def test_a_run_says_which_shard_it_is() -> None:
    assert shard_words({"shard": {"number": 3, "of": 20}}) == "shard 3/20"
    assert shard_words({}) == shard_words({"shard": "3/20"}) == ""
