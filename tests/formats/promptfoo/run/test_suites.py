"""promptfoo's recorded suites, run by the engine under `compat: reference` and compared row by row."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.support import TESTS
from tui_eval.config.project import ConfigError
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import NothingToRun, SelectionError
from tui_eval.reports import promptfoo_json, results
from tui_eval.store.reader import RunReader

VECTORS = TESTS / "vectors"
FOLDER = VECTORS / "promptfoo_suites"
PORT = "18765"
REASONS = {
    name.partition("/")[2]: reason
    for line in (VECTORS / "promptfoo_not_yet.txt").read_text("utf-8").splitlines()
    if line.startswith("promptfoo_suites/")
    for name, _, reason in [line.partition("\t")]
}
"""`folder/run` → why its rows differ."""

OPTIONS = {
    "--repeat": "attempts",
    "--filter-range": "filter_range",
    "--filter-prompts": "filter_prompts",
    "--filter-providers": "filter_providers",
    "--prompt-prefix": "prompt_prefix",
    "--prompt-suffix": "prompt_suffix",
    "--filter-failing": "filter_failing",
    "--filter-failing-only": "filter_failing_only",
    "--filter-errors-only": "filter_errors_only",
    "-r": "agents",
}


def runs() -> list[tuple[str, int, str]]:
    found = []
    for folder in sorted(path for path in FOLDER.iterdir() if path.is_dir() and path.name != "__pycache__"):
        for place, run in enumerate(json.loads((folder / "run.json").read_text("utf-8"))["runs"]):
            found.append((folder.name, place, run["name"]))
    return found


@pytest.fixture(scope="module")
def mock() -> Iterator[int]:
    """The agent of the http suites, on a port of its own."""
    spec = importlib.util.spec_from_file_location("promptfoo_mock", FOLDER / "mock.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = ThreadingHTTPServer(("127.0.0.1", 0), module.H)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def copied(name: str, root: Path, port: int) -> Path:
    shutil.copytree(FOLDER / name, root, ignore=shutil.ignore_patterns("run.json", "expected.json"))
    for file in root.rglob("*.yaml"):
        text = file.read_text("utf-8")
        if PORT in text:
            file.write_text(text.replace(PORT, str(port)), "utf-8")
    return root


def request_of(root: Path, args: list[str], first: Path) -> RunRequest:
    values: dict[str, Any] = {}
    for option, value in zip(args[::2], args[1::2], strict=True):
        if option == "-c":
            values["configs"] = [*values.get("configs", []), str(root / value)]
            continue
        given: Any = str(first) if value == "@FIRST" else value
        if option == "--repeat":
            given = int(value)
        if option == "-r":
            given = [value]
        values[OPTIONS[option]] = given
    paths = [] if "configs" in values else [str(root)]
    return RunRequest(paths=paths, trust=True, compat="reference", **values)


async def executed(request: RunRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    active = await asyncio.to_thread(prepare, request)
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    try:
        return results.build(reader), promptfoo_json.build(reader)
    finally:
        reader.close()


def row_of(result: dict[str, Any]) -> str:
    """What is compared of our row: error rows carry nothing else in promptfoo."""
    if result["outcome"] == "error":
        return json.dumps(["error"])
    details = result["details"]
    output = details["output"] if details.get("output") is not None else details["response_text"]
    judged = [[entry["passed"], round(entry["score"], 9)] for entry in result["assertions"]]
    return json.dumps([result["passed"], round(result["score"], 9), output, judged, result["named_scores"]])


def row_expected(row: dict[str, Any]) -> str:
    if row.get("failureReason") == 2:
        return json.dumps(["error"])
    judged = [[part["pass"], round(float(part["score"]), 9)] for part in row.get("componentResults") or []]
    named = {name: float(score) for name, score in row["namedScores"].items()}
    return json.dumps([row["success"], round(float(row["score"]), 9), row.get("output"), judged, named])


@pytest.mark.parametrize(("name", "place", "run"), runs(), ids=lambda value: str(value))
async def test_recorded_rows(
    name: str, place: int, run: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mock: int
) -> None:
    if f"{name}/{run}" in REASONS:
        pytest.skip(REASONS[f"{name}/{run}"])
    given = json.loads((FOLDER / name / "run.json").read_text("utf-8"))["runs"][place]
    expected = json.loads((FOLDER / name / "expected.json").read_text("utf-8"))["runs"][place]
    for variable, value in (given.get("env") or {}).items():
        monkeypatch.setenv(variable, value)
    root = copied(name, tmp_path / "suite", mock)
    first = tmp_path / "first.json"
    if "@FIRST" in given["args"]:
        earlier, _ = await executed(request_of(root, [], first))
        first.write_text(json.dumps(earlier), "utf-8")
    try:
        ours, theirs = await executed(request_of(root, given["args"], first))
    except (NothingToRun, SelectionError, ConfigError):
        assert expected.get("results", []) == []
        return
    wanted = sorted(row_expected(row) for row in expected["results"])
    assert sorted(row_of(result) for result in ours["results"]) == wanted
    stats = theirs["results"]["stats"]
    assert {key: stats[key] for key in expected["stats"]} == expected["stats"]
    check_columns(ours["metrics"], theirs["results"]["prompts"], expected["prompts"])


def check_columns(
    ours: list[dict[str, Any]], columns: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    """The sums of the columns that have rows: in the results file, and in promptfoo's shape."""
    used = [column for column in expected if column["metrics"]["testPassCount"] or _not_passed(column)]
    for column, wanted in zip(columns, used, strict=True):
        assert column["label"] == wanted["label"]
        for key, value in wanted["metrics"].items():
            if key == "assertFailCount" and wanted["metrics"]["testErrorCount"]:
                continue  # promptfoo loses the verdicts of rows in error
            assert column["metrics"][key] == pytest.approx(value), key
    assert len(ours) == len(used)
    for column, wanted in zip(ours, used, strict=True):
        assert column["score"] == pytest.approx(wanted["metrics"]["score"])
        assert column["named_scores"] == pytest.approx(wanted["metrics"]["namedScores"])


def _not_passed(column: dict[str, Any]) -> int:
    return column["metrics"]["testFailCount"] + column["metrics"]["testErrorCount"]


@pytest.mark.parametrize("name", ["s07_weights", "s27_scoring_function", "s29_store_output"])
async def test_promptfoos_json_has_its_keys(name: str, tmp_path: Path, mock: int) -> None:
    expected = json.loads((FOLDER / name / "expected.json").read_text("utf-8"))["runs"][0]
    _, document = await executed(request_of(copied(name, tmp_path / "suite", mock), [], tmp_path))
    assert {"evalId", "results", "config", "shareableUrl", "metadata", "vars", "runtimeOptions"} == set(
        document
    )
    assert document["results"]["version"] == expected["version"]
    for column, wanted in zip(document["results"]["prompts"], expected["prompts"], strict=True):
        assert wanted.keys() <= column.keys() and wanted["metrics"].keys() <= column["metrics"].keys()
    rows = {(row["testIdx"], row["promptIdx"]): row for row in document["results"]["results"]}
    for row in expected["results"]:
        found = rows[row["testIdx"], row["promptIdx"]]
        assert found["prompt"]["raw"] == row["prompt"]
        assert found["provider"] == row["provider"]
        assert (found["success"], found["failureReason"]) == (row["success"], row["failureReason"])
        assert found["response"]["output"] == row["output"]
        if row.get("reason"):
            assert found["gradingResult"]["reason"] == row["reason"]
