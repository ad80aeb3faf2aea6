"""Wrong usage: exit code 4, one clear line that says what there is, never a traceback."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.commands.conftest import Cli
from tui_eval import cli as command_line
from tui_eval.commands import listing
from tui_eval.commands.options import NAMED_ELSEWHERE, read_env_files


@pytest.mark.parametrize("arguments", [["-n", "3"], ["-n3"], ["-n"]])
def test_n_is_refused_with_both_of_its_meanings(cli: Cli, project: Path, arguments: list[str]) -> None:
    result = cli("run", ".", *arguments)
    assert result.code == 4
    assert "--attempts" in result.err and "--filter-first-n" in result.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--nonsense"], "--nonsense"),
        (["run", "--attempts", "0", "."], "--attempts"),
        (["run", "--attempts", "many", "."], "--attempts"),
        (["run", "--threshold", "2", "."], "--threshold"),
        (["run", "--threshold", "nan", "."], "is no number"),
        (["run", "--timeout", "nan", "."], "is no number"),
        (["run", "--max-cost", "nan", "."], "is no number"),
        (["run", "--threshold", "80%", "."], "'80%' is no number"),
        (["run", "-j", "four", "."], "'four' is no whole number"),
        (["run", "-k", "1.5", "."], "'1.5' is no whole number"),
        (["server", "--port", "http"], "'http' is no whole number"),
        (["run", "--attempts", "99999999999", "."], "--attempts"),
        (["show", "a" * 5000], "no run 'aaa"),
        (["export", "a" * 5000, "-o", "r.json"], "no run 'aaa"),
        (["merge", "a" * 5000], "no run 'aaa"),
        (["a" * 5000], "no such file, folder or command"),
        (["run", "--timeout", "0", "."], "--timeout"),
        (["run", "--max-cost", "-1", "."], "--max-cost"),
        (["run", "--compat", "both", "."], "--compat"),
        (["run", "--display", "tv", "."], "--display"),
        (["run", "--config", "nowhere.yaml", "."], "nowhere.yaml"),
        (["run", "nowhere"], "nowhere"),
        (["run", ""], "is empty"),
        (["run", ".", "--config", "."], "is a folder: name the file"),
        (["run", ".", "--config", "/dev/null"], "--config /dev/null: is no plain file"),
        (["run", ".", "--report", "classic", "--display", "json"], "give one"),
        (["run", ".", "--filter-sample-seed", "3"], "give --filter-sample N, too"),
        (["run", ".", "--filter-prompts", "zzz"], "there are: none"),
        (["run", ".", "--judge", ""], "is empty"),
        (["run", ".", "--agent", "helper", "--agent", ""], "is empty"),
        (["run", ".", "-m", ""], "is empty"),
        (["run", ".", "-c", ""], "is empty"),
        (["run", ".", "--env-file", ""], "is empty"),
        (["run", ".", "--filter-failing", ""], "is empty"),
        (["check", ""], "is empty"),
        (["show", ""], "is empty"),
        ([""], "is empty"),
        (["run", ".", "--agent", "http://"], "--agent http://: names no host"),
        (["run", ".", "--agent", "http:///chat"], "names no host"),
        (["run", "suit.yaml"], "did you mean suite.yaml?"),
        (["run", "suite.yaml::says sorry"], "a case is chosen with -s: suite.yaml -s 'says sorry'"),
        (["run", "deep/er/suite.yaml"], "no folder"),
        (["nowhere"], "nowhere"),
        (["run", ".", "-s", "nothing of the kind"], "greets"),
        (["run", ".", "--agent", "nobody"], "helper"),
        (["run", ".", "--agent", "nowhere.py:answer"], "nowhere.py"),
        (["run", ".", "--judge", "nobody"], "--judge nobody"),
        (["run", ".", "--filter-metadata", "x"], "KEY=VALUE"),
        (["run", ".", "--filter-pattern", "("], "regular expression"),
        (["run", ".", "-o", "results.docx"], ".json"),
        (["run", ".", "-o", "suite.yaml/x.json"], "suite.yaml"),
        (["list", "nowhere"], "nowhere"),
        (["check", "nowhere"], "nowhere"),
        (["show", "last"], "no runs yet"),
        (["attach"], "no runs yet"),
        (["resume"], "no runs yet"),
        (["cancel"], "no runs yet"),
        (["export", "-o", "x.json"], "no runs yet"),
        (["export"], "--output"),
        (["help", "xyzzy"], "getting-started"),
        (["init", "--format", "excel"], "--format"),
    ],
)
def test_wrong_usage(cli: Cli, project: Path, arguments: list[str], words: str) -> None:
    result = cli(*arguments)
    assert result.code == 4
    said = result.err + result.out
    assert words in said


def test_an_error_is_one_line_whatever_the_argument_holds(cli: Cli, project: Path) -> None:
    result = cli("run", ".", "--agent", "two\nlines\x1b[31m")
    assert result.code == 4
    assert len(result.err.splitlines()) == 1 and "\x1b" not in result.err


def test_results_that_cannot_be_written_are_said_before_anything_is_run(cli: Cli, project: Path) -> None:
    (project / "file").write_text("")
    result = cli("run", ".", "-o", "file/results.json")
    assert result.code == 4
    assert not (project / ".tui-eval").exists()


def test_an_empty_folder_is_nothing_to_run(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("run", ".")
    assert result.code == 5 and "`tui-eval init` writes a first one" in result.err
    assert "test_cases" in result.err
    assert cli("list").code == 5
    assert cli("check").code == 5
    assert cli("runs").code == 5


@pytest.mark.parametrize(
    "words",
    [("-s", "zzz"), ("--filter-pattern", "zzz"), ("--filter-metadata", "a=b"), ("--filter-prompts", "zzz"),
     ("--filter-providers", "zzz")],
)  # fmt: skip
def test_a_name_or_pattern_that_matches_nothing_is_wrong_usage(
    cli: Cli, project: Path, words: tuple[str, str]
) -> None:
    told = cli("run", ".", *words)
    assert told.code == 4 and "there are" in told.err.replace("descriptions are", "there are"), told
    assert not (project / ".tui-eval").exists()


def test_options_that_only_one_format_has_say_where_they_do_nothing(cli: Cli, project: Path) -> None:
    told = cli("run", "suite.yaml", "-s", "greets", "--prompt-prefix", "Be kind. ", "--delay", "1")
    unheard = (
        "--prompt-prefix, --delay: for promptfoo's suites alone: 1 case of another format is asked without"
    )
    assert told.code == 0 and unheard in told.err
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n"
    )
    told = cli("run", ".", "-s", "greets,says sorry,a", "--var", "q=b")
    assert "--var: for promptfoo's suites alone: 2 cases of other formats are asked without" in told.err, told
    assert "alone" not in cli("run", "promptfooconfig.yaml", "--var", "q=b").err


@pytest.mark.parametrize("option", ["--failed", "--changed"])
def test_nothing_left_to_run_because_all_is_well_is_5(cli: Cli, project: Path, option: str) -> None:
    assert cli("run", ".", "-s", "greets").code == 0
    assert cli("run", ".", "-s", "greets", option).code == 5
    (project / "broken.yaml").write_text("test_cases: [{name: x, input: 1\n")
    told = cli("run", ".", "-s", "greets", option)
    assert told.code == 4 and "broken.yaml:1" in told.err  # what could not be read may not be well


def test_filters_that_leave_no_case_run_nothing(cli: Cli, project: Path) -> None:
    assert cli("run", ".", "--filter-range", "100:200").code == 5
    for empty in ("0:0", "1:1"):
        done = cli("run", ".", "--filter-range", empty)
        assert (done.code, done.err.strip()) == (5, "the filters leave no case to run")


def test_a_file_that_is_no_suite_is_said_with_what_a_suite_is(cli: Cli, project: Path) -> None:
    (project / "notes.txt").write_text("hello")
    result = cli("run", "notes.txt")
    assert result.code == 4
    assert "notes.txt: not recognised as a suite" in result.err and "promptfooconfig" in result.err


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00", b"test_cases: [\x00", b"\x00" * 100, b"test_cases:\n - 1"]
)
def test_broken_files_named_outright(cli: Cli, project: Path, content: bytes) -> None:
    (project / "odd.yaml").write_bytes(content)
    result = cli("run", "odd.yaml", "--no-store")
    assert result.code == 4
    assert "odd.yaml" in result.err


def test_an_internal_error_is_one_line_and_a_file(
    cli: Cli, project: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the moon\nis down")

    monkeypatch.setattr(listing, "load_paths", broken)
    result = cli("list")
    assert result.code == 3
    assert len(result.err.splitlines()) == 1 and "the moon" in result.err
    assert "RuntimeError" in (own_state / "tui-eval" / "crash.log").read_text("utf-8")


def test_the_options_of_the_app_are_named_where_one_looks_for_them(cli: Cli) -> None:
    told = cli("--help").out
    assert all(option in told for option in ("--config", "--trust", "--local", "tui-eval . --help"))


def test_more_first_cases_than_a_machine_counts_are_all(cli: Cli, project: Path) -> None:
    assert cli("run", ".", "--filter-first-n", "9" * 30).code == cli("run", ".").code


def test_a_command_that_is_misspelt_is_named(cli: Cli, project: Path) -> None:
    for words in (["chek", "."], ["rn", ".", "--attempts", "3"], ["exprt", "-o", "r.json"]):
        told = cli(*words)
        meant = {"chek": "check", "rn": "run", "exprt": "export"}[words[0]]
        assert told.code == 4 and told.err.count("\n") == 1
        assert f"{words[0]}: no such file, folder or command; did you mean {meant}?" in told.err
    (project / "chek").mkdir()
    assert "did you mean" not in cli("chek").err
    assert "did you mean" not in cli("app2").err


def test_version_and_help(cli: Cli) -> None:
    for words in (["--version"], [".", "--version"], ["--trust", "--version"]):
        assert cli(*words).out == cli("--version").out and "0." in cli("--version").out
    listed = cli("--help").out
    for command in ("run", "list", "check", "runs", "show", "attach", "resume", "cancel", "export", "init"):
        assert f"  {command} " in listed
        assert cli(command, "--help").code == 0


@pytest.fixture
def unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files called secret.* cannot be read, also by root, who may run these tests."""
    opened = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if isinstance(path, str | Path) and Path(path).stem == "secret":
            raise PermissionError(13, "Permission denied")
        return opened(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.usefixtures("unreadable")
def test_an_unreadable_file_is_4_and_never_passed_over(cli: Cli, project: Path) -> None:
    (project / "secret.yaml").write_text("test_cases: [{name: x, input: hi}]\n")
    for paths in (["."], ["suite.yaml", "secret.yaml"]):
        result = cli("run", *paths, "-s", "greets", "--no-store")
        assert result.code == 4
        assert "secret.yaml: cannot be read: Permission denied" in result.err
        assert "1 case passed, but not all is there" in result.out, "the others still run"
    assert cli("check", ".").code == 4


def test_a_recorded_run_among_several_paths_says_how_runs_are_seen_together(cli: Cli, project: Path) -> None:
    for _ in range(2):
        cli("run", ".")
    runs = sorted(map(str, (project / ".tui-eval/runs").iterdir()))
    result = cli(*runs)
    assert result.code == 4 and not result.out
    assert runs[0] in result.err and f"tui-eval compare {runs[0]} {runs[1]}" in result.err
    assert "tui-eval merge" in cli("suite.yaml", runs[1]).err


@pytest.mark.usually(1)
@pytest.mark.parametrize(("most", "code", "words"), [(48, 4, "only 48 files may be open"), (256, 0, "")])
def test_too_few_open_files_are_one_line_at_the_start(
    project: Path, most: int, code: int, words: str
) -> None:
    """Where more may be had than a process was given, it takes them."""
    command = f"ulimit -Sn 40; ulimit -Hn {most}; exec {sys.executable} -m tui_eval list ."
    done = subprocess.run(["bash", "-c", command], cwd=project, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and words in done.stderr
    assert len(done.stderr.splitlines()) == bool(words)


@pytest.mark.parametrize("command", [("run", "."), ("show", "last"), ("runs",), ("merge", "a"), ("prune",)])
def test_in_a_folder_that_was_deleted_one_line_says_so(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    said = cli(*command)
    assert said.code == 4
    assert said.err == "the current folder does not exist any more: change to one that does (cd)\n"


@pytest.mark.parametrize("command", [("run", ".", "--no-store"), ("check", ".", "--vacuous")])
def test_where_no_temporary_file_can_be_written_one_line_says_so(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """A container with a read-only root: it was an internal error, with a crash report to send."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(project / "nowhere")])
    said = cli(*command)
    assert said.code == 4
    assert said.err.startswith("no folder for temporary files can be written: mount one at /tmp")
    assert said.err.count("\n") == 1


def test_a_line_of_an_env_file_that_gives_no_variable_is_said_without_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("OF_A_FILE", "AFTER_IT"):
        monkeypatch.setenv(name, "before")
    (tmp_path / "ci.env").write_text("\ufeffOF_A_FILE=1\nMY KEY=secret-9x7\nAFTER_IT=2\n")
    read_env_files([str(tmp_path / "ci.env")])
    assert (os.environ["OF_A_FILE"], os.environ["AFTER_IT"]) == ("1", "2")
    said = capsys.readouterr().err
    assert "ci.env:2: no NAME=value: the line is passed over" in said and "9x7" not in said


@pytest.mark.parametrize(
    ("typed", "here"),
    [("--collect-only", "tui-eval list"), ("-x", "--fail-fast"), ("--lf", "--failed"),
     ("--maxfail=1", "--fail-fast"), ("--junitxml=x.xml", "-o FILE.junit.xml"), ("--epochs", "--attempts N")],
)  # fmt: skip
def test_an_option_that_other_tools_have_is_told_by_its_name_here(
    cli: Cli, project: Path, typed: str, here: str
) -> None:
    """`--collect-only` was asked whether `--trust-only` was meant."""
    told = cli("run", ".", typed)
    assert told.code == 4 and f"here it is {here}" in told.err.replace("`", ""), told.err
    assert "--trust-only" not in told.err


def test_every_name_of_run_that_a_foreign_option_leads_to_is_one() -> None:
    known = {name for param in command_line.cli.commands["run"].params for name in param.opts}
    for names, here in NAMED_ELSEWHERE.items():
        assert not known & set(names), names
        assert all(word in known for word in here.replace(",", "").split() if word.startswith("-")), here


def test_what_is_said_of_a_file_with_a_case_behind_it_can_be_typed(cli: Cli, project: Path) -> None:
    """Of a promptfoo test it was `-s ::NAME`, which is a whole id and chose nothing: providers follow in its id."""
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['{{x}}']\nproviders: [echo]\n"
        "tests: [{description: it greets, vars: {x: one}}, {vars: {x: two}}]\n"
    )
    for case in ("it greets", "two", "it greets::echo::prompt1"):
        told = cli("run", f"promptfooconfig.yaml::{case}")
        found = re.search("a case is chosen with -s: (.+)", told.err)
        assert told.code == 4 and found is not None, told
        assert "1 case passed" in cli("run", *shlex.split(found[1])).out


def test_show_of_no_case_lists_the_cases_as_all_lists_call_them(cli: Cli, project: Path) -> None:
    """A row was called `Row #1`, as it is recorded."""
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['{{x}}']\nproviders: [echo]\ntests: [{vars: {x: one}}, {vars: {x: two}}]\n"
    )
    assert cli("run", "promptfooconfig.yaml").code == 0
    assert "it has: one, two" in cli("show", "last", "three").err
