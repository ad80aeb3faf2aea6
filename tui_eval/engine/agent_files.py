"""The person's own files that an agent is made of: those that its entry names, what lies in the folders that it names,
and what its code imports. Found by names and text alone, nothing is run: what `E` opens, `W` watches, and what an
answer is remembered by."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, TypeGuard

from tui_eval.agents.neuro_san.neuro_san_worker import NETWORKS, network_files, several
from tui_eval.config.project import AgentSpec
from tui_eval.guard.once import parsed
from tui_eval.guard.trust import JAVASCRIPT_ENDINGS

MOST = 200
"""Files beyond which no more imports are looked for while somebody watches."""
IN_FOLDERS = 20_000
"""Entries of a folder that are looked at."""
_LARGEST = 1_000_000
_NAMES = (
    "function",
    "script",
    "system",
    "tools",
    "transform",
    "config",
    "body",
    "manifest",
    "module",
    "code",
)
"""Keys of an entry that may name files."""
_SHELL = (".sh", ".bash", ".zsh")
_SHELL_WORD = re.compile(r"[\w./-]{1,200}")
_SHELL_WORDS, _SHELL_PLACES = 500, 20  # that are looked at
_BETWEEN = r"[\s'\"`=;|&()<>@,]+"
"""What a shell or a program takes for the end of a name."""
_WRITTEN = re.compile(
    r"""(?:(?<![^\s;|&(])[\d&]?>{1,2}\|?\s*|(?<!\S)--?(?:\w+-)*(?:log|out|output)(?:-?(?:file|path|dir|to))?=)"""
    r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s'"`;|&()<>]+)"""
)
"""What a command only writes: `>> run.log`, `--log=run.log`."""
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_NOT_THEIRS = frozenset({*sys.builtin_module_names, *sys.stdlib_module_names, "__main__", "tui_eval"})
_PREFIXES = ("file://", "python:", "javascript:", "exec:", "script:", "golang:", "ruby:")


# -- What an entry names.


def named_files(spec: AgentSpec, root: Path) -> list[Path]:
    """The files that an entry names, those that it lists under `files:` first; only ones that exist."""
    base = Path(spec.base) if spec.base else root
    listed = [base / name for name in spec.files]
    for value in (spec.options.get(name) for name in _NAMES):
        listed += _named(value, base)
    folders = program_folders(spec, root)
    named = _existing([*listed, *_in_command(spec.options.get("command"), folders)])
    return _existing([*named, *_run_by_shell(named, folders)])


def program_files(command: str | Path, folder: Path) -> list[Path]:
    """The files that a command, or a program by its file, is made of where it runs in that folder."""
    named = _existing([command] if isinstance(command, Path) else _in_command(command, [folder]))
    return _existing([*named, *_run_by_shell(named, [folder])])


def _in_command(command: Any, folders: list[Path]) -> list[Path]:
    """What may be a file, or the module of `-m`, in a command that finds its files in these folders."""
    command = without_written(command)
    words, pieces = list(_words(command)), list(_pieces(command))
    listed: list[Path] = []
    for place in folders:
        for word in words:
            listed += [*_named(word, place), place / word]
        listed += [place / piece for piece in dict.fromkeys(pieces)]
    return [*listed, *_modules(words, folders), *_modules(pieces, folders)]


def without_written(command: Any) -> Any:
    """A command without the files that it only writes: what each run makes another is no part of what is asked."""
    if isinstance(command, list):
        return [without_written(word) for word in command]
    return (
        _WRITTEN.sub(" ", command)
        if isinstance(command, str) and (">" in command or "=" in command)
        else command
    )


def _run_by_shell(files: list[Path], folders: list[Path]) -> Iterator[Path]:
    """What the texts of shell scripts name, beside the script or where it runs, also by way of each other."""
    waiting, seen = list(files), set(files)
    while waiting and len(seen) < MOST:
        file = waiting.pop(0)
        if not (text := _shell_text(file)):
            continue
        words = list(dict.fromkeys(_SHELL_WORD.findall(text)))[:_SHELL_WORDS]
        begun = dict.fromkeys([file.parent, *folders])
        within = (place / word.strip("/") for place in begun for word in words)  # `cd "$(dirname "$0")/.."`
        places = list(dict.fromkeys([*begun, *(place for place in within if os.path.isdir(place))]))[
            :_SHELL_PLACES
        ]
        named = [place / word.strip("/") for place in places for word in words if {".", "/"} & set(word)]
        for path in _existing([*named, *_modules(words, places)]):
            if path not in seen:
                seen.add(path)
                waiting.append(path)
                yield path


