"""What the inspector shows, tested without an app."""

from __future__ import annotations

import json

import msgspec
import pytest

from tests.support.attempts import (
    EVERY,
    HOSTILE,
    hallucinated_argument,
    huge,
    judged,
    missing_row,
    multi_agent,
    text_failure,
    wrong_cell,
)
from tests.support.judged_evidence import evidenced
from tests.support.work import calls_of
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.model import Attempt, Case, Entry, Evidence, Outcome, Reply, Verdict
from tui_eval.store.schema import AttemptRow, AttemptState
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case import assertions_view, copying, raw_view, tools_view
from tui_eval.tui.state.case.case_content import CaseContent, choose, deciding, head
from tui_eval.tui.state.case.case_history import CasePast
from tui_eval.tui.state.case.case_tabs import TABS, badges, filled, next_filled, tab_at, tab_line
from tui_eval.tui.state.case.entry_blocks import markdown_lines
from tui_eval.tui.state.case.expectation_marks import Expectations
from tui_eval.tui.state.case.live_transcript import LiveTranscript
from tui_eval.tui.state.case.tool_pairing import in_reading_order, pair
from tui_eval.tui.state.case.transcript_view import Transcript, build
from tui_eval.tui.state.case.verdict_lines import failed_first
from tui_eval.tui.state.data.data_blocks import sql_lines
from tui_eval.tui.state.data.data_view import make
from tui_eval.tui.state.runs.run_view import LiveAttempt, LivePiece
from tui_eval.tui.state.text.block_layout import Layouter, find_all, with_marks
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.json_lines import json_lines, short, value_lines
from tui_eval.tui.state.text.lines import (
    Mark,
    Span,
    cut,
    fit,
    letters,
    marked,
    pattern,
    plain,
    text_lines,
    width_of,
    wrap,
)
from tui_eval.tui.state.text.text_difference import difference, nearest


def shown(view: Transcript) -> list[str]:
    """Every line with its block's label."""
    return [f"{block.label}|{plain(line)}" for block in view.blocks for line in block.lines()]


def styled(lines, word: str) -> list[str]:
    return [span.text for line in lines for span in line if word in span.style.split()]


# -- lines


@pytest.mark.parametrize("width", [5, 11, 20, 79])
@pytest.mark.parametrize(
    "text",
    [
        "a word or two and morethanfitsintoarow here",
        "日本語のテキスト and ascii",
        "    indented text that goes on and on",
        "",
    ],
)
def test_wrapping_loses_nothing_and_stays_within_the_width(text: str, width: int) -> None:
    rows = wrap((Span(text[:4], "x"), Span(text[4:])), width)
    assert all(width_of(line) <= max(width, 2) for _, _, line in rows)
    joined = "".join(plain(line)[indent:] for _, indent, line in rows)
    assert joined.replace(" ", "") == text.replace(" ", "")
    for start, indent, line in rows:
        assert text[start:].startswith(plain(line)[indent:])


def test_marks_follow_their_text_into_wrapped_rows() -> None:
    block = Block("b", "user", "user", lambda: iter(((Span("  one two three four five six"),),)))
    layouter = Layouter()
    layouter.width = 14
    layout = layouter.layout([block])
    hit = find_all([block], pattern("four"))[0]
    row = layout.rows[layout.row_of(hit.block, hit.line, hit.start)]
    assert styled([with_marks(row, [Mark(hit.start, hit.end, "hit")])], "hit") == ["four"]


def test_cut_marked_fit_and_letters() -> None:
    line = (Span("ab", "x"), Span("cdef"))
    assert cut(line, 1, 4) == (Span("b", "x"), Span("cd"))
    assert styled([marked(line, [Mark(1, 3, "hit")])], "hit") == ["b", "c"]
    assert plain(fit((Span("日本語"),), 4)) == "日…"
    assert letters("✓ passed · 日…") == "P passed . ??~"
    assert letters("👩\u200d👧! e\u0301 1\ufe0f\u20e3") == "??! e 1?"  # as wide as it was


