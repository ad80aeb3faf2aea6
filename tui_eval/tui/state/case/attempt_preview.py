"""An attempt as it stands beside a list: how it came out, why, what was said, what passed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from tui_eval.model import Attempt, Entry, Verdict
from tui_eval.tui.state.case.agent_tree import reading_order, short_name
from tui_eval.tui.state.case.case_content import CaseContent, outcome_style
from tui_eval.tui.state.case.case_history import edited_spans, rules_spans
from tui_eval.tui.state.case.entry_blocks import reply_lines
from tui_eval.tui.state.case.expectation_marks import Expectations
from tui_eval.tui.state.case.explain import in_short
from tui_eval.tui.state.case.prompt_view import asked
from tui_eval.tui.state.case.transcript_view import facts_of
from tui_eval.tui.state.case.verdict_lines import (
    GLYPHS,
    about_rows,
    brief,
    reason_of,
    title,
    units_of,
    word_of,
)
from tui_eval.tui.state.text.fitting import shorten
from tui_eval.tui.state.text.json_lines import parsed, short
from tui_eval.tui.state.text.lines import Line, Span, one_line, text_lines

MOST_LINES = 400
"""Lines of one reply that are made: who wants to read on opens the case."""
MOST_VERDICTS = 30
"""Verdicts of each outcome that are shown."""
ASKED = 100
"""Characters of a message to the agent: the answer is what one looks for."""
DEEPEST = 4
"""Hand-offs by which a line is indented at most."""
CALL = 120
"""Cells of a tool call on its one line."""
BRIEF_ASKED = 72
"""Characters of a message to the agent in a pane of few lines, where it has one."""
ROWS, BRIEF_ROWS = 5, 1
"""Rows that differ which are named here; `d` shows all of them."""
ROOMY_CALLS = 4
"""Calls of one tool in a row that are one line where there is room; else two."""
BRIEF_REPLY = 40
"""Lines of a reply in such a pane, which can be scrolled."""


def answers_lines(answers: Sequence[tuple[str, CaseContent]]) -> list[Line]:
    """The attempts of a test's rows one after the other, each under what tells it from the others: how it came out,
    what it failed and said. May take long: call it in a thread."""
    lines: list[Line] = []
    for label, content in answers:
        shown = preview_lines(content, passed=False)
        if shown:
            lines += [(), *text_lines(label, "heading"), *shown]
    return lines


def brief_answers(answers: Sequence[tuple[str, CaseContent]]) -> list[Line]:
    """The same for a pane of few lines: what tells the row from the others stands beside its outcome."""
    lines: list[Line] = []
    for label, content in answers:
        shown = brief_lines(content, passed=False)
        if shown and content.attempt is not None:
            state = content.attempt.outcome
            head = (Span(f"{GLYPHS.get(state, '')} ", outcome_style(state)), Span(one_line(label), "heading"))
            lines += [(*head, *shown[0][1:]), *shown[1:]]
    return lines


def brief_lines(content: CaseContent, *, passed: bool = True, turn: int | None = None) -> list[Line]:
    """The same for a pane of few lines: each verdict's fact stands in its first line, and nothing stands between
    the facts and the reply."""
    attempt = content.attempt
    if attempt is None:
        return []
    wrong, good = _apart(attempt)
    lines = [_outcome(content, attempt), *_error(attempt, wrong)]
    for verdict in wrong[:MOST_VERDICTS]:
        lines += _verdict(verdict, attempt, fact=True)
    said = [line for line in _said(content, attempt, wrong, turn, BRIEF_ASKED) if line]
    lines += said[:BRIEF_REPLY]
    return [*lines, *(map(_good, good[:MOST_VERDICTS]) if passed else ())]


def _apart(attempt: Attempt) -> tuple[list[Verdict], list[Verdict]]:
    """What made it fail, or could not be judged, and what held; a set with its parts below it, of one that failed those
    that failed too."""
    wrong: list[Verdict] = []
    good: list[Verdict] = []
    for (_, head), *parts in units_of(enumerate(attempt.verdicts)):
        (good if head.passed else wrong).append(head)
        for _, part in parts:
            (good if head.passed or part.passed else wrong).append(part)
    return wrong, good


def _good(verdict: Verdict) -> Line:
    """One of what held, a part of a set indented: its sign says that it failed where its set passed nevertheless."""
    word = word_of(verdict)
    indent = (Span("  "),) if verdict.set is not None else ()
    return (*indent, Span(f"{GLYPHS[word]} ", word), *title(verdict))


def _outcome(content: CaseContent, attempt: Attempt) -> Line:
    """How it came out, with the facts."""
    state = attempt.outcome
    many = len(content.placed)
    which = f"attempt {content.number} of {many}" if many > 1 else ""
    told = " · ".join(part for part in (facts_of(attempt), which) if part)
    return (
        Span(f"{GLYPHS.get(state, '')} {state}", outcome_style(state)),
        Span(f"  {told}", "muted"),
        *rules_spans(content.compat, " · "),
        *edited_spans(content.edited),
    )


def _error(attempt: Attempt, wrong: Sequence[Verdict]) -> list[Line]:
    """What hindered it, or why it did not pass where no verdict says so."""
    if attempt.error:
        return list(text_lines(attempt.error, "error"))
    if attempt.message and attempt.outcome != "passed" and not wrong:
        return list(text_lines(attempt.message, outcome_style(attempt.outcome)))
    return []


def preview_lines(content: CaseContent, *, passed: bool = True, turn: int | None = None) -> list[Line]:
    """The attempt that was read, for a pane beside the list: outcome and facts, failed verdicts with the
    values they saw, the reply of `turn`, else of the one where it went wrong, else of the last, what passed
    (where `passed`). Empty where there is no attempt that ended. May take long for long replies: call it in a
    thread."""
    attempt = content.attempt
    if attempt is None:
        return []
    wrong, held = _apart(attempt)
    good = held if passed else []
    lines = [_outcome(content, attempt), *_error(attempt, wrong)]
    for verdict in wrong[:MOST_VERDICTS]:
        lines += _verdict(verdict, attempt)
    left = len(wrong) - MOST_VERDICTS
    if left > 0:
        lines.append((Span(f"and {left:,} more that did not pass", "muted"),))
    lines += _said(content, attempt, wrong, turn)
    if good:
        lines.append(())
        for verdict in good[:MOST_VERDICTS]:
            lines.append(_good(verdict))
        if len(good) > MOST_VERDICTS:
            lines.append((Span(f"and {len(good) - MOST_VERDICTS:,} more that passed", "muted"),))
    return lines


def _verdict(verdict: Verdict, attempt: Attempt, *, fact: bool = False) -> Iterator[Line]:
    """A verdict with what it saw, a part of a set indented. What was wanted is not said twice: there is little room;
    and not at all where only the `fact` is to be said."""
    word = word_of(verdict)
    differing = (attempt.data.comparison or "").splitlines() if attempt.data is not None else []
    differing = differing if about_rows(verdict) and verdict.passed is False else []
    points = not (fact and differing)
    lines = brief(verdict, lambda: in_short(verdict, attempt), points_to_rows=points)
    reason = reason_of(verdict)
    expected = verdict.expected if isinstance(verdict.expected, str) else None
    told = fact or (expected is not None and f'"{expected}"'.lower() in reason.lower())
    if reason and told and "\n" not in reason:
        next(lines)
        turns = {entry.turn for entry in attempt.transcript}
        facts = ["" if verdict.type in reason else one_line(verdict.type, 40)]
        facts += [f"turn {verdict.turn}"] if verdict.turn and len(turns) > 1 else []
        kind = "  " + " · ".join(filter(None, facts)) if any(facts) else ""
        first = next(lines, ())
        lines = chain([(*first, Span(kind, "muted"))], lines)
    for number, line in enumerate(lines):
        head = Span(f"{GLYPHS[word]} ", word) if not number else Span("  ")
        yield (head, *line)
    for line in [line for line in differing if line != reason][: BRIEF_ROWS if fact else ROWS]:
        yield (Span("  "), Span(one_line(line, 300), "muted"))


def _said(
    content: CaseContent,
    attempt: Attempt,
    wrong: Sequence[Verdict],
    looked_at: int | None,
    longest: int = ASKED,
) -> Iterator[Line]:
    """What was asked and answered in the turn looked at, else in that of the first verdict that did not pass, else in
    the last that the case has (behind it the rows are asked for once more); what helpers did indented below their
    hand-off."""
    turns = sorted({entry.turn for entry in attempt.transcript})
    if not turns:
        return
    own = [turn for turn in turns if content.case is None or 0 < turn <= len(content.case.turns)]
    if attempt.data is None or not own:
        own = turns
    turn = next((v.turn for v in wrong if v.turn in turns), None) or own[-1]
    turn = looked_at if looked_at in turns else turn
    entries = [(place, entry) for place, entry in enumerate(attempt.transcript) if entry.turn == turn]
    looks = [v for v in attempt.verdicts if v.turn == turn or v.turn is None]
    several = len({entry.agent for _, entry in entries if entry.agent}) > 1
    replying = next((e.agent for _, e in reversed(entries) if e.kind == "assistant"), "")
    head = Span(f"turn {turn} of {turns[-1]}  ", "heading") if len(turns) > 1 else None
    yield ()
    if head is not None and not any(entry.kind == "user" for _, entry in entries):
        yield (head,)
    ordered = list(reading_order(entries))
    again = _repeats(
        [(entry, node.depth) for _, entry, node in ordered], 2 if longest < ASKED else ROOMY_CALLS
    )
    for number, (place, entry, node) in enumerate(ordered):
        if number in again and not again[number]:
            continue
        handed = node.index == place
        depth = node.depth - handed
        if entry.kind == "user":
            first = one_line(" ".join(asked(entry.text).split()), longest)
            yield (*([head] if head is not None else []), Span("> ", "role-user"), Span(first, "muted"))
            head = None
            continue
        if entry.kind == "error" and (entry.error or entry.text) == attempt.error:
            continue  # it stands above
        answer = attempt.transcript[node.answer].text if handed and node.answer is not None else ""
        marks = Expectations(looks, attempt) if entry.agent == replying else None
        calls = [ordered[at][1] for at in again.get(number, [])]
        for line in _of_entry(entry, marks, several and not depth, answer, calls):
            yield (Span("  " * min(depth, DEEPEST)), *line) if depth else line


def _repeats(entries: Sequence[tuple[Entry, int]], fewest: int) -> dict[int, list[int]]:
    """Calls of one tool one after the other, `fewest` or more, by their places: all of them at the first, none at
    the others. A result in between that says nothing bad is no end of them."""
    groups: list[list[int]] = []
    first: int | None = None
    for number, (entry, depth) in enumerate(entries):
        if entry.kind == "tool_result" and not entry.error:
            continue
        before = entries[first] if first is not None else None
        if entry.kind != "tool_call":
            first = None
        elif before is not None and before[0].name == entry.name and before[1] == depth:
            groups[-1].append(number)
        else:
            first = number
            groups.append([number])
    many = [group for group in groups if len(group) >= fewest]
    return {number: [] if place else group for group in many for place, number in enumerate(group)}


def _asked_for(calls: Sequence[Entry]) -> str:
    """The arguments of calls, those that are alike once: what differs from call to call is seen, and is no loop."""
    counted = Counter(
        short(parsed(entry.arguments), _ALL_OF_IT) if entry.arguments not in (None, {}, "") else ""
        for entry in calls
    )
    if len(counted) < 2:
        return short(parsed(calls[0].arguments), CALL) if "" not in counted else ""
    each = CALL // min(len(counted), _SIDE_BY_SIDE)
    parts = [
        (f"{times} × " if times > 1 else "") + (shorten(said, each) or "()")
        for said, times in counted.items()
    ]
    line = parts[0]
    for place, part in enumerate(parts[1:], 1):
        if len(line) + len(part) > CALL:
            return f"{line} · … {len(parts) - place} more"
        line += f" · {part}"
    return line


_ALL_OF_IT = 10_000
"""Characters of arguments that are compared."""
_SIDE_BY_SIDE = 3
"""Of calls that differ, how many have room in a line."""


def _of_entry(
    entry: Entry, marks: Expectations | None, named: bool, answer: str, calls: Sequence[Entry]
) -> Iterator[Line]:
    if entry.kind == "assistant" and entry.text:
        if named and entry.agent:
            yield (Span(one_line(entry.agent, 60), "agent"),)
        yield from _reply(entry, marks)
    elif entry.kind == "tool_call":
        arguments = _asked_for(calls or [entry])
        yield (
            Span("↳ ", "role-tool_call"),
            Span(f"{len(calls)} × " if len(calls) > 1 else "", "muted"),
            Span(one_line(entry.name, 60), "strong"),
            Span(f" {arguments}" if arguments else "", "muted"),
        )
    elif entry.kind == "hand_off":
        asked_for = short(parsed(entry.arguments), CALL // 2) if entry.arguments not in (None, {}, "") else ""
        answered = one_line(" ".join(answer.split()), CALL)
        yield (
            Span("→ ", "role-hand_off"),
            Span(one_line(short_name(entry.name) or entry.text, 60), "strong"),
            Span(f" {asked_for}" if asked_for else "", "muted"),
            *((Span("  = ", "muted"), Span(answered)) if answered else ()),
        )
    elif entry.kind == "error" or entry.error:
        yield from text_lines(entry.error or entry.text, "error")


def _reply(entry: Entry, marks: Expectations | None) -> Iterator[Line]:
    for number, line in enumerate(reply_lines(entry.text, marks)):
        if number >= MOST_LINES:
            yield (Span("… enter shows all of it", "muted"),)
            return
        yield line
