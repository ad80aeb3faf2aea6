"""HOCON made safe for pyhocon: includes put in place, strings set aside, every key's line noted.

pyhocon 0.3.63 opens URLs and any file, keeps quotes in some keys, splits a quoted key at its dots
when asked for it, does not decode `\\uXXXX` and knows no line numbers. So its text is prepared
here: each quoted string (as key or value) becomes a name without special characters, to be put
back into the result; includes are read by us, within the project; comments are dropped.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path

from tui_eval.guard.paths import confine, read_file
from tui_eval.guard.trust import NeedsTrust, Trust
from tui_eval.model import Problem

# -- Where the keys of a HOCON document stand, and the error that says where it is broken.


Place = tuple[str, int]
"""A file, from the project root, and a line of it."""

Path_ = tuple[Hashable, ...]


class HoconError(Exception):
    """The text cannot be read; carries the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass
class HoconLines:
    """Where each key path of a HOCON document stands, also those from included files."""

    path: str
    places: dict[Path_, Place] = field(default_factory=dict)
    filled_in: set[str] = field(default_factory=set)
    """The keys at the root that `${…}` means, or whose parts it means."""

    def at(self, *path: Hashable) -> int:
        """The line (from 1) of the key or item at `path`, else of its nearest parent; 0: unknown."""
        return self._place(path)[1]

    def file(self, *path: Hashable) -> str | None:
        """The file that line is in."""
        return self._place(path)[0]

    def source(self, *path: Hashable) -> str | None:
        """None: numbers are not kept as written."""
        return None

    def _place(self, path: Path_) -> Place:
        for length in range(len(path), 0, -1):
            place = self.places.get(path[:length])
            if place is not None:
                return place
        return self.path, 1


DEEPEST = 60
"""Levels of nesting allowed; pyhocon's parser recurses."""

MOST_INCLUDES = 200

_TOKEN = re.compile(
    r'''(?P<triple>""".*?"""+)|(?P<string>"(?:[^"\\\n]|\\[^\n])*")|(?P<comment>(?:\#|//)[^\n]*)'''
    r"""|(?P<substitution>\$\{[^}\n]*\})|(?P<newline>\n)|(?P<mark>\+=|[{}\[\]=:,])|(?P<blank>[^\S\n]+)"""
    r"""|(?P<word>(?:(?!//)[^\s"{}\[\],#$=+:])+)|(?P<other>.)""",
    re.DOTALL,
)
_INCLUDE = re.compile(
    r"""include[ \t]*(?P<required>required[ \t]*\([ \t]*)?(?:(?P<form>url|file|package|classpath)[ \t]*\([ \t]*)?"""
    r""""(?P<path>(?:[^"\\\n]|\\[^\n])*)"(?P<end>[ \t)]*)"""
)
_LETTERS = "A-Za-z0-9_À-ÖØ-öø-ÿ-"
_SIMPLE = re.compile(rf"[{_LETTERS}]+(?: [{_LETTERS}]+)*\Z")
"""What pyhocon also takes for a key without quotes, so that `"é"` and `é` are one key."""
_NUMBER = re.compile(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?\Z")
_CONSTANTS = frozenset({"true", "false", "null"})
_WORDS = frozenset({"word", "string", "triple"})
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[^\n])")
_ESCAPES = {
    "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "/": "/", '"': '"', "\\": "\\",
    "=": "=", "#": "#", "!": "!",
}  # fmt: skip
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


@dataclass
class Prepared:
    """What pyhocon gets (`text`), and what is needed to read its answer.

    `strings[n]` is what the name `prefix + n + "z"` stands for; `origin[n]` the place of the n-th
    line of `text`; `files` every file read, absolute.
    """

    text: str
    prefix: str
    strings: list[str]
    origin: list[Place]
    lines: HoconLines
    files: list[str]
    problems: list[Problem]


class _Frame:
    """An open object or list of the text being scanned."""

    def __init__(self, mark: str, path: Path_, line: int) -> None:
        self.mark = mark
        self.path = path
        self.line = line
        self.key: list[tuple[bool, str]] = []
        self.in_value = False
        self.seen = False  # a token of the current value, or of the current item of a list
        self.index = -1
        self.silent = False  # the braces around an included file
        self.given: dict[tuple[str, ...], int] = {}  # the line of each key
        self.begun: tuple[str, ...] | None = None  # the key whose value comes next


