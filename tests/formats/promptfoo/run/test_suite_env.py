"""`env` of a promptfoo suite reaches its providers and its graders."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.servers.openai import OpenAIServer
from tests.support.promptfoo_files import Make
from tui_eval.config.project import Config, load
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.engine.wants import wants, wants_of_jobs
from tui_eval.formats.promptfoo import read
from tui_eval.formats.promptfoo.promptfoo_format import PROMPTFOO
from tui_eval.formats.reading import load_all, problems_of
from tui_eval.guard.trust import Trust, inline
from tui_eval.store.reader import RunReader


@contextlib.asynccontextmanager
async def endpoint(header: str) -> AsyncIterator[tuple[str, list[str]]]:
    """The address of one that says hi, and what it was asked: this header, and `q` of the body."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(f"{request.headers.get(header)} {(await request.json())['q']}")
        return web.json_response({"said": "hi"})

    app = web.Application()
    app.router.add_post("/", answer)
    async with TestServer(app) as server:
        yield str(server.make_url("/")), asked


SUITE = """
env:
  OPENAI_API_KEY: key-of-the-suite
  OPENAI_BASE_URL: %s
prompts: ['hi']
providers: [openai:chat:asked]
tests:
  - vars: {v: 1}
    assert: [{type: llm-rubric, value: is kind, provider: 'openai:chat:grader'}]
"""


async def test_providers_and_graders_have_a_suite_s_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with OpenAIServer() as server:
        (tmp_path / "promptfooconfig.yaml").write_text(SUITE % server.base)
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(tmp_path)], trust=True))
        await active.execute()
        assert {seen.body["model"] for seen in server.requests} == {"asked", "grader"}
        assert {seen.headers["Authorization"] for seen in server.requests} == {"Bearer key-of-the-suite"}
    assert active.writer is not None
    reader = RunReader(active.writer.folder)
    assert "key-of-the-suite" not in repr([reader.case(row.id) for row in reader.cases()])


CONFIG = """
prompts: ['{{x}}']
providers: [echo]
env: {OWN: own}
defaultTest: file://default.yaml
tests: [file://tests.yaml, file://tests.json, file://tests.jsonl, file://tests.csv]
"""
DEFAULT = """
assert: [{type: not-contains, value: "{{env.OF_FILE}} of the default"}]
"""
TESTS = """
- {vars: {x: word}, assert: [{type: equals, value: "{{env.WORD}}", metric: "m {{env.WORD}}"}]}
- {vars: {x: word}, assert: [{type: not-equals, value: "{{env.WORD}}"}]}
- {vars: {x: word}, assert: [{type: contains-all, value: ["{{env['WORD']}}"]}]}
- {vars: {x: word}, assert: [{type: not-regex, value: "^{{env.WORD}}$"}]}
- {vars: {x: word}, assert: [{type: javascript, value: "output === '{{env.WORD}}'"}]}
- vars: {x: word}
  assert: [{type: assert-set, metric: "s {{env.WORD}}", assert: [{type: equals, value: "{{env.WORD}}"}]}]
- {vars: {x: word}, assert: [{type: equals, value: "{% if env.WORD == 'word' %}word{% endif %}"}]}
- {vars: {x: in the file}, assert: [{type: equals, value: "{{env.OF_FILE}}"}]}
- {vars: {x: own}, assert: [{type: equals, value: "{{env.OWN}}"}]}
- {vars: {x: dflt}, assert: [{type: equals, value: "{{env.NOWHERE | default('dflt')}}"}]}
"""
OTHERS = {
    "tests.json": '[{"vars": {"x": "word"}, "assert": [{"type": "not-equals", "value": "{{env.WORD}}"}]}]',
    "tests.jsonl": '{"vars": {"x": "word"}, "assert": [{"type": "equals", "value": "{{env.WORD}}"}]}\n',
    "tests.csv": "x,__expected\nword,not-contains: {{env.WORD}}\nword,equals: {{env.WORD}}\n",
    ".env": "OF_FILE=in the file\nWORD=not this\n",
}


async def ran(folder: Path, **asked: Any) -> RunReader:
    active = await asyncio.to_thread(prepare, RunRequest(paths=[str(folder)], root=str(folder), **asked))
    await active.execute()
    assert active.writer is not None
    return RunReader(active.writer.folder)


def write_files_of_tests(folder: Path) -> None:
    for name, text in {**OTHERS, "tests.yaml": TESTS, "default.yaml": DEFAULT}.items():
        (folder / name).write_text(text, "utf-8")
    (folder / "promptfooconfig.yaml").write_text(CONFIG, "utf-8")


async def test_assertions_in_files_of_tests_have_the_variables_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As promptfoo 0.121.20 judges them; of the suite's own `env` it knows nothing in these files.
    monkeypatch.setenv("WORD", "word")
    monkeypatch.delenv("OF_FILE", raising=False)
    write_files_of_tests(tmp_path)
    reader = await ran(tmp_path, trust=True)
    rows = list(reader.attempts())
    outcomes = [row.outcome for row in rows]
    words = (
        "passed failed passed failed passed passed passed passed failed passed failed passed failed passed"
    )
    assert outcomes == words.split()
    for at, name in ((0, "m word"), (5, "s word")):
        found = reader.attempt(rows[at].id)
        assert found is not None and set(found.named_scores) == {name}


