"""Patterns against node's (`record_patterns.mjs` wrote the table, with node 20)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tui_eval.javascript import patterns
from tui_eval.javascript.isolate import JavaScriptHost

TABLE: list[dict[str, Any]] = [
    json.loads(line)
    for line in Path(__file__).with_name("patterns.jsonl").read_text("utf-8").strip().split("\n")
]


def texts(text: str, places: list[patterns.Place]) -> list[str]:
    return [text[start:end] for start, end in places]


def test_what_is_tried_in_this_process_matches_what_node_matches() -> None:
    tried = 0
    for row in TABLE:
        known = patterns.translated(row["pattern"], row["flags"])
        if known is None:
            continue
        assert "invalid" not in row, row
        expression = patterns.within_time(known, row["text"])
        if expression is not None:
            tried += 1
            assert (expression.search(row["text"]) is not None) is row["matches"], row
            assert texts(row["text"], patterns.places(expression, row["text"])) == row["found"], row
    assert tried > 200


@pytest.mark.real
def test_what_is_left_to_the_isolate_is_told_in_code_points() -> None:
    rows = [row for row in TABLE if not row["flags"] and "invalid" not in row][:150]

    async def asked() -> None:
        host = JavaScriptHost(1)
        try:
            for row in rows:
                given = {"output": row["text"], "context": {"pattern": row["pattern"], "most": patterns.MOST}}
                first = await host.evaluate(patterns.FIRST, given)
                assert ("start" in first) is row["matches"], row
                found = patterns.from_units(row["text"], await host.evaluate(patterns.ALL, given))
                halves = any(letter > "\uffff" for letter in row["text"])
                if not halves:
                    assert texts(row["text"], found) == row["found"], row
        finally:
            host.close()

    asyncio.run(asked())


def test_places_are_counted_in_code_points() -> None:
    assert patterns.from_units("👍 ok 👍ok", [[3, 5], [8, 10]]) == [(2, 4), (6, 8)]


def test_a_pattern_of_our_own_must_mean_the_same() -> None:
    assert patterns.constant(r"tool.?name", "i").search("Tool_Name")
    assert not patterns.constant("stop", "i").search("ſtop")
    with pytest.raises(ValueError, match="something else"):
        patterns.constant(r"(?<=a)b")
