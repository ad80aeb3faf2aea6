"""Verdicts as lines: in a few words beside a turn, and in full with expected against actual."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from tui_eval import causes
from tui_eval.model import UNSET, Usage, Verdict
from tui_eval.tui.state.case.calls_evidence import calls_of
from tui_eval.tui.state.text.formatting import tokens
from tui_eval.tui.state.text.json_lines import parsed, short, value_lines
from tui_eval.tui.state.text.lines import Line, Span, one_line, text_lines, width_of
from tui_eval.tui.state.text.text_difference import alike, difference

# -- What a judge was asked and what it answered, as lines.


_GRADES = ("pass", "score", "category", "verdict", "flagged")


def judge_lines(
    verdict: Verdict, agreement: Mapping[str, tuple[int, int]], reply: str = ""
) -> Iterator[Line]:
    """The judge's words, what people think of it, and what it was asked; in it the `reply`, which stands below, is
    not repeated."""
    judge = verdict.judge
    if not judge:
        return
    model = one_line(judge.get("model") or "the judge", 60)
    usage = judge.get("usage")
    used = ""
    if isinstance(usage, dict):
        used = tokens(Usage(usage.get("input_tokens"), usage.get("output_tokens")))
    agreed, count = agreement.get(str(judge.get("model") or "the judge"), (0, 0))
    people = (Span(f" · people agreed with it {agreed} of {count} times", "note"),) if count else ()
    grade, rest = _answer(parsed(judge.get("answer")), verdict.reason)
    yield (
        Span(f"{model} answered", "muted"),
        Span(f" {grade}" if grade else "", "strong"),
        Span(f" · {used}" if used else "", "muted"),
        *people,
    )
    for line in value_lines(rest):
        yield (Span("  "), *line)
    if judge.get("question"):
        yield (Span("it was asked", "muted"),)
        question = judge["question"]
        if isinstance(question, str) and len(reply) > SHORT:
            question = question.replace(reply, "… the reply …")
        for line in value_lines(question):
            yield (Span("  "), *line)


def _answer(answer: Any, reason: str) -> tuple[str, Any]:
    """A grade in a few words (`pass false · score 0.3`), and what else the answer says that the verdict's reason
    does not."""
    if not isinstance(answer, dict):
        return "", answer
    grade = " · ".join(f"{name} {short(answer[name], 20)}" for name in _GRADES if name in answer)
    rest = {name: value for name, value in answer.items() if name not in _GRADES}
    if isinstance(rest.get("reason"), str) and rest["reason"].strip() in reason:
        del rest["reason"]
    return (grade, rest or None) if grade else ("", answer)


LABEL = 10
"""Columns of `expected` and `actual` before their values."""
SHORT = 60
"""Characters of a passed verdict's reason that are worth showing beside what it found."""
LONG = 160
"""Characters from which on a reply is not shown again beside what was expected of it."""
BEGINNING = 26
"""Characters of such a reply that are shown, to know it by."""
GLYPHS = {
    "passed": "✓",
    "failed": "✗",
    "error": "!",
    "cancelled": "⊘",
    "skipped": "–",
    "running": "●",
    "waiting": "◌",
}
"""The glyph of each outcome (ux.md, Habits); always beside its word."""


def word_of(verdict: Verdict) -> str:
    """`passed`, `failed` or `error`."""
    return "error" if verdict.passed is None else "passed" if verdict.passed else "failed"


def label_of(verdict: Verdict) -> str:
    """Glyph and word."""
    word = word_of(verdict)
    return f"{GLYPHS[word]} {word}"


def failed_first(verdicts: Iterable[tuple[int, Verdict]]) -> list[tuple[int, Verdict]]:
    """Verdicts with their places: those that failed, those that could not be judged, then those that passed, each in
    their order. The parts of a set stay below it."""
    return [one for unit in units_of(verdicts) for one in unit]


def units_of(verdicts: Iterable[tuple[int, Verdict]]) -> list[list[tuple[int, Verdict]]]:
    """The same, each set with its parts (or an assertion that is in none) together: only the set counts, and
    a part that failed in one that passed made nothing fail."""
    units: list[list[tuple[int, Verdict]]] = []
    for index, verdict in verdicts:
        if verdict.set is not None and units:
            units[-1].append((index, verdict))
        else:
            units.append([(index, verdict)])
    rank = {False: 0, None: 1, True: 2}
    return sorted(units, key=lambda unit: rank[unit[0][1].passed])


def expected_label(verdict: Verdict) -> str:
    """What the value that an assertion gives is to it: code that runs, what a judge goes by, else what is expected."""
    kind = verdict.type.removeprefix("not-").partition(":")[0]
    label = _GIVEN.get(kind, "expected")
    return "returned" if label == "script" and not isinstance(verdict.expected, str) else label