async def test_variables_that_assertions_in_files_of_tests_name_need_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "word")
    write_files_of_tests(tmp_path)
    reader = await ran(tmp_path)
    rows = list(reader.attempts())
    named = [row for row in rows if "WORD" in repr(reader.case(row.case_ref).asserted)]
    assert len(named) == 11 and {row.outcome for row in named} == {"error"}
    said = [(reader.attempt(row.id) or row).message for row in named]
    assert all("needs trust: read the environment variable WORD" in line for line in said)


async def test_the_env_file_is_asked_for_where_only_a_file_of_tests_names_a_variable(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OF_FILE=in the file\n", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{x}}']\nproviders: [echo]\ntests: file://t.yaml\n", "utf-8"
    )
    (tmp_path / "t.yaml").write_text(
        "- {vars: {x: in the file}, assert: [{type: not-equals, value: '{{env.OF_FILE}}'}]}", "utf-8"
    )
    text = (tmp_path / "promptfooconfig.yaml").read_text("utf-8")
    suite = read.read("promptfooconfig.yaml", text, Config(root=tmp_path), Trust())
    assert any("needs trust: read .env" in problem.message for problem in suite.problems)
    agreed = Trust(agreed=frozenset(["read .env"]))
    (case,) = read.read("promptfooconfig.yaml", text, Config(root=tmp_path), agreed).cases
    original = PROMPTFOO.as_written(case, Config(root=tmp_path), agreed)
    assert original is not None and original.env == {
        "OF_FILE": "in the file"
    }  # what is saved holds none of it
    reader = await ran(tmp_path, agreed=["read .env"])
    assert [row.outcome for row in reader.attempts()] == ["failed"]


def test_what_the_suite_s_own_env_does_not_fill_in_is_noted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOTH", "of the environment")
    suite = make(
        """
        env: {OWN: own, BOTH: own}
        prompts: ['{{env.OWN}} {{a}}']
        providers: [echo]
        tests:
          - file://t.yaml
          - file://t.csv
          - {vars: {a: 1}, assert: [{type: contains, value: '{{env.OWN}}'}]}
        """,
        trusted=True,
        t__yaml="""\
        - vars: {a: "{{env.OWN}}"}
          assert: [{type: contains, value: "{{env.BOTH}}"}, {type: not-contains, value: "x{{ env.OWN }}"}]
        - assert: [{type: contains-any, value: ["{{ env['OWN'] }}"]}]
        """,
        t__csv="a,__expected\n{{env.OWN}},contains: envy\n2,contains: {{env.OWN}}\n3,contains: {{env.OWN}}\n",
    )
    notes = [one for one in problems_of(suite) if "env.OWN" in one.message]
    assert [(one.path, one.line, one.key, one.level) for one in notes] == [
        ("t.csv", 3, "__expected", "note"),
        ("t.yaml", 2, "[0].assert[1].value", "note"),
    ]
    assert "env.OWN is empty here: the suite's own env counts in its configuration" in notes[0].message
    assert not [one for one in problems_of(suite) if "BOTH" in one.message]


SCRIPTS = {
    "promptfooconfig.yaml": """
prompts: ["file://prompt.py:get_prompt"]
providers: [file://provider.py, 'exec:sh provider.sh']
env: {OWN: own}
extensions: ['file://hook.py:beforeEach']
tests: file://tests.py
""",
    ".env": "WORD=banana\nHERE=of the file\nGIVEN_KEY=sk-0123456789abcdef\n",
    "prompt.py": "import os\ndef get_prompt(context):\n    return 'prompt ' + os.environ['WORD']\n",
    "provider.py": "import os\ndef call_api(prompt, options, context):\n"
    '    e = os.environ\n    return {\'output\': f\'{prompt} {e["WORD"]} {e["HERE"]} {e.get("OWN")} {len(e["GIVEN_KEY"])}\'}\n',
    "provider.sh": 'echo "$1 $WORD $HERE ${OWN:-None} 19"\n',
    "hook.py": "import os\ndef beforeEach(context, more):\n"
    "    context['test']['vars']['hooked'] = os.environ['WORD']\n    return context\n",
    "judge.py": "import os\ndef get_assert(output, context):\n"
    "    return os.environ['WORD'] == context['vars']['hooked'] == 'banana'\n",
    "tests.py": "import os\ndef generate_tests():\n    said = 'prompt banana banana here None 19'\n"
    "    checks = [{'type': 'equals', 'value': said}, {'type': 'python', 'value': 'file://judge.py'}]\n"
    "    return [{'vars': {'x': os.environ['WORD']}, 'assert': checks}]\n",
}


