"""Going on from a recorded attempt: some turns, or all of them, are taken from it instead of sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tui_eval.agents.base import Request
from tui_eval.assertions.judge_input import CannotJudge, RowsAnswer
from tui_eval.engine.attempt.extraction import asked_columns, listed, read_answer
from tui_eval.engine.attempt.turn_requests import Conversation
from tui_eval.engine.kept_cases import KeptCases
from tui_eval.engine.plan import Job
from tui_eval.engine.request import Recorded
from tui_eval.engine.selection import SelectionError
from tui_eval.formats import format_of
from tui_eval.guard.masker import Masker
from tui_eval.model import Attempt, Case, Entry, Reply
from tui_eval.store.reader import RunReader
from tui_eval.store.run_folders import Store, StoreError
from tui_eval.store.schema import FROM_FILE

BY_HAND = "by hand, no result: "
"""How the message of an attempt begins that a person changed on its way."""
JUDGED_AGAIN = "the recorded answer, judged again: nothing was sent"
"""The note that stands in the transcript of such an attempt."""


_FORGETFUL = ("scripted", "echo", "replay", "http", "python", "command", "nao")
"""Types of agents whose protocol has no way to be given an earlier conversation."""


class CannotContinue(Exception):
    """Why not; one clear line."""


def place(jobs: list[Job], recorded: Recorded, store: Store) -> None:
    """Give the jobs of its case the recorded attempt; each of them then runs once. What is known to be in
    vain is refused here, before there is a run that would stand in the case's history.

    Raises:
        SelectionError: the attempt is of none of these cases, has not ended, or cannot be gone on from.
        StoreError: there is no such run.
    """
    folder = Path(recorded.run) if "/" in recorded.run else store.folder_of(recorded.run)
    reader = RunReader(folder)
    try:
        attempt = reader.attempt(recorded.attempt)
        rows = reader.attempts_with([recorded.attempt])
        asked = reader.case(rows[0].case_ref) if rows else None
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreError(f"run {folder.name}: attempt {recorded.attempt} cannot be read: {error}") from None
    finally:
        reader.close()
    if attempt is None:
        raise SelectionError(f"run {folder.name}: attempt {recorded.attempt} has not ended")
    found = [job for job in jobs if job.case.case_id == attempt.case_id]
    if not found:
        raise SelectionError(f"the recorded attempt is of {attempt.case_id}, which is not among the cases")
    jobs[:] = found
    if recorded.turn is not None and recorded.turn > 1:
        for job in found:
            _check(job, attempt, recorded.turn)
    for job in found:
        job.recorded, job.asked_case, job.from_turn = attempt, asked, recorded.turn
        job.attempts = job.required = 1


def _check(job: Job, attempt: Attempt, turn: int) -> None:
    kind = job.spec.type if job.spec is not None else ""
    if kind in _FORGETFUL:
        raise SelectionError(f"cannot go on from turn {turn}: {no_way(kind)}")
    if not format_of(job.format).asks_as_written:
        return
    for number, asked in enumerate(job.case.turns[: turn - 1], 1):
        said = next((e.text for e in attempt.transcript if e.kind == "user" and e.turn == number), None)
        if said is not None and asked.text is not None and said != asked.text:
            raise SelectionError(f"cannot go on from turn {turn}: {otherwise(number)}")


def no_way(kind: str) -> str:
    """Why an agent of this type cannot go on."""
    return f"an agent of type {kind} cannot be given an earlier conversation; run the whole case"


def otherwise(turn: int) -> str:
    """Why a case that asks something else by now cannot."""
    return f"turn {turn} reads otherwise than when it was recorded: run from there, or the whole case"


def earlier(
    attempt: Attempt, requests: Sequence[Request], turn: int
) -> tuple[list[Entry], list[Reply], list[Entry], list[Reply]]:
    """What was said and answered before `turn`, and the part of it that the agent is to remember.

    Raises:
        CannotContinue: the record does not reach that far, or the case asks something else by now.
    """
    if not 1 <= turn <= requests[-1].turn:
        raise CannotContinue(f"the case has no turn {turn}")
    entries = [entry for entry in attempt.transcript if entry.turn < turn]
    replies = [msgspec.structs.replace(reply, cost=None) for reply in attempt.replies if reply.turn < turn]
    remembered = 1
    for request in requests:
        if request.turn >= turn:
            break
        said = next((e.text for e in entries if e.kind == "user" and e.turn == request.turn), None)
        if said is None or all(reply.turn != request.turn for reply in replies):
            raise CannotContinue(
                f"the recorded attempt has no answer to turn {request.turn}: run from there, or the whole case"
            )
        if said != (request.text or ""):
            raise CannotContinue(otherwise(request.turn))
        if not request.continue_conversation:
            remembered = request.turn + 1
    return (
        entries,
        replies,
        [entry for entry in entries if entry.turn >= remembered],
        [reply for reply in replies if reply.turn >= remembered],
    )


class AnsweredTurns(NamedTuple):
    """A recorded conversation: what is judged of it, and the turns that asked for its rows afterwards."""

    entries: list[Entry]
    replies: list[Reply]
    extra_entries: list[Entry]
    extra_replies: list[Reply]


def check_question(job: Job, conversation: Conversation, masker: Masker, *, hooks_ran: bool) -> None:
    """An answer to another question proves nothing: what is asked now has to be what was asked then. Nor does a verdict
    without what its suite's hooks make of a case, its assertions among that: where they did not run, it is to be
    the one that they had left.

    Raises:
        CannotContinue: it is not.
    """
    if job.asked_case is None or job.recorded is None:
        return
    last = job.from_turn - 1 if job.from_turn is not None else None
    now = KeptCases(masker).kept(job.case)
    hooked = format_of(job.format).hooks_make_cases(job.settings)
    file_only = job.asked_case.content_hash.startswith(FROM_FILE)  # it knows what was said, and nothing else
    for number, (then, today) in enumerate(zip(job.asked_case.turns[:last], now.turns, strict=False), 1):
        if not file_only and (then.sly_data, then.chat_filter) != (today.sly_data, today.chat_filter):
            raise CannotContinue(
                f"turn {number} sends other data beside it than when it was answered: run the case"
            )
        if format_of(job.format).asks_as_written and then.text != today.text:
            raise CannotContinue(f"turn {number} reads otherwise than when it was answered: run the case")
    said = [entry.text for entry in job.recorded.transcript if entry.kind == "user"]
    prompt = conversation.prompt
    if conversation.stored or format_of(job.format).hears_conversation(job.case):
        prompt = None  # it holds what other rows answered
    if len(said) == 1 and prompt is not None and not _same_prompt(said[0], masker.text(prompt), file_only):
        why = " (its suite's hooks, which change what is asked, run with cases alone)" if hooked else ""
        raise CannotContinue(f"its prompt reads otherwise than when it was answered: run the case{why}")
    if hooked and job.judges_only and not hooks_ran and _is_another(job.asked_case, job.case, job.recorded):
        raise CannotContinue(
            "it was edited since it was answered, or its suite's hooks, which run with cases alone, had made another case "
            "of it: run the case"
        )


def _is_another(then: Case, today: Case, recorded: Attempt) -> bool:
    """Whether a case was another one when it was answered. A results file of promptfoo's knows no more of it
    than how it was judged."""
    from tui_eval.store.imported.results_entries import (  # imported late: most runs go on from nothing
        case_edited,
        own_content,
    )

    if own_content(then.content_hash):
        return case_edited(then.content_hash, today.content_hash)
    judged = [one.type for one in then.asserted] or [one.type for one in recorded.verdicts]
    return sorted(judged) != sorted(one.type for one in today.asserted)


def _same_prompt(said: str, now: str, from_file: bool) -> bool:
    """Whether a prompt is what was sent. promptfoo's file has one that is JSON without the spaces that it was
    sent with."""
    return said == now or (from_file and (data := _compact(said)) is not None and data == _compact(now))


def _compact(text: str) -> str | None:
    """A JSON object or list as JavaScript writes it; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    from tui_eval.javascript import values as js  # read when there is one

    try:
        return js.json_text(js.parse_json(text))
    except (ValueError, RecursionError):
        return None


