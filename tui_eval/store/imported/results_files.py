"""Results files opened as runs: our own, and those that a format has made into one of ours (`as_ours`).

A file becomes a run's folder in the user's cache folder, once for each content, so that everything that
reads runs reads it. What the older generation lacks (`attempt`, `by_model`, `verification_sql`, …) is
left open; our own files bring back transcripts, verdicts, data and usage.
"""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.guard import figures
from tui_eval.guard.private import cache_home
from tui_eval.guard.text import storable
from tui_eval.model import Case
from tui_eval.store.imported.results_entries import ResultsGroup, grouped
from tui_eval.store.notes import HumanNote, Notes
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import DATABASE, STATE, StoreError
from tui_eval.store.schema import KEEPS_ANSWERS, RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter

AsOurs = Callable[[Any, Path], tuple[dict[str, Any], str] | None]
"""Of a JSON document and its file: the results file of ours that it means, and what that depends on besides."""
_FORM = b"24"  # of what is made of a file; another one is made anew
_ENDED = ("finished", "cancelled", "interrupted")


def is_results(path: Path, as_ours: AsOurs) -> bool:
    """Whether this is a results file (rather than a suite that is written in JSON)."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    try:
        _read(path, as_ours)
    except StoreError:
        return False
    return True


def open_folder(folder: Path) -> Path:
    """The folder by which everything finds a run: itself where it is in a project's store under its own id,
    else one in the user's cache folder whose files are links to it (a copy under another name, say).

    Raises:
        StoreError: it cannot be read, or the cache folder cannot be written.
    """
    folder = folder.resolve()
    with contextlib.closing(RunReader(folder)) as reader:
        run_id = _name(reader.info().id)
    if folder.name == run_id and folder.parent.parent.name == STATE:
        return folder
    key = hashlib.sha256(str(folder).encode()).hexdigest()[:24]
    place = cache_home() / "folders" / key / STATE / "runs" / run_id
    try:
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        for file in place.iterdir():
            if file.is_symlink() and not file.exists():
                file.unlink(missing_ok=True)
        for file in folder.iterdir():
            # SQLite finds what belongs to a database beside the file that is linked to.
            if file.is_symlink():
                continue  # what a folder from elsewhere links to is not followed
            if not file.name.startswith(f"{DATABASE}-") and not (place / file.name).exists():
                with contextlib.suppress(FileExistsError):  # another process opens it, too
                    (place / file.name).symlink_to(file)
    except OSError as error:
        raise StoreError(f"{folder}: cannot be opened as a run: {error.filename}: {error.strerror}") from None
    return place


def open_results(path: Path, as_ours: AsOurs) -> Path:
    """The folder of the run that a results file names. `as_ours` makes one of ours of other tools' files.

    Raises:
        StoreError: it cannot be read, is no results file, or the cache folder cannot be written.
    """
    key, document = _read(path, as_ours)
    place = cache_home() / "results" / key
    # As in a project: code that looks for a run's project finds this folder.
    runs = place / STATE / "runs"
    with contextlib.suppress(OSError):
        for folder in runs.iterdir():
            if (folder / DATABASE).is_file():
                return folder
    made = None
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Path(tempfile.mkdtemp(dir=place.parent, prefix="making-"))
        info = _info(path, document)
        folder = made / STATE / "runs" / info.id
        folder.mkdir(parents=True)
        _write(folder, info, grouped(document, str(path), info.started_at))
        with contextlib.suppress(OSError):  # another process was quicker
            made.rename(place)
    except OSError as error:
        raise StoreError(f"{path}: cannot be opened as a run: {error.filename}: {error.strerror}") from None
    finally:
        if made is not None and made.exists():
            shutil.rmtree(made, ignore_errors=True)
    return runs / info.id


def _read(path: Path, as_ours: AsOurs) -> tuple[str, dict[str, Any]]:
    """The document, and a key of all that it is made of."""
    try:
        if (size := path.stat().st_size) > most_bytes():
            raise StoreError(f"{path}: {size / 1e9:,.1f} GB, too much for this machine's memory")
        body = path.read_bytes()
        key = hashlib.sha256(_FORM)
        key.update(body)
        document = json.loads(body)
        del body  # a large file is held once: as what it says
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}") from None
    except RecursionError:
        raise StoreError(f"{path}: not JSON that can be read: nested too deeply") from None
    except MemoryError:
        raise StoreError(f"{path}: there is not enough memory to read it") from None
    except ValueError as error:
        long = type(error) is ValueError  # Python's own word for it is of a setting of Python
        said = "a number in it is too long" if long else error
        raise StoreError(f"{path}: not JSON: {said}") from None
    document = storable(document)
    if (made := as_ours(document, path)) is not None:
        document, beside = made
        key.update(beside.encode("utf-8", "replace"))
        return key.hexdigest()[:24], storable(document)
    results = document.get("results") if isinstance(document, dict) else None
    if not isinstance(results, list) or not all(isinstance(r, dict) and "passed" in r for r in results):
        raise StoreError(
            f"{path}: not a results file of tui-eval or of a tool whose suites it reads (results[] with name and passed, or success)"
        )
    return key.hexdigest()[:24], document


def most_bytes() -> int:
    """Of a file that is read, which takes several times as much: a few kilobytes on the disk can be any size."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


