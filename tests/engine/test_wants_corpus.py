"""Suites that want everything there is to want: whatever a run without trust refuses, the survey named
before; and every function that asks for trust is reached, so that a new one needs a suite here."""

from __future__ import annotations

import ast
import asyncio
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import tui_eval
from tui_eval.config import project
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.wants import wants, wants_of_all, wants_of_jobs
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust

PACKAGE = Path(tui_eval.__file__).parent
ECHO = "prompts: ['{{q}}']\nproviders: [echo]\n"
Q = "vars: {q: a}"


def asserting(text: str) -> str:
    return f"{ECHO}tests: [{{{Q}, assert: [{text}]}}]\n"


def provided(text: str) -> str:
    return f"prompts: ['{{{{q}}}}']\nproviders: [{text}]\ntests: [{{{Q}}}]\n"


def http(text: str) -> str:
    return provided(
        f"{{id: 'URL', config: {{method: POST, body: {{p: '{{{{prompt}}}}'}}, transformResponse: json.text, {text}}}}}"
    )


SUITES = {
    # assertions, at every level
    "py": asserting("{type: python, value: 'len(output) > 0'}"),
    "py-rendered": asserting("{type: python, value: '\"{{q}}\" in output'}"),
    "py-not": asserting("{type: not-python, value: 'len(output) > 9'}"),
    "py-file": asserting("{type: python, value: 'file://a.py:check'}"),
    "py-default": f"{ECHO}defaultTest: {{assert: [{{type: python, value: 'len(output) > 1'}}]}}\ntests: [{{{Q}}}]\n",
    "py-set": asserting("{type: assert-set, assert: [{type: python, value: 'len(output) > 2'}]}"),
    "py-value": asserting("{type: equals, value: 'file://a.py:check'}"),
    "rb": asserting("{type: ruby, value: 'output.length > 0'}"),
    "rb-file": asserting("{type: ruby, value: 'file://a.rb'}"),
    "js-node": asserting("{type: javascript, value: 'require(\"fs\") && true'}"),
    "js-file-node": asserting("{type: javascript, value: 'file://a.js'}"),
    "webhook": asserting("{type: webhook, value: 'http://far.invalid/x'}"),
    "assert-transform": asserting("{type: equals, value: a, transform: 'file://a.py:change'}"),
    "assert-transform-js": asserting("{type: equals, value: a, transform: 'process.env ? output : 1'}"),
    "context-transform": asserting("{type: context-recall, value: a, contextTransform: 'file://a.py:change'}"),
    "value-outside": asserting("{type: equals, value: 'file://OUTSIDE'}"),
    "value-env": asserting("{type: equals, value: '{{ env.WANTED }}'}"),
    "value-include": asserting("{type: equals, value: '{% include \"OUTSIDE\" %}'}"),
    "scoring": f"{ECHO}tests: [{{{Q}, assertScoringFunction: 'file://a.py:score', assert: [{{type: equals, value: a}}]}}]\n",
    "grader": asserting("{type: llm-rubric, value: polite, provider: 'file://a.py:call_api'}"),
    "grader-option": f"{ECHO}tests: [{{{Q}, options: {{provider: 'exec:./a.sh'}}, assert: [{{type: llm-rubric, value: x}}]}}]\n",
    "rubric": f"{ECHO}tests: [{{{Q}, options: {{rubricPrompt: 'file://OUTSIDE'}}, assert: [{{type: llm-rubric, value: x, provider: echo}}]}}]\n",
    "value-env-lines": asserting(r'{type: equals, value: "{{\n env.WANTED\n}}"}'),
    "value-include-lines": asserting(r"""{type: equals, value: "{%\n include 'OUTSIDE'\n%}"}"""),
    "rubric-env-lines": asserting(
        r'{type: llm-rubric, value: x, provider: echo, rubricPrompt: "{{output}} {{\n env.WANTED\n}}"}'
    ),
    "rubric-parts": asserting(
        "{type: g-eval, value: x, provider: echo, rubricPrompt: {steps: 'file://OUTSIDE', evaluate: e}}"
    ),
    "rubric-list": asserting(
        "{type: context-recall, value: x, provider: echo, rubricPrompt: 'file://OUTSIDE'}"
    ),
    "py-file-built": asserting("{type: python, value: 'file://{{q}}.py:check'}"),
    "value-built": asserting("{type: equals, value: 'file://{{q}}.py:check'}"),
    "value-env-built": f"{ECHO}tests: [{{vars: {{q: a, n: WANTED}}, assert: [{{type: equals, value: '{{{{ env[n] }}}}'}}]}}]\n",
    "prompt-env-built": "prompts: ['{{q}} {{ env[n] }}']\nproviders: [echo]\ntests: [{vars: {q: a, n: WANTED}}]\n",
    "include-built": f"{ECHO}tests: [{{vars: {{q: a, n: 'OUTSIDE'}}, assert: [{{type: equals, value: '{{% include n %}}'}}]}}]\n",
    # outputs and tests
    "output-transform": f"{ECHO}tests: [{{{Q}, options: {{transform: 'file://a.py:change'}}}}]\n",
    "output-transform-js": f"{ECHO}defaultTest: {{options: {{transform: 'require(\"os\") ? output : 1'}}}}\ntests: [{{{Q}}}]\n",
    "vars-transform": f"{ECHO}tests: [{{{Q}, options: {{transformVars: 'file://a.py:change'}}}}]\n",
    "vars-transform-js": f"{ECHO}tests: [{{{Q}, options: {{transformVars: 'require(\"os\") && vars'}}}}]\n",
    "provider-transform": provided("{id: echo, transform: 'file://a.py:change'}"),
    # prompts and variables
    "prompt-py": f"prompts: ['file://a.py:prompt']\nproviders: [echo]\ntests: [{{{Q}}}]\n",
    "prompt-js": f"prompts: ['file://a.js:prompt']\nproviders: [echo]\ntests: [{{{Q}}}]\n",
    "prompt-exec": f"prompts: ['exec:./a.sh']\nproviders: [echo]\ntests: [{{{Q}}}]\n",
    "prompt-env": f"prompts: ['{{{{q}}}} {{{{ env.WANTED }}}}']\nproviders: [echo]\ntests: [{{{Q}}}]\n",
    "prompt-include": f"prompts: ['{{{{q}}}} {{% include \"OUTSIDE\" %}}']\nproviders: [echo]\ntests: [{{{Q}}}]\n",
    "prompt-outside": f"prompts: ['file://OUTSIDE']\nproviders: [echo]\ntests: [{{{Q}}}]\n",
    "var-py": f"{ECHO}tests: [{{vars: {{q: 'file://a.py'}}}}]\n",
    "var-outside": f"{ECHO}tests: [{{vars: {{q: 'file://OUTSIDE'}}}}]\n",
    "var-env": f"{ECHO}tests: [{{vars: {{q: 'is {{{{ env.WANTED }}}}'}}}}]\n",
    "var-file-env": f"{ECHO}tests: [{{vars: {{q: 'file://t.txt'}}}}]\n",
    "filter": f"prompts: ['{{{{q | f}}}}']\nproviders: [echo]\nnunjucksFilters: {{f: a.js}}\ntests: [{{{Q}}}]\n",
    "hook": f"{ECHO}extensions: ['file://a.py:hook']\ntests: [{{{Q}}}]\n",
    "generator": f"{ECHO}tests: 'file://a.py:tests'\n",
    "sheet": f"{ECHO}tests: https://docs.google.com/spreadsheets/d/abc/edit\n",
    "dataset": f"{ECHO}tests: 'huggingface://datasets/a/b'\n",
    "spans": f"tracing: {{enabled: true, otlp: {{http: {{enabled: true, host: 0.0.0.0, port: 0}}}}}}\n{ECHO}tests: [{{{Q}}}]\n",
    # providers
    "provider-py": provided("'file://a.py'"),
    "provider-py-own": provided("{id: 'file://a.py', config: {pythonExecutable: ./own/python}}"),
    "provider-js": provided("'file://a.js'"),
    "provider-js-named": f"prompts: [p]\nproviders: ['file://a.js', echo]\ntests: [{{{Q}, providers: [said]}}]\n",
    "provider-rb": provided("'file://a.rb'"),
    "provider-exec": provided("'exec:./a.sh'"),
    "provider-go": provided("'golang:a.go'"),
    "provider-foreign": provided("{id: 'openai:chat:m', config: {apiBaseUrl: 'https://far.invalid/v1'}}"),
    "provider-env": provided("{id: 'openai:chat:m', config: {apiBaseUrl: 'https://far.invalid/v1', apiKey: '{{env.WANTED}}'}}"),
    "provider-tools": provided("{id: 'openai:chat:m', config: {apiBaseUrl: 'URL', apiKey: k, tools: 'file://a.js'}}"),
    "http-request": http("transformRequest: 'file://a.py:change'"),
    "http-request-js": http("transformRequest: '({p: require(\"os\") ? prompt : 1})'"),
    "http-request-file-js": http("transformRequest: 'file://a.js'"),
    "http-response": http("validateStatus: 'process.pid > 0'"),
    "http-session": http("sessionParser: 'require(\"os\") && \"s\"'"),
    "http-tls": http("tls: {rejectUnauthorized: false}"),
    "http-tls-file": http("tls: {caPath: 'OUTSIDE'}"),
    "http-auth": http("auth: {type: file, path: 'a.py'}"),
    "http-form": provided("{id: 'URL', config: {method: POST, multipart: {parts: [{kind: file, name: f, source: {type: path, path: 'file://OUTSIDE'}}]}}}"),
}  # fmt: skip
CONFIG = """\
agents:
  model: {type: openai, base_url: 'URL', model: m, tools: [{type: python, function: 'tools.py:search'}]}
  told: {type: openai, base_url: 'URL', model: m, system: 'file://OUTSIDE'}
  code: {type: python, function: 'agent.py:answer'}
  program: {type: command, command: [./agent.sh, 'a b']}
  wrapped: {type: command, command: [./agent.sh], env: {PYTHONPATH: '${WANTED}:lib'}}
  far: {type: openai, base_url: 'https://far.invalid/v1', model: m, api_key: '${WANTED}'}
  secret: {type: openai, base_url: 'https://far.invalid/v1', model: m, api_key: written-in-the-file}
  networks: {type: neuro-san, python: /nowhere/python, network: n}
  any: {type: litellm, model: bedrock/m}
databases:
  outside: {type: sqlite, path: 'OUTSIDE'}
  linked: {type: files, path: rows}
  server: {type: postgres, url: 'postgresql://far.invalid/d'}
"""
GUIDE = """\
agent: {agent}
test_cases: [{{name: n, input: hello, expected: {{should_contain: [x]}}}}]
"""
AGENTS = ("model", "told", "code", "program", "wrapped", "far", "secret", "networks", "any")
FILES = {
    "a.py": "def check(output, context): return True\ndef change(*a): return a[0]\ndef score(*a): return "
    "{'pass': True, 'score': 1, 'reason': ''}\ndef prompt(context): return 'p'\ndef hook(*a): return None\n"
    "def tests(*a): return [{'vars': {'q': 'a'}}]\ndef get_var(*a): return {'output': 'v'}\n"
    "def call_api(*a): return {'output': 'x'}\ndef get_auth(*a): return {'token': 't'}\n",
    "a.js": "require('os');\nmodule.exports = () => true;\nmodule.exports.prompt = () => 'p';\n",
    "a.rb": "def get_assert(output, context)\n  true\nend\n",
    "a.sh": "#!/bin/sh\necho x\n",
    "t.txt": "{{ env.WANTED }}",
}
NOT_HERE = {
    "engine/places/chosen_place.py:check_place": "refuses the whole run before anything is made",
    "agents/models/lite_llm.py:__init__": "LiteLLM is installed apart",
    "agents/nao/nao_auth.py:__init__": "the sign-in of a person's own home",
    "agents/entry_options.py:usual_secret": "NAO_PASSWORD alone",
    "scripting/__init__.py:__iter__": "there is something to ask once the .env is read, which is agreed to first",
    "agents/promptfoo/promptfoo_env.py:_require_host": "asked where the variable may be read",
    "config/config_values.py:check_said": "asked where the variable may be read",
    "agents/programs/suite_scripts.py:value": "asked when the agent is made, by suite_scripts:_Named",
    "formats/promptfoo/judge/code.py:ruby": "asked before the agent is, by code:check_code",
}


