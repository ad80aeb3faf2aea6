"""What the right side of the Suites screen says about the line under the cursor, in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from msgspec import UNSET

from tui_eval import vacuity
from tui_eval.case_names import short_providers
from tui_eval.formats import format_of, title_of
from tui_eval.guard.text import clip, visible
from tui_eval.model import Assertion, Case, Suite
from tui_eval.tui.state.case.case_history import note_words
from tui_eval.tui.state.case.prompt_view import messages_in
from tui_eval.tui.state.lists.case_entry import CaseRow, reason_in_line, reason_in_pane
from tui_eval.tui.state.lists.case_tree import TreeLine, common_cause, shared_reason
from tui_eval.tui.state.runs.run_view import NOT_RUN
from tui_eval.tui.state.text import formatting

Paragraph = tuple[str, str]
"""A style's name (`title`, `text`, `dim`, `label`, `code`, `good`, `bad`, `warn`) and a text."""

VALUE_LIMIT = 400
TEXT_LIMIT = 4_000
LIST_LIMIT = 60
FAILING_LIMIT = 30
"""Reasons that a folder or suite names."""
ALIKE_LIMIT = 3
"""Cases that failed alike of which it gives the names."""
LOOKED_AT = 5_000
"""Failing cases that are looked through for them."""
_WORDS = {
    "contains": "contains",
    "icontains": "contains, whatever the case,",
    "contains-any": "contains one of",
    "contains-all": "contains all of",
    "icontains-any": "contains, whatever the case, one of",
    "icontains-all": "contains, whatever the case, all of",
    "not-contains-any": "contains none of",
    "not-icontains-any": "contains, whatever the case, none of",
    "not-contains-all": "does not contain all of",
    "not-contains": "does not contain",
    "not-icontains": "does not contain, whatever the case,",
    "equals": "equals",
    "not-equals": "does not equal",
    "regex": "matches",
    "not-regex": "does not match",
    "starts-with": "starts with",
    "is-json": "is JSON",
    "contains-json": "contains JSON",
    "llm-rubric": "a judge agrees:",
    "javascript": "JavaScript holds:",
    "python": "Python holds:",
    "similar": "is similar to",
    "cost": "costs at most",
    "latency": "takes at most",
    "sql": "the answer's rows equal those of",
    "tool_call": "calls the tool",
    "tools_used": "uses the tool",
    "max_tool_calls": "calls of tools at most",
    "max_input_tokens": "input tokens at most",
    "max_output_tokens": "output tokens at most",
    "should_contain": "contains",
    "should_not_contain": "does not contain",
    "keywords": "has the keyword",
    "not_keywords": "lacks the keyword",
    "value": "equals",
    "not_value": "does not equal",
    "gist": "means",
    "not_gist": "does not mean",
    "less": "is less than",
    "greater": "is greater than",
}


_NAMES_TARGET = frozenset(
    {"sql", "tool_call", "tools_used", "max_tool_calls", "max_input_tokens", "max_output_tokens"}
)
"""Assertions whose words say what they are about."""
_UNITS = {"cost": "${:g}", "latency": "{:,.0f} ms"}
"""How the threshold of an assertion is written that is nothing but one."""


def value_text(value: Any, limit: int = VALUE_LIMIT) -> str:
    """A value on one line, as JSON unless it is text."""
    if value is UNSET or value is None:
        return "" if value is UNSET else "null"
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, default=str)
        except (TypeError, ValueError, RecursionError):
            text = str(value)
    return clip(visible(" ".join(text[: limit * 4].split()), newlines=False), limit)


def message_paragraphs(prompt: str, limit: int) -> list[Paragraph]:
    """A prompt that is a list of chat messages: who says what; nothing where it is a text."""
    shown: list[Paragraph] = []
    for message in messages_in(prompt)[:LIST_LIMIT]:
        shown.append(("dim", f"{visible(message.role, newlines=False)}:"))
        shown.append(("text", clip(visible(message.text), limit)))
    return shown


