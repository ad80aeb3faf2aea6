"""Case ids: their grammar, what changes them and what does not; slips of known keys."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.suite_files import structures
from tui_eval.guard.masker import Masker
from tui_eval.guard.spelling import close_to
from tui_eval.model import Assertion, Case, Problem, Suite, Turn
from tui_eval.suites.identity import Ids, case_id, content_hash, digest, name_cases, suffix, unnamed


def test_the_grammar():
    assert case_id("a/b.yaml", "Some name") == "a/b.yaml::Some name"
    assert case_id("a.yaml", "n", matrix={"k": "v", "x": 1}) == "a.yaml::n[k=v,x=1]"
    assert case_id("a.hocon", "n", connection="http") == "a.hocon::n[connection=http]"
    assert case_id("p.yaml", "n", provider="openai:gpt", prompt="prompt1") == "p.yaml::n::openai:gpt::prompt1"
    assert case_id("p.yaml", " two\nlines ") == "p.yaml::two lines"
    unnamed_id = case_id("p.yaml", None, variables={"q": "x"})
    assert re.fullmatch(r"p\.yaml::vars-[0-9a-f]{8}", unnamed_id)
    assert case_id("p.yaml", "  ", variables={"q": "x"}) == unnamed_id


def test_an_id_can_be_stored_whatever_its_file_or_case_is_called():
    ids = {
        case_id(path, name, provider="p \udc80")
        for path in ("a\udce9", "a\udce8")
        for name in ("b", "b \ud83d", "é")
    }
    assert len({one.encode() for one in ids}) == 6
    assert case_id("caf\udce9.yaml", "é") == "caf\\udce9.yaml::é"
    case = Case("theirs \udce9", "n", "s", "s")
    name_cases(Suite("s", "s", cases=[case]), str)
    assert case.case_id == "theirs \\udce9"


def test_unnamed_cases_are_known_by_their_inputs_alone():
    assert unnamed({"a": 1, "b": 2}) == unnamed({"b": 2, "a": 1}) != unnamed({"a": 1, "b": 3})
    assert unnamed({}, ["hello"]) == unnamed(None, ["hello"]) != unnamed(None, ["bye"])
    assert unnamed({"a": 1}, ["hello"]) == unnamed({"a": 1}, ["bye"])


def test_long_values_are_hashed():
    assert suffix({"k": "x" * 40}) == f"[k={'x' * 40}]"
    assert re.fullmatch(r"\[k=~[0-9a-f]{8}\]", suffix({"k": "x" * 41}))
    assert suffix({"k": [1, "a"], "n": None, "b": True}) == '[k=[1,"a"],n=null,b=true]'
    assert suffix({}) == ""


def test_repeated_ids_are_numbered():
    ids = Ids(str)
    assert [ids.take(i) for i in ("a", "a", "b", "a", "a#2", "a")] == ["a", "a#2", "b", "a#3", "a#2#2", "a#4"]


def test_content_hash_ignores_the_place_and_sees_everything_else():
    def case(**changes):
        values = {"case_id": "i", "name": "n", "suite": "s", "format": "nao", "turns": [Turn("t", line=3)]}
        return Case(**{**values, **changes})

    base = content_hash(case())
    same = case(
        case_id="j",
        suite="z",
        line=9,
        order=4,
        problems=[Problem("p", 1, "k", "m")],
        turns=[Turn("t", line=8)],
    )
    assert content_hash(same) == base and re.fullmatch("[0-9a-f]{16}", base)
    first = case(name="Row #1", format="promptfoo")
    for moved in (
        case(name="Row #2", format="promptfoo"),
        case(name="Row #3", description="Row #3", format="promptfoo"),
    ):
        assert content_hash(moved) == content_hash(first) != base
    changed = [
        case(name="m"), case(turns=[Turn("u")]), case(turns=[Turn("t"), Turn("t")]), case(attempts=2),
        case(assertions=[Assertion("x")]), case(turns=[Turn("t", [Assertion("x")])]), case(vars={"a": 1}),
        case(assertions=[Assertion("x", None)]), case(assertions=[Assertion("x", "absent")]),
    ]  # fmt: skip
    assert len({base, *map(content_hash, changed)}) == len(changed) + 1


@given(structures(["a", "b"]))
def test_every_value_has_a_digest(value):
    assert re.fullmatch("[0-9a-f]{8}", digest(value))
    assert digest({"x": value}) == digest({"x": value})


def test_odd_values_have_a_digest():
    deep: list = []
    for _ in range(5000):
        deep = [deep]
    for value in ("\ud800", {1: "a", "1": "b"}, {None: 1}, 10**400, deep, {"a": object}, float("nan")):
        assert digest(value)


@given(st.text(), st.text())
def test_ids_are_one_line(name, value):
    assert not re.search(r"[\r\n]", case_id("s", name, matrix={"k": value}))


@pytest.mark.parametrize(
    ("key", "known", "expected"),
    [
        ("should_contian", ["should_contain", "should_not_contain"], "should_contain"),
        ("promt", ["prompt"], "prompt"),
        ("nmae", ["name"], "name"),
        ("note", ["name"], None),
        ("tags", ["args"], None),
        ("id", ["sql"], None),
        ("slq", ["sql"], "sql"),
        ("url", ["sql"], None),
        ("Text", ["text"], "text"),
        ("text", ["text"], None),
        ("keyword", ["keywords", "not_keywords"], "keywords"),
        ("sentiment", ["escalated"], None),
        ("", ["sql"], None),
    ],
)
def test_slips(key, known, expected):
    assert close_to(key, known) == expected


def test_secrets_in_ids_are_masked_and_the_ids_stay_distinct() -> None:
    """A number tells nothing of a secret, and stays where the secret is another tomorrow."""
    masked = Masker(["sk-abcdefgh", "tok-abcdefgh"]).text
    wanted = ["s::a", "s::log in sk-abcdefgh", "s::log in tok-abcdefgh", "s::log in sk-abcdefgh"]
    ids = ["s::a", "s::log in •••", "s::log in •••#2", "s::log in •••#3"]
    assert list(map(Ids(masked).take, wanted)) == Ids(masked).take_all(wanted) == ids
    assert Ids(masked).take_all(["s::a", "s::a"]) == ["s::a", "s::a#2"]