def _shell_text(file: Path) -> str:
    """The text of a shell script, without its comments and variables; empty for any other file."""
    try:
        if file.suffix not in ("", *_SHELL) or file.stat().st_size > _LARGEST:
            return ""
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    if not file.suffix and not re.match(r"#!.*\b(?:ba|da|k|z)?sh\b", text):
        return ""
    text = without_written(text)
    return re.sub(r"(?m)(?:^|(?<=\s))#.*|\$\w+", "", text)  # a folder in a variable may be the script's


def program_folders(spec: AgentSpec, root: Path) -> list[Path]:
    """The folders that an agent's command finds its files and its modules in, the one that it runs in first."""
    base = Path(spec.base) if spec.base else root
    inside = spec.options.get("cwd")
    own = base / inside if isinstance(inside, str) and inside else base
    env = spec.options.get("env")
    given = env.get("PYTHONPATH") if isinstance(env, dict) else None
    more = given.split(os.pathsep) if isinstance(given, str) else []
    return list(dict.fromkeys([own, *(own / name for name in more if name), base]))


def _modules(words: list[str], folders: list[Path]) -> Iterator[Path]:
    """The files of the Python modules that a command runs by their names: `-m`."""
    for at, word in enumerate(words):
        if not word.startswith("-m"):
            continue
        name = word[2:] or next(iter(words[at + 1 :]), "")
        if _MODULE.fullmatch(name):
            names = [name, f"{name}.__main__"]
            found = [path for each in names for path in _files(each, folders)]
            yield from found or (
                path for each in names for path in _files(each, Imports().folders_of(name.partition(".")[0]))
            )


def folder_files(spec: AgentSpec, root: Path) -> list[Path]:
    """The networks and coded tools in the folders that an entry names, what these networks include, and the network
    that it names by its file; sorted."""
    base = Path(spec.base) if spec.base else root
    given = (spec.options.get(key) for key in ("manifest", "tool_path"))
    manifest, tools = (
        os.pathsep.join(str(base / name) for name in several(one)) if isinstance(one, str) else ""
        for one in given
    )
    by_library = spec.type == "neuro-san"
    if not (by_library or manifest or tools):
        return []
    keys = ("network", "agent") if by_library else ()
    named = [one for key in keys if names_network_file(one := spec.options.get(key))]
    found: set[Path] = set()
    with suppress(OSError, ValueError):
        found.update(network_files(manifest, tools, root, named))
    return sorted(found)


def names_network_file(network: Any) -> TypeGuard[str]:
    """Whether an agent network is asked for by its file: no manifest lists it."""
    return isinstance(network, str) and network.endswith(NETWORKS)


def network_and_included(network: str, root: Path) -> list[Path]:
    """The file of a network that is asked for by it, and what it includes."""
    with suppress(OSError, ValueError):
        return list(network_files("", "", root, [network]))
    return []


def provider_files(provider: Any, base: Path) -> list[Path]:
    """The files of a promptfoo provider's entry; relative ones are beside the suite."""
    entry = provider if isinstance(provider, dict) else {"id": provider}
    listed = _named(entry.get("id"), base)
    config = entry.get("config")
    for value in config.values() if isinstance(config, dict) else ():
        listed += _named(value, base) if isinstance(value, str) and value.startswith("file://") else []
    return _existing(listed)


def function_of(spec: AgentSpec) -> str:
    """The name of the function that an agent's entry asks for; empty where it asks for none."""
    given = spec.options.get("function")
    return _split(given)[1] if isinstance(given, str) else ""


