"""Results in a browser: what is served, and to whom not."""

from __future__ import annotations

import asyncio
import html
import http.cookiejar
import signal
import socket
import sqlite3
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from subprocess import PIPE

import msgspec
import pytest

from tests.store.test_store import attempt, start
from tests.support.attempts import HOSTILE
from tests.support.live_run import LiveRun
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.tui.screens.test_compare_screen import run_of_agents
from tui_eval.guard.text import CONTROL_TABLE
from tui_eval.reports.html_templates import render
from tui_eval.reports.web_compare import PageNotThere, api, comparison_page
from tui_eval.reports.web_server import case_page, home_page
from tui_eval.store.index import Index
from tui_eval.store.schema import RunSummary


def begin(folder: Path, port: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tui_eval", "server", "--port", str(port)]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


TOKENS: dict[str, str] = {}
"""By address of a server of these tests the token that it printed."""


@pytest.fixture
async def served(tmp_path: Path):
    writer, refs = start(tmp_path, 2, 1)
    writer.done(refs[0][0], attempt("suite.yaml::c0", 1, response_text="<script>alert(1)</script>"))
    writer.state("finished", 2000.0)
    writer.close()
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    port = free_port()
    process = begin(tmp_path, port)
    assert process.stdout is not None
    printed = await asyncio.to_thread(process.stdout.readline)
    address, _, token = printed.partition(" at ")[2].split(" ")[0].partition("/?token=")
    TOKENS[address] = token

    def listening() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    await until(listening)
    assert address == f"http://127.0.0.1:{port}" and len(token) >= 32
    yield address, writer.info.id, process
    process.terminate()
    process.wait(60)
    process.stdout.close()


def get(url: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
    """Ask with the token of the server, unless headers show another."""
    token = TOKENS.get("/".join(url.split("/")[:3]).partition("?")[0], "")
    headers = {"Authorization": f"Bearer {token}", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=60) as answer:
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


@pytest.mark.usually(4)
@pytest.mark.parametrize(
    "path", ["/", "/runs/{run}", "/api/runs", "/api/runs/{run}", "/compare?after={run}", "/api/compare"]
)
async def test_nobody_reads_results_without_the_token(served, path: str) -> None:
    base, run, _ = served
    address = base + path.format(run=run)
    for shown in ("", "Bearer ", "Bearer wrong", "Basic " + TOKENS[base], f"Bearer {TOKENS[base][:-1]}"):
        status, text = get(address, Authorization=shown)
        assert status == 401 and run not in text and TOKENS[base] not in text
    assert get(address, Authorization="", Cookie="tui-eval-1=" + TOKENS[base])[0] == 401
    assert get(f"{address}{'&' if '?' in address else '?'}token=%C3%A9", Authorization="")[0] == 401


async def test_the_printed_address_opens_and_a_cookie_takes_over(served) -> None:
    base, run, _ = served
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with opener.open(f"{base}/?token={TOKENS[base]}", timeout=60) as answer:
        assert answer.url == f"{base}/" and run in answer.read().decode()
    (cookie,) = jar
    assert cookie.value == TOKENS[base] and cookie.has_nonstandard_attr("HttpOnly")
    with opener.open(f"{base}/runs/{run}", timeout=60) as answer:
        assert "1 of 2 cases passed" in answer.read().decode()
    with pytest.raises(urllib.error.HTTPError) as caught:  # led to a path of this server that is not there
        opener.open(f"{base}//evil.example/?token={TOKENS[base]}&after=x", timeout=60)
    assert caught.value.url == f"{base}/evil.example/?after=x" and caught.value.code == 404
    caught.value.close()


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [sys.executable, "-m", "tui_eval", "server", "--port", port]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 4 and "give another with --port" in done.stderr
    assert "http://" not in done.stdout and len(done.stderr.splitlines()) == 1


@pytest.mark.real
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_ends_the_server_and_nothing_is_said_of_its_port(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    command = [sys.executable, "-m", "tui_eval", "server", "--port", str(free_port())]
    with subprocess.Popen(command, cwd=tmp_path, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        address = printed.partition(" at ")[2].split(" ")[0]
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        try:
            with urllib.request.build_opener(cookies).open(address, timeout=60) as answer:
                assert answer.status == 200
            process.send_signal(number)
            _, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, err.strip()) == (code, "")


def test_the_list_of_runs_shows_rates_states_and_a_trend(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    assert "No runs yet" in home_page(tmp_path)
    runs = []
    for number in range(3):
        linked = runs[0].info.id if number == 2 else None
        run = LiveRun(tmp_path, ["a", "b"], linked_to=linked)
        run.all_done(["passed", "failed" if number == 1 else "passed"])
        runs.append(run)
    listed = home_page(tmp_path)
    assert "Pass rate of 2 runs, oldest at the left; the last 50%" in listed and listed.count("<rect") == 2
    assert listed.count(">compare</a>") == 2 and f"/compare?after={runs[2].info.id}" in listed
    assert f"adds to {runs[0].info.id}" in listed and '<td class="number">100%' in listed
    assert "<script" not in listed and "default-src 'none'" in listed


def test_the_list_says_what_a_run_is_short_of(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    LiveRun(tmp_path, ["a"]).all_done(["passed"])
    (run,) = Index(tmp_path).runs()
    for short, said in (
        ({"total": 4}, "3 not run</span>"),
        ({"lacks": "others never ran"}, "not whole</span>"),
    ):
        assert said not in _page_of(run) and said in _page_of(msgspec.structs.replace(run, **short))
    newer = _page_of(msgspec.structs.replace(run, state="newer", what="a newer one"))
    assert "newer</span>" in newer and "href=" not in newer.partition("<tr><td")[2].partition("</table>")[0]


def _page_of(run: RunSummary) -> str:
    return render("runs.html.j2", root=Path("p"), rows=[(run, 1.0)], cards=[], again=0)


def test_the_list_is_loaded_again_while_a_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    run = LiveRun(tmp_path, ["a"])
    assert '<meta http-equiv="refresh" content="5">' in home_page(tmp_path) and "running</span>" in home_page(
        tmp_path
    )
    run.all_done(["passed"])
    assert "refresh" not in home_page(tmp_path)


async def test_other_sites_are_refused_a_comparison_too(served) -> None:
    base, run, _ = served
    for path in ("/compare", "/compare/case", "/api/compare"):
        address = f"{base}{path}?before={run}&after={run}"
        assert get(address, Host="evil.example")[0] == get(address, Origin="http://evil.example")[0] == 403
    assert get(f"{base}/compare", data=b"x")[0] == 405
    status, text = get(f"{base}/compare?after=nosuch")
    assert (status, text) == (404, "no run nosuch\n")
    assert get(f"{base}/compare") == (404, "no other run has a case of this one\n")
    status, text = get(f"{base}/api/compare?before={run}&after={run}")
    assert status == 200 and '"unchanged"' in text


NAMES = ["worse", "better", "same", "shaky"]


def two_runs(root: Path) -> tuple[str, str]:
    (root / "tui_eval.yaml").write_text("{}\n")
    ids: list[str] = []
    for number, outcomes in enumerate(
        (["passed", "failed", "passed", "passed"], ["failed", "passed", "passed", "failed"])
    ):
        run = LiveRun(root, NAMES)
        run.all_done(outcomes)  # type: ignore[arg-type]
        folder = run.folder.rename(run.folder.with_name(f"20260101-00000{number}-web0"))
        with sqlite3.connect(folder / "run.db") as connection:
            connection.execute(
                "UPDATE meta SET value = replace(value, ?, ?) WHERE key = 'info'", (run.info.id, folder.name)
            )
        ids.append(folder.name)
    return ids[0], ids[1]


def test_a_comparison_has_the_same_numbers_as_the_command(tmp_path: Path) -> None:
    first, last = two_runs(tmp_path)
    page = comparison_page(tmp_path, {})  # the newest run with the one before it
    assert f'<option value="{first}" selected>' in page and f'<option value="{last}" selected>' in page
    assert '<span class="failed">2 regressed</span>, 1 fixed' in page
    found = api(tmp_path, {"before": first, "after": last})
    assert found["counts"] == {
        "regressed": 2, "now an error": 0, "fixed": 1, "an error no more": 0, "flaky": 0, "not run": 0, "new": 0, "gone": 0, "unchanged": 1,
    }  # fmt: skip
    assert "may well be chance (p=1.00)" in page and found["p_value"] == 1.0
    (share, low, high) = found["pass_rates"][0]
    assert f'{share * 100:.0f} % <span class="muted">({low * 100:.0f} to {high * 100:.0f} at 95 %)' in page
    assert page.index("2 regressed</span> <span") < page.index("1 fixed</span>") < page.index("1 unchanged")
    assert "case 0 went wrong" in page and "<script" not in page and "form-action 'self'" in page
    turned = comparison_page(tmp_path, {"before": last, "after": first})
    assert "1 regressed</span>, 2 fixed" in turned


def test_a_case_stands_side_by_side_with_the_words_that_differ(tmp_path: Path) -> None:
    two_runs(tmp_path)
    page = comparison_page(tmp_path, {})
    address = html.unescape(next(part for part in page.split('"') if part.startswith("/compare/case")))
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
    shown = case_page(tmp_path, asked)
    assert "<h1>worse" in shown and "1 of 3 entries differ" in shown and "<del>" in shown and "<ins>" in shown
    assert shown.index("passed") < shown.index("✗ failed") and "<script" not in shown
    for wrong in ({**asked, "case": "x"}, {**asked, "agent": "x"}, {**asked, "after": "x"}, {**asked, "left": "9", "right": "0"},
                  {**asked, "left": "-1"}):  # fmt: skip
        with pytest.raises(PageNotThere):
            case_page(tmp_path, wrong)


def test_agents_of_one_run_against_each_other(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    run = run_of_agents(tmp_path, {"one": ["passed"] * 3, "two": ["failed", "passed", "error"]}).name
    query = {"before": run, "after": run, "left": "0", "right": "1"}
    page = comparison_page(tmp_path, query)
    assert "2 regressed</span>, 0 fixed" in page and "passes with the first, not with the second" in page
    assert '<option value="0" selected>one, m<' in page and '<option value="1" selected>two, m<' in page
    assert "0 regressed</span>, 2 fixed" in comparison_page(tmp_path, query | {"left": "1", "right": "0"})


def test_hostile_names_and_texts_are_text(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("{}\n")
    name = f'"><img src=x onerror=alert(1)>{HOSTILE}'.encode("utf-8", "replace").decode()
    for outcome in ("passed", "failed"):
        LiveRun(tmp_path, [name], linked_to=None).all_done([outcome])  # type: ignore[list-item]
    page = comparison_page(tmp_path, {})
    address = html.unescape(next(part for part in page.split('"') if part.startswith("/compare/case")))
    asked = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(address).query))
    for text in (page, case_page(tmp_path, asked), home_page(tmp_path)):
        assert "<img" not in text and not {chr(code) for code in CONTROL_TABLE} - {"\n"} & set(text)


def test_a_damaged_run_is_told_on_every_page(tmp_path: Path) -> None:
    from tui_eval.reports.web_server import _answer, _page, _Refusal

    first, last = two_runs(tmp_path)
    broken = tmp_path / ".tui-eval" / "runs" / "20260102-000000-bad0"
    broken.mkdir()
    (broken / "run.db").write_bytes(b"garbage" * 500)
    assert "damaged</span>" in home_page(tmp_path) and f'href="/runs/{broken.name}' not in home_page(tmp_path)
    told = _answer(_page, tmp_path, broken.name)
    assert isinstance(told, _Refusal) and "file is not a database" in told
    assert last in comparison_page(tmp_path, {}) and first in comparison_page(tmp_path, {})
    with pytest.raises(PageNotThere):
        comparison_page(tmp_path, {"after": broken.name})
