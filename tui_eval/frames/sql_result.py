"""What a query answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


@dataclass(slots=True)
class SqlResult:
    """Rows of a query. `types` are DuckDB's names by column; `ordered`: there is a top-level ORDER
    BY, by the result columns `order_columns` where they could be told (empty: all)."""

    columns: list[str]
    frame: pl.DataFrame
    ordered: bool = False
    types: dict[str, str] = field(default_factory=dict)
    order_columns: tuple[str, ...] = ()
