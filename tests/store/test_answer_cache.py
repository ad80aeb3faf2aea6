"""Answers that are kept: the owner's alone, bounded, found by nobody else's keys."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest

from tui_eval.store.answer_cache import AnswerCache


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder


def test_an_answer_is_found_again_by_its_key_and_is_its_owner_s_alone(tmp_path: Path, state: Path) -> None:
    cache = AnswerCache(tmp_path)
    assert cache.get([cache.key(b"a")]) == {} and not cache.path.exists()  # looking makes nothing
    cache.put(cache.key(b"a", b"b"), b"one")
    other = AnswerCache(tmp_path)
    assert [body for _, body in other.get([other.key(b"a", b"b"), other.key(b"ab")]).values()] == [b"one"]
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o600
    assert stat.S_IMODE((state / "tui-eval" / "answers.key").stat().st_mode) == 0o600
    assert (cache.path.parent / ".gitignore").read_text() == "*\n"
    assert cache.size() == (1, 3)
    cache.clear()
    assert other.size() in ((0, 0), (1, 3)) and AnswerCache(tmp_path).size() == (0, 0)


def test_those_not_used_for_longest_go_first(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, room=100)
    keys = [cache.key(b"%d" % number) for number in range(6)]
    for key in keys[:4]:
        cache.put(key, b"x" * 25)
    cache.get(keys[:1])
    cache.put(keys[4], b"x" * 25)
    assert list(cache.get(keys)) == [keys[0], *keys[2:5]]
    cache.put(keys[5], b"x" * 101)  # too large for any
    assert keys[5] not in cache.get(keys) and cache.size() == (4, 100)


def test_answers_that_came_with_a_project_are_never_found(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").mkdir()
    theirs = AnswerCache(tmp_path / "theirs")
    theirs.put(theirs.key(b"question"), b"planted")
    theirs.close()
    shutil.copytree(tmp_path / "theirs", tmp_path / "mine")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("mine")))
    mine = AnswerCache(tmp_path / "mine")
    assert mine.get([mine.key(b"question")]) == {} and mine.size()[0] == 1


@pytest.mark.parametrize("kind", ["garbage", "view", "link", "folder", "unwritable"])
def test_what_cannot_be_a_cache_is_none_and_ends_nothing(tmp_path: Path, kind: str) -> None:
    cache = AnswerCache(tmp_path)
    cache.path.parent.mkdir()
    if kind == "garbage":
        cache.path.write_bytes(b"no database at all" * 100)
    elif kind == "view":
        connection = sqlite3.connect(cache.path)
        connection.execute("CREATE VIEW answers AS SELECT 1 AS key, 2 AS body, 3.0 AS at")
        connection.close()
    elif kind == "link":
        (tmp_path / "elsewhere").write_bytes(b"")
        cache.path.symlink_to(tmp_path / "elsewhere")
    elif kind == "folder":
        cache.path.mkdir()
    else:
        os.chmod(cache.path.parent, 0o500)
    key = cache.key(b"a")
    cache.get([key])
    cache.put(key, b"one")
    found = cache.get([key])
    assert found == {} or [body for _, body in found.values()] == [b"one"]
    if kind == "link":
        assert found == {} and (tmp_path / "elsewhere").read_bytes() == b""
    os.chmod(cache.path.parent, 0o700)
