"""What needs trust is foreseen before anything runs, and named so that one name never stands for two things."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui_eval.config import project
from tui_eval.engine.plan import plan
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.selection import SelectionError
from tui_eval.engine.wants import wants, wants_of_judging
from tui_eval.formats import reading
from tui_eval.guard.trust import Trust, fingerprint


def surveyed(root: Path, agreed: frozenset[str] = frozenset()) -> list[str]:
    """What a project wants that was not agreed to."""
    settings, trust = project.load([root]), Trust(agreed=agreed)
    return wants(reading.load_all([root], settings, trust), settings, trust)


ECHO = "prompts: ['{{q}}']\nproviders: [echo]\n"
NAMED_AS_ITS_SUITE_GIVES_IT = {
    "a hook": (f"{ECHO}extensions: ['file://x.py:f']\ntests: [{{vars: {{q: a}}}}]\n", "x.py"),
    "a JavaScript hook": (f"{ECHO}extensions: ['file://x.js:f']\ntests: [{{vars: {{q: a}}}}]\n", "x.js with node"),
    "a filter": (f"{ECHO}nunjucksFilters: {{f: x.js}}\ntests: [{{vars: {{q: a}}}}]\n", "x.js with node"),
    "a generator": (f"{ECHO}tests: 'file://x.py:f'\n", "x.py"),
    "a variable": (f"{ECHO}tests: [{{vars: {{q: 'file://x.py'}}}}]\n", "x.py"),
    "a transform of variables": (
        f"{ECHO}tests: [{{vars: {{q: a}}, options: {{transformVars: 'file://x.py'}}}}]\n",
        "x.py",
    ),
    "a prompt": ("prompts: ['file://x.py:f']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n", "x.py"),
    "a prompt of a module": ("prompts: ['file://x.js:f']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n", "x.js with node"),
    "a command's prompt": ("prompts: ['exec:./x.sh']\nproviders: [echo]\ntests: [{vars: {q: a}}]\n", "./x.sh"),
    "a provider": ("prompts: ['{{q}}']\nproviders: ['file://x.py']\ntests: [{vars: {q: a}}]\n", "x.py"),
    "a JavaScript provider": ("prompts: ['{{q}}']\nproviders: ['file://x.js']\ntests: [{vars: {q: a}}]\n", "x.js with node"),
    "a Ruby provider": ("prompts: ['{{q}}']\nproviders: ['file://x.rb']\ntests: [{vars: {q: a}}]\n", "x.rb"),
    "a command": ("prompts: ['{{q}}']\nproviders: ['exec:./x.sh']\ntests: [{vars: {q: a}}]\n", "./x.sh"),
    "an assertion": (
        f"{ECHO}tests: [{{vars: {{q: a}}, assert: [{{type: python, value: 'file://x.py'}}]}}]\n",
        "x.py",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", NAMED_AS_ITS_SUITE_GIVES_IT)
def test_agreeing_to_the_code_of_one_folder_never_grants_that_of_another(tmp_path: Path, kind: str) -> None:
    suite, code = NAMED_AS_ITS_SUITE_GIVES_IT[kind]
    (tmp_path / "tui_eval.yaml").write_text("{}\n", "utf-8")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        for name in ("x.py", "x.js", "x.rb", "x.sh"):
            (tmp_path / folder / name).write_text("require('fs')\n" if name == "x.js" else "\n", "utf-8")
    (tmp_path / "one" / "promptfooconfig.yaml").write_text(suite, "utf-8")
    first = surveyed(tmp_path)
    assert first
    (tmp_path / "two" / "promptfooconfig.yaml").write_text(suite, "utf-8")
    left = surveyed(tmp_path, frozenset(first))
    assert len(left) == len(first) and not set(left) & set(first), (first, left)
    if "./" not in code and "provider" not in kind:
        assert (first, left) == ([f"run one/{code}"], [f"run two/{code}"])


@pytest.mark.parametrize(
    ("added", "named"),
    [
        ("env: {PYTHONPATH: other}", "run code by PYTHONPATH of agents.house.env: other [5 characters, "),
        ("env: {NODE_OPTIONS: '-r ./x.js'}", "run code by NODE_OPTIONS of agents.house.env: -r ./x.js [9 "),
        (
            "env: {'BASH_FUNC_ls%%': '() { ./x; }'}",
            "run code by BASH_FUNC_ls%% of agents.house.env: () { ./x; } [11 ",
        ),
        (
            "env: {PATH: '${SHOWN_TO_NOBODY}'}",
            "run code by PATH of agents.house.env: ${SHOWN_TO_NOBODY} [18 ",
        ),
        ("cwd: other", "run ./agent (the agent house, in other)"),
        ("env: {MODE: fast}", ""),
    ],
)
def test_agreeing_to_a_command_is_not_agreeing_to_the_code_that_its_settings_make_of_it(
    tmp_path: Path, added: str, named: str
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [a]\ntests: [{vars: {q: a}}]\n", "utf-8")
    (tmp_path / "agent").write_text("", "utf-8")
    rule = "suites: [{path: '**', agent: house}]\n"
    entry = "agents: {house: {type: command, command: [./agent]%s}}\n" + rule
    (tmp_path / "tui_eval.yaml").write_text(entry % "", "utf-8")
    first = surveyed(tmp_path)
    assert first == ["run ./agent (the agent house)"]
    (tmp_path / "tui_eval.yaml").write_text(entry % f", {added}", "utf-8")
    left = surveyed(tmp_path, frozenset(first))
    assert len(left) == bool(named) and all(what.startswith(named) for what in left)


def test_a_command_in_a_folder_outside_is_asked_about_together_with_the_folder(tmp_path: Path) -> None:
    root = tmp_path / "project"
    for folder in (root, tmp_path / "outside"):
        folder.mkdir()
    (root / "promptfooconfig.yaml").write_text("prompts: [a]\ntests: [{vars: {q: a}}]\n", "utf-8")
    rule = "suites: [{path: '**', agent: house}]\n"
    entry = "agents: {house: {type: command, command: [./agent], cwd: ../outside}}\n" + rule
    (root / "tui_eval.yaml").write_text(entry, "utf-8")
    folder = tmp_path / "outside"
    first = surveyed(root)
    assert set(first) == {f"read {folder}", f"run ./agent (the agent house, in {folder})"}
    assert not surveyed(root, frozenset(first))


def test_agreeing_to_a_ruby_file_is_not_agreeing_to_what_its_suite_calls_ruby(tmp_path: Path) -> None:
    for name in ("p.rb", "tui_eval.yaml"):
        (tmp_path / name).write_text("", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [a]\nproviders: [{id: 'file://p.rb', config: {rubyExecutable: ./other}}]\ntests: [{vars: {q: a}}]\n",
        "utf-8",
    )
    assert surveyed(tmp_path) == ["run p.rb", "run ./other (Ruby for the provider file://p.rb)"]


@pytest.mark.parametrize(
    "header", ["Authorization: 'Bearer {{env.SHOP_TOKEN}}'", "X-Page: '{{env.SHOP_TOKEN}}'"]
)
@pytest.mark.parametrize("host", ["shop.example", "127.0.0.1"])
def test_that_an_env_file_is_read_says_nothing_of_the_host_that_gets_its_secrets(
    tmp_path: Path, header: str, host: str
) -> None:
    (tmp_path / "tui_eval.yaml").write_text("", "utf-8")
    (tmp_path / ".env").write_text("SHOP_TOKEN=tok-12345678\nPAGE=of-the-shop-1\n", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: [a]\nproviders: [{{id: 'http://{host}/a', label: shop, "
        f"config: {{body: {{q: '{{{{prompt}}}} {{{{env.PAGE}}}}'}}, headers: {{{header}}}}}}}]\n"
        "tests: [{vars: {q: a}}]\n",
        "utf-8",
    )
    left = surveyed(tmp_path, frozenset({"read .env"}))
    assert left == ([f"send a secret (agents.shop.config) to {host}"] if host == "shop.example" else [])


@pytest.mark.parametrize(
    "kind", ["{{env.SHOP_TOKEN | upper}}", "{{env.PAGE}}", "{{ env.OTHER_TOKEN | default('of-the-shop-1') }}"]
)
def test_what_a_filter_makes_of_a_secret_is_asked_about_with_its_host_as_the_secret_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "tok-12345678")
    (tmp_path / "tui_eval.yaml").write_text("", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "env: {PAGE: '{{ env.SHOP_TOKEN | reverse }}'}\nprompts: [a]\n"
        "providers: [{id: 'http://shop.example/a', label: shop, "
        f'config: {{body: {{q: "{kind}"}}}}}}]\ntests: [{{vars: {{q: a}}}}]\n',
        "utf-8",
    )
    left = surveyed(tmp_path, frozenset({"read the environment variable SHOP_TOKEN"}))
    assert left == ([] if "default" in kind else ["send a secret (agents.shop.config) to shop.example"])


def test_all_that_a_neuro_san_library_is_given_is_asked_for_at_once(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "tui_eval.yaml").write_text(
        "agents:\n  neuro-san: {type: neuro-san, python: /nowhere/python, manifest: ../m.hocon, tool_path: /tools}\n"
    )
    (root / "a.hocon").write_text('{agent: n, interactions: [{text: hi, response: {text: {keywords: "a"}}}]}')
    assert {f"read {tmp_path / 'm.hocon'}", "read /tools"} <= set(surveyed(root))


CONFIG = """\
agents:
  used: {type: python, function: "used.py:answer"}
  idle: {type: python, function: "idle.py:answer"}
  grader: {type: command, command: ["./grade"]}
