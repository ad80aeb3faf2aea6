"""Networks of agents: helpers below the hand-off that called them, in the transcript and in the bars."""

from __future__ import annotations

from tests.tui.state.case.test_case_state import content
from tests.tui.state.case.test_case_why import said
from tui_eval.model import Attempt, Entry, Verdict
from tui_eval.tui.state.case.agent_tree import answer_to, reading_order, short_name
from tui_eval.tui.state.case.attempt_preview import preview_lines
from tui_eval.tui.state.case.live_transcript import LiveTranscript
from tui_eval.tui.state.case.transcript_view import build
from tui_eval.tui.state.case.waterfall import bar_line, bars, calls_by_agent, members, unfolded
from tui_eval.tui.state.runs.run_view import LiveAttempt, LivePiece
from tui_eval.tui.state.runs.step_view import step_view
from tui_eval.tui.state.text.block_layout import Layouter, heads_of
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.stream_text import StreamText, pieces_of


def network() -> list[Entry]:
    """A planner, two helpers at work beside each other, one with a helper of its own; two turns."""
    return [
        Entry(1, "user", text="Plan it", started_at=10.0),
        Entry(1, "hand_off", name="planner.flights", arguments={"to": "LIS"}, started_at=10.1),
        Entry(1, "hand_off", name="planner.hotels", arguments={"city": "Lisbon"}, started_at=10.2),
        Entry(1, "tool_call", agent="planner.hotels", name="find", call_id="h", started_at=10.3),
        Entry(1, "assistant", agent="planner.flights", text="Let me see.", started_at=10.3),
        Entry(1, "hand_off", agent="planner.flights", name="planner.flights.fares", started_at=10.4),
        Entry(
            1, "tool_result", agent="planner.hotels", name="find", call_id="h", error="down", started_at=10.5
        ),
        Entry(1, "assistant", agent="planner.flights.fares", text="136 EUR.", started_at=10.6),
        Entry(1, "assistant", agent="planner.hotels", text="No hotel.", started_at=10.7),
        Entry(1, "assistant", agent="planner.flights", text="FR 1885.", started_at=10.8, duration_ms=50),
        Entry(1, "assistant", text="Fly FR 1885.", started_at=10.9, duration_ms=50),
        Entry(2, "user", text="Visa?", started_at=20.0),
        Entry(2, "hand_off", name="planner.visa", started_at=20.1),
        Entry(2, "assistant", agent="planner.visa", text="None.", started_at=20.2),
        Entry(2, "assistant", text="You need none.", started_at=20.3, duration_ms=50),
    ]


def attempt(entries: list[Entry] | None = None) -> Attempt:
    return Attempt("n::n", 1, "passed", transcript=entries or network(), started_at=10.0)


def of_turn(turn: int) -> list[tuple[int, Entry]]:
    return [(index, entry) for index, entry in enumerate(network()) if entry.turn == turn]


def shown(blocks: list[Block]) -> list[tuple[int, str, str]]:
    return [
        (block.depth, block.label, " ".join(" ".join(said(block.lines())).split()))
        for block in blocks
        if block.kind != "turn"
    ]


def test_what_a_helper_did_stands_below_its_hand_off_in_the_order_in_which_it_did_it() -> None:
    order = reading_order(of_turn(1))
    assert [(index, node.depth - (node.index == index)) for index, _, node in order] == [
        (0, 0), (1, 0), (4, 1), (5, 1), (2, 0), (3, 1), (6, 1), (10, 0),
    ]  # fmt: skip
    with_answers = [index for index, _, _ in reading_order(of_turn(1), answers=True)]
    assert with_answers == [0, 1, 4, 5, 7, 9, 2, 3, 6, 8, 10]


def test_a_hand_off_shows_its_answer_beside_what_was_asked() -> None:
    blocks = build(attempt()).blocks
    assert shown(blocks)[:8] == [
        (0, "user", "Plan it"),
        (0, "hand-off", '→ flights asked {"to": "LIS"} answered FR 1885.'),
        (1, "assistant", "Let me see."),
        (1, "hand-off", "→ fares answered 136 EUR."),
        (0, "hand-off", '→ hotels asked {"city": "Lisbon"} answered No hotel.'),
        (1, "call", "find 200ms"),
        (1, "! error", "down"),
        (0, "assistant", "Fly FR 1885."),
    ]
    assert [block.group for block in blocks if block.kind == "hand_off"] == [True, False, True, False]
    entries = network()
    assert answer_to(entries, 2) is entries[8] and answer_to(entries[:8], 2) is None


def test_names_that_do_not_tell_of_their_callers_are_followed_too_and_strangers_stay() -> None:
    entries = [
        Entry(1, "user", text="x"),
        Entry(1, "hand_off", agent="front", name="helper"),
        Entry(1, "tool_call", agent="helper", name="own"),
        Entry(1, "tool_call", agent="front.helper.part", name="part"),
        Entry(1, "tool_call", agent="stranger", name="other"),
        Entry(1, "hand_off", agent="front", name="helper"),
        Entry(1, "assistant", agent="helper", text="second"),
        Entry(2, "tool_call", agent="helper", name="later"),
    ]
    view = build(attempt(entries)).blocks
    depths = {block.key: block.depth for block in view}
    assert [depths[f"e{index}"] for index in (1, 2, 3, 4, 5, 7)] == [0, 1, 1, 0, 0, 0]
    assert "answered second" in shown(view)[5][2] and "answered" not in shown(view)[1][2]


