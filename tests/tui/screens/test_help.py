"""The manual in the app: found in the palette, its pages as paragraphs."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tui_eval.help import page, pages
from tui_eval.tui.screens.help import ManualScreen, manual_paragraphs

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
