"""What is printed for a person to run again does what it says, with the options it needs, or refuses before it
touches anything."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.places import ray_place
from tui_eval.engine.places.attempt_place import PlaceLost
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import SelectionError
from tui_eval.guard import trust_store
from tui_eval.guard.trust import fingerprints
from tui_eval.store.printed_commands import asked_again, by_typing, resume_command, run_command, run_options
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import RunLock, Store
from tui_eval.store.schema import PLACE_LOST, RunInfo
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.copying import text_of

AGENT = "import time\n\n\ndef answer(message):\n    time.sleep(0.3)\n    return 'hi ' + message\n"
CASES = "".join(
    f"  - {{name: 'case {n}', input: 'nr {n}', expected: {{should_contain: [hi]}}}}\n" for n in range(40)
)


def cut_off(root: Path, *options: str) -> str:
    """A run ended by Ctrl-C after some of its attempts; the command that it prints."""
    command = [
        sys.executable,
        "-m",
        "tui_eval",
        "run",
        "suite.yaml",
        "-j",
        "1",
        "--display",
        "json",
        *options,
    ]
    process = subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stdout is not None and process.stderr is not None
    for _ in range(2):
        assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    return told.partition("go on with: ")[2].splitlines()[0]


def facts(root: Path) -> tuple[str, dict[str, int]]:
    (folder,) = Store(root).run_folders()
    with closing(RunReader(folder)) as reader:
        counts: dict[str, int] = {}
        for row in reader.attempts():
            counts[row.outcome or row.state] = counts.get(row.outcome or row.state, 0) + 1
        return reader.info().state, counts


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("how", ["--trust", "--agent"])
def test_the_printed_command_goes_on_and_without_its_options_nothing_is_touched(
    cli: Cli, project: Path, how: str
) -> None:
    (project / "agent.py").write_text(AGENT)
    (project / "suite.yaml").write_text("agent: own\ntest_cases:\n" + CASES)
    (project / "tui_eval.yaml").write_text("agents:\n  own: {type: python, function: 'agent.py:answer'}\n")
    printed = cut_off(project, *(("--trust",) if how == "--trust" else ("--agent", "agent.py:answer")))
    words = shlex.split(printed)
    assert words[:2] == ["tui-eval", "resume"] and how in words
    before = facts(project)
    assert before[0] == "interrupted" and before[1]["waiting"] > 30
    told = cli(*words[1:3])
    assert told.code == 4 and printed in told.err
    assert facts(project) == before
    (folder,) = Store(project).run_folders()
    with pytest.raises(SelectionError):
        resume(folder)  # as the app asks for it in a folder that is not trusted
    (project / "agent.py").write_text(AGENT.replace("    time.sleep(0.3)\n", ""))
    assert cli(*words[1:]).code == 0
    assert facts(project) == ("finished", {"passed": 40})


def _lose_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(*_: object) -> None:
        raise PlaceLost("ray: the cluster at 10.0.0.3:6379 is gone")

    monkeypatch.setattr(ray_place, "check_ray", lambda address: None)  # which need not be installed
    monkeypatch.setattr(ray_place.RayPlace, "open", lost)


def test_a_run_whose_cluster_is_lost_names_a_way_on_that_does_not_lead_back_there(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lose_the_cluster(monkeypatch)
    (project / "agent.script.yaml").write_text("default: {say: 'hi you there'}\n")
    (project / "suite.yaml").write_text("agent: helper\ntest_cases:\n" + CASES)
    told = cli("run", "suite.yaml", "--on", "10.0.0.3:6379")
    (folder,) = Store(project).run_folders()
    assert told.code == 1
    line, other = told.err.splitlines()[-2:]
    way = f"go on with: tui-eval resume {folder.name} --on here"
    assert line == f"ray: the cluster at 10.0.0.3:6379 is gone; {way}"
    assert other == "on a cluster: the same with --on HOST:PORT (or ray, ray://HOST:PORT)"
    assert cli("attach", folder.name, "--display", "plain").err.splitlines() == [
        f"the run was interrupted; {way}",
        other,
    ]
    # Typed without a place it went back there, and failed again half a minute later.
    refused = cli("resume")
    assert refused.code == 4 and refused.err.strip() == (
        f"run {folder.name} ended since 10.0.0.3:6379 was lost; "
        f"{way.replace('go on with', 'go on here')}; {other}"
    )
    assert RunReader(folder).info().state == "interrupted"
    assert cli(*shlex.split(way.partition(": tui-eval ")[2])).code == 0
    (info,) = [RunReader(one).info() for one in Store(project).run_folders()]
    assert (info.state, info.options["on"]) == ("finished", "here")


def test_cases_of_a_run_whose_cluster_is_lost_are_run_again_here() -> None:
    """Their commands led back there, beside the one that goes on with the run here."""
    info = RunInfo("r", options={"on": "10.0.0.3:6379"}, provenance={PLACE_LOST: 2})
    assert run_options(asked_again(info)) == ["--on", "here"]
    del info.provenance[PLACE_LOST]
    assert run_options(asked_again(info)) == ["--on", "10.0.0.3:6379"]


def test_a_run_whose_configured_cluster_was_lost_goes_on_without_a_word_once_that_names_this_machine(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lose_the_cluster(monkeypatch)
    config = (project / "tui_eval.yaml").read_text()
    (project / "tui_eval.yaml").write_text(f"{config}run: {{on: ray}}\n")
    (project / "agent.script.yaml").write_text("default: {say: 'hi you there'}\n")
    (project / "suite.yaml").write_text("agent: helper\ntest_cases:\n" + CASES)
    assert cli("run", "suite.yaml").code == 1
    told = cli("resume")
    assert told.code == 4 and "ended since ray was lost; go on here: tui-eval resume" in told.err
    (project / "tui_eval.yaml").write_text(config)
    assert cli("resume").code == 0


@pytest.mark.real
def test_a_run_that_needs_nothing_goes_on_as_it_is_printed(cli: Cli, project: Path) -> None:
    (project / "suite.yaml").write_text("agent: helper\ntest_cases:\n" + CASES)
    (project / "agent.script.yaml").write_text("rate: 5\ndefault: {say: 'hi you there'}\n")
    printed = cut_off(project)
    (project / "agent.script.yaml").write_text("rate: 5000\ndefault: {say: 'hi you there'}\n")
    assert "--trust" not in printed
    assert cli(*shlex.split(printed)[1:]).code == 0


def test_what_failed_is_run_again_with_what_it_needs(cli: Cli, project: Path) -> None:
    (project / ".env.ci").write_text("SAID=hi\n")
    (project / "other.yaml").write_text("agents:\n  helper: {type: echo}\n")
    (project / "promptfooconfig.yaml").write_text(
        "providers: [echo]\nprompts: ['{{who}}']\n"
        "tests: [{vars: {who: you}, assert: [{type: equals, value: never}]}]\n"
    )
    told = cli(
        "run", "promptfooconfig.yaml", "--config", "other.yaml", "--env-file", ".env.ci", "--trust",
        "--var", "who=a b", "--attempts", "2", "--timeout", "7", "--compat", "reference",
    )  # fmt: skip
    (line,) = [line.strip() for line in told.out.splitlines() if line.strip().startswith("again: ")]
    words = shlex.split(line.removeprefix("again: "))
    for wanted in (["--config", "other.yaml"], ["--env-file", ".env.ci"], ["--attempts", "2"],
                   ["--timeout", "7"], ["--compat", "reference"], ["--var", "who=a b"]):  # fmt: skip
        at = words.index(wanted[0])
        assert words[at : at + 2] == wanted
    assert words[-1] == "--trust"
    again = cli(*words[1:], "--display", "json")
    assert again.code == 1 and json.loads(again.out.splitlines()[0])["outcome"] == "failed"
    # `show` prints the same, from what the run keeps.
    assert line in cli("show").out


def test_the_printed_command_runs_that_case_alone_whatever_else_is_called_so(cli: Cli, project: Path) -> None:
    """Namesakes, one called as the id of another, and as a folder, its file, a pattern and two names in a list."""
    suite = project / "suites" / "shop.yaml"
    suite.parent.mkdir()
    names = ["same", "same", "same#2", "suites", "shop", "suites/*", "a, b", "a", "x::a"]
    rows = [
        {"name": name, "input": f"q{place}", "expected": {"should_contain": ["zzz"]}}
        for place, name in enumerate(names)
    ]
    suite.write_text(json.dumps({"agent": "helper", "test_cases": rows}))
    told = [json.loads(line) for line in cli("run", str(suite), "--display", "json").out.splitlines()]
    ids = [one["case_id"] for one in told if "case_id" in one]
    lines = [
        line.partition("again: tui-eval ")[2] for line in cli("show").out.splitlines() if "again: " in line
    ]
    assert len(ids) == len(lines) == len(names)
    for line in lines:
        again = [json.loads(one) for one in cli(*shlex.split(line), "--display", "json").out.splitlines()]
        assert [one["case_id"] for one in again if "case_id" in one] == [ids.pop(0)], line


def test_a_case_of_a_folder_with_its_own_project_is_run_again_in_the_one_it_was_run_in(
    cli: Cli, project: Path
) -> None:
    inner = project / "inner"
    (inner / "tests").mkdir(parents=True)
    (project / "other").mkdir()
    for folder in (inner / "tests", project / "other"):
        shutil.copy(project / "suite.yaml", folder / "s.yaml")
    (inner / "tui_eval.yaml").write_text("agents:\n  helper: {type: echo}\n")
    told = cli("run", "other", "inner")
    lines = [line.strip() for line in told.out.splitlines() if line.strip().startswith("again: ")]
    for line in lines:  # found by its id, or the code were 4
        words = shlex.split(line.removeprefix("again: "))
        assert ("--config" in words) == (words[2].startswith("inner/")), line
        assert cli(*words[1:]).code == 1
    assert len(lines) == 2 and not (inner / ".tui-eval").exists()
    anew = run_command([inner / "tests"], project, {})
    assert shlex.split(anew)[2:] == ["inner/tests", "--config", "tui_eval.yaml"]
    shown = CaseContent(CasePointer("inner/tests/s.yaml::says sorry"), suite="inner/tests/s.yaml")
    shown.folder = project / ".tui-eval" / "runs" / "r"
    assert text_of(shown, "c").endswith("--config tui_eval.yaml")
    shown.suite = "other/s.yaml"
    assert "--config" not in text_of(shown, "c")


def test_where_only_the_folder_of_a_case_has_a_configuration_it_is_run_again_without_that(
    cli: Cli, project: Path
) -> None:
    """Its path alone is of the project further down: another agent was asked, and the run was kept there."""
    inner = project / "inner"
    inner.mkdir()
    for name in ("suite.yaml", "agent.script.yaml", "tui_eval.yaml"):
        (project / name).rename(inner / name)
    told = cli("run", ".", "--agent", "echo")
    lines = [line.partition("again: ")[2] for line in told.out.splitlines() if "again: " in line]
    for line in lines:
        words = shlex.split(line)
        assert words[2] == "." and words[4].startswith("inner/suite.yaml::"), line
        assert cli(*words[1:]).code == 1
    assert lines and not (inner / ".tui-eval").exists()
    shown = CaseContent(CasePointer("inner/suite.yaml::says sorry"), suite="inner/suite.yaml")
    shown.folder = project / ".tui-eval" / "runs" / "r"
    assert shlex.split(text_of(shown, "c"))[2] == "."


def test_a_case_beside_the_root_is_run_again_by_its_own_path(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the root it was not found: `no case … is called '../inner/suite.yaml::…'`."""
    inner, here = project / "inner", project / "here"
    inner.mkdir(), here.mkdir()
    for name in ("suite.yaml", "agent.script.yaml", "tui_eval.yaml"):
        (project / name).rename(inner / name)
    monkeypatch.chdir(here)
    told = cli("run", "..", "--agent", "echo")
    lines = [line.partition("again: ")[2] for line in told.out.splitlines() if "again: " in line]
    assert lines
    for line in lines:
        assert cli(*shlex.split(line)[1:]).code == 1, line


