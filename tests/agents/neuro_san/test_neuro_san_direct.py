"""neuro-san as a library: the worker with a stand-in for the package, in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.support.agents import agent, context, of, services, talk
from tests.support.waiting import until
from tui_eval.agents import Agent, AgentError, Request, create
from tui_eval.agents.neuro_san import neuro_san_library
from tui_eval.config.project import AgentSpec
from tui_eval.events import Exchanged, Finished, Note
from tui_eval.guard.trust import NeedsTrust
from tui_eval.scripting import printed

PACKAGE = """
import array, asyncio, ctypes, datetime, decimal, fractions, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from coded import words
from pyhocon import ConfigFactory, config_parser

parse_whole = config_parser.ConfigParser.parse

def counted(*given):
    with open("parsed.txt", "a") as parsed:
        parsed.write("parsed ")
    return parse_whole(*given)

config_parser.ConfigParser.parse = staticmethod(counted)

together, pool = threading.Barrier(2), ThreadPoolExecutor(2)

def tool(text):
    together.wait(20)
    print("a tool of", text)

async def leaving(status):
    sys.exit(status)

class Session:
    def get_asyncio_executor(self):
        return self

    def get_event_loop(self):
        return self.loop

    def run_loop(self):
        self.loop.create_task(leaving("no licence"))
        self.loop.run_forever()

    def __init__(self, network, use_direct, metadata):
        self.said = f"{network} {use_direct} {metadata} {os.path.basename(os.environ['AGENT_MANIFEST_FILE'])}"
        self.called_off = threading.Event()
        self.loop, self.invocation_context = asyncio.new_event_loop(), self

    def streaming_chat(self, body):
        text = body["user_message"]["text"]
        if text.startswith("print"):
            pool.submit(tool, text).result()
        if text == "sleep":
            yield {"response": {"type": "AGENT_PROGRESS", "text": "asleep"}}
            time.sleep(3600)
        if text == "wait":
            yield {"response": {"type": "AGENT_PROGRESS", "text": "waits"}}
            self.called_off.wait(3600)
            open("ended.txt", "w").close()
        if text == "hold":
            yield {"response": {"type": "AGENT_PROGRESS", "text": "at it"}}
            ctypes.PyDLL(None).usleep(2_500_000)  # nothing else runs meanwhile
        if text == "leave":
            print("leaves")
            threading.Thread(target=self.run_loop, daemon=True).start()
            time.sleep(3600)
        if text == "exit":
            os._exit(3)
        context = {"n": (body.get("chat_context") or {"n": 0})["n"] + 1}
        sly = dict(body.get("sly_data") or {}, seen=context["n"])
        if text == "date":
            sly["day"] = datetime.date(2026, 1, 2)
            sly["keys"] = {1: (2, 3)}
        if text == "figures":
            sly |= {
                "total": decimal.Decimal("1.50"), "whole": decimal.Decimal("12"), "tenth": decimal.Decimal("0.1"),
                "half": fractions.Fraction(1, 2), "never": decimal.Decimal("Infinity"), "seen_in": {"b", "a"},
                "table": {(1, 2): {"n": decimal.Decimal("3")}}, "column": array.array("i", [1, 2]),
            }
        if text == "kinds":
            text = " ".join(type(sly.get(name)).__name__ for name in ("total", "whole", "seen_in", "column"))
            text += f" {sly.get('table')}"
        if text == "show":
            text = repr((sly.get("day"), sly.get("keys")))
        answer = os.getpid() if text == "pid" else f"{text}: {self.said} {words.WORD}"
        if text == "paths":
            answer = f"{os.environ['AGENT_MANIFEST_FILE']} {os.environ['AGENT_TOOL_PATH']}"
        yield {"response": {"type": 101, "text": answer, "chat_context": context, "sly_data": sly}}

    def close(self):
        self.called_off.set()

class DirectAgentSessionFactory:
    def create_session(self, agent_name, use_direct=False, metadata=None):
        if agent_name == "nope":
            raise ValueError("Agent named nope\\n   not found")
        with open("made.txt", "a") as made:
            made.write("made ")
        session = Session(agent_name, use_direct, metadata)
        if os.path.exists("models.hocon"):
            models = ConfigFactory.parse_string(open("models.hocon").read(), basedir=None)
            session.said = str(models["classes"]["known"])
            models["classes"]["known"].append("changed")
        return session
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "lib/neuro_san/__init__.py": "",
        "lib/neuro_san/client/__init__.py": "",
        "lib/neuro_san/client/direct_agent_session_factory.py": dedent(PACKAGE),
        "coded/__init__.py": "",
        "coded/words.py": "WORD = 'first'",
        "networks/manifest.hocon": "{}",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    return tmp_path


