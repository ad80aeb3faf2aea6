"""`tui-eval check`: cases that prove nothing, expected values that are given away."""

from __future__ import annotations

from pathlib import Path

from tests.commands.conftest import Cli


def test_vacuous_lists_what_passes_without_an_answer(cli: Cli, project: Path) -> None:
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['say {{x}}']\nproviders: [echo]\ntests:\n"
        "  - {description: silent, vars: {x: 1}, assert: [{type: not-contains, value: sorry}]}\n"
        "  - {description: says, vars: {x: 2}, assert: [{type: contains, value: '2'}]}\n"
        "  - {description: judged, vars: {x: 3}, assert: [{type: llm-rubric, value: polite}]}\n"
        "  - {description: free, vars: {x: 4}}\n",
        "utf-8",
    )
    plain = cli("check", ".")
    assert plain.code == 0 and "answers nothing" not in plain.out
    told = cli("check", "--vacuous", ".")
    assert told.code == 0, told.err
    lines = [line for line in told.out.splitlines() if "answers nothing" in line]
    assert lines == [
        "promptfooconfig.yaml:4: silent: passes against an agent that answers nothing (note)",
        "promptfooconfig.yaml:7: free: passes against an agent that answers nothing: nothing is asserted (note)",
        "suite.yaml:6: says sorry: passes against an agent that answers nothing (note)",
    ]
    assert not (project / ".tui-eval" / "runs").exists()
