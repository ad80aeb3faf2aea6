"""`tools` and `tool_choice` of a promptfoo HTTP provider in the shape that its endpoint wants
(`transformToolsFormat`); they are given in OpenAI's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tui_eval.agents.wire import encode

_NOT_GOOGLES = frozenset(("additionalProperties", "$schema", "default", "$id", "$ref"))

_CHOICES: dict[str, dict[str, Any]] = {
    "auto": {
        "anthropic": {"type": "auto"},
        "bedrock": {"auto": {}},
        "google": {"functionCallingConfig": {"mode": "AUTO"}},
    },
    "none": {
        "anthropic": {"type": "none"},
        "bedrock": None,
        "google": {"functionCallingConfig": {"mode": "NONE"}},
    },
    "required": {
        "anthropic": {"type": "any"},
        "bedrock": {"any": {}},
        "google": {"functionCallingConfig": {"mode": "ANY"}},
    },
}


def tool_values(config: Mapping[str, Any], prompt: Mapping[str, Any] | None) -> dict[str, Any]:
    """`tools` and `tool_choice` for the templates: the prompt's own before the provider's, lists and objects as
    JSON."""
    own = (prompt or {}).get("config")
    wanted = config.get("transformToolsFormat")
    found: dict[str, Any] = {}
    for name, shaped in (("tools", shaped_tools), ("tool_choice", shaped_choice)):
        value = own.get(name) if isinstance(own, dict) else None
        value = config.get(name) if value is None else value
        if value is None:
            continue
        value = shaped(value, wanted)
        if value is None:  # Bedrock has no word for "none"
            continue
        found[name] = encode(value).decode() if isinstance(value, dict | list) else value
    return found


def shaped_tools(tools: Any, wanted: Any) -> Any:
    """Tools in a format; what is not in OpenAI's stays as it is."""
    first = tools[0] if isinstance(tools, list) and tools else None
    if not isinstance(first, dict) or first.get("type") != "function" or not _named(first):
        return tools
    functions = [tool["function"] for tool in tools if isinstance(tool, dict) and _named(tool)]
    if wanted == "anthropic":
        return [{**_head(each), "input_schema": _schema(each)} for each in functions]
    if wanted == "bedrock":
        return [{"toolSpec": {**_head(each), "inputSchema": {"json": _schema(each)}}} for each in functions]
    if wanted == "google":
        return [{"functionDeclarations": [_googles(each) for each in functions]}]
    return tools


def shaped_choice(choice: Any, wanted: Any) -> Any:
    """Which tool may be called, in a format; what is not in OpenAI's stays as it is."""
    if isinstance(choice, dict) and choice.get("type") == "function" and _named(choice):
        name = choice["function"]["name"]
        if wanted == "anthropic":
            return {"type": "tool", "name": name}
        if wanted == "bedrock":
            return {"tool": {"name": name}}
        if wanted == "google":
            return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
    elif isinstance(choice, str) and choice in _CHOICES and wanted in _CHOICES[choice]:
        return _CHOICES[choice][wanted]
    return choice


def _named(tool: Mapping[str, Any]) -> bool:
    function = tool.get("function")
    return isinstance(function, dict) and isinstance(function.get("name"), str)


def _head(function: Mapping[str, Any]) -> dict[str, Any]:
    return {key: function[key] for key in ("name", "description") if function.get(key)}


def _schema(function: Mapping[str, Any]) -> Any:
    return function.get("parameters") or {"type": "object", "properties": {}}


def _googles(function: Mapping[str, Any]) -> dict[str, Any]:
    parameters = function.get("parameters")
    return {**_head(function), **({"parameters": _googles_schema(parameters)} if parameters else {})}


def _googles_schema(schema: Any) -> Any:
    """A schema as Google takes it: types in capitals, without what it does not know."""
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NOT_GOOGLES:
            continue
        if key == "type" and isinstance(value, str):
            value = value.upper()
        elif key == "properties" and isinstance(value, dict):
            value = {name: _googles_schema(item) for name, item in value.items()}
        elif key == "items":
            value = _googles_schema(value)
        found[key] = value
    return found
