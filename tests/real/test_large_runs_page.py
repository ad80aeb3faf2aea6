"""The shards of the help page "Large runs", with the shell of each of its examples as it stands there: only
the number of parts, and the folder that pods share, are others."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.real
PAGE = Path(__file__).parents[2] / "tui_eval" / "help" / "large-runs.md"
PARTS = 3
CASES = 12


def example(head: str) -> str:
    """The first block of code below a head of the page."""
    below = PAGE.read_text("utf-8").split(f"# {head}\n", 1)[1]
    return re.search(r"```\w+\n(.*?)```", below, re.DOTALL)[1]  # type: ignore[index]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose suite has a case that fails, and the command `tui-eval` of this checkout."""
    root = tmp_path / "project"
    (root / "evals").mkdir(parents=True)
    (root / "tui_eval.yaml").write_text("agents: {helper: {type: echo}}\n")
    lines = "".join(
        f"  - {{name: case {n}, input: message {n}, expected: {{should_not_contain: [message 7]}}}}\n"
        for n in range(CASES)
    )
    (root / "evals" / "suite.yaml").write_text(f"agent: helper\ntest_cases:\n{lines}")
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "tui-eval"
    command.write_text(f'#!/bin/sh\nPYTHONPATH={PAGE.parents[2]} exec {sys.executable} -m tui_eval "$@"\n')
    command.chmod(0o755)
    return root


def shell(
    script: str, cwd: Path, environ: dict[str, str] | None = None, how: Sequence[str] = ("bash", "-e")
) -> int:
    """The exit code of a script, as its machine would run it."""
    path = f"{cwd.parent / 'bin'}:{os.environ['PATH']}"
    values = {**os.environ, "PATH": path, **(environ or {})}
    done = subprocess.run(
        [*how, "-c", script], cwd=cwd, env=values, capture_output=True, text=True, timeout=300
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


def all_there(file: Path) -> None:
    """The results of the whole run: one case failed."""
    summary = json.loads(file.read_text("utf-8"))["summary"]
    assert (summary["total"], summary["passed"], summary["failed"]) == (CASES, CASES - 1, 1)


def test_the_jobs_on_github(project: Path) -> None:
    jobs = yaml.safe_load(example("On GitHub"))["jobs"]
    evals, merged = jobs["evals"], jobs["merged"]
    assert evals["strategy"]["matrix"]["shard"] == list(range(1, 9)) and merged["needs"] == "evals"
    run = next(step["run"] for step in evals["steps"] if "--shard" in step.get("run", ""))
    kept = next(step["with"] for step in evals["steps"] if "upload-artifact" in step.get("uses", ""))
    assert kept["include-hidden-files"], "the folder's name begins with a dot"
    for part in range(1, PARTS + 1):
        assert shell(run.replace("${{ matrix.shard }}/8", f"{part}/{PARTS}"), project) == 0
        artifact = project / "shards" / kept["name"].replace("${{ matrix.shard }}", str(part))
        artifact.parent.mkdir(exist_ok=True)
        (project / kept["path"]).rename(artifact)
    merge = next(step["run"] for step in merged["steps"] if "merge" in step.get("run", ""))
    assert shell(merge, project) == 1, "the merged run says that a case failed"
    all_there(project / "results.json")
    assert (project / "results.junit.xml").exists()


def test_the_indexed_job_of_kubernetes(project: Path, tmp_path: Path) -> None:
    given = yaml.safe_load(example("Kubernetes: an Indexed Job"))
    spec = given["spec"]
    assert (given["kind"], spec["completionMode"], spec["completions"]) == ("Job", "Indexed", 20)
    (pod,) = spec["template"]["spec"]["containers"]
    (script,) = pod["args"]
    job = tmp_path / "shared" / "shards" / "uid"
    script = script.replace("))/20", f"))/{PARTS}")
    how = [part for part in pod["command"] if part != "-c"]
    for index in range(PARTS):
        assert shell(script, project, {"JOB_COMPLETION_INDEX": str(index)}, how) == 0
        (job / f"pod-{index}").mkdir(parents=True)  # each mounts a folder of its own
        (project / ".tui-eval").rename(job / f"pod-{index}" / ".tui-eval")
    assert shell(f"tui-eval merge {job} -o results.json", project) == 1
    all_there(project / "results.json")


def test_the_array_of_slurm(project: Path) -> None:
    script = example("Slurm: an array").replace("shards=20", f"shards={PARTS}")
    for task in range(1, PARTS + 1):
        environ = {
            "SLURM_ARRAY_TASK_ID": str(task),
            "SLURM_ARRAY_TASK_COUNT": "1",  # as where one task is run again
            "SLURM_SUBMIT_DIR": str(project),
        }
        # What `srun` starts is the command that follows it.
        code = shell(f'srun() {{ "$@"; }}\n{script}', project, environ)
        assert code == 0
    runs = sorted(path.parent.name for path in project.glob(".tui-eval/runs/*/run.db"))
    assert len(runs) == PARTS
    assert shell(f"tui-eval merge {' '.join(runs)} -o results.json", project) == 1
    all_there(project / "results.json")


def test_the_cluster_of_kuberay_is_one() -> None:
    cluster = yaml.safe_load(example("Kubernetes"))
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    head, (workers,) = cluster["spec"]["headGroupSpec"], cluster["spec"]["workerGroupSpecs"]
    assert head["rayStartParams"]["num-cpus"] == "0"
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    for group in (head, workers):
        assert group["template"]["spec"]["containers"][0]["image"] == "YOUR_IMAGE"