judge: {type: command, command: ["./judge"]}
databases:
  shop: {type: sqlite, path: ../shop.db}
  other: {type: sqlite, path: ../other.db}
"""


def asked_of(root: Path, suite: str, text: str) -> list[str]:
    """What is asked before one suite of a project is run."""
    (root / "tui_eval.yaml").write_text(CONFIG)
    (root / suite).parent.mkdir(exist_ok=True)
    (root / suite).write_text(text)
    settings, trust = project.load([root]), Trust()
    return wants(reading.load_all([root / suite], settings, trust), settings, trust)


def test_agents_and_databases_that_nothing_of_what_is_run_uses_are_not_asked_for(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    plain = "agent: used\ntest_cases: [{name: a, input: hi, expected: {should_contain: [x]}}]\n"
    assert asked_of(root, "plain.yaml", plain) == ["run used.py:answer (the agent used)"]
    nao = "prompt: how many?\nsql: SELECT 1\n"
    (root / "rules").mkdir()
    listed = asked_of(root, "tests/one.yml", f"{nao}database: shop\n")
    assert listed == [f"read {tmp_path / 'shop.db'} (databases.shop)"]


def test_a_judge_is_asked_for_where_something_is_graded(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    graded = "prompts: [hi]\nproviders: [used]\ntests: [{assert: [{type: llm-rubric, value: kind%s}]}]\n"
    used, judge = "run used.py:answer (the agent used)", "run ./judge (the agent judge)"
    assert asked_of(root, "promptfooconfig.yaml", graded % "") == [used, judge]
    own = asked_of(root, "promptfooconfig.yaml", graded % ", provider: grader")
    assert set(own) == {used, judge, "run ./grade (the agent grader)"}
    similar = graded.replace("llm-rubric", "similar") % ""
    assert asked_of(root, "promptfooconfig.yaml", similar) == [used, judge]
    plain = graded.replace("llm-rubric", "contains") % ""
    assert asked_of(root, "promptfooconfig.yaml", plain) == [used]


def test_code_that_gives_the_tools_which_calls_are_held_against_is_asked_for_before_answers_are_judged_again(
    tmp_path: Path,
) -> None:
    """All of them were errors, and nothing had been said of it."""
    (tmp_path / "tui_eval.yaml").write_text("{}")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [{id: 'openai:chat:m', config: {tools: 'file://t.py:made'}}]\n"
        "tests: [{assert: [{type: is-valid-openai-tools-call}]}, {assert: [{type: contains, value: x}]}]\n"
    )
    (tmp_path / "t.py").write_text("def made(): return []\n")
    settings, trust = project.load([tmp_path]), Trust()
    (suite,) = reading.load_all([tmp_path], settings, trust)
    called, plain = plan(suite.cases, settings, RunRequest(), dict, {}, trust=trust)
    assert wants_of_judging([called], settings, trust) == ["run t.py"]
    assert wants_of_judging([plain], settings, trust) == []


def test_a_fingerprint_that_is_of_nothing_is_said_before_anything_is_run(tmp_path: Path) -> None:
    suite = "prompts: [hi]\nproviders: [used]\ntests: [{assert: [{type: python, value: 'True'}]}]\n"
    listed = asked_of(tmp_path, "promptfooconfig.yaml", suite)
    other = asked_of(tmp_path, "apart/promptfooconfig.yaml", suite.replace("True", "not False"))
    right = [fingerprint(what) for what in dict.fromkeys([*listed, *other])]

    def given(*agreed: str) -> RunRequest:
        return RunRequest(paths=[str(tmp_path / "promptfooconfig.yaml")], agreed=list(agreed))

    prepare(given(*right[:1]))
    prepare(
        given(*right)
    )  # also what only a suite beside it wants: printed commands name all that was agreed to
    prepare(given("word for word, as the app has it"))
    runs = len(list((tmp_path / ".tui-eval" / "runs").iterdir()))
    with pytest.raises(SelectionError, match=r"--trust-only: 0123456789abcdef is the fingerprint of nothing"):
        prepare(given(*right, "#0123456789abcdef"))
    (tmp_path / "promptfooconfig.yaml").write_text(suite.replace("True", "False"))
    with pytest.raises(SelectionError, match=r"is the fingerprint of nothing that is wanted here"):
        prepare(given(*right))
    assert len(list((tmp_path / ".tui-eval" / "runs").iterdir())) == runs
