"""What of a folder may be done that needs the person's trust, and the error that says what needs it.

Trust is given to what was named, word for word: `Trust.agreed`. Whoever requires something names it so that two
different things never have one name: files from the project's root, code with a fingerprint of all of it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

_SHOWN = 80
TYPESCRIPT_ENDINGS = (".ts", ".cts", ".mts")
JAVASCRIPT_ENDINGS = (".js", ".cjs", ".mjs", *TYPESCRIPT_ENDINGS)
CODE_ENDINGS = (".py", ".rb", *JAVASCRIPT_ENDINGS)
"""Files that hold code which a suite may have run."""
_DIGITS = 32
"""Hexadecimal digits of a fingerprint. Of 10 a person who writes both codes, the one that is agreed to and the one that
is run in its place, finds two with the same in a second; of 16 in hours."""
_FINGERPRINT = re.compile(rf"#[0-9a-f]{{{_DIGITS}}}")
_MARK = re.compile(rf"\[\d+ characters, [0-9a-f]{{{_DIGITS}}}\]\Z")
"""The end of the name of inline code."""


class NeedsTrust(Exception):
    """Something a suite wants is only done where the person trusts its folder."""

    def __init__(self, what: str) -> None:
        super().__init__(f"needs trust: {what} (run with --trust, or trust the folder in the app)")
        self.what = what


class Trust(msgspec.Struct):
    """The answer to "may suites of this folder do that?", and what asked for it so far. `granted`: anything
    (`--trust`); `agreed`: what the person was shown and agreed to, word for word or as `fingerprint`
    (`--trust-only`); `met`: those fingerprints of which something was wanted."""

    granted: bool = False
    wanted: list[str] = []
    agreed: frozenset[str] = frozenset()
    met: set[str] = set()

    def require(self, what: str) -> None:
        """Raise `NeedsTrust` naming `what` unless the person granted trust, or agreed to just this."""
        if self.covers(what):
            return
        if what not in self.wanted:
            self.wanted.append(what)
        raise NeedsTrust(what)

    def covers(self, what: str) -> bool:
        """Whether the person granted trust, or agreed to just this."""
        if self.granted or what in self.agreed:
            return True
        short = fingerprint(what)
        if short not in self.agreed:
            return False
        self.met.add(short)
        return True


_READS = "read the environment variable "


def variable(name: str) -> str:
    """The name of reading a variable of the person's environment, for what a suite says."""
    return f"{_READS}{name}"


def is_variable(what: str) -> bool:
    """Whether what needs trust is the reading of a variable of the environment."""
    return what.startswith(_READS)


def is_file(what: str) -> bool:
    """Whether what needs trust is the reading of a file: outside the project, or one that keeps secrets."""
    return what.startswith("read ") and not is_variable(what)


class ReadsVariables(Trust):
    """Lets variables of the environment be read and nothing else be done, to know what they lead to. The person is
    asked about those that were read (`wanted`) all the same."""

    def covers(self, what: str) -> bool:
        """Whether it is a variable that is read."""
        if not is_variable(what):
            return False
        if what not in self.wanted:
            self.wanted.append(what)
        return True


def fingerprint(what: str) -> str:
    """A short name for one thing that needs trust, so that a printed command agrees to just that."""
    return f"#{_digest(what)}"


def fingerprints(agreed: Iterable[str]) -> str:
    """The value of `--trust-only` that agrees to these, each given word for word or as its fingerprint."""
    names = (one if _FINGERPRINT.fullmatch(one) else fingerprint(one) for one in agreed)
    return ",".join(dict.fromkeys(name.removeprefix("#") for name in names))


def from_fingerprints(given: Iterable[str]) -> list[str]:
    """What `--trust-only` agrees to, for `Trust.agreed`.

    Raises:
        ValueError: one of them is no fingerprint.
    """
    parts = [part.strip().lower() for text in given for part in text.split(",") if part.strip()]
    for part in parts:
        if not _FINGERPRINT.fullmatch(f"#{part}"):
            raise ValueError(
                f"{part[:40]!r} is no fingerprint: {_DIGITS} hexadecimal digits, as `tui-eval check` prints them"
            )
    return [f"#{part}" for part in parts]


def inline(code: str) -> str:
    """The name of code that a suite holds: its first words, its length and a fingerprint of all of it."""
    words = " ".join(code.split())
    shown = words if len(words) <= _SHOWN else f"{words[:_SHOWN]}…"
    return f"{shown} {marked(code)}"


