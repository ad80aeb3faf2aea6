"""YAML as the two dialects read it, its lines, and documents made to hurt."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.support.work import calls_of
from tui_eval.yaml.yaml_lines import KeyTwice, load, load_all, load_json


def value(text, **options):
    document = load(text, "f.yaml", **options)
    assert not document.problems, document.problems
    return document.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", "yes"), ("No", "No"), ("on", "on"), ("OFF", "OFF"), ("y", "y"), ("true", True), ("FALSE", False),
        ("tRue", "tRue"), ("~", None), ("null", None), ("Null", None), ("010", 10), ("0x1F", 31), ("0o17", 15),
        ("0b11", "0b11"), ("-12", -12), ("+12", 12), ("1_000", "1_000"), ("-0x1F", "-0x1F"), ("1e400", "1e400"), ("1:30", "1:30"), ("1.5", 1.5), ("1e3", 1000.0),
        (".5", 0.5), ("5.", 5.0), (".inf", math.inf), ("-.Inf", -math.inf), ("2024-01-05", "2024-01-05"),
        ("2024-01-05T10:00:00Z", "2024-01-05T10:00:00Z"), ("'010'", "010"), ('"true"', "true"), ("1_", "1_"),
        ("!!str 12", "12"), ("1.2.3", "1.2.3"), ("-", [None]), ("=", "="), ("!!int 12", 12), ("!!float 1", 1.0),
    ],
)  # fmt: skip
def test_core_scalars_as_js_yaml_reads_them(text, expected):
    got = value(text, core=True)
    assert got == expected and type(got) is type(expected)


@pytest.mark.parametrize(
    "text", ["yes", "No", "012", "0x1F", "1:30", "1e3", "1.5e+3", "~", "'5'", "12", ".5"]
)
def test_safe_scalars_as_pyyaml_reads_them(text):
    assert value(text) == yaml.safe_load(text)


def test_dates_keep_their_text_in_both_dialects():
    assert value("a: 2024-01-05\nb: 2024-01-05 10:11:12") == {"a": "2024-01-05", "b": "2024-01-05 10:11:12"}


def test_what_is_merged_stands_where_the_merge_does() -> None:
    """A template dumps a mapping in this order, and a matrix goes by it; js-yaml's is this."""
    text = "b: &b {x: 1, y: 2}\nfirst: {<<: *b, z: 3, x: 4}\nlast: {z: 3, y: 9, <<: *b}\ntwice: {<<: *b, x: 1, x: 2}\n"
    document = load(text, "f.yaml")
    assert list(document.value["first"].items()) == [("x", 4), ("y", 2), ("z", 3)]
    assert list(document.value["last"].items()) == [("z", 3), ("y", 9), ("x", 1)]
    assert [problem.key for problem in document.problems] == ["x"]


def test_a_json_file_is_said_to_be_no_json() -> None:
    for text in ('{"a": 1 "b": 2}', '{"a": [1,', '{"a": "\x00"}'):
        assert load(text, "promptfooconfig.json").problems[0].message.startswith("not valid JSON: "), text
        assert load(text, "suite.yaml").problems[0].message.startswith("not valid YAML: "), text


def test_merge_keys_and_anchors():
    text = "base: &b {x: 1, y: 2}\nother: &c {y: 3, z: 4}\na:\n  <<: *b\n  x: 9\nl:\n  <<: [*b, *c]\n"
    document = value(text, core=True)
    assert document["a"] == {"x": 9, "y": 2}
    assert document["l"] == {"x": 1, "y": 2, "z": 4}


