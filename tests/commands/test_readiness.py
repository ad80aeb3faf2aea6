"""`tui-eval check` says whether it will run: agents and their files, keys, judges, names, scripts."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.commands.conftest import CONFIG, Cli, Result
from tests.servers.base import Planned


def _suite(
    providers: str, rest: str = "tests: [{vars: {x: 1}, assert: [{type: contains, value: s}]}]\n"
) -> None:
    Path("promptfooconfig.yaml").write_text(
        f"prompts: ['say {{{{x}}}}']\nproviders: {providers}\n{rest}", "utf-8"
    )


def test_an_agents_file_that_is_not_there_is_an_error(cli: Cli, project: Path) -> None:
    (project / "agent.script.yaml").unlink()
    told = cli("check", "suite.yaml")
    assert told.code == 4
    said = "there is no file agent.script.yaml; mend its path; suite.yaml:3 needs it (and 2 more cases)"
    assert f"tui_eval.yaml:2: agents.helper.script: {said}" in told.out
    _suite("['python:gone.py']")
    told = cli("check", "promptfooconfig.yaml")
    assert told.code == 4 and "there is no file gone.py" in told.out


def test_a_programs_folder_that_is_not_there_is_an_error(cli: Cli, project: Path) -> None:
    """The run said `cannot run echo: No such file or directory`, and `check` nothing."""
    (project / "tui_eval.yaml").write_text(
        "agents:\n  helper: {type: command, command: [echo, hi], cwd: gone}\n"
    )
    told = cli("check", "suite.yaml")
    assert told.code == 4 and "agents.helper.cwd: there is no folder gone; mend its path; " in told.out
    (project / "gone").mkdir()
    assert "cwd" not in cli("check", "suite.yaml").out


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            "type: openai, model: m, base_url: 'ftp://x'",
            "base_url: must be an address that begins with http://",
        ),
        (
            "type: ollama, model: m, base_url: 'localhost:8000'",
            "base_url: must be an address that begins with",
        ),
        ("type: http, url: x", "url: must be an address that begins with http:// or https://, not 'x'"),
        (
            "type: nao, url: 'http://'",
            "url: must be an address that begins with http:// or https://, not 'http",
        ),
        (
            "type: python, function: nope",
            "function: must be FILE.py:function or package.module:function, not",
        ),
        ("type: command, command: []", "command: must have a word at least"),
        (
            "type: openai, model: m, base_url: 'http://127.0.0.1:9/v1', system: 'file://gone.md'",
            "system: cannot read",
        ),
        ("type: scripted, script: odd.yaml", "script: odd.yaml:2: default.delay: is not known here; known: "),
        ("type: scripted, script: empty.yaml", "script: empty.yaml:1: a script is a mapping with rules"),
        ("type: command, command: [./gone, --json]", "command: there is no file ./gone; mend its path"),
        (
            "type: command, command: bin/gone --json, cwd: .",
            "command: there is no file bin/gone; mend its path",
        ),
    ],
)
def test_an_entry_that_no_case_could_be_asked_with_is_an_error(
    cli: Cli, project: Path, entry: str, said: str
) -> None:
    """Each case erred when it was run, and `check` found nothing."""
    (project / "odd.yaml").write_text("default:\n  delay: 8\n", "utf-8")
    (project / "empty.yaml").write_text("", "utf-8")
    (project / "tui_eval.yaml").write_text(f"agents:\n  helper: {{{entry}}}\n", "utf-8")
    told = cli("check", ".")
    assert told.code == 4 and f"tui_eval.yaml:2: agents.helper.{said}" in told.out, told


def test_a_misspelt_name_in_what_an_endpoint_is_sent_is_an_error(cli: Cli, project: Path) -> None:
    agent = (
        "{type: http, url: 'http://127.0.0.1:9/', body: {m: '{{promt}}', s: '{{sesion_id | default(1)}}'}}"
    )
    (project / "tui_eval.yaml").write_text(f"agents:\n  helper: {agent}\nproviders: {{x: helper}}\n", "utf-8")
    told = cli("check", ".")
    said = "tui_eval.yaml:2: agents.helper: {{promt}}: there is no promt; is {{prompt}} meant?; suite.yaml:3 needs it"
    assert told.code == 4 and said in told.out and "sesion" not in told.out
    (project / "suite.yaml").unlink()
    tests = "tests: [{vars: {promt: hi}, assert: [{type: contains, value: hi}]}]"
    (project / "promptfooconfig.yaml").write_text(
        f"prompts: ['{{{{promt}}}}']\nproviders: [x]\n{tests}\n", "utf-8"
    )
    assert cli("check", "promptfooconfig.yaml").code == 0, "here it is a variable"


@pytest.mark.parametrize("run", ["'2020'", "runs/gone"])
def test_a_run_to_replay_that_is_not_here_is_noted(cli: Cli, project: Path, run: str) -> None:
    """A checkout has no runs, so that it is no error; `check` said nothing, and each case was one."""
    config = project / "tui_eval.yaml"
    config.write_text(f"agents:\n  helper: {{type: replay, run: {run}}}\n", "utf-8")
    told = cli("check", ".")
    assert (
        told.code == 0
        and "tui_eval.yaml:2: agents.helper.run: " in told.out
        and "name one that is here" in told.out
    )
    config.write_text("agents:\n  helper: {type: replay}\n", "utf-8")
    assert "helper.run" not in cli("check", ".").out


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("{type: sql, database: shpo}", "database: there is no database 'shpo'; did you mean shop?"),
        ("{type: sql}", "database: missing: a sql tool needs it"),
        ("{type: canned, result: 1}", "name: missing: a canned tool needs it"),
        ("{type: python, function: 'gone.py:f'}", "function: there is no file gone.py; mend its path"),
    ],
)
def test_what_a_tool_of_a_model_lacks_is_an_error(cli: Cli, project: Path, tool: str, said: str) -> None:
    """Each case was an error in the run; `check` found nothing."""
    agent = f"{{type: openai, model: m, base_url: 'http://127.0.0.1:9/v1', tools: [{tool}]}}"
    (project / "tui_eval.yaml").write_text(
        f"agents:\n  helper: {agent}\ndatabases: {{shop: {{type: files, path: .}}}}\n"
    )
    told = cli("check", "suite.yaml")
    assert (
        told.code == 4 and f"tui_eval.yaml:2: agents.helper.tools.0.{said}; suite.yaml:3 needs it" in told.out
    )


def test_a_provider_that_we_have_no_agent_for_is_said(cli: Cli, project: Path) -> None:
    _suite("['bedrock:some.model']")
    told = cli("check", "promptfooconfig.yaml")
    assert "providers: there is no agent to ask; " in told.out and "bedrock:some.model" in told.out
    (project / "suite.yaml").write_text(
        "agent: nobody\ntest_cases: [{name: a, input: hi, expected: {should_contain: [x]}}]\n"
    )
    told = cli("check", "suite.yaml")
    assert "agent: there is no agent to ask; " in told.out


def test_a_missing_key_and_a_missing_judge_are_noted(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    rest = "tests: [{vars: {x: 1}, assert: [{type: llm-rubric, value: polite}]}]\n"
    _suite("['openai:gpt-4.1']", rest)
    told = cli("check", "promptfooconfig.yaml")
    assert told.code == 0, told.out
    assert "agent openai:gpt-4.1: there is no key of its provider; set OPENAI_API_KEY (note)" in told.out
    assert "llm-rubric: needs a judge, and none is named" in told.out
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test-only")
    told = cli("check", "promptfooconfig.yaml")
    assert "no key" not in told.out and "needs a judge" not in told.out


def test_whose_word_grades_is_what_a_run_would_take(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rule with the engine: a suite's own grader that nothing speaks to is not replaced, a map for embeddings
    alone names none, a judge without a key is said."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def said(options: str, judge: str = "") -> str:
        (project / "tui_eval.yaml").write_text(f"{CONFIG}{judge}")
        rest = f"defaultTest: {{options: {{{options}}}}}\n" if options else ""
        graded = "tests: [{vars: {x: 1}, assert: [{type: llm-rubric, value: polite}]}]\n"
        _suite("[echo]", rest + graded)
        told = cli("check", "promptfooconfig.yaml")
        assert told.code == 0, told.out
        return told.out

    configured = "judge: {type: openai, base_url: 'http://127.0.0.1:9/v1', model: m}\n"
    assert "needs a judge" not in said("", configured)
    out = said("provider: 'azure:chat:house'", configured)
    assert "llm-rubric: needs a judge, and the grader that the suite names, azure:chat:house, cannot" in out
    assert "needs a judge, and none is named" in said("provider: {embedding: 'openai:embedding:e'}")
    assert "there is no key of its provider; set OPENAI_API_KEY" in said("provider: 'openai:gpt-4.1'")
    assert "there is no key of its provider; set ANTHROPIC_API_KEY" in said("", "judge: anthropic:claude\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test-only")
    assert "needs a judge" not in said("")  # promptfoo's default grader


def test_a_variable_that_is_not_set_is_said_where_it_is_wanted(cli: Cli, project: Path) -> None:
    """tui_eval.yaml for its agents, judge and databases, once for all that need them; the suite for its own
    providers."""
    more = (
        "  bot: {type: openai, base_url: 'http://127.0.0.1:9/v1', model: m, api_key: '${GONE_1}'}\n"
        "judge: {type: openai, model: m, api_key: '${GONE_2}'}\n"
        "databases: {d: {type: files, path: '${GONE_3}'}}\n"
    )
    (project / "tui_eval.yaml").write_text(CONFIG + more)
    begin = CONFIG.count("\n") + 1
    one = "  - {name: %s, input: hello, expected: {should_contain: [hi]}}\n"
    (project / "suite.yaml").write_text("agent: bot\ntest_cases:\n" + one % "a" + one % "b")
    _suite(
        "[{id: 'openai:gpt-4.1', config: {apiBaseUrl: 'http://127.0.0.1:9/v1', apiKey: '${GONE_4}'}}]",
        "tests: [{vars: {x: 1}, assert: [{type: llm-rubric, value: polite}]}]\n",
    )
    (project / "tests").mkdir()
    (project / "tests" / "q.yml").write_text("name: q\nprompt: hi\nsql: SELECT 1 AS a\n")
    told = cli("check", ".", "--trust")
    assert told.code == 0, told.out
    unset = "the environment variable GONE_%d is not set (set it, or write ${GONE_%d:-default})"
    for start, number, end in (
        (
            f"tui_eval.yaml:{begin}: agents.bot.api_key: ",
            1,
            "; suite.yaml:3 needs it (and 1 more case) (note)",
        ),
        (f"tui_eval.yaml:{begin + 1}: judge.api_key: ", 2, "; as a judge promptfooconfig.yaml:"),
        (f"tui_eval.yaml:{begin + 2}: databases.d.path: ", 3, "; tests/q.yml:1 needs it (note)"),
        ("providers: agent openai:gpt-4.1: api_key: ", 4, " (note)"),
    ):
        assert start + unset % (number, number) + end in told.out, told.out


def test_names_that_stand_twice_are_noted(cli: Cli, project: Path) -> None:
    (project / "suite.yaml").write_text(
        "agent: helper\ntest_cases:\n"
        "  - {name: a, input: hello, expected: {should_contain: [hi]}}\n"
        "  - {name: a, input: hello, expected: {should_contain: [h]}}\n"
    )
    told = cli("check", "suite.yaml")
    assert told.code == 0
    assert "suite.yaml:4: name: 'a' is also the name of suite.yaml:3 (note)" in told.out


def test_a_database_file_that_is_not_there_is_noted(cli: Cli, project: Path) -> None:
    config = (project / "tui_eval.yaml").read_text()
    (project / "tui_eval.yaml").write_text(
        f"{config}databases:\n  main: {{type: duckdb, path: gone.duckdb}}\n"
    )
    told = cli("check", "suite.yaml")
    assert told.code == 0 and "databases.main: there is no" in told.out and "gone.duckdb" in told.out


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_javascript_provider_that_cannot_be_loaded_is_an_error_with_trust_only(
    cli: Cli, project: Path
) -> None:
    (project / "own.js").write_text("require('nothing-of-this-name')\n")
    _suite("['file://own.js']")
    assert cli("check", "promptfooconfig.yaml").code == 0
    told = cli("check", "--trust", "promptfooconfig.yaml")
    assert told.code == 4 and "own.js: cannot be loaded: " in told.out


@pytest.mark.real
@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_javascript_prompts_are_imported_with_trust_and_never_called(cli: Cli, project: Path) -> None:
    """A prompt that can be loaded is no error, though it would fail without what a run gives it."""
    script = project / "prompt.js"

    def told(text: str, named: str = "prompt.js", providers: str = "[echo]") -> Result:
        script.write_text(text)
        rest = "tests: [{vars: {x: 1}, assert: [{type: contains, value: s}]}]\n"
        (project / "promptfooconfig.yaml").write_text(
            f"prompts: ['file://{named}']\nproviders: {providers}\n{rest}"
        )
        return cli("check", "--trust", "promptfooconfig.yaml")

    (project / "own.js").write_text(
        "module.exports = class { constructor(o) { o.config.a } callApi(p) { return {output: 's'} } }\n"
    )
    found = told("module.exports = ({vars}) => `say ${vars.x}`\n", providers="['file://own.js']")
    assert found.code == 0 and "cannot be loaded" not in found.out, found.out
    named = "exports.kind = ({vars}) => { require('fs').writeFileSync('called', ''); return vars.x }\n"
    assert told(named, "prompt.js:kind").code == 0
    assert not (project / "called").exists()
    for text, file, said in (
        ("module.exports = (", "prompt.js", "SyntaxError: "),
        ("require('nothing-of-this-name')\n", "prompt.js", "nothing-of-this-name"),
        (named, "prompt.js:kinder", "must export a function kinder"),
        ("module.exports = {a: 1}\n", "prompt.js", "must export a function"),
    ):
        found = told(text, file)
        assert found.code == 4, found.out
        line = next(line for line in found.out.splitlines() if "prompt.js: cannot be loaded: " in line)
        assert said in line
    assert cli("check", "promptfooconfig.yaml").code == 0  # without trust nothing is imported


def test_an_entry_of_an_unknown_type_is_named_as_such_wherever_it_is_asked_for(
    cli: Cli, project: Path
) -> None:
    """Not as an agent that is not there."""
    (project / "tui_eval.yaml").write_text("agents:\n  helper: {type: opnai, model: m}\n")
    wrong = (
        "tui_eval.yaml:2: agents.helper.type: unknown type 'opnai'; did you mean openai? There is: openai, "
    )
    told = cli("check", "suite.yaml")
    assert told.code == 4 and told.out.startswith(wrong) and "no agent 'helper'" not in told.out
    ran = cli("run", "suite.yaml", "-o", "results.json")
    assert "no agent 'helper'" not in ran.out + ran.err
    messages = {row["error"] for row in json.loads(Path("results.json").read_text())["results"]}
    assert len(messages) == 1 and f"agent helper: {wrong}" in messages.pop()
    typed = cli("run", "suite.yaml", "--agent", "helper")
    assert (
        typed.code == 4
        and f"--agent helper: {wrong}" in typed.err
        and "no agent of that name" not in typed.err
    )
    judged = cli("run", "suite.yaml", "--judge", "helper")
    assert wrong in judged.err + judged.out


def test_a_configured_agent_of_ollamas_answers(cli: Cli, project: Path) -> None:
    lines = (
        {"message": {"content": "hi "}},
        {"message": {"content": "there"}},
        {"message": {}, "done": True},
    )
    raw = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with AnyServer(default=lambda seen: Planned(raw=raw)) as server:
        entry = f"type: ollama, base_url: '{server.url}', model: llama3, system: Be kind., headers: {{X-Team: evals}}"
        (project / "tui_eval.yaml").write_text(
            f"agents:\n  helper: {{{entry}, parameters: {{num_ctx: 99}}}}\n"
        )
        assert cli("check", "suite.yaml").code == 0
        ran = cli("run", "suite.yaml", "-s", "greets")
        assert ran.code == 0, ran.out + ran.err
        seen = server.requests[0]
        assert seen.path == "/api/chat" and seen.headers["X-Team"] == "evals"
        assert seen.body["messages"] == [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "hello"},
        ]
        assert (seen.body["model"], seen.body["options"]) == ("llama3", {"num_ctx": 99})
        (project / "tui_eval.yaml").write_text(
            f"agents:\n  helper: {{{entry}, parameters: {{nm_ctx: 99}}}}\n"
        )
        ran = cli("run", "suite.yaml", "-s", "greets")
        assert ran.code == 1 and "parameters: Ollama has no option 'nm_ctx'" in ran.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def other(m): return 1\n", True),
        ("if True:\n    def answer(m): return 1\n", False),
        ("from lib import answer\n", False),
        ("import lib as answer\n", False),
        ("from lib import *\n", False),
        ("answer = lambda m: m\n", False),
        ("globals()['answer'] = print\n", False),
        ("locals()['answer'] = print\n", False),
        ("import sys\nthis = sys.modules[__name__]\nthis.answer = print\n", False),
        ("def __getattr__(name): return print\n", False),
        ("def other(m: return 1\n", False),
    ],
)
def test_a_function_that_a_python_file_has_not_is_said_before_it_runs(
    cli: Cli, project: Path, text: str, said: bool
) -> None:
    """Only the run said `bot.py has no function 'answer'`; the file is read, never imported."""
    (project / "bot.py").write_text(f"open('imported', 'w')\n{text}")
    told = "bot.py has no function"
    for entry, key in (
        ("{type: python, function: 'bot.py:answer'}", "function"),
        ("{type: openai, model: m, base_url: 'http://127.0.0.1:9', tools: [{type: python, function: 'bot.py:answer'}]}",
         "tools.0.function"),
    ):  # fmt: skip
        (project / "tui_eval.yaml").write_text(f"agents:\n  helper: {entry}\n")
        found = cli("check", "suite.yaml")
        assert (f"agents.helper.{key}: {told} 'answer'" in found.out) == said, found
        assert not said or (found.code == 4 and "mend its name; suite.yaml:3 needs it" in found.out)
    assert not (project / "imported").exists()


def test_a_python_file_outside_the_project_is_not_read_without_trust(
    cli: Cli, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("elsewhere") / "bot.py"
    file.write_text("def secret(m): return 1\n")
    (project / "tui_eval.yaml").write_text(
        f"agents:\n  helper: {{type: python, function: '{file}:answer'}}\n"
    )
    assert "secret" not in cli("check", "suite.yaml").out
    assert "bot.py has no function 'answer' (there is: secret)" in cli("check", "--trust", "suite.yaml").out


def test_files_of_an_agent_that_are_not_there_are_noted(cli: Cli, project: Path) -> None:
    """`--changed` said that nothing had changed, whatever was edited in the folder that was meant."""
    (project / "prompts").mkdir()
    for name in ("prompt/", "prompts/*.md"):
        (project / "tui_eval.yaml").write_text(
            f"agents:\n  helper: {{type: echo, files: [prompts/, '{name}']}}\n"
        )
        told = cli("check", "suite.yaml")
        assert told.code == 0 and f"tui_eval.yaml:2: agents.helper.files: there is no {name}; " in told.out
    (project / "tui_eval.yaml").write_text("agents:\n  helper: {type: echo, files: [prompts/]}\n")
    assert "files:" not in cli("check", "suite.yaml").out.replace("1 file", "")
