"""Whether a case, or an attempt that passed, asserted anything that could have failed.

Verdicts are not changed by it: a format's own tool lets such a case pass, and so do we. It is what `check`
notes, what the run counts (`1 asserted nothing`), and what is kept with an attempt for whoever shows it.

Only what holds for every answer counts here; an assertion that is merely weak (`not-contains: sorry`) is
`check --vacuous`'s to find, by asking an agent that answers nothing.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from tui_eval.formats import format_of
from tui_eval.guard.once import parsed
from tui_eval.model import CODE_TYPES, NO_VERIFICATION, OWN_JUDGES, Assertion, Attempt, Case, Verdict

NOTHING = "nothing is asserted: it passes whatever is answered"
_ASSERT_SET = "assert-set"

# Types that score from 0 to 1 and pass where the score is not below the threshold.
_SCORED = frozenset(
    ("rouge-n", "bleu", "gleu", "meteor", "g-eval", "answer-relevance", "context-recall", "context-relevance",
     "context-faithfulness", "conversation-relevance", "tool-call-f1", "perplexity-score")
)  # fmt: skip
# Their score may be negative, so that even a threshold of 0 can be missed.
_SCRIPTED = OWN_JUDGES | {"similar", "similar:cosine", "similar:dot"}
_ALL_OF = frozenset(("contains-all", "icontains-all"))
_ANY_OF = frozenset(("contains-any", "icontains-any"))
_AT_LEAST = frozenset(("word-count", "trajectory:step-count", "trajectory:tool-used"))
_NAMED = re.compile(r"\{\{-?\s*([A-Za-z_]\w*)\s*-?\}\}")
_ANCHORS = r"[\^$]|\\[bB]|\(\?"
_AT_END = r"(?<!\\)\$\Z"
_BY_THRESHOLD = frozenset(("latency", "cost", "perplexity", "perplexity-score"))
_CSV_THRESHOLD = 0.75
_LIMITS = {"max_input_tokens": "input_tokens", "max_output_tokens": "output_tokens"}
_JSON_TYPES = frozenset(("null", "boolean", "object", "array", "number", "string", "integer"))
_SPANS = frozenset(("trace-error-spans", "trace-span-duration"))
_BOUNDED = frozenset(("cost", "latency", "max_tool_calls", *_LIMITS))
_UNREAD = "suite"
"""The type of the verdict on what could not be read in a case."""


class Idle(msgspec.Struct, frozen=True):
    """Something of a case that cannot fail, or that is not read as it looks; `line` 0: the case's own."""

    line: int
    key: str
    message: str
    cure: str = ""


def idle_parts(case: Case) -> list[Idle]:
    """Everything in a case that cannot fail, the case itself where nothing in it can, in its order."""
    found: list[Idle] = []
    if case.required < 1:
        found.append(Idle(0, "attempts", "asks for no attempt to pass: it cannot fail"))
    threshold = case.threshold
    if _sums_up(case) and threshold is not None and threshold <= 0 and not _live(case):
        message = f"a threshold of {threshold:g} is reached whatever fails"
        found.append(Idle(0, "threshold", message, "give a threshold above 0, or none"))
    given = case.asserted
    for place, assertion in enumerate(given):
        why = _why_set(place, given) if assertion.type == _ASSERT_SET else _why(assertion, case)
        if why:
            found.append(Idle(assertion.line, assertion.type, *why))
        elif misread := _misread(assertion):
            found.append(Idle(assertion.line, assertion.type, *misread))
    if _free(case):
        found += [
            Idle(one.line, one.type, *_NO_COST) for one in given if one.type == "cost" and not _why(one, case)
        ]
    rtol = (case.comparison or {}).get("rtol")
    if format_of(case.format).comparison_can_be_idle and isinstance(rtol, int | float) and rtol >= 1:
        message = f"a relative tolerance of {rtol:g} takes 0 for every number"
        found.append(Idle(0, "comparison.rtol", message, "give a small one, as 1e-5"))
    bare = not given and not _broken(case) and not format_of(case.format).own_score(case)
    if bare or (not _live(case) and not found):
        found.insert(0, Idle(0, "", NOTHING, "say what is expected of the answer"))
    return found


def asserts_nothing(case: Case) -> bool:
    """Whether nothing that a case says can fail, whatever an agent answers."""
    return case.required < 1 or not _live(case)


