"""Inline JavaScript of promptfoo suites: in the isolate, and where that has not what the code asks for, in node.

What an isolate has not is the world outside: `process`, `require`, `fetch`, `import()`, and what goes by a locale
(`toLocaleString`, `localeCompare`, `Intl`: the isolate's own would answer otherwise). Code that asks for it
is run again by the node that is installed, in a folder that is trusted.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tui_eval.guard.trust import TYPESCRIPT_ENDINGS
from tui_eval.javascript.isolate import JavaScriptError, JavaScriptHost, function_body
from tui_eval.javascript.node_host import NodeHost, NodeMissing, ScriptError
from tui_eval.scripting.script_host import Lease

# -- Which JavaScript files the isolate can run, and which need node.


_NODE = re.compile(
    r"\btoLocale(?:Date|Time)?String\b|\blocaleCompare\b|\bIntl\b|\btoLocale(?:Low|Upp)erCase\s*\(\s*[^\s)]|"
    r"\brequire\s*\(|^\s*import\s|\bimport\s*\(|^\s*export\s.*\bfrom\b|\bprocess\.|\bfetch\s*\(",
    re.MULTILINE,
)
_EITHER = re.compile(
    r"\bBuffer\b|\b(?:set|clear)(?:Timeout|Interval|Immediate)\b|\bURL\b|\bText(?:En|De)coder\b"
)


def needs_node(path: Path, source: str, function: str | None = None) -> bool:
    """Whether a file uses what only node has: modules, TypeScript, the process, the network, locales.

    So do the functions that only node can find again (`NodeHost.value_sync`): those of a promptfoo
    configuration, and of what a `function` of that name makes.
    """
    if function is not None and function.startswith("__fn_"):
        return True
    if path.suffix in TYPESCRIPT_ENDINGS or path.name.startswith("promptfooconfig"):
        return True
    return _NODE.search(source) is not None


def better_in_node(source: str) -> bool:
    """Whether a file uses what the isolate has only the usual part of, or has of its own making."""
    return _EITHER.search(source) is not None


NODE_SECONDS = 60.0
"""Seconds that code may take in node if nothing else is said: it may speak to somebody there."""

_OUTSIDE = re.compile(
    r"(?:ReferenceError: '?(process|require|fetch|XMLHttpRequest|WebSocket|crypto|Intl)'? is not defined)"
    r"|(?:(?:Reference|Type|Syntax)Error: .*\b(module|import)\b)"
    r"|(?:ReferenceError: (\w+) needs locales, which only node has)"
)
OF_NODE = re.compile(
    r"\b(?:process|require|fetch|XMLHttpRequest|WebSocket|crypto|Intl|module|import|localeCompare"
    r"|toLocale(?:Date|Time)?String)\b|\btoLocale(?:Low|Upp)erCase\s*\(\s*[^\s)]"
)
"""Words by which inline code may come to need node."""


async def evaluate(
    code: str,
    variables: Mapping[str, Any],
    isolate: JavaScriptHost,
    node: NodeHost | None,
    require: Callable[[str], None],
    base: Path,
    *,
    timeout: float | None = None,
    lease: Lease | None = None,
) -> Any:
    """The result of a suite's inline code, as `JavaScriptHost.evaluate`; from node `undefined` is None.

    Args:
        require: asks for trust to run it in node, and raises where there is none; given the name of what
            the code asks for.
        base: the suite's folder: the current one in node, and where `require` looks.
        lease: whose process of node it runs in; without one, any.

    Raises:
        JavaScriptError: it fails.
        NeedsTrust: it asks for what only node has, and the folder is not trusted.
    """
    try:
        return await isolate.evaluate(code, variables, timeout=timeout)
    except JavaScriptError as error:
        found = _OUTSIDE.search(str(error))
        if found is None or node is None:
            raise
        name, said = found[1] or found[2] or found[3], str(error)
    require(name)
    try:
        given = json.loads(json.dumps(dict(variables), default=lambda _: None))
        answer = await node.call(
            _module(code, tuple(variables), base),
            "",
            [given],
            timeout=timeout or NODE_SECONDS,
            cwd=base,
            lease=lease,
        )
    except NodeMissing as error:
        raise JavaScriptError(f"{said}; {name} is node's: {error}") from None
    except ScriptError as error:
        raise JavaScriptError(str(error), error.code) from None
    return answer.value


def _module(code: str, names: tuple[str, ...], base: Path) -> Path:
    """A module that exports the code as a function of one object, which holds the variables."""
    given = ", ".join(name for name in names if name.isidentifier() and name != "process")
    text = f"""require = require('node:module').createRequire({json.dumps(f"{base}/")});
const process = Object.create(globalThis.process, {{ mainModule: {{ value: {{ require }} }} }});
module.exports = function ({{ {given} }}) {{
{function_body(code)}
}};
"""
    path = inline_folder() / f"inline_{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}.cjs"
    if not path.exists():
        path.write_text(text, "utf-8", errors="replace")
    return path


@cache
def inline_folder() -> Path:
    """Where code that stands in suites is written for processes that load files."""
    folder = tempfile.TemporaryDirectory(prefix="tui-eval-inline-")
    _KEPT.append(folder)  # it lives as long as the process
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []
