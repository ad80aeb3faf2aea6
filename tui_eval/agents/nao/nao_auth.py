"""Signing in to a nao backend: e-mail and password, a token, what nao stored, or the browser."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from aiohttp import web

from tui_eval.agents.base import AgentError
from tui_eval.agents.entry_options import Options, below, usual_secret
from tui_eval.agents.http.http_connections import place_of
from tui_eval.agents.loose_json import decode, encode
from tui_eval.config.config_values import destination, host_of, is_loopback

if TYPE_CHECKING:
    from tui_eval.agents.http.http_call import HttpClient


# -- Signing in to a nao backend in a browser, which may be on another machine than this one.


WAIT = 300.0
"""Seconds in which the person has to approve."""
SIGN_IN_TIME = 30.0
"""Seconds in which the backend has to answer."""
_PAGE = """<!doctype html><meta charset="utf-8"><title>tui-eval</title>
<p style="font: 1.1em sans-serif; margin: 20vh auto; text-align: center">{}</p>"""


async def sign_in(
    backend: str,
    exchange: Callable[[str], Awaitable[str]],
    tell: Callable[[str], None],
    wait: float = WAIT,
) -> str:
    """The token that the backend gives for the person's approval.

    Args:
        backend: Address of the backend, without a slash at its end.
        exchange: Gets a token for the code.
        tell: Shows a line to the person: where to go.
        wait: Seconds.

    Raises:
        AgentError: nobody approved in time, or the person refused.
    """
    state = secrets.token_urlsafe(32)
    answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def callback(request: web.Request) -> web.Response:
        if not secrets.compare_digest(request.query.get("state", ""), state):
            return _page("This is not the sign-in that tui-eval waits for.", 400)
        code = request.query.get("code", "")
        if not answered.done():
            answered.set_result("" if request.query.get("error") else code)
        return _page("Signed in. Go back to your terminal." if code else "Sign-in was refused.")

    app = web.Application()
    app.router.add_get("/callback", callback)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        page = below(backend, "cli-login")
        url = f"{page}{'&' if '?' in page else '?'}{urlencode({'port': port, 'state': state})}"
        far = _far_away()
        if not far:
            await asyncio.to_thread(webbrowser.open, url)
        hint = (
            f" (in a browser on another machine: first ssh -L {port}:127.0.0.1:{port} to here)" if far else ""
        )
        tell(f"sign in to nao within {wait / 60:.0f} minutes: {url}{hint}")
        try:
            async with asyncio.timeout(wait):
                code = await answered
        except TimeoutError:
            raise AgentError(
                f"sign-in at {backend}: nobody approved within {wait:.0f} s",
                code="not-signed-in",
                said=f"nobody approved within {wait:.0f} s",
            ) from None
    finally:
        await runner.cleanup()
    if not code:
        raise AgentError(
            f"sign-in at {backend}: refused in the browser",
            code="not-signed-in",
            said="refused in the browser",
        )
    return await exchange(code)


def _page(text: str, status: int = 200) -> web.Response:
    return web.Response(text=_PAGE.format(text), content_type="text/html", status=status)


def _far_away() -> bool:
    """Whether there is no browser to open here; a text browser would take the terminal."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return True
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return not (shown or sys.platform == "darwin")


Tell = Callable[[str], None]
"""Shows a line to the person who runs the evaluation."""

_approved: dict[str, dict[str, str]] = {}
"""Headers by backend, from sign-ins in a browser: for as long as this process lives, and never stored."""