def test_lines_of_keys_items_and_parents():
    lines = load("a: 1\nb:\n  - x\n  - y:\n      z: 3\n5: five\n", "f").lines
    assert (lines.at(), lines.at("a"), lines.at("b"), lines.at("b", 1)) == (1, 1, 2, 4)
    assert lines.at("b", 1, "y", "z") == 5
    assert lines.at("b", 1, "gone", "deeper") == 4
    assert lines.at("b", 7) == 2
    assert lines.at(5) == 6
    assert load("", "f").lines.at("a") == 0


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: [1\n", 2, "a list in [ ] begins here (column 4) and never ends"),
        ("a: 1\nb: {c: 1\n\n", 2, "a mapping in { } begins here (column 4) and never ends"),
        ('a: 1\nb:\n  - "c\nd: 1\n', 3, "a quoted text begins here (column 5) and never ends"),
        ("a: 'b\nc: 1", 1, "a quoted text begins here (column 4) and never ends"),
        (
            "a: [1\nb: 2\nc: 3\n",
            2,
            "did not find expected ',' or ']' while parsing a flow sequence that begins on line 1",
        ),
        ("a: |\n  x\n\ty\n", 3, "a tab where spaces are wanted"),
        ("a: b: c", 1, "mapping values are not allowed"),
        ("a: 1\na: 2\n", 2, "given twice"),
        ("a: 1\n---\nb: 2\n", 3, "second YAML document"),
        ("a: !!python/object/apply:os.system [ls]", 1, "unknown tag"),
        ("x\x00y", 1, "not valid YAML"),
        ("a: &x [*x]", 1, "contains itself"),
        ("? [1]\n: 2\n", 1, "as a key"),
        ("a: !!int zwei", 1, "is no int"),
        ("a: {<<: 3}", 1, "merged"),
        ("ok: 1\nb: \ud800", 2, "not valid YAML"),
    ],
)
@pytest.mark.parametrize("core", [False, True])
def test_what_is_wrong_is_one_problem_with_its_line(text, line, words, core):
    problems = load(text, "dir/f.yaml", core=core).problems
    assert len(problems) == 1
    assert problems[0].line == line and words in problems[0].message and "\n" not in str(problems[0])
    assert str(problems[0]).startswith(f"dir/f.yaml:{line}:")


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000, "? " * 50_000])
def test_deep_nesting_is_a_problem_and_no_crash(text):
    document = load(text, "f")
    assert document.value is None and "nested deeper" in document.problems[0].message


def test_aliases_cannot_unfold_without_end():
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    laughs += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    document, calls = calls_of(lambda: load(laughs, "f"))
    assert "unfold" in document.problems[0].message and document.value is None
    assert calls < 5_000


def test_a_word_as_a_key_is_its_text_where_it_would_be_in_javascript():
    found = load("{1: a, true: b, 0: c, false: d, null: e}", "f", core=True)
    assert (found.value, found.problems) == ({1: "a", "true": "b", 0: "c", "false": "d", "null": "e"}, [])
    twice = load("true: a\n'true': b\n", "f", core=True)
    assert [str(one) for one in twice.problems] == [
        "f:2: true: given twice, on lines 1 and 2: which one is meant cannot be known; remove one"
    ]


def test_a_repeated_key_still_gives_the_rest():
    assert load("a: 1\na: 2\nb: 3\n", "f").value == {"a": 2, "b": 3}


def test_a_key_given_twice_in_what_aliases_name_stands_wherever_they_are():
    text = "a: &x {k: 1, k: 2}\nb: *x\nc: {d: [0, *x], e: {<<: *x}}\n"
    document = load(text, "f")
    assert len(document.problems) == 1
    places = {one.path for one in document.misread if one.doubled and one.problem is document.problems[0]}
    assert places == {("a",), ("b",), ("c", "d", 1), ("c", "e", "<<")}


def test_more_places_than_are_told_apart_are_the_document():
    laughs = "a0: &a0 [{k: 1, k: 2}]\n"
    laughs += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 6))
    places = [one.path for one in load(laughs, "f").misread]
    assert ("a0", 0) in places and () in places and len(places) <= 10_001


def test_many_keys_given_twice_are_read_in_the_time_of_their_number():
    """Eight thousand took minutes: for each the whole document was gone through."""

    def read(number: int) -> None:
        document = load("".join(f"k{i}: {{a: 1}}\nk{i}: {{b: 2}}\n" for i in range(number)), "f")
        assert len(document.misread) == number
        assert [document.lines.at(f"k{i}") for i in range(number)] == list(range(2, 2 * number + 1, 2))

    _, few = calls_of(lambda: read(200))
    _, many = calls_of(lambda: read(2000))
    assert many < 12 * few
    with pytest.raises(KeyTwice, match="'k0'"):
        load_json("{" + ", ".join([f'"k{i % 50_000}": 1' for i in range(100_000)]) + "}")


def test_byte_order_mark_and_windows_lines():
    document = load("\ufeffa: 1\r\nb: 2\r\n", "f")
    assert document.value == {"a": 1, "b": 2} and document.lines.at("b") == 2


def test_several_documents():
    assert [d.value for d in load_all("a: 1\n---\nb: 2\n", "f")] == [{"a": 1}, {"b": 2}]


@examples(150)
@given(st.one_of(st.text(), st.text(alphabet="{}[]-?:&*!|>'\"#<\n \tab01.,")), st.booleans())
def test_any_text_gives_a_document(text, core):
    document = load(text, "f", core=core)
    document.lines.at("a", 0, "b")
    assert all(problem.path == "f" for problem in document.problems)


@examples(100)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda c: st.lists(c) | st.dictionaries(st.text(), c),
        max_leaves=12,
    )
)
def test_what_yaml_writes_is_read_back(data):
    text = yaml.safe_dump(data, allow_unicode=False)
    document = load(text, "f")
    assert document.value == data and not document.problems
