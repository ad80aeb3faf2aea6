"""Paths confined to the root, and trust that is remembered outside of it."""

from __future__ import annotations

import hashlib
import json
import stat
from pathlib import Path

import pytest

from tui_eval.guard import trust_store
from tui_eval.guard.paths import confine, inside
from tui_eval.guard.trust import (
    NeedsTrust,
    Trust,
    agent_code,
    fingerprint,
    from_root,
    in_order,
    inline,
    unbroken,
)


def test_inside_the_root(tmp_path: Path) -> None:
    base = tmp_path / "suites"
    base.mkdir()
    assert confine(tmp_path, "a.txt", Trust(), base) == base / "a.txt"
    assert confine(tmp_path, "../a.txt", Trust(), base) == tmp_path / "a.txt"
    assert confine(tmp_path, tmp_path / "x" / "y", Trust()) == tmp_path / "x" / "y"
    assert inside(tmp_path, tmp_path) and not inside(tmp_path, tmp_path.parent)


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../x", "link/x"])
def test_outside_needs_trust(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "else").mkdir()
    (root / "link").symlink_to(tmp_path / "else")
    trust = Trust()
    with pytest.raises(NeedsTrust, match="needs trust: read /"):
        confine(root, path, trust)
    assert len(trust.wanted) == 1
    assert confine(root, path, Trust(True)).is_absolute()


SECRET = (
    ".env",
    "sub/.ENV.local",
    ".git/config",
    "a/.ssh/known_hosts",
    ".tui-eval/runs/1/run.db",
    "certs/Client.pem",
)
PLAIN = ("environment.md", ".github/prompts/a.md", "git/config", "keys.txt", "id_rsa.md", ".envelope/a.txt")


@pytest.mark.parametrize("path", [*SECRET, "tui_eval.yaml", "linked", "a/../.env", "id_ed25519"])
def test_files_in_which_secrets_are_kept_need_trust(tmp_path: Path, path: str) -> None:
    """What suites read goes to the hosts that they name."""
    (tmp_path / ".env").touch()
    (tmp_path / "linked").symlink_to(".env")
    trust = Trust()
    with pytest.raises(NeedsTrust, match=r"needs trust: read [^/ ]"):
        confine(tmp_path, path, trust, tmp_path)
    assert confine(tmp_path, path, Trust(agreed=frozenset(trust.wanted)), tmp_path).is_absolute()


@pytest.mark.parametrize("path", PLAIN)
def test_what_is_called_alike_needs_none(tmp_path: Path, path: str) -> None:
    root = tmp_path / ".git" / "root"  # folders around the project count for nothing
    root.mkdir(parents=True)
    assert confine(root, path, Trust()) == root / path


def test_a_folder_whose_name_begins_alike_is_outside(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with pytest.raises(NeedsTrust):
        confine(tmp_path / "root", tmp_path / "root2" / "x", Trust())


@pytest.mark.parametrize("path", ["a\0b", "\ud800\0"])
def test_no_paths(tmp_path: Path, path: str) -> None:
    with pytest.raises(OSError, match="not a usable path"):
        confine(tmp_path, path, Trust())


def test_links_in_a_circle(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for path in ("a", "a/below"):
        with pytest.raises(OSError):
            confine(tmp_path, path, Trust())


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tui-eval"


def test_trust_is_remembered_for_exactly_the_folder_and_what_was_listed(tmp_path: Path, state: Path) -> None:
    assert not trust_store.agreed(tmp_path)
    trust_store.grant(tmp_path, ["run a.py"])
    trust_store.grant(tmp_path, ["read /b"])
    trust_store.grant(tmp_path / "other", ["run c.py"])
    assert trust_store.agreed(tmp_path / "x" / "..") == {"run a.py", "read /b"}
    assert not trust_store.agreed(tmp_path / "x")
    trust = trust_store.trust_for(tmp_path, also=["run d.py"])
    for what in ("run a.py", "read /b", "run d.py"):
        trust.require(what)
    for what in ("run c.py", "run a.py with node", "read /b/c"):
        with pytest.raises(NeedsTrust):
            trust.require(what)
    trust_store.trust_for(tmp_path / "x", given=True).require("run anything")
    assert set(trust_store.agreements()) == {str(tmp_path), str(tmp_path / "other")}
    assert stat.S_IMODE((state / "trusted.json").stat().st_mode) == 0o600
    assert [file.name for file in state.iterdir()] == ["trusted.json"]


@pytest.mark.parametrize(
    "content", ["", "[]", '{"agreed": 3}', '{"agreed": {"/": 3}}', "{", "[" * 100_000, "\xff"]
)
def test_a_damaged_file_trusts_nothing(tmp_path: Path, state: Path, content: str) -> None:
    state.mkdir(parents=True)
    (state / "trusted.json").write_text(content, "latin-1")
    assert not trust_store.agreed(tmp_path)
    trust_store.grant(tmp_path, ["run a.py"])
    assert trust_store.agreed(tmp_path) == {"run a.py"}


def test_a_folder_that_an_earlier_version_trusted_with_everything_is_asked_anew(
    tmp_path: Path, state: Path
) -> None:
    state.mkdir(parents=True)
    (state / "trusted.json").write_text(json.dumps({"folders": [str(tmp_path)]}), "utf-8")
    with pytest.raises(NeedsTrust):
        trust_store.trust_for(tmp_path).require("run a.py")


def test_two_pieces_of_code_never_have_one_name() -> None:
    begins = "x = 1\n" * 50
    assert inline(begins + "good()") != inline(begins + "bad()")
    assert inline("a  b") != inline("a b")
    assert from_root(Path("/r/a/check.py"), Path("/r")) == "a/check.py"
    assert from_root(Path("/other/check.py"), Path("/r")) == "/other/check.py"
    assert agent_code("a.py:f", "a", "/r/one", Path("/r")) != agent_code("a.py:f", "a", "/r/two", Path("/r"))


def test_code_that_was_made_to_have_the_name_of_another_has_another_one() -> None:
    begins = "'what begins with the same eighty letters is another code all the same, beyond' and "
    good, evil = begins + "good()  # 1834826", begins + "evil()  # 2040376"
    digests = [hashlib.sha256(code.encode()).hexdigest() for code in (good, evil)]
    assert digests[0][:10] == digests[1][:10]  # found in a second
    assert inline(good) != inline(evil)
    assert fingerprint(inline(good)) != fingerprint(inline(evil))
    assert len(fingerprint("run x.py")) > 4 * 8, "two names with one fingerprint can be made"


def test_code_is_listed_first() -> None:
    wanted = [
        "send KEY to h",
        "read the environment variable A",
        "read /x",
        "run ./b (the agent b)",
        "run a.py:f",
    ]
    assert in_order([*wanted, "read /x"]) == wanted[::-1]


def test_the_end_of_a_name_of_code_is_not_broken_where_it_is_shown() -> None:
    name = inline("len(output) > 3")
    assert unbroken(name) == "len(output) > 3 " + name[16:].replace(" ", "\xa0") != name
    assert unbroken("run [3 characters] a") == "run [3 characters] a"
