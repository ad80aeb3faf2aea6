"""What is written into a promptfoo suite (a YAML or JSON file, or a table of tests): an answer that was accepted, a
conversation saved as a test."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from tui_eval.formats.promptfoo.promptfoo_words import assertion_of
from tui_eval.model import Assertion, Attempt, Case, Verdict
from tui_eval.suites.accepted_values import (
    BUDGETS,
    EQUALS,
    HOLDS,
    LISTS,
    EditedValue,
    budget,
    drop,
    new_value,
    only,
    plain,
    put,
    shown,
)
from tui_eval.suites.saved_talk import QUOTED, Talk, indented, keyed, listed, with_item
from tui_eval.yaml.yaml_edit import EditError, FoundNode, ValueNotThere, YamlText, scalar
from tui_eval.yaml.yaml_scalars import core_scalar

# -- Changing one `__expected` cell of a CSV text; every other character stays.


class CsvCell(NamedTuple):
    """Where a cell stands in the text, and what it says."""

    start: int
    end: int
    value: str


def rows(text: str, delimiter: str = ",") -> Iterator[tuple[int, list[CsvCell]]]:
    """The records with their first line (from 1); quotes as in RFC 4180."""
    at, line, size = 1 if text.startswith("\ufeff") else 0, 1, len(text)
    while at < size:
        cells: list[CsvCell] = []
        first = line
        while True:
            start = at
            if at < size and text[at] == '"':
                at += 1
                while at < size:
                    if text[at] == '"':
                        if text[at + 1 : at + 2] == '"':
                            at += 2
                            continue
                        at += 1
                        break
                    line += text[at] == "\n"
                    at += 1
            while at < size and text[at] not in (delimiter, "\n"):
                at += 1
            end = at - 1 if at > start and text[at - 1] == "\r" else at
            cells.append(CsvCell(start, end, _value_of_accepted_cells(text[start:end], delimiter)))
            if at < size and text[at] == delimiter:
                at += 1
                continue
            break
        at += 1
        line += 1
        yield first, cells


def cell_changed(text: str, line: int, kind: str, expected: Any, value: Any) -> EditedValue:
    """The text with the `__expected` cell of the record at `line` asking for `value` (None: for nothing).

    Raises:
        EditError: no cell, or more than one, says what was expected.
    """
    from tui_eval.formats.promptfoo.promptfoo_words import ListError
    from tui_eval.formats.promptfoo.read.shorthand import parse

    header: list[CsvCell] | None = None
    for first, cells in rows(text):
        if header is None:
            header = cells
            continue
        if first != line:
            continue
        found: list[CsvCell] = []
        for name, cell in zip(header, cells, strict=False):
            if not name.value.strip().startswith("__expected") or not cell.value.strip():
                continue
            try:
                meant = parse(cell.value.strip())
            except ListError:
                continue
            if meant.type == kind and meant.value == expected:
                found.append(cell)
        if len(found) != 1:
            raise (EditError if found else ValueNotThere)(
                f"row at line {line}: {len(found)} cells say so: edit the row (e)"
            )
        cell = found[0]
        plain = cell.value.strip()
        if value is None:
            return EditedValue(text[: cell.start] + text[cell.end :], plain, "(left out)", line)
        bare = kind == "equals" and plain == expected
        said = ", ".join(map(_listed, value)) if isinstance(value, list) else str(value)
        new = said if bare and parse(said.strip() or " ").type == "equals" else f"{kind}:{said}"
        if new == f"{kind}:{said}" and plain.startswith(f"{kind}: "):
            new = f"{kind}: {said}"
        return EditedValue(text[: cell.start] + _quoted(new) + text[cell.end :], plain, new, line)
    raise ValueNotThere(f"there is no row at line {line} any more: edit the file (e)")


def _value_of_accepted_cells(raw: str, delimiter: str) -> str:
    cells = next(csv.reader(io.StringIO(raw, newline=""), delimiter=delimiter), [])
    return cells[0] if cells else ""


def _listed(item: Any) -> str:
    text = str(item)
    return (
        json.dumps(text, ensure_ascii=False) if "," in text or '"' in text or text != text.strip() else text
    )


def _quoted(value: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="").writerow([value])
    return out.getvalue()


def accepted(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A promptfoo file with one assertion as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    document = YamlText(text)
    items = [
        one
        for one in document.nodes()
        if one.line == verdict.line and one.node.id == "mapping" and _entry(one.node, "type") == verdict.type
    ]
    if verdict.expected is not None:  # the line may be another file's, or hold several
        said = shown(verdict.expected).rstrip("\n")
        asked = {id(one): _asks(document, one) for one in items}
        templates = [one for one in items if _is_template(asked[id(one)] or "")]
        items = [
            one for one in items if (stands := asked[id(one)]) is None or stands.rstrip("\n") == said
        ] or templates  # of which the record has what they said
    item = only(items, verdict.type)
    return _graded(document, item, verdict, attempt)


def _graded(document: YamlText, item: FoundNode, verdict: Verdict, attempt: Attempt) -> EditedValue:
    if verdict.type in BUDGETS:
        found = document.at(*item.path, "threshold")
        return put(document, only([found] if found else [], "threshold"), budget(verdict, attempt))
    if verdict.type.removeprefix("not-") in EQUALS | HOLDS | LISTS and verdict.type.startswith("not-"):
        return drop(document, item)
    found = document.at(*item.path, "value")
    if found is not None and _is_template(plain(found.node)):
        raise EditError("the expected text is a template: edit the variable (e)")
    value = new_value(verdict, attempt)
    return put(document, only([found] if found else [], "value"), value)


def _is_template(text: str) -> bool:
    return "{{" in text or "{%" in text


def _asks(document: YamlText, item: FoundNode) -> str | None:
    """What an assertion asks for, as people are shown it."""
    found = document.at(*item.path, "value")
    if found is None:
        return None
    if found.node.id == "scalar":
        return plain(found.node)
    return shown(_value(found.node))


def _value(node: Any) -> Any:
    """A node's value, as the reader of suites has it."""
    if node.id == "sequence":
        return [_value(item) for item in node.value]
    if node.id == "mapping":
        return {str(key.value): _value(value) for key, value in node.value}
    return core_scalar(node.value) if not node.style else node.value


