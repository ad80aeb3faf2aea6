"""The small tool loop of model agents: what a model may call, and running it.

An entry of `tools:` is `{type: python, function: "FILE.py:name"}`, `{type: canned, name, schema,
result}` or `{type: sql, database}`. `description` and `schema` (a JSON schema of the arguments) may
be given for each; a python tool's are else read from the function's parameters.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tui_eval.agents.base import Services, SessionContext
from tui_eval.agents.entry_options import Options
from tui_eval.agents.loose_json import one_line, text_of
from tui_eval.config.config_schema import TOOL_KEYS
from tui_eval.guard.once import Once
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import from_root

if TYPE_CHECKING:
    from tui_eval.scripting.python.python_host import Lease, PythonHost


UNANSWERED = "nothing here runs this tool"
"""What a model is told of a call in its next turn, where no tool of ours was called: no server takes a conversation in
which a call has no result."""
NOTED = "noted"
"""The same of a call that reports metadata."""


def only_calls(choice: Any) -> bool:
    """Whether a `tool_choice` leaves a model nothing to do but to call: no text comes after a report then."""
    kind = choice.get("type") if isinstance(choice, dict) else choice
    return kind in ("required", "any", "function", "tool")


class ToolOutcome(msgspec.Struct):
    """What a call came to: a JSON value, or the text of an error."""

    result: Any = None
    error: str | None = None

    @property
    def text(self) -> str:
        """What the model is given."""
        return f"Error: {self.error}" if self.error is not None else text_of(self.result)


class Tool(msgspec.Struct):
    """One tool as a model sees it. `run` takes the arguments by name."""

    name: str
    description: str
    schema: dict[str, Any]
    run: Callable[[dict[str, Any], Lease | None], Awaitable[Any]]


def _entry_name(entry: dict[str, Any]) -> str:
    """What a tool of ours is called."""
    made = {"sql": "run_sql", "python": str(entry.get("function") or "").rpartition(":")[2]}
    return str(entry.get("name") or made.get(entry["type"], ""))


def _own_name(tool: Any) -> str:
    """What a tool of `parameters` is called, as OpenAI's servers or Anthropic's are told it."""
    inner = tool.get("function") if isinstance(tool, dict) else None
    named = inner if isinstance(inner, dict) else tool
    return text_of(named.get("name")) if isinstance(named, dict) else ""


class AttemptTools:
    """The tools as one attempt uses them: what their code keeps in its process is there at the next call, and is no
    other attempt's. To be closed."""

    def __init__(self, toolbox: Toolbox, attempt: str) -> None:
        self._toolbox = toolbox
        self._attempt = attempt
        self._lease: Lease | None = None

    async def get_ready(self) -> None:
        """Have the python tools' files loaded in a process: imports may take many seconds that are not the agent's.
        What does not load is reported to the model that calls it."""
        host, lease = self._toolbox.host, self._claimed()
        if host is None:
            return
        from tui_eval.scripting.python.python_host import ScriptError  # imported late: few agents have tools

        try:
            for file, function in self._toolbox.functions:
                with suppress(ScriptError):
                    await host.describe(file, function, lease=lease)
        except BaseException:
            self.close()
            raise

    async def call(self, name: str, arguments: Any) -> ToolOutcome:
        """Run a tool; whatever goes wrong is reported to the model."""
        return await self._toolbox.call(name, arguments, self._claimed())

    def _claimed(self) -> Lease | None:
        if self._lease is None and (host := self._toolbox.host) is not None:
            # Its process may be ended by a tool that hangs: the next call has another, once that was said.
            self._lease = host.lease(self._attempt, "tools", renewed=True)
        return self._lease

    def close(self) -> None:
        """Let another attempt have the process."""
        if self._lease is not None:
            self._lease.release()


