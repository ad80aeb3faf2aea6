"""Environment variables in the configuration, and who may have them and other secrets.

A variable is written `${NAME}` or `${NAME:-default}` (the default also stands for an empty one);
`$${` is a plain `${`. Filling in happens when an agent or database is used, so that a variable
that only one agent needs does not stop the others.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from tui_eval.config.config_schema import (
    DATABASE_TYPES,
    AgentSpec,
    Config,
    ConfigError,
    DatabaseSpec,
    VariableNotSet,
)
from tui_eval.guard.masker import Masker
from tui_eval.guard.paths import inside
from tui_eval.guard.secrets import SHORTEST, in_command, secret_values
from tui_eval.guard.trust import NeedsTrust, Trust, code_by_variable, runs_code

USUAL_KEYS = {
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
}
"""The variable in which people keep a provider's API key, by type of agent."""

OWN_HOSTS = {
    "openai": "api.openai.com",
    "openai-responses": "api.openai.com",
    "openai-moderation": "api.openai.com",
    "anthropic": "api.anthropic.com",
    "huggingface-classifier": "router.huggingface.co",
}
"""The provider's own host, which may have that key without being asked for trust."""

_OPENAI_URLS = ("OPENAI_API_BASE_URL", "OPENAI_BASE_URL")
BASE_URLS = {
    "openai": _OPENAI_URLS,
    "openai-responses": _OPENAI_URLS,
    "openai-moderation": _OPENAI_URLS,
    "anthropic": ("ANTHROPIC_BASE_URL",),
    "ollama": ("OLLAMA_BASE_URL",),
}
"""The variables with which people lead a provider's clients elsewhere, the first that is set."""

_VARIABLE = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_ADDRESS_KEYS = ("base_url", "url")
OPENAI_ADDRESS = "https://api.openai.com/v1"
ANTHROPIC_ADDRESS = "https://api.anthropic.com"
_DEFAULT_ADDRESS = {
    "openai": OPENAI_ADDRESS,
    "openai-responses": OPENAI_ADDRESS,
    "openai-moderation": OPENAI_ADDRESS,
    "anthropic": ANTHROPIC_ADDRESS,
}


def variables_in(text: str) -> list[str]:
    """The environment variables that a text of a configuration names (`${NAME}`, `${NAME:-default}`)."""
    return [found[1] for found in _VARIABLE.finditer(text) if found[1]]


def no_variable(text: str) -> str:
    """What of a text was meant for a variable, is none and so stays as it is, in words (`${NAME` without its end,
    `${NAME-default}`, a whole value that is `$NAME`); empty where nothing was."""
    if re.fullmatch(r"\$[A-Za-z_]\w*", text):
        return "$ before a name without braces"
    end = 0
    for found in _VARIABLE.finditer(text):
        if "${" in text[end : found.start()]:
            break
        end = found.end()
    at = text.find("${", end)
    return repr(text[at : at + 40]) if at >= 0 else ""


def with_names(text: str, kept: Callable[[str], bool], filled: bool) -> str:
    """A text with some variables as `${NAME}`, and no default of theirs; the others filled in, or left as
    they stand."""
    sign = "$$" if filled else "$"
    named = _VARIABLE.sub(lambda one: f"{sign}{{{one[1]}}}" if one[1] and kept(one[1]) else one[0], text)
    return _filled_where_possible(named) if filled else named


def chosen_address(kind: str) -> str | None:
    """The address that the person's environment puts in the place of the provider's own, for agents of this type; None:
    it says nothing. It holds for every way to name a model that names no address."""
    if kind.startswith("openai") and (host := os.environ.get("OPENAI_API_HOST")):
        return f"https://{host}/v1"
    return next((url for name in BASE_URLS.get(kind, ()) if (url := os.environ.get(name))), None)