def test_a_search_ignores_case_unless_a_capital_is_typed() -> None:
    assert pattern("refund").search("Refund") and not pattern("Refund").search("refund")
    assert pattern("[a").search("x[A")


# -- JSON


def test_json_stands_on_one_line_where_it_fits_and_is_indented_elsewhere() -> None:
    assert [plain(line) for line in json_lines({"a": 1, "b": [True, None, "x"]})] == [
        '{"a": 1, "b": [true, null, "x"]}'
    ]
    value = {"rows": [{"n": n, "text": "x" * 20} for n in range(5)], "deep": {"k": {"l": "y" * 70}}}
    text = "\n".join(plain(line) for line in json_lines(value))
    assert json.loads(text) == value
    assert '    {"n": 0, "text": "xxxxxxxxxxxxxxxxxxxx"},' in text


def test_json_texts_of_several_lines_are_shown_as_lines_when_rendered() -> None:
    value = {"sql": "SELECT 1\nFROM t", "x": "y" * 80}
    assert "    FROM t" in [plain(line) for line in json_lines(value)]
    assert json.loads("".join(plain(line) for line in json_lines(value, rendered=False))) == value


def test_json_never_fails() -> None:
    deep: list = []
    for _ in range(500):
        deep = [deep, HOSTILE, float("nan"), 10**30]
    text = "".join(plain(line) for line in json_lines(deep))
    assert not {c for c in text if ord(c) in CONTROL_TABLE}
    assert len(short(deep, 40)) <= 40
    assert [plain(line) for line in value_lines('{"a": [1, 2]}')] == ['{"a": [1, 2]}']
    assert [plain(line) for line in value_lines("{broken")] == ["{broken"]


# -- texts against each other


def test_differing_words_and_characters() -> None:
    expected, actual = difference("The fee is 30 EUR, payable now.", "The fee is 35 EUR, payable later.")
    assert styled(expected, "removed") == ["0", "now"]
    assert styled(actual, "added") == ["5", "later"]
    same, other = difference("a\nb", "a\nb")
    assert same == other and not styled(same, "removed")


def test_the_nearest_place_is_found_whole_words() -> None:
    text = "Unfortunately the refunds policy covers only 30 days."
    place = nearest("Refund policy", text)
    assert place is not None and text[slice(*place)] == "refunds policy"
    assert nearest("zebra crossing", text) is None


def test_expectations_mark_found_forbidden_and_near_texts() -> None:
    verdicts = text_failure().verdicts[1:3]
    text = "The refunds policy.\nI am ESCALATING it."
    for verdict in verdicts:
        verdict.turn, verdict.evidence = 1, None
    attempt = evidenced(Attempt("s::n", 1, "failed", replies=[Reply(1, text)], verdicts=verdicts))
    lines = list(Expectations(verdicts, attempt).mark(text_lines(text)))
    assert "".join(styled(lines, "hit-near")) == "refunds policy" and styled(lines, "added") == ["s"]
    assert styled(lines, "hit-forbidden") == ["ESCALAT"]
    case_counts = Verdict("contains", True, "text", "Abc", score=1)
    attempt = evidenced(Attempt("s::n", 1, "passed", replies=[Reply(1, "abc Abc")], verdicts=[case_counts]))
    marks = Expectations([case_counts], attempt).mark(text_lines("abc Abc"))
    assert styled(marks, "hit-wanted") == ["Abc"]
    assert not Expectations([Verdict("sql", False, "rows", "x")])


# -- transcripts


def test_verdicts_stand_after_the_turn_they_belong_to() -> None:
    lines = shown(build(text_failure()))
    assert lines.index('✓ passed|should_contain "order"') < lines.index("turn 2|1.9s · 1,204+41 tokens")
    failed = lines.index('✗ failed|should_contain "Refund policy"')
    assert lines.index("turn 3|2.1s · 1,310+77 tokens") < failed < lines.index("whole conversation|")
    assert lines[-1] == "✓ passed|max_tool_calls 4"


