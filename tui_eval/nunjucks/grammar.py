"""Where nunjucks' grammar differs from jinja2's, and how a parsed template is given its meaning.

Imports jinja2: only `jinja_environment` imports this. Operators become filters whose names begin
with `_`; they are in the environment's `OPERATORS`.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

from tui_eval.javascript.values import ScriptValueError

COMPARISONS = ("eq", "ne", "lt", "lteq", "gt", "gteq")
ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
BINARY: dict[str, Callable[..., nodes.Expr]] = {
    "||": nodes.Or,
    "&&": nodes.And,
    "+": nodes.Add,
    "-": nodes.Sub,
    "*": nodes.Mul,
    "/": nodes.Div,
    "%": nodes.Mod,
}
PRECEDENCE = {
    sign: level
    for level, signs in enumerate(("||", "&&", "eq ne seq sne", "lt lteq gt gteq", "+ -", "* / %"))
    for sign in signs.split()
}
"""JavaScript's, of the operators that nunjucks writes between parts of an expression."""

Written = list[nodes.Expr | str]
"""An expression as nunjucks writes it in JavaScript: its parts, with operators between and `!` before them."""


_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}

OWN_WORDS = frozenset({"True", "False", "None", "self", "varargs", "kwargs"})
"""Words of jinja2 that are mere names in nunjucks; the parser puts a `_` before them."""
_NOT_OURS = ("with", "autoescape", "print")
"""Blocks of jinja2 that nunjucks does not know."""


class NunjucksParser(Parser):
    """jinja2's parser with nunjucks' expressions and `elseif`, without what nunjucks refuses."""

    def parse_statement(self) -> nodes.Node | list[nodes.Node]:
        token = self.stream.current
        if token.type == "name" and token.value in _NOT_OURS:
            self.fail_unknown_tag(token.value, token.lineno)
        return super().parse_statement()

    def parse_tuple(
        self,
        simplified: bool = False,
        with_condexpr: bool = True,
        extra_end_rules: tuple[str, ...] | None = None,
        explicit_parentheses: bool = False,
        with_namespace: bool = False,
    ) -> nodes.Tuple | nodes.Expr:
        if simplified or explicit_parentheses:
            return super().parse_tuple(
                simplified, with_condexpr, extra_end_rules, explicit_parentheses, with_namespace
            )
        # One expression: `{{ a, b }}` is none, and `for x in all if y` walks through all of it or nothing.
        return self.parse_expression()

    def parse_condexpr(self) -> nodes.Expr:
        line = self.stream.current.lineno
        expression = self.parse_or()
        if not self.stream.skip_if("name:if"):
            return expression
        test = self.parse_or()
        otherwise = self.parse_or() if self.stream.skip_if("name:else") else None
        return nodes.CondExpr(test, expression, otherwise, lineno=line)

    def parse_subscribed(self) -> nodes.Expr:
        return self.parse_expression()  # no slices

    def parse_primary(self, with_namespace: bool = False) -> nodes.Expr:
        token = self.stream.current
        if token.type == "string":  # the next one is not joined to it
            return nodes.Const(next(self.stream).value, lineno=token.lineno)
        if token.type == "name" and token.value in OWN_WORDS:
            next(self.stream)
            return nodes.Name(f"_{token.value}", "load", lineno=token.lineno)
        return super().parse_primary(with_namespace)

    def parse_or(self) -> nodes.Expr:
        return _grouped(self._joined("name:or", "||", lambda: self._joined("name:and", "&&", self._negated)))

    def parse_filter_expr(self, node: nodes.Expr) -> nodes.Expr:
        while True:  # `is` is no part of it: it takes all that is compared before it
            kind = self.stream.current.type
            if kind == "pipe":
                node = cast(nodes.Expr, self.parse_filter(node))
            elif kind == "lparen":
                node = self.parse_call(node)
            else:
                return node

    def _joined(self, word: str, sign: str, part: Callable[[], Written]) -> Written:
        written = part()
        while self.stream.skip_if(word):
            written += [sign, *part()]
        return written

    def _negated(self) -> Written:
        return ["!", *self._negated()] if self.stream.skip_if("name:not") else self._contained()

    def _contained(self) -> Written:
        written = self._tested()
        while True:
            negated = self.stream.current.test("name:not") and self.stream.look().test("name:in")
            self.stream.skip(int(negated))
            if not self.stream.skip_if("name:in"):
                return written
            found = _apply("_in", _grouped(written), _grouped(self._tested()))
            written = cast(Written, ["!", found] if negated else [found])

    def _tested(self) -> Written:
        written = self._compared()
        if not self.stream.skip_if("name:is"):
            return written
        negated = self.stream.skip_if("name:not")
        line = self.stream.current.lineno
        name = next(self.stream) if self.stream.current.type == "string" else self.stream.expect("name")
        given: Any = ([], [], None, None)
        if self.stream.current.type == "lparen":
            given = self.parse_call_args()
        test = nodes.Test(_grouped(written), name.value, *given, lineno=line)
        return ["!", test] if negated else [test]

    def _compared(self) -> Written:
        written = self._concatenated()
        while (kind := self.stream.current.type) in COMPARISONS:
            next(self.stream)
            # The lexer knows no `===`: it gives `==` and then an assignment.
            if kind in ("eq", "ne") and self.stream.skip_if("assign"):
                kind = "s" + kind
            written += [kind, *self._concatenated()]
        return written

    def _concatenated(self) -> Written:
        written = self._sum()
        while self.stream.skip_if("tilde"):
            written += ["+", nodes.Const("", lineno=self.stream.current.lineno), "+", *self._sum()]
        return written

    def _sum(self) -> Written:
        written = self._whole_quotient()
        while (kind := self.stream.current.type) in ARITHMETIC:
            next(self.stream)
            written += [ARITHMETIC[kind], *self._whole_quotient()]
        return written

    def _whole_quotient(self) -> Written:
        written = self._joined("mod", "%", self._power)
        while self.stream.skip_if("floordiv"):
            quotient = _grouped([*written, "/", *self._joined("mod", "%", self._power)])
            written = cast(Written, [nodes.FloorDiv(quotient, nodes.Const(1), lineno=quotient.lineno)])
        return written

    def _power(self) -> Written:
        power = self.parse_unary()
        while self.stream.skip_if("pow"):
            power = nodes.Pow(power, self.parse_unary(), lineno=power.lineno)
        return [power]


