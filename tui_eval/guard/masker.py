"""Taking known secrets out of what is kept and shown, in every form in which one may be written."""

from __future__ import annotations

import base64
import json
import operator
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

import msgspec

from tui_eval.guard.secrets import MASK, SHORTEST, secret_pair, secret_values

CUT = "…"
"""What stands where a text was cut, and where a secret may have been."""
_SHORTEST_PART = 4
"""Characters of a secret, beside where it was cut, from which on they are masked."""
_LONG = 300
_SHORTEST_TYPED = 6
_NO_WORD = r"(?s)(?=.*[^\W\d_])(?=.*(?:\d|[^\w\s.-]))"
"""Of a secret that was typed: from so many characters on, and with more than letters, it is looked for in texts."""

_T = TypeVar("_T")


def forms(secret: str) -> set[str]:
    """The ways a secret may be written: as it is, escaped for JSON (as Python, PHP, Go, Gson and .NET do it)
    and HTML, URL-encoded, in base64.

    In base64 it may stand anywhere in a longer text (`user:password` of Basic authentication), so
    the characters that it alone decides are given for each of its three positions.
    """
    found = {
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        json.dumps(json.dumps(secret)[1:-1])[1:-1],  # JSON within JSON
        repr(secret)[1:-1],
    }
    plain = json.dumps(secret, ensure_ascii=False)[1:-1]
    for escaped in (
        plain.replace("/", "\\/"),
        _by_code(plain, "<>&", "x"),
        _by_code(plain, "<>&='", "x"),
        _by_code(plain, "<>&'+`", "X"),
    ):
        found |= {escaped, json.dumps(escaped)[1:-1]}
    page = secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    quotes = ('"', "'"), ("&quot;", "&#x27;"), ("&quot;", "&#39;"), ("&#34;", "&#39;")
    found |= {page.replace('"', double).replace("'", single) for double, single in quotes}
    raw = secret.encode("utf-8", "surrogatepass")
    for encoded in (quote(raw), quote(raw, safe=""), quote_plus(raw)):
        small = re.sub("%..", lambda code: code[0].lower(), encoded)
        found |= {encoded, small, encoded.replace("%", "%25"), small.replace("%", "%25")}  # an address in one
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + raw)
        last = (offset + len(raw)) * 8 // 6
        first = -(-offset * 8 // 6)
        inner = encoded[first:last].decode()
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    # Records are looked through as JSON, in which each of these is escaped once more.
    found |= {json.dumps(form, ensure_ascii=False)[1:-1] for form in found}
    return {form for form in found if len(form) >= SHORTEST}


def _by_code(text: str, characters: str, case: str) -> str:
    return "".join(f"\\u{ord(one):04{case}}" if one in characters else one for one in text)


def _signs_of(found: Collection[str]) -> set[str]:
    """Texts of which one stands in each form of a secret: few, as most forms have the same letters and digits
    in a row."""
    signs: set[str] = set()
    for form in sorted(found, key=len):
        if not any(sign in form for sign in signs):
            longest = max(re.findall(r"[A-Za-z0-9]+", form), key=len, default="")
            signs.add(longest if len(longest) >= SHORTEST else form)
    return signs


class Masker:
    """Replaces secrets by `•••`, longest first, in each form of `forms`."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._forms: set[str] = set()
        self._ordered: tuple[str, ...] = ()
        self._parts: _Parts | None = None
        self._encoded: list[bytes] | None = None
        self._signs: set[str] = set()
        self._heads: dict[str, list[str]] | None = None
        self._named: dict[str, str] = {}
        self._beside: dict[str, str] = {}
        self._add(values)

    def __bool__(self) -> bool:
        return bool(self._ordered or self._named)

    @property
    def longest(self) -> int:
        """Characters of the longest form: how much a stream must look ahead."""
        return len(self._ordered[0]) if self._ordered else 0

    def add(self, value: str) -> None:
        """Mask this value too, from now on; values shorter than eight characters are left out."""
        self._add((value,))

    def add_values(self, values: Mapping[str, Any]) -> None:
        """Mask the secrets of a mapping of names to values (headers, configuration) too."""
        self._add(secret_values(values))

    def add_typed(self, values: Any) -> None:
        """Mask the secrets among variables that a person typed, shorter ones too: beside their names whatever
        they are (as keys of data, however deep, and in texts: `name=…`, `name: …`, `"name":"…"`), elsewhere
        in texts from six characters on where they are no words."""
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if not (isinstance(value, str) and value and MASK not in value and secret_pair(str(name), value)):
                continue
            self._named[str(name)] = value
            if _SHORTEST_TYPED <= len(value) < SHORTEST and re.search(_NO_WORD, value):
                typed = {value, json.dumps(value)[1:-1], quote(value, safe="")}
                self._keep_forms(typed, typed)
            elif len(value) < SHORTEST:
                self._beside |= {before + value: before + MASK for before in _before(str(name))}
                self._keep_forms(set(self._beside), set(self._beside))

    def _add(self, values: Iterable[str]) -> None:
        by_value = [forms(value) for value in values if len(value) >= SHORTEST]
        self._keep_forms(set().union(*by_value), set().union(*map(_signs_of, by_value)))

    def _keep_forms(self, found: set[str], signs: set[str]) -> None:
        if found <= self._forms:
            return
        self._forms = self._forms | found
        self._signs = self._signs | signs
        self._ordered = tuple(sorted(self._forms, key=lambda form: (-len(form), form)))
        self._parts = self._encoded = self._heads = None

    def text(self, text: str) -> str:
        """The text with every secret masked, and what is left of one beside a place where the text was cut (`…`)."""
        # One search per sign beats the alternation, which tries all forms at every character; so does one of
        # those alone that are there: of a key of many lines there are hundreds.
        if any(sign in text for sign in self._signs) and (
            here := [form for form in self._ordered if form in text]
        ):
            text = re.sub("|".join(map(re.escape, here)), self._mask, text)
        if CUT not in text or not self._ordered:
            return text
        if self._parts is None:
            # What stands before a short secret is no part of it.
            self._parts = _Parts(form for form in self._ordered if form not in self._beside)
        return self._parts.masked(text)

    def stands_in(self, body: bytes) -> bool:
        """Whether a secret stands in a file's bytes, in UTF-8 or, one of plain letters, UTF-16."""
        if self._encoded is None:
            self._encoded = [form.encode("utf-8", "surrogatepass") for form in self._ordered]
        # Without its zeros UTF-16 is ASCII; to look for patterns with zeros in a file that is full of them
        # takes minutes.
        body = body.translate(None, b"\0") if b"\0" in body else body
        return any(form in body for form in self._encoded)

    def _mask(self, found: re.Match[str]) -> str:
        return self._beside.get(found[0], MASK)

    def value(self, value: _T) -> _T:
        """The value with every secret masked in its texts and keys; structs, mappings, lists.

        What holds no secret is returned as it is; nothing is changed in place. A number is masked
        where its digits are a secret.
        """
        return self._value(value, 0) if self else value

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if value is None or isinstance(value, (bool, float)):
            return value
        if isinstance(value, int):
            return MASK if value > 9_999_999 and value < 2**64 and str(value) in self._forms else value
        if depth > 200:
            return MASK
        if isinstance(value, msgspec.Struct):
            fields = {name: self._value(getattr(value, name), depth + 1) for name in value.__struct_fields__}
            if all(getattr(value, name) is item for name, item in fields.items()):
                return value
            return msgspec.structs.replace(value, **fields)
        if isinstance(value, dict):
            masked = {
                self._key(key): self._value(
                    _without(item, self._named[key]) if key in self._named else item, depth + 1
                )
                for key, item in value.items()
            }
            same = all(
                old == new and value[old] is masked[new] for old, new in zip(value, masked, strict=False)
            )
            return value if same and len(masked) == len(value) else masked
        if isinstance(value, (list, tuple)):
            items = [self._value(item, depth + 1) for item in value]
            if all(old is new for old, new in zip(value, items, strict=True)):
                return value
            return items if isinstance(value, list) else tuple(items)
        return value

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def begins(self, tail: str) -> bool:
        """Whether a form of a secret may begin with this."""
        if self._heads is None:
            self._heads = {}
            for form in self._ordered:
                for size in range(1, _SHORTEST_PART + 1):
                    self._heads.setdefault(form[:size], []).append(form)
        return any(form.startswith(tail) for form in self._heads.get(tail[:_SHORTEST_PART], ()))

    def stream(self) -> MaskedStream:
        """A masker for text that arrives in pieces."""
        return MaskedStream(self)


class _Parts:
    """Finds what is left of secrets that were cut: the beginning before a `…`, the end after one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._heads: dict[str, list[str]] = {}
        self._tails: dict[str, list[str]] = {}
        self._longest = 0
        self._long: list[str] = []
        for one in secrets:
            if len(one) > _LONG:  # few: looked for one by one
                self._long.append(one)
                continue
            self._heads.setdefault(one[:_SHORTEST_PART], []).append(one)
            self._tails.setdefault(one[-_SHORTEST_PART:], []).append(one)
            self._longest = max(self._longest, len(one))

    def masked(self, text: str) -> str:
        first, *rest = text.split(CUT)
        pieces = [self._without_head(first)]
        for piece in rest[:-1]:
            pieces.append(self._without_head(self._without_tail(piece)))
        pieces.append(self._without_tail(rest[-1]))
        return CUT.join(pieces)

    def _without_head(self, piece: str) -> str:
        """The piece, which ends where it was cut, without the beginning of a secret at its end."""
        found = len(piece)
        for at in range(max(0, len(piece) - self._longest), len(piece) - _SHORTEST_PART + 1):
            secrets = self._heads.get(piece[at : at + _SHORTEST_PART], ())
            if any(one.startswith(piece[at:]) for one in secrets):
                found = at
                break
        for one in self._long:
            at = piece.find(one[:_SHORTEST_PART], max(0, len(piece) - len(one)))
            while -1 < at < found:
                if one.startswith(piece[at:]):
                    found = at
                at = piece.find(one[:_SHORTEST_PART], at + 1)
        return piece if found == len(piece) else piece[:found] + MASK

    def _without_tail(self, piece: str) -> str:
        """The piece, which begins where it was cut, without the end of a secret at its beginning."""
        found = 0
        for end in range(min(len(piece), self._longest), _SHORTEST_PART - 1, -1):
            secrets = self._tails.get(piece[end - _SHORTEST_PART : end], ())
            if any(one.endswith(piece[:end]) for one in secrets):
                found = end
                break
        for one in self._long:
            tail = one[-_SHORTEST_PART:]
            at = piece.rfind(tail, 0, len(one))
            while at > -1 and (end := at + len(tail)) > found:
                if one.endswith(piece[:end]):
                    found = end
                at = piece.rfind(tail, 0, end - 1)
        return MASK + piece[found:] if found else piece


def _before(name: str) -> list[str]:
    """What stands before the value of a name in texts: in addresses, headers, YAML, JSON, and JSON within JSON."""
    found = [f"{name}=", f"{name}: ", f"{name}:"]
    for mark in ('"', "'", '\\"'):
        found += [
            f"{name}={mark}",
            f"{name}: {mark}",
            f"{mark}{name}{mark}: {mark}",
            f"{mark}{name}{mark}:{mark}",
        ]
    return found


def _without(value: Any, secret: str) -> Any:
    """What stands under the name of a secret, also in lists, where it is that."""
    if isinstance(value, (list, tuple)):
        items = [_without(item, secret) for item in value]
        return value if all(map(operator.is_, items, value)) else items
    plain = isinstance(value, (str, int)) and not isinstance(value, bool)
    return MASK if plain and str(value) == secret else value


class MaskedStream:
    """Masks text that arrives in pieces, where a secret may be cut between two of them.

    The end of a piece that could begin a secret is held back until the next one.
    """

    def __init__(self, masker: Masker) -> None:
        self._masker = masker
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that can be shown now."""
        text = self._masker.text(self._held + piece)
        held = self._beginning(text)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def flush(self) -> str:
        """What was held back, at the end of the stream."""
        rest, self._held = self._held, ""
        return self._masker.text(rest)

    def _beginning(self, text: str) -> int:
        for size in range(min(self._masker.longest - 1, len(text)), 0, -1):
            if self._masker.begins(text[-size:]):
                return size
        return 0
