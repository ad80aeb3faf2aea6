"""People's notes in the lists, and filters that ask for them."""

from __future__ import annotations

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.screens.dialogs import AskScreen
from tui_eval.tui.screens.run_screen import RunScreen
from tui_eval.tui.state.lists import filtering
from tui_eval.tui.state.lists.case_entry import CaseRow
from tui_eval.tui.state.lists.entries import subject

NAMES = ["refund is approved", "greets by name", "calms an angry customer"]
ID = "suites/support.yaml::{}"


def line_of(app, name: str) -> str:
    return next((line for line in screen_text(app).splitlines() if name in line), "")


def noted(run: LiveRun, case: int, **said) -> HumanNote:
    return HumanNote(run.info.id, run.refs[case][0], ID.format(NAMES[case]), **said)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("star", [True, False, False]),
        ("noted", [True, True, False]),
        ("-noted", [False, False, True]),
        ("verdict:wrong", [False, True, False]),
        ("note:policy", [False, True, False]),
        ("failed verdict:wrong note:POLICY -star", [False, True, False]),
        ("passed verdict:wrong", [False, False, False]),
    ],
)
def test_filters_ask_for_notes(expression, found):
    entries = [CaseRow(name, name, name, "s", "nao", "failed") for name in "abc"]
    entries[0].note = HumanNote("r", 1, "a", star=True)
    entries[1].note = HumanNote("r", 1, "b", "wrong", "cites the old policy")
    wanted = filtering.parse(expression)
    assert [wanted.matches(subject(one)) for one in entries] == found


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(60, 16), (80, 24), (120, 40)], (60, 16)))
async def test_notes_stand_in_both_lists(tmp_path, size):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "passed"])
    Notes(root).put(noted(run, 0, verdict="wrong", star=True, text="cites\x1b]0;x\x07 nothing"))
    Notes(root).put(noted(run, 1, verdict="right"))
    async with running_app(root, size, open_run=run.folder) as (app, pilot):
        await until(
            lambda: isinstance(app.screen, RunScreen) and "✗1" in screen_text(app).replace(" ", ""), pilot
        )
        await until(lambda: "★ wrong …" in line_of(app, "refund"), pilot)
        await pilot.press("G", "right")  # those that passed are one line
        await until(lambda: "calms" in screen_text(app), pilot)
        assert "right" in line_of(app, "✓ greets by name") and "★" not in line_of(app, "calms")
        await pilot.press("U")
        await until(lambda: "★ wrong …" in line_of(app, "✗ refund"), pilot)
        await pilot.press("f", *"star", "enter")
        await until(lambda: [entry.name for entry in app.screen.shown_entries()] == NAMES[:1], pilot)


@pytest.mark.real
async def test_a_note_is_of_the_run_it_was_made_on(tmp_path):
    root = project(tmp_path)
    old, new = LiveRun(root, NAMES), LiveRun(root, NAMES)
    old.all_done(["failed", "passed", "passed"])
    new.all_done(["failed", "passed", "passed"])
    Notes(root).put(noted(old, 0, verdict="right"))
    async with running_app(root, (120, 40), open_run=new.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.shown_entries(), pilot)
        assert app.screen.shown_entries()[0].note is None
        await pilot.press("U")
        await until(lambda: "right" in line_of(app, "refund is"), pilot)
        app.screen.case_list.go_to(ID.format(NAMES[0]))
        await until(lambda: "you said: right (of an earlier answer)" in screen_text(app), pilot)


@pytest.mark.real
async def test_a_note_on_an_earlier_answer_is_not_said_of_the_newest_where_no_run_is_in_front(tmp_path):
    """It was said so only of what the runs in front say: after a step, and whenever the app begins, it was not."""
    root = project(tmp_path)
    old, new = LiveRun(root, NAMES), LiveRun(root, NAMES)
    old.all_done(["failed", "passed", "passed"])
    new.all_done(["failed", "passed", "passed"])
    Notes(root).put(noted(old, 0, verdict="right"))
    async with running_app(root, (120, 40)) as (app, pilot):
        await until(lambda: "right" in line_of(app, "refund is"), pilot)
        app.screen.case_list.go_to(ID.format(NAMES[0]))
        await until(lambda: "you said: right (of an earlier answer)" in screen_text(app), pilot)
        Notes(root).put(noted(new, 0, verdict="wrong"))
    async with running_app(root, (120, 40)) as (app, pilot):
        await until(lambda: "wrong" in line_of(app, "refund is"), pilot)
        app.screen.case_list.go_to(ID.format(NAMES[0]))
        await until(lambda: "you said: wrong" in screen_text(app), pilot)
        assert "of an earlier answer" not in screen_text(app)


@pytest.mark.real
async def test_a_note_put_on_a_case_is_in_the_list_one_comes_back_to(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "passed"])
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.shown_entries(), pilot)
        await pilot.press("enter")
        await until(
            lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt is not None, pilot
        )
        await pilot.press("m", "s")
        await until(lambda: app.state.notes, pilot)
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await until(lambda: "★" in line_of(app, "refund is"), pilot)


