"""YAML with line numbers, by the C parser, without anything in a file being able to hurt.

`load` gives the plain value of a document, a way to ask for the line of any key path, and the
problems found. Two dialects: PyYAML's safe loader (YAML 1.1, what nao and the StartToAgent guide
use) and, with `core=True`, the scalars as js-yaml 5 reads them (promptfoo). In both a date keeps
its text, and nothing but plain JSON-like values ever comes out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NamedTuple

import yaml
from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from tui_eval.model import Problem
from tui_eval.yaml.yaml_scalars import DEEPEST, core_scalar, safe_scalar

# -- Characters that JSON writes as two escapes (`\ud83d\ude00`), which js-yaml and PyYAML read and libyaml refuses.


MOST_MENDED = 50
"""Texts of one document that are mended; each costs reading the document again."""

_PAIR = r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
_QUOTED = r'(?s)"(?:[^"\\]|\\.)*+"'


def joined_pairs(text: str, error: yaml.MarkedYAMLError) -> str | None:
    """The document with such pairs as one escape each, within the quoted text that was refused for them, in JSON
    within all; None where something else is wrong."""
    begin = error.context_mark
    if begin is None or "Unicode character escape" not in (error.problem or ""):
        return None
    if _is_json(text):
        joined = re.sub(_QUOTED, lambda quoted: re.sub(_PAIR, _one, quoted[0]), text)
        return None if joined == text else joined
    lines = text.split("\n", begin.line)
    at = sum(len(line) + 1 for line in lines[: begin.line]) + begin.column
    quoted = re.compile(_QUOTED).search(text, at)
    if quoted is None:
        return None
    joined = re.sub(_PAIR, _one, quoted[0])
    return None if joined == quoted[0] else text[: quoted.start()] + joined + text[quoted.end() :]


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("[", "{"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _one(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16), int(pair[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08x}"


MOST_VALUES = 5_000_000
"""Values a document may have once its aliases are followed (`&a [*b, *b]` doubles with each line)."""

MOST_TEXT, MOST_TEXT_OF_ONE = 500_000_000, 100_000_000
"""Characters of texts that it may have beyond its own, once they are (one long text that ten thousand aliases name);
and one entry of its lists, which is made at once: thousands of tests may well name one document."""

_TAG = "tag:yaml.org,2002:"
_TEXT, _MAPPING, _SEQUENCE = f"{_TAG}str", f"{_TAG}map", f"{_TAG}seq"
PLAIN = "plain"
"""The tag of a scalar that stands there without quotes: what it is depends on the dialect."""


_MANY = 100
"""Keys of a mapping from which on they are looked up, not gone through."""


class YamlLines:
    """The line of each key path of a document."""

    def __init__(self, root: Node | None) -> None:
        self._root = root
        self._keys: dict[int, dict[str, tuple[int, Node]]] = {}

    def at(self, *path: Hashable) -> int:
        """The line (from 1) of the key or list item at `path`, else of its nearest parent that
        the document has; 0 for an empty document. Keys are compared as text."""
        node, line = self._root, 0
        if node is None:
            return 0
        line = node.start_mark.line + 1
        for step in path:
            found = self._child(node, step)
            if found is None:
                return line
            line, node = found
        return line

    def source(self, *path: Hashable) -> str | None:
        """The text of the scalar at `path` as the file writes it (`29.90`, not 29.9); None for
        anything else."""
        node = self._root
        for step in path:
            found = self._child(node, step) if node is not None else None
            if found is None:
                return None
            node = found[1]
        return node.value if isinstance(node, ScalarNode) else None

    def _child(self, node: Node, step: Hashable) -> tuple[int, Node] | None:
        if not isinstance(node, MappingNode) or len(node.value) < _MANY:
            return _child(node, step)
        keys = self._keys.get(id(node))
        if keys is None:  # who asks for one of many keys asks for others, too
            own = ((key, value) for key, value in node.value if isinstance(key, ScalarNode))
            keys = self._keys[id(node)] = {key.value: (key.start_mark.line + 1, value) for key, value in own}
        found = keys.get(str(step))
        return _child(node, step) if found is None and "<<" in keys else found

    def holders(self) -> frozenset[str]:
        """The keys at the top whose values hold an anchor that another key's value refers to."""
        first: dict[int, str] = {}
        found: set[str] = set()
        for key, value in self._root.value if isinstance(self._root, MappingNode) else ():
            name, waiting, seen = key.value, [value], set[int]()
            while waiting and isinstance(name, str):
                node = waiting.pop()
                if id(node) in seen:
                    continue
                seen.add(id(node))
                owner = first.setdefault(id(node), name)
                if owner != name:
                    found.add(owner)
                elif isinstance(node, MappingNode):
                    waiting += [one for pair in node.value for one in pair]
                elif isinstance(node, SequenceNode):
                    waiting += node.value
        return frozenset(found)

    def file(self, *path: Hashable) -> str | None:
        """None: everything stands in the file itself (YAML has no includes)."""
        return None


