"""Secrets: which values are some. `masker` takes them out of whatever is stored or shown."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

MASK = "•••"
SHORTEST = 8
"""Characters that a value must have to be masked: shorter ones would mask ordinary words."""
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
_COOKIES = r"\s*[A-Za-z_][\w.-]*=[^\s;=][^\s;]*(?:;\s*[A-Za-z_][\w.-]*=[^\s;]*)*;?\s*"
_IN_TEXT = (
    r"(?<![\w.$-])([A-Za-z_][\w.-]{0,80})\\*[\"']?\s?(?:=|:)[ \t]*\\*[\"']?"
    r"(?:(?i:bearer|basic|token|apikey)[ \t]+)?([^\s\"'\\&;,<>{}()\[\]|$`]{8,})"
)
"""A name and its value in a text: of a form or a connection string (`name=value`), a header, JSON, also within JSON."""
_OF_CODE = r"(?:process|os|env|context|config|options|vars|this|self|json|response|data|result|output)\."
"""How what stands behind a name in code begins that takes it from elsewhere."""
_LOGIN = r"(?i)(?<!\w)basic[ \t]+[\w+/-]{8,}={0,2}"
_COOKIE_LINE = r"(?im)^[ \t]*(?:set-)?cookie:[ \t]*(\S.*)$"
_ALONE = r"(?i)\s*(?:bearer|basic)\s+([^\s,;]+)\s*"
_PROSE = frozenset({"system", "instructions", "prompt", "prompts", "description", "label"})
"""Options that are written for a model or a person to read: `password: …` in one is said, not sent as one."""
_HINTS = re.compile(r"(?i)key|token|secret|pass|pwd|auth|credential|cookie")
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
    """Whether an address's `name=value` is a secret: as any pair, or what signs it (`sig` of Azure,
    `X-Amz-Signature`), or a `code` that looks like a key (Azure Functions, OAuth)."""
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


_ENDS = ":;,.!)"


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
        ends = found[3][len(found[3].rstrip(_ENDS)) :]  # of the sentence that the address stands in
        return f"{_head(found)}{ends}" if secret and _head(found) != found[0] else found[0]

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
    """Whether what stands under a name that sounds like a secret's is none, beyond doubt: by the name
    (`cache_key`) where it does not look like one, or by the value, plain words, numbers and the like.

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
    """A text under this name with only the secrets in it masked: the rest is what it does. Variables and
    templates stay, and what stands beside them where it is plain words.

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
    for secret in () if name in _PROSE else sorted(in_text(text), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return in_addresses(text, but=lambda name, value: no_secret(name, value, False, False))


def _in_cookie(found: re.Match[str]) -> str:
    hides = secret_name(found[1]) or _opaque(found[2])
    return found[1] + MASK if hides and not re.search(_REFERENCE, found[2]) else found[0]


def secret_values(values: Mapping[str, Any], *, texts: bool = True) -> list[str]:
    """The values to mask in a mapping of names to values, nested ones included.

    Taken are texts and numbers of eight characters or more under secret names, the credential
    within an `Authorization` value, passwords and keys within URLs under any name, and what looks like a secret behind
    its name in a longer text (`texts`): a body, a whole request, a connection string. References
    to environment variables not yet filled in, and templates, are not values.
    """
    found: dict[str, None] = {}
    _collect(values, False, found, 0)
    if texts:
        for text in _texts_in(values, 0):
            for part in in_text(text):
                _keep(part, found)
    return list(found)


def _texts_in(value: Any, depth: int) -> Iterator[str]:
    """The texts of a configuration that programs read."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < 50:
        for name, item in value.items():
            if name not in _PROSE:
                yield from _texts_in(item, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < 50:
        for item in value:
            yield from _texts_in(item, depth + 1)


def in_text(text: str) -> list[str]:
    """The secrets that stand behind their names in a text, those that look like some."""
    if len(text) > _LONGEST_DOCUMENT:
        return []
    if alone := re.fullmatch(_ALONE, text):
        return [part for part in credential_parts(text) if _opaque(part)] if _opaque(alone[1]) else []
    if not _HINTS.search(text):
        return []
    found = [
        value
        for name, value in re.findall(_IN_TEXT, text)
        if secret_name(name)
        and _opaque(value)
        and not (no_secret(name, value, False) or re.match(_OF_CODE, value))
    ]
    for login in re.findall(_LOGIN, text):
        found += credential_parts(login)[1:]
    for line in re.findall(_COOKIE_LINE, text):
        found += _in_cookies(line)
    return found


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
            for part in (*credential_parts(value), *_lines_of(value), *_in_cookies(value)):
                _keep(part, found)
    elif isinstance(value, int) and not isinstance(value, bool) and secret:
        _keep(str(value), found)


def _keep(value: str, found: dict[str, None]) -> None:
    if len(value) >= SHORTEST and MASK not in value and not re.search(_REFERENCE, value):
        found[value] = None


def _in_cookies(value: str) -> list[str]:
    """The secrets among the cookies of a header (`sid=…; lang=en`): a server knows them without their names."""
    if re.fullmatch(_COOKIES, value) is None:
        return []
    pairs = (one.partition("=") for one in re.split(r";\s*", value.strip("; ")))
    return [item for name, _, item in pairs if secret_name(name) or _opaque(item)]


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
        for part in (*_url_secrets(word), *in_text(word)):
            _keep(part, found)
        after = after.rstrip(";|&)")  # of the shell
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
    """Whether a command's option gives a secret, not what says where it is (a variable, its name, a path,
    what provides it); `alone`: the value is the next word, which has nothing to do with a switch
    (`--no-password`)."""
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
