"""Secrets that promptfoo's providers are given do not reach the disk, and a run that goes on has them again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from tests.agents.promptfoo.test_promptfoo_providers import AnyServer
from tests.servers.base import Planned
from tests.support.waiting import until
from tui_eval.engine.after.resuming import resume
from tui_eval.engine.kept_cases import KeptCases, is_masked, of_today, restored
from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.guard.masker import Masker
from tui_eval.guard.secrets import MASK
from tui_eval.model import Assertion, Case
from tui_eval.reports.export import export
from tui_eval.store.reader import RunReader

SUITE = """
prompts: ['hi {{v}}']
providers:
  - id: %(url)s/one
    label: one
    config:
      method: POST
      headers: {X-Key: '{{ env.A_SERVERS_KEY }}'}
      body: {m: '{{prompt}}', t: '{{token}}'}
      auth: {type: oauth, clientId: me, clientSecret: '{{ env.MY_CLIENT_SECRET }}', tokenUrl: '%(url)s/token'}
  - id: %(url)s/two
    label: two
    config:
      method: POST
      body: {m: '{{prompt}}'}
      auth: {type: api_key, placement: header, keyName: X-Access, value: written-in-the-suite}
      maxRetries: 0
tests:
  - vars: {v: 1}
  - vars: {v: 2}
"""
SECRETS = ("key-of-the-server", "secret-of-the-client", "written-in-the-suite", "token-from-outside")


def on_disk(folder: Path) -> list[str]:
    """The secrets that stand in any file of a folder, packed bodies included."""
    texts = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    reader = RunReader(folder)
    for row in reader.cases():
        texts.append(repr(reader.case(row.id)).encode())
        for attempt in reader.attempts(row.id):
            texts.append(repr(reader.attempt(attempt.id)).encode())
    return [secret for secret in SECRETS if any(secret.encode() in text for text in texts)]


async def test_a_run_keeps_no_secret_and_goes_on_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SERVERS_KEY", SECRETS[0])
    monkeypatch.setenv("MY_CLIENT_SECRET", SECRETS[1])
    token = Planned(body={"access_token": SECRETS[3]})
    with AnyServer() as server:
        usual = server.default
        slow = Planned(body={"answer": "late"}, delay=60)
        server.default = lambda seen: (  # type: ignore[method-assign]
            token if seen.path == "/token" else slow if "hi 2" in seen.text else usual(seen)
        )
        (tmp_path / "promptfooconfig.yaml").write_text(SUITE % {"url": server.url})
        request = RunRequest(paths=[str(tmp_path)], concurrency=1, trust=True)
        active = await asyncio.to_thread(prepare, request)
        running = asyncio.create_task(active.execute())
        assert active.writer is not None
        folder = active.writer.folder
        await until(lambda: any("hi 2" in seen.text for seen in server.requests))
        await active.runner.interrupt()
        assert await running == "interrupted"
        assert on_disk(folder) == []
        server.default = lambda seen: token if seen.path == "/token" else usual(seen)  # type: ignore[method-assign]
        server.requests.clear()
        again = await asyncio.to_thread(resume, folder, overrides=RunRequest(paths=[], trust=True))
        assert await again.execute() == "finished"
        assert [row.outcome for row in RunReader(folder).attempts()].count("error") == 0
        one = next(seen for seen in server.requests if seen.path == "/one")
        assert (one.headers["X-Key"], one.body) == (SECRETS[0], {"m": "hi 2", "t": SECRETS[3]})
        two = next(seen for seen in server.requests if seen.path == "/two")
        assert two.headers["X-Access"] == SECRETS[2]
        assert on_disk(folder) == []


def case(**provider: object) -> Case:
    return Case(
        "s::c", "c", "s", "promptfoo", provider={"id": "http", **provider}, vars={"v": "my-secret-word"}
    )


def test_what_is_masked_is_taken_from_today_where_the_rest_is_the_same() -> None:
    masker = Masker()
    then = KeptCases(masker).kept(
        case(config={"apiKey": "my-secret-word", "n": 1, "list": ["my-secret-word", "a"]})
    )
    assert is_masked(then) and json.dumps(then.provider).count(json.dumps(MASK)) == 2
    assert then.vars == {"v": MASK}
    today = case(config={"apiKey": "my-secret-word", "n": 2, "list": ["my-secret-word", "b"]})
    found = restored(then, today, masker)
    assert found.provider == {
        "id": "http",
        "config": {"apiKey": "my-secret-word", "n": 1, "list": ["my-secret-word", "a"]},
    }
    assert found.vars == {"v": "my-secret-word"}
    gone = restored(then, Case("s::c", "c", "s", "promptfoo"), masker)
    assert gone == then


@pytest.mark.parametrize("edited", [False, True])
async def test_a_run_that_goes_on_asks_with_the_secrets_of_a_case_or_not_at_all(
    project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, edited: bool
) -> None:
    """Asked with the mask a case would be another one, and what it expects is masked, too: it passed."""
    secrets = ("sk-abcdefghij0123456789", "tok-abcdefghij0123456789")
    monkeypatch.setenv("MY_API_KEY", secrets[0])
    monkeypatch.setenv("OTHER_TOKEN", secrets[1])
    names = ("slow", *(f"log in with {secret}" for secret in secrets))
    suite = "agent: helper\ntest_cases:\n" + "".join(
        f"  - {{name: '{name}', input: 'say {name}', expected: {{should_contain: ['{name}']}}}}\n"
        for name in names
    )
    script = "rules:\n" + "".join(
        f"  - {{match: {{contains: '{name}'}}, steps: [{'{wait: 60}, ' if name == 'slow' else ''}{{say: '{name}'}}]}}\n"
        for name in names
    )
    root = project(suite=suite, script=script + "default: {say: '•••'}\n")
    request = RunRequest(paths=[str(root / "suite.yaml")], concurrency=1)
    active = await asyncio.to_thread(prepare, request)
    running = asyncio.create_task(active.execute())
    assert active.writer is not None
    folder = active.writer.folder
    await until(lambda: any(row.state == "running" for row in RunReader(folder).attempts()))
    await active.runner.interrupt()
    await running
    (root / "agent.script.yaml").write_text(script.replace("{wait: 60}, ", "") + "default: {say: '•••'}\n")
    if edited:
        (root / "suite.yaml").write_text(suite.replace(f"'say log in with {secrets[0]}'", "'say it'"))
    again = await asyncio.to_thread(resume, folder)
    await again.execute()
    reader = RunReader(folder)
    rows = reader.attempts()
    assert [row.outcome for row in rows] == ["passed", "error" if edited else "passed", "passed"]
    if edited:
        assert "a secret in it is in no record" in rows[1].message and "run the case anew" in rows[1].message
        attempt = reader.attempt(rows[1].id)
        assert attempt is not None and not attempt.replies
    assert not any(secret.encode() in path.read_bytes() for path in folder.iterdir() for secret in secrets)


def test_templates_and_cases_without_secrets_stay() -> None:
    masker = Masker()
    plain = case(config={"apiKey": "{{ env.THE_KEY }}", "auth": {"value": "{{ my_api_key }}"}})
    assert KeptCases(masker).kept(plain) is plain
    assert not masker and not is_masked(plain)
    # What lists call a case is no record of a secret: today's case has it masked as well, and is whole.
    assert not is_masked(structs.replace(plain, case_id=MASK, variant=MASK, prompt=f"long.md: {MASK}"))


GRADED = """
prompts: ['hi {{v}}']
providers: [echo]
defaultTest:
  options:
    provider:
      id: openai:chat:judge
      config: {apiBaseUrl: '%(url)s', apiKey: default-graders-key, headers: {Authorization: Bearer header-of-it}}
