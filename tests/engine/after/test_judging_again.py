"""One judgement per recorded answer: judged again, and again, by the file as it is, an answer is counted once."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import msgspec
import pytest

from tui_eval.assertions.judge_input import Reports
from tui_eval.commands.recorded_runs import past_tokens
from tui_eval.engine.after.rescoring import rescore
from tui_eval.engine.attempt.attempt_judging import seen_in
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import Recorded, RequestCell, RunRequest
from tui_eval.engine.run_context import RunContext
from tui_eval.engine.selection import SelectionError
from tui_eval.model import Attempt
from tui_eval.reports.console_table import RunTable
from tui_eval.reports.export import export
from tui_eval.reports.run_comparison import compare
from tui_eval.store import case_state
from tui_eval.store.index import Index
from tui_eval.store.linked import load_together
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import AttemptRow
from tui_eval.store.summary import CaseSummary
from tui_eval.tui.loaders.case_loader import load_past
from tui_eval.tui.loaders.runs_loader import load_facts

SUITE = "agent: helper\ntest_cases:\n  - {name: one, input: hello, expected: {should_contain: ['%s']}}\n"
SCRIPT = 'default: {say: "hi there", usage: {input: 100, output: 20}, cost: 0.01}\nrate: 5000\n'
PASSES, FAILS = SUITE % "hi", SUITE % "never said"


async def run(root: Path, **options) -> Path:
    active = prepare(RunRequest(paths=[str(root)], **options))
    assert active.writer is not None
    await active.execute()
    return active.writer.folder


async def judge(root: Path, folder: Path, attempt: int = 1) -> Path:
    """What `.` asks for on an attempt."""
    return await run(root, linked_to=folder.name, continue_from=Recorded(folder.name, attempt))


async def rescored(folder: Path) -> Path:
    active = rescore(folder, overrides=RunRequest())
    assert active.writer is not None
    await active.execute()
    return active.writer.folder


def rows_of(folder: Path) -> list[AttemptRow]:
    with closing(RunReader(folder)) as reader:
        return reader.attempts()


def attempts_of(folder: Path) -> list[Attempt]:
    with closing(RunReader(folder)) as reader:
        found = [reader.attempt(row.id) for row in reader.attempts()]
    return [one for one in found if one is not None]


def state(root: Path, folder: Path) -> CaseSummary:
    """What the case has come to, over the run and all that was added to it."""
    (one,) = load_together(Index(root).counting_folders(folder))
    return one


def facts(one: CaseSummary) -> tuple[object, ...]:
    return one.outcome, one.passed, one.attempts, one.flaky, one.tokens, round(one.cost or 0.0, 9)


@pytest.mark.parametrize("again", ["judge", "rescore"])
async def test_that_answers_are_of_an_agent_which_is_another_by_now_is_said_and_kept(
    project, again: str
) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root)

    async def note() -> str:
        folder = await judge(root, first) if again == "judge" else await rescored(first)
        with closing(RunReader(folder)) as reader:
            return reader.info().note

    assert await note() == ""
    (root / "agent.script.yaml").write_text(SCRIPT + "# edited\n")
    assert await note() == (
        "changed since these answers were given: agent helper (its files); run the cases to ask anew"
    )
    config = root / "tui_eval.yaml"
    config.write_text(config.read_text().replace("type: scripted", "type: scripted, model: other"))
    # A judgement of before it asked nobody: what counts is the run that did.
    assert "agent helper (its configuration)" in await note()


@pytest.mark.parametrize("again", ["judge", "rescore", "case"])
async def test_a_case_of_which_some_attempts_never_ran_is_none_that_passed(project, again: str) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root, attempts=3, max_cost=0.015, concurrency=1)
    assert [row.state for row in rows_of(first)] == ["done", "done", "waiting"]
    if again == "judge":
        judged = await judge(root, first, 2)
    elif again == "rescore":
        judged = await rescored(first)
    else:
        active = rescore(first, overrides=RunRequest(case_ids=["suite.yaml::one"]))
        assert active.writer is not None
        await active.execute()
        judged = active.writer.folder
    assert [(row.attempt, row.state, bool(row.judges)) for row in rows_of(judged)] == [
        (1, "done", True), (2, "done", True), (3, "waiting", False),
    ]  # fmt: skip
    (alone,) = load_together([judged])
    assert (alone.outcome, alone.attempts, alone.required) == (None, 2, 3)
    assert (state(root, first).outcome, state(root, first).attempts) == (None, 2)
    assert not Index(root).latest()
    # What ran says that it failed: that is known, whatever the third would have been.
    (root / "suite.yaml").write_text(FAILS)
    judged = await rescored(first)
    assert state(root, first).outcome == "failed"
    (result, *_) = Index(root).latest()["suite.yaml::one"]
    assert (result.outcome, result.attempts, result.run_id) == ("failed", 2, judged.name)


@pytest.mark.parametrize("again", ["judge", "rescore"])
@pytest.mark.parametrize("named", ["helper", "other"])
async def test_answers_of_an_agent_that_is_configured_no_more_are_judged(
    project, again: str, named: str
) -> None:
    """Nobody is asked: it was an error, as if somebody had to be."""
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root)
    (root / "tui_eval.yaml").write_text("agents:\n  other: {type: echo}\n")
    (root / "suite.yaml").write_text(FAILS.replace("agent: helper", f"agent: {named}"))
    cells = [RequestCell("suite.yaml::one", "helper", None, True)]
    if again == "judge":
        judged = await run(root, linked_to=first.name, continue_from=Recorded(first.name, 1), cells=cells)
    else:
        judged = await rescored(first)
    assert [(row.outcome, row.judges) for row in rows_of(judged)] == [("failed", f"{first.name}/1")]
    with closing(RunReader(judged)) as reader:
        assert "agent helper (no longer configured)" in reader.info().note
        assert [row.agent for row in reader.cases()] == ["helper"]


async def test_what_an_agent_that_is_gone_did_not_report_it_may_never_report(project) -> None:
    """What is missing would count as 0, or as false, and could pass."""
    (answer,) = attempts_of(await run(project(suite=PASSES, script=SCRIPT)))
    assert seen_in(answer) == Reports(tokens=True)
    answer.replies[0].usage, answer.replies[0].metadata = None, {}
    assert seen_in(answer) == Reports(metadata=True)


async def test_some_cases_of_a_run_are_judged_with_all_attempts_that_count(project) -> None:
    """What the app asks for when a suite is saved that it watches."""
    more = PASSES + "  - {name: two, input: hello, expected: {should_contain: ['hi']}}\n"
    root = project(suite=more, script=SCRIPT)
    first = await run(root, attempts=2)
    one = "suite.yaml::one"
    second = await run(root, case_ids=[one], linked_to=first.name, first_attempt=3)
    (root / "suite.yaml").write_text(more.replace("['hi']", "['never said']"))
    active = rescore(second, overrides=RunRequest(case_ids=[one]))
    assert active.writer is not None
    await active.execute()
    rows = rows_of(active.writer.folder)
    assert [(row.outcome, row.attempt, row.cost) for row in rows] == [("failed", n, None) for n in (1, 2, 3)]
    found = {case.name: facts(case) for case in load_together(Index(root).counting_folders(first))}
    assert found["one"][:3] == ("failed", 0, 3) and found["two"][:3] == ("passed", 2, 2)


@pytest.mark.parametrize("again", ["judge", "rescore"])
async def test_every_attempt_is_judged_and_each_answer_counts_once(project, again: str) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root, attempts=3)
    assert facts(state(root, first)) == ("passed", 3, 3, False, 360, 0.03)

    async def once_more(attempt: int = 1) -> Path:
        return await judge(root, first, attempt) if again == "judge" else await rescored(first)

    (root / "suite.yaml").write_text(FAILS)
    judged = await once_more(2)
    assert [(row.attempt, row.outcome, row.judges, row.cost) for row in rows_of(judged)] == [
        (number, "failed", f"{first.name}/{number}", None) for number in (1, 2, 3)
    ]
    assert facts(state(root, first)) == ("failed", 0, 3, False, 360, 0.03)
    (root / "suite.yaml").write_text(PASSES)
    await once_more()
    assert facts(state(root, first)) == ("passed", 3, 3, False, 360, 0.03)
    # The run keeps what it was; a judgement of a judgement judges the first recorded answer.
    assert [row.outcome for row in rows_of(first)] == ["passed"] * 3
    last = await judge(root, judged, 3) if again == "judge" else await rescored(judged)
    assert [row.judges for row in rows_of(last)] == [f"{first.name}/{number}" for number in (1, 2, 3)]
    assert facts(state(root, first)) == ("passed", 3, 3, False, 360, 0.03)


async def test_a_judgement_adds_nothing_to_what_runs_and_cases_took(project) -> None:
    """Wherever figures are summed up or compared with what is usual: the agent was asked once."""
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root, attempts=2)
    again = [await judge(root, first), await rescored(first)]
    known = Index(root).figures()
    assert known[first.name][1] == 240 and [known[one.name] for one in again] == [(None, None)] * 2
    assert [item.cost for item in Index(root).runs() if item.id != first.name] == [None, None]
    (case_id,) = {item.case_id for item in Index(root).history("suite.yaml::one")}
    history = Index(root).history(case_id)
    assert sorted((item.tokens or 0, item.cost or 0) for item in history) == [(0, 0), (0, 0), (240, 0.02)]
    # How long the answer took is shown beside its newest judgement.
    assert len({item.duration_ms for item in history}) == 1 and history[0].duration_ms is not None
    assert past_tokens(Store(root), history, "output_tokens") == [[20, 20]]
    past = load_past(root, case_id)
    assert len(past.attempts) == 6
    for budget, own in (("max_input_tokens", 100), ("cost", 0.01), ("max_tool_calls", 0)):
        assert past.values(budget) == [own] * 2, budget
    assert len(past.values("latency")) == 2
    facts_of = [load_facts(folder) for folder in (first, *again)]
    assert [(len(one.durations), one.tokens) for one in facts_of] == [(2, [120.0, 120.0]), (0, []), (0, [])]
    # What the answer took stays with it: budgets are judged by it.
    assert [one.usage and one.usage.output_tokens for one in attempts_of(again[0])] == [20, 20]


@pytest.mark.parametrize("cost", ["", ", cost: 0.01"])
@pytest.mark.parametrize("again", ["judge", "rescore"])
async def test_reports_of_a_judgement_name_no_tokens_and_no_cost(
    project, tmp_path: Path, again: str, cost: str
) -> None:
    """Neither the answer's once more, nor 0 where nobody knows it."""
    root = project(suite=FAILS, script=SCRIPT.replace(", cost: 0.01", cost))
    first = await run(root, attempts=2)
    folder = await judge(root, first) if again == "judge" else await rescored(first)
    text: dict[str, str] = {}
    with closing(RunReader(folder)) as reader:
        for ending in ("json", "jsonl", "csv", "html", "md", "promptfoo.json"):
            export(reader, tmp_path / f"r.{ending}")
            text[ending] = (tmp_path / f"r.{ending}").read_text()
        console = "\n".join(RunTable.of(reader).lines())
    for row in csv.DictReader(text["csv"].splitlines()):
        assert (row["tokens"], row["cost"]) == ("", "")
    found = json.loads(text["json"])
    assert [(one["tokens"], one["cost"]) for one in found["results"]] == [(None, None)] * 2
    assert not found["summary"]["total_tokens"] and not found["summary"]["total_cost"]
    stats = json.loads(text["promptfoo.json"])["results"]["stats"]
    assert stats["tokenUsage"]["total"] == 0 == stats["tokenUsage"]["numRequests"]
    for name in ("html", "md"):
        assert "$0.0" not in text[name] and " tokens" not in text[name], name
    assert "240" not in console and "0.0000" not in console and "0.0200" not in console
    # The run that asked has them, and the answer itself what is known of it.
    assert Index(root).figures()[first.name][1] == 240
    assert [one.cost for one in attempts_of(folder)] == [0.01 if cost else None] * 2


