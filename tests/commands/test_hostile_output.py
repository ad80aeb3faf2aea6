"""Every command that prints what suites, agents and files say prints none of it raw (terminal.md A9)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tests.support.attempts import HOSTILE

TEXT = HOSTILE.replace("\ud800", "")
TYPED = TEXT.replace("\x00", "")
"""What a command line can hold."""
NAME = "evil\x1b]52;c;aGFjaw==\x07\u202e.yaml"
RAW = (
    "\x1b",
    "\x07",
    "\x00",
    "\x0e",
    "\x7f",
    "\x08",
    "\x9b",
    "\x9d",
    "\x90",
    "\u202e",
    "\u2066",
    "\u2028",
    "\ufeff",
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything in it is hostile."""
    root = tmp_path / "evil\x1b[2J\x9b"
    (root / "suites").mkdir(parents=True)
    agents = {TYPED: {"type": "echo"}, "gone": {"type": TEXT}}
    (root / "tui_eval.yaml").write_text(json.dumps({"agents": agents, TEXT: TEXT}))
    case = {"name": TEXT, "input": TEXT, "expected": {"should_contain": [f"{TEXT} not"]}, TEXT: TEXT}
    cases = [case, {**case, "name": f"second {TEXT}"}, {"name": TEXT, "expected": {TEXT: [TEXT]}}]
    (root / "suites" / NAME).write_text(json.dumps({"agent": TYPED, "test_cases": cases}))
    (root / "suites" / f"bad {NAME}").write_text(f"test_cases: [{{name: x}}, {json.dumps(TEXT)}\n")
    test = {"vars": {TEXT: TEXT}, "description": TEXT, "assert": [{"type": "equals", "value": TEXT}]}
    (root / "promptfooconfig.yaml").write_text(
        json.dumps({"prompts": [TEXT], "providers": ["echo"], "tests": [test]})
    )
    monkeypatch.chdir(root)
    return root


def test_no_command_prints_a_control_character(cli: Cli, project: Path) -> None:
    printed: list[tuple[tuple, str]] = []

    def run(*arguments: object) -> None:
        done = cli(*arguments)
        assert done.code in (0, 1, 4, 5), (arguments, done.err)
        printed.append((arguments, done.out + done.err))

    run("check", ".")
    run("list", ".")
    run("run", ".")
    run("run", ".", "--attempts", "2", "--report", "classic")
    run("run", ".", "-s", TYPED)
    run("run", ".", "--agent", TYPED, "-m", TYPED)
    run("run", f"no such {NAME}")
    run("runs")
    run("show", "last")
    run("show", "last", TYPED)
    run("compare", "last", "last")
    run("rescore", "last")
    run("resume", "last")
    run("attach", TYPED)
    run("cancel", TYPED)
    run("export", "last", "-o", TYPED)
    run("init", ".", "--agent", TYPED)
    run("help", TYPED)
    run(TYPED)
    run("--config", NAME, "check", ".")
    assert any("evil" in text for _, text in printed)
    for arguments, text in printed:
        for character in RAW:
            assert character not in text, (arguments, text[max(0, text.find(character) - 80) :][:160])
    for kind in ("html", "md", "csv", "junit.xml"):
        run("export", "last", "-o", str(project / f"out.{kind}"))


def test_json_for_programs_is_ascii(cli: Cli, project: Path) -> None:
    cli("run", ".")
    for arguments in (("list", "--json", "."), ("runs", "--json"), ("run", ".", "--display", "json")):
        done = cli(*arguments)
        assert done.out.isascii() and not any(
            character in done.out for character in RAW if character.isascii()
        )


@pytest.mark.parametrize("service", ["GITHUB_ACTIONS", "TF_BUILD", ""])
def test_nothing_that_is_printed_is_an_order_to_cis_log(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    """Its runners carry out `::name::` at the beginning of a line, blanks before it aside, and `##[name]` anywhere."""
    for one in ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION"):
        monkeypatch.delenv(one, raising=False)
    if service:
        monkeypatch.setenv(service, "true")
    monkeypatch.chdir(tmp_path)
    order = "::add-mask::x ##[add-mask]x ##vso[task.complete]x\n  ::stop-commands::x\n::error::x"
    test = {
        "description": order,
        "vars": {"q": order},
        "assert": [{"type": "equals", "value": f"no {order}"}],
    }
    config = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": [test]}
    Path("promptfooconfig.yaml").write_text(json.dumps(config))
    printed = [
        cli("run", "."),
        cli("show", "last"),
        cli("list", "."),
        cli("check", "."),
        cli("runs"),
        cli("assess"),
    ]
    rows = cli("run", ".", "--display", "json")
    listed = cli("list", "--json", ".")
    assert "add-mask" in printed[0].out and "stop-commands" in printed[0].out
    lines = "\n".join(done.out + done.err for done in (*printed, rows, listed)).splitlines()
    found = [line for line in lines if line.lstrip().startswith("::") or "##[" in line or "##vso[" in line]
    assert not found if service else found
    assert order in json.loads(rows.out)["message"]
    assert listed.json[0]["description"] == order
