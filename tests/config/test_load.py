"""Reading tui_eval.yaml: what it says, and every mistake with its place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tui_eval.config import project as config
from tui_eval.config.project import AgentSpec, ConfigError, SuiteRule

Project = Callable[..., config.Config]

FULL = """
agents:
  support:
    type: openai
    base_url: http://localhost:8000/v1
    model: gpt-4.1
    api_key: ${OPENAI_API_KEY}
    headers: {X-Team: evals}
    system: file://prompts/support.md
    tools:
      - {type: python, function: "tools.py:search_knowledge_base"}
      - {type: sql, database: shop}
      - {type: canned, name: get_plan, schema: {type: object}, result: {plan: pro}}
    parameters: {temperature: 0}
    metadata: json
    max_steps: 10
    files: [prompts/, tools.py]
    concurrency: 4
    rate: {requests: 60, tokens: 1e5}
    timeout: 30
    retries: 2
  analyst: {type: nao, url: "http://localhost:5005", email: me@x.y, password: hunter2hunter2, token: t, model: "openai:gpt-4.1", extraction: guide, live: true}
  music_nerd_pro: {type: neuro-san, url: "http://localhost:8080"}
  house: {type: python, function: "my_agent.py:answer"}
  shop_bot: {type: http, url: "http://localhost:9000/chat", body: {message: "{{prompt}}", session: "{{session_id}}"}, reply: "json.answer", metadata: "json.meta", tool_calls: "json.tools"}
  tool: {type: command, command: ["./agent", "--json"]}
  offline: {type: scripted, script: agent.script.yaml}
  again: {type: replay, run: last}
judge: {type: openai, model: gpt-4.1-mini}
databases:
  shop: {type: duckdb, path: shop.duckdb}
  remote: {type: postgres, url: "postgres://localhost/x"}
suites:
  - {path: "tests/**", agent: analyst, database: shop, compat: documented, comparison: {rtol: 1e-5, atol: 1e-8, decimals: null, ordered: false, key: [id]}}
  - {path: "*.hocon", agent: music_nerd_pro, attempts: 3, timeout: 5}
