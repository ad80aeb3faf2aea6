"""Several configurations given with `-c`: one suite, as promptfoo makes it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tui_eval.cli import main
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.reports import results
from tui_eval.store.reader import RunReader

FIRST = """
description: A
env: {E: first, F: f}
providers: [echo]
prompts: ['file://p.txt', '{{q}} {{env.E}} {{env.F}}']
defaultTest: {assert: [{type: contains, value: '1'}], vars: {q: one}, options: {prefix: '>'}, threshold: 0.4}
tests: [{description: own, vars: {}}]
"""
SECOND = """
description: B
env: {E: second}
providers: [echo, {id: echo, label: L}]
prompts: ['file://p.txt', '{{q}} {{env.E}} {{env.F}}']
defaultTest: {assert: [{type: contains, value: second}], options: {suffix: '<'}}
tests: file://t.csv
scenarios: [{config: [{vars: {q: scene}}], tests: [{description: s, vars: {}}]}]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "x/a.yaml": FIRST,
        "y/b.yaml": SECOND,
        "x/p.txt": "X {{q}}",
        "y/p.txt": "Y {{q}}",
        "y/t.csv": "q,__description\n21,row\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    (tmp_path / "tui_eval.yaml").write_text("{}", "utf-8")
    return tmp_path


async def run(request: RunRequest) -> tuple[str, dict[str, Any]]:
    active = await asyncio.to_thread(prepare, request)
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    try:
        return active.run_id, results.build(reader)
    finally:
        reader.close()


async def test_several_configurations_are_one_suite(folder: Path) -> None:
    given = [str(folder / "x/a.yaml"), str(folder / "y/b.yaml")]
    run_id, found = await run(RunRequest(configs=given))
    rows = [(r["name"], r["agent"], r["details"]["response_text"]) for r in found["results"]]
    # Of a variable that both name each one's prompt has what its own file says.
    prompts = [">X {}<", ">{} first f<", ">Y {}<", ">{} second f<"]
    assert rows == [
        (name, agent, prompt.format(q))
        for name, q in (("own", "one"), ("row", "21"), ("s", "scene"))
        for agent in ("echo", "L")
        for prompt in prompts
    ]
    assert {r["suite"] for r in found["results"]} == {"x/a.yaml"}
    assert all([a["type"] for a in r["assertions"]] == ["contains", "contains"] for r in found["results"])
    # A part that is run again is read in the same way.
    wanted = found["results"][5]["case_id"]
    _, again = await run(RunRequest(paths=[given[0]], case_ids=[wanted], linked_to=run_id))
    assert [r["details"]["response_text"] for r in again["results"]] == [rows[5][2]]


async def test_a_part_run_again_has_the_variables_of_the_command_line(folder: Path) -> None:
    path = str(folder / "x/a.yaml")
    run_id, found = await run(RunRequest(paths=[path], vars={"q": "typed"}, prompt_prefix="P "))
    again_id, again = await run(
        RunRequest(paths=[path], case_ids=[found["results"][0]["case_id"]], linked_to=run_id)
    )
    assert again_id != run_id
    assert [r["details"]["response_text"] for r in (*found["results"][:1], *again["results"])] == [
        ">X typed", ">X typed"
    ]  # fmt: skip


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    with pytest.raises(SystemExit) as ended:
        main(["list", "--json", *arguments])
    assert ended.value.code == 0
    return json.loads(capsys.readouterr().out)


def test_configurations_of_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert len(listed(capsys, "-c", "x/a.yaml", "-c", "y/b.yaml")) == 24
    assert len(listed(capsys, "-c", "*/*.yaml")) == 24
    assert len(listed(capsys, "x/a.yaml", "y/b.yaml")) == 2 + 4 + 4
    assert len(listed(capsys, "-c", "y/b.yaml")) == 8
    (folder / "y" / "promptfooconfig.yaml").write_text(SECOND, "utf-8")
    assert len(listed(capsys, "-c", "x/a.yaml", "-c", "y")) == 24


def test_what_is_wrong_in_another_configuration_is_said_with_its_place(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "y/b.yaml").write_text(
        "providers: [echo]\nprompts: [x]\ntests:\n- {vars: {}, asert: []}\n", "utf-8"
    )
    with pytest.raises(SystemExit) as ended:
        main(["check", "-c", "x/a.yaml", "-c", "y/b.yaml"])
    assert ended.value.code == 4
    assert "y/b.yaml:4: tests[0].asert: unknown key; did you mean assert?" in capsys.readouterr().out


def test_a_run_says_that_it_writes_no_file_where_the_suite_names_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "suite"
    root.mkdir()
    text = "providers: [echo]\nprompts: [q]\noutputPath: out/r.json\n"
    (root / "promptfooconfig.yaml").write_text(text, "utf-8")
    with pytest.raises(SystemExit, match="0"):
        main(["run", str(root)])
    assert "outputPath: is ignored" in (said := capsys.readouterr().err) and "-o out/r.promptfoo.json" in said
    with pytest.raises(SystemExit, match="0"):
        main(["run", str(root), "-o", str(tmp_path / "r.json")])
    assert "outputPath" not in capsys.readouterr().err


async def test_a_secret_that_a_later_configuration_says_otherwise_is_one_still(folder: Path) -> None:
    """It was filled in where the first one names it, in the clear, and went to any host unasked."""
    for name, secret in (("x/a.yaml", "tok-first-1234"), ("y/b.yaml", "tok-other-5678")):
        (folder / name).write_text(
            f"env: {{SHOP_TOKEN: {secret}}}\nprompts: ['{name} {{{{env.SHOP_TOKEN}}}}']\n"
            f"providers: [{{id: 'http://shop.invalid/a', label: {name[2]}, "
            "config: {body: {q: '{{prompt}}'}, headers: {X-Page: '{{env.SHOP_TOKEN}}'}}}]\n"
            "tests: [{vars: {q: a}}]\n",
            "utf-8",
        )
    _, found = await run(RunRequest(configs=[str(folder / "x/a.yaml"), str(folder / "y/b.yaml")]))
    assert {row["agent"]: row["message"].partition(" (run")[0] for row in found["results"]} == {
        label: f"needs trust: send a secret (agents.{label}.config) to shop.invalid" for label in ("a", "b")
    }
    assert "tok-" not in json.dumps(found)
