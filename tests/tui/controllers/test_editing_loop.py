"""What becomes of list and case when a file is edited: made unreadable and mended, a case renamed or taken
out, saved by another program. Each in the formats where a case can stand in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support import mostly_real
from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import LiveRun, project
from tui_eval.model import Case, Problem, Suite
from tui_eval.tui.screens.case_screen import CaseScreen
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.lists.suite_changes import edited

GUIDE = """\
agent: offline
test_cases:
  - name: first
    input: hello
    expected: {should_contain: [hello]}
  - name: second
    input: bye
    expected: {should_contain: [bye]}
"""
NAO = "name: total\nprompt: what is the total?\n"
HOCON = '{\n  "agent": "net",\n  include "parts.inc",\n  "interactions": [ ${one} ]\n}\n'
PARTS = '"one": { "text": "hi", "response": { "text": { "keywords": "hi" } } }\n'
PROMPTFOO = """\
prompts: ["Say {{word}}"]
providers: [echo]
tests: [file://rows.csv, file://more/lines.jsonl, file://gen.py:make]
"""
ROWS = 'word,__expected,__description\nfig,contains:fig,row one\n"a\nb",contains:a,row two\n'
LINES = '{"description": "line one", "vars": {"word": "kiwi"}}\n\n{"description": "line three", "vars": {"word": "lime"}}\n'
GENERATOR = (
    'import os\n\n\ndef make(config=None):\n    return [{"description": "made", "vars": {"word": "x"}}]\n'
)
FILES = {
    "suites/guide.yaml": GUIDE,
    "tests/total.yml": NAO,
    "ns/net.hocon": HOCON,
    "ns/parts.inc": PARTS,
    "pf/promptfooconfig.yaml": PROMPTFOO,
    "pf/rows.csv": ROWS,
    "pf/more/lines.jsonl": LINES,
    "pf/gen.py": GENERATOR,
}
PF = "pf/promptfooconfig.yaml::{}::echo::prompt1"
PLACES = {
    "guide": ("suites/guide.yaml::second", "suites/guide.yaml", 6),
    "nao": ("tests/total.yml::total", "tests/total.yml", 1),
    "hocon": ("ns/net.hocon::net", "ns/net.hocon", 4),
    "csv": (PF.format("row two"), "pf/rows.csv", 3),
    "jsonl": (PF.format("line three"), "pf/more/lines.jsonl", 3),
    "generator": (PF.format("made"), "pf/gen.py", 4),
}
BROKEN = {
    "guide": (GUIDE + "  - : [broken\n", "suites/guide.yaml", 9),
    "nao": (NAO + "sql: [\n", "tests/total.yml", 4),
    "hocon": (HOCON + "{ [\n", "ns/net.hocon", 6),
    "csv": (ROWS + 'x,"y\n', "pf/rows.csv", 6),  # the quote is missed at the end
    "jsonl": (LINES + '{"vars": \n', "pf/more/lines.jsonl", 4),
    "generator": (GENERATOR + "def broken(:\n", "pf/gen.py", 6),
}


class Editor:
    """Stands in for the person's editor: remembers what it was opened at and writes what it is to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root = root
        self.opened: list[tuple[str, int]] = []
        self.writes: dict[str, str] = {}
        monkeypatch.setattr("tui_eval.tui.terminal.editor.edit", self.edit)

    def edit(self, _app: Any, path: Path | str, line: int = 0, others: Any = ()) -> str:
        self.opened.append((str(Path(self.root, path).relative_to(self.root)), line))
        for name, text in self.writes.items():
            (self.root / name).write_text(text)
        self.writes = {}
        return ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path, FILES)


def there(app: Any, case_id: str) -> bool:
    line = app.places.suites.case_list.current_line
    return line is not None and line.key == case_id


async def on_case(app: Any, pilot: Any, case_id: str) -> None:
    app.places.suites.go_to(CasePointer(case_id))
    await until(lambda: there(app, case_id), pilot)


