"""Where a query went wrong, in the query as written and in its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.config.project import DatabaseSpec
from tui_eval.frames.sql import SqlError, execute
from tui_eval.frames.sql_faults import fault_of
from tui_eval.yaml.yaml_scalars import place_in_file

SHOP = DatabaseSpec(
    "shop", "duckdb", str(Path(__file__).parents[1] / "data" / "jaffle_shop" / "jaffle_shop.duckdb")
)
LONG = "select " + ", ".join(f"order_id as a{n}" for n in range(60)) + ", amout from orders"


@pytest.mark.parametrize(
    ("sql", "place", "word"),
    [
        ("select amout from orders", (1, 8), "amout"),
        ("\n\n-- the total\nselect\n  sum(amount),\n  statuz\nfrom orders", (6, 3), "statuz"),
        ("-- x\n/* y\n */ select amout\nfrom orders", (3, 12), "amout"),
        ("\nselect *\nform orders\n", (3, 6), "orders"),
        ("select * from ordrs", (1, 15), "ordrs"),
        (LONG, (1, LONG.index("amout") + 1), "amout"),
        ("select 'ä', amout from orders", (1, 13), "amout"),
    ],
)
def test_the_place_in_the_query_as_it_is_written(sql: str, place: tuple[int, int], word: str) -> None:
    with pytest.raises(SqlError) as caught:
        execute(SHOP, sql)
    fault = fault_of(sql, str(caught.value), caught.value.detail)
    assert (fault.line, fault.column) == place
    assert sql.split("\n")[fault.line - 1][fault.column - 1 :].startswith(word)
    assert "LINE" in fault.detail and "^" in fault.detail and "LINE" not in fault.message


def test_what_shows_no_place_has_none() -> None:
    assert fault_of("select 1", "the query took longer than 30 s").line == 0
    assert fault_of("select 1", "x", "LINE 9: nothing\n        ^").line == 0


QUERY = "SELECT\n  sum(amuont) AS total\nFROM orders\n"
BLOCK = (
    "# shop\nname: t\nprompt: how much?\nsql: |\n    SELECT\n      sum(amuont) AS total\n    FROM orders\n"
)


@pytest.mark.parametrize(
    ("text", "value", "at", "place"),
    [
        (BLOCK, QUERY, (2, 7), (6, 11)),
        (
            "sql: >\n  SELECT sum(amuont)\n  FROM ordrs\nname: t\n",
            "SELECT sum(amuont) FROM ordrs\n",
            (1, 25),
            (3, 8),
        ),
        ("sql: select amout from orders\n", "select amout from orders", (1, 8), (1, 13)),
        ("sql: 'select amout'\n", "select amout", (1, 8), (1, 14)),
        ('a: 1\nsql: "select\\n amout"\n', "select\n amout", (2, 2), (2, 0)),
        ("sql: select\n  amout\n  from orders\n", "select amout from orders", (1, 8), (2, 3)),
        (BLOCK, "SELECT 1", (1, 1), None),
        ("- sql\n", "x", (1, 1), None),
        ("sql: [1\n", "x", (1, 1), None),
    ],
)
def test_the_place_in_the_file(
    text: str, value: str, at: tuple[int, int], place: tuple[int, int] | None
) -> None:
    assert place_in_file(text, "sql", value, *at) == place
    if place and place[1]:
        assert (
            value.split("\n")[at[0] - 1][at[1] - 1 :].split()[0]
            in text.split("\n")[place[0] - 1][place[1] - 1 :]
        )


@pytest.mark.parametrize(
    ("sql", "hint", "line"),
    [
        ("select\n  amout\nfrom orders", "Candidate bindings: ", "LINE 2:   amout"),
        ("select * from ordrs", 'Did you mean "orders"?', "LINE 1: select * from ordrs"),
        (
            "select lenght(status) from orders",
            'Did you mean "length"?',
            "LINE 1: select lenght(status) from orders",
        ),
        ("select sum(1, 2) from orders", "", "LINE 1: select sum(1, 2) from orders"),
    ],
)
def test_what_is_proposed_instead_and_the_place_are_told(sql: str, hint: str, line: str) -> None:
    with pytest.raises(SqlError) as caught:
        execute(SHOP, sql)
    fault = fault_of(sql, str(caught.value), caught.value.detail)
    assert fault.told.startswith(fault.message) and hint in fault.told and "\n" not in fault.told
    assert fault.shown_place[0] == line and fault.shown_place[1].strip(" ^") == ""
    assert fault_of(sql, "no database", "").shown_place == []
