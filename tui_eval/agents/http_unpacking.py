"""Bodies that a server sends packed although nobody asked for it: unpacked a little at a time, since a few
kilobytes may stand for gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tui_eval.agents.base import AgentError

PIECE = 1 << 16
"""Bytes that are unpacked at once."""
_KNOWN = ("gzip", "x-gzip", "deflate")
_GZIP_OR_ZLIB, _BARE = 47, -15


class Unpacking:
    """The bytes of a body by its `Content-Encoding` (RFC 9110 8.4).

    Raises:
        AgentError: the encoding is none that was asked for, nor one that is known anyway.
    """

    def __init__(self, encoding: str, url: str) -> None:
        named = [
            name for part in encoding.lower().split(",") if (name := part.strip()) not in ("", "identity")
        ]
        if unknown := [name for name in named if name not in _KNOWN]:
            raise AgentError(f"the answer of {url} is packed as {unknown[0][:40]}, which nobody asked for")
        if len(named) > 1:
            raise AgentError(f"the answer of {url} is packed {len(named)} times")
        self._url = url
        self._packed = bool(named)
        self._begun = False
        self._unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """What these bytes stand for, at most `PIECE` bytes at once.

        Raises:
            AgentError: they are damaged.
        """
        if not self._packed:
            yield data
            return
        try:
            while data:
                if self._unpacker.eof:  # several members, one after the other (RFC 1952 2.2)
                    self._unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)
                out = self._piece(data)
                data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
                if out:
                    yield out
                while len(out) == PIECE and not data and not self._unpacker.eof:
                    if out := self._unpacker.decompress(b"", PIECE):
                        yield out
        except zlib.error as error:
            raise AgentError(f"the answer of {self._url} cannot be unpacked: {error}") from None

    def _piece(self, data: bytes) -> bytes:
        first, self._begun = not self._begun, True
        try:
            return self._unpacker.decompress(data, PIECE)
        except zlib.error:
            if not first:
                raise
            # Some servers send "deflate" without zlib's frame.
            self._unpacker = zlib.decompressobj(_BARE)
            return self._unpacker.decompress(data, PIECE)
