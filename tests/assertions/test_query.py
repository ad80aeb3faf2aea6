"""Queries that read no table."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tui_eval.formats.nao.judge_nao import reads_no_table


@pytest.mark.parametrize(
    ("sql", "literal"),
    [
        ("SELECT 7", True),
        ("select 7 as n, 'from' as word", True),
        ("WITH t AS (SELECT 7 AS n) SELECT n FROM t", True),
        ("SELECT * FROM (VALUES (1), (2)) AS v(n)", True),
        ("SELECT n FROM query_7f15305c", False),
        ("FROM orders", False),
        ("SELECT * FROM 'orders.csv'", False),
        ("SELECT * FROM read_csv('orders.csv')", False),
        ("WITH t AS (SELECT * FROM orders) SELECT count(*) FROM t", False),
        ("WITH t AS (SELECT 1 AS n) SELECT * FROM other.t", False),
        ("SELECT (SELECT sum(x) FROM orders)", False),
        ("TABLE orders", False),
        ("SELECT FROM FROM (", False),
        ("", False),
    ],
)
def test_reads_no_table(sql: str, literal: bool) -> None:
    assert reads_no_table(sql) is literal


@pytest.mark.parametrize("sql", ["show all", "explain select 1", "lock table orders", "do $$begin end$$"])
def test_what_is_no_query_is_read_without_a_word(sql: str) -> None:
    """sqlglot falls over some, and warns of others on stderr, over the screen."""
    read = f"from tui_eval.formats.nao.judge_nao import *; reads_no_table({sql!r}), print(columns_named({sql!r}))"
    done = subprocess.run([sys.executable, "-c", read], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
