"""The state of a case: that of each of its columns, from its results over the runs. Pure.

A column is who a case is asked of: an agent with a model (a promptfoo provider and prompt, a neuro-san connection
are part of the case's id already). Everything that says how a case stands asks here (design.md, Words), so that
nothing hangs on which column ran last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from tui_eval.case_names import without_number
from tui_eval.guard.secrets import MASK
from tui_eval.model import Case
from tui_eval.model_ids import names_model
from tui_eval.store.schema import CaseHistory

BADNESS = (
    "retrying", "running", "failed", "error", "cancelled", "waiting", "skipped", "", "passed",
)  # fmt: skip
"""What a line that stands for several columns shows first: what is at work, then what is worst."""
_RANK = {status: number for number, status in enumerate(BADNESS)}


class Column(NamedTuple):
    """Who is asked; `model` is empty where the agent has none."""

    agent: str
    model: str = ""


Results = Mapping[Column, Sequence[CaseHistory]]
T = TypeVar("T")


def by_content(
    found: Mapping[str, list[CaseHistory]], cases: Iterable[Case], *, by_id: bool = False
) -> Mapping[str, list[CaseHistory]]:
    """The results of cases by their ids, where a secret is masked in one by what was run: cases that differ in nothing
    else are told apart by a number, which is another's where one of them came or went. A result whose content is that
    of none of today's is of the case of its id, unless that went by another then. `by_id`: results under another id are
    left out, for who looks them up by it: such a case is one that never ran."""
    if not any(MASK in case_id for case_id in found):
        return found
    today: dict[str, list[Case]] = {}
    for case in cases:
        if MASK in case.case_id:
            today.setdefault(without_number(case.case_id), []).append(case)
    known: dict[str, list[CaseHistory]] = {}
    for case_id, results in found.items():
        if MASK in case_id:
            known.setdefault(without_number(case_id), []).extend(results)
    own = dict(found)
    for name, those in today.items():
        results = sorted(known.get(name, ()), key=lambda one: (one.finished_at, one.run_id), reverse=True)
        count = Counter(case.content_hash for case in those)
        for case in those:
            alone = count[case.content_hash] == 1
            same = [
                one
                for one in results
                if one.content_hash == case.content_hash and (alone or one.case_id == case.case_id)
            ]
            moved = bool(same) and all(one.case_id != case.case_id for one in same)
            own[case.case_id] = [
                one
                for one in results
                if (one in same and not (by_id and one.case_id != case.case_id))
                or (one.case_id == case.case_id and one.content_hash not in count and not moved)
            ]
    return own


def column_of(result: CaseHistory) -> Column:
    """The column that a result is of."""
    return Column(result.agent, result.model or "")


def by_column(history: Sequence[CaseHistory]) -> dict[Column, list[CaseHistory]]:
    """A case's results (newest first) by column, without columns that are no more: those that nobody named, and
    that the newest run by the suite's own agents did not ask (its file or configuration names another now)."""
    found: dict[Column, list[CaseHistory]] = {}
    for result in history:
        found.setdefault(column_of(result), []).append(result)
    if len(found) < 2:
        return found
    found = _without_providers(found)
    own = next((result.run_id for result in history if result.asked == "own"), None)
    if own is None:
        return found
    since = {column_of(result) for result in history if result.run_id >= own}
    return {
        column: results
        for column, results in found.items()
        if column in since or any(result.asked == "named" for result in results)
    }


def _without_providers(found: dict[Column, list[CaseHistory]]) -> dict[Column, list[CaseHistory]]:
    """Columns whose model earlier versions recorded with its provider (`openai:M`), as that of `M` where
    there is one."""
    made: dict[Column, list[CaseHistory]] = {}
    for column, results in found.items():
        plain = next(
            (
                one
                for one in found
                if one.agent == column.agent and names_model(column.model, one.model) and one != column
            ),
            column,
        )
        made.setdefault(plain, []).extend(results)
    return {
        column: sorted(results, key=lambda one: (one.finished_at, one.run_id), reverse=True)
        for column, results in made.items()
    }


def over_runs(results: Sequence[CaseHistory]) -> list[CaseHistory]:
    """What a column's results (newest first) come to run by run, oldest first: a judgement stands where the run
    stands whose answers it judges, in place of what was said of them before."""
    judgements: dict[str, CaseHistory] = {}
    for result in results:
        if result.judges and result.outcome != "cancelled":
            judgements.setdefault(result.judges, result)
    asked = {result.run_id for result in results if not result.judges}
    return [
        judgements.get(result.run_id, result)
        for result in reversed(results)
        if not result.judges or (result.judges not in asked and judgements.get(result.judges) is result)
    ]


def is_own(results: Iterable[CaseHistory]) -> bool:
    """Whether a column is the suite's own: never named by who asked."""
    return all(result.asked != "named" for result in results)


def flaky(result: CaseHistory) -> bool:
    """Whether some of its attempts passed and some did not."""
    return 0 < result.passed < result.judged


def worst(statuses: Mapping[T, str]) -> T | None:
    """The key whose status a line that stands for all of them shows; the first of those that are alike."""
    return min(statuses, key=lambda key: _RANK.get(statuses[key], 0), default=None)


def not_passed(history: Sequence[CaseHistory]) -> list[Column]:
    """The columns whose newest result is not a pass: what `--failed` runs again."""
    return [column for column, results in by_column(history).items() if results[0].outcome != "passed"]


def runs_again(history: Sequence[CaseHistory], column: Column) -> bool:
    """Whether `--failed` asks a column that was named: it did not pass there, or did not run there and did not
    pass elsewhere."""
    results = [result for result in history if column_of(result) == column]
    return results[0].outcome != "passed" if results else bool(not_passed(history))


def newest_of(history: Sequence[CaseHistory], agent: str | None, model: str | None) -> CaseHistory | None:
    """The newest result of a column; of the one that stands for the case where none is named or known."""
    same = (r for r in history if r.agent == agent and (model is None or (r.model or "") == model))
    found = next(same, None) if agent else None
    if found is not None:
        return found
    columns = by_column(history)
    shown = worst({column: results[0].outcome for column, results in columns.items()})
    return columns[shown][0] if shown is not None else None


def column_names(columns: Collection[Column]) -> dict[Column, str]:
    """What tells columns from each other: the model where the agent is the same, the agent where the model is."""
    agents = {column.agent for column in columns}
    models = {column.model for column in columns}
    names: dict[Column, str] = {}
    for column in columns:
        parts = [column.agent] if len(agents) > 1 or not column.model else []
        parts += [column.model] if column.model and (len(models) > 1 or not parts) else []
        names[column] = " ".join(parts)
    return names


def arguments(case_id: str, column: Column, options: Mapping[str, Any]) -> list[str]:
    """The words of the command line that ask a case in this column again; `options` are those of the run that
    asked it (`RunInfo.options`). Nothing where the suite's own agent and model are meant."""
    agents, models = list(options.get("agents") or ()), list(options.get("models") or ())
    for cell in options.get("cells") or ():
        if not isinstance(cell, dict) or cell.get("case_id") != case_id or cell.get("own"):
            continue
        if (cell.get("agent"), cell.get("model") or "") == column:
            agents, models = [column.agent], [column.model] if column.model else []
    if column.agent in agents:
        agents = [column.agent]
    models = [model for model in models if names_model(str(model), column.model)][:1] or models
    words = [word for agent in agents for word in ("--agent", str(agent))]
    return words + [word for model in models for word in ("-m", str(model))]
