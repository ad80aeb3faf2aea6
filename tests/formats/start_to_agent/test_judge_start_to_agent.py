"""StartToAgent's assertions against the rules of the guide, written down a second time here."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_eval.assertions import JudgeInput, Reports
from tui_eval.formats import judge
from tui_eval.guard.figures import tool_calls, usage_sum
from tui_eval.model import Assertion, Case, Entry, Reply, Turn, Usage

ABLE = Reports(tokens=True, tools=True, metadata=True)


def case_of(expected: dict[str, Any], turns: int = 1) -> Case:
    assertions = []
    for key, value in expected.items():
        elements = value if isinstance(value, list) else [value]
        assertions += [Assertion(key, element) for element in elements]
    return Case(
        "s.yaml::c", "c", "s.yaml", "start_to_agent", turns=[Turn("hi")] * turns, assertions=assertions
    )


async def judged(expected: dict[str, Any], text: str, metadata: dict[str, Any] | None, **more: Any) -> Any:
    more.setdefault("capabilities", ABLE)
    return await judge(JudgeInput(case_of(expected), [Reply(1, text, metadata=metadata)], **more))


def texts_by_the_guide(
    expected: dict[str, Any], text: str, metadata: dict[str, Any], reference: bool
) -> list[str]:
    """The table of formats/start_to_agent.md, line by line; names count as calls where the count given is smaller,
    which is ours."""
    out = []
    for key in ("should_contain", "should_not_contain"):
        for item in expected.get(key, ()):
            inside = text.lower().find(item.lower()) != -1
            if key == "should_contain" and not inside:
                out.append(f"{key}: '{item}' not found in response")
            if key == "should_not_contain" and inside:
                out.append(f"{key}: '{item}' was found in response")
    want, got = expected.get("escalated"), metadata.get("escalated", False)
    if want is not None and want is not got:
        out.append(f"escalated: expected {want}, got {got}")
    absent = sorted(set(expected.get("tools_used", ())).difference(metadata.get("tools_used", ())))
    if absent:
        out.append("tools_used: missing {" + ", ".join(f"{name!r}" for name in absent) + "}")
    for key, source in (
        ("max_tool_calls", "tool_call_count"),
        ("max_input_tokens", "input_tokens"),
        ("max_output_tokens", "output_tokens"),
    ):
        count, note, named = metadata.get(source, 0), "", len(metadata.get("tools_used", ()))
        if key == "max_tool_calls" and not reference and named > count:
            said = f"tool_call_count says {count}" if source in metadata else "no count was reported"
            count, note = named, f" (named in tools_used; {said})"
        if key in expected and not count <= expected[key]:
            out.append(f"{key}: {count} > {expected[key]}{note}")
    return out


words = st.text(alphabet="abcSßİ€'\" \n", max_size=6)
names = st.sampled_from(["search", "look up", "it's", "x"])
counts = st.integers(0, 5)
expectations = st.fixed_dictionaries(
    {},
    optional={
        "should_contain": st.lists(words, max_size=3),
        "should_not_contain": st.lists(words, max_size=3),
        "escalated": st.booleans(),
        "tools_used": st.lists(names, max_size=4),
        "max_tool_calls": counts,
        "max_input_tokens": counts,
        "max_output_tokens": counts,
    },
)
metadatas = st.fixed_dictionaries(
    {},
    optional={
        "escalated": st.booleans(),
        "tools_used": st.lists(names, max_size=4),
        "tool_call_count": counts,
        "input_tokens": counts,
        "output_tokens": counts,
    },
)


@examples(300)
@given(expected=expectations, text=st.text(max_size=30) | words, metadata=metadatas, reference=st.booleans())
async def test_failure_texts_are_the_guides(
    expected: dict[str, Any], text: str, metadata: dict[str, Any], reference: bool
) -> None:
    judgement = await judged(expected, text, metadata, compat="reference" if reference else "documented")
    texts = texts_by_the_guide(expected, text, metadata, reference)
    asserted = any(value != [] for value in expected.values())
    assert judgement.message == ("; ".join(texts) or ("passed" if asserted else "nothing asserted"))
    assert judgement.outcome == ("failed" if texts else "passed")
    assert all(verdict.reason for verdict in judgement.verdicts)


async def test_priority_and_other_behaviour() -> None:
    expected = {"escalation_priority": "high", "refund": True, "language": "de"}
    judgement = await judged(expected, "hi", {"refund": False})
    assert [verdict.reason for verdict in judgement.verdicts] == [
        "escalation_priority: expected high, got None",
        "refund: expected True, got False",
        "language: expected de, but the metadata has no 'language'",
    ]
    assert (await judged(expected, "hi", {"refund": 0}, compat="reference")).outcome == "passed"
    good = await judged(expected, "hi", {"escalation_priority": "high", "refund": True, "language": "de"})
    assert good.outcome == "passed"


async def test_values_that_read_the_same_are_told_apart() -> None:
    expected = {"plans": 3, "tier": "gold", "escalated": True}
    metadata = {"plans": "3", "tier": "gold ", "escalated": "true"}
    judgement = await judged(expected, "hi", metadata)
    assert sorted(verdict.reason for verdict in judgement.verdicts) == [
        "escalated: expected the boolean True, got the text 'true'",
        "plans: expected the number 3, got the text '3'",
        "tier: expected 'gold', got 'gold '",
    ]
    judgement = await judged(expected, "hi", metadata, compat="reference")
    assert judgement.message == "escalated: expected True, got true"


async def test_what_the_agent_cannot_report_is_an_error() -> None:
    expected = {
        "should_contain": ["hi"],
        "escalated": False,
        "tools_used": ["a"],
        "max_tool_calls": 2,
        "max_input_tokens": 5,
        "vip": True,
    }
    judgement = await judged(expected, "hi", None, capabilities=Reports())
    assert [verdict.passed for verdict in judgement.verdicts] == [True, None, None, None, None, None]
    assert judgement.outcome == "error"
    assert "does not report tokens" in judgement.message
    assert "does not report metadata" in judgement.message
    reference = await judged(expected, "hi", None, capabilities=Reports(), compat="reference")
    assert reference.message == "tools_used: missing {'a'}"


async def test_what_was_left_out_counts_as_the_default_and_says_so() -> None:
    judgement = await judged({"escalated": False, "max_output_tokens": 5}, "hi", None)
    assert judgement.outcome == "passed"
    assert all("did not report" in verdict.reason for verdict in judgement.verdicts)


async def test_the_whole_conversation_is_summed_and_the_last_reply_read() -> None:
    replies = [
        Reply(1, "refund", metadata={"escalated": True, "tool_call_count": 1, "vip": True}),
        Reply(2, "bye", metadata={"escalated": False, "tool_call_count": 2}),
    ]
    transcript = [Entry(1, "tool_call", name="search"), Entry(2, "tool_call", name="lookup")]
    expected = {
        "should_not_contain": ["refund"],
        "escalated": False,
        "vip": True,
        "tools_used": ["search", "lookup"],
        "max_tool_calls": 2,
        "max_input_tokens": 10,
    }
    case = case_of(expected, 2)
    evidence = JudgeInput(case, replies, transcript, ABLE, Usage(input_tokens=11))
    judgement = await judge(evidence)
    assert judgement.message == "max_tool_calls: 3 > 2; max_input_tokens: 11 > 10"


async def test_calls_are_at_least_those_that_are_named_or_seen() -> None:
    """An agent that counts fewer calls than it names contradicts itself: its count keeps no limit."""
    limit = {"max_tool_calls": 2}
    nine = ["search"] * 9
    assert (await judged(limit, "hi", {"tools_used": nine})).message == (
        "max_tool_calls: 9 > 2 (named in tools_used; no count was reported)"
    )
    fewer = await judged(limit, "hi", {"tools_used": nine, "tool_call_count": 1})
    assert fewer.message == "max_tool_calls: 9 > 2 (named in tools_used; tool_call_count says 1)"
    entries = [Entry(1, "tool_call", name="search")] * 3
    seen = await judged(limit, "hi", {"tool_call_count": 1}, transcript=entries, tool_call_count=3)
    assert seen.message == "max_tool_calls: 3 > 2 (seen; tool_call_count says 1)"
    held = await judged(limit, "hi", {"tools_used": ["a", "b"]}, tool_call_count=0)
    assert held.outcome == "passed"
    assert held.verdicts[0].reason == "2 ≤ 2 (named in tools_used; no count was reported)"
    for metadata in ({"tools_used": nine}, {"tools_used": nine, "tool_call_count": 1}):
        assert (await judged(limit, "hi", metadata, compat="reference")).outcome == "passed"


async def test_tools_that_are_reported_as_objects_are_known_by_their_names() -> None:
    """Agents pass on the calls of a model as they have them; taken as text they were no tool that anybody asks for."""
    asked = {"tools_used": ["search", "b"], "max_tool_calls": 2}
    for listed in (
        [{"name": "search"}, {"name": "b", "arguments": {}}],
        [{"type": "function", "function": {"name": "search"}}, {"tool": "b"}],
        {"search": 1, "b": 2},
    ):
        judgement = await judged(asked, "hi", {"tools_used": listed})
        assert judgement.outcome == "passed", judgement.message
        reasons = [verdict.reason for verdict in judgement.verdicts[:2]]
        assert reasons == ["search called", "b called"], "a pass names its tool"
    lacks = await judged(asked, "hi", {"tools_used": {"name": "search"}})
    assert lacks.message == "tools_used: missing {'b'}"
    for listed in ([{"id": 7}], ["search", None], True):
        unread = await judged({"tools_used": ["b"]}, "hi", {"tools_used": listed})
        assert unread.outcome == "error" and "which is no list of names" in unread.message
    assert (
        await judged({"tools_used": ["search"]}, "hi", {"tools_used": ["search", None]})
    ).outcome == "passed"
    exact = await judged({"tools_used": ["b"]}, "hi", {"tools_used": [{"name": "b"}]}, compat="reference")
    assert exact.message == "tools_used: missing {'b'}"


@pytest.mark.parametrize(
    ("expected", "metadata", "outcome"),
    [
        ({"max_tool_calls": 2}, {"tool_call_count": "2"}, "error"),
        ({"max_tool_calls": 2}, {"tool_call_count": ["search"]}, "error"),
        ({"max_output_tokens": 2}, {"output_tokens": {}}, "error"),
        ({"max_tool_calls": 2}, {"tool_call_count": 1.5}, "passed"),
        ({"max_tool_calls": 2}, {"tool_call_count": None}, "error"),
        ({"max_input_tokens": 2}, {"input_tokens": None}, "error"),
        ({"max_input_tokens": 2}, {"output_tokens": None}, "passed"),
        ({"tools_used": ["search"]}, {"tools_used": None}, "error"),
        ({"tools_used": ["search"]}, {"tools_used": 3}, "error"),
        ({"tools_used": ["search"]}, {"tools_used": "search"}, "failed"),
        ({"tools_used": ["s"]}, {"tools_used": "search"}, "passed"),
        ({"tools_used": ["search"]}, {"tools_used": {"search": 1}}, "passed"),
        ({"tools_used": ["1"]}, {"tools_used": [1]}, "failed"),
    ],
)
async def test_odd_metadata_is_what_the_guides_code_makes_of_it(
    expected: dict[str, Any], metadata: dict[str, Any], outcome: str
) -> None:
    """A count that the guide's code cannot compare was none, and passed every limit."""
    assert (await judged(expected, "hi", metadata, compat="reference")).outcome == outcome


