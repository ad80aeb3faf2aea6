"""`python -m tests.servers KIND [--port N] [--delay S] [--chunks N]`: one server as a process.

Prints its address and serves until it is stopped.
"""

from __future__ import annotations

import argparse
import asyncio

from tests.servers.anthropic import AnthropicServer
from tests.servers.base import Planned, Seen, Server
from tests.servers.json_endpoint import JsonServer
from tests.servers.nao import NaoServer
from tests.servers.neuro_san import NeuroSanServer
from tests.servers.openai import OpenAIServer

KINDS: dict[str, type[Server]] = {
    "openai": OpenAIServer,
    "anthropic": AnthropicServer,
    "nao": NaoServer,
    "neuro-san": NeuroSanServer,
    "json": JsonServer,
}


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--gap", type=float, default=0.0)
    parser.add_argument("--chunks", type=int, default=4)
    parser.add_argument("--text", default="")
    options = parser.parse_args()
    server = KINDS[options.kind](log=False)
    repeat = server.default

    def answer(seen: Seen) -> Planned:
        planned = repeat(seen)
        planned.delay, planned.gap, planned.chunks = options.delay, options.gap, options.chunks
        planned.text = options.text or planned.text
        return planned

    server.default = answer  # type: ignore[method-assign]
    asyncio.run(server.main(lambda: print(server.url, flush=True), options.port))


if __name__ == "__main__":
    main()
