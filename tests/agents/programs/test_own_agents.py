"""Agents that people bring: Python functions, commands, JSON endpoints; and recorded runs."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sys
import venv
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
import uvloop
from aiohttp import web

from tests.servers import JsonServer, OpenAIServer, Planned
from tests.servers.base import Seen
from tests.support.agents import agent, context, kinds, of, services, talk
from tests.support.waiting import until
from tui_eval.agents import AgentError, Request, Services, create, for_provider
from tui_eval.agents.http import http_call
from tui_eval.agents.programs import command
from tui_eval.config.project import AgentSpec, Config, ConfigError
from tui_eval.events import Event, Exchanged, Finished, Note, TextDelta, ToolCall, ToolResult, UsageReport
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Attempt, Entry, Reply
from tui_eval.scripting.python import python_worker_watcher
from tui_eval.scripting.python.python_host import printed

CODE = """
import asyncio
from tui_eval import events
from tui_eval import model
from tui_eval.model import Usage

def answer(message):
    print("got", message)
    if isinstance(message, list):
        return "last: " + message[-1], {"escalated": True, "tool_call_count": 2, "input_tokens": 5, "output_tokens": 3}
    return "one: " + message

async def turns(message, session):
    await asyncio.sleep(0)
    return f"{session['turn']}:{message}:{len(session['messages'])}"

async def stream(message, session):
    yield "Hel"
    yield events.ToolCall("1", "look", {"q": message})
    yield events.ToolResult("1", "look", {"n": 1})
    yield events.UsageReport(Usage(input_tokens=7, output_tokens=2))
    yield "lo"

async def silent(message):
    for word in []:
        yield word

async def wordless(message):
    yield ""

def retried(message, retries=3):
    return f"{message[-1]} {retries}"

def warm(message, *, temperature=0.5):
    return f"{message[-1]} {temperature}"

def by_name(message, *, session):
    return f"{session['turn']}:{message}"

def maybe(message, session=None):
    return f"{session['turn']}:{message}"

async def calls(message):
    yield events.ToolCall("1", "look", {})

def traced(function):
    return lambda message: function(message)

@traced
def decorated(message):
    yield "Hel"
    yield events.ToolCall("1", "look", {})
    yield "lo"

async def handed_on(message):
    return decorated(message)

def ended_twice(message):
    yield events.Finished(model.Reply(turn=1, text="Hello", metadata={"escalated": True}))
    yield events.Finished(model.Reply(turn=1, text="Bye"))

def spoke_after_its_end(message):
    yield events.Finished(model.Reply(turn=1, text="Bye"))
    yield "Hello"

def text_after_facts(message):
    yield events.Finished(model.Reply(turn=1, metadata={"escalated": True}))
    yield "Hello"

def told(message):
    yield "Hel"
    yield "lo"
    return {"escalated": True}

def whole(message):
    yield events.Message("Hello")

def in_parts_and_whole(message):
    yield "Hel"
    yield "lo "
    yield events.Message("Hello")

def of_two(message):
    yield "Let me "
    yield "look."
    yield events.Message("Hello")
    yield events.Message("from a friend", "sub")
    yield "Bye"

def bad(message):
    raise ValueError("no such\\ncustomer")

def nothing(message):
    pass

def call_api(prompt, options, context):
    if prompt == "fail":
        return {"error": "quota"}
    return {"output": {"echo": prompt, "who": context["vars"]["who"], "t": options["config"]["t"]},
            "tokenUsage": {"prompt": 3, "completion": 4, "total": 7}, "cost": 0.5, "metadata": {"a": 1}}

def tool(city, unit="C"):
    return {"city": city, "t": 20}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(CODE)
    return tmp_path


WHOLE = b'{"reply": "' + b"".join(b"%x" % (n * n) for n in range(900)) + b'"}'
PACKED = {"gzip": gzip.compress(WHOLE), "deflate": zlib.compress(WHOLE)}


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("cut", [1, 4, 600])
async def test_a_packed_answer_without_its_end_is_an_error(kind: str, cut: int, tmp_path: Path) -> None:
    """Its length is as announced, so that only what is packed says that the rest is missing."""
    for type_of_body in ("application/json", "text/plain"):
        headers = {"Content-Type": type_of_body, "Content-Encoding": kind}
        whole = Planned(raw=PACKED[kind], headers=headers)
        broken = Planned(raw=PACKED[kind][:-cut], headers=headers)
        with JsonServer(whole, broken) as server:
            it = agent("http", tmp_path, url=server.url)
            _, replies = await talk(it, "hi")
            assert replies[0].text in (WHOLE.decode(), json.loads(WHOLE)["reply"])
            with pytest.raises(AgentError, match="its end is missing"):
                await talk(it, "hi")


async def test_zeros_behind_a_packed_answer_are_no_part_of_it(tmp_path: Path) -> None:
    """What fills a block, as gzip itself has it."""
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    half = len(WHOLE) // 2
    two = gzip.compress(WHOLE[:half]) + b"\0\0" + gzip.compress(WHOLE[half:]) + b"\0" * 20
    with JsonServer(Planned(raw=two, headers=headers)) as server:
        _, replies = await talk(agent("http", tmp_path, url=server.url), "hi")
    assert replies[0].text == json.loads(WHOLE)["reply"]


