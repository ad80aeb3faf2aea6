"""Suites made by rule (how tests, defaults, scenarios, sets, weights, transforms, filters go together), and
what promptfoo 0.121.20 made of each: the same rows, scores and sums come of them here."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.formats.promptfoo.run.test_suites import OPTIONS
from tests.support import TESTS
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.reports import promptfoo_json
from tui_eval.store.reader import RunReader

RECORDED = [
    json.loads(line) for line in (TESTS / "vectors" / "promptfoo_rows.jsonl").read_text("utf-8").splitlines()
]


def request_of(root: Path, args: list[str]) -> RunRequest:
    values: dict[str, Any] = {}
    for option, value in zip(args[::2], args[1::2], strict=True):
        if option == "--var":
            name, _, given = value.partition("=")
            values.setdefault("vars", {})[name] = given
        elif option == "--filter-metadata":
            values.setdefault("filter_metadata", []).append(value)
        elif option == "--filter-pattern":
            values["filter_pattern"] = value
        else:
            values[OPTIONS[option]] = int(value) if option == "--repeat" else value
    return RunRequest(paths=[str(root)], trust=True, compat="reference", **values)


def one(value: Any) -> Any:
    """A value in one way of writing: promptfoo keeps texts that are JSON compact; 1.0 is 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        return json.dumps(json.loads(value), ensure_ascii=False)
    except (TypeError, ValueError):
        return value


def row_of(row: dict[str, Any], ordered: bool) -> str:
    """What is compared; promptfoo keeps no verdicts of a row in error, nor its output."""
    found = [row["failureReason"], one(row["prompt"]["raw"]), {k: one(v) for k, v in row["vars"].items()}]
    if ordered:
        found = [row["testIdx"], row["promptIdx"], *found]
    if row["failureReason"] != 2:
        judged = [
            [part["pass"], round(part["score"], 6)]
            for part in (row["gradingResult"] or {}).get("componentResults", [])
        ]
        named = {name: round(score, 6) for name, score in row["namedScores"].items()}
        found += [row["success"], round(row["score"], 6), row["response"]["output"], judged, named]
    return json.dumps(found, sort_keys=True)


def row_recorded(row: dict[str, Any], ordered: bool) -> str:
    as_ours = {
        "testIdx": row["ti"], "promptIdx": row["pi"], "failureReason": row["fr"], "prompt": {"raw": row["prompt"]},
        "vars": row["vars"], "success": row["ok"], "score": float(row["score"]), "response": {"output": row["out"]},
        "gradingResult": {"componentResults": [{"pass": p, "score": float(s)} for p, s in row["comps"]]},
        "namedScores": {name: float(score) for name, score in row["ns"].items()},
    }  # fmt: skip
    return row_of(as_ours, ordered)


@pytest.mark.usually(25)
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda recorded: recorded["name"])
async def test_rows_and_sums(
    recorded: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in recorded["env"].items():
        monkeypatch.setenv(name, value)
    for name, text in recorded["files"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    active = await asyncio.to_thread(prepare, request_of(tmp_path, recorded["args"]))
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    try:
        document = promptfoo_json.build(reader)
    finally:
        reader.close()
    ordered = not recorded["set"]
    found = [row_of(row, ordered) for row in document["results"]["results"]]
    wanted = [row_recorded(row, ordered) for row in recorded["rows"]]
    assert (found if ordered else sorted(found)) == (wanted if ordered else sorted(wanted))
    if recorded["columns"] is not None:
        columns = [column["metrics"] for column in document["results"]["prompts"]]
        assert [
            {key: columns[place][key] for key in column} for place, column in enumerate(recorded["columns"])
        ] == [
            {key: pytest.approx(value, abs=1e-6) for key, value in column.items()}
            for column in recorded["columns"]
        ]
