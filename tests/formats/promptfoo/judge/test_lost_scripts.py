"""A script that comes to no end of its own has judged nothing: an error, whatever stands around it."""

from __future__ import annotations

import asyncio
import resource
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.judging import GivenHosts
from tests.support.promptfoo_cases import assertion_from, case_with
from tui_eval.assertions import JudgeInput, Judgement, JudgeServices, Reports
from tui_eval.formats import judge
from tui_eval.guard.trust import Trust
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.javascript.node_host import NodeHost
from tui_eval.model import Reply
from tui_eval.scripting.python.python_host import PythonHost

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="only Linux limits other processes")

GIGABYTES = 0.4
PYTHON = """
import os

def get_assert(output, context):
    return len(bytearray(4 << 30)) > 0

def get_score(named, context):
    return {"pass": True, "score": len(bytearray(4 << 30)), "reason": ""}

def leaves(output, context):
    os._exit(9)

def raises(output, context):
    return 1 / 0
"""
WITHOUT_END = "const kept = []; for (;;) kept.push(new Array(1000).fill(1.5))"
FILES = {
    "it.py": PYTHON,
    "it.js": f"module.exports = () => {{ {WITHOUT_END} }}",
    "node.js": "require('fs'); module.exports = () => { const kept = [];"
    " for (;;) kept.push(Buffer.alloc(10000000, 1)); }",
}
LOST: list[dict[str, Any]] = [
    {"type": "python", "value": "len(bytearray(4 << 30)) > 0"},
    {"type": "not-python", "value": "len(bytearray(4 << 30)) > 0"},
    {"type": "python", "value": "file://it.py"},
    {"type": "python", "value": "file://it.py", "weight": 0},
    {"type": "contains", "value": "file://it.py"},
    {"type": "javascript", "value": f"\n{WITHOUT_END}"},
    {"type": "not-javascript", "value": f"\n{WITHOUT_END}"},
    {"type": "javascript", "value": "file://it.js"},
]


@pytest_asyncio.fixture
async def services(tmp_path: Path) -> AsyncIterator[JudgeServices]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, "utf-8")
    hosts = PythonHost(tmp_path, GIGABYTES), JavaScriptHost(), NodeHost(tmp_path, GIGABYTES)
    python, javascript, node = hosts
    yield JudgeServices(
        hosts=GivenHosts(python, javascript, node), trust=Trust(True), base=tmp_path, root=tmp_path
    )
    for host in hosts:
        await asyncio.to_thread(host.close)


async def judged(asserted: list[dict[str, Any]], services: JudgeServices, **more: Any) -> Judgement:
    assertions = [assertion_from(one) for one in asserted]
    case = case_with(assertions, **more)
    reply = Reply(turn=1, text="hello")
    return await judge(JudgeInput(case, [reply], capabilities=Reports(), services=services))


@pytest.mark.usually(2)
@pytest.mark.parametrize("asserted", LOST, ids=lambda one: f"{one['type']}-{one['value'][-12:]}")
async def test_a_script_without_memory_is_an_error(asserted: dict[str, Any], services: JudgeServices) -> None:
    judgement = await judged([asserted], services)
    (verdict,) = judgement.verdicts
    assert (judgement.outcome, verdict.passed) == ("error", None), judgement.message
    assert verdict.evidence and verdict.evidence[0].code == "script-memory-limit"
    assert "memory" in judgement.message


async def test_no_threshold_passes_over_a_script_without_memory(services: JudgeServices) -> None:
    right = {"type": "contains", "value": "hello"}
    lost = {"type": "python", "value": "file://it.py"}
    judgement = await judged([right, lost], services, threshold=0.4)
    assert [verdict.passed for verdict in judgement.verdicts] == [True, None]
    assert judgement.outcome == "error"


async def test_a_scoring_function_without_memory_is_an_error(services: JudgeServices) -> None:
    options = {"assertScoringFunction": "file://it.py:get_score"}
    judgement = await judged([{"type": "contains", "value": "hello"}], services, options=options)
    assert judgement.outcome == "error" and "memory" in judgement.message


async def test_a_script_whose_process_ends_is_an_error_and_one_that_raises_fails(
    services: JudgeServices,
) -> None:
    judgement = await judged([{"type": "python", "value": "file://it.py:leaves"}], services)
    assert judgement.outcome == "error" and "exit code 9" in judgement.message
    judgement = await judged([{"type": "python", "value": "file://it.py:raises"}], services)
    assert judgement.outcome == "failed" and "division by zero" in judgement.message
    judgement = await judged([{"type": "javascript", "value": "nothing.here"}], services)
    assert judgement.outcome == "failed" and "not defined" in judgement.message


@pytest.mark.real
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")
async def test_a_module_of_node_without_memory_is_an_error(services: JudgeServices) -> None:
    judgement = await judged([{"type": "javascript", "value": "file://node.js"}], services)
    assert judgement.outcome == "error" and "memory" in judgement.message


async def test_ruby_that_is_killed_or_has_no_memory_is_an_error(
    services: JudgeServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    ruby = programs / "ruby"
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    said = "failed to allocate memory (NoMemoryError)"
    for line, expected in ((f"echo '{said}' >&2; exit 1", said), ("kill -9 $$", "process ended")):
        ruby.write_text(f"#!/bin/sh\ncat > /dev/null\n{line}\n", "utf-8")
        ruby.chmod(0o755)
        judgement = await judged([{"type": "ruby", "value": "true"}], services)
        assert judgement.outcome == "error" and expected in judgement.message
