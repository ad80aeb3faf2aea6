"""A conversation of which what is known is not asked: pure sessions, no agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tui_eval.agents.base import AgentError, Request, Session, SessionContext
from tui_eval.config.project import AgentSpec, Config
from tui_eval.engine.cached_session import Answers, CachedSession, asked_of
from tui_eval.events import Event, Finished, Note, Retrying, TextDelta, ToolCall
from tui_eval.guard import figures
from tui_eval.guard.masker import Masker
from tui_eval.guard.trust import Trust
from tui_eval.model import Entry, Reply
from tui_eval.store.answer_cache import AnswerCache


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


class Asked(Session):
    """Answers `TEXT!`; remembers what it was asked."""

    def __init__(self, log: list[Any], fails_at: str = "") -> None:
        self.log = log
        self.fails_at = fails_at

    async def send(self, request: Request) -> AsyncIterator[Event]:
        self.log.append(request.text)
        if request.text == self.fails_at:
            yield TextDelta("half an ")
            raise AgentError("gone")
        yield Retrying("429", 1)
        for piece in (request.text or "", "!"):
            yield TextDelta(piece)
        yield ToolCall("1", "search", {"q": request.text})
        yield Finished(Reply(turn=request.turn, text=f"{request.text}!", cost=0.5, latency_ms=40.0))


class Restorable(Asked):
    """Can be told of what was said before."""

    def restore(self, entries: Sequence[Entry], replies: Sequence[Reply]) -> bool:
        self.log.append(("restored", [one.text for one in replies]))
        return True


class Talk:
    """Conversations with one cache."""

    def __init__(self, folder: Path, kind: type[Asked] = Asked) -> None:
        self.cache = AnswerCache(folder)
        self.kind = kind
        self.log: list[Any] = []

    def have(self, *texts: str, asked: bytes = b"x", **more: Any) -> list[list[Event]]:
        """The events of each turn; `log` then has what the agent was asked."""
        self.log.clear()
        return asyncio.run(self._have(list(texts), asked, **more))

    async def _have(self, texts: list[str], asked: bytes, **more: Any) -> list[list[Event]]:
        replies: list[Reply] = []
        extra = more.pop("extra", "")
        fails_at, masker = more.pop("fails_at", ""), more.pop("masker", Masker())

        async def opened() -> Session:
            self.log.append("opened")
            return self.kind(self.log, fails_at)

        session = CachedSession(self.cache, asked, opened, lambda: ([], replies), masker, **more)
        requests = [Request(turn=turn, text=text) for turn, text in enumerate(texts, 1)]
        await session.look(requests)
        found: list[list[Event]] = []
        for request in [*requests, *([Request(turn=len(texts) + 1, text=extra)] if extra else [])]:
            found.append([event async for event in session.send(request)])
            replies += [event.reply for event in found[-1] if isinstance(event, Finished)]
        await session.close()
        return found


def test_a_conversation_that_is_known_is_not_asked_again(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    first = talk.have("a", "b")
    assert talk.log == ["opened", "a", "b"]
    again = talk.have("a", "b")
    assert talk.log == []
    for turn, events in enumerate(again):
        note, text, call, finished = events
        assert isinstance(note, Note) and note.text.startswith("cached: this was answered on 2")
        assert text == TextDelta(f"{'ab'[turn]}!") and call in first[turn]
        assert isinstance(finished, Finished)
        reply = finished.reply
        assert (reply.cached, reply.text, reply.cost, reply.latency_ms) == (True, f"{'ab'[turn]}!", 0.5, 40.0)


@pytest.mark.parametrize(
    ("texts", "asked"), [(("a", "c"), b"x"), (("c", "b"), b"x"), (("a", "b"), b"y"), (("b", "a"), b"x")]
)
def test_another_conversation_or_agent_is_asked(tmp_path: Path, texts: tuple[str, ...], asked: bytes) -> None:
    talk = Talk(tmp_path)
    talk.have("a", "b")
    talk.have(*texts, asked=asked)
    assert talk.log == ["opened", *texts]


def test_an_agent_that_can_be_told_goes_on_from_what_is_known(tmp_path: Path) -> None:
    talk = Talk(tmp_path, Restorable)
    talk.have("a", "b")
    talk.have("a", "b", "c")
    assert talk.log == ["opened", ("restored", ["a!", "b!"]), "c"]
    talk.have("a", "b", "c")
    assert talk.log == []


class Vague(Asked):
    """Says something that nobody can read."""

    async def send(self, request: Request) -> AsyncIterator[Event]:
        figures.tell("metadata", request.text, "an object")
        async for event in super().send(request):
            yield event


def test_what_nobody_could_read_of_an_answer_is_unknown_where_it_is_known_too(tmp_path: Path) -> None:
    """It counted as not reported: `escalated: false` and limits passed for an answer from the cache."""
    talk = Talk(tmp_path, Vague)
    with figures.dropped_figures() as first:
        talk.have("a", unknown=lambda: list(first))
    with figures.dropped_figures() as again:
        (events,) = talk.have("a", unknown=lambda: list(again))
    assert talk.log == [] and list(again) == list(first) and len(first) == 1
    assert sum(isinstance(event, Note) for event in events) == 1


class Private(Restorable):
    """Carries more of what was asked than its text."""

    def sent_before(self, requests: Sequence[Request], replies: Sequence[Reply]) -> None:
        assert [one.turn for one in replies] == [one.turn for one in requests]
        self.log.append(("sent", [(one.turn, one.text) for one in requests]))


def test_an_agent_is_told_what_went_beside_the_known_messages(tmp_path: Path) -> None:
    talk = Talk(tmp_path, Private)
    talk.have("a", "b")
    talk.have("a", "b", "c")
    assert talk.log == ["opened", ("sent", [(1, "a"), (2, "b")]), ("restored", ["a!", "b!"]), "c"]


def test_the_rows_of_a_known_answer_are_asked_for_or_it_is_said_how(tmp_path: Path) -> None:
    told = Talk(tmp_path, Restorable)
    told.have("a")
    told.have("a", extra="rows")
    assert told.log == ["opened", ("restored", ["a!"]), "rows"]
    told.have("a", extra="rows")
    assert told.log == []
    (tmp_path / "other").mkdir()
    forgetful = Talk(tmp_path / "other")
    forgetful.have("a")
    with pytest.raises(AgentError, match="--no-cache"):
        forgetful.have("a", extra="rows")


def test_errors_are_never_kept_and_what_came_before_them_is_not_half_a_conversation(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    with pytest.raises(AgentError):
        talk.have("a", "b", fails_at="b")
    talk.have("a", "b")
    assert talk.log == ["opened", "a", "b"]


def test_an_answer_with_a_secret_in_it_is_not_kept(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.have("my-secret-word", masker=Masker(["my-secret-word"]))
    talk.have("my-secret-word")
    assert talk.log == ["opened", "my-secret-word"]


def test_what_is_only_kept_is_asked_and_replaces_what_was_known(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.have("a")
    talk.have("a", reads=False)
    assert talk.log == ["opened", "a"]


def test_an_error_to_what_is_asked_anew_leaves_nothing_of_what_was_answered_then(tmp_path: Path) -> None:
    """Else the next run would take the answer of before, or the rest of another conversation."""
    talk = Talk(tmp_path, Restorable)
    talk.have("a", "b", "c")
    with pytest.raises(AgentError):
        talk.have("a", "b", "c", reads=False, fails_at="b")
    talk.have("a", "b", "c")
    assert talk.log == ["opened", ("restored", ["a!"]), "b", "c"]


def test_what_nobody_asked_to_keep_only_takes_the_place_of_what_was_kept(tmp_path: Path) -> None:
    talk = Talk(tmp_path)
    talk.have("a", "b")
    talk.have("a", "b", "c", reads=False, only=set())
    talk.have("a", "b")
    assert talk.log == []
    talk.have("a", "b", "c")
    assert talk.log == ["opened", "a", "b", "c"]
    talk.have("x", reads=False, only=set())
    talk.have("x")
    assert talk.log == ["opened", "x"]


def test_what_does_not_come_back_as_it_was_is_not_kept(tmp_path: Path) -> None:
    class Odd(Asked):
        async def send(self, request: Request) -> AsyncIterator[Event]:
            self.log.append(request.text)
            yield Finished(Reply(turn=1, text="x", output={"a": float("nan")}))

    talk = Talk(tmp_path, Odd)
    talk.have("a")
    talk.have("a")
    assert talk.log == ["opened", "a"]


MODEL = AgentSpec("bot", "openai")


def context(**more: Any) -> SessionContext:
    return SessionContext(**({"case_id": "c", "attempt": 1, "session_id": "s"} | more))


@pytest.mark.parametrize(
    "change",
    [
        {"attempt": 2},
        {"model": "m"},
        {"network": "n"},
        {"connection": "grpc"},
        {"headers": {"a": "b"}},
        {"vars": {"a": 1}},
    ],
)
def test_what_decides_on_the_answers_is_asked_for(change: dict[str, Any]) -> None:
    assert asked_of(MODEL, {"config": "1"}, context()) != asked_of(MODEL, {"config": "1"}, context(**change))


async def test_of_a_dialogue_the_model_that_plays_the_user_decides_too(tmp_path: Path) -> None:
    target = AgentSpec("bot", "echo")
    user = AgentSpec("user", "simulated-user", {"target": msgspec.to_builtins(target)})
    keys: list[bytes | None] = []
    for model in ("one", "two", "two"):
        config = Config(tmp_path, judge=AgentSpec("judge", "openai", {}, model=model))
        answers = Answers(config, Trust(True), True, False)
        keys.append(await answers.asked(user, context()))
        keys.append(await answers.asked(target, context()))
    assert keys[0] != keys[2] == keys[4] and keys[1] == keys[3]


def test_names_of_the_moment_do_not_decide(tmp_path: Path) -> None:
    same = asked_of(MODEL, {"config": "1"}, context())
    assert same == asked_of(MODEL, {"config": "1"}, context(session_id="t", case_id="d", evaluation_id="e"))
    assert same != asked_of(MODEL, {"config": "2"}, context())
    assert same == asked_of(MODEL, {"config": "1"}, context(test={"assert": []}))
    assert asked_of(AgentSpec("bot", "python"), {}, context(test={"assert": []})) != asked_of(
        AgentSpec("bot", "python"), {}, context()
    )


CODE = {"transformRequest": "(prompt, vars, context) => context.test.metadata"}
ENDPOINT = AgentSpec("bot", "promptfoo-http", {"config": CODE})


@pytest.mark.parametrize(
    "told",
    [
        AgentSpec("bot", "javascript"),
        ENDPOINT,
        AgentSpec("bot", "websocket", {"config": {"streamResponse": "file://read.js"}}),
        AgentSpec("bot", "sequence", {"target": msgspec.to_builtins(ENDPOINT)}),
    ],
)
def test_code_that_is_told_the_test_is_asked_for_each(told: AgentSpec) -> None:
    """`transformRequest` sends what another test's metadata say: with `--cache` both got one answer."""
    for change in (
        {"test": {"metadata": {"lang": "fr"}}},
        {"label": "long"},
        {"prompt": {"config": {"top": 1}}},
    ):
        assert asked_of(told, {}, context(**change)) != asked_of(told, {}, context())


