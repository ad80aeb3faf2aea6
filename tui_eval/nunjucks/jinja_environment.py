"""nunjucks' meaning laid over jinja2's sandbox. Imports jinja2: only `templates` imports this, late.

The grammar of the two is nearly the same. What differs is rewritten in the parsed template: tests of
truth, `==` and `===`, `+` and `~`, loops over objects, bare names as keys of an object. Every loop,
call and printed value counts against a budget, so that no template of a suite can hang a run.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import reduce
from typing import Any

from jinja2 import BaseLoader, ChainableUndefined, Environment, TemplateNotFound, nodes, pass_context
from jinja2.compiler import CodeGenerator, Frame
from jinja2.environment import TemplateModule
from jinja2.lexer import TokenStream
from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tui_eval.javascript import operators
from tui_eval.javascript import values as js
from tui_eval.nunjucks.filters import FILTERS, TESTS, items
from tui_eval.nunjucks.grammar import (
    NunjucksParser,
    Switch,
    keep_accumulators,
    plain_strings,
    rewrite,
    spelled,
)
from tui_eval.nunjucks.members import MAX_ITEMS, member

# -- Files that templates name: `{% include %}`, `{% import %}`, `{% extends %}`.


class IncludeLoader(BaseLoader):
    """Reads what a template names as the rendering under way finds it."""

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str | None, Callable[[], bool] | None]:
        find = budget.get().find_include
        found = find(template) if find is not None else None
        if found is None:
            what = "cannot be included here" if find is None else "is not there to be included"
            raise TemplateNotFound(template, f"{template} {what}")
        return found, None, None


LOOP_MEMBERS = {"index", "index0", "revindex", "revindex0", "first", "last", "length"}


class Budget:
    """What one rendering may still spend: seconds, rounds of loops and calls, printed characters, and values that are
    looked through. `find_include` gives the text of a file that the template includes, None where there is none; where
    it is None itself, nothing can be included."""

    def __init__(self, seconds: float, find_include: Callable[[str], str | None] | None) -> None:
        self.find_include = find_include
        self.deadline = time.monotonic() + seconds
        self.rounds = 2_000_000
        self.characters = js.MAX_TEXT
        self.values = 5_000_000
        self.names: dict[str, Any] = {}

    def spend(self, rounds: int = 1, characters: int = 0) -> None:
        self.rounds -= rounds
        self.characters -= characters
        if self.rounds < 0:
            raise js.ScriptValueError("the template takes too many steps")
        if self.characters < 0:
            raise js.ScriptValueError("the text would be too long")
        if time.monotonic() > self.deadline:
            raise js.ScriptValueError("the template takes too long")

    def look_through(self, values: int, characters: int) -> None:
        """See `javascript.values.looked_through`; sixteen characters count as one value."""
        self.values -= values + characters // 16
        if self.values < 0:
            raise js.ScriptValueError("the value would be too large")
        self.spend(0)


budget: ContextVar[Budget] = ContextVar("budget")


class NunjucksUndefined(ChainableUndefined):
    """Prints as nothing and may be looked into; calling it is an error that names it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise js.ScriptValueError(f"Unable to call `{self._undefined_name}`, which is undefined or falsey")

    def __bool__(self) -> bool:
        return False


class _EmptyList(list[Any]):
    def __bool__(self) -> bool:
        return True


class _EmptyObject(dict[str, Any]):
    def __bool__(self) -> bool:
        return True


class _NotANumber(float):
    def __bool__(self) -> bool:
        return False


_NAN = _NotANumber("nan")


def _operand(value: Any) -> Any:
    """The left side of `and`/`or`, true or not in Python as it is in JavaScript."""
    if isinstance(value, list) and not value:
        return _EmptyList()
    if isinstance(value, dict) and not value:
        return _EmptyObject()
    return value if js.truthy(value) or not value else _NAN


def _items(value: Any) -> list[Any]:
    found = items(value)
    budget.get().spend(len(found) + 1)
    return found


def _parts(value: Any, count: int) -> list[Any]:
    """What `for a, b in …` walks through: names and values of an object, places and letters of a text, or the
    parts of each item of a list."""
    if isinstance(value, str):
        value = {str(at): letter for at, letter in enumerate(items(value))}
    found = [[k, v] for k, v in value.items()] if isinstance(value, Mapping) else items(value)
    budget.get().spend(len(found) + 1)
    return [(*items(part)[:count], *[js.UNDEFINED] * (count - len(items(part)))) for part in found]


@pass_context
def _set(context: Any, value: Any, name: str) -> None:
    budget.get().names[name] = value


@pass_context
def _get(context: Any, value: Any, name: str) -> Any:
    return budget.get().names.get(name, value)


@pass_context
def _random(context: Any, value: Any) -> Any:
    return FILTERS["random"](value)  # with the context, so that jinja2 does not settle it for good


def _add(left: Any, right: Any) -> Any:
    added = operators.add(left, right)
    if isinstance(added, str):
        budget.get().spend(1, len(added))
    return added