def fill_agent(spec: AgentSpec, trust: Trust) -> AgentSpec:
    """See `tui_eval.config.project.fill`."""
    trusted = spec.typed or trust.granted
    place = f"agents.{spec.name}"

    def forbid(name: str, goes_to: str = "") -> None:
        if not trusted:
            host = f" for {goes_to}" if goes_to else ""
            trust.require(f"read the environment variable {name}{host} ({place})")

    if not trusted and spec.type == "command":
        _check_variables(spec.options.get("env"), f"{place}.env", trust)
    shown = place if spec.line else f"provider {spec.name}"  # of a suite: no entry of tui_eval.yaml
    address_filler = _Filler(forbid)
    options = dict(spec.options)
    for key in () if spec.plain else _ADDRESS_KEYS:
        if key in options:
            options[key] = address_filler.value(options[key], f"{shown}.{key}")
    if not options.keys() & set(_ADDRESS_KEYS) and (chosen := chosen_address(spec.type)):
        options["base_url"] = chosen
    address = next((options[key] for key in _ADDRESS_KEYS if key in options), _DEFAULT_ADDRESS.get(spec.type))

    def allow(name: str) -> None:
        # This machine may be sent what stands in the file; what the file reads of the environment is asked
        # for there too.
        if not (name == USUAL_KEYS.get(spec.type) and is_own_host(spec.type, address)):
            forbid(name, destination(address))

    filler = _Filler(allow)
    for key, value in options.items():
        if key == "api_key" if spec.plain else key not in _ADDRESS_KEYS:
            options[key] = filler.value(value, f"{shown}.{key}")
    model = spec.model if spec.plain else filler.value(spec.model, f"{shown}.model")
    files = filler.value(spec.files, f"{shown}.files")
    if not trusted:
        _check_secrets(spec, address, trust)
    _add_usual_key(spec, options, address, trusted, trust)
    if spec.type == "nao" and not options.get("url") and (own := os.environ.get("BACKEND_URL")):
        options["url"] = own  # chosen by the person, no file: nothing above is asked of it
    return msgspec.structs.replace(spec, options=options, model=model, files=files)


def model_of(spec: AgentSpec, trust: Trust) -> str | None:
    """See `tui_eval.config.project.model_of`."""
    if not spec.model or spec.plain or "${" not in spec.model:
        return spec.model
    addressed = {key: value for key, value in spec.options.items() if key in _ADDRESS_KEYS}
    asked = msgspec.structs.replace(
        spec, options=addressed, files=[]
    )  # what else it lacks is said when it is used
    try:
        return fill_agent(asked, Trust(trust.granted, agreed=trust.agreed)).model
    except (ConfigError, NeedsTrust):
        return spec.model


def _check_variables(env: Any, place: str, trust: Trust) -> None:
    """Variables by which a command runs other code need trust, as the file has them: `${PATH}` is another text on each
    machine, and no value is shown that nobody let it read."""
    for name, value in env.items() if isinstance(env, Mapping) else ():
        if value is not None and runs_code(str(name)):
            trust.require(code_by_variable(str(name), place, str(value)))


def _check_secrets(spec: AgentSpec, address: str | None, trust: Trust) -> None:
    """Secrets written in the file go to this machine or the provider itself, else trust is needed."""
    if address is None or is_loopback(address) or is_own_host(spec.type, address):
        return
    if not address and spec.type == "promptfoo-http":  # its request stands in a file: who reads that asks
        return
    for key, value in spec.options.items():
        if key == spec.secret_in or secret_values({key: value}) or holds_secret(value):
            trust.require(f"send a secret (agents.{spec.name}.{key}) to {destination(address)}")


def check_led_to(spec: AgentSpec, named: str, address: str, trust: Trust) -> None:
    """Secrets of an entry that goes to `named`, where templates filled in (`http://127.0.0.1:{{port}}/`), or a request
    with a host of its own, lead to another host: it is asked for as that one. One that is a template throughout was
    asked for as it stands.

    Raises:
        NeedsTrust: it is neither the one that is named nor this machine.
    """
    if not (spec.typed or trust.granted) and leads_elsewhere(named, address):
        _check_secrets(spec, address, trust)


def chosen_host(spec: AgentSpec) -> str:
    """The host that gets what an agent of this entry is asked (its variables filled in), where a file chose it: empty
    for this machine, the provider's own, one that the person's environment names, and who has no address."""
    address = next((one for key in _ADDRESS_KEYS if isinstance(one := spec.options.get(key), str)), None)
    if spec.typed or address is None or is_loopback(address) or is_own_host(spec.type, address):
        return ""
    return "" if spec.type == "nao" and address == os.environ.get("BACKEND_URL") else destination(address)


def said_to(suite: str, host: str) -> str:
    """The name of asking a question that holds a secret."""
    return f"send a secret (in what {suite} asks) to {host}"


