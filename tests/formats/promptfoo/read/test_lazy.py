"""Cases of large tables: the same as if they were made at once, and only made when asked for."""

from __future__ import annotations

import csv
import io
import random
from pathlib import Path

import msgspec
import pytest

from tui_eval.config.project import Config, SuiteRule
from tui_eval.formats import reading
from tui_eval.formats.promptfoo.read import suite_cases as module
from tui_eval.formats.promptfoo.read.suite_cases import LazyCases
from tui_eval.guard.trust import Trust
from tui_eval.model import Suite

CONFIG = """
prompts: [{raw: 'A {{q}}', label: A}, 'B {{q}} {{d}}']
providers: [echo, echo, {id: echo, label: Two}]
defaultTest: {vars: {d: default}, metadata: {m: 1}, assert: [{type: contains, value: a}]}
tests:
  - vars: {q: first, e: ''}
  - file://t.csv
  - vars: {q: [last, q1]}
"""


def table(seed: int, size: int) -> str:
    """Rows with repeated vars and descriptions, cells of several lines, special columns, bad cells."""
    chance = random.Random(seed)
    out = io.StringIO()
    write = csv.writer(out).writerow
    write(["q", "__description", "__expected", "__metadata:tags[]", "__threshold", "e", "__prefix"])
    for _ in range(size):
        write(
            [
                f"q{chance.randrange(size // 2)}" + chance.choice(["", "", "\nline", "\r\nx"]),
                chance.choice(["", "", " ", f"d{chance.randrange(5)}"]),
                chance.choice(["", "contains: x", 'contains-any: "a" b', 'icontains-all: "a", b']),
                chance.choice(["", "a,b"]),
                chance.choice(["", "0.5", "x"]),
                chance.choice(["", "e"]),
                "P",
            ]
        )
    return out.getvalue()


def loaded(folder: Path, compat: str | None = None) -> Suite:
    rules = [SuiteRule(path="**", agent="mine", compat=compat)]  # type: ignore[arg-type]
    return reading.load(folder / "promptfooconfig.yaml", Config(root=folder, suites=rules), Trust())


@pytest.mark.parametrize("seed", range(4))
def test_lazy_and_eager_cases_are_equal(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(CONFIG)
    (tmp_path / "t.csv").write_bytes(table(seed, 60).encode())
    eager = loaded(tmp_path)
    assert isinstance(eager.cases, list)
    monkeypatch.setattr(module, "SMALLEST_LAZY", 2)
    lazy = loaded(tmp_path)
    assert isinstance(lazy.cases, LazyCases)
    assert len(lazy.cases) == len(eager.cases)
    assert lazy.cases.ids() == [case.case_id for case in eager.cases]
    assert len(set(lazy.cases.ids())) == len(eager.cases)
    assert [msgspec.to_builtins(c) for c in lazy.cases] == [msgspec.to_builtins(c) for c in eager.cases]
    assert [str(p) for p in lazy.problems] == [str(p) for p in eager.problems]
    for place in (0, 5, 7, 100, -1, -7, len(eager.cases) - 1):
        assert msgspec.to_builtins(lazy.cases[place]) == msgspec.to_builtins(eager.cases[place])
    assert [c.case_id for c in lazy.cases[4:40]] == [c.case_id for c in eager.cases[4:40]]
    assert [c.case_id for c in lazy.cases[::7]] == [c.case_id for c in eager.cases[::7]]
    wanted = [eager.cases[9].case_id, eager.cases[200].case_id, "none"]
    assert [c.order for c in reading.with_ids([lazy], wanted)] == [9, 200]
    assert [c.order for c in reading.with_ids([eager], wanted)] == [9, 200]
    with pytest.raises(IndexError):
        lazy.cases[len(eager.cases)]


@pytest.mark.parametrize(
    ("config", "cell"),
    [
        ("defaultTest: {vars: {d: [a, b]}}", "x"),
        ("defaultTest: {options: {transformVars: '({...vars, q: 1})'}}", "x"),
        ("", "file://*.txt"),
        ("defaultTest: {vars: {d: 'file://*.txt'}}", "x"),
    ],
)
def test_what_expands_is_made_at_once(
    tmp_path: Path, config: str, cell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SMALLEST_LAZY", 2)
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "t.csv").write_text("q\n" + f"{cell}\n" * 3)
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: ['{{{{q}}}}']\nproviders: [echo]\ntests: file://t.csv\n{config}\n"
    )
    found = loaded(tmp_path)
    assert isinstance(found.cases, list)
    assert len(found.cases) in (3, 6)


def test_a_table_without_own_vars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.csv").write_text("__expected,__metadata\ncontains: a,x\ncontains: b,y\n" * 1)
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [x, y]\nproviders: [echo]\ntests: file://t.csv\n"
    )
    for compat in ("documented", "reference"):
        monkeypatch.setattr(module, "SMALLEST_LAZY", 1000)
        eager = loaded(tmp_path, compat)
        monkeypatch.setattr(module, "SMALLEST_LAZY", 1)
        lazy = loaded(tmp_path, compat)
        assert [msgspec.to_builtins(c) for c in lazy.cases] == [msgspec.to_builtins(c) for c in eager.cases]
