"""What the terminal sends becomes the keys that were pressed, in whatever pieces it comes, and a pasted text none."""

from __future__ import annotations

import pytest
from textual import events
from textual.message import Message

from tests.support.app_host import running_app, until
from tests.support.live_run import project
from tests.tui.terminal.test_type_ahead import handled, type_at_once
from tui_eval.tui.screens.run_dialog import RunDialog
from tui_eval.tui.screens.runs_screen import RunsScreen
from tui_eval.tui.screens.suites_screen import SuitesScreen
from tui_eval.tui.settings import settings_file
from tui_eval.tui.terminal import terminal_guard
from tui_eval.tui.terminal.terminal_guard import EscapeAnd, KeyParser


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(terminal_guard, "get_time", lambda: now[0])
    return now


def read(parser: KeyParser, text: str) -> list[str]:
    return names(list(parser.feed(text)))


def names(found: list[Message]) -> list[str]:
    keys: list[str] = []
    for one in found:
        if isinstance(one, EscapeAnd):
            keys += [key.key for key in one.apart]
        elif isinstance(one, events.Paste):
            keys.append(f"<{one.text}>")
        else:
            keys.append(one.key if isinstance(one, events.Key) else type(one).__name__)
    return keys


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("\x1bj", ["escape", "j"]),
        ("\x1bG", ["escape", "G"]),
        ("\x1b\r", ["escape", "enter"]),
        ("\x1b]", ["escape", "right_square_bracket"]),
        ("\x1b1", ["escape", "1"]),
        ("\x1b\t", ["escape", "tab"]),
        ("\x1b\x1b[A", ["escape", "up"]),
        ("\x1b[j", ["escape", "left_square_bracket", "j"]),
        ("\x1b" + "j" * 40, ["escape", *"j" * 40]),
        ("\x1bOA", ["up"]),
        ("\x1b[[A", ["f1"]),
        ("\x1b[1;5C", ["ctrl+right"]),
        ("\x1b[27u", ["escape"]),
        ("\x1b[I", ["AppFocus"]),
        ("\x1b[<64;30;12M", ["MouseScrollUp"]),
        ("\x1b[?62;4c", []),
        ("\x1b[M !!j", ["j"]),
        ("\x1b[M", ["escape", "left_square_bracket", "M"]),
        ("\x1b[<0;-1;5Mj", ["j"]),
        ("\x1b[3$j", ["shift+delete", "j"]),
        ("\x1b[2$j", ["j"]),
        ("\x1b[?2026;2$yj", ["TerminalSupportsSynchronizedOutput", "j"]),
        ("\x1b]1j", ["escape", "right_square_bracket", "1", "j"]),
        ("\x1bP>j", ["escape", "P", "greater_than_sign", "j"]),
    ],
)
def test_esc_and_a_key_that_arrive_together_are_both(sent: str, keys: list[str]) -> None:
    assert read(KeyParser(), sent) == keys


@pytest.mark.parametrize(
    "reply",
    [
        "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
        "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
        "\x1bP>|tmux 3.3a\x1b\\",
        "\x1bP1+r544e=787465726d\x1b\\",
        "\x1bP1$r0m\x1b\\",
        "\x1b_Gi=31;OK\x1b\\",
    ],
)
def test_what_a_terminal_replies_to_a_program_before_presses_no_keys(reply: str, clock: list[float]) -> None:
    """`r` in it ran what was under the cursor."""
    assert read(KeyParser(), reply + "j") == ["j"]
    parser = KeyParser()
    early = [key for end in range(4, len(reply)) for key in read(KeyParser(), reply[:end])]
    assert early == []
    assert read(parser, reply[:-2]) == []
    assert read(parser, reply[-2:] + "j") == ["j"]
    assert read(parser, reply[:6]) == []
    clock[0] += 2.1
    assert names(list(parser.tick())) == []
    assert read(parser, "j") == ["j"]


def test_shift_tab_of_linux_console_is_that_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "linux")
    assert read(KeyParser(), "\x1b\tj") == ["shift+tab", "j"]


@pytest.mark.parametrize(
    ("begun", "keys"),
    [
        ("\x1b", ["escape"]),
        ("\x1b[", ["escape", "left_square_bracket"]),
        ("\x1bO", ["escape", "O"]),
    ],
)
def test_esc_waits_for_what_may_follow_it_no_longer_than_textual_does(
    clock: list[float], begun: str, keys: list[str]
) -> None:
    parser = KeyParser()
    assert not read(parser, begun) and not names(list(parser.tick()))
    clock[0] += 0.2
    assert names(list(parser.tick())) == keys
    assert read(parser, "j") == ["j"]


