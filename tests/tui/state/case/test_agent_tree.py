"""Networks of agents: helpers below the hand-off that called them, in the transcript and in the bars."""

from __future__ import annotations

from tests.tui.state.case.test_case_why import said
from tui_eval.model import Attempt, Entry
from tui_eval.tui.state.case.agent_tree import answer_to, reading_order
from tui_eval.tui.state.case.transcript_view import build
from tui_eval.tui.state.case.waterfall import bar_line, bars, members, unfolded
from tui_eval.tui.state.text.block_layout import Layouter, heads_of
from tui_eval.tui.state.text.blocks import Block


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
        (0, "hand-off", '→ planner.flights asked {"to": "LIS"} answered FR 1885.'),
        (1, "assistant", "Let me see."),
        (1, "hand-off", "→ fares answered 136 EUR."),
        (0, "hand-off", '→ planner.hotels asked {"city": "Lisbon"} answered No hotel.'),
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
        ("turn 1", 0), ("→ planner.flights", 0), ("→ fares", 1), ("flights", 1), ("→ planner.hotels", 0),
        ("find", 1), ("reply", 0), ("turn 2", 0), ("→ planner.visa", 0), ("reply", 0),
    ]  # fmt: skip
    assert made[0].entry == 0 and made[7].entry == 11, "a turn leads to what was asked"
    assert "── turn 2 ──" in said([bar_line(made[7], 1.0, 40, 10)])[0]
    assert list(members(made, 1)) == [2, 3] and not members(made, 8)


def test_bars_below_a_hand_off_fold_and_it_tells_of_what_failed_there() -> None:
    made = bars(attempt())
    folded = unfolded(made, {2})
    hotels = next(bar for bar in folded if bar.entry == 2)
    assert hotels.closed and hotels.failed and len(folded) == len(made) - 1
    assert "→ planner.hotels ▸" in said([bar_line(hotels, 1.0, 80, 30)])[0]
    assert unfolded(made, {12}) == made, "there is nothing to fold below it"
