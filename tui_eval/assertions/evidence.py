"""Evidence as assertions write it: what was found or missing, which rule was broken, which figure ran over.

Pieces are few and short, so that a verdict stays small whatever an agent answers: at most `MOST`, texts and
values cut at `LONGEST` characters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any, Literal

import msgspec

from tui_eval.causes import NEEDS_TRUST
from tui_eval.guard.text import clip
from tui_eval.guard.trust import NeedsTrust
from tui_eval.model import UNSET, Evidence

MOST = 20
LONGEST = 500
"""Characters of a text, or of a value as JSON, that a piece of evidence keeps."""
_MAY_BE_LONG = (str, list, dict)
ANY_CASE = "any case"
"""The rule of a text that is looked for without regard to case."""
AROUND = 30
"""Characters before and after a place that is shown."""
_NAMED = 8
_DEEPEST = 30
_NOTHING = object()
Same = Callable[[Any, Any], bool]

Comparison = Literal["<=", ">=", "==", "<", ">", "!="]
OPPOSITE: dict[str, Comparison] = {"<=": ">", ">=": "<", "==": "!=", "<": ">=", ">": "<=", "!=": "=="}


def texts(
    judged: str, wanted: Iterable[str], *, ignoring_case: bool = False, forbidden: bool = False
) -> list[Evidence]:
    """Per text that was looked for where it stands in the one that was judged (code `contained`, or
    `forbidden` where it must not be there), or that it does not (`not-contained`, `absent`: `actual` is what
    differs from it in case alone, which is allowed)."""
    found: list[Evidence] = []
    there, gone = ("forbidden", "absent") if forbidden else ("contained", "not-contained")
    for one in islice(wanted, MOST):
        if not one:  # an empty text stands everywhere
            found.append(Evidence("match", there))
            continue
        places = places_of(one, judged, ignoring_case)
        seen = [
            Evidence("match", there, text=cut(judged[start:end]), start=start, end=end, expected=cut(one))
            for start, end in places
        ]
        alike = in_other_case(one, judged) if forbidden and not ignoring_case and not seen else None
        rule = ANY_CASE if ignoring_case else ""
        found += seen or [Evidence("missing", gone, text=cut(one), rule=rule, actual=alike)]
    return found


def in_other_case(wanted: str, text: str) -> str | None:
    """What stands in a text and is the same but for upper and lower case; None: nothing does."""
    found = places_of(wanted, text, True, 1)
    return cut(text[found[0][0] : found[0][1]]) if found else None


def places_of(wanted: str, text: str, ignoring_case: bool, most: int = MOST) -> list[tuple[int, int]]:
    """Where a text stands, in code points; letters of either case are those with one lower case."""
    if not wanted:
        return []
    where: Sequence[int] | None = None
    if ignoring_case:
        lowered = text.lower()
        if len(lowered) != len(text):  # a letter may become two
            where = [*(at for at, letter in enumerate(text) for _ in letter.lower()), len(text)]
        wanted, text = wanted.lower(), lowered
    found: list[tuple[int, int]] = []
    at = text.find(wanted)
    while at >= 0 and len(found) < most:
        last = at + len(wanted) - 1
        found.append((at, last + 1) if where is None else (where[at], where[last] + 1))
        at = text.find(wanted, at + len(wanted))
    return found


def kind_of(value: Any) -> str:
    """What a value is, in words: `the text`, `the number`."""
    kinds = (
        (str, "text"),
        (bool, "boolean"),
        (int | float, "number"),
        (list | tuple, "list"),
        (dict, "mapping"),
    )
    return "the " + next((word for kind, word in kinds if isinstance(value, kind)), type(value).__name__)


def budget(what: str, figure: Any, rule: Comparison, limit: Any, *, negated: bool = False) -> list[Evidence]:
    """A figure against its limit: `rule` is what must hold, turned round for `not-`. The code is `within`,
    or how it fails: `over`, `under`, `unequal`."""
    if negated:
        rule = OPPOSITE[rule]
    holds = {
        "<=": lambda: figure <= limit, ">=": lambda: figure >= limit, "==": lambda: figure == limit,
        "<": lambda: figure < limit, ">": lambda: figure > limit, "!=": lambda: figure != limit,
    }[rule]()  # fmt: skip
    failing = {"<": "over", ">": "under"}.get(rule[0], "unequal")
    return [budget_of(what, figure, rule, limit, "within" if holds else failing)]


def budget_of(what: str, figure: Any, rule: str, limit: Any, code: str) -> Evidence:
    """The same where the judge has compared already."""
    return Evidence("budget", code, path=what, actual=figure, rule=rule, expected=limit)


def between(what: str, figure: Any, low: Any, high: Any, *, negated: bool = False) -> list[Evidence]:
    """A figure between two limits, one of which may be None; for `not-` outside them."""
    if negated:
        held = (low is None or figure >= low) and (high is None or figure <= high)
        limits = f"{'' if low is None else low}..{'' if high is None else high}"
        return [budget_of(what, figure, "outside", limits, "unequal" if held else "within")]
    if low is not None and figure < low:
        return [budget_of(what, figure, ">=", low, "under")]
    if high is not None:
        return budget(what, figure, "<=", high)
    return budget(what, figure, ">=", low) if low is not None else [rule("holds")]


def value(path: str, expected: Any, actual: Any, holds: bool, *, negated: bool = False) -> list[Evidence]:
    """A value against the one expected: `differs`, for `not-` `same`, else `holds`."""
    failing = "same" if negated else "differs"
    return [differs(path, expected, actual, code="holds" if holds != negated else failing)]


def broken(kind: str, code: str, text: str, place: int, words: str, **more: Any) -> Evidence:
    """Where a text stops being what was asked for: line and column from 1, and what stands around the place
    on its line (`actual`, which begins at most `AROUND` characters before it)."""
    place = max(0, min(place, len(text)))
    begins = text.rfind("\n", 0, place) + 1
    around = text[max(begins, place - AROUND) : place + AROUND].split("\n")[0]
    row = text.count("\n", 0, place) + 1
    return Evidence(
        kind, code, text=cut(words), start=place, end=place + 1, row=row, column=place - begins + 1, actual=around, **more
    )  # fmt: skip


def arguments(tool: str, call: int, wanted: Any, given: Any, same: Same | None = None) -> list[Evidence]:
    """The arguments of a call against those that were wanted, one by one, within mappings too: `holds`, or
    `wrong-arguments` with what was given, or nothing where it was not (`absent-argument`)."""
    same = same or contains
    if not isinstance(wanted, dict):
        code = "holds" if same(wanted, given) else "wrong-arguments"
        return [
            Evidence(
                "call", code, text=cut(tool), call=call, path="$", expected=small(wanted), actual=small(given)
            )
        ]
    there = given if isinstance(given, dict) else {}
    found = list(islice(_arguments(cut(tool), call, wanted, there, "", same), MOST))
    extra = [
        Evidence("call", "other-argument", text=cut(tool), call=call, path=str(name))
        for name in there
        if name not in wanted
    ]
    return [*found, *extra[: MOST - len(found)]]


def _arguments(
    tool: str, call: int, wanted: dict[str, Any], given: dict[str, Any], path: str, same: Same
) -> Iterator[Evidence]:
    for name, item in wanted.items():
        field, there = f"{path}{name}", given.get(name)
        if isinstance(item, dict) and item and isinstance(there, dict) and not same(item, there):
            yield from _arguments(tool, call, item, there, f"{field}.", same)
        elif name not in given:
            yield Evidence("call", "absent-argument", text=tool, call=call, path=field, expected=small(item))
        else:
            code = "holds" if same(item, there) else "wrong-arguments"
            yield Evidence(
                "call", code, text=tool, call=call, path=field, expected=small(item), actual=small(there)
            )


def contains(wanted: Any, given: Any) -> bool:
    """Recursive subset for mappings, equality otherwise with booleans apart from numbers (formats/nao.md 2)."""
    if isinstance(wanted, Mapping):
        return isinstance(given, Mapping) and all(
            key in given and contains(value, given[key]) for key, value in wanted.items()
        )
    return isinstance(wanted, bool) == isinstance(given, bool) and bool(wanted == given)


def closest(wanted: Any, calls: Sequence[tuple[int, Any]]) -> tuple[int, Any]:
    """Of calls (number and arguments) the one with the most arguments as wanted, the first of several; those of
    another value count a tenth."""

    def likeness(given: Any) -> float:
        if not isinstance(wanted, dict):
            return float(contains(wanted, given))
        if not isinstance(given, dict):
            return 0.0
        whole = sum(contains(value, given[name]) for name, value in wanted.items() if name in given)
        return whole + 0.1 * sum(name in given for name in wanted)

    return max(calls, key=lambda one: likeness(one[1]))


def fields(expected: Any, actual: Any, path: str = "$", *, javascript: bool = False) -> list[Evidence]:
    """Where two values differ, by path: `differs`, `absent-field`, `extra-field`. With `javascript` equality is
    that of its numbers, else Python's, true apart from 1."""
    return list(islice(_fields(expected, actual, path, 0, javascript), MOST))


