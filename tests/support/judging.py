"""The hosts of people's code, real ones, for the tests that judge with them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from inspect import isawaitable
from pathlib import Path
from typing import NamedTuple

import pytest
import pytest_asyncio

from tui_eval.assertions import JudgeServices
from tui_eval.guard.trust import Trust
from tui_eval.javascript.isolate import JavaScriptHost
from tui_eval.javascript.node_host import NodeHost
from tui_eval.scripting.python.python_host import PythonHost


class GivenHosts(NamedTuple):
    """The hosts that a test has made, for `JudgeServices.hosts`."""

    python: PythonHost | None = None
    javascript: JavaScriptHost | None = None
    node: NodeHost | None = None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def services(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[JudgeServices]:
    folder: Path = tmp_path_factory.mktemp("suite")
    javascript, python = JavaScriptHost(), PythonHost(folder)
    trust = Trust(granted=True)
    yield JudgeServices(hosts=GivenHosts(python, javascript), trust=trust, root=folder, base=folder)
    for host in (javascript, python):
        closing = host.close()
        if isawaitable(closing):
            await closing