async def test_a_mended_file_makes_all_of_them_pass(project) -> None:
    root = project(suite=FAILS, script=SCRIPT)
    first = await run(root, attempts=3)
    assert facts(state(root, first))[:4] == ("failed", 0, 3, False)
    (root / "suite.yaml").write_text(PASSES)
    await judge(root, first)
    assert facts(state(root, first))[:4] == ("passed", 3, 3, False)


@pytest.mark.real
async def test_attempts_that_were_added_are_judged_with_the_others(project) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root, attempts=2)
    added = await run(root, attempts=1, first_attempt=3, linked_to=first.name)
    (root / "suite.yaml").write_text(FAILS)
    judged = await judge(root, added)
    assert [row.judges for row in rows_of(judged)] == [
        f"{first.name}/1", f"{first.name}/2", f"{added.name}/1",
    ]  # fmt: skip
    assert facts(state(root, first)) == ("failed", 0, 3, False, 360, 0.03)
    # One more after that adds to them; a rerun begins anew, and what is judged of the old ones is no news.
    await run(root, attempts=1, first_attempt=4, linked_to=judged.name)
    assert facts(state(root, first))[:3] == ("failed", 0, 4)
    (root / "suite.yaml").write_text(PASSES)
    await run(root, attempts=1, linked_to=first.name)
    assert facts(state(root, first))[:3] == ("passed", 1, 1)
    (root / "suite.yaml").write_text(FAILS)
    old = await judge(root, first)
    assert len(rows_of(old)) == 4, "the attempts that counted together with it"
    assert facts(state(root, first))[:3] == ("passed", 1, 1)


