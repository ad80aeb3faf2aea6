"""Screens by name. Each is imported when it is first wanted: the first paint waits for none but its own."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from textual.screen import Screen

SCREENS = {
    "suites": "suites_screen:SuitesScreen",
    "run": "run_screen:RunScreen",
    "runs": "runs_screen:RunsScreen",
    "grid": "grid:GridScreen",
    "case": "case_screen:CaseScreen",
    "step": "step_screen:StepScreen",
    "compare": "compare_screen:CompareScreen",
    "sides": "sides:SidesScreen",
    "search": "search_screen:SearchScreen",
    "query": "query_screen:QueryScreen",
    "settings": "settings_place:SettingsScreen",
    "paper": "help:PaperScreen",
    "help": "help:HelpScreen",
    "manual": "help:ManualScreen",
    "ask": "dialogs:AskScreen",
    "change": "dialogs:ChangeScreen",
    "run dialog": "run_dialog:RunDialog",
    "save dialog": "save_case:SaveDialog",
    "tour": "tour_screen:TourScreen",
    "first agent": "agent_question:FirstAgent",
    "agent": "agent_question:AgentQuestion",
}
"""Module and class, by what the places are called (`front.Front.kind`), then dialogs."""


def make(name: str, *arguments: Any, **options: Any) -> Screen[Any]:
    """A new screen, given what its class asks for."""
    return class_of(name)(*arguments, **options)


def get_ready(*names: str) -> None:
    """Import what these screens need, so that the first key for one need not wait; called in a thread."""
    for name in names:
        class_of(name)


def class_of(name: str) -> type[Screen[Any]]:
    """The class behind a name, imported."""
    module, _, kind = SCREENS[name].partition(":")
    return getattr(import_module(f"{__package__}.{module}"), kind)
