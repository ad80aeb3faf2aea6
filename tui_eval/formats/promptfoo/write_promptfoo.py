"""What is written into a promptfoo suite (a YAML or JSON file, or a table of tests): an answer that was accepted, a
conversation saved as a test."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from tui_eval.formats.promptfoo.promptfoo_words import OF_A_SCENARIO, test_of
from tui_eval.formats.promptfoo.read.suite_cases import OwnTest
from tui_eval.formats.promptfoo.read.suite_tests import merged, written
from tui_eval.guard.secrets import MASK, SHORTEST
from tui_eval.model import Attempt, Case, Verdict
from tui_eval.suites.accepted_values import (
    BUDGETS,
    EQUALS,
    HOLDS,
    LISTS,
    EditedValue,
    budget,
    drop,
    is_recorded,
    new_value,
    only,
    plain,
    put,
    shared,
    shown,
    still_unwanted,
)
from tui_eval.suites.saved_talk import Talk, block_items, blocks, indented, listed, with_item
from tui_eval.yaml.yaml_edit import EditError, FoundNode, ValueNotThere, YamlText
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
    from tui_eval.formats.promptfoo.read.csv_rows import assertion_of_cell

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
                meant = assertion_of_cell(cell.value.strip())
            except ListError:
                continue
            if meant.type == kind and _is_asked(meant.value, expected):
                found.append(cell)
        if len(found) != 1:
            raise (EditError if found else ValueNotThere)(
                f"row at line {line}: {len(found)} cells say so: edit the row (e)"
            )
        cell = found[0]
        plain = cell.value.strip()
        if value is None:
            return EditedValue(text[: cell.start] + text[cell.end :], plain, "(left out)", line)
        bare = kind == "equals" and _is_asked(plain, expected)
        said = ", ".join(map(_listed, value)) if isinstance(value, list) else str(value)
        new = said if bare and assertion_of_cell(said.strip() or " ").type == "equals" else f"{kind}:{said}"
        if new == f"{kind}:{said}" and plain.startswith(f"{kind}: "):
            new = f"{kind}: {said}"
        meant = assertion_of_cell(_value_of_accepted_cells(_quoted(new), ",").strip() or " ")
        if (meant.type, meant.value) != (kind, value if isinstance(value, list) else str(value)):
            raise EditError(
                f"row at line {line}: a cell cannot say what the answer was to the letter: edit the row (e)"
            )
        return EditedValue(text[: cell.start] + _quoted(new) + text[cell.end :], plain, new, line)
    raise ValueNotThere(f"there is no row at line {line} any more: edit the file (e)")


def _is_asked(value: Any, expected: Any) -> bool:
    texts = isinstance(value, str) and isinstance(expected, str)
    return is_recorded(value, expected) if texts else value == expected


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
    csv.writer(out, lineterminator="\r\n").writerow(
        [value]
    )  # with no line's end given, it quotes none in a value
    return out.getvalue().removesuffix("\r\n")


def accepted(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A promptfoo file with one assertion as the answer has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    document = YamlText(text, (verdict.line,))
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
            one
            for one in items
            if (stands := asked[id(one)]) is None or stands.rstrip("\n") == said or is_recorded(stands, said)
        ] or templates  # of which the record has what they said
    item = only(items, verdict.type)
    return _graded(document, item, verdict, attempt)


def _graded(document: YamlText, item: FoundNode, verdict: Verdict, attempt: Attempt) -> EditedValue:
    if verdict.type in BUDGETS:
        found = document.at(*item.path, "threshold")
        return put(document, only([found] if found else [], "threshold"), budget(verdict, attempt))
    if verdict.type.removeprefix("not-") in EQUALS | HOLDS | LISTS and verdict.type.startswith("not-"):
        return _without_found(document, item, still_unwanted(verdict, attempt))
    found = document.at(*item.path, "value")
    if found is not None and _is_template(plain(found.node)):
        raise EditError("the expected text is a template: edit the variable (e)")
    value = _as_it_is(new_value(verdict, attempt))
    return put(document, only([found] if found else [], "value"), value)


def _without_found(document: YamlText, item: FoundNode, left: list[Any]) -> EditedValue:
    """An assertion that asks only for what is `left` of its list; without anything left, or where the list is written
    with templates, it goes."""
    found = document.at(*item.path, "value")
    if not left or found is None or found.node.id != "sequence" or _is_template(plain(found.node)):
        return drop(document, item)
    note, text = shared(document, found), document
    for index in reversed(range(len(found.node.value))):
        if _value(found.node.value[index]) not in left:
            one = text.at(*found.path, index)
            text = YamlText(text.remove(only([one] if one else [], "value")), (item.line,))
    return EditedValue(text.text, plain(found.node), shown(left), found.line, note)


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
        left = still_unwanted(verdict, attempt) or None
        return cell_changed(text, verdict.line, kind, verdict.expected, left)
    if kind not in known:
        raise EditError("only a person can say what the cell should ask for: edit the row (e)")
    value = _as_it_is(new_value(verdict, attempt))
    return cell_changed(text, verdict.line, kind, verdict.expected, value)


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


# -- A conversation saved as a test: what its case's own file says, with this conversation in it.


def saved_case(talk: Talk) -> str:
    """A promptfoo suite that holds the test alone: of a case of one, its suite with this as its only test.

    Raises:
        EditError: the suite names files by where it stands, and this one would stand elsewhere.
    """
    own = _own(talk)
    suite = _suite_of(talk, own)
    test = _test_of(talk, own) if own is not None else _recorded(talk)
    if talk.case is not None and talk.agent != talk.case.agent:
        test.pop("providers", None)  # it names those of the suite
    if own is not None and talk.as_written:
        said: dict[str, str] = {}
    else:  # the messages are what the prompts had become
        suite["prompts"], said = [_prompt_of(talk)], _messages(talk)
        _without_own_words(suite, test)
    text = "\n".join(blocks({**suite, "tests": [_with(test, talk, said)]}, 0)) + "\n"
    _stays_in_place(talk, text)
    return text


def _own(talk: Talk) -> OwnTest | None:
    return talk.original.written if talk.case is not None and talk.original is not None else None


_LEFT_OUT = frozenset({"tests", "scenarios", "description", "outputPath", "prompts", "providers", "targets"})
_NARROWING = ("filterRange", "filterSample", "filterSampleSeed")


def _suite_of(talk: Talk, own: OwnTest | None) -> dict[str, Any]:
    """What stands beside the tests: as it stands in the case's suite, where that says who answered."""
    case = talk.case
    if own is None:
        entry = case.provider if case is not None and case.agent == talk.agent and not case.column else None
        return {"prompts": [], "providers": [talk.agent if entry is None else entry]}
    document = own.document
    rest = {key: value for key, value in document.items() if key not in _LEFT_OUT}
    for key in ("commandLineOptions", "evaluateOptions"):
        if isinstance(rest.get(key), dict):
            rest[key] = {name: value for name, value in rest[key].items() if name not in _NARROWING}
    if isinstance(rest.get("defaultTest"), str) and own.default is not None:
        rest["defaultTest"] = written(own.default)
    found = {"prompts": document["prompts"]} if document.get("prompts") is not None else {}
    named = "targets" if document.get("targets") is not None else "providers"
    brought = case is not None and case.agent == talk.agent and document.get(named) is not None
    return {**found, named if brought else "providers": document[named] if brought else [talk.agent], **rest}