def test_only_what_failed() -> None:
    view = build(text_failure(), only_failing=True)
    assert {block.turn for block in view.blocks} == {3}
    assert not any("passed" in block.label for block in view.blocks)
    assert "Nothing failed here" in shown(build(huge(2), only_failing=True))[0]


def test_results_follow_their_calls_and_durations_are_theirs() -> None:
    lines = shown(build(text_failure()))
    call = next(i for i, line in enumerate(lines) if "search_knowledge_base" in line)
    assert "300ms" in lines[call] and lines[call + 1].startswith("result|Our policy")
    assert lines[call + 3] == "! error|404: no plan for c-1041"


def test_a_result_after_other_things_stays_where_it_came() -> None:
    entries = [
        Entry(1, "tool_call", name="a", call_id="1"),
        Entry(1, "hand_off", name="other"),
        Entry(1, "tool_result", name="a", call_id="1", result="x"),
        Entry(1, "tool_result", name="b", call_id="unknown", result="y"),
    ]
    calls = pair(entries)
    assert [call.apart for call in calls] == [True, True]
    assert [index for index, _ in in_reading_order(list(enumerate(entries)))] == [0, 1, 2, 3]


def test_calls_without_ids_pair_by_name() -> None:
    entries = [
        Entry(1, "tool_call", name="a"),
        Entry(1, "tool_call", name="b"),
        Entry(1, "tool_result", name="b", result=2),
        Entry(1, "tool_result", name="a", result=1),
    ]
    assert [call.result_entry.result for call in pair(entries) if call.result_entry] == [1, 2]


def test_the_outline_names_turns_calls_hand_offs_and_errors() -> None:
    texts = [(item.depth, item.glyph, item.text) for item in build(text_failure()).outline]
    assert (0, "✗", "3 So what now?") in texts and (1, "!", "get_plan") in texts
    assert (1, "", "→ special_items") in [(i.depth, i.glyph, i.text) for i in build(multi_agent()).outline]


@pytest.mark.parametrize("make_attempt", EVERY)
@pytest.mark.parametrize("rendered", [True, False])
def test_every_attempt_shows_in_every_view_without_control_characters(make_attempt, rendered: bool) -> None:
    attempt = make_attempt()
    blocks = [
        *build(attempt, rendered=rendered).blocks,
        *assertions_view.build(attempt, rendered=rendered),
        *raw_view.build(attempt, rendered=rendered),
    ]
    for row in [*tools_view.rows(attempt), None]:
        blocks += tools_view.detail(attempt, row, rendered=rendered)
    text = "".join(plain(line) for block in blocks for line in block.lines())
    assert text and not {c for c in text if ord(c) in CONTROL_TABLE}
    layout = Layouter().layout(blocks)
    assert all(width_of(row.spans) <= 80 for row in layout.rows)


def test_a_raw_view_shows_the_text_as_it_came() -> None:
    assert any("**88231**" in line for line in shown(build(text_failure(), rendered=False)))
    assert not any("**88231**" in line for line in shown(build(text_failure())))


def test_markdown_keeps_the_words() -> None:
    lines = [
        plain(line)
        for line in markdown_lines(
            "# T\n- a **b** `c`\n```py\n**x**\n```\n| n | w |\n|--:|---|\n| 12 | a |\n"
        )
    ]
    assert lines == ["T", "• a b c", "```py", "**x**", "```", "n  │ w", "───┼──", "12 │ a", ""]


def test_long_parts_fold_and_very_long_ones_are_cut() -> None:
    view = build(huge(50, 1_000_000))
    layouter = Layouter()
    layout, calls = calls_of(lambda: layouter.layout(view.blocks))
    short = build(huge(50, 1_000))
    _, fewer = calls_of(lambda: Layouter().layout(short.blocks))
    assert calls < 1.5 * fewer, "a thousandfold text is hardly more work"
    big = next(block for block in view.blocks if block.size > 500_000)
    assert big.foldable and layouter.is_folded(big)
    layouter.folded[big.key] = False
    rows = [row for row in layouter.layout(view.blocks).rows if view.blocks[row.block] is big]
    assert "p shows all of it" in plain(rows[-1].spans)
    assert len(layout.rows) < 3000
    assert sum(len(part) for part in big.text()) > 900_000


