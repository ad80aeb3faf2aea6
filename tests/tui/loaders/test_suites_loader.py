"""What the app has of suites: secrets masked, so that no list, pane or dialog can show one; as written only for what
writes files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tui_eval.engine.prepare import prepare
from tui_eval.engine.request import RunRequest
from tui_eval.formats import reading
from tui_eval.store.reader import RunReader
from tui_eval.tui.loaders import suites_loader
from tui_eval.tui.loaders.suites_loader import Loaded, Loader
from tui_eval.tui.state.app_state import AppState

SECRETS = "sk-abcdefghij0123456789", "tok-abcdefghij0123456789", "own-abcdefghij0123456789"
SUITE = """\
env: {OWN_API_KEY: own-abcdefghij0123456789}
prompts: ['Say {{env.MY_API_KEY}} and {{env.OWN_API_KEY}} to {{who}}']
providers: [echo]
tests:
  - {description: 'with {{env.OTHER_TOKEN}}', vars: {who: Bob}, assert: [{type: contains, value: zz}]}
  - {description: 'with {{env.MY_API_KEY}}', vars: {who: Bob}, assert: [{type: contains, value: Bob}], optoins: 1}
  - {vars: {who: '{{env.MY_API_KEY}}'}, asert: '{{env.MY_API_KEY}}'}
"""


class AtOnce:
    """Tasks without threads."""

    def thread(self, work: Callable[[], Any], *_: Any, **__: Any) -> None:
        work()

    def later(self, call: Callable[..., Any], *given: Any) -> None:
        call(*given)


class Taken:
    def __init__(self, state: AppState) -> None:
        self.state, self.loaded = state, list[Loaded]()

    def take_suites(self, loaded: Loaded) -> None:
        assert loaded.items is not None
        self.loaded.append(loaded)
        self.state.config = loaded.config
        self.state.take(loaded.items)

    def take_some_suites(self, loaded: Loaded, then: Any) -> None:
        self.take_suites(loaded)

    def tell_unread(self, words: str) -> None: ...


@pytest.fixture
def taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Taken:
    monkeypatch.setenv("MY_API_KEY", SECRETS[0])
    monkeypatch.setenv("OTHER_TOKEN", SECRETS[1])
    (tmp_path / "promptfooconfig.yaml").write_text(SUITE)
    (tmp_path / "tui_eval.yaml").write_text("agents: {offline: {type: echo}}\n")
    (tmp_path / "plain.yaml").write_text(
        f"agent: offline\ntest_cases:\n  - {{name: 'is {SECRETS[1]}', input: a, expected: {{should_contain: [o]}}}}\n"
    )
    state = AppState(tmp_path, trusted=True)
    return Taken(state)


def _shown(state: AppState) -> str:
    return repr([(item.case_id, item.name, item.case) for item in state.rows]) + repr(
        [(suite.name, suite.description, suite.problems, suite.cases) for suite in state.suites]
    )


def test_what_the_app_shows_of_suites_holds_no_secret_and_what_it_writes_does(taken: Taken) -> None:
    state = taken.state
    loader = Loader(state, AtOnce(), taken, [state.root])  # type: ignore[arg-type]
    loader.load()
    assert [item.name for item in state.rows] == ["is •••", "with ••• · line 5", "with ••• · line 6", "•••"]
    assert not any(secret in _shown(state) for secret in SECRETS)
    assert [len(suite.problems) for suite in state.suites if suite.format == "promptfoo"] != [0]
    written = [item.as_written for item in state.rows]
    assert all(one is not None for one in written)
    assert SECRETS[0] in repr(written) and SECRETS[1] in repr(written) and SECRETS[2] in repr(written)
    # One file read again: the cases of the others are still known as they are written.
    loader.reload([suite for suite in state.suites if suite.format == "start_to_agent"])
    assert not any(secret in _shown(state) for secret in SECRETS)
    assert [item.as_written for item in state.rows] == written


async def test_the_cases_of_the_app_are_those_of_records(taken: Taken) -> None:
    """By the same ids: their history is found, and `r` and `R` mean them."""
    state = taken.state
    active = prepare(RunRequest(paths=[str(state.root / "promptfooconfig.yaml")], trust=True))
    await active.execute()
    assert active.writer is not None
    Loader(state, AtOnce(), taken, [state.root]).load()  # type: ignore[arg-type]
    rows = [item for item in state.rows if item.format == "promptfoo"]
    assert [item.case_id for item in rows] == [row.case_id for row in RunReader(active.writer.folder).cases()]
    assert [item.last.outcome for item in rows if item.last is not None][:2] == ["failed", "error"]


async def test_where_one_was_taken_out_another_does_not_stand_for_it(taken: Taken) -> None:
    """Its number is another's now: it passed, and that one failed."""
    state = taken.state
    suite = state.root / "plain.yaml"
    cases = [
        f"  - {{name: 'is {secret}', input: {word}, expected: {{should_contain: [{told}]}}}}\n"
        for secret, word, told in ((SECRETS[0], "good", "good"), (SECRETS[1], "bad", "zz"))
    ]
    suite.write_text("agent: offline\ntest_cases:\n" + "".join(cases))
    request = RunRequest(paths=[str(suite)])
    await prepare(request).execute()
    loader = Loader(state, AtOnce(), taken, [suite])  # type: ignore[arg-type]
    loader.load()
    assert [item.last.outcome for item in state.rows if item.last is not None] == ["passed", "failed"]
    suite.write_text("agent: offline\ntest_cases:\n" + cases[1])
    loader.load()
    (left,) = state.rows
    assert left.case_id.endswith("::is •••") and left.last is None
    again = prepare(RunRequest(paths=[str(suite)], failed_only=True))
    assert [job.case.case_id for job in again.jobs] == [left.case_id], "it failed, whatever it was called"
    await again.execute()
    loader.load()
    assert [item.last.outcome for item in state.rows if item.last is not None] == ["failed"]
    suite.write_text("agent: offline\ntest_cases:\n" + cases[1].replace("input: bad", "input: other"))
    loader.load()
    assert [item.last.outcome for item in state.rows if item.last is not None] == ["failed"], "it was edited"