async def test_code_of_a_suite_finds_its_env_file_in_its_environment_and_another_suite_s_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As promptfoo 0.121.20: of the `.env` what the environment does not say, of the suite's own `env` nothing."""
    monkeypatch.setenv("HERE", "here")
    for name in ("WORD", "OWN", "GIVEN_KEY"):
        monkeypatch.delenv(name, raising=False)
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for name, text in SCRIPTS.items():
            (tmp_path / folder / name).write_text(text, "utf-8")
    (tmp_path / "b" / ".env").write_text("WORD=other\nGIVEN_KEY=x\n", "utf-8")
    reader = await ran(tmp_path, trust=True)
    rows = list(reader.attempts())
    assert [row.outcome for row in rows if reader.case(row.case_ref).suite.startswith("a/")] == ["passed"] * 2
    texts = {attempt.response_text for row in rows if (attempt := reader.attempt(row.id)) is not None}
    assert {text.split()[1] for text in texts if text} == {"banana", "other"}
    assert "sk-0123456789abcdef" not in repr([reader.attempt(row.id) for row in rows])


async def test_code_and_assertions_of_a_suite_find_the_env_file_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As promptfoo 0.121.20, where such a file wins over the environment and over the `.env`: only this was found."""
    monkeypatch.setenv("HERE", "environment")
    for name in ("WORD", "BOTH", "DOT"):
        monkeypatch.delenv(name, raising=False)
    said = "apple other file dot"
    files = {
        "promptfooconfig.yaml": "prompts: [hi]\nproviders: [file://p.py, 'exec:sh p.sh']\n"
        "commandLineOptions: {envPath: other.env}\ntests: file://t.yaml\n",
        "t.yaml": "- assert:\n"
        "    - {type: equals, value: '{{env.WORD}} {{env.BOTH}} {{env.HERE}} {{env.DOT}}'}\n"
        f"    - {{type: equals, value: {said}}}\n"
        "    - {type: python, value: \"__import__('os').environ['WORD'] == 'apple'\"}\n",
        "p.py": "import os\ndef call_api(prompt, options, context):\n"
        "    return {'output': ' '.join(os.environ[one] for one in ('WORD', 'BOTH', 'HERE', 'DOT'))}\n",
        "p.sh": 'echo "$WORD $BOTH $HERE $DOT"\n',
        ".env": "BOTH=dot\nDOT=dot\n",
        "other.env": "WORD=apple\nBOTH=other\nHERE=file\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, "utf-8")
    reader = await ran(tmp_path, trust=True)
    assert [(row.outcome, row.message) for row in reader.attempts()] == [("passed", "passed")] * 2


@pytest.mark.parametrize("named", [False, True])
async def test_nothing_is_judged_by_variables_of_an_env_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """`output.includes('{{env.WORD}}')` passed, as nothing is in every answer."""
    monkeypatch.delenv("WORD", raising=False)
    file = "other.env" if named else ".env"
    suite = (
        "prompts: ['hi {{q}}']\nproviders: [echo]\n"
        + "commandLineOptions: {envPath: other.env}\n" * named
        + "tests:\n"
        "  - {vars: {q: a}, assert: [{type: javascript, value: \"output.includes('{{env.WORD}}')\"}]}\n"
        "  - {vars: {q: '{{env.WORD}}'}, assert: [{type: contains, value: hi}]}\n"
        "  - {vars: {q: c}, assert: [{type: contains, value: hi}]}\n"
    )
    (tmp_path / "promptfooconfig.yaml").write_text(suite, "utf-8")
    (tmp_path / file).write_text("WORD=banana\n", "utf-8")
    rows = [
        (row.outcome, row.message.split(" (")[0]) for row in (await ran(tmp_path, trust=False)).attempts()
    ]
    assert rows == [*[("error", f"needs trust: read {file}")] * 2, ("passed", "passed")]
    assert [row.outcome for row in (await ran(tmp_path, trust=True)).attempts()] == [
        "failed",
        "passed",
        "passed",
    ]


async def test_no_provider_is_asked_without_variables_of_an_env_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`Authorization: Bearer ` was sent, and what came back was judged; others of the suite are asked."""
    monkeypatch.delenv("KEY", raising=False)
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization", ""))
        return web.json_response({"said": "hi"})

    app = web.Application()
    app.router.add_post("/", answer)
    async with TestServer(app) as server:
        url = str(server.make_url("/"))
        entry = "{id: '%s', label: %s, config: {method: POST, headers: {Authorization: 'Bearer %s'}, body: {q: a}}}"
        (tmp_path / "promptfooconfig.yaml").write_text(
            "prompts: [hi]\ncommandLineOptions: {envPath: other.env}\nproviders:\n"
            f"  - {entry % (url, 'keyed', '{{env.KEY}}')}\n  - {entry % (url, 'plain', 'word')}\n"
            "tests: [{assert: [{type: contains, value: hi}]}]\n",
            "utf-8",
        )
        (tmp_path / "other.env").write_text("KEY=secret\n", "utf-8")
        rows = [(row.outcome, row.message.split(" (")[0]) for row in (await ran(tmp_path)).attempts()]
        assert rows == [("error", "needs trust: read other.env"), ("passed", "passed")]
        assert asked == ["Bearer word"]
        rows = [(row.outcome, row.message) for row in (await ran(tmp_path, trust=True)).attempts()]
        assert rows == [("passed", "passed")] * 2
        assert sorted(asked[1:]) == ["Bearer secret", "Bearer word"]