def _grouped(written: Written) -> nodes.Expr:
    """An expression, by the order in which JavaScript works out what nunjucks writes: it writes no brackets, so
    that `not a == b` is `!a == b` and `n + 1 ~ "x"` is `n + 1 + "" + "x"`."""
    rest = deque(written)

    def operand() -> nodes.Expr:
        part = rest.popleft()
        return nodes.Not(operand(), lineno=1) if part == "!" else cast(nodes.Expr, part)

    def bound(least: int) -> nodes.Expr:
        left = operand()
        while rest and PRECEDENCE[sign := cast(str, rest[0])] >= least:
            rest.popleft()
            left = _operation(sign, left, bound(PRECEDENCE[sign] + 1))
        return left

    return bound(0)


def _operation(sign: str, left: nodes.Expr, right: nodes.Expr) -> nodes.Expr:
    if sign == "+" and isinstance(left, nodes.Filter) and left.name == "_added":
        left.args.append(right)
        return left
    if sign == "+" and isinstance(left, nodes.Add):  # of a hundred, one in the other, Python compiles none
        return _apply("_added", left.left, left.right, right)
    if sign in BINARY:
        return BINARY[sign](left, right, lineno=left.lineno)
    return _apply(f"_{sign}", left, right)


def _apply(name: str, value: nodes.Node, *arguments: nodes.Node) -> nodes.Filter:
    given: Any = list(arguments)
    return nodes.Filter(cast(nodes.Expr, value), name, given, [], None, None, lineno=value.lineno)


def rewrite(node: nodes.Node) -> None:
    """Lay nunjucks' meaning over the children of a node, innermost first."""
    for name, value in list(node.iter_fields()):
        if isinstance(value, list):
            for index, child in enumerate(value):
                if isinstance(child, nodes.Node):
                    rewrite(child)
                    value[index] = _meaning(child)
        elif isinstance(value, nodes.Node):
            rewrite(value)
            setattr(node, name, _meaning(value))


def _meaning(node: nodes.Node) -> nodes.Node:
    if isinstance(node, (nodes.If, nodes.CondExpr)):
        node.test = _apply("_true", node.test)
        if isinstance(node, nodes.CondExpr) and node.expr2 is None:
            node.expr2 = nodes.Const("", lineno=node.lineno)
    elif isinstance(node, (nodes.And, nodes.Or)):
        node.left = _apply("_operand", node.left)
    elif isinstance(node, nodes.Not):
        node.node = _apply("_true", node.node)
    elif isinstance(node, nodes.For):
        if isinstance(node.target, nodes.Tuple):
            names = nodes.Const(len(node.target.items), lineno=node.lineno)
            node.iter = _apply("_parts", node.iter, names)
        else:
            node.iter = _apply("_items", node.iter)
    elif isinstance(node, nodes.Assign) and isinstance(node.target, nodes.Tuple):
        # `set a, b = x` gives the whole value to each.
        node.node = _apply("_each", node.node, nodes.Const(len(node.target.items), lineno=node.lineno))
    elif isinstance(node, nodes.Pair) and isinstance(node.key, nodes.Name):
        node.key = nodes.Const(node.key.name, lineno=node.lineno)
    elif isinstance(node, nodes.Tuple) and node.ctx == "load":
        # In nunjucks a group in brackets gives its last member.
        return node.items[-1] if node.items else nodes.Const(None, lineno=node.lineno)
    return node


