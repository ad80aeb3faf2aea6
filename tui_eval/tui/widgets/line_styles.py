"""The style words of the inspector's state modules, and what they look like.

Colours come from the theme; where the theme uses the terminal's own colours (`:ansi`), what a
background would say is said by reverse, underline or dim.
"""

from __future__ import annotations

STYLES = (
    "muted", "label", "strong", "heading", "emphasis", "code", "thinking", "note", "error", "agent",
    "json-key", "json-text", "json-number", "json-word", "json-mark",
    "passed", "failed", "cancelled", "skipped", "running", "waiting",
    "role-user", "role-assistant", "role-reasoning", "role-tool_call", "role-tool_result",
    "role-hand_off", "role-note", "role-error",
    "removed", "added", "differs", "missing", "extra",
    "tab", "tab-active", "hit", "hit-here", "hit-wanted", "hit-forbidden", "hit-near", "cursor", "cursor-away",
)  # fmt: skip
"""Every style word of the state modules; each is a component class `line--WORD`."""

LINE_CSS = """
LinePane {
    background: $background;
    overflow-x: hidden;
    overflow-y: auto;
    scrollbar-gutter: stable;
    scrollbar-size-vertical: 1;
    scrollbar-size-horizontal: 1;
    & > .line--muted, & > .line--label, & > .line--json-mark, & > .line--skipped { color: $text-muted; }
    & > .line--waiting, & > .line--cancelled, & > .line--role-note { color: $text-muted; }
    & > .line--thinking { color: $text-muted; text-style: italic; }
    & > .line--strong { text-style: bold; }
    & > .line--heading { color: $text-primary; text-style: bold; }
    & > .line--emphasis { text-style: italic; }
    & > .line--code { color: $text-accent; }
    & > .line--note { color: $text-warning; }
    & > .line--agent { color: $text-secondary; text-style: bold; }
    & > .line--json-key { color: $text-primary; }
    & > .line--json-text { color: $text-success; }
    & > .line--json-number, & > .line--json-word { color: $text-accent; }
    & > .line--passed { color: $text-success; }
    & > .line--failed { color: $text-error; text-style: bold; }
    & > .line--error { color: $text-warning; text-style: bold; }
    & > .line--running { color: $text-primary; }
    & > .line--role-user { color: $text-primary; text-style: bold; }
    & > .line--role-assistant { color: $text-success; text-style: bold; }
    & > .line--role-reasoning { color: $text-muted; }
    & > .line--role-tool_call { color: $text-accent; text-style: bold; }
    & > .line--role-tool_result { color: $text-accent; }
    & > .line--role-hand_off { color: $text-secondary; text-style: bold; }
    & > .line--role-error { color: $text-error; text-style: bold; }
    & > .line--removed { color: $text-error; text-style: reverse; }
    & > .line--added { color: $text-warning; text-style: reverse; }
    & > .line--differs { color: $text-error; text-style: bold; }
    & > .line--missing { color: $text-error; }
    & > .line--extra { color: $text-warning; }
    & > .line--hit { background: $warning 40%; text-style: underline; }
    & > .line--hit-here { text-style: reverse bold; }
    & > .line--hit-wanted { background: $success 30%; text-style: underline; }
    & > .line--hit-forbidden { background: $error 45%; text-style: bold underline; }
    & > .line--hit-near { background: $warning 25%; text-style: italic underline; }
    & > .line--tab { color: $text-muted; }
    & > .line--tab-active { text-style: bold reverse; }
    & > .line--cursor { background: $primary 30%; }
    & > .line--cursor-away { background: $foreground 8%; }
    &:ansi > .line--cursor { background: transparent; text-style: reverse; }
    &:ansi > .line--cursor-away { background: transparent; text-style: underline; }
    &:ansi > .line--muted, &:ansi > .line--label, &:ansi > .line--json-mark, &:ansi > .line--tab, &:ansi > .line--thinking,
    &:ansi > .line--role-reasoning, &:ansi > .line--skipped, &:ansi > .line--waiting,
    &:ansi > .line--cancelled, &:ansi > .line--role-note { color: ansi_default; text-style: dim; }
    &:ansi > .line--hit, &:ansi > .line--hit-wanted { background: transparent; text-style: underline bold; }
    &:ansi > .line--hit-forbidden { background: transparent; text-style: reverse; }
    &:ansi > .line--hit-near { background: transparent; text-style: italic underline; }
}
"""
