"""Inline code that goes by a locale: node's answer, or an error that says why there is none; never the
isolate's own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tui_eval.guard.trust import NeedsTrust
from tui_eval.javascript.inline import evaluate, needs_node
from tui_eval.javascript.isolate import JavaScriptError, JavaScriptHost
from tui_eval.javascript.node_host import NodeHost

CAUGHT = "try {\n  return output.localeCompare('B') < 0;\n} catch {\n  return false;\n}"
WITH_LOCALES = [
    ("(1234567.5).toLocaleString('en-US')", "1,234,567.5"),
    ("(5000n).toLocaleString('en-US')", "5,000"),
    ("[1234].toLocaleString('en-US')", "1,234"),
    ("new Date(0).toLocaleDateString('en-US', {timeZone: 'UTC'})", "1/1/1970"),
    ("['B', 'a'].sort((x, y) => x.localeCompare(y)).join()", "a,B"),
    ("'i'.toLocaleUpperCase('tr')", "İ"),
    ("typeof Intl", "object"),
    ("Promise.resolve().then(() => output.localeCompare('B') < 0)", True),
    (CAUGHT, True),
]


@pytest.fixture
def isolate() -> Iterator[JavaScriptHost]:
    host = JavaScriptHost(1)
    yield host
    host.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeHost]:
    host = NodeHost(tmp_path)
    yield host
    host.close()


def agreed(name: str) -> None:
    """The folder is trusted."""


@pytest.mark.usually(3)
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
@pytest.mark.parametrize(("code", "answer"), WITH_LOCALES)
async def test_what_goes_by_a_locale_is_nodes_answer(
    isolate: JavaScriptHost, node: NodeHost, tmp_path: Path, code: str, answer: Any
) -> None:
    assert await evaluate(code, {"output": "a"}, isolate, node, agreed, tmp_path) == answer


@pytest.mark.parametrize("code", [code for code, _ in WITH_LOCALES])
async def test_without_node_it_is_an_error_that_says_why(
    isolate: JavaScriptHost, node: NodeHost, tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JavaScriptError, match="needs locales, which only node has"):
        await evaluate(code, {"output": "a"}, isolate, None, agreed, tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(JavaScriptError, match=r"needs locales, which only node has; .* is node's"):
        await evaluate(code, {"output": "a"}, isolate, node, agreed, tmp_path)


async def test_it_needs_trust(isolate: JavaScriptHost, node: NodeHost, tmp_path: Path) -> None:
    def refuse(name: str) -> None:
        raise NeedsTrust(name)

    with pytest.raises(NeedsTrust, match="localeCompare"):
        await evaluate("output.localeCompare('B')", {"output": "a"}, isolate, node, refuse, tmp_path)


async def test_what_is_the_same_in_every_locale_stays_in_the_isolate(
    isolate: JavaScriptHost, tmp_path: Path
) -> None:
    code = "output.toLocaleUpperCase() + ['x', 'y'].toLocaleString()"
    assert await evaluate(code, {"output": "a"}, isolate, None, agreed, tmp_path) == "Ax,y"


@pytest.mark.parametrize("word", ["x.localeCompare(y)", "(5).toLocaleString()", "new Intl.NumberFormat()"])
def test_a_file_that_goes_by_a_locale_needs_node(word: str) -> None:
    assert needs_node(Path("check.js"), f"module.exports = (x, y) => {word};")
    assert not needs_node(Path("check.js"), "module.exports = (x) => x.toLocaleUpperCase();")
