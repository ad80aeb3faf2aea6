"""`run --changed`: what passed and has not changed since is left out, and nothing else."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.commands.conftest import SUITE, Cli, fast_samples
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import TABLES
from tui_eval.store.write_thread import connect


def ran(cli: Cli, *arguments: str) -> list[str]:
    result = cli("run", ".", "--changed", "--display", "json", *arguments)
    assert result.code in (0, 1, 5), result.err
    return sorted(json.loads(line)["case_id"].partition("::")[2] for line in result.out.splitlines())


@pytest.fixture
def passing(project: Path) -> Path:
    """A project in which everything passes."""
    (project / "suite.yaml").write_text(SUITE.replace("should_not_contain", "should_contain"), "utf-8")
    return project


ALL = ["costs", "greets", "says sorry"]


@pytest.fixture
def of_one_name(project: Path) -> Path:
    """Three suites with a provider of their own each, of one name."""
    for folder, questions in (("a", "ab"), ("b", "cd"), ("c", "e")):
        (project / folder).mkdir()
        asked = "".join(
            f"  - vars: {{q: {q}}}\n    assert: [{{type: contains, value: {q}}}]\n" for q in questions
        )
        (project / folder / "promptfooconfig.yaml").write_text(
            f"prompts: ['{{{{q}}}}']\nproviders: [{{id: echo, config: {{kind: 1}}}}]\ntests:\n{asked}",
            "utf-8",
        )
    (project / "suite.yaml").unlink()
    return project


def test_providers_of_one_name_in_several_suites_are_no_other_ones(cli: Cli, of_one_name: Path) -> None:
    assert len(ran(cli)) == 5
    assert "changed since" not in cli("rescore", "last").err
    assert cli("run", ".", "--changed").code == 5


def test_shards_of_suites_whose_providers_have_one_name_are_one_run(cli: Cli, of_one_name: Path) -> None:
    for number in range(1, 5):
        cli("run", ".", "--shard", f"{number}/4")
    merged = cli("merge", *(path.name for path in Store(of_one_name).runs_folder.iterdir()))
    assert merged.code == 0, merged.err
    assert cli("run", ".", "--changed").code == 5


def test_what_passed_is_left_out_and_that_is_no_success(cli: Cli, passing: Path) -> None:
    assert ran(cli) == ALL
    nothing = cli("run", ".", "--changed")
    assert nothing.code == 5 and "3 passed last time and nothing of them has changed since" in nothing.err
    assert cli("run", ".").code == 0  # without it, everything


def test_what_did_not_pass_runs_again(cli: Cli, project: Path) -> None:
    assert ran(cli) == ALL
    assert ran(cli) == ["says sorry"] == ran(cli)


@pytest.mark.parametrize("written", ["bot.py", "expected.txt", "other.py"])
def test_what_was_edited_while_a_run_went_on_and_put_back_counts_as_changed(
    cli: Cli, passing: Path, written: str
) -> None:
    """A branch that was checked out and left again: its code had answered, and there was `nothing to run`."""
    (passing / "other.py").write_text("", "utf-8")
    (passing / "expected.txt").write_text("hi", "utf-8")
    (passing / "lib").mkdir()
    (passing / "lib" / "bot.py").write_text(
        "from pathlib import Path\n\n\ndef answer(message):\n"
        f"    file = {{'bot.py': Path(__file__)}}.get({written!r}, Path({str(passing)!r}, {written!r}))\n"
        "    file.write_bytes(file.read_bytes())\n    return 'hi'\n",
        "utf-8",
    )
    (passing / "promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [bot]\ntests:\n"
        "  - {description: b, vars: {q: x}, assert: [{type: equals, value: file://expected.txt}]}\n",
        "utf-8",
    )
    with open(passing / "tui_eval.yaml", "a", encoding="utf-8") as config:
        config.write("  bot: {type: python, function: 'lib/bot.py:answer'}\n")
    given = ("promptfooconfig.yaml", "--agent", "bot", "--trust")
    assert cli("run", *given).code == 0
    assert cli("run", *given, "--changed").code == (5 if written == "other.py" else 0)


def test_a_pass_under_a_lower_threshold_is_none(cli: Cli, project: Path) -> None:
    assert cli("run", ".", "--threshold", "0").code == 0
    assert ran(cli) == ["says sorry"]


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text("utf-8")
        assert old in text
        (folder / name).write_text(text.replace(old, new), "utf-8")

    return change


def add(name: str, text: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_text(text, "utf-8")

    return write


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (edit("suite.yaml", '["hi"]', '["hi", "there"]'), ["greets"]),
        (edit("suite.yaml", "  - name: greets", "  # a remark\n\n  - name: greets"), []),
        (edit("agent.script.yaml", "hi there", "hi you there"), ALL),
        (edit("tui_eval.yaml", "agents:\n", "# a remark\nagents:\n"), []),
        (edit("tui_eval.yaml", "script: agent.script.yaml", "script: agent.script.yaml, concurrency: 2"), []),
        (edit("tui_eval.yaml", "script: agent.script.yaml", "script: agent.script.yaml, files: [notes.md]"), ALL),
        (edit("tui_eval.yaml", "script: agent.script.yaml", "script: agent.script.yaml, seed: 7"), ALL),
        (add("unrelated.txt", "x"), []),
    ],
)  # fmt: skip
def test_what_a_result_rests_on(
    cli: Cli, passing: Path, change: Callable[[Path], None], expected: list[str]
) -> None:
    (passing / "notes.md").write_text("notes", "utf-8")
    cli("run", ".")
    change(passing)
    assert ran(cli) == expected
    assert ran(cli) == []


def test_a_test_without_a_name_is_no_other_one_where_one_is_put_in_before_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    head = "providers: [echo]\nprompts: ['{{q}}']\ntests:\n"
    tests = ["- {description: first, vars: {q: x}}", "- {vars: {q: y}, assert: [{type: equals, value: y}]}"]
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(head + "\n".join(tests), "utf-8")
    assert len(ran(cli)) == 2
    file.write_text(head + "\n".join(["- {description: new, vars: {q: z}}", *tests]), "utf-8")
    assert ran(cli) == ["new::echo::prompt1"]
    file.write_text(head + tests[1], "utf-8")
    assert ran(cli) == []


def test_another_column_and_more_attempts_are_asked(cli: Cli, passing: Path) -> None:
    cli("run", ".")
    assert ran(cli, "-m", "other") == ALL
    assert ran(cli, "-m", "other") == []
    assert ran(cli, "--attempts", "2") == sorted([*ALL, *ALL])
    assert ran(cli, "--attempts", "2") == []


def test_files_that_a_case_names_and_code_beside_them(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{a}}']\nproviders: [echo]\ntests:\n"
        "  - {description: data, vars: {a: one}, assert: [{type: contains, value: 'file://want.txt'}]}\n"
        "  - {description: code, vars: {a: two}, assert: [{type: javascript, value: 'file://check.js'}]}\n"
        "  - {description: plain, vars: {a: three}, assert: [{type: contains, value: three}]}\n",
        "utf-8",
    )
    (tmp_path / "want.txt").write_text("one", "utf-8")
    (tmp_path / "check.js").write_text("module.exports = (output) => output === 'two'", "utf-8")
    (tmp_path / "helper.js").write_text("// 1", "utf-8")
    first = [name.partition("::")[0] for name in ran(cli, "--trust")]
    assert first == ["code", "data", "plain"]
    assert ran(cli, "--trust") == []
    (tmp_path / "want.txt").write_text("on", "utf-8")
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["data"]
    (tmp_path / "helper.js").write_text("// 2", "utf-8")
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["code"]
    assert ran(cli, "--trust") == []


def test_an_answer_judged_again_still_knows_its_agent(cli: Cli, passing: Path) -> None:
    cli("run", ".")
    edit("agent.script.yaml", "hi there", "hi you there")(passing)
    cli("rescore")
    assert ran(cli) == ALL


def test_a_shard_does_not_know_what_changed(cli: Cli, passing: Path) -> None:
    refused = cli("run", ".", "--changed", "--shard", "1/2")
    assert refused.code == 4 and refused.err.count("\n") == 1


@pytest.mark.real
def test_the_samples_that_passed_are_left_out(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(fast_samples(tmp_path))
    cli("run", ".", "--display", "none", "--trust", "-o", "first.json")
    rows = json.loads(Path("first.json").read_text())["cases"]
    red = {row["case_id"] for row in rows if row["outcome"] != "passed"}
    again = cli("run", ".", "--changed", "--display", "json", "--trust")
    found = {json.loads(line)["case_id"] for line in again.out.splitlines()}
    assert red <= found and len(found) < len({row["case_id"] for row in rows})


def test_a_file_that_a_prompt_takes_in_counts(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rules").mkdir()
    for name, text in {
        "promptfooconfig.yaml": """
