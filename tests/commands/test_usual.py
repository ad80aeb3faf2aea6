"""The usual token use of a case beside its budget."""

from __future__ import annotations

from pathlib import Path

from tests.commands.conftest import Cli
from tui_eval.commands.recorded_runs import usual_text, usual_tokens


def test_show_says_what_a_case_usually_takes(cli: Cli, project: Path) -> None:
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n  - {name: costs, input: 'how much?', "
        "expected: {max_input_tokens: 2000, max_output_tokens: 50}}\n",
        "utf-8",
    )
    assert cli("run", ".").code == 0
    assert "usually" not in cli("show", "last", "costs").out
    script = project / "agent.script.yaml"
    script.write_text(script.read_text().replace("input: 100", "input: 1204"), "utf-8")
    assert cli("run", ".").code == 0
    lines = cli("show", "last", "costs").out.splitlines()
    assert any(
        "max_input_tokens" in line and line.endswith("  usually 100–1,204 (last 2 runs)") for line in lines
    )
    assert any("max_output_tokens" in line and line.endswith("  usually 20 (last 2 runs)") for line in lines)


def test_usual_tokens() -> None:
    assert usual_tokens([[1], []]) is None and usual_text(None) == ""
    assert usual_tokens([[5, 9], [7], [1], [2], [3], [1000]]) == (1, 9, 5)