run: {concurrency: 4, timeout: 60, attempts: 1, retries: 3, max_cost: null}
prices: {gpt-4.1: {input: 2.0, output: 8.0}}
providers: {"bedrock:x": support}
"""


def test_everything_at_once(project: Project, tmp_path: Path) -> None:
    loaded = project(FULL)
    assert loaded.problems == []
    assert (loaded.root, loaded.file) == (tmp_path, tmp_path / "tui_eval.yaml")
    support = loaded.agents["support"]
    assert (support.type, support.model, support.concurrency, support.rate_requests, support.rate_tokens) == (
        "openai", "gpt-4.1", 4, 60, 1e5,
    )  # fmt: skip
    assert (
        support.options["api_key"] == "${OPENAI_API_KEY}"
        and support.options["tools"][1]["database"] == "shop"
    )
    assert support.files == ["prompts/", "tools.py"] and support.base == str(tmp_path) and support.line == 3
    assert (support.timeout, support.retries, support.live, support.extraction) == (30, 2, False, None)
    assert loaded.agents["analyst"].extraction == "guide" and loaded.agents["analyst"].live
    assert loaded.judge == AgentSpec("judge", "openai", model="gpt-4.1-mini", base=str(tmp_path), line=29)
    assert loaded.databases["shop"].path == str(tmp_path / "shop.duckdb")
    assert (
        loaded.databases["remote"].url == "postgres://localhost/x" and loaded.databases["remote"].path == ""
    )
    assert loaded.suites[0].comparison == {
        "rtol": 1e-5, "atol": 1e-8, "decimals": None, "ordered": False, "key": ["id"],
    }  # fmt: skip
    assert (loaded.run.concurrency, loaded.run.timeout, loaded.run.attempts, loaded.run.max_cost) == (
        4,
        60,
        1,
        None,
    )
    assert loaded.prices == {"gpt-4.1": {"input": 2, "output": 8}}
    assert loaded.providers == {"bedrock:x": "support"}


def test_rules_are_gitignore_patterns_and_the_first_match_wins(project: Project) -> None:
    loaded = project(
        "suites:\n- {path: 'tests/**', attempts: 1}\n- {path: '*.yaml', attempts: 2}\n- {path: /a/, attempts: 3}\n"
    )

    def attempts(path: str) -> int | None:
        rule = config.rule_for(loaded, path)
        return rule.attempts if isinstance(rule, SuiteRule) else None

    assert [attempts(path) for path in ("tests/a/b.yaml", "x/tests/a.hocon", "x/c.yaml", "a/b.hocon", "b/a/b.hocon")] == [
        1, None, 2, 3, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        (".", ["a.hocon", "evals/b.yaml", "x/evals/c.yaml", "x/./d"]),
        ("./", ["a.hocon", "evals/b.yaml", "x/evals/c.yaml", "x/./d"]),
        ("././/.", ["a.hocon", "evals/b.yaml", "x/evals/c.yaml", "x/./d"]),
        ("./evals", ["evals/b.yaml"]),
        (".//evals/**", ["evals/b.yaml"]),
        ("././evals/", ["evals/b.yaml"]),
        ("./*.hocon", ["a.hocon"]),
        ("evals", ["evals/b.yaml", "x/evals/c.yaml"]),
        (".evals", []),
    ],
)
def test_the_dot_of_a_rule_is_the_root(project: Project, pattern: str, matched: list[str]) -> None:
    """gitignore's matches nothing: `run` said no word, and asked another agent than the entry names."""
    loaded = project(f"suites:\n- {{path: '{pattern}', attempts: 3}}\n")
    paths = ["a.hocon", "evals/b.yaml", "x/evals/c.yaml", "x/./d"]
    assert [path for path in paths if config.rule_for(loaded, path)] == matched
    assert not loaded.problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("agent: {}", "tui_eval.yaml:1: agent: not a key of tui_eval.yaml; did you mean agents?"),
        ("run: {}\nwhatever: 1", "tui_eval.yaml:2: whatever: not a key of tui_eval.yaml; known: agents, judge,"),
        ("run:\n  concurency: 3", "tui_eval.yaml:2: run.concurency: not a key of run; did you mean concurrency?"),
        ("run:\n  concurrency: 0", "tui_eval.yaml:2: run.concurrency: must be a whole number of at least 1, not 0"),
        ("run: {timeout: soon}", "run.timeout: must be a number above 0, not 'soon'"),
        ("run: {timeout: .nan}", "run.timeout: must be a number above 0, not nan"),
        ("run: {max_cost: -1}", "run.max_cost: must be a number above 0, not -1"),
        ("run: {attempts: true}", "run.attempts: must be a whole number from 1 to 100,000, not true"),
        ("agents: [a]", "tui_eval.yaml:1: agents: must be a mapping (key: value), not a list"),
        ("agents: {a: {model: x}}", "agents.a.type: missing; one of openai, anthropic,"),
        ("agents: {a: {type: opnai}}", "agents.a.type: unknown type 'opnai'; did you mean openai? There is: openai, anthropic, ollama, nao,"),
        ("agents: {a: {type: openai-compatible}}", "unknown type 'openai-compatible'; did you mean openai? There is: "),
        ("agents: {a: {type: zzz}}", "agents.a.type: unknown type 'zzz'; there is: openai,"),
        ("agents: {a: {type: [x]}}", "agents.a.type: unknown type"),
        ("agents:\n  a:\n    type: nao\n    base_url: x", "tui_eval.yaml:4: agents.a.base_url: not a key of a nao agent"),
        ("agents: {a: {type: http}}", "agents.a.url: missing: an http agent needs it"),
        ("agents: {a: {type: echo, timeout: 0}}", "agents.a.timeout: must be a number above 0, not 0"),
        ("agents: {a: {type: echo, files: [x, 1]}}", "agents.a.files: must be a list of texts: 1 is none"),
        ("agents: {a: {type: echo, live: yes}}", "agents.a.live: must be true or false, not 'yes'"),
        ("agents: {a: {type: openai, api_key: [secret1234]}}", "agents.a.api_key: must be text"),
        ("agents: {a: {type: openai, headers: {A: [1]}}}", "agents.a.headers: 'A' must be text"),
        ("agents: {a: {type: openai, tools: [{type: shell}]}}", "a tool's type must be python, sql or canned"),
        ("agents:\n  a:\n    type: openai\n    tools:\n      - {type: python, functon: 'a.py:b'}", "tui_eval.yaml:5: agents.a.tools.0.functon: not a key of a python tool; did you mean function?"),
        ("agents: {a: {type: openai, tools: [{type: [a]}]}}", "a tool's type must be python, sql or canned, not a list"),
        ("agents: {a: {type: echo, rate: {request: 1}}}", "agents.a.rate.request: not a key of rate; did you mean requests?"),
        ("judge: nobody", "judge: no agent is called 'nobody'; there is: none"),
        ("agents: {suport: {type: echo}}\njudge: support", "judge: no agent is called 'support'; did you mean suport?"),
        ("databases: {a: {type: oracle}}", "databases.a.type: must be duckdb, sqlite, files or postgres, not 'oracle'"),
        ("databases: {a: {type: duckdb}}", "databases.a.path: missing: a duckdb database needs it"),
        ("databases: {a: {}}", "databases.a.type: missing"),
        ("databases: {a: {type: postgres, path: x}}", "databases.a.url: missing: a postgres database needs it"),
        ("suites: {path: x}", "suites: must be a list"),
        ("suites:\n- {agent: 'openai:x'}", "tui_eval.yaml:2: suites.0.path: missing"),
        ("suites:\n- {path: x}\n- {path: y, agent: no}", "tui_eval.yaml:3: suites.1.agent: no agent is called 'no'"),
        ("suites:\n- {path: y, judge: grader}", "tui_eval.yaml:2: suites.0.judge: no agent is called 'grader'"),
        ("suites:\n- {path: y, judge: 'bogus:model'}", "suites.0.judge: no agent is called 'bogus:model'"),
        ("suites: [{path: x, judge: 'judge.py:f'}]", "suites.0.judge: no agent is called 'judge.py:f'"),
        ("suites: [{path: x, database: no}]", "suites.0.database: no database is called 'no'"),
        ("suites: [{path: x, compat: refrence}]", "suites.0.compat: must be documented or reference"),
        ("suites: [{path: x, comparison: {rtoll: 1}}]", "suites.0.comparison.rtoll: not a key of comparison; did you mean rtol?"),
        ("suites: [{path: '!x'}]", "suites.0.path: a pattern that begins with ! matches nothing"),
        ("suites: [{path: '# x'}]", "suites.0.path: a pattern that matches nothing"),
        ("prices: {m: {inputs: 1}}", "prices.m.inputs: not a key of a price"),
        ("run: {timeout: .inf}", "run.timeout: must be a finite number above 0, not inf"),
        ("run: {concurrency: 99999999999}", "run.concurrency: must be a whole number from 1 to 2,147,483,647, not 99999999999"),
        ("providers: {x: none}", "providers.x: no agent is called 'none'"),
        ("- a", "tui_eval.yaml:1: must be a mapping"),
        ("run: {retries: 1}\nrun: {retries: 2}", "tui_eval.yaml:2: run: given twice"),
        ("agents:\n  a: [", "tui_eval.yaml:3:"),
        ("a: !!python/object:os.system x", "tui_eval.yaml:1:"),
        pytest.param("[" * 100_000, "nested deeper than", id="deep"),
        ("a: &a [*a]", "an alias that contains itself"),
    ],
)  # fmt: skip
def test_mistakes_are_problems_with_their_place(project: Project, text: str, expected: str) -> None:
    problems = [str(problem) for problem in project(text).problems]
    assert any(expected in problem for problem in problems), problems
    assert all("\n" not in problem for problem in problems)
    assert all("secret1234" not in problem for problem in problems)


