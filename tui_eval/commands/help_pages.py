"""`tui-eval help`: the pages of `tui_eval/help`, as they are."""

from __future__ import annotations

from tui_eval.commands.output import CommandError, say
from tui_eval.help import page, pages


def manual(topic: str | None) -> int:
    """Print a page, or the list of pages."""
    known = pages()
    if topic is None:
        width = max(len(name) for name in known)
        say("tui-eval help TOPIC prints a page:\n")
        for name, title in known.items():
            say(f"  {name:<{width}}  {title}")
        return 0
    if topic not in known:
        raise CommandError(f"no help page {topic!r}; there are: {', '.join(known)}")
    say(page(topic))
    return 0
