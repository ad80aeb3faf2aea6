"""Which function judges which type, and which types exist without being judged here."""

from __future__ import annotations

import importlib
from typing import cast

from tui_eval.formats.promptfoo.judge.assertion_call import Check

_HERE = "tui_eval.formats.promptfoo.judge"

# `module:function` below this package, imported when first needed.
CHECKS: dict[str, Check | str] = {
    "equals": "text_assertions:equals",
    "contains": "text_assertions:contains",
    "icontains": "text_assertions:contains",
    "contains-any": "text_assertions:contains_any",
    "icontains-any": "text_assertions:contains_any",
    "contains-all": "text_assertions:contains_all",
    "icontains-all": "text_assertions:contains_all",
    "starts-with": "text_assertions:starts_with",
    "word-count": "text_assertions:word_count",
    "regex": "regex_assertions:regex",
    "levenshtein": "similarity:levenshtein",
    "rouge-n": "similarity:rouge_n",
    "bleu": "similarity:bleu",
    "gleu": "similarity:gleu",
    "latency": "budget:latency",
    "cost": "budget:cost",
    "perplexity": "budget:perplexity",
    "perplexity-score": "budget:perplexity_score",
    "finish-reason": "budget:finish_reason",
    "guardrails": "budget:guardrails",
    "is-refusal": "refusal:is_refusal",
    "is-json": "json_schema:is_json",
    "contains-json": "json_schema:contains_json",
    "is-xml": "xml:is_xml",
    "contains-xml": "xml:contains_xml",
    "is-html": "html:is_html",
    "contains-html": "html:contains_html",
    "is-valid-openai-tools-call": "function_calls:tools_call",
    "is-valid-openai-function-call": "function_calls:function_call",
    "is-valid-function-call": "function_calls:function_call",
    "tool-call-f1": "function_calls:tool_call_f1",
    "skill-used": "skills:skill_used",
    "trajectory:tool-used": "trajectory:tool_used",
    "trajectory:tool-sequence": "trajectory:tool_sequence",
    "trajectory:tool-args-match": "trajectory:tool_args_match",
    "trajectory:step-count": "trajectory:step_count",
    "trace-span-count": "traces:span_count",
    "trace-span-duration": "traces:span_duration",
    "trace-error-spans": "traces:error_spans",
    "is-sql": "sql_assertions:is_sql",
    "contains-sql": "sql_assertions:contains_sql",
    "javascript": "code:javascript",
    "python": "code:python",
    "ruby": "code:ruby",
    "webhook": "outside:webhook",
    "meteor": "meteor:meteor",
    "similar": "context:similar",
    "similar:cosine": "context:similar",
    "similar:dot": "context:similar",
    "similar:euclidean": "context:similar",
    "llm-rubric": "graded:llm_rubric",
    "agent-rubric": "graded:agent_rubric",
    "search-rubric": "graded:search_rubric",
    "moderation": "classes:moderation",
    "classifier": "classes:classifier",
    "trajectory:goal-success": "graded:goal_success",
    "g-eval": "graders:g_eval",
    "factuality": "graders:factuality",
    "model-graded-factuality": "graders:factuality",
    "model-graded-closedqa": "graders:closed_qa",
    "answer-relevance": "context:answer_relevance",
    "context-faithfulness": "context:faithfulness",
    "context-recall": "context:recall",
    "context-relevance": "context:relevance",
    "conversation-relevance": "context:conversation_relevance",
}

MODULES = {kind: str(where).partition(":")[0] for kind, where in CHECKS.items()}
"""The module of each type."""
LIBRARIES: dict[str, tuple[str, ...]] = {
    "json_schema": (f"{_HERE}.schema_library",),
    "function_calls": (f"{_HERE}.schema_library",),
    "sql_assertions": ("sqlglot",),
    "similarity": ("rapidfuzz.distance",),
    "meteor": ("snowballstemmer",),
    "html": ("html5lib",),
}
"""Libraries that modules here import when they first need them."""
HEAVY = frozenset(("html", "xml", "sql_assertions", "similarity", "meteor"))
"""Modules whose checks cost so much of a long text that it is judged in a thread."""
_WITH_VALUE = frozenset(("json_schema",))
"""Modules that need theirs only where an assertion has a value."""

_GRADED_MODULES = ("graded", "graders", "context")
"""Where a model grades in words."""
GRADED = frozenset(
    kind
    for kind, where in CHECKS.items()
    if str(where).partition(":")[0] in _GRADED_MODULES and not kind.startswith("similar")
) | {"select-best"}
"""Types that ask a judge model."""

NOT_YET: dict[str, str] = {
    "pi": "the Pi scorer, a service of its own",
}
"""Known types that are not judged here, and what is missing: an error, never a pass."""

NEVER_INVERTED = frozenset(("select-best", "max-score", "human", "assert-set"))
"""Special types that take no `not-`."""

NOT_UNREAD_THERE = frozenset(
    ("factuality", "model-graded-factuality", "model-graded-closedqa", "answer-relevance", "context-faithfulness",
     "context-recall", "context-relevance")
)  # fmt: skip
"""Graded types whose `not-` promptfoo 0.121.20 accepts and does not look at (their handlers take no `inverse`)."""

COLUMNS = ("select-best", "max-score")
"""Types that compare the columns of one test, after all of them have run (`comparison`)."""


def split(kind: str) -> tuple[str, bool]:
    """The base type, and whether `not-` stands before it."""
    if kind.startswith("not-") and kind[4:] not in NEVER_INVERTED:
        return kind[4:], True
    return kind, False


def libraries(kind: str, has_value: bool) -> list[str]:
    """The modules that judging a type needs: the check's own, and the libraries that it imports late."""
    where = MODULES.get(split(kind)[0])
    if where is None:
        return []
    late = () if where in _WITH_VALUE and not has_value else LIBRARIES.get(where, ())
    return [f"{_HERE}.{where}", *late]


def check_for(kind: str) -> Check | None:
    """The function that judges a base type, None where there is none here."""
    found = CHECKS.get(kind)
    if isinstance(found, str):
        module, _, name = found.partition(":")
        found = CHECKS[kind] = cast(Check, getattr(importlib.import_module(f"{_HERE}.{module}"), name))
    return found
