"""What does not conform to a JSON schema, in Ajv's words."""

from __future__ import annotations

from typing import Any

from tui_eval.javascript import values as js

_TEXTS = {
    "type": lambda error: f"must be {','.join(listed(error.validator_value))}",
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


def ajv_text(error: Any) -> str:
    """An error of jsonschema as Ajv words it, with the place in the data."""
    path = "".join(f"/{part}" for part in error.absolute_path)
    words = _TEXTS.get(error.validator)
    return f"data{path} {words(error) if words else error.message}"


def listed(value: Any) -> list[str]:
    """`type` as a list, however it is written."""
    if value is None:
        return []
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
