"""What the parts of the reader share: where we are, what went wrong, and files opened safely."""

from __future__ import annotations

import copy
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from tui_eval.config.project import Config, masker
from tui_eval.formats.near_miss import PassedOver, RootKey, Shape, in_yaml, may_be
from tui_eval.guard.masker import Masker
from tui_eval.guard.paths import TooLong, confine, matching
from tui_eval.guard.secrets import in_addresses
from tui_eval.guard.spelling import close_to
from tui_eval.guard.trust import JAVASCRIPT_ENDINGS, NeedsTrust, Trust
from tui_eval.javascript import Hosts
from tui_eval.model import Compat, Problem
from tui_eval.yaml import yaml_lines

if TYPE_CHECKING:
    from tui_eval.javascript.isolate import JavaScriptHost
    from tui_eval.javascript.node_host import NodeHost
    from tui_eval.scripting.python.python_host import PythonHost


# -- Which files are configurations of promptfoo.


ENDINGS = (".yaml", ".yml", ".json", *JAVASCRIPT_ENDINGS)

_TOP = re.compile(r"""^["']?(prompts|providers|targets|tests|scenarios)["']?[ \t]*:""", re.MULTILINE)


def recognises(path: Path, text: str) -> bool:
    """A file called `promptfooconfig…`, or YAML with prompts, providers and tests side by side."""
    if path.suffix.lower() not in ENDINGS:
        return False
    if path.name.lower().startswith("promptfooconfig"):
        return True
    if path.suffix.lower() not in (".yaml", ".yml"):
        return False
    keys = set(_TOP.findall(text)) or _keys_in_flow(path, text)
    return "prompts" in keys and bool(keys & {"providers", "targets"}) and bool(keys & {"tests", "scenarios"})


def _keys_in_flow(path: Path, text: str) -> set[str]:
    """Those of a root that is written in braces; of most files nothing is parsed for it."""
    if not text.lstrip().startswith("{") or not all(word in text for word in ("prompts", "tests")):
        return set()
    root = yaml_lines.load(text, str(path), core=True).value
    return {str(key) for key in root} if isinstance(root, dict) else set()


def _given(value: Any) -> bool:
    return isinstance(value, str | list | dict) and bool(value)


def _tests(value: Any) -> bool:
    return isinstance(value, str | list) or (isinstance(value, dict) and "path" in value)


def _tests_like(value: Any) -> bool:
    tests = value if isinstance(value, list) else [value]
    return any(
        one.startswith("file://")
        if isinstance(one, str)
        else isinstance(one, dict) and bool(one.keys() & _OF_A_TEST)
        for one in tests
    )


_OF_A_TEST = frozenset({"vars", "assert", "tests"})
SHAPE = Shape(
    "promptfoo",
    (
        (RootKey("prompts", _given, _given),),
        (RootKey("providers", _given, _given), RootKey("targets", _given, _given)),
        (RootKey("tests", _tests, _tests_like), RootKey("scenarios", _tests, _tests_like)),
    ),
    r"""["']?(?:vars|assert)["']?[ \t]*:""",
)


def meant(file: PassedOver) -> list[Problem]:
    """Why a file is no suite although it looks like one. By its name none is (below a folder promptfoo, too, takes
    only those called promptfooconfig), so that it is a note."""
    if not may_be(SHAPE, file):
        return []
    cure = "call it promptfooconfig.yaml (promptfooconfig.NAME.yaml), or name it outright, to run it"
    if recognises(Path(file.path), file.text):
        message = "not taken: a promptfoo suite whose name is none of one"
        return [Problem(file.path, 0, "", message, cure, "note", passed_over=True)]
    return [replace(one, level="note") for one in in_yaml(SHAPE, file)]


def has_its_keys(text: str) -> bool:
    """Whether any of promptfoo's own keys stands at the beginning of a line."""
    return _TOP.search(text) is not None


LARGEST_FILE = 512 * 1024 * 1024
MOST_GLOBBED = 100_000
GLOB_TIME = 20.0
"""Seconds that looking for the files of one pattern may take."""

MOST_ALTERNATIVES = 1_000
_BRACES = r"(?<!\{)\{([^{}]*,[^{}]*)\}"
_ENV_NAME = re.compile(r"""\{[^{}]{0,400}?\benv(?:\.|\[\s{0,20}["'])([A-Za-z_]\w{0,200})""")

Level = Literal["error", "note"]
LineOf = Callable[..., int]
"""`line_of(*key path)` → line of that key in its file, 0 if unknown."""


