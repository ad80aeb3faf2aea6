"""`functionToolCallbacks` of promptfoo's OpenAI providers: a suite's functions that answer the calls of its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.agents.base import AgentError, Services, SessionContext
from tui_eval.agents.loose_json import text_of
from tui_eval.agents.programs.suite_scripts import ScriptLeases, Scripts


class Callbacks:
    """The functions of one provider, JavaScript in the suite or `file://…` beside it."""

    def __init__(self, given: dict[str, Any], services: Services, base: str) -> None:
        self.given = given
        self.scripts = Scripts(services, base)

    def for_attempt(self, context: SessionContext) -> AttemptCallbacks:
        """The functions for one attempt."""
        return AttemptCallbacks(self, f"{context.case_id} (attempt {context.attempt})")

    async def close(self) -> None:
        """End the processes of the suite's code."""
        await self.scripts.close()


class AttemptCallbacks:
    """The functions as one attempt calls them, in a process that is its own for as long as it lasts. To be closed."""

    def __init__(self, callbacks: Callbacks, attempt: str) -> None:
        self._callbacks = callbacks
        self._leases = ScriptLeases(attempt, "suite")
        self.failed = ""
        """Why the last calls have no output, where one of their functions failed."""

    async def output(self, calls: Sequence[tuple[str, str]]) -> str | None:
        """What the functions that `calls` (names with their arguments as JSON) name give, one below the other; None where
        the suite has none of them, or one fails: then the calls themselves are the output.

        Raises:
            NeedsTrust: one is code of a folder that is not trusted.
        """
        results: list[str] = []
        self.failed = ""
        for name, arguments in calls:
            code = self._callbacks.given.get(name)
            if not isinstance(code, str):
                continue
            what = f"config.functionToolCallbacks.{name}"
            try:
                run = self._callbacks.scripts.run(code, {"args": arguments}, what, leases=self._leases)
                results.append(text_of(await run))
            except AgentError as error:
                self.failed = f"{error}; the calls themselves are the output, as in promptfoo"
                return None
        return "\n".join(results) if results else None

    async def close(self) -> None:
        """Let another attempt have the processes, unless something that was started in them still runs."""
        await self._leases.release()
