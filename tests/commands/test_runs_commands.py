"""`runs`, `show`, `attach`, `export`, `prune`, `cancel`, `resume`, `rescore` on good runs and bad ones;
tables on terminals."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from tests.commands.conftest import Cli
from tests.support.live_run import LiveRun
from tests.tui.screens.test_runs_screen import write_runs, write_suite_run
from tui_eval.commands import output
from tui_eval.commands.recorded_runs import attempt_text, runs_text
from tui_eval.model import Attempt, Verdict
from tui_eval.reports.console_table import RunTable
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import RunLock, Store


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def damaged(root: Path) -> str:
    """A run whose pages are garbage from the second on."""
    run = LiveRun(root, ["x"])
    run.all_done(["passed"])
    path = run.folder / "run.db"
    path.write_bytes(path.read_bytes()[:4096] + os.urandom(len(path.read_bytes()) - 4096))
    for more in run.folder.glob("run.db-*"):
        more.unlink()
    return run.info.id


@pytest.mark.parametrize(
    "command",
    [["show"], ["attach"], ["export", "-o", "x.json"], ["export", "-o", "x.html"], ["rescore"], ["resume"],
     ["compare"], ["assess"], ["cancel"]],
    ids=lambda command: " ".join(command),
)  # fmt: skip
def test_a_damaged_run_is_one_clear_line(cli: Cli, root: Path, command: list[str]) -> None:
    write_runs(root, ["passed"] * 3)
    run = damaged(root)
    done = cli(command[0], run, *command[1:])
    assert done.code == 4 and len(done.err.splitlines()) == 1, done.err
    assert run in done.err and "internal error" not in done.err
    listed = cli("runs")
    assert listed.code == 0 and f"{run}  " in listed.out and "damaged" in listed.out


def test_where_runs_are_in_a_project_below_that_is_named(cli: Cli, root: Path) -> None:
    """`tui-eval run sample_suites` keeps its run there; `tui-eval runs` after it said to start one."""
    below = root / "evals"
    below.mkdir()
    (below / "tui_eval.yaml").write_text("{}\n")
    write_runs(below, ["passed"] * 3, ["passed"] * 3)
    told = "there are in evals: go there (cd)\n"
    assert cli("show").err.endswith(told) and cli("runs").out.endswith(told)


@pytest.mark.parametrize("command", ["show", "attach", "resume", "rescore", "cancel", "compare", "assess"])
def test_a_run_that_is_not_there_is_one_clear_line(cli: Cli, root: Path, command: str) -> None:
    nothing = cli(command, *(["last"] if command == "compare" else []))
    assert nothing.code == 4 and "no runs yet" in nothing.err and "tui-eval run PATH" in nothing.err
    write_runs(root, ["passed"] * 3, ["passed"] * 3)
    done = cli(command, "nosuch")
    assert done.code == 4 and done.err.strip().endswith("`tui-eval runs` lists them")
    vague = cli(command, "2026")
    assert vague.code == 4 and "is not unique" in vague.err and "write more of its id" in vague.err


def test_runs_are_a_table_that_a_pipe_has_whole(cli: Cli, root: Path) -> None:
    assert cli("runs").code == 5
    first, last = write_runs(root, ["passed"] * 3, ["failed", "error", "passed"])
    lines = cli("runs").out.splitlines()
    assert lines[0].split() == ["Run", "When", "State", "Passed", "Failed", "Errors", "Cost", "What"]
    assert lines[1].startswith(last.name) and lines[2].startswith(first.name)
    assert " 1/3 " in lines[1] and " 3/3 " in lines[2] and "finished" in lines[1]
    assert lines[1].index("1/3") + 3 == lines[0].index("Passed") + len("Passed")
    assert [run["id"] for run in cli("runs", "--json").json] == [last.name, first.name]


def test_a_step_is_said_to_be_one(root: Path) -> None:
    write_runs(root, ["passed"])
    (run,) = Index(root).runs()
    step = msgspec.structs.replace(run, stepped=True, state="running", linked_to="20260101-000000-000aa")
    for width, begin in ((80, "running: ↳ step "), (200, "↳ 20260101-000000-000aa: step ")):
        _, ordinary, marked = runs_text([run, step], width).splitlines()
        assert begin in marked and "step " not in ordinary


def test_a_run_that_a_limit_ended_says_how_much_never_ran(root: Path) -> None:
    """It was `finished  11/54  6  1`, with no word of 36."""
    write_runs(root, ["passed"] * 3)
    (run,) = Index(root).runs()
    cut = msgspec.structs.replace(run, total=54, passed=11, failed=6, errors=1)
    for width in (80, 200):
        _, whole, told = runs_text([run, cut], width).splitlines()
        assert "36 not run: " in told and "not run" not in whole
        assert "not whole: " in runs_text([msgspec.structs.replace(run, lacks="others never ran")], width)


@pytest.mark.parametrize("width", [60, 80, 100, 130, 200])
def test_runs_fit_a_terminal(root: Path, width: int) -> None:
    write_runs(root, ["passed"] * 3, ["failed", "error", "passed"])
    runs = Index(root).runs()
    wide = [msgspec.structs.replace(run, what="日本語のスイート/" * 12, state="interrupted") for run in runs]
    for line in runs_text(wide, width).splitlines():
        assert cell_len(line) <= max(width, 78), line
    assert "interrupted" in runs_text(wide, width)


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_the_table_of_cases_fits_a_terminal_and_keeps_what_counts(root: Path, width: int) -> None:
    names = ["a long name that is far longer than any column that it could have", "short"]
    (folder,) = write_runs(root, ["failed", "passed"], names=names)
    reader = RunReader(folder)
    cases, attempts = reader.cases(), reader.attempts()
    reader.close()
    cases = [msgspec.structs.replace(case, model="provider:a-model-with-a-long-name-2026") for case in cases]
    attempts = [msgspec.structs.replace(row, message=f"{row.message} and much more " * 4) for row in attempts]
    table = RunTable()
    for case in cases:
        table.add(case, [row for row in attempts if row.case_ref == case.id])
    lines = list(table.lines(width))
    assert all(cell_len(line) <= width for line in lines), lines
    for word in ("Test", "Status", "Tokens", "Cost", "Time (s)", "Tools"):
        assert word in lines[0]
    assert "✗ failed" in lines[2] and "a long name" in lines[2] and "Total" in lines[-1]
    whole = next(table.lines()).split("  ")
    assert [name.strip() for name in whole if name.strip()] == [
        "Test", "Model", "Status", "Message", "Tokens", "Cost", "Time (s)", "Tools",
    ]  # fmt: skip


def test_show_says_why_each_case_failed(cli: Cli, root: Path) -> None:
    (folder,) = write_runs(root, ["failed", "passed", "error"])
    done = cli("show")
    assert done.code == 1 and "✗ failed: refund is approved" in done.out and "case 0 went wrong" in done.out
    assert "again: tui-eval run" in done.out and "1 passed, 1 failed, 1 error" in done.out
    copied = root.parent / "elsewhere"
    shutil.copytree(folder, copied)
    done = cli("show", str(copied))
    assert "case 0 went wrong" in done.out and "again:" not in done.out


class _Screen(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("environment", "coloured"), [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False),
                                                       ({"TERM": "dumb"}, False)])  # fmt: skip
def test_outcomes_are_coloured_on_a_terminal_only(monkeypatch, environment, coloured) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    screen = _Screen()
    output.say("✗ failed: x ✓ passed 1/3 \x1b[31mraw passed-through ✓ passedx", screen)
    text = screen.getvalue()
    assert ("\x1b[31m✗ failed\x1b[0m" in text and "\x1b[32m✓ passed\x1b[0m 1/3" in text) == coloured
    assert "␛[31mraw" in text and "✓ passedx" in text
    pipe = _Screen()
    monkeypatch.setattr(pipe, "isatty", lambda: False)
    output.say("✗ failed", pipe)
    assert pipe.getvalue() == "✗ failed\n"


def test_prune_goes_by_when_a_run_was_not_when_its_folder_was_written(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = write_suite_run(root, "20251009-085320-old0", "old.yaml")  # its folder is of this minute
    (new,) = write_runs(root, ["passed"] * 3)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    days = (time.time() - 1_760_000_060) / 86400
    assert cli("prune", "--older-than", str(days + 1), "-y").code == 5
    asked = cli("prune", "--older-than", str(days - 1))
    assert asked.code == 4 and "nobody answered, so nothing is deleted; --yes" in asked.err
    assert asked.out.splitlines() == [line for line in asked.out.splitlines() if old.name in line]
    assert " MB  old.yaml (1 case)" in asked.out and old.exists()
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    kept = cli("prune", "--older-than", str(days - 1))
    assert kept.code == 0 and "nothing deleted" in kept.out and old.exists()
    done = cli("prune", "--older-than", str(days - 1), "-y")
    assert done.code == 0 and "deleted 1 run, 0." in done.out and not old.exists() and new.exists()
    assert "say what to delete" in cli("prune").err
    assert cli("prune", "--keep-size", "0", "--yes").code == 0 and not list(Store(root).run_folders())


def test_prune_leaves_a_run_that_is_gone_on_with_while_it_asks(
    cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was deleted below its engine."""
    (folder,) = write_runs(root, ["passed"])
    held: list[RunLock] = []

    def agreed(question: str) -> bool:
        held.append(RunLock(folder))
        return True

    monkeypatch.setattr("tui_eval.commands.prune._confirmed", agreed)
    done = cli("prune", "--keep-size", "0")
    assert done.code == 4 and f"{folder.name}: is being executed, so it stays" in done.err
    assert "deleted 0 runs" in done.out and (folder / "run.db").exists()
    held[0].release()
    assert cli("prune", "--keep-size", "0", "--yes").code == 0 and not folder.exists()


