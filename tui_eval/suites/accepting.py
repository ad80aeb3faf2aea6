"""Where an answer is right and the case is wrong: the change to the suite file that makes it pass.

`propose` only reads. A change touches the characters of one value; everything else of the file stays as it
is. What cannot be changed without guessing is said in `unable` instead.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_cells import cell_changed
from tui_eval.suites.accepted_texts import nearest
from tui_eval.suites.yaml_edit import EditError, Found, YamlText

_MARGIN = 1.2
"""A budget of time or money is set a fifth above what was used, as it varies from run to run."""

EQUALS = frozenset({"equals", "is-equal"})
HOLDS = frozenset({"contains", "icontains", "starts-with"})
LISTS = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
BUDGETS = frozenset({"latency", "cost"})


class Change(NamedTuple):
    """One value of a file that would become another. `before` and `after` are shown to people, `path` is
    from the project root, `line` counts from 1, `diff` is unified."""

    path: str
    line: int
    before: str
    after: str
    diff: str


class Proposal(NamedTuple):
    """What accepting an attempt comes to: its changes in order, what cannot be changed and why, and for
    each file (absolute) its text before and after all changes."""

    changes: list[Change]
    unable: list[str]
    texts: dict[str, tuple[str, str]]

    @property
    def diff(self) -> str:
        """All changes as one unified diff; they are all in the case's own file."""
        return "".join(diff_of(self.changes[0].path, old, new) for old, new in self.texts.values())


def propose(case: Case, attempt: Attempt, root: Path) -> Proposal:
    """The changes after which this attempt's answer passes.

    Args:
        case: the case as its file has it now.
        attempt: the recorded answer, with what was judged of it.
        root: the project root.
    """
    proposal = Proposal([], [], {})
    name = case.file or case.suite
    path = Path(os.path.abspath(root / name))
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        proposal.unable.append(f"{name}: {getattr(error, 'strerror', None) or 'not UTF-8'}")
        return proposal
    newline = "\r\n" if "\r\n" in text else "\n"
    text = old = text.replace("\r\n", "\n")
    editor = _editor(path, case)
    lines = _lines_now(case)
    # From the end, so that the lines before keep their numbers.
    placed = [msgspec.structs.replace(v, line=lines.get(_key(v), v.line)) for v in attempt.verdicts]
    for verdict in sorted(placed, key=lambda verdict: -verdict.line):
        if verdict.passed is not False or verdict.type in ("assert-set", "suite"):
            continue
        try:
            new, before, after, line = editor(text, case, verdict, attempt)
        except EditError as why:
            proposal.unable.append(f"{verdict.type}: {why}")
            continue
        if new == text:
            continue
        proposal.changes.append(Change(name, line, before, after, diff_of(name, text, new)))
        text = new
    proposal.changes.sort(key=lambda change: change.line)
    if text != old:
        proposal.texts[str(path)] = (old.replace("\n", newline), text.replace("\n", newline))
    return proposal


def _lines_now(case: Case) -> dict[tuple[str, str, int | None], int]:
    """Where the case's assertions stand now; the file may have changed since they were judged."""
    found: dict[tuple[str, str, int | None], int] = {}
    twice: set[tuple[str, str, int | None]] = set()
    listed = [(None, one) for one in case.assertions]
    listed += [(number, one) for number, turn in enumerate(case.turns, 1) for one in turn.assertions]
    for number, one in listed:
        key = (one.type, _shown(None if one.value is msgspec.UNSET else one.value), one.turn or number)
        (twice.add(key) if key in found else found.__setitem__(key, one.line))
    return {key: line for key, line in found.items() if key not in twice and line}


def _key(verdict: Verdict) -> tuple[str, str, int | None]:
    return verdict.type, _shown(verdict.expected), verdict.turn


def write(proposal: Proposal) -> None:
    """Write the changed files, each at once or not at all.

    Raises:
        EditError: a file has changed since it was read, or cannot be written.
    """
    for name, (old, new) in proposal.texts.items():
        replace_file(Path(name), old, new)


def replace_file(path: Path, old: str | None, new: str) -> None:
    """Write a file in one step, its mode kept. `old` is the text it must still have (None: it must not
    exist).

    Raises:
        EditError: it has another text by now, exists already, or cannot be written.
    """
    try:
        target = Path(os.path.realpath(path))
        if old is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with open(path, "x", encoding="utf-8", newline="") as file:
                file.write(new)
            return
        if target.read_bytes() != old.encode("utf-8"):
            raise EditError(f"{path.name} has changed meanwhile: look at the change again")
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(new)
            os.chmod(temporary, target.stat().st_mode & 0o7777)
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
    except FileExistsError:
        raise EditError(f"{path.name} exists already") from None
    except OSError as error:
        raise EditError(f"{path}: {error.strerror or error}") from None


