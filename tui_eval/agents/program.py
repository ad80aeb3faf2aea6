"""Running a program to its end: it is killed with everything that it started when the attempt is cut."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui_eval.agents.base import AgentError

OUTPUT_LIMIT = 64_000_000
"""Bytes of output that are read at all."""


async def run_program(
    argv: Sequence[str], stdin: bytes, cwd: str | Path, more: Mapping[str, str]
) -> tuple[int, bytes, bytes]:
    """The exit code, and what it wrote to its output and its errors. `more` is added to the environment.

    Raises:
        AgentError: it cannot be run, or writes without end.
    """
    starting = asyncio.ensure_future(
        asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, **more} if more else None,
            start_new_session=True,
        )
    )
    try:
        process = await asyncio.shield(starting)
    except asyncio.CancelledError:
        # Cut while it starts, asyncio would wait for it, and for what it starts, to end by itself.
        with suppress(OSError, ValueError):
            process = await starting
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise AgentError(f"cannot run {argv[0]}: {reason}") from None
    try:
        assert process.stdin and process.stdout and process.stderr
        out, err, _ = await asyncio.gather(
            _read(process.stdout, argv[0]),
            _read(process.stderr, argv[0]),
            _write(process.stdin, stdin),
        )
        return await process.wait(), out, err
    finally:
        # Also what it started and left behind: the group is its own.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if process.returncode is None:
            await asyncio.shield(process.wait())


async def _read(stream: asyncio.StreamReader, name: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := await stream.read(65536):
        size += len(part)
        if size > OUTPUT_LIMIT:
            raise AgentError(f"{name} wrote more than {OUTPUT_LIMIT // 1_000_000} MB")
        parts.append(part)
    return b"".join(parts)


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
    stream.close()
