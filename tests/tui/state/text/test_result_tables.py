"""Tool results that are tables stand as tables, in Tools and in the transcript; nothing of them is lost."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any

import pytest

from tests.support.attempts import wrong_cell
from tui_eval.tui.state.case import tools_view
from tui_eval.tui.state.case.transcript_view import build
from tui_eval.tui.state.text.json_lines import value_lines
from tui_eval.tui.state.text.lines import plain
from tui_eval.tui.state.text.table_lines import result_lines

RECORDS = [
    {"status": "returned", "n": 4, "share": 0.5},
    {"status": "placed", "n": 130, "share": None},
]
TABLE = [
    "status      n  share",
    "returned    4    0.5",
    "placed    130   null",
    "2 rows",
]


def shown(value: Any, **how: Any) -> list[str]:
    return [plain(line).rstrip() for line in result_lines(value, **how)]


@pytest.mark.parametrize(
    ("value", "last"),
    [
        (RECORDS, "2 rows"),
        (json.dumps(RECORDS), "2 rows"),
        ({"columns": ["status", "n", "share"], "rows": RECORDS}, "2 rows"),
        ({"columns": ["status", "n", "share"], "rows": [list(row.values()) for row in RECORDS]}, "2 rows"),
        ({"columns": [{"name": "status"}, {"name": "n"}, {"name": "share"}], "data": [["returned", 4, 0.5], ["placed", 130, None]]}, "2 rows"),
        ({"data": RECORDS, "row_count": 2, "truncated": False}, "2 rows · row_count: 2 · truncated: false"),
    ],
)  # fmt: skip
def test_every_form_of_a_table_is_shown_as_one(value: Any, last: str) -> None:
    assert shown(value) == [*TABLE[:3], last]


@pytest.mark.parametrize(
    "value",
    [
        [{"id": 1, "items": [{"sku": "KT-2", "name": "a kettle of one litre and seven tenths", "n": 1}]}] * 2,
        [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}],
        [{"text": "x" * 61}, {"text": "y"}],
        [{"text": "two\nlines"}, {"text": "y"}],
        [{"only": 1}],
        [1, 2, 3],
        [],
        {"rows": []},
        {"columns": ["a", "a"], "rows": [[1, 2]]},
        {"rows": [{"a": 1}], "trace": {"spans": ["a long list of what was done"] * 4}},
        "a text",
        '[{"a": 1}, {"a": 2}',
    ],
)
def test_what_is_no_table_stays_as_it_was(value: Any) -> None:
    assert list(result_lines(value)) == list(value_lines(value))


def test_raw_stays_raw() -> None:
    assert shown(RECORDS, rendered=False) == [
        plain(line).rstrip() for line in value_lines(RECORDS, rendered=False)
    ]


def test_nothing_of_a_row_is_lost() -> None:
    rows: list[Any] = [{"id": n, "v": "x"} for n in range(60)]
    rows += [{"id": 60, "v": "y" * 300, "more": [1, 2]}, {"other": 1}, "no row at all"]
    lines = shown(rows)
    assert (
        lines[61].startswith("60  yyy") and lines[61].endswith('y  {"more": [1, 2]}') and len(lines[61]) > 300
    )
    assert lines[62].endswith('{"other": 1}') and lines[63] == '"no row at all"' and lines[64] == "63 rows"


def test_controls_are_visible() -> None:
    lines = shown([{"a\x1b[2J": "\x1b]0;t\x07"}, {"a\x1b[2J": "b"}])
    assert "\x1b" not in "".join(lines) and "\x07" not in "".join(lines)


def test_the_beginning_of_a_long_table_is_made_without_reading_the_rest(monkeypatch: Any) -> None:
    rows = [{"id": n, "text": f"parcel {n} was weighed"} for n in range(5000)]
    text = json.dumps(rows)
    whole = shown(text)
    assert whole[0] == "id  text" and len(whole) == 5002 and whole[-1] == "5,000 rows"
    assert [line.split(maxsplit=1)[1] for line in whole[1:-1]] == [row["text"] for row in rows]
    read: list[int] = []
    loads = json.loads
    monkeypatch.setattr(json, "loads", lambda text: read.append(len(text)) or loads(text))
    assert [plain(line).rstrip() for line in islice(result_lines(text), 10)] == whole[:10]
    assert read and max(read) < 5000


def test_what_stands_behind_the_rows_of_a_long_table_is_shown_too() -> None:
    rows = [{"id": n, "text": f"parcel {n} was weighed"} for n in range(2000)]
    lines = shown(json.dumps({"columns": ["text", "id"], "rows": rows, "took_ms": 12}))
    assert (
        lines[0].split() == ["text", "id"] and lines[-1] == "2,000 rows · took_ms: 12" and len(lines) == 2002
    )


def test_a_long_text_that_only_begins_as_a_table_is_shown_to_its_end() -> None:
    text = json.dumps([{"id": n, "text": "parcel"} for n in range(2000)])[:-4] + "oops}]"
    assert "oops}]" in "\n".join(shown(text))


def test_the_transcript_and_tools_show_it() -> None:
    attempt = wrong_cell()
    rows = tools_view.rows(attempt)
    for blocks in (build(attempt).blocks, tools_view.detail(attempt, rows[0])):
        (block,) = [block for block in blocks if block.kind == "tool_result"]
        lines = [plain(line).rstrip() for line in block.lines()]
        assert "region  orders  revenue" in lines and "east        42  1007.25" in lines
