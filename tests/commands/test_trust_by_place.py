"""Trust in a file is trust in that place of the project: what is moved, copied or linked is asked about anew."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import Cli

CHECK = "def get_assert(output, context):\n    return True\n"
SUITE = """
prompts: [hello]
providers: [echo]
tests:
  - assert: [{type: python, value: 'file://%s'}]
"""


def copied(root: Path) -> str:
    """The same file, called the same, in another folder."""
    (root / "b").mkdir()
    (root / "b" / "check.py").write_text(CHECK)
    return "../b/check.py"


def renamed(root: Path) -> str:
    (root / "a" / "check.py").rename(root / "a" / "better.py")
    return "better.py"


def linked(root: Path) -> str:
    """What was agreed to leads elsewhere in the project."""
    copied(root)
    (root / "a" / "check.py").unlink()
    (root / "a" / "check.py").symlink_to("../b/check.py")
    return "check.py"


def led_out(root: Path) -> str:
    """What was agreed to leads out of the project."""
    (root.parent / "check.py").write_text(CHECK)
    (root / "a" / "check.py").unlink()
    (root / "a" / "check.py").symlink_to(root.parent / "check.py")
    return "check.py"


@pytest.mark.parametrize("change", [copied, renamed, linked, led_out])
def test_what_was_agreed_to_is_a_place(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], str]
) -> None:
    root = tmp_path / "project"
    suite = root / "a" / "promptfooconfig.yaml"
    suite.parent.mkdir(parents=True)
    (root / "tui_eval.yaml").write_text("")
    (root / "a" / "check.py").write_text(CHECK)
    suite.write_text(SUITE % "check.py")
    monkeypatch.chdir(root)
    untrusted = cli("run", "a")
    assert untrusted.code == 1
    found = re.search(r"--trust-only ([0-9a-f]{32})", untrusted.out + untrusted.err)
    assert found is not None, untrusted
    assert cli("run", "a", "--trust-only", found[1]).code == 0
    suite.write_text(SUITE % change(root))
    after = cli("run", "a", "--trust-only", found[1])
    assert after.code == 4 and found[1] in after.err, after