def test_a_run_without_the_cases_of_another_is_no_wall_of_names(cli: Cli, root: Path) -> None:
    first, last = LiveRun(root, [f"old {i}" for i in range(30)]), LiveRun(root, ["new"])
    first.all_done(["passed"] * 30)
    last.all_done(["passed"])
    done = cli("compare", first.info.id, last.info.id)
    assert done.code == 5 and "no case in common" in done.out
    assert "gone: 30" in done.out and "and 20 more; --json lists them all" in done.out
    assert (
        len(done.out.splitlines()) < 20 and len(cli("compare", first.info.id, "--json").json["cases"]) == 31
    )


def test_a_run_that_was_cut_off_does_not_pass_a_comparison(cli: Cli, root: Path) -> None:
    first, last = LiveRun(root, ["one", "two"]), LiveRun(root, ["one", "two"])
    first.all_done(["passed", "passed"])
    last.start(0)
    last.done(0, "passed")
    last.writer.state("interrupted", time.time())
    last.writer.close()
    done = cli("compare", first.info.id, last.info.id)
    assert done.code == 1 and "not run: 1\n  two" in done.out and "gone" not in done.out


def test_a_run_with_a_damaged_body_shows_what_is_left(cli: Cli, root: Path) -> None:
    (folder,) = write_runs(root, ["failed", "passed", "error"])
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("UPDATE bodies SET body = x'0102030405'")
    done = cli("show")
    assert done.code == 1 and "✗ failed: refund is approved" in done.out and "case 0 went wrong" in done.out
    assert "1 passed, 1 failed, 1 error" in done.out and "damaged" in done.err
    exported = cli("export", "-o", "x.html")
    assert exported.code == 4 and len(exported.err.splitlines()) == 1 and "damaged" in exported.err


