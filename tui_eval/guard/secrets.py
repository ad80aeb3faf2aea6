"""Secrets: which values are some, and how they are masked in whatever is stored or shown."""

from __future__ import annotations

import base64
import binascii
import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

import msgspec

MASK = "•••"
SHORTEST = 8
"""Characters that a value must have to be masked: shorter ones would mask ordinary words."""

CUT = "…"
"""What stands where a text was cut, and where a secret may have been."""
_SHORTEST_PART = 4
"""Characters of a secret, beside where it was cut, from which on they are masked."""
_LONG = 300
_SHORTEST_TYPED = 6
_NO_WORD = r"(?s)(?=.*[^\W\d_])(?=.*(?:\d|[^\w\s.-]))"
"""Of a secret that was typed: from so many characters on, and with more than letters, it is looked for in texts."""

_T = TypeVar("_T")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_ENDINGS = (
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "authorization",
    "credential",
)
_NOT_ENDINGS = ("monkey", "turkey", "hotkey", "donkey", "whiskey", "jockey", "hockey")
_SECRET_PLURALS = frozenset(f"{ending}s" for ending in _SECRET_ENDINGS) - {"tokens"} | {"pwd"}
_ABOUT_A_SECRET = frozenset(
    (
        *("count", "dir", "env", "expiry", "file", "folder", "format", "header", "length", "limit"),
        *("max", "name", "path", "size", "sock", "ttl", "type", "url", "uri", "alias", "envar"),
    )
)
_MADE_BY_MACHINES = ("key", "token")
"""Endings of names of which many are no secret: what machines make looks like it, a password may be any word."""
_OF_WHAT = frozenset(
    ("cache", "partition", "sort", "sorting", "group", "grouping", "primary", "foreign", "lookup", "index",
     "map", "row", "column", "field", "order", "join", "shard", "route", "routing", "filter", "label",
     "category", "stop", "eos", "bos", "pad", "unk", "mask", "sep", "start", "end", "special", "think",
     "thinking", "dedup", "dedupe", "idempotency", "translation", "locale", "object", "public", "answer",
     "result")
)  # fmt: skip
"""Words before `key` and `token` that say what it is of: a name like `cache_key` only sounds like a secret."""
_ABOUT_HOW = frozenset(
    ("budget", "mode", "policy", "strategy", "style", "rule", "rules", "kind", "level", "source", "scheme",
     "method", "prompt", "position", "order", "column", "field", "threshold")
)  # fmt: skip
"""Last words of names that only sound like a secret: `token_budget`, `password_policy`."""
_OF_WHOM = frozenset(
    ("api", "access", "auth", "oauth", "private", "bearer", "refresh", "session", "admin", "account",
     "client", "master", "signing", "sign", "encryption", "deploy", "service", "user", "id", "app",
     "security", "license", "ssh", "hook", "webhook", "personal", "root")
)  # fmt: skip
"""Words before `key` and `token` that leave no doubt."""
_LAST_ENDINGS = ("pass", "pwd")
_NOT_LAST = ("bypass", "compass", "trespass", "overpass", "underpass", "surpass")
_LIKELY = frozenset({"jwt", "cookie", "cookies", "session", "auth", "bearer", "pat"})
"""Words that name a secret where they come last and the value looks like one."""
_SIGNING = frozenset({"sig", "signature", "hmac"})
"""Words that name what signs an address: who has it has what it leads to."""
_NO_SECRETS = frozenset({"PWD", "OLDPWD", "DESKTOP_SESSION"})
"""The shell's and the desktop's own variables: folders and names, no passwords."""
_ADDRESS_PASSWORD = r"(?i)([a-z][a-z0-9+.-]*://[^\s/@:?#\"']*:)([^\s/?#\"']+)(?=@)"
_ADDRESS_TOKEN = r"(?i)([a-z][a-z0-9+.-]*://)(?=[a-z_-]*\d)([\w-]{16,})(?=@)"
_TOKEN = r"(?=[A-Za-z_-]*\d)[\w-]{16,}"
"""A user of an address that is a token by its looks, as in `_ADDRESS_TOKEN`."""
_ADDRESS_PART = r"([?&;#]([\w.%\[\]-]+)=)([^&#;\s\"']+)"
_PAIR = r"(?s)((?:--[\w-]+=)?([A-Za-z_][\w.-]*)=)(.+)"
_SCHEME = r"(?i)^\s*(?:bearer|basic|token|apikey|digest)\s+(\S.*)$"
_REFERENCE = r"\$\{[^}]*\}|\{\{[\s\S]*?\}\}"
_SCHEME_WORD = r"(?i)\s*(?:bearer|basic|token|apikey|digest)\s+"
_OPTION_OR_HEADER = r"(?s)-{0,2}([A-Za-z_][\w.-]*)(?:=|:\s*)(.+)"
_LINE_OF_A_KEY = r"(?<![\w+/=-])[A-Za-z0-9+/]{20,}={0,2}(?![\w+/=-])"
_SWITCHES = frozenset(
    {"no", "skip", "without", "ask", "prompt", "disable", "enable", "use", "show", "allow", "require"}
)
_OF_A_USER = frozenset({"u", "user", "proxy-user", "U"})
"""Options that curl takes a login by, `name:password`."""
_PROVIDING = frozenset({"provider", "helper", "command", "store", "vault", "manager", "ref"})
_LONGEST_DOCUMENT = 50_000
_IN_COOKIE = r"((?:[A-Za-z_][\w.-]*=(?=[^\s;=]))?)([^\s;]+)"


