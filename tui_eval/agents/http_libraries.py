"""httpx and aiohttp, imported without what they do while loading that nothing here uses: httpx's own command
line (it loads rich and pygments) and aiohttp's reading of all certificate authorities. Together they are a
quarter of the start of `tui-eval run`, so modules that speak HTTP take the libraries from here."""

from __future__ import annotations

import contextlib
import ssl
import sys
import threading
from collections.abc import Iterator
from typing import Any


class _AuthoritiesLater(ssl.SSLContext):
    """A default context of aiohttp's that reads the machine's authorities at its first connection."""

    def _read(self) -> None:
        object.__setattr__(self, "__class__", ssl.SSLContext)
        self.set_default_verify_paths()

    def wrap_bio(self, *arguments: Any, **options: Any) -> Any:
        """As the class above does, with the authorities."""
        self._read()
        return self.wrap_bio(*arguments, **options)

    def wrap_socket(self, *arguments: Any, **options: Any) -> Any:
        """As the class above does, with the authorities."""
        self._read()
        return self.wrap_socket(*arguments, **options)

    def get_ca_certs(self, *arguments: Any, **options: Any) -> Any:
        """As the class above does, with the authorities."""
        self._read()
        return self.get_ca_certs(*arguments, **options)


@contextlib.contextmanager
def _authorities_later() -> Iterator[None]:
    """Contexts that this thread makes inside read their authorities later; other threads' as ever."""
    original = ssl.SSLContext.set_default_verify_paths
    thread = threading.get_ident()

    def later(context: ssl.SSLContext) -> None:
        if threading.get_ident() == thread and type(context) is ssl.SSLContext:
            object.__setattr__(context, "__class__", _AuthoritiesLater)
        else:
            original(context)

    type.__setattr__(ssl.SSLContext, "set_default_verify_paths", later)
    try:
        yield
    finally:
        type.__delattr__(ssl.SSLContext, "set_default_verify_paths")


@contextlib.contextmanager
def _without_command_line() -> Iterator[None]:
    """httpx does without its command line inside, as where its extra is not installed."""
    if "httpx" in sys.modules:
        yield
        return
    sys.modules["httpx._main"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop("httpx._main", None)


with _without_command_line():
    import httpx
    from httpx_sse import EventSource
with _authorities_later():
    import aiohttp
    from httpx_aiohttp import AiohttpTransport

__all__ = ["AiohttpTransport", "EventSource", "aiohttp", "httpx"]