async def test_python_contract_of_the_guide(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:answer")
    kept: list[str] = []
    token = printed.set(kept.append)
    _, replies = await talk(it, "hi")
    printed.reset(token)
    assert it.takes_whole_conversation
    assert replies[0].text == "one: hi" and kept == ["got hi\n"]
    _, replies = await talk(it, Request(2, "b", messages=["a", "b"]))
    assert replies[0].text == "last: b" and replies[0].metadata["escalated"] is True  # type: ignore[index]
    assert replies[0].usage is not None and replies[0].usage.input_tokens == 5
    await it.close()


@pytest.mark.parametrize(
    ("function", "notes"), [("bot.py:answer", 1), ("bot.py:turns", 0), ("bot.py:stream", 0)]
)
async def test_a_function_that_is_told_nothing_of_earlier_messages_is_noted(
    folder: Path, function: str, notes: int
) -> None:
    """As where nao's rows are asked for: it cannot know of what, and would be blamed."""
    it = agent("python", folder, function=function)
    events, _ = await talk(it, "hi", "give the rows", "and again")
    assert sum("this message alone" in one.text for one in events if isinstance(one, Note)) == notes
    _, replies = await talk(it, Request(2, "b", messages=["a", "b"]))
    assert len(replies) == 1
    await it.close()


async def test_python_turn_by_turn_and_streaming(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:turns")
    _, replies = await talk(it, "a", "b")
    assert not it.takes_whole_conversation
    assert [reply.text for reply in replies] == ["1:a:0", "2:b:2"]
    await it.close()
    it = agent("python", folder, function="bot.py:stream")
    events, replies = await talk(it, "x")
    assert kinds(events) == ["TextDelta", "ToolCall", "ToolResult", "UsageReport", "TextDelta", "Finished"]
    assert replies[0].text == "Hello" and replies[0].usage == of(events, UsageReport)[0].usage
    await it.close()


@pytest.mark.real
async def test_python_errors_edits_and_trust(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:bad")
    with pytest.raises(AgentError, match=r"bot\.py:bad: ValueError: no such") as caught:
        await talk(it, "x")
    assert "\n" not in str(caught.value)
    (folder / "bot.py").write_text("def bad(message):\n    return 'mended, and longer'\n")
    assert (await talk(it, "x"))[1][0].text == "mended, and longer"
    await it.close()
    (folder / "bot.py").write_text(CODE)
    it = agent("python", folder, function="bot.py:nothing")
    with pytest.raises(AgentError, match="returned nothing"):
        await talk(it, "x")
    await it.close()
    it = agent("python", folder, function="bot.py:missing")
    with pytest.raises(AgentError, match="missing"):
        await it.open(context())
    await it.close()
    spec = AgentSpec("it", "python", {"function": "bot.py:answer"}, base=str(folder))
    with pytest.raises(NeedsTrust, match=r"run bot\.py:answer"):
        create(spec, services(folder, trusted=False))
    spec.typed = True
    await create(spec, services(folder, trusted=False)).close()
    with pytest.raises(ConfigError, match="there is no file"):
        agent("python", folder, function="none.py:f")


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A folder with a virtual environment that has a package which this Python has not, and a file that imports it."""
    venv.create(tmp_path / "its", symlinks=True)
    (packages,) = (tmp_path / "its/lib").glob("python*/site-packages")
    (packages / "only_there.py").write_text("WORD = 'there'\n", "utf-8")
    text = "import only_there\n\ndef answer(message):\n    return only_there.WORD\n"
    (tmp_path / "bot.py").write_text(
        text + "\ndef call_api(prompt, options, context):\n    return {'output': answer(prompt)}\n"
    )
    return tmp_path


async def test_a_function_runs_with_the_python_of_its_own_environment(environment: Path) -> None:
    it = agent("python", environment, function="bot.py:answer", python="its/bin/python")
    assert (await talk(it, "x"))[1][0].text == "there"
    await it.close()
    with pytest.raises(ConfigError, match=r"no program its/bin/pyton to run bot\.py:answer"):
        agent("python", environment, function="bot.py:answer", python="its/bin/pyton")
    it = agent("python", environment, function="bot.py:answer", python="true")
    with pytest.raises(AgentError, match=r"the Python \(/.*/true\) process ended"):
        await it.open(context())
    await it.close()


async def test_a_promptfoo_provider_runs_with_the_python_that_its_suite_or_the_environment_names(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"id": "file://bot.py", "config": {"pythonExecutable": "./its/bin/python"}}
    spec = for_provider(named, Config(environment), environment)
    it = create(spec, services(environment))
    assert (await talk(it, "x"))[1][0].text == "there"
    await it.close()
    agreed = Trust(agreed=frozenset({"run bot.py:call_api (the agent file://bot.py)"}))
    with pytest.raises(NeedsTrust, match=r"run \./its/bin/python \(Python for the agent file://bot\.py\)"):
        create(spec, Services(root=environment, trust=agreed))
    monkeypatch.setenv("PROMPTFOO_PYTHON", str(environment / "its/bin/python"))
    it = create(for_provider("file://bot.py", Config(environment), environment), services(environment))
    assert (await talk(it, "x"))[1][0].text == "there"
    await it.close()


COUNTING = """
N = 0

def answer(message, session):
    global N
    N += 1
    return f"{N}"
"""


@pytest.mark.parametrize("fresh", [False, True])
async def test_what_a_module_keeps_is_seen_by_later_attempts_unless_each_has_a_fresh_process(
    fresh: bool, tmp_path: Path
) -> None:
    (tmp_path / "counting.py").write_text(COUNTING)
    it = agent("python", tmp_path, function="counting.py:answer", fresh=fresh)
    said = [[reply.text for reply in (await talk(it, "a", "b"))[1]] for _ in range(3)]
    assert said == ([["1", "2"]] * 3 if fresh else [["1", "2"], ["3", "4"], ["5", "6"]])
    await it.close()


async def test_a_conversation_begins_in_a_process_that_has_loaded_the_file(tmp_path: Path) -> None:
    (tmp_path / "loads.py").write_text(
        "import os\nopen(f'loaded.{os.getpid()}', 'x')\n\n\n"
        "def answer(message, session):\n    return str(os.getpid())\n"
    )
    it = agent("python", tmp_path, function="loads.py:answer")
    sessions = [await it.open(context(number)) for number in range(1, 4)]
    loaded = {file.suffix[1:] for file in tmp_path.glob("loaded.*")}
    assert len(loaded) == 3  # one each, before anything was asked
    said = set()
    for session in sessions:
        async for event in session.send(Request(1, "hi")):
            if isinstance(event, Finished):
                said.add(event.reply.text)
        await session.close()
    assert said == loaded
    await it.close()


async def test_a_process_that_ends_before_it_was_asked_anything_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text("def answer(message, session):\n    return 'there'\n")
    it = agent("python", tmp_path, function="bot.py:answer")
    session = await it.open(context())
    process = session.lease.process  # type: ignore[attr-defined]
    process.kill()
    await asyncio.to_thread(process.wait)
    events = [event async for event in session.send(Request(1, "hi"))]
    assert isinstance(events[-1], Finished) and events[-1].reply.text == "there"
    await session.close()
    await it.close()


async def test_python_as_promptfoo_provider(folder: Path) -> None:
    it = agent("python", folder, function="bot.py:call_api", promptfoo=True, config={"t": 1})
    _, replies = await talk(it, Request(1, "hi", vars={"who": "ada"}))
    reply = replies[0]
    assert reply.output == {"echo": "hi", "who": "ada", "t": 1} and reply.cost == 0.5
    assert reply.usage is not None and reply.usage.output_tokens == 4 and reply.metadata == {"a": 1}
    with pytest.raises(AgentError, match=r"^quota$"):
        await talk(it, "fail")
    await it.close()


async def test_python_tools(folder: Path) -> None:
    with OpenAIServer(Planned(tool_calls=[("tool", {"city": "Ulm"})]), Planned(text="20")) as server:
        tools = [{"type": "python", "function": "bot.py:tool", "description": "d"}]
        it = agent("openai", folder, base_url=server.base, model="m", tools=tools)
        events, _ = await talk(it, "x")
        assert of(events, ToolResult)[0].result == {"city": "Ulm", "t": 20}
        schema = server.requests[0].body["tools"][0]["function"]["parameters"]
        assert list(schema["properties"]) == ["city", "unit"]
        await it.close()


def script(folder: Path, code: str) -> list[str]:
    (folder / "tool.py").write_text(code)
    return [sys.executable, str(folder / "tool.py")]


@pytest.mark.parametrize(
    ("function", "said"),
    [("retried", "two 3"), ("warm", "two 0.5"), ("by_name", "2:two"), ("maybe", "2:two")],
)
async def test_a_parameter_with_a_default_is_the_functions_own_and_not_the_session(
    folder: Path, function: str, said: str
) -> None:
    it = agent("python", folder, function=f"bot.py:{function}")
    if said.startswith("2:"):
        _, replies = await talk(it, "one", "two")
        assert replies[-1].text == said and not it.takes_whole_conversation
        return
    session = await it.open(context())
    assert it.takes_whole_conversation
    events = [event async for event in session.send(Request(turn=1, text="two", messages=["one", "two"]))]
    await session.close()
    await it.close()
    assert isinstance(events[-1], Finished) and events[-1].reply.text == said


async def test_a_generator_that_gives_nothing_has_not_answered(folder: Path) -> None:
    """What must not be said stood in none of it."""
    for function in ("silent", "wordless"):
        with pytest.raises(AgentError, match=rf"bot\.py:{function} gave nothing"):
            await talk(agent("python", folder, function=f"bot.py:{function}"), "x")
    assert (await talk(agent("python", folder, function="bot.py:calls"), "x"))[1][0].text == ""


async def test_a_function_that_returns_a_generator_answers_piece_by_piece(folder: Path) -> None:
    """Any decorator makes one of a generator: a list of its pieces was judged, in which no word was found that is
    split over two, and its calls counted for nothing."""
    found, replies = await talk(agent("python", folder, function="bot.py:decorated"), "x")
    assert replies[0].text == "Hello" and of(found, ToolCall)[0].name == "look"


async def test_an_async_function_that_returns_a_generator_streams_too(folder: Path) -> None:
    found, replies = await talk(agent("python", folder, function="bot.py:handed_on"), "x")
    assert replies[0].text == "Hello" and of(found, ToolCall)[0].name == "look"


@pytest.mark.parametrize(
    ("function", "said"),
    [("ended_twice", "gave Finished twice"), ("spoke_after_its_end", "gave text after Finished")],
)
async def test_what_a_generator_says_before_or_after_its_end_is_not_dropped_in_silence(
    folder: Path, function: str, said: str
) -> None:
    """`should_not_contain: [hello]` and `escalated: false` passed on the one that was judged."""
    with pytest.raises(AgentError, match=rf"bot\.py:{function} {said}"):
        await talk(agent("python", folder, function=f"bot.py:{function}"), "x")
    replies = (await talk(agent("python", folder, function="bot.py:text_after_facts"), "x"))[1]
    assert replies[0].text == "Hello" and replies[0].metadata == {"escalated": True}


async def test_what_a_generator_returns_is_not_dropped_in_silence(folder: Path) -> None:
    """`escalated: false` passed."""
    with pytest.raises(AgentError, match=r"bot\.py:told: is a generator, and returns a dict") as failed:
        await talk(agent("python", folder, function="bot.py:told"), "x")
    assert failed.value.answer == "Hello"


@pytest.mark.parametrize(
    ("function", "text"),
    [("whole", "Hello"), ("in_parts_and_whole", "Hello"), ("of_two", "Let me look.\n\nHello\n\nBye")],
)
async def test_messages_of_a_generators_own_are_its_answer(folder: Path, function: str, text: str) -> None:
    """They stood in the transcript, and what must not be said was looked for in nothing."""
    _, replies = await talk(agent("python", folder, function=f"bot.py:{function}"), "x")
    assert replies[0].text == text


async def test_command(tmp_path: Path) -> None:
    code = (
        "import json,sys,os\nbody=json.load(sys.stdin)\nprint('careful', file=sys.stderr)\n"
        "print(json.dumps({'reply': body['message']+os.environ['X']+str(len(body['messages'])),"
        " 'metadata': {'a': 1}, 'tool_calls': ['search'], 'usage': {'input_tokens': 3}}))"
    )
    it = agent("command", tmp_path, command=script(tmp_path, code), env={"X": "!"})
    events, replies = await talk(it, "hi", "more")
    assert [reply.text for reply in replies] == ["hi!1", "more!3"]
    assert replies[0].metadata == {"a": 1} and of(events, ToolCall)[0].name == "search"
    assert replies[0].usage is not None and replies[0].usage.input_tokens == 3
    assert of(events, Note)[0].text == "printed: careful"


@pytest.mark.parametrize("printed", ["plain text\\n", "\\ufeffplain text", "plain text\\r\\n"])
async def test_the_text_of_a_command_is_without_its_byte_order_mark_and_the_end_of_its_line(
    tmp_path: Path, printed: str
) -> None:
    code = f"import sys\nsys.stdout.buffer.write('{printed}'.encode())"
    _, replies = await talk(agent("command", tmp_path, command=script(tmp_path, code)), "x")
    assert replies[0].text == "plain text"


async def test_what_a_command_logs_beside_its_json_is_no_answer(tmp_path: Path) -> None:
    """As words its facts would count as not reported: `escalated: false` passed."""
    whole = '{"reply": "hi", "escalated": true}'
    over_lines = json.dumps(json.loads(whole), indent=1)
    for out in (
        f"loading\n{whole}\n",
        f"{whole}\nloading",
        f"loading\n{over_lines}",
        f"{over_lines}\nloading",
        f"loading\n{whole}\ndone",
        f"loading\n```\nx\n```\n{whole}",
        f'loading\n{{"level": "info"}}\n{{it\n{over_lines}',
    ):
        it = agent("command", tmp_path, command=script(tmp_path, f"print({out!r})"))
        with pytest.raises(AgentError, match=r"printed words beside its JSON: loading.* on stderr"):
            await talk(it, "x")
    for words in (
        'Take this:\n{"reply": 1}',
        'Then\n{"escalated": true}',
        'See\n{"reply',
        '{"a": 1} is it',
        "{'a': 1}",
        "{'reply': 'hi', 'a': 1}",
        "{'reply': 'hi', 'escalated': yes}",
        "\x1b[1mbold\x1b[0m words",
        f"Send it:\n```json\n{over_lines}\n```",
        f"Send it:\n~~~json\n{whole}\n~~~",
        f'Send it:\n```json title="x"\n\n{whole}\n{whole}\n```\nand wait',
        f"Send it:\n{whole} and wait",
        "[]",
        f"Send it:\n  {whole}",
    ):
        it = agent("command", tmp_path, command=script(tmp_path, f"print({words!r})"))
        assert (await talk(it, "x"))[1][0].text == words


@pytest.mark.parametrize(
    "out",
    [
        'data: {"reply": "hi", "escalated": true}',
        'data: {"delta": "no pass"}\n\ndata: {"delta": "word"}\n\ndata: [DONE]',
        'event: delta\ndata: {"delta": "no pass"}\n\nevent: delta\ndata: {"delta": "wo',
    ],
)
async def test_a_stream_of_events_that_a_command_prints_is_no_words(tmp_path: Path, out: str) -> None:
    """Judged event by event, a word split over two was missed, and facts counted as not reported."""
    it = agent("command", tmp_path, command=script(tmp_path, f"print({out!r})"))
    with pytest.raises(AgentError, match="answered with a stream of events, not its answer as a whole"):
        await talk(it, "x")


@pytest.mark.parametrize(
    "rest", ["t", "tru", "fals", "f", "nul", "-", "1.", "1e", "2E-", '"yes', "true,", "[1", "Na", "-Infinit"]
)
async def test_json_that_breaks_off_anywhere_is_no_words(tmp_path: Path, rest: str) -> None:
    """`escalated: false` passed where it broke off in `true`."""
    out = f'{{"reply": "hi", "escalated": {rest}'
    it = agent("command", tmp_path, command=script(tmp_path, f"print({out!r})"))
    with pytest.raises(AgentError, match="answered with JSON that breaks off"):
        await talk(it, "x")


async def test_the_json_of_a_command_may_have_colours(tmp_path: Path) -> None:
    """CI sets FORCE_COLOR: as words its facts counted as not reported, and `escalated: false` passed."""
    out = '\x1b[1;39m{\x1b[0m\x1b[34m"reply"\x1b[0m: \x1b[32m"hi"\x1b[0m, "escalated": true}\x1b[0m\n'
    it = agent("command", tmp_path, command=script(tmp_path, f"print({out!r})"))
    reply = (await talk(it, "x"))[1][0]
    assert reply.text == "hi" and reply.metadata == {"escalated": True}


async def test_an_answer_that_is_written_otherwise_than_as_json_is_no_words(tmp_path: Path) -> None:
    out = "print({'reply': 'hi', 'escalated': True})"
    with pytest.raises(AgentError, match="answered with a dict as Python prints it, not JSON"):
        await talk(agent("command", tmp_path, command=script(tmp_path, out)), "x")
    fenced = '```json\\n{"reply": "hi", "escalated": true}\\n```'
    with pytest.raises(AgentError, match="answered with JSON in a fence"):
        await talk(agent("command", tmp_path, command=script(tmp_path, f"print('{fenced}')")), "x")
    quoted = '```json\\n{"reply": "hi"}\\n```'  # of which no fact is lost
    it = agent("command", tmp_path, command=script(tmp_path, f"print('{quoted}')"))
    assert (await talk(it, "x"))[1][0].text.startswith("```json")
    page = Planned(raw=b"{'reply': 'hi', 'escalated': True}", headers={"Content-Type": "text/html"})
    with JsonServer(page) as server, pytest.raises(AgentError, match="is a dict as Python prints it"):
        await talk(agent("http", url=server.url), "x")


async def test_facts_within_another_wrapping_do_not_count_as_not_reported(tmp_path: Path) -> None:
    """`escalated: false` passed where n8n answers with a list, or a gateway encodes JSON twice."""
    whole = {"reply": "hi", "metadata": {"escalated": True}}
    for given, why in (
        ([whole], "a list with its object in it"),
        (json.dumps(whole), "encoded twice"),
        ({"output": {"content": "hi", "usage": {"input_tokens": 9}}}, "an object where its text should be"),
    ):
        with JsonServer(Planned(body=given)) as server, pytest.raises(AgentError, match=why):
            await talk(agent("http", url=server.url), "x")
        it = agent("command", tmp_path, command=script(tmp_path, f"print({json.dumps(given)!r})"))
        with pytest.raises(AgentError, match=why):
            await talk(it, "x")
    for given, text in (
        (
            [{"text": "a"}, {"text": "b", "metadata": {"page": 1}}],
            '[{"text":"a"},{"text":"b","metadata":{"page":1}}]',
        ),
        ({"reply": {"a": 1, "usage": {}}, "usage": {"input_tokens": 1}}, '{"a":1,"usage":{}}'),
        ([{"drug": "a", "usage": "daily"}], '[{"drug":"a","usage":"daily"}]'),  # a column of this name
        ({"output": {"drug": "a", "usage": "daily"}}, '{"drug":"a","usage":"daily"}'),
        (json.dumps({"reply": "hi", "escalated": False}), '{"reply": "hi", "escalated": false}'),
    ):
        with JsonServer(Planned(body=given)) as server:
            assert (await talk(agent("http", url=server.url), "x"))[1][0].text == text
    with JsonServer(Planned(body=[whole])) as server:
        it = agent("http", url=server.url, reply="json[0].reply", metadata="json[0].metadata")
        reply = (await talk(it, "x"))[1][0]
        assert reply.text == "hi" and reply.metadata == {"escalated": True}


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("application/json; charset=iso-8859-1", '{"reply": "café"}'.encode(), "café"),
        ("application/json; charset=us-ascii", '{"reply": "café"}'.encode(), "café"),
        ("application/json; charset=iso-8859-1", '{"reply": "café"}'.encode("latin-1"), "café"),
        ("text/event-stream; charset=ISO-8859-1", 'data: {"reply": "café"}\n\n'.encode(), "café"),
        ("text/plain; charset=iso-8859-1", "café".encode("latin-1"), "café"),
        ("text/plain; charset=punycode", b"plain-", "plain-"),
        ("application/json; charset=unicode_escape", b'{"reply": "a\\\\u0041"}', "a\\u0041"),
    ],
)
async def test_the_encoding_that_is_declared_is_taken_where_it_can_be_meant(
    kind: str, raw: bytes, text: str
) -> None:
    """`café` was `cafÃ©`, so that `should_not_contain: café` passed; some of Python's own encodings take minutes."""
    with JsonServer(Planned(raw=raw, headers={"Content-Type": kind})) as server:
        assert (await talk(agent("http", url=server.url), "x"))[1][0].text == text


async def test_tool_calls_are_read_as_the_ai_sdk_writes_them() -> None:
    """Its `promptTokens` and `toolName` were; without the list of them `max_tool_calls: 0` passed."""
    body = {"text": "hi", "toolCalls": [{"toolCallId": "1", "toolName": "look", "args": {"q": 1}}]}
    with JsonServer(Planned(body=body)) as server:
        events, _ = await talk(agent("http", url=server.url), "x")
    assert [call.name for call in of(events, ToolCall)] == ["look"]
    raw = "".join(f"data: {json.dumps(one)}\n\n" for one in ({"delta": "h"}, {**body, "delta": "i"})).encode()
    with JsonServer(Planned(raw=raw, headers={"Content-Type": "text/event-stream"})) as server:
        events, _ = await talk(agent("http", url=server.url, reply="json.delta"), "x")
    assert [call.name for call in of(events, ToolCall)] == ["look"]


@pytest.mark.parametrize("how", ["cut", "hang"])
async def test_a_stream_of_events_that_said_its_end_is_whole(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Its time limit was waited for, or it had broken off."""
    monkeypatch.setattr(http_call, "LINGER", 0.01)
    raw = b'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    raw += b'data: {"choices":[],"usage":{"completion_tokens":7}}\n\ndata: [DONE]\n\n'
    with OpenAIServer() as server:
        headers = {"Content-Type": "text/event-stream"}
        server.plan.append(Planned(raw=raw, hang=how == "hang", cut=how == "cut", headers=headers))
        it = agent("http", url=f"{server.base}/chat/completions", retries=0)
        assert (await asyncio.wait_for(talk(it, "x"), 20))[1][0].text == "Hi"
        await it.close()


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "text/html"])
async def test_what_a_server_logs_beside_its_json_is_no_answer(kind: str) -> None:
    whole = b'Warning: no cache in bot.php on line 3\n{"reply": "hi", "escalated": true}'
    words = b'Then\n{"escalated": true}'
    planned = [Planned(raw=raw, headers={"Content-Type": kind}) for raw in (whole, words)]
    with JsonServer(*planned) as server:
        it = agent("http", url=server.url)
        with pytest.raises(AgentError, match=r"has words beside its JSON: Warning: no cache"):
            await talk(it, "x")
        assert (await talk(it, "x"))[1][0].text == words.decode()
        await it.close()


FLAT = {"reply": "hi", "escalated": True, "tools_used": ["wipe"], "tool_call_count": 9, "output_tokens": 5000}


@pytest.mark.parametrize("kind", ["python", "command", "http"])
async def test_facts_that_stand_beside_the_reply_are_the_agents_metadata(
    kind: str, tmp_path: Path, server: JsonServer
) -> None:
    """Left out they would count as not reported: `escalated: false` and any limit would pass."""
    (tmp_path / "flat.py").write_text(f"def answer(message):\n    return {FLAT!r}\n")
    server.plan.append(Planned(body=FLAT))
    options: dict[str, dict[str, Any]] = {
        "python": {"function": "flat.py:answer"},
        "command": {"command": script(tmp_path, f"import json\nprint(json.dumps({FLAT!r}))")},
        "http": {"url": server.url},
    }
    it = agent(kind, tmp_path, **options[kind])
    _, replies = await talk(it, "hi")
    assert replies[0].text == "hi" and replies[0].usage is not None and replies[0].usage.output_tokens == 5000
    assert replies[0].metadata == {name: value for name, value in FLAT.items() if name != "reply"}
    await it.close()


async def test_a_metadata_of_its_own_goes_before_what_stands_beside_it(server: JsonServer) -> None:
    server.plan.append(Planned(body={**FLAT, "metadata": {"escalated": False}, "other": 1}))
    mapped = {"reply": "json.reply"}
    server.plan.append(Planned(body=FLAT))
    _, replies = await talk(agent("http", url=server.url), "hi")
    assert replies[0].metadata is not None and replies[0].metadata["escalated"] is False
    assert replies[0].metadata["tool_call_count"] == 9 and "other" not in replies[0].metadata
    _, replies = await talk(agent("http", url=server.url, **mapped), "hi")
    assert replies[0].metadata is None
    for path in ("metadata", "tool_calls", "usage"):  # the answer itself is not mapped
        server.plan.append(Planned(body=FLAT))
        _, replies = await talk(agent("http", url=server.url, **{path: "json.other"}), "hi")
        assert replies[0].metadata is not None and replies[0].metadata["escalated"] is True
        assert replies[0].usage is not None and replies[0].usage.output_tokens == 5000


async def test_a_python_function_may_give_no_metadata_beside_its_text(tmp_path: Path) -> None:
    (tmp_path / "pair.py").write_text("def answer(message):\n    return 'hello', None\n")
    it = agent("python", tmp_path, function="pair.py:answer")
    _, replies = await talk(it, "hi")
    assert (replies[0].text, replies[0].metadata) == ("hello", {})
    await it.close()


@pytest.mark.real
@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("t, m, 'trace'", "text, a mapping, text"),
        ("m, t", "a mapping, text"),
        ("t, 'x'", "text, text"),
        ("t, ['x']", "text, a list"),
        ("t,", "text"),
        ("()", ""),
    ],
)
@pytest.mark.parametrize("kind", ["def", "async def"])
async def test_a_tuple_that_is_not_text_and_metadata_is_an_error(
    tmp_path: Path, returned: str, said: str, kind: str
) -> None:
    """Its metadata would be lost, and every limit on it would pass."""
    code = f"{kind} answer(message):\n    t, m = 'done', {{'escalated': True}}\n    return {returned}\n"
    (tmp_path / "odd.py").write_text(code)
    it = agent("python", tmp_path, function="odd.py:answer")
    with pytest.raises(AgentError) as caught:
        await talk(it, "hi")
    words = f"odd.py:answer returned ({said}); it must return text or (text, metadata)"
    assert str(caught.value) == words
    await it.close()


@pytest.mark.parametrize(
    ("returned", "text", "metadata"),
    [
        ("['done', {'escalated': True}]", "done", {"escalated": True}),
        ("[{'n': 1}, {'n': 2}]", '[{"n":1},{"n":2}]', None),
        ("{'n': 1}, {'vip': True}", '{"n":1}', {"vip": True}),
        ("{'n': 1}, None", '{"n":1}', {}),
    ],
)
async def test_lists_are_answers_and_a_tuple_is_an_answer_with_metadata(
    tmp_path: Path, returned: str, text: str, metadata: Any
) -> None:
    (tmp_path / "rows.py").write_text(f"def answer(message):\n    return {returned}\n")
    it = agent("python", tmp_path, function="rows.py:answer")
    _, replies = await talk(it, "hi")
    assert (replies[0].text, replies[0].metadata) == (text, metadata)
    await it.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"method": "GET"}, "url: says nothing of what is asked"),
        ({"method": "get", "body": {"q": "{{prompt}}"}}, "body: a GET has none"),
        ({"body": {"action": "run"}}, "body: says nothing of what is asked"),
        ({"body": ""}, "body: says nothing of what is asked"),
    ],
)
def test_an_endpoint_that_would_be_asked_nothing_of_a_case_is_an_error(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    """It answered something else, which `should_not_contain` let pass."""
    with pytest.raises(ConfigError, match=said):
        agent("http", tmp_path, url="http://127.0.0.1:9/chat", **options)


async def test_a_slip_in_a_name_that_is_filled_in_is_an_error(tmp_path: Path) -> None:
    with JsonServer(Planned(body={"reply": "a"}), Planned(body={"reply": "b"})) as server:
        it = agent("http", tmp_path, url=server.url, body={"q": "{{promt}}", "to": "{{ customer }}"})
        with pytest.raises(AgentError, match=r"\{\{promt\}\}: there is no promt; is \{\{prompt\}\} meant\?"):
            await talk(it, "hi")
        assert not server.requests
        await talk(it, Request(1, "hi", vars={"promt": "x"}))
        assert server.requests[0].body == {"q": "x", "to": ""}
        nothing = agent("http", tmp_path, url=f"{server.url}?q={{{{question}}}}", method="GET")
        with pytest.raises(
            AgentError, match=r"\{\{question\}\}: there is no question; \{\{prompt\}\} is what"
        ):
            await talk(nothing, "hi")
        await it.close()


@pytest.mark.parametrize("template", ["{{prompt}}", "{{prompt | urlencode}}", "v1/{{prompt}}?q=1"])
@pytest.mark.parametrize("prompt", ["..", ".", "../admin", "a/../../admin"])
async def test_what_is_asked_leads_to_no_other_address(tmp_path: Path, template: str, prompt: str) -> None:
    """With the agent's headers; a suite chooses what is asked, and not the address."""
    with JsonServer() as server:
        it = agent("http", tmp_path, url=f"{server.url}/chat/{template}", method="GET")
        if "urlencode" in template and "/" in prompt:
            await talk(it, prompt)
            assert server.requests[0].path.startswith("/chat/")
        else:
            with pytest.raises(
                AgentError, match=r"would be another address: what is asked has a segment \.\.?,"
            ):
                await talk(it, prompt)
            assert not server.requests
        await talk(it, "a..b/...")
        assert server.requests[-1].path.startswith("/chat/")
        await it.close()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:{{prompt}}", "{{prompt}}@127.0.0.1", "127.0.0.1:{{ prompt }}", "{{ prompt }}@127.0.0.1"],
)
async def test_nor_to_another_host(tmp_path: Path, host: str) -> None:
    """A variable that goes to 127.0.0.1 was agreed to."""
    it = agent("http", tmp_path, url=f"http://{host}/", method="GET")
    with pytest.raises(AgentError, match="would be another address: what is asked leads to another host"):
        await talk(it, "80@192.0.2.2:9/" if host.startswith("127") else "192.0.2.2:9/?")
    await it.close()


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"X-Tenant": "{{ tenant | default('acme') }}"}},
        {"headers": {"X-Tenant": "{{ tenant }}"}},
        {"body": {"q": "{{ prompt ~ '!' }}", "lang": "{{ lang | default('en') }}"}},
        {"body": {"q": "{{ question | default(prompt) }}"}},
        {"body": {"q": "{{ message if message else prompt }}", "lang": "{{ lang }}"}},
        {"body": {"q": "{{ prompt }} {{ prompt2 | default('') }}"}},
        {"body": '{"q": {{ messages | dump }}, "user": "{{ user }}"}'},
    ],
)
async def test_a_value_that_only_some_rows_have_is_no_slip(tmp_path: Path, options: dict[str, Any]) -> None:
    """What is asked is sent without it: as the usual body, in an expression, or beside it."""
    with JsonServer(Planned(body={"reply": "a"})) as server:
        it = agent("http", tmp_path, url=server.url, **options)
        await talk(it, "hi")
        assert "hi" in json.dumps(server.requests[0].body)
        await it.close()