def secret_name(name: str) -> bool:
    """Whether a value under this name is a secret: `api_key`, `X-Auth-Token`, `PGPASSWORD`, …

    Names are looked at word by word (`keywords` and `monkey` are none); a name that ends in `file`,
    `path`, `url`, `name` and the like says something about a secret, not the secret.
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    if not words or words[-1] in _ABOUT_A_SECRET or name in _NO_SECRETS:
        return False
    if words[-1].endswith(_LAST_ENDINGS) and not words[-1].endswith(_NOT_LAST):
        return True
    return any(
        word in _SECRET_PLURALS or (word.endswith(_SECRET_ENDINGS) and not word.endswith(_NOT_ENDINGS))
        for word in words
    )


def secret_pair(name: str, value: str) -> bool:
    """Whether a text under this name is a secret, short ones too: it is by the name, or by a likelier one (`JWT`,
    `COOKIE`, `SESSION`) where it looks like one: no plain word, number or path."""
    if secret_name(name):
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and words[-1] in _LIKELY and name not in _NO_SECRETS and _opaque(value)


def _in_query(name: str, value: str) -> bool:
    """Whether an address's `name=value` is a secret: as any pair, or what signs it (`sig` of Azure, `X-Amz-Signature`), or a
    `code` that looks like a key (Azure Functions, OAuth)."""
    if secret_pair(name, value):
        return True
    words = [word.lower() for word in _WORDS.findall(name)]
    if words == ["code"]:
        return len(value) >= 2 * SHORTEST and _opaque(value)
    return bool(words) and words[-1] in _SIGNING


def _opaque(value: str) -> bool:
    return (
        len(value) >= SHORTEST and "/" not in value[:1] and bool(re.search(r"\d|[A-Za-z0-9+/_=-]{24}", value))
    )


def in_addresses(text: str, but: Callable[[str, str], bool] | None = None) -> str:
    """The text with passwords and tokens masked within the URLs in it, whatever their length; `but` says of a name and
    what stands under it whether it is none."""
    if "://" not in text:
        return text
    if "@" in text:
        text = re.sub(_ADDRESS_PASSWORD, _second, text)
        text = re.sub(_ADDRESS_TOKEN, _second, text)
    if "=" not in text:
        return text

    def masked(found: re.Match[str]) -> str:
        name, value = unquote(found[2]), unquote(found[3])
        secret = _in_query(name, value) and not (but and secret_name(name) and but(name, value))
        return _head(found) if secret else found[0]

    return re.sub(_ADDRESS_PART, masked, text)


def _second(found: re.Match[str]) -> str:
    return found[0] if re.search(_REFERENCE, found[2]) else found[1] + MASK


def _head(found: re.Match[str]) -> str:
    return found[0] if re.search(_REFERENCE, found[3]) else found[1] + MASK


def in_pairs(values: Mapping[str, str]) -> dict[str, str]:
    """Names and their texts, those of secrets masked whatever their length."""
    return {name: MASK if secret_pair(name, value) else in_addresses(value) for name, value in values.items()}


def in_words(words: Iterable[str]) -> list[str]:
    """The words of a command with secrets masked in `NAME=VALUE` and in URLs."""
    found = ((word, re.fullmatch(_PAIR, word)) for word in words)
    return [
        pair[1] + MASK if pair and secret_pair(pair[2], pair[3]) else in_addresses(word)
        for word, pair in found
    ]


def no_secret(name: str, value: str | int | float, strict: bool, shorter: bool = True) -> bool:
    """Whether what stands under a name that sounds like a secret's is none, beyond doubt: by the name (`cache_key`) where
    it does not look like one, or by the value, plain words, numbers and the like.

    Args:
        strict: Where it stands is a place of secrets (headers): the name has to say it.
        shorter: Whether what is too short to be masked is none.
    """
    words = _split_words(name)
    text = str(value)
    if _only_sounds(words):
        return not any(_made_up(part) for part in re.findall(r"[^\W_]+", text))
    if strict or not all(
        word in _MADE_BY_MACHINES and (at == 0 or words[at - 1] not in _OF_WHOM)
        for at, word in enumerate(words)
        if secret_name(word)
    ):
        return False
    return (shorter and len(text) < SHORTEST) or _plain_words(text)


def _split_words(name: str) -> list[str]:
    """The words of a name, one that is written together with `key` or `token` as two."""
    words: list[str] = []
    for word in (word.lower() for word in _WORDS.findall(name)):
        word = word.removesuffix("s") if word.endswith(("keys", "tokens")) else word
        end = next((end for end in _MADE_BY_MACHINES if word.endswith(end) and word != end), "")
        words += [word.removesuffix(end), end] if end and secret_name(word) else [word]
    return words


def _only_sounds(words: list[str]) -> bool:
    if not words:
        return False
    return words[-1] in _ABOUT_HOW or (
        words[-1] in _MADE_BY_MACHINES and words[-2:-1] != [] and words[-2] in _OF_WHAT
    )


def _made_up(part: str) -> bool:
    """Whether letters and digits in a row look like a machine's."""
    return len(part) >= 24 or (len(part) >= 2 * SHORTEST and not part.isalpha())