class YamlDocument(NamedTuple):
    """A document as read: `value` is None where it is empty or could not be read at all, which
    `problems` then says. With problems beside a value, the value is what the rest of it gives."""

    value: Any
    lines: YamlLines
    problems: list[Problem]
    misread: tuple[Misread, ...] = ()
    """What is not in the value as somebody wrote it, which `problems` has too."""


class Misread(NamedTuple):
    """A part that is not in the value as it is written, and where: a key given more than once, of which the last one
    counts (`path` is the mapping's), else what is no plain YAML, and left out or taken for text."""

    path: tuple[Hashable, ...]
    problem: Problem
    doubled: bool


def load(text: str, path: str, *, core: bool = False) -> YamlDocument:
    """Read one YAML document; never raises for content.

    Args:
        text: the file's text; a byte order mark is skipped.
        path: the file as problems name it.
        core: scalars as js-yaml 5 reads them: `yes`, `no`, `on`, `off` are texts, `010` is 10,
            `0x1F` 31, `0o17` 15, `1:30` a text. Otherwise YAML 1.1 as PyYAML's safe loader.

    Errors reported: syntax, a second document, a repeated key, an unknown tag (`YamlDocument.misread`),
    nesting deeper than 200, aliases that contain themselves or unfold to millions of values.
    """
    return _parse(text.removeprefix("\ufeff"), path, core, several=False)[0]


def load_all(text: str, path: str, *, core: bool = False) -> list[YamlDocument]:
    """As `load`, for a file that may hold several documents; at least one is returned."""
    return _parse(text.removeprefix("\ufeff"), path, core, several=True)


