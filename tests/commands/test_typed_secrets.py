"""Secrets that a person types stand in nothing that is kept or printed, and what is printed to be run again says so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.commands.conftest import Cli
from tests.commands.test_printed_commands import cut_off
from tui_eval.agents import choose
from tui_eval.guard.masker import Masker
from tui_eval.store.printed_commands import shell_line

SUITE = "agent: offline\ntest_cases:\n  - {name: one, input: hello, expected: {should_contain: [zzz]}}\n"
PROMPTFOO = """
prompts: ["say {{api_token}} {{n}}"]
providers: ["python:slow.py"]
tests:
"""
SLOW = "import time\ndef call_api(prompt, options, context):\n    time.sleep(0.3)\n    return {'output': prompt}\n"


class Handler(BaseHTTPRequestHandler):
    """Repeats what it was sent."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        said = f"{self.path} {self.headers.get('Authorization')}"
        body = json.dumps({"response": said}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def kept(root: Path) -> bytes:
    return b"".join(
        path.read_bytes() for path in root.rglob("*") if path.is_file() and ".tui-eval" in path.parts
    )


@pytest.mark.parametrize(("password", "token"), [("hunter2hunter", "tok12345678"), ("pw1", "t1t")])
def test_an_address_is_masked_in_all_that_is_kept_and_printed(
    cli: Cli, port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, token: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suite.yaml").write_text(SUITE)
    address = f"http://anna:{password}@127.0.0.1:{port}/chat?token={token}"
    result = cli("run", "suite.yaml", "--agent", address, "-o", "r.json", "-o", "r.junit.xml", "-o", "r.html")
    assert result.code == 1
    shown = cli("show", "last").out
    files = b"".join((tmp_path / f"r.{kind}").read_bytes() for kind in ("json", "junit.xml", "html"))
    everything = (result.out + result.err + shown).encode() + files + kept(tmp_path)
    assert password.encode() not in everything and f"token={token}".encode() not in everything
    assert b"anna:" in everything
    again = next(line for line in result.out.splitlines() if "again:" in line)
    assert '"${PASSWORD:?' in again and '"${TOKEN:?' in again
    monkeypatch.setattr(choose, "_typed", {})  # as in another process
    judged = cli("rescore", "last")
    assert judged.code == 1 and "0 passed, 1 failed, 1 total" in judged.out and "?token=•••]" in judged.err
    asked = cli("run", "suite.yaml", "--failed")
    assert (
        asked.code == 1 and "masked there is in no record; give the whole address with --agent" in asked.out
    )


@pytest.mark.real
def test_a_secret_variable_is_masked_and_the_printed_command_works_where_it_is_set(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    rows = "".join(
        f"  - vars: {{n: {n}}}\n    assert: [{{type: contains, value: sk-very}}]\n" for n in range(12)
    )
    (tmp_path / "promptfooconfig.yaml").write_text(PROMPTFOO + rows)
    (tmp_path / "suite.yaml").symlink_to("promptfooconfig.yaml")
    told = cut_off(tmp_path, "-c", "promptfooconfig.yaml", "--trust", "--var", "api_token=sk-very-secret-1")
    assert '--var api_token="${API_TOKEN:?' in told
    assert b"sk-very-secret-1" not in kept(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW.replace("time.sleep(0.3)", "pass"))
    line = told.replace("tui-eval", f"{sys.executable} -m tui_eval", 1)

    def typed(**variables: str) -> subprocess.CompletedProcess[str]:
        assigned = "".join(f"{name}={value}; " for name, value in variables.items())
        return subprocess.run(
            ["bash", "-c", assigned + line], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )

    unset = typed()
    assert unset.returncode != 0 and "API_TOKEN: masked here, set it first" in unset.stderr
    forgotten = subprocess.run(
        [sys.executable, "-m", "tui_eval", "resume", "--trust"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert forgotten.returncode == 4 and "--var api_token" in forgotten.stderr
    done = typed(API_TOKEN="sk-very-secret-1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert b"sk-very-secret-1" not in kept(tmp_path)


def test_each_secret_of_a_printed_command_has_a_name_of_its_own_that_no_shell_has_set() -> None:
    address = "http://anna:•••@h/c?password=•••&pwd=•••&path=•••"
    line = shell_line(["echo", "--agent", address, "--var", "password=•••", "--var", "HOME=•••"])
    names = re.findall(r"\{(\w+):\?", line)
    assert names == ["PASSWORD", "PASSWORD_2", "SECRET_PWD", "SECRET_PATH", "PASSWORD_3", "SECRET_HOME"]

    def done(setting: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["bash", "-c", f"{setting}{line}"], capture_output=True, text=True, timeout=60)

    given = [f"{name}=s{number}" for number, name in enumerate(names)]
    for left_out in range(len(given)):
        some = "; ".join([*given[:left_out], *given[left_out + 1 :], ""])
        refused = done(f"unset {names[left_out]}; {some}")
        assert refused.returncode != 0 and f"{names[left_out]}: masked here, set it first" in refused.stderr
    assert done("; ".join([*given, ""])).stdout.split() == [
        *("--agent", "http://anna:s0@h/c?password=s1&pwd=s2&path=s3"),
        *("--var", "password=s4", "--var", "HOME=s5"),
    ]


def test_a_short_secret_variable_is_kept_nowhere(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow.py").write_text(SLOW.replace("time.sleep(0.3)", "pass"))
    rows = "  - {vars: {n: 1}, assert: [{type: contains, value: zzz}]}\n"
    prompt = PROMPTFOO.replace("{{api_token}} {{n}}", "{{api_token}} {{n}} testing")
    (tmp_path / "promptfooconfig.yaml").write_text(prompt + rows)
    names = ("json", "csv", "html", "junit.xml", "md")
    outputs = [word for name in names for word in ("-o", f"r.{name}")]
    typed = ["--var", "api_token=vv1q7h", "--var", "DB_PASS=w9", "--var", "password=test"]
    result = cli("run", "-c", "promptfooconfig.yaml", "--trust", *typed, *outputs)
    assert result.code == 1, result.err
    shown = cli("show", "last", "--all").out + cli("show", "last").out
    files = b"".join((tmp_path / f"r.{name}").read_bytes() for name in names)
    everything = (result.out + result.err + shown).encode() + files + kept(tmp_path)
    assert b"vv1q7h" not in everything
    assert b"testing" in everything  # a word is no secret wherever it stands, but it is under its name
    variables = json.loads((tmp_path / "r.json").read_text())
    assert '"DB_PASS": "w9"' not in json.dumps(variables) and '"password": "test"' not in json.dumps(
        variables
    )
    assert '"password": "•••"' in json.dumps(variables, ensure_ascii=False)


def test_a_secret_in_what_a_run_is_for_is_kept_nowhere(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", "supersecretvalue1234")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tui_eval.yaml").write_text("agents: {offline: {type: echo}}")
    (tmp_path / "suite.yaml").write_text(SUITE)
    ran = cli(
        "run", ".", "--description", "with supersecretvalue1234", "-o", "r.json", "-o", "r.promptfoo.json"
    )
    assert ran.code == 1
    assert json.loads((tmp_path / "r.json").read_text())["run"]["provenance"]["description"] == "with •••"
    for written in (
        kept(tmp_path),
        (tmp_path / "r.json").read_bytes(),
        (tmp_path / "r.promptfoo.json").read_bytes(),
    ):
        assert b"supersecret" not in written


def test_a_secret_in_json_within_json_is_masked() -> None:
    secret = "a 'b\"c$dq7k"
    masker = Masker([secret])
    once = json.dumps({"k": secret})
    assert "dq7k" not in masker.text(json.dumps({"inner": once})) + masker.text(once) + masker.text(secret)


def test_secrets_in_a_whole_request_and_in_a_webhook_s_address_are_in_no_record(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int
) -> None:
    monkeypatch.chdir(tmp_path)
    request = "POST /c?access_token=query-1234 HTTP/1.1\nHost: 127.0.0.1\nAuthorization: Bearer header-1234\n\n{{prompt}}"
    suite = {
        "prompts": ["say {{x}}"],
        "providers": [{"id": "http", "config": {"url": f"http://127.0.0.1:{port}", "request": request}}],
        "tests": [
            {
                "vars": {"x": "hi"},
                "assert": [{"type": "webhook", "value": f"http://127.0.0.1:{port}/w?token=webhook-1234"}],
            }
        ],
    }
    (tmp_path / "promptfooconfig.json").write_text(json.dumps(suite))
    files = ["o.json", "o.html", "o.csv", "o.junit.xml", "o.promptfoo.json"]
    done = cli("run", ".", "--trust", "--cache", *(word for file in files for word in ("-o", file)))
    assert done.code == 1
    said = cli("show", "last", "hi").out
    shown = done.out + done.err + said + "".join(Path(file).read_text() for file in files)
    assert "/c?access_token=" in shown  # the server's answer, which repeats it
    for secret in ("query-1234", "header-1234", "webhook-1234"):
        assert secret not in shown and secret.encode() not in kept(tmp_path), secret