def _plain_words(text: str) -> bool:
    parts = re.findall(r"[^\W_]+", text)
    return sum(map(str.isdigit, text)) <= SHORTEST and all(
        (part.isalpha() and len(part) <= 20 and (part.islower() or part.isupper() or part.istitle()))
        or re.fullmatch(r"\d{1,4}|[A-Za-z]{1,2}\d{1,2}|[a-z]+(?:[A-Z][a-z]{2,}){1,4}", part)
        for part in parts
    )


def _made_of_names(text: str) -> bool:
    """Whether it is words with numbers behind them: a path, or the name of an account (`reader_2024`)."""
    return all(re.fullmatch(r"[A-Za-z]{0,20}\d{0,4}", part) for part in re.findall(r"[^\W_]+", text))


def without_secret_parts(name: str, text: str, strict: bool, literal: bool) -> str:
    """A text under this name with only the secrets in it masked: the rest is what it does. Variables and templates stay,
    and what stands beside them where it is plain words.

    Args:
        strict: See `no_secret`.
        literal: It stands so where people look, and holds no variable's value.
    """
    if secret_name(name) and not no_secret(name, text, strict, literal):
        scheme = re.match(_SCHEME_WORD, text)
        head = scheme[0] if scheme else ""
        pieces = re.split(f"({_REFERENCE})", text[len(head) :])
        alone = len(pieces) == 1
        return head + "".join(
            piece if at % 2 or not (alone or _opaque(piece)) else MASK for at, piece in enumerate(pieces)
        )
    if not secret_name(name) and secret_pair(name, text):  # a cookie has a name for each of its values
        return re.sub(_IN_COOKIE, _in_cookie, text)
    return in_addresses(text, but=lambda name, value: no_secret(name, value, False, False))


