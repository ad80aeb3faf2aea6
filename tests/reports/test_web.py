"""Results in a browser: what is served, and to whom not."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.store.test_store import attempt, start
from tests.tui.app_host import LiveRun
from tests.waiting import until


def begin(folder: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tui_eval", "server", "--port", str(port)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture
async def served(tmp_path: Path):
    writer, refs = start(tmp_path, 2, 1)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, response_text="<script>alert(1)</script>"))
    writer.state("finished", 2000.0)
    writer.close()
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = begin(tmp_path, port)

    def listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await until(listening)
    yield f"http://127.0.0.1:{port}", writer.info.id, process
    process.terminate()
    process.wait(10)


def get(url: str, **headers: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


async def test_runs_and_their_pages(served) -> None:
    base, run, _ = served
    status, home = get(base)
    assert status == 200 and f'href="/runs/{run}"' in home
    status, page = get(f"{base}/runs/{run}")
    assert status == 200 and "1 of 2 cases passed" in page and "<script>" not in page
    assert '<a href="/">All runs</a>' in page and f'href="/api/runs/{run}" download="{run}.json"' in page
    assert run in get(f"{base}/api/runs")[1]
    assert '"pass_metrics"' in get(f"{base}/api/runs/{run}")[1]
    assert get(f"{base}/runs/..%2f..%2fetc")[0] == get(f"{base}/api/runs/none")[0] == 404


async def test_other_sites_are_refused(served) -> None:
    base, run, _ = served
    assert get(f"{base}/api/runs/{run}", Host="evil.example")[0] == 403
    assert get(f"{base}/api/runs/{run}", Origin="http://evil.example")[0] == 403
    assert get(f"{base}/api/runs/{run}", Origin=base)[0] == 200


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "tui_eval", "server", "--port", port]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 4 and "give another with --port" in done.stderr


def test_the_list_of_runs_shows_rates_states_and_a_trend(tmp_path: Path) -> None:
    from tui_eval.reports.web import _home

    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    assert "No runs yet" in _home(tmp_path)
    runs = []
    for number in range(3):
        linked = runs[0].info.id if number == 2 else None
        run = LiveRun(tmp_path, ["a", "b"], linked_to=linked)
        run.all_done(["passed", "failed" if number == 1 else "passed"])
        runs.append(run)
    home = _home(tmp_path)
    assert "Pass rate of 2 runs, oldest at the left; the last 50%" in home and home.count("<rect") == 2
    assert f"adds to {runs[0].info.id}" in home and '<td class="number">100%' in home
    assert "<script" not in home and "default-src 'none'" in home