def _test_of(talk: Talk, own: OwnTest, *, whole: bool = False) -> dict[str, Any]:
    """The test as its file has it, with those values of lists that the case has; `whole`, with `defaultTest` in it."""
    test = written(merged(own.test, own.default) if whole else own.test)
    test["vars"] = {**test.get("vars", {}), **own.chosen}
    if OF_A_SCENARIO.fullmatch(str(test.get("metadata", {}).get("conversationId", ""))):
        test["metadata"] = {k: v for k, v in test["metadata"].items() if k != "conversationId"}
    if any(isinstance(value, list) and value and isinstance(value[0], str) for value in own.chosen.values()):
        test["options"] = {**test.get("options", {}), "disableVarExpansion": True}
    return test


def _recorded(talk: Talk) -> dict[str, Any]:
    """The test as it was run, where its file does not have it any more."""
    case = talk.case
    if case is None:
        return {}
    test = test_of(case)
    if case.column:
        test["provider"] = case.provider
    if any(isinstance(value, list) for value in case.vars.values()):
        test["options"] = {**test.get("options", {}), "disableVarExpansion": True}
    return test


def _with(test: dict[str, Any], talk: Talk, said: dict[str, str]) -> dict[str, Any]:
    """The test under its new name, with the messages in its variables, and with what to expect of the answer."""
    named = {"description": _raw(talk.name)}
    values = {**said, **{name: value for name, value in test.get("vars", {}).items() if name not in said}}
    rest = {key: value for key, value in test.items() if key not in ("description", "vars")}
    if not rest.get("assert"):
        rest.pop("assert", None)
        if found := talk.proposed(talk.turns[-1]):
            rest["assert"] = [{"type": "icontains", "value": text} for text in found]
    every = {**named, "vars": values, **rest}
    return {key: value for key, value in every.items() if value is not None and value not in ({}, [])}