def library(folder: Path, **more: object) -> Agent:
    """The agent with this test's own Python as the interpreter that has neuro-san."""
    options = {"python": sys.executable, "manifest": "networks/manifest.hocon", "tool_path": "coded"}
    return agent("neuro-san", folder, **{**options, **more})


async def test_answers_and_carries(folder: Path) -> None:
    it = library(folder)
    turns = (Request(1, "one", sly_data={"a": 1}), Request(2, "two"))
    events, replies = await talk(
        it, *turns, network="net", connection="direct", headers={"user_id": "me"}, use_direct=True
    )
    assert [reply.text for reply in replies] == [
        "one: net True {'user_id': 'me'} manifest.hocon first",
        "two: net True {'user_id': 'me'} manifest.hocon first",
    ]
    assert [reply.sly_data for reply in replies] == [{"a": 1, "seen": 1}, {"a": 1, "seen": 2}]
    exchange = of(events, Exchanged)[1].exchange
    assert exchange.request.startswith("direct: net with ") and '"chat_context":{"n":1}' in exchange.request
    assert "(sly data)" in exchange.response and exchange.status is None
    await it.close()


async def test_the_next_turn_gets_sly_data_that_are_no_json_as_they_were_returned(folder: Path) -> None:
    """A tool got the text of its date and text keys, where neuro-san's driver hands it the date."""
    it = library(folder)
    own = Request(4, "show", sly_data={"day": "2026-01-03"})
    turns = (Request(1, "date"), Request(2, "show"), Request(3, "show"), own)
    _, replies = await talk(it, *turns, network="net", connection="direct")
    assert replies[0].sly_data == {"seen": 1, "day": "2026-01-02", "keys": {"1": [2, 3]}}
    kept = "(datetime.date(2026, 1, 2), {1: (2, 3)}): net "
    assert all(reply.text.startswith(kept) for reply in replies[1:3])
    assert replies[3].text.startswith("('2026-01-03', None): net ")
    await it.close()


async def test_figures_of_tools_are_judged_as_figures_and_come_back_as_they_were(folder: Path) -> None:
    """`value: 1.5` failed on the text of a Decimal, and a key that JSON does not have was an error of the attempt."""
    it = library(folder)
    turns = (Request(1, "figures"), Request(2, "kinds"))
    _, replies = await talk(it, *turns, network="net", connection="direct")
    sly = dict(replies[0].sly_data or {})
    assert sly.pop("seen") == 1
    assert sly == {
        "total": 1.5, "whole": 12, "tenth": "0.1", "half": 0.5, "never": "Infinity", "seen_in": ["a", "b"],
        "table": {"(1, 2)": {"n": 3}}, "column": [1, 2],
    }  # fmt: skip
    assert isinstance(sly["whole"], int)
    assert (replies[1].text or "").startswith("Decimal Decimal set array {(1, 2): {'n': Decimal('3')}}: net ")
    await it.close()


async def test_a_judge_called_gist_is_the_packages_whatever_the_manifest_lists(folder: Path) -> None:
    """As neuro-san's driver asks it: by the file, since the manifest is that of one's own networks."""
    shipped = folder / "lib" / "neuro_san" / "registries" / "gist.hocon"
    it = library(folder)

    async def asked(network: str, *, judges: bool = True) -> str:
        _, replies = await talk(it, "q", network=network, connection="direct", judges=judges)
        return replies[0].text.split()[1]

    assert await asked("gist") == "gist", "a package without it"
    shipped.parent.mkdir()
    shipped.write_text("{}")
    (folder / "networks" / "manifest.hocon").write_text('{"gist.hocon": true}')
    (folder / "networks" / "gist.hocon").write_text("{}")
    assert await asked("gist") == str(shipped)
    assert await asked("strict_gist") == "strict_gist"
    assert await asked("gist", judges=False) == "gist", "an agent is the manifest's"
    await it.close()


async def test_a_session_is_made_once_and_before_the_first_turn_is_timed(folder: Path) -> None:
    it = library(folder)
    session = await it.open(context(network="net", connection="direct"))
    made = folder / "made.txt"
    assert it.preparing == "loading agent networks" and made.read_text() == "made "
    for turn in (1, 2):
        async for _ in session.send(Request(turn, "q")):
            pass
    assert made.read_text() == "made "
    await session.close()
    await it.close()