@pytest.mark.usually(2)
@pytest.mark.parametrize("kind", PLACES)
async def test_e_opens_the_file_and_line_that_the_case_stands_in(root, monkeypatch, kind: str) -> None:
    editor = Editor(monkeypatch, root)
    case_id, file, line = PLACES[kind]
    async with running_app(root, trust=True) as (app, pilot):
        await on_case(app, pilot, case_id)
        await pilot.press("e")
        assert editor.opened == [(file, line)]
        app.places.open_case(CasePointer(case_id))
        await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        await pilot.press("e")
        assert editor.opened == [(file, line)] * 2


@pytest.mark.parametrize("kind", mostly_real(PLACES, *list(PLACES)[:2]))
@pytest.mark.parametrize("inside", [False, True], ids=["list", "case"])
async def test_an_unreadable_file_is_shown_where_it_is_and_mended(
    root, monkeypatch, kind: str, inside: bool
) -> None:
    editor = Editor(monkeypatch, root)
    case_id, file, line = PLACES[kind]
    suite = case_id.partition("::")[0]
    LiveRun(root, [case_id.partition("::")[2]], suite=suite).all_done(["failed"])

    def errors(app: Any) -> list[Problem]:
        found = [problem for one in app.state.suites if one.path == suite for problem in one.problems]
        return [problem for problem in found if problem.level == "error"]

    async with running_app(root, trust=True) as (app, pilot):
        await on_case(app, pilot, case_id)
        assert app.state.by_id[case_id].last.outcome == "failed"
        if inside:
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, CaseScreen) and app.screen.content.attempt, pilot)
        broken, file, wrong = BROKEN[kind]
        editor.writes = {file: broken}
        await pilot.press("e")
        await until(lambda: errors(app), pilot)
        await until(lambda: app.notices.lines and app.notices.lines[-1][1] == "error", pilot)
        assert app.notices.lines[-1][2].startswith((f"{suite}:", f"{file}:"))
        stays = case_id in app.state.by_id
        assert stays == (kind == "jsonl")  # its rows before the bad one are read
        if not inside and not stays:
            await until(lambda: app.places.suites.case_list.current_line.problem is not None, pilot)
        editor.opened.clear()
        editor.writes = {file: FILES[file]}
        await pilot.press("e")
        assert editor.opened == [(file, line if stays else wrong)]
        await until(lambda: case_id in app.state.by_id and not errors(app), pilot)
        assert app.state.by_id[case_id].last.outcome == "failed", "its past has come back with it"
        if not inside:
            await until(lambda: there(app, case_id), pilot)


@pytest.mark.real
async def test_a_problem_of_a_file_that_the_suite_names_names_it(root) -> None:
    (root / "pf" / "rows.csv").write_text(BROKEN["csv"][0])
    async with running_app(root, trust=True) as (app, pilot):
        await until(lambda: "rows.csv:6: " in screen_text(app), pilot)
        (root / "suites" / "guide.yaml").write_text(BROKEN["guide"][0])
        await until(lambda: "! line 9: not valid YAML" in screen_text(app), pilot)


async def test_capital_e_on_a_suite_opens_the_agent_of_its_cases(root, monkeypatch) -> None:
    editor = Editor(monkeypatch, root)
    (root / "my_agent.py").write_text("def answer(message):\n    return message\n")
    (root / "tui_eval.yaml").write_text(
        "agents:\n  offline: {type: python, function: 'my_agent.py:answer'}\n"
    )
    async with running_app(root, trust=True) as (app, pilot):
        await until(lambda: app.places.suites.case_list.go_to("suites/guide.yaml"), pilot)
        await pilot.press("E")
        assert editor.opened == [("my_agent.py", 1)]


@pytest.mark.usually(1)
@pytest.mark.parametrize("inside", [False, True], ids=["list", "case"])
async def test_a_renamed_case_is_followed(root, monkeypatch, inside: bool) -> None:
    editor = Editor(monkeypatch, root)
    old, new = "suites/guide.yaml::second", "suites/guide.yaml::farewell"
    async with running_app(root, trust=True) as (app, pilot):
        await on_case(app, pilot, old)
        if inside:
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        editor.writes = {"suites/guide.yaml": GUIDE.replace("second", "farewell")}
        await pilot.press("e")
        if inside:
            await until(lambda: app.places.pointer() == CasePointer(new), pilot)
            await until(lambda: app.screen.content.name == "farewell", pilot)
            assert "it is farewell now" in app.notices.lines[-1][2]
            await pilot.press("escape")
        await until(lambda: there(app, new), pilot)
        await pilot.press("r")
        await until(lambda: app.services.engines.own.requests, pilot)
        assert app.services.engines.own.requests[-1].case_ids == [new]