class _Answers(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b'{"text": "x", "choices": [{"message": {"role": "assistant", "content": "x"}}]}'
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def root(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WANTED", "a-value-of-the-person")
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-person")
    (tmp_path / "outside.txt").write_text("x", "utf-8")
    root = tmp_path / "project"

    def write(name: str, text: str) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("URL", url).replace("OUTSIDE", str(tmp_path / "outside.txt")), "utf-8")
        path.chmod(0o755)

    write("tui_eval.yaml", CONFIG)
    write("nao_config.yaml", "project_name: n\ntest:\n  models: [\"{{ env('WANTED') }}\"]\n")
    for agent in AGENTS:
        write(f"{agent}.yaml", GUIDE.format(agent=agent))
    write("tests/rows.yaml", "name: rows\nprompt: p\nsql: SELECT 1\ndatabase: outside\nagent: code\n")
    write("tests/server.yaml", "name: server\nprompt: p\nsql: SELECT 1\ndatabase: server\nagent: code\n")
    write("tests/linked.yaml", "name: linked\nprompt: p\nsql: SELECT 1\ndatabase: linked\nagent: program\n")
    write("rows/own.csv", "a\n1\n")
    (root / "rows" / "l.csv").symlink_to(tmp_path / "outside.txt")
    write("agent.py", "def answer(text):\n    return 'x'\n")
    write("tools.py", "def search(query):\n    return 'x'\n")
    write("agent.sh", "#!/bin/sh\necho x\n")
    write("net.hocon", 'agent = n\nconnections = [direct]\na = ${?WANTED}\nb = ${?OPENAI_API_KEY}\ninteractions = [{ text = hi }]\n')  # fmt: skip
    for name, text in SUITES.items():
        write(f"{name}/promptfooconfig.yaml", text)
        for file, content in FILES.items():
            write(f"{name}/{file}", content)
    return root


def asking() -> set[str]:
    """The functions of the package that ask for trust, found in its source."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(("guard/", "commands/")) or name == "engine/wants.py":
            continue
        text = path.read_text("utf-8")
        if "require" not in text:
            continue
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            for call in ast.walk(function):
                asked = call.func if isinstance(call, ast.Call) else None
                if not isinstance(asked, ast.Attribute) or asked.attr != "require":
                    continue
                if ast.unparse(asked.value).endswith("trust"):
                    found.add(f"{name}:{function.name}")
    return found


class _Refusals:
    """What was refused, and by which functions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.whats: set[str] = set()
        self.asked: set[str] = set()
        require = Trust.require

        def watched(trust: Trust, what: str) -> None:
            frame = sys._getframe(1)
            for _ in range(4):
                path = Path(frame.f_code.co_filename)
                if path.is_relative_to(PACKAGE):
                    self.asked.add(f"{path.relative_to(PACKAGE).as_posix()}:{frame.f_code.co_name}")
                if frame.f_back is None:
                    break
                frame = frame.f_back
            if not trust.granted and what not in trust.agreed:
                self.whats.add(what)
            require(trust, what)

        monkeypatch.setattr(Trust, "require", watched)


def surveyed(root: Path, agreed: frozenset[str] = frozenset()) -> list[str]:
    settings, trust = project.load([root]), Trust(agreed=agreed)
    return wants(reading.load_all([root], settings, trust), settings, trust)


@pytest.mark.real
@pytest.mark.usually(1)
async def test_whatever_a_run_refuses_was_foreseen(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    foreseen = await asyncio.to_thread(surveyed, root)
    seen = _Refusals(monkeypatch)
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], attempts=1))
    listed = await asyncio.to_thread(wants_of_jobs, active.jobs, active.config, active.environment.trust)
    seen.whats.clear()
    await active.execute()
    assert seen.whats - set(foreseen) == set()
    assert seen.whats - set(listed) == set()
    assert len(seen.whats) > 40
    assert asking() - seen.asked - NOT_HERE.keys() == set()


