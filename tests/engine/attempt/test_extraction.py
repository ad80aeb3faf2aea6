"""An agent's answer as rows: what its reply to the extra turn means."""

from __future__ import annotations

from typing import Any

import pytest

from tui_eval.agents.base import Request
from tui_eval.assertions.judge_input import RowsAnswer
from tui_eval.engine.attempt.extraction import extract, read_answer
from tui_eval.model import Reply


async def answered(*texts: str, output: Any = None) -> tuple[RowsAnswer, list[str]]:
    """What these replies, one after the other, come to, and what was asked."""
    asked: list[str] = []

    async def ask(request: Request) -> Reply:
        asked.append(request.text or "")
        return Reply(request.turn, texts[len(asked) - 1], output=output)

    return await extract(ask, 2, ["n"]), asked


@pytest.mark.parametrize(
    "text",
    [
        '{"data": [{"n": 1}], "error": "query failed, guess"}',
        '```json\n{"data": [{"n": 1}], "error": {"message": "query failed, guess"}}\n```',
        '{"data": null, "error": "query failed, guess"}',
    ],
)
async def test_rows_beside_an_error_are_no_answer(text: str) -> None:
    answer, asked = await answered(text)
    assert answer.rows is None and "reported an error: " in (answer.error or "")
    assert "query failed, guess" in (answer.error or "")
    assert len(asked) == 1, "there is nothing to repair"


async def test_an_error_in_an_answer_that_came_as_an_object() -> None:
    answer, _ = await answered("", output={"data": [{"n": 1}], "error": "guessed"})
    assert answer.rows is None and answer.error == "the agent reported an error: guessed"


@pytest.mark.parametrize("text", ['{"data": [{"n": 1}], "error": null}', '[{"n": 1, "error": "x"}]'])
async def test_no_error_or_a_column_of_that_name(text: str) -> None:
    answer, _ = await answered(text)
    assert answer.error is None and answer.rows is not None and answer.rows[0]["n"] == 1


async def test_a_column_that_stands_twice_is_asked_for_again() -> None:
    doubled = '[{"n": 7, "n": 1}]'
    answer, asked = await answered(doubled, '[{"n": 7}]')
    assert answer.rows == [{"n": 7}] and len(asked) == 2
    assert "an object has the key 'n' twice" in asked[1]
    answer, asked = await answered(doubled, doubled)
    assert answer.rows is None and "an object has the key 'n' twice" in (answer.error or "")


LIST = '[{"n": 1}, {"n": 2}]'


@pytest.mark.parametrize(
    "text",
    [
        f"```sql\nSELECT n FROM t\n```\nIt gives:\n```json\n{LIST}\n```\n",
        f"```json\n{LIST}\n```\nfrom\n```sql\nSELECT n FROM t\n```",
        f"Here: ```JSON\r\n{LIST}\r\n```\r\n",
        f"```json\n{LIST}\n```\nRows:\n```text\n2\n```",
        f"```json\n{LIST}```",
        f"```json {LIST}```",
        f"````\n{LIST}\n````",
        f"~~~json\n{LIST}\n~~~",
        f"  ```json\n  {LIST}\n  ```",
        f"```json\n{LIST}",
        f"The answer is {LIST}.",
        f'[of 2 rows] {{"data": {LIST}}}',
        f"I ran ```SELECT {{x}}```:\n```json\n{LIST}\n```",
        f"I ran ```SELECT {{x}}``` to get\n```json title=rows\n{LIST}\n```",
        f"{{2}} rows: ```{LIST}```",
    ],
)
async def test_rows_among_words_and_blocks_are_not_asked_for_again(text: str) -> None:
    """Each question more is paid for, and an agent that repeats itself would have failed."""
    answer, asked = await answered(text, "no")
    assert answer.rows == [{"n": 1}, {"n": 2}] and len(asked) == 1


async def test_fences_within_a_text_and_fences_alone() -> None:
    answer, _ = await answered('```json\n{"data": [{"n": "a ``` b"}]}\n```')
    assert answer.rows == [{"n": "a ``` b"}]
    answer, asked = await answered("`" * 300_000, LIST)
    assert answer.rows == [{"n": 1}, {"n": 2}] and len(asked) == 2


@pytest.mark.parametrize(
    "text",
    [
        "~~~ " * 150_000,
        "```\nx" + "`" * 150_000 + "x",
        "```\nx" + "```~" * 150_000 + "x",
        "```" + " " * 150_000 + "x y",
    ],
    ids=["never a block", "one long fence within", "fences of both kinds", "blanks"],
)
async def test_an_answer_of_fences_takes_no_longer_than_another(text: str) -> None:
    """All attempts of a run wait meanwhile: it was minutes."""
    answer, asked = await answered(text, LIST)
    assert answer.rows == [{"n": 1}, {"n": 2}] and len(asked) == 2


