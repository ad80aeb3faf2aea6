"""promptfoo providers that are Ruby files, run by the `ruby` of this machine."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import provider
from tests.support.agents import of, services, talk
from tests.support.waiting import until
from tui_eval.agents import AgentError, Request, Services, create, for_provider
from tui_eval.config.project import Config, ConfigError
from tui_eval.events import Note
from tui_eval.guard.trust import NeedsTrust, Trust

needs_ruby = pytest.mark.skipif(shutil.which("ruby") is None, reason="there is no ruby")

CODE = """
require_relative 'beside'
def call_api(prompt, options, context)
  puts 'printed'
  { output: prompt + suffix + context['vars']['v'].to_s, metadata: options, tokenUsage: { prompt: 2, completion: 3 } }
end
def says_error(prompt, options, context) = { error: 'no such order' }
def nothing(prompt, options, context) = { text: 1 }
def fails(prompt, options, context) = raise(ArgumentError, 'boom')
def leaves(prompt, options, context) = exit(0)
def sleeps(prompt, options, context)
  File.write('pid', Process.pid.to_s)
  sleep 60
end
class Own
  def self.run(prompt, options, context) = { output: { a: 1 } }
end
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "p.rb").write_text(CODE)
    (tmp_path / "beside.rb").write_text("def suffix = '!'\n")
    return tmp_path


@needs_ruby
@pytest.mark.parametrize("name", ["ruby:p.rb", "file://p.rb", "ruby:p.rb:call_api"])
async def test_a_ruby_file(folder: Path, name: str) -> None:
    agent = provider({"id": name, "config": {"a": 1}}, folder)
    events, replies = await talk(agent, Request(1, "hi", vars={"v": 2}))
    assert replies[0].text == "hi!2" and replies[0].usage is not None
    config = {"a": 1, "basePath": str(folder)}
    assert replies[0].metadata == {"id": name, "config": config, "env": {}}
    assert [event.text for event in of(events, Note)] == ["printed: printed"]


@needs_ruby
async def test_a_method_of_a_class(folder: Path) -> None:
    _, replies = await talk(provider("ruby:p.rb:Own.run", folder), "hi")
    assert replies[0].output == {"a": 1}


@needs_ruby
@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("says_error", "^no such order$"),
        ("nothing", "must return output or error"),
        ("fails", r"^p\.rb: .*boom \(ArgumentError\)$"),
        ("missing", r"^p\.rb: .*undefined method .missing."),
        ("leaves", r"^p\.rb: leaves ended without an answer$"),
    ],
)
async def test_what_fails_is_said(folder: Path, function: str, said: str) -> None:
    with pytest.raises(AgentError, match=said):
        await talk(provider(f"ruby:p.rb:{function}", folder), "hi")


@needs_ruby
async def test_a_call_that_is_cut_is_killed(folder: Path) -> None:
    task = asyncio.ensure_future(talk(provider("ruby:p.rb:sleeps", folder), "hi"))
    place = folder / "pid"
    await until(lambda: place.is_file() and place.read_text())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(ProcessLookupError):
        os.kill(int(place.read_text()), 0)


def test_what_cannot_be_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("ruby") is not None:
        with pytest.raises(ConfigError, match=r"there is no file none\.rb"):
            provider("ruby:none.rb", folder)
    with pytest.raises(ConfigError, match="there is no no-such-ruby on the PATH"):
        provider({"id": "ruby:p.rb", "config": {"rubyExecutable": "no-such-ruby"}}, folder)
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PROMPTFOO_RUBY", raising=False)
    with pytest.raises(ConfigError, match="there is no ruby on the PATH"):
        provider("ruby:p.rb", folder)


def test_it_needs_trust(folder: Path) -> None:
    spec = for_provider("ruby:p.rb", Config(folder), folder)
    with pytest.raises(NeedsTrust, match=r"run p\.rb"):
        create(spec, services(folder, trusted=False))


# -- Files that the config of a script names.


@pytest.fixture
def named(folder: Path) -> Path:
    (folder / "p.py").write_text(
        "def call_api(prompt, options, context):\n    return {'output': options['config']}\n"
    )
    (folder / "system.txt").write_text("be kind\n")
    (folder / "more.json").write_text('{"a": ["file://system.txt"]}')
    (folder / "more.yaml").write_text("b: [1]\n")
    (folder / "c.py").write_text(
        "def get_config():\n    open('ran', 'a').write('x')\n    return {'c': 2}\ndef own(): return 'o'\n"
    )
    return folder