def source_lines(verdict: Verdict) -> Iterator[Line]:
    """Where in a script's file what it came out by was returned, or where it failed: file, line and the line itself,
    below it marks where it failed."""
    for one in verdict.evidence or ():
        failed = one.code == "script-failed"
        script = failed or expected_label(verdict) in _CODE
        if one.kind == "rule" and one.path and verdict.passed is not True and script:
            place = one_line(f"{one.path}:{one.row}" if one.row else one.path, 80)
            yield (Span(place, "strong"), Span(f"  {one_line(one.rule, 160)}", "code"))
            if failed and one.start is not None and one.end and one.end <= 160:
                before, marked = one.rule[: one.start], one.rule[one.start : one.end]
                blank = width_of((Span(f"{place}  {before}"),))
                yield (Span(" " * blank + "^" * max(width_of((Span(marked),)), 1), "error"),)


_CODE = ("script", "returned")


_GIVEN = {
    "javascript": "script",
    "python": "script",
    "ruby": "script",
    "assert-script": "script",
    "webhook": "webhook",
    "llm-rubric": "rubric",
    "g-eval": "rubric",
    "model-graded-closedqa": "rubric",
    "search-rubric": "rubric",
    "agent-rubric": "rubric",
    "regex": "pattern",
}


_MOST_PARTS = 20


def part_lines(verdict: Verdict, *, failing: bool = False) -> Iterator[Line]:
    """What a script says its result consists of, the parts that failed first; `failing`: these alone."""
    parts = sorted(verdict.parts or (), key=lambda part: part.get("pass") is True)
    shown = [part for part in parts if not failing or part.get("pass") is not True]
    for part in shown[:_MOST_PARTS]:
        word = "passed" if part.get("pass") is True else "failed"
        said = one_line(str(part.get("reason") or word), 300)
        score = part.get("score")
        figure = f"  score {score:g}" if isinstance(score, int | float) and score not in (0, 1) else ""
        yield (
            Span(f"{GLYPHS[word]} ", word),
            Span(said, "muted" if word == "passed" else ""),
            Span(figure, "muted"),
        )
    if len(shown) > _MOST_PARTS:
        yield (Span(f"… {len(shown) - _MOST_PARTS} more", "muted"),)


def about_rows(verdict: Verdict) -> bool:
    """Whether the verdict compares rows, so that the Data tab says more than its text."""
    return verdict.target.split(".")[0] == "rows" or verdict.type == "sql"


def about_tools(verdict: Verdict) -> bool:
    """Whether the verdict is about tool calls."""
    return verdict.target.split(".")[0] == "tools" or bool(calls_of(verdict))


_KNOWN = 40


def reason_of(verdict: Verdict) -> str:
    """Why a verdict is not a pass, in the words of its evidence; its prose where it has none, or others say why."""
    told = (one for one in verdict.evidence or () if one.code in causes.IN_FULL)
    if verdict.passed is not False or any(one.text[:_KNOWN] in verdict.reason for one in told):
        return verdict.reason
    return causes.words_of(verdict) or verdict.reason


def title(verdict: Verdict, room: int = 70) -> Line:
    """What is asserted: `should_contain "March"`, `tool_call run_sql {"limit": 5}`, the target where
    it says more than the type."""
    spans = [Span(one_line(verdict.type, 40), "strong")]
    part, _, name = verdict.target.partition(".")
    named = part in ("metadata", "usage") and name == verdict.type.removeprefix("max_")
    if verdict.target not in ("text", "tools", "rows", "") and not named:
        spans.append(Span(" " + one_line(verdict.target, 40), "muted"))
    expected = verdict.expected
    if isinstance(expected, dict) and isinstance(expected.get("tool"), str):
        spans.append(Span(" " + one_line(expected["tool"], 60)))
        expected = expected.get("args")
    if expected_label(verdict) == "returned":
        expected = None
    if expected is not None and expected is not UNSET and not about_rows(verdict):
        spans.append(Span(" " + short(expected, max(room - sum(len(s.text) for s in spans), 16))))
    if verdict.metric:
        spans.append(Span(f"  metric {one_line(verdict.metric, 30)}", "muted"))
    return tuple(spans)


def brief(
    verdict: Verdict, why: Callable[[], Iterator[Line]] | None = None, *, points_to_rows: bool = True
) -> Iterator[Line]:
    """What stands beside a turn: what is asserted, and why it did not hold; `why` shows that in what
    the agent did; `points_to_rows` says where the rows are seen."""
    indent = "  " if verdict.set is not None else ""
    head = title(verdict)
    reason = reason_of(verdict)
    yield (Span(indent), *head)
    if verdict.passed:
        return
    if reason:
        for line in text_lines(reason):
            yield (Span(indent), *line) if indent else line
    yield from _indented(partial(part_lines, verdict, failing=True), indent)
    yield from _indented(partial(source_lines, verdict), indent)
    yield from _indented(why, indent)
    if about_rows(verdict):
        if (fact := causes.words_of(verdict)) and fact not in reason:
            yield (Span(indent), *next(iter(text_lines(fact))))
        if points_to_rows and verdict.passed is False:  # there are no rows where it could not be judged
            yield (Span(indent), Span("d shows the rows", "muted"))
    elif verdict.judge is not None:
        yield from _judges_words(verdict, indent)


