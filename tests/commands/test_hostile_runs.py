"""Runs that somebody else wrote: values of any type in any table, tables that are missing, versions that nobody
knows. Each command, and the index that the app's lists come from, tells it in a line or shows what can be shown."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.commands.conftest import CONFIG, SCRIPT, SUITE, Cli
from tests.engine.test_runs import go
from tui_eval.store.index import Index
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError

HUGE = 2**63 - 1
DAMAGE = {
    "cases: text in numbers": "UPDATE cases SET attempts = 'many', required = 'x'",
    "cases: bytes in numbers": "UPDATE cases SET attempts = x'00ff', required = x'00'",
    "cases: huge numbers": f"UPDATE cases SET attempts = {HUGE}, required = {HUGE}",
    "cases: less than nothing": "UPDATE cases SET attempts = -5, required = -9",
    "cases: numbers in texts": "UPDATE cases SET name = 5, suite = 7.5, format = 1, agent = 2, model = 3",
    "cases: bytes in texts": "UPDATE cases SET name = x'ff00', suite = x'ff', agent = x'fe', case_id = x'fd'",
    "cases: a body that is none": "UPDATE cases SET body = 'text'",
    "cases: a body of numbers": "UPDATE cases SET body = 12",
    "cases: a format that nobody knows": "UPDATE cases SET format = 'theirs'",
    "cases: all gone": "DELETE FROM cases",
    "bodies: text": "UPDATE bodies SET body = 'text'",
    "bodies: a number": "UPDATE bodies SET body = 3",
    "bodies: bytes": "UPDATE bodies SET body = x'78ff00'",
    "bodies: of nobody": "UPDATE bodies SET attempt_ref = attempt_ref + 1000",
    "attempts: states that nobody knows": "UPDATE attempts SET state = 'odd', outcome = 'maybe'",
    "attempts: bytes in texts": "UPDATE attempts SET state = x'ff', outcome = x'00', message = x'ff'",
    "attempts: numbers in texts": "UPDATE attempts SET outcome = 1, message = 2, answer = 3, judges = 4, detail = 5",
    "attempts: text in numbers": "UPDATE attempts SET attempt = 'one', turn = 'x', changed = 'x', asserted_nothing = 'x'",
    "attempts: of nobody": "UPDATE attempts SET case_ref = 999",
    "attempts: of text": "UPDATE attempts SET case_ref = 'x'",
    "meta: no facts": "DELETE FROM meta",
    "meta: no JSON": "UPDATE meta SET value = '{' WHERE key = 'info'",
    "meta: bytes": "UPDATE meta SET value = x'ff00' WHERE key = 'info'",
    "meta: a number": "UPDATE meta SET value = 12 WHERE key = 'info'",
    "meta: a time that is none": "UPDATE meta SET value = json_set(value, '$.started_at', 1e300, '$.finished_at', -1e300)",
    "meta: a time as text": "UPDATE meta SET value = json_set(value, '$.started_at', 'now')",
    "meta: odd provenance": "UPDATE meta SET value = json_set(value, '$.provenance', json('{\"git\": 5, \"models\": 3}'),"
    " '$.options', json('{\"judge\": [1], \"shard\": \"x\"}'), '$.metrics', json('[{\"a\": []}]'))",
    "meta: no assessment": "INSERT INTO meta VALUES ('assessment', '{\"total\": \"x\"}')",
    "meta: an assessment of a number": "INSERT INTO meta VALUES ('assessment', 5)",
    "meta: no plan": "INSERT INTO meta VALUES ('plan', x'78ff')",
    "live: odd": f"INSERT INTO live VALUES (1, 'x', 5, x'ff', x'00', 1, 2, 'late'), ({HUGE}, 1, 'assistant', '', '', '', '', 0)",
    **{f"no table {name}": f"DROP TABLE {name}" for name in ("meta", "cases", "attempts", "bodies", "live")},
    "no column": "ALTER TABLE attempts DROP COLUMN message",
    "a newer version": "PRAGMA user_version = 999",
    "a version below nothing": "PRAGMA user_version = -7",
    "a view in the place of a table": "DROP TABLE bodies; CREATE VIEW bodies AS SELECT 1 AS attempt_ref, 'x' AS body",
}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds a finished run, to copy."""
    root = tmp_path_factory.mktemp("recorded")
    for name, text in (("suite.yaml", SUITE), ("agent.script.yaml", SCRIPT), ("tui_eval.yaml", CONFIG)):
        (root / name).write_text(text, "utf-8")
    _, reader = asyncio.run(go(root))
    reader.close()
    return root / ".tui-eval" / "runs"


@pytest.mark.usually(12)
@pytest.mark.parametrize("name", DAMAGE)
def test_a_run_that_somebody_else_wrote_is_told_in_a_line(
    name: str, cli: Cli, project: Path, recorded: Path
) -> None:
    shutil.copytree(recorded, project / ".tui-eval" / "runs")
    (folder,) = Store(project).run_folders()
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.executescript(DAMAGE[name])
        connection.commit()
    for arguments in (
        ["runs"],
        ["show", folder.name],
        ["show", folder.name, "greets"],
        ["runs", "search", "hi"],
        ["rescore", folder.name, "-o", "again.html"],
        ["rescore", folder.name, "-o", "again.json", "-o", "again.xml", "-o", "again.md"],
        ["compare", folder.name, folder.name],
        ["resume", folder.name],
        ["assess", folder.name],
    ):
        given = cli(*arguments)
        said = given.out + given.err
        assert given.code in (0, 1, 2, 3, 4, 5), (arguments, given)
        assert "Traceback" not in said and "internal error" not in said.lower(), (arguments, said)
        if not given.out:
            assert given.err.strip(), (arguments, given)
    index = Index(project)
    with contextlib.suppress(StoreError):
        index.record(folder)
    index.runs(), index.latest(), index.figures(), index.history("suite.yaml::greets")


@pytest.mark.usually(12)
@pytest.mark.parametrize("name", DAMAGE)
def test_whoever_reads_it_gets_what_it_is_or_a_line(name: str, recorded: Path, tmp_path: Path) -> None:
    """Each question of the app's to a run: an answer of the right type, or `StoreError`."""
    (made,) = recorded.iterdir()
    folder = shutil.copytree(made, tmp_path / "run")
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as connection:
        connection.executescript(DAMAGE[name])
        connection.commit()
    try:
        reader = RunReader(folder)
    except StoreError as error:
        assert "\n" not in str(error)
        return
    with contextlib.closing(reader):
        for question in (
            reader.info, reader.cases, reader.attempts, reader.changes, reader.ended, reader.whole_plan,
            reader.live, reader.assessment, lambda: reader.case(1), lambda: reader.attempt(1), lambda: reader.answer(1),
        ):  # fmt: skip
            try:
                question()
            except StoreError as error:
                assert "\n" not in str(error)
        with contextlib.suppress(StoreError):
            for row in reader.cases():
                texts = (row.case_id, row.suite, row.name, row.format, row.agent, row.content_hash)
                assert all(type(text) is str for text in texts)
                assert type(row.attempts) is int and type(row.required) is int and row.attempts < 2**31
        with contextlib.suppress(StoreError):
            for one in reader.attempts():
                assert one.state in ("waiting", "running", "retrying", "done") and type(one.message) is str
                assert one.outcome in (None, "passed", "failed", "error", "cancelled", "skipped")