async def test_an_attempt_without_an_answer_does_not_pass_by_being_left_out(project) -> None:
    script = SCRIPT + "rules:\n  - {match: {contains: broken}, steps: [{error: boom}]}\n"
    suite = PASSES + "  - {name: two, input: broken, expected: {should_contain: [hi]}}\n"
    root = project(suite=suite, script=script)
    first = await run(root)
    judged = await rescored(first)
    assert [(row.outcome, row.message) for row in rows_of(judged)] == [
        ("passed", "passed"),
        ("error", "there is no recorded answer to judge (boom): run the case"),
    ]
    assert rows_of(judged)[1].cause == rows_of(first)[1].cause != ""
    assert [one.outcome for one in load_together(Index(root).counting_folders(first))] == ["passed", "error"]


@pytest.mark.parametrize("again", ["judge", "rescore"])
async def test_judging_an_error_again_makes_nothing_faster(project, again: str) -> None:
    """What there was of it took as long as it took; no time of the judging stands for the agent's."""
    script = "default: {steps: [{wait: 0.2}, {error: boom}]}\n"
    root = project(suite=PASSES, script=script + "rules: [{match: fine, say: hi}]\n")
    (root / "suite.yaml").write_text(PASSES + "  - {name: two, input: fine}\n")
    first = await run(root)
    judged = await (judge(root, first) if again == "judge" else rescored(first))
    took = rows_of(first)[0].duration_ms
    assert took is not None and took >= 200
    assert (rows_of(judged)[0].outcome, rows_of(judged)[0].duration_ms) == ("error", took)
    if again == "rescore":
        usual = compare(*(load_together([folder]) for folder in (first, judged))).usual
        assert usual.latency is not None and usual.latency[0] == usual.latency[1]


