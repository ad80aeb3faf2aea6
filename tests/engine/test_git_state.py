"""The commit of a folder is read without running anything that the folder names."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tui_eval.config.project import AgentSpec, Config
from tui_eval.engine.plan import Job
from tui_eval.engine.provenance import git_state, provenance
from tui_eval.guard.masker import Masker
from tui_eval.guard.trust import Trust
from tui_eval.model import Case

_AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *_AUTHOR, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def repository(folder: Path) -> str:
    """A repository with one file in one commit; the commit."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    (folder / "kept.txt").write_text("one\n", "utf-8")
    git(folder, "add", "kept.txt")
    git(folder, "commit", "-q", "-m", "first")
    return git(folder, "rev-parse", "HEAD")


def biting(folder: Path, mark: Path) -> None:
    """Every key of a repository's configuration that is a program, set to one that leaves a mark."""
    bite = folder / "bite.sh"
    bite.write_text(f"#!/bin/sh\necho bitten >> '{mark}'\ncat\n", "utf-8")
    bite.chmod(0o755)
    (folder / ".gitattributes").write_text("* filter=bite diff=bite\n", "utf-8")
    for key in (
        "core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "gpg.program",
        "filter.bite.clean", "filter.bite.smudge", "filter.bite.process", "diff.bite.textconv",
        "diff.bite.command", "diff.external", "credential.helper", "uploadpack.packObjectsHook",
    ):  # fmt: skip
        git(folder, "config", key, str(bite))
    git(folder, "config", "filter.bite.required", "true")
    git(folder, "config", "alias.status", f"!{bite}")
    git(folder, "config", "core.hooksPath", str(folder))
    (folder / "included").write_text(f"[core]\n\tfsmonitor = {bite}\n", "utf-8")
    git(folder, "config", "include.path", str(folder / "included"))
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"):
        (folder / hook).write_bytes(bite.read_bytes())
        (folder / hook).chmod(0o755)


def test_a_clean_and_a_changed_tree_are_told_apart(tmp_path: Path):
    commit = repository(tmp_path)
    state = git_state(tmp_path)
    assert state is not None and (state.commit, state.dirty) == (commit, False)
    (tmp_path / "kept.txt").write_text("two\n", "utf-8")
    state = git_state(tmp_path)
    assert state is not None and state.dirty is True
    git(tmp_path, "add", "kept.txt")
    state = git_state(tmp_path)
    assert state is not None and state.dirty is True


def test_a_file_that_git_does_not_know_changes_nothing(tmp_path: Path):
    repository(tmp_path)
    (tmp_path / "new.txt").write_text("x", "utf-8")
    state = git_state(tmp_path)
    assert state is not None and state.dirty is False


def test_packed_references_and_detached_heads_are_read(tmp_path: Path):
    commit = repository(tmp_path)
    git(tmp_path, "pack-refs", "--all")
    git(tmp_path, "gc", "-q")
    state = git_state(tmp_path)
    assert state is not None and (state.commit, state.dirty) == (commit, False)
    git(tmp_path, "checkout", "-q", "--detach")
    state = git_state(tmp_path)
    assert state is not None and state.commit == commit


def test_a_folder_within_a_repository_is_of_it(tmp_path: Path):
    commit = repository(tmp_path)
    below = tmp_path / "evals" / "agent"
    below.mkdir(parents=True)
    state = git_state(below)
    assert state is not None and state.commit == commit


