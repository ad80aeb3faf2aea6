"""is-json and contains-json, with JSON schemas as Ajv reads them in strict mode (draft 07)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from tui_eval.assertions.evidence import CannotJudge
from tui_eval.assertions.promptfoo import json_formats, json_patterns
from tui_eval.assertions.promptfoo.call import Call, Result
from tui_eval.assertions.promptfoo.json_messages import ajv_text, listed
from tui_eval.assertions.promptfoo.json_objects import loader, objects_in
from tui_eval.javascript import values as js
from tui_eval.scripting.templates import flag

_DRAFT = "http://json-schema.org/draft-07/schema"
_KEYWORD_LIST = """$schema $id $ref $comment $defs definitions title description default examples type enum const multipleOf
    maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern items additionalItems maxItems
    minItems uniqueItems contains maxProperties minProperties required properties patternProperties
    additionalProperties dependencies propertyNames if then else allOf anyOf oneOf not format contentEncoding
    contentMediaType contentSchema readOnly writeOnly deprecated nullable $async formatMaximum formatMinimum
    formatExclusiveMaximum formatExclusiveMinimum"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())
_ONE = ("additionalItems", "contains", "additionalProperties", "propertyNames", "if", "then", "else", "not")
_LISTS = ("allOf", "anyOf", "oneOf")
_MAPS = ("properties", "patternProperties", "dependencies")
_LIMITS = {
    "formatMinimum": (">=", lambda order: order >= 0),
    "formatMaximum": ("<=", lambda order: order <= 0),
    "formatExclusiveMinimum": (">", lambda order: order > 0),
    "formatExclusiveMaximum": ("<", lambda order: order < 0),
}


def is_json(call: Call) -> Result | Awaitable[Result]:
    """The whole text is JSON, and conforms to the schema if one is given."""
    try:
        value = js.parse_json(call.text)
    except (ValueError, RecursionError):
        return call.result(False, "Expected output to be valid JSON", "")
    if not _has_schema(call):
        return call.result(True, "", "Expected output to be valid JSON")
    return _conforming(call, [value], "Output is JSON that conforms to the provided schema")


def contains_json(call: Call) -> Result | Awaitable[Result]:
    """Some `{…}` in the text reads as an object, and conforms to the schema if one is given."""
    found = objects_in(call.text)
    if not found or not _has_schema(call):
        return call.result(
            bool(found), "Expected output to contain valid JSON", "Expected output to contain valid JSON"
        )
    return _conforming(call, found, "Output contains JSON conforming to the provided schema")


def _conforming(call: Call, values: Sequence[Any], conforms: str) -> Result | Awaitable[Result]:
    schema = _schema(call.kind, call.value)
    text = json.dumps(schema, sort_keys=True, default=str)
    _check(text)
    patterns = json_patterns.of(schema)
    if patterns:
        return _conforming_later(call, schema, patterns, values, conforms)
    return _conforming_now(call, _validator(text), values, conforms)


async def _conforming_later(
    call: Call, schema: Any, patterns: set[str], values: Sequence[Any], conforms: str
) -> Result:
    matches = await json_patterns.matcher(patterns, values, call.evidence)
    return _conforming_now(call, _made(js.parse_json(js.json_text(schema)), matches), values, conforms)


def _conforming_now(call: Call, validator: Any, values: Sequence[Any], conforms: str) -> Result:
    """Whether any of the values conforms; the reason is what the last one lacks."""
    error: str | None = None
    for value in values:
        error = _first_error(validator, value)
        if error is None:
            break
    return call.result(
        error is None, f"JSON does not conform to the provided schema. Errors: {error}", conforms
    )


def fault(kind: str, value: Any) -> str | None:
    """Why an assertion with this schema cannot be judged; None where it can, or has none."""
    if not _is_schema(value):
        return None
    try:
        _check(json.dumps(_schema(kind, value), sort_keys=True, default=str))
    except CannotJudge as error:
        return str(error)
    return None


def _has_schema(call: Call) -> bool:
    return _is_schema(call.value)


def _is_schema(value: Any) -> bool:
    """Whether JavaScript takes the value for true, as it takes every list."""
    return value is not UNSET and (bool(value) or isinstance(value, list | dict))


def _schema(kind: str, value: Any) -> Any:
    """The schema given, as a value or as YAML text.

    Raises:
        CannotJudge: it is neither.
    """
    if isinstance(value, str):
        import yaml

        try:
            value = yaml.load(value, Loader=loader())
        except (yaml.YAMLError, ValueError) as error:
            raise CannotJudge(f"{kind}: the schema is not YAML: {' '.join(str(error).split())}") from error
        if isinstance(value, bool):
            return value
    if not isinstance(value, dict):
        raise CannotJudge(f"{kind} assertion must have a string or object value")
    return value


def mismatch(schema: dict[str, Any], value: Any) -> str | None:
    """The first way in which a value does not conform, in Ajv's words; None where it does.

    Patterns that only JavaScript can decide are not looked at.

    Raises:
        CannotJudge: the schema is not one.
    """
    text = json.dumps(schema, sort_keys=True, default=str)
    _check(text)
    return _first_error(_validator(text), value)


def _first_error(validator: Any, value: Any) -> str | None:
    errors = sorted(validator.iter_errors(value), key=lambda error: len(error.absolute_schema_path))
    return ajv_text(errors[0]) if errors else None