class _Scanner:
    def __init__(self, path: str, root: Path, trust: Trust, follow: bool) -> None:
        self.root = root
        self.follow = follow
        self.trust = trust
        self.prefix = f"zTq{secrets.token_hex(6)}n"
        self.out: list[str] = []
        self.strings: list[str] = []
        self.numbers: dict[str, int] = {}
        self.origin: list[Place] = [(path, 1)]
        self.lines = HoconLines(path)
        self.files: list[str] = []
        self.problems: list[Problem] = []
        self.reading: list[Path] = []
        self.depth = 0

    def scan(self, text: str, shown: str, file: Path, base: Path_, included: bool) -> None:
        # The \r of \r\n is blank space, but in """…""", which keeps its text as it is.
        text = re.sub(r"\r(?!\n)", "\n", text.removeprefix("\ufeff"))
        stack = [_Frame("", base, 1)]
        line, position, end = 1, 0, len(text)
        before = ""  # the kind of the token before, on this line
        self._fresh(shown, 1)
        while position < end:
            frame = stack[-1]
            if text.startswith("include", position) and self._starts_entry(frame):
                match = _INCLUDE.match(text, position)
                if match is not None:
                    self._include(match, shown, line, file, frame)
                    self._fresh(shown, line)
                    position = match.end()
                    if text.startswith("//", position):  # a comment, also right behind `)`
                        position = max(text.find("\n", position), 0) or end
                    continue
            match = _TOKEN.match(text, position)
            if match is None:  # `.` takes every character
                break
            kind, token = match.lastgroup, match.group()
            if kind == "comment" and not self._is_comment(token, text[position - 1 : position], frame):
                kind, token = "word", "//"  # http://…, a//b
            position += len(token)
            if kind == "word" and _is_constant(token) and (frame.in_value or frame.mark == "["):
                # Beside words it is one; pyhocon makes `True`, `2.5` or the name of an object of it, without its blank.
                following = _TOKEN.match(text, len(text) - len(text[position:].lstrip(" \t")))
                if before in _WORDS or (following is not None and following.lastgroup in _WORDS):
                    self.out.append(f'"{token}"')
                    self._touch(frame, shown, line)
                    before = kind
                    continue
            if kind != "blank":
                before = kind or ""
            if kind == "newline":
                line += 1
                self.out.append("\n")
                self.origin.append((shown, line))
                self._separate(frame, soft=True)
            elif kind == "blank":
                self.out.append(" " * len(token))
                if frame.key and not frame.in_value:
                    frame.key.append((False, token))
            elif kind == "comment":
                continue
            elif kind in ("string", "triple"):
                self._string(token, kind, text[position : position + 1], frame, shown, line)
                line += token.count("\n")
                if kind == "triple":  # pyhocon glues what follows to it, other than to "..."
                    position += len(text[position:]) - len(text[position:].lstrip(" \t"))
            elif kind == "mark":
                self._mark(token, stack, shown, line, included)
            elif kind == "other" and token == '"':
                raise self._error(shown, line, "a string that is not closed on its line", 'close it with "')
            elif kind == "substitution":
                frame.begun = None  # `port = ${?PORT}` means to replace what stands before it
                self._touch(frame, shown, line)
                self.out.append(self._substitution(token))
            else:
                self._plain(frame, token, shown, line)
        if len(stack) > 1:
            open_one = stack[-1]
            raise self._error(shown, open_one.line, f"the {open_one.mark} is not closed")

    def _fresh(self, shown: str, line: int) -> None:
        """The current line of the text for pyhocon continues at this place."""
        self.origin[-1] = (shown, line)

    def _starts_entry(self, frame: _Frame) -> bool:
        if frame.mark == "[":
            return not frame.seen
        return not frame.in_value and not any(text.strip() for _, text in frame.key)

    def _is_comment(self, token: str, before: str, frame: _Frame) -> bool:
        """Two slashes within unquoted text are text, as pyhocon has it, but not behind a number, `true` or `null`."""
        if token[0] == "#" or not self.out or before in ' \t\n{}[],="':
            return True
        if before == ":":
            return not (frame.in_value and frame.seen) and frame.mark != "["
        said = self.out[-1].strip('"')
        return _NUMBER.match(said) is not None or said.lower() in _CONSTANTS

    def _plain(self, frame: _Frame, token: str, shown: str, line: int) -> None:
        self.out.append(token)
        if frame.mark != "[" and not frame.in_value:
            frame.key.append((False, token))
        else:
            self._touch(frame, shown, line)

    def _string(self, token: str, kind: str, following: str, frame: _Frame, shown: str, line: int) -> None:
        value = token[3:-3] if kind == "triple" else _decode(token[1:-1])
        name = self._name(value)
        if frame.mark != "[" and not frame.in_value:
            # In a path (`a."b.c".d`) pyhocon takes no quotes, and the name needs none.
            part = following == "." or (frame.key and frame.key[-1][1].endswith("."))
            self.out.append(name if part else f'"{name}"')
            frame.key.append((True, value))
        else:
            self.out.append(f'"{name}"')
            self._touch(frame, shown, line)

    def _name(self, value: str) -> str:
        if _SIMPLE.match(value):
            return value
        number = self.numbers.setdefault(value, len(self.strings))
        if number == len(self.strings):
            self.strings.append(value)
        return f"{self.prefix}{number}z"

    def _substitution(self, token: str) -> str:
        self.lines.filled_in.update(_segments(_path(token[2:-1].removeprefix("?")))[:1])
        return _QUOTED.sub(lambda m: self._name(_decode(m.group(1))), token)

    def _touch(self, frame: _Frame, shown: str, line: int) -> None:
        """A token of a value begins here."""
        self._value(frame, shown, line)
        if frame.mark == "[" and not frame.seen:
            frame.index += 1
            self.lines.places[(*frame.path, frame.index)] = (shown, line)
        frame.seen = True

    def _separate(self, frame: _Frame, soft: bool) -> None:
        if frame.mark == "[":
            frame.seen = False
        elif frame.in_value and (frame.seen or not soft):
            frame.in_value, frame.seen, frame.key = False, False, []
        elif not soft:
            frame.key = []

    def _mark(self, token: str, stack: list[_Frame], shown: str, line: int, included: bool) -> None:
        frame = stack[-1]
        if token in "{[":
            self._open(token, stack, shown, line, included)
        elif token in "}]":
            wanted = {"}": "{", "]": "["}[token]
            if frame.mark != wanted:
                cure = f"the {frame.mark} of line {frame.line} is still open" if frame.mark else "remove it"
                raise self._error(shown, line, f"a {token} that closes nothing", cure)
            stack.pop()
            self.depth -= 1
            if not frame.silent:
                self.out.append(token)
        elif token == ",":
            self.out.append(token)
            self._separate(frame, soft=False)
        elif frame.mark != "[" and not frame.in_value:
            self.out.append(token)
            frame.in_value, frame.seen = True, False
            self._note_key(frame, shown, line)
            frame.begun = tuple(_segments(frame.key)) if token != "+=" else None
        else:
            self.out.append(token)
            self._touch(frame, shown, line)

    def _open(self, token: str, stack: list[_Frame], shown: str, line: int, included: bool) -> None:
        frame = stack[-1]
        outermost = len(stack) == 1 and included and not frame.in_value and not frame.key
        if frame.mark != "[" and not frame.in_value and any(text.strip() for _, text in frame.key):
            frame.in_value = True
            self._note_key(frame, shown, line)
            frame.begun = tuple(_segments(frame.key))
        if frame.in_value and not frame.seen:
            self._value(frame, shown, line, merged=token == "{")
        path = frame.path
        if frame.mark == "[":
            self._touch(frame, shown, line)
            path = (*path, frame.index)
        elif frame.in_value:
            path = (*path, *_segments(frame.key))
            frame.seen = True
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._error(shown, line, f"nested deeper than {DEEPEST} levels")
        inner = _Frame(token, path, line)
        inner.silent = outermost
        stack.append(inner)
        if not outermost:
            self.out.append(token)

    def _note_key(self, frame: _Frame, shown: str, line: int) -> None:
        segments = _segments(frame.key)
        for length in range(1, len(segments) + 1):
            path = (*frame.path, *segments[:length])
            if length == len(segments) or path not in self.lines.places:
                self.lines.places[path] = (shown, line)

    def _value(self, frame: _Frame, shown: str, line: int, *, merged: bool = False) -> None:
        """The value of a key begins. Objects are merged; of other values HOCON takes the last, and a test may
        be lost."""
        if frame.begun is None:
            return
        key, frame.begun = frame.begun, None
        if key in frame.given and not merged:
            message = f"given twice (first on line {frame.given[key]}); the last one counts"
            self.problems.append(Problem(shown, line, ".".join(key), message, "remove one", "note"))
        frame.given.setdefault(key, line)

    def _include(self, match: re.Match[str], shown: str, line: int, file: Path, frame: _Frame) -> None:
        if not self.follow:
            return
        name, form = _decode(match["path"]), match["form"]
        opened = match["required"] is not None, form is not None
        if match["end"].count(")") < sum(opened):
            raise self._error(shown, line, f'include "{name}" is not closed')
        if form in ("url", "package", "classpath") or _URL.match(name):
            what = "a URL" if form != "package" and form != "classpath" else "a package"
            message = f'include of {what} ("{name}") is never done'
            raise self._error(shown, line, message, "copy the file into the project")
        if "*" in name or "?" in name:
            raise self._error(shown, line, f'include "{name}": patterns are not understood', "name each file")
        found = self._find(name, file, shown, line)
        if found is None:
            if match["required"]:
                raise self._error(shown, line, f'required include "{name}" does not exist')
            message = f'include "{name}" does not exist and is left out'
            self.problems.append(Problem(shown, line, "include", message, level="note"))
            return
        if found in self.reading or len(self.files) > MOST_INCLUDES:
            why = (
                "includes itself"
                if found in self.reading
                else f"is one of more than {MOST_INCLUDES} includes"
            )
            raise self._error(shown, line, f'include "{name}" {why}')
        try:
            text = read_file(found).decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
            raise self._error(shown, line, f'include "{name}" cannot be read: {reason}') from None
        self.files.append(str(found))
        self.reading.append(found)
        self.out.append("\n")
        self.origin.append((shown, line))
        inner = found.relative_to(self.root).as_posix() if found.is_relative_to(self.root) else str(found)
        self.scan(text, inner, found, frame.path, included=True)
        self.out.append("\n")
        self.origin.append((shown, line))
        self.reading.pop()

    def _find(self, name: str, file: Path, shown: str, line: int) -> Path | None:
        try:
            for base in (file.parent, self.root):
                found = confine(self.root, name, self.trust, base=base)
                if found.is_file():
                    return found
        except NeedsTrust as error:
            raise self._error(shown, line, str(error)) from None
        except OSError as error:
            raise self._error(shown, line, f'include "{name}": {error.strerror or error}') from None
        return None

    def _error(self, shown: str, line: int, message: str, cure: str = "") -> HoconError:
        return HoconError(Problem(shown, line, "", f"not valid HOCON: {message}", cure))


