"""Changes of single values in YAML as people write it: read back as meant, and nothing else touched."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tui_eval.suites.saved_talk import listed, with_item
from tui_eval.yaml import yaml_lines
from tui_eval.yaml.long_lists import LONG
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


# -- A file of thousands of cases


MANY = LONG + 40
LAYOUTS = {
    "plain": "  - name: case {n}\n    expected:\n      has: [a, 'b {n}']\n",
    "comments and empty lines": "\n  # before {n}\n  - name: case {n} # äöü 👩‍👩‍👧\n\n    expected: {{has: [a]}}\n  # behind\n",
    "texts over several lines": "  - text: |+\n      one {n}\n\n      two\n\n  - fold: >-\n      three\n      {n}\n\n",
    "lists in lists": "  - - one\n    - {{a: {n}}}\n  - [x, y]\n  - {n}\n",
    "no column to the right": "- name: case {n}\n  has:\n  - a\n  - 'b'\n",
    "values that are not there": "  - name:\n    has: [a]\n    last:\n",
}


def nodes(
    text: str, lines: tuple[int, ...] | None = None
) -> dict[tuple[tuple[str | int, ...], int], tuple[int, str, str]]:
    document = YamlText(text, lines)
    return {
        (one.path, one.place): (one.line, one.node.id, document.text_of(one.node))
        for one in document.nodes()
        if one.path
    }


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("head", ["agent: a\ncases:\n", "\ufeffcases:\n", "# first\n---\nx: y # z\ncases:\n"])
@pytest.mark.parametrize("tail", ["", "last: [1, 2]\n", "# behind all\n", "more:\n  - z\n"])
def test_of_many_cases_those_that_are_looked_into_stand_where_they_do_in_the_whole_text(
    layout: str, head: str, tail: str
) -> None:
    text = head + "".join(LAYOUTS[layout].format(n=n) for n in range(MANY)) + tail
    whole = nodes(text)
    for place in (0, MANY // 2, MANY - 1):
        line = whole[("cases", place), place][0]
        some = nodes(text, (line,))
        kept = [key for key in whole if key[0][:1] != ("cases",) or key[0][1:2] in ((), (0,), (place,))]
        assert len(some) < len(whole) and {key: some[key] for key in kept} == {
            key: whole[key] for key in kept
        }


def test_a_list_that_is_the_document_is_looked_into_in_part_and_one_between_brackets_as_a_whole() -> None:
    items = "".join(f"- {{type: equals, value: v{n}}}\n" for n in range(MANY))
    assert nodes(items, (7,))[(6, "value"), 1] == (7, "scalar", "v6")
    assert len(nodes(items, (7,))) < len(nodes(items))
    brackets = "[\n" + "{a: 1},\n" * MANY + "]\n"
    assert nodes(brackets, ()) == nodes(brackets)


def test_where_a_case_refers_to_one_that_would_not_be_there_all_are_looked_into() -> None:
    items = "".join(f"- {{v: v{n}}}\n" for n in range(MANY))
    of_one = items.replace("v: v5}", "v: &five v5}").replace("v: v9}", "v: *five}")
    assert nodes(of_one, (10,)) == nodes(of_one)
    itself = items.replace("- {v: v5}", "- &five {v: v5}").replace("- {v: v9}", "- *five")
    assert nodes(itself, (3,)) == nodes(itself)


def test_one_value_of_twenty_thousand_cases_is_changed_in_seconds_not_in_half_a_minute() -> None:
    text = "agent: a\ncases:\n" + "".join(
        f"  - name: case {n}\n    input: ask {n}\n    expected: {{has: [right {n}]}}\n" for n in range(20_000)
    )
    began = time.process_time()
    document = YamlText(text, (32,))
    one = found(document, "cases", 9, "expected", "has", 0)
    assert (one.line, one.node.value) == (32, "right 9")
    assert time.process_time() - began < 4  # ten by ruamel.yaml of the whole
    assert document.replace(one, "wrong") == text.replace("right 9]", "wrong]")
    assert document.with_last(found(document, "cases"), "- name: new\n") == text + "  - name: new\n"