def test_a_case_with_a_secret_in_its_name_is_run_again_by_what_is_shown_of_it(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-abcdefghij0123456789")
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        "  - {name: 'the key sk-abcdefghij0123456789 works', input: a, expected: {should_contain: [zz]}}\n"
        "  - {name: 'the key works', input: b, expected: {should_contain: [zz]}}\n"
    )
    first = cli("run", "suite.yaml")
    told = next(line for line in first.out.splitlines() if "again: " in line and "•••" in line)
    assert "sk-abcdefghij" not in first.out + first.err and "SECRET" not in told
    words = shlex.split(told.partition("again: tui-eval ")[2])
    again = cli(*words)
    assert again.code == 1 and "1 failed, 1 total" in again.out, again.err
    assert "the key ••• works" in again.out
    failed = cli("run", "suite.yaml", "--failed")
    assert "2 failed, 2 total" in failed.out, failed.err
    lines = cli("run", "suite.yaml", "--display", "json").out
    assert "::the key \\u2022\\u2022\\u2022 works" in lines and "sk-abcdefghij" not in lines
    classic = cli("run", "suite.yaml", "--report", "classic")
    assert "the key ••• works" in classic.out and "sk-abcdefghij" not in classic.out + classic.err


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_cases_whose_names_differ_in_a_secret_alone_fail_each_for_itself(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-abcdefghij0123456789")
    monkeypatch.setenv("OTHER_TOKEN", "tok-abcdefghij0123456789")
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        + "".join(
            f"  - {{name: 'log in with {key}', input: a, expected: {{{'should_contain' if number == failing else 'should_not_contain'}: [zz]}}}}\n"
            for number, key in enumerate(("sk-abcdefghij0123456789", "tok-abcdefghij0123456789", "•••"))
        )
    )
    first = cli("run", "suite.yaml")
    assert "2 passed, 1 failed" in first.out, first.err
    again = cli("run", "suite.yaml", "--failed")
    assert again.code == 1 and "1 failed, 1 total" in again.out, again.err
    changed = (project / "suite.yaml").read_text().replace("input: a", "input: b")
    (project / "suite.yaml").write_text(changed)
    edited = cli("run", "suite.yaml", "--failed", "-o", "failed.json")
    assert edited.code == 1 and "1 failed, 1 total" in edited.out, edited.err
    (case,) = json.loads((project / "failed.json").read_text())["cases"]
    assert case["case_id"] == "suite.yaml::log in with •••" + ("", "#2", "#3")[failing]


