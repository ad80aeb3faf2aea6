"""An answer accepted in a suite of the guide's format (start_to_agent)."""

from __future__ import annotations

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_values import EditedValue, answer_to, drop, nearest, only, plain, put
from tui_eval.yaml.yaml_edit import EditError, YamlText


def guide(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """The suite's text with one assertion of the guide's format as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    document = YamlText(text)
    kind = verdict.type
    wanted = str(verdict.expected)
    listed = kind in ("should_contain", "should_not_contain", "tools_used")
    found = only(
        [
            one
            for one in document.nodes()
            if one.line == verdict.line
            and len(one.path) > 3
            and one.path[3] == kind
            and (not listed or (one.node.id == "scalar" and plain(one.node) == wanted))
            and (listed or len(one.path) == 4)
        ],
        f"{kind} {wanted!r}",
    )
    if kind == "should_contain":
        return put(document, found, nearest(wanted, answer_to(attempt, verdict)))
    if kind == "should_not_contain":
        return drop(document, found) if len(found.path) > 4 else put(document, found, [])
    if kind == "tools_used":
        return put(document, found, _other_tool(case, verdict, attempt))
    if verdict.actual is None:
        raise EditError("the agent said nothing of it")
    return put(document, found, verdict.actual)


def _other_tool(case: Case, verdict: Verdict, attempt: Attempt) -> str:
    """The one tool that was called and that nothing else asks for."""
    used = verdict.actual if isinstance(verdict.actual, list) else []
    expected = {str(other.value) for other in case.assertions if other.type == verdict.type}
    free = [str(name) for name in used if str(name) not in expected]
    if len(free) != 1:
        called = ", ".join(map(str, used)) or "none"
        raise EditError(f"{verdict.expected} was not called; called: {called}: edit the case (e)")
    return free[0]
