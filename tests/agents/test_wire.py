"""What crosses the border: JSON with its oddities, server-sent events cut anywhere; and what is loaded."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui_eval.agents.http_answers import explain, retry_after
from tui_eval.agents.json_reply import MISSING, at_path
from tui_eval.agents.reply_metadata import split_metadata
from tui_eval.agents.wire import EventStream, decode, encode, one_line

BODY = 'data: {"a": 1}\n\n: note\n\nevent: x\r\ndata:two\r\ndata: lines\r\n\r\nid: 3\ndata: €\n\ndata: rest'
EXPECTED = [b'{"a": 1}', b"two\nlines", "€".encode(), b"rest"]


@given(st.lists(st.integers(0, len(BODY.encode()))))
def test_events_however_they_are_cut(cuts: list[int]) -> None:
    body = BODY.encode()
    places = sorted({0, len(body), *cuts})
    stream = EventStream()
    found = [event for start, end in pairwise(places) for event in stream.feed(body[start:end])]
    assert found + stream.end() == EXPECTED


def test_carriage_returns_alone() -> None:
    stream = EventStream()
    assert stream.feed(b"data: a\r\rdata: b\r") + stream.feed(b"\rdata: c") + stream.end() == [
        b"a",
        b"b",
        b"c",
    ]


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(), st.lists))
def test_json_goes_both_ways(value: object) -> None:
    assert decode(encode(value)) == value


def test_odd_json() -> None:
    assert decode(b'"\\ud800"') == "\ud800" and decode(encode("\ud800")) == "\ud800"
    assert decode(b'{"a": NaN}')["a"] != decode(b'{"a": NaN}')["a"]
    for bad in (b"{", b"", b"[" * 100_000):
        with pytest.raises(ValueError):
            decode(bad)
    assert one_line("a\n b\t" + "c" * 400).startswith("a b c") and len(one_line("x" * 999)) == 300


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('{"error": {"message": "no\\nway"}}', "no way"),
        ('{"detail": [{"msg": "field required"}]}', "field required"),
        ('{"error": "plain"}', "plain"),
        ("[1]", "[1]"),
        ("<html><title>502 Bad Gateway</title>", "502 Bad Gateway"),
        ("", "no explanation"),
    ],
)
def test_error_bodies(body: str, said: str) -> None:
    assert explain(body) == said


def test_retry_after() -> None:
    assert retry_after({"retry-after": "3"}) == 3 and retry_after({"retry-after-ms": "250"}) == 0.25
    assert retry_after({"retry-after": "soon"}) is None and retry_after({}) is None
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0
    assert retry_after({"retry-after": "99999"}) == 600


def test_paths() -> None:
    value = {"a": [{"b": 1}], "json": {"x": 2}}
    assert at_path(value, "a[0].b") == 1 and at_path(value, "a.-1.b") == 1 and at_path(value, "json.x") == 2
    assert (
        at_path({"a": 1}, "json.a") == 1 and at_path(value, "a.5") is MISSING and at_path(3, "a") is MISSING
    )


def test_metadata_at_the_end() -> None:
    assert split_metadata("no fence") == ("no fence", None)
    assert split_metadata('a ```json\n{"x": 1}\n``` b') == ('a ```json\n{"x": 1}\n``` b', None)
    assert split_metadata("a\n```\n[1]\n```") == ("a\n```\n[1]\n```", None)
    assert split_metadata('```json\n{"x": 1}\n```\nthen\n```json\n{"y": 2}\n```\n')[1] == {"y": 2}


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, tui_eval.agents; heavy = {'httpx', 'aiohttp', 'jinja2', 'duckdb', 'polars', 'quickjs'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
