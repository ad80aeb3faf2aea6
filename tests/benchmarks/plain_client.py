"""What tui-eval's requests cost by themselves: the same ones sent with aiohttp, their streams read and looked at.

python plain_client.py URL CASES CONNECTIONS
"""

from __future__ import annotations

import asyncio
import json
import sys

import aiohttp


async def _ask(session: aiohttp.ClientSession, url: str, number: int) -> bool:
    body = {
        "model": "mock",
        "messages": [{"role": "user", "content": f"question number {number}"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    said: list[str] = []
    async with session.post(f"{url}/v1/chat/completions", json=body) as answer:
        async for line in answer.content:
            if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                for choice in json.loads(line[6:]).get("choices", ()):
                    said.append((choice.get("delta") or {}).get("content") or "")
    return f"number {number}" in "".join(said)


async def main(url: str, cases: int, connections: int) -> None:
    """Send all of them, so many at a time; every answer has to be the one that is expected."""
    numbers = iter(range(cases))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections)) as session:

        async def worker() -> list[bool]:
            return [await _ask(session, url, number) for number in numbers]

        passed = await asyncio.gather(*(worker() for _ in range(connections)))
    assert sum(map(sum, passed)) == cases


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