async def test_a_signal_is_no_status(tmp_path: Path) -> None:
    """A note spoke of an HTTP status that nobody can know."""
    it = agent("command", tmp_path, command=script(tmp_path, "import os\nos.kill(os.getpid(), 9)"))
    session = await it.open(context())
    seen: list[Event] = []
    with pytest.raises(AgentError, match="signal 9: it said nothing"):
        async for event in session.send(Request(1, "x")):
            seen.append(event)
    (asked,) = of(seen, Exchanged)
    assert asked.exchange.status is None and asked.exchange.note == "signal 9"


async def test_command_errors(tmp_path: Path) -> None:
    it = agent("command", tmp_path, command=script(tmp_path, "import sys\nprint('half')\nsys.exit('boom')"))
    with pytest.raises(AgentError, match="exit code 1: boom") as caught:
        await talk(it, "x")
    assert caught.value.answer == "half\n"
    with pytest.raises(AgentError, match=r"cannot run echo: there is no folder .*/gone \(`cwd`\)"):
        await talk(agent("command", tmp_path, command=["echo", "hi"], cwd="gone"), "hi")
    with pytest.raises(AgentError, match=r"cannot run \./none: No such file"):
        await talk(agent("command", tmp_path, command="./none"), "x")
    with pytest.raises(ConfigError, match="command: is missing"):
        agent("command", tmp_path)
    spec = AgentSpec("it", "command", {"command": "ls"})
    with pytest.raises(NeedsTrust, match="run ls"):
        create(spec, services(tmp_path, trusted=False))


