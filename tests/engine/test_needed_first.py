"""What judging and asking need of heavy libraries is imported before any clock goes, off the loop, and only that."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import yaml

from tests.engine.test_runs import go
from tui_eval.formats.promptfoo.judge import json_schema, registry, schema_library

LIBRARIES = ("jsonschema", "sqlglot", "html5lib", "snowballstemmer", "polars", "aiohttp")
RUN = """
import asyncio, json, sys, threading
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest

found, started = {}, []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in %r:
            found[name] = [threading.current_thread() is threading.main_thread(), bool(started)]

sys.meta_path.insert(0, Watch())
active = prepare(RunRequest(paths=["."]))
active.runner.on_start = lambda *_: started.append(1)
before = dict(found)
asyncio.run(active.execute())
print(json.dumps({"before": before, "found": {k: v for k, v in found.items() if k not in before}}))
"""
SCHEMA = {"type": "object", "required": ["a"]}
ASSERTIONS = {
    "jsonschema": {"type": "is-json", "value": SCHEMA},
    "sqlglot": {"type": "not-is-sql"},
    "html5lib": {"type": "not-is-html"},
    "snowballstemmer": {"type": "meteor", "value": "x"},
}


def imported(
    root: Path, assertions: list[dict], libraries: tuple[str, ...] = LIBRARIES
) -> dict[str, list[bool]]:
    tests = [{"vars": {"q": "{}"}, "assert": [one]} for one in assertions]
    document = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": tests}
    (root / "promptfooconfig.yaml").write_text(yaml.safe_dump(document))
    done = subprocess.run(
        [sys.executable, "-c", RUN % (libraries,)], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["found"]


@pytest.mark.real
def test_libraries_of_assertions_are_imported_in_a_thread_before_the_first_attempt(tmp_path: Path) -> None:
    found = imported(tmp_path, list(ASSERTIONS.values()))
    assert {name: found.get(name) for name in ASSERTIONS} == {name: [False, False] for name in ASSERTIONS}


@pytest.mark.real
def test_the_agent_of_a_grader_is_imported_where_something_is_graded(tmp_path: Path) -> None:
    (tmp_path / "tui_eval.yaml").write_text("agents: {j: {type: openai, model: m}}\njudge: j\n")
    assert "aiohttp" not in imported(tmp_path, [{"type": "contains", "value": "{"}])
    named = {"type": "llm-rubric", "value": "x", "provider": {"id": "openai:m"}, "threshold": 0}
    assert imported(tmp_path, [named])["aiohttp"] == [False, False]


@pytest.mark.real
def test_a_schema_needs_no_grammar_of_the_formats_that_are_not_asked(tmp_path: Path) -> None:
    slow = ("jsonschema", "rfc3987_syntax", "lark", "arrow")
    assert list(imported(tmp_path, [ASSERTIONS["jsonschema"]], slow)) == ["jsonschema"]


@pytest.mark.real
def test_what_no_case_needs_is_not_imported(tmp_path: Path) -> None:
    found = imported(tmp_path, [{"type": "contains", "value": "{"}, {"type": "is-json"}])
    assert not found.keys() & {*ASSERTIONS, "polars"}


def test_every_check_that_names_a_library_is_one_of_ours() -> None:
    assert registry.LIBRARIES.keys() <= set(registry.MODULES.values())
    assert registry.libraries("not-is-json", True)[1:] == [schema_library.__name__]
    assert not registry.libraries("is-json", False)[1:] and not registry.libraries("human", True)


@pytest.mark.parametrize("pattern", ["^x+$", r"^\p{L}+$"])
async def test_a_large_document_is_compared_with_its_schema_off_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    threads: list[bool] = []
    compare = json_schema.first_error

    def watched(validator: object, value: object) -> object:
        threads.append(threading.current_thread() is threading.main_thread())
        return compare(validator, value)

    monkeypatch.setattr(json_schema, "first_error", watched)
    schema = {"type": "array", "items": {"type": "string", "pattern": pattern}}
    tests = [
        {"vars": {"q": json.dumps(["x"] * count)}, "assert": [{"type": "is-json", "value": schema}]}
        for count in (3, 10_000)
    ]
    document = {"prompts": ["{{q}}"], "providers": ["echo"], "tests": tests}
    (tmp_path / "promptfooconfig.yaml").write_text(yaml.safe_dump(document))
    _, reader = await go(tmp_path, concurrency=1)
    outcomes = [row.outcome for row in reader.attempts()]
    reader.close()
    assert outcomes == ["passed", "passed"]
    assert threads == [True, False]