def test_what_only_judges_the_answer_of_a_model_asks_for_no_other_one() -> None:
    """Another `provider` or `rubricPrompt` in a test's options, or another label, paid for all answers again."""
    endpoint = AgentSpec("bot", "promptfoo-http", {"config": {"body": {"prompt": "{{prompt}}"}}})
    for told in MODEL, endpoint:
        judged = context(prompt={"config": {"rubricPrompt": "be strict"}}, label="long", test={"assert": []})
        assert asked_of(told, {}, judged) == asked_of(told, {}, context())
    tools = context(prompt={"config": {"tools": [{"name": "look"}]}})  # its templates know them
    assert asked_of(endpoint, {}, tools) != asked_of(endpoint, {}, context())


def test_an_answer_of_an_agent_that_was_edited_meanwhile_is_not_kept(tmp_path: Path) -> None:
    async def no() -> bool:
        return False

    talk = Talk(tmp_path)
    talk.have("a", stands=no)
    talk.have("a")
    assert talk.log == ["opened", "a"]
    talk.have("a")
    assert talk.log == []


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ({"limit": 0.08}, []),
        ({"limit": 0.07}, ["opened", "a", "b"]),
        ({"turn_limits": {1: 0.05, 2: 0.05}}, []),
        ({"turn_limits": {1: 0.03}}, ["opened", "a", "b"]),
        ({"turn_limits": {2: 0.03}}, ["opened", ("restored", ["a!"]), "b"]),
    ],
)
def test_what_took_longer_than_it_may_now_is_asked_anew(
    tmp_path: Path, limits: dict[str, Any], asked: list[Any]
) -> None:
    talk = Talk(tmp_path, Restorable)
    talk.have("a", "b")
    talk.have("a", "b", **limits)  # each turn took 40 ms
    assert talk.log == asked
    with pytest.raises(AgentError):
        talk.have("a", "b", limit=0.07, fails_at="a")
    talk.have("a", "b")
    assert talk.log == ["opened", "a", "b"]  # and nothing of it is left


def test_a_turn_for_the_rows_that_took_too_long_is_asked_anew(tmp_path: Path) -> None:
    talk = Talk(tmp_path, Restorable)
    talk.have("a", extra="rows")
    talk.have("a", extra="rows", limit=0.08)
    assert talk.log == []
    talk.have("a", extra="rows", limit=0.07)
    assert talk.log == ["opened", ("restored", ["a!"]), "rows"]
