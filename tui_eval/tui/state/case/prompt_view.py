"""Prompts: the template of a promptfoo row, its vars and what was sent, side by side where there is room; the messages
of a prompt that is a list of these."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, NamedTuple

from tui_eval.formats import format_of
from tui_eval.model import Attempt, Case
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.json_lines import dumped, value_lines
from tui_eval.tui.state.text.lines import (
    Line,
    Mark,
    Span,
    fit,
    marked,
    one_line,
    plain,
    text_lines,
    width_of,
    wrap,
)

BESIDE = 84
"""Columns from which on the three stand beside each other."""
FOLD = 40
LONGEST = 20_000
"""Characters of each that are laid out in columns; stacked, there is no limit of its own."""
_TAG = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_NAME = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)\s*(?=[.|}\[-])")
_KNOWN = frozenset({"env", "_conversation", "provider", "loop", "range", "true", "false", "none"})


def has_prompt(case: Case | None, attempt: Attempt | None) -> bool:
    """Whether there is a template, or a prompt that was rendered."""
    rendered = attempt is not None and attempt.prompt_sent is not None
    return rendered or (case is not None and format_of(case.format).templates and bool(case.turns))


def build(case: Case | None, attempt: Attempt | None, width: int, *, rendered: bool = True) -> list[Block]:
    """The prompt's blocks for a pane whose texts have `width` columns: one with three columns, or three."""
    template = case.turns[0].text or "" if case is not None and case.turns else ""
    values = (attempt.vars if attempt is not None else {}) or (case.vars if case is not None else {})
    sent = attempt.prompt_sent if attempt is not None else None
    label = one_line(case.prompt, 60) if case is not None and case.prompt else ""
    rule = Block("prompt", "turn", "prompt", partial(iter, ((Span(label, "muted"),),)), 0, "strong")
    missing = _missing(template, values)
    parts = {
        "template": partial(_template, template),
        "vars": partial(_vars, values, missing, rendered),
        "sent": partial(_sent, sent, values),
    }
    if width < BESIDE:
        return [rule, *(Block(f"p-{n}", "part", n, p, 0, "role-note", FOLD) for n, p in parts.items())]
    return [rule, Block("p-beside", "part", "", partial(_beside, parts, width), 0, "role-note", FOLD)]


def _beside(parts: dict[str, Any], width: int) -> Iterator[Line]:
    """The three as columns: vars take what they need up to a quarter, the texts share the rest."""
    lines = {name: list(_some(part())) for name, part in parts.items()}
    room = width - 6
    middle = min(max((width_of(line) for line in lines["vars"]), default=4), room // 4)
    middle = max(middle, 8)
    left = (room - middle) // 2
    widths = (left, middle, room - middle - left)
    heads = [(Span(name, "heading"),) for name in parts]
    columns = [
        [head, *(piece for line in own for _, _, piece in wrap(line, size))]
        for head, own, size in zip(heads, lines.values(), widths, strict=True)
    ]
    for row in zip_longest(*columns, fillvalue=()):
        spans: list[Span] = []
        for number, (cell, size) in enumerate(zip(row, widths, strict=True)):
            cell = fit(cell, size)
            spans += [*([Span(" │ ", "muted")] if number else []), *cell]
            if number < 2:
                spans.append(Span(" " * (size - width_of(cell))))
        yield tuple(spans)


def _some(lines: Iterable[Line]) -> Iterator[Line]:
    room = LONGEST
    for line in lines:
        room -= len(plain(line)) + 1
        if room < 0:
            yield (Span("… p shows all of it", "note"),)
            return
        yield line


def _template(text: str) -> Iterator[Line]:
    if not text:
        yield (Span("not kept", "muted"),)
    for line in text_lines(text):
        yield marked(line, [Mark(*match.span(), "code") for match in _TAG.finditer(plain(line))])


def _vars(values: dict[str, Any], missing: list[str], rendered: bool) -> Iterator[Line]:
    if not values and not missing:
        yield (Span("none", "muted"),)
    for name, value in values.items():
        lines = list(
            value_lines(value if isinstance(value, (str, dict, list)) else [value], rendered=rendered)
        )
        if not isinstance(value, (str, dict, list)):
            lines = list(text_lines(str(value)))
        head = Span(f"{one_line(name, 40)} ", "label")
        if len(lines) == 1:
            yield (head, *(Span(text, "json-text") for text, _ in lines[0]))
            continue
        yield (head,)
        for line in lines:
            yield (Span("  "), *(Span(text, style or "json-text") for text, style in line))
    for name in missing:
        yield (Span(f"{name} ", "label"), Span("no such var", "failed"))


def _sent(text: str | None, values: dict[str, Any]) -> Iterator[Line]:
    """What was sent, with the vars' values in their colour."""
    if text is None:
        yield (Span("rendered when it is sent", "muted"),)
        return
    known = sorted({part for value in values.values() for part in _pieces(value)}, key=len, reverse=True)
    found = re.compile("|".join(map(re.escape, known[:200]))) if known else None
    for line in text_lines(text):
        places = found.finditer(plain(line)) if found is not None else ()
        yield marked(line, [Mark(*match.span(), "json-text") for match in places])


def _pieces(value: Any) -> Iterator[str]:
    """What of a value can be found again in a line of the rendered prompt."""
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _pieces(item)
    elif not isinstance(value, bool) and value is not None:
        yield from (plain(line) for line in text_lines(str(value)) if len(plain(line).strip()) > 1)


def _missing(template: str, values: dict[str, Any]) -> list[str]:
    """Names that the template asks for and no var has; nothing where it makes names of its own."""
    if "{%" in template:
        return []
    names = dict.fromkeys(_NAME.findall(template))
    return [name for name in names if name not in values and name not in _KNOWN]


LONGEST_CHAT = 200_000
"""Characters of a prompt that are read; a longer one stands as it was sent."""
_STYLES = {
    "system": "role-note",
    "developer": "role-note",
    "assistant": "role-assistant",
    "tool": "role-tool_result",
}
_FOLDS = {"system": 12, "developer": 12}


class ChatMessage(NamedTuple):
    """One message of a prompt."""

    role: str
    text: str

    @property
    def style(self) -> str:
        """The style word of its head."""
        return _STYLES.get(self.role, "role-user")

    @property
    def fold(self) -> int:
        """Lines that are shown while it is folded."""
        return _FOLDS.get(self.role, 40)


def messages_in(prompt: str) -> Sequence[ChatMessage]:
    """The messages of a prompt in JSON or YAML; none where it is a text."""
    begin = prompt[:2_000].lstrip()
    if len(prompt) > LONGEST_CHAT or not begin.startswith(("[", "- role:")):
        return ()
    from tui_eval.suites.chat_prompts import chat_messages  # read when there is such a prompt

    found = chat_messages(prompt)
    return [ChatMessage(one.get("role") or one["type"], _words(one)) for one in found or ()]


def asked(prompt: str) -> str:
    """What a message to the agent asks: of a list of messages the last one of the user."""
    messages = messages_in(prompt)
    said = [one.text for one in messages if one.role == "user"]
    return (said or [one.text for one in messages] or [prompt])[-1]


def _words(message: dict[str, Any]) -> str:
    """A message's text; pictures, sounds and calls in it as JSON, cut."""
    if "role" not in message:  # a call or its result, between messages of a responses API
        return dumped(message)
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    words = [_part(part) for part in parts if part is not None]
    if message.get("tool_calls"):
        words.append(dumped(message["tool_calls"]))
    return "\n".join(words)


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return part["text"]
    text = dumped(part)
    return text if len(text) <= 200 else f"{text[:199]}…"
