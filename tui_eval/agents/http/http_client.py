"""One HTTP client per agent: its connections, the same for all its attempts.

Only a module that speaks HTTP imports this one, since aiohttp takes long to load.
"""

from __future__ import annotations

from collections.abc import Mapping

from tui_eval.agents.http.http_call import HttpCall
from tui_eval.agents.http.http_connections import Connections


class HttpClient(Connections):
    """The connections of one agent, and the requests made over them."""

    def call(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        turn: int = 1,
        any_status: bool = False,
    ) -> HttpCall:
        """A request that is sent when its `open` is iterated. With `any_status` a 404 is an answer
        like another."""
        return HttpCall(self, method, url, body, headers, turn, any_status)