def assertion_text(assertion: Assertion) -> str:
    """An assertion in words: `text contains "refund"`."""
    words = _WORDS.get(assertion.type, assertion.type.replace("_", " "))
    target = "" if assertion.target in ("text", "") or assertion.type in _NAMES_TARGET else assertion.target
    value = value_text(assertion.value)
    if isinstance(assertion.value, str) and assertion.type not in (
        "javascript",
        "python",
        "sql",
        "llm-rubric",
    ):
        value = f'"{value}"'
    parts = [visible(target, newlines=False), visible(words, newlines=False), value]
    if assertion.threshold is not None and assertion.type in _UNITS:
        parts.append(_UNITS[assertion.type].format(assertion.threshold))
    elif assertion.threshold is not None:
        parts.append(f"(threshold {assertion.threshold:g})")
    if assertion.weight is not None:
        parts.append(f"(weight {assertion.weight:g})")
    return " ".join(part for part in parts if part)


def describe(
    line: TreeLine, symbols: formatting.Symbols, now: float, below: Callable[[], Iterable[CaseRow]] = tuple
) -> list[Paragraph]:
    """The paragraphs for a line of the list; `below` gives the cases that a folder or suite holds."""
    if line.kind == "case" and line.entry is not None:
        return describe_entry(line.entry, symbols, now)
    if (line.kind == "test" or line.siblings) and line.members:
        return _test(line, symbols)
    if line.kind == "problem" and line.problem is not None:
        problem = line.problem
        place = f"{problem.path}:{problem.line}" if problem.line else problem.path
        shown: list[Paragraph] = [
            (
                "bad" if problem.level == "error" else "warn",
                "Problem" if problem.level == "error" else "Note",
            ),
            ("dim", visible(place, newlines=False)),
        ]
        if problem.key:
            shown.append(("label", visible(problem.key, newlines=False)))
        shown += [("text", ""), ("text", clip(visible(problem.message), TEXT_LIMIT))]
        if problem.cure:
            shown += [
                ("text", ""),
                ("label", "What to do"),
                ("text", clip(visible(problem.cure), TEXT_LIMIT)),
            ]
        return [*shown, ("text", ""), ("dim", "e opens the file at this line")]
    if line.kind == "suite" and line.suite is not None:
        return _suite(line.suite, line, symbols, _failing(line, symbols, below))
    total = line.counts.total()
    return [
        ("title", visible(line.path or line.name, newlines=False)),
        ("text", ""),
        (
            "text",
            symbols.dot.join(
                filter(None, (formatting.cases_in_rows(line.cases or total, total), _counts(line)))
            ),
        ),
        *_failing(line, symbols, below),
    ]


def _test(line: TreeLine, symbols: formatting.Symbols) -> list[Paragraph]:
    """A test with several rows, or some of them: how they stand, which they are, and how the test is defined."""
    first, total = line.members[0], len(line.members)
    shown: list[Paragraph] = [("title", visible(first.name, newlines=False))]
    case = first.case
    place = f"{first.suite}:{case.line}" if case and case.line else first.suite
    if case and case.line and case.file:
        place = f"{first.suite}{symbols.dot}{case.file}:{case.line}"
    shown.append(("dim", visible(f"{place}{symbols.dot}{title_of(first.format)}", newlines=False)))
    cases = len({entry.case_id for entry in line.members})
    shown += [("text", f"{formatting.cases_in_rows(cases, total)}{symbols.dot}{_counts(line)}")]
    for entry in line.members[:LIST_LIMIT]:
        glyph = symbols.glyphs.get(entry.status, "")
        called = visible(entry.variant or entry.agent or entry.name, newlines=False)
        shown.append(("item", f"{glyph} {called}".strip()))
    if total > LIST_LIMIT:
        shown.append(("dim", f"and {total - LIST_LIMIT:,} more"))
    if case is not None:
        alike = all(one.case is not None and one.case.turns == case.turns for one in line.members)
        shown += _case(case, turns=alike)
    return shown