WITHHELD = {
    "value": "{vars: {x: a}, assert: [{type: not-equals, value: {a: '{{env.WORD}}'}}]}",
    "schema": "{vars: {x: a}, assert: [{type: not-is-json, value: {properties: {a: {const: '{{env.WORD}}'}}}}]}",
    "transform": """{vars: {x: a}, options: {transform: "output.replace('{{env.WORD}}', 'gone')"},"""
    " assert: [{type: not-contains, value: gone}]}",
    "own transform": """{vars: {x: a}, assert: [{type: not-contains, value: gone,"""
    """ transform: "output.replace('{{env.WORD}}', 'gone')"}]}""",
    "config": "{vars: {x: a}, assert: [{type: javascript, value: '!output.includes(context.config.w)',"
    " config: {w: '{{env.WORD}}'}}]}",
    "metadata": "{vars: {x: a}, metadata: {w: '{{env.WORD}}'},"
    " assert: [{type: javascript, value: '!output.includes(context.test.metadata.w)'}]}",
    "variable": "{vars: {x: a, o: {w: '{{env.WORD}}'}},"
    " assert: [{type: javascript, value: '!output.includes(context.vars.o.w)'}]}",
    "recorded": "{vars: {x: a}, providerOutput: 'say {{env.WORD}}', assert: [{type: not-contains, value: hello}]}",
}


@pytest.mark.parametrize("test", WITHHELD.values(), ids=WITHHELD)
@pytest.mark.parametrize("named", [False, True])
async def test_nothing_is_judged_by_what_was_not_filled_in_when_its_suite_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, test: str, named: bool
) -> None:
    """What is no template when an answer is judged stood there as it was written, and all of these passed."""
    monkeypatch.delenv("WORD", raising=False)
    what = "read other.env" if named else "read the environment variable WORD"
    if named:
        (tmp_path / "other.env").write_text("WORD=hello\n", "utf-8")
    else:
        monkeypatch.setenv("WORD", "hello")
    (tmp_path / "promptfooconfig.yaml").write_text(
        'prompts: [\'{"a":"hello"}\']\nproviders: [echo]\n'
        + "commandLineOptions: {envPath: other.env}\n" * named
        + f"tests:\n  - {test}\n  - {{vars: {{x: b}}, assert: [{{type: contains, value: hello}}]}}\n",
        "utf-8",
    )
    rows = [(row.outcome, row.message.split(" (")[0]) for row in (await ran(tmp_path)).attempts()]
    assert rows == [("error", f"needs trust: {what}"), ("passed", "passed")]
    outcomes = [row.outcome for row in (await ran(tmp_path, trust=True)).attempts()]
    assert outcomes == ["failed", "passed"]


async def test_the_transform_of_a_provider_needs_what_was_not_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORD", "hello")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [say hello]\nproviders:\n"
        "  - {id: echo, transform: \"output.replace('{{env.WORD}}', 'gone')\"}\n  - {id: echo, label: other}\n"
        "tests: [{assert: [{type: not-contains, value: gone}]}]\n",
        "utf-8",
    )
    assert [row.outcome for row in (await ran(tmp_path)).attempts()] == ["error", "passed"]
    outcomes = [row.outcome for row in (await ran(tmp_path, trust=True)).attempts()]
    assert outcomes == ["failed", "passed"]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ("{% if env.WORD %}Bearer {{env['WORD']}}{% endif %}", "{q: a}"),
        ("{% set k = env.WORD %}Bearer {{k}}", "{q: a}"),
        ("Bearer {{env[name]}}", "{q: a}"),
        ("Bearer hello", "file://body.json"),
    ],
)
async def test_templates_of_a_provider_find_the_environment_when_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, headers: str, body: str
) -> None:
    """They found nothing, trusted or not: `Bearer ` was sent, and what came back was judged."""
    monkeypatch.setenv("WORD", "hello")
    async with endpoint("Authorization") as (url, asked):
        entry = f"{{id: '{url}', config: {{method: POST, headers: {{Authorization: \"{headers}\"}},"
        (tmp_path / "body.json").write_text('{"q": "{{ env.WORD }}"}', "utf-8")
        (tmp_path / "promptfooconfig.yaml").write_text(
            f"prompts: [hi]\nproviders:\n  - {entry} body: {body}}}}}\n"
            "tests: [{vars: {name: WORD}, assert: [{type: contains, value: hi}]}]\n",
            "utf-8",
        )
        rows = [(row.outcome, row.message.split(" (")[0]) for row in (await ran(tmp_path)).attempts()]
        assert (rows, asked) == ([("error", "needs trust: read the environment variable WORD")], [])
        rows = [(row.outcome, row.message) for row in (await ran(tmp_path, trust=True)).attempts()]
        assert rows == [("passed", "passed")]
        assert asked == [f"Bearer hello {'hello' if 'file' in body else 'a'}"]