async def test_a_case_taken_out_while_it_is_looked_at_says_so(root, monkeypatch) -> None:
    editor = Editor(monkeypatch, root)
    async with running_app(root, trust=True) as (app, pilot):
        await on_case(app, pilot, "suites/guide.yaml::second")
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        editor.writes = {"suites/guide.yaml": GUIDE[: GUIDE.index("  - name: second")]}
        await pilot.press("e")
        await until(lambda: "second is no longer in its file" in screen_text(app), pilot)
        await pilot.press("r")
        await until(lambda: "no longer in the suites" in screen_text(app), pilot)
        assert not app.services.engines.own.requests
        await pilot.press("e")
        assert editor.opened[-1] == ("suites/guide.yaml", 0)


@pytest.mark.real
async def test_a_save_by_another_program_is_read_again(root) -> None:
    async with running_app(root, trust=True) as (app, pilot):
        await on_case(app, pilot, "suites/guide.yaml::second")
        (root / "suites" / "guide.yaml").write_text(GUIDE.replace("second", "farewell"))
        await until(lambda: "suites/guide.yaml::farewell" in app.state.by_id, pilot)
        await until(lambda: there(app, "suites/guide.yaml::farewell"), pilot)
        assert "guide.yaml was saved: read again" in [words for _, _, words in app.notices.lines]
        text = (root / "tui_eval.yaml").read_text()
        (root / "tui_eval.yaml").write_text(text + "  another: {type: echo}\n")
        await until(lambda: "another" in app.state.config.agents, pilot)
        assert there(app, "suites/guide.yaml::farewell")


@pytest.mark.real
async def test_a_new_suite_is_found_while_the_app_is_open(root) -> None:
    async with running_app(root, trust=True) as (app, pilot):
        await until(lambda: app.saved.follows, pilot)
        (root / "suites" / "later.yaml").write_text("")  # as an editor that is only just opened leaves it
        (root / "fresh" / "deep").mkdir(parents=True)
        (root / "fresh" / "deep" / "guide.yaml").write_text(GUIDE)
        (root / "suites" / "notes.yaml").write_text("nothing: of ours\n")
        await until(lambda: "fresh/deep/guide.yaml::first" in app.state.by_id, pilot)
        assert "guide.yaml is new: read" in [words for _, _, words in app.notices.lines]
        (root / "suites" / "later.yaml").write_text(GUIDE)
        await until(lambda: "suites/later.yaml::second" in app.state.by_id, pilot)
        await until(lambda: not app.state.loading, pilot)
        assert not any("notes.yaml" in words for _, _, words in app.notices.lines)


@pytest.mark.real
@pytest.mark.usually(1)
@pytest.mark.parametrize("inside", [False, True], ids=["list", "case"])
async def test_a_suite_that_is_removed_leaves_the_list_with_its_marks(root, inside: bool) -> None:
    (root / "suites" / "other.yaml").write_text(GUIDE)
    (root / "old").mkdir()
    (root / "old" / "guide.yaml").write_text(GUIDE)
    gone, stays = "old/guide.yaml::second", "suites/other.yaml::first"
    LiveRun(root, ["second"], suite="old/guide.yaml").all_done(["failed"])
    async with running_app(root, trust=True) as (app, pilot):
        await until(lambda: app.saved.follows, pilot)
        await on_case(app, pilot, gone)
        app.places.suites.mark({gone, stays})
        if inside:
            await pilot.press("enter")
            await until(lambda: isinstance(app.screen, CaseScreen), pilot)
        (root / "old" / "guide.yaml").unlink()
        (root / "old").rmdir()
        await until(lambda: gone not in app.state.by_id, pilot)
        said = app.notices.lines[-1][2]
        assert said.startswith("guide.yaml is gone, with 2 cases (1 marked")
        assert ("the one shown here" in said) == inside and said.endswith("; results stay in Runs")
        assert app.places.suites.marked() == {stays}
        assert [suite.path for suite in app.state.suites if suite.path.startswith("old")] == []
        if not inside:
            await until(lambda: said in screen_text(app), pilot)
            await until(lambda: "1 marked" in screen_text(app).split("\n")[0], pilot)
        (root / "old").mkdir()
        (root / "old" / "guide.yaml").write_text(GUIDE)  # as another branch is taken, and left again
        await until(lambda: gone in app.state.by_id, pilot)
        assert app.state.by_id[gone].last.outcome == "failed"


