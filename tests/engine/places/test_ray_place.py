"""What of a project is sent to the machines of a cluster."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tui_eval.config.project import Config
from tui_eval.engine.places import ray_place
from tui_eval.engine.places.ray_place import packed_project
from tui_eval.guard.secrets import Masker

SECRET = "sk-known-0123456789abcdef"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    for name, text in {
        "tui_eval.yaml": "agents: {}",
        "suite.yaml": "agent: a",
        "below/checks.py": "1",
        ".env": f"KEY={SECRET}",
        ".env.local": "",
        ".git/config": "",
        ".tui-eval/runs/1/run.db": "",
        "node_modules/a.js": "",
        "own_env/pyvenv.cfg": "",
        "own_env/lib.py": "",
        "notes.txt": f"the key is {SECRET}",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "outside.txt").write_text("not of the project")
    (folder / "out.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "within.yaml").symlink_to("suite.yaml")
    return folder


def test_what_belongs_to_a_machine_leads_out_or_holds_a_secret_stays(root: Path, tmp_path: Path) -> None:
    sent = packed_project(Config(root=root, file=root / "tui_eval.yaml"), Masker([SECRET]), tmp_path)
    with zipfile.ZipFile(sent.file) as package:
        assert package.namelist() == ["suite.yaml", "within.yaml", "below/checks.py"]
    assert sent.words.startswith(f"ray: 3 files of {root} are sent (")
    assert sent.words.endswith("; left out, for a secret in them: notes.txt")


def test_the_same_files_are_the_same_package(root: Path, tmp_path: Path) -> None:
    """Ray then has it already."""
    bodies = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        bodies.append(packed_project(Config(root=root), Masker([]), tmp_path / name).file.read_bytes())
    assert bodies[0] == bodies[1]


def test_too_much_is_refused_before_it_is_read(root: Path, tmp_path: Path) -> None:
    (root / "large").mkdir()
    with (root / "large" / "data.parquet").open("wb") as file:
        file.truncate(2**40)  # no memory holds it
    with pytest.raises(OSError, match=r"more than 200 MB \(most of it in large, .*files: shared") as refused:
        packed_project(Config(root=root), Masker([]), tmp_path)
    assert ray_place.LARGEST == 200 * 2**20
    assert "\n" not in str(refused.value)
