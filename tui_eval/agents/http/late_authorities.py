"""aiohttp, imported without the machine's certificate authorities: their reading takes 40 ms of every start.

aiohttp reads them twice while it is imported, for two contexts that serve sessions without one of their own. Here
they are read when such a context is first used; a run over plain http, or with a context of ours, never does.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _read_late(context: ssl.SSLContext) -> None:
    """In place of `set_default_verify_paths`: called once something is encrypted with the context."""

    def first(wrap: str) -> Any:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            for own in ("wrap_bio", "wrap_socket"):
                vars(context).pop(own, None)
            context.set_default_verify_paths()
            return getattr(context, wrap)(*arguments, **options)

        return wrapped

    vars(context).update(wrap_bio=first("wrap_bio"), wrap_socket=first("wrap_socket"))


@contextmanager
def authorities_read_late() -> Iterator[None]:
    """Contexts that are made inside trust the same as ever, but read it late."""
    ssl.SSLContext.set_default_verify_paths = _read_late  # type: ignore[method-assign]
    try:
        yield
    finally:
        del ssl.SSLContext.set_default_verify_paths  # it hid that of the class above
