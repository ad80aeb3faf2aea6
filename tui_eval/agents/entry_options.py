"""Reading the options of an agent's entry, with errors that name the key."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from tui_eval.agents.base import Services
from tui_eval.config.config_values import destination, is_loopback, is_own_host
from tui_eval.config.project import AgentSpec, ConfigError
from tui_eval.guard.paths import no_file, read_words

_OWN_HERE = frozenset({"nao", "ollama"})
"""Types of agents whose server has this machine for its usual place."""
COMMON = frozenset({"run", "extraction", "live", "files", "rate"})
_NAMES = {str: "text", dict: "a mapping", list: "a list", bool: "true or false", int: "a whole number"}


class Options:
    """The options of one entry; each getter raises `ConfigError` where the value is of another kind."""

    def __init__(self, spec: AgentSpec, services: Services, known: frozenset[str]) -> None:
        self.spec = spec
        self.services = services
        self.values = spec.options
        unknown = sorted(set(spec.options) - known - COMMON)
        if unknown:
            raise self.error(
                unknown[0], f"is not known for type {spec.type}; known: {', '.join(sorted(known))}"
            )

    def error(self, key: str, message: str) -> ConfigError:
        """An error that names the key of this entry."""
        return ConfigError(f"{place(self.spec, key)}: {message}")

    def text(self, key: str, default: str | None = None) -> str | None:
        """A text; a number is taken as its text."""
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise self.error(key, f"must be text, not {type(value).__name__}")
        return str(value)

    def required(self, key: str, example: str) -> str:
        """A text that must be there."""
        value = self.text(key)
        if not value:
            raise self.error(key, f"is missing, for example {example}")
        return value

    def mapping(self, key: str) -> dict[str, Any]:
        """A mapping, empty by default."""
        return self._of(key, dict, {})

    def items(self, key: str) -> list[Any]:
        """A list, empty by default."""
        return self._of(key, list, [])

    def flag(self, key: str) -> bool:
        """True or false, false by default."""
        return self._of(key, bool, False)

    def number(self, key: str, default: int) -> int:
        """A whole number above zero."""
        value = self._of(key, int, default)
        if isinstance(value, bool) or value < 1:
            raise self.error(key, "must be a whole number above zero")
        return value

    def headers(self, key: str = "headers") -> dict[str, str]:
        """A mapping of texts."""
        return {str(name): str(value) for name, value in self.mapping(key).items() if value is not None}

    def content(self, key: str) -> str | None:
        """A text, or the text of the file that `file://` names (UTF-8)."""
        value = self.text(key)
        if value is None or not value.startswith("file://"):
            return value
        path = self.path(value.removeprefix("file://"), key)
        try:
            return read_words(path)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise self.error(key, f"cannot read {path}: {reason}") from None

    def path(self, value: str, key: str) -> Path:
        """A path of this entry, absolute; outside the root it needs trust (unless typed).

        Raises:
            NeedsTrust: it lies outside the root.
        """
        base = Path(self.spec.base) if self.spec.base else self.services.root
        if self.spec.typed:
            return (base / value).resolve()
        from tui_eval.guard.paths import confine

        try:
            return confine(self.services.root, value, self.services.trust, base)
        except (ValueError, OSError) as error:
            raise self.error(key, str(error)) from None

    def file_function(self, value: str, key: str) -> tuple[Path, str]:
        """`FILE.py:function` or `package.module:function` as a path and a name."""
        file, _, function = value.rpartition(":")
        if not file or not function.isidentifier():
            raise self.error(key, f"must be FILE.py:function or package.module:function, not {value!r}")
        if not file.endswith(".py") and all(part.isidentifier() for part in file.split(".")):
            found = module_file(file, [self.spec.base, str(self.services.root), *sys.path])
            if found is None:
                raise self.error(key, f"there is no module {file}")
            file = found
        path = self.path(file.removeprefix("file://"), key)
        if not os.path.isfile(path):
            raise self.error(key, no_file(path, path))
        return path, function

    def _of(self, key: str, kind: type, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise self.error(key, f"must be {_NAMES[kind]}, not {type(value).__name__}")
        return value


def module_file(module: str, folders: list[str]) -> str | None:
    """The file of a dotted module, found as Python would but without importing anything."""
    where: Sequence[str] | None = [folder for folder in folders if folder]
    origin: str | None = None
    for index in range(module.count(".") + 1):
        name = ".".join(module.split(".")[: index + 1])
        spec = PathFinder.find_spec(name, where)
        if spec is None:
            return None
        where, origin = spec.submodule_search_locations, spec.origin
        if where is None and name != module:
            return None
    return origin if origin and origin.endswith(".py") else None


def place(spec: AgentSpec, key: str) -> str:
    """Where a setting belongs, for messages: the key of an entry, or the argument that was typed."""
    return f"--agent {spec.name}: {key}" if spec.typed else f"agents.{spec.name}.{key}"


def below(base: str, path: str) -> str:
    """The address of `path` below a base, whose query (a version of the API, a gateway's key) stays at its end. What
    is behind a `#` is sent to nobody."""
    base, mark, query = base.partition("#")[0].partition("?")
    return f"{base.rstrip('/')}/{path}{mark}{query}"


def usual_secret(options: Options, key: str, url: str, *variables: str) -> str | None:
    """The secret that an entry gives under `key`, else the first of these variables of the environment that is set.

    Without trust a variable is read for the provider's own host alone: a server on this machine gets none that nobody
    granted (most need none), and a host that a file chose is asked for.

    Raises:
        NeedsTrust: it would go to such a host.
    """
    given = options.text(key)
    spec, trust = options.spec, options.services.trust
    own = is_own_host(spec.type, url) or (spec.type in _OWN_HERE and is_loopback(url))
    free = spec.typed or trust.granted or own
    if given is None and not free and is_loopback(url):
        return None
    set_here = {name: value for name in variables if (value := os.environ.get(name))}
    value = given if given is not None else next(iter(set_here.values()), None)
    for name, one in set_here.items():
        if one == value and not free and not is_loopback(url):
            trust.require(f"send {name} to {destination(url)}")
    return value


_IN_FILES = ("tools", "tool_choice", "functions", "response_format", "output_format", "schema")
_LISTS = ("tools", "functions")
_FORMATS = ("response_format", "output_format")
CODE_FILE = re.compile(r"(?:file://)?(?P<path>.+?\.(?:py|[cm]?[jt]s))(?::(?P<function>[A-Za-z_$][\w$]*))?")
"""A Python or JavaScript file that a setting names, with or without a function of it."""


def asked_with(options: Options) -> dict[str, Any]:
    """The `parameters` of a model, those that stand in files read.

    Raises:
        ConfigError: one takes the place of what is asked, or of the model that the column names; else as `loaded`.
    """
    parameters = options.mapping("parameters")
    if not options.values.get("promptfoo"):
        for key, cure in (("model", "give it beside parameters"), ("messages", "these are the case's")):
            if key in parameters:
                raise options.error(f"parameters.{key}", f"is no parameter; {cure}")
    return loaded(options, parameters)


def loaded(options: Options, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a model, those that stand in files (`tools: file://tools.json`, JSON or YAML) read.

    Raises:
        ConfigError: a file cannot be read.
        NeedsTrust: it lies outside the root.
    """
    result = dict(parameters)
    for key in _IN_FILES:
        if _in_file(result.get(key), key):
            result[key] = _from_file(options, result[key], key)
    for key in _LISTS:
        if isinstance(given := result.get(key), list) and any(_in_file(one, key) for one in given):
            result[key] = [item for one in given for item in _items(options, one, key)]
    for key in _FORMATS:
        if isinstance(form := result.get(key), dict):
            result[key] = _with_schema(options, form, key)
    return result


def _with_schema(options: Options, form: dict[str, Any], key: str) -> dict[str, Any]:
    """A format whose schema stands in a file of its own (`schema: file://…`), here or within `json_schema`."""
    if _in_file(form.get("schema"), key):
        return {**form, "schema": _from_file(options, form["schema"], f"{key}.schema")}
    inner = form.get("json_schema")
    if isinstance(inner, dict) and _in_file(inner.get("schema"), key):
        schema = _from_file(options, inner["schema"], f"{key}.json_schema.schema")
        return {**form, "json_schema": {**inner, "schema": schema}}
    return form


def _items(options: Options, one: Any, key: str) -> list[Any]:
    """An item of a list, or what the file that it names holds: one or several."""
    found = _from_file(options, one, key) if _in_file(one, key) else one
    return found if isinstance(found, list) else [found]


def _in_file(value: Any, key: str) -> bool:
    """Whether a value names a file to be read; code that gives tools is run where they are wanted (`made_tools`)."""
    return (
        isinstance(value, str) and value.startswith("file://") and not (key == "tools" and names_code(value))
    )


def names_code(value: str) -> bool:
    """Whether a setting names a Python or JavaScript file, with or without a function."""
    return value.startswith("file://") and CODE_FILE.fullmatch(value) is not None


def _from_file(options: Options, reference: str, key: str) -> Any:
    import yaml

    from tui_eval.yaml.yaml_scalars import load_bounded

    path = options.path(reference.removeprefix("file://"), f"parameters.{key}")
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return load_bounded(read_words(path), loader)  # JSON is YAML
    except (OSError, ValueError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise options.error(f"parameters.{key}", f"cannot read {path.name}: {reason}") from None