def marked(text: str) -> str:
    """The length and fingerprint of a text, which stand for it at the end of a name."""
    return f"[{len(text)} characters, {_digest(text)}]"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def unbroken(what: str) -> str:
    """What needs trust as it is shown: the length and fingerprint of code stay on one line."""
    return _MARK.sub(lambda mark: mark[0].replace(" ", "\N{NO-BREAK SPACE}"), what)


def inline_in_node(code: str, base: Path, root: Path) -> str:
    """The name of inline JavaScript that asks for what only node has, in the folder that it is run in."""
    return f"run inline JavaScript with node{in_folder(base, root)}: {inline(code)}"


def from_root(path: Path, root: Path) -> str:
    """A file's name from the project's root, whole where it lies elsewhere."""
    real, base = os.path.realpath(path), os.path.realpath(root)
    return os.path.relpath(real, base) if real.startswith(base.rstrip(os.sep) + os.sep) else real


def script(path: Path, root: Path) -> str:
    """The name of running a file, whatever a suite runs it for: a file that may be run is one thing."""
    with_node = path.suffix.lower() in JAVASCRIPT_ENDINGS
    return f"run {from_root(path, root)}{' with node' if with_node else ''}"


def command(given: str, purpose: str, base: Path | str | None, root: Path) -> str:
    """The name of a command, with what it is for and the folder that it is run in."""
    return f"run {given} ({purpose}{in_folder(base, root)})"


def agent_code(given: str, agent: str, base: str | None, root: Path) -> str:
    """The name of an agent's code or command, with the folder that it is given from."""
    return command(given, f"the agent {agent}", base, root)


_RUNS_CODE = (
    r"LD_(?:PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_(?:INSERT_LIBRARIES|(?:FALLBACK_)?(?:LIBRARY|FRAMEWORK)_PATH)"
    r"|NODE_(?:OPTIONS|PATH)|PYTHON(?:PATH|HOME|STARTUP|USERBASE|BREAKPOINT|WARNINGS|PLATLIBDIR|PYCACHEPREFIX)"
    r"|RUBY(?:OPT|LIB)|GEM_(?:HOME|PATH)|BUNDLE_GEMFILE|PERL(?:5(?:OPT|LIB|DB)|LIB)|GOFLAGS|CLASSPATH"
    r"|(?:JAVA_TOOL|JDK_JAVA|_JAVA)_OPTIONS|DOTNET_STARTUP_HOOKS|PATH|BASH_(?:ENV|FUNC_.*)|SHELLOPTS|PS4|HOME|XDG_CONFIG_HOME"
    r"|GIT_(?:SSH(?:_COMMAND)?|ASKPASS|EXTERNAL_DIFF|EXEC_PATH|PROXY_COMMAND|CONFIG_\w+|PAGER|(?:SEQUENCE_)?EDITOR)"
    r"|(?i:npm_config)_(?i:node_options|script_shell|userconfig|globalconfig|prefix)"
    r"|GCONV_PATH|OPENSSL_(?:CONF|ENGINES|MODULES)|ZDOTDIR|BUN_OPTIONS|COR(?:ECLR)?_PROFILER(?:_PATH\w*)?"
    r"|LUA_(?:INIT|C?PATH)\w*|R_(?:PROFILE|ENVIRON)(?:_USER)?|PHPRC|PHP_INI_SCAN_DIR|ERL_(?:LIBS|[AZ]?FLAGS)"
    r"|JULIA_(?:LOAD_PATH|DEPOT_PATH|PROJECT)"
)
"""Variables by which a program runs other code than the one that it is given. Below `HOME` Python, git and npm look
for some."""


def runs_code(name: str) -> bool:
    """Whether a program to which this variable is given runs what it names (`NODE_OPTIONS`, `PYTHONPATH`): who agreed
    to the program has said nothing of that."""
    return re.fullmatch(_RUNS_CODE, name) is not None


def code_by_variable(name: str, place: str, value: str) -> str:
    """The name of running what such a variable names, that is set in `place`."""
    return f"run code by {name} of {place}: {inline(value)}"


def in_folder(base: Path | str | None, root: Path) -> str:
    """Where something is meant, to be added to its name: nothing for the root itself."""
    if not base or os.path.realpath(base) == os.path.realpath(root):
        return ""
    return f", in {from_root(Path(base), root)}"


def in_order(wanted: Iterable[str]) -> list[str]:
    """What is wanted, each once: code first, then commands, files, variables, and hosts."""
    return sorted(dict.fromkeys(wanted), key=_rank)


def _rank(what: str) -> int:
    if what.startswith("run "):
        code = what.startswith("run inline") or any(
            f"{end}{after}" in f"{what} " for end in CODE_ENDINGS for after in " :"
        )
        return 0 if code else 1
    if is_variable(what):
        return 3
    return 2 if is_file(what) else 4
