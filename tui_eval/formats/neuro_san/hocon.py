"""HOCON by pyhocon 0.3, without what it does wrong or should not do.

Mended: JSON's escapes are decoded; a quoted key is its text, one key even with dots in it; durations (`5 s`,
`3 hours later`) stay text; a byte order mark is skipped; `${a."b.c"}` is understood; an empty text or a null
in a list is kept; `true`, `false` and `null` beside words are words. Refused: URL and package includes; files
outside the project and environment variables unless the folder is trusted. An include is looked for beside
the including file, then from the project root. Everything else (merging, substitution, `+=`, unquoted text)
is pyhocon's.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from tui_eval.formats.neuro_san.hocon_text import HoconError, HoconLines, Prepared, prepare
from tui_eval.guard.trust import NeedsTrust, Trust, variable
from tui_eval.model import Problem

LARGEST = 1_000_000
"""Characters apart from those of quoted strings; pyhocon takes about 15 seconds for as many in long texts."""
MOST_VALUES = 50_000
"""Keys and items of lists, of which pyhocon reads some thousands a second."""

MOST_FILLED_IN = 100_000
"""Values that substitutions may fill in, of a text each hundred characters: a few lines that refer to each other
double what they fill in again and again."""

_lock = threading.Lock()  # pyhocon sets pyparsing's white space globally while it parses
_ADVICE = re.compile(r"[(]?(?:at char \d+[),]*|line: ?(\d+),? col: ?\d+[)]?)[, ]*")


class HoconDocument(NamedTuple):
    """A document as read: plain values, None where it could not be read, which `problems` says.
    `files` are the absolute paths of all files read."""

    value: Any
    lines: HoconLines
    problems: list[Problem]
    files: list[str]


NAMED = re.compile("\ue000(\\w+)\ue001")
"""What `load` leaves in place of a variable of the environment where they are only to be named."""


def load(
    text: str, path: str, root: Path, trust: Trust, *, named: bool = False, follow: bool = True
) -> HoconDocument:
    """Read a HOCON document and what it includes; never raises for content.

    Args:
        path: the file from the project root.
        root: the project root.
        trust: asked before an environment variable or a file outside the root is read.
        named: variables of the environment are not filled in, but stand there as `NAMED`.
        follow: False leaves includes out, so that no other file is touched.
    """
    nothing = HoconLines(path)
    try:
        prepared = prepare(text, path, root, trust, follow=follow)
    except HoconError as error:
        return HoconDocument(None, nothing, [error.problem], [])
    if len(prepared.text) > LARGEST:
        problem = Problem(path, 0, "", f"longer than {LARGEST:,} characters", "split the file")
        return HoconDocument(None, nothing, [problem], prepared.files)
    if len(prepared.lines.places) > MOST_VALUES:
        problem = Problem(path, 0, "", f"more than {MOST_VALUES:,} keys and items", "split the file")
        return HoconDocument(None, nothing, [problem], prepared.files)
    try:
        environment = _Environment(trust, named=named)
        restorer = _Restorer(prepared)
        with _lock, _tamed(environment, _Filled(restorer)):
            from pyhocon.config_parser import ConfigParser

            tree = ConfigParser.parse(prepared.text)
        if environment.refused is not None:
            raise environment.refused
        value = restorer.plain(tree)
    except (Exception, RecursionError) as error:
        problems = [*prepared.problems, _problem(error, prepared, path)]
        return HoconDocument(None, prepared.lines, problems, prepared.files)
    return HoconDocument(value, prepared.lines, prepared.problems, prepared.files)


class _IncludeRefused(Exception):
    pass


class _CannotFillIn(Exception):
    pass


class _NoFiles:
    """In place of pyhocon's factory: an include that was not ours to see is not done."""

    @staticmethod
    def parse_file(filename: str, *_: Any, **__: Any) -> Any:
        raise _IncludeRefused(f"include {filename!r} must stand at the start of an entry")

    parse_URL = parse_file


class _Environment:
    """The environment as a suite may see it: nothing without trust. What it may not see is empty until the document
    has been read, so that all that it wants is known at once; then `refused` is raised."""

    def __init__(self, trust: Trust, *, named: bool) -> None:
        self._trust, self._named = trust, named
        self.refused: NeedsTrust | None = None

    def get(self, name: str, default: Any = None) -> Any:
        if name not in os.environ:
            return default
        try:
            self._trust.require(variable(name))
        except NeedsTrust as error:
            self.refused = self.refused or error
            return ""
        return f"\ue000{name}\ue001" if self._named else os.environ[name]


