"""What attempts share is made once, however many begin in the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.support.agents import agent, context, services, talk
from tui_eval.agents.base import AgentError, Request
from tui_eval.agents.entry_options import Options
from tui_eval.agents.models.tool_loop import Toolbox
from tui_eval.agents.programs.suite_scripts import Scripts
from tui_eval.agents.promptfoo.promptfoo_auth import Authorization
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.guard.once import Once
from tui_eval.scripting.script_host import PROCESSES

AT_ONCE = 16


async def _slowly(value: str) -> str:
    for _ in range(5):
        await asyncio.sleep(0)
    return value


class TestOnce:
    async def test_all_who_ask_meanwhile_get_the_same(self) -> None:
        made: list[object] = []

        async def make() -> object:
            await _slowly("")
            made.append(object())
            return made[-1]

        once: Once[object] = Once()
        got = await asyncio.gather(*(once.get(make) for _ in range(AT_ONCE)))
        assert len(made) == 1
        assert all(one is made[0] for one in got)
        assert await once.get(make) is made[0]

    async def test_a_failure_is_everybodys_and_the_next_one_tries_anew(self) -> None:
        tries = 0

        async def make() -> str:
            nonlocal tries
            tries += 1
            await _slowly("")
            if tries == 1:
                raise AgentError("not yet")
            return "made"

        once: Once[str] = Once()
        got = await asyncio.gather(*(once.get(make) for _ in range(4)), return_exceptions=True)
        assert [str(one) for one in got] == ["not yet"] * 4
        assert await once.get(make) == "made"
        assert tries == 2

    async def test_who_began_it_may_be_cut_without_cutting_the_others(self) -> None:
        go = asyncio.Event()

        async def make() -> str:
            await go.wait()
            return "made"

        once: Once[str] = Once()
        first = asyncio.ensure_future(once.get(make))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(once.get(make))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await second == "made"
        with pytest.raises(asyncio.CancelledError):
            await first

    async def test_what_nobody_waits_for_is_not_made(self) -> None:
        cut = asyncio.Event()

        async def make() -> str:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cut.set()
                raise
            return "never"

        once: Once[str] = Once()
        asking = asyncio.ensure_future(once.get(make))
        await asyncio.sleep(0)
        asking.cancel()
        await asyncio.wait_for(cut.wait(), 10)
        assert await once.get(lambda: _slowly("anew")) == "anew"


def _toolbox(tools: list[dict[str, Any]], schema_text: Callable[[str], Any], **more: Any) -> Toolbox:
    spec = AgentSpec("it", "openai", {"tools": tools}, base="/")
    given = services(schema_text=schema_text, run_sql=lambda *_: _slowly(""), **more)
    return Toolbox(Options(spec, given, frozenset({"tools"})), given)


class TestTools:
    async def test_attempts_that_begin_at_once_get_one_tool_box(self) -> None:
        asked: list[str] = []

        async def schema_text(name: str) -> str:
            asked.append(name)
            return await _slowly("orders(id)")

        box = _toolbox(
            [
                {"type": "sql", "database": "shop"},
                {"type": "sql", "database": "log", "name": "run_log"},
                {"type": "canned", "name": "plan", "result": 1},
            ],
            schema_text,
        )
        await asyncio.gather(*(box.load() for _ in range(AT_ONCE)))
        assert list(box.tools) == ["run_sql", "run_log", "plan"]
        assert asked == ["shop", "log"]

    async def test_an_attempt_cut_while_it_loads_leaves_no_half_tool_box(self) -> None:
        asked = asyncio.Event()
        go = asyncio.Event()

        async def schema_text(name: str) -> str:
            asked.set()
            await go.wait()
            return ""

        tools = [{"type": "canned", "name": "plan", "result": 1}, {"type": "sql", "database": "shop"}]
        box = _toolbox(tools, schema_text)
        loading = asyncio.ensure_future(box.load())
        await asked.wait()
        loading.cancel()
        await asyncio.wait([loading])
        go.set()
        await box.load()
        assert list(box.tools) == ["plan", "run_sql"]

    async def test_two_tools_of_one_name_are_still_an_error_for_everybody(self) -> None:
        tools = [{"type": "canned", "name": "plan", "result": 1}] * 2
        box = _toolbox(tools, _slowly)
        got = await asyncio.gather(*(box.load() for _ in range(4)), return_exceptions=True)
        assert all(isinstance(one, ConfigError) and "a second tool named plan" in str(one) for one in got)


@pytest.fixture
async def served() -> AsyncIterator[Callable[[Callable[[web.Request], Any]], Any]]:
    """Serves a handler on loopback; gives its address."""
    runners: list[web.AppRunner] = []

    async def serve(handler: Callable[[web.Request], Any]) -> str:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app)
        await runner.setup()
        runners.append(runner)
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{runner.addresses[0][1]}"

    yield serve
    for runner in runners:
        await runner.cleanup()


class TestModels:
    async def test_a_server_is_asked_once_which_model_it_has(self, served: Any) -> None:
        asked: list[str] = []

        async def handler(request: web.Request) -> web.Response:
            asked.append(request.path)
            return web.json_response({"data": [{"id": "local-7b"}]})

        it: Any = agent("openai", base_url=f"{await served(handler)}/v1")
        sessions = await asyncio.gather(*(it.open(context(n)) for n in range(AT_ONCE)))
        await it.close()
        assert asked == ["/v1/models"]
        assert {session.model for session in sessions} == {"local-7b"}

    async def test_all_attempts_learn_that_a_server_knows_no_schemas(self, served: Any) -> None:
        refused = 0
        all_sent = asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            nonlocal refused
            if "response_format" in await request.json():
                refused += 1
                if refused == AT_ONCE:
                    all_sent.set()
                await asyncio.wait_for(all_sent.wait(), 30)
                return web.json_response({"error": "no such parameter"}, status=400)
            return web.json_response({"choices": [{"message": {"content": "[]"}}]})

        it: Any = agent("openai", base_url=f"{await served(handler)}/v1", model="m")
        asking = [Request(1, "the rows?", schema={"type": "array"}) for _ in range(AT_ONCE)]
        got = await asyncio.gather(*(talk(it, one) for one in asking))
        await it.close()
        assert [replies[-1].text for _, replies in got] == ["[]"] * AT_ONCE


class TestTokens:
    def _authorization(self, url: str) -> Authorization:
        settings = {"type": "oauth", "tokenUrl": url, "clientId": "{{who}}", "clientSecret": "shhhhhhhhh"}
        given = services()
        return Authorization(settings, given, Scripts(given, "/"), "it", None)

    async def test_one_token_is_asked_for_by_all(self, served: Any) -> None:
        asked: list[str] = []

        async def handler(request: web.Request) -> web.Response:
            asked.append((await request.post())["client_id"])  # type: ignore[arg-type]
            return web.json_response({"access_token": f"token-{len(asked)}", "expires_in": 3600})

        it = self._authorization(await served(handler))
        values: list[dict[str, Any]] = [{"who": "ada"} for _ in range(AT_ONCE)]
        await asyncio.gather(*(it.prepare(own, {}) for own in values))
        await it.close()
        assert asked == ["ada"]
        assert {own["token"] for own in values} == {"token-1"}

    async def test_a_slow_token_keeps_nobody_waiting_for_another(self, served: Any) -> None:
        go = asyncio.Event()

        async def handler(request: web.Request) -> web.Response:
            who = (await request.post())["client_id"]
            if who == "slow":
                await go.wait()
            return web.json_response({"access_token": f"token-of-{who}"})

        it = self._authorization(await served(handler))
        slow, quick = {"who": "slow"}, {"who": "quick"}
        waiting = asyncio.ensure_future(it.prepare(slow, {}))
        await asyncio.wait_for(it.prepare(quick, {}), 30)
        go.set()
        await waiting
        await it.close()
        assert (quick["token"], slow["token"]) == ("token-of-quick", "token-of-slow")


class TestPrograms:
    @pytest.mark.real
    async def test_a_python_agent_is_looked_at_once_and_runs_in_few_processes(self, tmp_path: Path) -> None:
        started = tmp_path / "started"
        (tmp_path / "mine.py").write_text(
            f"import os\nwith open({str(started)!r}, 'a') as log:\n    log.write(f'{{os.getpid()}}\\n')\n"
            "def answer(message):\n    return f'{message} {os.getpid()}'\n",
            encoding="utf-8",
        )
        it = agent("python", tmp_path, function="mine.py:answer")
        got = await asyncio.gather(*(talk(it, f"n{n}", attempt=n) for n in range(AT_ONCE)))
        await it.close()
        assert len(started.read_text().split()) <= PROCESSES
        texts = [replies[-1].text.split() for _, replies in got]
        assert [text[0] for text in texts] == [f"n{n}" for n in range(AT_ONCE)]
        assert len({text[1] for text in texts}) <= PROCESSES
