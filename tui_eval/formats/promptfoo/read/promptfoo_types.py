"""The names that promptfoo knows, assertion types and keys (0.121.20; formats/promptfoo.md 1, 3, 5), and what the
values of settings may be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tui_eval.formats.promptfoo.read.suite_file import LineOf, SuiteReading, brief, dotted_key
from tui_eval.guard.trust import JAVASCRIPT_ENDINGS

# -- What the options of tests and of the evaluation may be: promptfoo says nothing of a wrong one and leaves it out.


_TEXTS = ("transform", "postprocess", "storeOutputAs")
_PRINTED = ("prefix", "suffix")
_SWITCHES = (
    "disableVarExpansion",
    "disableConversationVar",
    "disableDefaultAsserts",
    "runSerially",
)
_NUMBERS = ("maxConcurrency", "delay", "timeoutMs", "maxEvalTimeMs")

Wrong = Iterator[tuple[tuple[Any, ...], str]]
"""Where, and what is wrong there."""


def of_test(options: dict[str, Any]) -> Wrong:
    """What is wrong in the `options` of a test."""
    for name in _TEXTS:
        if options.get(name) is not None and not isinstance(options[name], str):
            yield (name,), f"must be text, not {brief(options[name])}"
    for name in _PRINTED:
        if isinstance(options.get(name), (list, dict)):
            yield (name,), f"must be text, not {brief(options[name])}"


def switches(options: dict[str, Any]) -> Wrong:
    """Switches of a test that are neither true nor false: the tool takes some of them for true."""
    for name in _SWITCHES:
        if options.get(name) is not None and not isinstance(options[name], bool):
            yield (name,), f"must be true or false, not {brief(options[name])}"


def of_evaluation(options: dict[str, Any]) -> Wrong:
    """What is wrong in `evaluateOptions`."""
    for name in _NUMBERS:
        value = options.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            yield (name,), f"must be a number from 0, not {brief(value)}"


def of_derived(value: Any) -> Wrong:
    """What is wrong in `derivedMetrics`."""
    if not isinstance(value, list):
        yield (), f"must be a list of metrics, not {brief(value)}"
        return
    for index, entry in enumerate(value):
        if not isinstance(entry, dict):
            yield (index,), f"must be a name and a value, not {brief(entry)}"
            continue
        for name in ("name", "value"):
            if not isinstance(entry.get(name), str):
                yield (index, name), f"must be text, not {brief(entry.get(name))}"


# -- What a suite says under `tracing`: keys that are slips, values that cannot be, what has no effect here.


_TRACING = ("enabled", "failOnReceiverStartFailure", "commandToolNames", "otlp", "storage", "forwarding")
_OTLP_HTTP = ("enabled", "port", "host", "acceptFormats", "redactAttributes")
_OTLP_FORMATS = ("json", "protobuf")
_LARGEST_PORT = 65_535


def check_tracing(value: Any, reading: SuiteReading, line_of: LineOf) -> None:
    """Put what is wrong with `tracing` among the problems of a suite."""
    at: tuple[Any, ...] = ("tracing",)
    tracing = _mapping(value, at, reading, line_of)
    reading.check_keys(tracing, _TRACING, reading.name, line_of, at)
    _flags(tracing, ("enabled", "failOnReceiverStartFailure"), at, reading, line_of)
    _names(tracing, "commandToolNames", at, reading, line_of)
    otlp = _mapping(tracing.get("otlp"), (*at, "otlp"), reading, line_of)
    reading.check_keys(otlp, ("http", "grpc"), reading.name, line_of, (*at, "otlp"))
    http, place = otlp.get("http"), (*at, "otlp", "http")
    http = _mapping(http, place, reading, line_of)
    reading.check_keys(http, _OTLP_HTTP, reading.name, line_of, place)
    _flags(http, ("enabled",), place, reading, line_of)
    port = http.get("port")
    whole = isinstance(port, int) and not isinstance(port, bool) and 0 < port <= _LARGEST_PORT
    if port is not None and not whole:
        _problem(f"must be a port, not {brief(port)}", (*place, "port"), reading, line_of)
    if http.get("host") is not None and not isinstance(http["host"], str):
        _problem(f"must be an address, not {brief(http['host'])}", (*place, "host"), reading, line_of)
    for format_ in _names(http, "acceptFormats", place, reading, line_of):
        if format_ not in _OTLP_FORMATS:
            told = f"must be {' or '.join(_OTLP_FORMATS)}, not {brief(format_)}"
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


# -- The names.


def names(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


BASE_TYPES = names(
    """
    equals contains icontains contains-any contains-all icontains-any icontains-all starts-with regex
    levenshtein rouge-n bleu gleu meteor word-count cost latency perplexity perplexity-score
    finish-reason is-refusal guardrails
    is-json contains-json is-xml contains-xml is-sql contains-sql is-html contains-html
    is-valid-openai-tools-call is-valid-openai-function-call is-valid-function-call tool-call-f1
    skill-used trajectory:tool-used trajectory:tool-sequence trajectory:tool-args-match
    trajectory:step-count trace-span-count trace-span-duration trace-error-spans
    llm-rubric g-eval factuality model-graded-factuality model-graded-closedqa answer-relevance
    context-faithfulness context-recall context-relevance conversation-relevance classifier moderation
    pi search-rubric agent-rubric similar similar:cosine similar:dot similar:euclidean
    trajectory:goal-success
    javascript python ruby webhook
    """
)
SPECIAL_TYPES = frozenset({"select-best", "max-score", "human", "assert-set"})
ALL_TYPES = BASE_TYPES | SPECIAL_TYPES | frozenset(f"not-{name}" for name in BASE_TYPES)

WITH_THRESHOLD = names(
    """
    answer-relevance classifier context-faithfulness context-recall context-relevance cost latency
    levenshtein perplexity perplexity-score rouge-n similar starts-with
    """
)
"""Types whose shorthand stores a threshold (4.3)."""

TOP_KEYS = names(
    """
    description tags prompts providers targets tests defaultTest scenarios env evaluateOptions
    commandLineOptions nunjucksFilters derivedMetrics outputPath extensions metadata sharing
    writeLatestResults tracing redteam plugins strategies $schema assertionTemplates
    """
)
NOT_IGNORED = names(
    """
    not-trace-span-count not-trace-span-duration not-trace-error-spans not-is-valid-openai-tools-call
    not-is-valid-openai-function-call not-is-valid-function-call
    """
)
"""Types before which `not-` makes no difference in the tool."""
TEST_KEYS = names(
    """
    description vars assert threshold options metadata provider providers prompts providerOutput
    assertScoringFunction
    """
)
ASSERTION_KEYS = names(
    """
    type value threshold weight metric transform contextTransform provider rubricPrompt config
    alpha beta gamma
    """
)
_SQL = names("databaseType allowedTables allowedColumns")
VALUE_KEYS = {
    "is-sql": _SQL,
    "contains-sql": _SQL,
    "is-xml": names("requiredElements"),
    "contains-xml": names("requiredElements"),
    "word-count": names("min max"),
    "skill-used": names("name pattern min max"),
    "trace-span-count": names("pattern min max"),
    "trace-span-duration": names("pattern max percentile"),
    "trace-error-spans": names("pattern max_count max_percentage"),
    "trajectory:tool-used": names("name pattern type min max"),
    "trajectory:tool-args-match": names("name pattern type args arguments mode defaults ignore"),
    "trajectory:tool-sequence": names("steps mode"),
    "trajectory:step-count": names("name pattern type min max"),
    "trajectory:goal-success": names("goal"),
}
"""What the mapping under `value` may say, of assertions whose rule it is and no data."""
STEP_KEYS = names("name pattern type")
OF_EVERY_TEST = {"assert": "defaultTest", "vars": "defaultTest", "threshold": "defaultTest"}
OF_AN_ASSERTION = {"type": "assert, in an entry of its list", "value": "assert, in an entry of its list"}
"""Keys that the tool passes over a level higher than where they count, and where that is."""
OPTION_KEYS = names(
    """
    prefix suffix provider transform postprocess transformVars storeOutputAs rubricPrompt disableVarExpansion
    disableConversationVar disableDefaultAsserts runSerially repeat factuality
    """
)
NOT_AMONG_OPTIONS = ("assert", "assertScoringFunction", "providerOutput")
"""Keys of a test that its `options` may hold for a provider, which is all that the tool makes of them there."""
EVALUATE_KEYS = names(
    """
    cache delay generateSuggestions suggestionsCount interactiveProviders maxConcurrency repeat showProgressBar
    timeoutMs maxEvalTimeMs isRedteam silent filterRange
    """
)
HOW_IT_IS_RUN = EVALUATE_KEYS - {"timeoutMs", "maxEvalTimeMs", "isRedteam", "interactiveProviders"}
"""Of these what decides on no answer, and on no verdict."""
PROVIDER_KEYS = names("id label config prompts transform delay env inputs")
PROMPT_KEYS = names("id raw label config function")
SET_KEYS = frozenset({"type", "assert", "threshold", "weight", "metric", "config"})
REQUIRED_SOME = ("assert", "vars", "options", "metadata", "provider", "providerOutput", "threshold")
"""A test of a list must have one of these."""

IMAGES = {
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "bmp": "image/bmp",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "ico": "image/x-icon",
    "avif": "image/avif",
    "tiff": "image/tiff",
    "tif": "image/tiff",
    "heic": "image/heic",
}
"""Endings of images, and what they are called in a `data:` URL."""

MEDIA = frozenset(IMAGES) | names("mp4 webm ogg mov avi wmv mkv m4v mp3 wav flac aac m4a wma aiff opus")
JAVASCRIPT = frozenset(ending[1:] for ending in JAVASCRIPT_ENDINGS)
CODE = "|".join(("py", *sorted(JAVASCRIPT)))
"""For a pattern: the endings of files whose functions are called."""