Edited = tuple[str, str, str, int]
"""The text, what the value was and is, its line."""
Editor = Callable[[str, Case, Verdict, Attempt], Edited]


def _editor(path: Path, case: Case) -> Editor:
    suffix = path.suffix.lower()
    if case.format == "neuro_san":
        return _hocon
    if suffix == ".csv":
        return _csv
    if suffix in (".yaml", ".yml", ".json"):
        return {"nao": _nao, "start_to_agent": _guide}.get(case.format, _promptfoo)

    def refuse(*_: Any) -> Edited:
        raise EditError(f"a {suffix or 'file without ending'} cannot be changed from here: edit it (e)")

    return refuse


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def diff_of(name: str, old: str, new: str) -> str:
    """What changes between two texts of a file, unified."""
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}"
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _answer(attempt: Attempt, verdict: Verdict) -> str:
    reply = next((reply for reply in attempt.replies if reply.turn == verdict.turn), None)
    return (reply.text if reply is not None else attempt.response_text) or ""


# -- YAML: one function for each format


def _put(document: YamlText, found: Found, value: Any) -> Edited:
    before = _plain(found.node)
    return document.replace(found, value), before, _shown(value), found.line


def _drop(document: YamlText, found: Found) -> Edited:
    return document.remove(found), _plain(found.node), "(left out)", found.line


def _plain(node: Any) -> str:
    if node.id == "scalar":
        return str(node.value).replace("\a", "")  # where ruamel keeps a fold
    if node.id == "sequence":
        return "[" + ", ".join(_plain(item) for item in node.value) + "]"
    return "{" + ", ".join(f"{_plain(key)}: {_plain(value)}" for key, value in node.value) + "}"


def _one(found: Sequence[Found], what: str) -> Found:
    if not found:
        raise EditError(f"{what} is not in the file as it was run: edit the case (e)")
    if len({id(one.node) for one in found}) > 1:
        raise EditError(f"{what} stands there more than once: edit the case (e)")
    return found[0]


