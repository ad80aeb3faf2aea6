"""is-json and contains-json, with JSON schemas as Ajv reads them in strict mode (draft 07)."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import js
from tui_eval.assertions.promptfoo.call import Call, Result

_DRAFT = "http://json-schema.org/draft-07/schema"
_LONGEST = 100_000
_YAML_EFFORT = 20
_DEEPEST = 200
_MOST_EFFORT = 10_000_000
_KEYWORD_LIST = """$schema $id $ref $comment $defs definitions title description default examples type enum const multipleOf
    maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern items additionalItems maxItems
    minItems uniqueItems contains maxProperties minProperties required properties patternProperties
    additionalProperties dependencies propertyNames if then else allOf anyOf oneOf not format contentEncoding
    contentMediaType readOnly writeOnly deprecated nullable id $async formatMaximum formatMinimum
    formatExclusiveMaximum formatExclusiveMinimum"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())
_FORMAT_LIST = """date time date-time iso-time iso-date-time duration uri uri-reference uri-template url email hostname ipv4
    ipv6 regex uuid json-pointer json-pointer-uri-fragment relative-json-pointer byte int32 int64 float double
    password binary"""
_FORMATS = frozenset(_FORMAT_LIST.split())
_ONE = ("additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not")
_LISTS = ("allOf", "anyOf", "oneOf")
_MAPS = ("properties", "patternProperties", "definitions", "$defs")


def is_json(call: Call) -> Result:
    """The whole text is JSON, and conforms to the schema if one is given."""
    schema = _schema(call)
    try:
        value = js.parse_json(call.text)
    except (ValueError, RecursionError):
        return call.result(False, "Expected output to be valid JSON", "")
    if schema is None:
        return call.result(True, "", "Expected output to be valid JSON")
    error = mismatch(schema, value)
    return call.result(
        error is None,
        f"JSON does not conform to the provided schema. Errors: {error}",
        "Output is JSON that conforms to the provided schema",
    )


def contains_json(call: Call) -> Result:
    """Some `{…}` in the text reads as an object, and conforms to the schema if one is given."""
    schema = _schema(call)
    found = objects_in(call.text)
    if schema is None or not found:
        return call.result(
            bool(found), "Expected output to contain valid JSON", "Expected output to contain valid JSON"
        )
    error: str | None = None
    for value in found:
        error = mismatch(schema, value)
        if error is None:
            break
    return call.result(
        error is None,
        f"JSON does not conform to the provided schema. Errors: {error}",
        "Output contains JSON conforming to the provided schema",
    )


def objects_in(text: str) -> list[Any]:
    """The objects within a text, by counting braces as promptfoo does, which does not see strings.

    Each candidate is read as JSON, else as a YAML flow mapping; what ends too early gets the
    closing braces it lacks.

    Raises:
        CannotJudge: thousands of braces that lead nowhere, which would take minutes.
    """
    found: list[Any] = []
    place, effort = text.find("{"), 0
    while place >= 0:
        end, depth, deepest = place + 1, 1, 1
        limit = min(place + _LONGEST, len(text))
        while end < limit and depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            deepest = max(deepest, depth)
            end += 1
        effort += (end - place) * (1 + _YAML_EFFORT * (deepest <= _DEEPEST))
        if effort > _MOST_EFFORT:
            raise CannotJudge("contains-json: too many opening braces to look behind each")
        readable = deepest <= _DEEPEST and (not depth or end == len(text))
        value = _read(text[place:end] + "}" * depth) if readable else None
        if isinstance(value, dict | list):
            found.append(value)
            place = text.find("{", end)
        else:
            place = text.find("{", place + 1)
    return found


def _read(text: str) -> Any:
    try:
        return js.parse_json(text)
    except (ValueError, RecursionError):
        pass
    import yaml

    try:
        return _portable(yaml.load(text, Loader=_loader()))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None