def _failing(
    line: TreeLine, symbols: formatting.Symbols, below: Callable[[], Iterable[CaseRow]]
) -> list[Paragraph]:
    """What does not pass in a folder or suite, by reason, the most frequent first."""
    if not (line.counts["failed"] or line.counts["error"]):
        return []
    bad = (entry for entry in below() if entry.status in ("failed", "error"))
    groups: dict[tuple[str, str], list[CaseRow]] = {}
    for entry in islice(bad, LOOKED_AT):
        groups.setdefault((entry.status, common_cause(entry) or entry.key), []).append(entry)
    named = 0
    shown: list[Paragraph] = [("text", ""), ("label", "What does not pass")]
    for (status, reason), alike in sorted(groups.items(), key=lambda item: -len(item[1]))[:FAILING_LIMIT]:
        style, glyph = "bad" if status == "failed" else "warn", symbols.glyphs[status]
        named += len(alike)
        if len(alike) == 1:
            shown.append((style, f"{glyph} {_called(alike[0], symbols)}"))
            reason = reason_in_line(alike[0].cause, alike[0].message)
            shown += [("dim", f"  {_in_line(reason)}")] if reason else []
            continue
        shown.append((style, f"{glyph} {len(alike):,} × {_in_line(shared_reason(alike) or reason)}"))
        first = alike[: ALIKE_LIMIT if len(alike) > ALIKE_LIMIT + 1 else len(alike)]
        shown += [("dim", f"  {_called(entry, symbols)}") for entry in first]
        if len(alike) > len(first):
            shown.append(("dim", f"  and {len(alike) - len(first):,} more"))
    left = line.counts["failed"] + line.counts["error"] - named
    if left > 0:
        shown.append(("dim", f"and {left:,} more"))
    return shown


def _called(entry: CaseRow, symbols: formatting.Symbols) -> str:
    name = f"{entry.name}{symbols.dot}{entry.variant}" if entry.variant else entry.name
    return visible(clip(name, 200), newlines=False)


def _in_line(reason: str) -> str:
    return visible(" ".join(clip(reason, 300).split()), newlines=False)


def entry_head(entry: CaseRow, symbols: formatting.Symbols) -> list[Paragraph]:
    """What a case is called, where it is defined, and what a person noted on its answer."""
    name = f"{entry.name}{symbols.dot}{entry.variant}" if entry.variant else entry.name
    shown: list[Paragraph] = [("title", visible(name, newlines=False))]
    case = entry.case
    place = f"{entry.suite}:{case.line}" if case and case.line else entry.suite
    if case and case.line and case.file:  # the line is one of a table, say
        place = f"{entry.suite}{symbols.dot}{case.file}:{case.line}"
    model = "" if entry.agent.endswith(entry.model) else entry.model
    named = bool(entry.agent) and short_providers([entry.agent])[0] in entry.variant
    network = case.agent if case and format_of(case.format).network_is_agent else ""
    # A server's entry may be called as its format, or as the network on it.
    told = (title_of(entry.format), network, "" if named else entry.agent, model)
    parts = list(dict.fromkeys((place, *(part for part in told if part))))
    shown.append(("dim", visible(symbols.dot.join(parts), newlines=False)))
    if entry.note is not None:
        style = {"right": "good", "wrong": "bad"}.get(entry.note.verdict or "", "text")
        old = entry.answered_in and entry.note.run_id != entry.answered_in
        said = f"you said: {visible(note_words(entry.note))}"
        shown.append((style, f"{said} (of an earlier answer)" if old else said))
    return shown


def describe_entry(entry: CaseRow, symbols: formatting.Symbols, now: float) -> list[Paragraph]:
    """A case: how it stands, why, and what it is."""
    shown = entry_head(entry, symbols)
    case = entry.case
    if entry.status:
        style = {"passed": "good", "failed": "bad", "error": "warn"}.get(entry.status, "text")
        facts = [f"{symbols.glyphs.get(entry.status, '')} {entry.status}"]
        if entry.flaky:
            facts.append("flaky")
        if entry.cached:
            facts.append("cached")
        if entry.ends_at and entry.started_at and entry.status in ("running", "retrying"):
            facts.append(f"time limit {formatting.span(entry.ends_at - entry.started_at)}")
        elif entry.duration_ms is not None:
            facts.append(formatting.duration(entry.duration_ms))
        if entry.tokens:
            facts.append(f"{entry.tokens:,} tokens")
        if entry.cost is not None:
            facts.append(formatting.cost(entry.cost))
        if entry.finished_at:
            old = formatting.age(now - entry.finished_at)
            facts.append("just now" if old == "now" else f"{old} ago")
        shown += [("text", ""), (style, symbols.dot.join(facts))]
        if entry.detail:
            shown.append(("warn", visible(entry.detail, newlines=False)))
        if entry.message and entry.status != "passed":
            shown.append(("text", clip(visible(reason_in_pane(entry.cause, entry.message)), 1_200)))
    if case is not None:
        shown += _case(case)
    return shown


def _idle(case: Case) -> list[vacuity.Idle]:
    """What of the case cannot fail, but for the case itself."""
    return [part for part in vacuity.idle_parts(case) if part.key][:LIST_LIMIT]


