"""The manual in the app: found in the palette, its pages as paragraphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tui_eval.help import page, pages
from tui_eval.tui.screens.grid import GridScreen
from tui_eval.tui.screens.help import (
    HelpScreen,
    ManualScreen,
    PaperScreen,
    help_paragraphs,
    manual_paragraphs,
)
from tui_eval.tui.screens.query_screen import QueryScreen
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.search_screen import SearchScreen
from tui_eval.tui.screens.settings_place import SettingsScreen
from tui_eval.tui.screens.step_screen import StepScreen
from tui_eval.tui.widgets.lines_pane import LinesPane

TEXT = """\
# Title

First *words* of a
paragraph with `code` and a [link](x.md).
![A picture](y.png)

## Table

| term | means | more |
|---|---|---|
| `a b` | one | two |
| c | | |

- item
  goes on
- other

Then:

    code  here
"""


def test_a_page_as_paragraphs() -> None:
    assert manual_paragraphs(TEXT) == [
        ("text", "First words of a paragraph with code and a link."),
        ("text", ""),
        ("title", "Table"),
        ("text", ""),
        ("key", "term\x00means · more"),
        ("key", "a b\x00one · two"),
        ("text", "c"),
        ("text", ""),
        ("item", "item goes on"),
        ("item", "other"),
        ("text", ""),
        ("text", "Then:"),
        ("text", ""),
        ("code", "code  here"),
    ]


@pytest.mark.parametrize("name", sorted(pages()))
def test_the_words_of_a_page_without_its_marks(name: str) -> None:
    shown = " ".join(
        text.replace("\x00", " ") for kind, text in manual_paragraphs(page(name)) if kind != "code"
    )
    assert "](" not in shown and "**" not in shown
    assert len(shown.split()) > 60


@pytest.mark.parametrize("size", mostly_real([(80, 24), (60, 16)], (60, 16)))
async def test_a_page_is_found_and_read(tmp_path: Path, size: tuple[int, int]) -> None:
    async with running_app(tmp_path, size=size) as (app, pilot):
        await pilot.press("colon")
        await until(lambda: isinstance(app.focused, Input), pilot)
        await pilot.press(*"safety")
        await until(lambda: "Help: Safety" in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, ManualScreen), pilot)
        await until(lambda: "What an agent or a suite cannot do" in screen_text(app), pilot)
        await pilot.press("escape")
        await until(lambda: not isinstance(app.screen, ManualScreen), pilot)


async def test_a_word_is_found_in_help_and_n_goes_on(tmp_path: Path) -> None:
    async with running_app(tmp_path, size=(80, 24)) as (app, pilot):
        await pilot.press("question_mark")
        await until(lambda: "/ find" in screen_text(app), pilot)
        pane = app.screen.query_one(LinesPane)
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), pilot)
        await pilot.press(*"keymap: in")
        await until(lambda: "Names for keymap: in your settings.yaml" in screen_text(app), pilot)
        assert pane.place == (1, 1)
        await pilot.press("enter")
        await until(lambda: app.focused is pane and "1 of 1" in screen_text(app), pilot)
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), pilot)
        await pilot.press(*"next", "enter")
        await until(lambda: app.focused is pane, pilot)
        first, count = pane.place
        await pilot.press("n")
        await until(lambda: pane.place == (first % count + 1, count), pilot)
        await pilot.press("N")
        await until(lambda: pane.place == (first, count), pilot)
        top = pane.top
        await pilot.press("slash")
        await until(lambda: isinstance(app.focused, Input), pilot)
        await pilot.press(*"nowhere at all", "escape")
        await until(lambda: app.focused is pane and pane.place == (0, 0), pilot)
        assert pane.top == top and isinstance(app.screen, HelpScreen)


def test_help_lists_no_key_that_the_place_gives_another_meaning() -> None:
    for place in (SearchScreen, StepScreen, RunsScreen, GridScreen, QueryScreen, SettingsScreen):
        shown = help_paragraphs("here", place.KEY_SECTIONS)
        upto = shown.index(("title", "Moving")) if ("title", "Moving") in shown else len(shown)
        keys = [
            key
            for kind, text in shown[:upto]
            if kind == "key"
            for key in text.partition("\x00")[0].split(" ")
        ]
        assert len(keys) == len(set(keys)), place
    names = [text.partition("\x00")[2] for kind, text in shown if kind == "key"]
    assert {"case.edit", "run.all"} <= set(names)


async def test_words_that_go_on_in_the_next_row_are_found(tmp_path: Path) -> None:
    async with running_app(tmp_path, size=(60, 16)) as (app, pilot):
        await app.push_screen(
            PaperScreen("Title", lambda: [("key", f"k\x00{'word ' * 11}two halves"), ("text", "two")])
        )
        pane = app.screen.query_one(LinesPane)
        await until(lambda: pane.row_count > 2, pilot)
        pane.find("word two halves", 0)
        assert pane.place == (1, 1)
        pane.find("two", 0)
        assert pane.place == (1, 2) and pane.find_next(1) == (2, 2) and pane.find_next(1) == (1, 2)
        hits = [(span.text, span.style) for row in range(pane.row_count) for span in pane.row_line(row)]
        assert [text for text, style in hits if "hit-here" in style] == ["two"]
        assert [text for text, style in hits if style.endswith("hit")] == ["two"]
