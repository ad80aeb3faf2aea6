"""neuro-san's test cases: keys, the flattening of tests, ratios, and every place to be wrong in."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from tests.support import TESTS
from tests.support.examples import examples
from tests.support.suite_files import messages, read, structures
from tui_eval.case_names import full_name, which_tests
from tui_eval.formats.neuro_san import read_neuro_san
from tui_eval.formats.neuro_san.neuro_san_format import NEURO_SAN
from tui_eval.suites import identity

VECTORS = TESTS / "vectors" / "neurosan_ratio.jsonl"
RATIOS = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]

FULL = """\
{
    # the network
    "agent": "deep/music_nerd_pro",
    "connections": ["http", "direct"],
    "success_ratio": "2/3",
    "use_direct": true,
    "metadata": {"user_id": "me"},
    "timeout_in_seconds": 90,
    "interactions": [
        {
            "text": "Who did Yellow Submarine?",
            "sly_data": {"x": 847},
            "timeout_in_seconds": 1.5,
            "chat_filter": "MAXIMAL",
            "continue_conversation": false,
            "response": {
                "sly_data": {
                    "deep": {"er": {"value": [1, [2, 3], {"a": 1}]}},
                    "equals": {"not_value": 3.0, "Keywords": "x"},
                    "value": {"value": 7}
                },
                "text": {
                    "keywords": ["Beatles", "four"],
                    "gist": []
                },
                "structure": {"a.b": {"value": true}}
            }
        },
        { "response": {} }
    ]
}
"""


def case_of(interaction="{ text = hi }", rest=""):
    return read(read_neuro_san, f"agent = a\n{rest}\ninteractions = [\n{interaction}\n]\n", "t.hocon")


def test_every_key():
    suite = read(read_neuro_san, FULL, "fixtures/music.hocon")
    assert all("gist: is empty and asks only" in line for line in messages(suite))
    http, direct = suite.cases
    assert http.case_id == "fixtures/music.hocon::music[connection=http]"
    assert direct.case_id == "fixtures/music.hocon::music[connection=direct]"
    assert (http.connection, direct.connection) == ("http", "direct")
    # Rows of one test, as a promptfoo test's with each prompt: lists say the name once, and fold those alike.
    assert [full_name(case.name, case.variant) for case in suite.cases] == ["music · http", "music · direct"]
    assert which_tests(suite.cases) == ["music", "music"]
    before = msgspec.structs.replace(
        http, name="music [connection=http]", variant=""
    )  # what older versions counted
    assert http.content_hash == identity.content_hash(before) != direct.content_hash
    assert (http.agent, http.attempts, http.required, http.timeout) == ("deep/music_nerd_pro", 3, 2, 90.0)
    assert http.options == {"success_ratio": "2/3", "use_direct": True}
    assert http.request_metadata == {"user_id": "me"}
    first, second = http.turns
    assert (first.text, first.sly_data, first.timeout) == ("Who did Yellow Submarine?", {"x": 847}, 1.5)
    assert (first.chat_filter, first.continue_conversation, first.line) == ("MAXIMAL", False, 10)
    assert (second.text, second.chat_filter, second.continue_conversation) == (None, None, True)
    assert [(a.type, a.target, a.value, a.turn) for a in first.assertions] == [
        ("keywords", "text", "Beatles", 1),
        ("keywords", "text", "four", 1),
        ("gist", "text", UNSET, 1),
        ("value", 'structure."a.b"', True, 1),
        ("not_value", "sly_data.equals", 3.0, 1),
        ("keywords", "sly_data.equals", "x", 1),
        ("value", "sly_data.value", 7, 1),
        ("value", "sly_data.deep.er", 1, 1),
        ("value", "sly_data.deep.er", [2, 3], 1),
        ("value", "sly_data.deep.er", {"a": 1}, 1),
    ]
    assert [a.line for a in first.assertions[:4]] == [23, 23, 24, 26]


def test_defaults():
    (case,) = case_of().cases
    assert (case.connection, case.attempts, case.required, case.timeout) == ("direct", 1, 1, None)
    assert case.case_id == "t.hocon::t" and case.request_metadata is None and not case.options
    assert not case.assertions and not case.turns[0].assertions
    (case,) = case_of(rest="connections = http\nmetadata = {}\nmetadata2 = 1").cases
    assert case.connection == "http" and case.request_metadata == {} and case.case_id == "t.hocon::t"


@pytest.mark.parametrize("row", RATIOS, ids=lambda r: r["id"])
def test_ratios(row):
    if "success_ratio_hocon" in row:
        value = row["success_ratio_hocon"]
    elif row["success_ratio"] is None:
        return
    else:
        value = json.dumps(row["success_ratio"])
    (case,) = case_of(rest=f"success_ratio = {value}").cases
    if row["iterations_started"]:
        assert not case.problems and case.attempts == row["iterations_started"]
        passes = row["samples"].count("pass") >= case.required
        assert passes == row.get("v0_7_15", row)["pass"]
    elif row["id"] == "arabic":  # the driver never decodes \\u: the file as meant is a ratio
        assert (case.attempts, case.required) == (2, 1)
    else:
        assert [p.key for p in case.problems] == ["success_ratio"]
        assert "must be" in case.problems[0].message


@pytest.mark.parametrize("number", [100_001, 10**9, 10**30])
def test_a_ratio_of_more_attempts_than_can_be_planned_is_an_error(number):
    """All of them are planned at once."""
    assert case_of(rest='success_ratio = "1/100000"').cases[0].attempts == 100_000
    suite = case_of(rest=f'success_ratio = "1/{number}"')
    assert "more than 100,000 attempts" in messages(suite)[0] and suite.cases[0].attempts == 1


def test_a_ratio_of_null_is_an_error():
    assert "not nothing" in messages(case_of(rest="success_ratio = null"))[0]


@pytest.mark.parametrize(
    ("interaction", "key", "words"),
    [
        ("{ response { text { keyword = x } } }", "response.text.keyword", "did you mean 'keywords'?"),
        ("{ response { text { contains = x } } }", "response.text.contains", "the tests are value"),
        ("{ response { Text { value = x } } }", "response.Text", "did you mean 'text'?"),
        ("{ response { answer { value = x } } }", "response.answer", "the parts are text"),
        ("{ response { text = x } }", "response.text", "must be a dictionary of tests"),
        ("{ response { text { a { value = x } } } }", "response.text.a.value", "directly under text"),
        (
            "{ response { sly_data { k { value { a = 1 } } } } }",
            "response.sly_data.k.value.a",
            "wrap it in a list",
        ),
        ("{ response = [1] }", "response", "must be a dictionary of tests"),
        ("{ sly_data = 3 }", "sly_data", "must be a dictionary"),
        ("{ timeout_in_seconds = 5 s }", "timeout_in_seconds", "number of seconds"),
        ("{ continue_conversation = maybe }", "continue_conversation", "true or false"),
        ("{ text = [1] }", "text", "must be text"),
        ("{ txet = a }", "txet", "did you mean 'text'?"),
    ],
)
def test_a_wrong_key_is_an_error_of_the_case(interaction, key, words):
    suite = case_of(interaction)
    (case,) = suite.cases
    (problem,) = case.problems
    assert problem.key == f"interactions[0].{key}" and words in str(problem)
    assert problem.level == "error" and problem.line == 4 and problem.path == "t.hocon"
    # a test on a key of text is one that neuro-san fails; everything else here tests nothing
    assert bool(case.turns[0].assertions) == ("directly under text" in words)


def test_what_neuro_san_itself_makes_of_a_wrong_key():
    ignored = case_of("{ txet = a, response { text { keyword = x, a { value = x } }, Text { value = x } } }")
    assert [problem.tool for problem in ignored.cases[0].problems] == ["ignores"] * 4
    refused = case_of(rest="success_ratio = 3")
    assert [problem.tool for problem in refused.cases[0].problems] == ["refuses"]


def test_a_conversation_that_null_continues_does_not_go_on():
    (case,) = case_of("{ text = a, continue_conversation = null }\n{ text = b }").cases
    assert [turn.continue_conversation for turn in case.turns] == [False, True]
    assert [problem.level for problem in case.problems] == ["note"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("agent = a", "'interactions' is missing"),
        ("agent = a\ninteractions = []", "is empty"),
        ("agent = a\ninteractions = {}", "must be a list"),
        ("agent = a\ninteractions = [1]", "must be a dictionary"),
        ("interactions = [{}]", "'agent' is missing"),
        ("agent = null\ninteractions = [{}]", "'agent' is missing"),
        ("agent = a\ninteractions = [{}]\nconnections = grpc", "unknown connection 'grpc'"),
        ("agent = a\ninteractions = [{}]\nconnections = [http, htps]", "did you mean"),
        ("agent = a\ninteractions = [{}]\nconnections = []", "names no connection"),
        ("agent = a\ninteractions = [{}]\nconnections = 5", "unknown connection 5"),
        ("[1]", "must be a dictionary"),
        ("agent = a\ninteractions = [{", "is not closed"),
    ],
)
def test_what_cannot_run_is_no_case(text, words):
    suite = read(read_neuro_san, text, "t.hocon")
    assert not suite.cases and words in messages(suite)[0]
    assert suite.problems[0].level == "error"


@pytest.mark.parametrize(
    "given",
    [
        "response = { text { keywords: hello } }, metadata = ${response.text}",
        'text = "hello", "interaction" { response = ${text} }, metadata = { x: ${interaction."response"} }',
        "meta_data = { user_id: me }, metadata = ${meta_data} { x: y }",
        'interaction { text = hello }, "metadata" { x: ${?interaction.text} }',
    ],
)
def test_what_stands_at_the_root_to_be_filled_in_elsewhere_is_read_whatever_it_is_called(given):
    assert not case_of(rest=given).cases[0].problems


def test_what_is_filled_in_nowhere_is_told_still():
    (case,) = case_of(rest="text = hello\nother { a = 1 }, use_direct = ${?others.a}").cases
    assert [(one.key, one.level) for one in case.problems] == [("text", "error"), ("other", "note")]


def test_notes():
    suite = case_of(
        "{ response { structure { n { less = 5, not_greater = [1, 2] }, k { value = null }, e {} } } }"
    )
    notes = suite.cases[0].problems
    assert all(n.level == "note" for n in notes)
    assert [n.key.rpartition(".")[2] for n in notes] == ["e", "less", "not_greater", "value"]
    assert "other way round" in notes[1].message
    assert [(a.type, a.value) for a in suite.cases[0].turns[0].assertions] == [
        ("less", 5), ("not_greater", 1), ("not_greater", 2)
    ]  # fmt: skip
    suite = case_of("{ text = x, failure_patterns = [y] }", rest="timeout_in_seconds = -1")
    assert [p.level for p in suite.cases[0].problems] == ["note", "note"]
    assert suite.cases[0].timeout is None
    (case,) = case_of(rest='connections = ["http", "direct", "http"]').cases[:1]
    assert [(p.level, p.key) for p in case.problems] == [("note", "connections")]
    assert case.problems[0].message == "names http 2 times: it is asked once"
    (case,) = case_of(rest='metadata { user_id = 5, tenant = "a", none = null }').cases
    assert [(p.level, p.key) for p in case.problems] == [("note", "metadata.user_id")]
    (case,) = case_of(rest='metadata { a = " x", b = "日本", c = "é", d = "", e = "x\\ny" }').cases
    assert [(p.level, p.key) for p in case.problems] == [("note", f"metadata.{name}") for name in "abe"]


def test_a_time_before_the_beginning_is_over_under_reference_and_no_limit_else():
    """neuro-san 0.7.15 lets no sample of it pass; 0.6.98, and the documentation, know no such limit."""
    (case,) = case_of(rest="timeout_in_seconds = -0.5").cases
    assert NEURO_SAN.time_for_all(case, True) == 0 and NEURO_SAN.time_for_all(case, False) is None
    (case,) = case_of(rest="timeout_in_seconds = 5").cases
    assert NEURO_SAN.time_for_all(case, True) == NEURO_SAN.time_for_all(case, False) == 5


def test_problems_in_an_included_file_name_it(tmp_path):
    (tmp_path / "base.hocon").write_text("\n\ninteractions = [\n { txet = x }\n]\n")
    text = 'agent = a\ninclude "base.hocon"\n'
    suite = read(read_neuro_san, text, "deep/t.hocon", root=tmp_path)
    assert messages(suite) == ["base.hocon:4: interactions[0].txet: unknown key 'txet'; did you mean 'text'?"]
    assert suite.files == [str(tmp_path / "deep/t.hocon"), str(tmp_path / "base.hocon")]
    assert read_neuro_san.includes_interactions("deep/t.hocon", text, tmp_path)


@pytest.mark.parametrize(
    ("path", "text", "yes"),
    [
        ("a.hocon", "interactions = []", True),
        ("a.hocon", '{ "interactions": [', True),
        ("a.hocon", '{ "tools": [{ "interactions": 1 }] }', False),
        ("a.hocon", "# interactions\nx = 1", False),
        ("a.conf", "interactions = []", False),
        ("a.hocon", "", False),
    ],
)
def test_which_files_are_test_cases(path, text, yes):
    assert read_neuro_san.recognises(Path(path), text) is yes


KEYS = [
    *read_neuro_san.ROOT_KEYS,
    *read_neuro_san.INTERACTION_KEYS,
    *read_neuro_san.PARTS,
    *read_neuro_san.TESTS,
    "keyword",
    "a.b",
]


@pytest.mark.real
@examples(100)
@given(structures(KEYS))
def test_no_structure_raises(data):
    for value in (
        data,
        {"agent": "a", "interactions": data},
        {"agent": "a", "interactions": [{"text": "x", "response": data}], "connections": ["http"]},
    ):
        messages(read(read_neuro_san, json.dumps(value), "t.hocon"))


@examples(80)
@given(st.text())
def test_no_text_raises(text):
    messages(read(read_neuro_san, "agent = a\ninteractions = [ { text = " + text, "t.hocon"))
    read_neuro_san.recognises(Path("a.hocon"), "interactions" + text)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("3", 3),
        ("loud", "loud"),
        ("{ chat_filter_type = MINIMAL }", {"chat_filter_type": "MINIMAL"}),
        ("[MAXIMAL]", ["MAXIMAL"]),
    ],
)
def test_a_chat_filter_is_kept_as_the_file_says_with_a_note(given, sent):
    (case,) = case_of(f"{{ text = hi, chat_filter = {given} }}").cases
    assert case.turns[0].chat_filter == sent
    (problem,) = case.problems
    assert (problem.level, problem.key) == ("note", "interactions[0].chat_filter")
    then = {str: "servers take it for MINIMAL", dict: "servers answer with an error"}.get(
        type(sent), "as it is"
    )
    assert then in problem.message
    assert "MINIMAL" in str(problem)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("interactions = [{text = a, keywords = b}]", "interactions[0].keywords"),
        ("interactions = [{text = a, structure {x {value = b}}}]", "interactions[0].structure"),
        ("interactions = [{text = a}]\nresponse {text {keywords = b}}", "response"),
    ],
)
def test_tests_in_a_wrong_place_are_errors(text, key):
    suite = read(read_neuro_san, f"agent = a\nconnections = http\n{text}\n", "t.hocon")
    (told,) = [
        one
        for one in (*suite.problems, *(p for c in suite.cases for p in c.problems))
        if one.level == "error"
    ]
    assert (told.key, told.tool) == (key, "ignores") and "put it under" in told.cure
