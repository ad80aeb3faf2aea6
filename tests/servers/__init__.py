"""Servers that stand in for agents, on random ports of the loopback.

`with OpenAIServer() as server:` starts one in a thread of its own; `server.url` is where it is,
`server.requests` what it was asked, `server.plan` what it answers next. `python -m tests.servers
openai` runs one as a process (it prints its address), which benchmarks use.
"""

from __future__ import annotations

from tests.servers.anthropic import AnthropicServer
from tests.servers.base import Planned, Seen, Server
from tests.servers.json_endpoint import JsonServer
from tests.servers.nao import NaoServer
from tests.servers.neuro_san import NeuroSanServer
from tests.servers.openai import OpenAIServer

__all__ = [
    "AnthropicServer",
    "JsonServer",
    "NaoServer",
    "NeuroSanServer",
    "OpenAIServer",
    "Planned",
    "Seen",
    "Server",
]
