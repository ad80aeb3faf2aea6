"""Which files are watched, and what a save does: with editors that write in place and such that replace the
file, with files that cannot be read for a while, with agents of several modules."""

from __future__ import annotations

import os
import queue
import subprocess
import time
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.app_host import running_app, screen_text, until
from tui_eval.engine.agent_files import Imports
from tui_eval.engine.service.client import EngineClient, EngineError
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.watching import Watcher, stamps

SUITE = """\
agent: helper
test_cases:
  - name: greets
    input: hello
    expected: {should_contain: [nothing]}
"""
AGENT = "from words import said\n\n\ndef answer(message, session):\n    return said(message)\n"
WORDS = 'def said(message):\n    return f"you said {message}"\n'


def in_place(file: Path, text: str) -> None:
    """As vim does it with `backupcopy=yes`, nano, ed."""
    file.write_text(text)


def renamed_over(file: Path, text: str) -> None:
    """As vim does it by default, VS Code with atomic saves, `sed -i`."""
    new = file.with_name(".new")
    new.write_text(text)
    os.replace(new, file)


def by_ed(file: Path, text: str) -> None:
    """A real editor of another process."""
    commands = f"1,$d\na\n{text}.\nw\nq\n"
    subprocess.run(["ed", "-s", str(file)], input=commands, text=True, check=True)


def away_and_back(file: Path, text: str) -> None:
    """Moved away, then written anew: vim's `writebackup`."""
    os.replace(file, file.with_name("file~"))
    file.write_text(text)


@asynccontextmanager
async def app_on(root: Path):
    (root / "suite.yaml").write_text(SUITE)
    (root / "my_agent.py").write_text(AGENT)
    (root / "words.py").write_text(WORDS)
    (root / "tui_eval.yaml").write_text("agents: {helper: {type: python, function: 'my_agent.py:answer'}}\n")
    client = EngineClient(root)
    try:
        async with running_app(root, engine=client, trust=True) as (app, pilot):
            app.places.suites.go_to(CasePointer("suite.yaml::greets"))
            await pilot.press("r")
            await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
            yield app, pilot
    finally:
        with suppress(EngineError):
            await client.shutdown()
        await client.close()


async def watching(app: Any, pilot: Any, mode: str) -> None:
    while app.watching.mode != mode:
        await pilot.press("W")
    await until(lambda: app.watching.watcher is not None, pilot)


async def after(app: Any, pilot: Any, run_id: str) -> Any:
    """The attempt of the run that came after this one, once it has ended."""
    await until(lambda: app.state.run.info.id != run_id and not app.state.run.active, pilot)
    return next(iter(app.state.run.attempts.values()))


@pytest.mark.usually(1)
@pytest.mark.parametrize(
    "save", [in_place, renamed_over, pytest.param(by_ed, marks=pytest.mark.real), away_and_back]
)
async def test_every_way_to_save_is_seen_in_both_modes(tmp_path: Path, save) -> None:
    async with app_on(tmp_path) as (app, pilot):
        first = app.state.run.info.id
        await watching(app, pilot, "judge")
        save(tmp_path / "suite.yaml", SUITE.replace("nothing", "hello"))
        row = await after(app, pilot, first)
        assert (row.outcome, row.cost) == ("passed", None)
        assert "running, 1 attempt" not in screen_text(app)
        await watching(app, pilot, "rerun")
        second = app.state.run.info.id
        save(tmp_path / "my_agent.py", AGENT.replace("said(message)", '"else"'))
        assert (await after(app, pilot, second)).outcome == "failed"