@pytest.mark.parametrize("own_session", [False, True])
async def test_command_is_killed_with_its_children(tmp_path: Path, own_session: bool) -> None:
    code = (
        "import os,subprocess,sys,time\n"
        "child=subprocess.Popen([sys.executable,'-c','import time; time.sleep(60)'], "
        f"start_new_session={own_session})\n"
        "open('pids','w').write(f'{os.getpid()} {child.pid}')\nos.rename('pids','ready')\ntime.sleep(60)"
    )
    it = agent("command", tmp_path, command=script(tmp_path, code))
    task = asyncio.create_task(talk(it, "x"))
    ready = tmp_path / "ready"
    await until(ready.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for pid in map(int, ready.read_text().split()):
        await until(lambda pid=pid: not _alive(pid))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="without /proc nobody finds them")
async def test_what_a_command_would_start_anew_when_it_is_cut_ends_too(tmp_path: Path) -> None:
    """One in a session of its own stayed where the command looks after its children, and there are many others."""
    code = (
        "import os,subprocess,sys\nat = 0\nwhile at < 1000:\n"
        "    child = subprocess.Popen(['sleep', '300'], start_new_session=True)\n    at += 1\n"
        "    open('pids','a').write(f'{child.pid}\\n')\n"
        "    child.wait()\n"
    )
    it = agent("command", tmp_path, command=script(tmp_path, code))
    pids = tmp_path / "pids"
    for _ in range(5):
        task = asyncio.create_task(talk(it, "x"))
        await until(lambda: pids.exists() and pids.read_text().endswith("\n"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for pid in map(int, pids.read_text().split()):
            await until(lambda pid=pid: not _alive(pid))
        pids.unlink()


async def test_what_a_process_started_is_found_whichever_way_the_kernel_lists_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = await asyncio.create_subprocess_exec("sh", "-c", "setsid sleep 60 & sleep 60 & wait")
    try:
        await until(lambda: len(python_worker_watcher.descendants(child.pid)) == 2)
        found = python_worker_watcher.descendants(child.pid)
        monkeypatch.setattr(os.path, "exists", lambda _: False)
        assert sorted(python_worker_watcher.descendants(child.pid)) == sorted(found)
    finally:
        python_worker_watcher.kill([*python_worker_watcher.descendants(child.pid), child.pid])
        await child.wait()


def _alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


async def test_exec_provider(tmp_path: Path) -> None:
    code = "import sys,json\nprint('\\x1b[31m'+sys.argv[1], json.loads(sys.argv[3])['vars']['a'])"
    it = agent("command", tmp_path, command=script(tmp_path, code), promptfoo=True, config={})
    _, replies = await talk(it, Request(1, "hi", vars={"a": 2}))
    assert replies[0].text == "hi 2"
    it = agent(
        "command",
        tmp_path,
        command=script(tmp_path, "import sys; print('bad', file=sys.stderr)"),
        promptfoo=True,
    )
    with pytest.raises(AgentError, match="exit code 0: bad"):
        await talk(it, "x")


@pytest.fixture
def server() -> Iterator[JsonServer]:
    with JsonServer() as running:
        yield running


async def test_http_without_settings(server: JsonServer) -> None:
    server.plan.extend(
        [Planned(body={"answer": "A", "metadata": {"escalated": True}}), Planned(text="plain ü")]
    )
    it = agent("http", url=f"{server.url}/chat")
    events, replies = await talk(it, "hi", "more")
    assert [reply.text for reply in replies] == ["A", "plain ü"]
    assert replies[0].metadata == {"escalated": True}
    assert [event.text for event in of(events, TextDelta)] == ["A", "plain ü"]
    first, second = server.requests
    assert first.body["message"] == "hi" and first.body["session_id"] == "session-1"
    assert second.body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "A"},
        {"role": "user", "content": "more"},
    ]
    await it.close()


