"""Sums, averages and pass metrics of results, as nao-core 0.3.29 computes them (formats/nao.md 6).

Every function takes the `results[]` of a results file: dictionaries with name, model, passed,
tokens, cost (USD), duration_ms and tool_call_count, any of the figures None.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Result = dict[str, Any]


def _sum(results: Iterable[Result], key: str) -> Any:
    return sum(result.get(key) or 0 for result in results)


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """Totals over attempts; `failed` counts everything that did not pass."""
    total = len(results)
    passed = sum(bool(result.get("passed")) for result in results)
    milliseconds = _sum(results, "duration_ms")
    calls = _sum(results, "tool_call_count")
    return {
        "total": total,
        "passed": passed,
        "failed": total - passed,
        "total_tokens": _sum(results, "tokens"),
        "total_cost": _sum(results, "cost"),
        "total_duration_ms": milliseconds,
        "total_duration_s": round(milliseconds / 1000, 2),
        "total_tool_calls": calls,
        "avg_duration_ms": float(round(milliseconds / total)) if total else 0,
        "avg_tool_calls": round(calls / total, 1) if total else 0,
    }


def by_model(results: Sequence[Result], key: Sequence[str] = ("name", "model")) -> list[dict[str, Any]]:
    """One entry a model: best pass rate first, then cheapest, then by name. `key` as in `pass_metrics`."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        groups.setdefault(str(result.get("model") or "unknown"), []).append(result)
    entries: list[dict[str, Any]] = []
    for model, members in groups.items():
        figures = summary(members)
        metrics = pass_metrics(members, key)
        entries.append(
            {
                "model": model,
                "total": figures["total"],
                "passed": figures["passed"],
                "failed": figures["failed"],
                "pass_rate": round(figures["passed"] / figures["total"] * 100, 1),
                "total_tokens": figures["total_tokens"],
                "total_cost": round(figures["total_cost"], 6),
                "total_duration_ms": figures["total_duration_ms"],
                "avg_duration_ms": figures["avg_duration_ms"],
                "total_tool_calls": figures["total_tool_calls"],
                "avg_tool_calls": figures["avg_tool_calls"],
                "k": metrics["k"],
                **metrics["aggregate"],
            }
        )
    entries.sort(key=lambda entry: (-entry["pass_rate"], entry["total_cost"], entry["model"]))
    return entries


def pass_metrics(results: Sequence[Result], key: Sequence[str] = ("name", "model")) -> dict[str, Any]:
    """pass@1 (share passed), pass@k (any), pass^k (all) by group, and their plain means.

    `key` names what makes a group; `name` and `model` are reported of each.
    """
    groups: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        group = tuple(str(result.get(part) or ("unknown" if part == "model" else "")) for part in key)
        groups.setdefault(group, []).append(result)
    by_test: list[dict[str, Any]] = []
    for members in groups.values():
        passed = [bool(result.get("passed")) for result in members]
        by_test.append(
            {
                "name": str(members[0]["name"]),
                "model": str(members[0].get("model") or "unknown"),
                "k": len(passed),
                "pass_at_1": sum(passed) / len(passed),
                "pass_at_k": 1.0 if any(passed) else 0.0,
                "pass_hat_k": 1.0 if all(passed) else 0.0,
            }
        )
    by_test.sort(key=lambda entry: (entry["name"], entry["model"]))
    count = len(by_test)
    aggregate = {
        name: sum(entry[name] for entry in by_test) / count if count else 0.0
        for name in ("pass_at_1", "pass_at_k", "pass_hat_k")
    }
    return {
        "k": max((entry["k"] for entry in by_test), default=0),
        "aggregate": aggregate,
        "by_test": by_test,
    }