async def test_a_turn_that_was_never_answered_is_an_error(project) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root)
    more = "agent: helper\ntest_cases:\n  - {name: one, messages: [hello, bye], expected: {should_not_contain: [x]}}\n"
    (root / "suite.yaml").write_text(more)
    (row,) = rows_of(await judge(root, first))
    assert (row.outcome, row.message) == (
        "error", "the recorded attempt has no answer to turn 2: run the case",
    )  # fmt: skip


async def test_a_judgement_is_replaced_also_where_its_run_is_gone(project) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root)
    judged = await judge(root, first)
    shutil.rmtree(first)
    (root / "suite.yaml").write_text(FAILS)
    again = await judge(root, judged)
    (row,) = rows_of(again)
    assert (row.outcome, row.judges) == ("failed", f"{first.name}/1")
    (now,) = load_together([judged, again])
    assert facts(now)[:4] == ("failed", 0, 1, False)


async def test_answers_of_a_run_from_elsewhere_are_judged_where_it_is(project, tmp_path_factory) -> None:
    """Named by its folder, as every key of the app names it."""
    root = project(suite=PASSES, script=SCRIPT)
    made = await run(root, attempts=2)
    elsewhere = tmp_path_factory.mktemp("ci") / made.name
    shutil.move(made, elsewhere)
    (root / "suite.yaml").write_text(FAILS)
    judged = await run(root, linked_to=made.name, continue_from=Recorded(str(elsewhere), 1))
    assert [(row.outcome, row.judges) for row in rows_of(judged)] == [
        ("failed", f"{made.name}/1"), ("failed", f"{made.name}/2"),
    ]  # fmt: skip
    assert judged.parent == made.parent and len(list(elsewhere.parent.iterdir())) == 1


