"""What a suite says under `tracing`: keys that are slips, values that cannot be, what has no effect here."""

from __future__ import annotations

from typing import Any

from tui_eval.formats.promptfoo.read.suite_file import LineOf, SuiteReading, brief, dotted_key

_TOP = ("enabled", "failOnReceiverStartFailure", "commandToolNames", "otlp", "storage", "forwarding")
_HTTP = ("enabled", "port", "host", "acceptFormats", "redactAttributes")
_FORMATS = ("json", "protobuf")
_LARGEST_PORT = 65_535


def check(value: Any, reading: SuiteReading, line_of: LineOf) -> None:
    """Put what is wrong with `tracing` among the problems of a suite."""
    at: tuple[Any, ...] = ("tracing",)
    tracing = _mapping(value, at, reading, line_of)
    reading.check_keys(tracing, _TOP, reading.name, line_of, at)
    _flags(tracing, ("enabled", "failOnReceiverStartFailure"), at, reading, line_of)
    _names(tracing, "commandToolNames", at, reading, line_of)
    otlp = _mapping(tracing.get("otlp"), (*at, "otlp"), reading, line_of)
    reading.check_keys(otlp, ("http", "grpc"), reading.name, line_of, (*at, "otlp"))
    http, place = otlp.get("http"), (*at, "otlp", "http")
    http = _mapping(http, place, reading, line_of)
    reading.check_keys(http, _HTTP, reading.name, line_of, place)
    _flags(http, ("enabled",), place, reading, line_of)
    port = http.get("port")
    whole = isinstance(port, int) and not isinstance(port, bool) and 0 < port <= _LARGEST_PORT
    if port is not None and not whole:
        _problem(f"must be a port, not {brief(port)}", (*place, "port"), reading, line_of)
    if http.get("host") is not None and not isinstance(http["host"], str):
        _problem(f"must be an address, not {brief(http['host'])}", (*place, "host"), reading, line_of)
    for format_ in _names(http, "acceptFormats", place, reading, line_of):
        if format_ not in _FORMATS:
            told = f"must be {' or '.join(_FORMATS)}, not {brief(format_)}"
            _problem(told, (*place, "acceptFormats"), reading, line_of)
    _names(http, "redactAttributes", place, reading, line_of)
    _without_effect(tracing, otlp, reading, line_of)


def _without_effect(
    tracing: dict[str, Any], otlp: dict[str, Any], reading: SuiteReading, line_of: LineOf
) -> None:
    on = tracing.get("enabled") is True
    grpc, forwarding = otlp.get("grpc"), tracing.get("forwarding")
    if on and isinstance(grpc, dict) and grpc.get("enabled") is True:
        told = "is ignored: spans are received over HTTP (otlp.http), as in promptfoo"
        _problem(told, ("tracing", "otlp", "grpc"), reading, line_of, note=True)
    if on and isinstance(forwarding, dict) and forwarding.get("enabled") is True:
        told = "is ignored: spans are kept with the run and go nowhere else"
        _problem(told, ("tracing", "forwarding"), reading, line_of, note=True)
    if on and "http" not in otlp:
        told = "no spans are received: write otlp: {http: {enabled: true, port: 4318}}"
        _problem(told, ("tracing",), reading, line_of, note=True)


def _flags(
    given: dict[str, Any], keys: tuple[str, ...], at: tuple[Any, ...], reading: SuiteReading, line_of: LineOf
) -> None:
    for key in keys:
        if given.get(key) is not None and not isinstance(given[key], bool):
            _problem(f"must be true or false, not {brief(given[key])}", (*at, key), reading, line_of)


def _names(
    given: dict[str, Any], key: str, at: tuple[Any, ...], reading: SuiteReading, line_of: LineOf
) -> list[str]:
    value = given.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        _problem(f"must be a list of texts, not {brief(value)}", (*at, key), reading, line_of)
        return []
    return value


def _mapping(value: Any, at: tuple[Any, ...], reading: SuiteReading, line_of: LineOf) -> dict[str, Any]:
    if value is not None and not isinstance(value, dict):
        _problem(f"must be a mapping, not {brief(value)}", at, reading, line_of)
    return value if isinstance(value, dict) else {}


def _problem(
    message: str, at: tuple[Any, ...], reading: SuiteReading, line_of: LineOf, *, note: bool = False
) -> None:
    level = "note" if note else "error"
    reading.problem(reading.name, line_of(*at), dotted_key(at), message, level=level)
