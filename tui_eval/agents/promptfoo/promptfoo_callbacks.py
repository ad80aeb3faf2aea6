"""`functionToolCallbacks` of promptfoo's OpenAI providers: a suite's functions that answer the calls of its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.agents.base import AgentError, Services
from tui_eval.agents.loose_json import text_of
from tui_eval.agents.programs.suite_scripts import Scripts


class Callbacks:
    """The functions of one provider, JavaScript in the suite or `file://…` beside it."""

    def __init__(self, given: Any, services: Services, base: str) -> None:
        self._given: dict[str, Any] = given if isinstance(given, dict) else {}
        self._scripts = Scripts(services, base)

    async def output(self, calls: Sequence[tuple[str, str]]) -> str | None:
        """What the functions that `calls` (names with their arguments as JSON) name give, one below the other; None where
        the suite has none of them, or one fails: then the calls themselves are the output.

        Raises:
            NeedsTrust: one is code of a folder that is not trusted.
        """
        results: list[str] = []
        for name, arguments in calls:
            code = self._given.get(name)
            if not isinstance(code, str):
                continue
            what = f"config.functionToolCallbacks.{name}"
            try:
                results.append(text_of(await self._scripts.run(code, {"args": arguments}, what)))
            except AgentError:
                return None
        return "\n".join(results) if results else None

    async def close(self) -> None:
        """End the processes of the suite's code."""
        await self._scripts.close()
