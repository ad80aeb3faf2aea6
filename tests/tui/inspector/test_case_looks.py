"""What the looks of the Case screen, Step and their dialogs hold to: bars, heads, footers, short screens."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.app import App
from textual.widgets import Input

from tests.support import mostly_real
from tests.support.attempts import agent_error, text_failure, wrong_cell
from tests.support.case_host import host, loaded, screen_text, sees, until
from tui_eval.model import Assertion, Attempt, Case, Entry, Turn
from tui_eval.store.full_text import Hit
from tui_eval.store.schema import StoredCase
from tui_eval.tui.inspector.data import DataTab
from tui_eval.tui.screens.dialogs import ChangeScreen
from tui_eval.tui.screens.save_case import FormatRow, SaveDialog
from tui_eval.tui.state.case.copying import SaveChoice, SaveOffer
from tui_eval.tui.state.runs.search_view import FoundEntry, row_line
from tui_eval.tui.state.runs.step_view import expected
from tui_eval.tui.state.text.fitting import end_of
from tui_eval.tui.state.text.lines import plain, width_of


async def test_the_bar_of_a_transcript_opened_far_down_stands_there(tmp_path: Path) -> None:
    async with host(tmp_path, text_failure()).run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        text = screen.tab.text
        assert text is not None
        await until(pilot, lambda: text.show_vertical_scrollbar and text.scroll_offset.y > 0)
        await until(pilot, lambda: text.vertical_scrollbar.position == text.scroll_offset.y)


async def test_the_facts_of_a_call_stand_whole_beside_a_wide_name(tmp_path: Path) -> None:
    called = Attempt(
        "s.yaml::c",
        1,
        "passed",
        transcript=[
            Entry(1, "tool_call", name="在庫を調べる", arguments={}, call_id="1", started_at=1.0),
            Entry(1, "tool_result", name="在庫を調べる", result="x" * 12, call_id="1", started_at=1.4),
        ],
    )
    async with host(tmp_path, called).run_test(size=(60, 16)) as pilot:
        await loaded(pilot)
        await pilot.press("2")
        await sees(pilot, "── 1 在庫を調べる ─", "─ 400ms · 12 characters")


@pytest.mark.real
async def test_both_values_of_a_cell_are_shown_on_a_short_screen(tmp_path: Path) -> None:
    async with host(tmp_path, wrong_cell()).run_test(size=(60, 16)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("4")
        await until(pilot, lambda: isinstance(screen.tab, DataTab) and screen.tab.view is not None)
        await sees(pilot, "≠ off by", "\nexpected ", "\nactual   ")


@pytest.mark.real
async def test_the_footer_names_only_what_the_tab_can_do(tmp_path: Path) -> None:
    app = host(tmp_path, agent_error(), text_failure())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)

        def foot() -> str:
            return screen_text(app).splitlines()[-1]

        await pilot.press("4")
        await until(pilot, lambda: "y copy" in foot() and "≠" not in foot() and "SQL" not in foot())
        screen.go_to(app.pointers[1])
        await pilot.press("2")
        await until(pilot, lambda: "s times" in foot())
        await pilot.press("s")
        screen.say("")  # the words of the key lie over the footer for as long as a busy machine takes
        await until(pilot, lambda: "s table" in foot())
        await pilot.press("6")
        await until(pilot, lambda: "enter show it" in foot() and "z plots" in foot())


@pytest.mark.real
async def test_why_there_are_no_rows_is_not_hidden_by_the_zoom(tmp_path: Path) -> None:
    app = host(tmp_path, agent_error())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await loaded(pilot)
        await pilot.press("4")
        await sees(pilot, "No rows are compared")
        await pilot.press("z")
        await until(pilot, lambda: screen.tab.has_class("-zoomed"))
        await pilot.pause()
        assert "No rows are compared" in screen_text(app) and app.focused is not None


def test_a_diff_names_its_file_once_and_knows_a_head_from_a_line() -> None:
    diff = "--- a/sub/s.yaml\n+++ b/sub/s.yaml\n@@ -1,2 +1,2 @@\n--- -old\n+++ new\n"
    shown = ChangeScreen("Accept: 1 change", diff).paragraphs()
    assert shown == [
        ("dim", "sub/s.yaml"), ("dim", "@@ -1,2 +1,2 @@"), ("bad", "--- -old"), ("good", "+++ new"),
    ]  # fmt: skip
    assert ChangeScreen("A new file sub/s.yaml", diff).paragraphs() == shown[1:]


@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24)], (60, 16)))
async def test_the_end_of_a_long_file_name_is_seen_where_a_case_is_saved(size: tuple[int, int]) -> None:
    name = "support/" + "a_rather_long_name_of_a_conversation_" * 3 + "saved.yaml"
    app: App[None] = App()
    async with app.run_test(size=size) as pilot:
        choice = SaveChoice("start_to_agent", name, "short")
        dialog = SaveDialog(
            SaveOffer(
                choice,
                {"start_to_agent": name, "nao": f"{name}.nao"},
                {"start_to_agent": "A", "nao": "B"},
                [],
            )
        )
        await app.push_screen(dialog)
        await until(pilot, lambda: "_saved.yaml" in screen_text(app))
        assert "esc leaves" in screen_text(app) and "tab ↓ ↑ line" in screen_text(app)
        await pilot.press("up", "right")
        await until(pilot, lambda: "_saved.yaml." in screen_text(app))
        entry = dialog.query(Input).first()
        assert entry.cursor_position == len(entry.value)


def test_before_a_turn_a_value_of_the_metadata_is_named_once() -> None:
    case = Case("s::c", "c", "s", "start_to_agent", turns=[Turn("hi")])
    case.assertions = [Assertion("escalation_priority", "high", target="metadata.escalation_priority")]
    assert [text for _, text in expected(case, 1)][2:] == ['  ◌ escalation priority "high"']


def test_a_result_of_a_search_shows_the_end_of_its_suite() -> None:
    suite = "a/long/way/to/the/suites/refunds.yaml"
    case = StoredCase(1, f"{suite}::c", suite, "c", "nao", "offline", None, "", 1, 1)
    line = row_line(FoundEntry(Hit(1, 1, "user", "x"), case, 1, "failed"), 0, 50)
    assert plain(line).endswith("suites/refunds.yaml") and width_of(line) <= 50 and "…" in plain(line)


def test_the_end_of_a_text_by_cells() -> None:
    assert end_of("abc", 3) == "abc" and end_of("abcdef", 3) == "…ef" and end_of("日本語", 4) == "…語"
    assert end_of("abc", 1) == "…"


async def test_without_colours_the_format_that_has_the_keys_is_seen() -> None:
    app: App[None] = App()
    async with app.run_test(size=(60, 16)) as pilot:
        app.theme = "ansi-dark"
        dialog = SaveDialog(
            SaveOffer(SaveChoice("nao", "a.yaml", "short"), {"nao": "a.yaml"}, {"nao": "nao"}, [])
        )
        await app.push_screen(dialog)
        await pilot.press("up")
        await until(pilot, lambda: bool(dialog.query_one(FormatRow).rich_style.reverse))
