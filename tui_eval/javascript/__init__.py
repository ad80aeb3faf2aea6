"""What JavaScript means, in Python, one place for each: values and texts, operators, patterns; and running it.

What is here itself is where the code of a suite runs, of whatever language, as code in JavaScript may be either's: an
isolate's or node's.

May not: know suites; run code outside an isolate or a process of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tui_eval.javascript.isolate import JavaScriptHost
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost


class Hosts:
    """The processes in which people's own code runs, one host for each kind of code, started when first needed.

    One thread at a time asks for a host."""

    def __init__(self, root: Path, script_memory: float | None = None, isolates: int = 0) -> None:
        """`root`: of the project. `script_memory`: gigabytes that a process may have (None: the usual). `isolates`: how
        many there are at the most (0: the usual)."""
        self._root = root
        self._script_memory = script_memory
        self._isolates = isolates
        self._python: PythonHost | None = None
        self._javascript: JavaScriptHost | None = None
        self._node: NodeHost | None = None

    @property
    def python(self) -> PythonHost:
        """The host of people's Python."""
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
        """The isolates for JavaScript that needs nothing of node."""
        if self._javascript is None:
            from tui_eval.javascript.isolate import JavaScriptHost

            self._javascript = JavaScriptHost(self._isolates)
        return self._javascript

    def close(self) -> None:
        """Kill their processes. What asks for a host afterwards starts it anew."""
        hosts = (self._python, self._node, self._javascript)
        self._python = self._node = self._javascript = None
        for host in hosts:
            if host is not None:
                host.close()
