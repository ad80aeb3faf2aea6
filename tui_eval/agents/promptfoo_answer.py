"""The reply that the answer of a promptfoo HTTP provider means: status, transforms, metadata, tokens."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.http_answers import explain
from tui_eval.agents.http_call import SENSITIVE, Call
from tui_eval.agents.promptfoo_session import parsed
from tui_eval.agents.provider_response import read_response
from tui_eval.agents.suite_scripts import Scripts
from tui_eval.agents.wire import decode, text_of
from tui_eval.events import Event, TextDelta
from tui_eval.guard import figures
from tui_eval.model import Reply, Usage

_WORDS = 1.3
"""Tokens for a word, unless the suite says otherwise."""


class AnswerReader:
    """Reads the answers of one provider by its `config`.

    `reference` keeps to promptfoo where it loses something: every status is an answer, and an output that is empty or
    an error becomes an object.
    """

    def __init__(self, config: Mapping[str, Any], scripts: Scripts) -> None:
        self._config = config
        self._scripts = scripts

    async def check_status(self, call: Call, text: str, reference: bool) -> None:
        """promptfoo takes every status for an answer unless told otherwise; we do not, save to the
        letter (`compat: reference`).

        Raises:
            AgentError: this status is none.
        """
        status = call.status or 0
        check = self._config.get("validateStatus")
        if isinstance(check, str) and check:
            plain = check.strip()
            bare = "=>" not in plain and not plain.startswith(("function", "file://"))
            code = f"(status) => {plain}" if bare else plain
            values = {"status": status}
            fine = bool(await self._scripts.run(code, values, "config.validateStatus", given=check))
        else:
            # Of a server that stays busy promptfoo makes an error, too.
            fine = status < 400 or (reference and status != 429)
        if not fine:
            raise AgentError(
                f"HTTP {status} from {call.url}: {explain(text, call.headers)}", status=status, answer=text
            )

    async def read(
        self,
        call: Call,
        text: str,
        turn: int,
        values: Mapping[str, Any],
        prompt: Any,
        reference: bool,
        took: float,
    ) -> tuple[list[Event], Reply]:
        """The reply, and what it shows. `prompt` is what was sent after `transformRequest`; `took` in ms.

        Raises:
            AgentError: a transform fails, or says an error.
        """
        parser = self._config.get("transformResponse") or self._config.get("responseParser")
        value = _something(text)
        found: Any = text if value is None else value
        answers = isinstance(
            parser, str
        )  # only a transform's result can be a whole answer with metadata and cost
        if isinstance(parser, str):
            found = await self._transformed(parser, value, call, text, took)
        if (
            answers
            and isinstance(found, dict)
            and (found.get("output") or (found.get("error") and not reference))
        ):
            events, reply = read_response(found, turn)
        else:
            answers = False
            if found is None:
                found = {}  # as promptfoo stores what is undefined
            elif reference and not isinstance(found, dict | list) and not found:
                found = {"output": found}
            reply = Reply(turn=turn, text=text_of(found))
            if not isinstance(found, str):
                reply.output = found
            events = []
            if reply.text:
                events.append(TextDelta(reply.text))
        if reply.raw is None:
            reply.raw = text
        reply.metadata = {**(reply.metadata or {}), "http": self._http(call)}
        session = found.get("sessionId") if answers and isinstance(found, dict) else None
        session_parser = self._config.get("sessionParser")
        if not session and isinstance(session_parser, str):
            session = await parsed(self._scripts, session_parser, call, text, "config.sessionParser")
        if session := session or values.get("sessionId"):
            reply.metadata["sessionId"] = text_of(session)
        if reply.usage is None:
            told = found.get("output") if answers and isinstance(found, dict) else found
            self._estimate(reply, str(values["prompt"]), prompt, told if isinstance(told, str) else text)
        return events, reply

    async def _transformed(self, parser: str, value: Any, call: Call, text: str, took: float) -> Any:
        response = {
            "data": text,
            "status": call.status,
            "statusText": call.reason,
            "headers": dict(call.headers.items()),
            "cached": False,
            "latencyMs": round(took),
        }
        given = {"json": value, "text": text, "context": {"response": response}}
        return await self._scripts.run(parser, given, "config.transformResponse", "parse_response")

    def _http(self, call: Call) -> dict[str, Any]:
        shown = {
            name: "[REDACTED]" if name.lower() in SENSITIVE else item for name, item in call.headers.items()
        }
        return {"status": call.status, "statusText": call.reason, "headers": shown}

    def _estimate(self, reply: Reply, original: str, prompt: Any, answer: str) -> None:
        """Tokens guessed from words, where the suite asks for it."""
        settings = self._config.get("tokenEstimation")
        if not isinstance(settings, dict) or settings.get("enabled") is not True:
            return
        factor = settings.get("multiplier")
        factor = factor if figures.is_finite(factor) and factor > 0 else _WORDS
        sent = prompt if isinstance(prompt, str) else original
        reply.usage = Usage(math.ceil(len(sent.split()) * factor), math.ceil(len(answer.split()) * factor))


def _something(text: str) -> Any:
    """The JSON value of a body; None where it is none, or one that JavaScript takes for nothing."""
    try:
        value = decode(text)
    except ValueError:
        return None
    return value if value or isinstance(value, dict | list) else None
