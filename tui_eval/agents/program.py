"""Running a program to its end: it is killed with everything that it started when the attempt is cut."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tui_eval.agents.base import AgentError
from tui_eval.guard.fair_share import Share

OUTPUT_LIMIT = 64_000_000
"""Bytes of output that are read at all."""
ERROR_KEPT = 1_000_000
"""Bytes that are kept of what it writes to its errors."""
_LOOK = 0.05
_SILENT = 0.3
"""Seconds without a byte after which a program that has ended has said everything."""


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
    assert process.stdin and process.stdout and process.stderr
    out, err = _Output(process.stdout, argv[0]), _Output(process.stderr, argv[0], ERROR_KEPT)
    tasks = [asyncio.ensure_future(part) for part in (out.read(), err.read(), _write(process.stdin, stdin))]
    try:
        await _ended(process, tasks, (out, err))
        await asyncio.wait([asyncio.ensure_future(_exit(process))])
        assert process.returncode is not None
        return process.returncode, out.taken(), err.taken()
    finally:
        # Also what it started and left behind: the group is its own.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for task in tasks:
            task.cancel()
        # All of them are heard out: an error that nobody asks for would be printed.
        await asyncio.shield(asyncio.gather(*tasks, _exit(process), return_exceptions=True))
        # What left the group may hold the pipes for ever; they are closed at this end.
        process._transport.close()  # type: ignore[attr-defined]  # asyncio has no public way


async def _ended(
    process: asyncio.subprocess.Process, tasks: Sequence[asyncio.Task[None]], outputs: Sequence[_Output]
) -> None:
    """Until it has said everything: to the end of its output, or, where what it started holds that open, until
    it has ended itself and nothing more comes.

    Raises:
        AgentError: it writes without end.
    """
    left = set(tasks)
    silent_since = (-1, 0.0)
    while left:
        done, left = await asyncio.wait(left, timeout=_LOOK, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
        if process.returncode is None:
            continue
        size, now = sum(output.size for output in outputs), time.monotonic()
        if size != silent_since[0]:
            silent_since = size, now
        elif now - silent_since[1] > _SILENT:
            return


async def _exit(process: asyncio.subprocess.Process) -> None:
    """Until it has ended; asyncio's own `wait` also waits for whoever holds its pipes."""
    while process.returncode is None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await process.wait()


class _Output:
    """What a program writes to one of its outputs, of `kept` bytes the beginning and the end."""

    def __init__(self, stream: asyncio.StreamReader, name: str, kept: int = OUTPUT_LIMIT) -> None:
        self.size = 0
        self._stream = stream
        self._name = name
        self._half = kept // 2 if kept < OUTPUT_LIMIT else kept
        self._kept = bytearray()
        self._end = bytearray()

    async def read(self) -> None:
        """To its end.

        Raises:
            AgentError: there is none.
        """
        share = Share()
        while part := await self._stream.read(65536):
            share.arrived(len(part))
            self.size += len(part)
            if self.size > OUTPUT_LIMIT:
                raise AgentError(f"{self._name} wrote more than {OUTPUT_LIMIT // 1_000_000} MB")
            fits = max(0, self._half - len(self._kept))
            self._kept += part[:fits]
            self._end += part[fits:]
            if len(self._end) > 2 * self._half:
                del self._end[: -self._half]
            await share.turn()

    def taken(self) -> bytes:
        """What was kept of it."""
        end = self._end[-self._half :]
        left_out = self.size - len(self._kept) - len(end)
        between = f"\n… {left_out} bytes left out …\n".encode() if left_out else b""
        return bytes(self._kept + between + end)


async def _write(stream: asyncio.StreamWriter, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(data)
        await stream.drain()
    stream.close()
