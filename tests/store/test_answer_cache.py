"""Answers that are kept: the owner's alone, bounded, found by nobody else's keys."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tui_eval.guard import private
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
    assert cache.size() == (1, cache.path.stat().st_size)
    cache.clear()
    assert other.size() == (0, 0) and AnswerCache(tmp_path).size() == (0, 0)


ROOM = 60 * 4096


def test_those_not_used_for_longest_go_first(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path, room=ROOM)
    keys = [cache.key(b"%d" % number) for number in range(12)]
    for key in keys[:8]:
        cache.put(key, b"x" * 20_000)
    assert list(cache.get(keys)) == keys[:8]
    cache.get(keys[:1])
    for key in keys[8:]:
        cache.put(key, b"x" * 20_000)
    assert list(cache.get(keys)) == [keys[0], *keys[5:]]
    cache.put(keys[1], b"x" * ROOM)  # too large for any
    assert keys[1] not in cache.get(keys)


@pytest.mark.parametrize("size", [40, 700, 5_000, 30_000])
def test_the_file_is_never_larger_than_it_may_be_and_nearly_full(tmp_path: Path, size: int) -> None:
    """It was by an eighth: only what the answers say was counted, not what they take."""
    cache = AnswerCache(tmp_path, room=ROOM)
    sizes: list[int] = []
    for number in range(max(50, 2 * ROOM // (size + 100))):
        cache.put(cache.key(b"%d" % number), os.urandom(size))
        sizes.append(cache.path.stat().st_size)
    assert max(sizes) <= ROOM and max(sizes) > ROOM * 0.8
    count, _ = cache.size()
    assert count * (size + 150) > ROOM * 0.55 and cache.problem == ""


@pytest.mark.real
def test_what_an_answer_costs_to_keep_is_the_same_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum over all answers was made at each one: SQLite's own steps are counted, whatever the machine."""
    connections: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connected(*given: Any, **named: Any) -> sqlite3.Connection:
        connections.append(connect(*given, **named))
        return connections[-1]

    monkeypatch.setattr(sqlite3, "connect", connected)

    def steps(cache: AnswerCache) -> int:
        counted = 0

        def count() -> int:
            nonlocal counted
            counted += 1
            return 0

        connections[-1].set_progress_handler(count, 10)
        cache.put(cache.key(os.urandom(8)), b"x" * 500)
        connections[-1].set_progress_handler(None, 0)
        return counted

    cache = AnswerCache(tmp_path)
    cache.put(cache.key(b"first"), b"x")
    few = steps(cache)
    for number in range(3_000):
        cache.put(cache.key(b"%d" % number), b"x" * 500)
    assert steps(cache) <= 3 * few + 20