def _in_cookie(found: re.Match[str]) -> str:
    hides = secret_name(found[1]) or _opaque(found[2])
    return found[1] + MASK if hides and not re.search(_REFERENCE, found[2]) else found[0]


def secret_values(values: Mapping[str, Any]) -> list[str]:
    """The values to mask in a mapping of names to values, nested ones included.

    Taken are texts and numbers of eight characters or more under secret names, the credential
    within an `Authorization` value, and passwords and keys within URLs under any name. References
    to environment variables not yet filled in, and templates, are not values.
    """
    found: dict[str, None] = {}
    _collect(values, False, found, 0)
    return list(found)


def _collect(value: Any, secret: bool, found: dict[str, None], depth: int) -> None:
    if depth > 50:
        return
    if isinstance(value, Mapping):
        for name, item in value.items():
            likely = isinstance(item, str) and secret_pair(str(name), item)
            _collect(item, secret or likely or secret_name(str(name)), found, depth + 1)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _collect(item, secret, found, depth + 1)
    elif isinstance(value, str):
        for part in (*_url_secrets(value), *_in_document(value, depth)):
            _keep(part, found)
        if secret:
            _keep(value, found)
            for part in (*credential_parts(value), *_lines_of(value)):
                _keep(part, found)
    elif isinstance(value, int) and not isinstance(value, bool) and secret:
        _keep(str(value), found)


def _keep(value: str, found: dict[str, None]) -> None:
    if len(value) >= SHORTEST and MASK not in value and not re.search(_REFERENCE, value):
        found[value] = None


def _in_document(value: str, depth: int) -> list[str]:
    """The secrets in a text of JSON (a service's account in one variable), those that look like some."""
    if not value.lstrip().startswith("{") or len(value) > _LONGEST_DOCUMENT:
        return []
    found: dict[str, None] = {}
    try:
        _collect(_without_doubtful(json.loads(value)), False, found, depth + 1)
    except (ValueError, RecursionError):
        return []
    return [one for one in found if _opaque(one)]


