"""Whether two versions write the same results: `python -m tests.same_results BEFORE [AFTER]`.

The sample suites run once with each version, one attempt at a time, in the same folder, and every kind of
results file is compared byte for byte with its times blanked. BEFORE and AFTER are git revisions or folders
with a checkout (AFTER: this checkout as it stands). Prints a line a file, with the first lines that differ,
and ends with 1 where any does.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SUITES = "sample_suites"
KINDS = ("json", "jsonl", "junit.xml", "html", "csv", "md", "promptfoo.json", "parquet")
_SHOWN = 12
"""Lines of a difference that are printed."""

_TIMED = re.compile(r"(^|_)(duration|latency|first_token|took|elapsed)|(_ms|Ms|_s)$|^(started|ended|created)")
"""Keys and columns that say when or for how long."""
_MASKS = tuple(
    (re.compile(pattern), blank)
    for pattern, blank in (
        # A run's name: its time and something drawn.
        (r"\d{8}[-_T]\d{6}(-[0-9a-z]{4,8})?", "RUN"),
        # Points in time, as texts and as numbers since the epoch.
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?( UTC)?", "TIME"),
        (r"\b1[6-9]\d{8}(\.\d+)?\b|\b1[6-9]\d{11}(\.\d+)?\b", "EPOCH"),
        # Identifiers that are drawn.
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
        (r"\b[0-9a-f]{32}\b", "ID"),
        # How long something took, in words and attributes.
        (r"\d[\d,]*(\.\d+)? ?(ms|s|min)\b", "SPAN"),
        (r'\btime="[\d.]+"', 'time="0"'),
        (r"(threshold SPAN</span>.{0,120}?actual</span> <code>)[\d.]+", r"\1N"),
        (r" · SPAN(?=<)", ""),  # a page leaves out a time that is none
    )
)


def masked(text: str) -> str:
    """A text without the times, durations and drawn identifiers that no two runs share."""
    for pattern, blank in _MASKS:
        text = pattern.sub(blank, text)
    return text


def untimed(value: Any) -> Any:
    """A value of a JSON file without figures that are times: those under such keys, and what a limit on the latency
    was compared with."""
    if isinstance(value, list):
        return [untimed(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("assertion")
    named = kind.get("type") if isinstance(kind, dict) else value.get("type")
    late = named == "latency" or "latency" in str(value.get("path"))  # an assertion, or its evidence
    timed = {key for key, item in value.items() if isinstance(item, int | float) and _TIMED.search(key)}
    timed |= {"actual"} if late else set()  # a duration of nothing at all is left out of a file
    return {key: untimed(item) for key, item in value.items() if key not in timed}


def shown(kind: str, data: bytes) -> str:
    """A results file as text without its times; everything else in its order, byte for byte."""
    if kind == "parquet":  # packed with its times
        import polars

        rows = [
            json.loads(line) for line in polars.read_parquet(io.BytesIO(data)).write_ndjson().splitlines()
        ]
        return masked("\n".join(json.dumps(untimed(row), ensure_ascii=False) for row in rows))
    text = data.decode("utf-8")
    if kind == "jsonl":
        lines = (json.dumps(untimed(json.loads(line)), ensure_ascii=False) for line in text.splitlines())
        return masked("\n".join(lines))
    if kind.endswith("json"):
        return masked(json.dumps(untimed(json.loads(text)), ensure_ascii=False, indent=1))
    if kind == "csv":
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        table = (
            [("" if _TIMED.search(name) else cell) for name, cell in zip(head, row, strict=True)]
            for row in rows
        )
        return masked("\n".join(map(repr, (head, *table))))
    return masked(text)


def checkout(version: str, folder: Path) -> Path:
    """The files of a version: a folder as it is, a revision taken out of git into `folder`.

    Raises:
        SystemExit: it is neither.
    """
    if (Path(version) / "tui_eval" / "__init__.py").is_file():
        return Path(version).resolve()
    done = subprocess.run(["git", "archive", version], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        raise SystemExit(f"{version}: neither a checkout nor a revision: {reason}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def results_of(version: Path, project: Path, *options: str) -> dict[str, bytes]:
    """The results files of the suites in `project`, by kind, as a version writes them with these options of `run`; the
    run leaves nothing else.

    Raises:
        SystemExit: the version cannot run them.
    """
    out = project.parent / "results"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    kept = ("PATH", "HOME", "LANG", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"PYTHONPATH": str(version), "XDG_STATE_HOME": str(out / "state"), "PYTHONHASHSEED": "0"}
    outputs = [word for kind in KINDS for word in ("-o", str(out / f"results.{kind}"))]
    command = [
        sys.executable,
        "-m",
        "tui_eval",
        "run",
        str(project),
        "-j",
        "1",
        "--display",
        "none",
        *options,
        *outputs,
    ]
    done = subprocess.run(
        command, cwd=project.parent, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{version}: the run ended with {done.returncode}: {done.stderr.strip()[-2000:]}")
    shutil.rmtree(project / ".tui-eval", ignore_errors=True)
    for folder in project.rglob("outputs"):
        shutil.rmtree(folder, ignore_errors=True)
    own = str(version).encode()  # a run keeps the command that began it
    typed = f" {shlex.join(options)}".encode() if options else own
    return {
        kind: (out / f"results.{kind}").read_bytes().replace(own, b"VERSION").replace(typed, b"")
        for kind in KINDS
    }


def differences(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[str, list[str]]:
    """For each kind of file the lines that differ, times apart; none where the files are the same."""
    found: dict[str, list[str]] = {}
    for kind in before:
        old, new = (shown(kind, data).splitlines() for data in (before[kind], after[kind]))
        first = next(
            (at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None
        )
        if first is None and len(old) == len(new):
            found[kind] = []
            continue
        # All of long files that differ in much takes difflib an hour.
        begin = len(old) if first is None else first
        parts = (lines[begin : begin + _COMPARED] for lines in (old, new))
        found[kind] = list(difflib.unified_diff(*parts, "before", "after", n=0, lineterm=""))
    return found


_COMPARED = 2000
"""Lines from the first one that differs."""


def main(words: Sequence[str] | None = None) -> int:
    """Compare two versions; 1 where a file differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=str(ROOT))
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name).resolve()
        versions = [checkout(given.before, base / "before"), checkout(given.after, base / "after")]
        project = base / "project"
        ignored = shutil.ignore_patterns(".tui-eval", "__pycache__", "outputs")
        shutil.copytree(versions[0] / SUITES, project, ignore=ignored)
        before, after = (results_of(version, project) for version in versions)
    found = differences(before, after)
    for kind, lines in found.items():
        size = f"{len(before[kind]):,} bytes"
        print(f"results.{kind}: {'the same' if not lines else 'DIFFERS'} ({size}, times apart)")
        for line in lines[:_SHOWN]:
            print(f"    {line[:300]}")
        if len(lines) > _SHOWN:
            print(f"    … {len(lines) - _SHOWN} more lines")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
