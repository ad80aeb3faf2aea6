"""Changes of single values in YAML as people write it: read back as meant, and nothing else touched."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.suites.saved_talk import listed, with_item
from tui_eval.yaml import yaml_lines
from tui_eval.yaml.yaml_edit import EditError, YamlText


def found(document: YamlText, *path: str | int):
    one = document.at(*path)
    assert one is not None
    return one


@pytest.mark.parametrize(
    ("text", "value", "after"),
    [
        ("a: old  # why\nb: 1\n", "x\ny", 'a: "x\\ny"  # why\nb: 1\n'),
        ("a: old\nb: 1\n", "x\ny", "a: |-\n  x\n  y\nb: 1\n"),
        ("a:\nb: 1\n", "high", "a: high\nb: 1\n"),
        ("a:   # which?\n", True, "a: true   # which?\n"),
        ("{a: , b: 1}\n", "high", "{a: high , b: 1}\n"),
        ("a:", "high", "a: high"),
        ("a: old", "x\ny\n", "a: |\n  x\n  y\n"),
        ("a: |-\n  old \nb: 1\n", "5", "a: |-\n  5\nb: 1\n"),
        ("a: |-\n  old  ", "new", "a: |-\n  new"),
        ("a: |-\n\n      old\nb: 1\n", "new", "a: |-\n      new\nb: 1\n"),
        ("a: 0.5\n", 1e-07, "a: 1.0e-07\n"),
        ("a: 0.5\n", [1e20, "\x85"], 'a: [1.0e+20, "\\u0085"]\n'),
        ("a:\n  - x # 1\n  # 2\n  - y\n", ["x", "z"], "a:\n  - x # 1\n  # 2\n  - z\n"),
        ("a:\n  c: 1 # 1\n  d: x # 2\nb: 1\n", {"c": 1, "d": [2]}, "a:\n  c: 1 # 1\n  d: [2] # 2\nb: 1\n"),
        ("a: [1, '2', true]\nb: 1\n", ["1", 2, "true"], 'a: ["1", 2, "true"]\nb: 1\n'),
        ("a: # its\n- 1\n# of 2\n- 2\nb: 1\n", [3], "a: [3] # its\nb: 1\n"),
        ("a:\n  # of c\n  c: |+\n    x\n\nb: 1\n", "x\ny", 'a: "x\\ny"\n  # of c\nb: 1\n'),
        ("a: {c: , d: 'x'}\nb: 1\n", {"c": None, "d": "y"}, "a: {c: null , d: 'y'}\nb: 1\n"),
        ("a:\n  e: 1\n  # of b\nb: 1\n", {"c": 2}, 'a: {"c": 2}\n  # of b\nb: 1\n'),
    ],
)
@pytest.mark.parametrize("core", [False, True])
def test_a_value_reads_back_as_meant(text: str, value: Any, after: str, core: bool) -> None:
    document = YamlText(text)
    new = document.replace(found(document, "a"), value)
    assert new == after
    before = yaml_lines.load(text, "", core=core).value
    assert yaml_lines.load(new, "", core=core).value == {**before, "a": value}


@pytest.mark.parametrize(
    ("text", "place", "after"),
    [
        ("a:  # never\n  - x\n", 0, "a: []  # never\n"),
        ("a:\n  # never\n  - x\n", 0, "a: []\n  # never\n"),
        ("- a: # mine\n  - x\n  b: 1\n", 0, "- a: [] # mine\n  b: 1\n"),
        ("a:\n-\n  x\n-\n  y\n", 0, "a:\n-\n  y\n"),
        ("a:\n- # see - that\n  x\n- y\n", 0, "a:\n- y\n"),
        ("a:\n- {b: 1}\n- c: 1\n  d:\n- e: 1\n", 1, "a:\n- {b: 1}\n- e: 1\n"),
        ("m: &m 1\na:\n- c: 1\n  d: *m\n- e: 1\n", 0, "m: &m 1\na:\n- e: 1\n"),
        ("m: &m 1\na:\n- e: 1\n- c: 1\n  <<: *m\n", 1, "m: &m 1\na:\n- e: 1\n"),
        ("m: &m 1\na: [*m, x]\n", 1, "m: &m 1\na: [*m]\n"),
        ("m: &m 1\na: [x, *m]\n", 0, "m: &m 1\na: [*m]\n"),
        ("a: [x,]\nb: 1\n", 0, "b: 1\n"),
        ("{a: [x]}\n", 0, "{a: []}\n"),
        ("a:\n- |+\n  x\n\n- y\n", 0, "a:\n- y\n"),
    ],
)
def test_an_item_is_left_out_and_nothing_else(text: str, place: int, after: str) -> None:
    document = YamlText(text)
    path = (0, "a", place) if text.startswith("- ") else ("a", place)
    assert document.remove(found(document, *path)) == after


@pytest.mark.parametrize(
    "text", ["a:\n- &b x\n- y\nc: *b\n", "a: [&b x]\nc: *b\n", "a:\n- d: &b x\n- y\nc: *b\n"]
)
def test_what_others_refer_to_is_not_left_out(text: str) -> None:
    document = YamlText(text)
    with pytest.raises(EditError, match="has an anchor"):
        document.remove(found(document, "a", 0))


ITEM = "- n: 1\n  m: 2\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a:\n  -   # see-also\n    n: 0\n", "a:\n  -   # see-also\n    n: 0\n  - n: 1\n    m: 2\n"),
        ("a:\n- n: 0\n  m:\nb: 1\n", "a:\n- n: 0\n  m:\n- n: 1\n  m: 2\nb: 1\n"),
        ("x: &x {n: 0}\na:\n- *x\nb: 1\n", "x: &x {n: 0}\na:\n- *x\n- n: 1\n  m: 2\nb: 1\n"),
        ("x: &x 0\na:\n- n: *x\nb: 1\n", "x: &x 0\na:\n- n: *x\n- n: 1\n  m: 2\nb: 1\n"),
        ("x: &x {n: 0}\na:\n- m: 0\n  <<: *x\n", "x: &x {n: 0}\na:\n- m: 0\n  <<: *x\n- n: 1\n  m: 2\n"),
        ("a:\n- n: |+\n    x\n\nb: 1\n", "a:\n- n: |+\n    x\n\n- n: 1\n  m: 2\nb: 1\n"),
        ("x: &x {n: 0}\na: [*x]\n", 'x: &x {n: 0}\na: [*x, {"n": 1, "m": 2}]\n'),
        ("a: &l-1\n- n: 0\nb: *l-1\n", "a: &l-1\n- n: 0\n- n: 1\n  m: 2\nb: *l-1\n"),
    ],
)
def test_a_case_is_added_behind_the_last(text: str, after: str) -> None:
    document = YamlText(text)
    assert with_item(text, document, listed(document, "a"), ITEM) == after


def test_aliases_of_aliases_are_compared_once() -> None:
    """What they stand for is 2 to the 60th values."""
    head = "a0: &a0 [x, y]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    document = YamlText(f"{head}v: old\n")
    assert document.replace(found(document, "v"), "new") == f"{head}v: new\n"
    with pytest.raises(EditError, match="has an anchor"):
        document.replace(found(document, "a0"), "new")