prompts: [file://plain.txt, file://chat.json]
providers: [echo]
tests: [{description: one, vars: {city: Oslo}, assert: [{type: contains, value: Oslo}]}]
""",
        "plain.txt": "{{ city }}",
        "chat.json": '[{"role": "user", "content": "{{ city }} {% include \\"rules/all.txt\\" %}"}]',
        "rules/all.txt": "{%- import 'rules/macros.txt' as m -%} be short",
        "rules/macros.txt": "{% macro a() %}{% endmacro %}",
    }.items():
        Path(name).write_text(text, "utf-8")
    assert len(ran(cli)) == 2
    assert ran(cli) == []
    for name in ("rules/all.txt", "rules/macros.txt"):
        with Path(name).open("a") as file:
            file.write(" and kind")
        assert ran(cli) == ["one::echo::prompt2"]
        assert ran(cli) == []


RULED = """\
agents: {bot: {type: python, function: "bot.py:answer"}}
databases: {shop: {type: sqlite, path: shop.db}, copy: {type: sqlite, path: copy.db}}
suites: [{path: "tests/**", agent: bot, database: shop, comparison: {rtol: 0.5}}]
"""


@pytest.fixture
def ruled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A nao case whose answer is right within the tolerance of its suite, and one that no database is asked for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    for name, text in {
        "tui_eval.yaml": RULED,
        "bot.py": "def answer(message):\n    return 'hi' if message == 'hello' else '[{\"amount\": 100.4}]'\n",
        "tests/total.yaml": "name: total\nprompt: the total?\nsql: select 100.5 as amount\n",
        "talk.yaml": "agent: bot\ntest_cases: [{name: talk, input: hello, expected: {should_contain: [hi]}}]\n",
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
    for name in ("shop.db", "copy.db"):
        with sqlite3.connect(name) as database:
            database.execute("create table amounts (amount real)")
        database.close()
    return tmp_path


@pytest.mark.parametrize(
    ("settings", "others", "runs"),
    [
        ("evaluateOptions: {maxConcurrency: 2}", "evaluateOptions: {maxConcurrency: 8, delay: 1}", False),
        ("commandLineOptions: {maxConcurrency: 2}", "tags: {team: a}", False),
        ("tags: {team: a}", "outputPath: out.json", False),
        ("evaluateOptions: {timeoutMs: 60000}", "evaluateOptions: {timeoutMs: 50000}", True),
        ("env: {WORD: hi}", "env: {WORD: ho}", True),
        (
            "extensions: [file://hook.py:after_all]\ntags: {a: b}",
            "extensions: [file://hook.py:after_all]",
            True,
        ),
    ],
)
def test_how_fast_a_suite_is_asked_and_where_results_go_is_no_change(
    cli: Cli, passing: Path, settings: str, others: str, runs: bool
) -> None:
    """All of it was asked, and paid, again. What hooks see of a suite counts."""
    (passing / "suite.yaml").unlink()
    (passing / "hook.py").write_text("def after_all(hook, context):\n    pass\n", "utf-8")
    suite = passing / "promptfooconfig.yaml"
    rest = (
        "prompts: ['{{q}}']\nproviders: [echo]\ntests: [{vars: {q: x}, assert: [{type: equals, value: x}]}]\n"
    )
    suite.write_text(f"{settings}\n{rest}", "utf-8")
    assert ran(cli, "--trust")
    suite.write_text(f"{others}\n{rest}", "utf-8")
    assert bool(ran(cli, "--trust")) == runs


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("rtol: 0.5", "rtol: 0.00001"),
        ("database: shop,", "database: copy,"),
        ("path: shop.db", "path: copy.db"),
        ("agent: bot,", "agent: bot, compat: reference,"),
    ],
)
def test_a_pass_under_other_settings_is_none(cli: Cli, ruled: Path, old: str, new: str) -> None:
    assert cli("run", ".", "--trust").code == 0
    assert ran(cli, "--trust") == []
    edit("tui_eval.yaml", old, new)(ruled)
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["total"]


@pytest.mark.real
def test_a_pass_by_the_rules_of_the_original_tool_is_none_by_the_documented_ones(
    cli: Cli, ruled: Path
) -> None:
    assert cli("run", ".", "--trust", "--compat", "reference").code == 0
    assert len(ran(cli, "--trust")) == 2
    assert ran(cli, "--trust", "--compat", "documented") == []
    assert len(ran(cli, "--trust", "--compat", "reference")) == 2


def test_a_database_counts_for_the_cases_that_ask_it(cli: Cli, ruled: Path) -> None:
    assert cli("run", ".", "--trust").code == 0
    with sqlite3.connect("shop.db") as database:
        database.execute("insert into amounts values (1)")
    database.close()
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["total"]


def test_the_only_database_is_nothing_to_cases_that_ask_none(cli: Cli, passing: Path) -> None:
    with (passing / "tui_eval.yaml").open("a") as file:
        file.write("databases: {shop: {type: sqlite, path: shop.db}}\n")
    (passing / "shop.db").write_bytes(b"one")
    assert cli("run", ".").code == 0
    (passing / "shop.db").write_bytes(b"two")
    assert ran(cli) == []


def test_a_pass_by_another_judge_is_none_of_what_a_model_grades(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.script.yaml").write_text(
        'rules: [{match: ".", say: \'{"pass": true, "score": 1, "reason": "good"}\'}]\n', "utf-8"
    )
    (tmp_path / "tui_eval.yaml").write_text(
        "agents:\n  kind: {type: scripted, script: judge.script.yaml}\n"
        "  strict: {type: scripted, script: judge.script.yaml, seed: 2}\njudge: kind\n",
        "utf-8",
    )
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{a}}']\nproviders: [echo]\ntests:\n"
        "  - {description: graded, vars: {a: one}, assert: [{type: llm-rubric, value: good}]}\n"
        "  - {description: named, vars: {a: two}, assert: [{type: llm-rubric, value: good, provider: strict}]}\n"
        "  - {description: plain, vars: {a: three}, assert: [{type: contains, value: three}]}\n",
        "utf-8",
    )
    first = cli("run", ".")
    assert first.code == 0, first.out + first.err
    assert ran(cli) == []
    edit("tui_eval.yaml", "seed: 2", "seed: 3")(tmp_path)
    assert [name.partition("::")[0] for name in ran(cli)] == ["named"]
    edit("tui_eval.yaml", "judge: kind", "judge: strict")(tmp_path)
    assert [name.partition("::")[0] for name in ran(cli)] == ["graded", "named"]
    assert ran(cli) == []


@pytest.mark.real
def test_a_pass_by_other_prices_is_none_where_the_cost_is_judged(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tui_eval.yaml").write_text("prices: {m: {input: 1.0, output: 2.0}}\n")
    Path("bot.py").write_text("def call_api(*a):\n    return {'output': 'hi', 'cost': 0.1}\n")
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['{{a}}']\nproviders: ['file://bot.py']\ntests:\n"
        "  - {description: cheap, vars: {a: one}, assert: [{type: cost, threshold: 1}]}\n"
        "  - {description: code, vars: {a: one}, assert: [{type: javascript, value: context.providerResponse.cost < 1}]}\n"
        "  - {description: plain, vars: {a: two}, assert: [{type: javascript, value: output === 'hi'}]}\n",
        "utf-8",
    )
    assert cli("run", ".", "--trust").code == 0
    assert ran(cli, "--trust") == []
    edit("tui_eval.yaml", "input: 1.0", "input: 3.0")(tmp_path)
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["cheap", "code"]
    assert ran(cli, "--trust") == []


@pytest.mark.real
def test_what_variables_lead_to_counts(cli: Cli, ruled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit("tui_eval.yaml", '"bot.py:answer"', '"${BOT}:answer", variables: [MODE, SHOP_TOKEN]')(ruled)
    edit("tui_eval.yaml", "path: shop.db", "path: '${SHOP:-shop.db}'")(ruled)
    for name, value in {"BOT": "bot.py", "MODE": "works", "SHOP_TOKEN": "a-token-of-some-length"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SHOP", raising=False)
    assert cli("run", ".", "--trust").code == 0
    assert ran(cli, "--trust") == []
    monkeypatch.setenv("SHOP_TOKEN", "another-token-of-that-length")
    assert ran(cli, "--trust") == []  # a secret that was renewed
    monkeypatch.setenv("MODE", "broken")
    assert len(ran(cli, "--trust")) == 2
    with (ruled / "bot.py").open("a") as file:
        file.write("# edited\n")
    assert len(ran(cli, "--trust")) == 2
    with sqlite3.connect("shop.db") as database:
        database.execute("insert into amounts values (1)")
    database.close()
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["total"]


@pytest.mark.real
def test_what_shards_of_suites_with_other_settings_passed_is_left_out_after_they_were_merged(
    cli: Cli, ruled: Path
) -> None:
    """Each part lists the exceptions among its own suites: as soon as these differed nothing was known of any."""
    (ruled / "plain.yaml").write_text(
        "agent: bot\ntest_cases:\n"
        + "".join(
            f"  - {{name: p{n}, input: hello, expected: {{should_contain: [hi]}}}}\n" for n in range(3)
        ),
        "utf-8",
    )
    assert cli("run", ".", "--trust", "-o", "all.json").code == 0
    every = len(json.loads((ruled / "all.json").read_text())["results"])
    folders: list[str] = []
    for number in range(1, 7):
        if cli("run", ".", "--shard", f"{number}/6", "--trust").code != 5:
            folders.append(Store(Path.cwd()).find("last").name)
    for folder in Store(Path.cwd()).run_folders():
        if folder.name not in folders:
            shutil.rmtree(folder)
    merged = cli("merge", *folders)
    assert merged.code == 0 and f"All {every} cases passed" in merged.out, merged
    for name in folders:
        shutil.rmtree(Store(Path.cwd()).folder_of(name))
    nothing = cli("run", ".", "--changed", "--trust")
    assert nothing.code == 5 and f"{every} passed last time" in nothing.err
    edit("tui_eval.yaml", "rtol: 0.5", "rtol: 0.6")(ruled)
    assert 0 < len(ran(cli, "--trust")) < every


def cut_short(folder: Path) -> None:
    os.truncate(folder / "run.db", 5000)


def of_a_newer_version(folder: Path) -> None:
    with contextlib.closing(sqlite3.connect(folder / "run.db")) as database:
        database.execute("PRAGMA user_version = 9999")


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("spoil", [cut_short, of_a_newer_version])
def test_what_passed_before_a_run_that_cannot_be_read_runs_again_once(
    cli: Cli, passing: Path, spoil: Callable[[Path], None], index: bool
) -> None:
    """Whether it passed there, too, nobody knows."""
    cli("run", ".")
    cli("run", ".", "-s", "costs")
    lost = next(Store(passing).run_folders())
    spoil(lost)
    if not index:
        (passing / ".tui-eval" / "index.db").unlink()
    if index and spoil is of_a_newer_version:
        assert ran(cli) == ["costs"]  # what it came to is in the index; what it rests on is not
        return
    said = f"not known is that of a run that cannot be read: {lost.name} (tui-eval runs says why)"
    one = cli("run", ".", "--changed", "-s", "greets")
    assert one.code == 0 and f"asks 1 that passed, too: {said}" in one.err + one.out
    assert ran(cli) == ["costs", "says sorry"]
    nothing = cli("run", ".", "--changed")
    assert nothing.code == 5 and lost.name not in nothing.err


@pytest.mark.parametrize("tables", [TABLES, ""])
def test_what_passed_before_a_run_that_was_cut_off_at_its_start_is_not_asked_again(
    cli: Cli, passing: Path, tables: str
) -> None:
    """Nothing of it ran: a run, or what was merged, that was killed before its facts, or its tables, were written."""
    cli("run", ".")
    started = Store(passing).create_folder(Store(passing).next_run()[0])
    with contextlib.closing(connect(started)) as database:
        database.executescript(tables)
    nothing = cli("run", ".", "--changed")
    assert nothing.code == 5 and started.name not in nothing.err
    assert "not known" not in cli("run", ".", "--failed").err
    assert f"{started.name}  " in (listed := cli("runs").out) and "cut off at its start: delete it" in listed
    assert "cut off at its start: delete it" in cli("resume", "last").err


def test_a_run_of_what_failed_says_that_a_later_one_cannot_be_read(cli: Cli, project: Path) -> None:
    cli("run", ".")
    cli("run", ".", "-s", "greets")
    lost = next(Store(project).run_folders())
    cut_short(lost)
    said = f"not known is that of a run that cannot be read: {lost.name} (tui-eval runs says why)"
    failed = cli("run", ".", "--failed")
    assert failed.code == 1 and said in failed.err + failed.out
    cli("run", ".")
    failed = cli("run", ".", "--failed")
    assert failed.code == 1 and said not in failed.err + failed.out


def test_a_merged_run_is_as_old_as_its_answers(
    cli: Cli, passing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shard in ("1/2", "2/2"):
        cli("run", ".", "--shard", shard)
    parts = [folder.name for folder in Store(passing).run_folders()]
    cli("run", ".")
    cut_short(next(Store(passing).run_folders()))
    assert cli("merge", *parts).code == 0
    assert ran(cli) == ALL
    assert ran(cli) == []


@pytest.mark.real
def test_what_a_variable_of_an_assertion_says_counts(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    add("promptfooconfig.yaml", "prompts: ['{{x}}']\nproviders: [echo]\ntests: file://tests.yaml\n")(tmp_path)
    tests = (
        "- {description: one, vars: {x: a b c}, assert: [{type: contains, value: '{{env.WORD}}'}]}\n"
        "- {description: none, vars: {x: a b c}, assert: [{type: contains, value: a}]}\n"
        "- {description: secret, vars: {x: a b c}, assert: [{type: not-contains, value: '{{env.BOT_TOKEN}}'}]}\n"
    )
    add("tests.yaml", tests)(tmp_path)
    monkeypatch.setenv("WORD", "a")
    monkeypatch.setenv("BOT_TOKEN", "a-token-of-some-length")
    assert cli("run", ".", "--trust").code == 0
    assert ran(cli, "--trust") == []
    monkeypatch.setenv("BOT_TOKEN", "another-token-of-that-length")
    assert ran(cli, "--trust") == []
    monkeypatch.setenv("WORD", "b")
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["one"]
    assert ran(cli, "--trust") == []


@pytest.mark.parametrize(
    ("value", "counts"),
    [
        ("{% set e = env %}{{ e.B5X }}", True),
        ("{{ env[n] }}", True),
        ("{{-env['B5' + 'X']}}", True),
        ("{% for k, v in env %}{{ v }}{% endfor %}{{ env.B5X }}", True),
        ("{{ 'an env of }}' and env[n] }}", True),
        ("file://wanted.txt", True),
        ("the env {{ env.B5X }} and {{ env['B5X'] }} {{ 'env' }} {{ q.env }}", False),
    ],
)
def test_a_template_that_reads_variables_without_their_names_runs_each_time(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, counts: bool
) -> None:
    """Nobody knows which they are: what passed with another value was left out."""
    monkeypatch.chdir(tmp_path)
    add("promptfooconfig.yaml", "prompts: ['{{q}}']\nproviders: [echo]\ntests: file://tests.yaml\n")(tmp_path)
    test = {"description": "one", "vars": {"q": "hello", "n": "B5X"}}
    plain = {"description": "none", "vars": {"q": "env", "env": "own"}}
    tests = [
        {**test, "assert": [{"type": "not-equals", "value": value}]},
        {**plain, "assert": [{"type": "not-equals", "value": "{{ env | upper }}"}]},
    ]
    add("tests.yaml", json.dumps(tests))(tmp_path)
    add("wanted.txt", "{% set e = env %}{{ e.B5X }}")(tmp_path)
    monkeypatch.setenv("B5X", "some")
    assert cli("run", ".", "--trust").code == 0
    assert [name.partition("::")[0] for name in ran(cli, "--trust")] == ["one"] * counts
    again = cli("run", ".", "--trust", "--changed")
    said = "asks 1 that passed, too: not known is which variables they read"
    assert (said in again.err + again.out) is counts