def _fields(expected: Any, actual: Any, path: str, depth: int, javascript: bool) -> Iterator[Evidence]:
    if depth < _DEEPEST and isinstance(expected, dict) and isinstance(actual, dict):
        for name in [*expected, *(name for name in actual if name not in expected)]:
            below = f"{path}.{name}"
            if name not in actual:
                yield Evidence("field", "absent-field", path=below, expected=small(expected[name]))
            elif name not in expected:
                yield Evidence("field", "extra-field", path=below, actual=small(actual[name]))
            else:
                yield from _fields(expected[name], actual[name], below, depth + 1, javascript)
    elif depth < _DEEPEST and isinstance(expected, list) and isinstance(actual, list):
        for index, (one, other) in enumerate(zip_longest(expected, actual, fillvalue=_NOTHING)):
            below = f"{path}[{index}]"
            if other is _NOTHING:
                yield Evidence("field", "absent-field", path=below, expected=small(one))
            elif one is _NOTHING:
                yield Evidence("field", "extra-field", path=below, actual=small(other))
            else:
                yield from _fields(one, other, below, depth + 1, javascript)
    elif not (_same_in_javascript if javascript else _same)(expected, actual):
        yield differs(path, expected, actual)


def _same_in_javascript(expected: Any, actual: Any) -> bool:
    from tui_eval.javascript.operators import deeply_equal

    return deeply_equal(expected, actual)