def asserted_nothing(case: Case, attempt: Attempt) -> bool:
    """Whether no verdict of an attempt could have been another one: because nothing of the case can fail, or
    because the agent reports nothing of what a limit is set to (costs, tokens, guardrails)."""
    if case.required < 1:
        return True
    live = _live(case)
    if not live:
        return True
    if [one for one in live if one != _UNREAD] == [format_of(case.format).own_score(case)]:
        return False
    return not any(
        verdict.type in live and verdict.type != _ASSERT_SET and not _unreported(verdict, attempt)
        for verdict in attempt.verdicts
    )


def _live(case: Case) -> list[str]:
    """The types of what can fail in a case; that of what could not be read goes before the others, which are
    judged alone where the format's own tool passes over it (`compat: reference`)."""
    score = format_of(case.format).own_score(case)
    own = [_UNREAD] if _broken(case) else []
    own += [score] if score else []
    given = case.asserted
    if _sums_up(case) and case.threshold is not None and case.threshold <= 0:
        return own + [one.type for one in given if one.type.removeprefix("not-") in _SCRIPTED]
    idle_sets = {
        place for place, one in enumerate(given) if one.type == _ASSERT_SET and _why_set(place, given)
    }
    free = _free(case)
    live = [
        one.type
        for one in given
        if one.type != _ASSERT_SET
        and one.set not in idle_sets
        and not _why(one, case)
        and not (free and one.type == "cost")
    ]
    if not live and _sums_up(case) and (case.threshold or 0) > 0 and not any(map(_counts, given)):
        return own + [one.type for one in given]  # nothing adds up to a threshold above 0: it always fails
    return own + live


def _broken(case: Case) -> bool:
    """Whether something in the case could not be read, so that it never passes."""
    return bool(case.problems) and any(problem.level == "error" for problem in case.problems)


def _counts(assertion: Assertion) -> bool:
    return assertion.weight is None or assertion.weight > 0


def _sums_up(case: Case) -> bool:
    return format_of(case.format).sums_up


def _free(case: Case) -> bool:
    """Whether whoever answers says a cost of 0 for everything."""
    return format_of(case.format).costs_nothing(case)


_NO_COST = (
    "never fails here: the agent reports no costs",
    "ask an agent that reports them, or give prices under `prices:` in tui_eval.yaml",
)


def _unreported(verdict: Verdict, attempt: Attempt) -> bool:
    """Whether a verdict rests on what the agent does not report, and so could not fail."""
    kind = verdict.type
    if kind == "cost":
        return verdict.actual == 0 and _nothing_used(attempt)
    if kind == "guardrails":
        return verdict.passed is True and not verdict.actual
    if kind == "not-finish-reason":
        return verdict.passed is True and not verdict.actual
    if kind in _ANY_OF:
        return verdict.passed is True and _any_empty(verdict.expected) is not None
    if kind in _LIMITS:
        usage = attempt.usage
        return verdict.actual == 0 and (usage is None or getattr(usage, _LIMITS[kind]) is None)
    if kind in _SPANS:
        return verdict.passed is True and not (attempt.trace and attempt.trace.spans)
    return kind == "sql" and verdict.passed is True and attempt.message == NO_VERIFICATION


def _nothing_used(attempt: Attempt) -> bool:
    """Whether the agent paid for nothing: no tokens were counted, so that 0 USD is no price."""
    usage = attempt.usage
    return not attempt.cost and (usage is None or not (usage.input_tokens or usage.output_tokens))


def _why_set(place: int, given: Sequence[Assertion]) -> tuple[str, str] | None:
    """Why a set cannot fail; None where it can."""
    assertion = given[place]
    members = [one for one in given if one.set == place]
    if not members:
        return "an empty set: it passes whatever is answered", "list assertions under assert"
    if assertion.threshold is not None and assertion.threshold <= 0:
        if any(one.type.removeprefix("not-") in _SCRIPTED for one in members):
            return None
        return (
            f"a threshold of {assertion.threshold:g} is reached whatever fails in the set",
            "give a threshold above 0, or none",
        )
    return None