def test_a_linked_work_tree_and_a_submodule_have_their_own_commit(tmp_path: Path):
    commit = repository(tmp_path / "main")
    git(tmp_path / "main", "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    state = git_state(tmp_path / "linked")
    assert state is not None and (state.commit, state.dirty) == (commit, False)
    repository(tmp_path / "outer")
    git(
        tmp_path / "outer", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        str(tmp_path / "main"), "inner",
    )  # fmt: skip
    state = git_state(tmp_path / "outer" / "inner")
    assert state is not None and (state.commit, state.dirty) == (commit, False)


def test_no_program_of_the_repository_runs(tmp_path: Path):
    folder, mark = tmp_path / "project", tmp_path / "bitten"
    commit = repository(folder)
    biting(folder, mark)
    mark.unlink(missing_ok=True)
    (folder / "kept.txt").write_text("two\n", "utf-8")  # git must look into the file, where filters would run
    found = provenance(Config(root=folder), Trust(), [], "run", Masker([]))
    assert not mark.exists()
    assert found["git"] == {"commit": commit, "dirty": True}


def test_no_program_of_a_submodule_runs(tmp_path: Path):
    repository(tmp_path / "library")
    repository(tmp_path / "outer")
    git(
        tmp_path / "outer", "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        str(tmp_path / "library"), "inner",
    )  # fmt: skip
    git(tmp_path / "outer", "commit", "-q", "-m", "with a submodule")
    mark = tmp_path / "bitten"
    biting(tmp_path / "outer" / "inner", mark)
    mark.unlink(missing_ok=True)
    state = git_state(tmp_path / "outer")
    assert state is not None and state.dirty is False
    assert not mark.exists()


def test_an_embedded_bare_repository_is_none(tmp_path: Path):
    folder, mark = tmp_path / "cloned", tmp_path / "bitten"
    repository(tmp_path / "source")
    git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "source"), str(folder))
    bite = folder / "bite.sh"
    bite.write_text(f"#!/bin/sh\necho bitten >> '{mark}'\n", "utf-8")
    bite.chmod(0o755)
    git(folder, "config", "core.bare", "false")
    git(folder, "config", "core.worktree", str(folder))
    git(folder, "config", "core.fsmonitor", str(bite))
    assert git_state(folder) is None
    assert not mark.exists()


@pytest.mark.parametrize("way", ["file", "link", "head", "pipe"])
def test_a_git_folder_that_points_elsewhere_is_not_followed(tmp_path: Path, way: str):
    repository(tmp_path / "secret")
    folder = tmp_path / "project"
    folder.mkdir()
    if way == "file":
        (folder / ".git").write_text(f"gitdir: {tmp_path / 'secret' / '.git'}\n", "utf-8")
    elif way == "link":
        (folder / ".git").symlink_to(tmp_path / "secret" / ".git")
    else:
        repository(folder)
        (folder / ".git" / "HEAD").unlink()
        if way == "head":
            (folder / ".git" / "HEAD").symlink_to(tmp_path / "secret" / ".git" / "refs" / "heads" / "main")
        else:
            os.mkfifo(folder / ".git" / "HEAD")
    assert git_state(folder) is None


def test_the_person_s_environment_does_not_lead_git_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    commit = repository(tmp_path / "project")
    repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    state = git_state(tmp_path / "project")
    assert state is not None and (state.commit, state.dirty) == (commit, False)


def test_a_git_of_the_folder_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    commit, mark = repository(tmp_path / "project"), tmp_path / "bitten"
    fake = tmp_path / "project" / "git"
    fake.write_text(f"#!/bin/sh\ntouch '{mark}'\n", "utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "project"))
    state = git_state(tmp_path / "project")
    assert state is not None and (state.commit, state.dirty) == (commit, None)
    assert not mark.exists()


def test_an_agent_s_files_outside_the_root_are_not_read(tmp_path: Path):
    """Their size and time count, where nobody has agreed to more."""
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.write_text("one", "utf-8")
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "pipe")
    spec = AgentSpec(
        "a", "python", {"function": "link:f"}, files=["link", "pipe", str(outside)], base=str(root)
    )
    job = Job(
        held=Case("i", "n", "s", "nao"), agent="a", model=None, spec=spec, attempts=1, required=1,
        compat="documented", base=root, timeout=1, comparison={}, database=None, judge=None,
    )  # fmt: skip
    before = provenance(Config(root=root), Trust(), [job], "run", Masker([]))["agents"]
    times = outside.stat()
    outside.write_text("two", "utf-8")
    os.utime(outside, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert provenance(Config(root=root), Trust(), [job], "run", Masker([]))["agents"] == before
