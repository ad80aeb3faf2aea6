"""`show RUN CASE` takes a case by the name that is printed of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.conftest import Cli

SUITE = """
prompts: [{raw: 'a {{x}}', label: terse}, {raw: 'b {{x}}', label: friendly}]
providers: [echo]
tests:
  - {description: names the capacity, vars: {x: 1}, assert: [{type: contains, value: nope}]}
"""


def test_a_name_copied_from_the_list_of_what_failed(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    monkeypatch.chdir(tmp_path)
    printed = cli("run", ".").out
    name = "names the capacity [friendly]"
    assert f"failed: {name}" in printed
    shown = cli("show", "last", name)
    assert shown.code == 0 and "b 1" in shown.out and "a 1" not in shown.out
    assert cli("show", "last", "names the capacity [other]").code == 4