def _why(assertion: Assertion, case: Case) -> tuple[str, str] | None:
    """Why an assertion of a case holds for every answer, and the cure; None where it can fail."""
    if assertion.weight == 0:
        return "a weight of 0 never fails", "give a weight above 0, or none; the score alone is kept"
    kind, inverse = assertion.type, False
    if kind.startswith("not-"):
        kind, inverse = kind[4:], True
    value = _filled(assertion.value, case.vars) if _sums_up(case) else assertion.value
    if kind == "equals" and inverse and value is UNSET and _sums_up(case):
        return "without a value only the answer 'undefined' fails", "say what the answer must not be"
    check = _INVERTED.get(kind) if inverse else _PLAIN.get(kind)
    message = check(value) if check is not None else None
    if kind in CODE_TYPES:
        message = _constant(kind, value, assertion.threshold, inverse)
    if message is None:
        message = _by_threshold(kind, inverse, assertion.threshold)
    limit = assertion.threshold if kind in ("cost", "latency") else value
    if kind in _BOUNDED and not inverse and isinstance(limit, float) and limit == math.inf:
        message = "a limit without end is never exceeded"
    return None if message is None else (message, "say what the answer must hold")


def _filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """A value with the texts of a case's variables where nothing but their names stands in brackets; what any other
    template makes is only known when it is judged."""
    if isinstance(value, str) and "{{" in value:
        given = {name: variables.get(name) for name in _NAMED.findall(value)}
        if all(_is_plain(one) for one in given.values()):
            return _NAMED.sub(lambda found: str(given[found[1]]).removesuffix("\n"), value)
    if isinstance(value, list) and any(isinstance(one, str) and "{{" in one for one in value):
        return [_filled(one, variables) for one in value]
    return value


def _is_plain(given: Any) -> bool:
    """Whether a variable is a text that stands for itself."""
    return isinstance(given, str) and not given.startswith("file://") and not ("{{" in given or "{%" in given)


def _by_threshold(kind: str, inverse: bool, threshold: float | None) -> str | None:
    if threshold is None:
        free = kind == "perplexity-score" or (kind == "perplexity" and not inverse)
        return "never fails without a threshold" if free else None
    if kind in _SCORED and not inverse and threshold <= 0:
        return f"a threshold of {threshold:g} is reached by every answer"
    if kind in _SCORED and inverse and threshold > 1:
        return f"no answer reaches a threshold of {threshold:g}"
    if kind in ("cost", "latency", "levenshtein", "perplexity") and inverse and threshold < 0:
        return f"no answer stays below {threshold:g}"
    if kind == "levenshtein" and not inverse and threshold == math.inf:
        return "a limit without end is never exceeded"
    return None


def _empty(value: Any) -> str | None:
    if isinstance(value, list) and not value:
        return "an empty list asks for nothing: it passes whatever is answered"
    if isinstance(value, str) and value and not value.strip(" \t\r\n,"):
        return "a list without texts asks for nothing: it passes whatever is answered"
    return None


def _all_empty(value: Any) -> str | None:
    if isinstance(value, list) and value and all(item == "" for item in value):
        return "every text holds an empty one: it passes whatever is answered"
    return _empty(value)


def _any_empty(value: Any) -> str | None:
    if isinstance(value, list) and any(item == "" for item in value):
        return "every text holds an empty one: it passes whatever is answered"
    return None


def _least_nothing(value: Any) -> str | None:
    if not isinstance(value, dict) or value.get("max") not in (None, math.inf):
        return None
    least = value.get("min")
    if least is None and value.get("max") == math.inf:
        return "a limit without end is never exceeded"
    if isinstance(least, int | float) and not isinstance(least, bool) and least <= 0:
        return f"a least number of {least:g} is always reached"
    return None


def _any_count(value: Any) -> str | None:
    if isinstance(value, dict) and value.get("min") is None and value.get("max") is None:
        return "asks for no number of spans: every number passes"
    return _least_nothing(value)


def _empty_text(value: Any) -> str | None:
    return "every text holds an empty one: it passes whatever is answered" if value == "" else None


def _every_text(value: Any) -> str | None:
    """Why a pattern is found in every text: it can match nothing at all, anywhere."""
    if not isinstance(value, str) or "{{" in value or value.startswith("file://") or len(value) > 200:
        return None
    if not value:
        return None  # no pattern: an error
    # What matches nothing at all is found at the beginning or at the end as well, but not at both at once.
    free = value[1:] if value.startswith("^") else value[:-1] if re.search(_AT_END, value) else value
    if re.search(_ANCHORS, free):
        return None
    try:
        found = re.compile(free).fullmatch("") is not None
    except (re.error, RecursionError, OverflowError):
        return None
    return "the pattern is found in every text" if found else None