def _guide(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    document = YamlText(text)
    kind = verdict.type
    wanted = str(verdict.expected)
    listed = kind in ("should_contain", "should_not_contain", "tools_used")
    found = _one(
        [
            one
            for one in document.nodes()
            if one.line == verdict.line
            and len(one.path) > 3
            and one.path[3] == kind
            and (not listed or (one.node.id == "scalar" and one.node.value == wanted))
            and (listed or len(one.path) == 4)
        ],
        f"{kind} {wanted!r}",
    )
    if kind == "should_contain":
        return _put(document, found, nearest(wanted, _answer(attempt, verdict)))
    if kind == "should_not_contain":
        return _drop(document, found) if len(found.path) > 4 else _put(document, found, [])
    if kind == "tools_used":
        return _put(document, found, _other_tool(case, verdict, attempt))
    if verdict.actual is None:
        raise EditError("the agent said nothing of it")
    return _put(document, found, verdict.actual)


def _other_tool(case: Case, verdict: Verdict, attempt: Attempt) -> str:
    """The one tool that was called and that nothing else asks for."""
    used = verdict.actual if isinstance(verdict.actual, list) else []
    expected = {str(other.value) for other in case.assertions if other.type == verdict.type}
    free = [str(name) for name in used if str(name) not in expected]
    if len(free) != 1:
        called = ", ".join(map(str, used)) or "none"
        raise EditError(f"{verdict.expected} was not called; called: {called}: edit the case (e)")
    return free[0]


def _nao(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    document = YamlText(text)
    if verdict.type == "sql":
        query = agents_sql(attempt)
        if query is None:
            raise EditError("the agent's own SQL is not in the record: edit the case (e)")
        found = document.at("sql")
        return _put(document, _one([found] if found else [], "sql"), query)
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
        return _put(document, _one([found] if found else [], "min_count"), len(calls))
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
            return _put(document, single, given[wrong[0]])
    return _put(document, found, wanted)


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


def _promptfoo(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    document = YamlText(text)
    items = [
        one
        for one in document.nodes()
        if one.line == verdict.line and one.node.id == "mapping" and _entry(one.node, "type") == verdict.type
    ]
    item = _one(items, verdict.type)
    return _graded(document, item, verdict, attempt)


def _graded(document: YamlText, item: Found, verdict: Verdict, attempt: Attempt) -> Edited:
    if verdict.type in BUDGETS:
        found = document.at(*item.path, "threshold")
        return _put(document, _one([found] if found else [], "threshold"), _budget(verdict, attempt))
    if verdict.type.removeprefix("not-") in EQUALS | HOLDS | LISTS and verdict.type.startswith("not-"):
        return _drop(document, item)
    found = document.at(*item.path, "value")
    value = _new_value(verdict, attempt)
    target = _one([found] if found else [], "value")
    if target.node.id == "scalar" and "{{" in str(target.node.value):
        raise EditError("the expected text is a template: edit the variable (e)")
    return _put(document, target, value)


def _entry(node: Any, key: str) -> str | None:
    return next((str(v.value) for k, v in node.value if k.value == key and v.id == "scalar"), None)


def _budget(verdict: Verdict, attempt: Attempt) -> float | int:
    used = attempt.cost if verdict.type == "cost" else attempt.duration_ms
    if isinstance(verdict.actual, int | float) and not isinstance(verdict.actual, bool):
        used = verdict.actual
    if used is None:
        raise EditError(f"the {verdict.type} is not in the record")
    if verdict.type == "latency":
        return math.ceil(used * _MARGIN)
    return float(f"{used * _MARGIN:.3g}")


def _new_value(verdict: Verdict, attempt: Attempt) -> Any:
    answer = verdict.actual if isinstance(verdict.actual, str) else _answer(attempt, verdict)
    if verdict.type in EQUALS:
        return (
            attempt.output if attempt.output is not None and not isinstance(verdict.expected, str) else answer
        )
    if verdict.type in HOLDS:
        if verdict.type == "starts-with":
            return answer[: max(len(str(verdict.expected)), 1)]
        return nearest(str(verdict.expected), answer)
    if verdict.type in LISTS and isinstance(verdict.expected, list):
        lowered = answer.lower() if verdict.type.startswith("i") else answer
        return [
            item
            if (str(item).lower() if verdict.type.startswith("i") else str(item)) in lowered
            else nearest(str(item), answer)
            for item in verdict.expected
        ]
    raise EditError("only a person can say what it should ask for: edit the case (e)")


# -- promptfoo's tables


def _csv(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    if verdict.type in BUDGETS or verdict.type not in EQUALS | HOLDS | LISTS:
        raise EditError("only a person can say what the cell should ask for: edit the row (e)")
    value = _new_value(verdict, attempt)
    expected = verdict.expected
    return cell_changed(text, verdict.line, verdict.type, expected, value)


# -- HOCON: the literal on its line, where there is exactly one


def _hocon(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> Edited:
    kind = verdict.type
    if kind == "keywords":
        said = verdict.actual if isinstance(verdict.actual, str) else _answer(attempt, verdict)
        value: Any = nearest(str(verdict.expected), said)
    elif kind == "value":
        value = verdict.actual
    else:
        raise EditError("only a person can say what it should ask for: edit the case (e)")
    if isinstance(value, dict | list) or value is None or isinstance(verdict.expected, dict | list):
        raise EditError("the value is no single text or number: edit the case (e)")
    lines = text.split("\n")
    if not 0 < verdict.line <= len(lines):
        raise EditError("its line is not known: edit the case (e)")
    line = lines[verdict.line - 1]
    spellings = _spellings(verdict.expected)
    spots = [match.span("it") for pattern in spellings for match in re.finditer(pattern, line)]
    if len(set(spots)) != 1:
        where = "more than once" if spots else "not"
        raise EditError(
            f"{_shown(verdict.expected)} stands {where} on line {verdict.line}: edit the case (e)"
        )
    start, end = spots[0]
    new = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and not line[start:end].startswith('"') and re.fullmatch(r"\w+", value):
        new = value
    lines[verdict.line - 1] = line[:start] + new + line[end:]
    return "\n".join(lines), _shown(verdict.expected), _shown(value), verdict.line


def _spellings(expected: Any) -> list[str]:
    quoted = {json.dumps(expected, ensure_ascii=False), json.dumps(expected)}
    if not isinstance(expected, str):
        return [rf"(?<![\w.\"-])(?P<it>{re.escape(text)})(?![\w.\"])" for text in quoted]
    patterns = [rf"(?<![\\\"])(?P<it>{re.escape(text)})(?!\")(?!\s*[:=])" for text in quoted]
    if re.fullmatch(r"\w[\w -]*", expected):
        patterns.append(rf"[\[,:=]\s*(?P<it>{re.escape(expected)})\s*(?=[\],}}\n]|#|//|$)")
    return patterns