def no_line(*_: Any) -> int:
    """Where lines are not known."""
    return 0


class Missing(Exception):
    """A file that cannot be had; the text says why, in one line. `raised_at` as in `ScriptError`; `code` is
    `no-file` where nothing stands at its path."""

    def __init__(
        self, message: str, raised_at: tuple[str, int] | None = None, code: Literal["no-file", ""] = ""
    ) -> None:
        super().__init__(message)
        self.raised_at = raised_at
        self.code = code


class Unread(msgspec.Struct):
    """A part of a file that could not be read, and whether somebody took it for what it is missing in."""

    problem: Problem
    taken: bool = False


class SuiteReading:
    """One suite file being read: its place, its problems, the files read for it."""

    def __init__(self, name: str, config: Config, trust: Trust, compat: Compat) -> None:
        self.name = name
        self.root = config.root
        self.path = Path(os.path.abspath(config.root / name))
        self.base = self.path.parent
        self.config = config
        self.trust = trust
        self.compat: Compat = compat
        self.problems: list[Problem] = []
        self.files: list[str] = []
        self._unread: dict[tuple[Any, ...], list[Unread]] = {}
        self.env: dict[str, str] = {}
        self.env_file: dict[str, str] = {}
        """What the `.env` beside it says, and the files that it names itself."""
        self.env_beside = False
        self.env_unread: list[str] = []
        """What reading those of them needs that may not be read."""
        self.env_code: list[str] = []
        """What setting those of their variables needs by which other code is run, and which may not be set."""
        self.naming_env: list[str] = []
        self.own_names: set[str] = set()
        """Variables that the suite's own `env` has, and nothing else."""
        self._noted_env: set[tuple[str, str]] = set()
        self.secrets: list[str] = []
        self._hosts = Hosts(config.root, config.run.script_memory, 1)
        self.saw(self.path)

    def beside(self, path: Path) -> SuiteReading:
        """The reading of another configuration that is part of the same suite: problems, files and
        processes are shared."""
        other = copy.copy(self)
        other.name, other.path, other.base = self.relative(path), path, path.parent
        other.saw(path)
        return other

    @property
    def reference(self) -> bool:
        """Whether the original tool's behaviour is wanted to the letter."""
        return self.compat == "reference"

    def relative(self, path: Path) -> str:
        """A path as problems and case ids name it: from the root, else absolute."""
        for root in (self.root, Path(os.path.realpath(self.root))):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        return str(path)

    def from_base(self, path: Path) -> str:
        """A file that `find` or `glob` found, as this file would name it: also where a link leads to the project."""
        return Path(os.path.relpath(path, os.path.realpath(self.base))).as_posix()

    def saw(self, path: Path) -> None:
        """Remember a file that this suite depends on."""
        if str(path) not in self.files:
            self.files.append(str(path))

    def problem(
        self,
        path: str,
        line: int,
        key: str,
        message: str,
        cure: str = "",
        level: Level = "error",
        raised_at: tuple[str, int] | None = None,
    ) -> Problem:
        """Note a problem; returns it, so that it can be hung on a case too."""
        found = Problem(path, line, key, message, cure, level, raised_at=self.own_place(raised_at))
        self.problems.append(found)
        return found

    def note_own_env(self, path: str, line: int, key: str, value: Any) -> None:
        """Say of what an assertion in another file expects that the suite's own `env` is not filled in there, as in the
        tool: it is empty."""
        for text in value if isinstance(value, list) else [value]:
            for name in _ENV_NAME.findall(text) if isinstance(text, str) and "env" in text else ():
                if name in self.own_names and path != self.name and (path, name) not in self._noted_env:
                    self._noted_env.add((path, name))
                    message = f"env.{name} is empty here: the suite's own env counts in its configuration, as in promptfoo"
                    cure = f"export {name}, write it into .env, or make a var of it"
                    self.problem(path, line, key, message, cure, level="note")

    def cannot_read(self, path: str, at: tuple[Any, ...], line: int, message: str, cure: str = "") -> None:
        """Note that what stands at a key path of a file could not be read, so that nothing is in its place."""
        unread = Unread(self.problem(path, line, dotted_key(at), message, cure))
        for length in range(len(at) + 1):
            self._unread.setdefault((path, *at[:length]), []).append(unread)

    def unread_below(self, path: str, at: tuple[Any, ...]) -> list[Problem]:
        """What could not be read of a value, whose reader makes an error of it; nobody else will."""
        found = self._unread.get((path, *at), ())
        for one in found:
            one.taken = True
        return [one.problem for one in found]

    def unread_elsewhere(self) -> list[Problem]:
        """What nobody took: it may be missing anywhere."""
        every = (one for found in self._unread.values() for one in found if not one.taken)
        return list(dict.fromkeys(one.problem for one in every))

    def own_place(self, raised_at: tuple[str, int] | None) -> tuple[str, int] | None:
        """Where code failed, if that is in a file that this suite depends on; None for any other."""
        if raised_at is None:
            return None
        real = os.path.realpath(raised_at[0])
        known = next((file for file in self.files if os.path.realpath(file) == real), None)
        return (known, raised_at[1]) if known is not None else None

    @cached_property
    def _masker(self) -> Masker:
        return masker(self.config)

    def keep_secret(self, values: Iterable[str]) -> None:
        """Have these values masked in what cases and providers are called, and in all that is kept of the suite."""
        new = [value for value in values if value not in self.secrets]
        self.secrets += new
        for value in new:
            self._masker.add(value)

    def masked(self, text: str) -> str:
        """A text without the secrets that are known."""
        return self._masker.text(text)

    def shown(self, name: str) -> str:
        """What a provider is called without secrets, those of an address included."""
        return self.masked(in_addresses(name))

    def want(self, what: str) -> bool:
        """Whether something that needs trust may be done; where not, it is noted (once).

        What is noted here is asked for again when a case is run, and fails that case only.
        """
        try:
            self.trust.require(what)
        except NeedsTrust as error:
            text = str(error)
            if not any(p.message == text for p in self.problems):
                self.problem(self.name, 0, "", text, level="note")
            return False
        return True

    def find(self, reference: str, base: Path | None = None) -> Path:
        """The file that a reference (with or without `file://`) names.

        Raises:
            Missing: it is outside the root without trust, or no file.
        """
        plain = reference.removeprefix("file://")
        try:
            path = confine(self.root, plain, self.trust, base or self.base)
            if path.is_dir():
                raise Missing(f"{plain} is a folder")
            if not path.exists():
                raise Missing(f"there is no file {plain}", code="no-file")
            if not path.is_file():
                raise Missing(f"{plain} is no ordinary file")
        except NeedsTrust as error:
            raise Missing(str(error)) from None
        except (OSError, ValueError) as error:
            raise Missing(f"{plain}: {getattr(error, 'strerror', None) or error}") from None
        return path

    def text(self, path: Path) -> str:
        """The text of a file found by `find`, its byte order mark dropped.

        Raises:
            Missing: it cannot be read, is too large or not UTF-8.
        """
        try:
            if path.stat().st_size > LARGEST_FILE:
                raise Missing(f"{path.name} is larger than {LARGEST_FILE // 2**20} MB")
            data = path.read_bytes()
        except OSError as error:
            raise Missing(f"{path.name}: {error.strerror or error}") from None
        self.saw(path)
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Missing(f"{path.name} is not UTF-8 text (byte {error.start})") from None
        if ("env." in text or "env[" in text) and ("{{" in text or "{%" in text):
            self.naming_env.append(path.name)
        return text

    def glob(self, reference: str, base: Path | None = None) -> list[Path]:
        """The files that a pattern matches, sorted by path (the tool leaves the order to the disk).

        Raises:
            Missing: the pattern reaches outside the root without trust.
        """
        plain = reference.removeprefix("file://")
        start = base or self.base
        parts = Path(plain).parts
        if ".." in parts and any(is_pattern(part) for part in parts[: len(parts) - parts[::-1].index("..")]):
            raise Missing(f"{plain}: .. may only stand before the first wildcard")
        fixed = Path(*_before_wildcard(parts))
        try:
            confine(self.root, fixed, self.trust, start)
            patterns = _alternatives(plain)
            until, matches = time.monotonic() + GLOB_TIME, list[str]()
            for pattern in patterns:
                for match in matching(pattern, start, until - time.monotonic()):
                    matches.append(match)
                    if len(matches) > MOST_GLOBBED:
                        raise TooLong
            paths = sorted({confine(self.root, p, self.trust, start) for p in matches})
            return [p for p in paths if p.is_file()]
        except TooLong:
            raise Missing(f"{plain} matches too much; name a folder") from None
        except NeedsTrust as error:
            raise Missing(str(error)) from None
        except (OSError, ValueError, RecursionError) as error:
            raise Missing(f"{plain}: {error}") from None

    def parsed(self, path: Path) -> tuple[Any, LineOf]:
        """A YAML or JSON file as a value, with a way to find lines. Its problems are noted.

        Raises:
            Missing: it cannot be read or is not YAML/JSON at all.
        """
        return self.parsed_text(self.text(path), self.relative(path))

    def parsed_text(self, text: str, name: str) -> tuple[Any, LineOf]:
        """As `parsed`, for the text of the file called `name`."""
        document = yaml_lines.load(text, name, core=True)
        if document.problems and not document.misread and name.lower().endswith(".json"):
            try:  # JSON writes some characters in ways that YAML does not know
                return yaml_lines.load_json(text), no_line
            except yaml_lines.KeyTwice as doubled:
                raise Missing(f"{name}: {doubled}") from None
            except (ValueError, RecursionError):
                pass
        self.problems.extend(document.problems)
        if document.misread or (document.value is None and document.problems):
            raise Missing("")  # js-yaml refuses a key that is given twice, and what is no plain YAML
        return document.value, document.lines.at

    def _code_variables(self) -> Mapping[str, str]:
        from tui_eval.scripting import SuiteVariables

        return SuiteVariables(self.env_file, self.trust, self.env_code) if self.env_code else self.env_file

    def python(self) -> PythonHost:
        """The process that runs the suite's Python, started when first needed."""
        host = self._hosts.python
        host.variables = self._code_variables()
        return host

    def node(self) -> NodeHost:
        """The process that runs the suite's JavaScript files, started when first needed."""
        host = self._hosts.node
        host.variables = self._code_variables()
        return host

    def javascript(self) -> JavaScriptHost:
        """The isolates that run the suite's inline JavaScript, started when first needed."""
        return self._hosts.javascript

    def close(self) -> None:
        """End the processes of the suite's code, if there are any."""
        self._hosts.close()

    def check_keys(
        self,
        value: dict[Any, Any],
        known: Iterable[str],
        path: str,
        line_of: LineOf,
        prefix: tuple[Any, ...] = (),
        elsewhere: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Unknown keys: a slip for a known one is an error, so is one that counts `elsewhere`, any other a note."""
        names = frozenset(known)
        for key in value:
            if key in names:
                continue
            dotted = dotted_key((*prefix, key))
            if key in elsewhere:
                cure = f"put it under {elsewhere[key]}"
                self.problem(path, line_of(*prefix, key), dotted, "is not read here", cure)
                continue
            meant = close_to(key, names) if isinstance(key, str) else None
            if meant and meant not in value:
                self.problem(path, line_of(*prefix, key), dotted, "unknown key", f"did you mean {meant}?")
            else:
                self.problem(
                    path, line_of(*prefix, key), dotted, "unknown key", "nothing reads it", level="note"
                )

    def check_slips(
        self,
        value: dict[Any, Any],
        known: Iterable[str],
        path: str,
        line_of: LineOf,
        prefix: tuple[Any, ...] = (),
    ) -> None:
        """As `check_keys` where other tools' keys stand too: only slips for a known one are said."""
        names = frozenset(known)
        for key in value:
            meant = close_to(key, names - value.keys()) if isinstance(key, str) and key not in names else None
            if meant:
                dotted = dotted_key((*prefix, key))
                self.problem(path, line_of(*prefix, key), dotted, "unknown key", f"did you mean {meant}?")


def dotted_key(path: Iterable[Any]) -> str:
    """`tests[0].assert[1].type` of a key path."""
    result = ""
    for part in path:
        if isinstance(part, int) and not isinstance(part, bool):
            result += f"[{part}]"
            continue
        name = part if isinstance(part, str) else brief(part)
        result += f".{name}" if result else name
    return result


def is_pattern(reference: str) -> bool:
    """Whether a reference holds wildcards."""
    return any(c in reference for c in "*?[") or re.search(_BRACES, reference) is not None


def _alternatives(pattern: str) -> list[str]:
    """A pattern with `{a,b}` as the patterns that it stands for, at most a thousand."""
    waiting, found = [pattern], []
    while waiting and len(found) + len(waiting) <= MOST_ALTERNATIVES:
        given = waiting.pop(0)
        braces = re.search(_BRACES, given)
        if braces is None:
            found.append(given)
        else:
            before, after = given[: braces.start()], given[braces.end() :]
            waiting += [before + part + after for part in braces[1].split(",")]
    return found + waiting


def _before_wildcard(parts: tuple[str, ...]) -> Iterable[str]:
    for part in parts:
        if is_pattern(part):
            return
        yield part


def brief(value: Any) -> str:
    """A value in a few words, for a message."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= 60 else text[:59] + "…"