@pytest.mark.real
async def test_a_file_that_a_suite_names_and_that_is_removed_is_a_problem_until_it_is_back(root) -> None:
    def wrong(app: Any) -> list[Problem]:
        return [one for suite in app.state.suites if suite.path.startswith("pf") for one in suite.problems]

    async with running_app(root, trust=True) as (app, pilot):
        await until(lambda: app.saved.follows, pilot)
        (root / "pf" / "rows.csv").unlink()
        await until(lambda: wrong(app), pilot)
        assert PF.format("row one") not in app.state.by_id
        (root / "pf" / "rows.csv").write_text(ROWS)
        await until(lambda: PF.format("row one") in app.state.by_id, pilot)
        assert not wrong(app)


@pytest.mark.real
async def test_a_configuration_that_is_removed_is_read_when_it_is_there_again(root) -> None:
    async with running_app(root, trust=True) as (app, pilot):
        await until(lambda: app.saved.follows, pilot)
        text = (root / "tui_eval.yaml").read_text()
        (root / "tui_eval.yaml").unlink()
        (root / "suites" / "later.yaml").write_text(GUIDE)
        await until(lambda: "suites/later.yaml::first" in app.state.by_id, pilot)
        (root / "tui_eval.yaml").write_text(text + "  another: {type: echo}\n")
        await until(lambda: "another" in app.state.config.agents, pilot)


async def test_a_save_from_here_is_not_told_a_second_time(root, monkeypatch) -> None:
    editor = Editor(monkeypatch, root)
    async with running_app(root, trust=True) as (app, pilot):
        await on_case(app, pilot, "suites/guide.yaml::second")
        editor.writes = {"suites/guide.yaml": GUIDE.replace("bye", "goodbye")}
        await pilot.press("e")
        file = str(root / "suites/guide.yaml")
        app.saved.read([file])  # as the thread that follows the files, which saw it while the editor was open
        (root / "pf" / "rows.csv").write_text(ROWS + "pear,contains:pear,row four\n")
        app.saved.read([file, str(root / "pf" / "rows.csv")])
        await until(lambda: PF.format("row four") in app.state.by_id, pilot)
        said = [words for _, _, words in app.notices.lines]
        assert "rows.csv was saved: read again" in said and not any("guide.yaml" in words for words in said)


def suite_of(*names: str) -> Suite:
    cases = [Case(f"s.yaml::{name}", name, "s.yaml", "nao") for name in names]
    return Suite("s.yaml", "nao", cases=cases, files=["/p/s.yaml", "/p/gen.py"])


@pytest.mark.parametrize(
    ("before", "after", "renamed", "gone"),
    [
        ("a b c", "a x c", {"b": "x"}, ""),
        ("a b c", "x a c", {"b": "x"}, ""),  # moved and renamed: the only one missing, the only new one
        ("a b c", "x y c", {"a": "x", "b": "y"}, ""),
        ("a b c", "a c", {}, "b"),
        ("a b", "a b c", {}, ""),
        ("a b", "b a", {}, ""),
        ("a b", "", {}, "a b"),
    ],
)
def test_what_was_renamed_and_what_is_gone(before: str, after: str, renamed: dict, gone: str) -> None:
    change = edited([suite_of(*before.split())], [suite_of(*after.split())])
    assert {old[8:]: new[8:] for old, new in change.renamed.items()} == renamed
    assert {name[8:] for name in change.gone} == set(gone.split())


def test_where_a_problem_is_mended() -> None:
    assert Problem("s.yaml", 3, "", "failed", raised_at=("/p/gen.py", 12)).to_mend == ("/p/gen.py", 12)
    assert Problem("s.yaml", 3, "", "not valid YAML (os.py:12)").to_mend == ("s.yaml", 3)