def _messages(talk: Talk) -> dict[str, str]:
    """The variables of `_prompt_of`."""
    if len(talk.turns) == 1:
        return {"message": _raw(talk.turns[0].asked)}
    found: dict[str, str] = {}
    for number, turn in enumerate(talk.turns, 1):
        found[f"message_{number}"] = _raw(turn.asked)
        if turn.answered and number < len(talk.turns):
            found[f"answer_{number}"] = _raw(turn.answered)
    return found


def _prompt_of(talk: Talk) -> str:
    """A prompt that is the conversation."""
    if len(talk.turns) == 1:
        return "{{message}}"
    said = _messages(talk)
    parts = [
        f'{{"role": "{"user" if name.startswith("message") else "assistant"}", "content": {{{{ {name} | dump }}}}}}'
        for name in said
    ]
    return "[\n  " + ",\n  ".join(parts) + "\n]"


def _without_own_words(suite: dict[str, Any], test: dict[str, Any]) -> None:
    """Without what names the prompts that are gone, or says something around the message, which has it already."""
    test.pop("prompts", None)
    default = suite.get("defaultTest")
    suite["defaultTest"] = {**default} if isinstance(default, dict) else default
    for place in (test, suite["defaultTest"]):
        if isinstance(place, dict):
            place.pop("prompts", None)
            if isinstance(place.get("options"), dict):
                place["options"] = {k: v for k, v in place["options"].items() if k not in _AROUND}
    if suite["defaultTest"] is None:
        del suite["defaultTest"]
    typed = suite.get("commandLineOptions")
    if isinstance(typed, dict):
        suite["commandLineOptions"] = {
            k: v for k, v in typed.items() if k not in ("promptPrefix", "promptSuffix")
        }
    for key in ("providers", "targets"):
        if isinstance(suite.get(key), list):
            suite[key] = [_of_all_prompts(entry) for entry in suite[key]]
        elif key in suite:
            suite[key] = _of_all_prompts(suite[key])


_AROUND = ("prefix", "suffix")


def _of_all_prompts(entry: Any) -> Any:
    """A provider's entry without the prompts that it takes; `{id: {…}}`, too."""
    if not isinstance(entry, dict):
        return entry
    kept = {key: value for key, value in entry.items() if key != "prompts"}
    if "id" not in kept and len(kept) == 1:
        return {key: _of_all_prompts(value) for key, value in kept.items()}
    return kept


_FILE_NAMED = re.compile(r"\b(?:file://|(?:exec|python|golang|ruby):(?://)?[ ]?)(?!/)[^\s\"']+")


