"""How a promptfoo HTTP provider signs in: bearer, basic, API key, OAuth, or a file of the suite."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tui_eval.agents.base import AgentError
from tui_eval.agents.http_client import HttpClient
from tui_eval.agents.promptfoo_request import FORM_TYPE, HttpRequest, basic, filled
from tui_eval.agents.suite_scripts import Scripts
from tui_eval.agents.wire import decode, text_of

_EARLY = 60.0
"""Seconds before its end at which a token is not used any more."""
_LASTS = 3600.0


class Authorization:
    """Adds what signs a request in; tokens are kept until shortly before they end."""

    def __init__(self, settings: Any, scripts: Scripts) -> None:
        self.settings: dict[str, Any] = settings if isinstance(settings, dict) else {}
        self._client: HttpClient | None = None
        self._scripts = scripts
        self._token = ""
        self._until = 0.0
        self._asking = asyncio.Lock()

    async def add(self, request: HttpRequest, values: Mapping[str, Any]) -> None:
        """Sign the request in, in place.

        Raises:
            AgentError: the settings are not complete, or there is no token to be had.
        """
        settings = self.settings
        if not settings:
            return
        kind = str(settings.get("type", "")).replace("-", "_").lower()
        if kind == "bearer":
            request.headers["authorization"] = f"Bearer {self._text('token', values)}"
        elif kind == "basic":
            request.headers["authorization"] = basic(
                self._text("username", values), self._text("password", values)
            )
        elif kind == "api_key":
            name, value = self._text("keyName", values), self._text("value", values)
            if str(settings.get("placement", "header")) == "query":
                request.url += ("&" if "?" in request.url else "?") + urlencode({name: value})
            else:
                request.headers[name.lower()] = value
        elif kind in ("oauth", "oauth2", "file"):
            async with self._asking:
                if time.monotonic() >= self._until:
                    await (self._from_file(values) if kind == "file" else self._from_server(values))
            request.headers["authorization"] = f"Bearer {self._token}"
        else:
            raise AgentError(
                f"config.auth.type {settings.get('type')!r} is not known: bearer, basic, api_key, oauth, file"
            )

    async def _from_server(self, values: Mapping[str, Any]) -> None:
        grant = str(self.settings.get("grantType") or "client_credentials")
        form = {"grant_type": grant}
        for ours, theirs in (
            ("clientId", "client_id"),
            ("clientSecret", "client_secret"),
            ("username", "username"),
            ("password", "password"),
        ):
            if self.settings.get(ours) is not None:
                form[theirs] = self._text(ours, values)
        scopes = self.settings.get("scopes", self.settings.get("scope"))
        if scopes:
            form["scope"] = " ".join(map(str, scopes)) if isinstance(scopes, list) else str(scopes)
        url = self._text("tokenUrl", values)
        if self._client is None:
            self._client = HttpClient(url)
        call = self._client.call(
            "POST", url, body=urlencode(form).encode(), headers={"content-type": FORM_TYPE}
        )
        try:
            async for _ in call.open():
                pass
            answer = decode(await call.read())
        except ValueError:
            raise AgentError(f"{url} did not answer with a token") from None
        finally:
            await call.close()
        if not isinstance(answer, dict) or not answer.get("access_token"):
            raise AgentError(f"{url} did not answer with a token")
        lasts = answer.get("expires_in")
        self._keep(str(answer["access_token"]), float(lasts) if isinstance(lasts, int | float) else _LASTS)

    async def _from_file(self, values: Mapping[str, Any]) -> None:
        path = self._text("path", values)
        found = await self._scripts.file(path, [{"vars": dict(values)}], "config.auth", "get_auth")
        token = found.get("token") if isinstance(found, dict) else None
        if not isinstance(token, str) or not token:
            raise AgentError(f"config.auth: {path} must return {{token, expiration}}")
        ends = found.get("expiration")
        lasts = ends / 1000 - time.time() if isinstance(ends, int | float) else _LASTS
        self._keep(token, lasts)

    async def close(self) -> None:
        """Close the connections to the token's server."""
        if self._client is not None:
            await self._client.close()

    def _keep(self, token: str, lasts: float) -> None:
        self._token = token
        self._until = time.monotonic() + max(0.0, lasts - _EARLY)

    def _text(self, key: str, values: Mapping[str, Any]) -> str:
        given = self.settings.get(key)
        if given is None:
            raise AgentError(f"config.auth.{key} is missing")
        return filled(text_of(given), values)
