"""What the tab key completes in a shell: commands and options (click), and what is known here: runs, agents,
cases of a run, help pages.

A shell shows whatever is printed while it completes, so nothing here complains: what cannot be read
completes to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class

if TYPE_CHECKING:
    from tui_eval.store.schema import StoredCase

SHELLS = ("bash", "zsh", "fish")

_PLACES = {
    "bash": "~/.bashrc",
    "zsh": "~/.zshrc, after compinit",
    "fish": "~/.config/fish/completions/tui-eval.fish",
}
_VARIABLE = "_TUI_EVAL_COMPLETE"
_QUOTED_IN_BASH = (
    ("IFS=',' read type value", "IFS=',' read -r type value"),
    (
        "COMPREPLY+=($value)",
        """[[ ${COMP_WORDS[COMP_CWORD]} == [\\"\\']* ]] || printf -v value %q "$value"
            COMPREPLY+=("$value")""",
    ),
)
"""What click's lines for bash need so that a name of several words is put in as one (zsh and fish see to that)."""


def script(shell: str | None, command: click.Command) -> str:
    """The lines that teach a shell to complete tui-eval; the shell in use when none is named.

    Raises:
        click.UsageError: no shell is named and $SHELL is none of bash, zsh and fish.
    """
    shell = shell or Path(os.environ.get("SHELL", "")).name
    found = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        raise click.UsageError(f"name the shell, one of {', '.join(SHELLS)}: tui-eval completion bash")
    lines = found(command, {}, "tui-eval", _VARIABLE).source()
    for given, quoted in _QUOTED_IN_BASH if shell == "bash" else ():
        lines = lines.replace(given, quoted)
    return f"# tui-eval completion {shell}: for {_PLACES[shell]}\n{lines}"


def runs(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Runs of the project, newest first, and `last`."""

    def known() -> Iterator[tuple[str, str]]:
        from tui_eval.config.project import find_root
        from tui_eval.store.index import Index

        yield "last", "the newest run"
        for run in Index(find_root([Path.cwd()])[0]).runs():
            yield run.id, f"{run.passed}/{run.total} passed, {run.what}"

    return _matching(known, incomplete)


def agents(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Agents and the judge's names of the configuration in force here; files for `FILE.py:function`."""

    def known() -> Iterator[tuple[str, str]]:
        from tui_eval.config.project import load

        given: Any = context.params
        for name, spec in load(given.get("paths") or (), given.get("config_file")).agents.items():
            yield name, spec.type

    return _matching(known, incomplete) or [CompletionItem(incomplete, type="file")]


def cases_of_run(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the cases in the run that was named before."""
    return _matching(lambda: ((case.name, case.suite) for case in _recorded(context, "run")), incomplete)


def agents_of_run(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Agents of the run that was named before."""
    return _matching(lambda: ((case.agent, case.suite) for case in _recorded(context, "before")), incomplete)


def _recorded(context: click.Context, named_by: str) -> Iterator[StoredCase]:
    """The cases of the run that this argument names, or of the last."""
    from tui_eval.commands.one_run import find_run
    from tui_eval.store.reader import RunReader

    reader = RunReader(find_run(context.params.get(named_by) or "last"))
    try:
        yield from reader.cases()
    finally:
        reader.close()


def pages(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The help pages."""

    def known() -> Iterable[tuple[str, str]]:
        from tui_eval.help import pages as titles

        return titles().items()

    return _matching(known, incomplete)


def _matching(known: Callable[[], Iterable[tuple[str, str]]], incomplete: str) -> list[CompletionItem]:
    found: dict[str, CompletionItem] = {}
    try:
        for value, about in known():
            # A line break would read as another answer, a control character would reach the terminal.
            if value.startswith(incomplete) and value.isprintable():
                shown = about if about.isprintable() else ""
                found.setdefault(value, CompletionItem(value, help=shown))
    except Exception:
        return list(found.values())
    return list(found.values())
