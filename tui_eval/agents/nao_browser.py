"""Signing in to a nao backend in a browser, which may be on another machine than this one.

As nao's own command line does (nao-core 0.3.29): the person approves at `/cli-login`, the browser comes
back to a callback on 127.0.0.1 with a code that is good once, and the code is exchanged for a token.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import webbrowser
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

from aiohttp import web

from tui_eval.agents.base import AgentError

WAIT = 300.0
"""Seconds in which the person has to approve."""
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
        url = f"{backend}/cli-login?{urlencode({'port': port, 'state': state})}"
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
            raise AgentError(f"sign-in at {backend}: nobody approved within {wait:.0f} s") from None
    finally:
        await runner.cleanup()
    if not code:
        raise AgentError(f"sign-in at {backend}: refused in the browser")
    return await exchange(code)


def _page(text: str, status: int = 200) -> web.Response:
    return web.Response(text=_PAGE.format(text), content_type="text/html", status=status)


def _far_away() -> bool:
    """Whether there is no browser to open here; a text browser would take the terminal."""
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return True
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return not (shown or sys.platform == "darwin")