def test_a_sequence_that_comes_in_pieces_presses_no_keys(clock: list[float]) -> None:
    parser = KeyParser()
    assert not read(parser, "\x1b[<64;3")
    clock[0] += 0.5
    assert not names(list(parser.tick()))
    assert read(parser, "0;12Mj") == ["MouseScrollUp", "j"]
    assert not read(parser, "\x1b[<64;3")
    clock[0] += 5
    assert not names(list(parser.tick()))
    assert read(parser, "q") == ["q"]


def test_a_pasted_text_ends_where_its_end_comes_in_pieces(clock: list[float]) -> None:
    for cut in range(1, 6):
        parser = KeyParser()
        end = "\x1b[201~"
        assert not read(parser, f"\x1b[200~one{end[:cut]}")
        clock[0] += 5
        assert not names(list(parser.tick()))
        assert read(parser, f"{end[cut:]}j") == ["<one>", "j"]


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("\x03", ["ctrl+c"]),
        ("\x1b[A", ["up"]),
        ("\x1b[200~two\x1b[201~", ["<two>"]),
        ("r more of it\x1b[201~", None),
        ("\x1b[201~", None),
    ],
)
def test_a_pasted_text_that_a_dropped_line_broke_off_ends_with_the_next_key(
    sent: str, keys: list[str] | None, clock: list[float]
) -> None:
    """All that was typed went into it, for good; more of it that a slow line brings is no key."""
    parser = KeyParser()
    assert not read(parser, "\x1b[200~one ")
    clock[0] += 4.9
    assert not read(parser, "t")
    clock[0] += 5.1
    text = "" if keys else sent.removesuffix("\x1b[201~")
    assert read(parser, sent) == [f"<one t{text}>", *(keys or [])]
    assert read(parser, "j") == ["j"]


def test_nothing_in_a_pasted_text_is_a_key() -> None:
    text = "\x1b[31mred\x1b[0m \x1br\x1b" + "a" * 40 + "\x1b[20"
    assert read(KeyParser(), f"\x1b[200~{text}\x1b[201~x") == [f"<{text}>", "x"]


@pytest.mark.parametrize("joined", ["👩\u200d👧", "می\u200cخواهم"])
def test_what_joins_letters_is_typed_with_them(joined: str) -> None:
    typed = [
        one.text if isinstance(one, events.Paste) else one.character
        for one in KeyParser().feed(joined)
        if isinstance(one, events.Paste | events.Key)
    ]
    assert "".join(map(str, typed)) == joined


def esc_and(character: str) -> EscapeAnd:
    (found,) = KeyParser().feed(f"\x1b{character}")
    assert isinstance(found, EscapeAnd)
    return found


async def test_esc_and_enter_at_once_leave_the_run_dialog_and_run_nothing(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        type_at_once(app, "A")
        await until(lambda: isinstance(app.screen, RunDialog), pilot)
        app.post_message(esc_and("\r"))
        await handled(app, pilot)
        assert not app.services.engines.own.requests
        assert not isinstance(app.screen, RunDialog)


async def test_alt_moves_by_words_where_one_types_and_is_esc_elsewhere(tmp_path):
    async with running_app(project(tmp_path)) as (app, pilot):
        type_at_once(app, "f", *"one two three")
        app.post_message(esc_and("b"))
        app.post_message(esc_and("b"))
        app.post_message(esc_and("\x7f"))
        type_at_once(app, *"zero ", "enter")
        await handled(app, pilot)
        assert app.screen.expression == "zero two three"
        type_at_once(app, "F", "?")
        await until(lambda: not isinstance(app.screen, SuitesScreen), pilot)
        app.post_message(esc_and("?"))
        await handled(app, pilot)
        assert not isinstance(app.screen, SuitesScreen)
        app.post_message(esc_and("j"))
        await handled(app, pilot)
        assert isinstance(app.screen, SuitesScreen)


async def test_alt_and_a_key_that_the_settings_name_is_that_key(tmp_path):
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().write_text("keymap: {place.runs: alt+h}")
    async with running_app(project(tmp_path)) as (app, pilot):
        app.post_message(esc_and("h"))
        await until(lambda: isinstance(app.screen, RunsScreen), pilot)