CONFIG = {
    "t": "file://system.txt",
    "in": [{"j": "file://more.json"}, "file://more.yaml"],
    "plain": "system.txt",
}
READ = {"t": "be kind\n", "in": [{"j": {"a": ["file://system.txt"]}}, {"b": [1]}], "plain": "system.txt"}


@pytest.mark.parametrize("name", ["file://p.py", pytest.param("ruby:r.rb", marks=needs_ruby)])
async def test_files_that_the_config_of_a_python_or_ruby_provider_names_are_read(
    named: Path, name: str
) -> None:
    (named / "r.rb").write_text("def call_api(prompt, options, context) = { output: options['config'] }\n")
    agent = provider({"id": name, "config": CONFIG}, named)
    _, replies = await talk(agent, Request(1, "hi"))
    assert replies[0].output == {**READ, "basePath": str(named)}


async def test_code_that_a_config_names_runs_once_for_all_attempts(named: Path) -> None:
    config = {"made": "file://c.py", "again": ["file://c.py:own", "file://c.py"], "data": "file://more.json"}
    agent = provider({"id": "file://p.py", "config": config}, named)
    await talk(agent, Request(1, "hi"))
    _, replies = await talk(agent, Request(1, "hi"))
    assert (named / "ran").read_text() == "x"
    made = {"made": {"c": 2}, "again": ["o", {"c": 2}], "data": {"a": ["file://system.txt"]}}
    assert replies[0].output == {**made, "basePath": str(named)}


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize("code", ["module.exports = {d: 3}", "module.exports = async () => ({d: 3})"])
async def test_a_config_may_be_what_javascript_exports(named: Path, code: str) -> None:
    (named / "c.js").write_text(code)
    agent = provider({"id": "file://p.py", "config": {"made": "file://c.js"}}, named)
    _, replies = await talk(agent, Request(1, "hi"))
    assert replies[0].output == {"made": {"d": 3}, "basePath": str(named)}
    await agent.close()


def test_a_file_of_a_config_that_is_not_there_is_said(named: Path) -> None:
    with pytest.raises(ConfigError, match=r"p\.py: config\.t: file://no\.txt: No such file"):
        provider({"id": "file://p.py", "config": {"t": "file://no.txt"}}, named)
    with pytest.raises(AgentError, match=r"config: there is no file no\.py"):
        provider({"id": "file://p.py", "config": {"t": "file://no.py"}}, named)


async def test_secrets_in_files_that_a_config_names_are_masked(named: Path) -> None:
    (named / "key.txt").write_text("a-key-in-a-file\n")
    (named / "own.json").write_text('{"password": "a-password-in-json"}')
    (named / "made.py").write_text("def get_config(): return {'token': 'a-token-that-was-made'}")
    config = {"apiKey": "file://key.txt", "own": "file://own.json", "made": "file://made.py"}
    hidden: list[str] = []
    given = Services(root=named, trust=Trust(granted=True), conceal=hidden.append)
    agent = create(for_provider({"id": "file://p.py", "config": config}, Config(named), named), given)
    await talk(agent, Request(1, "hi"))
    assert {*hidden} >= {"a-key-in-a-file", "a-password-in-json", "a-token-that-was-made"}


@needs_ruby
def test_code_that_a_config_names_is_not_in_the_time_of_ruby(named: Path) -> None:
    (named / "r.rb").write_text("")
    assert not provider({"id": "ruby:r.rb", "config": CONFIG}, named).preparing
    assert provider({"id": "ruby:r.rb", "config": {"c": "file://c.py"}}, named).preparing


def test_code_that_a_config_names_is_asked_about(named: Path) -> None:
    spec = for_provider({"id": "file://p.py", "config": {"t": "file://c.py"}}, Config(named), named)
    with pytest.raises(NeedsTrust, match=r"c\.py"):
        create(
            spec,
            Services(
                root=named, trust=Trust(agreed=frozenset({"run p.py:call_api (the agent file://p.py)"}))
            ),
        )