async def test_what_a_coded_tool_prints_is_kept_with_the_attempt_that_it_works_for(folder: Path) -> None:
    it = library(folder)

    async def prints(text: str) -> str:
        kept: list[str] = []
        token = printed.set(kept.append)
        session = await it.open(context(network="n", connection="direct"))
        async for _ in session.send(Request(1, text)):
            pass
        printed.reset(token)
        await session.close()
        return "".join(kept)

    texts = await asyncio.gather(prints("print 1"), prints("print 2"))
    assert texts == ["a tool of print 1\n", "a tool of print 2\n"]
    await it.close()


async def test_a_conversation_goes_on_when_its_process_has_ended(folder: Path) -> None:
    it = library(folder)
    session = await it.open(context(network="net", connection="direct"))
    with pytest.raises(AgentError, match="process ended"):
        async for _ in session.send(Request(1, "exit")):
            pass
    events = [event async for event in session.send(Request(2, "again"))]
    assert of(events, Finished)[0].reply.text.startswith("again")
    await it.close()


@pytest.mark.parametrize(
    ("models", "parsed", "said"),
    [
        ('classes { known = [a, "include \\"x\\" ]"] } # an "include" list', 1, "['a', 'include \"x\" ]']"),
        ("classes { known = [${?WANTED}, b] }", 3, "['first', 'b']"),
        ('include "more.hocon"\nclasses { known = [c] }', 4, "['c']"),
        ('include required(file("more.hocon"))\nclasses { known = [c] }', 4, "['c']"),
    ],
)
async def test_what_every_session_reads_is_parsed_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, models: str, parsed: int, said: str
) -> None:
    """More than a second of CPU a conversation went into the models that neuro-san knows."""
    monkeypatch.setenv("WANTED", "first")
    (folder / "models.hocon").write_text(models)
    (folder / "more.hocon").write_text("other = 1")
    it = library(folder)
    for _ in range(3):
        _, replies = await talk(it, "x", network="net", connection="direct")
        assert replies[0].text == f"x: {said} first"
    assert (folder / "parsed.txt").read_text().split() == ["parsed"] * parsed
    await it.close()


async def test_a_tool_that_leaves_is_an_error_of_its_own_conversation_at_once(folder: Path) -> None:
    """Its network's loop is gone, and neuro-san tells nobody: the attempt waited for its whole time limit."""
    it = library(folder)
    _, before = await talk(it, "pid", network="net", connection="direct")
    session = await it.open(context(network="net", connection="direct"))
    kept: list[str] = []
    token = printed.set(kept.append)
    try:
        with pytest.raises(AgentError, match=r"net: a tool ended the network \(SystemExit: no licence\)"):
            async with asyncio.timeout(60):
                async for _ in session.send(Request(1, "leave")):
                    pass
    finally:
        printed.reset(token)
    assert "".join(kept) == "leaves\n"
    await session.close()
    _, after = await talk(it, "pid", network="net", connection="direct")
    assert after[0].text == before[0].text, "others go on in their process"
    await it.close()


async def test_a_cancelled_answer_that_can_be_called_off_leaves_the_process_to_others(folder: Path) -> None:
    it = library(folder)
    _, before = await talk(it, "pid", network="net", connection="direct")
    session = await it.open(context(network="net", connection="direct"))
    stream = session.send(Request(1, "wait"))
    assert isinstance(await anext(stream), Note)
    await stream.aclose()  # type: ignore[attr-defined]
    await session.close()
    await until((folder / "ended.txt").exists)
    _, after = await talk(it, "pid", network="net", connection="direct")
    assert after[0].text == before[0].text
    await it.close()


async def test_a_tool_that_keeps_the_interpreter_busy_is_not_ended_with_a_cancelled_answer(
    folder: Path,
) -> None:
    """Nor on a busy machine: all cases are in one process, which did not say in time that it goes on."""
    it = library(folder)
    cut = await it.open(context(network="net", connection="direct"))
    stream = cut.send(Request(1, "wait"))
    assert isinstance(await anext(stream), Note)
    other = await it.open(context(network="net", connection="direct"))
    busy = other.send(Request(1, "hold"))
    assert isinstance(await anext(busy), Note)
    await stream.aclose()  # type: ignore[attr-defined]
    events = [event async for event in busy]
    assert of(events, Finished)[0].reply.text.startswith("hold: ")
    await it.close()


async def test_a_conversation_is_begun_again_whose_process_another_one_has_blocked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neuro_san_library, "_GRACE", 0.3)
    it = library(folder)
    cut = await it.open(context(network="net", connection="direct"))
    stream = cut.send(Request(1, "hold"))
    assert isinstance(await anext(stream), Note)
    await stream.aclose()  # type: ignore[attr-defined]
    _, replies = await talk(it, "next", network="net", connection="direct")
    assert replies[0].text.startswith("next")
    await it.close()


