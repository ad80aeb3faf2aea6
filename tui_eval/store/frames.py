"""Rows too many for a run's database: Parquet files beside it, named in the attempt's data details."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tui_eval.guard import private
from tui_eval.guard.masker import Masker
from tui_eval.model import DataDetails

if TYPE_CHECKING:
    import polars

FOLDER = "frames"
_MOST_CELLS = 200_000_000
"""Of a frame that is read: two gigabytes and more."""


def save(
    run_folder: Path, attempt_ref: int, frames: Mapping[str, polars.DataFrame], masker: Masker
) -> dict[str, str]:
    """Write the frames of one attempt (`expected`, `actual`); their paths from the run's folder.

    Blocking: call it in a thread.

    Raises:
        OSError: the folder cannot be written.
    """
    import polars as pl

    private.make_folder(run_folder / FOLDER)
    paths: dict[str, str] = {}
    for side, frame in frames.items():
        if masker:
            texts = [name for name, kind in frame.schema.items() if kind == pl.String]
            frame = frame.with_columns(
                pl.col(name).map_elements(masker.text, return_dtype=pl.String) for name in texts
            )
            named = {name: masker.text(name) for name in frame.columns}
            if len(set(named.values())) == len(named):
                frame = frame.rename(named)
        paths[side] = f"{FOLDER}/{attempt_ref}-{side}.parquet"
        place = run_folder / paths[side]
        with open(private.open_file(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            frame.write_parquet(file)
    return paths


def load(run_folder: Path, details: DataDetails, side: str) -> polars.DataFrame | None:
    """The whole frame of a side, where it was too large for the attempt's body; None elsewhere, and
    where the file is gone (a run that was copied without it), is damaged or holds too much."""
    named = details.settings.get("frames")
    name = named.get(side) if isinstance(named, dict) else None
    if not isinstance(name, str):
        return None
    path = (run_folder / name).resolve()
    if not path.is_relative_to(run_folder.resolve()) or not path.is_file():
        return None
    import polars as pl

    try:
        # A few bytes of such a file can stand for any number of rows, and what memory does not hold ends the process.
        lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        cells = lazy.select(pl.len()).collect().item() * len(lazy.collect_schema())
        return lazy.collect() if cells <= _MOST_CELLS else None
    except BaseException as problem:  # of a damaged file Polars may panic
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        return None
