"""`tui-eval check`: cases that prove nothing, expected values that are given away."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.commands.conftest import Cli, Result
from tui_eval.commands import check, expected_sql
from tui_eval.frames.sql import end_idle


def test_a_prompt_into_which_nothing_is_filled_is_noted_once(cli: Cli, project: Path) -> None:
    """promptfoo sends `Say {{q` as it stands, and a tag of two lines, too: no model was asked what was meant."""
    tests = "tests: [{vars: {q: [a, b]}, assert: [{type: contains, value: x}]}]\n"
    prompts = "prompts: ['Say {{q', \"{{ q |\\n upper }}\", 'Say {{q}}', '{{q}} {% raw %}{{{% endraw %}']\n"
    (project / "promptfooconfig.yaml").write_text(f"{prompts}providers: [echo]\n{tests}")
    told = cli("check", "promptfooconfig.yaml")
    assert told.code == 0 and told.out.count("a tag is not closed on its line; close it") == 2, told.out
    assert "prompts: Say {{q is sent as it stands, as by promptfoo" in told.out


def test_a_suite_to_which_hooks_may_add_cases_is_something_to_run(cli: Cli, project: Path) -> None:
    text = "prompts: [a, b]\nproviders: [echo, {id: echo, label: E, prompts: [a]}]\n"
    text += "tests: [{vars: {q: a}, providers: [E], prompts: [b]}]\n"
    (project / "promptfooconfig.yaml").write_text(text)
    assert cli("check", "promptfooconfig.yaml").code == 5
    (project / "promptfooconfig.yaml").write_text(f"{text}extensions: ['file://h.py:beforeAll']\n")
    (project / "h.py").write_text("def beforeAll(context, _):\n    return context\n")
    told = cli("check", "promptfooconfig.yaml")
    assert told.code == 0, told.out


def test_vacuous_lists_what_passes_without_an_answer(cli: Cli, project: Path) -> None:
    (project / "promptfooconfig.yaml").write_text(
        "prompts: ['say {{x}}']\nproviders: [echo]\ntests:\n"
        "  - {description: silent, vars: {x: 1}, assert: [{type: not-contains, value: sorry}]}\n"
        "  - {description: says, vars: {x: 2}, assert: [{type: contains, value: '2'}]}\n"
        "  - {description: judged, vars: {x: 3}, assert: [{type: llm-rubric, value: polite}]}\n"
        "  - {description: free, vars: {x: 4}}\n",
        "utf-8",
    )
    plain = cli("check", ".")
    assert plain.code == 0 and "answers nothing" not in plain.out
    told = cli("check", "--vacuous", ".")
    assert told.code == 0, told.err
    lines = [line for line in told.out.splitlines() if "answers nothing" in line]
    assert lines == [
        "promptfooconfig.yaml:4: silent: passes against an agent that answers nothing (note)",
        "promptfooconfig.yaml:7: free: passes against an agent that answers nothing: nothing is asserted (note)",
        "suite.yaml:6: says sorry: passes against an agent that answers nothing (note)",
    ]
    assert not (project / ".tui-eval" / "runs").exists()


SHOP = Path(__file__).parents[1] / "data" / "jaffle_shop"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    shutil.copytree(SHOP, folder)
    monkeypatch.chdir(folder)
    return folder


def test_expected_values_that_are_given_away(cli: Cli, shop: Path) -> None:
    clean = cli("check", ".")
    assert clean.code == 0 and "stands in" not in clean.out
    (shop / "RULES.md").write_text("# Rules\n\nRevenue is 1,672 dollars, as of 16720.\n", "utf-8")
    (shop / "tui_eval.yaml").write_text(
        "agents:\n  own: {type: openai, system: 'You know: 1672.00!'}\n"
        "suites:\n  - {path: 'tests/**', agent: own}\n",
        "utf-8",
    )
    test = shop / "tests" / "total_revenue.yml"
    test.write_text(test.read_text().replace("from all orders?", "from all orders (1.672,0)?"), "utf-8")
    told = cli("check", ".")
    assert told.code == 0
    cure = "; an agent can answer from there without the data (note)"
    assert [line for line in told.out.splitlines() if "stands in" in line] == [
        f"tests/total_revenue.yml:3: sql: the expected value 1.672,0 stands in tests/total_revenue.yml:2{cure}",
        f"tests/total_revenue.yml:3: sql: the expected value 1,672 stands in RULES.md:3{cure}",
        f"tests/total_revenue.yml:3: sql: the expected value 1672.00 stands in tui_eval.yaml (system of own):2{cure}",
    ]


def test_common_values_are_no_leak(cli: Cli, shop: Path) -> None:
    (shop / "RULES.md").write_text("There are 99 orders, 1 is new, yes; status ok. 1672\n", "utf-8")
    test = shop / "tests" / "total_revenue.yml"
    for sql in (
        "SELECT count(*) AS n FROM orders",
        "SELECT 1 AS a, true AS b, 'ok' AS c",
    ):
        test.write_text(f"name: t\nprompt: how many?\nsql: {sql}\n", "utf-8")
        told = cli("check", ".")
        assert told.code == 0 and "stands in" not in told.out, told.out


def test_a_query_that_cannot_execute_is_an_error_before_anything_is_paid(cli: Cli, shop: Path) -> None:
    (shop / "tests" / "typo.yml").write_text(
        "name: t\nprompt: how many?\nsql: SELECT nothing FROM orders\n", "utf-8"
    )
    (shop / "tests" / "writes.yml").write_text("name: w\nprompt: drop\nsql: DROP TABLE orders\n", "utf-8")
    told = cli("check", ".")
    assert told.code == 4
    lines = [line for line in told.out.splitlines() if ": sql:" in line]
    assert len(lines) == 2, told.out
    assert lines[0].startswith("tests/typo.yml:3: sql: does not execute: ") and '"nothing"' in lines[0]
    assert (
        lines[1]
        == "tests/writes.yml:3: sql: does not execute: only SELECT is allowed, not DROP; mend the query"
    )


def test_a_database_file_that_is_not_there_is_one_error_for_all_that_need_it(cli: Cli, shop: Path) -> None:
    (shop / "nao_config.yaml").write_text(
        "project_name: shop\ndatabases:\n  - {name: shop, type: duckdb, path: elsewhere.duckdb}\n", "utf-8"
    )
    queries = len(list((shop / "tests").glob("*.yml")))
    told = cli("check", ".")
    errors = [line for line in told.out.splitlines() if "cannot be executed" in line]
    assert told.code == 4 and len(errors) == 1 and " 1 error, " in told.out, told.out
    assert (f"(and that of {queries - 1} more)" in errors[0]) == (queries > 1)
    assert "there is no " in errors[0] and "elsewhere.duckdb" in errors[0]
    assert errors[0].endswith("; make it, or mend databases.shop in nao_config.yaml:3"), errors[0]
    (shop / "elsewhere.duckdb").write_text("a,b\n", "utf-8")
    told = cli("check", ".")
    assert told.code == 4 and "cannot be executed: database 'shop': " in told.out, told.out


COMMENTED = {
    "a line": ("-- how many\nSELECT no, oops FROM (SELECT 1 AS no)", 2, 12),
    "the same text": ("-- SELECT no, oops FROM x\nSELECT no, oops FROM x", 2, 22),
    "a block": ("/* how\n many */\nSELECT 1,\n oops", 4, 2),
    "several": ("\n-- one\n\n/* two */ -- three\nWITH q AS (SELECT 1 AS a) SELECT z FROM q", 5, 34),
    "behind": ("SELECT 1 -- one\n, oops", 2, 3),
    "not parsed": ("-- one\n/* two */\nSELECT a FRM t WHERE", 3, 14),
}


@pytest.mark.parametrize("where", COMMENTED)
def test_comments_before_a_query_leave_the_place_of_its_fault(cli: Cli, shop: Path, where: str) -> None:
    sql, row, column = COMMENTED[where]
    block = "".join(f"  {line}".rstrip() + "\n" for line in sql.splitlines())
    (shop / "tests" / "noted.yml").write_text(f"name: noted\nprompt: p\nsql: |2\n{block}", "utf-8")
    told = cli("check", "tests/noted.yml")
    first = told.out.splitlines()[0]
    assert first.startswith(f"tests/noted.yml:{3 + row}: sql: does not execute: "), told.out
    assert f"(line {row}, column {column} of the query)" in first, told.out


@pytest.mark.parametrize(
    ("kind", "good", "bad", "message"),
    [
        ("regex", r"(?<n>a)\k<n>", "(", "is no regular expression of JavaScript: "),
        ("not-regex", "a{1,2}", "a{2,1}", "is no regular expression of JavaScript: "),
        ("javascript", "const a = 1; a == output", "output.length >", "is no JavaScript: "),
        ("javascript", "if (output)\n  return true\nreturn false", "return (\n", "is no JavaScript: "),
        ("python", "import re\nreturn bool(re.match('a', output))", "len(output) >", "is no Python: "),
        ("contains", "(", "(", ""),
        ("regex", "{{x}}(", "{{x}}(", ""),
    ],
)
def test_what_does_not_compile_is_said(
    cli: Cli, project: Path, kind: str, good: str, bad: str, message: str
) -> None:
    for value, told_of in ((good, ""), (bad, message)):
        suite = {
            "prompts": ["say"],
            "providers": ["echo"],
            "tests": [{"assert": [{"type": kind, "value": value}]}],
        }
        (project / "promptfooconfig.yaml").write_text(json.dumps(suite), "utf-8")
        told = cli("check", "promptfooconfig.yaml")
        assert told.code == (4 if told_of else 0), told.out
        assert told_of in told.out


def _test(shop: Path, name: str, text: str) -> None:
    (shop / "tests" / f"{name}.yml").write_text(f"name: {name}\nprompt: how many?\n{text}", "utf-8")


def test_a_misspelt_database_is_an_error_with_the_nearest_name(cli: Cli, shop: Path) -> None:
    _test(shop, "slip", "database: duckdb-jafle-shop\nsql: SELECT 1 AS a\n")
    told = cli("check", ".")
    assert told.code == 4
    assert (
        "tests/slip.yml:3: database: there is no database 'duckdb-jafle-shop'; did you mean 'duckdb-jaffle-shop'?"
        in told.out
    )
    # nao takes its only database whatever the test calls it, so a name of another kind is odd, not wrong.
    _test(shop, "slip", "database: warehouse\nsql: SELECT 1 AS a\n")
    told = cli("check", ".")
    assert told.code == 0
    assert (
        "tests/slip.yml:3: database: there is no database 'warehouse': duckdb-jaffle-shop is taken"
        in told.out
    )
    # Of several none can be taken.
    path = shop / "nao_config.yaml"
    path.write_text(path.read_text() + "- {name: other, type: duckdb, path: ./jaffle_shop.duckdb}\n", "utf-8")
    _test(shop, "slip", "database: jaffle\nsql: SELECT 1 AS a\n")
    told = cli("check", "tests/slip.yml")
    assert told.code == 4 and "there is no database 'jaffle'" in told.out


def test_a_database_whose_name_may_not_be_read_yet_is_no_error(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "held")
    path = shop / "nao_config.yaml"
    added = "- {name: {{ env('OTHER') }}, type: duckdb, path: ./jaffle_shop.duckdb}\n"
    path.write_text(path.read_text() + added, "utf-8")
    _test(shop, "one", "database: held\nsql: SELECT 1 AS a\n")
    told = cli("check", "tests/one.yml")
    assert told.code == 0 and "the names of others are variables, which need trust (note)" in told.out
    assert "read the environment variable OTHER (nao_config.yaml: databases)" in told.out
    assert "no database" not in cli("check", "--trust", "tests/one.yml").out


def test_faulty_sql_is_shown_where_it_is_faulty(cli: Cli, shop: Path) -> None:
    _test(shop, "bind", "sql: |\n  SELECT status,\n         amout\n  FROM orders\n")
    wide = ", ".join(f"amount AS a{number}" for number in range(20))
    _test(shop, "wide", f"sql: |\n\n  SELECT {wide}, numbr\n  FROM orders\n")
    _test(shop, "parse", "sql: |\n\n  SELECT status FORM orders\n")
    _test(shop, "table", "sql: SELECT status FROM ordrs\n")
    _test(shop, "runtime", "sql: SELECT CAST(status AS INTEGER) AS n FROM orders\n")
    told = cli("check", ".")
    assert told.code == 4
    lines = told.out.splitlines()

    def place(name: str) -> tuple[int, str]:
        return next((n, line) for n, line in enumerate(lines) if line.startswith(f"tests/{name}.yml:"))

    at, head = place("bind")
    assert head.startswith("tests/bind.yml:5: sql: does not execute: ")
    assert "(line 2, column 8 of the query)" in head
    assert lines[at + 1].strip().startswith('Candidate bindings: "amount"')
    assert lines[at + 2].index("amout") == lines[at + 3].index("^^^^^")
    column = len(f"SELECT {wide}, ") + 1
    assert (
        place("wide")[1].startswith("tests/wide.yml:5:")
        and f"(line 2, column {column} of" in place("wide")[1]
    )
    assert place("parse")[1].startswith("tests/parse.yml:5:") and "(line 2, column 20 of" in place("parse")[1]
    assert place("table")[1].startswith("tests/table.yml:3:") and "(line 1, column 20 of" in place("table")[1]
    assert 'Did you mean "orders"?' in lines[place("table")[0] + 1]
    assert "Could not convert string" in place("runtime")[1]  # what binding alone does not find


def test_what_makes_expected_rows_change_by_themselves_is_noted(cli: Cli, shop: Path) -> None:
    sql = {
        "some": "SELECT status FROM orders LIMIT 3",
        "inner": "SELECT count(*) AS n FROM (SELECT status FROM orders LIMIT 3)",
        "fetched": "SELECT status FROM orders FETCH FIRST 3 ROWS ONLY",
        "skipped": "SELECT status FROM orders OFFSET 3",
        "clock": "SELECT count(*) AS n FROM orders WHERE order_date < current_timestamp",
        "today": "SELECT today() AS day",
        "chance": "SELECT random() AS r",
        "named": "SELECT gen_random_uuid() AS r",
        "sampled": "SELECT status FROM orders USING  SAMPLE 3",
        "seeded": "SELECT status FROM orders TABLESAMPLE reservoir(3) REPEATABLE (42)",
        "local": "SELECT localtimestamp AS t",
        "sorted": "SELECT status FROM orders ORDER BY status LIMIT 3",
        "single": "SELECT count(*) AS n FROM orders LIMIT 1",
        "words": "SELECT 'now() limit' AS n",
    }
    for name, query in sql.items():
        _test(shop, name, f'sql: "{query}"\n')
    told = cli("check", ".")
    assert told.code == 0
    notes = {line.partition(":")[0].removeprefix("tests/").removesuffix(".yml"): line
             for line in told.out.splitlines() if "(note)" in line}  # fmt: skip
    assert set(notes) == {
        "some", "inner", "fetched", "skipped", "clock", "today", "chance", "named", "sampled", "local",
    }, told.out  # fmt: skip
    assert "gen_random_uuid() changes" in notes["named"] and "USING SAMPLE changes" in notes["sampled"]
    assert "localtimestamp changes" in notes["local"]
    assert "LIMIT without ORDER BY" in notes["some"] and "LIMIT without ORDER BY" in notes["inner"]
    assert "FETCH without ORDER BY" in notes["fetched"] and "OFFSET without ORDER BY" in notes["skipped"]
    assert "current_timestamp changes what is expected" in notes["clock"]
    assert "today() changes" in notes["today"] and "random() changes" in notes["chance"]


def test_a_key_of_the_comparison_that_the_query_does_not_give(cli: Cli, shop: Path) -> None:
    _test(shop, "keyed", "comparison: {key: [statuz]}\nsql: SELECT status FROM orders\n")
    told = cli("check", ".")
    assert told.code == 4
    line = next(line for line in told.out.splitlines() if "comparison.key" in line)
    assert (
        line
        == "tests/keyed.yml:3: comparison.key: the query gives no column 'statuz'; did you mean 'status'?"
    )


def test_an_order_that_counts_and_that_the_query_does_not_say(cli: Cli, shop: Path) -> None:
    _test(shop, "loose", "comparison: {ordered: true}\nsql: SELECT status FROM orders\n")
    _test(shop, "sorted", "comparison: {ordered: true}\nsql: SELECT status FROM orders ORDER BY status\n")
    _test(shop, "one", "comparison: {ordered: true}\nsql: SELECT count(*) AS n FROM orders\n")
    told = cli("check", ".")
    assert told.code == 0
    [line] = [line for line in told.out.splitlines() if "comparison.ordered" in line]
    assert (
        line.startswith("tests/loose.yml:3: comparison.ordered: the query has no ORDER BY")
        and "(note)" in line
    )


def test_many_queries_are_tried_on_one_connection_and_a_bad_one_spoils_no_other(cli: Cli, shop: Path) -> None:
    for number in range(120):
        sql = "SELECT nothing FROM orders" if number % 10 == 7 else f"SELECT {number} AS n FROM orders"
        _test(shop, f"t{number}", f"sql: {sql}\n")
    told = cli("check", ".")
    bad = sorted(line.partition(":")[0] for line in told.out.splitlines() if "does not execute" in line)
    assert bad == sorted(f"tests/t{number}.yml" for number in range(7, 120, 10))


def test_alone_where_the_tables_of_all_cannot_be_loaded_together(cli: Cli, shop: Path) -> None:
    import sqlite3

    with sqlite3.connect(shop / "small.sqlite") as made:
        made.execute("CREATE TABLE good (a INTEGER)")
        made.execute("INSERT INTO good VALUES (1)")
        made.execute("CREATE VIEW broken AS SELECT * FROM nowhere")
    made.close()
    (shop / "nao_config.yaml").write_text(
        "project_name: shop\ndatabases:\n  - {name: small, type: sqlite, path: small.sqlite}\n", "utf-8"
    )
    (shop / "tests" / "total_revenue.yml").unlink()
    _test(shop, "good", "sql: SELECT a FROM good\n")
    _test(shop, "typo", "sql: SELECT b FROM good\n")
    told = cli("check", ".")
    assert told.code == 4
    assert [line.partition(":")[0] for line in told.out.splitlines() if "does not execute" in line] == [
        "tests/typo.yml"
    ]


@pytest.mark.real
def test_a_view_without_end_is_a_note_as_a_slow_query_is_that_check_ends_with(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(tmp_path / "shop.sqlite")) as made:
        made.execute(
            "CREATE VIEW endless AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
        )
        made.execute("CREATE TABLE orders (id INTEGER)")
        made.commit()
    (tmp_path / "nao_config.yaml").write_text(
        "project_name: shop\ndatabases:\n  - {name: shop, type: sqlite, path: shop.sqlite}\n", "utf-8"
    )
    (tmp_path / "tests").mkdir()
    for name, sql in (("bad", "SELECT * FROM endless"), ("good", "SELECT id FROM orders")):
        (tmp_path / "tests" / f"{name}.yaml").write_text(f"name: {name}\nprompt: p\nsql: {sql}\n", "utf-8")
    monkeypatch.setattr(expected_sql, "SECONDS", 0.5)
    done = cli("check", str(tmp_path))
    assert done.code == 0 and "was not tried to its end: the query took longer than 0.5 s" in done.out
    told = [line for line in (done.out + done.err).splitlines() if "took longer than" in line]
    assert len(told) == 1 and "tests/bad.yaml:" in told[0] and "0.5 s" in told[0], done


@pytest.mark.parametrize("kind", ["is-json", "contains-json"])
def test_a_schema_that_nothing_can_be_compared_with_is_an_error_with_its_line(
    cli: Cli, project: Path, kind: str
) -> None:
    good = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    broken = {
        "data/type must match a schema": {"type": "objct"},
        'unknown keyword: "requierd"': {"type": "object", "requierd": ["a"]},
        'no schema with key or ref "https://json-schema.org/draft/2020-12/schema"': {
            "$schema": "https://json-schema.org/draft/2020-12/schema"
        },
        "the schema is not YAML": "{type: object",
        "must have a string or object value": ["a"],
    }
    for said, value in {"": good, "(templates are filled in first)": {"enum": ["{{x}}"], "tpye": 1}}.items():
        told = _checked_schema(cli, kind, value)
        assert told.code == 0 and "schema" not in told.out, said
    for said, value in broken.items():
        told = _checked_schema(cli, kind, value)
        assert told.code == 4, told.out
        line = next(line for line in told.out.splitlines() if "its schema is broken" in line)
        assert line.startswith(f"promptfooconfig.yaml:4: {kind}: ") and said in line, line
        told = _checked_schema(cli, f"not-{kind}", value)
        assert told.code == 0, told.out
        assert len([line for line in told.out.splitlines() if f"not-{kind}: " in line]) == 1, told.out


def _checked_schema(cli: Cli, kind: str, value: Any) -> Result:
    one = json.dumps({"vars": {"x": "1"}, "assert": [{"type": kind, "value": value}]})
    text = f"prompts: ['say {{{{x}}}}']\nproviders: [echo]\ntests:\n- {one}\n"
    Path("promptfooconfig.yaml").write_text(text, "utf-8")
    return cli("check", "promptfooconfig.yaml")


def test_a_query_that_takes_longer_than_check_gives_it_is_a_note_that_says_so(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert expected_sql.SECONDS == 10
    monkeypatch.setattr(expected_sql, "SECONDS", 0.2)
    _test(shop, "slow", "sql: SELECT count(*) AS n FROM range(100000000000) a WHERE hash(a.range) % 7 = 1\n")
    told = cli("check", ".")
    assert told.code == 0, told.out
    line = next(line for line in told.out.splitlines() if "slow.yml" in line and "not tried" in line)
    assert "was not tried to its end: the query took longer than 0.2 s" in line
    assert line.endswith("check gives one query 0.2 s; a run gives it more (note)")


def test_what_will_need_trust_is_one_line_with_code_first_and_a_command_that_grants_just_that(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THE_PERSON", "x")
    (project / "a.py").write_text("def check(output, context):\n    return 's' in output\n", "utf-8")
    suite = (
        "prompts: ['say {{x}} {{ env.OF_THE_PERSON }}']\nproviders: [echo]\ntests:\n"
        "- {vars: {x: 1}, assert: [{type: python, value: 'file://a.py:check'}]}\n"
    )
    (project / "promptfooconfig.yaml").write_text(suite, "utf-8")
    told = cli("check", "promptfooconfig.yaml")
    (line,) = [line for line in told.out.splitlines() if line.startswith("trust: ")]
    assert told.code == 0 and line.startswith(
        "trust: when run, 2 things will need it: run a.py; read the environment variable OF_THE_PERSON. "
    ), told.out
    words = shlex.split(line.partition("agree to just these: ")[2])
    assert words[:3] == ["tui-eval", "run", "promptfooconfig.yaml"] and words[3] == "--trust-only"
    assert cli("run", "promptfooconfig.yaml").code == 1
    ran = cli(*words[1:])
    assert ran.code == 0 and "needs trust" not in ran.out + ran.err, ran.out + ran.err
    # What came afterwards was not listed.
    more = "- {vars: {x: 2}, assert: [{type: python, value: '1'}]}\n"
    (project / "promptfooconfig.yaml").write_text(suite + more, "utf-8")
    ran = cli(*words[1:])
    assert ran.code == 1 and "1 thing needs trust" in ran.err and "run inline Python" in ran.err
    assert "1 passed, 0 failed, 1 error, 2 total" in ran.out
    again = shlex.split(ran.out.partition("again: ")[2].splitlines()[0])
    assert again[-2] == "--trust-only" and set(again[-1].split(",")) == set(words[4].split(","))
    refused = cli(*words[1:4], "nonsense")
    assert refused.code == 4 and "is no fingerprint" in refused.err
    assert "trust: " not in cli("check", "--trust", "promptfooconfig.yaml").out


def test_a_postgres_that_cannot_be_reached_is_one_note_and_no_wrong_query(
    cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is the driver's extra that is not there, or an address that is not given."""
    (shop / "nao_config.yaml").unlink()
    config = "databases:\n  shop: {type: postgres, url: 'postgresql://127.0.0.1:9/shop'}\n"
    (shop / "tui_eval.yaml").write_text(config)
    (shop / "lib").mkdir()
    driver = shop / "lib" / "adbc_driver_postgresql.py"
    monkeypatch.setenv("PYTHONPATH", f"{driver.parent}:{os.environ.get('PYTHONPATH', '')}")
    driver.write_text(
        "class dbapi:\n    def connect(url):\n        raise OSError('IO: [libpq] Failed to connect: could not connect')\n"
    )
    end_idle()  # its process has the driver of before
    try:
        told = cli("check", ".")
        assert told.code == 0, told.out
        notes = [line for line in told.out.splitlines() if "cannot be reached" in line]
        assert len(notes) == 1 and notes[0].endswith("(note)"), told.out
        assert "cannot be tried here: database 'shop' cannot be reached: could not connect" in notes[0]
        assert "does not execute" not in told.out
        driver.write_text("raise ImportError")
        end_idle()
        told = cli("check", ".")
        assert told.code == 0 and "which needs the extra postgres" in told.out, told.out
        assert "does not execute" not in told.out
    finally:
        end_idle()


