"""How a promptfoo HTTP provider signs in: bearer, basic, API key, OAuth, or a file of the suite."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tui_eval.agents.base import AgentError, Services
from tui_eval.agents.http.error_answers import explain
from tui_eval.agents.http.http_call import HttpCall, HttpClient
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode, text_of
from tui_eval.agents.programs.suite_scripts import Scripts
from tui_eval.agents.promptfoo.promptfoo_request import FORM_TYPE, HttpRequest, basic, filled, with_query
from tui_eval.config.project import ConfigError
from tui_eval.guard.once import Once

_EARLY = 60.0
"""Seconds before its end at which a token is not used any more."""
_LASTS = 3600.0
_KEPT = 256
"""Tokens that are kept at once."""
_NEEDED = {
    "bearer": ("token",),
    "basic": ("username", "password"),
    "api_key": ("value", "keyName"),
    "oauth": ("tokenUrl",),
    "file": ("path",),
}


class Authorization:
    """Adds what signs a request in; tokens are kept until shortly before they end. Secrets that it gets to know are
    masked wherever something is kept.

    Raises:
        ConfigError: the settings are not complete; one line.
    """

    def __init__(
        self,
        settings: Any,
        services: Services,
        scripts: Scripts,
        provider: str,
        context: ssl.SSLContext | None,
    ) -> None:
        self.settings: dict[str, Any] = settings if isinstance(settings, dict) else {}
        self.kind = str(self.settings.get("type", "")).replace("-", "_").lower().replace("oauth2", "oauth")
        self._services = services
        self._scripts = scripts
        self._context = context
        self._client: HttpClient | None = None
        self._tokens: dict[bytes, tuple[str, float | None, float]] = {}
        self._asking: dict[bytes, Once[tuple[str, float | None, float]]] = {}
        if self.settings and self.kind not in _NEEDED:
            raise ConfigError(
                f"provider {provider}: config.auth.type {self.settings.get('type')!r} is not known: "
                f"{', '.join(_NEEDED)}"
            )
        for key in _NEEDED.get(self.kind, ()):
            if self.settings.get(key) is None:
                raise ConfigError(f"provider {provider}: config.auth.{key} is missing")

    async def prepare(self, values: dict[str, Any], asking: Mapping[str, Any]) -> None:
        """Have a token where one must be asked for, and put it among the values of the templates (`token`, of a file
        also `expiration`). `asking` is what a file's function is given.

        Raises:
            AgentError: there is no token to be had.
            NeedsTrust: the file is code of a folder that is not trusted.
        """
        if self.kind not in ("oauth", "file"):
            return
        form = self._form(values) if self.kind == "oauth" else {}
        key = encode(
            [self._text("tokenUrl", values), form] if form else [self.settings["path"], dict(asking)]
        )
        kept = self._tokens.get(key)
        if kept is None or time.monotonic() >= kept[2]:

            async def made() -> tuple[str, float | None, float]:
                token = await (self._from_server(form, values) if form else self._from_file(asking))
                self._services.conceal(token[0])
                if len(self._tokens) >= _KEPT:
                    del self._tokens[next(iter(self._tokens))]
                self._tokens[key] = token
                return token

            # Tests that are given tokens of their own do not wait for each other's.
            asked = self._asking.setdefault(key, Once())
            try:
                kept = await asked.get(made)
            finally:
                if self._asking.get(key) is asked and not asked.waited_for:
                    del self._asking[key]
        values["token"] = kept[0]
        if self.kind == "file":
            values["expiration"] = kept[1]

    def add(self, request: HttpRequest, values: Mapping[str, Any]) -> None:
        """Sign the request in, in place. A file's token goes only where the templates name `{{token}}`.

        Raises:
            AgentError: a template cannot be rendered.
        """
        if self.kind == "bearer":
            request.headers["authorization"] = f"Bearer {self._secret('token', values)}"
        elif self.kind == "oauth":
            request.headers["authorization"] = f"Bearer {values['token']}"
        elif self.kind == "basic":
            user, password = self._text("username", values), self._secret("password", values)
            request.headers["authorization"] = basic(user, password)
        elif self.kind == "api_key":
            name, value = self._text("keyName", values), self._secret("value", values)
            if str(self.settings.get("placement", "header")) == "query":
                request.url = with_query(request.url, {name: value})
            else:
                request.headers[name.lower()] = value

    def _form(self, values: Mapping[str, Any]) -> dict[str, str]:
        grant = str(self.settings.get("grantType") or "client_credentials")
        form = {"grant_type": grant}
        theirs = {"clientId": "client_id", "clientSecret": "client_secret"}
        if grant == "password":
            theirs |= {"username": "username", "password": "password"}
        for ours, name in theirs.items():
            if self.settings.get(ours):
                form[name] = self._text(ours, values)
        scopes = self.settings.get("scopes", self.settings.get("scope"))
        if scopes:
            listed = scopes if isinstance(scopes, list) else [scopes]
            form["scope"] = " ".join(filled(text_of(scope), values) for scope in listed)
        return form

    async def _from_server(
        self, form: Mapping[str, str], values: Mapping[str, Any]
    ) -> tuple[str, float | None, float]:
        url = self._text("tokenUrl", values)
        for name in ("client_secret", "password"):
            self._services.conceal(form.get(name, ""))
        if self._client is None:
            self._client = HttpClient(url, context=self._context)
        call = self._client.call(
            "POST", url, body=urlencode(form).encode(), headers={"content-type": FORM_TYPE}, any_status=True
        )
        text = await answered(call, url, "config.auth: no token,", "no token")
        try:
            answer = decode(text)
        except ValueError:
            answer = None
        if not isinstance(answer, dict) or not answer.get("access_token"):
            raise AgentError(
                f"config.auth: {url} did not answer with a token (access_token)",
                code="not-signed-in",
                said="no access_token in the answer",
                place=place_of(url),
            )
        lasts = answer.get("expires_in")
        lasts = float(lasts) if isinstance(lasts, int | float) and lasts else _LASTS
        return str(answer["access_token"]), None, time.monotonic() + lasts - _EARLY

    async def _from_file(self, asking: Mapping[str, Any]) -> tuple[str, float | None, float]:
        path = self.settings["path"]
        found = await self._scripts.file(str(path), [dict(asking)], "config.auth", "get_auth")
        token = found.get("token") if isinstance(found, dict) else None
        ends = found.get("expiration") if isinstance(found, dict) else None
        if not isinstance(token, str) or not token or not isinstance(ends, int | float | None):
            raise AgentError(
                f"config.auth: {path} must return {{token, expiration}}, the end in milliseconds since 1970 (or none)",
                code="bad-setting",
                said=f"{path} must return {{token, expiration}}",
            )
        if ends is None:
            return token, None, float("inf")
        return token, ends, time.monotonic() + ends / 1000 - time.time() - _EARLY

    async def close(self) -> None:
        """Close the connections to the token's server."""
        if self._client is not None:
            await self._client.close()

    def _secret(self, key: str, values: Mapping[str, Any]) -> str:
        value = self._text(key, values)
        self._services.conceal(value)
        return value

    def _text(self, key: str, values: Mapping[str, Any]) -> str:
        return filled(text_of(self.settings.get(key)), values)


async def answered(call: HttpCall, url: str, whose: str, said: str) -> str:
    """The text of an answer that the agent's own requests need. `whose` begins the message if there is none, `said`
    its short form.

    Raises:
        AgentError: the server refuses.
    """
    text = (await call.whole()).decode("utf-8", "replace")
    if not 200 <= (call.status or 0) < 300:
        why = explain(text, call.headers)
        message = f"{whose} HTTP {call.status} from {url}: {why}"
        raise AgentError(message, status=call.status, said=f"{said}: {why}", place=place_of(url))
    return text