# -- the other tabs


def test_tools_compare_expected_arguments_one_by_one() -> None:
    attempt = hallucinated_argument()
    rows = tools_view.rows(attempt)
    assert rows[0].verdict == "failed" and rows[0].took == "420ms"
    lines = [plain(line) for block in tools_view.detail(attempt, rows[0]) for line in block.lines()]
    assert 'month: "2026-03"  ≠ "2026-05"' in lines and 'status: "paid"  ✓' in lines
    assert any("get_currency" in line for line in lines)


def test_assertions_show_text_against_text_and_the_judge() -> None:
    blocks = assertions_view.build(judged())
    assert [block.label for block in blocks if block.kind == "verdict"] == [
        "✗ failed",
        "! error",
        "✓ passed",
        "✓ passed",
    ]
    assert styled([line for block in blocks for line in block.lines()], "removed")
    text = "\n".join(plain(line) for block in assertions_view.build(multi_agent()) for line in block.lines())
    assert "gpt-4.1-mini answered · 210+14 tokens" in text and "does not mention the fee" in text
    assert len([b for b in assertions_view.build(judged(), only_failing=True) if b.kind == "verdict"]) == 2


def test_raw_shows_status_times_and_what_was_printed() -> None:
    text = "\n".join(f"{b.label} {plain(line)}" for b in raw_view.build(text_failure()) for line in b.lines())
    assert (
        "status 429 · 212ms" in text and "retried after 1.0 s" in text and "connected to shop.duckdb" in text
    )


def test_raw_shows_the_metadata_of_each_reply() -> None:
    replies = [Reply(1, "a", metadata={"lang": "en"}), Reply(2, "b"), Reply(3, "c", metadata={"lang": "de"})]
    attempt = Attempt("s::x", 1, "passed", replies=replies)
    shown = [(block.label, block.turn, *map(plain, block.lines())) for block in raw_view.build(attempt)]
    assert shown == [("metadata", 1, '{"lang": "en"}'), ("metadata", 3, '{"lang": "de"}')]


def test_sql_keeps_its_text() -> None:
    sql = "SELECT a, 'x' -- why\nFROM t\n  WHERE b > 1.5"
    lines = list(sql_lines(sql))
    assert "\n".join(plain(line) for line in lines) == sql
    assert styled(lines, "json-key")[0] == "SELECT"


def test_data_counts_explains_and_finds_differences() -> None:
    attempt = wrong_cell()
    assert attempt.data is not None
    view = make(attempt.data)
    assert plain(view.summary()) == "≠ 1 of 4 rows differs in revenue · key: region (given)"
    place = view.next_difference(-1, 1)
    assert place is not None and view.next_difference(place, 1) is None
    explained = [plain(line) for line in view.explain(place, view.first_bad_column(place))]
    assert explained[0].startswith("revenue in row 3 (region=east) ≠ off by 0.75, allowed")
    assert explained[1:] == ["expected 1006.5", "actual   1007.25"]
    view.only = True
    assert len(view) == 1 and view.aligned(0) == place and view.place(place) == 0


def test_data_says_what_was_not_kept_and_which_rows_moved() -> None:
    details = wrong_cell().data
    assert details is not None and details.expected is not None
    details.actual = list(reversed(details.expected))
    details.settings = {"key": ["region"], "ordered": True, "truncated": {"expected": 9000, "actual": 8000}}
    view = make(details)
    assert "↕ 3 in another place" in plain(view.summary())
    assert "only the first 4 are kept: rows beyond may seem missing" in plain(view.summary())
    place = view.next_difference(-1, 1)
    assert place is not None and view.mark(view.row(place)) == "↕"
    assert "in another place" in plain(view.explain(place, 0)[0])