MATRIX = """\
prompts: ['{{q}}', 'say {{q}}']
providers: [echo]
tests:
  - {vars: {q: 'What is 2+2, really?'}, assert: [{type: contains, value: '4'}]}
  - {vars: {q: Oslo}, assert: [{type: contains, value: Oslo}]}
  - {description: twice, vars: {q: a}, assert: [{type: contains, value: b}]}
  - {description: twice, vars: {q: c}, assert: [{type: contains, value: c}]}
"""


def test_commands_call_cases_as_the_lists_of_the_app_do(cli: Cli, root: Path) -> None:
    (root / "promptfooconfig.yaml").write_text(MATRIX)
    ran = cli("run", ".")
    (run,) = Store(root).run_folders()
    cli("run", ".")
    told = {
        "run": ran.out,
        "progress": ran.err,
        "list": cli("list", ".").out,
        "show": cli("show", "last").out,
        "attach": cli("attach", "last").out,
    }
    for command, text in told.items():
        assert "Row #" not in text, command
        for name in ("What is 2+2, really?", "Oslo", "twice · a", "twice · c"):
            assert text.count(name) >= 2, (command, name)
    for line in ("✗ failed: What is 2+2, really? [say {{q}}]", "✗ failed: twice · a [{{q}}]"):
        assert line in ran.out
    (root / "promptfooconfig.yaml").write_text(MATRIX.replace("value: c}", "value: d}"))
    cli("run", ".")
    assert "twice · c (say {{q}})" in cli("compare", run.name, "last").out
    cli("export", "last", "-o", "told.md")
    cli("export", "last", "-o", "told.html")
    cli("export", "last", "-o", "told.junit.xml")
    for page in ("told.md", "told.html", "told.junit.xml"):
        text = (root / page).read_text("utf-8")
        assert "What is 2+2, really?" in text and "Row #" not in text, page
    # What is printed can be typed.
    assert "2 failed, 2 total" in cli("run", ".", "-s", "What is 2+2, really?").out
    assert "2 failed, 2 total" in cli("run", ".", "-s", "twice · a").out
    assert "Oslo" in cli("show", run.name, "Oslo").out
    # The record keeps the names of the file.
    cli("export", run.name, "-o", "told.json")
    assert "Row #1" in (root / "told.json").read_text("utf-8")