def test_a_helpers_part_folds_away_and_where_it_belongs_is_known() -> None:
    blocks = build(attempt()).blocks
    layouter = Layouter()
    whole = layouter.layout(blocks)
    head = next(i for i, block in enumerate(blocks) if block.key == "e1")
    layouter.closed.add("e1")
    closed = layouter.layout(blocks)
    rows = ["".join(span.text for span in row.spans) for row in closed.rows]
    assert "  … 2 parts folded: → unfolds" in rows and "  Let me see." not in rows and "  find  200ms" in rows
    assert len(closed.rows) < len(whole.rows) and len(closed.firsts) == len(blocks)
    fares = next(i for i, block in enumerate(blocks) if block.key == "e5")
    assert heads_of(blocks, fares) == [head] and heads_of(blocks, head) == []


def test_bars_stand_below_their_hand_off_under_their_turn() -> None:
    made = bars(attempt())
    assert [(bar.label, bar.depth) for bar in made] == [
        ("turn 1", 0), ("→ flights", 0), ("→ fares", 1), ("flights", 1), ("→ hotels", 0),
        ("find", 1), ("reply", 0), ("turn 2", 0), ("→ visa", 0), ("reply", 0),
    ]  # fmt: skip
    assert made[0].entry == 0 and made[7].entry == 11, "a turn leads to what was asked"
    assert "── turn 2 ──" in said([bar_line(made[7], 1.0, 40, 10)])[0]
    assert list(members(made, 1)) == [2, 3] and not members(made, 8)


def test_bars_below_a_hand_off_fold_and_it_tells_of_what_failed_there() -> None:
    made = bars(attempt())
    folded = unfolded(made, {2})
    hotels = next(bar for bar in folded if bar.entry == 2)
    assert hotels.closed and hotels.failed and len(folded) == len(made) - 1
    assert "→ hotels ▸" in said([bar_line(hotels, 1.0, 80, 30)])[0]
    assert unfolded(made, {12}) == made, "there is nothing to fold below it"


# -- while it runs


def live_network(count: int = 99) -> LiveAttempt:
    """So many pieces of the network's first turn, as they come in."""
    entries = [entry for entry in network() if entry.turn == 1]
    return pieces_of(entries[:count])


def test_a_helper_stands_below_its_hand_off_while_it_is_at_work() -> None:
    live = LiveTranscript()
    begun = live.update(live_network(7))
    assert shown(begun.blocks) == [
        (0, "user", "Plan it"),
        (0, "hand-off", '→ flights asked {"to": "LIS"} says Let me see.'),
        (1, "hand-off", "→ fares"),
        (0, "hand-off", '→ hotels {"city": "Lisbon"}'),
        (1, "call", "find 200ms"),
        (1, "result", "down"),
    ]
    whole = live.update(live_network())
    ended = build(attempt(network()[:11])).blocks
    assert [line for line in shown(whole.blocks) if line[1] != "result"] == [
        line for line in shown(ended) if line[1] != "! error"
    ], "what stands there when it has ended stands there just before"
    assert [block.group for block in whole.blocks if block.kind == "hand_off"] == [True, False, True]
    assert [(item.depth, item.text) for item in whole.outline] == [
        (0, "1 Plan it"), (1, "→ flights"), (2, "→ fares"), (1, "→ hotels"), (2, "find"),
    ]  # fmt: skip


def test_what_a_helper_says_is_its_answer_once_its_caller_goes_on() -> None:
    def said_of(count: int) -> str:
        return next(
            words
            for _, label, words in shown(LiveTranscript().update(live_network(count)).blocks)
            if label == "hand-off"
        )

    assert said_of(10).endswith("says FR 1885.") and said_of(11).endswith("answered FR 1885.")


def test_only_what_grew_is_laid_out_again_in_a_running_network() -> None:
    live = LiveTranscript()
    first = live.update(live_network(5)).blocks
    second = live.update(live_network(6)).blocks
    kept = {block.key for block in first for other in second if other is block}
    assert kept == {block.key for block in first} and len(second) == len(first) + 1
    third = live.update(live_network(10)).blocks  # the helper's last words stand in the hand-off
    assert next(one.key for one, other in zip(third, second, strict=False) if one is not other) == "e1"


def test_a_pane_indents_what_helpers_do_and_names_whoever_goes_on() -> None:
    stream = StreamText(60)
    whole = live_network()
    for count in range(1, len(whole.pieces) + 1):  # piece by piece, as it comes
        stream.feed(LiveAttempt(whole.pieces[:count]))
    assert [line for _, line in stream.lines] == [
        "> Plan it",
        '→ flights {"to": "LIS"}',
        '→ hotels {"city": "Lisbon"}',
        "  hotels:",
        "  ▸ find()",
        "  flights:",
        "  Let me see.",
        "  → fares",
        "  hotels:",
        "  ◂ 200ms down",
        "    fares:",
        "    136 EUR.",
        "  hotels:",
        "  No hotel.",
        "  flights:",
        "  FR 1885.",
        "Fly FR 1885.",
    ]