def test_progress_is_one_line_that_is_written_over_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def told(tty: bool) -> str:
        monkeypatch.setattr(sys.stderr, "isatty", lambda: tty, raising=False)
        counting = check.Counting("expected SQL")
        for done in range(1, 2001):
            now[0] += 0.006  # 12 s in all
            counting.at(done, 2000)
        counting.end()
        return capsys.readouterr().err

    shown = told(tty=True)
    assert "\n" not in shown and shown.endswith("\r\x1b[K")
    assert "\rexpected SQL: 1,003 of 2,000" in shown and 80 <= shown.count("\r") <= 122
    assert told(tty=False).splitlines() == [
        "expected SQL: 834 of 2,000",
        "expected SQL: 1,668 of 2,000",
    ]


def test_progress_that_nobody_sees_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 10_000, 6))
    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: float(next(times))))
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stderr", full)
        counting = check.Counting("expected SQL")
        counting.at(1, 2)
        counting.at(2, 2)
        assert Path(f"/proc/self/fd/{full.fileno()}").resolve() == Path("/dev/null")
    monkeypatch.undo()


def test_check_says_how_far_it_has_come(cli: Cli, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(0, 10_000, 6))
    monkeypatch.setattr(check, "time", SimpleNamespace(monotonic=lambda: float(next(times))))
    told = cli("check", ".")
    lines = [line for line in told.err.splitlines() if line.startswith("expected SQL: ")]
    assert lines and lines[0].startswith("expected SQL: 1 of "), told.err


