"""What is written into a nao test: an answer that was accepted (its SQL, its tool calls), a conversation that
was saved."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tui_eval.agent_query import agent_query
from tui_eval.frames.queries import kept_conclusion
from tui_eval.model import Assertion, Attempt, Case, Verdict
from tui_eval.suites.accepted_values import EditedValue, only, plain, put
from tui_eval.suites.saved_talk import QUOTED, SavedCall, Talk, keyed, tools_of
from tui_eval.yaml.yaml_edit import EditError, YamlText, block, flow, scalar

_NOTES = {
    "query": "the answer has the rows of this query: with it the case passes",
    "neither": "",
}
"""What a person has to know of the agent's query before it is the expected one, by what was concluded of it."""


def accepted(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
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


_LONGEST_ARGUMENT = 60


def saved_case(talk: Talk) -> str:
    """A nao test."""
    lines = [f"name: {scalar(talk.name, QUOTED)}"]
    asked = [turn.asked for turn in talk.turns]
    if len(asked) > 1:
        lines.append(f"# a nao test has one prompt: these are the messages of {len(asked)} turns")
    prompt = "\n\n".join(asked)
    lines.append(f"prompt: {scalar(prompt, QUOTED)}")
    if talk.database:
        lines.append(f"database: {scalar(talk.database, QUOTED)}")
    if talk.case is not None and talk.case.comparison:
        lines.append(f"comparison: {flow(talk.case.comparison)}")
    if talk.kept():
        return "\n".join([*lines, *_kept(talk.kept())]) + "\n"
    if talk.sql:
        lines += ["# the agent's own query: look whether it is right", f"sql: {scalar(talk.sql, QUOTED)}"]
        if "\n" in talk.sql:
            lines[-1] = f"sql: {block(talk.sql, 2)}"
    else:
        lines.append("# sql: the query whose rows the answer must equal")
    calls = [_nao_call(name, talk.calls) for name in tools_of(talk.calls)]
    return "\n".join([*lines, *(["assertions:", *calls] if calls else [])]) + "\n"


def _kept(assertions: Sequence[Assertion]) -> list[str]:
    """The case's own query and tool calls."""
    lines: list[str] = []
    calls: list[str] = []
    for one in assertions:
        if one.type == "sql":
            lines += keyed({"sql": one.value}, 0)
        else:
            calls.append(f"  - type: {scalar(one.type)}")
            calls += keyed(one.value if isinstance(one.value, dict) else {}, 4)
    return [*lines, *(["assertions:", *calls] if calls else [])]


def _nao_call(name: str, calls: Sequence[SavedCall]) -> str:
    first = next(call for call in calls if call.name == name)
    lines = ["  - type: tool_call", f"    tool: {scalar(name, QUOTED)}"]
    given = first.arguments if isinstance(first.arguments, dict) else {}
    kept = {
        key: value
        for key, value in given.items()
        if isinstance(value, bool | int | float)
        or (isinstance(value, str) and len(value) <= _LONGEST_ARGUMENT)
    }
    if kept:
        lines.append("    args:")
        lines += [f"      {scalar(str(key), QUOTED)}: {scalar(value, QUOTED)}" for key, value in kept.items()]
    return "\n".join(lines)
