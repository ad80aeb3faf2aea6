"""`context.providerResponse.output` is the very output that an assertion is given, after the transforms of provider and
test and before its own: as promptfoo 0.121.20 judged the same suite."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.store.reader import RunReader

SAME = "context.providerResponse.output === output"
SUITE = f"""\
prompts: [hi]
providers: [echo]
defaultTest: {{options: {{transform: '({{b: [2]}})'}}}}
tests:
  - {{description: inline, assert: [{{type: javascript, value: '{SAME}'}}]}}
  - {{description: file, assert: [{{type: javascript, value: 'file://a.js'}}]}}
  - {{description: own transform, assert: [{{type: javascript, transform: '({{c: 2}})', value: '!({SAME}) && context.providerResponse.output.b[0] === 2'}}]}}
"""
NODE = f"""\
  - {{description: node, assert: [{{type: javascript, value: 'require("fs") && {SAME}'}}]}}
  - {{description: node file, assert: [{{type: javascript, value: 'file://n.js'}}]}}
"""


@pytest.mark.parametrize(
    "more",
    [
        "",
        pytest.param(NODE, marks=pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")),
    ],
)
async def test_the_output_of_the_response_is_the_output(tmp_path: Path, more: str) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE + more)
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "a.js").write_text(f"module.exports = (output, context) => {SAME};\n")
    (tmp_path / "n.js").write_text(f"require('fs'); module.exports = (output, context) => {SAME};\n")
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(tmp_path)], trust=True))
    assert await active.execute() == "finished" and active.writer is not None
    with closing(RunReader(active.writer.folder)) as reader:
        names = {row.id: row.name for row in reader.cases()}
        found = {names[row.case_ref]: (row.outcome, row.message) for row in reader.attempts()}
    assert found == dict.fromkeys(names.values(), ("passed", "passed")) and len(found) == (5 if more else 3)
