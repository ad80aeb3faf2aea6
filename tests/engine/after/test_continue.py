"""Going on from a recorded turn, judging a recorded answer again, and edits that count at once."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.servers import AnthropicServer, NeuroSanServer, OpenAIServer, Planned
from tests.support.waiting import until
from tui_eval.engine.attempt.continuing import JUDGED_AGAIN
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import Recorded, RunRequest
from tui_eval.engine.selection import SelectionError
from tui_eval.engine.service.client import EngineClient
from tui_eval.model import Attempt
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader

THREE = """
agent: helper
test_cases:
  - {name: three, messages: ["one", "two", "three"], expected: {should_contain: ["three"]}}
"""
ECHO = 'default: {say: "you said {{message}}"}\nrate: 5000\n'
OPENAI = "agents:\n  helper: {type: openai, base_url: '%s', model: m}\n"


async def run(root: Path, **options) -> tuple[Path, int, Attempt]:
    active = prepare(RunRequest(paths=[str(root)], **options))
    assert active.writer is not None
    folder = active.writer.folder
    await active.execute()
    reader = RunReader(folder)
    try:
        ref = reader.attempts()[0].id
        attempt = reader.attempt(ref)
    finally:
        reader.close()
    assert attempt is not None
    return folder, ref, attempt


async def test_openai_goes_on_with_the_recorded_messages(project) -> None:
    with OpenAIServer() as server:
        root = project(suite=THREE, config=OPENAI % server.base)
        folder, ref, first = await run(root)
        assert first.outcome == "passed" and len(server.requests) == 3
        _, _, again = await run(root, continue_from=Recorded(folder.name, ref, 3))
        assert again.outcome == "passed", again.message
        assert len(server.requests) == 4
        assert server.requests[3].body["messages"] == server.requests[2].body["messages"]
        assert [entry.text for entry in again.transcript if entry.kind == "user"] == ["one", "two", "three"]
        assert any("not sent again" in entry.text for entry in again.transcript if entry.kind == "note")
        whole, part = first.usage, again.usage
        assert whole is not None and part is not None, "the server reports tokens"
        asked = again.replies[2].usage
        assert part == asked and (whole.input_tokens or 0) > (part.input_tokens or 0), "paid is the last turn"


async def test_anthropic_goes_on_with_the_recorded_messages(project) -> None:
    with AnthropicServer() as server:
        config = OPENAI.replace("openai", "anthropic") % server.url
        root = project(suite=THREE, config=config)
        folder, ref, first = await run(root)
        assert first.outcome == "passed", first.message
        _, _, again = await run(root, continue_from=Recorded(folder.name, ref, 2))
        assert again.outcome == "passed", again.message
        assert len(server.requests) == 5
        texts = [_text(message) for message in server.requests[3].body["messages"]]
        assert texts == [_text(message) for message in server.requests[1].body["messages"]]


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
async def test_earlier_replies_have_their_metadata_again(project, kind: str) -> None:
    """A model that sees none in what it said before says none from there on."""
    said = 'One two.\n```json\n{"escalated":true}\n```'
    with (OpenAIServer if kind == "openai" else AnthropicServer)(Planned(text=said)) as server:
        address = server.base if kind == "openai" else server.url
        config = f"agents:\n  helper: {{type: {kind}, base_url: '{address}', model: m, metadata: json}}\n"
        root = project(suite=THREE.replace('should_contain: ["three"]', "escalated: true"), config=config)
        folder, ref, first = await run(root)
        assert first.outcome == "passed", first.message
        await run(root, continue_from=Recorded(folder.name, ref, 3))
        texts = [_text(message) for message in server.requests[3].body["messages"]]
        assert texts == [_text(message) for message in server.requests[2].body["messages"]]


def _text(message: dict) -> tuple[str, str]:
    content = message["content"]
    return message["role"], content if isinstance(content, str) else content[0]["text"]


async def test_neuro_san_goes_on_from_the_recorded_chat_context(project) -> None:
    suite = (
        "{agent: net, connections: http, interactions: [\n"
        "{text: one, response: {text: {keywords: one}}},\n{text: two, response: {text: {keywords: two}}}]}\n"
    )
    with NeuroSanServer() as server:
        config = f"agents:\n  net: {{type: neuro-san, url: '{server.url}'}}\n"
        root = project(config=config, **{"net.hocon": suite})
        (root / "suite.yaml").unlink()
        folder, ref, first = await run(root)
        assert len(server.requests) == 2 and first.error is None, first.message
        _, _, again = await run(root, continue_from=Recorded(folder.name, ref, 2))
        assert again.error is None, again.message
        assert server.requests[2].body.get("chat_context") == server.requests[1].body.get("chat_context")
        assert server.requests[2].body["chat_context"]


async def test_neuro_san_goes_on_with_the_sly_data_that_was_sent_and_came_back(project) -> None:
    """Without what turn 1 sent its tools answered otherwise, and a test that fails passed."""
    said = "response: {text: {keywords: said}}}"
    suite = (
        f"{{agent: net, connections: http, interactions: [\n{{text: a, sly_data: {{x: 3, y: 4}}, {said},\n"
        f"{{text: b, {said},\n{{text: c, sly_data: {{x: 5}}, {said},\n{{text: d, {said}]}}\n"
    )
    with NeuroSanServer(Planned(text="You said a", body={"sly_data": {"equals": 7}})) as server:
        config = f"agents:\n  net: {{type: neuro-san, url: '{server.url}'}}\n"
        root = project(config=config, **{"net.hocon": suite})
        (root / "suite.yaml").unlink()
        folder, ref, first = await run(root)
        assert first.error is None, first.message
        whole = [request.body.get("sly_data") for request in server.requests]
        assert whole[:2] == [{"x": 3, "y": 4}, {"x": 3, "y": 4, "equals": 7}]
        for turn in (2, 3, 4):
            server.requests.clear()
            _, _, again = await run(root, continue_from=Recorded(folder.name, ref, turn))
            assert again.error is None, again.message
            assert [request.body.get("sly_data") for request in server.requests] == whole[turn - 1 :]


async def test_agents_without_a_way_say_so_and_no_run_is_begun(project) -> None:
    root = project(suite=THREE, script=ECHO)
    folder, ref, _ = await run(root)
    with pytest.raises(SelectionError) as refused:
        prepare(RunRequest(paths=[str(root)], continue_from=Recorded(folder.name, ref, 2)))
    assert str(refused.value) == (
        "cannot go on from turn 2: an agent of type scripted cannot be given an earlier conversation; run the "
        "whole case"
    )
    assert len(list(folder.parent.iterdir())) == 1
    # From the first turn on is the whole case.
    assert (await run(root, continue_from=Recorded(folder.name, ref, 1)))[2].outcome == "passed"


async def test_an_edited_earlier_turn_is_not_mixed_with_a_recorded_answer(project) -> None:
    with OpenAIServer() as server:
        root = project(suite=THREE, config=OPENAI % server.base)
        folder, ref, _ = await run(root)
        (root / "suite.yaml").write_text(THREE.replace('"one"', '"uno"'))
        with pytest.raises(SelectionError, match="turn 1 reads otherwise"):
            prepare(RunRequest(paths=[str(root)], continue_from=Recorded(folder.name, ref, 3)))
        assert len(server.requests) == 3
        # The turn itself may be another.
        (root / "suite.yaml").write_text(THREE.replace('"three"]', '"three!"]'))
        _, _, again = await run(root, continue_from=Recorded(folder.name, ref, 3))
        assert again.outcome == "passed" and len(server.requests) == 4


async def test_judging_again_sends_nothing(project) -> None:
    with OpenAIServer() as server:
        root = project(suite=THREE.replace('["three"]', '["four"]'), config=OPENAI % server.base)
        folder, ref, first = await run(root)
        assert first.outcome == "failed"
        (root / "suite.yaml").write_text(THREE)
        _, _, again = await run(root, continue_from=Recorded(folder.name, ref))
        assert (again.outcome, again.cost) == ("passed", None)
        assert again.replies == first.replies and len(server.requests) == 3
        # Said in the transcript, once; the times are the answer's own, and it has not ended in the future.
        folder, ref, again = await run(root, continue_from=Recorded(folder.name, ref))
        folder, ref, again = await run(root, continue_from=Recorded(folder.name, ref))
        assert [entry.text for entry in again.transcript if entry.kind == "note"] == [JUDGED_AGAIN]
        assert again.duration_ms == first.duration_ms and len(server.requests) == 3
        newest = Index(root).history(again.case_id)[0]
        assert newest.run_id == folder.name and newest.finished_at <= time.time()


async def test_what_is_not_there_is_refused(project) -> None:
    root = project(suite=THREE, script=ECHO)
    folder, ref, _ = await run(root)
    with pytest.raises(SelectionError):
        prepare(RunRequest(paths=[str(root)], continue_from=Recorded(folder.name, ref + 7)))
    (root / "suite.yaml").write_text(THREE.replace("three,", "other,"))
    with pytest.raises(SelectionError, match="not among the cases"):
        prepare(RunRequest(paths=[str(root)], continue_from=Recorded(folder.name, ref)))


# An edited agent takes effect on the next run of the same engine

ONE = "agent: helper\ntest_cases:\n  - {name: one, input: hi, expected: {should_contain: [new]}}\n"


async def _replies(root: Path, edit) -> tuple[str, str]:
    """What one engine's agent says before and after an edit of the same length and time."""
    client = EngineClient(root)
    said: list[str] = []
    try:
        for step in range(2):
            started = await client.run(RunRequest(paths=[str(root)], trust=True))
            reader = RunReader(started.folder)
            await until(lambda reader=reader: reader.attempts()[0].state == "done")
            attempt = reader.attempt(reader.attempts()[0].id)
            reader.close()
            assert attempt is not None and attempt.error is None, attempt
            said.append(attempt.response_text)
            if not step:
                edit()
    finally:
        await client.shutdown()
        await client.close()
    return said[0], said[1]