def test_data_says_missing_and_extra_rows() -> None:
    details = missing_row().data
    assert details is not None
    view = make(details)
    assert "− 1 missing" in plain(view.summary()) and "+ 1 extra" in plain(view.summary())
    words = [plain(view.explain(i, 0)[0]) for i in range(len(view))]
    assert any("lacks this row" in line for line in words) and any("too many" in line for line in words)
    assert "row" in view.text()


# -- head, attempts, copying


def row(number: int, state: AttemptState = "done", outcome: Outcome | None = "passed") -> AttemptRow:
    return AttemptRow(
        number, 1, number, state, outcome, None, "", None, None, None, None, None, None, None, 0, "", number
    )


def content(attempt: Attempt | None, rows: list[AttemptRow] | None = None) -> CaseContent:
    made = CaseContent(
        CasePointer(attempt.case_id if attempt else "s.yaml::n"), "late refund", "suites/refunds.yaml"
    )
    made.rows = (
        rows
        if rows is not None
        else [row(1, outcome="failed"), row(2, outcome="passed"), row(3, "running", None)]
    )
    made.row = made.rows[0] if made.rows else None
    made.attempt = attempt
    return made


def test_the_head_says_outcome_place_and_reason() -> None:
    lines = [plain(line) for line in head(content(text_failure()), 120)]
    assert lines[0].startswith("✗ failed  suites/refunds.yaml › late refund › attempt 1 of 3 ✗✓●")
    assert lines[1].startswith('lacks "Refund policy"; has "escalat"')
    assert all(width_of(line) <= 40 for line in head(content(text_failure()), 40))
    assert plain(head(content(None, []), 80)[1]) == "not run yet: r runs it"


def test_the_attempt_to_show_is_the_one_that_failed_first() -> None:
    rows = [row(1), row(2, outcome="error"), row(3, "running", None)]
    assert choose(rows, None) is rows[1] and choose(rows, 3) is rows[2] and choose([], None) is None
    assert choose([row(1), row(2, "running", None)], None).id == 2  # type: ignore[union-attr]


def test_the_deciding_verdict_and_the_badges() -> None:
    assert deciding(text_failure().verdicts) == 1 and deciding(wrong_cell().verdicts) == 0
    assert deciding([Verdict("a", True)]) is None and deciding([Verdict("a", None)]) == 0
    assert badges(text_failure()) == ("", "3", "2✗", "", "2", "") and badges(wrong_cell())[3] == "✗"
    unjudged = wrong_cell()  # the expected query could not be run, say
    unjudged.verdicts = [msgspec.structs.replace(one, passed=None) for one in unjudged.verdicts]
    assert badges(unjudged)[3] == "!"
    assert (
        "3 Assertions" in plain(tab_line(2, content(judged()), 80))
        and width_of(tab_line(0, content(judged()), 80)) <= 80
    )


@pytest.mark.parametrize("width", [80, 60, 47, 27])
@pytest.mark.parametrize("tab", range(6))
def test_the_open_tab_is_named_however_narrow_it_is(tab: int, width: int) -> None:
    line = tab_line(tab, content(text_failure()), width)
    name = ("1 Transcript", "2 Tools", "3 Assertions 2✗", "4 Data", "5 Raw", "6 History")
    words = " ".join(plain(line).split())
    assert name[tab] in words and "…" not in words and width_of(line) <= width
    if width >= 47:
        assert all(f"{number} " in f"{words} " for number in range(1, 7))


def test_names_of_tabs_are_whole_at_60_columns() -> None:
    """They were cut in the middle: `2 Too   3 Ass 2✗   4 Dat`, at 70 `6 Histor`."""
    for width in (60, 66, 70):
        words = plain(tab_line(0, content(text_failure()), width)).split()
        assert [word for word in words if word.isalpha()] in (
            ["Transcript", "Tools", "Asserts", "Data", "Raw", "History"],
            ["Transcript", "Tools", "Assertions", "Data", "Raw", "History"],
        )
        assert "2✗" in words and (width > 66 or words.count("3") == 1)