def _constant(kind: str, value: Any, threshold: float | None, inverse: bool) -> str | None:
    """Why code passes without a look at the answer."""
    given = constant(kind, value) if isinstance(value, str) else None
    if given is None or not passes(given, threshold, inverse):
        return None
    if given is (not inverse):
        return f"is {str(given).lower()} whatever is answered"
    shown = str(given).lower() if isinstance(given, bool) else f"{given:g}"
    limit = "" if threshold is None or isinstance(given, bool) else f", with a threshold of {threshold:g}"
    return f"gives {shown} whatever is answered{limit}: it always passes"


def _wide(value: Any) -> str | None:
    return "a share of 100 % is never exceeded" if _share(value) >= 100 else None


_DATA = ("enum", "const", "default", "examples")


def _unknown_type(value: Any) -> str | None:
    """What a schema calls a type and is none: no text conforms to it, so none can break the rule."""
    if isinstance(value, dict):
        named = value.get("type")
        for kind in named if isinstance(named, list) else [named]:
            if isinstance(kind, str) and kind not in _JSON_TYPES:
                return f"the schema's type {kind[:40]!r} is none of JSON's: nothing is compared with it"
        parts = [part for key, part in value.items() if key not in _DATA]
    else:
        parts = value if isinstance(value, list) else []
    return next((why for part in parts if (why := _unknown_type(part))), None)


def _share(value: Any) -> float:
    share = value.get("max_percentage") if isinstance(value, dict) else None
    return float(share) if isinstance(share, int | float) and "max_count" not in value else 0.0


_PLAIN: dict[str, Any] = {
    **dict.fromkeys(_ALL_OF, _all_empty),
    **dict.fromkeys(_ANY_OF, _any_empty),
    **dict.fromkeys(_AT_LEAST, _least_nothing),
    "trace-span-count": _any_count,
    "regex": _every_text,
    "trace-error-spans": _wide,
    "should_contain": _empty_text,
    "keywords": _empty_text,
}
"""What makes an assertion hold for every answer, by its type."""
_INVERTED: dict[str, Any] = {
    **dict.fromkeys(_ANY_OF, _empty),
    "is-json": _unknown_type,
    "contains-json": _unknown_type,
}
"""The same under promptfoo's `not-`."""


def _misread(assertion: Assertion) -> tuple[str, str] | None:
    """Why an assertion is not read as it looks: in a CSV cell only a number in brackets is a limit."""
    kind = assertion.type.removeprefix("not-")
    value = assertion.value
    if kind == "levenshtein" and value is not UNSET and assertion.threshold == _CSV_THRESHOLD:
        return (
            f"promptfoo takes a distance of at most {_CSV_THRESHOLD:g}, so that only the text itself passes",
            f"write {assertion.type}(5): TEXT for at most 5 changes, or equals: TEXT",
        )
    if kind not in _BY_THRESHOLD or assertion.threshold != _CSV_THRESHOLD or value is UNSET:
        return None
    try:
        float(str(value))
    except ValueError:
        return None
    unit = {"latency": " ms", "cost": " USD"}.get(kind, "")
    return (
        f"{value} is not read as the limit: promptfoo takes {_CSV_THRESHOLD:g}{unit}",
        f"write {assertion.type}({value})",
    )


def distinct(cases: Iterable[Case]) -> Iterator[tuple[Case, Idle]]:
    """What cannot fail in any of the cases, each place once: a test's columns share its assertions."""
    seen: set[tuple[str, int, Idle]] = set()
    for case in cases:
        for part in idle_parts(case):
            place = (case.path, part.line or case.line, part)
            if place not in seen:
                seen.add(place)
                yield case, part


# -- Scripts of a suite whose value does not depend on the answer: constants, and bodies that end in one.
#
# Nothing is run: a script that is not certainly constant is taken to look at the answer.


Constant = bool | float

