"""An answer accepted in a nao test: its SQL, its tool calls."""

from __future__ import annotations

from typing import Any

from tui_eval.agent_query import agent_query
from tui_eval.frames.queries import kept_conclusion
from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_values import EditedValue, only, plain, put
from tui_eval.yaml.yaml_edit import EditError, YamlText

_NOTES = {
    "query": "the answer has the rows of this query: with it the case passes",
    "neither": "",
}
"""What a person has to know of the agent's query before it is the expected one, by what was concluded of it."""


def nao(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A nao test with its SQL, or one expected tool call, as the agent had it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    document = YamlText(text)
    if verdict.type == "sql":
        own = agent_query(attempt)
        if own is None:
            raise EditError("the agent's own SQL is not in the record: edit the case (e)")
        query, concluded = own.sql, kept_conclusion(attempt.data) if attempt.data is not None else None
        if concluded is not None and concluded.blame == "retold":
            raise EditError(
                "the agent's own query gives the expected rows, its answer retold them wrongly: the case is right"
            )
        if concluded is not None and concluded.blame == "both":
            raise EditError(
                "the answer has other rows than the agent's own query gives: with it the case would still fail"
            )
        found = document.at("sql")
        place = only([found] if found else [], "sql")
        if " ".join(plain(place.node).split()) == " ".join(query.split()):
            raise EditError(
                "the agent's own query is this one already; the rows of its answer differ from what it gives"
            )
        edited = put(document, place, query)
        note = _NOTES.get(concluded.blame, concluded.line) if concluded is not None else ""
        return edited._replace(note="; ".join(filter(None, (edited.note, note))))
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