class Toolbox:
    """The tools of one agent. `load` reads what needs reading (parameters, tables) once."""

    def __init__(self, options: Options, services: Services) -> None:
        self.options = options
        self.services = services
        self.entries = [self._check(entry, index) for index, entry in enumerate(options.items("tools"))]
        self.tools: dict[str, Tool] = {}
        self.reporting = self._reported_by(options.text("metadata"))
        """The tool whose arguments are a reply's metadata; it may be one that nothing here runs."""
        self._loading: Once[dict[str, Tool]] = Once()
        self._host: PythonHost | None = None
        self.functions: dict[tuple[Path, str], None] = {}
        """Those that are tools."""

    def _reported_by(self, given: str | None) -> str | None:
        """What `metadata` says, where that can be: named by a slip, no reply would ever carry any, and all that is
        asked of it would count as not reported. A server of one's own may have tools that nothing here names."""
        if given in (None, "json"):
            return given
        asked_with = self.options.values.get("parameters")
        others = asked_with.get("tools") if isinstance(asked_with, dict) else None
        known = [_entry_name(entry) for entry in self.entries]
        known += map(_own_name, others if isinstance(others, list) else [])
        if given in known:
            return given
        slip = close_to(given, ("json", *filter(None, known)))
        unnamed = bool(self.options.values.get("base_url") or (others and not isinstance(others, list)))
        if slip is None and unnamed:
            return given
        cure = f"did you mean {slip!r}?" if slip else "give it under tools, or write json"
        raise self.options.error("metadata", f"no tool is called {given!r}; {cure}")

    @property
    def preparing(self) -> str:
        """What an attempt's tools begin with; empty: nothing slow."""
        return "loading tools" if any(entry["type"] == "python" for entry in self.entries) else ""

    async def load(self) -> None:
        """Make the tools, once for all attempts. Raises `ConfigError`, `NeedsTrust`."""
        if self.entries:
            self.tools = await self._loading.get(self._made)

    async def _made(self) -> dict[str, Tool]:
        tools: dict[str, Tool] = {}
        for index, entry in enumerate(self.entries):
            make = {"python": self._python, "canned": self._canned, "sql": self._sql}[entry["type"]]
            tool = await make(entry, f"tools[{index}]")
            if tool.name in tools:
                raise self.options.error(f"tools[{index}]", f"a second tool named {tool.name}")
            tools[tool.name] = tool
        return tools

    def for_attempt(self, context: SessionContext) -> AttemptTools:
        """The tools for one attempt."""
        return AttemptTools(self, f"{context.case_id} (attempt {context.attempt})")

    @property
    def host(self) -> PythonHost | None:
        """What runs python tools; None: there are none."""
        return self._host

    def reports(self, called: Sequence[str]) -> bool:
        """Whether a model called nothing but what reports its metadata, which nothing here runs."""
        return bool(called) and all(name == self.reporting and name not in self.tools for name in called)

    def goes_on(self, called: Sequence[str], text: str, reported: bool) -> bool:
        """Whether a turn goes on with what these calls gave. It ends where nobody here answers them, and with a report
        beside a `text`: that is the answer, unless it is still to come (`reported`: it was asked for, or cannot)."""
        if self.reports(called):
            return not (text.strip() or reported)
        return bool(self.tools) and bool(called)

    def unanswered(self, name: str) -> str:
        """What a model is told of a call that nobody here answered."""
        return NOTED if name == self.reporting else UNANSWERED

    async def call(self, name: str, arguments: Any, lease: Lease | None = None) -> ToolOutcome:
        """Run a tool, python in the process of a lease; whatever goes wrong is reported to the model."""
        tool = self.tools.get(name)
        if tool is None and name == self.reporting:
            return ToolOutcome(result=NOTED)
        if tool is None:
            known = ", ".join(self.tools) or "none"
            return ToolOutcome(error=f"there is no tool {name}; tools: {known}")
        if not isinstance(arguments, dict):
            return ToolOutcome(error="the arguments are not a JSON object")
        try:
            return ToolOutcome(result=await tool.run(arguments, lease))
        except ToolError as error:
            return ToolOutcome(error=str(error))

    async def close(self) -> None:
        """End the process that runs python tools."""
        if self._host is not None:
            await asyncio.to_thread(self._host.close)
            self._host = None

    def _check(self, entry: Any, index: int) -> dict[str, Any]:
        key = f"tools[{index}]"
        if not isinstance(entry, dict):
            raise self.options.error(key, "must be a mapping with a type: python, canned or sql")
        known = TOOL_KEYS.get(entry.get("type", ""))
        if known is None:
            raise self.options.error(f"{key}.type", "must be python, canned or sql")
        if unknown := sorted(set(entry).difference(known)):
            raise self.options.error(f"{key}.{unknown[0]}", f"is not known; known: {', '.join(known)}")
        return entry

    async def _canned(self, entry: dict[str, Any], key: str) -> Tool:
        if not entry.get("name"):
            raise self.options.error(f"{key}.name", "is missing")

        async def run(_: dict[str, Any], __: Lease | None) -> Any:
            if entry.get("error") is not None:
                raise ToolError(str(entry["error"]))
            return entry.get("result")

        schema = entry.get("schema") or {"type": "object", "properties": {}}
        return Tool(str(entry["name"]), str(entry.get("description") or ""), schema, run)

    async def _sql(self, entry: dict[str, Any], key: str) -> Tool:
        database = entry.get("database")
        if not database:
            raise self.options.error(f"{key}.database", "is missing: the name of an entry under databases")
        run_sql = self.services.run_sql
        if run_sql is None:
            raise self.options.error(key, "SQL tools are not available here")

        async def run(arguments: dict[str, Any], _: Lease | None) -> Any:
            query = arguments.get("query")
            if not isinstance(query, str) or not query.strip():
                raise ToolError("the argument query is missing")
            try:
                return await run_sql(str(database), query)
            except ValueError as error:
                raise ToolError(one_line(str(error))) from None

        description = str(
            entry.get("description") or f"Run a read-only SQL query on the database {database}."
        )
        if self.services.schema_text is not None:
            try:
                description += "\nTables:\n" + await self.services.schema_text(str(database))
            except ValueError as error:
                raise self.options.error(f"{key}.database", one_line(str(error))) from None
        schema = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return Tool(str(entry.get("name") or "run_sql"), description, schema, run)

    async def _python(self, entry: dict[str, Any], key: str) -> Tool:
        from tui_eval.scripting.python.python_host import PythonHost, ScriptError

        if not isinstance(entry.get("function"), str):
            raise self.options.error(f"{key}.function", "is missing, for example tools.py:search")
        file, function = self.options.file_function(entry["function"], f"{key}.function")
        if not self.options.spec.typed:
            self.services.trust.require(f"run {from_root(file, self.services.root)}:{function} (a tool)")
        if self._host is None:
            self._host = PythonHost(self.services.root, self.services.script_memory)
        host = self._host
        self.functions[file, function] = None
        schema = entry.get("schema")
        if schema is None:
            try:
                names = (await host.describe(file, function)).parameters
            except ScriptError as error:
                raise self.options.error(f"{key}.function", one_line(str(error))) from None
            schema = {"type": "object", "properties": {name: {} for name in names}, "required": list(names)}

        async def run(arguments: dict[str, Any], lease: Lease | None) -> Any:
            seconds = entry.get("timeout")
            try:
                return (await host.call(file, function, [], arguments, timeout=seconds, lease=lease)).value
            except ScriptError as error:
                raise ToolError(one_line(str(error))) from None

        return Tool(str(entry.get("name") or function), str(entry.get("description") or ""), schema, run)


class ToolError(Exception):
    """A tool could not do it; the text goes to the model."""