def damage(path: Path) -> None:
    """Write over a part in the middle of a file."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * 40_000)


def damaged(root: Path) -> tuple[AnswerCache, list[bytes]]:
    """A cache of 300 answers, closed, with a damaged part in its middle; and their keys."""
    cache = AnswerCache(root)
    keys = [cache.key(b"%d" % number) for number in range(300)]
    for key in keys:
        cache.put(key, key * 60)
    cache.close()
    damage(cache.path)
    return cache, keys


def test_a_file_with_a_damaged_part_is_made_anew_of_what_can_be_read_and_that_is_said(tmp_path: Path) -> None:
    _, keys = damaged(tmp_path)
    cache, beside = AnswerCache(tmp_path), AnswerCache(tmp_path)
    for key in [*keys, *keys]:  # what was whole beside the damage is asked once more too
        for one in (beside, cache):
            if key not in one.get([key]):
                one.put(key, key * 60)
    assert "was damaged: it was made anew of the " in cache.problem + beside.problem
    for one in (cache, beside, AnswerCache(tmp_path)):
        assert {key: body for key, (_, body) in one.get(keys).items()} == {key: key * 60 for key in keys}
    connection = sqlite3.connect(cache.path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_what_can_be_read_of_a_damaged_file_is_not_asked_again(tmp_path: Path) -> None:
    cache, keys = damaged(tmp_path)
    for key in keys:
        cache.get([key])
    found = cache.get(keys)
    assert 150 < len(found) < 300 and all(body == key * 60 for key, (_, body) in found.items())


def cut_off(path: Path, share: float) -> None:
    os.truncate(path, int(path.stat().st_size * share))


@pytest.mark.parametrize("rest", [0.9, 0.5, 0.1])
def test_what_is_left_of_a_file_that_was_cut_off_is_kept_and_that_is_said(
    tmp_path: Path, rest: float
) -> None:
    """SQLite refuses all of it, and it was deleted in silence."""
    first = AnswerCache(tmp_path)
    keys = [first.key(b"%d" % number) for number in range(300)]
    for key in keys:
        first.put(key, key * 60)
    first.close()
    cut_off(first.path, rest)
    cache = AnswerCache(tmp_path)
    found = cache.get(keys)
    assert 300 * rest * 0.7 < len(found) < 300 and all(body == key * 60 for key, (_, body) in found.items())
    said = re.fullmatch(
        r"\.tui-eval/answers\.db was damaged: it was made anew of the (\d+) answers that could be read, "
        r"(?:how many are lost is not known|(\d+) are lost)",
        cache.problem,
    )
    # One whose page was cut through can be read, but is not what it was.
    assert said is not None and int(said[1]) - len(found) in range(3)
    assert said[2] is None or int(said[1]) + int(said[2]) == 300
    assert [one.name for one in cache.path.parent.glob("answers*")] == ["answers.db"]
    assert AnswerCache(tmp_path).problem == ""


def test_answers_behind_several_damaged_parts_are_kept(tmp_path: Path) -> None:
    """They were read from both ends alone."""
    first = AnswerCache(tmp_path)
    keys = [first.key(b"%d" % number) for number in range(600)]
    for key in keys:
        first.put(key, key * 60)
    first.close()
    page = 4096
    with first.path.open("r+b") as file:
        for place in range(1, 10):
            file.seek(first.path.stat().st_size // 10 // page * page * place)
            file.write(b"\xa5" * page)
    cache = AnswerCache(tmp_path)
    for key in keys:
        cache.get([key])
    assert 550 < len(cache.get(keys)) < 600 and "was damaged" in cache.problem


def test_a_file_that_was_emptied_is_said(tmp_path: Path) -> None:
    first = AnswerCache(tmp_path)
    first.put(first.key(b"a"), b"one")
    first.close()
    cut_off(first.path, 0)
    os.utime(first.path, (1e9, 1e9))
    cache = AnswerCache(tmp_path)
    assert cache.get([cache.key(b"a")]) == {}
    assert cache.problem == ".tui-eval/answers.db was empty: what was kept in it is lost"


def other_program(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE answers (id INTEGER, said TEXT)")
    connection.execute("INSERT INTO answers VALUES (1, 'somebody''s')")
    connection.commit()
    connection.close()


def no_database(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


@pytest.mark.parametrize("make", [no_database, other_program])
def test_a_file_that_is_none_of_ours_is_moved_aside_until_all_is_forgotten(tmp_path: Path, make: Any) -> None:
    names = ["answers.db-aside", "answers.db-aside-2"]
    for number, _ in enumerate(names, 1):
        cache = AnswerCache(tmp_path)
        cache.path.parent.mkdir(exist_ok=True)
        cache.path.unlink(missing_ok=True)
        make(cache.path)
        before = cache.path.read_bytes()
        cache.put(cache.key(b"a"), b"one")
        assert list(cache.get([cache.key(b"a")]))
        assert [(cache.path.parent / name).read_bytes() for name in names[:number]] == [before] * number
        assert f"it was moved to .tui-eval/{names[number - 1]}, and all was asked" in cache.problem
        cache.close()
    cache = AnswerCache(tmp_path)
    assert cache.size()[1] == sum(one.stat().st_size for one in cache.path.parent.glob("answers*"))
    cache.clear()
    assert not [*cache.path.parent.glob("answers*")]


def test_the_file_of_a_newer_tui_eval_is_left_as_it_is(tmp_path: Path) -> None:
    first = AnswerCache(tmp_path)
    first.put(first.key(b"a"), b"one")
    first.close()
    connection = sqlite3.connect(first.path)
    connection.execute("PRAGMA user_version = 3")
    connection.close()
    before = first.path.read_bytes()
    cache = AnswerCache(tmp_path)
    cache.put(cache.key(b"b"), b"two")
    assert cache.get([cache.key(b"a"), cache.key(b"b")]) == {} and first.path.read_bytes() == before
    assert cache.problem == (
        "answers are not kept: .tui-eval/answers.db: a newer tui-eval has made it, so it is left as it is; update this one"
    )
    assert [one.name for one in cache.path.parent.glob("answers*")] == ["answers.db"]


def test_a_file_of_version_1_without_answers_is_no_stranger_s(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    cache.path.parent.mkdir()
    connection = sqlite3.connect(cache.path)
    connection.execute(
        "CREATE TABLE answers (key BLOB PRIMARY KEY, body BLOB NOT NULL, size INTEGER NOT NULL,"
        " at REAL NOT NULL, used REAL NOT NULL) WITHOUT ROWID"
    )
    connection.execute("PRAGMA user_version = 1")
    connection.close()
    cache.put(cache.key(b"a"), b"one")
    assert cache.size()[0] == 1 and cache.problem == ""


def test_another_person_s_answers_stay_theirs_where_the_file_is_made_anew(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = AnswerCache(tmp_path)
    keys = [theirs.key(b"%d" % number) for number in range(300)]
    for key in keys:
        theirs.put(key, key * 60)
    damage(theirs.path)
    with monkeypatch.context() as mine:
        mine.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("mine")))
        cache = AnswerCache(tmp_path)
        for key in keys:
            cache.get([key])
        assert "was damaged" in cache.problem and cache.get(keys) == {}
    assert len(AnswerCache(tmp_path).get(keys)) > 150


def test_an_error_leaves_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, other = AnswerCache(tmp_path), AnswerCache(tmp_path)
    cache.put(cache.key(b"a"), b"one")

    def fails(connection: sqlite3.Connection, size: int) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(cache, "_make_room", fails)
    cache.put(cache.key(b"b"), b"two")
    assert "disk I/O error" in cache.problem
    monkeypatch.setattr("tui_eval.store.answers_file.BUSY", 0.0)
    other.put(other.key(b"c"), b"three")
    assert len(other.get([other.key(b"a"), other.key(b"c")])) == 2 and other.problem == ""


def test_answers_of_the_version_before_are_taken_over(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    key = cache.key(b"a")
    cache.path.parent.mkdir()
    connection = sqlite3.connect(cache.path)
    connection.execute(
        "CREATE TABLE answers (key BLOB PRIMARY KEY, body BLOB NOT NULL, size INTEGER NOT NULL,"
        " at REAL NOT NULL, used REAL NOT NULL) WITHOUT ROWID"
    )
    connection.execute("INSERT INTO answers VALUES (?, ?, 3, 5.0, 6.0)", (key, b"one"))
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()
    assert cache.get([key]) == {key: (5.0, b"one")} and cache.problem == ""
    cache.put(cache.key(b"b"), b"two")
    assert AnswerCache(tmp_path).size()[0] == 2


def test_an_answer_that_somebody_changed_is_none(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    key = cache.key(b"a")
    cache.put(key, b"one")
    connection = sqlite3.connect(cache.path)
    connection.execute("UPDATE answers SET body = ?", (b"two",))
    connection.commit()
    connection.close()
    assert cache.get([key]) == {}
    cache.forget(key)
    assert cache.size()[0] == 0


@pytest.mark.parametrize("at", [1e300, float("inf"), -1.0])
def test_an_answer_of_a_time_that_cannot_be_is_none(tmp_path: Path, at: float) -> None:
    """A bit of it had flipped: telling when it was answered ended the attempt, in each later run."""
    cache = AnswerCache(tmp_path)
    key = cache.key(b"a")
    cache.put(key, b"one")
    with sqlite3.connect(cache.path) as connection:
        connection.execute("UPDATE answers SET at = ?", (at,))
    connection.close()
    assert cache.get([key]) == {}
    cache.put(key, b"two")
    assert cache.get([key])[key][1] == b"two"


def test_a_file_that_may_only_be_read_is_read_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = AnswerCache(tmp_path)
    key = first.key(b"a")
    first.put(key, b"one")
    first.close()
    os.chmod(first.path, 0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root may write it all the same
    cache = AnswerCache(tmp_path)
    assert [body for _, body in cache.get([key]).values()] == [b"one"]
    cache.put(cache.key(b"b"), b"two")
    assert cache.problem.endswith(
        "answers.db: cannot be written; make the file and its folder yours to write"
    )


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, list[bytes], Path]:
    """A project with two answers whose folder cannot be written: its root, their keys, and where its runs are kept."""
    root, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    root.mkdir()
    first = AnswerCache(root)
    keys = [first.key(b"a"), first.key(b"b")]
    for key in keys:
        first.put(key, b"one")
    first.close()
    monkeypatch.setattr("tui_eval.store.run_folders.state_dir", lambda root: elsewhere)
    return root, keys, elsewhere


@pytest.mark.parametrize("beside", ["", "-journal", "-wal"])
def test_in_a_folder_that_may_only_be_read_answers_are_found_and_new_ones_kept_with_the_runs(
    read_only: tuple[Path, list[bytes], Path], beside: str
) -> None:
    root, keys, elsewhere = read_only
    own = root / ".tui-eval" / "answers.db"
    if beside == "-wal":
        connection = sqlite3.connect(own)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    if beside:
        own.with_name(own.name + beside).write_bytes(b"")
    before = own.read_bytes()
    cache = AnswerCache(root)
    assert list(cache.get(keys)) == keys and not elsewhere.exists()
    assert cache.problem == (
        f".tui-eval/answers.db can only be read: what is answered anew is kept in {elsewhere}/answers.db"
    )
    new = cache.key(b"new")
    cache.put(new, b"two")
    cache.put(keys[0], b"another")
    assert cache.is_there and cache.forget(keys[1]) and not cache.forget(keys[1])
    cache.close()
    cache = AnswerCache(root)
    assert {key: body for key, (_, body) in cache.get([*keys, new]).items()} == {
        keys[0]: b"another",
        new: b"two",
    }
    assert own.read_bytes() == before and cache.left_alone == own


@pytest.mark.parametrize("what", ["garbage", "newer", "cut off", "folder"])
def test_what_may_only_be_read_and_cannot_be_is_said_and_stays(
    read_only: tuple[Path, list[bytes], Path], what: str
) -> None:
    root, keys, elsewhere = read_only
    own = root / ".tui-eval" / "answers.db"
    if what == "garbage":
        no_database(own)
    elif what == "newer":
        connection = sqlite3.connect(own)
        connection.execute("PRAGMA user_version = 3")
        connection.close()
    elif what == "cut off":
        cut_off(own, 0.5)
    else:
        own.unlink()
        own.mkdir()
    before = own.read_bytes() if own.is_file() else b""
    cache = AnswerCache(root)
    assert cache.get(keys) == {}
    assert cache.problem.startswith("answers are not found again: .tui-eval/answers.db: ")
    cache.put(keys[0], b"two")
    assert list(AnswerCache(root).get(keys)) == keys[:1] and (elsewhere / "answers.db").exists()
    assert [one.name for one in own.parent.glob("answers*")] == ["answers.db"]
    assert before == (own.read_bytes() if own.is_file() else b"")


def test_a_link_in_the_place_of_the_folder_is_not_followed_to_read_answers(
    tmp_path: Path, read_only: tuple[Path, list[bytes], Path]
) -> None:
    root, keys, _ = read_only
    (root / ".tui-eval").rename(tmp_path / "target")
    (root / ".tui-eval").symlink_to(tmp_path / "target")
    assert AnswerCache(root).get(keys) == {} and AnswerCache(root).problem == ""


def test_a_key_that_cannot_be_kept_is_said(tmp_path: Path, state: Path) -> None:
    (state / "tui-eval").write_text("no folder")
    cache = AnswerCache(tmp_path)
    cache.key(b"a")
    assert cache.problem.startswith(f"answers are not found again: {state}/tui-eval/answers.key: ")


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
    assert bool(cache.problem) is (not found or kind in ("garbage", "view")), "what is not kept is said"
    if kind in ("garbage", "view"):
        assert f"it was moved to .tui-eval/{cache.path.name}-aside" in cache.problem
    if kind in ("link", "folder"):
        assert cache.problem.endswith("; remove it")
    if kind == "link":
        assert found == {} and (tmp_path / "elsewhere").read_bytes() == b""
    os.chmod(cache.path.parent, 0o700)


@pytest.mark.parametrize("left", [b"", b"a half"])
def test_a_key_that_was_never_written_whole_is_made_anew(tmp_path: Path, state: Path, left: bytes) -> None:
    """kill -9 or a full disk between its making and its writing turned the cache off for good, in all projects."""
    (state / "tui-eval").mkdir()
    (state / "tui-eval" / "answers.key").write_bytes(left)
    cache = AnswerCache(tmp_path)
    cache.put(cache.key(b"a"), b"one")
    other = AnswerCache(tmp_path)
    assert [body for _, body in other.get([other.key(b"a")]).values()] == [b"one"]
    assert cache.problem == other.problem == ""
    assert [one.name for one in (state / "tui-eval").iterdir()] == ["answers.key"]


def test_processes_that_make_the_key_at_once_have_the_same(tmp_path: Path) -> None:
    """The second one read what the first had not written yet, and asked for it to be removed."""
    with ThreadPoolExecutor(8) as pool:
        caches = [AnswerCache(tmp_path) for _ in range(8)]
        keys = set(pool.map(lambda cache: cache.key(b"a"), caches))
    assert len(keys) == 1 and {cache.problem for cache in caches} == {""}


def test_a_key_for_which_there_is_no_room_leaves_no_half_of_it(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        path.write_bytes(content[:0])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(private, "write_file", full)
        cache = AnswerCache(tmp_path)
        cache.key(b"a")
        assert "answers.key: No space left on device" in cache.problem
    assert list((state / "tui-eval").iterdir()) == []
    other = AnswerCache(tmp_path)
    other.key(b"a")
    assert other.problem == ""