NAMED = """
prompts: ["Hi {{x}}", "Oh {{x | lost}}"]
providers: [echo]
tests:
  - vars: {x: file://gone.json}
    assert:
      - {type: equals, value: file://gone.txt}
      - {type: not-contains, value: file://there.txt}
      - {type: javascript, value: "file://gone.js:judge"}
      - {type: contains-all, value: [Hi, file://gone.txt]}
      - {type: contains, value: "{{x | nofilter}}"}
      - {type: contains, value: "{{x"}
      - {type: contains}
      - {type: not-icontains, value: ""}
      - {type: contains-any, value: 3}
      - {type: regex, value: ""}
      - {type: latency}
      - {type: cost}
      - {type: contains, value: Hi, transform: file://gone.js}
      - {type: contains, value: "{{x | upper}} {% if x %}a{% endif %}"}
      - {type: contains, value: 3}
      - {type: javascript, value: "output.length > 0 ? {a: {b: 1}} : 0"}
      - {type: pi, value: is it so}
      - type: assert-set
        assert:
          - {type: is-json, value: file://gone.json}
    options: {transform: file://gone.py}
"""


def test_what_a_promptfoo_test_names_and_no_answer_mends_is_an_error(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("promptfooconfig.yaml").write_text(NAMED, "utf-8")
    Path("there.txt").write_text("Hello", "utf-8")
    told = cli("check", ".")
    assert told.code == 4
    gone = "there is no file gone.{}; paths are relative to the configuration's folder"
    none = "needs a text to look for, and there is none; write it as `value:`"
    expected = [
        "5: vars.x: " + gone.format("json"), "5: options.transform: " + gone.format("py"),
        "5: prompts: cannot be rendered: No filter named 'lost'.; mend the template",
        "7: equals: " + gone.format("txt"), "9: javascript: " + gone.format("js"),
        "10: contains-all: " + gone.format("txt"),
        "11: contains: cannot be rendered: No filter named 'nofilter'.; mend {{x | nofilter}}",
        "12: contains: cannot be rendered: a tag is not closed; mend {{x", f"13: contains: {none}",
        f"14: not-icontains: {none}",
        '15: contains-any: "contains-any" assertion type must have an array value; write it as `value:`',
        f"16: regex: {none}",
        "17: latency: Latency assertion must have a threshold in milliseconds; write `threshold:`",
        "18: cost: Cost assertion must have a threshold; write `threshold:`",
        "19: contains: " + gone.format("js"), "26: is-json: " + gone.format("json"),
        "23: pi: pi is not judged by this version: it would need the Pi scorer, a service of its own; leave it out: "
        "its case is an error",
    ]  # fmt: skip
    errors = [
        line
        for line in told.out.splitlines()
        if line.startswith("promptfooconfig.yaml:") and "(note)" not in line
    ]
    assert sorted(errors) == sorted(f"promptfooconfig.yaml:{line}" for line in expected)
    assert not [line for line in told.out.splitlines() if "(note)" in line and "never fails" in line]


@pytest.mark.parametrize("address", ["http://192.0.2.7:99", None])
def test_the_printed_command_agrees_to_the_host_that_a_variable_names(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['hi {{q}}']\ntests: [{vars: {q: a}, assert: [{type: contains, value: x}]}]\n"
        "providers: [{id: 'openai:chat:gpt-4o', config: {apiBaseUrl: '{{env.THEIR_BASE}}/v1'}}]\n"
    )
    (tmp_path / "tui_eval.yaml").write_text("{}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    monkeypatch.delenv("THEIR_BASE", raising=False)
    if address is not None:
        monkeypatch.setenv("THEIR_BASE", address)
    told = cli("check", ".").out
    assert f"send OPENAI_API_KEY to {'192.0.2.7' if address else '{{env.THEIR_BASE}}/v1'} (agents." in told
    command = shlex.split(told.split("agree to just these: ")[1].splitlines()[0])
    listed = cli("run", ".", "--timeout", "0.2")
    assert command[-1] == listed.err.split("--trust-only ")[1].split()[0]  # both list the same
    ran = cli(*command[1:], "--timeout", "0.2")
    assert ran.code == 1 or ran.code == 4, ran.err
    assert "trust" not in ran.err and "needs trust" not in ran.out
    assert ("no answer in 0.2 s" if address else "is not an http(s) URL") in ran.out


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (["tests/**", "tests/ord/**"], "tests/**"),
        (["**", "tests/ord/**"], "**"),
        (["*", "/tests/ord/**"], "*"),
        (["tests/ord/a.*", "tests/ord/b.*", "ord/"], "tests/ord/a.*, tests/ord/b.*"),
        (["tests/ord/**", "tests/**"], None),
        (["tests/ord/a.*", "tests/ord/**"], None),
        (["tests/**", "elsewhere/**"], None),
        (["./tests/**", "tests/ord/**"], "./tests/**"),
        ([".", "./tests/ord/**"], "."),
    ],
)
def test_an_entry_of_suites_that_never_counts_is_noted(
    cli: Cli, project: Path, patterns: list[str], told: str | None
) -> None:
    """The setting that it was written for is lost: rows in a wrong order passed."""
    shutil.rmtree(project / "tests", ignore_errors=True)
    (project / "tests" / "ord").mkdir(parents=True)
    for name in ("ord/a", "ord/b", "c"):
        (project / "tests" / f"{name}.yaml").write_text((project / "suite.yaml").read_text())
    rules = "".join(f"  - {{path: '{one}', attempts: {n}}}\n" for n, one in enumerate(patterns, 1))
    text = (project / "tui_eval.yaml").read_text()
    (project / "tui_eval.yaml").write_text(f"{text}suites:\n{rules}")
    line = len(text.splitlines()) + 1 + len(patterns)
    take = "take" if told and ", " in told else "takes"
    note = (
        f"tui_eval.yaml:{line}: suites: entry {len(patterns)} ({patterns[-1]}) is never used: "
        f"{told} before it {take} all its files; write it before"
    )
    assert (f"{note} (note)" in cli("check").out) == (told is not None)
    assert "never used" not in cli("check", "suite.yaml").out  # nothing of it was looked at
    # Of some files of a project it is said where no others could be meant.
    plain = told is not None and ", " not in told
    assert (note in cli("run", "tests/ord/a.yaml").err) == plain


