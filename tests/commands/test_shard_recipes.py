"""The scripts of the help page on large runs as they stand there: taken out of it, and run as a shell runs them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.commands.conftest import Cli
from tui_eval.store.run_folders import holds_runs

PAGE = (Path(str(resources.files("tui_eval.help"))) / "large-runs.md").read_text("utf-8")
CI = (Path(str(resources.files("tui_eval.help"))) / "ci.md").read_text("utf-8")


def recipe(page: str, heading: str) -> str:
    """The last block of code below a heading."""
    section = page.partition(f"\n## {heading}")[2].partition("\n## ")[0]
    return re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)[-1]


JOB: dict[str, Any] = yaml.safe_load(recipe(PAGE, "Kubernetes: an Indexed Job"))
CONTAINER: dict[str, Any] = JOB["spec"]["template"]["spec"]["containers"][0]
(MOUNT,) = CONTAINER["volumeMounts"]
SCRIPT: str = CONTAINER["args"][0]


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """What the recipes take for given: `tui-eval`, and `srun`, on the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, line in (("tui-eval", f'exec {sys.executable} -m tui_eval "$@"'), ("srun", 'exec "$@"')):
        (programs / name).write_text(f"#!/bin/sh\n{line}\n", "utf-8")
        (programs / name).chmod(0o755)
    return tmp_path / "shared"


def with_project(folder: Path, cases: int = 12, wait: float = 0.0) -> Path:
    (folder / "evals").mkdir(parents=True)
    rows = "".join(
        f"  - {{name: case {n}, input: hello, expected: {{should_contain: [hi]}}}}\n" for n in range(cases)
    )
    (folder / "evals" / "a.yaml").write_text(f"agent: bot\ntest_cases:\n{rows}", "utf-8")
    (folder / "bot.sh").write_text(f"sleep {wait}\necho hi\n", "utf-8")
    (folder / "tui_eval.yaml").write_text(
        "agents:\n  bot: {type: command, command: [sh, bot.sh]}\nrun: {concurrency: 1}\n", "utf-8"
    )
    return folder


def as_pod(
    shared: Path, pod: str, job: str = "job-1", index: int = 0, of: int = 2, wait: float = 0.0
) -> dict[str, Any]:
    """The folder, environment and script of a pod: its project lies where the volume's part of it would be mounted."""
    given = {"JOB_UID": job, "POD_NAME": pod}
    inside = re.sub(r"\$\((\w+)\)", lambda found: given[found[1]], MOUNT["subPathExpr"])
    place = shared / inside
    assert place.name == ".tui-eval" == Path(MOUNT["mountPath"]).name
    with_project(place.parent, wait=wait)
    place.mkdir()
    script = SCRIPT.replace("/20", f"/{of}").replace("run evals", "run evals --trust")
    return {"cwd": place.parent, "args": script, "env": environment(shared, JOB_COMPLETION_INDEX=str(index))}


def environment(shared: Path, **more: str) -> dict[str, str]:
    path = f"{shared.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PATH": path, "PYTHONPATH": root, **more}


def run_pod(pod: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*CONTAINER["command"], pod["args"]], cwd=pod["cwd"], env=pod["env"], capture_output=True, text=True, timeout=120
    )  # fmt: skip


def test_each_job_has_a_folder_of_its_own_and_each_pod_in_it() -> None:
    names = {one["name"]: one["valueFrom"]["fieldRef"]["fieldPath"] for one in CONTAINER["env"]}
    assert names["JOB_UID"].endswith("controller-uid']") and names["POD_NAME"] == "metadata.name"
    assert Path(MOUNT["mountPath"]) == Path(CONTAINER["workingDir"]) / ".tui-eval"
    (volume,) = JOB["spec"]["template"]["spec"]["volumes"]
    assert volume["name"] == MOUNT["name"]
    assert f"))/{JOB['spec']['completions']}" in SCRIPT