@pytest.mark.parametrize("calls", [17, 99, 120])
def test_a_click_on_a_badge_opens_its_own_tab(calls: int) -> None:
    """`Tools 99` was taken for tab 9: the app ended."""
    many = Attempt("a::b", 1, "passed", transcript=[Entry(1, "tool_call", name="t") for _ in range(calls)])
    line = tab_line(0, content(many), 120)
    badge = plain(line).index(str(calls))
    assert [tab_at(line, badge + at) for at in range(len(str(calls)))] == [1] * len(str(calls))


def test_tabs_with_nothing_to_show_are_dim_and_passed_over() -> None:
    silent = Attempt("a::b", 1, "passed", transcript=[Entry(1, "user", text="x")])
    assert filled(content(silent)) == (True, False, False, False, False, True)
    assert filled(content(wrong_cell()))[3] and not filled(content(text_failure()))[3]
    assert filled(content(None, [])) == (True, False, False, False, False, True)
    dim = [span.text.split()[1] for span in tab_line(0, content(silent), 80) if span.style == "tab-empty"]
    assert dim == ["Tools", "Assertions", "Data", "Raw"]
    assert [next_filled(content(silent), at, 1) for at in (0, 5)] == [5, 0]
    assert [next_filled(content(text_failure()), at, -1) for at in (4, 0)] == [2, 5]
    nothing = content(silent)
    nothing.past = CasePast()
    assert next_filled(nothing, 0, 1) == 0 and len(filled(nothing)) == len(TABS)


def test_a_hand_off_or_an_assertion_on_tools_fills_tools() -> None:
    network = Attempt("a::b", 1, "passed", transcript=[Entry(1, "hand_off", name="helper")])
    missing = Attempt("a::b", 1, "failed", verdicts=[Verdict("tool_call", False, target="tools")])
    assert filled(content(network))[1] and filled(content(missing))[1]


def test_what_is_copied() -> None:
    made = content(wrong_cell())
    assert json.loads(copying.text_of(made, "e"))[0]["region"] == "north"
    assert copying.text_of(made, "i") == "tests/revenue.yaml::revenue by region"
    assert copying.text_of(made, "p") == "What is the revenue by region?"
    assert (
        copying.text_of(made, "c")
        == "tui-eval run suites/refunds.yaml --select 'tests/revenue.yaml::revenue by region'"
    )
    assert copying.text_of(content(text_failure()), "e") == "Refund policy"
    assert copying.text_of(content(None), "a") == ""


# -- while it runs


def test_a_running_attempt_keeps_the_blocks_that_did_not_grow() -> None:
    live = LiveAttempt()
    live.pieces.append(LivePiece(1, "user", "", "hello", "", "", 0.0))
    live.pieces.append(LivePiece(2, "assistant", "", "I", "", "", 0.0))
    transcript = LiveTranscript()
    first = transcript.update(live)
    live.pieces[-1].text += " think"
    live.pieces.append(LivePiece(3, "tool_call", "", '{"q": 1}', "find", "c1", 0.0))
    second = transcript.update(live)
    assert second.blocks[1] is first.blocks[1] and second.blocks[2] is not first.blocks[2]
    assert shown(second) == ["turn 1|running", "user|hello", "assistant|I think", 'call|find  {"q": 1}']
    assert [item.text for item in second.outline] == ["1 hello", "find"]


def test_only_the_last_turn_of_a_running_attempt_runs() -> None:
    live = LiveAttempt()
    transcript = LiveTranscript()
    for turn in range(1, 4):
        live.pieces.append(LivePiece(2 * turn, "user", "", f"ask {turn}", "", "", 0.0))
        live.pieces.append(LivePiece(2 * turn + 1, "assistant", "", "so", "", "", 0.0))
        transcript.update(live)
    view = transcript.update(live)
    rules = [block for block in view.blocks if block.kind == "turn"]
    assert [shown(Transcript(blocks=[rule])) for rule in rules] == [[], [], ["turn 3|running"]]
    assert [(item.text, item.style) for item in view.outline] == [
        ("1 ask 1", ""), ("2 ask 2", ""), ("3 ask 3", "running")
    ]  # fmt: skip
    again = transcript.update(live)
    assert [block for block in again.blocks if block.kind == "turn"] == rules, "none is laid out again"