def _stays_in_place(talk: Talk, text: str) -> None:
    """Raises an `EditError` where what is written names files from the folder of the case's suite, and goes
    elsewhere."""
    case = talk.case
    if case is None or PurePosixPath(talk.file).parent == PurePosixPath(case.suite).parent:
        return
    if found := _FILE_NAMED.search(text):
        folder = PurePosixPath(case.suite).parent.as_posix()
        where = "the project's own folder" if folder == "." else f"the folder {folder}"
        raise EditError(f"the case names {found[0]} from {where}: save it there")


def _raw(text: str) -> str:
    """A text that nunjucks, and what reads files, leave alone."""
    if re.search(r"\{[{%#]", text) or text.lstrip().startswith("file://"):
        return "{% raw %}" + text.replace("{% endraw %}", "{ % endraw %}") + "{% endraw %}"
    return text


def _as_it_is(value: Any) -> Any:
    """What an answer was, as an assertion takes it without filling anything in."""
    if isinstance(value, str):
        if re.search(r"\{%-?\s*endraw", value):
            raise EditError("the answer has marks of templates in it: edit the case (e)")
        return _raw(value)
    if isinstance(value, list):
        return [_as_it_is(item) for item in value]
    return {key: _as_it_is(item) for key, item in value.items()} if isinstance(value, dict) else value


def added(text: str, talk: Talk) -> str:
    """The text of an existing suite with the test as its last.

    Raises:
        EditError: its prompts do not take the conversation, its list is not a block, or it would leave the test out.
    """
    document = YamlText(text, ())
    _would_run(document)
    own = _own(talk)
    at_home = talk.case is not None and talk.file == talk.case.suite
    if own is not None:
        test = _test_of(talk, own, whole=not at_home)
    else:
        test = _recorded(talk)
        if at_home:
            test["assert"] = _without_default(test.get("assert", []), document)
    said: dict[str, str] = {}
    if not at_home:  # what it names are the other suite's
        for name in ("prompts", "providers"):
            test.pop(name, None)
    if not (at_home and talk.as_written):
        if len(talk.turns) > 1:
            raise EditError(
                f"its prompts take one message, the conversation has {len(talk.turns)}: give a new file"
            )
        own_words = _of_its_prompt(talk) if own is not None and at_home else None
        variable, pattern = own_words or _variable(document)
        fits = pattern.fullmatch(talk.turns[0].asked)
        if own_words is not None and fits is None:
            raise EditError(f"its prompt cannot make this message of {variable}: give the name of a new file")
        # the prompt's own words come from the prompt
        said = {variable: _raw(fits[1] if fits is not None else talk.turns[0].asked)}
        whole = merged(own.test, own.default).options if own is not None and at_home else test.get("options")
        around = next((name for name in _AROUND if (whole or {}).get(name)), "")
        if around and own_words is None:
            raise EditError(
                f"its options put a {around} to the message, which has it already: give a new file"
            )
    item = "\n".join(block_items([_with(test, talk, said)], 0)) + "\n"
    _stays_in_place(talk, item)
    if document.at("tests") is None and document.at("scenarios") is not None and not document.root.flow_style:
        return _still_a_suite(f"{text.rstrip()}\ntests:\n{indented(item, 2)}")
    text = _in_lines(text, document)
    document = YamlText(text, ())
    return with_item(text, document, listed(document, "tests"), item)


_NARROWED = (
    ("commandLineOptions", "filterRange"),
    ("evaluateOptions", "filterRange"),
    ("commandLineOptions", "filterSample"),
)


def _would_run(document: YamlText) -> None:
    """Raises an `EditError` where a range or a sample of the suite's tests may leave one more at their end out."""
    tests = document.at("tests")
    listed_here = tests.node.value if tests is not None and tests.node.id == "sequence" else []
    known = document.at("scenarios") is None and all(one.id == "mapping" for one in listed_here)
    for place, name in _NARROWED:
        given = document.at(place, name)
        if given is None or given.node.id != "scalar":
            continue
        range_of = (
            re.fullmatch(r"\d{0,9}:(\d{0,9})", given.node.value.strip()) if name == "filterRange" else None
        )
        if range_of is not None and (not range_of[1] or (known and int(range_of[1]) > len(listed_here))):
            continue
        words = f"its {place}.{name} ({given.node.value}) may leave one more test out"
        raise EditError(f"{words}: give the name of a new file")