@pytest.mark.real
async def test_what_another_app_notes_is_shown_and_stays(tmp_path):
    """It came to the lists when suites were read again; and a star put here took its words away."""
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "passed"])
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and app.screen.shown_entries(), pilot)
        await pilot.press("enter")
        await until(
            lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt is not None, pilot
        )
        app.other_engines.stop()  # this app has not looked yet
        Notes(root).put(noted(run, 0, verdict="wrong", text="cites the old policy"))
        await pilot.press("m", "s")
        await until(lambda: app.state.notes, pilot)
        (note,) = Notes(root).of_case(ID.format(NAMES[0]))
        assert (note.verdict, note.star, note.text) == ("wrong", True, "cites the old policy")
        await until(lambda: "noted: ★ wrong: cites the old policy" in screen_text(app), pilot)
        Notes(root).put(noted(run, 0, verdict="right"))
        Notes(root).put(noted(run, 1, star=True))
        app.other_engines.changed([str(Notes(root).path)])
        await until(lambda: "· right" in screen_text(app), pilot)
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, RunScreen), pilot)
        await until(lambda: "right" in line_of(app, "refund is"), pilot)
        assert app.state.notes[ID.format(NAMES[1])][0].star


async def test_letters_where_there_is_no_unicode(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "passed"])
    Notes(root).put(noted(run, 0, star=True, text="x"))
    async with running_app(root, unicode=False) as (app, pilot):
        await until(lambda: "*" in line_of(app, "refund is"), pilot)
        assert line_of(app, "refund is").isascii()


@pytest.mark.real
async def test_tab_completes_the_word_before_the_cursor(tmp_path):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "passed"])
    async with running_app(root, open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(app.screen.shown_entries()) == 3, pilot)
        await pilot.press("f", *"fai")
        await until(lambda: "failed" in screen_text(app).splitlines()[-1], pilot)
        await pilot.press("tab", "space", *"agent:o")
        await until(lambda: "agent:offline" in screen_text(app).splitlines()[-1], pilot)
        await pilot.press("tab", "enter")
        await until(lambda: app.screen.expression == "failed agent:offline", pilot)
        await until(lambda: [entry.name for entry in app.screen.shown_entries()] == NAMES[:1], pilot)


async def test_what_is_found_is_unfolded(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await until(lambda: "greets by name" in screen_text(app), pilot)
        await pilot.press("g", "left")
        await until(lambda: "greets by name" not in screen_text(app), pilot)
        await pilot.press("slash", *"calms", "enter")
        await until(lambda: app.screen.case_list.current_entry is not None, pilot)
        assert app.screen.case_list.current_entry.name == NAMES[2]


async def test_finding_begins_where_the_cursor_was(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        cases = app.screen.case_list
        await until(lambda: "greets by name" in screen_text(app), pilot)
        cases.go_to(ID.format(NAMES[0]))
        await pilot.press("slash", *"ga")
        await until(lambda: app.screen.finder.found == "ga", pilot)
        await pilot.press("backspace")
        await until(lambda: app.screen.finder.found == "g" and cases.current_entry.name == NAMES[1], pilot)
        await pilot.press("escape")
        await until(lambda: cases.current_entry.name == NAMES[0], pilot)


@pytest.mark.real
@pytest.mark.parametrize("size", mostly_real([(60, 16), (120, 40)], (60, 16)))
async def test_m_notes_from_both_lists(tmp_path, size):
    root = project(tmp_path)
    run = LiveRun(root, NAMES)
    run.all_done(["failed", "passed", "passed"])
    async with running_app(root, size, open_run=run.folder) as (app, pilot):
        await until(lambda: isinstance(app.screen, RunScreen) and len(app.screen.shown_entries()) == 3, pilot)
        await pilot.press("m")
        await until(
            lambda: isinstance(app.screen, AskScreen) and "take everything away" in screen_text(app), pilot
        )
        await pilot.press("w")
        await until(lambda: "wrong" in line_of(app, "refund is"), pilot)
        (note,) = Notes(root).of_case(ID.format(NAMES[0]))
        assert (note.run_id, note.attempt_ref, note.verdict) == (run.info.id, run.refs[0][0], "wrong")
        await pilot.press("U", "f", *"noted", "enter")
        await until(lambda: [entry.name for entry in app.screen.shown_entries()] == NAMES[:1], pilot)
        app.screen.case_list.go_to(ID.format(NAMES[0]))
        await pilot.press("m")
        await until(
            lambda: isinstance(app.screen, AskScreen) and "You said: wrong" in screen_text(app), pilot
        )
        await pilot.press("n")
        await until(lambda: app.screen.query("Prompt"), pilot)
        await pilot.press(*"cites", "enter")
        await until(lambda: app.state.notes[ID.format(NAMES[0])][0].text == "cites", pilot)
        await until(lambda: "…" in line_of(app, "✗ refund is"), pilot)
        await pilot.press("m")
        await until(lambda: isinstance(app.screen, AskScreen), pilot)
        await pilot.press("x")
        await until(lambda: not app.state.notes and not Notes(root).by_case(), pilot)
        assert [entry.name for entry in app.screen.shown_entries()] == NAMES[:1]  # it stays under the cursor


async def test_there_is_nothing_to_note_on_a_case_that_never_ran(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        await until(lambda: NAMES[0] in screen_text(app), pilot)
        app.screen.case_list.go_to(ID.format(NAMES[0]))
        await pilot.press("m")
        await until(lambda: "no finished attempt to note" in screen_text(app), pilot)
