"""Every kind of slip in tui_eval.yaml and in a suite stands in the tree with its line, hides nothing else, and opens
in the editor there on enter."""

from __future__ import annotations

import pytest

from tests.support.app_host import running_app, screen_text, until
from tests.support.live_run import SUITE, project

GOOD = "agents:\n  offline: {type: echo}\n"
CONFIGURATIONS = {
    "unknown type": ("agents:\n  offline: {type: ekko}\n", 2, "ekko"),
    "unknown key": (f"{GOOD}suits:\n  - {{path: x}}\n", 3, "did you mean suites"),
    "a brace left open": ("agents:\n  offline: {type: echo\nrun: {}\n", 3, "tui_eval.yaml"),
    "a tab": ("agents:\n\toffline: {type: echo}\n", 2, "tab"),
    "a key twice": (f"{GOOD}  offline: {{type: echo}}\n", 3, "offline"),
    "a word for a number": (f"{GOOD}run: {{concurrency: many}}\n", 3, "concurrency"),
    "a database without its file": (f"{GOOD}databases:\n  d: {{type: duckdb}}\n", 4, "path"),
    "a judge that is not there": (f"{GOOD}judge: nobody\n", 3, "nobody"),
    "a key of a rule": (f'{GOOD}suites:\n  - {{path: "suites/**", agnt: offline}}\n', 4, "agent"),
    "a rule's agent that is not there": (
        f'{GOOD}suites:\n  - {{path: "suites/**", agent: gone}}\n',
        4,
        "gone",
    ),
    "a list": ("- a list\n", 1, "mapping"),
    "no text": (b"\xff\xfeagents", 1, "UTF-8"),
    "a key of a price": (f"{GOOD}prices: {{m: {{inptu: 2}}}}\n", 3, "did you mean input"),
}
SUITES = {
    "a brace left open": ("agent: offline\ntest_cases:\n  - {name: x, input: y\n", 3, ""),
    "no input": ("agent: offline\ntest_cases:\n  - {name: x, expected: {should_contain: [y]}}\n", 3, "input"),
    "a misspelt assertion": (
        "agent: offline\ntest_cases:\n  - name: x\n    input: y\n    expected:\n      should_contian: [y]\n", 6, "should_contain",
    ),
}  # fmt: skip


async def opened_from_the_tree(root, monkeypatch, file: str, line: int, words: str) -> None:
    seen: list[tuple[str, int]] = []
    monkeypatch.setattr(
        "tui_eval.tui.terminal.editor.edit",
        lambda app, path, line=0, more=(): seen.append((path.name, line)) or "",
    )
    async with running_app(root, (120, 40)) as (app, pilot):
        assert "refund is approved" in screen_text(app)
        lines = app.screen.case_list.cases.lines
        at = [
            index for index, one in enumerate(lines) if one.problem is not None and one.problem.path == file
        ]
        assert at, screen_text(app)
        problem = lines[at[0]].problem
        assert problem is not None and words in f"{problem}", f"{problem}"
        app.screen.case_list.move_to(at[0])
        await until(lambda: problem.message.split()[0] in screen_text(app), pilot)
        await pilot.press("enter")
        await until(lambda: seen, pilot)
        assert seen == [(file.rpartition("/")[2], line)]


@pytest.mark.real
@pytest.mark.parametrize(("text", "line", "words"), CONFIGURATIONS.values(), ids=CONFIGURATIONS.keys())
async def test_a_slip_in_the_configuration(tmp_path, monkeypatch, text, line, words):
    root = project(tmp_path)
    (root / "tui_eval.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    await opened_from_the_tree(root, monkeypatch, "tui_eval.yaml", line, words)


@pytest.mark.parametrize(("text", "line", "words"), SUITES.values(), ids=SUITES.keys())
async def test_a_slip_in_a_suite(tmp_path, monkeypatch, text, line, words):
    root = project(tmp_path, {"suites/support.yaml": SUITE, "suites/wrong.yaml": text})
    await opened_from_the_tree(root, monkeypatch, "suites/wrong.yaml", line, words)


async def test_lines_name_the_key_and_stand_in_the_order_of_the_file(tmp_path):
    text = f"{GOOD}  more: {{type: openai, modell: x}}\nruns: {{}}\n"
    root = project(tmp_path)
    (root / "tui_eval.yaml").write_text(text)
    async with running_app(root, (60, 16)) as (app, pilot):
        await until(lambda: "line 4: runs: not a key" in screen_text(app), pilot)
        shown = screen_text(app)
        assert shown.index("line 3: modell: not a key") < shown.index("line 4: runs: not a key")
        await pilot.press("g", "tab")
        await until(lambda: "did you mean model" in screen_text(app), pilot)
        assert "0 cases" not in screen_text(app)
