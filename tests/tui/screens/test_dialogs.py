"""Questions over the screen."""

from __future__ import annotations

import math
from typing import Any

import pytest
from textual.app import App

from tests.support.app_host import screen_text, until
from tui_eval.tui.front import Question
from tui_eval.tui.screens import dialogs
from tui_eval.tui.screens.dialogs import AskScreen


@pytest.mark.real
async def test_a_question_about_what_goes_on_is_asked_anew_while_it_stands() -> None:
    left = [2]
    answered: list[str | None] = []

    def asked() -> Question:
        if left[0]:
            return Question(
                f"{left[0]} are at work.", [("o", "others", "the others"), ("n", "no", "no")], ["now: x"]
            )
        return Question("None is at work.", [("y", "again", "run them"), ("n", "no", "no")])

    app: Any = App()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(AskScreen(*asked(), renewed=asked), answered.append)
        await until(lambda: "2 are at work." in screen_text(app) and "now: x" in screen_text(app), pilot)
        left[0] = 1
        await until(lambda: "1 are at work." in screen_text(app), pilot)
        left[0] = 0
        await until(lambda: "None is at work." in screen_text(app), pilot)
        assert "run them" in screen_text(app) and "the others" not in screen_text(app)
        assert "now:" not in screen_text(app)
        await pilot.press("o")
        assert not answered, "it is offered no more"
        await pilot.press("y")
        await until(lambda: answered == ["again"], pilot)


async def test_a_question_that_stands_as_it_did_is_not_painted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, painted = [0], [0]

    def question() -> Question:
        asked[0] += 1
        return Question("Cancel the run?", (("y", "yes", "cancel it"),))

    class Counting(AskScreen):
        def on_resize(self) -> None:
            painted[0] += 1
            super().on_resize()

    monkeypatch.setattr(dialogs, "RENEWED", 0.01)
    app: Any = App()
    async with app.run_test(size=(80, 24)) as pilot:
        first = question()
        app.push_screen(Counting(first.question, first.answers, renewed=question))
        await until(lambda: asked[0] > 2, pilot)
        lines = [line.strip(" │") for line in screen_text(app).splitlines()]
        at = lines.index("Cancel the run?")
        assert lines[at + 1 : at + 3] == ["", "enter cancel it"]  # no line of details, where it has none
        before = painted[0]
        await until(lambda: asked[0] > 8, pilot)
        assert painted[0] == before


async def test_enter_takes_an_answer_that_is_offered_alone() -> None:
    answered: list[str | None] = []
    app: Any = App()
    one, other = ("1", "1", "small against large"), ("b", "before", "the run before it")
    async with app.run_test(size=(60, 16)) as pilot:
        app.push_screen(AskScreen("Compare which?", [one]), answered.append)
        await until(lambda: "enter small against large" in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: answered == ["1"], pilot)
        app.push_screen(AskScreen("Compare which?", [one]), answered.append)
        await pilot.press("1")
        await until(lambda: answered == ["1", "1"], pilot)
        app.push_screen(AskScreen("Compare which?", [one, other]), answered.append)
        await until(lambda: "1    small against large" in screen_text(app), pilot)
        await pilot.press("enter")
        await pilot.pause()
        assert answered == ["1", "1"]


async def test_a_click_on_an_answer_is_its_key() -> None:
    answered: list[str | None] = []
    app: Any = App()
    answers = [("d", "detach", "detach: leave"), ("s", "stop", "stop it"), ("esc", "stay", "stay")]

    async def click(words: str) -> None:
        app.push_screen(AskScreen("A run goes on.", answers, ["now: x"]), answered.append)
        await until(lambda: words in screen_text(app), pilot)
        lines = screen_text(app).splitlines()
        y = next(y for y, line in enumerate(lines) if words in line)
        await pilot.click(offset=(lines[y].index(words), y))
        await pilot.pause()

    async with app.run_test(size=(60, 20)) as pilot:
        await click("stop it")
        assert answered == ["stop"]
        await click("esc")
        assert answered == ["stop", None]
        await click("now: x")
        assert answered == ["stop", None], "that is no answer"


async def test_a_click_answers_no_question_that_was_not_seen_or_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered: list[str | None] = []
    app: Any = App()
    items = [f"run {n}.py" for n in range(40)]
    ask = AskScreen(
        "Trust?", [("y", "yes", "yes, all"), ("n", "no", "no")], [], items, ("yes",), unasked=True
    )

    async def click_yes() -> None:
        lines = screen_text(app).splitlines()
        y = next(y for y, line in enumerate(lines) if "yes, all" in line)
        await pilot.click(offset=(lines[y].index("yes"), y))

    monkeypatch.setattr(dialogs, "PAUSE", 60.0)
    async with app.run_test(size=(60, 20)) as pilot:
        app.push_screen(ask, answered.append)
        await until(lambda: "more lines (j k" in screen_text(app) and "yes, all" in screen_text(app), pilot)
        await click_yes()
        await until(lambda: dialogs.TOO_SOON.strip() in screen_text(app), pilot, 5)
        monkeypatch.setattr(dialogs, "PAUSE", -math.inf)
        await click_yes()
        await until(lambda: "first read on" in screen_text(app), pilot, 5)
        assert not answered
        await pilot.press("G")
        await click_yes()
        assert answered == ["yes"]


async def test_what_is_asked_about_breaks_between_words_and_nothing_of_it_is_left_out() -> None:
    item = "run inline Python of promptfooconfig.yaml: len(output) > 3 and output.startswith('x')  or done"
    long = "run " + "x" * 120
    app: Any = App()
    async with app.run_test(size=(60, 24)) as pilot:
        app.push_screen(AskScreen("Sure?", [("y", "yes", "yes")], items=[item, long]))
        await until(lambda: "Sure?" in screen_text(app), pilot)
        text = screen_text(app)
    lines = [line.strip("│ ") for line in text.splitlines()]
    assert "len(output) > 3 and output.startswith('x')  or" in lines and "done" in lines
    assert text.count("x") >= 120
