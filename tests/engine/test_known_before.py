"""Nobody is paid for an answer of which nothing could be judged: what is known before is said before."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.model import Attempt
from tui_eval.store.reader import RunReader

WriteProject = Callable[..., Path]

JUDGE = "def grade(message):\n    return 'hello'\n"
BOT = "agents:\n  bot: {type: scripted, script: agent.script.yaml}\n"
SCRIPT = "speed: 0\ndefault: {say: hello, cost: 0.5, rows: [{n: 1}]}\n"


async def run(root: Path, **options: object) -> list[Attempt]:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(root)], **options))  # type: ignore[arg-type]
    await active.execute()
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    found = [reader.attempt(row.id) for row in reader.attempts()]
    return [one for one in found if one is not None]


def nao(
    project: WriteProject, sql: str, more: str = "", database: str = "{type: duckdb, path: shop.duckdb}"
) -> Path:
    root = project(
        config=f"{BOT}databases:\n  shop: {database}\nsuites:\n  - {{path: '**', agent: bot, database: shop}}\n",
        script=SCRIPT,
        **{"tests/one.yml": f"name: one\nprompt: how many?\nsql: {sql}\n{more}"},
    )
    (root / "suite.yaml").unlink()
    with duckdb.connect(str(root / "shop.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT 1 AS n")
    return root


@pytest.mark.real
@pytest.mark.parametrize(
    ("sql", "database", "said"),
    [
        ("SELECT nn FROM t", "{type: duckdb, path: shop.duckdb}", 'Referenced column "nn" not found'),
        ("SELEC n FROM t", "{type: duckdb, path: shop.duckdb}", "syntax error"),
        ("DROP TABLE t", "{type: duckdb, path: shop.duckdb}", "SELECT"),
        ("SELECT n FROM t", "{type: duckdb, path: gone.duckdb}", "gone.duckdb"),
        ("SELECT n FROM t", "{type: duckdb, path: ../outside.duckdb}", "needs trust: read "),
        ("SELECT n FROM t", "{type: duckdb, path: suite.duckdb}", "suite.duckdb"),
    ],
)
@pytest.mark.parametrize("more", ["", "assertions: [{type: tool_call, tool: execute_sql}]\n"])
async def test_expected_sql_that_cannot_run_is_an_error_before_anybody_is_asked(
    project: WriteProject, sql: str, database: str, said: str, more: str
) -> None:
    root = nao(project, sql, more, database)
    (root / "suite.duckdb").write_bytes(b"this is no database" * 500)
    (attempt,) = await run(root, trust=False)
    assert attempt.outcome == "error" and said in attempt.message, attempt.message
    assert attempt.cost is None and not attempt.replies
    assert any("was not asked" in entry.text for entry in attempt.transcript)
    assert attempt.data is not None and attempt.data.reference_sql == sql
    assert attempt.data.settings["not_asked"] is True and attempt.data.actual is None


async def test_a_misspelt_database_is_an_error_before_a_python_agent_is_asked(project: WriteProject) -> None:
    root = nao(project, "SELECT n FROM t", "database: shopp\n")
    config = (root / "tui_eval.yaml").read_text()
    (root / "tui_eval.yaml").write_text(
        config.replace(BOT, "agents:\n  bot: {type: python, function: 'bot:answer'}\n")
    )
    (root / "bot.py").write_text(
        "def answer(message):\n    open('asked', 'a').write('x')\n    return 'one'\n"
    )
    (attempt,) = await run(root, trust=True)
    assert attempt.outcome == "error" and not attempt.replies and not (root / "asked").exists()
    assert attempt.message == "there is no database 'shopp'; did you mean 'shop'? There is: shop"


@pytest.mark.parametrize("columns", ["n", "*"])
async def test_where_expected_sql_fails_after_the_answer_came_its_rows_are_kept_at_once(
    project: WriteProject, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lets_it_pass(*_: object) -> None:
        """As where a query fails in a late row, takes too long, or its database is changed by the agent."""

    monkeypatch.setattr("tui_eval.engine.run_context.RunContext.try_sql", lets_it_pass)
    (attempt,) = await run(nao(project, f"SELECT {columns} FROM (SELECT ('x' || n)::INT AS n FROM t);"))
    assert attempt.outcome == "error" and "Could not convert string" in attempt.message, attempt.message
    assert attempt.data is not None and "not_asked" not in attempt.data.settings
    assert attempt.data.actual == [{"n": 1}] and attempt.data.columns == ["n"]


@pytest.mark.real
async def test_expected_sql_without_end_takes_no_longer_than_its_attempt_and_says_whose_time_was_up(
    project: WriteProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT max(n) AS n FROM r"
    root = nao(project, endless)
    (attempt,) = await run(root, timeout=0.5)
    late = "the query took longer than 0.5 s"
    assert attempt.outcome == "error" and f"{late} (the time limit of the attempt)" in attempt.message
    monkeypatch.setattr("tui_eval.engine.run_context._SQL_TIMEOUT", 0.5)
    (attempt,) = await run(root)
    assert f"{late} (the most that expected SQL may)" in attempt.message


async def test_expected_sql_that_runs_is_tried_once_for_all_its_attempts(
    project: WriteProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tui_eval.frames import sql as frames_sql

    tried: list[str] = []
    execute_all = frames_sql.execute_all

    def counted(database, queries, **limits):
        tried.extend(queries)
        return execute_all(database, queries, **limits)

    monkeypatch.setattr(frames_sql, "execute_all", counted)
    attempts = await run(nao(project, "SELECT n FROM t"), attempts=3, concurrency=1)
    assert [one.outcome for one in attempts] == ["passed"] * 3
    assert tried == ["SELECT n FROM t"]


PROMPTFOO = """
prompts: ["hi"]
providers: [bot]
tests:
  - assert: [%s]