@pytest.mark.parametrize("again", ["judge", "rescore"])
async def test_who_cannot_be_asked_now_is_no_obstacle_where_nothing_is_sent(
    project, monkeypatch: pytest.MonkeyPatch, again: str
) -> None:
    """A key that is missing today, code that is not trusted: the recorded answer is judged, by what such an agent
    can report."""
    kinds = {
        "openai": "{type: openai, model: m, api_key: '${A_KEY}', base_url: 'http://127.0.0.1:9/v1', metadata: json}",
        "anthropic": "{type: anthropic, model: m, api_key: '${A_KEY}', metadata: json}",
        "http": "{type: http, url: 'https://agent.example/chat', headers: {Authorization: 'Bearer ${A_KEY}'}, reply: a}",
        "python": "{type: python, function: 'gone.py:answer'}",
        "command": "{type: command, command: [./gone]}",
    }
    one = "agent: %s\ntest_cases:\n  - {name: one, input: hello, expected: {should_contain: [%s], max_output_tokens: 5}}\n"
    files = {f"{kind}.yaml": one % (kind, "never") for kind in kinds}
    both = "agents:\n" + "".join(
        f"  {kind}: {{type: scripted, script: agent.script.yaml}}\n" for kind in kinds
    )
    root = project(suite=PASSES.replace("helper", "python"), script=SCRIPT, config=both, **files)
    first = await run(root)
    monkeypatch.delenv("A_KEY", raising=False)
    today = "agents:\n" + "".join(f"  {kind}: {entry}\n" for kind, entry in kinds.items())
    (root / "tui_eval.yaml").write_text(today)
    for kind in kinds:
        (root / f"{kind}.yaml").write_text(one % (kind, "hi"))
    with closing(RunReader(first)) as reader:
        refs = {case.suite: row.id for case in reader.cases() for row in reader.attempts(case.id)}
    if again == "rescore":
        rows = rows_of(await rescored(first))
    else:
        paths = [f"{kind}.yaml" for kind in kinds]
        asked = [
            RunRequest(paths=[str(root / path)], linked_to=first.name, continue_from=Recorded(first.name, refs[path]))
            for path in paths
        ]  # fmt: skip
        rows = []
        for request in asked:
            active = prepare(request)
            assert active.writer is not None
            await active.execute()
            rows += rows_of(active.writer.folder)
    own = [(row.outcome, row.message) for row in rows if row.judges != f"{first.name}/{refs['suite.yaml']}"]
    assert [outcome for outcome, _ in own] == ["failed"] * 5, own
    assert all("20" in message for _, message in own), own