def composed(text: str) -> Node | None:
    """The nodes of a text of one document, with the tags that `PLAIN` tells of.

    Raises:
        yaml.YAMLError: it is none.
    """
    text = text.removeprefix("\ufeff")
    try:
        return _Composer(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        if "Unicode character escape" not in (error.problem or ""):
            raise
    return _Composer(re.sub(_PAIR, _one, text)).get_single_node()


def _parse(text: str, path: str, core: bool, several: bool, mended: int = 0) -> list[YamlDocument]:
    documents: list[YamlDocument] = []
    try:
        composer = _Composer(text)
        while composer.check_node():
            if documents and not several:
                second = composer.get_node()
                line = second.start_mark.line + 1 if second is not None else 0
                message = "a second YAML document in the file"
                cure = "keep one document in a file (remove the --- line)"
                documents[0].problems.append(Problem(path, line, "", message, cure))
                break
            composer.depth = 0
            node = composer.get_node()
            if node is not None:
                documents.append(_construct(node, path, core, len(text)))
    except yaml.MarkedYAMLError as error:
        joined = joined_pairs(text, error) if mended < MOST_MENDED else None
        if joined is not None:
            return _parse(joined, path, core, several, mended + 1)
        documents.append(YamlDocument(None, YamlLines(None), [_syntax_problem(error, path, text)]))
    except (yaml.YAMLError, UnicodeError) as error:
        documents.append(
            YamlDocument(
                None,
                YamlLines(None),
                [Problem(path, _bad_line(text), "", f"{_invalid(path)}: {_first_line(error)}")],
            )
        )
    if not several and len(documents) > 1:  # the second document broke: the file as a whole did
        return documents[1:]
    return documents or [YamlDocument(None, YamlLines(None), [])]


def _construct(root: Node, path: str, core: bool, own_text: int) -> YamlDocument:
    builder = _Builder(path, core_scalar if core else safe_scalar, core, own_text)
    try:
        value = builder.build(root)
    except _Refused as error:
        line = error.node.start_mark.line + 1
        return YamlDocument(None, YamlLines(None), [*builder.problems, Problem(path, line, "", str(error))])
    places = _places(root, {id(node) for node, _, _ in builder.misread})
    misread = tuple(
        Misread(path, problem, doubled)
        for node, problem, doubled in builder.misread
        for path in places.get(id(node)) or [()]
    )
    return YamlDocument(value, YamlLines(root), builder.problems, misread)


MOST_PLACES = 10_000
"""Places of one node, by aliases, that are told apart; of more the document as a whole is told."""


def _places(root: Node, wanted: set[int]) -> dict[int, list[tuple[Hashable, ...]]]:
    """Where nodes stand, by their ids; looked for only where something is wrong with them. What an anchor holds stands
    also wherever an alias names it."""
    around = _around(root, wanted) if wanted else set[int]()
    found: dict[int, list[tuple[Hashable, ...]]] = {one: [] for one in wanted}
    often: Counter[int] = Counter()
    waiting: list[tuple[Node, tuple[Any, ...]]] = [(root, ())] if wanted else []
    while waiting:
        node, place = waiting.pop()  # the place from its end: ((…, key), key)
        often[id(node)] += 1
        if often[id(node)] > MOST_PLACES:
            for paths in found.values():
                paths.append(())
            break
        if id(node) in wanted:
            found[id(node)].append(_path(place))
        if id(node) in around:
            steps = [(child, (place, step)) for step, child in _steps(node)]
            waiting += [one for one in reversed(steps) if id(one[0]) in around or id(one[0]) in wanted]
    return found


def _around(root: Node, wanted: set[int]) -> set[int]:
    """The lists and mappings in which these nodes stand, however deep."""
    above: dict[int, list[int]] = {id(root): []}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for _, child in _steps(node):
            known = id(child) in above
            if not isinstance(child, ScalarNode) or id(child) in wanted:
                above.setdefault(id(child), []).append(id(node))
                if not known:
                    waiting.append(child)
    around: set[int] = set()
    rising = [one for one in wanted if one in above]
    while rising:
        for one in above[rising.pop()]:
            if one not in around:
                around.add(one)
                rising.append(one)
    return around


def _steps(node: Node) -> Iterable[tuple[Hashable, Node]]:
    if isinstance(node, MappingNode):
        return ((key.value, item) for key, item in node.value if isinstance(key, ScalarNode))
    return enumerate(node.value) if isinstance(node, SequenceNode) else ()


def _path(place: tuple[Any, ...]) -> tuple[Hashable, ...]:
    steps: list[Hashable] = []
    while place:
        place, step = place
        steps.append(step)
    return tuple(reversed(steps))


class _Refused(Exception):
    def __init__(self, message: str, node: Node) -> None:
        super().__init__(message)
        self.node = node


class _TooDeep(yaml.MarkedYAMLError):
    pass


class _Composer(CParser, Resolver):  # pyright: ignore[reportGeneralTypeIssues]
    """The C composer; scalar types are left to the builder, which is faster and knows the dialect."""

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Resolver.__init__(self)
        self.depth = 0

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is ScalarNode:
            return PLAIN if implicit[0] else _TEXT
        return _MAPPING if kind is MappingNode else _SEQUENCE

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            mark = current_node.start_mark if current_node is not None else None
            raise _TooDeep(problem=f"nested deeper than {DEEPEST} levels", problem_mark=mark)

    def ascend_resolver(self) -> None:
        self.depth -= 1


class _Builder:
    def __init__(self, path: str, scalar: Callable[[str], Any], core: bool, own_text: int) -> None:
        self.problems: list[Problem] = []
        self.misread: list[tuple[Node, Problem, bool]] = []
        self._path = path
        self._core = core
        self._scalar = scalar
        self._scalars: dict[str, Any] = {}
        self._done: dict[int, tuple[Any, int, int]] = {}
        self._open: set[int] = set()
        self._count = self._text = 0
        self._own_text = own_text

    def build(self, node: Node) -> Any:
        if isinstance(node, ScalarNode):
            return self._leaf(node)
        known = self._done.get(id(node))
        if known is not None:
            self._count += known[1]
            self._text += known[2]
            self._check_size(node)
            return known[0]
        if id(node) in self._open:
            raise _Refused("an alias that contains itself", node)
        self._open.add(id(node))
        before, text_before = self._count, self._text
        self._count += 1
        value = self._mapping(node) if isinstance(node, MappingNode) else self._sequence(node)
        self._open.discard(id(node))
        self._done[id(node)] = (value, self._count - before, self._text - text_before)
        self._check_size(node, self._text - text_before if len(self._open) > 1 else 0)
        return value

    def _check_size(self, node: Node, text_of_one: int = 0) -> None:
        if self._count > MOST_VALUES:
            raise _Refused(f"aliases that unfold to more than {MOST_VALUES:,} values", node)
        for text, more in ((self._text, MOST_TEXT), (text_of_one, MOST_TEXT_OF_ONE)):
            if text > self._own_text + more:
                raise _Refused(f"aliases that unfold to more than {more:,} characters", node)

    def _leaf(self, node: ScalarNode) -> Any:
        tag, text = node.tag, node.value
        self._count += 1
        self._text += len(text)
        if tag == PLAIN:
            try:
                return self._scalars[text]
            except KeyError:
                value = self._scalars[text] = self._scalar(text)
                return value
        if tag == _TEXT or tag == "!":
            return text
        return self._tagged(node)

    def _tagged(self, node: ScalarNode) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if node.tag.startswith(_TAG) and kind in ("int", "float", "bool", "null"):
            value = self._scalar(node.value)
            if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
                return float(value)
            wanted = {"int": int, "float": float, "bool": bool, "null": type(None)}[kind]
            if type(value) is wanted:
                return value
            self._complain(node, f"{node.value!r} is no {kind}")
            return node.value
        if kind not in ("timestamp", "binary", "merge", "value"):
            self._complain(node, f"unknown tag {node.tag!r}", "remove it; only plain YAML is read")
        return node.value

    def _sequence(self, node: Node) -> Any:
        self._check_tag(node, ("seq", "omap", "pairs"))
        return [self.build(item) for item in node.value]

    def _mapping(self, node: Node) -> dict[Any, Any]:
        self._check_tag(node, ("map", "set"))
        result: dict[Any, Any] = {}
        merged: set[Any] = set()
        again: dict[Any, list[int]] = {}
        for key_node, value_node in node.value:
            if key_node.value == "<<" and isinstance(key_node, ScalarNode) and key_node.tag == PLAIN:
                self._merge(result, merged, value_node)
                continue
            key = self._leaf(key_node) if type(key_node) is ScalarNode else self.build(key_node)
            if isinstance(key, (dict, list)):
                self._complain(key_node, "a list or mapping as a key", "quote it")
                continue
            if self._core and (type(key) is bool or key is None):
                key = _word(key)
            if key in merged:  # its own counts, in the place of the merged one
                merged.discard(key)
            elif key in result:
                again[key] = []
            result[key] = self._leaf(value_node) if type(value_node) is ScalarNode else self.build(value_node)
        if again:
            self._doubled(node, again)
        return result

    def _doubled(self, node: Node, again: dict[Any, list[int]]) -> None:
        problems, misread = len(self.problems), len(self.misread)
        for one, _ in node.value:
            if not isinstance(one, ScalarNode):
                continue
            key = self._leaf(one)
            if self._core and (type(key) is bool or key is None):
                key = _word(key)
            if (lines := again.get(key)) is not None:
                lines.append(one.start_mark.line + 1)
        del self.problems[problems:], self.misread[misread:]  # its keys have been read before
        for key, (*before, last) in again.items():
            often = "twice" if len(before) == 1 else f"{len(before) + 1} times"
            lines = f"lines {', '.join(map(str, before))} and {last}" if before[0] != last else f"line {last}"
            message = f"given {often}, on {lines}: which one is meant cannot be known"
            problem = Problem(self._path, last, str(key), message, "remove one")
            self.problems.append(problem)
            self.misread.append((node, problem, True))

    def _merge(self, into: dict[Any, Any], merged: set[Any], node: Node) -> None:
        parts = node.value if isinstance(node, SequenceNode) else [node]
        for part in parts:
            value = self.build(part)
            if not isinstance(value, dict):
                self._complain(part, "only a mapping can be merged with <<", key="<<")
                continue
            for key, item in value.items():
                if key not in into:
                    into[key] = item
                    merged.add(key)

    def _check_tag(self, node: Node, allowed: tuple[str, ...]) -> None:
        if node.tag.removeprefix(_TAG) not in allowed and node.tag != "!":
            self._complain(node, f"unknown tag {node.tag!r}", "remove it; only plain YAML is read")

    def _complain(self, node: Node, message: str, cure: str = "", key: str = "") -> None:
        problem = Problem(self._path, node.start_mark.line + 1, key, message, cure)
        self.problems.append(problem)
        self.misread.append((node, problem, False))


def _word(key: bool | None) -> str:
    """`true` and `null` as keys, which in JavaScript are their texts: in Python `true` is the number 1."""
    return "null" if key is None else "true" if key else "false"


def _child(node: Node, step: Hashable) -> tuple[int, Node] | None:
    if isinstance(node, SequenceNode):
        if isinstance(step, int) and 0 <= step < len(node.value):
            item = node.value[step]
            return item.start_mark.line + 1, item
        return None
    if isinstance(node, MappingNode):
        wanted = str(step)
        for key, value in reversed(node.value):
            if key.value == wanted and isinstance(key, ScalarNode):
                return key.start_mark.line + 1, value
        for key, value in node.value:
            if key.value == "<<" and isinstance(key, ScalarNode):
                for part in value.value if isinstance(value, SequenceNode) else [value]:
                    found = _child(part, step) if isinstance(part, MappingNode) and part is not node else None
                    if found is not None:
                        return found
    return None


# -- JSON, of which nobody needs the lines, by the same rule.


class KeyTwice(ValueError):
    """A key that stands twice in one object of a JSON text."""

    def __init__(self, key: str) -> None:
        super().__init__(f"an object has the key {key!r:.80} twice")


def load_json(text: str | bytes) -> Any:
    """A JSON value.

    Raises:
        ValueError: it is not JSON, or an object has a key twice (`KeyTwice`): which one is meant cannot be known.
        RecursionError: it is nested too deeply.
    """
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        often = Counter(name for name, _ in pairs)
        raise KeyTwice(next(name for name, times in often.items() if times > 1))
    return found


def _syntax_problem(error: yaml.MarkedYAMLError, path: str, text: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    invalid = _invalid(path)
    if mark is not None and _at(text, mark.line, mark.column) == "\t":
        return Problem(
            path, mark.line + 1, "", f"{invalid}: a tab where spaces are wanted", "indent with spaces"
        )
    what = " ".join(part for part in (error.problem, error.context) if part)
    begin = error.context_mark
    kind = next((words for words, context in _OPEN.items() if context in (error.context or "")), "")
    if mark is not None and begin is not None and kind:
        if not _rest(text, mark.line, mark.column).strip():
            # The end of the file says nothing of what is open there: it is mended where it begins.
            message = f"{invalid}: {kind} begins here (column {begin.column + 1}) and never ends"
            return Problem(path, begin.line + 1, "", message, "close it")
        if begin.line != mark.line:
            what += f" that begins on line {begin.line + 1}"
    line = mark.line + 1 if mark is not None else 0
    column = f" (column {mark.column + 1})" if mark is not None else ""
    if isinstance(error, _TooDeep):
        return Problem(path, line, "", what)
    if "nesting depth" in what:  # libyaml's own limit (0.2.6, a thousand levels), met before ours is counted
        return Problem(path, line, "", f"nested deeper than {DEEPEST} levels")
    return Problem(path, line, "", f"{invalid}: {_first_line(what)}{column}", "mend the syntax")


_OPEN = {
    "a quoted text": "quoted scalar",
    "a list in [ ]": "flow sequence",
    "a mapping in { }": "flow mapping",
}


def _at(text: str, line: int, column: int) -> str:
    return _rest(text, line, column)[:1].strip("\n")


def _rest(text: str, line: int, column: int) -> str:
    """The text from a place on."""
    lines = text.split("\n", line)
    return lines[line][column:] if line < len(lines) else ""


def _bad_line(text: str) -> int:
    bad = re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]", text)
    return text.count("\n", 0, bad.start()) + 1 if bad else 0


def _invalid(path: str) -> str:
    """What a text is not. JSON is read as YAML, too; its people know it by its own name."""
    return f"not valid {'JSON' if path.lower().endswith('.json') else 'YAML'}"


def _first_line(error: object) -> str:
    return " ".join(str(error).split())