"""


@pytest.mark.real
@pytest.mark.parametrize(
    ("asserted", "said"),
    [
        ("{type: llm-rubric, value: kind}", "no judge is configured"),
        ("{type: llm-rubric, value: kind, provider: {id: 'nobody:speaks-this'}}", "nobody:speaks-this"),
        ("{type: python, value: 'len(output) > 3'}", "needs trust: run inline Python"),
        ("{type: python, value: 'file://check.py'}", "needs trust: run check.py"),
        ("{type: javascript, value: 'file://gone.js'}", "there is no file gone.js"),
        ("{type: llm-rubric, value: kind}, {type: python, value: 'True'}", "no judge is configured"),
    ],
)
async def test_a_test_of_which_nothing_can_be_judged_asks_nobody(
    project: WriteProject, monkeypatch: pytest.MonkeyPatch, asserted: str, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    files = {
        "promptfooconfig.yaml": PROMPTFOO % asserted,
        "check.py": "def get_assert(*a):\n    return True\n",
    }
    root = project(config=BOT, script=SCRIPT, **files)
    (root / "suite.yaml").unlink()
    (attempt,) = await run(root)
    assert attempt.outcome == "error" and said in attempt.message, attempt.message
    assert attempt.cost is None and not attempt.replies
    # Where something else is asserted it is asked: no verdict is hidden by another's error.
    (root / "promptfooconfig.yaml").write_text(PROMPTFOO % f"{asserted}, {{type: equals, value: hello}}")
    (attempt,) = await run(root)
    assert attempt.cost == 0.5 and [one.passed for one in attempt.verdicts][-1] is True


async def test_a_judge_that_cannot_be_made_is_known_before(project: WriteProject) -> None:
    config = f"{BOT}judge: {{type: python, function: 'grade.py:grade'}}\n"
    files = {"promptfooconfig.yaml": PROMPTFOO % "{type: llm-rubric, value: kind}", "grade.py": JUDGE}
    root = project(config=config, script=SCRIPT, **files)
    (root / "suite.yaml").unlink()
    (attempt,) = await run(root)
    assert attempt.outcome == "error" and "needs trust: run grade.py:grade" in attempt.message
    assert attempt.cost is None and not attempt.replies