@pytest.mark.real
async def test_a_module_of_the_agent_is_watched(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await watching(app, pilot, "rerun")
        first = app.state.run.info.id
        (tmp_path / "words.py").write_text(WORDS.replace("you said", "nothing but"))
        assert (await after(app, pilot, first)).outcome == "passed"


@pytest.mark.real
async def test_a_file_that_cannot_be_read_runs_nothing_and_mended_it_does(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        first = app.state.run.info.id
        await watching(app, pilot, "judge")
        (tmp_path / "suite.yaml").write_text(SUITE + "  - : [\n")
        await until(lambda: "suite.yaml::greets" in app.state.gone, pilot)
        await until(lambda: app.notices.lines[-1][1] == "error", pilot)
        assert app.notices.lines[-1][2].startswith("suite.yaml:6: not valid YAML")
        assert app.state.run.info.id == first
        (tmp_path / "suite.yaml").write_text(SUITE.replace("nothing", "hello"))
        assert (await after(app, pilot, first)).outcome == "passed"
        said = [words for _, level, words in app.notices.lines if level == "error"]
        assert len(said) == len(set(said)), "an error is told once"


@pytest.mark.real
async def test_a_renamed_case_is_watched_on(tmp_path: Path) -> None:
    async with app_on(tmp_path) as (app, pilot):
        await watching(app, pilot, "rerun")
        first = app.state.run.info.id
        (tmp_path / "suite.yaml").write_text(SUITE.replace("greets", "says hello"))
        await after(app, pilot, first)
        assert [row.case_id for row in app.state.run.cases.values()] == ["suite.yaml::says hello"]


def test_a_save_that_changes_no_bytes_is_none(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one", "two", "late")]
    for file in files[:2]:
        file.write_text("a")
    followed, told = list(map(str, files[:2])), queue.Queue[list[str]]()
    seen = stamps(followed)
    in_place(files[1], "b")  # after the key was pressed, before it is looked into
    watcher = Watcher(lambda: followed, told.put, 0.01, seen, by_content=True)
    watcher.start()
    try:
        assert told.get(timeout=20) == [str(files[1])]
        for save in (in_place, renamed_over, away_and_back):
            save(files[0], "a")
            assert told.get(timeout=20) == []
        in_place(files[0], "ab")
        assert told.get(timeout=20) == [str(files[0])]
        files[2].write_text("c")
        followed.append(str(files[2]))
        while watcher.count < 3:
            time.sleep(0.001)
        time.sleep(0.1)
        os.utime(files[2], ns=(1, 1))
        assert told.get(timeout=20) == []
    finally:
        watcher.stop()


@pytest.mark.real
async def test_an_agents_file_that_is_saved_as_it_was_runs_nothing(tmp_path: Path) -> None:
    async with folder_on(tmp_path) as (app, pilot):
        await watch_line(app, pilot, "shop/")
        runs = len(list((tmp_path / ".tui-eval" / "runs").iterdir()))
        await until(lambda: str(tmp_path / "words.py") in app.watching.followed(), pilot)
        in_place(tmp_path / "words.py", WORDS)
        await until(lambda: app.notices.lines[-1][2].endswith("is otherwise than it was"), pilot)
        assert len(list((tmp_path / ".tui-eval" / "runs").iterdir())) == runs


def test_imports_are_found_without_running_anything(tmp_path: Path) -> None:
    files = {
        "agent.py": "import helper, json, os.path\nfrom pack import one\nfrom pack.two import x\nimport gone\n",
        "helper.py": "from agent import answer\nimport below\n",
        "below.py": "raise SystemExit('never run')\n",
        "pack/__init__.py": "",
        "pack/one.py": "from . import three\nfrom .two import y\n",
        "pack/two.py": "import broken\n",
        "pack/three.py": "",
        "broken.py": "def broken(:\n",
        "unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    imports = Imports()

    def found() -> set[str]:
        return {str(path.relative_to(tmp_path)) for path in imports.of([tmp_path / "agent.py"], tmp_path)}

    assert found() == set(files) - {"agent.py", "unused.py"}
    (tmp_path / "below.py").write_text("import unused\n")
    assert "unused.py" in found()
    (tmp_path / "agent.py").write_text("import helper  # and nothing else\n")
    assert "pack/one.py" not in found()


FOLDER = """\
agent: helper
test_cases:
  - {name: says hello, input: hello, expected: {should_contain: [said hello]}}
  - {name: says bye, input: bye, expected: {should_contain: [nothing]}}
  - {name: says more, input: more, expected: {should_contain: [nothing]}}
"""


@asynccontextmanager
async def ran_once(root: Path, files: dict[str, str]):
    """An app on a project of these files, whose cases have run, with the list of suites in front."""
    for name, text in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    client = EngineClient(root)
    try:
        async with running_app(root, engine=client, trust=True) as (app, pilot):
            await until(lambda: app.state.rows and not app.state.loading, pilot)
            await pilot.press("a")
            await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
            await until(lambda: all(item.history for item in app.state.rows), pilot)
            await pilot.press("U")
            yield app, pilot
    finally:
        with suppress(EngineError):
            await client.shutdown()
        await client.close()


def folder_on(root: Path, more: str = ""):
    """Two suites in a folder and one beside it, all of which ran once; `more` of their agent's entry."""
    entry = f"{{type: python, function: 'my_agent.py:answer'{more}}}"
    suites = dict.fromkeys(("shop/one.yaml", "shop/two.yaml", "else.yaml"), FOLDER)
    config = f"agents: {{helper: {entry}}}\n"
    return ran_once(root, {**suites, "my_agent.py": AGENT, "words.py": WORDS, "tui_eval.yaml": config})


async def watch_line(app: Any, pilot: Any, key: str) -> None:
    place = app.places.suites
    await until(lambda: place.case_list.go_to(key), pilot)
    await pilot.press("W")
    await until(lambda: app.watching.watcher is not None, pilot)


def outcomes(app: Any) -> dict[str, list[str]]:
    """What became of each case, newest first."""
    return {item.case_id: [one.outcome for one in item.history] for item in app.state.rows}


@pytest.mark.real
async def test_below_a_folder_a_saved_suite_is_judged_again_as_one_run(tmp_path: Path) -> None:
    async with folder_on(tmp_path) as (app, pilot):
        await watch_line(app, pilot, "shop/")
        assert "watch: shop/" in screen_text(app)
        first = app.state.run.info.id
        (tmp_path / "else.yaml").write_text(FOLDER.replace("nothing", "said"))  # is not watched
        (tmp_path / "shop" / "one.yaml").write_text(FOLDER.replace("[nothing]", "[said]"))
        await until(lambda: outcomes(app)["shop/one.yaml::says more"][0] == "passed", pilot)
        await until(lambda: outcomes(app)["shop/one.yaml::says bye"][0] == "passed", pilot)
        run = next(one for one in app.state.group.runs if one.info.id != first)
        assert run.info.options["rescores"] == first and len(run.attempts) == 2
        assert [row.cost for row in run.attempts.values()] == [None, None]
        assert outcomes(app)["shop/two.yaml::says bye"] == outcomes(app)["else.yaml::says bye"] == ["failed"]
        await pilot.press("W")
        assert "watch:" not in screen_text(app) and app.watching.watcher is None


@pytest.mark.real
async def test_below_a_folder_a_saved_agent_runs_what_did_not_pass(tmp_path: Path) -> None:
    async with folder_on(tmp_path) as (app, pilot):
        await watch_line(app, pilot, "shop/")
        first = app.state.run.info.id
        (tmp_path / "words.py").write_text(WORDS.replace("you said", "nothing, you said"))
        await until(lambda: app.state.run.info.id != first and not app.state.run.active, pilot)
        ran = sorted(row.case_id for row in app.state.run.cases.values())
        assert ran == [
            f"shop/{name}.yaml::says {what}" for name in ("one", "two") for what in ("bye", "more")
        ]
        await until(lambda: outcomes(app)["shop/two.yaml::says more"] == ["passed", "failed"], pilot)
        # What has passed folds away with what passed before.
        await until(lambda: screen_text(app).count("✓ ▸ 3 passed") == 2, pilot)
        assert outcomes(app)["else.yaml::says bye"] == ["failed"]


@pytest.mark.real
@pytest.mark.parametrize("more", ["", ", model: m1"])
async def test_a_files_line_and_another_question(tmp_path: Path, more: str) -> None:
    """A case that is asked something else is asked, not judged by the answer to what was asked before. Also where only
    the agent's entry names the model: it was said that nothing has to be run."""
    async with folder_on(tmp_path, more) as (app, pilot):
        await watch_line(app, pilot, "shop/one.yaml")
        assert "watch: one.yaml" in screen_text(app)
        first = app.state.run.info.id
        (tmp_path / "shop" / "one.yaml").write_text(FOLDER.replace("input: bye", "input: nothing"))
        await until(lambda: app.state.run.info.id != first and not app.state.run.active, pilot)
        await until(lambda: outcomes(app)["shop/one.yaml::says bye"][0] == "passed", pilot)
        assert len(app.state.run.cases) == 1 and not app.state.run.info.options.get("rescores")


PROMPTS = """\
prompts: [file://terse.txt, file://long.txt]
providers: [echo]
tests:
  - {vars: {q: apples}, assert: [{type: python, value: "file://judge.py"}]}
  - {vars: {q: pears}, assert: [{type: contains, value: pears}]}
"""
JUDGE = "import wanted\n\n\ndef get_assert(output, context):\n    return wanted.of(output)\n"
WANTED = "def of(output):\n    return 'apples' in output\n"


@asynccontextmanager
async def prompts_on(root: Path):
    """A suite of two prompts and two tests, of which one is judged by a script, that ran once."""
    files = {
        "promptfooconfig.yaml": PROMPTS,
        "tui_eval.yaml": "{}",
        "terse.txt": "{{q}}?",
        "long.txt": "what of {{q}}?",
    }
    async with ran_once(root, files | {"judge.py": JUDGE, "wanted.py": WANTED}) as started:
        yield started


@pytest.mark.real
async def test_one_saved_prompt_is_asked_and_a_saved_script_judges_what_names_it(tmp_path: Path) -> None:
    """Rows that the save does not touch are neither judged nor run: there is no run for nothing."""
    async with prompts_on(tmp_path) as (app, pilot):
        await watch_line(app, pilot, "promptfooconfig.yaml")
        await until(lambda: str(tmp_path / "wanted.py") in app.watching.followed(), pilot)
        (tmp_path / "terse.txt").write_text("only {{q}}?")

        def results() -> list[int]:
            return [len(item.history) for item in app.state.rows]

        await until(lambda: results() == [2, 1, 2, 1], pilot)
        (tmp_path / "wanted.py").write_text(WANTED.replace("apples", "peaches"))
        await until(lambda: results() == [3, 2, 2, 1], pilot)
        assert [item.history[0].outcome for item in app.state.rows] == ["failed"] * 2 + ["passed"] * 2
        # Each row is of one run more: that of the prompt's, and of those two runs' judgements.
        assert len(list((tmp_path / ".tui-eval" / "runs").iterdir())) == 4


@pytest.mark.real
async def test_what_was_answered_to_another_prompt_is_asked_where_a_script_is_saved(tmp_path: Path) -> None:
    """The prompt was edited before anybody watched: its answer cannot be judged, and was an error until it ran."""
    async with prompts_on(tmp_path) as (app, pilot):
        first = app.state.rows[0].as_written.content_hash
        (tmp_path / "terse.txt").write_text("only {{q}}?")
        await until(lambda: app.state.rows[0].as_written.content_hash != first, pilot)
        await watch_line(app, pilot, "promptfooconfig.yaml")
        await until(lambda: str(tmp_path / "wanted.py") in app.watching.followed(), pilot)
        (tmp_path / "wanted.py").write_text(WANTED.replace("apples", "only"))
        await until(lambda: answers(app) == [[False, False], [True, False], [False], [False]], pilot)
        assert [item.history[0].outcome for item in app.state.rows[:2]] == ["passed", "failed"]


PROVIDERS = """\
prompts: ["say {{q}}"]
providers:
  - {id: "python:one.py", label: labelled, config: {temperature: 0}}
  - {id: "python:one.py", config: {temperature: 0}}
tests:
  - {vars: {q: apples}, assert: [{type: contains, value: apples}]}
"""
PROVIDER = (
    "def call_api(prompt, options, context):\n    return {'output': f\"{prompt} {options['config']}\"}\n"
)


@asynccontextmanager
async def providers_on(root: Path):
    """A suite of two columns, labelled and by its id, that ran once."""
    files = {"promptfooconfig.yaml": PROVIDERS, "tui_eval.yaml": "{}", "one.py": PROVIDER, "two.py": PROVIDER}
    async with ran_once(root, files) as started:
        yield started


def answers(app: Any) -> list[list[bool]]:
    """Of each row, newest first, whether its results are judgements of an answer that there was."""
    return [[bool(one.judges) for one in item.history] for item in app.state.rows]


@pytest.mark.real
async def test_a_test_whose_own_provider_is_called_otherwise_is_asked_in_its_new_column(
    tmp_path: Path,
) -> None:
    """Its answer was judged again under the name that is no more, and was an error."""
    text = PROVIDERS.replace(
        "vars: {q: apples}", 'provider: {id: "python:two.py", label: mine}, vars: {q: apples}'
    )
    files = {"promptfooconfig.yaml": text, "tui_eval.yaml": "{}", "one.py": PROVIDER, "two.py": PROVIDER}
    async with ran_once(tmp_path, files) as (app, pilot):
        assert [item.history[0].agent for item in app.state.rows] == ["mine", "mine"]
        await watch_line(app, pilot, "promptfooconfig.yaml")
        (tmp_path / "promptfooconfig.yaml").write_text(text.replace("label: mine", "label: yours"))
        await until(lambda: answers(app) == [[False, False], [False, False]], pilot)
        assert [(item.agent, item.history[0].agent, item.history[0].outcome) for item in app.state.rows] == [
            ("yours", "yours", "passed")
        ] * 2


@pytest.mark.real
async def test_an_edited_provider_is_asked_anew_and_another_assertion_judged(tmp_path: Path) -> None:
    """Also what passed: its answer is that of somebody else by now."""
    suite = tmp_path / "promptfooconfig.yaml"
    async with providers_on(tmp_path) as (app, pilot):
        await watch_line(app, pilot, "promptfooconfig.yaml")
        text = PROVIDERS.replace("temperature: 0", "temperature: 1", 1)
        suite.write_text(text)
        await until(lambda: answers(app) == [[False, False], [False]], pilot)
        suite.write_text(text := text.replace("value: apples", "value: pears"))
        await until(lambda: answers(app) == [[True, False, False], [True, False]], pilot)
        suite.write_text(text.replace("vars: {q: apples},", "vars: {q: apples}, options: {prefix: So},"))
        await until(lambda: answers(app) == [[False, True, False, False], [False, True, False]], pilot)


@pytest.mark.real
async def test_a_provider_of_another_model_is_asked_although_its_row_goes_by_another_name(
    tmp_path: Path,
) -> None:
    async with providers_on(tmp_path) as (app, pilot):
        await watch_line(app, pilot, "promptfooconfig.yaml")
        by_id = PROVIDERS.replace('"python:one.py", config', '"python:two.py", config')
        (tmp_path / "promptfooconfig.yaml").write_text(by_id)
        await until(lambda: "two.py" in app.state.rows[1].case_id and answers(app)[1] == [False], pilot)
        assert answers(app) == [[False], [False]]


@pytest.mark.real
async def test_an_edited_entry_of_an_agent_is_asked_anew_of_all_that_ask_it(tmp_path: Path) -> None:
    """What passed, too; of another agent, only what did not pass, as when any of tui_eval.yaml is saved."""
    entries = "agents:\n  helper: {type: echo, prefix: 'said '}\n  other: {type: echo}\n"
    (tmp_path / "tui_eval.yaml").write_text(entries)
    (tmp_path / "one.yaml").write_text(FOLDER)
    (tmp_path / "two.yaml").write_text(FOLDER.replace("helper", "other"))
    client = EngineClient(tmp_path)
    try:
        async with running_app(tmp_path, engine=client, trust=True) as (app, pilot):
            await until(lambda: len(app.state.rows) == 6 and not app.state.loading, pilot)
            await pilot.press("a")
            await until(lambda: app.state.run is not None and not app.state.run.active, pilot)
            await until(lambda: all(item.history for item in app.state.rows), pilot)
            await pilot.press("U")
            await watch_line(app, pilot, "one.yaml")
            (tmp_path / "tui_eval.yaml").write_text(entries.replace("'said '", "'he said '"))
            await until(lambda: [len(one) for one in outcomes(app).values()] == [2, 2, 2, 1, 1, 1], pilot)
            assert outcomes(app)["one.yaml::says hello"] == ["passed", "passed"]
            assert answers(app)[0] == [False, False]
    finally:
        with suppress(EngineError):
            await client.shutdown()
        await client.close()