def _in_lines(text: str, document: YamlText) -> str:
    """The suite with its tests in lines of their own, where it only names files for them in one line."""
    found = document.at("tests")
    if found is None or found.node.anchor:
        return text
    items = found.node.value if found.node.id == "sequence" and found.node.flow_style else [found.node]
    if not items or not all(one.id == "scalar" and one.value and not one.anchor for one in items):
        return text
    start = document.start(found.node)
    end = start + len(document.text_of(found.node))
    if document.root.flow_style:  # JSON, as often as not
        one = document.text_of(found.node)
        return text if found.node.id == "sequence" else _still_a_suite(f"{text[:start]}[{one}]{text[end:]}")
    lines = "".join(f"\n  - {document.text_of(one)}" for one in items)
    return _still_a_suite(text[:start].rstrip(" ") + lines + text[end:])


def _still_a_suite(text: str) -> str:
    found = YamlText(text, ()).at("tests")
    if found is None or found.node.id != "sequence":
        raise EditError("its tests are no list to add to: give the name of a new file")
    return text


def _without_default(kept: list[Any], document: YamlText) -> list[Any]:
    """Without those that the suite adds to every test itself: they come first."""
    default = document.at("defaultTest", "assert")
    many = len(default.node.value) if default is not None and default.node.id == "sequence" else 0
    return kept[many:]


def _of_its_prompt(talk: Talk) -> tuple[str, re.Pattern[str]] | None:
    """As `_variable`, of the prompt that the case was asked with: what it was filled in with may be masked in the
    message."""
    case = talk.case
    template = (case.turns[0].text if case is not None and case.turns else None) or ""
    if case is not None:
        template = f"{case.options.get('prefix') or ''}{template}{case.options.get('suffix') or ''}"
    names = {name for name in _VARIABLE.findall(template) if name != "env"}
    if len(names) != 1 or "{%" in template or template.count("{{") != 1:
        return None
    before, _, rest = template.partition("{{")
    env = talk.original.env if talk.original is not None else {}
    values = {*env.values(), *os.environ.values()}
    filled = [value for value in values if len(value) >= SHORTEST and value in template]
    hidden = re.compile("|".join(sorted(map(re.escape, filled), key=len, reverse=True)) or r"(?!)")

    def said(text: str) -> str:
        kept, at = "", 0
        for one in hidden.finditer(text):
            kept += f"{re.escape(text[at : one.start()])}(?:{re.escape(one[0])}|{MASK})"
            at = one.end()
        return kept + re.escape(text[at:])

    pattern = f"{said(before)}(.*){said(rest.partition('}}')[2])}"
    return names.pop(), re.compile(pattern, re.DOTALL)


_VARIABLE = re.compile(r"\{\{\s*(\w+)")


def _variable(document: YamlText) -> tuple[str, re.Pattern[str]]:
    """The one variable of a suite's prompts, and the messages that the first of them makes of it."""
    prompts = document.at("prompts")
    text = document.text_of(prompts.node) if prompts is not None else ""
    names = set(_VARIABLE.findall(text))
    if len(names) != 1:
        raise EditError("its prompts do not take one variable: give the name of a new file")
    first = document.at("prompts", 0) or prompts
    given = first.node.value if first is not None and first.node.id == "scalar" else ""
    before, braces, rest = given.partition("{{")
    after = rest.partition("}}")[2]
    whole = bool(braces) and "{{" not in after and "{%" not in given
    pattern = f"{re.escape(before)}(.*){re.escape(after)}" if whole else r"(?!)"
    return names.pop(), re.compile(pattern, re.DOTALL)