def test_the_file_that_is_being_read_is_known(taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    said, load = list[str](), reading.load

    def noted(*given: Any) -> Any:
        said.append(taken.state.reading)
        return load(*given)

    monkeypatch.setattr(reading, "load", noted)
    Loader(taken.state, AtOnce(), taken, [taken.state.root]).load()  # pyright: ignore[reportArgumentType]
    assert "promptfooconfig.yaml, 2 of 2 files" in said and len(said) == 2
    assert taken.state.reading == ""


def test_what_others_include_is_no_suite_and_takes_no_others_place(
    taken: Taken, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A portion that was shown before had as many suites as there are in the end, and was taken for them."""
    root, load = taken.state.root, reading.load
    for file in root.iterdir():
        file.unlink()
    (root / "a.hocon").write_text("interactions = [ { text = hi } ]\n")
    (root / "b.hocon").write_text('agent = x\ninclude "a.hocon"\n')
    (root / "c.hocon").write_text("agent = x, interactions = [ { text = hi } ]\n")

    def no_portion_after_the_second(path: Path, *given: Any) -> Any:
        if path.name == "b.hocon":
            monkeypatch.setattr(suites_loader, "PORTION", 3600.0)
        return load(path, *given)

    monkeypatch.setattr(suites_loader, "PORTION", -1.0)
    monkeypatch.setattr(reading, "load", no_portion_after_the_second)
    loader = Loader(taken.state, AtOnce(), taken, [root])  # pyright: ignore[reportArgumentType]
    loader.load()
    assert [suite.path for suite in taken.state.suites] == ["b.hocon", "c.hocon"]
    (root / "d.hocon").write_text("interactions = [ { text = ho } ]\n")
    loader.load()
    assert [suite.path for suite in taken.state.suites] == ["b.hocon", "c.hocon", "d.hocon"]
    (root / "b.hocon").write_text('agent = x\ninclude "d.hocon"\n')
    loader.reload(taken.state.suites[:1])
    assert sorted(suite.path for suite in taken.state.suites) == ["b.hocon", "c.hocon"]