@pytest.mark.parametrize(
    "text",
    [
        '{"error": "only a part", "data": [{"a": 1}],}',
        '{"data": [{"a": 1}] "complete": false}',
        '{"data": null} I cannot say, though [{"a": 1}] came first',
        "{'data': [{\"a\": 1}], 'error': 'guessed'}",
    ],
)
def test_a_list_in_an_object_that_cannot_be_read_or_after_one_is_no_answer(text: str) -> None:
    """What the object says beside its rows, an error of its own, say, would be lost; the agent is asked once more."""
    answer, problem = read_answer(Reply(1, text=text), ["a"])
    assert answer.rows is None and problem == "it is not JSON"


BLOCK = '```json\n[{"a": 1}]\n```\n'


@pytest.mark.parametrize(
    ("text", "rows", "error"),
    [
        (BLOCK + 'That was last year: {"data": [{"a": 2}]}', [{"a": 2}], None),
        (BLOCK + 'No: {"data": [{"a": 2}]}, by\n```sql\nSELECT 2 AS a\n```', [{"a": 2}], None),
        (BLOCK + 'Last year it was [{"a": 2}].', [{"a": 1}], None),
        (BLOCK + 'Of the service: {"error": null}', [{"a": 1}], None),
        (BLOCK + 'As a chart: {"mark": "bar", "data": {"values": [1]}}', [{"a": 1}], None),
        (BLOCK + '{"data": null}', None, "the agent could not answer (data is null)"),
        (BLOCK + '{"error": "I made that up"}', None, "the agent reported an error: I made that up"),
        ('{"data": [{"a": 2}]} was last year.\n' + BLOCK, [{"a": 1}], None),
        (BLOCK + 'No:\n{"data": [{"a": 2}]}\nor rather\n{"data": [{"a": 3}]}', [{"a": 3}], None),
        (BLOCK + 'I count {"data": [{"a": 1}]} as right.', [{"a": 1}], None),
        (BLOCK + 'As a chart:\n[{"x": 1}]\nThe calls:\n[{"tool": "sql", ...}]', [{"a": 1}], None),
        (BLOCK + 'Once more:\n[{"a": 1}]', [{"a": 1}], None),
        (BLOCK + 'Calls: [{"a": 1}, 2] and [] and [{"n": 1}', [{"a": 1}], None),
        (BLOCK + 'with {"rows": 1} in [a] for {region} [1], as {"data": [...]}', [{"a": 1}], None),
    ],
)
def test_what_an_agent_says_below_its_rows_counts(
    text: str, rows: list[dict[str, int]] | None, error: str | None
) -> None:
    answer, problem = read_answer(Reply(1, text=text), ["a"])
    assert (answer.rows, answer.error, problem) == (rows, error, "")


@pytest.mark.parametrize(
    "text",
    [
        BLOCK + 'Had I found none, I would have said {"data": null}.',
        BLOCK + 'Without a row, `{"data": []}` were the answer.',
        BLOCK + 'Without a row, ```{"data": []}``` were the answer.',
        BLOCK + 'No:\n```json\n{"data": [{"a": 2}, {"a":',
        BLOCK + "No:\n```json\n[{'a': 2}, ...]\n```",
        BLOCK + 'No:\n```\n{"data": [{"a": 2}, // and 20 more\n]}\n```',
        BLOCK + 'No:\n{"data": [{"a": 2}, ...]}',
        BLOCK + 'No:\n[{"a": 2}]',
        BLOCK + 'No: [{"a": 2}]',
        BLOCK + 'No:\n[{"a": 2}, {"a',
        'Perhaps [{"a": 1}]? No: {"data": null}',
        'Perhaps [{"a": 1}]? No:\n[{"a": 2}, {"a',
        'Perhaps [{"a": 1}]? No:\n```json\n[{"a": 2}, {"a',
        '{"data": [{"a": 1}]}\nNo:\n{"data": [',
        '<think>[{"a": 1}]</think>{"error": "I made that up"}',
    ],
)
def test_rows_below_which_others_may_be_meant_are_asked_for_again(text: str) -> None:
    """A draft would be judged: green where the answer is wrong, red where it is right."""
    answer, problem = read_answer(Reply(1, text=text), ["a"])
    assert answer.rows is None and problem


def test_objects_below_a_block_take_no_longer_than_other_words() -> None:
    for words in ('{"a" ' * 200_000, '{"data": [' * 100_000, '{"a": 1} ' * 50_000):
        answer, _ = read_answer(Reply(1, text=BLOCK + "so " + words), ["a"])
        assert answer.rows == [{"a": 1}]


def test_a_list_among_words_with_braces_is_an_answer() -> None:
    answer, problem = read_answer(Reply(1, text='For {region} the data are: [{"a": 1}].'), ["a"])
    assert answer.rows == [{"a": 1}] and not problem