async def test_http_with_paths(server: JsonServer) -> None:
    body = {
        "choices": [{"text": "Hi"}],
        "meta": {"escalated": False},
        "tools": [{"name": "search", "arguments": {"q": 1}, "result": 2}],
        "n": {"prompt_tokens": 9},
    }
    server.plan.extend(
        [Planned(body=body), Planned(body={"error": {"message": "out of order"}}), Planned(text="<p>")]
    )
    it = agent(
        "http",
        url=f"{server.url}/chat",
        headers={"X-Who": "{{who}}"},
        body={"q": "{{prompt}} {{who}}", "all": "{{messages}}", "s": "{{session_id}}"},
        reply="json.choices[0].text",
        metadata="json.meta",
        tool_calls="json.tools",
        usage="json.n",
    )
    request = Request(1, "hi", vars={"who": "ada"})
    events, replies = await talk(it, request)
    assert replies[0].text == "Hi" and replies[0].metadata == {"escalated": False}
    assert of(events, ToolCall)[0].arguments == {"q": 1} and of(events, ToolResult)[0].result == 2
    assert replies[0].usage is not None and replies[0].usage.input_tokens == 9
    seen = server.requests[0]
    assert seen.body["q"] == "hi ada" and seen.body["all"] == [{"role": "user", "content": "hi"}]
    assert seen.headers["X-Who"] == "ada"
    for said in ("out of order", r"has no json\.choices"):
        with pytest.raises(AgentError, match=said):
            await talk(it, request)
    only = agent("http", url=server.url, reply="json.a")
    assert not only.capabilities.tools and not only.capabilities.metadata
    await it.close()