def _named(value: Any, base: Path) -> list[Path]:
    if isinstance(value, list):
        return [path for item in value for path in _named(item, base)]
    if isinstance(value, dict):
        return [path for key in ("function", "file", "path") for path in _named(value.get(key), base)]
    if not isinstance(value, str) or "\n" in value or len(value) > 1000:
        return []
    for prefix in _PREFIXES:
        value = value.removeprefix(prefix)
    candidates = [base / word for word in _words(value)] if " " in value else [base / value]
    found: list[Path] = []
    for path in (base / value, *candidates, base / _split(value)[0]):
        if path.suffix and path not in found:
            found.append(path)
    module, colon, _ = value.partition(":")
    if colon and re.fullmatch(r"[A-Za-z_][\w.]*", module) and not module.endswith(".py"):
        place = base.joinpath(*module.split("."))
        found += [place.with_name(f"{place.name}.py"), place / "__init__.py"]
    return found


def _split(text: str) -> tuple[str, str]:
    """`agent.py:answer` in two; a Windows drive or a URL is none of this."""
    head, colon, tail = text.rpartition(":")
    return (head, tail) if colon and re.fullmatch(r"[A-Za-z_]\w*(?:\.\w+)*", tail) else (text, "")


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, str))
    elif isinstance(value, str):
        yield from value.split()


def _pieces(command: Any) -> Iterator[str]:
    """What may be a file in the words of a command: what stands in quotes, behind `=`, and in a script that a shell is
    given (`sh -c "P=prompt.txt; python bot.py $P"`), in order."""
    for word in command if isinstance(command, list) else [command]:
        if isinstance(word, str):
            yield from islice(filter(None, re.split(_BETWEEN, word)), _SHELL_WORDS)