def test_cases_that_differ_in_a_secret_alone_are_told_apart_in_the_record(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Printed lines, shards, merge, compare and rescore mean the right one of them, also where one was taken out."""
    keys = "sk-abcdefghij0123456789", "tok-abcdefghij0123456789"
    monkeypatch.setenv("MY_API_KEY", keys[0])
    monkeypatch.setenv("OTHER_TOKEN", keys[1])
    cases = [f"  - {{name: 'log in {key}', input: a, expected: {{should_contain: [zz]}}}}\n" for key in keys]
    cases[1] = cases[1].replace("should_contain", "should_not_contain")
    suite = project / "suite.yaml"
    suite.write_text("agent: helper\ntest_cases:\n" + "".join(cases))
    first = cli("run", "suite.yaml", "-o", "first.json")
    ids = ["suite.yaml::log in •••", "suite.yaml::log in •••#2"]
    assert "log in ••• · line 3" in first.err and "log in ••• · line 4" in first.err
    assert [one["case_id"] for one in json.loads((project / "first.json").read_text())["cases"]] == ids
    again = next(line for line in first.out.splitlines() if "again: " in line).partition("tui-eval ")[2]
    assert "1 failed, 1 total" in cli(*shlex.split(again)).out
    assert "1 case passed" in cli("run", "suite.yaml", "-s", ids[1]).out
    for number in "12":
        cli("run", "suite.yaml", "--shard", f"{number}/2")
    runs = [one["id"] for one in json.loads(cli("runs", "--json").out)]
    cli("merge", *(one for one in runs[:2] if one))
    whole = cli("run", "suite.yaml")
    assert "1 passed, 1 failed" in whole.out
    newest = json.loads(cli("runs", "--json").out)[0]["id"]
    same = cli("compare", runs[-1], newest)
    assert same.code == 0, same.out
    suite.write_text("agent: helper\ntest_cases:\n" + cases[1])  # it is the first now
    judged = cli("rescore", newest, "-o", "judged.json")
    found = {
        one["case_id"]: one["outcome"] for one in json.loads((project / "judged.json").read_text())["cases"]
    }
    assert found == {ids[0]: "failed", ids[1]: "passed"}, judged.out
    files = [path.read_bytes() for path in project.rglob("*") if path.is_file() and path != suite]
    assert not any(key.encode() in text for key in keys for text in files)


def test_an_agent_of_the_record_is_not_trusted_by_standing_there(cli: Cli, project: Path) -> None:
    """A run's record in a folder from elsewhere names code, and a judge that is code."""
    marker = project / "ran"
    (project / "evil.py").write_text(
        f"open({str(marker)!r}, 'w')\n\n\ndef answer(message):\n    return 'hi'\n"
    )
    assert cli("run", "suite.yaml").code == 1
    (folder,) = Store(project).run_folders()
    for options in ({"agents": ["evil.py:answer"]}, {"judge": "evil.py:answer"}, {"trust": True}):
        with sqlite3.connect(folder / "run.db") as connection:
            text = json.dumps(options)
            connection.execute("UPDATE attempts SET state = 'waiting', outcome = NULL WHERE id = 1")
            connection.execute(
                "UPDATE meta SET value = json_set(value, '$.state', 'interrupted', '$.options',"
                " json_patch(json_extract(value, '$.options'), ?)) WHERE key = 'info'", (text,),
            )  # fmt: skip
        with pytest.raises(SelectionError):
            resume(folder)
        assert cli("resume", folder.name).code == 4
        cli("rescore", folder.name)
    assert not marker.exists()


def test_a_run_that_judges_is_not_gone_on_with_by_asking_agents(cli: Cli, project: Path) -> None:
    assert cli("run", "suite.yaml").code == 1
    assert cli("rescore", "--trust").code == 1
    folder = next(iter(Store(project).run_folders()))
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("UPDATE attempts SET state = 'waiting', outcome = NULL WHERE id = 1")
        connection.execute(
            "UPDATE meta SET value = json_set(value, '$.state', 'interrupted') WHERE key = 'info'"
        )
    with closing(RunReader(folder)) as reader:
        above = reader.info().linked_to
    told = cli("resume", "--trust")
    assert told.code == 4 and f"tui-eval rescore {above} --trust" in told.err


def test_which_names_are_trusted_by_being_typed_only() -> None:
    for name in ("agent.py:f", "sub/agent.py:f", "pack.module:f", "https://example.org/v1"):
        assert by_typing(name), name
    for name in ("support", "openai:gpt-4.1", "ollama:llama3", "http://localhost:8000/v1", "echo"):
        assert not by_typing(name), name


def test_words_that_a_shell_would_read_are_quoted() -> None:
    told = resume_command("/a b/run", {"agents": ["x;y.py:f"], "trust": True})
    assert shlex.split(told) == ["tui-eval", "resume", "/a b/run", "--agent", "x;y.py:f", "--trust"]
    assert run_options({"vars": {"a": "$(b)"}, "attempts": 1, "threshold": 0.5}) == [
        "--threshold", "0.5", "--var", "a=$(b)",
    ]  # fmt: skip


@pytest.mark.parametrize("on", ["ray", "here", "ray://head:10001", "10.0.0.4:6379"])
def test_a_case_is_run_again_where_it_ran(on: str) -> None:
    """As it was typed: `here`, too, where the configuration says otherwise."""
    assert run_options({"on": on}) == ["--on", on]
    assert run_options({"on": None}) == []


def agreed_run(root: Path, agreed: list[str]) -> Path:
    """A run as the app has it made: with what a person agreed to."""
    (root / "agent.py").write_text("def answer(message):\n    return 'hi ' + message\n")
    (root / "tui_eval.yaml").write_text("agents:\n  mine: {type: python, function: 'agent.py:answer'}\n")
    (root / "suite.yaml").write_text(
        "agent: mine\ntest_cases:\n  - {name: a, input: b, expected: {should_contain: [never]}}\n"
    )
    active = prepare(RunRequest(paths=[str(root / "suite.yaml")], agreed=agreed))
    asyncio.run(active.execute())
    assert active.writer is not None
    return active.writer.folder


@pytest.mark.real
def test_a_run_with_trust_for_this_time_is_asked_for_again_with_just_that_trust(
    cli: Cli, project: Path
) -> None:
    what = "run agent.py:answer (the agent mine)"
    folder = agreed_run(project, [what])
    shown = cli("show", folder.name).out
    line = next(line.strip() for line in shown.splitlines() if line.strip().startswith("again: "))
    words = shlex.split(line.removeprefix("again: "))
    assert words[-2:] == ["--trust-only", fingerprints([what])]
    again = cli(*words[1:], "--display", "json")
    assert again.code == 1 and json.loads(again.out.splitlines()[0])["outcome"] == "failed"
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("UPDATE attempts SET state = 'waiting', outcome = NULL WHERE id = 1")
        connection.execute(
            "UPDATE meta SET value = json_set(value, '$.state', 'interrupted') WHERE key = 'info'"
        )
    told = cli("resume", folder.name)
    assert (
        told.code == 4
        and what in told.err
        and told.err.strip().endswith(f"resume {folder.name} --trust-only {fingerprints([what])}")
    )
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        assert connection.execute("SELECT state FROM attempts").fetchall() == [("waiting",)]
    assert cli("resume", folder.name, "--trust-only", fingerprints(["run other.py"])).code == 4
    assert cli("resume", folder.name, "--trust-only", fingerprints([what])).code == 1


@pytest.mark.real
def test_what_is_remembered_needs_no_trust_again(cli: Cli, project: Path) -> None:
    what = "run agent.py:answer (the agent mine)"
    trust_store.grant(project, [what])
    folder = agreed_run(project, [what])
    line = next(line for line in cli("show", folder.name).out.splitlines() if "again: " in line)
    assert "--trust" not in line
    assert cli(*shlex.split(line.partition("again: ")[2])[1:]).code == 1


@pytest.mark.real
def test_judging_again_without_the_trust_that_its_assertions_need_touches_nothing(
    cli: Cli, project: Path
) -> None:
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests:\n"
        "  - {vars: {q: a}, assert: [{type: python, value: 'len(output) > 0'}]}\n"
    )
    assert cli("run", "promptfooconfig.yaml", "--trust").code == 0
    (folder,) = Store(project).run_folders()
    told = cli("rescore", folder.name)
    assert told.code == 4 and "run inline Python of promptfooconfig.yaml" in told.err
    assert list(Store(project).run_folders()) == [folder]
    again = shlex.split(told.err.strip().splitlines()[-1].rpartition("then: ")[2])
    assert again[:4] == ["tui-eval", "rescore", folder.name, "--trust-only"]
    assert cli(*again[1:]).code == 0