ODD = 'What of C# & C++? 100% a/b "q" +1'


class Queried(JsonServer):
    """Keeps the queries that it is asked with."""

    def __init__(self) -> None:
        super().__init__()
        self.queries: list[dict[str, str]] = []

    async def see(self, request: web.Request) -> Seen:
        self.queries.append(dict(request.query))
        return await super().see(request)


async def test_what_is_asked_in_an_address_arrives_whole() -> None:
    """A `#` would end the address, a `&` the question."""
    with Queried() as server:
        for template in ("{{prompt}}", "{{ prompt | urlencode }}"):
            it = agent("http", url=f"{server.url}/a/{{{{prompt}}}}?q={template}&n=1", method="GET")
            if "|" in template:  # who sees to it, does it alone
                it = agent("http", url=f"{server.url}/a?q={template}&n=1", method="GET")
            await talk(it, ODD)
            assert server.queries[-1] == {"q": ODD, "n": "1"}
        assert server.requests[0].path == f"/a/{ODD}"
        it = agent("http", url="{{there}}/b?q={{prompt}}")
        await talk(it, Request(1, "two\nlines", vars={"there": server.url}))
        assert server.requests[-1].path == "/b" and server.queries[-1] == {"q": "two\nlines"}
        it = agent("http", url="http://{{host}}/{{prompt}}")
        await talk(it, Request(1, ODD, vars={"host": server.url.removeprefix("http://")}))
        assert server.requests[-1].path == f"/{ODD}"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ("q={{prompt}}&n=1", {"q": ODD, "n": "1"}),
        ("q={{ prompt | urlencode }}&n=1", {"q": ODD, "n": "1"}),  # who sees to it, does it alone
        ({"q": "{{prompt}}", "n": 1, "to": "{{who}}"}, {"q": ODD, "n": "1", "to": "a b"}),
        ("{{given}}&q={{prompt}}", {"a": "1 2", "q": ODD}),
        ("q={{prompt}} ({{who}})", {"q": f"{ODD} (a b)"}),
    ],
)
async def test_what_is_asked_in_a_form_arrives_whole(body: Any, fields: dict[str, str]) -> None:
    """A `&` ended the question there, and fields were sent as JSON."""
    with JsonServer() as server:
        headers = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}
        it = agent("http", url=server.url, headers=headers, body=body)
        await talk(it, Request(1, ODD, vars={"given": "a=1%202", "who": "a b"}))
        assert dict(parse_qsl(server.requests[0].text, strict_parsing=True)) == fields
        await it.close()