tests:
  - vars: {v: 1}
    assert:
      - {type: llm-rubric, value: polite}
      - type: assert-set
        assert:
          - type: llm-rubric
            value: polite
            provider: {openai:chat:judge: {config: {apiBaseUrl: '%(url)s', apiKey: '{{env.A_GRADERS_KEY}}'}}}
"""
OF_GRADERS = ("default-graders-key", "header-of-it", "graders-key-from-outside")


async def test_graders_secrets_are_kept_and_exported_no_more_than_providers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_GRADERS_KEY", OF_GRADERS[2])
    said = {"role": "assistant", "content": '{"pass": true, "score": 1, "reason": "it is"}'}
    graded = Planned(body={"choices": [{"message": said, "finish_reason": "stop"}]})
    with AnyServer() as server:
        server.default = lambda _: graded  # type: ignore[method-assign]
        (tmp_path / "promptfooconfig.yaml").write_text(GRADED % {"url": server.url})
        active = await asyncio.to_thread(prepare, RunRequest(paths=[str(tmp_path)], trust=True))
        assert active.writer is not None
        assert await active.execute() == "finished"
        asked = " ".join(seen.headers["Authorization"] for seen in server.requests)
    assert OF_GRADERS[1] in asked and OF_GRADERS[2] in asked
    reader = RunReader(active.writer.folder)
    assert [row.outcome for row in reader.attempts()] == ["passed"]
    kinds = ("json", "promptfoo.json")
    for kind in kinds:
        export(reader, tmp_path / "out" / f"x.{kind}")
    texts = [one.read_bytes() for folder in (active.writer.folder, tmp_path / "out") for one in files(folder)]
    texts += [repr(reader.case(row.id)).encode() for row in reader.cases()]
    assert len(texts) >= 3 + len(kinds)
    assert [one for one in OF_GRADERS if any(one.encode() in text for text in texts)] == []


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_graders_secrets_come_back_from_today() -> None:
    def graded(number: int) -> Case:
        entry = {"text": {"id": "http", "config": {"auth": {"value": "packed-in-auth"}, "n": number}}}
        judged = Assertion("llm-rubric", provider={"id": "http", "config": {"token": "of-an-assertion"}})
        return Case(
            "s::c", "c", "s", "promptfoo", provider="echo", options={"provider": entry}, assertions=[judged]
        )

    masker = Masker()
    kept = KeptCases(masker).kept(graded(1))
    assert kept.options["provider"]["text"]["config"] == {"auth": {"value": MASK}, "n": 1}
    assert kept.assertions[0].provider["config"] == {"token": MASK}
    assert restored(kept, graded(2), masker) == graded(1)


def test_a_case_with_a_secret_in_its_id_is_today_the_one_of_its_content() -> None:
    """The number that tells it apart is another's where one came or went; what nobody can tell is nothing."""

    def one(case_id: str, content: str) -> Case:
        return Case(case_id, "n", "s", "start_to_agent", content_hash=content)

    first, second = one("s::in •••", "A"), one("s::in •••#2", "B")
    plain, edited = one("s::a#2", "P"), one("s::a#2", "Q")
    both = [first, second, plain]
    found = of_today(both, [first, second, edited])
    assert found == {("s::in •••", "A"): first, ("s::in •••#2", "B"): second, ("s::a#2", "P"): edited}
    left = one("s::in •••", "B")
    assert of_today(both, [left]) == {("s::in •••#2", "B"): left}, "the first was taken out"
    changed = one("s::in •••#2", "C")
    assert of_today(both, [first, changed])[second.case_id, "B"] is changed, "it was edited where it stood"
    assert of_today(both, [one("s::in •••", "C")]) == {}
