"""Sums, averages and pass metrics of results, as nao-core 0.3.29 computes them (formats/nao.md 6)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tui_eval.guard import figures

Result = dict[str, Any]
"""One of `results[]`, as far as its figures go."""
_JUDGING = {"judge_tokens": "tokens", "judge_cost": "cost"}
"""What is summed of a result's `judging`."""
_KNOWN = {"judge_cached": "cached", "judge_saved": "saved"}
"""The same of judges' answers that were in the cache."""
_MONEY = {"saved", "judge_cost", "judge_saved"}
"""Sums of money of our own. `total_cost` is nao's, which rounds it for each model alone: its files come back
as they were."""


class _Totals:
    """Sums over attempts; `failed` counts everything that did not pass."""

    def __init__(self) -> None:
        self.attempts = self.passed = 0
        self._sums: dict[str, Any] = dict.fromkeys(
            ("tokens", "cost", "duration_ms", "tool_call_count", "cached", "saved", *_JUDGING, *_KNOWN), 0
        )
        self._judged = False

    def add(self, result: Result) -> None:
        """One attempt more; of its figures those that are known."""
        self.attempts += 1
        self.passed += bool(result.get("passed"))
        for key in self._sums:
            self._sums[key] += result.get(key) or 0
        judging = result.get("judging")
        if judging:
            self._judged = True
            for key, name in _JUDGING.items():
                self._sums[key] += judging[name] or 0
            for key, name in _KNOWN.items():
                self._sums[key] += judging.get(name) or 0

    def entry(self) -> dict[str, Any]:
        """As nao's `summary`. A sum is 0 where nothing is known, and None where it is no figure that other
        programs can hold."""
        milliseconds, calls = self._sum("duration_ms"), self._sum("tool_call_count")
        unknown_time, unknown_calls = milliseconds is None, calls is None
        total = self.attempts
        return {
            "total": total,
            "passed": self.passed,
            "failed": total - self.passed,
            "total_tokens": self._sum("tokens"),
            "total_cost": self._sum("cost"),
            "total_duration_ms": milliseconds,
            "total_duration_s": None if unknown_time else round(milliseconds / 1000, 2),
            "total_tool_calls": calls,
            "avg_duration_ms": None if unknown_time else float(round(milliseconds / total)) if total else 0,
            "avg_tool_calls": None if unknown_calls else round(calls / total, 1) if total else 0,
        }

    def judges(self) -> dict[str, Any]:
        """The sums of what judges took; empty where none was asked."""
        asked = {f"total_{key}": self._sum(key) for key in _JUDGING} if self._judged else {}
        known = {f"total_{key}": self._sum(key) for key in _KNOWN} if self._sums["judge_cached"] else {}
        return asked | known

    def cached(self) -> dict[str, Any]:
        """How many attempts have answers from the cache, and what those cost when they were given; empty
        where none has."""
        return {f"total_{key}": self._sum(key) for key in ("cached", "saved")} if self._sums["cached"] else {}

    def _sum(self, key: str) -> Any:
        found, name = self._sums[key], f"{key} of all attempts"
        if isinstance(found, int):
            return figures.count(found, name)
        return figures.amount(figures.rounded_sum(found) if key in _MONEY else found, name)


class _Group(msgspec.Struct, gc=False):
    """The attempts of one test with one model."""

    name: str
    model: str
    k: int = 0
    passed: int = 0

    def entry(self) -> dict[str, Any]:
        """As nao's `pass_metrics` has it: the share that passed, whether any did, whether all did."""
        return {
            "name": self.name,
            "model": self.model,
            "k": self.k,
            "pass_at_1": self.passed / self.k,
            "pass_at_k": 1.0 if self.passed else 0.0,
            "pass_hat_k": 1.0 if self.passed == self.k else 0.0,
        }