def _judges_words(verdict: Verdict, indent: str) -> Iterator[Line]:
    """A judge's sentence where the reason does not have it."""
    answer = verdict.judge.get("answer") if verdict.judge else None
    said = parsed(answer)
    if not isinstance(said, str) or len(said.strip()) < 8 or said.strip() in verdict.reason:
        return
    for number, line in enumerate(text_lines(said.strip()[:400])):
        if number < 4:
            yield (Span(indent), Span("judge: " if not number else "       ", "muted"), *line)


def _indented(why: Callable[[], Iterator[Line]] | None, indent: str) -> Iterator[Line]:
    for line in why() if why is not None else ():
        yield (Span(indent), *line) if indent else line


def in_full(
    verdict: Verdict,
    *,
    rendered: bool = True,
    why: Callable[[], Iterator[Line]] | None = None,
    agreement: Mapping[str, tuple[int, int]] | None = None,
    reply: str = "",
    place: str = "",
    reply_below: bool = False,
) -> Iterator[Line]:
    """Everything known of a verdict, for the Assertions tab.

    Args:
        rendered: Values made readable, `why` in place of the values that it explains.
        why: What was looked for, shown in what the agent did.
        agreement: By a judge's model, how often people agreed with it and of how many.
        reply: What the agent said, which is not shown again in full where it is what was judged.
        place: File and line where it is asserted.
        reply_below: The reply stands below.
    """
    facts = [one_line(verdict.target, 60)] if verdict.target else []
    facts.append(f"score {verdict.score:g}")
    if verdict.weight != 1.0:
        facts.append(f"weight {verdict.weight:g}")
    if verdict.metric:
        facts.append(f"metric {one_line(verdict.metric, 40)}")
    if verdict.set is not None:
        facts.append("part of the set above")
    if place or verdict.line:
        facts.append(place or f"line {verdict.line}")
    yield (Span(one_line(verdict.type, 60), "strong"), Span("  " + " · ".join(facts), "muted"))
    lines = list(why()) if why is not None and rendered else []
    if verdict.reason and not (verdict.passed and lines and len(verdict.reason) > SHORT):
        reason = reason_of(verdict) if rendered else verdict.reason
        yield from text_lines(reason, "" if verdict.passed else word_of(verdict))
    yield from part_lines(verdict)
    yield from source_lines(verdict)
    if about_rows(verdict) and verdict.passed is False:
        yield (Span("d shows the rows", "muted"),)
    else:
        yield from lines
        if not lines:
            yield from _sides(verdict, rendered, reply, reply_below)
    yield from judge_lines(verdict, agreement or {}, reply if rendered and reply_below else "")


def _sides(verdict: Verdict, rendered: bool, reply: str, reply_below: bool) -> Iterator[Line]:
    """Expected and actual: in brief where it passed, text against text where they are alike."""
    expected = None if verdict.expected is UNSET else verdict.expected
    sides = [
        (word, value)
        for word, value in ((expected_label(verdict), expected), ("actual", verdict.actual))
        if value is not None
    ]
    if verdict.passed and rendered:
        for word, value in sides:
            yield (Span(f"{word:<{LABEL}}", "label"), Span(short(value, 200)))
    elif rendered and not verdict.judge and len(sides) == 2 and alike(*(value for _, value in sides)):
        for (word, _), lines in zip(sides, difference(str(expected), str(verdict.actual)), strict=True):
            yield from _titled(word, lines)
    else:
        if rendered and verdict.type in ("not-equals", "not_value"):
            sides = sides[-1:]  # they are the same
        read_the_same = len({" ".join(str(value).split()).casefold() for _, value in sides}) < len(sides)
        for word, value in sides:
            if word == "actual" and rendered and reply_below and value == reply[: len(str(value))]:
                continue
            if word == "actual" and rendered and _is_reply(value, reply):
                yield (Span(f"{'reply':<{LABEL}}", "label"), *_in_short(str(value), reply))
            else:
                # A text's quotation marks tell it apart from a number.
                shown = short(value) if read_the_same else _shown(value)
                yield from _titled(word, value_lines(shown, rendered=rendered))


def _is_reply(value: Any, reply: str) -> bool:
    """Whether a value is a long reply, which the Transcript shows."""
    return isinstance(value, str) and len(value) > LONG and reply.startswith(value[:LONG])


def _in_short(value: str, reply: str) -> Line:
    begins = " ".join(value[:LONG].split())[:BEGINNING].rstrip()
    return (
        Span(one_line(begins)),
        Span(f"… {max(len(reply), len(value)):,} characters: 1 shows them", "muted"),
    )


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, (str, list, dict)) else short(value)


def _titled(word: str, lines: Iterator[Line] | list[Line]) -> Iterator[Line]:
    for index, line in enumerate(lines):
        yield (Span(f"{word if not index else '':<{LABEL}}", "label"), *line)