class Credentials:
    """Who signs in where: the token given; else, as nao's own command line, e-mail and password (given, else
    NAO_USERNAME and NAO_PASSWORD; also where that token has ended), else ~/.nao/auth.json (read, never written),
    else the browser, where a person is there to be told of it."""

    def __init__(self, options: Options, url: str) -> None:
        self.name = options.spec.name
        self.url = url
        self.email = options.text("email") or options.text("username") or os.environ.get("NAO_USERNAME")
        self.password = usual_secret(options, "password", url, "NAO_PASSWORD")
        self.headers: dict[str, str] = {}
        self.generation = 0
        self._refused: AgentError | None = None
        self._refusals = 0
        self._tell: Tell | None = None
        self._lock = asyncio.Lock()
        spec, trust = options.spec, options.services.trust
        self._given = bool(options.text("token"))
        if token := options.text("token"):
            self.headers = {"Authorization": f"Bearer {token}"}
        elif not self.can_sign_in and (stored := stored_sign_in()):
            own = os.environ.get("BACKEND_URL")
            if not (spec.typed or is_loopback(url) or (own and host_of(own) == host_of(url))):
                trust.require(f"send the sign-in of ~/.nao/auth.json to {destination(url)}")
            self.headers = stored
        elif not self.can_sign_in:
            self.headers = _approved.get(url, {})

    @property
    def can_sign_in(self) -> bool:
        """Whether there are an e-mail and a password."""
        return bool(self.email and self.password)

    async def prepare(self, client: HttpClient, tell: Tell | None) -> None:
        """Sign in where nothing says yet who asks; `tell` shows the person where to go.

        Raises:
            AgentError: there is nothing to sign in with, or the server refuses it.
        """
        self._tell = tell
        if not self.headers:
            await self.renew(client, self.generation)

    async def current(self, client: HttpClient) -> dict[str, str]:
        """The headers that say who asks.

        Raises:
            AgentError: as `prepare`.
        """
        if not self.headers:
            await self.renew(client, self.generation)
        return self.headers

    async def renew(self, client: HttpClient, seen: int) -> None:
        """Sign in again, unless another attempt did since generation `seen`.

        Raises:
            AgentError: as `prepare`.
        """
        refusals = self._refusals
        async with self._lock:
            if self.generation != seen:
                return
            if self._refused is not None and self._refusals != refusals:
                # It was tried meanwhile: all attempts, one after the other, would wait for the same.
                refused = self._refused
                raise AgentError(str(refused), status=refused.status, like=refused)
            try:
                await self._sign_in_anew(client)
            except AgentError as error:
                self._refused, self._refusals = error, self._refusals + 1
                raise
            self.generation += 1

    async def _sign_in_anew(self, client: HttpClient) -> None:
        """Raises `AgentError` as `prepare`."""
        if self.can_sign_in:
            token = await self._sign_in(client)
        elif self._tell is not None and not self._given:
            await self._reach(client)
            token = await sign_in(self.url, lambda code: self.exchange(client, code), self._tell)
            _approved[self.url] = {"Authorization": f"Bearer {token}"}
        elif self.headers:
            raise AgentError(
                "Unauthorized. Please check your credentials.", status=401, said="check your credentials"
            )
        else:
            raise AgentError(
                f"agents.{self.name}: no nao credentials; give email and password, set NAO_USERNAME and "
                "NAO_PASSWORD, or sign in once with nao login",
                code="not-signed-in",
                said="no nao credentials",
            )
        self.headers = {"Authorization": f"Bearer {token}"}

    async def _reach(self, client: HttpClient) -> None:
        """Nobody is sent to a page that no server shows.

        Raises:
            AgentError: there is no server.
        """
        call = client.call("GET", below(self.url, ""), any_status=True)
        try:
            async with self._in_time(f"sign-in at {self.url}"):
                async for _ in call.open():
                    pass
        finally:
            await call.close()

    @asynccontextmanager
    async def _in_time(self, what: str) -> AsyncIterator[None]:
        """No time limit of an attempt holds while it is prepared; a server that takes connections and says nothing
        would be waited for ten minutes.

        Raises:
            AgentError: there was no answer.
        """
        try:
            async with asyncio.timeout(SIGN_IN_TIME):
                yield
        except TimeoutError:
            said = f"no answer within {SIGN_IN_TIME:g} s"
            raise AgentError(
                f"{what}: {said}", code="not-signed-in", said=said, place=place_of(self.url)
            ) from None

    async def exchange(self, client: HttpClient, code: str) -> str:
        """The token for a code from the browser."""
        body = {"code": code}
        return await self._token(client, "api/cli-auth/token", body, f"sign-in at {self.url}")

    async def _sign_in(self, client: HttpClient) -> str:
        body = {"email": self.email, "password": self.password}
        what = f"sign-in at {self.url} as {self.email}"
        return await self._token(client, "api/auth/sign-in/email", body, what)

    async def _token(self, client: HttpClient, path: str, body: dict[str, Any], what: str) -> str:
        call = client.call("POST", below(self.url, path), body=encode(body))
        async with self._in_time(what):
            try:
                # What goes over the wire here is all secret: none of it is shown.
                answer = decode(await call.whole())
            except ValueError:
                raise AgentError(
                    f"{what}: the answer is not JSON", code="not-signed-in", said="the answer is not JSON"
                ) from None
            except AgentError as error:
                reason = str(error).partition(f"{path}: ")[2] or str(error)
                raise AgentError(f"{what}: {reason}", status=error.status, like=error) from None
        token = answer.get("token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise AgentError(
                f"{what}: the answer has no token", code="not-signed-in", said="the answer has no token"
            )
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
