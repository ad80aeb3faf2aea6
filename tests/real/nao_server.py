"""The real nao backend on loopback (nao-core from PyPI), its model played by a mock."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.processes import (
    CACHE,
    NotHere,
    ended_after,
    environment,
    until_healthy,
    virtual_environment,
)
from tests.servers import OpenAIServer, Planned
from tests.servers.base import Seen
from tests.support.ports import free_port

VERSION = "0.3.29"
EMAIL, PASSWORD = "tester@example.org", "secret-password"
PROJECT = Path(__file__).parent / "nao_project"
MODEL = "openaiCompatible/mock:m1"
OTHER = "openaiCompatible/mock:m2"

TABLES = """
CREATE TABLE orders AS SELECT * FROM (VALUES
  (1, 'paid', 100.50, DATE '2024-01-05'), (2, 'paid', 44.50, DATE '2024-01-06'),
  (3, 'open', 250000.00, DATE '2024-02-01'), (4, NULL, 7.125, DATE '2024-02-02')) t(id, status, amount, day);
CREATE TABLE nothing (id INTEGER);
"""


@dataclass
class Running:
    """A backend with a project and a user, the mock model behind it, and nao's own command line."""

    url: str
    project: Path
    home: Path
    model: OpenAIServer
    nao: Path

    def environment(self, **more: str) -> dict[str, str]:
        """What command lines of this user run with."""
        mine = {"HOME": str(self.home), "BACKEND_URL": self.url}
        return environment(**{**mine, "NAO_USERNAME": EMAIL, "NAO_PASSWORD": PASSWORD, **more})


def installed() -> tuple[Path, Path]:
    """The folder of nao's programs, and a home folder with its DuckDB engine; both made once and kept.

    Raises:
        NotHere: one of them cannot be installed.
    """
    python = virtual_environment(f"nao-core-{VERSION}", sys.executable, [f"nao-core[duckdb]=={VERSION}"])
    # The engine that verifies answers is no part of the wheel; nao's own code fetches it from npm.
    fetch = "from nao_core import native; print(native.ensure_group(native.server_bin_dir(), 'duckdb'))"
    home = CACHE / f"nao-home-{VERSION}"
    home.mkdir(parents=True, exist_ok=True)
    said = _said([python, "-c", fetch], HOME=str(home))
    if not said.endswith("True"):
        raise NotHere(f"nao cannot fetch its DuckDB engine: {said[-200:]}")
    return python.parent, home


def _said(command: list[Any], **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    return (done.stdout if done.returncode == 0 else done.stderr).strip()


def decide(seen: Seen) -> Planned:
    """The mock model: does what the test's prompt says after `!!`.

    `!!sql Q` calls execute_sql, `!!verify Q` answers the verification ({} is the query's table),
    `!!say T` is the answer, `!!sleep S` waits before it, `!!broken` is an error of the provider.
    """
    messages = seen.body["messages"]
    texts = [_text(message.get("content")) for message in messages]
    asked = next((text for text in texts if "!!" in text), "")
    told = {key: value.strip() for key, value in re.findall(r"!!(\w+)([^!]*)", asked)}
    if "response_format" in seen.body:
        table = re.search(r"query_\w+", texts[-1])
        query = told.get("verify", "SELECT * FROM {}").replace("{}", table[0] if table else "none")
        return Planned(text=json.dumps({"sql": None if query == "nothing" else query}))
    if "broken" in told:
        return Planned(status=400, body={"error": {"message": "the model is broken"}})
    if messages[-1]["role"] != "tool" and "sql" in told and seen.body.get("tools"):
        arguments = {"sql_query": told["sql"], "database_id": "shop", "name": "a query"}
        return Planned(tool_calls=[("execute_sql", arguments)])
    return Planned(text=told.get("say", "As the table shows."), delay=float(told.get("sleep", 0)))


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or [] if isinstance(part, dict))


@contextmanager
def serving(folder: Path) -> Iterator[Running]:
    """The chat server and its SQL sidecar, ended at the end; their logs are in `folder`.

    Raises:
        NotHere: nao-core cannot be had here.
    """
    import duckdb

    programs, home = installed()
    with OpenAIServer(default=decide) as model:
        project = folder / "project"
        shutil.copytree(PROJECT, project)
        config = (project / "nao_config.yaml").read_text().replace("MODEL_URL", model.base)
        (project / "nao_config.yaml").write_text(config)
        with duckdb.connect(str(project / "shop.duckdb")) as connection:
            connection.execute(TABLES)
        port, side_port = free_port(), free_port()
        server = _start(folder, programs, home, project, model.base, port, side_port)
        running = Running(f"http://127.0.0.1:{port}", project, folder / "home", model, programs / "nao")
        # `nao test` looks for the engine below its own home.
        shutil.copytree(home / ".nao", running.home / ".nao", symlinks=True)
        with ended_after(*server, by=signal.SIGINT):  # SIGTERM waits for requests
            until_healthy(f"{running.url}/api/health", server[0], folder / "log")
            _post(running.url, "/api/auth/sign-up/email", email=EMAIL, password=PASSWORD, name="Tester")
            yield running


def _start(
    folder: Path, programs: Path, home: Path, project: Path, model: str, port: int, side_port: int
) -> list[subprocess.Popen[bytes]]:
    package = next((programs.parent / "lib").glob("python3*")) / "site-packages" / "nao_core" / "bin"
    native = next((home / ".nao" / "native").glob("duckdb-*"))
    variables = {
        "HOME": str(home),
        "BETTER_AUTH_SECRET": "a secret of the test, long enough",
        "BETTER_AUTH_URL": f"http://127.0.0.1:{port}",
        "DB_URI": f"sqlite:{folder}/nao.db",
        "NAO_DEFAULT_PROJECT_PATH": str(project),
        "FASTAPI_PORT": str(side_port),
        "MODE": "prod",
        "NODE_PATH": str(native),
        "NAO_CORE_VERSION": VERSION,
        "POSTHOG_DISABLED": "true",
        "OPENAI_COMPATIBLE_BASE_URL": model,
    }
    with (folder / "log").open("wb") as out:
        # It reloads on edits below its folder, which must not be one in which runs write.
        (folder / "still").mkdir()
        sidecar = subprocess.Popen(
            [programs / "python", package / "fastapi" / "main.py"],
            env=environment(**variables, PORT=str(side_port)), stdout=out, stderr=out, cwd=folder / "still",
        )  # fmt: skip
        chat = subprocess.Popen(
            [package / "nao-chat-server", "--host", "127.0.0.1", "--port", str(port)],
            env=environment(**variables), stdout=out, stderr=out, cwd=package,
        )  # fmt: skip
    return [chat, sidecar]


def _post(url: str, path: str, **body: str) -> None:
    headers = {"Content-Type": "application/json"}
    urllib.request.urlopen(
        urllib.request.Request(url + path, json.dumps(body).encode(), headers), timeout=30
    ).close()