async def test_a_body_that_is_json_stays_json_whatever_type_is_said_of_it() -> None:
    """What is percent-encoded in it is no JSON; there are endpoints that do not look at the type."""
    with JsonServer() as server:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        it = agent("http", url=server.url, headers=headers, body='{"q": {{ prompt | dump }}}')
        await talk(it, ODD)
        assert json.loads(server.requests[0].text) == {"q": ODD}
        await it.close()


@pytest.mark.parametrize(
    ("template", "query"),
    [
        (
            "q={% if q == 'a b' %}same{% endif %}",
            {"q": "same"},
        ),  # a template sees what there is, not its spelling
        ("q={{ q | replace(' ', '_') }}&n={{ q | length }}", {"q": "a_b", "n": "3"}),
        ("q={{ q if q != '?' }}{% if q == '?' %}x{% endif %}", {"q": "a b"}),
        ("q={{ user.name }}&t={{ tags | join(' & ') }}", {"q": "a#b", "t": "x & y"}),
        ("q={{ q | urlencode }}&t={{ tags[0] }}{{ user.name }}", {"q": "a b", "t": "xa#b"}),
        ("{{ given }}", {"a": "1 2", "b": "é"}),
        ("n=1&{{ given }}", {"n": "1", "a": "1 2", "b": "é"}),
    ],
)
async def test_templates_in_an_address(template: str, query: dict[str, str]) -> None:
    known = {"q": "a b", "user": {"name": "a#b"}, "tags": ["x", "y"], "given": "a=1%202&b=é"}
    with Queried() as server:
        scheme, _, host = server.url.partition("://")
        it = agent("http", url=f"{{{{scheme}}}}://{{{{host}}}}/{{{{user.name}}}}?{template}", method="GET")
        await talk(it, Request(1, "x", vars={**known, "scheme": scheme, "host": host}))
        assert (server.requests[0].path, server.queries) == ("/a#b", [query])
        with pytest.raises(AgentError, match=r"the template .*/\{\{ nofilter"):
            await talk(agent("http", url=server.url + "/{{ nofilter | of_nobody }}"), "x")


