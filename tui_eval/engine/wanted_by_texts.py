"""What the texts of a suite, a case or an agent want: code and files that they name, variables that their templates
read, inline JavaScript that needs Node."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from tui_eval.formats import format_of
from tui_eval.formats.format import RenderError
from tui_eval.guard.paths import confine
from tui_eval.guard.trust import NeedsTrust, Trust, inline_in_node, is_file, script
from tui_eval.model import Case

_MOST = 100
"""Things one entry may want in turn; a file that wants more of them is refused the rest."""
_DEEPEST = 50
MOST_SEEN = 10_000
"""Objects and templates that are known as looked at: what cases share are the same objects."""
_LARGEST = 1_000_000
"""Bytes of a text file whose templates and code are looked at."""
CODE = r"(?s)(?P<path>.*?\.(?P<kind>py|rb|[cm]?[jt]s))(?::(?P<function>[\w.$]+))?"
"""A file of code as suites name it, its function behind a colon."""
_BUILT = r"\benv\s{0,20}\[\s{0,20}[^\s\"']|\{%-?\s{0,20}(?:include|import|from|extends)\s{1,20}[^\s\"']"
"""A template that makes the name of a variable or a file."""
_HOLDS_CODE = r"(?i)transform|parser|validate|postprocess|callback|scoring|streamresponse"
"""Keys whose texts are inline JavaScript."""


class WantedByTexts:
    """Adds to `found` what texts want, by the names that `guard.trust` gives. `own_env` are the variables that a suite
    itself sets: its templates read no others of these names."""

    def __init__(self, root: Path, found: dict[str, None]) -> None:
        self.root = root
        self.found = found
        self.own_env: frozenset[str] = frozenset()
        self._looked_at: set[tuple[str, Path]] = set()
        self._templates: set[tuple[str, Path, frozenset[str]]] = set()

    def _add(self, what: str) -> None:
        self.found[what] = None

    def in_turn(self, ask: Callable[[Trust], Any]) -> None:
        """What asks for one thing after the other: as if each were agreed to. Files outside, or with secrets, are never
        read, and LiteLLM is never begun with: what would be asked for after them is asked anew."""
        trust = Trust()
        for _ in range(_MOST):
            try:
                ask(trust)
                return
            except NeedsTrust as needs:
                self._add(needs.what)
                if is_file(needs.what) or needs.what.startswith("let LiteLLM"):
                    return
                trust.agreed |= {needs.what}
            except Exception:  # what is wrong with it is said by `check`, or when it is run
                return

    def value(self, value: Any, base: Path, code: bool = False, deep: int = 0) -> None:
        """What any of the texts in a value wants: code and files that it names, variables, inline JavaScript."""
        if not value:
            return
        if isinstance(value, str):
            self.text(value, base, code)
        elif deep > _DEEPEST:
            return
        elif isinstance(value, dict | Mapping):
            for key, item in value.items():
                holds_code = code or _holds_code(str(key))
                if not isinstance(item, str):  # what makes a prompt is named from the root (`suite_prompts`)
                    own = self.root if key == "promptFunction" else base
                    self.value(item, own, holds_code, deep + 1)
                    continue
                if key in ("path", "file") and re.fullmatch(CODE, item):
                    self._file(item.removeprefix("file://"), base)  # such a key needs no `file://`
                if holds_code or names_something(item):
                    self.text(item, base, holds_code)
        elif isinstance(value, list | tuple):
            for item in value:
                self.value(item, base, code, deep + 1)
        elif isinstance(value, msgspec.Struct):
            self.value(msgspec.structs.asdict(value), base, code, deep + 1)

    def text(self, text: str, base: Path, code: bool) -> None:
        """What one text wants; `code`: it may be inline JavaScript."""
        if "{{" in text or "{%" in text:
            self._template(text, base)
        if text.startswith("file://"):
            self._file(text.removeprefix("file://").strip(), base)
        elif code:
            from tui_eval.javascript.inline import OF_NODE

            if OF_NODE.search(text):
                self._add(inline_in_node(text, base, self.root))

    def _template(self, text: str, base: Path) -> None:
        from tui_eval.nunjucks.suite_environment import SuiteEnvironment, variables_named
        from tui_eval.nunjucks.templates import INCLUDED

        if (text, base, self.own_env) in self._templates:
            return
        if len(self._templates) < MOST_SEEN:
            self._templates.add((text, base, self.own_env))
        for name in variables_named(text):
            if name not in self.own_env:
                self.in_turn(lambda trust, name=name: SuiteEnvironment({}, trust).get(name))
        for match in INCLUDED.finditer(text):
            self._read(match[1], base)

    def _file(self, named: str, base: Path) -> None:
        match = re.fullmatch(CODE, named)
        if match is None:
            self._read(named, base)
            return
        self.outside(match["path"], base)
        path = base / match["path"]
        if match["kind"] in ("py", "rb"):
            self._add(script(path, self.root))
        elif (source := self._source(match["path"], base)) is not None:
            from tui_eval.javascript.inline import needs_node

            if needs_node(path, source, match["function"]):
                self._add(script(path, self.root))
        else:
            self._add(script(path, self.root))

    def _read(self, named: str, base: Path) -> None:
        """A file that is read: whether it lies outside, and what its templates want."""
        self.outside(named, base)
        key = (named, base)
        if key in self._looked_at:
            return
        self._looked_at.add(key)
        source = self._source(named, base)
        if source is not None and ("{{" in source or "{%" in source):
            self._template(source, base)

    def _source(self, named: str, base: Path) -> str | None:
        """The text of a file of the project; None where there is none that is small enough."""
        try:
            path = confine(self.root, named, Trust(), base)
            if path.is_file() and path.stat().st_size <= _LARGEST:
                return path.read_text("utf-8", "replace")
        except (NeedsTrust, OSError, ValueError):
            pass
        return None

    def outside(self, named: str, base: Path) -> None:
        """A file that is named: whether it may be read, where it lies outside the root."""
        if named and "{{" not in named:
            self.in_turn(lambda trust: confine(self.root, named, trust, base))

    def built(self, value: Any, case: Case, base: Path) -> None:
        """What a case's variables make of the texts that are templates of a name."""
        if isinstance(value, (list, tuple)):
            for item in value[:_MOST]:
                self.built(item, case, base)
        elif isinstance(value, str) and "{" in value:
            named = value.startswith("file://")
            if named and "{{" in value:
                made = self.rendered(value, case, base)
                if made != value and "{{" not in made:
                    self._file(made.removeprefix("file://").strip(), base)
            elif not named and re.search(_BUILT, value):
                self.in_turn(lambda trust: self._render(value, case, base, trust))

    def rendered(self, value: str, case: Case, base: Path) -> str:
        """The text as the case's variables make it, as it is where that cannot be known yet."""
        from tui_eval.nunjucks.templates import TemplateError

        try:
            return self._render(value, case, base, Trust())
        except (TemplateError, RenderError, NeedsTrust, OSError, ValueError):
            return value

    def _render(self, value: str, case: Case, base: Path, trust: Trust) -> str:
        from tui_eval.nunjucks.suite_environment import SuiteEnvironment
        from tui_eval.nunjucks.templates import including, render_value

        given = format_of(case.format).known_vars(case, base, self.root, trust)
        with including(base, self.root, trust):
            return str(render_value(value, given, env=SuiteEnvironment({}, trust)))


@lru_cache(10_000)
def _holds_code(key: str) -> bool:
    return re.search(_HOLDS_CODE, key) is not None


def names_something(text: str) -> bool:
    """Whether a text may be a template, or name a file."""
    return "{" in text or text.startswith("file://")
