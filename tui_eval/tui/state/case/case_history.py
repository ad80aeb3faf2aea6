"""A case over its runs: each attempt in a line, what changed between them, ranges of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from msgspec import Struct, field

from tui_eval.model import JUDGED, Verdict
from tui_eval.store.imported.results_entries import case_edited
from tui_eval.store.linked import Placed
from tui_eval.store.notes import HumanNote
from tui_eval.store.schema import AttemptRow
from tui_eval.tui.state.text.lines import Line, Span


class PastAttempt(Struct, eq=False):
    """A finished attempt of a case. `answer` is the reply's text (None: not read), `content_hash` that of the
    case as it was, `compat` the rules that it was judged by; `judges` the models whose judgement it has, with
    their verdicts."""

    run_id: str
    row: AttemptRow
    agent: str = ""
    model: str | None = None
    content_hash: str = ""
    answer: str | None = None
    note: HumanNote | None = None
    compat: str = ""

    @property
    def tokens(self) -> int | None:
        """Tokens in and out; None where the agent did not say."""
        parts = (self.row.input_tokens, self.row.output_tokens)
        return None if parts == (None, None) else (parts[0] or 0) + (parts[1] or 0)


class CasePast(Struct, eq=False):
    """What is known of a case across runs: attempts, oldest first, and for each judge's model how often
    people agreed with it, and of how many."""

    attempts: list[PastAttempt] = field(default_factory=list)
    agreement: dict[str, tuple[int, int]] = field(default_factory=dict)

    def without(self, run_id: str, attempt_ref: int) -> CasePast:
        """The same without one attempt: what it is compared with."""
        others = [one for one in self.attempts if (one.run_id, one.row.id) != (run_id, attempt_ref)]
        return CasePast(others, self.agreement)

    def answers(self) -> list[PastAttempt]:
        """Each answer once, where it was first given, by its newest judgement that is a result: judging an
        answer again adds no attempt, no tokens and no time."""
        found: dict[str, PastAttempt] = {}
        for one in self.attempts:
            name = Placed(one.run_id, one.row).answer
            if name not in found or one.row.outcome in JUDGED:
                found[name] = one
        return list(found.values())

    def values(self, budget: str) -> list[float]:
        """The past numbers that a budget is about, passed and failed attempts alike (not what was cut short), oldest
        first; of an answer once, as it took them where it was given."""
        name = budget_of(budget)
        if name is None:
            return []
        firsts: dict[str, PastAttempt] = {}
        for one in self.attempts:
            if one.row.outcome in JUDGED:
                firsts.setdefault(Placed(one.run_id, one.row).answer, one)
        return [
            float(value)
            for one in firsts.values()
            if (value := one.tokens if name == "tokens" else getattr(one.row, name)) is not None
        ]


_BUDGETS = {
    "max_input_tokens": "input_tokens",
    "max_output_tokens": "output_tokens",
    "max_tool_calls": "tool_calls",
    "latency": "duration_ms",
    "cost": "price",
}


def budget_of(kind: str) -> str | None:
    """The column of an attempt that a budget assertion is about; None for other assertions."""
    kind = kind.removeprefix("not-")
    if kind in ("usage.input_tokens", "usage.output_tokens"):
        return kind.removeprefix("usage.")
    return _BUDGETS.get(kind)


class Range(Struct, frozen=True):
    """Numbers in short: the middle one, where most lie, and how many there are."""

    middle: float
    low: float
    high: float
    count: int


def usual(values: Sequence[float]) -> Range | None:
    """Median and the range of most (from the 10th to the 90th percentile); None below three values."""
    if len(values) < 3:
        return None
    ordered = sorted(values)
    last = len(ordered) - 1
    return Range(median(ordered), ordered[round(last * 0.1)], ordered[round(last * 0.9)], len(ordered))


def rules_spans(compat: str, before: str = "") -> Line:
    """The mark of a verdict that the original tool's rules gave (`compat: reference`), which may be another than the
    documented one; nothing for others."""
    return (Span(f"{before}reference", "note"),) if compat == "reference" else ()


def edited_spans(edited: bool) -> Line:
    """The mark of a verdict on a case that is otherwise by now: what stands there was judged by the case of then."""
    return (Span(" · edited since", "note"),) if edited else ()


def changes(attempts: Sequence[PastAttempt]) -> list[str]:
    """For each attempt what is not as in the one before: `case`, `agent`, `model`, `answer`."""
    found: list[str] = []
    for index, one in enumerate(attempts):
        words: list[str] = []
        before = attempts[index - 1] if index else None
        if before is not None:
            if case_edited(before.content_hash, one.content_hash):
                words.append("case")
            if one.agent != before.agent:
                words.append("agent")
            if one.model != before.model:
                words.append("model")
            if _other_answer(one, before):
                words.append("answer")
        found.append(", ".join(words))
    return found


def _other_answer(one: PastAttempt, before: PastAttempt) -> bool:
    """Whether the answers differ: by their texts where both were read, else by their fingerprints."""
    if one.answer is not None and before.answer is not None:
        return one.answer != before.answer
    return bool(one.row.answer and before.row.answer) and one.row.answer != before.row.answer


def agreements(judged: Iterable[tuple[Sequence[Verdict], str]]) -> dict[str, tuple[int, int]]:
    """How often people agree with each judge.

    Args:
        judged: Of every attempt that a person called `right` or `wrong`: its verdicts and that word.

    Returns:
        By the judge's model: how often the person said the same as it, and of how many verdicts.
    """
    found: dict[str, tuple[int, int]] = {}
    for verdicts, word in judged:
        for verdict in verdicts:
            if not verdict.judge or verdict.passed is None:
                continue
            model = str(verdict.judge.get("model") or "the judge")
            agreed, count = found.get(model, (0, 0))
            found[model] = (agreed + (verdict.passed == (word == "right")), count + 1)
    return found


_STEPS = " ▁▂▃▄▅▆▇█"


def columns(values: Sequence[float | None], height: int, free: int = 0) -> list[str]:
    """A plot of block characters, one column per value, the highest line first; a gap where there is
    no value. The scale begins at 0; so many eighths of a line stay `free` above the largest value."""
    top = max((value for value in values if value is not None), default=0.0)
    lines = [""] * height
    for value in values:
        eighths = 0 if value is None or top <= 0 else max(round(value / top * (height * 8 - free)), 1)
        for line in range(height):
            filled = min(max(eighths - (height - 1 - line) * 8, 0), 8)
            lines[line] += _STEPS[filled] if value is not None else " "
    return lines


def note_spans(note: HumanNote | None, text: str) -> Line:
    """A note's words in the colour of what they say."""
    if note is None or not text:
        return ()
    return (Span(text, {"right": "passed", "wrong": "failed"}.get(note.verdict or "", "note")),)


def note_words(note: HumanNote | None) -> str:
    """A note in short: `★ right: cites the wrong policy`."""
    if note is None:
        return ""
    said = " ".join(part for part in ("★" if note.star else "", note.verdict or "") if part)
    return f"{said}: {note.text}" if said and note.text else said or note.text


def note_sign(note: HumanNote | None, star: str = "★") -> str:
    """A note in a few characters: `★ wrong …`, the ellipsis where it has a text."""
    if note is None:
        return ""
    rest = "…" if star == "★" else "..."
    return " ".join(
        part for part in (star if note.star else "", note.verdict or "", rest if note.text else "") if part
    )
