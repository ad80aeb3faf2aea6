"""What a case is called for good, and whether it has changed.

The grammar of a `case_id` (design.md, "case_id is stable"):

    case_id    = SUITE "::" NAME {SUFFIX} ["::" PROVIDER ["::" PROMPT]] ["#" N]
    SUITE      = path of the suite's file from the project root, with "/"
    NAME       = the case's own name, or "vars-" + 8 hex digits of its vars or turn texts
    SUFFIX     = "[" KEY "=" VALUE {"," KEY "=" VALUE} "]"     matrix variables, in the file's order
               | "[connection=" NAME "]"                       where a neuro-san case has several
    PROVIDER   = promptfoo: the provider's label or id
    PROMPT     = promptfoo: the prompt's label or id, else "prompt1", "prompt2", …
    N          = 2 for the second case that would have the same id, 3 for the third, …

A matrix VALUE is the text of a text, else compact JSON; one longer than 40 characters is replaced
by `~` and 8 hex digits of its SHA-256. Line breaks in names and values become blanks, so an id is
always one line; half a character, or a byte of a file's name that is no text, becomes its number (`\\ud83d`), so that
an id can be stored and sent. Only names and inputs take part: editing an assertion keeps a case's history. A
secret in any part is masked before ids are told apart: it is in no record, and cases that differ in nothing else are
`…•••`, `…•••#2`, …
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET

from tui_eval.case_names import is_filled_in
from tui_eval.model import Assertion, Case, Suite, Turn

LONGEST_VALUE = 40

_encoder = msgspec.json.Encoder(order="deterministic")
_PLACE_ONLY = {"line"}
_NOT_CONTENT = {
    "case_id",
    "column",
    "test_number",
    "column_number",
    "first_number",
    "variant",
    "column_name",
    "named_by",
    "suite",
    "file",
    "line",
    "order",
    "problems",
    "content_hash",
    "turns",
    "assertions",
    "beside",
}
_assertion_values = attrgetter(*(f for f in Assertion.__struct_fields__ if f not in _PLACE_ONLY))
_turn_values = attrgetter(*(f for f in Turn.__struct_fields__ if f not in {"line", "assertions"}))
_CONTENT = tuple(f for f in Case.__struct_fields__ if f not in _NOT_CONTENT)
_case_values = attrgetter(*_CONTENT)
_OPTIONS = _CONTENT.index("options")


def canonical(value: Any) -> bytes:
    """JSON of any value read from a file, the same for equal values whatever their key order."""
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, OverflowError, UnicodeError, RecursionError):
        pass
    try:
        text = json.dumps(_with_text_keys(value), sort_keys=True, default=repr, separators=(",", ":"))
    except (ValueError, RecursionError):
        text = repr(type(value))
    return text.encode("utf-8", "surrogatepass")


def digest(value: Any, length: int = 8) -> str:
    """The first `length` hex digits of the SHA-256 of a value's canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()[:length]


def unnamed(variables: Mapping[str, Any] | None, texts: Iterable[str | None] = ()) -> str:
    """The name of a case that has none: `vars-` + 8 hex digits of its vars, or, where it has no
    vars, of the texts of its turns."""
    return f"vars-{digest(dict(variables) if variables else list(texts))}"


def suffix(pairs: Mapping[str, Any]) -> str:
    """`[k=v,…]` in the given order; empty for no pairs. Values over 40 characters are hashed."""
    if not pairs:
        return ""
    return "[" + ",".join(f"{_one_line(str(key))}={_short(value)}" for key, value in pairs.items()) + "]"


