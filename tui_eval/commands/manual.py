"""`tui-eval help`: the pages of `tui_eval/help`, as they are."""

from __future__ import annotations

from importlib import resources

from tui_eval.commands.output import CommandError, say


def pages() -> dict[str, str]:
    """Page name (file stem) to its title line."""
    found: dict[str, str] = {}
    for entry in sorted(resources.files("tui_eval.help").iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".md"):
            first = entry.read_text(encoding="utf-8").partition("\n")[0]
            found[entry.name.removesuffix(".md")] = first.lstrip("# ")
    return found


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
    say((resources.files("tui_eval.help") / f"{topic}.md").read_text(encoding="utf-8"))
    return 0