def test_an_attempt_without_verdicts_says_why_there_are_none() -> None:
    def words(outcome: Outcome) -> str:
        block = assertions_view.build(Attempt("s::c", 1, outcome))[0]
        return "\n".join(block.text())

    assert words("error").startswith("No verdicts") and words("cancelled").startswith("No verdicts")
    assert words("passed") == "Nothing was asserted of this case."


def test_a_running_attempt_that_said_nothing_says_what_it_waits_for() -> None:
    assert shown(LiveTranscript().update(None, "429, again in 12 s")) == ["|429, again in 12 s"]


def test_a_search_makes_no_lines_of_long_results_that_cannot_hold_it() -> None:

    made: list[str] = []
    text = json.dumps([{"name": f"row {i} 日本"} for i in range(2000)])
    attempt = Attempt("s::n", 1, "passed", transcript=[Entry(1, "tool_result", name="q", result=text)])
    block = build(attempt).blocks[-1]
    source, block.source = block.source, lambda: made.append("made") or source()
    assert find_all([block], pattern("nowhere")) == [] and not made
    assert find_all([block], pattern("row 7 日本")) and made


def test_a_long_line_is_wrapped_no_further_than_it_is_shown() -> None:
    line = (Span("word " * 20_000),)
    assert len(wrap(line, 40, 3)) == 3 and wrap(line, 40, 3) == wrap(line, 40)[:3]


def test_a_rule_is_one_row_however_long_its_words() -> None:
    layouter = Layouter()
    layouter.width = 30
    rule = Block("t", "turn", "prompt", lambda: iter(((Span("word " * 30),),)))
    assert len(layouter.layout([rule]).rows) == 1


def test_what_failed_stands_first_and_parts_of_a_set_below_it() -> None:
    verdicts = [
        Verdict("contains", True, expected="a"),
        Verdict("assert-set", False),
        Verdict("contains", True, expected="b", set=1),
        Verdict("contains", False, expected="c", set=1),
        Verdict("contains", None, expected="d"),
        Verdict("contains", False, expected="e"),
    ]
    assert [index for index, _ in failed_first(enumerate(verdicts))] == [1, 2, 3, 5, 4, 0]
    attempt = Attempt("a::b", 1, "failed", transcript=[Entry(0, "user", text="x")], verdicts=verdicts)
    shown = [block.key for block in build(attempt).blocks if block.kind == "verdict"]
    assert shown == ["v1", "v2", "v3", "v5", "v4", "v0"]


def script_verdict() -> Attempt:
    reply = "It lasts **24 months**.\nFrom the day of purchase."
    verdict = Verdict(
        "python",
        False,
        expected="file://asserts/length.py",
        actual=reply,
        reason="Python code returned false\nfile://asserts/length.py",
        line=7,
        evidence=[Evidence("rule", "script", text="returned false")],
    )
    passed = Verdict("contains", True, expected="24", actual=reply, line=6)
    return Attempt(
        "a.yaml::b", 1, "failed", transcript=[Entry(1, "assistant", text=reply)], replies=[Reply(1, reply)],
        verdicts=[passed, verdict],
    )  # fmt: skip


def test_below_what_failed_stands_the_whole_reply_and_code_is_not_called_expected() -> None:
    case = Case("a.yaml::b", "b", "a.yaml", "promptfoo")
    blocks = assertions_view.build(script_verdict(), case=case)
    assert [block.label for block in blocks] == [
        "whole conversation", "✗ failed", "reply", "whole conversation · passed", "✓ passed",
    ]  # fmt: skip
    said = [plain(line) for line in blocks[1].lines()]
    assert "a.yaml:7" in said[0] and "script    file://asserts/length.py" in said
    assert not any(line.startswith(("expected", "actual", "reply")) for line in said)
    assert [plain(line) for line in blocks[2].lines()] == ["It lasts 24 months.", "From the day of purchase."]
    assert any(line.startswith("expected") for line in (plain(one) for one in blocks[4].lines()))