def test_a_key_given_twice_in_an_entry_that_two_agents_share_refuses_both(project: Project) -> None:
    loaded = project(
        "agents:\n  a: &x\n    type: echo\n    prefix: 1a\n    prefix: 2a\n  b: *x\n  c: {<<: *x}\n  d: {type: echo}\n"
    )
    assert list(loaded.agents) == ["d"]
    assert [problem.key for problem in loaded.problems] == [
        "agents.a.prefix",
        "agents.b.prefix",
        "agents.c.<<.prefix",
    ]


def test_what_is_right_counts_beside_what_is_wrong(project: Project) -> None:
    loaded = project(
        "agents: {a: {type: echo, prefix: x, colour: red}, b: 3}\nrun: {concurrency: 2, timeout: x}\n"
    )
    assert not loaded.agents, "without the key that was meant it would be another agent"
    assert (loaded.run.concurrency, loaded.run.timeout) == (2, 120)
    assert len(loaded.problems) == 3


@pytest.mark.parametrize(
    "text", ["", "# nothing", "agents:\nrun:\njudge:\nsuites:\n", "\ufeffrun: {retries: 1}"]
)
def test_empty_parts_are_fine(project: Project, text: str) -> None:
    assert project(text).problems == []


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_bytes(b"run:\n  # \xff\n")
    assert str(config.load([tmp_path]).problems[0]) == "tui_eval.yaml:2: not UTF-8 text; save it as UTF-8"
    with pytest.raises(ConfigError, match="no such file"):
        config.load([tmp_path], tmp_path / "none.yaml")
    (tmp_path / "tui_eval.yaml").rename(tmp_path / "tui_eval.yml")
    (tmp_path / ".git").mkdir()
    loaded = config.load([tmp_path])
    assert [str(problem) for problem in loaded.problems] == [
        "tui_eval.yml: not read; rename it to tui_eval.yaml"
    ]