@pytest.mark.parametrize(
    ("header", "body"),
    [("{% if env.WORD %}{{env['WORD']}}{% endif %}", "{q: a}"), ("plain", "file://body.json")],
)
async def test_kept_answers_are_of_the_environment_that_the_provider_s_templates_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, body: str
) -> None:
    async with endpoint("X-Word") as (url, asked):
        config = f'{{method: POST, headers: {{X-Word: "{header}"}}, body: {body}}}'
        (tmp_path / "body.json").write_text('{"q": "{{ env.WORD }}"}', "utf-8")
        (tmp_path / "promptfooconfig.yaml").write_text(
            f"prompts: [hi]\nproviders: [{{id: '{url}', config: {config}}}]\n"
            "tests: [{assert: [{type: contains, value: hi}]}]\n",
            "utf-8",
        )
        for word in ("one", "one", "two"):
            monkeypatch.setenv("WORD", word)
            (row,) = (await ran(tmp_path, trust=True, cache=True)).attempts()
            assert row.outcome == "passed"
    assert [one.count("one") for one in asked] == [1, 0]  # what was answered to `one` is kept for it alone


@pytest.mark.parametrize(
    ("header", "body"),
    [
        ("{{ env.MY_TOKEN }}", "{q: a}"),
        ("{% set k = env.MY_TOKEN %}Bearer {{ k }}", "{q: a}"),
        ("{{ [env][0].MY_TOKEN }}", "{q: a}"),
        ("{{ env['MY_' + 'TOKEN'] }}", "{q: a}"),
        ("plain", "file://body.json"),
    ],
)
async def test_a_variable_that_may_be_read_is_sent_to_no_host_that_nobody_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, body: str
) -> None:
    """`read the environment variable MY_TOKEN` names no host."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / "body.json").write_text('{"q": "{{ env.MY_TOKEN }}"}', "utf-8")
    config = f'{{method: POST, headers: {{X-Trace: "{header}"}}, body: {body}, maxRetries: 0}}'
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: [hi]\nproviders: [{{id: 'http://192.0.2.2:9/', label: bot, config: {config}}}]\n"
        "tests: [{assert: [{type: contains, value: hi}]}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path, agreed=["read the environment variable MY_TOKEN"])).attempts()
    assert row.outcome == "error" and row.message.startswith(
        "needs trust: send a secret (agents.bot.config) to"
    )


@pytest.mark.parametrize(
    ("key", "given"),
    [
        (
            "session",
            "{url: 'http://192.0.2.2:9/', headers: {X-Trace: '{{ env.MY_TOKEN }}'}, responseParser: 'json.id'}",
        ),
        (
            "session",
            "{url: 'http://192.0.2.2:9/', body: {t: '{% set k = env.MY_TOKEN %}{{ k }}'}, responseParser: 'json.id'}",
        ),
        (
            "auth",
            "{type: oauth, grantType: client_credentials, tokenUrl: 'http://192.0.2.2:9/', clientId: me, "
            "clientSecret: '{{ env.MY_TOKEN }}'}",
        ),
    ],
)
async def test_nor_to_where_a_session_begins_or_it_signs_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, given: str
) -> None:
    """The endpoint itself may be this machine's, for which nothing is asked."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [{id: 'http://127.0.0.1:9/', label: bot, config: {method: POST, body: {q: a}, "
        f"maxRetries: 0, {key}: {given}}}}}]\ntests: [{{assert: [{{type: contains, value: hi}}]}}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path, agreed=["read the environment variable MY_TOKEN"])).attempts()
    assert row.outcome == "error"
    assert row.message.startswith(f"needs trust: send a secret (agents.bot.config.{key}) to 192.0.2.2")


_LEADS = "headers: {X-Key: '{{ env.MY_TOKEN }}'}, method: POST, body: {q: a}, maxRetries: 0"
_RAW = '"POST / HTTP/1.1\\nHost: %s\\nX-Key: {{ env.MY_TOKEN }}\\n\\n{}"'


@pytest.mark.parametrize(
    "config",
    [
        f"url: 'http://127.0.0.1:{{{{port}}}}/', {_LEADS}",
        f"url: 'http://{{{{user}}}}@127.0.0.1/', {_LEADS}",
        f"url: 'http://127.0.0.1:9/', request: {_RAW % '192.0.2.2:9'}",
        f"url: 'http://127.0.0.1:9/', request: {_RAW % '127.0.0.1:{{port}}'}",
        "url: 'http://127.0.0.1:9/', request: file://raw.txt",
        f"request: {_RAW % '192.0.2.2:9'}",
        "url: 'http://127.0.0.1:9/', method: POST, body: {q: a}, session: {url: 'http://127.0.0.1:{{port}}/', "
        "headers: {X-Key: '{{ env.MY_TOKEN }}'}, responseParser: 'json.id'}",
        "url: 'http://127.0.0.1:9/', method: POST, body: {q: a}, auth: {type: oauth, clientId: me, "
        "grantType: client_credentials, tokenUrl: 'http://127.0.0.1:{{port}}/', clientSecret: '{{ env.MY_TOKEN }}'}",
    ],
)
async def test_nor_to_where_templates_or_a_request_s_own_host_lead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str
) -> None:
    """What stands there reads as this machine's address, for which nothing is asked."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / "raw.txt").write_text(
        "POST / HTTP/1.1\nHost: 192.0.2.2:9\nX-Key: {{ env.MY_TOKEN }}\n\n{}", "utf-8"
    )
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: [hi]\nproviders: [{{id: http, label: bot, config: {{{config}}}}}]\ntests:\n"
        "  - vars: {port: '80@192.0.2.2:9', user: '192.0.2.2:9/?'}\n    assert: [{type: contains, value: hi}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path, agreed=["read the environment variable MY_TOKEN"])).attempts()
    assert row.outcome == "error"
    assert row.message.startswith("needs trust: send a secret (agents.bot.config")
    assert " to 192.0.2.2 " in row.message


@pytest.mark.parametrize("url", ["http://127.0.0.1:{{ port }}/", "http://{{ user }}@127.0.0.1/?{{ port }}"])
async def test_nor_where_templates_with_blanks_in_it_were_agreed_to_as_they_stand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    """The host that stands there is no other for a blank."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: [hi]\nproviders: [{{id: http, label: bot, config: {{url: '{url}', {_LEADS}}}}}]\ntests:\n"
        "  - vars: {port: '80@192.0.2.2:9', user: '192.0.2.2:9/?'}\n    assert: [{type: contains, value: hi}]\n",
        "utf-8",
    )
    agreed = ["read the environment variable MY_TOKEN", f"send a secret (agents.bot.config) to {url}"]
    (row,) = (await ran(tmp_path, agreed=agreed)).attempts()
    assert row.message.startswith("needs trust: send a secret (agents.bot.config")
    assert " to 192.0.2.2 " in row.message