def keep_accumulators(template: nodes.Template) -> None:
    """`set` within a loop changes a name that was set before it, as in nunjucks: such names are kept
    in the budget of the rendering instead of jinja2's scopes."""
    every = [(a, a.target.name) for a in template.find_all(nodes.Assign) if isinstance(a.target, nodes.Name)]
    inner = {id(a) for loop in template.find_all(nodes.For) for a in loop.find_all(nodes.Assign)}
    names = {n for a, n in every if id(a) in inner} & {n for a, n in every if id(a) not in inner}
    names -= {n.name for loop in template.find_all(nodes.For) for n in loop.target.find_all(nodes.Name)}
    names -= {
        loop.target.name for loop in template.find_all(nodes.For) if isinstance(loop.target, nodes.Name)
    }
    if names:
        _replace_names(template, names)


def _replace_names(node: nodes.Node, names: set[str]) -> None:
    for field, value in list(node.iter_fields()):
        children = value if isinstance(value, list) else [value]
        for index, child in enumerate(children):
            if not isinstance(child, nodes.Node):
                continue
            _replace_names(child, names)
            new: nodes.Node = child
            if isinstance(child, nodes.Name) and child.ctx == "load" and child.name in names:
                new = _apply("_get", child, nodes.Const(child.name, lineno=child.lineno))
            elif isinstance(child, nodes.Assign) and getattr(child.target, "name", None) in names:
                name = nodes.Const(cast(nodes.Name, child.target).name, lineno=child.lineno)
                new = nodes.ExprStmt(_apply("_set", child.node, name), lineno=child.lineno)
            if isinstance(value, list):
                value[index] = new
            else:
                setattr(node, field, new)


class Switch(Extension):
    """nunjucks' `{% switch x %}{% case y %}…{% default %}…{% endswitch %}`; an empty case falls through."""

    tags = {"switch"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        line = next(parser.stream).lineno
        value = parser.parse_expression()
        ends = ("name:case", "name:default", "name:endswitch")
        parser.parse_statements(ends)
        branches: list[tuple[nodes.Expr, list[nodes.Node]]] = []
        otherwise: list[nodes.Node] = []
        waiting: list[nodes.Expr] = []
        while not parser.stream.skip_if("name:endswitch"):
            if parser.stream.skip_if("name:default"):
                otherwise = parser.parse_statements(ends)
                continue
            parser.stream.expect("name:case")
            waiting.append(_apply("_seq", value, parser.parse_expression()))
            body = parser.parse_statements(ends)
            if body:
                test = waiting[0]
                for other in waiting[1:]:
                    test = nodes.Or(test, other, lineno=line)
                branches.append((test, body))
                waiting = []
        result: list[nodes.Node] = otherwise
        for test, body in reversed(branches):
            branch: nodes.Node = nodes.If(test, body, [], result, lineno=line)
            result = [branch]
        return result


ALIASES = {"elseif": "elif", "asyncEach": "for", "asyncAll": "for", "ifAsync": "if"}
ENDS = {"endeach": "endfor", "endall": "endfor"}


def plain_strings(tokens: Iterable[tuple[int, str, str]]) -> Iterator[tuple[int, str, str]]:
    """Texts of the template with nunjucks' escapes: `\\n`, `\\t`, `\\r`, and any other letter itself.

    Raises:
        ScriptValueError: a regular expression, which nunjucks writes as `r/…/`, is not run here.
    """
    before = ""
    for line, kind, value in tokens:
        if before == "r" and kind == "operator" and value in ("/", "//"):
            raise ScriptValueError("regular expressions (r/…/) are not supported in templates")
        before = value if kind == "name" else ""
        if kind == "string" and "\\" in value:
            meant = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), value[1:-1])
            value = value[0] + meant.encode("unicode_escape").decode("ascii") + value[-1]
        yield line, kind, value


def spelled(stream: TokenStream) -> Iterator[Token]:
    """nunjucks' names of blocks in jinja2's spelling."""
    after_begin = False
    for token in stream:
        if after_begin and token.type == "name":
            value = ALIASES.get(token.value) or ENDS.get(token.value)
            if value:
                token = Token(token.lineno, token.type, value)
        after_begin = token.type == "block_begin"
        yield token