def test_that_nothing_failed_is_not_said_of_runs_that_cannot_be_read(cli: Cli, project: Path) -> None:
    cli("run", "suite.yaml")
    (folder,) = (project / ".tui-eval" / "runs").iterdir()
    os.truncate(folder / "run.db", 20_000)
    result = cli("run", "suite.yaml", "--failed")
    assert result.code == 5 and "nothing failed or errored last time" in result.err
    assert (
        f"not known is that of a run that cannot be read: {folder.name} (tui-eval runs says why)"
        in result.err
    )


def test_show_says_what_a_scripts_result_consists_of() -> None:
    parts = [{"pass": False, "score": 0, "reason": "too\nlong"}, {"pass": True, "reason": None}]
    verdict = Verdict("javascript", passed=False, reason="1 of 2", parts=parts)
    shown = attempt_text(Attempt("s::a", 1, "failed", verdicts=[verdict]), "a").splitlines()
    at = shown.index("✗ javascript text: 1 of 2")
    assert shown[at + 1].startswith("    ✗ too") and "long" in shown[at + 1] and shown[at + 2] == "    ✓"


def test_the_runs_of_a_project_that_cannot_be_written_are_there(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They vanished: `--failed` said that nothing had failed, and `--changed` asked everything anew."""
    cli("run", "suite.yaml")
    (first,) = Store(project).run_folders()
    with monkeypatch.context() as patched:
        patched.setattr("tui_eval.config.project._can_be_written", lambda folder: False)
        assert [run["id"] for run in cli("runs", "--json").json] == [first.name]
        assert cli("show", "last").code == cli("show", first.name).code == 1
        failed = cli("run", "suite.yaml", "--failed", "--display", "json")
        assert [json.loads(line)["case_id"] for line in failed.out.splitlines()] == ["suite.yaml::says sorry"]
        changed = cli("run", "suite.yaml", "--changed", "--display", "json")
        assert [json.loads(line)["case_id"] for line in changed.out.splitlines()] == [
            "suite.yaml::says sorry"
        ]
        here = Store(project)
        second = here.find()
        assert here.holds(first) and here.holds(second) and second.parent == here.runs_folder != first.parent
        assert cli("compare", first.name, "last").code in (0, 1)
        # What is added to a run lies elsewhere than that.
        assert cli("rescore", first.name).code == 1
        added = here.find()
        with closing(RunReader(added)) as reader:
            assert reader.info().linked_to == first.name
        assert here.folder_of(first.name) == first and [
            one.name for one in Index(project).counting_folders(first)
        ] == [first.name, added.name]
        several = {run["id"]: run for run in cli("runs", "--json").json}
        assert list(several) == sorted(several, reverse=True) and len(several) == 4
        assert not list((project / ".tui-eval" / "runs").glob(f"{second.name}*"))

        def refused(folder: Path) -> None:
            if folder == first:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        patched.setattr("tui_eval.commands.prune.delete_run", refused)
        pruned = cli("prune", "--older-than", "0", "-y")
        assert pruned.code == 4 and "Read-only file system" in pruned.err and "deleted 3 runs" in pruned.out
    assert {run["id"]: run for run in cli("runs", "--json").json} == several
    assert cli("show", second.name).code == 1


def test_that_nothing_failed_is_not_said_of_runs_that_are_anothers_alone(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("run", "suite.yaml")
    closed = project / ".tui-eval"
    monkeypatch.setattr("tui_eval.config.project._can_be_written", lambda folder: folder != closed)
    monkeypatch.setattr(
        "tui_eval.config.project._can_be_read", lambda folder: closed not in (folder, *folder.parents)
    )
    said = f"not known is what is in {closed}, which cannot be read"
    failed = cli("run", "suite.yaml", "--failed")
    assert failed.code == 5 and said in failed.err
    assert said in cli("runs").out and said in cli("show", "last").err


def test_a_run_that_was_cut_off_when_all_had_ended_is_finished_by_resume(cli: Cli, project: Path) -> None:
    """It stood as interrupted for good: `attach` said to resume it, and `resume` that it was complete."""
    cli("run", ".")
    folder = next(Store(project).run_folders())
    with closing(RunReader(folder)) as reader:
        info = reader.info()
    ended = info.finished_at
    info.state, info.finished_at = "running", None
    with closing(sqlite3.connect(folder / "run.db")) as database, database:
        database.execute(
            "UPDATE meta SET value = ? WHERE key = 'info'", (msgspec.json.encode(info).decode(),)
        )
    assert Index(project).runs()[0].state == "interrupted"
    said = f"run {info.id} is complete: every attempt has a result"
    first, again = cli("resume"), cli("resume")
    assert first.err == f"{said}; it was cut off before its end was written, and stands as finished now\n"
    assert again.err == f"{said}\n" and first.code == again.code == cli("show").code
    (run,) = Index(project).runs()
    assert run.state == "finished" and run.finished_at is not None and ended is not None
    assert info.started_at <= run.finished_at <= ended