NETWORKS = """\
agents:
  neuro-san: {type: neuro-san, python: /nowhere/python, manifest: OUTSIDE/m.hocon, tool_path: OUTSIDE/tools, HEADERS}
judge: {type: neuro-san, python: /elsewhere/python, manifest: OUTSIDE/judge.hocon, tool_path: OUTSIDE/judging}
"""


@pytest.mark.parametrize("headers", ["headers: {x-tok: '${NOBODY_SET_THIS}'}", "network: n"])
def test_all_that_networks_want_is_listed_at_once(tmp_path: Path, headers: str) -> None:
    """Python, manifest and tools, of an agent and of a judge: none is asked for after a run has failed."""
    root = tmp_path / "project"
    root.mkdir()
    outside = tmp_path / "outside"
    (root / "tui_eval.yaml").write_text(NETWORKS.replace("OUTSIDE", str(outside)).replace("HEADERS", headers))
    (root / "net.hocon").write_text(
        "agent = n\nconnections = [direct]\ninteractions = [{ text = hi, response { text { keywords = [x], gist = kind } } }]\n"
    )
    wanted = [
        f"{begin} {what}"
        for begin, what in (
            ("run agent networks with", "/nowhere/python (the agent neuro-san)"),
            ("run agent networks with", "/elsewhere/python (the agent judge)"),
            *(("read", f"{outside}/{name}") for name in ("m.hocon", "tools", "judge.hocon", "judging")),
        )
    ]
    listed = surveyed(root)
    assert set(listed) == set(wanted), listed
    active = prepare(RunRequest(paths=[str(root)], attempts=1))
    before = wants_of_jobs(active.jobs, active.config, active.environment.trust)
    assert set(before) == set(wanted), before