def _existing(paths: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        try:
            if path.is_file() and path not in found:
                found.append(path)
        except (OSError, ValueError):
            continue
    return found


# -- What code imports.


_JAVASCRIPT = (*JAVASCRIPT_ENDINGS, ".jsx", ".tsx")
_LOADED = re.compile(
    r"""(?:\brequire(?:\.resolve)?\s{0,50}\(|\bimport\b\s{0,50}\(?|\bfrom\b|\brequire_relative\b\s{0,50}\(?)\s{0,50}["'`]([^"'`\n]{1,300})["'`]"""
)
"""How JavaScript and Ruby load a file by its name."""
_RELATIVE = -1
"""Where that name is looked for: beside the file that loads it."""


def imports_others(path: Path) -> bool:
    """Whether it is code whose imports are looked for."""
    return path.suffix in (".py", ".rb", *_JAVASCRIPT)


def _loaded(text: str, by_ruby: bool) -> Iterator[str]:
    for found in _LOADED.finditer(text):
        if by_ruby or found[1].startswith((".", "/")):  # else a package, which is not the person's own
            yield found[1]


def _beside(name: str, folder: Path, suffix: str) -> Iterator[Path]:
    """The file that code in a folder loads by a name: as it stands, with a suffix left out, or of a folder. TypeScript
    names what it becomes."""
    place = folder / name
    if suffix == ".rb":
        tried = [place, Path(f"{place}.rb")]
    else:
        ends = (*_JAVASCRIPT, ".json")
        tried = [place, *(Path(f"{place}{end}") for end in ends), *(place / f"index{end}" for end in ends)]
        tried += [place.with_suffix(place.suffix.replace("js", "ts"))] if place.suffix in _JAVASCRIPT else []
    return iter(_existing([Path(os.path.normpath(path)) for path in tried])[:1])


class Imports:
    """Remembers which names each file imports until it changes. One thread at a time. `most`: files beyond which no
    more are looked for."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[Path, tuple[tuple[int, int], list[tuple[int, str]]]] = {}
        self._elsewhere: dict[str, list[Path]] = {}

    def of(self, files: Iterable[Path], *roots: Path) -> list[Path]:
        """The files under one of `roots`, beside one of `files`, or in a folder of the person's that Python
        looks in (`PYTHONPATH`, what is installed with `pip install -e`), that these Python files import, and
        those that JavaScript and Ruby load by a name from their own folder, also by way of each other;
        without `files` themselves. Those that cannot be read or parsed import what they did before."""
        first = [path for path in files if imports_others(path)]
        folders = list(dict.fromkeys([*(path.parent for path in first if path.suffix == ".py"), *roots]))
        found = dict.fromkeys(first)
        waiting = list(first)
        looked_for: set[tuple[Path | None, str]] = set()
        while waiting and len(found) < self._most:
            file = waiting.pop()
            for level, name in self._names_in(file):
                above = _above(file, abs(level)) if level else None
                if (above, name) in looked_for:
                    continue
                looked_for.add((above, name))
                if level == _RELATIVE and above is not None:
                    inside = list(_beside(name, above, file.suffix))
                else:
                    inside = list(_files(name, [above] if above is not None else folders))
                if not inside and above is None:
                    inside = list(_files(name, self.folders_of(name.partition(".")[0])))
                for path in inside:
                    if path not in found:
                        found[path] = None
                        waiting.append(path)
        return [path for path in found if path not in first]

    def folders_of(self, name: str) -> list[Path]:
        """The folders of the person's that Python finds a module or package in; none for what is installed."""
        if name not in self._elsewhere:
            found: list[Path] = []
            with suppress(ImportError, ValueError, AttributeError, OSError):
                spec = find_spec(name) if name not in _NOT_THEIRS else None
                if spec is not None:
                    packages = [Path(place).parent for place in spec.submodule_search_locations or ()]
                    places = packages or (
                        [Path(spec.origin).parent] if spec.has_location and spec.origin else []
                    )
                    found = [place for place in places if not _installed(place)]
            self._elsewhere[name] = found
        return self._elsewhere[name]

    def _names_in(self, file: Path) -> list[tuple[int, str]]:
        """Which files these are is looked for each time: a module may appear."""
        known = self._known.get(file)
        try:
            status = os.stat(file)
            stamp = (status.st_mtime_ns, status.st_size)
            if known is not None and known[0] == stamp:
                return known[1]
            text = file.read_bytes() if status.st_size <= _LARGEST else b""
            if file.suffix == ".py":
                names = list(dict.fromkeys(_names(parsed(text))))
            else:
                loaded = _loaded(text.decode("utf-8", "replace"), file.suffix == ".rb")
                names = [(_RELATIVE, name) for name in dict.fromkeys(loaded)]
        except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            return known[1] if known is not None else []
        self._known[file] = (stamp, names)
        return names


def _names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """How many folders up (0: from the path of modules) and the dotted name of everything imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                yield node.level, node.module
            prefix = f"{node.module}." if node.module else ""
            yield from ((node.level, prefix + alias.name) for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from _imported_by_call(node)


def _imported_by_call(call: ast.Call) -> Iterator[tuple[int, str]]:
    """What a call of `import_module` or `__import__` imports by a name that stands in it."""
    asked = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if asked not in ("import_module", "__import__"):
        return
    given = [
        one.value if isinstance(one, ast.Constant) else ""
        for one in (*call.args, *(k.value for k in call.keywords))
    ]
    name, package = (one if isinstance(one, str) else "" for one in (*given, "", "")[:2])
    inside = name.lstrip(".")
    level = len(name) - len(inside)
    if not _MODULE.fullmatch(inside):
        return
    if level and asked == "import_module" and _MODULE.fullmatch(package):
        above = package.split(".")
        yield 0, ".".join([*above[: len(above) - level + 1], inside])
    else:
        yield level, inside


def _installed(place: Path) -> bool:
    """Whether it is Python's own, or of a package that was installed."""
    return bool({"site-packages", "dist-packages"} & set(place.parts)) or any(
        place.is_relative_to(own) for own in _libraries()
    )


@cache
def _libraries() -> list[Path]:
    """Where Python's own modules are."""
    import sysconfig  # imported late: it reads how Python was built

    return [Path(place) for place in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}]


def _above(file: Path, level: int) -> Path:
    return file.parents[min(level, len(file.parents)) - 1]


def _files(name: str, folders: list[Path]) -> Iterator[Path]:
    """The module's file and those of the packages around it."""
    parts = name.split(".")
    for folder in folders:
        for length in range(1, len(parts) + 1):
            path = folder.joinpath(*parts[:length])
            for candidate in (path.with_name(f"{path.name}.py"), path / "__init__.py"):
                try:
                    if candidate.is_file():
                        yield candidate
                except (OSError, ValueError):
                    continue
