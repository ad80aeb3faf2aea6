"""The pure state under the two lists: filter, tree, entries, figures."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tui_eval.model import Assertion, Case, Problem, Suite, Turn
from tui_eval.store.notes import HumanNote
from tui_eval.store.schema import AttemptRow, CaseHistory, LiveRow, RunInfo, StoredCase
from tui_eval.store.summary import case_outcome
from tui_eval.tui.state.app_state import AppState
from tui_eval.tui.state.case.case_details import describe_entry
from tui_eval.tui.state.lists import filtering
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.case_sources import ENOUGH, SuiteCases
from tui_eval.tui.state.lists.case_tree import View
from tui_eval.tui.state.lists.entries import failing, not_passed, run_entries, subject, suite_entries
from tui_eval.tui.state.lists.filtering import completed, values_of
from tui_eval.tui.state.lists.tree_lines import build
from tui_eval.tui.state.runs import stream_layout
from tui_eval.tui.state.runs.run_group import RunGroup
from tui_eval.tui.state.runs.run_view import LiveAttempt, LivePiece, RunView
from tui_eval.tui.state.text import formatting
from tui_eval.tui.state.text.fitting import wrap
from tui_eval.tui.state.text.formatting import GLYPHS, Symbols
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.state.text.stream_text import StreamText
from tui_eval.tui.widgets.case_lines import CaseLines

NOW = 1_760_000_000.0


def entry(name: str, status: str = "", suite: str = "a/s.yaml", **more) -> CaseRow:
    return CaseRow(f"{suite}::{name}", f"{suite}::{name}", name, suite, "promptfoo", status, **more)


class TestFilter:
    def matches(self, expression: str, item: CaseRow) -> bool:
        return filtering.parse(expression).matches(subject(item))

    def test_outcomes_are_alternatives_and_the_rest_narrows(self):
        assert self.matches("failed error", entry("x", "error"))
        assert not self.matches("failed error", entry("x", "passed"))
        assert self.matches("failed refund", entry("Refund late", "failed"))
        assert not self.matches("failed refund", entry("greeting", "failed"))

    def test_keys_negation_and_quotes(self):
        item = entry("greets", "passed", agent="Support", model="gpt-4.1")
        assert self.matches("agent:support model:gpt", item)
        assert not self.matches("-agent:support", item)
        assert self.matches('"greets"', item)
        assert not self.matches("-passed", item)

    def test_tags_come_from_metadata(self):
        case = Case("i", "n", "s", "promptfoo", metadata={"kind": ["slow", "Billing"], "level": 2})
        assert self.matches("tag:billing tag:level=2", entry("n", case=case))
        assert not self.matches("tag:kind=fast", entry("n", case=case))

    def test_text_looks_into_turns_and_messages(self):
        case = Case("i", "n", "s", "promptfoo", turns=[Turn("Where is my PARCEL?")])
        assert self.matches("parcel", entry("n", case=case))
        assert self.matches("goodbye", entry("n", "failed", message="expected 'goodbye'"))

    @pytest.mark.parametrize("grouping", ["file", "cause", "agent"])
    @pytest.mark.parametrize("kind", ["suites", "run"])
    def test_every_word_that_a_row_shows_finds_it(self, kind, grouping):
        """Its age apart, which is another every minute, and what stands for the outcome: that is asked for by name."""
        note = HumanNote("r", 1, "x", "wrong", "against the policy", at=1.0)
        rows = [
            entry("Returns", "failed", cause='lacks "30 days"', alike='lacks "30 days"', variant="mini terse",
                  agent="atlas-mini", model="small", duration_ms=3_600.0, tokens=12_345, cost=0.0123,
                  finished_at=NOW - 90, note=note, suite="shop/returns.yaml"),
            entry("Warranty", "error", message="refused :8941", variant="chat", agent="atlas-large",
                  duration_ms=126.0, cached=2, cost=0.0, finished_at=NOW - 90, suite="shop/returns.yaml"),
            entry("Hours", "retrying", detail="429, again in 12 s", agent="http", duration_ms=61_000.0,
                  suite="desk/hours.yaml"),
            entry("Poem", "passed", flaky=True, ratio=(2, 3), agent="http", duration_ms=900.0,
                  finished_at=NOW - 90, suite="desk/hours.yaml"),
        ]  # fmt: skip
        painted = CaseLines(kind, Symbols())
        painted.now = lambda: NOW
        tree = painted.cases = build(
            rows, [Suite(one.suite, "promptfoo") for one in rows], View(grouping=grouping)
        )
        for line in tree.lines:
            if line.entry is None:
                continue
            shown = [plain(painted.tree_line(one, 200)) for one in (line, *line.above[1:])]
            words = {word.strip(",…") for word in " ".join(shown).split()}
            words -= {*GLYPHS.values(), "", "·", "▾", "▸", "×", "1m", "1"} | {
                word for word in words if word[:1] in "✓✗!●↻" and word[1:].isdigit()
            }
            lost = [
                word
                for word in words
                if not self.matches(f'"{word}"' if '"' not in word else word, line.entry)
            ]
            assert not lost, (line.name, lost)
            assert len(words) > 2

    def test_tests_whose_columns_came_out_differently(self):
        rows = [entry("a", "passed", variant="x"), entry("a", "failed", variant="y"), entry("b", "failed", variant="x"),
                entry("b", "failed", variant="y"), entry("c", "passed", flaky=True), entry("d", "waiting", variant="x"),
                entry("d", "passed", variant="y")]  # fmt: skip
        for number, row in enumerate(rows):
            row.key = f"{number}"
        parsed = filtering.parse("differs")
        view = View(
            accept=lambda one, differs: parsed.matches(subject(one, differs=differs)),
            compares_rows=parsed.compares_rows,
        )
        assert [(one.name, one.variant) for one in build(rows, [], view).shown] == [
            ("a", "x"),
            ("a", "y"),
            ("c", ""),
        ]
        rows[3].status = "passed"
        assert "b" in [one.name for one in build(rows, [], view).shown]
        assert not filtering.parse("failed").compares_rows

    def test_flaky_and_new(self):
        assert self.matches("flaky", entry("n", "failed", flaky=True))
        assert self.matches("new", entry("n"))
        assert not self.matches("new", entry("n", "passed"))

    def test_an_unknown_key_says_what_there_is(self):
        with pytest.raises(filtering.ListFilterError, match="agent:"):
            filtering.parse("agnt:x")

    def test_an_open_quote_is_plain_text(self):
        assert filtering.parse('say "hello').terms[0].value == "say"

    def test_addresses_are_text(self):
        assert filtering.parse("http://x").terms == (filtering.Term("", "http://x", False),)


class TestTree:
    def lines(self, entries, suites=(), **view):
        return [(line.kind, line.depth, line.name) for line in build(entries, suites, View(**view)).lines]

    def test_folders_suites_and_cases(self):
        entries = [
            entry("one", suite="a/b/s.yaml"),
            entry("two", suite="a/b/s.yaml"),
            entry("x", suite="a/t.yaml"),
        ]
        assert self.lines(entries) == [
            ("folder", 0, "a/"),
            ("case", 1, "x"),
            ("folder", 1, "b/"),
            ("suite", 2, "s.yaml"),
            ("case", 3, "one"),
            ("case", 3, "two"),
        ]

    def test_folders_that_hold_one_folder_are_joined(self):
        assert self.lines([entry("x", suite="a/b/c/s.yaml")])[0] == ("folder", 0, "a/b/c/")

    def test_a_suite_with_a_problem_shows_it_where_it_is(self):
        problem = Problem("s.yaml", 3, "k", "is wrong")
        suites = [Suite("s.yaml", "nao", problems=[problem])]
        assert self.lines([], suites) == [("suite", 0, "s.yaml"), ("problem", 1, "is wrong")]

    def test_of_many_problems_some_stand_above_the_cases(self):
        """A key that is not read, in each of twenty thousand cases, was as many lines."""
        problems = [Problem("s.yaml", line, "tags", "is not read", level="note") for line in range(1, 41)]
        problems.append(Problem("s.yaml", 41, "k", "is wrong"))
        lines = self.lines([entry("x", suite="s.yaml")], [Suite("s.yaml", "nao", problems=problems)])
        assert [line[2] for line in lines][1] == "is wrong" and lines[-1] == ("case", 1, "x")
        assert lines[-2] == ("problem", 1, "and 21 more: `tui-eval check` lists all") and len(lines) == 23

    def test_folding_hides_but_still_counts(self):
        entries = [entry("one", "passed"), entry("two", "failed")]
        tree = build(entries, [], View(folded={"a/"}))
        assert [line.name for line in tree.lines] == ["a/"]
        assert tree.lines[0].counts == {"passed": 1, "failed": 1}
        assert len(tree.shown) == 2

    def test_failures_first_is_flat_and_keeps_the_order_otherwise(self):
        entries = [entry("one", "passed"), entry("two", "running"), entry("three", "failed")]
        assert [line[2] for line in self.lines(entries, failures_first=True)] == ["three", "two", "one"]

    def test_sorting_and_reversing(self):
        entries = [entry("b", duration_ms=1.0), entry("a", duration_ms=9.0), entry("c")]
        assert [line[2] for line in self.lines(entries, sort="name")] == ["a", "b", "c"]
        assert [line[2] for line in self.lines(entries, sort="duration")] == ["a", "b", "c"]
        assert [line[2] for line in self.lines(entries, sort="name", reverse=True)] == ["c", "b", "a"]

    def test_a_change_of_status_moves_the_counts(self):
        one, two = entry("one", "passed"), entry("two", "failed")
        tree = build([one, two], [], View())
        changed = tree.update(one.key, "passed", "running")
        assert tree.lines[0].counts["running"] == 1 and tree.lines[0].counts["passed"] == 0
        assert 0 in changed and tree.index[one.key] in changed

    def test_filtered_suites_vanish(self):
        tree = build([entry("one", "passed")], [Suite("a/s.yaml", "nao")], View(accept=lambda *_: False))
        assert tree.lines == [] and tree.total == 1


class TestSlots:
    def test_a_finished_pane_lingers_two_seconds(self):
        places = stream_layout.Slots()
        places.assign([1, 2, 3], 2, now=0.0)
        assert places.shown == [1, 2]
        places.assign([2, 3], 2, now=1.0)
        assert places.shown == [1, 2]
        assert places.next_change(1.0) == pytest.approx(2.0)
        places.assign([2, 3], 2, now=3.1)
        assert places.shown == [3, 2]

    def test_a_pinned_pane_stays(self):
        places = stream_layout.Slots(pinned={1})
        places.assign([1, 2], 1, now=0.0)
        assert places.shown == [1]
        places.assign([2], 1, now=10.0)
        places.assign([2], 1, now=20.0)
        assert places.shown == [1]

    def test_less_room_takes_the_last_that_is_not_pinned(self):
        places = stream_layout.Slots()
        places.assign([1, 2, 3], 3, now=0.0)
        places.pinned = {3}
        places.assign([1, 2, 3], 2, now=1.0)
        assert places.shown == [1, 3]

    @pytest.mark.parametrize(
        ("width", "height", "most"), [(80, 21, 1), (46, 40, 1), (73, 37, 6), (200, 60, 12)]
    )
    def test_as_many_as_fit(self, width, height, most):
        assert stream_layout.capacity(width, height) == most

    @pytest.mark.parametrize("count", range(1, 9))
    def test_panes_cover_the_place_without_overlap(self, count):
        cells = set()
        for x, y, width, height in stream_layout.grid(count, 120, 40):
            for row in range(y, y + height):
                for column in range(x, x + width):
                    assert (row, column) not in cells
                    cells.add((row, column))
        assert {row for row, _ in cells} == set(range(40))


class TestStreamText:
    def piece(self, number: int, text: str, kind: str = "assistant", **more) -> LivePiece:
        values = {"agent": "", "name": "", "call_id": "", "at": 0.0} | more
        return LivePiece(number, kind, values["agent"], text, values["name"], values["call_id"], values["at"])

    def test_text_that_arrives_in_pieces_is_wrapped_as_if_at_once(self):
        text = "the refund of your order has been approved\nand will arrive  soon, 返金できますか and so on"
        live = LiveAttempt([self.piece(0, "")])
        stream = StreamText(20)
        for letter in text:
            live.pieces[0].text += letter
            stream.feed(live)
        whole = [line for paragraph in text.split("\n") for line in wrap(paragraph, 20)]
        assert [line for _, line in stream.lines] == whole

    def test_tools_and_hand_offs_stand_in_line(self):
        live = LiveAttempt(
            [
                self.piece(0, '{"q": 1}', "tool_call", name="find", call_id="c", at=1.0),
                self.piece(1, "[]", "tool_result", name="find", call_id="c", at=1.5),
                self.piece(2, "", "hand_off", name="billing"),
            ]
        )
        stream = StreamText(40)
        assert stream.feed(live)
        assert [line for _, line in stream.lines] == ['▸ find({"q": 1})', "◂ 500ms []", "→ billing"]
        assert not stream.feed(live)

    def test_a_call_does_not_leave_its_sign_alone_in_a_line(self):
        stream = StreamText(20)
        stream.feed(LiveAttempt([self.piece(0, '{"query":"subscription"}', "tool_call", name="look_up")]))
        assert [line for _, line in stream.lines] == ['▸ look_up({"query":"', '  subscription"})']

    def test_control_characters_are_shown(self):
        stream = StreamText(40)
        stream.feed(LiveAttempt([self.piece(0, "a\x1b]52;c;x\x07b")]))
        assert "\x1b" not in stream.lines[0][1] and "␛" in stream.lines[0][1]

    def test_old_lines_fall_away(self):
        stream = StreamText(10)
        stream.feed(LiveAttempt([self.piece(0, "x\n" * 10_000)]))
        assert len(stream.lines) <= 4_000 and stream.cut > 0

    def test_no_line_is_wider_than_the_pane(self):
        from rich.cells import cell_len

        for text in ("日本語" * 20, "x" * 100, "a  b   c" * 9, " " * 50, ""):
            for line in wrap(text, 11):
                assert cell_len(line) <= 11


def attempt_row(
    ref: int,
    case: int = 1,
    number: int = 1,
    state: Any = "running",
    outcome: Any = None,
    changed=1,
    **more: Any,
) -> AttemptRow:
    values: dict[str, Any] = dict(score=None, message="", started_at=1.0, duration_ms=None, input_tokens=None, output_tokens=None,
                  cached_tokens=None, cost=None, tool_calls=None, turn=1, detail="")  # fmt: skip
    return AttemptRow(
        id=ref,
        case_ref=case,
        attempt=number,
        state=state,
        outcome=outcome,
        changed=changed,
        **(values | more),
    )


class TestRunView:
    def view(self, required: int = 2) -> RunView:
        view = RunView(RunInfo("r", started_at=1.0), Path("r"))
        view.apply_cases([StoredCase(1, "s::a", "s", "a", "nao", "bot", None, "h", 3, required)])
        return view

    def test_counts_follow_changes(self):
        view = self.view()
        view.apply_attempts([attempt_row(1), attempt_row(2, number=2, state="waiting")])
        assert (view.counts.total, view.counts.running, view.counts.done) == (2, 1, 0)
        view.apply_attempts(
            [attempt_row(1, state="done", outcome="error", changed=2, cost=0.5, output_tokens=7)]
        )
        assert (view.counts.running, view.counts.errors, view.counts.tokens, view.counts.cost) == (
            0,
            1,
            7,
            0.5,
        )

    def test_older_news_do_not_undo_newer(self):
        view = self.view()
        view.apply_attempts([attempt_row(1, state="done", outcome="passed", changed=5)])
        assert view.apply_attempts([attempt_row(1, changed=4)]) == set()
        assert view.counts.passed == 1

    def test_text_of_one_speaker_is_one_piece_and_goes_at_the_end(self):
        view = self.view()
        view.apply_attempts([attempt_row(1)])
        rows = [LiveRow(n, 1, "assistant", "", text, "", "", float(n)) for n, text in enumerate("abc")]
        view.apply_live(rows)
        assert [piece.text for piece in view.live[1].pieces] == ["abc"]
        view.apply_attempts([attempt_row(1, state="done", outcome="passed", changed=2)])
        assert view.live == {} and view.apply_live(rows) == set()

    @pytest.mark.parametrize(
        ("outcomes", "required", "expected"),
        [
            (["passed", "passed", "failed"], 2, "passed"),
            (["passed", "error", "error"], 2, "error"),
            (["passed", "error", "failed"], 2, "failed"),
            (["cancelled", "cancelled"], 1, "cancelled"),
        ],
    )
    def test_what_attempts_come_to(self, outcomes, required, expected):
        assert case_outcome(outcomes, required) == expected

    def test_a_case_is_running_until_its_last_attempt_is_done(self):
        view = self.view()
        view.apply_attempts(
            [attempt_row(1, state="done", outcome="passed"), attempt_row(2, number=2, state="waiting")]
        )
        assert view.status(1) == "running" and view.outcome(1) is None

    def test_left_and_rate(self):
        view = self.view()
        rows = [attempt_row(1, state="done", outcome="passed"), attempt_row(2, number=2, started_at=10.0)]
        view.apply_attempts([*rows, attempt_row(3, number=3, state="waiting")])
        assert view.seconds_left(11.0) == pytest.approx(20.0)
        view.apply_live([LiveRow(1, 2, "assistant", "", "x" * 400, "", "", 10.0)])
        assert view.tokens_per_second(11.0) == pytest.approx(100.0)

    def test_tokens_of_short_attempts_count_although_none_was_seen_live(self):
        view, done = (
            self.view(),
            {"state": "done", "outcome": "passed", "started_at": 10.0, "output_tokens": 500},
        )
        view.apply_attempts([attempt_row(ref, number=ref, state="waiting") for ref in (1, 2, 3)])
        view.apply_live([LiveRow(1, 1, "assistant", "", "x" * 400, "", "", 10.1)])
        view.apply_attempts(
            [
                attempt_row(1, number=1, changed=9, duration_ms=500.0, **done),
                attempt_row(2, number=2, changed=9, duration_ms=1000.0, **done),
                attempt_row(3, number=3, changed=9, duration_ms=60_000.0, **done),  # when, nobody knows
            ]
        )
        assert view.tokens_per_second(12.0) == pytest.approx(1000.0 / 1.9)

    def test_entries_of_a_run(self):
        view = self.view()
        view.apply_attempts(
            [
                attempt_row(1, state="done", outcome="passed", duration_ms=10.0),
                attempt_row(2, number=2, state="done", outcome="failed", message="no", duration_ms=20.0),
                attempt_row(3, number=3, state="retrying", detail="429, again in 12 s"),
            ]
        )
        (only,) = run_entries(RunGroup([view]), AppState(Path(".")))
        assert (only.attempts, only.status, only.flaky) == ("pft", "retrying", True)
        assert (only.message, only.detail, only.duration_ms) == ("no", "429, again in 12 s", 15.0)

    def test_attempts_that_failed_for_several_reasons_are_counted_by_them(self):
        view = self.view()
        causes = ("broke off", "refused :8000", "refused :9000", "")
        alike = ("broke off", "refused", "refused", "")
        view.apply_attempts(
            [
                attempt_row(
                    number, number=number, state="done", outcome="error" if cause else "passed",
                    message=f"said {cause}", cause=cause, alike=same,
                )
                for number, (cause, same) in enumerate(zip(causes, alike, strict=True), 1)
            ]
        )  # fmt: skip
        (only,) = run_entries(RunGroup([view]), AppState(Path(".")))
        assert (only.cause, only.alike) == ("2 × refused, 1 × broke off", "refused")


class TestSuiteEntries:
    def test_the_past_of_a_case(self):
        state = AppState(Path("."))
        state.set_suites(
            [Suite("s", "nao", cases=[Case("s::a", "a", "s", "nao"), Case("s::b", "b", "s", "nao")])]
        )
        past = [
            CaseHistory("r2", "s::a", "bot", None, "failed", 1, 2, 100.0, 5.0, 10, 0.1, "h", "no"),
            CaseHistory("r1", "s::a", "bot", None, "passed", 2, 2, 50.0, 5.0, 10, 0.1, "h", ""),
        ]
        state.set_history({"s::a": past})
        first, second = suite_entries(state)
        assert (first.status, first.flaky, first.trend) == ("failed", True, (1.0, 0.5))
        assert second.status == "" and not failing(second)
        assert not_passed([first, second]) == [first]

    def test_the_past_survives_reading_the_suites_again(self):
        state = AppState(Path("."))
        suite = Suite("s", "nao", cases=[Case("s::a", "a", "s", "nao")])
        state.set_suites([suite])
        past = [CaseHistory("r1", "s::a", "bot", None, "passed", 1, 1, 50.0, 5.0, 10, 0.1, "h", "")]
        state.set_history({"s::a": past})
        state.set_suites([suite])
        assert state.rows[0].history == past

    def test_cases_of_one_name_are_told_apart(self):
        state = AppState(Path("."))
        cases = [Case(f"s::a::echo::prompt{n}", "a", "s", "promptfoo", variant=f"way {n}") for n in (1, 2)]
        state.set_suites(
            [Suite("s", "promptfoo", cases=[*cases, Case("s::a::echo::prompt3", "a", "s", "nao")])]
        )
        assert [one.variant for one in suite_entries(state)] == ["way 1", "way 2", ""]

    def test_those_that_nothing_else_tells_apart_have_the_end_of_their_ids(self):
        state = AppState(Path("."))
        state.set_suites([Suite("s", "nao", cases=[Case(i, "a", "s", "nao") for i in ("s::a", "s::a#2")])])
        assert [one.name for one in suite_entries(state)] == ["a · #1", "a · #2"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "now"), (59, "now"), (61, "1m"), (7200, "2h"), (200_000, "2d"), (3e6, "4w"), (1e8, "3y")],
)
def test_ages(seconds, text):
    assert formatting.age(seconds) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(None, ""), (0, "0ms"), (999, "999ms"), (1234, "1.2s"), (34_000, "34.0s"), (125_000, "2m05s")],
)
def test_durations(milliseconds, text):
    assert formatting.duration(milliseconds) == text


def test_trend_and_letters():
    assert formatting.Symbols().trend([0.0, 0.5, 1.0], 8) == "▁▅█"
    letters = formatting.Symbols(unicode=False)
    assert "".join(letters.glyphs.values()).isascii() and letters.trend([1.0], 8).isascii()


class TestCompleting:
    def values(self):
        case = Case("i", "n", "s", "nao", metadata={"level": 2, "kind": "two words"})
        entries = [
            entry("a", agent="Support", case=case),
            entry("b", agent="sales desk", model="gpt", suite="b.yaml"),
        ]
        return values_of(entries, ["slow"])

    @pytest.mark.parametrize(
        ("typed", "whole"),
        [
            ("fai", "failed"),
            ("failed ag", "failed agent:"),
            ("agent:sup", "agent:support"),
            ("-agent:SUP", "-agent:SUPport"),
            ("agent:", "agent:Support"),
            ("agent:sales", None),  # would need quotes
            ("tag:lev", "tag:level=2"),
            ("suite:b", "suite:b.yaml"),
            ("format:", "format:promptfoo"),
            ("verdict:w", "verdict:wrong"),
            ("@s", "@slow"),
            ("st", "star"),
            ("failed", None),
            ("nothing:x", None),
            ("failed ", None),
            ("", None),
        ],
    )
    def test_the_last_word_is_completed(self, typed, whole):
        assert completed(typed, self.values()) == whole


def test_a_line_is_said_with_the_file_it_counts_in():
    case = Case("s.yaml::a", "a", "s.yaml", "promptfoo", line=7, file="cases.csv")
    entry = CaseRow("k", "s.yaml::a", "a", "s.yaml", "promptfoo", case=case)
    assert ("dim", "s.yaml · cases.csv:7 · promptfoo") in describe_entry(entry, formatting.Symbols(), 0.0)


def test_what_of_a_case_cannot_fail_is_said_where_the_case_is_described() -> None:
    idle = Assertion(type="contains-all", value=[], line=7)
    case = Case("s::c", "c", "s", "promptfoo", turns=[Turn("hi")], assertions=[idle])
    paragraphs = describe_entry(entry("c", case=case), formatting.Symbols(), 0.0)
    told = [text for kind, text in paragraphs if kind == "warn"]
    assert told == [
        "nothing asserted: it runs, and proves nothing",
        "contains-all: an empty list asks for nothing: it passes whatever is answered",
    ]


def test_a_case_asked_in_hundreds_of_columns_counts_as_as_many_rows() -> None:
    """Twenty cases of 500 columns were made on the app's loop; of many cases the columns need not be counted."""
    past = [SimpleNamespace(agent=f"agent{number % 50}", model=None) for number in range(100)]
    few: Any = SimpleNamespace(rows=[SimpleNamespace(history=past), SimpleNamespace(history=())])
    assert SuiteCases(few).count() == 51
    many: Any = SimpleNamespace(rows=[SimpleNamespace(history=None)] * (ENOUGH + 1))
    assert SuiteCases(many).count() == ENOUGH + 1