def _info(path: Path, document: dict[str, Any]) -> RunInfo:
    run = document.get("run")
    run = run if isinstance(run, dict) else {}
    name = run["id"] if isinstance(run.get("id"), str) else path.stem
    try:
        info = msgspec.convert(run, RunInfo, strict=False)
    except msgspec.ValidationError:
        info = RunInfo(id="")
    info.id = _name(name)
    stamp = _seconds(document.get("timestamp"))
    info.started_at = figures.moment(info.started_at, "start") or figures.moment(stamp, "start") or 0.0
    info.finished_at = figures.moment(info.finished_at, "end")
    info.paths = [str(path.absolute())]
    info.metrics = _metrics(document.get("metrics"))
    return info


def _metrics(given: Any) -> list[dict[str, Any]]:
    """Columns' sums with what was derived from them; nothing where nothing was: sums alone are made anew."""
    rows = [row for row in given if isinstance(row, dict)] if isinstance(given, list) else []
    if not any(isinstance(row.get("derived"), dict) and row["derived"] for row in rows):
        return []
    return [
        {
            **{name: str(row.get(name) or "") for name in ("suite", "agent", "prompt")},
            "score": figures.score(row.get("score"), "score") or 0.0,
            "count": figures.count(row.get("count"), "count") or 0,
            **{
                name: figures.scores(one if isinstance(one := row.get(name), dict) else {}, "score")
                for name in ("named_scores", "named_weights", "derived")
            },
        }
        for row in rows
    ]


def _name(run_id: str) -> str:
    """A run's id as the name of a folder."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", run_id).strip(".")[:80] or "results"


def _seconds(stamp: Any) -> float:
    """Of a local time without a zone; 0 where there is none."""
    try:
        return datetime.datetime.fromisoformat(str(stamp)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _write(folder: Path, info: RunInfo, groups: list[ResultsGroup]) -> None:
    state = info.state if info.state in _ENDED else "finished"
    last = max(
        (one.started_at + (one.duration_ms or 0) / 1000 for g in groups for one in g.attempts), default=0
    )
    finished = info.finished_at or last or info.started_at
    info.state, info.finished_at = "running", None
    info.agents = list(dict.fromkeys(group.agent for group in groups))
    info.scripted = info.scripted or info.agents == ["scripted"]
    attempts = [one for group in groups for one in group.attempts]
    if any(one.cached or (one.judging is not None and one.judging.cached) for one in attempts):
        info.provenance[KEEPS_ANSWERS] = True  # who wrote the file may not say so
    writer = RunWriter(folder, info)
    try:
        references = writer.plan([_planned(group) for group in groups])
        notes: list[HumanNote] = []
        for group, ids in zip(groups, references, strict=True):
            for ref, attempt in zip(ids, group.attempts, strict=False):  # the rest never ran
                writer.done(ref, attempt)
                notes += [
                    msgspec.structs.replace(
                        note, run_id=folder.name, attempt_ref=ref, agent=group.agent, model=group.model or ""
                    )
                    for noted, note in group.noted
                    if noted is attempt
                ]
        writer.state(state, finished)
    finally:
        writer.close()
    if writer.error:
        raise StoreError(f"the run could not be kept: {writer.error}")
    Notes.beside(folder).take_over(notes)


def _planned(group: ResultsGroup) -> PlannedCase:
    case: Case = group.case
    first = group.attempts[0].attempt if group.attempts else 1
    return PlannedCase(
        case, group.agent, group.model, len(group.attempts) + group.left, group.required, first
    )