async def test_nor_is_it_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That this host may get it was agreed to; a blank in the path made another of it."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['{{env.MY_TOKEN}}']\nproviders: [{id: http, label: bot, config: {method: POST, maxRetries: 0, "
        "body: {q: '{{prompt}}'}, url: 'http://nobody.invalid:9/{{city}}'}}]\ntests:\n"
        "  - vars: {city: New York}\n    assert: [{type: contains, value: hi}]\n",
        "utf-8",
    )
    said = "send a secret (in what promptfooconfig.yaml asks) to nobody.invalid"
    (row,) = (await ran(tmp_path, agreed=["read the environment variable MY_TOKEN", said])).attempts()
    assert "needs trust" not in row.message


@pytest.mark.parametrize(("host", "asks"), [("127.0.0.1:9", ""), ("192.0.2.2:9", "192.0.2.2")])
async def test_a_request_in_a_file_goes_where_its_host_says(tmp_path: Path, host: str, asks: str) -> None:
    """Without a url, trust was asked for to nowhere, of this machine too."""
    (tmp_path / "raw.txt").write_text(f"POST / HTTP/1.1\nHost: {host}\n\n{{}}", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [{id: http, label: bot, config: {request: file://raw.txt, maxRetries: 0, "
        "auth: {type: bearer, token: sekret-0123456789}}}]\ntests:\n  - assert: [{type: contains, value: hi}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path)).attempts()
    needed = f"needs trust: send a secret (agents.bot.config) to {asks} ("
    assert row.message.startswith(needed) if asks else "needs trust" not in row.message


async def test_a_scheme_that_is_a_template_leads_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    url = "http{{s}}://127.0.0.1/"
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: [hi]\nproviders: [{{id: http, label: bot, config: {{url: '{url}', {_LEADS}}}}}]\ntests:\n"
        "  - vars: {s: '://192.0.2.2:9/?'}\n    assert: [{type: contains, value: hi}]\n",
        "utf-8",
    )
    agreed = ["read the environment variable MY_TOKEN", f"send a secret (agents.bot.config) to {url}"]
    (row,) = (await ran(tmp_path, agreed=agreed)).attempts()
    assert row.message.startswith("needs trust: send a secret (agents.bot.config) to 192.0.2.2 (")


async def test_a_blank_in_what_is_filled_in_behind_the_host_makes_no_other_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [{id: http, label: bot, config: {url: 'http://127.0.0.1:9/{{city}}', "
        f"{_LEADS}}}}}]\ntests:\n  - vars: {{city: New York}}\n    assert: [{{type: contains, value: hi}}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path, agreed=["read the environment variable MY_TOKEN"])).attempts()
    assert "needs trust" not in row.message


async def test_a_websocket_s_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its message is a template, too."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders:\n  - id: websocket\n    label: bot\n"
        "    config: {url: 'ws://127.0.0.1:{{port}}/', messageTemplate: '{{ env.MY_TOKEN }}', timeoutMs: 1000}\n"
        "tests:\n  - vars: {port: '80@192.0.2.2:9'}\n    assert: [{type: contains, value: hi}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path, agreed=["read the environment variable MY_TOKEN"])).attempts()
    assert (
        row.message.startswith("needs trust: send a secret (agents.bot.config") and "192.0.2.2" in row.message
    )


async def test_no_judge_is_asked_without_variables_of_an_env_file_that_may_not_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KEY", raising=False)
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.headers.get("Authorization", ""))
        return web.json_response({"pass": True, "score": 1, "reason": "so"})

    app = web.Application()
    app.router.add_post("/", answer)
    async with TestServer(app) as server:
        judge = (
            "config: {method: POST, headers: {Authorization: 'Bearer {{env.KEY}}'}, body: {q: '{{prompt}}'}}"
        )
        (tmp_path / "promptfooconfig.yaml").write_text(
            "prompts: [hi]\nproviders: [echo]\ncommandLineOptions: {envPath: other.env}\n"
            f"defaultTest: {{options: {{provider: {{id: '{server.make_url('/')}', {judge}}}}}}}\n"
            "tests:\n  - {assert: [{type: llm-rubric, value: is polite}]}\n"
            "  - {assert: [{type: contains, value: hi}]}\n",
            "utf-8",
        )
        (tmp_path / "other.env").write_text("KEY=secret\n", "utf-8")
        row, other = (await ran(tmp_path)).attempts()
        assert (row.outcome, asked) == ("error", []) and "needs trust: read other.env" in row.message
        assert other.outcome == "passed"  # it asks no judge
        row, _ = (await ran(tmp_path, trust=True)).attempts()
        assert (row.outcome, asked) == ("passed", ["Bearer secret"])


@pytest.mark.parametrize("generated", [False, True])
async def test_an_env_file_that_may_be_read_runs_no_code_that_nobody_agreed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, generated: bool
) -> None:
    """`NODE_OPTIONS=--require=./other.js`, and `PYTHONPATH`, in a file that was agreed to as `read .env`."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    code = "def check(output, context): return True\n"
    made = "def generate_tests(): return [{'vars': {'q': 'a'}, 'assert': [{'type': 'contains', 'value': 'hi'}]}]\n"
    (tmp_path / "a.py").write_text(made if generated else code, "utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n", "utf-8")
    (tmp_path / ".env").write_text(f"PYTHONPATH={tmp_path}/other\nWORD=hi\n", "utf-8")
    case = "tests: [{vars: {q: a}, assert: [{type: python, value: 'file://a.py:check'}]}]\n"
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: ['hi {{q}}']\nproviders: [echo]\n"
        + ("tests: ['file://a.py:generate_tests']\n" if generated else case),
        "utf-8",
    )
    agreed = ["read .env", "run a.py"]
    wanted = f"run code by PYTHONPATH of .env: {inline(f'{tmp_path}/other')}"
    if generated:
        trust = Trust(agreed=frozenset(agreed))
        (suite,) = await asyncio.to_thread(load_all, [tmp_path], Config(tmp_path), trust)
        assert any(f"needs trust: {wanted}" in str(one) for one in suite.problems)
    else:
        (row,) = (await ran(tmp_path, agreed=agreed)).attempts()
        assert row.outcome == "error" and row.message.startswith(f"needs trust: {wanted[:40]}")
    assert not (tmp_path / "ran").exists()
    (row,) = (await ran(tmp_path, agreed=[*agreed, wanted])).attempts()
    assert row.outcome == "passed" and (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "name", ["HOME", "PYTHONPYCACHEPREFIX", "SHELLOPTS", "npm_config_userconfig", "_JAVA_OPTIONS"]
)
async def test_folders_and_options_that_bring_code_are_asked_for_where_a_named_env_file_has_them(
    tmp_path: Path, name: str
) -> None:
    """Python runs `usercustomize.py` of another HOME; of a file that is named, variables win over the person's own."""
    (tmp_path / "my.env").write_text(f"{name}=elsewhere\n", "utf-8")
    (tmp_path / "a.py").write_text("def check(output, context): return True\n", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [echo]\ncommandLineOptions: {envPath: my.env}\n"
        "tests: [{assert: [{type: python, value: 'file://a.py:check'}]}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path, agreed=["read my.env", "run a.py"])).attempts()
    assert row.outcome == "error"
    assert row.message.startswith(f"needs trust: run code by {name} of my.env: {inline('elsewhere')}")


async def test_other_variables_of_an_env_file_are_not_asked_for(tmp_path: Path) -> None:
    """Their values would stand in what is asked."""
    (tmp_path / ".env").write_text(
        "LD_SDK_KEY=sdk-0123456789\nENV=production\nGIT_TOKEN=t-0123456789\n", "utf-8"
    )
    (tmp_path / "a.py").write_text("def check(output, context): return True\n", "utf-8")
    (tmp_path / "promptfooconfig.yaml").write_text(
        "prompts: [hi]\nproviders: [echo]\ntests: [{assert: [{type: python, value: 'file://a.py:check'}]}]\n",
        "utf-8",
    )
    (row,) = (await ran(tmp_path, agreed=["read .env", "run a.py"])).attempts()
    assert row.outcome == "passed"


async def test_the_env_file_is_asked_for_where_a_suite_has_code(tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text, "utf-8")
    trust = Trust()
    read.read("promptfooconfig.yaml", SCRIPTS["promptfooconfig.yaml"], Config(root=tmp_path), trust)
    assert "read .env" in trust.wanted
    trust = Trust()
    inline = (
        "prompts: [hi]\nproviders: [echo]\ntests: [{assert: [{type: javascript, value: process.env.WORD}]}]\n"
    )
    read.read("promptfooconfig.yaml", inline, Config(root=tmp_path), trust)
    assert "read .env" in trust.wanted


_FAR = "send a secret (in what promptfooconfig.yaml asks) to 192.0.2.2"
_LOCAL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("prompts", "provider", "test", "what"),
    [
        ("['hi {{env.MY_TOKEN}}']", "{id: 'http://192.0.2.2:9/', config: {BODY}}", "{vars: {q: a}}", _FAR),
        ("['hi {{v}}']", "{id: 'http://192.0.2.2:9/', config: {BODY}}", "{vars: {v: '{{env.MY_TOKEN}}'}}", _FAR),
        ("['hi']", "{id: 'http://192.0.2.2:9/', config: {BODY}}", "{vars: {v: '{{env.MY_TOKEN}}'}}", _FAR),
        ("['file://p.txt']", "{id: 'http://192.0.2.2:9/', config: {BODY}}", "{vars: {q: a}}", _FAR),
        ("['{{env.OF_FILE_KEY}}']", "{id: 'http://192.0.2.2:9/', config: {BODY}}", "{vars: {q: a}}", _FAR),
        ("['{% set t = env.MY_TOKEN %}{{t | upper}}']", "{id: 'http://192.0.2.2:9/', config: {BODY}}", "{vars: {q: a}}", _FAR),
        ("['{{env.MY_TOKEN | upper}}']", "{id: 'http://192.0.2.2:9/', config: {BODY}}", "{vars: {q: a}}", _FAR),
        ("['{{env.MY_TOKEN}}']", "{id: 'openai:chat:m', config: {apiBaseUrl: 'http://192.0.2.2:9/v1'}}", "{vars: {q: a}}", _FAR),
        ("['{{env.MY_TOKEN}}']", "{id: 'websocket', config: {url: 'ws://192.0.2.2:9/', messageTemplate: '{{prompt}}'}}", "{vars: {q: a}}", _FAR),
        (
            "['{{env.MY_TOKEN}}']", "{id: http, label: bot, config: {url: 'http://127.0.0.1:9/', request: \"POST / HTTP/1.1\\nHost: 192.0.2.2:9\\n\\n{{prompt}}\"}}",
            "{vars: {q: a}}", _FAR,
        ),
        (
            "['{{env.MY_TOKEN}}']", "{id: 'http://127.0.0.1:{{port}}/', label: bot, config: {BODY}}",
            "{vars: {port: '80@192.0.2.2:9'}}", "send a secret (agents.bot.config) to 192.0.2.2",
        ),
        (
            "['{{env.MY_TOKEN}}']", "{id: 'http://127.0.0.1:9/', label: bot, config: {BODY, session: {url: 'http://192.0.2.2:9/', body: {t: '{{prompt}}'}, responseParser: 'json.id'}}}",
            "{vars: {q: a}}", "send a secret (agents.bot.config.session) to 192.0.2.2",
        ),
    ],
)  # fmt: skip
async def test_nor_in_what_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompts: str, provider: str, test: str, what: str
) -> None:
    """A suite that may read a variable, or its `.env`, chose the host that its prompts go to, and put it in one."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    (tmp_path / ".env").write_text("OF_FILE_KEY=sekret-of-a-file-1\n", "utf-8")
    (tmp_path / "p.txt").write_text("hi {{ env.MY_TOKEN }}", "utf-8")
    provider = provider.replace("BODY", "method: POST, body: {q: '{{prompt}}'}, maxRetries: 0")
    (tmp_path / "promptfooconfig.yaml").write_text(
        f"prompts: {prompts}\nproviders: [{provider}]\ndefaultTest: {{assert: [{{type: contains, value: hi}}]}}\n"
        f"tests: [{test}]\n",
        "utf-8",
    )
    agreed = ["read the environment variable MY_TOKEN", "read .env"]
    (row,) = (await ran(tmp_path, agreed=agreed)).attempts()
    assert row.outcome == "error"
    assert row.message.startswith(f"needs trust: {what} ")


async def test_what_is_asked_with_a_secret_in_it_is_listed_before_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the variable may be read, and once it is; not for this machine, nor the provider's own host."""
    monkeypatch.setenv("MY_TOKEN", "sekret-0123456789")
    monkeypatch.setenv("OPENAI_API_KEY", "sekret-9876543210")
    reads = "read the environment variable MY_TOKEN"
    for address, sends in (
        ("http://192.0.2.2:9/v1", True),
        ("http://127.0.0.1:9/v1", False),
        ("https://api.openai.com/v1", False),
    ):
        (tmp_path / "promptfooconfig.yaml").write_text(
            f"prompts: ['{{{{v}}}}']\nproviders: [{{id: 'openai:chat:m', config: {{apiBaseUrl: '{address}', apiKey: x}}}}]\n"
            "tests:\n  - {vars: {v: plain}}\n  - {vars: {v: 'is {{env.MY_TOKEN}}'}}\n",
            "utf-8",
        )
        for agreed in ([], [reads]):
            active = await asyncio.to_thread(
                prepare, RunRequest(paths=[str(tmp_path)], root=str(tmp_path), agreed=agreed)
            )
            listed = wants_of_jobs(active.jobs, active.config, active.environment.trust)
            assert (_FAR in listed) is sends, (address, agreed)
            assert (reads in listed) is (not agreed)
            settings, trust = load([tmp_path], root=tmp_path), Trust(agreed=frozenset(agreed))
            assert (_FAR in wants(load_all([tmp_path], settings, trust), settings, trust)) is sends