def _entry(node: Any, key: str) -> str | None:
    return next((str(v.value) for k, v in node.value if k.value == key and v.id == "scalar"), None)


def table(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A promptfoo table with one expected cell as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    kind, known = verdict.type, EQUALS | HOLDS | LISTS
    if kind.startswith("not-") and kind.removeprefix("not-") in known:
        return cell_changed(text, verdict.line, kind, verdict.expected, None)
    if kind not in known:
        raise EditError("only a person can say what the cell should ask for: edit the row (e)")
    return cell_changed(text, verdict.line, kind, verdict.expected, new_value(verdict, attempt))


def json_lines(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A promptfoo file with a test of JSON on each line, one assertion as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    lines = text.split("\n")
    at = verdict.line or case.line
    if not 0 < at <= len(lines) or not lines[at - 1].strip():
        raise ValueNotThere(f"there is no test at line {at} any more: edit the file (e)")
    alone = msgspec.structs.replace(verdict, line=1)
    edited = accepted(lines[at - 1], case, alone, attempt)
    lines[at - 1] = edited.text
    return edited._replace(text="\n".join(lines), line=at)


def saved_case(talk: Talk) -> str:
    """A promptfoo suite that holds the test alone."""
    if len(talk.turns) == 1:
        prompts = '  - "{{message}}"\n'
    else:
        messages = [
            part
            for number, turn in enumerate(talk.turns, 1)
            for part in (
                f'{{"role": "user", "content": {{{{ message_{number} | dump }}}}}}',
                *(
                    [f'{{"role": "assistant", "content": {{{{ answer_{number} | dump }}}}}}']
                    if turn.answered and number < len(talk.turns)
                    else []
                ),
            )
        ]
        prompts = "  - |-\n    [\n      " + ",\n      ".join(messages) + "\n    ]\n"
    test = promptfoo_test(talk, "message", talk.kept())
    return f"prompts:\n{prompts}providers:\n  - {scalar(talk.agent, QUOTED)}\ntests:\n{indented(test, 2)}"


def promptfoo_test(talk: Talk, variable: str, kept: Sequence[Assertion], *, own_prompts: bool = False) -> str:
    """The test as an item of `tests`; the message is the value of `variable`. `kept` are the case's own assertions;
    with `own_prompts` its prompts make the message of its variables, as they did.

    Raises:
        EditError: there are several messages, and the suite's prompts take one.
    """
    lines = [f"- description: {scalar(_raw(talk.name), QUOTED)}", "  vars:"]
    given = dict(talk.case.vars) if talk.case is not None else {}
    if own_prompts:
        lines = lines if given else lines[:1]
    elif len(talk.turns) == 1:
        lines.append(f"    {variable}: {scalar(_raw(talk.turns[0].asked), QUOTED)}")
        given.pop(variable, None)
    elif variable != "message":
        raise EditError(
            f"its prompts take one message, the conversation has {len(talk.turns)}: give a new file"
        )
    else:
        for number, turn in enumerate(talk.turns, 1):
            lines.append(f"    message_{number}: {scalar(_raw(turn.asked), QUOTED)}")
            if turn.answered and number < len(talk.turns):
                lines.append(f"    answer_{number}: {scalar(_raw(turn.answered), QUOTED)}")
    lines += keyed(given, 4)  # the prompt's, or those that assertions name
    lines += _settings(talk, given)
    said = talk.proposed(talk.turns[-1])
    if kept:
        lines += ["  assert:", *_listed_assertions(kept, 4)]
    elif said:
        lines.append("  assert:")
        for text in said:
            lines += ["    - type: icontains", f"      value: {scalar(text, QUOTED)}"]
    return "\n".join(lines) + "\n"


def _settings(talk: Talk, given: dict[str, Any]) -> list[str]:
    """What else the case says: its limit, its options, what it is filtered by."""
    case = talk.case
    if case is None:
        return []
    options = dict(case.options)
    if any(isinstance(value, list) for value in given.values()):
        options["disableVarExpansion"] = True
    values = {"threshold": case.threshold, "options": options or None, "metadata": case.metadata or None}
    return keyed({key: value for key, value in values.items() if value is not None}, 2)


def _listed_assertions(assertions: Sequence[Assertion], columns: int) -> list[str]:
    """Assertions as items of a list, the members of a set under it."""
    lines: list[str] = []
    for number, one in enumerate(assertions):
        if one.set is None:
            item = keyed(assertion_of(one), columns + 2)
            members = [other for other in assertions if other.set == number]
            if one.type == "assert-set":
                free = [_free(other) for other in members]
                item += [f"{' ' * (columns + 2)}assert:", *_listed_assertions(free, columns + 4)]
            lines += [f"{' ' * columns}- {item[0].lstrip()}", *item[1:]]
    return lines


def _free(member: Assertion) -> Assertion:
    return structs.replace(member, set=None)


def _raw(text: str) -> str:
    """A text that nunjucks, and what reads files, leave alone."""
    if re.search(r"\{[{%#]", text) or text.lstrip().startswith("file://"):
        return "{% raw %}" + text.replace("{% endraw %}", "{ % endraw %}") + "{% endraw %}"
    return text


def added(text: str, talk: Talk) -> str:
    """The text of an existing suite with the test as its last.

    Raises:
        EditError: its prompts do not take the conversation, or its list is not a block.
    """
    document = YamlText(text)
    found = listed(document, "tests")
    kept = _without_default(talk.kept(), document)
    if talk.as_written and talk.case is not None:
        return with_item(text, document, found, promptfoo_test(talk, "", kept, own_prompts=True))
    variable, pattern = _variable(document)
    fits = pattern.fullmatch(talk.turns[0].asked) if len(talk.turns) == 1 else None
    if fits is not None:  # the prompt's own words come from the prompt
        talk = talk._replace(turns=[talk.turns[0]._replace(asked=fits[1])])
    return with_item(text, document, found, promptfoo_test(talk, variable, kept))


def _without_default(kept: Sequence[Assertion], document: YamlText) -> Sequence[Assertion]:
    """Without those that the suite adds to every test itself: they come first."""
    default = document.at("defaultTest", "assert")
    if default is None or default.node.id != "sequence":
        return kept
    tops = [number for number, one in enumerate(kept) if one.set is None]
    many = len(default.node.value)
    if many >= len(tops):
        return []
    start = tops[many]
    return [one if one.set is None else structs.replace(one, set=one.set - start) for one in kept[start:]]


def _variable(document: YamlText) -> tuple[str, re.Pattern[str]]:
    """The one variable of a suite's prompts, and the messages that the first of them makes of it."""
    prompts = document.at("prompts")
    text = document.text_of(prompts.node) if prompts is not None else ""
    names = set(re.findall(r"\{\{\s*(\w+)", text))
    if len(names) != 1:
        raise EditError("its prompts do not take one variable: give the name of a new file")
    first = document.at("prompts", 0) or prompts
    given = first.node.value if first is not None and first.node.id == "scalar" else ""
    before, braces, rest = given.partition("{{")
    after = rest.partition("}}")[2]
    whole = bool(braces) and "{{" not in after and "{%" not in given
    pattern = f"{re.escape(before)}(.*){re.escape(after)}" if whole else r"(?!)"
    return names.pop(), re.compile(pattern, re.DOTALL)