async def test_what_earlier_versions_judged_is_followed_to_the_first_recording(project) -> None:
    """They kept in the run's options what its one attempt judged, and nothing in its row."""
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root)
    judged = await judge(root, first)
    with sqlite3.connect(judged / "run.db") as connection:
        connection.execute("UPDATE attempts SET judges = ''")
    again = await judge(root, judged)
    assert [row.judges for row in rows_of(again)] == [f"{first.name}/1"]
    assert facts(state(root, first))[:3] == ("passed", 1, 1)


async def test_what_is_no_result_is_not_judged(project) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    folder = await run(root)
    with sqlite3.connect(folder / "run.db") as connection:
        connection.execute("UPDATE attempts SET outcome = 'cancelled'")
    with pytest.raises(SelectionError, match="no recorded answer"):
        await judge(root, folder)


# The answer's rows

NAO = "name: one\nprompt: how many?\nsql: |\n  %s\n"
ROWS = 'default: {say: "41 and 1", rows: [{n: 41}, {n: 1}], usage: {input: 100, output: 20}}\nrate: 5000\n'
RIGHT, WRONG, TYPO = (
    "SELECT n FROM t ORDER BY n DESC",
    "SELECT n + 1 AS n FROM t",
    "SELECT n FORM t",
)
CONFIG = """
agents: {helper: {type: scripted, script: agent.script.yaml, extraction: guide}}
databases: {shop: {type: duckdb, path: shop.duckdb}}
suites: [{path: "tests/**", agent: helper, database: shop}]
"""