@pytest.mark.real
def test_pods_leave_what_is_one_run(cli: Cli, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (0, 1):
        assert run_pod(as_pod(shared, f"pod-{number}", index=number)).returncode == 0
    # A part without cases has nothing to run, and is no failure.
    empty = run_pod(as_pod(shared, "pod-empty", index=998, of=9999))
    assert empty.returncode == 0 and "cannot stat" not in empty.stderr
    home = with_project(shared.parent / "home")
    monkeypatch.chdir(home)
    for pod in (shared / "shards" / "job-1").iterdir():  # the project is not on the volume
        for one in pod.iterdir():
            if one.name != ".tui-eval":
                shutil.rmtree(one) if one.is_dir() else one.unlink()
    assert holds_runs(shared / "shards" / "job-1")
    assert "All 12 cases passed" in cli("show", shared / "shards" / "job-1").out
    merged = cli("merge", shared / "shards" / "job-1")
    assert merged.code == 0 and "2 runs with 12 cases merged" in merged.err


@pytest.mark.real
def test_a_pod_that_cannot_keep_its_results_is_red(shared: Path) -> None:
    pod = as_pod(shared, "pod-0")
    pod["args"] = f"ulimit -f 8\n{pod['args']}"  # as a disk that is full
    assert run_pod(pod).returncode != 0
    nowhere = as_pod(shared, "pod-1")
    (nowhere["cwd"] / ".tui-eval").rmdir()
    (nowhere["cwd"] / ".tui-eval").write_text("")
    assert run_pod(nowhere).returncode != 0


@pytest.mark.real
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare, to be process 1")
def test_a_pod_that_is_evicted_keeps_what_has_ended(
    cli: Cli, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode:
        pytest.skip("this user makes no process spaces")
    pod = as_pod(shared, "pod-0", of=1, wait=0.3)
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", *CONTAINER["command"], pod["args"]],
        cwd=pod["cwd"], env=pod["env"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        seen = 0
        for line in process.stdout:
            seen += "passed" in line
            if seen == 2:
                break
        (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(first), signal.SIGTERM)
        rest = process.stdout.read()
    assert "interrupted" in rest and process.returncode != 0
    monkeypatch.chdir(with_project(shared.parent / "home"))
    shown = cli("show", shared / "shards" / "job-1")
    counts = re.search(r"(\d+) passed.* (\d+) not run, 12 total", shown.out)
    assert counts is not None and int(counts[1]) >= 2 and int(counts[2])
    # The pod in its place.
    assert run_pod(as_pod(shared, "pod-0-again", of=1, wait=0.3)).returncode == 0
    assert cli("merge", shared / "shards" / "job-1").code == 0


@pytest.mark.real
@pytest.mark.parametrize(("array", "count"), [([2], 1), ([1, 3], 2)])
def test_a_task_of_an_array_that_is_run_again_runs_its_own_part(
    cli: Cli, shared: Path, monkeypatch: pytest.MonkeyPatch, array: list[int], count: int
) -> None:
    """The number of shards was that of the tasks, which is another then: the whole suite ran as one part."""
    script = recipe(PAGE, "Slurm: an array")
    most = re.search(r"^#SBATCH --array=1-(\d+)$", script, re.MULTILINE)
    assert most is not None and f"shards={most[1]} " in script
    script = script.replace(f"shards={most[1]} ", "shards=3 ").replace("run evals", "run evals --trust")
    project = with_project(shared)
    for task in array:
        given = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": count, "SLURM_SUBMIT_DIR": project}
        ran = subprocess.run(
            ["bash", "-c", script], cwd=shared.parent, capture_output=True, text=True, timeout=120,
            env=environment(shared, **{name: str(value) for name, value in given.items()}),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
    monkeypatch.chdir(project)
    listed = cli("runs").out
    assert all(f"shard {task}/3" in listed for task in array) and listed.count("shard ") == len(array)


def test_what_github_jobs_write_is_kept_and_may_be_written_again() -> None:
    jobs = yaml.safe_load(recipe(PAGE, "On GitHub"))["jobs"]
    single = yaml.safe_load(re.findall(r"```yaml\n(.*?)```", CI, re.DOTALL)[0])["jobs"]
    uploads = [
        step for job in (*jobs.values(), *single.values()) for step in job["steps"]
        if step.get("uses", "").startswith("actions/upload-artifact")
    ]  # fmt: skip
    assert len(uploads) == 3
    assert all(one["with"]["overwrite"] and one["if"] == "always()" for one in uploads)
    merged = jobs["merged"]["steps"]
    written = re.findall(r"-o (\S+)", next(one["run"] for one in merged if "merge" in one.get("run", "")))
    kept = next(one["with"]["path"].split() for one in merged if one in uploads)
    assert written and set(written) <= set(kept)
    taken = next(one["with"] for one in merged if "download-artifact" in one.get("uses", ""))
    names = [one["with"]["name"] for one in uploads if one not in merged and one["with"]["name"] != "evals"]
    assert names and all(one.startswith(taken["pattern"].rstrip("*")) for one in names)
    assert not next(one for one in merged if one in uploads)["with"]["name"].startswith("shard-")