@pytest.mark.parametrize(
    ("limit", "count", "outcome"),
    [
        ("max_input_tokens", "input_tokens", "error"),
        ("max_tool_calls", "tool_call_count", "error"),
        ("max_output_tokens", "output_tokens", "passed"),
    ],
)
async def test_a_null_count_is_the_guides_error_also_beside_a_usage(
    limit: str, count: str, outcome: str
) -> None:
    """What a usage has of the other tokens is none of this count: beside it a null passed every limit."""
    reply = Reply(1, "hi", metadata={count: None}, usage=Usage(output_tokens=5))
    judgement = await judge(JudgeInput(case_of({limit: 9}), [reply], capabilities=ABLE, compat="reference"))
    assert judgement.outcome == outcome


async def test_a_limit_that_is_no_number_is_an_error() -> None:
    judgement = await judged({"max_tool_calls": "two"}, "hi", {"tool_call_count": 1})
    assert judgement.outcome == "error"
    assert judgement.message == "max_tool_calls: the limit 'two' is not a number"


def said(turn: int, usage: int | None = None, /, **metadata: Any) -> Reply:
    return Reply(turn, "hi", metadata=metadata or None, usage=None if usage is None else Usage(usage, 1))


async def of_turns(key: str, limit: int, *replies: Reply, calls: tuple[int, ...] = (), compat: Any) -> Any:
    """A conversation; `calls` are the turns in which the transcript has a tool call."""
    case = case_of({key: limit}, len(replies))
    used = usage_sum(reply.usage for reply in replies)
    seen = [Entry(turn, "tool_call", name="t") for turn in calls]
    return await judge(JudgeInput(case, list(replies), seen, ABLE, used, len(seen), compat=compat))


