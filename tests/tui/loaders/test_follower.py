"""News of a run reach the app: all of them, and without waiting where there are any."""

from __future__ import annotations

import threading
import time

import pytest

from tests.support.live_run import LiveRun
from tui_eval.store.reader import RunReader
from tui_eval.tui.loaders import follower
from tui_eval.tui.loaders.follower import Follower, RunNews


class Ear:
    """Takes news as the app does, when told."""

    def __init__(self) -> None:
        self.told = threading.Event()
        self.news: list[RunNews] = []
        self.follower: Follower | None = None

    def call_later(self, callback, *_args, **_kwargs) -> bool:
        self.told.set()
        return True

    def take_news(self) -> None:
        """Not called: the test takes them."""

    def hear(self) -> None:
        """Wait for news and take them."""
        assert self.told.wait(10) and self.follower is not None
        self.told.clear()
        self.news.append(self.follower.take())


@pytest.fixture
def followed(tmp_path):
    run = LiveRun(tmp_path, ["one", "two"])
    ear = Ear()
    ear.follower = Follower(ear, run.folder)
    ear.follower.start()
    ear.hear()
    yield run, ear
    ear.follower.stop()


def test_a_stamp_changes_with_what_others_write_and_only_then(tmp_path):
    run = LiveRun(tmp_path, ["one"])
    run.writer.flush()
    reader = RunReader(run.folder)
    before = reader.stamp()
    assert reader.stamp() == before and reader.changes(0) and reader.stamp() == before
    run.start(0)
    run.writer.flush()
    assert reader.stamp() != before
    run.finish()
    reader.close()


def test_a_flood_that_nothing_follows_arrives_whole(followed, monkeypatch):
    run, ear = followed
    monkeypatch.setattr(follower, "LIVE_ROWS", 50)
    ref = run.start(0)
    for number in range(300):
        run.writer.live(ref, "tool_call", str(number), name="find", call_id=str(number))
    run.writer.flush()
    end = time.monotonic() + 10
    seen: list[str] = []
    while len(seen) < 300 and time.monotonic() < end:
        ear.hear()
        seen += [row.text for row in ear.news[-1].live]
    assert seen == [str(number) for number in range(300)]
    run.finish()


def test_a_follower_that_lags_gets_the_rest_once_its_news_are_taken(followed, monkeypatch):
    run, ear = followed
    monkeypatch.setattr(follower, "LIVE_WAITING", 10)
    monkeypatch.setattr(follower, "LIVE_ROWS", 10)
    ref = run.start(0)
    for number in range(40):
        run.writer.live(ref, "hand_off", "", name=str(number))
    run.writer.flush()
    end = time.monotonic() + 10
    seen: list[str] = []
    while len(seen) < 40 and time.monotonic() < end:
        ear.hear()
        seen += [row.name for row in ear.news[-1].live]
    assert seen == [str(number) for number in range(40)]
    run.finish()


def test_the_end_of_a_run_and_its_last_changes_are_told(followed):
    run, ear = followed
    run.start(0)
    run.done(0, "failed", "no")
    run.done(1, "passed")
    run.finish()
    outcomes: dict[int, str | None] = {}
    end = time.monotonic() + 10
    while not any(news.info is not None and news.info.state == "finished" for news in ear.news):
        assert time.monotonic() < end
        ear.hear()
    ear.follower.wait(10)
    for news in [*ear.news, ear.follower.take()]:
        outcomes |= {row.id: row.outcome for row in news.attempts.values()}
    assert set(outcomes.values()) == {"failed", "passed"}


def test_a_run_is_not_said_to_have_ended_before_its_last_attempts_are(tmp_path, monkeypatch):
    """An app that is quicker than the follower's thread takes a step for one that came to nothing, and hears no more
    of it."""
    monkeypatch.setattr(follower, "INFO_SECONDS", 0.0)
    run = LiveRun(tmp_path, ["one"])
    known: dict[int, str | None] = {}
    ended: list[dict[int, str | None]] = []

    class Quick:
        def call_later(self, callback, *_args, **_kwargs) -> bool:
            news = followed.take()  # at once, in the follower's thread
            known.update({row.id: row.outcome for row in news.attempts.values()})
            if news.view is not None:
                seen.set()
            if news.info is not None and news.info.state == "finished":
                ended.append(dict(known))
            return True

        def take_news(self) -> None: ...

    seen = threading.Event()
    followed = Follower(Quick(), run.folder)
    run.start(0)
    run.writer.flush()
    changes, may_read = RunReader.changes, threading.Event()

    def once_ended(reader: RunReader, since: int = 0):
        assert may_read.wait(30)
        return changes(reader, since)

    followed.start()
    assert seen.wait(30)
    monkeypatch.setattr(RunReader, "changes", once_ended)
    run.done(0, "failed", "no")
    run.finish()
    may_read.set()
    followed.wait(30)
    assert ended == [{run.refs[0][0]: "failed"}]