def prepare(text: str, path: str, root: Path, trust: Trust, *, follow: bool = True) -> Prepared:
    """Scan a document and all it includes.

    Args:
        path: the file from the project root.
        root: the project root, which includes may not leave without trust.
        follow: False leaves includes out, so that no other file is touched.

    Raises:
        HoconError: strings or brackets that are not closed, nesting deeper than 60, an include
            that is refused, missing but required, or part of a circle.
    """
    file = (root / path).resolve()
    scanner = _Scanner(path, root.resolve(), trust, follow)
    scanner.files.append(str(root / path))
    scanner.reading.append(file)
    scanner.scan(text, path, file, (), included=False)
    # Before the end of all a blank, as a comment leaves one, makes a text of a number.
    scanner.out.append("\n")
    return Prepared(
        "".join(scanner.out), scanner.prefix, scanner.strings, scanner.origin, scanner.lines,
        scanner.files, scanner.problems,
    )  # fmt: skip


def _is_constant(token: str) -> bool:
    """Whether pyhocon makes a value of a word that is written otherwise."""
    return token.lower() in _CONSTANTS or (_NUMBER.match(token) is not None and not token.isdigit())


def _path(text: str) -> list[tuple[bool, str]]:
    """The parts of a path as they are written, and whether each stands in quotes."""
    parts: list[tuple[bool, str]] = []
    end = 0
    for quoted in _QUOTED.finditer(text):
        parts += [(False, text[end : quoted.start()]), (True, _decode(quoted.group(1)))]
        end = quoted.end()
    return [*parts, (False, text[end:])]


def _segments(key: list[tuple[bool, str]]) -> list[str]:
    segments: list[str] = []
    plain = ""
    for quoted, text in [*key, (True, "")]:
        if not quoted:
            plain += text
            continue
        segments += [part.strip() for part in plain.split(".") if part.strip()]
        plain = ""
        segments.append(text)
    return segments[:-1]


def _decode(text: str) -> str:
    """A quoted string's text; an escape that neither JSON nor pyhocon knows stays as it is."""
    if "\\" not in text:
        return text

    def decoded(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape[0] == "u" and len(escape) == 5:
            return chr(int(escape[1:], 16))
        return _ESCAPES.get(escape, match.group())

    result = _ESCAPE.sub(decoded, text)
    return result.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