def test_of_a_run_that_goes_on_that_is_said_before_what_it_may_need(cli: Cli, project: Path) -> None:
    assert cli("run", "suite.yaml", "--trust").code == 1
    folder = Store(project).find("last")
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("UPDATE attempts SET state = 'waiting', outcome = NULL WHERE id = 1")
    lock = RunLock(folder)
    try:
        for more in ([], ["--trust"]):
            told = cli("resume", *more)
            assert told.code == 4 and "is being executed by another process" in told.err, told
            assert len(told.err.strip().splitlines()) == 1 and "--trust" not in told.err
    finally:
        lock.release()
    assert cli("resume").code == 1, "nothing of it needs trust: it goes on"


def test_a_run_that_was_started_with_all_trust_goes_on_with_what_it_needs_of_it(
    cli: Cli, project: Path
) -> None:
    """In the app, where that is asked and agreed to, it was refused with an option of the command line."""
    (project / "own.py").write_text("def answer(message):\n    return message\n")
    (project / "tui_eval.yaml").write_text("agents: {helper: {type: python, function: 'own.py:answer'}}\n")
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n  - {name: a, input: hi, expected: {should_contain: [hi]}}\n"
    )
    assert cli("run", "suite.yaml", "--trust").code == 0
    folder = Store(project).find("last")
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("UPDATE attempts SET state = 'waiting', outcome = NULL")
    wanted = "run own.py:answer (the agent helper)"
    told = cli("resume")
    assert told.code == 4 and f"was started with --trust, and would be without it: {wanted}" in told.err
    assert told.err.strip().endswith(f"tui-eval resume {folder.name} --trust")
    active = resume(folder, overrides=RunRequest(agreed=[wanted]))
    asyncio.run(active.execute())
    with closing(RunReader(folder)) as reader:
        assert [row.outcome for row in reader.attempts()] == ["passed"]


