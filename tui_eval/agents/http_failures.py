"""Connections that fail, in words; and the proxy that a request goes through."""

from __future__ import annotations

import os
import urllib.request

import aiohttp
import httpx

from tui_eval.agents.wire import one_line
from tui_eval.config_fill import is_loopback

FAILURES = (httpx.TransportError, aiohttp.ClientError, OSError, TimeoutError)
"""What a connection raises; the transport lets some of aiohttp's own errors through."""


def failure_text(error: BaseException) -> str:
    """Why a connection failed, in a few words."""
    cause: BaseException = error if isinstance(error, aiohttp.ClientError) else error.__cause__ or error
    if isinstance(cause, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(cause, (httpx.TimeoutException, aiohttp.ServerTimeoutError, TimeoutError)):
        return "time limit of the connection"
    if isinstance(cause, aiohttp.ClientConnectorError):
        number = cause.os_error.errno
        # asyncio's own text hides the reason; numbers below zero are the resolver's.
        said = os.strerror(number).lower() if number and number > 0 else cause.os_error.strerror
        return one_line(said or str(cause.os_error))
    if isinstance(cause, aiohttp.ClientPayloadError):
        return "the answer is incomplete"
    return one_line(str(cause)) or type(cause).__name__


def proxy_for(url: str) -> str | None:
    """The proxy that the environment asks for; looked up once, since it costs time."""
    if is_loopback(url):
        return None
    scheme, _, rest = url.partition("://")
    proxies = urllib.request.getproxies()
    found = proxies.get(scheme) or proxies.get("all")
    if not found:
        return None
    host = rest.partition("/")[0].rpartition("@")[2]
    return None if urllib.request.proxy_bypass(host) else found
