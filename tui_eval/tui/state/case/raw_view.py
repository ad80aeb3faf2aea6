"""The Raw tab: requests and responses as sent, what people's code printed, what was rendered."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tui_eval.model import Attempt, Exchange
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.formatting import duration
from tui_eval.tui.state.text.json_lines import LONG, value_lines
from tui_eval.tui.state.text.lines import Line, Span, text_lines

_BLANK_LINE = re.compile(r"\r?\n\r?\n")
LONGEST_HEAD = 100_000
"""Characters within which what stands over a body ends."""


def build(attempt: Attempt, *, rendered: bool = True, prompt: Sequence[Block] = ()) -> list[Block]:
    """A rule per exchange with status and times, then request and response; JSON indented where
    `rendered`. Secrets were masked before anything was stored. `prompt` shows prompt and vars already
    (`prompt_view`) and stands first."""
    blocks: list[Block] = list(prompt)
    if attempt.cached:
        words = f"{attempt.cached_words}: what was answered before was taken, and no request made for it"
        blocks.append(Block("cached", "note", "note", partial(text_lines, words, "note"), 0, "role-note"))
    if attempt.ran_on:
        blocks.append(
            Block(
                "ran", "note", "note", partial(text_lines, f"ran on {attempt.ran_on}", "note"), 0, "role-note"
            )
        )
    for index, exchange in enumerate(attempt.exchanges):
        blocks.append(_rule(index, exchange, attempt.started_at))
        blocks.append(_part(f"q{index}", "request", exchange.request, rendered, "role-user", exchange.turn))
        if exchange.response or exchange.status is not None:
            blocks.append(
                _part(f"r{index}", "response", exchange.response, rendered, "role-assistant", exchange.turn)
            )
        if exchange.note:
            blocks.append(
                Block(
                    f"n{index}",
                    "note",
                    "note",
                    partial(text_lines, exchange.note, "note"),
                    exchange.turn,
                    "role-note",
                )
            )
    for reply in attempt.replies:
        if reply.metadata:
            blocks.append(
                _part(f"m{reply.turn}", "metadata", reply.metadata, rendered, "role-note", reply.turn)
            )
        if reply.sly_data:
            source = partial(_held_back, reply.sly_data, rendered)
            blocks.append(
                Block(f"s{reply.turn}", "part", "sly_data", source, reply.turn, "role-note", fold=1)
            )
    for key, label, value in (
        ("stdout", "printed", attempt.stdout),
        ("prompt", "prompt", attempt.prompt_sent if not prompt else None),
        ("vars", "vars", (attempt.vars or None) if not prompt else None),
        ("output", "output", attempt.output),
        ("scores", "scores", attempt.named_scores or None),
    ):
        if value not in (None, ""):
            blocks.append(_part(key, label, value, rendered, "role-note", 0))
    if not blocks:
        asked = any(entry.kind == "user" for entry in attempt.transcript)
        wire = "Nothing was sent or kept: this agent does not speak over a wire."
        words = wire if asked else "Nothing was sent: the agent was not asked."
        blocks.append(Block("empty", "note", "", partial(text_lines, words, "muted")))
    return blocks


def _rule(index: int, exchange: Exchange, started: float) -> Block:
    facts = [f"status {exchange.status}" if exchange.status is not None else "no response"]
    if exchange.duration_ms is not None:
        facts.append(duration(exchange.duration_ms))
    if exchange.started_at:
        facts.append(time.strftime("%H:%M:%S", time.localtime(exchange.started_at)))
        if started and exchange.started_at >= started:
            facts.append(f"+{duration((exchange.started_at - started) * 1000)}")
    bad = exchange.status is None or exchange.status >= 400
    line: Line = (Span(" · ".join(facts), "error" if bad else "muted"),)
    label = f"exchange {index + 1} · turn {exchange.turn}"
    return Block(f"x{index}", "turn", label, lambda: iter((line,)), exchange.turn, "strong", failing=bad)


def _part(key: str, label: str, value: Any, rendered: bool, style: str, turn: int) -> Block:
    length = len(value) if isinstance(value, str) else 0
    raw = value if length > LONG else ""
    return Block(key, "part", label, partial(_lines, value, rendered), turn, style, 60, length, raw=raw)


def _held_back(value: Any, rendered: bool) -> Iterator[Line]:
    """Sly data is private to the networks: seen where somebody unfolds it."""
    yield (Span("came back with the answer; unfold to see it", "muted"),)
    yield ()
    yield from value_lines(value, rendered=rendered)


def _lines(value: Any, rendered: bool) -> Iterator[Line]:
    """A part's lines; a text of HTTP shape keeps its head, its body is indented where it is JSON."""
    if value == "":
        yield (Span("empty", "muted"),)
        return
    if rendered and isinstance(value, str):
        found = _BLANK_LINE.search(value, 0, LONGEST_HEAD)
        head, body = (value[: found.start()], value[found.end() :]) if found else ("", "")
        if found and not head.lstrip().startswith(("{", "[")) and body[:99].lstrip().startswith(("{", "[")):
            yield from text_lines(head, "muted")
            yield ()
            yield from value_lines(body)
            return
    yield from value_lines(value, rendered=rendered)
