"""What is written into a neuro-san file: an answer that was accepted (one literal on one line is changed, and only
where that changes what the assertion asks for), a conversation that was saved as a test."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import UNSET

from tui_eval.formats.neuro_san.hocon import NAMED, load
from tui_eval.formats.neuro_san.read_neuro_san import ROOT_KEYS
from tui_eval.guard.trust import Trust
from tui_eval.model import Assertion, Attempt, Case, Turn, Verdict
from tui_eval.suites.accepted_values import EditedValue, actual_of, judged_text, nearest, shown
from tui_eval.suites.saved_talk import SavedReply, Talk
from tui_eval.yaml.yaml_edit import EditError


def accepted(text: str, case: Case, verdict: Verdict, attempt: Attempt) -> EditedValue:
    """A neuro-san file with the literal on the assertion's line, where there is exactly one, as the answer
    has it.

    Raises:
        EditError: it cannot be changed without guessing.
    """
    edited = _changed(text, verdict, attempt)
    before, after = _read(text, case.path), _read(edited.text, case.path)
    changed = [] if before is None or after is None else list(_differing(before, after))
    if not changed or not all(_is_of(path, verdict) for path in changed):
        # The test may be another file's, and what stands here on the line of that number another test's.
        said = f"{shown(verdict.expected)} of line {verdict.line}"
        raise EditError(f"{said} comes from an include or ${{…}}: edit the case (e)")
    return edited


@lru_cache(4)
def _read(text: str, path: str) -> Any:
    """What a file says by itself, in which nothing is looked up elsewhere: what an include would fill in is left out.
    None where that makes no sense."""
    alone = _WANTED.sub("${?", text)
    return load(alone, path, Path(), Trust(granted=True), named=True, follow=False).value


_WANTED = re.compile(r"\$\{(?!\?)")


def _differing(before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths at which two values differ."""
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for key, value in before.items():
            yield from _differing(value, after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, value in enumerate(before):
            yield from _differing(value, after[index], (*path, index))
    elif before != after or type(before) is not type(after):
        yield path


def _is_of(path: tuple[str | int, ...], verdict: Verdict) -> bool:
    """Whether what stands at a path is what an assertion expects, or an item of it."""
    at = ("interactions", (verdict.turn or 0) - 1, "response")
    keys = [key for key in path[len(at) :] if isinstance(key, str)]
    target = [quoted or plain for quoted, plain in _KEYS.findall(verdict.target)]
    return path[: len(at)] == at and [*keys[:-1], *map(str.lower, keys[-1:])] == [*target, verdict.type]


def _changed(text: str, verdict: Verdict, attempt: Attempt) -> EditedValue:
    kind = verdict.type
    if kind == "keywords":
        value: Any = nearest(str(verdict.expected), judged_text(verdict, attempt))
    elif kind == "value" or kind.removeprefix("not_") in ("less", "greater"):
        value = _bound(verdict) if kind != "value" else actual_of(verdict, attempt)
    elif kind == "not_keywords":
        return _left_out(text, verdict)
    else:
        raise EditError("only a person can say what it should ask for: edit the case (e)")
    if value is None:
        raise EditError("the answer has nothing there: edit the case (e)")
    if isinstance(value, dict | list) or isinstance(verdict.expected, dict | list):
        raise EditError("the value is no single text or number: edit the case (e)")
    lines = text.split("\n")
    line, start, end = _spot(lines, verdict)
    new = json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and not line[start:end].startswith('"') and _BARE.fullmatch(value):
        new = value
    lines[verdict.line - 1] = line[:start] + new + line[end:]
    return EditedValue("\n".join(lines), shown(verdict.expected), shown(value), verdict.line)


_BARE = re.compile(r"(?!(?i:true|false|null|yes|no|on|off|include)$)[^\W\d]\w*")
"""A text that HOCON takes for one without quotes."""


def _bound(verdict: Verdict) -> int | float:
    """The number that the answer's own would have kept to; `less` and `greater` are strict, and what was judged says
    which way: `compat: reference` compares the other way round."""
    actual, expected = verdict.actual, verdict.expected
    if isinstance(actual, bool) or not isinstance(actual, int | float):
        raise EditError("the answer has no number there: edit the case (e)")
    if verdict.type.startswith("not_"):
        return actual
    step = 1 if isinstance(actual, int) and isinstance(expected, int) else max(abs(actual), 1) * 0.01
    rules = [one.rule for one in verdict.evidence or [] if one.kind == "budget"]
    below = rules == ["<"] if rules else verdict.type == "less"
    return actual + (step if below else -step)


def _left_out(text: str, verdict: Verdict) -> EditedValue:
    """The file without one text of a list on the assertion's line."""
    lines = text.split("\n")
    line, start, end = _spot(lines, verdict)
    before, after = line[:start].rstrip(), line[end:].lstrip()
    if not before.endswith(("[", ",")) or not after.startswith(("]", ",")):
        raise EditError(f"{shown(verdict.expected)} is no item of a list on one line: edit the case (e)")
    if after.startswith(","):
        rest = line[:start] + after[1:].lstrip()
    else:
        rest = before.removesuffix(",") + line[end:]
    lines[verdict.line - 1] = rest
    return EditedValue("\n".join(lines), shown(verdict.expected), "(left out)", verdict.line)


def _spot(lines: list[str], verdict: Verdict) -> tuple[str, int, int]:
    """The assertion's line, and where in it the expected value stands.

    Raises:
        EditError: nowhere, or more than once.
    """
    if not 0 < verdict.line <= len(lines):
        raise EditError("its line is not known: edit the case (e)")
    line = lines[verdict.line - 1]
    spots = {m.span("it") for pattern in _spellings(verdict.expected) for m in re.finditer(pattern, line)}
    if len(spots) != 1:
        where = "more than once" if spots else "not"
        raise EditError(f"{shown(verdict.expected)} stands {where} on line {verdict.line}: edit the case (e)")
    return line, *spots.pop()


def _spellings(expected: Any) -> list[str]:
    quoted = {json.dumps(expected, ensure_ascii=False), json.dumps(expected)}
    if not isinstance(expected, str):
        return [rf"(?<![\w.\"-])(?P<it>{re.escape(text)})(?![\w.\"])" for text in quoted]
    patterns = [rf"(?<![\\\"])(?P<it>{re.escape(text)})(?!\")(?!\s*[:=])" for text in quoted]
    if re.fullmatch(r"\w[\w -]*", expected):
        patterns.append(rf"[\[,:=]\s*(?P<it>{re.escape(expected)})\s*(?=[\],}}\n]|#|//|$)")
    return patterns


_KEYS = re.compile(r'"([^"]*)"|([^.]+)')
"""Parts of a target; one that holds a dot stands in double quotes."""


def saved_case(talk: Talk) -> str:
    """A neuro-san test.

    Raises:
        EditError: the case has a value that HOCON cannot hold.
    """
    blocks = [
        "        {\n" + ",\n".join(f"            {key}: {_json(value)}" for key, value in parts.items()) + "\n        }"
        for parts in (_interaction(talk, turn) for turn in talk.turns)
    ]  # fmt: skip
    name = " ".join(talk.name.split())
    own = _own(talk)
    settings = {
        "agent": own.agent if own is not None else talk.agent,
        "connections": talk.connection or "http",
        **(_settings(own) if own is not None else {}),
    }
    return (
        f"# {name if name.isprintable() else 'a saved conversation'}\n{{\n"
        + "".join(f"    {key}: {_json(value)}\n" for key, value in settings.items())
        + "    interactions: [\n"
        + ",\n".join(blocks)
        + "\n    ]\n}\n"
    )


def _own(talk: Talk) -> Case | None:
    """The case that the conversation is of, where it is there still as its file has it."""
    return (talk.original.written if talk.original is not None else None) or talk.case


def _json(value: Any) -> str:
    """A value in HOCON; variables of the environment are named in it, beside the text around them."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        return _STRING.sub(_with_variables, text) if NAMED.search(text) else text
    except (TypeError, ValueError) as error:
        raise EditError(f"a value of the case cannot be written: {error}") from None


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def _with_variables(text: re.Match[str]) -> str:
    parts = NAMED.split(text[0][1:-1])
    if len(parts) == 1:
        return text[0]
    return "".join(
        f"${{{part}}}" if number % 2 else f'"{part}"'
        for number, part in enumerate(parts)
        if number % 2 or part
    )


def _settings(case: Case) -> dict[str, Any]:
    """What the case's file says besides its interactions."""
    given = {key: value for key, value in case.options.items() if key in ROOT_KEYS}
    if case.request_metadata is not None:
        given["metadata"] = case.request_metadata
    if case.timeout is not None:
        given["timeout_in_seconds"] = case.timeout
    return given


def _interaction(talk: Talk, reply: SavedReply) -> dict[str, Any]:
    """One turn: the message, and what the case's own turn says beside it."""
    case, run = _own(talk), talk.case
    turns = case.turns if case is not None else []
    own = turns[reply.turn - 1] if 0 < reply.turn <= len(turns) else Turn(None)
    parts: dict[str, Any] = {"text": reply.asked}
    before = run.turns[reply.turn - 1 : reply.turn] if run is not None and reply.turn else []
    if own.text is not None and before and before[0].text == reply.asked:
        parts["text"] = own.text  # nobody changed it, and its file may name a variable in it
    for key, value in (
        ("sly_data", own.sly_data),
        ("timeout_in_seconds", own.timeout),
        ("chat_filter", own.chat_filter),
    ):
        if value is not None:
            parts[key] = value
    if not own.continue_conversation:
        parts["continue_conversation"] = False
    said = talk.proposed(reply)
    if own.assertions:
        parts["response"] = _response(own.assertions)
    elif said:
        parts["response"] = {"text": {"keywords": said}}
    return parts


def _response(assertions: Iterable[Assertion]) -> dict[str, Any]:
    """The tests of a turn, each under its part and keys; several of one name are a list."""
    tree: dict[str, Any] = {}
    for one in assertions:
        place = tree
        for quoted, plain in _KEYS.findall(one.target):
            place = place.setdefault(quoted or plain, {})
        values = place.setdefault(one.type, [])
        if one.value is not UNSET:
            values.append(one.value)
    return tree