@pytest.mark.parametrize(
    ("body", "sent"),
    [
        ('{"n": "{{turn}}", "m": "{{n}}{{yes}}"}', '{"n": "1", "m": "5true"}'),
        ('{"n": "{{ n }}", "m": "{{yes}}", "f": 1e3}', '{"n": "5", "m": "true", "f": 1e3}'),
        ('{"{{who}}": "{{prompt}}", "n": "{{n}}"}', '{"me":"say \\"hi\\"","n":"5"}'),
        ('{"n": {{n}}, "q": "{{prompt}}!"}', '{"n": 5, "q": "say \\"hi\\"!"}'),
        (
            '{"q": {{prompt | dump}}, "p": "\\"{{prompt}}\\""}',
            '{"q": "say \\"hi\\"", "p": "\\"say \\"hi\\"\\""}',
        ),
        ("[{{yes}}, \"{{ prompt | replace('\"', '\\\\\"') }}\"]", '[true, "say \\"hi\\""]'),
        ("{ {{prompt}} }", '{ say "hi" }'),
        ("{{prompt}}", 'say "hi"'),
    ],
)
async def test_what_stands_in_quotes_in_a_json_text_stays_a_text(
    server: JsonServer, body: str, sent: str
) -> None:
    it = agent("http", url=server.url, body=body)
    await talk(it, Request(1, 'say "hi"', vars={"n": 5, "yes": True, "who": "me"}))
    assert server.requests[0].text == sent


async def test_a_body_that_is_json_as_text_stays_json(server: JsonServer) -> None:
    it = agent("http", url=server.url, body='{"q": "{{prompt}}", "all": "{{messages}}", "n": 1}')
    said = f"{ODD}\nmore"
    await talk(it, said)
    assert server.requests[0].body == {"q": said, "all": [{"role": "user", "content": said}], "n": 1}
    await talk(agent("http", url=server.url, body="q={{prompt}}"), "a")
    assert server.requests[1].text == "q=a"


@pytest.mark.parametrize(
    ("body", "alone"),
    [
        (None, False),
        ({"q": "{{prompt}}"}, True),
        ('{"q": "{{ prompt }}"}', True),
        ({"q": "{{prompt}}", "session": "{{ session_id }}"}, False),
        ({"messages": "{{messages}}"}, False),
        ("{% for m in messages %}{{m.content}}{% endfor %}", False),
    ],
)
async def test_a_later_message_that_goes_out_alone_is_noted_once(
    server: JsonServer, body: Any, alone: bool
) -> None:
    """Its agent cannot know what was said before; the reason of the failure would say nothing of that."""
    it = agent("http", url=server.url, **({} if body is None else {"body": body}))
    events, _ = await talk(it, "I am Ada", "who am I?", "sure?")
    notes = [one.text for one in events if isinstance(one, Note)]
    assert len(notes) == alone and all("only this message was sent" in one for one in notes)


async def test_replay() -> None:
    attempt = Attempt(
        case_id="s::c",
        attempt=1,
        outcome="passed",
        transcript=[
            Entry(turn=1, kind="user", text="q"),
            Entry(turn=1, kind="tool_call", name="t", call_id="1", arguments={"a": 1}),
            Entry(turn=1, kind="tool_result", name="t", call_id="1", result=2),
            Entry(turn=1, kind="assistant", text="A"),
            Entry(turn=2, kind="error", error="it broke"),
        ],
        replies=[Reply(turn=1, text="A", cost=0.1)],
    )

    def recorded(spec: AgentSpec, run: str, case_id: str, number: int) -> Any:
        if run == "gone":
            raise FileNotFoundError("no run gone")
        return attempt if case_id == "s::c" else None

    it = create(AgentSpec("it", "replay", {"run": "r1"}), services(recorded=recorded))
    events, replies = await talk(it, "q")
    assert kinds(events) == ["ToolCall", "ToolResult", "TextDelta", "Finished"] and replies[0].cost == 0.1
    with pytest.raises(AgentError, match="it broke"):
        await talk(it, Request(2, "q"))
    gone = create(AgentSpec("it", "replay", {"run": "gone"}), services(recorded=recorded))
    with pytest.raises(AgentError, match="replay of run gone: no run gone"):
        await talk(gone, "q")


CUT = '{"reply": "the secret is s\\u00e9'
LINES = '{"reply": "the secret is s"}\n{"reply": "same"}'


@pytest.mark.parametrize("said", [CUT, LINES, '\ufeff{"reply": "a'])
async def test_json_that_breaks_off_or_comes_in_lines_is_not_the_agents_words(
    said: str, tmp_path: Path
) -> None:
    (tmp_path / "said").write_text(said, "utf-8")
    with pytest.raises(AgentError, match="JSON"):
        await talk(agent("command", tmp_path, command="cat said"), "x")
    for kind in ("application/x-ndjson", "text/plain", "application/json"):
        planned = Planned(raw=said.encode(), headers={"Content-Type": kind})
        with JsonServer(planned) as server, pytest.raises(AgentError, match="JSON"):
            await talk(agent("http", tmp_path, url=server.url), "hi")


async def test_a_command_that_says_nothing_has_not_answered(tmp_path: Path) -> None:
    for said in ("", " \n"):
        (tmp_path / "said").write_text(said)
        with pytest.raises(AgentError, match="cat answered nothing"):
            await talk(agent("command", tmp_path, command="cat said"), "x")
    (tmp_path / "said").write_text("null\n")
    with pytest.raises(AgentError, match="the answer is null"):
        await talk(agent("command", tmp_path, command="cat said"), "x")
    (tmp_path / "said").write_bytes("forbidden".encode("utf-16"))  # where no word of it is found
    with pytest.raises(AgentError, match="cat answered with bytes that are no text"):
        await talk(agent("command", tmp_path, command="cat said"), "x")
    (tmp_path / "said").write_text('{"a": 1} is what I found')
    _, replies = await talk(agent("command", tmp_path, command="cat said"), "x")
    assert replies[0].text == '{"a": 1} is what I found'


@pytest.mark.parametrize("kind", ["text/plain", "application/json"])
async def test_an_answer_is_read_in_the_encoding_that_it_declares(kind: str, tmp_path: Path) -> None:
    text = '{"reply": "sésame"}' if kind == "application/json" else "sésame"
    headers = {"Content-Type": f"{kind}; charset=iso-8859-1"}
    unknown = Planned(raw=text.encode(), headers={"Content-Type": f"{kind}; charset=idna"})
    with JsonServer(Planned(raw=text.encode("latin-1"), headers=headers), unknown) as server:
        it = agent("http", tmp_path, url=server.url)
        assert [(await talk(it, "hi"))[1][0].text for _ in range(2)] == ["sésame", "sésame"]


@pytest.mark.real
def test_a_program_that_has_ended_before_it_is_written_to_is_no_internal_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = asyncio.create_subprocess_exec

    async def ended(*words: str, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*words, **options)
        await asyncio.sleep(0.1)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", ended)
    assert uvloop.run(command.run_program(["true"], b"question", "/", {})) == (0, b"", b"")
