"""What is sent to an endpoint of somebody's own: addresses, headers and bodies with their templates filled in, so that
what is asked stays what it is there."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode

from tui_eval.agents.base import AgentError
from tui_eval.agents.loose_json import decode, encode, one_line, text_of
from tui_eval.config.config_values import leads_elsewhere

_ORIGIN = re.compile(r"\s*\w+://[^/?#]*[/?#]")
"""What an address begins with: its scheme and host."""
_PRINTED = re.compile(r"""\{\{(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^"'}]|\}(?!\}))*\}\}""")
"""What a template prints a value with."""
_BEGINS, _ENDS = "\ufdd0", "\ufdd1"
"""Stand around what was printed, characters that are none in any text."""
_MARKS = re.compile(f"([{_BEGINS}{_ENDS}])")
_NO_MARKS = dict.fromkeys(map(ord, _BEGINS + _ENDS))
_QUOTE = re.compile(r'(?<!\\)(?:\\\\)*"')
"""A quote of JSON that begins or ends a text."""
_QUERY = re.compile(r"[\w.~%+\[\]-]+=[^\s#]*\Z")
"""Names with values, as they stand in an address."""
_ONE = re.compile(r"\{\{\s*(\w+)\s*\}\}")


def json_in(given: Any) -> Any:
    """What a body that is JSON as text holds; None: it is none."""
    if isinstance(given, str) and given.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            return decode(given)
    return None


def json_text(template: str, body: Any, values: dict[str, Any]) -> str:
    """A JSON text with templates filled in, as it is written; where what is filled in (it may have quotes) would make
    another thing of it, text by text."""
    text, meant = _printed(template, values), _texts_filled(body, values)
    with suppress(ValueError):
        if decode(text) == meant:
            return text
    return encode(meant).decode()


def nearly_json(template: str, values: dict[str, Any]) -> str:
    """A text with templates filled in. Where it is to be JSON (`{"all": {{ messages | dump }}, "q": "{{ prompt }}"}`),
    what is printed within quotes is written as JSON has it."""
    plain = _printed(template, values)
    if plain.lstrip()[:1] not in ("{", "["):
        return plain
    quoted, text = False, ""
    for piece, is_value in _pieces(template, values, "\\"):
        if is_value and quoted:
            text += encode(piece).decode()[1:-1]
        else:
            text += piece
            quoted ^= len(_QUOTE.findall(piece)) % 2 == 1
    with suppress(ValueError):
        decode(text)
        return text
    return plain


def _pieces(template: str, values: dict[str, Any], leave: str) -> list[tuple[str, bool]]:
    """A text with templates filled in, in pieces, and whether each is what a value was printed as; what
    prints with `leave` in it is a part of the text."""
    marked = _PRINTED.sub(
        lambda found: found[0] if leave in found[0] else f"{_BEGINS}{found[0]}{_ENDS}", template
    )
    pieces: list[tuple[str, bool]] = []
    depth = 0
    for piece in _MARKS.split(_printed(marked, values)):
        if piece in (_BEGINS, _ENDS):
            depth += 1 if piece == _BEGINS else -1
        elif piece:
            pieces.append((piece, depth > 0))
    return pieces


def _texts_filled(value: Any, values: dict[str, Any]) -> Any:
    """As `filled`, with keys; what stands within quotes stays a text."""
    if isinstance(value, dict):
        return {_printed(key, values): _texts_filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts_filled(item, values) for item in value]
    found = filled(value, values)
    same = not isinstance(value, str) or isinstance(found, str | list | dict)
    return found if same else _printed(value, values)


def address_of(template: str, values: dict[str, Any]) -> str:
    """The address with templates filled in, so that what is asked stays in its place there (a `#` would end it)."""
    if "{{" not in template:
        return text_of(filled(template, values))
    pieces = _pieces(template, values, "urlencode")
    plain = "".join(piece for piece, _ in pieces)
    if plain == template or "urlencode" in _PRINTED.sub("", template):  # who sees to it, does it alone
        return plain
    address = ""
    for place, (piece, is_value) in enumerate(pieces, 1):
        if not is_value or not _ORIGIN.match(address):
            address += piece  # its beginning up to the host is whatever it is
        elif "?" not in address:
            address += quote(piece, "/", errors="replace")
        else:
            address += _in_query(piece, address, pieces[place:])
    return address


def form_of(body: Any, values: dict[str, Any]) -> str:
    """A body of `application/x-www-form-urlencoded`, so that what is asked stays in its field there (a `&` would end
    it): a text with templates filled in, or fields."""
    if isinstance(body, dict):
        fields = {key: text_of(item) for key, item in filled(body, values).items()}
        return urlencode(fields, errors="replace")
    template = text_of(body)
    pieces = _pieces(template, values, "urlencode")
    if "urlencode" in _PRINTED.sub("", template):  # who sees to it, does it alone
        return "".join(piece for piece, _ in pieces)
    form = ""
    for place, (piece, is_value) in enumerate(pieces, 1):
        form += _in_query(piece, form or "&", pieces[place:]) if is_value else piece
    return form


def _in_query(piece: str, before: str, after: list[tuple[str, bool]]) -> str:
    """What was printed, in a query between these. Alone it may be a whole one."""
    text, is_value = after[0] if after else ("", False)
    whole = before[-1] in "?&" and not is_value and text[:1] in ("", "&", "#")
    return quote(piece, "=&%+" if whole and _QUERY.match(piece) else "", errors="replace")


def check_path(template: str, address: str) -> None:
    """Raises `AgentError` where what is filled in leads to another host than the entry gives
    (`http://127.0.0.1:{{prompt}}/`), or out of its path: its headers would go to another address, which a suite may not
    choose."""
    if leads_elsewhere(template, address):
        said = f"{one_line(address, 120)} would be another address: what is asked leads to another host than url names"
        raise AgentError(said, code="bad-setting", said=said)
    found, given = (
        _ORIGIN.sub("", text, 1).partition("?")[0].partition("#")[0].split("/")
        for text in (address, template)
    )
    for segment in (".", ".."):
        if segment in found and segment not in given:
            said = f"{one_line(address, 120)} would be another address: what is asked has a segment {segment}, which leads to it"
            raise AgentError(said, code="bad-setting", said=said)


def filled(value: Any, values: dict[str, Any]) -> Any:
    """The value with templates filled in, leaf by leaf; `{{messages}}` alone stays a list."""
    if isinstance(value, str):
        if "{{" not in value and "{%" not in value:
            return value
        if (match := _ONE.fullmatch(value)) and match[1] in values:
            return values[match[1]]
        return _printed(value, values)
    if isinstance(value, list):
        return [filled(item, values) for item in value]
    if isinstance(value, dict):
        return {key: filled(item, values) for key, item in value.items()}
    return value


def _printed(template: str, values: dict[str, Any]) -> str:
    """A template as the text that it comes to."""
    from tui_eval.nunjucks.templates import TemplateError, render

    try:
        return render(template, values)
    except TemplateError as error:
        shown = one_line(template.translate(_NO_MARKS), 80)
        raise AgentError(
            f"the template {shown}: {one_line(str(error))}",
            code="bad-setting",
            said=f"template {shown}: {one_line(str(error))}",
        ) from None