def test_a_line_whose_file_is_not_certain_is_named_alone() -> None:
    case = Case("a.yaml::b", "b", "a.yaml", "promptfoo", file="rows.csv", line=6)
    said = [
        plain(b.lines()[0]) for b in assertions_view.build(script_verdict(), case=case) if b.kind == "verdict"
    ]
    assert "line 7" in said[0] and "rows.csv" not in said[0] and "rows.csv:6" in said[1]


def test_nothing_that_is_about_calls_or_rows_repeats_the_reply() -> None:
    calls = text_failure()
    calls.verdicts = [
        Verdict("tool_call", False, target="tools"),
        Verdict("latency", False, target="latency"),
    ]
    assert not any(block.label == "reply" for block in assertions_view.build(calls))
    assert not any(block.label == "reply" for block in assertions_view.build(wrong_cell()))


def test_a_judges_question_does_not_repeat_the_reply_that_stands_below() -> None:
    attempt = script_verdict()
    reply = attempt.replies[0].text + " " * 3 + "More of it, so that it is worth leaving out here."
    attempt.replies[0].text = reply
    attempt.verdicts = [
        Verdict("llm-rubric", False, expected="is kind", actual=reply, judge={"question": f"Judge: {reply}!"})
    ]
    blocks = assertions_view.build(attempt)
    said = "\n".join(plain(line) for line in blocks[1].lines())
    assert "Judge: … the reply …!" in said and "rubric    is kind" in said
    raw = "\n".join(plain(line) for b in assertions_view.build(attempt, rendered=False) for line in b.lines())
    assert "More of it" in raw


def test_an_agents_traceback_stands_at_the_end_of_the_transcript() -> None:
    trace = 'Traceback (most recent call last):\n  File "bot.py", line 2, in answer\n    return ORDERS["9"]\nKeyError: \'9\'\n'
    attempt = Attempt("a::b", 1, "error", error="bot.py:answer: KeyError: no key '9' (bot.py:2)")
    attempt.transcript = [Entry(1, "user", text="hi"), Entry(1, "error", error=attempt.error)]
    attempt.evidence = [Evidence("agent", "script-raised", text="KeyError", actual=trace)]
    view = build(attempt)
    assert view.blocks[-1].label == "traceback"
    assert [plain(line) for line in view.blocks[-1].lines()][-1] == "KeyError: '9'"
    attempt.evidence = [Evidence("agent", "server-failed", text="503", actual=503)]
    assert build(attempt).blocks[-1].label != "traceback"


@pytest.mark.parametrize(
    ("outcome", "words"),
    [("passed", "Everything passed"), ("cancelled", "It was cancelled while it was judged")],
)
def test_what_was_judged_of_a_cancelled_attempt_is_not_everything(outcome: Outcome, words: str) -> None:
    attempt = Attempt("s::c", 1, outcome, verdicts=[Verdict("contains", True)])
    (block,) = assertions_view.build(attempt, only_failing=True)
    assert plain(block.lines()[0]).startswith(words)


def test_raw_of_an_agent_that_was_not_asked_does_not_say_what_the_agent_speaks() -> None:
    def said(attempt: Attempt) -> str:
        return " ".join(plain(line) for block in raw_view.build(attempt) for line in block.lines())

    refused = Attempt("c", 1, "error", transcript=[Entry(0, "error", text="agents.web.api_key is not set")])
    assert said(refused) == "Nothing was sent: the agent was not asked."
    answered = Attempt(
        "c", 1, "passed", transcript=[Entry(1, "user", text="hi"), Entry(1, "assistant", text="ho")]
    )
    assert "does not speak over a wire" in said(answered)