def test_an_entry_of_suites_that_no_suite_matches_is_noted(cli: Cli, project: Path) -> None:
    """`path: tset/**` changed nothing, and nothing said so."""
    text = (project / "tui_eval.yaml").read_text()
    (project / "tui_eval.yaml").write_text(
        f"{text}suites:\n  - {{path: '*.yaml'}}\n  - {{path: 'tset/**', attempts: 3}}\n"
    )
    line = len(text.splitlines()) + 3
    told = cli("check")
    assert told.code == 0
    assert (
        f"tui_eval.yaml:{line}: suites: entry 2 (tset/**) is never used: no suite has such a path; mend"
        in told.out
    )
    assert "never used" not in cli("check", "suite.yaml").out + cli("run", ".").err


def test_a_configuration_below_the_root_is_said_not_to_be_read(cli: Cli, project: Path) -> None:
    """Its suites ran by the root's agents and without its cost limit, and nothing said so."""
    for name in ("a", "b"):
        (project / name).mkdir()
        (project / name / "tui_eval.yaml").write_text("run: {max_cost: 0.01}\n")
        (project / name / "suite.yaml").write_text((project / "suite.yaml").read_text())
    said = f"a/tui_eval.yaml: not read: the root of the project is {project}; where its agents, limits and settings are"
    told = cli("check")
    assert told.code == 0 and said in told.out and "b/tui_eval.yaml: not read" in told.out
    ran = cli("run", ".")
    assert said in ran.err and "1 more tui_eval.yaml below the root are not read" in ran.err
    for quiet in (("suite.yaml",), ("a",), (".", "--config", "tui_eval.yaml")):
        assert "not read" not in cli("run", *quiet).err + cli("check", *quiet).out, quiet