class _Filled:
    """Counts what pyhocon fills in for substitutions, in place of its `copy`, what it merges, and how often
    it looks for what one stands for: so much and no more."""

    def __init__(self, restorer: _Restorer) -> None:
        self._left = MOST_FILLED_IN
        self._restorer = restorer

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise _CannotFillIn("its substitutions fill in too much")

    def deepcopy(self, value: Any) -> Any:
        waiting = [value]
        while waiting:
            one = waiting.pop()
            self._take(1 + (self._restorer.length(one) // 100 if isinstance(one, str) else 0))
            if isinstance(one, dict):
                waiting.extend(one.values())
            elif isinstance(one, list):
                waiting.extend(one)
        copied: dict[int, Any] = {}
        result = copy.deepcopy(value, copied)
        self._take(len(copied))  # what is not filled in yet drags along the objects that it stands in
        return result

    def counting(self, work: Callable[..., Any], size: int) -> Any:
        """A function of pyhocon's with two arguments or more; of a mapping that comes second each entry counts too."""

        def counted(first: Any, second: Any, *rest: Any, **more: Any) -> Any:
            self._take(size + (len(second) if isinstance(second, dict) else 0))
            return work(first, second, *rest, **more)

        return staticmethod(counted)


def _substitutions(values: Any) -> list[Any]:
    """`ConfigValues.get_substitutions` of pyhocon, which never ends where a value overrides itself."""
    from pyhocon.config_tree import ConfigSubstitution, ConfigValues

    found: list[Any] = []
    passed: set[int] = set()
    node = values
    while isinstance(node, ConfigValues):
        if id(node) in passed:
            raise _CannotFillIn("a substitution refers to what it stands in")
        passed.add(id(node))
        found = [token for token in node.tokens if isinstance(token, ConfigSubstitution)] + found
        node = node.overridden_value
    return found


@contextmanager
def _tamed(environment: _Environment, filled: _Filled) -> Iterator[None]:
    """pyhocon without files, URLs, packages, durations and the environment, while the lock is held."""
    import pyparsing
    from pyhocon import config_parser
    from pyhocon.config_tree import ConfigTree, ConfigValues

    def refuse(*_: Any, **__: Any) -> Any:
        raise _IncludeRefused("include of a URL or package is never done")

    parser = config_parser.ConfigParser
    replaced: list[tuple[Any, str, Any]] = [
        (config_parser, "os", SimpleNamespace(environ=environment, path=os.path)),
        (config_parser, "copy", filled),
        (config_parser, "get_period_expr", pyparsing.NoMatch),
        (config_parser, "ConfigFactory", _NoFiles),
        (config_parser, "urlopen", refuse),
        (config_parser, "find_package_dirs", refuse),
        (ConfigValues, "get_substitutions", _substitutions),
        (ConfigTree, "merge_configs", filled.counting(ConfigTree.merge_configs, 1)),
        # It then goes through all that are not resolved yet.
        (parser, "_resolve_variable", filled.counting(parser._resolve_variable, 5)),
    ]
    kept = [(owner, name, vars(owner)[name]) for owner, name, _ in replaced]
    logger = logging.getLogger("pyhocon")
    level = logger.level
    white = pyparsing.ParserElement.DEFAULT_WHITE_CHARS
    try:
        for owner, name, value in replaced:
            setattr(owner, name, value)
        logger.setLevel(logging.CRITICAL)
        yield
    finally:
        for owner, name, value in kept:
            setattr(owner, name, value)
        logger.setLevel(level)
        # pyhocon does not put it back when the text is broken
        pyparsing.ParserElement.set_default_whitespace_chars(white)


class _Restorer:
    def __init__(self, prepared: Prepared) -> None:
        self._strings = prepared.strings
        self._name = re.compile(prepared.prefix + r"(\d+)z")

    def plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._text(str(key).strip('"')): self.plain(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.plain(item) for item in value]
        if isinstance(value, str):
            return self._text(str(value))
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if type(value).__module__.startswith("pyhocon") and type(value).__name__ != "NoneValue":
            raise ValueError("a substitution refers to what it stands in")
        return None if type(value).__name__ == "NoneValue" else self._text(str(value))

    def length(self, text: str) -> int:
        """How long a text will be."""
        return len(text) + sum(len(self._strings[int(number)]) for number in self._name.findall(text))

    def _text(self, text: str) -> str:
        return self._name.sub(lambda match: self._strings[int(match.group(1))], text)


def _problem(error: BaseException, prepared: Prepared, path: str) -> Problem:
    from pyparsing import ParseBaseException

    if isinstance(error, RecursionError):
        return Problem(path, 0, "", "not valid HOCON: nested too deeply")
    if isinstance(error, NeedsTrust):
        name = error.what.rpartition(" ")[2]
        found = re.search(r"\$\{\??" + re.escape(name) + r"\}", prepared.text)
        line = prepared.text.count("\n", 0, found.start()) + 1 if found else 0
        return _at(prepared, line, path, str(error))
    text = _Restorer(prepared).plain(str(error))
    line = getattr(error, "lineno", None)
    if line is None and (match := re.search(r"line: ?(\d+)", text)):
        line = int(match.group(1))
    if isinstance(error, _CannotFillIn):
        return _at(prepared, 0, path, f"not valid HOCON: {text}", "write out what they stand for")
    if isinstance(error, _IncludeRefused):
        return _at(prepared, 0, path, f"not valid HOCON: {text}")
    if isinstance(error, ParseBaseException):
        return _at(prepared, line, path, f"not valid HOCON: {_near(prepared, error)}", "mend the syntax")
    text = " ".join(_ADVICE.sub("", text).split()).rstrip("(, ")
    if type(error).__module__.startswith("pyhocon"):
        return _at(prepared, line, path, f"not valid HOCON: {text}")
    return _at(prepared, 0, path, f"pyhocon cannot read this ({type(error).__name__}: {text})")


def _near(prepared: Prepared, error: Any) -> str:
    rest = prepared.text[error.loc :].lstrip(" ").partition("\n")[0].strip()
    rest = _Restorer(prepared).plain(rest)
    if not rest:
        return "the line ends too early"
    return f"unexpected {rest[:40]!r}"


def _at(prepared: Prepared, line: int | None, path: str, message: str, cure: str = "") -> Problem:
    if line and 0 < line <= len(prepared.origin):
        path, line = prepared.origin[line - 1]
    return Problem(path, line or 0, "", " ".join(message.split()), cure)
