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
from tui_eval.agents import AgentError, Request, create, for_provider
from tui_eval.config.project import Config, ConfigError
from tui_eval.events import Note
from tui_eval.guard.trust import NeedsTrust

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