def test_judge_by_name_or_model(project: Project) -> None:
    loaded = project("agents: {a: {type: echo}}\njudge: a")
    assert loaded.judge is loaded.agents["a"]
    judge = project("judge: anthropic:claude-x").judge
    assert judge is not None and (judge.type, judge.model) == ("anthropic", "claude-x")


KEYS = st.sampled_from(
    [
        *("agents", "judge", "databases", "suites", "run", "prices", "providers", "type", "path", "a"),
        *("timeout", "openai", "comparison", "key", "rate", "tools", "headers", "url", "nao", "echo"),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KEYS
TREES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=25,
)


@pytest.mark.real
@settings(examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(KEYS, TREES, max_size=6))
def test_nothing_in_a_document_raises(tmp_path: Path, tree: dict[str, object]) -> None:
    import yaml

    for name in ("tui_eval.yaml", "nao_config.yaml"):
        (tmp_path / name).write_text(yaml.safe_dump(tree, allow_unicode=True), "utf-8", "replace")
    loaded = config.load([tmp_path])
    config.secrets(loaded)
    for problem in loaded.problems:
        assert problem.message


@settings(examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text("{}[]:-&*!|>'\"% \n\tab#?,<", max_size=60).map(str.encode))
def test_nothing_in_a_file_raises(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "tui_eval.yaml").write_bytes(data)
    (tmp_path / "nao_config.yaml").write_bytes(data)
    config.load([tmp_path])


def test_what_names_an_agent_that_was_refused_is_no_mistake_of_its_own(project: Project) -> None:
    text = "agents: {a: {type: opnai}}\njudge: a\nproviders: {x: a}\nsuites: [{path: y, agent: a, judge: a}]"
    problems = [str(problem) for problem in project(text).problems]
    assert len(problems) == 1 and "unknown type 'opnai'" in problems[0], problems