@lru_cache(maxsize=256)
def _check(schema_text: str) -> None:
    import jsonschema

    schema = js.parse_json(schema_text)
    if isinstance(schema, bool):
        return
    named = schema.get("$schema")
    if named and isinstance(named, str) and named.rstrip("#") != _DRAFT:
        raise CannotJudge(f'no schema with key or ref "{named}"')
    try:
        jsonschema.Draft7Validator.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as error:
        raise CannotJudge(f"schema is invalid: {ajv_text(error)}") from error
    lenient = flag("PROMPTFOO_DISABLE_AJV_STRICT_MODE")
    todo, seen = [schema], set[int]()
    while todo:
        part = todo.pop(0)
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        for message in _forbidden(part):
            raise CannotJudge(message)
        if not lenient:
            for message in _ignored(part):
                raise CannotJudge(f"strict mode: {message}")
        todo += _within(part, schema)


def _within(part: dict[str, Any], whole: dict[str, Any]) -> list[Any]:
    """The schemas that a part puts to use; definitions are only where they are referred to."""
    found: list[Any] = []
    for key, value in part.items():
        if key in _ONE or (key == "items" and isinstance(value, dict)):
            found.append(value)
        elif (key in _LISTS or key == "items") and isinstance(value, list):
            found += value
        elif key in _MAPS and isinstance(value, dict):
            found += value.values()
    reference = part.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = whole
        for name in reference[2:].split("/"):
            target = (
                target.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
            )
        found.append(target)
    return found


def _forbidden(schema: dict[str, Any]) -> Iterator[str]:
    if "id" in schema:
        yield 'NOT SUPPORTED: keyword "id", use "$id" for schema ID'
    values = schema.get("enum")
    if isinstance(values, list) and (
        not values or any(item in values[:at] for at, item in enumerate(values))
    ):
        fault = "have duplicate items" if values else "have fewer than 1 items"
        yield f"schema is invalid: data/enum must NOT {fault}"
    kinds = schema.get("type")
    if "nullable" in schema and not kinds:
        yield '"nullable" cannot be used without "type"'
    if schema.get("nullable") is False and "null" in listed(kinds):
        yield "type: null contradicts nullable: false"
    for key in _LIMITS.keys() & schema.keys():
        name = schema.get("format")
        if name is None:
            yield f"parent schema must have dependencies of {key}: format"
        elif name in json_formats.NAMES and name not in json_formats.ORDERED:
            yield f'"{key}": format "{name}" does not define "compare" function'


def _ignored(schema: dict[str, Any]) -> Iterator[str]:
    for key in schema:
        if key not in _KEYWORDS:
            yield f'unknown keyword: "{key}"'
    name = schema.get("format")
    if name is not None and name not in json_formats.NAMES:
        yield f'unknown format "{name}" ignored in schema'
    if "if" in schema and not schema.keys() & {"then", "else"}:
        yield '"if" without "then" and "else" is ignored'
    for key in ("then", "else"):
        if key in schema and "if" not in schema:
            yield f'"{key}" without "if" is ignored'
    properties: dict[str, Any] = schema.get("properties") or {}
    patterns: dict[str, Any] = schema.get("patternProperties") or {}
    for pattern in patterns if any(inner not in ({}, True) for inner in patterns.values()) else ():
        for key in properties:
            if json_patterns.simple(pattern, key, unknown=False):
                yield f"property {key} matches pattern {pattern} (use allowMatchingProperties)"


@lru_cache(maxsize=256)
def _validator(schema_text: str) -> Any:
    return _made(js.parse_json(schema_text), json_patterns.simple)


def _made(schema: Any, matches: json_patterns.Matches) -> Any:
    """A validator of draft 07 with Ajv's liberties: `nullable`, keywords beside `$ref`, limits of formats."""
    from jsonschema import Draft7Validator, ValidationError, validators

    def pattern(_: Any, wanted: str, instance: Any, __: Any) -> Iterator[Any]:
        if isinstance(instance, str) and not matches(wanted, instance):
            yield ValidationError(wanted)

    def pattern_properties(validator: Any, wanted: dict[str, Any], instance: Any, _: Any) -> Iterator[Any]:
        for key, value in instance.items() if isinstance(instance, dict) else ():
            for expression, inner in wanted.items():
                if matches(expression, key):
                    yield from validator.descend(value, inner, path=key, schema_path=expression)

    def additional(validator: Any, wanted: Any, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
        known, expressions = schema.get("properties", {}), schema.get("patternProperties", {})
        for key, value in instance.items() if isinstance(instance, dict) else ():
            if key in known or any(matches(expression, key) for expression in expressions):
                continue
            if wanted is False:
                yield ValidationError(key)
            else:
                yield from validator.descend(value, wanted, path=key)

    def kind(validator: Any, wanted: Any, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
        null = instance is None and schema.get("nullable") is True
        if not null and not any(validator.is_type(instance, name) for name in listed(wanted)):
            yield ValidationError("type")

    own = {
        "pattern": pattern,
        "patternProperties": pattern_properties,
        "additionalProperties": additional,
        "type": kind,
        **{key: _limit for key in _LIMITS},
    }
    given: Any = Draft7Validator
    made: Any = validators.create(
        meta_schema=given.META_SCHEMA,
        validators={**given.VALIDATORS, **own},
        type_checker=given.TYPE_CHECKER,
        format_checker=json_formats.checker(),
        id_of=given.ID_OF,
        applicable_validators=_all_keywords,
    )
    return made(schema, format_checker=json_formats.checker())


def _all_keywords(schema: Any) -> Any:
    return schema.items()


def _limit(validator: Any, wanted: str, instance: Any, schema: dict[str, Any]) -> Iterator[Any]:
    from jsonschema import ValidationError

    for key in _LIMITS.keys() & schema.keys():
        sign, holds = _LIMITS[key]
        if schema[key] is wanted and isinstance(instance, str):
            ours, theirs = (json_formats.order(schema["format"], text) for text in (instance, wanted))
            if ours is not None and theirs is not None and not holds((ours > theirs) - (ours < theirs)):
                yield ValidationError(f"should be {sign} {wanted}")