def _same(expected: Any, actual: Any) -> bool:
    return expected == actual and isinstance(expected, bool) == isinstance(actual, bool)


def differs(path: str, expected: Any, actual: Any, *, code: str = "differs") -> Evidence:
    """A value that is not as expected."""
    return Evidence("field", code, path=path, expected=small(expected), actual=small(actual))


def rule(code: str, text: str = "", **more: Any) -> Evidence:
    """A rule that was broken, or that held."""
    return Evidence("rule", code, text=cut(text), **more)


def names(
    wanted: Iterable[str], used: Iterable[str], *, negated: bool = False, kind: str = "step"
) -> list[Evidence]:
    """Per wanted name whether it is among those used (`called`, `not-called`; for `not-` `forbidden-call`,
    `call-absent`), and those that were used besides (`other-call`)."""
    used = list(dict.fromkeys(map(str, used)))
    wanted = [str(name) for name in wanted]
    there, gone = ("forbidden-call", "call-absent") if negated else ("called", "not-called")
    found = [
        Evidence(kind, there, text=cut(name)) if name in used else Evidence(kind, gone, text=cut(name), actual=used[:_NAMED])
        for name in wanted[:MOST]
    ]  # fmt: skip
    return [*found, *(Evidence(kind, "other-call", text=cut(name)) for name in used if name not in wanted)][
        :MOST
    ]


def cut(text: str) -> str:
    """A text as evidence keeps it."""
    return clip(text, LONGEST)


def small(value: Any) -> Any:
    """A value as evidence keeps it: itself where it is small, else the beginning of its JSON."""
    if value is UNSET:
        return None
    if isinstance(value, str):
        return cut(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    try:
        text = msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        text = repr(value)[: LONGEST + 1]
        return cut(text)
    return value if len(text) <= LONGEST else cut(text)


def bounded(found: Iterable[Evidence] | None) -> list[Evidence] | None:
    """Evidence as a verdict keeps it, whoever wrote it."""
    if found is None:
        return None
    kept = list(islice(found, MOST * 2))
    for one in kept:
        if one.code == NEEDS_TRUST:
            continue
        if len(one.text) > LONGEST or len(one.rule) > LONGEST or len(one.path) > LONGEST:
            one.text, one.rule, one.path = cut(one.text), cut(one.rule), cut(one.path)
        if isinstance(one.expected, _MAY_BE_LONG):
            one.expected = small(one.expected)
        if isinstance(one.actual, _MAY_BE_LONG):
            one.actual = small(one.actual)
    return kept


def error(problem: BaseException) -> Evidence:
    """Why an assertion could not be judged: the code of what was raised, and its text."""
    if isinstance(problem, NeedsTrust):
        return Evidence("rule", NEEDS_TRUST, text=problem.what)
    known = getattr(problem, "evidence", None)
    if isinstance(known, Evidence):
        return known
    code = getattr(problem, "code", None)
    if not isinstance(code, str) or isinstance(problem, SystemExit):
        return rule("crashed", f"{type(problem).__name__}: {' '.join(str(problem).split())}")
    said = getattr(problem, "said", None)
    return rule(code, " ".join((said if isinstance(said, str) else str(problem)).split()))