@pytest.mark.parametrize("compat", ["documented", "reference"])
async def test_tokens_count_where_each_reply_has_them(compat: str) -> None:
    """One reply that said them in its metadata took those of all others away: 100 ≤ 500."""
    for replies in (
        [said(1, input_tokens=100), said(2, 900)],
        [said(1, 100, input_tokens=100), said(2, 900)],
        [said(1, 900), said(2, input_tokens=100)],
        [said(1, 900), said(2, 7, input_tokens=100)],
        [said(1, 900, input_tokens=None, escalated=True), said(2, input_tokens=100)],
    ):
        judgement = await of_turns("max_input_tokens", 500, *replies, compat=compat)
        assert judgement.message == "max_input_tokens: 1000 > 500"
    silent = await of_turns("max_input_tokens", 500, said(1, 300), said(2), said(3), compat=compat)
    assert silent.verdicts[0].reason == "300 ≤ 500 (turns 2, 3: the agent did not report it, counted as 0)"


CALLS = {
    "named without a count": (
        [said(1, tool_call_count=3), said(2, tools_used=["c", "d"])],
        (),
        5,
        3,
        "2 named in tools_used; tool_call_count says 3",
    ),
    "named beyond a count": (
        [
            said(1, tool_call_count=5, tools_used=["a"]),
            said(2, tool_call_count=0, tools_used=["b", "c", "d"]),
        ],
        (),
        8,
        5,
        "3 named in tools_used; tool_call_count says 5",
    ),
    "seen, then named": (
        [said(1), said(2, tools_used=["c", "d"])],
        (1, 1),
        4,
        2,
        "2 named in tools_used; no count was reported",
    ),
    "seen, then counted": ([said(1), said(2, tool_call_count=1)], (1, 1), 3, 3, ""),
    "seen beyond a count, then named": (
        [said(1, tool_call_count=1), said(2, tools_used=["c"])],
        (1, 1),
        3,
        1,
        "2 seen, 1 named in tools_used; tool_call_count says 1",
    ),
    "seen in a turn without a reply": ([said(1, tool_call_count=1)], (1, 2, 2), 3, 3, ""),
}


@pytest.mark.parametrize("name", CALLS)
async def test_calls_count_where_each_reply_has_them(name: str) -> None:
    """The most of three sums over the conversation was lower than what its replies come to."""
    replies, calls, all_of_them, theirs, why = CALLS[name]
    note = f" ({why})" if why else ""
    judgement = await of_turns("max_tool_calls", all_of_them - 1, *replies, calls=calls, compat="documented")
    assert judgement.message == f"max_tool_calls: {all_of_them} > {all_of_them - 1}{note}"
    judgement = await of_turns("max_tool_calls", all_of_them, *replies, calls=calls, compat="documented")
    assert judgement.verdicts[0].reason == f"{all_of_them} ≤ {all_of_them}{note}"
    # The guide's harness takes its count, and no names.
    judgement = await of_turns("max_tool_calls", -1, *replies, calls=calls, compat="reference")
    assert judgement.message == f"max_tool_calls: {theirs} > -1"
    entries = [Entry(turn, "tool_call") for turn in calls]
    assert tool_calls(replies, entries) == all_of_them, "the Tools column says the same"