def answered(attempt: Attempt, conversation: Conversation, case: Case) -> AnsweredTurns:
    """All of a recorded conversation. A case that is known from a results file alone has no transforms: it is judged on
    what they left then.

    Raises:
        CannotContinue: there is no answer to judge, or none to the last turn of the case as it is now.
    """
    last = conversation.last_turn
    extra = _extra_turns(attempt)
    replies = [reply for reply in attempt.replies if reply.turn <= last and reply.turn not in extra]
    if attempt.error is not None or not replies:
        raise CannotContinue(
            f"there is no recorded answer to judge ({attempt.error or attempt.message or 'none came'}): run the "
            "case"
        )
    by_hand = attempt.message.startswith(BY_HAND)
    if case.content_hash.startswith(FROM_FILE) and attempt.before_transforms is replies[-1]:
        replies[-1] = msgspec.structs.replace(
            replies[-1], text=attempt.response_text, output=attempt.output, transformed=True
        )
    if format_of(case.format).asks_as_written and max(reply.turn for reply in replies) < last and not by_hand:
        raise CannotContinue(f"the recorded attempt has no answer to turn {last}: run the case")
    entries = [
        entry
        for entry in attempt.transcript
        if entry.turn <= last
        and entry.turn not in extra
        and not (entry.kind == "note" and entry.text == JUDGED_AGAIN)
    ]
    return AnsweredTurns(
        entries,
        replies,
        [entry for entry in attempt.transcript if entry.turn in extra],
        [reply for reply in attempt.replies if reply.turn in extra],
    )