def check_said(
    spec: AgentSpec, suite: str, said: Any, masker: Masker, trust: Trust, reads: Callable[[], bool]
) -> None:
    """See that a question may go where it goes: that a suite may read a secret says nothing of the host that gets it
    in a prompt (`{{ env.TOKEN }}`), a variable or sly_data. `reads`: whether its templates read one, of which filters
    may make another text.

    Raises:
        NeedsTrust: a secret is in it, and a file chose the host.
    """
    if trust.granted or not masker or not (host := chosen_host(spec)):
        return
    if any(masker.text(one) != one for one in texts_in(said)) or reads():
        trust.require(said_to(suite, host))


def leads_elsewhere(named: str, address: str) -> bool:
    """Whether an address leads to another host than the one that stands in `named`, whose templates it fills in."""
    if address == named:
        return False
    filled = _TEMPLATES.sub("{}", named)
    host = host_of_origin(filled)
    if filled.startswith("{") or "{" in host:
        return False
    return not host or host_of_origin(address) != host


def host_of_origin(address: str) -> str:
    """Its host, whatever blanks there are behind that."""
    origin = _ORIGIN.match(address)
    return host_of(origin[0]) if origin is not None else ""


_TEMPLATES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_ORIGIN = re.compile(r"[\w+.-]+://[^/?#]*")