OPERATORS: dict[str, Callable[..., Any]] = {
    "_set": _set,
    "_get": _get,
    "random": _random,
    "_true": js.truthy,
    "_added": lambda *parts: reduce(_add, parts),
    "_each": lambda value, count: [value] * count,
    "_operand": _operand,
    "_items": _items,
    "_parts": _parts,
    "_in": operators.contains,
    "_eq": operators.loosely_equal,
    "_ne": lambda a, b: not operators.loosely_equal(a, b),
    "_seq": operators.strictly_equal,
    "_sne": lambda a, b: not operators.strictly_equal(a, b),
    "_lt": lambda a, b: operators.ordered("lt", a, b),
    "_lteq": lambda a, b: operators.ordered("lteq", a, b),
    "_gt": lambda a, b: operators.ordered("gt", a, b),
    "_gteq": lambda a, b: operators.ordered("gteq", a, b),
}


def _range(start: Any, stop: Any = js.UNDEFINED, step: Any = 1) -> list[int]:
    first, last = (0, js.integer(start)) if js.is_undefined(stop) else (js.integer(start), js.integer(stop))
    if not js.is_undefined(stop):
        start = stop
    by = js.integer(step, 1) or 1
    last += by > 0 and last < js.number(start)  # up to 2.5 there is a 2
    numbers = range(first, last, by)
    if len(numbers) > MAX_ITEMS:
        raise js.ScriptValueError("range: the list would be too long")
    return list(numbers)


class Cycler:
    """nunjucks' `cycler(…)`."""

    def __init__(self, *values: Any) -> None:
        self.values, self.at, self.current = values, -1, None

    def next(self) -> Any:
        self.at = (self.at + 1) % max(1, len(self.values))
        self.current = self.values[self.at] if self.values else None
        return self.current

    def reset(self) -> None:
        self.at, self.current = -1, None


def _joiner(separator: Any = ",") -> Callable[[], str]:
    used = False

    def joined() -> str:
        nonlocal used
        used, before = True, used
        return js.text(separator) if before else ""

    return joined


def _finalize(value: Any) -> str:
    plain = js.text(value)
    current = budget.get(None)
    if current is not None:
        current.spend(1, len(plain))
    return plain


class _Code(CodeGenerator):
    """Writes what jinja2 settles for good as it compiles (`'x' | abs`): NaN has no literal in Python."""

    def visit_Const(self, node: nodes.Const, frame: Frame) -> None:
        value = node.as_const(frame.eval_ctx)
        if isinstance(value, float) and not math.isfinite(value):
            self.write(f"float({str(value)!r})")
        else:
            super().visit_Const(node, frame)


class NunjucksEnvironment(ImmutableSandboxedEnvironment):
    """The environment that compiles and runs templates."""

    code_generator_class = _Code
    intercepted_binops = frozenset(["+", "-", "*", "/", "//", "%", "**"])
    intercepted_unops = frozenset(["+", "-"])

    def __init__(self, filters: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(
            autoescape=False,
            undefined=NunjucksUndefined,
            keep_trailing_newline=True,
            finalize=_finalize,
            extensions=[Switch],
            loader=IncludeLoader(),
            cache_size=0,  # what is included depends on who asks, and may change
        )
        self.filters = {**FILTERS, **filters, **OPERATORS}
        self.tests = dict(TESTS)
        self.globals = {"range": _range, "cycler": Cycler, "joiner": _joiner, "null": None}

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = NunjucksParser(self, source, name, filename).parse()
        rewrite(template)
        keep_accumulators(template)
        return template

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        tokens = self.lexer.tokeniter(source, name, filename, state)
        stream = self.lexer.wrap(plain_strings(tokens), name, filename)
        return TokenStream(spelled(TokenStream(stream, name, filename)), name, filename)

    def getattr(self, obj: Any, attribute: str) -> Any:
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, NunjucksUndefined):
            return obj
        if isinstance(obj, LoopContext):
            return getattr(obj, argument) if argument in LOOP_MEMBERS else self.undefined(name=str(argument))
        if isinstance(obj, TemplateModule):
            exported = argument if isinstance(argument, str) and not argument.startswith("_") else ""
            return obj.__dict__.get(exported, self.undefined(name=js.text(argument)))
        if isinstance(obj, Cycler):
            known = {"next": obj.next, "reset": obj.reset, "current": obj.current}
            return known.get(argument, self.undefined(name=str(argument)))
        found = member(obj, argument)
        return self.undefined(name=js.text(argument)) if isinstance(found, js.Undefined) else found

    def is_safe_callable(self, obj: Any) -> bool:
        return True  # nothing else can be reached: members come from our tables alone

    def call(__self, __context: Any, __obj: Any, *args: Any, **kwargs: Any) -> Any:
        budget.get().spend(20)
        if not callable(__obj) or isinstance(__obj, js.Undefined):
            raise js.ScriptValueError("Unable to call a value that is not a function")
        if isinstance(__obj, Macro):
            # What a macro does not ask for is dropped.
            args = args if __obj.catch_varargs else args[: len(__obj.arguments)]
            known = {*__obj.arguments, *(("caller",) if __obj.caller else ())}
            kwargs = {k: v for k, v in kwargs.items() if __obj.catch_kwargs or k in known}
        elif not isinstance(__obj, (BlockReference, NunjucksUndefined)) and kwargs:
            kwargs = {}
        return super().call(__context, __obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        return operators.arithmetic(operator, left, right) if operator != "+" else _add(left, right)

    def call_unop(self, context: Any, operator: str, arg: Any) -> Any:
        return operators.arithmetic("-", 0, arg) if operator == "-" else js.number(arg)