HOSTILE = (
    "line\nbreak", "tab\there", "ev\u202eil\x1b[31m", "c1 \x9b2J", "quo'te \"two\" \\ back", "$(touch ran) `touch ran`",
    "-s", "bell\x07, comma", "ends with a blank ", " begins", "!! $HOME ~ *", "zero\ufeff width",
)  # fmt: skip
NO_WORDS = ("nul \x00 in it", "half \ud800 of a pair", "both \x1b\ud800", "a pair \ud83d\ude00 and \udcff")
"""What no command can be given as it is."""


@pytest.mark.real
def test_what_is_printed_for_hostile_names_works_when_it_is_pasted_into_bash(cli: Cli, project: Path) -> None:
    """Names of cases and of files, with control characters and bytes that are no text; what is printed has none."""
    rows = [{"name": name, "input": "q", "expected": {"should_contain": ["zzz"]}} for name in HOSTILE]
    for name in HOSTILE:
        (project / f"{name}.yaml").write_text(json.dumps({"agent": "helper", "test_cases": rows[:1]}))
    bad = project / os.fsdecode(b"bad\xff name.yaml")
    bad.write_text(json.dumps({"agent": "helper", "test_cases": rows}))
    tests = [
        {"description": name, "assert": [{"type": "equals", "value": "never"}]}
        for name in (*HOSTILE, *NO_WORDS)
    ]
    suite = {"providers": ["echo"], "prompts": ["q"], "tests": tests}
    (project / "promptfooconfig.json").write_text(json.dumps(suite))
    ran = cli("run", ".", "--display", "none")
    assert ran.code == 1, ran.err
    out = cli("show").out
    assert all(character == "\n" or character.isprintable() for character in out)
    lines = [line.partition("again: ")[2] for line in out.splitlines() if "again: " in line]
    assert len(lines) == 3 * len(HOSTILE) + len(NO_WORDS) + 1
    given = "tui-eval() { printf '%s\\0' \"$@\"; printf '\\n\\0'; }\n"  # bash reads them, and each runs in this process
    pasted = subprocess.run(
        ["bash", "-c", given + "\n".join(lines)], cwd=project, capture_output=True, timeout=60
    )
    assert not pasted.stderr and not (project / "ran").exists()
    ids: list[str] = []
    for number, words in enumerate(os.fsdecode(pasted.stdout).split("\0\n\0")[:-1]):
        again = cli(*words.split("\0"), "--display", "json", "--no-store")
        assert again.code == 1, (lines[number], again.err)
        ids += [json.loads(one)["case_id"] for one in again.out.splitlines()]
    assert len(ids) == len(set(ids)) == len(lines)


def test_show_takes_a_case_as_the_line_that_runs_it_again_names_it(cli: Cli, project: Path) -> None:
    ran = cli("run", "suite.yaml")
    lines = [line.partition("again: ")[2] for line in ran.out.splitlines() if "again: " in line]
    assert lines
    for words in map(shlex.split, lines):
        case = words[words.index("-s") + 1]
        assert case.startswith("::")
        shown = cli("show", "last", case)
        assert shown.code == 0 and case[2:] in shown.out.splitlines()[0]
