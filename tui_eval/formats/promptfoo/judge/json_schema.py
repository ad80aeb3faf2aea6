"""is-json and contains-json, with JSON schemas as Ajv reads them in strict mode (draft 07)."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from inspect import isawaitable
from typing import Any

from msgspec import UNSET

from tui_eval.assertions import evidence as seen
from tui_eval.assertions.judge_input import CannotJudge, JudgeInput
from tui_eval.formats.promptfoo.judge import code
from tui_eval.formats.promptfoo.judge.assertion_call import AssertionCall, Result
from tui_eval.formats.promptfoo.judge.json_objects import loader, objects_in
from tui_eval.formats.promptfoo.judge.script_results import ScriptFailed
from tui_eval.guard.fair_share import in_turn
from tui_eval.javascript import values as js
from tui_eval.javascript.patterns import translated
from tui_eval.model import Evidence
from tui_eval.nunjucks.templates import flag

# -- The patterns of a JSON schema, which are JavaScript's with the flag `u`.


Matches = Callable[[str, str], bool]
"""Whether a pattern is found in a text."""

# Escapes that mean the same with the flag: there, a backslash before anything else is an error.
_SAME_WITH_FLAG = re.compile(r"(?:[^\\]|\\[dDwWsSbBnrtfv^$\\.*+?()\[\]{}|/])*+")
_TEST = """
const found = {};
for (const pattern of context.patterns) {
  try {
    const expression = new RegExp(pattern, 'u');
    found[pattern] = context.texts.map((text) => expression.test(text));
  } catch (error) {
    return {invalid: error.message, pattern};
  }
}
return {found};
"""


_LONG = 10_000
"""Characters of a text in which a pattern that repeats may be searched for here from each of them: half a second."""


def found_here(pattern: str, text: str, *, unknown: bool = True) -> bool:
    """Whether a pattern that means the same in Python is found in a text; of any other pattern, `unknown`."""
    known = _in_python(pattern, text)
    return unknown if known is None else known.search(text) is not None


def undecided_patterns(schema: Any, values: Sequence[Any]) -> set[str]:
    """The patterns of a schema that only JavaScript can decide of these values."""
    if not (patterns := set(_patterns(schema))):
        return patterns
    longest = max((text for value in values for text in _texts(value)), key=len, default="")
    return {pattern for pattern in patterns if _in_python(pattern, longest) is None}


async def matcher(patterns: set[str], values: Sequence[Any], evidence: JudgeInput) -> Matches:
    """`Matches` for every text within values, decided at once in the isolate.

    Raises:
        CannotJudge: a pattern is invalid, or there is no isolate.
    """
    if not patterns:
        return found_here
    texts = sorted({text for value in values for text in _texts(value)})
    context = {"patterns": sorted(patterns), "texts": texts}
    try:
        answer = await code.run_javascript(_TEST, {"output": "", "context": context}, evidence)
    except ScriptFailed as error:
        raise CannotJudge(f"the schema's patterns could not be tried: {error}", "bad-assertion") from error
    if "invalid" in answer:
        raise CannotJudge(
            f"Invalid regular expression: /{answer['pattern']}/u: {answer['invalid']}", "bad-assertion"
        )
    known = {
        pattern: dict(zip(texts, found, strict=True)) for pattern, found in dict(answer["found"]).items()
    }
    return lambda pattern, text: known[pattern][text] if pattern in known else found_here(pattern, text)


def _in_python(pattern: str, text: str) -> re.Pattern[str] | None:
    if not _SAME_WITH_FLAG.fullmatch(pattern):
        return None
    found = translated(pattern)
    # Python's search cannot be stopped: what repeats without end twice may take too long, and so may what does
    # it once from every place of a long text.
    if not found or found[1] > 1:
        return None
    anywhere = found[1] == 1 and (not pattern.startswith("^") or "|" in pattern)
    return None if anywhere and len(text) > _LONG else found[0]


def _patterns(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _patterns(item)
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key == "pattern" and isinstance(value, str):
                yield value
            elif key == "patternProperties" and isinstance(value, dict):
                yield from value
            yield from _patterns(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)


# -- What does not conform to a JSON schema, in Ajv's words.


_AJV_WORDS = {
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
    "additionalItems": lambda error: f"must NOT have more than {len(error.schema.get('items') or ())} items",
}


def ajv_text(error: Any) -> str:
    """An error of jsonschema as Ajv words it, with the place in the data."""
    path = "".join(f"/{part}" for part in error.absolute_path)
    return f"data{path} {ajv_words(error)}"


def ajv_words(error: Any) -> str:
    """The rule that is broken, without the place."""
    words = _AJV_WORDS.get(error.validator)
    return words(error) if words else error.message


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
    from tui_eval.formats.promptfoo.judge.schema_library import identical

    found = identical(items)
    return f" (items ## {found[0]} and {found[1]} are identical)" if found else ""


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


_LARGE = 20_000
"""Characters of a text that is read and compared with a schema in a thread: what is larger would hold up the loop."""


async def _in_thread(
    check: Callable[[AssertionCall], Result | Awaitable[Result]], call: AssertionCall
) -> Result:
    answer = await in_turn(lambda: check(call))
    return await answer if isawaitable(answer) else answer


def is_json(call: AssertionCall) -> Result | Awaitable[Result]:
    """The whole text is JSON, and conforms to the schema if one is given."""
    return _in_thread(_is_json, call) if len(call.text) > _LARGE else _is_json(call)


def _is_json(call: AssertionCall) -> Result | Awaitable[Result]:
    try:
        value = js.parse_json(call.text)
    except (ValueError, RecursionError) as error:
        told = [_not_json(call, call.text, error)]
        return call.result(False, "Expected output to be valid JSON", "", evidence=told)
    if not _has_schema(call):
        told = [seen.rule("is-json" if call.inverse else "holds")]
        return call.result(True, "", "Expected output to be valid JSON", evidence=told)
    return _conforming(call, [value], "Output is JSON that conforms to the provided schema")


def contains_json(call: AssertionCall) -> Result | Awaitable[Result]:
    """Some `{…}` in the text reads as an object, and conforms to the schema if one is given."""
    return _in_thread(_contains_json, call) if len(call.text) > _LARGE else _contains_json(call)


def _contains_json(call: AssertionCall) -> Result | Awaitable[Result]:
    found = objects_in(call.text)
    if not found or not _has_schema(call):
        reason = "Expected output to contain valid JSON"
        told = seen.rule("has-json" if call.inverse else "holds") if found else _no_object(call)
        return call.result(bool(found), reason, reason, evidence=[told])
    return _conforming(call, found, "Output contains JSON conforming to the provided schema")


def _no_object(call: AssertionCall) -> Evidence:
    """Why no object can be read: there is no brace, or where what follows the first one breaks off."""
    start = call.text.find("{")
    if start < 0:
        return seen.rule("holds" if call.inverse else "not-json", "there is no { in the reply")
    try:
        json.JSONDecoder().raw_decode(call.text[: start + _EXPLAINED], start)
    except (ValueError, RecursionError) as error:
        return _not_json(call, call.text, error)
    return seen.rule("holds" if call.inverse else "not-json", "no object can be read")


def _not_json(call: AssertionCall, text: str, error: Exception) -> Evidence:
    """Where a text stops being JSON."""
    if call.inverse:
        return seen.rule("holds")
    words = str(getattr(error, "msg", error)).removesuffix(" starting at")
    return seen.broken("missing", "not-json", text, getattr(error, "pos", 0), words)


_EXPLAINED = 200_000
"""Characters behind a brace that are read to say where they stop being JSON."""


def _conforming(call: AssertionCall, values: Sequence[Any], conforms: str) -> Result | Awaitable[Result]:
    schema = _schema(call.kind, call.value)
    text = _text(schema)
    _check(text)
    patterns = undecided_patterns(schema, values)
    if patterns:
        return _conforming_later(call, schema, patterns, values, conforms)
    return _decided(call, _validator(text), values, conforms)


async def _conforming_later(
    call: AssertionCall, schema: Any, patterns: set[str], values: Sequence[Any], conforms: str
) -> Result:
    from tui_eval.formats.promptfoo.judge.schema_library import validator_of

    matches = await matcher(patterns, values, call.evidence)
    validator = validator_of(js.parse_json(js.json_text(schema)), matches)
    if len(call.text) > _LARGE:
        return await in_turn(lambda: _conforming_now(call, validator, values, conforms))
    answer = _decided(call, validator, values, conforms)
    return await answer if isawaitable(answer) else answer


def _decided(
    call: AssertionCall, validator: Any, values: Sequence[Any], conforms: str
) -> Result | Awaitable[Result]:
    """At once where that is little work, else in the thread: a schema of few lines may ask for any amount."""
    if len(call.text) > _LARGE:  # there already
        return _conforming_now(call, validator, values, conforms)
    from tui_eval.formats.promptfoo.judge.schema_library import TooMuch, at_most

    try:
        with at_most(_AT_ONCE):
            return _conforming_of(call, validator, values, conforms)
    except TooMuch:
        return in_turn(lambda: _conforming_now(call, validator, values, conforms))


_AT_ONCE = 20_000
_STEPS = 2_000_000
"""What is looked at for one verdict, at most, beside so much for each character of the answer."""
_OF_A_CHARACTER = 20


def _conforming_now(call: AssertionCall, validator: Any, values: Sequence[Any], conforms: str) -> Result:
    from tui_eval.formats.promptfoo.judge.schema_library import TooMuch, at_most

    try:
        with at_most(_STEPS + _OF_A_CHARACTER * len(call.text)):
            return _conforming_of(call, validator, values, conforms)
    except TooMuch:
        raise CannotJudge(f"{call.kind}: {_ENDLESS}", "bad-assertion") from None


_ENDLESS = "the schema takes too many steps for this answer; let it refer to the same parts less often"


def _conforming_of(call: AssertionCall, validator: Any, values: Sequence[Any], conforms: str) -> Result:
    """Whether any of the values conforms; the reason is what the last one lacks."""
    error: Any = None
    for value in values:
        error = first_error(validator, value)
        if error is None:
            break
    words = None if error is None else ajv_text(error)
    told = seen.rule("schema-held" if call.inverse else "holds") if error is None else _broken(call, error)
    return call.result(
        error is None,
        f"JSON does not conform to the provided schema. Errors: {words}",
        conforms,
        evidence=[told],
    )


def _broken(call: AssertionCall, error: Any) -> Evidence:
    """Which value breaks which rule of which part of the schema."""
    if call.inverse:
        return seen.rule("holds")
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in error.absolute_path)
    words = ajv_text(error).partition(" ")[2] if " " not in path else ajv_words(error)
    if error.validator == "additionalProperties":  # Ajv does not say which
        words = f"has '{error.message}', which is not allowed"
    return Evidence(
        "rule", "schema", text=seen.cut(words), path=f"${path}", rule=str(error.validator),
        expected=seen.small(error.schema), actual=seen.small(error.instance),
    )  # fmt: skip


def fault(kind: str, value: Any) -> str | None:
    """Why an assertion with this schema cannot be judged; None where it can, or has none."""
    if not _is_schema(value):
        return None
    try:
        _check(_text(_schema(kind, value)))
    except CannotJudge as error:
        return str(error)
    return None


def _has_schema(call: AssertionCall) -> bool:
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

        from tui_eval.yaml.yaml_scalars import load_bounded

        try:
            value = load_bounded(value, loader())
        except (yaml.YAMLError, ValueError) as error:
            raise CannotJudge(
                f"{kind}: the schema is not YAML: {' '.join(str(error).split())}", "file"
            ) from error
        if isinstance(value, bool):
            return value
    if not isinstance(value, dict):
        raise CannotJudge(f"{kind} assertion must have a string or object value", "bad-assertion")
    return value


def mismatch(schema: dict[str, Any], value: Any, size: int = 0) -> str | None:
    """The first way in which a value, of a text of `size` characters, does not conform, in Ajv's words; None where it
    does.

    Patterns that only JavaScript can decide are not looked at.

    Raises:
        CannotJudge: the schema is not one.
    """
    text = _text(schema)
    _check(text)
    from tui_eval.formats.promptfoo.judge.schema_library import TooMuch, at_most

    try:
        with at_most(10 * _AT_ONCE + _OF_A_CHARACTER * size):
            error = first_error(_validator(text), value)
    except TooMuch:
        raise CannotJudge(_ENDLESS, "bad-assertion") from None
    return None if error is None else ajv_text(error)


def first_error(validator: Any, value: Any) -> Any:
    """The error that ajv would name; None where the value fits."""
    whole = validator.schema
    return min(
        validator.iter_errors(value),
        key=lambda error: _order(error.absolute_schema_path, whole),
        default=None,
    )


_BY_TYPE: dict[str, tuple[str, ...]] = {
    "number": ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf"),
    "string": ("maxLength", "minLength", "pattern", "format"),
    "any": ("const", "enum", "", "not", "anyOf", "oneOf", "allOf", "if"),
    "array": ("maxItems", "minItems", "uniqueItems", "items", "additionalItems", "contains"),
    "object": (
        *("maxProperties", "minProperties", "required", "propertyNames", "additionalProperties"),
        *("dependencies", "properties", "patternProperties"),
    ),
}
"""The keywords as ajv goes through them; any other stands among those of any type."""
_RANKS = {
    keyword: 2 * rank
    for rank, keyword in enumerate(keyword for group in _BY_TYPE.values() for keyword in group)
}


def _rank(keyword: str, schema: Any) -> int:
    if keyword != "type":
        return _RANKS.get(keyword, _RANKS[""])
    # A type alone with keywords of its own is looked at with these, any other first of all.
    kind = schema.get("type") if isinstance(schema, dict) and not schema.get("nullable") else None
    own = _BY_TYPE.get("number" if kind == "integer" else str(kind), ())
    first = next(iter(own), "")
    return _RANKS[first] - 1 if any(one in schema for one in own) else -2


def _order(path: Iterable[Any], schema: Any) -> list[int]:
    """Where a rule stands among those that ajv goes through: keywords by rank, properties as they are written."""
    places: list[int] = []
    inside, named = schema, False
    for step in path:
        if named:
            names = list(inside) if isinstance(inside, dict) else []
            places.append(names.index(step) if step in names else step if isinstance(step, int) else 0)
        else:
            places.append(_rank(str(step), inside))
        if isinstance(inside, dict):
            inside = inside.get(step)
        elif isinstance(inside, list) and isinstance(step, int) and step < len(inside):
            inside = inside[step]
        named = not named and (
            step in _MAPS or step in _LISTS or (step == "items" and isinstance(inside, list))
        )
    return places


def _text(schema: Any) -> str:
    """A schema as JSON.

    Raises:
        CannotJudge: it holds what JSON has no words for, NaN or infinity.
    """
    try:
        return json.dumps(schema, default=str, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise CannotJudge(
            "schema is invalid: it holds what JSON cannot (NaN, infinity)", "bad-assertion"
        ) from None


@lru_cache(maxsize=256)
def _check(schema_text: str) -> None:
    from tui_eval.formats.promptfoo.judge.schema_library import jsonschema

    schema = js.parse_json(schema_text)
    if isinstance(schema, bool):
        return
    named = schema.get("$schema")
    if named and isinstance(named, str) and named.rstrip("#") != _DRAFT:
        raise CannotJudge(f'no schema with key or ref "{named}"', "bad-assertion")
    try:
        jsonschema.Draft7Validator.check_schema(schema, format_checker=jsonschema.FormatChecker(formats=()))
    except jsonschema.SchemaError as error:
        raise CannotJudge(f"schema is invalid: {ajv_text(error)}", "bad-assertion") from error
    lenient = flag("PROMPTFOO_DISABLE_AJV_STRICT_MODE")
    todo, seen = [schema], set[int]()
    while todo:
        part = todo.pop(0)
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        for message in _forbidden(part):
            raise CannotJudge(message, "bad-assertion")
        if not lenient:
            for message in _ignored(part):
                raise CannotJudge(f"strict mode: {message}", "bad-assertion")
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
    from tui_eval.formats.promptfoo.judge.schema_library import FORMAT_NAMES, LIMITS, ORDERS, identical

    if "id" in schema:
        yield 'NOT SUPPORTED: keyword "id", use "$id" for schema ID'
    values = schema.get("enum")
    if isinstance(values, list) and (not values or identical(values)):
        fault = "have duplicate items" if values else "have fewer than 1 items"
        yield f"schema is invalid: data/enum must NOT {fault}"
    kinds = schema.get("type")
    if "nullable" in schema and not kinds:
        yield '"nullable" cannot be used without "type"'
    if schema.get("nullable") is False and "null" in listed(kinds):
        yield "type: null contradicts nullable: false"
    for key in LIMITS.keys() & schema.keys():
        name = schema.get("format")
        if name is None:
            yield f"parent schema must have dependencies of {key}: format"
        elif name in FORMAT_NAMES and name not in ORDERS:
            yield f'"{key}": format "{name}" does not define "compare" function'


def _ignored(schema: dict[str, Any]) -> Iterator[str]:
    from tui_eval.formats.promptfoo.judge.schema_library import FORMAT_NAMES

    for key in schema:
        if key not in _KEYWORDS:
            yield f'unknown keyword: "{key}"'
    name = schema.get("format")
    if name is not None and name not in FORMAT_NAMES:
        yield f'unknown format "{name}" ignored in schema'
    if "if" in schema and not schema.keys() & {"then", "else"}:
        yield '"if" without "then" and "else" is ignored'
    for key in ("then", "else"):
        if key in schema and "if" not in schema:
            yield f'"{key}" without "if" is ignored'
    if "additionalItems" in schema and not isinstance(schema.get("items"), list):
        yield '"additionalItems" is ignored when "items" is not an array of schemas'
    properties: dict[str, Any] = schema.get("properties") or {}
    patterns: dict[str, Any] = schema.get("patternProperties") or {}
    for pattern in patterns if any(inner not in ({}, True) for inner in patterns.values()) else ():
        for key in properties:
            if found_here(pattern, key, unknown=False):
                yield f"property {key} matches pattern {pattern} (use allowMatchingProperties)"


@lru_cache(maxsize=256)
def _validator(schema_text: str) -> Any:
    from tui_eval.formats.promptfoo.judge.schema_library import validator_of

    return validator_of(js.parse_json(schema_text), found_here)
