"""Libraries of jsonschema that take a second: nobody waits for them, and no verdict hangs on whether they are there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT
from tui_eval.slow_imports import hide_in

CODE = """
import json, sys
{first}
from tui_eval.formats.promptfoo.judge.schema_library import format_checker
print(json.dumps([sorted(format_checker().checkers), "lark" in sys.modules, "arrow" in sys.modules]))
"""


def in_a_process(first: str, path: str = "") -> tuple[list[str], bool, bool]:
    """The formats that are judged, and whether the libraries were imported."""
    values = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (path, str(ROOT))))}
    command = [sys.executable, "-c", CODE.format(first=first)]
    done = subprocess.run(command, cwd=ROOT, env=values, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tuple(json.loads(done.stdout))


@pytest.mark.real
def test_formats_are_the_same_where_somebody_has_imported_all_of_it_before() -> None:
    """As Ray does in its workers."""
    formats, lark, arrow = in_a_process("")
    assert (lark, arrow) == (False, False)
    assert in_a_process("import jsonschema") == (formats, True, True)
    assert {"date-time", "email", "uri", "duration"} < set(formats)


@pytest.mark.real
def test_hidden_they_are_not_imported_by_other_programs(tmp_path: Path) -> None:
    """As Ray's own processes are started."""
    hidden = tmp_path / "hidden"
    hide_in(hidden)
    assert in_a_process("import jsonschema", str(hidden))[1:] == (False, False)
