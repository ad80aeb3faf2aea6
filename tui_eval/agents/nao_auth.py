"""Signing in to a nao backend: e-mail and password, a token, or what `nao test` stored."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.agents.base import AgentError
from tui_eval.agents.options import Options, guard_secret
from tui_eval.agents.wire import decode, encode
from tui_eval.config_fill import host_of, is_loopback

if TYPE_CHECKING:
    from tui_eval.agents.http_client import HttpClient


class Credentials:
    """Who signs in where. Order as of nao's own command line: e-mail and password (given, else
    NAO_USERNAME and NAO_PASSWORD), else the token given, else ~/.nao/auth.json (read, never written)."""

    def __init__(self, options: Options, url: str) -> None:
        self.name = options.spec.name
        self.url = url
        self.email = options.text("email") or options.text("username") or os.environ.get("NAO_USERNAME")
        self.password = options.text("password") or os.environ.get("NAO_PASSWORD")
        self.headers: dict[str, str] = {}
        self.generation = 0
        self._lock = asyncio.Lock()
        spec, trust = options.spec, options.services.trust
        guard_secret(spec, trust, url, {"NAO_PASSWORD": self.password})
        if token := options.text("token"):
            self.headers = {"Authorization": f"Bearer {token}"}
        elif not self.can_sign_in and (stored := stored_sign_in()):
            own = os.environ.get("BACKEND_URL")
            if not (spec.typed or is_loopback(url) or (own and host_of(own) == host_of(url))):
                trust.require(f"send the sign-in of ~/.nao/auth.json to {host_of(url)}")
            self.headers = stored

    @property
    def can_sign_in(self) -> bool:
        """Whether there are an e-mail and a password."""
        return bool(self.email and self.password)

    async def current(self, client: HttpClient) -> dict[str, str]:
        """The headers that say who asks; signs in where that is needed first.

        Raises:
            AgentError: there is nothing to sign in with, or the server refuses it.
        """
        if not self.headers:
            await self.renew(client, self.generation)
        return self.headers

    async def renew(self, client: HttpClient, seen: int) -> None:
        """Sign in again, unless another attempt did since generation `seen`.

        Raises:
            AgentError: as `current`.
        """
        async with self._lock:
            if self.generation != seen:
                return
            if not self.can_sign_in:
                if self.headers:
                    raise AgentError("Unauthorized. Please check your credentials.", status=401)
                raise AgentError(
                    f"agents.{self.name}: no nao credentials; give email and password, set NAO_USERNAME and "
                    "NAO_PASSWORD, or sign in once with nao test"
                )
            token = await self._sign_in(client)
            self.headers = {"Authorization": f"Bearer {token}"}
            self.generation += 1

    async def _sign_in(self, client: HttpClient) -> str:
        body = encode({"email": self.email, "password": self.password})
        call = client.call("POST", f"{self.url}/api/auth/sign-in/email", body=body)
        try:
            # What goes over the wire here is all secret: none of it is shown.
            async for _ in call.open():
                pass
            answer = decode(await call.read())
        except ValueError:
            raise AgentError(f"sign-in at {self.url}: the answer is not JSON") from None
        except AgentError as error:
            reason = str(error).partition("sign-in/email: ")[2] or str(error)
            raise AgentError(
                f"sign-in at {self.url} as {self.email}: {reason}", status=error.status
            ) from None
        finally:
            await call.close()
        token = answer.get("token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise AgentError(f"sign-in at {self.url}: the answer has no token")
        return token


def stored_sign_in() -> dict[str, str]:
    """The headers of the sign-in that nao's command line stored; empty where there is none."""
    try:
        value = json.loads((Path.home() / ".nao" / "auth.json").read_text("utf-8"))
    except (OSError, ValueError, RuntimeError):
        return {}
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("token"), str) and value["token"]:
        return {"Authorization": f"Bearer {value['token']}"}
    cookies = value.get("cookies")
    if isinstance(cookies, dict) and cookies:
        return {"Cookie": "; ".join(f"{name}={item}" for name, item in cookies.items())}
    return {}