def texts_in(value: Any) -> Iterator[str]:
    """Each text of a nested value; its keys are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from texts_in(item)


def holds_secret(value: Any, secrets: Iterable[str] | None = None) -> bool:
    """Whether one of these, or of the environment's secrets, stands in it, under whatever name: a suite's
    `{{ env.TOKEN }}` is filled in when it is read."""
    known = _of_environment(dict(os.environ)) if secrets is None else secrets
    held = [one for one in known if len(one) >= SHORTEST and not one.isalpha()]
    waiting = [value] if held else []
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if any(secret in one for secret in held):
                return True
        elif isinstance(one, (dict, list)):
            waiting += one.values() if isinstance(one, dict) else one
    return False


def _add_usual_key(
    spec: AgentSpec, options: dict[str, Any], address: str | None, trusted: bool, trust: Trust
) -> None:
    name = USUAL_KEYS.get(spec.type)
    key = os.environ.get(name, "") if name else ""
    given = {str(header).lower() for header in options.get("headers", {})} & {"authorization", "x-api-key"}
    if not key or "api_key" in options or given:
        return
    if not trusted and not is_own_host(spec.type, address):
        if is_loopback(address):
            return
        trust.require(f"send {name} to {destination(address)} (agents.{spec.name})")
    options["api_key"] = key


def fill_database(spec: DatabaseSpec, roots: Sequence[Path], trust: Trust) -> DatabaseSpec:
    """See `tui_eval.config.project.database`; below `roots` (the project's first) files may be read."""
    place = f"databases.{spec.name}"
    if spec.type not in DATABASE_TYPES:
        can = ", ".join(DATABASE_TYPES)
        raise ConfigError(f"{place}: databases of type {spec.type} cannot be queried from here (only {can})")

    def forbid(name: str) -> None:
        trust.require(f"read the environment variable {name} ({place})")

    filler = _Filler(forbid)
    path = filler.value(spec.path, f"{place}.path")
    url = _filled_address(spec, filler, f"{place}.url")
    schema = filler.value(spec.schema, f"{place}.schema_name")
    if path and path != ":memory:" and spec.type in ("duckdb", "sqlite", "files"):
        path = os.path.abspath(roots[0] / path)
        if not any(inside(root, Path(path)) for root in roots):
            # What a link leads to is agreed to, not its name: tomorrow it may lead elsewhere.
            target = os.path.realpath(path)
            by = "" if target == path else f": the link {path}"
            trust.require(f"read {target} ({place}{by})")
    outside = _links(Path(path), roots, trust, place) if path and spec.type == "files" else []
    if spec.type == "postgres":
        _check_server(url, roots, trust, place)
    return msgspec.structs.replace(spec, path=path, url=url, schema=schema, outside=outside)


def _filled_address(spec: DatabaseSpec, filler: _Filler, place: str) -> str:
    return (filler.encoding() if spec.url_of_parts else filler).value(spec.url, place)


def _check_server(url: str, roots: Sequence[Path], trust: Trust, place: str) -> None:
    """See that a PostgreSQL server may be asked: libpq sends it what the person keeps for servers (`PGPASSWORD`,
    `~/.pgpass`), whatever the address says.

    Raises:
        NeedsTrust: it is not this machine's, or files elsewhere are read for it, in a folder that is not trusted.
    """
    servers = [one for one in postgres_hosts(url) if not _is_this_machine(one)]
    if servers:
        where = ", ".join(servers)
        secret = secret_values({"url": url, **postgres_options(url)})
        trust.require(
            f"send a secret ({place}.url) to {where}" if secret else f"ask the server {where} ({place}.url)"
        )
    for option, named in _postgres_files(url).items():
        path = os.path.realpath(os.path.expanduser(named))
        if not any(inside(root, Path(path)) for root in roots):
            trust.require(f"read {path} ({place}.url: {option})")
    if service := postgres_options(url).get("service"):
        trust.require(f"read pg_service.conf ({place}.url: the service {service})")


def _links(folder: Path, roots: Sequence[Path], trust: Trust, place: str) -> list[str]:
    """What links in a folder lead to: files of the project, others where they may be read.

    Raises:
        NeedsTrust: one leads out of the project, in a folder that is not trusted.
    """
    found: list[str] = []
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return found
    for entry in entries:
        if not entry.is_symlink():
            continue
        target = Path(os.path.realpath(entry.path))
        if not any(inside(root, target) for root in roots):
            trust.require(f"read {target} ({place}: the link {entry.name})")
        found.append(str(target))
    return found


def known_secrets(config: Config) -> list[str]:
    """See `tui_eval.config.project.secrets`."""
    found = dict.fromkeys((*_of_environment(dict(os.environ)), *config.suite_secrets))
    specs = [*config.agents.values(), *([config.judge] if config.judge else [])]
    for spec in specs:
        options = {key: value for key, value in spec.options.items() if key not in ("tools", "parameters")}
        found |= dict.fromkeys(secret_values(_filled_where_possible(options)))
        if isinstance(command := options.get("command"), (str, list)):
            found |= dict.fromkeys(in_command(_filled_where_possible(command)))
    given = config.typed.get("vars")
    found |= dict.fromkeys(secret_values(given if isinstance(given, dict) else {}))
    for database in config.databases.values():
        url = _filled_address(database, _Filler(lambda name: None, missing=lambda name: ""), "")
        options = postgres_options(url) if url else {}
        found |= dict.fromkeys(secret_values({"url": url, **options}))
    return [value for value in found if len(value) >= SHORTEST]


_environment: tuple[dict[str, str], list[str]] = {}, []


def _of_environment(variables: dict[str, str]) -> list[str]:
    """The secrets among variables; asked for with every suite, so that those of the last time are remembered."""
    global _environment
    if _environment[0] != variables:
        _environment = variables, secret_values(variables)
    return _environment[1]


def _filled_where_possible(value: Any) -> Any:
    filler = _Filler(lambda name: None, missing=lambda name: "")
    return filler.value(value, "")


class _Filler:
    """Replaces the variables of a value; `check` may refuse one that is set, `written` says how its value is put
    there."""

    def __init__(
        self,
        check: Callable[[str], None],
        missing: Callable[[str], str] | None = None,
        written: Callable[[str], str] = str,
    ) -> None:
        self._check = check
        self._missing = missing
        self._written = written

    def encoding(self) -> _Filler:
        """The same, for values that are parts of an address."""
        return _Filler(self._check, self._missing, lambda value: quote(value, safe=""))

    def value(self, value: Any, place: str) -> Any:
        if isinstance(value, str):
            return self._text(value, place) if "${" in value else value
        if isinstance(value, Mapping):
            return {key: self.value(item, f"{place}.{key}") for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item, f"{place}.{index}") for index, item in enumerate(value)]
        return value

    def _text(self, text: str, place: str) -> str:
        def replace(match: re.Match[str]) -> str:
            name, default = match.groups()
            if name is None:
                return "${"
            found = os.environ.get(name)
            if found or (found is not None and default is None):
                self._check(name)
                return self._written(found)
            if default is not None:
                return default
            if self._missing is not None:
                return self._missing(name)
            raise VariableNotSet(place, name)

        return _VARIABLE.sub(replace, text)


