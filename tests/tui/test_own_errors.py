"""What becomes of an error of our own, without an app."""

from __future__ import annotations

from tui_eval.tui.terminal.frame_app import QUIET, STORM, Faults, place_of


class Person:
    """What the person sees, and when."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.logged: list[str] = []
        self.time = 0.0
        self.faults = Faults(
            self.told.append, lambda level, text: self.logged.append(text), lambda: self.time
        )

    def fails(self, word: str = "x", error: type[Exception] = ValueError) -> bool:
        try:
            raise error(word)
        except Exception as raised:
            return self.faults.survive(raised)


def test_an_error_is_told_once_for_a_while_and_logged():
    person = Person()
    assert all(person.fails() for _ in range(20))
    assert len(person.told) == 1 and len(person.logged) == 1
    assert "ValueError" in person.told[0] and "log" in person.told[0]
    person.time += QUIET + 1
    assert person.fails() and len(person.told) == 2


def test_errors_without_end_are_the_end():
    person = Person()
    assert [person.fails() for _ in range(STORM)] == [True] * (STORM - 1) + [False]
    slow = Person()
    for _ in range(STORM * 2):
        slow.time += 0.1
        assert slow.fails()


def test_a_notice_that_fails_itself_is_logged():
    logged: list[str] = []

    def broken(text: str) -> None:
        raise RuntimeError(text)

    faults = Faults(broken, lambda level, text: logged.append(text))
    assert faults.survive(ValueError("x")) and len(logged) == 2


def test_the_place_is_the_last_of_ours():
    from tui_eval.tui.state.case.waterfall import scale_line

    try:
        scale_line("much", 80, 10)  # type: ignore[arg-type]
    except TypeError as error:
        assert place_of(error).startswith("tui/state/")
