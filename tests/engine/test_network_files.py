"""What neuro-san's library reads is a part of an agent that it runs, wherever it lies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents import context
from tui_eval.agents.neuro_san.neuro_san_worker import network_files
from tui_eval.config.project import AgentSpec, Config
from tui_eval.engine.agent_files import folder_files
from tui_eval.engine.cached_session import Answers
from tui_eval.engine.case_files import question_files
from tui_eval.engine.fingerprints import Fingerprints
from tui_eval.engine.plan import Job
from tui_eval.guard.trust import Trust
from tui_eval.model import Case

FILES = {
    "registries/manifest.hocon": '{ "desk.hocon": true, "plain.json": true, "../aside/far.hocon": true }',
    "registries/desk.hocon": 'include "config/llm.hocon"\n{ "tools": [] }',
    "registries/sub/deep.hocon": '{ include required(file("config/shared.conf"))\n llm_info_file = config/models.hocon }',
    "registries/plain.json": '{ "tools": [], "toolbox_info_file": "config/box.json" }',
    "registries/notes.json": "{}",
    "aside/far.hocon": "INCLUDE package(\"config:packed.conf\"), include file('no')",
    "other/manifest.hocon": "{}",
    "other/net.hocon": 'include "parts/*.conf"',
    "config/llm.hocon": '{ include "nested.hocon" }',
    "config/nested.hocon": '{ include "llm.hocon" }',
    "config/shared.conf": "",
    "config/models.hocon": "",
    "config/box.json": "{}",
    "config/packed.conf": "",
    "config/unread.hocon": "",
    "parts/one.conf": "",
    "loose/net.hocon": 'include "spare/two.conf"',
    "spare/two.conf": "",
    "tools/fare.py": "",
    "more/bus.py": "",
    "info/env.hocon": "",
}
BOTH = os.pathsep.join(("registries/manifest.hocon", "other/manifest.hocon"))
READ = (
    "registries/desk.hocon", "registries/plain.json", "registries/sub/deep.hocon", "aside/far.hocon", "other/net.hocon",
    "config/llm.hocon", "config/nested.hocon", "config/shared.conf", "config/models.hocon", "config/box.json",
    "config/packed.conf", "parts/one.conf", "tools/fare.py", "more/bus.py",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def network(folder: Path, **options: Any) -> AgentSpec:
    given = {"manifest": BOTH, "tool_path": os.pathsep.join(("tools", "more"))}
    return AgentSpec("own", "neuro-san", {**given, **options}, base=str(folder))


def edited(folder: Path, file: str) -> None:
    (folder / file).write_text(f"{(folder / file).read_text()}\n# edited")


@pytest.mark.parametrize("file", READ)
@pytest.mark.parametrize("by_environment", [False, True])
def test_an_edit_of_what_a_network_is_made_of_counts(
    folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, by_environment: bool
) -> None:
    spec = network(folder)
    if by_environment:
        monkeypatch.setenv("AGENT_MANIFEST_FILE", spec.options["manifest"])
        monkeypatch.setenv("AGENT_TOOL_PATH", spec.options["tool_path"])
        spec = AgentSpec("own", "neuro-san", {}, base=str(folder))
    marks = Fingerprints(Config(root=folder), Trust(granted=True))
    before = marks.agent_now(spec)
    edited(folder, file)
    after = marks.agent_now(spec)
    assert after["files"] != before["files"] and after["config"] == before["config"]


@pytest.mark.parametrize("file", ["config/unread.hocon", "registries/notes.json", "loose/net.hocon"])
def test_what_it_does_not_read_does_not(folder: Path, file: str) -> None:
    marks, spec = Fingerprints(Config(root=folder), Trust(granted=True)), network(folder)
    before = marks.agent_now(spec)
    edited(folder, file)
    assert marks.agent_now(spec) == before


def test_what_variables_name_beside_networks_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_LLM_INFO_FILE", str(folder / "info" / "env.hocon"))
    marks, spec = Fingerprints(Config(root=folder), Trust(granted=True)), network(folder)
    before = marks.agent_now(spec)
    edited(folder, "info/env.hocon")
    assert marks.agent_now(spec) != before


def test_an_include_that_appears_counts(folder: Path) -> None:
    marks, spec = Fingerprints(Config(root=folder), Trust(granted=True)), network(folder)
    before = marks.agent_now(spec)
    (folder / "parts" / "late.conf").write_text("")
    assert marks.agent_now(spec) != before


def test_a_suite_beside_its_networks_includes_from_the_root_where_the_library_runs(folder: Path) -> None:
    spec = AgentSpec("own", "neuro-san", {"manifest": "manifest.hocon"}, base=str(folder / "registries"))
    found = {path.resolve() for path in folder_files(spec, folder)}
    assert {folder / "registries/desk.hocon", folder / "config/llm.hocon"} <= found


@pytest.mark.parametrize("file", ["loose/net.hocon", "spare/two.conf"])
async def test_a_network_that_a_case_names_by_its_file_is_asked_anew_when_it_is_edited(
    folder: Path, file: str
) -> None:
    spec, asked = network(folder), context(network="loose/net.hocon", connection="direct")
    answers = Answers(Config(root=folder), Trust(granted=True), True, False)
    before, others = await answers.asked(spec, asked), await answers.asked(spec, context(network="desk"))
    edited(folder, file)
    assert await answers.asked(spec, asked) != before
    assert await answers.asked(spec, context(network="desk")) == others
    case = Case("s::c", "c", "s", "neuro_san", agent="loose/net.hocon")
    assert folder / file in question_files(case, folder / "tests", folder)
    job = Job(
        held=case, agent="a", model=None, spec=spec, attempts=1, required=1, compat="documented", base=folder,
        timeout=1.0, comparison={}, database=None, judge=None,
    )  # fmt: skip
    assert file in Fingerprints(Config(root=folder), Trust(granted=True)).files_of(job)[0]


def test_a_pattern_that_a_network_includes_ends_where_links_lead_in_circles(tmp_path: Path) -> None:
    """Two links to their own folder were a trillion paths, and a run never began, also without trust."""
    for name in ("parts/deep/one.conf", "parts/two.conf", "linked/three.conf", "a.conf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "parts" / "link").symlink_to("../linked")
    for name in ("x", "y"):
        (tmp_path / name).symlink_to(".")
    for pattern, wanted in (
        ("**/no.conf", []),
        ("*/" * 30 + "no.conf", []),
        ("parts/*.conf", ["parts/two.conf"]),
        ("parts/*/*.conf", ["parts/deep/one.conf", "parts/link/three.conf"]),
        ("parts/**/*.conf", ["parts/deep/one.conf", "parts/link/three.conf", "parts/two.conf"]),
        ("?.conf", ["a.conf"]),
    ):
        (tmp_path / "net.hocon").write_text(f'include "{pattern}"')
        found = {
            path.relative_to(tmp_path).as_posix() for path in network_files("", "", tmp_path, ["net.hocon"])
        }
        assert sorted(found - {"net.hocon"}) == wanted, pattern