def case_id(
    suite_path: str,
    name: str | None,
    *,
    variables: Mapping[str, Any] | None = None,
    texts: Iterable[str | None] = (),
    matrix: Mapping[str, Any] | None = None,
    connection: str | None = None,
    provider: str | None = None,
    prompt: str | None = None,
) -> str:
    """The id of a case, before `Ids` tells repeated ones apart; the grammar is in the module's text.

    Args:
        suite_path: the suite's file, relative to the project root, with forward slashes.
        name: the case's own name; None or blank makes `vars-…` of `variables`, else of `texts`.
        matrix: those variables that the file gives as lists, with this case's values.
        connection: neuro-san's, only where the case has several.
        provider, prompt: promptfoo's label or id of each.
    """
    own = _one_line(name) if name and name.strip() else unnamed(variables, texts)
    result = f"{_whole(suite_path)}::{own}{suffix(matrix or {})}"
    if connection is not None:
        result += suffix({"connection": connection})
    return result if provider is None else result + ending(provider, prompt)


def ending(provider: str, prompt: str | None) -> str:
    """The end of a promptfoo case's id: what it calls the provider and the prompt."""
    return f"::{_one_line(provider)}" + (f"::{_one_line(prompt)}" if prompt is not None else "")


class Ids:
    """Gives each case of a suite an id of its own: a repeated one gets `#2`, `#3`, … in file order. `masked` takes the
    secrets out of one first."""

    def __init__(self, masked: Callable[[str], str]) -> None:
        self._masked = masked
        self._given: set[str] = set()
        self._count: dict[str, int] = {}

    def take(self, wanted: str) -> str:
        """`wanted` without its secrets, or that with `#N`, the smallest N from 2 that is free."""
        suite, mark, own = wanted.partition("::")
        return self._free(f"{suite}{mark}{self._masked(own)}")

    def take_all(self, wanted: Iterable[str]) -> list[str]:
        """`take` of each; of many, which hardly ever hold a secret, all are looked through at once."""
        names = list(wanted)
        text = "\n".join(names)
        take = self._free if self._masked(text) == text else self.take
        return [take(name) for name in names]

    def _free(self, wanted: str) -> str:
        if wanted not in self._given:
            self._given.add(wanted)
            return wanted
        number = self._count.get(wanted, 1) + 1
        while f"{wanted}#{number}" in self._given:
            number += 1
        self._count[wanted] = number
        result = f"{wanted}#{number}"
        self._given.add(result)
        return result


def name_cases(suite: Suite, masked: Callable[[str], str]) -> None:
    """Give the cases of a suite ids (see `Ids`), places and content hashes where its reader left them out."""
    ids = Ids(masked)
    for place, case in enumerate(suite.cases):
        texts = [turn.text for turn in case.turns]
        case.case_id = ids.take(_whole(case.case_id) or case_id(suite.path, case.name or None, texts=texts))
        case.order = case.order or place
        case.content_hash = case.content_hash or content_hash(case)
        case.name = case.name or f"case {place + 1}"


def content_hash(case: Case) -> str:
    """16 hex digits that change when anything in the case does: inputs, assertions, settings.

    Where the case stands (file, line, order, a name that is filled in for its place) and its problems take no part.
    """
    named = msgspec.structs.replace(case, name="", description="") if is_filled_in(case) else case
    values = _case_values(named)
    if case.beside:  # counts as older versions counted it: among the options
        options = {**case.options, **case.beside}
        values = (*values[:_OPTIONS], options, *values[_OPTIONS + 1 :])
        if len(options) < len(case.options) + len(case.beside):
            values = (*values, case.options)
    content = (
        values,
        [_assertion(a) for a in case.assertions],
        [(_turn_values(turn), [_assertion(a) for a in turn.assertions]) for turn in case.turns],
    )
    return digest(content, 16)


def _assertion(assertion: Assertion) -> list[Any]:
    return ["absent" if value is UNSET else [value] for value in _assertion_values(assertion)]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else canonical(value).decode("utf-8", "replace")
    if len(text) > LONGEST_VALUE:
        return "~" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return _one_line(text)


def _one_line(text: str) -> str:
    if text.isprintable():  # no white space but blanks, and no half characters
        return text.strip()
    return _whole(" ".join(text.split()) if any(c.isspace() and c != " " for c in text) else text.strip())


def _whole(text: str) -> str:
    """The text as valid Unicode, what is none of it told apart from what else may stand there."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _with_text_keys(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_text_keys(v) for v in value]
    return value
