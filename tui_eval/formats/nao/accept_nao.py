"""An answer accepted in a nao test: its SQL, its tool calls."""

from __future__ import annotations

from typing import Any

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_values import EditedValue, only, plain, put
from tui_eval.yaml.yaml_edit import EditError, YamlText


def nao(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A nao test with its SQL, or one expected tool call, as the agent had it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    document = YamlText(text)
    if verdict.type == "sql":
        query = agents_sql(attempt)
        if query is None:
            raise EditError("the agent's own SQL is not in the record: edit the case (e)")
        found = document.at("sql")
        place = only([found] if found else [], "sql")
        if " ".join(plain(place.node).split()) == " ".join(query.split()):
            raise EditError(
                "the agent's own query is this one already; the rows of its answer differ from what it gives"
            )
        return put(document, place, query)
    item = next(
        (one for one in document.nodes() if one.path[:1] == ("assertions",) and len(one.path) == 2
         and one.line == verdict.line and one.node.id == "mapping"), None
    )  # fmt: skip
    value = verdict.expected if isinstance(verdict.expected, dict) else {}
    tool, args = value.get("tool"), value.get("args")
    calls = [entry for entry in attempt.transcript if entry.kind == "tool_call" and entry.name == tool]
    if item is None or not calls:
        raise EditError(f"{tool} was not called: edit the case (e)")
    if not isinstance(args, dict):
        found = document.at(*item.path, "min_count")
        return put(document, only([found] if found else [], "min_count"), len(calls))
    best = max(calls, key=lambda entry: _alike(args, entry.arguments))
    given = best.arguments if isinstance(best.arguments, dict) else {}
    found = document.at(*item.path, "args")
    if found is None or not given:
        raise EditError(f"{tool} was called without arguments: edit the case (e)")
    # Only what was expected of the arguments is asked for again.
    wanted = {key: given[key] for key in args if key in given} or given
    wrong = [key for key in args if key in given and args[key] != given[key]]
    if len(wrong) == 1 and len(wanted) == len(args):
        single = document.at(*found.path, wrong[0])
        if single is not None and single.node.id == "scalar":
            return put(document, single, given[wrong[0]])
    return put(document, found, wanted)


def _alike(args: dict[str, Any], given: Any) -> int:
    return sum(given.get(key) == value for key, value in args.items()) if isinstance(given, dict) else -1


def agents_sql(attempt: Attempt) -> str | None:
    """The SQL behind the agent's answer: what its backend verified, else the last query that it ran."""
    if attempt.data is not None and attempt.data.verification_sql:
        return attempt.data.verification_sql
    for entry in reversed(attempt.transcript):
        if entry.kind != "tool_call" or "sql" not in entry.name.lower():
            continue
        if isinstance(entry.arguments, dict):
            for key in ("sql_query", "sql", "query", "statement"):
                if isinstance(entry.arguments.get(key), str):
                    return entry.arguments[key]
    return None