def _without_doubtful(value: Any) -> Any:
    """A document without what stands under a name that only sounds like a secret's (`{"key": "python-3.11"}`)."""
    if isinstance(value, list):
        return [_without_doubtful(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: _without_doubtful(item)
        for name, item in value.items()
        if not secret_name(name)
        or not isinstance(item, str | int)
        or not no_secret(name, item if isinstance(item, str) else 0, False)
    }


def _lines_of(value: str) -> list[str]:
    """The lines of a key of several (PEM), and these without what parts them: who says it indents or cuts it."""
    lines = [
        line for line in re.findall(_LINE_OF_A_KEY, value.replace("\\n", "\n")) if not _made_of_names(line)
    ]
    return [*lines, "".join(lines)] if len(lines) > 1 else []


def in_command(command: str | list[Any]) -> list[str]:
    """The secrets among the words of a command: after or in an option of such a name, in a header, in `NAME=VALUE`."""
    import shlex  # imported late: few projects have a command

    try:
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
    except ValueError:
        return []
    found: dict[str, None] = {}
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if " " in word and len(words) > 1:  # a command of a shell (`sh -c '…'`)
            found |= dict.fromkeys(in_command(word))
        pair = re.fullmatch(_OPTION_OR_HEADER, word)
        name, value = (
            (pair[1], pair[2]) if pair else (word.lstrip("-"), after if word.startswith("-") else "")
        )
        if _given(name, value, alone=pair is None):
            _collect({name: value}, True, found, 0)
        elif name in _OF_A_USER and (login := re.fullmatch(r"[^:\s/]+:(.+)", value)):
            _keep("" if _made_of_names(login[1]) or "$" in login[1] else login[1], found)
    return list(found)


def _given(name: str, value: str, *, alone: bool) -> bool:
    """Whether a command's option gives a secret, not what says where it is (a variable, its name, a path, what provides it);
    `alone`: the value is the next word, which has nothing to do with a switch (`--no-password`)."""
    words = [word.lower() for word in _WORDS.findall(name)]
    if alone and words and (words[0] in _SWITCHES or words[-1] == "stdin"):
        return False
    if not secret_pair(name, value) or value[:1] in ("-", "$") or no_secret(name, value, False):
        return False
    elsewhere = words[-1] in _PROVIDING or (secret_name(value) and re.fullmatch("[A-Z][A-Z0-9_]+", value))
    path = "/" in value and _made_of_names(value) and not words[-1].startswith("pass")
    return not elsewhere and not path


def credential_parts(value: str) -> list[str]:
    """The credential in `Bearer …`, and user's password in `Basic …` (RFC 7617)."""
    match = re.match(_SCHEME, value)
    if match is None:
        return []
    parts = [match.group(1).strip()]
    if value.strip().lower().startswith("basic"):
        try:
            decoded = base64.b64decode(parts[0], validate=True).decode()
        except (binascii.Error, ValueError):
            return parts
        parts.append(decoded)
        parts.append(decoded.partition(":")[2])
    return parts


def _url_secrets(value: str) -> list[str]:
    if "://" not in value or len(value) > 10_000:
        return []
    try:
        url = urlsplit(value)
        parts = [unquote(url.password)] if url.password else []
        if parts and len(parts[0]) < SHORTEST and url.username:  # it is one with its user, as it is sent
            parts.append(f"{unquote(url.username)}:{parts[0]}")
        user = unquote(url.username or "")
        if not url.password and re.fullmatch(_TOKEN, user) and not _made_of_names(user):
            parts.append(user)
        for name, item in parse_qsl(url.query):
            if _in_query(name, item):
                parts += [item] if len(item) >= SHORTEST else [f"{name}={item}"]
                if " " in item:  # a plus of base64, as it is sent
                    parts.append(item.replace(" ", "+"))
        return parts
    except ValueError:
        return []


def forms(secret: str) -> set[str]:
    """The ways a secret may be written: as it is, escaped for JSON (as Python, PHP, Go, Gson and .NET do it) and HTML, URL-encoded,
    in base64.

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
        found |= {encoded, re.sub("%..", lambda code: code[0].lower(), encoded)}
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + raw)
        last = (offset + len(raw)) * 8 // 6
        first = -(-offset * 8 // 6)
        inner = encoded[first:last].decode()
        found |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form for form in found if len(form) >= SHORTEST}


def _by_code(text: str, characters: str, case: str) -> str:
    return "".join(f"\\u{ord(one):04{case}}" if one in characters else one for one in text)


def _signs_of(found: Collection[str]) -> set[str]:
    """Texts of which one stands in each form of a secret: few, as most forms have the same letters and digits in a row."""
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
        """Mask the secrets among variables that a person typed, shorter ones too: beside their names whatever they are (as
        keys of data, however deep, and in texts: `name=…`, `name: …`, `"name":"…"`), elsewhere in texts from six
        characters on where they are no words."""
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
        # One search per sign beats the alternation, which tries all forms at every character; so does one of those alone
        # that are there: of a key of many lines there are hundreds.
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
        # Without its zeros UTF-16 is ASCII; to look for patterns with zeros in a file that is full of them takes minutes.
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