def _case(case: Case, *, turns: bool = True) -> list[Paragraph]:
    """What it is; without its `turns` where only their assertions are its test's."""
    shown: list[Paragraph] = []
    if case.description and case.description != case.name:
        shown += [("text", ""), ("text", clip(visible(case.description), TEXT_LIMIT))]
    for problem in case.problems:
        shown.append(("warn", visible(f"line {problem.line}: {problem.message}", newlines=False)))
    several = len(case.turns) > 1
    for number, turn in enumerate(case.turns[:LIST_LIMIT], start=1):
        if turns:
            shown.append(("text", ""))
            shown.append(("label", f"Turn {number}" if several else "Prompt"))
            said = message_paragraphs(turn.text or "", TEXT_LIMIT)
            shown += said or [("text", clip(visible(turn.text or "(no text)"), TEXT_LIMIT))]
        shown += _assertions(turn.assertions)
    if case.assertions:
        shown += [("text", ""), ("label", "Of the whole conversation" if several else "Expected")]
        shown += _assertions(case.assertions)
    if vacuity.asserts_nothing(case):
        shown += [("text", ""), ("warn", "nothing asserted: it runs, and proves nothing")]
    shown += [("warn", visible(f"{part.key}: {part.message}", newlines=False)) for part in _idle(case)]
    if case.vars:
        shown += [("text", ""), ("label", "Vars")]
        for name, value in list(case.vars.items())[:LIST_LIMIT]:
            shown.append(("code", f"{visible(str(name), newlines=False)}: {value_text(value, 200)}"))
    if case.metadata:
        shown += [("text", ""), ("label", "Metadata"), ("code", value_text(case.metadata))]
    if case.attempts > 1:
        shown += [("text", ""), ("dim", f"{case.attempts} attempts, {case.required} must pass")]
    return shown


def _assertions(assertions: list[Assertion]) -> list[Paragraph]:
    shown: list[Paragraph] = []
    for assertion in assertions[:LIST_LIMIT]:
        if assertion.type == "sql" and isinstance(assertion.value, str):
            shown += [("dim", "rows equal those of"), ("code", clip(visible(assertion.value), TEXT_LIMIT))]
        else:
            shown.append(("item", assertion_text(assertion)))
    if len(assertions) > LIST_LIMIT:
        shown.append(("dim", f"and {len(assertions) - LIST_LIMIT:,} more"))
    return shown


def _suite(
    suite: Suite, line: TreeLine, symbols: formatting.Symbols, failing: list[Paragraph]
) -> list[Paragraph]:
    shown: list[Paragraph] = [("title", visible(suite.name or suite.path, newlines=False))]
    if suite.format:  # the configuration has none, and no cases
        place = symbols.dot.join([suite.path, title_of(suite.format)])
        many = f"{len(suite.cases):,} case{'s' * (len(suite.cases) != 1)}"
        if 0 < line.cases < len(suite.cases):  # a filter hides the others
            many = f"{line.cases:,} of {many} shown"
        if line.counts.total() > line.cases > 0:
            many += f", {formatting.counted(line.counts.total(), 'row')}"
        counts = f"{symbols.dot}{_counts(line)}" if _counts(line) else ""
        shown += [("dim", visible(place, newlines=False)), ("text", ""), ("text", f"{many}{counts}")]
    shown += failing
    if suite.description:
        shown += [("text", ""), ("text", clip(visible(suite.description), TEXT_LIMIT))]
    if suite.problems:
        shown += [("text", ""), ("label", "Problems")]
        shown += [
            ("bad" if problem.level == "error" else "warn", clip(visible(str(problem), newlines=False), 600))
            for problem in suite.problems[:LIST_LIMIT]
        ]
    agents = sorted({case.agent for case in suite.cases if case.agent})
    if agents:
        shown += [
            ("text", ""),
            ("label", "Agents"),
            ("text", clip(visible(", ".join(agents), newlines=False), 600)),
        ]
    return shown


def _counts(line: TreeLine) -> str:
    order = ("failed", "error", "running", "retrying", "waiting", NOT_RUN, "passed", "cancelled", "skipped")
    parts = [formatting.outcomes(line.counts[status], status) for status in order if line.counts[status]]
    if line.counts[""]:
        parts.append(f"{line.counts['']:,} never run")
    return ", ".join(parts)