def _edited(path: Path, old: str, new: str):
    def edit() -> None:
        path.write_text(path.read_text().replace(old, new))

    return edit


@pytest.mark.real
async def test_an_edited_python_agent_counts(project) -> None:
    config = "agents:\n  helper: {type: python, function: 'agent.py:answer'}\n"
    root = project(
        suite=ONE,
        config=config,
        **{"agent.py": "import helper_words\ndef answer(prompt):\n    return helper_words.SAID\n",
           "helper_words.py": "SAID = 'old'\n"},
    )  # fmt: skip
    assert await _replies(root, _edited(root / "helper_words.py", "'old'", "'new'")) == ("old", "new")
    assert await _replies(root, _edited(root / "agent.py", "helper_words.SAID", "'abc'")) == ("new", "abc")


async def test_an_edited_script_counts(project) -> None:
    root = project(suite=ONE, script='default: {say: "old"}\n')
    assert await _replies(root, _edited(root / "agent.script.yaml", "old", "new")) == ("old", "new")


@pytest.mark.real
async def test_an_edited_system_prompt_and_entry_count(project) -> None:
    with OpenAIServer() as server:
        config = (
            f"agents:\n  helper: {{type: openai, base_url: '{server.base}', model: m, "
            "system: 'file://system.txt'}\n"
        )
        root = project(suite=ONE, config=config, **{"system.txt": "Be old."})
        await _replies(root, _edited(root / "system.txt", "old", "new"))
        asked = [request.body["messages"][0]["content"] for request in server.requests]
        assert asked == ["Be old.", "Be new."]
        await _replies(root, _edited(root / "tui_eval.yaml", "model: m", "model: n"))
        assert [request.body["model"] for request in server.requests[2:]] == ["m", "n"]


async def test_an_edit_within_one_tick_of_the_clock_counts(project) -> None:
    """Same size, same time: only the contents differ."""
    root = project(suite=ONE, config="agents:\n  helper: {type: python, function: 'agent.py:answer'}\n",
                   **{"agent.py": "def answer(prompt):\n    return 'old'\n"})  # fmt: skip
    file = root / "agent.py"

    def edit() -> None:
        before = file.stat()
        file.write_text(file.read_text().replace("old", "new"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))

    assert await _replies(root, edit) == ("old", "new")
