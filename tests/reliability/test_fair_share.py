"""What one reply may take of the loop at a time, and whose time limit is spent."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable

import pytest

from tests.support.agents import opened_in_pieces

MEGABYTES = 48


def _packed() -> list[bytes]:
    packer = zlib.compressobj(9, wbits=31)
    body = packer.compress(b"0" * MEGABYTES * 1_000_000) + packer.flush()
    return [body[start : start + 16_384] for start in range(0, len(body), 16_384)]


@pytest.mark.parametrize(
    ("pieces", "headers"),
    [
        (lambda: [b"word " * 3276] * (MEGABYTES * 61), {}),
        (_packed, {"content-encoding": "gzip"}),
        (lambda: [b"data: x\n\n" * 1820] * (MEGABYTES * 4), {"content-type": "text/event-stream"}),
    ],
)
async def test_a_body_that_is_always_there_lets_others_work(
    pieces: Callable[[], list[bytes]], headers: dict[str, str]
) -> None:
    call = await opened_in_pieces(pieces, headers)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    working = asyncio.ensure_future(other())
    await asyncio.sleep(0)
    before, size = turns, 0
    if headers.get("content-type"):
        async for data in call.events():
            size += len(data)
    else:
        async for chunk in call.chunks():
            size += len(chunk)
            assert len(chunk) <= 1 << 18
    during = turns - before
    working.cancel()
    assert size > 300_000
    assert during >= 3
