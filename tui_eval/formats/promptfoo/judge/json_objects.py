"""Objects within a text, as contains-json finds them: braces counted, then read as YAML."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Any

from tui_eval.assertions.judge_input import CannotJudge
from tui_eval.javascript import values as js

_LONGEST = 100_000
_YAML_EFFORT = 20
_DEEPEST = 200
_MOST_EFFORT = 10_000_000
_BRACE = re.compile("[{}]")
# A string, a comment, or a colon that ends an entry: libyaml takes `{a:}` for no mapping, YAML 1.2 for one.
_PIECE = re.compile(
    r"""(?P<text>"(?:[^"\\\n]|\\.)*+"?|(?<![a-zA-Z])'(?:[^'\n]|'(?=[a-zA-Z]))*+'?)"""
    r"""|(?P<comment>//.*)|(?P<colon>:)(?=[},\]])"""
)


def objects_in(text: str) -> list[Any]:
    """The objects within a text, as `placed_objects` finds them."""
    return [value for _, value in placed_objects(text)]


def placed_objects(text: str) -> Iterator[tuple[int, Any]]:
    """The objects within a text, each with where it begins, by counting braces as promptfoo does, which does not see
    strings.

    Each candidate is read as JSON, else as a YAML flow mapping; what ends too early gets the
    closing braces it lacks.

    Raises:
        CannotJudge: thousands of braces that lead nowhere, which would take minutes.
    """
    place, effort = text.find("{"), 0
    braces = [found.start() for found in _BRACE.finditer(text)]
    depths = list(accumulate(1 if text[at] == "{" else -1 for at in braces))
    while 0 <= place < len(text) - 1:
        limit = min(place + _LONGEST, len(text))
        first, last = bisect_left(braces, place), bisect_left(braces, limit)
        around = depths[first] - 1
        try:
            last = depths.index(around, first + 1, last)
            end, depth = braces[last] + 1, 0
        except ValueError:
            end, depth = limit, depths[last - 1] - around
        deepest = max(depths[first:last]) - around
        effort += (end - place) * (1 + _YAML_EFFORT * (deepest <= _DEEPEST))
        if effort > _MOST_EFFORT:
            raise CannotJudge("too many opening braces to look for JSON behind each")
        readable = deepest <= _DEEPEST and (not depth or end == len(text))
        value = _read(text[place:end] + "}" * depth) if readable else None
        if isinstance(value, dict | list):
            yield place, value
            place = text.find("{", end)
        else:
            place = text.find("{", place + 1)


def _read(text: str) -> Any:
    try:
        return js.parse_json(text)
    except (ValueError, RecursionError):
        pass
    import yaml

    from tui_eval.yaml.yaml_scalars import UnfoldsTooFar, load_bounded

    try:
        return _portable(load_bounded(_as_yaml(text), loader()))
    except UnfoldsTooFar as error:
        raise CannotJudge(f"the YAML in the answer: {error}") from None
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None


def _as_yaml(text: str) -> str:
    """With comments after `//` as YAML's, but for the `//` of an address."""

    def piece(match: re.Match[str]) -> str:
        if match["colon"]:
            before = match.string[: match.start()].rstrip()
            return "null: " if before.endswith(("{", ",")) else ": "
        comment = match["comment"]
        if comment is None:
            return match.group()
        line = match.string.rfind("\n", 0, match.start()) + 1
        word = re.search(r"\S*\Z", match.string[line : match.start()])
        if word and word.group().endswith(":"):
            return comment
        slashes = len(comment) - len(comment.lstrip("/"))
        return "#" * (slashes // 2) + comment[slashes:]

    return _PIECE.sub(piece, text)


def _portable(value: Any) -> Any:
    if isinstance(value, dict):
        value = {js.string(key): item for key, item in value.items()}
    return js.parse_json(json.dumps(value, default=str))


@lru_cache(maxsize=1)
def loader() -> Any:
    """A YAML reader with YAML 1.2's scalars: `yes` and `1:30` are text."""
    import yaml

    Loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    gone = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    Loader.yaml_implicit_resolvers = {
        first: [pair for pair in pairs if pair[0] not in gone]
        for first, pairs in Loader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver(gone[0], re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF"))
    Loader.add_implicit_resolver(
        gone[1], re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), list("-+0123456789")
    )
    Loader.add_implicit_resolver(
        gone[2],
        re.compile(r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$"),
        list("-+0123456789."),
    )
    Loader.add_constructor(gone[1], lambda found, node: _integer(found.construct_scalar(node)))
    return Loader


def _integer(text: str) -> int:
    return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