async def test_an_edited_tool_is_run_as_edited(folder: Path) -> None:
    it = library(folder)
    await talk(it, "q", network="net", connection="direct")
    (folder / "coded" / "words.py").write_text("WORD = 'second'")
    _, replies = await talk(it, "q", network="net", connection="direct")
    assert replies[0].text.endswith("second")
    await it.close()


async def test_failures_are_told_in_one_line(folder: Path) -> None:
    it = library(folder)
    with pytest.raises(AgentError, match="connection direct: nope: Agent named nope not found"):
        await talk(it, "q", network="nope", connection="direct")
    with pytest.raises(
        AgentError, match=r"connection direct: net: the neuro-san process ended \(exit code 3"
    ):
        await talk(it, "exit", network="net", connection="direct")
    _, replies = await talk(it, "again", network="net", connection="direct")
    assert replies[0].text.startswith("again")
    await it.close()


@pytest.mark.real
async def test_a_cancelled_answer_ends_its_process(folder: Path) -> None:
    it = library(folder)
    session = await it.open(context(network="net", connection="direct"))
    stream = session.send(Request(1, "sleep"))
    assert isinstance(await anext(stream), Note)
    (process,) = next(iter(it._library._current.values()))  # type: ignore[attr-defined]
    await stream.aclose()  # type: ignore[attr-defined]
    await session.close()
    await asyncio.to_thread(process.wait)
    _, replies = await talk(it, "again", network="net", connection="direct")
    assert replies[0].text.startswith("again")
    await it.close()


async def test_what_had_come_of_an_answer_that_is_cut_off_is_kept(folder: Path) -> None:
    it, seen = library(folder), list[object]()

    async def ask() -> None:
        session = await it.open(context(network="net", connection="direct"))
        async for event in session.send(Request(1, "wait")):
            seen.append(event)

    asking = asyncio.ensure_future(ask())
    await until(lambda: bool(seen))
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    told = seen[-1]
    assert isinstance(told, Exchanged) and told.exchange.note == "cut off"
    assert '"wait"' in told.exchange.request and '"waits"' in told.exchange.response
    await it.close()


async def test_a_python_without_the_package_and_none_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    it = library(folder)
    with pytest.raises(AgentError, match=r"cannot import neuro-san .* install it there, or give another"):
        await talk(it, "q", network="net", connection="direct")
    await it.close()
    missing = library(folder, python="./no-such-python")
    with pytest.raises(AgentError, match=r"cannot run .*no-such-python: No such file"):
        await talk(missing, "q", network="net", connection="direct")
    nobody = agent("neuro-san", folder, url="http://127.0.0.1:9", retries=0)
    with pytest.raises(AgentError, match=r"no neuro-san library here.*start the server.*`python` of an"):
        await talk(nobody, "q", network="net", connection="direct")


async def test_running_networks_needs_trust(folder: Path) -> None:
    spec = AgentSpec("it", "neuro-san", {"python": sys.executable}, base=str(folder))
    it = create(spec, services(folder, trusted=False))
    with pytest.raises(NeedsTrust, match="run agent networks with"):
        await it.open(context(network="net", connection="direct"))
    await it.open(context(network="net", connection="http"))


@pytest.mark.parametrize("file", ["config/llm.hocon", "networks/plain.json"])
async def test_an_edit_of_what_a_network_includes_or_of_one_in_json_is_run_as_edited(
    folder: Path, file: str
) -> None:
    (folder / "networks" / "net.hocon").write_text('include "config/llm.hocon"')
    (folder / "networks" / "manifest.hocon").write_text('{"net.hocon": true, "plain.json": true}')
    (folder / "config").mkdir()
    (folder / file).write_text("{}")
    it = library(folder)
    _, before = await talk(it, "pid", network="net", connection="direct")
    (folder / file).write_text("{ }")
    _, after = await talk(it, "pid", network="net", connection="direct")
    assert after[0].text != before[0].text
    await it.close()


async def test_several_manifests_and_tool_folders_are_each_beside_the_entry(folder: Path) -> None:
    suite = folder / "suite"
    suite.mkdir()
    both = os.pathsep.join
    options = {
        "manifest": both(("../networks/a.hocon", "../networks/manifest.hocon")),
        "tool_path": both(("../none", "../coded")),
    }
    spec = AgentSpec("it", "neuro-san", {"python": sys.executable, **options}, base=str(suite))
    it = create(spec, services(folder))
    _, replies = await talk(it, "paths", network="net", connection="direct")
    paths = ("networks/a.hocon", "networks/manifest.hocon"), ("none", "coded")
    assert replies[0].text == " ".join(both(str(folder / name) for name in names) for names in paths)
    await it.close()
