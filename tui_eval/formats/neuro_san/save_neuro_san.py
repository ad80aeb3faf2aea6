"""A conversation saved as a neuro-san test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from msgspec import UNSET

from tui_eval.model import Assertion, Case, Turn
from tui_eval.suites.saved_talk import SavedReply, Talk
from tui_eval.yaml.yaml_edit import EditError

_KEYS = re.compile(r'"([^"]*)"|([^.]+)')
"""Parts of a target; one that holds a dot stands in double quotes."""


def neuro_san(talk: Talk) -> str:
    """A neuro-san test.

    Raises:
        EditError: the case has a value that HOCON cannot hold.
    """
    blocks = [
        "        {\n" + ",\n".join(f"            {key}: {_json(value)}" for key, value in parts.items()) + "\n        }"
        for parts in (_interaction(talk, turn) for turn in talk.turns)
    ]  # fmt: skip
    name = " ".join(talk.name.split())
    settings = {
        "agent": talk.agent,
        "connections": talk.connection or "http",
        **(_settings(talk.case) if talk.case is not None else {}),
    }
    return (
        f"# {name if name.isprintable() else 'a saved conversation'}\n{{\n"
        + "".join(f"    {key}: {_json(value)}\n" for key, value in settings.items())
        + "    interactions: [\n"
        + ",\n".join(blocks)
        + "\n    ]\n}\n"
    )


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise EditError(f"a value of the case cannot be written: {error}") from None


def _settings(case: Case) -> dict[str, Any]:
    """What the case's file says besides its interactions."""
    given: dict[str, Any] = dict(case.options)
    if case.request_metadata is not None:
        given["metadata"] = case.request_metadata
    if case.timeout is not None:
        given["timeout_in_seconds"] = case.timeout
    return given


def _interaction(talk: Talk, reply: SavedReply) -> dict[str, Any]:
    """One turn: the message, and what the case's own turn says beside it."""
    turns = talk.case.turns if talk.case is not None else []
    own = turns[reply.turn - 1] if 0 < reply.turn <= len(turns) else Turn(None)
    parts: dict[str, Any] = {"text": reply.asked}
    for key, value in (
        ("sly_data", own.sly_data),
        ("timeout_in_seconds", own.timeout),
        ("chat_filter", own.chat_filter),
    ):
        if value is not None:
            parts[key] = value
    if not own.continue_conversation:
        parts["continue_conversation"] = False
    said = talk.proposed(reply)
    if own.assertions:
        parts["response"] = _response(own.assertions)
    elif said:
        parts["response"] = {"text": {"keywords": said}}
    return parts


def _response(assertions: Iterable[Assertion]) -> dict[str, Any]:
    """The tests of a turn, each under its part and keys; several of one name are a list."""
    tree: dict[str, Any] = {}
    for one in assertions:
        place = tree
        for quoted, plain in _KEYS.findall(one.target):
            place = place.setdefault(quoted or plain, {})
        values = place.setdefault(one.type, [])
        if one.value is not UNSET:
            values.append(one.value)
    return tree