def _portable(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


@lru_cache(maxsize=1)
def _loader() -> Any:
    """A YAML reader with YAML 1.2's scalars: `yes` and `1:30` are text."""
    import re

    import yaml

    Loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    gone = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] not in gone]
        for first, pairs in Loader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(gone[0], re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    Loader.add_implicit_resolver(gone[1], re.compile(r"^[-+]?[0-9]+$"), list("-+0123456789"))
    Loader.add_implicit_resolver(
        gone[2],
        re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
        list("-+0123456789."),
    )
    return Loader


def _schema(call: Call) -> Any:
    value = call.value
    if value is UNSET or value is None or value == "" or value is False or value == 0:
        return None
    if isinstance(value, str):
        import yaml

        try:
            value = yaml.load(value, Loader=_loader())
        except yaml.YAMLError as error:
            raise CannotJudge(
                f"{call.kind}: the schema is not YAML: {' '.join(str(error).split())}"
            ) from error
    if not isinstance(value, dict):
        raise CannotJudge(f"{call.kind} assertion must have a string or object value")
    return value


def mismatch(schema: dict[str, Any], value: Any) -> str | None:
    """The first way in which a value does not conform, in Ajv's words; None where it does."""
    validator = _validator(json.dumps(schema, sort_keys=True, default=str))
    errors = sorted(validator.iter_errors(value), key=lambda error: len(error.absolute_schema_path))
    if not errors:
        return None
    return ", ".join(dict.fromkeys(_ajv_text(error) for error in errors[:1]))


@lru_cache(maxsize=256)
def _validator(schema_text: str) -> Any:
    import jsonschema

    schema = json.loads(schema_text)
    named = schema.get("$schema")
    if isinstance(named, str) and named.rstrip("#") != _DRAFT:
        raise CannotJudge(f'no schema with key or ref "{named}"')
    try:
        jsonschema.Draft7Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise CannotJudge(f"schema is invalid: {_ajv_text(error)}") from error
    _strict(schema)
    return jsonschema.Draft7Validator(schema, format_checker=_format_checker())


def _strict(schema: Any) -> None:
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key not in _KEYWORDS:
            raise CannotJudge(f'strict mode: unknown keyword: "{key}"')
        if key == "format" and value not in _FORMATS:
            raise CannotJudge(f'unknown format "{value}" ignored in schema')
        if key in _ONE or (key == "items" and isinstance(value, dict)):
            _strict(value)
        elif key in _LISTS or key == "items":
            for inner in value if isinstance(value, list) else ():
                _strict(inner)
        elif key in _MAPS or key == "dependencies":
            for inner in value.values() if isinstance(value, dict) else ():
                _strict(inner)


@lru_cache(maxsize=1)
def _format_checker() -> Any:
    import base64
    import re

    import jsonschema

    checker = jsonschema.FormatChecker(formats=())
    checker.checkers = dict(jsonschema.Draft7Validator.FORMAT_CHECKER.checkers)

    def within(low: float, high: float) -> Any:
        return lambda value: (
            not isinstance(value, int | float) or (value == int(value) and low <= value <= high)
        )

    def is_base64(value: Any) -> bool:
        if isinstance(value, str):
            base64.b64decode(value, validate=True)
        return True

    url = re.compile(r"^(?:https?|ftp)://[^\s/?#.]+(?:\.[^\s/?#]+)*(?:[/?#]\S*)?$", re.IGNORECASE)
    shapes = {
        "url": url,
        "uuid": re.compile(r"^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE),
        "duration": re.compile(r"^P(?!$)((\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+S)?)?|(\d+W)?)$"),
    }
    for name, shape in shapes.items():
        checker.checks(name)(
            lambda value, shape=shape: not isinstance(value, str) or bool(shape.match(value))
        )
    checker.checks("int32")(within(-(2**31), 2**31 - 1))
    checker.checks("int64")(within(-(2**63), 2**63 - 1))
    checker.checks("byte", raises=ValueError)(is_base64)
    return checker


_TEXTS = {
    "type": lambda error: f"must be {','.join(_listed(error.validator_value))}",
    "required": lambda error: f"must have required property '{_missing(error)}'",
    "const": lambda error: "must be equal to constant",
    "enum": lambda error: "must be equal to one of the allowed values",
    "additionalProperties": lambda error: "must NOT have additional properties",
    "minimum": lambda error: f"must be >= {js.string(error.validator_value)}",
    "maximum": lambda error: f"must be <= {js.string(error.validator_value)}",
    "exclusiveMinimum": lambda error: f"must be > {js.string(error.validator_value)}",
    "exclusiveMaximum": lambda error: f"must be < {js.string(error.validator_value)}",
    "multipleOf": lambda error: f"must be multiple of {js.string(error.validator_value)}",
    "minLength": lambda error: f"must NOT have fewer than {error.validator_value} characters",
    "maxLength": lambda error: f"must NOT have more than {error.validator_value} characters",
    "minItems": lambda error: f"must NOT have fewer than {error.validator_value} items",
    "maxItems": lambda error: f"must NOT have more than {error.validator_value} items",
    "minProperties": lambda error: f"must NOT have fewer than {error.validator_value} properties",
    "maxProperties": lambda error: f"must NOT have more than {error.validator_value} properties",
    "pattern": lambda error: f'must match pattern "{error.validator_value}"',
    "format": lambda error: f'must match format "{error.validator_value}"',
    "uniqueItems": lambda error: f"must NOT have duplicate items{_duplicates(error.instance)}",
    "anyOf": lambda error: "must match a schema in anyOf",
    "oneOf": lambda error: "must match exactly one schema in oneOf",
    "not": lambda error: "must NOT be valid",
    "contains": lambda error: "must contain at least 1 valid item(s)",
}


def _ajv_text(error: Any) -> str:
    path = "".join(f"/{part}" for part in error.absolute_path)
    words = _TEXTS.get(error.validator)
    return f"data{path} {words(error) if words else error.message}"


def _listed(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _missing(error: Any) -> str:
    present = error.instance if isinstance(error.instance, dict) else {}
    wanted = error.validator_value if isinstance(error.validator_value, list) else []
    return next((name for name in wanted if name not in present), "")


def _duplicates(items: Any) -> str:
    for place, item in enumerate(items):
        for earlier in range(place):
            if items[earlier] == item:
                return f" (items ## {place} and {earlier} are identical)"
    return ""