def test_numbers_beside_texts_as_names_of_a_mapping_and_numbers_that_json_lacks_end_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mixed = "{1: a, b: c, null: d}"
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{\"a\": 1}']\n"
        f"providers: [{{id: echo, config: {mixed}}}]\n"
        "tests:\n"
        f"- {{vars: {{v: {mixed}}}, assert: [{{type: llm-rubric, value: x, provider: {{id: echo, config: {mixed}}}}}]}}\n"
        "- assert: [{type: is-json, value: {properties: {1: {type: string}, a: {type: string}}}}]\n"
        "- assert: [{type: is-json, value: {properties: {a: {minimum: .nan}}}}]\n",
        "utf-8",
    )
    told = cli("check", ".")
    cause = "schema is invalid: it holds what JSON cannot (NaN, infinity)"
    assert told.code == 4 and f"6: is-json: its schema is broken: {cause}; mend the schema" in told.out
    run = cli("run", ".", "--no-store", "-o", "r.json")
    results = json.loads((tmp_path / "r.json").read_text())["results"]
    assert run.code == 1 and [one["outcome"] for one in results] == ["error", "failed", "error"]
    assert results[2]["message"] == cause


def test_faults_of_rubric_prompts_are_said(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("promptfooconfig.yaml").write_text(
        "prompts: ['{{q}}']\nproviders: [echo]\ndefaultTest: {options: {provider: echo}}\ntests:\n"
        "  - {vars: {q: 1}, assert: [{type: llm-rubric, value: x, rubricPrompt: 'G {{output'}]}\n"
        "  - {vars: {q: 2}, assert: [{type: g-eval, value: x, rubricPrompt: {steps: 'file://gone.txt'}}]}\n"
        "  - {vars: {q: 3}, assert: [{type: llm-rubric, value: x, rubricPrompt: 7}]}\n"
        "  - {vars: {q: 4}, assert: [{type: llm-rubric, value: x, rubricPrompt: 'Is it nice?'}]}\n"
        '  - {vars: {q: 5}, assert: [{type: llm-rubric, value: x, rubricPrompt: "{% if\\n q %}{{output}}{% endif %}"}]}\n'
    )
    told = cli("check", ".")
    said = [
        line.partition(":")[2] for line in told.out.splitlines() if "ubricPrompt" in line or "gone" in line
    ]
    assert said == [
        "5: llm-rubric: its rubricPrompt cannot be rendered: a tag is not closed; mend G {{output",
        "6: g-eval: there is no file gone.txt; paths are relative to the configuration's folder",
        "7: llm-rubric: its rubricPrompt must be a text, not 7; write the question to the judge there",
        "8: llm-rubric: its rubricPrompt has no place for the answer: the judge does not see it; write {{output}} into it "
        "(note)",
    ], told.out