_LITERAL = (
    r"(?P<truth>true|false)|(?P<nots>!{1,8})(?P<bit>[01])|(?P<number>[-+]?(?:\d{1,18}\.?\d{0,18}|\.\d{1,18}))"
)
_RETURN = r"(?s)return\b\s*(.*?)\s*;?"
_NOISE = r"(?s)//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
_ARGUMENT = r"(?:\"\"|[\w.]{1,40})"
_METHODS = (
    "includes|startsWith|endsWith|indexOf|toLowerCase|toUpperCase|trim|slice|split|replace|replaceAll|concat"
)
_LOOKS = rf"output(?:\.(?:{_METHODS})\((?:{_ARGUMENT}(?:\s*,\s*{_ARGUMENT})?)?\))*(?:\.length)?"
_IDLE = (
    rf"(?:(?:const|let|var)\s+[\w$]+\s*=\s*)?(?:\"\"|true|false|null|-?[\d.]+|context|{_LOOKS})"
    rf"|console\.\w+\((?:\"\"|output|,|\s)*\)"
)
_OF_TEXT = frozenset(
    ("lower", "upper", "strip", "lstrip", "rstrip", "startswith", "endswith", "split", "splitlines", "count",
     "find", "casefold", "replace")
)  # fmt: skip
_LONGEST = 20_000
"""Characters of a script that are looked at."""


def constant(kind: str, text: str) -> Constant | None:
    """What a script gives whatever is answered: true, false or a number; None where that is not certain.

    Args:
        kind: `javascript`, `python` or `ruby`.
        text: the code as it is judged with: one line is an expression, several are a body that returns.
    """
    if len(text) > _LONGEST or "{{" in text or "{%" in text or text.startswith(("file://", "package:")):
        return None
    if kind == "javascript":
        line = text.rstrip()
        return _javascript_body(line) if "\n" in line else _literal(line.strip().rstrip(";"))
    if kind == "python":
        return _python(text)
    if kind == "ruby" and "!" not in text:
        return _literal(text.strip())
    return None


def passes(value: Constant, threshold: float | None, inverse: bool) -> bool:
    """Whether such a value passes: truth counts as it is, a number above 0 or from the threshold on."""
    limit = sys.float_info.min if threshold is None else threshold
    holds = value if isinstance(value, bool) else value >= limit
    return holds != inverse


def _literal(text: str) -> Constant | None:
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    found = re.fullmatch(_LITERAL, text)
    if found is None:
        return None
    if found["truth"]:
        return found["truth"] == "true"
    if found["nots"]:
        return (found["bit"] == "1") == (len(found["nots"]) % 2 == 0)
    return float(found["number"])


def _javascript_body(text: str) -> Constant | None:
    """The constant that a body ends in, where nothing before it returns, throws or may fail."""
    bare = re.sub(_NOISE, lambda found: " " if found[0].startswith("/") else '""', text)
    lines = [line.strip() for line in re.split(r"[;\n]", bare)]
    statements = [line for line in lines if line]
    if not statements:
        return None
    last = re.fullmatch(_RETURN, statements[-1])
    if last is None or not all(re.fullmatch(_IDLE, line) for line in statements[:-1]):
        return None
    return _literal(last[1])


def _python(text: str) -> Constant | None:
    """As `_javascript_body`; one line stands behind `return`."""
    code = text if "\n" in text else f"return {text.strip()}"
    try:
        tree = parsed("def main(output, context):\n" + "\n".join(f" {line}" for line in code.split("\n")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    (function,) = tree.body[:1]
    if not isinstance(function, ast.FunctionDef) or len(tree.body) != 1:
        return None
    *before, last = function.body
    if not isinstance(last, ast.Return) or last.value is None or not all(map(_is_idle, before)):
        return None
    try:
        value = ast.literal_eval(last.value)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, bool):
        return value
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _is_idle(statement: ast.stmt) -> bool:
    """Whether a statement neither returns nor can fail, as far as that is certain."""
    if isinstance(statement, ast.Pass):
        return True
    if isinstance(statement, ast.Import):
        return all(alias.name in ("json", "re", "math") for alias in statement.names)
    if isinstance(statement, ast.Assign) and not all(isinstance(one, ast.Name) for one in statement.targets):
        return False
    if isinstance(statement, ast.Assign | ast.Expr):
        return all(map(_is_idle_part, ast.walk(statement.value)))
    return False


def _is_idle_part(part: ast.AST) -> bool:
    if isinstance(part, ast.Name):
        return isinstance(part.ctx, ast.Load) and part.id in ("output", "context", "print", "len", "str")
    if isinstance(part, ast.Attribute):
        return part.attr in _OF_TEXT
    if isinstance(part, ast.Compare):
        return all(isinstance(one, ast.In | ast.NotIn | ast.Eq | ast.NotEq) for one in part.ops)
    plain = (
        ast.Constant,
        ast.Call,
        ast.BoolOp,
        ast.boolop,
        ast.cmpop,
        ast.UnaryOp,
        ast.Not,
        ast.expr_context,
    )
    return isinstance(part, plain)
