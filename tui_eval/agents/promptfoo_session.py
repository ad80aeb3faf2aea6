"""`config.session` of a promptfoo HTTP provider: an endpoint that begins a session before the request."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from tui_eval.agents.base import AgentError
from tui_eval.agents.http_answers import explain
from tui_eval.agents.http_call import Call
from tui_eval.agents.http_client import HttpClient
from tui_eval.agents.promptfoo_request import JSON_TYPE, TEXT_TYPE, filled, filled_headers, rendered
from tui_eval.agents.suite_scripts import Scripts
from tui_eval.agents.wire import decode, encode, text_of


class SessionEndpoint:
    """Begins sessions for one provider; a session that it began is gone on with where the vars name it."""

    def __init__(self, settings: Any, scripts: Scripts, context: ssl.SSLContext | None) -> None:
        self._settings: dict[str, Any] = settings if isinstance(settings, dict) else {}
        self._scripts = scripts
        self._context = context
        self._client: HttpClient | None = None
        self._begun: set[str] = set()

    async def add(self, values: dict[str, Any]) -> None:
        """Put `sessionId` among the values of the templates.

        Raises:
            AgentError: the endpoint gave none.
        """
        if not self._settings.get("url") or values.get("sessionId") in self._begun:
            return
        values["sessionId"] = await self._begin(values)
        self._begun.add(values["sessionId"])

    async def _begin(self, values: Mapping[str, Any]) -> str:
        settings = self._settings
        url = filled(str(settings["url"]), values)
        method = str(settings.get("method") or "POST").upper()
        headers = filled_headers(settings.get("headers"), values)
        given, body = settings.get("body"), None
        if given and method != "GET":
            plain = isinstance(given, str)
            body = (
                filled(given, values).encode("utf-8", "replace") if plain else encode(rendered(given, values))
            )
            headers.setdefault("content-type", TEXT_TYPE if plain else JSON_TYPE)
        if self._client is None:
            self._client = HttpClient(url, context=self._context)
        call = self._client.call(method, url, body=body, headers=headers, any_status=True)
        try:
            async for _ in call.open():
                pass
            text = (await call.read()).decode("utf-8", "replace")
        finally:
            await call.close()
        if not 200 <= (call.status or 0) < 300:
            why = explain(text, call.headers)
            raise AgentError(f"config.session: HTTP {call.status} from {url}: {why}", status=call.status)
        parser = settings.get("responseParser")
        if not isinstance(parser, str):
            raise AgentError("config.session.responseParser is missing")
        found = await parsed(self._scripts, parser, call, text, "config.session.responseParser")
        if not found:
            raise AgentError("config.session: its answer holds no session id")
        return text_of(found)

    async def close(self) -> None:
        """Close the connections to the endpoint."""
        if self._client is not None:
            await self._client.close()


async def parsed(scripts: Scripts, parser: str, call: Call, text: str, what: str) -> Any:
    """What an expression over `data.headers` and `data.body` finds in an answer.

    Raises:
        AgentError: it fails.
    """
    try:
        body = decode(text)
    except ValueError:
        body = None
    data = {"headers": dict(call.headers.items()), "body": text if body is None else body}
    return await scripts.run(parser, {"data": data}, what)