def test_networks_are_run_by_a_python_only_where_a_case_says_direct_and_a_server_is_named(
    tmp_path: Path,
) -> None:
    """A run over http asked for trust in a Python and its files, and said that cases without it are errors."""
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  neuro-san: {type: neuro-san, python: /nowhere/python, url: 'http://127.0.0.1:1'}\n"
    )
    suite = "agent = n\nconnections = [http]\ninteractions = [{ text = hi }]\n"
    (tmp_path / "net.hocon").write_text(suite)
    assert surveyed(tmp_path) == []
    networks = ["run agent networks with /nowhere/python (the agent neuro-san)"]
    assert wants_of_all(project.load([tmp_path])) == networks
    (tmp_path / "net.hocon").write_text(suite.replace("[http]", "[http, direct]"))
    assert surveyed(tmp_path) == networks


def test_networks_that_our_own_python_runs_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`direct` needs no Python named where neuro-san is installed beside us."""
    from tui_eval.agents.neuro_san import neuro_san_library

    monkeypatch.setattr(neuro_san_library.importlib.util, "find_spec", lambda name: object())
    (tmp_path / "tui_eval.yaml").write_text("")
    (tmp_path / "net.hocon").write_text("agent = n\nconnections = [http]\ninteractions = [{ text = hi }]\n")
    assert surveyed(tmp_path) == []
    (tmp_path / "net.hocon").write_text(
        "agent = n\nconnections = [http, direct]\ninteractions = [{ text = hi }]\n"
    )
    assert surveyed(tmp_path) == [f"run agent networks with {sys.executable} (the agent neuro-san)"]