def test_a_helpers_text_that_arrives_in_pieces_stays_indented_in_a_pane() -> None:
    hand_off = LivePiece(0, "hand_off", "", "", "boss.poet", "", 0.0)
    text = "roses are red, violets are blue\n\nand so on and so forth"
    live = LiveAttempt([hand_off, LivePiece(1, "assistant", "boss.poet", "", "", "", 0.0)])
    stream = StreamText(20)
    for letter in text:
        live.pieces[1].text += letter
        live.version += 1
        stream.feed(live)
    whole = StreamText(20)
    whole.feed(live)
    lines = [line for _, line in stream.lines]
    assert lines == [line for _, line in whole.lines] and max(map(len, lines)) <= 20
    assert lines[:4] == ["→ poet", "  poet:", "  roses are red,", "  violets are blue"]


# -- the table of calls


def test_calls_stand_below_the_hand_off_to_who_made_them() -> None:
    calls = calls_by_agent(bars(attempt()))
    assert [(bar.label, bar.depth) for bar in calls] == [
        ("→ flights", 0), ("→ fares", 1), ("→ hotels", 0), ("find", 1), ("→ visa", 0),
    ]  # fmt: skip
    assert (calls[0].asked, calls[0].answered, calls[0].length) == ('{"to": "LIS"}', "FR 1885.", 8)
    alone = [Entry(1, "user", text="x"), Entry(1, "tool_call", name="find", call_id="1")]
    assert calls_by_agent(bars(attempt(alone))) == [], "a table without hand-offs is as it was"


# -- beside a list


def test_beside_a_list_helpers_are_indented_and_a_hand_off_is_one_line_with_its_answer() -> None:
    lines = [line.rstrip() for line in said(preview_lines(content(attempt()), turn=1))]
    assert lines[lines.index("turn 1 of 2  > Plan it") :] == [
        "turn 1 of 2  > Plan it",
        '→ flights {"to": "LIS"}  = FR 1885.',
        "  Let me see.",
        "  → fares  = 136 EUR.",
        '→ hotels {"city": "Lisbon"}  = No hotel.',
        "  ↳ find",
        "  down",
        "Fly FR 1885.",
    ]


def test_beside_a_list_what_was_wanted_is_said_once() -> None:
    wanted = Verdict("should_contain", False, expected="Ryanair", reason='lacks "Ryanair"')
    failed = attempt()
    failed.outcome, failed.verdicts = "failed", [wanted]
    lines = [line.rstrip() for line in said(preview_lines(content(failed)))]
    assert lines[1] == '✗ lacks "Ryanair"  should_contain' and sum("Ryanair" in line for line in lines) == 1
    unwanted = Verdict("should_not_contain", False, expected="paragraph", reason='has "Paragraph"')
    failed.verdicts = [unwanted]
    assert said(preview_lines(content(failed)))[1].rstrip() == '✗ has "Paragraph"  should_not_contain'


def test_in_a_step_helpers_are_indented_under_their_hand_off() -> None:
    said_so_far = step_view(None, live_network()).paragraphs
    assert [text for _, text in said_so_far if text][1:5] == [
        '→ flights {"to": "LIS"}', "  flights: Let me see.", "  → fares", "    fares: 136 EUR.",
    ]  # fmt: skip
    assert said_so_far[-1][1] == "Fly FR 1885."


def test_a_helper_is_called_without_its_callers_and_a_version_is_part_of_a_name() -> None:
    names = ["planner.hotels", "hotels", "gpt-4.1", "support.v2", "planner.hotels-02", "dot."]
    assert [short_name(name) for name in names] == [
        "hotels",
        "hotels",
        "gpt-4.1",
        "support.v2",
        "hotels-02",
        "dot.",
    ]


def test_a_reply_streamed_with_calls_between_its_parts_is_read_once() -> None:
    parts = [
        Entry(1, "user", text="x"),
        Entry(1, "assistant", text="Let me see. "),
        Entry(1, "tool_call", name="look", call_id="1"),
        Entry(1, "tool_result", name="look", call_id="1", result=7),
        Entry(1, "assistant", text="It is 7."),
    ]
    whole = [*parts, Entry(1, "assistant", text="Let me see. It is 7.")]
    assert shown(build(attempt(whole)).blocks) == shown(build(attempt(parts)).blocks)
    panes = [StreamText(60), StreamText(60)]
    for pane, entries in zip(panes, (whole, parts), strict=True):
        pane.feed(pieces_of(entries))
    assert panes[0].lines == panes[1].lines
    other = [*parts, Entry(1, "assistant", text="It is 7, as I said.")]
    assert len(shown(build(attempt(other)).blocks)) == len(shown(build(attempt(parts)).blocks)) + 1
