"""The processes in which people's own code runs during a run, started when they are first needed."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tui_eval.javascript.isolate import JavaScriptHost
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost


class Hosts:
    """One host for each kind of code, of a project below `root`; `script_memory`: gigabytes that a process of theirs
    may have (None: the usual)."""

    def __init__(self, root: Path, script_memory: float | None = None) -> None:
        self._root = root
        self._script_memory = script_memory
        self._python: PythonHost | None = None
        self._javascript: JavaScriptHost | None = None
        self._node: NodeHost | None = None

    @property
    def python(self) -> PythonHost:
        """The host of people's Python (assertions, transforms)."""
        if self._python is None:
            from tui_eval.scripting.python.python_host import PythonHost

            self._python = PythonHost(self._root, self._script_memory)
        return self._python

    @property
    def node(self) -> NodeHost:
        """The host of people's JavaScript that needs node's modules."""
        if self._node is None:
            from tui_eval.javascript.node_host import NodeHost

            self._node = NodeHost(self._root, self._script_memory)
        return self._node

    @property
    def javascript(self) -> JavaScriptHost:
        """The isolates for JavaScript of promptfoo suites."""
        if self._javascript is None:
            from tui_eval.javascript.isolate import JavaScriptHost

            self._javascript = JavaScriptHost()
        return self._javascript

    def end_hosts(self) -> list[Awaitable[Any]]:
        """End those that were started; what has to be awaited until they have ended."""
        closing: list[Awaitable[Any]] = []
        for host in (self._python, self._javascript, self._node):
            if host is not None:
                ended = host.close()
                if ended is not None:
                    closing.append(ended)
        return closing