def host_of(address: str | None) -> str:
    """The host that an address leads to; empty where that is not beyond doubt."""
    if not address or re.search(r"[\\\s\x00-\x1f\x7f]", address):
        return ""
    try:
        return (urlsplit(address).hostname or "").rstrip(".")
    except ValueError:
        return ""


def destination(address: str | None) -> str:
    """Where something would be sent, for people: the host, or the address as it stands where that names none
    (a template that nothing fills in)."""
    return host_of(address) or address or ""


def is_own_host(kind: str, address: str | None) -> bool:
    """Whether an address is the own one of the provider of this type of agent (over TLS), or the one
    that the person's environment puts in its place."""
    host = host_of(address)
    if not host:
        return False
    chosen = chosen_address(kind)
    if chosen and chosen.rstrip("/") == str(address).rstrip(
        "/"
    ):  # the person's environment names it, no file
        return True
    return host == OWN_HOSTS.get(kind) and str(address).lower().startswith("https://")


def is_loopback(address: str | None) -> bool:
    """Whether an address leads to this machine."""
    return _is_loopback(host_of(address))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_this_machine(host: str) -> bool:
    """Whether a host by libpq's rules is this machine: a name of it, or a socket (`/run/postgresql`, `@abstract`)."""
    return host.startswith(("/", "@")) or _is_loopback(host.lower())


# -- Where PostgreSQL's library (libpq) would go with an address, and which files it would read for it. It has
# rules of its own: `postgres://localhost?@other/db` and `postgres://localhost/db?hostaddr=10.0.0.1` are not
# this machine's, and an address may be words (`host=… password=…`).

_POSTGRES = ("postgresql://", "postgres://")
_PG_USER = r"([^:@]*)(?::([^@]*))?@"
_PG_HOST = r"(\[[^\]]*\]?|[^:/?,]*)(?::[^/?,]*)?"
_PG_WORD = r"(?s)(\w+)\s*=\s*('(?:[^'\\]|\\.)*'?|(?:[^\s\\]|\\.)*)"
_PG_FILES = (
    "passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir", "sslkeylogfile", "servicefile",
)  # fmt: skip
_NO_PG_FILE = {"", "system"}
"""What stands in the place of a file and is none."""


def postgres_options(address: str) -> dict[str, str]:
    """What an address says, by libpq's names (`host`, `password`, `sslkey`, …), the last one of each."""
    return dict(_pairs(address))


def postgres_hosts(address: str) -> list[str]:
    """The hosts that would be connected to, each once; none where the person's environment says it (`PGHOST`)."""
    named = ",".join(value for name, value in _pairs(address) if name in ("host", "hostaddr"))
    return list(dict.fromkeys(filter(None, named.split(","))))


def _postgres_files(address: str) -> dict[str, str]:
    """The files that would be read or written for it, by the option that names them."""
    return {
        key: value
        for key, value in postgres_options(address).items()
        if key in _PG_FILES and value not in _NO_PG_FILE
    }


def _pairs(address: str) -> Iterator[tuple[str, str]]:
    prefix = next((one for one in _POSTGRES if address.startswith(one)), "")
    return _of_uri(address[len(prefix) :]) if prefix else _of_words(address)


def _of_uri(rest: str) -> Iterator[tuple[str, str]]:
    user = re.match(_PG_USER, rest) if re.match(r"[^@/]*@", rest) else None
    if user is not None:
        yield "user", _of_part(user[1])
        yield "password", _of_part(user[2] or "")
        rest = rest[user.end() :]
    named: list[str] = []
    while True:
        found = re.match(_PG_HOST, rest)
        assert found is not None  # each part of it may be empty
        host = found[1][1:].removesuffix("]") if found[1].startswith("[") else found[1]
        named.append(_of_part(host))
        rest = rest[found.end() :]
        if not rest.startswith(","):
            break
        rest = rest[1:]
    yield "host", ",".join(named)
    for pair in rest.partition("?")[2].split("&"):
        name, _, value = pair.partition("=")
        if name:
            yield _of_part(name), _of_part(value)


def _of_part(text: str) -> str:
    """A part of an address as libpq has it since version 17: blanks around it are none of it (`? host=other`)."""
    return unquote(text.strip(" "))


def _of_words(address: str) -> Iterator[tuple[str, str]]:
    for name, value in re.findall(_PG_WORD, address):
        yield name, re.sub(r"(?s)\\(.)", r"\1", value.strip("'") if value.startswith("'") else value)