def _extra_turns(attempt: Attempt) -> dict[int, str]:
    """The turns that asked for the answer's rows, each with the columns that it named (empty: a repair)."""
    found: dict[int, str] = {}
    for entry in attempt.transcript:
        if entry.kind == "user" and (columns := asked_columns(entry.text)) is not None:
            found[entry.turn] = columns
    return found


def was_asked_for_rows(attempt: Attempt) -> bool:
    """Whether there were turns that asked for the answer's rows."""
    return bool(_extra_turns(attempt))


def recorded_rows(attempt: Attempt, columns: list[str]) -> RowsAnswer | None:
    """The rows that the recorded answer was asked for; nobody can be asked for others. None: it was not
    asked for any.

    Raises:
        CannotJudge: they were asked for with other columns, or not all of them were kept.
    """
    extra, data = _extra_turns(attempt), attempt.data
    replies = [reply for reply in attempt.replies if reply.turn in extra]
    asked = next((text.split(", ") for text in extra.values() if text), None)
    if asked is None and data is not None and data.actual is not None:
        asked = data.columns
    if asked and sorted(asked) != sorted(listed(columns).split(", ")):
        raise CannotJudge(
            f"the recorded rows were asked for with the columns {', '.join(asked)}: run the case", "no-rows"
        )
    if replies:
        return read_answer(replies[-1], columns)[0]
    if data is None or data.actual is None:
        return None
    kept, count = data.settings.get("truncated"), f"{len(data.actual):,}"
    if isinstance(kept, dict) and kept.get("actual") != len(data.actual):
        raise CannotJudge(
            f"only the first {count} rows of the answer were kept: run the case", "not-in-file", "all rows"
        )
    if kept and not isinstance(kept, dict):
        raise CannotJudge(
            f"the results file does not say whether these {count} rows are all of the answer: run the case",
            "not-in-file",
            "all rows",
        )
    return RowsAnswer(rows=data.actual, sql=data.verification_sql)
