"""A promptfoo row on the Raw tab: template, vars and what was sent."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.support.attempts import case_for, text_failure
from tests.support.case_host import HostApp, loaded, screen_text, sees, until
from tests.tui.state.case.test_case_why import said, styled
from tui_eval.model import Attempt, Case, Entry, Turn
from tui_eval.store.run_folders import Store
from tui_eval.store.schema import RunInfo
from tui_eval.store.writer import PlannedCase, RunWriter
from tui_eval.tui.state.app_state import CasePointer
from tui_eval.tui.state.case import prompt_view, raw_view, transcript_view
from tui_eval.tui.state.case.attempt_preview import preview_lines
from tui_eval.tui.state.case.case_content import CaseContent
from tui_eval.tui.state.case.live_transcript import LiveTranscript
from tui_eval.tui.state.text.blocks import Block
from tui_eval.tui.state.text.stream_text import StreamText, pieces_of

TEMPLATE = "Write about {{product}}.\nLanguage: {{ language | upper }}, price {{price}}"
VARS = {"product": "Kettle 日本 1.7 l", "price": 39.9, "tags": ["steel", "fast"]}
SENT = "Write about Kettle 日本 1.7 l.\nLanguage: , price 39.9"


def row(**changes: object) -> tuple[Case, Attempt]:
    case = Case("p.yaml::k", "k", "p.yaml", "promptfoo", turns=[Turn(TEMPLATE)], vars=VARS, prompt="terse")
    return case, Attempt("p.yaml::k", 1, "passed", vars=VARS, prompt_sent=SENT)


def lines_of(blocks: list[Block]) -> list:
    return [line for block in blocks for line in block.lines()]


def test_stacked_where_there_is_little_room() -> None:
    blocks = prompt_view.build(*row(), 60)
    assert [block.label for block in blocks] == ["prompt", "template", "vars", "sent"]
    assert styled(blocks[1].lines(), "code") == ["{{product}}", "{{ language | upper }}", "{{price}}"]
    assert "language no such var" in said(blocks[2].lines())
    assert styled(blocks[3].lines(), "json-text") == ["Kettle 日本 1.7 l", "39.9"]


def test_beside_each_other_with_aligned_columns() -> None:
    from rich.cells import cell_len

    shown = said(prompt_view.build(*row(), 104)[1].lines())
    assert shown[0].split() == ["template", "│", "vars", "│", "sent"]
    assert {tuple(cell_len(line[:at]) for at, c in enumerate(line) if c == "│") for line in shown} == {
        tuple(cell_len(shown[0][:at]) for at, c in enumerate(shown[0]) if c == "│")
    }
    assert all(cell_len(line) <= 104 for line in shown)


def test_a_template_that_sets_names_of_its_own_misses_none() -> None:
    case, attempt = row()
    case.turns[0].text = "{% for x in tags %}{{x}}{% endfor %}{{y}}"
    assert "no such var" not in " ".join(said(lines_of(prompt_view.build(case, attempt, 60))))


def test_before_it_runs_template_and_vars_stand_there() -> None:
    case, _ = row()
    assert prompt_view.has_prompt(case, None)
    assert "rendered when it is sent" in said(lines_of(prompt_view.build(case, None, 60)))
    assert not prompt_view.has_prompt(case_for(text_failure()), text_failure())


def test_raw_shows_them_once() -> None:
    case, attempt = row()
    blocks = raw_view.build(attempt, prompt=prompt_view.build(case, attempt, 60))
    assert [block.label for block in blocks].count("vars") == 1
    assert {"prompt", "vars"} <= {block.label for block in raw_view.build(attempt)}


async def test_at_both_sizes_on_the_screen(tmp_path: Path) -> None:
    case, attempt = row()
    folder = Store(tmp_path).create_folder("20260601-120000-abcd")
    writer = RunWriter(folder, RunInfo(folder.name))
    ((ref,),) = writer.plan([PlannedCase(case, "echo", None, 1, 1)])
    writer.started(ref, 1.0)
    writer.done(ref, msgspec.structs.replace(attempt, agent="echo"))
    writer.state("finished", 2.0)
    writer.close()
    app = HostApp(tmp_path, [CasePointer(case.case_id, run_id=folder.name)])
    async with app.run_test(size=(120, 40)) as pilot:
        await loaded(pilot)
        await pilot.press("5")
        await sees(pilot, "template", "│ vars", "│ sent", "no such var")
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "▎ template" in screen_text(app) and "│ sent" not in screen_text(app))
        await sees(pilot, "▎ vars", "▎ sent")


CHAT = """[
  {"role": "system", "content": "You are the desk.\\nStay polite."},
  {"role": "user", "content": "Hello"},
  {"role": "assistant", "content": "Good day."},
  {"role": "user", "content": [{"type": "text", "text": "How long is the warranty?"}]}
]"""


def chat_attempt(text: str = CHAT) -> Attempt:
    return Attempt(
        "p.yaml::k",
        1,
        "passed",
        transcript=[Entry(1, "user", text=text), Entry(1, "assistant", text="Two years.")],
    )


def test_a_chat_prompt_is_shown_as_its_messages() -> None:
    view = transcript_view.build(chat_attempt())
    shown = [(block.label, " ".join(said(block.lines()))) for block in view.blocks if block.kind != "turn"]
    assert shown == [
        ("system", "You are the desk. Stay polite."),
        ("user", "Hello"),
        ("assistant", "Good day."),
        ("user", "How long is the warranty?"),
        ("assistant", "Two years."),
    ]
    assert view.outline[0].text == "1 How long is the warranty?"
    assert len({block.key for block in view.blocks}) == len(view.blocks)


def test_a_chat_prompt_in_yaml_is_shown_so_too_and_raw_as_it_was_sent() -> None:
    text = "- role: system\n  content: Be brief.\n- role: user\n  content: Why?"
    labels = [block.label for block in transcript_view.build(chat_attempt(text)).blocks]
    assert labels == ["turn 1", "system", "user", "assistant"]
    raw = transcript_view.build(chat_attempt(text), rendered=False).blocks
    assert [block.label for block in raw] == ["turn 1", "user", "assistant"]
    assert said(raw[1].lines()) == text.split("\n")


def test_what_is_no_list_of_messages_stays_a_text() -> None:
    for text in (
        "[1, 2, 3]",
        "- role: broken: [",
        '[{"role": 1, "content": "x"}]',
        "[",
        "- rolling",
        "[" * 5000,
    ):
        labels = [block.label for block in transcript_view.build(chat_attempt(text)).blocks]
        assert labels == ["turn 1", "user", "assistant"], text


def test_lists_panes_and_a_running_attempt_say_what_is_asked() -> None:
    attempt = chat_attempt()
    content = CaseContent(CasePointer("p.yaml::k"), attempt=attempt)
    assert "> How long is the warranty?" in said(preview_lines(content))
    pane = StreamText(80)
    pane.feed(pieces_of(attempt.transcript))
    assert pane.lines[0] == ("user", "> How long is the warranty?")
    live = LiveTranscript().update(pieces_of(attempt.transcript))
    assert [block.label for block in live.blocks] == [
        "turn 1",
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
