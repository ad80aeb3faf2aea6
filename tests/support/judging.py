"""The hosts of people's code, real ones, for the tests that judge with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from inspect import isawaitable
from pathlib import Path

import pytest
import pytest_asyncio

from tui_eval.assertions import JudgeServices
from tui_eval.guard.trust import Trust
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.scripting.python.python_host import PythonHost


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[JudgeServices]:
    folder: Path = tmp_path_factory.mktemp("suite")
    javascript, python = JavaScriptHost(), PythonHost(folder)
    trust = Trust(granted=True)
    yield JudgeServices(javascript=javascript, python=python, trust=trust, root=folder, base=folder)
    for host in (javascript, python):
        closing = host.close()
        if isawaitable(closing):
            await closing