def nao(project, sql: str) -> Path:
    root = project(script=ROWS, config=CONFIG, **{"tests/one.yml": NAO % sql})
    (root / "suite.yaml").unlink()
    with duckdb.connect(str(root / "shop.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT * FROM (VALUES (1), (41)) AS v(n)")
    return root


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("again", ["judge", "rescore", "rescore the last"])
async def test_a_typo_that_is_mended_is_as_if_it_had_not_been(project, again: str) -> None:
    root = nao(project, RIGHT)
    folder = first = await run(root)
    (answered,) = attempts_of(first)
    assert answered.outcome == "passed" and len(answered.replies) == 2, answered.message
    for sql, outcome in (
        (TYPO, "error"),
        (RIGHT, "passed"),
        (WRONG, "failed"),
        (TYPO, "error"),
        (RIGHT, "passed"),
    ):
        (root / "tests/one.yml").write_text(NAO % sql)
        if again == "judge":
            folder = await judge(root, folder)
        else:
            folder = await rescored(folder if again == "rescore the last" else first)
        (judged,) = attempts_of(folder)
        assert judged.outcome == outcome, judged.message
        # The turn that asked for the rows stays, with its tokens.
        assert judged.replies == answered.replies and judged.usage == answered.usage
        assert [one.text for one in judged.transcript if one.kind == "user"] == [
            one.text for one in answered.transcript if one.kind == "user"
        ]
        assert judged.response_text == answered.response_text
    assert facts(state(root, first))[:5] == ("passed", 1, 1, False, answered_tokens(answered))


def answered_tokens(attempt: Attempt) -> int:
    usage = attempt.usage
    assert usage is not None
    return (usage.input_tokens or 0) + (usage.output_tokens or 0)


@pytest.mark.real
async def test_rows_that_were_never_recorded_are_an_error_not_a_failure(
    project, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = nao(project, TYPO)
    with monkeypatch.context() as patched:

        async def fine(*_: object) -> None:
            """The query broke after it was tried."""

        patched.setattr(RunContext, "try_sql", fine)
        first = await run(root)
    assert attempts_of(first)[0].outcome == "error"
    (root / "tests/one.yml").write_text(NAO % RIGHT)
    for folder in (await judge(root, first), await rescored(first)):
        (judged,) = attempts_of(folder)
        assert (judged.outcome, judged.message) == (
            "error", "no rows were recorded with the answer: run the case",
        )  # fmt: skip
    # Neither are those that were asked for with other columns.
    (root / "tests/one.yml").write_text(NAO % RIGHT)
    again = await run(root)
    (root / "tests/one.yml").write_text(NAO % "SELECT n AS m FROM t")
    (judged,) = attempts_of(await judge(root, again))
    assert judged.outcome == "error" and "asked for with the columns n: run the case" in judged.message


@pytest.mark.real
async def test_an_answer_of_more_rows_than_are_shown_is_judged_whole(project) -> None:
    root = nao(project, "SELECT range AS n FROM range(1500)")
    rows = "[" + ", ".join(f"{{n: {number}}}" for number in range(1499)) + ", {n: -1}]"
    (root / "agent.script.yaml").write_text(f"default: {{say: many, rows: {rows}}}\nrate: 5000\n")
    first = await run(root)
    (answered,) = attempts_of(first)
    assert answered.outcome == "failed"
    (root / "tests/one.yml").write_text(
        NAO % "SELECT CASE range WHEN 1499 THEN -1 ELSE range END AS n FROM range(1500)"
    )
    (judged,) = attempts_of(await judge(root, first))
    assert judged.outcome == "passed", judged.message


def test_the_rows_of_judgements_are_read_from_older_runs(tmp_path: Path) -> None:
    """Their attempts have no such column."""
    from tests.support.live_run import LiveRun

    made = LiveRun(tmp_path, ["x"])
    made.all_done(["passed"])
    with sqlite3.connect(made.folder / "run.db") as connection:
        connection.execute("ALTER TABLE attempts DROP COLUMN judges")
    (row,) = rows_of(made.folder)
    assert row.judges == "" and msgspec.structs.asdict(row)["outcome"] == "passed"


@pytest.mark.real
@pytest.mark.parametrize("gone", ["typed", "variable", "file"])
async def test_answers_are_judged_again_though_their_agent_could_not_be_asked_now(
    project, monkeypatch, gone: str
) -> None:
    """Nobody is asked: neither trust in the agent's code nor its variables or its file are needed."""
    agent = "def answer(message):\n    return 'hi there', {'tools_used': ['look']}\n"
    suite = (
        "test_cases:\n  - {name: one, input: hello, expected: {should_contain: [hi], tools_used: [look]}}\n"
    )
    root = project(suite=suite, **{"bot.py": agent})
    if gone == "typed":
        given = f"{root / 'bot.py'}:answer"
        first = await run(root, agents=[given])
    else:
        monkeypatch.setenv("NAME_OF_BOT", "bot")
        entry = "{type: python, function: '${NAME_OF_BOT}.py:answer'}"
        (root / "tui_eval.yaml").write_text(f"agents:\n  bot: {entry}\n")
        first = await run(root, agents=["bot"], trust=True)
    assert [row.outcome for row in rows_of(first)] == ["passed"]
    if gone == "variable":
        monkeypatch.delenv("NAME_OF_BOT")
    elif gone == "file":
        (root / "bot.py").unlink()
    assert [(row.outcome, row.message) for row in rows_of(await rescored(first))] == [("passed", "passed")]
    (root / "suite.yaml").write_text(suite.replace("[hi]", "[never]"))
    assert [row.outcome for row in rows_of(await rescored(first))] == ["failed"]


@pytest.mark.real
@pytest.mark.parametrize("again", ["judge", "rescore"])
async def test_a_judgement_adds_no_bar_to_the_sparkline(project, again: str) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    first = await run(root, attempts=2)
    second = await run(root, attempts=2)

    def bars() -> list[float]:
        ((*results,),) = Index(root).latest().values()
        return [one.passed / one.attempts for one in case_state.over_runs(results)]

    assert bars() == [1.0, 1.0]
    for text, newest in ((FAILS, 0.0), (PASSES, 1.0), (FAILS, 0.0)):
        (root / "suite.yaml").write_text(text)
        await (judge(root, second) if again == "judge" else rescored(second))
        assert bars() == [1.0, newest]
    # A judgement of one before it stands there; one that was replaced takes no place among those that are kept.
    await (judge(root, first) if again == "judge" else rescored(first))
    assert bars() == [0.0, 0.0]
    ((*kept,),) = Index(root).latest().values()
    assert len(kept) == 4


async def test_attempts_that_are_being_made_beside_it_are_waited_for(project) -> None:
    root = project(suite=PASSES, script=SCRIPT)
    active = prepare(RunRequest(paths=[str(root)], attempts=2))
    assert active.writer is not None
    folder = active.writer.folder
    with pytest.raises(SelectionError, match="has not ended"):
        await judge(root, folder)
    first, second = (row.id for row in rows_of(folder))
    active.writer.done(first, Attempt("suite.yaml::one", 1, "passed", agent="helper"))
    active.writer.flush()
    with pytest.raises(SelectionError, match=f"run {folder.name} goes on with this case"):
        await judge(root, folder, first)
    await active.execute()
    assert [row.judges for row in rows_of(await judge(root, folder, first))] == [
        f"{folder.name}/{number}" for number in (first, second)
    ]


async def test_of_a_cases_columns_only_those_asked_for_are_judged_again(project) -> None:
    agents = "agents: {helper: {type: scripted, script: s.yaml}, other: {type: scripted, script: s.yaml}}\n"
    root = project(FAILS)
    (root / "s.yaml").write_text(SCRIPT)
    (root / "tui_eval.yaml").write_text(agents)
    folder = await run(root, agents=["helper", "other"])
    cell = RequestCell(next(iter(RunReader(folder).cases())).case_id, "other", None)
    active = rescore(folder, overrides=RunRequest(case_ids=[cell.case_id], cells=[cell]))
    assert active.writer is not None
    await active.execute()
    assert [case.agent for case in RunReader(active.writer.folder).cases()] == ["other"]


@pytest.mark.parametrize("again", ["judge", "rescore"])
async def test_what_was_unknown_is_unknown_when_it_is_judged_again(project, again: str) -> None:
    """The record has no figure where the agent gave none that can be read: that is not 0."""
    suite = "agent: helper\ntest_cases:\n  - {name: one, input: hello, expected: {max_output_tokens: 5, escalated: false}}\n"
    root = project(suite=suite)
    (root / "bot.py").write_text(
        "def answer(message):\n    return {'reply': 'hi', 'usage': [9000], 'metadata': 'escalated'}\n"
    )
    (root / "tui_eval.yaml").write_text("agents:\n  helper: {type: python, function: 'bot.py:answer'}\n")
    first = await run(root, trust=True)
    (asked,) = attempts_of(first)
    assert asked.outcome == "error"
    (judged,) = attempts_of(await judge(root, first) if again == "judge" else await rescored(first))
    assert [one.passed for one in judged.verdicts] == [None, None] and judged.outcome == "error"
    told = [one.text for one in asked.transcript]
    assert [one.text for one in judged.transcript][: len(told)] == told
    assert sum(" unknown: " in one.text for one in judged.transcript) == 3


async def test_a_run_is_opened_once_for_all_its_answers_and_says_how_far_that_is(
    project, monkeypatch, capsys
) -> None:
    """Twenty thousand answers opened it twenty thousand times: as many milliseconds, in which nothing was said."""
    from tui_eval.commands import progress
    from tui_eval.engine.after import judging_again

    cases = "".join(
        f"  - {{name: n{n}, input: hello, expected: {{should_contain: [hi]}}}}\n" for n in range(9)
    )
    root = project(suite="agent: helper\ntest_cases:\n" + cases, script=SCRIPT)
    first = await rescored(await run(root))  # judgements, which name answers of another run
    opened: list[Path] = []

    def reader(folder: Path) -> RunReader:
        opened.append(folder)
        return RunReader(folder)

    monkeypatch.setattr(judging_again, "RunReader", reader)
    monkeypatch.setattr(progress, "SO_FAR", 0.0)
    active = rescore(first, overrides=RunRequest(), so_far=progress.Progress("plain").so_far)
    assert len(active.jobs) == 9 and len(opened) <= 4
    said = capsys.readouterr().err
    assert "reading the recorded answers: 3 of 9" in said and "assertions: 8 of 9" in said
    await active.execute()