class Metrics:
    """What nao says of all results and of each model's. They are added one by one, and of each only its figures are
    kept."""

    def __init__(self) -> None:
        self._all = _Totals()
        self._models: dict[str, _Totals] = {}
        self._groups: dict[tuple[str | int, str], _Group] = {}

    def add(self, result: Result, column: int | None = None) -> None:
        """One result more. The attempts of a case with an agent and a model have a number in common, their
        `column`: they are one test, whatever models they say that they were answered by. Without it the name
        is that, as in nao."""
        model = str(result.get("model") or _UNKNOWN)
        for totals in (self._all, self._models.setdefault(model, _Totals())):
            totals.add(result)
        name = str(result["name"] or "")
        key = (name if column is None else column), model
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(name, model)
        group.k += 1
        group.passed += bool(result.get("passed"))

    def summary(self) -> dict[str, Any]:
        """Sums over all; `total_judge_tokens` and `total_judge_cost` are there where judges were asked, what was in the
        cache (`total_cached`, `total_saved`, `total_judge_cached`, `total_judge_saved`) where anything was."""
        return self._all.entry() | self._all.cached() | self._all.judges()

    def by_model(self) -> list[dict[str, Any]]:
        """One entry a model: best pass rate first, then cheapest, then by name."""
        entries: list[dict[str, Any]] = []
        groups: dict[str, list[_Group]] = {}
        for group in self._sorted():
            groups.setdefault(group.model, []).append(group)
        for model, totals in self._models.items():
            sums = totals.entry()
            entries.append(
                {
                    "model": model,
                    "total": sums["total"],
                    "passed": sums["passed"],
                    "failed": sums["failed"],
                    "pass_rate": round(sums["passed"] / sums["total"] * 100, 1),
                    "total_tokens": sums["total_tokens"],
                    "total_cost": None if sums["total_cost"] is None else round(sums["total_cost"], 6),
                    **totals.cached(),
                    "total_duration_ms": sums["total_duration_ms"],
                    "avg_duration_ms": sums["avg_duration_ms"],
                    "total_tool_calls": sums["total_tool_calls"],
                    "avg_tool_calls": sums["avg_tool_calls"],
                    "k": _most(groups[model]),
                    **_means(groups[model]),
                }
            )
        entries.sort(
            key=lambda entry: (-entry["pass_rate"], _last_if_unknown(entry["total_cost"]), entry["model"])
        )
        return entries

    def pass_metrics(self) -> dict[str, Any]:
        """pass@1 (share passed), pass@k (any), pass^k (all) by group, made one after the other, and their
        plain means."""
        groups = self._tests()
        return {
            "k": _most(groups),
            "aggregate": _means(groups),
            "by_test": (group.entry() for group in groups),
        }

    def _sorted(self) -> list[_Group]:
        return sorted(self._groups.values(), key=_by_name)

    def _tests(self) -> list[_Group]:
        found: dict[tuple[str | int, str], _Group] = {}
        for (test, model), group in self._groups.items():
            whole = found.setdefault(
                (test, "") if isinstance(test, int) else (test, model), _Group(group.name, model)
            )
            whole.k += group.k
            whole.passed += group.passed
            if whole.model == _UNKNOWN:  # an attempt that erred before anybody answered
                whole.model = model
        return sorted(found.values(), key=_by_name)


_UNKNOWN = "unknown"


def _by_name(group: _Group) -> tuple[str, str]:
    return group.name, group.model


def _most(groups: Iterable[_Group]) -> int:
    return max((group.k for group in groups), default=0)


def _means(groups: Sequence[_Group]) -> dict[str, float]:
    sums = dict.fromkeys(("pass_at_1", "pass_at_k", "pass_hat_k"), 0.0)
    for group in groups:
        entry = group.entry()
        for name in sums:
            sums[name] += entry[name]
    return {name: number / len(groups) if groups else 0.0 for name, number in sums.items()}


def _last_if_unknown(cost: float | None) -> float:
    return math.inf if cost is None else cost
